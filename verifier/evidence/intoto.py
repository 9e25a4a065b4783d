"""An in-toto statement of a run: these files were tested with this configuration, and this came out.

Statement v1 with the predicate test-result v0.1 (in-toto attestation framework, spec/v1/statement.md and
spec/predicates/test-result.md). The statement is not signed; tools such as cosign or in-toto sign it as it is.

| worst verdict         | result | each case                              |
|-----------------------|--------|----------------------------------------|
| violated              | FAILED | failedTests                            |
| inconclusive          | WARNED | warnedTests                            |
| vacuous               | WARNED | warnedTests                            |
| satisfied             | PASSED | passedTests                            |
| no target, throughout | WARNED | none: nothing was asked, nothing passed |

The name of a test that passed or failed on a condition ends with it: the format has no other place for that.
A gate of the run is a test as well, per requirement and planner; a closed one fails. So is the status of a
requirement over all runs of a bundle: violated fails, supported passes, all others warn.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from verifier.base.documents import is_sha256
from verifier.base.errors import one_line
from verifier.checking.verdicts import verdict_text
from verifier.evidence.checked import checked, gated, run_grounds, run_of
from verifier.evidence.documents import Document
from verifier.evidence.status import Standing, Status
from verifier.study.results import RunResult

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://in-toto.io/attestation/test-result/v0.1"
LISTS = {
    "violated": "failedTests",
    "inconclusive": "warnedTests",
    "vacuous": "warnedTests",
    "satisfied": "passedTests",
}
STATUSES = {Status.VIOLATED: "failedTests", Status.SUPPORTED: "passedTests"}
RESULTS = {"violated": "FAILED", "satisfied": "PASSED"}


def statement(run: Document, subjects: Mapping[str, str], standings: Sequence[Standing] = ()) -> str:
    """The document of a run as an in-toto statement.

    Args:
        subjects: file -> its SHA-256 in hexadecimal: what the statement is about. Inputs of the run that are not
            among them are the configuration; so are the baseline of a gate and the document of the run itself.

        standings: of the requirements in a bundle, over all its runs; each is a test, and the result is that of all.

    Raises:
        ValueError: the document is not that of a run, there is no subject, or a hash is none.
    """
    if not subjects or not all(map(is_sha256, subjects.values())):
        raise ValueError("expected at least one subject, each with a SHA-256 of 64 hexadecimal digits")
    predicate: dict[str, Any] = {"passedTests": [], "warnedTests": [], "failedTests": []}
    result = run_of(run)
    for requirement in checked(result):
        if requirement.point.verdict.value in LISTS:
            named = one_line(verdict_text(requirement.name, requirement.point.condition))
            predicate[LISTS[requirement.point.verdict.value]].append(named)
    for gate in gated(result):
        predicate["failedTests" if gate.failed else "passedTests"].append(one_line(gate.name))
    for one in standings:
        predicate[STATUSES.get(one.status, "warnedTests")].append(one_line(f"status of {one.name}: {one.told}"))
    whole = RESULTS.get(result.verdict.value, "WARNED")
    if any(one.status is not Status.SUPPORTED for one in standings):
        whole = "WARNED"
    predicate["result"] = "FAILED" if predicate["failedTests"] else whole
    predicate["configuration"] = _configuration(run, result, subjects)
    document = {
        "_type": STATEMENT_TYPE,
        "subject": [_resource(name, subjects[name]) for name in sorted(subjects)],
        "predicateType": PREDICATE_TYPE,
        "predicate": predicate,
    }
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _configuration(run: Document, result: RunResult, subjects: Mapping[str, str]) -> list[dict[str, Any]]:
    tested = set(subjects.values())
    resources = []
    for file in result.inputs:
        if file.sha256 not in tested:
            resources.append(_resource(file.name, file.sha256) | {"annotations": {"role": file.role}})
    if result.gates is not None and result.gates.regression is not None:
        baseline = result.gates.regression.baseline  # what a gate compared with decides which tests failed
        resources.append(_resource(baseline.name, baseline.sha256) | {"annotations": {"role": "baseline"}})
    if run.sha256 not in tested:
        notes = {"role": "result", "versions": dict(result.versions)}
        notes |= {name: one_line(text) for name, text in run_grounds(result)}
        if result.condition is not None:
            notes["condition"] = one_line(result.condition)
        if result.command:
            notes["command"] = [one_line(word) for word in result.command]
        resources.append(_resource(run.name, run.sha256) | {"annotations": notes})
    return resources


def _resource(name: str, sha256: str) -> dict[str, Any]:
    return {"name": one_line(name), "digest": {"sha256": sha256}}
