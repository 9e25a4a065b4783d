"""Requirements that say nothing and requirements that do, told apart end to end on three models."""

from __future__ import annotations

import json

import pytest

from verifier.cli import main

# A car with a clock and a mode (0 drive, 1 wait, 2 fault). It waits while it sees a pedestrian, until the clock
# strikes 2; no planner rule ever enters the fault.
CLOCK = """
initial = "x = 0 & t = 0 & mode = 0"
terminal = "x = 4"
[variables]
x = { range = [0, 4], next = "min(x + go, 4)" }
t = { range = [0, 3], next = "(t + 1) % 4" }
mode = { range = [0, 2], next = "to" }
[inputs]
go = { range = [0, 1] }
to = { range = [0, 2] }
[labels]
waiting = "mode = 1"
fault = "mode = 2"
[environments]
crossing = [{ class = "ped", distance_m = "4 - x" }]
free = [{ class = "empty", distance_m = "4 - x" }]
[planners.waits]
rules = [
    { when = "sees(ped) & t != 2", set = { go = 0, to = 1 } },
    { when = "true", set = { go = 1, to = 0 } },
]
"""
# A car that passes a pedestrian and then a second object, and slows down for either.
TWO = """
initial = "v = 2 & (x = 0 | x = 9)"
terminal = "x = 9"
[variables]
x = { range = [0, 9], next = "min(x + v, 9)" }
v = { range = [1, 2], next = "speed" }
[inputs]
speed = { range = [1, 2] }
[labels]
slow = "v = 1"
at_ped = "x = 4 | x = 5"
[environments]
both = [{ class = "ped", distance_m = "abs(5 - x)" }, { class = "obs", distance_m = "abs(8 - x)" }]
one = [{ class = "ped", distance_m = "abs(5 - x)" }]
neither = [{ class = "empty", distance_m = "abs(5 - x)" }]
[planners.slows]
rules = [
    { when = "sees(ped) | sees(obs)", set = { speed = 1 } },
    { when = "true", set = { speed = 2 } },
]
"""
MATRICES = {
    "schema": "verifier.confusion",
    "version": 1,
    "labelling": "class",
    "axes": ["predicted", "true"],
    "labels": ["ped", "obs", "empty"],
    "bins": [{"distance_m": [0, None], "counts": [[8, 1, 1], [1, 8, 1], [1, 1, 8]]}],
}
# (environment, initial state, comparison, formula, kind of vacuity or None)
SHIPPED = [
    ("obs", "true", ">=", "ped -> F at_line", "trivial"),
    ("ped", "true", ">=", "G (ped | !at_line)", "trivial"),
    ("ped", "true", ">=", "G (!empty | F v = 0)", "trivial"),
    ("ped", "true", ">=", "x = 5 -> F at_line", "trivial"),  # the G is missing
    ("ped", "true", ">=", "F v >= 1", "trivial"),
    ("ped", "true", ">=", "G (v = 7 -> F at_line)", "constant"),  # vmax is 1
    ("ped", "true", ">=", "G x <= cells", "constant"),
    ("ped", "true", "<=", "F x > cells", "constant"),
    ("ped", "true", ">=", "G (x < 5 & v = 0 -> F v >= 1)", "antecedent"),  # it never stands so early
    ("ped", "true", ">=", "G (!(x < 5 & v = 0) | X v >= 1)", "antecedent"),
    ("ped", "true", ">=", "ped -> F at_line", None),
    ("obs", "true", ">=", "G (ped | !at_line)", None),
    ("ped", "true", ">=", "G (!ped | x < stop_cell | at_line)", None),
    ("ped", "true", ">=", "G !(x < stop_cell & v = 0)", None),  # P is 1 because the planner is good
    ("obs", "true", ">=", "G (at_line -> ped)", None),
    ("ped", "true", ">=", "G (x < 5 & v = 0 -> false)", None),
    ("ped", "true", ">=", "F at_line", None),
    ("ped", "true", ">=", "v >= 1 U x >= stop_cell", None),
    ("ped", "true", ">=", "G (v >= 1 -> F (at_line | x = cells))", None),
    ("ped", "true", "<=", "F (x = stop_cell & v >= 1)", None),
]
CLOCKED = [
    ("free", "true", ">=", "G (ped -> F waiting)", "trivial"),
    ("free", "true", ">=", "(G F ped) -> G waiting", "trivial"),
    ("crossing", "true", ">=", "x = 2 -> G mode = 0", "trivial"),
    ("crossing", "true", ">=", "F t = 0", "trivial"),
    ("crossing", "true", ">=", "G (mode = 3 -> X mode = 0)", "constant"),
    ("crossing", "true", ">=", "G t <= 3", "constant"),
    ("crossing", "true", "<=", "F (t > 3 & waiting)", "constant"),
    ("crossing", "true", ">=", "G (fault -> F mode = 0)", "antecedent"),
    ("crossing", "true", ">=", "(G F fault) -> F x = 4", "antecedent"),
    ("crossing", "true", ">=", "G (!fault | F x = 4)", "antecedent"),
    ("crossing", "true", ">=", "G (ped -> F waiting)", None),
    ("crossing", "true", ">=", "F x = 4", None),
    ("crossing", "true", ">=", "G !fault", None),
    ("crossing", "true", ">=", "G (fault -> false)", None),
    ("crossing", "true", ">=", "G (waiting -> F mode = 0)", None),
    ("crossing", "true", ">=", "G (t = 3 & x < 4 -> X t = 0)", None),
    ("crossing", "true", ">=", "(G F t = 0) -> F x = 4", None),
    ("crossing", "true", ">=", "mode = 0 U waiting", None),
    ("crossing", "true", "<=", "F (waiting & t = 3)", None),
    ("free", "true", ">=", "G !waiting", None),
]
TWO_OBJECTS = [
    ("one", "x = 0", ">=", "G (obs -> F slow)", "trivial"),
    ("one", "x = 0", ">=", "G (ped & obs & at_ped -> X slow)", "trivial"),
    ("both", "x = 0", ">=", "empty -> G !slow", "trivial"),
    ("neither", "x = 0", ">=", "(F ped) -> F slow", "trivial"),
    ("both", "x = 0", ">=", "X v >= 1", "constant"),
    ("both", "x = 0", ">=", "G (v = 0 -> F slow)", "constant"),
    ("one", "x = 0", ">=", "G (x > 9 | v > 2 -> false)", "constant"),
    ("both", "x = 0", ">=", "G (x = 1 -> X slow)", "antecedent"),  # the first step is of two cells
    ("both", "x = 9", ">=", "G (at_ped -> slow)", "ended"),
    ("both", "x = 9", ">=", "F x = 9", "ended"),
    ("one", "x = 0", ">=", "G (ped & at_ped -> X slow)", None),
    ("both", "x = 0", ">=", "G (obs -> F slow)", None),
    ("both", "x = 0", ">=", "F (at_ped & slow)", None),
    ("neither", "x = 0", ">=", "empty -> G !slow", None),
    ("neither", "x = 0", ">=", "G !slow", None),
    ("both", "x = 0", ">=", "G x != 1", None),
    ("both", "x = 0", ">=", "G (x = 4 -> slow)", None),
    ("both", "x = 0", ">=", "F x = 9", None),
    ("one", "x = 0", "<=", "G v = 2", None),
    ("both", "x = 0", ">=", "(F at_ped) & (X slow)", None),
]


@pytest.fixture
def run(tmp_path, root, capfd):
    (tmp_path / "clock.toml").write_text(CLOCK)
    (tmp_path / "two.toml").write_text(TWO)
    (tmp_path / "cm.json").write_text(json.dumps(MATRICES))
    shipped = f'model "{root}/models/car_pedestrian.toml"\nplanner published\nset vmax = 1\n'
    heads = {"shipped": shipped, "clock": 'model "clock.toml"\n', "two": 'model "two.toml"\n'}

    def call(model, requirements, *arguments, as_json=True):
        lines = [
            f"r{number}: P {comparison} {'0.0001' if comparison == '>=' else '0.9999'} [ {formula} ]"
            for number, (comparison, formula) in enumerate(requirements)
        ]
        (tmp_path / "spec.ltl").write_text(heads[model] + "\n".join(lines) + "\n")
        form = ["--json"] if as_json else []
        files = [str(tmp_path / "spec.ltl"), "--cm", str(tmp_path / "cm.json"), "--point-only", "--exact"]
        code = main(["run", *files, *arguments, *form])
        out, err = capfd.readouterr()
        assert err == ""
        return code, (json.loads(out) if as_json else out)

    return call


@pytest.mark.parametrize(
    ("model", "cases"),
    [("shipped", SHIPPED), ("clock", CLOCKED), ("two", TWO_OBJECTS)],
)
def test_ten_that_say_nothing_and_ten_that_do(run, model, cases):
    kinds = [kind for *_, kind in cases]
    assert (sum(kind is not None for kind in kinds), kinds.count(None)) == (10, 10)
    for environment, initial in dict.fromkeys((each[0], each[1]) for each in cases):
        mine = [each for each in cases if each[:2] == (environment, initial)]
        asked = [(comparison, formula) for _, _, comparison, formula, _ in mine]
        _, found = run(model, asked, "--env", environment, "--initial", initial)
        for (*_, formula, kind), result in zip(mine, found["requirements"], strict=True):
            (point,) = result["points"]
            assert [why["kind"] for why in point.get("vacuity", ())] == ([] if kind is None else [kind]), formula
            assert (result["verdict"] == "vacuous") == (kind is not None), formula
            if kind is not None:
                assert point["exact"] in ("0", "1")
