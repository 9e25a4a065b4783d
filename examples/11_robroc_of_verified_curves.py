"""One threshold for day and night? RobROC over probabilities that a model checker found.

A robot rolls towards a door and slows down when it sees a person. The score threshold of its detector decides
between safety (P of being slow beside people) and progress (P of arriving in time where nobody is). Storm finds both
for every threshold, with confusion matrices counted by day and by night.

"bold" has the better curve by day, and an equally good one by night. But by night its scores are lower throughout:
the same trade-off at another threshold. Whoever compares areas sees no loss. Nobody turns the threshold at dusk,
though; at every fixed threshold the robot is either unsafe by night or slow by day. The worst case at equal
thresholds (Robustness ROC, Pezzementi et al. 2021) shows it, and prefers "even", whose scores stay what they were.

Everything is made up here. Run it from anywhere: python examples/11_robroc_of_verified_curves.py
"""

import math
import tempfile
from pathlib import Path

import numpy as np

from verifier.checking.process import StormProcess
from verifier.closedloop.comparison import NamedCurve, compare
from verifier.closedloop.curves import TradeOffCurve
from verifier.perception.confusion import write_confusion
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.pipeline import verified
from verifier.study.case import Study
from verifier.study.inputs import read_inputs
from verifier.study.options import RunOptions

MODEL = """
initial = "tile = 0 & fast = 1"
terminal = "tile = door"
[constants]
door = 16
[variables]
tile = { range = [0, "door"], next = "min(tile + 1 + fast, door)" }
fast = { range = [0, 1], next = "rush" }
[inputs]
rush = { range = [0, 1] }
[labels]
beside_door = "tile >= door - 2 & tile < door"
[environments]
person = [{ class = "person", distance_m = "door - tile" }]
empty = [{ class = "empty", distance_m = "door - tile" }]
[planners.polite]
rules = [{ when = "sees(person)", set = { rush = 0 } }, { when = "true", set = { rush = 1 } }]
"""
SPEC = """
model "robot.toml"
slow_beside_people: P >= 0.99 [ G (person -> !(beside_door & fast = 1)) ]
arrives_in_time:    P >= 0.9  [ person | F<=9 tile = door ]
"""
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 20))
ITEMS = 10_000


def family(scores: dict[str, tuple[float, float]]) -> ConfusionCounts:
    """The counts at every threshold of a detector whose scores, before a logistic curve, are normally distributed.

    Args:
        scores: means for a true person and for nothing, within 6 m and beyond; the standard deviation is 1.
    """
    counts = np.zeros((len(THRESHOLDS), 2, 2, 2), dtype=np.int64)
    for at, threshold in enumerate(THRESHOLDS):
        for column, means in enumerate((scores["person"], scores["empty"])):
            for far, mean in enumerate(means):
                above = math.erfc((math.log(threshold / (1 - threshold)) - mean) / math.sqrt(2)) / 2
                reported = round(ITEMS * above)
                counts[at, far, :, column] = reported, ITEMS - reported
    labels = (frozenset({"person"}), frozenset())
    return ConfusionCounts("class", labels, Bins((0.0, 6.0, math.inf)), THRESHOLDS, counts)


FAMILIES = {
    "bold": family({"person": (2.2, 0.8), "empty": (-0.8, -0.8)}),
    "bold@night": family({"person": (1.0, -0.4), "empty": (-2.0, -2.0)}),
    "even": family({"person": (1.9, 0.6), "empty": (-0.8, -0.8)}),
    "even@night": family({"person": (1.8, 0.5), "empty": (-0.8, -0.8)}),
}


def verified_curve(name: str, folder: Path, storm: StormProcess) -> NamedCurve:
    """P of both requirements, least over the scenarios, at every threshold; a higher threshold is less sensitive."""
    points = []
    for threshold in THRESHOLDS:
        options = RunOptions(score_threshold=threshold, confidence=None, verdict_from="point")
        result = verified(
            Study.of(read_inputs(folder / "robot.ltl", folder / f"{name}.json", options), options), storm
        )
        safe, in_time = (min(point.probability for point in each.points) for each in result.requirements)
        points.append((1 - threshold, safe, in_time))
    detector, _, condition = name.partition("@")
    return NamedCurve("verified", detector, condition or "baseline", TradeOffCurve(*np.array(points).T))


with tempfile.TemporaryDirectory() as text, StormProcess() as storm:
    folder = Path(text)
    (folder / "robot.toml").write_text(MODEL)
    (folder / "robot.ltl").write_text(SPEC)
    for name, counts in FAMILIES.items():
        write_confusion(counts, folder / f"{name}.json")
    table = compare([verified_curve(name, folder, storm) for name in FAMILIES])

print("area under P(slow beside people) against P(arrives in time)")
for row in table.rows:
    for cell in row.cells:
        own = f"own curve {cell.own_area:.3f}"
        worst = f", worst of both {cell.area:.3f} ({cell.robustness:.0%})" if row.kind == "condition" else ""
        print(f"  {row.name:<9} {cell.detector}: {own}{worst}")
    print(f"  {row.name:<9} best: {', '.join(row.best)}")
for mean in table.means:
    print(f"  mean over conditions by the baseline (rPC): {mean.detector} {mean.relative:.2f}")

print("\nthe least of both probabilities, day and night, at the threshold where it is greatest")
for detector in table.detectors:
    worst = table.worst(detector, table.rows[1])
    least = np.minimum(worst.safety, worst.efficiency)
    at = int(least.argmax())
    print(f"  {detector}: threshold {1 - worst.sensitivity[at]:.2f}, P(slow beside people) {worst.safety[at]:.3f}, "
          f"P(arrives in time) {worst.efficiency[at]:.3f}")  # fmt: skip

# Expected output:
# area under P(slow beside people) against P(arrives in time)
#   baseline  bold: own curve 0.973
#   baseline  even: own curve 0.949
#   baseline  best: bold
#   night     bold: own curve 0.971, worst of both 0.773 (79%)
#   night     even: own curve 0.938, worst of both 0.938 (99%)
#   night     best: even
#   mean over conditions by the baseline (rPC): bold 1.00
#   mean over conditions by the baseline (rPC): even 0.99
#
# the least of both probabilities, day and night, at the threshold where it is greatest
#   bold: threshold 0.50, P(slow beside people) 0.723, P(arrives in time) 0.770
#   even: threshold 0.55, P(slow beside people) 0.896, P(arrives in time) 0.880
