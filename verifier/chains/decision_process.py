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

from verifier.chains.rows import are_row_starts, check_rows, check_states


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
        remark: what its choices stand for, for readers of an export; no line breaks.

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
    remark: str = ""

    def __post_init__(self) -> None:
        if not are_row_starts(self.choice_starts, self.choice_count):
            raise ValueError("choice starts must begin at 0, end at the number of choices, and leave no state empty")
        check_rows(self.state_count, self.indptr, self.indices, self.probabilities, self.fractions)
        check_states(self.state_count, self.initial, self.labels, self.valuations)

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
