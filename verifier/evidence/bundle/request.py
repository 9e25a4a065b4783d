"""What was asked of a bundle, as a value and as its document `request.json`: enough to compute everything again.

Limits of time and memory are left out: they decide whether there is a result, never which.

The inputs of a bundle, read: spec, model, matrices, and what people declare.
"""

import contextlib
import datetime
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from verifier.analysis.settings import ConfidenceSettings
from verifier.base.errors import InputError, Place, UsageError, VerifierError, shown
from verifier.base.numbers import decimal_text
from verifier.checking.settings import EngineSettings
from verifier.evidence.bundle.layout import INPUTS, path_of_planner
from verifier.evidence.context import CaseContext, read_context
from verifier.evidence.identity import Identity
from verifier.language.expressions import Source, parse_expression, to_text
from verifier.study.inputs import Inputs, read_inputs
from verifier.study.options import MEMORY_BY_DEFAULT, RunOptions, Selection
from verifier.systems.model_parts import files_of

SCHEMA_NAME = "verifier.bundle_request"
SCHEMA_VERSION = 1
REQUEST_FILE = "request.json"

_SELECTION, _CONFIDENCE = (tuple(each.name for each in fields(kind)) for kind in (Selection, ConfidenceSettings))
_FRACTIONS = ("icc_at_most", "shift")
_OF_RUNS = ("mix", "persist", "assume_persistence", "rate_box", "assume_rate_box")
_APART = ("selection", "where", "memory", *_OF_RUNS, "confidence", "engines", "limits", "point_weights")
"""Options that are recorded in ways of their own, or not at all."""
_PLAIN = tuple(each.name for each in fields(RunOptions) if each.name not in _APART)
_TRUTH = (
    "canonical", "endless", "strategies", "strict", "assume_memoryless", "assume_contexts", "dependence_free",
)  # fmt: skip
_NUMBER = re.compile(r"-?\d{1,400}(\.\d{1,400})?(/\d{1,400})?")
_FILES = ("spec", "model", "matrices", "context", "given")
_MORE = ("planners", "documents")
_DAYS = ("day", "issued")


@dataclass(frozen=True)
class Request:
    """What was asked.

    Attributes:
        spec, model, matrices: paths in the bundle.
        context: path of the declared context of the case, or None.
        given: paths of results that were made elsewhere and put in.
        command: what was typed; empty where a program called.
        planners: paths of the files of planners that the model names.
        documents: paths of the documents that the context names.
        day: on which the validity of documents is judged; None where none expires.
        issued: the day of SOURCE_DATE_EPOCH, where the context states no other; None where that was not set.
    """

    spec: str
    model: str
    matrices: str
    context: str | None
    given: tuple[str, ...]
    options: RunOptions
    command: tuple[str, ...] = ()
    planners: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    day: datetime.date | None = None
    issued: datetime.date | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """The paths of all input files, this document excluded."""
        declared = [self.context] if self.context else []
        return (self.spec, self.model, self.matrices, *declared, *self.given, *self.planners, *self.documents)

    @property
    def _more(self) -> dict[str, list[str]]:
        """The entries of the planners' files and of documents, where there are any."""
        return {name: list(paths) for name in _MORE if (paths := getattr(self, name))}

    def json_text(self) -> str:
        """The document as text."""
        files = {name: getattr(self, name) for name in _FILES} | self._more
        return (
            json.dumps(
                {
                    "schema": SCHEMA_NAME,
                    "version": SCHEMA_VERSION,
                    "files": {**files, "given": list(self.given)},
                    "options": _options_document(self.options),
                    "command": list(self.command),
                    **{name: str(day) for name in _DAYS if (day := getattr(self, name)) is not None},
                },
                indent=2,
                allow_nan=False,
            )
            + "\n"
        )


def request_of(content: Any) -> Request:
    """The request that a decoded document holds.

    Raises:
        InputError: it is none.
        UsageError: it asks for something that does not exist.
    """
    try:
        dated = tuple(name for name in _DAYS if isinstance(content, dict) and name in content)
        document = _object(content, ("schema", "version", "files", "options", "command", *dated))
        if (document["schema"], document["version"]) != (SCHEMA_NAME, SCHEMA_VERSION):
            raise ValueError("another schema or version")
        named = document["files"]
        more = tuple(name for name in _MORE if isinstance(named, dict) and name in named)
        files = _object(named, (*_FILES, *more))
        given = tuple(_text(each) for each in files["given"])
        context = None if files["context"] is None else _text(files["context"])
        paths = [_text(files[name]) for name in ("spec", "model", "matrices")]
        command = tuple(map(_text, document["command"]))
        planners, documents = (tuple(_text(each) for each in files.get(name, ())) for name in _MORE)
        days = {name: datetime.date.fromisoformat(_text(document[name])) for name in dated}
        options = _options_of(document["options"])
        request = Request(paths[0], paths[1], paths[2], context, given, options, command, planners, documents, **days)
        if not all(path.startswith(INPUTS + "/") for path in request.inputs):
            raise ValueError(f"an input that does not lie in {INPUTS}/")
        if len(set(request.inputs)) < len(request.inputs):
            raise ValueError("one file named as two inputs")
        return request
    except (ValueError, TypeError, KeyError, ZeroDivisionError, UsageError) as error:
        raise InputError(f"no request for a bundle: {error}", Place(REQUEST_FILE)) from None


def _options_document(options: RunOptions) -> dict[str, Any]:
    selection, confidence = options.selection, options.confidence
    spelled: dict[str, Any] = {
        "initial": None if selection.initial is None else to_text(selection.initial, parenthesise=True),
        "settings": {name: _value_text(value) for name, value in selection.settings.items()},
        "sweeps": {name: [decimal_text(value) for value in values] for name, values in selection.sweeps.items()},
    }
    return {
        "selection": {name: getattr(selection, name) for name in _SELECTION} | spelled,
        "where": dict(options.where),
        "memory": None if options.memory == MEMORY_BY_DEFAULT else options.memory,
        **{name: getattr(options, name) for name in _PLAIN},
        "confidence": None if confidence is None else _confidence_document(confidence),
        "exact": options.engines.exact,
    }


def _options_of(content: Any) -> RunOptions:
    document = _object(content, ("selection", "where", "memory", *_PLAIN, "confidence", "exact"))
    chosen = _object(document["selection"], _SELECTION)
    initial = chosen["initial"]
    selection = Selection(
        planners=tuple(map(_text, chosen["planners"])),
        environments=tuple(map(_text, chosen["environments"])),
        initial=None if initial is None else parse_expression(_text(initial), Source(initial, "--initial")),
        settings={name: _value_of(value) for name, value in chosen["settings"].items()},
        sweeps={name: tuple(number_of(value) for value in values) for name, values in chosen["sweeps"].items()},
        requirements=tuple(map(_text, chosen["requirements"])),
    )
    confidence = None
    if document["confidence"] is not None:
        confidence = _confidence_of(document["confidence"])
    plain = {name: document[name] for name in _PLAIN}
    for name in _TRUTH:
        if type(plain[name]) is not bool:
            raise ValueError(f"{name} is no truth value")
    for name in ("horizon", "max_lp"):
        if type(plain[name]) is not int and (name == "max_lp" or plain[name] is not None):
            raise ValueError(f"{name} is no whole number")
        if plain[name] is not None and plain[name] < 1:
            raise ValueError(f"{name} is below 1")
    memory = None if document["memory"] is None else _text(document["memory"])
    options = RunOptions(
        selection, where=dict(document["where"]), memory=memory, confidence=confidence, **plain
    ).by_default()
    return replace(options, engines=EngineSettings(exact=bool(document["exact"])))


def _confidence_document(settings: ConfidenceSettings) -> dict[str, Any]:
    given = {name: getattr(settings, name) for name in _CONFIDENCE}
    texts = {name: None if given[name] is None else decimal_text(given[name]) for name in _FRACTIONS}
    return given | texts


def _confidence_of(given: Any) -> ConfidenceSettings:
    known = dict(_object(given, _CONFIDENCE))
    for name in ("largest_drive", "looks"):
        if type(known[name]) is not int and (name == "looks" or known[name] is not None):
            raise ValueError(f"{name} is no whole number")
    if type(known["assume_independent_items"]) is not bool:
        raise ValueError("assume_independent_items is no truth value")
    icc = known["icc_at_most"]
    known["icc_at_most"] = None if icc is None else Fraction(number_of(icc))
    known["shift"] = Fraction(number_of(known["shift"]))
    return ConfidenceSettings(**known)


def _value_text(value: int | Fraction | str) -> str | dict[str, str]:
    """A number as its text; a word, as for PLANNER.pick, marked as such."""
    return {"word": value} if isinstance(value, str) else decimal_text(value)


def _value_of(given: Any) -> int | Fraction | str:
    return _text(_object(given, ("word",))["word"]) if isinstance(given, dict) else number_of(given)


def number_of(given: Any) -> int | Fraction:
    """The number of a text without exponent, whole where it is; ValueError or TypeError where it is none."""
    text = _text(given)
    if not _NUMBER.fullmatch(text):  # no exponents: 1e999999999 would take all memory
        raise ValueError(f"expected a number, got {shown(text)}")
    value = Fraction(text)
    return value.numerator if value.denominator == 1 else value


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError(f"expected a text, got {shown(given)}")
    return given


def _object(given: Any, keys: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(given, dict) or set(given) != set(keys):
        raise ValueError(f"expected an object with exactly the keys {', '.join(keys)}")
    return given


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
                named = shown(inputs.spec.model_name)
                raise InputError(
                    f"the spec names the model {named}, which is not {request.model}", Place(request.spec)
                )
            own = [
                path_of_planner(request.model, each.name, request.model) for each in files_of(inputs.model.planners)
            ]
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
        yield Unpacked(inputs, context)


def documents_of(path: str, context: CaseContext) -> list[str]:
    """Where the documents that a context names lie, for its own path."""
    return [f"{path.rpartition('/')[0]}/{each}" for each in context.documents]


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
