"""One phantom drive more: published values, Clopper and Pearson, draws against inversion, and pairs of detectors."""

import hashlib
import re
from dataclasses import fields

import numpy as np
import pytest
from drive_tables import drives_of, recall_counts
from phantom_rate import phantom_interval
from recall_chains import LABELS, measured_of, product_of_recalls
from scipy.stats import beta
from small_objectives import channel_of, objective_of

from verifier.analysis import phantom_draws
from verifier.analysis.intervals.drive_items import DriveItems
from verifier.analysis.intervals.intervals import Choice, Measured, choose_interval
from verifier.analysis.mixed import stacked_columns
from verifier.analysis.objective import Conditional
from verifier.analysis.phantom_draws import (
    DriveData,
    _extreme_by_trial,
    common_draws,
    drive_draws,
    drive_intervals,
    extreme_draws,
    mixed,
)
from verifier.analysis.settings import INTERVALS, ConfidenceSettings
from verifier.base.errors import UsageError
from verifier.base.options import options_of

ONE = np.array([[0, 1]])
# Section 8 of the specification: X / N by drive, then [lower, upper] by drive and by item, at 95 %.
PUBLISHED = [
    ("50/50 " * 20, (0.831567, 1.000000), (0.831567, 1.000000)),
    ("25/50 " + "50/50 " * 19, (0.803313, 0.999367), (0.803313, 0.999367)),
    ("45/50 " * 20, (0.748410, 0.916843), (0.748410, 0.916843)),
    ("9/10 40/40 3/5 0/2 18/20 100/140 7/7 55/60", (0.402794, 0.919976), (0.286072, 0.961478)),
    ("12/12 0/0 30/30 0/0 28/30 9/10 0/0 0/0 14/15 21/21", (0.519249, 0.990970), (0.474305, 0.992894)),
    ("90/100", (0.022500, 0.997500), (0.022500, 0.997500)),
    ("0/0 " * 5, (0.000000, 1.000000), (0.000000, 1.000000)),
]


def table_of(text):
    return np.array([[int(number) for number in each.split("/")] for each in text.split()], dtype=np.int64)


@pytest.mark.parametrize(("text", "by_drive", "by_item"), PUBLISHED)
def test_published_values(text, by_drive, by_item):
    hits, items = table_of(text).T
    assert phantom_interval(hits, items, 0.025) == pytest.approx(by_item, abs=1e-6)
    whole = np.lcm.reduce(np.where(items > 0, items, 1))
    share = hits * (whole // np.where(items > 0, items, 1))
    assert phantom_interval(share, np.where(items > 0, whole, 0), 0.025) == pytest.approx(by_drive, abs=1e-6)


@pytest.mark.parametrize(("hits", "number"), [(0, 5), (3, 10), (19, 20), (40, 40), (150, 200)])
def test_one_item_in_every_drive_is_clopper_and_pearson(hits, number):
    found = phantom_interval((np.arange(number) < hits).astype(np.int64), np.ones(number, dtype=np.int64), 0.025)
    low = beta.ppf(0.025, hits, number - hits + 1) if hits else 0.0
    high = beta.ppf(0.975, hits + 1, number - hits) if hits < number else 1.0
    assert found == pytest.approx((low, high), abs=1e-6)


# ----------------------------------------------------------------------------------------------------------- draws


def data_of(*drives, bins=1, names=None):
    measured, table = drives_of(recall_counts(*drives, bins=bins), names)
    return DriveData(measured, table, np.array([[at, 1] for at in range(bins)]))


@pytest.mark.parametrize("row", [1, 2, 3, 4, 5])
def test_draws_through_a_chain_are_the_inverted_interval(row):
    text, _, (low, high) = PUBLISHED[row]
    (found,) = drive_intervals((product_of_recalls([0]),), data_of(*table_of(text).tolist()), 0.95, 40_000, 1)
    assert found.lower_range[0, 0] - 1e-6 <= low <= found.lower_range[0, 1] + 1e-6
    assert found.upper_range[0, 0] - 1e-6 <= high <= found.upper_range[0, 1] + 1e-6
    assert found.kind == "bootstrap"


def test_the_weights_of_drives_are_the_same_in_all_columns():
    data = data_of((1, 2, 1, 2), (4, 4, 4, 4), (0, 3, 0, 3), bins=2)
    (part,) = drive_draws(data, 500, 3)
    assert np.array_equal(part.items[:, 0], part.items[:, 1])
    assert not np.array_equal(part.phantom[:, 0], part.phantom[:, 1])
    assert data.phantom == pytest.approx([29 / 9, 29 / 9])  # (4 + 16 + 9) / 9


def test_the_ends_are_those_of_phantoms_that_miss_everything_and_nothing():
    data = data_of((9, 10, 18, 20), (5, 5, 3, 9), (0, 0, 7, 7), (11, 12, 1, 1), bins=2)
    (part,) = drive_draws(data, 1000, 5)
    total = part.items.sum(axis=2) + part.phantom
    low = (part.items[..., 1] / total).prod(axis=1)
    high = ((part.items[..., 1] + part.phantom) / total).prod(axis=1)
    (found,) = drive_intervals((product_of_recalls([0, 1]),), data, 0.95, 1000, 5)
    assert found.lower[0] == pytest.approx(np.sort(low)[24], abs=1e-12)
    assert found.upper[0] == pytest.approx(np.sort(high)[-25], abs=1e-12)


def test_a_perfect_detector_is_doubted_though_its_derivative_is_zero():
    # Missed three times in a row is bad: P = 1 - (1 - r)^3, flat at r = 1.
    channel = channel_of(LABELS[:2], [[0]], [[1]], (frozenset(), frozenset({"a"})))
    following = [[1, 3], [2, 3], [4, 3], [3, 3], [4, 4]]
    objective = objective_of(channel, following, [0, 0, 0, 0, 0], {"good": {3}}, "F good", ended=(3, 4))
    (found,) = drive_intervals((objective,), data_of(*[(30, 30)] * 20), 0.95, 20_000, 1)
    low, _ = phantom_interval(np.full(20, 30), np.full(20, 30), 0.025)
    assert found.lower[0] == pytest.approx(1 - (1 - low) ** 3, abs=2e-3)
    assert found.upper[0] == 1


def test_every_initial_state_has_its_own_worst_report():
    # From the first state `a` is good, from the second it is bad.
    channel = channel_of(LABELS[:2], [[0]], [[1]], (frozenset(), frozenset({"a"})))
    following = [[3, 2], [2, 3], [2, 2], [3, 3]]
    objective = objective_of(channel, following, [0] * 4, {"good": {2}}, "F good", (0, 1), (2, 3))
    (found,) = drive_intervals((objective,), data_of((4, 5), (9, 9), (2, 7)), 0.9, 2000, 0)
    assert found.lower == pytest.approx(1 - found.upper[::-1], abs=1e-12)
    assert abs(found.lower[0] - found.lower[1]) > 0.05
    # So it is without derivatives, given what is sure.
    parts = {part.name: getattr(objective, part.name) for part in fields(objective)}
    sure = objective_of(channel, following, [0] * 4, {"good": {2, 3}}, "F good", (0, 1), (2, 3))
    (again,) = drive_intervals((Conditional(**parts, given=sure),), data_of((4, 5), (9, 9), (2, 7)), 0.9, 2000, 0)
    assert again.lower == pytest.approx(found.lower, abs=1e-12)


def test_without_derivatives_the_worst_report_is_found_by_trying_each():
    # What a conditional probability and a gain need, held against the derivatives that a probability has.
    data = data_of((9, 10, 18, 20), (5, 5, 3, 9), (0, 0, 7, 7), bins=2)
    by_slope = product_of_recalls([0, 1])
    given = product_of_recalls([1])
    parts = {each.name: getattr(by_slope, each.name) for each in fields(by_slope)}
    (found,) = drive_intervals((by_slope,), data, 0.95, 2000, 1)
    # Of one column given the other: both are drawn together, and what is left is the first one's recall.
    (ratio,) = drive_intervals((Conditional(**parts, given=given),), data, 0.95, 2000, 1)
    (alone,) = drive_intervals((product_of_recalls([0]),), data, 0.95, 2000, 1)
    assert (ratio.lower[0], ratio.upper[0]) == pytest.approx((alone.lower[0], alone.upper[0]), abs=1e-9)
    assert found.lower[0] < ratio.lower[0]


def test_each_column_alone_is_given_to_each_label_and_the_others_stay_as_they_are(monkeypatch):
    """In two bins 2 of 8 and 1 of 3, by drives of 8 and 3 items: the phantom drive has as many, half of each kind."""
    data = data_of((6, 8, 2, 3), bins=2)
    given = []

    def numbers_of(objective, parts):
        (matrices,) = parts
        given.extend(matrices[..., 1].tolist())
        return [np.array([[0.5, 3.0], [0.25, 4.0], [0.75, 1.0], [0.5, 2.0]])]  # of both columns, given to 0 and to 1

    monkeypatch.setattr(phantom_draws, "probability_draws", numbers_of)
    mean = np.array([[2 + 4, 6 + 4], [1 + 1.5, 2 + 1.5]])
    assert _extreme_by_trial(None, data, mean).tolist() == [[[1, 1], [0, 0]], [[0, 0], [1, 1]]]
    shares = [[[10, 6], [2.5, 3.5]], [[2, 14], [2.5, 3.5]], [[6, 10], [4, 2]], [[6, 10], [1, 5]]]
    expected = [[(np.array(column) / sum(column)).tolist() for column in row] for row in shares]
    assert np.array(given) == pytest.approx(np.array(expected), rel=1e-12)


def test_what_is_worst_for_a_quotient_is_not_what_is_worst_for_its_numerator():
    """Of r0 r1 / r0^2 misses in the second bin and hits in the first; of r0 r1 r2 misses in all three."""
    data = data_of((8, 10, 3, 10), (19, 20, 4, 9), (7, 7, 2, 7), bins=2)
    both, given = product_of_recalls([0, 1]), product_of_recalls([0, 0])
    parts = {part.name: getattr(both, part.name) for part in fields(both)}
    (found,) = drive_intervals((Conditional(**parts, given=given),), data, 0.95, 1000, 1)
    (part,) = drive_draws(data, 1000, 1)
    total, hits = part.items.sum(axis=2) + part.phantom, part.items[..., 1]
    least = hits[:, 1] / total[:, 1] / ((hits[:, 0] + part.phantom[:, 0]) / total[:, 0])
    assert found.lower[0] == pytest.approx(np.sort(least)[24], abs=1e-9)
    data = data_of((8, 10, 3, 10, 5, 5), (19, 20, 4, 9, 1, 2), bins=3)
    (found,) = drive_intervals((product_of_recalls([0, 1, 2]),), data, 0.95, 1000, 1)
    (part,) = drive_draws(data, 1000, 1)
    least = (part.items[..., 1] / (part.items.sum(axis=2) + part.phantom)).prod(axis=1)
    assert found.lower[0] == pytest.approx(np.sort(least)[24], abs=1e-9)


def test_what_is_worst_in_one_bin_may_be_best_in_another():
    """Reported in bin 0 and then not in bin 2: of r0 (1 - r2) the least is of misses there, and of hits here."""
    channel = channel_of(LABELS[:2], [[0], [2]], [[1], [1]], (frozenset(), frozenset({"a"})))
    following = [[3, 1], [2, 3], [2, 2], [3, 3]]
    objective = objective_of(channel, following, [0, 1, 0, 0], {"good": {2}}, "F good", ended=(2, 3))
    measured, table = drives_of(recall_counts((8, 10, 0, 0, 3, 10), (19, 20, 0, 0, 4, 9), bins=3))
    data = DriveData(measured, table, np.array([[0, 1], [2, 1]]))
    (found,) = drive_intervals((objective,), data, 0.95, 1000, 1)
    (part,) = drive_draws(data, 1000, 1)
    total, hits = part.items.sum(axis=2) + part.phantom, part.items[..., 1]
    least = hits[:, 0] / total[:, 0] * (1 - (hits[:, 1] + part.phantom[:, 1]) / total[:, 1])
    assert found.lower[0] == pytest.approx(np.sort(least)[24], abs=1e-9)


def test_a_column_without_items_can_be_anything():
    (found,) = drive_intervals((product_of_recalls([0]),), data_of((0, 0), (0, 0)), 0.95, 1000, 0)
    assert (found.lower[0], found.upper[0]) == (0, 1)


def test_a_phantom_drive_is_as_large_as_the_drive_that_an_item_lies_in():
    """(16 + 4) / 6 of items; of halves of a track in two drives half of one; 1 where there is none."""
    unit = 10**9
    table = np.zeros((2, 3, 2, 2), dtype=np.int64)
    table[:, :2, 1, 1] = [[4 * unit, unit // 2], [2 * unit, unit // 2]]
    drives = DriveItems(("one", "two"), "track", table)
    held = DriveData(measured_of(table.sum(axis=0)), drives, np.array([[at, 1] for at in range(3)]))
    assert held.phantom == pytest.approx([20 / 6, 0.5, 1])


def test_fixed_columns_are_held():
    measured, table = drives_of([[[[3, 1], [0, 2]]], [[[5, 0], [0, 4]]]])
    held = Measured(measured.counts, measured.rates, np.array([[True, False]]))
    (draws,) = common_draws(DriveData(held, table, np.array([[0, 0], [0, 1]])), "jeffreys", 500)
    assert np.array_equal(draws[:, 0, :, 0], np.tile(measured.rates[0, :, 0], (500, 1)))
    assert len(np.unique(draws[:, 0, 1, 1])) == 500


def test_drives_must_add_up_to_the_counts():
    measured, table = drives_of(recall_counts((1, 2), (3, 3)))
    fewer = DriveItems(table.names[:1], "item", table.table[:1])
    with pytest.raises(ValueError, match="do not add up"):
        DriveData(measured, fewer, ONE)


# ----------------------------------------------------------------------------------------------- numbers and pairs


@pytest.mark.parametrize(("count", "at_once"), [(1, 1), (999, 1), (1001, 10), (1300, 400)])
def test_a_draw_depends_on_names_seed_and_number_only(count, at_once):
    data = data_of((1, 2), (0, 3), (5, 5))

    def drawn(*arguments):
        parts = list(drive_draws(data, *arguments))
        return np.concatenate([part.items for part in parts]), np.concatenate([part.phantom for part in parts])

    whole, some, other = drawn(1300, 4), drawn(count, 4, at_once), drawn(count, 5)
    for kind in (0, 1):
        assert some[kind] == pytest.approx(whole[kind][:count], abs=1e-12)
        assert np.abs(some[kind] - other[kind]).max() > 0.01
    in_parts = np.concatenate(list(common_draws(data, "jeffreys", 1300, 4)))
    again = np.concatenate(list(common_draws(data, "jeffreys", count, 4)))
    assert again[:, 0, :, 1] == pytest.approx(in_parts[:count, 0, :, 1], abs=1e-12)


def test_draws_are_named_by_drive_seed_counts_column_and_block():
    """By the definition, with numpy's own generators, in two blocks: every draw of a seed stays what it was."""
    data, seed, count = data_of((1, 4), (5, 5), names=["a", "b"]), 7, 1001

    def named(entropy, *key):
        return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=key))

    digest = hashlib.sha256(b"(1, 2, 2)" + data.measured.counts.astype("<i8").tobytes()).digest()
    own = seed, int.from_bytes(digest[:16], "little")
    names = [(seed, int.from_bytes(hashlib.sha256(name).digest()[:16], "little")) for name in (b"a", b"b")]
    items, phantoms, reports = [], [], []
    for block, rows in ((0, 1000), (1, 1)):
        weights = np.stack([named(entropy, block).standard_exponential(rows) for entropy in names], axis=1)
        items.append(weights @ [[3, 1], [0, 5]])
        phantoms.append(named((*own, 2), 0, 1, block).standard_exponential(rows) * 41 / 9)  # (16 + 25) / 9
        gamma, lowered = (named((*own, 3), 0, 1, block, part) for part in (0, 1))
        drawn = gamma.standard_gamma(np.full(2, 1.5), (rows, 2))
        drawn *= np.exp(-lowered.standard_exponential((rows, 2)) / 0.5)
        reports.append(drawn / drawn.sum(axis=1, keepdims=True))
    items, phantoms, reports = map(np.concatenate, (items, phantoms, reports))
    parts = list(drive_draws(data, count, seed))
    assert np.concatenate([part.items for part in parts])[:, 0] == pytest.approx(items, rel=1e-12)
    assert np.concatenate([part.phantom for part in parts])[:, 0] == pytest.approx(phantoms, rel=1e-12)
    expected = items + phantoms[:, None] * reports
    found = np.concatenate(list(common_draws(data, "jeffreys", count, seed)))[:, 0, :, 1]
    assert found == pytest.approx(expected / expected.sum(axis=1, keepdims=True), rel=1e-12)


def test_intervals_of_several_objectives_are_those_of_each_and_of_the_draws_behind_them():
    data = data_of((9, 10, 18, 20), (5, 5, 3, 9), (0, 0, 7, 7), bins=2)
    objectives = product_of_recalls([0]), product_of_recalls([1])
    for objective, found in zip(objectives, drive_intervals(objectives, data, 0.9, 1000, 5), strict=True):
        (alone,) = drive_intervals((objective,), data, 0.9, 1000, 5)
        assert (found.lower, found.upper) == (alone.lower, alone.upper)
        least, most = map(np.concatenate, zip(*extreme_draws(objective, data, 1000, 5), strict=True))
        assert np.all(least <= most)
        assert (np.sort(least[:, 0])[49], np.sort(most[:, 0])[-50]) == pytest.approx((found.lower[0], found.upper[0]))


def test_two_detectors_get_the_same_weights_by_name():
    # The second detector sees exactly what the first misses, and lists the drives in another order.
    drives, names = [(0, 3), (2, 5), (4, 4), (1, 6)], ["a", "b", "c", "d"]
    first = data_of(*drives, names=names)
    second = data_of(*[(items - hits, items) for hits, items in drives[::-1]], names=names[::-1])
    (one,), (other,) = (drive_draws(each, 1000, 7) for each in (first, second))
    assert one.items[:, 0, 1] == pytest.approx(other.items[:, 0, 0], abs=1e-12)
    (third,) = drive_draws(data_of(*drives, (0, 0), names=[*names, "e"]), 1000, 7)
    assert third.items == pytest.approx(one.items, abs=1e-12)
    for mine, again in zip(common_draws(first, 0.5, 100), common_draws(first, 0.5, 100), strict=True):
        assert np.array_equal(mine, again, equal_nan=True)


def test_in_comparisons_the_phantom_reports_at_random():
    # One drive, X of N: (X E_1 + N E_0 g) / (N (E_1 + E_0)) with g ~ Beta(1/2, 1/2).
    found = np.concatenate(list(common_draws(data_of((8, 10)), "jeffreys", 40_000)))[:, 0, 1, 1]
    rng = np.random.default_rng(1)
    one, zero, share = rng.exponential(size=40_000), rng.exponential(size=40_000), rng.beta(0.5, 0.5, 40_000)
    expected = (0.8 * one + zero * share) / (one + zero)
    shares = (0.05, 0.25, 0.5, 0.75, 0.95)
    assert np.quantile(found, shares) == pytest.approx(np.quantile(expected, shares), abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("jeffreys", 0), "at least one draw, got 0"),
        (("jeffreys", 5, -1), "a seed that is"),
        (("no", 5), "prior 'no'"),
    ],
)
def test_bad_requests_are_refused_before_anything_is_drawn(arguments, words):
    with pytest.raises(UsageError, match=re.escape(words)):
        common_draws(data_of((1, 2)), *arguments)


# ------------------------------------------------------------------------------------------------ which interval

TOO_NARROW = "independent items. Frames of one drive are correlated, and then intervals are too narrow."


def test_the_choice_says_why():
    _, drives = drives_of(recall_counts((1, 2), (1, 2), (0, 0)))
    reason = "2 drives weighted at random, and a phantom drive: frames of one drive are not independent"
    assert choose_interval(drives, ONE) == choose_interval(drives, ONE, "bootstrap") == Choice("bootstrap", reason)
    assert choose_interval(drives, ONE, "credible") == Choice(
        "credible", "posterior, as asked for", f"the credible interval assumes {TOO_NARROW}"
    )
    reason = "posterior: the matrices do not say which sequence an item is from"
    assert choose_interval(None, ONE) == Choice(
        "credible", reason, f"the credible interval and the confidence bounds both assume {TOO_NARROW}"
    )


def test_the_words_that_travel_with_the_bootstrap_say_that_drives_are_weighted_and_not_drawn_again():
    matrices = next(iter(drive_draws(data_of((1, 2), (3, 4)), 50))).items
    assert not np.allclose(matrices, np.round(matrices))  # whole numbers if drives were drawn again
    words = INTERVALS["bootstrap"]
    assert words.condition("track") == "tracks are independent (approximate: Bayesian bootstrap)"
    told = [setting.option.help for _, setting in options_of(ConfidenceSettings) if setting.field == "interval"]
    assert "weighted at random and one phantom drive (Bayesian bootstrap)" in told[0]


def test_an_interval_that_cannot_be_had_is_refused():
    _, drives = drives_of(recall_counts((1, 2)))
    with pytest.raises(UsageError, match="but the matrices do not say which one an item is from"):
        choose_interval(None, ONE, "bootstrap")
    with pytest.raises(UsageError, match="unknown interval 'best'\n  hint: known: auto, bootstrap, credible"):
        ConfidenceSettings(interval="best")
    with pytest.raises(UsageError, match="--weights drive does not"):
        choose_interval(DriveItems(drives.names, "drive", drives.table), ONE, "credible")


def test_drawn_matrices_are_weighted_sums_of_those_of_the_strata():
    drawn = np.arange(2 * 6 * 2 * 2, dtype=np.float64).reshape(2, 6, 2, 2)  # two draws, three strata of two bins
    weights = np.array([0.5, 0.3, 0.2])
    found = mixed(drawn, weights)
    for draw, at in np.ndindex(2, 2):
        expected = sum(weights[stratum] * drawn[draw, 2 * stratum + at] for stratum in range(3))
        assert np.allclose(found[draw, at], expected)
    assert stacked_columns(np.array([[1, 0], [0, 2]]), 2, 3).tolist() == [
        [1, 0], [0, 2], [3, 0], [2, 2], [5, 0], [4, 2],
    ]  # fmt: skip
