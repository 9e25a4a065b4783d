"""Rates by item, track and drive, and where they differ, by hand."""

import math

import numpy as np
import pytest

from verifier.perception.confusion.counts import Sequences
from verifier.perception.confusion.sanity import RateDifference, rate_differences, weighted_rates
from verifier.perception.confusion.tally import Tally
from verifier.perception.confusion.tracks import Tracks

PED, OBS, EMPTY = range(3)


def drives(cells, shares=None):
    """Of drives a and b: (drive, bin, reported, true) -> items, and -> summed shares of tracks."""
    rows = np.array(sorted(cells))
    tally = Tally(rows, np.array([[cells[tuple(row)]] for row in rows.tolist()]))
    tracks = None
    if shares is not None:
        own = np.array(sorted(shares))
        none = np.zeros((0, 3), dtype=np.int64)
        tracks = Tracks(own, np.array([[shares[tuple(row)]] for row in own.tolist()]), none, none[:, 0])
    return Sequences(("a", "b"), np.array([1, 1]), tally, tracks)


CELLS = {
    (0, 0, PED, PED): 8, (1, 0, EMPTY, PED): 2,  # by item .8, by drive .5
    (0, 1, PED, PED): 4, (0, 1, OBS, PED): 4, (1, 1, PED, PED): 2, (1, 1, EMPTY, PED): 2,  # ped by both .5
    (0, 1, OBS, OBS): 3, (1, 1, OBS, OBS): 3,
    (0, 0, EMPTY, EMPTY): 9, (0, 0, PED, EMPTY): 1, (1, 0, EMPTY, EMPTY): 1,  # by item 10/11, by drive .95
}  # fmt: skip
SHARES = {
    (0, 0, PED, PED): 1.0, (1, 0, EMPTY, PED): 2.0,
    (0, 1, PED, PED): 0.31, (1, 1, PED, PED): 0.2, (0, 1, OBS, PED): 0.19, (1, 1, EMPTY, PED): 0.3,
}  # fmt: skip


def test_rates_by_weight():
    found = weighted_rates(drives(CELLS, SHARES), 2, 3)
    assert found.item[:, :, PED] == pytest.approx(np.array([[0.8, 0, 0.2], [1 / 2, 1 / 3, 1 / 6]]))
    assert found.drive[:, :, PED] == pytest.approx(np.array([[0.5, 0, 0.5], [1 / 2, 1 / 4, 1 / 4]]))
    assert found.track[:, :, PED] == pytest.approx(np.array([[1 / 3, 0, 2 / 3], [0.51, 0.19, 0.3]]))
    assert found.drive[0, :, EMPTY] == pytest.approx(np.array([0.05, 0, 0.95]))
    assert found.item[1, :, OBS].tolist() == found.drive[1, :, OBS].tolist() == [0, 1, 0]
    for unknown in (found.item[0, :, OBS], found.drive[1, :, EMPTY], found.track[:, :, 1:]):
        assert np.isnan(unknown).all()
    assert np.isnan(weighted_rates(drives(CELLS), 2, 3).track).all()


def test_the_most_differing_rates_come_first():
    found = rate_differences(drives(CELLS, SHARES), 2, 3)
    expected = [
        RateDifference(0, PED, PED, 0.8, 1 / 3, 0.5),
        RateDifference(1, OBS, PED, 1 / 3, 0.19, 0.25),  # of a ped reported as such the rates differ by .01 only
        RateDifference(0, EMPTY, EMPTY, 10 / 11, None, 0.95),
    ]
    assert [(each.bin, each.predicted, each.true) for each in found] == [
        (each.bin, each.predicted, each.true) for each in expected
    ]
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine.item, mine.drive) == pytest.approx((theirs.item, theirs.drive))
        assert mine.track == (None if theirs.track is None else pytest.approx(theirs.track))
    without = rate_differences(drives(CELLS), 2, 3)
    assert [(each.bin, each.true, each.track) for each in without] == [(0, 0, None), (1, 0, None), (0, 2, None)]
    assert rate_differences(drives(CELLS), 2, 3, math.inf) == []


def test_rates_that_differ_by_as_much_as_is_asked_do_not_differ_by_more():
    """By item 3/4 and 1/4, by drive 1/2 and 1/2; by track half are ped, half are missed."""
    cells = {(0, 0, PED, PED): 3, (1, 0, OBS, PED): 1}
    assert rate_differences(drives(cells), 1, 3, 0.25) == []
    assert rate_differences(drives(cells), 1, 3, 0.2) == [RateDifference(0, PED, PED, 0.75, None, 0.5)]
    shares = {(0, 0, PED, PED): 1.0, (1, 0, EMPTY, PED): 1.0}
    assert rate_differences(drives(cells, shares), 1, 3, 0.25) == [RateDifference(0, OBS, PED, 0.25, 0.0, 0.5)]
