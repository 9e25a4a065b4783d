"""A small system for bundles: a car that drives two cells towards a pedestrian and should stop when it sees one.

It looks twice. The detector sees a pedestrian 3 times in 4, so the car stops with probability 1 - (1/4)^2 = 15/16; it
takes nobody for a pedestrian 1 time in 10, so it drives through with probability (9/10)^2 = 81/100.
"""

import json

from matrix_documents import document_of

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
HEAD = {"schema": "verifier.confusion", "version": 1, "title": "made up"}  # first: bytes name doubts
MATRICES = HEAD | document_of([[300, 10], [100, 90]])


def write_inputs(folder, spec=SPEC, matrices=MATRICES, model=MODEL):
    """Spec, model and matrices in a folder; gives the paths of spec and matrices."""
    for name in ("specs", "models"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "specs/two_looks.ltl").write_text(spec, encoding="utf-8")
    (folder / "models/two_looks.toml").write_text(model, encoding="utf-8")
    (folder / "matrices.json").write_text(json.dumps(matrices) + "\n", encoding="utf-8")
    return folder / "specs/two_looks.ltl", folder / "matrices.json"


TRAP_MODEL = """
name = "trap"
source = "made up"
initial = "x = 0"

[variables]
x = { range = [0, 1], next = "go" }

[inputs]
go = { range = [0, 1] }

[environments]
ped = [{ class = "ped", distance_m = "5" }]

[planners.careful]
rules = [
    { when = "sees(ped)", set = { go = 0 } },
    { when = "true", set = { go = 1 } },
]
"""
"""A car that stands as long as it sees a pedestrian, for ever: two states that are never left."""
TRAP_SPEC = """model "../models/two_looks.toml"
planner careful
stays: P >= 0.9 [ F (G x = 0) ]
"""
TRAP_MATRICES = {**MATRICES, "bins": [{"distance_m": [0, 10], "counts": [[400, 10], [0, 90]]}]}
"""No miss in 400 reports: P = 1 as measured, and P = 0 as soon as one can occur."""


def write_trap(folder):
    """Spec, model and matrices of the trap."""
    return write_inputs(folder, TRAP_SPEC, TRAP_MATRICES, TRAP_MODEL)


WALKER_MODEL = """
name = "walker"
source = "made up"
initial = "x = 0"
terminal = "x >= 2"
[variables]
x = { range = [0, 3], next = "ite(u = 1, 2, ite(push = 1, 3, 1))" }
[world]
push = { range = [0, 1] }
[inputs]
u = { range = [0, 1], default = 0 }
[labels]
stopped = "x = 2"
lost = "x = 3"
[environments]
ped = [{ class = "ped", distance_m = 5 }]
[planners.walker]
rules = [{ when = "sees(ped)", set = { u = 1 } }, {}]
"""
"""A world that decides: as long as the pedestrian, who is reported with 3/4, is missed, it may wait or push. It stops
with 3/4 if the world pushes at once, and surely if it always waits."""
WALKER_SPEC = """model "../models/two_looks.toml"
planner walker
stops: P >= 0.7 [ F stopped ]
little: P <= 0.2 [ F lost ]
asked: P = ? [ F stopped ]
"""


def write_walker(folder):
    """Spec, model and matrices of the world that decides."""
    return write_inputs(folder, WALKER_SPEC, MATRICES, WALKER_MODEL)
