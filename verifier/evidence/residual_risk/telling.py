"""Residual risks, told once: on the terminal of `verify evidence risk` and in reports."""

from collections.abc import Iterator

from verifier.base.numbers import level_text, short_text
from verifier.base.words import bounds_text, counted, listed, percent, rate_interval_text
from verifier.checking.verdicts import Verdict, verdict_text
from verifier.evidence.rates.telling import CRITERION, exposure_text
from verifier.evidence.residual_risk.document import RiskFound, RiskResult
from verifier.evidence.residual_risk.records import CHAIN, UNLISTED, RiskEnvironment, RiskHazard, RiskShare
from verifier.telling.blocks import Block, Cell, Listing, Paragraph, Section, Table
from verifier.telling.grounds import name_text, told_verdict
from verifier.telling.terminal import blocks_lines

MOST_TOLD = 5
_PARTS = {
    "condition": "the upper end by condition: ",
    "environment": "the upper end by environment: ",
    "factor": "what of it would go if a factor were known to be at its lower end: ",
}


def risk_table(study: RiskResult) -> str:
    """The output of `verify evidence risk`."""
    return "\n".join(blocks_lines(risk_blocks(study))) + "\n"


def risk_section(study: RiskResult, document: str, anchor: str, alone: str) -> Section:
    """The same in a report; `alone` says that its runs are not there, if so."""
    blocks = [*([Paragraph(alone, "note")] if alone else ()), *risk_blocks(study)]
    return Section(f"Residual risk: {document}", tuple(blocks), id=anchor, verdict=told_verdict(study))


def risk_sentences(study: RiskResult, alone: str) -> Iterator[tuple[str, str]]:
    """Each hazard in a sentence, with its verdict, for a summary; `alone` as in `risk_section`."""
    for hazard, found in zip(study.hazards, study.risks, strict=True):
        text = f"Hazard {name_text(hazard.name)}: {_harm_text(found)} at {level_text(study.level)}"
        most = next((each for each in found.contributions if each.kind == "condition"), None)
        where = "" if most is None or most.name == UNLISTED else "condition "
        text += (
            f"; {percent(most.share, 3)} of the upper end comes from {where}{name_text(most.name)}" if most else ""
        )
        text += "; no criterion is stated" if hazard.accepted is None else f"; {_accepted_text(hazard.accepted)}"
        yield f"{text}.{f' Note: {alone}.' if alone else ''}", told_verdict(found)
    if len(study.hazards) > 1 or study.accepted is not None:
        yield f"All hazards together: {_harm_text(study.total)}.", told_verdict(study.total)


def risk_blocks(study: RiskResult) -> Iterator[Block]:
    """What happens how often, where it comes from, and what would meet the criterion."""
    for where in study.environments:
        yield Paragraph(_met_text(where))
    for hazard, found in zip(study.hazards, study.risks, strict=True):
        yield from _hazard_blocks(study, hazard, found)
    if len(study.hazards) > 1 or study.accepted is not None:
        criterion = (
            ""
            if study.accepted is None
            else f"; {_accepted_text(study.accepted)}{source_text(study.source)}: {_met(study.total)}"
        )
        yield Paragraph(f"all hazards together, whatever their dependence: {_rates_text(study.total)}{criterion}")
    budget = ", ".join(f"{float(each.error):.3g} {name_text(each.part)}" for each in study.parts)
    yield Paragraph(f"all ends hold at once at {level_text(study.level)} (error budget: {budget or 'nothing'})")
    if any(not where.initial for where in study.environments):
        yield Paragraph("from the least to the worst initial state, where no mix of them is stated", "note")


def _hazard_blocks(study: RiskResult, hazard: RiskHazard, found: RiskFound) -> Iterator[Block]:
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
    yield Table(
        caption, ("condition", "environment", "share", "P per encounter", "worst scenario"), rows, sortable=True
    )
    yield Paragraph(f"{name_text(hazard.name)}: {_rates_text(found)}")
    stated = [f"{each.name} {ends_text(each)}{source_text(each.source)}" for each in hazard.chain]
    missing = [name for name in CHAIN if name not in {each.name for each in hazard.chain}]
    stated += [f"{listed(missing)} not stated, taken as 1"] if missing else []
    yield Paragraph(f"from behaviour to harm: {'; '.join(stated)}")
    for kind, text in _PARTS.items():
        parts = [each for each in found.contributions if each.kind == kind and each.share]
        if len(parts) > 1 or (kind != "environment" and parts):
            yield Paragraph(text + "; ".join(f"{name_text(each.name)} {percent(each.share)}" for each in parts))
    if hazard.accepted is not None:
        yield Paragraph(f"{_accepted_text(hazard.accepted)}: {_met(found)}")
    if found.improvements:
        yield Paragraph("any one of these numbers alone would meet the criterion, the smallest change first:")
        yield Listing(
            tuple(
                f"{name_text(each.number)}: at most {each.needed:.4g} instead of {each.now:.4g}"
                for each in found.improvements[:MOST_TOLD]
            )
        )
    elif hazard.accepted is not None and found.verdict is not Verdict.SATISFIED:
        yield Paragraph("no number alone would meet the criterion")
    if hazard.assumes:
        yield Paragraph(f"assumes that {' and '.join(hazard.assumes)}", "note")
    if hazard.left_out:
        names = listed([name_text(name) for name in hazard.left_out])
        yield Paragraph(f"without what happens in {names}, left out as asked", "note")


def _met_text(where: RiskEnvironment) -> str:
    unlisted, ends = where.unlisted, rate_interval_text(where.exposure.lower, where.exposure.upper)
    said = f"at most {unlisted.upper:.6g} of them in {UNLISTED}"
    if unlisted.classified is not None:
        said += f" ({unlisted.left_over} of {counted(unlisted.classified, 'classified encounter')})"
    elif unlisted.upper == 1:
        said += " (nothing is stated)"
    source = source_text(unlisted.source)
    return (
        f"{name_text(where.name)}: {ends} encounters per hour, from {exposure_text(where.exposure)}; {said}{source}"
    )


def _rates_text(found: RiskFound) -> str:
    best = "" if found.per_hour is None else f"{found.per_hour:.4g}, "
    return f"hazardous behaviour {best}{rate_interval_text(*found.behaviour)} per hour, {_harm_text(found)}"


def _harm_text(found: RiskFound) -> str:
    return f"harm {rate_interval_text(*found.harm)} per hour"


def _accepted_text(accepted: str) -> str:
    return f"accepted is at most {short_text(accepted)} per hour"


def _met(found: RiskFound) -> str:
    return verdict_text(CRITERION[found.verdict], found.condition)


def ends_text(share: RiskShare) -> str:
    """A share, or both of its ends."""
    lower, upper = (f"{float(end):.6g}" for end in share.ends)
    return lower if share.lower == share.upper else f"[{lower}, {upper}]"


def source_text(source: str) -> str:
    """A source behind what it is of; empty where there is none."""
    return f" ({name_text(source)})" if source else ""
