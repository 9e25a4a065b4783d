"""The join of both engines' bounds, with engines whose answers are chosen, compared as exact fractions."""

import contextlib
import math
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_chains import ladder
from small_chains import chain_of, check_formulas

from verifier.base.errors import EngineError, NoAnswerError
from verifier.checking import enclosure, two_engines
from verifier.checking.batch import BatchResult
from verifier.checking.enclosure import (
    AGREEMENT,
    BOUND_ROUNDOFF,
    CheckedValues,
    NoProbabilityError,
    doubles_around,
    holds,
    intersection,
    outwards,
)
from verifier.checking.process import RefusedError
from verifier.checking.settings import EngineSettings
from verifier.language.ltl import parse_formula

FORMULA = parse_formula("F a")
probabilities = st.floats(0, 1)
amounts = st.floats(5e-324, 1e-3)


def array(*numbers):
    return np.array(numbers, dtype=np.float64)


def batch(lower, upper, representation=0.0, steps=1.0):
    one = [array(number)[None] for number in (lower, upper, (lower + upper) / 2, representation, steps)]
    return BatchResult(one[2], (one[1] - one[0]) / 2, one[3], one[4], one[0], one[1])


def storm_answer(value, lower=None, upper=None, fractions=None):
    bounds = (None, None) if lower is None else (array(lower), array(upper))
    return CheckedValues(array(value), *bounds, fractions, "Storm 0")


def joined(answer, second, moved=0.0):
    lower, upper = intersection(FORMULA, answer, second, array(moved))
    return float(lower[0]), float(upper[0])


@pytest.mark.parametrize(
    ("storm", "second", "expected"),
    [
        # Each engine is the narrower one on either side, and vacuous bounds say nothing.
        ((0.5, 0.25, 0.75), (0.375, 0.625), (0.375, 0.625)),
        ((0.5, 0.375, 0.625), (0.25, 0.75), (0.375, 0.625)),
        ((0.5, 0.25, 0.625), (0.375, 0.75), (0.375, 0.625)),
        ((0.5, 0.375, 0.75), (0.25, 0.625), (0.375, 0.625)),
        ((0.5, 0.0, 1.0), (0.4375, 0.5625), (0.4375, 0.5625)),
        ((0.5, 0.4375, 0.5625), (0.0, 1.0), (0.4375, 0.5625)),
    ],
)
def test_the_enclosure_is_the_intersection(storm, second, expected):
    lower, upper = joined(storm_answer(*storm), batch(*second))
    # Storm's ends count as off by 2^-49, to the outside; those of the batch engine as they are.
    assert BOUND_ROUNDOFF == 2.0**-49
    assert Fraction(lower) in (Fraction(expected[0]), Fraction(expected[0]) - Fraction(BOUND_ROUNDOFF))
    assert Fraction(upper) in (Fraction(expected[1]), Fraction(expected[1]) + Fraction(BOUND_ROUNDOFF))


def test_rounding_moves_storms_bounds_outwards_and_no_others():
    answer = storm_answer(0.5, 0.4375, 0.5625)
    lower, upper = joined(answer, batch(0.0, 1.0), moved=2**-10)
    assert lower == 0.4375 - 2**-10 - BOUND_ROUNDOFF
    assert upper == 0.5625 + 2**-10 + BOUND_ROUNDOFF
    assert joined(answer, batch(0.46875, 0.53125), moved=2**-10) == (0.46875, 0.53125)
    assert joined(answer, batch(0.25, 0.75), moved=math.inf) == (0.25, 0.75)


def test_more_steps_and_wider_rows_make_storms_bounds_count_for_less():
    half = Fraction(1, 2)
    two = chain_of([{0: half, 1: half}, {1: Fraction(1)}], {"a": {1}})
    second = replace(batch(0.0, 1.0), expected_steps=array(2.0**20)[None])
    # Two transitions in a row: 12 roundings of 2^-53 in each of 2^20 steps.
    assert enclosure.rounding_of_iteration(two, second)[0] == 12 * 2.0**-33
    three = chain_of([{0: half, 1: half / 2, 2: half / 2}, {1: 1}, {2: 1}], {"a": {1}})
    assert enclosure.rounding_of_iteration(three, second)[0] == 15 * 2.0**-33


@pytest.mark.parametrize("side", [-1, 1])
def test_bounds_that_miss_each_other_are_a_disagreement(side):
    answer = storm_answer(0.5, 0.4375, 0.5625)
    edge = 0.5625 if side > 0 else 0.4375

    def beyond(by):
        near = edge + side * by
        return batch(*sorted((near, near + side / 64)))

    with pytest.raises(EngineError, match=r"disagree on F a at initial state 0: Storm 0 gives the bounds 0\.4375 to"):
        joined(answer, beyond(1e-8))
    # A gap of less than AGREEMENT, relative to the upper ends, is none; the batch engine's enclosure stands.
    second = beyond(AGREEMENT / 4)
    lower, upper = joined(answer, second)
    assert (lower, upper) == (second.lower[0, 0], second.upper[0, 0])
    # Relative to the probability: of small ones the same gap is far too much.
    with pytest.raises(EngineError, match="disagree"):
        joined(storm_answer(0.0, 0.0, 1e-12), batch(1e-10, 2e-10))
    # Of a wide interval the upper end counts, whichever engine it is from.
    assert joined(storm_answer(0.25, 1e-10, 0.5), batch(0.0, 5e-11)) == (0.0, 5e-11)
    assert joined(storm_answer(0.0, 0.0, 5e-11), batch(1e-10, 0.5)) == (1e-10, 0.5)
    # More than that is allowed to rounding, and only to rounding.
    assert joined(answer, beyond(1e-8), moved=2e-8) is not None


def test_intervals_that_touch_meet_in_one_number():
    answer = storm_answer(0.5, 0.5 + BOUND_ROUNDOFF, 0.75)
    assert joined(answer, batch(0.25, 0.5)) == (0.5, 0.5)
    # A gap of just what is allowed is none, and the least more is one.
    edge = AGREEMENT + BOUND_ROUNDOFF
    assert joined(storm_answer(0.5, edge, 1.0), batch(0.0, 0.0)) == (0.0, 0.0)
    with pytest.raises(EngineError, match="disagree"):
        joined(storm_answer(0.5, math.nextafter(edge, 1), 1.0), batch(0.0, 0.0))


def several(*parts):
    """Answers or enclosures of one initial state each, as those of several."""
    if isinstance(parts[0], CheckedValues):
        return CheckedValues(
            *(np.concatenate([getattr(each, name) for each in parts]) for name in ("value", "lower", "upper")),
            None,
            "Storm 0",
        )
    return BatchResult(
        **{name: np.concatenate([vars(each)[name] for each in parts], axis=1) for name in vars(parts[0])}
    )


def test_one_initial_state_of_several_is_where_the_engines_disagree():
    right, wrong = storm_answer(0.5, 0.4375, 0.5625), storm_answer(0.25, 0.25, 0.25)
    second = batch(0.46875, 0.53125)
    for at, answers in ((0, (wrong, right, right)), (1, (right, wrong, right)), (2, (right, right, wrong))):
        answer, enclosed = several(*answers), several(second, second, second)
        with pytest.raises(EngineError, match=f"initial state {at}: Storm 0 gives the bounds 0.25 to 0.25"):
            intersection(FORMULA, answer, enclosed, array(0.0, 0.0, 0.0))
        with pytest.raises(EngineError, match=f"initial state {at}: Storm 0 says 0.25, the batch engine says 0.5 "):
            enclosure.refuse_disagreement(FORMULA, answer, enclosed, array(1e-9, 1e-9, 1e-9))
    low, high = intersection(FORMULA, several(right, right), several(second, batch(0.25, 0.5)), array(0.0, 0.0))
    assert (low.tolist(), high.tolist()) == ([0.46875, 0.4375 - BOUND_ROUNDOFF], [0.53125, 0.5])


def test_how_far_a_value_lies_outside():
    for value, distance in ((0.875, 0.25), (0.625, 0.0), (0.5, -0.125), (0.25, 0.0), (0.125, 0.125)):
        assert enclosure.apart(storm_answer(value), batch(0.25, 0.625))[0] == distance
        enclosure.refuse_disagreement(FORMULA, storm_answer(value), batch(0.25, 0.625), array(max(distance, 0.0)))
        if distance > 0:
            with pytest.raises(EngineError, match="disagree"):
                enclosure.refuse_disagreement(
                    FORMULA, storm_answer(value), batch(0.25, 0.625), array(math.nextafter(distance, 0))
                )


def test_no_number_is_a_disagreement():
    with pytest.raises(EngineError, match="disagree"):
        joined(storm_answer(0.5, 0.25, 0.75), batch(math.nan, 0.75))


@given(bound=probabilities, by=amounts)
def test_outwards_rounds_away_from_the_value(bound, by):
    for sign in (-1, 1):
        moved = float(outwards(array(bound), array(sign * by))[0])
        exact = Fraction(bound) + sign * Fraction(by)
        if sign < 0:
            assert Fraction(moved) <= max(exact, Fraction(0))
        else:
            assert Fraction(moved) >= min(exact, Fraction(1))
        assert 0 <= moved <= 1
        # And no further than two neighbours from it.
        limit = 2 * math.ulp(float(exact))
        assert abs(Fraction(moved) - min(max(exact, Fraction(0)), Fraction(1))) <= Fraction(limit)


@given(probabilities)
def test_outwards_leaves_what_cannot_be_off(bound):
    assert outwards(array(bound), array(0.0))[0] == bound
    assert outwards(array(bound), array(-0.0))[0] == bound


@given(st.fractions(0, 1, max_denominator=10**30))
def test_doubles_around_a_fraction(number):
    below, above = doubles_around(number)
    assert Fraction(below) <= number <= Fraction(above)
    assert above == (below if Fraction(below) == number else math.nextafter(below, math.inf))


class Substitute:
    """Storm, but for answers that are chosen: (exact, direct) -> an answer or an error."""

    def __init__(self, answers):
        self.answers = answers
        self.asked_for = []

    def check(self, chain, texts, *, exact=False, direct=False, **limits):
        self.asked_for.append((exact, direct))
        answer = self.answers[exact, direct]
        if isinstance(answer, Exception):
            raise answer
        return [answer for _ in texts]

    @contextlib.contextmanager
    def asked(self, chain, texts, **options):
        yield SimpleNamespace(usable=bool(texts), within=lambda seconds: self.check(chain, texts[:1], **options)[0])


class Opposite(Substitute):
    """The same, but for a negation what is left to 1: it does not contradict itself."""

    def check(self, chain, texts, **options):
        (answer,) = super().check(chain, texts[:1], **options)
        return [storm_answer(1 - answer.value[0]) if text.startswith("(!") else answer for text in texts]


OVERDUE = NoAnswerError("checking F a took longer than the limit of 5 s")
THIRD = storm_answer(float(Fraction(1, 3)), fractions=(Fraction(1, 3),))


def ring(exit_share):
    """0 <-> 1 until a way out is taken, one third of which lead to the goal 2."""
    rows = [{1: 1 - exit_share, 2: exit_share / 3, 3: 2 * exit_share / 3}, {0: Fraction(1)}, {2: 1}, {3: 1}]
    chain = chain_of(rows, {"a": {2}})
    shares = tuple(Fraction(row[state]) for row in rows for state in sorted(row))
    return chain, lambda: replace(chain, fractions=shares)


def ruled(storm, exit_share=Fraction(1, 10), target=None, **arguments):
    chain, exactly = ring(exit_share)
    (found,) = check_formulas(chain, [FORMULA], storm, targets=[target], exact_chain=exactly, **arguments)
    return found


def test_vacuous_bounds_of_storms_leave_the_other_engines():
    found = ruled(Substitute({(False, False): storm_answer(0.3333333333, 0.0, 1.0)}))
    assert found.lower[0] == 0.3333333333
    assert Fraction(1, 3) <= Fraction(found.upper[0]) < Fraction(1, 3) + Fraction(1, 10**14)


def test_the_reported_value_is_held_whatever_is_proven():
    for value in (0.3333333333, 0.3333333334):
        found = ruled(Substitute({(False, False): storm_answer(value, 0.333, 0.334)}))
        assert found.probability[0] == value
        assert value in (found.lower[0], found.upper[0])
        assert Fraction(found.lower[0]) <= Fraction(1, 3) <= Fraction(found.upper[0])


def test_few_steps_are_iterated_and_many_are_factorised():
    near = storm_answer(float(Fraction(1, 3)), 0.3333, 0.3334)
    for share, direct in ((Fraction(1, 10), False), (Fraction(1, 10**5), True)):
        storm = Substitute({(False, direct): near})
        ruled(storm, share)
        assert storm.asked_for == [(False, direct)]


def test_bounds_of_a_factorisation_are_not_believed():
    # It claims bounds without width that are wrong; the value is within what it may be off by.
    storm = Substitute({(False, True): storm_answer(0.33333333335, 0.33333333335, 0.33333333335)})
    found = ruled(storm, Fraction(1, 10**5))
    assert found.upper[0] == found.probability[0] == 0.33333333335
    assert Fraction(found.lower[0]) <= Fraction(1, 3)


def test_a_target_within_the_enclosure_is_settled_exactly():
    third = Fraction(1, 3)
    near = storm_answer(float(third), 0.3333333333333, 0.3333333333334)
    answers = {(False, False): near, (True, False): THIRD}
    storm = Substitute(answers)
    found = ruled(storm, target=Fraction(0.33333333333333337))
    assert storm.asked_for == [(False, False), (True, False)]
    assert (found.lower[0], found.upper[0]) == doubles_around(third)
    assert found.fractions is None
    storm = Substitute(answers)
    ruled(storm, target=Fraction(1, 2))
    assert storm.asked_for == [(False, False)]


def test_a_rare_value_with_few_digits_is_settled_exactly_or_on_the_product():
    # Storm subtracts what is nearly certain from 1: of 1e-8 only eight digits are right.
    rare = Fraction(1, 10**8)
    rows = [{1: rare, 2: 1 - rare}, {1: 1}, {2: 1}]
    chain = chain_of(rows, {"a": {1}})
    shares = tuple(Fraction(row[state]) for row in rows for state in sorted(row))
    coarse, fine = storm_answer(float(rare) + 1e-16), storm_answer(float(rare), fractions=(rare,))
    for answer in (coarse, storm_answer(float(rare))):
        storm = Substitute({(False, False): answer, (True, False): fine})
        (found,) = check_formulas(chain, [FORMULA], storm, exact_chain=lambda: replace(chain, fractions=shares))
        assert ((True, False) in storm.asked_for) == (answer is coarse)
        assert found.probability[0] == float(rare)
        assert found.lower[0] <= float(rare) <= found.upper[0] <= float(rare) * (1 + 1e-12)
    (found,) = check_formulas(chain, [FORMULA], Substitute({(False, False): coarse}))
    assert found.probability[0] == found.upper[0] == float(rare) + 1e-16


def test_exact_arithmetic_must_agree_too():
    wrong = storm_answer(0.5, fractions=(Fraction(1, 2),))
    storm = Substitute({(False, False): storm_answer(float(Fraction(1, 3)), 0.333, 0.334), (True, False): wrong})
    with pytest.raises(EngineError, match=r"disagree on F a at initial state 0: Storm 0 says 0\.5, the batch engine"):
        ruled(storm, target=Fraction(0.33333333333333337))


def test_a_difference_that_rounding_explains_is_settled_exactly_or_by_one_engine():
    off = storm_answer(0.3334)
    rare = Fraction(1, 10**12)
    found = ruled(Substitute({(False, True): off, (True, False): THIRD}), rare)
    assert (found.lower[0], found.upper[0]) == doubles_around(Fraction(1, 3))
    found = ruled(Substitute({(False, True): off, (True, False): OVERDUE}), rare)
    assert found.engine == "batch engine"
    assert found.probability[0] == found.second[0]
    assert Fraction(found.lower[0]) <= Fraction(1, 3) <= Fraction(found.upper[0])
    assert found.remark.startswith("one engine: Storm 0 loses too many digits")


def test_a_difference_that_rounding_does_not_explain_is_a_disagreement():
    off = storm_answer(0.3334, 0.3333, 0.3335)
    with pytest.raises(EngineError, match=r"disagree on F a at initial state 0: Storm 0 says 0\.3334"):
        ruled(Opposite({(False, False): off}))
    with pytest.raises(EngineError, match="disagree"):
        ruled(Opposite({(False, True): storm_answer(0.3434)}), Fraction(1, 10**5))


def test_no_answer_in_time_is_one_engines_answer():
    storm = Substitute({(False, False): OVERDUE, (False, True): OVERDUE, (True, False): OVERDUE})
    for share in (Fraction(1, 10), Fraction(1, 10**5)):
        found = ruled(storm, share)
        assert found.remark.startswith("one engine: checking F a took longer than the limit of 5 s")
        assert Fraction(found.lower[0]) <= Fraction(1, 3) <= Fraction(found.upper[0])
    exact = Substitute({(False, False): OVERDUE, (True, False): THIRD})
    found = ruled(exact)
    assert found.remark is None
    assert (found.lower[0], found.upper[0]) == doubles_around(Fraction(1, 3))


def test_what_the_given_probabilities_may_be_off_by_widens_every_enclosure():
    # Each is off by a factor of up to 1 +- 1e-8, in two states: the probability by a little less than 4e-8 of 1/3.
    near = storm_answer(float(Fraction(1, 3)), 0.33, 0.34)
    for storm in (Substitute({(False, False): near, (True, False): OVERDUE}),
                  Substitute({(False, False): OVERDUE, (True, False): OVERDUE})):  # fmt: skip
        found = ruled(storm, value_error=1e-8)
        assert 1e-9 < 1 / 3 - found.lower[0] < 2e-8
        assert 1e-9 < found.upper[0] - 1 / 3 < 2e-8


def test_what_is_no_probability_is_settled_where_rounding_explains_it_and_an_error_elsewhere():
    nonsense = NoProbabilityError("Storm 0 answered 1.25 for a probability")
    storm = Substitute({(False, True): nonsense, (False, False): nonsense, (True, False): THIRD})
    found = ruled(storm, Fraction(1, 10**12))
    assert (found.lower[0], found.upper[0]) == doubles_around(Fraction(1, 3))
    with pytest.raises(NoProbabilityError):
        ruled(storm, Fraction(1, 10))


def test_no_answer_in_time_and_nothing_proven_is_an_error():
    # Leaving takes 1,100 steps of 1e-20 each in a row.
    chain = chain_of(ladder(1100, Fraction(1, 10**20)), {"a": {1100}})
    with pytest.raises(NoAnswerError, match="took longer than the limit of 5 s"):
        check_formulas(chain, [FORMULA], Substitute({(False, True): OVERDUE}))


def test_rows_that_do_not_sum_to_1_have_bounds_around_both_engines():
    chain, _ = ring(Fraction(1, 10))
    rounded = replace(chain, rounding_defect=0.1)
    for value in (1 / 3 - 5e-10, 1 / 3, 1 / 3 + 5e-10):
        storm = Substitute({(False, False): storm_answer(value)})
        (found,) = check_formulas(rounded, [FORMULA], storm)
        (alone,) = check_formulas(rounded, [FORMULA], Substitute({(False, False): OVERDUE}))
        assert found.probability[0] == value
        assert found.lower[0] == min(value, alone.lower[0])
        assert found.upper[0] == max(value, alone.upper[0])


def test_of_several_initial_states_each_can_be_undecided():
    third, quarter = Fraction(1, 3), 0.25
    values = array(quarter, 0.3), array(quarter, 0.4)
    assert holds(*values, third)
    assert not holds(*values, None)
    # A point without width is decided even where it is the target itself.
    assert not holds(*values, Fraction(1, 4))
    for end in (0.3, 0.4):
        assert holds(*values, Fraction(end))
    for beyond in (math.nextafter(0.3, 0), math.nextafter(0.4, 1)):
        assert not holds(*values, Fraction(beyond))


def test_a_target_on_the_very_probability_is_met_exactly(storm):
    # Storm's own exact answer, for the chain whose fractions are the true ones.
    found = ruled(storm, settings=EngineSettings(), target=Fraction(1, 3))
    assert (found.lower[0], found.upper[0]) == doubles_around(Fraction(1, 3))


def both(*, exact=False, defect=0.0, ask=None, on_product=None, exact_chain=None):
    """Who holds the engines together, around a chain whose rows have two transitions."""
    chain = SimpleNamespace(rounding_defect=defect, initial=[0], indptr=np.array([0, 2, 4]))
    settings = SimpleNamespace(exact=exact, memory_bytes=2**30)
    return two_engines.TwoEngines(
        SimpleNamespace(chain=chain, settings=settings, ask=ask, on_product=on_product), exact_chain
    )


def asked_about(second, *, direct=False, product=None, window=None):
    clock = SimpleNamespace(left_s=None)
    return SimpleNamespace(
        batch=second,
        direct=direct,
        product=product,
        task=SimpleNamespace(window=window, formula=FORMULA, clock=clock),
    )


EXACT_HALF = storm_answer(0.5, fractions=(Fraction(1, 2),))


@pytest.mark.parametrize(
    ("answer", "direct", "defect", "expected"),
    [
        (storm_answer(0.5), False, 0.0, AGREEMENT),
        (storm_answer(0.5), True, 0.0, AGREEMENT * 0.5),  # a factorisation has no absolute error
        (EXACT_HALF, False, 0.0, AGREEMENT * 0.5 + 2.0**-49 + 2.0**-40),
        (EXACT_HALF, False, 0.5, AGREEMENT),  # the fractions of rounded rows are no true ones
    ],
)
def test_what_the_engines_may_differ_by(answer, direct, defect, expected):
    found = asked_about(batch(0.25, 0.5, representation=2.0**-40), direct=direct)
    assert both(defect=defect)._tolerance(found, answer) == [expected]


def test_what_rounding_may_lose():
    found = asked_about(batch(0.25, 0.5, steps=2.0**20))
    assert both()._lost(found)[0] == 12 * 2.0**-33
    assert both()._lost(asked_about(found.batch, direct=True))[0] == 12 * 2.0**-33 * two_engines._FACTORISATION_LOSS
    for held in (both(exact=True), both(defect=0.5), both(exact=True, defect=0.5)):
        assert held._lost(found)[0] == 0


def test_what_is_disputed():
    found, held = asked_about(batch(0.0, 0.0)), both()
    assert not held._disputed(found, storm_answer(AGREEMENT))
    assert held._disputed(found, storm_answer(math.nextafter(AGREEMENT, 1)))
    assert not held._disputed(found, storm_answer(0.25), lost=0.25)
    two = asked_about(several(batch(0.0, 0.0), batch(0.25, 0.5)))
    both_right = CheckedValues(array(0.0, 0.375), None, None, None, "Storm 0")
    one_wrong = CheckedValues(array(0.0, 0.75), None, None, None, "Storm 0")
    assert not held._disputed(two, both_right)
    assert held._disputed(two, one_wrong)


def test_what_the_product_gives_instead_may_be_off_by_what_rounding_loses(monkeypatch):
    wrong = storm_answer(0.75), None
    for name, value in (("_answer", wrong), ("_contradicts_itself", True), ("_lost", array(0.25))):
        monkeypatch.setattr(two_engines.TwoEngines, name, lambda self, *of, value=value: value)
    found = asked_about(batch(0.25, 0.25))
    with pytest.raises(two_engines._ImpreciseError, match="loses too many digits"):
        both(on_product=lambda found: storm_answer(0.375))._compared(found)
    with pytest.raises(EngineError, match="disagree"):
        both(on_product=lambda found: storm_answer(0.75))._compared(found)


@pytest.mark.parametrize(("fault", "contradicts"), [(None, False), ("has no answer in time", True)])
def test_the_product_is_not_asked_where_storm_agrees_with_itself_or_was_asked_about_it(
    monkeypatch, fault, contradicts
):
    wrong = storm_answer(0.75), fault
    monkeypatch.setattr(two_engines.TwoEngines, "_answer", lambda self, found: wrong)
    monkeypatch.setattr(two_engines.TwoEngines, "_contradicts_itself", lambda self, found, answer: contradicts)
    with pytest.raises(EngineError, match=r"Storm 0 says 0\.75"):
        both(on_product=lambda found: storm_answer(0.25))._compared(asked_about(batch(0.25, 0.25)))


@pytest.mark.parametrize("wide", [0, 1])
def test_one_engine_answers_where_all_of_its_enclosures_are_narrow(monkeypatch, wide):
    monkeypatch.setattr(two_engines, "ONE_ENGINE_WIDTH", 2.0**-20)

    def answered(width, failure=OVERDUE, **held):
        parts = [batch(0.25, 0.25), batch(0.25, 0.25)]
        parts[wide] = batch(0.5, 0.5 + width)
        return both(**held)._one_engine(asked_about(several(*parts)), failure)

    assert answered(2.0**-20).upper[wide] == 0.5 + 2.0**-20
    assert answered(0.25, defect=0.5).upper[wide] == 0.75  # rounded rows are as wide as they have to be
    with pytest.raises(NoAnswerError, match="longer than the limit"):
        answered(2.0**-20 + 2.0**-40)
    with pytest.raises(EngineError, match="neither engine can tell"):
        answered(2.0**-19, two_engines._ImpreciseError("Storm 0 loses too many digits on this chain"))


def test_digits_are_lacking_where_more_is_off_than_the_larger_bound_allows():
    found, held = asked_about(batch(0.25, 0.5, representation=2.0**-40)), both()
    assert not held._lacks_digits(found, storm_answer(0.5 + 0.4 * AGREEMENT))
    assert held._lacks_digits(found, storm_answer(0.5 + 0.6 * AGREEMENT))
    two = asked_about(several(found.batch, found.batch))
    assert held._lacks_digits(two, CheckedValues(array(0.5, 0.75), None, None, None, "Storm 0"))
    assert not held._lacks_digits(asked_about(batch(0.0, 0.0, representation=2.0**-20)), storm_answer(2.0**-20))
    off = asked_about(batch(0.25, 0.5, representation=2.0**-20))  # of the given numbers, which both engines share
    assert not held._lacks_digits(off, storm_answer(0.5 + 2.0**-20))
    assert held._lacks_digits(off, storm_answer(0.5 + 2.0**-20 + AGREEMENT))
    for held in (both(exact=True), both(defect=0.5)):  # what is exact has them all, and rounded rows are worth none
        assert not held._lacks_digits(found, storm_answer(0.75))


@pytest.mark.parametrize(
    ("failure", "product", "why"),
    [
        (OVERDUE, "made", "has no answer in time"),
        (RefusedError("no"), "made", "cannot check the formula"),
        (OVERDUE, None, None),
        (NoProbabilityError("1.25"), "made", None),
        (NoProbabilityError("1.25"), None, None),
    ],
)
def test_the_product_is_asked_where_there_is_one_and_the_formula_got_no_answer(failure, product, why):
    found = asked_about(batch(0.0, 1.0), product=product)
    found.answer, found.failure, found.task.text = None, failure, "F a"
    held = both(on_product=lambda found: EXACT_HALF)
    with nullcontext() if why else pytest.raises(type(failure)):
        assert held._answer(found) == (EXACT_HALF, why)


def test_what_is_no_probability_is_excused_by_rounding_in_one_state(monkeypatch):
    def nonsense(self, found):
        raise NoProbabilityError("Storm 0 answered 1.25 for a probability")

    monkeypatch.setattr(two_engines.TwoEngines, "_compared", nonsense)
    monkeypatch.setattr(two_engines.TwoEngines, "_exactly", lambda self, found: "exactly")
    for lost in ((0.0, 2e-9), (2e-9, 0.0)):
        monkeypatch.setattr(two_engines.TwoEngines, "_lost", lambda self, found, lost=lost: array(*lost))
        assert both()._settled(asked_about(batch(0.0, 1.0)), None) == "exactly"
    monkeypatch.setattr(two_engines.TwoEngines, "_lost", lambda self, found: array(0.0, 1e-9))
    with pytest.raises(NoProbabilityError):
        both()._settled(asked_about(batch(0.0, 1.0)), None)


@pytest.mark.parametrize(
    ("width", "target", "settled"),
    [(1.0, None, False), (1.0 + 2.0**-20, None, True), (1.0, Fraction(1, 2), True), (1.0, Fraction(1, 2**40), False)],
)
def test_what_is_wider_than_it_may_be_or_holds_a_target_is_settled_exactly(monkeypatch, width, target, settled):
    wide = SimpleNamespace(lower=array(0.5), upper=array(0.5 + width * 2.0**-30))
    monkeypatch.setattr(two_engines, "WIDTH", 2.0**-30)
    monkeypatch.setattr(two_engines.TwoEngines, "_compared", lambda self, found: wide)
    monkeypatch.setattr(two_engines.TwoEngines, "_exactly", lambda self, found: "exactly")
    assert both()._settled(asked_about(batch(0.0, 1.0)), target) == ("exactly" if settled else wide)


def test_storm_contradicts_itself_where_two_numbers_do_not_add_up_to_1():
    def held(other, defect=0.0):
        return both(ask=lambda found, text: CheckedValues(other, None, None, None, "Storm 0"), defect=defect)

    found = asked_about(batch(0.25, 0.25))
    assert not held(array(0.75 + 1e-10))._contradicts_itself(found, storm_answer(0.25))
    for off in (2e-9, -2e-9):
        assert held(array(0.75 + off))._contradicts_itself(found, storm_answer(0.25))
        assert not held(array(0.75 + off), defect=1e-8)._contradicts_itself(found, storm_answer(0.25))
    answers = CheckedValues(array(0.25, 0.5), None, None, None, "Storm 0")
    assert held(array(0.75, 0.25))._contradicts_itself(found, answers)
    assert not held(array(0.5))._contradicts_itself(asked_about(found.batch, window=object()), storm_answer(0.25))

    def overdue(found, text):
        raise OVERDUE

    assert not both(ask=overdue)._contradicts_itself(found, storm_answer(0.25))


def test_bounds_are_asked_for_where_there_are_none_and_a_product():
    better, plain = storm_answer(0.5, 0.375, 0.625), storm_answer(0.5)
    held = both(on_product=lambda found: better)
    assert held._bounds(asked_about(batch(0.25, 0.75), product=object()), plain) is better
    given = storm_answer(0.5, 0.25, 0.75)
    assert held._bounds(asked_about(batch(0.25, 0.75), product=object()), given) is given
    assert held._bounds(asked_about(batch(0.25, 0.75), product=object(), direct=True), plain) is plain
    assert held._bounds(asked_about(batch(0.25, 0.75)), plain) is plain


@pytest.mark.parametrize(
    ("states", "arguments", "tried"),
    [
        (two_engines.EXACT_STATES, {}, True),
        (two_engines.EXACT_STATES + 1, {}, False),
        (None, {}, False),
        (5, {"exact": True}, False),
        (5, {"defect": 0.5}, False),
        (5, {"exact_chain": None}, False),
    ],
)
def test_exact_arithmetic_is_tried_where_it_can_help(states, arguments, tried):
    class TriedError(Exception):
        pass

    def chain():
        raise TriedError

    held = both(**{"exact_chain": chain, **arguments})
    held.asking.limits = lambda task: contextlib.nullcontext()
    found = asked_about(batch(0.25, 0.5), product=None if states is None else SimpleNamespace(state_count=states))
    found.task.clock = SimpleNamespace(left_s=1.0, spend=lambda seconds: None)
    with pytest.MonkeyPatch.context() as patched:
        clocks = []
        patched.setattr(two_engines, "Clock", lambda left: clocks.append(left) or SimpleNamespace(spent_s=0.0))
        patched.setattr(two_engines, "replace", lambda value, **changes: value)
        if tried:
            with pytest.raises(TriedError):
                held._exactly(found)
            assert clocks == [1.0]  # what is left, and at most EXACT_S
        else:
            assert held._exactly(found) is None


def test_a_wide_enclosure_of_one_of_several_states_is_settled_exactly():
    chain, exactly = ring(Fraction(1, 10))
    started = replace(chain, initial=np.array([0, 2]))
    third = CheckedValues(array(1 / 3, 1.0), None, None, None, "Storm 0")
    exact = CheckedValues(array(1 / 3, 1.0), None, None, (Fraction(1, 3), Fraction(1)), "Storm 0 (exact)")
    storm = Substitute({(False, False): third, (True, False): exact})
    (found,) = check_formulas(
        started, [FORMULA], storm, value_error=1e-8, exact_chain=lambda: replace(exactly(), initial=started.initial)
    )
    assert (True, False) in storm.asked_for
    assert (found.lower[0], found.upper[0]) == doubles_around(Fraction(1, 3))
    assert (found.lower[1], found.upper[1]) == (1.0, 1.0)


def test_a_product_that_is_right_does_not_excuse_a_wrong_answer():
    """Only where Storm contradicts itself does its value on the product of the other engine count."""
    chain, _ = ring(Fraction(1, 10))

    class RightOnProducts(Opposite):
        def check(self, asked, texts, **options):
            right = storm_answer(float(Fraction(1, 3)), 0.333, 0.334)
            return (
                [right] * len(texts)
                if len(asked.indptr) != len(chain.indptr)
                else super().check(asked, texts, **options)
            )

    with pytest.raises(EngineError, match=r"Storm 0 says 0\.3334"):
        ruled(RightOnProducts({(False, False): storm_answer(0.3334, 0.3333, 0.3335)}))
