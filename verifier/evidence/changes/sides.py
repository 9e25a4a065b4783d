"""A bundle as one side of a comparison: intact, and its inputs read."""

import csv
import hashlib
import io
import json
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from verifier.base.documents import Content
from verifier.base.errors import InputError, Place
from verifier.base.files import json_of
from verifier.evidence.bundle.archive import read_bundle
from verifier.evidence.bundle.derived_artefacts import TRACE_FILE
from verifier.evidence.bundle.layout import RUN_FILE
from verifier.evidence.bundle.manifest import MANIFEST_FILE, Manifest, check_hashes, digest_of, read_manifest
from verifier.evidence.bundle.parts import RATES, RISK, TRIGGERS
from verifier.evidence.bundle.request import REQUEST_FILE, Request, request_of, unpacked_inputs
from verifier.evidence.context import CaseContext
from verifier.evidence.declarations import NUMBERS
from verifier.language.expressions import to_text
from verifier.language.specs import Requirement
from verifier.study.inputs import Inputs

_NOT_NUMBERS = ("inputs", "command", "versions", "checksums")


@dataclass(frozen=True, eq=False)
class Side:
    """One of two bundles.

    Attributes:
        name: of the folder or archive, without folders.
        inputs: its spec, model and matrices; files they name are there as long as the context of `side_of`.
    """

    name: str
    files: Mapping[str, bytes]
    manifest: Manifest
    request: Request
    inputs: Inputs
    context: CaseContext

    @property
    def digest(self) -> str:
        """SHA-256 of the manifest."""
        return digest_of(self.files[MANIFEST_FILE])

    @cached_property
    def run(self) -> Content:
        """The document of its own run."""
        return self._json(RUN_FILE)

    @cached_property
    def matrices(self) -> Content:
        """The document of the matrices."""
        return self._json(self.request.matrices)

    @cached_property
    def counts(self) -> list[list[Any]]:
        """Counts of its bins, and of distances that were reported, if they were."""
        distances = self.matrices.get("localisation")
        bins = [matrix["counts"] for matrix in self.matrices["bins"]]
        return [bins] if distances is None else [bins, distances["counts"]]

    @cached_property
    def sequences(self) -> dict[str, Content]:
        """Name -> what was counted in it."""
        return {entry["name"]: entry for entry in self.matrices.get("sequences", ())}

    @cached_property
    def conditions(self) -> dict[str, str | None]:
        """Condition, or triggering condition -> SHA-256 of its matrices, if it has its own."""
        return {condition.name: condition.sha256 for condition in self.context.conditions}

    @cached_property
    def elsewhere(self) -> dict[str, str]:
        """Path of what was put in, about other matrices than the run's and those of conditions -> SHA-256."""
        known = {digest_of(self.files[self.request.matrices]), *self.conditions.values()}
        given = {path: digest_of(self.files[path]) for path in self.request.given}
        about = {
            path: {entry["sha256"] for entry in self._json(path).get("inputs", ()) if entry["role"] == "confusion"}
            for path in given
        }
        return {path: sha256 for path, sha256 in given.items() if not known & {sha256, *about[path]}}

    @cached_property
    def rows(self) -> dict[tuple[str, str], dict[str, str]]:
        """Requirement and planner -> row of the trace, for those with a target and a result."""
        rows = csv.DictReader(io.StringIO(self.files[TRACE_FILE].decode()))
        aimed = (row for row in rows if row["planner"] and not row["target"].endswith("= ?"))
        return {(entry["requirement"], entry["planner"]): entry for entry in aimed}

    @cached_property
    def requirements(self) -> dict[str, str]:
        """Name of a requirement of the spec with a target -> what it says, whatever lets and layout."""
        aimed = (requirement for requirement in self.inputs.spec.requirements if requirement.target is not None)
        return {requirement.name: _said(requirement) for requirement in aimed}

    def requirement_of(self, row: Mapping[str, str]) -> str:
        """The requirement of the spec that a row of the trace is about."""
        names = {str(requirement.line): requirement.name for requirement in self.inputs.spec.requirements}
        return names[row["line"]]

    @cached_property
    def system(self) -> dict[str, str]:
        """File of model or planner -> SHA-256; of one in TOML of what it says, whatever its comments and layout."""
        files = {path: self.files[path] for path in (self.request.model, *self.request.planners)}
        toml = {path: tomllib.loads(raw.decode()) for path, raw in files.items() if path.endswith(".toml")}
        files |= {path: json.dumps(content, default=str).encode() for path, content in toml.items()}
        return {path: digest_of(raw) for path, raw in files.items()}

    @cached_property
    def chosen(self) -> dict[str, str]:
        """What the spec chooses of the scenarios."""
        spec = self.inputs.spec
        initial = "" if spec.initial is None else to_text(spec.initial, parenthesise=True)
        told = {setting.name: str(setting.value) for setting in spec.settings}
        told |= {sweep.name: str([str(value) for value in sweep.values]) for sweep in spec.sweeps}
        return {"planners": str(spec.planners), "environments": str(spec.environments), "initial": initial, **told}

    def shown(self, duty: str) -> dict[str, str]:
        """Name of a document that shows a claim -> its SHA-256."""
        return {evidence.name: evidence.sha256 for evidence in self.context.declared.shown(duty)}

    def numbers_of(self, requirement: str, planner: str) -> list[Any]:
        """What the run found of a requirement."""
        entries = self.run["requirements"]
        return [entry for entry in entries if (entry["name"], entry["planner"]) == (requirement, planner)]

    def reach(self, requirement: str, name: str) -> str:
        """SHA-256 over all that reaches the numbers and the status of a requirement; `name` is that in results."""
        declared = self.context.declared
        return digest(
            [
                self.requirements.get(requirement),
                self.system,
                [digest_of(self.files[path]) for path in (self.request.matrices, *self.request.given)],
                dict(self.request.asked),
                self.chosen,
                {claim: self.shown(claim) for claim in NUMBERS},
                [str(disposition) for key, disposition in declared.dispositions.items() if key.endswith(f"/{name}")],
            ]
        )

    @cached_property
    def reach_per_hour(self) -> str:
        """SHA-256 over what rates and risk are made from beside runs."""
        context = self.context
        return digest([str(entry) for entry in (context.exposures, context.acceptances, context.risk)])

    @cached_property
    def per_hour(self) -> dict[tuple[str, str], tuple[str, float, Any]]:
        """Requirement and words -> verdict, upper end and numbers of a rate, a hazard, or all triggering conditions
        (of no requirement, 0)."""
        rates = dict[tuple[str, str], tuple[str, float, Any]]()
        for path in sorted(file for file in self.files if file.startswith(RATES) or file in (RISK, TRIGGERS)):
            document = self._json(path)
            numbers = {key: part for key, part in document.items() if key not in _NOT_NUMBERS}
            if document.get("schema") == "verifier.rate":
                words = f"rate, planner {document['planner']}"
                rates[document["requirement"], words] = document["verdict"], document["bounds"]["upper"], numbers
            for hazard, risk in zip(document.get("hazards", ()), document.get("risks", ()), strict=True):
                words = f"hazard {hazard['name']}"
                rates[hazard["requirement"], words] = risk["verdict"], risk["harm_upper"], [hazard, risk]
            if path == TRIGGERS:
                rates["", ""] = document["verdict"], 0.0, numbers
        return rates

    def _json(self, path: str) -> Content:
        content: Content = json_of(self.files[path], path)
        return content


def digest(value: Any) -> str:
    """SHA-256 of JSON values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


@contextmanager
def side_of(bundle: str) -> Iterator[Side]:
    """A bundle, read.

    Raises:
        InputError: it cannot be read, or a file is not what its manifest lists.
    """
    files = read_bundle(bundle)
    for path in (MANIFEST_FILE, REQUEST_FILE, RUN_FILE, TRACE_FILE):
        if path not in files:
            raise InputError(f"is no bundle: {path} is not there", Place(bundle))
    manifest = read_manifest(files[MANIFEST_FILE])
    for wrong in check_hashes(files, manifest):
        raise InputError(f"is not intact: {wrong}", Place(bundle), "verify evidence check says all that is wrong")
    request = request_of(json_of(files[REQUEST_FILE], REQUEST_FILE))
    with unpacked_inputs(files, request) as read:
        yield Side(Path(bundle).absolute().name, files, manifest, request, read.inputs, read.context)


def _said(requirement: Requirement) -> str:
    given = "" if requirement.given is None else f" given {to_text(requirement.given, parenthesise=True)}"
    over = " over profile" if requirement.over_profile else ""
    formula = to_text(requirement.formula, parenthesise=True)
    return f"{requirement.asked} {requirement.comparison} {requirement.target}{over} [ {formula}{given} ]"
