"""Why the car does not stop: how the requirement fails, what that hangs on, and what to do about it.

The feedback planner at up to three cells per step, with YOLOv3's detections on nuScenes by distance (Badithela,
Wongpiromsarn and Murray 2022). The car stops for the pedestrian one time in 132. Why?

There are only three ways to fail, and all are lost within the last ten metres, at the first look that misses. So
nothing that the detector does farther away matters to this planner, and P is the third power of one recall. Measuring
more would hardly change the number; seeing pedestrians would.

Run it from anywhere: python examples/06_why_it_fails.py [PLOT.png]
"""

import sys
from pathlib import Path

from verifier.confusion.matrices import label_text
from verifier.explain.story import explain_spec
from verifier.options import RunOptions
from verifier.scenarios import Selection

HERE = Path(__file__).resolve().parent
SELECTION = Selection(("feedback",), ("ped",), None, {"vmax": 3}, {}, ("stops_for_pedestrians",))

result = explain_spec(
    HERE.parent / "specs/car_pedestrian.ltl",
    HERE / "nuscenes_yolov3_class.json",
    RunOptions(SELECTION, confidence=None),
)
names = [label_text(label) for label in result.labels]
(each,) = result.explained
found = each.explanation
print(f"P({each.result.name}) = {each.point.probability:.6f} from {each.point.scenario}")

print(f"It fails in {len(found.runs)} ways, which are {found.covered:.0%} of the violation:")
for run in found.runs:
    last = run.steps[run.irrevocable - 1]
    ((label, at),) = last.there
    print(
        f"  {run.exact} = {run.probability:.4f}: from x={last.before['x']} v={last.before['v']} the "
        f"{'+'.join(label)} in {result.bins[at]} is missed, and nothing can help any more"
    )

print("Where it is lost:")
for cell in each.cells:
    seen = f"{names[cell.true]} in {result.bins[cell.bin]} reported as {names[cell.predicted]}"
    print(f"  {cell.decisive:.0%} with {seen} ({cell.items} times in the data)")

print(f"With perfect perception P = {found.fixes.perfect:g}, so the planner is not the limit. What to fix first:")
for fix in found.fixes.single:
    seen = f"{names[fix.true]} in {result.bins[fix.bin]} reported as {names[fix.predicted]}"
    print(f"  {seen}: P would be {fix.probability:.4f}")

print(f"Standard deviation of P from the limited data: {found.columns.deviation:.4f}. Where to label more:")
for at, true, items, share in zip(
    found.columns.bins, found.columns.columns, found.columns.items, found.columns.share, strict=True
):
    print(f"  {names[true]} in {result.bins[at]} ({items} items): {share:.0%} of the variance")

if len(sys.argv) > 1:
    from verifier.cli.explain_plots import explain_plot

    Path(sys.argv[1]).write_bytes(explain_plot(result, sys.argv[1]))

# Expected output:
# P(stops_for_pedestrians) = 0.007553 from ped x=1 v=3
# It fails in 3 ways, which are 100% of the violation:
#   127/158 = 0.8038: from x=49 v=3 the ped in [0, 10) m is missed, and nothing can help any more
#   3937/24964 = 0.1577: from x=52 v=2 the ped in [0, 10) m is missed, and nothing can help any more
#   122047/3944312 = 0.0309: from x=55 v=1 the ped in [0, 10) m is missed, and nothing can help any more
# Where it is lost:
#   100% with ped in [0, 10) m reported as empty (127 times in the data)
# With perfect perception P = 1, so the planner is not the limit. What to fix first:
#   ped in [0, 10) m reported as empty: P would be 1.0000
# Standard deviation of P from the limited data: 0.0036. Where to label more:
#   ped in [0, 10) m (158 items): 100% of the variance
