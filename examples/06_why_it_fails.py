"""Why the car does not stop: how the requirement fails, what that depends on, and what to do about it.

The feedback planner at up to three cells per step, with YOLOv3's detections on nuScenes by distance (Badithela,
Wongpiromsarn and Murray 2022). The car stops for the pedestrian one time in 132. Why?

There is one cause: the pedestrian is missed within the last ten metres. The three ways to fail differ only in when,
so they are one pattern, whose total probability is that of failing. So nothing that the detector does farther away
matters to this planner, and P is the third power of one recall. Measuring more would hardly change the number; seeing
pedestrians would.

Run it from anywhere: python examples/06_why_it_fails.py [PLOT.png]
"""

import sys
from pathlib import Path

import verifier

HERE = Path(__file__).resolve().parent

result = verifier.explain(
    HERE.parent / "specs/car_pedestrian.ltl",
    HERE / "nuscenes_yolov3_class.json",
    planner="feedback",
    environment="ped",
    requirement="stops_for_pedestrians",
    set={"vmax": 3},
    members=9,
    point_only=True,
)
(each,) = result.explanations
found = each.violation
print(f"P({each.name}) = {each.point.probability:.6f} from {each.point.scenario}")


def told(report):
    """A detection error in words."""
    return f"{report.true} in {result.bins[report.bin]} reported as {report.reported}"


print(f"It fails with probability {found.probability:.6f}. The causes add up to that:")
for cause in found.causes:
    reports = " and ".join(told(found.detection_errors[number]) for number in cause.detection_errors)
    reports = reports or "no detection error: planner and dynamics"
    print(f"  {cause.probability:.6f}: {reports}; if correct, P would be {cause.corrected:g}")

for pattern in found.patterns:
    print(f"Pattern of violating paths, {pattern.share:.0%} of the violation, whenever:")
    for run in pattern.members:
        states = [run.initial, *(step.after for step in run.steps)]
        last = states[run.irrevocable_after - 1]
        print(f"  {run.exact} = {run.probability:.4f}: lost from x={last['x']} v={last['v']}")

print(f"With perfect perception P = {each.perfect_perception:g}, so the planner is not the limit. What to fix first:")
for fix in each.fixes:
    print(f"  {told(fix)}: P would be {fix.probability:.4f}")

deviation = f"{each.posterior_deviation:.4f} {each.posterior_deviation_assumes}"
print(f"Standard deviation of P from the limited data: {deviation}. Where to label more:")
for column in each.label_more:
    share = f"{column.share_of_variance:.0%} of the variance"
    print(f"  {column.true} in {result.bins[column.bin]} ({column.items} items): {share}")

if len(sys.argv) > 1:
    result.plot().savefig(sys.argv[1])

# Expected output:
# P(stops_for_pedestrians) = 0.007553 from ped x=1 v=3
# It fails with probability 0.992447. The causes add up to that:
#   0.992447: ped in [0, 10) m reported as empty; if correct, P would be 1
# Pattern of violating paths, 100% of the violation, whenever:
#   127/158 = 0.8038: lost from x=49 v=3
#   3937/24964 = 0.1577: lost from x=52 v=2
#   122047/3944312 = 0.0309: lost from x=55 v=1
# With perfect perception P = 1, so the planner is not the limit. What to fix first:
#   ped in [0, 10) m reported as empty: P would be 1.0000
# Standard deviation of P from the limited data: 0.0036 if items are independent. Where to label more:
#   ped in [0, 10) m (158 items): 100% of the variance
