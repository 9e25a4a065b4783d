"""Intervals of all rates of a run: each end against its definition, in fractions."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from drive_tables import recall_counts, sequences_of
from recall_chains import measured_of

from verifier.analysis.intervals import rate_intervals
from verifier.analysis.intervals.drive_items import UNIT, DriveItems
from verifier.analysis.intervals.rate_intervals import (
    Event,
    RateDifference,
    RateIntervals,
    anytime_ends,
    difference_remark,
    effective_items,
    held_in_events,
    lower_end,
    rate_differences,
)
from verifier.perception.confusion import ConfusionMatrices

F = Fraction
TABLE = np.array([[[[5, 3], [1, 9]], [[0, 0], [0, 0]]], [[[2, 0], [4, 1]], [[3, 0], [3, 0]]]])
"""(drives, bins, predicted, true)."""
ALL = {Event(0, 0, (1,)), Event(0, 1, (1,)), Event(1, 0, (1,))}


def at_least(hits, items, rate):
    return sum(comb(items, k) * rate**k * (1 - rate) ** (items - k) for k in range(hits, items + 1))


@pytest.mark.parametrize(("hits", "items"), [(0, 0), (0, 5), (1, 1), (3, 10), (9, 10), (10, 10), (40, 41)])
@pytest.mark.parametrize("tail", [F(1, 40), F(1, 1000)])
def test_an_end_is_missed_with_the_chance_that_it_may_be(hits, items, tail):
    """Three billionths farther in it would be missed more often."""
    (found,) = lower_end(np.array([hits]), np.array([items]), float(tail)).tolist()
    if not hits:
        assert found == 0
        return
    assert at_least(hits, items, F(found, UNIT)) <= tail < at_least(hits, items, F(found + 3, UNIT))


def capital(hits, misses, rate):
    """B(S + 1/2, n - S + 1/2) / B(1/2, 1/2) / (p^S (1 - p)^(n - S)): products of (k - 1/2), over n!."""
    bets = F(1)
    for count in (hits, misses):
        for k in range(count):
            bets *= F(2 * k + 1, 2)
    for k in range(hits + misses):
        bets /= k + 1
    return bets / (rate**hits * (1 - rate) ** misses)


@pytest.mark.parametrize(
    ("hits", "items"), [(1, 1), (3, 10), (10, 10), (9, 12), (0, 7), (90, 100), (150, 160), (199, 200)]
)
@pytest.mark.parametrize("alpha", [F(1, 10), F(1, 20), F(1, 1000)])
def test_an_end_at_every_look_is_where_the_capital_is_what_alpha_asks(hits, items, alpha):
    low, rest = anytime_ends(np.array([hits]), np.array([items]), float(alpha))
    for own, found in ((hits, low.item()), (items - hits, rest.item())):
        if not own:
            assert found == 0
            continue
        misses = items - own
        assert capital(own, misses, F(found, UNIT)) >= 1 / alpha > capital(own, misses, F(found + 3, UNIT))
    twice = anytime_ends(np.array([hits]), np.array([items]), float(alpha), 2.0)
    assert np.array_equal(twice, anytime_ends(np.array([2 * hits]), np.array([2 * items]), float(alpha)))
    with np.errstate(all="raise"):
        assert [end.tolist() for end in anytime_ends(np.array([0]), np.array([0]), 0.05)] == [[0], [0]]


@pytest.mark.parametrize(
    ("hits", "sizes", "icc", "times", "expected"),
    [
        ([3, 1], [6, 4], F(0), 1, (4, 6)), ([3, 1], [6, 4], F(0), F(5, 2), (10, 15)),
        ([0, 0], [0, 0], F(1), 1, (0, 0)),
        # 10^2 / (6 (1 + 5/2) + 4 (1 + 3/2)) = 100/31; of correlation 1 it is 100/52; empty drives count for nothing.
        ([3, 1], [6, 4], F(1, 2), 1, (F(40, 31), F(60, 31))),
        ([3, 0, 1], [6, 0, 4], F(1), 2, (F(80, 52), F(120, 52))),
    ],
)  # fmt: skip
def test_effective_items(hits, sizes, icc, times, expected):
    assert effective_items(hits, sizes, icc, times) == expected
    if times == 1:
        assert effective_items(hits, sizes, icc) == expected


def test_what_is_held_in_events():
    order = [Event(0, 0, (0, 1)), Event(0, 1, (1,)), Event(1, 0, (1,))]
    hits, total = held_in_events(TABLE, order)
    assert hits.tolist() == [[6, 9, 0], [6, 1, 3]]
    assert total.tolist() == [[6, 12, 0], [6, 1, 6]]


def intervals_of(events=ALL, **more):
    drives = DriveItems(("one", "two"), "item", TABLE)
    measured = measured_of(TABLE.sum(axis=0))
    return RateIntervals(measured, frozenset(events), **({"alpha": F(3, 20), "drives": drives} | more))


def test_ends_of_all_events():
    """Of three chances each end may be missed with 1/40; a shift moves both outwards, but not beyond 0 and 1."""
    plain = intervals_of(drives=None)
    assert plain.tail == F(1, 40)
    hits, items = [5, 10, 3], [12, 13, 6]
    lower, upper = (lower_end(np.array(seen), np.array(items), 1 / 40) for seen in (hits, np.array(items) - hits))
    assert plain.ends == {
        event: (low, UNIT - rest)
        for event, low, rest in zip(sorted(ALL), lower.tolist(), upper.tolist(), strict=True)
    }
    shift = 2 * UNIT // 5
    for event, (low, high) in intervals_of(drives=None, shift=shift).ends.items():
        least, most = plain.ends[event]
        assert (low, high) == (max(least - shift, 0), min(most + shift, UNIT))
    assert {low == 0 for low, _ in intervals_of(drives=None, shift=shift).ends.values()} == {True, False}
    assert intervals_of(events=(), drives=None).ends == {}
    assert intervals_of(events=(), drives=None).tail == F(3, 40)


def test_ends_of_tiers():
    """Of the first event 1 of 6 and 4 of 6 items in drives of 6 each, of the second 9 of 12 and 1 of 1."""
    correlated = intervals_of(tier="icc_at_most", icc=F(1, 5))
    effective = F(12**2) / (6 * 2 + 6 * 2)  # 6 of 12: 2.5 in the event, 3.5 beside it
    assert effective == 6
    low, high = correlated.ends[Event(0, 0, (1,))]
    assert low == lower_end(np.array(2), np.array(2 + 4), 1 / 40)
    assert high == UNIT - lower_end(np.array(3), np.array(3 + 3), 1 / 40)
    twice = intervals_of(tier="icc_at_most", icc=F(1, 5), times=2.0).ends[Event(0, 0, (1,))]
    assert twice == (
        lower_end(np.array(5), np.array(12), 1 / 40),
        UNIT - lower_end(np.array(7), np.array(12), 1 / 40),
    )
    # At every look alpha / 3 is one of both ends; of what all drives hold together.
    anytime = intervals_of(tier="anytime", drives=None)
    low, rest = anytime_ends(np.array([5]), np.array([12]), 1 / 20)
    assert anytime.ends[Event(0, 0, (1,))] == (low.item(), UNIT - rest.item())
    twice = intervals_of(tier="anytime", drives=None, times=2.0).ends[Event(0, 0, (1,))]
    assert twice[0] == anytime_ends(np.array([10]), np.array([24]), 1 / 20)[0].item()


@pytest.mark.parametrize("times", [None, 1.0])
def test_ends_by_drives(times):
    """One drive that holds all that it may, without a miss: 11 stakes of 1/24 each and one of 13/24, so K (m) is the
    sum of p (1 + s (1/m - 1)) = 1 + (1/m - 1) sum p s."""
    table = np.zeros((1, 1, 2, 2), dtype=np.int64)
    table[0, 0, 1, 1] = 7
    found = RateIntervals(
        measured_of(table.sum(axis=0)), frozenset({Event(0, 1, (1,))}), F(1, 10), "independent_drives",
        DriveItems(("one",), "item", table), np.array([[0, 7]]), times=times,
    )  # fmt: skip
    stakes = [round(np.sin(j * np.pi / 24) ** 2 * 10**6) for j in range(1, 13)]
    mean = sum(F(share * stake, 24 * 10**6) for share, stake in zip([1] * 11 + [13], stakes, strict=True))
    exact = 1 / (1 + (20 - 1) / mean)
    low, high = found.ends[Event(0, 1, (1,))]
    assert high == UNIT
    assert low == pytest.approx(float(exact * UNIT), abs=1.5)
    assert F(low, UNIT) <= exact


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"alpha": F(0)}, "alpha lies strictly"), ({"alpha": F(1)}, "alpha lies strictly"),
        ({"shift": -1}, "a shift is not negative"),
        ({"tier": "approximate"}, "no intervals of tier"), ({"tier": "icc_at_most"}, "no intervals of tier"),
        ({"tier": "independent_drives"}, "no intervals of tier independent_drives"),
        ({"tier": "icc_at_most", "icc": F(0), "drives": None}, "the drives are not known"),
        ({"tier": "independent_drives", "largest": np.zeros((2, 2), dtype=np.int64), "drives": None}, "not known"),
    ],
)  # fmt: skip
def test_intervals_that_cannot_be(given, message):
    with pytest.raises(ValueError, match=message):
        intervals_of(**given)


def test_rates_that_differ_by_what_is_counted(monkeypatch):
    """Drives of 9 of 10 and 0 of 2, and of 1 of 2 in both: 9/12 by item and 9/20 by drive in the first bin."""
    sequences = sequences_of(recall_counts((9, 10, 1, 2), (0, 2, 1, 2), bins=2))
    events = {Event(0, 1, (1,)), Event(1, 1, (1,))}
    (found,) = rate_differences(sequences, 2, 2, events)
    assert (found.event, found.rates) == (
        Event(0, 1, (1,)),
        {"item": pytest.approx(0.75), "drive": pytest.approx(0.45)},
    )
    assert found.spread == pytest.approx(0.3)
    for worth, told in ((np.nextafter(found.spread, 0), 1), (found.spread, 0)):
        monkeypatch.setattr(rate_intervals, "WORTH_SAYING", worth)
        assert len(rate_differences(sequences, 2, 2, events)) == told
    monkeypatch.undo()
    sequences = sequences_of(recall_counts((9, 10, 4, 10), (0, 2, 2, 2), bins=2))
    assert [one.event.bin for one in rate_differences(sequences, 2, 2, events)] == [0, 1]
    sequences = sequences_of(recall_counts((4, 10, 9, 10), (2, 2, 0, 2), bins=2))
    assert [one.event.bin for one in rate_differences(sequences, 2, 2, events)] == [1, 0]


def test_what_is_told_of_them():
    matrices = ConfusionMatrices(
        "class",
        (frozenset(), frozenset({"a"}), frozenset({"b"})),
        np.array([0.0, 10.0, 20.0]),
        np.zeros((2, 3, 3), dtype=np.int64),
    )
    one = RateDifference(Event(1, 1, (1, 2)), {"item": 0.75, "drive": 0.45})
    told = "a reported as a or b in [10, 20) m: 0.750 by item, 0.450 by drive"
    assert difference_remark([], matrices) is None
    assert difference_remark([one], matrices) == f"rates differ with what is counted (--weights): {told}"
    assert difference_remark([one] * 3, matrices).endswith("; ".join([told] * 3))
    assert difference_remark([one] * 5, matrices).endswith("; ".join([told] * 3) + "; and 2 more")
