"""Markov chains with labels: checked when made, never repaired.

A `MarkovChain` that exists is stochastic: every row is non-negative and sums to 1 within `ROW_SUM_TOLERANCE`
(exactly, when its probabilities are fractions). The one exception is named: a chain whose probabilities were
rounded on purpose states the largest row defect that the rounding may cause in `rounding_defect`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

ROW_SUM_TOLERANCE = 1e-12
"""Largest distance of a row sum from 1 that summing doubles explains for rows of at most some hundred entries."""


@dataclass(frozen=True)
class MarkovChain:
    """A discrete-time Markov chain in compressed sparse rows.

    Attributes:
        indptr: (n + 1,) int64, row starts.
        indices: (nnz,) int64, successor of each transition; strictly increasing within a row.
        probabilities: (nnz,) float64, all > 0 and at most 1.
        labels: name -> (n,) bool mask. Names are free text.
        initial: (m,) int64 indices of the states asked about, increasing.
        fractions: (nnz,) the same probabilities as exact fractions, or None.
        valuations: variable name -> (n,) int64, the meaning of each state; may be empty.
        rounding_defect: largest |row sum - 1| that deliberate rounding may have caused; 0 for a true chain.

    Raises:
        ValueError: if any of this does not hold. It is an error of the program, not of the user's input.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    labels: dict[str, NDArray[np.bool_]]
    initial: NDArray[np.int64]
    fractions: tuple[Fraction, ...] | None = None
    valuations: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    rounding_defect: float = 0.0

    def __post_init__(self) -> None:
        n, nnz = self.state_count, len(self.indices)
        if n < 1 or self.indptr[0] != 0 or self.indptr[-1] != nnz or np.any(np.diff(self.indptr) < 1):
            raise ValueError("row starts must begin at 0, end at the number of transitions and leave no row empty")
        if nnz != len(self.probabilities) or self.indices.min() < 0 or self.indices.max() >= n:
            raise ValueError("every transition needs one probability and a successor that is a state")
        within_row = np.ones(nnz - 1, dtype=bool)
        within_row[self.indptr[1:-1] - 1] = False
        if np.any(np.diff(self.indices)[within_row] <= 0):
            raise ValueError("successors must increase strictly within a row")
        if len(self.initial) == 0 or self.initial.min() < 0 or self.initial.max() >= n:
            raise ValueError("initial states must be states, and there must be one")
        if any(mask.shape != (n,) or mask.dtype != np.bool_ for mask in self.labels.values()):
            raise ValueError("every label needs one truth value per state")
        self._check_rows()

    def _check_rows(self) -> None:
        if not np.all(self.probabilities > 0):  # false for NaN as well
            raise ValueError("every transition needs a probability above 0")
        defect = np.abs(np.add.reduceat(self.probabilities, self.indptr[:-1]) - 1)
        if not defect.max() <= self.rounding_defect + ROW_SUM_TOLERANCE:
            row = int(defect.argmax())
            raise ValueError(f"row {row} sums to 1 {'+-'} {defect[row]}: not a Markov chain")
        if self.fractions is not None and self.rounding_defect == 0:
            for row in range(self.state_count):
                if sum(self.fractions[self.indptr[row] : self.indptr[row + 1]]) != 1:
                    raise ValueError(f"row {row} does not sum to exactly 1")

    @property
    def state_count(self) -> int:
        """Number of states, n."""
        return len(self.indptr) - 1

    @property
    def transition_count(self) -> int:
        """Number of transitions, nnz."""
        return len(self.indices)
