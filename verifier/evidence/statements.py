"""A run as a statement for other tools: an in-toto statement, and evidence of MLTE.

in-toto: these files were tested with this configuration, and this came out. Statement v1 with the predicate
test-result v0.1 (in-toto attestation framework, spec/v1/statement.md and spec/predicates/test-result.md). The
statement is not signed; tools such as cosign or in-toto sign it as it is.

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

MLTE (Machine Learning Test and Evaluation, SEI; package mlte): one artefact for each requirement and planner. The
number is the probability for the matrices as measured; what bounds it, and how the requirement stands, are texts
beside it.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence

from verifier.base.errors import one_line
from verifier.base.files import document_text
from verifier.checking.verdicts import verdict_text
from verifier.evidence.checked import checked, gated, run_grounds
from verifier.evidence.documents import Document
from verifier.evidence.status import Standing, Status
from verifier.study.points import Point
from verifier.study.records import SettingsRecord
from verifier.study.results import RunResult

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://in-toto.io/attestation/test-result/v0.1"
LISTS = {"violated": "failedTests", "satisfied": "passedTests"}
LISTS |= {"inconclusive": "warnedTests", "vacuous": "warnedTests"}
STATUSES = {Status.VIOLATED: "failedTests", Status.SUPPORTED: "passedTests"}
RESULTS = {"violated": "FAILED", "satisfied": "PASSED"}


def statement(run: Document, subjects: Mapping[str, str], standings: Sequence[Standing] = ()) -> str:
    """The document of a run as an in-toto statement.

    Args:
        subjects: file -> its SHA-256 in hexadecimal: what the statement is about. Inputs of the run that are not
            among them are the configuration; so are the baseline of a gate and the document of the run itself.
        standings: of the requirements in a bundle, over all its runs; each is a test, and the result is that of all.
    """
    tests: dict[str, list[str]] = {"passedTests": [], "warnedTests": [], "failedTests": []}
    result: RunResult = run.result
    for requirement in checked(result):
        if requirement.point.verdict.value in LISTS:
            named = one_line(verdict_text(requirement.name, requirement.point.condition))
            tests[LISTS[requirement.point.verdict.value]].append(named)
    for gate in gated(result):
        tests["failedTests" if gate.failed else "passedTests"].append(one_line(gate.name))
    for one in standings:
        tests[STATUSES.get(one.status, "warnedTests")].append(one_line(f"status of {one.name}: {one.told}"))
    whole = RESULTS.get(result.verdict.value, "WARNED")
    if any(one.status is not Status.SUPPORTED for one in standings):
        whole = "WARNED"
    judged = {"result": "FAILED" if tests["failedTests"] else whole}
    subject = [_resource(name, subjects[name]) for name in sorted(subjects)]
    predicate = tests | judged | {"configuration": _configuration(run, result, subjects)}
    head = {"_type": STATEMENT_TYPE, "predicateType": PREDICATE_TYPE}
    document = {**head, "subject": subject, "predicate": predicate}
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _configuration(run: Document, result: RunResult, subjects: Mapping[str, str]) -> list[dict[str, object]]:
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


def _resource(name: str, sha256: str) -> dict[str, object]:
    return {"name": one_line(name), "digest": {"sha256": sha256}}


_CLASSES = {"real": "mlte.evidence.types.real.Real", "string": "mlte.evidence.types.string.String"}
MEASURED_BY = "verifier.run"


def mlte_artefacts(run: RunResult, standings: Sequence[Standing]) -> Iterator[tuple[str, str]]:
    """Name and JSON of an artefact for each requirement of a run and planner, in their order."""
    status = {(standing.requirement, standing.planner): standing for standing in standings}
    (digest,) = {file.sha256 for file in run.inputs if file.role == "confusion"} or {""}
    for one in run.requirements:
        worst, stands = one.worst_point, status.get((one.name, one.planner))
        ends = worst.bounds(run.settings.verdict_from)
        said = {
            "planner": one.planner,
            "target": one.target_text,
            "worst_scenario": worst.scenario,
            "lower": str(ends[0]),
            "upper": str(ends[1]),
            "bounds": _of_bounds(run.settings, worst),
            "verdict": one.verdict.value,
            "condition": one.condition or "none",
            "status": "no target" if stands is None else stands.told,
            "sha256_of_matrices": digest,
        }
        yield one.name, _artefact(f"{one.name}.{one.planner}", worst.probability, one.unit, said)


def _of_bounds(settings: SettingsRecord, point: Point) -> str:
    """What lower and upper are, with what they assume."""
    confidence, source = settings.confidence, settings.verdict_from
    if confidence is None or point.uncertainty is None or source == "point":
        return "numerical error alone, for the matrices as measured"
    if source == "interval" or point.uncertainty.confidence_bounds is None:
        return f"{confidence.level:g} {confidence.interval} interval; assumed: {settings.assumption('interval')}"
    looks = "any number" if confidence.bounds.every_look else str(confidence.bounds.looks)
    return f"{confidence.bounds.name}; assumed: {confidence.bounds.condition}; looks at the data: {looks}"


def _artefact(name: str, number: float, unit: str, said: Mapping[str, str]) -> str:
    """The JSON of an artefact.

    Args:
        number: what was measured; one that is not finite is a text.
        unit: in words; empty for probabilities.
    """
    kind = "real" if math.isfinite(number) else "string"
    value = {kind: number if kind == "real" else str(number)} | ({"unit": None} if kind == "real" else {})
    measured = {"measurement_class": MEASURED_BY, "output_class": _CLASSES[kind]}
    more = {**said, **({"unit": unit} if unit else {})}
    return document_text(
        {
            "header": {"identifier": f"evidence.{name}", "type": "evidence", "timestamp": -1, "creator": None,
                       "level": "version"},
            "body": {
                "artifact_type": "evidence",
                "metadata": {"test_case_id": name, "measurement": {**measured, "additional_data": more}},
                "evidence_class": _CLASSES[kind],
                "value": {"evidence_type": kind, **value},
            },
        }
    )  # fmt: skip
