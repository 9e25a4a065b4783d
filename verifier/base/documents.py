"""Documents as frozen dataclasses: a result is written from its type and read into it, and its JSON Schema follows.

| a field of type | is in the JSON |
|---|---|
| `float`, `int`, `str`, `bool`, `Any` | the value; a number is finite, and an integer has no decimal point |
| `tuple[...]`, `Mapping[str, ...]` | an array, an object |
| a dataclass | an object with its fields as keys, in their order |
| an `Enum`, a `Literal` | its value |
| `Extended`, a number from 0 to infinity | the number, or the text "inf" |
| a `date` | a text as "2026-05-01" |
| `Exact`, a fraction | a text as "19/20", however many digits it has |
| `... | None` | also null |

A field that has a default is left out of the JSON where it has that value, every other one is there; one that has
`ALWAYS` as its metadata is written too, but a file of somebody else need not have it. A field that is called like a
word of Python ends in an underscore, which its key does not: `from_` is the key "from". What must hold beyond a type
is said with `Limits`; what follows from other fields, such as a verdict from those of all scenarios, is a field made
by `derived` in a class with `Derives`: it is there for readers of the JSON, and no value of the class contradicts it.
A class with `schema` as a class variable is a whole document: its first key is that, and its second one `version`, a
class variable too, or a field where several versions are read. What no type can say, as that one key belongs to
another, its class method `rules` adds to the JSON Schema, in the words of that.

Reading and schemas are by pydantic, which is imported there only: writing does not need it.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from datetime import date
from enum import Enum
from fractions import Fraction
from functools import cache
from pathlib import PurePath
from types import MappingProxyType
from typing import Annotated, Any, Self, TypeAlias, TypeVar

from verifier.base import checksums
from verifier.base.errors import InputError, Place, pointer_part, shown
from verifier.base.numbers import Exact as Exact
from verifier.base.numbers import FractionText as FractionText
from verifier.base.numbers import NumberText as NumberText
from verifier.base.numbers import Stated as Stated
from verifier.base.numbers import fraction_of as fraction_of
from verifier.base.numbers import fraction_text as fraction_text

Content: TypeAlias = Mapping[str, Any]
"""A JSON object of a document that was validated; its keys are those of the schema."""

T = TypeVar("T")
HEAD = ("schema", "version")
ALWAYS: Mapping[str, bool] = MappingProxyType({"always": True})
"""Metadata of a field that is written even where it has its default."""
REMAKE = "documents are read as this program writes them; make it again with this version"


@dataclass(frozen=True)
class Limits:
    """What must hold of the values of a field beyond their type, as `Annotated[float, Limits(ge=0)]`.

    Attributes:
        ge, gt, le, lt: for numbers: at least, above, at most, below.
        pattern: for texts: a regular expression that is found in it.
        min_length: for texts and arrays.
    """

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    pattern: str | None = None
    min_length: int | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """For pydantic, which takes its own words for the same."""
        from pydantic import Field

        told = {name: value for name, value in vars(self).items() if value is not None}
        return handler.generate_schema(Annotated[source, Field(**told)])


Share = Annotated[float, Limits(ge=0, le=1)]
"""From 0 to 1."""
Level = Annotated[float, Limits(gt=0, lt=1)]
Magnitude = Annotated[float, Limits(ge=0)]
Count = Annotated[int, Limits(ge=0)]

Condition = Annotated[str, Limits(pattern="^if ")]
"""Of a verdict: what must be true for it to hold."""
_SHA256 = "[0-9a-f]{64}"
Sha256 = Annotated[str, Limits(pattern=f"^{_SHA256}$")]
"""In hexadecimal."""


def is_sha256(text: str) -> bool:
    """Whether a text is a `Sha256`."""
    return re.fullmatch(_SHA256, text) is not None


class _Infinite:
    """For pydantic: what is infinite is the text "inf" in JSON."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        told = core_schema.no_info_after_validator_function(float, core_schema.literal_schema(["inf"]))
        return core_schema.union_schema([core_schema.float_schema(allow_inf_nan=False), told])


Extended = Annotated[float, _Infinite()]


class MisfitError(ValueError):
    """What a field contradicts the others of its object by; `way` leads to it: keys and positions."""

    def __init__(self, way: Sequence[str | int], message: str) -> None:
        super().__init__(message)
        self.way = tuple(way)


class _Open(Enum):
    OPEN = "open"


def derived(rule: Callable[[Any], Any], *, refused: bool = True) -> Any:
    """A field that follows from the others by a rule: computed where it is not given.

    Args:
        rule: of the object, with its other fields.
        refused: whether another value that is given is refused at once; if not, whoever reads has to look.
    """
    return field(default_factory=lambda: _Open.OPEN, metadata={"derived": rule, "always": True, "refused": refused})


class Derives:
    """The base of classes with fields that follow from others."""

    def __post_init__(self) -> None:
        for field_ in fields(self):  # type: ignore[arg-type]  # those of the dataclass that derives
            if "derived" not in field_.metadata:
                continue
            follows, told = field_.metadata["derived"](self), getattr(self, field_.name)
            if told is _Open.OPEN:
                object.__setattr__(self, field_.name, follows)
            elif told != follows and field_.metadata["refused"]:
                raise _misfit(_key(field_.name), json_values(told), json_values(follows))

    def following(self) -> dict[str, object]:
        """Key -> what follows, of every such field, whatever was given for it."""
        rules = {_key(field.name): field.metadata.get("derived") for field in fields(self)}  # type: ignore[arg-type]
        return {key: rule(self) for key, rule in rules.items() if rule is not None}

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """For pydantic: what follows has no default in JSON."""
        made = handler(source)
        for entry in made["schema"]["fields"]:
            if "derived" in cls.__dataclass_fields__[entry["name"]].metadata:  # type: ignore[attr-defined]
                entry["schema"] = entry["schema"]["schema"]
        return made


def _misfit(name: str, told: Any, follows: Any) -> MisfitError:
    """At the first place inside where both differ."""
    way: list[str | int] = [name]
    while _parts(told) and _parts(told).keys() == _parts(follows).keys():
        mine, theirs = _parts(told), _parts(follows)
        key = next(key for key in mine if mine[key] != theirs[key])
        told, follows = mine[key], theirs[key]
        way.append(key)
    expected, said = (json.dumps(value)[:300] for value in (follows, told))
    return MisfitError(way, f"expected {expected}, which follows from the numbers beside it, found {said}")


def _parts(value: Any) -> dict[str | int, Any]:
    """The values of a JSON object or array, by key or position; nothing of any other value."""
    return value if isinstance(value, dict) else dict(enumerate(value)) if isinstance(value, list) else {}


@dataclass(frozen=True)
class InputFile:
    """A file that went in: its role, its name without folders and the SHA-256 of its bytes."""

    role: str
    name: str
    sha256: Sha256

    @classmethod
    def of(cls, role: str, path: str, sha256: str) -> Self:
        """From a path as the user gave it."""
        return cls(role, PurePath(path).name, sha256)


def json_values(value: Any) -> Any:
    """A value as JSON values; dataclasses become objects.

    >>> json_values(InputFile("result", "run.json", 64 * "0"))["name"]
    'run.json'
    """
    if type(value) in _PLAIN:
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return _head(type(value)) | {key: json_values(own) for key, own in _written(value)}
    if isinstance(value, Mapping):
        return {name: json_values(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(inner) for inner in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Fraction):
        return fraction_text(value)
    if isinstance(value, date):
        return value.isoformat()
    return "inf" if value == math.inf else value


_PLAIN = frozenset((str, int, bool, type(None)))
"""The types whose values are JSON as they are."""


def _written(value: Any) -> Iterator[tuple[str, Any]]:
    """Keys and values of the fields of a dataclass that are in its JSON."""
    for name, key, default, factory in _fields_of(type(value)):  # type: ignore[arg-type]  # a class is hashable
        own = getattr(value, name)
        if factory is not MISSING:
            default = factory()
        if default is MISSING or own != default:
            yield key, own


@cache
def _fields_of(kind: Any) -> tuple[tuple[str, str, Any, Any], ...]:
    """Name, key, default and what makes the default of each field; one that is always written has neither."""
    told = [
        (one, (MISSING, MISSING) if "always" in one.metadata else (one.default, one.default_factory))
        for one in fields(kind)
    ]
    return tuple((one.name, _key(one.name), *defaults) for one, defaults in told)


def _key(name: str) -> str:
    return name.removesuffix("_")


def _is_whole(kind: type) -> bool:
    return hasattr(kind, "schema")


@cache
def _head(kind: type) -> dict[str, object]:
    """The first keys of a whole document, as far as they are the same in all of its kind."""
    return {name: getattr(kind, name) for name in HEAD if hasattr(kind, name)} if _is_whole(kind) else {}


def read_document(kind: type[T], content: Any, file: str, pointer: str = "") -> T:
    """The value of a type that stands in decoded JSON.

    Args:
        kind: a dataclass.
        content: as `verifier.base.files.read_json` decodes it.
        pointer: where the content stands in the file.

    Raises:
        InputError: it is not what `json_values` makes of a value of this type; the message names the element.
    """
    faults = [] if not _is_whole(kind) else list(_faults_of_head(kind, content))
    document: T | None = None
    if not faults:
        document, faults = _validated(kind, content)
        if document is None and not faults:
            faults = [([], "None is not of type 'object'")]  # `_adapter` takes null for any type
    if faults:
        way, message = min(faults, key=lambda fault: fault[0])
        what = f"not a document of schema {kind.schema}: {message}" if _is_whole(kind) else message  # type: ignore[attr-defined]
        place = pointer + "".join(f"/{pointer_part(part)}" for part in way)
        raise InputError(what, Place(file, path=place or "/"), REMAKE)
    assert document is not None  # else there is a fault
    return document


Fault = tuple[list[str], str]
"""The way to an element, as keys and positions, and what is wrong there."""


def _faults_of_head(kind: Any, content: Any) -> Iterator[Fault]:
    if not isinstance(content, dict):
        yield [], f"{shown(content)} is not of type 'object'"
        return
    for name, expected in _head(kind).items():
        if name not in content:
            yield [], f"'{name}' is a required property"
        elif content[name] != expected or type(content[name]) is not type(expected):
            yield [name], f"{expected!r} was expected"


def _validated(kind: type[T], content: Any) -> tuple[T | None, list[Fault]]:
    from pydantic import ValidationError

    head = _head(kind)  # type: ignore[arg-type]  # a class is hashable
    apart = {*head, *((checksums.KEY,) if head.get("schema") in checksums.SUMMED else ())}
    body = {key: value for key, value in content.items() if key not in apart} if head else content
    text = json.dumps(body)
    broken = next(_broken_texts(body, []), None) if r"\ud" in text else None
    if broken is not None:
        return None, [broken]
    reader: Any = _adapter(kind)  # type: ignore[arg-type]  # a class is hashable
    try:
        return reader.validate_json(text), []
    except ValidationError as error:
        return None, [_fault(body, told) for told in error.errors(include_url=False) if not _is_echo(told)]


def _broken_texts(value: Any, way: list[str]) -> Iterator[Fault]:
    """Texts with half of a surrogate pair, which JSON can spell and nothing can write."""
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value):
        yield way, f"expected Unicode text, got {shown(value)}"
    elif isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _broken_texts(inner, [*way, str(key)])


def _is_echo(told: Content) -> bool:
    """Whether an array is called too short because an element is refused, which is told by itself."""
    return told["type"] == "too_short" and len(told["input"]) >= int(told["ctx"]["min_length"])


@cache
def _adapter(kind: Any) -> Any:
    from pydantic import ConfigDict, TypeAdapter

    config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, alias_generator=_key, arbitrary_types_allowed=True
    )
    return TypeAdapter(kind | None, config=config)  # with its own settings a dataclass would hand none on


_TYPES = {
    "finite_number": "number", "float_type": "number", "int_type": "integer", "int_from_float": "integer",
    "string_type": "string", "bool_type": "boolean", "tuple_type": "array", "dict_type": "object",
    "mapping_type": "object", "dataclass_type": "object",
}  # fmt: skip
"""What pydantic finds -> the type that JSON Schema would have expected."""


def _fault(content: Any, told: Content) -> Fault:
    """What pydantic says, in the words of JSON Schema; the names of its alternatives are no part of the way."""
    way, last = _way(content, told["loc"]), str(told["loc"][-1]) if told["loc"] else ""
    if told["type"] == "value_error":
        error = told["ctx"]["error"]
        return way + [str(part) for part in getattr(error, "way", ())], str(error)
    if told["type"] == "missing":
        return way, f"'{last}' is a required property"
    if told["type"] == "unexpected_keyword_argument":
        return way[:-1], f"Additional properties are not allowed ({shown(last)} was unexpected)"
    expected = _TYPES.get(told["type"])
    if expected is not None:
        return way, f"{shown(told['input'], 300)} is not of type '{expected}'"
    return way, f"{told['msg'][:1].lower()}{told['msg'][1:]}, got {shown(told['input'], 300)}"


def _way(content: Any, told: Sequence[str | int]) -> list[str]:
    """The keys and positions among what pydantic tells of a place."""
    way = []
    for part in told:
        known = range(len(content)) if isinstance(content, list) else content if isinstance(content, dict) else ()
        if part in known:
            content = content[part]
            way.append(str(part))
    return way


def schema_of(kind: Any) -> dict[str, object]:
    """The JSON Schema (draft 2020-12) of the documents of a type."""
    schema = _adapter(kind).json_schema()
    definitions = schema.pop("$defs", {})
    own = definitions.pop(kind.__name__)
    head = {name: {"const": value} for name, value in _head(kind).items()}
    if head:
        own = own | {"properties": head | own["properties"], "required": [*head, *own.get("required", ())]}
    name = {"$id": ".v".join(str(value) for value in _head(kind).values())} if head else {}
    rules = kind.rules() if hasattr(kind, "rules") else {}
    for key, more in rules.get("properties", {}).items():
        own["properties"][key] |= more
    if head and kind.schema in checksums.SUMMED:
        own["properties"][checksums.KEY] = dict(checksums.SCHEMA)
        own["required"].append(checksums.KEY)
    own |= {key: more for key, more in rules.items() if key != "properties"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **name, **own, "$defs": definitions}
