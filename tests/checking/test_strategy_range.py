"""The range over all strategies: Storm and interval iteration against every strategy tried, with exact fractions."""

import contextlib
import itertools
from fractions import Fraction
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from exact_oracle import reach_probabilities
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import EngineError
from verifier.chains.chain import DecisionProcess, decision_process, filled_counts, markov_chain
from verifier.checking import strategies
from verifier.checking.enclosure import AGREEMENT
from verifier.checking.process import StormProcess
from verifier.checking.settings import EngineSettings
from verifier.checking.strategies import optimal_probabilities, strategy_range
from verifier.checking.two_engines import abstracted
from verifier.language.ltl import parse_formula
from verifier.language.specs import read_spec
from verifier.perception.confusion import read_confusion
from verifier.systems.reader import read_model
from verifier.systems.scene import SkeletonOptions
from verifier.systems.skeleton import build_skeleton
from verifier.systems.strategies import build_strategies


@pytest.fixture(scope="module")
def storm():
    with StormProcess() as process:
        yield process


def process_of(states, labels, initial=(0,)):
    """A decision process from, for each state, a list of choices {successor: fraction}."""
    rows = [sorted(choice.items()) for choices in states for choice in choices]
    return DecisionProcess(
        choice_starts=np.cumsum([0, *map(len, states)]).astype(np.int64),
        indptr=np.cumsum([0, *map(len, rows)]).astype(np.int64),
        indices=np.array([target for row in rows for target, _ in row], dtype=np.int64),
        probabilities=np.array([float(weight) for row in rows for _, weight in row]),
        labels={name: np.isin(np.arange(len(states)), sorted(where)) for name, where in labels.items()},
        initial=np.array(initial, dtype=np.int64),
    )


FROM_EACH = process_of([[{1: Fraction(1, 2), 2: Fraction(1, 2)}], [{1: Fraction(1)}], [{2: Fraction(1)}]],
                       {"goal": {1}}, (0, 1, 2))  # fmt: skip


def test_two_ways_to_the_goal_by_hand(storm):
    # Choice 1: goal with 1/2, again with 1/4, lost with 1/4: 1/2 / (3/4) = 2/3. Choice 2: goal with 3/5.
    states = [
        [{0: Fraction(1, 4), 1: Fraction(1, 2), 2: Fraction(1, 4)}, {1: Fraction(3, 5), 2: Fraction(2, 5)}],
        [{1: Fraction(1)}],
        [{2: Fraction(1)}],
    ]
    found = strategy_range(process_of(states, {"goal": {1}}), parse_formula("F goal"), storm)
    assert found.smallest == pytest.approx([0.6], abs=1e-11)
    assert found.largest == pytest.approx([2 / 3], abs=1e-11)
    assert found.confirmed


def test_staying_for_ever_is_a_strategy(storm):
    # In 0 one may stay, so G start has probability 1 at best and 0 at worst, F goal the other way round. Interval
    # iteration alone cannot tell: staying is no loop of a single choice.
    states = [[{0: Fraction(1)}, {1: Fraction(1)}], [{1: Fraction(1)}]]
    process = process_of(states, {"start": {0}, "goal": {1}})
    for formula in ("G start", "F goal"):
        found = strategy_range(process, parse_formula(formula), storm)
        assert (found.smallest.tolist(), found.largest.tolist()) == ([0.0], [1.0])
    assert not strategy_range(process, parse_formula("G start"), storm).confirmed


def test_what_is_settled_is_settled_under_every_strategy(monkeypatch):
    # 0 may be left for 1 and need not be: G F goal is certain where it is left by chance, and not for every strategy.
    states = [[{0: Fraction(1)}, {1: Fraction(1)}], [{0: Fraction(1)}]]
    lower, _ = optimal_probabilities(process_of(states, {"goal": {1}}), parse_formula("G F goal"), False)
    assert lower.tolist() == [0]
    monkeypatch.setattr(strategies, "MOST_ITERATIONS", 1)  # what is decided has its value before the first step
    assert [ends.tolist() for ends in optimal_probabilities(FROM_EACH, parse_formula("X goal"), True)] == [
        [0.5, 1, 0]
    ] * 2


def test_strategies_may_remember(storm):
    # From 0 to 1 or to 2 and back: one visits both only by remembering which has been visited.
    states = [[{1: Fraction(1)}, {2: Fraction(1)}], [{0: Fraction(1)}], [{0: Fraction(1)}]]
    found = strategy_range(process_of(states, {"a": {1}, "b": {2}}), parse_formula("F a & F b"), storm)
    assert (found.smallest.tolist(), found.largest.tolist()) == ([0.0], [1.0])


@pytest.mark.parametrize(
    ("value", "negated", "wrong"),
    [
        ([0.5, 1, 0], [0.5, 0, 1], None),
        ([0.5, 1, AGREEMENT], [0.5, 0, 1 - AGREEMENT], None),
        (
            [0.5, 1, 2 * AGREEMENT],
            [0.5, 0, 1 - 2 * AGREEMENT],
            r"Pmin=\? of F goal at initial state 2: Storm says 2e-",
        ),
        ([0.5 - 2 * AGREEMENT, 1, 0], [0.5 + 2 * AGREEMENT, 0, 1], "state 0: .* interval iteration says 0.5 to 0.5"),
        ([0.5, 1, 0], [0.5, 2 * AGREEMENT, 1], r"state 1: Storm says 1\.0 \(and Pmax=\? of the negation 2e-"),
        ([0.5, 1, np.nan], [0.5, 0, 1], "state 2: Storm says nan"),
    ],
)
def test_storm_is_held_against_interval_iteration_and_against_its_own_negation(value, negated, wrong):
    asked = []

    @contextlib.contextmanager
    def answers(process, texts, operator, timeout_s):
        asked.append((texts, operator))
        yield iter([SimpleNamespace(value=np.array(value), engine="Storm")])

    def check(process, texts, operator, timeout_s):
        asked.append((texts, operator))
        return [SimpleNamespace(value=np.array(negated), engine="Storm")]

    given_ = FROM_EACH, parse_formula("F goal"), SimpleNamespace(asked=answers, check=check)
    if wrong is not None:
        with pytest.raises(EngineError, match=wrong):
            strategy_range(*given_)
        return
    found = strategy_range(*given_)
    assert (found.smallest.tolist(), found.largest.tolist(), found.confirmed) == (value, value, True)
    yes, no = ['(F "goal")'], ['(!(F "goal"))']
    assert asked == [(yes, "Pmin=?"), (no, "Pmax=?"), (yes, "Pmax=?"), (no, "Pmin=?")]


@pytest.mark.parametrize(
    ("least", "most", "widths", "confirmed"),
    [
        ([0, 0.5], [0, 0.75], ([0, 1e-10], [1e-10, 0]), True),
        ([0, 0.5], [0, 0.75], ([0, 0], [0, 2e-10]), False),
        ([0, 0.5], [0, 0.75], ([2e-10, 0], [0, 0]), False),
        ([AGREEMENT, 0.5], [0, 0.75], ([0, 0], [0, 0]), True),
        ([2 * AGREEMENT, 0.5], [0, 0.75], ([0, 0], [0, 0]), None),
    ],
)
def test_a_range_is_confirmed_where_both_iterations_meet_everywhere(least, most, widths, confirmed, monkeypatch):
    def optimum(*_, greatest):
        return np.array(most if greatest else least), (np.zeros(2), np.array(widths[greatest]))

    monkeypatch.setattr(strategies, "_optimum", optimum)
    given_ = FROM_EACH, parse_formula("F goal"), None, EngineSettings()
    if confirmed is None:
        with pytest.raises(EngineError, match="least probability of F goal exceeds its greatest"):
            strategy_range(*given_)
    else:
        assert strategy_range(*given_).confirmed is confirmed


def test_interval_iteration_stops_where_both_meet_at_every_initial_state(monkeypatch):
    # Stay with 1/2, else goal or lost: after k steps 2^-k apart. At the goal both meet at once.
    half, quarter = Fraction(1, 2), Fraction(1, 4)
    waiting = process_of([[{0: half, 1: quarter, 2: quarter}], [{1: 1}], [{2: 1}]], {"goal": {1}}, (0, 1))
    # To and fro until it is lost: from below nothing moves, from above it halves every two steps.
    lost = process_of([[{1: half, 2: half}], [{0: 1}], [{2: 1}]], {"goal": set()}, (0,))
    for width, steps in ((1e-10, 40), (100 * 2.0**-10, 10)):
        monkeypatch.setattr(strategies, "MEETING_WIDTH", width)
        lower, upper = optimal_probabilities(waiting, parse_formula("F goal"), False)
        assert (upper - lower).tolist() == [2.0**-steps, 0]
        lower, upper = optimal_probabilities(lost, parse_formula("F goal"), False)
        assert (lower[0], upper[0]) == (0, 2.0**-steps)


FORMULAS = ("F b", "G a", "a U b")


@st.composite
def processes(draw, ending):
    """At most four states with three choices each; `ending`: every choice leads on, and the last two states loop."""
    n = draw(st.integers(3, 4)) if ending else draw(st.integers(1, 4))
    states = []
    for state in range(n):
        if ending and state >= n - 2:
            states.append([{state: Fraction(1)}])
            continue
        choices = []
        for _ in range(draw(st.integers(1, 3))):
            low = state + 1 if ending else 0
            targets = draw(st.lists(st.integers(low, n - 1), min_size=1, max_size=3))
            weights = [draw(st.integers(1, 4)) for _ in targets]
            if ending and draw(st.booleans()):
                targets, weights = [*targets, state], [*weights, 1]
            choice = {}
            for target, weight in zip(targets, weights, strict=True):
                choice[target] = choice.get(target, 0) + Fraction(weight, sum(weights))
            choices.append(choice)
        states.append(choices)
    subset = st.sets(st.integers(0, n - 1))
    return states, {"a": draw(subset), "b": draw(subset)}, draw(st.sampled_from(FORMULAS))


def memoryless_range(states, labels, formula):
    """(least, greatest) exact probability from each state; for these formulas memory does not help."""
    everywhere = set(range(len(states)))
    found = []
    for chain in itertools.product(*states):
        if formula == "F b":
            values = reach_probabilities(chain, labels["b"])
        elif formula == "G a":
            values = [1 - value for value in reach_probabilities(chain, everywhere - labels["a"])]
        else:
            given_up = everywhere - labels["a"] - labels["b"]
            halted = [{s: Fraction(1)} if s in given_up else row for s, row in enumerate(chain)]
            values = reach_probabilities(halted, labels["b"])
        found.append(values)
    return [min(each) for each in zip(*found, strict=True)], [max(each) for each in zip(*found, strict=True)]


@given(processes(ending=False))
def test_the_range_is_that_of_all_strategies(storm, sample):
    states, labels, formula = sample
    least, greatest = memoryless_range(states, labels, formula)
    process = process_of(states, labels, range(len(states)))
    found = strategy_range(process, parse_formula(formula), storm)
    assert found.smallest == pytest.approx([float(each) for each in least], abs=1e-10)
    assert found.largest == pytest.approx([float(each) for each in greatest], abs=1e-10)
    for best, exact in ((False, least), (True, greatest)):
        lower, upper = optimal_probabilities(process, parse_formula(formula), best)
        assert all(low - 1e-12 <= value <= high + 1e-12 for low, value, high in zip(lower, exact, upper, strict=True))


@given(processes(ending=True))
def test_where_runs_end_interval_iteration_finds_the_range_alone(sample):
    states, labels, formula = sample
    process = process_of(states, labels, range(len(states)))
    for best, exact in zip((False, True), memoryless_range(states, labels, formula), strict=True):
        lower, upper = optimal_probabilities(process, parse_formula(formula), best)
        assert lower == pytest.approx([float(each) for each in exact], abs=1e-11)
        assert upper == pytest.approx([float(each) for each in exact], abs=1e-11)


# The shipped study: vmax = 3, a pedestrian, matrices by class and distance.
CELLS, STOP, CROSSWALK, VMAX = 65, 56, 57, 3


def car_moves(x, v):
    """The next states that speeds v - 1, v, v + 1 lead to."""
    return {(min(x + v, CELLS), speed) for speed in range(max(v - 1, 0), min(v + 1, VMAX) + 1)}


@cache
def can_keep(ped, x, v):
    """Whether the car can keep every promise if what is reported (a pedestrian or not) is true.

    With a pedestrian it must be before the line or stopped at it, without one it must not stop at the line, and it
    must never stand before the line. It moves on in every step, or has stopped, so the recursion ends.
    """
    if (x, v) == (STOP, 0):
        return ped
    if x < STOP and v == 0:
        return False
    if ped and x >= STOP:
        return False
    return x == CELLS or v == 0 or any(can_keep(ped, *following) for following in car_moves(x, v))


@cache
def stopping(best, reported, x, v):
    """Least (or greatest) probability that the car meets the three requirements where a pedestrian stands.

    `reported` gives, for each ten metres, the probability of a pedestrian's being reported. The strategy is free
    for each observation on its own, so the extremes are taken for each on its own.
    """
    if (x, v) == (STOP, 0):
        return Fraction(1)
    if x >= STOP or v == 0:  # it can no longer stop at the line, or stands before it: a requirement is violated
        return Fraction(0)
    value = Fraction(0)
    seen = reported[(CROSSWALK - x) // 10]
    for ped, weight in ((True, seen), (False, 1 - seen)):
        kept = {following for following in car_moves(x, v) if can_keep(ped, *following)}
        moves = kept if can_keep(ped, x, v) else {(min(x + v, CELLS), v)}
        value += weight * best(stopping(best, reported, *following) for following in moves)
    return value


@pytest.fixture(scope="module")
def study(root):
    """(system, matrices, formula of all three requirements, options) of the shipped study."""
    spec = read_spec(root / "specs/car_pedestrian.ltl")
    system = read_model(root / "models/car_pedestrian.toml").instantiate({"vmax": VMAX})
    matrices = read_confusion(root / "examples/nuscenes_yolov3_class.json").matrices
    formula = next(each.formula for each in spec.requirements if each.name == "all_three")
    return system, matrices, formula, SkeletonOptions(formula=formula)


def test_the_range_of_the_shipped_study(study, storm):
    system, matrices, formula, options = study
    strategies = build_strategies(system, system.planners["correct"], "ped", matrices, options)
    [abstract] = abstracted([formula])
    labels = {name: strategies.choices.mask_of(node) for name, node in abstract.propositions.items()}
    process = decision_process(strategies, filled_counts(strategies.choices, matrices, "error"), labels)
    found = strategy_range(process, abstract.formula, storm)
    assert found.confirmed

    columns = matrices.counts[:, :, 0].tolist()  # labels ped, obs, empty; column of true pedestrians
    reported = tuple(Fraction(column[0], sum(column)) for column in columns)
    assert reported[0] == Fraction(31, 158)
    starts = [(1, v) for v in (1, 2, 3)]
    assert [tuple(column[s] for column in process.valuations.values()) for s in process.initial] == starts
    for best, values in ((min, found.smallest), (max, found.largest)):
        exact = [stopping(best, reported, *start) for start in starts]
        assert values == pytest.approx([float(each) for each in exact], rel=1e-9)
    # The greatest, which `exact` now holds. Every success ends with a stop at the line, which can only be made from
    # the cell before it at walking pace (a car that moves two cells cannot stand in the next step), and a winning
    # strategy stops there only if a pedestrian is reported in that very state, 2 m away: 31 of 158. A car that slows
    # down to walking pace whatever is reported, which winning strategies may do, gets there for certain.
    assert max(exact) == min(exact) == Fraction(31, 158)
    assert found.smallest.min() == pytest.approx(0.000290752, abs=1e-9)


def test_the_controller_lies_in_the_range(study):
    system, matrices, _, options = study
    skeleton = build_skeleton(system, system.planners["correct"], "ped", matrices, options)
    chain = markov_chain(skeleton, filled_counts(skeleton, matrices, "error"), {}, exact=True)
    reported = tuple(Fraction(column[0], sum(column)) for column in matrices.counts[:, :, 0].tolist())
    rows = [
        {int(chain.indices[k]): chain.fractions[k] for k in range(chain.indptr[s], chain.indptr[s + 1])}
        for s in range(chain.state_count)
    ]
    states = list(zip(chain.valuations["x"].tolist(), chain.valuations["v"].tolist(), strict=True))
    failed = {s for s, (x, v) in enumerate(states) if (x < STOP and v == 0) or (x >= STOP and (x, v) != (STOP, 0))}
    halted = [{s: Fraction(1)} if s in failed else row for s, row in enumerate(rows)]
    values = reach_probabilities(halted, {states.index((STOP, 0))})
    for start in chain.initial.tolist():
        least, greatest = (stopping(best, reported, *states[start]) for best in (min, max))
        assert least <= values[start] <= greatest
