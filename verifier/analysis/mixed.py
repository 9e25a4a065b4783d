"""What a run knows where the bins of a further variable are weighed (`verifier.perception.confusion.mix`).

The strata, the matrices of each bin of the variable, stand behind each other as if they were more distance bins. So
one set of intervals and one set of draws serves them all, and alpha is divided among the chances of all strata,
whatever their weights. The mixed region follows from their intervals; a matrix that is drawn is the weighted sum of
theirs, at the point within the bounds of the weights (`Mix.point`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.chosen_bounds import choose_bounds, tier_of
from verifier.analysis.confidence import Data, draws_of_run, needs_of_run
from verifier.analysis.intervals.drawing import matrix_draws
from verifier.analysis.intervals.drive_items import drive_items
from verifier.analysis.intervals.intervals import Measured, choose_interval, measured
from verifier.analysis.intervals.rate_intervals import Event, RateIntervals
from verifier.analysis.objective import Objective, columns_of
from verifier.analysis.phantom_draws import DriveData, mixed
from verifier.analysis.robust.region import Region, region_of
from verifier.analysis.settings import ConfidenceSettings
from verifier.base.arrays import Ints
from verifier.base.errors import UsageError
from verifier.perception.confusion.mix import Mix, MixedMatrices, mixed_ends
from verifier.systems.skeleton import Skeleton


@dataclass(frozen=True, eq=False)
class MixedIntervals(RateIntervals):
    """The intervals of mixed rates, from those of the strata. `strata`: the intervals of all strata."""

    strata: RateIntervals | None = None
    mix: Mix | None = None

    @cached_property
    def ends(self) -> Mapping[Event, tuple[int, int]]:
        """Lower and upper end of every event, in billionths."""
        if self.strata is None or self.mix is None:
            raise ValueError("mixed intervals need their strata")
        order, bins = sorted(self.events), len(self.measured.counts)
        if not order:
            return {}
        ends = np.array(
            [
                [self.strata.ends[row._replace(bin=stratum * bins + row.bin)] for row in order]
                for stratum in range(len(self.mix.names))
            ]
        )
        lower, upper = mixed_ends(ends[..., 0], ends[..., 1], self.mix)
        return dict(zip(order, zip(lower.tolist(), upper.tolist(), strict=True), strict=True))


@dataclass(frozen=True, eq=False, kw_only=True)
class MixedData(Data):
    """As `Data`, whose `measured` holds the rates at the point; nothing is planned, and `intervals` is None.

    Attributes:
        strata: the counts of all strata.
        strata_intervals: of all their rates; None where bounds come from draws.
    """

    strata: Measured
    strata_intervals: RateIntervals | None
    mix: Mix

    @property
    def weights(self) -> NDArray[np.float64]:
        """(strata,) at the point."""
        return np.array([float(fraction) for fraction in self.mix.point])

    def region(self, skeleton: Skeleton) -> Region | None:
        """The mixed matrices that the data cannot rule out, whatever the weights within their bounds.

        Its evidence is not in it: a certificate takes it as assumed.
        """
        rate_intervals = self.strata_intervals
        if rate_intervals is None:
            return None
        intervals = MixedIntervals(
            self.measured, self.events, rate_intervals.alpha, "independent_items", strata=rate_intervals, mix=self.mix
        )
        return replace(region_of(skeleton, intervals), evidence=None)

    def posterior_draws(self, columns: Ints, settings: ConfidenceSettings) -> Iterator[NDArray[np.float64]]:
        """Mixed matrices that the counts make likely, some at a time, in these (k, 2) columns."""
        drawn = matrix_draws(self.strata, self._stacked(columns), settings.prior, self.draws, settings.seed)
        return (mixed(array, self.weights) for array in drawn)

    def of_drives(self, *objectives: Objective) -> DriveData:
        """What mixed matrices of a chain are drawn from, drive by drive; ValueError where drives are not known."""
        if self.drives is None:
            raise ValueError("the drives are not known")
        columns = self._stacked(columns_of(objectives))
        return DriveData(self.strata, self.drives, columns, self.weights)

    def _stacked(self, columns: Ints) -> Ints:
        return stacked_columns(columns, len(self.measured.counts), len(self.mix.names))


def stacked_columns(columns: Ints, bins: int, strata: int) -> Ints:
    """(strata * k, 2) the columns (k, 2) in the bins of every stratum."""
    moved = columns[None] + np.array([[[stratum * bins, 0]] for stratum in range(strata)])
    return np.asarray(moved.reshape(-1, 2), dtype=np.int64)


def mixed_data(
    chains: Iterable[Sequence[Objective]], point: Measured, matrices: MixedMatrices, settings: ConfidenceSettings
) -> MixedData:
    """What all chains of a run share, as `data_of_run`, where a variable is weighed.

    Args:
        chains: the objectives of each chain.
        point: the mixed rates.
        matrices: the strata.

    Raises:
        UsageError: other weights than items, or as `choose_bounds` and `choose_interval`.
        InputError: as `choose_bounds`.
    """
    if settings.weights != "item":
        raise UsageError(
            f"--mix weighs items of strata, and --weights {settings.weights} does not: leave one of them out"
        )
    tier = tier_of(settings, matrices.sequences is not None)  # refused before anything is built
    if matrices.mix.bounded and tier == "approximate":
        raise UsageError(
            "--bounds approximate draws matrices at one point of the weights, and --mix bounds some of them: state "
            "every weight, or leave --bounds approximate out"
        )
    needs = needs_of_run(chains, point)
    bins, labels, _ = point.counts.shape
    strata = _stacked_measured(point, [measured(stratum) for stratum in matrices.strata])
    drives = None
    if matrices.sequences is not None:
        held = [drive_items(sequence, bins, labels) for sequence in matrices.sequences]
        drives = replace(held[0], table=np.concatenate([items.table for items in held], axis=1))
    number = len(matrices.strata)
    events = frozenset(
        event._replace(bin=stratum * bins + event.bin) for stratum in range(number) for event in needs.events
    )
    columns = stacked_columns(needs.estimated, bins, number)
    basis, intervals = choose_bounds(strata, drives, events, columns, settings)
    choice = choose_interval(drives, columns, settings.interval, settings.unit or "drive")
    if matrices.mix.bounded:
        at_one_point = (
            "P and its interval are for one point of the bounded weights; only the bounds cover all of them"
        )
        choice = replace(choice, remark="; ".join(filter(None, (choice.remark, at_one_point))))
    if basis.largest_drive is not None:
        # Of each stratum, for the bounds rest on all of them.
        told = {replace(column, bin=column.bin % bins) for column in basis.largest_drive.columns}
        basis = replace(basis, largest_drive=replace(basis.largest_drive, columns=tuple(sorted(told))))
    draws = draws_of_run(needs, choice, basis, settings)
    return MixedData(
        point,
        drives,
        needs.events,
        choice,
        draws,
        basis,
        None,
        (),
        strata=strata,
        strata_intervals=intervals,
        mix=matrices.mix,
    )


def _stacked_measured(point: Measured, strata: Sequence[Measured]) -> Measured:
    """The strata behind each other; what is fixed by convention in the mixed matrices is fixed as it is there."""
    fixed = np.concatenate([point.fixed] * len(strata))
    rates = np.concatenate([measured.rates for measured in strata])
    there = np.concatenate([point.rates] * len(strata))
    counts = np.concatenate([measured.counts for measured in strata])
    own = strata[0].annotation_error, strata[0].looks  # of one file
    return Measured(counts, np.where(fixed[:, None, :], there, rates), fixed, *own)
