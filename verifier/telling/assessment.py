"""An assessment as headings, sentences and tables: the six questions of the method, answered in order.

The headings are the questions of the GQM model of Wozniak, Segura and Mazo 2024, Table 1; the words of the last
section are those of ISO/IEC TR 24029-1 and ISO/IEC 24029-2.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from verifier.base.numbers import exact_text, fixed, interval_text, significant
from verifier.base.words import percent
from verifier.robustness.assessment.circumstances import Risk
from verifier.robustness.assessment.document import (
    BreakRecord,
    CircumstanceRecord,
    CountedRecord,
    CriterionRecord,
    DegradationRecord,
    DistanceRecord,
    Level,
    OutcomeRecord,
    Performance,
    SystemRecord,
)
from verifier.robustness.assessment.measures import GQM_NUMBERS, METRICS, WORDS, Tolerance
from verifier.robustness.assessment.result import MadeHere
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


def sections(found: SystemRecord) -> tuple[Section, ...]:
    """The six questions answered, then the words of the standards, then what a reader must know."""
    answers = (_circumstances, _performance, _significance, _distances, _changes, _impact)
    made = [Section(heading, told(answer(found))) for heading, answer in zip(QUESTIONS, answers, strict=True)]
    if found.degradation is not None:
        made.append(Section("What does it do to the system?", told(degradation_blocks(found.degradation))))
    made.append(Section("In the words of ISO/IEC 24029", told(_vocabulary(found))))
    return tuple(made)


def _circumstances(found: SystemRecord) -> Iterator[Block | str]:
    if not found.circumstances:
        yield "No target circumstances are described."
        return
    together = {"independent": "can occur together", "exclusive": "exclude each other"}[found.occurrence]
    seen_by = f", as seen by {found.viewpoint}" if found.viewpoint else ""
    yield f"Target circumstances{seen_by}. They {together}. M1 is a probability, M2 a relative frequency."
    yield Table(
        "",
        ("circumstance", "measure", "in use", "in the source data", "missing"),
        tuple(
            (
                _label(each),
                "-" if each.frequency is None else "M1" if each.measure == "probability" else "M2",
                _frequency(each.frequency, each.counted),
                _frequency(each.source_frequency, each.source_counted),
                _number(each.missing),
            )
            for each in found.circumstances
        ),
    )
    known = [_exact(each.frequency) for each in found.circumstances if each.frequency is not None]
    if known:
        yield f"The frequencies in use sum to {exact_text(sum(known, Fraction(0)))}."
    for name, listed in found.perspectives.items():
        yield f"As seen by {name}:"
        shows = {each: [_label(one) for one in found.circumstances if each in one.part_of] for each in listed}
        rows = tuple((each, ", ".join(names) or "-") for each, names in shows.items())
        yield Table("", ("circumstance", "shows as"), rows)


def _frequency(value: float | None, counted: CountedRecord | None) -> str:
    """A stated number, or a counted one with its counts and interval."""
    if counted is None or value is None:
        return _number(value)
    return f"{significant(value)} ({counted.shown} of {counted.images}, {interval_text(*counted.interval)})"


def _label(each: CircumstanceRecord) -> str:
    """What a report calls it: the description where there is one."""
    return each.description or each.name


def _significance(found: SystemRecord) -> Iterator[Block | str]:
    assessed = [each for each in found.circumstances if each.significance is not None]
    if assessed:
        yield "Significance (M6) = exposure (M3) x likelihood (M4) x severity (M5)."
        header = ("circumstance", "exposure", "likelihood", "severity", "significance")
        yield Table("", header, tuple(map(_significance_row, assessed)))
    else:
        yield "No significance was assessed."
    named = {each.name: each for each in found.circumstances}
    order = [named[name] for name in found.priorities]
    if order:
        yield "Follow-up test cases that are missing, the most significant circumstance first:"
        yield Table(
            "",
            ("priority", "circumstance", "significance", "missing", "transformation"),
            tuple(
                (
                    str(number),
                    _label(each),
                    "not assessed" if each.significance is None else str(each.significance),
                    _number(each.missing),
                    each.transformation or "none",
                )
                for number, each in enumerate(order, 1)
            ),
        )
    elif found.circumstances:
        yield "No follow-up test case is missing."
    yield from _plan_blocks(found)


def _significance_row(each: CircumstanceRecord) -> tuple[str, ...]:
    factors = each.exposure or 0, each.likelihood or 0, each.severity or 0
    told = (f"{value} {word}" for value, word in zip(factors, Risk(*factors).words, strict=True))
    return (_label(each), *told, str(each.significance))


def _plan_blocks(found: SystemRecord) -> Iterator[Block | str]:
    plan = found.plan
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
                each.circumstance,
                _number(each.asked),
                significant(each.expected, 4),
                str(each.images),
                significant(each.images / count, 4),
            )
            for each in plan.shares
        ),
    )
    if found.made is not None and found.made.follow_up_images:
        yield "All of these images were made."
    if plan.occurrence == "independent":
        yield "Every image shows at least one circumstance, so each is expected more often than asked."


def _performance(found: SystemRecord) -> Iterator[Block | str]:
    if found.made is not None and found.made.detector is not None:
        lowest = found.made.lowest_score
        least = "every detection counts" if lowest is None else f"scores from {significant(lowest, 6)} on count"
        yield f"The detector, run here: {_identity(found.made)}; {least}."
    given = {"source": found.source.performance, **{target.name: target.performance for target in found.targets}}
    data = {name: _numbers(performance) for name, performance in given.items() if performance is not None}
    if not data:
        yield "No performance is given."
        return
    names = list(dict.fromkeys(name for numbers in data.values() for name in numbers))
    header = ("data set", *(f"{name} ({METRICS[name]})" if name in METRICS else name for name in names))
    rows = ((name, *(numbers.get(each, "-") for each in names)) for name, numbers in data.items())
    yield Table("", header, tuple(rows))
    yield f"The verdict is over {', '.join(found.metrics)}." if found.metrics else "No metric was chosen."


def _identity(made: MadeHere) -> str:
    """What a detector says it is, its plain values; settings and layouts stand in the JSON document."""
    plain = {name: each for name, each in (made.detector or {}).items() if isinstance(each, str | int | float)}
    return ", ".join(f"{each}" if name == "detector" else f"{name} {each}" for name, each in plain.items())


def _numbers(performance: Performance) -> dict[str, str]:
    counts = {name: str(performance[name]) for name in COUNTS if name in performance}
    return {**counts, **{name: _number(value) for name, value in performance.items() if name not in COUNTS}}


def _distances(found: SystemRecord) -> Iterator[Block | str]:
    measures = {rule.name: rule.measure for rule in found.rules}
    in_sweeps = {name for sweep in found.sweeps for name in sweep.targets}
    rows = [
        (target.name, *_distance_cells(name, measures.get(name, "other"), distance))
        for target in found.targets
        for name, distance in target.distances.items()
        if target.name not in in_sweeps
    ]
    if rows:
        yield Table("", ("target data set", "distance by", "what", "similarity", "distance d", "pairs"), tuple(rows))
    distances = {target.name: target.distances for target in found.targets}
    for sweep in found.sweeps:
        columns = [distances[name] for name in sweep.targets]
        lines: list[tuple[str, ...]] = []
        for name in (name for name in measures if any(name in column for column in columns)):
            values = [column.get(name) for column in columns]
            if any(each is not None and each.similarity is not None for each in values):
                lines.append((f"mean {name}", *(_number(each.similarity if each else None) for each in values)))
            lines.append((f"distance {name}", *(_number(each.distance if each else None) for each in values)))
        if lines:
            yield f"{sweep.name}, by {sweep.parameter}:"
            yield Table("", (sweep.parameter, *map(_number, sweep.settings)), tuple(lines))
    if not any(distances.values()):
        yield "No distance is given."


def _distance_cells(name: str, measure: str, each: DistanceRecord) -> tuple[str, ...]:
    number = f" ({GQM_NUMBERS[measure]})" if measure in GQM_NUMBERS else ""
    pairs = "given" if each.given else str(each.pairs) if each.pairs is not None else "clouds"
    return name, WORDS.get(measure, measure) + number, _number(each.similarity), _number(each.distance), pairs


def _changes(found: SystemRecord) -> Iterator[Block | str]:
    source, rows = found.source.performance, []
    for target in found.targets:
        own = target.performance or {}
        for name in (name for name in found.metrics if source is not None and name in source and name in own):
            before, after = _exact((source or own)[name]), _exact(own[name])
            numbers = before, after, after - before, abs(before - after)
            rows.append((target.name, name, *map(exact_text, numbers)))
    if rows:
        yield "M18, the absolute difference between performance on the source and on the target data:"
        yield Table("", ("target data set", "metric", "source", "target", "change", "|change|"), tuple(rows))
    else:
        yield "Performance is not known on two data sets."


def _impact(found: SystemRecord) -> Iterator[Block | str]:
    judged = [rule for rule in found.rules if rule.tolerance is not None]
    if judged:
        yield "The metamorphic relation: |P_x - P_x'| <= epsilon(d) for every metric, with"
        rows = tuple(
            (
                rule.name + ("" if rule.extractor is None else f" (features by {rule.extractor})"),
                str(Tolerance.told((each.slope, each.constant, each.up_to) for each in rule.tolerance or ())),
            )
            for rule in judged
        )
        yield Table("", ("distance d by", "epsilon(d)"), rows)
    outcomes = [(target.name, one) for target in found.targets for one in target.outcomes]
    if outcomes:
        scaled = any(one.scale != 1 for _, one in outcomes)
        header = ("target data set", "metric", "|change|", "d by", "d", *(["scale"] if scaled else []), "epsilon")
        yield Table("", (*header, "verdict"), tuple(_outcome_row(name, one, scaled=scaled) for name, one in outcomes))
    for target in found.targets:
        if target.outcomes or target.unchecked:
            yield f"{target.name}: {ROBUST[target.verdict]}."
    if not outcomes:
        yield "No tolerance was given, so nothing was assessed."


ROBUST = {"satisfied": "robust", "violated": "not globally robust", "inconclusive": "not decided"}
"""What a verdict means for robustness."""


def _outcome_row(name: str, one: OutcomeRecord, *, scaled: bool) -> Row:
    scale = [_number(one.scale)] if scaled else []
    numbers = _number(one.change), one.distance_name, _number(one.distance)
    return (name, one.metric, *numbers, *scale, _number(one.tolerance), Cell(one.verdict, verdict=one.verdict))


def _vocabulary(found: SystemRecord) -> Iterator[Block | str]:
    measured = ", ".join(found.metrics) or "no metric"
    shown = ", ".join(target.name for target in found.targets if target.performance is not None)
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
    if found.degradation is not None and found.degradation.settings is not None:
        rows.append(("formal method", "P(phi) by model checking, of a model whose perception was measured"))
    yield Table("", ("term", "here"), tuple(rows))


def _exact(value: float) -> Fraction:
    """The number that a document spells."""
    return Fraction(repr(value))


def _number(value: float | None) -> str:
    return "-" if value is None else exact_text(_exact(value))


def degradation_blocks(found: DegradationRecord) -> Iterator[Block | str]:
    """The criteria by level, where each breaks, and which of them saw it first."""
    levels = [level_text(found, each) for each in found.levels]
    yield f"{found.parameter}, the mildest level first:"
    yield Table(
        "",
        ("kind", "criterion", "asked", *levels),
        tuple((each.kind, each.name, each.limit, *_cells(each)) for each in found.criteria),
    )
    if _are_judged(found):
        yield (
            f"In brackets: what can be said at {percent(CONFIDENCE, 2)} confidence with the number of images taken "
            "into account, of every number by itself. Images are assumed to be independent of each other."
        )
    for each in found.criteria:
        yield _break_sentence(found, each)
    yield from _order_blocks(found)


def _are_judged(found: DegradationRecord) -> bool:
    """Whether the data behind the numbers are known."""
    return any(verdict is not None for each in found.criteria for verdict in each.verdicts)


def _order_blocks(found: DegradationRecord) -> Iterator[Block | str]:
    """Who failed first: by the numbers, and by what the number of images leaves no doubt of."""
    breaks = {(each.kind, each.name): each.break_ for each in found.criteria}
    if found.seen:
        for number, group in enumerate(found.seen):
            at = level_text(found, breaks[group[0].kind, group[0].name].fails_at)
            names = ", ".join(f"{each.name} ({each.kind})" for each in group)
            yield f"{'First' if number == 0 else 'Then'} to fail, at {at}: {names}."
        yield from _sure_order(found)
    else:
        yield "Nothing fails at any tested level."


def _sure_order(found: DegradationRecord) -> Iterator[str]:
    """What of the order is more than the luck of these images."""
    if not _are_judged(found):
        yield "The uncertainty of the order is not known: the numbers were given without the data behind them."
        return
    for earlier in dict.fromkeys(order.earlier for order in found.surely_before):
        after = (order.later for order in found.surely_before if order.earlier == earlier)
        later = ", ".join(f"{other.name} ({other.kind})" for other in after)
        yield f"Confirmed by the image sample: {earlier.name} ({earlier.kind}) fails before {later}."
    if not found.surely_before:
        yield "The image sample is too small to say which criterion fails first."


def _cells(each: CriterionRecord) -> Iterator[str]:
    for value, margin, verdict in zip(each.values, each.margins, each.verdicts, strict=True):
        if value is None or margin is None:
            yield "not defined"
        else:
            told = significant(value, 6) + (f" ({verdict})" if verdict else "")
            yield f"{told} fails" if each.fails(margin) else told


def _break_sentence(found: DegradationRecord, each: CriterionRecord) -> str:
    one = each.break_
    passed = f" ({one.undefined} of the levels have no value)" if one.undefined else ""
    if one.fails_at is None:
        held = "has no value" if one.holds_at is None else f"holds up to {level_text(found, one.holds_at)}"
        return f"{each.name}: {held}{passed}."
    start, there = each.values[0], each.values[found.levels.index(one.fails_at)]
    # What is accepted of a metric has two sides: it may fail by being better than at the mildest level.
    better = each.kind == "metric" and start is not None and there is not None and there > start
    again = "; it is better there, not worse" if better else ""
    again += "; it holds again at a severer level" if one.recovers else ""
    known = dict(zip(found.levels, each.verdicts, strict=True))
    if any(each.verdicts):
        again += f"; {_confirmed(found, one)}"
    if one.can_narrow:
        again += "; levels between can narrow what is known"
    elif {known.get(one.holds_at), known.get(one.fails_at)} == {"inconclusive"}:
        again += "; these images do not allow a narrower bracket"
    if one.holds_at is None:
        return f"{each.name}: fails at the mildest level, {level_text(found, one.fails_at)}, already{again}{passed}."
    between = f"between {level_text(found, one.holds_at)} and {level_text(found, one.fails_at)}"
    if found.scale == "reciprocal":
        low, high = (0 if at == "inf" else 1 / (at or 1) for at in (one.holds_at, one.fails_at))
        unit = f" per {found.unit}" if found.unit else ""
        between += f" (1/{found.parameter} {significant(low)} to {significant(high)}{unit})"
    return f"{each.name}: breaks {between}{again}{passed}."


def _confirmed(found: DegradationRecord, one: BreakRecord) -> str:
    """What of a break is more than the sample of images."""
    at = f"confirmed at {percent(CONFIDENCE, 2)} confidence"
    holds = "" if one.sure_until is None else f" to hold up to {level_text(found, one.sure_until)}"
    if one.sure_at is None:
        return f"not {at} to fail at any level (too few images)" + (f", {at}{holds}" if holds else "")
    return f"{at}{f'{holds} and' if holds else ''} to fail from {level_text(found, one.sure_at)} on"


def level_text(found: DegradationRecord, level: Level) -> str:
    """A level with its parameter and unit: `visibility 210 m`."""
    if level is None:
        raise ValueError("no level")
    if level == "inf":
        return f"{found.parameter} infinite"
    number = significant(level, 4) if abs(level) < 1e4 else fixed(level, 0)
    return f"{found.parameter} {number}" + (f" {found.unit}" if found.unit else "")
