"""Every choice of a closed-loop study beside its data, as one frozen value, made from those of the command."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import get_args

from verifier.base.arrays import Floats
from verifier.base.errors import UsageError
from verifier.base.result import recorded
from verifier.closedloop.closed_loop_curve import LoopSettings, standard_sensitivities
from verifier.closedloop.curves import FPR_MAX
from verifier.closedloop.logs import IOU_HALF
from verifier.closedloop.pathifier import PathSettings, Radii
from verifier.closedloop.settings import USUAL_METRICS, ClosedLoopSettings, FirstFrame, Metric
from verifier.closedloop.traces import VehicleSettings
from verifier.perception.matching import MatchingPolicy

METRICS: tuple[Metric, ...] = get_args(Metric)
DRIVEN = ("safety_radius", "closed_loop")
"""The metrics that are simulated."""


@dataclass(frozen=True)
class StudySettings:
    """Every choice of a study beside its data.

    Attributes:
        radii: the distance that the controller keeps, and the lesser one that is safe; the paper gives no numbers,
            so there is no default; None where no metric asks.
        loop: vehicle, engine, cost of a stop.
        sensitivity: (K,) increasing levels, for every metric.
        metrics: in rising order of context.
        skip_undefined: leave out a metric for which nothing in the logs counts, and say so, instead of refusing.
        path: how the path goes on after the last image.
        policy: what counts as a match with a person, for the standardizer and both ROCs.
        fpr_max: rate of false positives per image at which efficiency is 0, for the metrics that are not simulated.
        first_frame: what becomes of a lenient frame without a previous one, see `judge_pathifier`.
        severities: condition -> "mild" or "severe".
        groups: name -> conditions, beside Any and AnyMild.
        draws: of the bootstrap over logs; 0 for none.
    """

    radii: Radii | None
    loop: LoopSettings
    sensitivity: Floats
    metrics: tuple[Metric, ...] = USUAL_METRICS
    skip_undefined: bool = False
    path: PathSettings = field(default_factory=PathSettings)
    policy: MatchingPolicy = IOU_HALF
    fpr_max: float = FPR_MAX
    first_frame: FirstFrame = "forgiven"
    severities: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    draws: int = 1000
    seed: int = 0
    confidence: float = 0.95

    @property
    def control_m(self) -> float:
        """The distance that the controller keeps; NaN where no metric asks."""
        return math.nan if self.radii is None else self.radii.control_m

    def record(self) -> dict[str, object]:
        """Every choice that can change a number, by name."""
        levels = self.sensitivity
        radii = self.radii
        named = {} if radii is None else {"control_radius_m": radii.control_m, "safety_radius_m": radii.safety_m}
        return {
            **named,
            "path_extension_m": self.path.extension_m,
            "knot_spacing_m": self.path.knot_spacing_m,
            "metrics": list(self.metrics),
            "levels": {"count": len(levels), "lowest": float(levels[0]), "highest": float(levels[-1])},
            "vehicle": asdict(self.loop.vehicle),
            "engine": self.loop.engine,
            "stop_cost_s": self.loop.stop_cost_s,
            "tolerance_m": self.loop.tolerance_m,
            "matching": self.policy.record(),
            "fpr_max": self.fpr_max,
            "first_frame": self.first_frame,
            "severities": dict(self.severities),
            "groups": {name: list(group) for name, group in self.groups.items()},
            "bootstrap": {"draws": self.draws, "seed": self.seed, "confidence": self.confidence},
        }


def study_settings(settings: ClosedLoopSettings) -> StudySettings:
    """The choices of a study; UsageError for one that cannot be meant."""
    chosen = settings.metric or USUAL_METRICS
    try:
        vehicle = VehicleSettings(
            settings.top_speed,
            -settings.deceleration,
            settings.acceleration,
            settings.step,
            settings.start_speed,
            settings.between_images,
            settings.too_close,
        )
        levels = standard_sensitivities(settings.levels, settings.lowest, settings.highest)
        radii = Radii(settings.control_radius, settings.safety_radius) if settings.asks_for_radii else None
    except ValueError as error:
        raise UsageError(str(error)) from None
    return recorded(
        StudySettings,
        settings,
        radii=radii,
        loop=LoopSettings(vehicle, settings.engine, settings.stop_cost, settings.tolerance),
        sensitivity=levels,
        metrics=tuple(metric for metric in METRICS if metric in chosen),
        skip_undefined=not settings.metric,
        path=PathSettings(settings.path_extension),
        policy=_matching_policy(settings),
        severities=settings.severity,
        groups=settings.group,
    )


def _matching_policy(settings: ClosedLoopSettings) -> MatchingPolicy:
    """What counts as a match with a person."""
    if settings.match_distance is None:
        return MatchingPolicy("iou_2d", 0.5 if settings.match_iou is None else settings.match_iou)
    if settings.match_iou is not None:
        raise UsageError("--match-distance and --match-iou are two ways to match; choose one")
    return MatchingPolicy("centre_bev", settings.match_distance)
