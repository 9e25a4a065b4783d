"""An answer that cannot be is refused, and none is repaired."""

from fractions import Fraction

import numpy as np
import pytest

from verifier.base.errors import EngineError
from verifier.checking.enclosure import PROBABILITY_TOLERANCE, CheckedValues


def answer(value, lower=None, upper=None, fractions=None):
    arrays = [None if given is None else np.array(given, dtype=np.float64) for given in (value, lower, upper)]
    return CheckedValues(*arrays, fractions, "Storm 2.0.0")


def test_an_answer_keeps_what_it_was_given():
    given = answer([0.25, 1.0 + 1e-12, -1e-12], [0.25, 1.0, -1e-12], [0.5, 1.0 + 1e-12, 0.0])
    assert given.value.tolist() == [0.25, 1.0 + 1e-12, -1e-12]  # not clamped
    assert given.lower.tolist() == [0.25, 1.0, -1e-12]
    assert given.upper.tolist() == [0.5, 1.0 + 1e-12, 0.0]


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf"), 1.2, -0.1, 1 + 1e-8])
def test_a_value_that_is_no_probability_is_refused(wrong):
    edges = [-PROBABILITY_TOLERANCE, 1 + PROBABILITY_TOLERANCE]
    assert answer(edges).value.tolist() == edges
    with pytest.raises(EngineError, match=r"Storm 2\.0\.0 answered .* for a probability"):
        answer([0.5, wrong])


@pytest.mark.parametrize("wrong", [float("nan"), 1.2, -0.1])
def test_a_bound_that_is_no_probability_is_refused(wrong):
    with pytest.raises(EngineError, match="for a lower bound of a probability"):
        answer([0.5], [wrong], [0.6])
    with pytest.raises(EngineError, match="for an upper bound of a probability"):
        answer([0.5], [0.4], [wrong])


def test_bounds_in_the_wrong_order_are_refused_however_close():
    with pytest.raises(EngineError, match=r"the bounds 0\.5000000000000001 and 0\.5, in the wrong order"):
        answer([0.5], [0.5000000000000001], [0.5])


def test_a_value_outside_its_bounds_is_refused():
    with pytest.raises(EngineError, match=r"answered 0\.7, outside its own bounds \[0\.1, 0\.2\]"):
        answer([0.7], [0.1], [0.2])
    inside = 0.2 + PROBABILITY_TOLERANCE / 2
    assert answer([inside], [0.1], [0.2]).value[0] == inside


def test_one_wrong_state_among_right_ones_is_refused_and_named():
    with pytest.raises(EngineError, match=r"the bounds 0\.75 and 0\.5, in the wrong order"):
        answer([0.5, 0.5], [0.5, 0.75], [0.5, 0.5])
    with pytest.raises(EngineError, match=r"answered 0\.75, outside its own bounds \[0\.25, 0\.5\]"):
        answer([0.5, 0.75], [0.25, 0.25], [0.5, 0.5])
    with pytest.raises(EngineError, match=r"answered 2\.0 for a probability"):
        answer([0.5, 2.0])


@pytest.mark.parametrize(("size", "slack"), [(0.5, 1), (100.0, 100)])  # absolute below 1, relative above
def test_how_far_a_gain_may_lie_outside_its_bounds(size, slack):
    def beside(far):
        value, bound = np.array([size + far * slack * PROBABILITY_TOLERANCE]), np.array([size])
        return CheckedValues(value, bound, bound, None, "made", most=np.inf)

    for side in (-1, 1):
        assert beside(0.9 * side).lower[0] == size
        with pytest.raises(EngineError, match="outside its own bounds"):
            beside(1.1 * side)


@pytest.mark.filterwarnings("error")
def test_an_infinite_gain_lies_in_infinite_bounds_only():
    infinite = np.array([np.inf])
    assert CheckedValues(infinite, infinite, infinite, None, "made", most=np.inf).value[0] == np.inf
    with pytest.raises(EngineError, match=r"answered inf, outside its own bounds \[0\.0, 3\.0\]"):
        CheckedValues(infinite, np.array([0.0]), np.array([3.0]), None, "made", most=np.inf)


def test_exact_answers_are_fractions_in_the_unit_interval():
    assert answer([1 / 3], fractions=(Fraction(1, 3),)).fractions == (Fraction(1, 3),)
    for wrong in (Fraction(10**30 + 1, 10**30), Fraction(-1, 10**30)):
        with pytest.raises(EngineError, match="exact probability outside"):
            answer([float(wrong)], fractions=(wrong,))


def test_arrays_that_do_not_fit_together_are_an_error_of_the_program():
    with pytest.raises(ValueError, match="pairs"):
        answer([0.5], [0.4])
    with pytest.raises(ValueError, match="every initial state needs one double"):
        answer([0.5], [0.4, 0.4], [0.6, 0.6])
    for lower, upper in (([0.4, 0.4], [0.6]), ([0.4], [0.6, 0.6])):
        with pytest.raises(ValueError, match="every initial state needs one double"):
            answer([0.5], lower, upper)
    with pytest.raises(ValueError, match="every initial state needs one double"):
        CheckedValues(np.array([1]), None, None, None, "Storm")
    with pytest.raises(ValueError, match="pairs"):
        answer([0.5], None, [0.4])
    with pytest.raises(ValueError, match="one fraction"):
        answer([0.5, 0.5], fractions=(Fraction(1, 2),))
    with pytest.raises(ValueError, match="rounded"):
        answer([0.5], fractions=(Fraction(1, 3),))
