"""Markov decision processes with labels: checked when made, never repaired.

Where a `MarkovChain` has one distribution per state, a `DecisionProcess` has one or more *choices* per state,
each with its distribution (Baier & Katoen, Principles of Model Checking, definition 10.81, with the actions
left anonymous). The transitions are stored as those of a chain, with choices in the place of states as rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from verifier.chains.chain import ROW_SUM_TOLERANCE


@dataclass(frozen=True, eq=False)
class DecisionProcess:
    """A discrete-time Markov decision process with n states, c choices and nnz transitions.

    Attributes:
        choice_starts: (n + 1,) int64, the choices of state s are choice_starts[s] .. choice_starts[s + 1] - 1;
            every state has at least one.
        indptr: (c + 1,) int64, row starts, one row per choice.
        indices: (nnz,) int64, successor of each transition; strictly increasing within a row.
        probabilities: (nnz,) float64, all > 0; every row sums to 1 within `ROW_SUM_TOLERANCE`.
        labels: name -> (n,) bool mask. Names are free text.
        initial: (m,) int64 indices of the states asked about, strictly increasing.
        fractions: (nnz,) the same probabilities as exact fractions, or None.
        valuations: variable name -> (n,) int64, the meaning of each state; may be empty.

    Raises:
        ValueError: if any of this does not hold. It is an error of the program, not of the user's input.
    """

    choice_starts: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    labels: dict[str, NDArray[np.bool_]]
    initial: NDArray[np.int64]
    fractions: tuple[Fraction, ...] | None = None
    valuations: dict[str, NDArray[np.int64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n, choices, nnz = self.state_count, self.choice_count, len(self.indices)
        if n < 1 or not _are_row_starts(self.choice_starts, choices):
            raise ValueError("choice starts must begin at 0, end at the number of choices, and leave no state empty")
        if not _are_row_starts(self.indptr, nnz):
            raise ValueError("row starts must begin at 0, end at the number of transitions, and leave no row empty")
        if nnz != len(self.probabilities) or self.indices.min() < 0 or self.indices.max() >= n:
            raise ValueError("every transition needs one probability and a successor that is a state")
        within_row = np.ones(nnz - 1, dtype=bool)
        within_row[self.indptr[1:-1] - 1] = False
        if np.any(np.diff(self.indices)[within_row] <= 0):
            raise ValueError("successors must increase strictly within a row")
        initial = self.initial
        if len(initial) == 0 or initial.min() < 0 or initial.max() >= n or np.any(np.diff(initial) <= 0):
            raise ValueError("initial states must be states in strictly increasing order, and there must be one")
        if any(mask.shape != (n,) or mask.dtype != np.bool_ for mask in self.labels.values()):
            raise ValueError("every label needs one truth value per state")
        if any(column.shape != (n,) or column.dtype != np.int64 for column in self.valuations.values()):
            raise ValueError("every state variable needs one integer per state")
        self._check_rows()

    def _check_rows(self) -> None:
        if not np.all(self.probabilities > 0):  # false for NaN as well
            raise ValueError("every transition needs a probability above 0")
        defect = np.abs(np.add.reduceat(self.probabilities, self.indptr[:-1]) - 1)
        if not defect.max() <= ROW_SUM_TOLERANCE:
            row = int(defect.argmax())
            raise ValueError(f"choice {row} does not sum to 1: it is off by {defect[row]}")
        if self.fractions is None:
            return
        if len(self.fractions) != len(self.indices):
            raise ValueError("every transition needs one fraction")
        for row in range(self.choice_count):
            if sum(self.fractions[self.indptr[row] : self.indptr[row + 1]]) != 1:
                raise ValueError(f"choice {row} does not sum to exactly 1")

    @property
    def state_count(self) -> int:
        """Number of states, n."""
        return len(self.choice_starts) - 1

    @property
    def choice_count(self) -> int:
        """Number of choices, c; at least n."""
        return len(self.indptr) - 1

    @property
    def transition_count(self) -> int:
        """Number of transitions, nnz."""
        return len(self.indices)


def _are_row_starts(starts: NDArray[np.int64], end: int) -> bool:
    """Whether `starts` splits 0 .. end - 1 into consecutive rows, none of them empty."""
    return bool(starts[0] == 0 and starts[-1] == end and np.all(np.diff(starts) >= 1))
