"""The command `verify evidence rate`: ask, print and write what was found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from verifier.base.errors import UsageError, one_line, shown
from verifier.base.files import document_text, write_text
from verifier.base.numbers import level_text
from verifier.base.words import rate_interval_text
from verifier.checking.verdicts import Verdict, verdict_text
from verifier.cli.invocation import Command
from verifier.cli.targets import check_targets
from verifier.evidence.consistency import read_document
from verifier.evidence.context import CaseContext
from verifier.evidence.context_reader import read_context
from verifier.evidence.documents import Document
from verifier.evidence.rates.document import rate_document
from verifier.evidence.rates.encounter_probabilities import requirement_of, unwanted
from verifier.evidence.rates.exposure import LARGEST_COUNT, Exposure, float_above, float_below
from verifier.evidence.rates.hazard import EVERY, Acceptance, Bounds, HazardRate, RateQuestion, hazard_rate
from verifier.evidence.settings import RateSettings, per_hour, rate_ends
from verifier.telling.grounds import reason_text
from verifier.telling.terminal import aligned

CRITERION = {
    Verdict.SATISFIED: "met",
    Verdict.VIOLATED: "not met",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.VACUOUS: "vacuous",
}
"""What is said of an acceptance criterion."""


def rate_command(arguments: RateSettings, command: Command) -> int:
    """Run `verify evidence rate` and give its exit code."""
    asked, given = question(arguments), exposures(arguments)
    check_targets(arguments, "rate")
    context = CaseContext() if arguments.context is None else read_context(arguments.context)
    run = read_document(arguments.result)
    if asked.acceptance is None:
        asked = replace(asked, acceptance=_stated_acceptance(context, run, asked))
    environments = run.result.settings.environments if run.kind == "run" else ()
    given = given or context.exposures_for(environments)
    if not given:
        raise UsageError(
            "missing exposure: give --exposure, or --encounters with --hours, or --context\n"
            "  hint: --exposure 12/h, or --encounters 240 --hours 20, or --context with [exposure]"
        )
    found = hazard_rate(run, asked, given)
    table = rate_table(found)
    document = document_text(replace(rate_document(found, context.file), command=command))
    if arguments.output is not None:
        write_text(arguments.output, document)
    print(document if arguments.json else table, end="")
    return int(found.verdict.exit_code)


def exposures(arguments: RateSettings) -> dict[str, Exposure]:
    """Environment -> exposure, as the arguments say; empty where they do not.

    Raises:
        UsageError: an exposure that cannot be read, or one that is given twice.
    """
    level, found = arguments.exposure_level, dict[str, Exposure]()
    for text in arguments.exposure:
        name, equals, stated = text.rpartition("=")
        name = name.strip() if equals else EVERY
        if name in found or not name:
            raise UsageError(f"--exposure: expected every environment once, got {shown(text)}")
        ends = rate_ends(stated, text)
        if ends is None:
            found[name] = Exposure.stated(per_hour("--exposure", stated))
        else:
            found[name] = Exposure.stated_interval(*ends, level)
    if arguments.encounters is not None and arguments.hours is not None:
        if found:
            raise UsageError("either --exposure or --encounters with --hours")
        if not 0 <= arguments.encounters <= LARGEST_COUNT:
            raise UsageError(f"--encounters: expected a whole number from 0 to {LARGEST_COUNT}")
        found[EVERY] = Exposure.counted(arguments.encounters, arguments.hours)
    elif arguments.encounters is not None or arguments.hours is not None:
        raise UsageError("--encounters and --hours belong together: so many encounters in so many hours")
    if level is not None and not any(each.level is not None for each in found.values()):
        raise UsageError("--exposure-level belongs to a stated interval, as --exposure 10..14/h")
    return found


def question(arguments: RateSettings) -> RateQuestion:
    """What the arguments ask beside the exposure; UsageError where one cannot be read."""
    if arguments.events < 0:
        raise UsageError("--events: expected a number from 0")
    return RateQuestion(
        arguments.requirement,
        arguments.planner,
        arguments.event,
        arguments.environment,
        None if arguments.accept is None else Acceptance(arguments.accept),
        arguments.confidence,
        arguments.test_confidence,
        arguments.events,
    )


def rate_table(found: HazardRate) -> str:
    """The table of `verify evidence rate`."""
    what = {"violated": "violated", "satisfied": "satisfied, which is unwanted"}[found.event]
    lines = [
        f"{one_line(found.requirement)}, planner {one_line(found.planner)}: how often it is {what}",
        f"{one_line(found.run[0])}",
        "",
        *aligned(
            ["environment", "P per encounter", "worst scenario", "encounters per hour", "from"],
            [
                [
                    "every" if term.environment == EVERY else one_line(term.environment),
                    f"{float(term.worst.probability):.6g}",
                    one_line(term.worst.scenario) + (f" (of {term.scenarios})" if term.scenarios > 1 else ""),
                    rate_interval_text(float_below(term.ends[0]), float_above(term.ends[1])),
                    one_line(str(term.exposure)),
                ]
                for term in found.terms
            ],
        ),
        "",
    ]
    best = "" if found.rate is None else f"{float(found.rate):.4g} per hour, "
    lines.append(f"rate: {best}{_bounds_text(found.bounds)}")
    lines += [f"      {_bounds_text(each)}" for each in found.other]
    if any(term.scenarios > 1 for term in found.terms):
        lines.append("      assumes the worst scenario in every encounter (upper estimate for any other mix)")
    if found.left_out:
        lines.append(f"      without what happens in {', '.join(map(one_line, found.left_out))}, left out as asked")
    lines += _accepted(found)
    return "\n".join(lines) + "\n"


def _accepted(found: HazardRate) -> Iterator[str]:
    shown = found.demonstration
    if found.acceptance is None or shown is None:
        return
    yield f"acceptance: at most {float(found.acceptance.per_hour):.4g} per hour"
    events = "without an event"
    if shown.events:
        events = f"with at most {shown.events} {'event' if shown.events == 1 else 'events'}"
    encounters = ""
    if shown.encounters is not None:
        encounters = f", or {shown.encounters} encounters if no more come per hour than the upper ends,"
    yield (
        f"validation target by testing alone ({level_text(float(shown.confidence))} confidence): "
        f"{float_above(shown.hours):.6g} hours"
        f"{encounters} {events}"
    )
    yield f"acceptance criterion: {verdict_text(CRITERION[found.verdict], found.decision.condition)}{_reason(found)}"


def _reason(found: HazardRate) -> str:
    """Why the criterion is open although numbers would decide."""
    text = reason_text(found.decision.reason)
    return f" ({one_line(text)})" if text else ""


def _bounds_text(bounds: Bounds) -> str:
    ends = rate_interval_text(float_below(bounds.lower), float_above(bounds.upper))
    name = {"bounds": "confidence bounds", "interval": "from statistical intervals", "point": "the point alone"}
    if bounds.level is None or bounds.error_probability is None:
        return f"{name[bounds.source]} {ends}; the data's uncertainty is left out"
    parts = f"{float(bounds.error_probability):.3g} probabilities"
    if bounds.error_exposure:
        parts += f", {float(bounds.error_exposure):.3g} exposure"
    assumes = f"; assumes that {' and '.join(map(one_line, bounds.assumes))}" if bounds.assumes else ""
    return f"{name[bounds.source]} {ends} at {level_text(float(bounds.level))} (error budget: {parts}){assumes}"


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
