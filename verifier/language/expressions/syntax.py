"""Syntax of the one small language for conditions and arithmetic over model variables.

Specs and system models share it; `verifier.language.ltl` adds the temporal operators as one more node. A node is a
frozen value; two nodes are equal when they read the same, wherever they stood in a file. Nothing here recurses:
equality, hashing and `fold` survive any depth, and a subformula that is shared is visited once.

| node        | reads                                                       |
|-------------|-------------------------------------------------------------|
| `Number`    | an integer, or a decimal kept as an exact fraction           |
| `Boolean`   | `true`, `false`                                              |
| `Name`      | a variable, constant or proposition                          |
| `Operation` | an operator of the tables below with one or two operands     |
| `Call`      | `min(a, b)`, `max(a, b)`, `abs(a)`, `floor(a)`, `ceil(a)`, `ite(c, a, b)`, and an atom of `ATOMS` |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, TypeAlias, TypeGuard, TypeVar

from verifier.language.expressions.source import Position as Position

T = TypeVar("T")

ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "neg"})
COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})
CONNECTIVES = frozenset({"!", "&", "|", "xor", "->", "<->"})
ATOMS = frozenset({"sees", "count", "report", "confirmed", "present"})
"""Functions of names of classes, objects or trackers, which are no operands; the last one is about the state."""
FUNCTIONS = ATOMS | {"min", "max", "abs", "floor", "ceil", "ite"}


@dataclass(frozen=True, slots=True)
class TemporalOperator:
    """What there is to know of a temporal operator of `ltl.lark`, whose token has its name.

    Attributes:
        operands: how many: `a`, or `a` and `b`.
        core: what it is in other words: `U` or `R`, and its two operands, of "a", "b", "true", "false", "&" for
            `a & b` and "|" for `a | b`; None for `X`. A bound goes to that.
        words: what else spells it in letters.
        instead: how to write what a bound would mean, where it takes none.
    """

    operands: int
    core: tuple[str, str, str] | None
    words: tuple[str, ...] = ()
    instead: str = ""


TEMPORAL: Mapping[str, TemporalOperator] = {
    "X": TemporalOperator(1, None, ("next",)),
    "F": TemporalOperator(1, ("U", "true", "a"), ("eventually",)),
    "G": TemporalOperator(1, ("R", "false", "a"), ("always",)),
    "U": TemporalOperator(2, ("U", "a", "b"), ("until",)),
    "R": TemporalOperator(2, ("R", "a", "b")),
    "W": TemporalOperator(2, ("R", "b", "|"), instead="(a U<=3 b) | (G<=3 a)"),
    "M": TemporalOperator(2, ("U", "b", "&"), instead="b U<=3 (a & b)"),
}
"""Baier and Katoen, Principles of Model Checking, section 5.1.5, with bounds."""
DUAL = {"U": "R", "R": "U", "&": "|", "|": "&", "true": "false", "false": "true"}
TEMPORAL_WORDS = frozenset(TEMPORAL).union(*(operator.words for operator in TEMPORAL.values()))
RESERVED = (
    frozenset({"min", "max", "abs", "floor", "ceil", "sees"}) | TEMPORAL_WORDS | {"true", "false", "True", "False"}
)
RESERVED |= {"not", "and", "or", "xor", "implies", "iff"}
"""Words that name an operator, a constant or an early function; as a name they stand in double quotes."""


class _Value:
    """Equality, hash and depth of nodes: by content, without recursion, computed once when made."""

    __slots__ = ("_depth", "_hash")
    _depth: int
    _hash: int

    def __post_init__(self) -> None:
        self._seal()

    def _content(self) -> tuple[object, ...]:
        """What this node says beside its operands: its first field, unless it has more to say."""
        return (getattr(self, self.__slots__[0]),)

    def _below(self) -> tuple[Node, ...]:
        """The direct operands."""
        return ()

    def _seal(self) -> None:
        below = self._below()
        content = (type(self).__name__, self._content(), tuple([child._hash for child in below]))
        object.__setattr__(self, "_hash", hash(content))
        object.__setattr__(self, "_depth", 1 + max([child._depth for child in below], default=0))

    @property
    def depth(self) -> int:
        """Nodes on the longest way down, this one and the leaf included."""
        return self._depth

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Value):
            return NotImplemented
        pending: list[tuple[_Value, _Value]] = [(self, other)]
        compared: set[tuple[int, int]] = set()
        while pending:
            left, right = pending.pop()
            if left is right or (id(left), id(right)) in compared:
                continue
            if left._hash != right._hash or type(left) is not type(right):
                return False
            below_left, below_right = left._below(), right._below()
            if left._content() != right._content() or len(below_left) != len(below_right):
                return False
            compared.add((id(left), id(right)))
            pending.extend(zip(below_left, below_right, strict=True))
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuilt from its fields: the hash of a text differs from process to process."""
        return type(self), tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, eq=False)
class Number(_Value):
    """An exact number: integers stay integers, decimals become fractions."""

    value: int | Fraction
    position: Position | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Boolean(_Value):
    """`true` or `false`."""

    value: bool
    position: Position | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Name(_Value):
    """A variable, constant or proposition; what it is, its declaration says."""

    name: str
    position: Position | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.name or not self.name.isprintable() or '"' in self.name:
            raise ValueError(f"not a name: {self.name!r}")
        self._seal()


@dataclass(frozen=True, slots=True, eq=False)
class Operation(_Value):
    """`operator` applied to its operands: one for `neg` and `!`, two for every other."""

    operator: str
    operands: tuple[Node, ...]
    position: Position | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.operator not in ARITHMETIC | COMPARISONS | CONNECTIVES:
            raise ValueError(f"unknown operator {self.operator!r}")
        expected = 1 if self.operator in ("neg", "!") else 2
        if len(self.operands) != expected:
            raise ValueError(f"{self.operator!r} takes {expected} operand(s), got {len(self.operands)}")
        self._seal()

    def _below(self) -> tuple[Node, ...]:
        return self.operands


@dataclass(frozen=True, slots=True, eq=False)
class Call(_Value):
    """A function of `FUNCTIONS`.

    `ite(c, a, b)` is `a` where `c` holds, else `b`. Of the detector's reports `sees(c)` asks whether there is one of
    class c, `count(c)` how many there are, and `report(o, c)`, written `report(o) = c`, whether the object named o is
    reported as c; a number as last argument, written `within = d`, asks for reported bins below d metres only.
    `confirmed(t)` is whether the tracker t is, `present(n)` whether an object of that name or class is there.
    """

    function: str
    arguments: tuple[Node, ...]
    position: Position | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.function not in FUNCTIONS:
            raise ValueError(f"unknown function {self.function!r}")
        self._seal()

    def _below(self) -> tuple[Node, ...]:
        return self.arguments


@dataclass(frozen=True, slots=True)
class Interval:
    """Steps `low..high` of a bounded temporal operator, both included; `high` None means without end."""

    low: int
    high: int | None

    def __post_init__(self) -> None:
        if self.low < 0 or (self.high is not None and self.high < self.low):
            raise ValueError(f"not an interval of steps: [{self.low}, {self.high}]")


@dataclass(frozen=True, slots=True)
class Seconds:
    """A bound as it is written in seconds; `high` None means without end, and an open end does not belong to it."""

    low: Fraction
    high: Fraction | None
    low_open: bool = False
    high_open: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Temporal(_Value):
    """A temporal operator of `verifier.language.ltl` over formulas.

    `operator` is one of `TEMPORAL`. `interval` bounds those that take a bound; for X it is `[n, n]` with n >= 1 the
    number of steps, and None means one step. `seconds` stands in its place until the duration of a step is known
    (`in_steps`). An expression without a `Temporal` node anywhere below it is a state formula.
    """

    operator: str
    operands: tuple[Node, ...]
    interval: Interval | None = None
    position: Position | None = field(default=None, repr=False)
    seconds: Seconds | None = None

    def in_core(self, negated: bool = False) -> tuple[str, str, str]:
        """What `TEMPORAL` says that an operator other than X is; its dual, which takes negated operands."""
        core = TEMPORAL[self.operator].core
        assert core is not None
        kind, left, right = (DUAL.get(word, word) for word in core) if negated else core
        return kind, left, right

    def __post_init__(self) -> None:
        if self.operator not in TEMPORAL:
            raise ValueError(f"unknown temporal operator {self.operator!r}")
        if len(self.operands) != TEMPORAL[self.operator].operands:
            raise ValueError(f"wrong number of operands for {self.operator!r}: {len(self.operands)}")
        if (self.interval or self.seconds) is not None and TEMPORAL[self.operator].instead:
            raise ValueError(f"{self.operator} takes no bound")
        steps = self.interval if self.operator == "X" else None
        if steps is not None and not 1 <= steps.low == steps.high:
            raise ValueError("X[n] takes one number of steps, at least 1")
        self._seal()

    def _content(self) -> tuple[object, ...]:
        return (self.operator, self.interval, self.seconds)

    def _below(self) -> tuple[Node, ...]:
        return self.operands


Node: TypeAlias = "Number | Boolean | Name | Operation | Call | Temporal"
"""Any node; a formula of LTL is a Node whose type is Boolean."""

TRUE = Boolean(True)
FALSE = Boolean(False)


def conjunction(nodes: tuple[Node, ...]) -> Node:
    """`nodes[0] & nodes[1] & ...`; true when there are none."""
    if not nodes:
        return TRUE
    result = nodes[0]
    for node in nodes[1:]:
        result = Operation("&", (result, node))
    return result


def children(node: Node) -> tuple[Node, ...]:
    """The direct operands of a node."""
    return node._below()


def fold(
    root: Node, combine: Callable[[Node, tuple[T, ...]], T], whole: Callable[[Node], bool] = lambda _: False
) -> T:
    """`combine(node, results for its operands)` from the leaves up to the root, every shared node once.

    The labels inside an atom are no operands: `combine` gets the call with no results, and so it does for nodes that
    it takes as a `whole`.
    """
    if not root._below():
        return combine(root, ())
    done: dict[int, T] = {}
    pending = [root]
    while pending:
        node = pending[-1]
        below = node._below()
        if below and (is_atom(node) or whole(node)):
            below = ()
        waiting = [child for child in below if id(child) not in done]
        if waiting:
            pending.extend(reversed(waiting))
            continue
        pending.pop()
        if id(node) not in done:
            done[id(node)] = combine(node, tuple([done[id(child)] for child in below]))
    return done[id(root)]


def is_atom(node: Node) -> TypeGuard[Call]:
    """Whether this asks about reports or presence: a function of `ATOMS`."""
    return isinstance(node, Call) and node.function in ATOMS


def is_choice(node: Node) -> bool:
    """Whether this is `ite(condition, a, b)`, of which only the branch taken is evaluated."""
    return isinstance(node, Call) and node.function == "ite"


def size(root: Node) -> int:
    """Number of nodes of the tree: a shared node counts at every use."""
    return fold(root, lambda _, below: 1 + sum(below))


def nodes_in(root: Node) -> list[Node]:
    """Every node, operands first and from left to right, each that is shared once; none inside atoms."""
    nodes: list[Node] = []
    fold(root, lambda node, _: nodes.append(node))
    return nodes


def names_in(node: Node) -> frozenset[str]:
    """Every name that occurs in `node`, but for the labels inside atoms."""
    return frozenset(part.name for part in nodes_in(node) if isinstance(part, Name))


def atoms_in(node: Node) -> frozenset[Call]:
    """Every atom that occurs in `node`."""
    return frozenset(filter(is_atom, nodes_in(node)))


def labels_of(atom: Call) -> tuple[str, ...]:
    """The names inside an atom: a class, or an object and a class."""
    return tuple(argument.name for argument in atom.arguments if isinstance(argument, Name))


def is_temporal(node: Node) -> bool:
    """Whether a temporal operator stands anywhere in `node`."""
    return any(isinstance(part, Temporal) for part in nodes_in(node))
