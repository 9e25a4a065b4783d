"""Logs of real drives, and counts of detectors to draw reports from, each read once."""

from functools import cache

import numpy as np

from verifier.closedloop.fieldsafe import fieldsafe_logs
from verifier.closedloop.from_sets import nuscenes_logs
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.choices import count_job
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.detections import Reading, class_map, read_detections
from verifier.perception.matching import MatchingPolicy

TWO_METRES = MatchingPolicy("centre_bev", 2.0)
DETECTORS = {
    "centerpoint": "det_centerpoint",
    "megvii": "det_megvii",
    "pointpillars_trelpy": "det_pointpillars_trelpy.json",
}
READING = Reading(class_map=class_map({"pedestrian": "ped", "Pedestrian": "ped", "*": "ignore"}), dont_care="drop")


@cache
def scene_logs(scene):
    """The nuScenes scene in a folder with three detectors, in one log."""
    return nuscenes_logs(scene / "gt.json", {name: scene / path for name, path in DETECTORS.items()})


@cache
def field_logs(field, **options):
    """The drive of FieldSAFE in a folder, in one log without detections."""
    return fieldsafe_logs(
        field / "dynamic_ground_truth.csv.zip",
        field / "tractor_gps_coordinates.csv.zip",
        field / "utm2PixelsTransformMatrix.csv",
        **options,
    )


@cache
def scene_counts(scene, detector):
    """Counts of the pedestrians of the nuScenes scene by distance."""
    return counted(
        read_detections("nuscenes_compact", scene / "gt.json", scene / f"det_{detector}", READING), detector
    )


def counted(data, title):
    """Counts of pedestrians by distance, at about 25 score thresholds."""
    levels = np.unique(np.quantile(data.detections.score, np.linspace(0, 0.98, 25)))
    bins = Bins((0.0, 10.0, 20.0, 30.0, 50.0))
    rule = CountingRule(
        "class", ("ped",), bins, "ground_plane", "own_bin", outside="drop", thresholds=tuple(levels.tolist())
    )
    return count_job(data, TWO_METRES, rule, title=title)[0]
