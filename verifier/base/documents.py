"""Documents as frozen dataclasses: a result of this program is written from its type, read into it, and its JSON
Schema follows from it.

| a field of type | is in the JSON |
|---|---|
| `float`, `int`, `str`, `bool`, `Any` | the value; a number is finite, and an integer has no decimal point |
| `tuple[...]`, `Mapping[str, ...]` | an array, an object |
| a dataclass | an object with its fields as keys, in their order |
| an `Enum`, a `Literal` | its value |
| `... | None` | also null |

A field that has a default is left out of the JSON where it has that value, every other one is there; one that has
`ALWAYS` as its metadata is written too, but a file of somebody else need not have it. A field that is called like a
word of Python ends in an underscore, which its key does not: `from_` is the key "from". What must hold beyond a type
is said with `Limits`. A class with `schema` as a class variable is a whole document: its first key is that, and its
second one `version`, a class variable too, or a field where several versions are read. What no type can say, as that
one key belongs to another, its class method `rules` adds to the JSON Schema, in the words of that.

Reading and schemas are by pydantic, which is imported there only: writing does not need it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import PurePath
from types import MappingProxyType
from typing import Annotated, Any, TypeAlias, TypeVar

from verifier.base.errors import InputError, Place, shown

Content: TypeAlias = Mapping[str, Any]
"""A JSON object of a document that was validated; its keys are those of the schema."""

T = TypeVar("T")
HEAD = ("schema", "version")
ALWAYS: Mapping[str, Any] = MappingProxyType({"always": True})
"""Metadata of a field that is written even where it has its default."""
REMAKE = "documents are read as this program writes them; make it anew with this version"


@dataclass(frozen=True)
class Limits:
    """What must hold of the values of a field beyond their type, as `Annotated[float, Limits(ge=0)]`.

    Attributes:
        ge, gt, le: for numbers: at least, above, at most.
        pattern: for texts: a regular expression that is found in it.
        min_length: for texts and arrays.
    """

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    pattern: str | None = None
    min_length: int | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """For pydantic, which takes its own words for the same."""
        from pydantic import Field

        told = {name: value for name, value in vars(self).items() if value is not None}
        return handler.generate_schema(Annotated[source, Field(**told)])


Share = Annotated[float, Limits(ge=0, le=1)]
"""From 0 to 1."""
Magnitude = Annotated[float, Limits(ge=0)]
Count = Annotated[int, Limits(ge=0)]
FractionText = Annotated[str, Limits(pattern="^[0-9]+(/[0-9]+)?$")]
Condition = Annotated[str, Limits(pattern="^if ")]
"""Of a verdict: what must be true for it to hold."""
Sha256 = Annotated[str, Limits(pattern="^[0-9a-f]{64}$")]
"""In hexadecimal."""


@dataclass(frozen=True)
class InputFile:
    """A file that went in: its role, its name without folders and the SHA-256 of its bytes."""

    role: str
    name: str
    sha256: Sha256

    @classmethod
    def of(cls, role: str, path: str, sha256: str) -> InputFile:
        """From a path as the user gave it."""
        return cls(role, PurePath(path).name, sha256)


def json_values(value: Any) -> Any:
    """A value as JSON values; dataclasses become objects.

    >>> json_values(InputFile("result", "run.json", 64 * "0"))["name"]
    'run.json'
    """
    if is_dataclass(value) and not isinstance(value, type):
        return _head(type(value)) | {key: json_values(getattr(value, each.name)) for key, each in _written(value)}
    if isinstance(value, Mapping):
        return {name: json_values(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(inner) for inner in value]
    if isinstance(value, Enum):
        return value.value
    return value


def _written(value: Any) -> Iterator[tuple[str, Field[Any]]]:
    """Keys and fields of a dataclass that are in its JSON."""
    for each in fields(value):
        default = each.default if each.default_factory is MISSING else each.default_factory()
        if default is MISSING or "always" in each.metadata or getattr(value, each.name) != default:
            yield _key(each.name), each


def _key(name: str) -> str:
    return name.removesuffix("_")


def _is_whole(kind: type) -> bool:
    return hasattr(kind, "schema")


def _head(kind: type) -> dict[str, Any]:
    """The first keys of a whole document, as far as they are the same in all of its kind."""
    return {name: getattr(kind, name) for name in HEAD if hasattr(kind, name)} if _is_whole(kind) else {}


def read_document(kind: type[T], content: Any, file: str, pointer: str = "") -> T:
    """The value of a type that stands in decoded JSON.

    Args:
        kind: a dataclass.
        content: as `verifier.base.files.read_json` decodes it.
        file: its name, for messages.
        pointer: where the content stands in the file.

    Raises:
        InputError: it is not what `json_values` makes of a value of this type; the message names the element.
    """
    faults = [] if not _is_whole(kind) else list(_faults_of_head(kind, content))
    found: T | None = None
    if not faults:
        found, faults = _validated(kind, content)
    if faults:
        way, message = min(faults, key=lambda fault: fault[0])
        what = f"not a document of schema {kind.schema}: {message}" if _is_whole(kind) else message  # type: ignore[attr-defined]
        place = pointer + "".join(f"/{pointer_part(part)}" for part in way)
        raise InputError(what, Place(file, path=place or "/"), REMAKE)
    assert found is not None
    return found


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

    head = _head(kind)
    body = {key: value for key, value in content.items() if key not in head} if head else content
    reader: Any = _adapter(kind)  # type: ignore[arg-type]  # a class is hashable
    try:
        return reader.validate_json(json.dumps(body)), []
    except ValidationError as error:
        return None, [_fault(body, told) for told in error.errors(include_url=False) if not _is_echo(told)]


def _is_echo(told: Mapping[str, Any]) -> bool:
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


def _fault(content: Any, told: Mapping[str, Any]) -> Fault:
    """What pydantic says, in the words of JSON Schema; the names of its alternatives are no part of the way."""
    way, last = _way(content, told["loc"]), str(told["loc"][-1]) if told["loc"] else ""
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


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the documents of a type."""
    found = _adapter(kind).json_schema()
    definitions = found.pop("$defs", {})
    own = definitions.pop(kind.__name__)
    head = {name: {"const": value} for name, value in _head(kind).items()}
    if head:
        own = own | {"properties": head | own["properties"], "required": [*head, *own.get("required", ())]}
    name = {"$id": ".v".join(str(value) for value in _head(kind).values())} if head else {}
    rules = kind.rules() if hasattr(kind, "rules") else {}
    for key, more in rules.get("properties", {}).items():
        own["properties"][key] |= more
    own |= {key: more for key, more in rules.items() if key != "properties"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **name, **own, "$defs": definitions}


def pointer_part(part: object) -> str:
    """A key or a position as a part of a JSON pointer (RFC 6901)."""
    return str(part).replace("~", "~0").replace("/", "~1")
