"""What the vehicle does that is told the truth: the yardstick of the closed loop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from verifier.base.arrays import Mask
from verifier.closedloop.logs import Detections, Logs
from verifier.closedloop.pathifier import courses
from verifier.closedloop.paths import PathSettings
from verifier.closedloop.roboticizer import Standardizer
from verifier.closedloop.settings import EngineName
from verifier.closedloop.simulator import simulate
from verifier.closedloop.vehicle import VehicleSettings


def never_stopped(
    logs: Logs,
    control_radius_m: float,
    vehicle: VehicleSettings,
    engine: EngineName,
    path: PathSettings | None = None,
) -> Mask:
    """(L,) the positive logs in which the reference vehicle never stops.

    Somebody is in its way in some image, but leaves before the vehicle comes near. Such a log is safe by definition,
    whatever the detector does, and says nothing about it.

    Raises:
        InputError: as `courses`.
        LimitError: as `simulate`.
    """
    nothing = Detections(np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 2)))
    blind = replace(logs, detections={"": nothing})
    ahead = courses(blind, "", Standardizer.from_validation([], 1), control_radius_m, path)
    stop_m = simulate(ahead, np.array([1.0]), vehicle, engine).true_stop_m
    return np.asarray(logs.positive & np.isinf(stop_m))
