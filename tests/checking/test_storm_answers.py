"""Storm through the worker against hand-solved models, exact arithmetic and definitions written out here."""

from fractions import Fraction as Fr
from functools import partial

import numpy as np
import pytest
import small_chains
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from verifier.base.errors import EngineError

chain_of, process_of = (partial(made, exact=True) for made in (small_chains.chain_of, small_chains.process_of))

# Two transient states that pass the ball, a goal and a trap:
#   0 -> 1 with 1/3, 0 -> goal with 2/3;   1 -> 0 with 1/4, 1 -> trap with 3/4.
# x0 = 1/3 x1 + 2/3 and x1 = 1/4 x0 give x0 = (2/3) / (1 - 1/12) = 8/11 and x1 = 2/11.
PASSING = [{1: Fr(1, 3), 2: Fr(2, 3)}, {0: Fr(1, 4), 3: Fr(3, 4)}, {2: 1}, {3: 1}]
PASSING_LABELS = {"goal": {2}, "play": {0, 1}, "one": {1}}

# From 0 either into the two-state loop 1 <-> 2 with 1/5, or into the absorbing state 3 with 4/5.
LOOPS = [{1: Fr(1, 5), 3: Fr(4, 5)}, {2: 1}, {1: 1}, {3: 1}]
LOOPS_LABELS = {"a": {1, 3}, "b": {2}}

HAND_SOLVED = [
    # formula, value at state 0, value at state 1; with bounds?
    ("PASSING", 'F ("goal")', Fr(8, 11), Fr(2, 11), True),
    ("PASSING", '("play") U ("goal")', Fr(8, 11), Fr(2, 11), True),
    ("PASSING", 'G (!("goal"))', Fr(3, 11), Fr(9, 11), True),
    ("PASSING", 'X ("goal")', Fr(2, 3), Fr(0), True),
    # Within three steps: at once, or there, back and at once; 2/3 + 1/3 * 1/4 * 2/3 = 13/18. From 1: 1/4 * 2/3.
    ("PASSING", 'F<=3 ("goal")', Fr(13, 18), Fr(1, 6), True),
    ("PASSING", 'F<3 ("goal")', Fr(2, 3), Fr(1, 6), True),
    ("PASSING", 'F=3 ("goal")', Fr(13, 18), Fr(1, 6), True),
    ("PASSING", 'F[1,3] ("goal")', Fr(13, 18), Fr(1, 6), True),
    ("PASSING", '("play") U<=2 ("goal")', Fr(2, 3), Fr(1, 6), True),
    # Without passing through state 1, which 1 itself already violates.
    ("PASSING", '(!"one") U ("goal")', Fr(2, 3), Fr(0), True),
    ("PASSING", "true", Fr(1), Fr(1), False),
    ("PASSING", '("play") & (!("one"))', Fr(1), Fr(0), False),
    # General LTL. The second step from 0 is 0 with 1/3 * 1/4, from 1 it is 1 with 1/4 * 1/3 and goal with 1/4 * 2/3.
    ("PASSING", 'X (X ("play"))', Fr(1, 12), Fr(1, 12), False),
    ("PASSING", '!(F ("goal"))', Fr(3, 11), Fr(9, 11), False),
    ("PASSING", 'F (G ("goal"))', Fr(8, 11), Fr(2, 11), False),
    ("PASSING", 'G (F ("play"))', Fr(0), Fr(0), False),
    # Reach the goal and have been in 1: from 0 by x1 / 3 = 2/33; from 1 always having been there.
    ("PASSING", '(F ("goal")) & (F ("one"))', Fr(2, 33), Fr(2, 11), False),
    # A bound inside: outside the goal and in it at most one step later; every way to the goal passes there.
    ("PASSING", 'F ((!("goal")) & (F<=1 ("goal")))', Fr(8, 11), Fr(2, 11), False),
    # In the goal from step 3 on or before, and in 1 in step 1: from 0 by 1/3 * 1/4 * 2/3, from 1 never.
    ("PASSING", '(F<=3 ("goal")) & (X ("one"))', Fr(1, 18), Fr(0), False),
    ("LOOPS", 'G (F ("a"))', Fr(1), Fr(1), False),
    ("LOOPS", 'G (F ("b"))', Fr(1, 5), Fr(1), False),
    ("LOOPS", 'F (G ("a"))', Fr(4, 5), Fr(0), False),
    ("LOOPS", '(G (F ("a"))) & (G (F ("b")))', Fr(1, 5), Fr(1), False),
    ("LOOPS", 'G ((!("a")) | (X ("b")))', Fr(1, 5), Fr(1), False),
    ("LOOPS", '(F (G ("a"))) | (G ((!("b")) | (X ("a"))))', Fr(1), Fr(1), False),
]


@pytest.mark.parametrize(("name", "formula", "at_0", "at_1", "bounded"), HAND_SOLVED)
def test_hand_solved_chains(storm, name, formula, at_0, at_1, bounded):
    rows, labels = {"PASSING": (PASSING, PASSING_LABELS), "LOOPS": (LOOPS, LOOPS_LABELS)}[name]
    chain = chain_of(rows, labels, [0, 1])

    (exact,) = storm.check(chain, [formula], exact=True)
    assert exact.fractions == (at_0, at_1)
    assert exact.engine == "Storm 2.0.0 (exact)"

    (rounded,) = storm.check(chain, [formula])
    assert rounded.fractions is None
    assert rounded.engine == "Storm 2.0.0"
    assert rounded.value == pytest.approx([float(at_0), float(at_1)], rel=1e-11, abs=1e-12)
    assert (rounded.lower is not None) == bounded
    if bounded:
        for lower, upper, true in zip(rounded.lower, rounded.upper, (at_0, at_1), strict=True):
            # 2^-52: the bounds enclose the answer up to the rounding of the arithmetic they were computed with.
            assert Fr(lower) - Fr(1, 2**52) <= true <= Fr(upper) + Fr(1, 2**52)
            assert upper - lower < 1e-11


def test_the_second_step_of_the_passing_chain_by_hand():
    # The literal 1/12 above, from the matrix: P^2 restricted to the states labelled "play".
    matrix = np.zeros((4, 4))
    for state, row in enumerate(PASSING):
        for target, probability in row.items():
            matrix[state, target] = float(probability)
    assert (matrix @ matrix)[:2, :2].sum(axis=1) == pytest.approx([1 / 12, 1 / 12])


def test_many_formulas_share_one_model_and_come_back_in_order(storm):
    chain = chain_of(PASSING, PASSING_LABELS, [0])
    formulas = ['F ("goal")', '!(F ("goal"))', 'X ("goal")', "false"] * 3
    exact = storm.check(chain, formulas, exact=True)
    assert [answer.fractions[0] for answer in exact] == [Fr(8, 11), Fr(3, 11), Fr(2, 3), Fr(0)] * 3
    assert storm.check(chain, []) == []


def test_values_are_read_at_the_initial_states_only_and_in_their_order(storm):
    # For LTL, Storm's vector holds garbage at other states: here 0 at state 1 when only 0 is asked about.
    formula = '!(F ("goal"))'
    expected = {0: Fr(3, 11), 1: Fr(9, 11), 2: Fr(0), 3: Fr(1)}
    for initial in ([0], [1], [3], [0, 3], [1, 2], [0, 1, 2, 3]):
        (answer,) = storm.check(chain_of(PASSING, PASSING_LABELS, initial), [formula], exact=True)
        assert answer.fractions == tuple(expected[state] for state in initial)
    for unsorted in ([1, 0], [0, 0]):
        with pytest.raises(ValueError, match="strictly increasing"):  # no model has them
            chain_of(PASSING, PASSING_LABELS, unsorted)


@pytest.mark.parametrize("initial", [[0], [1], [0, 1]])
@pytest.mark.parametrize("formula", ['G (F ("a"))', 'F (G ("a"))', 'X (F ("a"))', 'G (("a") | (X ("a")))'])
def test_a_transient_last_state(storm, formula, initial):
    # Storm 2.0 alone fails here: "Invalid item count (2) of state labeling (states: 1)".
    chain = chain_of([{0: 1}, {0: 1}], {"a": {0}}, initial)
    (answer,) = storm.check(chain, [formula])
    assert answer.value.tolist() == [1.0] * len(initial)


def test_labels_of_the_chain_that_no_formula_names_may_have_any_name(storm):
    labels = {**PASSING_LABELS, 'a "b" é\n🚗': {0}, "": {1}, "deadlock": {2}, "init": {3}}
    (answer,) = storm.check(chain_of(PASSING, labels, [0]), ['F ("goal")'], exact=True)
    assert answer.fractions == (Fr(8, 11),)


def test_fractions_of_any_length_stay_exact(storm):
    # Far more than 64 bits on both sides, and more decimal digits than Python converts by default.
    odds = Fr(3**10_000 // 7, 3**10_000)
    chain = chain_of([{1: odds, 2: 1 - odds}, {1: 1}, {2: 1}], {"goal": {1}, "trap": {2}}, [0])
    goal, trap, ltl = storm.check(chain, ['F ("goal")', 'F ("trap")', 'F (G ("trap"))'], exact=True)
    assert goal.fractions == (odds,)
    assert trap.fractions == ltl.fractions == (1 - odds,)
    assert goal.value.tolist() == [1 / 7]


# 0 may go on (goal 1 or trap 2, evens), give up (trap) or wait. 1 returns to 0, 2 is absorbing.
WAITING = [
    [{1: Fr(1, 2), 2: Fr(1, 2)}, {2: 1}, {0: 1}],
    [{0: 1}],
    [{2: 1}],
]


@pytest.mark.parametrize(
    ("formula", "least", "greatest"),
    [
        ('F ("goal")', Fr(0), Fr(1, 2)),
        ('F ("trap")', Fr(0), Fr(1)),
        ('X ("goal")', Fr(0), Fr(1, 2)),
        # Waiting for ever avoids both; going for ever falls into the trap in the end.
        ('G (F ("goal"))', Fr(0), Fr(0)),
        ('G (!("trap"))', Fr(0), Fr(1)),
        # Go first and be at the goal in step 1: at most 1/2. Afterwards wait for ever.
        ('(X ("goal")) & (G (!("trap")))', Fr(0), Fr(1, 2)),
        # Needs memory: wait in step 1, go in step 2.
        ('(X (!("goal"))) & (X (X ("goal")))', Fr(0), Fr(1, 2)),
        # Two visits two steps apart: twice evens.
        ('(X ("goal")) & (X (X (X ("goal"))))', Fr(0), Fr(1, 4)),
    ],
)
def test_hand_solved_decision_process(storm, formula, least, greatest):
    process = process_of(WAITING, {"goal": {1}, "trap": {2}}, [0])
    for operator, expected in (("Pmin=?", least), ("Pmax=?", greatest)):
        (answer,) = storm.check(process, [formula], operator=operator)
        assert answer.value == pytest.approx([float(expected)], abs=1e-11)
        (exact,) = storm.check(process, [formula], operator=operator, exact=True)
        assert exact.fractions == (expected,)


def test_choices_of_different_odds(storm):
    process = process_of(
        [[{1: Fr(1, 3), 2: Fr(2, 3)}, {1: Fr(3, 7), 2: Fr(4, 7)}], [{1: 1}], [{2: 1}]], {"a": {1}}, [0, 1]
    )
    (least,) = storm.check(process, ['F ("a")'], operator="Pmin=?", exact=True)
    (greatest,) = storm.check(process, ['F (G ("a"))'], operator="Pmax=?", exact=True)
    assert least.fractions == (Fr(1, 3), Fr(1))
    assert greatest.fractions == (Fr(3, 7), Fr(1))


def test_a_transient_last_state_of_a_decision_process(storm):
    process = process_of([[{0: 1}], [{0: 1}, {0: 1}]], {"a": {0}}, [0, 1])
    (answer,) = storm.check(process, ['G (("a") | (X ("a")))'], operator="Pmin=?")
    assert answer.value.tolist() == [1.0, 1.0]


def test_arguments_that_do_not_fit_are_an_error_of_the_program(storm):
    chain = chain_of(PASSING, PASSING_LABELS, [0])
    process = process_of(WAITING, {"goal": {1}}, [0])
    with pytest.raises(ValueError, match="does not fit a MarkovChain"):
        storm.check(chain, ["true"], operator="Pmax=?")
    with pytest.raises(ValueError, match="does not fit a DecisionProcess"):
        storm.check(process, ["true"])
    with pytest.raises(ValueError, match=r"no labels \['nowhere'\]"):
        storm.check(chain, ['F ("nowhere")'])
    object.__setattr__(chain, "fractions", None)
    with pytest.raises(ValueError, match="fractions"):
        storm.check(chain, ["true"], exact=True)


def test_what_storm_refuses_is_an_error_with_its_words_and_the_worker_lives_on(storm):
    chain = chain_of(PASSING, PASSING_LABELS, [0])
    with pytest.raises(EngineError, match=r"Storm cannot check 'X \(F<0 .*strict zero-bound"):
        storm.check(chain, ['F ("goal")', 'X (F<0 ("goal"))', 'F ("goal")'])
    (answer,) = storm.check(chain, ['X ("goal")'], exact=True)
    assert answer.fractions == (Fr(2, 3),)


# ---------------------------------------------------------------------------------------------------------------
# Random chains against textbook definitions in exact arithmetic.


def reachable(rows, start):
    seen, pending = {start}, [start]
    while pending:
        for target in rows[pending.pop()]:
            if target not in seen:
                seen.add(target)
                pending.append(target)
    return seen


def until(rows, left, right):
    """P(left U right) per state: Gaussian elimination of x = A x + b over the states that can get there."""
    n = len(rows)
    inside = [rows[s] if s in left and s not in right else {s: 1} for s in range(n)]
    unknown = [s for s in range(n) if s not in right and reachable(inside, s) & right]
    matrix = [
        [Fr(s == t) - Fr(inside[s].get(t, 0)) for t in unknown]
        + [sum(Fr(p) for t, p in inside[s].items() if t in right)]
        for s in unknown
    ]
    for i in range(len(matrix)):
        pivot = next(row for row in range(i, len(matrix)) if matrix[row][i] != 0)
        matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
        matrix[i] = [entry / matrix[i][i] for entry in matrix[i]]
        for row in range(len(matrix)):
            if row != i:
                factor = matrix[row][i]
                matrix[row] = [x - factor * y for x, y in zip(matrix[row], matrix[i], strict=True)]
    solution = {s: row[-1] for s, row in zip(unknown, matrix, strict=True)}
    return [Fr(1) if s in right else solution.get(s, Fr(0)) for s in range(n)]


def within(rows, left, right, steps):
    """P(left U<=steps right) per state, by the recursion over steps."""
    values = [Fr(s in right) for s in range(len(rows))]
    for _ in range(steps):
        step = [sum(p * values[t] for t, p in row.items()) for row in rows]
        values = [Fr(1) if s in right else step[s] if s in left else Fr(0) for s in range(len(rows))]
    return values


def infinitely_often(rows, states):
    """P(G F states): reach a bottom component that meets `states` (Baier & Katoen, theorem 10.27)."""
    sets = [reachable(rows, s) for s in range(len(rows))]
    bottom = [s for s in range(len(rows)) if all(s in sets[t] for t in sets[s])]
    return until(rows, set(range(len(rows))), {s for s in bottom if sets[s] & states})


@st.composite
def labelled_rows(draw):
    n = draw(st.integers(1, 6))
    rows = []
    for _ in range(n):
        targets = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=3, unique=True))
        weights = [draw(st.integers(1, 9)) for _ in targets]
        rows.append({t: Fr(w, sum(weights)) for t, w in zip(targets, weights, strict=True)})
    states = st.sets(st.integers(0, n - 1))
    initial = sorted(draw(st.sets(st.integers(0, n - 1), min_size=1)))
    return rows, draw(states), draw(states), initial, draw(st.integers(0, 5))


def check_against_definitions(storm, drawn):
    rows, a, b, initial, k = drawn
    n = len(rows)
    everywhere, not_a = set(range(n)), set(range(n)) - a
    step = [sum((p for t, p in row.items() if t in a), Fr(0)) for row in rows]
    expected = {
        'F ("a")': until(rows, everywhere, a),
        '("a") U ("b")': until(rows, a, b),
        'G ("a")': [1 - x for x in until(rows, everywhere, not_a)],
        'X ("a")': step,
        f'("a") U<={k} ("b")': within(rows, a, b, k),
        '!(("a") U ("b"))': [1 - x for x in until(rows, a, b)],
        f'!(F<={k} ("a"))': [1 - x for x in within(rows, everywhere, a, k)],
        'G (F ("a"))': infinitely_often(rows, a),
        'F (G ("a"))': [1 - x for x in infinitely_often(rows, not_a)],
    }
    chain = chain_of(rows, {"a": a, "b": b}, initial)
    exact = storm.check(chain, list(expected), exact=True)
    rounded = storm.check(chain, list(expected))
    for (formula, values), fraction, double in zip(expected.items(), exact, rounded, strict=True):
        true = [values[state] for state in initial]
        assert list(fraction.fractions) == true, formula
        assert double.value == pytest.approx([float(value) for value in true], rel=1e-11, abs=1e-12), formula
        if double.lower is not None:
            for lower, upper, value in zip(double.lower, double.upper, true, strict=True):
                assert Fr(lower) - Fr(1, 10**15) <= value <= Fr(upper) + Fr(1, 10**15), formula


RELAXED = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]}


@settings(**RELAXED)
@given(drawn=labelled_rows())
def test_random_chains_against_definitions(storm, drawn):
    check_against_definitions(storm, drawn)


@pytest.mark.slow
@settings(max_examples=3000, **RELAXED)
@given(drawn=labelled_rows())
def test_many_random_chains_against_definitions(storm, drawn):
    check_against_definitions(storm, drawn)


def test_the_elimination_used_as_oracle_solves_the_hand_solved_chain():
    assert until(PASSING, {0, 1, 2, 3}, {2}) == [Fr(8, 11), Fr(2, 11), Fr(1), Fr(0)]
    assert within(PASSING, {0, 1}, {2}, 3)[:2] == [Fr(13, 18), Fr(1, 6)]
    assert infinitely_often(LOOPS, {2}) == [Fr(1, 5), Fr(1), Fr(1), Fr(0)]
