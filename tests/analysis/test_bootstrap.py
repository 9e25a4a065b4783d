"""Resampling whole sequences: hand-solved, against simulation, in pairs, and which interval is printed."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recall_chains import measured_of, product_of_recalls
from scipy.stats import beta, ks_2samp, kstest
from small_objectives import channel_of, objective_of

from verifier.analysis.bootstrap import (
    Choice,
    SequenceData,
    choose_interval,
    paired_sequence_draws,
    sequence_draws,
)
from verifier.analysis.intervals import percentile_interval
from verifier.analysis.measured import measured
from verifier.analysis.posterior import credible_interval, matrix_draws, probability_draws
from verifier.confusion.bins import Bins
from verifier.confusion.counts import Sequences
from verifier.confusion.job import count_job
from verifier.confusion.rules import CountingRule
from verifier.confusion.tally import Tally
from verifier.detections import Reading, class_map, read_detections
from verifier.errors import UsageError
from verifier.matching import MatchingPolicy

ONE = np.array([[0, 1]])
PLAIN = 1e-6  # a prior so small that it makes no difference


def data_of(*counts, columns=ONE, names=None, fixed=None):
    """From one (bins, predicted, true) array per sequence."""
    counts = np.asarray(counts, dtype=np.int64)
    names = names or [f"drive {number}" for number in range(len(counts))]
    index = np.argwhere(counts)
    tally = Tally(index.astype(np.int64), counts[tuple(index.T)][:, None])
    sequences = Sequences(tuple(names), np.ones(len(names), dtype=np.int64), tally)
    return SequenceData(measured_of(counts.sum(axis=0), fixed), sequences, np.array(columns))


def recall_data(*hits_and_items, **settings):
    """Sequences with so many hits among so many items of label 1, in one bin."""
    return data_of(*[[[[0, items - hits], [0, hits]]] for hits, items in hits_and_items], **settings)


def recalls(data, **settings):
    return np.concatenate([draws[:, 0, 1, 1] for draws in sequence_draws(data, **settings)])


# ------------------------------------------------------------------------------------------------ hand-solved


def test_two_drives_by_hand():
    # A: 2 of 2 seen, B: 0 of 4. Replicates AA, AB, BA, BB with 1/4 each: recall 1, 2/6, 2/6, 0.
    found = recalls(recall_data((2, 2), (0, 4)), prior=PLAIN, count=40_000)
    for value, chance in ((1, 1 / 4), (1 / 3, 1 / 2), (0, 1 / 4)):
        assert np.mean(np.abs(found - value) < 1e-9) == pytest.approx(chance, abs=0.01)


def test_three_drives_by_hand_through_a_chain():
    # P = r0 r1. Drive A has bin 0 only (1 of 1), B bin 1 only (1 of 1), C both (0 of 1 each). With n(s) how often s
    # is drawn, r0 = n(A) / (n(A) + n(C)) and r1 = n(B) / (n(B) + n(C)). Of 27 replicates P is 1/4 in the 6 with each
    # once; 1 in the 6 of kind AAB or ABB; 0 in the 12 of kind AAC, BBC, ACC or BCC, and in CCC. AAA and BBB leave a
    # column without items, which then comes from the prior.
    seen, missed, none = [[0, 0], [0, 1]], [[0, 1], [0, 0]], [[0, 0], [0, 0]]
    data = data_of([seen, none], [none, seen], [missed, missed], columns=[[0, 1], [1, 1]])
    objective = product_of_recalls([0, 1])
    draws = sequence_draws(data, PLAIN, 30_000)
    found = np.concatenate(list(probability_draws(objective, draws)))[:, 0]
    assert np.mean(np.abs(found - 0.25) < 1e-9) == pytest.approx(6 / 27, abs=0.01)
    # A prior of weight next to 0 is 0 or 1 with 1/2 each: the two replicates without items add 1/27 to either value.
    assert np.mean(found > 0.999) == pytest.approx(6 / 27 + 1 / 27, abs=0.01)
    assert np.mean(found < 0.001) == pytest.approx(13 / 27 + 1 / 27, abs=0.01)
    assert data.without_items() == pytest.approx([1 / 27, 1 / 27], abs=1e-15)


def test_a_column_without_items_in_a_replicate_is_drawn_from_the_prior():
    # Drive A holds everything of the column (3 of 3), B nothing. Without A, in 1/4 of the replicates, it is uniform.
    data = recall_data((3, 3), (0, 0))
    assert data.without_items() == pytest.approx([1 / 4])
    assert data.holding == 1
    found = recalls(data, prior="uniform", count=40_000)
    # With A drawn w times (w = 1: 1/2, w = 2: 1/4): N = 3, recall = (3w + 3 g1) / (3w + 3 g1 + 3 g0), g exponential.
    rng = np.random.default_rng(0)
    g = rng.exponential(size=(40_000, 2))
    w = rng.binomial(2, 0.5, 40_000)
    assert ks_2samp(found, (w + g[:, 0]) / (w + g.sum(axis=1))).pvalue > 1e-3


def test_a_column_without_items_anywhere_is_drawn_from_the_prior():
    data = recall_data((0, 0), (0, 0), (0, 0))
    assert data.without_items() == pytest.approx([1.0])
    assert kstest(recalls(data), beta(0.5, 0.5).cdf).pvalue > 1e-3
    assert kstest(recalls(data, prior=3), beta(3, 3).cdf).pvalue > 1e-3


def test_one_drive_leaves_the_doubt_of_the_prior():
    # A single drive, 8 of 10: every replicate is that drive. N = 10, recall = (8 + 10 g1) / (10 + 10 (g0 + g1)).
    found = recalls(recall_data((8, 10)), count=40_000)
    g = np.random.default_rng(1).gamma(0.5, size=(40_000, 2))
    assert ks_2samp(found, (0.8 + g[:, 0]) / (1 + g.sum(axis=1))).pvalue > 1e-3


def test_drives_without_a_miss_do_not_prove_a_perfect_detector():
    # 20 drives of 30 items, none missed. The plain bootstrap says 1 to 1; with the prior, the lower end is near that
    # of 20 independent items, not of 600: Beta(20.5, 0.5) has its 2.5 % quantile at 0.884.
    data = recall_data(*[(30, 30)] * 20)
    plain = percentile_interval(recalls(data, prior=PLAIN)[:, None], 0.95, "bootstrap")
    found = percentile_interval(recalls(data)[:, None], 0.95, "bootstrap")
    assert plain.lower[0] > 1 - 1e-9
    assert found.lower[0] == pytest.approx(beta(20.5, 0.5).ppf(0.025), abs=0.01)


def test_the_size_of_prior_sequences_is_that_of_the_sequence_an_item_lies_in():
    # 9 items in one drive, 1 in another: N = (81 + 1) / 10 = 8.2. Both drawn once, all seen:
    # recall = (10 + 8.2 g1) / (10 + 8.2 (g0 + g1)). Replicates: 9 + 1 (1/2), 18 (1/4), 2 (1/4) items.
    found = recalls(recall_data((9, 9), (1, 1)), count=40_000)
    rng = np.random.default_rng(2)
    items, g = rng.choice([10, 10, 18, 2], 40_000), rng.gamma(0.5, size=(40_000, 2))
    assert ks_2samp(found, (items + 8.2 * g[:, 0]) / (items + 8.2 * g.sum(axis=1))).pvalue > 1e-3


@pytest.mark.parametrize("hits", [150, 199])
def test_with_one_item_in_every_sequence_it_is_nearly_the_posterior(hits):
    data = recall_data(*[(int(k < hits), 1) for k in range(200)])
    found = percentile_interval(recalls(data)[:, None], 0.95, "bootstrap")
    posterior = beta(hits + 0.5, 200.5 - hits)
    assert found.lower[0] == pytest.approx(posterior.ppf(0.025), abs=0.006)
    assert found.upper[0] == pytest.approx(posterior.ppf(0.975), abs=0.006)


def test_fixed_columns_are_held():
    counts = [[[3, 1], [0, 2]]], [[[5, 0], [0, 4]]]
    data = data_of(*counts, columns=[[0, 0], [0, 1]], fixed=[[True, False]])
    (draws,) = sequence_draws(data, count=500)
    assert np.array_equal(draws[:, 0, :, 0], np.tile([1.0, 0.0], (500, 1)))
    assert len(np.unique(draws[:, 0, 1, 1])) == 500
    assert data.without_items().shape == (1,)


# --------------------------------------------------------------------------------------- definition and parts


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=4), st.integers(0, 5))
def test_replicates_have_the_distribution_of_all_equally_likely_choices(drives, seed):
    data = recall_data(*[(hits, hits + misses) for hits, misses in drives])
    found = recalls(data, prior=PLAIN, count=2000, seed=seed)
    expected = []
    for chosen in itertools.product(drives, repeat=len(drives)):
        hits, items = sum(h for h, _ in chosen), sum(h + m for h, m in chosen)
        expected += [hits / items] * 2 if items else [0.0, 1.0]
    for value in set(expected):
        share = expected.count(value) / len(expected)
        spread = np.sqrt(share * (1 - share) / 2000)
        assert abs(np.mean(np.abs(found - value) < 1e-9) - share) <= 5 * spread + 2e-3


MIXED = data_of(*(np.random.default_rng(3).integers(0, 4, (6, 2, 3, 3))), columns=[[0, 1], [1, 0], [1, 2]])


@pytest.mark.parametrize(("count", "at_once"), [(1, 1), (999, 1), (1001, 10), (1300, 400), (1300, 5000)])
def test_a_replicate_depends_on_names_seed_and_number_only(count, at_once):
    whole = np.concatenate(list(sequence_draws(MIXED, count=1300, seed=4)))
    found = np.concatenate(list(sequence_draws(MIXED, count=count, seed=4, at_once=at_once)))
    assert np.array_equal(found, whole[:count], equal_nan=True)
    fewer = SequenceData(MIXED.measured, MIXED.sequences, MIXED.columns[1:2])
    alone = np.concatenate(list(sequence_draws(fewer, count=count, seed=4)))
    assert np.array_equal(alone[:, 1, :, 0], found[:, 1, :, 0])
    other = np.concatenate(list(sequence_draws(MIXED, count=count, seed=5)))
    assert not np.array_equal(other, found, equal_nan=True)


# ---------------------------------------------------------------------------------------------------- in pairs


def test_two_detectors_get_the_same_drives_by_name():
    # The second detector sees exactly what the first misses, and lists the drives in another order.
    drives = [(0, 3), (2, 5), (4, 4), (1, 6)]
    names = ["a", "b", "c", "d"]
    first = recall_data(*drives, names=names)
    second = recall_data(*[(items - hits, items) for hits, items in drives[::-1]], names=names[::-1])
    pairs = [(one[:, 0, 1, 1], other[:, 0, 1, 1]) for one, other in paired_sequence_draws([first, second], PLAIN)]
    one, other = (np.concatenate(each) for each in zip(*pairs, strict=True))
    assert np.mean(np.abs(one + other - 1) < 1e-9) > 0.999  # even so small a prior shows once in 10^5 draws
    assert np.array_equal(one, recalls(first, prior=PLAIN))
    # Paired, the difference to itself is nothing; detectors with other counts have prior sequences of their own.
    for one, other in paired_sequence_draws([first, first], count=100):
        assert np.array_equal(one, other, equal_nan=True)


def test_detectors_of_other_drives_are_not_paired():
    first = recall_data((1, 2), (1, 2), names=["a", "b"])
    second = recall_data((1, 2), (1, 2), (0, 1), names=["a", "c", "d"])
    with pytest.raises(UsageError, match=r"not run on the same sequences.*only one of them has 'b', 'c', 'd'"):
        paired_sequence_draws([first, second])


# ------------------------------------------------------------------------------------------------ which interval

MANY = recall_data(*[(1, 2)] * 10)
FEW = recall_data(*[(1, 2)] * 9, (0, 0))
TOO_NARROW = (
    "the credible interval takes all items to be independent; frames of one drive are not: it may be too narrow"
)


def choice(data, sequences=True, requested="auto"):
    return choose_interval(data.measured, data.sequences if sequences else None, data.columns, requested)


def test_the_choice_says_why():
    assert choice(MANY) == choice(MANY, requested="bootstrap")
    assert choice(MANY) == Choice("bootstrap", "10 sequences resampled: frames of one drive are not independent")
    assert choice(MANY, requested="posterior") == Choice("credible", "posterior, as asked for", TOO_NARROW)
    assert choice(FEW) == Choice(
        "credible",
        "posterior: only 9 sequences hold items that count here, and fewer than 10 say little",
        TOO_NARROW,
    )
    assert choice(MANY, sequences=False) == Choice(
        "credible", "posterior: the matrices do not say which sequence an item is from", TOO_NARROW
    )


def test_a_bootstrap_that_cannot_be_had_is_refused():
    with pytest.raises(UsageError, match="the bootstrap resamples sequences, but only 9 sequences hold items"):
        choice(FEW, requested="bootstrap")
    with pytest.raises(UsageError, match="but the matrices do not say which sequence an item is from"):
        choice(MANY, sequences=False, requested="bootstrap")
    with pytest.raises(UsageError, match="unknown interval 'best'; known: auto, posterior, bootstrap"):
        choice(MANY, requested="best")


def test_sequences_must_add_up_to_the_counts():
    with pytest.raises(ValueError, match="do not add up"):
        SequenceData(measured_of([[[0, 1], [0, 1]]]), MANY.sequences, ONE)
    with pytest.raises(ValueError, match="do not add up"):
        SequenceData(measured_of(np.zeros((1, 2, 2))), data_of(np.ones((2, 2, 2))).sequences, ONE)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"count": 0}, "at least one draw, got 0"),
        ({"seed": -1}, "a seed that is a whole number"),
        ({"prior": "none"}, "unknown prior 'none'"),
    ],
)
def test_bad_requests_are_refused_before_anything_is_drawn(settings, words):
    with pytest.raises(UsageError, match=re.escape(words)):
        sequence_draws(MANY, **settings)


# ---------------------------------------------------------------------------------------------------- real data


def test_on_real_drives_the_bootstrap_is_several_times_as_wide(shared):
    folder = shared / "data/kitti_tracking"
    reading = Reading(class_map=class_map({"Pedestrian": "ped", "DontCare": "dont_care", "*": "ignore"}))
    data = read_detections("kitti_tracking", folder / "label_02", folder / "det_pointrcnn", reading)
    rule = CountingRule("class", ("ped",), Bins((0.0, 20.0, float("inf"))), "ground_plane")
    counts, _ = count_job(data, MatchingPolicy("centre_bev", 2.0), rule)
    # Three frames in a row must report the pedestrian: one within 20 m, two beyond.
    channel = channel_of(counts.labels, [[0], [1]], [[0], [0]])
    following = [[4, 1], [4, 2], [4, 3], [3, 3], [4, 4]]
    objective = objective_of(channel, following, [0, 1, 1, 0, 0], {"good": {3}}, "F good", ended=(3, 4))
    found = measured(counts.matrices())
    drives = SequenceData(found, counts.by_sequence(), np.array([[0, 0], [1, 0]]))
    assert drives.holding >= 10
    by_drive = np.concatenate(list(probability_draws(objective, sequence_draws(drives))))
    by_item = np.concatenate(list(probability_draws(objective, matrix_draws(found, drives.columns))))
    wide, narrow = percentile_interval(by_drive, 0.95, "bootstrap"), credible_interval(by_item, 0.95)
    assert wide.upper[0] - wide.lower[0] > 2.5 * (narrow.upper[0] - narrow.lower[0])
    point = objective.probabilities(found.rates[None]).probability[0, 0]
    assert wide.lower[0] < narrow.lower[0] < point < narrow.upper[0] < wide.upper[0]
