"""Rates, told once: on the terminal of `verify evidence rate` and in reports."""

from collections.abc import Iterator
from fractions import Fraction

from verifier.base.numbers import level_text, short_text
from verifier.base.words import counted, listed, rate_interval_text
from verifier.checking.verdicts import Verdict, verdict_text
from verifier.evidence.rates.document import RateBounds, RateExposure, RateResult
from verifier.evidence.rates.exposure import number
from verifier.telling.blocks import Block, Cell, Paragraph, Section, Table
from verifier.telling.grounds import name_text, reason_text, told_verdict
from verifier.telling.terminal import blocks_lines

CRITERION = {
    Verdict.SATISFIED: "met",
    Verdict.VIOLATED: "not met",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.VACUOUS: "vacuous",
}
"""What is said of an acceptance criterion."""
SOURCES = {
    "bounds": "confidence bounds",
    "interval": "from statistical intervals",
    "point": "the point alone",
    "any_dependence": "however reports depend on each other",
}


def rate_table(study: RateResult) -> str:
    """The output of `verify evidence rate`."""
    return "\n".join(blocks_lines(rate_blocks(study))) + "\n"


def rate_section(study: RateResult, document: str, anchor: str, alone: str) -> Section:
    """The same in a report; `alone` as in `rate_sentences`."""
    blocks = [*([Paragraph(alone, "note")] if alone else ()), *rate_blocks(study)]
    return Section(f"Event rate: {document}", tuple(blocks), id=anchor, verdict=told_verdict(study))


def rate_sentences(study: RateResult, alone: str) -> Iterator[tuple[str, str]]:
    """The rate in one sentence, and its verdict, for a summary; `alone` says that its run is not there, if so."""
    what = f"{name_text(study.requirement)} {'is violated' if study.event == 'violated' else 'is satisfied'}"
    estimate = "" if study.per_hour is None else f" about {study.per_hour:.3g} times an hour,"
    bounds = study.decisive
    ends = rate_interval_text(bounds.lower, bounds.upper)
    text = f"{what}{estimate} within {ends} per hour ({SOURCES[bounds.source]}), in the worst scenario of each "
    text += "environment"
    if study.left_out:
        text += f" and without what happens in {listed([name_text(each) for each in study.left_out])}"
    asked, assumes = study.acceptance, bounds.assumes
    rests = f" Assumes that {' and '.join(assumes)}." if assumes else ""
    if asked is None:
        text += "; no rate was named as acceptable."
    else:
        source = f" ({name_text(asked.source)})" if asked.source else ""
        reason = reason_text(study.reason)
        why = f" The criterion is not decided: {reason}." if reason else ""
        text += f"; acceptable are at most {short_text(asked.per_hour)} per hour{source}.{why}"
    yield text + rests + (f" Note: {alone}." if alone else ""), told_verdict(study)


def rate_blocks(study: RateResult) -> Iterator[Block]:
    """How often the event is to be expected per hour, from what, and what testing alone would take."""
    what = {"violated": "violated", "satisfied": "satisfied, which is unwanted"}[study.event]
    caption = f"{name_text(study.requirement)}, planner {name_text(study.planner)}: how often it is {what}"
    yield Paragraph(study.inputs[0].name)
    rows = tuple(
        (
            name_text(term.environment),
            Cell(f"{term.probability:.6g}", term.probability),
            name_text(term.worst_scenario) + (f" (of {term.scenarios})" if term.scenarios > 1 else ""),
            Cell(rate_interval_text(term.exposure.lower, term.exposure.upper), term.exposure.lower),
            exposure_text(term.exposure),
        )
        for term in study.terms
    )
    header = ("environment", "P per encounter", "worst scenario", "encounters per hour", "from")
    yield Table(caption, header, rows, sortable=True)
    best = "" if study.per_hour is None else f"{study.per_hour:.4g} per hour, "
    yield Paragraph(f"rate: {best}{_bounds_text(study.bounds)}")
    yield from (Paragraph(_bounds_text(bounds)) for bounds in study.other_bounds)
    if any(term.scenarios > 1 for term in study.terms):
        yield Paragraph("assumes the worst scenario in every encounter (upper estimate for any other mix)", "note")
    if study.left_out:
        names = ", ".join(map(name_text, study.left_out))
        yield Paragraph(f"without what happens in {names}, left out as asked", "note")
    yield from map(Paragraph, _accepted(study))


def _accepted(study: RateResult) -> Iterator[str]:
    shown = study.demonstration
    if study.acceptance is None or shown is None:
        return
    source = f" ({name_text(study.acceptance.source)})" if study.acceptance.source else ""
    yield f"acceptance: at most {float(Fraction(study.acceptance.per_hour)):.4g} per hour{source}"
    events = f"with at most {counted(shown.events, 'event')}" if shown.events else "without an event"
    most = f", or {shown.encounters} encounters if no more come per hour than the upper ends,"
    yield (
        f"validation target by testing alone ({level_text(shown.confidence)} confidence): {shown.hours:.6g} hours"
        f"{'' if shown.encounters is None else most} {events}"
    )
    reason = reason_text(study.reason)
    why = f" ({reason})" if reason else ""
    yield f"acceptance criterion: {verdict_text(CRITERION[study.verdict], study.condition)}{why}"


def _bounds_text(bounds: RateBounds) -> str:
    ends = f"{SOURCES[bounds.source]} {rate_interval_text(bounds.lower, bounds.upper)}"
    if bounds.level is None or bounds.error_probability is None:
        return f"{ends}; the data's uncertainty is left out"
    parts = f"{bounds.error_probability:.3g} probabilities"
    if bounds.error_exposure:
        parts += f", {bounds.error_exposure:.3g} exposure"
    assumes = f"; assumes that {' and '.join(bounds.assumes)}" if bounds.assumes else ""
    return f"{ends} at {level_text(bounds.level)} (error budget: {parts}){assumes}"


def exposure_text(exposure: RateExposure) -> str:
    """Where an exposure is from."""
    source = f" ({name_text(exposure.source)})" if exposure.source else ""
    if exposure.encounters is not None and exposure.hours is not None:
        hours = number(Fraction(exposure.hours))
        return f"{counted(exposure.encounters, 'encounter')} in {hours} h{source}"
    ends = [number(Fraction(repr(end))) for end in (exposure.lower, exposure.upper)]
    if exposure.kind == "number":
        return f"{ends[0]}/h, as stated{source}"
    level = "for certain" if exposure.level is None else f"at level {exposure.level:.6g}"
    return f"{ends[0]} to {ends[1]}/h, as stated, {level}{source}"
