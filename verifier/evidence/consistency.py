"""What a schema cannot say about a document: that its parts fit together. A report is made only of those that do."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from verifier.analysis.channel_test import Channel, channel_condition, channel_test
from verifier.base.checksums import SUMMED, changed_part
from verifier.base.documents import Content
from verifier.base.errors import InputError, Place, shown
from verifier.base.files import read_json
from verifier.base.numbers import extreme_numbers
from verifier.checking.verdicts import Verdict, verdict_over
from verifier.evidence import measured
from verifier.evidence.documents import Document, checked_document
from verifier.evidence.following.questions import require_misfits, scenarios_left_out
from verifier.evidence.following.rates import against_its_run, rate_misfits, risk_misfits, triggers_misfits
from verifier.evidence.resting import (
    SOLVING,
    Misfits,
    below,
    channel_apart,
    conclusions_apart,
    contradictions,
    decision_apart,
    is_probability,
    misfits,
    model_verdict_apart,
    no_probabilities,
    numbers_apart,
    once,
    parts_at,
    positions_apart,
    refuse_misfits,
    resting_apart,
    told_apart,
    whole_apart,
)
from verifier.questions.compare.gating import Baseline, baseline_of
from verifier.study.collection import Judging
from verifier.study.points import Point
from verifier.study.records import BaselineFile, SettingsRecord
from verifier.study.results import RequirementResult, RunResult

if TYPE_CHECKING:
    from verifier.questions.compare.compare_result import CompareResult, Curve, Entry, RequirementComparison
    from verifier.questions.explain.explain_result import ExplainResult, Violation
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
    document = replace(document, name=file or document.name).holding(document.result)
    _check_parts(document)
    check_sums(document)


def check_sums(document: Document) -> None:
    """Refuse a document that was changed after it was written, as far as its checksums tell; InputError."""
    changed = changed_part(document.content) if f"verifier.{document.kind}" in SUMMED else None
    if changed is not None:
        said = "expected what its checksums are of: it was changed after it was written"
        refuse_misfits(document, iter([(changed, said)]))


def _check_parts(document: Document) -> None:
    for pointer, value in extreme_numbers(document.content):  # JSON as Python reads it holds more than floats
        said = f"{value}" if isinstance(value, float) else f"one of {len(str(abs(value)))} digits"
        refuse_misfits(document, iter([(pointer, f"expected a number, got {said}")]))
    refuse_misfits(document, CHECKS[document.kind](document))


def check_documents(documents: Sequence[Document]) -> None:
    """Refuse documents that cannot be told apart or whose parts do not fit together.

    Raises:
        InputError: no document, two with equal bytes, or an element that contradicts another; it is named.
    """
    if not documents:
        raise InputError("a report needs at least one document")
    seen: dict[str, str] = {}
    for document in documents:
        if document.sha256 in seen:
            raise InputError(
                f"the same document as {shown(seen[document.sha256])}: equal bytes",
                Place(document.name),
                "name every document once",
            )
        seen[document.sha256] = document.name
        _check_parts(document)
    for document in documents:
        refuse_misfits(document, against_its_run(document, documents))
    for document in documents:  # last: what contradicts another part is told as that
        check_sums(document)


def _run_misfits(document: Document) -> Misfits:
    run: RunResult = document.result
    yield from once("/requirements", ((requirement.name, requirement.planner) for requirement in run.requirements))
    for at, requirement in enumerate(run.requirements):
        where = f"/requirements/{at}"
        yield from once(f"{where}/points", (point.scenario for point in requirement.points))
        yield from positions_apart(where, requirement, "worst", len(requirement.points))
        for k, point in enumerate(requirement.points):
            if requirement.is_plain and (point.exact is not None) != run.settings.exact:
                yield f"{where}/points/{k}/exact", "expected a fraction where the settings are exact"
            yield from below(f"{where}/points/{k}", contradictions(point, run.settings, requirement.asked))
            yield from _too_far(document, f"{where}/points/{k}", point)
            ends = None if requirement.strategies is None else requirement.strategies[k]
            if ends is not None and not ends.smallest - SOLVING <= point.probability <= ends.largest + SOLVING:
                yield f"{where}/strategies/{k}", f"expected a range that holds {point.probability}"
    rounded = run.settings.round_transitions is not None
    for u, unanswered in enumerate(run.unanswered):
        for k, finished in enumerate(unanswered.finished):
            apart = numbers_apart(finished, rounded=rounded, asked=unanswered.asked)
            yield from below(f"/unanswered/{u}/finished/{k}", apart)
    yield from scenarios_left_out(run)
    try:
        yield from told_apart(conclusions_apart(document.name, run, run.settings))
    except ValueError as error:  # a floor of 0, or one for bounds that are not there
        yield "/gates/fail_under", str(error)
    drawn = {name for requirement in run.requirements for point in requirement.points for name in point.draws}
    yield from channel_apart(run.channel, run.matrices, drawn)


def _too_far(document: Document, where: str, point: Point) -> Misfits:
    """The engines differ at no point by more than the document says."""
    furthest = document.content.get("engines", {}).get("largest_difference")
    if furthest is not None and point.difference > furthest:
        yield f"{where}/second_engine", f"expected at most {furthest} away from the probability"


def _difference(document: Document) -> Misfits:
    """Of probabilities that are not all listed: the engines differ by one at most."""
    furthest = document.content["engines"]["largest_difference"]
    if not is_probability(furthest):
        yield "/engines/largest_difference", f"expected a difference of probabilities, got {furthest}"


def _explain_misfits(document: Document) -> Misfits:
    for at, told in enumerate(document.content["explanations"]):  # a type says less well where a table is torn
        if told["map"] is not None:
            yield from _map_misfits(f"/explanations/{at}/map", told["map"])
    result: ExplainResult = document.result
    bins = len(result.bins)
    yield from channel_apart(result.channel, result.matrices)
    judging = Judging(result.settings, result.channel.classes)
    yield from once("/explanations", ((explanation.name, explanation.planner) for explanation in result.explanations))
    for at, explanation in enumerate(result.explanations):
        where, point = f"/explanations/{at}", explanation.point
        yield from below(f"{where}/point", contradictions(point, result.settings))
        yield from _too_far(document, f"{where}/point", point)
        yield from decision_apart(f"{where}/point", point.decision, judging.decision(point, explanation.target))
        violation = explanation.violation  # what is missing to 1, or P itself where the formula says what is unwanted
        expected = point.probability if violation.satisfies_the_formula else 1 - point.probability
        if abs(violation.probability - expected) > SOLVING + violation.error:
            yield f"{where}/violation/probability", f"expected {expected}, got {violation.probability}"
        if explanation.world is not None and abs(explanation.world.probability - point.probability) > SOLVING:
            yield f"{where}/world/probability", f"expected {point.probability}, that of the scenario"
        yield from misfits(f"{where}/verdict", explanation.verdict.value, point.verdict.value)
        if explanation.condition is None and point.condition is not None and explanation.verdict is Verdict.SATISFIED:
            yield f"{where}/condition", "expected that of the scenario, which is satisfied on a condition"
        yield from _cause_misfits(f"{where}/violation", violation, bins)
        for path in ("fixes|moves|label_more|gradient/*/bin", "violation/patterns/*/members/*/steps/*/there/*/bin"):
            yield from positions_apart(where, explanation, path, bins)
    yield from _difference(document)
    yield from no_probabilities(document.content["explanations"], _PROBABILITIES, "/explanations")
    yield from whole_apart("", result, result.explanations)


_PROBABILITIES = (
    "perfect_perception", "rate", "rate_from", "rate_to", "corrected", "probability", "chance", "share_of_variance",
)  # fmt: skip
"""Keys of an explanation below which probabilities stand."""


def _cause_misfits(where: str, violation: Violation, bins: int) -> Misfits:
    """Causes and patterns speak of the listed types of detection errors, and the causes add up to the violation."""
    kinds = len(violation.detection_errors)
    yield from positions_apart(where, violation, "detection_errors/*/bin", bins)
    for path in ("causes|corrections/*/detection_errors/*", "patterns/*/steps/*/*/*"):
        yield from positions_apart(where, violation, path, kinds)
    total = math.fsum([violation.rest, *(cause.probability for cause in violation.causes)])
    if not abs(total - violation.probability) <= 1e-12:
        yield f"{where}/causes", f"expected causes that add up to {violation.probability}, found {total}"
    for pointer, part in parts_at(violation, "causes|patterns/*", where):
        if not abs(part.share * violation.probability - part.probability) <= 1e-12:
            yield f"{pointer}/share", "expected the share of the violation"
    listed = math.fsum(pattern.share for pattern in violation.patterns)
    if violation.covered is not None and abs(listed - violation.covered) > SOLVING:
        yield f"{where}/covered", f"expected {listed}, the sum over the patterns, got {violation.covered}"


def _map_misfits(where: str, told: Content) -> Misfits:
    """One axis for each variable, one value or null for each combination of values."""
    lengths, rows = [len(values) for values in told["values"]], told["probability"]
    if len(lengths) != len(told["variables"]) or 0 in lengths:
        yield f"{where}/values", "expected values of each variable"
    if len(rows) != lengths[0]:
        yield f"{where}/probability", f"expected {lengths[0]} entries, got {len(rows)}"
    for k, row in enumerate(rows):
        cells = row if isinstance(row, list) else [row]
        wrong = isinstance(row, list) != (len(lengths) == 2) or len(cells) != [*lengths, 1][1]
        if wrong or not all(cell is None or is_probability(cell) for cell in cells):
            yield f"{where}/probability/{k}", "expected a probability or null for each value"


def _require_misfits(document: Document) -> Misfits:
    result: RequireResult = document.result
    yield from channel_apart(result.channel, result.matrices)
    for at, answer in enumerate(result.answers):
        where = f"/answers/{at}"
        floors = None if answer.floor is None else answer.floor.floors
        if floors is not None and len(floors) != len(answer.cells):
            yield f"{where}/floor/floors", "expected one floor per cell"
        for pointer, point in parts_at(answer, "measured|at_value|perfect", where):
            if point is not None:
                yield from model_verdict_apart(pointer, point, result.requirement.target)
                yield from _too_far(document, pointer, point)
        draws = set(answer.measured.draws)  # of the other scenarios one class decides
        further = [draws | {test.label} for test in result.channel.classes]
        follows = {
            channel_condition(channel_test(result.channel.classes, sorted(names))) for names in (draws, *further)
        }
        if answer.condition not in follows:
            told = " or ".join(sorted(f"{shown(condition)}" for condition in follows))
            yield f"{where}/condition", f"expected {told}, found {shown(answer.condition)}"
    yield from _difference(document)
    yield from require_misfits(result)


def _compare_misfits(document: Document) -> Misfits:
    result: CompareResult = document.result
    for s, spec in enumerate(result.specs):
        yield from once(f"/specs/{s}/requirements", (requirement.name for requirement in spec.requirements))
        channels = {drawn.detector: drawn.channel for drawn in spec.drawn}
        for k, drawn in enumerate(spec.drawn):
            said = [detector.matrices for detector in result.detectors if detector.name == drawn.detector]
            apart = channel_apart(drawn.channel, said[0] if said else None)
            yield from below(f"/specs/{s}/drawn/{k}", apart)
        for r, requirement in enumerate(spec.requirements):
            where = f"/specs/{s}/requirements/{r}"
            if len(requirement.entries) != len(spec.configurations):
                yield f"{where}/entries", "expected one entry per configuration"
            if [len(row) for row in requirement.better] != [len(requirement.entries)] * len(requirement.entries):
                yield f"{where}/better", "expected a row and a column of each configuration"
            for k, entry in enumerate(requirement.entries):
                for name in ("detector", "planner"):
                    expected = getattr(spec.configurations[k], name)
                    if getattr(entry, name) != expected:
                        yield f"{where}/entries/{k}/{name}", f"expected {expected}"
                try:
                    chosen, channel = result.settings.specs[spec.spec][entry.detector], channels[entry.detector]
                except KeyError:
                    yield f"{where}/entries/{k}/detector", "expected settings and a channel of this detector"
                    return
                yield from _entry_misfits(f"{where}/entries/{k}", requirement, entry, chosen, channel)
            for k, curve in enumerate(requirement.curves):
                yield from _curve_misfits(f"{where}/curves/{k}", curve, len(spec.configurations))
        for name in ("non_dominated", "chances"):
            if spec.pareto is not None and len(getattr(spec.pareto, name)) != len(spec.configurations):
                yield f"/specs/{s}/pareto/{name}", "expected one entry per configuration"
    points = list(parts_at(result, "specs/*/requirements/*/entries/*/points/*"))
    for where, point in points:
        yield from _too_far(document, where, point)
    furthest = document.content.get("engines", {}).get("largest_difference")
    largest = max((point.difference for _, point in points), default=0.0)  # where all are listed
    if furthest != largest:
        yield "/engines/largest_difference", f"expected {largest}, the largest, found {furthest}"


def _entry_misfits(
    where: str, requirement: RequirementComparison, entry: Entry, chosen: SettingsRecord, channel: Channel
) -> Misfits:
    """A configuration under a requirement, of a detector with these choices and this channel."""
    for name, ends in (("interval", entry.interval), ("confidence_bounds", entry.confidence_bounds)):
        if ends is not None and ends.lower > ends.upper:
            yield f"{where}/{name}", "expected the lower end below the upper"
    yield from positions_apart(where, entry, "worst", len(entry.points))
    for n, point in enumerate(entry.points):
        yield from below(f"{where}/points/{n}", contradictions(point, chosen))
        yield from resting_apart(f"{where}/points/{n}", point, requirement.target, chosen, channel)
    yield from once(f"{where}/points", (point.scenario for point in entry.points))
    yield from whole_apart(where, entry, entry.points, verdict_over)
    if chosen.verdict_from == "point":  # else by bounds, which are not in the document
        whole = RequirementResult(
            name=requirement.name, planner=entry.planner, formula="", target=requirement.target, points=entry.points
        )
        if entry.worst != whole.worst:
            yield f"{where}/worst", f"expected {whole.worst}, the worst scenario, got {entry.worst}"


def _curve_misfits(where: str, curve: Curve, configurations: int) -> Misfits:
    places = len(curve.places)
    for pointer, rows in parts_at(curve, "probability|lower|upper", where):
        if [len(row) for row in rows] != [configurations] * places:
            yield pointer, "expected one number per place and configuration"
    yield from positions_apart(where, curve, "ranking_changes/*/first|second", configurations)
    yield from positions_apart(where, curve, "ranking_changes/*/before|after", places)


CHECKS: Mapping[str, Callable[[Document], Misfits]] = {
    "run": _run_misfits,
    "explain": _explain_misfits,
    "require": _require_misfits,
    "compare": _compare_misfits,
    "collision": measured.study_misfits,
    "curves": measured.unread_curves,
    "trade_offs": lambda document: measured.trade_offs_misfits(document.result),
    "confusion": measured.unread_counts,
    "rate": lambda document: rate_misfits(document.result),
    "risk": lambda document: risk_misfits(document.result),
    "triggers": lambda document: triggers_misfits(document.result),
    "mutate": lambda document: measured.mutate_misfits(document.result),
    "assess": lambda document: measured.assess_misfits(document.result),
    "adr": lambda document: measured.adr_misfits(document.result),
    "campaign": lambda document: measured.campaign_misfits(document.result),
}
"""Kind of document -> what contradicts itself in it beyond its schema."""
