"""Which detector, and with which planner? Two detectors and two planners compared draw by draw.

Run without arguments it compares two ways of counting the same detections (YOLOv3 on nuScenes): one item per object,
or one per frame and set of classes. The difference between the planners is certain in every draw of the matrices; the
difference between the countings is not; and which of the four is best changes with speed.

With the KITTI tracking labels and the published results of PointRCNN (lidar) and RRC (camera), as for example 05, two
real detectors are compared. They saw the same four drives, which are too few to be resampled:

  python examples/08_which_detector.py LABEL_02 DET_POINTRCNN DET_RRC2D [PLOT.png]
"""

import sys
import tempfile
from pathlib import Path

import verifier
from verifier.perception.confusion import write_confusion
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.choices import count_job
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.detections import Reading, class_map, read_detections
from verifier.perception.matching import MatchingPolicy

HERE = Path(__file__).resolve().parent
SPEC = HERE.parent / "specs/car_pedestrian.ltl"
CLASSES = {"Pedestrian": "ped", "Person*": "ped", "Car": "obs", "Van": "obs", "DontCare": "dont_care", "*": "ignore"}
POLICIES = {"PointRCNN": MatchingPolicy("centre_bev", 2.0), "RRC": MatchingPolicy("iou_2d", 0.5)}


def count(name, annotations, detections, folder):
    """Count a detector by distance and give the file of its matrices."""
    reading = Reading(class_map=class_map(CLASSES), sequences=("0001", "0004", "0007", "0015"))
    data = read_detections("kitti_tracking", annotations, detections, reading)
    edges_m = (0.0, 10.0, 20.0, 30.0, 40.0, 50.0, float("inf"))
    rule = CountingRule("class", ("ped", "obs"), Bins(edges_m), "ground_plane")
    path = Path(folder) / f"{name}.json"
    write_confusion(count_job(data, POLICIES[name], rule, f"{name} on KITTI tracking")[0], path)
    return path


def show(detectors, plot=None):
    """Compare, print, draw."""
    result = verifier.compare(
        SPEC,
        detectors,
        planner=("feedback", "cautious"),
        environment="ped",
        requirement="stops_for_pedestrians",
        sweep={"vmax": (1, 2, 3)},
        draws=2000,
    )
    (spec,) = result.specs
    (each,) = spec.requirements
    print(f"{each.name}, worst start and speed    P       95 % interval      best")
    for entry in each.entries:
        name, value, ends = f"{entry.detector}, {entry.planner}", entry.worst_point.probability, entry.interval
        print(f"  {name:<32} {value:.4f}  {ends.lower:.4f} to {ends.upper:.4f}  {entry.best:5.2f}")
    names = [str(configuration) for configuration in spec.configurations]
    print("probability that the row is better than the column")
    for name, row in zip(names, each.better, strict=True):
        print(f"  {name:<32} " + " ".join(f"{chance:5.2f}" for chance in row))
    for curve in each.curves:
        for change in curve.ranking_changes:
            before, after = curve.places[change.before], curve.places[change.after]
            print(f"{names[change.first]} is ahead at {curve.axis} = {before} ({change.first_better:.2f}),")
            print(f"  {names[change.second]} at {curve.axis} = {after} ({change.second_better:.2f})")
    if plot is not None:
        result.plot().savefig(plot)


if len(sys.argv) in (4, 5):
    labels, lidar, camera, *picture = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        files = {name: count(name, labels, found, folder) for name, found in (("PointRCNN", lidar), ("RRC", camera))}
        show(files, *picture)
else:
    kinds = {"per object": "class", "per frame": "proposition"}
    show({name: HERE / f"nuscenes_yolov3_{kind}.json" for name, kind in kinds.items()})

# Expected output:
# stops_for_pedestrians, worst start and speed    P       95 % interval      best
#   per object, feedback             0.0076  0.0028 to 0.0185   0.00
#   per object, cautious             0.1962  0.1408 to 0.2645   0.11
#   per frame, feedback              0.0173  0.0059 to 0.0458   0.00
#   per frame, cautious              0.2588  0.1806 to 0.3578   0.89
# probability that the row is better than the column
#   per object, feedback              0.50  0.00  0.11  0.00
#   per object, cautious              1.00  0.50  1.00  0.11
#   per frame, feedback               0.89  0.00  0.50  0.00
#   per frame, cautious               1.00  0.89  1.00  0.50
# per frame, feedback is ahead at vmax = 1 (0.89),
#   per object, cautious at vmax = 2 (1.00)
# per frame, feedback is ahead at initial v = 1 (0.89),
#   per object, cautious at initial v = 2 (1.00)
