"""What is said of worlds that cannot be: the texts that the specification of the language asks for, one by one."""

import pytest
from matrix_documents import write_matrices

from verifier.cli import main

MODEL = """step_s = 1.0
initial = "x = 0 & y = 0"
terminal = "x = 6"
[variables]
x = { range = [0, 6], next = "min(x + go, 6)" }
y = { range = [0, 6], next = "min(y + walk, 6)" }
[world]
walk = { range = [0, 1], probability = { 1 = "ite(y < 2, 0.3, 0.9)", 0 = "rest" } }
[inputs]
go = { range = [0, 2], default = 1 }
[environments]
ped = [{ name = "child", class = "ped", distance_m = "20 - x" }]
[planners.p]
rules = [{ when = "sees(ped)", set = { go = 2 } }, {}]
"""
DRAWN = '{ 1 = "ite(y < 2, 0.3, 0.9)", 0 = "rest" }'
DECIDED = f"probability = {DRAWN}", 'admissible = "true"'
REACHED = "a: P = ? [ F x = 6 ]"
LABELS = ["ped", "car", "empty"]


def asked(folder, changes, requirement=REACHED, *options):
    model = MODEL
    for old, new in changes:
        assert model.count(old) == 1, old
        model = model.replace(old, new)
    (folder / "m.toml").write_text(model)
    (folder / "s.ltl").write_text(f'model "m.toml"\n{requirement}\n')
    bins = [
        {"distance_m": ends, "where": {"occlusion": [k, k + 1]}, "counts": [[7, 1, 1], [1, 5, 1], [3, 2, 9]]}
        for ends in ([0, 10], [10, 20], [20, 40])
        for k in range(2 if "occlu" in model else 1)
    ]
    edges = [0, 1, 2] if "occlu" in model else [0, 1]
    more = {"false_positives": "counted", "variables": [{"name": "occlusion", "of": "object", "edges": edges}]}
    write_matrices(folder / "cm.json", labels=LABELS, bins=bins, **more)
    return main(["run", str(folder / "s.ltl"), "--cm", str(folder / "cm.json"), "--point-only", *options])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([('"sees(ped)"', '"sees(ped) & y = 0"')], "'y' is hidden from planners: the world moves it"),
        ([(DRAWN, '{ 1 = "ite(y < 2, 0.3, 0.9)", 0 = "ite(y < 2, 0.7, 0.2)" }')],
         "in state y = 2 the probabilities of 'walk' sum to 1.1\n  hint: write one of them as \"rest\""),
        ([(DRAWN, "{ 1 = [0.6, 1], 0 = [0.45, 1] }")],
         "no probabilities of 'walk' lie in the intervals: the lower ends sum to 1.05"),
        ([(DRAWN, '{ "-1" = 0.1, 0 = "rest" }')], "'walk' can be -1, which is outside 0..1"),
        ([(f"probability = {DRAWN}", 'admissible = "walk = 1 & x < 3"')],
         "in state x = 3, y = 2 the world has no admissible move; terminal states need none"),
        ([('class = "ped"', 'class = { ped = "x < 3", car = "x > 1" }')],
         "in state x = 2, y = 0 'child' is ped and car; exactly one condition must hold"),
        ([('class = "ped"', 'class = { ped = "x < 3" }')], "in state x = 3, y = 0 'child' is of no class"),
        ([('class = "ped"', 'class = "ped", at = { occluson = 0 }')],
         "the matrices have no variable 'occluson'\n  hint: did you mean 'occlusion'?"),
        ([('- x" }]', '- x" }, { class = "car", distance_m = 3, at = { occlusion = 0 } }]')],
         "the matrices depend on 'occlusion', and 'child' does not say it"),
        ([("sees(ped)", "sees(ped, within = 15)")], "within = 15: no bin ends there; edges are 0, 10, 20, 40 m"),
        ([("sees(ped)", "report(worker) = ped")], "unknown object 'worker'\n  hint: known: child"),
        ([(", default = 1", ""), (", {}]", "]")], "no rule applies in state x = 0, y = 0"),
        ([("set = { go = 2 }", "stay = true")], "stay = true would stop the world too; set the inputs"),
        ([("[planners.p]", '[planners.p]\nreading = "any"'), ("sees(ped)", "count(ped) >= 1"),
          ("step_s = 1.0", "step_s = 1.0\nframe_s = 0.5")],
         'count(ped) means the last frame; reading = "any" goes with sees only'),
        ([("[environments]", "[field_of_view]\ndistance_m = [0, 40]\n[environments]"),
          ('class = "ped"', 'class = "empty"')],
         "the field of view draws false positives in every bin already; remove the empty place"),
        ([(", {}]", ', {}, { when = "x = 1", set = { go = 0 } }]')],
         "rules[2] is never reached: rules[1] has no 'when'"),
        ([("min(x + go, 6)", "x + go - 3")], "the next 'x' is -2, outside 0..6"),
        ([("step_s = 1.0", "step_s = 1.0\nframe_s = 0.4")],
         "step_s / frame_s = 2.5: expected a whole number of frames per step"),
        ([('"x = 0 & y = 0"', '"x + y = 0"'), ("[0, 6], next = \"min(x", "[0, 60000], next = \"min(x"),
          ("[0, 6], next = \"min(y", "[0, 60000], next = \"min(y")],
         "initial leaves 3.6e+09 candidates; fix variables: x = 0"),
        ([('class = "ped"', 'class = "ped", when = "present(ped)"')],
         "environments.ped: these depend on each other in a circle: present(ped) -> present(ped)"),
        ([("y = { range = [0, 6]", 'y = { range = [0, "ite(present(ped), 6, 7)"]')],
         "present(...) cannot be used here, where constants are alone"),
        ([("[environments]", "[field_of_view]\ndistance_m = [40, 0]\n[environments]")],
         "m.toml:12: field_of_view.distance_m: expected low <= high, got 40..0"),
        ([("sees(ped)", "sees(pad)")],
         "m.toml:13: planners.p: the matrices have no class 'pad'\n  hint: did you mean 'ped'? known: car, ped"),
        ([('class = "ped"', 'class = { ped = "x < 3", bus = "x > 2" }')],
         "m.toml:12: environments.ped: the class-labelled matrices have no column for true label bus"),
        ([('name = "child", class = "ped"', 'class = { ped = "x < 3" }')],
         "in state x = 3, y = 0 an object is of no class"),
        ([("set = { go = 2 }", "set = { goo = 2 }")],
         "m.toml:14: planners.p.rules[0].set: unknown input 'goo'\n  hint: did you mean 'go'?"),
        ([(DRAWN, '{ 1 = "1 / x", 0 = "rest" }')], "m.toml:8: world.walk.probability.1: division by zero at x = 0"),
        ([("[planners.p]", '[planners.p]\ntrackers = { t = { of = "sees(ped)", log_odds = { hit = 1, miss = -1, '
           "range = [0, 3], confirm = 1, delete = 1 } } }")],
         "m.toml:14: planners.p.trackers.t.log_odds.delete: expected a whole number from 0 to 0, got 1"),
    ],
)  # fmt: skip
def test_worlds_that_cannot_be_are_named(tmp_path, capsys, changes, said):
    assert asked(tmp_path, changes) == 4
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "requirement", "options", "code", "said"),
    [
        ([("step_s = 1.0\n", "")], "a: T = ? [ F x = 6 ]", [], 4,
         "T needs the duration of a step: step_s = ... in the model"),
        ([], "a: T = ? [ F x = 5 ]", [], 0, "has probability 0.570527 < 1; ask P, or R given"),  # 91884/161051
        ([], REACHED, ["--max-states", "5"], 6,
         "more than 5 states are reachable (stopped at depth 2; 7 new in the last step)\n"
         "  hint: the variables with most values: x 5, y 3"),
        ([DECIDED], "a: P = ? [ G x < 6 given F y = 2 ]", [], 6,
         "only 'F a given F b' is known where the world decides"),
        ([], "a: P = ? [ F y = 2 ]\nb: P = ? [ F y = 2 given F (x = 1 & x = 2) ]", [], 6,
         "note: b: no answer. planner p"),
        ([], "a: P = ? [ F y = 2 given F x = 6 given F x = 1 ]", [], 4,
         "s.ltl:2:34: expected ']' or an operator, found 'given'"),
        ([], "a: P = ? [ F present(chidl) ]", [], 4, "s.ltl:2:14: unknown object 'chidl'\n"),
        ([], REACHED, ["--initial", "present(chidl)"], 4, "--initial:1:1: unknown object 'chidl'\n"),
        ([], "a: P = ? [ F y = 2 given F x = ]", [], 4, "s.ltl:2:32: expected a number, found ']'"),
        ([("[planners.p]", '[environments.late]\nobjects = [{ class = "ped", distance_m = 3 }]\ninitial = "x = 3"\n'
           "[planners.p]")], REACHED, [], 2,
         "no state satisfies the initial condition of the model and the spec in environment late"),
        ([("step_s = 1.0", "step_s = 1.0\nweight = 0")], "a: P = ? over profile [ F y = 2 ]", [], 4,
         "m.toml:2: weight: planner p: the weights of all scenarios are 0, so there is no mean"),
    ],
)  # fmt: skip
def test_questions_that_have_no_answer_are_named(tmp_path, capsys, changes, requirement, options, code, said):
    assert asked(tmp_path, changes, requirement, *options) == code
    told = capsys.readouterr()
    assert said in told.err + told.out


def test_a_name_of_another_environment_is_no_error(tmp_path):
    other = 'other = [{ name = "worker", class = "ped", distance_m = 3 }]\n[planners.p]'
    assert asked(tmp_path, [("sees(ped)", "report(worker) = ped"), ("[planners.p]", other)]) == 0
