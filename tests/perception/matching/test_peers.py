"""The same matches as the programs that define the conventions, pair for pair, ties included.

pycocotools and supervision are compared when installed; nuscenes-devkit needs older versions of our libraries, so it
runs in a Python of its own, named by the environment variable VERIFIER_NUSCENES_PYTHON.
"""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from slow_matcher import Thing, crowded_scene, detection_set

from verifier.perception.matching import convention, match

FRAMES = 40


def pairs_of(matches):
    return {(d, a) for d, a in enumerate(matches.annotation_of.tolist()) if a >= 0}


def coco_evaluation(annotations, detections, regions, threshold):
    """{(detection, annotation)} and {ignored detection} as pycocotools has them, and its evaluation object."""
    coco = pytest.importorskip("pycocotools.coco", reason="pycocotools is not installed")
    cocoeval = pytest.importorskip("pycocotools.cocoeval")

    def entries(things, crowd=0, begin=1):
        for i, thing in enumerate(things):
            x0, y0, x1, y1 = thing.box
            yield {
                "id": begin + i,
                "image_id": thing.frame,
                "category_id": thing.label + 1,
                "bbox": [x0, y0, x1 - x0, y1 - y0],
                "area": (x1 - x0) * (y1 - y0),
                "iscrowd": crowd,
                "score": thing.score,
            }

    def index(rows):
        one = coco.COCO()
        one.dataset = {
            "images": [{"id": i} for i in range(FRAMES)],
            "categories": [{"id": 1}, {"id": 2}],
            "annotations": list(rows),
        }
        one.createIndex()
        return one

    truth = index([*entries(annotations), *entries(regions, crowd=1, begin=len(annotations) + 1)])
    evaluation = cocoeval.COCOeval(truth, index(entries(detections)), "bbox")
    evaluation.params.iouThrs = np.array([threshold])
    evaluation.params.maxDets = [10**6]
    evaluation.params.areaRng = [[0, 1e10]]
    evaluation.params.areaRngLbl = ["all"]
    evaluation.evaluate()
    pairs, ignored = set(), set()
    for each in filter(None, evaluation.evalImgs):
        for detection, annotation, out in zip(each["dtIds"], each["dtMatches"][0], each["dtIgnore"][0], strict=True):
            if out:
                ignored.add(detection - 1)
            elif annotation > 0:
                pairs.add((detection - 1, int(annotation) - 1))
    return pairs, ignored


@pytest.mark.parametrize("threshold", [0.125, 0.5, 0.75])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pycocotools_matches_the_same_pairs(seed, threshold, capsys):
    annotations, detections = crowded_scene(seed, FRAMES)
    regions = [Thing(frame, frame % 2, (2, 2, 12, 9)) for frame in range(0, FRAMES, 3)]
    expected, ignored = coco_evaluation(annotations, detections, regions, threshold)
    data = detection_set(annotations, detections, FRAMES, regions=regions)
    found = match(data, convention("coco", threshold=threshold, ignore_overlap=threshold))
    assert len(expected) > 50
    assert len(ignored) > 10
    assert pairs_of(found) == expected
    assert set(np.flatnonzero(found.ignored)) == ignored


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("threshold", [0.125, 0.5])
def test_supervision_counts_the_same_confusions(threshold):
    supervision = pytest.importorskip("supervision", reason="supervision is not installed")
    # No two pairs of a frame equally alike: supervision breaks ties in the order of the annotations.
    rng = np.random.default_rng(7)
    annotations, detections = (
        [replace(thing, box=tuple(np.add(thing.box, rng.uniform(0, 0.4, 4)).tolist())) for thing in things]
        for things in crowded_scene(4, FRAMES)
    )

    def tensors(things, scored):
        rows = np.array([[*t.box, t.label, t.score][: 6 if scored else 5] for t in things], dtype=np.float64)
        frames = np.array([t.frame for t in things])
        return [rows[frames == i] for i in range(FRAMES)]

    peer = supervision.ConfusionMatrix.from_tensors(
        predictions=tensors(detections, True),
        targets=tensors(annotations, False),
        classes=["car", "ped"],
        conf_threshold=-1.0,
        iou_threshold=threshold,
    )
    found = match(detection_set(annotations, detections, FRAMES), convention("supervision", threshold=threshold))
    counts = np.zeros((3, 3), dtype=int)
    for d, a in enumerate(found.annotation_of):
        counts[annotations[a].label if a >= 0 else 2, detections[d].label] += 1
    for a, d in enumerate(found.detection_of):
        counts[annotations[a].label, 2] += d < 0
    assert counts[:2, :2].sum() > 50
    assert counts.tolist() == peer.matrix.tolist()


def nuscenes_accumulate(annotations, detections, threshold):
    """{(detection, annotation)} as the devkit matches them."""
    python = os.environ.get("VERIFIER_NUSCENES_PYTHON")
    if not python:
        pytest.skip("VERIFIER_NUSCENES_PYTHON names no Python with nuscenes-devkit")

    def rows(things):
        return [[t.frame, t.label, t.box[0], t.box[1], t.score] for t in things]

    job = {
        "classes": ["car", "pedestrian"],
        "threshold": threshold,
        "annotations": rows(annotations),
        "detections": rows(detections),
    }
    script = Path(__file__).resolve().parents[2] / "support" / "nuscenes_peer.py"
    done = subprocess.run([python, script], input=json.dumps(job), capture_output=True, text=True, check=True)
    return {tuple(pair) for pair in json.loads(done.stdout)["pairs"]}


@pytest.mark.parametrize("threshold", [1.0, 2.0, 2.5])
def test_the_nuscenes_devkit_matches_the_same_pairs(threshold):
    annotations, detections = crowded_scene(5, FRAMES, width=7)
    # The devkit sorts detections over all frames, listed frame by frame; so do we, with rows in that order.
    detections.sort(key=lambda thing: thing.frame)
    expected = nuscenes_accumulate(annotations, detections, threshold)
    found = match(
        detection_set(annotations, detections, FRAMES, width=7), convention("nuscenes", threshold=threshold)
    )
    assert len(expected) > 50
    assert pairs_of(found) == expected
