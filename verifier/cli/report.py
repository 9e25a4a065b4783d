"""The commands `verify report` and `verify evidence rate`, `risk` and `triggers`: ask, print, write."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from verifier.base.errors import UsageError, one_line, shown
from verifier.base.files import ending_of, write_bytes
from verifier.cli.invocation import Command
from verifier.cli.terminal import check_targets, give_study
from verifier.evidence.consistency import read_document
from verifier.evidence.context import CaseContext, read_context
from verifier.evidence.documents import Document
from verifier.evidence.rates.document import Acceptance
from verifier.evidence.rates.exposure import LARGEST_COUNT, Exposure, requirement_of, unwanted
from verifier.evidence.rates.hazard import EVERY, RateQuestion, hazard_rate
from verifier.evidence.report import csv_report, html_report, markdown_report
from verifier.evidence.report.pages import report_page
from verifier.evidence.residual_risk.assembly import residual_risk
from verifier.evidence.settings import (
    RateSettings,
    ReportSettings,
    RiskSettings,
    TriggersSettings,
    per_hour,
    rate_ends,
)
from verifier.evidence.telling import rate_blocks, risk_blocks, triggers_blocks
from verifier.evidence.triggers import known_triggers
from verifier.telling.docx import docx_bytes

WRITERS: Mapping[str, Callable[[Sequence[Document], str | None], str | bytes]] = {
    ".html": html_report,
    ".md": markdown_report,
    ".csv": lambda documents, title: csv_report(documents),
    ".docx": lambda documents, title: docx_bytes(report_page(documents, title)),
}
"""Ending of a file -> what writes it."""


def report_command(arguments: ReportSettings, command: Command) -> int:
    """Run `verify report` and give its exit code: 0 when everything is written, whatever the verdicts are."""
    _check_targets(arguments)
    documents = [read_document(path) for path in arguments.results]
    # Everything is made before anything is written.
    made = {name: WRITERS[Path(name).suffix.lower()](documents, arguments.title) for name in arguments.output}
    for target, text in made.items():
        write_bytes(target, text if isinstance(text, bytes) else text.encode())
        print(f"wrote {one_line(target)}")
    return 0


def _check_targets(arguments: ReportSettings) -> None:
    """Refuse outputs that could not be written, or would overwrite an input, before anything is read."""
    if arguments.title is not None and not arguments.title.strip():
        raise UsageError("--title: expected a text")
    for target in arguments.output:
        ending_of("--output", target, WRITERS)
    check_targets(arguments, "report")


def rate_command(arguments: RateSettings, command: Command) -> int:
    """Run `verify evidence rate` and give its exit code."""
    asked, given = question(arguments), exposures(arguments)
    check_targets(arguments, "rate")
    context = CaseContext() if arguments.context is None else read_context(arguments.context)
    run = read_document(arguments.result)
    if asked.acceptance is None:
        asked = replace(asked, acceptance=_stated_acceptance(context, run, asked))
    if asked.acceptance is None and asked.demonstrate_at != RateQuestion("").demonstrate_at:
        raise UsageError("--test-confidence is about a criterion: add --accept, or --context with one")
    environments = run.result.settings.environments if run.kind == "run" else ()
    given = given or context.exposures_for(environments)
    if not given:
        raise UsageError(
            "missing exposure: give --exposure, or --encounters with --hours, or --context\n"
            "  hint: --exposure 12/h, or --encounters 240 --hours 20, or --context with [exposure]"
        )
    study = replace(hazard_rate(run, asked, given, context.file), command=command)
    give_study(arguments, study, rate_blocks(study))
    return int(study.verdict.exit_code)


def exposures(arguments: RateSettings) -> dict[str, Exposure]:
    """Environment -> exposure, as the arguments say; empty where they do not.

    Raises:
        UsageError: an exposure that cannot be read, or one that is given twice.
    """
    level, by_environment = arguments.exposure_level, dict[str, Exposure]()
    for text in arguments.exposure:
        name, equals, stated = text.rpartition("=")
        name = name.strip() if equals else EVERY
        if name in by_environment or not name:
            raise UsageError(f"--exposure: expected every environment once, got {shown(text)}")
        ends = rate_ends(stated, text)
        if ends is None:
            by_environment[name] = Exposure.stated(per_hour("--exposure", stated))
        else:
            by_environment[name] = Exposure(*ends, level=level)
    if arguments.encounters is not None and arguments.hours is not None:
        if by_environment:
            raise UsageError("either --exposure or --encounters with --hours")
        if not 0 <= arguments.encounters <= LARGEST_COUNT:
            raise UsageError(f"--encounters: expected a whole number from 0 to {LARGEST_COUNT}")
        by_environment[EVERY] = Exposure.counted(arguments.encounters, arguments.hours)
    elif arguments.encounters is not None or arguments.hours is not None:
        raise UsageError("--encounters and --hours belong together: so many encounters in so many hours")
    if level is not None and not any(exposure.level is not None for exposure in by_environment.values()):
        raise UsageError("--exposure-level belongs to a stated interval, as --exposure 10..14/h")
    return by_environment


def question(arguments: RateSettings) -> RateQuestion:
    """What the arguments ask beside the exposure; UsageError where one cannot be read."""
    return RateQuestion(
        arguments.requirement,
        arguments.planner,
        arguments.event,
        arguments.environment,
        None if arguments.accept is None else Acceptance(arguments.accept, ""),
        arguments.confidence,
        arguments.test_confidence,
    )


def _stated_acceptance(context: CaseContext, run: Document, asked: RateQuestion) -> Acceptance | None:
    """The criterion of the context, which is about how often a requirement fails."""
    if asked.requirement not in context.acceptances:
        return None
    requirement = requirement_of(run, asked.requirement, asked.planner)
    if requirement.target is not None and asked.event not in (None, unwanted(requirement, None)):
        raise UsageError(
            f"--event {asked.event} is what the target of {asked.requirement} asks for, and the acceptance criterion "
            "of the context is about how often it fails\n  hint: --accept says how often the event is accepted"
        )
    return context.acceptances[asked.requirement]


def risk_command(arguments: RiskSettings, command: Command) -> int:
    """Run `verify evidence risk` and give its exit code."""
    context, runs = _read(arguments)
    study = replace(residual_risk(context.stated, runs), command=command)
    give_study(arguments, study, risk_blocks(study))
    return int(study.verdict.exit_code)


def triggers_command(arguments: TriggersSettings, command: Command) -> int:
    """Run `verify evidence triggers` and give its exit code."""
    context, results = _read(arguments)
    study = replace(known_triggers(context.triggers, results, context.file), command=command)
    give_study(arguments, study, triggers_blocks(study))
    return int(study.verdict.exit_code)


def _read(arguments: RiskSettings | TriggersSettings) -> tuple[CaseContext, list[Document]]:
    """The context and the results; documents that the context names are inputs, too."""
    context = read_context(arguments.context)
    check_targets(
        arguments, "result", [str(Path(arguments.context).parent / document) for document in context.documents]
    )
    return context, [read_document(path) for path in arguments.results]
