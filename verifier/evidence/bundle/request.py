"""What was asked of a bundle, as a value and as its document `request.json`: enough to compute everything again.

Limits of time and memory are left out: they decide whether there is a result, never which.

The inputs of a bundle, read: spec, model, matrices, and what people declare.
"""

import contextlib
import datetime
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from verifier.base.documents import Content, json_values, read_document
from verifier.base.errors import InputError, Place, VerifierError, files_named, shown
from verifier.base.keywords import Typed, keywords_of, settings_from
from verifier.base.options import options_of
from verifier.evidence.bundle.layout import INPUTS, path_of_planner
from verifier.evidence.bundle.manifest import digest_of
from verifier.evidence.context import CaseContext, read_context
from verifier.evidence.identity import SBOM_FILE, SBOM_WORDS, Identity
from verifier.study.inputs import Inputs, read_inputs
from verifier.study.options import MEMORY_BY_DEFAULT, RunOptions
from verifier.systems.model_parts import files_of

REQUEST_FILE = "request.json"
_UNRECORDED = (
    "mix", "persist", "assume_persistence", "rate_box", "assume_rate_box", "timeout", "max_states", "max_memory",
)  # fmt: skip
"""Options of which no bundle is made, or that decide whether there is a result only."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked, as its document.

    Attributes:
        spec, model, matrices: paths in the bundle.
        context: path of the declared context of the case, or None.
        given: paths of results that were made elsewhere and put in.
        planners: paths of the files of planners that the model names.
        documents: paths of the documents that the context names.
        asked: option -> its value as it would be typed, of those that are not as by default.
        command: what was typed; empty where a program called.
        day: on which the validity of documents is judged; None where none expires.
        issued: the day of SOURCE_DATE_EPOCH, where the context states no other; None where that was not set.
    """

    schema: ClassVar[str] = "verifier.bundle_request"
    version: ClassVar[int] = 2
    spec: str
    model: str
    matrices: str
    context: str | None = None
    given: tuple[str, ...] = ()
    planners: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    asked: Mapping[str, Typed] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    day: datetime.date | None = None
    issued: datetime.date | None = None

    def __post_init__(self) -> None:
        if not all(path.startswith(INPUTS + "/") for path in self.inputs):
            raise ValueError(f"an input that does not lie in {INPUTS}/")
        if len(set(self.inputs)) < len(self.inputs):
            raise ValueError("one file named as two inputs")

    @cached_property
    def options(self) -> RunOptions:
        """The options that are asked for, with the limits that there are by default."""
        return settings_from(RunOptions, self.asked).by_default()

    @property
    def inputs(self) -> tuple[str, ...]:
        """The paths of all input files, this document excluded."""
        declared = [self.context] if self.context else []
        return (self.spec, self.model, self.matrices, *declared, *self.given, *self.planners, *self.documents)

    @property
    def words(self) -> dict[str, str]:
        """Path -> what it is, for people, of every input and of what is recorded beside them."""
        words = {
            REQUEST_FILE: "what was asked",
            self.spec: "the requirements",
            self.model: "the system model",
            self.matrices: "the confusion matrices",
        }
        if self.context is not None:
            words[self.context] = "the declared context of the case"
        words[SBOM_FILE] = SBOM_WORDS
        words |= dict.fromkeys(self.planners, "a planner of the model")
        words |= dict.fromkeys(self.documents, "a document that is given as evidence")
        return words | dict.fromkeys(self.given, "a result that was made elsewhere")


def typed(options: RunOptions) -> dict[str, Typed]:
    """What would be typed for options, as far as a request records it."""
    forgetting = replace(options, memory=None) if options.memory == MEMORY_BY_DEFAULT else options
    return {name: value for name, value in keywords_of(forgetting).items() if name not in _UNRECORDED}


def request_of(content: Any) -> Request:
    """The request that a decoded document holds.

    Raises:
        InputError: it is none, or it asks for something that does not exist, or says it otherwise than `typed`.
    """
    place = Place(REQUEST_FILE, path="/asked")
    try:
        if isinstance(content, dict) and content.get("version") == 1:
            content = _as_written_now(content)
        request = read_document(Request, content, REQUEST_FILE)
        options = typed(request.options)
    except InputError:
        raise
    except (VerifierError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"no request for a bundle: {error}", place) from None
    if options != request.asked:
        asked = shown(dict(request.asked))
        raise InputError(f"no request for a bundle: expected {shown(options)}, found {asked}", place)
    return request


def _as_written_now(content: Content) -> Content:
    """What release 0.1.0.dev1 wrote, as it is written now: files and options were apart, options named as fields."""
    options = dict(content["options"])
    told = options.pop("selection") | (options.pop("confidence") or {"point_only": True}) | options
    for name in ("where", "settings", "sweeps"):
        values = {key: entry["word"] if isinstance(entry, dict) else entry for key, entry in told[name].items()}
        told[name] = [
            f"{key}={value if isinstance(value, str) else ','.join(value)}" for key, value in values.items()
        ]
    defaults = {setting.field: json_values(setting.default) for _, setting in options_of(RunOptions)}
    given = {name: value for name, value in told.items() if value and value != defaults.get(name)}
    if not given.keys().isdisjoint(_UNRECORDED):
        raise ValueError(f"an option of which no bundle is made: {', '.join(given)}")
    rest = {key: part for key, part in content.items() if key not in ("version", "files", "options")}
    asked = typed(settings_from(RunOptions, given).by_default())
    return {**rest, **content["files"], "version": Request.version, "asked": asked}


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
        for path in (request.spec, request.model, request.matrices, *declared, *request.planners, *request.documents):
            if path not in files:
                raise InputError("the request names an input that is not there", Place(path))
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(files[path])
        with files_named(without_folder):
            inputs = read_inputs(folder / request.spec, folder / request.matrices, request.options)
            if inputs.spec.model.resolve() != (folder / request.model).resolve():
                said = f"the spec names the model {shown(inputs.spec.model_name)}, which is not {request.model}"
                raise InputError(said, Place(request.spec))
            planners = files_of(inputs.model.planners)
            own = [path_of_planner(request.model, planner.name, request.model) for planner in planners]
            if own != list(request.planners):
                raise InputError(f"the model names {shown(own)} as files of planners", Place(REQUEST_FILE))
            day = request.day or datetime.date.max  # what expires has expired on a day that nobody names
            context = CaseContext(identity=Identity(issued=request.issued))
            if declared:
                context = read_context(folder / declared[0], day, request.issued)
            if request.issued not in (None, context.identity.issued):
                raise InputError("the request has another issue date than the context", Place(REQUEST_FILE))
            if declared and list(request.documents) != documents_of(declared[0], context):
                raise InputError("the request does not name the documents of the context", Place(REQUEST_FILE))
            _refuse_circles(files, request, context)
        yield Unpacked(inputs, context)


def _refuse_circles(files: Mapping[str, bytes], request: Request, context: CaseContext) -> None:
    """Refuse what a case is about as evidence for it, under any name and with blanks elsewhere; InputError."""
    folder = (request.context or "").rpartition("/")[0]
    names = [request.spec, request.model, request.matrices, *request.planners, *request.given, request.context or ""]
    names += [f"{folder}/{condition.matrices}" for condition in context.conditions]
    bare = {_bare(files[name]): name for name in names if name in files}
    exact = {digest_of(files[name]): name for name in names if name in files}
    for evidence in context.declared.evidence.values():
        path = f"{folder}/{evidence.file}"
        own = exact.get(evidence.sha256) or (bare.get(_bare(files[path])) if evidence.copied else None)
        own = own or ("a result of this program" if evidence.copied and _RESULT.match(files[path]) else None)
        if own is not None:
            said = f"{shown(evidence.file)} is {own}, which the case is about, and shows nothing of itself"
            hint = "a document that says why it is right: a test, a review, an analysis"
            raise InputError(said, Place(request.context, path=f"evidence.{evidence.name}.file"), hint)


_RESULT = re.compile(rb'[\xef\xbb\xbf\s]*\{\s*"schema"\s*:\s*"verifier\.(run|explain|require|rate|risk|triggers)"')
"""What follows from a model and data, and is computed from those of the case anyway."""


def _bare(raw: bytes) -> str:
    return digest_of(raw.translate(None, b" \t\r\n\f\v"))


def documents_of(path: str, context: CaseContext) -> list[str]:
    """Where the documents that a context names lie, for its own path."""
    return [f"{path.rpartition('/')[0]}/{document}" for document in context.documents]


def without_folder(text: str) -> str:
    """A message without the folder that inputs are unpacked to: it means nothing to whoever reads it."""
    above = re.escape(str(Path(tempfile.gettempdir()).resolve()))
    return re.sub(rf"{above}/{_PREFIX}[^/]*/", "", text)
