"""Counted steps over regions of matrices: the definition in fractions, closed forms, unrolled products, matrices."""

import decimal
import math
import random
from contextlib import nullcontext
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from interval_models import Model, random_member, random_model
from looping_systems import write_system
from plain_windows import response_by_definition, rows_of_model, until_by_definition

from verifier.analysis import step_counts
from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.robust import step_counting
from verifier.analysis.robust.inner_bounds import rates_of
from verifier.analysis.robust.solutions import Effort, bound_of, robust_bounds
from verifier.analysis.step_counts import StepCount, build_step_count
from verifier.base.errors import NoAnswerError
from verifier.checking import product, step_bounds
from verifier.checking.step_bounds import long_window
from verifier.language.ltl import parse_formula
from verifier.study.case import Study
from verifier.study.inputs import read_inputs
from verifier.study.options import RunOptions

BOUNDS_ONLY = Effort(attained=False)
TWO, THREE = ((), ("a",)), ((), ("a",), ("b",))
NANO = Fraction(1, UNIT)
WAYS = ((-1.0, 1000, 10**7), (step_bounds.MOST_APART, 1000, 10**7), (2.0, 1, 0), (-1.0, 2, 0))
"""What windows may cost to be apart, steps before a stop, and the numbers that these may touch."""


def counting(model, formula):
    """The formula with its steps counted, and the region of the model."""
    plain = model.objective("true U q" if "q" in model.true_in else "true U g")
    labels = {name: np.isin(np.arange(model.size), list(states)) for name, states in model.true_in.items()}
    window = long_window(parse_formula(formula), labels, plain.skeleton.indptr, plain.skeleton.indices)
    return build_step_count(plain.skeleton, window), model.region(plain)


@pytest.fixture
def every_window_is_long(monkeypatch):
    monkeypatch.setattr(step_bounds, "LONGEST_UNROLLED", -1)
    monkeypatch.setattr(step_bounds, "on_cycle", lambda *graph: np.array([True]))


def windows(rng, model):
    """A random formula, and its least and greatest probability from every state by definition."""
    low = rng.choice([0, 0, 1, 3])
    high, wait, choices = low + rng.choice([1, 4, 9]), rng.choice([1, 2, 4]), rows_of_model(model)
    p, q, everything = model.true_in["p"], model.true_in["q"], set(range(model.size))

    def until(a, b):
        return [until_by_definition(choices, a, b, low, high, best) for best in (min, max)]

    def answered(a, b):
        return [response_by_definition(choices, a, b, low, high, wait, best) for best in (min, max)]

    def complement(ends):
        return [[1 - x for x in end] for end in reversed(ends)]

    return rng.choice(
        [
            (f"F[{low},{high}] q", until(everything, q)),
            (f"p U[{low},{high}] q", until(p, q)),
            (f"G[{low},{high}] p", complement(until(everything, everything - p))),
            (f"p R[{low},{high}] q", complement(until(everything - p, everything - q))),
            (f"G[{low},{high}] (p -> F[0,{wait}] q)", answered(p, q)),
            (f"F[{low},{high}] (p & G[0,{wait}] !q)", complement(answered(p, q))),
        ]
    )


@pytest.mark.every(2)
@pytest.mark.parametrize("seed", range(24))
def test_bounds_against_the_best_choices_in_every_step_in_fractions(every_window_is_long, monkeypatch, seed):
    rng = random.Random(seed)
    model = random_model(np.random.default_rng(seed))
    formula, (least, greatest) = windows(rng, model)
    objective, region = counting(model, formula)
    exactly = [[each[start] for start in model.starts] for each in (least, greatest)]
    monkeypatch.setattr(product, "LONG", rng.choice([0, product.LONG]))  # states are numbered in other ways
    for apart, fewest, work in WAYS:
        monkeypatch.setattr(step_counts, "MOST_APART", apart)
        monkeypatch.setattr(step_counting, "FEWEST_TAKEN", fewest)
        monkeypatch.setattr(step_counting, "WORK", work)
        found = robust_bounds(objective, region, effort=Effort() if fewest == 1000 else BOUNDS_ONLY)
        for k, (low, high) in enumerate(zip(*exactly, strict=True)):
            assert Fraction(float(found.lower[k])) <= low <= high <= Fraction(float(found.upper[k]))
            if work:  # without a stop, bounds are those of the definition
                assert low - Fraction(float(found.lower[k])) < 1e-12
                assert Fraction(float(found.upper[k])) - high < 1e-12
        attained = found.lower_attained - found.lower, found.upper - found.upper_attained
        assert fewest < 1000 or min(each.min() for each in attained) > -1e-12


@pytest.mark.every(2)
@pytest.mark.parametrize("seed", range(16))
def test_draws_against_unrolled_products(every_window_is_long, monkeypatch, seed):
    numbers = np.random.default_rng(seed)
    model = random_model(numbers)
    formula, _ = windows(random.Random(seed), model)
    objective, region = counting(model, formula)
    unrolled = model.objective(formula)
    rates = rates_of(region, np.array([random_member(numbers, region) * UNIT for _ in range(4)]))
    expected = unrolled.probabilities(rates).probability
    for squared, apart in ((2000, -1.0), (1, -1.0), (3, step_bounds.MOST_APART)):
        monkeypatch.setattr(step_counts, "STEPS_BEFORE_SQUARING", squared)
        monkeypatch.setattr(step_counts, "MOST_APART", apart)
        np.testing.assert_allclose(objective.probabilities(rates, roughly=True).probability, expected, atol=1e-12)
    found = objective.probabilities(rates)
    assert np.all((found.lower - 1e-12 <= expected) & (expected <= found.upper + 1e-12))


@pytest.mark.parametrize("formula", ["G[2,5] (p -> F[0,2] q)", "G[3,9] (p -> F[0,2] q)", "F[3,5] (p & G[0,2] !q)"])
def test_windows_that_begin_late_by_hand(every_window_is_long, monkeypatch, formula):
    """State 0 asks, and with 3/4 is answered two steps later, asking again after one more; with 1/4 that is over for
    good. From step 2 to 5 that is in step 3, from 3 to 9 in steps 3, 6 and 9."""
    sure, often = [(1, 1), (0, 0)], [(Fraction(3, 4),) * 2, (Fraction(1, 4),) * 2]
    ahead, asked = [[1, 3], [2, 2], [0, 0], [3, 3]], {"p": {0}, "q": {2}}
    model = Model(TWO, ahead, asked, {0: often, 1: sure, 2: sure})
    objective, region = counting(model, formula)
    rates = rates_of(region, np.array([random_member(np.random.default_rng(0), region) * UNIT]))
    times = {"G[3,9]": 3}.get(formula.split()[0], 1)
    fails = 0.75 * (1 - 0.75**times)  # that it is first answered, and then not each time
    expected = fails if formula.startswith("F") else 1 - fails
    for apart in (step_bounds.MOST_APART, -1.0):
        monkeypatch.setattr(step_counts, "MOST_APART", apart)
        found = robust_bounds(objective, region, effort=BOUNDS_ONLY)
        assert (found.lower[0], found.upper[0]) == pytest.approx((expected, expected), abs=1e-12)
        assert objective.probabilities(rates, roughly=True).probability[0, 0] == pytest.approx(expected, abs=1e-12)
    draws = step_counts._Draws(objective.skeleton.entry_values(rates))
    monkeypatch.setattr(step_counts, "MOST_APART", step_bounds.MOST_APART)
    assert objective.windows_apart(draws) == 0


@pytest.mark.every(3)
@pytest.mark.parametrize("steps", [10**9, 10**5, 10**7])
def test_one_rate_over_very_many_steps(steps):
    """A rate between 1 and 3 billionths: the probability is 1 - (1 - rate)^steps, and grows with the rate."""
    model = Model(TWO, [[0, 1], [1, 1]], {"g": {1}}, {0: [(1 - 3 * NANO, 1 - NANO), (NANO, 3 * NANO)]})
    objective, region = counting(model, f"F[0,{steps}] g")
    found = robust_bounds(objective, region)
    with decimal.localcontext() as context:
        context.prec = 60
        low, high = (1 - (1 - decimal.Decimal(rate) / UNIT) ** steps for rate in (1, 3))
        assert decimal.Decimal(float(found.lower[0])) <= low
        assert decimal.Decimal(float(found.upper[0])) >= high
    width = 1e-12 + 4e-15 * steps  # rounding of each of the steps
    assert found.lower[0] == pytest.approx(float(low), abs=width)
    assert found.upper[0] == pytest.approx(float(high), abs=width)
    assert found.lower_attained[0] == pytest.approx(float(low), abs=width)
    assert found.upper_attained[0] == pytest.approx(float(high), abs=width)
    assert np.array_equal(bound_of(objective, region, "per_state", "upper"), found.upper)
    assert found.certificates == ()
    for side, attained in (("lower", found.lower_attained), ("upper", found.upper_attained)):
        masses = step_counting.counted_side(objective, region, side, attained=True).attained.masses
        values = objective.probabilities(rates_of(region, masses)).probability
        assert np.diag(values) == pytest.approx(attained, abs=width)


def test_what_is_far_away_is_reached_at_last(every_window_is_long):
    """A ring of 70 places; two looks in a row, of 1 to 3 billionths each, lead from its last one to the goal. Long
    before state 0 can be there hardly anything changes any more. The last state leads nowhere."""
    size, steps = 70, 3000
    goal, dead = size + 1, size + 2
    ring = [[(place + 1) % size] * 2 for place in range(size - 1)]
    ahead = [*ring, [0, size], [0, goal], [goal] * 2, [dead] * 2]
    seen, sure = [(1 - 3 * NANO, 1 - NANO), (NANO, 3 * NANO)], [(1, 1), (0, 0)]
    columns = {**dict.fromkeys(range(size - 1), sure), size - 1: seen, size: seen, dead: sure}
    objective, region = counting(Model(TWO, ahead, {"g": {goal}}, columns, (0, dead)), f"F[0,{steps}] g")
    found = robust_bounds(objective, region)
    tries = steps // (size + 1) - 1
    assert 9e-18 * tries * 0.999 < found.upper[0] < 1e-12
    assert found.upper_attained[0] <= found.upper[0]
    assert found.lower.tolist() == [0, 0]
    assert found.upper[1] == 0


@pytest.mark.parametrize("growth", [1.0, 1 + 2.0**-52, 1.5, 1e300, math.inf])
def test_what_grows_is_not_below_the_power(growth):
    model = Model(TWO, [[1, 1], [1, 1], [2, 2]], {"g": {1}}, {0: [(1, 1), (0, 0)], 2: [(1, 1), (0, 0)]}, (0, 2))
    objective = model.objective("F g")
    worth = np.array([0.25 if state == 1 else 0.0 for state in range(objective.state_count)])
    for count in (1, 7, 100, 3000):
        found = step_counting._grown(objective, worth, growth, count)
        if growth == math.inf or Fraction(growth) ** count > Fraction(10) ** 304:
            assert found[1] == math.inf
        else:
            assert Fraction(float(found[1])) >= Fraction(growth) ** count / 4
            assert Fraction(float(found[1])) <= Fraction(growth) ** count / 4 * (1 + Fraction(1, 10**8))
        assert found[0] == 0


def test_bounds_that_no_single_matrix_attains_are_conservative_for_one(every_window_is_long):
    """State 0 comes to the goal in two steps with 1/4 to 1/2; state 1 if it stays once and then leaves, which a rate
    of its own in each step does surely, and one rate x with x (1 - x) <= 1/4."""
    free, sure = [(0, 1), (0, 1)], [(1, 1), (0, 0)]
    once = [(Fraction(1, 2), Fraction(3, 4)), (Fraction(1, 4), Fraction(1, 2))]
    ahead = [[3, 4], [1, 2], [3, 3], [3, 3], [2, 2]]
    for starts, upper in ((0,), [0.5]), ((1,), [1]), ((0, 1), [0.5, 1]):
        model = Model(TWO, ahead, {"g": {2}}, {0: once, 1: free, 2: sure, 4: sure}, starts)
        objective, region = counting(model, "X[2] g")
        per_step, shared = (robust_bounds(objective, region, each) for each in ("per_state", "shared_matrix"))
        assert shared.upper.tolist() == per_step.upper.tolist() == pytest.approx(upper, abs=1e-9)
        assert shared.lower.tolist() == pytest.approx([0.25 if start == 0 else 0 for start in starts], abs=1e-9)
        assert (per_step.conservative, shared.conservative) == (False, starts != (0,))
        far = float((shared.upper - shared.upper_attained).max())
        for gap, wide in ((far, False), (np.nextafter(far, 0), True)) if starts != (0,) else ():
            assert robust_bounds(objective, region, "shared_matrix", Effort(gap=gap)).conservative is wide
        least = robust_bounds(*counting(model, "G[2,2] !g"), "shared_matrix")
        assert least.lower.tolist() == pytest.approx([1 - each for each in upper], abs=1e-9)
        assert least.conservative is (starts != (0,))


def slow_model(rng, slowest):
    """Five states that are left seldom, at rates of down to 10^-slowest, among themselves and to an end."""
    following = [[s, *rng.integers(0, 5, 2).tolist()] for s in range(4)] + [[4, 4, 4]]
    bounds = {}
    for state in range(4):
        rates = [int(UNIT * 10.0 ** -rng.uniform(1, slowest)) for _ in range(2)]
        ends = [(rate * NANO, (rate + int(rng.integers(0, rate + 1))) * NANO) for rate in rates]
        bounds[state] = [(1 - sum(high for _, high in ends), 1 - sum(low for low, _ in ends)), *ends]
    return Model(THREE, following, {"p": {0, 1}, "q": {4}}, bounds, (0, 1, 2, 3))


@pytest.mark.every(5)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("formula", "slowest"),
    [
        ("F[0,2000000] q", 6),
        ("p U[0,300000] q", 6),
        ("G[200000,500000] !q", 6),
        ("G[0,1000000] (p -> F[0,5000] !p)", 2),
    ],
)
def test_no_matrix_of_the_region_beats_the_bounds(monkeypatch, seed, formula, slowest):
    """Bounds with stops after few steps and after many hold for fixed matrices."""
    numbers = np.random.default_rng(seed)
    model = slow_model(numbers, slowest)
    objective, region = counting(model, formula)
    rates = rates_of(region, np.array([random_member(numbers, region) * UNIT for _ in range(2)]))
    found = objective.probabilities(rates)
    for work in (10**4, 10**6):
        monkeypatch.setattr(step_counting, "WORK", work)
        bounds = robust_bounds(objective, region, effort=BOUNDS_ONLY)
        assert np.all(bounds.lower <= found.upper + found.representation_bound)
        assert np.all(bounds.upper >= found.lower - found.representation_bound)
    rough = objective.probabilities(rates, roughly=True).probability
    np.testing.assert_allclose(rough, found.probability, atol=1e-7)


def test_a_response_that_can_be_counted_in_no_way_is_refused():
    """State 0 answers at a rate of 10^-6 only: windows of 10^5 steps overlap, and have too many ages."""
    rate = 1000 * NANO
    model = Model(TWO, [[0, 1], [0, 0]], {"g": {1}}, {0: [(1 - 2 * rate, 1 - rate), (rate, 2 * rate)]})
    objective, region = counting(model, "G[0,1000000] (!g -> F[0,1000000] g)")
    with pytest.raises(NoAnswerError, match="windows of 1000000 steps overlap"):
        robust_bounds(objective, region)
    with pytest.raises(NoAnswerError, match="overlap"):
        step_counting.refuse_uncountable(objective, region)


@pytest.mark.parametrize(
    ("formula", "obligations"),
    [
        ("F<=1000000000 hit", 10**9),
        ("G[0,1000] (x < 14 -> F<=200 hit)", 200_000),
        ("F<=9000 hit", None),
        ("G F hit", None),
        ("F<=1000000000 hit given F c = 1", None),
    ],
)
def test_only_what_has_no_product_is_counted(tmp_path, formula, obligations):
    spec, matrices = write_system(tmp_path, formula)
    (case,) = Study.of(read_inputs(spec, matrices, RunOptions()), RunOptions()).cases
    window = case.window(0)
    assert (None if window is None else window.obligations) == obligations
    assert obligations is None or isinstance(case.objectives[0], StepCount)


@pytest.mark.parametrize(
    ("high", "wait", "edges", "expected"),
    [
        (0, None, 4, 1),
        (2000, None, 4, 1 + 2000),
        (2001, None, 4, 1 + 2000 + 1000 * 11 // 40),
        (4095, None, 7, 1 + 2000 + 1000 * 12 // 70),
        (4096, None, 7, 1 + 2000 + 1000 * 13 // 70),
        (1000, 1000, 4, 1 + 2000),
        (1000, 1001, 4, 1 + 2000 + 1000 * 11 // 40),
        (2001, 0, 0, 1 + 2000 + 1000 * 11 // 10),
    ],
)
def test_steps_are_counted_as_they_are_taken_and_squared_from_two_thousand_on(high, wait, edges, expected):
    """Of ten product states: 1,000 products of numbers for each bit of the steps, each a tenth of a transition."""
    asked = SimpleNamespace(
        window=SimpleNamespace(high=high, response=wait),
        state_count=10,
        product=SimpleNamespace(edge=np.zeros(edges, dtype=np.int64)),
    )
    assert StepCount.effort.fget(asked) == expected


def test_the_product_is_that_of_the_first_steps(every_window_is_long):
    """Of what is asked where the window begins at once, else of walking: each from the one start, of three states."""
    model = Model(TWO, [[1, 2], [2, 2], [2, 2]], {"q": {2}}, {0: [(0, 1), (0, 1)], 1: [(1, 1), (0, 0)]})
    for formula, first in (("F[0,4] q", "_inner"), ("G[1,4] (!q -> F[0,1] q)", "_first"), ("F[2,4] q", "_first")):
        objective, _ = counting(model, formula)
        assert len(objective.product.start) == 1
        assert objective.state_count == getattr(objective, first).state_count
    assert objective._inner.state_count != objective._first.state_count
    assert (len(objective._inner.product.start), len(objective._first.product.start)) == (3, 1)


@pytest.mark.parametrize(
    ("obligations", "aged", "refused"), [(8, 70, False), (7, 70, True), (8, 69, True), (10**6, 10**6, False)]
)
def test_ages_are_refused_where_there_are_too_many(obligations, aged, refused, monkeypatch):
    """Windows of five steps: eight obligations, and seven times ten transitions."""
    monkeypatch.setattr(step_counts, "MOST_OBLIGATIONS", obligations)
    monkeypatch.setattr(step_counts, "MOST_AGED", aged)
    asked = SimpleNamespace(window=SimpleNamespace(response=5), skeleton=SimpleNamespace(indices=range(10)))
    with pytest.raises(NoAnswerError, match=f"70 transitions, at most {aged}") if refused else nullcontext():
        StepCount.refuse_ages(asked)


@pytest.mark.parametrize(("rest", "cost"), [(2.0**-43, 2.0**-40), (2.0**-43 * 1.01, None), (0.0, 0.0)])
def test_windows_are_apart_where_that_costs_little(rest, cost):
    """Of steps 2 to 9, eight windows."""
    asked = []
    walk = SimpleNamespace(rest=lambda *own: asked.append(own) or rest)
    window = SimpleNamespace(low=2, high=9, response=5)
    objective = SimpleNamespace(window=window, _answer="answer", _still_waiting="waiting")
    assert StepCount.windows_apart(objective, walk) == cost
    assert asked == [("answer", "waiting", 5, step_bounds.MOST_APART / 8)]


def test_drawn_numbers_have_no_bounds_and_come_in_parts(every_window_is_long, monkeypatch):
    model = random_model(np.random.default_rng(1))
    objective, region = counting(model, "F[1,4] q")
    numbers = np.random.default_rng(0)
    rates = rates_of(region, np.array([random_member(numbers, region) * UNIT for _ in range(5)]))
    at_once = objective.probabilities(rates, roughly=True)
    assert np.all(objective.probabilities(rates).error_bound < 2.0**-40)
    parts, draws = [], step_counts._Draws
    monkeypatch.setattr(step_counts, "_Draws", lambda values: parts.append(len(values)) or draws(values))
    edges = len(objective.product.edge)
    for room, sizes in ((2 * edges, [2, 2, 1]), (1, [1] * 5), (5 * edges, [5])):
        monkeypatch.setattr(step_counts, "_NUMBERS_AT_ONCE", room)
        parts.clear()
        found = objective.probabilities(rates, roughly=True)
        assert parts == sizes
        assert np.array_equal(found.probability, at_once.probability)
        assert np.array_equal(found.lower, found.probability)
        assert np.array_equal(found.upper, found.probability)
        assert np.all(found.error_bound == 2.0**-30)
        assert np.all(found.representation_bound == 2.0**-30)
    monkeypatch.setattr(step_counts, "STEPS_BEFORE_SQUARING", 1)
    monkeypatch.setattr(step_counts, "_NUMBERS_AT_ONCE", 2 * objective._inner.state_count**2)
    squared = objective.probabilities(rates, roughly=True).probability
    np.testing.assert_allclose(squared, at_once.probability, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("enough", "steps", "least", "taken"),
    [(0.0, 3, 0.125, 4), (0.25, 9, 0.25, 3), (0.3, 9, 0.25, 3), (1.0, 9, 1.0, 1), (0.0, 0, 1.0, 1)],
)
def test_rests_are_followed_until_they_are_small(enough, steps, least, taken):
    """A worth that is halved in each step."""
    asked = []

    def each(at, ends, most, cut, fails):
        for step in range(most + 1):
            asked.append(step)
            yield ends * 0.5**step

    draws = step_counts._Draws(np.ones((1, 1)))
    draws._each = each
    assert draws.rest(None, np.array([1.0, 0.5]), steps, enough) == least
    assert asked == list(range(taken))
