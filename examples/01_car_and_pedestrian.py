"""How likely does a car stop for a pedestrian, if all it knows is what YOLOv3 tells it?

The confusion matrices are those that Badithela, Wongpiromsarn and Murray (arXiv:2210.10298) counted for YOLOv3 on
nuScenes, in ten distance bins. At walking pace everything depends on one detection, two metres before the crosswalk.

Run it from anywhere: python examples/01_car_and_pedestrian.py
"""

from pathlib import Path

import verifier

HERE = Path(__file__).resolve().parent
SPEC = HERE.parent / "specs/car_pedestrian.ltl"

print("P(all three requirements), pedestrian present, maximal speed 1 cell per step")
for labelling in ("class", "proposition"):
    for canonical in (True, False):
        matrices = HERE / f"nuscenes_yolov3_{labelling}.json"
        result = verifier.run(SPEC, matrices, environment="ped", requirement="all_three", canonical=canonical)
        point = result.requirements[0].worst_point
        kind = "canonical" if canonical else "by distance"
        print(f"  {labelling:<11} {kind:<11} {point.probability:.3f}")

# Expected output:
# P(all three requirements), pedestrian present, maximal speed 1 cell per step
#   class       canonical   0.082
#   class       by distance 0.196
#   proposition canonical   0.129
#   proposition by distance 0.259
