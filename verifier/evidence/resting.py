"""Whether verdicts of documents follow from what stands beside them: numbers, channel, parts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

from verifier.analysis.channel_test import channel_document, class_tests
from verifier.analysis.intervals.tiers import basis_of
from verifier.base.documents import Content, json_values
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
from verifier.evidence.documents import Document, first_fault, schema_of
from verifier.evidence.points import contradictions, decided, following_verdict

if TYPE_CHECKING:
    from verifier.evidence.rates.document import RateResult


def refuse(document: Document, pointer: str, message: str) -> NoReturn:
    """InputError that names an element of a document."""
    raise InputError(message, Place(document.name, path=pointer), "documents are read as this program writes them")


def check_part(document: Document, pointer: str, part: Any, schema: Mapping[str, Any], place: str) -> None:
    """Refuse a part of a document that does not keep to the schema at `place` of another kind of document."""
    found: Any = schema
    for name in place.strip("/").split("/"):
        found = found[name]
    fault = first_fault(part, {"$defs": schema["$defs"], **found})
    if fault is not None:
        inner, message = fault
        refuse(document, pointer + inner, message)


def check_worst(document: Document, pointer: str, told: str, parts: Sequence[Mapping[str, Any]]) -> None:
    """The verdict of a whole is the worst of its parts."""
    worst = worst_verdict(Verdict(part["verdict"]) for part in parts).value
    if told != worst:
        refuse(document, pointer, f"expected the worst verdict, {worst}, found {told}")


def check_over(document: Document, pointer: str, told: str, points: Sequence[Mapping[str, Any]]) -> None:
    """The verdict of a requirement is the worst of its scenarios that are not vacuous."""
    over = verdict_over(Verdict(point["verdict"]) for point in points).value
    if told != over:
        refuse(document, pointer, f"expected the verdict over the scenarios, {over}, found {told}")


def check_condition(document: Document, pointer: str, whole: Content, parts: Sequence[Content]) -> None:
    """The condition of a whole follows from its parts."""
    over = condition_over(
        Verdict(whole["verdict"]), ((Verdict(each["verdict"]), each["condition"]) for each in parts)
    )
    if whole["condition"] != over:
        refuse(
            document,
            pointer,
            f"expected {shown(over)}, which follows from the parts, found {shown(whole['condition'])}",
        )


def check_channel(
    document: Document, pointer: str, channel: Content, matrices: Content, drawn: Set[str] | None = None
) -> None:
    """The test of the channel is that of the matrices, for the classes that are drawn, in the bins that it names."""
    check_part(document, pointer, channel, schema_of("verifier.run"), "/properties/channel")
    labels = [test["label"] for test in channel["classes"]] if drawn is None else sorted(drawn)
    told_bins = {test["label"]: test.get("bins", []) for test in channel["classes"]}
    expected = channel_document(class_tests(matrices, {label: told_bins.get(label, []) for label in labels}))
    if [test["label"] for test in channel["classes"]] != labels:
        refuse(document, f"{pointer}/classes", f"expected the classes that are drawn, {', '.join(labels) or 'none'}")
    for k, (told, follows) in enumerate(zip(channel["classes"], expected["classes"], strict=True)):
        if "bins" in follows and "bins" not in told:
            refuse(document, f"{pointer}/classes/{k}", "expected bins, as the matrices of the document test each bin")
        for name in {**told, **follows}:
            if told.get(name) != follows.get(name):
                said = "the matrices of the document say"
                refuse(document, f"{pointer}/classes/{k}/{name}", f"{said} {follows.get(name)}, got {told.get(name)}")
    if channel["test"] != expected["test"]:
        refuse(document, f"{pointer}/test", f"expected {expected['test']}, got {channel['test']}")


def check_basis(document: Document, settings: Content) -> None:
    """Name, condition and reach of confidence bounds follow from their tier and what it is told with."""
    confidence, pointer = settings["confidence"], "/settings/confidence/bounds"
    if confidence is None:
        return
    told = confidence["bounds"]
    try:
        follows = basis_of(told).document()
    except (KeyError, TypeError, ValueError) as error:
        refuse(document, pointer, f"expected what bounds of one tier rest on: {error}")
    for name, expected in {**follows, "level": confidence["level"]}.items():
        if told[name] != expected:
            refuse(
                document,
                f"{pointer}/{name}",
                f"expected {shown(expected)}, which follows from what is beside it, got {shown(told[name])}",
            )


def check_judged(document: Document, where: str, point: Mapping[str, Any], target: Mapping[str, str] | None) -> None:
    """The verdict of a point of a run follows from its numbers, the channel and the settings."""
    for element, message in contradictions(
        point, target, document.content["settings"], document.content.get("channel")
    ):
        refuse(document, where + element, message)


def check_model_verdict(document: Document, where: str, point: Content) -> None:
    """The verdict of the numbers alone; what it rests on is said of the whole answer."""
    content = document.content
    for element, message in contradictions(point, content["requirement"], content["settings"]):
        refuse(document, where + element, message)
    for name in ("basis", "condition", "reason"):
        if point[name] is not None:
            refuse(document, f"{where}/{name}", f"expected nothing, got {shown(str(point[name]))}")


def check_resting(
    document: Document, where: str, point: Content, target: Content | None, settings: Content, channel: Content
) -> None:
    """The verdict of a point whose bounds are not in the document follows from what it says that they decide."""
    decision = Decision(Verdict.NO_TARGET)
    if settings["verdict_from"] == "point":
        decision = following_verdict(point, target, settings, channel)
    elif target is not None:
        said = point["verdict"] if point["verdict"] != "vacuous" else "satisfied"
        model = Verdict((point["reason"] or {}).get("model_verdict", said))
        decision = decided(point, target, settings, channel, model)
    found = (point["verdict"], *(point[name] for name in ("basis", "condition", "reason")))
    follows = (decision.verdict.value, decision.basis, decision.condition, json_values(decision.reason))
    for name, told, expected in zip(("verdict", "basis", "condition", "reason"), found, follows, strict=True):
        if told != expected:
            refuse(
                document, f"{where}/{name}", f"expected {expected}, which follows from what is beside it, got {told}"
            )


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


def check_target(document: Document, pointer: str, target: Mapping[str, str] | None) -> None:
    """A target is a probability."""
    if (
        target is not None
        and not 0 <= stated_fraction(document, f"{pointer}/probability", target["probability"]) <= 1
    ):
        refuse(document, f"{pointer}/probability", "expected a probability from 0 to 1")


def stated_fraction(document: Document, pointer: str, text: str) -> Fraction:
    """The value of a text such as 19/20; refuses one that is none."""
    try:
        value = Fraction(text)
        float(value)
        return value
    except (ValueError, ZeroDivisionError, OverflowError):
        refuse(document, pointer, f"expected a fraction, got {shown(text)}")


def check_index(document: Document, pointer: str, index: int, count: int) -> None:
    """A position is one in a list of that many."""
    if not 0 <= index < count:
        refuse(document, pointer, f"expected a position below {count}, got {index}")


def check_once(document: Document, pointer: str, names: Sequence[Any]) -> None:
    """Each element of a list is there once."""
    for at, name in enumerate(names):
        if name in names[:at]:
            refuse(document, f"{pointer}/{at}", f"expected it once, found it also at {names.index(name)}")
