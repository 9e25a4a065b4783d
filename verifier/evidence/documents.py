"""Reading the documents that this program writes: whatever makes evidence of them has them validated first.

Every document names its schema and version. One that is not listed in `TYPES` is refused, and so is a document that
its type does not accept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from verifier.base import documents
from verifier.base.documents import Content, read_document
from verifier.base.errors import InputError, Place, nearest_name, shown
from verifier.base.files import json_of

TYPES: Mapping[str, tuple[str, str]] = {
    "verifier.assess": ("verifier.robustness.assessment.document", "AssessResult"),
    "verifier.collision": ("verifier.collision.document", "CollisionStudy"),
    "verifier.curves": ("verifier.closedloop.curvefiles", "Curves"),
    "verifier.trade_offs": ("verifier.closedloop.trade_offs", "TradeOffsResult"),
    "verifier.mutate": ("verifier.robustness.mutators.batch_result", "MutateResult"),
    "verifier.confusion": ("verifier.perception.confusion.document_types", "ConfusionDocument"),
    "verifier.compare": ("verifier.questions.compare.compare_result", "CompareResult"),
    "verifier.explain": ("verifier.questions.explain.explain_result", "ExplainResult"),
    "verifier.require": ("verifier.questions.require.require_result", "RequireResult"),
    "verifier.rate": ("verifier.evidence.rates.document", "RateResult"),
    "verifier.risk": ("verifier.evidence.residual_risk.document", "RiskResult"),
    "verifier.triggers": ("verifier.evidence.triggers", "TriggersResult"),
    "verifier.run": ("verifier.study.results", "RunResult"),
    "verifier.campaign": ("verifier.robustness.campaign.result", "CampaignDocument"),
    "verifier.adr": ("verifier.robustness.rates", "AdrResult"),
}
"""Schema -> module and name of the type of its documents; imported where one is read or its schema asked for."""
OTHER_TYPES: Mapping[str, tuple[str, str]] = {
    "verifier.predict": ("verifier.robustness.predicting", "PredictResult"),
    "verifier.bundle": ("verifier.evidence.bundle.manifest", "Manifest"),
    "verifier.bundle_built": ("verifier.evidence.bundle.build", "BuiltResult"),
    "verifier.bundle_check": ("verifier.evidence.findings", "CheckResult"),
    "verifier.bundle_diff": ("verifier.evidence.changes.claims", "DiffResult"),
    "verifier.spi": ("verifier.evidence.field", "SpiResult"),
    "verifier.spi_check": ("verifier.evidence.field", "SpiCheckResult"),
    "verifier.qualification": ("verifier.evidence.qualification.kit", "QualificationResult"),
    "verifier.known_problems": ("verifier.evidence.qualification.kit", "KnownProblemsResult"),
    "verifier.signature": ("verifier.evidence.signatures", "Signed"),
    "verifier.parse": ("verifier.study.parsed", "ParsedStudy"),
}
"""Likewise for what is written about bundles, of what was read, and of predictions, of which no report is made."""
OF_MODELS = "verifier.model"
"""The schema of model files, which people write."""
SCHEMA_NAMES = tuple(sorted(TYPES))


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
    content: Content
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
    """Validate decoded JSON as a document; folders in the name of its `file` do not reach it.

    Raises:
        InputError: no document of this program, or it does not keep to its schema; the message names the element.
    """
    name = content.get("schema") if isinstance(content, dict) else None
    if not isinstance(name, str):
        raise InputError(
            "expected a document of this program: a JSON object with the key 'schema'",
            Place(file, path="/schema"),
            "write one with --output, such as verify run ... --output result.json",
        )
    if name not in SCHEMA_NAMES:
        nearest = nearest_name(name, SCHEMA_NAMES)
        hint = (f"did you mean '{nearest}'? " if nearest else "") + "known: " + ", ".join(SCHEMA_NAMES)
        raise InputError(f"unknown schema {shown(name)}", Place(file, path="/schema"), hint)
    result: Any = read_document(type_of(name), content, file)
    digest = hashlib.sha256(raw).hexdigest()
    return Document(Path(file).name, name.removeprefix("verifier."), content, digest).holding(result)


def document_of(raw: bytes, file: str) -> Document:
    """The document that the bytes of a file are; errors as `json_of` and `checked_document`."""
    return checked_document(json_of(raw, file), raw, file)


def of_kind(documents: Iterable[Document], *kinds: str) -> list[Document]:
    """Those of some kinds, equal ones once, in their order."""
    return list({document.sha256: document for document in documents if document.kind in kinds}.values())


def type_of(name: str) -> type:
    """The type of the documents of a schema, such as "verifier.rate"."""
    module, kind = {**TYPES, **OTHER_TYPES}[name]
    document_type: type = getattr(import_module(module), kind)
    return document_type


def schema_of(name: str) -> dict[str, object]:
    """The JSON Schema called `name`, such as "verifier.run"."""
    if name == OF_MODELS:
        from verifier.systems.model_schema import model_schema

        return model_schema()
    return documents.schema_of(type_of(name))
