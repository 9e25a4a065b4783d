"""A policy to begin with that is nearly the best: from the states where all is decided back to where runs begin.

Policy iteration alone carries what is better one step further in each round, each of which solves a chain. Here every
component of the graph is looked at once, after those that it leads to: a single state has its value at once, the
states of a larger one after some rounds. Nothing rests on what comes out but how long the search takes.
"""

import numpy as np

from verifier.base.arrays import Floats, Ints, Mask, rows_of
from verifier.checking.graphs import components, levels, ranges

MOST_LEVELS = 100_000
MOST_ROUNDS = 50
"""In a component of several states."""


def first_policy(first: Ints, behind: Ints, targets: Ints, weights: Floats, goal: Mask) -> Ints:
    """(p,) an alternative of each state, for reaching the goal with great probability.

    Args:
        first: (p + 1,) where the alternatives of each state begin.
        behind: (q,) the alternative behind each transition, increasing.
        targets: (q,) the state that it leads to.
        weights: (q,) its probability.
        goal: (p,) bool.
    """
    policy, owner, count = first[:-1].copy(), rows_of(first), len(goal)
    there = weights > 0
    sources, led = owner[behind[there]], targets[there]
    of = components(count, sources, led)
    inner = of[sources] == of[led]
    rank = levels(int(of.max()) + 1, of[sources[~inner]], of[led[~inner]], MOST_LEVELS)
    if rank is None:
        return policy
    circles = np.zeros(count, dtype=bool)
    circles[sources[inner]] = True
    value, begun = goal.astype(np.float64), np.searchsorted(behind, np.arange(len(owner) + 1))
    chosen = np.flatnonzero(~goal & (begun[first[1:]] > begun[first[:-1]]))
    chosen = chosen[np.argsort(rank[of[chosen]], kind="stable")]
    for states in np.split(chosen, np.flatnonzero(np.diff(rank[of[chosen]])) + 1):
        if not len(states):
            continue
        rows = ranges(first[states], first[states + 1])
        edges = ranges(begun[rows], begun[rows + 1])
        ends = np.cumsum(begun[rows + 1] - begun[rows])[:-1]
        begins = np.cumsum(first[states + 1] - first[states])[:-1]
        begins, ends = np.concatenate([[0], begins]), np.concatenate([[0], ends])
        for _ in range(MOST_ROUNDS if circles[states].any() else 1):
            worth = np.add.reduceat(weights[edges] * value[targets[edges]], ends)
            most = np.maximum.reduceat(worth, begins)
            better = most > value[states]  # only then: of equal ones one may lead round and round
            if not better.any():
                break
            best = worth == np.repeat(most, first[states + 1] - first[states])
            policy[states[better]] = np.minimum.reduceat(np.where(best, rows, len(owner)), begins)[better]
            value[states] = most
    return policy
