"""Optimal gains of some steps and quantiles of times, against every strategy that knows state and time."""

import contextlib
import itertools
from dataclasses import fields, replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from deciding_objectives import Deciding
from small_chains import process_of
from small_objectives import random_rates

from verifier.analysis.robust import optimal_steps
from verifier.analysis.robust.optimal_conditional import OptimalConditional
from verifier.analysis.robust.optimal_steps import OptimalGain, OptimalQuantile, OptimalSteps, _Left
from verifier.base.errors import NoAnswerError
from verifier.checking.stepping import NEVER, Steps
from verifier.language.expressions import parse_expression
from verifier.systems.rewards import Gains
from verifier.systems.skeleton import Skeleton

STEPS = 3


def world_of(seed):
    """Four states, of which two have ended, with at most three choices each."""
    rng = np.random.default_rng([seed, 41])
    world = Deciding(rng, states=4)
    return rng, world, random_rates(rng, 2, 3, 0.2)


def strategies(world):
    """For each of the steps a row of each state, the first step first."""
    first = np.searchsorted(world.owner, np.arange(world.states + 1))
    every = itertools.product(*(range(low, high) for low, high in itertools.pairwise(first.tolist())))
    return itertools.product(list(every), repeat=STEPS)


def matrix_of(world, rates):
    """(rows, states) probabilities."""
    result = np.zeros((len(world.owner), world.states))
    for row, ahead in enumerate(world.rows(rates)):
        for target, share in ahead.items():
            result[row, target] = share
    return result


def parts(optimum):
    return {each.name: getattr(optimum, each.name) for each in fields(optimum)}


def gaining(rng, world, greatest):
    """Random gains of some steps, and the gain of each state."""
    gains = rng.integers(0, 4, world.states)
    gains[-2:] = 0
    plain = world.optimum("F p", greatest)
    at, sure = np.flatnonzero(gains), len(world.channel.bins) * len(world.channel.observations)
    exact = np.array([Fraction(int(each)) for each in gains[at]], dtype=object)
    told = Gains(plain.skeleton, at, np.full(len(at), sure), gains[at].astype(float), exact)
    starts = world.choices.choice_starts
    return OptimalSteps(**parts(plain), choice_starts=starts, gains=told, steps=STEPS), gains


@pytest.mark.parametrize("greatest", [False, True])
def test_gains_of_some_steps_are_those_of_the_best_strategy(greatest):
    several = 0
    for seed in range(6):
        rng, world, rates = world_of(seed)
        asked, gains = gaining(rng, world, greatest)
        matrix, found = matrix_of(world, rates), []
        for strategy in strategies(world):
            now = np.eye(world.states)[world.starts]
            total = np.zeros(len(world.starts))
            for chosen in strategy:
                total += now @ gains
                now = now @ matrix[list(chosen)]
            found.append(total)
        expected = (np.max if greatest else np.min)(found, axis=0)
        bracket = asked.gain_bracket(rates, 2.0**-50)
        assert bracket.value == pytest.approx(expected, abs=1e-12)
        assert np.all((bracket.lower <= bracket.value) & (bracket.value <= bracket.upper))
        several += len({tuple(each.round(9)) for each in found}) > 1
    assert several >= 3


@pytest.mark.parametrize("greatest", [False, True])
def test_quantiles_are_those_of_the_best_probability_within_some_steps(greatest, monkeypatch):
    """Of the probabilities within k steps that strategies have, the greatest (least) says when the level is met."""
    finite = 0
    for seed in range(6):
        _, world, rates = world_of(seed)
        goal, matrix = world.labels["p"], matrix_of(world, rates)
        monkeypatch.setattr(Skeleton, "mask_of", lambda self, node, goal=goal: goal)
        within = {k: [] for k in range(STEPS + 1)}
        for strategy in strategies(world):
            now = np.eye(world.states)[world.starts]
            reached = np.zeros(len(world.starts))
            for k in range(STEPS + 1):
                reached += (now * goal).sum(axis=1)
                now = now * ~goal
                within[k].append(reached.copy())
                if k < STEPS:
                    now = now @ matrix[list(strategy[k])]
        best = np.array([(np.max if greatest else np.min)(each, axis=0) for each in within.values()])
        for level in (Fraction(1, 3), Fraction(3, 5), Fraction(9, 10), Fraction(1)):
            starts = world.choices.choice_starts
            about = {"condition": parse_expression("p"), "level": level, "step_s": Fraction(1)}
            asked = OptimalQuantile(**parts(world.optimum("F p", greatest)), choice_starts=starts, **about)
            found = asked.quantiles(rates, 2.0**-50, lambda: pytest.fail("no level is met exactly"))
            drawn = asked.probabilities(np.stack([rates, rates])).probability
            assert np.array_equal(drawn[0], np.where(found == NEVER, np.inf, found))
            for at, k in enumerate(found.tolist()):
                met = np.flatnonzero(best[:, at] >= float(level) - 1e-12)
                assert k == met[0] if len(met) else k == NEVER or k > STEPS
                finite += bool(len(met))
    assert finite >= 6


def test_a_sure_goal_two_steps_away_is_reached_in_two(monkeypatch):
    world = Deciding(np.random.default_rng(0), states=4, choices=1)
    world.following[:2] = [[1], [2]]
    world.true_in["p"] = [2]
    monkeypatch.setattr(Skeleton, "mask_of", lambda self, node: world.labels["p"])
    about = {"condition": parse_expression("p"), "level": Fraction(1), "step_s": Fraction(1)}
    asked = OptimalQuantile(**parts(world.optimum("F p", False)), choice_starts=world.choices.choice_starts, **about)
    rates = random_rates(np.random.default_rng(0), 2, 3)
    assert asked.quantiles(rates, 2.0**-50, lambda: pytest.fail("no level is met exactly")).tolist() == [2, 1]


def test_what_is_left_stays_where_nothing_returns_to_what_is_not_decided():
    """Half of what has not reached the goal, 1, or been lost, 2, may move in a step, or all of it."""
    quarter, half, one = Fraction(1, 4), Fraction(1, 2), Fraction(1)
    rows = [{0: half, 1: quarter, 2: quarter}, {1: half, 2: half}, {1: one}, {2: one}]
    process = process_of([rows[:2], rows[2:3], rows[3:]], exact=True)
    goal = np.array([False, True, False])
    at_once = _Left(process, goal, greatest=False)
    assert [at_once.stays(steps) for steps in (1, 2, 3)] == [False, True, True]
    assert at_once.after(3).tolist() == [half, 0, 1]
    assert _Left(process, goal, greatest=False).stays(2)
    slowly = _Left(process, goal, greatest=True)
    assert not any(slowly.stays(steps) for steps in (1, 2, 9))
    assert slowly.after(9)[0] == half + half**10
    assert _Left(process, goal, greatest=False).after(0).tolist() == [1, 0, 1]


def test_fractions_may_have_so_many_digits_and_no_more(monkeypatch):
    process = process_of_rows([{0: HALF, 1: HALF}, {1: Fraction(1)}])
    for most, far_enough in ((3, True), (2, False)):  # of 1/2 and 0, whose denominators have two bits and one
        monkeypatch.setattr(optimal_steps, "_MOST_DIGITS", most)
        with contextlib.nullcontext() if far_enough else pytest.raises(NoAnswerError, match="too close to its level"):
            assert _Left(process, np.array([False, True]), greatest=True).after(1).tolist() == [HALF, 0]


@pytest.mark.parametrize(("value_error", "gain_error"), [(1 / 16, 1 / 64), (2.0, 1 / 64), (1 / 16, 1.0)])
def test_bounds_of_gains_of_some_steps_lie_beyond_all_that_may_be_off(value_error, gain_error, monkeypatch):
    """By hand: rounding of 1/32 in a step, that of the probabilities, of comparing, and of the gains."""
    rng, world, rates = world_of(0)
    asked, _ = gaining(rng, world, True)
    monkeypatch.setattr(Steps, "error_after", lambda self, steps, error: (steps / 32, error))
    monkeypatch.setattr(Gains, "relative_error", gain_error)
    found = asked.gain_bracket(rates, value_error)
    compared, of_gains = Fraction(1, 2**40), Fraction(gain_error)
    off = Fraction(STEPS, 32) + Fraction(value_error) + compared + of_gains * (1 + compared)
    for value, lower, upper in zip(found.value.tolist(), found.lower.tolist(), found.upper.tolist(), strict=True):
        assert value > 0.1
        assert lower == pytest.approx(max(value * float(1 - off), 0), rel=1e-14, abs=0)
        assert upper == pytest.approx(value * float(1 + off), rel=1e-14, abs=0)


@pytest.mark.parametrize("kind", [OptimalSteps, OptimalGain])
def test_gains_need_the_columns_of_their_reports_beside_those_of_transitions(kind):
    rng, world, rates = world_of(0)
    steps, _ = gaining(rng, world, True)
    channel = world.channel
    needed = {tuple(each) for each in world.optimum("F p", True).columns_needed.tolist()}
    pairs = [(row, (int(channel.bins[row, 0]), int(channel.columns[row, 0]))) for row in range(len(channel.bins))]
    (row, pair), *_ = [each for each in pairs if each[1] not in needed]
    place = np.full(1, row * len(channel.observations))
    told = Gains(steps.skeleton, np.zeros(1, np.int64), place, np.ones(1), np.array([Fraction(1)]))
    given = {name: each for name, each in parts(steps).items() if name in {field.name for field in fields(kind)}}
    asked = kind(**{**given, "gains": told})
    assert {tuple(each) for each in asked.columns_needed.tolist()} == needed | {pair}
    assert asked.columns_needed.shape == (len(needed) + 1, 2)
    assert not asked.is_undecided(rates)


def test_the_effort_of_gains_is_a_step_at_least():
    rng, world, _ = world_of(0)
    asked, _ = gaining(rng, world, True)
    assert [replace(asked, steps=steps).effort for steps in (0, 1, 7)] == [1, 1, 7]
    assert not any(kind.plain for kind in (OptimalSteps, OptimalQuantile, OptimalGain, OptimalConditional))


HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


def process_of_rows(rows):
    """The chain of these rows, {successor: probability}."""
    return process_of([[row] for row in rows], exact=True)


def quantile_by_hand(monkeypatch, level, *following, goal=(2,), step_s=Fraction(1), greatest=True):
    """The quantile from states 0 and 1, which go to these states with probabilities 1/2, 1/4 and 1/4; states 2 and 3
    have ended. And the rates."""
    world = Deciding(np.random.default_rng(0), states=4, choices=1)
    world.following[:2] = following
    world.true_in["p"] = list(goal)
    monkeypatch.setattr(Skeleton, "mask_of", lambda self, node: world.labels["p"])
    about = {"condition": parse_expression("p"), "level": level, "step_s": step_s}
    starts = world.choices.choice_starts
    asked = OptimalQuantile(**parts(world.optimum("F p", greatest)), choice_starts=starts, **about)
    return asked, np.broadcast_to(np.array([0.5, 0.25, 0.25])[:, None], (2, 3, 3))


HALVED, ALL = [0, 2, 2], [2, 2, 2]


@pytest.mark.parametrize("way", [1, -1])
def test_what_is_as_near_to_the_level_as_all_errors_together_is_decided_in_fractions(way, monkeypatch):
    """Half is left after a step, give or take 2^-42 of it by rounding, 2^-41 by the probabilities, and 2^-40."""
    monkeypatch.setattr(Steps, "error_after", lambda self, steps, error: (steps * 2.0**-42, error))
    near, more = HALF + way * Fraction(7, 2**43), way * Fraction(1, 2**52)
    for rest, is_near in ((near, True), (near + more, False)):
        asked, rates = quantile_by_hand(monkeypatch, 1 - rest, HALVED, ALL)
        calls = []

        def exact(calls=calls, rest=rest):
            # On the other side of the level than doubles say.
            left = rest - way * Fraction(1, 2**60) * -1
            calls.append(left)
            return process_of_rows([{0: left, 2: 1 - left}, {2: Fraction(1)}, {2: Fraction(1)}, {3: Fraction(1)}])

        found = asked.quantiles(rates, 2.0**-41, exact)
        assert len(calls) == is_near
        by_doubles = 1 if way > 0 else 2
        assert found.tolist() == [3 - by_doubles if is_near else by_doubles, 1]


def test_where_exactly_as_much_is_left_as_may_be_the_level_is_met(monkeypatch):
    asked, rates = quantile_by_hand(monkeypatch, Fraction(3, 4), HALVED, ALL)
    rows = [{0: HALF, 2: HALF}, {2: Fraction(1)}, {2: Fraction(1)}, {3: Fraction(1)}]
    assert asked.quantiles(rates, 2.0**-50, lambda: process_of_rows(rows)).tolist() == [2, 1]


@pytest.mark.parametrize(("level", "steps"), [(HALF, 1), (Fraction(9, 16), 2), (Fraction(15, 16), 4)])
def test_where_as_much_is_left_as_may_be_the_quantile_of_a_draw_is_met(level, steps, monkeypatch):
    asked, rates = quantile_by_hand(monkeypatch, level, HALVED, ALL, step_s=QUARTER)
    assert asked.probabilities(rates[None]).probability.tolist() == [[steps / 4, 1 / 4]]


def test_what_holds_at_first_takes_no_step_however_long_the_rest_takes(monkeypatch):
    asked, rates = quantile_by_hand(monkeypatch, Fraction(7, 8), HALVED, ALL, goal=(1, 2))
    assert asked.probabilities(rates[None]).probability.tolist() == [[3, 0]]


@pytest.mark.parametrize("most", [4, 3])
def test_a_quantile_lies_behind_so_many_steps_at_most(most, monkeypatch):
    asked, rates = quantile_by_hand(monkeypatch, Fraction(15, 16), HALVED, ALL)
    monkeypatch.setattr(optimal_steps, "MOST_STEPS", most)
    with contextlib.nullcontext() if most == 4 else pytest.raises(NoAnswerError, match="lies behind 3 steps"):
        assert asked.probabilities(rates[None]).probability.tolist() == [[4, 1]]


def test_nothing_is_stepped_for_what_is_never_reached_often_enough(monkeypatch):
    """State 0 is left for the goal or for good, so the goal is reached with probability 1/2; state 1 is one."""
    monkeypatch.setattr(optimal_steps, "MOST_STEPS", 3)
    asked, rates = quantile_by_hand(monkeypatch, Fraction(9, 10), [0, 2, 3], ALL, goal=(1, 2))
    found = asked.quantiles(rates, 2.0**-50, lambda: pytest.fail("nothing is near"))
    assert found.tolist() == [NEVER, 0]


def test_a_level_that_is_approached_for_ever_is_not_decided(monkeypatch):
    """Of state 0, 1/2 + 2^-k / 2 is left after k steps."""
    asked, rates = quantile_by_hand(monkeypatch, HALF, [0, 2, 3], ALL)
    rows = [{0: HALF, 2: QUARTER, 3: QUARTER}, {2: Fraction(1)}, {2: Fraction(1)}, {3: Fraction(1)}]
    with pytest.raises(NoAnswerError, match="too close to the level"):
        asked.quantiles(rates, 2.0**-50, lambda: process_of_rows(rows))


def test_a_level_that_is_just_not_met_for_ever_is_never_met(monkeypatch):
    """Half of state 0 is left after one step and for good, and the level asks for 2^-45 less."""
    asked, rates = quantile_by_hand(monkeypatch, HALF + Fraction(1, 2**45), [2, 3, 3], ALL)
    rows = [{2: HALF, 3: HALF}, {2: Fraction(1)}, {2: Fraction(1)}, {3: Fraction(1)}]
    assert asked.quantiles(rates, 2.0**-42, lambda: process_of_rows(rows)).tolist() == [NEVER, 1]


@pytest.mark.parametrize("rare", [2.0**-2, 1e-13])
@pytest.mark.parametrize("retries_first", [True, False])
def test_the_least_gain_is_of_what_surely_reaches_the_goal_however_often_it_is_tried(retries_first, rare):
    """State 0 may go to the goal or be lost, or try again until it is there; state 1 always goes to state 0."""
    world = Deciding(np.random.default_rng(0), states=4, choices=1)
    retry, risk = [0, 2, 2], [2, 3, 3]
    world.following = np.array([*([retry, risk] if retries_first else [risk, retry]), [0] * 3, [2] * 3, [3] * 3])
    world.owner, world.row = np.array([0, 0, 1, 2, 3]), np.zeros(5, dtype=np.int64)
    world.over, world.true_in["p"] = world.owner > 1, [2]
    plain, gains = world.optimum("F p", False), np.array([1, 3])
    sure = np.full(2, len(world.channel.bins) * len(world.channel.observations))
    exact = np.array([Fraction(each) for each in gains.tolist()], dtype=object)
    told = Gains(plain.skeleton, np.arange(2), sure, gains.astype(float), exact)
    rates = np.broadcast_to(np.array([1 - 2 * rare, rare, rare])[:, None], (2, 3, 3))
    found = OptimalGain(**parts(plain), gains=told).gain_bracket(rates, 2.0**-53)
    tries = 1 / (2 * rare)
    assert found.value == pytest.approx([tries, tries + 3], rel=1e-14, abs=0)
    assert np.all((found.lower <= [tries, tries + 3]) & (found.upper >= [tries, tries + 3]))
    assert np.all(found.upper - found.lower <= (2.0**-49 / rare + 2.0**-37) * found.value)


def gain_of(ways, gains, greatest):
    """What is gained in states 0 and 1 until state 2 is reached, with ways (state, where nothing, a and b lead to);
    state 3 has ended. And a function from its states to product states."""
    world = Deciding(np.random.default_rng(0), states=4, choices=1)
    rows = [*ways, (2, [2] * 3), (3, [3] * 3)]
    world.owner, world.following = np.array([own for own, _ in rows]), np.array([led for _, led in rows])
    world.over, world.row, world.true_in["p"] = world.owner > 1, np.zeros(len(rows), dtype=np.int64), [2]
    plain = world.optimum("F p", greatest)
    sure = np.full(2, len(world.channel.bins) * len(world.channel.observations))
    told = Gains(plain.skeleton, np.arange(2), sure, np.array(gains, dtype=float), np.array([*map(Fraction, gains)]))
    return OptimalGain(**parts(plain), gains=told), plain.product.state.tolist().index


def column_of(*rates):
    return np.broadcast_to(np.array(rates)[:, None], (2, 3, 3))


EVEN, NO_B = column_of(0.5, 0.25, 0.25), column_of(0.5, 0.5, 0.0)
RETRY, RISK, LOST, DONE = [0, 2, 2], [2, 3, 3], [0, 2, 3], [2, 2, 2]


@pytest.mark.parametrize(
    ("ways", "rates", "least", "greatest"),
    [
        # 2 in each of 1 or 2 expected steps; to be lost is to gain for ever, and no way to the goal.
        ([(0, RETRY), (0, DONE), (1, [0] * 3)], EVEN, [2, 3], [4, 5]),
        ([(0, DONE), (0, RETRY), (1, [0] * 3)], EVEN, [2, 3], [4, 5]),
        ([(0, RETRY), (0, RISK), (1, [0] * 3)], EVEN, [4, 5], [np.inf, np.inf]),
        ([(0, RISK), (1, RETRY), (1, DONE)], EVEN, [np.inf, 1], [np.inf, np.inf]),
        # What is lost with b is not lost where b is never reported.
        ([(0, LOST), (1, [0] * 3)], NO_B, [4, 5], [4, 5]),
        ([(0, LOST), (1, [0] * 3)], EVEN, [np.inf, np.inf], [np.inf, np.inf]),
        # 0 and 1 may lead to each other for ever, and gain; or not, as b is never reported.
        ([(0, [1] * 3), (0, DONE), (1, [0] * 3), (1, DONE)], EVEN, [2, 1], [np.inf, np.inf]),
        ([(0, [2, 2, 0]), (1, [2, 2, 1]), (1, [0] * 3)], NO_B, [2, 1], [2, 3]),
    ],
)
def test_gains_until_the_goal_by_hand(ways, rates, least, greatest):
    for end, expected in ((False, least), (True, greatest)):
        asked, _ = gain_of(ways, [2, 1], end)
        found = asked.gain_bracket(rates, 2.0**-53)
        assert found.value == pytest.approx(expected, rel=1e-13, abs=0)
        assert np.all((found.lower <= np.array(expected)) & (found.upper >= np.array(expected)))
        finite = np.isfinite(expected)
        assert found.upper[finite] - found.lower[finite] == pytest.approx(0, abs=1e-10)
        assert np.isinf(found.lower[~finite]).all()
        assert asked.probabilities(np.stack([rates, rates])).probability == pytest.approx(np.array([expected] * 2))


@pytest.mark.parametrize("greatest", [False, True])
@pytest.mark.parametrize(("share", "apart"), [(0.25, 0.0), (0.25, 1 / 32), (7.0, 1 / 32)])
def test_bounds_of_a_gain_have_all_that_may_be_off(greatest, share, apart, monkeypatch):
    """Of values of 3/4 and 0, off by 1/8 and 1/16, and 5 steps at most; gains are off by 1/64 of themselves, and what
    rounding adds to all by 2^-40."""
    asked, _ = gain_of([(0, RETRY), (1, RETRY)], [2, 1], greatest)
    monkeypatch.setattr(Gains, "relative_error", 1 / 64)
    size, (two, none) = asked.state_count, asked.product.start
    value, error, representation, steps = (np.full(size, np.nan) for _ in range(4))
    value[[two, none]], error[[two, none]], representation[[two, none]], steps[[two, none]] = (
        [3 / 4, 0],
        1 / 8,
        1 / 16,
        5,
    )
    solution = SimpleNamespace(value=[value], error=[error], representation=[representation])
    monkeypatch.setattr(OptimalGain, "_best", lambda *_: [(None, None, None)])
    monkeypatch.setattr(OptimalGain, "_solved", lambda *_: solution)
    monkeypatch.setattr(OptimalGain, "_slack", lambda *_: (share, apart))
    monkeypatch.setattr(OptimalGain, "_longest", lambda *_: steps if apart else pytest.fail("nothing is apart"))
    found = asked.gain_bracket(EVEN, 2.0**-53)
    rough, spread = Fraction(1, 64) + Fraction(1, 2**40), 2 * Fraction(apart) * 5
    off, more, told = Fraction(3, 16), Fraction(share), Fraction(3, 4)
    if greatest:  # where nothing is gained, nothing can be
        expected = [(told - off) * (1 - rough), (told + off + spread) * (1 + more) * (1 + rough), 0, 0]
    else:
        expected = [
            (told - off - spread) * max(1 - more - rough, 0),
            (told + off) * (1 + rough),
            0,
            off * (1 + rough),
        ]
    ends = [found.lower[0], found.upper[0], found.lower[1], found.upper[1]]
    assert ends == pytest.approx([float(end) for end in expected], rel=1e-14, abs=0)
    assert found.value.tolist() == [3 / 4, 0]


ROUNDED = Fraction(1, 16) + 11 * 2 * Fraction(1, 1024)
"""Of what a choice is worth: by probabilities, and by sums."""


@pytest.mark.parametrize(
    ("greatest", "value", "over", "expected"),
    [
        # Of 0 in its first way 9/4 + 1/2 and in its second 9/8 + 1/2, in 1 as much as in 0.
        (True, (Fraction(9, 4), 2), (), ((HALF + Fraction(11, 4) * ROUNDED) * 2, QUARTER + Fraction(9, 4) * ROUNDED)),
        (True, (Fraction(9, 4), 2), (0,), (0, QUARTER + Fraction(9, 4) * ROUNDED)),
        (True, (Fraction(9, 4), 2), (0, 1), (0, 0)),
        (True, (8, 16), (), ((HALF + Fraction(17, 2) * ROUNDED) * 2, 0)),
        (False, (8, 9), (), ((Fraction(7, 2) + Fraction(9, 2) * ROUNDED) * 2, 1 + 8 * ROUNDED)),
        (False, (8, 4), (), ((Fraction(7, 2) + Fraction(9, 2) * ROUNDED) * 2, 0)),
    ],
)
def test_how_much_better_a_choice_may_be(greatest, value, over, expected, monkeypatch):
    """As a share of the 1/2 that a step gains in 0, and where a step gains nothing, in 1; nobody minds where b leads,
    which never is. Ways lead to three states at most, so their sums have eleven roundings."""
    asked, place = gain_of([(0, [0, 0, 3]), (0, LOST), (1, [0] * 3)], [HALF, 0], greatest)
    monkeypatch.setattr(optimal_steps, "ROUNDOFF", 1 / 1024)
    values = asked._values(NO_B[None])
    told = np.full(asked.state_count, np.inf)
    told[[0, 1]] = 0
    for state, number in enumerate(value):
        told[place(state)] = float(number)
    target = np.isin(np.arange(asked.state_count), [place(state) for state in over])
    found = asked._slack(target, values, told, 1 / 16)
    assert found == pytest.approx([float(end) for end in expected], rel=1e-14, abs=0)


@pytest.mark.parametrize(
    ("share", "apart", "known"), [(0.0, 0.0, True), (0.25, 0.0, True), (0.26, 0.0, False), (0.0, 1e-300, False)]
)
def test_the_longest_time_is_told_where_it_is_off_by_a_quarter_at_most(share, apart, known, monkeypatch):
    """Tries with 1/2 take two steps."""
    asked, place = gain_of([(0, DONE), (0, RETRY), (1, [0] * 3)], [7, 5], False)
    monkeypatch.setattr(OptimalGain, "_slack", lambda *_: (share, apart))
    found = asked._longest(EVEN, 2.0**-53)
    assert found[[place(0), place(1)]] == pytest.approx([2, 3] if known else [np.inf] * 2, rel=1e-13, abs=0)
