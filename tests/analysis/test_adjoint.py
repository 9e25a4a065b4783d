"""The adjoint: exact fractions by hand, finite differences, and Storm's parametric derivatives."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from asking_worlds import AskingWorld
from formula_strategies import formulas
from hypothesis import example, given
from hypothesis import strategies as st
from small_objectives import channel_of, objective_of, random_objective, random_rates

from verifier.analysis.objective import build_objective
from verifier.analysis.sensitivity.adjoint import (
    Equations,
    _jumps,
    _tables,
    expected_visits,
    flow_derivatives,
    gradient,
    state_values,
)
from verifier.base.errors import NoAnswerError
from verifier.language.expressions import parse_expression
from verifier.language.expressions.syntax import Name, Temporal
from verifier.language.ltl import parse_formula
from verifier.language.ltl.progression import ACCEPT, REJECT
from verifier.perception.confusion import rates as rates_of
from verifier.perception.confusion import read_confusion
from verifier.systems.reader import read_model
from verifier.systems.skeleton import build_skeleton


def solved(objective, rates):
    values = state_values(objective, rates)
    visits = expected_visits(objective, values)
    return values, visits, gradient(objective, values, visits)


def column(*cells):
    """One bin whose first column is given (labels {}, {a}, ...) and whose others are never drawn."""
    rates = np.full((1, len(cells), len(cells)), np.nan)
    rates[0, :, 0] = [float(each) for each in cells]
    return rates


# By hand. Labels {} and {a}; every state draws from column 0 of bin 0: a with r, nothing with 1 - r.
#
#   0 --nothing--> 0, --a--> 1;    1 --nothing--> 2 (goal), --a--> 3 (trap).  Formula: F goal.
#
# Every run leaves 0 with an a, so x0 = x1 = 1 - r. Expected visits from 0: 1/r to state 0, 1 to state 1.
# The derivative in the free cells, u = rate of nothing and w = rate of a, of the chance of the goal after
# normalising nothing:   x1 = u,   x0 = u x0 + w x1   =>   x0 = u w / (1 - u).
#   dx0/du = w / (1 - u)^2 = 1/r at u = 1 - r, w = r;    dx0/dw = u / (1 - u) = (1 - r)/r.
# On the simplex, mass from nothing to a:  (1 - r)/r - 1/r = -1, which is d(1 - r)/dr.
LOOP = {
    "channel": channel_of([(), ("a",)], [[0]], [[0]]),
    "following": [[0, 1], [2, 3], [2, 2], [3, 3]],
    "row": [0, 0, 0, 0],
    "true_in": {"goal": {2}},
    "ended": (2, 3),
}


@pytest.mark.parametrize("r", [Fraction(1, 2), Fraction(1, 5), Fraction(15, 16), Fraction(1, 1000)])
def test_a_wait_and_a_choice(r):
    objective = objective_of(**LOOP, formula="F goal", starts=(0, 1))
    values, visits, found = solved(objective, column(1 - r, r))
    first, second = objective.product.start
    assert values.value[[first, second]] == pytest.approx([float(1 - r)] * 2, rel=1e-12, abs=0)
    assert values.failure[[first, second]] == pytest.approx([float(r)] * 2, rel=1e-12, abs=0)
    assert visits[0, [first, second]] == pytest.approx([float(1 / r), 1], rel=1e-12, abs=0)
    assert visits[1, [first, second]] == pytest.approx([0, 1], rel=1e-12, abs=0)
    assert found.cells[0, 0, :, 0] == pytest.approx([float(1 / r), float((1 - r) / r)], rel=1e-12, abs=0)
    assert found.cells[1, 0, :, 0] == pytest.approx([1, 0], rel=1e-12, abs=0)
    assert np.all(found.cells[:, :, :, 1] == 0)
    assert not found.jumps.any()


def test_a_small_failure_keeps_its_digits():
    # Three reports a in a row fail: r^3 = 1e-18, of which 1 - value would keep nothing.
    objective = objective_of(
        channel_of([(), ("a",)], [[0]], [[0]]),
        [[3, 1], [3, 2], [3, 4], [3, 3], [4, 4]],
        [0] * 5,
        {"goal": {3}},
        "F goal",
        ended=(3, 4),
    )
    values, _, _ = solved(objective, column(1 - Fraction(1, 10**6), Fraction(1, 10**6)))
    assert values.failure[objective.product.start[0]] == pytest.approx(1e-18, rel=1e-12, abs=0)


def test_a_cell_of_rate_zero_has_its_derivative_too():
    # Label {b} is never reported; if it were, state 0 would go to the trap. Labels {}, {a}, {b}, rates 1/4, 3/4, 0;
    # nothing waits, a reaches the goal: x0 = 1. With u, w, z the rates: x0 = u x0 + w, so w / (1 - u), and
    # dx0 = (w/(1-u)^2, 1/(1-u), 0) = (4/3, 4/3, 0): mass from a or from nothing to b costs 4/3 each.
    objective = objective_of(
        channel_of([(), ("a",), ("b",)], [[0]], [[0]], [frozenset(), frozenset("a"), frozenset("b")]),
        [[0, 1, 2], [1, 1, 1], [2, 2, 2]],
        [0] * 3,
        {"goal": {1}},
        "F goal",
        ended=(1, 2),
    )
    values, _, found = solved(objective, column(Fraction(1, 4), Fraction(3, 4), 0))
    assert values.value[objective.product.start[0]] == 1
    assert found.cells[0, 0, :, 0] == pytest.approx([4 / 3, 4 / 3, 0], rel=1e-12, abs=0)
    assert not found.jumps.any()


def test_where_a_state_is_left_only_with_a_rate_above_zero_the_probability_jumps():
    # State 0 stays on nothing and leaves on a, whose rate is 0: G !goal has probability 1 there, and 0 for any rate
    # above 0. The goal state leads nowhere.
    objective = objective_of(
        channel_of([(), ("a",)], [[0]], [[0]]), [[0, 1], [1, 1]], [0, 0], {"goal": {1}}, "G !goal", ended=(1,)
    )
    values, _, found = solved(objective, column(1, 0))
    assert values.value[objective.product.start[0]] == 1
    assert found.jumps[0, :, 0].tolist() == [False, True]
    assert objective.probabilities(column(1 - 1e-9, 1e-9)[None]).probability[0, 0] == 0
    # G F of a state that the same move would reach and come back from: from 0 to 1.
    objective = objective_of(
        channel_of([(), ("a",)], [[0]], [[0]]), [[0, 1], [0, 0]], [0, 0], {"q": {1}}, "G F q", starts=(0, 1)
    )
    values, _, found = solved(objective, column(1, 0))
    assert values.value[objective.product.start].tolist() == [0, 0]
    assert found.jumps[0, :, 0].tolist() == [False, True]
    # Where it is left for another state of the same value nothing jumps.
    objective = objective_of(
        channel_of([(), ("a",)], [[0]], [[0]]), [[0, 1], [1, 1]], [0, 0], {"q": set()}, "G !q", ended=(1,)
    )
    assert not solved(objective, column(1, 0))[2].jumps.any()


def test_a_start_that_is_decided_at_once_has_no_visits_and_no_derivative():
    objective = objective_of(**LOOP, formula="G !goal", starts=(2, 3, 0))
    values, visits, found = solved(objective, column(0.5, 0.5))
    assert objective.product.start[0] == REJECT
    assert values.value[objective.product.start[:2]].tolist() == [0, 1]
    assert np.all(visits[:2] == 0)
    assert np.all(found.cells[:2] == 0)
    assert np.any(found.cells[2] != 0)
    chosen = expected_visits(objective, values, [2])
    assert np.array_equal(chosen, visits[[2]])
    assert expected_visits(objective, values, [0, 2]).shape == (2, objective.state_count)
    assert values.value[ACCEPT] == 1


def test_two_draws_of_one_step_and_of_one_column():
    # Two objects of column 0 in one bin: the union is {} with u^2 and {a} with 2 u w + w^2, the goal is reached when
    # nothing is reported: x = u^2, so dx/du = 2u, dx/dw = 0. With u = 2/5: (4/5, 0).
    channel = channel_of([(), ("a",)], [[0, 0]], [[0, 0]])
    objective = objective_of(channel, [[1, 2], [1, 1], [2, 2]], [0] * 3, {"goal": {1}}, "F goal", ended=(1, 2))
    values, _, found = solved(objective, column(Fraction(2, 5), Fraction(3, 5)))
    assert values.value[objective.product.start[0]] == pytest.approx(0.16, rel=1e-12, abs=0)
    assert found.cells[0, 0, :, 0] == pytest.approx([0.8, 0], abs=1e-15)
    # Different columns of different bins: x = u u', dx/du = u', dx/du' = u.
    channel = channel_of([(), ("a",)], [[0, 1]], [[0, 1]])
    objective = objective_of(channel, [[1, 2], [1, 1], [2, 2]], [0] * 3, {"goal": {1}}, "F goal", ended=(1, 2))
    rates = np.full((2, 2, 2), np.nan)
    rates[0, :, 0], rates[1, :, 1] = (0.25, 0.75), (0.5, 0.5)
    found = solved(objective, rates)[2]
    assert found.cells[0, 0, :, 0] == pytest.approx([0.5, 0], abs=1e-15)
    assert found.cells[0, 1, :, 1] == pytest.approx([0.25, 0], abs=1e-15)
    assert np.count_nonzero(found.cells) == 2


def test_what_flows_through_the_cells_of_one_draw_is_the_expected_number_of_draws():
    # With worth 1 everywhere, rate x derivative is how often a cell is drawn: in the loop above from state 0,
    # 1/r + 1 draws, of them (1 - r)/r + (1 - r) of nothing and 1 + r of a.
    objective = objective_of(**LOOP, formula="F goal")
    rates = column(0.75, 0.25)
    values, visits, _ = solved(objective, rates)
    drawn = flow_derivatives(objective, values.rates, visits, np.ones(objective.state_count))[0] * values.rates
    assert drawn[0, :, 0] == pytest.approx([3 + 0.75, 1 + 0.25], rel=1e-12, abs=0)


def simplex_steps(rates, columns, rng):
    """Changes of a column that keep it a probability vector, one for every pair of labels with room to move."""
    for bin_, true in columns.tolist():
        mu = rates[bin_, :, true]
        source = int(rng.choice(np.flatnonzero(mu > 1e-3)))
        for target in range(len(mu)):
            if target != source:
                yield bin_, true, source, target


def check_against_differences(objective, rates, rng, step=1e-6):
    values, _, found = solved(objective, rates)
    start = objective.product.start
    centre = objective.probabilities(rates[None]).probability[0]
    assert values.value[start] == pytest.approx(centre, abs=1e-12)
    assert values.value + values.failure == pytest.approx(np.ones(objective.state_count), abs=1e-12)
    for bin_, true, source, target in simplex_steps(rates, objective.skeleton.columns_needed(), rng):
        if found.jumps[bin_, target, true]:
            continue
        moved = np.repeat(rates[None], 2, axis=0)
        for k, size in enumerate((step, 2 * step)):
            moved[k, bin_, target, true] += size
            moved[k, bin_, source, true] -= size
        once, twice = objective.probabilities(moved).probability
        # Second order, and one-sided: a rate of 0 cannot go below 0.
        difference = (4 * once - twice - 3 * centre) / (2 * step)
        slope = found.cells[:, bin_, target, true] - found.cells[:, bin_, source, true]
        assert slope == pytest.approx(difference, abs=2e-6, rel=2e-6)


FORMULAS = ["F p", "G (p -> F q)", "p U q", "(G p) | F q", "G F p & !(F G q)", "X (p R q)", "F (p & X (q | X p))"]


@pytest.mark.parametrize("draws", [1, 2, 3])
@pytest.mark.parametrize("zero", [0.0, 0.4])
def test_finite_differences_on_random_objectives(draws, zero):
    rng = np.random.default_rng([draws, int(10 * zero)])
    for formula in FORMULAS:
        objective = random_objective(rng, formula, draws=draws)
        check_against_differences(objective, random_rates(rng, 2, 3, zero), rng)


@given(formulas("abc", 2), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.5]), st.integers(1, 2))
@example(Temporal("F", (Name("a"),)), 48, 0.5, 2)  # the cell that opens a bottom component is the one that reaches it
def test_finite_differences_for_random_formulas(formula, seed, zero, draws):
    rng = np.random.default_rng(seed)
    objective = random_objective(rng, formula, draws=draws, propositions=("a", "b", "c"))
    check_against_differences(objective, random_rates(rng, 2, 3, zero), rng)


def test_finite_differences_where_reports_may_be_in_another_bin(tmp_path):
    steep = 0
    for seed in range(0, 12, 2):
        world = AskingWorld(random.Random(seed))
        (tmp_path / "model.toml").write_text(world.model)
        (tmp_path / "cm.json").write_text(json.dumps(world.document))
        matrices = read_confusion(tmp_path / "cm.json").matrices
        system = read_model(tmp_path / "model.toml").inside("here").instantiate()
        skeleton = build_skeleton(system, system.planners["p"], "here", matrices)
        objective = build_objective(skeleton, parse_formula("F good"), {"good": parse_expression("good")}, 10**6)
        check_against_differences(objective, rates_of(matrices.counts), np.random.default_rng(seed))
        steep += (
            skeleton.channel.located is not None and np.ptp(solved(objective, rates_of(matrices.counts))[0].value) > 0
        )
    assert steep >= 3


def jumps_by_definition(objective, rates, cell, step=1e-9):
    """Whether an arbitrarily small rate in a cell of rate 0 changes some probability by much more than it is."""
    bin_, target, true = cell
    source = int(np.argmax(rates[bin_, :, true]))
    moved = np.stack([rates, rates])
    moved[1, bin_, target, true] += step
    moved[1, bin_, source, true] -= step
    before, after = objective.probabilities(moved).probability
    return bool(np.any(np.abs(before - after) > 1e-4))


def test_jumps_are_where_they_are(thorough):
    # Random chains at rates on the edge of the simplex: every cell that jumps by definition is said to, few others.
    rng = np.random.default_rng(5)
    seen = Counter()
    for round_ in range(200 if thorough else 80):
        formula = ["G F p", "F G p", "G p", "F p"][round_ % 4]
        objective = random_objective(rng, formula, states=4, bins=1)
        rates = random_rates(rng, 1, 3, 0.6)
        found = solved(objective, rates)[2]
        for cell in np.argwhere(rates == 0).tolist():
            if [cell[0], cell[2]] in objective.skeleton.columns_needed().tolist():
                jumps = jumps_by_definition(objective, rates, cell)
                assert found.jumps[tuple(cell)] or not jumps
                seen[jumps] += 1
        assert not found.jumps[rates > 0].any()
    assert min(seen.values()) > (20 if thorough else 5)


STORM = """
import json, sys
import stormpy
from stormpy import Polynomial, RationalFunction as RF
from stormpy.datastructures import SparseMatrixBuilder
from stormpy.developer import LogLevel, set_log_level
from stormpy.models import SparseDtmc, SparseModelComponents, StateLabeling
from stormpy.numbers import RationalFunctionCoefficient as RC, RawPolynomial, Variable
from stormpy.numbers.developer.cln import create_factorized_polynomial as fp

set_log_level(LogLevel.OFF)
job = json.load(sys.stdin)
n = job["states"]
variables = [Variable(f"m{k}") for k in range(len(job["point"]))]

def polynomial(terms):
    total = RF(Polynomial(RC(0)))
    for term in terms:
        factor = RF(Polynomial(RC(1)))
        for k in term:
            factor = factor * RF(fp(RawPolynomial(variables[k])))
        total = total + factor
    return total

builder = SparseMatrixBuilder[RF](rows=n, columns=n)
for s, row in enumerate(job["rows"]):
    for t, terms in row:
        builder.add_next_value(s, t, polynomial(terms))
labeling = StateLabeling(n)
for name, states in job["labels"].items():
    labeling.add_label(name)
    for s in states:
        labeling.add_label_to_state(name, s)
model = SparseDtmc[RF](SparseModelComponents[RF](transition_matrix=builder.build(), state_labeling=labeling))
answer = stormpy.model_checking(model, stormpy.parse_property(job["formula"]), only_initial_states=True).get_value(0)
at = {v: RC(text) for v, text in zip(variables, job["point"])}
gradient = [float(answer.derive(v).evaluate(at)) if v in answer.gather_variables() else 0.0 for v in variables]
json.dump({"value": float(answer.evaluate(at)), "gradient": gradient}, sys.stdout)
"""


def storm_derivatives(objective, true_in, rates, free, formula):
    """Value and derivatives in the `free` cells by Storm's parametric engine, in a process of its own.

    The chain is written out from the definition: with every combination of labels that the draws may report, the
    step that their union leads to, weighted with the product of the cells.
    """
    skeleton = objective.skeleton
    channel, n = skeleton.channel, skeleton.state_count
    rows = []
    for s in range(n):
        steps = {}
        for k in range(skeleton.indptr[s], skeleton.indptr[s + 1]):
            t, entry = int(skeleton.indices[k]), int(skeleton.entry[k])
            if entry == len(skeleton.entry_row) or skeleton.entry_observations[entry].all():
                steps[t] = [[]]
                continue
            row, told = skeleton.entry_row[entry], skeleton.entry_observations[entry]
            steps[t] = [
                [free[cell] for cell in cells]
                for labels, cells in reports(channel, int(row))
                if told[channel.observations.index(labels)] and all(cell in free for cell in cells)
            ]
        rows.append([[t, terms] for t, terms in sorted(steps.items()) if terms])
    # Storm 2.0 needs an absorbing last state.
    rows.append([[n, [[]]]])
    labels = {"init": [int(skeleton.starts[0])]} | {name: sorted(states) for name, states in true_in.items()}
    job = {
        "states": n + 1,
        "rows": rows,
        "labels": labels,
        "formula": formula,
        "point": [str(Fraction(float(rates[cell]))) for cell in free],
    }
    done = subprocess.run(
        [sys.executable, "-c", STORM], input=json.dumps(job), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def reports(channel, row):
    """(union of what is reported, cells drawn) for every combination of labels that the draws of a row may report."""
    asked = frozenset().union(*channel.observations)
    found = [(frozenset(), ())]
    for bin_, true in zip(channel.bins[row].tolist(), channel.columns[row].tolist(), strict=True):
        if true >= 0:
            found = [
                (told | (label & asked), (*cells, (bin_, k, true)))
                for told, cells in found
                for k, label in enumerate(channel.labels)
            ]
    return found


STORM_FORMULAS = {
    "F q": 'P=? [ F "q" ]',
    "p U q": 'P=? [ "p" U "q" ]',
    "F (q & X p)": 'P=? [ F ("q" & (X "p")) ]',
    "G (p | X q)": 'P=? [ G ("p" | (X "q")) ]',
}


def drawn_chain(rng, formula, draws):
    """A random objective on five states, the last of them terminal, and where p and q hold."""
    channel = channel_of([(), ("a",), ("b",)], rng.integers(0, 2, (3, draws)), rng.integers(0, 3, (3, draws)))
    following = rng.integers(0, 5, (5, len(channel.observations)))
    true_in = {name: set(np.flatnonzero(rng.random(5) < 0.5).tolist()) for name in "pq"}
    row = rng.integers(0, 3, 5)
    return objective_of(channel, following, row, true_in, formula, (0,), (4,)), true_in


@pytest.mark.every(5)
# With two draws Storm needs minutes for most formulas.
@pytest.mark.parametrize(
    ("formula", "asked", "draws"),
    [*((*each, 1) for each in STORM_FORMULAS.items()), *((*each, 2) for each in list(STORM_FORMULAS.items())[:3])],
)
def test_storms_parametric_derivatives(formula, asked, draws):
    rng = np.random.default_rng([len(formula), draws])
    value = 0.0
    while not 0.05 < value < 0.95:
        objective, true_in = drawn_chain(rng, formula, draws)
        cells = rng.integers(1, 1000, (2, 3, 3))
        rates = cells / cells.sum(axis=1, keepdims=True)
        value = objective.probabilities(rates[None]).probability[0, 0]
    _, _, found = solved(objective, rates)
    columns = objective.skeleton.columns_needed().tolist()
    free = {(b, k, t): number for number, (b, t, k) in enumerate((b, t, k) for b, t in columns for k in range(3))}
    answer = storm_derivatives(objective, true_in, rates, free, asked)
    assert answer["value"] == pytest.approx(value, abs=1e-9)
    theirs = np.array(answer["gradient"]).reshape(-1, 3)
    mine = np.array([found.cells[0, b, :, t] for b, t in columns])
    # Derivatives in free cells depend on how a formula is computed where rows no longer sum to 1; differences within
    # a column do not.
    assert mine - mine[:, :1] == pytest.approx(theirs - theirs[:, :1], abs=1e-7)
    assert np.abs(mine - mine[:, :1]).max() > 1e-3


@given(st.integers(0, 2**32), st.sampled_from([False, True]))
def test_where_parts_are_rarely_left_no_digits_are_lost(seed, transposed):
    """Parts of 1 to 4 states that lead around, and on with 10^-3 to 10^-18, against elimination in fractions."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, rng.integers(1, 5)).tolist()
    part = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    n = len(part)
    weights = np.zeros((n, n + 1))
    for state in range(n):
        own = np.flatnonzero(part == part[state])
        weights[state, rng.choice(own, rng.integers(1, 4))] = rng.random()  # so that some parts fall apart
        weights[state, own[(np.searchsorted(own, state) + 1) % len(own)]] += 0.5
        weights[state, rng.choice(own)] *= 10.0 ** -rng.integers(0, 15)
        later = np.append(np.flatnonzero(part > part[state]), n)
        weights[state, rng.choice(later, 2)] = 10.0 ** -rng.integers(3, 19)
    sources, targets = np.nonzero(weights)
    equations = Equations(n + 1, np.arange(n), sources, targets, weights[sources, targets])
    right = rng.integers(0, 3, n).astype(float)
    found = equations.solve(right[equations.states, None], transposed=transposed)[:, 0]
    rows = [[-Fraction(w) for w in row[:n]] for row in weights]
    for state, row in enumerate(weights):
        rows[state][state] = sum(Fraction(w) for target, w in enumerate(row) if target != state)
    if transposed:
        rows = [list(row) for row in zip(*rows, strict=True)]
    exact = by_elimination(rows, [Fraction(each) for each in right])
    for state, value in zip(equations.states.tolist(), found.tolist(), strict=True):
        assert abs(Fraction(value) - exact[state]) <= exact[state] / 10**13


def by_elimination(rows, right):
    """The solution of some equations."""
    rows = [[*row, last] for row, last in zip(rows, right, strict=True)]
    for k in range(len(rows)):
        pivot = next(j for j in range(k, len(rows)) if rows[j][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [each / rows[k][k] for each in rows[k]]
        for j in range(len(rows)):
            if j != k and rows[j][k]:
                rows[j] = [a - rows[j][k] * b for a, b in zip(rows[j], rows[k], strict=True)]
    return [row[-1] for row in rows]


@pytest.mark.parametrize("rare", [2.0**-18, 1e-12, 1e-100])
def test_a_grid_that_is_rarely_left_is_left_in_the_end(rare):
    """30 x 30 places on a torus, moves of different weights: every visit has come from others, and all leave."""
    place, n = np.arange(30**2), 30**2
    row, column = np.divmod(place, 30)
    moves = [(row, (column + 1) % 30), ((row + 1) % 30, column), (row, (column - 1) % 30)]
    targets = np.stack([np.ravel_multi_index(move, (30, 30)) for move in moves])
    weight, leaving = np.random.default_rng(1).random((3, n)), np.where(place % 7 == 0, rare, 0)
    ends = np.concatenate([*targets, np.full(n, n)])
    equations = Equations(n + 1, place, np.tile(place, 4), ends, np.append(weight, leaving))
    assert equations.solve(leaving[equations.states, None]) == pytest.approx(1, rel=1e-13, abs=0)
    begun = np.eye(n, 2)
    visits = equations.solve(begun[equations.states], transposed=True)[equations.number[:n]]
    assert leaving @ visits == pytest.approx(1, rel=1e-13, abs=0)
    entered = begun + np.stack([np.bincount(targets.ravel(), (weight * by).ravel(), n) for by in visits.T], axis=1)
    assert visits * (weight.sum(axis=0) + leaving)[:, None] == pytest.approx(entered, rel=1e-12, abs=0)


@pytest.mark.parametrize("rare", [0.0, 1e-310])
def test_what_is_not_left_in_doubles_is_no_answer(rare):
    sources, targets = np.array([0, 0, 1, 1]), np.array([1, 2, 0, 2])
    with pytest.raises(NoAnswerError, match="some of 2 product states are left too rarely"):
        Equations(3, np.arange(2), sources, targets, np.array([1e-9, rare, 1, rare]))


def test_only_components_of_several_states_are_eliminated():
    part, edges = np.array([0, 1, 2, 2]), np.array([[1, 2, 3, 3], [0, 3, 2, 1]])
    ((low, (rows, columns, shares), _),) = _tables(part, edges, np.array([0.5, 0.25, 0.125, 0.5]))
    assert (low, sorted(zip(rows.tolist(), columns.tolist(), shares.tolist(), strict=True))) == (
        2, [(0, 1, 0.25), (1, 0, 0.125)]
    )  # fmt: skip


@pytest.mark.parametrize(("led", "jumps"), [(3, False), (1, True)])
def test_only_what_leads_from_one_end_to_the_other_jumps(led, jumps):
    """State 0 is won or led to 2, which stays as nothing is ever reported there; a report would lead on."""
    channel = channel_of([(), ("a",)], [[0], [1]], [[1], [1]])
    chain = objective_of(
        channel, [[2, 1], [1, 1], [2, led], [3, 3]], [0, 0, 1, 0], {"good": {1}}, "F good", ended=(1, 3)
    )
    rates = np.array([[[1, 0.5], [0, 0.5]], [[1, 1.0], [0, 0.0]]])
    expected = np.zeros((2, 2, 2), dtype=bool)
    expected[1, 1, 1] = jumps
    assert _jumps(chain, state_values(chain, rates)).tolist() == expected.tolist()
