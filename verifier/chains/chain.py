"""Markov chains with labels: checked when made, never repaired.

A `MarkovChain` that exists is stochastic: every row is positive and sums to 1 within `rows.ROW_SUM_TOLERANCE`
(exactly, when its probabilities are fractions). The one exception is named: a chain whose probabilities were
rounded on purpose states the largest row defect that the rounding may cause in `rounding_defect`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from verifier.base.libraries import library
from verifier.chains.rows import check_rows, check_states


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
        check_rows(
            self.state_count, self.indptr, self.indices, self.probabilities, self.fractions, self.rounding_defect
        )
        check_states(self.state_count, self.initial, self.labels, self.valuations)

    @property
    def state_count(self) -> int:
        """Number of states, n."""
        return len(self.indptr) - 1

    @property
    def transition_count(self) -> int:
        """Number of transitions, nnz."""
        return len(self.indices)

    def graph(self) -> Any:
        """The chain as a `networkx.DiGraph`, for the searches and pictures of that library.

        States are numbered from 0; a node has the values of the variables, its labels (`labels`) and whether it is
        asked about (`initial`), an edge its `probability`. Memory grows by about a kilobyte per state.

        Raises:
            UsageError: networkx is not installed.
        """
        networkx = library("networkx")
        matrix = csr_array((self.probabilities, self.indices, self.indptr), shape=(self.state_count,) * 2)
        graph = networkx.from_scipy_sparse_array(matrix, create_using=networkx.DiGraph, edge_attribute="probability")
        named: list[list[str]] = [[] for _ in range(self.state_count)]
        for name, holds in self.labels.items():
            for state in np.flatnonzero(holds).tolist():
                named[state].append(name)
        networkx.set_node_attributes(graph, dict(enumerate(named)), "labels")
        asked = np.isin(np.arange(self.state_count), self.initial)
        networkx.set_node_attributes(graph, dict(enumerate(asked.tolist())), "initial")
        for name, values in self.valuations.items():
            networkx.set_node_attributes(graph, dict(enumerate(values.tolist())), name)
        return graph
