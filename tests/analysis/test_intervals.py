"""Intervals from draws: ranks and ranges against exact binomial sums, and the same from any division into parts."""

import contextlib
import tracemalloc
from fractions import Fraction
from math import comb
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.analysis.confidence import _nothing_known
from verifier.analysis.intervals.intervals import (
    RANGE_LEVEL,
    Interval,
    Measured,
    PercentileStream,
    _ranks,
    fewest_draws,
    measured,
    percentile_interval,
)
from verifier.base.errors import LimitError, UsageError
from verifier.perception.confusion import ConfusionMatrices
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.matrices import Memory


def ladder(draws):
    """Draws 1/(M+1), ..., M/(M+1), so that the k-th smallest is k/(M+1); in a fixed mixed order."""
    values = np.arange(1, draws + 1) / (draws + 1)
    return np.random.default_rng(5).permutation(values)[:, None]


def rank(value, draws):
    return round(float(value) * (draws + 1))


def at_most(k, n, p):
    """Pr(Bin(n, p) <= k), exactly."""
    return sum((comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1)), start=Fraction(0))


def test_an_interval_by_hand():
    # 39 draws, level 0.9: a share of 0.05 lies beyond each end, and 0.05 * 40 = 2, the second smallest and largest.
    found = percentile_interval(ladder(39), 0.9, "credible")
    assert (rank(found.lower[0], 39), rank(found.upper[0], 39)) == (2, 38)
    assert (found.level, found.kind, found.draws) == (0.9, "credible", 39)
    # Pr(Bin(39, 0.05) >= 1) = 1 - 0.95^39 < 0.9995, so no draw is surely below the true quantile: the range starts
    # at 0. Pr(Bin(39, 0.05) <= 8) = 0.99971 and Pr(... <= 7) = 0.99865 < 0.9995, so it ends at the ninth.
    assert found.lower_range[0, 0] == 0
    assert rank(found.lower_range[0, 1], 39) == 9
    assert rank(found.upper_range[0, 0], 39) == 31
    assert found.upper_range[0, 1] == 1


def test_where_nothing_is_known_an_interval_reaches_from_0_to_1_whatever_is_drawn():
    objective = SimpleNamespace(product=SimpleNamespace(start=np.arange(3)))
    found = _nothing_known(objective, 0.9, "credible", 7)
    assert (found.lower.tolist(), found.upper.tolist()) == ([0] * 3, [1] * 3)
    assert (found.lower_range.tolist(), found.upper_range.tolist()) == ([[0, 0]] * 3, [[1, 1]] * 3)
    assert (found.level, found.kind, found.draws) == (0.9, "credible", 7)


@pytest.mark.parametrize(("draws", "level"), [(1, 0.95), (10, 0.5), (40, 0.95), (150, 0.8), (300, 0.95), (400, 0.99)])
def test_the_range_of_an_end_is_the_narrowest_that_order_statistics_can_warrant(draws, level):
    found = percentile_interval(ladder(draws), level, "bootstrap")
    tail, doubt = (1 - Fraction(repr(level))) / 2, (1 - Fraction(repr(RANGE_LEVEL))) / 2
    below, above = (rank(end, draws) for end in found.lower_range[0])
    if below > 0:
        assert at_most(below - 1, draws, tail) <= doubt  # X_(below) <= q holds surely enough
    if below < rank(found.lower[0], draws):
        assert at_most(below, draws, tail) > doubt  # and X_(below + 1) <= q does not
    assert 1 - at_most(above - 1, draws, tail) <= doubt if above <= draws else found.lower_range[0, 1] == 1
    assert above == rank(found.lower[0], draws) or 1 - at_most(above - 2, draws, tail) > doubt
    assert np.allclose(1 - found.upper_range[:, ::-1], found.lower_range, atol=1e-12)  # the ladder is symmetric
    assert np.allclose(1 - found.upper, found.lower, atol=1e-12)


@given(
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=1, max_size=60),
    st.floats(0.01, 0.99),
    st.lists(st.integers(1, 20), max_size=12),
)
def test_parts_make_no_difference(values, level, cuts):
    draws = np.column_stack([values, values[::-1], np.linspace(0, 1, len(values))])
    whole = percentile_interval(draws, level, "credible")
    stream = PercentileStream(len(values), 3, level, "credible")
    for part in np.split(draws, np.minimum(np.cumsum(cuts), len(values)).astype(int)):
        stream.add(part)
    found = stream.interval()
    ordered = np.sort(draws, axis=0)
    k = max(1, int((1 - Fraction(repr(level))) / 2 * (len(values) + 1)))
    assert np.array_equal(found.lower, ordered[k - 1])
    assert np.array_equal(found.upper, ordered[len(values) - k])
    for name in ("lower", "upper", "lower_range", "upper_range"):
        assert np.array_equal(getattr(found, name), getattr(whole, name))
        assert not np.signbit(getattr(found, name)).any()


def test_a_range_holds_the_true_quantile_as_often_as_it_says():
    # 20,000 intervals of 50 uniform draws each, at level 0.5: true quantiles 1/4 and 3/4. Each range may miss with
    # 0.001, so 20 of 20,000 on average; 45 would be more than five standard deviations above.
    draws = np.random.default_rng(8).random((50, 20_000))
    found = percentile_interval(draws, 0.5, "credible")
    for low, high, truth in ((*found.lower_range.T, 0.25), (*found.upper_range.T, 0.75)):
        missed = np.count_nonzero((truth < low) | (truth > high))
        assert missed <= 45
        assert missed > 0  # with 50 draws the range is not everything


def test_many_draws_need_little_memory():
    # A million draws of ten probabilities are 80 MB; the two tails of 2.5 % each, kept twice over, are 8 MB.
    rng = np.random.default_rng(1)
    tracemalloc.start()
    stream = PercentileStream(10**6, 10, 0.95, "credible")
    for _ in range(100):
        stream.add(rng.random((10_000, 10)))
    found = stream.interval()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 10**6
    assert np.all(found.lower_range[:, 0] <= 0.025)
    assert np.all(found.lower_range[:, 1] >= 0.025)
    assert np.abs(found.upper - 0.975).max() < 1e-3


@pytest.mark.parametrize("level", [-0.5, 1.5])
def test_levels_lie_between_0_and_1(level):
    with pytest.raises(UsageError, match="a level strictly between 0 and 1"):
        percentile_interval(np.array([[0.5]]), level, "credible")


@pytest.mark.parametrize("count", [10**9 + 1, 2**63 - 1, 10**26])
def test_an_interval_needs_no_more_draws_than_a_billion(count):
    with pytest.raises(UsageError, match="at most 1000000000 draws, got"):
        PercentileStream(count, 1, 0.9999999999999999, "credible")


def test_draws_that_are_no_probabilities_or_too_few_are_refused():
    for wrong in (np.nan, -1e-9, 1 + 1e-9):
        with pytest.raises(ValueError, match="no probability"):
            percentile_interval(np.array([[0.5], [wrong]]), 0.9, "credible")
    stream = PercentileStream(3, 1, 0.9, "credible")
    stream.add(np.array([[0.5]]))
    with pytest.raises(ValueError, match="3 draws were announced and 1 have come"):
        stream.interval()


def test_tails_that_do_not_fit_are_refused_with_the_number():
    with pytest.raises(
        LimitError, match=r"the tails of 100000000 draws of 1000 probabilities need \d+\.\d GiB; at most 2 GiB"
    ):
        PercentileStream(10**8, 1000, 0.95, "credible")


def test_tails_may_take_just_the_memory_that_there_is(monkeypatch):
    """Nine draws of three probabilities, eight times over: 8 bytes each."""
    for most, fits in ((8 * 3 * 8 * 9, True), (8 * 3 * 8 * 9 - 1, False)):
        monkeypatch.setattr("verifier.analysis.intervals.intervals.MEMORY_BYTES", most)
        with contextlib.nullcontext() if fits else pytest.raises(LimitError, match="the tails of 39 draws"):
            PercentileStream(39, 3, 0.9, "credible")


def test_all_ends_of_an_interval_are_as_many_probabilities_in_their_order():
    def interval(lower, upper):
        around = (np.stack([np.array(ends)] * 2, axis=-1) for ends in (lower, upper))
        return Interval(np.array(lower), np.array(upper), 0.9, "credible", *around)

    assert interval([0.0, 0.5], [1.0, 0.5]).draws is None
    for lower, upper in (([0.1, 0.2], [0.5, 0.5, 0.5]), ([[0.1]], [[0.5]])):
        with pytest.raises(ValueError, match="as many lower ends as upper ends"):
            interval(lower, upper)
    for lower, upper in (([0.1, -0.1], [0.5, 0.5]), ([0.1, 0.6], [0.5, 0.5]), ([0.1, 0.2], [0.5, 1.5])):
        with pytest.raises(ValueError, match="the lower one not above the upper one"):
            interval(lower, upper)


def test_an_interval_is_valid_from_birth():
    def interval(lower=0.2, upper=0.4, around=((0.1, 0.3), (0.3, 0.5)), level=0.9):
        ranges = [np.array([each]) for each in around]
        return Interval(np.array([lower]), np.array([upper]), level, "credible", *ranges)

    assert interval().draws is None
    for wrong in ({"lower": 0.5}, {"upper": 1.5}, {"lower": -0.1}, {"lower": float("nan")}):
        with pytest.raises(ValueError, match="the lower one not above the upper one"):
            interval(**wrong)
    two, around = np.array([0.2, 0.3]), np.array([[0.1, 0.3], [0.1, 0.2]])  # the second is beyond its range
    for ranges in ((around, around), (around[:1], around[:1])):
        with pytest.raises(ValueError, match="the range of an end must hold it"):
            Interval(two, two, 0.9, "credible", *ranges)
    with pytest.raises(ValueError, match="the range of an end must hold it"):
        interval(around=((0.25, 0.3), (0.3, 0.5)))
    with pytest.raises(UsageError, match="a level strictly"):
        interval(level=1.0)


@pytest.mark.parametrize("level", [1e-300, 0.5, 0.8, 0.95, 0.99, 0.999])
def test_the_fewest_draws_are_those_from_which_on_both_ends_have_a_range(level):
    fewest = fewest_draws(level)
    assert fewest == {0.95: 301, 0.99: 1517}.get(level, fewest)  # .975^301 < .0005 < .975^300, and so with .995
    enough, short = (percentile_interval(ladder(draws), level, "credible") for draws in (fewest, fewest - 1))
    assert enough.lower_range[0, 0] > 0
    assert enough.upper_range[0, 1] < 1
    assert (short.lower_range[0, 0], short.upper_range[0, 1]) == (0, 1)


def test_a_certain_probability_has_a_range_without_width_from_any_number_of_draws():
    known = np.array([0.0, 0.25, 1.0])
    found = PercentileStream(1, 3, 0.95, "credible").of_certain(known)
    for end, both in ((found.lower, found.lower_range), (found.upper, found.upper_range)):
        assert end.tolist() == known.tolist()
        assert both.tolist() == [[each, each] for each in known]


@pytest.mark.parametrize(("draws", "level"), [(6, 0.5), (3, 0.9)])
def test_the_range_of_an_end_may_reach_to_the_last_draw(draws, level):
    assert _ranks(draws, level)[2] == draws
    found = percentile_interval(ladder(draws), level, "credible")
    assert (rank(found.lower_range[0, 1], draws), rank(found.upper_range[0, 0], draws)) == (draws, 1)


def test_tails_are_cut_back_to_what_is_read():
    """Whatever comes in parts: the outermost draws that are kept are those of all."""
    draws, level, width = 2000, 0.9, 40
    values = np.random.default_rng(3).random((draws, width)) / 2
    values[draws // 2 :] += 0.5  # so that what is kept of the lower tail is cut back again and again
    stream = PercentileStream(draws, width, level, "credible")
    for part in np.split(values, 200):
        stream.add(part)
    found, ordered = stream.interval(), np.sort(values, axis=0)
    rank, first, last = _ranks(draws, level)
    assert (rank, first < rank < last < draws / 2) == (100, True)
    assert np.array_equal(found.lower, ordered[rank - 1])
    assert np.array_equal(found.lower_range, ordered[[first - 1, last - 1]].T)
    assert np.array_equal(found.upper_range, ordered[[-last, -first]].T)


@pytest.mark.parametrize(
    ("metadata", "policy", "expected"),
    [
        ({}, "error", [False, False, False]),
        ({"false_positives": "counted"}, "error", [False, False, False]),
        # Where nothing was ever reported of nothing; not where something was, nor where nothing is known.
        ({"false_positives": "dropped"}, "error", [True, False, False]),
        ({"false_positives": "dropped"}, "miss", [True, False, True]),
    ],
)
def test_columns_that_are_held_by_convention(metadata, policy, expected):
    counts = np.array([[[4, 0], [1, 1]], [[0, 1], [5, 3]], [[2, 0], [2, 0]]])
    labels = (frozenset({"a"}), frozenset())
    matrices = ConfusionMatrices("class", labels, np.array([0.0, 1.0, 2.0, 3.0]), counts, metadata=metadata)
    found = measured(matrices, policy)
    assert found.fixed.tolist() == [[False, held] for held in expected]
    assert found.counts is counts
    assert found.rates[0].tolist() == [[0.8, 0], [0.2, 1]]
    assert (found.annotation_error, found.looks) == (0, 1)


@pytest.mark.parametrize("kind", ["persist", "run"])
def test_where_misses_may_persist_no_longer_reports_are_right(kind):
    """In the last context, of what is followed."""
    contexts = Contexts(kind, 2)
    counts = np.ones((2 * contexts.count, 2, 2), dtype=np.int64)
    memory = Memory(contexts, np.ones((2, 2, 2), dtype=np.int64), np.array([False, True]))
    matrices = ConfusionMatrices(
        "class", (frozenset(), frozenset({"a"})), np.array([0.0, 1.0, 2.0]), counts, memory=memory
    )
    fixed = measured(matrices).fixed
    held = [at for at, (_, a) in enumerate(fixed.tolist()) if a]
    assert held == ([contexts.count - 1, 2 * contexts.count - 1] if kind == "persist" else [])
    assert not fixed[:, 0].any()


def test_counts_rates_and_fixed_columns_fit_together():
    counts, fixed = np.zeros((1, 2, 2), dtype=np.int64), np.zeros((1, 2), dtype=bool)
    plain = Measured(counts, counts / 1.0, fixed)
    assert (plain.annotation_error, plain.looks) == (0, 1)
    for wrong in (
        (counts[:, :, :1], counts[:, :, :1] / 1.0, fixed[:, :1]), (counts, counts[:, :1] / 1.0, fixed),
        (counts, counts / 1.0, fixed[0]),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="counts, rates and fixed columns must fit together"):
            Measured(*wrong)
