"""Reading formulas of LTL in the spellings of Spot, PRISM and TuLiP and in mathematical signs.

Precedence is Spot's: from loosest to tightest `->` and `<->` (to the right), `xor`, `|`, `&`, `U R W M` (to the
right), `! X F G`, comparisons, sums, products, unary minus. `||` is "or". PRISM and Spot differ on `->` beside
`<->`, so that mix needs parentheses. A chain `a <-> b <-> c` leans to the right as well; equivalence is associative.

Bounds count steps, ends included: `F<=10 a`, `F<10 a`, `F>=3 a`, `F>3 a`, `F=5 a`, `F[2,5] a` (also `2:5`, `2..5`),
the same for G, U and R, and `X[3] a`. In seconds all of the first are written `F<=2.5s a`, `F[1s,2s] a`.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

from lark import Lark, Token, Transformer, v_args
from lark.visitors import merge_transformers

from verifier.language.expressions.kinds import misuse, result_kind
from verifier.language.expressions.parser import ExpressionActions, position_of, problem, read, require_kinds
from verifier.language.expressions.printing import rebuilt
from verifier.language.expressions.source import Source
from verifier.language.expressions.syntax import TEMPORAL, Interval, Node, Position, Seconds, Temporal, fold
from verifier.language.grammars import FORMULAS, parser_of

_START = Position(1, 1)
_LARGEST_BOUND = 2**31 - 1


def parse_formula(text: str, source: Source | None = None, start: Position = _START, end: str = "the end") -> Node:
    """The formula that `text` spells; a state condition is one too.

    Args:
        source: the whole text of which `text` is a part, for positions and messages; `text` itself by default.
        start: where in `source` the text begins.
        end: what follows the text, as messages call it.

    Raises:
        InputError: with the place, what was expected and what was found.
    """
    whole = source or Source(text)
    node = read(_parser(), text, whole, start, end)
    if result_kind(node) == "number":
        message, hint = misuse("boolean", "number", node)
        raise whole.error(message, node.position, hint)
    return node


_CONNECTIVES = frozenset({"AND", "OR", "XOR", "IMPLIES", "IFF"})


def read_otherwise_by_prism(text: str) -> bool:
    """Whether PRISM and Storm, where temporal operators bind loosest, would read a formula of ours differently.

    >>> read_otherwise_by_prism("G a | b"), read_otherwise_by_prism("(G a) | G b")
    (True, False)
    """
    open_groups: list[set[str]] = [set()]
    for token in _parser().lex(text):
        name = token.type.removeprefix("grammar__")
        group = open_groups[-1]
        if token == "(":
            open_groups.append(set())
        elif token == ")":
            open_groups.pop()
        elif name in _CONNECTIVES:
            if "temporal" in group:
                return True
            group.add("connective")
        elif name in TEMPORAL:
            if TEMPORAL[name].operands == 2 and "connective" in group:
                return True
            group.add("temporal")
    return False


@cache
def _parser() -> Lark:
    return parser_of(FORMULAS, _actions())


def _actions() -> Transformer[Token, Node]:
    """The actions of both grammars; lark puts `grammar__` before the names of those that were imported."""
    merged: Transformer[Token, Node] = merge_transformers(  # type: ignore[no-untyped-call]
        FormulaActions(), grammar=ExpressionActions()
    )
    return merged


@dataclass(frozen=True)
class _Bound:
    """A bound as it was written; `single` for `[n]`, which only X takes."""

    interval: Interval
    position: Position
    single: bool = False
    seconds: Seconds | None = None


@v_args(inline=True)
class FormulaActions(Transformer[Token, Node]):
    """What each alternative of `ltl.lark` builds; those it takes over are built by `ExpressionActions`."""

    def prefixed(self, operator: Token, *bound_and_operand: Any) -> Node:
        """`X a`, `F a`, `G a`, `F<=3 a`, `X[3] a`."""
        *bound, operand = bound_and_operand
        return _temporal(operator, (operand,), bound, position_of(operator))

    def joined(self, left: Node, operator: Token, *bound_and_right: Any) -> Node:
        """`a U b`, `a R b`, `a W b`, `a M b`, `a U<=3 b`."""
        *bound, right = bound_and_right
        return _temporal(operator, (left, right), bound, left.position)

    def compared(self, sign: Token, number: Token) -> _Bound:
        """`<=3`, `<3`, `>=3`, `>3`, `=3`, and the same in seconds: `<=2.5s`."""
        if number.type == "SECONDS":
            value = _seconds(number)
            low, high = (Fraction(0) if sign.type in _FROM_0 else value), (None if sign.type in _ENDLESS else value)
            ends = Seconds(low, high, low_open=sign.type == "GT", high_open=sign.type == "LT")
            return _duration(sign, ends)
        steps = _steps(number) + {"GT": 1, "LT": -1}.get(sign.type, 0)
        return _bound(sign, 0 if sign.type in _FROM_0 else steps, None if sign.type in _ENDLESS else steps)

    def single(self, number: Token) -> _Bound:
        """`[3]`."""
        return _Bound(Interval(_steps(number), _steps(number)), position_of(number), single=True)

    def between(self, low: Token, *separator_and_high: Token) -> _Bound:
        """`[2,5]`, `[2:5]`, `[2..5]`, and the same in seconds: `[1s,2s]`."""
        high = separator_and_high[-1]
        if low.type == "SECONDS":
            return _duration(low, Seconds(_seconds(low), _seconds(high)))
        return _bound(low, _steps(low), _steps(high))


_FROM_0, _ENDLESS = ("LE", "LT"), ("GE", "GT")
"""Signs of bounds that begin at once, and of those that have no end."""


def in_steps(node: Node, step_s: Fraction | None, source: Source | None = None) -> Node:
    """`node` with every bound in seconds counted in steps of this duration.

    Raises:
        InputError: the duration of a step is not known, or a bound is not a whole number of steps.
    """

    def steps(operator: Temporal, seconds: Fraction) -> int:
        if step_s is None:
            raise text.error(f"a bound in seconds {NEEDS_STEP}", operator.position)
        count = seconds / step_s
        if count.denominator > 1 or count > _LARGEST_BOUND:
            hint = "bounds are multiples of step_s" if count.denominator > 1 else "bounds are at most 2**31 - 1 steps"
            message = f"expected a whole number of steps, got {float(seconds):g} s for steps of {float(step_s):g} s"
            raise text.error(message, operator.position, hint)
        return int(count)

    def combine(temporal: Node, below: tuple[Node, ...]) -> Node:
        if not isinstance(temporal, Temporal) or temporal.seconds is None:
            return rebuilt(temporal, below)
        bound = temporal.seconds
        low = steps(temporal, bound.low) + bound.low_open
        high = None if bound.high is None else steps(temporal, bound.high) - bound.high_open
        if high is not None and high < low:
            raise text.error("the bound allows no step at all", temporal.position)
        return replace(temporal, operands=below, interval=Interval(low, high), seconds=None)

    text = source or Source("")
    return fold(node, combine)


NEEDS_STEP = "needs the duration of a step: step_s = ... in the model"


def _temporal(operator: Token, operands: tuple[Node, ...], bounds: list[_Bound], start: Position | None) -> Node:
    name, bound = operator.type, bounds[0] if bounds else None
    if bound is not None:
        _check_bound(name, bound)
    seconds = bound.seconds if bound else None
    node = Temporal(name, operands, bound.interval if bound and seconds is None else None, start, seconds)
    require_kinds(node)
    return node


def _check_bound(operator: str, bound: _Bound) -> None:
    if operator == "X":
        if not bound.single:
            raise problem("X takes a number of steps in brackets", bound.position, "write X[3] a")
        if bound.interval.low == 0:
            raise problem("X[0] is no step: expected at least 1", bound.position)
    elif instead := TEMPORAL[operator].instead:
        raise problem(f"{operator} takes no bound", bound.position, f"write it with U: {instead}")
    elif bound.single:
        n = bound.interval.low
        hint = f"write {operator}={n} for step {n} alone, {operator}<={n} for the steps up to it"
        raise problem(f"one number in brackets does not bound {operator}", bound.position, hint)


def _steps(number: Token) -> int:
    if not number.isdigit():
        raise problem(f"a bound counts steps: expected a whole number, found {number}", position_of(number))
    digits = number.lstrip("0") or "0"
    if len(digits) > 10 or int(digits) > _LARGEST_BOUND:
        raise problem(f"a bound is at most {_LARGEST_BOUND} steps", position_of(number))
    return int(digits)


def _seconds(number: Token) -> Fraction:
    if len(number) > 20:
        raise problem(f"the number {number} is too long", position_of(number))
    return Fraction(number.removesuffix("s"))


def _duration(first: Token, seconds: Seconds) -> _Bound:
    if seconds.high is not None and seconds.high < seconds.low:
        raise problem("the bound allows no step at all", position_of(first), "bounds are [low,high], ends included")
    return _Bound(Interval(0, None), position_of(first), seconds=seconds)


def _bound(first: Token, low: int, high: int | None) -> _Bound:
    if high is not None and high < low:
        raise problem("the bound allows no step at all", position_of(first), "bounds are [low,high], ends included")
    return _Bound(Interval(low, high), position_of(first))
