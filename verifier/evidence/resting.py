"""Whether verdicts of documents follow from what stands beside them: numbers, channel, parts."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

from verifier.analysis.channel_test import Channel, class_tests
from verifier.base.documents import fraction_of, json_values
from verifier.base.errors import InputError, Place, shown
from verifier.checking.verdicts import (
    Decision,
    Verdict,
    WithinBounds,
    condition_over,
    verdict_of,
    verdict_over,
    worst_verdict,
)
from verifier.evidence.differences import differing
from verifier.evidence.documents import Document
from verifier.evidence.findings import Finding
from verifier.evidence.points import contradictions
from verifier.questions.compare.floor import floor_of
from verifier.questions.compare.gate import worst_of_points
from verifier.study.collection import Judging
from verifier.study.gates import Drop, Regression
from verifier.study.points import Point
from verifier.study.records import SettingsRecord
from verifier.study.results import RequirementResult, RunResult, Target

if TYPE_CHECKING:
    from verifier.evidence.rates.document import RateResult
    from verifier.questions.compare.tables import Entry
    from verifier.questions.explain.explain_result import Explained, ExplainResult

    Judged = Point | Entry | Explained | ExplainResult

FOLLOWS = ", which follows from the numbers beside it"


def refuse(document: Document, pointer: str, message: str) -> NoReturn:
    """InputError that names an element of a document."""
    raise InputError(message, Place(document.name, path=pointer), "documents are read as this program writes them")


def conclusions_apart(path: str, run: RunResult, settings: SettingsRecord) -> list[Finding]:
    """The verdicts and gates of a run that do not follow from its own numbers.

    Args:
        path: of its document.
        run: as its document has it, its numbers within their bounds.
        settings: say what decides a verdict.
    """
    judging, found = Judging(settings, run.channel.classes), list[Finding]()
    for r, one in enumerate(run.requirements):
        for k, point in enumerate(one.points):
            pointer = f"/requirements/{r}/points/{k}"
            found += _decisions_apart(path, point.decision, judging.decision(point, one.target), pointer)
        found += _derived_apart(path, one, f"/requirements/{r}")
    found += _derived_apart(path, run, "")
    if run.gates is not None and run.gates.fail_under is not None:
        floor = run.gates.fail_under
        again = floor_of(run, fraction_of(floor.least))
        found += differing(path, json_values(floor), json_values(again), FOLLOWS, "/gates/fail_under")
    if run.gates is not None and run.gates.regression is not None:
        for k, drop in enumerate(run.gates.regression.drops):
            known = _of_drop(drop, run, run.gates.regression)
            told = {name: getattr(drop, name) for name in known}
            found += differing(path, told, known, FOLLOWS, f"/gates/regression/drops/{k}")
    return found


def _derived_apart(path: str, whole: RunResult | RequirementResult, pointer: str) -> list[Finding]:
    """What a whole says of its parts, where that is not what follows from them."""
    follows = whole.following()
    told = {name: getattr(whole, name) for name in follows}
    return differing(path, json_values(told), json_values(follows), FOLLOWS, pointer)


def _decisions_apart(path: str, told: Decision, follows: Decision, pointer: str) -> Iterator[Finding]:
    """Where a verdict, or what it rests on, is not what follows."""
    for name in vars(told):
        mine, theirs = (json_values(getattr(each, name)) for each in (told, follows))
        if mine != theirs:  # a reason of another kind is another reason
            mine, theirs = (json.dumps(each) if isinstance(each, dict) else each for each in (mine, theirs))
            yield from differing(path, {name: mine}, {name: theirs}, FOLLOWS, pointer)


def _of_drop(told: Drop, run: RunResult, gate: Regression) -> dict[str, Any]:
    """What of a drop follows from the run and the earlier probability."""
    mine = [one for one in run.requirements if (one.name, one.planner) == (told.requirement, told.planner)]
    if not mine:
        return {"requirement": "a requirement of the run, with its planner"}
    points = [json_values(point) for point in mine[0].points]
    now = worst_of_points(points, not mine[0].is_upper, mine[0].formula).probability
    found = {"now": now, "drop": now - told.before if mine[0].is_upper else told.before - now}
    if gate.least_chance is not None:
        found["failed"] = told.chance is not None and Fraction(told.chance) >= gate.least_chance
    return found


def check_worst(document: Document, pointer: str, told: Verdict, parts: Sequence[Judged]) -> None:
    """The verdict of a whole is the worst of its parts."""
    worst = worst_verdict(part.verdict for part in parts)
    if told is not worst:
        refuse(document, pointer, f"expected the worst verdict, {worst.value}, found {told.value}")


def check_over(document: Document, pointer: str, told: Verdict, points: Sequence[Judged]) -> None:
    """The verdict of a requirement is the worst of its scenarios that are not vacuous."""
    over = verdict_over(point.verdict for point in points)
    if told is not over:
        refuse(document, pointer, f"expected the verdict over the scenarios, {over.value}, found {told.value}")


def check_condition(document: Document, pointer: str, whole: Judged, parts: Sequence[Judged]) -> None:
    """The condition of a whole follows from its parts."""
    over = condition_over(whole.verdict, ((each.verdict, each.condition) for each in parts))
    if whole.condition != over:
        said = f"expected {shown(over)}, which follows from the parts, found {shown(whole.condition)}"
        refuse(document, pointer, said)


def check_channel(
    document: Document, pointer: str, channel: Channel, matrices: Mapping[str, Any], drawn: Set[str] | None = None
) -> None:
    """The test of the channel is that of the matrices, for the classes that are drawn, in the bins that it names."""
    labels = list({test.label: None for test in channel.classes}) if drawn is None else sorted(drawn)
    told_bins = {test.label: test.bins or () for test in channel.classes}
    expected = class_tests(matrices, {label: told_bins.get(label, ()) for label in labels})
    if [test.label for test in channel.classes] != labels:
        refuse(document, f"{pointer}/classes", f"expected the classes that are drawn, {', '.join(labels) or 'none'}")
    for k, (told, follows) in enumerate(zip(channel.classes, expected, strict=True)):
        if follows.bins is not None and told.bins is None:
            refuse(document, f"{pointer}/classes/{k}", "expected bins, as the matrices of the document test each bin")
        for name in {**vars(told), **vars(follows)}:
            mine, theirs = getattr(told, name, None), getattr(follows, name, None)
            if mine != theirs:
                said = f"the matrices of the document say {json_values(theirs)}"
                refuse(document, f"{pointer}/classes/{k}/{name}", f"{said}, got {json_values(mine)}")


def check_numbers(
    document: Document, where: str, point: Point, settings: SettingsRecord | None, asked: str = "P"
) -> None:
    """The numbers of a point, of a requirement that asks this, fit together."""
    for element, message in contradictions(point, settings, asked):
        refuse(document, where + element, message)


def check_model_verdict(document: Document, where: str, point: Point, target: Target) -> None:
    """The verdict of the numbers alone; what it rests on is said of the whole answer."""
    check_numbers(document, where, point, None)
    follows = verdict_of(*point.ends("point"), target.comparison, target.probability)
    check_decision(document, where, point.decision, Decision(follows))


def check_resting(
    document: Document, where: str, point: Point, target: Target | None, settings: SettingsRecord, channel: Channel
) -> None:
    """The verdict of a point whose bounds are not in the document follows from what it says that they decide."""
    model = None
    if settings.verdict_from != "point":
        said = point.verdict if point.verdict is not Verdict.VACUOUS else Verdict.SATISFIED
        model = said if point.reason is None or isinstance(point.reason, WithinBounds) else point.reason.model_verdict
    decision = Judging(settings, channel.classes).decision(point, target, None if model is None else Verdict(model))
    check_decision(document, where, point.decision, decision)


def check_decision(document: Document, where: str, told: Decision, follows: Decision) -> None:
    """A verdict, with what it rests on, is what follows."""
    for finding in _decisions_apart("", told, follows, where):
        refuse(document, finding.where, f"expected {finding.expected}, found {finding.found}")


def check_criterion(document: Document, limit: Fraction | None) -> None:
    """The verdict of a rate follows from its bounds, which are rounded outwards, and from its reason."""
    content: RateResult = document.result
    low, high = content.bounds.lower, content.bounds.upper
    inner = math.nextafter(low, math.inf), math.nextafter(high, -math.inf)
    models = {verdict_of(start, end, "<=", limit).value for start, end in ((low, high), inner)}
    reason, said = content.reason, content.verdict.value
    if reason is not None and not isinstance(reason, WithinBounds):
        models, said = models if said == "inconclusive" else set(), reason.model_verdict
    if said not in models and not (said == "vacuous" and "satisfied" in models):
        refuse(document, "/verdict", f"expected {' or '.join(sorted(models)) or 'inconclusive'}, got {said}")
    if content.condition is not None and content.verdict not in (Verdict.SATISFIED, Verdict.VIOLATED):
        refuse(document, "/condition", f"expected none of a verdict {content.verdict.value}")


def check_index(document: Document, pointer: str, index: int, count: int) -> None:
    """A position is one in a list of that many."""
    if not 0 <= index < count:
        refuse(document, pointer, f"expected a position below {count}, got {index}")


def check_once(document: Document, pointer: str, names: Sequence[Any]) -> None:
    """Each element of a list is there once."""
    for at, name in enumerate(names):
        if name in names[:at]:
            refuse(document, f"{pointer}/{at}", f"expected it once, found it also at {names.index(name)}")
