"""One closed-loop run in plain Python, step by step, as section 6.3 of the paper has it: the independent definition.

Nothing here is shared with `verifier.closedloop`: no tables, no arrays, no stretches. It is also the peer of the
benchmark.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

A_MIN, A_MAX, TOP = -4.572, 1.524, 3.0
ROUNDING = 1e-10
"""Metres and m/s. One braking step undoes exactly three accelerating ones, so sums that are 0 come out as 1e-16."""


@dataclass
class PlainRun:
    """Where it stopped for good (inf: nowhere), how many steps it took, how often it stopped, every (s, v)."""

    stop_m: float
    steps: int
    stops: int
    states: list[tuple[float, float]]


def nearest_by_image(course: Any, level: float | None) -> list[float]:
    """Distance of the nearest positive detection of each image; level None: of the nearest person."""
    nearest = [math.inf] * len(course.image_s_m)
    if level is None:
        rows = zip(course.truth_image.tolist(), course.truth_distance_m.tolist(), strict=True)
    else:
        rows = (
            (image, distance)
            for image, distance, strength in zip(
                course.detection_image.tolist(),
                course.detection_distance_m.tolist(),
                course.detection_sensitivity.tolist(),
                strict=True,
            )
            if strength <= level
        )
    for image, distance in rows:
        nearest[image] = min(nearest[image], distance)
    return nearest


def drive(
    course: Any,
    level: float | None,
    dt: float = 0.05,
    hold: bool = False,
    cannot_stop: bool = True,
    start_speed: float = 0.0,
    most_steps: int = 100_000,
    record: bool = False,
) -> PlainRun:
    """Play one log back."""
    positions = course.image_s_m.tolist()
    nearest = nearest_by_image(course, level)
    finish = float(course.end_s_m) if course.positive else positions[-1]
    s, v, image, cleared = positions[0], start_speed, -1, False
    steps = stops = 0
    held = TOP
    states = [(s, v)] if record else []
    while s < finish - ROUNDING:
        fresh = False
        while image + 1 < len(positions) and positions[image + 1] <= s + ROUNDING:
            image += 1
            fresh, cleared = True, False
        distance = math.inf if cleared else nearest[image]
        if not hold:
            distance = max(0.0, distance - (s - positions[image]))
        if fresh or not hold:
            held = min(math.sqrt(2 * -A_MIN * distance), TOP)
            if cannot_stop and v * v / (2 * -A_MIN) > distance:
                held = 0.0
        if held == 0 and v == 0:
            stops += 1
            if course.positive:
                return PlainRun(s, steps, stops, states)
            cleared, held = True, TOP
        faster = min(held, v + A_MAX * dt) if held >= v else max(held, v + A_MIN * dt)
        if abs(faster - held) < ROUNDING:
            faster = held
        s += (v + faster) / 2 * dt
        v = faster
        steps += 1
        if record:
            states.append((s, v))
        if steps > most_steps:
            raise RuntimeError("the run does not end")
    return PlainRun(math.inf, steps, stops, states)
