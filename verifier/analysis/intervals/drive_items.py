"""What each drive holds of every matrix column, weighted as it is asked for.

| weights | the rate of ...                                       | a drive holds                                  |
|---------|-------------------------------------------------------|------------------------------------------------|
| `item`  | a random item of all drives                           | its items                                      |
| `track` | a random encounter (track), then one of its items     | its tracks, each divided among its reports;    |
|         |                                                       | what has no track counts by item               |
| `drive` | a random drive with items, then one of its items      | 1, divided among its reports                   |

Tracks and drives are divided in billionths, what is left over by largest remainders: so every table is one of whole
numbers, and matrices, bounds and certificates of one run are made from the same numbers.

Bounds on a rate that was observed in drives: the capital of a gambler who bets that the rate exceeds m.

Drive d has N_d items of a column, X_d of them in an event; B is the greatest N_d possible, u_d = X_d / B and
w_d = N_d / B. With fixed stakes s_j and their shares p_j (Cover, Universal portfolios, 1991; Waudby-Smith and Ramdas,
Estimating means of bounded random variables by betting, 2024; Orabona and Jun, Tight concentrations and confidence
sequences from the regret of universal portfolio, 2024)

    K(m) = sum_j p_j prod_d (1 + s_j (u_d / m - w_d)),    0 < m <= 1
    L    = sup { m : K(m) >= 1 / tail },   0 if there is none.

If drives are independent and none holds more than B items, Pr(L > E[X] / E[N]) <= tail: at the true rate the mean of
every factor is 1, so that of K is 1, and Markov's inequality does the rest. Nothing is assumed about the items of one
drive. K decreases in m, so a smaller end is sound too, and the end is found by bisection. The upper end is 1 minus
the lower end of the misses N_d - X_d.

Ends are whole billionths. Stakes have six digits and shares are 24ths, so whether K(L) >= 1 / tail is a question
about whole numbers, and each end is decided exactly. `capital` decides it again, for the checker of certificates.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import get_args

import numpy as np

from verifier.analysis.settings import Weights
from verifier.base.arrays import Floats, Ints
from verifier.base.errors import UsageError
from verifier.perception.confusion import ConfusionMatrices
from verifier.perception.confusion.counts import Sequences

UNIT = 10**9
"""Rates are whole numbers of 1/UNIT."""
STAKE_UNIT = 10**6
STAKES = tuple(round(math.sin(j * math.pi / 24) ** 2 * STAKE_UNIT) for j in range(1, 13))
"""s_j in millionths, up to 1."""
SHARES = (*[1] * 11, 13)
"""p_j in 24ths."""
_HALVINGS = 40
_INWARDS = 1 - 1e-9
_AT_ONCE = 2**22
"""Most logarithms in one array."""


def lower_ends(hits: Ints, items: Ints, largest: Ints, tail: Fraction) -> Ints:
    """(c,) lower ends in billionths of c rates, each exceeding its rate with probability at most `tail`.

    Args:
        hits, items: (drives, c) X_d of N_d, whole numbers in any unit, 0 <= X_d <= N_d <= largest.
        largest: (c,) B in the same unit; above 0 wherever a drive has items.
        tail: between 0 and 1.

    Raises:
        ValueError: numbers out of range.
    """
    if not np.all((hits >= 0) & (hits <= items) & (items <= largest)):
        raise ValueError("expected 0 <= hits <= items <= the largest drive")
    ends = np.floor(approximate_ends(hits, items, largest, tail) * UNIT * _INWARDS).astype(np.int64)
    for column in np.flatnonzero(ends).tolist():
        own = items[:, column] > 0
        drives = list(zip(hits[own, column].tolist(), items[own, column].tolist(), strict=True))
        end = int(ends[column])
        while end and not capital_reaches(drives, int(largest[column]), end, tail):
            end -= 1
        ends[column] = end
    return ends


def approximate_ends(hits: Ints, items: Ints, largest: Ints, tail: Fraction, times: float = 1.0) -> Floats:
    """(c,) the lower ends in doubles; arguments as for `lower_ends`, hits of any drive above 0 or the end is 0.

    Args:
        times: as if every drive had been there so many times; for planning, any number above 0.
    """
    scale = np.maximum(largest, 1)
    seen: Floats = hits / scale
    present: Floats = items / scale
    low, high = np.zeros(hits.shape[1]), np.ones(hits.shape[1])
    goal = -(math.log(tail.numerator) - math.log(tail.denominator))
    size = max(1, _AT_ONCE // max(1, len(STAKES) * len(hits)))
    for first in range(0, len(low), size):
        part = slice(first, first + size)
        for _ in range(_HALVINGS):
            middle = (low[part] + high[part]) / 2
            rich = log_capital(seen[:, part], present[:, part], middle, times) >= goal
            low[part] = np.where(rich, middle, low[part])
            high[part] = np.where(rich, high[part], middle)
    return low


def log_capital(seen: Floats, present: Floats, rate: Floats, times: float = 1.0) -> Floats:
    """(c,) log K at the rates (c,), for u_d and w_d (drives, c); -inf where the gambler has lost everything."""
    stakes = np.array(STAKES) / STAKE_UNIT
    change = seen / rate - present
    with np.errstate(divide="ignore"):  # all on one drive without a hit: log 0
        logs = np.stack([np.log1p(stake * change).sum(axis=0) for stake in stakes])
    terms = np.log(np.array(SHARES) / sum(SHARES))[:, None] + times * logs
    most = terms.max(axis=0)
    return np.asarray(most + np.log(np.exp(terms - most).sum(axis=0)))


def capital_reaches(drives: Sequence[tuple[int, int]], largest: int, end: int, tail: Fraction) -> bool:
    """Whether K(end / 10^9) >= 1 / tail, decided in whole numbers.

    Args:
        drives: (X_d, N_d) of each.
        largest: B, at least every N_d.
        end: billionths, above 0.
        tail: above 0.
    """
    unit = largest * STAKE_UNIT * end
    capital: int = 0
    for stake, share in zip(STAKES, SHARES, strict=True):
        factors = (unit + stake * (hits * UNIT - items * end) for hits, items in drives)
        capital += share * _product(factors)
    # capital / (24 unit^D) >= denominator / numerator
    goal: int = sum(SHARES) * unit ** len(drives) * tail.denominator
    return capital * tail.numerator >= goal


def _product(factors: Iterable[int]) -> int:
    """The product, by halves: long numbers are multiplied by long ones."""
    level = list(factors)
    while len(level) > 1:
        level = [math.prod(level[k : k + 2]) for k in range(0, len(level), 2)]
    return level[0] if level else 1


def ceiling(drives: int, tail: Fraction) -> float:
    """The greatest lower end that any outcome of so many drives could give: equal drives without a miss."""
    full = np.ones((drives, 1), dtype=np.int64)
    return float(approximate_ends(full, full, np.ones(1, dtype=np.int64), tail)[0])


SCALE: Mapping[str, int] = {"item": 1, "track": UNIT, "drive": UNIT}
"""How many units of a table make one item, track or drive."""


@dataclass(frozen=True, eq=False)
class DriveItems:
    """A table of what each drive holds.

    Attributes:
        table: (drives, bins, predicted, true) int64, in units of 1/SCALE[weights].
    """

    names: tuple[str, ...]
    weights: Weights
    table: Ints

    def __post_init__(self) -> None:
        if self.table.ndim != 4 or len(self.table) != len(self.names) or np.any(self.table < 0):
            raise ValueError("expected counts of each drive, by bin, predicted and true label")

    @property
    def unit(self) -> int:
        """How many units make one item, track or drive."""
        return SCALE[self.weights]

    def sizes(self, columns: Ints) -> Ints:
        """(drives, k) what each drive holds of (k, 2) pairs of bin and true label."""
        result: Ints = self.table[:, columns[:, 0], :, columns[:, 1]].sum(axis=-1).T
        return result

    def holding(self, columns: Ints) -> Ints:
        """(k,) how many drives have items of each column."""
        result: Ints = np.count_nonzero(self.sizes(columns), axis=0).astype(np.int64)
        return result

    def effective(self, columns: Ints) -> Floats:
        """(k,) the effective number of drives, (sum N)^2 / sum N^2; NaN for columns without items."""
        sizes = self.sizes(columns).astype(np.float64)
        with np.errstate(invalid="ignore"):
            return np.asarray(sizes.sum(axis=0) ** 2 / (sizes**2).sum(axis=0))

    def largest_share(self, columns: Ints) -> Floats:
        """(k,) the share of the largest drive; NaN for columns without items."""
        sizes = self.sizes(columns)
        with np.errstate(invalid="ignore"):
            return np.asarray(sizes.max(axis=0, initial=0) / sizes.sum(axis=0))


def drive_items(sequences: Sequences, bins: int, labels: int, weights: Weights = "item") -> DriveItems:
    """The table of sequences at one score threshold.

    Args:
        sequences: each a drive.

    Raises:
        UsageError: encounters are asked for, and the file does not know tracks.
    """
    if weights not in get_args(Weights):
        raise ValueError(f"weights are one of {', '.join(get_args(Weights))}")
    items = np.zeros((len(sequences.names), bins, labels, labels), dtype=np.int64)
    items[tuple(sequences.tally.index.T)] = sequences.tally.counts[:, 0]
    if weights == "item":
        return DriveItems(sequences.names, weights, items)
    if weights == "track" and sequences.tracks is None:
        raise UsageError(
            "--weights track counts encounters, and the matrices do not say which items are of one track: count them "
            "again with `verify confusion` from annotations with track numbers, or take --weights item"
        )
    if weights == "drive" or sequences.tracks is None:
        return DriveItems(sequences.names, "drive", divided(items, (items.sum(axis=2) > 0).astype(np.int64)))
    # What has no tracks (false positives, of which each is its own) is counted as it is.
    shares, wholes = items.astype(np.float64), items.sum(axis=2)
    sequence, at_bin, true = sequences.tracks.columns.T
    wholes[sequence, at_bin, true] = sequences.tracks.track_counts
    shares[sequence, at_bin, :, true] = 0
    shares[tuple(sequences.tracks.index.T)] = sequences.tracks.shares[:, 0]
    return DriveItems(sequences.names, weights, divided(shares, wholes))


def divided(shares: Ints | Floats, wholes: Ints) -> Ints:
    """Whole numbers of billionths in proportion to shares, what is left over by largest remainders.

    Args:
        shares: (drives, bins, predicted, true), some above 0 wherever there is something to divide.
        wholes: (drives, bins, true) what is divided among the predicted labels.
    """
    total = shares.sum(axis=2, keepdims=True)
    result = rounded_to(shares / np.where(total > 0, total, 1) * wholes[:, :, None] * UNIT, wholes * UNIT)
    if not np.array_equal(result.sum(axis=2), wholes * UNIT):
        raise ValueError("nothing is there to divide in a column that has a whole")
    return result


def rounded_to(wanted: Floats, wholes: Ints) -> Ints:
    """(.., labels, true) numbers rounded by largest remainders, to sums of (.., true) wholes over the labels."""
    least = np.floor(wanted).astype(np.int64)
    missing = wholes - least.sum(axis=-2)
    place = np.argsort(np.argsort(-(wanted - least), axis=-2, kind="stable"), axis=-2, kind="stable")
    return np.asarray(least + (place < missing[..., None, :]))


def weighted_matrices(
    matrices: ConfusionMatrices, sequences: Sequences | None, weights: Weights
) -> ConfusionMatrices:
    """The matrices with the rates of other weights; counts are then in billionths of a track or drive.

    Args:
        matrices: by item.
        sequences: theirs.

    Raises:
        UsageError: the file does not know what the weights need.
    """
    if weights == "item":
        return matrices
    if sequences is None:
        raise UsageError(f"--weights {weights} needs matrices that say which drive an item is from; these do not")
    table = drive_items(sequences, matrices.bin_count, len(matrices.labels), weights).table
    return replace(matrices, counts=table.sum(axis=0), metadata={**matrices.metadata, "weights": weights})
