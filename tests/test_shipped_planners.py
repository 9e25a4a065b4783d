"""The planners of the shipped model, through the whole pipeline, against plain Python with fractions."""

import json
from fractions import Fraction

import pytest
from plain_car import REQUIREMENTS, cautious, chain, feedback, kept_probability
from published_matrices import NAMES, PERFECT, write_matrix

from verifier.chains.chain import markov_chain
from verifier.checking.settings import EngineSettings
from verifier.perception.confusion import read_confusion
from verifier.pipeline import verify_spec
from verifier.study.inputs import Selection
from verifier.study.options import RunOptions
from verifier.systems.reader import read_model
from verifier.systems.skeleton import build_skeleton

SPEC = "specs/car_pedestrian.ltl"
BY_CLASS = "examples/nuscenes_yolov3_class.json"
PLANNERS = {"feedback": feedback, "cautious": cautious}
EXACT = EngineSettings(exact=True)


@pytest.fixture(scope="module")
def tables(root):
    """The shipped tables, one for each 10 m, read as plain JSON: rows predicted, columns true."""
    document = json.loads((root / BY_CLASS).read_text(encoding="utf-8"))
    assert (document["labels"], document["axes"]) == (list(NAMES), ["predicted", "true"])
    assert [each["distance_m"][0] for each in document["bins"]] == list(range(0, 100, 10))
    return [each["counts"] for each in document["bins"]]


def column_of(tables, true, canonical):
    """distance in cells of 1 m -> label -> probability of reporting it, without the labels never reported."""
    summed = [[sum(table[i][j] for table in tables) for j in range(3)] for i in range(3)]

    def column(cells):
        table = summed if canonical else tables[cells // 10]
        counts = [row[NAMES.index(true)] for row in table]
        return {name: Fraction(count, sum(counts)) for name, count in zip(NAMES, counts, strict=True) if count}

    return column


def exact_values(root, matrix, planner, speeds, **options):
    """(requirement, environment, vmax) -> v0 -> exact probability by Storm."""
    selection = Selection(planners=(planner,), environments=NAMES, sweeps={"vmax": tuple(speeds)})
    found = {}
    for each in verify_spec(
        root / SPEC, matrix, RunOptions(selection=selection, engines=EXACT, confidence=None, **options)
    ).requirements:
        for point in each.points:
            key = (each.name, point.environment, int(point.constants["vmax"]))
            found.setdefault(key, {})[point.initial["v"]] = point.exact
    return found


@pytest.mark.every(4)
@pytest.mark.parametrize("vmax", [1, 2, 3, 4, 10])
@pytest.mark.parametrize("environment", NAMES)
@pytest.mark.parametrize("planner", PLANNERS)
def test_every_transition_is_the_one_meant(root, tables, planner, environment, vmax):
    # Where a car always comes to the line at walking pace, the requirements do not tell how it came there.
    # One more item in every cell: every report is possible, and so every state that either side may reach.
    matrices = read_confusion(root / BY_CLASS).matrices
    system = read_model(root / "models/car_pedestrian.toml").instantiate({"vmax": vmax})
    skeleton = build_skeleton(system, system.planners[planner], environment, matrices)
    built = markov_chain(skeleton, matrices.counts + 1, {}, exact=True)
    states = list(zip(built.valuations["x"].tolist(), built.valuations["v"].tolist(), strict=True))
    found = {
        state: {states[built.indices[k]]: built.fractions[k] for k in range(built.indptr[row], built.indptr[row + 1])}
        for row, state in enumerate(states)
    }
    more = [[[count + 1 for count in row] for row in table] for table in tables]
    assert found == chain(PLANNERS[planner], vmax, column_of(more, environment, canonical=False))


@pytest.mark.parametrize("canonical", [False, True], ids=["by distance", "canonical"])
@pytest.mark.parametrize("planner", PLANNERS)
def test_planners_that_look_at_the_state_agree_with_their_meaning(root, tables, planner, canonical, thorough):
    speeds = (1, 2, 3, 4) if thorough else (1, 3)
    found = exact_values(root, root / BY_CLASS, planner, speeds, canonical=canonical)
    expected = {}
    for environment in NAMES:
        column = column_of(tables, environment, canonical)
        for vmax in speeds:
            for name in REQUIREMENTS:
                expected[name, environment, vmax] = kept_probability(
                    PLANNERS[planner], vmax, environment, column, name
                )
    assert found == expected


def test_the_cautious_car_has_one_look(root, tables):
    # It comes to the cell before the line at walking pace whatever was seen, and decides there, 2 m from the
    # crosswalk: 31 of 158 pedestrians are seen in the first ten metres. An obstacle stops it if taken for one.
    found = exact_values(root, root / BY_CLASS, "cautious", (1, 4, 10))
    taken = column_of(tables, "obs", False)(2).get("ped", Fraction(0))
    for vmax in (1, 4, 10):
        starts = range(1, vmax + 1)
        assert found["all_three", "ped", vmax] == dict.fromkeys(starts, Fraction(31, 158))
        assert found["all_three", "obs", vmax] == dict.fromkeys(starts, 1 - taken)
        assert found["all_three", "empty", vmax] == dict.fromkeys(starts, 1)


@pytest.mark.parametrize("planner", ["published", "feedback", "correct", "cautious"])
def test_with_a_perfect_detector_every_planner_meets_every_requirement(root, tmp_path, planner, thorough):
    speeds = range(1, 11) if thorough else (1, 2, 5)
    matrix = write_matrix(tmp_path / "perfect.json", PERFECT)
    found = exact_values(root, matrix, planner, speeds)
    assert found == {
        (name, environment, vmax): dict.fromkeys(range(1, vmax + 1), Fraction(1))
        for name in REQUIREMENTS
        for environment in NAMES
        for vmax in speeds
    }


def test_no_shipped_planner_is_left_out(root):
    result = verify_spec(
        root / SPEC, root / BY_CLASS, RunOptions(Selection(planners=("all",), environments=("ped",)), confidence=None)
    )
    assert {each.planner for each in result.requirements} == {"published", "feedback", "correct", "cautious"}
