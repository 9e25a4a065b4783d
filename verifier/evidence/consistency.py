"""What a schema cannot say about a document: that its parts fit together. A report is made only of those that do."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from verifier.analysis.channel_test import Channel, channel_condition, channel_test
from verifier.base import documents
from verifier.base.checksums import SUMMED, changed_part
from verifier.base.errors import InputError, Place, shown
from verifier.base.files import read_json
from verifier.base.numbers import extreme_numbers
from verifier.checking.verdicts import Verdict
from verifier.evidence import measured
from verifier.evidence.documents import Document, checked_document
from verifier.evidence.following.explanations import explain_misfits
from verifier.evidence.following.questions import compare_misfits, require_misfits, scenarios_left_out
from verifier.evidence.following.rates import against_its_run
from verifier.evidence.measured import refuse_misfits
from verifier.evidence.resting import (
    SOLVING,
    check_channel,
    check_condition,
    check_decision,
    check_index,
    check_model_verdict,
    check_numbers,
    check_once,
    check_over,
    check_resting,
    check_worst,
    conclusions_apart,
    is_probability,
    numbers_apart,
    refuse,
)
from verifier.perception.confusion.document_types import Dependence
from verifier.questions.compare.gating import Baseline, baseline_of
from verifier.study.collection import Judging
from verifier.study.gates import BaselineFile
from verifier.study.points import Point
from verifier.study.records import SettingsRecord
from verifier.study.results import RequirementResult, RunResult

if TYPE_CHECKING:
    from verifier.questions.compare.compare_result import CompareResult, Curve, Entry, RequirementComparison
    from verifier.questions.explain.explain_result import Explained, ExplainResult, Violation
    from verifier.questions.require.require_result import RequireResult


def read_document(path: str | Path) -> Document:
    """Read a document of this program, and refuse it unless its parts fit together.

    Raises:
        InputError: the file cannot be read, is no JSON, is no document of this program, does not keep to its schema,
            or contradicts itself; the message names the offending element.
    """
    content, raw = read_json(path)
    document = checked_document(content, raw, str(path))
    check_document(document, str(path))
    return document


def read_baseline(path: str) -> Baseline:
    """An earlier result as the baseline of a gate; InputError as `read_document` and `baseline_of`."""
    document = read_document(path)
    return baseline_of(document.result, BaselineFile(document.name, document.sha256), path)


def check_document(document: Document, file: str | None = None) -> None:
    """Refuse a document whose parts do not fit together, or were changed after it was written.

    Args:
        document: validated by its schema.
        file: what messages call it; its name if left out.

    Raises:
        InputError: an element contradicts another; it is named.
    """
    document = replace(document, name=file or document.name)
    _check_parts(document)
    check_sums(document)


def check_sums(document: Document) -> None:
    """Refuse a document that was changed after it was written, as far as its checksums tell; InputError."""
    changed = changed_part(document.content) if f"verifier.{document.kind}" in SUMMED else None
    if changed is not None:
        refuse(document, changed, "expected what its checksums are of: it was changed after it was written")


def _check_parts(document: Document) -> None:
    _check_numbers(document)
    said = document.content.get("matrices") or {}
    if "dependence" in said:
        documents.read_document(Dependence, said["dependence"], document.name, "/matrices/dependence")
    CHECKS[document.kind](document)


def check_documents(documents: Sequence[Document]) -> None:
    """Refuse documents that cannot be told apart or whose parts do not fit together.

    Raises:
        InputError: no document, two with equal bytes, or an element that contradicts another; it is named.
    """
    if not documents:
        raise InputError("a report needs at least one document")
    seen: dict[str, str] = {}
    for each in documents:
        if each.sha256 in seen:
            raise InputError(
                f"the same document as {shown(seen[each.sha256])}: equal bytes",
                Place(each.name),
                "name every document once",
            )
        seen[each.sha256] = each.name
        _check_parts(each)
    for each in documents:
        refuse_misfits(each, against_its_run(each, documents))
    for each in documents:  # last: what contradicts another part is told as that
        check_sums(each)


def _check_numbers(document: Document) -> None:
    """JSON as Python reads it may hold NaN, infinities, and whole numbers that no float is near to."""
    for pointer, value in extreme_numbers(document.content):
        said = f"{value}" if isinstance(value, float) else f"one of {len(str(abs(value)))} digits"
        refuse(document, pointer, f"expected a number, got {said}")


def _check_run(document: Document) -> None:
    run: RunResult = document.result
    check_once(document, "/requirements", [(each.name, each.planner) for each in run.requirements])
    for at, each in enumerate(run.requirements):
        where = f"/requirements/{at}"
        check_once(document, f"{where}/points", [point.scenario for point in each.points])
        check_index(document, f"{where}/worst", each.worst, len(each.points))
        for k, point in enumerate(each.points):
            if each.is_plain and (point.exact is not None) != run.settings.exact:
                refuse(document, f"{where}/points/{k}/exact", "expected a fraction where the settings are exact")
            check_numbers(document, f"{where}/points/{k}", point, run.settings, each.asked)
            _check_difference(document, "", [(f"{where}/points/{k}", point)])
            ends = None if each.strategies is None else each.strategies[k]
            if ends is not None and not ends.smallest - SOLVING <= point.probability <= ends.largest + SOLVING:
                refuse(document, f"{where}/strategies/{k}", f"expected a range that holds {point.probability}")
    rounded = run.settings.round_transitions is not None
    for u, unanswered in enumerate(run.unanswered):
        for k, finished in enumerate(unanswered.finished):
            for element, message in numbers_apart(finished, rounded=rounded, asked=unanswered.asked):
                refuse(document, f"/unanswered/{u}/finished/{k}{element}", message)
    refuse_misfits(document, scenarios_left_out(run))
    try:
        findings = conclusions_apart(document.name, run, run.settings)
    except ValueError as error:  # a floor of 0, or one for bounds that are not there
        refuse(document, "/gates/fail_under", str(error))
    for finding in findings:
        refuse(document, finding.where, f"expected {finding.expected}, found {finding.found}")
    drawn = {name for each in run.requirements for point in each.points for name in point.draws}
    check_channel(document, "/channel", run.channel, document.content.get("matrices") or {}, drawn)


def _check_difference(document: Document, where: str, points: Sequence[tuple[str, Point]]) -> None:
    """The engines differ at no point by more than the document says; where all are listed, at one by so much."""
    furthest = document.content.get("engines", {}).get("largest_difference")
    for pointer, point in points:
        if furthest is not None and point.difference > furthest:
            refuse(document, f"{pointer}/second_engine", f"expected at most {furthest} away from the probability")
    largest = max((point.difference for _, point in points), default=0.0)
    if where and furthest != largest:
        refuse(document, where, f"expected {largest}, the largest, found {furthest}")


def _check_alike(document: Document) -> None:
    """Of probabilities that are not all listed: the engines differ by one at most."""
    furthest = document.content["engines"]["largest_difference"]
    if not is_probability(furthest):
        refuse(document, "/engines/largest_difference", f"expected a difference of probabilities, got {furthest}")


def _check_explain(document: Document) -> None:
    for at, told in enumerate(document.content["explanations"]):  # a type says less well where a table is torn
        if told["map"] is not None:
            _check_map(document, f"/explanations/{at}/map", told["map"])
    found: ExplainResult = document.result
    bins, matrices = len(found.bins), document.content.get("matrices") or {}
    check_channel(document, "/channel", found.channel, matrices)
    judging = Judging(found.settings, found.channel.classes)
    check_once(document, "/explanations", [(each.name, each.planner) for each in found.explanations])
    for at, each in enumerate(found.explanations):
        where, point = f"/explanations/{at}", each.point
        check_numbers(document, f"{where}/point", point, found.settings)
        _check_difference(document, "", [(f"{where}/point", point)])
        check_decision(document, f"{where}/point", point.decision, judging.decision(point, each.target))
        _check_violation(document, where, each)
        check_worst(document, f"{where}/verdict", each.verdict, [point])
        if each.condition is None and point.condition is not None and each.verdict is Verdict.SATISFIED:
            refuse(document, f"{where}/condition", "expected that of the scenario, which is satisfied on a condition")
        _check_causes(document, f"{where}/violation", each.violation, bins)
        for kind in ("fixes", "moves", "label_more", "gradient"):
            for k, cell in enumerate(getattr(each, kind)):
                check_index(document, f"{where}/{kind}/{k}/bin", cell.bin, bins)
        for k, pattern in enumerate(each.violation.patterns):
            for r, run in enumerate(pattern.members):
                for n, step in enumerate(run.steps):
                    for m, thing in enumerate(step.there):
                        pointer = f"{where}/violation/patterns/{k}/members/{r}/steps/{n}/there/{m}/bin"
                        check_index(document, pointer, thing.bin, bins)
    _check_alike(document)
    refuse_misfits(document, explain_misfits(found, document.content["explanations"]))
    check_worst(document, "/verdict", found.verdict, found.explanations)
    check_condition(document, "/condition", found, found.explanations)


def _check_causes(document: Document, where: str, found: Violation, bins: int) -> None:
    """Causes and patterns speak of the listed types of detection errors, and the causes add up to the violation."""
    kinds = len(found.detection_errors)
    for k, kind in enumerate(found.detection_errors):
        check_index(document, f"{where}/detection_errors/{k}/bin", kind.bin, bins)
    for name in ("causes", "corrections"):
        for k, each in enumerate(getattr(found, name)):
            for n, number in enumerate(each.detection_errors):
                check_index(document, f"{where}/{name}/{k}/detection_errors/{n}", number, kinds)
    for k, pattern in enumerate(found.patterns):
        for n, step in enumerate(pattern.steps):
            for number in (number for reports in step for number in reports):
                check_index(document, f"{where}/patterns/{k}/steps/{n}", number, kinds)
    total = math.fsum([found.rest, *(cause.probability for cause in found.causes)])
    if not abs(total - found.probability) <= 1e-12:
        refuse(document, f"{where}/causes", f"expected causes that add up to {found.probability}, found {total}")
    for name in ("causes", "patterns"):
        for k, each in enumerate(getattr(found, name)):
            if not abs(each.share * found.probability - each.probability) <= 1e-12:
                refuse(document, f"{where}/{name}/{k}/share", "expected the share of the violation")
    listed = math.fsum(pattern.share for pattern in found.patterns)
    if found.covered is not None and abs(listed - found.covered) > SOLVING:
        refuse(document, f"{where}/covered", f"expected {listed}, the sum over the patterns, got {found.covered}")


def _check_violation(document: Document, where: str, explanation: Explained) -> None:
    """The violation is what is missing to 1, or P itself where the formula says what is unwanted."""
    found, value = explanation.violation, explanation.point.probability
    expected = value if found.satisfies_the_formula else 1 - value
    if abs(found.probability - expected) > SOLVING + found.error:
        refuse(document, f"{where}/violation/probability", f"expected {expected}, got {found.probability}")


def _check_map(document: Document, pointer: str, found: Mapping[str, Any]) -> None:
    """One axis for each variable, one value or null for each combination of values."""
    lengths = [len(values) for values in found["values"]]
    rows = found["probability"]
    if len(lengths) != len(found["variables"]) or 0 in lengths:
        refuse(document, f"{pointer}/values", "expected values of each variable")
    if len(rows) != lengths[0]:
        refuse(document, f"{pointer}/probability", f"expected {lengths[0]} entries, got {len(rows)}")
    for k, row in enumerate(rows):
        cells = row if len(lengths) == 2 else [row]
        wrong = not isinstance(cells, list) or (len(lengths) == 2 and len(cells) != lengths[1])
        if wrong or not all(each is None or is_probability(each) for each in cells):
            refuse(document, f"{pointer}/probability/{k}", "expected a probability or null for each value")


def _check_require(document: Document) -> None:
    found: RequireResult = document.result
    check_channel(document, "/channel", found.channel, document.content.get("matrices") or {})
    for at, each in enumerate(found.answers):
        where = f"/answers/{at}"
        floors = None if each.floor is None else each.floor.floors
        if floors is not None and len(floors) != len(each.cells):
            refuse(document, f"{where}/floor/floors", "expected one floor per cell")
        for name in ("measured", "at_value", "perfect"):
            point = getattr(each, name)
            if point is not None:
                check_model_verdict(document, f"{where}/{name}", point, found.requirement.target)
                _check_difference(document, "", [(f"{where}/{name}", point)])
        draws = set(each.measured.draws)  # of the other scenarios one class decides
        further = [draws | {test.label} for test in found.channel.classes]
        follows = {
            channel_condition(channel_test(found.channel.classes, sorted(names))) for names in (draws, *further)
        }
        if each.condition not in follows:
            told = " or ".join(sorted(f"{shown(condition)}" for condition in follows))
            refuse(document, f"{where}/condition", f"expected {told}, found {shown(each.condition)}")
    _check_alike(document)
    refuse_misfits(document, require_misfits(found))


def _check_compare(document: Document) -> None:
    found: CompareResult = document.result
    for s, spec in enumerate(found.specs):
        check_once(document, f"/specs/{s}/requirements", [each.name for each in spec.requirements])
        channels = {drawn.detector: drawn.channel for drawn in spec.drawn}
        for k, drawn in enumerate(spec.drawn):
            named = [each for each in document.content["detectors"] if each["name"] == drawn.detector]
            said = named[0] if named else {}
            check_channel(document, f"/specs/{s}/drawn/{k}/channel", drawn.channel, said.get("matrices") or {})
        for r, each in enumerate(spec.requirements):
            where = f"/specs/{s}/requirements/{r}"
            if len(each.entries) != len(spec.configurations):
                refuse(document, f"{where}/entries", "expected one entry per configuration")
            for k, entry in enumerate(each.entries):
                for name in ("detector", "planner"):
                    expected = getattr(spec.configurations[k], name)
                    if getattr(entry, name) != expected:
                        refuse(document, f"{where}/entries/{k}/{name}", f"expected {expected}")
                try:
                    chosen, channel = found.settings.specs[spec.spec][entry.detector], channels[entry.detector]
                except KeyError:
                    refuse(
                        document, f"{where}/entries/{k}/detector", "expected settings and a channel of this detector"
                    )
                _check_entry(document, f"{where}/entries/{k}", each, entry, chosen, channel)
            for k, curve in enumerate(each.curves):
                _check_curve(document, f"{where}/curves/{k}", curve, len(spec.configurations))
        for name in ("non_dominated", "chances"):
            if spec.pareto is not None and len(getattr(spec.pareto, name)) != len(spec.configurations):
                refuse(document, f"/specs/{s}/pareto/{name}", "expected one entry per configuration")
    _check_difference(document, "/engines/largest_difference", _compared_points(found))
    refuse_misfits(document, compare_misfits(found))


def _check_entry(
    document: Document,
    where: str,
    each: RequirementComparison,
    entry: Entry,
    chosen: SettingsRecord,
    channel: Channel,
) -> None:
    """A configuration under a requirement, of a detector with these choices and this channel."""
    if entry.interval.lower > entry.interval.upper:
        refuse(document, f"{where}/interval", "expected the lower end below the upper")
    check_index(document, f"{where}/worst", entry.worst, len(entry.points))
    for n, point in enumerate(entry.points):
        check_numbers(document, f"{where}/points/{n}", point, chosen)
        check_resting(document, f"{where}/points/{n}", point, each.target, chosen, channel)
    check_once(document, f"{where}/points", [point.scenario for point in entry.points])
    check_over(document, f"{where}/verdict", entry.verdict, entry.points)
    if chosen.verdict_from == "point":  # else by bounds, which are not in the document
        whole = RequirementResult(
            name=each.name, planner=entry.planner, formula="", target=each.target, points=entry.points
        )
        if entry.worst != whole.worst:
            refuse(document, f"{where}/worst", f"expected {whole.worst}, the worst scenario, got {entry.worst}")
    check_condition(document, f"{where}/condition", entry, entry.points)


def _compared_points(found: CompareResult) -> list[tuple[str, Point]]:
    """Pointer and value of every point of a comparison."""
    return [
        (f"/specs/{s}/requirements/{r}/entries/{k}/points/{n}", point)
        for s, spec in enumerate(found.specs)
        for r, requirement in enumerate(spec.requirements)
        for k, entry in enumerate(requirement.entries)
        for n, point in enumerate(entry.points)
    ]


def _check_curve(document: Document, where: str, curve: Curve, configurations: int) -> None:
    places = len(curve.places)
    for name in ("probability", "lower", "upper"):
        if [len(row) for row in getattr(curve, name)] != [configurations] * places:
            refuse(document, f"{where}/{name}", "expected one number per place and configuration")
    counts = {"first": configurations, "second": configurations, "before": places, "after": places}
    for k, change in enumerate(curve.ranking_changes):
        for name, count in counts.items():
            check_index(document, f"{where}/ranking_changes/{k}/{name}", getattr(change, name), count)


CHECKS: Mapping[str, Callable[[Document], None]] = MappingProxyType(
    {
        "run": _check_run,
        "explain": _check_explain,
        "require": _check_require,
        "compare": _check_compare,
        "collision": measured.check_collision,
        "curves": measured.check_curves,
        "trade_offs": measured.check_trade_offs,
        "confusion": measured.check_confusion,
        "rate": measured.check_rate,
        "risk": measured.check_risk,
        "triggers": measured.check_triggers,
        "mutate": measured.check_mutate,
        "assess": measured.check_assess,
        "adr": measured.check_adr,
        "campaign": measured.check_campaign,
    }
)
"""Kind of document -> what is checked beyond its schema."""
