"""Markov chains and decision processes with labels: checked when made, never repaired.

A `MarkovChain` that exists is stochastic: every row is positive and sums to 1 within `ROW_SUM_TOLERANCE`
(exactly, when its probabilities are fractions). The one exception is named: a chain whose probabilities were
rounded on purpose states the largest row defect that the rounding may cause in `rounding_defect`.

Where a `MarkovChain` has one distribution per state, a `DecisionProcess` has one or more *choices* per state,
each with its distribution (Baier & Katoen, Principles of Model Checking, definition 10.81, with the actions
left anonymous). The transitions are stored as those of a chain, with choices in the place of states as rows.

From a skeleton and a matrix to a Markov chain.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from verifier.base.arrays import Ints, rows_of
from verifier.base.errors import InputError, UsageError
from verifier.base.libraries import library
from verifier.perception.confusion import ConfusionMatrices, exact_rates, rates
from verifier.perception.confusion.matrices import label_text
from verifier.systems.skeleton import Skeleton
from verifier.systems.strategies import StrategySkeleton

ROW_SUM_TOLERANCE = 1e-12
"""Largest distance of a row sum from 1 that summing doubles explains for rows of at most some hundred entries."""


def are_row_starts(starts: Ints, end: int) -> bool:
    """Whether `starts` splits 0 .. end - 1 into consecutive rows, none of them empty."""
    return bool(starts[0] == 0 and starts[-1] == end and np.all(np.diff(starts) >= 1))


@dataclass(frozen=True, eq=False)
class Transitions:
    """What chains and decision processes of n states share: nnz transitions in compressed sparse rows.

    Attributes:
        indptr: (rows + 1,) int64, row starts: one row for each state of a chain, for each choice of a process.
        indices: (nnz,) int64, successor of each transition; strictly increasing within a row.
        probabilities: (nnz,) float64, all > 0; every row sums to 1 within `ROW_SUM_TOLERANCE`.
        labels: name -> (n,) bool mask. Names are free text.
        initial: (m,) int64 indices of the states asked about, strictly increasing.
        fractions: (nnz,) the same probabilities as exact fractions, every row of which sums to exactly 1; or None.
        valuations: variable name -> (n,) int64, the meaning of each state; may be empty.
        remark: what its steps or choices stand for, for readers of an export; no line breaks.

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
    remark: str = ""

    def __post_init__(self) -> None:
        self._check()

    def _check(self, rounding_defect: float = 0.0) -> None:
        """Refuse rows that are no distributions over the states, and what does not fit these."""
        n, nnz, initial = self.state_count, self.transition_count, self.initial
        indptr, indices, probabilities = self.indptr, self.indices, self.probabilities
        if n < 1 or not are_row_starts(indptr, nnz):
            raise ValueError("row starts must begin at 0, end at the number of transitions, and leave no row empty")
        if nnz != len(probabilities) or indices.min() < 0 or indices.max() >= n:
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
        if self.fractions is not None:
            self._check_fractions(self.fractions, rounding_defect)
        if len(initial) == 0 or initial.min() < 0 or initial.max() >= n or np.any(np.diff(initial) <= 0):
            raise ValueError("initial states must be states in strictly increasing order, and there must be one")
        if any(mask.shape != (n,) or mask.dtype != np.bool_ for mask in self.labels.values()):
            raise ValueError("every label needs one truth value per state")
        if any(column.shape != (n,) or column.dtype != np.int64 for column in self.valuations.values()):
            raise ValueError("every state variable needs one integer per state")

    def _check_fractions(self, fractions: tuple[Fraction, ...], rounding_defect: float) -> None:
        if len(fractions) != self.transition_count:
            raise ValueError("every transition needs one fraction")
        for row, (low, high) in enumerate(itertools.pairwise(self.indptr.tolist())):
            if rounding_defect == 0 and sum(fractions[low:high]) != 1:
                raise ValueError(f"row {row} does not sum to exactly 1")

    @property
    def state_count(self) -> int:
        """Number of states, n."""
        return len(self.indptr) - 1

    @property
    def transition_count(self) -> int:
        """Number of transitions, nnz."""
        return len(self.indices)


@dataclass(frozen=True, eq=False)
class MarkovChain(Transitions):
    """A discrete-time Markov chain.

    Attributes:
        rounding_defect: largest |row sum - 1| that deliberate rounding may have caused; 0 for a true chain.
    """

    rounding_defect: float = 0.0

    def __post_init__(self) -> None:
        self._check(self.rounding_defect)

    def __repr__(self) -> str:
        return f"<MarkovChain: {self.state_count} states, {self.transition_count} transitions>"

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


@dataclass(frozen=True, eq=False)
class DecisionProcess(Transitions):
    """A discrete-time Markov decision process with n states, c choices and nnz transitions.

    Attributes:
        choice_starts: (n + 1,) int64, the choices of state s are choice_starts[s] .. choice_starts[s + 1] - 1;
            every state has at least one.
    """

    choice_starts: NDArray[np.int64] = field(kw_only=True)

    def __post_init__(self) -> None:
        if not are_row_starts(self.choice_starts, self.choice_count):
            raise ValueError("choice starts must begin at 0, end at the number of choices, and leave no state empty")
        self._check()

    @property
    def state_count(self) -> int:
        """Number of states, n."""
        return len(self.choice_starts) - 1

    @property
    def choice_count(self) -> int:
        """Number of choices, c; at least n."""
        return len(self.indptr) - 1


LARGEST_DECIMALS = 15


def filled_counts(skeleton: Skeleton, matrices: ConfusionMatrices, empty_columns: str) -> NDArray[np.int64]:
    """Counts for `Skeleton.fill`, every column the chain draws from having items.

    Args:
        skeleton: built for matrices with these bins and labels.
        empty_columns: a policy of `EMPTY_COLUMN_POLICIES`.

    Raises:
        InputError: under the policy "error", a column that the chain needs has no items.
    """
    counts, _ = matrices.without_empty_columns(empty_columns)
    used = skeleton.columns_needed()
    missing = [_column_text(matrices, at, column) for at, column in used.tolist() if not counts[at, :, column].any()]
    if missing:
        named = ", ".join(missing[:5])
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        which = "--empty-columns prior, neighbour, pool or miss"
        if matrices.memory is not None and matrices.memory.policy == "error":  # else columns alone may lack items
            which = "--empty-contexts backoff, pool or prior (of whole columns: --empty-columns)"
        raise InputError(
            f"no items with {named}{more}, and the chain for environment '{skeleton.environment}' needs their rates",
            hint=f"collect data, or name what to assume: {which}",
        )
    return counts


FROM = ", from "
"""Before what the rates of a context without items come from."""


def assumed_columns(skeleton: Skeleton, matrices: ConfusionMatrices) -> list[str]:
    """Descriptions of the matrix columns that the chain depends on although they have no items."""
    _, filled = matrices.without_empty_columns("error")
    used = skeleton.columns_needed()
    pairs = used[filled[used[:, 0], used[:, 1]]].tolist()
    sources = [matrices.filled_from(*pair) for pair in pairs]
    return [
        _column_text(matrices, *pair) + (FROM + source if source else "")
        for pair, source in zip(pairs, sources, strict=True)
    ]


def _column_text(matrices: ConfusionMatrices, index: int, column: int) -> str:
    return f"true label {label_text(matrices.labels[column])} in bin {matrices.bin_text(index)}"


def markov_chain(
    skeleton: Skeleton,
    counts: NDArray[np.int64],
    labels: Mapping[str, NDArray[np.bool_]],
    *,
    exact: bool = False,
    decimals: int | None = None,
) -> MarkovChain:
    """The chain of a skeleton and one family of matrices.

    Transitions of probability 0 are left out: whether an edge exists decides graph questions.

    Args:
        skeleton: the structure.
        counts: (bins, predicted, true) from `filled_counts`.
        labels: name -> (n,) mask.
        exact: also keep the probabilities as exact fractions.
        decimals: round every transition probability to so many decimals, as the archive of the published
            numbers did by writing the chain as text; rows then need not sum to 1.
    """
    entries = skeleton.entry_values(rates(counts))
    fractions: list[Fraction] | None = None
    if exact or decimals is not None:
        fractions = [Fraction(entry_value) for entry_value in skeleton.entry_values(exact_rates(counts))]
    if decimals is not None and fractions is not None:
        if not 1 <= decimals <= LARGEST_DECIMALS:
            raise UsageError(f"expected 1 to {LARGEST_DECIMALS} decimals to round to, got {decimals}")
        fractions = [round(fraction, decimals) for fraction in fractions]
        entries = np.array([float(fraction) for fraction in fractions])
    defect = 0.0 if decimals is None else skeleton.entry_observations.shape[1] * 0.5 * 10.0**-decimals
    if np.any(np.maximum.reduceat(entries[skeleton.entry], skeleton.indptr[:-1]) == 0):
        raise UsageError(f"rounded to {decimals} decimals, every transition of some state is 0: keep more decimals")
    return chain_of_entries(skeleton, entries, labels, fractions if exact else None, defect)


def chain_of_entries(
    skeleton: Skeleton,
    entries: NDArray[np.float64],
    labels: Mapping[str, NDArray[np.bool_]],
    fractions: Sequence[Fraction] | None = None,
    defect: float = 0.0,
) -> MarkovChain:
    """The chain with the probabilities of these (entries,) values, and with their fractions where there are some."""
    return MarkovChain(**_filled(skeleton, entries, labels, fractions), rounding_defect=defect)


def _filled(
    skeleton: Skeleton,
    entries: NDArray[np.float64],
    labels: Mapping[str, NDArray[np.bool_]],
    fractions: Sequence[Fraction] | None,
) -> dict[str, Any]:
    """What a chain or process of these values is made of, its rows those of the skeleton."""
    kept = (entries > 0)[skeleton.entry]
    lengths = np.bincount(rows_of(skeleton.indptr)[kept], minlength=len(skeleton.indptr) - 1)
    entry = skeleton.entry[kept]
    return {
        "indptr": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        "indices": skeleton.indices[kept],
        "probabilities": entries[entry],
        "labels": dict(labels),
        "initial": skeleton.starts,
        "fractions": None if fractions is None else tuple(fractions[place] for place in entry),
        "valuations": valuations_of(skeleton),
    }


def valuations_of(skeleton: Skeleton) -> dict[str, NDArray[np.int64]]:
    """What each state means; with the run the planner follows, where there is more than one."""
    valuations = dict(skeleton.valuations)
    if skeleton.memory.any():
        name = "run"
        while name in valuations:
            name += "_"
        valuations[name] = skeleton.memory
    return valuations


def decision_process(
    strategies: StrategySkeleton,
    counts: NDArray[np.int64],
    labels: Mapping[str, NDArray[np.bool_]],
    *,
    exact: bool = False,
) -> DecisionProcess:
    """The decision process of all winning strategies, or of a world that decides, for one family of matrices;
    arguments as `markov_chain`."""
    choices = strategies.choices
    fractions = list(map(Fraction, choices.entry_values(exact_rates(counts)))) if exact else None
    filled = _filled(choices, choices.entry_values(rates(counts)), labels, fractions)
    return DecisionProcess(choice_starts=strategies.choice_starts, **filled)
