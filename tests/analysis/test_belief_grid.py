"""Weights on a grid of log odds: points, means and steps by hand, and one and two steps by their definition."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from verifier.analysis import belief_grid
from verifier.analysis.belief_grid import Grid, GridValues, grid_values, log_odds, spacings_of, updated
from verifier.analysis.hidden_game import Game

E20 = 1 / (1 + math.exp(20))


@pytest.mark.parametrize(
    ("environments", "spacing", "most", "shape"),
    [(1, 2.0, 10, ()), (2, 2.0, 10, (23,)), (3, 2.0, 10, (23, 23)), (2, 0.3, 67, (137,)), (3, 20.0, 1, (5, 5))],
)
def test_points_reach_to_twenty_and_then_comes_certainty(environments, spacing, most, shape):
    grid = Grid(environments, spacing)
    assert (grid.most, grid.shape, grid.size) == (most, shape, math.prod(shape))
    assert grid.points.shape == (grid.size, environments)
    np.testing.assert_allclose(grid.points.sum(axis=1), 1, rtol=1e-12)


def test_points_by_hand():
    points = Grid(2, 10.0).points
    tenth = 1 / (1 + math.exp(10))
    expected = [0, E20, tenth, 1 / 2, 1 / (1 + math.exp(-10)), 1 / (1 + math.exp(-20)), 1]
    np.testing.assert_allclose(points[:, 0], expected, rtol=1e-12)
    np.testing.assert_allclose(points[:, 1], expected[::-1], rtol=1e-12)
    assert Grid(1, 2.0).points.tolist() == [[1]]
    rows = Grid(3, 20.0).points.reshape(5, 5, 3)
    for at, weights in (
        ((2, 2), (1 / 2, 1 / 4, 1 / 4)),
        ((4, 2), (1, 0, 0)),
        ((0, 4), (0, 1, 0)),
        ((0, 0), (0, 0, 1)),
        ((2, 4), (1 / 2, 1 / 2, 0)),
        ((2, 1), (1 / 2, E20 / 2, 1 / (1 + math.exp(-20)) / 2)),
        ((1, 2), (E20, 1 / (1 + math.exp(-20)) / 2, 1 / (1 + math.exp(-20)) / 2)),
    ):
        np.testing.assert_allclose(rows[at], weights, rtol=1e-12)


@pytest.mark.parametrize("environments", [1, 2, 3, 4])
def test_weights_are_the_mean_of_the_points_next_to_them(environments):
    grid, rng = Grid(environments, 4.0), np.random.default_rng(environments)
    weights = rng.dirichlet(np.full(environments, 0.3), 200)
    some = np.r_[np.eye(environments), np.full((1, environments), 1 / environments)]
    far = rng.permuted(np.tile([1.0, *[1e-13] * (environments - 1)], (8, 1)), axis=1)
    weights = np.concatenate([weights, some, far / far.sum(axis=1, keepdims=True)])
    place, share = grid.around(weights)
    assert place.shape == share.shape == (len(weights), 2 ** (environments - 1))
    assert np.all((share >= 0) & (share <= 1))
    np.testing.assert_allclose(share.sum(axis=1), 1, rtol=1e-12)
    corners = grid.points[place]
    np.testing.assert_allclose((share[:, :, None] * corners).sum(axis=1), weights, rtol=1e-6, atol=1e-30)
    # Next to them: log odds of the corners are the multiples of 4 below and above, or certainty.
    odds = log_odds(weights)
    low, high = np.floor(odds / 4) * 4, np.floor(odds / 4) * 4 + 4
    low, high = np.where(low < -20, -np.inf, np.minimum(low, 20)), np.where(high > 20, np.inf, np.maximum(high, -20))
    numbers = (
        np.stack(np.unravel_index(place, grid.shape), axis=-1) if environments > 1 else place[:, :, None][:, :, :0]
    )
    ends = np.r_[-np.inf, np.arange(-20, 21, 4), np.inf][numbers]
    assert np.array_equal(ends.min(axis=1), low)
    assert np.array_equal(ends.max(axis=1), high)


def test_what_is_reached_at_the_points_next_to_the_weights():
    """Equal weights lie on the third of five points, log odds of 10 between the third and the fourth."""
    above = np.array([[9, 9, 0.8, 0.4, 9], [1.0] * 5])
    plans = np.zeros((2, 5, 2))
    plans[0, 2:4], plans[1] = [[0.2, 0.2], [0.9, 0.0]], [0.3, 0.4]
    values = GridValues(Grid(2, 20.0), above, plans)
    plan, most = values.best(0, np.array([0.5, 0.5]))
    assert (plan.tolist(), most) == ([0.9, 0.0], pytest.approx(0.8))
    likely = 1 / (1 + math.exp(-10))
    share = (likely - 1 / 2) / (1 / (1 + math.exp(-20)) - 1 / 2)
    plan, most = values.best(0, np.array([likely, 1 - likely]))
    assert (plan.tolist(), most) == ([0.9, 0.0], pytest.approx(share * 0.4 + (1 - share) * 0.8, rel=1e-9))
    plan, most = values.best(0, np.array([1 - likely, likely]))
    assert plan.tolist() == [0.2, 0.2]
    assert values.best(1, np.array([0.5, 0.5]))[0].tolist() == [0.3, 0.4]


@pytest.mark.parametrize(
    ("numbers", "work", "spacings"),
    [(387, 10**9, [2.0, 1.0]), (386, 10**9, [2.0]), (207, 10**9, [2.0]), (206, 10**9, []),
     (10**9, 15480, [2.0, 1.0]), (10**9, 15479, [2.0]), (10**9, 8280, [2.0]), (10**9, 8279, [])],
)  # fmt: skip
def test_room_and_time_by_hand(numbers, work, spacings, monkeypatch):
    """Of 23 and 43 points, two environments, three nodes: 3 numbers each; two reports, two choices, two corners with
    3 numbers, five steps: 24 for each node in each step."""
    for name, value in (("MOST_NUMBERS", numbers), ("MOST_WORK", work), ("SPACINGS", (2.0, 1.0))):
        monkeypatch.setattr(belief_grid, name, value)
    game = SimpleNamespace(told=np.zeros((2, 3, 2)), following=np.zeros((3, 2, 1)))
    assert list(spacings_of(game, 5)) == spacings


@pytest.mark.parametrize(
    ("nodes", "steps", "finest"), [(999, 1, 0.004), (1000, 1, 0.01), (10, 10_400, 0.01), (10, 10_600, 0.04)]
)
def test_room_for_thirty_million_numbers_and_time_for_five_billion(nodes, steps, finest):
    """Of 4,003 and 10,003 points; the second two with 4,003 x 120 x 10,400 and 10,600."""
    game = SimpleNamespace(told=np.zeros((2, nodes, 1)), following=np.zeros((nodes, 2, 1)))
    assert list(spacings_of(game, steps))[-1] == finest


def test_rounding_leads_to_no_share_beyond_all():
    odds, low = np.array([[0.5, -0.5, 0.0, 0.25]]), np.zeros((1, 4))
    assert belief_grid._between(odds, low, low + 0.25).tolist() == [[1, 0, 0, 1]]


def test_weights_after_a_report_by_hand():
    """With 1/4 and 3/4: a report of 1/2 and 1, one of 1/2 and 0, and one that cannot be made."""
    chance, after = updated(np.array([[0.25, 0.75]]), np.array([[[0.5, 0.5, 0]], [[1, 0, 0]]]))
    assert chance.tolist() == [[0.875, 0.125, 0]]
    assert after.tolist() == [[[1 / 7, 6 / 7], [1, 0], [0.25, 0.75]]]


def chain():
    """0 leads to 1 or 2, 1 to 2 or nowhere, 2 to 3, which is over, or by lot also to 4; 5 to nothing that counts."""
    following = [[[1, 1], [2, 2]], [[2, 2], [-1, -1]], [[3, 4], [3, 3]], [[0, 0]] * 2, [[3, 3]] * 2, [[5, 5]] * 2]
    told = np.array([[[0.5, 0.5], [1, 0], [0.5, 0.5], [1, 0], [1, 0], [0.5, 0.5]]] * 2)
    told[1, 5] = [0.25, 0.75]
    over, payoff = np.arange(6) == 3, np.outer(np.arange(6) == 3, [1.0, 0])
    return Game(np.array(following), np.full((6, 2), 0.5), over, payoff, told, np.array([0]))


def test_how_far_nodes_are_and_which_are_alike():
    game = chain()
    for most, distances in ((5, [0, 1, 1, 2, 2, 6]), (1, [0, 1, 1, 2, 2, 2]), (0, [0, 1, 1, 1, 1, 1])):
        assert belief_grid._distances(game, most).tolist() == distances
    assert sorted(nodes.tolist() for nodes in belief_grid._alike(game)) == [[0, 2], [1, 4], [5]]


def value(game, node, weights, left):
    """What is best within some steps, down every history."""
    if game.over[node] or not left:
        return float(weights @ game.payoff[node])
    ways = [led for led in game.following[node].tolist() if led[0] != -1]
    return sum(
        max(
            sum(
                share * value(game, to, weights * told, left - 1)
                for share, to in zip(game.chances[node], led, strict=True)
            )
            for led in ways
        )
        for told in game.told[:, node].T
    )


def test_one_step_is_exact_and_two_are_enclosed_at_every_point():
    """Node 0 leads to three others, in the second of which two ways are open; 4 and 5 end it."""
    following = [
        [[1, 2], [2, 3], [3, 1]],
        [[4, 5], [5, 5], [4, 4]],
        [[4, 4], [5, 4], [-1, -1]],
        [[5, 5], [4, 4], [4, 5]],
    ]
    following += [[[-1, -1]] * 3] * 2
    rng = np.random.default_rng(3)
    told, chances = rng.dirichlet(np.ones(3), (2, 6)), rng.dirichlet(np.ones(2), 6)
    payoff = np.array([[0.0, 0]] * 4 + [[1, 0], [0, 1]])
    over, starts = np.arange(6) > 3, np.array([1, 2, 3, 0, 4])
    game = Game(np.array(following), chances, over, payoff, told, starts)
    points = Grid(2, 2.0).points
    for steps in (1, 2, 5):
        found = grid_values(game, steps, 2.0)
        assert (found.grid, found.above.shape, found.plans.shape) == (Grid(2, 2.0), (5, 23), (5, 23, 2))
        reached = np.einsum("spe,pe->sp", found.plans, points)
        exact = np.array([[value(game, node, weights, steps) for weights in points] for node in starts.tolist()])
        np.testing.assert_allclose(found.above[[0, 1, 2, 4]], exact[[0, 1, 2, 4]], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(reached[[0, 1, 2, 4]], exact[[0, 1, 2, 4]], rtol=1e-12, atol=1e-12)
        assert np.all((reached[3] <= exact[3] + 1e-12) & (exact[3] <= found.above[3] + 1e-12))
        assert np.all(found.above[3] - reached[3] < 0.1)
        assert (exact[3].max() > 0.5) == (steps > 1)


def test_steps_are_taken_until_neither_bound_changes(monkeypatch):
    rounds = iter([(0.5, 0.0), (0.5, 0.25), (0.75, 0.25), (0.75, 0.25)])

    def back(following, chances, above, plans):
        most, least = next(rounds)
        return np.full((1, 23), most), np.full((1, 23, 2), least)

    look = SimpleNamespace(nodes=np.array([0]), back=back)
    monkeypatch.setattr(belief_grid._Look, "of", lambda *asked: look)
    game = Game(
        np.array([[[0]], [[1]]]), np.ones((2, 1)), np.array([False, True]), np.zeros((2, 2)), np.ones((2, 2, 1)),
        np.array([0]),
    )  # fmt: skip
    values = grid_values(game, 9, 2.0)
    assert (values.above[0, 0], values.plans[0, 0, 0], list(rounds)) == (0.75, 0.25, [])


def test_of_choices_that_are_as_good_the_first_is_taken():
    """Each is right in one environment; with equal weights either is as good."""
    following = np.array([[[1], [2]], [[-1], [-1]], [[-1], [-1]]])
    over, payoff = np.array([False, True, True]), np.array([[0.0, 0], [1, 0], [0, 1]])
    game = Game(following, np.ones((3, 1)), over, payoff, np.ones((2, 3, 1)), np.array([0]))
    assert grid_values(game, 1, 2.0).plans[0, 10:13].tolist() == [[0, 1], [1, 0], [1, 0]]
