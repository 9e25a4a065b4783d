"""How long matching takes beside a bare sort and beside the programs people use, as plain functions that print.

The nuScenes devkit runs in a Python of its own, named by the environment variable VERIFIER_NUSCENES_PYTHON.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from verifier.detections.columns import Boxes, DetectionSet
from verifier.matching import Matches, MatchingPolicy, convention, match

NUSCENES_CLASSES = (
    *("car", "truck", "bus", "trailer", "construction_vehicle"),
    *("pedestrian", "motorcycle", "bicycle", "traffic_cone", "barrier"),
)


def best_of(runs: int, *functions: Callable[[], object]) -> list[float]:
    """Shortest wall-clock time of each function in seconds; they take turns, so that a busy moment meets all."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(runs):
        for mine, function in zip(times, functions, strict=True):
            started = time.perf_counter()
            function()
            mine.append(time.perf_counter() - started)
    return [min(mine) for mine in times]


def columns(
    frame: NDArray[np.int64],
    label: NDArray[np.int64],
    score: NDArray[np.float64] | None,
    box_2d: NDArray[np.float64] | None = None,
    box_3d: NDArray[np.float64] | None = None,
    distance_m: NDArray[np.float64] | None = None,
) -> Boxes:
    """Boxes without attributes, from a file that does not exist."""
    rows = len(frame)
    file = np.zeros(rows, dtype=np.int32)
    line = np.arange(1, rows + 1)
    return Boxes(frame, label.astype(np.int32), score, box_2d, box_3d, distance_m, {}, line, file)


def detection_set(classes: tuple[str, ...], frames: int, annotations: Boxes, detections: Boxes) -> DetectionSet:
    """One sequence of `frames` frames."""
    names = tuple(f"{i:06d}" for i in range(frames))
    return DetectionSet(
        classes, ("drive",), np.zeros(frames, np.int32), names, annotations, detections, None, ("made.up",)
    )


def image_set(frames: int = 5000, per_frame: int = 36, objects: int = 7, classes: int = 80) -> DetectionSet:
    """Images with as many objects as in COCO val; half of the detections lie about an object, in random order."""
    rng = np.random.default_rng(0)

    def random_rectangles(count: int) -> NDArray[np.float64]:
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
    distance_m = rng.gamma(4, 10, len(truth))
    truth_frame = np.repeat(np.arange(frames), objects)
    annotations = columns(truth_frame, truth_label, None, box_2d=truth, distance_m=distance_m)
    detections = columns(frame[order], label[order], rng.random(len(frame)), box_2d=found[order])
    return detection_set(tuple(f"class{i}" for i in range(classes)), frames, annotations, detections)


def count(data: DetectionSet, matches: Matches, edges_m: NDArray[np.float64]) -> NDArray[np.int64]:
    """(bins, classes + 1, classes) counts by distance, predicted and true class; the last row is "not detected"."""
    annotations, detections = data.annotations, data.detections
    if annotations.distance_m is None:
        raise ValueError("the annotations have no distances")
    size = len(data.classes)
    bin_index = np.searchsorted(edges_m, annotations.distance_m, side="right") - 1
    found = matches.detection_of >= 0
    predicted = np.where(found, detections.label[matches.detection_of], size)
    inside = bin_index < len(edges_m) - 1
    cell = ((bin_index * (size + 1) + predicted) * size + annotations.label)[inside]
    shape = (len(edges_m) - 1, size + 1, size)
    return np.bincount(cell, minlength=int(np.prod(shape))).reshape(shape)


def images_against_a_sort(runs: int = 10) -> float:
    """Matching and counting 180,000 detections, as a multiple of sorting their columns; the target is at most 6."""
    data = image_set()
    boxes = data.detections
    if boxes.box_2d is None or boxes.score is None:
        raise ValueError("the set has no image rectangles or no scores")
    narrow = (boxes.score, boxes.label, boxes.frame)
    wide = (*boxes.box_2d.T, *narrow)
    edges_m = np.arange(0.0, 110.0, 10.0)
    worst = 0.0
    for policy in (MatchingPolicy("iou_2d", 0.5), convention("coco"), convention("supervision")):

        def ours(policy: MatchingPolicy = policy) -> object:
            return count(data, match(data, policy), edges_m)

        seconds, sorting, sorting_all = best_of(runs, ours, lambda: np.lexsort(narrow), lambda: np.lexsort(wide))
        worst = max(worst, seconds / sorting)
        print(
            f"{len(boxes)} image detections, order {policy.order}, class-aware {policy.class_aware}: "
            f"{seconds:.3f} s; lexsort of frame, label, score {sorting:.3f} s, ratio {seconds / sorting:.2f}; "
            f"of the box as well {sorting_all:.3f} s, ratio {seconds / sorting_all:.2f}"
        )
    return worst


def images_against_supervision(runs: int = 7, frames: int = 5000) -> float:
    """How many times faster than supervision's ConfusionMatrix on the same boxes; the target is at least 4."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from supervision import ConfusionMatrix
    data = image_set(frames, 180_000 // frames, 35_000 // frames)
    annotations, boxes = data.annotations, data.detections
    if annotations.box_2d is None or boxes.box_2d is None or boxes.score is None:
        raise ValueError("the set has no image rectangles or no scores")
    true = np.hstack([annotations.box_2d, annotations.label[:, None]])
    rows = np.hstack([boxes.box_2d, boxes.label[:, None], boxes.score[:, None]])
    # Supervision takes a list of arrays, one per image; making it is not counted.
    targets = [true[annotations.frame == i] for i in range(data.frame_count)]
    predictions = [rows[boxes.frame == i] for i in range(data.frame_count)]
    names = list(data.classes)
    peer = ConfusionMatrix.from_tensors
    edges_m = np.array([0.0, np.inf])
    policy = convention("supervision")
    theirs, ours = best_of(
        runs,
        lambda: peer(predictions, targets, names, conf_threshold=-1.0, iou_threshold=0.5),
        lambda: count(data, match(data, policy), edges_m),
    )
    matrix = peer(predictions, targets, names, conf_threshold=-1.0, iou_threshold=0.5).matrix
    equal = np.array_equal(count(data, match(data, policy), edges_m)[0, :-1].T, matrix[:-1, :-1])
    print(
        f"supervision ConfusionMatrix, {frames} images: {theirs:.2f} s, ours {ours:.3f} s: "
        f"{theirs / ours:.1f} times; equal counts: {equal}"
    )
    return theirs / ours


def nuscenes_set(frames: int, per_frame: int = 200, objects: int = 31) -> DetectionSet:
    """Frames with as many objects as in nuScenes val and as many detections as detectors send in."""
    rng = np.random.default_rng(1)
    classes = len(NUSCENES_CLASSES)
    truth = rng.uniform(-50, 50, (frames * objects, 2))
    share = np.array([0.42, 0.07, 0.02, 0.02, 0.01, 0.2, 0.01, 0.01, 0.08, 0.16])
    label = rng.choice(classes, len(truth), p=share)
    frame = np.repeat(np.arange(frames), per_frame)
    source = frame * objects + rng.integers(objects, size=len(frame))
    place = truth[source] + rng.normal(0, 0.7, (len(frame), 2))
    elsewhere = rng.random(len(frame)) < 0.6
    place[elsewhere] = rng.uniform(-50, 50, (int(elsewhere.sum()), 2))
    found = np.where(elsewhere, rng.choice(classes, len(frame), p=share), label[source])

    def upright(centre: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.hstack([centre, np.tile([0.0, 4.0, 2.0, 1.5, 0.0], (len(centre), 1))])

    annotations = columns(np.repeat(np.arange(frames), objects), label, None, box_3d=upright(truth))
    detections = columns(frame, found, rng.random(len(frame)), box_3d=upright(place))
    return detection_set(NUSCENES_CLASSES, frames, annotations, detections)


def nuscenes_against_the_devkit(frames: int = 6019, devkit_frames: int = 600) -> float:
    """How many times faster than the devkit's `accumulate` over all classes; the target is at least 30.

    The devkit walks frame by frame, so its time is measured on `devkit_frames` frames and compared with ours on the
    same; with `devkit_frames = frames` it takes some minutes.
    """
    whole = nuscenes_set(frames)
    policy = convention("nuscenes")
    (ours_whole,) = best_of(3, lambda: match(whole, policy))
    found = match(whole, policy).match_count
    print(
        f"{frames} frames, {len(whole.annotations)} annotations, {len(whole.detections)} detections of "
        f"{len(whole.classes)} classes: {ours_whole:.3f} s, {found} matches"
    )
    python = os.environ.get("VERIFIER_NUSCENES_PYTHON")
    if not python:
        print("VERIFIER_NUSCENES_PYTHON names no Python with nuscenes-devkit: nothing to compare with")
        return 0.0
    data = whole if devkit_frames == frames else nuscenes_set(devkit_frames)
    (ours,) = best_of(5, lambda: match(data, policy))
    theirs = devkit_seconds(data, python)
    print(f"devkit accumulate, {devkit_frames} frames: {theirs:.1f} s, ours {ours:.4f} s: {theirs / ours:.0f} times")
    return theirs / ours


def devkit_seconds(data: DetectionSet, python: str) -> float:
    """Seconds in `accumulate` for all classes; making the devkit's box objects is not counted."""

    def rows(boxes: Boxes) -> list[list[float]]:
        if boxes.box_3d is None:
            raise ValueError("the boxes have no place")
        score = np.zeros(len(boxes)) if boxes.score is None else boxes.score
        columns = zip(boxes.frame, boxes.label, *boxes.box_3d[:, :2].T, score, strict=True)
        return [[int(f), int(c), float(x), float(y), float(s)] for f, c, x, y, s in columns]

    job = {
        "classes": list(data.classes),
        "threshold": 2.0,
        "pairs": False,
        "annotations": rows(data.annotations),
        "detections": rows(data.detections),
    }
    script = Path(__file__).resolve().parent.parent / "support" / "nuscenes_peer.py"
    done = subprocess.run([python, script], input=json.dumps(job), capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout)["seconds"])


if __name__ == "__main__":
    images_against_a_sort()
    images_against_supervision()
    images_against_supervision(frames=500)
    nuscenes_against_the_devkit()
