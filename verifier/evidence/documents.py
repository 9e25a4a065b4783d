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
from functools import cached_property
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from verifier.base import documents
from verifier.base.documents import REMAKE, pointer_part, read_document
from verifier.base.errors import InputError, Place, nearest_name, shown
from verifier.base.libraries import library

SCHEMAS: Mapping[str, str] = MappingProxyType(
    {
        "verifier.explain": "questions/explain/explain.schema.json",
        "verifier.require": "questions/require/require.schema.json",
        "verifier.compare": "questions/compare/compare.schema.json",
        "verifier.confusion": "perception/confusion/confusion.schema.json",
    }
)
"""Where the schema of each kind of document lies in this package."""
TYPES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "verifier.assess": ("verifier.robustness.assessment.document", "AssessResult"),
        "verifier.collision": ("verifier.collision.document", "CollisionStudy"),
        "verifier.curves": ("verifier.closedloop.curvefiles", "Curves"),
        "verifier.trade_offs": ("verifier.closedloop.trade_offs", "TradeOffsResult"),
        "verifier.mutate": ("verifier.robustness.mutators.batch_result", "MutateResult"),
        "verifier.rate": ("verifier.evidence.rates.document", "RateResult"),
        "verifier.run": ("verifier.study.results", "RunResult"),
    }
)
"""Schema -> module and name of the type of its documents; imported where one is read or its schema asked for."""
OTHER_TYPES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "verifier.bundle": ("verifier.evidence.bundle.manifest", "Manifest"),
        "verifier.bundle_built": ("verifier.evidence.bundle.build", "BuiltResult"),
        "verifier.bundle_check": ("verifier.evidence.findings", "CheckResult"),
    }
)
"""Likewise for what is written about bundles, of which no report is made."""
SCHEMA_NAMES = tuple(sorted((*SCHEMAS, *TYPES)))


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

    def holding(self, result: Any) -> Document:
        """This document, of which is known what it holds: it is not read again."""
        vars(self)["result"] = result
        return self

    @cached_property
    def result(self) -> Any:
        """The content as a value of the type of its kind, which is one of `TYPES`."""
        return read_document(type_of(f"verifier.{self.kind}"), self.content, self.name)


def checked_document(content: Any, raw: bytes, file: str) -> Document:
    """Validate decoded JSON as a document.

    Args:
        content: the decoded JSON.
        raw: the bytes it was decoded from.
        file: its name, for messages; folders in it do not reach the document.

    Raises:
        InputError: no document of this program, or it does not keep to its schema; the message names the element.
        UsageError: the library jsonschema is missing.
    """
    name = content.get("schema") if isinstance(content, dict) else None
    if not isinstance(name, str) or name not in SCHEMA_NAMES:
        _refuse_unknown(name, file)
    result = read_document(type_of(name), content, file) if name in TYPES else None
    fault = None if name in TYPES else first_fault(content, schema_of(name))
    if fault is not None:
        pointer, message = fault
        raise InputError(f"not a document of schema {name}: {message}", Place(file, path=pointer or "/"), REMAKE)
    digest = hashlib.sha256(raw).hexdigest()
    document = Document(Path(file).name, name.removeprefix("verifier."), content, digest)
    return document.holding(result) if name in TYPES else document


def type_of(name: str) -> type:
    """The type of the documents of a schema, such as "verifier.rate"."""
    module, kind = {**TYPES, **OTHER_TYPES}[name]
    found: type = getattr(import_module(module), kind)
    return found


def first_fault(value: Any, schema: Mapping[str, Any]) -> tuple[str, str] | None:
    """JSON pointer and message of the first place where a value does not keep to a schema; None where it does."""
    errors = sorted(_validator(schema).iter_errors(value), key=lambda error: list(map(str, error.absolute_path)))
    if not errors:
        return None
    pointer = "".join(f"/{pointer_part(part)}" for part in errors[0].absolute_path)
    return pointer, shown(errors[0].message, 300)


def _validator(schema: Mapping[str, Any]) -> Any:
    """What holds values against a schema; a whole number is one without a decimal point, so that it can count.

    JSON Schema takes 3.0 and 1e308 for integers; whatever is written as an integer here is written without a point.
    NaN, infinities and what overflows to them, which Python reads as numbers, are none.
    """
    usual = library("jsonschema").Draft202012Validator
    types = usual.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    types = types.redefine("number", _is_finite)
    return library("jsonschema").validators.extend(usual, type_checker=types)(schema)


def _is_finite(_: Any, value: Any) -> bool:
    return type(value) is int or (isinstance(value, float) and math.isfinite(value))


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema called `name`, such as "verifier.run"."""
    if name not in SCHEMAS:
        return documents.schema_of(type_of(name))
    schema: dict[str, Any] = json.loads((files("verifier") / SCHEMAS[name]).read_text("utf-8"))
    return schema


def _refuse_unknown(name: object, file: str) -> NoReturn:
    if not isinstance(name, str):
        raise InputError(
            "expected a document of this program: a JSON object with the key 'schema'",
            Place(file, path="/schema"),
            "write one with --output, such as verify run ... --output result.json",
        )
    nearest = nearest_name(name, SCHEMA_NAMES)
    raise InputError(
        f"unknown schema {shown(name)}",
        Place(file, path="/schema"),
        (f"did you mean '{nearest}'? " if nearest else "") + "known: " + ", ".join(SCHEMA_NAMES),
    )
