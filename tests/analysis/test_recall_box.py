"""The certified floor: by hand, against random matrices above it, and where the rest of a column decides."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recall_cases import MILLION, binary, cells_of, chance, problem
from small_objectives import channel_of, objective_of, random_objective, random_rates

from verifier.analysis.recall import least_cost as box
from verifier.analysis.recall.least_cost import BoxFamily, Floors, least_floors
from verifier.analysis.recall.requirements import Problem, Target
from verifier.perception.confusion import exact_rates


def family(task, cells, *, begin=None, held=None, exact=None, whole=MILLION, semantics="per_state"):
    shape = task.rates.shape
    if exact is None:
        exact = exact_rates(np.round(task.rates * 1000).astype(np.int64))
    held = np.zeros((shape[0], shape[2]), dtype=bool) if held is None else held
    return BoxFamily(task, cells, begin or (0,) * cells.count, whole, exact, held, semantics)


def test_where_only_the_recall_counts_the_floor_is_that_of_the_single_matrix():
    # P = r1 r2 >= r^2 for every matrix above the floor r; r^2 > 0.81 exactly when r > 0.9.
    task = problem([chance([0, 1])], binary(0.5, 0.5), ">", "0.81")
    found = least_floors(family(task, cells_of((0, 1), (1, 1))))
    assert found.floors == (900_001, 900_001)
    assert found.checked
    assert 0.81 < found.bound <= 0.900001**2


@pytest.mark.parametrize(("spare", "checked"), [(0, True), (-1, False)])
def test_certificates_of_products_that_are_too_large_are_not_checked(monkeypatch, spare, checked):
    objective = chance([0, 1])
    monkeypatch.setattr(box, "LARGEST_CHECKED", objective.state_count + spare)
    found = least_floors(family(problem([objective], binary(0.5, 0.5), ">", "0.81"), cells_of((0, 1), (1, 1))))
    assert (found.floors, found.checked) == ((900_001, 900_001), checked)


def spread():
    """Three labels; a is right, b is a detection error that does harm, a miss does none: P(G !bad) = 1 - rate of
    b."""
    channel = channel_of(((), ("a",), ("b",)), [[0]], [[1]])
    good, bad = 1, 2
    following = [[good, good, bad], [good] * 3, [bad] * 3]
    return objective_of(channel, following, [0, 0, 0], {"bad": {bad}}, "G !bad", ended=(good, bad))


def spread_rates():
    """Column a: reported as a 1/2, missed 1/2, never as b."""
    return np.array([[[1, 0.5, 0], [0, 0.5, 0], [0, 0, 1.0]]])


def test_the_rest_of_a_column_is_free():
    # With the measured proportions (b is never reported) every recall does; over all matrices P >= recall only.
    task = Problem((spread(),), spread_rates(), Target(">=", Fraction(3, 4)))
    assert task.evaluate(spread_rates()[None]).met[0]
    found = least_floors(family(task, cells_of((0, 1))))
    assert found.floors in ((750_000,), (750_001,))
    assert found.checked


def test_an_upper_limit_has_an_upper_bound():
    # P(F bad) <= 1 - r <= 1/8.
    task = problem([chance([0], "F bad")], binary(0.5), "<=", "0.125")
    found = least_floors(family(task, cells_of((0, 1))))
    assert found.floors in ((875_000,), (875_001,))
    assert 0.124998 < found.bound <= 0.125
    assert found.checked


def test_columns_without_a_floor_are_free_or_as_measured():
    # P = r1 r2 with a floor for r1 only: free, r2 may be 0; as measured, r2 = 9/10, and r1 >= 8/9 gives 4/5.
    task = problem([chance([0, 1])], binary(0.5, 0.9), ">=", "0.8")
    cells = cells_of((0, 1))
    free = least_floors(family(task, cells))
    assert (free.floors, free.bound, free.checked) == (None, 0, False)
    held = np.array([[False, False], [False, True]])
    assert least_floors(family(task, cells, held=held)).floors in ((888_889,), (888_890,))


def test_floors_on_a_line_from_given_ones():
    # From (0.5, 1) towards (1, 1): only the first moves; P = r1 r2 >= 0.7.
    task = problem([chance([0, 1])], binary(0.5, 0.5), ">", "0.7")
    line = family(task, cells_of((0, 1), (1, 1)), begin=(500_000, MILLION))
    assert (line.top, line.floors(0), line.floors(line.top)) == (500_000, [500_000, MILLION], [MILLION, MILLION])
    assert least_floors(line).floors == (700_001, MILLION)


def test_targets_0_and_1():
    cells = cells_of((0, 1))
    for comparison, target, expected in ((">=", 0, (0,)), (">=", 1, (MILLION,)), (">", 1, None), ("<=", 0, None)):
        task = problem([chance([0])], binary(0.5), comparison, target)
        assert least_floors(family(task, cells)).floors == expected, (comparison, target)


@given(st.integers(0, 10_000))
def test_no_random_matrix_above_the_floor_fails(seed):
    rng = np.random.default_rng(seed)
    objective = random_objective(rng, ["F q", "G !p", "p U q", "X (q R p)"][seed % 4], draws=1 + seed % 2)
    target = Target([">=", "<="][seed // 4 % 2], Fraction(int(rng.integers(1, 16)), 16))
    task = Problem((objective,), random_rates(rng, 2, 3), target)
    cells = cells_of((0, 1), (0, 2), (1, 1), (1, 2))
    found = least_floors(family(task, cells, whole=100))
    if found.floors is None:
        return
    assert found.checked
    drawn = rng.dirichlet([0.3] * 3, (400, 2, 3)).swapaxes(2, 3)
    for at, label, floor in zip(cells.bins, cells.columns, found.floors, strict=True):
        column = drawn[:, at, :, label]
        column *= 1 - floor / 100
        column[:, label] += floor / 100
    result = objective.probabilities(drawn).probability
    limit = float(target.probability)
    assert np.all(result <= limit + 1e-12 if target.is_upper else result >= limit - 1e-12)
    edge = result.max() if target.is_upper else result.min()
    assert edge <= found.bound + 1e-12 if target.is_upper else edge >= found.bound - 1e-12


@pytest.mark.parametrize(
    ("begin", "held", "message"),
    [
        ((5, 11), [[0, 0], [0, 0]], "a floor from 0 to 1"),
        ((-1, 5), [[0, 0], [0, 0]], "a floor from 0 to 1"),
        ((5,), [[0, 0], [0, 0]], "a floor from 0 to 1"),
        ((0, 10), [[1, 0], [1, 1]], "cannot have a floor and be held"),
        ((0, 10), [[1, 0], [1, 0]], None),
    ],
)
def test_what_cannot_be_is_refused(begin, held, message):
    task, cells = problem([chance([0, 1])], binary(0.5, 0.5), ">=", "0.5"), cells_of((0, 1), (1, 1))
    if message is None:
        line = family(task, cells, begin=begin, held=np.array(held, bool), whole=10)
        assert (line.top, line.floors(0), line.floors(3)) == (10, [0, 10], [3, 10])
    else:
        with pytest.raises(ValueError, match=message):
            family(task, cells, begin=begin, held=np.array(held, bool), whole=10)


def test_the_box_has_floors_and_holds_what_is_as_measured():
    # Billionths of the rates of nothing and a: a floor of 3/7 in bin 0, 1/3 and 2/3 as measured in bin 1, bin 2 free.
    exact = np.full((3, 2, 2), Fraction(1, 2), dtype=object)
    exact[1, :, 1] = Fraction(1, 3), Fraction(2, 3)
    one, held = chance([0, 1, 2]), np.array([[False, False], [False, True], [False, False]])
    task = problem([one], binary(0.5, 0.5, 0.5), ">=", "0.5")
    region = family(task, cells_of((0, 1)), begin=(3,), held=held, exact=exact, whole=7).region(one, 0)
    assert region.lower[:, :, 1].tolist() == [[0, 428_571_428], [333_333_333, 666_666_666], [0, 0]]
    assert region.upper[:, :, 1].tolist() == [[10**9, 10**9], [333_333_334, 666_666_667], [10**9, 10**9]]


@pytest.mark.parametrize(("semantics", "least"), [("shared_matrix", 0.5), ("per_state", 0.25)])
def test_one_matrix_for_all_states_does_better_than_one_for_each(semantics, least):
    # Good is who is told the same twice: r r + (1 - r)(1 - r) from 1/2 on; or r is 1/2 at first, and then 1/2 or 1.
    following = [[1, 2], [3, 4], [4, 3], [3, 3], [4, 4]]
    twice = objective_of(
        channel_of(((), ("a",)), [[0]], [[1]]), following, [0] * 5, {"good": {3}}, "F good", ended=(3, 4)
    )
    task = problem([twice], binary(0.5), ">=", least - 0.02)
    line = family(task, cells_of((0, 1)), begin=(1,), whole=2, semantics=semantics)
    assert line.bound(0) == (pytest.approx(least, abs=0.01), True)


def test_exact_bounds_are_compared_with_the_target_as_it_says():
    target = Fraction(1, 3)
    for comparison, told in ((">=", (0, 1, 1)), (">", (0, 0, 1)), ("<=", (1, 1, 0)), ("<", (1, 0, 0))):
        bounds = (target - Fraction(1, 10**30), target, target + Fraction(1, 10**30))
        assert tuple(box.COMPARE[comparison](bound, target) for bound in bounds) == told


@pytest.mark.parametrize(
    ("begin", "least", "tried"),
    [
        (0, 40, [100, 0, 2, 6, 14, 30, 62, 46, 38, 42, 40, 39]),  # steps of 1, 2, 4, ..., then halves
        (40, 40, [100, 40]),
        (99, 100, [100, 99]),
        (98, 99, [100, 98, 99]),
        (100, 100, [100]),
        (0, 101, [100]),
    ],
)
def test_floors_are_looked_for_from_the_beginning_on_in_steps_that_double(begin, least, tried):
    places = []

    def bound(place):
        places.append(place)
        return place / 100, place >= least

    line = SimpleNamespace(top=100, bound=bound, floors=lambda place: [place], proven=lambda place: place == least)
    found = least_floors(line, begin)
    assert found == (Floors((least,), least / 100, True) if least <= 100 else Floors(None, 1.0, False))
    assert places == tried


def test_what_other_scenarios_do_beside_counts_too():
    # Of P = r0 and P = r1 only the first can change; the other is 0.6 for all matrices of the box.
    cells = cells_of((0, 1))
    for comparison, target, expected in ((">=", "0.545", 0.55), (">=", "0.65", None), ("<=", "0.65", None)):
        task = problem([chance([0]), chance([1])], binary(0.5, 0.6), comparison, target).varying([True, False])
        found = least_floors(family(task, cells, whole=100))
        assert found.floors == (None if expected is None else (55,))
        assert found.bound == pytest.approx(1 if comparison == "<=" else expected or 0.6, abs=1e-9)
    upper = problem([chance([0], "F bad"), chance([1], "F bad")], binary(0.5, 0.6), "<=", "0.455")
    found = least_floors(family(upper.varying([True, False]), cells, whole=100))
    assert (found.floors, found.bound, found.checked) == ((55,), pytest.approx(0.45, abs=1e-9), True)


@pytest.mark.parametrize(("formula", "comparison", "target"), [("F good", ">=", 0.49), ("F bad", "<=", 0.51)])
def test_a_floor_is_proven_where_certificates_say_so(formula, comparison, target):
    """P = r0 in one initial state, 1 in the other."""
    channel = channel_of(((), ("a",)), [[0]], [[1]])
    true_in = {"good": {1}, "bad": {2}}
    two = objective_of(channel, [[2, 1], [1, 1], [2, 2]], [0] * 3, true_in, formula, starts=(0, 1), ended=(1, 2))
    line = family(problem([two], binary(0.5), comparison, Fraction(target)), cells_of((0, 1)), whole=8)
    assert [line.proven(place) for place in (3, 4, 5)] == [False, True, True]
    for place, met in ((3, False), (4, True)):
        bound = place / 8 if formula == "F good" else 1 - place / 8
        assert line.bound(place) == (pytest.approx(bound, abs=1e-6), met)
