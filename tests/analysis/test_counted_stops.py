"""Stops where steps are counted: by hand, in fractions, and on graphs that are small enough to look at all."""

import math
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from interval_models import random_model, vertices
from random_steps import random_step

from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.robust import step_counting
from verifier.analysis.robust.inner_bounds import middle_of
from verifier.analysis.robust.region import Region
from verifier.analysis.robust.step import greatest_masses
from verifier.analysis.robust.step_counting import (
    _each_for_itself,
    _Greatest,
    _grown,
    _jumped,
    _over_reach,
    _quotient,
    _Steps,
    counted_side,
    refuse_uncountable,
)

ALONE = SimpleNamespace(product=SimpleNamespace(indices=np.zeros(0, int), indptr=np.zeros(1, int)))
"""Of two states, which have ended."""


def test_margins_are_of_sixteen_roundings():
    assert step_counting._WIDER - 1 == 1 - step_counting._NARROWER == 16 * 2.0**-53


@pytest.mark.parametrize(
    ("number", "other", "quotient"),
    [(3.0, 1.0, 3 + 3 * 2.0**-51), (0.5, 0.5, 1), (0.25, 0.5, 1), (0.0, 0.0, 1), (0.5, 0.0, math.inf)],
)
def test_a_quotient_is_rounded_up_and_not_below_1(number, other, quotient):
    assert _quotient(np.array([number]), np.array([other])).tolist() == [pytest.approx(quotient, rel=2.0**-52, abs=0)]
    assert quotient in (1, math.inf) or _quotient(np.array([number]), np.array([other]))[0] > number / other


def test_the_power_of_a_growth_has_a_margin_and_an_end():
    """1 + 2^-40 times the logarithm, and sixteen roundings; beyond e^700 nothing is known."""
    bound = _grown(ALONE, np.array([0.5, 0.0]), 1.5, 2)
    margin = 2 * math.log(1.5) * 2.0**-40 + 2.0**-49
    assert bound.tolist() == [pytest.approx(0.5 * 1.5**2 * (1 + margin), rel=2.0**-51, abs=0), 0]
    last = math.exp(700 / (1 + 2.0**-40))
    assert math.log(last) * (1 + 2.0**-40) == 700
    for growth, end in ((last, pytest.approx(0.5 * math.exp(700))), (last * 1.5, math.inf)):
        assert _grown(ALONE, np.array([0.5, 0.0]), growth, 1).tolist() == [end, 0]


def graph(rng, states):
    """A random graph of which 0 and 1 are left out, and for each state those that it reaches."""
    ahead = [[], [], *(rng.integers(0, states, rng.integers(1, 3)).tolist() for _ in range(2, states))]
    reach = [{state} for state in range(states)]
    for _ in range(states):
        reach = [{state}.union(*(reach[after] for after in ahead[state])) for state in range(states)]
    product = SimpleNamespace(
        indices=np.array([after for each in ahead for after in each], dtype=np.int64),
        indptr=np.cumsum([0, *map(len, ahead)]),
    )
    return SimpleNamespace(product=product), reach


@pytest.mark.parametrize("seed", range(8))
def test_the_least_and_the_greatest_of_all_that_is_reached(seed):
    rng = np.random.default_rng(seed)
    at, reach = graph(rng, 9)
    numbers = np.where(rng.random(9) < 0.4, np.nan, rng.random(9))
    numbers[:2] = np.nan if seed % 2 else numbers[:2]
    for best, pick in ((min, np.fmin), (max, np.fmax)):
        some = [[numbers[k] for k in each if not math.isnan(numbers[k])] for each in reach]
        expected = [best(each) if each else np.nan for each in some]
        np.testing.assert_array_equal(_over_reach(at, numbers, pick), expected)


@pytest.mark.parametrize(("links", "last"), [(999, 1.0), (1000, 0.0)])
def test_of_a_chain_of_more_than_a_thousand_all_numbers_count(links, last):
    """States 2, 3, .. lead to the one before; state 0 is never reached."""
    indptr = np.array([0, 0, *range(links + 1)])
    chain = SimpleNamespace(product=SimpleNamespace(indices=np.arange(1, links + 1), indptr=indptr))
    assert set(_over_reach(chain, np.arange(links + 2.0), np.fmin)[1:].tolist()) == {last}


def jumped(reach, before, worth, limit, rises, jumps):
    """Rule 3 of the module in fractions: the bound of each state, that if it fades as the fastest that it reaches,
    and by how much these may be rounded; where a share grows, all grow as the worth that grows most."""
    side = min if rises else max
    before, worth = ([side(*pair) for pair in zip(each, limit, strict=True)] for each in (before, worth))
    shares = [
        [
            (worth[k] - limit[k]) / (before[k] - limit[k]) if before[k] != limit[k] else math.inf
            for k in each
            if {before[k], worth[k]} != {limit[k]}
        ]
        for each in reach
    ]
    slowest, fastest = (
        [limit[k] + min(end(shares[k], default=1), 1) ** jumps * (worth[k] - limit[k]) for k in range(len(reach))]
        for end in ((min, max) if rises else (max, min))
    )
    grows = not rises and max(max(each, default=0) for each in shares) > 1
    if grows:
        growth = max(w / b for w, b in zip(worth, before, strict=True))
        slowest = [min(w * growth**jumps, 1) for w in worth]
    return slowest, fastest, Fraction(1, 2**36) if grows else Fraction(jumps, 2**48)


@pytest.mark.parametrize("rises", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_a_jump_is_that_of_the_rule_in_fractions(seed, rises):
    rng = np.random.default_rng([seed, rises])
    at, reach = graph(rng, 7)
    limit = rng.integers(30, 60, 7) / 128
    distance = np.where(rng.random(7) < 0.3, 0, rng.integers(1, 29, 7) / 128) * (-1 if rises else 1)
    distance[0] = 1 / 128 if rises else -1 / 128  # beyond the limit: there nothing is left
    before, jumps = limit + distance, int(rng.integers(1, 30))
    worth = limit + rng.integers(0, 9 if seed % 3 else 12, 7) / 8 * distance
    if seed % 4 == 1:  # at the limit before, and not any more
        worth += np.where(distance == 0, -1 if rises else 1, 0) / 128
    given = [[Fraction(x) for x in each.tolist()] for each in (before, worth, limit)]
    slowest, fastest, rounding = jumped(reach, *given, rises, jumps)
    bounds, lost = _jumped(at, before, worth, limit, rises, jumps)
    for bound, exact in zip(bounds.tolist(), slowest, strict=True):
        assert exact <= Fraction(bound) <= exact * (1 + rounding)
    assert lost == pytest.approx(float(max(abs(a - b) for a, b in zip(slowest, fastest, strict=True))), abs=1e-12)
    assert bounds.max() <= (limit.max() if rises else 1)


@pytest.mark.parametrize(
    ("before", "worth", "bound", "margins"),
    [(0.25, 0.375, 0.4375, 0.0625 * 2 + 0.4375), (0.75, 0.625, 0.5625, 0.0625 * 2 + 0.5625), (0.5, 0.5, 0.5, 0)],
)
def test_a_jump_is_rounded_outwards_in_its_share_its_product_and_its_sum(before, worth, bound, margins):
    limit, rises = np.full(2, 0.5), worth <= 0.5
    bounds, lost = _jumped(ALONE, np.full(2, before), np.full(2, worth), limit, rises, 1)
    assert bounds.tolist() == pytest.approx([bound + margins * 2.0**-49] * 2, rel=2.0**-52, abs=0)
    assert lost < 1e-14


def stepped(monkeypatch, ends, limit, steps, answers, size=5000, grown=1.0, rounding=0.0, **asked):
    """What `_stepped` gives if blocks of steps give these answers; the sizes of the blocks, and of the jumps, each of
    which costs a quarter and changes nothing."""
    numbers, jumps, answers = [], [], iter(answers)

    def after(worth, number):
        numbers.append(number)
        return np.array(next(answers), dtype=float)

    def jump(at, before, worth, limit, rises, count):
        jumps.append(count)
        return worth, 0.25

    monkeypatch.setattr(step_counting, "_jumped", jump)
    one = SimpleNamespace(
        step=SimpleNamespace(following=np.broadcast_to(0, (size,))),
        after=after,
        greatest=lambda worth: worth * np.array(grown),
        fixed=lambda worth: np.minimum(worth, 1.0),
    )
    walk = _Greatest(None)
    bounds = walk._stepped(ALONE, one, np.array(ends), steps, np.array(limit), **asked)
    assert walk.lost == 0.25 * len(jumps)
    return bounds.tolist(), numbers, jumps


WIDER, CLOSE = 1 + 2.0**-49, 2.0**-40
GROWING = [64] * 5 + [80, 100, 125, 156, 195, 244, 305, 381, 476, 595, 744, 930, 1162, 1453]


@pytest.mark.parametrize(
    ("steps", "size", "numbers", "jumps"),
    [
        (0, 5000, [], []),
        (63, 5000, [63], []),
        (65, 5000, [64, 1], []),
        (4000, 5000, [64] * 5 + [80, 100] + [125] * 28, []),  # four thousand are taken, and looked at by 1/32
        (4300, 5000, [64] * 5 + [80, 100] + [125] * 28 + [50], [2]),  # no more than two are left
        (2000, 10**6, [64] * 16 + [64, 16], [8, 6]),  # a thousand at least, and jumps of half of what was before
        (51003, 1, GROWING + [1562] * 28 + [1], []),  # fifty thousand at most
        (52564, 1, GROWING + [1562] * 28, [1]),
        (10**5, 1, GROWING + [1562] * 29 + [576], [16, 14]),
    ],
)
def test_steps_are_taken_in_blocks_and_then_jumped_over(monkeypatch, steps, size, numbers, jumps):
    answers = [[0.2 - 0.1 * (k % 2), 0.1] for k in range(100)]
    for limit in 0.5, 0.05:  # whether they rise or fall
        given = stepped(monkeypatch, [0.1, 0.1], [limit] * 2, steps, answers, size)
        assert given == ([0.1 if not steps else answers[len(numbers) - 1][0], 0.1], numbers, jumps)


AT_LIMIT = 0.5 * WIDER * (1 - CLOSE)
FALLEN = 0.5 * (1 + CLOSE)
LITTLE = 2.0**-22 + 3 * 2.0**-42  # a quarter of 2^-20 and of 192 times the noise of a step
MORE = 0.25 + LITTLE
RAISED = 1 + 1e-6


@pytest.mark.parametrize(
    ("ends", "limit", "steps", "answers", "asked", "expected"),
    [
        # What rises, stops next to the limit, in all states.
        (0.0, 0.5, 200, [[AT_LIMIT] * 2], {}, [AT_LIMIT] * 2),
        (0.0, 0.5, 128, [[AT_LIMIT, np.nextafter(AT_LIMIT, 0)], [0.75, 0.25]], {"still": 0.0}, [0.5 * WIDER, 0.25]),
        # A limit a little below the ends is raised, and no other.
        (0.5 * (RAISED - 2.0**-51), 0.5, 1, [[0.75] * 2], {}, [0.5 * (RAISED * WIDER)] * 2),
        (0.5 * (RAISED - 2.0**-52), 0.5, 1, [[0.75] * 2], {}, [0.75] * 2),
        (1.0, 1.0, 2, [[1.0, 0.5]], {}, [1.0, 0.5]),
        # What falls, stops next to the limit, or where nobody asks, with the growth of what is left.
        (0.75, 0.5, 66, [[FALLEN, 0.25]], {"grown": 1.25, "rounding": 2.0**-36}, [FALLEN * 1.25**2, 0.25 * 1.25**2]),
        (0.75, 0.5, 68, [[FALLEN, 0.25]], {"grown": [1.25, 1.0], "rounding": 2.0**-36}, [1.0, 0.25 * 1.25**4]),
        (0.75, 0.5, 128, [[np.nextafter(FALLEN, 1), 0.5], [0.5, 0.25]], {"still": 0.0}, [0.5, 0.25]),
        (0.75, 0.5, 128, [[0.625, 0.5]], {"enough": 0.625}, [0.625, 0.5]),
        (0.75, 0.5, 128, [[0.626, 0.5], [0.5, 0.25]], {"enough": 0.625}, [0.5, 0.25]),
        (0.75, 0.0, 200, [[2.0**-200, 0.0]], {"still": 0.0}, [2.0**-200, 0.0]),
        (0.75, 0.0, 128, [[2.0**-199, 0.0], [0.25, 0.25]], {"still": 0.0}, [0.25, 0.25]),
        # What hardly changes: as often as that again, in all and of what there is.
        ([0.25, 0.01], 0.5, 256, [[MORE, 0.01]], {}, [0.25 + 5 * LITTLE, 0.01 * (1 + 4 * LITTLE) ** 4]),
        ([0.25, 0.0], 0.125, 256, [[MORE, 0.0]], {}, [0.25 + 5 * LITTLE, 0.0]),
        (0.25, 0.5, 256, [[0.25, 0.25 - LITTLE]], {}, [0.25, 0.25 - LITTLE]),
        (0.25, 0.25 + 2 * LITTLE, 256, [[MORE, 0.25]], {}, [0.25 + 2 * LITTLE] * 2),
        (0.25, 0.5, 128, [[np.nextafter(MORE + LITTLE, 1), 0.25], [0.125] * 2], {}, [0.125] * 2),
        (0.25, 0.5, 192, [[0.25, 0.25]] * 3, {"still": 0.0}, [0.25, 0.25]),
        (0.0, 0.75, 256, [[0.125, 0.0]], {"still": 0.5, "rounding": 2.0**-51}, [0.625 + 1.125 * 2.0**-49, 0.0]),
    ],
)
def test_stops_by_hand(monkeypatch, ends, limit, steps, answers, asked, expected):
    rounding, asked = asked.get("rounding", 1e-14), {"still": 2.0**-20, **asked}
    bounds, numbers, jumps = stepped(monkeypatch, np.full(2, ends), [limit] * 2, steps, answers, **asked)
    assert jumps == []
    assert numbers == [min(64, steps - 64 * k) for k in range(len(answers))]
    assert bounds == [pytest.approx(x, rel=rounding, abs=0) for x in expected]


def step_of(seed):
    """Of a random model with up to six product states, in doubles and in fractions."""
    model = random_model(np.random.default_rng(seed), states=4, labels=2 + seed % 2, ended=1)
    _, step = model.stepped("F q")
    columns = [vertices(*ends) for ends in zip(step.lower.tolist(), step.upper.tolist(), strict=True)]

    def greatest(worth):
        means = []
        for following, (column,) in zip(step.following.tolist(), step.columns.tolist(), strict=True):
            ways = columns[column] if column >= 0 else [(UNIT,)]
            means.append(max(sum(m * worth[t] for m, t in zip(way, following, strict=False)) for way in ways) / UNIT)
        return means

    return step, greatest


@pytest.mark.parametrize("dense", [0, 150])
@pytest.mark.parametrize("cutting", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_steps_in_blocks_are_those_of_the_definition(monkeypatch, seed, cutting, dense):
    monkeypatch.setattr(step_counting, "_LARGEST_DENSE", dense)
    step, greatest = step_of(seed)
    rng, count = np.random.default_rng(seed), step.state_count
    ends = rng.integers(0, 9, count) / 8
    cut = (rng.random(count) < 0.3) & (np.arange(count) > 1) if cutting else None
    one = _Steps(step, ends, cut, 0.625)

    def kept(worth):
        return [
            Fraction(5, 8) if cutting and cut[k] else Fraction(float(ends[k])) if k < 2 else w
            for k, w in enumerate(worth)
        ]

    worth = rng.integers(0, 9, count) / 8
    assert one.fixed(worth * 2).tolist() == [min(w, 1) for w in map(float, kept((worth * 2).tolist()))]
    worth = one.fixed(worth)
    for steps in (1, 1, 1, 2, 3, 5, 8, 21):
        exact = list(map(Fraction, worth.tolist()))
        for _ in range(steps):
            exact = kept(greatest(exact))
        bound = one.after(worth, steps)
        for x, bounded in zip(exact, bound.tolist(), strict=True):
            assert x <= Fraction(bounded) <= x + steps * Fraction(1, 2**42)
        worth = one.fixed(rng.integers(0, 9, count) / 8)
    weights = step.weights(step.greatest(worth[step.following])[1])
    walked = one._walked(worth, weights, 6)
    assert walked[0].tolist() == worth.tolist()
    for now, then in pairwise(walked):
        expected = (weights * now[step.following]).sum(axis=1)
        stay = (np.arange(count) < 2) | (cut if cutting else False)
        assert then == pytest.approx(np.where(stay, now, expected), abs=1e-15)


def blocks(one, worth, steps):
    """The sizes of the blocks that are tried, and the steps that are taken of each."""
    tried, block = [], one._block
    one._block = lambda worth, size: tried.append((size, block(worth, size))) or tried[-1][1]
    one.after(worth, steps)
    return [(size, taken) for size, (_, taken) in tried]


@pytest.mark.parametrize(
    ("largest", "numbers", "sizes"),
    [(5, 2**18, [1, 2, 4, 5, 5, 3]), (1024, 18 * 3 + 17, [1, 2, 3, 3, 3, 3, 3, 2]), (1024, 0, [1, *[2] * 9, 1])],
)
def test_blocks_grow_twofold_to_a_size(monkeypatch, largest, numbers, sizes):
    monkeypatch.setattr(step_counting, "_LARGEST_BLOCK", largest)
    monkeypatch.setattr(step_counting, "_NUMBERS_AT_ONCE", numbers)
    step = SimpleNamespace(
        following=np.repeat(np.arange(9)[:, None], 2, axis=1),
        greatest=lambda values: (None, None),
        weights=lambda masses: np.full((9, 2), 0.5),
        upper_bound=lambda values, at=None: values.max(axis=1),
    )
    worth = np.full(9, 0.5)
    assert blocks(_Steps(step, worth, None, 0.0), worth, 20) == [(size, size) for size in sizes]


def test_a_block_ends_where_other_rates_are_best():
    """State 2 goes to 3, whose worth fades by 9/10 in every step, or to 4, which stays at 3/10: 0.9^12 is less."""
    ends = np.array([0.0, 1.0, 1.0, 1.0, 0.3])
    step = SimpleNamespace(following=np.array([[0, 0], [1, 1], [3, 4], [3, 0], [4, 4]]))
    step.greatest = lambda values: (None, (values[:, 0] < values[:, 1]).astype(int))
    step.weights = lambda second: np.array(
        [[1, 0], [1, 0], [1 - second[2], second[2]], [0.9, 0.1], [1, 0]], dtype=float
    )
    step.upper_bound = lambda values, at=(0, 1, 2, 3, 4): np.where(
        np.asarray(at) == 2, values.max(axis=1), np.where(np.asarray(at) == 3, 0.9 * values[:, 0], values[:, 0])
    )
    one = _Steps(step, ends, None, 0.0)
    assert blocks(one, ends, 40) == [(1, 1), (2, 2), (4, 4), (8, 5), (5, 5), (10, 10), (13, 13)]
    assert one._size == 26


@pytest.mark.parametrize(("off", "taken"), [(-(2.0**-51), 2), (-(2.0**-52), 1)])
def test_other_rates_are_looked_for_from_a_drift_on(off, taken):
    """What the best rates give in each step is more than with those of before, by 2^-43 and two roundings."""
    factor = 1 + 2.0**-43 + off
    step = SimpleNamespace(
        following=np.arange(3)[:, None],
        greatest=lambda values: (None, None),
        weights=lambda masses: np.array([[1.0], [1.0], [0.5]]),
        upper_bound=lambda values, at: np.where(at == 2, 0.5 * factor, 1) * values[:, 0],
    )
    one = _Steps(step, np.array([0.0, 1.0, 0.5]), None, 0.0)
    worth, count = one._block(np.array([0.0, 1.0, 0.5]), 2)
    assert (count, one._size) == (taken, 4 if taken == 2 else 1)
    margin = 2 * 2.0**-43 + 2.0**-49 if taken == 2 else 2.0**-43 + off
    assert worth.tolist() == [0, 1, pytest.approx(0.5 ** (taken + 1) * (1 + margin), rel=2.0**-52, abs=0)]


ENDS, AFTER = [0.0, 0.0, 0.5, 0.25], [0.0, 0.0, 0.25, 0.125]


@pytest.mark.parametrize(
    ("ends", "steps", "cutting", "fails", "begun", "left", "limit"),
    [
        ([0.0, 1.0, 0.5, 0.25], 4, False, 0.0, [0.0, 1.0, 0.5, 0.25], 4, 0.875),  # of meeting it
        ([1.0, 0.0, 0.5, 0.25], 4, False, 0.0, [1.0, 0.0, 0.5, 0.25], 4, 0.625),  # of failing
        ([1.0, 1.0, 0.5, 0.25], 4, False, 0.0, [1.0, 1.0, 0.5, 0.25], 4, 1.0),  # of neither
        (ENDS, 4, True, 0.125, AFTER, 3, 0.25),  # after the first step, as what is cut off is worth the same then
        (ENDS, 4, True, 0.75, [*AFTER[:3], 0.75], 3, 0.75),
        (ENDS, 0, True, 0.125, ENDS, 0, 0.5),
        ([0.0, 1.0, 0.5, 0.25], 4, True, 0.0, [0.0, 1.0, 0.25, 0.0], 3, 1.0),
    ],
)
def test_a_walk_begins_with_its_ends_and_a_limit(monkeypatch, ends, steps, cutting, fails, begun, left, limit):
    given = []
    step = SimpleNamespace(following=np.arange(4)[:, None], upper_bound=lambda values: values[:, 0] / 2)
    monkeypatch.setattr(step_counting, "uncertain_step", lambda at, region: step)
    monkeypatch.setattr(_Greatest, "_limit", lambda self, at, meets: np.full(4, 0.875 if meets else 0.625))
    monkeypatch.setattr(_Greatest, "_stepped", lambda self, *asked: given.append(asked[2:]) or np.full(4, 0.125))
    walk = _Greatest(None)
    cut = np.arange(4) == 3 if cutting else None
    assert walk.after(ALONE, np.array(ends), steps, cut, fails).tolist() == [0.125] * 4
    assert [number if isinstance(number, int) else number.tolist() for number in given[0]] == [
        begun,
        left,
        [limit] * 4,
    ]
    assert (walk.last[0], walk.last[1], walk.last[2].tolist()) == (left, step, [0.125] * 4)
    first = walk.last
    for more, kept in ((left - 1, True), (left, False)):  # the last one of the longest
        walk.after(ALONE, np.array([0.0, 1.0, 0.5, 0.25]), more)
        assert (walk.last is first) is kept
    each = walk.each(ALONE, np.array([0.0, 1.0, 0.5, 0.25]), 3)
    assert [worth.tolist()[2:] for worth in each] == [[0.5 / 2**k, 0.25 / 2**k] for k in range(4)]
    assert walk.rest(ALONE, np.array([0.0, 1.0, 0.5, 0.25]), 3, 0.03125) == 0.125
    assert [x if isinstance(x, float | int) else x.tolist() for x in given[-1]] == [
        [0.0, 1.0, 0.5, 0.25], 3, [0.0] * 4, 0.03125, 0.0
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("side", "negated", "meets", "bounds"),
    [
        ("upper", False, True, [0.375 * WIDER, 1.0]),
        ("lower", False, False, [1 - 0.375 * WIDER, 0.0]),
        ("upper", True, False, [0.375 * WIDER, 1.0]),
        ("lower", True, True, [1 - 0.375 * WIDER, 0.0]),
    ],
)
def test_a_side_is_what_the_window_gives_rounded_outwards(monkeypatch, side, negated, meets, bounds):
    asked = []

    def numbers(walk, meets):
        walk.lost = 1e-6 if meets else 1.1e-6
        asked.append(meets)
        return np.array([0.25, 0.9375]), 0.125

    region, tried = SimpleNamespace(lower=np.zeros((1, 2, 2))), []
    starts = SimpleNamespace(start=range(2))
    objective = SimpleNamespace(window=SimpleNamespace(negated=negated), numbers=numbers, product=starts)
    told = counted_side(objective, region, side, attained=False)
    assert asked == [meets]
    assert told.bounds.tolist() == bounds
    assert told.conservative == (not meets)
    assert np.isnan(told.attained.value).tolist() == [True, True]
    monkeypatch.setattr(_Greatest, "choices", lambda walk: [[7], [7]])
    monkeypatch.setattr(
        step_counting, "_each_for_itself", lambda *given: [(given[:2] == (objective, region)) + given[2]]
    )
    monkeypatch.setattr(step_counting, "best_of", lambda *given: tried.append(given) or "the best")
    assert counted_side(objective, region, side, attained=True).attained == "the best"
    sign = 1.0 if side == "lower" else -1.0
    ((own, within, known, masses, towards),) = tried
    assert (own, within, known, masses.tolist(), towards) == (objective, region, None, [[7], [7], [1 + sign]], sign)


@pytest.mark.parametrize("seed", range(8))
def test_choices_are_the_middle_the_mean_of_what_was_chosen_and_a_vertex(seed):
    step = random_step(np.random.default_rng([seed, 8]))
    groups = step.lower.shape[1]
    ends = (each.reshape(2, 2, groups).swapaxes(1, 2) for each in (step.lower, step.upper))
    region = SimpleNamespace(**dict(zip(("lower", "upper"), ends, strict=True)), group_count=groups)
    worth = np.random.default_rng(seed).random(len(step.owner))
    _, masses = step.greatest(worth[step.following])
    mean = middle_of(region).swapaxes(1, 2).reshape(4, groups)
    assert _Greatest(region).choices().tolist() == [middle_of(region).tolist()]
    vertex = mean.copy()
    for column in range(4):
        made = [
            chosen[row]
            for (draw, _), chosen in masses.items()
            for row in np.flatnonzero(step.columns[:, draw] == column)
        ]
        if made:
            mean[column] = np.mean(made, axis=0)
            vertex[column] = greatest_masses(mean[[column]], step.lower[[column]], step.upper[[column]])[0]
    expected = [middle_of(region), *(each.reshape(2, 2, groups).swapaxes(1, 2) for each in (mean, vertex))]
    np.testing.assert_allclose(_Greatest(region, last=(3, step, worth)).choices(), expected, atol=1e-3)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_each_column_favours_what_is_best_if_it_favours_one_alone(sign):
    """Of columns that matter and are free the first 32, by their mean over two initial states: report {} is good in
    even columns and bad in odd ones. The others stay in the middle."""
    lower, upper = np.full((18, 2, 2), UNIT // 5), np.full((18, 2, 2), UNIT // 5 * 3)
    lower[:, 1], upper[:, 1] = UNIT // 10 * 3, UNIT // 10 * 9
    lower[1, :, 0] = upper[1, :, 0] = UNIT // 2
    upper[2, 0, 0] = UNIT // 5  # one report of the two is held, and so the other
    needed = np.ones((18, 2), dtype=bool)
    needed[0, 1] = False
    region = Region((frozenset(), frozenset("a")), np.arange(2), lower, upper, needed)
    middle, tried = middle_of(region), []

    def probabilities(rates, roughly=False):
        assert roughly
        tried.append(len(rates))
        columns = rates[:, :, 0].reshape(len(rates), -1)
        mean = 1 + (columns * np.tile([1, -1], 18)).sum(axis=1) / 100
        return SimpleNamespace(probability=np.stack([3 * mean, -mean], axis=1))

    found = _each_for_itself(SimpleNamespace(probabilities=probabilities), region, sign)
    assert tried == [64]
    free = [(index, true) for index in range(18) for true in range(2) if (index, true) not in ((0, 1), (1, 0))]
    for index, true in free[:32]:
        good = (true == 0) == (sign < 0) and (index, true) != (2, 0)
        assert found[index, :, true].tolist() == [UNIT // 10 * k for k in ((6, 4) if good else (2, 8))]
    for index, true in [(0, 1), (1, 0), *free[32:]]:
        assert found[index, :, true].tolist() == middle[index, :, true].tolist()
    assert middle[1, :, 0].tolist() == [UNIT // 2] * 2


@pytest.mark.parametrize(
    ("response", "apart", "refuses"), [(None, None, False), (5, None, True), (5, 0.0, False), (None, 0.0, False)]
)
def test_ages_are_asked_for_where_a_response_cannot_be_apart(response, apart, refuses):
    asked = []
    objective = SimpleNamespace(
        window=SimpleNamespace(response=response),
        windows_apart=lambda walk: apart,
        refuse_ages=lambda: asked.append(True),
    )
    refuse_uncountable(objective, None)
    assert bool(asked) is refuses


def test_a_limit_is_that_of_a_side_and_no_more_than_1(monkeypatch):
    asked = []

    def sides(at, region, of):
        asked.append(of)
        return [SimpleNamespace(reached=SimpleNamespace(value=np.array([0.0, 1.5, 0.25])))]

    monkeypatch.setattr(step_counting, "bound_sides", sides)
    walk, at = _Greatest(None), type("At", (), {"product": SimpleNamespace(start=np.array([2, 1]))})()
    for meets in (True, False, True):
        assert walk._limit(at, meets).tolist() == [0.0, 1.0, 0.25]
        assert walk.ever(at, meets).tolist() == [0.25, 1.0]
    assert asked == [("upper",), ("lower",)]
