"""Systems of the world language against PRISM programs written by hand and an independent reading in fractions.

Each folder of the reference holds a model, matrices, a spec and the values that two readings and Storm agree on.
"""

import json
import math
from dataclasses import replace
from fractions import Fraction

import pytest
from world_specs import matrices_of, spec_of

from verifier.checking.settings import EngineSettings
from verifier.pipeline import verify_spec
from verifier.study.case import Study
from verifier.study.inputs import read_inputs
from verifier.study.options import RunOptions, Selection

POINTS = RunOptions(confidence=None)


@pytest.fixture(scope="session")
def worlds(shared):
    return shared / "oracles/worlds"


def check(folder, target, planners=None):
    """Every number and every number of states, both engines agreeing."""
    expected = json.loads((folder / "values.json").read_text())["values"]
    spec = spec_of(folder, target, {each["requirement"] for each in expected})
    found = {
        (
            result.name,
            result.planner,
            point.environment,
            tuple(point.initial.items()),
        ): point
        for result in verify_spec(spec, matrices_of(folder, target), POINTS).requirements
        for point in result.points
    }
    assert len(found) == len(expected)
    study = Study.of(read_inputs(spec, target / "cm.json", POINTS), POINTS)
    states = {(case.planner.name, case.environment): case.skeleton.state_count for case in study.cases}
    for each in expected:
        start = each.get("start", {})
        (key,) = [
            key
            for key in found
            if (key[0], key[2]) == (each["requirement"], each["environment"])
            and key[1] == each.get("planner", key[1])
            and start.items() <= dict(key[3]).items()
        ]
        point = found[key]
        assert math.isclose(point.probability, float(each["value"]), rel_tol=1e-9), each
        assert math.isclose(point.second_engine, float(each["value"]), rel_tol=1e-9), each
        assert "start" in each or "states" not in each or states[key[1], key[2]] == each["states"], each


@pytest.mark.slow
def test_a_car_that_follows_another_at_10_hz(worlds, tmp_path):
    check(worlds / "acc_10hz", tmp_path)


def test_a_light_whose_class_depends_on_the_state(worlds, tmp_path):
    check(worlds / "traffic_light", tmp_path)


def test_a_tracker_against_raw_reports(worlds, tmp_path):
    check(worlds / "two_of_three", tmp_path)


def test_frames_memory_and_a_field_of_view(worlds, tmp_path):
    check(worlds / "level_crossing", tmp_path)


def test_a_pedestrian_who_walks_at_random(worlds, tmp_path):
    check(worlds / "crossing_stochastic", tmp_path)


def test_two_objects_with_identities_one_of_which_leaves_at_random(worlds, tmp_path):
    check(worlds / "agv_two_objects", tmp_path)


@pytest.mark.parametrize(
    ("world", "left_out"),
    [
        ("crossing_stochastic", {"late"}),  # so many steps, not a sum
        ("agv_two_objects", set()),
        ("phantom_braking", set()),
        ("level_crossing", {"time"}),
        ("traffic_light", {"no_red_run"}),
        ("two_of_three", set()),
    ],
)
def test_fractions_are_those_of_the_reference(worlds, tmp_path, world, left_out):
    folder = worlds / world
    expected = json.loads((folder / "values.json").read_text())["values"]
    spec = spec_of(folder, tmp_path, {each["requirement"] for each in expected} - left_out)
    exactly = RunOptions(confidence=None, engines=EngineSettings(exact=True))
    known = 0
    for result in verify_spec(spec, matrices_of(folder, tmp_path), exactly).requirements:
        for point in result.points:
            (wanted,) = [
                each
                for each in expected
                if (each["requirement"], each["environment"]) == (result.name, point.environment)
                and each.get("planner", result.planner) == result.planner
                and each.get("start", {}).items() <= point.initial.items()
            ]
            assert "exact" not in wanted or point.exact == Fraction(wanted["exact"]), (result.name, point.scenario)
            known += "exact" in wanted
    assert known == sum("exact" in each and each["requirement"] not in left_out for each in expected)


def value(folder, target, name, environment, *changes, planners=()):
    """One probability with the model changed."""
    model = (folder / "model.toml").read_text()
    for old, new in changes:
        assert model.count(old) == 1, old
        model = model.replace(old, new)
    (target / "model.toml").write_text(model)
    spec = spec_of(folder, target, {name})
    spec.write_text(spec.read_text().replace(str(folder), str(target)))
    chosen = replace(POINTS, selection=Selection(planners=planners))
    (result,) = verify_spec(spec, matrices_of(folder, target), chosen).requirements
    (found,) = [each for each in result.points if each.environment == environment]
    return found.probability


@pytest.mark.parametrize("change", [('reading = "any"', 'reading = "last"'), ("frame_s = 0.5", "frame_s = 1")])
def test_one_frame_of_a_step_is_another_system(worlds, tmp_path, change):
    # What the reference has for these two misreadings.
    found = value(worlds / "level_crossing", tmp_path, "clears_in_time", "leaves", change)
    assert math.isclose(found, 0.979330324426, rel_tol=1e-9)


TRACKED = """trackers = { ped = { of = "sees(ped)", confirm = [2, 3], delete = [2, 3] } }
rules = [{ when = "confirmed(ped) & x <= 27 & x + v + v * (v + 1) // 2 >= 24", set = { speed = "max(v - 1, 0)" } }]
"""
KEPT = """memory = { h = { range = [0, 3], initial = 0 } }
rules = [
    { when = "sees(ped) & h >= 1 & near", set = { speed = "max(v - 1, 0)", h = "(2 * h + 1) % 4" } },
    { when = "sees(ped)", set = { h = "(2 * h + 1) % 4" } },
    { when = "h = 3 & near", set = { speed = "max(v - 1, 0)", h = "2 * h % 4" } },
    { set = { h = "2 * h % 4" } },
]
"""
NEAR = ("[labels]", '[labels]\nnear = "x <= 27 & x + v + v * (v + 1) // 2 >= 24"')
"""The last two results are kept when it confirms or deletes: it goes by two of the last three then."""


def test_a_window_that_is_kept_over_a_change_is_another_system(worlds, tmp_path):
    folder = worlds / "two_of_three"
    found = value(folder, tmp_path, "stops", "ped", (TRACKED, KEPT), NEAR, planners=("tracked",))
    assert math.isclose(found, 0.8770896, rel_tol=1e-6)


def test_without_a_field_of_view_nothing_delays_the_clearing(worlds, tmp_path):
    changes = [("[field_of_view]\ndistance_m = [0, 20]", ""), ("free = [] ", "#")]
    assert value(worlds / "level_crossing", tmp_path, "clears_in_time", "leaves", *changes) == pytest.approx(
        1, abs=1e-12
    )


LOCALISATION = (
    ',\n "localisation":{"axes":["reported","true"],'
    '"counts":[[95,4,0,0],[5,90,5,0],[0,6,88,12],[0,0,7,88]]}'
)  # fmt: skip


def cut(folder, target, *changes, matrices=()):
    """A reference system with some texts replaced."""
    target.mkdir()
    for name, replaced in (("model.toml", changes), ("cm.json", matrices), ("spec.ltl", ())):
        text = (folder / name).read_text()
        for old, new in replaced:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (target / name).write_text(text)
    return target


def test_phantoms_in_every_bin_and_errors_of_reported_distances(worlds, tmp_path):
    check(worlds / "phantom_braking", tmp_path)


@pytest.mark.parametrize(
    ("policy", "changes", "matrices", "close", "hard"),
    [
        ("as_counted", [("[field_of_view]\ndistance_m = [0, 60]\n", ""), ("empty_road = []\n", "")], [],
         1.39669606339e-05, 0),
        ("as_counted", [], [(LOCALISATION, "")], 4.60947157583e-07, 0.0452191086493),
        ("background", [], [], 9.11587402674e-06, 0.0564714501094),
    ],
    ids=["no field of view", "no localisation", "also beside objects"],
)  # fmt: skip
def test_other_readings_of_phantoms_are_other_systems(worlds, tmp_path, policy, changes, matrices, close, hard):
    folder = cut(worlds / "phantom_braking", tmp_path / "cut", *changes, matrices=matrices)
    options = RunOptions(Selection(environments=("lead",)), false_positives=policy, confidence=None)
    found = verify_spec(spec_of(folder, tmp_path, {"close", "hard"}), matrices_of(folder, tmp_path), options)
    for each, expected in zip(found.requirements, (close, hard), strict=True):
        assert math.isclose(each.worst_point.probability, expected, rel_tol=1e-9, abs_tol=0)
