"""System models: what moves, what stands there, what the planners do, and when an episode is over.

A `SystemModel` is what a file says, with its constants still open. `SystemModel.instantiate` puts numbers in for
the constants and gives a `System`, in which every expression speaks about state variables only.

Semantics. A state is a valuation of the variables. In every step the world draws its inputs, each on its own with
probabilities that depend on the state, and the detector reports an observation, independently of them; the planner
sets its inputs from state and observation, and every variable moves to its `next` over the old values and all inputs:

    P[s, s'] = sum over w, y with step(s, w, y) = s' of Pr(w | s) Pr(y | s)

Planners read no variable that is hidden from them. There is one Markov chain per environment. A terminal state ends
the episode: it absorbs. Without terminal states an always-requirement over an infinite run has probability 0 for
every imperfect detector.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

from verifier.base.errors import UsageError, unknown_name
from verifier.base.toml import Element
from verifier.language.expressions import Source, evaluate, exact_number, replace_atoms, resolve_sees, substitute
from verifier.language.expressions.syntax import (
    TRUE,
    Boolean,
    Node,
    Number,
    Operation,
    atoms_in,
    conjunction,
    names_in,
)
from verifier.perception.confusion.matrices import Label
from verifier.systems.constants import Setting, constant_settings, constant_values, refuse_unmet
from verifier.systems.model_parts import (
    EMPTY_CLASS,
    ENDED,
    ONE,
    Decision,
    Draw,
    Memory,
    PlacedObject,
    Planner,
    Type,
    Variable,
    Variant,
    dependency_order,
    nodes_of,
    presence,
    with_nodes,
)
from verifier.systems.model_parts import BoundedVariable as BoundedVariable

_MOST_ANSWERED = 10_000
LARGEST_BOUND = 2**31
"""Size of the ends of a range."""
_OUTSIDE = re.compile(r"planners\.(\w+)\.(?:asks|commands|memory|sets)(?:\[\d+\]|\.\w+)")
"""Keys of what may stand in the file of a planner."""


@dataclass(frozen=True)
class SystemModel:
    """A system model as its file gives it, constants still open.

    Attributes:
        constants: name -> expression over other constants.
        quantities: name -> numeric expression over variables and constants, an abbreviation.
        labels: name -> state condition, an abbreviation and a proposition.
        environments: name -> the objects that stand there.
        variants: name of an environment that is written as a table -> how the model differs there.
        field_of_view_m: from where to where false positives arise in every bin; None where only places have them.
        step_s: duration of a step in seconds.
        rewards: name -> what a step from a state that is not terminal gains, over the state and the inputs.
        weight: what a scenario counts for by its initial state, in means over the profile.
        frames: how often the detector reports in each step.
        constraints: conditions on the constants without which the model makes no sense (a stop line beyond the
            end of the road meets every requirement, vacuously).
        document: the file, for the lines of errors.
        moved: dotted key -> the key of the file that stands in its place in one environment.
    """

    name: str
    constants: Mapping[str, Node]
    variables: tuple[Variable, ...]
    inputs: tuple[Variable, ...]
    admissible: Node
    environments: Mapping[str, tuple[PlacedObject, ...]]
    initial: Node
    terminal: Node
    labels: Mapping[str, Node]
    quantities: Mapping[str, Node]
    planners: Mapping[str, Planner]
    variants: Mapping[str, Variant] = field(default_factory=dict)
    world: tuple[Draw | Decision, ...] = ()
    field_of_view_m: tuple[Node, Node] | None = None
    step_s: Fraction | None = None
    rewards: Mapping[str, Node] = field(default_factory=dict)
    weight: Node = ONE
    frames: int = 1
    constraints: tuple[Node, ...] = ()
    source: str = ""
    file: str = ""
    sha256: str = ""
    document: Element | None = field(default=None, compare=False, repr=False)
    moved: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def __repr__(self) -> str:
        return f"<SystemModel: {self.name}, planners {', '.join(self.planners)}>"

    def at(self, path: str) -> Source:
        """The element of the model file with that dotted key, for the messages of errors in it."""
        path = self.moved.get(path, path)
        outside = _OUTSIDE.match(path)
        place = outside and outside[1] in self.planners and self.planners[outside[1]].places.get(outside[0])
        if place:
            return place
        return Source("", self.file or None, path, None if self.document is None else self.document.find(path).line)

    def text_at(self, path: str) -> Source:
        """The same with the text of the expression there, for errors in it as it was read."""
        place = self.at(path)
        text = place.text or (self.document and self.document.find(self.moved.get(path, path)).value)
        return replace(place, text=text) if isinstance(text, str) else place

    def object_path(self, environment: str, index: int) -> str:
        """The dotted key of an object."""
        return f"environments.{environment}{'.objects' if environment in self.variants else ''}[{index}]"

    def inside(self, environment: str) -> SystemModel:
        """The model with what one environment changes in it; itself where that is nothing."""
        changes = self.variants.get(environment, Variant())
        model, meaning = self, presence(self.environments[environment])
        if self.uses_presence:
            meant = partial(replace_atoms, meaning=meaning)
            model, changes = replace(self, **with_nodes(self._of_state, meant)), with_nodes(changes, meant)
        if changes == Variant():
            return model
        keys = {
            **{f"constants.{name}": f"set.{name}" for name in changes.constants},
            **{f"variables.{name}.next": f"next.{name}" for name in changes.next},
            **{f"labels.{name}": f"labels.{name}" for name in changes.labels},
            **({} if changes.terminal is None else {"terminal": "terminal"}),
            **({} if changes.weight == ONE else {"weight": "weight"}),
        }
        return replace(
            model,
            constants={**self.constants, **changes.constants},
            variables=tuple(replace(own, next=changes.next.get(own.name, own.next)) for own in model.variables),
            labels={**model.labels, **changes.labels},
            weight=model.weight if changes.weight == ONE else Operation("*", (model.weight, changes.weight)),
            initial=conjunction(tuple(node for node in (model.initial, changes.initial) if node != TRUE)),
            terminal=model.terminal if changes.terminal is None else changes.terminal,
            moved={key: f"environments.{environment}.{inner}" for key, inner in keys.items()},
        )

    @property
    def placed_by(self) -> frozenset[str]:
        """The further variables of the matrices by which some object says where it is."""
        return frozenset(name for objects in self.environments.values() for placed in objects for name in placed.at)

    def environment_classes(self) -> frozenset[str]:
        """Every class that stands in some environment; `empty` is not one."""
        objects = itertools.chain.from_iterable(self.environments.values())
        return frozenset().union(*(placed.classes for placed in objects)) - {EMPTY_CLASS}

    @cached_property
    def uses_presence(self) -> bool:
        """Whether an expression of the model asks `present(...)`, whose meaning depends on the environment."""
        return any(map(atoms_in, nodes_of((self._of_state, self.variants))))

    @property
    def _of_state(self) -> dict[str, Any]:
        """What is over the state, by field; objects apart."""
        parts = ("variables", "world", "labels", "quantities", "rewards")
        return {name: getattr(self, name) for name in (*parts, "initial", "terminal", "admissible", "weight")}

    @property
    def decides(self) -> tuple[str, ...]:
        """Names of what the world decides, probabilities within intervals among it."""
        decided = [choice.name for choice in self.world if isinstance(choice, Decision)]
        return (*decided, *(choice.name for choice in self.world if isinstance(choice, Draw) and choice.is_open))

    def types(self, planners: Iterable[str] = ()) -> dict[str, Type]:
        """Every name that a spec about these planners may use, with its type.

        Variables, constants and quantities are numbers. Labels are conditions, and so is every class (an object
        of that class stands in the environment) and `empty` (none does). Memory counts where all
        planners have it.
        """
        memories = [{own.name for own in self.planners[name].memory} for name in planners if name in self.planners]
        types: dict[str, Type] = dict.fromkeys(
            [
                *self.constants,
                *(variable.name for variable in self.variables),
                *self.quantities,
                *(set.intersection(*memories) if memories else ()),
            ],
            "number",
        )
        types |= dict.fromkeys([*self.labels, *self.environment_classes(), EMPTY_CLASS], "boolean")
        return types | ({ENDED: "boolean"} if self.knows_ended else {})

    @property
    def knows_ended(self) -> bool:
        """Whether the name `ENDED` is free for the states in which the episode is over."""
        remembered = {memory.name for planner in self.planners.values() for memory in planner.memory}
        own = {part.name for part in (*self.variables, *self.inputs)} | self.environment_classes() | remembered
        return ENDED not in own | {*self.constants, *self.quantities, *self.labels}

    def planner(self, name: str) -> Planner:
        """The planner of that name; UsageError when there is none."""
        if name not in self.planners:
            raise UsageError(": ".join(unknown_name("planner", name, self.planners)))
        return self.planners[name]

    def instantiate(self, settings: Mapping[str, Setting] = MappingProxyType({})) -> System:
        """The system for given constants.

        Args:
            settings: values that replace those of the file: `name` for a constant, `planner.pick` for the pick
                rule of a planner.

        Raises:
            UsageError: a setting names nothing.
            InputError: constants or abbreviations that depend on each other in a circle, a division by zero, a
                range that is empty or not of whole numbers, or a constraint that the constants do not meet.
        """
        chosen = constant_settings(self.constants, self.planners, settings)
        constants = constant_values(self.constants, chosen, self.at)
        refuse_unmet(self.constraints, constants, self.at)
        resolve = _Resolver({name: Number(value) for name, value in constants.items()}, self)
        return System(
            self,
            MappingProxyType(constants),
            tuple(_bounded(self, resolve, f"variables.{own.name}.range", own) for own in self.variables),
            tuple(_bounded(self, resolve, f"inputs.{variable.name}.range", variable) for variable in self.inputs),
            {
                variable.name: resolve(variable.next, f"variables.{variable.name}.next")
                for variable in self.variables
                if variable.next is not None
            },
            {
                variable.name: resolve(variable.default, f"inputs.{variable.name}.default")
                for variable in self.inputs
                if variable.default is not None
            },
            resolve(self.admissible, "admissible"),
            {
                name: tuple(
                    placed.with_nodes(partial(_resolved, resolve, self.object_path(name, index)))
                    for index, placed in enumerate(objects)
                )
                for name, objects in self.environments.items()
            },
            resolve(self.initial, "initial"),
            resolve(self.terminal, "terminal"),
            resolve,
            {name: _with_pick(planner, settings) for name, planner in self.planners.items()},
            _field_of_view(self, resolve),
        )


@dataclass(frozen=True)
class System:
    """A model with numbers for its constants; every expression speaks about variables (and inputs) only."""

    model: SystemModel
    constants: Mapping[str, int | Fraction]
    variables: tuple[BoundedVariable, ...]
    inputs: tuple[BoundedVariable, ...]
    dynamics: Mapping[str, Node]
    defaults: Mapping[str, Node]
    admissible: Node
    environments: Mapping[str, tuple[PlacedObject, ...]]
    initial: Node
    terminal: Node
    resolve: _Resolver
    planners: Mapping[str, Planner]
    field_of_view_m: tuple[Fraction, Fraction] | None = None
    _answered: dict[tuple[str, Label], tuple[Node, Node, Source]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def answered(self, node: Node, facts: Label, path: str) -> tuple[Node, Source]:
        """What a planner asks, over variables only: `node` on an observation, and where it stands, at that key.

        Kept for the next block of states, up to a size.
        """
        kept = self._answered.get((path, facts))
        if kept is None or kept[0] is not node:
            kept = node, self.resolve(resolve_sees(node, facts), path), self.model.at(path)
            if len(self._answered) < _MOST_ANSWERED:
                self._answered[path, facts] = kept
        return kept[1:]

    def environment(self, name: str) -> tuple[PlacedObject, ...]:
        """The objects of an environment; UsageError when there is none of that name."""
        if name not in self.environments:
            raise UsageError(": ".join(unknown_name("environment", name, self.environments)))
        return self.environments[name]

    def in_environment(self, node: Node, name: str) -> Node:
        """`node` over variables only, with every class replaced by whether the environment holds it."""
        objects = self.environment(name)
        present = frozenset().union(*(placed.classes for placed in objects)) - {EMPTY_CLASS}
        return self.under(replace_atoms(node, presence(objects)), present)

    def under(self, node: Node, present: frozenset[str]) -> Node:
        """`node` over variables only, supposing that objects of exactly these classes stand there."""
        classes = self.model.environment_classes()
        truth: dict[str, Node] = {name: Boolean(name in present) for name in classes}
        truth[EMPTY_CLASS] = Boolean(not present)
        return substitute(self.resolve(node), truth)


@dataclass(frozen=True)
class _Resolver:
    """Replaces constants by their numbers and abbreviations by what they stand for."""

    numbers: Mapping[str, Node]
    model: SystemModel
    meanings: Mapping[str, Node] = field(init=False)

    def __post_init__(self) -> None:
        meanings = dict(self.numbers)
        for table, nodes in (("quantities", self.model.quantities), ("labels", self.model.labels)):
            for name in dependency_order(nodes, self.model.at(table)):
                meanings[name] = substitute(nodes[name], meanings, self.model.at(f"{table}.{name}"))
        if self.model.knows_ended:
            meanings[ENDED] = substitute(self.model.terminal, meanings, self.model.at("terminal"))
        object.__setattr__(self, "meanings", meanings)

    def __call__(self, node: Node, path: str | None = None) -> Node:
        """`node` over variables (and inputs and classes); `path` is where it stands in the model file, if it does.

        Raises:
            InputError: the result is too large or nests too deeply.
        """
        return substitute(node, self.meanings, None if path is None else self.model.at(path))


def _field_of_view(model: SystemModel, resolve: _Resolver) -> tuple[Fraction, Fraction] | None:
    sources = [model.at(f"field_of_view.distance_m[{index}]") for index in range(2)]
    low, high = (
        Fraction(exact_number(resolve(end, source.path), {}, source))
        for end, source in zip(model.field_of_view_m or (ONE, ONE), sources, strict=True)
    )
    if low > high:
        place = model.at("field_of_view.distance_m")
        raise place.error(f"expected low <= high, got {float(low):g}..{float(high):g}", None)
    return (low, high) if low < high else None


def _bounded(model: SystemModel, resolve: _Resolver, path: str, variable: Variable) -> BoundedVariable:
    ends: list[int] = []
    for index, end in enumerate((variable.range.low, variable.range.high)):
        source = model.at(f"{path}[{index}]")
        value = exact_number(resolve(end, source.path), {}, source)
        if not isinstance(value, int) or not -LARGEST_BOUND <= value <= LARGEST_BOUND:
            got = str(value) if value.denominator < 10**20 and -(10**20) < value < 10**20 else "one of many digits"
            raise source.error(f"expected a whole number of at most 2**31 in size, got {got}", None)
        ends.append(value)
    low, high = ends
    if low > high:
        raise model.at(path).error(f"expected low <= high, got {low}..{high}", None, "check the constants it uses")
    return BoundedVariable(variable.name, low, high)


def _resolved(resolve: _Resolver, path: str, key: str, node: Node) -> Node:
    resolved = resolve(node, f"{path}.{key}")
    constant = key == "when" and not (names_in(resolved) or atoms_in(resolved))
    return Boolean(bool(evaluate(resolved, {}))) if constant else resolved


def bounded(system: System, path: str, named: Memory | Draw | Decision) -> BoundedVariable:
    """What has a range, with that in numbers; InputError as `SystemModel.instantiate`."""
    return _bounded(system.model, system.resolve, path, Variable(named.name, named.range))


def _with_pick(planner: Planner, settings: Mapping[str, Setting]) -> Planner:
    pick = settings.get(f"{planner.name}.pick")
    return planner if pick is None else replace(planner, pick=str(pick))
