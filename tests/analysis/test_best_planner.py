"""The best possible planner: solved by hand, by the binomial distribution, by all histories, by a linear program."""

import itertools
import json
from dataclasses import replace
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from lots import best_with_lots

from verifier.analysis import best_planner
from verifier.analysis.best_planner import means, worst_cases
from verifier.analysis.hidden_game import Game, game_of, progress_in
from verifier.base.errors import NoAnswerError, UsageError
from verifier.language.expressions import parse_expression
from verifier.language.ltl import parse_formula
from verifier.perception.confusion import read_confusion
from verifier.study.case import Study
from verifier.study.inputs import read_inputs
from verifier.study.options import RunOptions
from verifier.systems.open_system import open_system
from verifier.systems.reader import read_model

RECALL, FALSE_POSITIVE = Fraction(3, 4), Fraction(1, 8)
LOOKS = """
initial = "n = 0 & done = 0"
terminal = "done > 0"
[constants]
looks = 1
[variables]
n = { range = [0, "looks"], next = "min(n + 1, looks)" }
done = { range = [0, 2], next = "choice" }
[inputs]
choice = { range = [0, 2] }
[environments]
ped = [{ class = "ped", distance_m = 3 }]
nobody = [{ class = "empty", distance_m = 3 }]
[planners.last]
rules = [
    { when = "n < looks - 1", set = { choice = 0 } },
    { when = "sees(ped)", set = { choice = 1 } },
    { set = { choice = 2 } },
]
"""
"""Looks so often and then says 1, there is somebody, or 2, nobody is there."""
SPEC = """
model "m.toml"
planner last
right: P >= 0.9 [ F (done = 1 & ped | done = 2 & !ped) ]
wrong: P <= 0.1 [ F (done = 1 & !ped | done = 2 & ped) ]
"""


@pytest.fixture
def written(tmp_path):
    """Writes model, spec and matrices; gives the paths of the last two."""

    def write(model=LOOKS, spec=SPEC, recall=RECALL, false_positive=FALSE_POSITIVE):
        (tmp_path / "m.toml").write_text(model)
        (tmp_path / "s.ltl").write_text(spec)
        counts = [
            [recall * 800, false_positive * 800],
            [(1 - recall) * 800, (1 - false_positive) * 800],
        ]
        found = {
            "schema": "verifier.confusion", "version": 1, "title": "looks", "labelling": "class",
            "axes": ["predicted", "true"], "labels": ["ped", "empty"], "false_positives": "counted",
            "bins": [{"distance_m": [0, 10], "counts": [[int(each) for each in row] for row in counts]}],
        }  # fmt: skip
        (tmp_path / "cm.json").write_text(json.dumps(found))
        return tmp_path / "s.ltl", tmp_path / "cm.json"

    return write


def games(spec, matrices, looks=1, opposite=False):
    """The open system of the files, and the game of each requirement."""
    study = Study.of(read_inputs(spec, matrices, RunOptions()), RunOptions())
    systems = {block.environment: block.system for block in study.grid.blocks}
    system = open_system(systems, study.matrices, study.skeleton_options)
    found = {}
    for requirement, formula in zip(study.requirements, study.formulas, strict=True):
        negated = (requirement.comparison == "<=") != opposite
        found[requirement.name] = game_of(
            system, formula.formula, formula.propositions, study.measured.rates, negated=negated, most=10**6
        )
    return system, found


def looking(written, looks):
    """The game of looking exactly so often: the planner that says something earlier has not seen the rest."""
    must = f'admissible = "choice = 0 | n >= {looks - 1}"\n'
    _, found = games(*written(must + LOOKS.replace("looks = 1", f"looks = {looks}")))
    return found


def test_one_look_solved_by_hand(written):
    # To say "somebody" on a report, and without one in q of all cases, is right in 3/4 + q/4 where somebody is and in
    # 7/8 (1 - q) where nobody is: equal for q = 1/9, and then 7/9.
    found = looking(written, 1)
    for name in ("right", "wrong"):
        (bracket,) = worst_cases(found[name], 1)
        assert bracket.lower == pytest.approx(7 / 9, abs=1e-9)
        assert bracket.upper == pytest.approx(7 / 9, abs=1e-9)
        assert bracket.lower <= 7 / 9 <= bracket.upper
        assert bracket.exact
        assert not bracket.all_end  # to say nothing for ever is a choice
        # Against these weights it is all the same what is said without a report.
        assert bracket.weights[1] * 7 / 8 == pytest.approx(bracket.weights[0] / 4, abs=1e-9)


def test_what_is_won_in_a_game_is_lost_in_the_opposite_one(written):
    (_, own), (_, other) = games(*written()), games(*written(), opposite=True)
    for name, game in own.items():
        assert np.array_equal(game.over, other[name].over)
        assert np.array_equal(game.payoff[game.over], 1 - other[name].payoff[game.over])
        assert set(game.payoff[game.over].ravel().tolist()) == {0, 1}
    assert np.any(own["right"].payoff)
    assert not np.any(own["right"].payoff[~own["right"].over])


@pytest.mark.parametrize("where", ["ped", "!ped"])
def test_what_is_decided_in_one_environment_is_open_in_the_other(written, where):
    """In one 2 is never to be said; in the other that holds from the start. At first only looking is admissible."""
    model = 'admissible = "choice = 0 | n >= 1"\n' + LOOKS.replace("looks = 1", "looks = 2")
    (_, found) = games(*written(model, f'model "m.toml"\nplanner last\na: P >= 0.5 [ {where} -> G done != 2 ]\n'))
    game, (start,) = found["a"], found["a"].starts.tolist()
    own = ["ped", "!ped"].index(where)
    assert (game.over[start], game.payoff[start, own], game.payoff[start, 1 - own]) == (False, 0, 1)
    (looked,) = {to for to in game.following[start].ravel().tolist() if to != -1}
    assert sorted(game.following[start].ravel().tolist()) == [-1, -1, looked]
    said = game.following[looked][:, 0].tolist()
    assert [(bool(game.over[to]), game.payoff[to, own]) for to in said] == [(False, 0), (True, 1), (True, 0)]


def test_only_what_can_come_and_is_open_is_followed():
    # From node 1 the first choice leads to node 0, the others are decided or not admissible; the second outcome and
    # the second report never come.
    following = np.array([[[2, 2]] * 3, [[0, 1], [-1, -1], [3, 3]], [[2, 2]] * 3, [[3, 3]] * 3])
    over, payoff = np.array([False, False, True, True]), np.array([[0.0], [0.0], [1.0], [0.0]])
    told = np.broadcast_to([1.0, 0.0], (1, 4, 2))
    game = Game(following, np.broadcast_to([1.0, 0.0], (4, 2)), over, payoff, told, np.array([1]))
    layer, (nodes, weights) = best_planner._onward(game, np.array([1]), np.array([[1.0]]), last=False)
    assert (nodes.tolist(), weights.tolist()) == ([0], [[1.0]])
    assert layer.place.tolist() == [[[[0, -1], [-1, -1], [-1, -1]], [[-1, -1]] * 3]]
    assert best_planner._onward(game, np.array([1]), np.array([[1.0]]), last=True)[0].place.max() == -1


def ending_at_once():
    """A game of one environment whose only node leads to its end."""
    over, payoff = np.array([False, True]), np.array([[0.0], [1.0]])
    return Game(np.array([[[1]], [[1]]]), np.ones((2, 1)), over, payoff, np.ones((1, 2, 1)), np.array([0]))


def test_a_finer_grid_only_narrows_the_bracket(monkeypatch):
    ways = [(0.2, 0.6), (0.1, 0.5), (0.3, 0.9)]
    given = [(spacing, lambda start, weights, at=at: (np.array(at[:1]), at[1])) for spacing, at in enumerate(ways)]
    monkeypatch.setattr(best_planner, "_ways", lambda game, most_steps: given)
    (bracket,) = means(ending_at_once(), [1.0], 1)
    assert (bracket.lower, bracket.upper) == pytest.approx((0.3, 0.5), abs=1e-9)
    assert not bracket.exact


@pytest.mark.parametrize(
    ("plans", "value", "weights"),
    [
        ([[1, 0], [0, 1]], 1 / 2, [1 / 2, 1 / 2]),
        ([[1, 0], [0, 0.5]], 1 / 3, [1 / 3, 2 / 3]),
        ([[0.3, 0.6]], 0.3, [1, 0]),
        ([[0.25, 0.5], [0.5, 0.75]], 0.5, [1, 0]),
        ([[0.5]], 0.5, [1]),
    ],
)
def test_lots_by_hand(plans, value, weights):
    least, against = best_planner._lots(np.array(plans, dtype=float))
    assert (least, against.tolist()) == (pytest.approx(value), pytest.approx(weights))


def test_weights_and_plans_in_turns_by_hand():
    """First 1/2 each: a plan that reaches (1, 0); then the second environment alone: (0, 1/2). The worst weights of
    these are (1/3, 2/3), where the first is best again, so that the search ends."""
    asked, answers = [], iter([([1.0, 0.0], 0.5), ([0.0, 0.5], 0.4), ([1.0, 0.0], 0.4)])

    def best(weights):
        asked.append(weights.tolist())
        plan, above = next(answers)
        return np.array(plan), above

    search = best_planner._Search.of(2)
    assert (search.lower, search.upper, search.plans, search.worst.tolist()) == (0, 1, [], [0.5, 0.5])
    search.go_on(best, exact=False)
    assert asked == [[0.5, 0.5], pytest.approx([0, 1]), pytest.approx([1 / 3, 2 / 3])]
    assert (search.upper, search.worst.tolist(), search.exact) == (0.4, pytest.approx([0, 1]), False)
    assert (search.lower, len(search.plans)) == (pytest.approx(1 / 3), 3)
    # What is no less than before is not the worst, and after so many turns it is given up.
    endless = best_planner._Search.of(1)
    endless.go_on(lambda weights: (np.array([len(endless.plans) / 1000]), 1.0), exact=True)
    assert (len(endless.plans), endless.upper, endless.exact) == (100, 1, True)
    assert endless.lower == pytest.approx(99 / 1000)


@pytest.mark.parametrize(
    ("lower", "upper", "exact", "most_steps", "steps", "all_end"),
    [(0.25, 0.5, False, 3, 1, True), (0.25, 0.5, True, 3, 1, True), (0.25, 0.5, True, 1, 1, True),
     (0.25, 0.5, True, 0, 0, False), (0.0, 1.0, True, 8, 1, True)],
)  # fmt: skip
def test_a_bracket_is_widened_by_rounding(lower, upper, exact, most_steps, steps, all_end):
    """In each step by 4,096 units of rounding, and where weights were compared by 10^-11 for each environment."""
    bracket = best_planner._bracket(ending_at_once(), lower, upper, np.array([0.5, 0.25]), most_steps, exact)
    slack = most_steps * (4096 * 2.0**-53 + (2e-11 if exact else 0))
    assert bracket.lower == pytest.approx(max(lower - slack, 0), abs=1e-16)
    assert bracket.upper == pytest.approx(min(upper + slack, 1), abs=1e-16)
    assert (bracket.weights, bracket.exact) == ((0.5, 0.25), exact)
    assert (bracket.steps, bracket.all_end) == (steps, all_end)


def test_only_starts_that_are_not_narrow_are_asked_again(monkeypatch):
    """Of two initial states the first is narrow in one way, both are in the next; no third one is made."""
    monkeypatch.setattr(best_planner, "WIDEST_BRACKET", 0.125)
    asked = []

    def ways(*uppers):
        for number, own in enumerate(uppers):

            def best(start, weights, number=number, own=own):
                asked.append((number, start))
                return np.array([0.5]), own[start]

            yield None if number else 0.4, best
        pytest.fail("they are all narrow")

    monkeypatch.setattr(best_planner, "_ways", lambda game, most: ways((0.625, 0.75), (0.5, 0.5625)))
    game = replace(ending_at_once(), starts=np.array([0, 0]))
    one, other = worst_cases(game, 1)
    assert list(dict.fromkeys(asked)) == [(0, 0), (0, 1), (1, 1)]
    assert (one.exact, other.exact) == (False, True)
    assert (one.upper, other.upper) == pytest.approx((0.625, 0.5625), abs=1e-9)
    asked.clear()
    monkeypatch.setattr(best_planner, "_ways", lambda game, most: ways((0.5, 0.75), (0.5, 0.625)))
    assert [bracket.upper for bracket in means(game, [1.0], 0)] == [0.5, 0.625]
    assert asked == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_as_many_moves_as_are_kept_are_followed(monkeypatch):
    """Two steps: one node with two reports and choices, then two with weights of each report."""
    following = np.array([[[1], [2]], [[3], [3]], [[3], [3]], [[-1], [-1]]])
    over, payoff = np.array([False] * 3 + [True]), np.array([[0.0, 0]] * 3 + [[1, 0]])
    told = np.array([[[0.25, 0.75]] * 4, [[0.5, 0.5]] * 4])
    game = Game(following, np.ones((4, 1)), over, payoff, told, np.array([0]))
    layers = best_planner._forward(game, 0, np.array([0.5, 0.5]), 5)
    assert [layer.place.shape for layer in layers] == [(1, 2, 2, 1), (4, 2, 2, 1)]
    assert [len(layer.nodes) for layer in layers] == [1, 4]
    assert len(best_planner._forward(game, 0, np.array([0.5, 0.5]), 1)) == 1
    for most, enough in ((20, True), (19, False), (4, False), (3, False)):
        monkeypatch.setattr(best_planner, "MOST_MOVES", most)
        if enough:
            best_planner._forward(game, 0, np.array([0.5, 0.5]), 5)
        else:
            with pytest.raises(best_planner._TooManyError):
                best_planner._forward(game, 0, np.array([0.5, 0.5]), 5)


def test_a_search_ends_where_nothing_is_between():
    asked = []

    def best(weights):
        asked.append(weights.tolist())
        return np.array([0.75]), 0.75

    search = best_planner._Search.of(1)
    search.go_on(best, exact=True)
    assert (len(asked), search.lower, search.upper) == (1, pytest.approx(0.75), 0.75)
    near = best_planner._Search.of(1)
    near.go_on(lambda weights: (np.zeros(1), 1e-11), exact=True)
    assert len(near.plans) == 1


def likelihoods(looks):
    """Number of reports -> how likely it is where somebody is, and where nobody is."""
    return [
        tuple(comb(looks, k) * p**k * (1 - p) ** (looks - k) for p in (RECALL, FALSE_POSITIVE))
        for k in range(looks + 1)
    ]


@pytest.mark.parametrize("looks", [1, 3, 10])
@pytest.mark.parametrize("prior", [Fraction(1, 2), Fraction(1, 50)])
def test_with_weights_it_is_bayes(written, looks, prior):
    (bracket,) = means(looking(written, looks)["right"], [float(prior), float(1 - prior)], looks)
    expected = sum(max(prior * ped, (1 - prior) * nobody) for ped, nobody in likelihoods(looks))
    assert bracket.lower <= expected <= bracket.upper
    assert bracket.upper - bracket.lower < 1e-9
    assert bracket.exact


def most_powerful(looks):
    """The value of the test that errs as often where somebody is as where nobody is (Neyman and Pearson)."""
    somebody, nobody = Fraction(0), Fraction(1)
    for ped, none in reversed(likelihoods(looks)):  # reports speak for somebody: the largest likelihood ratio first
        if somebody + ped >= nobody - none:
            q = (nobody - somebody) / (ped + none)
            return somebody + q * ped
        somebody, nobody = somebody + ped, nobody - none
    raise AssertionError("unreachable")


@pytest.mark.parametrize("looks", [1, 2, 5, 10])
def test_the_worst_case_is_the_most_powerful_test(written, looks):
    (bracket,) = worst_cases(looking(written, looks)["right"], looks)
    expected = most_powerful(looks)
    assert bracket.lower <= expected <= bracket.upper
    assert bracket.upper - bracket.lower < 1e-9


@pytest.mark.parametrize("looks", [1, 12, 30])
def test_on_a_grid_the_bracket_holds_the_value_and_is_narrow(written, monkeypatch, looks):
    monkeypatch.setattr(best_planner, "MOST_MOVES", 0)
    game = looking(written, looks)["right"]
    (bracket,) = worst_cases(game, looks)
    assert not bracket.exact
    assert bracket.lower <= most_powerful(looks) <= bracket.upper
    assert bracket.upper - bracket.lower <= 1e-3
    (mean,) = means(game, [0.25, 0.75], looks)
    expected = sum(max(Fraction(1, 4) * ped, Fraction(3, 4) * nobody) for ped, nobody in likelihoods(looks))
    assert mean.lower <= expected <= mean.upper
    assert mean.upper - mean.lower <= 1e-3


# ------------------------------------------------------------- where what is done decides what is seen


def random_game(rng, depth, environments, reports=2, choices=2, width=3, outcomes=1):
    """Nodes in layers of `width`, each choice into the next layer, some not admissible; the last layer is over."""
    count = 1 + width * depth
    following = np.full((count, choices, outcomes), -1)
    layers = [[0], *(list(range(1 + width * k, 1 + width * (k + 1))) for k in range(depth))]
    for layer, onward in itertools.pairwise(layers):
        for node in layer:
            following[node] = rng.choice(onward, (choices, outcomes))
            if rng.random() < 0.2:
                following[node, rng.integers(choices)] = -1
    over = np.zeros(count, dtype=bool)
    over[layers[-1]] = True
    payoff = np.zeros((count, environments))
    payoff[layers[-1], np.arange(width) % environments] = 1  # each end is right in one environment
    told = rng.dirichlet(np.full(reports, 0.7), (environments, count))
    told[rng.random(told.shape[:2]) < 0.15] = np.eye(reports)[0]
    chances = rng.dirichlet(np.full(outcomes, 0.7), count)
    return Game(following, chances, over, payoff, told, np.array([0]))


def histories_value(game, node, weights):
    """sum over reports of max over choices of the mean over what is drawn, down every history."""
    if game.over[node]:
        return weights @ game.payoff[node]
    onward = [each for each in game.following[node].tolist() if each[0] >= 0]
    drawn = game.chances[node].tolist()
    return sum(
        max(
            sum(
                share * histories_value(game, after, weights * told) for share, after in zip(drawn, each, strict=True)
            )
            for each in onward
        )
        for told in game.told[:, node].T
    )


def lots_value(game):
    """max over plans with lots of the least environment: probabilities of what is chosen after every history."""
    rows, ends, count = [], [], 0

    def follow(node, parent, chance):
        nonlocal count
        if game.over[node]:
            ends.append((parent, chance * game.payoff[node]))
            return
        for told in game.told[:, node].T:
            mine = []
            for each in game.following[node].tolist():
                if each[0] >= 0:
                    mine.append(count)
                    count += 1
                    for share, after in zip(game.chances[node].tolist(), each, strict=True):
                        follow(after, mine[-1], chance * told * share)
            rows.append((parent, mine))

    follow(0, None, np.ones(len(game.told)))
    return best_with_lots(rows, ends, count, len(game.told))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("on_grid", [False, True])
def test_random_games_against_all_histories(monkeypatch, request, seed, on_grid):
    if on_grid:
        if seed % 3 == 2 and not request.config.getoption("--slow"):
            pytest.skip("runs with --slow")
        monkeypatch.setattr(best_planner, "MOST_MOVES", 0)
        monkeypatch.setattr("verifier.analysis.belief_grid.SPACINGS", (2.0, 0.4))
    rng, environments = np.random.default_rng(seed), 1 + seed % 3
    game = random_game(rng, depth=4, environments=environments)
    weights = rng.dirichlet(np.ones(environments))
    (mean,), (worst,) = means(game, weights.tolist(), 10), worst_cases(game, 10)
    wide = 0.05 if on_grid else 1e-9
    for bracket, expected in ((mean, histories_value(game, 0, weights)), (worst, lots_value(game))):
        assert bracket.lower - 1e-9 <= expected <= bracket.upper + 1e-9
        assert bracket.upper - bracket.lower <= wide
        assert (bracket.exact, bracket.all_end, bracket.steps) == (not on_grid, True, 4)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("on_grid", [False, True])
def test_random_games_that_draw_against_all_histories(monkeypatch, seed, on_grid):
    if on_grid:
        monkeypatch.setattr(best_planner, "MOST_MOVES", 0)
        monkeypatch.setattr("verifier.analysis.belief_grid.SPACINGS", (2.0, 0.4))
    rng = np.random.default_rng([seed, 5])
    game = random_game(rng, depth=3, environments=2, outcomes=2)
    weights = rng.dirichlet(np.ones(2))
    (mean,), (worst,) = means(game, weights.tolist(), 10), worst_cases(game, 10)
    wide = 0.05 if on_grid else 1e-9
    for bracket, expected in ((mean, histories_value(game, 0, weights)), (worst, lots_value(game))):
        assert bracket.lower - 1e-9 <= expected <= bracket.upper + 1e-9
        assert bracket.upper - bracket.lower <= wide
        assert (bracket.exact, bracket.all_end, bracket.steps) == (not on_grid, True, 3)


SKIPPING = LOOKS.replace(
    'next = "min(n + 1, looks)" }', 'next = "min(n + 1 + skip, looks)", hidden = false }'
).replace(
    "[inputs]",
    '[world]\nskip = { range = [0, 1], probability = { 1 = "ite(n = 0, 0.25, 0.5)", 0 = "rest" } }\n[inputs]',
)


def skipping_value(n, left, looks, ped, nobody):
    """The most that is right within so many steps, down every history; `ped` and `nobody` weigh what was seen."""
    if not left:
        return Fraction(0)
    skip, total = Fraction(1, 4) if n == 0 else Fraction(1, 2), Fraction(0)
    for seen, unseen in ((RECALL, FALSE_POSITIVE), (1 - RECALL, 1 - FALSE_POSITIVE)):
        own, other = ped * seen, nobody * unseen
        best = sum(
            share * skipping_value(min(n + by, looks), left - 1, looks, own, other)
            for by, share in ((1, 1 - skip), (2, skip))
        )
        total += max(best, own, other) if n >= looks - 1 else best
    return total


@pytest.mark.parametrize("looks", [1, 3, 5])
def test_looks_that_are_skipped_at_random(written, looks):
    must = f'admissible = "choice = 0 | n >= {looks - 1}"\n'
    _, found = games(*written(must + SKIPPING.replace("looks = 1", f"looks = {looks}")))
    prior = Fraction(1, 5)
    (bracket,) = means(found["right"], [float(prior), float(1 - prior)], looks)
    expected = skipping_value(0, looks, looks, prior, 1 - prior)
    assert bracket.lower <= expected <= bracket.upper
    assert bracket.upper - bracket.lower < 1e-9


def test_random_games_are_not_all_won_or_lost():
    values = [lots_value(random_game(np.random.default_rng(seed), 4, 2)) for seed in range(12)]
    assert sum(0.01 < value < 0.99 for value in values) >= 6


def test_what_has_not_ended_is_lost(written):
    found = looking(written, 3)["right"]
    assert found.ends_within() is None
    assert worst_cases(found, 2)[0].upper < 1e-9
    assert worst_cases(found, 3)[0].lower > 0.8


# ------------------------------------------------------------------------------ the open system


def test_choices_that_end_where_nothing_is_admissible_are_left_out(written):
    # Beyond x = 0 the only admissible input is to go on, until the next value is out of range.
    model = """
    initial = "x = 0 & done = 0"
    terminal = "done = 1"
    [variables]
    x = { range = [0, 2], next = "x + by" }
    done = { range = [0, 1], next = "stop" }
    [inputs]
    by = { range = [0, 1] }
    stop = { range = [0, 1] }
    [environments]
    ped = [{ class = "ped", distance_m = 3 }]
    [planners.p]
    rules = [{ set = { by = 0, stop = 1 } }]
    """
    model = 'admissible = "by = 1 & stop = 0 | x = 0"\n' + model
    system, _ = games(*written(model, 'model "m.toml"\nplanner p\na: P >= 0.5 [ F done = 1 ]\n'))
    values = {name: each.tolist() for name, each in system.valuations.items()}
    start = int(system.starts[0])
    onward = system.following[start].ravel().tolist()
    led = {tuple(values[name][each] for name in ("x", "done")) for each in onward if each >= 0}
    assert led == {(0, 0), (0, 1), (1, 1)}  # (1, 0) leads to (2, 0), and from there nowhere


def test_where_every_choice_is_a_dead_end_it_is_said(written):
    model = LOOKS.replace('initial = "n', 'admissible = "n < 0"\ninitial = "n')
    spec, matrices = written(model, 'model "m.toml"\nplanner last\na: P >= 0.5 [ F done = 1 ]\n')
    with pytest.raises(UsageError, match="every choice of inputs ends where none is admissible"):
        games(spec, matrices)


def test_environments_that_draw_otherwise_are_refused(written, tmp_path):
    matrices = read_confusion(written()[1]).matrices
    model = (
        SKIPPING.replace("looks = 1", "looks = 2\nfirst = 0")
        .replace("n = 0, 0.25", "n = first, 0.25")
        .replace(
            'nobody = [{ class = "empty", distance_m = 3 }]',
            'nobody = { objects = [{ class = "empty", distance_m = 3 }], set = { first = 1 } }',
        )
    )
    (tmp_path / "other.toml").write_text(model)
    read = read_model(tmp_path / "other.toml")
    systems = {name: read.inside(name).instantiate() for name in ("ped", "nobody")}
    with pytest.raises(UsageError, match="'world' differs there: name one of them"):
        open_system(systems, matrices)


@pytest.mark.every(2)
@pytest.mark.parametrize("looks", [5, 1, 30])
def test_where_no_grid_is_small_enough_it_is_searched(written, monkeypatch, looks):
    game = looking(written, looks)["right"]
    monkeypatch.setattr(best_planner, "MOST_MOVES", 0)
    monkeypatch.setattr("verifier.analysis.belief_grid.MOST_NUMBERS", 10)
    (bracket,), (mean,) = worst_cases(game, looks), means(game, [0.25, 0.75], looks)
    expected = sum(max(Fraction(1, 4) * ped, Fraction(3, 4) * nobody) for ped, nobody in likelihoods(looks))
    for found, value in ((bracket, most_powerful(looks)), (mean, expected)):
        assert found.lower - 1e-12 <= value <= found.upper + 1e-12
        assert found.upper - found.lower <= 1e-3


def test_too_large_games_are_refused(written, monkeypatch):
    system, _ = games(*written(LOOKS.replace("looks = 1", "looks = 9")))
    formula = _formula(written)
    with pytest.raises(NoAnswerError, match="the limit is 3"):
        game_of(system, *formula, most=3, negated=False)
    # Soon decided, after which states go on.
    formula = parse_formula("F once"), {"once": parse_expression("n = 1")}, formula[2]
    count = len(game_of(system, *formula, most=1000, negated=False).over)
    ways = [len(progress_in(system, *formula[:2], name, 1000).value) for name in ("ped", "nobody")]
    assert count > max(ways)
    assert len(game_of(system, *formula, most=count, negated=False).over) == count
    with pytest.raises(NoAnswerError, match=f"more than {count - 1} states with the formula"):
        game_of(system, *formula, most=count - 1, negated=False)
    codes = system.state_count * ways[0] * ways[1]
    monkeypatch.setattr("verifier.analysis.hidden_game.LARGEST_WORD", codes)
    assert len(game_of(system, *formula, most=1000, negated=False).over) == count
    monkeypatch.setattr("verifier.analysis.hidden_game.LARGEST_WORD", codes - 1)
    with pytest.raises(NoAnswerError, match="more than 1000 states with the formula"):
        game_of(system, *formula, most=1000, negated=False)


def _formula(written):
    study = Study.of(read_inputs(*written(), RunOptions()), RunOptions())
    return study.formulas[0].formula, study.formulas[0].propositions, study.measured.rates
