"""The closed-loop curve on logs solved by hand, and its refusals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_courses import course, random_course

from verifier.base.errors import InputError
from verifier.closedloop.closed_loop_curve import (
    LoopSettings,
    at_most_one,
    closed_loop,
    standard_sensitivities,
)
from verifier.closedloop.simulator import simulate
from verifier.closedloop.traces import VehicleSettings

VEHICLE = VehicleSettings()
EXACT = LoopSettings(VEHICLE, "events")
LEVELS = np.array([0.1, 0.2, 0.5])
IMAGES = np.linspace(0, 12, 25).tolist()


def person(at_m, seen_from=None, sensitivity=0.1, images=IMAGES):
    """A positive log with a person at `at_m` (control radius taken off), seen by the detector from some image on."""
    truth = [(i, at_m - s) for i, s in enumerate(images) if s <= at_m]
    seen = [(i, d, sensitivity) for i, d in truth if seen_from is not None and images[i] >= seen_from]
    return course(True, images, seen, truth)


def free(seen=()):
    """A negative log of 40 m."""
    return course(False, np.linspace(0, 40, 81).tolist(), seen)


def test_the_sensitivities_of_the_paper():
    levels = standard_sensitivities()
    assert len(levels) == 100
    assert levels[[0, -1]].tolist() == [1e-4, 1]
    assert np.allclose(levels[1:] / levels[:-1], 10 ** (4 / 99))
    assert standard_sensitivities(3, 0.01, 1).tolist() == pytest.approx([0.01, 0.1, 1])
    for wrong in ((1, 0.1, 1), (3, 0, 1), (3, 1, 0.1), (3, 0.1, np.inf)):
        with pytest.raises(ValueError, match="at least 2 levels and 0 < lowest < highest"):
            standard_sensitivities(*wrong)


@pytest.mark.parametrize("engine", ["steps", "events"])
def test_safety_by_hand(engine):
    # A person at 11.3 m. Seen from 10 m on (at 3 m/s 0.984 m are enough): as good as the truth. From 11 m on, with
    # 0.3 m left: too late. Never seen: too late. Seen only at sensitivity 0.2. One log in which nobody has to stop.
    logs = [person(11.3, 10), person(11.3, 11), person(11.3), person(11.3, 0, 0.2), person(40), free()]
    found = closed_loop(logs, LEVELS, LoopSettings(VEHICLE, engine))
    assert found.safe.tolist() == [[True] * 3, [False] * 3, [False] * 3, [False, True, True], [True] * 3]
    assert found.curve.safety.tolist() == pytest.approx([2 / 5, 3 / 5, 3 / 5])
    assert found.never_stops.tolist() == [4]
    assert found.curve.efficiency.tolist() == [1, 1, 1]


@pytest.mark.parametrize("engine", ["steps", "events"])
def test_the_safety_radius_by_hand(engine):
    # The person is at 11.3 m less the control radius, half a metre further less the safety radius: 11.8 m. Seen from
    # 10.5 m on, with 0.8 m left, the vehicle stops at 10.5 + 125/127 = 11.48 m: too late, but outside the safety
    # radius. Seen from 11 m on it stops at 11.98 m, inside; never seen, it drives through. In the fifth log nobody is
    # ever as near as the safety radius; in the sixth somebody appears at 11 m, 0.3 m from it: too near for the truth,
    # too, while an alarm from 5 m on has stopped the vehicle before.
    def seen_from(at_m):
        near = [(i, max(11.3 - s, 0.0)) for i, s in enumerate(IMAGES)]
        return course(True, IMAGES, [(i, d, 0.1) for i, d in near if IMAGES[i] >= at_m], near)

    alarm = course(True, IMAGES, [(i, 0.0, 0.2) for i in (10, 11, 12)], [(i, 0.0) for i in (22, 23, 24)])
    logs = [*map(seen_from, (10, 10.5, 11, 99, 99)), alarm, free()]
    limit_m = np.array([11.8, 11.8, 11.8, 11.8, np.inf, 11.3, np.inf])
    found = closed_loop(logs, LEVELS, LoopSettings(VEHICLE, engine))
    kept = found.kept(limit_m)
    assert kept.tolist() == [[True] * 3, [True] * 3, [False] * 3, [False] * 3, [True] * 3, [False, True, True]]
    assert found.safe[:5].tolist() == [[True] * 3, [False] * 3, [False] * 3, [False] * 3, [False] * 3]
    assert found.truth_breaks(limit_m).tolist() == [5]
    curve = found.sums(limit_m).curve
    assert curve.safety.tolist() == pytest.approx([3 / 6, 4 / 6, 4 / 6])
    assert curve.efficiency.tolist() == [1, 1, 1]


def test_who_never_drives_keeps_the_safety_radius():
    # Within it from the start: the vehicle is not in motion there as long as it does not start.
    inside = course(True, IMAGES, [(0, 0.0, 0.2)], [(0, 0.0)])
    found = closed_loop([inside, free()], LEVELS, EXACT)
    assert found.kept(np.zeros(2)).tolist() == [[False, True, True]]
    assert found.truth_breaks(np.zeros(2)).tolist() == []


def test_stopping_early_is_safe_and_stopping_at_the_same_place_is():
    truth = [(i, 11.3 - s) for i, s in enumerate(IMAGES) if s <= 11.3]
    early = course(True, IMAGES, [(10, 0.0, 0.1), (11, 0.0, 0.1)], truth)
    found = closed_loop([early, person(11.3, 0), free()], LEVELS, EXACT)
    assert found.safe.all()
    assert found.outcomes.stop_m[0, 0] == pytest.approx(5 + 125 / 127)


def test_the_tolerance_is_a_setting():
    # Reported 1 cm too far away.
    far = [(i, 11.31 - s, 0.1) for i, s in enumerate(IMAGES) if s <= 11.3]
    one = course(True, IMAGES, far, [(i, 11.3 - s) for i, s in enumerate(IMAGES) if s <= 11.3])
    strict, generous = (
        closed_loop([one, free()], LEVELS, LoopSettings(VEHICLE, "events", tolerance_m=tolerance))
        for tolerance in (1e-6, 0.011)
    )
    assert not strict.safe.any()
    assert generous.safe.all()


def test_efficiency_by_hand():
    # Free: 5455/381 s. An alarm at full speed costs braking (250/381 s over 125/127 m) and starting again (750/381 s
    # over 375/127 m) instead of 500/127 m at 3 m/s (500/381 s): 500/381 s more. One at 0.2, another at 0.5; each is
    # seen in two images, for it takes more than one spacing to stop.
    alarms = [(20, 0.0, 0.2), (21, 0.0, 0.2), (50, 0.0, 0.5), (51, 0.0, 0.5)]
    logs = [person(11.3, 0), free(), free(alarms)]
    found = closed_loop(logs, LEVELS, EXACT)
    extra = [0, 500, 1000]
    exact = [float(Fraction(2 * 5455, 2 * 5455 + each)) for each in extra]
    assert found.curve.efficiency.tolist() == pytest.approx(exact, abs=1e-12)
    # With nu = 2 s per stop.
    dear = closed_loop(logs, LEVELS, LoopSettings(VEHICLE, "events", stop_cost_s=2.0))
    exact = [float(Fraction(2 * 5455, 2 * 5455 + each + 762 * stops)) for stops, each in enumerate(extra)]
    assert dear.curve.efficiency.tolist() == pytest.approx(exact, abs=1e-12)
    # One ratio of sums, not a mean of ratios.
    assert exact[1] != pytest.approx((1 + 5455 / (5455 + 500 + 762)) / 2, abs=1e-3)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["steps", "events"]))
def test_the_curve_is_what_plain_sums_say(seed, engine):
    rng = np.random.default_rng(seed)
    courses = [random_course(rng, bool(k % 2)) for k in range(6)]
    if all(each.finish_m == each.image_s_m[0] for each in courses[::2]):
        return
    chosen = LoopSettings(VEHICLE, engine, stop_cost_s=1.5)
    curve = closed_loop(courses, LEVELS, chosen).curve
    found = simulate(courses, LEVELS, VEHICLE, engine)
    for k in range(len(LEVELS)):
        safe = [found.stop_m[c, k] <= found.true_stop_m[c] + 1e-6 for c in (1, 3, 5)]
        lost = sum(found.time_s[c, k] + 1.5 * found.stops[c, k] for c in (0, 2, 4))
        assert curve.safety[k] == pytest.approx(sum(safe) / 3)
        assert curve.efficiency[k] == pytest.approx(sum(found.true_time_s[c] for c in (0, 2, 4)) / lost)
    # Without steps more detections never stop the vehicle later. They can save time in a negative log, though: a stop
    # clears whatever is in view.
    if engine == "events":
        assert np.all(np.diff(curve.safety) >= 0)


def test_logs_that_leave_an_axis_undefined():
    with pytest.raises(InputError, match="no positive log, so safety is undefined"):
        closed_loop([free()], LEVELS, EXACT)
    with pytest.raises(InputError, match="no negative log, so efficiency is undefined"):
        closed_loop([person(11.3)], LEVELS, EXACT)
    with pytest.raises(InputError, match="no length, so efficiency is undefined"):
        closed_loop([person(11.3), course(False, [0, 0])], LEVELS, EXACT)


def test_an_efficiency_beyond_rounding_is_refused():
    with pytest.raises(ValueError, match="faster than the reference vehicle"):
        at_most_one(np.array([0.5, 1.01]))
    assert at_most_one(np.array([0.5, 1 + 1e-15])).tolist() == [0.5, 1]
