"""Bounds that hold at every look: against exact fractions, by simulation, and what they do not cover."""

from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shorthands import ends_in_billionths

from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.intervals.rate_intervals import anytime_ends


def capital(hits, items, rate):
    """B(S + 1/2, m + 1/2) / B(1/2, 1/2) / (p^S (1 - p)^m) with m = n - S, as a fraction."""
    misses = items - hits
    halves = Fraction(
        factorial(2 * hits) * factorial(2 * misses), 4**items * factorial(hits) * factorial(misses) * factorial(items)
    )
    return halves / (rate**hits * (1 - rate) ** misses)


@given(st.integers(0, 60), st.integers(0, 60), st.sampled_from([Fraction(1, 20), Fraction(1, 200)]))
def test_ends_are_those_of_the_fractions(hits, misses, alpha):
    """Within three billionths: the capital reaches 1 / alpha just outside, and not just inside."""
    items = hits + misses
    low, rest = (int(end[0]) for end in anytime_ends(np.array([hits]), np.array([items]), float(alpha)))
    for end, mine in ((low, hits), (rest, misses)):
        if mine == 0:
            assert end == 0
            continue
        assert end == 0 or capital(mine, items, Fraction(end, UNIT)) >= 1 / alpha
        assert capital(mine, items, Fraction(end + 3, UNIT)) < 1 / alpha


def test_without_items_all_rates_are_possible():
    low, rest = anytime_ends(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), 0.05)
    assert (low[0], rest[0]) == (0, 0)


def missed_at_some_look(draw, sets, alpha, rate):
    """Share of data sets, drawn as hits and items at each look, in which the anytime and the fixed interval miss."""
    missed = np.zeros((2, sets), dtype=bool)
    for number in range(sets):
        seen, items = draw()
        for kind, (low, rest) in enumerate((anytime_ends(seen, items, alpha), ends_of_fixed(seen, items, alpha))):
            missed[kind, number] = np.any((low > rate * UNIT) | (UNIT - rest < rate * UNIT))
    return missed.mean(axis=1)


def ends_of_fixed(seen, items, alpha):
    low, high = ends_in_billionths(seen, items, alpha / 2)
    return low, UNIT - high


def test_at_every_look_the_level_is_kept():
    """60 looks at up to 20,000 items: the interval for a fixed number is wrong at some look in a third of data."""
    rng, looks = np.random.default_rng(2), np.unique(np.geomspace(20, 20_000, 60).astype(np.int64))
    anytime, fixed = missed_at_some_look(
        lambda: (np.cumsum(rng.random(looks[-1]) < 0.9)[looks - 1], looks), 200, 0.05, 0.9
    )
    assert anytime <= 0.05
    assert 0.25 < fixed < 0.55


def test_outcomes_may_decide_how_much_is_counted():
    """Tracks that end at their first right report, as in a closed loop, and a look after each."""
    rng = np.random.default_rng(4)
    tracks = np.arange(1, 401)
    anytime, fixed = missed_at_some_look(lambda: (tracks, np.cumsum(rng.geometric(0.3, 400))), 200, 0.05, 0.3)
    assert anytime <= 0.05
    assert fixed > 0.15


def test_stopping_at_the_best_look_keeps_the_level():
    """Who stops counting when the share looks best is not fooled: the anytime interval at that look covers."""
    rng, missed, sets = np.random.default_rng(7), [0, 0], 300
    for _ in range(sets):
        seen = np.cumsum(rng.random(2000) < 0.8)[19:]
        items = np.arange(20, 2001)
        best = int(np.argmax((seen / items - 0.8) * np.sqrt(items)))
        own = seen[best : best + 1], items[best : best + 1]
        for kind, ends in enumerate((anytime_ends(*own, 0.05), ends_of_fixed(*own, 0.05))):
            missed[kind] += int(ends[0][0] > 0.8 * UNIT)
    assert missed[0] <= 0.05 * sets
    assert missed[1] > 0.15 * sets


def test_objects_that_differ_are_not_covered():
    """What the condition says: one rate for all objects. With track rates from Beta(1/2, 2) it misses the mean."""
    rng, missed, sets = np.random.default_rng(5), 0, 200
    for _ in range(sets):
        rate, length = rng.beta(0.5, 2, 90), rng.geometric(1 / 40, 90)
        mean, hits = 0.2, rng.binomial(length, rate).sum()
        low, rest = anytime_ends(np.array([hits]), np.array([length.sum()]), 0.05)
        missed += int(low[0] > mean * UNIT or UNIT - rest[0] < mean * UNIT)
    assert missed / sets > 0.2


@pytest.mark.parametrize(("hits", "items"), [(5, 10), (90, 100), (500, 1000), (1, 5000)])
def test_it_costs_width(hits, items):
    low, rest = (int(end[0]) for end in anytime_ends(np.array([hits]), np.array([items]), 0.05))
    fixed = [int(end[0]) for end in ends_of_fixed(np.array([hits]), np.array([items]), 0.05)]
    ratio = (UNIT - low - rest) / (UNIT - sum(fixed))
    assert 1.1 < ratio < 2
