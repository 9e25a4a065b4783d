"""A spec and its model as they were read: the document of `verify run --parse`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from verifier.base.documents import Count
from verifier.base.numbers import decimal_text
from verifier.language.expressions import to_text
from verifier.language.expressions.syntax import TRUE, Node
from verifier.language.specs import Requirement
from verifier.study.collection import target_of
from verifier.study.inputs import Grid
from verifier.study.model_checks import CaseShare
from verifier.study.results import RunInput, Target
from verifier.systems.declarations import hidden_names
from verifier.systems.model import BoundedVariable, System, SystemModel, bounded
from verifier.systems.model_parts import ONE, Decision, Draw, PlacedObject, Planner, PlannerKind, Rule, Run, Variant
from verifier.systems.observation import remembered


@dataclass(frozen=True)
class ParsedVariable:
    """A variable, an input or memory with its whole numbers.

    Attributes:
        next: value in the next step.
        default: of an input.
        initial: of memory.
        hidden: from planners.
        unit: of its numbers; empty where the model names none.
    """

    name: str
    low: int
    high: int
    next: str | None = None
    default: str | None = None
    initial: int | None = None
    hidden: bool = False
    unit: str = ""


@dataclass(frozen=True)
class ParsedMove:
    """An input of the world.

    Attributes:
        probability: value -> its probability, `[low, high]` for an interval, "rest" for what the others leave; none
            of what the world decides.
        admissible: where it may decide so.
    """

    name: str
    low: int
    high: int
    probability: Mapping[str, str] = field(default_factory=dict)
    admissible: str | None = None


@dataclass(frozen=True)
class ParsedObject:
    """An object: class -> condition under which it is of that class, and when it is there.

    `at` says where it is in further variables of the matrices: a value, or bin -> condition.
    """

    distance_m: str
    classes: Mapping[str, str]
    name: str = ""
    when: str = "true"
    at: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class ParsedEnvironment:
    """What stands there, and what the environment changes: dotted key of the model -> expression."""

    name: str
    objects: tuple[ParsedObject, ...]
    changes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ParsedRule:
    """A rule, a run, or a command of a module. `stay`: the state stays as it is."""

    when: str
    sets: Mapping[str, str] = field(default_factory=dict)
    stay: bool = False
    reach: str | None = None
    through: str | None = None


@dataclass(frozen=True)
class ParsedPlanner:
    """A planner. `file`: that it stands in; `asks` and `sets` are the columns of its table."""

    name: str
    kind: PlannerKind
    memory: tuple[ParsedVariable, ...] = ()
    trackers: Mapping[str, str] = field(default_factory=dict)
    file: str = ""
    asks: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    rows: int | None = None
    commands: tuple[ParsedRule, ...] = ()
    runs: tuple[ParsedRule, ...] = ()
    rules: tuple[ParsedRule, ...] = ()


@dataclass(frozen=True)
class ParsedRequirement:
    """A requirement: what it asks as a spec writes it, fully parenthesised; no target for `= ?`.

    `formula` is what stands in its brackets.
    """

    name: str
    question: str
    target: Target | None
    formula: str


@dataclass(frozen=True, kw_only=True)
class ParsedStudy:
    """What a run would be about.

    Attributes:
        constants: with what spec and command line set, as in the first scenario.
        conditions: `initial`, `terminal` and `admissible`, and the `weight` of initial states if it is not 1.
        step_s, frames: duration of a step, and reports in each.
        field_of_view_m: from where to where false positives arise in every bin.
        world: the inputs that the world draws or decides.
        steers: the inputs that planners set.
        cases: where matrices are given, one per planner, environment and value of a swept constant.
        remarks: what is odd about model and planners, as far as matrices are given.
    """

    schema: ClassVar[str] = "verifier.parse"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    inputs: tuple[RunInput, ...]
    requirements: tuple[ParsedRequirement, ...]
    model: str
    step_s: str = ""
    frames: Count = 1
    field_of_view_m: tuple[str, str] | None = None
    constants: Mapping[str, str]
    variables: tuple[ParsedVariable, ...]
    world: tuple[ParsedMove, ...] = ()
    steers: tuple[ParsedVariable, ...]
    conditions: Mapping[str, str]
    quantities: Mapping[str, str]
    labels: Mapping[str, str]
    rewards: Mapping[str, str] = field(default_factory=dict)
    environments: tuple[ParsedEnvironment, ...]
    planners: tuple[ParsedPlanner, ...]
    cases: tuple[CaseShare, ...] = ()
    remarks: tuple[str, ...] = ()


def parsed_study(
    model: SystemModel,
    grid: Grid,
    inputs: tuple[RunInput, ...],
    cases: tuple[CaseShare, ...] = (),
    remarks: tuple[str, ...] = (),
) -> ParsedStudy:
    """What a grid of a model is about; `cases` and `remarks` where matrices are given."""
    system = grid.blocks[0].system
    view = system.field_of_view_m
    chosen = dict.fromkeys(block.environment for block in grid.blocks)
    given = {variable.name: variable for variable in model.variables}
    hidden = hidden_names(model)
    conditions = {"initial": model.initial, "terminal": model.terminal, "admissible": model.admissible}
    conditions |= {} if model.weight == ONE else {"weight": model.weight}
    return ParsedStudy(
        inputs=inputs,
        requirements=tuple(map(_requirement, grid.requirements)),
        model=model.name,
        step_s="" if model.step_s is None else decimal_text(model.step_s),
        frames=model.frames,
        field_of_view_m=None if view is None else (decimal_text(view[0]), decimal_text(view[1])),
        constants={name: decimal_text(value) for name, value in system.constants.items()},
        variables=tuple(
            _variable(
                variable,
                next=_text(given[variable.name].next),
                hidden=variable.name in hidden,
                unit=given[variable.name].unit,
            )
            for variable in system.variables
        ),
        world=tuple(_move(system, choice) for choice in model.world),
        steers=tuple(
            _variable(variable, default=None if own.default is None else _text(own.default), unit=own.unit)
            for variable, own in zip(system.inputs, model.inputs, strict=True)
        ),
        conditions={name: _text(node) for name, node in conditions.items()},
        quantities=_texts(model.quantities),
        labels=_texts(model.labels),
        rewards=_texts(model.rewards),
        environments=tuple(
            ParsedEnvironment(
                name, tuple(map(_object, model.environments[name])), _changes(model.variants.get(name, Variant()))
            )
            for name in chosen
        ),
        planners=tuple(
            _planner(system, planner) for planner in {b.planner.name: b.planner for b in grid.blocks}.values()
        ),
        cases=cases,
        remarks=remarks,
    )


def _text(node: Node | None) -> str:
    return "" if node is None else to_text(node, parenthesise=True)


def _texts(nodes: Mapping[str, Node]) -> dict[str, str]:
    return {name: _text(node) for name, node in nodes.items()}


def _variable(variable: BoundedVariable, **more: Any) -> ParsedVariable:
    return ParsedVariable(variable.name, variable.low, variable.high, **more)


def _move(system: System, own: Draw | Decision) -> ParsedMove:
    within = bounded(system, f"world.{own.name}.range", own)
    if isinstance(own, Decision):
        return ParsedMove(own.name, within.low, within.high, admissible=_text(own.admissible))
    chances = {str(value): _chance(chance) for value, chance in own.chances.items()}
    return ParsedMove(own.name, within.low, within.high, chances)


def _chance(chance: Node | tuple[Node, Node] | None) -> str:
    if isinstance(chance, tuple):
        return f"[{', '.join(map(_text, chance))}]"
    return "rest" if chance is None else _text(chance)


def _object(placed: PlacedObject) -> ParsedObject:
    at = {name: _texts(at) if isinstance(at, Mapping) else _text(at) for name, at in placed.at.items()}
    return ParsedObject(_text(placed.distance_m), _texts(placed.classes), placed.name, _text(placed.when), at)


def _changes(variant: Variant) -> dict[str, str]:
    nodes: dict[str, Node] = {f"constants.{name}": node for name, node in variant.constants.items()}
    nodes |= {f"variables.{name}.next": node for name, node in variant.next.items()}
    nodes |= {f"labels.{name}": node for name, node in variant.labels.items()}
    nodes |= {"initial": variant.initial} if variant.initial != TRUE else {}
    nodes |= {} if variant.terminal is None else {"terminal": variant.terminal}
    nodes |= {} if variant.weight == ONE else {"weight": variant.weight}
    return _texts(nodes)


def _planner(system: System, planner: Planner) -> ParsedPlanner:
    decider = planner.decider
    window = {
        tracker.name: f"{_text(tracker.of)}, confirm {list(tracker.confirm)}, delete {list(tracker.delete)}"
        for tracker in planner.trackers
    }
    kept = {memory.name for memory in planner.memory}
    return ParsedPlanner(
        planner.name,
        planner.kind,
        tuple(
            _variable(variable, initial=value)
            for variable, value in remembered(system, planner)
            if variable.name in kept
        ),
        window,
        planner.file.name if planner.file else "",
        tuple(decider.asks) if decider else (),
        (decider.sets or ()) if decider else (),
        getattr(decider, "rows", None),
        tuple(map(_rule, planner.commands)),
        tuple(map(_rule, planner.runs)),
        tuple(map(_rule, planner.rules)),
    )


def _rule(rule: Rule | Run) -> ParsedRule:
    if isinstance(rule, Run) and rule.inputs is None:
        return ParsedRule(_text(rule.when), reach=_text(rule.reach), through=_text(rule.through))
    return ParsedRule(_text(rule.when), _texts(rule.inputs or {}), rule.inputs is None)


def _requirement(requirement: Requirement) -> ParsedRequirement:
    return ParsedRequirement(requirement.name, requirement.question, target_of(requirement), requirement.formula_text)
