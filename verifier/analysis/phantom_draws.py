"""How sure the *drives* make us of a probability: matrices of randomly weighted drives and one phantom drive more.

In each draw every drive d gets a standard exponential weight E_d, the same for all columns, and every column one
phantom drive of weight E_0 that is as large as the drive an item of the column lies in, S = sum N_d^2 / sum N_d: the
Bayesian bootstrap over drives (Rubin, The Bayesian bootstrap, Annals of Statistics 9, 1981) with one more drive that
went the other way (Gaffke, Three test statistics for a nonparametric one-sided hypothesis on the mean of a
nonnegative variable, 2005; Learned-Miller and Thomas, A new confidence interval for the mean of a bounded random
variable, arXiv:1905.06208, 2019). For one rate and one item in every drive that is exactly Clopper and Pearson's end;
for equal sizes it is Gaffke's bound, for which coverage is conjectured; for other sizes coverage is shown by
simulation only. So these bounds are called approximate. What the phantom drive reports is for the caller to say: for
an interval all of it is once what is worst for the probability and once what is best; in a comparison it is drawn as
well.

The weights depend on the names of the drives, the seed and the number of the draw only. So detectors that were run on
the same drives get the same weights, and are compared in pairs.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from verifier.analysis.intervals.drawing import (
    BLOCK,
    PART_BYTES,
    LogGammas,
    NeededColumns,
    blocks,
    counts_entropy,
    probability_draws,
    shares,
    stream,
)
from verifier.analysis.intervals.drive_items import DriveItems
from verifier.analysis.intervals.intervals import Interval, Measured, PercentileStream
from verifier.analysis.objective import Objective
from verifier.analysis.sensitivity.adjoint import expected_visits, gradient, state_values
from verifier.analysis.settings import Prior, check_draws, check_seed, prior_weight
from verifier.base.arrays import Floats, Ints

_PHANTOM, _REPORTS = 2, 3
"""Names of streams, beside those of the posterior."""
_VISITS_AT_ONCE = 2**24


@dataclass(frozen=True, eq=False)
class DriveData:
    """What matrices are drawn from.

    Attributes:
        measured: the counts of all drives together.
        columns: (k, 2) pairs of bin and true label that somebody needs.
        weights: (strata,) of strata whose bins follow each other; a matrix is the weighted sum of theirs.

    Raises:
        ValueError: the drives do not add up to the counts, or a column does not exist.
    """

    measured: Measured
    drives: DriveItems
    columns: Ints
    weights: Floats = field(default_factory=lambda: np.ones(1))

    def __post_init__(self) -> None:
        if not np.array_equal(self.drives.table.sum(axis=0), self.measured.counts):
            raise ValueError("the counts by drive do not add up to the counts")
        NeededColumns(self.measured, self.columns)

    @cached_property
    def needed(self) -> NeededColumns:
        """The columns, those to be drawn among them."""
        return NeededColumns(self.measured, self.columns)

    @cached_property
    def held(self) -> Floats:
        """(drives, f, predicted) what each drive holds of the f columns that are not fixed."""
        free = self.needed.free
        shares_held = self.drives.table[:, free[:, 0], :, free[:, 1]] / self.drives.unit
        return np.ascontiguousarray(np.moveaxis(shares_held, 0, 1))

    def matrices(self, rates: Floats) -> Floats:
        """(c, bins, predicted, true) matrices from (c, f, predicted) rates of the columns that are not fixed."""
        return mixed(self.needed.matrices(rates), self.weights)

    @cached_property
    def phantom(self) -> Floats:
        """(f,) the size S of a phantom drive; 1 in columns without items."""
        sizes = self.held.sum(axis=2)
        total = sizes.sum(axis=0)
        return np.asarray(np.divide((sizes**2).sum(axis=0), total, out=np.ones(len(total)), where=total > 0))


def mixed(matrices: Floats, weights: Floats) -> Floats:
    """(c, bins, predicted, true) weighted sums of matrices (c, strata * bins, predicted, true)."""
    if len(weights) == 1:
        return matrices
    strata = matrices.reshape(len(matrices), len(weights), -1, *matrices.shape[2:])
    return np.asarray(np.tensordot(strata, weights, (1, 0)))


@dataclass(frozen=True, eq=False)
class DrivePart:
    """Some draws.

    Attributes:
        data: what they are drawn from.
        first: number of the first of them.
        items: (c, f, predicted) weighted items.
        phantom: (c, f) items of the phantom drives.
    """

    data: DriveData
    first: int
    items: Floats
    phantom: Floats

    def matrices(self, reports: Floats) -> Floats:
        """(c, bins, predicted, true) where phantom drives report (c or 1, f, predicted) shares of their items."""
        drawn = self.items + self.phantom[:, :, None] * reports
        return self.data.matrices(drawn / drawn.sum(axis=2, keepdims=True))


def drive_draws(data: DriveData, count: int, seed: int = 0, at_once: int = BLOCK) -> Iterator[DrivePart]:
    """Draws of drives, some at a time, `count` in all. Raises UsageError: no draw, or a negative seed."""
    free, held = data.needed.free, data.held.reshape(len(data.held), math.prod(data.held.shape[1:]))
    size = min(at_once, max(1, PART_BYTES // (32 * max(1, len(held)))), data.needed.largest_part)
    digests = [hashlib.sha256(name.encode()).digest() for name in data.drives.names]
    names = [(check_seed(seed), int.from_bytes(digest[:16], "little")) for digest in digests]
    own = counts_entropy(data.measured, seed)

    def drawn(count: int) -> Iterator[DrivePart]:
        first = 0
        for block, parts in blocks(count, size):
            drives = [stream(entropy, block) for entropy in names]
            phantoms = [stream((*own, _PHANTOM), *pair, block) for pair in free.tolist()]
            for part in parts:
                weights = _exponentials(drives, part)
                extra = _exponentials(phantoms, part) * data.phantom
                yield DrivePart(data, first, (weights @ held).reshape(part, *data.held.shape[1:]), extra)
                first += part

    return drawn(check_draws(count))


def common_draws(data: DriveData, prior: Prior, count: int, seed: int = 0) -> Iterator[Floats]:
    """Matrices for comparisons, as `analysis.intervals.drawing.matrix_draws`: what phantom drives report is drawn.

    Args:
        data, count, seed: as for `drive_draws`.
        prior: shares of the labels in a phantom drive are Dirichlet-distributed with this weight, see `prior_weight`.

    Raises:
        UsageError: an unknown prior, no draw, or a negative seed.
    """
    free, labels = data.needed.free.tolist(), data.measured.counts.shape[1]
    weight, own = np.full(labels, prior_weight(prior)), counts_entropy(data.measured, seed)

    def drawn(parts: Iterator[DrivePart]) -> Iterator[Floats]:
        sources: list[LogGammas] = []
        for part in parts:
            if part.first % BLOCK == 0:
                block = part.first // BLOCK
                sources = [LogGammas((*own, _REPORTS), (*pair, block), weight) for pair in free]
            rows = len(part.items)
            logarithms = (
                np.stack([source(rows) for source in sources], axis=1) if free else np.zeros(part.items.shape)
            )
            yield part.matrices(shares(logarithms))

    return drawn(drive_draws(data, count, seed))


def drive_intervals(
    objectives: tuple[Objective, ...], data: DriveData, level: float, count: int, seed: int
) -> Iterator[Interval]:
    """The interval of each objective of one skeleton: phantom drives once at their worst, once at their best.

    Raises:
        VerifierError: as drawing and solving.
    """
    tables = [_extreme_reports(objective, data) for objective in objectives]
    streams = []
    for objective in objectives:
        width = len(objective.product.start)
        streams.append(
            [PercentileStream(count, width, level, "bootstrap", objective.most) for _ in ("worst", "best")]
        )
    for part in drive_draws(data, count, seed):
        for objective, table, (low, high) in zip(objectives, tables, streams, strict=True):
            ends = _extreme_probabilities(objective, part, table)
            low.add(ends.min(axis=0))
            high.add(ends.max(axis=0))
    for objective, (low, high) in zip(objectives, streams, strict=True):
        worst, best = low.interval(), high.interval()
        ranges = worst.lower_range, best.upper_range
        yield Interval(worst.lower, best.upper, level, "bootstrap", *ranges, count, objective.most)


def extreme_draws(objective: Objective, data: DriveData, count: int, seed: int) -> Iterator[tuple[Floats, Floats]]:
    """The draws behind an interval of `drive_intervals`, in parts: twice (c, m) numbers, least and greatest ones."""
    table = _extreme_reports(objective, data)
    for part in drive_draws(data, count, seed):
        ends = _extreme_probabilities(objective, part, table)
        yield ends.min(axis=0), ends.max(axis=0)


def _extreme_probabilities(objective: Objective, part: DrivePart, table: Ints) -> Floats:
    """(2, c, m) probabilities of draws where phantom drives report the labels (2, m, f) of `table`."""
    labels = part.items.shape[2]
    ends = np.empty((2, len(part.items), table.shape[1]))
    for side, reports in enumerate(table):
        kinds, kind_of = np.unique(reports, axis=0, return_inverse=True)
        for number, kind in enumerate(kinds):
            starts = kind_of.reshape(-1) == number
            matrices = part.matrices(np.eye(labels)[kind][None])
            solved = np.concatenate(list(probability_draws(objective, [matrices])))
            ends[side][:, starts] = solved[:, starts]
    return ends


def _extreme_reports(objective: Objective, data: DriveData) -> Ints:
    """(2, m, f) for each initial state and column the label that is worst for the probability, and the best.

    Those of the least and the greatest derivative at the mean of the draws, the phantom drives divided evenly; where
    no derivatives are known, those of the least and the greatest number if that column alone is given to one label.
    """
    labels = data.measured.counts.shape[1]
    mean = data.held.sum(axis=0) + data.phantom[:, None] / labels
    if not (objective.plain and objective.slopes):
        return _extreme_by_trial(objective, data, mean)
    rates = data.matrices((mean / mean.sum(axis=1, keepdims=True))[None])[0]
    values = state_values(objective, rates)
    starts, free = len(objective.product.start), data.needed.free
    labels_of = np.empty((2, starts, len(free)), dtype=np.int64)
    size = max(1, _VISITS_AT_ONCE // objective.state_count)
    for first in range(0, starts, size):
        chosen = range(first, min(first + size, starts))
        cells = gradient(objective, values, expected_visits(objective, values, chosen)).cells
        slope = cells[:, free[:, 0] % cells.shape[1], :, free[:, 1]]  # (f, chosen, predicted)
        labels_of[0, first : first + size] = slope.argmin(axis=2).T
        labels_of[1, first : first + size] = slope.argmax(axis=2).T
    return labels_of


def _extreme_by_trial(objective: Objective, data: DriveData, mean: Floats) -> Ints:
    """As `_extreme_reports`, from one matrix for each column and label; `mean` is (f, predicted) items."""
    count, labels = mean.shape
    tried = np.repeat(mean[None], count * labels, axis=0).reshape(count, labels, count, labels)
    for column, phantom in enumerate(data.phantom.tolist()):
        tried[column, :, column] += phantom * (np.eye(labels) - 1 / labels)
    matrices = data.matrices((tried / tried.sum(axis=3, keepdims=True)).reshape(-1, count, labels))
    numbers = np.concatenate(list(probability_draws(objective, [matrices]))).reshape(count, labels, -1)
    return np.stack([numbers.argmin(axis=1).T, numbers.argmax(axis=1).T])


def _exponentials(streams: list[np.random.Generator], rows: int) -> Floats:
    """(rows, streams) the next numbers of each."""
    numbers = np.empty((len(streams), rows))
    for number, generator in enumerate(streams):
        numbers[number] = generator.standard_exponential(rows)
    return numbers.T
