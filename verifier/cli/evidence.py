"""The commands `verify evidence build` and `verify evidence check`: call the stories and print what they found."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

from verifier.base.errors import one_line
from verifier.base.files import document_text
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.terminal import progress_bar
from verifier.evidence.bundle.build import Bundle, Sources, build_bundle
from verifier.evidence.bundle.check import CheckLimits, check_bundle
from verifier.evidence.bundle.derived import TRACE_FILE
from verifier.evidence.findings import CheckReport
from verifier.evidence.settings import BuildSettings, CheckSettings
from verifier.provenance import program_versions

_RESULTS_BAR = partial(progress_bar, what="results")
SCHEMA_NAME = "verifier.bundle_check"
BUILT_SCHEMA_NAME = "verifier.bundle_built"


def build_command(arguments: BuildSettings, command: Command) -> int:
    """Run `verify evidence build`; exit code 0 for a bundle that was made, whatever its verdicts are."""
    sources = Sources(
        arguments.spec,
        arguments.cm,
        arguments.context,
        arguments.given,
        command,
    )
    bundle = build_bundle(sources, arguments.output, arguments.options, arguments.force, _RESULTS_BAR)
    if arguments.json:
        text = document_text(_built_document(bundle, arguments.output))
        print(with_provenance(text, command, {"versions": program_versions()}), end="")
    else:
        print(build_text(bundle, arguments.output), end="")
    return 0


def check_command(arguments: CheckSettings, command: Command) -> int:
    """Run `verify evidence check` and give its exit code, see `CheckReport`."""
    limits = CheckLimits(system=arguments.limits, timeout_s=arguments.timeout)
    report = check_bundle(
        arguments.bundle, arguments.digest, arguments.anew, limits, partial(progress_bar, what="results")
    )
    print(_json_text(report, command) if arguments.json else check_text(report), end="")
    return int(report.exit_code)


def _json_text(report: CheckReport, command: Command) -> str:
    """The document with the command and the versions of what checked."""
    text = document_text(_document(report))
    return with_provenance(text, command, {"versions": program_versions()})


def build_text(bundle: Bundle, target: str) -> str:
    """What was built, for people."""
    size = sum(map(len, bundle.files.values()))
    lines = [
        f"{Path(target).name}: {len(bundle.files)} files, {size} bytes",
        f"digest: {bundle.digest}",
        *(f"omitted: {path}: {one_line(reason)}" for path, reason in bundle.omitted.items()),
        *map(_status, _trace(bundle)),
        f"verdict of the run: {bundle.verdict}",
    ]
    return "\n".join(lines) + "\n"


def _trace(bundle: Bundle) -> list[dict[str, str]]:
    """The rows of the trace: every requirement of the spec, under every planner."""
    return list(csv.DictReader(io.StringIO(bundle.files[TRACE_FILE].decode())))


def _built_document(bundle: Bundle, target: str) -> dict[str, object]:
    return {
        "schema": BUILT_SCHEMA_NAME,
        "version": 1,
        "bundle": Path(target).name,
        "digest": bundle.digest,
        "files": len(bundle.files),
        "bytes": sum(map(len, bundle.files.values())),
        "omitted": [{"file": path, "reason": reason} for path, reason in bundle.omitted.items()],
        "requirements": [
            {key: row[key] for key in ("requirement", "planner", "status", "reason", "defeated_by")}
            for row in _trace(bundle)
        ],
        "verdict": bundle.verdict,
    }


def _status(row: dict[str, str]) -> str:
    """A row of the trace as a line."""
    said = row["reason"] if row["status"] != "defeated" else f"by {row['defeated_by']}"
    planner = f", planner {row['planner']}" if row["planner"] else ""
    return f"{row['requirement']}{planner}: {row['status']}{f' ({said})' if said else ''}"


def check_text(report: CheckReport) -> str:
    """What was found, for people: what is wrong first, then what was checked, and what was not."""
    lines = [f"{one_line(report.bundle)}: digest {report.digest or 'none'}"]
    lines += [f"WRONG {one_line(str(each))}" for each in report.findings]
    lines += [f"checked: {count} {what}" for count, what in report.checked]
    lines += [f"not checked: {what}" for what in report.unchecked]
    return "\n".join([*lines, *_grade_lines(report)]) + "\n"


def _grade_lines(report: CheckReport) -> Iterator[str]:
    """The last lines: status of run and requirements, then how the numbers were checked."""
    if report.verdict:
        yield f"verdict of the run: {report.verdict}"
    for name, planner, verdict in report.requirements:
        yield f"requirement {name}, planner {planner}: {verdict}"
    wrong = len(report.findings)
    yield f"files: {'intact' if report.intact else 'NOT intact'}"
    if wrong:
        yield f"{wrong} finding{'s' if wrong > 1 else ''}: the results are not confirmed"
    elif report.grades is not None:
        grades = report.grades
        yield (
            f"numbers in the results: {grades.proven} proven, {grades.recomputed} recomputed, "
            f"{grades.by_hash} compared only by hash"
        )
        if grades.all_checked:
            yield "every number proven or recomputed"


def _document(report: CheckReport) -> dict[str, object]:
    return {
        "schema": SCHEMA_NAME,
        "version": 1,
        "bundle": report.bundle,
        "digest": report.digest,
        "digest_demanded": report.demanded,
        "intact": report.intact,
        "findings": [
            {"file": each.file, "where": each.where, "found": each.found, "expected": each.expected}
            for each in report.findings
        ],
        "checked": [{"count": count, "what": what} for count, what in report.checked],
        "unchecked": list(report.unchecked),
        "verdict": report.verdict,
        "requirements": [
            {"requirement": name, "planner": planner, "verdict": verdict}
            for name, planner, verdict in report.requirements
        ],
        "numbers": None if report.grades is None else asdict(report.grades),
    }
