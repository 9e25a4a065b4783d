"""The commands `verify evidence build`, `check`, `sign`, `export`, `diff`: call the stories and print."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from verifier.base.documents import InputFile, read_document
from verifier.base.errors import InputError, Place, UsageError, one_line
from verifier.base.files import document_text, read_json, read_text
from verifier.base.words import listed
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.terminal import check_targets, give_study, progress_bar
from verifier.evidence.bundle.build import Bundle, Sources, build_bundle, built_document
from verifier.evidence.bundle.check import CheckLimits, check_bundle
from verifier.evidence.bundle.intact import export_bundle, sign_bundle
from verifier.evidence.bundle.manifest import digest_of
from verifier.evidence.changes.claims import compare_bundles, diff_blocks
from verifier.evidence.consistency import read_document as read_result
from verifier.evidence.declarations import clock_day, today
from verifier.evidence.field import SpiCheckResult, SpiResult, field_rows, tested
from verifier.evidence.findings import CheckReport
from verifier.evidence.indicators import spi_blocks
from verifier.evidence.settings import (
    BuildSettings,
    CheckSettings,
    DiffSettings,
    ExportSettings,
    SignSettings,
    SpiSettings,
)
from verifier.evidence.signatures import default_path, find_signature
from verifier.evidence.status import overall_text
from verifier.perception.confusion.data_set import UseRecord, looks_at, read_stated, with_record, with_uses
from verifier.perception.confusion.document import read_hashed_counts, write_confusion
from verifier.perception.settings import UsedSettings
from verifier.study.provenance import program_versions
from verifier.telling.terminal import text_of

_RESULTS_BAR = partial(progress_bar, what="results")


def build_command(arguments: BuildSettings, command: Command) -> int:
    """Run `verify evidence build`; exit code 0 for a bundle that was made, whatever its verdicts are."""
    sources = Sources(arguments.spec, arguments.cm, arguments.context, arguments.given, command)
    bundle = build_bundle(sources, arguments.output, arguments.options, arguments.force, _RESULTS_BAR)
    document = built_document(bundle, Path(arguments.output).name)
    print(_json_text(document, command) if arguments.json else build_text(bundle, arguments.output), end="")
    return 0


def check_command(arguments: CheckSettings, command: Command) -> int:
    """Run `verify evidence check` and give its exit code, see `CheckReport`."""
    limits = CheckLimits(system=arguments.limits, timeout_s=arguments.timeout)
    if arguments.signed_by is None and (arguments.role or arguments.signatures):
        raise UsageError("--role and --signatures belong to --signed-by PUBLIC_KEY")
    report = check_bundle(
        arguments.bundle, arguments.digest, arguments.recompute, limits, partial(progress_bar, what="results")
    )
    if arguments.signed_by is not None:
        path = arguments.signatures or default_path(arguments.bundle)
        seal = find_signature(path, report.digest, arguments.signed_by, arguments.role, clock_day())
        report = report.sealed(seal, Path(path).name)
    print(_json_text(report.document(), command) if arguments.json else check_text(report), end="")
    return int(report.exit_code)


def sign_command(arguments: SignSettings, command: Command) -> int:
    """Run `verify evidence sign`; exit code 0 where the bundle was checked, found intact and signed."""
    signed = arguments.bundle, arguments.key, arguments.role, arguments.by, arguments.until, arguments.output
    seal = sign_bundle(*signed)
    print(f"digest: {seal.digest}\nsigned: {seal.told}\n{one_line(seal.signed.status)}")
    return 0


def export_command(arguments: ExportSettings, command: Command) -> int:
    """Run `verify evidence export`; exit code 0 where the bundle was found intact and written."""
    check_targets(arguments, "export")
    told = export_bundle(arguments.bundle, arguments.output, arguments.into)
    print(f"wrote {one_line(arguments.output)}" + f": {told}" * bool(told))
    return 0


def diff_command(arguments: DiffSettings, command: Command) -> int:
    """Run `verify evidence diff` and give its exit code."""
    check_targets(arguments, "comparison")
    result = compare_bundles(arguments.old, arguments.new, arguments.odd)
    result = replace(result, command=command, versions=program_versions())
    give_study(arguments, result, diff_blocks(result))
    return int(result.exit_code)


def used_command(arguments: UsedSettings, command: Command) -> int:
    """Run `verify confusion used`; exit code 0 where the record was written."""
    check_targets(arguments, "record")
    if not arguments.results and arguments.data_set is None:
        raise UsageError("expected results of verify run with these matrices, or --data-set, or both")
    counts, digest = read_hashed_counts(arguments.matrices)
    uses = list[UseRecord]()
    for path in arguments.results:
        run = read_result(path)
        if run.kind != "run" or digest not in {file.sha256 for file in run.result.inputs if file.role == "confusion"}:
            said = f"a result of verify run with {arguments.matrices}, SHA-256 {digest[:16]}..."
            raise InputError(f"expected {said}", Place(path))
        title = f"{run.name}: {listed([requirement.name for requirement in run.result.requirements])}"
        uses.append(UseRecord(title, run.sha256, run.result.verdict.value, str(today())))
    stated = None if arguments.data_set is None else read_stated(arguments.data_set)
    confusion_counts = with_uses(with_record(counts, stated, arguments.data_set), uses, arguments.matrices)
    write_confusion(confusion_counts, arguments.output)
    print(f"{one_line(arguments.output)}: the next verdict is look {looks_at(confusion_counts.metadata)}")
    return 0


def spi_command(arguments: SpiSettings, command: Command) -> int:
    """Run `verify spi check` and give its exit code."""
    check_targets(arguments, "check")
    content, raw = read_json(arguments.spi)
    spi, (text, counted) = read_document(SpiResult, content, arguments.spi), read_text(arguments.field)
    read = {"spi": (arguments.spi, raw), "field": (arguments.field, counted)}
    study = SpiCheckResult(
        title=spi.title,
        level=spi.level,
        found=tested(spi, field_rows(text, arguments.field), arguments.field),
        inputs=tuple(InputFile.of(role, path, digest_of(raw)) for role, (path, raw) in read.items()),
        command=command,
        versions=program_versions(),
    )
    give_study(arguments, study, spi_blocks(study))
    return int(study.exit_code)


def _json_text(document: object, command: Command) -> str:
    """The document with the command and the versions of what built or checked."""
    return with_provenance(document_text(document), command, {"versions": program_versions()})


def build_text(bundle: Bundle, target: str) -> str:
    """What was built, for people."""
    size = sum(map(len, bundle.files.values()))
    lines = [
        f"{Path(target).name}: {len(bundle.files)} files, {size} bytes",
        f"digest: {bundle.digest}",
        *(f"omitted: {path}: {one_line(reason)}" for path, reason in bundle.omitted.items()),
        *map(_status, bundle.trace()),
        f"verdict of the run: {bundle.verdict}",
        one_line(overall_text(bundle.standings, bundle.case)),
    ]
    return text_of(lines)


def _status(row: Mapping[str, str]) -> str:
    """A row of the trace as a line."""
    said = row["reason"] if row["status"] != "defeated" else f"by {row['defeated_by']}"
    said += f": {row['conditional_on']}" if row["status"] == "conditional" else ""
    planner = f", planner {row['planner']}" if row["planner"] else ""
    return f"{row['requirement']}{planner}: {row['status']}{f' ({said})' if said else ''}"


def check_text(report: CheckReport) -> str:
    """What was found, for people: what is wrong first, then what was checked, and what was not."""
    lines = [f"{one_line(report.bundle)}: digest {report.digest or 'none'}"]
    lines += [f"WRONG {one_line(str(finding))}" for finding in report.findings]
    lines += [f"checked: {one.count} {one.what}" for one in report.checked]
    lines += [f"not checked: {what}" for what in report.unchecked]
    return text_of([*lines, *_grade_lines(report)])


def _grade_lines(report: CheckReport) -> Iterator[str]:
    """The last lines: status of run and requirements, then how the numbers were checked."""
    if report.verdict:
        yield f"verdict of the run: {report.verdict}"
    for one in report.requirements:
        status = f"; status: {one_line(one.status)}" if one.status else ""
        yield f"requirement {one.requirement}, planner {one.planner}: {one.verdict}{status}"
    wrong = len(report.findings)
    yield f"files: {'intact' if report.intact else 'NOT intact'}"
    if wrong:
        yield f"{wrong} finding{'s' if wrong > 1 else ''}: the results are not confirmed"
    elif (grades := report.numbers) is not None:
        yield (
            f"numbers in the results: {grades.proven} proven, {grades.recomputed} recomputed, "
            f"{grades.by_hash} compared only by hash"
        )
        if grades.all_checked:
            yield "every number proven or recomputed"
    if report.status:
        yield one_line(report.status)
