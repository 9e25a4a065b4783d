"""Systems of the world language against PRISM programs written by hand and an independent reading in fractions.

Each folder of the reference holds a model, matrices, a spec and the values that two readings and Storm agree on.
"""

import json
import math

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
        # What is computed as 1 - P is known to the absolute error that the point states.
        error = point.upper - point.lower if point.probability < 1e-6 else 0
        assert math.isclose(point.probability, float(each["value"]), rel_tol=1e-9, abs_tol=error), each
        assert error <= 1e-14
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


@pytest.mark.parametrize("world", ["crossing_stochastic", "agv_two_objects"])
def test_draws_are_exact_in_exact_arithmetic(worlds, tmp_path, world):
    folder = worlds / world
    expected = [each for each in json.loads((folder / "values.json").read_text())["values"] if each["asked"] == "P"]
    expected = {(each["requirement"], each["environment"]): each.get("exact") for each in expected}
    spec = spec_of(folder, tmp_path, {name for name, _ in expected} - {"hit_if_slow"})
    exactly = RunOptions(confidence=None, engines=EngineSettings(exact=True))
    found = verify_spec(spec, matrices_of(folder, tmp_path), exactly).requirements
    assert found
    for result in found:
        for point in result.points:
            wanted = expected[result.name, point.environment]
            assert wanted is None or str(point.exact) == wanted, result.name


def value(folder, target, name, environment, *changes):
    """One probability with the model changed."""
    model = (folder / "model.toml").read_text()
    for old, new in changes:
        assert model.count(old) == 1, old
        model = model.replace(old, new)
    (target / "model.toml").write_text(model)
    spec = spec_of(folder, target, {name})
    spec.write_text(spec.read_text().replace(str(folder), str(target)))
    (result,) = verify_spec(spec, matrices_of(folder, target), POINTS).requirements
    (found,) = [each for each in result.points if each.environment == environment]
    return found.probability


@pytest.mark.parametrize("change", [('reading = "any"', 'reading = "last"'), ("frame_s = 0.5", "frame_s = 1")])
def test_one_frame_of_a_step_is_another_system(worlds, tmp_path, change):
    # What the reference has for these two misreadings.
    found = value(worlds / "level_crossing", tmp_path, "clears_in_time", "leaves", change)
    assert math.isclose(found, 0.979330324426, rel_tol=1e-9)


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
