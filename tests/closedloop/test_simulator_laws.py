"""Laws of the simulator, against plain Python and between its two engines, on courses made up at random."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_courses import course, distances, random_course, with_fewer
from plain_vehicle import drive

import verifier.closedloop.simulator as simulator_module
from verifier.closedloop.simulator import simulate
from verifier.closedloop.traces import VehicleSettings, trace

LEVELS = np.linspace(0.05, 1, 7)
seeds = st.integers(0, 2**32 - 1)
vehicles = st.builds(
    VehicleSettings,
    between_images=st.sampled_from(["continuous", "hold"]),
    too_close=st.sampled_from(["cannot_stop", "zero_distance"]),
    start_speed_mps=st.sampled_from([0.0, 1.7, 3.0]),
)
# All but the one under which more detections may mean no stop (see the case solved by hand).
monotone = vehicles.filter(lambda each: (each.between_images, each.too_close) != ("hold", "cannot_stop"))


def plain(one, level, vehicle, **others):
    return drive(
        one,
        level,
        vehicle.dt_s,
        vehicle.between_images == "hold",
        vehicle.too_close == "cannot_stop",
        vehicle.start_speed_mps,
        **others,
    )


def some_courses(seed, count=3):
    rng = np.random.default_rng(seed)
    return [random_course(rng) for _ in range(count)]


@given(seeds, vehicles)
def test_steps_are_those_of_plain_python(seed, vehicle):
    courses = some_courses(seed)
    found = simulate(courses, LEVELS, vehicle, "steps")
    for c, one in enumerate(courses):
        for k, level in enumerate([*LEVELS, None]):
            if level is None:
                own = (found.true_stop_m[c], found.true_time_s[c])
            else:
                own = (found.stop_m[c, k], found.time_s[c, k], found.stops[c, k])
            if own[1] > 5000:
                continue  # a held speed next to nothing; plain Python would take too long
            other = plain(one, level, vehicle)
            assert own == pytest.approx((other.stop_m, other.steps * 0.05, other.stops)[: len(own)], abs=1e-7)


@given(seeds, vehicles)
def test_every_state_of_a_trace_is_that_of_plain_python(seed, vehicle):
    (one,) = some_courses(seed, 1)
    if simulate([one], LEVELS[-1:], vehicle, "steps").time_s[0, 0] > 100:
        return
    states = np.array(plain(one, LEVELS[-1], vehicle, record=True).states)
    found = trace(one, LEVELS[-1], vehicle)
    assert np.abs(np.column_stack([found.position_m, found.speed_mps]) - states).max() < 1e-8


@given(seeds, vehicles)
def test_a_trace_ends_as_the_run_does(seed, vehicle):
    (one,) = some_courses(seed, 1)
    for level in (LEVELS[2], None):
        found = simulate([one], LEVELS[2:3], vehicle, "steps")
        row = [found.stop_m[0, 0], found.time_s[0, 0], found.stops[0, 0]]
        if level is None:
            row = [found.true_stop_m[0], found.true_time_s[0]]
        if row[1] > 100:
            continue
        seen = trace(one, level, vehicle)
        stop = seen.position_m[-1] if one.positive and seen.stopped[-1] else np.inf
        assert row == pytest.approx([stop, seen.time_s[-1], seen.stopped.sum()][: len(row)], abs=1e-7)


@given(seeds, vehicles)
def test_the_energy_of_the_motion_is_consistent(seed, vehicle):
    (one,) = some_courses(seed, 1)
    if simulate([one], LEVELS[-1:], vehicle, "steps").time_s[0, 0] > 100:
        return
    found = trace(one, LEVELS[-1], vehicle)
    acceleration = np.diff(found.speed_mps) / vehicle.dt_s
    assert np.all((acceleration >= -4.572 - 1e-9) & (acceleration <= 1.524 + 1e-9))
    assert np.all((found.speed_mps >= 0) & (found.speed_mps <= 3))
    # Work per kilogram over the way is the gain of kinetic energy, step by step and so in total.
    work = acceleration * np.diff(found.position_m)
    assert work == pytest.approx(np.diff(found.speed_mps**2) / 2, abs=1e-9)


@given(seeds, monotone, st.sampled_from([0.3, 0.8]))
def test_more_detections_never_make_the_vehicle_faster(seed, vehicle, share):
    rng = np.random.default_rng(seed)
    whole = random_course(rng, positive=True)
    part = with_fewer(whole, rng.random(len(whole.detection_image)) < share)
    more, fewer = (simulate([each], LEVELS, vehicle, "events") for each in (whole, part))
    assert np.all(more.stop_m <= fewer.stop_m + 1e-9)
    # A run that does not end by a stop covers the same way, and not in less time.
    through = np.isinf(more.stop_m)
    assert np.all(more.time_s[through] >= fewer.time_s[through] - 1e-9)
    # The same holds for rising levels of one detector.
    assert np.all(more.stop_m[:, 1:] <= more.stop_m[:, :-1] + 1e-9)


@given(seeds, monotone)
def test_more_detections_never_make_a_step_faster(seed, vehicle):
    # In one state, a step with more detections ends no faster: here the first step, from every start speed.
    rng = np.random.default_rng(seed)
    distance = rng.exponential(1, 12)
    for start in (0.0, 1.0, 3.0):
        one = VehicleSettings(
            between_images=vehicle.between_images, too_close=vehicle.too_close, start_speed_mps=start
        )
        speeds = [trace(course(True, [0], [(0, each, 0.5)]), 1.0, one).speed_mps for each in np.sort(distance)]
        after = [each[1] if len(each) > 1 else 0.0 for each in speeds]
        assert np.all(np.diff(after) >= -1e-12)


@pytest.mark.every(3)
@pytest.mark.parametrize("between", ["continuous", "hold"])
@pytest.mark.parametrize("close", ["cannot_stop", "zero_distance"])
def test_steps_converge_to_events_at_first_order(between, close, thorough):
    rng = np.random.default_rng(3)
    courses = [random_course(rng) for _ in range(60 if thorough else 25)]
    readings = {"between_images": between, "too_close": close}
    exact = simulate(courses, LEVELS, VehicleSettings(**readings), "events")
    steps = [3e-3, 3e-4, 3e-5] if thorough else [1e-2, 1e-3, 1e-4]
    late, beyond = [], []
    for dt in steps:
        found = simulate(courses, LEVELS, VehicleSettings(dt_s=dt, **readings), "steps")
        same = (found.stops == exact.stops) & (np.isfinite(found.stop_m) == np.isfinite(exact.stop_m))
        # A coarse step can miss an image, or stop in front of another one; the finer the rarer.
        assert np.mean(~same) <= 20 * dt
        late.append(np.abs(found.time_s - exact.time_s)[same].mean())
        stopped = same & np.isfinite(exact.stop_m)
        beyond.append((found.stop_m[stopped] - exact.stop_m[stopped]).mean())
    order = [np.polyfit(np.log(steps), np.log(each), 1)[0] for each in (late, beyond)]
    assert order == pytest.approx([1, 1], abs=0.15)
    assert late[-1] < 20 * steps[-1]
    assert beyond[-1] < 3 * steps[-1] * 1.5


@given(seeds, vehicles, st.sampled_from(["steps", "events"]))
def test_a_run_does_not_depend_on_the_others(seed, vehicle, engine):
    courses = some_courses(seed, 4)
    together = simulate(courses, LEVELS, vehicle, engine)
    for c, one in enumerate(courses):
        for k in (0, 3):
            alone = simulate([one], LEVELS[k : k + 1], vehicle, engine)
            assert alone.stop_m[0, 0] == together.stop_m[c, k]
            assert alone.time_s[0, 0] == together.time_s[c, k]
            assert alone.stops[0, 0] == together.stops[c, k]
            assert alone.true_time_s[0] == together.true_time_s[c]


def test_batches_of_any_size_give_the_same(monkeypatch):
    courses = some_courses(5, 20)
    whole = simulate(courses, LEVELS, VehicleSettings(), "steps")
    for size in (1, 200, 1000):
        monkeypatch.setattr(simulator_module, "LARGEST_TABLE", size)
        parts = simulate(iter(courses), LEVELS, VehicleSettings(), "steps")
        for name in ("stop_m", "time_s", "stops", "true_stop_m", "true_time_s"):
            assert np.array_equal(getattr(whole, name), getattr(parts, name)), name


@given(seeds, vehicles)
def test_the_order_of_detections_does_not_matter(seed, vehicle):
    (one,) = some_courses(seed, 1)
    rng = np.random.default_rng(seed)
    mixed = with_fewer(one, rng.permutation(len(one.detection_image)))
    both = [simulate([each], LEVELS, vehicle, "steps") for each in (one, mixed)]
    assert np.array_equal(both[0].time_s, both[1].time_s)
    assert np.array_equal(both[0].stop_m, both[1].stop_m)


def test_with_steps_the_place_where_a_step_ends_can_decide():
    # More detections, and yet the vehicle stops later: it brakes for a false positive, so its later steps end
    # elsewhere, and overshoots a boundary into the view of another image. Without steps the law holds.
    rng = np.random.default_rng(139)
    images = int(rng.integers(1, 12))
    position = np.cumsum(1 + rng.exponential(1, images))
    size = int(rng.integers(0, 40))
    seen = zip(rng.integers(0, images, size), distances(rng, size), rng.random(size), strict=True)
    whole = course(True, position.tolist(), list(seen))
    part = with_fewer(whole, rng.random(size) < 0.6)
    for engine, later in (("steps", True), ("events", False)):
        more, fewer = (simulate([each], LEVELS, VehicleSettings(), engine).stop_m for each in (whole, part))
        assert np.any(more > fewer + 1e-9) == later
