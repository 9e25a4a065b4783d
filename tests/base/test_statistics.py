"""Binomial ends where the inverse of the beta function fails; intervals that reach as far as few items allow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc
from scipy.stats import binom, norm
from scipy.stats import t as student

from verifier.base.statistics import (
    _bisected,
    binomial_lower_end,
    chance_ends,
    clopper_pearson,
    drawn_with_replacement,
    effective_number,
    few_units_note,
    percentile_ends,
    reaching,
    reaching_ratio,
    unseen,
)


@pytest.mark.parametrize(
    ("events", "trials"), [(1000, 10**9), (1, 10**9), (999_999_000, 10**9), (3, 10), (500, 1000)]
)
@pytest.mark.parametrize("tail", [0.025, 1e-6])
def test_each_end_is_missed_with_the_tail(events, trials, tail):
    # At the lower end as many events or more have the probability `tail`, at the upper end as many or fewer.
    low, high = (float(end[0]) for end in clopper_pearson(np.array([events]), np.array([trials]), tail))
    assert binom.sf(events - 1, trials, low) == pytest.approx(tail, rel=1e-5)
    assert binom.cdf(events, trials, high) == pytest.approx(tail, rel=1e-5)


def test_a_lower_end_by_halves_is_not_beyond_its_tail():
    least, rest, tail = np.array([1000.0, 3, 500]), np.array([1e9 - 999, 8, 501]), 0.025
    low = _bisected(least, rest, tail)
    assert np.all(betainc(least, rest, low) <= tail)
    assert np.all(betainc(least, rest, np.nextafter(low, 1)) > tail)
    assert _bisected(np.array([1.0]), np.array([1.0]), 0.4) == pytest.approx(0.4)  # one of one


def test_items_without_weight_do_not_count():
    assert unseen(np.array([1, 0, 1, 1, 0]), 0.95) == pytest.approx(unseen(3, 0.95)) == 1 - 0.025 ** (1 / 3)


def test_an_interval_reaches_as_far_as_items_without_a_difference_allow():
    # Twelve items of which none shows a difference: (1 - p)^12 = .025 at p = 1 - .025^(1/12) = .264649...
    assert reaching((0.0, 0.0), 0.0, 12, (-1, 1)) == pytest.approx((-0.2646485, 0.2646485), abs=1e-7)
    assert reaching((1.0, 1.0), 1.0, 12) == pytest.approx((0.7353515, 1), abs=1e-7)
    assert reaching((0.2, 0.9), 0.5, 12) == (0.2, 0.9)
    assert reaching((np.nan, np.nan), 0.5, 12) is None
    assert reaching((0.5, 0.5), 0.5, 0) == (0, 1)  # nothing speaks
    assert reaching_ratio((1.0, 1.0), 0.5, 0.5, 0) == (0, np.inf)


@pytest.mark.parametrize("drives", [10, 12, 20])
def test_a_recall_is_covered_where_drives_differ_in_size(drives):
    """A fifth of the drives has 100 objects, the others 10; at night, half of the large ones, nothing is found."""
    rng, trials, seen, missed, by_number = np.random.default_rng(3), 2000, 0, 0, 0
    truth = (0.1 * 100 + 0.8 * 10) / (0.2 * 100 + 0.8 * 10)
    for _ in range(trials):
        large, night = rng.random((2, drives)) < [[0.2], [0.5]]
        objects = np.where(large, 100, 10)
        hits = np.where(large & night, 0, objects)
        weights = drawn_with_replacement(drives, 200, rng)
        ends, recall = percentile_ends((weights @ hits) / (weights @ objects), 0.95), hits.sum() / objects.sum()
        if large.any():  # no data tell of large drives otherwise
            seen += 1
            missed += reaching(ends, recall, objects)[0] > truth
            by_number += reaching(ends, recall, drives)[0] > truth
    assert missed <= 0.025 * seen
    assert by_number > 0.1 * seen  # what is said where each drive counts alike


@pytest.mark.parametrize("items", [3, 8, 12, 30, 100])
@pytest.mark.parametrize("share", [0.9, 0.97, 0.995])
def test_nearly_perfect_things_are_covered_where_percentiles_alone_miss_them(items, share):
    """Exactly, over all outcomes: the percentile interval of n of n is [1, 1], and n of n is the usual outcome."""
    hits = np.arange(items + 1)
    weight, covered, alone = binom.pmf(hits, items, share), np.zeros(items + 1), np.zeros(items + 1)
    for count in hits.tolist():
        ends = tuple(float(binom.ppf(at, items, count / items)) / items for at in (0.025, 0.975))
        low, high = reaching(ends, count / items, items)
        covered[count], alone[count] = low <= share <= high, ends[0] <= share <= ends[1]
    assert weight @ covered >= 0.95
    if share**items > 0.05:
        assert weight @ alone < 0.95


@pytest.mark.parametrize("items", [2, 5, 40])
def test_the_reach_of_a_ratio_is_what_unseen_items_can_do(items):
    """A share q unseen: found in one of the two only. Every q that may be unseen is tried."""
    part, whole = 0.3, 0.4
    q = np.linspace(0, 1 - 0.025 ** (1 / items), 1001)
    seen = 1 - q
    least, most = (seen * part / (seen * whole + q)).min(), ((seen * part + q) / (seen * whole)).max()
    assert reaching_ratio((0.75, 0.75), part, whole, items) == pytest.approx((least, most))
    assert reaching_ratio((0.75, 0.75), part, whole, items, top=1.0)[1] == min(most, 1)


def test_few_are_noted():
    assert few_units_note(10, "drive") is None
    assert few_units_note(9, "drive") == "drawn from only 9 drives: the intervals are themselves uncertain"


@given(st.floats(0, 1), st.floats(1, 200), st.sampled_from((0.5, 0.9, 0.95, 0.999)))
def test_the_interval_of_a_chance_holds_it(share, items, confidence):
    """Of six logs a chance of 1 had an interval up to 0.9999983, and others one from 1e-33."""
    low, high = chance_ends(share, items, confidence)
    assert low <= share <= high
    nearest = 0.5 ** min(items, 50)
    assert low == 0 or low >= nearest
    assert high == 1 or high <= 1 - nearest


def test_ends_of_nothing_and_of_impossible_counts():
    low, high = clopper_pearson(np.array([0, 0, 4]), np.array([0, 4, 4]), 0.05)
    # Nobody of four at 1 - .05^(1/4), and all of four the other way round.
    assert low.tolist() == [0, 0, pytest.approx(0.05**0.25)]
    assert high.tolist() == [1, pytest.approx(1 - 0.05**0.25), 1]
    for events, trials in (([-1, 1], 2), ([3, 1], 2), (-1, 2), (3, 2)):
        with pytest.raises(ValueError, match="0 <= events <= trials"):
            clopper_pearson(np.array(events), np.array(trials), 0.05)


def test_an_inverse_that_fails_is_found_out_and_done_by_halves(monkeypatch):
    right = binomial_lower_end(np.array([3, 5]), np.array([10, 12]), 0.025)
    for wrong in (0.5, np.nan, right * (1 + 1e-5), right * (1 - 1e-5)):
        monkeypatch.setattr(
            "scipy.special.betaincinv", lambda least, rest, tail, wrong=wrong: np.where(least < 4, wrong, right)
        )
        assert binomial_lower_end(np.array([3, 5]), np.array([10, 12]), 0.025) == pytest.approx(
            right, rel=1e-14, abs=0
        )


def test_draws_have_as_many_items_as_there_are():
    weights = drawn_with_replacement(3, 2000, np.random.default_rng(1))
    assert weights.shape == (2000, 3)
    assert np.all(weights.sum(axis=1) == 3)
    assert weights.mean(axis=0) == pytest.approx([1, 1, 1], abs=0.1)
    assert (weights == 1).all(axis=1).mean() == pytest.approx(6 / 27, abs=0.04)


def test_how_many_alike_items_count_as_these():
    assert [effective_number(np.array(weights)) for weights in ([1, 1, 1], [2, 1, 1], [5], [0.0, 0.0], [])] == (
        pytest.approx([3, 16 / 6, 1, 0, 0])
    )
    assert effective_number(np.full(4, 3_000_000_000)) == 4  # squares are beyond whole numbers of 64 bits
    assert effective_number(np.array([0.25, 0.25])) == 2


def test_what_is_unseen_may_be_as_heavy_as_the_heaviest():
    # Of two items of 3 and 1 a share of 1 - .025^(1/2) may be missed, of things that weigh 3 each.
    share = 1 - 0.025**0.5
    assert unseen(np.array([3.0, 1.0]), 0.95) == pytest.approx(3 * share / (3 * share + 2 * (1 - share)))
    assert unseen(np.array([0.5, 0.5]), 0.9) == pytest.approx(1 - 0.05**0.5)
    assert unseen(1, 0.9) == pytest.approx(0.95)
    assert [unseen(0, 0.9), unseen(np.array([0, 0]), 0.9), unseen(np.array([]), 0.9)] == [1, 1, 1]


def test_a_reach_ends_where_values_do():
    assert reaching((0.2, 0.9), 0.5, 2, (0.1, 0.95)) == (0.1, 0.95)
    assert reaching((0.4, 0.6), 0.5, 12) == pytest.approx((0.5 - 0.2646485, 0.5 + 0.2646485), abs=1e-7)
    assert reaching((0.4, 0.6), 0.5, 12, confidence=0.5) == pytest.approx((0.4 - 0.0091, 0.6 + 0.0091), abs=1e-4)
    for ends in ((np.nan, 0.5), (0.5, np.nan)):
        assert reaching(ends, 0.5, 12) is None
        assert reaching_ratio(ends, 0.5, 0.5, 12) is None
    assert reaching_ratio((0.1, 9.0), 0.5, 0.5, 12) == (0.1, 9)
    assert reaching_ratio((0.1, 9.0), 0.5, 0.5, 12, top=2.0) == (0.1, 2)


def test_percentiles_leave_out_what_is_no_number():
    draws = np.append(np.random.default_rng(2).permutation(101.0 * np.arange(101) / 101), [np.nan] * 7)
    assert percentile_ends(draws, 0.9) == pytest.approx((5, 95))
    assert np.isnan(percentile_ends(np.array([np.nan, np.nan]), 0.9)).tolist() == [True, True]
    assert percentile_ends(np.array([2.0]), 0.9) == (2, 2)


def test_the_interval_of_a_chance_by_hand():
    # With three items Student's law has two degrees of freedom: t = 1.8856 for 80 % (published tables: 1.886).
    low, high = chance_ends(0.5, 3, 0.8)
    assert (low, high) == (0, 1)  # 3 % and 97 % are nearer than 2^-3
    low, high = chance_ends(0.5, 10, 0.8)  # t = 1.3830, nine degrees: Phi(-1.3830) = .0833
    assert (low, high) == pytest.approx((0.0833, 0.9167), abs=1e-4)
    low, high = chance_ends(0.9, 10, 0.8)  # z = 1.2816: Phi(-.1014) = .4596, Phi(2.6646) = .99615
    assert (low, high) == pytest.approx((0.4596, 0.99615), abs=1e-4)
    assert [chance_ends(0.3, items, 0.95) for items in (0.0, 1.0)] == [(0, 1), (0, 1)]
    # Of two items more than 3/4 are no more than that: z = .6745, t = 1 with one degree, Phi(-.3255) = .3724.
    assert chance_ends(1.0, 2, 0.5) == (pytest.approx(0.3724, abs=1e-4), 1)
    # And of any number no more than all but 2^-50.
    assert 1 - chance_ends(1.0, 1000, 0.95)[0] == pytest.approx(
        norm.sf(norm.isf(2.0**-50) - student.isf(0.025, 999)), rel=1e-5
    )
    assert chance_ends(0.0, 5, 0.95) == pytest.approx((0, 1 - chance_ends(1.0, 5, 0.95)[0]))
