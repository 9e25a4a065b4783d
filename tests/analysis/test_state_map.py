"""The chance from every state: by hand on a small road, and against exact elimination on the shipped system."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from exact_oracle import reach_probabilities

from verifier.analysis.sensitivity.state_map import map_variables, state_map
from verifier.base.errors import LimitError, UsageError
from verifier.checking.two_engines import abstracted
from verifier.language.ltl import parse_formula
from verifier.perception.confusion import ConfusionMatrices, exact_rates, rates, read_confusion
from verifier.systems.reader import read_model
from verifier.systems.scene import SkeletonOptions
from verifier.systems.skeleton import build_skeleton

# A road of four cells; in each step the car goes on, and at cell 3 it has to have seen the pedestrian in the step
# before, and then `seen` is 1. Recall 3/4 beyond 1 m, 1/2 within.
ROAD = """
initial = "x = 0 & seen = 0"
terminal = "x = 3"
[variables]
x = { range = [0, 3], next = "min(x + 1, 3)" }
seen = { range = [0, 1], next = "now" }
[inputs]
now = { range = [0, 1] }
[environments]
ped = [{ class = "ped", distance_m = "3 - x" }]
[planners.look]
rules = [{ when = "sees(ped)", set = { now = 1 } }, { when = "true", set = { now = 0 } }]
"""
EMPTY, PED = frozenset(), frozenset({"ped"})


@pytest.fixture
def road(tmp_path):
    (tmp_path / "road.toml").write_text(ROAD)
    system = read_model(tmp_path / "road.toml").instantiate()
    # counts[bin][predicted][true], labels ped and empty; bins [0, 1.5) and [1.5, 10) m.
    counts = np.array([[[1, 0], [1, 4]], [[3, 0], [1, 4]]])
    matrices = ConfusionMatrices("class", (PED, EMPTY), np.array([0, 1.5, 10]), counts)
    return build_skeleton(system, system.planners["look"], "ped", matrices), rates(counts)


def mapped(road, text, *variables, **options):
    skeleton, point = road
    (formula,) = abstracted([parse_formula(text)])
    return state_map(skeleton, formula.formula, formula.propositions, point, variables, **options)


def test_a_road_by_hand(road):
    found = mapped(road, "F (x = 3 & seen = 1)")
    assert found.variables == ("x", "seen")
    assert found.values == ((0, 1, 2, 3), (0, 1))
    # What counts is the report in cell 2, 1 m away: recall 1/2 from everywhere before. seen = 1 is not reached at 0.
    expected = np.array([[0.5, np.nan], [0.5, 0.5], [0.5, 0.5], [0, 1]])
    np.testing.assert_allclose(np.array(found.probability, dtype=float), expected, rtol=1e-14)


def test_a_formula_is_read_from_the_state_on(road):
    # X (seen = 1): from cell 0 and 1 with recall 3/4 (3 and 2 m), from cell 2 with 1/2; at the end nobody looks.
    found = mapped(road, "X (seen = 1)", "x", "seen")
    np.testing.assert_allclose([row[0] for row in found.probability[:3]], [0.75, 0.75, 0.5], rtol=1e-14)
    assert found.probability[3] == (0, 1)
    # One variable: the worst over the other. Terminal states have 0 and 1.
    np.testing.assert_allclose(mapped(road, "X (seen = 1)", "x").probability, [0.75, 0.75, 0.5, 0], rtol=1e-14)
    largest = mapped(road, "X (seen = 1)", "x", largest=True)
    np.testing.assert_allclose(largest.probability, [0.75, 0.75, 0.5, 1], rtol=1e-14)
    # The axes are in the order in which they are named.
    assert np.shape(mapped(road, "X (seen = 1)", "seen", "x").probability) == (2, 4)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (("y",), "unknown variable 'y'"),
        (("x", "x"), "different variables"),
        (("x", "seen", "x"), "different variables"),
    ],
)
def test_variables_must_be_the_models(road, variables, message):
    with pytest.raises(UsageError, match=message):
        mapped(road, "F (x = 3)", *variables)


def test_maps_too_large_to_draw_are_refused(road, monkeypatch):
    monkeypatch.setattr("verifier.analysis.sensitivity.state_map.LARGEST_MAP", 7)
    with pytest.raises(LimitError, match="x and seen has 8 places; at most 7"):
        mapped(road, "F (x = 3)")
    monkeypatch.setattr("verifier.analysis.sensitivity.state_map.LARGEST_MAP", 8)
    assert np.size(mapped(road, "F (x = 3)").probability) == 8


def test_two_variables_are_drawn_at_most_the_first_two_where_none_are_named():
    known = ("a", "b", "c")
    for named, drawn in (((), ("a", "b")), (("c",), ("c",)), (("c", "a"), ("c", "a"))):
        assert map_variables(known, named) == drawn
    for named in (known, ("a", "a"), ("d",)):
        with pytest.raises(UsageError):
            map_variables(known, named)


def test_the_shipped_system_against_elimination_with_fractions(root):
    system = read_model(root / "models/car_pedestrian.toml").instantiate({"study_vmax": 3, "vmax": 3})
    matrices = read_confusion(root / "examples/nuscenes_yolov3_class.json").matrices
    skeleton = build_skeleton(system, system.planners["feedback"], "ped", matrices, SkeletonOptions())
    (formula,) = abstracted([parse_formula("F at_line")])
    found = state_map(skeleton, formula.formula, formula.propositions, rates(matrices.counts))
    exact = skeleton.fill(exact_rates(matrices.counts))
    chain = [
        {int(skeleton.indices[k]): exact[k] for k in range(skeleton.indptr[s], skeleton.indptr[s + 1])}
        for s in range(skeleton.state_count)
    ]
    x, v = skeleton.valuations["x"], skeleton.valuations["v"]
    stopped = system.constants["stop_cell"]
    expected = reach_probabilities(chain, set(np.flatnonzero((x == stopped) & (v == 0)).tolist()))
    for s, probability in enumerate(expected):
        at = found.probability[x[s] - found.values[0][0]][v[s] - found.values[1][0]]
        assert abs(Fraction(at) - probability) < Fraction(1, 10**14)
    assert sum(one is not None for row in found.probability for one in row) == skeleton.state_count
