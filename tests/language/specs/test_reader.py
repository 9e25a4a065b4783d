import hashlib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import InputError
from verifier.language.expressions import parse_expression
from verifier.language.expressions.syntax import TRUE
from verifier.language.ltl import parse_formula
from verifier.language.specs import Requirement, check_names, read_spec
from verifier.language.specs.reader import parse_spec
from verifier.language.specs.requirement_reader import _EXPECTED_TARGET
from verifier.language.specs.specification import Asked, Setting, Sweep

TEXT = """\
// Car and pedestrian at a crosswalk.
model "../models/car_pedestrian.toml"
planner published, cautious            // which planners
environments ped, obs, empty           # which environments
initial moving & x = 1                 // where it starts
set cell_m = 2 / 4
set published.pick = lowest
sweep vmax = 1..4, 8
sweep gap_m = 0.5, 2
let at_line = x = stop_cell & v = 0    // the car has stopped there
let early = moving_not & x < stop_cell
let moving = v >= 1
let moving_not = !moving

stops_only_for_pedestrians: P >= 0.999 [ G (ped | !at_line) ]
stops_for_pedestrians: P>19/20 [
  ped                                  // where one stands
  -> F at_line
]
never_stalls_early: P = ? [ [] !early ]
seldom: P <= 1e-3 [F<=10 "traffic cone"]
rarely: P < 1/3 [ true ]
"""


@pytest.fixture(scope="module")
def spec():
    return parse_spec(TEXT, "specs/car.ltl")


def test_statements(spec):
    assert spec.file == "specs/car.ltl"
    assert spec.sha256 == hashlib.sha256(TEXT.encode()).hexdigest()
    assert spec.model == Path("specs/../models/car_pedestrian.toml")
    assert spec.model_name == "../models/car_pedestrian.toml"
    assert spec.planners == ("published", "cautious")
    assert spec.environments == ("ped", "obs", "empty")
    assert spec.initial == parse_expression("v >= 1 & x = 1")
    assert spec.settings == (Setting("cell_m", Fraction(1, 2)), Setting("published.pick", "lowest"))
    assert spec.sweeps == (Sweep("vmax", (1, 2, 3, 4, 8)), Sweep("gap_m", (Fraction(1, 2), 2)))
    assert list(spec.lets) == ["at_line", "early", "moving", "moving_not"]
    assert spec.lets["moving_not"] == parse_expression("!moving")
    elsewhere = replace(spec, model_at=None)
    assert spec.model_at is not None
    assert (elsewhere, repr(elsewhere)) == (spec, repr(spec))
    assert "source=" not in repr(spec)


def test_requirements(spec):
    found = [(each.name, each.comparison, each.target, each.line) for each in spec.requirements]
    assert found == [
        ("stops_only_for_pedestrians", ">=", Fraction(999, 1000), 15),
        ("stops_for_pedestrians", ">", Fraction(19, 20), 16),
        ("never_stalls_early", "=", None, 20),
        ("seldom", "<=", Fraction(1, 1000), 21),
        ("rarely", "<", Fraction(1, 3), 22),
    ]
    first, second, third, *_ = spec.requirements
    assert first.original == parse_formula("G (ped | !at_line)")
    assert first.formula == parse_formula("G (ped | !(x = stop_cell & v = 0))")
    assert second.text == "stops_for_pedestrians: P>19/20 [ ped -> F at_line ]"
    assert third.formula == parse_formula("G !(!(v >= 1) & x < stop_cell)")


def test_what_is_left_out(spec):
    bare = parse_spec('model "m.toml"\na: P = ? [ b ]')
    assert (bare.file, bare.planners, bare.environments, bare.initial) == (None, (), None, None)
    assert (bare.settings, bare.sweeps, dict(bare.lets)) == ((), (), {})
    assert bare.model == Path("m.toml")
    assert parse_spec('planner\nmodel "m.toml"\na: P = ? [ b ]').planners == ()


def test_names_fit_the_model(spec):
    types = dict.fromkeys(["x", "v", "stop_cell", "cell_m", "vmax", "gap_m"], "number")
    check_names(spec, types | dict.fromkeys(["ped", "traffic cone"], "boolean"))
    with pytest.raises(InputError) as caught:
        check_names(spec, types | {"ped": "boolean"})
    assert str(caught.value) == (
        "specs/car.ltl:21:26: unknown name 'traffic cone'\n"
        '    seldom: P <= 1e-3 [F<=10 "traffic cone"]\n'
        "                             ^\n"
        "  hint: known: at_line, cell_m, early, gap_m, moving, moving_not, ped, stop_cell, v, vmax, x"
    )


def test_names_are_checked_in_lets_that_nothing_uses():
    unused = parse_spec('model "m.toml"\nlet a = bb\nlet c = x\nd: P = ? [ e ]')
    with pytest.raises(InputError, match="unknown name 'bb'"):
        check_names(unused, {"e": "boolean", "x": "number"})
    with pytest.raises(InputError, match="expected a condition, found 'x', which is a number"):
        check_names(unused, {"e": "boolean", "x": "number", "bb": "boolean"})


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "byte order mark"])
def test_files_of_every_system_read_the_same(newline, mark, tmp_path, spec):
    path = tmp_path / "car.ltl"
    raw = mark + TEXT.replace("\n", newline).encode()
    path.write_bytes(raw)
    found = read_spec(path)
    assert [each.formula for each in found.requirements] == [each.formula for each in spec.requirements]
    assert [each.line for each in found.requirements] == [each.line for each in spec.requirements]
    assert [each.text for each in found.requirements] == [each.text for each in spec.requirements]
    assert found.sha256 == hashlib.sha256(raw).hexdigest()
    assert found.model == tmp_path / "../models/car_pedestrian.toml"


def test_the_shipped_spec_is_read(root):
    assert [each.name for each in read_spec(root / "specs" / "car_pedestrian.ltl").requirements][:3] == [
        "stops_only_for_pedestrians",
        "stops_for_pedestrians",
        "never_stalls_early",
    ]


def requirement(target="P >= 0.5", formula="a"):
    return parse_spec(f'model "m.toml"\nr: {target} [ {formula} ]').requirements[0]


@given(st.sampled_from([">=", ">", "<=", "<"]), st.fractions(0, 1, max_denominator=10**6), st.booleans())
def test_targets_are_exact(comparison, target, spaced):
    space = " " if spaced else ""
    written = f"P{space}{comparison}{space}{target.numerator}{space}/{space}{target.denominator}"
    found = requirement(written)
    assert (found.comparison, found.target) == (comparison, target)


@pytest.mark.parametrize(
    ("written", "comparison", "target"),
    [
        ("P>=0.1", ">=", Fraction(1, 10)),  # not the nearest double
        ("P ≥ 1", ">=", Fraction(1)),
        ("P≤0", "<=", Fraction(0)),
        ("P < 1.5e-4", "<", Fraction(3, 20000)),
        ("P=?", "=", None),
    ],
)
def test_spellings_of_targets(written, comparison, target):
    found = requirement(written)
    assert (found.comparison, found.target) == (comparison, target)


def test_comments_and_divisions_are_told_apart():
    head = 'model "m.toml"\nr: P = ? [ a ]\n'
    assert parse_spec(head + "let near = x = 2 // the second cell").lets["near"] == parse_expression("x = 2")
    assert parse_spec(head + "let near = x = 2 # halfway").lets["near"] == parse_expression("x = 2")
    assert parse_spec(head + "let near = x = 2 //").lets["near"] == parse_expression("x = 2")
    assert parse_spec(head + "let near = a & b // c").lets["near"] == parse_expression("a & b")
    assert parse_spec(head + "set half = floor(7 / 2)").settings[0].value == 3
    for text in ("let near = x = 2 // halfway", "set half = 7 // 2", "set n = (7 // 2\n)", "sweep n = 1, 4 // 2"):
        with pytest.raises(InputError, match="this comment would also read as a division"):
            parse_spec(head + text)


def test_brackets_in_quotes_and_comments_do_not_count():
    text = 'model "m(1.toml"\nr: P = ? [ "a) [" // here ]\n | b # and ( there\n ]'
    assert parse_spec(text).requirements[0].formula == parse_formula('"a) [" | b')
    assert parse_spec(text).model == Path("m(1.toml")


def test_lets_may_form_a_long_chain():
    lets = "\n".join(f"let a{i} = a{i + 1}" for i in range(3000))
    spec = parse_spec(f'model "m.toml"\n{lets}\nlet a3000 = x = 1\nr: P = ? [ G a0 ]')
    assert spec.requirements[0].formula == parse_formula("G x = 1")


@pytest.mark.parametrize(
    ("comparison", "target"),
    [("==", Fraction(1)), ("=", Fraction(1)), (">=", None), (">=", Fraction(3, 2)), ("<", Fraction(-1))],
)
def test_impossible_requirements_are_programming_errors(comparison, target):
    with pytest.raises(ValueError, match="not a"):
        Requirement("r", comparison, target, TRUE, TRUE, 1, "", Asked(), None, None, False)


def test_a_model_in_place_of_a_spec_is_recognised(root):
    with pytest.raises(InputError) as caught:
        read_spec(root / "models/car_pedestrian.toml")
    assert caught.value.hint == "this seems to be a system model: give the spec (.ltl) that names it"


def test_a_range_of_one_value_is_that_value():
    (sweep,) = parse_spec('model "m.toml"\nsweep n = 5..5, 7\na: P = ? [ b ]').sweeps
    assert list(sweep.values) == [5, 7]


def test_sweeps_of_as_many_values_as_the_limit_are_read():
    def swept(values):
        return parse_spec(f'model "m.toml"\nsweep n = {values}\na: P = ? [ b ]').sweeps[0].values

    assert swept("1,2,3.5,10..11") == (1, 2, Fraction(7, 2), 10, 11)
    assert len(swept("1..100000")) == len(swept("0, 2..100000")) == 100_000
    for values, message in (
        ("1..100001", "the range 1..100001 has more than 100000 values"),
        ("0, 2..100001", "the sweep of 'n' has more than 100000 values"),
        ("5..4", "the range 5..4 has no values"),
        ("1..5/2", "a range goes from a whole number to a whole number"),
    ):
        with pytest.raises(InputError) as caught:
            swept(values)
        assert caught.value.message == message


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("let a = (b", "1:9", "'(' is not closed before the end of the file"),
        ("let a = (b\nlet c = d", "1:9", "'(' is not closed before the next statement"),
        ("let c = d\n let a = (b\n", "2:10", "'(' is not closed before the end of the file"),
        ("   let a = x = 2 // halfway", "1:18", "this comment would also read as a division"),
        ("let a.b = c", "1:5", "expected NAME = VALUE"),
        ("sweep a.b = 3", "1:7", "expected NAME = VALUE"),
        ("a: " + "x" * 38, "1:4", f"{_EXPECTED_TARGET}, found '{'x' * 38}'"),
        ("a: " + "x" * 39, "1:4", f"{_EXPECTED_TARGET}, found '{'x' * 35}...'"),
        ("a: P <= 0." + "1" * 59 + "[ b ]", "1:9", f"expected a decimal or a fraction, found '0.{'1' * 53}...'"),
        ("a: P = ?[b]" + "x" * 38, "1:12", f"expected the end of the statement, found '{'x' * 38}'"),
        ("a: P = ?[b]" + "x" * 39, "1:12", f"expected the end of the statement, found '{'x' * 35}...'"),
        ("a: T <= 5s [ F b ]", "1:10", "expected '[' and a formula, found 's'"),
        ("a: P <= 1 s [ F b ]", "1:11", "expected '[' and a formula, found 's'"),
        ("a: T <= 5 b [ F b ]", "1:11", "expected '[' and a formula, found 'b'"),
    ],
)
def test_what_is_no_statement_is_shown_where_it_stands(text, place, message):
    with pytest.raises(InputError) as caught:
        parse_spec(f'{text}\nmodel "m.toml"' if "not closed" not in message else text)
    assert f"{caught.value.place.line}:{caught.value.place.column}" == place
    assert caught.value.message == message
    if "and a formula" in message:
        assert (caught.value.hint == "targets of T are in seconds, without a unit") == ("5s" in text)


def test_no_spaces_are_needed_around_a_requirement():
    (found,) = parse_spec('model "m.toml"\na:P=?[b]').requirements
    assert (found.name, found.target, found.formula) == ("a", None, parse_formula("b"))
    assert parse_spec(f'model "m.toml"\na: P <= 0.{"1" * 58} [ b ]').requirements[0].target == Fraction(
        f"0.{'1' * 58}"
    )
    (found,) = parse_spec('model "m.toml"\na:T=?[F b]').requirements
    assert (found.asked.quantity, found.formula) == ("T", parse_formula("F b"))


def test_a_statement_that_begins_with_no_word_is_shown_by_its_first_character():
    with pytest.raises(InputError, match=r"2:1: expected a statement, found '\?'"):
        parse_spec('model "m.toml"\n?? : P = ? [ b ]\na: P = ? [ b ]')


def test_what_follows_a_formula_at_once_is_named():
    with pytest.raises(InputError, match=r"s\.ltl:2:13: expected the end of the statement, found 'c'"):
        parse_spec('model "m.toml"\na: P = ?[ b]c', "s.ltl")


def test_a_requirement_whose_name_has_other_letters_is_told_which_a_name_has():
    with pytest.raises(
        InputError, match=r"2:1: expected a statement, found 'h'\n.*\n.*\n  hint: the name of a requir"
    ):
        parse_spec('model "m.toml"\nhält: P = ? [ b ]')
