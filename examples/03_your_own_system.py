"""A system of your own: a delivery robot in a corridor, a detector with two classes, a requirement with a deadline.

Everything a run needs is three small texts: matrices (JSON), a system model (TOML), and a spec (LTL). The robot
rolls one or two tiles per step towards a door, slows down when it sees a person, and must not still be moving fast
next to one. A second requirement says that it gets to the door in time.

Run it from anywhere: python examples/03_your_own_system.py
"""

import tempfile
from pathlib import Path

import verifier

MATRICES = """{
  "schema": "verifier.confusion", "version": 1,
  "title": "a detector that is better up close",
  "labelling": "class", "axes": ["predicted", "true"], "labels": ["person", "empty"],
  "false_positives": "counted",
  "bins": [
    {"distance_m": [0, 3], "counts": [[95, 2], [5, 198]]},
    {"distance_m": [3, null], "counts": [[70, 1], [30, 199]]}
  ]
}"""
MODEL = """
initial = "tile = 0 & fast = 1"
terminal = "tile = door"
[constants]
door = 8
[variables]
tile = { range = [0, "door"], next = "min(tile + 1 + fast, door)" }
fast = { range = [0, 1], next = "rush" }
[inputs]
rush = { range = [0, 1] }
[labels]
beside_door = "tile >= door - 2 & tile < door"
[environments]
person_at_door = [{ class = "person", distance_m = "door - tile" }]
nobody = [{ class = "empty", distance_m = "door - tile" }]
[planners.polite]
rules = [{ when = "sees(person)", set = { rush = 0 } }, { when = "true", set = { rush = 1 } }]
"""
SPEC = """
model "robot.toml"
slow_beside_people: P >= 0.9 [ G (person -> !(beside_door & fast = 1)) ]
arrives_in_time:    P >= 0.99 [ F<=6 tile = door ]
"""

with tempfile.TemporaryDirectory() as folder:
    for name, text in (("robot.toml", MODEL), ("robot.ltl", SPEC), ("detector.json", MATRICES)):
        (Path(folder) / name).write_text(text)
    result = verifier.run(Path(folder) / "robot.ltl", Path(folder) / "detector.json")

for each in result.requirements:
    worst = each.worst_point
    print(f"{each.name:<18} {each.target_text:<8} P = {worst.probability:.4f} in {worst.environment}")
    print(f"{'':<18} {each.verdict.value}")

# Expected output:
# slow_beside_people >= 0.9   P = 0.6730 in person_at_door
#                    violated
# arrives_in_time    >= 0.99  P = 0.8319 in person_at_door
#                    violated
