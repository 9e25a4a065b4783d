"""Reading the documents that this program writes: whatever makes evidence of them has them validated first.

Every document names its schema and version. The schemas are published beside the parts that write the documents; one
that is not listed in `SCHEMAS` is refused, and so is a document that its schema does not accept.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from verifier.errors import InputError, Place, nearest_name, shown
from verifier.evidence.libraries import jsonschema
from verifier.textfiles import read_json

SCHEMAS: Mapping[str, str] = MappingProxyType(
    {
        "verifier.run": "run.schema.json",
        "verifier.explain": "explain/explain.schema.json",
        "verifier.require": "require/require.schema.json",
        "verifier.compare": "compare/compare.schema.json",
        "verifier.confusion": "confusion/confusion.schema.json",
        "verifier.collision": "collision.schema.json",
        "verifier.trade_offs": "closedloop/trade_offs.schema.json",
        "verifier.curves": "closedloop/curves.schema.json",
        "verifier.assess": "robustness/assessment/assess.schema.json",
        "verifier.mutate": "robustness/mutators/mutate.schema.json",
        "verifier.rate": "evidence/rates/rate.schema.json",
    }
)
"""Where the schema of each kind of document lies in this package."""


@dataclass(frozen=True)
class Document:
    """One validated document of this program.

    Attributes:
        name: of its file, without folders.
        kind: what it holds: "run", "explain", "confusion", ...; the name of its schema without "verifier.".
        content: its JSON values.
        sha256: of the bytes of its file, in hexadecimal.
    """

    name: str
    kind: str
    content: Mapping[str, Any]
    sha256: str


def read_document(path: str | Path) -> Document:
    """Read and validate a document.

    Raises:
        InputError: the file cannot be read, is no JSON, is no document of this program, or does not keep to its
            schema; the message names the offending element.
        UsageError: the library jsonschema is missing.
    """
    content, raw = read_json(path)
    return checked_document(content, raw, str(path))


def checked_document(content: Any, raw: bytes, file: str) -> Document:
    """Validate decoded JSON as a document.

    Args:
        content: the decoded JSON.
        raw: the bytes it was decoded from.
        file: its name, for messages; folders in it do not reach the document.

    Raises:
        InputError: as `read_document`.
    """
    name = content.get("schema") if isinstance(content, dict) else None
    if not isinstance(name, str) or name not in SCHEMAS:
        _refuse_unknown(name, file)
    errors = sorted(
        validator(schema_of(name)).iter_errors(content), key=lambda error: list(map(str, error.absolute_path))
    )
    if errors:
        first = errors[0]
        pointer = "".join(f"/{_escaped(part)}" for part in first.absolute_path) or "/"
        raise InputError(
            f"not a document of schema {name}: {shown(first.message, 300)}",
            Place(file, path=pointer),
            "documents are read as this program writes them; make it anew with this version",
        )
    digest = hashlib.sha256(raw).hexdigest()
    return Document(Path(file).name, name.removeprefix("verifier."), content, digest)


def validator(schema: Mapping[str, Any]) -> Any:
    """What holds values against a schema; a whole number is one without a decimal point, so that it can count.

    JSON Schema takes 3.0 and 1e308 for integers; whatever is written as an integer here is written without a point.
    NaN, infinities and what overflows to them, which Python reads as numbers, are none.
    """
    usual = jsonschema().Draft202012Validator
    types = usual.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    types = types.redefine("number", _is_finite)
    return jsonschema().validators.extend(usual, type_checker=types)(schema)


def _is_finite(_: Any, value: Any) -> bool:
    return type(value) is int or (isinstance(value, float) and math.isfinite(value))


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema called `name`, such as "verifier.run"."""
    schema: dict[str, Any] = json.loads((files("verifier") / SCHEMAS[name]).read_text("utf-8"))
    return schema


def _refuse_unknown(name: object, file: str) -> NoReturn:
    if not isinstance(name, str):
        raise InputError(
            "expected a document of this program: a JSON object with the key 'schema'",
            Place(file, path="/schema"),
            "write one with --output, such as verify run ... --output result.json",
        )
    nearest = nearest_name(name, SCHEMAS)
    raise InputError(
        f"unknown schema {shown(name)}",
        Place(file, path="/schema"),
        (f"did you mean '{nearest}'? " if nearest else "") + "known: " + ", ".join(sorted(SCHEMAS)),
    )


def _escaped(part: object) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")
