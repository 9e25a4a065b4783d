"""Made-up detections of the sizes that people work with, for the benchmarks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from verifier.perception.detections.columns import Boxes, DetectionSet

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NUSCENES_CLASSES = (
    *("car", "truck", "bus", "trailer", "construction_vehicle"),
    *("pedestrian", "motorcycle", "bicycle", "traffic_cone", "barrier"),
)
NUSCENES_SHARE = (0.42, 0.07, 0.02, 0.02, 0.01, 0.2, 0.01, 0.01, 0.08, 0.16)
DRIVE_CLASSES = ("car", "ped", "cyclist")
OBJECTS_PER_FRAME = 20
FRAMES_PER_DRIVE = 1000
ROWS_AT_A_TIME = 500_000


def boxes(
    frame: Ints,
    label: Ints,
    score: Floats | None,
    box_2d: Floats | None = None,
    box_3d: Floats | None = None,
    distance_m: Floats | None = None,
) -> Boxes:
    """Boxes without attributes, from a file that does not exist."""
    rows = len(frame)
    file = np.zeros(rows, dtype=np.int32)
    line = np.arange(1, rows + 1)
    return Boxes(frame, label.astype(np.int32), score, box_2d, box_3d, distance_m, {}, line, file)


def one_drive(classes: tuple[str, ...], frames: int, annotations: Boxes, detections: Boxes) -> DetectionSet:
    """One sequence of `frames` frames."""
    names = tuple(f"{i:06d}" for i in range(frames))
    sequence = np.zeros(frames, np.int32)
    return DetectionSet(classes, ("drive",), sequence, names, annotations, detections, None, ("made.up",))


def image_set(frames: int = 5000, per_frame: int = 36, objects: int = 7, classes: int = 80) -> DetectionSet:
    """Images with as many objects as in COCO val; half of the detections lie about an object, in random order."""
    rng = np.random.default_rng(0)

    def random_rectangles(count: int) -> Floats:
        centre = rng.random((count, 2)) * (640, 480)
        half = np.exp(rng.normal(4, 0.8, (count, 2))) / 2
        return np.hstack([centre - half, centre + half])

    truth = random_rectangles(frames * objects)
    truth_label = rng.integers(classes, size=len(truth))
    frame = np.repeat(np.arange(frames), per_frame)
    source = frame * objects + rng.integers(objects, size=len(frame))
    size = np.tile(truth[source, 2:] - truth[source, :2], 2)
    found = truth[source] + size * rng.normal(0, 0.1, size.shape)
    found[:, 2:] = np.maximum(found[:, 2:], found[:, :2] + 1)
    elsewhere = rng.random(len(frame)) < 0.5
    found[elsewhere] = random_rectangles(int(elsewhere.sum()))
    label = np.where(rng.random(len(frame)) < 0.8, truth_label[source], rng.integers(classes, size=len(frame)))
    order = rng.permutation(len(frame))
    truth_frame = np.repeat(np.arange(frames), objects)
    annotations = boxes(truth_frame, truth_label, None, box_2d=truth, distance_m=rng.gamma(4, 10, len(truth)))
    detections = boxes(frame[order], label[order], rng.random(len(frame)), box_2d=found[order])
    return one_drive(tuple(f"class{i}" for i in range(classes)), frames, annotations, detections)


def nuscenes_set(frames: int, per_frame: int = 200, objects: int = 31) -> DetectionSet:
    """Frames with as many objects as in nuScenes val and as many detections as detectors send in."""
    rng = np.random.default_rng(1)
    classes = len(NUSCENES_CLASSES)
    truth = rng.uniform(-50, 50, (frames * objects, 2))
    label = rng.choice(classes, len(truth), p=NUSCENES_SHARE)
    frame = np.repeat(np.arange(frames), per_frame)
    source = frame * objects + rng.integers(objects, size=len(frame))
    place = truth[source] + rng.normal(0, 0.7, (len(frame), 2))
    elsewhere = rng.random(len(frame)) < 0.6
    place[elsewhere] = rng.uniform(-50, 50, (int(elsewhere.sum()), 2))
    found = np.where(elsewhere, rng.choice(classes, len(frame), p=NUSCENES_SHARE), label[source])

    def upright(centre: Floats) -> Floats:
        return np.hstack([centre, np.tile([0.0, 4.0, 2.0, 1.5, 0.0], (len(centre), 1))])

    annotations = boxes(np.repeat(np.arange(frames), objects), label, None, box_3d=upright(truth))
    detections = boxes(frame, found, rng.random(len(frame)), box_3d=upright(place))
    return one_drive(NUSCENES_CLASSES, frames, annotations, detections)


def write_drives(folder: Path, objects: int, tracked: bool = False) -> None:
    """As many objects as detections in two Parquet files of `folder`, written a piece at a time.

    Those that are `tracked` stay of one class, and the numbers of their tracks stand in a column of their own.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    writers: dict[str, pq.ParquetWriter] = {}

    def write(name: str, frame: Ints, label: Ints, place: Floats, **more: Floats | Ints) -> None:
        drive = frame // FRAMES_PER_DRIVE
        names = [f"drive{k:06d}" for k in range(drive[0], drive[-1] + 1)]
        columns = {
            "sequence": pa.DictionaryArray.from_arrays((drive - drive[0]).astype(np.int32), names),
            "frame": frame,
            "class": pa.DictionaryArray.from_arrays(label.astype(np.int32), list(DRIVE_CLASSES)),
            "x": place[:, 0],
            "y": place[:, 1],
        }
        table = pa.table({**columns, **more})
        if name not in writers:
            writers[name] = pq.ParquetWriter(folder / f"{name}.parquet", table.schema)
        writers[name].write_table(table)

    for start in range(0, objects, ROWS_AT_A_TIME):
        frame = np.arange(start, min(start + ROWS_AT_A_TIME, objects)) // OBJECTS_PER_FRAME
        n = len(frame)
        place, label = rng.uniform(-60, 60, (n, 2)), rng.integers(0, 3, n)
        track = np.arange(start, start + n) % OBJECTS_PER_FRAME
        if tracked:
            label = track % 3
        write("annotations", frame, label, place, **({"track": track} if tracked else {}))
        near = rng.random(n) < 0.7
        seen = np.where(near[:, None], place + rng.normal(0, 0.5, (n, 2)), rng.uniform(-60, 60, (n, 2)))
        reported = np.where(rng.random(n) < 0.9, label, rng.integers(0, 3, n))
        write("detections", frame, reported, seen, score=rng.random(n))
    for writer in writers.values():
        writer.close()
