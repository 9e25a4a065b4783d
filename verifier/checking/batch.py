"""The batch engine: the probability of an LTL formula for many Markov chains of one graph at once.

    product = build_product(chain.indptr, chain.indices, chain.labels, formula, chain.initial)
    result = satisfaction_probabilities(product, values)      # values: one row of probabilities per chain

The product of the graph with the formula is built once (`product`). For each set of transitions with positive
probability, states that satisfy the formula surely or never are found on the graph (`plan`, `recurrence`); the
others are solved for all chains side by side (`linear`). Nothing is shared with any other model checker.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.chains.chain import ROW_SUM_TOLERANCE, MarkovChain
from verifier.checking.graphs import Mask
from verifier.checking.linear import ROUNDOFF, Solution, solve
from verifier.checking.plan import decide
from verifier.checking.product import Product, build_product
from verifier.expressions.syntax import Node

_CHUNK = 512


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
            which the given doubles have the stated relative error; apart from `error_bound`.
        expected_jumps: bound on the expected number of jumps to another state until the formula is decided.
        lower: lower end of the enclosure.
        upper: upper end of the enclosure.
    """

    probability: NDArray[np.float64]
    error_bound: NDArray[np.float64]
    representation_bound: NDArray[np.float64]
    expected_jumps: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


def satisfaction_probabilities(
    product: Product,
    values: NDArray[np.float64],
    *,
    rounding_defect: float = 0.0,
    value_error: float = ROUNDOFF,
    memory_bytes: int = 1 << 30,
) -> BatchResult:
    """Probability of the product's formula from every initial state, for every array of transition probabilities.

    Args:
        product: graph and formula.
        values: (nnz,) or (M, nnz) float64, the probabilities of the chain's transitions; 0 removes a transition.
            Fastest when `values.T` is C-contiguous.
        rounding_defect: as in `MarkovChain`; above 0, rows need not sum to 1 and nothing is normalised.
        value_error: largest relative error of each given probability.
        memory_bytes: rough limit for working arrays.

    Raises:
        ValueError: if a probability is negative or no number, or a row sum misses 1.
        EngineError: if equations are singular in double precision.
        LimitError: if deciding the recurrent part needs too large a graph.
    """
    values = np.atleast_2d(values)
    if values.ndim != 2 or values.shape[1] != len(product.chain_indices):
        raise ValueError(f"values of shape {values.shape} for {len(product.chain_indices)} transitions")
    _check_stochastic(product, values, rounding_defect + ROW_SUM_TOLERANCE)
    shape = (len(values), len(product.start))
    fields = ("probability", "error_bound", "representation_bound", "expected_jumps", "lower", "upper")
    arrays = {name: np.empty(shape) for name in fields}
    for rows, support in _by_support(product, values):
        selected = values if len(rows) == len(values) else values[rows]
        decided = decide(product, support)
        if rounding_defect > 0:
            plans = [decided.plan(accepting=goal, exact_one=False, matrices=len(rows)) for goal in (True, False)]
            accept, reject = (
                solve(plan, selected, stochastic=False, value_error=value_error, memory_bytes=memory_bytes)
                for plan in plans
            )
            part = _bracket(accept, reject)
        else:
            plan = decided.plan(accepting=True, exact_one=True, matrices=len(rows))
            part = _enclosure(
                solve(plan, selected, stochastic=True, value_error=value_error, memory_bytes=memory_bytes)
            )
        for name, array in part.items():
            arrays[name][rows] = array
    return BatchResult(**arrays)


def check(chain: MarkovChain, formula: Node, *, max_states: int = 50_000_000) -> BatchResult:
    """Probability of `formula` from every initial state of one chain; arrays of shape (1, m).

    Args:
        chain: the chain; its labels give the names in `formula` their meaning.
        formula: names of labels, `true`, `false`, connectives and temporal operators.
        max_states: most product states to build.

    Raises:
        LimitError: if the product or the formula's progression would be too large.
        ValueError: if the formula names no label.
    """
    product = build_product(chain.indptr, chain.indices, chain.labels, formula, chain.initial, max_states=max_states)
    return satisfaction_probabilities(product, chain.probabilities, rounding_defect=chain.rounding_defect)


def _check_stochastic(product: Product, values: NDArray[np.float64], tolerance: float) -> None:
    if len(values) and not values.min() >= 0:  # false for NaN as well
        raise ValueError("a probability is negative or no number")
    for low in range(0, len(values), _CHUNK):
        chunk = np.ascontiguousarray(values[low : low + _CHUNK])
        defect = np.abs(np.add.reduceat(chunk, product.chain_indptr[:-1], axis=1) - 1)
        if not defect.max() <= tolerance:
            matrix, row = np.unravel_index(defect.argmax(), defect.shape)
            raise ValueError(f"row {row} of array {low + matrix} misses the sum 1 by {defect.max()}")


def _by_support(product: Product, values: NDArray[np.float64]) -> list[tuple[NDArray[np.int64], Mask]]:
    """The rows of `values` with equal sets of positive entries among the product's transitions, and those sets."""
    everything = np.arange(len(values))
    if len(values) and values.min() > 0:
        return [(everything, np.ones(values.shape[1], dtype=bool))]
    # Transitions that the product does not have make no difference.
    relevant = np.zeros(values.shape[1], dtype=bool)
    relevant[product.edge] = True
    positive = values > 0
    packed = np.packbits(positive[:, relevant], axis=1)
    _, first, group = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    parts = np.split(everything[order], np.cumsum(np.bincount(group.ravel(), minlength=len(first)))[:-1])
    return [(rows, positive[rows[0]]) for rows in parts]


def _enclosure(solution: Solution) -> dict[str, NDArray[np.float64]]:
    return {
        "probability": np.clip(solution.value, 0, 1),
        "error_bound": np.minimum(solution.error, 1),
        "representation_bound": np.minimum(solution.representation, 1),
        "expected_jumps": solution.jumps,
        "lower": np.maximum(solution.value - solution.error, 0),
        "upper": np.minimum(solution.value + solution.error, 1),
    }


def _bracket(accept: Solution, reject: Solution) -> dict[str, NDArray[np.float64]]:
    return {
        "probability": accept.value,
        "error_bound": accept.error,
        "representation_bound": accept.representation,
        "expected_jumps": np.maximum(accept.jumps, reject.jumps),
        "lower": np.minimum(accept.value - accept.error, 1 - reject.value - reject.error),
        "upper": np.maximum(accept.value + accept.error, 1 - reject.value + reject.error),
    }
