"""An assessment as headings, sentences and tables: the six questions of the method, answered in order.

The headings are the questions of the GQM model of Wozniak, Segura and Mazo 2024, Table 1; the words of the last
section are those of ISO/IEC TR 24029-1 and ISO/IEC 24029-2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from verifier.base.numbers import exact_text
from verifier.robustness.assessment.circumstances import Circumstance, priorities
from verifier.robustness.assessment.definition import DataSet
from verifier.robustness.assessment.measures import GQM_NUMBERS, WORDS, DatasetDistance
from verifier.robustness.assessment.performance import COUNTS, METRICS
from verifier.robustness.assessment.relation import Outcome
from verifier.robustness.assessment.result import SystemResult
from verifier.telling.blocks import Block, Section, Table, told
from verifier.telling.degradation import degradation_blocks

QUESTIONS = (
    "Q1. What are the circumstances of use of the system?",
    "Q2. What is the level of performance of the object detection model?",
    "Q3. How significant is a circumstance in the functioning of the system?",
    "Q4. What is the difference between two sets of circumstances?",
    "Q5. What is the difference between two measures of performance?",
    "Q6. What is the impact of a change in circumstances on performance?",
)


def sections(found: SystemResult) -> tuple[Section, ...]:
    """The six questions answered, then the words of the standards, then what a reader must know."""
    answers = (_circumstances, _performance, _significance, _distances, _changes, _impact)
    made = [Section(heading, told(answer(found))) for heading, answer in zip(QUESTIONS, answers, strict=True)]
    if found.degradation is not None:
        made.append(Section("What does it do to the system?", told(degradation_blocks(found))))
    made.append(Section("In the words of ISO/IEC 24029", told(_vocabulary(found))))
    return tuple(made)


def _circumstances(found: SystemResult) -> Iterator[Block | str]:
    given = found.assessment
    if not given.circumstances:
        yield "No target circumstances are described."
        return
    together = {"independent": "can occur together", "exclusive": "exclude each other"}[given.occurrence]
    seen_by = f", as seen by {given.viewpoint}" if given.viewpoint else ""
    yield f"Target circumstances{seen_by}. They {together}. M1 is a probability, M2 a relative frequency."
    yield Table(
        "",
        ("circumstance", "measure", "in use", "in the source data", "missing"),
        tuple(
            (
                each.label,
                _measure(each),
                _number(each.frequency),
                _number(each.source_frequency),
                _number(each.missing),
            )
            for each in given.circumstances
        ),
    )
    known = [each for each in given.circumstances if each.frequency is not None]
    if known:
        yield f"The frequencies in use sum to {exact_text(given.total_frequency)}."
    for name, listed in given.perspectives.items():
        yield f"As seen by {name}:"
        yield Table(
            "",
            ("circumstance", "shows as"),
            tuple(
                (each, ", ".join(one.label for one in given.circumstances if each in one.part_of) or "-")
                for each in listed
            ),
        )


def _measure(each: Circumstance) -> str:
    if each.frequency is None:
        return "-"
    return "M1" if each.measure == "probability" else "M2"


def _significance(found: SystemResult) -> Iterator[Block | str]:
    given = found.assessment
    assessed = [each for each in given.circumstances if each.risk is not None]
    if assessed:
        yield "Significance (M6) = exposure (M3) x likelihood (M4) x severity (M5)."
        yield Table(
            "",
            ("circumstance", "exposure", "likelihood", "severity", "significance"),
            tuple(_significance_row(each) for each in assessed),
        )
    elif given.circumstances:
        yield "No significance was assessed."
    order = priorities(given.circumstances)
    if order:
        yield "Follow-up test cases that are missing, the most significant circumstance first:"
        yield Table(
            "",
            ("priority", "circumstance", "significance", "missing", "transformation"),
            tuple(
                (
                    str(number),
                    each.label,
                    "not assessed" if each.significance is None else str(each.significance),
                    _number(each.missing),
                    "none" if each.transformation is None else str(each.transformation),
                )
                for number, each in enumerate(order, 1)
            ),
        )
    elif given.circumstances:
        yield "No follow-up test case is missing."
    yield from _plan_blocks(found)


def _significance_row(each: Circumstance) -> tuple[str, ...]:
    if each.risk is None:
        raise ValueError("a circumstance without factors")
    factors = each.risk.exposure, each.risk.likelihood, each.risk.severity
    told = (f"{value} {word}" for value, word in zip(factors, each.risk.words, strict=True))
    return (each.label, *told, str(each.risk.significance))


def _plan_blocks(found: SystemResult) -> Iterator[Block | str]:
    plan = found.plan
    if plan is None:
        return
    count = len(plan.images)
    what = {"target": "the frequencies in use", "missing": "what the source data lack"}[plan.proportions]
    yield f"Plan of the target data set: {count} images in proportion to {what}, seed {plan.seed}."
    yield Table(
        "",
        ("circumstance", "asked", "expected", "images", "share"),
        tuple(
            (
                each.name,
                _number(each.asked),
                f"{float(each.expected):.4g}",
                str(each.images),
                f"{each.images / count:.4g}",
            )
            for each in plan.shares
        ),
    )
    if found.made is not None and found.made.images:
        yield "All of these images were made."
    if plan.occurrence == "independent":
        yield "Every image shows at least one circumstance, so each is expected more often than asked."


def _performance(found: SystemResult) -> Iterator[Block | str]:
    given, made = found.assessment, found.made
    if made is not None and made.identity is not None:
        least = (
            "every detection counts" if made.lowest_score is None else f"scores from {made.lowest_score:.6g} on count"
        )
        yield f"The detector, run here: {_identity(made.identity)}; {least}."
    data = [each for each in (given.source, *given.all_targets()) if each.performance is not None]
    if not data:
        yield "No performance is given."
        return
    names = list(dict.fromkeys(name for each in data for name in _numbers(each)))
    yield Table(
        "",
        ("data set", *(f"{name} ({METRICS[name]})" if name in METRICS else name for name in names)),
        tuple((each.name, *(_numbers(each).get(name, "-") for name in names)) for each in data),
    )
    yield f"The verdict is over {', '.join(given.metrics)}." if given.metrics else "No metric was chosen."


def _identity(identity: Mapping[str, Any]) -> str:
    """What a detector says it is, its plain values; settings and layouts stand in the JSON document."""
    plain = {name: each for name, each in identity.items() if isinstance(each, str | int | float)}
    return ", ".join(f"{each}" if name == "detector" else f"{name} {each}" for name, each in plain.items())


def _numbers(data: DataSet) -> dict[str, str]:
    if data.performance is None:
        return {}
    counts = {name: str(data.performance.counts[name]) for name in COUNTS if name in data.performance.counts}
    return {**counts, **{name: exact_text(value) for name, value in data.performance.values.items()}}


def _distances(found: SystemResult) -> Iterator[Block | str]:
    rules = found.assessment.rules
    in_sweeps = {target.name for sweep in found.assessment.sweeps for target in sweep.targets}
    rows = [
        (each.target.name, *_distance_cells(name, rules[name].measure, distance))
        for each in found.targets
        for name, distance in each.distances.items()
        if each.target.name not in in_sweeps
    ]
    if rows:
        yield Table("", ("target data set", "distance by", "what", "similarity", "distance d", "pairs"), tuple(rows))
    results = {each.target.name: each for each in found.targets}
    for sweep in found.assessment.sweeps:
        shown = [name for name in rules if any(name in results[each.name].distances for each in sweep.targets)]
        columns = [results[each.name].distances for each in sweep.targets]
        lines: list[tuple[str, ...]] = []
        for name in shown:
            values = [each.get(name) for each in columns]
            if any(each is not None and each.similarity is not None for each in values):
                lines.append((f"mean {name}", *(_number(each.similarity if each else None) for each in values)))
            lines.append((f"distance {name}", *(_number(each.distance if each else None) for each in values)))
        if lines:
            yield f"{sweep.name}, by {sweep.parameter}:"
            yield Table("", (sweep.parameter, *map(exact_text, sweep.settings)), tuple(lines))
    if not any(each.distances for each in found.targets):
        yield "No distance is given."


def _distance_cells(name: str, measure: str, each: DatasetDistance) -> tuple[str, ...]:
    number = f" ({GQM_NUMBERS[measure]})" if measure in GQM_NUMBERS else ""
    pairs = "given" if each.given else str(each.pairs) if each.pairs is not None else "clouds"
    return name, WORDS[measure] + number, _number(each.similarity), _number(each.distance), pairs


def _changes(found: SystemResult) -> Iterator[Block | str]:
    source = found.assessment.source.performance
    rows = []
    for each in found.targets:
        performance = each.target.performance
        if source is None or performance is None:
            continue
        for name in found.assessment.metrics:
            before, after = source.values[name], performance.values[name]
            rows.append(
                (each.target.name, name, *map(exact_text, (before, after, after - before, abs(before - after))))
            )
    if rows:
        yield "M18, the absolute difference between performance on the source and on the target data:"
        yield Table("", ("target data set", "metric", "source", "target", "change", "|change|"), tuple(rows))
    else:
        yield "Performance is not known on two data sets."


def _impact(found: SystemResult) -> Iterator[Block | str]:
    judged = [rule for rule in found.assessment.rules.values() if rule.tolerance is not None]
    if judged:
        yield "The metamorphic relation: |P_x - P_x'| <= epsilon(d) for every metric, with"
        yield Table("", ("distance d by", "epsilon(d)"), tuple((rule.name, str(rule.tolerance)) for rule in judged))
    outcomes = [(each.target.name, one) for each in found.targets for one in each.outcomes]
    if outcomes:
        scaled = any(one.scale != 1 for _, one in outcomes)
        header = ("target data set", "metric", "|change|", "d by", "d", *(["scale"] if scaled else []), "epsilon")
        yield Table("", (*header, "verdict"), tuple(_outcome_row(name, one, scaled=scaled) for name, one in outcomes))
    for each in found.targets:
        if each.outcomes or each.unchecked:
            yield f"{each.target.name}: {ROBUST[each.verdict.value]}."
    if not outcomes:
        yield "No tolerance was given, so nothing was assessed."


ROBUST = {"satisfied": "robust", "violated": "not globally robust", "inconclusive": "not decided"}
"""What a verdict means for robustness."""


def _outcome_row(name: str, one: Outcome, *, scaled: bool) -> tuple[str, ...]:
    scale = [exact_text(one.scale)] if scaled else []
    numbers = exact_text(one.change), one.distance_name, exact_text(one.distance)
    return (name, one.metric, *numbers, *scale, exact_text(one.tolerance), one.verdict.value)


def _vocabulary(found: SystemResult) -> Iterator[Block | str]:
    given = found.assessment
    measured = ", ".join(given.metrics) or "no metric"
    shown = ", ".join(each.target.name for each in found.targets if each.target.performance is not None)
    rows = [
        (
            "robustness",
            "ability to maintain the level of performance under any circumstances; here within epsilon(d)",
        ),
        ("domain", f"the images of the source data set and of: {shown or 'no measured target data set'}"),
        ("level of performance", measured),
        ("statistical method", "performance and distances, measured on data sets: they say nothing beyond these"),
        ("empirical method", "exposure, likelihood, severity and epsilon, judged by people who know the system"),
    ]
    if found.degradation is not None and found.assessment.degradation and found.assessment.degradation.run:
        rows.append(("formal method", "P(phi) by model checking, of a model whose perception was measured"))
    yield Table("", ("term", "here"), tuple(rows))


def _number(value: Fraction | None) -> str:
    return "-" if value is None else exact_text(value)
