"""The product of chain and formula as a chain of its own, on which Storm computes reachability with bounds.

Storm gives bounds for reachability but none for general LTL formulas. On the product, where every bottom component
is decided, a formula is the reachability of acceptance.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from verifier.chains.chain import MarkovChain
from verifier.checking.plan import Decided
from verifier.checking.process import StormProcess
from verifier.checking.values import CheckedValues

ACCEPT_LABEL = "accept"


def reaching_acceptance(
    decided: Decided,
    chain: MarkovChain,
    storm: StormProcess,
    exact: bool,
    timeout_s: float | None,
    *,
    direct: bool,
    memory_bytes: int | None,
) -> CheckedValues:
    """Storm's probability of reaching acceptance in the product, at the initial states of the chain behind it."""
    product, place = product_chain(decided, chain)
    answer = storm.check(
        product, [f'F "{ACCEPT_LABEL}"'], exact=exact, direct=direct, timeout_s=timeout_s, memory_bytes=memory_bytes
    )[0]
    lower, upper = (None if ends is None else ends[place] for ends in (answer.lower, answer.upper))
    fractions = None if answer.fractions is None else tuple(answer.fractions[k] for k in place)
    return CheckedValues(answer.value[place], lower, upper, fractions, answer.engine)


def product_chain(decided: Decided, chain: MarkovChain) -> tuple[MarkovChain, NDArray[np.int64]]:
    """The product as a Markov chain, its decided states merged into one that accepts and one that rejects.

    Args:
        decided: a product with its bottom components decided.
        chain: the chain behind it.

    Returns:
        chain: with the label `ACCEPT_LABEL`; its last two states are the accepting and the rejecting one.
        place: (m,) int64, for each initial state of `chain` its position among the product chain's initial states.
    """
    graph = decided.graph
    open_states = np.flatnonzero(graph.reached & ~graph.accepting & ~graph.rejecting)
    count = len(open_states)
    number = np.empty(graph.n, dtype=np.int64)  # what is reached is open or decided
    number[open_states] = np.arange(count)
    number[graph.accepting], number[graph.rejecting] = count, count + 1
    inside = number[graph.sources] < count
    sources = np.concatenate([number[graph.sources[inside]], [count, count + 1]])
    targets = np.concatenate([number[graph.targets[inside]], [count, count + 1]])
    edges = graph.edge[inside]
    # Several transitions may lead to one merged state; their probabilities add up.
    keys, merged = np.unique(sources * (count + 2) + targets, return_inverse=True)
    weights = np.concatenate([chain.probabilities[edges], [1.0, 1.0]])
    probabilities = np.bincount(merged, weights, len(keys)).astype(np.float64)
    fractions: list[Fraction] | None = None
    if chain.fractions is not None:
        fractions = [Fraction(0)] * len(keys)
        behind = [*(chain.fractions[edge] for edge in edges), Fraction(1), Fraction(1)]
        for key, fraction in zip(merged, behind, strict=True):
            fractions[key] += fraction
        probabilities = np.array([float(fraction) for fraction in fractions])
    initial, place = np.unique(number[decided.product.start], return_inverse=True)
    rows = np.bincount(keys // (count + 2), minlength=count + 2)
    product = MarkovChain(
        indptr=np.concatenate([[0], np.cumsum(rows)]).astype(np.int64),
        indices=keys % (count + 2),
        probabilities=probabilities,
        labels={ACCEPT_LABEL: np.arange(count + 2) == count},
        initial=initial,
        fractions=None if fractions is None else tuple(fractions),
        rounding_defect=chain.rounding_defect,
    )
    return product, place.astype(np.int64)
