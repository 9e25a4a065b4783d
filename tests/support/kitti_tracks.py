"""What detectors report along the real tracks of KITTI."""

import numpy as np

from verifier.perception.confusion.choices import default_policy, matching_policy, prepared
from verifier.perception.confusion.counting import confusion_counts, count_and_observe
from verifier.perception.confusion.record import record_table
from verifier.perception.confusion.replay import Tracked
from verifier.perception.settings import CountSettings

DETECTORS = {"pointrcnn": ("det_pointrcnn", "centre_bev", 2.0, 2.0), "rrc": ("det_rrc2d", "iou_2d", 0.5, 0.8)}


def seen_on_kitti(shared, tmp_path, detector):
    """The data of all classes, the rule, and what was seen of each object; tests by permutation are left out."""
    folder = shared / "data/kitti_tracking"
    path, affinity, threshold, score = DETECTORS[detector]
    classes = tmp_path / "map.txt"
    classes.write_text("Pedestrian -> ped\nCar -> car\nCyclist -> cyc\n* -> ignore\n")
    asked = CountSettings(
        format="kitti_tracking", annotations=str(folder / "label_02"), detections=str(folder / path),
        frames=str(folder / "sequences.csv"), class_map=str(classes), class_aware=True, affinity=affinity,
        match_threshold=threshold, min_score=score, distance="ground_plane", bins="0,10,20,30,40,100", outside="drop",
    )  # fmt: skip
    data, rule = prepared(asked)
    policy = matching_policy(asked, default_policy(data))
    found, observed = count_and_observe(data, policy, rule)
    return data, rule, observed, confusion_counts(found, rule, policy)


def tracked_reports(shared, tmp_path, detector, name):
    """From the record that `verify confusion --record` would write."""
    data, rule, observed, _ = seen_on_kitti(shared, tmp_path, detector)
    table = record_table(data, rule, observed)
    rows = np.flatnonzero((table["kind"] == "object") & (table["true"] == name))
    sequences, sequence = np.unique(table["sequence"][rows].astype(str), return_inverse=True)
    frame = np.array([int(text.rpartition("/")[2]) for text in table["frame"][rows]])
    track = np.unique(np.char.add(np.char.add(sequences[sequence], "-"), table["track"][rows].astype(str)),
                      return_inverse=True)[1]  # fmt: skip
    return Tracked(sequence, track, frame, table["bin"][rows], (table["predicted"][rows] == name).astype(int))
