"""The same formula in other words: over atoms, over six operators, and in the subset that Storm reads."""

from __future__ import annotations

import re
from dataclasses import replace

from verifier.errors import LimitError
from verifier.expressions.printing import to_text
from verifier.expressions.syntax import (
    TRUE,
    Boolean,
    Call,
    Name,
    Node,
    Number,
    Operation,
    Temporal,
    fold,
)

LARGEST_CORE = 100_000
"""Subformulas that `to_core` builds at most."""
LONGEST_STORM_TEXT = 1_000_000
"""Characters that `to_storm` writes at most; nested equivalences double the text each time."""

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
        if not temporal or not isinstance(node, Operation | Temporal):
            return False, node
        return True, replace(node, operands=tuple(new if inside else atom(new) for inside, new in below))

    temporal, rewritten = fold(formula, combine)
    return rewritten if temporal else atom(rewritten), {name: state for state, name in names.items()}


def _largest_states(formula: Node) -> tuple[Node, ...]:
    """The largest subformulas without temporal operator, constants left out, each once, in the order of the text."""

    def combine(node: Node, below: tuple[tuple[bool, tuple[Node, ...]], ...]) -> tuple[bool, tuple[Node, ...]]:
        if isinstance(node, Temporal) or any(temporal for temporal, _ in below):
            return True, tuple(dict.fromkeys(state for _, states in below for state in states))
        return False, () if isinstance(node, Boolean) else (node,)

    return fold(formula, combine)[1]


def expanded_size(formula: Node) -> int:
    """At most so many different subformulas has `to_core(formula)`: the price of its bounds, without paying it."""
    sizes: list[int] = []

    def combine(node: Node, _: tuple[None, ...]) -> None:
        sizes.append(_core_cost(node))

    fold(formula, combine)
    return sum(sizes) + 1


def _core_cost(node: Node) -> int:
    """Subformulas that one operator turns into: at most 8, and at most 5 for every step of a bound."""
    if isinstance(node, Temporal) and node.interval is not None:
        bound = node.interval
        return 8 + 5 * (bound.low if bound.high is None else bound.high)
    return 8 if isinstance(node, Operation | Temporal) else 1


def to_core(formula: Node) -> Node:
    """The same language in `true`, names, `!`, `&`, `X` and `U` without bounds.

    State subformulas must be names, constants and connectives (see `abstract`). Bounds are unrolled by the
    expansion laws; what is repeated is shared, so the size grows with the sum of the bounds.

    Raises:
        LimitError: the result could have more than `LARGEST_CORE` subformulas.
        ValueError: a state subformula is something else.
    """
    size = expanded_size(formula)
    if size > LARGEST_CORE:
        raise LimitError(f"with its bounds unrolled the formula has {size} parts; at most {LARGEST_CORE} are built")

    def combine(node: Node, below: tuple[Node, ...]) -> Node:
        if isinstance(node, Boolean):
            return TRUE if node.value else _not(TRUE)
        if isinstance(node, Name):
            return node
        if isinstance(node, Number | Call):
            raise _not_propositional(node)
        return _core_temporal(node, below) if isinstance(node, Temporal) else _core_connective(node, below)

    return fold(formula, combine)


def _not_propositional(node: Node) -> ValueError:
    return ValueError(f"not a formula over propositions: {to_text(node)}")


def _not(a: Node) -> Node:
    return a.operands[0] if isinstance(a, Operation) and a.operator == "!" else Operation("!", (a,))


def _and(a: Node, b: Node) -> Node:
    return Operation("&", (a, b))


def _or(a: Node, b: Node) -> Node:
    return _not(_and(_not(a), _not(b)))


def _core_connective(node: Operation, below: tuple[Node, ...]) -> Node:
    a, b = below[0], below[-1]
    match node.operator:
        case "!":
            return _not(a)
        case "&":
            return _and(a, b)
        case "|":
            return _or(a, b)
        case "->":
            return _not(_and(a, _not(b)))
        case "<->":
            return _or(_and(a, b), _and(_not(a), _not(b)))
        case "xor":
            return _or(_and(a, _not(b)), _and(_not(a), b))
    raise _not_propositional(node)


def _core_temporal(node: Temporal, below: tuple[Node, ...]) -> Node:
    a, b = below[0], below[-1]
    low, high = (0, None) if node.interval is None else (node.interval.low, node.interval.high)
    match node.operator:
        case "X":
            return _steps(a, max(low, 1))
        case "F":
            return _until(TRUE, a, low, high)
        case "G":
            return _not(_until(TRUE, _not(a), low, high))
        case "U":
            return _until(a, b, low, high)
        case "R":
            return _not(_until(_not(a), _not(b), low, high))
        case "W":
            return _not(_until(_not(b), _and(_not(a), _not(b)), 0, None))
        case _:  # M
            return _until(b, _and(a, b), 0, None)


def _steps(a: Node, count: int) -> Node:
    for _ in range(count):
        a = Temporal("X", (a,))
    return a


def _until(a: Node, b: Node, low: int, high: int | None) -> Node:
    """a U[low,high] b, by a U[0,k+1] b = b | (a & X (a U[0,k] b)) and a U[k+1,..] b = a & X (a U[k,..] b)."""
    result = b
    if high is None:
        result = Temporal("U", (a, b))
    else:
        for _ in range(high - low):
            following = Temporal("X", (result,))
            result = _or(b, following if a == TRUE else _and(a, following))
    for _ in range(low):
        following = Temporal("X", (result,))
        result = following if a == TRUE else _and(a, following)
    return result


def to_storm(formula: Node) -> str:
    """`formula` as a path formula that Storm reads with the same meaning.

    Storm's grammar lacks `-> <-> xor R W M` and bounds on G, takes `||` for conditional probability, and binds
    F, G, X and ! more weakly than & and |. So only `! & | X F G U` are written, with bounds `<=k` and `[l,h]` on F
    and U, and everything stands in parentheses. State subformulas must be names that Storm allows as labels
    (`abstract` makes such), constants and connectives.

    Raises:
        LimitError: the text would be longer than `LONGEST_STORM_TEXT`.
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
            return f"(!{a})"
        case "&":
            return f"({a} & {b})"
        case "|":
            return f"({a} | {b})"
        case "->":
            return f"((!{a}) | {b})"
        case "<->":
            return f"(({a} & {b}) | ((!{a}) & (!{b})))"
        case "xor":
            return f"(({a} & (!{b})) | ((!{a}) & {b}))"
    raise _not_propositional(node)


def _storm_temporal(node: Temporal, below: tuple[str, ...]) -> str:
    a, b = below[0], below[-1]
    low, high = (0, None) if node.interval is None else (node.interval.low, node.interval.high)
    match node.operator:
        case "X":
            return f"(X {a})" if low <= 1 else f"(F[{low},{low}] {a})"
        case "F":
            return _storm_eventually(a, low, high)
        case "G":
            return f"(!{_storm_eventually(f'(!{a})', low, high)})" if node.interval else f"(G {a})"
        case "U":
            return _storm_until(a, b, low, high)
        case "R":
            return f"(!{_storm_until(f'(!{a})', f'(!{b})', low, high)})"
        case "W":
            return f"(!((!{b}) U ((!{a}) & (!{b}))))"
        case _:  # M
            return f"({b} U ({a} & {b}))"


def _storm_eventually(a: str, low: int, high: int | None) -> str:
    if high is None:
        return f"(F {a})" if low == 0 else f"(F[{low},{low}] (F {a}))"
    return f"(F<={high} {a})" if low == 0 else f"(F[{low},{high}] {a})"


def _storm_until(a: str, b: str, low: int, high: int | None) -> str:
    """`U>=low` is not read everywhere: `a` holds before step `low`, and from there on `a U b`."""
    if high is None:
        if low == 0:
            return f"({a} U {b})"
        return f"((!(F<={low - 1} (!{a}))) & (F[{low},{low}] ({a} U {b})))"
    return f"({a} U<={high} {b})" if low == 0 else f"({a} U[{low},{high}] {b})"
