"""Optimal gains of some steps and quantiles of times, against every strategy that knows state and time."""

import itertools
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest
from deciding_objectives import Deciding
from small_objectives import random_rates

from verifier.analysis.robust.optimal_steps import OptimalQuantile, OptimalSteps, _Left
from verifier.chains.chain import DecisionProcess
from verifier.checking.stepping import NEVER
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


@pytest.mark.parametrize("greatest", [False, True])
def test_gains_of_some_steps_are_those_of_the_best_strategy(greatest):
    several = 0
    for seed in range(6):
        rng, world, rates = world_of(seed)
        gains, matrix = rng.integers(0, 4, world.states), matrix_of(world, rates)
        gains[-2:] = 0
        found = []
        for strategy in strategies(world):
            now = np.eye(world.states)[world.starts]
            total = np.zeros(len(world.starts))
            for chosen in strategy:
                total += now @ gains
                now = now @ matrix[list(chosen)]
            found.append(total)
        expected = (np.max if greatest else np.min)(found, axis=0)
        plain = world.optimum("F p", greatest)
        at, sure = np.flatnonzero(gains), len(world.channel.bins) * len(world.channel.observations)
        exact = np.array([Fraction(int(each)) for each in gains[at]], dtype=object)
        told = Gains(plain.skeleton, at, np.full(len(at), sure), gains[at].astype(float), exact)
        starts = world.choices.choice_starts
        asked = OptimalSteps(**parts(plain), choice_starts=starts, gains=told, steps=STEPS)
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
    process = DecisionProcess(
        np.array([0, 2, 3, 4]),
        np.cumsum([0, *map(len, rows)]),
        np.array([target for row in rows for target in row]),
        np.array([float(share) for row in rows for share in row.values()]),
        {},
        np.array([0]),
        tuple(share for row in rows for share in row.values()),
    )
    goal = np.array([False, True, False])
    at_once = _Left(process, goal, greatest=False)
    assert [at_once.stays(steps) for steps in (1, 2, 3)] == [False, True, True]
    assert at_once.after(3).tolist() == [half, 0, 1]
    slowly = _Left(process, goal, greatest=True)
    assert not any(slowly.stays(steps) for steps in (1, 2, 9))
    assert slowly.after(9)[0] == half + half**10
