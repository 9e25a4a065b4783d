"""What would the detector have to do? The least recall with which the car stops for pedestrians 19 times in 20.

With YOLOv3's published matrices the car stops one time in five, or less. Here the question is turned round: which
recall, in which distance bins, would be enough for each planner at up to 3 cells per step? The answers are found by
search and confirmed by Storm with exact fractions. The floor is more than that: it is proven for every matrix with so
much recall, however the detector goes wrong otherwise.

Run it from anywhere: python examples/07_what_perception_must_do.py
"""

from pathlib import Path

import verifier

HERE = Path(__file__).resolve().parent
FILES = (HERE.parent / "specs/car_pedestrian.ltl", HERE / "nuscenes_yolov3_class.json")


def ask(requirement, *planners, **question):
    """The answers of these planners, for maximal speed 3."""
    return verifier.require(*FILES, requirement, planner=planners, set={"vmax": 3}, **question).answers


print("stops_for_pedestrians: P >= 0.95")
for answer in ask("stops_for_pedestrians", "published", "feedback", "cautious", floor=True):
    print(f"  planner {answer.planner}: P = {answer.measured.probability:.6f} as measured")
    for cell, floor in zip(answer.cells, answer.floor.floors, strict=True):
        print(
            f"    {cell.bin:<10} recall {cell.measured.recall:.3f} measured, {float(cell.required):.6f} required, "
            f"{float(floor):.6f} certified"
        )

print("the same for the published planner, every bin as cheap as the others")
(answer,) = ask("stops_for_pedestrians", "published", mode="cost")
for cell in answer.cells:
    print(f"    {cell.bin:<10} recall {float(cell.required):.6f}")
print(f"    price {float(answer.value):.6f}; Storm confirms P = {answer.at_value.exact}, exactly")

print("stops_only_for_pedestrians: P >= 0.999")
(answer,) = ask("stops_only_for_pedestrians", "cautious", floor=True)
(cell,), (floor,) = answer.cells, answer.floor.floors
print(f"    {cell.bin} obstacles: recall {float(cell.required):g} is enough while none is taken for a pedestrian,")
print(f"    and {float(floor):.6f} whatever an obstacle that is missed is taken for")

# Expected output:
# stops_for_pedestrians: P >= 0.95
#   planner published: P = 0.000449 as measured
#     [0, 10) m  recall 0.196 measured, 0.983048 required, 0.983048 certified
#     [50, 60) m recall 0.012 measured, 0.983048 required, 0.983048 certified
#   planner feedback: P = 0.007553 as measured
#     [0, 10) m  recall 0.196 measured, 0.983048 required, 0.983048 certified
#   planner cautious: P = 0.196203 as measured
#     [0, 10) m  recall 0.196 measured, 0.950000 required, 0.950001 certified
# the same for the published planner, every bin as cheap as the others
#     [0, 10) m  recall 1.000000
#     [50, 60) m recall 0.950000
#     price 1.742141; Storm confirms P = 19/20, exactly
# stops_only_for_pedestrians: P >= 0.999
#     [0, 10) m obstacles: recall 0 is enough while none is taken for a pedestrian,
#     and 0.999001 whatever an obstacle that is missed is taken for
