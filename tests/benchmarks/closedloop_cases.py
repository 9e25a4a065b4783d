"""What each benchmark of the closed loop measures; to be run as `cases.py` is."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from pathlib import Path

import numpy as np
from cases import Measured, alternately, peak_mib

from verifier.closedloop.closed_loop_curve import LoopSettings, closed_loop, standard_sensitivities
from verifier.closedloop.curves import TradeOffCurve, area, robroc
from verifier.closedloop.simulator import EngineName, simulate
from verifier.closedloop.traces import Course, VehicleSettings

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from plain_vehicle import drive

DETECTORS, CONDITIONS, LOGS, IMAGES = 12, 23, 200, 300
LEVELS = standard_sensitivities()
RUNS_OF_THE_PEER = 60
POINTS = 100_000


def made_course(rng: np.random.Generator, positive: bool, alarms_per_image: float) -> Course:
    """A log of 30 s at 10 Hz and 2.8 m/s; of its false positives as many per image as their sensitivity says."""
    gaps = np.maximum(0.28 + rng.normal(0, 0.02, IMAGES - 1), 0)
    position = np.append(0.0, np.cumsum(gaps))
    alarms = int(rng.poisson(alarms_per_image * IMAGES))
    image = np.sort(rng.integers(0, IMAGES, alarms))
    distance, strength = rng.uniform(0, 15, alarms), rng.random(alarms)
    truth, true_distance = np.zeros(0, np.int64), np.zeros(0)
    if positive:
        person_m = position[-1] + 3
        truth = np.flatnonzero(person_m - position < 15)
        true_distance = person_m - position[truth]
        seen = rng.random(len(truth)) < 0.9
        count = int(seen.sum())
        image = np.append(image, truth[seen])
        distance = np.append(distance, np.maximum(0, true_distance[seen] + rng.normal(0, 0.1, count)))
        strength = np.append(strength, 10 ** rng.uniform(-5, 0, count))
    return Course(positive, position, float(position[-1] + 10), image, distance, strength, truth, true_distance)


def whole_study(engine: EngineName) -> Measured:
    """12 detectors x 23 conditions x 100 sensitivities x 200 logs of 30 s, against plain Python on some of them."""
    rng = np.random.default_rng(0)
    settings = LoopSettings(VehicleSettings(), engine)
    ours_s, plain_s, plain_runs, plain_steps = 0.0, 0.0, 0, 0
    kept = []
    for _ in range(DETECTORS):
        # Under the later conditions there are up to twice as many false positives as nominally.
        sources = [
            [made_course(rng, log % 2 == 0, 1 + condition / CONDITIONS) for log in range(LOGS)]
            for condition in range(CONDITIONS)
        ]
        started = time.perf_counter()
        kept += [closed_loop(courses, LEVELS, settings) for courses in sources]
        ours_s += time.perf_counter() - started
        if plain_runs < RUNS_OF_THE_PEER:
            chosen = [
                (int(rng.integers(CONDITIONS)), int(rng.integers(LOGS)), int(rng.integers(100))) for _ in range(6)
            ]
            for condition, log, level in chosen:
                started = time.perf_counter()
                run = drive(sources[condition][log], LEVELS[level])
                plain_s += time.perf_counter() - started
                plain_runs, plain_steps = plain_runs + 1, plain_steps + run.steps
                own = kept[-CONDITIONS + condition].outcomes
                if engine == "steps" and not np.isclose(own.time_s[log, level], 0.05 * run.steps):
                    raise ValueError("plain Python drives otherwise")
    runs = DETECTORS * CONDITIONS * LOGS * len(LEVELS)
    detail = (
        f"{runs} runs of about {plain_steps / plain_runs:.0f} steps; plain Python measured on {plain_runs} of them, "
        f"{plain_s / plain_steps * 1e6:.2f} us per step"
    )
    return Measured(ours_s, plain_s / plain_runs * runs, peak_mib(), detail)


def crowded_logs() -> Measured:
    """Logs with ten false positives per image, so that nearly every image matters, against plain Python."""
    rng = np.random.default_rng(1)
    courses = [made_course(rng, log % 2 == 0, 10) for log in range(LOGS)]
    vehicle = VehicleSettings()
    (ours_s,) = alternately(3, lambda: simulate(courses, LEVELS, vehicle, "steps"))
    started = time.perf_counter()
    for course in courses[:4]:
        for level in LEVELS[::20]:
            drive(course, level)
    plain_s = (time.perf_counter() - started) / 20
    return Measured(ours_s, plain_s * len(courses) * len(LEVELS), peak_mib(), f"{len(courses) * len(LEVELS)} runs")


def worst_case_of_long_curves(ordered: bool) -> Measured:
    """RobROC of two curves of 10^5 points, against sorting their sensitivities once (numpy's argsort)."""
    rng = np.random.default_rng(2)

    def made() -> TradeOffCurve:
        level = rng.random(POINTS)
        return TradeOffCurve(np.sort(level) if ordered else level, rng.random(POINTS), rng.random(POINTS))

    curves = [made(), made()]
    joined = rng.permutation(np.concatenate([each.sensitivity for each in curves]))
    worst = robroc(curves)
    ours_s, area_s, sort_s, stable_s = alternately(
        25,
        lambda: robroc(curves),
        lambda: area(worst),
        lambda: np.argsort(joined),
        lambda: np.argsort(joined, kind="stable"),
    )
    order = "increasing" if ordered else "any order"
    detail = f"{order}; its area {area_s * 1e3:.1f} ms more; a stable sort {stable_s * 1e3:.1f} ms"
    return Measured(ours_s, sort_s, peak_mib(), detail)


CASES = {
    "whole_study_in_steps": lambda: whole_study("steps"),
    "whole_study_in_events": lambda: whole_study("events"),
    "crowded_logs": crowded_logs,
    "long_curves": lambda: worst_case_of_long_curves(True),
    "long_curves_unordered": lambda: worst_case_of_long_curves(False),
}

if __name__ == "__main__":
    print(json.dumps(dataclasses.asdict(CASES[sys.argv[1]]())))
