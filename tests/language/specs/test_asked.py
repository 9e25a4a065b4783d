"""What requirements ask beside the probability of a formula: how it is read, echoed and refused."""

from fractions import Fraction

import pytest

from verifier.base.errors import InputError
from verifier.language.expressions import to_text
from verifier.language.ltl import in_steps, parse_formula
from verifier.language.specs import check_names
from verifier.language.specs.reader import parse_spec

TYPES = dict.fromkeys(["a", "b", "given", "s"], "boolean") | {"x": "number"}


def read(text):
    (requirement,) = parse_spec(f'model "m.toml"\nq: {text}\n').requirements
    return requirement


@pytest.mark.parametrize(
    ("text", "quantity", "end", "reward", "level", "steps", "target"),
    [
        ("P >= 0.9 [ G a ]", "P", "", "", None, None, "9/10"),
        ("Pmin = ? [ G a ]", "P", "min", "", None, None, None),
        ("Pmax<=1/3 [ G a ]", "P", "max", "", None, None, "1/3"),
        ("R{fuel} <= 12.5 [ F a ]", "R", "", "fuel", None, None, "25/2"),
        ("Rmax { fuel } = ? [ F (a & x = 2) ]", "R", "max", "fuel", None, None, None),
        ("Rmin{fuel} > 3 [ C<=10 ]", "R", "min", "fuel", None, 10, "3"),
        ("T < 7 [ <> a ]", "T", "", "", None, None, "7"),
        ("Tmax ≤ 7 [ F a ]", "T", "max", "", None, None, "7"),
        ("T{0.95} = ? [ F a ]", "T", "", "", "19/20", None, None),
        ("T{1} >= 2 [ F a ]", "T", "", "", "1", None, "2"),
        ("Tmin{0.5} <= 3 [ F a ]", "T", "min", "", "1/2", None, "3"),
    ],
)  # fmt: skip
def test_the_numbers_that_are_asked(text, quantity, end, reward, level, steps, target):
    found = read(text)
    asked = found.asked
    assert (asked.quantity, asked.end, asked.reward, asked.steps) == (quantity, end, reward, steps)
    assert asked.level == (None if level is None else Fraction(level))
    assert found.target == (None if target is None else Fraction(target))
    again = read(found.question)
    assert (again.asked, again.comparison, again.target) == (asked, found.comparison, found.target)
    assert again.formula == found.formula


def test_given_divides_two_formulas_and_may_be_a_name():
    found = read("P >= 0.5 [ F a & b given G (x < 3) ]")
    assert to_text(found.formula) == "F a & b"
    assert to_text(found.given) == "G (x < 3)"
    assert found.question == "P >= 0.5 [ ((F a) & b) given (G (x < 3)) ]"
    assert read(found.question).given == found.given
    assert to_text(read("P = ? [ F given ]").formula) == "F given"
    both = read("P = ? [ F given given given & a ]")
    assert (to_text(both.formula), to_text(both.given)) == ("F given", "given & a")
    assert not found.is_plain


def test_lets_are_replaced_in_both():
    spec = parse_spec('model "m"\nlet slow = x < 3\nq: P = ? [ F slow given F (slow & a) ]\nr: T = ? [ F slow ]\n')
    first, second = spec.requirements
    assert (to_text(first.formula), to_text(first.given)) == ("F (x < 3)", "F (x < 3 & a)")
    assert to_text(second.formula) == "F (x < 3)"


def test_over_the_profile():
    found = read("T = ? over  profile [ F a ]")
    assert found.over_profile
    assert found.question == "T = ? over profile [ F a ]"
    assert not read("T = ? [ F a ]").over_profile


@pytest.mark.parametrize(
    ("written", "counted"),
    [
        ("F<=2s a", "F<=4 a"),
        ("F<2.5s a", "F<=4 a"),
        ("F>=1s a", "F>=2 a"),
        ("G>1s a", "G>=3 a"),
        ("F=1.5s a", "F[3,3] a"),
        ("a U[1s,2s] b", "a U[2,4] b"),
        ("G (a -> F<=2s b)", "G (a -> F<=4 b)"),
        ("F<=2 s", "F<=2 s"),
    ],
)
def test_bounds_in_seconds(written, counted):
    node = parse_formula(written)
    assert to_text(in_steps(node, Fraction(1, 2))) == counted
    assert parse_formula(to_text(node)) == node


def test_steps_are_counted_when_the_model_is_known():
    spec = parse_spec(
        'model "m"\nq: P = ? [ F<=2s a given G<1s b ]\nr: R{fuel} = ? [ C<=2.5s ]\ns: R{fuel} = ? [ C<=0.5s ]\n'
    )
    first, second, third = check_names(spec, TYPES, ["fuel"], Fraction(1, 2)).requirements
    assert (to_text(first.formula), to_text(first.given)) == ("F<=4 a", "G<=1 b")
    assert (second.asked.steps, third.asked.steps) == (5, 1)
    assert first.original == spec.requirements[0].original


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("R <= 3 [ F a ]", "R is of a reward: R{NAME}"),
        ("R{3} <= 3 [ F a ]", "R is of a reward: R{NAME}"),
        ("T{2} <= 3 [ F a ]", "expected a probability above 0, up to 1, found '2'"),
        ("T{0} <= 3 [ F a ]", "expected a probability above 0, up to 1, found '0'"),
        ("T{fast} <= 3 [ F a ]", "expected a decimal or a fraction, found 'fast'"),
        ("P{0.5} <= 1 [ F a ]", "P takes nothing in braces"),
        ("T <= 3 [ G a ]", "T takes [ F CONDITION ], found 'G a'"),
        ("T <= 3 [ F<=3 a ]", "T takes [ F CONDITION ], found 'F<=3 a'"),
        ("T <= 3 [ F (G a) ]", "T takes [ F CONDITION ], found 'F G a'"),
        ("T <= 3 [ C<=3 ]", "T takes [ F CONDITION ], found 'C <= 3'"),
        ("R{fuel} <= 3 [ a ]", "R{fuel} takes [ F CONDITION ] or [ C<=N ], found 'a'"),
        ("R{fuel} <= 3 [ C<=2.5 ]", "C counts steps: expected a whole number, found 2.5"),
        ("T <= 3 over profile [ F a ]", "'over profile' goes with = ?"),
        ("P >= 1.5 [ F a ]", "a probability is between 0 and 1, found 1.5"),
        ("P = ? [ F a given ]", "expected a condition or a number, found ']'"),
        ("T >= -3 [ F a ]", "or the same with R{reward}, T or T{q}, found 'T >= -3'"),
    ],
)  # fmt: skip
def test_what_is_refused_at_its_place(text, message):
    with pytest.raises(InputError) as caught:
        read(text)
    assert message in str(caught.value)
    assert ":2:" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "step_s", "column", "message"),
    [
        ("T = ? [ F a ]", None, 1, "T needs the duration of a step: step_s = ... in the model"),
        ("T{0.5} = ? [ F a ]", None, 1, "T needs the duration of a step: step_s = ... in the model"),
        ("P = ? [ F<=2s a ]", None, 12, "a bound in seconds needs the duration of a step: step_s = ... in the model"),
        (
            "R{fuel} = ? [ C<=2s ]",
            None,
            1,
            "a bound in seconds needs the duration of a step: step_s = ... in the model",
        ),
        ("P = ? [ F<=2s a ]", "3/4", 12, "expected a whole number of steps, got 2 s for steps of 0.75 s"),
        ("P = ? [ F<0s a ]", "1", 12, "the bound allows no step at all"),
        ("R{fule} = ? [ F a ]", "1", 1, "unknown reward 'fule'"),
        ("P = ? [ F a given F c ]", "1", 24, "unknown name 'c'"),
    ],
)
def test_what_does_not_fit_the_model(text, step_s, column, message):
    spec = parse_spec(f'model "m.toml"\nq: {text}\n', "spec.ltl")
    with pytest.raises(InputError) as caught:
        check_names(spec, TYPES, ["fuel"], None if step_s is None else Fraction(step_s))
    assert message in str(caught.value)
    assert f"spec.ltl:2:{column}:" in str(caught.value)


def test_an_unclosed_requirement_ends_before_the_next_one():
    with pytest.raises(InputError, match="is not closed before the next statement"):
        parse_spec('model "m"\nq: T = ? [ F a\nr: R{fuel} = ? [ F a ]\n')
    with pytest.raises(InputError, match="a requirement has a name"):
        parse_spec('model "m"\nR{fuel} = ? [ F a ]\n')
