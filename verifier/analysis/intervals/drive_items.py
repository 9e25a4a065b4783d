"""What each drive holds of every matrix column, weighted as it is asked for.

| weights | the rate of ...                                       | a drive holds                                  |
|---------|-------------------------------------------------------|------------------------------------------------|
| `item`  | a random item of all drives                           | its items                                      |
| `track` | a random encounter (track), then one of its items     | its tracks, each divided among its reports;    |
|         |                                                       | what has no track counts by item               |
| `drive` | a random drive with items, then one of its items      | 1, divided among its reports                   |

Tracks and drives are divided in billionths, what is left over by largest remainders: so every table is one of whole
numbers, and matrices, bounds and certificates of one run are made from the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from verifier.analysis.intervals.betting import UNIT
from verifier.analysis.settings import Weights
from verifier.base.arrays import Floats, Ints
from verifier.base.errors import UsageError
from verifier.perception.confusion import ConfusionMatrices
from verifier.perception.confusion.counts import Sequences

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
    wanted = shares / np.where(total > 0, total, 1) * wholes[:, :, None] * UNIT
    least = np.floor(wanted).astype(np.int64)
    missing = wholes * UNIT - least.sum(axis=2)
    place = np.argsort(np.argsort(-(wanted - least), axis=2, kind="stable"), axis=2, kind="stable")
    result: Ints = least + (place < missing[:, :, None])
    if not np.array_equal(result.sum(axis=2), wholes * UNIT):
        raise ValueError("nothing is there to divide in a column that has a whole")
    return result


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
