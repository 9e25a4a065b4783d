"""The best planner that does not see all of the state: by hand in fractions, and against all histories."""

import itertools
import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from lots import best_with_lots
from scipy.optimize import linprog

from verifier.analysis import hidden_search
from verifier.analysis.best_planner import means, worst_cases
from verifier.analysis.hidden_game import (
    Choice,
    Game,
    HiddenGame,
    View,
    episode_steps,
    hidden_game,
    progress_in,
    told_apart,
)
from verifier.analysis.hidden_search import CLOSE, HiddenSearch, _Bounds, _least_division
from verifier.base.errors import NoAnswerError, UsageError
from verifier.language.expressions import parse_expression
from verifier.language.ltl import parse_formula
from verifier.language.ltl.progression import ACCEPT, REJECT
from verifier.perception.confusion import rates, read_confusion
from verifier.systems.open_system import is_seen, open_system
from verifier.systems.reader import read_model

LEAVING = """
initial = "n = 0 & done = 0 & gone = 0 & was = 0"
terminal = "done > 0"
[variables]
n = { range = [0, 3], next = "min(n + 1, 3)" }
done = { range = [0, 2], next = "choice" }
gone = { range = [0, 1], next = "max(gone, leaves)" }
was = { range = [0, 1], next = "gone" }
[world]
leaves = { range = [0, 1], probability = { 1 = 0.25, 0 = "rest" } }
[inputs]
choice = { range = [0, 2] }
[environments]
ped = [{ class = "ped", when = "gone = 0", distance_m = 3 }]
[planners.last]
rules = [{ when = "sees(ped)", set = { choice = 1 } }, { set = { choice = 2 } }]
"""
"""Somebody is there and leaves at some time; the planner says 1, still there, or 2, gone; and not at once."""
RIGHT = "done = 1 & was = 0 | done = 2 & was = 1"


def opened(folder, models, **environments):
    """One open system for each environment, and the rates."""
    bins = [{"distance_m": [0, 10], "counts": [[3, 0], [1, 1]]}]
    document = {"schema": "verifier.confusion", "version": 1, "labelling": "class", "axes": ["predicted", "true"]}
    (folder / "cm.json").write_text(
        json.dumps(document | {"labels": ["ped", "empty"], "false_positives": "counted", "bins": bins})
    )
    (folder / "m.toml").write_text(models)
    matrices, model = read_confusion(folder / "cm.json").matrices, read_model(folder / "m.toml")
    systems = {name: model.inside(name).instantiate() for name in environments or ("ped",)}
    assert not is_seen(systems)
    return [open_system({name: each}, matrices) for name, each in systems.items()], rates(matrices.counts)


def game_of(folder, model, condition, *environments):
    systems, measured = opened(folder, model, **dict.fromkeys(environments))
    propositions = {"right": parse_expression(condition)}
    return hidden_game(systems, parse_formula("F right"), propositions, measured, negated=False, most=10**5)


LATER = 'admissible = "choice = 0 | n >= 1"\n'


@pytest.mark.parametrize(("steps", "value"), [(1, 0), (2, Fraction(13, 16)), (3, Fraction(247, 256))])
def test_whether_somebody_left_solved_by_hand(tmp_path, steps, value):
    # At n = 1 gone with 1/4. Seen, 3/4 3/4 = 9/16: there, for certain. Not seen: there 3/16, gone 4/16. In two steps
    # "gone" is said then: 9/16 + 4/16. In three it looks again: there 9/64, gone 19/64; seen 27/256 of these, else
    # gone, 76/256: 144/256 + 103/256.
    (bracket,) = worst_cases(game_of(tmp_path, LATER + LEAVING, RIGHT), steps)
    assert bracket.lower - 1e-12 <= value <= bracket.upper + 1e-12
    assert bracket.upper - bracket.lower <= 2 * CLOSE
    assert (bracket.all_end, bracket.steps, bracket.exact) == (False, steps, False)


def test_environments_that_move_differently_by_hand(tmp_path):
    # One never leaves. With 1/2 each, seen: 3/8 who stays and 9/32 who may leave, so it says "there". Not seen: there
    # 1/8 + 3/32, gone 1/8: again "there", and 7/8 together. In the worst case it says "gone" with chance q where
    # nobody is seen: right in 1 - q/4 where one stays, in 3/4 + q/16 where not, equal for q = 4/5, and then 4/5.
    other = LEAVING.replace(
        "[planners.last]",
        '[environments.stays]\nobjects = [{ class = "ped", when = "gone = 0", distance_m = 3 }]\n'
        'next = { gone = "0" }\n[planners.last]',
    )
    game = game_of(tmp_path, LATER + other, RIGHT, "ped", "stays")
    (mean,), (worst,) = means(game, [0.5, 0.5], 2), worst_cases(game, 2)
    assert mean.lower - 1e-12 <= Fraction(7, 8) <= mean.upper + 1e-12
    assert worst.lower - 1e-12 <= Fraction(4, 5) <= worst.upper + 1e-12
    assert max(mean.upper - mean.lower, worst.upper - worst.lower) <= 1e-3
    assert worst.weights[0] == pytest.approx(0.8, abs=0.01)  # where q changes nothing: p/16 = (1 - p)/4


def small_game(starts=(0,)):
    """Nodes 0 and 2 look alike (view 1), node 1 alone (view 0), node 3 is lost and node 4 won; two choices, two
    outcomes and two moves of the world, and in view 0 only the second choice."""
    after = np.array([[[2, 4], [1, 3]], [[-1, -1], [3, 4]], [[3, 4], [1, 1]], [[-1, -1]] * 2, [[-1, -1]] * 2])
    sure = [[1.0, 0.0]] * 2
    chances = [[[0.25, 0.75], [1, 0]], [[0.5, 0.5], [0.25, 0.75]], [[0.5, 0.5], [0, 1]], sure, sure]
    told = np.array([[0.5, 0.5], [1, 0], [0.25, 0.75], [1, 0], [1, 0]])
    view, payoff = np.array([1, 0, 1, -1, -1]), np.array([-1, -1, -1, 0, 1])
    return HiddenGame(after, np.array(chances), payoff, told, view, np.array([starts]))


def test_what_looks_alike_by_hand():
    game = small_game()
    assert [nodes.tolist() for nodes in game.members] == [[1], [0, 2]]
    assert game.place[:3].tolist() == [0, 0, 1]
    assert (game.environments, game.ends_within()) == (1, 3)  # by way of 2 and 1
    alone, alike = game.looked_at(0), game.looked_at(1)
    assert (alone.nodes.tolist(), alone.moves, alone.told.tolist()) == ([1], 2, [[1, 1], [0, 0]])
    assert [(choice.won.tolist(), choice.onward) for choice in alone.choices] == [([0.5, 0.75], {})]
    assert (alike.nodes.tolist(), alike.moves) == ([0, 2], 2)
    assert alike.told.tolist() == [[0.5, 0.5, 0.25, 0.25], [0.5, 0.5, 0.75, 0.75]]
    first, second = alike.choices
    assert (first.won.tolist(), second.won.tolist()) == ([0.75, 0, 0.5, 1], [0] * 4)
    assert {view: matrix.toarray().tolist() for view, matrix in first.onward.items()} == {
        1: [[0, 0, 0, 0], [0.25, 1, 0, 0]]
    }
    assert {view: matrix.toarray().tolist() for view, matrix in second.onward.items()} == {0: [[0.25, 1, 1, 1]]}


def test_what_is_reached_from_known_nodes_by_hand():
    """In one step 1/2 from nodes 1 and 2, where the world takes its first move, and from node 0 nothing, for it leads
    to node 2 for sure; in two steps 1/2 from there, too."""
    none, one, two = [0, 0, 0, 0, 1], [0, 0.5, 0.5, 0, 1], [0.5, 0.5, 0.5, 0, 1]
    counted, ending = HiddenSearch(small_game(), 2), HiddenSearch(small_game(), 3)
    assert (counted.ends_within, ending.ends_within) == (None, 3)
    assert [row.tolist() for row in counted._sure] == [none, one, two]
    assert [row.tolist() for row in ending._sure] == [two]


def test_environments_in_which_all_is_decided_at_the_start():
    search = HiddenSearch(small_game((0, 4, 3)), 3)
    reached, above = search.best(0, np.array([0.5, 0.25, 0.25]))
    assert reached.tolist() == pytest.approx([0.5, 1, 0], abs=2 * CLOSE)
    assert above == pytest.approx(0.5, abs=2 * CLOSE)
    assert above >= 0.5 - 1e-12
    decided = HiddenSearch(small_game((4, 3)), 3)
    assert [part.tolist() for part in map(np.asarray, decided.best(0, np.array([0.75, 0.25])))] == [[1, 0], 0.75]
    assert (decided.work, {left for _, left in search._known}) == (0, {0})  # where all ends, steps are not counted
    counted = HiddenSearch(small_game(), 2)
    counted.best(0, np.ones(1))
    assert {left for _, left in counted._known} == {0, 1, 2}


def test_the_world_divides_weights_by_hand():
    """With one step to go node 0 is lost by the second move, and node 2 won with 1/2 by the first: so it does these,
    and the planner makes the first choice whatever it is told."""
    search = HiddenSearch(small_game(), 2)
    divided, lots = search._divided(1, 1, np.array([0.5, 2]))
    np.testing.assert_allclose(divided, [0, 0.5, 2, 0], atol=1e-12)
    np.testing.assert_allclose(lots, [[0.75, 0, 0.5, 1]] * 2, atol=1e-12)
    assert search.work == 100 * 10**4 + 100 * (4 + 4) * 2  # two choices with a plan for four moves, two reports
    search._improve(1, 1, np.array([0.5, 2]))
    bounds = search._known[1, 1]
    assert bounds.plans.tolist() == [pytest.approx([0, 0.5])]
    assert bounds.upper(np.array([[0.5], [2]])).tolist() == pytest.approx([1])
    assert search._known.keys() == {(1, 1), (1, 0), (0, 0)}
    assert search._divided(0, 1, np.ones(1))[0].tolist() == pytest.approx([1, 0])
    assert HiddenSearch(replace(small_game(), chances=small_game().chances[:, :1]), 2)._divided(1, 1, np.ones(2)) == (
        pytest.approx([1, 1]),
        None,
    )


@pytest.mark.parametrize("seed", range(4))
def test_no_other_division_is_worse_for_the_planner(seed):
    """What the planner reaches by its lots whatever is divided is what is best against this division: so both are."""
    rng = np.random.default_rng(seed)
    nodes, moves, weights = 3, 2, rng.dirichlet(np.ones(3)) * (1 + seed)
    told = np.repeat(rng.dirichlet(np.ones(2), nodes).T, moves, axis=1)
    choices = tuple(Choice(rng.random(nodes * moves) / 2, {}) for _ in range(2))
    behind = {(0, 5): rng.random((2, 6)) / 2, (1, 5): rng.random((3, 6)) / 4, (1, 6): rng.random((2, 6)) / 4}
    divided, lots = _least_division(View(np.arange(nodes), moves, told, choices), behind, weights)
    np.testing.assert_allclose(divided.reshape(nodes, moves).sum(axis=1), weights, rtol=1e-9)
    reached = [
        [
            choice.won @ own + sum((plans @ own).max() for (by, _), plans in behind.items() if by == number)
            for number, choice in enumerate(choices)
        ]
        for own in told * divided
    ]
    against = np.max(reached, axis=1).sum()
    assert weights @ (told * lots).sum(axis=0).reshape(nodes, moves).min(axis=1) == pytest.approx(against, rel=1e-9)
    # A mean of what choices and plans reach, for each report.
    best = [choice.won + sum(plans.max(axis=0) for (by, _), plans in behind.items() if by == number)
            for number, choice in enumerate(choices)]  # fmt: skip
    assert np.all(lots <= np.max(best, axis=0) + 1e-12)


def test_a_weight_too_small_for_the_program_is_divided_evenly():
    told, choices = np.full((2, 4), 0.5), (Choice(np.array([0.5, 0.25, 1, 0]), {}),)
    divided, _ = _least_division(View(np.arange(2), 2, told, choices), {}, np.array([1, 1e-300]))
    assert divided.tolist() == pytest.approx([0, 1, 5e-301, 5e-301], rel=1e-9, abs=0)


def test_one_exploration_by_hand(monkeypatch):
    """Node 0 is told 1/4 to 3/4 and leads to node 1, which is won, or to node 3, which is lost."""
    after, payoff = np.array([[[1], [3]], [[2], [2]], [[-1]] * 2, [[-1]] * 2]), np.array([-1, -1, 1, 0])
    told = np.array([[0.25, 0.75], *[[1, 0]] * 3])
    game = HiddenGame(after, np.ones((4, 1, 1)), payoff, told, np.array([0, 1, -1, -1]), np.array([[0]]))
    search = HiddenSearch(game, 5)
    search._known[1, 0] = _Bounds(np.ones(1), np.array([[0.25], [0.5]]), np.ones((3, 1)), -np.array([0.1, 0.3, 0.2]))
    first, second = search._onward(0, 0, np.ones(1))
    assert search.work == 10**4 + 2 * (2 + 3 + 1)  # two reports of one node: plans, points and what is sure
    np.testing.assert_allclose([first.lower, first.upper], [[0.125, 0.375], [0.175, 0.525]])
    assert [second.lower.tolist(), second.upper.tolist(), second.ends] == [[0, 0], [0, 0], []]
    ((view, weights, lower, upper),) = first.ends
    assert (view, weights.tolist()) == (1, [[0.25, 0.75]])
    assert np.array_equal([lower, upper], [first.lower, first.upper])
    # What is done after a report is what bounds from below say, not those from above.
    for one, other, reached in ((0.2, 0.1, 0.5), (0.1, 0.2, 0.0)):
        ways = [replace(first, lower=np.full(2, one), upper=1 - np.full(2, one))]
        ways += [replace(second, lower=np.full(2, other), upper=1 - np.full(2, other))]
        assert search._best_reply(0, 0, ways, 1).tolist() == [reached]
    view, weights = search._widest(0, 0, np.ones(1))
    assert (view, weights.tolist()) == (1, [0.75])
    both = HiddenGame(
        np.array([[[1, 2]], [[3, 3]], [[3, 3]], [[-1, -1]]]), np.full((4, 1, 2), 0.5), np.array([-1, -1, -1, 1]),
        np.ones((4, 1)), np.array([0, 1, 2, -1]), np.array([[0]]),
    )  # fmt: skip
    assert HiddenSearch(both, 5)._widest(0, 0, np.ones(1))[0] == 1  # the first of equal ones
    # Once there and back: four looks, two of them at node 1, of which a plan and what is sure are known.
    for most in (0, 4 * 10**4 + 8 - 1):
        monkeypatch.setattr(hidden_search, "MOST_WORK", most)
        search = HiddenSearch(game, 5)
        assert search.best(0, np.ones(1)) == ([1], 1)
        assert search.work == 4 * 10**4 + 8


@pytest.mark.parametrize("ended", [True, False])
def test_environments_told_apart_by_hand(ended):
    """Of three nodes, the last over or not; the second choice is not admissible in node 1."""
    following = np.array([[[1], [2]], [[2], [-1]], [[-1 if ended else 0]] * 2])
    told = np.array([[[0.5, 0.5], [1, 0], [0, 1]], [[0.25, 0.75], [0, 1], [1, 0]]])
    payoff = np.array([[0.0, 0], [0, 0], [1, 0]]) * ended
    game = told_apart(
        Game(following, np.ones((3, 1)), np.array([False, False, ended]), payoff, told, np.array([1, 0]))
    )
    last = -1 if ended else 0
    assert game.after[:, :, 0].tolist() == [
        [1, 2], [2, -1], [last] * 2, [4, 5], [5, -1], [-1 if ended else 3] * 2,
    ]  # fmt: skip
    assert game.chances.tolist() == [[[1]]] * 6
    assert game.payoff.tolist() == ([-1, -1, 1, -1, -1, 0] if ended else [-1] * 6)
    assert game.told.tolist() == [[0.5, 0.5], [1, 0], [0, 1], [0.25, 0.75], [0, 1], [1, 0]]
    assert game.view.tolist() == ([0, 1, -1] if ended else [0, 1, 2]) * 2
    assert game.starts.tolist() == [[1, 4], [0, 3]]


@pytest.mark.parametrize(
    ("led", "starts", "steps"),
    [
        ([[-1, -1], [2, 0], [0, -1]], [1], 2),
        ([[-1, -1], [2, 0], [0, -1]], [2, 0], 1),
        ([[-1, -1], [2, 0], [0, -1]], [0], 0),
        ([[-1, -1], [0, -1], [1, 0]], [1, 2], 2),
        ([[-1, -1], [2, 1], [0, -1]], [1], None),  # for ever in node 1
        ([[-1, -1], [2, 0], [1, -1]], [1], None),
    ],
)
def test_steps_of_the_longest_episode_by_hand(led, starts, steps):
    """Node 0 is over."""
    assert episode_steps(np.array(led), np.array([True, False, False]), np.array(starts)) == steps


@pytest.mark.parametrize(("condition", "value"), [("done = 1", 1), ("done = 2", 0)])
def test_what_remains_when_an_episode_is_over_goes_round(tmp_path, condition, value):
    """Five steps in an episode that ended at once before it is asked what is true for ever; another has not ended."""
    model = LEAVING.replace("n = 0 & done = 0", "n = 0 & done <= 1")
    (system,), _ = opened(tmp_path, model, ped=None)
    asked = parse_formula("X X X X X G F p"), {"p": parse_expression(condition)}
    way = progress_in(system, *asked, "ped", 100)
    assert sorted(way.value[way.start].tolist()) == [-1, value]
    assert way.value[:2].tolist() == [way.value[REJECT], way.value[ACCEPT]] == [0, 1]


@pytest.mark.parametrize(("condition", "value"), [("done = 1", 1), ("done = 2", 0)])
def test_an_episode_may_be_over_where_it_begins(tmp_path, condition, value):
    (bracket,) = worst_cases(game_of(tmp_path, LEAVING.replace("done = 0 &", "done = 1 &"), condition), 3)
    assert bracket.lower <= value <= bracket.upper <= bracket.lower + 2 * CLOSE


def test_what_cannot_come_is_not_followed():
    """Node 0 leads to node 1 with probability 0, else to node 2, which is won."""
    after, chances = np.array([[[1, 2]], [[2, 2]], [[-1, -1]]]), np.array([[[0.0, 1]], [[0.5, 0.5]], [[1, 0]]])
    payoff, view = np.array([-1, -1, 1]), np.array([0, 1, -1])
    game = HiddenGame(after, chances, payoff, np.ones((3, 1)), view, np.array([[0]]))
    (choice,) = game.looked_at(0).choices
    assert (choice.won.tolist(), choice.onward) == ([1], {})


def test_bounds_are_improved_by_more_than_rounding():
    """Of the weights (1, 1), which sum to 2: so by more than 2 * 10^-13."""
    bounds = _Bounds(np.ones(2), np.array([[0.25, 0.75]]), np.zeros((0, 2)), np.zeros(0))
    weights, plan = np.ones(2), np.array([0.25, 0.75])
    for by in (0, 1e-13):
        bounds.improve(weights, plan + np.array([by, 0]), 2 - by)
        assert (bounds.plans.tolist(), bounds.points.tolist()) == ([[0.25, 0.75]], [])
    bounds.improve(weights, plan + np.array([3e-13, 0]), 2 - 3e-13)
    assert (bounds.plans.tolist(), bounds.points.tolist()) == ([[0.25 + 3e-13, 0.75]], [[0.5, 0.5]])
    tied = _Bounds(np.zeros(1), np.zeros((1, 1)), np.zeros((0, 1)), np.zeros(0))
    tied.improve(np.ones(1), np.array([1e-13]), -1e-13)
    assert (tied.plans.tolist(), tied.points.tolist()) == ([[0]], [])
    bounds.improve(weights, np.array([0.75, 0.5]), 1.5)
    assert bounds.plans.tolist() == [[0.25 + 3e-13, 0.75], [0.75, 0.5]]
    assert bounds.less[1] == -0.25
    # Half of the second point is there, so the mean of 1 falls by half of 1/4 per unit of weight.
    assert bounds.upper(np.array([[0.25], [0.75]])).tolist() == [1 - 0.25 / 2]


def test_what_is_admissible_must_be_seen(tmp_path):
    game = game_of(tmp_path, 'admissible = "choice = 0 | gone = 1"\n' + LEAVING, RIGHT)
    with pytest.raises(UsageError, match="what is admissible depends on what planners do not see"):
        worst_cases(game, 3)


def test_environments_with_other_inputs_are_refused(tmp_path):
    narrow = LEAVING.replace("choice = { range = [0, 2] }", 'choice = { range = [0, "top"] }')
    narrow = narrow.replace("[variables]", "[constants]\ntop = 2\n[variables]").replace(
        "[planners.last]",
        '[environments.less]\nobjects = [{ class = "ped", distance_m = 3 }]\nset = { top = 1 }\n[planners.last]',
    )
    with pytest.raises(UsageError, match="'inputs' differs there"):
        game_of(tmp_path, narrow, RIGHT, "ped", "less")


def test_where_all_is_hidden_all_that_is_open_looks_alike(tmp_path):
    model = LEAVING
    for name in ("n", "done", "gone", "was"):
        model = model.replace(f"{name} = {{ range", f"{name} = {{ hidden = true, range", 1)
    view = game_of(tmp_path, model, RIGHT).view
    assert set(view.tolist()) == {-1, 0}
    assert (view == 0).sum() > 2


def test_environments_that_begin_differently_are_refused(tmp_path):
    view = "[field_of_view]\ndistance_m = [0, 10]\n[environments]\n"
    late = '[environments.late]\nobjects = []\ninitial = "n = 1"\n[planners.last]'
    model = LEAVING.replace("n = 0 &", "n <= 1 &").replace("[environments]\n", view).replace("[planners.last]", late)
    with pytest.raises(UsageError, match="runs begin in different states there"):
        game_of(tmp_path, model, RIGHT, "ped", "late")


# ------------------------------------------------------------------------- against all histories


def random_hidden_game(rng, depth=3, environments=2, width=5, views=2, reports=2, choices=2, outcomes=2, moves=1):
    """Nodes in layers for each environment, seen as one of some views of their layer; the last layer is decided."""
    size = 1 + width * depth
    after = np.full((environments * size, choices, outcomes), -1)
    view, payoff = np.zeros(environments * size, dtype=np.int64), np.full(environments * size, -1)
    for e in range(environments):
        layers = [
            [e * size],
            *(list(range(e * size + 1 + width * k, e * size + 1 + width * (k + 1))) for k in range(depth)),
        ]
        for number, (layer, onward) in enumerate(itertools.pairwise(layers)):
            for node in layer:
                after[node] = rng.choice(onward, (choices, outcomes))
                view[node] = 0 if number == 0 else 1 + views * (number - 1) + rng.integers(views)
        payoff[layers[-1]] = rng.random(width) < 0.5
        view[layers[-1]] = -1
        early = [node for layer in layers[1:-1] for node in layer if rng.random() < 0.1]
        payoff[early], view[early] = rng.integers(0, 2, len(early)), -1
    _, numbered = np.unique(view[view >= 0], return_inverse=True)
    view[view >= 0] = numbered
    told = rng.dirichlet(np.full(reports, 0.7), len(view))
    chances = rng.dirichlet(np.full(outcomes, 0.7), (len(view), moves))
    return HiddenGame(after, chances, payoff, told, view, np.array([[e * size for e in range(environments)]]))


def onward(game, weights, choice, move=0):
    """What is won, and the weights of the views behind a choice; weights are node -> number or vector."""
    won, behind = 0, {}
    for node, weight in weights.items():
        for to, chance in zip(game.after[node, choice].tolist(), game.chances[node, move].tolist(), strict=True):
            if game.payoff[to] >= 0:
                won = won + weight * chance * game.payoff[to]
            else:
                there = behind.setdefault(int(game.view[to]), {})
                there[to] = there.get(to, 0) + weight * chance
    return won, behind


def told_of(game, weights, report):
    return {node: weight * game.told[node, report] for node, weight in weights.items()}


def histories_value(game, weights):
    total = 0.0
    for report in range(game.told.shape[1]):
        values = []
        for choice in range(game.after.shape[1]):
            won, behind = onward(game, told_of(game, weights, report), choice)
            values.append(won + sum(histories_value(game, each) for each in behind.values()))
        total += max(values)
    return total


def lots_value(game, weights):
    """max over plans with lots of the least environment; weights are node -> vector over environments."""
    rows, ends, count = [], [], 0

    def follow(weights, parent):
        nonlocal count
        for report in range(game.told.shape[1]):
            mine = []
            for choice in range(game.after.shape[1]):
                mine.append(count)
                count += 1
                won, behind = onward(game, told_of(game, weights, report), choice)
                ends.append((mine[-1], won + np.zeros(game.environments)))
                for each in behind.values():
                    follow(each, mine[-1])
            rows.append((parent, mine))

    follow(weights, None)
    return best_with_lots(rows, ends, count, game.environments)


def deciding_value(game, prior=None):
    """The value where the world moves against the planner, in sequence form: the planner's chances of what it does
    after what it was told, and for each node that may then come what is reached from there; in the worst environment
    without a prior."""
    told, columns, rows, equal = range(game.told.shape[1]), itertools.count(), [], []
    chance, worth = {}, {}

    def chosen(sequence):
        if sequence not in chance:
            chance[sequence] = next(columns)
        return chance[sequence]

    def reached(sequence, node):
        """Number of the variable for the weight of what is reached from a node, times the chance of the sequence."""
        if (sequence, node) in worth:
            return worth[sequence, node]
        mine = worth[sequence, node] = next(columns)
        for move in range(game.chances.shape[1]):
            row = {mine: 1.0}
            for report in told:
                for choice in range(game.after.shape[1]):
                    here = (*sequence, int(game.view[node]), report, choice)
                    weight = {node: game.told[node, report]}
                    won, behind = onward(game, weight, choice, move)
                    at = chosen(here)
                    row[at] = row.get(at, 0) - won
                    for each in behind.values():
                        for to, share in each.items():
                            further = reached(here, to)
                            row[further] = row.get(further, 0) - share
            rows.append(row)
        return mine

    first = [reached((), node) for node in game.starts[0].tolist()]
    groups = {}
    for sequence in list(chance):
        groups.setdefault(sequence[:-1], []).append(chance[sequence])
    for (*before, _, _), own in groups.items():
        equal.append(
            ({**dict.fromkeys(own, 1.0), **({chance[tuple(before)]: -1.0} if before else {})}, float(not before))
        )
    least = next(columns)
    count = least + 1
    for at in first if prior is None else ():
        rows.append({least: 1.0, at: -1.0})
    gain = np.zeros(count)
    if prior is None:
        gain[least] = -1
    else:
        gain[first] = -np.asarray(prior)

    def matrix(each):
        found = np.zeros((len(each), count))
        for k, row in enumerate(each):
            for at, number in row.items():
                found[k, at] += number
        return found

    bounds = [(None, None)] * count
    for at in chance.values():
        bounds[at] = (0, None)
    bounds[least] = (0, 1)
    found = linprog(gain, A_ub=matrix(rows), b_ub=np.zeros(len(rows)), A_eq=matrix([row for row, _ in equal]),
                    b_eq=[right for _, right in equal], bounds=bounds, method="highs")  # fmt: skip
    return -found.fun


def test_random_games_of_a_world_that_decides_against_their_sequence_form(thorough):
    opened_up = 0
    for seed in range(40 if thorough else 4):
        rng = np.random.default_rng([seed, 2])
        game = random_hidden_game(rng, depth=3, environments=1 + seed % 2, width=4, moves=2)
        prior = rng.dirichlet(np.ones(game.environments))
        (mean,), (worst,) = means(game, prior.tolist(), 10), worst_cases(game, 10)
        for bracket, expected in ((mean, deciding_value(game, prior)), (worst, deciding_value(game))):
            assert bracket.lower - 1e-7 <= expected <= bracket.upper + 1e-7, seed
            assert bracket.upper - bracket.lower <= 1e-3, seed
            opened_up += 1e-3 < expected < 1 - 1e-3
    assert opened_up >= (40 if thorough else 4)


def test_where_the_world_does_not_decide_the_sequence_form_is_that_of_histories():
    rng = np.random.default_rng(5)
    game = random_hidden_game(rng, environments=2)
    units = dict(zip(game.starts[0].tolist(), np.eye(2), strict=True))
    assert deciding_value(game) == pytest.approx(lots_value(game, units), abs=1e-9)


@pytest.mark.parametrize(
    ("leaves", "value"),
    [
        # Gone with chance p: seen 3/4 (1 - p), else there (1 - p)/4 or gone p, equal for p = 1/5: 4/5.
        ("{ range = [0, 1] }", Fraction(4, 5)),
        # With p at most 3/20 it is best to say "there" always, and worst the largest p.
        ('{ range = [0, 1], probability = { 1 = [0.1, 0.15], 0 = "rest" } }', Fraction(17, 20)),
        ('{ range = [0, 1], admissible = "leaves = 0 | n > 0" }', Fraction(1)),
    ],
)
def test_a_world_that_decides_when_somebody_leaves_by_hand(tmp_path, leaves, value):
    model = LEAVING.replace('{ range = [0, 1], probability = { 1 = 0.25, 0 = "rest" } }', leaves)
    (bracket,) = worst_cases(game_of(tmp_path, LATER + model, RIGHT), 2)
    assert bracket.lower - 1e-9 <= value <= bracket.upper + 1e-9
    assert bracket.upper - bracket.lower <= 1e-3


@pytest.mark.parametrize("names", [("ped", "stays"), ("stays", "ped")])
def test_worlds_that_decide_among_more_and_among_less_by_hand(tmp_path, names):
    """As for one that may leave or stay, 4/5: it may do what the one does that has no choice but to stay."""
    model = LATER + LEAVING.replace("[variables]", "[constants]\ntop = 1\n[variables]")
    model = model.replace('{ range = [0, 1], probability = { 1 = 0.25, 0 = "rest" } }', '{ range = [0, "top"] }')
    ped = (
        '[environments.stays]\nobjects = [{ class = "ped", when = "gone = 0", distance_m = 3 }]\nset = { top = 0 }\n'
    )
    game = game_of(tmp_path, model.replace("[planners.last]", ped + "[planners.last]"), RIGHT, *names)
    drawn = {name: game.chances[game.starts[0, at]].tolist() for at, name in enumerate(names)}
    assert drawn == {"ped": [[1, 0], [0, 1]], "stays": [[1, 0], [1, 0]]}
    (bracket,) = worst_cases(game, 2)
    assert bracket.lower - 1e-9 <= Fraction(4, 5) <= bracket.upper + 1e-9
    assert bracket.upper - bracket.lower <= 1e-3


@pytest.mark.parametrize("negated", [False, True])
def test_a_hidden_game_is_made_of_as_many_nodes_as_are_allowed(tmp_path, negated):
    systems, measured = opened(tmp_path, LEAVING)
    asked = systems * 2, parse_formula("F right"), {"right": parse_expression(RIGHT)}, measured
    game = hidden_game(*asked, negated=negated, most=10**5)
    count = len(game.view)
    assert len(hidden_game(*asked, negated=negated, most=count).view) == count
    with pytest.raises(NoAnswerError, match=f"more than {count - 1} states with the formula"):
        hidden_game(*asked, negated=negated, most=count - 1)
    opposite = hidden_game(*asked, negated=not negated, most=count).payoff
    assert np.array_equal(opposite, np.where(game.payoff == -1, -1, 1 - game.payoff))
    assert set(opposite.tolist()) == {-1, 0, 1}


def test_random_hidden_games_against_all_histories(thorough):
    opened_up = 0
    for seed in range(60 if thorough else 8):
        rng = np.random.default_rng(seed)
        game = random_hidden_game(rng, environments=1 + seed % 3)
        prior = rng.dirichlet(np.ones(game.environments))
        first = dict(zip(game.starts[0].tolist(), prior.tolist(), strict=True))
        units = dict(zip(game.starts[0].tolist(), np.eye(game.environments), strict=True))
        (mean,), (worst,) = means(game, prior.tolist(), 10), worst_cases(game, 10)
        for bracket, expected in ((mean, histories_value(game, first)), (worst, lots_value(game, units))):
            assert bracket.lower - 1e-9 <= expected <= bracket.upper + 1e-9, seed
            assert bracket.upper - bracket.lower <= 1e-3, seed
            assert (bracket.all_end, bracket.steps) == (True, 3)
            opened_up += 1e-3 < expected < 1 - 1e-3
    assert opened_up >= (70 if thorough else 10)
