"""A tracker replayed on records and tracks written by hand, with the numbers that follow."""

import csv
from itertools import product

import numpy as np
import pytest

from verifier.base.errors import InputError, UsageError
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.record import NEEDED
from verifier.perception.confusion.replay import (
    Tracked,
    Tracker,
    passages,
    replay_record,
    replayed,
    right_rates,
    tracked_of,
    unconfirmed,
)
from verifier.perception.settings import ReplaySettings

NONE = Contexts.parsed("none")


def asked(tmp_path, frames, objects, **change):
    """Of a record of frames (sequence, name) and of objects (sequence, frame, track, distance, true, predicted)."""
    rows = [{"kind": "frame", "sequence": sequence, "frame": name} for sequence, name in frames]
    names = ("sequence", "frame", "track", "distance_m", "true", "predicted")
    rows += [{"kind": "object", **dict(zip(names, given, strict=True))} for given in objects]
    with (tmp_path / "r.csv").open("w") as stream:
        blank = {name: -1 if kind == "whole" else "" for name, kind in NEEDED.items()} | {"track": ""}
        writer = csv.DictWriter(stream, list(blank))
        writer.writeheader()
        writer.writerows(blank | row for row in rows)
    choices = {"true_class": "ped", "range": "10..20", "frames": 1, "bins": "0,10,20,30"}
    return ReplaySettings(record=str(tmp_path / "r.csv"), **choices | change)


def tracked(*rows):
    """Rows of drive, track, frame, bin and right."""
    return Tracked(*np.array(rows, dtype=np.int64).reshape(-1, 5).T)


@pytest.mark.parametrize(("needed", "window"), [(1, 1), (2, 3), (4, 4)])
def test_confirmed_by_hand(needed, window):
    reports = np.array(list(product((False, True), repeat=5)))
    found = Tracker(needed, window).confirmed(reports)
    seen = [[any(sum(row[max(k - window, 0) : k]) >= needed for k in range(1, end + 1)) for end in range(1, 6)]
            for row in reports.tolist()]  # fmt: skip
    assert found.tolist() == seen


def test_trackers_that_can_be_parsed():
    assert [str(Tracker.parsed(text)) for text in ("1/1", "1/12", "12/12")] == ["1/1", "1/12", "12/12"]
    for text in ("0/1", "2/1", "1/13", "13/13", "1/1/1", "1"):
        with pytest.raises(UsageError, match="--confirm: expected M/N"):
            Tracker.parsed(text)


def test_tracks_are_those_of_their_sequence_and_frames_those_that_are_listed(tmp_path):
    frames = [(sequence, name) for sequence in "ABC" for name in ("10", "20", "30")]
    objects = [(sequence, name, track, 15, "ped", "ped")
               for sequence in "ABC" for track in ("a", "b") for name in ("10", "30")]  # fmt: skip
    found, inside, drives = tracked_of(asked(tmp_path, frames, objects))
    assert found.track.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert found.frame.tolist() == [0, 2] * 6  # nothing is to be seen in the frame between
    assert (inside, drives) == ([1], ("A", "B", "C"))
    assert found.sequence.tolist() == [0] * 4 + [1] * 4 + [2] * 4


def test_windows_lie_in_the_range(tmp_path):
    frames = [("A", str(k)) for k in range(3)] + [("B", "0")]
    objects = [("A", str(k), "a", 5 + 10 * k, "ped", "ped") for k in range(3)] + [("B", "0", "b", 15, "ped", "empty")]
    for text, bins in (("0..10", [0]), ("10..20", [1]), ("20..30", [2]), ("0..30", [0, 1, 2])):
        assert tracked_of(asked(tmp_path, frames, objects, range=text))[1] == bins
    found = replay_record(asked(tmp_path, frames, objects, memory="none"))
    assert (found.windows, found.not_confirmed) == (2, 1)


@pytest.mark.parametrize("text", ["10", "5..20", "10..25", "10..10", "20..10", "10..", "a..b"])
def test_ranges_that_are_none(text, tmp_path):
    with pytest.raises(UsageError, match="--range: expected LOW"):
        tracked_of(asked(tmp_path, [], [], range=text))


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_levels_lie_between_0_and_1(level, tmp_path):
    with pytest.raises(UsageError, match="--confidence: expected a level between 0 and 1"):
        tracked_of(asked(tmp_path, [], [], confidence=level))


def test_classes_with_tracks_are_told(tmp_path):
    frames, ped = [("A", "0"), ("A", "1")], ("A", "0", "a", 15, "ped", "ped")
    with pytest.raises(InputError) as error:
        tracked_of(asked(tmp_path, frames, [ped, ("A", "0", "", 15, "cyc", "cyc")], true_class="cyc"))
    assert (error.value.message, error.value.hint) == (
        "the record has no tracks of class 'cyc'",
        "classes with tracks: ped",
    )
    for more in (("A", "7", "b", 15, "ped", "ped"), ped):
        with pytest.raises(InputError, match="not listed, or a track has two objects in one frame"):
            tracked_of(asked(tmp_path, frames, [ped, more]))


def test_the_number_of_windows_against_its_law():
    # Three tracks of drive 0, all wrong, are predicted by the 3/4 of drive 1, whose track by 0: the number of windows
    # not confirmed is 1 and one of (3, 1/4). It is 3, so P(at least) = 10/64 and P(at most) = 63/64.
    rows = [(0, track, 0, 0, 0) for track in range(3)] + [(1, 3, frame, 0, frame < 3) for frame in range(4)]
    found = replayed(tracked(*rows), [0], 1, Tracker(1, 1), [NONE], level=0.8)
    assert (found.windows, found.not_confirmed, found.sequences) == (4, 3, 2)
    assert found.predictions[0].expected == pytest.approx(1 + 3 / 4)
    assert found.predictions[0].p_value == pytest.approx(20 / 64)
    # Clopper and Pearson: of 3 in 4 or more, and of 3 in 4 or fewer, the chance is .1 at the ends.
    assert 4 * found.low**3 - 3 * found.low**4 == pytest.approx(0.1)
    assert 1 - found.high**4 == pytest.approx(0.1)


def test_passages_end_with_the_track_and_where_frames_are_missing():
    rows = tracked(*((0, track, frame, 0, 1) for track, frame in ((0, 0), (0, 1), (0, 3), (1, 4), (1, 5))))
    begin, length = passages(rows, [0])
    assert (begin.tolist(), length.tolist()) == ([0, 2, 3], [2, 1, 2])


def test_rates_are_those_of_the_bins_that_there_are():
    rows = tracked((0, 0, 0, 0, 1), (0, 0, 1, 1, 0), (0, 0, 2, 1, 1), (0, 0, 3, -1, 1))
    for chosen, expected in (([True] * 4, [[1], [0.5]]), ([False, True, False, True], [[np.nan], [0]])):
        found = right_rates(rows, np.zeros(4, dtype=np.int64), NONE, np.array(chosen))
        assert np.array_equal(found, expected, equal_nan=True)
    assert right_rates(tracked(), np.zeros(0, dtype=np.int64), NONE, np.zeros(0, dtype=bool)).shape == (0, 1)


def test_a_rate_that_nobody_knows_is_asked_for_only_where_a_window_comes_to_it():
    after, tracker = Contexts.parsed("run:1"), Tracker(1, 1)  # start, right*1, wrong*1
    rates, bins, start = np.array([[[0.5, np.nan, 0.25]], [[0.5, np.nan, 0.5]]]), np.array([[0, 0]]), np.array([0])
    # After a right report the tracker has confirmed: .5 and .75, or .5, of two wrong ones.
    assert unconfirmed(rates, after, tracker, bins, start)[:, :, 0].tolist() == [[0.5, 0.375], [0.5, 0.25]]
    rates[1, 0, 2] = np.nan  # of the second draw alone
    with pytest.raises(UsageError, match="no report in a bin of the range"):
        unconfirmed(rates, after, tracker, bins, start)
    # Where no report is right none of two in a row is, either: the context after one is not asked for.
    assert unconfirmed(np.array([[[0, np.nan, 0]]]), after, Tracker(2, 2), bins, start).tolist() == [[[1], [1]]]


def test_windows_from_different_contexts_are_followed_apart():
    rates, bins = np.random.default_rng(1).uniform(0, 1, (2, 2, 3)), np.array([[0, 1], [0, 1], [1, 0]])
    given = Contexts.parsed("run:1"), Tracker(1, 2)
    found = unconfirmed(rates, *given, bins, np.array([2, 0, 1]))
    for window, context in enumerate((2, 0, 1)):
        alone = unconfirmed(rates, *given, bins[window : window + 1], np.array([context]))
        assert found[:, :, window] == pytest.approx(alone[:, :, 0])
