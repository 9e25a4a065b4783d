"""Causes of losing: by hand in fractions, against their definition in plain Python, and what corrections gain."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_causes import PlainSystem, corrected
from small_objectives import channel_of, drawing_twins, objective_of, random_objective, random_rates

from verifier.analysis.counterexamples import causes as cause_search
from verifier.analysis.counterexamples import patterns as pattern_search
from verifier.analysis.counterexamples.causes import Losses
from verifier.analysis.counterexamples.patterns import DetectionError
from verifier.analysis.counterexamples.runs import RunGraph, prospects, violation_probability
from verifier.analysis.sensitivity.adjoint import state_values
from verifier.analysis.sensitivity.priorities import corrected_probabilities
from verifier.base.errors import NoAnswerError
from verifier.checking.enclosure import AGREEMENT

NOTHING, A, B = 0, 1, 2


def floats(rates):
    return np.array([[[float(cell) for cell in row] for row in cells] for cells in rates])


def columns(*true):
    """One bin; a column of fractions for each true label."""
    return [[list(map(Fraction, row)) for row in zip(*true, strict=True)]]


def losses_of(objective, rates, satisfying=False):
    values = state_values(objective, floats(rates) if isinstance(rates, list) else rates)
    before = prospects(objective, values, satisfying)
    return Losses(objective, values, before), RunGraph(objective, values, before), values, before


def shares(objective, rates, satisfying=False, most_kinds=9):
    """Set of kinds -> probability, and pattern -> probability."""
    losses, _, values, _ = losses_of(objective, rates, satisfying)
    total, _ = violation_probability(objective, values.rates, 0, satisfying)
    found = losses.attribution(0, total, most_kinds)
    assert math.fsum(cause.probability for cause in found.causes) == pytest.approx(total, rel=1e-12, abs=0)
    patterns = losses.patterns(0, 50, total)
    return (
        {frozenset(cause.reports): cause.probability for cause in found.causes},
        {pattern.steps: pattern.probability for pattern in patterns.patterns},
    )


def only(*kinds):
    return frozenset(DetectionError(*kind) for kind in kinds)


# One look at an object a (column 1) and an object b (column 2). State 0 looks, 1 is bad, 2 is good.
# Each is missed: a with 1/4, b with 1/3. What else it could be reported as does not occur.
TWO = channel_of([(), ("a",), ("b",)], [[0, 0]], [[A, B]])
MISSES = columns((1, 0, 0), (Fraction(1, 4), Fraction(3, 4), 0), (Fraction(1, 3), 0, Fraction(2, 3)))
MISSED_A, MISSED_B = (0, NOTHING, A), (0, NOTHING, B)


def one_look(stops):
    """The car is lost unless the observation is one of those that it stops for."""
    following = [[2 if seen in stops else 1 for seen in TWO.observations], [1] * 4, [2] * 4]
    return objective_of(TWO, following, [0, 0, 0], {"bad": {1}}, "G !bad", ended=(1, 2))


def test_where_either_report_stops_both_must_be_wrong_and_are_one_cause():
    causes, patterns = shares(one_look([{"a"}, {"b"}, {"a", "b"}]), MISSES)
    assert causes == {only(MISSED_A, MISSED_B): pytest.approx(1 / 12, rel=1e-12, abs=0)}
    assert patterns == {(frozenset([only(MISSED_A, MISSED_B)]),): pytest.approx(1 / 12, rel=1e-12, abs=0)}


def test_where_both_reports_are_needed_each_is_a_cause_and_the_two_together_another():
    objective = one_look([{"a", "b"}])
    causes, patterns = shares(objective, MISSES)
    # a alone missed: 1/4 2/3; b alone: 3/4 1/3; both: 1/4 1/3; in all 1/2.
    expected = {only(MISSED_A): 1 / 6, only(MISSED_B): 1 / 4, only(MISSED_A, MISSED_B): 1 / 12}
    assert causes == pytest.approx(expected, rel=1e-12, abs=0)
    # All three lead to the same state in one step, so as runs they are one pattern that leaves it open.
    assert patterns == {(frozenset(expected),): pytest.approx(1 / 2, rel=1e-12, abs=0)}
    # With a never missed it is lost where b is missed, and so on.
    sets = [[MISSED_A], [MISSED_B], [MISSED_A, MISSED_B]]
    assert list(causes) == [only(MISSED_B), only(MISSED_A), only(MISSED_A, MISSED_B)]  # the most probable first
    gained = corrected_probabilities(objective, floats(MISSES), sets, 0)
    assert gained == pytest.approx([2 / 3, 3 / 4, 1], rel=1e-12, abs=0)


def test_a_correct_report_is_no_cause_though_the_other_object_is_lost_beside_it():
    # It stops for b only: a makes no difference, whatever is reported of it.
    causes, _ = shares(one_look([{"b"}, {"a", "b"}]), MISSES)
    assert causes == {only(MISSED_B): pytest.approx(1 / 3, rel=1e-12, abs=0)}


def test_a_planner_that_counts_is_lost_by_all_reports_that_could_have_been_one_too_few():
    # Three empty places with false alarms in 1/4, 1/3 and 1/2 of the looks; it brakes, and is lost, for two or more.
    # Of two either alone could have helped, so both count; of three two had to be corrected, any two of them.
    alarm = [Fraction(1, 4), Fraction(1, 3), Fraction(1, 2)]
    counted = ((), ("once",), ("more",))
    plain = channel_of([(), ("a",)], [[0, 1, 2]], [[NOTHING] * 3], tuple(map(frozenset, counted)))
    told = np.broadcast_to([0, 1], (1, 3, 2))
    channel = replace(plain, told=told, then=np.array([[0, 1], [1, 2], [2, 2]]))
    objective = objective_of(channel, [[2, 2, 1], [1] * 3, [2] * 3], [0] * 3, {"bad": {1}}, "G !bad", ended=(1, 2))
    rates = [[[1 - each, Fraction(0)], [each, Fraction(1)]] for each in alarm]
    causes, _ = shares(objective, rates)
    assert causes == pytest.approx(
        {
            only((0, A, NOTHING), (1, A, NOTHING)): 1 / 24,
            only((0, A, NOTHING), (2, A, NOTHING)): 1 / 12,
            only((1, A, NOTHING), (2, A, NOTHING)): 1 / 8,
            only((0, A, NOTHING), (1, A, NOTHING), (2, A, NOTHING)): 1 / 24,
        },
        rel=1e-12,
        abs=0,
    )


@pytest.mark.every(5)
@pytest.mark.parametrize("steps", [3, 700, 1500])
@pytest.mark.parametrize("rare", [Fraction(1, 10**3), Fraction(1, 10**9), Fraction(1, 10**12), Fraction(1, 2**52)])
def test_where_little_is_reported_for_long_no_digits_are_lost(steps, rare):
    # A clock goes round while a is missed; a report stops it, one as b is the end.
    channel = channel_of([(), ("a",), ("b",)], [[0]], [[A]])
    lost, stopped = steps, steps + 1
    following = [[(step + 1) % steps, stopped, lost] for step in range(steps)] + [[lost] * 3, [stopped] * 3]
    objective = objective_of(channel, following, [0] * (steps + 2), {"bad": {lost}}, "G !bad", ended=(lost, stopped))
    causes, _ = shares(objective, columns((1, 0, 0), (1 - 2 * rare, rare, rare), (0, 0, 1)))
    at_once, later = only((0, B, A)), only((0, B, A), (0, NOTHING, A))
    assert causes == pytest.approx({at_once: float(rare), later: 0.5 - float(rare)}, rel=1e-12, abs=0)


def test_causes_that_do_not_add_up_are_no_answer():
    losses, _, values, _ = losses_of(one_look([{"a"}, {"b"}, {"a", "b"}]), MISSES)
    total, _ = violation_probability(losses._objective, values.rates, 0, False)
    for off in (2e-9, -2e-9):
        with pytest.raises(NoAnswerError, match="too many digits are lost"):
            losses.attribution(0, total * (1 + off))


def test_without_a_detection_error_planner_and_dynamics_lose():
    # It stops unless both are seen: correct reports lose it, with 3/4 2/3.
    causes, patterns = shares(one_look([set(), {"a"}, {"b"}]), MISSES)
    assert causes == {frozenset(): pytest.approx(1 / 2, rel=1e-12, abs=0)}
    assert patterns == {(): pytest.approx(1 / 2, rel=1e-12, abs=0)}


def test_a_detection_error_that_made_losing_less_probable_is_no_cause():
    # State 0: a alone. Seen -> 1, a second look that needs a (missed 1/4); missed -> 2, one that is lost with 1/16:
    # the miss in 0 helps. Lost: 3/4 1/4 by the miss in 1; 1/4 1/16 by the misses in 2 and 3.
    channel = channel_of([(), ("a",)], [[0]], [[A]])
    following = [[2, 1], [4, 5], [3, 5], [4, 5], [4, 4], [5, 5]]
    objective = objective_of(channel, following, [0] * 6, {"bad": {4}}, "G !bad", ended=(4, 5))
    rates = columns((1, 0), (Fraction(1, 4), Fraction(3, 4)))
    causes, patterns = shares(objective, rates)
    assert causes == {only(MISSED_A): pytest.approx(3 / 16 + 1 / 64, rel=1e-12, abs=0)}
    # Twice in a row is once: both are one pattern.
    assert list(patterns.values()) == [pytest.approx(13 / 64, rel=1e-12, abs=0)]


def test_runs_that_differ_only_in_when_it_happened_are_one_pattern():
    # Three looks, each seen with 3/4; lost at the first miss. 1/4 + 3/16 + 9/64 = 37/64, in three runs.
    channel = channel_of([(), ("a",)], [[0]], [[A]])
    following = [[3, 1], [3, 2], [3, 4], [3, 3], [4, 4]]
    objective = objective_of(channel, following, [0] * 5, {"bad": {3}}, "G !bad", ended=(3, 4))
    rates = columns((1, 0), (Fraction(1, 4), Fraction(3, 4)))
    losses, graph, _, _ = losses_of(objective, rates)
    found = losses.patterns(0, 5, 37 / 64)
    (pattern,) = found.patterns
    assert (found.complete, found.ranked) == (True, True)
    assert pattern.probability == pytest.approx(37 / 64, rel=1e-14, abs=0)
    members = graph.runs(0, 9, False, losses.symbol, pattern.symbols)
    assert [run.probability for run in members] == pytest.approx([1 / 4, 3 / 16, 9 / 64], rel=1e-14, abs=0)
    assert [run.counted for run in members] == [1, 2, 3]


def test_patterns_that_are_all_add_up_to_what_is_lost():
    losses, _, _, _ = losses_of(one_look([{"b"}, {"a", "b"}]), MISSES)
    for off, scaled in ((0, True), (AGREEMENT / 2, True), (-AGREEMENT / 2, True), (2 * AGREEMENT, False)):
        total = (1 + off) / 3
        (pattern,) = losses.patterns(0, 5, total).patterns
        assert pattern.probability == pytest.approx(total if scaled else 1 / 3, rel=1e-15, abs=0)
        if scaled:
            (cause,) = losses.attribution(0, total).causes
            assert cause.probability == pytest.approx(total, rel=1e-15, abs=0)
    for violation, count in ((0, 0), (1, 1)):  # nothing is open: lost, or not, from the first
        objective = objective_of(TWO, [[0] * 4], [0], {"bad": {0} if violation else set()}, "G !bad", ended=(0,))
        losses, _, _, _ = losses_of(objective, MISSES)
        found = losses.patterns(0, 5, float(violation))
        assert (len(found.patterns), found.complete, found.ranked) == (count, True, True)
        assert [cause.probability for cause in losses.attribution(0, float(violation)).causes] == [1.0] * count


@pytest.mark.parametrize("most", [1, 2])
def test_no_more_beginnings_are_solved_for_than_is_said(most, monkeypatch):
    # Of all patterns first, then of those that begin with the miss: the second tells that it is one.
    monkeypatch.setattr(pattern_search, "MOST_PATTERNS", most)
    monkeypatch.setattr(pattern_search, "_FEWEST_BEGINNINGS", most)
    losses, _, _, _ = losses_of(one_look([{"b"}, {"a", "b"}]), MISSES)
    found = losses.patterns(0, 1, 1 / 3)
    assert [each.probability for each in found.patterns] == [pytest.approx(1 / 3, rel=1e-12, abs=0)][: most - 1]
    assert not found.ranked
    for seed in range(25):  # what is told of them is as many as are asked for, with their probabilities
        plain, objective = random_plain(seed)
        losses, _, _, before = losses_of(objective, plain.rates)
        total = float(before.violation[objective.product.start[0]])
        every = plain.causes_and_patterns()[1]
        for count in (1, 2):
            found = losses.patterns(0, count, total)
            assert len(found.patterns) <= count
            for pattern in found.patterns:
                assert pattern.probability == pytest.approx(float(every[pattern.steps]), rel=1e-12, abs=0)


def test_patterns_that_are_asked_for_are_the_most_probable_though_there_are_others():
    # Missed (1/4) it is lost in state 1, told as b (1/8) in state 2.
    channel = channel_of([(), ("a",), ("b",)], [[0]], [[A]], TWO.observations[:3])
    following = [[1, 3, 2], [1] * 3, [2] * 3, [3] * 3]
    objective = objective_of(channel, following, [0] * 4, {"bad": {1, 2}}, "G !bad", ended=(1, 2, 3))
    rates = columns((1, 0, 0), (Fraction(1, 4), Fraction(5, 8), Fraction(1, 8)), (0, 0, 1))
    losses = losses_of(objective, rates)[0]
    for count, complete in ((1, False), (2, True)):
        found = losses.patterns(0, count, 3 / 8)
        assert [pattern.probability for pattern in found.patterns] == pytest.approx([1 / 4, 1 / 8][:count])
        assert (found.complete, found.ranked) == (complete, True)
    # If both lead to state 1 they are one step, which leaves open what it was.
    following[0] = [1, 3, 1]
    objective = objective_of(channel, following, [0] * 4, {"bad": {1, 2}}, "G !bad", ended=(1, 2, 3))
    either = frozenset([only(MISSED_A), only((0, B, A))])
    assert shares(objective, rates)[1] == {(either,): pytest.approx(3 / 8, rel=1e-12, abs=0)}


def test_a_step_that_comes_again_after_another_one_is_another_step():
    # Three looks, in bins 0, 1, 0; lost is only who misses each time: 1/4 1/3 1/4.
    channel = channel_of([(), ("a",)], [[0], [1]], [[A], [A]])
    following = [[1, 4], [2, 4], [3, 4], [3, 3], [4, 4]]
    objective = objective_of(channel, following, [0, 1, 0, 0, 0], {"bad": {3}}, "G !bad", ended=(3, 4))
    rates = [*columns((1, 0), (Fraction(1, 4), Fraction(3, 4))), *columns((1, 0), (Fraction(1, 3), Fraction(2, 3)))]
    first, second = (frozenset([only((at, NOTHING, A))]) for at in (0, 1))
    assert shares(objective, rates)[1] == {(first, second, first): pytest.approx(1 / 48, rel=1e-12, abs=0)}
    # In bins 0, 0, 1, 1 each of two steps comes twice in a row: the one run that is lost is a member of its pattern.
    following = [[1, 5], [2, 5], [3, 5], [4, 5], [4, 4], [5, 5]]
    objective = objective_of(channel, following, [0, 0, 1, 1, 0, 0], {"bad": {4}}, "G !bad", ended=(4, 5))
    losses, graph, _, _ = losses_of(objective, rates)
    (pattern,) = losses.patterns(0, 2, 1 / 144).patterns
    assert pattern.steps == (first, second)
    (run,) = graph.runs(0, 2, False, losses.symbol, pattern.symbols)
    assert (run.states.tolist(), run.probability) == ([0, 1, 2, 3, 4], pytest.approx(1 / 144, rel=1e-12, abs=0))


@pytest.mark.parametrize(
    ("states", "most"), [(0, 200), (1, 200), (10_485, 200), (10_600, 197), (50_000, 41), (105_000, 20), (10**6, 20)]
)
def test_beginnings_of_patterns_are_as_many_as_memory_reaches_from_20_to_200(states, most):
    assert pattern_search.PatternSearch(SimpleNamespace(symbols=()), np.ones(states, bool), None)._most == most


def test_risks_are_ranked_as_the_same_up_to_a_billionth_of_them():
    risk = np.array([[0.5, 0.5 * (1 + 5e-10), 0.5 * (1 + 2e-9), 0, 0, 1e-12, 2e-12], [0, 0, 0, 0, 1e-300, 1, 1]])
    assert cause_search._ranks(risk).tolist() == [[3, 3, 4, 0, 0, 1, 2], [0, 0, 0, 0, 1, 2, 2]]


def test_what_is_always_missed_is_lost_by_the_misses_though_it_is_certain():
    # Both looks see nothing, always: P = 0, no report ever helped, and each correct one would have.
    channel = channel_of([(), ("a",)], [[0]], [[A]])
    following = [[1, 3], [2, 3], [2, 2], [3, 3]]
    objective = objective_of(channel, following, [0] * 4, {"bad": {2}}, "G !bad", ended=(2, 3))
    causes, patterns = shares(objective, columns((1, 0), (1, 0)))
    assert causes == {only(MISSED_A): 1}
    assert patterns == {(frozenset([only(MISSED_A)]),): 1}
    # The same where it waits for ever for a report that is never made: a losing component, entered or begun in.
    for first in (0, 1):
        following = [[1, 1], [1, 2], [2, 2]]
        objective = objective_of(channel, following, [0] * 3, {"on": {2}}, "F on", starts=(first,), ended=(2,))
        causes, patterns = shares(objective, columns((1, 0), (1, 0)))
        assert causes == {only(MISSED_A): 1}
        assert patterns == {(frozenset([only(MISSED_A)]),): 1}


def test_on_infinite_runs_reports_count_up_to_the_component_in_which_it_is_lost():
    # 0 waits while a is seen (3/4); a miss leads to 1, from where it comes back if a is seen, and else to 2 and 3,
    # which alternate for good. G F q holds while it waits. Lost almost surely in the end, though never with correct
    # reports: by misses only, and as one pattern.
    channel = channel_of([(), ("a",)], [[0]], [[A]])
    objective = objective_of(channel, [[1, 0], [2, 0], [3, 3], [2, 2]], [0] * 4, {"q": {0}}, "G F q")
    causes, patterns = shares(objective, columns((1, 0), (Fraction(1, 4), Fraction(3, 4))))
    assert causes == {only(MISSED_A): pytest.approx(1, rel=1e-12, abs=0)}
    assert list(patterns.values()) == [pytest.approx(1, rel=1e-12, abs=0)]


@pytest.mark.parametrize(("states", "room"), [(0, 8), (1, 8), (1, 7), (3, 64), (3, 96), (5, 1), (1, 2**30)])
def test_sets_of_causes_have_places_as_far_as_memory_reaches(states, room, monkeypatch):
    """The most kinds whose sets, with the place of the others, times the states are within `room`; one at least."""
    monkeypatch.setattr(cause_search, "MOST_STATES", room)
    for most in (1, 2, 9):
        fitting = max((k for k in range(1, most + 1) if max(states, 1) * 2 ** (k + 1) <= room), default=1)
        for kinds in range(12):
            told_apart = Losses._most_kinds(SimpleNamespace(_open=np.ones(states)), kinds, most)
            assert told_apart == fitting + (kinds == fitting + 1), (kinds, most)


def test_so_many_combinations_of_reports_are_looked_at(monkeypatch):
    # Each of the two is reported in two ways, and counts or not.
    monkeypatch.setattr(cause_search, "_MOST_OUTCOMES", 16)
    losses_of(one_look([{"a", "b"}]), MISSES)
    monkeypatch.setattr(cause_search, "_MOST_OUTCOMES", 15)
    with pytest.raises(
        NoAnswerError, match=r"up to 2 reports are made in one step, and about 2e.01 .* limit is 15\n"
    ):
        losses_of(one_look([{"a", "b"}]), MISSES)


def test_five_kinds_are_told_apart_in_products_of_up_to_32768_open_states():
    for states, told_apart in ((2**15, 5), (2**15 + 1, 4)):
        assert Losses._most_kinds(SimpleNamespace(_open=np.ones(states)), 9, cause_search.MOST_KINDS) == told_apart


def test_a_planner_that_asks_nothing_loses_by_what_the_world_draws():
    channel = channel_of([()], [[0]], [[0]]).moved_by(np.array([[Fraction(1, 4), Fraction(3, 4)]], dtype=object))
    objective = objective_of(channel, [[1, 2], [1, 1], [2, 2]], [0] * 3, {"bad": {1}}, "G !bad", ended=(1, 2))
    assert shares(objective, [[[Fraction(1)]]]) == ({frozenset(): 1 / 4}, {(): 1 / 4})


def test_kinds_that_are_not_told_apart_are_others_and_still_add_up():
    objective = one_look([{"a", "b"}])
    losses, _, _, _ = losses_of(objective, MISSES)
    # Two kinds: the second alone needs no place to share with others. B is missed more often, but A is before it.
    for most in (1, 2):
        found = losses.attribution(0, 0.5, most)
        assert (found.told_apart, found.not_told_apart) == ((MISSED_A, MISSED_B), ())
    # One draw is never told as both: what counts in state 1, with errors of their own in bin 1, never happens.
    channel = channel_of([(), ("a",), ("b",)], [[0], [1]], [[A], [A]], TWO.observations)
    following = [[2, 3, 2, 1], [2, 3, 2, 2], [2] * 4, [3] * 4]
    objective = objective_of(channel, following, [0, 1, 0, 0], {"bad": {2}}, "G !bad", ended=(2, 3))
    rates = columns((1, 0, 0), (Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)), (0, 0, 1)) * 2
    found = losses_of(objective, rates)[0].attribution(0, 0.5, 1)
    assert (found.told_apart, found.not_told_apart) == ((MISSED_A, (0, B, A)), ())
    tested = 0
    for seed in range(40):
        plain, objective = random_plain(seed)
        losses, _, _, before = losses_of(objective, plain.rates)
        total = float(before.violation[objective.product.start[0]])
        all_kinds, few = (losses.attribution(0, total, most) for most in (99, 2))
        hidden, times = set(few.not_told_apart), plain.often()
        falling = [times[kind] for kind in few.told_apart] + [max((times[kind] for kind in hidden), default=0)]
        assert not hidden or (falling == sorted(falling, reverse=True) and all(times[kind] for kind in hidden))
        merged = {}
        for cause in all_kinds.causes:
            key = frozenset(cause.reports) - hidden, bool(hidden & set(cause.reports))
            merged[key] = merged.get(key, 0) + cause.probability
        found = {(frozenset(cause.reports), cause.others): cause.probability for cause in few.causes}
        assert found == pytest.approx(merged, rel=1e-12, abs=0)
        tested += len(hidden) > 1
    assert tested >= 5


# Against the definition.


def random_plain(seed, outcomes=1):
    """A random system without cycles over two objects, in fractions, and its objective."""
    rng = np.random.default_rng(seed)
    n, rows = int(rng.integers(5, 8)), 4
    columns = np.where(rng.random((rows, 2)) < 0.1, -1, rng.integers(0, 3, (rows, 2)))
    channel = channel_of([(), ("a",), ("b",)], rng.integers(0, 2, (rows, 2)), columns)
    if outcomes > 1:
        often = rng.integers(0, 4, (rows, outcomes))
        often[:, 0] += often.sum(axis=1) == 0
        chances = [[Fraction(int(each), int(line.sum())) for each in line] for line in often]
        channel = channel.moved_by(np.array(chances, dtype=object))
    width = len(channel.observations) * outcomes
    following = [[int(rng.integers(s + 1, n)) for _ in range(width)] for s in range(n - 2)]
    following += [[n - 2] * width, [n - 1] * width]
    row = rng.integers(0, rows, n).tolist()
    weights = rng.integers(0, 4, (2, 3, 3)) * (rng.random((2, 3, 3)) < 0.8)
    weights[:, 0, :] += weights.sum(axis=1) == 0
    rates = [
        [[Fraction(int(w), int(cells[:, t].sum())) for t, w in enumerate(line)] for line in cells]
        for cells in weights
    ]
    objective = objective_of(channel, following, row, {"bad": {n - 2}}, "G !bad", ended=(n - 2, n - 1))
    return PlainSystem(channel, following, row, {n - 2}, rates, {n - 2, n - 1}), objective


@given(st.integers(0, 2**32 - 1), st.integers(1, 2))
def test_causes_patterns_and_corrections_are_those_of_the_definition(seed, outcomes):
    plain, objective = random_plain(seed, outcomes)
    by_set, by_pattern = plain.causes_and_patterns()
    causes, patterns = shares(objective, plain.rates, most_kinds=99)
    wanted = {kinds: float(p) for kinds, p in by_set.items() if p}
    assert causes == pytest.approx(wanted, rel=1e-12, abs=0)
    assert sum(by_set.values()) == plain.losing(plain.rates)[0]
    assert patterns == pytest.approx({steps: float(p) for steps, p in by_pattern.items() if p}, rel=1e-12, abs=0)
    for kinds in wanted:
        gained = corrected_probabilities(objective, floats(plain.rates), [sorted(kinds)], 0)[0]
        assert gained == pytest.approx(float(1 - plain.losing(corrected(plain.rates, kinds))[0]), abs=1e-12)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["G p", "F q", "p U q", "G (p -> X q)", "G F p", "F G q", "X X q"]),
    st.booleans(),
    st.integers(1, 2),
    st.booleans(),
)
def test_with_cycles_everything_adds_up_and_members_are_runs_of_their_pattern(
    seed, formula, satisfying, draws, moving
):
    rng = np.random.default_rng(seed)
    objective = random_objective(rng, formula, states=5, draws=draws)
    if moving:
        objective, _, _ = drawing_twins(rng, formula, states=5, draws=draws)
    losses, graph, _, before = losses_of(objective, random_rates(rng, 2, 3, 0.3), satisfying)
    total = float(before.violation[objective.product.start[0]])
    found = losses.attribution(0, total)  # refuses what does not add up
    assert math.fsum(cause.probability for cause in found.causes) == pytest.approx(total, rel=1e-12, abs=0)
    patterns = losses.patterns(0, 4, total)
    probabilities = [pattern.probability for pattern in patterns.patterns]
    assert math.fsum(probabilities) <= total * (1 + 1e-12)
    if patterns.complete:
        assert math.fsum(probabilities) == pytest.approx(total, rel=1e-9)
    if patterns.ranked:
        assert probabilities == sorted(probabilities, reverse=True)
        first = losses.patterns(0, 1, total).patterns
        assert [pattern.probability for pattern in first] == pytest.approx(probabilities[:1], rel=1e-12, abs=0)
    likeliest = graph.runs(0, 1, False)
    members = [graph.runs(0, 3, False, losses.symbol, pattern.symbols) for pattern in patterns.patterns]
    for pattern, runs in zip(patterns.patterns, members, strict=True):
        assert runs
        assert math.fsum(run.probability for run in runs) <= pattern.probability * (1 + 1e-9)
    states = [tuple(run.states.tolist()) for runs in members for run in runs]
    assert len(set(states)) == len(states)  # a run has one pattern
    if patterns.complete and total:
        assert max(runs[0].probability for runs in members) == pytest.approx(
            likeliest[0].probability, rel=1e-12, abs=0
        )


WRONG, LOOKS = 7, 10
MANY = channel_of([(), *((name,) for name in "abcdefg")], [[k] for k in range(LOOKS)], [[1]] * LOOKS)


def seventy_rates():
    """(bin, predicted, true): in column a each of 7 wrong reports has a rate of its own."""
    found = []
    for at in range(LOOKS):
        wrong = [Fraction(1 + (3 * at + 5 * label) % 11, 700 + 10 * at) for label in range(WRONG)]
        told = [wrong[0], 1 - sum(wrong), *wrong[1:]]
        found.append([[told[k] if true == 1 else Fraction(int(k == true)) for true in range(8)] for k in range(8)])
    return found


@pytest.mark.parametrize("allowed", [0, 1])
def test_seventy_kinds_of_detection_errors_add_up(allowed):
    """Ten looks at an object a; lost is who hears more wrong reports than are allowed."""
    lost, won, width = LOOKS * (allowed + 1), LOOKS * (allowed + 1) + 1, len(MANY.observations)
    right = MANY.observations.index(frozenset("a"))

    def after(errors, look):
        return lost if errors > allowed else won if look == LOOKS else errors * LOOKS + look

    following = [
        [after(errors + (seen != right), look + 1) for seen in range(width)]
        for errors in range(allowed + 1)
        for look in range(LOOKS)
    ]
    rows = [*(list(range(LOOKS)) * (allowed + 1)), 0, 0]
    objective = objective_of(
        MANY, [*following, [lost] * width, [won] * width], rows, {"bad": {lost}}, "G !bad", ended=(lost, won)
    )
    cells = seventy_rates()
    kinds = [DetectionError(at, label, 1) for at in range(LOOKS) for label in range(8) if label != 1]
    assert len(kinds) == 70
    rate = {kind: cells[kind.bin][kind.predicted][1] for kind in kinds}
    expected, ways = {}, itertools.combinations(range(LOOKS), allowed + 1)
    for wrong in ways:
        spared = math.prod(cells[at][1][1] for at in range(wrong[-1]) if at not in wrong)
        for labels in itertools.product([0, *range(2, 8)], repeat=allowed + 1):
            those = frozenset(DetectionError(at, label, 1) for at, label in zip(wrong, labels, strict=True))
            expected[those] = expected.get(those, 0) + spared * math.prod(map(rate.get, those))
    losses, _, values, _ = losses_of(objective, cells)
    total, _ = violation_probability(objective, values.rates, 0, False)
    assert total == pytest.approx(float(sum(expected.values())), rel=1e-12, abs=0)
    found = losses.attribution(0, total)
    assert abs(math.fsum(cause.probability for cause in found.causes) - total) <= 1e-12 * total
    # All but a few share one place, in which they are told as others; what is told apart is exact.
    told = {}
    for reports, probability in expected.items():
        known = reports & set(found.told_apart)
        told[known, known != reports] = told.get((known, known != reports), 0) + probability
    causes = {(frozenset(cause.reports), cause.others): cause.probability for cause in found.causes}
    assert causes == {key: pytest.approx(float(value), rel=1e-11, abs=0) for key, value in told.items()}
    assert sorted([*found.told_apart, *found.not_told_apart]) == kinds
    assert 1 <= len(found.told_apart) <= 5
