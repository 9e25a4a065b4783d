"""The least recall that meets a requirement: hand-solved, against brute force, and where P falls with recall."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from operator import ge, gt, le, lt
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recall_cases import LABELS, MILLION, binary, cells_of, chance, problem
from small_objectives import channel_of, objective_of, random_objective, random_rates

from verifier.analysis.recall import cells as recall_cells
from verifier.analysis.recall.cells import RecallCells, counts_with_recall, relevant_columns, with_recall
from verifier.analysis.recall.requirements import Evaluated, Path, Problem, Searched, Target, search, worst_along
from verifier.base.errors import LimitError
from verifier.perception.confusion import exact_rates, rates


def level(cells, whole=MILLION):
    return Path("level", cells, whole, (Fraction(0),) * cells.count)


# ---------------------------------------------------------------------------------------------- hand-solved


def test_where_p_is_the_recall_the_least_recall_is_the_target():
    found = search(problem([chance([0])], binary(0.3), ">=", "0.95"), level(cells_of((0, 1))))
    # 0.95 is no double: what lies within the numerical bounds of the target is left to exact arithmetic.
    assert found.least == 950_001
    assert found.unsure == (950_000,)
    assert found.met == ((950_001, MILLION),)
    assert (len(found.places), found.places[1]) == (257, 3906)  # a 256th of a million


def test_a_target_that_is_a_double_is_undecided_only_at_the_number_itself():
    found = search(problem([chance([0])], binary(0.3), ">=", "0.75"), level(cells_of((0, 1))))
    assert (found.least, found.unsure) in ((750_000, ()), (750_001, (750_000,)))


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_a_product_of_k_bins_needs_the_kth_root(k):
    # P = r^k >= 9/10 exactly when r >= (9/10)^(1/k).
    cells = cells_of(*((b, 1) for b in range(k)))
    found = search(problem([chance(range(k))], binary(*[0.5] * k), ">", "0.9"), level(cells))
    assert Fraction(found.least - 1, MILLION) ** k <= Fraction(9, 10) < Fraction(found.least, MILLION) ** k


def test_one_cell_among_others_as_measured():
    # P = r * 4/5 * 4/5 >= 1/2 exactly when r >= 25/32 = 0.78125.
    found = search(problem([chance([0, 1, 2])], binary(0.1, 0.8, 0.8), ">=", "0.5"), level(cells_of((0, 1))))
    assert found.least in (781_250, 781_251)
    assert found.least == 781_250 or found.unsure == (781_250,)


def test_a_common_factor_on_the_miss_rate():
    # Misses 1/2 and 1/4: P = (1 - f/2)(1 - f/4) >= 0.9 exactly when f <= 3 - sqrt(8.2).
    cells = cells_of((0, 1), (1, 1))
    path = Path("factor", cells, MILLION, (Fraction(1, 2), Fraction(1, 4)))
    assert path.top == 2 * MILLION  # f = 2 makes the first miss rate 1
    found = search(problem([chance([0, 1])], binary(0.5, 0.75), ">=", "0.9"), path)
    exact = 3 - 8.2**0.5
    assert found.least is not None
    recall = [part / MILLION for part in path.recall(found.least)]
    assert recall[0] * recall[1] >= 0.9
    # The factor has six decimals; the recalls are rounded up to as many, so it may be a few millionths beyond.
    assert exact - 1e-6 < float(path.factor(found.least)) < exact + 6e-6


def test_a_detector_that_has_more_than_it_needs_may_lose_some():
    # Misses 1/10 and 1/10, target 1/2: (1 - f/10)^2 >= 1/2 up to f = 10 - 10/sqrt(2) = 2.928...
    path = Path("factor", cells_of((0, 1), (1, 1)), MILLION, (Fraction(1, 10), Fraction(1, 10)))
    found = search(problem([chance([0, 1])], binary(0.9, 0.9), ">=", "0.5"), path)
    assert float(path.factor(found.least)) == pytest.approx(10 - 10 / 2**0.5, abs=2e-5)


def test_an_upper_limit_of_a_probability():
    # P(F bad) = 1 - r <= 0.05 exactly when r >= 0.95.
    found = search(problem([chance([0], "F bad")], binary(0.3), "<=", "0.05"), level(cells_of((0, 1))))
    assert found.least in (950_000, 950_001)


def test_the_worst_of_several_objectives_counts():
    both = [chance([0]), chance([0, 0])]
    found = search(problem(both, binary(0.3), ">", "0.64"), level(cells_of((0, 1))))
    assert found.least == 800_001  # r^2 > 0.64
    assert found.worst[-1] == 1.0


# ---------------------------------------------------------------------------------------------- targets 0 and 1


@pytest.mark.parametrize(
    ("comparison", "target", "least"),
    [(">=", 0, 0), (">", 0, 1), (">=", 1, MILLION), (">", 1, None), ("<=", 1, 0), ("<", 1, 0), ("<", 0, None)],
)
def test_targets_0_and_1(comparison, target, least):
    # P = recall; P < 1 holds everywhere but at recall 1, so never up to perfect recall.
    found = search(problem([chance([0])], binary(0.3), comparison, target), level(cells_of((0, 1))))
    if (comparison, target) == ("<", 1):
        assert found.least is None
        assert found.gaps == ((0, MILLION - 1),)
    else:
        assert found.least == least
        assert found.unsure == ()


# ---------------------------------------------------------------------------------------------- not monotone


def fickle():
    """Two draws in one bin; good exactly when they agree: P = r^2 + (1 - r)^2."""
    channel = channel_of(LABELS, [[0]], [[1]])
    following = [[1, 2], [3, 4], [4, 3], [3, 3], [4, 4]]
    return objective_of(channel, following, [0] * 5, {"good": {3}}, "F good", ended=(3, 4))


def test_a_planner_that_wants_consistency_is_met_by_the_blind_too():
    # r^2 + (1-r)^2 > 5/8 exactly when r < 1/4 or r > 3/4.
    found = search(problem([fickle()], binary(0.5), ">", "0.625"), level(cells_of((0, 1))))
    assert found.met == ((0, 249_999), (750_001, MILLION))
    assert found.least == 750_001
    assert found.gaps == ((0, 249_999),)


def test_met_only_in_a_gap():
    # r^2 + (1-r)^2 < 5/8 exactly when 1/4 < r < 3/4: perfect recall does not meet it.
    found = search(problem([fickle()], binary(0.5), "<", "0.625"), level(cells_of((0, 1))))
    assert found.least is None
    assert found.gaps == ((250_001, 749_999),)


def test_never_met():
    found = search(problem([fickle()], binary(0.5), "<", "0.4"), level(cells_of((0, 1))))
    assert (found.least, found.gaps, found.unsure) == (None, (), ())


@given(st.integers(0, 10_000), st.sampled_from(["F q", "G !p", "p U q", "X (q R p)", "F (p & X q)"]))
def test_against_brute_force_over_the_whole_path(seed, formula):
    rng = np.random.default_rng(seed)
    objective = random_objective(rng, formula, draws=1 + seed % 2)
    measured = random_rates(rng, 2, 3)
    cells = cells_of((0, 1), (1, 2))
    target = Target(">" if seed % 2 else "<", Fraction(int(rng.integers(1, 64)), 64))
    task = Problem((objective,), measured, target)
    path = level(cells, 1000)
    found = search(task, path, 1001)  # a grid of every place: nothing can be missed
    value = objective.probabilities(path.rates(measured, range(1001))).probability
    limit = float(target.probability)
    met = (value < limit if target.is_upper else value > limit).all(axis=1)
    assert sorted(place for low, high in found.met for place in range(low, high + 1)) == np.flatnonzero(met).tolist()
    coarse = search(task, path, 33)
    for low, high in coarse.met:  # ends are true changes, whatever lies inside
        assert met[low]
        assert met[high]
        assert low == 0 or not met[low - 1]
        assert high == 1000 or not met[high + 1]


class Staircase:
    """A problem whose target is met where a list of places says so."""

    rates = binary(0.5)

    def __init__(self, met, whole):
        self.met, self.whole = np.isin(np.arange(whole + 1), list(met)), whole

    def evaluate(self, rates):
        met = self.met[np.rint(rates[:, 0, 1, 1] * self.whole).astype(int)]
        return Evaluated(met.astype(float), met, ~met)


def test_between_two_places_of_the_grid_the_change_next_to_the_upper_one_counts():
    # Met from 10 to 14 and from 41 on; a grid of the two ends sees one change only.
    path = level(cells_of((0, 1)), 64)
    found = search(Staircase({*range(10, 15), *range(41, 65)}, 64), path, 2)
    assert found.met == ((41, 64),)
    # Met up to 14 and from 41 to 44, not at the end: the stretch that is told is the one at the beginning.
    found = search(Staircase({*range(15), *range(41, 45)}, 64), path, 2)
    assert found.met == ((0, 14),)


@given(st.sets(st.integers(0, 64)), st.integers(2, 65))
def test_the_ends_of_stretches_are_true_changes(met, points):
    found = search(Staircase(met, 64), level(cells_of((0, 1)), 64), points)
    for low, high in found.met:
        assert {low, high} <= met
        assert low == 0 or low - 1 not in met
        assert high == 64 or high + 1 not in met
    assert (found.least is not None) == (64 in met)
    if points == 65:
        assert {place for low, high in found.met for place in range(low, high + 1)} == met


def test_one_initial_state_that_fails_decides_against_a_place():
    # From state 0 P = recall, from the goal P = 1.
    channel = channel_of(LABELS, [[0]], [[1]])
    following = [[2, 1], [1, 1], [2, 2]]
    two = objective_of(channel, following, [0] * 3, {"good": {1}}, "F good", starts=(0, 1), ended=(1, 2))
    found = search(problem([two], binary(0.5), ">=", "0.8"), level(cells_of((0, 1))))
    assert (found.least, found.unsure) == (800_001, (800_000,))
    upper = search(problem([two], binary(0.5), "<=", "0.8"), level(cells_of((0, 1))))
    assert (upper.met, upper.unsure) == ((), ())


# ---------------------------------------------------------------------------------------------- matrices


@pytest.mark.parametrize(
    ("comparison", "target", "near", "met", "failed"),
    [
        ("<=", 0.5, 0.4, False, False), ("<=", 0.5, 0.35, True, False), ("<=", 0.5, 0.65, False, True),
        (">=", 0.5, 0.6, False, False), (">=", 0.5, 0.65, True, False), (">=", 0.5, 0.35, False, True),
        ("<=", 1, 1.0, True, False), (">=", 0, 0.0, True, False),
    ],
)  # fmt: skip
def test_a_target_is_met_or_failed_where_both_numerical_bounds_say_so(comparison, target, near, met, failed):
    """An error of at most 1/100 of solving and 1/8 of the given probabilities on both sides; none beyond 0 and 1."""
    value = np.array([[near]])
    found = SimpleNamespace(
        probability=value, lower=value - 0.01, upper=value + 0.01, representation_bound=np.array([[0.125]])
    )
    objective = SimpleNamespace(probabilities=lambda rates: found)
    problem = Problem((objective,), np.ones((1, 2, 2)) / 2, Target(comparison, Fraction(target)))
    told = problem.evaluate(np.ones((1, 1, 2, 2)) / 2)
    assert (told.worst.tolist(), told.met.tolist(), told.failed.tolist()) == ([near], [met], [failed])


def test_the_rest_of_a_column_keeps_its_proportions():
    counts = np.array([[[5, 1, 2], [3, 6, 2], [2, 3, 0]]])
    cells = cells_of((0, 1))
    found = with_recall(rates(counts), cells, np.array([[0.2], [1.0]]))
    # Column 1: 1, 6, 3 of 10. With recall 1/5 the rest, 4/5, is shared 1 : 3.
    assert found[0, 0, :, 1] == pytest.approx([0.2, 0.2, 0.6])
    assert found[1, 0, :, 1].tolist() == [0, 1, 0]
    for other in (0, 2):
        assert np.array_equal(found[0, 0, :, other], rates(counts)[0, :, other])


def test_what_is_taken_from_a_perfect_column_is_missed():
    counts = np.array([[[0, 0, 4], [3, 9, 2], [2, 0, 1]]])
    found = with_recall(rates(counts), cells_of((0, 1), empty=2), np.array([[0.75]]))
    assert found[0, 0, :, 1].tolist() == [0, 0.75, 0.25]


@given(st.integers(0, 10_000))
def test_exact_counts_have_exactly_the_rates_that_were_searched(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 50, (2, 3, 3)) * (rng.random((2, 3, 3)) < 0.7)
    counts[:, 0, :] += counts.sum(axis=1) == 0
    cells = cells_of((0, 1), (1, 2))
    recall = rng.integers(0, MILLION + 1, 2)
    found = counts_with_recall(counts, cells, recall.tolist(), MILLION)
    exact = exact_rates(found)
    assert exact[0, 1, 1] == Fraction(int(recall[0]), MILLION)
    assert exact[1, 2, 2] == Fraction(int(recall[1]), MILLION)
    floats = with_recall(rates(counts), cells, recall[None] / MILLION)[0]
    # A recall near 1 is rounded to a double: what remains of its column is right to some 2^-53 of 1, not of itself.
    assert np.allclose(exact.astype(float), floats, rtol=0, atol=2.0**-51)
    before = exact_rates(counts)
    for at, column in ((0, 1), (1, 2)):
        rest = [y for y in range(3) if y != column and counts[at, y, column]]
        for y, z in itertools.pairwise(rest):
            assert exact[at, y, column] * before[at, z, column] == exact[at, z, column] * before[at, y, column]


def test_only_columns_that_matter_are_relevant():
    # State 0 draws in bin 0 and goes on whatever it sees; state 1 draws in bin 1, which decides.
    channel = channel_of(LABELS, [[0], [1]], [[1], [1]])
    following = [[1, 1], [3, 2], [2, 2], [3, 3]]
    one = objective_of(channel, following, [0, 1, 0, 0], {"good": {2}}, "F good", ended=(2, 3))
    assert relevant_columns(one, binary(0.5, 0.5)).tolist() == [[1, 1]]
    # In bin 0 the successors differ, but from both the goal is reached for certain.
    following = [[1, 2], [2, 3], [3, 3], [3, 3]]
    other = objective_of(channel, following, [0, 1, 0, 0], {"good": {3}}, "F good", ended=(3,))
    assert relevant_columns(other, binary(0.5, 0.5)).tolist() == []


def test_a_column_whose_absence_matters_is_relevant():
    # Two states for ever, state 1 whenever `a` is seen: G F seen has probability 1 for any recall but 0.
    channel = channel_of(LABELS, [[0], [1]], [[1], [1]])
    endless = objective_of(channel, [[0, 1], [0, 1]], [0, 0], {"seen": {1}}, "G F seen")
    assert relevant_columns(endless, binary(0.5, 0.5)).tolist() == [[0, 1]]
    found = search(problem([endless], binary(0.5, 0.5), ">=", 1), level(cells_of((0, 1))))
    assert found.met == ((1, MILLION),)
    always = objective_of(channel, [[0, 1], [0, 1]], [0, 0], {"seen": {1}}, "G (seen | !seen)")
    assert relevant_columns(always, binary(0.5, 0.5)).tolist() == []


@pytest.mark.parametrize("target", [Fraction(1, 2), Fraction(1, 3), Fraction(0), Fraction(1)])
def test_bounds_meet_or_fail_a_target_as_all_numbers_between_them_do(target):
    """Against fractions, for all pairs of doubles around the target."""
    near = float(target)
    around = sorted({0.0, 1.0, near, *(min(max(math.nextafter(near, end), 0), 1) for end in (-1, 2))})
    lower, upper = np.array([(a, b) for a in around for b in around if a <= b]).T
    exact = list(zip(map(Fraction, lower.tolist()), map(Fraction, upper.tolist()), strict=True))
    for comparison, holds in ((">=", ge), (">", gt), ("<=", le), ("<", lt)):
        asked = Target(comparison, target)
        met = [holds(low, target) and holds(high, target) for low, high in exact]
        failed = [not holds(low, target) and not holds(high, target) for low, high in exact]
        assert asked.met(lower, upper).tolist() == met
        assert asked.failed(lower, upper).tolist() == failed
        assert asked.is_upper == (comparison in "<=")
        worst = [0.7, 0.5] if asked.is_upper else [0.2, 0.4]
        assert asked.worst(np.array([[0.2, 0.7], [0.5, 0.4]]), 1).tolist() == worst


def test_objectives_that_are_the_same_for_all_matrices_count_as_before():
    both = [chance([0]), chance([1]), chance([1], "F bad")]
    for kinds, comparison, target in itertools.product((both[:2], both[::2]), (">=", "<="), (0.2, 0.4, 0.6, 0.9)):
        whole = problem(kinds, binary(0.3, 0.7), comparison, target)
        part = whole.varying([True, False])
        assert (len(part.objectives), part.varying([True]).beside) == (1, part.beside)
        matrices = np.stack([binary(recall, 0.7) for recall in (0, 0.3, 0.5, 1)])
        for name in ("worst", "met", "failed"):
            told, wanted = (getattr(each.evaluate(matrices), name).tolist() for each in (part, whole))
            assert told == pytest.approx(wanted, rel=1e-12)
    assert problem(both, binary(0.3, 0.7), ">=", 0.2).varying([True] * 3).beside is None


def test_places_of_paths_by_hand():
    cells = cells_of((0, 1), (1, 1))
    path = level(cells, 100)
    assert (path.top, path.recall(30), path.grid(5)) == (100, [30, 30], [0, 25, 50, 75, 100])
    # Misses 1/2 and 1/7: factors from 2 on, recalls rounded up; 100 2^(k/4) below 200, and 25 apart from 100 on.
    path = Path("factor", cells, 100, (Fraction(1, 2), Fraction(1, 7)))
    assert (path.top, path.factor(0), path.factor(150)) == (200, 2, Fraction(1, 2))
    assert [path.recall(place) for place in (0, 150, 199, 200)] == [[0, 72], [75, 93], [100, 100], [100, 100]]
    assert path.grid(5) == [0, 32, 59, 81, 100, 125, 150, 175, 200]
    assert Path("factor", cells, 100, (Fraction(0), Fraction(0))).top == 100
    assert Path("factor", cells, 1, (Fraction(2, 3), Fraction(1))).top == 1
    assert Path("factor", cells, 100, (Fraction(3, 7), Fraction(0))).top == 233
    for whole, misses in ((0, (0, 0)), (1, (0,)), (1, (0, Fraction(3, 2))), (1, (-1, 0))):
        with pytest.raises(ValueError, match="a whole from 1"):
            Path("level", cells, whole, misses)


def test_a_change_is_looked_for_in_sixteenths_and_what_is_undecided_below_it_is_told():
    asked = []

    class Undecided(Staircase):
        def evaluate(self, rates):
            found = super().evaluate(rates)
            places = np.rint(rates[:, 0, 1, 1] * self.whole).astype(int)
            asked.append(places.tolist())
            return replace(found, failed=found.failed & ~np.isin(places, self.undecided))

    path, task = level(cells_of((0, 1)), 256), Undecided(range(100, 257), 256)
    for undecided, unsure in (
        ([], ()), ([99], (99,)), ([98], ()), ([98, 99], (98, 99)), (range(90, 100), (97, 98, 99)),
    ):  # fmt: skip
        task.undecided = list(undecided)
        found = search(task, path, 2)
        assert (found.met, found.unsure) == (((100, 256),), unsure)
    assert asked[:4] == [[0, 256], list(range(16, 256, 16)), list(range(97, 112)), [97, 98, 99]]
    never = Undecided([], 256)
    never.undecided = [255, 256]
    assert search(never, path, 2).unsure == (255, 256)
    early = Undecided(range(1, 257), 256)
    early.undecided = [0]
    assert search(early, path, 3).unsure == (0,)
    assert worst_along(early, path, 3)[0] == [0, 128, 256]
    assert worst_along(early, path, 3)[1].tolist() == [0, 1, 1]


def test_values_that_differ_by_no_more_than_is_said_are_the_same_and_matrices_are_matrices(monkeypatch):
    tried, values = [], recall_cells._values
    monkeypatch.setattr(
        recall_cells, "_values", lambda objective, rates: tried.append(rates) or values(objective, rates)
    )
    # Of two initial states one stays where it is.
    channel = channel_of(LABELS, [[0], [1]], [[1], [1]])
    following, starts = [[0, 1], [0, 1], [2, 2]], (0, 2)
    endless = objective_of(channel, following, [0, 0, 0], {"seen": {1}}, "G F seen", starts=starts, ended=(2,))
    for same, columns in ((1e-12, [[0, 1]]), (1.0, [])):
        monkeypatch.setattr(recall_cells, "SAME_VALUE", same)
        for one in (endless, chance([0])):
            assert relevant_columns(one, binary(0.5, 0.5)).tolist() == columns
    assert len(tried) == 12
    assert all(rates.sum(axis=1) == pytest.approx(np.ones((2, 2)), rel=1e-12) for rates in tried)


def test_counts_of_a_recall_by_hand():
    # Columns as (reported as nothing, a, b) of a: what is left of it, or what is missed where nothing is left.
    for column, recall, whole, expected in (
        ((0, 5, 1), 1, 4, (0, 1, 3)), ((2, 5, 1), 1, 4, (2, 1, 1)), ((0, 5, 0), 3, 4, (1, 3, 0)),
        ((1, 0, 0), 4, 4, (0, 1, 0)), ((0, 1, 0), 1, 2**53, (2**53 - 1, 1, 0)), ((0, 1, 0), 1, 2**53 + 1, None),
    ):  # fmt: skip
        counts = np.ones((1, 3, 3), dtype=np.int64)
        counts[0, :, 1] = column
        if expected is None:
            with pytest.raises(LimitError, match="at most 2\\*\\*53 fit"):
                counts_with_recall(counts, cells_of((0, 1)), [recall], whole)
        else:
            found = counts_with_recall(counts, cells_of((0, 1)), [recall], whole)
            assert found[0].tolist() == [[1, expected[0], 1], [1, expected[1], 1], [1, expected[2], 1]]


@pytest.mark.parametrize(
    ("met", "least", "gaps"),
    [
        ((), None, ()),
        (((0, 10),), 0, ()),
        (((0, 9),), None, ((0, 9),)),
        (((1, 2), (4, 5), (7, 10)), 7, ((1, 2), (4, 5))),
    ],
)
def test_stretches_below_the_last_one_are_gaps(met, least, gaps):
    found = Searched(SimpleNamespace(top=10), (0, 10), np.zeros(2), met, ())
    assert (found.least, found.gaps) == (least, gaps)


def test_what_cannot_be_asked_is_refused():
    for pairs in ([(0, 0)], [(0, 1), (0, 0)], [(0, 1), (0, 1)]):
        with pytest.raises(ValueError, match="none of them of the empty label"):
            cells_of(*pairs)
    nothing = np.array([], dtype=np.int64)
    with pytest.raises(ValueError, match="at least one"):
        RecallCells(nothing, nothing, 0)
    with pytest.raises(ValueError, match="not a target"):
        Target("=", Fraction(1, 2))
    with pytest.raises(ValueError, match="not a target"):
        Target(">=", Fraction(3, 2))
    with pytest.raises(ValueError, match="without a scenario"):
        Problem((), binary(0.5), Target(">=", Fraction(1, 2)))
    with pytest.raises(ValueError, match="at least 2 points"):
        search(problem([chance([0])], binary(0.3), ">=", 0), level(cells_of((0, 1))), points=1)
