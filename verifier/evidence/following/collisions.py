"""Whether maps, scores and rankings of a study of collisions follow from each other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from verifier.base.documents import json_values
from verifier.evidence.resting import Misfits, misfits, near, once, ordered, shares

if TYPE_CHECKING:
    from verifier.collision.document import CollisionStudy, DetectorRecord, PolicyRecord, RankingRecord, ScoreRecord


def collision_misfits(study: CollisionStudy) -> Misfits:
    """Maps, intervals, scores and rankings on the grid."""
    from verifier.collision.stopping import BrakingPolicy

    distances, speeds = study.grid.distances_m, study.grid.speeds_mps
    for name, values in (("distances_m", distances), ("speeds_mps", speeds)):
        if not all(low < high for low, high in itertools.pairwise((0.0, *values))):
            yield f"/grid/{name}", "expected rising numbers above 0"
    for k, speed in enumerate(study.settings.shown_mps):
        if speed not in speeds:
            yield f"/settings/shown_mps/{k}", f"expected a speed of the grid, got {speed}"
    yield from once("/policies", ((policy.deceleration_mps2, policy.reaction_s) for policy in study.policies))
    for p, policy in enumerate(study.policies):
        where = f"/policies/{p}"
        braking = BrakingPolicy(policy.deceleration_mps2, policy.reaction_s)
        stopping = np.asarray(braking.stopping_distance_m(np.array(speeds)), dtype=np.float64).tolist()
        yield from misfits(f"{where}/stopping_m", list(policy.stopping_m), stopping)
        for d, detector in enumerate(policy.detectors):
            yield from _maps(f"{where}/detectors/{d}", study, detector)
        for k, pair in enumerate(policy.comparisons):
            here = f"{where}/comparisons/{k}"
            for name, number in (("first", pair.first), ("second", pair.second)):
                if number >= len(policy.detectors):
                    yield f"{here}/{name}", f"expected a position below {len(policy.detectors)}, got {number}"
            for name, rows in (("area", pair.area), ("p_value", pair.p_value)):
                if [len(row) for row in rows] != [len(speeds)] * len(distances):
                    yield f"{here}/{name}", f"expected {len(distances)} x {len(speeds)} cells"
            yield from shares(f"{here}/p_value", pair.p_value)
            yield from shares(f"{here}/bootstrap_p_value", pair.bootstrap_p_value or ())
            yield from _coded(f"{here}/area", pair.area, study.codes.area)
            if pair.common_objects > pair.objects:
                yield f"{here}/common_objects", f"expected at most {pair.objects}, all objects"
        if policy.ranking is not None:
            yield from _ranked(f"{where}/ranking", policy.ranking, len(policy.detectors))
        yield from _combined(f"{where}/combination", study, policy)


def _maps(where: str, study: CollisionStudy, detector: DetectorRecord) -> Misfits:
    from verifier.collision.trust import Trust

    distances, speeds = len(study.grid.distances_m), len(study.grid.speeds_mps)
    tables: list[tuple[str, Sequence[Sequence[float | None]]]] = []
    tables += [(f"{where}/{name}", getattr(detector, name)) for name in ("probability", "reason", "trust", "oracle")]
    for k, told in enumerate(detector.intervals):
        tables += [(f"{where}/intervals/{k}/{name}", getattr(told, name)) for name in ("lower", "upper")]
    for here, rows in tables:
        if [len(row) for row in rows] != [speeds] * distances:
            yield here, f"expected {distances} x {speeds} cells"
            return
    if len(detector.images_near) != distances or max(detector.images_near, default=0) > detector.images:
        yield f"{where}/images_near", f"expected at most {detector.images} images for each distance"
    for name in ("probability", "oracle"):
        yield from shares(f"{where}/{name}", getattr(detector, name))
    yield from _coded(f"{where}/reason", detector.reason, study.codes.reason)
    yield from _coded(f"{where}/trust", detector.trust, study.codes.trust)
    trusted = {Trust(code).kind.value for row in detector.trust for code in row if code in set(Trust)}
    missing = {"exact_simultaneous", *trusted} - {each.kind for each in detector.intervals}
    if missing:
        yield f"{where}/intervals", f"expected intervals of kind {', '.join(sorted(missing))}"
    for k, (row, reasons) in enumerate(zip(detector.probability, detector.reason, strict=True)):
        if any((value is None) != (reason != 0) for value, reason in zip(row, reasons, strict=True)):
            yield f"{where}/probability/{k}", "expected null where a code says why, and there only"
    for k, told in enumerate(detector.intervals):
        within = (0.0, 1.0) if told.kind.startswith(("exact", "drives")) else (-math.inf, math.inf)
        for n, pairs in enumerate(zip(told.lower, told.upper, strict=True)):
            for ends in zip(*pairs, strict=True):
                if (ends[0] is None) != (ends[1] is None):
                    yield f"{where}/intervals/{k}/lower/{n}", "expected both ends, or none"
                monotone = told.kind.endswith(("_monotone", "_simultaneous"))
                crossing = monotone and ends[0] is not None  # where its assumption fails
                both = sorted(end for end in ends if end is not None) if crossing else ends
                yield from ordered(f"{where}/intervals/{k}/lower/{n}", both, *within)
    if study.settings.weight == "uniform":
        yield from _scored(f"{where}/score", detector.score, detector)
    for k, point in enumerate(() if detector.closed_loop is None else detector.closed_loop.points):
        here = f"{where}/closed_loop/points/{k}"
        yield from ordered(f"{here}/closer", (point.lower, point.closer), 0, 1)
        yield from ordered(f"{here}/upper", (point.closer, point.upper), 0, 1)
        yield from ordered(f"{here}/interval", point.interval, 0, 1)


def _coded(where: str, codes: Sequence[Sequence[int]], known: Mapping[str, str]) -> Misfits:
    for k, row in enumerate(codes):
        if not all(str(code) in known for code in row):
            yield f"{where}/{k}", "expected codes that the document explains"


def _scored(where: str, told: ScoreRecord, detector: DetectorRecord) -> Misfits:
    """The two parts of a score with a uniform weight, over the points where map and oracle are defined."""
    maps = (np.array(rows, dtype=np.float64) for rows in (detector.probability, detector.oracle))
    excess = np.subtract(*maps)
    used = excess[np.isfinite(excess)]
    for name, part in (("above", used), ("below", -used)):
        follows = float(np.maximum(part, 0).mean()) if len(used) else None
        yield from misfits(f"{where}/{name}", getattr(told, name), follows)
    yield from misfits(f"{where}/covered", told.covered, len(used) / max(excess.size, 1))


def _ranked(where: str, told: RankingRecord, detectors: int) -> Misfits:
    """Losses are lines over the ratio; orders and crossings are those of the lines."""
    from verifier.collision.ranking import Ranking
    from verifier.collision.score import Score

    if len(told.scores) != detectors:
        yield f"{where}/scores", f"expected one score for each of {detectors} detectors"
        return
    scores = tuple(Score(*(math.nan if v is None else v for v in (s.above, s.below, s.covered))) for s in told.scores)
    again = Ranking(("",) * detectors, scores, np.empty((0, detectors)), np.empty((0, detectors)), told.heavy, 0, "")
    for k, ratio in enumerate(told.ratios):
        here = f"{where}/ratios/{k}"
        loss = [None if math.isnan(value) else value for value in again.losses(ratio.ratio).tolist()]
        yield from misfits(f"{here}/loss", list(ratio.loss), loss)
        yield from misfits(f"{here}/order", list(ratio.order), list(again.order(ratio.ratio)))
        for name in ("lower", "upper", "best_share"):
            if len(getattr(ratio, name)) != detectors:
                yield f"{here}/{name}", f"expected one number for each of {detectors} detectors"
        for low, high in zip(ratio.lower, ratio.upper, strict=True):
            yield from ordered(f"{here}/lower", (low, high), 0)
        best = [share for share in ratio.best_share if share is not None]
        yield from shares(f"{here}/best_share", [best])
        if best and not near(math.fsum(best), 1):
            yield f"{here}/best_share", "expected shares that add up to 1"
    crossings: list[dict[str, object]] = json_values(told.crossings)
    found = [{name: value for name, value in crossing.items() if name != "share"} for crossing in crossings]
    yield from misfits(f"{where}/crossings", found, json_values(again.crossings()))


def _combined(where: str, study: CollisionStudy, policy: PolicyRecord) -> Misfits:
    told = policy.combination
    if told is not None:
        shape = [len(study.grid.speeds_mps)] * len(study.grid.distances_m)
        for name in ("choice", "probability"):
            if [len(row) for row in getattr(told, name)] != shape:
                yield f"{where}/{name}", "expected a cell for each distance and speed"
        if not all(-1 <= number < len(policy.detectors) for row in told.choice for number in row):
            yield f"{where}/choice", "expected numbers of detectors, or -1"
        yield from shares(f"{where}/probability", told.probability)
