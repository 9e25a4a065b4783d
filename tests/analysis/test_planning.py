"""How many more items would decide: against a scan of exact binomial bounds, and against other allocations."""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recall_chains import binary, measured_of, product_of_recalls
from scipy.optimize import linprog
from scipy.stats import beta
from shorthands import confidence_region
from small_objectives import channel_of, objective_of

from verifier.analysis import planning
from verifier.analysis.intervals.drive_items import DriveItems, lower_ends
from verifier.analysis.intervals.intervals import Measured
from verifier.analysis.intervals.rate_intervals import RateIntervals
from verifier.analysis.planning import (
    EvidencePlan,
    PlannedColumn,
    Question,
    _greatest_change,
    _in_drives,
    _in_items,
    _rounded,
    _smallest,
    _useful,
    _worth,
    additional_data,
    planned_counts,
)
from verifier.analysis.robust.region import events_of
from verifier.analysis.robust.solutions import robust_bounds
from verifier.base.documents import MisfitError
from verifier.checking.verdicts import Verdict, verdict_of


def planned(objective, measured, question):
    events = events_of(objective.skeleton, measured)
    return additional_data(objective, RateIntervals(measured, events, Fraction(1, 20)), question)


def bins_of(plan):
    return [int(column.bin) for column in plan.columns]


def planned_in_drives(hits_and_items, question, tier="independent_drives", icc=None):
    """P is the recall that was observed in these drives."""
    objective = product_of_recalls([0])
    table = np.array([binary(each).counts for each in hits_and_items])
    measured = binary(tuple(np.sum(hits_and_items, axis=0)))
    names = tuple(f"drive {number}" for number in range(len(table)))
    largest = table.sum(axis=2).max(axis=0) if tier == "independent_drives" else None
    events = events_of(objective.skeleton, measured)
    drives = DriveItems(names, "item", table)
    intervals = RateIntervals(measured, events, Fraction(1, 20), tier, drives, largest, icc)
    return additional_data(objective, intervals, question, len(table))


@pytest.mark.parametrize(("rate", "number"), [("0.9", 39), ("0.95", 80), ("0.99", 407)])
def test_equal_drives_without_a_miss_need_the_published_number(rate, number):
    plan = planned_in_drives([(50, 50)] * 10, Question(0, ">=", Fraction(rate)))
    assert (plan.columns, plan.total) == ((), 0)
    assert number <= 10 + plan.drives <= 1.01 * number + 1


def test_drives_like_these_decide_and_a_few_fewer_do_not():
    held, goal = [(45, 50), (30, 30), (9, 10), (48, 50)] * 3, Fraction(4, 5)
    plan = planned_in_drives(held, Question(0, ">=", goal))
    assert plan.verdict is Verdict.SATISFIED
    assert plan.lower >= goal
    assert plan.drives > 0

    def end_of(copies):
        hits, items = (np.array(each * copies)[:, None] for each in zip(*held, strict=True))
        return lower_ends(hits, items, np.array([50]), Fraction(1, 40))[0] / 1e9

    wanted = (12 + plan.drives) / 12
    assert end_of(int(np.ceil(wanted))) >= goal > end_of(int(np.floor(wanted / 1.1)) if wanted >= 2.2 else 1)


def test_what_no_number_of_drives_shows():
    # Every S_j is negative: the rate seen is the target, or on its other side.
    assert planned_in_drives([(9, 10)] * 10, Question(0, ">=", Fraction(9, 10))) is None


def test_a_correlation_needs_more_drives_than_none():
    held, question = [(19, 20)] * 10, Question(0, ">=", Fraction(92, 100))
    few = planned_in_drives(held, question, "icc_at_most", Fraction(0))
    more = planned_in_drives(held, question, "icc_at_most", Fraction(1, 10))
    # n_eff falls by 1 + 19/10.
    assert (10 + more.drives) / (10 + few.drives) == pytest.approx(2.9, rel=0.1)


def lower_end(hits, items, tail):
    return beta.ppf(tail, hits, items - hits + 1) if hits else 0.0


def upper_end(hits, items, tail):
    return beta.ppf(1 - tail, hits + 1, items - hits) if hits < items else 1.0


@pytest.mark.parametrize(
    ("hits", "items", "comparison", "target"),
    [
        (97, 100, ">=", "0.95"),
        (93, 100, ">=", "0.95"),  # to show that it is violated
        (50, 50, ">", "0.99"),  # nothing was ever missed
        (3, 100, "<=", "0.05"),
        (3, 100, "<", "0.01"),
    ],
)
def test_one_column_needs_about_what_a_scan_finds(hits, items, comparison, target):
    # P is the recall, so the bounds are the ends of Clopper and Pearson at alpha = .05 for one event.
    objective, measured = product_of_recalls([0]), binary((hits, items))
    goal = Fraction(target)
    plan = planned(objective, measured, Question(0, comparison, goal))
    rate = hits / items
    meets = {">=": rate >= goal, ">": rate > goal, "<=": rate <= goal, "<": rate < goal}[comparison]
    assert plan.verdict is (Verdict.SATISFIED if meets else Verdict.VIOLATED)
    above = (comparison in (">=", ">")) == meets  # which end has to pass the target

    def decides(total):
        count = round(total * rate)
        return lower_end(count, total, 0.025) > goal if above else upper_end(count, total, 0.025) < goal

    least = next(total for total in range(items, 10**6) if decides(total))
    assert [column.items for column in plan.columns] == [items]
    # Rounded up to two digits, found to 3 %, and with steps of whole hits.
    assert least * 0.9 <= items + plan.total <= least * 1.25


def test_the_planned_counts_decide_and_a_fifth_fewer_do_not():
    # P = .98 * .97 = .9506 with few items; the target is .94.
    objective, measured = product_of_recalls([0, 1]), binary((196, 200), (194, 200))
    question = Question(0, ">=", Fraction(94, 100))
    plan = planned(objective, measured, question)

    def ends_with(share):
        counts = measured.counts.copy()
        for column in plan.columns:
            index, more = int(column.bin), int(share * column.further)
            hits = round(more * measured.rates[index, 1, 1])
            counts[index, :, 1] += [more - hits, hits]
        region = confidence_region(objective.skeleton, type(measured)(counts, measured.rates, measured.fixed))
        bounds = robust_bounds(objective, region)
        return float(bounds.lower[0]), float(bounds.upper[0])

    assert ends_with(1.0) == (plan.lower, plan.upper)
    assert verdict_of(*ends_with(1.0), ">=", question.target) is plan.verdict is Verdict.SATISFIED
    assert plan.lower >= 0.94
    assert verdict_of(*ends_with(0.8), ">=", question.target) is Verdict.INCONCLUSIVE


def test_the_plan_is_nearly_as_small_as_any():
    # Recalls .6 and .99: the first is much less certain and needs more items. Two events, alpha = .05.
    objective, measured = product_of_recalls([0, 1]), binary((30, 50), (49, 50))
    target, tail = 0.5, 0.05 / 2 / 2
    plan = planned(objective, measured, Question(0, ">=", Fraction(1, 2)))
    grid = np.unique(np.geomspace(50, 20_000, 160).astype(int))
    first = beta.ppf(tail, np.round(0.6 * grid), grid - np.round(0.6 * grid) + 1)
    second = beta.ppf(tail, np.round(0.98 * grid), grid - np.round(0.98 * grid) + 1)
    enough = first[:, None] * second >= target
    least = (grid[:, None] + grid)[enough].min()
    assert bins_of(plan)[0] == 0
    assert 100 + plan.total <= 1.2 * least  # of which rounding up to two digits is a tenth at most


@pytest.mark.parametrize(
    ("hits", "items", "target"),
    [
        (19, 20, Fraction(95, 100)),  # P equals the target
        (10**6 - 1, 10**6, Fraction(999_999_001, 10**9) - Fraction(1, 10**12)),  # too close to tell
    ],
)
def test_what_no_number_of_items_decides(hits, items, target):
    assert planned(product_of_recalls([0]), binary((hits, items)), Question(0, ">=", target)) is None


def test_what_does_not_depend_on_the_detector_needs_no_items():
    # No column is needed: the bounds are what they are.
    objective = product_of_recalls([0])
    fixed = binary((1, 2), fixed=[[False, True]])
    assert planned(objective, fixed, Question(0, ">=", Fraction(1, 2))) is None


def test_items_go_where_they_narrow_the_bounds_most(monkeypatch):
    # Recall .6 from 50 items and .999 from 5,000: scaling both alike takes many more.
    objective, measured = product_of_recalls([0, 1]), binary((30, 50), (4995, 5000))
    plan = planned(objective, measured, Question(0, ">=", Fraction(1, 2)))
    assert bins_of(plan) == [0]
    monkeypatch.setattr(planning, "_worth", lambda *_: np.zeros((2, 2)))  # then both grow alike
    assert planned(objective, measured, Question(0, ">=", Fraction(1, 2))).total > 10 * plan.total


def test_a_column_without_items_gets_some():
    # Nothing is known of the second recall, and the policy assumes 9/10 for it.
    objective, measured = product_of_recalls([0, 1]), binary((97, 100), (0, 0))
    measured.rates[1, :, 1] = [0.1, 0.9]
    plan = planned(objective, measured, Question(0, ">=", Fraction(3, 4)))
    assert (bins_of(plan)[0], plan.columns[0].items) == (1, 0)
    assert plan.lower >= 0.75


def test_a_column_without_rates_cannot_be_planned_with():
    objective, measured = product_of_recalls([0, 1]), binary((97, 100), (0, 0))
    with pytest.raises(ValueError, match="no rates"):
        planned(objective, measured, Question(0, ">=", Fraction(3, 4)))


def test_where_the_present_items_decide_nothing_more_is_asked_for():
    assert planned(product_of_recalls([0]), binary((97, 100)), Question(0, ">=", Fraction(1, 2))) is None


@given(st.integers(0, 10**6))
def test_planned_counts_show_the_present_rates(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 50, (2, 3, 3))
    counts[:, 0] += counts.sum(axis=1) == 0
    rates = counts / counts.sum(axis=1, keepdims=True)
    further = rng.integers(0, 10**9, (2, 3))
    planned = planned_counts(Measured(counts, rates, np.zeros((2, 3), dtype=bool)), further)
    assert np.array_equal(planned.sum(axis=1), counts.sum(axis=1) + further)
    assert np.all(np.abs(planned - counts - rates * further[:, None, :]) < 1)


def test_nothing_can_be_decided_about_no_target():
    with pytest.raises(ValueError, match="nothing to decide"):
        Question(0, "=", Fraction(1, 2))


def test_rounding_makes_no_column_worth_less_than_nothing():
    """Equal slopes cancel up to rounding; a hair below zero would be no number when it is taken to a power."""
    slope, spread = np.full((200, 3), 3.726127954819236), np.random.default_rng(0).random((200, 3))
    found = _greatest_change(slope, spread)
    assert np.all((found >= 0) & (found < 1e-12))


def test_items_are_rounded_up_to_two_digits_by_hand():
    items = [0, 0.3, 1, 7, 7.2, 42, 99, 99.5, 100, 101, 110, 110 + 1e-9, 999, 1001, 123456, 10**9]
    rounded = [0, 1, 1, 7, 8, 42, 99, 100, 100, 110, 110, 110, 1000, 1100, 130000, 10**9]
    assert _rounded(np.array(items, dtype=float)).tolist() == rounded


@pytest.mark.parametrize(
    ("drives", "enough", "most", "told", "asked"),
    [
        (10, 11, 10**6, 11, [20, 15, 12, 11]),
        (10, 20, 10**6, 20, [20, 15, 17, 18, 19]),
        (10, 21, 10**6, 21, [20, 40, 30, 25, 22, 21]),
        (10, 40, 40, 40, [20, 40, 30, 35, 37, 38, 39]),
        (10, 41, 40, None, [20, 40]),
        (0, 1, 10**6, None, []),
        # To one in a hundred: 5,040 and 5,000 are 40 apart.
        (10, 4990, 10**6, 5000, [*(10 * 2**k for k in range(1, 10)), 3840, 4480, 4800, 4960, 5040, 5000]),
        (10, 5001, 10**6, 5040, [*(10 * 2**k for k in range(1, 10)), 3840, 4480, 4800, 4960, 5040, 5000]),
        (10, 700_000, None, None, [10 * 2**k for k in range(1, 17)]),  # of a million at most
        # 40 is a hundredth of 4,000.
        (10, 3990, 10**6, 4000, [*(10 * 2**k for k in range(1, 10)), 3840, 4480, 4160, 4000, 3920, 3960]),
        (1, 150, 10**6, 150, [2, 4, 8, 16, 32, 64, 128, 256, 192, 160, 144, 152, 148, 150, 149]),
        (1, 300, 10**6, 300, [2, 4, 8, 16, 32, 64, 128, 256, 512, 384, 320, 288, 304, 296, 300, 298]),
    ],
)
def test_the_fewest_drives_by_hand(drives, enough, most, told, asked, monkeypatch):
    if most is not None:
        monkeypatch.setattr(planning, "MOST_DRIVES", most)
    times = []

    def decided(own):
        times.append(own)
        return own * drives >= enough

    assert _in_drives(decided, drives) == told
    assert [own * drives for own in times] == pytest.approx(asked)


@pytest.mark.parametrize(
    ("enough", "least", "most"),
    [(1, 1, 1), (42, 42, 42), (777, 780, 790), (10**6, 10**6, 10**6), (10**9, 10**9, 10**9), (10**9 + 1, None, 0)],
)
def test_the_fewest_items_by_hand(enough, least, most):
    """Of one column, one in fifty more at most, and up to two digits."""
    items = _smallest(lambda given: given.sum() >= enough, lambda size: np.array([size, 0.0]))
    assert (items is None) == (least is None)
    assert least is None or (least <= items[0] <= most and items[1] == 0)


def test_one_matrix_in_all_steps_is_planned_for_as_well():
    """State 0 goes on with a recall, state 1 with a miss: of one matrix at most 1/4, of two, more."""
    channel = channel_of(((), ("a",)), [[0]], [[1]])
    objective = objective_of(
        channel, [[3, 1], [2, 3], [2, 2], [3, 3]], [0] * 4, {"goal": {2}}, "F goal", ended=(2, 3)
    )
    measured = binary((5, 10))
    events = events_of(objective.skeleton, measured)
    intervals = RateIntervals(measured, events, Fraction(1, 20))
    assert additional_data(objective, intervals, Question(0, "<=", Fraction(3, 10), "shared_matrix")) is None
    assert additional_data(objective, intervals, Question(0, "<=", Fraction(3, 10))).total > 0


def test_columns_that_get_items_come_in_the_order_of_how_many(monkeypatch):
    objective, measured = product_of_recalls([0, 1, 2]), binary((9, 10), (8, 9), (7, 8))
    for further, columns in (
        ([1, 0, 5], [[2, 1], [0, 1]]),
        ([5, 5, 1], [[0, 1], [1, 1], [2, 1]]),
        ([0, 1, 0], [[1, 1]]),
    ):
        items = np.array([[0, number] for number in further])
        monkeypatch.setattr(planning, "_in_items", lambda *asked, items=items: items)
        plan = planned(objective, measured, Question(0, ">=", Fraction(1, 4)))
        assert (bins_of(plan), plan.total) == ([at for at, _ in columns], sum(further))
        assert [(each.further, each.items) for each in plan.columns] == [(further[at], 10 - at) for at, _ in columns]


@pytest.mark.parametrize(
    ("target", "verdict"),
    [("0.19", "satisfied"), ("0.21", "inconclusive"), ("0.79", "inconclusive"), ("0.81", "violated")],
)
def test_a_point_is_within_both_of_its_bounds(target, verdict):
    """1/2, from the second initial state, by 1/10 for rounding and 1/5 for the representation of rates."""
    here = SimpleNamespace(probability=[[0.9, 0.5]], error_bound=[[0, 0.1]], representation_bound=[[0, 0.2]])
    here = SimpleNamespace(**{name: np.array(value) for name, value in vars(here).items()})
    objective, measured = SimpleNamespace(probabilities=lambda rates: here), SimpleNamespace(rates=np.ones(1))
    question = Question(1, ">=", Fraction(target))
    assert planning._verdict_of_point(objective, measured, question) is Verdict(verdict)


def test_no_items_are_no_plan():
    assert _smallest(lambda given: True, lambda size: np.zeros(2)) is None


def test_a_plan_of_items_by_hand(monkeypatch):
    """The cheaper of two shapes: a multiple of what is there, or as the two thirds of what an item may change."""
    measured = binary((50, 100), (999, 1000))
    objective, useful = product_of_recalls([0, 1]), np.array([[False, True]] * 2)
    assert _useful(objective, measured).tolist() == useful.tolist()
    held = binary((50, 100), (1, 2), fixed=[[False, True], [False, False]])
    assert _useful(objective, held).tolist() == [[False, False], [False, True]]
    # By a half more of each label than there are: what was never seen may come. The other recall is the slope.
    first, second = (math.sqrt(p * (1 - p)) for p in (50.5 / 101, 999.5 / 1001))
    worth = [first * 0.999, second * 0.5]
    np.testing.assert_allclose(_worth(objective, measured, 0), [[0, worth[0]], [0, worth[1]]], rtol=1e-9)
    items = _in_items(objective, measured, 0, lambda more: more[0, 1] >= 10**5, useful)
    # Uniformly a thousand times as many of both; beyond what is asked one in fifty at most, and two digits.
    assert 10**5 <= items[0, 1] <= 1.1 * 10**5
    wanted = (items[0, 1] + 100) * (worth[1] / worth[0]) ** (2 / 3) - 1000
    assert items[1, 1] == pytest.approx(wanted, rel=0.12)
    assert items[:, 0].tolist() == [0, 0]
    assert _in_items(objective, measured, 0, lambda more: False, useful) is None
    # Uniformly a thousand times as many of both; a tenth more of both; three items for one where there are none, of
    # 100 elsewhere. Beyond what is asked one in fifty at most, and two digits.
    bare = binary((50, 100), (0, 0))
    bare.rates[1, :, 1] = [0.5, 0.5]
    monkeypatch.setattr(planning, "_worth", lambda *_: np.zeros((2, 2)))
    for held, at, enough, least, most in (
        (measured, 0, 10**5, 1_100_000, 1.15 * 1_100_000), (measured, 0, 10, 100, 115), (bare, 1, 5, 305, 330)
    ):  # fmt: skip
        decided = lambda more, at=at, enough=enough: more[at, 1] >= enough  # noqa: E731
        assert least <= _in_items(objective, held, 0, decided, useful).sum() <= most


def test_a_column_without_items_counts_as_one_item():
    """Of three recalls of 1/2, 4/5 and an assumed 9/10, each times what half an item more of each label leaves."""
    measured = binary((50, 100), (8, 10), (0, 0))
    measured.rates[2, :, 1] = [0.1, 0.9]
    rates, smoothed = (0.5, 0.8, 0.9), (50.5 / 101, 8.5 / 11, 1.4 / 2)
    expected = [[0, math.prod(rates) / own * math.sqrt(p * (1 - p))] for own, p in zip(rates, smoothed, strict=True)]
    np.testing.assert_allclose(_worth(product_of_recalls([0, 1, 2]), measured, 0), expected, rtol=1e-9)
    three = measured_of([[[0, 2, 0], [0, 6, 0], [0, 2, 0]]])  # of 6 a, and 2 of each other label
    worth = _worth(product_of_recalls([0], labels=3), three, 0)
    np.testing.assert_allclose(worth, [[0, math.sqrt(6.5 * 5) / 11.5, 0]], rtol=1e-9)
    assert _worth(SimpleNamespace(slopes=False), measured, 0).tolist() == [[0, 0]] * 3


def test_of_two_plans_the_smaller_one_is_taken(monkeypatch):
    objective, useful = product_of_recalls([0, 1]), np.array([[False, True]] * 2)
    # The second recall does not matter, as the first is 0, so only a uniform plan has items for it.
    items = _in_items(objective, binary((0, 100), (50, 100)), 0, lambda more: more[1, 1] >= 5, useful)
    assert items.sum() == 10
    few, many = np.array([[0, 3], [0, 1]]), np.array([[0, 1], [0, 4]])
    for first, second, best in ((few, many, few), (many, few, few), (few[::-1], few, few), (None, many, many)):
        plans = iter([first, second])
        monkeypatch.setattr(planning, "_smallest", lambda decided, shape, plans=plans: next(plans))
        items = _in_items(objective, binary((5, 10), (5, 10)), 0, lambda more: False, useful)
        assert items.tolist() == best.tolist()


def test_further_items_are_divided_by_largest_remainders():
    """Of 1, the label with 1/2; of 5, 2.5 and 1.5 and 1, the first of two equal ones; of 7, 3.5 and 2.1 and 1.4."""
    rates = np.repeat([[[0.5] * 3, [0.3] * 3, [0.2] * 3]], 2, axis=0)
    rates[1] = np.nan
    counts, further = np.arange(18).reshape(2, 3, 3), np.array([[1, 5, 7], [0, 0, 0]])
    planned = planned_counts(Measured(counts, rates, np.zeros((2, 3), dtype=bool)), further)
    assert (planned - counts)[0].T.tolist() == [[1, 0, 0], [3, 1, 1], [4, 2, 1]]
    assert np.array_equal(planned[1], counts[1])


def test_the_greatest_change_is_that_of_a_linear_program():
    rng = np.random.default_rng(4)
    slope, spread = rng.normal(size=(3, 4, 2)), rng.random((3, 4, 2))
    change = _greatest_change(slope, spread)
    for at, true in np.ndindex(3, 2):
        own = spread[at, :, true]
        best = linprog(-slope[at, :, true], A_eq=np.ones((1, 4)), b_eq=[0], bounds=np.stack([-own, own], axis=1))
        assert change[at, true] == pytest.approx(-best.fun, abs=1e-9)
    assert _greatest_change(np.zeros((1, 2, 1)), np.ones((1, 2, 1))).tolist() == [[0]]


def test_an_evidence_plan_is_in_items_or_in_drives():
    columns = (PlannedColumn("ped", "[0, 10) m", 5, 20), PlannedColumn("car", "[0, 10) m", 0, 3))
    assert EvidencePlan(columns, None, 0.5, 0.5, Verdict.SATISFIED).total == 23
    assert EvidencePlan((), 3, 0.25, 0.5, Verdict.SATISFIED).total == 0
    for own, drives in ((columns, 3), ((), None)):
        with pytest.raises(ValueError, match="in items or in drives"):
            EvidencePlan(own, drives, 0.5, 0.5, Verdict.SATISFIED)
    with pytest.raises(MisfitError):
        EvidencePlan((), 3, 0.5, 0.25, Verdict.SATISFIED)
