"""The inputs of a bundle, read: spec, model, matrices, and what people declare."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from verifier.base.errors import InputError, Place, VerifierError, shown
from verifier.evidence.bundle.layout import path_of_planner
from verifier.evidence.bundle.request import REQUEST_FILE, Request
from verifier.evidence.context import CaseContext, read_context
from verifier.study.inputs import Inputs, read_inputs
from verifier.systems.model_parts import files_of

_PREFIX = "verify-bundle-"


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
        for path in (request.spec, request.model, request.matrices, *declared, *request.planners):
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
            own = [
                path_of_planner(request.model, each.name, request.model) for each in files_of(inputs.model.planners)
            ]
            if own != list(request.planners):
                raise InputError(f"the model names {shown(own)} as files of planners", Place(REQUEST_FILE))
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
