"""Rates of hazardous events, from `verify evidence rate`."""

from __future__ import annotations

from collections.abc import Iterator

from verifier.base.numbers import level_text, number_text, short_text
from verifier.base.words import listed, rate_interval_text
from verifier.evidence.documents import Document
from verifier.evidence.rates.document import RateBounds, RateDemonstration, RateExposure, RateResult, RateTerm
from verifier.telling.blocks import Block, Cell, Paragraph, Section, Table, facts
from verifier.telling.grounds import reason_text, told_verdict
from verifier.telling.wording import name_text


def rate_section(document: Document, anchor: str) -> Section:
    """How often the event is to be expected per hour, from what, and what testing alone would take."""
    content: RateResult = document.result
    bounds = [content.bounds, *content.other_bounds]
    blocks: list[Block] = [
        Paragraph(_sentence(document)),
        Table(
            "Events per hour, the bounds that the verdict comes from first",
            ("from", "events per hour", "level", "assumes that"),
            tuple(
                (
                    each.source,
                    Cell(_bounds_text(each), each.lower),
                    _level(each.level),
                    " and ".join(each.assumes) or "-",
                )
                for each in bounds
            ),
        ),
        Table(
            "Environments",
            ("environment", "P of the event in an encounter", "worst scenario", "encounters per hour", "source"),
            tuple(_term(each) for each in content.terms),
            sortable=True,
        ),
        *_demonstration(content.demonstration),
    ]
    title = f"Event rate: {document.name}"
    return Section(title, tuple(blocks), id=anchor, verdict=told_verdict(document.result))


def rate_sentences(document: Document) -> Iterator[tuple[str, str]]:
    """The rate in one sentence, and its verdict."""
    yield _sentence(document), told_verdict(document.result)


def _sentence(document: Document) -> str:
    content: RateResult = document.result
    what = f"{name_text(content.requirement)} {'is violated' if content.event == 'violated' else 'is satisfied'}"
    estimate = "" if content.per_hour is None else f" about {content.per_hour:.3g} times an hour,"
    text = f"{what}{estimate} within {_bounds_text(content.bounds)} per hour ({content.bounds.source})"
    text += ", in the worst scenario of each environment"
    if content.left_out:
        text += f" and without what happens in {listed([name_text(each) for each in content.left_out])}"
    asked = content.acceptance
    if asked is None:
        return f"{text}; no rate was named as acceptable.{_assumes(content)}"
    source = f" ({name_text(asked.source)})" if asked.source else ""
    reason = reason_text(content.reason)
    why = f" The criterion is not decided: {reason}." if reason else ""
    limit = short_text(asked.per_hour)
    return f"{text}; acceptable are at most {limit} per hour{source}.{why}{_assumes(content)}"


def _assumes(content: RateResult) -> str:
    """What the interval assumes, as a sentence."""
    found = content.bounds.assumes
    return f" Assumes that {' and '.join(found)}." if found else ""


def _bounds_text(bounds: RateBounds) -> str:
    return rate_interval_text(bounds.lower, bounds.upper)


def _level(level: float | None) -> str:
    return "the data's uncertainty is left out" if level is None else level_text(level)


def _term(term: RateTerm) -> tuple[Cell | str, ...]:
    exposure = term.exposure
    return (
        name_text(term.environment),
        Cell(number_text(term.probability), term.probability),
        name_text(term.worst_scenario),
        Cell(rate_interval_text(exposure.lower, exposure.upper), exposure.lower),
        name_text(exposure.source) or _counted(exposure),
    )


def _counted(exposure: RateExposure) -> str:
    if exposure.kind == "count":
        return f"{exposure.encounters} encounters in {exposure.hours} h"
    return "not stated"


def _demonstration(found: RateDemonstration | None) -> Iterator[Block]:
    if found is None:
        return
    yield facts(
        "What testing alone would take to show the acceptable rate",
        ("Confidence", level_text(found.confidence)),
        ("Events that may be seen", str(found.events)),
        ("Hours", f"{found.hours:.6g}"),
        ("Encounters", "not known" if found.encounters is None else str(found.encounters)),
    )
