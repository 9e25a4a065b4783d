"""Rates, residual risks and triggering conditions, told once: on the terminal of `verify evidence` and in reports."""

from collections.abc import Iterator
from typing import get_args

from verifier.base.numbers import level_text, short_text, significant
from verifier.base.words import bounds_text, counted, listed, percent, rate_interval_text, some_of
from verifier.checking.verdicts import Verdict, verdict_text
from verifier.evidence.rates.document import RateBounds, RateExposure, RateResult, exposure_in
from verifier.evidence.residual_risk.document import RiskFound, RiskResult
from verifier.evidence.residual_risk.records import CHAIN, UNLISTED, RiskEnvironment, RiskHazard, RiskShare
from verifier.evidence.triggers import Sort, Trigger, TriggersResult
from verifier.telling.blocks import Block, Cell, Listing, Paragraph, Table, name_text
from verifier.telling.grounds import reason_text, told_verdict

MOST_TOLD = 5
_PARTS = {
    "condition": "the upper end by condition: ",
    "environment": "the upper end by environment: ",
    "factor": "what of it would go if a factor were known to be at its lower end: ",
}


def risk_sentences(study: RiskResult, alone: str) -> Iterator[tuple[str, str]]:
    """Each hazard in a sentence, with its verdict, for a summary; `alone` says that its runs are not there, if so."""
    for hazard, risk in zip(study.hazards, study.risks, strict=True):
        text = f"Hazard {name_text(hazard.name)}: {_harm_text(risk)} at {level_text(study.level)}"
        most = next((contribution for contribution in risk.contributions if contribution.kind == "condition"), None)
        if most is not None:
            where = f"{'' if most.name == UNLISTED else 'condition '}{name_text(most.name)}"
            text += f"; {percent(most.share, 3)} of the upper end comes from {where}"
        text += "; no criterion is stated" if hazard.accepted is None else f"; {_accepted_text(hazard.accepted)}"
        yield f"{text}.{f' Note: {alone}.' if alone else ''}", told_verdict(risk)
    if len(study.hazards) > 1 or study.accepted is not None:
        yield f"All hazards together: {_harm_text(study.total)}.", told_verdict(study.total)


def risk_blocks(study: RiskResult) -> Iterator[Block]:
    """What happens how often, where it comes from, and what would meet the criterion."""
    for where in study.environments:
        yield Paragraph(_met_text(where))
    for hazard, risk in zip(study.hazards, study.risks, strict=True):
        yield from _hazard_blocks(study, hazard, risk)
    if len(study.hazards) > 1 or study.accepted is not None:
        criterion = ""
        if study.accepted is not None:
            criterion = f"; {_accepted_text(study.accepted)}{source_text(study.source)}: {_met(study.total)}"
        yield Paragraph(f"all hazards together, whatever their dependence: {_rates_text(study.total)}{criterion}")
    budget = ", ".join(f"{significant(float(part.error))} {name_text(part.part)}" for part in study.parts)
    yield Paragraph(f"all ends hold at once at {level_text(study.level)} (error budget: {budget or 'nothing'})")
    if any(not where.initial for where in study.environments):
        yield Paragraph("from the least to the worst initial state, where no mix of them is stated", "note")


def _hazard_blocks(study: RiskResult, hazard: RiskHazard, risk: RiskFound) -> Iterator[Block]:
    happens = {"violated": "is violated", "satisfied": "is satisfied, which is unwanted"}[hazard.event]
    about = ", ".join(map(name_text, filter(None, (hazard.severity, hazard.source))))
    told = f"{name_text(hazard.name)}{f' ({about})' if about else ''}"
    shares = {(where.name, share.name): share for where in study.environments for share in where.shares}
    rows = tuple(
        (
            name_text(cell.condition),
            name_text(cell.environment),
            ends_text(shares[cell.environment, cell.condition]),
            Cell(bounds_text(cell.lower, cell.upper), cell.upper),
            f"unknown: {name_text(cell.unknown)}" if cell.unknown else name_text(cell.scenario),
        )
        for cell in hazard.cells
    )
    caption = f"{told}: {name_text(hazard.requirement)} {happens}, planner {name_text(hazard.planner)}"
    header = ("condition", "environment", "share", "P per encounter", "worst scenario")
    yield Table(caption, header, rows, sortable=True)
    yield Paragraph(f"{name_text(hazard.name)}: {_rates_text(risk)}")
    stated = [f"{share.name} {ends_text(share)}{source_text(share.source)}" for share in hazard.chain]
    missing = [name for name in CHAIN if name not in {share.name for share in hazard.chain}]
    stated += [f"{listed(missing)} not stated, taken as 1"] if missing else []
    yield Paragraph(f"from behaviour to harm: {'; '.join(stated)}")
    for kind, text in _PARTS.items():
        parts = [part for part in risk.contributions if part.kind == kind and part.share]
        if len(parts) > 1 or (kind != "environment" and parts):
            yield Paragraph(text + "; ".join(f"{name_text(part.name)} {percent(part.share)}" for part in parts))
    if hazard.accepted is not None:
        yield Paragraph(f"{_accepted_text(hazard.accepted)}: {_met(risk)}")
    if risk.improvements:
        yield Paragraph("any one of these numbers alone would meet the criterion, the smallest change first:")
        best = risk.improvements[:MOST_TOLD]
        changes = (f"{significant(one.needed, 4)} instead of {significant(one.now, 4)}" for one in best)
        yield Listing(
            tuple(f"{name_text(one.number)}: at most {how}" for one, how in zip(best, changes, strict=True))
        )
    elif hazard.accepted is not None and risk.verdict is not Verdict.SATISFIED:
        yield Paragraph("no number alone would meet the criterion")
    if hazard.assumes:
        yield Paragraph(f"assumes that {' and '.join(hazard.assumes)}", "note")
    if hazard.left_out:
        names = listed([name_text(name) for name in hazard.left_out])
        yield Paragraph(f"without what happens in {names}, left out as asked", "note")


def _met_text(where: RiskEnvironment) -> str:
    unlisted, ends = where.unlisted, rate_interval_text(where.exposure.lower, where.exposure.upper)
    said = f"at most {significant(unlisted.upper, 6)} of them in {UNLISTED}"
    if unlisted.classified is not None:
        said += f" ({unlisted.left_over} of {counted(unlisted.classified, 'classified encounter')})"
    elif unlisted.upper == 1:
        said += " (nothing is stated)"
    met = f"{name_text(where.name)}: {ends} encounters per hour, from {exposure_text(where.exposure)}"
    return f"{met}; {said}{source_text(unlisted.source)}"


def _rates_text(risk: RiskFound) -> str:
    best = "" if risk.per_hour is None else f"{significant(risk.per_hour, 4)}, "
    return f"hazardous behaviour {best}{rate_interval_text(*risk.behaviour)} per hour, {_harm_text(risk)}"


def _harm_text(risk: RiskFound) -> str:
    return f"harm {rate_interval_text(*risk.harm)} per hour"


def _accepted_text(accepted: str) -> str:
    return f"accepted is at most {short_text(accepted)} per hour"


def _met(risk: RiskFound) -> str:
    return verdict_text(CRITERION[risk.verdict], risk.condition)


def ends_text(share: RiskShare) -> str:
    """A share, or both of its ends."""
    lower, upper = (significant(float(end), 6) for end in share.ends)
    return lower if share.lower == share.upper else f"[{lower}, {upper}]"


def source_text(source: str) -> str:
    """A source behind what it is of; empty where there is none."""
    return f" ({name_text(source)})" if source else ""


CLAIM = "the known triggering conditions are acceptable"


def triggers_sentence(study: TriggersResult) -> str:
    """How many conditions are known as what."""
    counts = [(sort, sum(trigger.sort == sort for trigger in study.triggers)) for sort in get_args(Sort)]
    parts = listed([f"{count} {sort}" for sort, count in counts if count])
    return f"{counted(len(study.triggers), 'triggering condition')}: {parts}."


def triggers_blocks(study: TriggersResult) -> Iterator[Block]:
    """Every condition once, what each requirement is in it, what is missing, and which conditions came together."""
    header = ("condition", "known as", "part", "data", "items", "drives", "source", "effect")
    yield Table("Triggering conditions", header, tuple(map(_row, study.triggers)), sortable=True)
    judged = [(trigger, one) for trigger in study.triggers for one in trigger.judged]
    if judged:
        header = ("condition", "requirement", "asked", "P", "bounds", "worst scenario", "verdict", "to decide it")
        rows = tuple(
            (
                name_text(trigger.name),
                name_text(one.requirement) + (f", planner {name_text(one.planner)}" if one.planner else ""),
                name_text(one.asked),
                Cell(significant(one.probability, 9), one.probability),
                bounds_text(one.lower, one.upper),
                name_text(one.scenario),
                Cell(told_verdict(one), None, told_verdict(one)),
                name_text(one.needed or "-"),
            )
            for trigger, one in judged
        )
        yield Table("What is known in each", header, rows, sortable=True)
    missing = [name_text(trigger.name) for trigger in study.triggers if trigger.sort == "no data"]
    if missing:
        yield Paragraph(f"no data, in the operational design domain: {some_of(missing, 12)}", "note")
    yield from _pairs(study)
    verdict = "open" if study.verdict is Verdict.INCONCLUSIVE else told_verdict(study)
    yield Paragraph(f"{triggers_sentence(study)} That {CLAIM}: {verdict}")


def _row(trigger: Trigger) -> tuple[Cell | str, ...]:
    data = name_text(trigger.matrices) or "none"
    data += "".join(f", {name_text(name)} {name_text(value)}" for name, value in trigger.where.items())
    data += f" ({name_text(trigger.severity)})" if trigger.severity else ""
    items = {} if trigger.items is None else trigger.items
    sort = f"excluded by {name_text(trigger.excluded_by)}" if trigger.excluded_by else trigger.sort
    return (
        f"{name_text(trigger.name)}: {name_text(trigger.text)}",
        sort,
        trigger.part or "-",
        data,
        ", ".join(f"{name_text(name)} {count}" for name, count in items.items()) or "-",
        "-" if trigger.drives is None else str(trigger.drives),
        name_text(trigger.source) or "-",
        name_text(trigger.effect) or "-",
    )


def _pairs(study: TriggersResult) -> Iterator[Block]:
    """Which two conditions were seen together, as a matrix; the pairs that never were, by name."""
    known = {(pair.first, pair.second): pair.items for pair in study.pairs if pair.items is not None}
    names = [trigger.name for trigger in study.triggers if any(trigger.name in pair for pair in known)]
    if names:
        rows = tuple(
            (name_text(one), *(str(known.get((one, other), known.get((other, one), "-"))) for other in names))
            for one in names
        )
        yield Table("Objects in both of two conditions", ("condition", *map(name_text, names)), rows)
    empty = [f"{name_text(first)} with {name_text(second)}" for (first, second), items in known.items() if not items]
    if empty:
        yield Paragraph("never seen together:")
        yield Listing(tuple(empty))
    unknown = len(study.pairs) - len(known)
    if unknown:
        yield Paragraph(f"of {counted(unknown, 'pair')} it is not known how often they come together", "note")


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


def rate_sentences(study: RateResult, alone: str) -> Iterator[tuple[str, str]]:
    """The rate in one sentence, and its verdict, for a summary; `alone` says that its run is not there, if so."""
    what = f"{name_text(study.requirement)} {'is violated' if study.event == 'violated' else 'is satisfied'}"
    estimate = "" if study.per_hour is None else f" about {significant(study.per_hour)} times an hour,"
    bounds = study.decisive
    ends = rate_interval_text(bounds.lower, bounds.upper)
    text = f"{what}{estimate} within {ends} per hour ({SOURCES[bounds.source]}), in the worst scenario of each "
    text += "environment"
    if study.left_out:
        text += f" and without what happens in {listed([name_text(name) for name in study.left_out])}"
    asked, assumes = study.acceptance, bounds.assumes
    rests = f" Assumes that {' and '.join(assumes)}." if assumes else ""
    if asked is None:
        text += "; no rate was named as acceptable."
    else:
        reason = reason_text(study.reason)
        why = f" The criterion is not decided: {reason}." if reason else ""
        text += f"; acceptable are at most {short_text(asked.per_hour)} per hour{source_text(asked.source)}.{why}"
    yield text + rests + (f" Note: {alone}." if alone else ""), told_verdict(study)


def rate_blocks(study: RateResult) -> Iterator[Block]:
    """How often the event is to be expected per hour, from what, and what testing alone would take."""
    what = {"violated": "violated", "satisfied": "satisfied, which is unwanted"}[study.event]
    caption = f"{name_text(study.requirement)}, planner {name_text(study.planner)}: how often it is {what}"
    yield Paragraph(study.inputs[0].name)
    rows = tuple(
        (
            name_text(term.environment),
            Cell(significant(term.probability, 6), term.probability),
            name_text(term.worst_scenario) + (f" (of {term.scenarios})" if term.scenarios > 1 else ""),
            Cell(rate_interval_text(term.exposure.lower, term.exposure.upper), term.exposure.lower),
            exposure_text(term.exposure),
        )
        for term in study.terms
    )
    header = ("environment", "P per encounter", "worst scenario", "encounters per hour", "from")
    yield Table(caption, header, rows, sortable=True)
    best = "" if study.per_hour is None else f"{significant(study.per_hour, 4)} per hour, "
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
    most = significant(float(study.acceptance.per_hour), 4)
    yield f"acceptance: at most {most} per hour{source_text(study.acceptance.source)}"
    hours = f"{significant(shown.hours, 6)} hours"
    if shown.encounters is not None:
        hours += f", or {shown.encounters} encounters if no more come per hour than the upper ends,"
    yield f"validation target by testing alone ({level_text(shown.confidence)} confidence): {hours} without an event"
    reason = reason_text(study.reason)
    why = f" ({reason})" if reason else ""
    yield f"acceptance criterion: {verdict_text(CRITERION[study.verdict], study.condition)}{why}"


def _bounds_text(bounds: RateBounds) -> str:
    ends = f"{SOURCES[bounds.source]} {rate_interval_text(bounds.lower, bounds.upper)}"
    if bounds.level is None or bounds.error_probability is None:
        return f"{ends}; the data's uncertainty is left out"
    parts = f"{significant(bounds.error_probability)} probabilities"
    if bounds.error_exposure:
        parts += f", {significant(bounds.error_exposure)} exposure"
    assumes = f"; assumes that {' and '.join(bounds.assumes)}" if bounds.assumes else ""
    return f"{ends} at {level_text(bounds.level)} (error budget: {parts}){assumes}"


def exposure_text(exposure: RateExposure) -> str:
    """Where an exposure is from."""
    return f"{exposure_in(exposure)}{source_text(exposure.source)}"
