"""Where false positives can arise at all, and which requirements say nothing: in every result, once."""

import json

import pytest
from matrix_documents import write_matrices

from verifier.cli import main

CM = "examples/nuscenes_yolov3_class.json"
SPEC = "specs/car_pedestrian.ltl"
STARTS = "false positives arise only in the bins of declared "
HERE = STARTS + "places, here in environment empty; the model has no fields of view"


@pytest.fixture
def asked(root, monkeypatch, capfd):
    monkeypatch.chdir(root)

    def call(*arguments):
        code = main([*map(str, arguments)])
        out, err = capfd.readouterr()
        assert err == ""
        return code, out

    return call


def said(found):
    return [remark for remark in found["remarks"] if "false positives arise" in remark]


@pytest.mark.parametrize(
    "command",
    [
        ["run", SPEC, "--cm", CM, "--point-only"],
        ["explain", SPEC, "--cm", CM, "--point-only", "--requirement", "never_stalls_early"],
        ["require", SPEC, "--cm", CM, "--requirement", "stops_for_pedestrians"],
        ["compare", SPEC, "--cm", f"a={CM}", "--cm", f"b={CM}", "--draws", "100"],
    ],
    ids=lambda command: command[0],
)
def test_every_result_says_once_where_false_positives_can_arise(asked, command):
    _, out = asked(*command, "--json")
    assert said(json.loads(out)) == [HERE]


def test_it_depends_on_the_policy_and_on_what_is_declared(asked):
    run = ["run", SPEC, "--cm", CM, "--point-only", "--json", "--requirement", "never_stalls_early"]

    def remark(*arguments):
        return said(json.loads(asked(*run, *arguments)[1]))

    assert remark("--false-positives", "ignore") == []  # there are none at all
    # An alarm beside an object arises in its bin: more places, and still none elsewhere.
    beside = STARTS + "places and objects, here in environment ped, obs, empty; the model has no fields of view"
    assert remark("--false-positives", "background") == [beside]
    assert remark("--env", "ped") == [
        STARTS + "places, of which there are none here; the model has no fields of view"
    ]


def test_fields_of_view_are_all_told_and_what_is_drawn_beside_objects(asked):
    run = ["run", SPEC, "--cm", CM, "--point-only", "--json", "--requirement", "stops_for_pedestrians"]

    def remark(*arguments):
        return said(json.loads(asked(*run, *arguments)[1]))

    everywhere = "false positives arise in every bin of the field of view, {}, without an object"
    assert remark("--set", "view_m=10") == [everywhere.format("0 to 10 m")]
    both = "0 to 10 m or 0 to 20 m"
    assert remark("--sweep", "view_m=10,20") == [everywhere.format(both)]
    some = "none (places alone) or 0 to 10 m"
    assert remark("--sweep", "view_m=0,10") == [everywhere.format(some)]
    beside = everywhere.format("0 to 10 m") + ", and beside every object"
    assert remark("--set", "view_m=10", "--false-positives", "background") == [beside]


def test_an_empty_road_with_a_bad_nearest_bin(asked, tmp_path):
    """A false positive in every second frame within 10 m: a road that declares its place farther away never
    brakes."""
    (tmp_path / "road.toml").write_text("""
initial = "x = 0 & s = 0"
terminal = "x = 3"
[variables]
x = { range = [0, 3], next = "x + 1" }
s = { range = [0, 1], next = "brake" }
[inputs]
brake = { range = [0, 1] }
[environments]
far = [{ class = "empty", distance_m = "25" }]
near = [{ class = "empty", distance_m = "5" }]
ped = [{ class = "ped", distance_m = "5" }]
[planners.brakes]
rules = [{ when = "sees(ped)", set = { brake = 1 } }, { when = "true", set = { brake = 0 } }]
""")
    counts = [[[9, 1], [1, 1]], [[9, 0], [1, 2]]]
    write_matrices(tmp_path / "cm.json", *counts, edges=(0, 10, None))
    (tmp_path / "s.ltl").write_text('model "road.toml"\nno_false_stop: P >= 0.5 [ G s = 0 ]\n')
    run = ["run", tmp_path / "s.ltl", "--cm", tmp_path / "cm.json", "--point-only", "--exact", "--json"]
    exact = {}
    for environment in ("far", "near"):
        found = json.loads(asked(*run, "--env", environment)[1])
        (point,) = found["requirements"][0]["points"]
        exact[environment] = point["exact"]
        remark = STARTS + f"places, here in environment {environment}; the model has no fields of view"
        assert said(found) == [remark]
    assert exact == {"far": "1", "near": "1/8"}


def test_the_table_says_where_and_why_a_requirement_is_vacuous(asked, tmp_path, root):
    spec = tmp_path / "s.ltl"
    head = f'model "{root}/models/car_pedestrian.toml"\nplanner published\nset vmax = 1\n'
    spec.write_text(
        head + "answers: P >= 0.1 [ ped -> F at_line ]\nearly: P >= 0.9 [ G (x < 5 & v = 0 -> X v = 1) ]\n"
    )
    run = ["run", spec, "--cm", CM, "--point-only"]
    code, out = asked(*run)
    assert code == 3
    lines = out.splitlines()
    reason = "the requirement holds on every path"
    assert f"answers, planner published, obs x=1 v=1: vacuous, ped is false in environment obs: {reason}" in lines
    never = "'x < 5 & v = 0' never holds from this initial state on"
    assert f"early, planner published, ped x=1 v=1: {never}: {reason} without being tested" in lines
    rows = {line.split()[0]: line for line in lines if line}
    # The worst scenario is one that says something; the verdict of the run is the more severe one.
    assert " ped x=1 v=1 " in rows["answers"]
    assert "  satisfied" in rows["answers"]
    assert rows["early"].endswith("  vacuous")
    assert lines[-1] == "verdict: vacuous"
    code, out = asked(*run, "--all-scenarios")
    assert code == 3
    places = [line for line in out.splitlines() if line.startswith("answers  ")]
    assert ["  vacuous" in line for line in places] == [False, True, True]
    code, out = asked(*run, "--json", "--requirement", "answers")
    found = json.loads(out)
    assert (code, found["verdict"]) == (0, "satisfied")
    (requirement,) = found["requirements"]
    assert [point["verdict"] for point in requirement["points"]] == ["satisfied", "vacuous", "vacuous"]
    kinds = [[why["kind"] for why in point.get("vacuity", [])] for point in requirement["points"]]
    assert kinds == [[], ["trivial"], ["trivial"]]
