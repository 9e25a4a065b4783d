"""What the derived files of a bundle are made from: its inputs and results, read and validated once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from verifier.base.errors import InputError, Place
from verifier.base.files import json_of
from verifier.evidence.bundle.layout import INPUTS, OMITTED_FILE, RUN_FILE, alternative_file
from verifier.evidence.bundle.making import planned, read_omitted
from verifier.evidence.bundle.manifest import Entry, digest_of
from verifier.evidence.bundle.policies import alternatives
from verifier.evidence.bundle.request import Request
from verifier.evidence.bundle.system import Unpacked
from verifier.evidence.context import CaseContext
from verifier.evidence.documents import Document, checked_document
from verifier.study.case import Study
from verifier.study.results import RunResult


@dataclass(frozen=True, eq=False)
class Parts:
    """Inputs and results of a bundle.

    Attributes:
        request: what was asked.
        rebuilt: the system, rebuilt from the inputs.
        files: path -> bytes, inputs and results.
        about: path -> what it is, for people.
        documents: path -> validated document, for every file that is one; the run first.
        alternatives: policy in words -> the run under it.
        omitted: path -> why it was not made.
        context: what people declare about the case.
    """

    request: Request
    rebuilt: Study
    context: CaseContext
    files: Mapping[str, bytes]
    about: Mapping[str, str]
    documents: Mapping[str, Document]
    alternatives: Mapping[str, Document]
    omitted: Mapping[str, str]

    @property
    def run(self) -> Document:
        """The run that everything else speaks of."""
        return self.documents[RUN_FILE]

    @property
    def result(self) -> RunResult:
        """What that run found."""
        found: RunResult = self.run.result
        return found

    @property
    def title(self) -> str:
        """Of the bundle: what the matrices are, and the spec."""
        return f"{self.result.title}: {self.result.inputs[0].name}"

    @property
    def hashes(self) -> dict[str, str]:
        """Path -> SHA-256 of every input and result."""
        return {path: digest_of(raw) for path, raw in self.files.items()}

    def entries(self) -> dict[str, Entry]:
        """The manifest's entries of inputs and results."""
        inputs = {*self.request.inputs, *(path for path in self.files if "/" not in path)}
        return {
            path: Entry.of(path, "input" if path in inputs else "result", self.about[path], raw)
            for path, raw in self.files.items()
        }


def read_parts(
    request: Request, read: Unpacked, rebuilt: Study, files: Mapping[str, bytes], about: Mapping[str, str]
) -> Parts:
    """Read and validate inputs and results.

    Args:
        request, read, rebuilt: of the bundle.
        files: path -> bytes, inputs and results and nothing else.
        about: as in `Parts`.

    Raises:
        InputError: a document is none, or does not keep to its schema.
    """
    for path in (RUN_FILE, OMITTED_FILE):
        if path not in files:
            raise InputError("is not there", Place(path))
    omitted = read_omitted(files[OMITTED_FILE])
    results = [each.path for each in planned(rebuilt) if each.path in files]
    matrices = [path for path in (request.matrices,) if path in files]
    documents = {path: document_of(files[path], path) for path in (*results, *matrices)}
    documents |= {path: _given(files[path], path) for path in request.given if path in files}
    words = {alternative_file(each.name): each.words for each in alternatives(rebuilt)}
    others = {words[path]: documents[path] for path in results if path in words}
    return Parts(request, rebuilt, read.context, files, about, documents, others, omitted)


def _given(raw: bytes, path: str) -> Document:
    """A result that was made elsewhere, named so that no reader takes it for one of the bundle's own."""
    return replace(document_of(raw, path), name=path.removeprefix(f"{INPUTS}/"))


def document_of(raw: bytes, path: str) -> Document:
    """The validated document that some bytes are; InputError where they are none."""
    return checked_document(json_of(raw, path), raw, path)
