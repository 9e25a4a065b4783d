"""What a formula means on one word: straight from the definition, slow, and used to test everything else.

Definitions: C. Baier and J.-P. Katoen, Principles of Model Checking, MIT Press 2008, definition 5.6 (until, next and
the operators derived from them), section 5.1.5 (weak until, release). A bound `[low, high]` restricts the step j at
which the right operand of U (the operand of F) is looked for; G and R are the duals of F and U.

Letters are sets of the propositions that hold. The state subformulas of a formula given here are names, `true`,
`false` and connectives; `verifier.language.ltl.rewriting.abstract` brings every formula into that shape.

What follows for a formula from what is known of its parts: Kleene's strong three-valued logic, extended to LTL.

A part may be known at the first position of every path, at every position of every path, or not at all. By the laws
of the connectives and by a U b = b | (a & X(a U b)) the same then follows for the formula. It is sound and not
complete: `a | !a` stays open where a is.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.language.expressions.syntax import Boolean, Interval, Name, Node, Operation, Temporal

Letter = frozenset[str]


def holds_on_lasso(formula: Node, prefix: Sequence[Letter], loop: Sequence[Letter]) -> bool:
    """Whether the infinite word `prefix loop loop loop ...` satisfies `formula`.

    Raises:
        ValueError: the loop is empty, or a subformula is neither temporal, a connective, a name nor a constant.
    """
    if not loop:
        raise ValueError("the loop of a lasso has at least one letter")
    word = [*prefix, *loop]
    count = len(word)

    def position(start: int, steps: int) -> int:
        """Index into `word` of the letter that lies `steps` behind the one at index `start`."""
        index = start + steps
        return index if index < count else len(prefix) + (index - len(prefix)) % len(loop)

    def until(left: list[bool], right: list[bool], low: int, high: int | None) -> list[bool]:
        # From any position, `count` steps pass every position the word will ever pass again. So the first step j
        # at or behind `low` with `right` comes before low + count, and `left` need be looked at count times.
        last = low + count if high is None else min(high, low + count)
        return [
            any(
                right[position(i, j)] and all(left[position(i, k)] for k in range(min(j, count)))
                for j in range(low, last + 1)
            )
            for i in range(count)
        ]

    def following(operand: list[bool], steps: int) -> list[bool]:
        return [operand[position(i, steps)] for i in range(count)]

    return _truth(formula, word, until, following)[0]


_Until = Callable[[list[bool], list[bool], int, "int | None"], list[bool]]
_Following = Callable[[list[bool], int], list[bool]]


def _truth(formula: Node, word: Sequence[Letter], until: _Until, following: _Following) -> list[bool]:
    """For every index of `word`, whether the word from there on satisfies `formula`."""
    if isinstance(formula, Boolean):
        return [formula.value for _ in word]
    if isinstance(formula, Name):
        return [formula.name in letter for letter in word]
    if isinstance(formula, Operation | Temporal):
        operands = [_truth(operand, word, until, following) for operand in formula.operands]
        if isinstance(formula, Operation):
            return _connective(formula.operator, operands)
        return _temporal(formula, operands, until, following)
    raise ValueError(f"neither temporal, a connective, a name nor a constant: {type(formula).__name__}")


def _connective(operator: str, operands: list[list[bool]]) -> list[bool]:
    if operator == "!":
        return [not a for a in operands[0]]
    pairs = list(zip(*operands, strict=True))
    match operator:
        case "&":
            return [a and b for a, b in pairs]
        case "|":
            return [a or b for a, b in pairs]
        case "xor":
            return [a != b for a, b in pairs]
        case "->":
            return [b if a else True for a, b in pairs]
        case "<->":
            return [a == b for a, b in pairs]
    raise ValueError(f"not a connective: {operator}")


def _temporal(formula: Temporal, operands: list[list[bool]], until: _Until, following: _Following) -> list[bool]:
    low, high = (0, None) if formula.interval is None else (formula.interval.low, formula.interval.high)
    first, last = operands[0], operands[-1]
    always = [True] * len(first)

    def negation(values: list[bool]) -> list[bool]:
        return [not value for value in values]

    match formula.operator:
        case "X":
            return following(first, max(low, 1))
        case "F":
            return until(always, first, low, high)
        case "G":
            return negation(until(always, negation(first), low, high))
        case "U":
            return until(first, last, low, high)
        case "R":
            return negation(until(negation(first), negation(last), low, high))
        case "W":
            forever = negation(until(always, negation(first), 0, None))
            return [a or b for a, b in zip(forever, until(first, last, 0, None), strict=True)]
        case "M":
            both = [a and b for a, b in zip(first, last, strict=True)]
            return until(last, both, 0, None)
    raise ValueError(f"not an operator with a meaning here: {formula.operator}")


Settled: TypeAlias = NDArray[np.int8]
"""(2, m) for m sets of paths 1 (true on all of them), -1 (false) or 0 (not known), at the first position and at every
position; what is known at every position is known at the first."""


def temporal(node: Temporal, below: Sequence[Settled]) -> Settled:
    """What the operands say of a temporal formula."""
    first, last = below[0], below[-1]
    bound = node.interval or Interval(0, None)
    if node.operator == "X":
        return np.stack([first[1], first[1]])
    true = np.ones_like(first)
    named = {"a": first, "b": last, "true": true, "false": -true}
    named |= {"&": np.minimum(first, last), "|": np.maximum(first, last)}
    kind, left, right = node.in_core()
    if kind == "U":
        return _until(named[left], named[right], bound)
    return -_until(-named[left], -named[right], bound)


def _until(left: Settled, right: Settled, bound: Interval) -> Settled:
    """`left U[low, high] right`: `left & X (left U[low-1, high-1] right)`, or if low is 0 that or `right`."""
    if bound.high == 0:
        return right
    both = np.minimum(left[1], right[1])
    later = np.minimum(left[0], right[1] if bound.low <= 1 else both)
    if bound.low:
        return np.stack([later, both])
    return np.stack([np.maximum(right[0], later), right[1]])


def connective(operator: str, below: Sequence[Settled]) -> Settled:
    """Kleene's tables: `&` is the least, `|` the greatest of the two values."""
    first, last = below[0], below[-1]
    match operator:
        case "!":
            return -first
        case "&":
            return np.minimum(first, last)
        case "|":
            return np.maximum(first, last)
        case "->":
            return np.maximum(-first, last)
        case "xor":
            return -first * last
        case _:
            return first * last
