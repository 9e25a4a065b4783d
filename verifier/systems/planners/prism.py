"""A module of PRISM as a planner: its variables are memory, what its updates set and it does not declare are inputs.

Guards speak about variables of the model, memory, and `sees_ped` for `sees(ped)`. In every reached case one guard
holds; an update that would be drawn is refused. Labels of commands mean nothing here: one command is one step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark, Token, Transformer, v_args
from lark.visitors import merge_transformers

from verifier.base.errors import InputError, Place
from verifier.base.files import decoded
from verifier.language.expressions import Source, substitute
from verifier.language.expressions.parser import ExpressionActions, position_of, problem, read, require_kinds
from verifier.language.expressions.source import Position
from verifier.language.expressions.syntax import Call, Name, Node, Number, Operation, names_in
from verifier.language.grammars import parser_of
from verifier.systems.model_parts import Memory, Range, Rule

SEES = "sees_"


@dataclass(frozen=True)
class _Command:
    guard: Node
    updates: dict[str, tuple[Node, Position]]
    line: int


@dataclass(frozen=True)
class _Module:
    name: str
    memory: tuple[Memory, ...]
    truths: frozenset[str]
    commands: tuple[_Command, ...]


@dataclass(frozen=True)
class Commands:
    """What a module does.

    Attributes:
        rules: a rule for each command.
        memory: its variables; conditions are 0 and 1.
        places: where each command stands, by number.
    """

    rules: tuple[Rule, ...]
    memory: tuple[Memory, ...]
    places: tuple[Source, ...]


def module_of(raw: bytes, file: str, name: str | None, path: str) -> Commands:
    """The commands of a module.

    Args:
        raw: the bytes of the file.
        name: of the module; None for the only one.
        path: dotted key of the planner.

    Raises:
        InputError: no such file or module, with line and column.
    """
    text = decoded(raw, Place(file))
    source = Source(text, file)
    parts: Any = read(_parser(), text, source, Position(1, 1), "the end")
    modules = {part.name: part for part in parts if isinstance(part, _Module)}
    meanings = {part[0]: part[1] for part in parts if isinstance(part, tuple)}
    if name is None and len(modules) == 1:
        (name,) = modules
    if name is None:
        hint = f'module = "{next(iter(modules))}"' if modules else None
        raise InputError(f"expected one module, found {len(modules)}", Place(file), hint)
    if name not in modules:
        raise source.unknown("module", name, modules)
    module = modules[name]

    def meant(node: Node) -> Node:
        truths: dict[str, Node] = {truth: Operation("=", (Name(truth), Number(1))) for truth in module.truths}
        for _ in meanings:  # a constant or a formula may use others
            if not names_in(node) & meanings.keys():
                break
            node = substitute(node, meanings, source)
        return _with_reports(substitute(node, truths, source))

    rules = []
    for number, command in enumerate(module.commands):
        values = {}
        for target, (node, position) in command.updates.items():
            value = meant(node)
            if target in module.truths:
                value = Call("ite", (value, Number(1), Number(0)), position)
            values[target] = value
        rules.append(Rule(meant(command.guard), values, f"{path}.commands[{number}]"))
    memory = tuple(
        Memory(memory.name, Range(meant(memory.range.low), meant(memory.range.high)), meant(memory.initial))
        for memory in module.memory
    )
    places = tuple(Source(text, file, None, _constant(command.line)) for command in module.commands)
    return Commands(tuple(rules), memory, places)


def _constant(line: int) -> Callable[[], int]:
    return lambda: line


def _with_reports(node: Node) -> Node:
    """`node` with `sees(ped)` for the name `sees_ped`."""
    asked = {name for name in names_in(node) if name.startswith(SEES)}
    return substitute(node, {name: Call("sees", (Name(name.removeprefix(SEES)),)) for name in asked})


@cache
def _parser() -> Lark:
    merged = merge_transformers(_Actions(), grammar=_Expressions())  # type: ignore[no-untyped-call]
    return parser_of(Path(__file__).with_name("prism.lark"), merged)


@v_args(inline=True)
class _Expressions(ExpressionActions):
    """Expressions with PRISM's functions: `mod(a, b)` is our `a % b`."""

    def call(self, token: Token, arguments: tuple[Node, ...]) -> Node:
        """A function and its arguments."""
        if token == "mod" and len(arguments) == 2:
            node = Operation("%", arguments, position_of(token))
            require_kinds(node)
            return node
        return super().call(token, arguments)


@v_args(inline=True)
class _Actions(Transformer[Token, Any]):
    """What each alternative of `prism.lark` builds."""

    def start(self, *parts: Any) -> list[Any]:
        """The parts of a file; two of one name are refused."""
        return list(parts)

    def nothing(self, *_: Token) -> dict[str, object]:
        """The kind of a model, or the update `true`."""
        return {}

    def choice(self, condition: Node, _: Token, yes: Node, __: Token, no: Node) -> Node:
        """`c ? a : b`."""
        node = Call("ite", (condition, yes, no), condition.position)
        require_kinds(node)
        return node

    def constant(self, *tokens: Any) -> tuple[str, Node]:
        """`const int N = 3;`."""
        return str(tokens[-4]), tokens[-2]

    def abbreviation(self, _: Token, name: Token, __: Token, node: Node, ___: Token) -> tuple[str, Node]:
        """`formula f = x + 1;`."""
        return str(name), node

    def number_variable(self, name: Token, *rest: Any) -> tuple[Memory, bool]:
        """`m : [0..3] init 1;`."""
        low, high, begin = rest[1], rest[3], rest[-2]
        return Memory(str(name), Range(low, high), low if begin is None else begin), False

    def truth_variable(self, name: Token, _: Token, __: Token, begin: Node | None, ___: Token) -> tuple[Memory, bool]:
        """`b : bool init true;`."""
        value = Number(0) if begin is None else Call("ite", (begin, Number(1), Number(0)))
        return Memory(str(name), Range(Number(0), Number(1)), value), True

    def begin(self, *parts: Any) -> Node | None:
        """`init 1`, or nothing."""
        node: Node | None = next(reversed(parts), None)
        return node

    def module(self, _: Token, name: Token, *parts: Any) -> _Module:
        """Variables and commands."""
        variables = [part for part in parts if isinstance(part, tuple)]
        names = [memory.name for memory, _ in variables]
        for text in names:
            if names.count(text) > 1:
                raise problem(f"'{text}' is declared twice in module '{name}'", position_of(name))
        commands = tuple(part for part in parts if isinstance(part, _Command))
        if not commands:
            raise problem(f"module '{name}' has no command", position_of(name))
        truths = frozenset(memory.name for memory, truth in variables if truth)
        return _Module(str(name), tuple(memory for memory, _ in variables), truths, commands)

    def command(self, *parts: Any) -> _Command:
        """`[] guard -> update;`."""
        guard, arrow, updates = parts[-4:-1]
        if arrow != "->":
            raise problem(f"expected '->' between guard and update, found {arrow!s}", position_of(arrow))
        return _Command(guard, updates, position_of(arrow).line)

    def updates(self, *parts: Any) -> Any:
        """One update; several are drawn, which a planner does not."""
        drawn = [part for part in parts if not isinstance(part, Token)]
        first = drawn[0]
        if not isinstance(first, _Drawn):
            return first
        if len(drawn) > 1 or first.probability != Number(1):
            hint = "what the world draws stands in the model; a planner has one update for each guard"
            raise problem("the command draws its update", first.probability.position, hint)
        return first.update

    def drawn(self, probability: Node, _: Token, update: Any) -> _Drawn:
        """`0.5: (x'=1)`."""
        return _Drawn(probability, update)

    def update(self, *parts: Any) -> dict[str, tuple[Node, Position]]:
        """`(x'=1) & (y'=2)`."""
        assigned: dict[str, tuple[Node, Position]] = {}
        for target, node in (part for part in parts if isinstance(part, tuple)):
            name = str(target).removesuffix("'")
            if name in assigned:
                raise problem(f"'{name}' is set twice in one update", position_of(target))
            assigned[name] = node, position_of(target)
        return assigned

    def assignment(self, target: Token, _: Token, node: Node) -> tuple[Token, Node]:
        """`(x'=1)`."""
        return target, node


@dataclass(frozen=True)
class _Drawn:
    probability: Node
    update: Any
