"""In which bins reports of objects are: their own, or those that the localisation of the matrices gives."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError
from verifier.perception.confusion import ConfusionMatrices


@dataclass(frozen=True)
class Located:
    """In which bin what a draw reports is reported, where that may be another than the true one.

    Attributes:
        told: (reported, rows, draws, labels) int64, as that of a channel for each reported bin.
        counts: (reported, rows, draws) int64, how often a report is in that bin.
    """

    told: NDArray[np.int64]
    counts: NDArray[np.int64]

    def shares(self, kind: np.dtype[Any]) -> NDArray[Any]:
        """(reported, rows, draws) probability of each reported bin, as fractions where `kind` is that of objects."""
        totals = self.counts.sum(axis=0)
        if kind.kind != "O":
            return np.asarray(self.counts / totals)
        fraction = np.frompyfunc(lambda count, total: Fraction(int(count), int(total)), 2, 1)
        return np.asarray(fraction(self.counts, totals))


def located_in(
    matrices: ConfusionMatrices, bins: NDArray[np.int64], of_objects: NDArray[np.bool_], of_bins: NDArray[np.int64]
) -> Located:
    """Reports of objects in the bins that the localisation gives, all others in their own.

    `of_bins` is (reported, draws, labels), as which report a label is told in each distance bin.
    """
    counts = matrices.localisation
    assert counts is not None
    distances = matrices.distance_bin(bins)
    for index in np.unique(bins[of_objects]).tolist():
        if not counts[:, matrices.distance_bin(index)].sum():
            where = matrices.bin_text(index)
            hint = "count reported distances of objects there, or leave the localisation out"
            raise InputError(f"the localisation has no items for objects in {where}", hint=hint)
    own = np.arange(len(counts))[:, None, None] == distances
    told = np.broadcast_to(of_bins[:, None], (len(counts), *bins.shape, of_bins.shape[-1]))
    return Located(told, np.where(of_objects, counts[:, distances], own))
