"""Expected gains, quantiles, conditional and bounded probabilities by their definitions, in fractions, slowly."""

from __future__ import annotations

from fractions import Fraction

Rows = list[dict[int, Fraction]]


def solved(rows: list[list[Fraction]]) -> list[Fraction]:
    """The solution of equations [a_1, .., a_n, right], by the elimination of Gauss and Jordan."""
    rows = [list(row) for row in rows]
    for i in range(len(rows)):
        pivot = next(j for j in range(i, len(rows)) if rows[j][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for j in range(len(rows)):
            if j != i and rows[j][i] != 0:
                rows[j] = [a - rows[j][i] * b for a, b in zip(rows[j], rows[i], strict=True)]
    return [row[-1] for row in rows]


def may_reach(rows: Rows, goal: set[int]) -> set[int]:
    """The states with a path into the goal."""
    found = set(goal)
    while more := {
        s for s, row in enumerate(rows) if s not in found and any(p and t in found for t, p in row.items())
    }:
        found |= more
    return found


def reaching(rows: Rows, goal: set[int]) -> list[Fraction]:
    """The probability of reaching the goal, from each state."""
    open_ = sorted(may_reach(rows, goal) - goal)
    place = {s: i for i, s in enumerate(open_)}
    equations = []
    for s in open_:
        row = [Fraction(int(s == t)) - rows[s].get(t, Fraction(0)) for t in open_]
        equations.append([*row, sum((p for t, p in rows[s].items() if t in goal), Fraction(0))])
    values = solved(equations)
    return [Fraction(1) if s in goal else values[place[s]] if s in place else Fraction(0) for s in range(len(rows))]


def gained(rows: Rows, gains: list[Fraction], goal: set[int]) -> list[Fraction | None]:
    """What is gained before the goal is reached, from each state; None where it may be missed."""
    sure = {s for s, p in enumerate(reaching(rows, goal)) if p == 1}
    open_ = sorted(sure - goal)
    place = {s: i for i, s in enumerate(open_)}
    equations = [
        [*(Fraction(int(s == t)) - rows[s].get(t, Fraction(0)) for t in open_), Fraction(gains[s])] for s in open_
    ]
    values = solved(equations)
    return [Fraction(0) if s in goal else values[place[s]] if s in place else None for s in range(len(rows))]


def gained_in(rows: Rows, gains: list[Fraction], steps: int) -> list[Fraction]:
    """What is gained in so many steps."""
    value = [Fraction(0)] * len(rows)
    for _ in range(steps):
        value = [gains[s] + sum((p * value[t] for t, p in row.items()), Fraction(0)) for s, row in enumerate(rows)]
    return value


def within(rows: Rows, goal: set[int], steps: int) -> list[Fraction]:
    """The probability of reaching the goal within so many steps."""
    value = [Fraction(int(s in goal)) for s in range(len(rows))]
    for _ in range(steps):
        step = [sum((p * value[t] for t, p in row.items()), Fraction(0)) for row in rows]
        value = [Fraction(1) if s in goal else x for s, x in enumerate(step)]
    return value


def quantile(rows: Rows, goal: set[int], level: Fraction, state: int, most: int = 400) -> int | None:
    """The least number of steps within which the goal is reached with this probability; None for none.

    Where the goal is reached with exactly this probability at the end of time, `most` steps stand for that.
    """
    if reaching(rows, goal)[state] < level:
        return None
    value = [Fraction(int(s in goal)) for s in range(len(rows))]
    for steps in range(most):
        if value[state] >= level:
            return steps
        step = [sum((p * value[t] for t, p in row.items()), Fraction(0)) for row in rows]
        value = [Fraction(1) if s in goal else x for s, x in enumerate(step)]
    return None


def both_reached(rows: Rows, first: set[int], second: set[int]) -> list[Fraction]:
    """The probability of reaching both sets, in whatever order: on pairs of a state and what was reached so far."""
    n = len(rows)

    def number(state: int, seen: int) -> int:
        return 4 * state + (seen | (state in first) | 2 * (state in second))

    product: Rows = [{} for _ in range(4 * n)]
    for state, row in enumerate(rows):
        for seen in range(4):
            here = product[4 * state + seen]
            for target, p in row.items():
                at = number(target, seen)
                here[at] = here.get(at, Fraction(0)) + p
    goal = {4 * state + 3 for state in range(n)}
    values = reaching(product, goal)
    return [values[number(state, 0)] for state in range(n)]
