"""Mixes of a further variable: bounds against all vertices in fractions, points by hand, runs, and refusals."""

import hashlib
import itertools
import json
import math
from fractions import Fraction

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.analysis.settings import ConfidenceSettings
from verifier.base.errors import InputError, UsageError
from verifier.cli import main
from verifier.evidence.documents import schema_of
from verifier.perception.confusion.bins import Variable
from verifier.perception.confusion.document import read_confusion, read_counts
from verifier.perception.confusion.mix import Mix, MixedMatrices, _in_units, mixed_ends, mixed_rates, read_mix
from verifier.pipeline import verify_spec
from verifier.questions.compare.comparing import compare
from verifier.questions.compare.gating import CompareOptions
from verifier.questions.explain.explaining import explain_spec
from verifier.study.options import RunOptions

LIGHT = Variable("light", groups=(("day", ("day",)), ("dusk", ("dusk",)), ("night", ("night",))))


@st.composite
def mixes(draw, names=("day", "dusk", "night")):
    """Bounds around some weights that add up to 1."""
    parts = draw(st.lists(st.integers(0, 9), min_size=len(names), max_size=len(names)).filter(any))
    weights = [Fraction(part, sum(parts)) for part in parts]
    slack = st.fractions(0, 1, max_denominator=9)
    least = tuple(weight * draw(slack) for weight in weights)
    most = tuple(weight + (1 - weight) * draw(slack) for weight in weights)
    return Mix("light", tuple(names), least, most), weights


def vertices(mix):
    """The vertices of the polytope of weights: all but one at an end of its bounds."""
    ends = list(zip(mix.least, mix.most, strict=True))
    for free in range(len(ends)):
        for chosen in itertools.product(*(ends[:free] + ends[free + 1 :])):
            weight = 1 - sum(chosen)
            if ends[free][0] <= weight <= ends[free][1]:
                yield (*chosen[:free], weight, *chosen[free:])


UNIT = 10**9


@given(mixes(), st.data())
def test_ends_are_the_extremes_over_all_vertices(case, data):
    mix, _ = case
    pairs = st.tuples(st.integers(0, UNIT), st.integers(0, UNIT)).map(sorted)
    ends = np.array([[data.draw(pairs) for _ in range(2)] for _ in mix.names])
    lower, upper = mixed_ends(ends[..., 0], ends[..., 1], mix)
    for event in range(2):
        sums = [
            [
                sum(w * int(ends[stratum, event, side]) for stratum, w in enumerate(weights))
                for weights in vertices(mix)
            ]
            for side in (0, 1)
        ]
        assert lower[event] == math.floor(min(sums[0]))
        assert upper[event] == math.ceil(max(sums[1]))


@given(mixes(), st.data())
def test_the_truth_lies_within_whatever_the_weights(case, data):
    mix, weights = case
    rates = [data.draw(st.fractions(0, 1, max_denominator=50)) for _ in mix.names]
    lower = np.array([math.floor(rate * UNIT) for rate in rates])
    upper = np.array([math.ceil(rate * UNIT) for rate in rates])
    low, high = mixed_ends(lower, upper, mix)
    for each in (weights, mix.point):
        truth = sum(w * rate for w, rate in zip(each, rates, strict=True))
        assert low <= truth * UNIT <= high
    assert sum(mix.point) == 1
    assert all(a <= w <= b for a, w, b in zip(mix.least, mix.point, mix.most, strict=True))


def test_ends_by_hand():
    # Day .7, night .2 to .3, dusk what is left, at most .1. Lower ends .9, .5, .6: dusk is worst, then night.
    mix = Mix("light", ("day", "dusk", "night"), (Fraction(7, 10), Fraction(0), Fraction(1, 5)),
              (Fraction(7, 10), Fraction(1, 10), Fraction(3, 10)))  # fmt: skip
    low, high = mixed_ends(np.array([9, 5, 6]) * 10**8, np.array([10, 9, 8]) * 10**8, mix)
    assert low == 63 * 10**7 + 5 * 10**7 + 12 * 10**7  # .63 + .05 + .12
    assert high == 70 * 10**7 + 9 * 10**7 + 16 * 10**7
    assert mix.point == (Fraction(7, 10), Fraction(1, 20), Fraction(1, 4))
    thirds = Mix("light", ("day", "dusk", "night"), *[(Fraction(1, 3),) * 3] * 2)
    low, high = mixed_ends(np.array([1, 0, 0]), np.array([1, 0, 0]), thirds)
    assert (low, high) == (0, 1)  # rounded outwards


HALF, NONE, ALL = Fraction(1, 2), Fraction(0), Fraction(1)


@pytest.mark.parametrize(
    ("names", "least", "most", "words"),
    [
        (("a", "b"), (HALF,), (HALF, HALF), "a name of its own and bounds"),
        (("a", "b"), (HALF, HALF), (HALF,), "a name of its own and bounds"),
        (("a", "b", "c"), (HALF, HALF), (HALF, HALF), "a name of its own and bounds"),
        (("a", "a"), (HALF, HALF), (HALF, HALF), "a name of its own and bounds"),
        (("a", "b"), (-HALF, HALF), (HALF, HALF), "lie between 0 and 1, and their bounds are in order"),
        (("a", "b"), (NONE, HALF), (Fraction(3, 2), HALF), "lie between 0 and 1, and their bounds are in order"),
        (("a", "b"), (HALF, HALF), (ALL, Fraction(1, 4)), "lie between 0 and 1, and their bounds are in order"),
        (("a", "b"), (HALF, Fraction(3, 5)), (ALL, ALL), "no weights within the bounds add up to 1"),
        (("a", "b"), (NONE, NONE), (HALF, Fraction(2, 5)), "no weights within the bounds add up to 1"),
    ],
)
def test_weights_that_cannot_be(names, least, most, words):
    with pytest.raises(ValueError, match=words):
        Mix("light", names, least, most)


def test_weights_at_the_ends_of_what_can_be_are_told():
    for least, most, point, text in (
        ((NONE, ALL), (NONE, ALL), (NONE, ALL), "light: a 0, b 1"),
        ((HALF, HALF), (ALL, HALF), (HALF, HALF), "light: a 0.5 to 1, b 0.5"),
        ((NONE, NONE), (HALF, HALF), (HALF, HALF), "light: a 0 to 0.5, b 0 to 0.5"),
        ((NONE, NONE), (ALL, HALF), (Fraction(2, 3), Fraction(1, 3)), "light: a 0 to 1, b 0 to 0.5"),
    ):
        mix = Mix("light", ("a", "b"), least, most)
        assert (mix.point, str(mix), mix.bounded) == (point, text, least != most)


def test_units_are_exact_or_billionths_with_what_is_missing_where_most_was_cut_off():
    bit = Fraction(1, 2**60)
    for rates, units in (
        ([Fraction(1, 2**53), 1 - Fraction(1, 2**53)], [1, 2**53 - 1]),
        ([Fraction(1, 6), Fraction(1, 2), Fraction(1, 3)], [1, 3, 2]),
        ([Fraction(1, 2**53 + 1), 1 - Fraction(1, 2**53 + 1)], [0, 10**9]),
        ([Fraction(1, 3) - bit, Fraction(1, 3), Fraction(1, 3) + bit], [333333333, 333333333, 333333334]),
        ([Fraction(1, 3) + bit, Fraction(1, 3), Fraction(1, 3) - bit], [333333334, 333333333, 333333333]),
        ([Fraction(2, 3) - 2 * bit, Fraction(1, 6) + bit, Fraction(1, 6) + bit], [666666666, 166666667, 166666667]),
    ):
        assert _in_units(rates) == units


FILE = 'variable = "light"\n[weights]\nday = 0.7\ndusk = [0, 0.1]\nnight = [0.2, 0.3]\n'


def test_a_mix_is_read_exactly(tmp_path):
    (tmp_path / "mix.toml").write_text(FILE)
    found = read_mix(tmp_path / "mix.toml", [LIGHT])
    assert found.least == (Fraction(7, 10), Fraction(0), Fraction(1, 5))
    assert found.most == (Fraction(7, 10), Fraction(1, 10), Fraction(3, 10))
    assert found.bounded
    assert found.document() == {
        "variable": "light",
        "name": "mix.toml",
        "sha256": hashlib.sha256(FILE.encode()).hexdigest(),
        "weights": {"day": 0.7, "dusk": [0.0, 0.1], "night": [0.2, 0.3]},
    }


REFUSED = [
    (FILE.replace('"light"', '"ligth"'), "mix.toml:1: variable: unknown variable of the matrices 'ligth'"),
    (
        FILE.replace("dusk", "dsuk"),
        "mix.toml:4: weights.dsuk: 'light' has no bin 'dsuk'\n  hint: did you mean 'dusk'?",
    ),
    (FILE.replace("dusk = [0, 0.1]\n", ""), "mix.toml:2: weights: no weight for the bin 'dusk' of 'light'"),
    (FILE.replace("0.7", "1.7"), "mix.toml:3: weights.day: expected a number from 0 to 1, got 1.7"),
    (FILE.replace("0.7", '"most"'), "mix.toml:3: weights.day: expected a number from 0 to 1, got 'most'"),
    (FILE.replace("[0.2, 0.3]", "[0.3, 0.2]"), "mix.toml:5: weights.night: expected a number from 0 to 1, or two"),
    (FILE.replace("[0.2, 0.3]", "[0.2]"), "mix.toml:5: weights.night: expected a number from 0 to 1, or two"),
    (FILE.replace("0.7", "0.5"), "mix.toml:2: weights: the weights must add up to 1, and they add up to 0.7 to 0.9"),
    (
        FILE.replace("dusk = [0, 0.1]", "dusk = 0").replace("[0.2, 0.3]", "0.4"),
        "mix.toml:2: weights: the weights must add up to 1, and they add up to 1.1",
    ),
    (FILE.replace("0.7", "0.9"), "mix.toml:2: weights: the weights must add up to 1, and they add up to 1.1 to 1.3"),
    (FILE + "xyz = 1\n", "mix.toml:6: weights.xyz: 'light' has no bin 'xyz'\n  hint: its bins are: day, dusk, night"),
    (FILE.replace('"light"', "3"), "mix.toml:1: variable: unknown variable of the matrices '3'"),
    ("weight = 3\n", "mix.toml:1: weight: unknown key 'weight'"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=[each[1][:45] for each in REFUSED])
def test_files_that_are_no_mix_are_refused(tmp_path, monkeypatch, text, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mix.toml").write_text(text)
    with pytest.raises(InputError) as caught:
        read_mix("mix.toml", [LIGHT])
    assert str(caught.value).startswith(words)


def test_matrices_by_distance_alone_cannot_be_weighed(tmp_path):
    (tmp_path / "mix.toml").write_text(FILE)
    with pytest.raises(InputError, match="counted by distance alone"):
        read_mix(tmp_path / "mix.toml", [])


def document(root, **changes):
    """The published matrices by class, and as many items again that are hidden: of those a third fewer are seen."""
    published = json.loads((root / "examples/nuscenes_yolov3_class.json").read_text())
    empty = published["labels"].index("empty")
    bins = []
    for each in published["bins"]:
        hidden = [list(row) for row in each["counts"]]
        for true in range(len(hidden)):
            for row in range(len(hidden)):
                if row != empty and true != empty:
                    moved = hidden[row][true] // 3
                    hidden[row][true] -= moved
                    hidden[empty][true] += moved
        for name, counts in (("seen", each["counts"]), ("hidden", hidden)):
            bins.append({"distance_m": each["distance_m"], "where": {"occluded": name}, "counts": counts})
    variables = [{"name": "occluded", "of": "object", "values": {"seen": ["0"], "hidden": ["1", "2"]}}]
    return {**published, "variables": variables, "bins": bins, **changes}


@pytest.fixture
def files(root, tmp_path):
    def write(weights, name="mix.toml", **changes):
        (tmp_path / "counts.json").write_text(json.dumps(document(root, **changes)))
        (tmp_path / name).write_text(f'variable = "occluded"\n[weights]\n{weights}\n')
        return tmp_path / "counts.json", str(tmp_path / name)

    return write


def test_the_point_is_the_weighted_rate(files):
    path, mix = files("seen = 0.25\nhidden = 0.75")
    counts = read_counts(path)
    found = read_confusion(path, mix=mix)
    seen, hidden = (counts.matrices({"occluded": name}) for name in ("seen", "hidden"))
    mixed = found.mixed.matrices()
    assert mixed.metadata == counts.matrices().metadata  # which are of no one bin
    for at, true in np.ndindex(mixed.counts.shape[0], mixed.counts.shape[2]):
        for predicted in range(len(mixed.labels)):
            items = [int(each.counts[at, :, true].sum()) for each in (seen, hidden)]
            total = int(mixed.counts[at, :, true].sum())
            if not all(items):
                assert total == 0
                continue
            expected = Fraction(int(seen.counts[at, predicted, true]), items[0]) / 4
            expected += Fraction(int(hidden.counts[at, predicted, true]), items[1]) * Fraction(3, 4)
            assert Fraction(int(mixed.counts[at, predicted, true]), total) == expected
    assert found.matrices.metadata["mix"]["weights"] == {"seen": 0.25, "hidden": 0.75}


def test_weights_as_counted_give_the_sum(files, tmp_path):
    """One column with 30 and 90 items: a quarter and three quarters are what the sum over the variable has."""
    bins = [
        {"distance_m": [0, 10], "where": {"occluded": "seen"}, "counts": [[27, 0], [3, 9]]},
        {"distance_m": [0, 10], "where": {"occluded": "hidden"}, "counts": [[31, 0], [59, 9]]},
    ]
    path, mix = files("seen = 0.25\nhidden = 0.75", labels=["ped", "empty"], bins=bins)
    found = read_confusion(path, mix=mix)
    rates = mixed_rates(found.mixed.strata, found.mixed.mix.point)
    assert rates[0, :, 0].tolist() == [Fraction(58, 120), Fraction(62, 120)]
    assert rates[0, :, 1].tolist() == [0, 1]


def test_a_column_that_needs_too_large_a_unit_is_rounded_to_billionths(files):
    items = [999999937, 999999929, 999999893]  # primes; their product is above 2**53
    rates = [Fraction(1, n) for n in items]
    bins = [
        {"distance_m": [0, 10], "where": {"occluded": str(k)}, "counts": [[1, 0], [n - 1, 5]]}
        for k, n in enumerate(items)
    ]
    variables = [{"name": "occluded", "of": "object", "values": {str(k): [str(k)] for k in range(3)}}]
    path, mix = files("0 = 0.5\n1 = 0.25\n2 = 0.25", labels=["ped", "empty"], bins=bins, variables=variables)
    (ped, missed), _ = read_confusion(path, mix=mix).mixed.matrices().counts[0].T.tolist()
    assert ped + missed == UNIT
    exact = rates[0] / 2 + rates[1] / 4 + rates[2] / 4
    assert abs(Fraction(ped, UNIT) - exact) <= Fraction(1, UNIT)


def test_where_and_mix_on_one_variable_are_refused(files):
    path, mix = files("seen = 1\nhidden = 0")
    counts = read_counts(path)
    own = read_mix(mix, counts.bins.variables)
    with pytest.raises(
        UsageError, match="--mix weighs the bins of 'occluded', by which the model says where objects"
    ):
        MixedMatrices.of(counts, own, {}, ["occluded"])
    found = MixedMatrices.of(counts, own, {})
    assert found.sequences is None
    assert found.canonical().sequences is None
    assert [each.counts.shape[0] for each in found.canonical().strata] == [1, 1]
    with pytest.raises(UsageError, match="--where chooses a bin of 'occluded'"):
        read_confusion(path, {"occluded": "seen"}, mix=mix)


def points(result):
    return [point for requirement in result.requirements for point in requirement.points]


def run(root, path, mix=None, **options):
    options = {"empty_columns": "prior", **options}
    return verify_spec(root / "specs/car_pedestrian.ltl", path, RunOptions(mix=mix, **options))


def test_weight_one_is_that_stratum_alone_with_alpha_for_all(root, files):
    path, mix = files("seen = 1\nhidden = 0")
    mixed, alone = run(root, path, mix), run(root, path, where={"occluded": "seen"})
    for one, other in zip(points(mixed), points(alone), strict=True):
        assert math.isclose(one.probability, other.probability, abs_tol=1e-12)
        # Twice the chances: alpha is divided among those of both strata.
        assert one.uncertainty.confidence_bounds.lower <= other.uncertainty.confidence_bounds.lower
        assert one.uncertainty.confidence_bounds.upper >= other.uncertainty.confidence_bounds.upper
    counted = [each.settings.confidence.bounds.chances for each in (mixed, alone)]
    assert counted[0] == 2 * counted[1]
    assert any(one.uncertainty.confidence_bounds.lower > 0 for one in points(mixed))


def test_bounds_of_stated_weights_lie_within_those_of_bounded_ones(root, files):
    path, stated = files("seen = 0.6\nhidden = 0.4", "stated.toml")
    _, bounded = files("seen = [0.5, 0.7]\nhidden = [0.3, 0.5]", "bounded.toml")
    first, second = run(root, path, stated), run(root, path, bounded)
    wider = 0
    for one, other in zip(points(first), points(second), strict=True):
        assert math.isclose(one.probability, other.probability, abs_tol=1e-9)  # .6 lies in the middle
        assert other.uncertainty.confidence_bounds.lower <= one.uncertainty.confidence_bounds.lower + 1e-12
        assert other.uncertainty.confidence_bounds.upper >= one.uncertainty.confidence_bounds.upper - 1e-12
        wider += other.uncertainty.confidence_bounds.lower < one.uncertainty.confidence_bounds.lower - 1e-6
        for each in (one, other):
            assert (
                each.uncertainty.confidence_bounds.lower - 1e-9
                <= each.probability
                <= each.uncertainty.confidence_bounds.upper + 1e-9
            )
    assert wider > 0
    content = json.loads(second.json_text())
    jsonschema.validate(content, schema_of("verifier.run"))
    assert content["matrices"]["mix"]["weights"] == {"seen": [0.5, 0.7], "hidden": [0.3, 0.5]}
    said = "P and its interval are for one point of the bounded weights; only the bounds cover all of them"
    assert any(said in remark for remark in second.remarks)
    assert not any(said in remark for remark in first.remarks)


def test_drives_are_resampled_in_all_strata_together(root, files):
    """Six drives with a sixth of all items each: the interval holds the point; the bounds are those of drives."""
    path, mix = files("seen = 0.6\nhidden = 0.4")
    content = json.loads(path.read_text())
    for each in content["bins"]:
        # Twice as many objects hidden as seen.
        twice = 12 if each["where"]["occluded"] == "hidden" else 6
        each["counts"] = [[*(twice * number for number in row[:-1]), 6 * row[-1]] for row in each["counts"]]
    rows = [
        [at, predicted, true, number // 6]
        for at, each in enumerate(content["bins"])
        for predicted, row in enumerate(each["counts"])
        for true, number in enumerate(row)
        if number
    ]
    content["sequences"] = [{"name": f"drive {k}", "frames": 100, "counts": rows} for k in range(6)]
    path.write_text(json.dumps(content))
    result = run(root, path, mix)
    assert result.settings.confidence.bounds.tier == "independent_drives"
    assert result.settings.confidence.interval == "bootstrap"
    # Bounds rest on the largest drive of each stratum, not on that of the stratum where it is largest.
    held = [
        [sum(row[true] for row in each["counts"]) // 6 for true in range(len(content["labels"]))]
        for each in content["bins"]
    ]
    told = result.settings.confidence.bounds.largest_drive.columns
    needed = {(each.bin, each.true) for each in told}
    assert {(each.bin, each.true, each.items) for each in told} == {
        (at // 2, true, held[at][true])
        for at in range(len(held))
        for true in range(len(held[0]))
        if held[at][true]
        if (at // 2, true) in needed
    }
    for each in points(result):
        bounds, interval = each.uncertainty.confidence_bounds, each.uncertainty.interval
        assert bounds.lower - 1e-9 <= each.probability <= bounds.upper + 1e-9
        assert interval.lower <= each.probability <= interval.upper
    with pytest.raises(UsageError, match="--mix weighs"):
        run(root, path, mix, confidence=ConfidenceSettings(weights="drive"))


def test_the_command_says_what_it_weighs(root, files, capfd):
    path, mix = files("seen = 0.6\nhidden = 0.4")
    arguments = ["run", str(root / "specs/car_pedestrian.ltl"), "--cm", str(path), "--empty-columns", "prior"]
    main([*arguments, "--mix", mix])
    text = capfd.readouterr().out
    assert "rates are weighed by occluded: seen 0.6, hidden 0.4" in text
    assert main([*arguments, "--mix", mix, "--where", "occluded=seen"]) == 2
    chance = ["--baseline", str(path), "--max-drop", "0.1", "--drop-from", "probability:0.9"]
    assert main([*arguments, "--mix", mix, *chance]) == 2
    assert "leave out --point-only, --round-transitions, --mix and --persist" in capfd.readouterr().err
    spec, options = root / "specs/car_pedestrian.ltl", RunOptions(mix=mix)
    with pytest.raises(UsageError, match="--mix belongs to verify run"):
        compare([spec], {"a": path}, CompareOptions(), options)
    with pytest.raises(UsageError, match="--mix belongs to verify run"):
        explain_spec(spec, path, options)
