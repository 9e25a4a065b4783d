"""What a spec says: a system model, scenarios, named conditions and requirements with targets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Literal, TypeAlias

from verifier.base.errors import unknown_name
from verifier.base.numbers import decimal_text
from verifier.language.expressions import Source, check_type, substitute, to_text
from verifier.language.expressions.kinds import Kind
from verifier.language.expressions.syntax import TRUE, Node, Operation, Position, Seconds, Temporal, names_in
from verifier.language.ltl import in_steps
from verifier.language.ltl.parser import NEEDS_STEP

COMPARISONS = (">=", ">", "<=", "<", "=")
"""How a requirement compares its probability with the target; `=` stands for `P = ?`, which has none."""


Quantity: TypeAlias = Literal["P", "R", "T"]
"""Probability, expected reward, expected time."""


@dataclass(frozen=True)
class Asked:
    """The number that a requirement is about.

    Attributes:
        quantity: which.
        end: which end of what a world that decides can make of it; "" for both, or for the one that a target needs.
            On a chain all are equal.
        reward: name of the reward, for R.
        level: for `T{level}`: the time by which the formula holds with that probability; None for other numbers.
        steps: for `R [ C<=steps ]`, or `steps_s` where that is in seconds; None for other numbers.
    """

    quantity: Quantity = "P"
    end: Literal["", "min", "max"] = ""
    reward: str = ""
    level: Fraction | None = None
    steps: int | None = None
    steps_s: Fraction | None = None

    def __str__(self) -> str:
        inner = self.reward or ("" if self.level is None else decimal_text(self.level))
        return f"{self.quantity}{self.end}" + (f"{{{inner}}}" if inner else "")

    @property
    def is_probability(self) -> bool:
        """Whether it lies between 0 and 1."""
        return self.quantity == "P"


@dataclass(frozen=True)
class Requirement:
    """A named requirement.

    Attributes:
        target: the number it is compared with, exactly; None for `= ?`.
        formula: what has to hold, every `let` replaced by what it stands for; for R and T `F` with what ends them.
        original: the formula as written, over the names of lets.
        line: where the requirement begins.
        text: the requirement as written, on one line and without comments.
        asked: the number that it is about.
        given: what is supposed to hold, for `P .. [ A given B ]`; `original_given` as written.
        over_profile: whether the mean over all scenarios is asked for, and not the worst one.
    """

    name: str
    comparison: str
    target: Fraction | None
    formula: Node
    original: Node
    line: int
    text: str
    asked: Asked
    given: Node | None
    original_given: Node | None
    over_profile: bool

    def __post_init__(self) -> None:
        if self.comparison not in COMPARISONS or (self.comparison == "=") != (self.target is None):
            raise ValueError(f"not a requirement: {self.asked} {self.comparison} {self.target}")
        if self.target is not None and not 0 <= self.target <= (1 if self.asked.is_probability else self.target):
            raise ValueError(f"not a target of {self.asked}: {self.target}")

    @property
    def is_plain(self) -> bool:
        """Whether it asks the probability of one formula."""
        return self.asked.is_probability and self.given is None

    @property
    def is_upper(self) -> bool:
        """Whether its target limits from above: what the formula says is unwanted."""
        return self.comparison in ("<=", "<")

    @property
    def ends(self) -> tuple[Requirement, ...]:
        """What it asks where the world decides: the end that is worst for its target, or both where it has none."""
        if self.asked.end:
            return (self,)
        if self.target is not None:
            return (replace(self, asked=replace(self.asked, end="max" if self.is_upper else "min")),)
        both: tuple[Literal["min", "max"], ...] = ("min", "max")
        return tuple(replace(self, name=f"{self.name}_{end}", asked=replace(self.asked, end=end)) for end in both)

    @property
    def joint(self) -> Node:
        """The formula, and what is supposed."""
        return self.formula if self.given is None else Operation("&", (self.formula, self.given))

    @property
    def formula_text(self) -> str:
        """What stands in its brackets, fully parenthesised."""
        asked = self.asked
        if asked.steps is not None or asked.steps_s is not None:
            return f"C<={asked.steps}" if asked.steps_s is None else f"C<={decimal_text(asked.steps_s)}s"
        formula = to_text(self.formula, parenthesise=True)
        return formula if self.given is None else f"({formula}) given ({to_text(self.given, parenthesise=True)})"

    @property
    def question(self) -> str:
        """The requirement without its name, as a spec writes it: `T <= 12 [ F ended ]`."""
        target = "= ?" if self.target is None else f"{self.comparison} {decimal_text(self.target)}"
        return f"{self.asked} {target}{' over profile' * self.over_profile} [ {self.formula_text} ]"


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
        source: the text, for the places of errors; `model_at` is where it names the model.
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
    model_at: Position | None = field(default=None, compare=False, repr=False)


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


def check_names(
    spec: Specification,
    types: Mapping[str, Kind],
    rewards: Collection[str] = (),
    step_s: Fraction | None = None,
    free: Collection[str] = (),
) -> Specification:
    """Check every name of the spec against what the model declares, and count its bounds in steps.

    Args:
        types: name -> its kind, for every name that the model lets a spec use.
        rewards: the names of rewards.
        step_s: the duration of a step, if the model says it.
        free: the names among `types` that a let may take.

    Raises:
        InputError: with the place; an unknown name comes with the nearest declared one.
    """
    source = spec.source
    for name, node in spec.lets.items():
        if name in types and name not in free:
            hint = "choose another name for the let"
            raise source.error(f"let {name}: the model declares this name already", node.position, hint)
    known: dict[str, Kind] = {**types, **dict.fromkeys(spec.lets, "boolean")}
    for node in spec.lets.values():
        check_type(node, known, source, "boolean")
    if spec.initial is not None:
        check_type(spec.initial, known, source, "boolean")
    for requirement in spec.requirements:
        check_type(requirement.original, known, source, "boolean")
        if requirement.original_given is not None:
            check_type(requirement.original_given, known, source, "boolean")
        _check_asked(requirement, source, rewards, step_s)
    chosen: tuple[Setting | Sweep, ...] = (*spec.settings, *spec.sweeps)
    for sweep in chosen:
        if "." not in sweep.name and types.get(sweep.name) != "number":
            numbers = [name for name, kind in types.items() if kind == "number"]
            raise source.unknown("constant", sweep.name, numbers, sweep.position)
    requirements = tuple(_in_steps(requirement, source, step_s) for requirement in spec.requirements)
    return replace(spec, requirements=requirements)


def _check_asked(requirement: Requirement, source: Source, rewards: Collection[str], step_s: Fraction | None) -> None:
    asked, place = requirement.asked, Position(requirement.line, 1)
    if asked.quantity == "R" and asked.reward not in rewards:
        message, hint = unknown_name("reward", asked.reward, rewards)
        raise source.error(message, place, hint if rewards else "the model declares none: [rewards]")
    if asked.quantity == "T" and step_s is None:
        raise source.error(f"T {NEEDS_STEP}", place)


def _in_steps(requirement: Requirement, source: Source, step_s: Fraction | None) -> Requirement:
    asked, given = requirement.asked, requirement.given
    if asked.steps_s is not None:
        place = Position(requirement.line, 1)
        bound = in_steps(Temporal("F", (TRUE,), None, place, Seconds(Fraction(0), asked.steps_s)), step_s, source)
        assert isinstance(bound, Temporal)
        assert bound.interval is not None
        asked = replace(asked, steps=bound.interval.high, steps_s=None)
    return replace(
        requirement,
        formula=in_steps(requirement.formula, step_s, source),
        given=None if given is None else in_steps(given, step_s, source),
        asked=asked,
    )
