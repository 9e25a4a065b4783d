"""Errors of reported distances, by hand in fractions: drawn after the label, for objects only."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from matrix_documents import document_of

from verifier.analysis.sensitivity.adjoint import through_draws
from verifier.base.errors import InputError
from verifier.perception.confusion import EMPTY, ConfusionMatrices, read_confusion
from verifier.perception.confusion.document import confusion_text, read_counts
from verifier.perception.confusion.matrices import exact_rates, rates
from verifier.perception.confusion.merging import merge
from verifier.pipeline import verify_spec
from verifier.study.options import RunOptions
from verifier.systems.reader import read_model
from verifier.systems.scene import SkeletonOptions
from verifier.systems.skeleton import build_skeleton

PED = frozenset({"ped"})
COUNTS = np.array([[[3, 0], [1, 4]], [[1, 1], [1, 9]]])
LOCATED = {"axes": ["reported", "true"], "counts": [[4, 1], [1, 2]]}
# Seen at 12 m with 1/2, and then reported below 10 m with 1/3; at 5 m with 3/4, and then below 10 m with 4/5.
MATRICES = ConfusionMatrices(
    "class", (PED, EMPTY), np.array([0.0, 10, 20]), COUNTS, metadata={"localisation": LOCATED}
)
MODEL = """
initial = "x = 0"
terminal = "x >= 1"
[variables]
x = { range = [0, 9], next = "x + go" }
[inputs]
go = { range = [1, 9] }
[environments]
near = [{ class = "ped", name = "walker", distance_m = 5 }]
far = [{ class = "ped", name = "walker", distance_m = 12 }]
both = [{ class = "ped", name = "walker", distance_m = 5 }, { class = "ped", distance_m = 12 }]
[planners.driver]
rules = [RULES]
"""
NEAR = (
    '{ when = "sees(ped, within = 10)", set = { go = 2 } }, { when = "sees(ped)", set = { go = 3 } }, '
    "{ set = { go = 1 } }"
)
COUNT = '{ set = { go = "1 + count(ped, within = 10)" } }'
REPORT = '{ when = "report(walker, within = 10) = ped", set = { go = 2 } }, { set = { go = 1 } }'
HALF, FAR, CLOSE = Fraction(1, 2), Fraction(1, 3), Fraction(4, 5)
SEEN = Fraction(3, 4)


def model_of(folder, rules, view=""):
    (folder / "m.toml").write_text(MODEL.replace("RULES", rules) + view)
    return read_model(folder / "m.toml")


def ends(folder, rules, environment, matrices=MATRICES, view=""):
    """x after the only step -> probability."""
    system = model_of(folder, rules, view).instantiate()
    skeleton = build_skeleton(system, system.planners["driver"], environment, matrices, SkeletonOptions())
    found = skeleton.fill(exact_rates(matrices.counts))
    start = int(skeleton.starts[0])
    places = range(*skeleton.indptr[start : start + 2])
    return {int(skeleton.valuations["x"][skeleton.indices[k]]): found[k] for k in places if found[k]}


@pytest.mark.parametrize(
    ("rules", "environment", "expected"),
    [
        (NEAR, "near", {2: SEEN * CLOSE, 3: SEEN * (1 - CLOSE), 1: 1 - SEEN}),
        (NEAR, "far", {2: HALF * FAR, 3: HALF * (1 - FAR), 1: HALF}),
        (REPORT, "far", {2: HALF * FAR, 1: 1 - HALF * FAR}),
        (
            COUNT,
            "both",
            {
                3: SEEN * CLOSE * HALF * FAR,
                2: SEEN * CLOSE * (1 - HALF * FAR) + (1 - SEEN * CLOSE) * HALF * FAR,
                1: (1 - SEEN * CLOSE) * (1 - HALF * FAR),
            },
        ),
    ],
)
def test_a_reported_distance_is_drawn_after_the_label(tmp_path, rules, environment, expected):
    assert ends(tmp_path, rules, environment) == expected


def test_phantoms_are_reported_where_they_are(tmp_path):
    # Column empty of the two bins reports a pedestrian with 0 and 1/10; the one beyond 10 m is not nearby.
    view = "[field_of_view]\ndistance_m = [0, 20]\n"
    assert ends(tmp_path, NEAR, "near", view=view) == {
        2: SEEN * CLOSE,
        3: SEEN * (1 - CLOSE) + (1 - SEEN) * Fraction(1, 10),
        1: (1 - SEEN) * Fraction(9, 10),
    }


def test_without_errors_of_distance_nothing_changes(tmp_path):
    exact = replace(MATRICES, metadata={"localisation": {**LOCATED, "counts": [[7, 0], [0, 9]]}})
    for rules in (NEAR, COUNT, REPORT):
        for environment in ("near", "far", "both"):
            plain = ends(tmp_path, rules, environment, replace(MATRICES, metadata={}))
            assert ends(tmp_path, rules, environment, exact) == plain
    classes = '{ when = "sees(ped)", set = { go = 2 } }, { set = { go = 1 } }'
    assert ends(tmp_path, classes, "far") == {2: HALF, 1: HALF}


def test_slopes_run_through_the_errors_of_distance(tmp_path):
    system = model_of(tmp_path, COUNT).instantiate()
    skeleton = build_skeleton(system, system.planners["driver"], "both", MATRICES, SkeletonOptions())
    channel, values = skeleton.channel, rates(COUNTS)
    assert channel.located is not None
    generator = np.random.default_rng(1)
    worth = generator.random((1, len(channel.bins), len(channel.observations)))
    (slope,) = through_draws(channel, values, worth)
    for place in [(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 0)]:
        moved = []
        for step in (-1e-5, 1e-5):
            changed = values.copy()
            changed[place] += step
            moved.append((channel.weights(changed) * worth[0]).sum())
        assert (moved[1] - moved[0]) / 2e-5 == pytest.approx(slope[place], rel=1e-6)
    assert np.array_equal(channel.at(np.array([0])).weights(values), channel.weights(values)[:1])


DOCUMENT = document_of(*COUNTS.tolist(), false_positives="counted", localisation=LOCATED)


def written(folder, name="cm.json", **changes):
    path = folder / name
    path.write_text(json.dumps({key: value for key, value in {**DOCUMENT, **changes}.items() if value is not None}))
    return path


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([], "/localisation: expected an object with the keys 'axes' and 'counts', got []"),
        (
            {**LOCATED, "axes": ["true", "reported"]},
            '/localisation/axes: expected ["reported", "true"], got [\'true\', \'reported\']\n'
            "  hint: transpose the counts, so that each column sums to the items of one true bin",
        ),
        ({**LOCATED, "counts": [[1, 0]]}, "/localisation/counts: expected 2 rows (one per reported bin), got 1 rows"),
        (
            {**LOCATED, "counts": [[1, 0], [1]]},
            "/localisation/counts/1: expected 2 entries (one per true bin), got 1 entries",
        ),
        (
            {**LOCATED, "counts": [[1, 0], [1, -1]]},
            "/localisation/counts/1/1: expected a non-negative integer, got -1",
        ),
        ({**LOCATED, "counts": [[0, 0], [0, 0]]}, "/localisation/counts: expected at least one item"),
    ],
)  # fmt: skip
def test_counts_that_are_none_are_named(tmp_path, monkeypatch, found, message):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, localisation=found)
    with pytest.raises(InputError) as caught:
        read_confusion("cm.json")
    assert str(caught.value) == f"cm.json: {message}"


def test_a_bin_without_items_is_refused_where_something_stands_in_it(tmp_path):
    bare = replace(MATRICES, metadata={"localisation": {**LOCATED, "counts": [[4, 0], [1, 0]]}})
    assert ends(tmp_path, NEAR, "near", bare)[2] == SEEN * CLOSE
    with pytest.raises(InputError, match=r"no items for objects in \[10, 20\) m"):
        ends(tmp_path, NEAR, "far", bare)


def test_files_are_merged_with_their_localisation_and_written_again(tmp_path):
    first, second = (read_counts(written(tmp_path, name)) for name in ("a.json", "b.json"))
    merged = merge([first, second], ["a.json", "b.json"])
    (tmp_path / "sum.json").write_text(confusion_text(merged))
    again = read_confusion(tmp_path / "sum.json").matrices
    assert again.localisation.tolist() == [[8, 2], [2, 4]]
    assert again.canonical().localisation is None
    bare = read_counts(written(tmp_path, "c.json", localisation=None))
    with pytest.raises(InputError, match=r"c\.json: no localisation, which a\.json has"):
        merge([first, bare], ["a.json", "c.json"])


def test_a_run_says_that_the_errors_of_distance_are_taken_as_exact(tmp_path):
    model_of(tmp_path, NEAR)
    (tmp_path / "s.ltl").write_text('model "m.toml"\nnear: P = ? [ F x = 2 ]\n')
    result = verify_spec(tmp_path / "s.ltl", written(tmp_path), RunOptions())
    assert result.requirements[0].points[0].probability == pytest.approx(0.6)
    remark = "planner driver: reported distances err as 8 items say, which are taken as exact"
    assert remark in result.remarks
    assert result.matrices.localisation == LOCATED
    plain = '{ when = "sees(ped)", set = { go = 2 } }, { set = { go = 1 } }'
    model_of(tmp_path, plain)
    assert remark not in verify_spec(tmp_path / "s.ltl", written(tmp_path), RunOptions()).remarks
