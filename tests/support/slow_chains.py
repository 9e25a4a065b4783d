"""Chains in which many steps pass before anything is decided, with exact probabilities from closed forms."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction


def walk(up: Sequence[Fraction], stay: Fraction = Fraction(0)) -> list[dict[int, Fraction]]:
    """0..n with absorbing ends; a move from i leads to i + 1 with up[i], else to i - 1 (up[0], up[n]: unread)."""
    last = len(up) - 1
    rows: list[dict[int, Fraction]] = [{0: Fraction(1)}]
    for state in range(1, last):
        row = {state - 1: (1 - stay) * (1 - up[state]), state: stay, state + 1: (1 - stay) * up[state]}
        rows.append({target: share for target, share in row.items() if share})
    return [*rows, {last: Fraction(1)}]


def walk_probability(up: Sequence[Fraction], start: int) -> Fraction:
    """P(the upper end is reached first): a ratio of sums of products of odds (gambler's ruin, Feller I, XIV)."""
    odds = total = Fraction(1)
    until_start = Fraction(start > 0)
    for state in range(1, len(up) - 1):
        odds *= (1 - up[state]) / up[state]
        total += odds
        until_start += odds if state < start else 0
    return until_start / total


def ladder(k: int, q: Fraction) -> list[dict[int, Fraction]]:
    """States 0..k-1, each forward with q, else back to 0; from the last of them .3 q into k and .7 q into k + 1.

    Every run that does not return to 0 for ever ends by leaving the last rung, so the probability of k is .3 from
    each of the rungs, whatever k and q are. The probability of leaving from 0 before returning there is q^k.
    """
    rows: list[dict[int, Fraction]] = [{0: 1 - q, rung + 1: q} for rung in range(k - 1)]
    return [
        *rows,
        {0: 1 - q, k: q * Fraction(3, 10), k + 1: q * Fraction(7, 10)},
        {k: Fraction(1)},
        {k + 1: Fraction(1)},
    ]


def drawn_chain(rng: random.Random, most_states: int) -> list[dict[int, Fraction]]:
    """A chain with loops, a clock or retries, of up to about `most_states` states; the last two absorb.

    A ring of places is passed in steps, with a way back, self-loops, and rare ways out into one of the two ends. The
    probabilities of what happens rarely go down to 1e-12. With a clock, what is possible depends on the time modulo 2
    to 6. Edges join places at most three apart, so that exact elimination stays fast.
    """
    period = rng.choice([1, 1, 2, 3, 6])
    places = rng.randint(2, max(2, most_states // period))
    size = places * period
    rarest = rng.choice([0, 3, 6, 12])
    rows: list[dict[int, Fraction]] = []
    for state in range(size):
        place, clock = divmod(state, period)
        moves = {place: 0, min(place + 1, places - 1): 0, max(place - rng.randint(1, 3), 0): 0}
        row: dict[int, Fraction] = {}
        for target in moves:
            weight = Fraction(rng.randint(1, 9), 10 ** (rng.choice([0, rarest])))
            reached = target * period + (clock + 1) % period
            row[reached] = row.get(reached, Fraction(0)) + weight
        if rng.random() < 0.3 or state in (0, size - 1):
            end = size + (rng.random() < 0.5)
            row[end] = row.get(end, Fraction(0)) + Fraction(rng.randint(1, 9), 10**rarest)
        total = sum(row.values(), Fraction(0))
        rows.append({target: weight / total for target, weight in sorted(row.items())})
    return [*rows, {size: Fraction(1)}, {size + 1: Fraction(1)}]


def reach_by_elimination(rows: Sequence[dict[int, Fraction]], target: int) -> list[Fraction]:
    """P(F target) for every state: states are removed one by one, the last first, in fractions; then put back in.

    For chains whose edges join neighbours this is much faster than elimination on the full matrix, its check.
    """
    can = {target}
    while more := {s for s, row in enumerate(rows) if s not in can and can & row.keys()}:
        can |= more
    left = {s: dict(rows[s]) for s in can if s != target}
    entering: dict[int, set[int]] = {}
    for s, row in left.items():
        for t in row:
            entering.setdefault(t, set()).add(s)
    order = sorted(left, reverse=True)
    for removed in order:
        row = left[removed]
        leaving = 1 - row.pop(removed, Fraction(0))
        for t in row:
            row[t] /= leaving
        for s in entering.get(removed, set()):
            if s < removed:
                share = left[s].pop(removed)
                for t, part in row.items():
                    left[s][t] = left[s].get(t, Fraction(0)) + share * part
                    entering.setdefault(t, set()).add(s)
    value = {target: Fraction(1)}
    for s in reversed(order):
        value[s] = sum((part * value.get(t, Fraction(0)) for t, part in left[s].items()), Fraction(0))
    return [value.get(s, Fraction(0)) for s in range(len(rows))]
