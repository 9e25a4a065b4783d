"""From the output of two detectors to verdicts: count each against the same annotations, verify both under one spec.

The drive is made up here: pedestrians and obstacles at known places, and two detectors that see them less and less
well with distance. The first is good nearby and poor far away; the second sees further, and takes more obstacles for
pedestrians. With real data only the reading changes: `read_detections("kitti_tracking", ...)` and its like.

It needs the extra detections. Run it from anywhere: python examples/04_from_detections.py
"""

import tempfile
from pathlib import Path

import numpy as np

from verifier.perception.confusion import write_confusion
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.choices import count_job
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.sanity import recalls
from verifier.perception.detections import read_detections
from verifier.perception.matching import MatchingPolicy
from verifier.pipeline import verify_spec
from verifier.study.inputs import Selection
from verifier.study.options import RunOptions

SPEC = Path(__file__).resolve().parent.parent / "specs/car_pedestrian.ltl"
FRAMES, OBJECTS = 4000, 24_000
DETECTORS = {
    "near": (0.97, 18.0, 0.01),
    "far": (0.88, 60.0, 0.04),
}  # share seen at 0 m, decay in m, taken for the other
POLICY = MatchingPolicy("centre_bev", 2.0)
RULE = CountingRule("class", ("ped", "obs"), Bins((0.0, 10.0, 20.0, 40.0, 80.0, float("inf"))), "ground_plane")


def write_drive(folder):
    """Annotations and the output of both detectors as CSV files with named columns."""
    random = np.random.default_rng(2022)
    frame, kind = random.integers(0, FRAMES, OBJECTS), random.integers(0, 2, OBJECTS)
    place = np.column_stack([random.uniform(0, 80, OBJECTS), random.uniform(-10, 10, OBJECTS)]).round(2)
    write_table(folder / "annotations.csv", frame, kind, place)
    for name, (seen_at_0, decay_m, swapped) in DETECTORS.items():
        chance = seen_at_0 * np.exp(-((np.hypot(*place.T) / decay_m) ** 2))
        seen = random.random(OBJECTS) < chance
        told = np.where(random.random(OBJECTS) < swapped, 1 - kind, kind)[seen]
        off = random.normal(0, 0.2, (seen.sum(), 2)).round(2)
        write_table(folder / f"{name}.csv", frame[seen], told, place[seen] + off, random.random(seen.sum()))


def write_table(path, frame, kind, place, score=None):
    """One row per object, sorted by frame."""
    head = "frame,class,x,y" + (",score" if score is not None else "")
    columns = [
        frame,
        np.array(["ped", "obs"])[kind],
        *place.T.round(2),
        *([score.round(4)] if score is not None else []),
    ]
    rows = sorted(zip(*(column.tolist() for column in columns), strict=True))
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n")


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    write_drive(folder)
    for detector in DETECTORS:
        data = read_detections("table", folder / "annotations.csv", folder / f"{detector}.csv")
        counts, _ = count_job(data, POLICY, RULE, f"detector '{detector}'")
        write_confusion(counts, folder / f"{detector}.json")
        shares = [each.hits / each.items for each in recalls(counts.matrices()) if each.name == "ped" and each.items]
        print(f"{detector:<5} recall of pedestrians by distance: " + " ".join(f"{share:.2f}" for share in shares))
        selection = Selection(settings={"vmax": 3})
        result = verify_spec(SPEC, folder / f"{detector}.json", RunOptions(selection))
        for each in result.requirements:
            print(f"      {each.name:<28} P = {each.worst_point.probability:.4f}  {each.verdict_text}")

# Expected output:
# near  recall of pedestrians by distance: 0.82 0.49 0.09 0.00 0.00
#       stops_only_for_pedestrians   P = 1.0000  satisfied, if items are independent
#       stops_for_pedestrians        P = 0.0009  violated, if items are independent
#       never_stalls_early           P = 1.0000  satisfied
#       all_three                    P = 0.0009  no target
# far   recall of pedestrians by distance: 0.79 0.80 0.66 0.32 0.13
#       stops_only_for_pedestrians   P = 0.9900  violated, if items are independent
#       stops_for_pedestrians        P = 0.2113  violated, if items are independent
#       never_stalls_early           P = 1.0000  satisfied
#       all_three                    P = 0.2113  no target
