"""Positive normal form: negation only in front of state formulas, and four temporal operators.

A formula becomes a directed acyclic graph of numbered nodes: `TEMPORAL` of `verifier.language.expressions.syntax`
says what each operator is by `U` and `R`, `DUAL` what its negation is over negated operands; `!X[n] a` is `X[n] !a`.

`a U[i,j] b` holds at a position p when b holds at some p+k with i <= k <= j and a holds at every position from p
to p+k-1; `R` is its dual. Maximal subformulas without a temporal operator stay whole (unless nested deeper than
`PROPOSITION_DEPTH`): they are the *propositions*, and a *letter* is the set of propositions that hold at a
position, kept as the bits of an int.
"""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from verifier.base.errors import LimitError
from verifier.language.expressions.syntax import DUAL, Boolean, Node, Operation, Temporal, children, fold

FALSE_NODE = 0
TRUE_NODE = 1
NESTING_LIMIT = 100
PROPOSITION_DEPTH = 50


@dataclass(frozen=True, slots=True)
class PositiveNode:
    """One node of a formula in positive normal form.

    `kind` is `false`, `true`, `holds` or `fails` (proposition number `low` does or does not hold), `&`, `|`,
    `X` (after exactly `low` steps), `U` or `R` (within steps `low..high`; `high` None means without end).
    `operands` are numbers of nodes in the same `PositiveFormula`, each smaller than the node's own.
    """

    kind: str
    operands: tuple[int, ...] = ()
    low: int = 0
    high: int | None = None


class PositiveFormula:
    """The positive normal form of one formula, and of the obligations that its progression leaves.

    Attributes:
        nodes: the nodes by number; equal nodes have one number, and nodes are only ever added.
        support: per node, the bits of the propositions it depends on.
        propositions: the state formulas; bit i of a letter says whether `propositions[i]` holds.
        root: number of the formula itself.

    Raises:
        LimitError: if temporal operators nest deeper than `NESTING_LIMIT`.
    """

    def __init__(self, formula: Node) -> None:
        self.nodes: list[PositiveNode] = []
        self.support: list[int] = []
        self._depth: list[int] = []
        self._numbers: dict[PositiveNode, int] = {}
        self._proposition_numbers: dict[Node, int] = {}
        self._number(PositiveNode("false"))
        self._number(PositiveNode("true"))
        self.root = self._convert(formula)

    @property
    def propositions(self) -> tuple[Node, ...]:
        """The state formulas whose truth makes up a letter, in the order of the bits."""
        return tuple(self._proposition_numbers)

    def after(self, steps: int, operand: int) -> int:
        """The node for `X[steps] operand`; the operand itself for 0 steps."""
        node = self.nodes[operand]
        if steps == 0 or node.kind in ("false", "true"):
            return operand
        if node.kind == "X":
            return self.after(steps + node.low, node.operands[0])
        return self._number(PositiveNode("X", (operand,), steps))

    def _number(self, node: PositiveNode) -> int:
        known = self._numbers.get(node)
        if known is not None:
            return known
        support = 1 << node.low if node.kind in ("holds", "fails") else 0
        for operand in node.operands:
            support |= self.support[operand]
        depth = 1 + max((self._depth[operand] for operand in node.operands), default=0)
        if depth > NESTING_LIMIT:
            raise LimitError(f"the formula nests its operators {depth} deep; the limit is {NESTING_LIMIT}")
        self.nodes.append(node)
        self.support.append(support)
        self._depth.append(depth)
        self._numbers[node] = len(self.nodes) - 1
        return len(self.nodes) - 1

    def _junction(self, kind: str, numbers: Iterable[int]) -> int:
        neutral, absorbing = (TRUE_NODE, FALSE_NODE) if kind == "&" else (FALSE_NODE, TRUE_NODE)
        members: set[int] = set()
        for number in numbers:
            node = self.nodes[number]
            members.update(node.operands if node.kind == kind else (number,))
        members.discard(neutral)
        literals = {(node.kind, node.low) for node in map(self.nodes.__getitem__, members)}
        if absorbing in members or any(k == "holds" and ("fails", p) in literals for k, p in literals):
            return absorbing
        if len(members) <= 1:
            return members.pop() if members else neutral
        return self._number(PositiveNode(kind, tuple(sorted(members))))

    def fixpoint(self, kind: str, left: int, right: int, low: int, high: int | None) -> int:
        """The node for `left U[low,high] right` or, with true and false, and and or exchanged, for `left R right`."""
        weak, strong = (FALSE_NODE, TRUE_NODE) if kind == "U" else (TRUE_NODE, FALSE_NODE)
        node = self.nodes[right]
        if right == weak or (left == weak and low > 0):
            return weak
        if (low == 0 and (left == weak or high == 0 or right == strong)) or (left == right == strong):
            return right
        if left == strong and low == high:
            return self.after(low, right)
        if left == strong and (low, high) == (0, None) and self._is_unbounded(right, kind, strong):
            return right  # F F a = F a, G G a = G a
        shift = min(self._delay(left), self._delay(right))
        if shift:  # X a U X b = X (a U b)
            undelayed = self.fixpoint(kind, self._earlier(left, shift), self._earlier(right, shift), low, high)
            return self.after(shift, undelayed)
        distributing = "|" if kind == "U" else "&"
        if left == strong and node.kind == distributing:  # F (a | b) = F a | F b, G (a & b) = G a & G b
            parts = [self.fixpoint(kind, left, operand, low, high) for operand in node.operands]
            return self._junction(distributing, parts)
        return self._number(PositiveNode(kind, (left, right), low, high))

    def _is_unbounded(self, number: int, kind: str, left: int) -> bool:
        node = self.nodes[number]
        return node.kind == kind and node.operands[0] == left and (node.low, node.high) == (0, None)

    def _delay(self, number: int) -> int:
        """How many leading `X` the node has; constants have as many as one likes."""
        node = self.nodes[number]
        if number in (FALSE_NODE, TRUE_NODE):
            return sys.maxsize
        return node.low if node.kind == "X" else 0

    def _earlier(self, number: int, shift: int) -> int:
        node = self.nodes[number]
        return self.after(node.low - shift, node.operands[0]) if node.kind == "X" else number

    def _convert(self, formula: Node) -> int:
        """Number of `formula`; without recursion, for formulas may be long chains of `&`."""
        split = _nodes_to_split(formula)
        done: dict[tuple[int, bool], int] = {}
        pending = [(formula, False)]
        while pending:
            node, negated = pending[-1]
            if (id(node), negated) in done:
                pending.pop()
                continue
            parts = _signed_parts(node, negated) if id(node) in split else []
            missing = [(part, sign) for part, sign in parts if (id(part), sign) not in done]
            if missing:
                pending.extend(missing)
                continue
            pending.pop()
            if id(node) in split:
                number = self._combine(node, negated, lambda part, sign: done[id(part), sign])
            else:
                number = self._literal(node, negated)
            done[id(node), negated] = number
        return done[id(formula), False]

    def _literal(self, node: Node, negated: bool) -> int:
        while isinstance(node, Operation) and node.operator == "!":
            node, negated = node.operands[0], not negated
        if isinstance(node, Boolean):
            return TRUE_NODE if node.value != negated else FALSE_NODE
        number = self._proposition_numbers.setdefault(node, len(self._proposition_numbers))
        return self._number(PositiveNode("fails" if negated else "holds", (), number))

    def _combine(self, node: Node, negated: bool, part: Callable[[Node, bool], int]) -> int:
        """The node's number from those of its operands, where `part(operand, sign)` negates if `sign`."""
        if isinstance(node, Temporal):
            return self._combine_temporal(node, negated, part)
        assert isinstance(node, Operation)
        if node.operator == "!":
            return part(node.operands[0], not negated)
        left, right = node.operands
        if node.operator in ("xor", "<->"):
            differ = (node.operator == "xor") != negated
            pairs = ((part(left, sign), part(right, differ != sign)) for sign in (False, True))
            return self._junction("|", [self._junction("&", pair) for pair in pairs])
        kind = "&" if node.operator == "&" else "|"
        left_sign = negated != (node.operator == "->")
        return self._junction(DUAL[kind] if negated else kind, (part(left, left_sign), part(right, negated)))

    def _combine_temporal(self, node: Temporal, negated: bool, part: Callable[[Node, bool], int]) -> int:
        operands = [part(operand, negated) for operand in node.operands]
        low = 0 if node.interval is None else node.interval.low
        high = None if node.interval is None else node.interval.high
        if node.operator == "X":
            return self.after(low or 1, operands[0])
        kind, *words = node.in_core(negated)
        named = {"a": operands[0], "b": operands[-1], "true": TRUE_NODE, "false": FALSE_NODE}
        left, right = (named[word] if word in named else self._junction(word, operands) for word in words)
        return self.fixpoint(kind, left, right, low, high)


def _nodes_to_split(formula: Node) -> set[int]:
    """Identities of the nodes that are no propositions: they hold a temporal operator or are too deep to hash."""
    split: set[int] = set()

    def look(node: Node, below: tuple[bool, ...]) -> bool:
        temporal = isinstance(node, Temporal) or any(below)
        if temporal or node.depth > PROPOSITION_DEPTH:
            split.add(id(node))
        return temporal

    fold(formula, look)
    return split


def _signed_parts(node: Node, negated: bool) -> list[tuple[Node, bool]]:
    """The operands with the sign under which the normal form of `node` needs them."""
    if isinstance(node, Operation):
        if node.operator == "!":
            return [(node.operands[0], not negated)]
        if node.operator in ("xor", "<->"):
            return [(operand, sign) for operand in node.operands for sign in (False, True)]
        if node.operator == "->":
            return [(node.operands[0], not negated), (node.operands[1], negated)]
    return [(operand, negated) for operand in children(node)]
