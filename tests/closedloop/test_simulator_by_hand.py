"""The simulator on courses solved by hand. S_max = 3, a_max = 1.524 = 381/250, |a_min| = 4.572 = 1143/250.

Free start: 3 m/s after 250/127 s and 375/127 m. Braking from 3 m/s: 250/381 s and 125/127 m.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from made_courses import course

from verifier.base.errors import LimitError
from verifier.closedloop.simulator import simulate
from verifier.closedloop.traces import VehicleSettings, safe_speed_mps, trace

LEVEL = np.array([1.0])
BRAKE_M = float(Fraction(125, 127))
EVERY_READING = [
    VehicleSettings(between_images=between, too_close=close)
    for between in ("continuous", "hold")
    for close in ("cannot_stop", "zero_distance")
]
PAPER = EVERY_READING[0]


def outcome(one, vehicle=PAPER, engine="events"):
    found = simulate([one], LEVEL, vehicle, engine)
    return found.stop_m[0, 0], found.time_s[0, 0], found.stops[0, 0]


def near(value, exact, within=1e-12):
    return abs(value - float(exact)) <= within


def approaching(obstacle_m, images_m, positive=True, **others):
    """An obstacle that is seen in every image up to it."""
    seen = [(i, obstacle_m - s, 0.5) for i, s in enumerate(images_m) if s <= obstacle_m]
    return course(positive, images_m, seen, **others)


def test_full_speed_is_safe_from_0_984_m_on():
    # Footnote 5, "about 1 m": 3^2 / (2 * 4.572) = 9000/9144 = 125/127.
    assert near(PAPER.full_speed_distance_m, Fraction(125, 127))
    distance = np.array([125 / 127 * 1.0000001, 125 / 127 * 0.9999, 0.25, 0.0, np.inf])
    speeds = safe_speed_mps(distance, np.zeros(5), PAPER)
    # At 1/4 m: sqrt(9.144 / 4) = sqrt(2.286).
    assert speeds == pytest.approx([3, 3 * math.sqrt(0.9999), math.sqrt(2.286), 0, 3])
    assert speeds[1] < 3


def test_too_close_is_safe_speed_zero_only_as_far_as_the_reading_says():
    distance, speed = np.array([0.25, 0.25, 0.0]), np.array([1.5, 1.52, 1.0])  # sqrt(2.286) = 1.512
    cannot, zero = (safe_speed_mps(distance, speed, EVERY_READING[k]).tolist() for k in (0, 1))
    assert cannot == pytest.approx([math.sqrt(2.286), 0, 0])
    assert zero == pytest.approx([math.sqrt(2.286), math.sqrt(2.286), 0])


@pytest.mark.parametrize("vehicle", EVERY_READING)
def test_a_free_negative_log_of_40_m(vehicle):
    # 250/127 s, then (40 - 375/127) / 3 = 4705/381 s: together 5455/381 = 14.318 s; 287 steps of 50 ms.
    free = course(False, np.linspace(0, 40, 81))
    stop, time, stops = outcome(free, vehicle)
    assert (stop, stops) == (math.inf, 0)
    assert near(time, Fraction(5455, 381))
    assert outcome(free, vehicle, "steps") == (math.inf, pytest.approx(14.35, abs=1e-12), 0)


def test_an_obstacle_in_sight_from_the_start():
    # Stop exactly at 15 m: 375/127 m of start, 15 - 500/127 = 1405/127 m at 3 m/s, 125/127 m of braking, in
    # 250/127 + 1405/381 + 250/381 = 2405/381 s.
    one = approaching(15, np.linspace(0, 12, 25).tolist())
    stop, time, stops = outcome(one)
    assert near(stop, 15)
    assert near(time, Fraction(2405, 381))
    assert stops == 1
    # The same seen in the first image only: the distance shrinks as the vehicle drives on.
    stop, time, _ = outcome(course(True, [0], [(0, 15, 0.5)], beyond_m=20))
    assert near(stop, 15)
    assert near(time, Fraction(2405, 381))


def test_an_obstacle_too_near_for_top_speed():
    # 1 m ahead: accelerate over x with 2 a x = 2 b (1 - x), x = b / (a + b) = 3/4, v = sqrt(2.286);
    # time v / a + v / b = v * 4 / 4.572.
    stop, time, stops = outcome(course(True, [0], [(0, 1, 0.5)]))
    assert near(stop, 1)
    assert near(time, math.sqrt(2.286) * 4 / 4.572)
    assert stops == 1


@pytest.mark.parametrize("vehicle", EVERY_READING)
@pytest.mark.parametrize("engine", ["steps", "events"])
def test_already_inside_the_control_radius(vehicle, engine):
    assert outcome(course(True, [0, 1, 2], [(0, 0, 0.5)]), vehicle, engine) == (0, 0, 1)
    # In a negative log the stop costs no time at the start: it is cleared, and the vehicle drives the free way.
    images = np.linspace(0, 40, 81)
    free = outcome(course(False, images), vehicle, engine)
    assert outcome(course(False, images, [(0, 0, 0.5)]), vehicle, engine) == (math.inf, pytest.approx(free[1]), 1)


@pytest.mark.parametrize("vehicle", EVERY_READING)
@pytest.mark.parametrize("engine", ["steps", "events"])
def test_no_obstacle(vehicle, engine):
    for seen in ([], [(0, np.inf, 0.5)], [(0, 0.0, 1.5)]):  # nothing, never on the path, too weak
        stop, time, stops = outcome(course(True, [0, 1, 2], seen), vehicle, engine)
        assert (stop, stops) == (math.inf, 0)
        # To the end of the path at 12 m: 250/127 + (12 - 375/127) / 3 = 750/381 + 1149/381 = 1899/381 s.
        assert near(time, Fraction(1899, 381), 1e-12 if engine == "events" else 0.05)


@pytest.mark.parametrize("vehicle", EVERY_READING)
def test_inside_at_full_speed(vehicle):
    # At 10 m the vehicle finds itself inside and needs 125/127 m.
    stop, time, stops = outcome(course(True, [0, 10, 14], [(1, 0, 0.5)]), vehicle)
    assert near(stop, 10 + BRAKE_M)
    # 750/381 s, (10 - 375/127) / 3 = 895/381 s, 250/381 s.
    assert near(time, Fraction(1895, 381))
    assert stops == 1


def test_stopping_twice_in_a_negative_log():
    # False positives inside at 10 m and at 20 m: each time stop after 125/127 m and start again over 375/127 m.
    one = course(False, [0, 10, 20, 40], [(1, 0, 0.5), (2, 0, 0.5)])
    stop, time, stops = outcome(one)
    assert (stop, stops) == (math.inf, 2)
    # At 3 m/s: 40 - 375/127 - 2 * (125 + 375)/127 = 3705/127 m in 3705/381 s; three starts 2250/381 s; two brakings
    # 500/381 s.
    assert near(time, Fraction(3705 + 2250 + 500, 381))


def test_what_is_cleared_stays_cleared_until_the_next_image_only():
    # The same obstacle at 11 m is seen from 10 m and again from 10.2, 10.4, ...: cleared once, and seen again.
    images = [0, 10, 10.2, 10.4, 12, 20]
    one = course(False, images, [(i, 11 - s, 0.5) for i, s in enumerate(images) if s < 11])
    assert outcome(one)[2] == 1  # from 10.4 m it stops at 11 m; that image is in view until 12 m
    inside = course(False, images, [(4, 0, 0.5), (3, 11 - 10.4, 0.5)])
    assert outcome(inside)[2] == 2  # at 11 m, and where the image of 12 m finds it inside


def test_hold_stops_up_to_one_spacing_beyond():
    images = np.arange(0, 20.5, 0.5).tolist()
    hold, hold_zero = EVERY_READING[2:]
    # cannot_stop: from 9.5 m, with 0.5 m left and 3 m/s, brake at once to rest.
    assert near(outcome(approaching(10, images), hold)[0], 9.5 + BRAKE_M)
    # zero_distance: slow down to sqrt(9.144 / 2) for 0.5 m; at 10 m the distance is 0, and that speed needs 0.5 m.
    assert near(outcome(approaching(10, images), hold_zero)[0], 10.5)
    # If no image comes after 9.5 m, the safe speed is never 0 (A10).
    short = [s for s in images if s < 10]
    assert outcome(approaching(10, short), hold_zero)[0] == math.inf
    # The continuous readings stop at the boundary whatever the images do.
    for vehicle in EVERY_READING[:2]:
        assert near(outcome(approaching(10, images), vehicle)[0], 10)
        assert near(outcome(approaching(10, short), vehicle)[0], 10)


def test_under_hold_and_cannot_stop_more_detections_can_mean_no_stop():
    # At 10 m 0.8 m are left: safe speed sqrt(9.144 * 0.8) = 2.70. At 3 m/s that is too close: stop at 10 + 125/127.
    # A false positive at 9 m brakes to v^2 = 9 - 9.144 / 2 = 4.428 at 9.5 m; from there v^2 = 4.428 + 3.048 / 2 =
    # 5.952 at 10 m, which is below 9.144 * 0.8 = 7.3152: the safe speed is 2.70, not 0, and the vehicle drives
    # through.
    images, person, alarm = [0, 9, 9.5, 10, 12], (3, 0.8, 0.5), (1, 0, 0.5)
    few, many = course(True, images, [person]), course(True, images, [person, alarm])
    hold, hold_zero = EVERY_READING[2:]
    assert near(outcome(few, hold)[0], 10 + BRAKE_M)
    assert outcome(many, hold)[0] == math.inf
    for vehicle in (*EVERY_READING[:2], hold_zero):
        assert outcome(many, vehicle)[0] <= outcome(few, vehicle)[0]


def test_only_the_last_of_several_images_at_one_place_is_ever_in_view():
    blocked = course(True, [0, 5, 5, 5, 9], [(1, 0, 0.5), (2, 0, 0.5)])
    assert outcome(blocked)[0] == math.inf
    assert near(outcome(course(True, [0, 5, 5, 5, 9], [(3, 0, 0.5)]))[0], 5 + BRAKE_M)


def test_where_a_run_ends_that_was_not_stopped():
    assert course(True, [0, 1, 1, 3]).finish_m == 13
    assert course(False, [0, 1, 3]).finish_m == 3


def test_courses_without_length():
    # A negative log that stands still is over at once; a positive one still has its ten metres.
    assert outcome(course(False, [0, 0, 0], [(2, 0, 0.5)])) == (math.inf, 0, 0)
    assert near(outcome(course(True, [0, 0, 0], [(2, 4, 0.5)]))[0], 4)
    assert outcome(course(True, [2], [(0, 0, 0.5)], beyond_m=0)) == (math.inf, 0, 0)


def test_the_first_steps_by_hand():
    # 0.0762 m/s per step; s = 0.0762 * 0.05 / 2 * n^2 = 0.001905 n^2. Braking: 0.2286 m/s per step.
    free = trace(course(False, [0, 1]), 1.0, PAPER)
    assert free.speed_mps[:5] == pytest.approx([0, 0.0762, 0.1524, 0.2286, 0.3048])
    assert free.position_m[:5] == pytest.approx([0, 0.001905, 0.00762, 0.017145, 0.03048])
    assert free.time_s[:3] == pytest.approx([0, 0.05, 0.1])
    # 0.0762 m ahead. After three steps 0.059055 m are left, the safe speed is sqrt(0.53999892) = 0.734846, and so on,
    # until the step that begins at rest inside.
    near_by = trace(course(True, [0], [(0, 0.0762, 0.5)]), 1.0, PAPER)
    assert near_by.distance_m[3] == pytest.approx(0.059055)
    assert near_by.safe_speed_mps[3] == pytest.approx(0.734846, abs=1e-6)
    assert near_by.stopped.tolist() == [False] * (len(near_by.stopped) - 1) + [True]
    assert near_by.speed_mps[-1] == near_by.safe_speed_mps[-1] == near_by.distance_m[-1] == 0
    assert 0.0762 <= near_by.position_m[-1] < 0.0762 + 0.15


def test_a_speed_that_is_held_can_be_next_to_nothing(monkeypatch):
    # 10^-12 m ahead: the safe speed is 3.0e-6 m/s, and the next image is 1 m away: 330,000 s.
    hold_zero = EVERY_READING[3]
    creeping = course(True, [0, 1, 2], [(0, 1e-12, 0.5)])
    held = math.sqrt(9.144e-12)
    for engine in ("steps", "events"):
        # Then a free start at 1 m, to the end at 12 m: (11 - 375/127) / 3 + 250/127 s.
        rest = float(Fraction(1772, 381))
        assert outcome(creeping, hold_zero, engine)[1] == pytest.approx(1 / held + rest, abs=0.11)
    monkeypatch.setattr("verifier.closedloop.traces.MOST_STEPS", 1000)
    with pytest.raises(LimitError, match=r"more than 1000 steps of 0\.05 s; it has come to .* of 12 m"):
        trace(creeping, 1.0, hold_zero)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"top_speed_mps": 0.0}, r"top_speed_mps must lie in 1e-06\.\.1e\+06, got 0"),
        ({"top_speed_mps": 1e200}, r"top_speed_mps must lie in 1e-06\.\.1e\+06"),
        ({"a_min_mps2": 4.572}, r"a_min_mps2 must lie in -1e\+06\.\.-1e-06, got 4\.572"),
        ({"a_max_mps2": math.nan}, "a_max_mps2 must lie in"),
        ({"dt_s": math.inf}, "dt_s"),
        ({"start_speed_mps": 3.1}, r"start_speed_mps must lie in 0\.\.3"),
    ],
)
def test_settings_that_are_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        VehicleSettings(**setting)


def test_runs_that_would_take_for_ever_are_refused(monkeypatch):
    one = course(True, [0, 40], [(0, 30.0, 0.5)])
    # 3 / 1.524 s of 1e-6 s.
    with pytest.raises(LimitError, match=r"between rest and top speed lie 1\.97e\+06 steps of 1e-06 s"):
        simulate([one], LEVEL, VehicleSettings(dt_s=1e-6), "steps")
    assert simulate([one], LEVEL, VehicleSettings(dt_s=1e-6), "events").stop_m[0, 0] == pytest.approx(30)
    # With weak brakes the obstacle lowers the safe speed from the start on, so that every step counts.
    monkeypatch.setattr("verifier.closedloop.fleet.MOST_ROUNDS", 100)
    with pytest.raises(LimitError, match=r"after 100 steps within reach of an obstacle 1 runs are under way"):
        simulate([one], LEVEL, VehicleSettings(a_min_mps2=-0.01), "steps")


def test_a_log_too_long_for_the_tables_is_refused_with_the_number(monkeypatch):
    monkeypatch.setattr("verifier.closedloop.fleet.LARGEST_BATCH", 20)
    blocked = course(True, range(9), [(i, 0.0, 0.5) for i in range(9)])
    with pytest.raises(LimitError, match=r"logs with 10 images that matter, at 2 levels, need about .* [KGM]iB"):
        simulate([blocked], np.array([0.5, 1.0]), PAPER, "steps")
