"""Violating runs: by hand with exact fractions, against every path of small chains, and against Storm's generator."""

from __future__ import annotations

import heapq
import json
import math
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_objectives import channel_of, drawing_twins, objective_of, random_objective, random_rates
from violating_runs import counterexamples

from verifier.analysis.counterexamples import replay as replaying
from verifier.analysis.counterexamples.replay import (
    Replay,
    _any_continuation,
    _check_steps,
    _Letters,
    _wandering,
    replay,
)
from verifier.analysis.counterexamples.runs import (
    CheapestWalks,
    exact_entries,
    exact_probability,
    prospects,
    violation_probability,
    with_exact,
)
from verifier.analysis.sensitivity.adjoint import state_values
from verifier.base.errors import EngineError
from verifier.language.expressions.syntax import Name
from verifier.language.ltl import parse_formula
from verifier.language.ltl.progression import REJECT
from verifier.perception.confusion import rates as rates_of

NOTHING, A, B = frozenset(), frozenset("a"), frozenset("b")


def counts_of(*columns):
    """(1, labels, labels) counts whose first columns are given; the others have one item of nothing."""
    size = len(columns[0])
    counts = np.zeros((1, size, size), dtype=np.int64)
    counts[0, 0, :] = 1
    for k, column in enumerate(columns):
        counts[0, :, k] = column
    return counts


# The cheapest walks of a graph.


def walks_by_force(sources, targets, cost, goal, start, count):
    """The `count` cheapest walks, by best-first search over all prefixes; sums of exact numbers."""
    useful = goal.copy()
    for _ in range(len(goal)):
        useful[sources[useful[targets]]] = True
    heap, found = [(Fraction(0), (), start)] if useful[start] else [], []
    while heap and len(found) < count:
        total, walk, node = heapq.heappop(heap)
        if goal[node]:
            found.append((total, walk))
            continue
        for edge in np.flatnonzero((sources == node) & useful[targets]).tolist():
            heapq.heappush(heap, (total + Fraction(cost[edge]), (*walk, edge), int(targets[edge])))
    return found


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_cheapest_walks_are_those_of_a_search_over_all_prefixes(seed, whole_numbers):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    sources, targets = np.nonzero(rng.random((n, n)) < 0.4)
    # Not below 1/2, so that loops cost something.
    cost = rng.integers(1, 4, len(sources)) / 2 if whole_numbers else 0.5 + rng.random(len(sources))
    goal = rng.random(n) < 0.3
    walks = CheapestWalks(n, sources, targets, cost, goal)
    found = list(walks.from_node(0, 12))
    expected = walks_by_force(sources, targets, cost, goal, 0, 12)
    assert [sum(map(Fraction, cost[walk].tolist())) for walk in found] == pytest.approx(
        [total for total, _ in expected], rel=1e-12
    )
    assert len({tuple(walk.tolist()) for walk in found}) == len(found)
    assert walks.reaches(0) == bool(expected)
    for walk in found:
        node = 0
        for edge in walk.tolist():
            assert sources[edge] == node
            assert not goal[node]
            node = int(targets[edge])
        assert goal[node]


def test_edges_that_cost_nothing_are_edges():
    walks = CheapestWalks(3, np.array([0, 1, 0]), np.array([1, 2, 2]), np.array([0.0, -0.0, 0.0]), np.arange(3) == 2)
    assert sorted(walk.tolist() for walk in walks.from_node(0, 5)) == [[0, 1], [2]]


def test_a_loop_gives_walks_without_end():
    walks = CheapestWalks(2, np.array([0, 0]), np.array([0, 1]), np.array([1.0, 1.0]), np.arange(2) == 1)
    assert [len(walk) for walk in walks.from_node(0, 50)] == list(range(1, 51))
    assert [walk.tolist() for walk in walks.from_node(1, 3)] == [[]]
    assert list(walks.from_node(0, 0)) == []


def test_costs_must_be_costs():
    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="finite and not negative"):
            CheapestWalks(2, np.array([0, 1]), np.array([1, 1]), np.array([wrong, 1.0]), np.arange(2) == 1)
    nothing = np.array([], dtype=np.int64)
    walks = CheapestWalks(2, nothing, nothing, np.array([]), np.arange(2) == 1)
    assert [[walk.tolist() for walk in walks.from_node(node, 2)] for node in (0, 1)] == [[], [[]]]


# Violating runs by hand.
#
# Labels {} (3/5) and {a} (2/5). State 0: nothing -> 1, a -> 2. State 1: nothing -> 4 (bad), a -> 2.
# State 2: nothing -> 3, a -> 2 (waits). State 3: whatever -> 4 or 5: nothing -> 4 (bad), a -> 5 (good).
# Formula G !bad. Violating: 0 1 4 with 9/25. Through 2: 0 2^k 3 4 with 2/5 (2/5)^(k-1) 3/5 3/5, and 0 1 2^k 3 4 with
# 3/5 2/5 (2/5)^(k-1) 3/5 3/5. The waits sum to 1/(1 - 2/5) = 5/3: in all 9/25 + 6/25 + 9/25 2/5 = 9/25+6/25+18/125
# = 93/125.
BAD = {
    "channel": channel_of([(), ("a",)], [[0]], [[0]]),
    "following": [[1, 2], [4, 2], [3, 2], [4, 5], [4, 4], [5, 5]],
    "row": [0] * 6,
    "true_in": {"bad": {4}},
    "ended": (4, 5),
}
COUNTS = counts_of([3, 2])


def bad_runs(count, **options):
    objective = objective_of(**BAD, formula="G !bad")
    values = state_values(objective, rates_of(COUNTS))
    return objective, values, counterexamples(objective, values, 0, count, counts=COUNTS, **options)


def test_the_runs_of_the_example_and_what_they_cover():
    objective, _, found = bad_runs(4, whole=True)
    assert [run.states.tolist() for run in found.runs] == [[0, 1, 4], [0, 2, 3, 4], [0, 1, 2, 3, 4], [0, 2, 2, 3, 4]]
    exact = [exact_probability(objective.skeleton, run, found.exact) for run in found.runs]
    assert exact == [Fraction(9, 25), Fraction(18, 125), Fraction(54, 625), Fraction(36, 625)]
    assert [run.probability for run in found.runs] == [float(each) for each in exact]
    assert found.total == pytest.approx(93 / 125, rel=1e-14, abs=0)
    assert abs(Fraction(found.total) - Fraction(93, 125)) <= Fraction(found.total_error) + Fraction(1, 10**15)
    assert found.covered == pytest.approx(float(sum(exact) / Fraction(93, 125)), rel=1e-14, abs=0)
    assert not found.complete
    assert [run.irrevocable for run in found.runs] == [2, 3, 4, 4]


def test_without_exact_counts_there_are_still_probabilities():
    objective = objective_of(**BAD, formula="G !bad")
    found = counterexamples(objective, state_values(objective, rates_of(COUNTS)), 0, 1)
    assert found.exact is None
    assert found.runs[0].probability == pytest.approx(0.36, rel=1e-14, abs=0)


def test_exact_probabilities_are_those_of_up_to_2000_steps():
    skeleton = SimpleNamespace(entry=np.array([5, 7]))
    for counted, expected in ((0, 1), (3, Fraction(1, 18)), (2000, Fraction(1, 3**1000 * 2**1000)), (2001, None)):
        run = SimpleNamespace(transitions=np.tile([1, 0], 1001), counted=counted)
        assert exact_probability(skeleton, run, {5: Fraction(1, 2), 7: Fraction(1, 3)}) == expected


def test_groups_of_runs_are_rounded_once_each_with_the_most_probable_first():
    objective, _, found = bad_runs(3, whole=True)
    one, two, three = found.runs
    off = replace(two, probability=0.99)
    groups, exact = with_exact(objective.skeleton, [[three, one, off], [], [off]], COUNTS)
    assert [[run.states.tolist() for run in group] for group in groups] == [
        [run.states.tolist() for run in group] for group in ([one, two, three], [], [two])
    ]
    assert groups[0][1].probability == 18 / 125
    assert set(exact.values()) == {Fraction(3, 5), Fraction(2, 5), Fraction(1)}
    assert with_exact(objective.skeleton, [[], []], COUNTS) == ([[], []], None)
    without, exact = with_exact(objective.skeleton, [[three, one, off]], None)
    assert ([run.probability for run in without[0]], exact) == ([0.99, one.probability, three.probability], None)


def test_what_is_before_each_state_by_hand():
    # State 0 looks for a, seen with 3/4: seen -> 1, missed -> 2, bad. State 1 waits for ever for b, never told.
    channel = channel_of([(), ("a",), ("b",)], [[0], [1]], [[1], [2]], [NOTHING, A, B])
    following = [[2, 1, 2], [1, 1, 3], [2] * 3, [3] * 3]
    one = objective_of(channel, following, [0, 1, 0, 0], {"good": {3}}, "F good", ended=(2, 3))
    rates = np.zeros((2, 3, 3))
    rates[:, [0, 1, 2], [0, 1, 2]] = 1
    rates[0, :, 1], rates[1, :, 2] = (0.25, 0.75, 0), (1, 0, 0)
    known = prospects(one, state_values(one, rates))
    # With correct reports neither is lost. State 1 is lost as measured, for ever: a losing component.
    states = [one.product.start[0], *(one.product.indices[one.product.sources == one.product.start[0]])]
    at = dict(zip(one.product.state[states].tolist(), states, strict=True)) | {2: REJECT}
    assert [known.violation[at[k]] for k in (0, 1, 2)] == [1, 1, 1]
    assert [known.risk[at[k]] for k in (0, 1, 2)] == [0.5, 0.5, 1]
    assert [bool(known.certain[at[k]]) for k in (0, 1, 2)] == [False, True, True]
    assert [bool(known.escapable[at[k]]) for k in (0, 1, 2)] == [False, True, False]
    assert violation_probability(one, rates, 0) == (1, 0)
    # Lost is who sees it: with 3/4, and always with correct reports.
    one = objective_of(channel, [[3, 2, 3], *following[1:]], [0, 1, 0, 0], {"bad": {2}}, "G !bad", ended=(2, 3))
    known = prospects(one, state_values(one, rates))
    assert (known.violation[one.product.start[0]], known.risk[one.product.start[0]]) == (0.75, 0.875)


def test_runs_are_counted_up_to_where_they_are_irrevocable():
    # After nothing in state 0 the violation is certain: 1 leads to 2 or 3, and both lead to the bad state 4.
    # Labels {} 3/4, {a} 1/4. Two ways to lose it: nothing at once (3/4), or a and then nothing in 5 (1/4 * 3/4).
    objective = objective_of(
        channel_of([(), ("a",)], [[0]], [[0]]),
        [[1, 5], [2, 3], [4, 4], [4, 4], [4, 4], [4, 6], [6, 6]],
        [0] * 7,
        {"bad": {4}},
        "G !bad",
        ended=(4, 6),
    )
    counts = counts_of([3, 1])
    values = state_values(objective, rates_of(counts))
    found = counterexamples(objective, values, 0, 5, counts=counts)
    assert found.complete
    assert [run.states.tolist() for run in found.runs] == [[0, 1, 2, 4], [0, 5, 4]]
    assert [(run.counted, run.irrevocable, run.probability) for run in found.runs] == [(1, 1, 0.75), (2, 2, 3 / 16)]
    assert found.covered == pytest.approx(1, rel=1e-14, abs=0)
    whole = counterexamples(objective, values, 0, 5, counts=counts, whole=True)
    assert [run.probability for run in whole.runs] == [9 / 16, 3 / 16, 3 / 16]
    assert sorted((run.counted, run.irrevocable) for run in whole.runs) == [(2, 2), (3, 1), (3, 1)]


def test_for_an_upper_limit_the_runs_that_satisfy_the_formula_violate():
    objective = objective_of(**BAD, formula="F bad")
    values = state_values(objective, rates_of(COUNTS))
    found = counterexamples(objective, values, 0, 2, satisfying=True, whole=True, counts=COUNTS)
    assert [run.states.tolist() for run in found.runs] == [[0, 1, 4], [0, 2, 3, 4]]
    assert found.total == pytest.approx(93 / 125, rel=1e-14, abs=0)
    against = counterexamples(objective, values, 0, 3, counts=COUNTS, whole=True)
    assert against.runs[0].states.tolist() == [0, 2, 3, 5]
    assert against.total == pytest.approx(32 / 125, rel=1e-14, abs=0)


def test_a_requirement_that_holds_for_certain_has_no_violating_run():
    objective = objective_of(**BAD, formula="true U !bad")
    values = state_values(objective, rates_of(COUNTS))
    found = counterexamples(objective, values, 0, 3, counts=COUNTS)
    assert (found.runs, found.total, found.complete) == ((), 0.0, True)
    assert math.isnan(found.covered)


def test_a_start_that_violates_at_once():
    objective = objective_of(**BAD, formula="bad")
    values = state_values(objective, rates_of(COUNTS))
    (run,) = counterexamples(objective, values, 0, 3, counts=COUNTS).runs
    assert (run.states.tolist(), run.probability, run.irrevocable, run.counted) == ([0], 1.0, 0, 0)
    assert run.nodes.tolist() == [REJECT]


def test_observations_with_the_same_step_are_one_step():
    # Three labels; a and b lead to the same state: one violating run of 2/3, not two.
    channel = channel_of([(), ("a",), ("b",)], [[0]], [[0]], [NOTHING, A, B])
    objective = objective_of(
        channel, [[1, 2, 2], [1, 1, 1], [2, 2, 2]], [0] * 3, {"bad": {2}}, "G !bad", ended=(1, 2)
    )
    counts = counts_of([1, 1, 1])
    (run,) = counterexamples(objective, state_values(objective, rates_of(counts)), 0, 9, counts=counts).runs
    assert run.probability == 2 / 3


def test_violations_that_are_decided_in_one_product_state_are_told_apart():
    # Both bad states end in REJECT; the runs are different, for they are in different states of the system.
    objective = objective_of(
        channel_of([(), ("a",)], [[0]], [[0]]), [[1, 2], [1, 1], [2, 2]], [0] * 3, {"bad": {1, 2}}, "G !bad"
    )
    counts = counts_of([3, 1])
    found = counterexamples(objective, state_values(objective, rates_of(counts)), 0, 9, counts=counts, whole=True)
    assert [(run.states.tolist(), run.probability) for run in found.runs] == [([0, 1], 0.75), ([0, 2], 0.25)]


def test_a_violation_of_1e_minus_30_has_its_digits():
    n = 10
    following = [[k + 1 if k + 1 < n else n, n + 1] for k in range(n)] + [[n, n], [n + 1, n + 1]]
    objective = objective_of(
        channel_of([(), ("a",)], [[0]], [[0]]), following, [0] * (n + 2), {"bad": {n}}, "G !bad", ended=(n, n + 1)
    )
    counts = counts_of([1, 999])
    found = counterexamples(objective, state_values(objective, rates_of(counts)), 0, 2, counts=counts)
    assert found.total == pytest.approx(1e-30, rel=1e-13, abs=0)
    assert found.covered == pytest.approx(1, rel=1e-13, abs=0)
    assert found.runs[0].probability == float(Fraction(1, 1000) ** 10)


# Against every path.


def paths_by_force(objective, rates, start, formula_fails, depth):
    """Every path of the product up to `depth` steps that ends where the formula is decided: {states: probability}."""
    skeleton, product = objective.skeleton, objective.product
    values = state_values(objective, rates)
    probability = skeleton.fill(rates)
    found, pending = {}, [((int(skeleton.starts[start]),), int(product.start[start]), 1.0)]
    while pending:
        states, node, weight = pending.pop()
        wanted = values.value[node] == (0 if formula_fails else 1)
        if values.recurrent[node]:
            if wanted:
                found[states] = found.get(states, 0.0) + weight
            continue
        if len(states) <= depth:
            for k in range(product.indptr[node], product.indptr[node + 1]):
                edge = product.edge[k]
                if probability[edge] > 0:
                    follow = (*states, int(skeleton.indices[edge]))
                    pending.append((follow, int(product.indices[k]), weight * float(probability[edge])))
    return found


FORMULAS = ["G p", "F q", "p U q", "G (p -> X q)", "(G p) | F q", "G F p", "F G q", "X X q"]


@given(st.integers(0, 2**32 - 1), st.sampled_from(FORMULAS), st.booleans(), st.integers(1, 2), st.booleans())
def test_the_most_probable_runs_are_those_among_all_paths(seed, formula, satisfying, draws, moving):
    rng = np.random.default_rng(seed)
    objective = random_objective(rng, formula, states=5, draws=draws)
    if moving:
        objective, _, _ = drawing_twins(rng, formula, states=5, draws=draws)
    rates = random_rates(rng, 2, 3, 0.3)
    values = state_values(objective, rates)
    found = counterexamples(objective, values, 0, 6, satisfying=satisfying, whole=True)
    every = paths_by_force(objective, rates, 0, not satisfying, depth=7)
    likeliest = sorted(every.values(), reverse=True)[:6]
    for run in [run for run in found.runs if run.steps <= 7]:
        assert every[tuple(run.states.tolist())] == pytest.approx(run.probability, rel=1e-12, abs=0)
    assert len({tuple(run.states.tolist()) for run in found.runs}) == len(found.runs)
    probabilities = [run.probability for run in found.runs]
    assert probabilities == sorted(probabilities, reverse=True)
    for rank, probability in enumerate(likeliest[: len(probabilities)]):
        assert probabilities[rank] >= probability * (1 - 1e-12)
    assert len(found.runs) >= min(6, len(every))
    failing, error = violation_probability(objective, rates, 0, satisfying)
    expected = values.value if satisfying else values.failure
    assert failing == pytest.approx(expected[objective.product.start[0]], abs=1e-12)
    assert math.fsum(probabilities) <= failing * (1 + 1e-9) + error
    if found.complete and found.runs:
        assert found.covered == pytest.approx(1, rel=1e-9)


@given(st.integers(0, 2**32 - 1), st.sampled_from(FORMULAS), st.booleans())
def test_ways_to_lose_it_are_full_paths_put_together(seed, formula, satisfying):
    rng = np.random.default_rng(seed)
    objective = random_objective(rng, formula, states=5)
    rates = random_rates(rng, 2, 3, 0.3)
    values = state_values(objective, rates)
    found = counterexamples(objective, values, 0, 5, satisfying=satisfying)
    hope = values.failure if satisfying else values.value
    certain = prospects(objective, values, satisfying).certain
    for run in found.runs:
        assert run.counted == run.irrevocable
        assert not np.any(certain[run.nodes[: run.irrevocable]])
        assert certain[run.nodes[run.irrevocable]]
        assert np.all(hope[run.nodes[run.irrevocable :]] == 0)
        weights = objective.skeleton.fill(rates)[run.transitions]
        assert run.probability == pytest.approx(np.prod(weights[: run.counted]), rel=1e-12, abs=0)
        # The steps behind are the likeliest: no run from there to the decision is more probable.
        last = np.flatnonzero(objective.product.start == run.nodes[run.counted])
        if len(last) and run.nodes[run.counted] > 1:
            best = counterexamples(objective, values, int(last[0]), 1, satisfying=satisfying, whole=True).runs[0]
            assert np.prod(weights[run.counted :]) == pytest.approx(best.probability, rel=1e-12, abs=0)


# Against Storm.

STORM = """
import json, sys
from stormpy.datastructures import SparseMatrixBuilder
from stormpy.developer import LogLevel, set_log_level
from stormpy.developer.utility import ShortestPathsGenerator
from stormpy.models import SparseDtmc, SparseModelComponents, StateLabeling

set_log_level(LogLevel.OFF)
job = json.load(sys.stdin)
n = len(job["rows"])
builder = SparseMatrixBuilder[float](rows=n, columns=n)
for s, row in enumerate(job["rows"]):
    for t, p in row:
        builder.add_next_value(s, t, p)
labeling = StateLabeling(n)
for name, states in (("init", [job["start"]]), ("bad", job["bad"])):
    labeling.add_label(name)
    for s in states:
        labeling.add_label_to_state(name, s)
model = SparseDtmc[float](SparseModelComponents[float](transition_matrix=builder.build(), state_labeling=labeling))
found = ShortestPathsGenerator[float](model, "bad")
paths = []
for k in range(1, job["count"] + 1):
    paths.append([found.get_distance(k), [int(s) for s in found.get_path_as_list(k)[::-1]]])
json.dump(paths, sys.stdout)
"""


@pytest.mark.parametrize("seed", range(4))
def test_storms_most_probable_paths(seed):
    # A chain with loops, so that there are runs without end, and one bad state.
    rng = np.random.default_rng(seed)
    n, count = 30, 60
    channel = channel_of([(), ("a",), ("b",)], np.zeros((6, 1)), rng.integers(0, 3, (6, 1)), [NOTHING, A, B])
    following = rng.integers(0, n, (n, 3))
    objective = objective_of(
        channel, following, rng.integers(0, 6, n), {"bad": {n - 1}}, "G !bad", ended=(n - 2, n - 1)
    )
    counts = np.zeros((1, 3, 3), dtype=np.int64)
    counts[0] = rng.integers(1, 50, (3, 3))
    rates = rates_of(counts)
    found = counterexamples(objective, state_values(objective, rates), 0, count, whole=True, counts=counts)
    assert len(found.runs) == count
    skeleton = objective.skeleton
    weights = skeleton.fill(rates)
    rows = []
    for s in range(n):
        edges = range(skeleton.indptr[s], skeleton.indptr[s + 1])
        rows.append([[int(skeleton.indices[k]), float(weights[k])] for k in edges])
    job = {"rows": rows, "start": 0, "bad": [n - 1], "count": count}
    done = subprocess.run(
        [sys.executable, "-c", STORM], input=json.dumps(job), capture_output=True, text=True, timeout=120, check=True
    )
    theirs = json.loads(done.stdout)
    assert [run.probability for run in found.runs] == pytest.approx([p for p, _ in theirs], rel=1e-12, abs=0)
    # Runs of equal probability may come in any order.
    distinct = [k for k in range(1, count - 1) if not np.isclose(
        theirs[k][0], [theirs[k - 1][0], theirs[k + 1][0]], rtol=1e-9).any()]  # fmt: skip
    assert len(distinct) > count / 3
    for k in distinct:
        assert found.runs[k].states.tolist() == theirs[k][1]


# Replaying.


@pytest.fixture
def masked(monkeypatch):
    """Let a skeleton look up the masks of names, as small objectives have no system."""

    def use(true_in):
        def mask_of(self, condition):
            return np.isin(np.arange(self.state_count), list(true_in[condition.name]))

        monkeypatch.setattr("verifier.systems.skeleton.Skeleton.mask_of", mask_of)
        return {name: Name(name) for name in true_in}

    return use


@given(st.integers(0, 2**32 - 1), st.sampled_from(FORMULAS), st.booleans(), st.booleans())
def test_every_run_is_replayed(seed, formula, satisfying, whole):
    rng = np.random.default_rng(seed)
    objective = random_objective(rng, formula, states=6)
    rates = random_rates(rng, 2, 3, 0.3)
    values = state_values(objective, rates)
    true_in = {}
    names = [each.name for each in objective.product.obligations.formula.propositions]
    for name, mask in zip(names, objective.product.propositions, strict=True):
        true_in[name] = set(np.flatnonzero(mask).tolist())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "verifier.systems.skeleton.Skeleton.mask_of",
            lambda self, node: np.isin(np.arange(self.state_count), list(true_in[node.name])),
        )
        indptr = objective.skeleton.indptr.tolist()
        ahead = [objective.skeleton.indices[low:high].tolist() for low, high in pairwise(indptr)]
        propositions, words, holds = {name: Name(name) for name in true_in}, [], _Letters.holds
        patch.setattr(_Letters, "holds", lambda self, *word: words.append(word) or holds(self, *word))
        for run in counterexamples(objective, values, 0, 4, satisfying=satisfying, whole=whole).runs:
            checked = replay(objective, values, run, parse_formula(formula), propositions, satisfying=satisfying)
            assert checked is Replay.WHOLE
            for prefix, loop in words:  # which is a way through the chain that begins with the run and never ends
                way = [*prefix, *loop, loop[0]]
                assert way[: len(run.states)] == run.states.tolist()
                assert all(after in ahead[state] for state, after in pairwise(way))
            words.clear()


def replay_bad(masked, run, formula="G !bad", exact=None):
    objective = objective_of(**BAD, formula="G !bad")
    values = state_values(objective, rates_of(COUNTS))
    return replay(objective, values, run, parse_formula(formula), masked({"bad": {4}}), exact=exact)


def test_a_replay_finds_what_is_wrong(masked):
    _, _, found = bad_runs(1, whole=True)
    (run,) = found.runs
    assert replay_bad(masked, run, exact=found.exact) is Replay.WHOLE
    with pytest.raises(EngineError, match="probabilities of a run multiply"):
        replay_bad(masked, replace(run, probability=0.37))
    with pytest.raises(EngineError, match="a step that the chain does not have"):
        replay_bad(masked, replace(run, states=np.array([0, 2, 4])))
    with pytest.raises(EngineError, match="a step that the chain does not have"):
        replay_bad(masked, replace(run, states=run.states[1:], transitions=run.transitions[1:]))
    with pytest.raises(EngineError, match="does not violate the formula"):
        replay_bad(masked, run, formula="F bad")


@pytest.mark.parametrize(
    ("steps", "counted", "off", "accepted"),
    [
        ([0.5, 1e-3], 2, 0.9e-11, True), ([0.5, 1e-3], 2, -0.9e-11, True),
        ([0.5, 1e-3], 2, 1.1e-11, False), ([0.5, 1e-3], 2, -1.1e-11, False),
        ([1.0] * 3000, 3000, 2.9e-11, True), ([1.0] * 3000, 3000, 3.1e-11, False),
        ([0.5, 1e-3], 1, 0, True), ([1e-200, 1e-110], 2, 0, True),
        ([1e-200, 1e-200], 2, 0, True), ([0.5, 0], 2, 0, False), ([0.5, 0], 1, 0, False),
    ],
)  # fmt: skip
def test_the_probability_of_a_run_is_that_of_its_steps_up_to_rounding(steps, counted, off, accepted):
    """A ring of states; it may be off by 10^-11 of it, or for more than 1000 counted steps by 10^-14 for each."""
    size = len(steps)
    ring = SimpleNamespace(
        entry_values=lambda rates: np.array(steps), entry=np.arange(size), indptr=np.arange(size + 1),
        indices=(np.arange(size) + 1) % size, starts=np.array([0]),
    )  # fmt: skip
    states = np.arange(size + 1) % size
    run = SimpleNamespace(states=states, transitions=np.arange(size), counted=counted)
    run.probability = math.prod(steps[:counted]) * (1 + off) or 1e-300  # as far off as any may be
    if accepted:
        _check_steps(ring, SimpleNamespace(rates=None), run, None)
        for ways in ({"starts": np.array([1])}, {"indices": np.arange(size)}, {"indptr": np.arange(size + 1) // 2}):
            with pytest.raises(EngineError, match="a step that the chain does not have"):
                _check_steps(SimpleNamespace(**vars(ring) | ways), SimpleNamespace(rates=None), run, None)
        wrong = {number: Fraction(step) * 2 for number, step in enumerate(steps)}
        if size < 3000 and run.probability > 1e-300:
            with pytest.raises(EngineError, match="multiply"):
                _check_steps(ring, SimpleNamespace(rates=None), run, wrong)
    else:
        with pytest.raises(EngineError, match="multiply" if all(steps) else "a step that the chain does not have"):
            _check_steps(ring, SimpleNamespace(rates=None), run, None)


def test_a_small_probability_has_as_many_digits_as_a_large_one():
    # Up with r from each of three states, else down, out at both ends: r^3 / (1 - 2 r (1 - r)) of being lost above.
    channel, following = channel_of([(), ("a",)], [[0]], [[1]]), [[3, 1], [0, 2], [1, 4], [3, 3], [4, 4]]
    ruin, rare = objective_of(channel, following, [0] * 5, {"bad": {4}}, "G !bad", ended=(3, 4)), Fraction(1, 2**12)
    rates = np.array([[[1.0, 1 - float(rare)], [0.0, float(rare)]]])
    probability, error = violation_probability(ruin, rates, 0)
    exact = rare**3 / (1 - 2 * rare * (1 - rare))
    assert abs(Fraction(probability) - exact) <= Fraction(error) <= exact / 10**12


def test_what_is_decided_goes_on_as_is_likeliest_as_far_as_words_are_evaluated(masked, monkeypatch):
    # Decided in 1; from there 2 and then (nothing, 3/5) 3, 3, ...: the word 0 1 2 3 3 ... has four letters.
    following = [[1, 1], [2, 2], [3, 0], [3, 3]]
    objective = objective_of(BAD["channel"], following, [0] * 4, {"bad": {1}}, "G !bad", starts=(0, 1))
    values = state_values(objective, rates_of(COUNTS))
    for start, longest, whole in ((0, 4, True), (0, 3, False), (0, 1, False), (1, 3, True), (1, 2, False)):
        monkeypatch.setattr(replaying, "LONGEST_WORD", longest)
        (run,) = counterexamples(objective, values, start, 1).runs
        checked = replay(objective, values, run, parse_formula("G !bad"), masked({"bad": {1}}))
        assert (checked is Replay.WHOLE) == whole, (start, longest)
        if whole:
            word = _any_continuation(objective.skeleton, values, run)
            assert word == ([0, 1, 2][start:], [3])


def test_who_wanders_through_a_component_comes_back_after_so_many_rounds(masked, monkeypatch):
    # From 0 to 1, and then 1, 2, 1, 2, ...: a ring of two moves, so 20 rounds are 40 letters, behind the one before.
    objective = objective_of(BAD["channel"], [[1, 1], [2, 2], [1, 1]], [0] * 3, {"q": {0}}, "G F q")
    values = state_values(objective, rates_of(COUNTS))
    (run,) = counterexamples(objective, values, 0, 1).runs
    begun = len(run.states) - 1
    prefix, loop = _wandering(objective, values, run, 20)
    assert prefix == run.states[:-1].tolist()
    assert loop == [int(run.states[-1]), 3 - int(run.states[-1])] * 20
    for longest, whole in ((begun + 40, True), (begun + 39, False), (30, False)):
        monkeypatch.setattr(replaying, "LONGEST_WORD", longest)
        checked = replay(objective, values, run, parse_formula("G F q"), masked({"q": {0}}))
        assert (checked is Replay.WHOLE) == whole


def test_a_run_too_long_to_evaluate_says_so(masked):
    assert replaying.LONGEST_WORD == 2000
    n = 3000
    following = [[k + 1, n + 1] for k in range(n)] + [[n, n], [n + 1, n + 1]]
    objective = objective_of(
        channel_of([(), ("a",)], [[0]], [[0]]), following, [0] * (n + 2), {"bad": {n}}, "G !bad", ended=(n, n + 1)
    )
    counts = counts_of([999, 1])
    values = state_values(objective, rates_of(counts))
    found = counterexamples(objective, values, 0, 1, counts=counts)
    checked = replay(
        objective, values, found.runs[0], parse_formula("G !bad"), masked({"bad": {n}}), exact=found.exact
    )
    assert checked is Replay.STEPS
    assert exact_probability(objective.skeleton, found.runs[0], found.exact) is None
    assert found.runs[0].probability == pytest.approx(0.999**n, rel=1e-11, abs=0)


def test_patterns_that_a_bottom_component_shows_only_now_and_then(masked):
    # Both states draw alike, nothing leads to 0 and a to 1: any word over q comes up. q, not q, q, q, not q in a row
    # comes up again and again almost surely, but not on every way round the component.
    pattern = "G F (q & X (!q & X (q & X (q & X !q))))"
    channel = channel_of([(), ("a",)], [[0]], [[0]])
    objective = objective_of(channel, [[0, 1], [0, 1]], [0, 0], {"q": {1}}, pattern)
    values = state_values(objective, rates_of(counts_of([1, 1])))
    assert values.value[objective.product.start[0]] == 1
    (run,) = counterexamples(objective, values, 0, 1, satisfying=True).runs
    checked = replay(objective, values, run, parse_formula(pattern), masked({"q": {1}}), satisfying=True)
    assert checked is Replay.WHOLE
    with pytest.raises(EngineError, match="does not violate"):
        replay(objective, values, run, parse_formula(f"!({pattern})"), masked({"q": {1}}), satisfying=True)


@pytest.mark.parametrize("moving", [False, True])
def test_exact_entries_are_the_sums_of_the_skeleton(moving):
    rng = np.random.default_rng(3)
    objective = random_objective(rng, "G p", states=8, draws=2)
    if moving:
        objective, _, _ = drawing_twins(rng, "G p", states=8, draws=2)
    counts = rng.integers(1, 9, (2, 3, 3))
    entries = np.arange(len(objective.skeleton.entry_row) + 1)
    exact = exact_entries(objective.skeleton, counts, entries)
    assert [float(exact[k]) for k in entries] == pytest.approx(
        objective.skeleton.entry_values(rates_of(counts)).tolist(), rel=1e-14
    )
    assert all(isinstance(each, Fraction) for each in exact.values())
