"""The batch engine: the probability of an LTL formula, or what is gained until it holds, for many Markov chains.

All have one graph.

    product = build_product(chain.indptr, chain.indices, chain.labels, formula, chain.initial)
    result = satisfaction_probabilities(product, values)      # values: one row of probabilities per chain

The product of the graph with the formula is built once (`product`). For each set of transitions with positive
probability, states that satisfy the formula surely or never are found on the graph (`plan`, `recurrence`); the
others are solved for all chains side by side (`linear`). Nothing is shared with any other model checker.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from verifier.base.arrays import ROUNDOFF, Ints, marked
from verifier.base.graphs import ranges
from verifier.chains.chain import ROW_SUM_TOLERANCE, MarkovChain
from verifier.checking.linear import Solution, solve
from verifier.checking.plan import Decided, decide
from verifier.checking.product import Product, build_product
from verifier.language.expressions.syntax import Node

_CHUNK = 512
_SUMS_AT_ONCE = 1 << 22
_FEW_MATRICES = 16


@dataclass(frozen=True, eq=False)
class BatchResult:
    """Satisfaction probabilities; each array is (M, m) float64, chain by initial state.

    For chains whose rows sum to 1, `lower` and `upper` are `probability` -+ `error_bound`, cut to [0, 1]. For
    chains with a `rounding_defect` there is no single right value: `probability` is that of reaching acceptance,
    and `lower` and `upper` enclose it and 1 - the probability of reaching rejection. They may then exceed 1.

    Attributes:
        probability: the probabilities.
        error_bound: rigorous bound on the distance from the exact solution for the given doubles, with every row
            divided by its exact sum (see `verifier.checking.linear`).
        representation_bound: bound on the distance from there to the solution for the true probabilities, of
            which the given doubles have the stated relative error; apart from `error_bound`. Infinite with a
            `rounding_defect`, which is larger than any representation error.
        expected_steps: bound on the expected number of steps until the formula is decided.
        lower: lower end of the enclosure.
        upper: upper end of the enclosure.
    """

    probability: NDArray[np.float64]
    error_bound: NDArray[np.float64]
    representation_bound: NDArray[np.float64]
    expected_steps: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


def satisfaction_probabilities(
    product: Product,
    values: NDArray[np.float64],
    entry: Ints | None = None,
    *,
    rounding_defect: float = 0.0,
    value_error: float = ROUNDOFF,
    roughly: bool = False,
) -> BatchResult:
    """Probability of the product's formula from every initial state, for every array of transition probabilities.

    Args:
        product: graph and formula.
        values: (k,) or (M, k) float64, the probabilities of the chain's transitions; 0 removes a transition.
        entry: (nnz,) int64, which of the k probabilities each transition has, for chains in which many share one
            (`Skeleton.entry_values` and `Skeleton.entry`); None when each has its own, k = nnz.
        rounding_defect: as in `MarkovChain`; above 0, rows need not sum to 1 and nothing is normalised.
        value_error: largest relative error of each given probability.
        roughly: whether an error of 1e-8 will do, however small the probability; faster where steps are many.

    Raises:
        ValueError: if a probability is negative or no number, or a row sum misses 1.
        EngineError: from solving; see `verifier.checking.linear.solve`.
        LimitError: if deciding the recurrent part needs too large a graph.
    """
    values, entry = _fitting(product, values, entry)
    _check_stochastic(product, values, entry, rounding_defect + ROW_SUM_TOLERANCE)
    parts: list[tuple[Ints, BatchResult]] = []
    for rows, decided in _by_support(product, values, entry):
        selected = values if len(rows) == len(values) else values[rows]
        if rounding_defect > 0:
            plans = [decided.plan(accepting=goal, exact_one=False, matrices=len(rows)) for goal in (True, False)]
            accept, reject = (
                solve(plan, selected, entry, stochastic=False, value_error=value_error) for plan in plans
            )
            parts.append((rows, _bracket(accept, reject)))
        else:
            plan = decided.plan(accepting=True, exact_one=True, matrices=len(rows))
            solution = solve(plan, selected, entry, stochastic=True, value_error=value_error, roughly=roughly)
            parts.append((rows, _enclosure(solution)))
    return gathered(parts, (len(values), len(product.start)))


def gathered(parts: Iterable[tuple[Ints, BatchResult]], shape: tuple[int, int]) -> BatchResult:
    """The results of all M chains from m initial states, (M, m), from those of some rows each."""
    arrays = {field.name: np.empty(shape) for field in fields(BatchResult)}
    for rows, part in parts:
        for name, array in arrays.items():
            array[rows] = getattr(part, name)
    return BatchResult(**arrays)


def expected_gains(
    product: Product,
    values: NDArray[np.float64],
    gains: NDArray[np.float64],
    entry: Ints | None = None,
    *,
    value_error: float = ROUNDOFF,
    gain_error: float = ROUNDOFF,
    roughly: bool = False,
) -> BatchResult:
    """What is expected to be gained before the product's formula is accepted, from every initial state.

    The formula is `F condition`: a step from a state gains what it says, also the step into the first state where the
    condition holds, and nothing behind it. Where the condition may never hold the value is infinite, as in PRISM,
    whatever is gained.

    Args:
        product, values, entry, value_error, roughly: as for `satisfaction_probabilities`, of chains
            whose rows sum to 1.
        gains: (M, n) float64, at least 0, what a step gains in each of the chain's states.
        gain_error: largest relative error of each of them, `value_error` of what they are made of apart.

    Raises:
        ValueError, EngineError, LimitError: as `satisfaction_probabilities`.
    """
    values, entry = _fitting(product, values, entry)
    _check_stochastic(product, values, entry, ROW_SUM_TOLERANCE)
    if gains.shape != (len(values), len(product.chain_indptr) - 1) or not np.all(gains >= 0):
        raise ValueError("every state gains a number of at least 0 in each chain")
    parts: list[tuple[Ints, BatchResult]] = []
    # A state is left with the exact sum of its row, which the doubles miss by a rounding each.
    rounding = gain_error + (int(np.diff(product.chain_indptr).max()) + 1) * ROUNDOFF
    for rows, decided in _by_support(product, values, entry):
        plan = decided.plan_of_gains(matrices=len(rows))
        solution = solve(
            plan,
            values[rows],
            entry,
            stochastic=True,
            value_error=value_error,
            roughly=roughly,
            gains=gains[rows][:, product.state[plan.unknown]],
        )
        parts.append((rows, _of_gains(solution, rounding, value_error)))
    return gathered(parts, (len(values), len(product.start)))


def _of_gains(solution: Solution, rounding: float, value_error: float) -> BatchResult:
    finite = np.where(np.isfinite(solution.value), solution.value, 0)
    error = (solution.error + (finite + solution.error) * rounding) * (1 + 2.0**-50)
    moved = (solution.representation + (finite + error + solution.representation) * 2 * value_error) * (1 + 2.0**-50)
    ends = np.maximum(solution.value - error, 0), solution.value + error
    return BatchResult(solution.value, error, moved, solution.steps, *ends)


def check(chain: MarkovChain, formula: Node) -> BatchResult:
    """Probability of `formula` from every initial state of one chain; arrays of shape (1, m).

    Args:
        chain: the chain; its labels give the names in `formula` their meaning.
        formula: names of labels, `true`, `false`, connectives and temporal operators.

    Raises:
        LimitError: if the product or the formula's progression would be too large.
        InputError: the formula names no label.
    """
    product = build_product(chain.indptr, chain.indices, chain.labels, formula, chain.initial)
    return satisfaction_probabilities(product, chain.probabilities, rounding_defect=chain.rounding_defect)


def _fitting(product: Product, values: NDArray[np.float64], entry: Ints | None) -> tuple[NDArray[np.float64], Ints]:
    """(M, k) probabilities and the one of each transition; ValueError where they do not fit."""
    values = np.atleast_2d(values)
    transitions = len(product.chain_indices)
    width = transitions if entry is None else values.shape[1]
    entry = np.arange(transitions) if entry is None else entry
    if values.shape[1:] != (width,) or len(entry) != transitions or entry.min() < 0 or entry.max() >= width:
        raise ValueError(f"values of shape {values.shape} do not fit {transitions} transitions")
    return values, entry


def _check_stochastic(product: Product, values: NDArray[np.float64], entry: Ints, tolerance: float) -> None:
    if len(values) and not values.min() >= 0:  # false for NaN as well
        raise ValueError("a probability is negative or no number")
    rows, entries, starts = _different_rows(product.chain_indptr, entry, values.shape)
    # Sparse rows of ones add up each row, much faster than `add.reduceat`.
    rows_of_ones = csr_array((np.ones(len(entries)), entries, starts), shape=(len(rows), values.shape[1]))
    at_once = int(np.clip(_SUMS_AT_ONCE // len(rows), 1, _CHUNK))
    for low in range(0, len(values), at_once):
        sums = rows_of_ones @ np.ascontiguousarray(values[low : low + at_once].T)
        if not max(sums.max() - 1, 1 - sums.min()) <= tolerance:
            defect = np.abs(sums - 1)
            row, matrix = np.unravel_index(defect.argmax(), defect.shape)
            raise ValueError(f"row {rows[row]} of array {low + matrix} misses the sum 1 by {defect.max()}")


def _different_rows(indptr: Ints, entry: Ints, shape: tuple[int, ...]) -> tuple[Ints, Ints, Ints]:
    """Rows among which is every different one where that saves sums, else all; their entries; where each starts."""
    n, (matrices, width) = len(indptr) - 1, shape
    if matrices < _FEW_MATRICES or 8 * width > n:
        return np.arange(n), entry, indptr
    degree, kind = np.diff(indptr), np.zeros(n, dtype=np.int64)
    for place in range(int(degree.max())):
        longer = degree > place
        digit = np.zeros(n, dtype=np.int64)
        digit[longer] = entry[indptr[:-1][longer] + place] + 1
        _, kind = np.unique(np.ravel_multi_index((kind, digit), (n, width + 1)), return_inverse=True)
    _, rows = np.unique(kind, return_index=True)
    return rows, entry[ranges(indptr[rows], indptr[rows + 1])], np.concatenate([[0], np.cumsum(degree[rows])])


def _by_support(product: Product, values: NDArray[np.float64], entry: Ints) -> list[tuple[Ints, Decided]]:
    """The rows of `values` in groups, and for each group the product with its bottom components decided."""
    everything = np.arange(len(values))
    if len(values) == 0:
        return []
    if values.min() > 0:
        return [(everything, decide(product, np.ones(len(entry), dtype=bool)))]
    positive: NDArray[np.bool_] = values > 0
    union = decide(product, np.any(positive, axis=0, keepdims=True)[0, entry])
    easy = union.also_decides(positive, entry)
    groups = [(everything[easy], union)] if np.any(easy) else []
    # The others by their sets of positive entries; transitions that the product does not have make no difference.
    relevant = marked(values.shape[1], entry[product.edge])
    hard = everything[~easy]
    patterns, group = np.unique(np.packbits(positive[hard][:, relevant], axis=1), axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    sizes = np.bincount(group.ravel(), minlength=len(patterns))
    for rows in np.split(hard[order], np.cumsum(sizes)[:-1]) if len(hard) else []:
        groups.append((rows, decide(product, positive[rows[0], entry])))
    return groups


def _enclosure(solution: Solution) -> BatchResult:
    value, error = solution.value, solution.error
    ends = np.maximum(value - error, 0), np.minimum(value + error, 1)
    bounds = np.minimum(error, 1), np.minimum(solution.representation, 1)
    return BatchResult(np.clip(value, 0, 1), *bounds, solution.steps, *ends)


def _bracket(accept: Solution, reject: Solution) -> BatchResult:
    value, error = accept.value, accept.error
    lower = np.minimum(value - error, 1 - reject.value - reject.error)
    upper = np.maximum(value + error, 1 - reject.value + reject.error)
    steps = np.maximum(accept.steps, reject.steps)
    return BatchResult(value, error, np.full_like(value, np.inf), steps, lower, upper)
