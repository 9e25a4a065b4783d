"""What a model file writes down: variables, objects, environments, rules, runs and planners."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from functools import partial, reduce
from graphlib import CycleError, TopologicalSorter
from typing import Literal, Protocol, TypeAlias, TypeVar, cast

from verifier.base.arrays import Columns, Mask
from verifier.base.errors import UsageError
from verifier.language.expressions import Source
from verifier.language.expressions.evaluation import Value
from verifier.language.expressions.kinds import Kind
from verifier.language.expressions.syntax import (
    FALSE,
    TRUE,
    Boolean,
    Call,
    Name,
    Node,
    Number,
    Operation,
    Temporal,
    labels_of,
    names_in,
)

EMPTY_CLASS = "empty"
ONE = Number(1)
ENDED = "ended"
"""What specs call the terminal states where the model has nothing else of that name."""
PICKS = {
    "lsb_first": "least in least-significant-bit-first order: even before odd, then bit 1 = 0 before 1, ...",
    "lowest": "the least value of the inputs, in the order they are declared",
    "highest": "the greatest value of the inputs, in the order they are declared",
}
"""How one of several equally good inputs is picked; which one a synthesis tool takes is an accident."""

_NODES = (Number, Boolean, Name, Operation, Call, Temporal)
_Part = TypeVar("_Part")
Type: TypeAlias = Kind
PlannerKind: TypeAlias = Literal["rules", "runs", "synthesis", "table", "gr1c", "prism", "function"]


def with_nodes(part: _Part, change: Callable[[Node], Node]) -> _Part:
    """A part of a model with each of its expressions changed: itself, or those of its fields, values or entries."""
    made: object = part
    if isinstance(part, _NODES):
        made = change(part)
    elif isinstance(part, tuple):
        made = tuple(with_nodes(inner, change) for inner in part)
    elif isinstance(part, Mapping):
        made = {name: with_nodes(inner, change) for name, inner in part.items()}
    elif is_dataclass(part) and not isinstance(part, type):
        made = replace(part, **with_nodes(vars(part), change))
    return cast(_Part, made)


def nodes_of(part: object) -> list[Node]:
    """Every expression of a part of a model."""
    nodes: list[Node] = []

    def met(node: Node) -> Node:
        nodes.append(node)
        return node

    with_nodes(part, met)
    return nodes


@dataclass(frozen=True)
class Range:
    """Whole numbers `low..high`, both included."""

    low: Node
    high: Node


@dataclass(frozen=True)
class Variable:
    """A state variable, or (with `next` None) an input that the planner sets in every step.

    `default` is the value of an input where the rule that applies does not set it, and where no rule applies.
    `hidden` says whether planners may read it; None where the file leaves that to what moves it.
    `unit` of its numbers is for people.
    """

    name: str
    range: Range
    next: Node | None = None
    default: Node | None = None
    hidden: bool | None = None
    unit: str = ""


@dataclass(frozen=True)
class Draw:
    """An input that the world draws in every step, independently of the others and of what is reported.

    Attributes:
        chances: value -> its probability, over the state and what the world decides; two for an interval that it lies
            in, which the world resolves anew in every step; None for what the others leave of 1.
    """

    name: str
    range: Range
    chances: Mapping[int, Node | tuple[Node, Node] | None]

    @property
    def is_open(self) -> bool:
        """Whether some probability is known only up to an interval."""
        return any(isinstance(chance, tuple) for chance in self.chances.values())


@dataclass(frozen=True)
class Decision:
    """An input that the world sets as it likes, where that is admissible together with its other decisions."""

    name: str
    range: Range
    admissible: Node = TRUE


@dataclass(frozen=True)
class BoundedVariable:
    """A variable or input with its range in numbers."""

    name: str
    low: int
    high: int

    @property
    def size(self) -> int:
        """Number of values."""
        return self.high - self.low + 1


@dataclass(frozen=True)
class PlacedObject:
    """An object of the environment: its true class and its distance to the ego in metres.

    The class `empty` marks a place where there is no object.

    Attributes:
        class_name: its class; "" where that depends on the state.
        when: in which states it is there. Elsewhere it reports nothing and stands in nobody's bin.
        class_when: class -> in which states it is of that class; exactly one wherever the object is there.
        at: further variable of the matrices -> its value, or the name of a bin -> in which states it is in it.
    """

    class_name: str
    distance_m: Node
    name: str = ""
    when: Node = TRUE
    class_when: Mapping[str, Node] = field(default_factory=dict)
    at: Mapping[str, Node | Mapping[str, Node]] = field(default_factory=dict)

    @property
    def classes(self) -> Mapping[str, Node]:
        """Class -> condition for every class it may be of."""
        return self.class_when or {self.class_name: TRUE}

    def with_nodes(self, change: Callable[[str, Node], Node]) -> PlacedObject:
        """The same with each expression changed, which is given with its key."""
        places: dict[str, Node | Mapping[str, Node]] = {}
        for name, where in self.at.items():
            change_here = partial(change, f"at.{name}")
            if isinstance(where, Mapping):
                places[name] = {name: change_here(node) for name, node in where.items()}
            else:
                places[name] = change_here(where)
        return replace(
            self,
            distance_m=change("distance_m", self.distance_m),
            when=change("when", self.when),
            class_when={name: change("class", node) for name, node in self.class_when.items()},
            at=places,
        )

    def is_present(self, what: str) -> Node:
        """In which states it is there and has that name or is of that class."""
        if what == self.name:
            return self.when
        return Operation("&", (self.when, self.classes[what])) if what in self.classes else FALSE


def presence(objects: tuple[PlacedObject, ...]) -> Callable[[Call], Node]:
    """What `present(name or class)` means where these objects stand; other atoms mean themselves."""

    def meaning(atom: Call) -> Node:
        if atom.function != "present":
            return atom
        present = [placed.is_present(labels_of(atom)[0]) for placed in objects]
        known = [node for node in present if node != FALSE]
        return reduce(lambda one, more: Operation("|", (one, more)), known or [FALSE])

    return meaning


@dataclass(frozen=True)
class Variant:
    """How the model differs in one environment: what its table says beside its objects.

    Attributes:
        constants, next, labels: by name, in the place of the model's.
        initial: joined with the model's.
        terminal: in the place of the model's; None where the table says nothing.
        weight: what its scenarios count for beside those of other environments; a factor of the model's.
    """

    constants: Mapping[str, Node] = field(default_factory=dict)
    next: Mapping[str, Node] = field(default_factory=dict)
    labels: Mapping[str, Node] = field(default_factory=dict)
    initial: Node = TRUE
    terminal: Node | None = None
    weight: Node = ONE


@dataclass(frozen=True)
class Rule:
    """When `when` holds, set the inputs, those not named to their defaults; with `inputs` None the state stays.

    `when` and the values may ask what the detector reports: `sees(ped)`. `path` is where the rule stands in the
    model file (a dotted key), for messages.
    """

    when: Node
    inputs: Mapping[str, Node] | None
    path: str = ""


@dataclass(frozen=True)
class Run:
    """One run from each initial state, followed while the detector reports what `when` says.

    Either `inputs` (a rule that the run follows) or `reach` and `through`: the run goes to a state of `reach`,
    passing only states of `through`; where several inputs lead on to it, `pick` decides.
    """

    when: Node
    inputs: Mapping[str, Node] | None = None
    reach: Node = FALSE
    through: Node = FALSE
    path: str = ""


FrameWord: TypeAlias = Literal["last", "any", "all"]
Reading: TypeAlias = FrameWord | tuple[int, int]


@dataclass(frozen=True)
class Memory:
    """A variable of a planner, which its rules may read and set, and with what it begins."""

    name: str
    range: Range
    initial: Node


@dataclass(frozen=True)
class Tracker:
    """Confirmed after so many hits among the last results, deleted after so many misses; see `systems.observation`.

    Attributes:
        of: what counts as a hit in a frame.
        confirm, delete: (m, n), m of the last n; with log odds the level, twice.
        log_odds: (hit, miss), what a result adds to the level.
        levels: least and greatest value of its second variable: the last results as bits, or the level.
        start: with which level it begins.
    """

    name: str
    of: Node
    confirm: tuple[int, int]
    delete: tuple[int, int]
    log_odds: tuple[int, int] | None
    levels: tuple[int, int]
    start: int = 0

    @property
    def variables(self) -> tuple[str, str]:
        """Names of its two variables: confirmed or not, and the last results or the level."""
        return f"{self.name}_confirmed", f"{self.name}_recent"


class Decider(Protocol):
    """What decides in the place of rules: a table, or a function of arrays.

    A *case* is a state with what is reported in it; it is given by the values of `asks`.
    """

    @property
    def asks(self) -> Mapping[str, tuple[Node, Type | None]]:
        """Text -> expression over state, memory and atoms, and its kind where that is known."""

    @property
    def compared(self) -> tuple[Node, ...]:
        """The same as conditions and values in which counts are compared with the numbers that matter."""

    @property
    def sets(self) -> tuple[str, ...] | None:
        """The inputs and the memory that it sets; None where that is known only when it decides."""

    def decided(self, views: Iterable[Columns]) -> Iterator[tuple[Mask, Columns]]:
        """For each view, values of `asks` as (k,) arrays: (k,) whether it decides, and name -> (k,) what it sets."""

    def explained(self, case: Mapping[str, Value]) -> tuple[Source, str]:
        """Where it decides one case, and what to say if it does not."""


@dataclass(frozen=True)
class PlannerFile:
    """The file of a planner: its name as the model has it, where it lies, and the hash of its bytes."""

    name: str
    path: str
    sha256: str


def files_of(planners: Mapping[str, Planner]) -> tuple[PlannerFile, ...]:
    """The files of planners, each once."""
    return tuple(dict.fromkeys(planner.file for planner in planners.values() if planner.file is not None))


@dataclass(frozen=True)
class Planner:
    """A planner.

    rules: the first rule whose condition holds sets the inputs; a feedback on the whole state.
    runs: the first run whose condition holds is followed where the state lies on it, else the first rule that
        holds (the backup).
    synthesis: for each observation the controller that meets the requirements if the observation is true
        (perfect perception); where no input can still meet them, the first rule that holds.
    table, gr1c, function: the decider; where it does not decide, the first rule that holds, if there are rules.
    prism: the only command whose guard holds; where none does, the first rule that holds, if there are rules.

    `reading` says which of the frames of a step `sees` means: the last one, any, all, or (h, n), at least h of n.
    `formula` is what a synthesis planner is computed from; None means the requirements of the spec.
    `places` says where in the planner's file something stands that a dotted key of the model names.
    """

    name: str
    kind: PlannerKind
    rules: tuple[Rule, ...]
    runs: tuple[Run, ...] = ()
    formula: Node | None = None
    pick: str = "lowest"
    source: str = ""
    memory: tuple[Memory, ...] = ()
    trackers: tuple[Tracker, ...] = ()
    reading: Reading = "last"
    decider: Decider | None = None
    commands: tuple[Rule, ...] = ()
    file: PlannerFile | None = None
    places: Mapping[str, Source] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.pick not in PICKS:
            raise UsageError(f"planner '{self.name}': unknown pick rule {self.pick!r}; known: {', '.join(PICKS)}")

    @property
    def chooses(self) -> bool:
        """Whether it looks at all moves; any other planner is followed from the initial states."""
        return self.kind in ("runs", "synthesis")

    @property
    def is_foreign(self) -> bool:
        """Whether something else than the model says what it does."""
        return self.decider is not None or bool(self.commands)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Every condition and value of it that may ask what is reported, but for those of trackers."""
        rules: tuple[Rule | Run, ...] = (*self.commands, *self.rules, *self.runs)
        own = () if self.decider is None else self.decider.compared
        return (*own, *(node for rule in rules for node in (rule.when, *(rule.inputs or {}).values())))


def dependency_order(nodes: Mapping[str, Node], table: Source) -> list[str]:
    """The names of `nodes`, each after those that its node uses; InputError when they go in a circle."""
    uses = {name: sorted(names_in(node) & nodes.keys()) for name, node in nodes.items()}
    try:
        return list(TopologicalSorter(uses).static_order())
    except CycleError as error:
        circle: list[str] = error.args[1][:0:-1]  # each uses the next one; the first stands at both ends
        at = circle.index(min(circle))
        names = [*circle[at:], *circle[:at]][:10]
        more = [f"{len(circle) - 10} more"] if len(circle) > 10 else []
        shown = " -> ".join([*names, *more, circle[at]])
        raise table.error(f"these depend on each other in a circle: {shown}", None) from None
