"""Moves, shares of columns and fixes: exact fractions by hand, and definitions checked on random objectives."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from small_objectives import channel_of, objective_of, random_objective

from verifier.analysis.intervals.intervals import Measured
from verifier.analysis.sensitivity import priorities
from verifier.analysis.sensitivity.priorities import (
    Sensitivity,
    _slope_alone,
    column_shares,
    corrected_probabilities,
    fixes,
    moves,
    sensitivity,
)
from verifier.perception.confusion import rates as rates_of

NOTHING, A, B = frozenset(), frozenset("a"), frozenset("b")


def data_of(counts, fixed=()):
    counts = np.asarray(counts, dtype=np.int64)
    held = np.zeros((len(counts), counts.shape[1]), dtype=bool)
    for at in fixed:
        held[at] = True
    return Measured(counts, rates_of(counts), held)


# By hand. Two bins, labels {} {a} {b}; what is there is a (column 1). In state 0 (bin 0) a leads to 1, all else to
# the trap 3; in state 1 (bin 1) a leads to the goal 2, everything else to the trap. P = r0 r1.
NAMES = ("", "a", "b")
# Counts of column 1: bin 0: {} 1, a 7, b 2 (r0 = 7/10); bin 1: {} 2, a 2, b 0 (r1 = 1/2).
CHAIN = {
    "channel": channel_of([(), ("a",), ("b",)], [[0], [1]], [[1], [1]], [NOTHING, A, B]),
    "following": [[3, 1, 3], [3, 2, 3], [2, 2, 2], [3, 3, 3]],
    "row": [0, 1, 0, 0],
    "true_in": {"goal": {2}},
    "ended": (2, 3),
}
COUNTS = np.ones((2, 3, 3), dtype=np.int64)
COUNTS[0, :, 1], COUNTS[1, :, 1] = (1, 7, 2), (2, 2, 0)


def example():
    objective = objective_of(**CHAIN, formula="F goal")
    data = data_of(COUNTS)
    return objective, data, sensitivity(objective, data.rates, 0)


def test_moves_by_hand():
    _, _, found = example()
    assert found.probability == pytest.approx(7 / 20, rel=1e-14, abs=0)
    assert found.columns.tolist() == [[0, 1], [1, 1]]
    # dP: in bin 0 mass to a from another label raises P by r1 = 1/2, in bin 1 by r0 = 7/10; else nothing changes.
    listed = moves(found, 10, NAMES)
    assert [(m.bin, m.true, m.from_, m.to) for m in listed] == [
        (1, "a", "", "a"), (1, "a", "b", "a"), (0, "a", "", "a"), (0, "a", "b", "a"),
    ]  # fmt: skip
    assert [m.slope for m in listed] == pytest.approx([0.7, 0.7, 0.5, 0.5], rel=1e-14, abs=0)
    assert [m.rate_from for m in listed] == pytest.approx([0.5, 0, 0.1, 0.2])
    assert [m.rate_to for m in listed] == pytest.approx([0.5, 0.5, 0.7, 0.7])
    assert not any(m.jumps for m in listed)
    assert moves(found, 1, NAMES) == listed[:1]
    # Against the correct label: what a unit of mass loses that goes elsewhere.
    assert found.against(np.arange(3))[0, :, 1] == pytest.approx([-0.5, 0, -0.5])


def test_differences_are_rounding_only_beside_the_largest_slope_of_their_column():
    slopes = np.zeros((1, 3, 3))
    slopes[0, :, 0], slopes[0, :, 1] = (1e-13, 0, 1e-11), (1e-13, 0, 1)
    found = Sensitivity(0.5, np.full((1, 3, 3), 1 / 3), slopes, slopes > 2, np.array([[0, 0], [0, 1]]))
    # Up to 1e-12 of 1e-11 and of 1.
    assert found.rounding == pytest.approx(np.array([[1e-23, 1e-12, 0]]), rel=1e-9)
    assert found.against(np.array([1, 1, 1]))[0].T.tolist() == [[1e-13, 0, 1e-11], [0, 0, 1], [0, 0, 0]]
    assert {(m.true, m.from_, m.to) for m in moves(found, 9, NAMES)} == {
        ("", "a", ""), ("", "a", "b"), ("", "", "b"), ("a", "", "b"), ("a", "a", "b"),
    }  # fmt: skip


def test_what_may_be_rounding_is_none_up_to_its_very_end(monkeypatch):
    monkeypatch.setattr(priorities, "ROUNDING", 2.0**-40)
    for apart, told in ((2.0**-40, 0), (2.0**-39, 1)):
        slopes = np.zeros((1, 2, 2))
        slopes[0, :, 0] = 1, 1 - apart
        found = Sensitivity(0.5, np.full((1, 2, 2), 0.5), slopes, slopes > 2, np.array([[0, 0]]))
        assert np.count_nonzero(found.against(np.array([0, 1]))) == told
        assert len(moves(found, 9, NAMES)) == told
        assert len(column_shares(found, data_of([[[3, 1], [2, 1]]])).bins) == told


def test_a_cell_alone_moves_from_all_others_in_proportion_or_from_the_steepest():
    slopes, rates = np.array([[1, 0, 0], [0.1, 0.3, -0.5]]), np.array([[0.2, 0.5, 0.3], [1, 0, 0]])
    expected = np.array([[1, -0.4, -2 / 7], [0.6, 0.2, -0.6]])
    assert _slope_alone(slopes, rates) == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize(("slopes", "cell"), [((1, 0, 0), 0), ((0, 1, 0), 1), ((0, 0, 1), 2), ((0, 0, 0), None)])
def test_the_cell_that_moves_p_most_is_named_and_columns_that_do_not_are_not_listed(slopes, cell):
    counts = np.ones((1, 3, 3), dtype=np.int64)
    counts[0, :, 1] = 20, 50, 30
    data, all_slopes = data_of(counts), np.zeros((1, 3, 3))
    all_slopes[0, :, 1] = slopes
    found = Sensitivity(0.5, data.rates, all_slopes, all_slopes > 2, np.array([[0, 1], [0, 2]]))
    assert column_shares(found, data).cell.tolist() == ([] if cell is None else [cell])
    assert len(column_shares(found, data_of(counts, fixed=[(0, 1), (0, 2)])).share) == 0


def test_a_correction_that_changes_nothing_is_not_listed(monkeypatch):
    # In state 0 a and b both lead on to the goal: only the miss, 1/4, is worth a correction.
    objective = objective_of(
        channel_of([(), ("a",), ("b",)], [[0]], [[1]], [NOTHING, A, B]), [[2, 1, 1], [1] * 3, [2] * 3], [0] * 3,
        {"goal": {1}}, "F goal", ended=(1, 2),
    )  # fmt: skip
    counts = np.ones((1, 3, 3), dtype=np.int64)
    counts[0, :, 1] = 1, 2, 1
    data = data_of(counts)
    found = fixes(objective, sensitivity(objective, data.rates, 0), data, 0, NAMES)
    assert [(fix.reported, fix.probability, fix.rate) for fix in found.single] == [("", 1.0, 0.25)]
    assert (found.left_out, found.perfect) == (0, 1.0)
    for size in (1, 2 * data.rates.nbytes, 2**27):
        monkeypatch.setattr(priorities, "_BATCH_BYTES", size)
        sets = [[(0, 0, 1)], [(0, 2, 1)], [], [(0, 0, 1), (0, 2, 1)], []]
        assert corrected_probabilities(objective, data.rates, sets, 0).tolist() == [1, 0.75, 0.75, 1, 0.75]
        assert corrected_probabilities(objective, data.rates, [], 0).tolist() == []


def test_a_column_without_a_draw_has_no_moves():
    objective = objective_of(**CHAIN, formula="G !goal")
    found = sensitivity(objective, data_of(COUNTS).rates, 0)
    assert {(m.bin, m.true) for m in moves(found, 99, NAMES)} == {(0, "a"), (1, "a")}
    assert all(m.from_ == "a" for m in moves(found, 99, NAMES))  # now mass away from a raises P


def test_a_jump_is_listed_first_and_says_so():
    # Waiting for a that never comes: G !goal is certain at rate 0 of a and impossible above.
    objective = objective_of(
        channel_of([(), ("a",)], [[0]], [[1]]), [[0, 1], [1, 1]], [0, 0], {"goal": {1}}, "G !goal", ended=(1,)
    )
    rates = np.array([[[0.5, 1.0], [0.5, 0.0]]])
    (move,) = moves(sensitivity(objective, rates, 0), 9, NAMES)
    assert (move.jumps, move.slope, move.from_, move.to) == (True, 0.0, "", "a")


def test_shares_of_columns_by_hand():
    _, data, found = example()
    shares = column_shares(found, data)
    # Prior 1/2 per label. Bin 0: A = 23/2, m = (3/2, 15/2, 5/2)/A, g = (0, 1/2, 0) up to a constant:
    # m_a (1 - m_a) / 4 / (A + 1) with m_a = 15/23: (15/23)(8/23)/4 / (25/2). Bin 1: A = 11/2, m_a = 5/11, g = 7/10:
    # (5/11)(6/11)(49/100)/(13/2).
    first = Fraction(15 * 8, 23 * 23) / 4 / Fraction(25, 2)
    second = Fraction(5 * 6, 11 * 11) * Fraction(49, 100) / Fraction(13, 2)
    assert shares.bins.tolist() == [1, 0]
    assert shares.columns.tolist() == [1, 1]
    assert shares.items.tolist() == [4, 10]
    assert shares.variance == pytest.approx([float(second), float(first)], rel=1e-12, abs=0)
    assert shares.share == pytest.approx([float(second / (first + second)), float(first / (first + second))])
    assert shares.deviation == pytest.approx(float(first + second) ** 0.5, rel=1e-12, abs=0)
    # The cell with the largest p_range is that of a: slope alone is 7/10 (mass from both others), times the width of
    # the Clopper-Pearson interval of 2 in 4, whose ends solve the binomial tails: P(X >= 2 | p) = 1/40 and so on.
    low, high = stats.beta.ppf(0.025, 2, 3), stats.beta.ppf(0.975, 3, 2)
    assert shares.cell.tolist() == [1, 1]
    assert shares.p_range[0] == pytest.approx(0.7 * (high - low), rel=1e-10, abs=0)
    assert stats.binom.sf(1, 4, low) == pytest.approx(0.025, rel=1e-9)
    assert stats.binom.cdf(2, 4, high) == pytest.approx(0.025, rel=1e-9)


def test_columns_by_convention_and_without_data():
    _, _, found = example()
    held = column_shares(found, data_of(COUNTS, fixed=[(0, 1)]))
    assert held.bins.tolist() == [1]
    # A column without items counts with its prior and nothing else, whatever rates a policy gives it: A = 3/2,
    # m_a = 1/3: (1/3)(2/3)(49/100) / (5/2); its cells may be anything.
    none = COUNTS.copy()
    none[1, :, 1] = 0
    shares = column_shares(found, Measured(none, found.rates, np.zeros((2, 3), dtype=bool)))
    assert shares.items.tolist() == [0, 10]
    assert shares.variance[0] == pytest.approx(2 / 9 * 0.49 / 2.5, rel=1e-12, abs=0)
    assert shares.p_range[0] == pytest.approx(0.7, rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("level", "prior"), [(0, 0.5), (1, 0.5), (0.95, 0), (0.95, np.inf), (np.nan, 1), (0.9, np.nan)]
)
def test_levels_and_priors_out_of_range(level, prior):
    _, data, found = example()
    with pytest.raises(ValueError, match="expected a level"):
        column_shares(found, data, level, prior)


def test_fixes_by_hand():
    objective, data, found = example()
    listed = fixes(objective, found, data, 0, NAMES)
    # Corrected: bin 1 {} 1/2 -> P = 7/10; bin 0 b 1/5 -> P = 9/20; bin 0 {} 1/10 -> P = 2/5. Bin 1 has no b.
    assert [(f.bin, f.true, f.reported) for f in listed.single] == [(1, "a", ""), (0, "a", "b"), (0, "a", "")]
    assert [f.probability for f in listed.single] == pytest.approx([0.7, 0.45, 0.4], rel=1e-14, abs=0)
    assert [f.first_order for f in listed.single] == pytest.approx([0.35, 0.1, 0.05], rel=1e-14, abs=0)
    assert [f.rate for f in listed.single] == pytest.approx([0.5, 0.2, 0.1])
    assert listed.perfect == 1.0
    assert listed.left_out == 0
    # With a limit those that promise most to first order are solved.
    short = fixes(objective, found, data, 0, NAMES, most=1)
    assert [f.bin for f in short.single] == [1]
    assert (short.left_out, fixes.__kwdefaults__["most"]) == (2, 1000)
    # A column that is correct by convention needs no correction.
    held = fixes(objective, found, data_of(COUNTS, fixed=[(1, 1)]), 0, NAMES)
    assert [f.bin for f in held.single] == [0, 0]


def test_for_an_upper_limit_the_fix_that_lowers_p_comes_first():
    objective = objective_of(**CHAIN, formula="G !goal")
    data = data_of(COUNTS)
    listed = fixes(objective, sensitivity(objective, data.rates, 0), data, 0, NAMES, raising=False)
    assert [f.probability for f in listed.single] == pytest.approx([0.3, 0.55, 0.6], rel=1e-14, abs=0)


def test_what_is_flat_to_first_order_can_still_be_the_fix(monkeypatch):
    # The goal is reached when a is reported twice in a row: P = r^2 with r = 0, so no slope, and yet correcting the
    # one type of detection error there is makes P = 1.
    objective = objective_of(
        channel_of([(), ("a",)], [[0]], [[1]]),
        [[2, 1], [2, 3], [2, 2], [3, 3]],
        [0] * 4,
        {"goal": {3}},
        "F goal",
        ended=(2, 3),
    )
    data = data_of([[[1, 5], [0, 0]]])
    found = sensitivity(objective, data.rates, 0)
    (fix,) = fixes(objective, found, data, 0, NAMES).single
    assert (fix.first_order, fix.probability) == (0.0, 1.0)
    monkeypatch.setattr(priorities, "UNCHANGED", 1.0)  # just as much is no change
    assert fixes(objective, found, data, 0, NAMES).single == ()


FORMULAS = ["F p", "G (p -> X q)", "p U q", "G F p"]


@given(st.integers(0, 2**32 - 1), st.sampled_from(FORMULAS), st.integers(1, 2))
def test_laws_on_random_objectives(seed, formula, draws):
    rng = np.random.default_rng(seed)
    objective = random_objective(rng, formula, draws=draws)
    counts = rng.integers(0, 6, (2, 3, 3))
    counts[:, 0, :] += 1
    data = data_of(counts)
    found = sensitivity(objective, data.rates, 1)
    # Derivatives from one initial state alone are those of that state among others.
    assert found.probability == pytest.approx(objective.probabilities(data.rates[None]).probability[0, 1], abs=1e-12)
    # The same numbers come out when a constant is added to the derivatives of a column: they have no meaning.
    shifted = type(found)(
        found.probability, found.rates, found.slopes + rng.random((2, 1, 3)), found.jumps, found.columns
    )
    one, other = column_shares(found, data), column_shares(shifted, data)
    assert one.variance[one.variance > 1e-20] == pytest.approx(other.variance[other.variance > 1e-20], rel=1e-6)
    listed = moves(found, 1000, NAMES)
    assert [m.slope for m in listed if not m.jumps] == sorted((m.slope for m in listed if not m.jumps), reverse=True)
    # Every fix is the batch engine's answer for the corrected matrix.
    for fix in fixes(objective, found, data, 1, NAMES).single:
        corrected = data.rates.copy()
        true, predicted = NAMES.index(fix.true), NAMES.index(fix.reported)
        corrected[fix.bin, true, true] += corrected[fix.bin, predicted, true]
        corrected[fix.bin, predicted, true] = 0
        again = objective.probabilities(corrected[None]).probability[0, 1]
        assert fix.probability == pytest.approx(again, abs=1e-12)


def test_the_variance_is_that_of_the_posterior():
    # Many draws from the Dirichlet posterior of the example: P = r0 r1 has the variance that is said, to first order.
    objective, _, _ = example()
    many = COUNTS * 400
    data = data_of(many)
    found = sensitivity(objective, data.rates, 0)
    rng = np.random.default_rng(0)
    draws = [rng.dirichlet(many[k, :, 1] + 0.5, 100_000)[:, 1] for k in range(2)]
    assert column_shares(found, data).deviation == pytest.approx(np.std(draws[0] * draws[1]), rel=0.01)
