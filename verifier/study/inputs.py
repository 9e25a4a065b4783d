"""The files of a run, read and checked against each other.

The scenario grid: planners x values of swept constants x environments x initial states.

One block of the grid shares a skeleton: a planner, one value of each swept constant, and a environment, with
every initial state at once.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from verifier.analysis.intervals.drive_items import weighted_matrices
from verifier.analysis.intervals.tiers import RateBox, read_rate_box
from verifier.base.errors import InputError, LimitError, Place, UsageError, VerifierError, unknown_name
from verifier.base.files import read_text
from verifier.base.numbers import decimal_text
from verifier.checking.two_engines import AbstractFormula, abstracted
from verifier.language.expressions import Source, check_type
from verifier.language.expressions.syntax import Node, Operation, Position, conjunction
from verifier.language.ltl import in_frames
from verifier.language.specs import Requirement, Specification, check_names, read_spec
from verifier.perception.confusion import ConfusionFile, ConfusionMatrices, read_confusion
from verifier.perception.confusion.context_selection import divided_matrices, divided_sequences
from verifier.perception.confusion.counts import ContextCounts, Sequences
from verifier.perception.confusion.mix import MixedMatrices
from verifier.study.options import RunOptions, Selection
from verifier.study.remembered import with_memory
from verifier.systems.constants import Setting
from verifier.systems.declarations import refuse_absent
from verifier.systems.model import System, SystemModel
from verifier.systems.model_parts import ENDED, Planner
from verifier.systems.reader import read_model


@dataclass(frozen=True)
class Inputs:
    """The files of a run, read and checked against each other.

    Attributes:
        contexts: the counts of the matrices by what the detector remembers; None for a memoryless one.
    """

    spec: Specification
    model: SystemModel
    confusion: ConfusionFile
    contexts: ContextCounts | None = None

    @property
    def title(self) -> str:
        """What the matrices are, for people."""
        return self.confusion.matrices.title or Path(self.confusion.name).stem

    @property
    def frames(self) -> int:
        """Steps of the chain in one of the model: the frames of that, where the detector remembers them."""
        return 1 if self.contexts is None else self.model.frames

    def forgetful(self) -> Inputs:
        """The same without what the detector remembers."""
        return replace(self, contexts=None)

    def formulas(
        self, asked: Sequence[Requirement]
    ) -> tuple[tuple[AbstractFormula, ...], tuple[AbstractFormula | None, ...]]:
        """What requirements ask of steps of the chain, and what they suppose, as a study has it."""
        supposed = [requirement.given for requirement in asked if requirement.given is not None]
        nodes = [in_frames(node, self.frames) for node in (*(requirement.joint for requirement in asked), *supposed)]
        abstractions = iter(abstracted(nodes))
        joint = tuple(itertools.islice(abstractions, len(asked)))
        return joint, tuple(None if requirement.given is None else next(abstractions) for requirement in asked)

    def grid(self, options: RunOptions) -> Grid:
        """The scenario grid that spec and options ask for."""
        return make_grid(self.spec, self.model, options.selection)

    def matrices(self, options: RunOptions) -> ConfusionMatrices:
        """The matrices to use: those of the file or their sum over all bins, with the weights of the bounds.

        Point, intervals and bounds are made from the same weights: so the point lies within its bounds.

        Raises:
            UsageError: the file does not know what the weights need.
        """
        strata = self.mixed(options)
        if strata is not None:
            return strata.matrices()
        matrices = self.confusion.matrices.canonical() if options.canonical else self.confusion.matrices
        if self.contexts is not None:
            matrices = divided_matrices(matrices, self._contexts(self.contexts, options), options.empty_contexts)
        return weighted_matrices(matrices, self.sequences(options), options.weights)

    def mixed(self, options: RunOptions) -> MixedMatrices | None:
        """The matrices by the bins of the variable that is weighed, where one is."""
        matrices = self.confusion.mixed
        return matrices.canonical() if matrices is not None and options.canonical else matrices

    def sequences(self, options: RunOptions) -> Sequences | None:
        """The counts by sequence, or the units that bounds name, behind these matrices, where there are any."""
        self._check_units(options)
        counts, divided = self.confusion.sequences, self.confusion.by_context
        named = None if options.confidence is None else options.confidence.unit
        if divided is not None and divided.units not in (None, named):
            return None
        if counts is not None and self.contexts is not None:
            return divided_sequences(counts, self._contexts(self.contexts, options))
        return counts.canonical() if counts is not None and options.canonical else counts

    def rate_box(self, options: RunOptions) -> RateBox | None:
        """The stated box of rates, where there is one; errors as `read_rate_box`."""
        if options.rate_box is None:
            return None
        matrices, by_context = self.matrices(options), self.confusion.by_context
        tested = [matrices]
        if by_context is not None and self.contexts is None:  # a box speaks of every past, used or not
            contexts = self._contexts(by_context, options)
            tested.append(divided_matrices(matrices, contexts, options.empty_contexts))
        return read_rate_box(options.rate_box, matrices, () if options.assume_rate_box else tested)

    def _check_units(self, options: RunOptions) -> None:
        """Refuse bounds by other units than the file counts; UsageError."""
        settings, divided = options.confidence, self.confusion.by_context
        if settings is None:
            return
        asked, counted = settings.unit, None if divided is None else divided.units
        needs_drives = settings.bounds not in ("items", "anytime") and options.rate_box is None
        if asked not in (None, "drive") and asked != counted:
            raise UsageError(
                f"--bounds units:{asked} needs matrices that are counted by {asked}: count them with "
                f"verify confusion --memory run:10 --units {asked}"
            )
        if counted is not None and counted != asked and needs_drives:
            raise UsageError(
                f"the matrices are counted by {counted}, so nobody knows drives: name --bounds units:{counted}, or "
                "count them without --units"
            )

    @staticmethod
    def _contexts(contexts: ContextCounts, options: RunOptions) -> ContextCounts:
        return contexts.canonical() if options.canonical else contexts


def read_inputs(
    spec_path: str | Path,
    confusion_path: str | Path,
    options: RunOptions = RunOptions(),
    system: SystemModel | None = None,
) -> Inputs:
    """Read spec, system model and matrices; VerifierError as `verifier.pipeline.verify_spec`.

    `system` is the model that the spec names, read before and given further planners.
    """
    spec, model = read_spec_and_model(spec_path, options, system)
    kept = sorted(model.placed_by)
    for name in kept:
        if name in options.where:
            raise UsageError(f"--where chooses a bin of '{name}', and the model says in which its objects are")
    confusion = read_confusion(confusion_path, options.where, options.score_threshold, options.mix, kept)
    known = {variable.name for variable in confusion.matrices.variables}
    for environment, objects in model.environments.items():
        for index, placed in enumerate(objects):
            for name in sorted(placed.at.keys() - known):
                place = model.at(f"{model.object_path(environment, index)}.at.{name}")
                _, hint = unknown_name("variable", name, confusion.further)
                raise place.error(f"the matrices have no variable '{name}'", None, hint)
    return Inputs(spec, model, *with_memory(confusion, model, options))


def read_spec_and_model(
    spec_path: str | Path, options: RunOptions, system: SystemModel | None = None
) -> tuple[Specification, SystemModel]:
    """The spec and its model, checked against each other; as `read_inputs`."""
    spec = read_spec(spec_path)
    if system is None and not spec.model.exists():
        message = f"{spec.model}: no such file, looked for from the folder of the spec"
        raise spec.source.error(message, spec.model_at)
    model = read_model(spec.model) if system is None else system
    if system is not None and hashlib.sha256(read_text(spec.model)[1]).hexdigest() != system.sha256:
        raise UsageError(f"{spec_path} names the model {spec.model_name}, and the system was read from {system.file}")
    chosen = spec.planners if spec.planners and "all" not in spec.planners else tuple(model.planners)
    spec = checked_names(spec, model, chosen)
    if options.selection.initial is not None:
        check_type(options.selection.initial, model.types(), Source("", "--initial"), "boolean")
        refuse_absent(model, options.selection.initial, Source("", "--initial"))
    return spec, model


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
    sweeps = {sweep.name: sweep.values for sweep in spec.sweeps if sweep.name not in selection.settings}
    sweeps.update(selection.sweeps)
    named: dict[str, Setting] = {**{setting.name: setting.value for setting in spec.settings}, **selection.settings}
    settings = {name: value for name, value in named.items() if name not in sweeps}
    count = len(planner_names) * len(environments) * math.prod(len(values) for values in sweeps.values())
    if count > LARGEST_GRID:
        raise LimitError(f"the grid has {count} blocks; at most {LARGEST_GRID} are run at once")
    conditions = [node for node in (spec.initial, selection.initial) if node is not None]
    aimed = [one for one in spec.requirements if one.is_plain and one.target is not None]
    wanted = [requirement.formula for requirement in aimed if not requirement.is_upper]
    wanted += [Operation("!", (requirement.formula,)) for requirement in aimed if requirement.is_upper]
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
        match = re.search(rf"\b{re.escape(name)}\b", line)
        if line.lstrip().startswith(kind) and match:
            return InputError(message, Place(spec.file, number, match.start() + 1, text=line), hint)
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
    inside = {environment: model.inside(environment) for environment in environments}
    distinct = {id(model): model for model in inside.values()}
    systems = [{key: model.instantiate({**settings, **point}) for key, model in distinct.items()} for point in points]
    for name in planner_names:
        for point, made in zip(points, systems, strict=True):
            for environment in environments:
                system = made[id(inside[environment])]
                blocks.append(Block(system.planners[name], point, system, environment))
    return blocks


def checked_names(spec: Specification, model: SystemModel, planners: Iterable[str] = ()) -> Specification:
    """The spec with its bounds in steps, when every name in it fits the model; InputError as `check_names`."""
    free = (ENDED,) if model.knows_ended else ()
    specification = check_names(spec, model.types(planners), model.rewards, model.step_s, free)
    asked = (node for requirement in spec.requirements for node in (requirement.original, requirement.original_given))
    for node in (*spec.lets.values(), spec.initial, *asked):
        if node is not None:
            refuse_absent(model, node, spec.source)
    return specification


def refuse_others(requirements: Iterable[Requirement], what: str, model: SystemModel | None = None) -> None:
    """Refuse requirements that ask anything but the probability of a formula, and a model whose world decides;
    UsageError, which names them."""
    if model is not None and model.decides:
        names = ", ".join(f"'{name}'" for name in model.decides)
        raise UsageError(
            f"{what} is about Markov chains, and the world decides {names}: verify run gives its least and greatest "
            "probabilities"
        )
    others = [requirement for requirement in requirements if not requirement.is_plain]
    if others:
        listed = ", ".join(
            f"'{requirement.name}' asks {requirement.asked}{' given' * (requirement.given is not None)}"
            for requirement in others
        )
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
    known = {requirement.name for requirement in spec.requirements}
    for requirement in selected:
        for end in ends_of(requirement, model):
            if end.name != requirement.name and end.name in known:
                called = f"its least and greatest value are called {end.name} .."
                message = f"{requirement.name}: the world decides, and {called}"
                place = Position(requirement.line, 1)
                raise spec.source.error(message, place, f"rename {end.name}, which is another requirement")
    return tuple(end for requirement in selected for end in ends_of(requirement, model))


def ends_of(requirement: Requirement, model: SystemModel) -> tuple[Requirement, ...]:
    """What a run has of a requirement of the spec: where the world decides, the ends of its values."""
    return requirement.ends if model.decides else (requirement,)


def selected_requirements(spec: Specification, names: tuple[str, ...]) -> tuple[Requirement, ...]:
    """Those of these names, in the order of the spec; all where none is named. UsageError for an unknown name."""
    known = {requirement.name: requirement for requirement in spec.requirements}
    for name in names:
        if name not in known:
            raise UsageError(": ".join(unknown_name("requirement", name, known)))
    return tuple(requirement for requirement in spec.requirements if not names or requirement.name in names)
