"""Confidence regions: events, ends checked with exact binomial tails, coverage, and the boxes of assumptions."""

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interval_models import contains
from shorthands import confidence_region, ends_in_billionths
from small_objectives import channel_of, objective_of

from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.intervals.intervals import Measured
from verifier.analysis.intervals.rate_intervals import Event
from verifier.analysis.kernel import MOST_ITEMS, Rejected, tail_is_at_most
from verifier.analysis.robust.region import (
    NOTHING_TOLD,
    Region,
    _told_of,
    events_of,
    needed_columns,
)
from verifier.base.errors import UsageError
from verifier.perception.confusion import rates
from verifier.systems.channel import Channel

LABELS = ((), ("a",), ("b",), ("c",))


def skeleton(asked, columns=(1,), bins=2):
    """A state per bin that asks about the classes `asked` and goes on to the next bin unless it is told nothing."""
    told = sorted({frozenset(each) & asked for each in LABELS}, key=lambda each: (len(each), sorted(each)))
    rows = [[b] * len(columns) for b in range(bins)]
    channel = channel_of(LABELS, rows, [list(columns)] * bins, tuple(told))
    lost = bins + 1
    following = [[lost] + [k + 1] * (len(told) - 1) for k in range(bins)] + [[bins] * len(told), [lost] * len(told)]
    return objective_of(channel, following, [*range(bins), 0, 0], {"g": {bins}}, "F g", ended=(bins, lost)).skeleton


def counts_of(columns, bins=2):
    """(bins, 4, 4) counts from {(bin, true): four numbers}."""
    counts = np.zeros((bins, 4, 4), dtype=np.int64)
    for (index, true), column in columns.items():
        counts[index, :, true] = column
    return counts


def measured_of(counts, fixed=()):
    held = np.zeros((len(counts), 4), dtype=bool)
    for place in fixed:
        held[place] = True
    with np.errstate(invalid="ignore"):
        return Measured(counts, rates(counts), held)


def exact_tail(total, least, rate):
    return sum(math.comb(total, k) * rate**k * (1 - rate) ** (total - k) for k in range(least, total + 1))


class TestEvents:
    data = measured_of(counts_of({(0, 1): (3, 5, 1, 1), (1, 1): (0, 9, 1, 0)}))

    def test_a_planner_that_asks_one_thing_has_one_event_per_column(self):
        # {} and {b} and {c} are told alike; the event is "reported as a" = label 1.
        found = events_of(skeleton(frozenset("a")), self.data)
        assert found == {Event(0, 1, (1,)), Event(1, 1, (1,))}

    def test_with_three_groups_each_is_an_event(self):
        # Groups {} with c, a, b. The first stands for itself by its complement {a, b} = labels 1 and 2.
        found = events_of(skeleton(frozenset("ab")), self.data)
        assert {each.labels for each in found} == {(1, 2), (1,), (2,)}
        assert len(found) == 6

    def test_an_event_and_its_complement_are_one_for_different_planners(self):
        # One asks about a, the other about b and c: {a} is the event of the first, {b, c}, {b} and {c} of the second.
        first, second = (
            events_of(skeleton(frozenset("a")), self.data),
            events_of(skeleton(frozenset("bc")), self.data),
        )
        assert len(first | second) == 2 + 6
        assert first & second == set()
        assert first | events_of(skeleton(frozenset("a")), self.data) == first

    def test_fixed_columns_have_none_and_columns_without_items_have_theirs(self):
        data = measured_of(counts_of({(0, 1): (3, 5, 1, 1)}), fixed=[(0, 1)])
        assert events_of(skeleton(frozenset("a")), data) == {Event(1, 1, (1,))}

    def test_among_how_many_alpha_is_divided_does_not_depend_on_the_data(self):
        asked = skeleton(frozenset("ab"))
        without = events_of(asked, measured_of(counts_of({})))
        assert without == events_of(asked, self.data)
        counts = counts_of({(0, 1): (3, 5, 1, 1)})
        region = confidence_region(asked, measured_of(counts))
        assert len(region.evidence.events) == 6
        # x = 5 of 10, c = 1/240: Pr(Bin(10, l) >= 5) <= c, and a billionth further no longer.
        low = int(region.lower[0, 1, 1])
        assert exact_tail(10, 5, Fraction(low, UNIT)) <= Fraction(1, 240) < exact_tail(10, 5, Fraction(low + 2, UNIT))

    def test_who_asks_nothing_has_none(self):
        told = (frozenset(),)
        channel = channel_of(LABELS, [[0]], [[1]], told)
        blind = objective_of(channel, [[1], [1]], [0, 0], {"g": {1}}, "F g", ended=(1,)).skeleton
        assert events_of(blind, self.data) == set()
        region = confidence_region(blind, self.data)
        assert not region.needed.any()

    def test_the_events_of_a_run_must_include_those_of_its_chains(self):
        with pytest.raises(ValueError, match="must include"):
            confidence_region(skeleton(frozenset("a")), self.data, events=frozenset())


class TestConfidenceRegion:
    def test_one_column_has_the_interval_of_clopper_and_pearson(self):
        # 0 of 3 with one event at alpha = 0.05: lower 0; upper 1 - 0.025^(1/3) = 0.70759822...
        data = measured_of(counts_of({(0, 1): (3, 0, 0, 0)}, bins=1))
        region = confidence_region(skeleton(frozenset("a"), bins=1), data)
        assert region.lower[0, 1, 1] == 0
        assert region.upper[0, 1, 1] == math.ceil((1 - 0.025 ** (1 / 3)) * UNIT)
        # The other group is the complement.
        assert region.lower[0, 0, 1] == UNIT - region.upper[0, 1, 1]
        assert region.upper[0, 0, 1] == UNIT

    def test_alpha_is_divided_among_all_events_of_the_run(self):
        data = measured_of(counts_of({(0, 1): (0, 7, 0, 0)}, bins=1))
        asked = skeleton(frozenset("a"), bins=1)
        events = events_of(asked, data) | {Event(0, true, (k,)) for true in (0, 2, 3) for k in (1, 2, 3)}
        region = confidence_region(asked, data, 0.9, events)
        # alpha = 1/10 among 10 events, two sides: 7 of 7 has the lower end (1/200)^(1/7).
        assert region.lower[0, 1, 1] == math.floor(0.005 ** (1 / 7) * UNIT)
        assert region.upper[0, 0, 1] == UNIT - region.lower[0, 1, 1]
        assert region.evidence.alpha == Fraction(1, 10)
        assert len(region.evidence.events) == 10

    def test_a_column_without_items_is_free_and_a_fixed_one_is_a_point(self):
        counts = counts_of({(0, 1): (0, 4, 0, 0)})
        region = confidence_region(skeleton(frozenset("a")), measured_of(counts, fixed=[(0, 1)]))
        assert region.lower[0, :, 1].tolist() == region.upper[0, :, 1].tolist() == [0, UNIT]
        assert region.lower[1, :, 1].tolist() == [0, 0]
        assert region.upper[1, :, 1].tolist() == [UNIT, UNIT]

    def test_rates_that_are_held_are_rounded_outwards(self):
        # Of labels told alike, c and nothing, the rates add up: 1/10 and 2/3 of 30 items, the rest is a and b.
        data = measured_of(counts_of({(0, 1): (3, 5, 2, 20)}, bins=1), fixed=[(0, 1)])
        region = confidence_region(skeleton(frozenset("ab"), bins=1), data)
        assert region.lower[0, :, 1].tolist() == [766_666_666, 166_666_666, 66_666_666]
        assert region.upper[0, :, 1].tolist() == [766_666_667, 166_666_667, 66_666_667]

    def test_it_contains_the_observed_rates_and_tells_others_apart(self):
        counts = counts_of({(0, 1): (30, 50, 10, 10), (1, 1): (0, 99, 1, 0)})
        region = confidence_region(skeleton(frozenset("ab")), measured_of(counts))
        exact = np.zeros((2, 4, 4), dtype=object)
        exact[0, :, 1] = [Fraction(n, 100) for n in (30, 50, 10, 10)]
        exact[1, :, 1] = [Fraction(n, 100) for n in (0, 99, 1, 0)]
        assert contains(region, exact)
        # c is told like nothing, so only the sum of the two counts.
        exact[0, :, 1] = [Fraction(n, 100) for n in (0, 50, 10, 40)]
        assert contains(region, exact)
        exact[0, :, 1] = [Fraction(n, 100) for n in (10, 80, 10, 0)]
        assert not contains(region, exact)

    def test_the_very_ends_belong_to_it(self):
        region = confidence_region(
            skeleton(frozenset("a"), bins=1), measured_of(counts_of({(0, 1): (5, 5, 0, 0)}, bins=1))
        )
        end = int(region.upper[0, 1, 1])
        exact = np.zeros((1, 4, 4), dtype=object)
        exact[0, :2, 1] = [Fraction(UNIT - end, UNIT), Fraction(end, UNIT)]
        assert contains(region, exact)
        step = Fraction(1, 10**15)
        exact[0, :2, 1] = [Fraction(UNIT - end, UNIT) - step, Fraction(end, UNIT) + step]
        assert not contains(region, exact)

    @pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, math.nan])
    def test_levels_outside_0_to_1_are_refused(self, level):
        with pytest.raises(UsageError, match="strictly between 0 and 1"):
            confidence_region(skeleton(frozenset("a")), TestEvents.data, level)


class TestEnds:
    @given(st.integers(1, 60), st.data())
    def test_the_chance_of_missing_is_at_most_what_was_asked_in_exact_arithmetic(self, total, data):
        items = data.draw(st.integers(0, total))
        tail = Fraction(1, data.draw(st.integers(3, 5000)))
        low, high = (int(each[0]) for each in ends_in_billionths(np.array([items]), np.array([total]), float(tail)))
        # Pr(Bin(n, lower) >= x) <= c, and the same for the complement; a billionth further in it no longer holds.
        if items:
            assert exact_tail(total, items, Fraction(low, UNIT)) <= tail
            assert exact_tail(total, items, Fraction(low + 2, UNIT)) > tail
        else:
            assert low == 0
        if items < total:
            assert exact_tail(total, total - items, Fraction(UNIT - high, UNIT)) <= tail
            assert exact_tail(total, total - items, Fraction(UNIT - high + 2, UNIT)) > tail
        else:
            assert high == UNIT

    @pytest.mark.parametrize("total", [10**3, 10**5, 10**7, 10**9])
    @pytest.mark.parametrize("share", [0.0, 1e-6, 0.001, 0.5, 1.0])
    @pytest.mark.parametrize("tail", [Fraction(1, 40), Fraction(1, 10**6)])
    def test_ends_hold_for_many_items(self, total, share, tail):
        items = round(share * total)
        if min(items, total - items) > 10**5:
            return
        low, high = (int(each[0]) for each in ends_in_billionths(np.array([items]), np.array([total]), float(tail)))
        assert low == 0 or tail_is_at_most(total, items, low, tail)
        assert high == UNIT or tail_is_at_most(total, total - items, UNIT - high, tail)
        if items and low + 3 < UNIT:
            assert not tail_is_at_most(total, items, low + 3, tail)


class TestTails:
    @given(st.integers(1, 40), st.data())
    def test_they_are_those_of_the_definition(self, total, data):
        least = data.draw(st.integers(0, total))
        billionths = data.draw(st.one_of(st.integers(1, UNIT), st.sampled_from([1, UNIT - 1, UNIT])))
        exact = exact_tail(total, least, Fraction(billionths, UNIT))
        if 0 < exact < Fraction(1, 3):
            assert tail_is_at_most(total, least, billionths, exact * (1 + Fraction(1, 10**18)))
            assert not tail_is_at_most(total, least, billionths, exact * (1 - Fraction(1, 10**18)))
        bound = Fraction(1, 7)
        if tail_is_at_most(total, least, billionths, bound):
            assert exact <= bound

    @pytest.mark.parametrize(
        ("total", "least", "rate"), [(2000, 1020, "1/2"), (1500, 170, "1/10"), (1500, 1380, "9/10")]
    )
    def test_none_below_a_long_one_is_proven_however_close(self, total, least, rate):
        # Up to hundreds of terms are added up before the rest is bounded.
        exact = exact_tail(total, least, Fraction(rate))
        billionths = int(Fraction(rate) * UNIT)
        assert not tail_is_at_most(total, least, billionths, exact * (1 - Fraction(1, 10**33)))
        assert tail_is_at_most(total, least, billionths, exact * (1 + Fraction(1, 10**25)))

    def test_extremes(self):
        half = Fraction(1, 2)
        assert tail_is_at_most(5, 3, 1, half)
        assert not tail_is_at_most(5, 3, UNIT, half)
        assert not tail_is_at_most(5, 0, 5, half)
        assert tail_is_at_most(5, 0, 5, Fraction(1))
        # Pr(Bin(2, p) >= 1) with p just below and above 2/3, where terms cease to fall: less than 1 is not shown.
        assert tail_is_at_most(2, 1, 666_666_666, Fraction(19, 20))
        assert not tail_is_at_most(2, 1, 666_666_667, Fraction(19, 20))
        assert not tail_is_at_most(3, 1, UNIT // 2, Fraction(19, 20))  # 7/8, where the first two terms are equal
        assert tail_is_at_most(2, 2, UNIT // 2, Fraction(1, 4))  # exactly

    def test_more_than_can_be_checked_is_refused(self, monkeypatch):
        with pytest.raises(Rejected, match="of the rarer kind"):
            tail_is_at_most(4 * MOST_ITEMS, 2 * MOST_ITEMS, UNIT // 3, Fraction(1, 2))
        monkeypatch.setattr("verifier.analysis.kernel.MOST_ITEMS", 3)
        assert tail_is_at_most(6, 3, UNIT // 10, Fraction(1, 10))
        with pytest.raises(Rejected, match="of the rarer kind"):
            tail_is_at_most(8, 4, UNIT // 10, Fraction(1, 10))

    @pytest.mark.parametrize("wrong", [(3, 4, 1), (3, -1, 1), (3, 1, 0), (3, 1, -1), (3, 1, UNIT + 1)])
    def test_numbers_out_of_range_are_refused(self, wrong):
        with pytest.raises(Rejected, match="expected"):
            tail_is_at_most(*wrong, Fraction(1, 2))
        with pytest.raises(Rejected, match="a bound above 0"):
            tail_is_at_most(3, 1, 1, Fraction(0))


@pytest.mark.parametrize(
    ("counts", "found", "fixed"),
    [((2, 3, 2), (2, 3, 2), (2, 2)), ((2, 3, 3), (2, 3, 2), (2, 3)), ((2, 3, 3), (2, 3, 3), (3, 2))],
)
def test_counts_rates_and_held_columns_fit_together(counts, found, fixed):
    with pytest.raises(ValueError, match="must fit together"):
        Measured(np.zeros(counts, dtype=np.int64), np.zeros(found), np.zeros(fixed, dtype=bool))


def test_the_ways_in_which_draws_are_told_by_hand():
    """The first row is told in one way three times and in another twice, the second one four times in the other; the
    third one always in another, and would tell a and c apart in a way that never is."""
    told = np.array(
        [[[[0, 1, 0]], [[1, 0, 1]], [[7, 8, 9]]], [[[1, 0, 1]], [[1, 0, 1]], [[1, 1, 1]]]]
    )  # by way, row, draw and label
    located = SimpleNamespace(told=told, counts=np.array([[[3], [3], [0]], [[2], [1], [5]]]))
    channel = SimpleNamespace(
        columns=np.zeros((3, 1), dtype=np.int64),
        told=told[0],
        located=located,
        labels=("a", "b", "c"),
        then=np.eye(2),
    )
    found = _told_of(channel)
    assert (found.group.tolist(), found.kind.tolist()) == ([0, 1, 0], [[1], [2], [0]])
    assert found.report.tolist() == [[[1, 1], [0, 0]], [[0, 1], [1, 0]], [[1, 0], [0, 0]]]
    assert found.often.tolist() == [[5, 0], [3, 2], [4, 0]]
    assert found.share.tolist() == [[1, 0], [3 / 5, 2 / 5], [1, 0]]
    assert found.matters.tolist() == [False, True, True]
    assert (found.group_count, found.ways) == (2, 2)


def test_columns_matter_where_a_draw_that_is_made_tells_labels_apart():
    """The first draw tells a; the second tells nothing, or is not there, in row 1; row 2 is not asked."""
    channel = Channel(
        (frozenset(), frozenset("a")),
        (frozenset(), frozenset("a")),
        np.array([[0, 0], [1, 1], [0, 1]]),
        np.array([[0, 1], [1, -1], [0, 0]]),
        np.array([[[0, 1], [0, 0]]] * 3),
        np.array([[0, 1], [1, 1]]),
    )
    asked = SimpleNamespace(
        channel=channel, entry_row=np.array([0, 1, 1, 2]), depends_on_reports=np.array([True, True, True, False])
    )
    assert needed_columns(asked, 2).tolist() == [[True, False], [False, True]]
    found = _told_of(channel)
    assert (found.kind.tolist(), found.report.tolist()) == ([[1, 0], [1, 0], [1, 0]], [[[0, 0]], [[0, 1]]])
    assert found.often.tolist() == [[1], [1]]


def test_where_there_are_no_draws_nothing_is_told():
    nowhere = SimpleNamespace(
        columns=np.full((2, 1), -1), told=np.zeros((2, 1, 3)), located=None, labels=("a", "b", "c"),
        then=np.zeros((2, 0)), observations=("", "a"),
    )  # fmt: skip
    found = _told_of(nowhere)
    assert (found.group.tolist(), found.kind.tolist()) == ([0, 0, 0], [[0], [0]])
    assert (found.report.tolist(), found.often.tolist(), found.then.tolist()) == ([[[0]]], [[1]], [[0], [0]])
    none = NOTHING_TOLD
    assert (none.group.tolist(), none.kind.shape, none.report.tolist()) == ([0], (1, 0), [[[0]]])
    assert (none.often.tolist(), none.then.tolist()) == ([[1]], [[0]])


class TestBoxes:
    def test_a_floor_for_one_recall(self):
        lower, upper = np.zeros((2, 4, 4), dtype=object), np.ones((2, 4, 4), dtype=object)
        lower[0, 1, 1] = Fraction(19, 20)
        region = Region.of_bounds(skeleton(frozenset("a")), lower, upper)
        assert region.lower[:, :, 1].tolist() == [[0, 950_000_000], [0, 0]]
        assert region.upper[:, :, 1].tolist() == [[UNIT, UNIT], [UNIT, UNIT]]
        assert region.evidence is None

    def test_bounds_of_labels_told_alike_add_up_and_round_outwards(self):
        lower, upper = np.zeros((1, 4, 4), dtype=object), np.ones((1, 4, 4), dtype=object)
        third = Fraction(1, 3)
        lower[0, :, 1] = upper[0, :, 1] = [third / 2, third, third / 2, third]
        region = Region.of_bounds(skeleton(frozenset("a"), bins=1), lower, upper)
        assert region.lower[0, :, 1].tolist() == [666_666_666, 333_333_333]
        assert region.upper[0, :, 1].tolist() == [666_666_667, 333_333_334]

    def test_a_double_is_taken_for_the_fraction_that_it_is(self):
        lower, upper = np.zeros((1, 4, 4)), np.ones((1, 4, 4))
        lower[0, 1, 1] = 0.95  # the nearest double lies below
        region = Region.of_bounds(skeleton(frozenset("a"), bins=1), lower, upper)
        assert region.lower[0, 1, 1] == 949_999_999

    def test_a_column_without_any_rates_is_refused(self):
        lower, upper = np.zeros((1, 4, 4)), np.ones((1, 4, 4))
        lower[0, :, 1] = 0.25
        upper[0, 0, 1] = lower[0, 0, 1] = 0.5
        with pytest.raises(ValueError, match="empty"):
            Region.of_bounds(skeleton(frozenset("a"), bins=1), lower, upper)


def test_a_region_is_valid_from_birth():
    labels, group, place = (frozenset(), frozenset("a")), np.array([0, 1]), (0, 1, 1)
    low, high, needed = np.zeros((1, 2, 2), dtype=np.int64), np.full((1, 2, 2), UNIT), np.ones((1, 2), dtype=bool)
    half, beyond, below = np.full_like(low, UNIT // 2), high.copy(), low.copy()
    beyond[place], below[place] = UNIT + 1, -1
    Region(labels, group, low, high, needed)
    Region(labels, group, half, half, needed)
    for wrong, words in (
        ((labels, group, low.astype(float), high, needed), "whole numbers"),
        ((labels, group, low, high.astype(float), needed), "whole numbers"),
        ((labels, group, high, low, needed), "0 <= lower"),
        ((labels, group, below, high, needed), "0 <= lower"),
        ((labels, group, low, beyond, needed), "0 <= lower"),
        ((labels, group, half + 1, high, needed), "empty"),
        ((labels, group, low, half - 1, needed), "empty"),
        ((labels, np.array([0, 2]), low, high, needed), "every label"),
        ((labels, np.array([0, 1, 1]), low, high, needed), "every label"),
        ((labels[:1], group, low, high, needed), "every label"),
        (((*labels, frozenset("b")), np.array([0, 1, 1]), low, high, needed), "every label"),
        ((labels, group, low, high[:, :, :1], needed), "fit together"),
        ((labels, group, low, high, np.ones((2, 2), dtype=bool)), "fit together"),
    ):
        with pytest.raises(ValueError, match=words):
            Region(*wrong)


def test_the_true_matrices_lie_in_the_region_as_often_as_promised_exactly():
    # Two columns with 6 items each, two groups: all 49 data sets with their exact chances. alpha = 1/5, two events.
    asked = skeleton(frozenset("a"))
    truth = (Fraction(1, 2), Fraction(9, 10))
    exact = np.zeros((2, 4, 4), dtype=object)
    for index, rate in enumerate(truth):
        exact[index, :2, 1] = [1 - rate, rate]
    covered = Fraction(0)
    for hits in itertools.product(range(7), repeat=2):
        chance = Fraction(1)
        for count, rate in zip(hits, truth, strict=True):
            chance *= math.comb(6, count) * rate**count * (1 - rate) ** (6 - count)
        counts = counts_of({(index, 1): (6 - count, count, 0, 0) for index, count in enumerate(hits)})
        covered += chance * contains(confidence_region(asked, measured_of(counts), 0.8), exact)
    assert covered >= Fraction(8, 10)
