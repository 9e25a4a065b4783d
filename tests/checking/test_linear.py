"""Bounds of the batch engine's solver, by hand: in units of 2^-53, which is one rounding."""

import numpy as np
import pytest

from verifier.checking import linear
from verifier.checking.linear import _System
from verifier.checking.plan import Block, Plan

UNIT = 2.0**-53


def pair():
    """State 0 leads to state 1 with 1/4 and to each slot with 1/8, state 1 to state 0 and to the goal with 1/4; half
    of the time they stay, without an edge."""
    lists = ([0, 1], [0, 3, 5], [1, 2, 3, 0, 2], range(5), [-1, -1], [0, 1])
    return Plan(*(np.array(each, dtype=np.int64) for each in lists), (Block(0, 0, 1, 2, 0, 5),))


WEIGHTS = np.array([[0.25], [0.125], [0.125], [0.25], [0.25]])


def judged(x, jumps, gains=None):
    """The largest residual, and what bounds the jumps from both states and from any, for values and jumps given."""
    system = _System(pair(), np.arange(5), True, 1)
    values = np.array([[*x, gains is None, 0], [*jumps, 0, 0]], dtype=np.float64).T[:, :, None]
    gained = None if gains is None else np.array(gains)[:, None]
    residual, both, farthest = system._certificate(system._equation(WEIGHTS), values, gained)
    return residual[0], (*both[:, 0].tolist(), farthest[0])


def test_a_residual_is_the_largest_one_with_its_rounding():
    # Twice 3 edges and 6 more roundings of the sum; the largest is at state 0 in the first two, then at state 1.
    assert judged([0.5, 0.75], [2, 2])[0] == 0.125 + 12 * UNIT * 0.625
    assert judged([0.625, 0.8125], [2, 2])[0] == 0.03125 + 12 * UNIT * 0.65625
    assert judged([0.5, 0.5], [2, 2], gains=[0.125, 0.25])[0] == 0.25 + 12 * UNIT * 0.75
    assert judged([0, 0], [2, 2], gains=[0, 0])[0] == 3 * 2.0**-1074
    assert judged([2, 4], [2, 2], gains=[0.25, 1.5])[0] == 0.5 + 12 * UNIT * 2.5  # 2.5 and 4


def test_jumps_are_certified_by_what_every_step_pays():
    # Of 2 at both states 1 is paid, but for 12 roundings, and 3 * 2^-50 for what underflows; the rest is rounded up.
    assert judged([0.5, 0.5], [2, 2])[1] == (2 + 96 * UNIT,) * 3
    # Of 5/2 and 9/4 state 1 pays 1 with 12 roundings of 5/4; in all 15 + 24 + 12.
    for found, jumps in zip(judged([0.5, 0.5], [2.5, 2.25])[1], (2.5, 2.25, 2.5), strict=True):
        assert jumps * (1 + 50 * UNIT) <= found <= jumps * (1 + 52 * UNIT)
    # At least half has to be paid everywhere.
    least = 1 + 60 * UNIT
    assert np.all(np.isfinite(judged([0.5, 0.5], [least, least])[1]))
    for jumps in ([least - 2 * UNIT] * 2, [2, 1.25], [1.25, 2], [-2, -3]):
        assert judged([0.5, 0.5], jumps)[1] == (np.inf,) * 3


def test_moving_the_probabilities_moves_the_largest_value_that_may_be(monkeypatch):
    # Each of 2 states is left by probabilities off by 1/9, a factor of 10/8 each: 25/16 - 1 of a value of 1/4 +- 1/4.
    monkeypatch.setattr(_System, "_refined", lambda self, *more: (np.full((2, 1), 0.25), np.full((2, 1), 0.25)))
    found = linear.solve(pair(), WEIGHTS.T, np.arange(5), stochastic=True, value_error=1 / 9)
    assert found.representation == pytest.approx(0.5 * 9 / 16, rel=1e-12)
