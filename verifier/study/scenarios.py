"""The scenario grid: planners x values of swept constants x environments x initial states.

One block of the grid shares a skeleton: a planner, one value of each swept constant, and a environment, with
every initial state at once.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from verifier.base.errors import InputError, LimitError, Place, UsageError, VerifierError, unknown_name
from verifier.base.numbers import decimal_text
from verifier.language.expressions.syntax import Node, Operation, Position, conjunction
from verifier.language.specs import Requirement, Specification, check_names
from verifier.study.options import Selection
from verifier.systems.constants import Setting
from verifier.systems.declarations import refuse_absent
from verifier.systems.model import System, SystemModel
from verifier.systems.model_parts import ENDED, Planner

LARGEST_GRID = 100_000
"""Blocks of one run; each needs a chain of its own."""


@dataclass(frozen=True, eq=False)
class Block:
    """One planner, one value of each swept constant, one environment."""

    planner: Planner
    swept: Mapping[str, int | Fraction]
    system: System
    environment: str

    @property
    def constants(self) -> dict[str, str]:
        """The values of the swept constants, as documents have them."""
        return {name: decimal_text(value) for name, value in self.swept.items()}

    def __str__(self) -> str:
        swept = "".join(f" {name}={value}" for name, value in self.constants.items())
        return f"planner {self.planner.name}, {self.environment}{swept}"


@dataclass(frozen=True)
class Grid:
    """Everything to be checked, in order.

    Attributes:
        blocks: planners outermost, environments innermost.
        requirements: those selected, in the order of the spec.
        initial: the condition that narrows the model's initial states, or None.
        goal_formula: what a synthesis planner without a formula of its own is computed from: the spec's requirements
            with a lower target, and the negations of those with an upper one; None when no requirement has a target.
        settings: what spec and selection set, by name.
        left_out: environments that the spec asks for and the command line leaves out.
    """

    blocks: tuple[Block, ...]
    requirements: tuple[Requirement, ...]
    initial: Node | None
    goal_formula: Node | None
    settings: Mapping[str, Setting] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


def make_grid(spec: Specification, model: SystemModel, selection: Selection) -> Grid:
    """The grid that a spec and a selection ask for.

    Raises:
        UsageError: a name on the command line that the model or the spec does not declare, or no planner named.
        InputError: a name in the spec that the model does not declare.
        LimitError: more than `LARGEST_GRID` blocks.
    """
    planner_names = _planner_names(spec, model, selection)
    environments = tuple(dict.fromkeys(selection.environments or spec.environments or tuple(model.environments)))
    for name in environments:
        if name not in model.environments:
            raise _unknown(spec, "environment", name, model.environments, bool(selection.environments))
    for name in selection.settings:
        if name in selection.sweeps:
            raise UsageError(f"constant {name}: --set gives it one value and --sweep several; leave one out")
    sweeps = {each.name: each.values for each in spec.sweeps if each.name not in selection.settings}
    sweeps.update(selection.sweeps)
    named: dict[str, Setting] = {**{each.name: each.value for each in spec.settings}, **selection.settings}
    settings = {name: value for name, value in named.items() if name not in sweeps}
    count = len(planner_names) * len(environments) * math.prod(len(values) for values in sweeps.values())
    if count > LARGEST_GRID:
        raise LimitError(f"the grid has {count} blocks; at most {LARGEST_GRID} are run at once")
    conditions = [each for each in (spec.initial, selection.initial) if each is not None]
    plain = [each for each in spec.requirements if each.is_plain]
    wanted = [each.formula for each in plain if each.comparison in (">=", ">")]
    wanted += [Operation("!", (each.formula,)) for each in plain if each.comparison in ("<=", "<")]
    return Grid(
        tuple(_blocks(model, planner_names, environments, settings, sweeps)),
        asked_requirements(spec, model, selection.requirements),
        conjunction(tuple(conditions)) if conditions else None,
        conjunction(tuple(wanted)) if wanted else None,
        settings,
        tuple(name for name in spec.environments or model.environments if name not in environments),
    )


def _planner_names(spec: Specification, model: SystemModel, selection: Selection) -> tuple[str, ...]:
    names = selection.planners or spec.planners
    if "all" in names and "all" not in model.planners:
        names = tuple(model.planners)
    if not names:
        if len(model.planners) > 1:
            raise UsageError(
                f"the model has {len(model.planners)} planners ({', '.join(model.planners)}): "
                "name one in the spec (planner NAME) or with --planner"
            )
        names = tuple(model.planners)
    for name in names:
        if name not in model.planners:
            raise _unknown(spec, "planner", name, model.planners, bool(selection.planners))
    return tuple(dict.fromkeys(names))


def _unknown(
    spec: Specification, kind: str, name: str, known: Iterable[str], from_command_line: bool
) -> VerifierError:
    """The error for a name that is not there: wrong usage from the command line, bad input from the spec."""
    message, hint = unknown_name(kind, name, known)
    if from_command_line:
        return UsageError(f"{message}: {hint}")
    lines = spec.source.text.split("\n")
    for number, line in enumerate(lines, start=1):
        found = re.search(rf"\b{re.escape(name)}\b", line)
        if line.lstrip().startswith(kind) and found:
            return InputError(message, Place(spec.file, number, found.start() + 1, text=line), hint)
    return InputError(message, Place(spec.file), hint)


def _blocks(
    model: SystemModel,
    planner_names: tuple[str, ...],
    environments: tuple[str, ...],
    settings: Mapping[str, Setting],
    sweeps: Mapping[str, tuple[int | Fraction, ...]],
) -> list[Block]:
    blocks = []
    points = [dict(zip(sweeps, values, strict=True)) for values in itertools.product(*sweeps.values())]
    inside = {each: model.inside(each) for each in environments}
    distinct = {id(each): each for each in inside.values()}
    systems = [{key: each.instantiate({**settings, **point}) for key, each in distinct.items()} for point in points]
    for name in planner_names:
        for point, made in zip(points, systems, strict=True):
            for each in environments:
                system = made[id(inside[each])]
                blocks.append(Block(system.planners[name], point, system, each))
    return blocks


def checked_names(spec: Specification, model: SystemModel, planners: Iterable[str] = ()) -> Specification:
    """The spec with its bounds in steps, when every name in it fits the model; InputError as `check_names`."""
    free = (ENDED,) if model.knows_ended else ()
    found = check_names(spec, model.types(planners), model.rewards, model.step_s, free)
    asked = (node for each in spec.requirements for node in (each.original, each.original_given))
    for node in (*spec.lets.values(), spec.initial, *asked):
        if node is not None:
            refuse_absent(model, node, spec.source)
    return found


def refuse_others(requirements: Iterable[Requirement], what: str, model: SystemModel | None = None) -> None:
    """Refuse requirements that ask anything but the probability of a formula, and a model whose world decides;
    UsageError, which names them."""
    if model is not None and model.decides:
        names = ", ".join(f"'{name}'" for name in model.decides)
        raise UsageError(
            f"{what} is about Markov chains, and the world decides {names}: verify run gives its least and greatest "
            "probabilities"
        )
    others = [each for each in requirements if not each.is_plain]
    if others:
        listed = ", ".join(f"'{each.name}' asks {each.asked}{' given' * (each.given is not None)}" for each in others)
        raise UsageError(f"{what} is about probabilities of formulas, and {listed}: name others with --requirement")


def asked_requirements(spec: Specification, model: SystemModel, names: tuple[str, ...]) -> tuple[Requirement, ...]:
    """The selected requirements; where the world decides, each with the end of its values that is asked for.

    Raises:
        UsageError: as `selected_requirements`.
        InputError: what asks for both ends would take the name of another requirement.
    """
    selected = selected_requirements(spec, names)
    if not model.decides:
        return selected
    known = {each.name for each in spec.requirements}
    for each in selected:
        for end in ends_of(each, model):
            if end.name != each.name and end.name in known:
                message = f"{each.name}: the world decides, and its least and greatest value are called {end.name} .."
                place = Position(each.line, 1)
                raise spec.source.error(message, place, f"rename {end.name}, which is another requirement")
    return tuple(end for each in selected for end in ends_of(each, model))


def ends_of(requirement: Requirement, model: SystemModel) -> tuple[Requirement, ...]:
    """What a run has of a requirement of the spec: where the world decides, the ends of its values."""
    return requirement.ends if model.decides else (requirement,)


def selected_requirements(spec: Specification, names: tuple[str, ...]) -> tuple[Requirement, ...]:
    """Those of these names, in the order of the spec; all where none is named. UsageError for an unknown name."""
    known = {each.name: each for each in spec.requirements}
    for name in names:
        if name not in known:
            raise UsageError(": ".join(unknown_name("requirement", name, known)))
    return tuple(each for each in spec.requirements if not names or each.name in names)
