"""Recall as something to choose: which cells it sits in, and the matrices in which it has other values.

The *recall* of a true label in a distance bin is the rate of that very label in its column: for class-labelled
matrices how often an object of the class is reported as itself, for proposition-labelled ones how often exactly the
set of classes that is there is reported.

Changing a recall leaves open what becomes of the rest of the column. Here the rest keeps its proportions: the rates
of all other labels are multiplied by the same number. Where a column has no rest (recall 1), what is taken from the
recall is missed, that is, reported as "empty".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.objective import Objective
from verifier.analysis.robust.optimum import Optimum
from verifier.analysis.sensitivity.adjoint import state_values
from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.errors import LimitError
from verifier.perception.confusion.matrices import LARGEST_COUNT

SAME_VALUE = 1e-12
"""Values of successors that differ by no more are taken to be equal."""


@dataclass(frozen=True, eq=False)
class RecallCells:
    """Cells on the diagonals of the matrices whose recall is asked about.

    Attributes:
        bins: (k,) int64 distance bin of each.
        columns: (k,) int64 true label of each, which is also the predicted one; never the empty label.
        empty: number of the empty label.
    """

    bins: Ints
    columns: Ints
    empty: int

    def __post_init__(self) -> None:
        pairs = set(zip(self.bins.tolist(), self.columns.tolist(), strict=True))
        if not pairs or len(pairs) < len(self.bins) or np.any(self.columns == self.empty):
            raise ValueError("expected different cells, at least one, none of them of the empty label")

    @property
    def count(self) -> int:
        """Number of cells, k."""
        return len(self.bins)

    def of(self, matrices: NDArray[np.generic]) -> NDArray[np.generic]:
        """(..., k) the cells of (..., bins, predicted, true) matrices."""
        return matrices[..., self.bins, self.columns, self.columns]


def relevant_columns(objective: Objective, rates: Floats) -> Ints:
    """(k, 2) the (bin, true label) pairs whose rates make a difference to the probability, in increasing order.

    A column that the chain draws from may still make none: where the formula is decided, or where what is reported
    changes nothing for it. A draw counts

    * where the states that it may lead to differ in value, for the given matrices, perfect ones, or matrices at
      random without a zero, in which values are equal by accident with probability 0;
    * in a bottom component, or an end component where the world decides, where a rate of 0 may change what is visited
      forever: if the probability changes when the column always reports one label.

    Where the world decides, a draw counts whatever it chooses: with other matrices it may choose otherwise.

    Args:
        objective: formula and skeleton.
        rates: (bins, predicted, true), NaN in columns that no chain needs.
    """
    bins, size, _ = rates.shape
    channel = objective.skeleton.channel
    drawn = np.random.default_rng(0).gamma(1.0, size=rates.shape)
    inside = drawn / drawn.sum(axis=1, keepdims=True)
    drawing = np.flatnonzero(objective.row >= 0)
    counts: list[Ints] = []
    forever: list[Ints] = []
    for array in (rates, np.broadcast_to(np.eye(size), rates.shape), inside):
        value, recurrent = _values(objective, array)
        after = objective.mean_behind(value, drawing)
        counts.append(drawing[after.max(axis=1) - after.min(axis=1) > SAME_VALUE])
        forever.append(drawing[recurrent[objective.owner[drawing]]])
    relevant, visited = np.zeros((2, bins, size), dtype=bool)
    relevant[tuple(channel.columns_used(np.unique(objective.row[np.concatenate(counts)])).T)] = True
    visited[tuple(channel.columns_used(np.unique(objective.row[np.concatenate(forever)])).T)] = True
    for at, column in np.argwhere(visited & ~relevant).tolist():
        sure = np.repeat(inside[None], size + 1, axis=0)
        sure[1:, at, :, column] = np.eye(size)
        value = objective.probabilities(sure).probability
        relevant[at, column] |= bool(np.ptp(value, axis=0).max() > SAME_VALUE)
    return np.argwhere(relevant)


def _values(objective: Objective, rates: Floats) -> tuple[Floats, Mask]:
    """(p,) what each product state is worth, and whether a run may stay there."""
    if isinstance(objective, Optimum):
        return objective.worth(rates)
    values = state_values(objective, rates)
    return values.value, values.recurrent


def with_recall(rates: Floats, cells: RecallCells, recall: Floats) -> Floats:
    """Matrices in which the cells have other values.

    Args:
        rates: (bins, predicted, true).
        recall: (M, k) in [0, 1].

    Returns:
        (M, bins, predicted, true); columns without a chosen cell are as in `rates`.
    """
    recall = np.atleast_2d(recall)
    columns = (1 - recall)[:, :, None] * rest_of(rates, cells)
    columns[:, np.arange(cells.count), cells.columns] = recall
    result = np.repeat(rates[None], len(recall), axis=0)
    result[:, cells.bins, :, cells.columns] = columns.swapaxes(0, 1)
    return result


def rest_of(rates: Floats, cells: RecallCells) -> Floats:
    """(k, predicted) how what is not the recall of each cell is spread over the other labels."""
    rest = rates[cells.bins, :, cells.columns]
    rest[np.arange(cells.count), cells.columns] = 0
    rest[np.all(rest == 0, axis=1), cells.empty] = 1
    return np.asarray(rest / rest.sum(axis=1, keepdims=True))


def counts_with_recall(counts: Ints, cells: RecallCells, recall: Sequence[int], whole: int) -> Ints:
    """Counts whose exact rates are those of `with_recall`.

    Args:
        counts: (bins, predicted, true) with items in the columns of the cells.
        recall: for each cell its recall in parts of `whole`.
        whole: what stands for a recall of 1.

    Raises:
        LimitError: the counts would not be exact in a double.
    """
    result = counts.copy()
    for at, column, part in zip(cells.bins.tolist(), cells.columns.tolist(), recall, strict=True):
        rest = [int(count) for count in counts[at, :, column]]
        rest[column] = 0
        if sum(rest) == 0:
            rest[cells.empty] = 1
        scaled = [number * (whole - part) for number in rest]
        scaled[column] = sum(rest) * part
        divisor = math.gcd(*scaled)
        scaled = [number // divisor for number in scaled]
        if sum(scaled) > LARGEST_COUNT:
            raise LimitError(
                f"a matrix column of recall {part}/{whole} needs {sum(scaled)} items to be exact; at most 2**53 fit",
                hint="ask for fewer decimals",
            )
        result[at, :, column] = scaled
    return result
