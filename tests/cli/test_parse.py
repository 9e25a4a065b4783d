"""What is odd about a model: small models with known answers, and the shipped one, about which nothing is."""

import json

import pytest
from matrix_documents import write_matrices

from verifier.cli import main

MODEL = """
name = "car"
initial = "x = 0 & v = 1"
terminal = "END"
[constants]
last = 4
[variables]
x = { range = [0, 5], next = "min(x + v, last)" }
v = { range = [0, 1], next = "go" }
[inputs]
go = { range = [0, 1], default = 1 }
[environments]
here = [{ class = "ped", distance_m = 5, when = "x >= 2" }]
free = [{ class = "empty", distance_m = 5 }]
[planners.driver]
"""
SPEC = 'model "m.toml"\nplanner driver\nhit: P = ? [ F here_hit ]\n'
SEES = 'rules = [{ when = "sees(ped)", set = { go = 0 } }, { when = "v = 0", set = { go = 1 } }]'


@pytest.fixture
def asked(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def ask(planner=SEES, *options, end="x = last", wrong=1, hit="x = last & v = 1", spec=""):
        label = f'[labels]\nhere_hit = "{hit}"\n'
        (tmp_path / "m.toml").write_text(
            MODEL.replace("END", end).replace("[environments]", f"{label}[environments]") + planner
        )
        (tmp_path / "s.ltl").write_text(SPEC + spec)
        about = {"labels": ["ped", "obs", "empty"], "false_positives": "counted"}
        write_matrices(tmp_path / "cm.json", [[8, 0, wrong], [0, 8, 0], [2, 2, 9]], **about)
        assert main(["run", "s.ltl", "--cm", "cm.json", "--parse", "--json", *options]) == 0
        return json.loads(capsys.readouterr().out)

    return ask


def test_nothing_is_odd_about_a_sound_model(asked):
    found = asked()
    assert "remarks" not in found
    # Where nothing depends on the report: x = 0 and x = 1 before the pedestrian is there.
    here, free = found["cases"]
    assert (here["states"], here["same"]) == (5, 2)
    assert free["same"] == 0


def test_a_run_that_ends_on_a_false_positive_is_noted(asked, capsys):
    rule = 'rules = [{ when = "sees(ped)", set = { go = 0 } }]'
    # With v = 0 the run is over: where nobody stands a phantom ends it, and the requirement sees no difference.
    (remark,) = asked(rule, end="x = last | v = 0")["remarks"]
    assert remark.startswith("planner driver, free: the run ends on a false positive in 3 states (x = 0, v = 1), ")
    main(["run", "s.ltl", "--cm", "cm.json", "--point-only", "--json"])
    assert remark in json.loads(capsys.readouterr().out)["remarks"]
    assert "remarks" not in asked(rule, end="x = last | v = 0", wrong=0)
    assert "remarks" not in asked(rule, end="x = last | v = 0", hit="v = 0")


def test_a_class_that_is_never_reported_is_noted(asked):
    rules = SEES.replace('"sees(ped)"', '"sees(ped) | sees(obs)"')
    message = "planner driver asks about obs, which is never reported in any environment (reported: ped)"
    assert asked(rules)["remarks"] == [message]
    assert "remarks" not in asked(rules, "--env", "here")


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            '{ when = "v = 1 & !sees(ped)" }, { when = "x = 3 & !sees(ped) & v = 1" }, '
            '{ when = "sees(ped)", set = { go = 0 } }',
            "rules[1] decides nowhere; where it holds, an earlier one does",
        ),
        (
            '{ when = "sees(ped)", set = { go = 0 } }, { when = "x = 5" }',
            "rules[1] decides nowhere; it holds in no reached state on no report",
        ),
        (
            # x = 4 is reached, but the run is over there.
            '{ when = "sees(ped)", set = { go = 0 } }, { when = "x = 4" }',
            "rules[1] decides nowhere; it holds in no reached state on no report",
        ),
    ],
)  # fmt: skip
def test_a_rule_that_decides_nowhere_is_noted(asked, rules, message):
    assert f"planner driver: {message}" in asked(f"rules = [{rules}]")["remarks"]


def test_a_rule_that_what_was_set_leaves_unused_is_not_noted(asked):
    rules = 'rules = [{ when = "sees(ped)", set = { go = 0 } }, { when = "x = 3" }]'
    assert "remarks" not in asked(rules)
    assert "remarks" not in asked(rules, "--set", "last=3")


def test_a_planner_that_does_not_listen_is_noted(asked):
    found = asked('rules = [{ when = "sees(ped)", set = { go = 1 } }]')
    assert found["remarks"] == ["planner driver: nothing depends on perception in any reached state"]
    assert [each["same"] for each in found["cases"]] == [each["states"] for each in found["cases"]]


def test_all_planners_are_shown_where_none_is_named(tmp_path, capsys):
    (tmp_path / "m.toml").write_text(
        MODEL.replace("END", "x = last")
        + f"{SEES}\n[planners.other]\nmemory = {{ m = {{ range = [0, 2], initial = 1 }} }}\n"
        'rules = [{ when = "m = 1 | confirmed(t)", stay = true }]\n'
        'trackers = { t = { of = "sees(ped)", confirm = [2, 3], delete = [1, 2] } }\n'
    )
    (tmp_path / "s.ltl").write_text('model "m.toml"\nend: P >= 0.5 [ F x = last ]\n')
    assert main(["run", str(tmp_path / "s.ltl"), "--parse"]) == 0
    found = capsys.readouterr().out.splitlines()
    assert found == [
        "end: P >= 0.5 [ F (x = last) ]",
        "model car",
        "  constants last = 4",
        "  variable x in 0..5, next min(x + v, last)",
        "  variable v in 0..1, next go",
        "  input go in 0..1, default 1",
        "  initial (x = 0) & (v = 1)",
        "  terminal x = last",
        "  admissible true",
        "environment here",
        "  ped at 5 m, there where x >= 2",
        "environment free",
        "  empty at 5 m",
        "planner driver, kind rules",
        "  rules[0] sees(ped) -> go = 0",
        "  rules[1] v = 0 -> go = 1",
        "planner other, kind rules",
        "  memory m in 0..2, initial 1",
        "  tracker t of sees(ped), confirm [2, 3], delete [1, 2]",
        "  rules[0] (m = 1) | confirmed(t) -> stay",
    ]


def test_nothing_is_odd_about_the_shipped_model(root, capsys, monkeypatch):
    monkeypatch.chdir(root)
    command = ["run", "specs/car_pedestrian.ltl", "--cm", "examples/nuscenes_yolov3_class.json", "--parse", "--json"]
    for more in (["--sweep", "vmax=1,2"], ["--planner", "feedback"]):
        assert main([*command, "--planner", "all", *more]) == 0
        assert "remarks" not in json.loads(capsys.readouterr().out)
