"""SARIF 2.1.0 of a run: what is wrong, at the line of the spec that asks for it.

Every requirement is a rule (`reportingDescriptor`) with its verdict, so nothing is left out. Results are only the
problems: a violated requirement is an error, an inconclusive or vacuous one a warning, all of kind "fail", for what
had to be shown was not shown. A requirement without an answer within the limits is an error, and so is a closed gate
of the run. Satisfied requirements give no result: services that show SARIF, GitHub's among them, take every result
for a problem, whatever its kind.

Source: OASIS, Static Analysis Results Interchange Format 2.1.0, sections 3.14 (run), 3.19.23 (rules), 3.27 (result),
3.28 to 3.30 (places).
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

from verifier.base.arrays import grouped
from verifier.base.documents import json_values
from verifier.base.errors import one_line
from verifier.checking.verdicts import condition_over, worst_verdict
from verifier.evidence.checked import Checked, checked, gated, run_grounds
from verifier.evidence.documents import Document
from verifier.evidence.status import Standing, Status
from verifier.language.specs import Specification
from verifier.study.results import RunResult

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {"violated": "error", "inconclusive": "warning", "vacuous": "warning"}
LONGEST_NAME = 255
"""Characters of a rule's id; longer ones are refused by services that show SARIF, and are cut with a hash behind."""


def sarif_log(
    run: Document, spec_name: str, lines: Mapping[str, tuple[int, int]], standings: Sequence[Standing] = ()
) -> str:
    """The document of a run as a SARIF log.

    Args:
        spec_name: path of the spec from the root of the repository, with forward slashes.
        lines: requirement -> line and column in the spec, from 1; a requirement without is shown at the file.
        standings: of the requirements in a bundle, over all its runs; each that is not supported is a result, too.
    """
    result: RunResult = run.result
    rules = list(_rules(result))
    for name in dict.fromkeys(one_line(standing.requirement) for standing in standings):
        if (key := _identifier(name)) not in {rule["id"] for rule in rules}:  # the run does not have it
            level = {"defaultConfiguration": {"level": "warning"}}
            rules.append({"id": key, "shortDescription": {"text": name}, **level})
    version = {"version": result.versions["verifier"]} if "verifier" in result.versions else {}
    results = list(_results(result, rules, spec_name, lines, standings))
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "verifier", "rules": rules, **version}},
                "artifacts": list(_artifacts(result, spec_name)),
                "columnKind": "unicodeCodePoints",
                "results": results,
                "properties": {
                    "title": one_line(result.title),
                    "verdict": result.verdict.value,
                    "condition": result.condition,
                    **{_camel(name): one_line(text) for name, text in run_grounds(result)},
                    "resultSha256": run.sha256,
                    "versions": dict(result.versions),
                    "command": [one_line(word) for word in result.command],
                },
            }
        ],
    }
    return json.dumps(log, indent=2, sort_keys=True, allow_nan=False) + "\n"


def requirement_places(spec: Specification) -> dict[str, tuple[int, int]]:
    """Requirement -> line and column of its name in the spec, from 1; also under the names that the ends of `P = ?`
    have where the world decides."""
    lines = spec.source.text.split("\n")
    places: dict[str, tuple[int, int]] = {}
    for requirement in spec.requirements:
        at = re.search(rf"(?<!\w){re.escape(requirement.name)}(?!\w)", lines[requirement.line - 1])
        place = (requirement.line, 1 if at is None else at.start() + 1)
        places |= {end.name: place for end in (*requirement.ends, requirement)}
    return places


def _rules(run: RunResult) -> Iterator[dict[str, object]]:
    """One rule per requirement; its verdict is the worst over the planners, its condition that of all scenarios."""
    by_name = grouped((one_line(worst.result.name), worst) for worst in _worst_of(run))
    for name, mine in by_name.items():
        results = [checked.result for checked in mine]
        verdict = worst_verdict(result.verdict for result in results)
        text = f"{results[0].asked_text} [ {one_line(results[0].formula)} ]"
        condition = condition_over(verdict, ((result.verdict, result.condition) for result in results))
        messages = [one_line(f"{checked.name}: {checked.message}") for checked in mine]
        said = {"verdict": verdict.value, "condition": condition, "messages": messages}
        yield _rule(name, text, LEVELS.get(verdict.value, "none"), said)
    for left in run.unanswered:
        failed = {"verdict": "no answer", "messages": [one_line(left.reason)]}
        yield _rule(one_line(left.name), f"P [ {one_line(left.formula)} ]", "error", failed)


def _rule(name: str, text: str, level: str, properties: Mapping[str, object]) -> dict[str, object]:
    return {
        "id": _identifier(name),
        **({} if name == _identifier(name) else {"name": name}),  # the standard wants no repetition
        "shortDescription": {"text": text},
        "fullDescription": {"text": f"{name}: {text}"},
        "defaultConfiguration": {"level": level},
        "properties": properties,
    }


def _results(
    run: RunResult,
    rules: Sequence[Mapping[str, object]],
    spec_name: str,
    lines: Mapping[str, tuple[int, int]],
    standings: Sequence[Standing],
) -> Iterator[dict[str, object]]:
    """Every problem, with the number of its rule and its place in the spec."""
    index = {rule["id"]: at for at, rule in enumerate(rules)}
    for requirement, identity, level, message, properties in _problems(run, standings):
        rule = _identifier(one_line(requirement))
        place: dict[str, object] = {"artifactLocation": {"uri": _uri(spec_name), "index": 0}}
        if requirement in lines:
            place["region"] = dict(zip(("startLine", "startColumn"), lines[requirement], strict=True))
        yield {
            "ruleId": rule,
            "kind": "fail",
            "level": level,
            "message": {"text": _literal(one_line(message))},
            "partialFingerprints": {"requirementAndPlanner/v1": _sha256(f"{requirement}\0{identity}")},
            "properties": properties,
            "ruleIndex": index[rule],
            "locations": [{"physicalLocation": place}],
        }


def _problems(
    run: RunResult, standings: Sequence[Standing]
) -> Iterator[tuple[str, str, str, str, dict[str, object]]]:
    """Requirement, what else tells the problem from all others, level, message and properties."""
    for worst in _worst_of(run):
        point, verdict = worst.point, worst.point.verdict.value
        if verdict in LEVELS:
            said = {name: json_values(getattr(point, name)) for name in ("verdict", "probability", "lower", "upper")}
            said |= {**worst.grounds, "uncertainty": json_values(point.uncertainty)}
            message = f"{worst.name}: {worst.message}"
            yield worst.result.name, worst.result.planner, LEVELS[verdict], message, said
    for gate in gated(run):
        if gate.failed:
            message, said = f"{gate.name}: {gate.message}", {"gate": gate.gate}
            yield gate.requirement, f"{gate.planner}\0{gate.gate}", "error", message, said
    for left in run.unanswered:
        message = f"{left.name}: no answer. {left.reason}"
        yield left.name, "no answer", "error", message, {"verdict": "no answer"}
    for one in standings:
        if one.status is not Status.SUPPORTED:
            level = {Status.VIOLATED: "error", Status.CONDITIONAL: "note"}.get(one.status, "warning")
            said = {"status": one.status.value, "grade": one.grade.value}
            yield one.requirement, f"{one.planner}\0status", level, f"status of {one.name}: {one.told}", said


def _worst_of(run: RunResult) -> tuple[Checked, ...]:
    """The worst scenario of each requirement under each planner."""
    return tuple(requirement for requirement in checked(run) if requirement.worst)


def _artifacts(run: RunResult, spec_name: str) -> Iterator[dict[str, object]]:
    """The inputs with their hashes, the spec first."""
    for file in sorted(run.inputs, key=lambda file: file.role != "spec"):
        yield {
            "location": {"uri": _uri(spec_name if file.role == "spec" else file.name)},
            "hashes": {"sha-256": file.sha256},
            "description": {"text": file.role},
        }


def _camel(name: str) -> str:
    first, *others = name.split()
    return first + "".join(word.capitalize() for word in others)


def _identifier(name: str) -> str:
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME - 17]}-{_sha256(name)[:16]}"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _uri(path: str) -> str:
    return quote(path.encode(errors="surrogatepass"), safe="/")


def _literal(text: str) -> str:
    """A message in which braces are no placeholders (section 3.11.5) and no brackets are a link (3.11.6)."""
    return text.replace("{", "{{").replace("}", "}}").replace("](", "] (")
