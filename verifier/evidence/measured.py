"""Whether what was measured fits: collision maps, curves, trade-offs, rates, images, matrices, assessments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from verifier.base.documents import json_values, read_document
from verifier.base.errors import UsageError
from verifier.checking.verdicts import Verdict, worst_verdict
from verifier.closedloop.comparison import BASELINE
from verifier.closedloop.curvefiles import curves_of
from verifier.evidence.documents import Document
from verifier.evidence.resting import (
    Misfits,
    all_ordered,
    misfits,
    near,
    no_probabilities,
    once,
    parts_at,
    positions_apart,
)
from verifier.perception.confusion.document_reader import DocumentReader

if TYPE_CHECKING:
    from verifier.closedloop.trade_offs import TradeOffsResult
    from verifier.collision.document import CollisionStudy
    from verifier.robustness.assessment.document import AssessResult
    from verifier.robustness.campaign.result import CampaignDocument, CampaignRow
    from verifier.robustness.mutators.batch_result import MutateResult
    from verifier.robustness.rates import AdrResult, RateRow


def study_misfits(document: Document) -> Misfits:
    """Inputs are as they are said to be; every map is over the grid, and holds probabilities and known codes."""
    from verifier.collision.comparison import Area  # with all that a study needs, for studies only
    from verifier.collision.document import CollisionInput
    from verifier.collision.estimator import BrakingPolicy
    from verifier.collision.intervals import IntervalKind, safer
    from verifier.collision.kernel import Reason
    from verifier.collision.trust import Trust

    study: CollisionStudy = document.result
    known = [field.name for field in fields(CollisionInput)]
    for k, source in enumerate(study.inputs):
        told = {key: source[key] for key in known if key in source}
        read_document(CollisionInput, told, document.name, f"/inputs/{k}")
    yield from no_probabilities(document.content["policies"], _SHARES, "/policies")
    shape = [len(study.grid.speeds_mps)] * len(study.grid.distances_m)
    for name, kinds in (("reason", Reason), ("trust", Trust), ("area", Area)):
        stated, texts = getattr(study.codes, name), {str(code.value): code.text for code in kinds}
        if stated.keys() != texts.keys() or not all(stated[code].endswith(text) for code, text in texts.items()):
            yield f"/codes/{name}", "expected every code, and what it means"
    for where, rows in (part for path in _MAPS for part in parts_at(study, f"policies/*/{path}")):
        if [len(row) for row in rows] != shape:
            yield where, f"expected {len(shape)} x {len(study.grid.speeds_mps)} cells"
        codes = getattr(study.codes, where.rpartition("/")[2], None)
        if codes is not None and not all(str(code) in codes for row in rows for code in row):
            yield where, "expected codes that the document explains"
    for k, speed in enumerate(study.settings.shown_mps):
        if speed not in study.grid.speeds_mps:
            yield f"/settings/shown_mps/{k}", f"expected a speed of the grid, got {speed}"
    for p, policy in enumerate(study.policies):
        try:
            braking = BrakingPolicy(policy.deceleration_mps2, policy.reaction_s)
            ways = braking.stopping_distance_m(study.grid.speeds_mps).tolist()
            yield from misfits(f"/policies/{p}/stopping_m", list(policy.stopping_m), ways)
        except (UsageError, ValueError) as error:
            yield f"/policies/{p}", str(error)
        for d, detector in enumerate(policy.detectors):
            made = [interval.kind for interval in detector.intervals]
            asked = {IntervalKind.EXACT_SIMULTANEOUS, *(Trust(code).kind for row in detector.trust for code in row)}
            if len({*made}) < len(made) or not {safer(kind, made).value for kind in asked} <= {*made}:
                where = f"/policies/{p}/detectors/{d}/intervals"
                yield where, "expected each kind once, and all that are recommended"
        yield from positions_apart(f"/policies/{p}", policy, "comparisons/*/first|second", len(policy.detectors))


_SHARES = ("probability", "oracle", "p_value", "bootstrap_p_value", "best_share")
"""Keys of a study below which probabilities stand."""


_MAPS = (
    "detectors/*/probability|oracle|reason|trust", "detectors/*/intervals/*/lower|upper",
    "comparisons/*/area|p_value",
)  # fmt: skip
"""Where the maps of a policy stand."""


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
    yield from all_ordered("", result, "rates/*/normalised_interval")
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
        own = [(one.name, one.planner) for one in row.requirements]
        if row.images and own != asked.setdefault(row.detector, own):
            yield f"/campaign/{k}/requirements", "expected those of the detector's other conditions"
    for path in ("requirements/*/bounds", "average_precision_interval|recall_interval|collision_interval"):
        yield from all_ordered("", study, f"campaign/*/{path}", 1)
    yield from _shares_of_baseline("/campaign", study.campaign)
    bins = {magnitude.parameter: magnitude.lower for magnitude in study.magnitudes}
    for k, magnitude in enumerate(study.magnitudes):
        lower = bins[magnitude.parameter]
        if magnitude.parameter not in EDGES or (magnitude.lower, len(magnitude.shares)) != (lower, len(lower)):
            yield f"/magnitudes/{k}", f"expected {' or '.join(EDGES)}, with a share for each of its bins"


def _number(value: Any) -> float:
    return float(value) if type(value) in (int, float) else math.nan


def _shares_of_baseline(where: str, rows: Sequence[RateRow | CampaignRow]) -> Misfits:
    """Normalised rates are rates by that of the detector's own baseline, and ends of intervals are in order."""
    base = {row.detector: row.adr for row in rows if row.condition == BASELINE}
    for k, row in enumerate(rows):
        start = base.get(row.detector)
        follows = row.adr / start if row.adr is not None and start else None
        yield from misfits(f"{where}/{k}/normalised", row.normalised, follows)
    yield from all_ordered(where, rows, "*/adr_interval", 1)


def mutate_misfits(result: MutateResult) -> Misfits:
    """The totals are those of the images, which are of the mutations that are told."""
    images, counts = result.images, result.counts
    totals = {
        "images": len(images),
        "unreadable": sum(image.size is None for image in images),
        "written": sum(len(image.outputs) for image in images),
        "failures": sum(len(image.failures) for image in images),
    }
    for name, expected in totals.items():
        yield from misfits(f"/counts/{name}", getattr(counts, name), expected)
    yield from positions_apart("", result, "images/*/outputs|failures/*/mutation", len(result.mutations))


def assess_misfits(result: AssessResult) -> Misfits:
    """Verdicts of outcomes follow from change and tolerance, and those above them from theirs."""
    from verifier.robustness.assessment.measures import Tolerance  # with all mutations, for assessments only

    for k, system in enumerate(result.systems):
        where, verdicts = f"/systems/{k}", list[Verdict]()
        for n, target in enumerate(system.targets):
            here, left = f"{where}/targets/{n}", [Verdict.INCONCLUSIVE] if target.unchecked else []
            for m, outcome in enumerate(target.outcomes):
                if not near(outcome.change, outcome.tolerance):  # where they are equal, doubles do not tell
                    follows = "satisfied" if outcome.change < outcome.tolerance else "violated"
                    yield from misfits(f"{here}/outcomes/{m}/verdict", outcome.verdict.value, follows)
            verdicts.append(worst_verdict([*left, *(outcome.verdict for outcome in target.outcomes)]))
            yield from misfits(f"{here}/verdict", target.verdict.value, verdicts[-1].value)
        yield from misfits(f"{where}/verdict", system.verdict.value, worst_verdict(verdicts).value)
        if not {*system.priorities} <= {told.name for told in system.circumstances}:
            yield f"{where}/priorities", "expected circumstances of the system"
        targets = {target.name for target in system.targets}
        for n, sweep in enumerate(system.sweeps):
            if len(sweep.settings) != len(sweep.targets) or not {*sweep.targets} <= targets:
                yield f"{where}/sweeps/{n}/targets", "expected a target data set of the system for each setting"
        for n, rule in enumerate(system.rules):
            try:
                if rule.tolerance is not None:
                    Tolerance.told((piece.slope, piece.constant, piece.up_to) for piece in rule.tolerance)
            except ValueError as error:
                yield f"{where}/rules/{n}/tolerance", str(error)
        degradation = system.degradation
        for n, told in enumerate(() if degradation is None else degradation.criteria):
            for name in ("values", "margins", "verdicts", "intervals"):
                if degradation is not None and len(getattr(told, name)) != len(degradation.levels):
                    yield f"{where}/degradation/criteria/{n}/{name}", "expected one entry for each level"
    verdict = worst_verdict(system.verdict for system in result.systems).value
    yield from misfits("/verdict", result.verdict.value, verdict)


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
        for n, points in enumerate(told.curves):
            try:
                curve = TradeOffCurve(*(np.array(getattr(points, name), dtype=np.float64) for name in NUMBERS))
            except ValueError as error:
                yield f"/metrics/{k}/curves/{n}", str(error)
                return
            severity = severities.get(points.condition, "")
            curves.append(NamedCurve(told.metric, points.detector, points.condition, curve, severity))
        try:
            tables.append(compare(curves, groups))
        except (UsageError, AttributeError, LookupError, TypeError) as error:  # no curve, one twice, no such groups
            yield f"/metrics/{k}/curves", str(error)
            return
    again = TradeOffs(result.title, (), {}, {}, (), tuple(tables)).document()
    for name in ("metrics", "flips"):
        stated, follows = (_undrawn(json_values(getattr(one, name))) for one in (result, again))
        yield from misfits(f"/{name}", stated, follows)
    yield from all_ordered("", result, "metrics/*/rows/*/cells/*/area_interval|best_interval", 1)
    yield from all_ordered("", result, "metrics/*/rows/*/cells/*/robustness_interval")


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
