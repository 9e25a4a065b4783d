"""The bootstrap over logs: what it draws, and what a draw is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from made_courses import random_course

from verifier.base.statistics import percentile_ends
from verifier.closedloop.closed_loop_curve import (
    LogSums,
    LoopSettings,
    closed_loop,
    draw_logs,
)
from verifier.closedloop.curves import areas
from verifier.closedloop.traces import VehicleSettings

LEVELS = np.array([0.2, 0.5, 1.0])
POSITIVE = np.array([True, True, False, False])


def sums(**changes):
    """Two positive logs, the first always safe, the second at the highest level; two negative ones."""
    found = np.array([[1, 1, 1], [0, 0, 1], [0, 0, 0], [0, 0, 0]], dtype=float)
    part = np.array([[0], [0], [10], [30]], dtype=float)
    whole = np.array([[0, 0, 0], [0, 0, 0], [10, 16, 20], [30, 30, 40]], dtype=float)
    given = {"found": found, "wanted": np.array([1.0, 1, 0, 0]), "part": part, "whole": whole, **changes}
    return LogSums(LEVELS, POSITIVE, **given)


def test_draws_by_hand():
    # Each log once; the first positive and the second negative one twice; the others twice.
    weights = np.array([[1, 1, 1, 1], [2, 0, 0, 2], [0, 2, 2, 0]], dtype=float)
    safety, efficiency = sums().drawn(weights)
    assert safety.tolist() == [[0.5, 0.5, 1], [1, 1, 1], [0, 0, 1]]
    assert efficiency.tolist() == pytest.approx(
        np.array([[1, 40 / 46, 40 / 60], [1, 1, 60 / 80], [1, 20 / 32, 20 / 40]])
    )
    assert sums().curve.safety.tolist() == [0.5, 0.5, 1]


def test_a_metric_with_a_rate_of_false_positives():
    # 1 and 4 images of 40 and 60 with an alarm at the highest level: rate 5/100 of at most 1/10, efficiency 1/2; the
    # second log alone has 4/60, efficiency 1/3.
    alarms = np.array([[0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 2, 4]], dtype=float)
    images = np.array([[0], [0], [40], [60]], dtype=float)
    rated = sums(part=alarms, whole=images, limit=0.1)
    _, efficiency = rated.drawn(np.array([[1, 1, 1, 1], [1, 1, 0, 2]], dtype=float))
    assert efficiency.tolist() == pytest.approx(np.array([[1, 0.8, 0.5], [1, 2 / 3, 1 / 3]]))
    assert rated.curve.efficiency.tolist() == pytest.approx([1, 0.8, 0.5])


def test_a_draw_in_which_nothing_is_wanted_is_undefined():
    found = np.array([[1, 1, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]], dtype=float)
    safety, _ = sums(found=found, wanted=np.array([1.0, 0, 0, 0])).drawn(np.array([[0.0, 2, 1, 1]]))
    assert np.isnan(safety).all()
    assert percentile_ends(np.array([math.nan, 0.25, 0.5, 0.75, 1]), 0.5) == (0.4375, 0.8125)
    assert all(map(math.isnan, percentile_ends(np.array([math.nan]), 0.95)))


@pytest.mark.parametrize("engine", ["steps", "events"])
def test_a_draw_is_the_curve_of_the_drawn_logs(engine):
    rng = np.random.default_rng(4)
    courses = [random_course(rng, positive) for positive in [True] * 4 + [False] * 5]
    settings = LoopSettings(VehicleSettings(), engine, stop_cost_s=0.7)
    found = closed_loop(courses, LEVELS, settings)
    weights = draw_logs(found.positive, 20, rng)
    safety, efficiency = found.sums().drawn(weights)
    for draw in range(20):
        drawn = [each for each, times in zip(courses, weights[draw], strict=True) for _ in range(int(times))]
        curve = closed_loop(drawn, LEVELS, settings).curve
        assert safety[draw].tolist() == pytest.approx(curve.safety.tolist())
        assert efficiency[draw].tolist() == pytest.approx(curve.efficiency.tolist())


def test_logs_are_drawn_within_their_kind():
    positive = np.array([True] * 3 + [False] * 7)
    weights = draw_logs(positive, 20_000, np.random.default_rng(1))
    assert np.all(weights[:, positive].sum(axis=1) == 3)
    assert np.all(weights[:, ~positive].sum(axis=1) == 7)
    # Of n logs each is left out with (1 - 1/n)^n: 8/27 and (6/7)^7 = 0.3399; within 5 standard errors.
    left_out = (weights == 0).mean(axis=0)
    assert left_out[:3] == pytest.approx(8 / 27, abs=5 * math.sqrt(0.25 / 20_000))
    assert left_out[3:] == pytest.approx((6 / 7) ** 7, abs=5 * math.sqrt(0.25 / 20_000))
    again = draw_logs(positive, 20_000, np.random.default_rng(1))
    assert np.array_equal(weights, again)


def test_intervals_cover_about_as_often_as_they_say(thorough):
    # One level, efficiency 1: the area is the share of safe logs. Worlds of 60 positive logs, safe with 0.7.
    rng = np.random.default_rng(8)
    positive = np.array([True] * 60 + [False] * 2)
    covered, worlds = 0, 400 if thorough else 150
    for _ in range(worlds):
        safe = np.append(rng.random(60) < 0.7, [False, False]).astype(float)[:, None]
        world = LogSums(
            np.array([1.0]),
            positive,
            safe,
            positive.astype(float),
            (~positive).astype(float)[:, None],
            (~positive).astype(float)[:, None],
        )
        low, high = percentile_ends(areas(*world.drawn(draw_logs(positive, 200, rng))), 0.9)
        covered += low <= 0.7 <= high
    # 0.9 with a standard error of 0.015 to 0.025; the share of 60 logs moves in steps, which costs or gives some.
    assert 0.84 <= covered / worlds <= 0.95
