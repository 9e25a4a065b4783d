"""How sure the data make us of every requirement on one chain: a statistical interval and confidence bounds.

    interval    what the counts make likely: from the posterior of the matrices, or from randomly weighted drives
    bounds      what no matrix within a confidence region of the counts goes beyond; of tier "approximate" the ends of
                the interval from randomly weighted drives

The same draws of the matrices serve all requirements of a chain.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.chosen_bounds import choose_bounds, tier_of
from verifier.analysis.intervals.drawing import default_draws, matrix_draws, probability_draws
from verifier.analysis.intervals.drive_items import UNIT, DriveItems, drive_items
from verifier.analysis.intervals.intervals import Choice as IntervalChoice
from verifier.analysis.intervals.intervals import Interval, Measured, PercentileStream, alpha_of, choose_interval
from verifier.analysis.intervals.rate_intervals import Event, RateDifference, RateIntervals, rate_differences
from verifier.analysis.intervals.tiers import BoundsBasis, RateBox, Tier
from verifier.analysis.objective import Objective, columns_of
from verifier.analysis.phantom_draws import DriveData, common_draws, drive_intervals, extreme_draws
from verifier.analysis.robust.region import Region, events_of, region_of
from verifier.analysis.robust.solutions import Effort, RobustBounds, robust_bounds
from verifier.analysis.settings import ConfidenceSettings, IntervalKind
from verifier.base.arrays import Floats
from verifier.perception.confusion.counts import Sequences
from verifier.systems.skeleton import Skeleton


@dataclass(frozen=True, eq=False)
class Confidence:
    """How sure one requirement is at the m initial states of a chain; `tier` is that of the bounds.

    There are bounds for probabilities of formulas only, and not where nothing is known of these.
    """

    interval: Interval
    bounds: RobustBounds | None
    tier: Tier


@dataclass(frozen=True)
class Maker:
    """How the numbers of a statistical interval are made; errors are those of drawing and solving.

    Attributes:
        matrices: draws of matrices for the objectives of one chain, some at a time: the same for every chain of a
            run, in the same order, and in pairs for detectors on the same drives.
        intervals: the interval of each of the objectives of one chain.
        numbers: the draws behind that of one objective, in parts: twice (c, m) numbers, the least and the greatest.
        solves: how often each draw is solved.
    """

    matrices: Callable[[Sequence[Objective], Data, ConfidenceSettings], Iterator[Floats]]
    intervals: Callable[[Sequence[Objective], Data, ConfidenceSettings], Sequence[Interval]]
    numbers: Callable[[Objective, Data, ConfidenceSettings], Iterator[tuple[Floats, Floats]]]
    solves: int = 1


@dataclass(frozen=True, eq=False)
class Data:
    """What a run knows about its matrices, and how it makes intervals and bounds from it.

    Attributes:
        drives: what each drive holds, or None.
        events: of all chains of the run, see `verifier.analysis.robust.region`.
        choice: which interval is made, and why.
        draws: how many matrices are drawn for it.
        basis: what the bounds rest on.
        intervals: of all rates of the run; None where bounds come from draws.
        differences: rates by item, track and drive that differ.
        box: that bounds rest on, and not on the data; None where they do.
    """

    measured: Measured
    drives: DriveItems | None
    events: Set[Event]
    choice: IntervalChoice
    draws: int
    basis: BoundsBasis
    intervals: RateIntervals | None
    differences: tuple[RateDifference, ...]
    box: RateBox | None = None

    def region(self, skeleton: Skeleton) -> Region | None:
        """The matrices that the data cannot rule out, for a chain of the run; None where bounds come from draws."""
        if self.box is not None:
            return Region.of_bounds(skeleton, self.box.lower, self.box.upper)
        return None if self.intervals is None else region_of(skeleton, self.intervals)

    def within(self, box: RateBox | None) -> Data:
        """The same with bounds over a box of rates, if any; columns held by convention stay as they are."""
        if box is None:
            return self
        basis = BoundsBasis(
            tier="rate_box", weights=self.basis.weights, level=self.basis.level, chances=0, box=box.record
        )
        held = box.holding(self.measured.rates, self.measured.fixed)
        return replace(self, basis=basis, intervals=None, box=held)

    @property
    def maker(self) -> Maker:
        """How the interval of the run is made."""
        return _MAKERS[self.choice.kind]

    def posterior_draws(
        self, columns: NDArray[np.int64], settings: ConfidenceSettings
    ) -> Iterator[NDArray[np.float64]]:
        """Matrices that the counts make likely, some at a time, in these (k, 2) columns."""
        return matrix_draws(self.measured, columns, settings.prior, self.draws, settings.seed)

    def of_drives(self, *objectives: Objective) -> DriveData:
        """What matrices of a chain are drawn from, drive by drive; ValueError where drives are not known."""
        if self.drives is None:
            raise ValueError("the drives are not known")
        return DriveData(self.measured, self.drives, columns_of(objectives))


def data_of_run(
    chains: Iterable[Sequence[Objective]],
    measured: Measured,
    sequences: Sequences | None,
    settings: ConfidenceSettings,
    families: int = 1,
) -> Data:
    """What all chains of a run share.

    Args:
        chains: the objectives of each chain; they are looked at one chain at a time.
        measured, sequences: the counts, with the weights of the settings, and those of each sequence.
        families: how many runs' bounds, of these data, are to hold at once.

    Raises:
        UsageError, InputError: as `choose_bounds` and `choose_interval`.
    """
    tier_of(settings, sequences is not None)  # refused before anything is built
    needs = needs_of_run(chains, measured)
    bins, labels, _ = measured.counts.shape
    drives = None if sequences is None else drive_items(sequences, bins, labels, settings.weights)
    choice = choose_interval(drives, needs.estimated, settings.interval, settings.unit or "drive")
    basis, intervals = choose_bounds(measured, drives, needs.events, needs.estimated, settings, families)
    draws = draws_of_run(needs, choice, basis, settings)
    differences = () if sequences is None else rate_differences(sequences, bins, labels, needs.events)
    return Data(measured, drives, needs.events, choice, draws, basis, intervals, differences)


@dataclass(frozen=True, eq=False)
class Needs:
    """What the chains of a run need of its matrices.

    Attributes:
        events: of all chains, see `verifier.analysis.robust.region`.
        estimated: (k, 2) pairs of bin and true label of the columns that are not fixed.
        affordable: how many draws of matrices can be solved in reasonable time.
    """

    events: Set[Event]
    estimated: NDArray[np.int64]
    affordable: int


def needs_of_run(chains: Iterable[Sequence[Objective]], measured: Measured) -> Needs:
    """What all chains of a run need; arguments as for `data_of_run`."""
    events: set[Event] = set()
    columns: set[tuple[int, int]] = set()

    def seen() -> Iterator[Objective]:
        for objectives in chains:
            skeleton = objectives[0].skeleton
            events.update(events_of(skeleton, measured))
            columns.update((index, column) for index, column in columns_of(objectives).tolist())
            yield from objectives

    affordable = default_draws(seen())
    needed = np.array(sorted(columns), dtype=np.int64).reshape(-1, 2)
    return Needs(events, needed[~measured.fixed[needed[:, 0], needed[:, 1]]], affordable)


def draws_of_run(needs: Needs, choice: IntervalChoice, basis: BoundsBasis, settings: ConfidenceSettings) -> int:
    """How many matrices are drawn: as asked for, else as many as can be solved in reasonable time."""
    if settings.draws is not None:
        return settings.draws
    solves = _MAKERS[choice.kind].solves
    if solves == 1:
        return needs.affordable
    fewest = math.ceil(100 / alpha_of(settings.level))
    enough = fewest if basis.tier == "approximate" else min(needs.affordable, fewest)
    return max(needs.affordable // (100 * solves) * 100, enough)


def confidence(objectives: Sequence[Objective], data: Data, settings: ConfidenceSettings) -> tuple[Confidence, ...]:
    """How sure each of the objectives of one chain is.

    Args:
        objectives: of one skeleton.

    Raises:
        VerifierError: as drawing, solving and `robust_bounds`.
    """
    intervals = data.maker.intervals(objectives, data, settings)
    same = data.basis.tier == "approximate" and data.choice.kind == "bootstrap" and data.basis.looks == 1
    bounded = [objective.plain and not objective.is_undecided(_above_zero(data.measured)) for objective in objectives]
    if same:
        bounds = tuple(map(_of_interval, itertools.compress(intervals, bounded)))
    else:
        plain = list(itertools.compress(objectives, bounded))
        bounds = bounds_of_chain(plain, data, settings, Effort())
    of_plain = iter(bounds)
    each_of = [next(of_plain) if is_bounded else None for is_bounded in bounded]
    return tuple(Confidence(*both, data.basis.tier) for both in zip(intervals, each_of, strict=True))


def bounds_of_chain(
    objectives: Sequence[Objective], data: Data, settings: ConfidenceSettings, effort: Effort
) -> tuple[RobustBounds, ...]:
    """The confidence bounds of each of the objectives of one chain; all bounds of a run hold at once.

    Bounds of tier "approximate" hold each for itself. They have no certificates.

    Raises:
        VerifierError: as `robust_bounds` and drawing.
    """
    if not objectives:
        return ()
    region = data.region(objectives[0].skeleton)
    if region is not None:
        return tuple(robust_bounds(objective, region, settings.semantics, effort) for objective in objectives)
    level = float(1 - alpha_of(settings.level) / data.basis.looks)
    intervals = _drive_intervals(objectives, data, replace(settings, level=level))
    return tuple(map(_of_interval, intervals))


def _of_interval(interval: Interval) -> RobustBounds:
    """Bounds from an interval of draws: the outer ends of what drawing leaves open."""
    lower, upper = interval.lower_range[:, 0], interval.upper_range[:, 1]
    return RobustBounds(lower, upper, interval.lower, interval.upper, "shared_matrix", False, ())


def _drawn_intervals(objectives: Sequence[Objective], data: Data, settings: ConfidenceSettings) -> Sequence[Interval]:
    width = len(objectives[0].product.start)
    kind = data.choice.kind
    streams = [PercentileStream(data.draws, width, settings.level, kind, objective.most) for objective in objectives]
    unknown = [objective.is_undecided(_above_zero(data.measured)) for objective in objectives]
    pairs = zip(objectives, unknown, strict=True)
    certain = [None if none else _certain(objective, data.measured) for objective, none in pairs]
    for matrices in data.maker.matrices(objectives, data, settings):
        for objective, stream, known, none in zip(objectives, streams, certain, unknown, strict=True):
            for probabilities in probability_draws(objective, [matrices] if known is None and not none else []):
                stream.add(probabilities)
    return [
        _nothing_known(objective, settings.level, kind, data.draws)
        if none
        else (stream.interval() if known is None else stream.of_certain(known))
        for objective, stream, known, none in zip(objectives, streams, certain, unknown, strict=True)
    ]


def _nothing_known(objective: Objective, level: float, kind: IntervalKind, draws: int) -> Interval:
    """From 0 to 1."""
    low, high = np.zeros(len(objective.product.start)), np.ones(len(objective.product.start))
    return Interval(low, high, level, kind, np.stack([low, low], axis=1), np.stack([high, high], axis=1), draws)


def _drawn_numbers(objective: Objective, data: Data, settings: ConfidenceSettings) -> Iterator[tuple[Floats, Floats]]:
    for numbers in probability_draws(objective, data.maker.matrices([objective], data, settings)):
        yield numbers, numbers


def _posterior(objectives: Sequence[Objective], data: Data, settings: ConfidenceSettings) -> Iterator[Floats]:
    return data.posterior_draws(columns_of(objectives), settings)


def _weighted_drives(objectives: Sequence[Objective], data: Data, settings: ConfidenceSettings) -> Iterator[Floats]:
    return common_draws(data.of_drives(*objectives), settings.prior, data.draws, settings.seed)


def _extreme_numbers(
    objective: Objective, data: Data, settings: ConfidenceSettings
) -> Iterator[tuple[Floats, Floats]]:
    return extreme_draws(objective, data.of_drives(objective), data.draws, settings.seed)


def _drive_intervals(objectives: Sequence[Objective], data: Data, settings: ConfidenceSettings) -> Sequence[Interval]:
    level, seed = settings.level, settings.seed
    undrawn = [_undrawn(objective, data, level) for objective in objectives]
    drawn = tuple(objective for objective, known in zip(objectives, undrawn, strict=True) if known is None)
    intervals = drive_intervals(drawn, data.of_drives(*drawn), level, data.draws, seed) if drawn else iter(())
    return [next(intervals) if known is None else known for known in undrawn]


def _undrawn(objective: Objective, data: Data, level: float) -> Interval | None:
    """The interval where the graph decides the probability as long as every rate is above 0; else None.

    A phantom drive reports a single label, so rates of labels that no drive reports can be 0. The interval is what
    all matrices have whose rates are above 0 where something was counted; it has no width where these decide.
    """
    if objective.is_undecided(_above_zero(data.measured)):
        return _nothing_known(objective, level, "bootstrap", data.draws)
    if not objective.plain or _certain(objective, data.measured) is None:
        return None
    counts, fixed = data.measured.counts, data.measured.fixed[:, None, :]
    least = np.where(fixed, data.measured.rates, np.where(counts > 0, 2 / UNIT, 0.0))
    region = Region.of_bounds(objective.skeleton, least, np.where(fixed, data.measured.rates, 1.0))
    bounds = robust_bounds(objective, region, effort=Effort(attained=False))
    ends = np.stack([bounds.lower, bounds.upper], axis=1)
    ranges = np.repeat(ends[:, :1], 2, axis=1), np.repeat(ends[:, 1:], 2, axis=1)
    return Interval(bounds.lower, bounds.upper, level, "bootstrap", *ranges, data.draws)


def _certain(objective: Objective, measured: Measured) -> NDArray[np.float64] | None:
    """(m,) the probabilities where the graph of the matrices whose rates are all above 0 decides them; else None.

    Posterior draws are such matrices.
    """
    result = objective.probabilities(_above_zero(measured)[None])
    return result.probability[0] if not result.error_bound.any() else None


def _above_zero(measured: Measured) -> NDArray[np.float64]:
    """Rates that are all above 0, but for those that are held by convention."""
    fixed = measured.fixed[:, None, :] & ~np.isnan(measured.rates)
    return np.where(fixed, measured.rates, 1 / len(measured.rates[0]))


_MAKERS: Mapping[IntervalKind, Maker] = {
    "credible": Maker(_posterior, _drawn_intervals, _drawn_numbers),
    "bootstrap": Maker(_weighted_drives, _drive_intervals, _extreme_numbers, solves=2),
}
