"""Which detector makes the vehicle stop in time and not for nothing? Recorded drives, driven again in closed loop.

A tractor drives along a row at up to 3 m/s. In every second log somebody stands in its way; weeds grow in the row in
all of them. "sharp" sees people from afar, but now and then takes a weed for a person, and goes on doing so as the
tractor comes near. "modest" sees nobody beyond 15 m; its false positives flicker far away. Both are also run on
images in fog and against a low sun.

Counted image by image (ROC), "sharp" is better: at the same rate of false positives it finds more people. But the
tractor needs one metre to stop. It does not care about people far away, nor about an alarm that is gone before it
arrives; a weed that stays a person stops it, and then somebody has to come and start it again (20 s). Closed loop,
"modest" is the better one, until the sun stands low.

Everything is made up here, with a seed. Run it from anywhere: python examples/10_closed_loop_braking.py
"""

import numpy as np

from verifier.closedloop.closed_loop_curve import LoopSettings, standard_sensitivities
from verifier.closedloop.logs import Detections, Logs
from verifier.closedloop.pathifier import Radii
from verifier.closedloop.study import study
from verifier.closedloop.study_settings import StudySettings
from verifier.closedloop.traces import VehicleSettings
from verifier.closedloop.trade_offs import flips_between_metrics, flips_under_mutation
from verifier.perception.matching import MatchingPolicy

LOGS, SPACING_M, LENGTH_M = 60, 0.5, 40.0
CONDITIONS = {"baseline": "", "fog": "mild", "sun": "severe"}


def scores(detector, condition, kind, distance_m, habit, random):
    """The score of each look at a person or weed: a habit of the object, the distance, and noise of the image.

    Below 0 nothing is reported.
    """
    clear, reach_m = {"sharp": (2.0, 45.0), "modest": (2.5, 15.0)}[detector]
    if condition == "fog":
        reach_m = min(reach_m, 12.0)
    if condition == "sun":
        clear -= {"sharp": 0.5, "modest": 1.9}[detector]
    if kind == "weed":
        clear -= {"sharp": 2.2, "modest": 4.5}[detector]
    return clear + 0.7 * habit + 0.4 * random.standard_normal(len(distance_m)) - 3 * (distance_m > reach_m)


def drives(seed):
    """Half the logs end before a person; the sources are both detectors under all conditions."""
    random = np.random.default_rng(seed)
    along = np.arange(0, LENGTH_M, SPACING_M)
    image_log, place = np.divmod(np.arange(LOGS * len(along)), len(along))
    position = np.column_stack([along[place], np.zeros(len(place))])
    person = np.column_stack([np.full(LOGS, 36.0), random.uniform(-1, 1, LOGS)])
    weed = np.column_stack([random.uniform(15, 30, LOGS), random.uniform(-1.5, 1.5, LOGS)])
    habit = {kind: random.standard_normal(LOGS) for kind in ("person", "weed")}
    positive = np.arange(LOGS) % 2 == 0
    seen = np.flatnonzero(positive[image_log])  # the images that show a person
    detections = {}
    for detector in ("sharp", "modest"):
        for condition in CONDITIONS:
            parts = []
            for kind, images, stands in (("person", seen, person), ("weed", np.arange(len(image_log)), weed)):
                point = stands[image_log[images]]
                away = np.hypot(*(point - position[images]).T)
                score = scores(detector, condition, kind, away, habit[kind][image_log[images]], random)
                told = (score > 0) & (point[:, 0] > position[images, 0])
                parts.append((images[told], score[told], (point + 0.05 * random.standard_normal(point.shape))[told]))
            if detector == "modest":  # flickers: another place in every image, 12 to 25 m ahead
                images = np.flatnonzero(random.random(len(image_log)) < 0.12)
                offset = np.column_stack([random.uniform(12, 25, len(images)), random.uniform(-6, 6, len(images))])
                parts.append((images, random.exponential(1.2, len(images)), position[images] + offset))
            name = detector if condition == "baseline" else f"{detector}@{condition}"
            detections[name] = Detections(*map(np.concatenate, zip(*parts, strict=True)))
    return Logs(
        tuple(f"log {number}" for number in range(LOGS)),
        positive, image_log, 0.2 * place.astype(float), position, None, seen, person[image_log[seen]], detections,
    )  # fmt: skip


settings = StudySettings(
    Radii(control_m=2.0, safety_m=1.0),
    LoopSettings(VehicleSettings(), stop_cost_s=20.0, tolerance_m=0.25),
    standard_sensitivities(lowest=1e-3),
    metrics=("roc_b", "safety_radius", "closed_loop"),
    policy=MatchingPolicy("centre_bev", 1.0),
    severities={name: kind for name, kind in CONDITIONS.items() if kind},
    draws=500,
)
found = study(drives(seed=2), drives(seed=1), settings)

for table in found.tables:
    print(f"{table.metric}: area (95 % interval over logs), share of the baseline's")
    for row in table.rows:
        cells = []
        for cell in row.cells:
            low, high = cell.area_interval
            cells.append(f"{cell.detector} {cell.area:.2f} ({low:.2f}-{high:.2f}) {cell.robustness:4.0%}")
        print(f"  {row.name:<9} {'   '.join(cells)}   best: {', '.join(row.best)}")

print("\nwhere one would choose otherwise")
for flip in [each for table in found.tables for each in flips_under_mutation(table)]:
    if flip.flips:
        print(f"  {flip.to.metric}: {flip.from_.best[0]} at the baseline, {flip.to.best[0]} in {flip.to.row} "
              f"(probability of a change {flip.probability:.2f})")  # fmt: skip
for flip in flips_between_metrics(found.tables):
    if flip.flips and flip.from_.row == "baseline":
        print(f"  baseline: {flip.from_.best[0]} by {flip.from_.metric}, {flip.to.best[0]} in closed loop "
              f"(probability of a change {flip.probability:.2f})")  # fmt: skip
print(f"\nthe engine with time steps gives areas within {found.second.largest_area_difference:.3f}")

# Expected output:
# roc_b: area (95 % interval over logs), share of the baseline's
#   baseline  sharp 0.81 (0.67-0.92) 100%   modest 0.34 (0.22-0.45) 100%   best: sharp
#   fog       sharp 0.27 (0.15-0.38)  33%   modest 0.28 (0.16-0.39)  82%   best: modest
#   sun       sharp 0.69 (0.49-0.83)  86%   modest 0.12 (0.00-0.23)  35%   best: sharp
#   Any       sharp 0.27 (0.15-0.38)  33%   modest 0.12 (0.00-0.23)  35%   best: sharp
#   AnyMild   sharp 0.27 (0.15-0.38)  33%   modest 0.28 (0.16-0.39)  82%   best: modest
# safety_radius: area (95 % interval over logs), share of the baseline's
#   baseline  sharp 0.91 (0.79-1.00) 100%   modest 1.00 (0.88-1.00) 100%   best: modest
#   fog       sharp 0.88 (0.71-1.00)  96%   modest 1.00 (0.88-1.00) 100%   best: modest
#   sun       sharp 0.83 (0.69-0.97)  91%   modest 0.83 (0.70-0.95)  83%   best: modest
#   Any       sharp 0.81 (0.63-0.96)  88%   modest 0.83 (0.70-0.95)  83%   best: modest
#   AnyMild   sharp 0.88 (0.71-1.00)  96%   modest 1.00 (0.88-1.00) 100%   best: modest
# closed_loop: area (95 % interval over logs), share of the baseline's
#   baseline  sharp 0.86 (0.69-0.99) 100%   modest 1.00 (0.88-1.00) 100%   best: modest
#   fog       sharp 0.82 (0.62-0.98)  96%   modest 1.00 (0.88-1.00) 100%   best: modest
#   sun       sharp 0.76 (0.59-0.92)  88%   modest 0.70 (0.57-0.83)  70%   best: sharp
#   Any       sharp 0.73 (0.55-0.92)  85%   modest 0.70 (0.57-0.83)  70%   best: sharp
#   AnyMild   sharp 0.82 (0.62-0.98)  96%   modest 1.00 (0.88-1.00) 100%   best: modest
#
# where one would choose otherwise
#   roc_b: sharp at the baseline, modest in fog (probability of a change 0.54)
#   roc_b: sharp at the baseline, modest in AnyMild (probability of a change 0.54)
#   closed_loop: modest at the baseline, sharp in sun (probability of a change 0.75)
#   closed_loop: modest at the baseline, sharp in Any (probability of a change 0.65)
#   baseline: sharp by roc_b, modest in closed loop (probability of a change 1.00)
#
# the engine with time steps gives areas within 0.023
