"""Whether what was measured fits: collision maps, curves, trade-offs, rates, images, matrices, assessments."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import fields
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from verifier.base.documents import json_values, read_document
from verifier.base.errors import UsageError
from verifier.checking.verdicts import Verdict, worst_verdict
from verifier.closedloop.comparison import BASELINE
from verifier.closedloop.curvefiles import curves_of
from verifier.evidence.documents import Document
from verifier.evidence.following.collisions import collision_misfits
from verifier.evidence.resting import ROUNDING, Misfits, misfits, near, once, ordered
from verifier.perception.confusion.document_reader import DocumentReader

if TYPE_CHECKING:
    from verifier.closedloop.trade_offs import TradeOffsResult
    from verifier.collision.document import CollisionStudy
    from verifier.robustness.assessment.document import AssessResult, DegradationRecord, SystemRecord, TargetRecord
    from verifier.robustness.campaign.result import CampaignDocument, CampaignRow
    from verifier.robustness.mutators.batch_result import MutateResult
    from verifier.robustness.rates import AdrResult, RateRow


def study_misfits(document: Document) -> Misfits:
    """Inputs are as they are said to be; maps, scores and rankings follow from each other."""
    from verifier.collision.document import CollisionInput  # with all that a study needs, for studies only

    study: CollisionStudy = document.result
    known = [each.name for each in fields(CollisionInput)]
    for k, source in enumerate(study.inputs):
        told = {key: source[key] for key in known if key in source}
        read_document(CollisionInput, told, document.name, f"/inputs/{k}")
    return collision_misfits(study)


def unread_curves(document: Document) -> Misfits:
    """Curves are read as `robroc` reads them; InputError."""
    curves_of(document.result, document.name)
    return iter(())


def unread_counts(document: Document) -> Misfits:
    """Counts are read as `run` reads them; InputError."""
    DocumentReader(document.name).counts(dict(document.content))
    return iter(())


def adr_misfits(result: AdrResult) -> Misfits:
    """Rates follow from those at single thresholds, and shares from the baseline's."""
    settings = result.settings
    if type(settings.get("draws")) is not int or not 0 < _number(settings.get("confidence")) < 1:
        yield "/settings", "expected draws, a whole number, and confidence, above 0 and below 1"
    yield from once("/rates", [(row.condition, row.detector) for row in result.rates])
    for k, row in enumerate(result.rates):
        if row.condition not in result.conditions or row.detector not in result.detectors:
            yield f"/rates/{k}", "expected one of the conditions and one of the detectors"
        if row.adr is not None and row.detection_rates:
            mean = sum(row.detection_rates) / len(row.detection_rates)
            yield from misfits(f"/rates/{k}/adr", row.adr, mean)
    yield from _shares_of_baseline("/rates", result.rates)


def campaign_misfits(study: CampaignDocument) -> Misfits:
    """Each detector has one row under each condition, with the same requirements; shares follow from the baseline."""
    from verifier.robustness.campaign.result import EDGES  # with all mutations, for these only

    yield from once("/campaign", [(row.condition, row.detector) for row in study.campaign])
    asked: dict[str, list[tuple[str, str]]] = {}
    for k, row in enumerate(study.campaign):
        if row.detector not in study.detectors:
            yield f"/campaign/{k}/detector", "expected one of the detectors"
        for n, one in enumerate(row.requirements):
            if one.verdict.partition(",")[0] not in {verdict.value for verdict in Verdict}:
                yield f"/campaign/{k}/requirements/{n}/verdict", "expected a verdict"
            yield from ordered(f"/campaign/{k}/requirements/{n}/bounds", one.bounds, 0, 1)
        own = [(one.name, one.planner) for one in row.requirements]
        if row.images and own != asked.setdefault(row.detector, own):
            yield f"/campaign/{k}/requirements", "expected those of the detector's other conditions"
        for name in ("average_precision", "recall", "collision"):
            yield from ordered(f"/campaign/{k}/{name}_interval", getattr(row, f"{name}_interval"), 0, 1)
    yield from _shares_of_baseline("/campaign", study.campaign)
    bins = {found.parameter: found.lower for found in study.magnitudes}
    for k, found in enumerate(study.magnitudes):
        lower = bins[found.parameter]
        if found.parameter not in EDGES or (found.lower, len(found.shares)) != (lower, len(lower)):
            yield f"/magnitudes/{k}", f"expected {' or '.join(EDGES)}, with a share for each of its bins"


def _number(value: Any) -> float:
    return float(value) if type(value) in (int, float) else math.nan


def _shares_of_baseline(where: str, rows: Sequence[RateRow | CampaignRow]) -> Misfits:
    """Normalised rates are rates by that of the detector's own baseline, and ends of intervals are in order."""
    base = {each.detector: each.adr for each in rows if each.condition == BASELINE}
    for k, each in enumerate(rows):
        start = base.get(each.detector)
        follows = each.adr / start if each.adr is not None and start else None
        yield from misfits(f"{where}/{k}/normalised", each.normalised, follows)
        yield from ordered(f"{where}/{k}/adr_interval", each.adr_interval, 0, 1)
        yield from ordered(f"{where}/{k}/normalised_interval", getattr(each, "normalised_interval", None), 0)


def mutate_misfits(result: MutateResult) -> Misfits:
    """The totals are those of the images, whose files lie in the folders of their mutations; a mutation is the one
    that its text stands for."""
    from verifier.robustness.mutators.batch_result import named_mutation  # with all mutations, for these only
    from verifier.robustness.mutators.sweeps import parse_mutation

    for k, told in enumerate(result.mutations):
        try:
            follows = named_mutation(parse_mutation(told.text))
        except UsageError as error:
            yield f"/mutations/{k}/text", str(error)
            return
        yield from misfits(f"/mutations/{k}", json_values(told), json_values(follows))
    yield from once("/mutations", (told.folder for told in result.mutations))
    images, counts = result.images, result.counts
    yield from once("/images", (image.name for image in images))
    written = sum(len(image.outputs) for image in images)
    failures = sum(len(image.failures) for image in images)
    unread = sum(image.size is None for image in images)
    totals = (("images", len(images)), ("unreadable", unread), ("written", written), ("failures", failures))
    for name, expected in totals:
        if getattr(counts, name) != expected:
            yield f"/counts/{name}", f"expected {expected}, as the images have, got {getattr(counts, name)}"
    for k, image in enumerate(images):
        if PurePosixPath(image.name).name != PurePosixPath(image.file).stem:
            yield f"/images/{k}/file", f"expected the file of {image.name}, got {image.file}"
        if (image.size is None) != (image.sha256 is None) or (image.size is None and image.outputs):
            yield f"/images/{k}/sha256", "expected size and checksum of an image that was read, or neither"
        for n, output in enumerate(image.outputs):
            here = result.mutations[output.mutation : output.mutation + 1]
            if not here or output.path != f"{here[0].folder}/{image.name}.png":
                where = f"/images/{k}/outputs/{n}/mutation"
                yield where, f"expected the mutation of the folder, got {output.mutation}"
        for n, failure in enumerate(image.failures):
            if failure.mutation is not None and not 0 <= failure.mutation < len(result.mutations):
                yield f"/images/{k}/failures/{n}/mutation", "expected the number of a mutation, or null"


def assess_misfits(result: AssessResult) -> Misfits:
    """Changes, tolerances, verdicts, priorities and breaks of an assessment."""
    keys = [system.key for system in result.systems]
    for k, system in enumerate(result.systems):
        where = f"/systems/{k}"
        if system.key in keys[:k]:
            yield where, "expected each system once"
        for part in (_circumstances, _relation, _plan):
            yield from part(where, system)
        if system.degradation is not None:
            yield from _degradation(f"{where}/degradation", system.degradation)
    told = [[system.key, *(target.name for target in system.targets)] for system in result.systems]
    if told != [[key, *names] for key, names in result.grid.items()]:
        yield "/systems", "expected the systems and data sets of the grid, in its order"
    verdict = worst_verdict(Verdict(system.verdict) for system in result.systems).value
    yield from misfits("/verdict", result.verdict, verdict)


def _circumstances(where: str, system: SystemRecord) -> Misfits:
    found = []
    for k, told in enumerate(system.circumstances):
        here, missing, significance = f"{where}/circumstances/{k}", None, None
        if told.frequency is not None and told.source_frequency is not None:
            missing = max(0.0, told.frequency - told.source_frequency)
        if told.exposure is not None and told.likelihood is not None and told.severity is not None:
            significance = told.exposure * told.likelihood * told.severity
        elif (told.exposure, told.likelihood, told.severity) != (None, None, None):
            yield here, "expected all of exposure, likelihood and severity, or none"
        yield from misfits(f"{here}/missing", told.missing, missing)
        yield from misfits(f"{here}/significance", told.significance, significance)
        if told.missing is None or told.missing > 0:
            found.append((-(told.significance or 0), -(told.missing or 0.0), k, told.name))
    yield from misfits(f"{where}/priorities", list(system.priorities), [name for *_, name in sorted(found)])


def _relation(where: str, system: SystemRecord) -> Misfits:
    """Task 7: every metric under every distance with a tolerance, and the verdicts that follow."""
    from verifier.robustness.assessment.measures import Tolerance

    counts, verdicts = ("TP", "FP", "FN"), []
    performances = [(f"{where}/source", system.source.performance)]
    performances += [(f"{where}/targets/{k}", target.performance) for k, target in enumerate(system.targets)]
    for here, performance in performances:
        for name, value in (performance or {}).items():
            if name not in counts and value > 1 + ROUNDING:
                yield f"{here}/performance/{name}", f"expected a value from 0 to 1, got {value}"
    circumstances = [told.name for told in system.circumstances]
    for k, target in enumerate(system.targets):
        here = f"{where}/targets/{k}"
        for n, name in enumerate(target.circumstances):
            if name not in circumstances:
                yield f"{here}/circumstances/{n}", "expected one of the circumstances"
        yield from _outcomes(here, system, target)
        left = [Verdict.INCONCLUSIVE] if target.unchecked else []
        verdicts.append(worst_verdict([*left, *(Verdict(outcome.verdict) for outcome in target.outcomes)]))
        yield from misfits(f"{here}/verdict", target.verdict, verdicts[-1].value)
    yield from misfits(f"{where}/verdict", system.verdict, worst_verdict(verdicts).value)
    for kind in ("targets", "circumstances", "rules", "sweeps"):
        told = [part.name for part in getattr(system, kind)]
        for k, name in enumerate(told):
            if name in told[:k]:
                yield f"{where}/{kind}/{k}", "expected each of them once"
    for k, rule in enumerate(system.rules):
        try:
            if rule.tolerance is not None:
                Tolerance.told((each.slope, each.constant, each.up_to) for each in rule.tolerance)
        except ValueError as error:
            yield f"{where}/rules/{k}/tolerance", str(error)
    names = {target.name for target in system.targets}
    for k, sweep in enumerate(system.sweeps):
        if len(sweep.settings) != len(sweep.targets) or not names.issuperset(sweep.targets):
            yield f"{where}/sweeps/{k}/targets", "expected one of the data sets for each setting"


def _outcomes(where: str, system: SystemRecord, target: TargetRecord) -> Misfits:
    for name, told in target.distances.items():
        if told.similarity is not None:
            yield from misfits(f"{where}/distances/{name}/distance", told.distance, 1 - told.similarity)
    rules = {rule.name: rule.tolerance for rule in system.rules if rule.tolerance is not None}
    known = {name: told.distance for name, told in target.distances.items() if told.distance is not None}
    source, own = system.source.performance, target.performance
    follows = list(itertools.product(system.metrics, (name for name in rules if name in known)))
    follows = [] if source is None or own is None else follows
    yield from misfits(f"{where}/outcomes", [(o.metric, o.distance_name) for o in target.outcomes], follows)
    if follows and (left := [name for name in rules if name not in known]) != list(target.unchecked):
        yield f"{where}/unchecked", f"expected {left}, the distances without a value"
    from verifier.robustness.assessment.circumstances import tightening  # with all mutations, for assessments only

    shown = target.circumstances or [c.name for c in system.circumstances]
    by = system.tolerance_scaling
    scales = [
        c.tolerance_scale * float(tightening(c.significance, by)) for c in system.circumstances if c.name in shown
    ]
    for k, outcome in enumerate(target.outcomes):
        pieces = rules[outcome.distance_name]
        piece = next((p for p in pieces if p.up_to is None or outcome.distance <= p.up_to), None)
        if piece is None:
            yield f"{where}/outcomes/{k}/distance", "expected a distance that the tolerance is given for"
            return
        tolerance = (piece.slope * outcome.distance + piece.constant) * outcome.scale
        stated = {
            "source": (source or {}).get(outcome.metric),
            "target": (own or {}).get(outcome.metric),
            "change": abs(outcome.source - outcome.target),
            "distance": known[outcome.distance_name],
            "scale": min(scales, default=1.0),
            "tolerance": tolerance,
        }
        for name, value in stated.items():
            yield from misfits(f"{where}/outcomes/{k}/{name}", getattr(outcome, name), value)
        if not near(outcome.change, tolerance):  # where they are equal, doubles do not tell
            verdict = "satisfied" if outcome.change < tolerance else "violated"
            yield from misfits(f"{where}/outcomes/{k}/verdict", outcome.verdict, verdict)


def _plan(where: str, system: SystemRecord) -> Misfits:
    plan = system.plan
    if plan is not None:
        said = "frequency" if plan.proportions == "target" else "missing"
        asked = {told.name: getattr(told, said) for told in system.circumstances}
        for k, share in enumerate(plan.shares):
            here = f"{where}/plan/shares/{k}"
            if share.images > plan.images:
                yield f"{here}/images", f"expected at most {plan.images}, those of the plan"
            if share.circumstance not in asked:
                yield f"{here}/circumstance", "expected one of the circumstances"
            else:
                yield from misfits(f"{here}/asked", share.asked, asked[share.circumstance])
            yield from ordered(f"{here}/expected", (0.0, share.expected), 0, 1)


def _degradation(where: str, told: DegradationRecord) -> Misfits:
    """Breaks follow from margins and verdicts; whether a margin of 0 fails is not in the document."""
    from verifier.robustness.assessment.degradation import in_order, surely_before
    from verifier.robustness.assessment.document import criterion_record
    from verifier.robustness.brackets import Criterion, break_of

    levels, criteria, breaks = [math.inf if at == "inf" else float(at or 0) for at in told.levels], [], []
    for k, one in enumerate(told.criteria):
        here = f"{where}/criteria/{k}"
        for name in ("values", "margins", "verdicts", "intervals"):
            if len(getattr(one, name)) != len(levels):
                yield f"{here}/{name}", f"expected one entry for each of {len(levels)} levels"
                return
        for n, ends in enumerate(one.intervals):
            yield from ordered(f"{here}/intervals/{n}", ends)
        verdicts = tuple(None if verdict is None else Verdict(verdict) for verdict in one.verdicts)
        parts = (one.kind, one.name, one.limit, one.values, one.margins, verdicts, one.intervals)
        both = [Criterion(*parts, strict) for strict in (False, True)]
        follows = [json_values(criterion_record(c, break_of(c, levels, told.scale)).break_) for c in both]
        stated = json_values(one.break_)
        strict = not any(misfits("", stated, follows[0])) <= any(misfits("", stated, follows[1]))
        yield from misfits(f"{here}/break", stated, follows[strict])
        criteria.append(both[strict])
        breaks.append(break_of(both[strict], levels, told.scale))
    for name, own in (("seen", in_order(breaks, levels)), ("surely_before", surely_before(criteria))):
        yield from misfits(f"{where}/{name}", json_values(getattr(told, name)), json_values(own))


def trade_offs_misfits(result: TradeOffsResult) -> Misfits:
    """Everything but the bootstrap follows from the curves."""
    from verifier.closedloop.comparison import NamedCurve, compare
    from verifier.closedloop.curvefiles import NUMBERS
    from verifier.closedloop.curves import TradeOffCurve
    from verifier.closedloop.trade_offs import TradeOffs

    groups, tables = result.settings.get("groups"), []
    named = result.settings.get("severities")
    for k, told in enumerate(result.metrics):
        severities = {condition.name: condition.severity for condition in told.conditions}
        severities |= named if isinstance(named, dict) else {}
        curves = []
        for n, each in enumerate(told.curves):
            try:
                curve = TradeOffCurve(*(np.array(getattr(each, name), dtype=np.float64) for name in NUMBERS))
            except ValueError as error:
                yield f"/metrics/{k}/curves/{n}", str(error)
                return
            severity = severities.get(each.condition, "")
            curves.append(NamedCurve(told.metric, each.detector, each.condition, curve, severity))
        try:
            tables.append(compare(curves, groups))
        except (UsageError, AttributeError, LookupError, TypeError) as error:  # no curve, one twice, no such groups
            yield f"/metrics/{k}/curves", str(error)
            return
    again = TradeOffs(result.title, (), {}, {}, (), tuple(tables)).document()
    for name in ("metrics", "flips"):
        stated, follows = (_undrawn(json_values(getattr(one, name))) for one in (result, again))
        yield from misfits(f"/{name}", stated, follows)
    for k, table in enumerate(result.metrics):
        for n, row in enumerate(table.rows):
            for m, cell in enumerate(row.cells):
                where = f"/metrics/{k}/rows/{n}/cells/{m}"
                yield from ordered(f"{where}/area_interval", cell.area_interval, 0, 1)
                yield from ordered(f"{where}/robustness_interval", cell.robustness_interval, 0)
                yield from ordered(f"{where}/best_interval", cell.best_interval, 0, 1)


_DRAWN = (
    "area_interval", "robustness_interval", "best_probability", "best_interval", "probability", "step_error",
    "best_without_step",
)  # fmt: skip
"""Keys of trade-offs below which stands what was drawn, or what the other engine gives."""


def _undrawn(value: Any) -> Any:
    """JSON values without these."""
    if isinstance(value, dict):
        return {key: _undrawn(inner) for key, inner in value.items() if key not in _DRAWN}
    return [_undrawn(inner) for inner in value] if isinstance(value, list) else value
