"""Sparse counts and sums of parts: against plain dictionaries, at their edges."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from counting_scenes import TWO_METRES
from plain_counter import Object, Report, detection_set
from shorthands import count_detections

from verifier.base.errors import InputError
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.context_counts import Memory
from verifier.perception.confusion.context_selection import Begun
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.streaming import (
    VERSION,
    PartCount,
    Progress,
    StreamFiles,
    _checkpoint_text,
    _part,
    _resumed,
    added_origin,
    added_parts,
    finish,
)
from verifier.perception.confusion.tally import Items, Tally, counted
from verifier.perception.detections.stream import Chunk


def rows(*cells):
    return np.array(cells, dtype=np.int64).reshape(-1, 4)


@pytest.mark.parametrize(
    ("index", "counts"), [(np.zeros(4), np.zeros((1, 1))), (np.zeros((2, 3)), np.zeros((2, 1))), (rows(), [[1]])]
)
def test_rows_and_counts_that_do_not_fit_are_refused(index, counts):
    with pytest.raises(ValueError, match="index of shape"):
        Tally(np.asarray(index, dtype=np.int64), np.asarray(counts, dtype=np.int64))


def test_cells_without_items_are_left_out():
    # Of four items one is predicted from the second threshold on, one at no threshold, and one stands for none.
    index = rows((0, 0, 0, 0), (0, 1, 0, 0), (0, 2, 0, 0), (0, 0, 0, 0))
    items = Items(index, *np.array([[1, 1, 0, 0], [2, 1, 2, 2], [1, 1, 0, 3]], dtype=np.int64))
    found = counted([items], 2)
    assert (found.index.tolist(), found.counts.tolist()) == ([[0, 0, 0, 0]], [[3, 4]])


RULE = CountingRule("class", ("ped", "obs"), Bins((0.0, 10.0, 20.0)), "ground_plane", outside="drop")


def drive(name, frames):
    """The counts of a drive with one pedestrian on a track, reported in the first frame."""
    objects = [Object(frame, "ped", 5, track=1) for frame in range(frames)]
    return count_detections(detection_set([name] * frames, objects, [Report(0, "ped", 5)]), TWO_METRES, RULE)


def test_parts_that_hold_whole_drives_are_added_with_their_tracks():
    one, other = (Progress(None, drive(name, frames), {"regions": frames}, frames)
                  for name, frames in (("A", 2), ("B", 3)))  # fmt: skip
    progress = added_parts(PartCount(one), PartCount(other)).progress
    assert (progress.parts, progress.origin, progress.counted.contexts) == (5, {"regions": 5}, None)
    assert progress.counted.sequences == ("A", "B")
    assert progress.counted.tracks.track_counts.tolist() == [1, 1]


def test_a_checkpoint_is_read_as_it_was_written(tmp_path):
    files, memory = StreamFiles(tmp_path / "checkpoint.json", job={"name": "ä"}), Memory(Contexts("run", 2))
    count = drive("A", 3)
    count = replace(count, tracks=None, localised=np.arange(6).reshape(3, 2), contexts=count.tally)
    before = Progress("A/2", count, {"format": "arrays"}, 7)
    text = _checkpoint_text(before, files)
    assert f'"version": {VERSION}' in text
    assert VERSION == 3
    files.checkpoint.write_text(text)
    after = _resumed(files, RULE, memory)
    assert (after.after, after.parts, after.origin, after.begun) == ("A/2", 7, before.origin, before.begun)
    assert np.array_equal(after.counted.localised, count.localised)
    for found in (after.counted.tally, after.counted.contexts):
        assert np.array_equal(found.index, count.tally.index)
        assert np.array_equal(found.counts, count.tally.counts)
    files.checkpoint.write_text(text.replace('"counts": "', '"counts": "*'))
    with pytest.raises(InputError, match="the checkpoint is damaged"):
        _resumed(files, RULE, memory)
    finish(files)
    finish(files)  # as after a run that had no frames to write one for
    assert not Path(files.checkpoint).exists()


def test_no_context_goes_on_from_a_part_whose_last_frame_is_left_out():
    data = detection_set(["A", "B"], [], [])
    for frame, last in ((data.frame_name[1], 1), ("of no drive that is asked for", -1)):
        part = _part(Chunk(data, frame, 0, 0, np.zeros(2, dtype=np.int64)), data, Begun())
        assert (part.last, part.names) == (last, ("A", "B"))


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ({"classes_left_out": {"annotations": {"van": 1, "bus": 2}}},
         {"classes_left_out": {"annotations": {"van": 4, "cab": 8}}},
         {"classes_left_out": {"annotations": {"van": 5, "bus": 2, "cab": 8}}}),
        ({"regions": 3}, {"regions": None}, {"regions": 3}),
        ({"regions": None}, {"regions": 3}, {"regions": 3}),
        ({"regions": None}, {"regions": None}, {"regions": None}),
        ({"sources": [1, 2]}, {"sources": [3, 4]}, {"sources": [3, 4]}),
        ({"filters": []}, {"filters": [{"annotations": 1}]}, {"filters": [{"annotations": 1}]}),
        ({}, {"filters": [{"annotations": 1}]}, {"filters": [{"annotations": 1}]}),
        ({"filters": [{"annotations": 1, "unknown": 2}]}, {"filters": [{"annotations": 4, "maps": 8}]},
         {"filters": [{"annotations": 5, "unknown": 2, "maps": 8}]}),
        ({"distances": {"unknown": 1, "focal_lengths": {"700": 2}}}, {"distances": {"unknown": 4, "focal_lengths":
         {"700": 8, "500": 16}}}, {"distances": {"unknown": 5, "focal_lengths": {"700": 10, "500": 16}}}),
        ({"distances": {"unknown": 1}}, {}, {"distances": {"unknown": 1}}),
        ({}, {"distances": {"unknown": 1}}, {"distances": {"unknown": 1}}),
        ({"projected": {"name": "c"}}, {}, {"projected": {"name": "c"}}),
        ({}, {"projected": {"name": "c"}}, {"projected": {"name": "c"}}),
    ],
)  # fmt: skip
def test_numbers_of_origins_are_added_and_the_rest_is_kept(before, now, expected):
    assert added_origin(before, now) == expected
