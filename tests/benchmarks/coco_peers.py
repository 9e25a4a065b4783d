"""Other programs on COCO files, each as a process of its own: how many detections match an object at IoU 0.5.

python coco_peers.py PROGRAM ANNOTATIONS DETECTIONS
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np


def cocoeval(program: str, truth: str, results: str) -> int:
    """With pycocotools, or hotcoco, which has its interface: one threshold, one range of areas."""
    name = {"pycocotools": ("pycocotools.coco", "pycocotools.cocoeval")}.get(program, (program, program))
    coco, evaluation = (importlib.import_module(each) for each in name)
    with contextlib.redirect_stdout(io.StringIO()):
        data = coco.COCO(truth)
        found = evaluation.COCOeval(data, data.loadRes(results), "bbox")
        found.params.iouThrs, found.params.maxDets = np.array([0.5]), [100]
        found.params.areaRng, found.params.areaRngLbl = [[0, 1e10]], ["all"]
        found.evaluate()
        found.accumulate()
    recall = np.asarray(found.eval["recall"]).reshape(-1)
    objects = [len(data.getAnnIds(catIds=[category])) for category in sorted(data.getCatIds())]
    return round(float((recall * objects)[np.array(objects) > 0].sum()))


def supervision(truth: str, results: str) -> int:
    """With the confusion matrix of supervision, from the arrays of each image."""
    warnings.simplefilter("ignore")
    from supervision import ConfusionMatrix, Detections

    document, rows = json.loads(Path(truth).read_text()), json.loads(Path(results).read_text())
    number = {each["id"]: k for k, each in enumerate(document["categories"])}

    def by_image(rows: list[dict[str, Any]]) -> list[Detections]:
        found = defaultdict(list)
        for row in rows:
            found[row["image_id"]].append(row)
        return [detections(found[image["id"]]) for image in document["images"]]

    def detections(rows: list[dict[str, Any]]) -> Detections:
        if not rows:
            return Detections.empty()
        box = np.array([row["bbox"] for row in rows])
        label = np.array([number[row["category_id"]] for row in rows])
        score = np.array([row["score"] for row in rows]) if "score" in rows[0] else None
        return Detections(np.hstack([box[:, :2], box[:, :2] + box[:, 2:]]), class_id=label, confidence=score)

    names = [each["name"] for each in document["categories"]]
    found = ConfusionMatrix.from_detections(
        by_image(rows), by_image(document["annotations"]), names, conf_threshold=-1.0, iou_threshold=0.5
    )
    return int(found.matrix[:-1, :-1].sum())


if __name__ == "__main__":
    program, *files = sys.argv[1:]
    print(supervision(*files) if program == "supervision" else cocoeval(program, *files))
