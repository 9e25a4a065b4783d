"""The system that a bundle is about, built anew from its inputs: spec, model, matrices, and the grid of scenarios."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from verifier.analysis.confidence import Data, data_of_run
from verifier.analysis.dependence.channel_test import (
    Drawn,
    channel_document,
    class_tests,
    classes_drawn,
    drawn_together,
)
from verifier.analysis.intervals.measured import Measured, measured
from verifier.analysis.objective import Objective, build_objective
from verifier.analysis.vacuity import Vacuity, find_vacuity
from verifier.base.errors import InputError, Place, VerifierError, shown
from verifier.blocks import block_objectives, block_skeleton
from verifier.checking.requirements import AbstractFormula, abstracted
from verifier.evidence.bundle.request import Request
from verifier.evidence.context import CaseContext
from verifier.evidence.context_reader import read_context
from verifier.options import RunOptions
from verifier.perception.confusion import ConfusionMatrices
from verifier.pipeline import Inputs, read_inputs
from verifier.scenarios import Block, Grid

_PREFIX = "verify-bundle-"


@dataclass(frozen=True)
class Resting:
    """What the verdicts of one block rest on beside numbers.

    Attributes:
        draws: the columns that the chain draws from.
        vacuity: for each requirement and initial state why the requirement says nothing there.
    """

    draws: Drawn
    vacuity: tuple[tuple[tuple[Vacuity, ...], ...], ...]


@dataclass(frozen=True, eq=False)
class Rebuilt:
    """Inputs under one set of options, and what follows from them without any model checker.

    Attributes:
        inputs: the files, read.
        options: of the run.
    """

    inputs: Inputs
    options: RunOptions

    @cached_property
    def grid(self) -> Grid:
        """The scenarios."""
        return self.inputs.grid(self.options)

    @cached_property
    def matrices(self) -> ConfusionMatrices:
        """The matrices that the options choose."""
        return self.inputs.matrices(self.options)

    @cached_property
    def measured(self) -> Measured:
        """The matrices as data."""
        return measured(self.matrices, self.options.empty_columns)

    @property
    def bounded(self) -> bool:
        """Whether the options ask for intervals and confidence bounds, and these can be made."""
        return self.options.confidence is not None and self.options.decimals is None

    @cached_property
    def data(self) -> Data | None:
        """What intervals and bounds rest on; None where the options ask for none."""
        if self.options.confidence is None or not self.bounded:
            return None
        chains = (self.objectives(block) for block in self.grid.blocks)
        return data_of_run(chains, self.measured, self.inputs.sequences(self.options), self.options.confidence)

    @cached_property
    def resting(self) -> tuple[Resting, ...]:
        """For each block what its verdicts rest on beside numbers."""
        return tuple(self._resting(block) for block in self.grid.blocks)

    def _resting(self, block: Block) -> Resting:
        skeleton = block_skeleton(block, self.grid, self.matrices, self.options)
        found = find_vacuity(skeleton, [each.formula for each in self.grid.requirements])
        return Resting(classes_drawn(skeleton, self.measured), tuple(each.vacuity for each in found))

    @cached_property
    def channel(self) -> dict[str, Any]:
        """The test of the memoryless detector, as documents have it."""
        drawn = drawn_together(each.draws for each in self.resting)
        return channel_document(class_tests(self.inputs.confusion.matrices.metadata, drawn))

    def objectives(self, block: Block) -> tuple[Objective, ...]:
        """The product of a block's skeleton with each requirement of the grid."""
        return block_objectives(block, self.grid, self.matrices, self.options)

    def objective(self, block: Block, number: int) -> tuple[AbstractFormula, Objective]:
        """A single requirement over proposition names, and its product with a block's skeleton."""
        skeleton = block_skeleton(block, self.grid, self.matrices, self.options)
        formula = abstracted([each.formula for each in self.grid.requirements])[number]
        limit = self.options.engines.product_states
        return formula, build_objective(skeleton, formula.formula, formula.propositions, limit)

    @cached_property
    def initial_states(self) -> tuple[list[dict[str, int]], ...]:
        """For each block its initial states, one valuation each, as the documents list them."""
        return tuple(self._initial_states(block) for block in self.grid.blocks)

    def _initial_states(self, block: Block) -> list[dict[str, int]]:
        skeleton = block_skeleton(block, self.grid, self.matrices, self.options)
        columns = {name: value[skeleton.starts].tolist() for name, value in skeleton.valuations.items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@dataclass(frozen=True, eq=False)
class Unpacked:
    """The inputs of a bundle, read: the files of the run, and what people declare about the case."""

    inputs: Inputs
    context: CaseContext


@contextlib.contextmanager
def unpacked_inputs(files: Mapping[str, bytes], request: Request) -> Iterator[Unpacked]:
    """The inputs of a bundle, read from a folder of their own that exists as long as the context.

    Raises:
        InputError: an input is missing or cannot be read; places name the file in the bundle.
    """
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name:
        folder = Path(name).resolve()
        declared = [] if request.context is None else [request.context]
        for path in (request.spec, request.model, request.matrices, *declared):
            if path not in files:
                raise InputError("the request names an input that is not there", Place(path))
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(files[path])
        with files_named(without_folder):
            inputs = read_inputs(folder / request.spec, folder / request.matrices, request.options)
            if inputs.spec.model.resolve() != (folder / request.model).resolve():
                named = shown(inputs.spec.model_name)
                raise InputError(
                    f"the spec names the model {named}, which is not {request.model}", Place(request.spec)
                )
            context = read_context(folder / declared[0]) if declared else CaseContext()
        yield Unpacked(inputs, context)


def without_folder(text: str) -> str:
    """A message without the folder that inputs are unpacked to: it means nothing to whoever reads it."""
    above = re.escape(str(Path(tempfile.gettempdir()).resolve()))
    return re.sub(rf"{above}/{_PREFIX}[^/]*/", "", text)


@contextlib.contextmanager
def files_named(name: Callable[[str], str]) -> Iterator[None]:
    """Within it errors call files as `name` says, which is given every text that may hold the name of one."""
    try:
        yield
    except InputError as error:
        file = None if error.place.file is None else name(error.place.file)
        raise type(error)(name(error.message), replace(error.place, file=file), error.hint) from None
    except VerifierError as error:
        raise type(error)(name(str(error))) from None
