"""Why the car does not stop: how the requirement fails, what that hangs on, and what to do about it.

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
from verifier.perception.confusion.matrices import label_text

HERE = Path(__file__).resolve().parent

result = verifier.explain(
    HERE.parent / "specs/car_pedestrian.ltl",
    HERE / "nuscenes_yolov3_class.json",
    planner="feedback",
    environment="ped",
    requirement="stops_for_pedestrians",
    set={"vmax": 3},
    members=9,
    no_confidence=True,
)
names = [label_text(label) for label in result.labels]
(each,) = result.explained
found = each.explanation
print(f"P({each.result.name}) = {each.point.probability:.6f} from {each.point.scenario}")


def told(report):
    """A wrong report in words."""
    return f"{names[report.true]} in {result.bins[report.bin]} reported as {names[report.predicted]}"


print(f"It fails with probability {found.violation:.6f}. The causes add up to that:")
for one in found.causes:
    reports = " and ".join(told(report) for report in one.cause.reports) or "no wrong report: planner and dynamics"
    print(f"  {one.cause.probability:.6f}: {reports}; if correct, P would be {one.corrected:g}")

for one in found.patterns:
    print(f"Pattern of losing runs, {one.pattern.probability / found.violation:.0%} of the violation, whenever:")
    for run in one.members:
        last = run.steps[run.irrevocable - 1]
        print(f"  {run.exact} = {run.probability:.4f}: lost from x={last.before['x']} v={last.before['v']}")

print(f"With perfect perception P = {found.fixes.perfect:g}, so the planner is not the limit. What to fix first:")
for fix in found.fixes.single:
    print(f"  {told(fix)}: P would be {fix.probability:.4f}")

deviation = f"{found.columns.deviation:.4f} if items are independent"
print(f"Standard deviation of P from the limited data: {deviation}. Where to label more:")
for at, true, items, share in zip(
    found.columns.bins, found.columns.columns, found.columns.items, found.columns.share, strict=True
):
    print(f"  {names[true]} in {result.bins[at]} ({items} items): {share:.0%} of the variance")

if len(sys.argv) > 1:
    result.plot().savefig(sys.argv[1])

# Expected output:
# P(stops_for_pedestrians) = 0.007553 from ped x=1 v=3
# It fails with probability 0.992447. The causes add up to that:
#   0.992447: ped in [0, 10) m reported as empty; if correct, P would be 1
# Pattern of losing runs, 100% of the violation, whenever:
#   127/158 = 0.8038: lost from x=49 v=3
#   3937/24964 = 0.1577: lost from x=52 v=2
#   122047/3944312 = 0.0309: lost from x=55 v=1
# With perfect perception P = 1, so the planner is not the limit. What to fix first:
#   ped in [0, 10) m reported as empty: P would be 1.0000
# Standard deviation of P from the limited data: 0.0036 if items are independent. Where to label more:
#   ped in [0, 10) m (158 items): 100% of the variance
