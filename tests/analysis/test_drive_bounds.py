"""Bounds by drives through a whole chain: tiers, their words, regions, and certificates proven from the table."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from drive_tables import drives_of, recall_counts, sequences_of
from hypothesis import given
from hypothesis import strategies as st
from interval_models import contains
from recall_chains import measured_of, product_of_recalls, told
from scipy.stats import beta
from shorthands import PROVEN
from small_objectives import channel_of, objective_of

from verifier.analysis import kernel
from verifier.analysis.confidence import bounds_of_chain, confidence, data_of_run
from verifier.analysis.intervals.drive_items import UNIT, divided, drive_items, lower_ends, weighted_matrices
from verifier.analysis.intervals.intervals import measured
from verifier.analysis.intervals.rate_intervals import (
    Event,
    RateIntervals,
    difference_remark,
    rate_differences,
)
from verifier.analysis.robust.region import events_of, region_of
from verifier.analysis.robust.solutions import Effort, robust_bounds
from verifier.analysis.settings import ConfidenceSettings
from verifier.base.documents import json_values
from verifier.base.errors import UsageError
from verifier.perception.confusion import ConfusionMatrices
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.choices import count_job
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.tracks import Tracks
from verifier.perception.detections import Reading, class_map, read_detections
from verifier.perception.matching import MatchingPolicy

DRIVES = [(9, 10), (40, 40), (3, 5), (0, 2), (18, 20), (100, 140), (7, 7), (55, 60)]


def data_for(drives, settings, bins=1, sequences=True):
    counts = recall_counts(*drives, bins=bins)
    objective = product_of_recalls(list(range(bins)))
    known = sequences_of(counts) if sequences else None
    return objective, data_of_run([[objective]], measured_of(counts.sum(axis=0)), known, settings)


def bounds_for(drives, settings, bins=1, sequences=True):
    objective, data = data_for(drives, settings, bins, sequences)
    (found,) = bounds_of_chain([objective], data, settings, PROVEN)
    return (float(found.lower[0]), float(found.upper[0])), data.basis, found.certificates


def by_hand(drives, largest, tail):
    hits, items = (np.array(each)[:, None] for each in zip(*drives, strict=True))
    low, rest = (lower_ends(each, items, np.array([largest]), tail)[0] / UNIT for each in (hits, items - hits))
    return low, 1 - rest


# ----------------------------------------------------------------------------------------------------------- tiers


def test_drives_are_the_default_where_they_are_known():
    ends, basis, _ = bounds_for(DRIVES, ConfidenceSettings())
    assert ends == pytest.approx(by_hand(DRIVES, 140, Fraction(1, 40)), abs=1e-8)
    assert basis.name == "95 % confidence bounds (independent drives)"
    assert basis.condition == "drives are independent and none holds more than 140 items of a column"
    assert not basis.conditional
    assert (basis.tier, basis.weights, basis.chances, basis.drives) == ("independent_drives", "item", 1, 8)
    assert basis.effective_drives == pytest.approx(284**2 / sum(items**2 for _, items in DRIVES))
    assert basis.largest_share == pytest.approx(140 / 284)
    assert basis.ceiling is None
    assert json_values(basis)["largest_drive"] == {
        "declared": False,
        "columns": [{"bin": 0, "true": 1, "items": 140}],
    }


def test_items_are_the_default_where_drives_are_not_known():
    ends, basis, _ = bounds_for(DRIVES, ConfidenceSettings(), sequences=False)
    hits, items = (sum(each) for each in zip(*DRIVES, strict=True))
    assert ends == pytest.approx(
        (beta.ppf(0.025, hits, items - hits + 1), beta.ppf(0.975, hits + 1, items - hits)), abs=1e-8
    )
    assert basis.name == "95 % confidence bounds (if items are independent)"
    assert basis.condition == "items are independent"
    assert basis.conditional
    assert (basis.drives, basis.effective_drives, basis.largest_drive) == (None, None, None)
    assumed, same, _ = bounds_for(DRIVES, ConfidenceSettings(assume_independent_items=True))
    assert assumed == ends
    assert (same.tier, same.drives) == ("independent_items", 8)


def test_a_declared_largest_drive():
    ends, basis, _ = bounds_for(DRIVES, ConfidenceSettings(largest_drive=200))
    assert ends == pytest.approx((0.141000, 0.979854), abs=1e-6)  # section 8 of the specification
    assert basis.condition == "drives are independent and none holds more than 200 items of a column"


def test_alpha_is_divided_among_all_rates_also_those_of_columns_without_items():
    full, empty = [(9, 10), (5, 9), (8, 8)], (0, 0)
    ends, basis, _ = bounds_for([(*each, *empty) for each in full], ConfidenceSettings(), bins=2)
    assert basis.chances == 2
    # The second recall can be anything, so P has no lower bound; its upper bound is that of the first.
    assert ends == (0, pytest.approx(by_hand(full, 10, Fraction(1, 80))[1], abs=1e-8))


def test_a_shift_moves_every_end_outwards():
    low, high = by_hand(DRIVES, 140, Fraction(1, 40))
    ends, basis, certificates = bounds_for(DRIVES, ConfidenceSettings(shift=Fraction(1, 20)))
    assert ends == pytest.approx((low - 0.05, min(high + 0.05, 1)), abs=1e-8)
    assert basis.condition.endswith("of a column, and the rate of each observation shifts by at most 0.05")
    for each in certificates:
        assert each["region"]["evidence"]["shift"] == 50_000_000
        check_certificate(each)
    far, _, _ = bounds_for(DRIVES, ConfidenceSettings(shift=Fraction(1)))
    assert far == (0, 1)


def test_a_correlation_of_at_most_r():
    ends, basis, certificates = bounds_for([(18, 20)] * 50, ConfidenceSettings(icc_at_most=Fraction(1, 19)))
    # n_eff = 1000 / (1 + 19/19) = 500, of which 450 and 50.
    assert ends == pytest.approx((beta.ppf(0.025, 450, 51), beta.ppf(0.975, 451, 50)), abs=1e-8)
    assert basis.name == "95 % confidence bounds (if the ICC is at most 0.05263157895)"
    assert basis.conditional
    for each in certificates:
        assert each["region"]["evidence"]["icc"] == "1/19"
        check_certificate(each)
    independent, _, _ = bounds_for([(18, 20)] * 50, ConfidenceSettings(icc_at_most=Fraction(0)))
    assert independent == bounds_for([(18, 20)] * 50, ConfidenceSettings(assume_independent_items=True))[0]


def test_the_approximate_tier_is_the_interval_of_resampled_drives():
    settings = ConfidenceSettings(bounds="approximate", draws=40_000)
    objective, data = data_for(DRIVES, settings)
    (found,) = confidence([objective], data, settings)
    assert found.bounds.lower[0] == found.interval.lower_range[0, 0]
    assert found.bounds.upper[0] == found.interval.upper_range[0, 1]
    assert found.bounds.certificates == ()
    # Section 8: [.286072, .961478] without drawing; the outer ends of what drawing leaves open lie outside.
    assert 0.275 < found.bounds.lower[0] <= 0.286072
    assert 0.961478 <= found.bounds.upper[0] < 0.965
    assert data.basis.name == "95 % confidence bounds (approximate: Bayesian bootstrap)"
    assert data.basis.conditional
    several = replace(settings, looks=10)
    (wider,) = bounds_of_chain([objective], data_for(DRIVES, several)[1], several, Effort())
    assert wider.lower[0] == pytest.approx(0.1556298, abs=1e-7)  # as before the basis named the looks
    assert wider.upper[0] == pytest.approx(0.9817845, abs=1e-7)


# --------------------------------------------------------------------------------------------------------- weights


def test_by_drive_every_drive_counts_once():
    settings = ConfidenceSettings(weights="drive")
    counts = recall_counts(*DRIVES)
    matrices = ConfusionMatrices(
        "class", (frozenset(), frozenset("a")), np.array([0.0, np.inf]), counts.sum(axis=0), "t"
    )
    sequences = sequences_of(counts)
    weighted = weighted_matrices(matrices, sequences, "drive")
    mean = sum(Fraction(hits, items) for hits, items in DRIVES) / len(DRIVES)
    column = weighted.counts[0, :, 1]
    assert abs(Fraction(int(column[1]), int(column.sum())) - mean) < Fraction(1, 10**9)
    objective = product_of_recalls([0])
    data = data_of_run([[objective]], measured_of(weighted.counts), sequences, settings)
    (found,) = bounds_of_chain([objective], data, settings, PROVEN)
    assert (found.lower[0], found.upper[0]) == pytest.approx((0.267847, 0.954433), abs=1e-6)  # section 8
    assert found.lower[0] < mean < found.upper[0]
    assert data.basis.condition == "drives are independent"
    for each in found.certificates:
        check_certificate(each)
    assert weighted_matrices(matrices, sequences, "item") is matrices


def test_by_track_needs_tracks():
    counts = recall_counts(*DRIVES)
    with pytest.raises(UsageError, match="do not say which items are of one track"):
        drive_items(sequences_of(counts), 1, 2, "track")
    with pytest.raises(UsageError, match="--weights drive needs matrices that say which drive"):
        weighted_matrices(None, None, "drive")


# ---------------------------------------------------------------------- regions, and certificates that are proven


def intervals_for(drives, bins=1, **changes):
    measured, table = drives_of(recall_counts(*drives, bins=bins))
    objective = product_of_recalls(list(range(bins)))
    largest = table.table.sum(axis=2).max(axis=0)
    given = {"tier": "independent_drives", "drives": table, "largest": largest} | changes
    return objective, RateIntervals(measured, events_of(objective.skeleton, measured), Fraction(1, 20), **given)


def check_certificate(certificate):
    return kernel.check(json.loads(json.dumps(certificate)))


def certificates_for(drives, bins=1, **changes):
    objective, intervals = intervals_for(drives, bins, **changes)
    return robust_bounds(objective, region_of(objective.skeleton, intervals), effort=PROVEN).certificates


TWO = [(9, 10, 3, 4), (5, 9, 8, 8), (0, 0, 2, 2), (6, 6, 1, 3)]


@pytest.mark.parametrize("times", [1, 20])
def test_certificates_of_drives_hold_and_survive_their_document(times):
    for certificate in certificates_for(TWO * times, bins=2):
        check_certificate(certificate)
        assert [np.shape(column["counts"]) for column in certificate["region"]["columns"]] == [
            (len(TWO) * times, 2)
        ] * 2


def forged(certificate, **changes):
    region = certificate["region"]
    return {**certificate, "region": {**region, "evidence": {**region["evidence"], **changes}}}


def with_columns(certificate, change):
    """With other entries in every column, from those that it has."""
    columns = [{**column, **change(column)} for column in certificate["region"]["columns"]]
    return {**certificate, "region": {**certificate["region"], "columns": columns}}


def refused(certificate, message="do not follow from its counts"):
    with pytest.raises(kernel.Rejected, match=message):
        check_certificate(certificate)


def test_forged_tables_are_refused():
    low, _ = certificates_for(TWO * 10, bins=2)
    refused(with_columns(low, lambda column: {"counts": [[1, column["counts"][0][1] - 3], *column["counts"][1:]]}))
    refused(with_columns(low, lambda column: {"counts": column["counts"][:1]}))
    refused(with_columns(low, lambda column: {"largest": column["largest"] - 1}), "holds more than the largest")

    def merged(column):
        """Moved between drives the sums stay what they are: then the ends no longer follow."""
        *rest, last = column["counts"]
        return {"counts": [list(map(sum, zip(*rest, strict=True))), last], "largest": column["largest"] * 100}

    refused(with_columns(low, merged))
    refused(with_columns(low, lambda column: {"largest": column["largest"] * 2}))
    refused(forged(low, events=1), "alpha is divided among 1 events")


@pytest.mark.parametrize(
    ("end", "group", "more"), [("lower", 0, 4), ("upper", 0, -4), ("lower", 1, 4), ("upper", 1, -4)]
)
def test_forged_ends_are_refused(end, group, more):
    def narrower(column):
        return {end: [value + (k == group) * more for k, value in enumerate(column[end])]}

    for certificate in certificates_for(TWO * 10, bins=2):
        refused(with_columns(certificate, narrower))


@pytest.mark.parametrize("icc", [Fraction(0), Fraction(1, 7)])
def test_certificates_under_a_correlation_hold_and_forged_ones_do_not(icc):
    for certificate in certificates_for(TWO * 10, bins=2, tier="icc_at_most", largest=None, icc=icc):
        check_certificate(certificate)
        if icc:
            refused(forged(certificate, icc="2/7"))
        refused(forged(certificate, alpha="1/21"))


def test_a_shift_is_part_of_the_proof():
    for certificate in certificates_for(TWO * 10, bins=2, shift=10**7):
        check_certificate(certificate)
        check_certificate(forged(certificate, shift=0))  # wider than it needs to be
        refused(forged(certificate, shift=2 * 10**7))


def test_three_reports_have_an_interval_each_and_the_pooled_column_lies_within():
    rng = np.random.default_rng(2)
    counts = np.zeros((12, 2, 4, 4), dtype=np.int64)
    counts[:, :, :, 1] = rng.integers(0, 9, (12, 2, 4))
    channel = channel_of(((), ("a",), ("b",), ("c",)), [[0], [1]], [[1], [1]], told(3))
    following = [[3, 1, 1], [3, 2, 2], [2] * 3, [3] * 3]
    asked = objective_of(channel, following, [0, 1, 0, 0], {"g": {2}}, "F g", ended=(2, 3)).skeleton
    measured = measured_of(counts.sum(axis=0))
    events = events_of(asked, measured)
    assert len(events) == 6
    _, table = drives_of(counts)
    largest = counts.sum(axis=2).max(axis=0)
    intervals = RateIntervals(measured, events, Fraction(1, 20), "independent_drives", table, largest)
    region = region_of(asked, intervals)
    exact = np.zeros((2, 4, 4), dtype=object)
    for at in range(2):
        total = int(measured.counts[at, :, 1].sum())
        exact[at, :, 1] = [Fraction(int(n), total) for n in measured.counts[at, :, 1]]
    assert contains(region, exact)
    for at in range(2):
        for number, members in enumerate(([0, 3], [1], [2])):
            held = [(int(own[at, members, 1].sum()), int(own[at, :, 1].sum())) for own in counts]
            low, high = by_hand(held, int(largest[at, 1]), Fraction(1, 240))
            assert region.lower[at, number, 1] == pytest.approx(low * UNIT, abs=2)
            assert region.upper[at, number, 1] == pytest.approx(high * UNIT, abs=2)


def waiting(*drives, **settings):
    """Interval and approximate bounds of P that `a` is reported at last; the state stays until then."""
    channel = channel_of((("ped",), ()), [[0]], [[0]], (frozenset(), frozenset({"ped"})))
    objective = objective_of(channel, [[0, 1], [1, 1]], [0, 0], {"good": {1}}, "F good", ended=(1,))
    counts = recall_counts(*drives)[:, :, ::-1, ::-1]  # label 0 is the class
    asked = ConfidenceSettings(bounds="approximate", draws=400, **settings)
    data = data_of_run([[objective]], measured_of(counts.sum(axis=0)), sequences_of(counts), asked)
    (found,) = confidence([objective], data, asked)
    ends = float(found.interval.lower[0]), float(found.interval.upper[0])
    return ends, (float(found.bounds.lower[0]), float(found.bounds.upper[0]))


def test_drives_that_show_no_report_leave_open_whether_one_ever_comes():
    # A rate of 0 is possible, then P = 0; with any other rate P = 1.
    assert waiting(*[(0, 20)] * 20) == ((0.0, 1.0), (0.0, 1.0))
    assert waiting((0, 0), (0, 0)) == ((0.0, 1.0), (0.0, 1.0))
    # One report was seen, so the rate is above 0, however small.
    assert waiting((1, 20), *[(0, 20)] * 19) == ((1.0, 1.0), (1.0, 1.0))


# ---------------------------------------------------------------------------------------------------------- real data


def test_pedestrians_of_kitti_within_10_m(shared):
    folder = shared / "data/kitti_tracking"
    reading = Reading(class_map=class_map({"Pedestrian": "ped", "DontCare": "dont_care", "*": "ignore"}))
    detections = read_detections("kitti_tracking", folder / "label_02", folder / "det_pointrcnn", reading)
    rule = CountingRule("class", ("ped",), Bins((0.0, 10.0, math.inf)), "ground_plane", thresholds=(2.0,))
    counts, _ = count_job(detections, MatchingPolicy("centre_bev", 2.0), rule)
    member = counts.member(2.0)
    sequences, matrices = member.by_sequence(), member.matrices()
    assert matrices.labels == (frozenset({"ped"}), frozenset())
    channel = channel_of((("ped",), ()), [[0], [1]], [[0], [0]], (frozenset(), frozenset({"ped"})))
    objective = objective_of(channel, [[2, 1], [1, 1], [2, 2]], [0, 0, 0], {"good": {1}}, "F good", ended=(1, 2))
    found = {}
    for weights in ("item", "track", "drive"):
        settings = ConfidenceSettings(weights=weights)
        weighted = measured(weighted_matrices(matrices, sequences, weights))
        data = data_of_run([[objective]], weighted, sequences, settings)
        (bounds,) = bounds_of_chain([objective], data, settings, PROVEN)
        (point,) = objective.probabilities(weighted.rates[None]).probability[0]
        found[weights] = float(bounds.lower[0]), float(point), float(bounds.upper[0])
        for certificate in bounds.certificates:
            check_certificate(certificate)
    assert found["item"] == pytest.approx((0.131, 718 / 860, 0.969), abs=5e-4)
    held = drive_items(sequences, 2, 2).table[:, 0, :, 0]
    some = held.sum(axis=1) > 0
    assert found["drive"][1] == pytest.approx((held[some, 0] / held[some].sum(axis=1)).mean(), abs=1e-8)
    for low, point, high in found.values():
        assert low < point < high


# ---------------------------------------------------------------------------------------------- what a reader is told


def test_rates_that_depend_on_what_is_counted_are_told():
    # By item 90 of 110, by drive (90/100 + 0/10) / 2.
    counts = recall_counts((90, 100), (0, 10))
    (found,) = rate_differences(sequences_of(counts), 1, 2, {Event(0, 1, (1,))})
    assert found.rates == {"item": pytest.approx(90 / 110), "drive": pytest.approx(0.45)}
    matrices = ConfusionMatrices(
        "class", (frozenset(), frozenset({"ped"})), np.array([0.0, np.inf]), counts.sum(axis=0), "t"
    )
    assert difference_remark([found], matrices) == (
        "rates differ with what is counted (--weights): ped reported as ped in [0, inf) m: 0.818 by item, "
        "0.450 by drive"
    )
    assert rate_differences(sequences_of(recall_counts((9, 10), (18, 20))), 1, 2, {Event(0, 1, (1,))}) == ()
    assert difference_remark((), matrices) is None


def test_by_track_by_hand():
    # Drive 0: a track seen in 1 of 3 frames, another in 2 of 2. Drive 1: one seen in 1 of 2. A false positive in
    # drive 1 has no track and counts by item, as the frame without one. Drive 2: half a track, and frames of none.
    counts = np.zeros((3, 1, 2, 2), dtype=np.int64)
    counts[:, 0, :, 1] = [[2, 3], [1, 1], [1, 3]]
    counts[1, 0, :, 0] = [1, 1]
    tracks = Tracks(
        np.array([[0, 0, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [1, 0, 1, 1], [2, 0, 0, 1]]),
        np.array([[2 / 3], [4 / 3], [0.5], [0.5], [0.5]]),
        np.array([[0, 0, 1], [1, 0, 1], [2, 0, 1]]),
        np.array([2, 1, 1]),
    )
    found = drive_items(replace(sequences_of(counts), tracks=tracks), 1, 2, "track")
    assert found.table[:, 0, :, 1].tolist() == [[666_666_667, 1_333_333_333], [500_000_000, 500_000_000], [UNIT, 0]]
    assert found.table[:, 0, :, 0].tolist() == [[0, 0], [UNIT, UNIT], [0, 0]]
    assert found.sizes(np.array([[0, 1]])).ravel().tolist() == [2 * UNIT, UNIT, UNIT]
    assert (found.unit, found.weights) == (UNIT, "track")


def test_by_drive_a_drive_with_one_item_counts_like_any_other():
    found = drive_items(sequences_of(recall_counts((1, 1), (1, 4), (0, 0))), 1, 2, "drive")
    assert found.table[:, 0, :, 1].tolist() == [[0, UNIT], [750_000_000, 250_000_000], [0, 0]]


@given(st.integers(0, 10**6))
def test_what_is_divided_adds_up_and_is_in_proportion(seed):
    rng = np.random.default_rng(seed)
    shares = rng.integers(0, 6, (4, 2, 3, 3))
    wholes = np.where(shares.sum(axis=2) > 0, rng.integers(1, 5, (4, 2, 3)), 0)
    found = divided(shares, wholes)
    assert np.array_equal(found.sum(axis=2), wholes * UNIT)
    for place in np.argwhere(wholes).tolist():
        drive, at, true = place
        column = shares[drive, at, :, true].tolist()
        exact = [Fraction(share, sum(column)) * int(wholes[drive, at, true]) * UNIT for share in column]
        raised = [mine - math.floor(own) for mine, own in zip(found[drive, at, :, true].tolist(), exact, strict=True)]
        assert set(raised) <= {0, 1}
        remainder = [float(own % 1) for own in exact]
        more, less = ([at for at, one in zip(remainder, raised, strict=True) if one == up] for up in (1, 0))
        assert min(more, default=1) > max(less, default=0) - 1e-6  # of doubles
