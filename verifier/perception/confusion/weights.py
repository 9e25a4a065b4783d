"""One rate, three meanings: what is drawn at random may be an item, a track, or a drive.

| weight | the rate of a column is that of a random ... | from the drives' X of N |
|---|---|---|
| `item` | item of all drives (frame of an object) | sum X / sum N, of items |
| `track` | track (encounter), then one of its frames in the column | sum X / sum N, of summed shares and tracks |
| `drive` | drive that has items, then one of its items | mean of X / N, of items |

The matrices, and what is computed from them, are by item. The rates differ where long tracks or long drives are
harder or easier than short ones, and then none stands for another.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from verifier.base.arrays import Floats
from verifier.perception.confusion.counts import Sequences
from verifier.perception.confusion.matrices import rates

WORTH_SAYING = 0.02
"""Rates that differ by more are shown beside each other."""


@dataclass(frozen=True, eq=False)
class WeightedRates:
    """Rates by weight, each (bins, predicted, true), NaN in columns without items; `track` also where tracks are not
    known, as in column "empty"."""

    item: Floats
    track: Floats
    drive: Floats


@dataclass(frozen=True)
class RateDifference:
    """A column in which the rate of `predicted` depends on the weight; `track` is None where it is not known."""

    bin: int
    predicted: int
    true: int
    item: float
    track: float | None
    drive: float


def weighted_rates(sequences: Sequences, bins: int, labels: int) -> WeightedRates:
    """The rates of each column by each weight.

    Args:
        sequences: with one threshold; their bins are counted by `bins`.
    """
    shape = (bins, labels, labels)
    items, tracks, drives = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    sequence, at_bin, predicted, true = sequences.tally.index.T
    own = sequences.tally.counts[:, 0].astype(np.float64)
    np.add.at(items, (at_bin, predicted, true), own)
    held = np.zeros((len(sequences.names), bins, labels))
    np.add.at(held, (sequence, at_bin, true), own)
    np.add.at(drives, (at_bin, predicted, true), own / held[sequence, at_bin, true])
    if sequences.tracks is not None:
        np.add.at(tracks, tuple(sequences.tracks.index.T[1:]), sequences.tracks.shares[:, 0])
    return WeightedRates(*(rates(array) for array in (items, tracks, drives)))


def rate_differences(
    sequences: Sequences, bins: int, labels: int, more_than: float = WORTH_SAYING
) -> Sequence[RateDifference]:
    """The columns in which two weights give rates that differ by more than `more_than`, the most differing first.

    Of a column the true label is shown where its rates differ so much, else the label whose rates differ most.
    """
    by = weighted_rates(sequences, bins, labels)
    stacked = np.stack([by.item, np.where(np.isnan(by.track), by.item, by.track), by.drive])
    spread = np.nan_to_num(stacked.max(axis=0) - stacked.min(axis=0))
    differences = []
    for at_bin, true in np.argwhere(spread.max(axis=1) > more_than).tolist():
        column = spread[at_bin, :, true]
        predicted = true if column[true] > more_than else int(column.argmax())
        item, track, drive = (float(rates_by[at_bin, predicted, true]) for rates_by in (by.item, by.track, by.drive))
        shown = None if np.isnan(track) else track
        difference = RateDifference(at_bin, predicted, true, item, shown, drive)
        differences.append((float(column[predicted]), difference))
    return [difference for _, difference in sorted(differences, key=lambda entry: -entry[0])]
