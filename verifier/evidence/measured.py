"""Whether the parts of results that were measured fit together: collision maps, curves, rates, images, matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from verifier.base.documents import read_document
from verifier.closedloop.curvefiles import NUMBERS, curves_of
from verifier.closedloop.curves import TradeOffCurve
from verifier.evidence.documents import Document
from verifier.evidence.following import (
    Misfits,
    assess_misfits,
    collision_misfits,
    near,
    rate_misfits,
    trade_offs_misfits,
)
from verifier.evidence.points import is_probability
from verifier.evidence.resting import (
    check_criterion,
    check_index,
    check_once,
    refuse,
    stated_fraction,
)
from verifier.perception.confusion.document_reader import DocumentReader

if TYPE_CHECKING:
    from verifier.closedloop.trade_offs import TradeOffsResult
    from verifier.collision.document import CollisionStudy, RankingRecord
    from verifier.evidence.rates.document import RateResult
    from verifier.robustness.mutators.batch_result import MutateResult


def check_collision(document: Document) -> None:
    """Maps have the shape of the grid, and rankings the detectors of the study."""
    from verifier.collision.document import CollisionInput  # with all that a study needs, for studies only

    study: CollisionStudy = document.result
    known = [each.name for each in fields(CollisionInput)]
    for k, source in enumerate(study.inputs):
        told = {key: source[key] for key in known if key in source}
        read_document(CollisionInput, told, document.name, f"/inputs/{k}")
    shape = len(study.grid.distances_m), len(study.grid.speeds_mps)
    for p, policy in enumerate(study.policies):
        where, detectors = f"/policies/{p}", len(policy.detectors)
        for d, detector in enumerate(policy.detectors):
            for name in ("probability", "reason", "trust"):
                _check_shape(document, f"{where}/detectors/{d}/{name}", getattr(detector, name), shape)
            for k, row in enumerate(detector.probability):
                if not all(each is None or is_probability(each) for each in row):
                    refuse(document, f"{where}/detectors/{d}/probability/{k}", "expected probabilities")
        for k, pair in enumerate(policy.comparisons):
            for name in ("first", "second"):
                check_index(document, f"{where}/comparisons/{k}/{name}", getattr(pair, name), detectors)
            for name in ("area", "p_value"):
                _check_shape(document, f"{where}/comparisons/{k}/{name}", getattr(pair, name), shape)
        if policy.ranking is not None:
            _check_ranking(document, f"{where}/ranking", policy.ranking, detectors)
    refuse_misfits(document, collision_misfits(study))


def _check_shape(document: Document, pointer: str, rows: Sequence[Sequence[Any]], shape: tuple[int, int]) -> None:
    if len(rows) != shape[0] or any(len(row) != shape[1] for row in rows):
        refuse(document, pointer, f"expected {shape[0]} x {shape[1]} cells")


def _check_ranking(document: Document, where: str, ranking: RankingRecord, detectors: int) -> None:
    for k, each in enumerate(ranking.crossings):
        for name in ("better_below", "better_above"):
            check_index(document, f"{where}/crossings/{k}/{name}", getattr(each, name), detectors)
    for k, ratio in enumerate(ranking.ratios):
        for n, at in enumerate(ratio.order):
            check_index(document, f"{where}/ratios/{k}/order/{n}", at, detectors)
        if len(ratio.best_share) != detectors:
            refuse(document, f"{where}/ratios/{k}/best_share", "expected one share per detector")


def check_curves(document: Document) -> None:
    """Curves are read as `robroc` reads them."""
    curves_of(document.content, document.name)


def check_trade_offs(document: Document) -> None:
    """Every curve has its entries."""
    result: TradeOffsResult = document.result
    for at, table in enumerate(result.metrics):
        for k, curve in enumerate(table.curves):
            try:
                TradeOffCurve(*(np.array(getattr(curve, name), dtype=np.float64) for name in NUMBERS))
            except ValueError as error:
                refuse(document, f"/metrics/{at}/curves/{k}", str(error))
    refuse_misfits(document, trade_offs_misfits(result))


def check_rate(document: Document) -> None:
    """Bounds, factors and verdict of a rate follow from each other."""
    content: RateResult = document.result
    limit = None
    if content.acceptance is not None:
        limit = stated_fraction(document, "/acceptance/per_hour", content.acceptance.per_hour)
    check_criterion(document, limit)
    total = 0.0
    for k, term in enumerate(content.terms):
        exposure, where = term.exposure, f"/terms/{k}/exposure"
        if exposure.per_hour is not None and not exposure.lower <= exposure.per_hour <= exposure.upper:
            refuse(document, f"{where}/per_hour", "expected a rate within its own bounds")
        if exposure.lower > exposure.upper:
            refuse(document, f"{where}/lower", f"expected at most the upper bound, {exposure.upper}")
        if exposure.hours is not None:
            hours = stated_fraction(document, f"{where}/hours", exposure.hours)
            counted = exposure.encounters, exposure.per_hour
            if not _is_rate(*counted, hours):
                refuse(document, f"{where}/per_hour", "expected encounters by hours")
        total += term.probability * (exposure.per_hour or 0.0)
    if content.per_hour is not None and not near(total, content.per_hour):
        refuse(document, "/per_hour", f"expected {total}, the sum of probability and exposure over the terms")
    listed = [("/bounds", content.bounds)]
    listed += [(f"/other_bounds/{k}", each) for k, each in enumerate(content.other_bounds)]
    check_once(document, "/other_bounds", [bounds.source for _, bounds in listed])
    for pointer, bounds in listed:
        if bounds.lower > bounds.upper:
            refuse(document, f"{pointer}/lower", f"expected at most the upper bound, {bounds.upper}")
        if bounds.level is None or bounds.error_probability is None:
            continue
        level = 1 - (bounds.error_probability + bounds.error_exposure)
        if not near(level, bounds.level):
            refuse(document, f"{pointer}/level", f"expected {level}, 1 minus both errors")
    refuse_misfits(document, rate_misfits(content))


def _is_rate(encounters: int | None, per_hour: float | None, hours: Fraction) -> bool:
    return encounters is not None and per_hour is not None and near(float(encounters), per_hour * float(hours))


def check_assess(document: Document) -> None:
    """What an assessment computes from its own numbers."""
    refuse_misfits(document, assess_misfits(document.result))


def refuse_misfits(document: Document, found: Misfits) -> None:
    """Refuse a document at the first element that contradicts others."""
    for pointer, message in found:
        refuse(document, pointer, message)


def check_mutate(document: Document) -> None:
    """The totals are those of the images."""
    result: MutateResult = document.result
    images, counts = result.images, result.counts
    check_once(document, "/images", [image.file for image in images])
    written = sum(len(image.outputs) for image in images)
    failures = sum(len(image.failures) for image in images)
    for name, expected in (("images", len(images)), ("written", written), ("failures", failures)):
        told = getattr(counts, name)
        if told != expected:
            refuse(document, f"/counts/{name}", f"expected {expected}, as the images have, got {told}")


def check_confusion(document: Document) -> None:
    """Counts are read as `run` reads them."""
    DocumentReader(document.name).counts(dict(document.content))
