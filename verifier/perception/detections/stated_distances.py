"""Distances from a file of their own, for annotations whose format has none (COCO, MOTChallenge)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from verifier.base.errors import InputError, Place, UsageError, shown, unknown_name
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.sources import digest_record
from verifier.perception.detections.tablefiles import frame_keys, read_named

LARGEST_M = 1e5


def with_distances(data: DetectionSet, path: str | Path, key: str) -> DetectionSet:
    """The set with the distance of each annotation taken from a CSV or Parquet file.

    The file has the columns `frame` (the frame's name), the attribute `key` of the annotations (`id` of COCO, `track`
    of MOTChallenge), which with the frame names one annotation, and `distance_m`. Annotations that the file does
    not name keep what they had, or have an unknown distance; how many is recorded in `origin["distances"]`.

    Raises:
        InputError: the file cannot be read, names something that is not there, or one annotation twice.
        UsageError: the annotations have no such attribute.
    """
    boxes = data.annotations
    if key not in boxes.attributes:
        message, hint = unknown_name("attribute of the annotations", key, boxes.attributes)
        raise UsageError(f"{message}\n  hint: {hint}")
    named, raw = read_named(path, {}, ("frame", key, "distance_m"))
    codes, keys = frame_keys(named)
    index = {name: number for number, name in enumerate(data.frame_name)}
    names = [f"{sequence}/{frame}" if sequence else frame for sequence, frame in keys]
    frames = np.array([index.get(name, -1) for name in names], dtype=np.int64)
    frame = frames[codes] if len(frames) else codes
    objects = named.numbers(key)[0]
    distance = named.numbers("distance_m")[0]

    def fail(bad: np.ndarray, text: str) -> None:
        if bad.any():
            row = int(bad.argmax())
            what = f"{key} {objects[row]:g} in frame {shown(names[int(codes[row])])}"
            raise InputError(text.format(what, distance[row]), Place(str(path), int(named.line[row])))

    fail(~((distance >= 0) & (distance <= LARGEST_M)), "{}: expected a distance in metres, got {:g}")
    ids, inverse = np.unique(np.concatenate([boxes.attributes[key], objects]), return_inverse=True)
    place = np.concatenate([boxes.frame, frame]) * len(ids) + inverse
    mine, theirs = place[: len(boxes)], place[len(boxes) :]
    order = np.argsort(theirs, kind="stable")
    again = np.zeros(len(theirs), dtype=bool)
    again[order[1:]] = theirs[order[1:]] == theirs[order[:-1]]
    fail(again, "{} occurs twice")
    fail((frame < 0) | ~np.isin(theirs, mine), "no annotation with {}")
    result = np.full(len(boxes), np.nan) if boxes.distance_m is None else boxes.distance_m.copy()
    if len(theirs):
        found = np.minimum(np.searchsorted(theirs[order], mine), len(theirs) - 1)
        hit = theirs[order][found] == mine
        result[hit] = distance[order][found][hit]
    record = {**digest_record("distances", path, raw), "key": key, "unknown": int(np.isnan(result).sum())}
    origin = {**data.origin, "distances": record}
    return data.change(annotations=replace(boxes, distance_m=result), origin=origin)
