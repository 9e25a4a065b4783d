"""Long step bounds: counted, against the definition in fractions, closed forms, unrolled obligations and Storm."""

import decimal
import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from plain_windows import response_by_definition, until_by_definition
from small_chains import chain_of, check_formulas

from verifier.base.arrays import ROUNDOFF
from verifier.base.errors import ExitCode, NoAnswerError
from verifier.checking import powers, step_bounds
from verifier.checking import product as product_module
from verifier.checking.batch import satisfaction_probabilities
from verifier.checking.product import build_product
from verifier.checking.settings import EngineSettings
from verifier.checking.step_bounds import counted, long_window
from verifier.language.expressions import Source
from verifier.language.ltl import normal_form, parse_formula


def parsed(text):
    return parse_formula(text, Source(text, "formula"))


def window_of(formula, chain):
    return long_window(formula, chain.labels, chain.indptr, chain.indices)


def random_chain(rng, n):
    """A chain with labels a and b, the row of state s as exact dyadic fractions, and some absorbing states."""
    rows = []
    for state in range(n):
        targets = rng.sample(range(n), rng.randint(1, min(3, n)))
        if rng.random() < 0.15:
            targets = [state]
        cuts = sorted(rng.sample(range(1, 64), len(targets) - 1))
        shares = [high - low for low, high in zip([0, *cuts], [*cuts, 64], strict=True)]
        rows.append({target: Fraction(share, 64) for target, share in zip(targets, shares, strict=True)})
    labels = {name: {s for s in range(n) if rng.random() < share} for name, share in (("a", 0.7), ("b", 0.3))}
    return rows, labels, chain_of(rows, labels, initial=range(n))


def only(rows):
    """Nothing to choose."""
    return [[row] for row in rows]


def check_encloses(result, exact, width=1e-13):
    for k, value in enumerate(exact):
        low, high = Fraction(float(result.lower[0, k])), Fraction(float(result.upper[0, k]))
        assert 0 <= low <= value <= high <= 1, (k, float(low), float(value), float(high))
        assert high - low <= width


@pytest.fixture
def every_window_is_long(monkeypatch):
    monkeypatch.setattr(step_bounds, "LONGEST_UNROLLED", -1)
    monkeypatch.setattr(step_bounds, "on_cycle", lambda *graph: np.array([True]))


@pytest.fixture(params=["steps", "squares"])
def way(request, monkeypatch):
    """One by one, or by squaring from the first step on."""
    if request.param == "squares":
        monkeypatch.setattr(powers, "FIRST_STEPS", 0)
        monkeypatch.setattr(powers, "_SECONDS_PER_PRODUCT", 0.0)
    return request.param


@pytest.mark.parametrize("seed", range(40))
def test_windows_against_their_definition_in_fractions(every_window_is_long, way, seed):
    rng = random.Random(seed)
    rows, labels, chain = random_chain(rng, rng.randint(1, 7))
    low = rng.choice([0, 0, 1, 4])
    high = low + rng.choice([0, 1, 5, 17])
    everything = set(range(len(rows)))
    a, b = labels["a"], labels["b"]
    window = f"[{low},{high}]"
    for text, exact in (
        (f"a U{window} b", until_by_definition(only(rows), a, b, low, high)),
        (f"X[{high + 1}] b", until_by_definition(only(rows), everything, b, high + 1, high + 1)),
        (f"F{window} b", until_by_definition(only(rows), everything, b, low, high)),
        (f"G{window} b", [1 - x for x in until_by_definition(only(rows), everything, everything - b, low, high)]),
        (
            f"a R{window} b",
            [1 - x for x in until_by_definition(only(rows), everything - a, everything - b, low, high)],
        ),
    ):
        found = window_of(parsed(text), chain)
        if found is not None:  # a U[0,0] b is no window
            check_encloses(counted(chain, found, ROUNDOFF), exact)


@pytest.mark.every(4)
@pytest.mark.parametrize("ages", [True, False], ids=["ages", "apart"])
@pytest.mark.parametrize("seed", range(40))
def test_bounded_response_against_its_definition_in_fractions(every_window_is_long, way, monkeypatch, seed, ages):
    rng = random.Random(1000 + seed)
    rows, labels, chain = random_chain(rng, rng.randint(1, 6))
    monkeypatch.setattr(step_bounds, "MOST_APART", -1.0 if ages else 2.0)
    first = rng.choice([0, 0, 3])
    last, wait = first + rng.randint(1, 12), rng.choice([1, 2, 5, 9])
    exact = response_by_definition(only(rows), labels["a"], labels["b"], first, last, wait)
    # Leaving the windows out is sound whatever it costs, but only narrow for long windows.
    width = 1e-13 if ages else 1.0
    window = window_of(parsed(f"G[{first},{last}] (a -> F[0,{wait}] b)"), chain)
    check_encloses(counted(chain, window, ROUNDOFF), exact, width)
    window = window_of(parsed(f"F[{first},{last}] (a & G[0,{wait}] !b)"), chain)
    check_encloses(counted(chain, window, ROUNDOFF), [1 - x for x in exact], width)


def test_ages_are_counted_up_to_the_most_there_may_be(every_window_is_long, monkeypatch):
    """Five transitions, for each of four steps of waiting: 20 and no more."""
    monkeypatch.setattr(step_bounds, "MOST_APART", -1.0)
    chain = chain_of([{0: 0.5, 1: 0.5}, {0: 0.5, 1: 0.5}, {2: 1}], {"a": {0}, "b": {1}})
    window = window_of(parsed("G[0,9] (a -> F[0,4] b)"), chain)
    monkeypatch.setattr(step_bounds, "MOST_AGES", 20)
    counted(chain, window, ROUNDOFF)
    monkeypatch.setattr(step_bounds, "MOST_AGES", 19)
    with pytest.raises(NoAnswerError, match="one state for each of 3 states and 4 steps"):
        counted(chain, window, ROUNDOFF)


def test_what_leaving_out_the_bound_of_a_window_costs(every_window_is_long, monkeypatch):
    # Half stays in each step. Who waits at the end of two steps is answered in five more, or in 1/32 of the runs not:
    # 1/2 + 1/2 * 31/32 to 1. Each of the two windows may have lost 1/32. The truth is 31/32.
    monkeypatch.setattr(step_bounds, "MOST_APART", 1.0)
    chain = chain_of([{0: 0.5, 1: 0.5}, {1: 1}], {"a": {0}, "b": {1}})
    found = counted(chain, window_of(parsed("G[0,1] (a -> F[0,5] b)"), chain), ROUNDOFF)
    assert found.lower[0, 0] == pytest.approx(63 / 64 - 2 / 32, abs=1e-12)
    assert found.upper[0, 0] == pytest.approx(1, abs=1e-12)
    assert found.probability[0, 0] == (found.lower[0, 0] + found.upper[0, 0]) / 2
    assert found.error_bound[0, 0] == pytest.approx((1 - 59 / 64) / 2, abs=1e-12)
    assert found.representation_bound[0, 0] == pytest.approx(2 * 2 / 32, rel=1e-9)
    assert found.expected_steps.tolist() == [[6]]
    later = counted(
        chain, window_of(parsed("G[3,4] (a -> F[0,5] b)"), chain), ROUNDOFF
    )  # the same behind three steps
    assert later.lower[0, 0] == pytest.approx(1 / 8 * 59 / 64 + 7 / 8 * 15 / 16, abs=1e-12)
    until = counted(chain, window_of(parsed("F[0,7] b"), chain), ROUNDOFF)
    assert (until.expected_steps.tolist(), until.probability[0, 0]) == ([[7]], pytest.approx(127 / 128))


def test_what_leaving_out_the_bound_moves_grows_with_the_steps_of_a_window(every_window_is_long, monkeypatch):
    # In each of two windows 1/64 is lost; probabilities off by 1/16 may move that by exp(2.1 * 5 / 16) more.
    def chosen(chain, ends, steps, error, **more):
        return powers.Expected(*(np.full(len(chain.origin), each) for each in (2.0**-8, 2.0**-6, 0.0)))

    monkeypatch.setattr(step_bounds, "after_steps", chosen)
    monkeypatch.setattr(step_bounds, "MOST_APART", 1.0)
    chain = chain_of([{0: 0.5, 1: 0.5}, {1: 1}], {"a": {0}, "b": {1}})
    found = counted(chain, window_of(parsed("G[0,1] (a -> F[0,5] b)"), chain), 1 / 16)
    assert found.representation_bound[0, 0] == pytest.approx((1 + math.exp(2.1 * 5 / 16)) / 32, rel=1e-12, abs=0)


@pytest.mark.parametrize("apart", [1.0, -1.0])
def test_what_is_certain_has_no_width(every_window_is_long, monkeypatch, apart):
    # Only states of b follow states of b, whatever the rates.
    monkeypatch.setattr(step_bounds, "MOST_APART", apart)
    chain = chain_of([{1: 0.3, 2: 0.7}, {1: 0.1, 2: 0.9}, {1: 0.6, 2: 0.4}], {"a": {0, 2}, "b": {1, 2}}, initial=[1])
    for formula in ("F[1,20] b", "X[9] b", "G[0,9] (a -> F[0,5] b)", "G[3,9] (a -> F[0,5] b)"):
        found = counted(chain, window_of(parsed(formula), chain), ROUNDOFF)
        assert (found.lower[0, 0], found.upper[0, 0]) == (1, 1)


def test_behind_a_step_any_state_may_be_moved_as_much_as_the_most():
    chain = chain_of([{0: 0.5, 1: 0.5}, {1: 1}])
    everywhere, ends = np.ones(2, dtype=bool), np.array([0.25, 0.5])
    count = step_bounds._Count(chain, step_bounds.LongWindow(False, everywhere, everywhere, 0, 1), 0.0, None)
    for moved in ([0.25, 0.0], [0.0, 0.25]):
        behind = powers.Expected(ends, ends, np.array(moved))
        assert count._after(count._part(everywhere, everywhere, ~everywhere), behind, 1).representation.min() == 0.25


def test_who_waits_at_the_end_may_be_answered_later(every_window_is_long, monkeypatch):
    """At most as likely as in so many steps, and as not being answered in them; who does not wait has neither."""
    asked = []

    def wide(chain, ends, steps, error, **more):
        asked.append(ends)
        return powers.Expected(*(np.full(len(chain.origin), each) for each in (0.25, 0.5, 0.0)))

    monkeypatch.setattr(step_bounds, "after_steps", wide)
    monkeypatch.setattr(step_bounds, "MOST_APART", 1.0)
    chain = chain_of([{0: 0.5, 1: 0.5}, {1: 1}], {"a": {0}, "b": {1}})
    counted(chain, window_of(parsed("G[0,1] (a -> F[0,5] b)"), chain), ROUNDOFF)
    assert [each.tolist() for each in asked[2]] == [[0.25] * 4, [0.5, 0.5, 1.0, 1.0]]


@pytest.mark.parametrize("depth", [50, 1])
def test_the_states_of_a_window_are_those_of_its_conditions(monkeypatch, depth):
    monkeypatch.setattr(normal_form, "PROPOSITION_DEPTH", depth)
    rows = [{0: 0.5, 1: 0.5}, {1: 0.5, 2: 0.5}, {2: 0.5, 3: 0.5}, {3: 1}]
    chain = chain_of(rows, {"a": {0, 1}, "b": {1, 2}, "c": {3}})
    window = window_of(parsed("(a | c) U[0,99999] (a & b)"), chain)
    assert (window.left.tolist(), window.right.tolist()) == ([True, True, False, True], [False, True, False, False])
    # Who comes to b at once is decided soon; from the first step on it has to be waited for.
    stays = chain_of([{0: 1}], {"a": {0}, "b": {0}})
    assert window_of(parsed("a U[0,99999] b"), stays) is None
    assert window_of(parsed("a U[1,99999] b"), stays) is not None


def test_windows_are_long_by_their_steps_or_by_those_of_all_states():
    for steps, states, long in ((20_000, 1, False), (20_001, 1, True), (10_000, 500, False), (10_000, 501, True)):
        everywhere = np.ones(states, dtype=bool)
        assert step_bounds.LongWindow(False, everywhere, everywhere, 0, steps).is_long is long
    assert step_bounds.LongWindow(False, everywhere, everywhere, 0, 100, 100).is_long  # each with each


def test_what_is_unrolled_has_to_fit_into_memory(every_window_is_long):
    """Ten obligations in three states, of a thousand bytes; of a response a pair of steps each."""
    chain = chain_of([{0: 0.5, 1: 0.5}, {0: 0.5, 1: 0.5}, {2: 1}], {"a": {0}, "b": {1}})
    for formula, needed in (("F[0,10] b", 30_000), ("G[2,10] (a -> F[0,4] b)", 120_000)):
        window = window_of(parsed(formula), chain)
        assert not window.cannot_unroll(needed)
        assert window.cannot_unroll(needed - 1)


@pytest.mark.parametrize(
    "formula", ["F[3,40] b", "a U[0,60] b", "G[0,50] a", "G[0,20] (a -> F[0,9] b)", "a R[2,30] b"]
)
def test_counting_and_unrolled_obligations_agree(every_window_is_long, way, formula):
    rng = random.Random(formula)
    for _ in range(5):
        _, _, chain = random_chain(rng, 6)
        product = build_product(chain.indptr, chain.indices, chain.labels, parsed(formula), chain.initial)
        unrolled = satisfaction_probabilities(product, chain.probabilities)
        result = counted(chain, window_of(parsed(formula), chain), ROUNDOFF)
        np.testing.assert_allclose(result.probability, unrolled.probability, atol=1e-12)


@pytest.mark.every(3)
@pytest.mark.parametrize("rate", [1e-9, 3e-7, 1e-12])
@pytest.mark.parametrize("steps", [10**5, 10**9, 2 * 10**9])
def test_rare_events_over_very_many_steps(rate, steps):
    chain = chain_of([{0: 1 - rate, 1: rate}, {1: 1}], {"hit": {1}})
    stay = Fraction(1 - rate) / (Fraction(1 - rate) + Fraction(rate))  # the doubles, divided by their sum
    with decimal.localcontext() as context:
        context.prec = 80
        exact = 1 - (decimal.Decimal(stay.numerator) / decimal.Decimal(stay.denominator)) ** steps
        result = counted(chain, window_of(parsed(f"F[0,{steps}] hit"), chain), ROUNDOFF)
        low, high = (decimal.Decimal(float(end[0, 0])) for end in (result.lower, result.upper))
    assert low <= exact <= high
    assert high - low <= 1e-12
    assert result.representation_bound[0, 0] <= 1e-12
    ideal = -math.expm1(steps * math.log1p(-rate))
    assert abs(result.probability[0, 0] - ideal) <= result.representation_bound[0, 0] + 1e-9 * ideal


def test_a_value_that_no_number_of_steps_changes():
    """Half the paths are caught for ever: F within any long window is exactly 1/2."""
    chain = chain_of([{0: Fraction(1, 2), 1: Fraction(1, 4), 2: Fraction(1, 4)}, {1: 1}, {2: 1}], {"hit": {1}})
    for steps in (10**5, 10**9):
        result = counted(chain, window_of(parsed(f"F[0,{steps}] hit"), chain), ROUNDOFF)
        assert result.lower[0, 0] <= 0.5 <= result.upper[0, 0]
        assert result.upper[0, 0] - result.lower[0, 0] <= 1e-12


@pytest.mark.parametrize(
    ("steps", "formula"), [(30_000, "F[0,{}] b"), (200_000, "a U[0,{}] b"), (30_000, "G[0,{}] a")]
)
def test_long_windows_against_storm(steps, formula, storm):
    """Both engines answer and are compared with each other; bounds hold Storm's value."""
    slow = [{0: 1 - 2e-5, 1: 1e-5, 2: 1e-5}, {1: 0.5, 0: 0.5}, {2: 1.0}]
    chain = chain_of(slow, {"a": {0, 1}, "b": {2}})
    (found,) = check_formulas(chain, [parsed(formula.format(steps))], storm)
    assert found.remark is None
    assert found.engine.startswith("Storm")
    assert 0.1 < found.probability[0] < 0.9 or formula.startswith("a U")
    assert found.upper[0] - found.lower[0] <= 1e-9
    assert found.second[0] == pytest.approx(found.probability[0], abs=1e-9)


def test_one_engine_answers_a_bound_that_storm_would_not_finish(storm):
    chain = chain_of([{0: 1 - 1e-9, 1: 1e-9}, {1: 1.0}], {"hit": {1}})
    (found,) = check_formulas(chain, [parsed("F[0,1000000000] hit")], storm)
    assert found.remark.startswith("one engine: ")
    assert found.counted
    assert found.lower[0] <= 1 - math.exp(-1) + 2e-10 <= found.upper[0] + 4e-10
    halves = chain_of([{0: Fraction(1, 2), 1: Fraction(1, 2)}, {1: 1}], {"hit": {1}})
    exact = replace(halves, fractions=(Fraction(1, 2), Fraction(1, 2), Fraction(1)))
    with pytest.raises(NoAnswerError, match="exact arithmetic") as caught:
        check_formulas(exact, [parsed("F[0,1000000000] hit")], storm, EngineSettings(exact=True))
    assert caught.value.exit_code is ExitCode.NO_ANSWER


def test_what_would_take_too_long_is_refused_before():
    n = 3000  # a slow walk, too large to be squared within the time
    rows = [{max(x - 1, 0): 0.5, min(x + 1, n - 1): 0.5} for x in range(n)]
    rows[-1] = {n - 1: 1.0}
    chain = chain_of(rows, {"hit": {n - 1}})
    with pytest.raises(NoAnswerError, match=r"1000000000 steps through 2999 states would take about \S+ s"):
        counted(chain, window_of(parsed("F[0,1000000000] hit"), chain), ROUNDOFF, seconds=20.0)


@pytest.mark.parametrize(
    "formula",
    [
        *("F b", "F[0,9] b", "X[9] b", "G[0,99999] F b", "F[0,99999] (a & X b)", "G[1,99999] (a -> F[1,5] b)"),
        *("G[0,99999] (a | F[0,5] b | F[0,7] a)", "G[0,99999] (a -> F b)", "G[0,99999] (b | (a U[0,5] b))"),
        *("G[0,99999] (a -> F[0,5] X b)", "G[0,99999] (a -> X[5] b)", "F[0,99999] (a & F[0,5] b)"),
        *("a R[0,99999] (a -> F[0,5] b)", "a U[0,99999] (a & G[0,5] b)", "G (a -> F[0,99999] b)"),
        *("F (a & G[0,99999] b)", "X[99999] (a -> F[0,5] b)"),
    ],
)
def test_other_formulas_are_no_long_windows(formula):
    chain = chain_of([{0: 0.5, 1: 0.5}, {1: 1}], {"a": {0}, "b": {1}})
    assert window_of(parsed(formula), chain) is None


def test_a_chain_that_decides_soon_needs_no_counting():
    """Three steps decide every path: only so many obligations occur, and intervals can be had as ever."""
    rows = [{1: 0.5, 2: 0.5}, {2: 0.5, 3: 0.5}, {4: 1.0}, {3: 1.0}, {4: 1.0}]
    chain = chain_of(rows, {"going": {0, 1, 2}, "there": {4}})
    assert window_of(parsed("going U[0,1000000000] there"), chain) is None
    again = chain_of([*rows[:4], {0: 1.0}], {"going": {0, 1, 2}, "there": {4}})  # behind the end it may begin again
    assert window_of(parsed("going U[0,1000000000] there"), again) is None
    assert window_of(parsed("F[0,1000000000] there"), chain).obligations == 10**9  # state 3 waits for ever
    product = build_product(
        chain.indptr, chain.indices, chain.labels, parsed("going U[0,1000000000] there"), chain.initial
    )
    assert satisfaction_probabilities(product, chain.probabilities).probability[0, 0] == 0.75


def test_rounded_rows_are_not_counted():
    chain = chain_of([{0: 0.9, 1: 0.101}, {1: 1.0}], {"b": {1}}, defect=0.01)
    with pytest.raises(NoAnswerError, match="rounded"):
        counted(chain, window_of(parsed("F[0,99999] b"), chain), ROUNDOFF)


@pytest.mark.parametrize("formula", ["F<={} b", "G<={} a", "a U[2,{}] b", "X[{}] b"])
def test_what_cannot_be_unrolled_is_what_the_product_refuses(monkeypatch, formula):
    """`F<=100000 b` on 45 states once took half a minute to be refused by a product that could have none."""
    monkeypatch.setattr(step_bounds, "LONGEST_UNROLLED", 10)
    for module in (step_bounds, product_module):
        monkeypatch.setattr(module, "MOST_OBLIGATIONS", 30)
    chain = chain_of([{0: 0.5, 1: 0.5}, {0: 0.5, 1: 0.25, 2: 0.25}, {2: 1.0}], {"a": {0, 1}, "b": {2}})
    for high in range(20, 35):
        asked = parsed(formula.format(high))
        try:
            build_product(chain.indptr, chain.indices, chain.labels, asked, chain.initial)
            refused = False
        except NoAnswerError:
            refused = True
        assert window_of(asked, chain).cannot_unroll(2**40) is refused, high
