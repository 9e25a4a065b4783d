"""Data sets in which matching is no question: objects stand in lanes far apart, and detections in a lane or not."""

import numpy as np

from verifier.perception.detections.arrays import from_arrays


def lane_set(frames, objects, detections, classes=("person",), sequences=None):
    """A `DetectionSet` of so many frames.

    `objects` are (frame, lane) or (frame, lane, label), `detections` (frame, lane, score) or (frame, lane, score,
    label). All boxes of a lane are equal, and those of different lanes do not touch.
    """
    truth = {"frame": [each[0] for each in objects], "class": [each[2] if len(each) > 2 else 0 for each in objects]}
    found = {
        "frame": [each[0] for each in detections],
        "class": [each[3] if len(each) > 3 else 0 for each in detections],
        "score": [each[2] for each in detections],
    }
    for columns, rows in ((truth, objects), (found, detections)):
        columns["box_2d"] = np.array([[100 * each[1], 0, 100 * each[1] + 10, 20] for each in rows]).reshape(-1, 4)
    return from_arrays(classes, [f"{i:04d}" for i in range(frames)], truth, found, sequences=sequences)
