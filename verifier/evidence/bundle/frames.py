"""What stands around the numbers of a result: its bytes, title, versions, and what it tells its reader to know.

The remarks matter most: doubts in the assurance case follow from them, so a result without one would have one doubt
less. All but those of the model checker itself follow from the inputs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from verifier.base.documents import json_values
from verifier.base.version import __version__
from verifier.checking.verdicts import Decision, Verdict
from verifier.evidence.differences import differing
from verifier.evidence.findings import Finding, Kind
from verifier.study.case import Study
from verifier.study.model_checks import look_at, model_remarks
from verifier.study.options import RunOptions
from verifier.study.provenance import grid_remarks, noted, program_versions, run_remarks, start_remarks
from verifier.study.results import RunResult

_NOT_OF_A_BUNDLE = ("command", "gates")
"""What documents have only if a command wrote them: of a bundle, `request.json` says what was typed."""

SAME_AS_THE_RUN = (
    "title", "verdict", "condition", "inputs", "settings", "channel", "versions", "engines", "remarks", "matrices",
)  # fmt: skip
"""What an explanation repeats of the run."""


def check_frame(path: str, content: Mapping[str, Any], raw: bytes, rebuilt: Study) -> list[Finding]:
    """Whether a result is written as this program writes it, and its title and versions can be right.

    Args:
        path: of the document in the bundle.
        content: validated; raw: its bytes.
        rebuilt: the system.
    """
    confusion = rebuilt.inputs.confusion
    named = {*program_versions(), "storm"}
    expected = {"title": confusion.matrices.title or PurePath(confusion.name).stem, "versions": sorted(named)}
    found = {"title": content["title"], "versions": sorted(content["versions"])}
    wrong = differing(path, found, expected)
    stated = content["versions"].get("verifier")
    if stated not in (None, __version__):
        wrong.append(_finding(path, "/versions/verifier", str(stated), f"{__version__}, which built the bundle"))
    for name in _NOT_OF_A_BUNDLE:
        if name in content:
            wrong.append(_finding(path, f"/{name}", "an entry", "nothing: no result of a bundle has it"))
    if (json.dumps(content, indent=2) + "\n").encode() != raw:
        wrong.append(_finding(path, "", "the same result in other bytes than were written", "what was built"))
    return wrong


def check_remarks(path: str, run: RunResult, rebuilt: Study, options: RunOptions) -> tuple[list[Finding], int]:
    """Whether a run says all that follows from the inputs; and how many of its remarks do not follow from them."""
    expected = list(_expected_remarks(rebuilt, options))
    missing = [each for each in expected if each not in run.remarks]
    findings = [_finding(path, "/remarks", "nothing", f"the remark: {each}") for each in missing]
    return findings, sum(each not in expected for each in run.remarks)


def check_same_frame(
    path: str, content: Mapping[str, Any], run: Mapping[str, Any], names: Sequence[str]
) -> list[Finding]:
    """Entries of a result that are the run's as well, and must say the same."""
    found = {name: content.get(name) for name in names}
    expected = {name: run.get(name) for name in names}
    return differing(path, found, expected, ", as in the run")


def check_same_points(path: str, result: RunResult, run: RunResult) -> list[Finding]:
    """A run that differs in what decides a verdict only has the numbers of the run."""
    return check_same_frame(path, _numbers(result), _numbers(run), ["requirements"])


def _numbers(run: RunResult) -> dict[str, Any]:
    """The points without their verdicts."""
    nothing = Decision(Verdict.NO_TARGET)
    points = [{"points": [json_values(point.decided(nothing)) for point in one.points]} for one in run.requirements]
    return {"requirements": points}


def _expected_remarks(rebuilt: Study, options: RunOptions) -> Iterator[str]:
    yield from run_remarks(
        rebuilt.inputs.confusion.matrices,
        options,
        [column for case in rebuilt.cases for column in case.assumed],
        [
            *grid_remarks(rebuilt.grid, options.false_positives, rebuilt.matrices),
            *model_remarks([look_at(case) for case in rebuilt.under(options).cases]),
            *(remark for case in rebuilt.cases for remark in start_remarks(case)),
            *noted((case, case.notes) for case in rebuilt.cases),
        ],
        rebuilt.data,
        rebuilt.tests,
        rebuilt.divided,
    )


def _finding(path: str, where: str, found: str, expected: str) -> Finding:
    return Finding(path, where, found, expected, Kind.CONTENT)
