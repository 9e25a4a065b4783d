"""Safety performance indicators of a case: from what its requirements ask, matrices, exposures and conditions."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from verifier.analysis.sequential import hours_needed, items_needed
from verifier.base.numbers import power_text, significant
from verifier.base.statistics import clopper_pearson
from verifier.base.words import clipped, counted
from verifier.evidence.case.numbers import asked_recalls
from verifier.evidence.defeaters.about_data import matrices_behind
from verifier.evidence.documents import Document, of_kind
from verifier.evidence.field import Falls, Indicator, SpiCheckResult, SpiResult
from verifier.evidence.rates.hazard import EVERY
from verifier.perception.confusion.bins import SCOPES
from verifier.telling.blocks import Block, Paragraph, Table

LEVEL, POWER = 0.95, 0.9
DEPARTURE, FACTOR = 0.05, 1.5
"""Of a share, and of a rate, that is found within the least sample."""
_AGAIN = "verify again with new matrices; until then the claim is defeated"
_ANEW = "count and state it again; until then what is said per hour is defeated"


def indicators_of(title: str, documents: Sequence[Document]) -> SpiResult:
    """The indicators that follow from the documents of a case."""
    runs = of_kind(documents, "run")
    indicators = [*_recalls(runs, documents), *_false_positives(runs, documents), *_distances(runs, documents)]
    indicators += [*_encounters(documents), *_conditions(documents)]
    return SpiResult(title=title, level=LEVEL, indicators=tuple(dict.fromkeys(indicators)))


def _share(
    metric: str, threshold: float, low: bool, names: Sequence[str], falls: Falls, measure: str, source: str
) -> Iterator[Indicator]:
    """An indicator about a share, unless nothing can contradict it."""
    if not (threshold > 0 if low else threshold < 1):
        return
    least = threshold if low else 1 - threshold
    true = least - DEPARTURE if least > 2 * DEPARTURE else least / 2
    yield Indicator(
        metric=metric,
        kind="share",
        side="at_least" if low else "at_most",
        threshold=threshold,
        departure=f"{significant(abs(true - least), 6)} {'below' if low else 'above'}",
        requirements=tuple(names),
        falls=falls,
        measure=measure,
        source=source,
        least=items_needed(least, true, 1 - LEVEL, POWER),
        action=_AGAIN if falls == "requirement" else _ANEW,
    )


def _recalls(runs: Sequence[Document], documents: Sequence[Document]) -> Iterator[Indicator]:
    for asked in asked_recalls(runs, documents):
        name = asked.result.requirement.name
        for cell in asked.cells:
            least, where = Fraction(cell.required or 0), f"{clipped(cell.label)} {clipped(cell.bin)}"
            source = f"least recall that {clipped(name)} asks for, {clipped(asked.document.name)}"
            of = f"annotated {clipped(cell.label)} in {clipped(cell.bin)}"
            for metric, threshold, low, measure in (
                ("recall", least, True, f"reported, of {of}"),
                ("misses after a miss", 1 - least, False, f"missed, of {of} that was missed in the frame before"),
            ):
                yield from _share(f"{metric} {where}", float(threshold), low, [name], "requirement", measure, source)


def _false_positives(runs: Sequence[Document], documents: Sequence[Document]) -> Iterator[Indicator]:
    for run in runs:
        counts = matrices_behind(run, documents)
        if counts is None or "empty" not in counts.content["labels"] or counts.content.get("score_thresholds"):
            continue
        at = counts.content["labels"].index("empty")
        aimed = (requirement for requirement in run.result.requirements if requirement.target is not None)
        names = [one.name for one in aimed if any("empty" in point.draws for point in one.points)]
        for entry in counts.content["bins"] if names else ():
            column = [row[at] for row in entry["counts"]]
            if sum(column):
                upper = clopper_pearson(np.array(sum(column) - column[at]), np.array(sum(column)), (1 - LEVEL) / 2)[1]
                further = [f"{of} {_bin_text(own)}" for of, own in (entry.get("where") or {}).items() if of in SCOPES]
                where = ", ".join([f"{_bin_text(entry['distance_m'])} m", *further])
                measure = f"something reported, of frames without an object in {where}"
                source = f"upper end at {LEVEL:g} of {clipped(counts.name)}"
                metric = f"false positives {where}"
                yield from _share(metric, float(upper), False, names, "requirement", measure, source)


def _bin_text(bin_: str | Sequence[float | None]) -> str:
    """For people: a name, or `[10, inf)`."""
    if isinstance(bin_, str):
        return clipped(bin_)
    low, high = bin_
    return f"[{low:g}, {'inf' if high is None else f'{high:g}'})"


def _distances(runs: Sequence[Document], documents: Sequence[Document]) -> Iterator[Indicator]:
    for run in runs:
        counts = matrices_behind(run, documents)
        localisation = None if counts is None else counts.content.get("localisation")
        if counts is None or not localisation:
            continue
        table = np.array(localisation["counts"])
        right, items = int(np.trace(table)), int(table.sum())
        if items:
            lower = float(clopper_pearson(np.array(right), np.array(items), (1 - LEVEL) / 2)[0])
            names = [requirement.name for requirement in run.result.requirements if requirement.target is not None]
            source = f"lower end at {LEVEL:g} of {clipped(counts.name)}"
            measure = "in the bin of its true distance, of reported objects"
            yield from _share("reported in the true distance bin", lower, True, names, "requirement", measure, source)


def _encounters(documents: Sequence[Document]) -> Iterator[Indicator]:
    for document in of_kind(documents, "rate"):
        for term in document.result.terms:
            where = "" if term.environment == EVERY else f" {clipped(term.environment)}"
            most = float(term.exposure.upper)
            if most > 0:
                yield Indicator(
                    metric=f"encounters{where}",
                    kind="rate",
                    side="at_most",
                    threshold=most,
                    departure=f"{FACTOR:g} times as many",
                    requirements=(document.result.requirement,),
                    falls="rate",
                    measure=f"encounters{where}, in hours of operation",
                    source=f"upper end of the exposure, {clipped(term.exposure.source or 'source not stated')}",
                    least=hours_needed(most, FACTOR * most, 1 - LEVEL, POWER),
                    action=_ANEW,
                )


def _conditions(documents: Sequence[Document]) -> Iterator[Indicator]:
    for document in of_kind(documents, "risk"):
        names = list(dict.fromkeys(hazard.requirement for hazard in document.result.hazards))
        for where in document.result.environments:
            of = f"encounters {clipped(where.name)} in a listed condition"
            for share in where.shares:
                metric = f"share {clipped(share.name)} {clipped(where.name)}"
                for end, low in ((share.lower, True), (share.upper, False)):
                    source = clipped(share.source or "source not stated")
                    yield from _share(metric, float(end), low, names, "rate", f"in the condition, of {of}", source)
            metric = f"no listed condition {clipped(where.name)}"
            measure = f"in none, of encounters {clipped(where.name)}"
            source = clipped(where.unlisted.source or "unlisted encounters as stated")
            yield from _share(metric, where.unlisted.upper, False, names, "rate", measure, source)


def spi_blocks(result: SpiCheckResult) -> Iterator[Block]:
    """What `verify spi check` tells."""
    rows = tuple(
        (
            clipped(indicator.indicator.told),
            f"{indicator.count:g} of {indicator.of:g}" if indicator.looks else "-",
            str(indicator.looks),
            power_text(indicator.evidence_log10),
            indicator.fired_told if indicator.fired_at else indicator.state,
            ", ".join(map(clipped, indicator.indicator.requirements)) if indicator.fired_at else "-",
        )
        for indicator in result.found
    )
    header = ("indicator", "counted", "looks", "evidence against", "state", "what falls")
    fired = sum(indicator.fired_at is not None for indicator in result.found)
    wrong = significant(1 - result.level, 4)
    said = (
        f"{counted(fired, 'indicator')} of {len(result.found)} fired. Each fires where the evidence against it "
        f"reaches {significant(1 / (1 - result.level), 4)} at any look; one that is true does so with probability "
        f"{wrong} at most, if items are independent."
    )
    yield Table(clipped(result.title), header, rows)
    yield Paragraph(said)
