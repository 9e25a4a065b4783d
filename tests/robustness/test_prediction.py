"""Contextual mutators predicted from simple ones: by hand, against a second solver, and Table IV of the paper.

R^2 of each detector left out, from Table IV as printed but for the baseline of Deformable R-FCN (.63 for .71):

    detector                          defocus from blur   haze from alpha blend
    MS-CNN                                 .994                 .918
    SSD w/ MobileNets                      .990                 .846
    SSD w/ Inception                       .972                 .913
    Faster R-CNN w/ Resnet 101             .993                 .948
    R-FCN w/ Resnet 101                    .994               -2.233
    Faster R-CNN w/ Inception Resnet       .996                 .603
    Deformable R-FCN                       .994                 .987
    Deformable Faster R-CNN                .976                 .682
    pooled                                 .991                 .893
    the paper says                  ">= .98 for all"     "poor predictions of several"

The paper fitted its unrounded numbers; two decimals are what separates .972 and .976 from .98.
"""

import csv
import json
import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import InputError, UsageError
from verifier.robustness.prediction import IDENTITY, AdrTable, jackknife_plus, predict, r_squared

DEFORMABLE = "Deformable R-FCN"
CORRECTED = 0.63
DEFOCUS = {
    "MS-CNN": 0.994,
    "SSD w/ MobileNets": 0.990,
    "SSD w/ Inception": 0.972,
    "Faster R-CNN w/ Resnet 101": 0.993,
    "R-FCN w/ Resnet 101": 0.994,
    "Faster R-CNN w/ Inception Resnet": 0.996,
    "Deformable R-FCN": 0.994,
    "Deformable Faster R-CNN": 0.976,
}
HAZE = {
    "MS-CNN": 0.918,
    "SSD w/ MobileNets": 0.846,
    "SSD w/ Inception": 0.913,
    "Faster R-CNN w/ Resnet 101": 0.948,
    "R-FCN w/ Resnet 101": -2.233,
    "Faster R-CNN w/ Inception Resnet": 0.603,
    "Deformable R-FCN": 0.987,
    "Deformable Faster R-CNN": 0.682,
}


def three(first, second):
    """Detectors A, B, C with baseline 1/2 and two conditions, given as normalised ADR."""
    rows = np.array([first, second]) / 2
    return AdrTable(("A", "B", "C"), np.full(3, 0.5), ("t1", "t2"), rows)


def test_the_identity_alone_predicts_the_mean_of_the_others():
    # Observed .2 .4 .6 and .6 .8 1. A: (.4 + .6)/2 = .5 and .9; B: .4 and .8; C: .3 and .7.
    # R^2 of A: 1 - (.3^2 + .3^2) / (.2^2 + .2^2) = 1 - .18/.08 = -1.25; B is exact; C as A.
    # Pooled about the mean .6: 1 - .36 / (.16 + .04 + 0 + 0 + .04 + .16) = 1/10.
    found = predict(three([0.2, 0.4, 0.6], [0.6, 0.8, 1.0]), ["t1", "t2"], [])
    assert found.features == (IDENTITY,)
    assert found.predicted == pytest.approx(np.array([[0.5, 0.4, 0.3], [0.9, 0.8, 0.7]]))
    assert found.r_squared == pytest.approx({"A": -1.25, "B": 1.0, "C": -1.25})
    assert found.pooled_r_squared == pytest.approx(0.1)
    assert found.weights.shape == (3, 2, 1)
    assert found.weights_of_all == pytest.approx(np.array([[0.4], [0.8]]))
    assert found.unique.all()


def test_half_sharp_half_blurred_is_found_exactly():
    # t2 = 1/2 + t1 / 2 for every detector: weights 1/2 and 1/2.
    found = predict(three([0.2, 0.4, 0.8], [0.6, 0.7, 0.9]), ["t2"], ["t1"])
    assert found.predicted == pytest.approx(found.observed)
    assert found.weights == pytest.approx(np.full((3, 1, 2), 0.5))
    assert found.pooled_r_squared == pytest.approx(1)
    assert all(math.isnan(value) for value in found.r_squared.values())  # one target: nothing varies


def test_weights_are_not_negative():
    # B and C: blur .5 and 1, target 1 and .75. The exact line 1.25 - .5 blur has a negative weight; without it the
    # best constant is 7/8. A is predicted 7/8, whatever its blur.
    found = predict(three([0.1, 0.5, 1.0], [0.3, 1.0, 0.75]), ["t2"], ["t1"])
    assert found.weights[0, 0] == pytest.approx([0.875, 0])
    assert found.predicted[0, 0] == pytest.approx(0.875)


def test_without_the_identity_one_feature_is_a_proportion():
    # A left out: w = (.4 * .2 + .8 * .6) / (.4^2 + .8^2) = .56 / .8 = .7, so .2 w = .14.
    found = predict(three([0.2, 0.4, 0.8], [0.5, 0.2, 0.6]), ["t2"], ["t1"], identity=False)
    assert found.features == ("t1",)
    assert found.weights[0, 0] == pytest.approx([0.7])
    assert found.predicted[0, 0] == pytest.approx(0.14)


def test_two_features_alike_leave_the_weights_open():
    table = AdrTable(
        ("A", "B", "C"), np.ones(3), ("t", "one", "same"), [[0.5, 0.6, 0.7], [0.2, 0.4, 0.6], [0.2, 0.4, 0.6]]
    )
    assert not predict(table, ["t"], ["one", "same"]).unique.any()
    assert predict(table, ["t"], ["one"]).unique.all()


def test_r_squared_by_hand():
    assert r_squared(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0])) == 0.5  # 1 - 1/2
    assert math.isnan(r_squared(np.array([2.0, 2.0]), np.array([1.0, 2.0])))
    assert math.isnan(r_squared(np.zeros(0), np.zeros(0)))


def by_enumeration(features, target):
    """Non-negative least squares by trying every set of columns: the best that needs no negative weight."""
    count = features.shape[1]
    best, weights = np.linalg.norm(target), np.zeros(count)
    for size in range(1, count + 1):
        for chosen in map(list, combinations(range(count), size)):
            found = np.linalg.lstsq(features[:, chosen], target, rcond=None)[0]
            loss = np.linalg.norm(features[:, chosen] @ found - target)
            if (found >= 0).all() and loss < best - 1e-12:
                best, weights = loss, np.zeros(count)
                weights[chosen] = found
    return weights


@given(st.integers(3, 6), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_the_fits_are_those_of_an_enumeration(detectors, features, seed):
    rng = np.random.default_rng(seed)
    names = tuple(f"c{i}" for i in range(features + 2))
    adr = rng.uniform(0, 1, (features + 2, detectors))
    table = AdrTable(tuple("ABCDEF"[:detectors]), rng.uniform(0.2, 1, detectors), names, adr)
    found = predict(table, names[:2], names[2:])
    columns = np.column_stack([np.ones(detectors), (adr[2:] / table.baseline).T])
    for out in range(detectors):
        others = np.arange(detectors) != out
        for target in range(2):
            wanted = adr[target] / table.baseline
            expected = by_enumeration(columns[others], wanted[others])
            residual = np.linalg.norm(columns[others] @ found.weights[out, target] - wanted[others])
            assert residual <= np.linalg.norm(columns[others] @ expected - wanted[others]) + 1e-9
            assert (found.weights[out, target] >= 0).all()
            if found.unique[out, target]:
                assert found.weights[out, target] == pytest.approx(expected, abs=1e-6)


@given(st.integers(0, 2**32 - 1))
def test_only_normalised_rates_matter_and_no_order(seed):
    rng = np.random.default_rng(seed)
    adr, baseline = rng.uniform(0, 1, (3, 5)), rng.uniform(0.5, 1, 5)
    table = AdrTable(tuple("ABCDE"), baseline, ("t", "f", "g"), adr)
    scale, order = rng.uniform(0.1, 1, 5), rng.permutation(5)
    other = AdrTable(
        tuple(np.array(table.detectors)[order]), (baseline * scale)[order], ("t", "f", "g"), (adr * scale)[:, order]
    )
    one, two = predict(table, ["t"], ["f", "g"]), predict(other, ["t"], ["f", "g"])
    assert one.predicted[:, order] == pytest.approx(two.predicted, abs=1e-9)


# Table IV


@pytest.fixture(scope="module")
def published(root):
    return json.loads((root / "examples/reproduce/average_detection_rates.json").read_text())


def families(published):
    return [name for name in published if name not in ("source", "about", "detectors", "baseline")]


@pytest.fixture(scope="module")
def table(published):
    rows = {name: rates for family in families(published) for name, rates in published[family].items()}
    return AdrTable(tuple(published["detectors"]), published["baseline"], tuple(rows), list(rows.values()))


def test_the_table_is_the_one_of_the_reference(published, shared):
    with (shared / "reference/001_table4_adr.csv").open() as stream:
        first, *rows = csv.reader(stream)
    assert published["detectors"] == first[4:]
    expected = {(family, name.replace(";", " ")): [*map(float, rates)] for _, family, name, _, *rates in rows}
    found = {(family, name): rates for family in families(published) for name, rates in published[family].items()}
    assert found | {("baseline", ""): published["baseline"]} == expected
    assert len(found) == 47


def test_defocus_from_blur(published, table):
    found = predict(
        table.with_baseline(DEFORMABLE, CORRECTED), [*published["defocus"]], [*published["gaussian_blur"]]
    )
    assert found.r_squared == pytest.approx(DEFOCUS, abs=5e-4)
    assert min(found.r_squared.values()) >= 0.97
    assert found.pooled_r_squared == pytest.approx(0.991, abs=5e-4)
    assert found.pooled_r_squared >= 0.99
    assert sum(value >= 0.98 for value in found.r_squared.values()) == 6  # the claim, but for two of eight


def test_haze_from_alpha_blend_is_poor(published, table):
    found = predict(table.with_baseline(DEFORMABLE, CORRECTED), [*published["haze"]], [*published["alpha_blend"]])
    assert found.r_squared == pytest.approx(HAZE, abs=5e-4)
    assert found.pooled_r_squared == pytest.approx(0.893, abs=5e-4)
    assert found.r_squared["R-FCN w/ Resnet 101"] < 0
    assert sum(value < 0.95 for value in found.r_squared.values()) == 7


def test_a_second_solver_gives_the_same_table(published, table):
    corrected = table.with_baseline(DEFORMABLE, CORRECTED)
    for target, simple in (("defocus", "gaussian_blur"), ("haze", "alpha_blend")):
        found = predict(corrected, [*published[target]], [*published[simple]])
        columns = np.column_stack([np.ones(8), corrected.normalised([*published[simple]]).T])
        wanted = corrected.normalised([*published[target]])
        for out in range(8):
            others = np.arange(8) != out
            for row in range(len(wanted)):
                expected = by_enumeration(columns[others], wanted[row, others])
                assert found.predicted[row, out] == pytest.approx(columns[out] @ expected, abs=1e-7)
        assert found.unique.all()


def test_what_the_two_switches_do(published, table):
    defocus, blur = [*published["defocus"]], [*published["gaussian_blur"]]
    printed = predict(table, defocus, blur).r_squared
    assert printed[DEFORMABLE] == pytest.approx(0.783, abs=5e-4)  # against .994 with the baseline .63
    without = predict(table.with_baseline(DEFORMABLE, CORRECTED), defocus, blur, identity=False).r_squared
    assert min(without, key=without.get) == "SSD w/ Inception"
    assert without["SSD w/ Inception"] == pytest.approx(0.935, abs=5e-4)  # against .972 with the identity


def test_the_weights_sit_at_the_nearest_blur(published, table):
    # Figure 8. With u_f = 1 m a person D metres away is blurred by kappa (1 - 1/D) pixels: .9 kappa at 10 m, or as
    # much as was tried, 3. The mean blur under the weights lies within half a step of the blurs tried, .25 px.
    blur = [*published["gaussian_blur"]]
    names = [f"u_f_m=1.0 kappa={kappa}" for kappa in (2.0, 2.8, 3.6)]
    corrected = table.with_baseline(DEFORMABLE, CORRECTED)
    found = predict(corrected, names, blur)
    sigma = np.array([0.0, *(float(name.removeprefix("sigma_px=")) for name in blur)])
    mean = found.weights_of_all @ sigma / found.weights_of_all.sum(axis=1)
    assert mean == pytest.approx([1.8, 2.52, 3.0], abs=0.25)
    # Focused at 10 m with the best camera, nearly nothing is blurred: most of the weight is the identity's.
    assert predict(corrected, ["u_f_m=10.0 kappa=2.0"], blur).weights_of_all[0, 0] > 0.8


# What is refused


def test_tables_that_are_none():
    with pytest.raises(ValueError, match=r"adr has shape \(1, 2\), expected \(1, 3\)"):
        AdrTable(("A", "B", "C"), np.ones(3), ("t",), [[0.5, 0.5]])
    with pytest.raises(ValueError, match="lies in \\[0, 1\\]"):
        AdrTable(("A", "B"), np.ones(2), ("t",), [[0.5, 1.5]])
    with pytest.raises(ValueError, match="lies in \\[0, 1\\]"):
        AdrTable(("A", "B"), [1, np.nan], ("t",), [[0.5, 0.5]])
    with pytest.raises(ValueError, match="occurs twice"):
        AdrTable(("A", "A"), np.ones(2), ("t",), [[0.5, 0.5]])
    with pytest.raises(InputError, match="the baseline of 'B' is 0"):
        AdrTable(("A", "B"), [0.5, 0], ("t",), [[0.5, 0.5]])


def test_names_that_are_not_there():
    table = AdrTable.of({"A": {"baseline": 0.5, "blur": 0.25}, "B": {"blur": 0.3, "baseline": 0.6}})
    assert table.conditions == ("blur",)
    assert table.normalised(["blur"]).tolist() == [[0.5, 0.5]]
    assert table.with_baseline("B", 0.3).normalised(["blur"]).tolist() == [[0.5, 1.0]]
    with pytest.raises(UsageError, match="unknown condition 'blr'\n  hint: did you mean 'blur'"):
        predict(table, ["blr"], [])
    with pytest.raises(UsageError, match="unknown detector 'C'"):
        table.with_baseline("C", 0.5)
    with pytest.raises(UsageError, match="'B' has other conditions"):
        AdrTable.of({"A": {"baseline": 0.5, "blur": 0.25}, "B": {"baseline": 0.6}})


def test_nothing_to_predict_or_to_learn_from():
    table = AdrTable(("A",), [0.5], ("t", "f"), [[0.1], [0.2]])
    with pytest.raises(UsageError, match="needs another one to learn from"):
        predict(table, ["t"], ["f"])
    for targets, simple, identity in (([], ["f"], True), (["t"], ["t"], True), (["t"], [], False)):
        with pytest.raises(UsageError, match="each named once"):
            predict(table, targets, simple, identity)


@given(st.integers(4, 6), st.integers(1, 2), st.sampled_from([0.5, 0.6, 0.8]), st.integers(0, 2**32 - 1))
def test_prediction_intervals_are_those_of_an_own_jackknife(detectors, features, confidence, seed):
    rng = np.random.default_rng(seed)
    columns = np.column_stack([np.ones(detectors), rng.uniform(0, 1, (detectors, features))])
    values, at = rng.uniform(0, 1, detectors), np.append(1.0, rng.uniform(0, 1, features))
    low, high = [], []
    for out in range(detectors):
        rest = [each for each in range(detectors) if each != out]
        weights = by_enumeration(columns[rest], values[rest])
        residual = abs(values[out] - columns[out] @ weights)
        low.append(at @ weights - residual)
        high.append(at @ weights + residual)
    # alpha (n + 1) counted in tenths, so that no rounding decides which value it is.
    below = round((1 - confidence) * 10) * (detectors + 1) // 10
    above = -(-round(confidence * 10) * (detectors + 1) // 10)
    found = jackknife_plus(columns, values, at, confidence)
    if above > detectors:
        assert below == 0
        assert all(map(math.isnan, found))
    else:
        assert found == pytest.approx((sorted(low)[below - 1], sorted(high)[above - 1]), abs=1e-7)


def test_intervals_hold_new_detectors_as_often_as_they_say():
    rng, held = np.random.default_rng(3), 0
    for _ in range(300):
        columns = np.column_stack([np.ones(8), rng.uniform(0.2, 1, 8)])
        values = 0.3 + 0.6 * columns[:, 1] + rng.normal(0, 0.05, 8)
        low, high = jackknife_plus(columns[:7], values[:7], columns[7], 0.75)
        held += low <= values[7] <= high
    assert 0.5 < 0.7 < held / 300 < 0.95  # 1 - 2 alpha for certain; 3/4, give or take four standard deviations


def test_what_was_not_measured_is_predicted_by_all_others():
    adr = np.random.default_rng(5).uniform(0.2, 1, (3, 5))
    full = AdrTable(tuple("ABCDE"), np.ones(5), ("t", "s1", "s2"), adr)
    holed = adr.copy()
    holed[0, 1] = np.nan
    found = predict(AdrTable(tuple("ABCDE"), np.ones(5), ("t", "s1", "s2"), holed), ["t"], ["s1", "s2"])
    assert found.predicted[0, 1] == predict(full, ["t"], ["s1", "s2"]).predicted[0, 1]
    assert math.isnan(found.observed[0, 1])
    without = AdrTable(tuple("ACDE"), np.ones(4), ("t", "s1", "s2"), np.delete(adr, 1, axis=1))
    assert found.predicted[0, 0] == predict(without, ["t"], ["s1", "s2"]).predicted[0, 0]
    assert found.weights_of_all == pytest.approx(predict(without, ["t"], ["s1", "s2"]).weights_of_all)
    assert found.r_squared["A"] != found.r_squared["A"]  # one target: nothing varies
    with pytest.raises(UsageError, match="s1: no ADR of B"):
        predict(AdrTable(tuple("AB"), np.ones(2), ("t", "s1"), [[0.5, 0.5], [0.5, np.nan]]), ["t"], ["s1"])
    with pytest.raises(UsageError, match="t: no detector but B to learn from"):
        predict(AdrTable(tuple("AB"), np.ones(2), ("t", "s1"), [[np.nan, 0.5], [0.5, 0.5]]), ["t"], ["s1"])
