"""What a detector reports for an obstacle at a true distance: a channel with a distance in place of a class.

The true distances are put in bins, and the pairs (D_i, D^_i) of a bin are what can be reported for an obstacle in it,
each with the same probability; objects of the bin without a report stand for "no report". So P(report | true bin) is
a matrix whose rows sum to 1, given by whole numbers: *hits* of *items*. Nothing is rounded to bins on the reported
side: a planner asks whether the report is at most some distance, and the pairs are counted that say so.

The report is the obstacle's true distance plus the pair's error D^_i - D_i: the bin says which errors occur.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from verifier.base.arrays import Floats, Ints
from verifier.base.errors import InputError, LimitError, UsageError
from verifier.collision.pairs_reader import ReadPairs
from verifier.collision.settings import EmptyBins

MOST_BINS = 100_000


@dataclass(frozen=True)
class ChannelSettings:
    """How pairs become a channel.

    Attributes:
        bin_m: width of the bins of the true distance.
        empty_bins: a bin without items is an `error`; or has the items of the nearest bin with any (`neighbour`, of
            two the nearer to the ego).

    Raises:
        UsageError: a width that is not positive.
    """

    bin_m: float = 2.0
    empty_bins: EmptyBins = "error"

    def __post_init__(self) -> None:
        if not 0 < self.bin_m < np.inf:
            raise UsageError(f"the width of the bins must be positive, got {self.bin_m:g} m")

    def bin_of(self, distance_m: Floats) -> Ints:
        """The bin of each distance; [lower, upper) by the multiples of the width."""
        return np.floor(distance_m / self.bin_m).astype(np.int64)

    def bins_text(self, bins: Sequence[int]) -> str:
        """The first of some bins, and how many more there are."""
        first = ", ".join(f"[{number * self.bin_m:g}, {(number + 1) * self.bin_m:g}) m" for number in bins[:4])
        return first + (f" and {len(bins) - 4} more" if len(bins) > 4 else "")


@dataclass(frozen=True, eq=False)
class DistanceChannel:
    """P(report | true bin), as counted.

    Attributes:
        rows: per bin the pairs that can be reported, (n_b,), by rising error.
        errors_m: per bin their errors, (n_b,) metres.
        items: (bins,) number of pairs and objects without a report, n_b and the missed ones; from 1.
        source: (bins,) the bin whose items these are: another one where a bin is empty.
    """

    settings: ChannelSettings
    rows: tuple[Ints, ...]
    errors_m: tuple[Floats, ...]
    items: Ints
    source: Ints

    def at_most(self, distance_m: Floats, limit_m: float) -> tuple[Ints, Ints]:
        """How many items report at most a distance, for an obstacle at each of some distances.

        Args:
            distance_m: (c,) true distances.
            limit_m: of the reported distance.

        Returns:
            hits (c,) and items (c,); hits / items is the probability.
        """
        index = self.settings.bin_of(distance_m)
        hits = np.empty(len(distance_m), dtype=np.int64)
        for number in np.unique(index).tolist():
            rows = np.flatnonzero(index == number)
            hits[rows] = np.searchsorted(self.errors_m[number], limit_m - distance_m[rows], side="right")
        return hits, self.items[index]


def distance_channel(read: ReadPairs, reach_m: float, settings: ChannelSettings) -> DistanceChannel:
    """The channel of a detector for true distances from 0 up to and including `reach_m`.

    Raises:
        InputError: under the policy "error", a bin up to `reach_m` has no item.
        LimitError: more bins than `MOST_BINS`.
    """
    count = int(np.floor(reach_m / settings.bin_m)) + 1
    if count > MOST_BINS:
        raise LimitError(
            f"bins of {settings.bin_m:g} m up to {reach_m:g} m are {count}; at most {MOST_BINS} are made"
        )
    pairs = read.pairs
    index = settings.bin_of(pairs.true_m)
    error_m = pairs.predicted_m - pairs.true_m
    order = np.lexsort((error_m, index))
    edges = np.searchsorted(index[order], np.arange(count + 1))
    own = [order[low:high] for low, high in pairwise(edges.tolist())]
    lost = settings.bin_of(read.missed_m)
    items = np.diff(edges).astype(np.int64) + np.bincount(lost[lost < count], minlength=count)
    source = _sources(items, settings, read.name)
    rows = tuple(own[place] for place in source.tolist())
    return DistanceChannel(settings, rows, tuple(error_m[row] for row in rows), items[source], source)


def _sources(items: Ints, settings: ChannelSettings, name: str) -> Ints:
    """(bins,) the bin whose items each bin has."""
    filled = np.flatnonzero(items > 0)
    empty = np.flatnonzero(items == 0)
    source = np.arange(len(items), dtype=np.int64)
    if not len(empty):
        return source
    if settings.empty_bins == "error" or not len(filled):
        raise InputError(
            f"{name}no object in the bins {settings.bins_text(empty.tolist())} of the true distance, which the "
            "vehicle drives through",
            hint="use wider bins (--bin), or name what to assume there (--empty-bins neighbour)",
        )
    after = np.minimum(np.searchsorted(filled, empty), len(filled) - 1)
    before = np.maximum(after - 1, 0)
    nearer = np.abs(filled[before] - empty) <= np.abs(filled[after] - empty)
    source[empty] = np.where(nearer, filled[before], filled[after])
    return source
