"""What a model file writes down: variables, objects, environments, rules, runs and planners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from verifier.base.errors import UsageError
from verifier.language.expressions.kinds import Kind
from verifier.language.expressions.syntax import FALSE, TRUE, Node

EMPTY_CLASS = "empty"
PICKS = {
    "lsb_first": "least in least-significant-bit-first order: even before odd, then bit 1 = 0 before 1, ...",
    "lowest": "the least value of the inputs, in the order they are declared",
    "highest": "the greatest value of the inputs, in the order they are declared",
}
"""How one of several equally good inputs is picked; which one a synthesis tool takes is an accident."""

Type: TypeAlias = Kind
PlannerKind: TypeAlias = Literal["rules", "runs", "synthesis"]


@dataclass(frozen=True)
class Range:
    """Whole numbers `low..high`, both included."""

    low: Node
    high: Node


@dataclass(frozen=True)
class Variable:
    """A state variable, or (with `next` None) an input that the planner sets in every step.

    `default` is the value of an input where the rule that applies does not set it, and where no rule applies.
    """

    name: str
    range: Range
    next: Node | None = None
    default: Node | None = None


@dataclass(frozen=True)
class PlacedObject:
    """An object of the environment: its true class and its distance to the ego in metres.

    The class `empty` marks a place where nothing stands.
    """

    class_name: str
    distance_m: Node


@dataclass(frozen=True)
class Variant:
    """How the model differs in one environment: what its table says beside its objects.

    Attributes:
        constants, next, labels: by name, in the place of the model's.
        initial: joined with the model's.
        terminal: in the place of the model's; None where the table says nothing.
    """

    constants: Mapping[str, Node] = field(default_factory=dict)
    next: Mapping[str, Node] = field(default_factory=dict)
    labels: Mapping[str, Node] = field(default_factory=dict)
    initial: Node = TRUE
    terminal: Node | None = None


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


@dataclass(frozen=True)
class Planner:
    """A planner of one of three kinds.

    rules: the first rule whose condition holds sets the inputs; a feedback on the whole state.
    runs: the first run whose condition holds is followed where the state lies on it, else the first rule that
        holds (the backup).
    synthesis: for each observation the controller that meets the requirements if the observation is true
        (perfect perception); where no input can still meet them, the first rule that holds.

    `formula` is what a synthesis planner is computed from; None means the requirements of the spec.
    """

    name: str
    kind: PlannerKind
    rules: tuple[Rule, ...]
    runs: tuple[Run, ...] = ()
    formula: Node | None = None
    pick: str = "lowest"
    source: str = ""

    def __post_init__(self) -> None:
        if self.pick not in PICKS:
            raise UsageError(f"planner '{self.name}': unknown pick rule {self.pick!r}; known: {', '.join(PICKS)}")
