"""Two real detectors on the KITTI tracking benchmark, one requirement: which of them may drive?

PointRCNN (lidar) and RRC (camera) saw the same four drives, none of which PointRCNN was trained on. Each is counted
against the annotations by distance, with the matching its boxes allow, and the car-and-pedestrian system is verified
with each, under the feedback planner, which needs more detections in a row the faster it may drive.

You need the annotations and the detections (the KITTI tracking labels; PointRCNN and RRC results as published with
AB3DMOT and DeepFusionMOT):

  python examples/05_two_detectors_on_kitti.py LABEL_02 DET_POINTRCNN DET_RRC2D [PLOT.png]
"""

import sys
import tempfile
from pathlib import Path

from verifier.perception.confusion import write_confusion
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.choices import count_job
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.sanity import recalls
from verifier.perception.detections import Reading, class_map, read_detections
from verifier.perception.matching import MatchingPolicy
from verifier.pipeline import verify_spec
from verifier.study.inputs import Selection
from verifier.study.options import RunOptions

SPEC = Path(__file__).resolve().parent.parent / "specs/car_pedestrian.ltl"
UNSEEN_DRIVES = ("0001", "0004", "0007", "0015")
CLASSES = {"Pedestrian": "ped", "Person*": "ped", "Car": "obs", "Van": "obs", "DontCare": "dont_care", "*": "ignore"}
EDGES_M = (0.0, 10.0, 20.0, 30.0, 40.0, 50.0, float("inf"))
POLICIES = {"PointRCNN": MatchingPolicy("centre_bev", 2.0), "RRC": MatchingPolicy("iou_2d", 0.5)}


def counted(name, annotations, detections):
    """The detector's confusion counts by distance."""
    reading = Reading(class_map=class_map(CLASSES), sequences=UNSEEN_DRIVES)
    data = read_detections("kitti_tracking", annotations, detections, reading)
    rule = CountingRule("class", ("ped", "obs"), Bins(EDGES_M), "ground_plane")
    return count_job(data, POLICIES[name], rule, f"{name} on KITTI tracking")[0]


def draw(recall, probability, path):
    """Recall against distance beside probability against maximal speed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 3.6))
    for name in recall:
        left.plot([5, 15, 25, 35, 45, 55], recall[name], marker="o", label=name)
        right.plot(range(1, 6), probability[name], marker="o", label=name)
    left.set(xlabel="distance [m], last bin without end", ylabel="recall of pedestrians", ylim=(0, 1))
    right.set(xlabel="maximal speed [cells per step]", ylabel="P(stops for pedestrians), worst start", ylim=(0, 1))
    left.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main(annotations, pointrcnn, rrc, plot=None):
    """Count, verify, compare."""
    recall, probability = {}, {}
    for name, detections in (("PointRCNN", pointrcnn), ("RRC", rrc)):
        counts = counted(name, annotations, detections)
        recall[name] = [each.hits / each.items for each in recalls(counts.matrices()) if each.name == "ped"]
        with tempfile.TemporaryDirectory() as folder:
            write_confusion(counts, Path(folder) / "counts.json")
            selection = Selection(
                ("feedback",), ("ped",), None, {}, {"vmax": (1, 2, 3, 4, 5)}, ("stops_for_pedestrians",)
            )
            result = verify_spec(SPEC, Path(folder) / "counts.json", RunOptions(selection))
        worst = {}
        for point in result.requirements[0].points:
            vmax = int(point.constants["vmax"])
            worst[vmax] = min(point.probability, worst.get(vmax, 1.0))
        probability[name] = [worst[vmax] for vmax in sorted(worst)]
        print(f"{name:<10} recall by distance " + " ".join(f"{each:.2f}" for each in recall[name]))
        print(f"{'':<10} P(stops for pedestrians), vmax 1 to 5: " + " ".join(f"{p:.4f}" for p in probability[name]))
    if plot is not None:
        draw(recall, probability, plot)


if len(sys.argv) in (4, 5):
    main(*sys.argv[1:])
else:
    print("usage: 05_two_detectors_on_kitti.py LABEL_02 DET_POINTRCNN DET_RRC2D [PLOT.png]")

# Expected output:
# usage: 05_two_detectors_on_kitti.py LABEL_02 DET_POINTRCNN DET_RRC2D [PLOT.png]
