"""What a spec says: a system model, scenarios, named conditions and requirements with targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from verifier.base.errors import unknown_name
from verifier.language.expressions import Source, check_type, substitute
from verifier.language.expressions.kinds import Kind
from verifier.language.expressions.syntax import Node, Position, names_in

COMPARISONS = (">=", ">", "<=", "<", "=")
"""How a requirement compares its probability with the target; `=` stands for `P = ?`, which has none."""


@dataclass(frozen=True)
class Requirement:
    """A named requirement.

    Attributes:
        comparison: one of `COMPARISONS`.
        target: the probability asked for, exactly; None for `P = ?`.
        formula: what has to hold, every `let` replaced by what it stands for.
        original: the formula as written, over the names of lets.
        line: where the requirement begins.
        text: the requirement as written, on one line and without comments.
    """

    name: str
    comparison: str
    target: Fraction | None
    formula: Node
    original: Node
    line: int
    text: str

    def __post_init__(self) -> None:
        if self.comparison not in COMPARISONS or (self.comparison == "=") != (self.target is None):
            raise ValueError(f"not a requirement: P {self.comparison} {self.target}")
        if self.target is not None and not 0 <= self.target <= 1:
            raise ValueError(f"not a probability: {self.target}")


@dataclass(frozen=True)
class Setting:
    """`set name = value`: a constant of the model, or with a word as value an option `planner.option`."""

    name: str
    value: int | Fraction | str
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Sweep:
    """`sweep name = values`: a constant of the model that takes each value in turn."""

    name: str
    values: tuple[int | Fraction, ...]
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Specification:
    """A spec as its file says it.

    Attributes:
        file: the file's name as given.
        sha256: hash of the file's bytes.
        model: path of the system model; `model_name` as the spec writes it, relative to the spec's folder.
        planners: in order; empty when the spec leaves the choice open.
        environments: in order; None when the spec leaves the choice open.
        initial: condition that narrows the initial states, lets replaced; None when there is none.
        lets: name -> state condition as written, in the order of the file.
        source: the text, for the places of errors.
    """

    file: str | None
    sha256: str
    model: Path
    model_name: str
    planners: tuple[str, ...]
    environments: tuple[str, ...] | None
    initial: Node | None
    settings: tuple[Setting, ...]
    sweeps: tuple[Sweep, ...]
    lets: Mapping[str, Node]
    requirements: tuple[Requirement, ...]
    source: Source = field(repr=False)


def expand_lets(lets: Mapping[str, Node], source: Source) -> dict[str, Node]:
    """Every let with the lets inside it replaced; they may stand in any order.

    Raises:
        InputError: lets that need each other, naming the circle; or a result beyond the limits of `substitute`.
    """
    needs = {name: sorted(names_in(node) & lets.keys()) for name, node in lets.items()}
    try:
        order = list(TopologicalSorter(needs).static_order())
    except CycleError as error:
        circle = list(reversed(error.args[1]))[:-1]
        first = min(range(len(circle)), key=lambda i: list(lets).index(circle[i]))
        turned = [*circle[first:], *circle[:first], circle[first]]
        place = lets[circle[first]].position
        raise source.error(f"lets need each other in a circle: {' -> '.join(turned)}", place) from None
    expanded: dict[str, Node] = {}
    for name in order:
        expanded[name] = substitute(lets[name], expanded, source)
    return expanded


def check_names(spec: Specification, types: Mapping[str, Kind]) -> None:
    """Check every name of the spec against what the model declares.

    Args:
        types: name -> its kind, for every name that the model lets a spec use.

    Raises:
        InputError: with the place; an unknown name comes with the nearest declared one.
    """
    source = spec.source
    for name, node in spec.lets.items():
        if name in types:
            hint = "choose another name for the let"
            raise source.error(f"let {name}: the model declares this name already", node.position, hint)
    known: dict[str, Kind] = {**types, **dict.fromkeys(spec.lets, "boolean")}
    for node in spec.lets.values():
        check_type(node, known, source, "boolean")
    if spec.initial is not None:
        check_type(spec.initial, known, source, "boolean")
    for requirement in spec.requirements:
        check_type(requirement.original, known, source, "boolean")
    chosen: tuple[Setting | Sweep, ...] = (*spec.settings, *spec.sweeps)
    for each in chosen:
        if "." not in each.name and types.get(each.name) != "number":
            numbers = [name for name, kind in types.items() if kind == "number"]
            message, hint = unknown_name("constant", each.name, numbers)
            raise source.error(message, each.position, hint)
