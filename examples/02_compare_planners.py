"""The same detector under four planners: the choice of planner matters more than most changes of the detector.

Two of the planners need several detections in a row; the correct-by-construction one and the cautious one come to
the line at walking pace and need a single one. No winning strategy does better than that: the range over all of
them is computed, too.

Run it from anywhere: python examples/02_compare_planners.py
"""

from pathlib import Path

import verifier

HERE = Path(__file__).resolve().parent

result = verifier.run(
    HERE.parent / "specs/car_pedestrian.ltl",
    HERE / "nuscenes_yolov3_class.json",
    planner="all",
    environment="ped",
    requirement="all_three",
    set={"vmax": 3},
    strategies=True,
)
print("planner    worst P(all three) over the initial speeds 1 to 3")
for each in result.requirements:
    print(f"{each.planner:<10} {each.worst_point.probability:.6f} at v = {each.worst_point.initial['v']}")
    if each.strategies is not None:
        ends = each.strategies[each.worst]
        print(f"           every winning strategy: {ends.smallest:.6f} to {ends.largest:.6f}")

# Expected output:
# planner    worst P(all three) over the initial speeds 1 to 3
# published  0.000449 at v = 1
# feedback   0.007553 at v = 3
# correct    0.196203 at v = 1
#            every winning strategy: 0.000291 to 0.196203
# cautious   0.196203 at v = 1
