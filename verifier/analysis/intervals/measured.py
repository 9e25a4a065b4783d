"""Which numbers of a confusion document are measured, and which are assumptions.

A statistical statement about a matrix column is about its items. Three kinds of columns have none of their own:

* a column without items, whose rates come from a policy (`EMPTY_COLUMN_POLICIES`). The policy gives the point that
  is checked; no interval may lean on it, so such a column has no items here.
* a context in which misses may persist no longer: there the report is right, by the assumption that is named.
* column "empty" of matrices that were made without unmatched detections. That nothing is reported there is a
  convention of the counting, not a measurement: it is held fixed, and the result says so.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from verifier.perception.confusion import EMPTY, ConfusionMatrices, rates
from verifier.perception.confusion.data_set import annotation_error, looks_at


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
