"""Reading system models: what a file says is what the model holds, and what is refused with which words."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import ExitCode, InputError, NoAnswerError, UsageError, VerifierError
from verifier.language.expressions import Source, parse_expression
from verifier.language.expressions.syntax import FALSE, TRUE, Name, Number
from verifier.language.ltl import parse_formula
from verifier.perception.confusion import EMPTY, ConfusionMatrices
from verifier.systems.model_parts import Draw, PlacedObject, Planner, Range, Rule, Run, Variable, dependency_order
from verifier.systems.reader import read_model
from verifier.systems.skeleton import build_skeleton

FOLDER = Path(__file__).resolve().parent.parent / "data/invalid/models"
ONE_BIN = ConfusionMatrices(
    "class",
    (frozenset({"ped"}), frozenset({"obs"}), EMPTY),
    np.array([0.0, 10.0]),
    np.ones((1, 3, 3), dtype=np.int64),
)

MODEL = """
name = "lift"
source = "a book"
initial = "floor_ = 0 & !far_up"
terminal = false
admissible = "up != 1 | floor_ < top"
[constants]
height_m = 3.10
top = "ground + 4"
ground = -2
[variables]
floor_ = { range = ["ground", "top"], next = "floor_ + up", unit = "storey" }
door = { range = [0, 1], next = 1 }
[inputs]
up = { range = [-1, 1] }
[quantities]
high_m = "height_m * (floor_ - ground)"
[labels]
far_up = "high_m > 6.2"
[environments]
crowd = [{ class = "traffic cone", distance_m = "high_m" }, { class = "ped", distance_m = 2 }]
nobody = [{ class = "empty", distance_m = 1.5 }]
[planners.porter]
source = "another book"
rules = [{ when = "sees(\\"traffic cone\\")", stay = true }, { when = true, set = { up = "1 - door" } }]
[planners.clerk]
kind = "runs"
pick = "highest"
runs = [
    { when = "sees(ped)", set = { up = 1 } },
    { when = "true", reach = "far_up", through = "door = 1" },
]
rules = [{ when = "true", stay = true }]
[planners.architect]
kind = "synthesis"
formula = "ped -> F far_up"
rules = []
"""


@pytest.fixture
def lift(tmp_path):
    path = tmp_path / "lift.toml"
    path.write_text(MODEL)
    return read_model(path)


def test_a_model_is_what_its_file_says(lift, tmp_path):
    assert (lift.name, lift.source, lift.file) == ("lift", "a book", str(tmp_path / "lift.toml"))
    expression = parse_expression
    assert lift.constants == {
        "height_m": Number(Fraction(31, 10)),
        "top": expression("ground + 4"),
        "ground": Number(-2),
    }
    assert lift.variables == (
        Variable("floor_", Range(expression("ground"), expression("top")), expression("floor_ + up"), unit="storey"),
        Variable("door", Range(Number(0), Number(1)), Number(1)),
    )
    assert lift.inputs == (Variable("up", Range(Number(-1), Number(1))),)
    assert (lift.terminal, lift.admissible) == (FALSE, expression("up != 1 | floor_ < top"))
    assert lift.environments == {
        "crowd": (PlacedObject("traffic cone", expression("high_m")), PlacedObject("ped", Number(2))),
        "nobody": (PlacedObject("empty", Number(Fraction(3, 2))),),
    }
    assert lift.environment_classes() == {"traffic cone", "ped"}
    everywhere = Rule(TRUE, None, "planners.clerk.rules[0]")
    assert lift.planners == {
        "porter": Planner(
            "porter",
            "rules",
            (
                Rule(expression('sees("traffic cone")'), None, "planners.porter.rules[0]"),
                Rule(TRUE, {"up": expression("1 - door")}, "planners.porter.rules[1]"),
            ),
            source="another book",
        ),
        "clerk": Planner(
            "clerk",
            "runs",
            (everywhere,),
            (
                Run(expression("sees(ped)"), {"up": Number(1)}, path="planners.clerk.runs[0]"),
                Run(TRUE, None, expression("far_up"), expression("door = 1"), "planners.clerk.runs[1]"),
            ),
            pick="highest",
        ),
        "architect": Planner("architect", "synthesis", (), formula=parse_formula("ped -> F far_up")),
    }


W = Draw("w", Range(Number(0), Number(2)), {0: (Number(Fraction(1, 4)), parse_expression("1/2")), 2: None})
TIMES = "step_s = {}\nframe_s = {}\n"


@pytest.mark.parametrize(
    ("old", "new", "read"),
    [
        ('name = "lift"', 'name = ""', lambda model: model.name == ""),
        ('name = "lift"', "", lambda model: model.name == "changed"),
        ('source = "a book"', 'source = ""', lambda model: model.source == ""),
        ('source = "another book"', 'source = ""', lambda model: model.planners["porter"].source == ""),
        ('unit = "storey"', 'unit = ""', lambda model: model.variables[0].unit == ""),
        ('name = "lift"', "step_s = 0.5", lambda model: (model.step_s, model.frames) == (Fraction(1, 2), 1)),
        ("[quantities]", "[rewards]\n[quantities]", lambda model: model.rewards == {}),
        ('name = "lift"', TIMES.format(0.5, 0.5), lambda model: model.frames == 1),
        ('name = "lift"', TIMES.format(0.5, 0.1), lambda model: model.frames == 5),
        ("height_m = 3.10", "height_m = 3.0", lambda model: type(model.constants["height_m"].value) is int),
        ("[environments]", "[field_of_view]\ndistance_m = [1, 7]\n[environments]\nnothing = []",
         lambda model: (model.field_of_view_m, model.environments["nothing"]) == ((Number(1), Number(7)), ())),
        ("[environments]", '[world]\nw = { range = [0, 2], probability = { 0 = [0.25, "1/2"], 2 = "rest" } }\n'
         "[environments]", lambda model: model.world == (W,)),
        ('floor_ + up", unit = "storey" }\ndoor = { range = [0, 1], next = 1 }', 'floor_ + up" }',
         lambda model: len(model.variables) == 1),
        ("nobody = [", "# ", lambda model: list(model.environments) == ["crowd"]),
        ("[planners.porter]",
         '[planners.porter]\ntrackers.t = { of = "sees(ped)", confirm = [2, 20], delete = [1, 1] }',
         lambda model: len(model.planners["porter"].trackers) == 1),
    ],
)  # fmt: skip
def test_what_is_at_its_end_or_left_out_is_read(tmp_path, old, new, read):
    text = MODEL.replace("door = 1", "true").replace("1 - door", "1").replace("stay = true", "set = { up = 0 }")
    text = text.replace('nobody = [{ class = "empty"', 'nobody = [{ class = "ped"').partition("[planners.clerk]")[0]
    assert text.count(old) == 1
    path = tmp_path / "changed.toml"
    path.write_text(text.replace(old, new))
    assert read(read_model(path))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "lift"', "step_s = 0", "step_s: expected a number of seconds above 0, got 0"),
        ("[planners.porter]",
         '[planners.porter]\ntrackers.t = { of = "sees(ped)", confirm = [2, 21], delete = [1, 1] }',
         "planners.porter.trackers.t.confirm[1]: expected a whole number from 1 to 20, got 21"),
    ],
)  # fmt: skip
def test_what_is_beyond_its_end_is_refused(tmp_path, old, new, message):
    path = tmp_path / "changed.toml"
    path.write_text(MODEL.replace(old, new))
    with pytest.raises(InputError) as caught:
        read_model(path)
    assert message in str(caught.value)


def test_where_a_planner_was_read_is_no_part_of_what_it_does(lift):
    moved = replace(lift.planners["clerk"], places={"planners.clerk.pick": Source("pick: 1")})
    assert moved == lift.planners["clerk"]
    assert repr(moved) == repr(lift.planners["clerk"])


def test_a_planner_is_from_elsewhere_if_a_file_or_a_function_says_what_it_does(lift):
    own, rule = lift.planners["porter"], lift.planners["porter"].rules[0]
    foreign = (own, replace(own, decider=SimpleNamespace(compared=(Number(5),))), replace(own, commands=(rule,)))
    assert [planner.is_foreign for planner in foreign] == [False, True, True]
    said = own.nodes
    assert said == (rule.when, TRUE, parse_expression("1 - door"))
    assert [planner.nodes for planner in foreign] == [said, (Number(5), *said), (rule.when, *said)]


def test_constants_are_exact_and_can_be_replaced(lift):
    assert lift.instantiate().constants == {"height_m": Fraction(31, 10), "top": 2, "ground": -2}
    system = lift.instantiate({"ground": 0, "clerk.pick": "lowest"})
    assert system.constants == {"height_m": Fraction(31, 10), "top": 4, "ground": 0}
    assert [(each.low, each.high, each.size) for each in system.variables] == [(0, 4, 5), (0, 1, 2)]
    assert system.planners["clerk"].pick == "lowest"
    assert lift.planners["clerk"].pick == "highest"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tpo": 3}, "unknown constant 'tpo': did you mean 'top'?"),
        ({"door": 1}, "unknown constant 'door'"),
        ({"porter.pick": "lowest"}, "unknown constant 'porter.pick'"),
        ({"top": "lowest"}, "constant top: expected a number, got 'lowest'"),
        ({"clerk.pick": "first"}, "planner 'clerk': unknown pick rule 'first'; known: lsb_first, lowest, highest"),
        ({"clerk.pick": 3}, "planner 'clerk': unknown pick rule '3'"),
    ],
)
def test_settings_that_name_nothing_are_refused(lift, settings, message):
    with pytest.raises(UsageError) as caught:
        lift.instantiate(settings)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("end", "got"),
    [
        *((sign * (2**31 + 1), str(sign * (2**31 + 1))) for sign in (1, -1)),
        (Fraction(1, 2), "1/2"),
        (10**20 - 1, "9" * 20),
        (Fraction(1, 10**20 - 1), "1/" + "9" * 20),
        *((end, "one of many digits") for end in (10**20, -(10**20), Fraction(1, 10**20))),
    ],
)
def test_ends_of_ranges_are_whole_and_of_at_most_2_to_the_31(lift, end, got):
    with pytest.raises(InputError, match=f"expected a whole number of at most 2\\*\\*31 in size, got {got}$"):
        lift.instantiate({"top": end, "ground": 0})
    widest, single = (
        lift.instantiate({"top": top, "ground": low}).variables[0] for top, low in ((2**31, -(2**31)), (3, 3))
    )
    assert (widest.size, single.size) == (2**32 + 1, 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[constants]", "[constants]\nended = 1"),
        ("[variables]", "[variables]\nended = { range = [0, 1], next = 1 }"),
        ("[inputs]", "[inputs]\nended = { range = [0, 1], default = 0 }"),
        ("[quantities]", '[quantities]\nended = "door"'),
        ("[labels]", '[labels]\nended = "door = 1"'),
        ('{ class = "ped"', '{ class = "ended", distance_m = 3 }, { class = "ped"'),
        ("[planners.porter]", "[planners.porter]\nmemory = { ended = { range = [0, 1], initial = 0 } }"),
        ("", ""),
    ],
)
def test_what_is_over_has_a_name_unless_the_model_uses_it(tmp_path, old, new):
    path = tmp_path / "lift.toml"
    path.write_text(MODEL.replace(old, new, 1))
    assert read_model(path).knows_ended == (not new)


def test_a_replaced_constant_breaks_a_circle(tmp_path):
    path = tmp_path / "circle.toml"
    path.write_text(MODEL.replace("ground = -2", 'ground = "top - 4"'))
    model = read_model(path)
    with pytest.raises(InputError, match="in a circle: ground -> top -> ground"):
        model.instantiate()
    assert model.instantiate({"top": 1}).constants["ground"] == -3


@pytest.mark.parametrize(("count", "more"), [(1, []), (2, []), (10, []), (11, ["1 more"]), (13, ["3 more"])])
def test_a_circle_is_told_from_its_first_name_on_up_to_ten(count, more):
    names = [f"c{k:02}" for k in range(count)]
    uses = {name: Name(after) for name, after in zip(names, [*names[1:], names[0]], strict=True)}
    circle = " -> ".join([*names[:10], *more, "c00"])
    with pytest.raises(InputError, match=f"in a circle: {circle}$"):
        dependency_order({"other": Number(1), **dict(reversed(uses.items()))}, Source(""))
    assert dependency_order({"b": Name("a"), "a": Name("elsewhere")}, Source("")) == ["a", "b"]


def test_long_chains_of_abbreviations_are_followed(tmp_path):
    # 3,000 constants and 3,000 labels, each the next one's name: nothing recurses.
    path = tmp_path / "chain.toml"
    constants = "".join(f'c{k} = "c{k + 1}"\n' for k in range(3000)) + "c3000 = 7\n"
    labels = "".join(f'l{k} = "l{k + 1}"\n' for k in range(3000)) + 'l3000 = "door = 1"\n'
    text = MODEL.replace("[variables]", constants + "[variables]").replace(
        "[environments]", labels + "[environments]"
    )
    path.write_text(text)
    system = read_model(path).instantiate()
    assert system.constants["c0"] == 7
    assert system.resolve(parse_expression("l0")) == parse_expression("door = 1")


def test_the_shipped_model_is_accepted(root):
    system = read_model(root / "models/car_pedestrian.toml").instantiate()
    assert system.constants["cells"] == 65
    assert system.constants["stop_cell"] == 56


def built(path):
    """Everything that may refuse a model: reading it, putting constants in, building a chain's structure."""
    model = read_model(path)
    system = model.instantiate()
    planner = system.planners[model.planner("walker").name]
    return build_skeleton(system, planner, next(iter(model.environments)), ONE_BIN)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_invalid_models_are_refused_with_their_message(path, monkeypatch):
    monkeypatch.chdir(FOLDER)
    with pytest.raises(VerifierError) as caught:
        built(path.name)
    assert str(caught.value) == path.with_suffix(".expected").read_text().rstrip("\n")
    codes = {UsageError: ExitCode.USAGE, NoAnswerError: ExitCode.NO_ANSWER}
    assert caught.value.exit_code == codes.get(type(caught.value), ExitCode.BAD_INPUT)


def test_ten_megabytes_of_garbage_are_refused_unread(tmp_path):
    path = tmp_path / "garbage.toml"
    path.write_bytes(bytes(range(32, 127)) * 110_000)
    with pytest.raises(InputError, match="the file has 10450000 bytes; at most 1048576 are read"):
        read_model(path)


def test_an_expression_of_a_quarter_megabyte_is_refused(tmp_path):
    path = tmp_path / "long.toml"
    path.write_text(MODEL.replace('"high_m > 6.2"', '"' + "door = 1 | " * 22_000 + 'door = 0"'))
    with pytest.raises(InputError, match=r"labels\.far_up: the text has 242008 characters; at most 200000 are read"):
        read_model(path)


# The base of the corpus, one mistake away from which every other file of it lies.
BASE = (FOLDER / "build_no_initial_state.toml").read_text().replace('"x > last"', '"x = 0"')
PIECES = [
    *"\"'[]{}=,.#\n()-+*/%&|!<>0129e_ G",
    "sees(",
    "ped",
    "x",
    "step",
    "last",
    "true",
    "[[",
    "inf",
    "1e400",
    "\\",
    "\x00",
]


def test_the_base_of_the_corpus_is_accepted(tmp_path):
    path = tmp_path / "base.toml"
    path.write_text(BASE)
    assert built(path).valuations["x"].tolist() == [0, 1, 3]  # one step from 0, two from 1


@given(st.lists(st.tuples(st.integers(0, len(BASE)), st.integers(0, 12), st.sampled_from(["", *PIECES])), max_size=3))
def test_damaged_models_are_accepted_or_refused_but_never_crash(tmp_path_factory, damages):
    text = BASE
    for start, length, piece in damages:
        text = text[:start] + piece + text[start + length :]
    path = tmp_path_factory.mktemp("damaged") / "model.toml"
    path.write_text(text)
    message = ""
    try:
        built(path)
    except VerifierError as error:
        message = str(error)
    assert len(message) < 2000
