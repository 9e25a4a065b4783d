"""What a study found, as one value that can give its JSON document and its rows; nothing here prints.

The document is byte-stable: equal inputs give equal bytes. It holds no times, no absolute paths and no user names.
Its schema is `collision.schema.json` in the package's folder. Where a number is not defined it is null, and a code
says why.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.collision.bridge import ClosedLoop
from verifier.collision.combination import Combination
from verifier.collision.comparison import Area
from verifier.collision.kernel import Reason
from verifier.collision.pairs_reader import ReadPairs
from verifier.collision.ranking import Ranking
from verifier.collision.stopping import SPEED_UNITS
from verifier.collision.study import Compared, DetectorResult, LoopSettings, PolicyResult, StudySettings
from verifier.collision.trust import Trust

SCHEMA_NAME = "verifier.collision"
SCHEMA_VERSION = 1
RATIOS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""beta / alpha at which a ranking is written down, beside that of the settings."""


@dataclass(frozen=True, eq=False)
class CollisionResult:
    """Everything one `verify collision` found.

    Attributes:
        title: for people.
        detectors: the pairs that went in, with their sources.
        settings: every choice that can change a number.
        policies: what was found under each braking policy.
        versions: of this program and of what it computed with.
        remarks: what a reader must know to read the numbers rightly.
    """

    title: str
    detectors: tuple[ReadPairs, ...]
    settings: StudySettings
    policies: tuple[PolicyResult, ...]
    versions: Mapping[str, str]
    remarks: tuple[str, ...]

    @property
    def unit_mps(self) -> float:
        """Metres per second in one unit of the speeds that people are told."""
        return float(SPEED_UNITS[self.settings.speed_unit])

    def document(self) -> dict[str, Any]:
        """The JSON document."""
        grid = self.settings.grid
        return {
            "schema": SCHEMA_NAME,
            "version": SCHEMA_VERSION,
            "title": self.title,
            "inputs": [{"title": each.pairs.title, **each.origin} for each in self.detectors],
            "settings": _settings_document(self.settings),
            "versions": dict(self.versions),
            "remarks": list(self.remarks),
            "grid": {"distances_m": grid.distances_m.tolist(), "speeds_mps": grid.speeds_mps.tolist()},
            "codes": {
                "reason": {str(each.value): each.text for each in Reason},
                "trust": {str(each.value): f"{each.kind.value}: {each.text}" for each in Trust},
                "area": {str(each.value): each.text for each in Area},
            },
            "policies": [_policy_document(each, self.settings) for each in self.policies],
        }

    def json_text(self) -> str:
        """The document as text, one line per row of a table."""
        return _text(self.document(), 0) + "\n"

    def rows(self) -> Iterator[dict[str, str | int | float]]:
        """One flat row per policy, detector, distance and speed; an empty text where a number is not defined."""
        grid = self.settings.grid
        for policy in self.policies:
            for each in policy.detectors:
                lower, upper = each.confidence.trusted
                tables = [each.map.probability, lower, upper, each.oracle.probability]
                for y, v in np.ndindex(grid.shape):
                    probability, low, high, oracle = (_cell(float(table[y, v])) for table in tables)
                    trust = Trust(int(each.confidence.trust[y, v]))
                    yield {
                        "deceleration_mps2": policy.policy.deceleration_mps2,
                        "reaction_s": policy.policy.reaction_s,
                        "detector": each.map.title,
                        "distance_m": float(grid.distances_m[y]),
                        "speed_mps": float(grid.speeds_mps[v]),
                        "stopping_m": float(each.map.stopping_m[v]),
                        "probability": probability,
                        "lower": low,
                        "upper": high,
                        "interval": trust.kind.value,
                        "oracle": oracle,
                        "reason": Reason(int(each.map.reason[y, v])).name.lower(),
                    }


def _settings_document(settings: StudySettings) -> dict[str, Any]:
    estimator, penalty = settings.estimator, settings.penalty
    return {
        "speed_unit": settings.speed_unit,
        "shown_mps": list(settings.shown_mps),
        "bandwidth": estimator.bandwidth,
        "constant": estimator.constant,
        "width_m": estimator.width_m,
        "two_bandwidths": estimator.two_bandwidths,
        "reach": estimator.reach,
        "level": settings.level,
        "window_m": settings.window_m,
        "subsamples": settings.subsampling.count,
        "subsample_size": settings.subsampling.size,
        "bootstrap": settings.bootstrap,
        "ranking": settings.ranking,
        "seed": settings.seed,
        "alpha": penalty.alpha,
        "beta": penalty.beta,
        "heavy": penalty.heavy,
        "threshold": settings.threshold,
        "weight": "uniform" if settings.weight is None else settings.weight.name,
        "held_out": settings.held_out,
        "closed_loop": None if settings.loop is None else _loop_settings_document(settings.loop),
    }


def _loop_settings_document(loop: LoopSettings) -> dict[str, Any]:
    drive, channel = loop.drive, loop.channel
    return {
        "first_report_m": loop.first_report_m,
        "period_s": drive.period_s,
        "near_m": drive.near_m,
        "margin_m": drive.margin_m,
        "margin_s": drive.margin_s,
        "braking": drive.braking,
        "refinement": drive.refinement,
        "bin_m": channel.bin_m,
        "drawn": channel.drawn,
        "empty_bins": channel.empty_bins,
        "misses": channel.misses,
        "replicates": loop.replicates,
        "exact": loop.engines.exact,
    }


def _policy_document(found: PolicyResult, settings: StudySettings) -> dict[str, Any]:
    return {
        "deceleration_mps2": found.policy.deceleration_mps2,
        "reaction_s": found.policy.reaction_s,
        "stopping_m": found.detectors[0].map.stopping_m.tolist(),
        "detectors": [_detector_document(each) for each in found.detectors],
        "comparisons": [_comparison_document(each) for each in found.comparisons],
        "ranking": None if found.ranking is None else _ranking_document(found.ranking, settings),
        "combination": None if found.combination is None else _combination_document(found.combination),
    }


def _detector_document(found: DetectorResult) -> dict[str, Any]:
    chart, sure = found.map, found.confidence
    return {
        "title": chart.title,
        "pairs": chart.pair_count,
        "images": chart.image_count,
        "width_m": _number(chart.width_m),
        "cross_validated_m": _number(chart.cross_validated_m),
        "oversmooths": bool(chart.oversmooths),
        "score": {
            "above": _number(found.score.above),
            "below": _number(found.score.below),
            "covered": found.score.covered,
        },
        "probability": _table(chart.probability),
        "reason": chart.reason.tolist(),
        "oracle": _table(found.oracle.probability),
        "trust": sure.trust.tolist(),
        "images_near": sure.images.tolist(),
        "intervals": [
            {
                "kind": each.kind.value,
                "covers": each.kind.covers,
                "assumes": each.kind.assumes,
                "resamples": each.resamples,
                "lower": _table(each.lower),
                "upper": _table(each.upper),
            }
            for each in sure.intervals.values()
        ],
        "closed_loop": None if found.loop is None else _loop_document(found.loop, found.loop_ends),
    }


def _loop_document(loop: ClosedLoop, ends: NDArray[np.float64] | None) -> dict[str, Any]:
    points = []
    for at, each in enumerate(loop.points):
        points.append(
            {
                "speed_mps": each.speed_mps,
                "stopping_m": each.stopping_m,
                "brakes_at_first_report": each.brakes,
                "one_shot": each.one_shot,
                "closer": each.closer,
                "lower": each.lower,
                "upper": each.upper,
                "second_engine": each.second,
                "error_kept": each.error_kept,
                "interval": None if ends is None else [float(ends[0, at]), float(ends[1, at])],
                "states": each.states,
            }
        )
    return {
        "first_report_m": loop.first_report_m,
        "width_m": loop.width_m,
        "cars": loop.cars,
        "effective_cars": loop.effective_cars,
        "missed": loop.missed,
        "period_s": loop.period_s,
        "cell_m": loop.cell_m,
        "borrowed_bins": list(loop.borrowed_bins),
        "points": points,
    }


def _comparison_document(each: Compared) -> dict[str, Any]:
    found = each.found
    return {
        "first": each.first,
        "second": each.second,
        "threshold": found.threshold,
        "objects": found.objects,
        "common_objects": found.common_objects,
        "subsamples": found.subsamples,
        "subsample_size": found.subsample_size,
        "area": found.area.tolist(),
        "p_value": _table(found.p_value),
        "bootstrap_p_value": None if each.bootstrap_p is None else _table(each.bootstrap_p),
    }


def _ranking_document(found: Ranking, settings: StudySettings) -> dict[str, Any]:
    asked = settings.penalty.beta / settings.penalty.alpha if settings.penalty.alpha else None
    ratios = sorted({*RATIOS, *([asked] if asked else [])})
    lines = []
    for ratio in ratios:
        lower, upper = found.interval(ratio)
        lines.append(
            {
                "ratio": ratio,
                "order": list(found.order(ratio)),
                "loss": [_number(each) for each in found.losses(ratio)],
                "lower": [_number(each) for each in lower],
                "upper": [_number(each) for each in upper],
                "best_share": [_number(each) for each in found.best_share(ratio)],
            }
        )
    return {
        "weight": found.weight,
        "heavy": found.heavy,
        "scores": [
            {"above": _number(each.above), "below": _number(each.below), "covered": each.covered}
            for each in found.scores
        ],
        "ratios": lines,
        "crossings": [
            {"ratio": each.ratio, "better_below": each.better_below, "better_above": each.better_above}
            for each in found.crossings()
        ],
    }


def _combination_document(found: Combination) -> dict[str, Any]:
    def scores(each: Any) -> dict[str, Any]:
        return {"above": _number(each.above), "below": _number(each.below), "covered": each.covered}

    return {
        "chosen_on": found.chosen_on,
        "scored_on": found.scored_on,
        "choice": found.choice.tolist(),
        "single": [scores(each) for each in found.single],
        "combined": scores(found.combined),
        "probability": _table(found.probability),
    }


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _cell(value: float) -> float | str:
    return "" if np.isnan(value) else float(value)


def _table(values: NDArray[np.float64]) -> list[list[float | None]]:
    return [[_number(each) for each in row] for row in values.tolist()]


def _text(value: Any, depth: int) -> str:
    """JSON in which a list of plain values is one line."""
    pad, inner = "  " * depth, "  " * (depth + 1)
    if isinstance(value, dict) and value:
        parts = [f"{inner}{json.dumps(key)}: {_text(each, depth + 1)}" for key, each in value.items()]
        return "{\n" + ",\n".join(parts) + f"\n{pad}}}"
    if isinstance(value, list) and any(isinstance(each, list | dict) for each in value):
        return "[\n" + ",\n".join(inner + _text(each, depth + 1) for each in value) + f"\n{pad}]"
    return json.dumps(value, allow_nan=False)
