"""Run by a Python that has nuscenes-devkit: matches boxes with the devkit's own `accumulate`.

Standard input: {"classes": [...], "threshold": t, "annotations": rows, "detections": rows} with rows
[frame, class index, x, y, score]. Standard output: {"pairs": [[detection, annotation], ...], "seconds": s}. It
keeps no list of matches, so each is noted when it asks for the velocity error of the matched pair; for timing alone
("pairs" false in the input) nothing is replaced.
"""

import json
import sys
import time


def main() -> None:
    """Read the boxes, run `accumulate` for each class, print what it matched."""
    from nuscenes.eval.common.data_classes import EvalBoxes
    from nuscenes.eval.common.utils import center_distance
    from nuscenes.eval.detection import algo
    from nuscenes.eval.detection.data_classes import DetectionBox

    job = json.load(sys.stdin)
    pairs = []
    if job.get("pairs", True):

        def note(annotation, detection):
            pairs.append([detection.num_pts, annotation.num_pts])
            return 0.0

        algo.velocity_l2 = note

    def boxes(rows):
        found = EvalBoxes()
        found.add_boxes("nothing", [])
        for frame in {row[0] for side in ("annotations", "detections") for row in job[side]}:
            found.add_boxes(str(frame), [])
        for i, (frame, label, x, y, score) in enumerate(rows):
            name = job["classes"][label]
            box = DetectionBox(
                sample_token=str(frame),
                translation=(float(x), float(y), 0.0),
                size=(1.0, 1.0, 1.0),
                rotation=(1.0, 0.0, 0.0, 0.0),
                detection_name=name,
                detection_score=float(score),
                num_pts=i,
            )
            found.add_boxes(str(frame), [box])
        return found

    annotations, detections = boxes(job["annotations"]), boxes(job["detections"])
    begin = time.perf_counter()
    for name in job["classes"]:
        algo.accumulate(annotations, detections, name, center_distance, job["threshold"])
    json.dump({"pairs": pairs, "seconds": time.perf_counter() - begin}, sys.stdout)


if __name__ == "__main__":
    main()
