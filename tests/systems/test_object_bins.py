"""Where objects are by further variables of the matrices: by hand, refusals, and the counts behind the bins."""

import itertools

import numpy as np
import pytest
from matrix_documents import write_matrices

from verifier.base.errors import InputError, UsageError
from verifier.perception.confusion import exact_rates, read_confusion
from verifier.perception.confusion.document import read_counts
from verifier.pipeline import verify_spec
from verifier.study.options import RunOptions

POINTS = RunOptions(confidence=None)
MODEL = """
initial = "x = 0 & y = 0"
terminal = "x = 2"
[variables]
x = { range = [0, 2], next = "min(x + go, 2)" }
y = { range = [0, 1], next = "min(y + walk, 1)" }
[world]
walk = { range = [0, 1], probability = { 1 = 0.5, 0 = "rest" } }
[inputs]
go = { range = [1, 2], default = 2 }
[environments]
here = [{ name = "child", class = "ped", distance_m = "5 + 10 * x", at = AT }]
[planners.walker]
rules = [{ when = "sees(ped)", set = { go = 1 } }]
"""
VARIABLES = [
    {"name": "occlusion", "of": "object", "edges": [0, 1, 3]},
    {"name": "light", "of": "object", "values": {"day": ["day"], "night": ["night", "dusk"]}},
]


def written(folder, at, further=(0, 1), sequences=True):
    """Spec and matrices; `further` names those of VARIABLES that the matrices have."""
    (folder / "model.toml").write_text(MODEL.replace("AT", at))
    (folder / "spec.ltl").write_text('model "model.toml"\nslow: P = ? [ X x = 1 ]\n')
    variables = [VARIABLES[k] for k in further]
    sizes = [len(each.get("values", each.get("edges", [0])[1:])) for each in variables]
    bins, rng = [], np.random.default_rng(0)
    for distance, *inner in itertools.product(range(2), *map(range, sizes)):
        where = {
            each["name"]: list(each["values"])[k] if "values" in each else each["edges"][k : k + 2]
            for each, k in zip(variables, inner, strict=True)
        }
        counts = [[int(rng.integers(1, 9)), 2], [int(rng.integers(1, 9)), 5 + distance]]
        found = {"distance_m": [[0, 10], [10, None]][distance], "counts": counts}
        bins.append({**found, "where": where} if where else found)
    more = {"variables": variables} if variables else {}
    return folder / "spec.ltl", write_matrices(folder / "cm.json", bins=bins, false_positives="counted", **more)


def slow(folder, at, **more):
    (requirement,) = verify_spec(*written(folder, at, **more), POINTS).requirements
    return requirement.worst_point.probability


def rate(folder, *bins):
    """The rate of reports of the class in a bin of the document."""
    counts = read_counts(folder / "cm.json")
    table = exact_rates(counts.counts[0]).reshape(*counts.bins.shape, 2, 2)
    return float(table[(*bins, 0, 0)])


@pytest.mark.parametrize(
    ("at", "bins"),
    [
        ('{ occlusion = 0, light = { day = "x >= 0", night = "false" } }', (0, 0, 0)),
        ('{ occlusion = "2 - x", light = { day = "x > 0", night = "x = 0" } }', (0, 1, 1)),
    ],
)
def test_its_report_comes_from_the_bin_that_it_says(tmp_path, at, bins):
    assert slow(tmp_path, at) == pytest.approx(rate(tmp_path, *bins), abs=1e-12)


def test_a_variable_that_no_object_says_is_summed_over(tmp_path):
    found = slow(tmp_path, '{ occlusion = "ite(y = 0, 2.5, 0)" }')
    counts = read_counts(tmp_path / "cm.json")
    summed = counts.counts[0].reshape(2, 2, 2, 2, 2).sum(axis=2)[0, 1, :, 0]
    assert found == pytest.approx(summed[0] / summed.sum(), abs=1e-12)


def test_bounds_and_improvements_are_by_these_bins(tmp_path):
    inputs = written(tmp_path, '{ occlusion = "ite(y = 0, 2, 0)", light = { day = "true", night = "false" } }')
    (requirement,) = verify_spec(*inputs, RunOptions()).requirements
    bounds = requirement.worst_point.uncertainty.confidence_bounds
    assert bounds.lower < rate(tmp_path, 0, 1, 0) < bounds.upper


REFUSED = [
    ('{ occlusion = 0 }', (0, 1), None),
    ('{ occlusion = 3 }', (0,), "in state x = 0, y = 0 no bin of 'occlusion' holds 3, where 'child' is"),
    ('{ occlusion = "ite(y = 0, 2, 3)" }', (0,), "in state x = 1, y = 1 no bin of 'occlusion' holds 3"),
    ('{ occluson = 0 }', (0,), "the matrices have no variable 'occluson'\n  hint: did you mean 'occlusion'?"),
    ('{ occlusion = 0 }', (), "the matrices have no variable 'occlusion'"),
    ('{ light = { day = "x < 1", night = "x = 0" } }', (1,), "'child' is in day and night; exactly one"),
    ('{ light = { day = "x > 1" } }', (1,), "in state x = 0, y = 0 'child' is in no bin of 'light'"),
    ('{ light = { noon = "true" } }', (1,), "variable 'light' has no bin for 'noon'; it has: day, night"),
    ('{ occlusion = "walk" }', (0,), "'walk' is an input of the world, which cannot be used here"),
    ('{ occlusion = {} }', (0,), "expected at least one bin and its condition"),
]  # fmt: skip


@pytest.mark.parametrize(("at", "further", "message"), REFUSED)
def test_what_cannot_be_a_bin_is_refused(tmp_path, at, further, message):
    if message is None:
        slow(tmp_path, at, further=further)
        return
    with pytest.raises(InputError) as caught:
        slow(tmp_path, at, further=further)
    assert "environments.here[0]" in str(caught.value)
    assert message in str(caught.value)


def test_where_one_object_says_it_all_do(tmp_path):
    inputs = written(tmp_path, "{ occlusion = 0 }", further=(0,))
    model = (tmp_path / "model.toml").read_text()
    other = '{ name = "other", class = "ped", distance_m = 5 }'
    (tmp_path / "model.toml").write_text(model.replace("here = [", f"here = [{other}, "))
    with pytest.raises(InputError, match="the matrices depend on 'occlusion', and 'other' does not say it"):
        verify_spec(*inputs, POINTS)


def test_an_empty_place_has_a_bearing_and_is_not_occluded(tmp_path):
    inputs = written(tmp_path, "{ occlusion = 0 }", further=(0,))
    places = 'here = [{ class = "empty", distance_m = 5, at = AT }, { class = "empty", distance_m = 15 }]'
    model = MODEL.replace(MODEL[MODEL.index("here = ") : MODEL.index("\n[planners")], places)
    (tmp_path / "model.toml").write_text(model.replace("AT", "{ occlusion = 0 }"))
    verify_spec(*inputs, POINTS)
    (tmp_path / "model.toml").write_text(model.replace("AT", "{ bearing_deg = 0 }"))
    document = (tmp_path / "cm.json").read_text().replace('"occlusion"', '"bearing_deg"')
    (tmp_path / "cm.json").write_text(document.replace('"of": "object"', '"of": "place"'))
    with pytest.raises(InputError, match="the matrices depend on 'bearing_deg', and 'place' does not say it"):
        verify_spec(*inputs, POINTS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"where": {"occlusion": "0"}}, "--where chooses a bin of 'occlusion', and the model says"),
        ({"canonical": True}, "--canonical sums over all bins, and the model says where objects are by 'occlusion'"),
    ],
)
def test_options_that_choose_the_bins_are_refused(tmp_path, options, message):
    with pytest.raises(UsageError, match=message):
        verify_spec(*written(tmp_path, "{ occlusion = 0 }", further=(0,)), RunOptions(confidence=None, **options))


def test_kept_and_summed_variables_are_two_ways_to_the_same_counts(tmp_path):
    _, path = written(tmp_path, "{ occlusion = 0 }")
    counts = read_counts(path)
    every = read_confusion(path, kept=["occlusion", "light"]).matrices
    assert np.array_equal(every.counts, counts.counts[0])
    assert every.shape == (2, 2, 2)
    assert every.bin_text(3) == "[0, 10) m, occlusion [1, 3), light night"
    assert every.place_of(np.arange(8)).tolist() == [0, 0, 0, 0, 4, 4, 4, 4]
    assert every.end_m(3) == 10
    one = read_confusion(path, where={"light": "dusk"}, kept=["occlusion"]).matrices
    assert np.array_equal(one.counts, counts.counts[0][[1, 3, 5, 7]])
    assert one.item_count == one.counts[:, :, 0].sum() + one.counts[::2, :, 1].sum()
