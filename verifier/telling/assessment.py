"""An assessment as headings, sentences and tables: the six questions of the method, answered in order.

The headings are the questions of the GQM model of Wozniak, Segura and Mazo 2024, Table 1; the words of the last
section are those of ISO/IEC TR 24029-1 and ISO/IEC 24029-2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from verifier.base.numbers import exact_text, fixed, interval_text, significant
from verifier.base.words import percent
from verifier.checking.verdicts import Verdict
from verifier.robustness.assessment.circumstances import Counted, Risk
from verifier.robustness.assessment.document import (
    CircumstanceRecord,
    CriterionRecord,
    DegradationRecord,
    DistanceRecord,
    MadeHere,
    Performance,
    SystemRecord,
)
from verifier.robustness.assessment.measures import GQM_NUMBERS, METRICS, WORDS, Outcome, Tolerance
from verifier.robustness.brackets import Break
from verifier.robustness.detection_metrics import COUNTS
from verifier.robustness.draws import CONFIDENCE
from verifier.telling.blocks import Block, Cell, Row, Section, Table, told

QUESTIONS = (
    "Q1. What are the circumstances of use of the system?",
    "Q2. What is the level of performance of the object detection model?",
    "Q3. How significant is a circumstance in the functioning of the system?",
    "Q4. What is the difference between two sets of circumstances?",
    "Q5. What is the difference between two measures of performance?",
    "Q6. What is the impact of a change in circumstances on performance?",
)


def sections(system: SystemRecord) -> tuple[Section, ...]:
    """The six questions answered, then the words of the standards, then what a reader must know."""
    answers = (_circumstances, _performance, _significance, _distances, _changes, _impact)
    made = [Section(heading, told(answer(system))) for heading, answer in zip(QUESTIONS, answers, strict=True)]
    if system.degradation is not None:
        made.append(Section("What does it do to the system?", told(degradation_blocks(system.degradation))))
    made.append(Section("In the words of ISO/IEC 24029", told(_vocabulary(system))))
    return tuple(made)


def _circumstances(system: SystemRecord) -> Iterator[Block | str]:
    if not system.circumstances:
        yield "No target circumstances are described."
        return
    together = {"independent": "can occur together", "exclusive": "exclude each other"}[system.occurrence]
    seen_by = f", as seen by {system.viewpoint}" if system.viewpoint else ""
    yield f"Target circumstances{seen_by}. They {together}. M1 is a probability, M2 a relative frequency."
    yield Table(
        "",
        ("circumstance", "measure", "in use", "in the source data", "missing"),
        tuple(
            (
                _label(circumstance),
                "-" if circumstance.frequency is None else "M1" if circumstance.measure == "probability" else "M2",
                _frequency(circumstance.frequency, circumstance.counted),
                _frequency(circumstance.source_frequency, circumstance.source_counted),
                _number(circumstance.missing),
            )
            for circumstance in system.circumstances
        ),
    )
    known = [_exact(one.frequency) for one in system.circumstances if one.frequency is not None]
    if known:
        yield f"The frequencies in use sum to {exact_text(sum(known, Fraction(0)))}."
    for name, listed in system.perspectives.items():
        yield f"As seen by {name}:"
        shows = {name: [_label(one) for one in system.circumstances if name in one.part_of] for name in listed}
        rows = tuple((name, ", ".join(names) or "-") for name, names in shows.items())
        yield Table("", ("circumstance", "shows as"), rows)


def _frequency(value: float | None, counted: Counted | None) -> str:
    """A stated number, or a counted one with its counts and interval."""
    if counted is None or value is None:
        return _number(value)
    return f"{significant(value)} ({counted.shown} of {counted.images}, {interval_text(*counted.interval)})"


def _label(circumstance: CircumstanceRecord) -> str:
    """What a report calls it: the description where there is one."""
    return circumstance.description or circumstance.name


def _significance(system: SystemRecord) -> Iterator[Block | str]:
    assessed = [circumstance for circumstance in system.circumstances if circumstance.significance is not None]
    if assessed:
        yield "Significance (M6) = exposure (M3) x likelihood (M4) x severity (M5)."
        header = ("circumstance", "exposure", "likelihood", "severity", "significance")
        yield Table("", header, tuple(map(_significance_row, assessed)))
    else:
        yield "No significance was assessed."
    named = {circumstance.name: circumstance for circumstance in system.circumstances}
    order = [named[name] for name in system.priorities]
    if order:
        yield "Follow-up test cases that are missing, the most significant circumstance first:"
        yield Table(
            "",
            ("priority", "circumstance", "significance", "missing", "transformation"),
            tuple(
                (
                    str(number),
                    _label(circumstance),
                    "not assessed" if circumstance.significance is None else str(circumstance.significance),
                    _number(circumstance.missing),
                    circumstance.transformation or "none",
                )
                for number, circumstance in enumerate(order, 1)
            ),
        )
    elif system.circumstances:
        yield "No follow-up test case is missing."
    yield from _plan_blocks(system)


def _significance_row(circumstance: CircumstanceRecord) -> tuple[str, ...]:
    factors = circumstance.exposure or 0, circumstance.likelihood or 0, circumstance.severity or 0
    told = (f"{value} {word}" for value, word in zip(factors, Risk(*factors).words, strict=True))
    return (_label(circumstance), *told, str(circumstance.significance))


def _plan_blocks(system: SystemRecord) -> Iterator[Block | str]:
    plan = system.plan
    if plan is None:
        return
    count = plan.images
    what = {"target": "the frequencies in use", "missing": "what the source data lack"}[plan.proportions]
    yield f"Plan of the target data set: {count} images in proportion to {what}, seed {plan.seed}."
    yield Table(
        "",
        ("circumstance", "asked", "expected", "images", "share"),
        tuple(
            (
                share.circumstance,
                _number(share.asked),
                significant(share.expected, 4),
                str(share.images),
                significant(share.images / count, 4),
            )
            for share in plan.shares
        ),
    )
    if system.made is not None and system.made.follow_up_images:
        yield "All of these images were made."
    if plan.occurrence == "independent":
        yield "Every image shows at least one circumstance, so each is expected more often than asked."


def _performance(system: SystemRecord) -> Iterator[Block | str]:
    if system.made is not None and system.made.detector is not None:
        lowest = system.made.lowest_score
        least = "every detection counts" if lowest is None else f"scores from {significant(lowest, 6)} on count"
        yield f"The detector, run here: {_identity(system.made)}; {least}."
    given = {"source": system.source.performance, **{target.name: target.performance for target in system.targets}}
    data = {name: _numbers(performance) for name, performance in given.items() if performance is not None}
    if not data:
        yield "No performance is given."
        return
    names = list(dict.fromkeys(name for numbers in data.values() for name in numbers))
    header = ("data set", *(f"{name} ({METRICS[name]})" if name in METRICS else name for name in names))
    rows = ((name, *(numbers.get(name, "-") for name in names)) for name, numbers in data.items())
    yield Table("", header, tuple(rows))
    yield f"The verdict is over {', '.join(system.metrics)}." if system.metrics else "No metric was chosen."


def _identity(made: MadeHere) -> str:
    """What a detector says it is, its plain values; settings and layouts stand in the JSON document."""
    plain = {name: text for name, text in (made.detector or {}).items() if isinstance(text, str | int | float)}
    return ", ".join(f"{text}" if name == "detector" else f"{name} {text}" for name, text in plain.items())


def _numbers(performance: Performance) -> dict[str, str]:
    counts = {name: str(performance[name]) for name in COUNTS if name in performance}
    return {**counts, **{name: _number(value) for name, value in performance.items() if name not in COUNTS}}


def _distances(system: SystemRecord) -> Iterator[Block | str]:
    measures = {rule.name: rule.measure for rule in system.rules}
    in_sweeps = {name for sweep in system.sweeps for name in sweep.targets}
    rows = [
        (target.name, *_distance_cells(name, measures.get(name, "other"), distance))
        for target in system.targets
        for name, distance in target.distances.items()
        if target.name not in in_sweeps
    ]
    if rows:
        yield Table("", ("target data set", "distance by", "what", "similarity", "distance d", "pairs"), tuple(rows))
    distances = {target.name: target.distances for target in system.targets}
    for sweep in system.sweeps:
        columns = [distances[name] for name in sweep.targets]
        lines: list[tuple[str, ...]] = []
        for name in (name for name in measures if any(name in column for column in columns)):
            values = [column.get(name) for column in columns]
            if any(value is not None and value.similarity is not None for value in values):
                lines.append((f"mean {name}", *(_number(value.similarity if value else None) for value in values)))
            lines.append((f"distance {name}", *(_number(value.distance if value else None) for value in values)))
        if lines:
            yield f"{sweep.name}, by {sweep.parameter}:"
            yield Table("", (sweep.parameter, *map(_number, sweep.settings)), tuple(lines))
    if not any(distances.values()):
        yield "No distance is given."


def _distance_cells(name: str, measure: str, distance: DistanceRecord) -> tuple[str, ...]:
    number = f" ({GQM_NUMBERS[measure]})" if measure in GQM_NUMBERS else ""
    pairs = "given" if distance.given else str(distance.pairs) if distance.pairs is not None else "clouds"
    return name, WORDS.get(measure, measure) + number, _number(distance.similarity), _number(distance.distance), pairs


def _changes(system: SystemRecord) -> Iterator[Block | str]:
    source, rows = system.source.performance, []
    for target in system.targets:
        own = target.performance or {}
        for name in (name for name in system.metrics if source is not None and name in source and name in own):
            before, after = _exact((source or own)[name]), _exact(own[name])
            numbers = before, after, after - before, abs(before - after)
            rows.append((target.name, name, *map(exact_text, numbers)))
    if rows:
        yield "M18, the absolute difference between performance on the source and on the target data:"
        yield Table("", ("target data set", "metric", "source", "target", "change", "|change|"), tuple(rows))
    else:
        yield "Performance is not known on two data sets."


def _impact(system: SystemRecord) -> Iterator[Block | str]:
    judged = [rule for rule in system.rules if rule.tolerance is not None]
    if judged:
        yield "The metamorphic relation: |P_x - P_x'| <= epsilon(d) for every metric, with"
        rows = tuple(
            (
                rule.name + ("" if rule.extractor is None else f" (features by {rule.extractor})"),
                str(Tolerance.told((piece.slope, piece.constant, piece.up_to) for piece in rule.tolerance or ())),
            )
            for rule in judged
        )
        yield Table("", ("distance d by", "epsilon(d)"), rows)
    outcomes = [(target.name, one) for target in system.targets for one in target.outcomes]
    if outcomes:
        scaled = any(one.scale != 1 for _, one in outcomes)
        header = ("target data set", "metric", "|change|", "d by", "d", *(["scale"] if scaled else []), "epsilon")
        yield Table("", (*header, "verdict"), tuple(_outcome_row(name, one, scaled=scaled) for name, one in outcomes))
    for target in system.targets:
        if target.outcomes or target.unchecked:
            yield f"{target.name}: {ROBUST[target.verdict.value]}."
    if not outcomes:
        yield "No tolerance was given, so nothing was assessed."


ROBUST = {"satisfied": "robust", "violated": "not globally robust", "inconclusive": "not decided"}
"""What a verdict means for robustness."""


def _outcome_row(name: str, one: Outcome, *, scaled: bool) -> Row:
    scale = [_number(one.scale)] if scaled else []
    numbers = _number(one.change), one.distance_name, _number(one.distance)
    verdict = Cell(one.verdict.value, verdict=one.verdict.value)
    return (name, one.metric, *numbers, *scale, _number(one.tolerance), verdict)


def _vocabulary(system: SystemRecord) -> Iterator[Block | str]:
    measured = ", ".join(system.metrics) or "no metric"
    shown = ", ".join(target.name for target in system.targets if target.performance is not None)
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
    if system.degradation is not None and system.degradation.settings is not None:
        rows.append(("formal method", "P(phi) by model checking, of a model whose perception was measured"))
    yield Table("", ("term", "here"), tuple(rows))


def _exact(value: float) -> Fraction:
    """The number that a document spells."""
    return Fraction(repr(value))


def _number(value: float | None) -> str:
    return "-" if value is None else exact_text(_exact(value))


def degradation_blocks(degradation: DegradationRecord) -> Iterator[Block | str]:
    """The criteria by level, where each breaks, and which of them saw it first."""
    levels = [level_text(degradation, level) for level in degradation.levels]
    yield f"{degradation.parameter}, the mildest level first:"
    yield Table(
        "",
        ("kind", "criterion", "asked", *levels),
        tuple((one.kind, one.name, one.limit, *_cells(one)) for one in degradation.criteria),
    )
    if _are_judged(degradation):
        yield (
            f"In brackets: what can be said at {percent(CONFIDENCE, 2)} confidence with the number of images taken "
            "into account, of every number by itself. Images are assumed to be independent of each other."
        )
    for criterion in degradation.criteria:
        yield _break_sentence(degradation, criterion)
    yield from _order_blocks(degradation)


def _are_judged(degradation: DegradationRecord) -> bool:
    """Whether the data behind the numbers are known."""
    return any(verdict is not None for criterion in degradation.criteria for verdict in criterion.verdicts)


def _order_blocks(degradation: DegradationRecord) -> Iterator[Block | str]:
    """Who failed first: by the numbers, and by what the number of images leaves no doubt of."""
    breaks = {(criterion.kind, criterion.name): criterion.break_ for criterion in degradation.criteria}
    if degradation.seen:
        for number, group in enumerate(degradation.seen):
            at = level_text(degradation, breaks[group[0].kind, group[0].name].fails_at)
            names = ", ".join(f"{name.name} ({name.kind})" for name in group)
            yield f"{'First' if number == 0 else 'Then'} to fail, at {at}: {names}."
        yield from _sure_order(degradation)
    else:
        yield "Nothing fails at any tested level."


def _sure_order(degradation: DegradationRecord) -> Iterator[str]:
    """What of the order is more than the luck of these images."""
    if not _are_judged(degradation):
        yield "The uncertainty of the order is not known: the numbers were given without the data behind them."
        return
    for earlier in dict.fromkeys(order.earlier for order in degradation.surely_before):
        after = (order.later for order in degradation.surely_before if order.earlier == earlier)
        later = ", ".join(f"{other.name} ({other.kind})" for other in after)
        yield f"Confirmed by the image sample: {earlier.name} ({earlier.kind}) fails before {later}."
    if not degradation.surely_before:
        yield "The image sample is too small to say which criterion fails first."


def _cells(criterion: CriterionRecord) -> Iterator[str]:
    for value, margin, verdict in zip(criterion.values, criterion.margins, criterion.verdicts, strict=True):
        if value is None or margin is None:
            yield "not defined"
        else:
            told = significant(value, 6) + (f" ({verdict.value})" if verdict else "")
            yield f"{told} fails" if criterion.fails(margin) else told


def _break_sentence(degradation: DegradationRecord, criterion: CriterionRecord) -> str:
    one = criterion.break_
    passed = f" ({one.undefined} of the levels have no value)" if one.undefined else ""
    if one.fails_at is None:
        held = "has no value" if one.holds_at is None else f"holds up to {level_text(degradation, one.holds_at)}"
        return f"{criterion.name}: {held}{passed}."
    start, there = criterion.values[0], criterion.values[degradation.levels.index(one.fails_at)]
    # What is accepted of a metric has two sides: it may fail by being better than at the mildest level.
    better = criterion.kind == "metric" and start is not None and there is not None and there > start
    again = "; it is better there, not worse" if better else ""
    again += "; it holds again at a severer level" if one.recovers else ""
    known: dict[float | None, Verdict | None] = dict(zip(degradation.levels, criterion.verdicts, strict=True))
    again += f"; {_confirmed(degradation, one)}" if any(criterion.verdicts) else ""
    if one.can_narrow:
        again += "; levels between can narrow what is known"
    elif {known.get(one.holds_at), known.get(one.fails_at)} == {Verdict.INCONCLUSIVE}:
        again += "; these images do not allow a narrower bracket"
    if one.holds_at is None:
        mildest = level_text(degradation, one.fails_at)
        return f"{criterion.name}: fails at the mildest level, {mildest}, already{again}{passed}."
    between = f"between {level_text(degradation, one.holds_at)} and {level_text(degradation, one.fails_at)}"
    if degradation.scale == "reciprocal":
        low, high = 1 / one.holds_at, 1 / one.fails_at
        unit = f" per {degradation.unit}" if degradation.unit else ""
        between += f" (1/{degradation.parameter} {significant(low)} to {significant(high)}{unit})"
    return f"{criterion.name}: breaks {between}{again}{passed}."


def _confirmed(degradation: DegradationRecord, one: Break) -> str:
    """What of a break is more than the sample of images."""
    at = f"confirmed at {percent(CONFIDENCE, 2)} confidence"
    holds = "" if one.sure_until is None else f" to hold up to {level_text(degradation, one.sure_until)}"
    if one.sure_at is None:
        return f"not {at} to fail at any level (too few images)" + (f", {at}{holds}" if holds else "")
    return f"{at}{f'{holds} and' if holds else ''} to fail from {level_text(degradation, one.sure_at)} on"


def level_text(degradation: DegradationRecord, level: float | None) -> str:
    """A level with its parameter and unit: `visibility 210 m`."""
    if level is None:
        raise ValueError("no level")
    if math.isinf(level):
        return f"{degradation.parameter} infinite"
    number = significant(level, 4) if abs(level) < 1e4 else fixed(level, 0)
    return f"{degradation.parameter} {number}" + (f" {degradation.unit}" if degradation.unit else "")
