"""What chains and decision processes have in common: rows of transitions over states, checked when made."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Ints

ROW_SUM_TOLERANCE = 1e-12
"""Largest distance of a row sum from 1 that summing doubles explains for rows of at most some hundred entries."""


def are_row_starts(starts: Ints, end: int) -> bool:
    """Whether `starts` splits 0 .. end - 1 into consecutive rows, none of them empty."""
    return bool(starts[0] == 0 and starts[-1] == end and np.all(np.diff(starts) >= 1))


def check_rows(
    state_count: int,
    indptr: Ints,
    indices: Ints,
    probabilities: NDArray[np.float64],
    fractions: tuple[Fraction, ...] | None,
    rounding_defect: float = 0.0,
) -> None:
    """Refuse rows that are no distributions over the states.

    Args:
        state_count: number of states, n.
        indptr: (rows + 1,) row starts.
        indices: (nnz,) successors, strictly increasing within a row.
        probabilities: (nnz,) all above 0, each row summing to 1 within `ROW_SUM_TOLERANCE`.
        fractions: (nnz,) the same as exact fractions, each row summing to exactly 1; or None.
        rounding_defect: how far deliberate rounding may have moved a row sum.

    Raises:
        ValueError: if any of this does not hold.
    """
    nnz = len(indices)
    if state_count < 1 or not are_row_starts(indptr, nnz):
        raise ValueError("row starts must begin at 0, end at the number of transitions, and leave no row empty")
    if nnz != len(probabilities) or indices.min() < 0 or indices.max() >= state_count:
        raise ValueError("every transition needs one probability and a successor that is a state")
    within_row = np.ones(nnz - 1, dtype=bool)
    within_row[indptr[1:-1] - 1] = False
    if np.any(np.diff(indices)[within_row] <= 0):
        raise ValueError("successors must increase strictly within a row")
    if not np.all(probabilities > 0):  # false for NaN as well
        raise ValueError("every transition needs a probability above 0")
    defect = np.abs(np.add.reduceat(probabilities, indptr[:-1]) - 1)
    if not defect.max() <= rounding_defect + ROW_SUM_TOLERANCE:
        row = int(defect.argmax())
        raise ValueError(f"row {row} does not sum to 1: it is off by {defect[row]}")
    if fractions is None:
        return
    if len(fractions) != nnz:
        raise ValueError("every transition needs one fraction")
    for row in range(len(indptr) - 1):
        if rounding_defect == 0 and sum(fractions[indptr[row] : indptr[row + 1]]) != 1:
            raise ValueError(f"row {row} does not sum to exactly 1")


def check_states(
    state_count: int, initial: Ints, labels: Mapping[str, NDArray[np.bool_]], valuations: Mapping[str, NDArray[Any]]
) -> None:
    """Refuse initial states, labels or valuations that do not fit the states; ValueError."""
    if len(initial) == 0 or initial.min() < 0 or initial.max() >= state_count or np.any(np.diff(initial) <= 0):
        raise ValueError("initial states must be states in strictly increasing order, and there must be one")
    if any(mask.shape != (state_count,) or mask.dtype != np.bool_ for mask in labels.values()):
        raise ValueError("every label needs one truth value per state")
    if any(column.shape != (state_count,) or column.dtype != np.int64 for column in valuations.values()):
        raise ValueError("every state variable needs one integer per state")
