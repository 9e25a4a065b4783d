"""Counts of real detectors on KITTI tracking, against the sanity statistics that came with the data.

Those were made by another program: greedy by falling score, same class, one detection per object, range
sqrt(x^2 + z^2) in the camera's frame.
"""

import pytest

from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.choices import count_job
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.sanity import recalls
from verifier.perception.detections import Reading, class_map, keep_scores, read_detections
from verifier.perception.matching import MatchingPolicy

EDGES = (0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 80.0, float("inf"))
TRUE = {
    "Pedestrian": (860, 2123, 889, 400, 53, 26, 19),
    "Car": (1473, 2102, 3030, 2191, 1348, 628, 597),
    "Cyclist": (178, 512, 527, 127, 33, 11, 2),
}
# detector, affinity, threshold, lowest score: recall in the first seven bins, false positives per frame
PUBLISHED = {
    ("pointrcnn", "centre_bev", 2.0, 0.0): {
        "Pedestrian": ((0.87, 0.85, 0.69, 0.23, 0.43, 0.04, 0.00), 1.13),
        "Car": ((0.95, 0.99, 0.96, 0.93, 0.91, 0.64, 0.34), 2.14),
        "Cyclist": ((0.96, 0.95, 0.97, 0.91, 0.91, 1.00, 1.00), 0.59),
    },
    ("pointrcnn", "centre_bev", 2.0, 2.0): {
        "Pedestrian": ((0.83, 0.81, 0.59, 0.08, 0.08, 0.00, 0.00), 0.21),
        "Car": ((0.94, 0.99, 0.95, 0.89, 0.84, 0.48, 0.17), 0.87),
        "Cyclist": ((0.92, 0.91, 0.94, 0.79, 0.82, 0.73, 0.00), 0.16),
    },
    ("pointrcnn", "iou_2d", 0.5, 0.0): {
        "Pedestrian": ((0.76, 0.78, 0.63, 0.19, 0.36, 0.04, 0.00), 1.22),
        "Car": ((0.95, 0.99, 0.96, 0.93, 0.90, 0.63, 0.33), 2.15),
    },
    ("rrc2d", "iou_2d", 0.5, 0.3): {
        "Pedestrian": ((0.61, 0.79, 0.78, 0.89, 0.60, 0.65, 0.47), 0.68),
        "Car": ((0.97, 0.97, 0.96, 0.92, 0.95, 0.86, 0.74), 0.21),
    },
    ("rrc2d", "iou_2d", 0.5, 0.8): {
        "Pedestrian": ((0.39, 0.66, 0.62, 0.58, 0.34, 0.04, 0.00), 0.10),
        "Car": ((0.95, 0.96, 0.94, 0.88, 0.92, 0.81, 0.61), 0.10),
    },
}


@pytest.fixture(scope="module")
def data(shared):
    folder = shared / "data/kitti_tracking"

    def read(detector, names):
        rules = class_map([*((name, name) for name in names), ("*", "ignore")])
        source = folder / f"det_{detector}"
        return read_detections(
            "kitti_tracking", folder / "label_02", source, Reading(rules), frames=folder / "sequences.csv"
        )

    return read


@pytest.mark.parametrize("case", PUBLISHED, ids=str)
def test_the_statistics_that_came_with_the_data_are_met(data, case):
    detector, affinity, threshold, lowest = case
    names = tuple(PUBLISHED[case])
    found = keep_scores(data(detector, names), lowest)
    policy = MatchingPolicy(affinity, threshold, class_aware=True)
    counts, _ = count_job(found, policy, CountingRule("class", names, Bins(EDGES), "ground_plane"))
    assert counts.metadata["totals"]["frames"] == 3690
    shares = recalls(counts.matrices())
    for name, (published, _) in PUBLISHED[case].items():
        mine = [each for each in shares if each.name == name][:7]
        assert tuple(each.items for each in mine) == TRUE[name]
        # Two printed digits: both ways of rounding a share that ends in 5 are met.
        assert all(
            abs(each.hits / each.items - value) <= 0.005 + 1e-12 for each, value in zip(mine, published, strict=True)
        )
    totals = counts.metadata["totals"]
    alarms = (totals["unmatched"] + totals["duplicates"]) / 3690
    assert abs(alarms - sum(rate for _, rate in PUBLISHED[case].values())) <= 0.005 * len(names)
