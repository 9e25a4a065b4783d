"""Detections drawn from confusion counts: where rates leave no choice, by their frequencies, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import pytest
from small_logs import HAND, made_logs, straight

from verifier.base.errors import InputError, UsageError
from verifier.closedloop.fieldsafe import Drawing, drawn_detections
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.counts import ConfusionCounts

PED, CAR, NOTHING = frozenset({"ped"}), frozenset({"car"}), frozenset()
NEAR_FAR = Bins((0.0, 10.0, 20.0))


def matrix(ped, empty):
    """Columns ped, car, empty: `ped` of 12 pedestrians are reported as such, 2 as cars; `empty` of 4 empty bins."""
    other = min(2, 12 - ped)
    return [[ped, 0, empty], [other, 5, 0], [12 - ped - other, 0, 4 - empty]]


def counts_of(*members, thresholds=None, bins=NEAR_FAR, labelling="class", **metadata):
    """One member per threshold, each a matrix per bin."""
    counts = np.array(members, dtype=np.int64)
    return ConfusionCounts(labelling, (PED, CAR, NOTHING), bins, thresholds, counts, metadata=metadata)


SURE = counts_of([matrix(12, 0), matrix(0, 4)])  # all near, none far; a false positive in every empty far bin


def draw(logs, counts, seed=1, **drawing):
    found = drawn_detections(logs, counts, "ped", np.random.default_rng(seed), "drawn", Drawing(**drawing))
    return found, found.source("drawn")


# People 5 m ahead, 15 m ahead, and 25 m, beyond the bins; the vehicle looks along x and stands at the origin.
CROWD = made_logs({"log": (True, [(0, 0)] * 3)}, [(0, 5, 0), (1, 15, 0), (2, 25, 0)], {}, headings=[0, 0, 0])


def test_rates_that_leave_no_choice():
    logs, found = draw(CROWD, SURE)
    # The person 5 m away is reported where it stands; the one 15 m away is not, and fills its bin, so that no false
    # alarm can lie there; the other two images have one each.
    assert found.image.tolist() == [0, 0, 2]
    assert found.point_m[0].tolist() == [5, 0]
    assert found.strength.tolist() == [1, 1, 1]
    alarms = found.point_m[1:]
    assert ((np.hypot(*alarms.T) >= 10) & (np.hypot(*alarms.T) < 20)).all()
    assert (np.abs(np.arctan2(alarms[:, 1], alarms[:, 0])) <= math.pi / 4).all()
    assert logs.person_m is not None
    assert logs.remarks[0].startswith("the detections of source 'drawn' are no detector's: they are drawn at random")
    assert "false positive lies is made up" in logs.remarks[1]


def test_the_highest_threshold_that_is_still_reached():
    # Near: all at 0.2 and 0.5, none at 0.8. Far: none. False positives only at 0.2, and only far.
    family = counts_of(
        [matrix(12, 0), matrix(0, 4)],
        [matrix(12, 0), matrix(0, 0)],
        [matrix(0, 0), matrix(0, 0)],
        thresholds=(0.2, 0.5, 0.8),
    )
    _, found = draw(CROWD, family)
    assert found.strength.tolist() == [0.5, 0.2, 0.2]


def test_frequencies():
    """A hundred thousand people at 5 m: every threshold has its rate, within four standard deviations."""
    n = 100_000
    image = np.repeat(np.arange(100), n // 100)
    logs = made_logs({"log": (True, [(0, 0)] * 100)}, np.column_stack([image, np.full(n, 3), np.full(n, 4)]))
    family = counts_of(
        [matrix(9, 0), matrix(0, 0)], [matrix(6, 0), matrix(0, 0)], [matrix(1, 0), matrix(0, 0)], thresholds=(1, 2, 3)
    )
    found = draw(logs, family)[1].strength
    for threshold, rate in ((1, 9 / 12), (2, 6 / 12), (3, 1 / 12)):
        assert abs(np.count_nonzero(found >= threshold) - n * rate) < 4 * math.sqrt(n * rate * (1 - rate))


def test_frequencies_of_false_positives():
    """One near and one far bin in each of 20 000 images: 1/4 and 1/2 of them, evenly by distance and bearing."""
    n = 20_000
    logs = made_logs({"log": (False, [(0, 0)] * n)}, headings=[math.pi / 2] * n)
    _, found = draw(logs, counts_of([matrix(12, 1), matrix(12, 2)]), half_angle_rad=0.5)
    away = np.hypot(*found.point_m.T)
    bearing = np.arctan2(found.point_m[:, 1], found.point_m[:, 0]) - math.pi / 2
    for near, rate in ((away < 10, 1 / 4), (away >= 10, 1 / 2)):
        assert abs(np.count_nonzero(near) - n * rate) < 4 * math.sqrt(n * rate * (1 - rate))
    assert np.bincount(found.image[away < 10]).max() == 1
    for value, low, high in ((away[away < 10], 0, 10), (away[away >= 10], 10, 20), (bearing, -0.5, 0.5)):
        assert low <= value.min() <= value.max() <= high
        quarters = np.histogram(value, 4, (low, high))[0]
        assert np.abs(quarters - len(value) / 4).max() < 4 * math.sqrt(len(value) * 3 / 16)


def test_position_error():
    n = 20_000
    logs = made_logs(
        {"log": (True, [(0, 0)])}, np.column_stack([np.zeros(n), np.full(n, 5), np.zeros(n)]), headings=[0]
    )
    _, found = draw(logs, SURE, position_error_m=0.5)
    error = found.point_m[found.image == 0][:n] - (5, 0)
    assert np.abs(error.std(axis=0) - 0.5).max() < 4 * 0.5 / math.sqrt(2 * n)
    assert np.abs(error.mean(axis=0)).max() < 4 * 0.5 / math.sqrt(n)


def test_the_same_state_gives_the_same_detections():
    logs = made_logs({"log": (True, straight(50))}, [(k, k + 5, 0) for k in range(50)], {}, headings=[0] * 50)
    counts = counts_of([matrix(6, 2), matrix(6, 2)])
    one, again, other = (draw(logs, counts, seed)[1] for seed in (3, 3, 4))
    assert np.array_equal(one.point_m, again.point_m)
    assert np.array_equal(one.image, again.image)
    assert not np.array_equal(one.image, other.image)


def test_beside_other_sources():
    logs, _ = draw(replace(HAND, heading_rad=np.zeros(10)), SURE)
    assert list(logs.detections) == ["a", "drawn"]
    assert len(logs.source("a")) == 8


def test_an_unknown_place_is_not_reported():
    logs = made_logs({"log": (True, [(0, 0)])}, [(0, math.nan, math.nan)], {}, headings=[0])
    _, found = draw(logs, counts_of([matrix(12, 0), matrix(12, 0)]))
    assert len(found) == 0


def test_a_last_bin_without_end_has_no_false_positives():
    bins = Bins((0.0, 10.0, math.inf))
    logs, found = draw(CROWD, counts_of([matrix(12, 0), matrix(12, 4)], bins=bins))
    assert found.image.tolist() == [0, 1, 2]  # the people; 25 m lies in the last bin
    assert any("has no false positives beyond 10 m" in each for each in logs.remarks)


def test_remarks():
    silent = counts_of([matrix(12, 0), matrix(12, 0)], distance={"measure": "euclidean_3d"})
    logs, _ = draw(CROWD, replace(silent, title="PointRCNN"), empty_columns="neighbour")
    assert "confusion counts by distance (PointRCNN)" in logs.remarks[0]
    assert logs.remarks[1:] == (
        "source 'drawn': the counts are by euclidean_3d distance, people by distance on the ground",
        "source 'drawn' has no false positives: the counts hold none",
        "source 'drawn': bins without items follow policy 'neighbour'",
    )


def test_bins_without_items():
    empty = [[0, 0, 0], [0, 5, 0], [0, 0, 4]]
    counts = counts_of([matrix(12, 0), empty])
    with pytest.raises(InputError, match=r"\[10, 20\) m: the confusion file has no item of the class, but a person"):
        draw(CROWD, counts)
    _, found = draw(CROWD, counts, empty_columns="neighbour")
    assert found.image.tolist() == [0, 1]  # reported there as often as near: always
    # Nobody stands there: not needed.
    near = made_logs({"log": (True, [(0, 0)])}, [(0, 5, 0)], {}, headings=[0])
    assert draw(near, counts)[1].image.tolist() == [0]
    nothing_free = counts_of([matrix(12, 0), [[12, 0, 0], [0, 5, 0], [0, 0, 0]]])
    with pytest.raises(InputError, match=r"\[10, 20\) m: the confusion file has no item without an object"):
        draw(near, nothing_free)


def test_what_cannot_be_drawn_from():
    with pytest.raises(UsageError, match="this one is proposition-labelled"):
        draw(CROWD, counts_of([matrix(12, 0), matrix(0, 4)], labelling="proposition"))
    with pytest.raises(UsageError, match=r"unknown class of the confusion file 'pde'[\s\S]*did you mean 'ped'"):
        drawn_detections(CROWD, SURE, "pde", np.random.default_rng(1))
    rising = counts_of([matrix(6, 0), matrix(6, 0)], [matrix(7, 0), matrix(6, 0)], thresholds=(0.2, 0.5))
    with pytest.raises(InputError, match=r"class 'ped', \[0, 10\) m: the rate at which it is reported rises"):
        draw(CROWD, rising)
    with pytest.raises(UsageError, match="the logs need headings"):
        draw(replace(CROWD, heading_rad=None), SURE)
    with pytest.raises(UsageError, match="unknown policy"):
        draw(CROWD, SURE, empty_columns="guess")
    with pytest.raises(ValueError, match="a source 'drawn' already"):
        draw(draw(CROWD, SURE)[0], SURE)
