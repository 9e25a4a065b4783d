"""Step windows by their definition, in fractions: one step after another, with the best row to choose in each."""

from __future__ import annotations

import functools
from fractions import Fraction

from interval_models import UNIT


def rows_of_model(model):
    """For each state of an interval model the rows {successor: fraction} of the vertices of its column."""
    found = []
    for state in range(model.size):
        rows = []
        for chosen in model.choices(state):
            row = {}
            for successor, mass in zip(model.following[state], chosen, strict=True):
                target = successor if state in model.bounds else state
                row[target] = row.get(target, Fraction(0)) + Fraction(mass, UNIT)
            rows.append({target: share for target, share in row.items() if share})
        found.append(rows)
    return found


def until_by_definition(choices, a, b, low, high, best=max):
    """P(a U[low,high] b) from each state: at step k, either b now (within the window), or a now and the rest later.

    `choices` has for each state the rows that can be chosen from in every step, `best` says which is.
    """

    @functools.cache
    def value(state, k):
        if low <= k and state in b:
            return Fraction(1)
        if k == high or state not in a:
            return Fraction(0)
        return best(sum((p * value(t, k + 1) for t, p in row.items()), Fraction(0)) for row in choices[state])

    return [value(state, 0) for state in range(len(choices))]


def response_by_definition(choices, p, b, first, last, wait, best=max):
    """P(G[first,last] (p -> F[0,wait] b)): follow the path with the step by which the oldest p needs its b."""

    @functools.cache
    def value(state, k, deadline):
        if state in b:
            deadline = None
        elif deadline is None and first <= k <= last and state in p:
            deadline = k + wait
        if deadline is not None and k >= deadline:
            return Fraction(0)
        if deadline is None and k > last:
            return Fraction(1)
        return best(
            sum((s * value(t, k + 1, deadline) for t, s in row.items()), Fraction(0)) for row in choices[state]
        )

    return [value(state, 0, None) for state in range(len(choices))]
