"""What is made of both engines' answers about gains and quantiles, with made-up answers, so that each is known."""

from contextlib import nullcontext
from fractions import Fraction

import numpy as np
import pytest
from random_ltl import F, a
from small_chains import chain_of

from verifier.base.budget import Clock
from verifier.base.errors import EngineError, NoAnswerError
from verifier.checking import expectations
from verifier.checking.batch import BatchResult
from verifier.checking.enclosure import CheckedValues, TwoEngineValues
from verifier.checking.expectations import Expectation, Expecting, conditional, confirmed_by, refuse_long
from verifier.checking.process import RefusedError
from verifier.checking.settings import EngineSettings
from verifier.checking.stepping import Steps

HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
ROWS = [{0: HALF, 1: QUARTER, 2: QUARTER}, {1: 1}, {2: 1}]  # the goal is reached from 0 with 1/2, from 2 never
CHAIN = chain_of(ROWS, {"a": {1}}, (0, 1, 2))
UP, DOWN = (lambda number: float(np.nextafter(number, np.inf))), (lambda number: float(np.nextafter(number, -np.inf)))


def asked(**more):
    return Expectation(F(a), "F a", np.array([3.0, 0, 0]), 2.0**-4, lambda: [Fraction(3), 0, 0], **more)


def batch_of(value, lower, upper, moved, steps):
    arrays = (np.array([numbers], dtype=float) for numbers in (value, value, moved, steps, lower, upper))
    return BatchResult(*arrays)


# Of three initial states the second has no finite gain.
BATCH = batch_of([2, np.inf, 8], [1.5, np.inf, 7], [2.5, np.inf, 9], [0.25, 0, 0.5], [10, 10, 20])


class MadeUp:
    """A Storm that gives one answer, or fails, and notes what it was asked."""

    def __init__(self, answer, fractions=None):
        self.answer, self.fractions, self.asked = answer, fractions, []

    def check(self, chain, texts, **options):
        self.asked.append((chain, texts, options))
        if isinstance(self.answer, Exception):
            raise self.answer
        value = np.array([float(number) for number in self.answer])
        return [CheckedValues(value, None, None, self.fractions, "Storm", most=np.inf)]


def gains_of(storm, monkeypatch, settings=EngineSettings(), batch=BATCH):
    monkeypatch.setattr(expectations, "expected_gains", lambda *_, **__: batch)
    monkeypatch.setattr(expectations, "EXACT_STATES", 0)
    return Expecting(CHAIN, storm, settings, 2.0**-53, lambda: CHAIN).answer(asked())


def test_bounds_are_those_of_the_batch_engine_moved_by_what_rounding_moves(monkeypatch):
    # The goal is reached with 1/2, 1 and 0.
    remark = "'F a' has probability 0 < 1; ask P, or R given"
    refused = MadeUp(RefusedError("no"))
    numbers = gains_of(refused, monkeypatch)
    for array, expected in (
        (numbers.probability, [2, np.inf, 8]),
        (numbers.second, [2, np.inf, 8]),
        (numbers.lower, [DOWN(1.25), np.inf, DOWN(6.5)]),
        (numbers.upper, [UP(2.75), np.inf, UP(9.5)]),
    ):
        assert array.tolist() == expected
    alone = "one engine: no. Reported are the batch engine's value and its proven bounds"
    assert (numbers.fractions, numbers.engine, numbers.counted) == (None, "batch engine", False)
    assert numbers.remark == f"{remark}; {alone}"
    with pytest.raises(RefusedError):
        gains_of(refused, monkeypatch, EngineSettings(exact=True))
    infinite = batch_of(*([[np.inf] * 3] * 3), [0, 0, 0], [1, 1, 1])
    assert gains_of(None, monkeypatch, batch=infinite).remark == remark  # Storm is not asked


def test_storms_gains_widen_the_bounds_and_its_fractions_replace_them(monkeypatch):
    storm = MadeUp([2.75, 6.5])
    numbers = gains_of(storm, monkeypatch)
    assert (numbers.probability.tolist(), numbers.second.tolist()) == ([2.75, np.inf, 6.5], [2, np.inf, 8])
    assert (numbers.lower.tolist(), numbers.upper.tolist()) == (
        [DOWN(1.25), np.inf, DOWN(6.5)],
        [UP(2.75), np.inf, UP(9.5)],
    )
    ((chain, texts, options),) = storm.asked[:1]
    assert (chain.initial.tolist(), texts, options["operator"]) == ([0, 2], ['F "a"'], 'R{"gain"}=?')
    assert (options["exact"], options["direct"], options["gains"].tolist()) == (False, False, [3, 0, 0])
    assert 0 < options["timeout_s"] <= 30  # what an impatient caller gives
    above = gains_of(MadeUp([UP(UP(2.75)), DOWN(DOWN(6.5))]), monkeypatch)
    assert (above.lower[2], above.upper[0]) == (DOWN(DOWN(6.5)), UP(UP(2.75)))
    exact = MadeUp([2.5, 8], (Fraction(5, 2), Fraction(8)))
    numbers = gains_of(exact, monkeypatch, EngineSettings(exact=True))
    assert numbers.fractions == (Fraction(5, 2), None, Fraction(8))
    assert numbers.lower.tolist() == numbers.upper.tolist() == [2.5, np.inf, 8]
    assert exact.asked[0][2]["gains"] == [3, 0, 0]


@pytest.mark.parametrize(
    ("steps", "settings", "direct"),
    [([5000, 5001, 0], {}, False), ([0, 0, 5001], {}, True), ([5001, 0, 0], {"exact": True}, False)],
)
def test_storm_factorises_what_lasts_long_where_its_gain_is_finite(steps, settings, direct, monkeypatch):
    storm = MadeUp([2, 8], (Fraction(2), Fraction(8)) if settings else None)
    gains_of(
        storm,
        monkeypatch,
        EngineSettings(**settings),
        batch_of([2, np.inf, 8], [2, np.inf, 8], [2, np.inf, 8], [0] * 3, steps),
    )
    assert storm.asked[0][2]["direct"] is direct


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        # 2.5 and what rounding moves, 1/4, and a relative 10^-9 above; 7 and 1/2 below, relative to at most 9.
        ([2.75 + 2.4e-9, 8], None),
        ([2.75 + 2.6e-9, 8], "says 2.7500000026, the batch engine says 2.0"),
        ([2, 6.5 - 8.9e-9], None),
        ([2, 6.5 - 9.1e-9], "says 6.4999999909, the batch engine says 8.0"),
        ([2, np.inf], "says inf, the batch engine says 8.0"),
        ([3.125, 9.75], "says 3.125, the batch engine says 2.0"),  # the one that is farther beyond what is allowed
    ],
)  # fmt: skip
def test_how_far_storms_gains_may_lie_outside(answer, named, monkeypatch):
    if named is None:
        assert gains_of(MadeUp(answer), monkeypatch).probability[[0, 2]].tolist() == answer
    else:
        with pytest.raises(EngineError, match=f"the engines disagree on F a: Storm {named}"):
            gains_of(MadeUp(answer), monkeypatch)


def test_what_may_be_off_is_absolute_below_1(monkeypatch):
    small = batch_of([0.5, np.inf, 0.5], [0.5, np.inf, 0.5], [0.5, np.inf, 0.5], [0, 0, 0], [1, 1, 1])
    gains_of(MadeUp([0.5 + 0.9e-9, 0.5 - 0.9e-9]), monkeypatch, batch=small)
    with pytest.raises(EngineError, match="disagree"):
        gains_of(MadeUp([0.5, 0.5 - 1.1e-9]), monkeypatch, batch=small)
    nothing = batch_of(*[[0, np.inf, 0]] * 3, [0, 0, 0], [1, 1, 1])
    assert gains_of(MadeUp([1e-9, 0]), monkeypatch, batch=nothing).upper[0] == 1e-9


def test_gains_of_some_steps_by_hand(monkeypatch):
    # 3 (1 + 1/2 + 1/4) in three steps; off by 1/8 and 1/16 of it, and moved by 1/4 of it.
    monkeypatch.setattr(Steps, "error_after", lambda self, count, value_error: (1 / 8, 1 / 4))
    value, near = Fraction(21, 4), 1 + Fraction(1, 2**40)
    numbers = Expecting(CHAIN, None, EngineSettings(), 2.0**-53, None)._of_steps(asked(steps=3), 3)
    error, moved = value * Fraction(3, 16) * near, value * QUARTER * near
    for name, first, others in (
        ("probability", value, 0),
        ("error_bound", error, 0),
        ("representation_bound", moved, 0),
        ("lower", value - error, 0),
        ("upper", value + error, 0),
        ("expected_steps", 3, 3),
    ):
        assert getattr(numbers, name).tolist() == [[float(first), others, others]], name
    monkeypatch.setattr(Steps, "error_after", lambda self, count, value_error: (1, 0))
    wide = Expecting(CHAIN, None, EngineSettings(), 2.0**-53, None)._of_steps(asked(steps=3), 3)
    assert wide.lower[0, 0] == 0  # no gain is negative


@pytest.mark.parametrize(
    ("lower", "upper", "more", "tried"),
    [
        (1.0, 1.0 + 2.0**-29, {}, True),  # wider than 10^-9
        (1.0, 1.0 + 2.0**-31, {}, False),
        (0.0, 1e-9, {}, False),  # absolute below 1
        (4.0, 4.0 + 2.0**-29, {}, False),  # relative above
        (1.0, 1.0 + 2.0**-31, {"target": Fraction(1)}, True),
        (1.0, 1.0 + 2.0**-29, {"exact": True}, False),
        (1.0, 1.0 + 2.0**-29, {"most": 3}, True),
        (1.0, 1.0 + 2.0**-29, {"most": 2}, False),  # of three states
        (1.0, 1.0 + 2.0**-29, {"timeout_s": 20}, True),
        (1.0, 1.0 + 2.0**-29, {"fails": True}, False),
    ],
)
def test_wide_bounds_are_settled_exactly(lower, upper, more, tried, monkeypatch):
    monkeypatch.setattr(expectations, "EXACT_STATES", more.get("most", 50_000))
    third = Fraction(1, 3)
    storm = MadeUp(NoAnswerError("late") if "fails" in more else [float(third), 2], (third, Fraction(2)))
    finite, low, high = np.array([True, False, True]), np.array([lower, np.inf, 2]), np.array([upper, np.inf, 2])
    values = TwoEngineValues(np.array([0.5, np.inf, 2]), low, high, None, low, "made")
    batch = batch_of([third, 0, 2], [0, 0, 0], [1, 1, 2], [0] * 3, [9999] * 3)
    expecting = Expecting(CHAIN, storm, EngineSettings(exact="exact" in more), 0.0, lambda: CHAIN)
    settled = expecting._settled(
        asked(target=more.get("target")), values, finite, batch, Clock(more.get("timeout_s")), 7
    )
    if not tried:
        assert settled is values
        return
    ((_, texts, options),) = storm.asked
    assert texts == ['F "a"']
    assert (options["exact"], options["direct"], options["memory_bytes"]) == (True, False, 7)
    assert options["timeout_s"] == pytest.approx(more.get("timeout_s", 30), rel=0.5 if "timeout_s" in more else 1e-12)
    assert options["timeout_s"] <= more.get("timeout_s", 30)
    near = float(third)  # which is below
    assert (settled.lower.tolist(), settled.upper.tolist()) == ([near, np.inf, 2], [UP(near), np.inf, 2])
    assert (settled.probability.tolist(), settled.fractions) == ([near, np.inf, 2], None)


def test_a_level_that_is_never_reached_is_told_with_what_is(monkeypatch):
    # 1/2 from 0 and nothing from 2 are less than 3/4, 1 is there at once: nobody confirms what takes no step.
    storm = MadeUp(NoAnswerError("late"))
    question = asked(level=Fraction(3, 4), step_s=HALF)
    numbers = Expecting(CHAIN, storm, EngineSettings(), 2.0**-53, lambda: CHAIN).answer(question)
    assert (numbers.fractions, numbers.probability.tolist()) == ((None, 0, None), [np.inf, 0, np.inf])
    assert numbers.remark == (
        "'F a' has probability 0.5, and no time is enough for 3/4; one engine: late. "
        "Reported is what the batch engine has proven"
    )
    assert [texts for _, texts, _ in storm.asked] == [['(F<=0 "a")']]


TINY = Fraction(1e-9)


@pytest.mark.parametrize(
    ("steps", "level", "columns", "wrong"),
    [
        # Storm's probabilities by 2 and by 3 steps at each initial state.
        ([3, None], HALF, {2: [0.25, 0.9], 3: [0.75, 0]}, None),
        ([3, None], HALF + TINY, {2: [0.25, 0], 3: [0.5, 0]}, None),
        (
            [3, None],
            HALF + TINY,
            {2: [0.25, 0], 3: [DOWN(0.5), 0]},
            "3 steps are the least for 0.5, Storm has 0.25 bef",
        ),
        ([None, 3], HALF - TINY, {2: [0.9, DOWN(0.5)], 3: [0, 0.75]}, None),
        ([None, 3], HALF - TINY, {2: [0.9, 0.5], 3: [0, 0.75]}, r"has 0.5 before and 0.75 then"),
        ([3, 1], HALF, {0: [0, 0.2], 1: [0, 0.5], 2: [0.25, 0.5], 3: [0.75, 0.5]}, None),
        ([0, 0], HALF, {0: [0.5, 0.6]}, None),
        ([0, 0], HALF, {0: [0.5, 0.4]}, "0 steps are the least for 0.5, Storm has 0.0 before and 0.4 then"),
        ([None, None], HALF, {}, None),
    ],
)
def test_quantiles_are_held_against_storms_probabilities(steps, level, columns, wrong):
    class Columns(MadeUp):
        def check(self, chain, texts, **options):
            assert texts == [f'(F<={number} "a")' for number in columns]
            return [MadeUp(column).check(chain, texts)[0] for column in columns.values()]

    def confirm():
        return confirmed_by(Columns(None), CHAIN, a, steps, level, "F a", EngineSettings(), None)

    if wrong is None:
        assert confirm() == ("batch engine, confirmed by Storm" if columns else None)
    else:
        with pytest.raises(EngineError, match=wrong):
            confirm()


@pytest.mark.parametrize(("most", "possible"), [(2 * 3 * 5, True), (2 * 3 * 5 - 1, False)])
def test_storm_is_asked_about_so_many_probabilities_times_steps_times_transitions(most, possible, monkeypatch):
    monkeypatch.setattr(expectations, "MOST_STORM_WORK", most)
    storm = MadeUp(RefusedError("asked"))
    with pytest.raises(RefusedError if possible else NoAnswerError, match="asked" if possible else "finish 3 steps"):
        confirmed_by(storm, CHAIN, a, [3], HALF, "F a", EngineSettings(), None)
    monkeypatch.setattr(expectations, "MOST_STORM_WORK", 15 if possible else 14)
    with nullcontext() if possible else pytest.raises(NoAnswerError, match="finish 3 steps"):
        refuse_long(3, CHAIN)
    monkeypatch.setattr(expectations, "MOST_STORM_STEPS", 3 if possible else 2)
    monkeypatch.setattr(expectations, "MOST_STORM_WORK", 15)
    with nullcontext() if possible else pytest.raises(NoAnswerError, match="finish 3 steps"):
        refuse_long(3, CHAIN)


def answered(value, lower, upper, second=None, **more):
    value, lower, upper, second = (np.array(ends, dtype=float) for ends in (value, lower, upper, second or value))
    more = {"fractions": None, "engine": "made", **more}
    return TwoEngineValues(probability=value, lower=lower, upper=upper, second=second, **more)


@pytest.mark.parametrize(("value", "second"), [([0.5, 0], [0.5, 0.5]), ([0.5, 0.5], [0, 0.5])])
def test_nothing_is_known_where_one_engine_says_never_at_some_state(value, second):
    one, given_ = answered([0, 0], [0, 0], [0, 0]), answered(value, [0, 0], [1, 1], second)
    assert isinstance(conditional(one, given_, "F a"), NoAnswerError)
    for refused in (
        conditional(NoAnswerError("late"), given_, "F a"),
        conditional(one, NoAnswerError("late"), "F a"),
    ):
        assert str(refused) == "late"


def test_conditional_probabilities_by_hand():
    both = answered([0.25, 0.5], [0.125, 0.5], [0.25, 0.5], [0.125, 0.25], remark="one", engine="first")
    given_ = answered([0.5, 0.5], [0.25, 0], [1, 0.75], [0.5, 1], remark="two", counted=True)
    quotient = conditional(both, given_, "F a")
    for array, expected in (
        (quotient.probability, [0.5, 1]),
        (quotient.second, [0.25, 0.25]),
        (quotient.lower, [DOWN(0.125), DOWN(2 / 3)]),
        (quotient.upper, [1, 1]),
    ):
        assert array.tolist() == expected
    assert (quotient.engine, quotient.remark, quotient.counted) == ("first", "one; two", True)
    sure = answered([0.5, 1], [0.5, 1], [0.5, 1])
    plain = conditional(sure, sure, "F a")
    assert (plain.remark, plain.counted, plain.fractions) == (None, False, None)
    assert (plain.lower.tolist(), plain.upper.tolist()) == ([DOWN(1)] * 2, [1, 1])
    half = conditional(answered([0.25, 0], [0.25, 0], [0.25, 0]), sure, "F a")
    assert (half.lower.tolist(), half.upper.tolist()) == ([DOWN(0.5), 0], [UP(0.5), UP(0)])
    exact = answered([0.5, 1], [0.5, 1], [0.5, 1], fractions=(HALF, Fraction(1)), remark="one")
    assert conditional(exact, sure, "F a").fractions is conditional(sure, exact, "F a").fractions is None
    told = conditional(exact, exact, "F a")
    assert (told.fractions, told.lower.tolist(), told.upper.tolist(), told.remark) == ((1, 1), [1, 1], [1, 1], "one")
