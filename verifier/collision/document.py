"""The types of the document of a study of collisions.

It is byte-stable: equal inputs give equal bytes. It holds no times, no absolute paths and no user names. Where a
number is not defined it is null, and a code says why. A table has one row per distance and one number per speed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias

from verifier.base.documents import Count, Limits, Sha256
from verifier.collision.settings import Bandwidth, EmptyBins
from verifier.collision.trust import Independence

Rounded: TypeAlias = Annotated[float, Limits(ge=0, le=1.000000001)]
"""A share, up to rounding."""
Row: TypeAlias = tuple[float | None, ...]
Table: TypeAlias = tuple[Row, ...]
Codes: TypeAlias = tuple[tuple[int, ...], ...]
Heavy: TypeAlias = Annotated[str, Limits(pattern="^(below|above)$")]


@dataclass(frozen=True)
class CollisionInput:
    """What is said of every source of pairs; beside it stands what its reader decided.

    Attributes:
        format: pairs, record, or the format of the detections.
        name, sha256: of the file, without folders.
        matching: highest_in_both (the paper's rule) or a policy.
    """

    title: str
    format: str
    images: Count
    objects: Count
    pairs: Count
    without_distance: Count
    behind: Count
    name: str = ""
    sha256: Sha256 = ""
    classes: tuple[str, ...] = ()
    measure: str = ""
    matching: Any = None


@dataclass(frozen=True)
class LoopRecord:
    """As `verifier.collision.bridge.LoopSettings`."""

    first_report_m: float
    period_s: float | None
    near_m: float
    margin_m: float
    bin_m: float
    empty_bins: EmptyBins
    replicates: Count


@dataclass(frozen=True)
class CollisionSettings:
    """As `verifier.collision.study.StudySettings`; None for subsamples: the square root of the number of pairs."""

    speed_unit: Annotated[str, Limits(pattern="^(m/s|km/h|mph|kn)$")]
    shown_mps: tuple[float, ...]
    bandwidth: Bandwidth
    constant: float
    width_m: float | None
    two_bandwidths: bool
    reach: float
    level: Rounded
    subsamples: int | None
    subsample_size: int | None
    bootstrap: Count
    ranking: Count
    seed: Count
    alpha: float
    beta: float
    heavy: Heavy
    weight: str
    closed_loop: LoopRecord | None


@dataclass(frozen=True)
class GridRecord:
    """Reported distances and speeds."""

    distances_m: tuple[float, ...]
    speeds_mps: tuple[float, ...]


@dataclass(frozen=True)
class CodeTexts:
    """Code -> what it means.

    Attributes:
        reason: why a probability is null; 0 where it is not.
        trust: which recommended interval, and why.
        area: which of two detectors is closer to its oracle.
    """

    reason: Mapping[str, str]
    trust: Mapping[str, str]
    area: Mapping[str, str]


@dataclass(frozen=True)
class ScoreRecord:
    """As `verifier.collision.score.Score`; None where nothing is defined."""

    above: float | None
    below: float | None
    covered: Rounded


@dataclass(frozen=True)
class IntervalRecord:
    """Intervals of one kind, as they come out: ends may lie outside of [0, 1]."""

    kind: Annotated[
        str,
        Limits(
            pattern="^(subsampling|bootstrap_percentile|bootstrap_drives|exact_window|exact_monotone|exact_simultaneous|drives_(window|monotone|simultaneous))$"
        ),
    ]
    covers: str
    assumes: str
    resamples: Count
    lower: Table
    upper: Table


@dataclass(frozen=True)
class ClosedLoopPoint:
    """One initial speed of a closed loop, see `verifier.collision.bridge`.

    Attributes:
        speed_mps: initial speed of the chain, the nearest to the one asked for.
        stopping_m: S(v).
        brakes_at_first_report: whether the first report makes the planner brake.
        one_shot, closer: probabilities of coming closer than `near_m`.
        lower, upper: numerical bounds of `closer`. They say nothing about how well the pairs determine it.
        second_engine: `closer` by the second engine.
        interval: of `closer`, by bootstrap over images; None without one.
        states: of the chain; 0 where none was needed: for a vehicle at rest, cars that are closer from the start, and
            where the first report makes the planner brake.
    """

    speed_mps: float
    stopping_m: float
    brakes_at_first_report: bool
    one_shot: Rounded
    closer: Rounded
    lower: Rounded
    upper: Rounded
    second_engine: Rounded
    interval: tuple[float, float] | None
    states: Count


@dataclass(frozen=True)
class ClosedLoop:
    """The closed loop from one first report, over initial speeds.

    Attributes:
        first_report_m: y.
        width_m: of the kernel that weights the pairs.
        cars: pairs within its reach.
        effective_cars: (sum w)^2 / sum w^2 of their weights (Kish 1965): what they are worth in equal ones.
        missed: objects without a report that the channel counts.
        period_s, cell_m: of the chain, see `verifier.collision.approach.DriveSettings`.
        borrowed_bins: bins of the true distance without items, and so with those of others.
        points: one per speed.
    """

    first_report_m: float
    width_m: float
    cars: Count
    effective_cars: float
    missed: Count
    period_s: float
    cell_m: float
    borrowed_bins: tuple[Count, ...]
    points: tuple[ClosedLoopPoint, ...]


@dataclass(frozen=True)
class DetectorRecord:
    """One detector under one policy, see `verifier.collision.study.DetectorResult`."""

    title: str
    pairs: Count
    images: Count
    width_m: float | None
    cross_validated_m: float | None
    oversmooths: bool
    score: ScoreRecord
    probability: Table
    reason: Codes
    oracle: Table
    trust: Codes
    images_near: tuple[Count, ...]
    intervals: tuple[IntervalRecord, ...]
    closed_loop: ClosedLoop | None
    independence: Independence | None = None


@dataclass(frozen=True)
class ComparisonRecord:
    """Two detectors, by their numbers; the p-values are of what the area says, `width_m` is the kernel of both;
    `undefined_most`: at most so many of the subsamples have no value at a point."""

    first: Count
    second: Count
    threshold: float
    objects: Count
    common_objects: Count
    subsamples: Count
    subsample_size: Count
    area: Codes
    p_value: Table
    bootstrap_p_value: Table | None
    undefined_most: Count = 0
    width_m: float | None = None


@dataclass(frozen=True)
class RatioRecord:
    """The ranking at one ratio beta / alpha."""

    ratio: float
    order: tuple[Count, ...]
    loss: Row
    lower: Row
    upper: Row
    best_share: Row


@dataclass(frozen=True)
class Crossing:
    """Where the lines of two detectors cross.

    Attributes:
        ratio: beta / alpha.
        better_below, better_above: numbers of the detectors; the first is better for smaller ratios.
        share: of the replicates in which they cross so; None without replicates, or where nobody asked.
    """

    ratio: float
    better_below: Count
    better_above: Count
    share: Rounded | None = None


@dataclass(frozen=True)
class RankingRecord:
    """As `verifier.collision.ranking.Ranking`."""

    weight: str
    heavy: Heavy
    scores: tuple[ScoreRecord, ...]
    ratios: tuple[RatioRecord, ...]
    crossings: tuple[Crossing, ...]


@dataclass(frozen=True)
class CombinationRecord:
    """As `verifier.collision.ranking.Combination`."""

    chosen_on: Count
    scored_on: Count
    choice: Codes
    single: tuple[ScoreRecord, ...]
    combined: ScoreRecord
    probability: Table


@dataclass(frozen=True)
class PolicyRecord:
    """What was found under one braking policy; `stopping_m` is S(v) of each speed of the grid."""

    deceleration_mps2: Annotated[float, Limits(gt=0)]
    reaction_s: Annotated[float, Limits(ge=0)]
    stopping_m: tuple[float, ...]
    detectors: Annotated[tuple[DetectorRecord, ...], Limits(min_length=1)]
    comparisons: tuple[ComparisonRecord, ...]
    ranking: RankingRecord | None
    combination: CombinationRecord | None


@dataclass(frozen=True, kw_only=True)
class CollisionStudy:
    """Result of `verify collision`; each of the inputs is a `CollisionInput` and more."""

    schema: ClassVar[str] = "verifier.collision"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    title: str
    inputs: Annotated[tuple[Mapping[str, Any], ...], Limits(min_length=1)]
    settings: CollisionSettings
    versions: Mapping[str, str]
    remarks: tuple[str, ...]
    grid: GridRecord
    codes: CodeTexts
    policies: Annotated[tuple[PolicyRecord, ...], Limits(min_length=1)]
