"""A small system for bundles: a car that drives two cells towards a pedestrian and should stop when it sees one.

It looks twice. The detector sees a pedestrian 3 times in 4, so the car stops with probability 1 - (1/4)^2 = 15/16; it
takes nobody for a pedestrian 1 time in 10, so it drives through with probability (9/10)^2 = 81/100.
"""

import json

MODEL = """
name = "two_looks"
source = "made up"
initial = "x = 0 & s = 0"
terminal = "x = 2 | s = 1"

[variables]
x = { range = [0, 2], next = "min(x + go, 2)" }
s = { range = [0, 1], next = "1 - go" }

[inputs]
go = { range = [0, 1] }

[environments]
ped = [{ class = "ped", distance_m = "5" }]
empty = [{ class = "empty", distance_m = "5" }]

[planners.careful]
rules = [
    { when = "sees(ped)", set = { go = 0 } },
    { when = "true", set = { go = 1 } },
]
"""
SPEC = """model "../models/two_looks.toml"
planner careful
stops: P >= 0.9 [ !ped | F s = 1 ]
drives_on: P >= 0.85 [ ped | F x = 2 ]
asked: P = ? [ F s = 1 ]
"""
MATRICES = {
    "schema": "verifier.confusion",
    "version": 1,
    "title": "made up",
    "labelling": "class",
    "axes": ["predicted", "true"],
    "labels": ["ped", "empty"],
    "bins": [{"distance_m": [0, 10], "counts": [[300, 10], [100, 90]]}],
}


def write_inputs(folder, spec=SPEC, matrices=MATRICES):
    """Spec, model and matrices in a folder; gives the paths of spec and matrices."""
    for name in ("specs", "models"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "specs/two_looks.ltl").write_text(spec, encoding="utf-8")
    (folder / "models/two_looks.toml").write_text(MODEL, encoding="utf-8")
    (folder / "matrices.json").write_text(json.dumps(matrices) + "\n", encoding="utf-8")
    return folder / "specs/two_looks.ltl", folder / "matrices.json"
