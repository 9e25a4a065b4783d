"""Systems of the world language against PRISM programs written by hand and an independent reading in fractions.

Each folder of the reference holds a model, matrices, a spec and the values that two readings and Storm agree on.
"""

import json
import math

import pytest
from world_specs import matrices_of, spec_of

from verifier.checking.settings import EngineSettings
from verifier.pipeline import verify_spec
from verifier.study.case import Study, read_inputs
from verifier.study.options import RunOptions

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
        assert math.isclose(found[key].probability, float(each["value"]), rel_tol=1e-9, abs_tol=0), each
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


def test_false_positives_in_every_bin_apart_from_errors_of_distance(worlds, tmp_path):
    folder = worlds / "phantom_braking"
    spec, path = spec_of(folder, tmp_path, {"close", "hard"}), matrices_of(folder, tmp_path)
    document = json.loads(path.read_text())
    del document["localisation"]
    path.write_text(json.dumps(document))
    found = {
        (result.name, point.environment): point.probability
        for result in verify_spec(spec, path, POINTS).requirements
        for point in result.points
    }
    # What the reference has without errors of distance.
    assert math.isclose(found["close", "lead"], 4.60947157583e-07, rel_tol=1e-9)
    assert math.isclose(found["hard", "lead"], 0.0452191086493, rel_tol=1e-9)


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
