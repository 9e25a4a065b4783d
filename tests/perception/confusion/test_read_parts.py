"""Data in parts: where parts end, and what each has of frames, boxes, files and origin, by hand."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from plain_counter import Object, Report, detection_set

from verifier.perception.confusion import read_parts
from verifier.perception.confusion.read_parts import Frames, _parts
from verifier.perception.detections.columns import NO_SEQUENCE

SOURCES = [{"name": "truth.txt", "sha256": "0"}]


def frames_of(names, tracks=()):
    objects = [Object(0, "ped", 5, track=track) for track in tracks]
    return Frames.of_data(detection_set(names, objects, []).change(origin={"sources": SOURCES}), "truth.txt")


@pytest.mark.parametrize(
    ("names", "tracks", "most", "ends"),
    [
        ("AABC", (), 1000, (2, 3, 4)),
        ("ABA", (), 1000, (2, 3)),
        ("AABC", (), 3, (2, 4)),  # at least two frames
        ("ABCDEFG", (), 3, (3, 6, 7)),
        ("AAAAA", (), 3, (5,)),
        ("", (), 1000, (0,)),
        ([NO_SEQUENCE] * 5, (), 1000, (2, 4, 5)),  # images, two at a time
        ([NO_SEQUENCE] * 4, (), 1000, (2, 4)),
        ([NO_SEQUENCE] * 5, (3,), 1000, (5,)),  # images with tracks are a sequence
        ([NO_SEQUENCE, "A", NO_SEQUENCE, "A"], (), 1000, (2, 4)),
    ],
)
def test_where_parts_end(monkeypatch, names, tracks, most, ends):
    monkeypatch.setattr(read_parts, "MOST_PARTS", most)
    monkeypatch.setattr(read_parts, "IMAGES", 2)
    frames = frames_of(list(names), tracks)
    assert frames.ends == ends
    assert [part.rows for part in frames.parts(1)] == [((low, high),) for low, high in pairwise((0, *ends))]
    assert (frames.records(), list(frames.paths_of([], True))) == (SOURCES, [])


def scene():
    data = detection_set(
        ["B", "A", "B", "A", "C"],
        [Object(0, "ped", 5), Object(3, "ped", 6), Object(4, "obs", 7), Object(2, "obs", 8)],
        [Report(1, "ped", 9), Report(2, "ped", 10)],
    )
    origin = {"annotations": {"read": 10, "kept": 4}, "projected": 3, "format": "table", "filters": {"range": 1}}
    return data.change(origin=origin)


def told(part):
    return (part.sequences, part.frame_sequence.tolist(), part.frame_name, part.annotations.frame.tolist(),
            part.annotations.distance_m, part.annotations.line.tolist(), part.detections.frame.tolist(),
            part.files, part.annotations.file.tolist(), part.detections.file.tolist())  # fmt: skip


def test_parts_of_whole_sequences():
    part = _parts(scene(), (2, 4, 5))
    assert told(part(2)) == (("C",), [0], ("C/000004",), [0], None, [3], [], ("truth.txt",), [0], [])
    assert told(part(0)) == (
        ("B",), [0, 0], ("B/000000", "B/000002"), [0, 1], None, [1, 4], [1], ("truth.txt", "found.txt"), [0, 0], [1]
    )  # fmt: skip
    assert told(part(1)) == (
        ("A",), [0, 0], ("A/000001", "A/000003"), [1], None, [2], [0], ("truth.txt", "found.txt"), [0], [1]
    )  # fmt: skip
    # Of ten read six were left out before: the first part tells them with its own two.
    assert part(0).origin == {**scene().origin, "annotations": {"read": 8, "kept": 4}}
    assert part(1).origin == {"format": "table", "annotations": {"read": 1}}
    assert part(0).ignored is None
    both = _parts(scene(), (4, 5))
    assert told(both(0))[:4] == (
        ("B", "A"),
        [0, 1, 0, 1],
        ("B/000000", "A/000001", "B/000002", "A/000003"),
        [0, 3, 2],
    )


def test_parts_of_images_and_regions():
    images = detection_set([NO_SEQUENCE] * 3, [Object(2, "ped", 5)], []).change(origin={"annotations": {"read": 1}})
    images = images.change(ignored=replace(images.annotations, frame=np.array([1])))
    part = _parts(images, (2, 3))
    assert [part(number).sequences for number in (0, 1)] == [(NO_SEQUENCE,)] * 2
    assert [part(number).frame_name for number in (0, 1)] == [images.frame_name[:2], images.frame_name[2:]]
    assert [part(number).annotations.frame.tolist() for number in (0, 1)] == [[], [0]]
    assert [part(number).ignored.frame.tolist() for number in (0, 1)] == [[1], []]
