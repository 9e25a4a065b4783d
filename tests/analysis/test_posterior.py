"""The posterior: hand-solved against exact distributions, the same draws however they are asked for, bad input."""

import hashlib
import itertools
import math
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recall_chains import binary, first_of_two, measured_of, product_of_recalls, told
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import beta, kstest, pearsonr
from small_objectives import channel_of, objective_of

from verifier.analysis.intervals import drawing as posterior
from verifier.analysis.intervals.drawing import (
    NeededColumns,
    blocks,
    default_draws,
    matrix_draws,
    probability_draws,
)
from verifier.analysis.intervals.intervals import measured, percentile_interval
from verifier.base.errors import UsageError
from verifier.perception.confusion import ConfusionMatrices

ONE = np.array([[0, 1]])


def draws_of(counts, columns=ONE, **settings):
    return np.concatenate(list(matrix_draws(counts, columns, **settings)))


def chances(objective, counts, **settings):
    draws = matrix_draws(counts, objective.skeleton.columns_needed(), **settings)
    return np.concatenate(list(probability_draws(objective, draws)))


def holds(interval, quantile, level):
    """Whether the ranges of both ends hold the true quantiles."""
    for (low, high), sign in ((interval.lower_range[0], -1), (interval.upper_range[0], 1)):
        assert low <= quantile((1 + sign * level) / 2) <= high
        assert high - low < 0.05


# ------------------------------------------------------------------------------------------------ hand-solved


@pytest.mark.parametrize(("hits", "items"), [(7, 9), (0, 5), (30, 30), (0, 0), (999, 1000)])
@pytest.mark.parametrize(("prior", "weight"), [("jeffreys", 0.5), ("uniform", 1.0), (2.5, 2.5)])
def test_where_p_is_the_recall_its_posterior_is_a_beta_distribution(hits, items, prior, weight):
    # One binomial column: Dirichlet(x + a, n - x + a) over two labels is Beta(x + a, n - x + a).
    found = chances(product_of_recalls([0]), binary((hits, items)), prior=prior)
    truth = beta(hits + weight, items - hits + weight)
    assert kstest(found[:, 0], truth.cdf).pvalue > 1e-4
    for level in (0.5, 0.95):
        holds(percentile_interval(found, level, "credible"), truth.ppf, level)


def test_three_labels_have_the_marginals_and_moments_of_their_dirichlet_distribution():
    # Items (4, 1, 0) and the weight 1/2: Dirichlet(9/2, 3/2, 1/2), sum 13/2. Label y alone is Beta(a, 13/2 - a); the
    # means are 9/13, 3/13, 1/13; the covariance of labels 0 and 1 is -(9/2)(3/2) / ((13/2)^2 (15/2)) = -18/845.
    counts = np.zeros((1, 3, 3), dtype=np.int64)
    counts[0, :, 1] = 4, 1, 0
    found = draws_of(measured_of(counts), count=40_000)[:, 0, :, 1]
    assert np.abs(found.sum(axis=1) - 1).max() < 1e-15
    for label, shape in enumerate((4.5, 1.5, 0.5)):
        assert kstest(found[:, label], beta(shape, 6.5 - shape).cdf).pvalue > 1e-4
    assert found.mean(axis=0) == pytest.approx([9 / 13, 3 / 13, 1 / 13], abs=3e-3)
    assert np.cov(found[:, 0], found[:, 1])[0, 1] == pytest.approx(-18 / 845, abs=1e-3)


def test_a_ratio_of_two_labels_forgets_the_third():
    # P = mu(a) / (mu(a) + mu(b)). Items: 3 a, 1 b, 50 "empty". Of a Dirichlet distribution that ratio is
    # Beta(3 + 1/2, 1 + 1/2), whatever the third label has.
    counts = np.zeros((1, 3, 3), dtype=np.int64)
    counts[0, :, 1] = 50, 3, 1
    found = chances(first_of_two(), measured_of(counts))
    assert kstest(found[:, 0], beta(3.5, 1.5).cdf).pvalue > 1e-4
    holds(percentile_interval(found, 0.95, "credible"), beta(3.5, 1.5).ppf, 0.95)


def test_a_product_of_two_columns_against_numerical_integration():
    # P = r0 r1 with independent r0 ~ Beta(9.5, 1.5), r1 ~ Beta(4.5, 2.5):
    # Pr(P <= t) = integral over x of f0(x) F1(t / x).
    first, second = beta(9.5, 1.5), beta(4.5, 2.5)

    def below(t):
        return first.cdf(t) + quad(lambda x: first.pdf(x) * second.cdf(t / x), t, 1, epsabs=1e-12)[0]

    found = chances(product_of_recalls([0, 1]), binary((9, 10), (4, 6)))
    quantiles = {share: brentq(lambda t, share=share: below(t) - share, 1e-6, 1 - 1e-9) for share in (0.025, 0.975)}
    interval = percentile_interval(found, 0.95, "credible")
    for (low, high), share in ((interval.lower_range[0], 0.025), (interval.upper_range[0], 0.975)):
        assert low <= quantiles[share] <= high


def test_two_draws_from_one_column_are_the_same_unknown_recall():
    # P = r^2, not r r': its quantiles are the squares of those of r ~ Beta(4.5, 2.5).
    found = chances(product_of_recalls([0, 0]), binary((4, 6)))
    holds(percentile_interval(found, 0.9, "credible"), lambda share: beta(4.5, 2.5).ppf(share) ** 2, 0.9)


def test_a_fixed_column_is_held_and_an_empty_one_drawn_from_the_prior():
    counts = np.array([[[8, 0], [0, 0]], [[0, 2], [0, 6]]])  # bin 0: "empty" never reported as a; a never seen
    fixed = np.array([[True, False], [False, False]])
    found = draws_of(measured_of(counts, fixed), np.array([[0, 0], [0, 1], [1, 1]]))
    assert np.array_equal(found[:, 0, :, 0], np.tile([1.0, 0.0], (10_000, 1)))
    assert kstest(found[:, 0, 1, 1], beta(0.5, 0.5).cdf).pvalue > 1e-4
    assert kstest(found[:, 1, 1, 1], beta(6.5, 2.5).cdf).pvalue > 1e-4
    assert np.isnan(found[:, 1, :, 0]).all()  # nobody needs it


def test_rates_that_a_policy_assumes_do_not_enter_an_interval():
    edges, labels = np.array([0.0, 10.0, 20.0]), (frozenset(), frozenset({"a"}))
    matrices = ConfusionMatrices("class", labels, edges, np.array([[[5, 0], [0, 0]], [[5, 1], [0, 99]]]))
    assumed = measured(matrices, "neighbour")
    assert assumed.rates[0, 1, 1] == 0.99
    found = draws_of(assumed, np.array([[0, 1]]))[:, 0, 1, 1]
    assert kstest(found, beta(0.5, 0.5).cdf).pvalue > 1e-4


def test_the_smallest_prior_gives_numbers_too():
    # With weight 1e-6 on each of two labels a draw is next to surely (0, 1) or (1, 0), each half of the time.
    found = draws_of(binary((0, 0)), prior=1e-6)[:, 0, 1, 1]
    assert np.isfinite(found).all()
    assert np.mean((found < 1e-300) | (found > 1 - 1e-15)) > 0.99
    assert np.mean(found) == pytest.approx(0.5, abs=0.03)


def test_huge_counts_leave_no_doubt():
    found = percentile_interval(chances(product_of_recalls([0]), binary((2**51, 2**52))), 0.95, "credible")
    assert found.upper[0] - found.lower[0] == pytest.approx(2 * 1.96 * 0.5 / 2**26, rel=0.1)


def test_intervals_hold_truths_drawn_from_the_prior_as_often_as_they_say(thorough):
    # The definition of a credible interval: averaged over the prior, it holds the truth with exactly its level. Of n
    # data sets at level 0.8 the share has standard deviation 0.4 / sqrt(n).
    rng, count = np.random.default_rng(20), 1000 if thorough else 300
    objective, held = product_of_recalls([0, 1]), 0
    for _ in range(count):
        recalls = rng.beta(0.5, 0.5, size=2)
        hits = rng.binomial([12, 5], recalls)
        interval = percentile_interval(
            chances(objective, binary((hits[0], 12), (hits[1], 5)), count=400), 0.8, "credible"
        )
        held += interval.lower[0] <= recalls.prod() <= interval.upper[0]
    assert held / count == pytest.approx(0.8, abs=4 * 0.4 / math.sqrt(count))


# ---------------------------------------------------------------- the same draws however they are asked for

COUNTS = measured_of(np.arange(27).reshape(3, 3, 3) % 7)
ALL = np.array(list(itertools.product(range(3), range(3))))


@given(st.data())
def test_a_draw_depends_on_counts_prior_seed_and_number_only(data):
    columns = ALL[sorted(data.draw(st.sets(st.integers(0, 8), min_size=1)))]
    count, at_once = data.draw(st.integers(1, 1300)), data.draw(st.sampled_from([1, 7, 400, 1000, 5000]))
    whole = draws_of(COUNTS, ALL, count=1300, seed=3)
    found = draws_of(COUNTS, columns[::-1], count=count, seed=3, at_once=at_once)
    assert found.shape == (count, 3, 3, 3)
    for at_bin, true in ALL.tolist():
        wanted = whole[:count, at_bin, :, true]
        if [at_bin, true] not in columns.tolist():
            wanted = np.full_like(wanted, np.nan)
        assert np.array_equal(found[:, at_bin, :, true], wanted, equal_nan=True)


def test_small_parts_and_large_chains_give_the_same_probabilities(monkeypatch):
    objective, counts = product_of_recalls([0, 1]), binary((9, 10), (4, 6))
    whole = chances(objective, counts, count=300)
    monkeypatch.setattr(posterior, "PART_BYTES", 1000)
    parts = list(
        probability_draws(objective, matrix_draws(counts, np.array([[0, 1], [1, 1]]), count=300, at_once=150))
    )
    assert len(parts) > 20
    assert np.array_equal(np.concatenate(parts), whole)


def test_other_seeds_counts_columns_and_blocks_have_independent_draws():
    counts = binary((4, 6), (4, 6))
    both = draws_of(counts, np.array([[0, 1], [1, 1]]), count=2000)
    one = both[:, 0, 1, 1]
    others = [
        both[:, 1, 1, 1],
        draws_of(counts, count=2000, seed=1)[:, 0, 1, 1],
        draws_of(binary((4, 6), (5, 6)), count=2000)[:, 0, 1, 1],
        np.roll(one, 1000),
    ]
    for other in others:
        assert pearsonr(one, other).pvalue > 1e-3
        assert not np.intersect1d(one, other).size or other is others[-1]


def test_any_number_of_draws_is_streamed_with_flat_memory():
    # 10^12 draws of 40 bins x 30 labels squared would be 288 petabytes.
    counts = measured_of(np.ones((40, 30, 30), dtype=np.int64))
    columns = np.array([[b, 3] for b in range(40)])
    tracemalloc.start()
    draws = matrix_draws(counts, columns, count=10**12)
    sizes = [len(next(draws)) for _ in range(4)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sizes == [155] * 4  # 2^27 bytes hold 155 draws of 24 * 36,000 bytes
    assert peak < 2**28
    assert list(blocks(1001, 155)) == [(0, [155] * 6 + [70]), (1, [1])]


def test_matrices_that_are_too_large_for_a_part_are_drawn_one_by_one(monkeypatch):
    monkeypatch.setattr(posterior, "PART_BYTES", 1)
    assert NeededColumns(binary((1, 2)), ONE).largest_part == 1


def test_streams_are_named_by_seed_counts_column_and_block():
    """By the definition, with numpy's own generators: every draw of a seed stays what it was."""
    counts = binary((4, 6), (4, 6)).counts
    digest = hashlib.sha256(b"(2, 2, 2)" + counts.astype("<i8").tobytes()).digest()
    found = draws_of(measured_of(counts), np.array([[1, 1]]), count=1001, seed=5)[:, 1, :, 1]
    for first, block, size in ((0, 0, 1000), (1000, 1, 1)):
        entropy = (5, int.from_bytes(digest[:16], "little"), 0)
        gamma, exponential = (
            np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(1, 1, block, part))) for part in (0, 1)
        )
        shape = np.array([2.5, 4.5])
        drawn = gamma.standard_gamma(shape + 1, (size, 2))
        drawn *= np.exp(-exponential.standard_exponential((size, 2)) / shape)
        assert found[first : first + size] == pytest.approx(drawn / drawn.sum(axis=1, keepdims=True), rel=1e-12)


# ------------------------------------------------------------------------------------- how many, and bad input


def test_the_default_number_of_draws_is_a_rule_of_size():
    assert default_draws([]) == 10_000
    assert default_draws([product_of_recalls([0])]) == 10_000
    n = 30_000  # states in a line, each with two ways on
    channel = channel_of([(), ("a",)], [[0]], [[1]], told(2))
    steps = np.minimum(np.arange(n)[:, None] + [1, 2], n - 1)
    line = objective_of(channel, steps, np.zeros(n, int), {"good": {n - 2}}, "F good", ended=(n - 1, n - 2))
    cost = len(line.product.edge)
    assert default_draws([line]) == 2 * 10**8 // cost // 100 * 100
    assert default_draws([line, line]) == 2 * 10**8 // (2 * cost) // 100 * 100
    assert default_draws([line] * 100) == 301
    # 300 states in a circle, one component: every transition in it, two each but one of ten that may leave, counts
    # twenty times more. From 2 to 200: k^2 more.
    for size, more in ((300, 20 * 590), (201, 20 * 392), (200, 200**2), (100, 100**2), (2, 2**2)):
        at = np.arange(size)
        around = np.column_stack([(at + 1) % size, np.where(at < 10, size, (at + 2) % size)])
        circle = objective_of(
            channel, np.vstack([around, [size, size]]), np.zeros(size + 1, int), {"good": {size}}, "F good",
            ended=(size,),
        )  # fmt: skip
        edges = len(circle.product.edge)
        assert edges == 2 * size
        effort = 7 if size > 2 else 3001
        harder = SimpleNamespace(product=circle.product, effort=effort)
        assert default_draws([harder]) == 2 * 10**8 // (effort * (edges + more)) // 100 * 100


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"count": 0}, "at least one draw, got 0"),
        ({"count": -5}, "at least one draw, got -5"),
        ({"seed": -1}, "a seed that is a whole number from 0 on, got -1"),
        ({"seed": 0.5}, "a seed that is a whole number from 0 on, got 0.5"),
        ({"prior": "flat"}, "unknown prior 'flat'"),
    ],
)
def test_bad_requests_are_refused_before_anything_is_drawn(settings, words):
    with pytest.raises(UsageError, match=words):
        matrix_draws(binary((1, 2)), ONE, **settings)


@pytest.mark.parametrize(
    "columns", [[[0, 2]], [[1, 0]], [[-1, 0]], [[0, 1], [0, 2]], [[0, 1], [0, 1]], [0, 1], [[0, 1, 1]]]
)
def test_columns_that_do_not_exist_are_refused(columns):
    with pytest.raises(ValueError, match=r"a column does not exist|different pairs of bin and column"):
        NeededColumns(binary((1, 2)), np.array(columns))


def test_a_chain_that_needs_no_column_has_one_probability():
    objective = objective_of(channel_of([(), ("a",)], [[0]], [[1]]), [[1, 1], [1, 1]], [0, 0], {"p": {1}}, "F p")
    columns = objective.skeleton.columns_needed()
    assert len(columns) == 0
    draws = list(probability_draws(objective, matrix_draws(binary((1, 2)), columns, count=1500)))
    assert np.array_equal(np.concatenate(draws), np.ones((1500, 1)))
