"""Whether verdicts of documents follow from numbers, channel and parts beside them, and numbers fit together.

Whatever a result states twice, or computes from what it also states, is computed again beside these. What it only
declares (a name, a count, a setting) has nothing to be compared with. Whoever reads stops at the first element.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from verifier.analysis.channel_test import Channel, class_tests
from verifier.base.documents import fraction_of, json_values
from verifier.base.errors import InputError, Place, shown
from verifier.checking.verdicts import (
    Decision,
    Verdict,
    WithinBounds,
    condition_over,
    verdict_of,
    worst_verdict,
)
from verifier.evidence.differences import differing
from verifier.evidence.documents import Document
from verifier.evidence.findings import Finding
from verifier.questions.compare.floor import floor_of
from verifier.questions.compare.gating import worst_of
from verifier.study.collection import Judging
from verifier.study.points import FreeBounds, Numbers, Point, Uncertainty
from verifier.study.records import ConfidenceRecord, Drop, MatricesRecord, Regression, SettingsRecord
from verifier.study.results import RequirementResult, RunResult, Target

if TYPE_CHECKING:
    from verifier.questions.compare.compare_result import Entry
    from verifier.questions.explain.explain_result import Explained, ExplainResult

    Judged = Point | Entry | Explained | ExplainResult

Misfits: TypeAlias = Iterator[tuple[str, str]]
"""JSON pointer of an element, and what is wrong with it."""
FOLLOWS = ", which follows from the numbers beside it"


def refuse_misfits(document: Document, complaints: Misfits) -> None:
    """Refuse a document at the first element that contradicts others; InputError."""
    for pointer, message in complaints:
        hint = "documents are read as this program writes them"
        raise InputError(message, Place(document.name, path=pointer), hint)


def below(where: str, complaints: Misfits) -> Misfits:
    """What is wrong with an element, from what is wrong below it."""
    return ((where + element, message) for element, message in complaints)


def conclusions_apart(path: str, run: RunResult, settings: SettingsRecord) -> list[Finding]:
    """The verdicts and gates of a run that do not follow from its own numbers.

    Args:
        run: as its document has it, its numbers within their bounds.
        settings: say what decides a verdict.
    """
    judging, findings = Judging(settings, run.channel.classes), list[Finding]()
    for r, one in enumerate(run.requirements):
        for k, point in enumerate(one.points):
            pointer = f"/requirements/{r}/points/{k}"
            findings += _decisions_apart(path, point.decision, judging.decision(point, one.target), pointer)
        findings += _derived_apart(path, one, f"/requirements/{r}")
    findings += _derived_apart(path, run, "")
    if run.gates is not None and run.gates.fail_under is not None:
        floor = run.gates.fail_under
        again = floor_of(run, fraction_of(floor.least))
        findings += differing(path, floor, again, FOLLOWS, "/gates/fail_under")
    if run.gates is not None and run.gates.regression is not None:
        for k, drop in enumerate(run.gates.regression.drops):
            known = _of_drop(drop, run, run.gates.regression)
            told = {name: getattr(drop, name) for name in known}
            findings += differing(path, told, known, FOLLOWS, f"/gates/regression/drops/{k}")
    return findings


def _derived_apart(path: str, whole: RunResult | RequirementResult, pointer: str) -> list[Finding]:
    """What a whole says of its parts, where that is not what follows from them."""
    follows = whole.following()
    told = {name: getattr(whole, name) for name in follows}
    return differing(path, told, follows, FOLLOWS, pointer)


def _decisions_apart(path: str, told: Decision, follows: Decision, pointer: str) -> Iterator[Finding]:
    """Where a verdict, or what it rests on, is not what follows."""
    for name in vars(told):
        mine, theirs = (json_values(getattr(decision, name)) for decision in (told, follows))
        if mine != theirs:  # a reason of another kind is another reason
            mine, theirs = (json.dumps(entry) if isinstance(entry, dict) else entry for entry in (mine, theirs))
            yield from differing(path, {name: mine}, {name: theirs}, FOLLOWS, pointer)


def _of_drop(told: Drop, run: RunResult, gate: Regression) -> Mapping[str, object]:
    """What of a drop follows from the run and the earlier probability."""
    mine = [one for one in run.requirements if (one.name, one.planner) == (told.requirement, told.planner)]
    if not mine:
        return {"requirement": "a requirement of the run, with its planner"}
    now = worst_of(mine[0], mine[0]).probability
    follows = {"now": now, "drop": now - told.before if mine[0].is_upper else told.before - now}
    if gate.least_chance is not None:
        follows["failed"] = told.chance is not None and Fraction(told.chance) >= gate.least_chance
    return follows


def whole_apart(
    where: str, whole: Judged, parts: Sequence[Judged], over: Callable[[Iterable[Verdict]], Verdict] = worst_verdict
) -> Misfits:
    """Verdict and condition of a whole follow from its parts; `over` gives the verdict."""
    yield from misfits(f"{where}/verdict", whole.verdict.value, over(part.verdict for part in parts).value)
    condition = condition_over(whole.verdict, ((part.verdict, part.condition) for part in parts))
    yield from misfits(f"{where}/condition", whole.condition, condition)


def channel_apart(channel: Channel, said: MatricesRecord | None, drawn: Set[str] | None = None) -> Misfits:
    """The test of the channel is that of the matrices, for the classes that are drawn, in the bins that it names."""
    labels = list({test.label: None for test in channel.classes}) if drawn is None else sorted(drawn)
    told_bins = {test.label: test.bins or () for test in channel.classes}
    dependence, contexts = (None, None) if said is None else (said.dependence, said.contexts)
    expected = class_tests(dependence, contexts, {label: told_bins.get(label, ()) for label in labels})
    if [test.label for test in channel.classes] != labels:
        yield "/channel/classes", f"expected the classes that are drawn, {', '.join(labels) or 'none'}"
        return
    for k, (told, follows) in enumerate(zip(channel.classes, expected, strict=True)):
        if follows.bins is not None and told.bins is None:
            yield f"/channel/classes/{k}", "expected bins, as the matrices of the document test each bin"
        for name in {**vars(told), **vars(follows)}:
            mine, theirs = getattr(told, name, None), getattr(follows, name, None)
            if mine != theirs:
                message = f"the matrices of the document say {json_values(theirs)}, got {json_values(mine)}"
                yield f"/channel/classes/{k}/{name}", message


def model_verdict_apart(where: str, point: Point, target: Target) -> Misfits:
    """The verdict of the numbers alone; what it rests on is said of the whole answer."""
    yield from below(where, contradictions(point, None))
    follows = verdict_of(*point.ends("point"), target.comparison, target.probability)
    yield from decision_apart(where, point.decision, Decision(follows))


def resting_apart(
    where: str, point: Point, target: Target | None, settings: SettingsRecord, channel: Channel
) -> Misfits:
    """The verdict of a point whose bounds are not in the document follows from what it says that they decide."""
    model = None
    if settings.verdict_from != "point":
        said = point.verdict if point.verdict is not Verdict.VACUOUS else Verdict.SATISFIED
        model = said if point.reason is None or isinstance(point.reason, WithinBounds) else point.reason.model_verdict
    decision = Judging(settings, channel.classes).decision(point, target, None if model is None else Verdict(model))
    yield from decision_apart(where, point.decision, decision)


def decision_apart(where: str, told: Decision, follows: Decision) -> Misfits:
    """A verdict, with what it rests on, is what follows."""
    return told_apart(_decisions_apart("", told, follows, where))


def told_apart(findings: Iterable[Finding]) -> Misfits:
    """Findings about a document as what is wrong with its elements."""
    return ((finding.where, f"expected {finding.expected}, found {finding.found}") for finding in findings)


def parts_at(value: Any, path: str, where: str = "") -> Iterator[tuple[str, Any]]:
    """Pointer and value of all that stands below a value at a path, in which `*` is each entry of a list, and `a|b`
    are two fields; nothing below None."""
    names, _, rest = path.partition("/")
    if value is not None:
        entries = enumerate(value) if names == "*" else ((name, getattr(value, name)) for name in names.split("|"))
        for key, part in entries:
            yield from parts_at(part, rest, f"{where}/{key}") if rest else [(f"{where}/{key}", part)]


def positions_apart(where: str, value: Any, path: str, count: int) -> Misfits:
    """Each position that stands at a path, as for `parts_at`, is one in a list of that many."""
    for pointer, index in parts_at(value, path, where):
        if index is not None and not 0 <= index < count:
            yield pointer, f"expected a position below {count}, got {index}"


ROUNDING = 1e-9
"""By which a value may stand outside its bounds, or 0..1, because it was rounded."""
SOLVING = 1e-6
"""By which the value of a single matrix may stand outside its bounds, because it was solved for in doubles."""


def is_probability(value: Any) -> bool:
    """A number from 0 to 1, up to rounding."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -ROUNDING <= value <= 1 + ROUNDING


def contradictions(point: Point, settings: SettingsRecord | None, asked: str = "P") -> Misfits:
    """(element below the point, what is wrong) where its numbers do not fit together.

    Args:
        settings: of its run; None for a point without intervals and bounds whose probabilities were not rounded.
    """
    rounded = settings is not None and settings.round_transitions is not None
    apart = list(numbers_apart(point, rounded=rounded, asked=asked))
    yield from apart
    if apart:
        return
    confidence = None if settings is None else settings.confidence
    if point.uncertainty is not None and confidence is None:
        yield "/uncertainty", "expected none, as the settings have no confidence"
    elif point.uncertainty is not None and confidence is not None:
        yield from _disordered(point.uncertainty, confidence, free=rounded or not asked.startswith("P"))
    if point.dependence_free is not None:
        bounded = None if settings is None else confidence is not None and not rounded
        other = rounded or (settings is not None and settings.memory is not None)
        yield from free_apart(point.dependence_free, point.probability, bounded=bounded, other=other)
    value, whatever = point.probability, point.whatever_predicted
    if whatever is not None and abs(whatever - value) > ROUNDING:
        yield "/whatever_predicted", f"expected the probability, {value}, or nothing"


def free_apart(free: FreeBounds, value: float, *, bounded: bool | None, other: bool) -> Misfits:
    """(element below the point, what is wrong) of bounds whatever the dependence; `bounded` is whether the run bounds
    rates, None where that is not known, and `other` whether its probability is of other rates."""
    where = "/dependence_free"
    if free.lower > free.upper:
        yield f"{where}/lower", f"expected at most the upper bound, {free.upper}, got {free.lower}"
    for k, left in enumerate(free.undecided):
        if not -SOLVING <= left <= 1 + SOLVING:
            yield f"{where}/undecided/{k}", f"expected a probability, got {left}"
    if bounded is not None and bounded == (free.rates == "measured"):
        expected = "those that bounds are over" if bounded else "measured"
        yield f"{where}/rates", f"expected {expected}, as in the settings of the run, got {free.rates}"
    elif free.rates == "measured" and not other and not free.lower - SOLVING <= value <= free.upper + SOLVING:
        within = f"{free.lower} to {free.upper}"
        yield "/probability", f"expected a value within the bounds whatever the dependence, {within}, got {value}"


def numbers_apart(point: Numbers, *, rounded: bool, asked: str = "P") -> Misfits:
    """As `contradictions`, of the numbers of both engines alone; `rounded` ones are no probabilities."""
    free = rounded or not asked.startswith("P")
    for name, text in point.constants.items():
        try:
            fraction_of(text)
        except ValueError as error:
            yield f"/constants/{name}", f"expected a number: {error}"
    value = point.probability
    for name in ("probability", "lower", "upper", "second_engine"):
        if not free and not is_probability(getattr(point, name)):
            yield f"/{name}", f"expected a probability, got {getattr(point, name)}"
    slack = ROUNDING * max(1, abs(value)) if math.isfinite(value) else 0
    if not point.lower - slack <= value <= point.upper + slack:
        yield "/probability", f"expected a value within its own bounds, {point.lower} to {point.upper}"
    if point.lower > point.upper:
        yield "/lower", f"expected at most the upper bound, {point.upper}, got {point.lower}"
    if point.exact is not None:
        for name in ("probability", "lower", "upper"):
            number = getattr(point, name)
            # A mean over initial states is one of rounded numbers, and may be the double beside.
            if math.isinf(number) or abs(point.exact - Fraction(number)) > Fraction(2 * math.ulp(number)):
                yield f"/{name}", f"expected what the fraction {shown(str(point.exact))} rounds to, got {number}"


def _disordered(sure: Uncertainty, asked: ConfidenceRecord, *, free: bool) -> Misfits:
    interval, bounds = sure.interval, sure.confidence_bounds
    for kind, ends in (("interval", interval), ("confidence_bounds", bounds)):
        if ends is not None and ends.lower > ends.upper:
            yield f"/uncertainty/{kind}", f"expected the lower end below the upper, got {ends.lower}, {ends.upper}"
    for end, value, (low, high) in (
        ("lower", interval.lower, interval.lower_range),
        ("upper", interval.upper, interval.upper_range),
    ):
        if not low <= value <= high or not (free or (is_probability(low) and is_probability(high))):
            yield f"/uncertainty/interval/{end}_range", f"expected a range that holds the end, {value}"
        attained = value if bounds is None else getattr(bounds, f"attained_{end}")
        if bounds is not None and not bounds.lower - SOLVING <= attained <= bounds.upper + SOLVING:
            within = f"expected a value within the bounds, {bounds.lower} to {bounds.upper}, got"
            yield f"/uncertainty/confidence_bounds/attained_{end}", f"{within} {attained}"
    tier = asked.bounds.tier
    for name, told, expected in (
        ("level", sure.level, asked.level),
        ("interval/kind", interval.kind, asked.interval),
        ("interval/draws", interval.draws, asked.draws),
        ("confidence_bounds/tier", tier if bounds is None else bounds.tier, tier),
    ):
        if told != expected:
            yield f"/uncertainty/{name}", f"expected {expected}, as in the settings of the run, got {told}"


def near(one: float, other: float, least: float = ROUNDING) -> bool:
    """Whether two numbers are equal up to rounding, or are no more than `least` apart."""
    return math.isclose(one, other, rel_tol=ROUNDING, abs_tol=least)


def misfits(where: str, stated: Any, follows: Any, least: float = ROUNDING) -> Misfits:
    """Where JSON values differ from those that follow, numbers by more than rounding; `least` as for `near`."""
    if isinstance(stated, dict) and isinstance(follows, dict) and stated.keys() == follows.keys():
        for key, value in follows.items():
            yield from misfits(f"{where}/{key}", stated[key], value, least)
    elif isinstance(stated, list) and isinstance(follows, list) and len(stated) == len(follows):
        for k, value in enumerate(follows):
            yield from misfits(f"{where}/{k}", stated[k], value, least)
    elif not (stated == follows or (type(stated) is type(follows) is float and near(stated, follows, least))):
        yield where, f"expected {str(follows)[:200]}{FOLLOWS}, got {str(stated)[:200]}"


def all_ordered(where: str, value: Any, path: str, high: float = math.inf) -> Misfits:
    """As `ordered`, of each interval from 0 on that stands at a path, as for `parts_at`."""
    for pointer, ends in parts_at(value, path, where):
        yield from ordered(pointer, ends, 0, high)


def ordered(
    where: str, ends: Sequence[float | None] | None, low: float = -math.inf, high: float = math.inf
) -> Misfits:
    """Of an interval: its ends in their order, and within what it may be."""
    if ends is not None and None not in ends:
        lower, upper = (end for end in ends if end is not None)
        if not low - ROUNDING <= lower <= upper + ROUNDING <= high + 2 * ROUNDING:
            yield where, f"expected a lower and an upper end from {low:g} to {high:g}, got {lower} and {upper}"


def once(where: str, parts: Iterable[Hashable]) -> Misfits:
    """Of a list: the first element that is in it twice."""
    seen = set[Hashable]()
    for k, part in enumerate(parts):
        if part in seen:
            yield f"{where}/{k}", "expected it once"
            return
        seen.add(part)


def no_probabilities(content: Any, keys: Container[str], where: str = "", inside: bool = False) -> Misfits:
    """Of JSON values: the numbers below some keys, wherever these stand, that are no probabilities."""
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        told = key in keys if isinstance(content, dict) else inside
        if isinstance(value, dict | list):
            yield from no_probabilities(value, keys, f"{where}/{key}", told)
        elif told and isinstance(value, int | float) and not is_probability(value):
            yield f"{where}/{key}", f"expected a probability, got {value}"
