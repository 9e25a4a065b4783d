"""Planners from elsewhere: one planner in five spellings is one chain, and what cannot be read is named."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from verifier.base.errors import InputError, LimitError, Place, UsageError
from verifier.language.expressions import evaluate, parse_expression
from verifier.language.expressions.syntax import Name, Number, Operation
from verifier.perception.confusion import EMPTY, ConfusionMatrices
from verifier.systems.model_parts import Range
from verifier.systems.planners.functions import with_planner
from verifier.systems.planners.gr1c import _is_pair
from verifier.systems.planners.prism import module_of
from verifier.systems.planners.tables import ANY, DecisionTable, table_of
from verifier.systems.reader import read_model
from verifier.systems.scene import SkeletonOptions
from verifier.systems.skeleton import build_skeleton

PED, OBS = frozenset({"ped"}), frozenset({"obs"})
MATRICES = ConfusionMatrices(
    *("class", (PED, OBS, EMPTY), np.array([0.0, 5, 10])),
    np.array([[[6, 1, 0], [1, 7, 0], [3, 2, 1]], [[5, 1, 0], [1, 6, 1], [4, 3, 9]]]),
)
MODEL = """
initial = "x = 0"
terminal = "x >= 12"
[variables]
x = { range = [0, 16], next = "x + step" }
[inputs]
step = { range = [0, 3]DEFAULT }
[environments]
ped = [{ class = "ped", name = "walker", distance_m = "ite(x < 8, 7, 2)" }]
both = [{ class = "ped", distance_m = 7 }, { class = "obs", distance_m = 1, name = "walker" }]
[planners.driver]
"""
# Once seen it goes on slowly, seen twice in a row it runs; it remembers what the last two reports were.
RULES = """
memory = { node = { range = [0, 3], initial = 0 } }
rules = [
    { when = "sees(ped) & (node = 1 | node = 3)", set = { step = 3, node = 3 } },
    { when = "sees(ped)", set = { step = 1, node = 1 } },
    { when = "true", set = { step = 2, node = 2 } },
]"""
CSV = """node,sees(ped),->,step,node'
1,true,,3,3
3,true,,3,3
0,true,,1,1
2,true,,1,1
*,false,,2,2
"""
TABLE = """
kind = "table"
file = "rules.csv"
memory = { node = { range = [0, 3], initial = 0 } }
"""
PRISM = """mdp
const int fast = 3;
formula again = node = 1 | node = 3;
module other
  [] true -> true;
endmodule
module driver  // as the rules say it
  node : [0..3] init 0;
  [go] sees_ped & again -> (step'=fast) & (node'=3);
  [] sees_ped & !again -> 1:(step'=1) & (node'=sees_ped ? 1 : 2);
  [] !sees_ped -> (step' = mod(5, 3)) & (node' = min(2, max(1, 0)) + 1);
endmodule
"""
GR1C = {
    "version": 1,
    "gr1c": "0.13.0",
    "ENV": [{"ped": "boolean"}],
    "SYS": [{"v": [0, 3]}],
    "nodes": {
        "0x1": {"state": [1, 1], "mode": 0, "rank": 1, "initial": True, "trans": ["0x3", "0x2"]},
        "0x2": {"state": [0, 2], "mode": 0, "rank": 1, "initial": True, "trans": ["0x1", "0x2"]},
        "0x3": {"state": [1, 3], "mode": 0, "rank": 1, "initial": False, "trans": ["0x3", "0x2"]},
    },
}
READS = 'kind = "gr1c"\nfile = "ctrl.json"\nreads = { ped = "sees(ped)" }\nsets = { step = "v" }\n'


def model_of(folder, planner=RULES, default="", **files):
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    path = folder / "m.toml"
    path.write_text(MODEL.replace("DEFAULT", f", default = {default}" if default != "" else "") + planner)
    return read_model(path)


def chain_of(model, environment="ped", planner="driver", matrices=MATRICES):
    system = model.inside(environment).instantiate()
    skeleton = build_skeleton(system, system.planners[planner], environment, matrices, SkeletonOptions())
    counts = matrices.counts
    return skeleton, skeleton.fill(counts / counts.sum(axis=1, keepdims=True))


def assert_same(one, other):
    (first, numbers), (second, others) = one, other
    assert {name: value.tolist() for name, value in first.valuations.items()} == {
        name: value.tolist() for name, value in second.valuations.items()
    }
    for name in ("indptr", "indices", "starts", "terminal"):
        assert np.array_equal(getattr(first, name), getattr(second, name))
    assert np.array_equal(numbers, others)


def in_python(cases):
    again = cases["sees(ped)"] & ((cases["node"] == 1) | (cases["node"] == 3))
    kinds = [again, cases["sees(ped)"]]
    return {"step": np.select(kinds, [3, 1], 2), "node": np.select(kinds, [3, 1], 2)}


def met():
    """(x, node) that are reached, one after the other."""
    found = {(0, 0)}
    pending = list(found)
    for x, node in pending:
        if x < 12:
            step = 3 if node in (1, 3) else 1
            fresh = {(x + step, step), (x + 2, 2)} - found
            found |= fresh
            pending += fresh
    return found


@pytest.mark.parametrize("environment", ["ped", "both"])
def test_one_planner_in_five_spellings_is_one_chain(tmp_path, environment):
    rules = chain_of(model_of(tmp_path), environment)
    assert set(zip(*(rules[0].valuations[name].tolist() for name in ("x", "node")), strict=True)) == met()
    table = model_of(tmp_path, TABLE, rules_csv=CSV)
    assert_same(rules, chain_of(table, environment))
    prism = model_of(tmp_path, 'kind = "prism"\nfile = "d.prism"\nmodule = "driver"\n', d_prism=PRISM)
    assert_same(rules, chain_of(prism, environment))
    assert_same(rules, chain_of(model_of(tmp_path, READS, ctrl_json=json.dumps(GR1C)), environment))
    memory = {"node": {"range": [0, 3], "initial": 0}}
    python = with_planner(model_of(tmp_path), "mine", in_python, asks=["sees(ped)"], memory=memory)
    assert_same(rules, chain_of(python, environment, "mine"))


def test_a_shipped_planner_written_out_as_a_table_gives_the_same_chains(root, tmp_path):
    text, constants = (root / "models/car_pedestrian.toml").read_text(), {"vmax": 3, "study_vmax": 3}
    lines = ["x,v,sees(ped),sees(obs),->,speed"]
    for x, v, *seen in itertools.product(range(1, 17), range(4), (0, 1), (0, 1)):
        told = ",".join("true" if each else "false" for each in seen)
        lines.append(f"{x},{v},{told},,{cautious_speed(x, v, *seen)}")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    (tmp_path / "m.toml").write_text(f'{text}\n[planners.written]\nkind = "table"\nfile = "t.csv"\n')
    system = read_model(tmp_path / "m.toml").instantiate(constants)
    matrices = ConfusionMatrices("class", (PED, OBS, EMPTY), np.array([0, np.inf]), MATRICES.counts[:1])
    rates = matrices.counts / matrices.counts.sum(axis=1, keepdims=True)
    for environment in ("ped", "obs", "empty"):
        rules, written = (
            build_skeleton(system, system.planners[name], environment, matrices, SkeletonOptions())
            for name in ("cautious", "written")
        )
        assert_same((rules, rules.fill(rates)), (written, written.fill(rates)))


def cautious_speed(x, v, ped, obs):
    """What the planner `cautious` does at vmax = 3, where the stop cell is 7."""
    if x >= 7:
        return min(v + 1, 3)
    if v == 0:
        return 1
    if v == 1 and x == 6 and ped:
        return 0
    if v >= 2 and (x + v + v * (v + 1) // 2 > 7 or ped):
        return v - 1
    faster = v < 3 and x + v + (v + 1) * (v + 2) // 2 <= 7 and not ped and not obs
    return v + 1 if faster else v


def refusal(folder, monkeypatch, planner, **files):
    """What is said where a model is read, or its chain built."""
    monkeypatch.chdir(folder)
    with pytest.raises(InputError) as caught:
        chain_of(model_of(Path(), planner, **files))
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "rules.csv: the file is empty; expected a line with the names of the columns"),
        ("x,->,step\n", "rules.csv:1: expected at least one row below the names of the columns"),
        (
            "x,step\n0,1\n",
            "rules.csv:1: expected one column named ->, found 0\n"
            "  hint: x,sees(ped),->,speed: conditions, the column ->, then what is set",
        ),
        ("->,step\n,1\n", "rules.csv:1: expected at least one condition before ->"),
        ("x,->\n1,\n", "rules.csv:1: expected at least one result behind ->"),
        ("x,x,->,step\n1,1,,1\n", "rules.csv:1: the column 'x' occurs twice"),
        ("x,->,node,node'\n1,,1,1\n", "rules.csv:1: the column 'node' occurs twice"),
        ("x,,->,step\n1,1,,1\n", "rules.csv:1: a column has no name"),
        ("x,->,a + 1\n1,,1\n", "rules.csv:1: expected the name of an input or of memory behind ->, got 'a + 1'"),
        (
            "x,->,step\n1,1\n",
            "rules.csv:2: expected 3 cells, found 2: '1,1'\n"
            "  hint: a text with the sign between cells in it stands in quotation marks",
        ),
        ("x,->,step\n\n1,1,1\n", "rules.csv:3: expected an empty cell below ->, got '1'"),
        ("x,->,step\n1,,\n", "rules.csv:2: step: expected a whole number, got ''"),
        ("x,->,step\n1,,x\n", "rules.csv:2: step: expected a whole number, got 'x'"),
        ("x,->,step\n1.5,,1\n", "rules.csv:2: x: expected a whole number, lo..hi or *, got '1.5'"),
        ("x,->,step\n3..2,,1\n", "rules.csv:2: x: expected a whole number, lo..hi or *, got '3..2'"),
        ("sees(ped),->,step\n1,,1\n", "rules.csv:2: sees(ped): expected true, false or *, got '1'"),
        (
            "y,->,step\n1,,1\n",
            "rules.csv:1: column y: unknown name 'y'\n    y\n    ^\n  hint: known: node, x",
        ),
        *(
            (
                f"{asked},->,step\n1,,1\n",
                f"rules.csv:1: column {asked}: expected a variable, memory, a label or an atom, got {asked}",
            )
            for asked in ("x + 1", "abs(x)", "floor(x)")
        ),
        (
            "sees(ped,->,step\n1,,1\n",
            "rules.csv:1: column sees(ped: expected ')', ',' or an operator, found the end\n"
            "    sees(ped\n            ^",
        ),
        (
            "step,->,step\n1,,1\n",
            "rules.csv:1: column step: 'step' is an input, which cannot be used here\n    step\n    ^",
        ),
        (
            "x,->,node'\n*,,1\n",
            "rules.csv:1: expected a value for step; got node\n"
            "  hint: it sets every input of the model that has no default, memory, and nothing else",
        ),
        (
            "confirmed(t),->,step\n*,,1\n",
            "m.toml:11: planners.driver.rules: unknown tracker 't'\n  hint: known: (none)",
        ),
        *(
            (text, f"rules.csv:{where}\n  hint: in every case one row decides; narrow one of the two")
            for text, where in {
                "x,sees(ped),->,step\n0..5,true,,1\n0..5,false,,1\n3..9,*,,2\n":
                    "4: overlaps line 2 at x = 3, sees(ped)",
                "x,node,->,step\n*,*,,1\n*,*,,2\n": "3: overlaps line 2 in every case",
                "x,node,->,step\n0..2,1..3,,1\n1..3,0..2,,2\n": "3: overlaps line 2 at x = 1, node = 1",
                "report(walker),->,step\nped,,1\ntruck,,1\n*,,2\n": "4: overlaps line 2 at report(walker) = ped",
            }.items()
        ),
        (
            "x,sees(ped),node,->,step\n*,false,*,,1\n0..2,true,0,,2\n4..20,true,*,,3\n",
            "rules.csv: no row for x = 3, sees(ped), node = 0\n"
            "  hint: add or correct a rule for this case, or make the state terminal; "
            "rules = [...] of the planner decide where the file does not",
        ),
        ("x,->,step\n*,,4\n", "rules.csv:2: step = 4, expected a whole number in 0..3"),
        ("x,->,step,node'\n*,,3,4\n", "rules.csv:2: node = 4, expected a whole number in 0..3"),
        ("report(walker),->,step\n*,,1\n", "rules.csv:1: column report(walker): expected a class in some row"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_read_are_named(tmp_path, monkeypatch, text, message):
    assert refusal(tmp_path, monkeypatch, TABLE, rules_csv=text) == message


def test_what_a_table_leaves_open_is_the_default_of_each_state(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.csv").write_text("x,->,node'\n*,,1\n")
    (tmp_path / "m.toml").write_text(MODEL.replace("DEFAULT", ', default = "x % 3 + 1"') + TABLE)
    assert sorted(set(chain_of(read_model("m.toml"))[0].valuations["x"].tolist())) == [0, 1, 3, 4, 6, 7, 9, 10, 12]


@pytest.mark.parametrize(
    ("text", "rules", "default", "where"),
    [
        ("x,->,node'\n*,,1\n", "", 7, "m.toml:7: inputs.step.default"),
        (
            "x,->,step\n1..16,,1\n",
            "rules = [{ set = { step = 7 } }]",
            "",
            "m.toml:16: planners.driver.rules[0].set.step",
        ),
    ],
)
def test_what_a_table_does_not_set_is_named_where_it_stands(tmp_path, monkeypatch, text, rules, default, where):
    assert refusal(tmp_path, monkeypatch, TABLE + rules, rules_csv=text, default=default) == (
        f"{where}: planner 'driver' has no valid step in state x = 0, node = 0 when the detector reports nothing: "
        "step = 7, expected a whole number in 0..3\n"
        "  hint: add or correct a rule for this case, or make the state terminal"
    )


def with_nodes(**changes):
    """The controller with some of its parts replaced."""
    return json.dumps({**GR1C, **changes})


def with_node(name, **changes):
    nodes = {**GR1C["nodes"], name: {**GR1C["nodes"][name], **changes}}
    return with_nodes(nodes=nodes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "ctrl.json:1:2: not JSON: Expecting property name enclosed in double quotes\n    {\n     ^"),
        ("[]", "ctrl.json: expected an object, got []"),
        ("{}", "ctrl.json: missing key 'version'\n  hint: expected what `gr1c -t json` writes"),
        (with_nodes(version=2), "ctrl.json: /version: expected version 1 of gr1c's JSON, got 2"),
        (with_nodes(ENV={}), "ctrl.json: /ENV: expected a list, got {}"),
        *(
            (
                with_nodes(ENV=[entry]),
                f'ctrl.json: /ENV/0: expected one variable and its domain, {{"x": "boolean"}}, got {entry!r}',
            )
            for entry in ({"ped": "boolean", "b": "boolean"}, "p", {})
        ),
        *(
            (
                with_nodes(SYS=[{"v": domain}]),
                f'ctrl.json: /SYS/0: v: expected "boolean" or [low, high], got {domain!r}',
            )
            for domain in ([3, 0], [0, 3.5], [0, 1, 2], [0], [True, 3], "no")
        ),
        (with_node("0x1", state=[2, 1]), "ctrl.json: /nodes/0x1/state/0: expected a whole number from 0 to 1, got 2"),
        (
            with_node("0x1", state=[1, 0.5]),
            "ctrl.json: /nodes/0x1/state/1: expected a whole number from 0 to 3, got 0.5",
        ),
        (with_node("0x1", trans="0x2"), "ctrl.json: /nodes/0x1/trans: expected a list, got '0x2'"),
        (with_nodes(nodes=[]), "ctrl.json: /nodes: expected an object, got []"),
        (with_nodes(nodes={}), "ctrl.json: /nodes: expected at least one initial node"),
        (with_nodes(nodes={"a": {}}), "ctrl.json: /nodes/a: missing key 'state'"),
        (with_node("0x2", state=[0]), "ctrl.json: /nodes/0x2/state: expected 2 values, got 1"),
        (
            with_node("0x2", state=[0, 4]),
            "ctrl.json: /nodes/0x2/state/1: expected a whole number from 0 to 3, got 4",
        ),
        (with_node("0x2", initial=1), "ctrl.json: /nodes/0x2/initial: expected true or false, got 1"),
        (
            with_node("0x2", trans=["0x1", "0x9"]),
            "ctrl.json: /nodes/0x2/trans/1: expected one of the nodes, got '0x9'",
        ),
        (
            with_node("0x2", trans=["0x1", "0x3"]),
            "ctrl.json: /nodes/0x2/trans: among the nodes that follow 0x2, 0x1 and 0x3 read the same; "
            "expected one for each reading",
        ),
        (
            with_node("0x3", initial=True),
            "ctrl.json: /nodes: among the initial nodes, 0x1 and 0x3 read the same; expected one for each reading\n"
            "  hint: synthesise with the initial condition ALL_ENV_EXIST_SYS_INIT",
        ),
        (
            with_nodes(ENV=[{"dog": "boolean"}]),
            "m.toml:14: planners.driver.reads.ped: unknown variable of the environment 'ped'\n  hint: known: dog",
        ),
        (
            with_nodes(ENV=[*GR1C["ENV"], {"dog": "boolean"}]),
            "ctrl.json: /nodes/0x1/state: expected 3 values, got 2",
        ),
        (
            with_nodes(
                ENV=[*GR1C["ENV"], {"dog": "boolean"}],
                nodes={"a": {"state": [1, 1, 1], "initial": True, "trans": []}},
            ),
            "ctrl.json: /ENV: nothing says what the environment's 'dog' is\n"
            '  hint: reads = { dog = "sees(...)" }: a condition or a number that the controller is given',
        ),
        (
            with_nodes(SYS=[{"speed": [0, 3]}]),
            "m.toml:15: planners.driver.sets.step: unknown variable of the system 'v'\n  hint: known: speed",
        ),
        (
            with_node("0x3", trans=["0x3"]),
            "ctrl.json: no transition for node = 0x3, !ped\n"
            "  hint: add or correct a rule for this case, or make the state terminal; "
            "rules = [...] of the planner decide where the file does not",
        ),
    ],
)  # fmt: skip
def test_controllers_that_cannot_be_read_are_named(tmp_path, monkeypatch, text, message):
    assert refusal(tmp_path, monkeypatch, READS, ctrl_json=text) == message


def test_conditions_and_constants_of_a_module_are_numbers(tmp_path):
    module = """
const int two = after;
const int after = one + 1;
const int one = 1;
module d
  seen : bool;
  calm : bool init true;
  least : [1..two];
  [] sees_ped & seen -> (step'=3) & (seen'=true) & (calm'=false);
  [] sees_ped & !seen -> (step'=least) & (seen'=true) & (calm'=!calm);
  [] !sees_ped & calm -> (step'=two) & (seen'=false) & (least'=two);
  [] !sees_ped & !calm -> (step'=1) & (seen'=false);
endmodule
"""
    rules = """
    memory.seen = { range = [0, 1], initial = 0 }
    memory.calm = { range = [0, 1], initial = 1 }
    memory.least = { range = [1, 2], initial = 1 }
    rules = [
        { when = "sees(ped) & seen = 1", set = { step = 3, seen = 1, calm = 0 } },
        { when = "sees(ped)", set = { step = "least", seen = 1, calm = "1 - calm" } },
        { when = "calm = 1", set = { step = 2, seen = 0, least = 2 } },
        { set = { step = 1, seen = 0 } },
    ]"""
    prism = model_of(tmp_path, 'kind = "prism"\nfile = "d.prism"\n', d_prism=module)
    assert_same(chain_of(model_of(tmp_path, rules)), chain_of(prism))
    truths = prism.planners["driver"].memory[:2]
    assert [(each.name, each.range) for each in truths] == [
        (name, Range(Number(0), Number(1))) for name in ("seen", "calm")
    ]


MODULE = "module d\n  [] sees_ped -> (step'=1);\n  [] !sees_ped -> (step'=2);\nendmodule\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "d.prism: expected one module, found 0"),
        (MODULE + MODULE.replace("d\n", "e\n"), 'd.prism: expected one module, found 2\n  hint: module = "d"'),
        ("module d\nendmodule\n", "d.prism:1:8: module 'd' has no command\n    module d\n           ^"),
        *(
            (
                MODULE.replace("(step'=1)", drawn),
                f"d.prism:2:18: the command draws its update\n      [] sees_ped -> {drawn};\n"
                "                     ^\n"
                "  hint: what the world draws stands in the model; a planner has one update for each guard",
            )
            for drawn in ("0.5:(step'=1) + 0.5:(step'=2)", "1:(step'=1) + 0:(step'=2)", "0:(step'=1)", "2:(step'=1)")
        ),
        (
            MODULE.replace("(step'=1)", "(step'=1) & (step'=2)"),
            "d.prism:2:31: 'step' is set twice in one update\n      [] sees_ped -> (step'=1) & (step'=2);\n"
            "                                  ^",
        ),
        (
            MODULE.replace("(step'=1)", "(speed'=1)"),
            "d.prism:2: unknown input 'speed'\n"
            "  hint: known: step; every rule sets every input of the model that has no default, and nothing else",
        ),
        (
            MODULE.replace("!sees_ped", "!sees_ped & y > 1"),
            "d.prism:3:18: unknown name 'y'\n      [] !sees_ped & y > 1 -> (step'=2);\n                     ^\n"
            "  hint: known: x",
        ),
        *(
            (
                MODULE.replace("!sees_ped", "!sees_ped | x >= 3").replace("endmodule", f"{more}endmodule"),
                "d.prism:3: in state x = 3 the guards of lines 2 and 3 both hold on report {ped}\n"
                "  hint: in every case one command decides",
            )
            for more in ("", "  [] sees_ped & x >= 3 -> (step'=3);\n")
        ),
        (
            MODULE.replace("  [] !sees_ped -> (step'=2);\n", ""),
            "d.prism: no guard holds in state x = 0 on report {}\n"
            "  hint: add or correct a rule for this case, or make the state terminal; "
            "rules = [...] of the planner decide where the file does not",
        ),
        (
            MODULE.replace("(step'=2)", "(step'=x)"),
            "d.prism:3: planner 'driver' has no valid step in state x = 4 when the detector reports nothing: "
            "step = 4, expected a whole number in 0..3\n"
            "  hint: add or correct a rule for this case, or make the state terminal",
        ),
        (
            MODULE.replace("sees_ped ->", "sees_ped =>"),
            "d.prism:2:15: expected '->' between guard and update, found =>\n      [] sees_ped => (step'=1);\n"
            "                  ^",
        ),
        (
            MODULE.replace("endmodule", ""),
            "d.prism:3:29: expected 'endmodule', found the end\n      [] !sees_ped -> (step'=2);\n"
            "                                ^",
        ),
        (
            MODULE.replace("module d\n", "module d\n  x : [0..3];\n"),
            "m.toml:11: planners.driver: 'x' is declared already, as a variable",
        ),
        (
            MODULE.replace("module d\n", "module d\n  m : bool;\n  m : bool;\n"),
            "d.prism:1:8: 'm' is declared twice in module 'd'\n    module d\n           ^",
        ),
    ],
)  # fmt: skip
def test_modules_that_cannot_be_read_are_named(tmp_path, monkeypatch, text, message):
    assert refusal(tmp_path, monkeypatch, 'kind = "prism"\nfile = "d.prism"\n', d_prism=text) == message


@pytest.mark.parametrize(
    ("planner", "message"),
    [
        ('kind = "table"', "m.toml:11: planners.driver: missing key 'file'"),
        ('kind = "gr1c"\nfile = "c.json"', "m.toml:11: planners.driver: missing key 'reads'"),
        ('kind = "table"\nfile = "none.csv"', "none.csv: no such file"),
        ('kind = "table"\nfile = ""', "m.toml:13: planners.driver.file: expected a text that is not empty"),
        (
            'kind = "table"\nfile = "rules.csv"\nreads = {}',
            "m.toml:11: planners.driver: 'reads' goes with kind = \"gr1c\", found kind = \"table\"",
        ),
        (
            'kind = "prism"\nfile = "d.prism"\nmemory = {}',
            "m.toml:11: planners.driver: 'memory' goes with kind = \"rules\" or kind = \"table\", "
            'found kind = "prism"',
        ),
        (
            'file = "rules.csv"\nrules = []',
            "m.toml:11: planners.driver: 'file' goes with kind = \"table\" or kind = \"gr1c\" or kind = \"prism\", "
            'found kind = "rules"',
        ),
        (
            'kind = "prism"\nfile = "d.prism"\nmodule = "e"',
            "d.prism: unknown module 'e'\n  hint: known: d",
        ),
        (
            'kind = "function"',
            "m.toml:12: planners.driver.kind: expected one of rules, runs, synthesis, table, gr1c, prism, "
            "got 'function'",
        ),
    ],
)  # fmt: skip
def test_keys_that_do_not_go_together_are_named(tmp_path, monkeypatch, planner, message):
    assert refusal(tmp_path, monkeypatch, planner, rules_csv=CSV, d_prism=MODULE) == message


def test_rules_decide_where_a_file_does_not(tmp_path):
    late = "x,sees(ped),->,step,node'\n0..3,true,,1,1\n0..3,false,,2,2\n"
    backup = 'rules = [{ when = "sees(ped)", set = { step = 3 } }]\n'
    (tmp_path / "rules.csv").write_text(late)
    found = chain_of(model_of(tmp_path, TABLE + backup, default="2"))
    rules = """
    memory = { node = { range = [0, 3], initial = 0 } }
    rules = [
        { when = "x <= 3 & sees(ped)", set = { step = 1, node = 1 } },
        { when = "x <= 3", set = { step = 2, node = 2 } },
        { when = "sees(ped)", set = { step = 3 } },
    ]"""
    assert_same(chain_of(model_of(tmp_path, rules, default="2")), found)


def test_counts_reports_and_trackers_are_columns(tmp_path):
    keys = 'trackers = { t = { of = "sees(ped)", confirm = [2, 3], delete = [2, 2] } }\n'
    text = "count(obs),report(walker),confirmed(t),->,step\n0..1,obs,*,,1\n0..1,empty,true,,2\n0..1,empty,false,,3\n"
    text += "0..1,ped,*,,3\n2..9,*,*,,1\n"
    table = model_of(tmp_path, 'kind = "table"\nfile = "rules.csv"\n' + keys, rules_csv=text)
    rules = """rules = [
        { when = "count(obs) >= 2 | report(walker) = obs", set = { step = 1 } },
        { when = "report(walker) = empty & confirmed(t)", set = { step = 2 } },
        { set = { step = 3 } },
    ]"""
    for environment in ("ped", "both"):
        assert_same(chain_of(model_of(tmp_path, keys + rules), environment), chain_of(table, environment))


def test_controllers_read_numbers_and_trackers(tmp_path):
    # Two reports or a confirmed track: the node says which, and the next step depends on both.
    keys = 'trackers = { t = { of = "sees(ped)", confirm = [2, 2], delete = [2, 2] } }\n'
    cases = [(number, sure) for number in (0, 1, 2) for sure in (0, 1)]
    names = [f"n{number}{sure}" for number, sure in cases]
    nodes = {
        name: {"state": [number, sure, 1 + (number + sure) % 3], "initial": True, "trans": names}
        for name, (number, sure) in zip(names, cases, strict=True)
    }
    text = with_nodes(ENV=[{"n": [0, 2]}, {"sure": "boolean"}], nodes=nodes)
    reads = READS.replace('ped = "sees(ped)"', 'n = "count(obs)", sure = "confirmed(t)"')
    rules = """memory = { node = { range = [0, 6], initial = 0 } }
    rules = [RULES]""".replace(
        "RULES",
        ", ".join(
            f'{{ when = "count(obs) = {number} & {"" if sure else "!"}confirmed(t)", '
            f"set = {{ step = {1 + (number + sure) % 3}, node = {k} }} }}"
            for k, (number, sure) in enumerate(cases, 1)
        ),
    )
    for environment in ("ped", "both"):
        found = chain_of(model_of(tmp_path, keys + reads, ctrl_json=text), environment)
        assert_same(chain_of(model_of(tmp_path, keys + rules), environment), found)


def test_only_what_can_be_reported_needs_a_row(tmp_path):
    # The pedestrian at 7 m is never reported below 5 m.
    text = 'x,"sees(ped, within = 5)",->,step\n0..7,false,,1\n8..20,*,,2\n'
    found = chain_of(model_of(tmp_path, 'kind = "table"\nfile = "rules.csv"\n', rules_csv=text))[0]
    assert found.valuations["x"].tolist() == [*range(9), 10, 12]


@pytest.mark.parametrize("at_once", [4096, 7])
def test_a_table_is_looked_up_as_its_rows_say(monkeypatch, at_once):
    monkeypatch.setattr("verifier.systems.planners.tables._CASES_AT_ONCE", at_once)
    generator = np.random.default_rng(3)
    for _ in range(20):
        cuts = [np.sort(generator.choice(np.arange(1, 12), 3, replace=False)) for _ in range(3)]
        rows = []
        for box in itertools.product(
            *([(0, c[0] - 1), (c[0], c[1] - 1), (c[1], c[2] - 1), (c[2], 14)] for c in cuts)
        ):
            if generator.random() < 0.8:
                rows.append(box)
        lines = [",".join([*(f"{low}..{high}" for low, high in box), "", str(k)]) for k, box in enumerate(rows)]
        table, _ = table_of("\n".join(["a,b,c,->,step", *lines]).encode(), "t.csv")
        cases = generator.integers(-2, 17, (500, 3))
        ((decides, chosen),) = table.decided([dict(zip("abc", cases.T, strict=True))])
        for case, found, step in zip(cases.tolist(), decides.tolist(), chosen["step"].tolist(), strict=True):
            met = [k for k, box in enumerate(rows) if all(a <= v <= b for v, (a, b) in zip(case, box, strict=True))]
            assert [step] * found == met
        again = "\n".join(["a,b,c,->,step", *lines, "*,3..4,*,,9"]).encode()
        common = [k for k, (_, b, _) in enumerate(rows) if b[0] <= 4 and b[1] >= 3]
        if common:
            a, b, c = (low for low, _ in rows[common[0]])
            where = rf"overlaps line {common[0] + 2} at a = {a}, b = {max(b, 3)}, c = {c}\n"
            with pytest.raises(InputError, match=rf"t\.csv:{len(rows) + 2}: {where}"):
                table_of(again, "t.csv")


def test_a_table_too_large_to_be_looked_up_is_refused(monkeypatch):
    # A row for each of 2^16 + 1 numbers would take just above 2^30 bytes.
    cells = np.arange(2**16 + 1)[:, None]
    with pytest.raises(LimitError, match=r"t\.csv: 65537 rows with 65537 different ends of cells are more than"):
        DecisionTable({"x": (Name("x"), "number")}, ("step",), cells, cells, cells, "t.csv", cells[:, 0])
    # For each end those rows that begin there and those that are still open are a bit each: 2 * 30 * 30 / 8 bytes.
    text = "\n".join(["x,->,step", *(f"{x},,{x}" for x in range(30))]).encode()
    monkeypatch.setattr("verifier.systems.planners.tables.LARGEST_SETS", 225)
    assert table_of(text, "t.csv")[0].rows == 30
    monkeypatch.setattr("verifier.systems.planners.tables.LARGEST_SETS", 224)
    with pytest.raises(LimitError, match=r"t\.csv: 30 rows with 30 different ends of cells are more than"):
        table_of(text, "t.csv")


@pytest.mark.parametrize("separator", ",;\t")
def test_a_table_may_be_separated_and_quoted_as_spreadsheets_do(separator):
    lines = (
        ["x", ' "sees(ped, within = 5)"', "->", "step"],
        [],
        ["0..7", ' "false"', " ", " 1"],
        ["8..20", "*", "", "2"],
    )
    table, places = table_of("\n".join(map(separator.join, lines)).encode(), "t.csv")
    assert (list(table.asks), table.sets) == (["x", "sees(ped, within = 5)"], ("step",))
    assert (table.low.tolist(), table.high.tolist()) == ([[0, 0], [8, -ANY]], [[7, 0], [20, ANY]])
    assert (table.values.tolist(), table.lines.tolist()) == ([[1], [2]], [3, 4])
    assert [each.place(None) for each in places] == [Place("t.csv", 1, path=f"column {name}") for name in table.asks]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda c: {}, "'step' has no default and was not set"),
        (lambda c: [1], "expected a mapping of names to arrays, got [1]"),
        (lambda c: {"speed": c["x"]}, "unknown input or memory 'speed': known: node, step"),
        (lambda c: {"step": 1}, "step: expected an array of 2 whole numbers, got int64 of shape ()"),
        (lambda c: {"step": c["x"][:1]}, "step: expected an array of 2 whole numbers, got int64 of shape (1,)"),
        (
            lambda c: {"step": np.full(len(c["x"]), "a")},
            "step: expected an array of 2 whole numbers, got <U1 of shape (2,)",
        ),
    ],
)
def test_functions_that_give_something_else_are_refused(tmp_path, answer, message):
    memory = {"node": {"range": [0, 1], "initial": 0}}
    model = with_planner(model_of(tmp_path), "mine", answer, asks=["sees(ped)"], memory=memory)
    with pytest.raises(UsageError) as caught:
        chain_of(model, planner="mine")
    assert str(caught.value) == f"the function of planners.mine: {message}"


def test_a_function_is_called_once_for_each_block_of_new_states(tmp_path):
    blocks = []

    def driver(cases):
        blocks.append({name: values.tolist() for name, values in cases.items()})
        return {"step": np.where(cases["count(ped)"] > 0, 2, 3)}

    model = with_planner(model_of(tmp_path), "mine", driver, asks=["count(ped)"])
    chain_of(model, planner="mine")
    met = [sorted(set(block["x"])) for block in blocks]
    assert met[:3] == [[0], [2, 3], [4, 5, 6]]
    assert sorted(x for block in met for x in block) == sorted({x for block in met for x in block})
    assert blocks[0] == {"x": [0, 0], "count(ped)": [0, 1]}
    model = with_planner(model_of(tmp_path), "mine", lambda cases: {"step": cases["x"] >= 0})
    assert chain_of(model, planner="mine")[0].valuations["x"].tolist() == list(range(13))
    model = with_planner(model_of(tmp_path), "mine", lambda cases: {"step": cases["x"] + 0.5})
    with pytest.raises(InputError, match=r"step = 0\.5, expected a whole number in 0\.\.3"):
        chain_of(model, planner="mine")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"name": "driver"}, UsageError, "planner 'driver': the model has a planner of that name"),
        ({"name": "a b"}, UsageError, "planner 'a b': this cannot be a name"),
        ({"asks": ["sees(ped"]}, InputError, "planners.mine.asks: expected ')', ',' or an operator"),
        ({"asks": ["present(ped)"]}, InputError, "present(...) belongs everywhere but in planners"),
        ({"asks": ["y"]}, InputError, "planners.mine.asks: unknown name 'y'"),
        *(
            (
                {"memory": {"m": memory}},
                UsageError,
                "memory 'm': expected {\"range\": [low, high], \"initial\": value} in whole numbers, got",
            )
            for memory in (
                [0, 1],
                {"range": [0], "initial": 0},
                {"range": [0, 1.5], "initial": 0},
                {"range": [0, 1]},
                {"range": [0, 1], "initial": 0, "unit": 1},
            )
        ),
        ({"memory": {"x": {"range": [0, 1], "initial": 0}}}, InputError, "'x' is declared already, as a variable"),
    ],
)  # fmt: skip
def test_planners_in_python_that_mean_nothing_are_refused(tmp_path, arguments, error, message):
    with pytest.raises(error) as caught:
        with_planner(model_of(tmp_path), **{"name": "mine", "function": in_python, **arguments})
    assert message in str(caught.value)
    assert error is UsageError or str(caught.value).startswith(str(tmp_path))


def test_a_function_is_called_once_for_all_views(tmp_path):
    calls = []
    model = with_planner(model_of(tmp_path), "mine", lambda cases: calls.append(1) or {"step": cases["x"] % 4})
    decider = model.planners["mine"].decider
    views = [{name: np.array([k, k + 1]) for name in decider.asks} for k in (0, 2, 7)]
    found = [(where.tolist(), sets["step"].tolist()) for where, sets in decider.decided(views)]
    assert found == [([True] * 2, [0, 1]), ([True] * 2, [2, 3]), ([True] * 2, [3, 0])]
    assert len(calls) == 1


def test_cells_without_end_are_wide_enough():
    assert ANY > 2**60


def test_a_domain_is_two_whole_numbers_of_which_the_first_is_not_the_greater():
    assert _is_pair([0, 0])
    assert _is_pair([-1, 3])
    for wrong in ([3, 2], [0], [0, 1, 2], [0.5, 1], [0, 1.5], [True, 1], [0, "1"], ["0", 1], "01", None, {}):
        assert not _is_pair(wrong)


@pytest.mark.parametrize(("cells", "largest"), [("0 1..3 4", 4), ("0..2 4..9 *", 9), ("* * *", 0)])
def test_a_count_is_told_apart_up_to_the_largest_end_of_its_cells(cells, largest):
    rows = [f"{cell},{x},*,,1" for x, cell in enumerate(cells.split())]
    table, _ = table_of("\n".join(["count(ped),x,sees(ped),->,u", *rows]).encode(), "t.csv")
    count, *others = map(parse_expression, ("count(ped)", "x", "sees(ped)"))
    assert table.compared == (Operation("<=", (count, Number(largest))), *others)


@pytest.mark.parametrize(("begin", "value"), [("", 0), (" init true", 1), (" init false", 0)])
def test_truths_of_prism_begin_false_unless_they_say_otherwise(begin, value):
    text = f"mdp\nmodule m\n  b : bool{begin};\n  [] b -> (u' = 1);\nendmodule\n"
    (memory,) = module_of(text.encode(), "t.prism", None, "p").memory
    assert (memory.range, evaluate(memory.initial, {})) == (Range(Number(0), Number(1)), value)
