"""Intervals for probabilities, and how well a number of draws determines their ends.

An interval from M draws has ends that are order statistics of the draws, so the ends themselves are random. How far
off they can be needs no assumption about the distribution: of M independent draws, the number that lie at or below
the true p-quantile q is at least Bin(M, p), and the number strictly below it at most Bin(M, p). With X_(1) <= ... <=
X_(M) the sorted draws,

    Pr(X_(r) <= q) >= Pr(Bin(M, p) >= r)     and     Pr(q <= X_(s)) >= Pr(Bin(M, p) <= s - 1),

with equality for continuous distributions (David and Nagaraja, Order Statistics, 3rd ed., section 7.1). Where no
order statistic is far enough out, the end of the range is 0 or 1, the ends of what a probability can be.

Only the draws in the two tails matter. `PercentileStream` keeps those and forgets the others, so that draws come in
parts, and memory is a small share of them.

Which statistical interval a run prints, and why.

Which numbers of a confusion document are measured, and which are assumptions.

A statistical statement about a matrix column is about its items. Three kinds of columns have none of their own:

* a column without items, whose rates come from a policy (`EMPTY_COLUMN_POLICIES`). The policy gives the point that
  is checked; no interval may lean on it, so such a column has no items here.
* a context in which misses may persist no longer: there the report is right, by the assumption that is named.
* column "empty" of matrices that were made without unmatched detections. That nothing is reported there is a
  convention of the counting, not a measurement: it is held fixed, and the result says so.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from verifier.analysis.intervals.drive_items import DriveItems
from verifier.analysis.settings import (
    INTERVALS,
    LARGEST_DRAWS,
    IntervalKind,
    Requested,
    Unit,
    check_draws,
    check_level,
)
from verifier.base.arrays import Floats
from verifier.base.errors import NoAnswerError, UsageError
from verifier.base.numbers import memory_text
from verifier.base.words import counted
from verifier.perception.confusion import EMPTY, ConfusionMatrices, rates
from verifier.perception.confusion.data_set import annotation_error, looks_at

RANGE_LEVEL = 0.999
"""How sure the range of each end of a simulated interval is."""
MEMORY_BYTES = 2**31
"""Most memory for the draws that an interval is read from."""


@dataclass(frozen=True, eq=False)
class Interval:
    """An interval for each of m probabilities.

    Attributes:
        lower, upper: (m,) its ends.
        level: how likely it is to hold the true probability, in the sense of its kind.
        kind: for "credible" the level is the posterior probability that the truth lies in it; for the others
            repeating the collection of data would give intervals that hold the truth about so often.
        lower_range, upper_range: (m, 2) each holds the end that infinitely many draws would give, with
            probability `RANGE_LEVEL`; no width where nothing was drawn.
        draws: how many draws it was read from; None where nothing was drawn.
        most: what no draw can exceed: 1 for probabilities.
    """

    lower: Floats
    upper: Floats
    level: float
    kind: IntervalKind
    lower_range: Floats
    upper_range: Floats
    draws: int | None = None
    most: float = 1.0

    def __post_init__(self) -> None:
        check_level(self.level)
        if self.lower.ndim != 1 or self.lower.shape != self.upper.shape:
            raise ValueError("an interval needs as many lower ends as upper ends")
        if not (np.all(self.lower >= 0) and np.all(self.lower <= self.upper) and np.all(self.upper <= self.most)):
            raise ValueError("the ends of an interval must be probabilities, the lower one not above the upper one")
        for end, both in ((self.lower, self.lower_range), (self.upper, self.upper_range)):
            if both.shape != (len(end), 2) or not np.all((both[:, 0] <= end) & (end <= both[:, 1])):
                raise ValueError("the range of an end must hold it")


def alpha_of(level: float) -> Fraction:
    """1 - level, the decimal digits of the level taken exactly: 0.9 means nine tenths.

    Raises:
        UsageError: as `check_level`.
    """
    return 1 - Fraction(repr(float(check_level(level))))


def fewest_draws(level: float) -> int:
    """The fewest draws of which some lie beyond the ends that infinitely many would give, as surely as `RANGE_LEVEL`.

    From fewer the range of an end (see `Interval`) goes on to 0 or 1: the draws say nothing against any end beyond
    them. The chance that none of M draws lies beyond an end with the share p beyond it is (1 - p)^M.

    >>> fewest_draws(0.95)
    301
    """
    tail, doubt = alpha_of(level) / 2, (1 - RANGE_LEVEL) / 2
    return math.ceil(math.log(doubt) / math.log1p(-float(tail)))


def percentile_interval(probabilities: Floats, level: float, kind: IntervalKind, most: float = 1.0) -> Interval:
    """The equal-tailed interval of draws that are there at once.

    Args:
        probabilities: (M, m) one row per draw.
        level: of the interval; (1 - level) / 2 of the draws lie beyond each end.
        kind, most: see `Interval`.

    Raises:
        UsageError: the level does not lie strictly between 0 and 1, or there is no draw.
        ValueError: a draw is no probability.
    """
    stream = PercentileStream(len(probabilities), probabilities.shape[1], level, kind, most)
    stream.add(probabilities)
    return stream.interval()


class PercentileStream:
    """The equal-tailed interval of draws that come in parts; the same for any division into parts.

    Args:
        draws: how many there will be.
        width: number of probabilities m in each.
        level: of the interval.
        kind, most: see `Interval`.

    Raises:
        UsageError: the level does not lie strictly between 0 and 1, or there is no draw, or more than
            `LARGEST_DRAWS`.
        NoAnswerError: the tails of so many draws do not fit into `MEMORY_BYTES`.
    """

    def __init__(self, draws: int, width: int, level: float, kind: IntervalKind, most: float = 1.0) -> None:
        self._most = most
        self._draws, self._level, self._kind = check_draws(draws, LARGEST_DRAWS), check_level(level), kind
        self._rank, self._first, self._last = _ranks(draws, level)
        self._kept = min(self._last, draws)
        # Two tails of up to twice the draws that matter, and what it takes to add a part to one and cut it back.
        needed = 8 * width * 8 * self._kept
        if needed > MEMORY_BYTES:
            raise NoAnswerError(
                f"the tails of {draws} draws of {width} probabilities need {memory_text(needed)}; at most "
                f"{memory_text(MEMORY_BYTES)} are used",
                hint="fewer draws, fewer initial states, or a higher level",
            )
        self._seen = 0
        # The upper tail is kept as the lower tail of the negated draws.
        self._tails = [np.zeros((0, width)), np.zeros((0, width))]

    def add(self, probabilities: Floats) -> None:
        """Take (c, m) further draws; ValueError if one is no probability."""
        if not (np.all(probabilities >= 0) and np.all(probabilities <= self._most)):  # false for NaN as well
            raise ValueError("a draw is no probability")
        self._seen += len(probabilities)
        for low in range(0, len(probabilities), self._kept):
            part = probabilities[low : low + self._kept]
            for side, sign in enumerate((1.0, -1.0)):
                tail = np.concatenate([self._tails[side], sign * part])
                if len(tail) > 2 * self._kept:
                    tail.partition(self._kept - 1, axis=0)
                    tail = tail[: self._kept].copy()
                self._tails[side] = tail

    def interval(self) -> Interval:
        """The interval, when all draws have come; ValueError before."""
        if self._seen != self._draws:
            raise ValueError(f"{self._draws} draws were announced and {self._seen} have come")
        lowest, highest = (np.sort(tail, axis=0) for tail in self._tails)
        lower, lower_range = self._end(lowest, 0.0, self._most)
        upper, upper_range = self._end(highest, -self._most, 0.0)
        upper, upper_range = 0.0 - upper, 0.0 - upper_range[:, ::-1]  # no -0.0
        ranges = lower_range, upper_range
        return Interval(lower, upper, self._level, self._kind, *ranges, self._draws, self._most)

    def of_certain(self, known: Floats) -> Interval:
        """The interval of (m,) probabilities that are the same in every draw, without looking at any."""
        both = np.stack([known, known], axis=1)
        return Interval(known, known, self._level, self._kind, both, both, self._draws, self._most)

    def _end(self, tail: Floats, least: float, most: float) -> tuple[Floats, Floats]:
        """(m,) the end of the interval and (m, 2) its range, from a sorted tail of numbers in [least, most]."""
        below = tail[self._first - 1] if self._first >= 1 else np.full(tail.shape[1], least)
        above = tail[self._last - 1] if self._last <= self._draws else np.full(tail.shape[1], most)
        return tail[self._rank - 1], np.stack([below, above], axis=1)


def _ranks(draws: int, level: float) -> tuple[int, int, int]:
    """The rank (from 1) of the lower end among the sorted draws, and of the ends of its range: r, which is 0 where
    no draw is far enough out, and s, which is `draws` + 1 then."""
    tail, doubt = alpha_of(level) / 2, (1 - RANGE_LEVEL) / 2
    rank = max(1, math.floor(tail * (draws + 1)))
    first, last = (_binomial_quantile(share, draws, float(tail)) for share in (doubt, 1 - doubt))
    return rank, min(first, rank), max(last + 1, rank)


def _binomial_quantile(share: float, draws: int, chance: float) -> int:
    """The least k with Pr(Bin(draws, chance) <= k) >= share; importing `scipy.stats` for it takes half a second."""
    return bisect_left(range(draws), share, key=lambda successes: float(bdtr(successes, draws, chance)))


TOO_NARROW = "independent items. Frames of one drive are correlated, and then intervals are too narrow."


@dataclass(frozen=True)
class Choice:
    """Which interval a run prints, and why.

    Attributes:
        kind: see `Interval`.
        reason: for people, to stand beside the interval.
        remark: what the interval leaves out, if anything.
    """

    kind: IntervalKind
    reason: str
    remark: str | None = None


def choose_interval(
    drives: DriveItems | None, columns: NDArray[np.int64], requested: Requested = "auto", unit: Unit = "drive"
) -> Choice:
    """Which interval to print: from drives where these are known, else from items.

    Args:
        drives: what each drive holds, or None where that is not known.
        columns: (k, 2) the columns that the run needs and that are not fixed.
        unit: what these drives are.

    Raises:
        UsageError: a request that the file or the weights do not allow.
    """
    kind = requested if requested != "auto" else "credible" if drives is None else "bootstrap"
    if by_drives := INTERVALS[kind].by_drives.format(unit=unit):
        if drives is None:
            raise UsageError(
                f"--interval {kind} needs sequences, but the matrices do not say which one an item is from"
            )
        holding = int(np.count_nonzero(drives.sizes(columns).sum(axis=1)))
        inside = "objects" if unit == "frame" else "frames"
        return Choice(kind, f"{counted(holding, unit)} {by_drives}: {inside} of one {unit} are not independent")
    if drives is not None and drives.weights != "item":
        raise UsageError(
            f"--interval {kind} counts items, and --weights {drives.weights} does not: leave one of them out"
        )
    if drives is not None:
        return Choice(kind, "posterior, as asked for", f"the {kind} interval assumes {TOO_NARROW}")
    both = f"the {kind} interval and the confidence bounds both assume {TOO_NARROW}"
    return Choice(kind, "posterior: the matrices do not say which sequence an item is from", both)


@dataclass(frozen=True, eq=False)
class Measured:
    """Counts as data.

    Attributes:
        counts: (bins, predicted, true) int64, the items of each column; none in columns without data.
        rates: (bins, predicted, true) float64, the point that is checked; NaN where no policy gives one.
        fixed: (bins, true) bool, the columns that are held at `rates` by convention.
        annotation_error: the largest share of the items of a column that may be annotated wrongly or missing.
        looks: how many looks at the data a verdict from them is.
    """

    counts: NDArray[np.int64]
    rates: NDArray[np.float64]
    fixed: NDArray[np.bool_]
    annotation_error: Fraction = Fraction(0)
    looks: int = 1

    def __post_init__(self) -> None:
        bins, predicted, true = self.counts.shape
        if predicted != true or self.rates.shape != self.counts.shape or self.fixed.shape != (bins, true):
            raise ValueError("counts, rates and fixed columns must fit together")


def measured(matrices: ConfusionMatrices, empty_columns: str = "error") -> Measured:
    """What of `matrices` is measured.

    Args:
        empty_columns: a policy of `EMPTY_COLUMN_POLICIES`, for `Measured.rates`.

    Raises:
        InputError: as `ConfusionMatrices.without_empty_columns`.
    """
    filled, _ = matrices.without_empty_columns(empty_columns)
    fixed = np.zeros((matrices.bin_count, len(matrices.labels)), dtype=bool)
    if matrices.metadata.get("false_positives") == "dropped":
        empty = matrices.column_of(EMPTY)
        items = filled[:, :, empty]
        fixed[:, empty] = (items.sum(axis=1) > 0) & (items.sum(axis=1) == items[:, empty])
    memory = matrices.memory
    if memory is not None and memory.contexts.kind == "persist":
        fixed.reshape(-1, memory.contexts.count, len(matrices.labels))[:, -1, memory.followed] = True
    own = annotation_error(matrices.metadata), looks_at(matrices.metadata)
    return Measured(matrices.counts, rates(filled), fixed, *own)
