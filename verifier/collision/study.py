"""The study of some detectors: maps, intervals, comparisons, ranking, combination, closed loop, in one function.

Everything is computed per braking policy, for all detectors on the same grid and over the same images.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, islice
from typing import Any, TypeAlias

import numpy as np

from verifier.base.arrays import Floats
from verifier.base.blocks import HERE, Pool
from verifier.base.errors import UsageError
from verifier.checking.process import StormProcess, own_storm
from verifier.collision.bridge import LoopSettings, closed_loop, closed_loop_intervals
from verifier.collision.comparison import Comparison, bootstrap_p_values, compare
from verifier.collision.document import ClosedLoop
from verifier.collision.estimator import BrakingPolicy, CollisionMap, EstimatorSettings, Grid, collision_map
from verifier.collision.pairs import Pairs
from verifier.collision.pairs_reader import ReadPairs, on_common_images
from verifier.collision.ranking import REPLICATES as RANKING_REPLICATES
from verifier.collision.ranking import Combination, Ranking, combine, rank
from verifier.collision.resampling import REPLICATES, ROOT_N, Progress, Subsampling
from verifier.collision.score import Penalty, Score, Weight, oracle_map, score, weight_on
from verifier.collision.trust import Confidence, confidence

Stages = Callable[[str], Progress]
"""Gives for each stage of the study, named for people, what to call with the work done and the work there is."""
Block: TypeAlias = tuple[BrakingPolicy, tuple[int, ...]]
"""A policy, and the numbers of the detectors that a piece is about; none for all together."""


def unwatched(name: str) -> Progress:
    """The stages of a study that nobody watches."""
    return lambda done, total: None


@dataclass(frozen=True)
class StudySettings:
    """Every choice of a study.

    Attributes:
        grid: reported distances and speeds.
        policies: braking policies, one or more.
        speed_unit: of `stopping.SPEED_UNITS`, in which people are told speeds.
        shown_mps: speeds of the grid at which intervals are shown.
        level: nominal coverage of all intervals.
        subsampling: number and size of subsamples.
        bootstrap: replicates of the bootstrap intervals of the maps and the p-values; 0 for none.
        ranking: replicates of the ranking.
        seed: of everything that is drawn.
        penalty: of the scores and the ranking.
        weight: of the points of the grid, None for all alike.

    Raises:
        UsageError: a bootstrap with two bandwidths, a stopping distance beyond all numbers, or a level out of range.
    """

    grid: Grid
    policies: tuple[BrakingPolicy, ...]
    speed_unit: str = "m/s"
    shown_mps: tuple[float, ...] = ()
    estimator: EstimatorSettings = field(default_factory=EstimatorSettings)
    level: float = 0.95
    subsampling: Subsampling = ROOT_N
    bootstrap: int = REPLICATES
    ranking: int = RANKING_REPLICATES
    seed: int = 0
    penalty: Penalty = field(default_factory=Penalty)
    weight: Weight | None = None
    loop: LoopSettings | None = None

    def __post_init__(self) -> None:
        if self.estimator.two_bandwidths and self.bootstrap:
            raise UsageError("the bootstrap goes with one bandwidth")
        if not 0 < self.level < 1:
            raise UsageError(f"the confidence level must be between 0 and 1, got {self.level:g}")
        for policy in self.policies:
            policy.stopping_distance_m(self.grid.speeds_mps)  # refused now rather than after minutes of work


@dataclass(frozen=True, eq=False)
class DetectorResult:
    """One detector under one policy.

    Attributes:
        map, oracle: lambda and lambda*.
        confidence: intervals of every kind, and which to trust.
        score: beside its own oracle, over the points where both are defined.
        loop: the closed loop, None where none was asked for.
    """

    map: CollisionMap
    oracle: CollisionMap
    confidence: Confidence
    score: Score
    loop: ClosedLoop | None


@dataclass(frozen=True, eq=False)
class Compared:
    """Two detectors, by their numbers.

    Attributes:
        comparison: the comparison, with p-values by subsampling.
        bootstrap_p: (Y, V) p-values by bootstrap, None without one.
    """

    first: int
    second: int
    comparison: Comparison
    bootstrap_p: Floats | None


@dataclass(frozen=True, eq=False)
class PolicyResult:
    """All detectors under one policy.

    Attributes:
        detectors: in the order given.
        comparisons: of every two detectors.
        ranking: None for a single detector, and with two bandwidths, which cannot be resampled.
        combination: None for a single detector.
    """

    policy: BrakingPolicy
    detectors: tuple[DetectorResult, ...]
    comparisons: tuple[Compared, ...]
    ranking: Ranking | None
    combination: Combination | None


def collision_study(
    detectors: Sequence[ReadPairs],
    settings: StudySettings,
    storm: StormProcess | None = None,
    stages: Stages = unwatched,
    pool: Pool = HERE,
) -> tuple[PolicyResult, ...]:
    """Study the detectors under every policy.

    Args:
        detectors: pairs of one or more detectors, with different titles.
        settings: every choice.
        storm: a running worker; needed where `settings.loop` asks for a closed loop.
        stages: told of progress, here.
        pool: who works; what is drawn for one map or comparison does not depend on any other.

    Raises:
        UsageError, LimitError, InputError, EngineError: as the functions that are called.
    """
    if settings.loop is not None:
        for policy in settings.policies:
            replace(settings.loop.drive, policy=policy)  # refused now rather than after minutes of work
    sources = on_common_images(detectors)
    numbers = range(len(detectors))
    pieces: list[tuple[int, ...]] = [*((number,) for number in numbers), *combinations(numbers, 2)]
    pieces += [()] if len(detectors) > 1 else []
    blocks = [(policy, piece) for policy in settings.policies for piece in pieces]
    here, elsewhere = partial(_piece, sources, settings, storm, stages), partial(_piece_elsewhere, sources, settings)
    made = pool.map(here if pool.is_here else elsewhere, blocks)
    return tuple(_put_together(policy, list(islice(made, len(pieces)))) for policy in settings.policies)


def _put_together(policy: BrakingPolicy, pieces: Sequence[Any]) -> PolicyResult:
    """The pieces of a policy: those of single detectors, of every two, and of all together where they are several."""
    detectors = tuple(detector for detector in pieces if isinstance(detector, DetectorResult))
    comparisons = tuple(compared for compared in pieces if isinstance(compared, Compared))
    ranking, combination = (None, None) if len(detectors) == 1 else pieces[-1]
    return PolicyResult(policy, detectors, comparisons, ranking, combination)


def _piece_elsewhere(sources: Sequence[ReadPairs], settings: StudySettings, block: Block) -> Any:
    return _piece(sources, settings, own_storm() if settings.loop is not None else None, unwatched, block)


def _piece(
    sources: Sequence[ReadPairs], settings: StudySettings, storm: StormProcess | None, stages: Stages, block: Block
) -> DetectorResult | Compared | tuple[Ranking | None, Combination]:
    """What is found of one detector, of two, or, without numbers, of all together."""
    policy, numbers = block
    pairs = [pairs.pairs for pairs in sources]
    if len(numbers) == 1:
        return _detector(sources[numbers[0]], policy, settings, storm, stages)
    if numbers:
        one, other = numbers
        return _compared(pairs, one, other, policy, settings, stages)
    return _ranked(pairs, policy, settings, stages)


def _ranked(
    pairs: Sequence[Pairs], policy: BrakingPolicy, settings: StudySettings, stages: Stages
) -> tuple[Ranking | None, Combination]:
    what = (pairs, settings.grid, policy, settings.estimator)
    ranking = None
    if not settings.estimator.two_bandwidths:
        ranking = rank(
            *what,
            rng=np.random.default_rng([settings.seed, 2]),
            weight=settings.weight,
            penalty=settings.penalty,
            replicates=settings.ranking,
            level=settings.level,
            progress=stages("ranking"),
        )
    rng = np.random.default_rng([settings.seed, 3])
    combination = combine(*what, rng=rng, weight=settings.weight)
    return ranking, combination


def _compared(
    pairs: Sequence[Pairs], one: int, other: int, policy: BrakingPolicy, settings: StudySettings, stages: Stages
) -> Compared:
    name = f"{pairs[one].title} against {pairs[other].title}"
    comparison = compare(
        pairs[one],
        pairs[other],
        settings.grid,
        policy,
        settings.estimator,
        rng=np.random.default_rng([settings.seed, 1, one, other]),
        subsampling=settings.subsampling,
        progress=stages(name),
    )
    if not settings.bootstrap or settings.estimator.two_bandwidths:
        return Compared(one, other, comparison, None)
    resampled = bootstrap_p_values(
        pairs[one],
        pairs[other],
        comparison,
        rng=np.random.default_rng([settings.seed, 5, one, other]),
        replicates=settings.bootstrap,
        progress=stages(f"{name}, bootstrap"),
    )
    return Compared(one, other, comparison, resampled)


def _detector(
    read: ReadPairs, policy: BrakingPolicy, settings: StudySettings, storm: StormProcess | None, stages: Stages
) -> DetectorResult:
    pairs = read.pairs
    chart = collision_map(pairs, settings.grid, policy, settings.estimator)
    oracle = oracle_map(pairs, chart)
    sure = confidence(
        pairs,
        chart,
        seed=settings.seed,
        level=settings.level,
        subsampling=settings.subsampling,
        replicates=settings.bootstrap,
        progress=stages(f"{pairs.title}, intervals"),
    )
    own = score(chart.probability, oracle.probability, weight_on(settings.grid, settings.weight))
    loop = None
    if settings.loop is not None and storm is not None:
        loop = _loop(read, chart.width_m, policy, settings, settings.loop, storm, stages)
    return DetectorResult(chart, oracle, sure, own, loop)


def _loop(
    pairs: ReadPairs,
    width_m: float,
    policy: BrakingPolicy,
    settings: StudySettings,
    asked: LoopSettings,
    storm: StormProcess,
    stages: Stages,
) -> ClosedLoop:
    own = replace(asked, drive=replace(asked.drive, policy=policy))
    loop = closed_loop(pairs, width_m, own, storm, stages(f"{pairs.pairs.title}, closed loop"))
    if not own.replicates:
        return loop
    rng = np.random.default_rng([settings.seed, 4])
    ends = closed_loop_intervals(pairs, width_m, own, rng=rng, level=settings.level)
    drawn = zip(loop.points, *(end.tolist() for end in ends), strict=True)
    return replace(loop, points=tuple(replace(point, interval=(low, high)) for point, low, high in drawn))
