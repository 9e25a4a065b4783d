"""The systems of the gallery, against values that two independent readings and Storm agree on, or against plain
linear equations written for the test."""

import json
import math

import numpy as np
import pytest

from verifier.manual.pages import GALLERY, write_system
from verifier.pipeline import verify_spec
from verifier.study.options import RunOptions

POINTS = RunOptions(confidence=None)
ORACLES = {
    "crossing_stochastic": "crossing_stochastic",
    "crossing_adversarial": "crossing_adversarial",
    "warehouse": "agv_two_objects",
    "level_crossing": "level_crossing",
    "traffic_light": "traffic_light",
    "two_of_three": "two_of_three",
    "phantom_braking": "phantom_braking",
    "acc": "acc_10hz",
}
OTHER_NAMES = {"never_clears_occupied": "never_opens_occupied", "clears_in_time": "opens_in_time"}
CHANGED = {("never_opens_occupied", "free"), ("within_six_of_leaving", "free")}
"""Where nothing ever stood, the gallery says that the crossing is free."""


def points(name, folder):
    write_system(name, str(folder))
    found = verify_spec(folder / f"{name}.ltl", folder / f"{name}.json", POINTS)
    return [(result, point) for result in found.requirements for point in result.points]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "acc" else ()) for name in ORACLES]
)
def test_a_system_of_the_gallery_is_the_one_of_the_reference(name, shared, tmp_path):
    expected = json.loads((shared / f"oracles/worlds/{ORACLES[name]}/values.json").read_text())["values"]
    found = points(name, tmp_path)
    compared = 0
    for each in expected:
        asked = OTHER_NAMES.get(each["requirement"], each["requirement"])
        if (asked, each["environment"]) in CHANGED:
            continue
        (point,) = [
            point
            for result, point in found
            if (result.name, point.environment) == (asked, each["environment"])
            and result.planner == each.get("planner", result.planner)
            and each.get("start", {}).items() <= dict(point.initial).items()
        ]
        error = point.upper - point.lower if point.probability < 1e-6 else 0
        assert math.isclose(point.probability, float(each["value"]), rel_tol=1e-9, abs_tol=error), each
        compared += 1
    assert compared + len(CHANGED if name == "level_crossing" else ()) == len(found)


def test_every_system_has_an_independent_reading():
    # The published system has tests of its own.
    assert {*ORACLES, "drone_landing", "mode_machine", "car_pedestrian"} == set(GALLERY)


def reached(start, moves):
    """States that `moves(state) -> {state: probability}` reaches, and its matrix; none from a state without moves."""
    order = [start]
    rows = {}
    for state in order:
        rows[state] = moves(state)
        order += [new for new in dict.fromkeys(rows[state]) if new not in order]
    index = {state: k for k, state in enumerate(order)}
    matrix = np.zeros((len(order), len(order)))
    for state, row in rows.items():
        for new, probability in row.items():
            matrix[index[state], index[new]] += probability
    return order, matrix


def hitting(start, moves, good, avoided=lambda state: False):
    """Probability of a good state before one that is avoided."""
    order, matrix = reached(start, lambda s: {} if good(s) or avoided(s) else moves(s))
    given = np.array([float(good(s)) for s in order])
    return np.linalg.solve(np.eye(len(order)) - matrix, given)[0]


def expected_sum(start, moves, gain):
    order, matrix = reached(start, moves)
    return np.linalg.solve(np.eye(len(order)) - matrix, [gain(s) if moves(s) else 0.0 for s in order])[0]


def sums(pairs):
    row = {}
    for state, probability in pairs:
        row[state] = row.get(state, 0.0) + probability
    return row


NEAR = {"l": (0.96, 0.03, 0.0, 0.01), "a": (12 / 500, 470 / 500, 13 / 500, 5 / 500), "r": (0.0, 0.03, 0.956, 0.014)}
FAR = {"l": (0.8, 0.1, 0.01, 0.09), "a": (0.08, 0.8, 0.07, 0.05), "r": (0.01, 0.1, 0.79, 0.1)}


@pytest.mark.parametrize("planner", ["centre", "always_down"])
def test_a_drone_that_lands(planner, tmp_path):
    def moves(state):
        height, offset = state
        if height == 0:
            return {}
        side = "l" if offset < 0 else "r" if offset > 0 else "a"
        rates = (NEAR if height < 4 else FAR)[side]
        pairs = []
        for step, rate in zip((-1, 0, 1, None), rates, strict=True):
            sink = 0 if step is None and planner == "centre" else 1
            for gust, chance in ((-1, 0.15), (0, 0.6), (1, 0.25)):
                moved = max(-3, min(offset - (step or 0) + gust, 3))
                pairs.append(((height - sink, moved), rate * chance))
        return sums(pairs)

    def hovering(state):
        side = "l" if state[1] < 0 else "r" if state[1] > 0 else "a"
        return (NEAR if state[0] < 4 else FAR)[side][3] if planner == "centre" else 0.0

    expected = {
        "lands_on_pad": hitting((12, 0), moves, lambda s: s[0] == 0 and abs(s[1]) <= 1),
        "steady": hitting(
            (12, 0), moves, lambda s: s[0] == 0 and abs(s[1]) <= 1, lambda s: s[0] <= 3 and abs(s[1]) > 1
        ),
        "time": expected_sum((12, 0), moves, lambda s: 0.5),
        "hovering": expected_sum((12, 0), moves, hovering),
    }
    found = {
        result.name: point.probability
        for result, point in points("drone_landing", tmp_path)
        if result.planner == planner
    }
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("planner", ["modes", "no_timer"])
def test_a_robot_with_modes_and_a_timer(planner, tmp_path):
    def decided(x, v, seen, mode, timer):
        free = min(v + 1, 2)
        if planner == "no_timer":
            return (0 if seen and 6 <= x <= 10 else free), 0, 0
        if mode == 0 and seen and 6 <= x <= 10:
            return 0, 1, 0
        if mode == 1 and seen:
            return 0, 1, 0
        if mode == 1 and timer < 2:
            return 0, 1, timer + 1
        if mode == 1:
            return 1, 2, timer
        return (1 if mode == 2 and x <= 14 else free), mode, timer

    def moves(state):
        x, v, someone, mode, timer = state
        if x == 20:
            return {}
        recall = 0.0
        if someone and x <= 12:
            recall = 0.94 if 12 - x < 4 else 0.84 if 12 - x < 8 else 0.6
        change = 0.7 if someone else 0.05
        pairs = []
        for seen, rate in ((True, recall), (False, 1 - recall)):
            speed, new_mode, new_timer = decided(x, v, seen, mode, timer)
            for there, chance in ((1, change), (0, 1 - change)):
                pairs.append(((min(x + v, 20), speed, there, new_mode, new_timer), rate * chance))
        return {state: probability for state, probability in sums(pairs).items() if probability}

    start = (0, 2, 1, 0, 0)

    def conflict(state, least):
        return 11 <= state[0] <= 14 and state[2] == 1 and state[1] >= least

    def ends(state):
        return state[0] == 20

    def still(state):  # the same with the steps at standstill counted: more than ten are not allowed
        (x, v, someone, mode, timer), steps = state
        return {(new, steps + 1 if new[1] == 0 else 0): p for new, p in moves((x, v, someone, mode, timer)).items()}

    expected = {
        "no_fast_conflict": hitting(start, moves, ends, lambda s: conflict(s, 2)),
        "conflict": hitting(start, moves, lambda s: conflict(s, 1)),
        "goes_on": hitting((start, 0), still, lambda s: ends(s[0]) and s[0][1] > 0, lambda s: s[1] > 10),
        "time": expected_sum(start, moves, lambda s: 1.0),
        "standing": expected_sum(start, moves, lambda s: float(s[1] == 0)),
    }
    found = {
        result.name: point.probability
        for result, point in points("mode_machine", tmp_path)
        if result.planner == planner
    }
    assert found == pytest.approx(expected, rel=1e-9)
