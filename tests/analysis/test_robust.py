"""Confidence bounds: hand-solved models, brute force over vertices, Storm on decision processes, random matrices."""

import itertools
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import small_chains
from cyclic_bundles import write_cyclic
from hypothesis import given, settings
from hypothesis import strategies as st
from interval_iteration import optimal_probabilities
from interval_models import (
    RECURRENT,
    SIMPLE,
    Model,
    exactly,
    random_member,
    random_model,
    random_region,
    region_of,
    vertices,
)
from random_steps import OfOneRow, random_step
from scipy.stats import beta
from shorthands import confidence_region
from small_objectives import channel_of, objective_of, random_objective

from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.objective import Objective
from verifier.analysis.robust import graph as robust_graph
from verifier.analysis.robust import inner_bounds as one_side
from verifier.analysis.robust import solutions, solve
from verifier.analysis.robust.graph import end_components
from verifier.analysis.robust.inner_bounds import bound_sides
from verifier.analysis.robust.policy import PolicySearch, make_nodes
from verifier.analysis.robust.region import Region, Told, events_of, groups_of
from verifier.analysis.robust.shared_matrix import common_choices
from verifier.analysis.robust.solutions import Effort, RobustBounds, robust_bounds
from verifier.analysis.robust.step import UncertainStep, greatest_masses, inner_masses, uncertain_step
from verifier.analysis.sensitivity.adjoint import expected_visits, gradient, state_values
from verifier.base.errors import EngineError, NoAnswerError
from verifier.cli import main
from verifier.language.ltl import parse_formula, to_storm
from verifier.study.case import Study
from verifier.study.inputs import Selection, read_inputs
from verifier.study.options import RunOptions

TWO, THREE = ((), ("a",)), ((), ("a",), ("b",))
NANO = Fraction(1, UNIT)
PLAIN = Effort()
BOUNDS_ONLY = Effort(attained=False)


def f(text):
    return Fraction(text)


def fixed(*rates):
    return [(f(each), f(each)) for each in rates]


def bounds_of(model, formula, semantics="per_state", effort=PLAIN):
    objective = model.objective(formula)
    return robust_bounds(objective, model.region(objective), semantics, effort)


def ends(found, start=0):
    return found.lower[start], found.upper[start]


def near(value):
    return pytest.approx(float(value), abs=1e-9)


class TestByHand:
    def test_the_greedy_choice_fills_the_best_groups_first(self):
        # States 1, 2, 3 reach the goal with 1/5, 1/2 and 7/10. Report {} leads to 1, a to 2, b to 3, with
        # mu{} in [1/10, 2/5], mu(a) in [1/5, 1/2], mu(b) in [3/10, 3/5].
        # Least: {} 2/5, b 3/10, a the rest 3/10: 2/5 * 1/5 + 3/10 * 1/2 + 3/10 * 7/10 = 11/25.
        # Greatest: b 3/5, {} 1/10, a 3/10: 1/10 * 1/5 + 3/10 * 1/2 + 3/5 * 7/10 = 59/100.
        model = Model(
            THREE,
            [[1, 2, 3], [5, 4, 5], [5, 4, 5], [5, 4, 5], [4] * 3, [5] * 3],
            {"g": {4}},
            {
                0: [(f("0.1"), f("0.4")), (f("0.2"), f("0.5")), (f("0.3"), f("0.6"))],
                1: fixed("0.8", "0.2", 0),
                2: fixed("0.5", "0.5", 0),
                3: fixed("0.3", "0.7", 0),
            },
        )
        assert ends(bounds_of(model, "F g")) == (near(f("11/25")), near(f("59/100")))

    def test_value_iteration_stops_far_from_the_truth_and_the_bounds_do_not(self):
        # From state 0: to the goal with 10^-9, to the bad state with 10^-9 to 2 * 10^-9, else it stays.
        # Least: 1 / (1 + 2) = 1/3. Greatest: 1 / (1 + 1) = 1/2.
        model = Model(
            THREE,
            [[1, 0, 2], [1] * 3, [2] * 3],
            {"g": {2}},
            {0: [(NANO, 2 * NANO), (0, 1), (NANO, NANO)]},
        )
        found = bounds_of(model, "F g")
        assert ends(found) == (near(f("1/3")), near(f("1/2")))
        value, change = 0.0, 1.0
        while change > 1e-9:
            new = 1e-9 + (1 - 3e-9) * value
            value, change = new, new - value
        assert abs(value - 1 / 3) > 0.33  # it stopped in its second round

    def test_bounds_hold_as_exact_fractions_and_are_tight(self):
        model = Model(THREE, [[1, 0, 2], [1] * 3, [2] * 3], {"g": {2}}, {0: fixed(2 * NANO, 1 - 3 * NANO, NANO)})
        found = bounds_of(model, "F g")
        assert Fraction(float(found.lower[0])) < Fraction(1, 3) < Fraction(float(found.upper[0]))
        assert found.upper[0] - found.lower[0] < 1e-12

    def test_the_graph_changes_at_the_end_of_an_interval(self):
        # State 0 goes to the goal with 0 to 1/10 and stays otherwise: P(F g) is 1 for every rate above 0, and 0 at 0.
        model = Model(TWO, [[0, 1], [1, 1]], {"g": {1}}, {0: [(f("0.9"), 1), (0, f("0.1"))]})
        found = bounds_of(model, "F g")
        assert ends(found) == (0, 1)
        assert (found.lower_attained[0], found.upper_attained[0]) == (0, 1)
        # One billionth is enough.
        model.bounds[0] = [(f("0.9"), 1 - NANO), (NANO, f("0.1"))]
        assert ends(bounds_of(model, "F g")) == (near(1), 1)

    def test_for_safety_the_jump_is_the_other_way(self):
        # To the bad state with 0 to 1/10: P(G !bad) is 0 for every rate above 0, and 1 at 0.
        model = Model(TWO, [[0, 1], [1, 1]], {"bad": {1}}, {0: [(f("0.9"), 1), (0, f("0.1"))]})
        assert ends(bounds_of(model, "G !bad")) == (0, 1)

    def test_where_staying_earns_nothing_nature_leaves_in_the_best_way(self):
        # State 0 may stay forever, or go to state 1, which reaches the goal with 1/2 at least and 3/4 at most.
        # Staying never reaches g: least 0. For the greatest it must leave: 3/4.
        model = Model(
            TWO,
            [[0, 1], [3, 2], [2] * 2, [3] * 2],
            {"g": {2}},
            {0: [(0, 1), (0, 1)], 1: [(f("0.25"), f("0.5")), (f("0.5"), f("0.75"))]},
        )
        found = bounds_of(model, "F g")
        assert ends(found) == (0, near(f("3/4")))
        assert ends(bounds_of(model, "G !g")) == (near(f("1/4")), 1)

    def test_leaving_a_component_of_two_states_by_its_better_door(self):
        # 0 and 1 lead to each other for as long as nature likes. State 0 has a door to a fair coin, state 1 one to a
        # coin with 3/4. P(F g) is at most 3/4: the door of state 1, however seldom it opens.
        model = Model(
            THREE,
            [[1, 2, 1], [0, 3, 0], [5, 4, 5], [5, 4, 5], [4] * 3, [5] * 3],
            {"g": {4}},
            {
                0: [(0, 1), (0, f("0.1")), (0, 1)],
                1: [(0, 1), (0, NANO), (0, 1)],
                2: fixed("0.5", "0.5", 0),
                3: fixed("0.25", "0.75", 0),
            },
        )
        assert ends(bounds_of(model, "F g")) == (0, near(f("3/4")))

    def test_recurrence_depends_on_whether_leaving_can_be_refused(self):
        # 0 (where q holds) and 1 alternate; each stays with 0 to 1/2, or state 1 with 0 to 1.
        following = [[1, 0], [0, 1]]
        half, free = [(f("0.5"), 1), (0, f("0.5"))], [(0, 1), (0, 1)]
        always = Model(TWO, following, {"q": {0}}, {0: half, 1: half})
        assert ends(bounds_of(always, "G F q")) == (1, 1)
        assert ends(bounds_of(always, "F G q")) == (0, 0)
        sometimes = Model(TWO, following, {"q": {0}}, {0: half, 1: free})
        assert ends(bounds_of(sometimes, "G F q")) == (0, 1)
        assert ends(bounds_of(sometimes, "F G !q")) == (0, 1)
        assert ends(bounds_of(sometimes, "F G q")) == (0, 0)
        assert not bounds_of(sometimes, "G F q").conservative

    def test_nature_may_need_to_refuse_some_moves_of_a_component_only(self):
        # 0 goes to 1 or 2 and both go back; she can refuse one of them, not both.
        # (G F a) & (G F b) can fail; (G F a) | (G F b) cannot.
        model = Model(TWO, [[1, 2], [0, 0], [0, 0]], {"a": {1}, "b": {2}}, {k: [(0, 1), (0, 1)] for k in range(3)})
        assert ends(bounds_of(model, "(G F a) & (G F b)")) == (0, 1)
        assert ends(bounds_of(model, "(G F a) | (G F b)")) == (1, 1)
        assert ends(bounds_of(model, "(G F a) -> (G F b)")) == (0, 1)
        assert ends(bounds_of(model, "(F G !a) & (F G !b)")) == (0, 0)

    def test_what_is_not_decided_is_taken_as_bad_and_as_good(self, monkeypatch):
        model = Model(TWO, [[1, 2], [0, 0], [0, 0]], {"a": {1}, "b": {2}}, {k: [(0, 1), (0, 1)] for k in range(3)})
        monkeypatch.setattr(robust_graph, "MOST_COMBINATIONS", 2)
        assert ends(bounds_of(model, "(G F a) | (G F b)")) == (1, 1)  # what is visited again and again decides
        found = bounds_of(model, "(G F (a | X a)) | (G F (b | X b))")
        assert ends(found) == (0, 1)
        assert found.conservative
        assert found.lower_attained[0] == 1  # so the reader sees how far the bound may be off
        found = bounds_of(model, "!((G F (a | X a)) | (G F (b | X b)))")
        assert ends(found) == (0, 1)
        assert found.conservative
        assert found.upper_attained[0] == 0

    def test_a_run_that_ended_is_a_lasso(self):
        # P(G F g) = P(F g) where both ends absorb.
        model = Model(TWO, [[1, 2], [1] * 2, [2] * 2], {"g": {2}}, {0: [(f("0.2"), f("0.4")), (f("0.6"), f("0.8"))]})
        assert ends(bounds_of(model, "G F g")) == (near(f("3/5")), near(f("4/5")))
        assert ends(bounds_of(model, "F G !g")) == (near(f("1/5")), near(f("2/5")))

    @pytest.mark.parametrize("rare", [f("1/1000"), f("1/1000000"), NANO])
    @pytest.mark.parametrize("length", [1, 2, 3, 6])
    def test_a_circle_that_is_left_too_rarely_for_doubles(self, length, rare):
        # Only after `length` rare reports in a row, each with `rare` to twice that, the circle is left, for a coin
        # with 1/2 to 3/4; it is left for sure, be it with a chance of 10^-54.
        following = [[0, k + 1] for k in range(length)] + [[length + 2, length + 1]]
        following += [[length + 1] * 2, [length + 2] * 2]
        bounds = {k: [(1 - 2 * rare, 1 - rare), (rare, 2 * rare)] for k in range(length)}
        bounds[length] = [(f("1/4"), f("1/2")), (f("1/2"), f("3/4"))]
        model = Model(TWO, following, {"g": {length + 1}}, bounds)
        found = bounds_of(model, "F g")
        assert ends(found) == (near(f("1/2")), near(f("3/4")))

    def test_where_parts_must_be_merged_the_bound_is_wider_and_says_so(self):
        # As before with three in a row of 10^-9, but from the first state it is lost with 10^-27 or so: the chance of
        # the goal lies strictly between 0 and 1, and doubles cannot tell where.
        following = [[5, 1], [0, 2], [0, 4], [3, 3], [4, 4], [0, 6], [0, 7], [0, 3]]
        rare = [(1 - 2 * NANO, 1 - NANO), (NANO, 2 * NANO)]
        model = Model(TWO, following, {"g": {4}}, dict.fromkeys((0, 1, 2, 5, 6, 7), rare))
        found = bounds_of(model, "F g")
        assert found.conservative
        assert 0 <= found.lower[0] <= 0.5
        assert 0.5 <= found.upper[0] <= 1

    def test_every_initial_state_has_its_own_bounds(self):
        model = Model(
            TWO,
            [[2, 1], [2, 3], [2] * 2, [3] * 2],
            {"g": {3}},
            {0: [(f("0.1"), f("0.2")), (f("0.8"), f("0.9"))], 1: [(f("0.4"), f("0.5")), (f("0.5"), f("0.6"))]},
            starts=(0, 1, 3),
        )
        found = bounds_of(model, "F g")
        assert found.lower == pytest.approx([0.4, 0.5, 1], abs=1e-9)
        assert found.upper == pytest.approx([0.54, 0.6, 1], abs=1e-9)

    def test_bounds_that_one_matrix_attains_from_everywhere_need_one_certificate(self):
        model = Model(TWO, [[2, 3], [2, 3], [2] * 2, [3] * 2], {"g": {3}}, {}, (0, 1))
        model.bounds = {k: [(f("0.1"), f("0.2")), (f("0.8"), f("0.9"))] for k in (0, 1)}
        found = bounds_of(model, "F g")
        gap = float(found.lower_attained[0] - found.lower[0])
        assert 0 < gap < 1e-9
        for most, count in ((1e-4, 1), (gap, 1), (np.nextafter(gap, 0), 2)):
            found = bounds_of(model, "F g", "shared_matrix", Effort(boxes=0, gap=most, certificates=("lower",)))
            assert [each["side"] for each in found.certificates] == ["lower"] * count

    def test_costs_are_lowered_where_very_many_steps_are_taken(self):
        # Two states lead to each other, until one is left for the goal, or the other for the bad end, each with
        # 10^-7: x = 10^-7 + (1 - 10^-7)^2 x. The first cost that is tried, 2^-42 a step, would lift a bound by 10^-6.
        seldom = f("1e-7")
        moves, bounds = [[1, 2], [0, 3], [2] * 2, [3] * 2], [(1 - seldom, 1 - seldom), (seldom, seldom)]
        found = bounds_of(Model(TWO, moves, {"g": {2}}, {0: bounds, 1: bounds}), "F g", effort=BOUNDS_ONLY)
        exact = seldom / (1 - (1 - seldom) ** 2)
        assert 0 <= exact - Fraction(float(found.lower[0])) < Fraction(1, 10**8)
        assert 0 <= Fraction(float(found.upper[0])) - exact < Fraction(1, 10**8)

    def test_a_cycle_becomes_one_node_beside_the_others(self, monkeypatch):
        seldom = f("1e-7")
        moves = [[1, 2], [0, 3], [2] * 2, [3] * 2, [4] * 2]
        bounds = [(1 - seldom, 1 - seldom), (seldom, seldom)]
        objective = Model(TWO, moves, {"g": {2}}, {0: bounds, 1: bounds}, range(5)).objective("F (g & X g)")
        step = uncertain_step(objective, region_of(objective, {(0, 1): bounds, (1, 1): bounds}))
        nodes = make_nodes(step, end_components(step))
        cycle = np.flatnonzero(np.isin(objective.product.state, [0, 1]) & (nodes.of != nodes.of[0]))
        found = solve._merged(step, nodes, cycle, np.zeros(0, dtype=np.int64))
        apart = [int(node) for state, node in enumerate(found.of) if state not in cycle]
        assert len({int(found.of[state]) for state in cycle}) == 1 < len(cycle)
        assert sorted(map(apart.count, set(apart))) == sorted(
            np.bincount(np.delete(nodes.of, cycle))[np.unique(np.delete(nodes.of, cycle))].tolist()
        )
        assert int(found.of[cycle[0]]) not in apart
        # Where little is lost nothing is merged.
        monkeypatch.setattr(solve, "_merged", None)
        plain = Model(TWO, [[1, 2], [1] * 2, [2] * 2], {"g": {2}}, {0: [(0, f("0.4")), (f("0.6"), 1)]})
        assert ends(bounds_of(plain, "F g")) == (near(f("0.6")), 1)

    def test_what_is_connected_by_a_target_alone_is_not_merged(self):
        moves = [[1, 3], [2, 2], [0, 3], [3] * 2]
        objective = Model(TWO, moves, {"g": {3}}, {k: [(0, 1), (0, f("0.9"))] for k in range(3)}).objective("F g")
        step = uncertain_step(objective, region_of(objective, {(k, 1): [(0, 1), (0, f("0.9"))] for k in range(3)}))
        nodes = make_nodes(step, np.full(step.state_count, -1))
        state, nobody = objective.product.state, np.zeros(0, dtype=np.int64)
        assert solve._merged(step, nodes, np.flatnonzero(np.isin(state, [0, 2])), nobody) is None
        found = solve._merged(step, nodes, np.flatnonzero(np.isin(state, [0, 1, 2])), nobody)
        assert len({int(found.of[state.tolist().index(k)]) for k in range(3)}) == 1

    @pytest.mark.parametrize(
        ("rounds", "expected"),
        [  # of each round values, how far they may be off, and how far before costs were lowered
            ([(0.7, 0.0, 1e-8)], (0.7, False, 1)),
            ([(0.7, 0.0, 1.1e-8), (0.6, 1.0, 0.0)], (0.6, False, 2)),
            ([(0.7, 1.1e-6, 1.0), (0.8, 0.0, 0.0)], (0.7, True, 2)),
            ([(0.7, 1e-6, 1.0), (0.6, 0.0, 0.0)], (0.6, False, 2)),
            ([(None, 1.0, 1.0), (None, 1.0, 1.0), (0.6, 0.0, 0.0)], (0.6, True, 3)),
            ([(0.9 - k / 10, 0.0, 1.0) for k in range(5)], (0.5, False, 5)),  # merged four times at most
            ([(0.9, 0.0, 1.0)], (0.9, False, 1)),  # nothing more is merged
            ([(None, 1.0, 1.0)], None),
        ],
    )
    def test_parts_are_merged_until_little_is_lost(self, rounds, expected, monkeypatch):
        model = Model(TWO, [[1, 2], [1] * 2, [2] * 2], {"g": {2}}, {0: [(0, 1), (0, 1)]})
        _, step = model.stepped("F g")
        nodes, size = make_nodes(step, end_components(step)), step.state_count
        ahead, searched = iter(rounds), []

        def lifted(step, search, target):
            value, loss, first = next(ahead)
            return None if value is None else np.full(size, value), loss, first, np.arange(1)

        def search(step, present, unknown, guide):
            searched.append(present)
            return SimpleNamespace(steps_from=lambda each: np.full(len(step.owner), len(searched)))

        merged = [object() for _ in rounds[1:]] + [None] * (len(rounds) < 5)
        monkeypatch.setattr(solve, "_lifted", lifted)
        monkeypatch.setattr(solve, "PolicySearch", search)
        monkeypatch.setattr(solve, "_merged", lambda *_: merged[len(searched) - 1])
        target, starts = np.zeros(size, dtype=bool), [np.arange(1), np.arange(1)]
        if expected is None:
            with pytest.raises(EngineError, match="no bound on 0 product states can be proven"):
                solve.greatest_reach(step, nodes, target, starts)
            return
        found = solve.greatest_reach(step, nodes, target, starts)
        value, worse, count = expected
        assert found.value.tolist() == [value] * size
        assert (found.merged, len(searched)) == (worse, count)
        assert searched == [nodes, *merged[: count - 1]]
        first = next(k for k, each in enumerate(rounds, 1) if each[0] is not None)
        assert found.steps.tolist() == [[first] * len(step.owner)] * 2

    def test_the_second_side_is_searched_for_from_where_the_first_one_ended(self, monkeypatch):
        begun, ended, search = [], [], one_side.greatest_reach

        def followed(step, nodes, target, starts, guide):
            begun.append(guide)
            ended.append(search(step, nodes, target, starts, guide))
            return ended[-1]

        monkeypatch.setattr(one_side, "greatest_reach", followed)
        model = Model(TWO, [[1, 2], [1] * 2, [2] * 2], {"g": {2}}, {0: [(f("0.2"), f("0.4")), (f("0.6"), f("0.8"))]})
        found = bounds_of(model, "F g", effort=BOUNDS_ONLY)
        assert ends(found) == (near(f("3/5")), near(f("4/5")))
        assert begun[0] is None
        assert np.array_equal(begun[1], 1 - ended[0].value)

    def test_what_no_matrix_can_change_has_bounds_without_width(self):
        model = Model(TWO, [[1, 1], [1, 1]], {"g": {1}}, {0: [(0, 1), (0, 1)]})
        objective = model.objective("F g")
        free = Region(
            objective.skeleton.channel.labels,
            groups_of(objective.skeleton.channel),
            np.zeros((2, 2, 2), dtype=np.int64),
            np.full((2, 2, 2), UNIT),
            np.zeros((2, 2), dtype=bool),
        )
        assert ends(robust_bounds(objective, free)) == (1, 1)


def two_draws(following, formula, true_in, columns=(1, 1)):
    """State 0 draws twice, from the given columns of bin 0; {} and a are told; the others have ended."""
    channel = channel_of(TWO, [[0, 0]], [list(columns)], (frozenset(), frozenset("a")))
    ended = range(1, len(following))
    return objective_of(channel, following, [0] * len(following), true_in, formula, ended=ended)


class TestTwoDraws:
    def test_both_draws_are_at_their_worst(self):
        # a is told if one of two draws with recall 4/5 to 9/10 reports it: 1 - 1/25 to 1 - 1/100.
        objective = two_draws([[1, 2], [1] * 2, [2] * 2], "F g", {"g": {2}})
        region = region_of(objective, {(0, 1): [(f("0.1"), f("0.2")), (f("0.8"), f("0.9"))]})
        found = robust_bounds(objective, region)
        assert ends(found) == (near(f("24/25")), near(f("99/100")))
        # One matrix attains that.
        assert found.lower_attained[0] == near(f("24/25"))

    def exactly_one(self):
        """Good if exactly one of two draws reports: a, then b, told apart; P = 2 r (1 - r) for one matrix."""
        told = tuple(map(frozenset, ("", "a", "b", "ab")))
        channel = channel_of(THREE, [[0, 0]], [[1, 2]], told)
        following = [[1, 2, 2, 1], [1] * 4, [2] * 4]
        return objective_of(channel, following, [0] * 3, {"g": {2}}, "F g", ended=(1, 2))

    def test_draws_from_two_columns(self):
        # Draw 1 reports a with r, draw 2 reports b with s; P = r (1 - s) + (1 - r) s for r in [2/5, 3/5], s = 1/4:
        # r * 3/4 + (1 - r) * 1/4 = 1/4 + r/2, from 9/20 to 11/20.
        objective = self.exactly_one()
        interval = [(f("0.4"), f("0.6")), (f("0.4"), f("0.6")), (0, 0)]
        region = region_of(objective, {(0, 1): interval, (0, 2): fixed("0.75", 0, "0.25")})
        assert ends(robust_bounds(objective, region)) == (near(f("9/20")), near(f("11/20")))

    def test_one_matrix_is_tighter_than_a_matrix_for_every_draw(self):
        # Two states in a row that draw from one column with r in [2/5, 3/5], good if exactly one of them reports.
        # P = 2 r (1 - r): from 12/25 to 1/2. With a matrix for every state: 2/5 to 3/5.
        channel = channel_of(TWO, [[0]], [[1]], (frozenset(), frozenset("a")))
        following = [[1, 2], [3, 4], [4, 3], [3] * 2, [4] * 2]
        objective = objective_of(channel, following, [0] * 5, {"g": {4}}, "F g", ended=(3, 4))
        region = region_of(objective, {(0, 1): [(f("0.4"), f("0.6")), (f("0.4"), f("0.6"))]})
        every = robust_bounds(objective, region)
        assert ends(every) == (near(f("2/5")), near(f("3/5")))
        assert every.lower_attained[0] == near(f("12/25"))
        assert every.upper_attained[0] == pytest.approx(0.5, abs=1e-6)
        one = robust_bounds(objective, region, "shared_matrix", Effort(boxes=200, gap=1e-3))
        assert 0.479 - 1e-9 <= one.lower[0] <= 0.48
        assert 0.5 <= one.upper[0] <= 0.501 + 1e-9
        tighter = robust_bounds(objective, region, "shared_matrix", Effort(boxes=4, gap=0))
        assert every.lower[0] < tighter.lower[0] <= 0.48
        assert 0.5 <= tighter.upper[0] < every.upper[0]

    def test_a_matrix_that_attains_the_bound_in_every_state_needs_no_boxes(self):
        objective = two_draws([[1, 2], [1] * 2, [2] * 2], "F g", {"g": {2}})
        region = region_of(objective, {(0, 1): [(f("0.1"), f("0.2")), (f("0.8"), f("0.9"))]})
        one = robust_bounds(objective, region, "shared_matrix", Effort(boxes=0, gap=1e-9))
        assert ends(one) == (near(f("24/25")), near(f("99/100")))


class TestAgainstOtherEngines:
    @pytest.mark.parametrize("formula", ["F p", "G p", "p U q"])
    @pytest.mark.parametrize("seed", range(12))
    def test_the_bounds_are_the_best_of_all_vertices_per_state(self, formula, seed):
        # Every state has a column of its own and these formulas leave one obligation, so a matrix with a vertex in
        # every column is a choice of a vertex in every state, and all of them are tried by the batch engine.
        rng = np.random.default_rng(seed)
        model = random_model(rng, states=6, labels=3, zeros=0.3)
        objective = model.objective(formula)
        values = objective.probabilities(model.all_vertex_rates()).probability
        found = robust_bounds(objective, model.region(objective), effort=BOUNDS_ONLY)
        assert np.all(found.lower <= values.min(axis=0) + 1e-15)
        assert np.all(found.upper >= values.max(axis=0) - 1e-15)
        # At an end with vanishing moves the best may be a limit of matrices in which they do not vanish.
        assert found.lower == pytest.approx(
            np.minimum(values.min(axis=0), near_vertices(model, objective, min)), abs=1e-7
        )
        assert found.upper == pytest.approx(
            np.maximum(values.max(axis=0), near_vertices(model, objective, max)), abs=1e-7
        )

    @pytest.mark.every(3)
    @pytest.mark.parametrize("formula", SIMPLE + RECURRENT)
    def test_storm_finds_the_same_optima_on_the_decision_process(self, formula, storm):
        node = parse_formula(formula)
        text = to_storm(node)
        for seed in range(6):
            model = random_model(np.random.default_rng([seed, len(formula)]), states=6, labels=3, zeros=0.4)
            objective = model.objective(formula)
            found = robust_bounds(objective, model.region(objective), effort=BOUNDS_ONLY)
            assert not found.conservative
            process = model.process()
            least = storm.check(process, [text], operator="Pmin=?")[0].value
            most = storm.check(process, [text], operator="Pmax=?")[0].value
            assert found.lower == pytest.approx(least, abs=1e-9), seed
            assert found.upper == pytest.approx(most, abs=1e-9), seed

    @pytest.mark.parametrize("formula", ["F p", "G p", "p U q", "G F p", "F G p"])
    def test_two_draws_are_two_steps_of_a_decision_process(self, formula, storm, thorough):
        # For these formulas it does not matter that a step is made in two: what is between has the labels of before.
        for seed in range(8 if thorough else 3):
            objective, region, process = twice_drawn(np.random.default_rng([seed, 11]), formula)
            found = robust_bounds(objective, region, effort=BOUNDS_ONLY)
            for bound, operator in ((found.lower, "Pmin=?"), (found.upper, "Pmax=?")):
                optimum = storm.check(process, [to_storm(parse_formula(formula))], operator=operator)[0].value
                assert bound == pytest.approx(optimum, abs=1e-9), (seed, operator)

    @pytest.mark.parametrize("formula", SIMPLE)
    def test_interval_iteration_brackets_the_bounds(self, formula, thorough):
        for seed in range(8 if thorough else 3):
            model = random_model(np.random.default_rng([seed, 7]), states=6, labels=3, zeros=0.0)
            objective = model.objective(formula)
            found = robust_bounds(objective, model.region(objective), effort=BOUNDS_ONLY)
            for greatest, bound in ((False, found.lower), (True, found.upper)):
                low, high = optimal_probabilities(model.process(), parse_formula(formula), greatest)
                assert np.all(low - 1e-9 <= bound)
                assert np.all(bound <= high + 1e-9)

    def test_exact_storm_at_vertices_is_never_outside(self, storm):
        formula = parse_formula("(F p) & (G (q | X p))")
        for seed in range(5):
            rng = np.random.default_rng([seed, 3])
            model = random_model(rng, states=5, labels=2)
            objective = model.objective("(F p) & (G (q | X p))")
            found = robust_bounds(objective, model.region(objective), effort=BOUNDS_ONLY)
            for _ in range(6):
                chain = vertex_chain(model, rng)
                exact = storm.check(chain, [to_storm(formula)], exact=True)[0].fractions
                for k, value in enumerate(exact):
                    assert Fraction(float(found.lower[k])) <= value <= Fraction(float(found.upper[k]))


def twice_drawn(rng, formula, states=5, ended=2):
    """A random objective whose states draw from columns 1 and 2 of their own bin, its region, and the decision
    process in which nature picks a vertex for each draw, in a state of its own."""
    told = tuple(map(frozenset, ("", "a", "b", "ab")))
    reports = told[:3]
    bins = np.repeat(np.arange(states)[:, None], 2, axis=1)
    channel = channel_of(THREE, bins, np.tile([1, 2], (states, 1)), told)
    following = rng.integers(0, states, (states, 4))
    active = range(states - ended)
    true_in = {"p": {states - 1, int(rng.integers(0, states - 2))}, "q": {states - 2}}
    objective = objective_of(
        channel, following, bins[:, 0], true_in, formula, starts=(0, 1), ended=range(states - ended, states)
    )
    bounds = {}
    for place in itertools.product(active, (1, 2)):
        point = rng.multinomial(100, rng.dirichlet(np.full(3, 0.8)))
        spread = rng.integers(0, 25, (2, 3))
        low = np.where(rng.random(3) < 0.4, 0, np.maximum(point - spread[0], 0)).tolist()
        high = np.minimum(point + spread[1], 100).tolist()
        bounds[place] = [(Fraction(a, 100), Fraction(b, 100)) for a, b in zip(low, high, strict=True)]
    needed = {tuple(each) for each in objective.skeleton.columns_needed().tolist()}
    region = region_of(objective, {place: each for place, each in bounds.items() if place in needed})
    choices, labels = [], {name: [s in inside for s in range(states)] for name, inside in true_in.items()}

    def vertices_at(place):
        low, high = zip(*bounds[place], strict=True)
        return vertices([exactly(each) for each in low], [exactly(each) for each in high])

    for state in range(states):
        between = [states + 3 * state + k for k in range(3)]
        choices.append(
            [dict(zip(between, chosen, strict=True)) for chosen in vertices_at((state, 1))]
            if state in active
            else [{state: UNIT}]
        )
    for state, seen in itertools.product(range(states), reports):
        rows = []
        for chosen in vertices_at((state, 2)) if state in active else [(UNIT, 0, 0)]:
            row = {}
            for report, mass in zip(reports, chosen, strict=True):
                target = int(following[state, told.index(seen | report)])
                row[target] = row.get(target, 0) + mass
            rows.append(row)
        choices.append(rows)
        for name, inside in true_in.items():
            labels[name].append(state in inside)
    return objective, region, process_of(choices, labels, (0, 1))


def process_of(choices, labels, starts):
    """A decision process from a list of choices per state, each {successor: billionths}."""
    states = [[{target: mass / UNIT for target, mass in row.items() if mass > 0} for row in rows] for rows in choices]
    return small_chains.process_of(states, {name: np.array(inside) for name, inside in labels.items()}, starts)


def near_vertices(model, objective, pick):
    """The best over matrices a little inside the polytopes, where nothing vanishes that can be positive."""
    rates = model.all_vertex_rates()
    inner = np.zeros_like(rates[0])
    inner[:, :, 0] = rates[0][:, :, 0]
    for state in range(model.size):
        inner[state, :, 1] = np.mean(np.array(model.choices(state)) / UNIT, axis=0)
    found = objective.probabilities((1 - 1e-9) * rates + 1e-9 * inner).probability
    return getattr(found, pick.__name__)(axis=0)


def vertex_chain(model, rng):
    """The chain with a random vertex in every state, exact."""
    choices = map(model.choices, range(model.size))
    rows = [model.row(state, each[rng.integers(len(each))]) for state, each in enumerate(choices)]
    return small_chains.chain_of(rows, model.true_in, sorted(model.starts), exact=True)


@given(
    st.integers(0, 10**6),
    st.sampled_from([*SIMPLE, *RECURRENT]),
    st.sampled_from([1, 2]),
    st.sampled_from(["per_state", "shared_matrix"]),
)
def test_no_matrix_of_the_region_beats_the_bounds(seed, formula, draws, semantics):
    rng = np.random.default_rng(seed)
    objective = random_objective(rng, formula, states=6, bins=2, draws=draws)
    region = random_region(rng, objective, 2, 3)
    effort = Effort(boxes=6, gap=1e-3)
    lower, upper = solutions._sides(objective, region, semantics, effort, ("lower", "upper"))
    rates = np.array([random_member(rng, region) for _ in range(60)])
    result = objective.probabilities(rates)
    assert np.all(lower.bounds <= result.upper + 1e-12)
    assert np.all(upper.bounds >= result.lower - 1e-12)
    assert np.all(lower.bounds <= lower.attained.value + 1e-12)
    assert np.all(upper.attained.value <= upper.bounds + 1e-12)
    for known in (lower.attained, upper.attained):
        assert np.all(region.lower <= np.round(known.masses, 3))
        assert np.all(np.round(known.masses, 3) <= region.upper)
        attained = objective.probabilities(one_side.rates_of(region, known.masses)).probability
        assert np.diag(attained) == pytest.approx(known.value, abs=1e-12)


@given(st.integers(0, 10**6), st.sampled_from([*SIMPLE, *RECURRENT]))
def test_a_region_of_one_matrix_has_bounds_without_width(seed, formula):
    rng = np.random.default_rng(seed)
    objective = random_objective(rng, formula, states=7, bins=2, draws=1 + seed % 2)
    region = random_region(rng, objective, 2, 3, zero=0.4)
    point = greatest_masses(
        rng.normal(size=(6, 3)), *(x.swapaxes(1, 2).reshape(6, 3) for x in (region.lower, region.upper))
    )
    masses = point.reshape(2, 3, 3).swapaxes(1, 2)
    only = Region(region.labels, region.group, masses, masses, region.needed)
    found = robust_bounds(objective, only)
    value = state_values(objective, masses / UNIT).value[objective.product.start]
    assert found.lower == pytest.approx(value, abs=1e-9)
    assert found.upper == pytest.approx(value, abs=1e-9)


@given(st.integers(0, 10**6), st.sampled_from(RECURRENT + SIMPLE))
def test_the_formula_and_its_negation_have_opposite_bounds(seed, formula):
    rng = np.random.default_rng(seed)
    objective = random_objective(np.random.default_rng(seed), formula, states=6)
    negation = random_objective(np.random.default_rng(seed), f"!({formula})", states=6)
    region = random_region(rng, objective, 2, 3)
    found, other = (robust_bounds(each, region, effort=BOUNDS_ONLY) for each in (objective, negation))
    if not (found.conservative or other.conservative):
        assert found.lower == pytest.approx(1 - other.upper, abs=1e-9)
        assert found.upper == pytest.approx(1 - other.lower, abs=1e-9)


def climbed(objective, region, sign):
    """How far matrices are climbed to from the middle of the region."""
    begun = one_side.best_of(objective, region, None, one_side.middle_of(region)[None], sign)
    return one_side.climbed(objective, region, begun, sign)


def test_from_either_side_it_is_climbed_as_far():
    formula, many = "p U (q & X q)", 0
    for seed in range(12):
        objective, negation = (
            random_objective(np.random.default_rng(seed), each, states=8, draws=2)
            for each in (formula, f"!({formula})")
        )
        region = random_region(np.random.default_rng(seed), objective, 2, 3)
        up, down = climbed(objective, region, -1.0), climbed(negation, region, 1.0)
        assert up.value == pytest.approx(1 - down.value, abs=1e-9)
        first = one_side._candidates(
            objective, region, one_side.middle_of(region)[None], np.zeros(1, dtype=int), -1.0
        )
        many += bool(np.any(up.value > one_side.best_of(objective, region, None, first, -1.0).value + 1e-9))
    assert many  # in some of them the first steps are not the last


def test_it_is_climbed_as_long_as_something_is_gained(monkeypatch):
    # Two reports of a in a row, from columns of their own, lead to g; otherwise it is lost.
    bounds = {0: [(f("0.2"), f("0.4")), (f("0.6"), f("0.8"))], 1: [(f("0.1"), f("0.5")), (f("0.5"), f("0.9"))]}
    model = Model(TWO, [[2, 1], [2, 3], [2] * 2, [3] * 2], {"g": {3}}, bounds)
    objective = model.objective("F g")
    region, rounds, candidates = model.region(objective), [], one_side._candidates

    def followed(*given):
        rounds.append(candidates(*given))
        return rounds[-1]

    monkeypatch.setattr(one_side, "_candidates", followed)
    begun = one_side.best_of(objective, region, None, one_side.middle_of(region)[None], 1.0)
    assert begun.value == near(0.7 * 0.7)
    for sign, ends in ((1.0, (0.6, 0.5)), (-1.0, (0.8, 0.9))):
        rounds.clear()
        found = one_side.climbed(objective, region, begun, sign)
        assert found.value == near(ends[0] * ends[1])
        assert (found.masses[0, [0, 1], 1, 1] / UNIT).tolist() == list(ends)
        assert len(rounds) == 2  # in the second nothing is gained
        tried = {tuple(each) for each in (rounds[0][:, [0, 1], 1, 1] / UNIT).round(9).tolist()}
        part = [1, 1 / 2, 1 / 4, 1 / 8, 1 / 16]
        on_the_way = {tuple(round(0.7 + k * (end - 0.7), 9) for end in ends) for k in part}
        assert tried == on_the_way | {(ends[0], 0.7), (0.7, ends[1])}


def test_the_best_of_all_matrices_is_kept_for_each_initial_state():
    # The two states draw from columns of their own; no one matrix is the best for both.
    model = Model(TWO, [[2, 3], [2, 3], [2] * 2, [3] * 2], {"g": {3}}, {0: [(0, 1)] * 2, 1: [(0, 1)] * 2}, (0, 1))
    objective = model.objective("F g")
    region = model.region(objective)
    masses = np.zeros((3, *region.lower.shape))
    for k, rates in enumerate([(0.25, 0.5), (0.5, 0.25), (0.375, 0.375)]):
        masses[k, [0, 1], 1, 1] = np.multiply(rates, UNIT)
        masses[k, :, 0] = UNIT - masses[k, :, 1]
    for sign, best, choice in ((1.0, 0.25, [0, 1]), (-1.0, 0.5, [1, 0])):
        found = one_side.best_of(objective, region, None, masses, sign)
        assert found.value == pytest.approx([best] * 2, abs=1e-12)
        assert found.error.tolist() == pytest.approx([0, 0], abs=1e-12)
        assert np.array_equal(found.masses, masses[choice])
        again = one_side.best_of(objective, region, found, masses[2:], sign)
        assert np.array_equal(again.masses, found.masses)
        nothing = one_side.best_of(objective, region, None, masses[:0], sign)
        assert np.isnan(nothing.value).all()
        assert nothing.masses.shape == found.masses.shape
        assert np.array_equal(one_side.best_of(objective, region, nothing, masses[2:], sign).value, [0.375] * 2)


def test_columns_are_exchanged_one_by_one_up_to_a_size(monkeypatch):
    bounds = {k: [(f("0.2"), f("0.4")), (f("0.6"), f("0.8"))] for k in (0, 1)}
    objective = Model(TWO, [[2, 1], [2, 3], [2] * 2, [3] * 2], {"g": {3}}, bounds).objective("F g")
    region = region_of(objective, {(k, 1): each for k, each in bounds.items()})
    middle, size = one_side.middle_of(region), 2 * objective.state_count
    for limit, count in ((size, 2), (size - 1, 0)):
        monkeypatch.setattr(one_side, "_NUMBERS_FOR_SINGLE_COLUMNS", limit)
        assert len(one_side._single_columns(objective, region, middle, region.lower.astype(float))) == count


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_vertex_to_which_the_probability_changes_fastest_is_tried(sign):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        objective = random_objective(rng, "p U q", states=8, draws=2)
        region = random_region(rng, objective, 2, 3)
        region.lower[0, 1], region.upper[0, 1] = 0, 0  # one report never comes
        region.upper[0, 0] = UNIT
        here = one_side.middle_of(region)
        values = state_values(objective, one_side.rates_of(region, here))
        visits = expected_visits(objective, values)
        for start in (0, 1):
            slope = -sign * gradient(objective, values, visits[start : start + 1]).cells[0]
            tried = one_side._candidates(objective, region, here[None], np.array([start]), sign)
            best = 0.0
            for index, true in np.ndindex(2, 3):
                ends = (each[index, :, true].tolist() for each in (region.lower, region.upper))
                best += max(float(np.dot(slope[index, :, true], vertex)) for vertex in vertices(*ends))
            worth = (slope * tried).sum(axis=(1, 2, 3))
            assert worth.max() == pytest.approx(best, rel=1e-9, abs=1e-3)
            vertex = tried[np.argmax(worth)]  # and the columns of it one by one
            for index, true in np.argwhere(region.needed & np.any(vertex != here, axis=1)).tolist():
                exchanged = here.copy()
                exchanged[index, :, true] = vertex[index, :, true]
                assert np.abs(tried - exchanged).max(axis=(1, 2, 3)).min() < 1


def test_the_mass_of_a_group_stands_on_its_first_label():
    region = SimpleNamespace(group=np.array([1, 0, 1, 2]))
    masses = np.arange(2 * 5 * 3 * 4).reshape(2, 5, 3, 4) * 1e6
    found = one_side.rates_of(region, masses)
    assert found.shape == (2, 5, 4, 4)
    assert np.array_equal(found, masses[..., [1, 0, 0, 2], :] / UNIT * np.array([1, 1, 0, 1])[:, None])


@pytest.mark.parametrize("error", [EngineError, NoAnswerError])
def test_matrices_that_cannot_be_evaluated_are_passed_over(error):
    model = Model(TWO, [[1, 2], [1] * 2, [2] * 2], {"g": {2}}, {0: [(0, 1)] * 2})
    region = model.region(model.objective("F g"))

    def probabilities(rates):
        if np.any(rates[:, 0, 1, 1] == 0.25):
            raise error("too close to singular")
        return SimpleNamespace(probability=rates[:, 0, 1, 1:], error_bound=np.zeros((len(rates), 1)))

    objective = SimpleNamespace(product=SimpleNamespace(start=[0]), probabilities=probabilities)
    masses = np.zeros((4, *region.lower.shape))
    masses[:, 0, 1, 1] = np.multiply([0.5, 0.25, 0.125, 0.75], UNIT)
    for count, least, most in ((4, 0.125, 0.75), (3, 0.125, 0.5), (2, 0.5, 0.5), (1, 0.5, 0.5)):
        assert one_side.best_of(objective, region, None, masses[:count], 1.0).value == [least]
        assert one_side.best_of(objective, region, None, masses[:count], -1.0).value == [most]
    assert np.isnan(one_side.best_of(objective, region, None, masses[1:2], 1.0).value)


def test_without_a_gradient_the_matrices_stay_as_they_are(monkeypatch):
    objective = random_objective(np.random.default_rng(3), "F q", states=6)
    region = random_region(np.random.default_rng(3), objective, 2, 3)
    begun = one_side.best_of(objective, region, None, one_side.middle_of(region)[None], 1.0)

    def singular(*_):
        raise EngineError("singular")

    monkeypatch.setattr(one_side, "state_values", singular)
    for sign in (1.0, -1.0):
        assert np.array_equal(one_side.climbed(objective, region, begun, sign).masses, begun.masses)


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from(SIMPLE + RECURRENT))
def test_a_part_of_a_region_has_bounds_within(seed, formula):
    rng = np.random.default_rng(seed)
    objective = random_objective(rng, formula, states=6, draws=1 + seed % 2)
    region = random_region(rng, objective, 2, 3)
    middle = np.floor(inner_masses(*(x.swapaxes(1, 2).reshape(6, 3) for x in (region.lower, region.upper))))
    middle = middle.reshape(2, 3, 3).swapaxes(1, 2).astype(np.int64)
    lower = (region.lower + middle) // 2
    upper = np.maximum((region.upper + middle + 1) // 2, lower)
    small = Region(region.labels, region.group, lower, upper, region.needed)
    outer, inner = (robust_bounds(objective, each, effort=BOUNDS_ONLY) for each in (region, small))
    if not inner.conservative:
        assert np.all(outer.lower <= inner.lower + 1e-12)
        assert np.all(outer.upper >= inner.upper - 1e-12)


def test_inner_masses_lie_within_and_give_some_to_whatever_can_have_any():
    rng = np.random.default_rng(9)
    for _ in range(200):
        lower = rng.integers(0, 5, 3) * (rng.random(3) < 0.6)
        upper = lower + rng.integers(0, 9, 3)
        if not lower.sum() <= 10 <= upper.sum():
            continue
        points = np.array(vertices(lower.tolist(), upper.tolist(), 10))
        ends = (each[None] * (UNIT // 10) for each in (lower, upper))
        inner = inner_masses(*ends)[0] / (UNIT // 10)
        assert inner.sum() == pytest.approx(10, abs=1e-9)
        least, most = points.min(axis=0), points.max(axis=0)
        assert np.all((inner >= least - 1e-9) & (inner <= most + 1e-9))
        assert np.all((inner > least + 1e-9) == (most > least))
        assert np.all((inner < most - 1e-9) == (most > least))


class TestStep:
    @given(
        st.lists(st.tuples(st.integers(0, UNIT), st.integers(0, UNIT), st.integers(-5, 5)), min_size=2, max_size=4)
    )
    def test_the_greedy_masses_are_a_best_vertex(self, columns):
        low = np.array([min(a, b) for a, b, _ in columns]) // len(columns)
        high = np.array([max(a, b) for a, b, _ in columns])
        high[0] = UNIT
        values = np.array([float(v) for _, _, v in columns])
        chosen = greatest_masses(values[None], low[None], high[None])[0]
        assert chosen.sum() == UNIT
        assert np.all((low <= chosen) & (chosen <= high))
        best = max(sum(v * m for v, m in zip(values, point, strict=True)) for point in vertices(low, high))
        assert (chosen * values).sum() == best

    @pytest.mark.parametrize("labels", [2, 3, 4])
    def test_the_order_of_the_groups_gives_the_masses_of_many_rows(self, labels):
        # Values are whole numbers, so that many are equal; the optimum is then the same, and so are the masses.
        rng = np.random.default_rng(labels)
        names = [f"{number}" for number in range(labels)]
        model = Model(
            ((), *((name,) for name in names[1:])),
            [list(range(labels)), *([k] * labels for k in range(1, labels))],
            {"g": {1}},
            {0: [(f(f"0.0{low}"), f(f"0.{low + 5}")) for low in range(labels)]},
        )
        _, step = model.stepped("F g")
        assert step.lower.shape[1] == labels
        column = rng.integers(0, len(step.lower), 70_000)
        values = rng.integers(-2, 3, (len(column), labels)).astype(float)
        expected = greatest_masses(values, step.lower[column], step.upper[column])
        assert np.array_equal(step.best_masses(values, column), expected)

    @pytest.mark.parametrize("seed", range(6))
    @pytest.mark.parametrize("cost", [0.0, 2.0**-20])
    def test_a_search_ends_where_no_choice_is_better(self, seed, cost):
        """States 2..39 lead on and back, down to 0 or 1 in the end: the value of each is that of its best vertex."""
        rng = np.random.default_rng(seed)
        size = 40
        following = [[0] * 3, [1] * 3, *([rng.integers(s), *rng.integers(size, size=2)] for s in range(2, size))]
        columns = {s: [(f("0.05"), 1), (f(f"0.{rng.integers(5)}"), 1), (0, 1)] for s in range(2, size)}
        model = Model(((), ("a",), ("b",)), following, {"g": {0}}, columns, tuple(range(size)))
        _, step = model.stepped("F g")
        target, unknown = np.arange(step.state_count) == 1, np.arange(3, step.state_count)
        nodes, costs = make_nodes(step, np.full(step.state_count, -1)), np.full(step.state_count, cost)
        value = PolicySearch(step, nodes, unknown).optimum(target.astype(float), costs)
        assert value[1] == 1
        moved = step.following != step.owner[:, None]
        gained = np.where(moved, value[step.following] - value[step.owner, None] + cost, 0)
        gain, _ = step.greatest(gained[unknown], unknown)
        assert np.all(gain[value[unknown] < 1] <= 1e-12)  # those that the costs raise to 1 stay there
        assert np.all(np.abs(gain) <= cost + 1e-12)

    def test_a_proof_has_a_value_of_1_in_every_target_and_a_number_everywhere(self):
        model = Model(TWO, [[1, 2], [1] * 2, [2] * 2], {"g": {2}}, {0: [(0, f("0.4")), (f("0.6"), 1)]})
        _, step = model.stepped("F g")
        target = np.arange(4) == 1  # states 0 and 1 have ended, state 2 begins
        for value, proven in (
            ([0, 1, 1, 0], True), ([0, 0.5, 0.5, 0], False), ([0, 0.5, 1, 0], False), ([0, 1, np.inf, 0], False)
        ):  # fmt: skip
            assert solve.is_proven(step, np.array(value, dtype=float), target) is proven
        for value, proven in (([0, 1, 1, 0], True), ([0, 1, np.inf, 0], False)):
            assert solve.is_proven(step, np.array(value), np.arange(4) == 2) is proven  # to which nothing leads

    def test_differences_are_widened_by_twice_what_they_and_it_are_rounded_by(self):
        rng, given = np.random.default_rng(4), []
        step = SimpleNamespace(
            following=rng.integers(0, 50, (50, 3)),
            owner=np.arange(50),
            upper_bound=lambda values: given.append(values) or values.max(axis=1),
        )
        value = rng.random(50) * 10.0 ** rng.integers(-9, 1, 50)
        solve._unproven(step, value, np.zeros(50, dtype=bool))
        for ahead, after, here in zip(given[0], value[step.following], value, strict=True):
            for found, exact in zip(ahead, (Fraction(each) - Fraction(here) for each in after), strict=True):
                assert 0 <= Fraction(found) - exact <= abs(exact) * Fraction(6, 2**53)
        step.following, step.owner = np.array([[1]]), np.array([0])
        solve._unproven(step, np.array([1.0, 2.0]), np.zeros(2, dtype=bool))
        assert given[1] == 1 + 4 * 2.0**-53

    def test_a_state_that_stays_draws_from_no_column(self):
        model = Model(TWO, [[1, 2], [1] * 2, [2] * 2], {"g": {2}}, {0: [(0, f("0.4")), (f("0.6"), 1)]})
        objective = model.objective("F g")
        drawing = np.flatnonzero(uncertain_step(objective, model.region(objective)).columns >= 0)
        assert drawing.tolist() == np.flatnonzero(objective.product.state == 0).tolist()

    def test_the_bound_rounded_up_is_above_the_exact_optimum(self):
        rng = np.random.default_rng(5)
        model = Model(
            THREE,
            [[1, 2, 3], *([k] * 3 for k in range(1, 4))],
            {"g": {1}},
            {0: [(f("0.1"), f("0.7")), (f("0.2"), f("0.5")), (0, f("0.6"))]},
        )
        objective, step = model.stepped("X g | X X X g")
        state = int(objective.product.start[0])
        points = model.choices(0)
        for _ in range(300):
            values = rng.normal(size=(1, 3)) * 10.0 ** rng.integers(-12, 3, 3)
            exact = max(
                sum(Fraction(float(v)) * Fraction(m, UNIT) for v, m in zip(values[0], point, strict=True))
                for point in points
            )
            bound = Fraction(float(step.upper_bound(values, np.array([state]))[0]))
            size = sum(abs(Fraction(float(v))) for v in values[0])
            assert exact <= bound <= exact + size / 10**14

    def test_the_bound_allows_for_four_times_the_roundings(self):
        # 1/2 * 1 + 1/2 * 1 in two groups; 2 + 4 of them, of 2^-53 each.
        model = Model(TWO, [[1, 2], [1] * 2, [2] * 2], {"g": {2}}, {0: fixed("0.5", "0.5")})
        objective, step = model.stepped("X g")
        at = np.array([int(objective.product.start[0])])
        assert step.upper_bound(np.ones((1, 2)), at).tolist() == [1 + 24 * 2.0**-53]
        assert step.upper_bound(np.array([[1.0, -1.0]]), at).tolist() == [24 * 2.0**-53]
        assert step.upper_bound(np.zeros((1, 2)), at).tolist() == [0]

    @pytest.mark.parametrize(
        ("bounds", "usable"),
        [
            ([(0, 1), (0, NANO)], [[True, True], [True, False], [False, False]]),
            ([(0, 1), (0, 0)], [[True, False], [True, False], [False, False]]),
            ([(1, 1), (0, 1)], [[True, False], [True, False], [False, False]]),
            ([(1 - NANO, 1), (0, 1)], [[True, True], [True, False], [False, False]]),
            ([(0, 1 - NANO), (0, 1)], [[True, True], [False, False], [False, True]]),
        ],
    )
    def test_moves_at_the_ends_of_intervals(self, bounds, usable):
        """One billionth is mass that a group can have; what may be 0 has none where the other gets all."""
        model = Model(TWO, [[1, 2], [1] * 2, [2] * 2], {"g": {2}}, {0: bounds})
        objective, step = model.stepped("X g")
        at = np.array([int(objective.product.start[0])])
        for inside, expected in zip(([[True, True]], [[True, False]], [[False, True]]), usable, strict=True):
            assert step.usable(np.array(inside), at).tolist() == [expected]

    def test_what_is_left_of_1_can_be_given_to_one_group_beside_others_that_have_none(self):
        bounds = [(1 - NANO, 1), (0, 1), (0, 1)]
        model = Model(THREE, [[1, 2, 3], *([k] * 3 for k in range(1, 4))], {"g": {2}}, {0: bounds})
        objective, step = model.stepped("X g")
        at = np.array([int(objective.product.start[0])])
        for inside in ([True, True, False], [True, True, True]):
            assert step.usable(np.array([inside]), at).tolist() == [inside]

    def test_end_components_shrink_to_where_nature_can_stay(self):
        # 0 and 1 alternate, but 1 must give 1/10 to the way out; 2 and 3 alternate and may stay; 4 has ended.
        model = Model(
            TWO,
            [[1, 1], [0, 4], [3, 4], [2, 2], [4, 4]],
            {"g": {4}},
            {
                0: [(0, 1), (0, 1)],
                1: [(0, f("0.9")), (f("0.1"), 1)],
                2: [(0, 1), (0, f("0.5"))],
                3: [(0, 1), (0, 1)],
            },
            starts=(0, 2),
        )
        objective = model.objective("F (g & X !g)")
        of = end_components(uncertain_step(objective, model.region(objective)))
        state = objective.product.state
        by_state = {int(s): int(c) for s, c in zip(state, of, strict=True) if s >= 0}
        assert by_state[0] == by_state[1] == -1
        assert by_state[2] == by_state[3] >= 0
        assert by_state[4] >= 0
        assert by_state[4] != by_state[2]

    def test_a_region_of_another_planner_is_refused(self):
        model = Model(TWO, [[0, 1], [1, 1]], {"g": {1}}, {0: [(0, 1), (0, 1)]})
        objective = model.objective("F g")
        region = model.region(objective)
        labels = (frozenset(), frozenset("b"))
        with pytest.raises(ValueError, match="labels or groups"):
            robust_bounds(objective, Region(labels, region.group, region.lower, region.upper, region.needed))
        with pytest.raises(ValueError, match="fewer bins"):
            robust_bounds(
                objective,
                Region(region.labels, region.group, region.lower[:0], region.upper[:0], region.needed[:0]),
            )


def test_a_value_that_a_matrix_beats_is_an_error_of_the_program(monkeypatch):
    model = Model(TWO, [[1, 2], [1] * 2, [2] * 2], {"g": {2}}, {0: [(f("0.2"), f("0.4")), (f("0.6"), f("0.8"))]})
    objective = model.objective("F g")
    region = model.region(objective)
    monkeypatch.setattr("verifier.analysis.robust.solutions.claimed_bound", lambda side, value: 0.7)
    with pytest.raises(EngineError, match=r"lower bound at initial state 0 is 0\.7, and a matrix"):
        robust_bounds(objective, region)


def test_unknown_semantics_and_efforts_are_refused():
    model = Model(TWO, [[0, 1], [1, 1]], {"g": {1}}, {0: [(0, 1), (0, 1)]})
    objective = model.objective("F g")
    region = model.region(objective)
    with pytest.raises(ValueError, match="semantics"):
        robust_bounds(objective, region, "some_state")
    with pytest.raises(ValueError, match="semantics"):
        robust_bounds(objective, region, "shared_matrix", BOUNDS_ONLY)
    with pytest.raises(ValueError, match="number of boxes"):
        Effort(boxes=-1)


def ten_classes():
    """Three objects of ten classes are seen at once, and the planner asks about three of the classes.

    In a corridor of 8 cells it moves by what is reported: on, back, or not at all, and with b and c it is lost. The
    rate of each report has a box of +-0.03 around random ones, in four bins of distance.
    """
    rng = np.random.default_rng(4)
    labels = ((), *((name,) for name in "abcdefghi"))
    told = tuple(frozenset(each) for n in range(4) for each in itertools.combinations("abc", n))
    cells, bins, columns = 8, 4, [1, 2, 3]
    channel = channel_of(labels, [[b] * 3 for b in range(bins)], [columns] * bins, told)
    good, lost = cells, cells + 1
    moves = {"": -1, "a": 1, "b": 0, "c": -2, "ab": 2, "ac": 0, "abc": 1}
    following = [
        [lost if each == {"b", "c"} else min(max(cell + moves["".join(sorted(each))], 0), good) for each in told]
        for cell in range(cells)
    ]
    following += [[good] * len(told), [lost] * len(told)]
    row = [min(cell * bins // cells, bins - 1) for cell in range(cells)] + [0, 0]
    objective = objective_of(channel, following, row, {"g": {good}}, "F g", ended=(good, lost))
    group = groups_of(channel)
    lower, upper = np.zeros((bins, 4, 10), dtype=np.int64), np.full((bins, 4, 10), UNIT)
    for index, column in itertools.product(range(bins), columns):
        weights = np.full(10, 0.5)
        weights[0], weights[column] = 1, 8
        point = rng.dirichlet(weights)
        for number in range(4):
            rate = point[group == number].sum()
            lower[index, number, column] = exactly(Fraction(round(max(rate - 0.03, 0) * 1000), 1000))
            upper[index, number, column] = exactly(Fraction(round(min(rate + 0.03, 1) * 1000), 1000))
    needed = np.zeros((bins, 10), dtype=bool)
    needed[:, columns] = True
    return objective, Region(channel.labels, group, lower, upper, needed), row, following


def aggregated(objective, region, row, following):
    """The bounds with one interval for every transition: the least and the greatest it can have on its own."""
    step = uncertain_step(objective, region)
    states = [k for k, each in enumerate(row) if following[k][0] != k or len(set(following[k])) > 1]
    product_of = {int(s): k for k, s in enumerate(objective.product.state) if s >= 0}
    successors = {k: sorted(set(following[k])) for k in states}
    most = max(map(len, successors.values()))
    names = ((), *((name,) for name in "abcdefghi"))[:most]
    bounds, moves = {}, []
    for k in range(len(following)):
        if k not in successors:
            moves.append([k] * most)
            continue
        at = np.array([product_of[k]])
        moves.append((successors[k] + [successors[k][-1]] * most)[:most])
        bounds[k] = []
        for target in successors[k]:
            led = (np.array(following[k]) == target)[None].astype(float)
            least, greatest = 1 - step.upper_bound(1 - led, at)[0], step.upper_bound(led, at)[0]
            bounds[k].append((Fraction(int(least * UNIT), UNIT), Fraction(min(int(greatest * UNIT) + 1, UNIT), UNIT)))
        bounds[k] += [(0, 0)] * (most - len(bounds[k]))
    model = Model(names, moves, {"g": {len(following) - 2}}, bounds)
    return bounds_of(model, "F g", effort=BOUNDS_ONLY)


def test_intervals_on_the_columns_are_tighter_than_on_the_transitions():
    objective, region, row, following = ten_classes()
    split = robust_bounds(objective, region)
    plain = aggregated(objective, region, row, following)
    print(
        f"\nten classes, three objects: columns [{split.lower[0]:.4f}, {split.upper[0]:.4f}], transitions "
        f"[{plain.lower[0]:.4f}, {plain.upper[0]:.4f}], attained by one matrix "
        f"[{split.lower_attained[0]:.4f}, {split.upper_attained[0]:.4f}]"
    )
    assert plain.lower[0] + 0.005 < split.lower[0] <= split.lower_attained[0] + 1e-9
    assert split.upper_attained[0] - 1e-9 <= split.upper[0] < plain.upper[0] - 0.01


def test_both_sides_share_components():
    model = Model(TWO, [[0, 1], [1, 1]], {"g": {1}}, {0: [(0, 1), (0, 1)]})
    objective = model.objective("F g")
    lower, upper = bound_sides(objective, model.region(objective), ("lower", "upper"))
    start = int(objective.product.start[0])
    # Nature can stay in state 0: that fails the formula, so it is a target for the lower side only.
    assert lower.target[start]
    assert not upper.target[start]
    assert upper.nodes.component[start]


@pytest.mark.parametrize(
    ("lower", "upper", "allowed", "supports"),
    [
        ([1, 0, 0], [UNIT, 5, UNIT], [0, 1, 2], [(0,), (0, 1), (0, 2), (0, 1, 2)]),
        ([1, 0, 0], [UNIT - 6, 5, 1], [0, 1, 2], [(0, 1, 2)]),
        ([1, 0, 0], [UNIT - 6, 5, 1], [0, 1], []),
        ([1, 0, 0], [UNIT] * 3, [1, 2], []),  # the first one has some mass
        ([0, 0, 0], [UNIT - 1, 1, 0], [0, 1, 2], [(0, 1)]),
        ([0, 0, 0], [0, UNIT, UNIT], [0, 1, 2], [(1,), (2,), (1, 2)]),
        ([UNIT - 1, 1, 0], [UNIT] * 3, [0, 1, 2], [(0, 1)]),  # nothing is left for the third
    ],
)
def test_groups_that_can_have_all_the_mass(lower, upper, allowed, supports):
    assert list(robust_graph._supports(lower, upper, allowed)) == supports


def test_draws_are_from_the_columns_of_the_channel():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        bins = rng.integers(0, 2, (3, 2))
        bins[0] = 0, 1
        columns = rng.integers(-1, 3, (3, 2)) if seed else np.array([[0, 0], [-1, 0], [0, -1]])
        channel = channel_of(THREE, bins, columns)
        following = rng.integers(0, 5, (5, len(channel.observations)))
        objective = objective_of(channel, following, [0, 1, 2, 0, 1], {"p": {3}}, "G F p", (0, 1, 2), (4,))
        region = random_region(rng, objective, 2, 3)
        step, expected, after = uncertain_step(objective, region), [], {0}
        for row in objective.row.tolist():
            drawn = [] if row < 0 else zip(bins[row].tolist(), columns[row].tolist(), strict=True)
            expected.append([place * 3 + true if true >= 0 else -1 for place, true in drawn] or [-1, -1])
            if row >= 0 and columns[row, 0] >= 0:
                after |= set(channel.then[0, channel.told[row, 0]].tolist())
        assert step.columns.tolist() == expected
        assert step.before == ((0,), tuple(sorted(after)))
        for number, (place, true) in enumerate(np.ndindex(2, 3)):
            assert np.array_equal(step.lower[number], region.lower[place, :, true])
            assert np.array_equal(step.upper[number], region.upper[place, :, true])
        few = Region(region.labels, region.group, region.lower[:1], region.upper[:1], region.needed[:1])
        with pytest.raises(ValueError, match="fewer bins"):
            uncertain_step(objective, few)


def test_what_cannot_be_told_is_never_before_a_draw():
    # That a and b were both reported is no observation.
    channel = channel_of(THREE, np.zeros((1, 3)), np.ones((1, 3)), [frozenset(each) for each in THREE])
    objective = objective_of(channel, [[0, 1, 1], [1] * 3], [0, 0], {"p": {1}}, "F p", (0,), (1,))
    step = uncertain_step(objective, random_region(np.random.default_rng(0), objective, 1, 3))
    assert channel.then[1, 2] == -1
    assert step.before == ((0,), (0, 1, 2), (0, 1, 2))


@pytest.mark.parametrize(
    ("bounds", "attained", "outcome"),
    [
        ((0.2, 0.8), (0.2, 0.8), False),
        ((0.2, 0.8), (0.5, 0.8), True),  # in "shared_matrix" either end may be further out than need be
        ((0.2, 0.8), (0.2, 0.5), True),
        ((0.2, 0.8), (0.1, 0.8), "the robust lower bound"),
        ((0.2, 0.8), (0.2, 0.9), "the robust upper bound"),
    ],
)
def test_bounds_where_steps_are_counted_hold_what_is_attained(bounds, attained, outcome, monkeypatch):
    objective = Model(TWO, [[1, 2], [1] * 2, [2] * 2], {"g": {2}}, {0: [(0, 1), (0, 1)]}).objective("F g")
    region = region_of(objective, {(0, 1): [(0, 1), (0, 1)]})

    def side_of(given, region, side, attained):
        assert attained
        k = ("lower", "upper").index(side)
        known = one_side.Attained(ends[k], np.zeros(1), np.zeros((1, *region.lower.shape)))
        return one_side.OneSide(np.array(bounds[k : k + 1]), known, wide[k])

    ends = [np.array([each]) for each in attained]
    monkeypatch.setattr(solutions, "counted_side", side_of)
    monkeypatch.setattr(solutions, "StepCount", Objective)
    each_wide = [(False, False), (True, False), (False, True)]
    for semantics, wide in itertools.product(("per_state", "shared_matrix"), each_wide):
        if isinstance(outcome, str):
            with pytest.raises(EngineError, match=outcome):
                robust_bounds(objective, region, semantics)
            continue
        found = robust_bounds(objective, region, semantics)
        assert (found.lower[0], found.upper[0]) == bounds
        assert (found.lower_attained[0], found.upper_attained[0]) == attained
        assert found.conservative == (any(wide) or (outcome and semantics == "shared_matrix"))


@pytest.mark.parametrize("seed", range(24))
def test_a_step_is_that_of_its_definition(seed):
    rng = np.random.default_rng(seed)
    step = random_step(rng)
    rows, size = len(step.owner), step.following.shape[1]
    values = rng.normal(size=(rows, size)) * 10.0 ** rng.integers(-3, 2, (rows, size))
    inside, some = rng.random((rows, size)) < 0.7, np.array([4, 1, 1])
    optimum, masses = step.greatest(values)
    bound, weights, usable = step.upper_bound(values), step.weights(masses), step.usable(inside)
    inner, everywhere = step.inner_weights(), step.usable(np.ones_like(inside))
    for row in range(rows):
        exactly = OfOneRow(step, row)
        best, most = exactly.best(values[row]), Fraction(float(np.abs(values[row]).max()))
        assert abs(Fraction(float(optimum[row])) - best) <= most / 10**14
        assert best <= Fraction(float(bound[row])) <= best + most / 10**13
        chances = exactly.chances(masses)
        assert weights[row] == pytest.approx(chances.astype(float), abs=1e-15)
        assert sum(chances) == 1
        assert (
            abs(sum(c * Fraction(float(v)) for c, v in zip(chances, values[row], strict=True)) - best)
            <= most / 10**14
        )
        ends = exactly.ends()
        allowed = frozenset(np.flatnonzero(inside[row]).tolist())
        assert set(np.flatnonzero(usable[row]).tolist()) == frozenset().union(
            *(each for each in ends if each <= allowed)
        )
        assert set(np.flatnonzero(everywhere[row]).tolist()) == frozenset().union(*ends)
        assert np.array_equal(inner[row] > 0, everywhere[row])
    assert inner.sum(axis=1) == pytest.approx(np.ones(rows), abs=1e-12)
    for whole, part in (
        (optimum, step.greatest(values[some], some)[0]),
        (bound, step.upper_bound(values[some], some)),
        (usable, step.usable(inside[some], some)),
        (inner, step.inner_weights(some)),
        (weights, step.weights({place: each[some] for place, each in masses.items()}, some)),
    ):
        assert np.array_equal(part, whole[some])


def test_moves_that_nature_can_make_by_hand():
    # Group 0 is told as report 1 in the first row, as 0 or 1 in the second, group 1 as report 2 in both.
    told = Told(
        np.array([0, 1]),
        np.array([[0], [1]]),
        np.array([[[1, 2], [0, 0]], [[0, 2], [1, 2]]]),
        np.array([[1, 0], [1, 2]]),
        np.array([[0, 1, 2]] * 3),
    )
    lower, upper = np.array([[0, 1]]), np.array([[UNIT - 1, UNIT]])
    rows, ones = np.zeros((2, 1), dtype=np.int64), np.ones((2, 1))
    step = UncertainStep(np.zeros((2, 3), int), ones, rows, lower, upper, told, told.kind, ((0,),), np.arange(2))
    for inside, moves in (
        ([True, True, True], [[False, True, True], [True, True, True]]),
        ([False, True, True], [[False, True, True], [False, False, True]]),  # nothing of group 0 in the second row
        ([True, True, False], [[False] * 3] * 2),  # some of group 1 there must be
        ([True, False, True], [[False, False, True]] * 2),
    ):
        assert step.usable(np.array([inside] * 2)).tolist() == moves


@pytest.mark.parametrize(
    ("columns", "kind", "alone"),
    [
        ([0, 1], [0, 1], None),
        ([0, 1], [1, 1], 1),
        ([0, -1], [0, 1], 0),  # what is no draw is of no kind
        ([-1, 1], [0, 1], 1),
        ([-1, -1], [0, 1], None),
        ([0, 0], [2, 2], None),  # has two ways
    ],
)
def test_groups_lead_where_the_kind_of_each_row_says(columns, kind, alone):
    """By hand: kind 0 tells groups 0 and 1 as themselves, kind 1 the other way round, kind 2 either way."""
    told = Told(
        np.arange(2),
        np.array(kind)[:, None],
        np.array([[[0, 1], [0, 0]], [[1, 0], [0, 0]], [[0, 1], [1, 0]]]),
        np.array([[1, 0], [1, 0], [1, 1]]),
        np.array([[0, 1]] * 2),
    )
    ends, drawn = np.array([[0, 0]] * 2), np.array(columns)[:, None]
    step = UncertainStep(
        np.zeros((2, 2), int), np.ones((2, 1)), drawn, ends, ends + UNIT, told, told.kind, ((0,),), np.arange(2)
    )
    assert step._alone == (alone,)
    expected = [[[3.0, 5.0], [5.0, 3.0], [4.0, 4.0]][k] for k in kind]
    for behind, column, row in zip(
        step.behind(np.array([[3.0, 5.0]] * 2), 0, 0).tolist(), columns, expected, strict=True
    ):
        assert column < 0 or behind == row


@pytest.mark.parametrize(
    ("often", "kind", "motion", "roundings"),
    [
        ([[1, 0], [1, 1]], [0, 0], [[1.0]] * 2, 6),  # the sum over two groups, and 4 more
        ([[1, 0], [1, 1]], [1, 1], [[1.0]] * 2, 12),  # and the mean over two ways
        ([[1, 0], [1, 1]], [0, 1], [[1.0]] * 2, 12),
        ([[1], [1]], [0, 1], [[1.0]] * 2, 6),
        ([[1], [1]], [0, 1], [[0.5, 0.5]] * 2, 12.5),  # the mean over two outcomes, whose chances are rounded
    ],
)
def test_the_bound_allows_for_four_times_the_roundings_of_every_mean(often, kind, motion, roundings):
    ways, rows = len(often[0]), np.zeros((2, 1), dtype=np.int64)
    report, then = np.array([[[0, 1]] * ways] * 2), np.array([[0, 1]] * 2)
    told = Told(np.array([0, 1]), np.array(kind)[:, None], report, np.array(often), then)
    half = np.full((1, 2), UNIT // 2)
    following = np.zeros((2, 2 * len(motion[0])), int)
    step = UncertainStep(following, np.array(motion), rows, half, half, told, told.kind, ((0,),), np.arange(2))
    for scale in (1.0, 0.0):
        expected = scale * (1 + 4 * roundings * 2.0**-53)
        assert step.upper_bound(np.full(following.shape, scale)).tolist() == [expected] * 2
    means = 1 if roundings == 6 else 2  # each of which may lose what is below the smallest doubles
    assert step.upper_bound(np.full(following.shape, 2.0**-1060)) == pytest.approx(
        [means * 2.0**-1000] * 2, rel=1e-9, abs=0
    )


def test_reports_of_rows_with_fewer_draws_than_others():
    """By hand: each of two draws reports nothing or a, or surely a; the others are no draws."""
    columns = [[1, 1], [-1, 1], [1, -1], [-1, -1]]
    channel = channel_of(TWO, [[0, 1]] * 4, columns)
    following = [[4, 0], [4, 1], [4, 2], [4, 3], [4, 4]]
    objective = objective_of(channel, following, [0, 1, 2, 3, 0], {"p": {4}}, "F p", (0, 1, 2, 3), (4,))
    step = uncertain_step(objective, region_of(objective, {(0, 1): [(0, 1), (0, 1)], (1, 1): [(0, 0), (1, 1)]}))
    nothing, told = (channel.observations.index(frozenset(each)) for each in ("", "a"))
    either, every = {frozenset({nothing}), frozenset({told}), frozenset({nothing, told})}, np.ones(2, dtype=bool)
    for state, expected in enumerate(({frozenset({told})}, {frozenset({told})}, either, {frozenset({nothing})})):
        (row,) = step.rows_of(objective.product.start[[state]]).tolist()
        assert robust_graph._reports(step, row, 0, 0, every, 9) == expected


def test_where_all_choices_are_worth_the_same_nature_chooses_to_move_on():
    # Reporting nothing stays in state 0 and a leads to state 1, from where the goal is reached with 9/10: so it is
    # from 0, whatever a's rate, unless that is 0. She makes it as great as it may be, 4/5.
    model = Model(
        TWO,
        [[0, 1], [3, 2], [2, 2], [3, 3]],
        {"g": {2}},
        {0: [(f("0.2"), 1), (0, f("0.8"))], 1: fixed("0.1", "0.9")},
    )
    objective = model.objective("F g")
    (found,) = bound_sides(objective, model.region(objective), ("upper",), [objective.product.start])
    chosen = common_choices(found, found.reached.steps[0])
    for rates in (chosen.mean, chosen.best):
        assert rates[0, :, 1].tolist() == [UNIT // 5, UNIT * 4 // 5]


def test_the_published_matrices(root):
    # Within 10 m YOLOv3 saw 31 of 158 pedestrians. The planner "correct" stops exactly if it sees one there, so the
    # bounds are the ends of Clopper and Pearson for 31 of 158, alpha divided among the events of the chain.
    options = RunOptions(selection=Selection(settings={"vmax": 3}, planners=("correct",), environments=("ped",)))
    inputs = read_inputs(root / "specs/car_pedestrian.ltl", root / "examples/nuscenes_yolov3_class.json", options)
    study = Study.of(inputs, options)
    (case,) = study.cases
    skeleton, data = case.skeleton, study.measured
    index = [each.name for each in study.requirements].index("stops_for_pedestrians")
    objective = case.objective(index)
    region = confidence_region(skeleton, data)
    tail = 0.05 / 2 / len(events_of(skeleton, data))
    found = robust_bounds(objective, region)
    assert found.lower == pytest.approx(beta.ppf(tail, 31, 158 - 31 + 1), abs=1e-8)
    assert found.upper == pytest.approx(beta.ppf(1 - tail, 31 + 1, 158 - 31), abs=1e-8)
    assert found.lower_attained == pytest.approx(found.lower, abs=1e-8)
    assert found.upper_attained == pytest.approx(found.upper, abs=1e-8)


def test_choices_in_a_component_are_tried_once_for_all_regions_that_allow_them(tmp_path, monkeypatch):
    """Five cells in a circle and a clock: 64 combinations, whatever rates a shift allows (`run` asked 16 times)."""
    spec, matrices = write_cyclic(tmp_path, 45)
    tried = []
    values = robust_graph._bottom_values
    monkeypatch.setattr(robust_graph, "recurrences", lambda *_: None)  # what is said of these needs no combinations
    monkeypatch.setattr(robust_graph, "_bottom_values", lambda *found: tried.append(1) or values(*found))
    assert main(["run", str(spec), "--cm", str(matrices), "--draws", "20"]) in (0, 1, 3)
    assert 0 < len(tried) <= 4 * 64


def test_bounds_that_are_none_and_efforts_that_are_none_are_refused():
    def bounds(lower, upper):
        ends = [np.array(each) for each in (lower, upper)]
        return RobustBounds(*ends, *ends, "per_state", False, ())

    for lower, upper in (((0.0, 1.0), (0.0, 1.0)), ((0.25, 0.0), (0.5, 1.0))):
        assert bounds(lower, upper).lower[0] == lower[0]
    for wrong in ((-0.25, 0.5), (0.5, 0.25), (0.5, 1.25), (np.nan, 1.0), (0.0, np.nan)):
        with pytest.raises(ValueError, match="0 <= lower <= upper <= 1"):
            bounds((0.25, wrong[0]), (0.5, wrong[1]))
    for boxes, gap in ((0, 0.0), (0, 1.0), (1, 0.5)):
        assert Effort(boxes, gap).boxes == boxes
    for boxes, gap in ((-1, 0.5), (1, -0.5), (1, 1.5), (1, np.nan)):
        with pytest.raises(ValueError, match="the number of boxes is 0 or more"):
            Effort(boxes, gap)
