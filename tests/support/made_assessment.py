"""An assessment of drawn streets whose data are all made: file, images, and what is in them by plain loops."""

import json

import numpy as np
from drawn_streets import drawn, write_scenes

FILE = """\
[systems.car]
title = "HOG on drawn streets"
metrics = ["recall", "AP0.5"]

[[systems.car.circumstances]]
name = "fog"
frequency = 0.5
source_frequency = 0
transformation = { mutation = "haze", visibility_m = { low = 15.0, high = 40.0 } }

[[systems.car.circumstances]]
name = "tilted camera"
frequency = 0.3
source_frequency = 0
transformation = { mutation = "rotation", angle_deg = { low = -10.0, high = 10.0 } }

[[systems.car.circumstances]]
name = "something before the lens"
frequency = 0.4
source_frequency = 0
transformation = { mutation = "truncation", left = 0.4 }

[systems.car.distances.ssim]
tolerance = 0.01

[systems.car.source]
images = "images"
annotations = { format = "coco", file = "truth.json", distance_field = "distance_m" }
depth = { folder = "depth" }

[systems.car.detector]
kind = "hog"
class = "ped"
enlargement = 2.0
lowest_score = -0.3
min_score = 0.5

[systems.car.follow_up]
size = 8

[systems.car.degradation]
parameter = "visibility"
unit = "m"
scale = "reciprocal"
allowed_change = { AP = 0.05, ADR = 0.1, recall = 0.1, precision = 0.1 }
transformation = [
    { mutation = "haze", visibility_m = "level" },
    { mutation = "additive_noise", constant_sd = 3, signal_sd = 0, exponent = 0 },
]
counting = { edges_m = [0, 9, inf] }
adr_levels = [0.2, 0.5, 1]
run = { spec = "SPEC", planner = "feedback", environments = ["ped"] }
collision = { distance_m = 8, speed_mps = 10, deceleration_mps2 = 6.86, reaction_s = 0.1, at_most = 0.5 }
trade_off = { detector = "hog", metric = "roc_a", at_least = 0.6 }
most_false_positives = 1
levels = [{ at = inf }, { at = 40 }, { at = 10 }]
"""
SCENES = 6
EDGE_M = 9


def write_assessment(folder, root):
    """Images, depth, annotations and `car.toml` in a folder."""
    rng = np.random.default_rng(3)
    write_scenes(folder, [drawn(rng, rng.uniform(5, 13, 2)) for _ in range(SCENES)])
    (folder / "car.toml").write_text(FILE.replace("SPEC", str(root / "specs/car_pedestrian.ltl")))


def overlap(one, other):
    """IoU of two COCO boxes."""
    width = min(one[0] + one[2], other[0] + other[2]) - max(one[0], other[0])
    height = min(one[1] + one[3], other[1] + other[3]) - max(one[1], other[1])
    shared = max(width, 0) * max(height, 0)
    return shared / (one[2] * one[3] + other[2] * other[3] - shared)


def matched(folder, least):
    """By definition: the surest detection takes its best free object at IoU .5 or more.

    Gives the annotations, the detections that count, and the detection of each annotation or None.
    """
    truth = json.loads((folder / "annotations.json").read_text())["annotations"]
    found = [each for each in json.loads((folder / "detections.json").read_text()) if each["score"] >= least]
    taken = {}
    for each in sorted(found, key=lambda one: -one["score"]):
        free = [a for a in truth if a["image_id"] == each["image_id"] and a["id"] not in taken]
        good = [a for a in free if overlap(a["bbox"], each["bbox"]) >= 0.5]
        if good:
            taken[max(good, key=lambda a: overlap(a["bbox"], each["bbox"]))["id"]] = each
    return truth, found, taken
