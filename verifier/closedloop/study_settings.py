"""Every choice of a closed-loop study beside its data, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import get_args

from verifier.closedloop.closed_loop_curve import ClosedLoopSettings
from verifier.closedloop.curves import FPR_MAX
from verifier.closedloop.judged import PathifierMetric
from verifier.closedloop.logs import Floats
from verifier.closedloop.matched import IOU_HALF
from verifier.closedloop.pathifier import Radii
from verifier.closedloop.paths import PathSettings
from verifier.closedloop.settings import USUAL_METRICS, Metric, NeverStops
from verifier.perception.matching import MatchingPolicy

METRICS: tuple[Metric, ...] = get_args(Metric)
DRIVEN = ("safety_radius", "closed_loop")
"""The metrics that are simulated."""


@dataclass(frozen=True)
class StudySettings:
    """Every choice of a study beside its data.

    Attributes:
        radii: the distance that the controller keeps, and the lesser one that is safe; the paper gives no numbers,
            so there is no default.
        loop: vehicle, engine, cost of a stop.
        sensitivity: (K,) increasing levels, for every metric.
        metrics: in rising order of context.
        skip_undefined: leave out a metric for which nothing in the logs counts, and say so, instead of refusing.
        path: how the path goes on after the last image.
        policy: what counts as a match with a person, for the standardizer and both ROCs.
        fpr_max: rate of false alarms per image at which efficiency is 0, for the metrics that are not simulated.
        pathifier: its bins, and what becomes of a first frame.
        severities: condition -> "mild" or "severe".
        groups: name -> conditions, beside Any and AnyMild.
        never_stops: positive logs in which the truth-driven vehicle never stops are "safe" by definition, or "drop"
            leaves them out of every metric.
        draws: of the bootstrap over logs; 0 for none.
        seed: of the bootstrap.
        confidence: of its intervals.
    """

    radii: Radii
    loop: ClosedLoopSettings
    sensitivity: Floats
    metrics: tuple[Metric, ...] = USUAL_METRICS
    skip_undefined: bool = False
    path: PathSettings = field(default_factory=PathSettings)
    policy: MatchingPolicy = IOU_HALF
    fpr_max: float = FPR_MAX
    pathifier: PathifierMetric = field(default_factory=PathifierMetric)
    severities: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    never_stops: NeverStops = "safe"
    draws: int = 1000
    seed: int = 0
    confidence: float = 0.95
