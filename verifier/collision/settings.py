"""The words for what can be chosen of a study of collisions, and every choice of `verify collision`.

Only light modules are imported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from verifier.base.options import Option, PrintedTables, Scheduler, Written, reads, writes
from verifier.perception.settings import Affinity, Format, Measure, OwnColumns

NegativeReports: TypeAlias = Literal["error", "zero", "left_out"]
"""What becomes of reported distances below 0."""
Heavy: TypeAlias = Literal["below", "above"]
"""Whether the heavy weight of the loss is for too low or too high a probability."""
EmptyBins: TypeAlias = Literal["error", "neighbour"]
"""What becomes of bins of the true distance without objects."""

Bandwidth: TypeAlias = Literal["normal_reference", "cross_validated", "fixed"]
"""How the width of the kernel is found."""

DECELERATION_MPS2 = 6.86
"""Of braking, where none is named."""
BOOTSTRAP = 200
"""Replicates, where nobody says how many."""


def _plot(text: str, of: str = "") -> Option:
    return writes(f"{text} (.png, .svg, .pdf)", of=of)


@dataclass(frozen=True, kw_only=True)
class CollisionSettings:
    """Every choice of `verify collision`; None of what the data or the other choices decide."""

    table: Annotated[str | None, reads("pairs of one detector", metavar="PAIRS.csv", positional=True)] = None

    pairs: Annotated[
        tuple[str, ...],
        Option(
            "table of pairs (repeatable)",
            metavar="NAME=FILE",
            group="data (several detectors: one option each, with NAME=)",
            role="named_file",
        ),
    ] = ()
    record: Annotated[
        tuple[str, ...],
        Option("record of verify confusion; needs --distance", metavar="[NAME=]FILE", role="named_file"),
    ] = ()
    detections: Annotated[
        tuple[str, ...],
        Option("output of a detector, with --format and --annotations", metavar="[NAME=]PATH", role="named_file"),
    ] = ()
    format: Annotated[Format | None, Option("{choices}", metavar="NAME", of="detections")] = None
    annotations: Annotated[
        str | None, reads("ground truth: file, folder or zip archive", metavar="PATH", of="detections")
    ] = None
    class_map: Annotated[
        str | None, reads("file of lines such as 'human.* -> ped'; * is any text", of="detections")
    ] = None
    frames: Annotated[
        str | None, reads("lists every frame, also empty ones (kitti_tracking, table)", of="detections")
    ] = None
    sequence: Annotated[
        tuple[str, ...], Option("only this sequence (repeatable)", metavar="NAME", of="detections")
    ] = ()
    ignore: Annotated[
        tuple[str, ...], Option("skip input errors of this kind (repeatable)", metavar="KIND", of="detections")
    ] = ()
    min_score: Annotated[float | None, Option("leave out detections below", metavar="X", of="detections")] = None
    classes: Annotated[tuple[str, ...], Option("only this class (repeatable)", name="class", metavar="NAME")] = ()
    same_class: Annotated[bool, Option("a detection of another class counts as missed")] = False
    distance: Annotated[Measure | None, Option("{choices}", metavar="MEASURE")] = None
    affinity: Annotated[
        Affinity | None,
        Option(
            "match by this ({choices}) in place of the paper's rule, highest 2-D and 3-D IoU",
            metavar="NAME",
            of="detections",
        ),
    ] = None
    match_threshold: Annotated[float | None, Option("least IoU, or largest distance", metavar="X", of="affinity")] = (
        None
    )
    images: Annotated[int | None, Option("number of images, where a table names only some", metavar="N")] = None
    column: OwnColumns = field(default_factory=dict)
    negative_reports: Annotated[NegativeReports, Option("reported distances below 0 in a table")] = "error"
    title: Annotated[str | None, Option("title of the study", metavar="TEXT")] = None

    deceleration: Annotated[
        tuple[float, ...],
        Option(
            f"deceleration of braking (repeatable; default: {DECELERATION_MPS2})",
            metavar="M/S2",
            group="braking and grid",
        ),
    ] = ()
    reaction: Annotated[float, Option("reaction time before braking", metavar="S")] = 0.1
    distances: Annotated[str, Option("reported distances of the grid, metres", metavar="RANGE")] = "1..50"
    speeds: Annotated[str, Option("speeds of the grid (default: '5..75 mph')", metavar="RANGE UNIT")] = "5..75 mph"
    at: Annotated[str | None, Option("speeds of the grid at which intervals are shown", metavar="LIST UNIT")] = None

    bandwidth: Annotated[
        str,
        Option(
            "kernel width: cross_validated, normal_reference, or metres",
            metavar="RULE",
            group="estimate and intervals",
        ),
    ] = "cross_validated"
    constant: Annotated[float | None, Option("constant of normal_reference (default: 1.06)", metavar="C")] = None
    two_bandwidths: Annotated[bool, Option("equation (1) to the letter; may leave [0, 1]")] = False
    level: Annotated[float, Option("level of intervals", name="confidence", also=("--level",), metavar="LEVEL")] = (
        0.95
    )
    subsamples: Annotated[
        int | None, Option("number of subsamples (default: square root of the pairs)", metavar="N")
    ] = None
    subsample_size: Annotated[
        int | None, Option("pairs of a subsample (default: square root of the pairs)", metavar="N")
    ] = None
    bootstrap: Annotated[
        int | None, Option(f"bootstrap replicates; 0 for none (default: {BOOTSTRAP})", metavar="N")
    ] = None
    seed: Annotated[int, Option("random seed", metavar="N")] = 0

    alpha_loss: Annotated[
        float, Option("the light weight of the loss", metavar="A", group="scores and comparison")
    ] = 1.0
    beta_loss: Annotated[float, Option("the heavy weight of the loss", metavar="B")] = 10.0
    heavy: Annotated[
        Heavy, Option("beta weighs lambda below or above the oracle's; the paper prints below (default)")
    ] = "below"
    weight: Annotated[str | None, reads("operational profile: distance_m, speed_UNIT, weight (.csv)")] = None
    ranking_replicates: Annotated[
        int | None, Option("bootstrap replicates of the ranking (default: 200)", metavar="N")
    ] = None

    closed_loop: Annotated[
        float | None,
        Option("verify the loop from a first detection at this distance", metavar="M", group="closed loop"),
    ] = None
    loop_speeds: Annotated[
        str | None,
        Option("initial speeds (default: every fifth of the grid)", metavar="RANGE UNIT", of="closed-loop"),
    ] = None
    period: Annotated[
        float | None, Option("time between detections (default: about 0.1)", metavar="S", of="closed-loop")
    ] = None
    near: Annotated[float, Option("distance to keep", metavar="M", of="closed-loop")] = 0.0
    margin: Annotated[float, Option("added to S(v)", metavar="M", of="closed-loop")] = 0.0
    bin: Annotated[float, Option("width of bins of the true distance", metavar="M", of="closed-loop")] = 2.0
    empty_bins: Annotated[EmptyBins, Option("bins without objects that are driven through", of="closed-loop")] = (
        "error"
    )

    json: PrintedTables = False
    scheduler: Scheduler = None
    output: Written = None
    csv: Annotated[str | None, writes("write one row per detector, distance and speed")] = None
    plot: Annotated[str | None, _plot("heat maps with the curve y = S(v)")] = None
    plot_intervals: Annotated[str | None, _plot("intervals against distance at the speeds shown")] = None
    plot_comparison: Annotated[str | None, _plot("where which detector is better, with p-values")] = None
    plot_ranking: Annotated[str | None, _plot("scores against beta / alpha")] = None
    plot_closed_loop: Annotated[str | None, _plot("single detection and closed loop", of="closed-loop")] = None

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of pairs, NAME=FILE or a path alone."""
        return (*((self.table,) if self.table is not None else ()), *self.pairs)
