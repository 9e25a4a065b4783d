"""Least and greatest probabilities over all strategies of a decision process by interval iteration.

The optimality equations are iterated from below (all 0) and from above (all 1) until the two meet (Haddad and
Monmege, Interval iteration algorithm for MDPs and IMDPs, Theoretical Computer Science 735, 2018). They meet where
every strategy ends up in states that only loop, as in episodes that end.
"""

import numpy as np

from verifier.base.arrays import rows_of
from verifier.base.graphs import ranges
from verifier.checking.plan import decide
from verifier.checking.product import build_product
from verifier.language.ltl.progression import ACCEPT, REJECT

MOST_ITERATIONS = 20_000
WIDTH = 1e-12


def optimal_probabilities(process, formula, greatest):
    """(m,) bounds from below and from above of the least or greatest probability at each initial state."""
    state_rows = process.indptr[process.choice_starts]
    product = build_product(state_rows, process.indices, process.labels, formula, process.initial)
    one, zero = _settled(process, product, state_rows)
    choice_start, row_start = _choice_boundaries(process, product)
    weights = process.probabilities[product.edge]
    optimum = np.maximum if greatest else np.minimum

    def step(value):
        new = np.zeros(product.state_count)
        if len(product.edge):
            per_choice = np.add.reduceat(weights * value[product.indices], choice_start)
            new[2:] = optimum.reduceat(per_choice, row_start)
        new[one], new[zero] = 1.0, 0.0
        return new

    ends = np.array([one, ~zero], dtype=np.float64)
    for _ in range(MOST_ITERATIONS):
        following = np.array([step(values) for values in ends])
        still, ends = np.array_equal(following, ends), following
        lower, upper = ends[:, product.start]
        if still or np.all(upper - lower <= WIDTH):
            break
    return lower, upper


def _settled(process, product, state_rows):
    """Product states that have value 1, and value 0, whatever the strategy: decided, or where a state only loops."""
    sources = rows_of(state_rows)
    leaves = np.bincount(sources[process.indices != sources], minlength=process.state_count) > 0
    looping = np.zeros(product.state_count, dtype=bool)
    looping[2:] = ~leaves[product.state[2:]]
    graph = decide(product, np.ones(len(process.indices), dtype=bool)).graph
    # A looping state may still pass through several obligations; only where they settle is it a bottom component.
    one, zero = graph.accepting & looping, graph.rejecting & looping
    one[ACCEPT], zero[REJECT] = True, True
    return one, zero


def _choice_boundaries(process, product):
    """Where each choice of each product state begins among the product's transitions, and each state among those."""
    state = product.state[2:]
    first, last = process.choice_starts[state], process.choice_starts[state + 1]
    choices = ranges(first, last)
    lengths = (process.indptr[1:] - process.indptr[:-1])[choices]
    choice_start = np.cumsum(lengths) - lengths
    counts = last - first
    return choice_start, np.cumsum(counts) - counts
