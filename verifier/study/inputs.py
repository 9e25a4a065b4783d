"""The files of a run, read and checked against each other."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from verifier.analysis.intervals.drive_items import weighted_matrices
from verifier.base.errors import UsageError, unknown_name
from verifier.base.files import read_text
from verifier.checking.requirements import AbstractFormula, abstracted
from verifier.language.expressions import Source, check_type
from verifier.language.ltl import in_frames
from verifier.language.specs import Requirement, Specification, read_spec
from verifier.perception.confusion import ConfusionFile, ConfusionMatrices, read_confusion
from verifier.perception.confusion.context_matrices import divided_matrices, divided_sequences
from verifier.perception.confusion.counts import ContextCounts, Sequences
from verifier.perception.confusion.mix import MixedMatrices
from verifier.study.options import RunOptions
from verifier.study.remembered import with_memory
from verifier.study.scenarios import Grid, checked_names, make_grid
from verifier.systems.model import SystemModel
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

    def formulas(
        self, asked: Sequence[Requirement]
    ) -> tuple[tuple[AbstractFormula, ...], tuple[AbstractFormula | None, ...]]:
        """What requirements ask of steps of the chain, and what they suppose, as a study has it."""
        supposed = [each.given for each in asked if each.given is not None]
        nodes = [in_frames(each, self.frames) for each in (*(each.joint for each in asked), *supposed)]
        found = iter(abstracted(nodes))
        joint = tuple(itertools.islice(found, len(asked)))
        return joint, tuple(None if each.given is None else next(found) for each in asked)

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
        found = self.confusion.mixed
        return found.canonical() if found is not None and options.canonical else found

    def sequences(self, options: RunOptions) -> Sequences | None:
        """The counts by sequence, or the units that bounds name, behind these matrices, where there are any."""
        self._check_units(options)
        found, divided = self.confusion.sequences, self.confusion.by_context
        named = None if options.confidence is None else options.confidence.unit
        if divided is not None and divided.units not in (None, named):
            return None
        if found is not None and self.contexts is not None:
            return divided_sequences(found, self._contexts(self.contexts, options))
        return found.canonical() if found is not None and options.canonical else found

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
    known = {each.name for each in confusion.matrices.variables}
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
    model = read_model(spec.model) if system is None else system
    if system is not None and hashlib.sha256(read_text(spec.model)[1]).hexdigest() != system.sha256:
        raise UsageError(f"{spec_path} names the model {spec.model_name}, and the system was read from {system.file}")
    chosen = spec.planners if spec.planners and "all" not in spec.planners else tuple(model.planners)
    spec = checked_names(spec, model, chosen)
    if options.selection.initial is not None:
        check_type(options.selection.initial, model.types(), Source("", "--initial"), "boolean")
    return spec, model
