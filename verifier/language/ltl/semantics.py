"""What a formula means on one word: straight from the definition, slow, and used to test everything else. And the
same formula in other words: over atoms, and in the subset that Storm reads.

Definitions: C. Baier and J.-P. Katoen, Principles of Model Checking, MIT Press 2008, definition 5.6 (until, next and
the operators derived from them), section 5.1.5 (weak until, release). A bound `[low, high]` restricts the step j at
which the right operand of U (the operand of F) is looked for; G and R are the duals of F and U.

Letters are sets of the propositions that hold. The state subformulas of a formula given here are names, `true`,
`false` and connectives; `abstract` brings every formula into that shape.

What follows for a formula from what is known of its parts: Kleene's strong three-valued logic, extended to LTL.

A part may be known at the first position of every path, at every position of every path, or not at all. By the laws
of the connectives and by a U b = b | (a & X(a U b)) the same then follows for the formula. It is sound and not
complete: `a | !a` stays open where a is.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import LimitError
from verifier.language.expressions.evaluation import truth_of
from verifier.language.expressions.printing import rebuilt, to_text
from verifier.language.expressions.syntax import (
    CONNECTIVES,
    Boolean,
    Call,
    Interval,
    Name,
    Node,
    Number,
    Operation,
    Temporal,
    fold,
)

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

    def until(left: _Truth, right: _Truth, low: int, high: int | None) -> _Truth:
        # From any position, `count` steps pass every position the word will ever pass again. So the first step j
        # at or behind `low` with `right` comes before low + count, and `left` need be looked at count times.
        last, passed, wanted = low + count if high is None else min(high, low + count), left.tolist(), right.tolist()
        return np.array(
            [
                any(
                    wanted[position(i, j)] and all(passed[position(i, k)] for k in range(min(j, count)))
                    for j in range(low, last + 1)
                )
                for i in range(count)
            ]
        )

    def following(operand: _Truth, steps: int) -> _Truth:
        return operand[[position(i, steps) for i in range(count)]]

    return bool(_truth(formula, word, until, following)[0])


_Truth: TypeAlias = NDArray[np.bool_]
_Until = Callable[[_Truth, _Truth, int, "int | None"], _Truth]
_Following = Callable[[_Truth, int], _Truth]


def _truth(formula: Node, word: Sequence[Letter], until: _Until, following: _Following) -> _Truth:
    """For every index of `word`, whether the word from there on satisfies `formula`."""
    if isinstance(formula, Boolean):
        return np.full(len(word), formula.value)
    if isinstance(formula, Name):
        return np.array([formula.name in letter for letter in word])
    if isinstance(formula, Temporal) or (isinstance(formula, Operation) and formula.operator in CONNECTIVES):
        operands = [_truth(operand, word, until, following) for operand in formula.operands]
        if isinstance(formula, Operation):
            return np.asarray(truth_of(formula.operator, operands))
        return _temporal(formula, operands, until, following)
    raise ValueError(f"neither temporal, a connective, a name nor a constant: {type(formula).__name__}")


def _temporal(formula: Temporal, operands: Sequence[_Truth], until: _Until, following: _Following) -> _Truth:
    low, high = (0, None) if formula.interval is None else (formula.interval.low, formula.interval.high)
    first, last = operands[0], operands[-1]
    always = np.ones_like(first)
    match formula.operator:
        case "X":
            return following(first, max(low, 1))
        case "F":
            return until(always, first, low, high)
        case "G":
            return ~until(always, ~first, low, high)
        case "U":
            return until(first, last, low, high)
        case "R":
            return ~until(~first, ~last, low, high)
        case "W":
            return ~until(always, ~first, 0, None) | until(first, last, 0, None)
        case "M":
            return until(last, first & last, 0, None)
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


LONGEST_STORM_TEXT = 1_000_000
"""Characters that `to_storm` writes at most; nested equivalences double the text each time."""

LONGEST_STORM_CHAIN = 1000
"""Steps that `to_storm` lets a lower bound or `X[n]` look ahead: each is an X inside another."""

_NEXT_CHAIN = re.compile(r"(?:\(X )*")
_CONSTANTS = {"true": "false", "false": "true"}
_STORM_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def abstract(formula: Node) -> tuple[Node, dict[str, Node]]:
    """`formula` over atoms, and what each atom stands for.

    Every largest subformula without a temporal operator becomes a name `p0`, `p1`, ... in the order of the text;
    equal ones share a name. `true` and `false` stay.
    """
    names = {state: f"p{number}" for number, state in enumerate(_largest_states(formula))}

    def atom(state: Node) -> Node:
        return Name(names[state]) if state in names else state

    def combine(node: Node, below: tuple[tuple[bool, Node], ...]) -> tuple[bool, Node]:
        temporal = isinstance(node, Temporal) or any(inside for inside, _ in below)
        if isinstance(node, Temporal) and node.seconds is not None:
            raise ValueError("a bound in seconds is counted in steps before anything is asked about it")
        if not temporal or not isinstance(node, Operation | Temporal):
            return False, node
        return True, replace(node, operands=tuple(new if inside else atom(new) for inside, new in below))

    temporal, rewritten = fold(formula, combine)
    return rewritten if temporal else atom(rewritten), {name: state for state, name in names.items()}


def in_frames(formula: Node, frames: int) -> Node:
    """`formula`, whose bounds count letters, over words in which each letter stands so many times in a row.

    It holds of such a word, wherever that begins within the first letter, if and only if `formula` holds of the word
    with each letter once. Some letters further is so many times as far, and what has no bound counts nothing. `U` and
    `R` that look only from the m-th letter on are split there: m times as far from within a letter ends within one,
    and all of it would count as before that.
    """

    def bounded(operator: str, low: int, high: int | None, *operands: Node) -> Temporal:
        ends = Interval(low * frames, None if high is None else high * frames)
        return Temporal(operator, operands, ends)

    def combine(node: Node, below: tuple[Node, ...]) -> Node:
        if not isinstance(node, Temporal) or (node.interval is None and node.operator != "X"):
            return rebuilt(node, below)
        low, high = (1, 1) if node.interval is None else (node.interval.low, node.interval.high)
        if len(below) == 1 or low == 0:
            return bounded(node.operator, low, high, *below)
        then = bounded("X", low, low, bounded(node.operator, 0, None if high is None else high - low, *below))
        both, first = ("&", "G") if node.operator == "U" else ("|", "F")
        return Operation(both, (bounded(first, 0, low - 1, below[0]), then))

    return formula if frames == 1 else fold(formula, combine)


def _largest_states(formula: Node) -> tuple[Node, ...]:
    """The largest subformulas without temporal operator, constants left out, each once, in the order of the text."""

    def combine(node: Node, below: tuple[tuple[bool, tuple[Node, ...]], ...]) -> tuple[bool, tuple[Node, ...]]:
        if isinstance(node, Temporal) or any(temporal for temporal, _ in below):
            return True, tuple(dict.fromkeys(state for _, states in below for state in states))
        return False, () if isinstance(node, Boolean) else (node,)

    return fold(formula, combine)[1]


def _not_propositional(node: Node) -> ValueError:
    return ValueError(f"not a formula over propositions: {to_text(node)}")


def to_storm(formula: Node) -> str:
    """`formula` as a path formula that Storm reads with the same meaning.

    Storm's grammar lacks `-> <-> xor R W M` and bounds on G, takes `||` for conditional probability, and binds
    F, G, X and ! more weakly than & and |. So only `! & | X F G U` are written, with no bounds but `<=k` on F
    and U, and everything stands in parentheses. Constants are worked off, since Storm takes `!true` for a
    label of that name; they remain only where the whole formula is one. State subformulas must be names that
    Storm allows as labels (`abstract` makes such), constants and connectives. The meaning is that on infinite
    words, where a next step always exists.

    Raises:
        LimitError: the text would be longer than `LONGEST_STORM_TEXT`, or look more than `LONGEST_STORM_CHAIN`
            steps ahead.
        ValueError: a state subformula is something else.
    """

    def combine(node: Node, below: tuple[str, ...]) -> str:
        if isinstance(node, Boolean):
            return "true" if node.value else "false"
        if isinstance(node, Name):
            if not _STORM_LABEL.match(node.name):
                raise ValueError(f"not a label that Storm reads: {node.name!r}")
            return f'"{node.name}"'
        if isinstance(node, Number | Call):
            raise _not_propositional(node)
        text = _storm_temporal(node, below) if isinstance(node, Temporal) else _storm_connective(node, below)
        if len(text) > LONGEST_STORM_TEXT:
            hint = "nested equivalences double the text each time"
            raise LimitError(f"the formula for Storm has more than {LONGEST_STORM_TEXT} characters", hint=hint)
        return text

    return fold(formula, combine)


def _storm_connective(node: Operation, below: tuple[str, ...]) -> str:
    a, b = below[0], below[-1]
    match node.operator:
        case "!":
            return _storm_not(a)
        case "&":
            return _storm_and(a, b)
        case "|":
            return _storm_or(a, b)
        case "->":
            return _storm_or(_storm_not(a), b)
        case "<->":
            return _storm_or(_storm_and(a, b), _storm_and(_storm_not(a), _storm_not(b)))
        case "xor":
            return _storm_or(_storm_and(a, _storm_not(b)), _storm_and(_storm_not(a), b))
    raise _not_propositional(node)


def _storm_temporal(node: Temporal, below: tuple[str, ...]) -> str:
    a, b = below[0], below[-1]
    low, high = (0, None) if node.interval is None else (node.interval.low, node.interval.high)
    if node.operator == "X":
        return _storm_steps(a, max(low, 1))
    if node.operator == "G" and node.interval is None and a not in _CONSTANTS:
        return f"(G {a})"
    negated = node.in_core()[0] == "R"  # Storm has no R: it is the negation of the U of negated operands
    _, left, right = node.in_core(negated)
    if negated:
        a, b = _storm_not(a), _storm_not(b)
    texts = {"a": a, "b": b, "&": _storm_and(a, b), "|": _storm_or(a, b)}
    until = _storm_until(texts.get(left, left), texts.get(right, right), low, high)
    return _storm_not(until) if negated else until


def _storm_not(a: str) -> str:
    """The negation; it passes through X and cancels a negation, so that Storm's automata stay small."""
    if a in _CONSTANTS:
        return _CONSTANTS[a]
    count = len(_NEXT_CHAIN.match(a)[0]) // 3  # type: ignore[index]
    inner = a[3 * count : len(a) - count]
    return _storm_steps(inner[2:-1] if inner.startswith("(!") else f"(!{inner})", count)


def _storm_joined(operator: str, deciding: str, a: str, b: str) -> str:
    """Both joined, without constants; `deciding` is the one that decides alone."""
    if deciding in (a, b):
        return deciding
    return b if a in _CONSTANTS else a if b in _CONSTANTS else f"({a} {operator} {b})"


_storm_and = partial(_storm_joined, "&", "false")
_storm_or = partial(_storm_joined, "|", "true")


def _storm_steps(a: str, count: int) -> str:
    """`a` after so many steps, which an infinite word always has."""
    if count > LONGEST_STORM_CHAIN:
        raise LimitError(
            f"the formula looks {count} steps ahead; at most {LONGEST_STORM_CHAIN} can be written for Storm"
        )
    return a if a in _CONSTANTS else "(X " * count + a + ")" * count


def _storm_eventually(a: str, low: int, high: int | None) -> str:
    if a in _CONSTANTS:
        return a
    return _storm_steps(f"(F {a})" if high is None else f"(F<={high - low} {a})", low)


def _storm_until(a: str, b: str, low: int, high: int | None) -> str:
    """a U[low,high] b as: `a` before step `low`, and from there on a U[0,high-low] b.

    A lower bound is never left to Storm 2.0.0: on a chain whose states all have `b` and not `a` it gives
    `"a" U[1,1] "b"` probability 1, and nested ones can come out wrong as well.
    """
    if a == "true" or b == "false":
        return _storm_eventually(b, low, high)
    if a == "false":
        return b if low == 0 else "false"
    before = "true" if low == 0 else _storm_not(_storm_eventually(_storm_not(a), 0, low - 1))
    if b == "true":
        return before
    until = f"({a} U {b})" if high is None else f"({a} U<={high - low} {b})"
    return _storm_and(before, _storm_steps(until, low))
