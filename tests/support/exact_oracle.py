"""Slow and obviously correct: probabilities by exact elimination, LTL on lassos by its definition."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from verifier.language.expressions.syntax import Boolean, Name, Node, Operation, Temporal

Chain = Sequence[dict[int, Fraction]]


def reach_probabilities(chain: Chain, target: set[int]) -> list[Fraction]:
    """P(F target) for every state of a chain given as one {successor: probability} per state.

    x = 1 on the target, x = 0 where the target cannot be reached, and x_s = sum p_st x_t elsewhere; there the
    system is regular, and plain Gauss-Jordan elimination with fractions solves it.
    """
    n = len(chain)
    can = set(target)
    while True:
        more = {s for s in range(n) if s not in can and any(t in can and p > 0 for t, p in chain[s].items())}
        if not more:
            break
        can |= more
    unknown = [s for s in range(n) if s in can and s not in target]
    rows = []
    for s in unknown:
        row = [Fraction(int(s == t)) - chain[s].get(t, Fraction(0)) for t in unknown]
        rows.append([*row, sum((p for t, p in chain[s].items() if t in target), Fraction(0))])
    for i in range(len(rows)):
        pivot = next(j for j in range(i, len(rows)) if rows[j][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for j in range(len(rows)):
            if j != i and rows[j][i] != 0:
                rows[j] = [a - rows[j][i] * b for a, b in zip(rows[j], rows[i], strict=True)]
    solution = {s: row[-1] for s, row in zip(unknown, rows, strict=True)}
    return [Fraction(1) if s in target else solution.get(s, Fraction(0)) for s in range(n)]


def holds_on_lasso(formula: Node, stem: Sequence[frozenset[str]], loop: Sequence[frozenset[str]]) -> bool:
    """Whether the word stem loop loop loop ... satisfies the formula.

    Straight from the definition: every subformula at every position, with an until searched for among the next
    positions; beyond len(stem) + 2 len(loop) + bound nothing new can come.
    """
    word = [*stem, *loop]
    size, back = len(word), len(stem)

    def at(position: int) -> int:
        return position if position < size else back + (position - back) % (size - back)

    def until(left: list[bool], right: list[bool], low: int, high: int | None, start: int) -> bool:
        last = low + 2 * size if high is None else high
        for k in range(last + 1):
            if k >= low and right[at(start + k)]:
                return True
            if not left[at(start + k)]:
                return False
        return False

    def values(node: Node) -> list[bool]:
        positions = range(size)
        if isinstance(node, Boolean):
            return [node.value] * size
        if isinstance(node, Name):
            return [node.name in word[i] for i in positions]
        assert isinstance(node, Operation | Temporal)
        parts = [values(operand) for operand in node.operands]
        if isinstance(node, Operation):
            table = {
                "&": lambda a, b: a and b,
                "|": lambda a, b: a or b,
                "->": lambda a, b: b or not a,
                "xor": lambda a, b: a != b,
                "<->": lambda a, b: a == b,
            }
            if node.operator == "!":
                return [not a for a in parts[0]]
            return [table[node.operator](a, b) for a, b in zip(*parts, strict=True)]
        low, high = (0, None) if node.interval is None else (node.interval.low, node.interval.high)
        always, negated = [True] * size, [[not a for a in part] for part in parts]
        if node.operator == "X":
            return [parts[0][at(i + (low or 1))] for i in positions]
        if node.operator == "F":
            return [until(always, parts[0], low, high, i) for i in positions]
        if node.operator == "G":
            return [not until(always, negated[0], low, high, i) for i in positions]
        if node.operator == "U":
            return [until(parts[0], parts[1], low, high, i) for i in positions]
        if node.operator == "R":
            return [not until(negated[0], negated[1], low, high, i) for i in positions]
        if node.operator == "W":  # a W b: a U b, or always a
            return [
                until(parts[0], parts[1], 0, None, i) or not until(always, negated[0], 0, None, i) for i in positions
            ]
        both = [a and b for a, b in zip(*parts, strict=True)]  # a M b: b until a position with a and b
        return [until(parts[1], both, 0, None, i) for i in positions]

    return values(formula)[0]
