"""Formulas on skeletons and what is asked beside their probability, by hand."""

from dataclasses import fields, replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from small_objectives import channel_of, objective_of

from verifier.analysis import objective as module
from verifier.analysis.objective import (
    Conditional,
    Gained,
    Objective,
    Quantile,
    build_objective,
    columns_of,
    led_by_observation,
    without_steps,
)
from verifier.base.errors import NoAnswerError
from verifier.language.expressions import parse_expression
from verifier.language.ltl import parse_formula
from verifier.systems.rewards import Gains
from verifier.systems.skeleton import Skeleton

LABELS = ((), ("a",))
F = Fraction


def chain(*following, p=(2,), formula="F p", rows=(0, 1, 0, 0), motion=None, starts=(0, 1)):
    """States 2 and 3 have ended; what is reported is drawn from column 1 of bin 0 in state 0, of bin 1 in state 1."""
    channel = channel_of(LABELS, [[0], [1]], [[1], [1]])
    channel = channel if motion is None else channel.moved_by(np.array(motion, dtype=object))
    width = len(following[0])
    return objective_of(channel, [*following, [2] * width, [3] * width], rows, {"p": set(p)}, formula, starts, (2, 3))


def rates_of(*shares):
    """(M, 2, 2, 2): how often a is reported in the bins, matrix by matrix."""
    rates = np.zeros((len(shares), 2, 2, 2))
    rates[..., 0, 0] = 1
    rates[:, :, 1, 1] = shares
    rates[:, :, 0, 1] = 1 - rates[:, :, 1, 1]
    return rates


def parts(objective):
    return {part.name: getattr(objective, part.name) for part in fields(Objective)}


def test_where_each_observation_leads():
    """State 0 moves by the report, state 1 does not; the decided product states lead to themselves."""
    objective = chain([1, 2], [3, 3])
    states = objective.product.state.tolist()
    zero, one, lost = (states.index(state) for state in (0, 1, 3))
    assert objective.row.tolist() == [0 if k == zero else -1 for k in range(objective.state_count)]
    assert [objective.following[k].tolist() for k in (0, 1, zero, one, lost)] == [
        [0, 0], [1, 1], [one, 1], [lost, lost], [lost, lost],
    ]  # fmt: skip
    other = chain([1, 2], [3, 3], formula="G !p")
    zero, one = (other.product.state.tolist().index(state) for state in (0, 1))
    assert other.following[zero].tolist() == [one, 0]
    skeleton = objective.skeleton
    led, row = led_by_observation(
        skeleton, 5, np.repeat(np.arange(4), np.diff(skeleton.indptr)), skeleton.entry, skeleton.indices
    )
    assert led.tolist() == [[1, 2], [3, 3], [2, 2], [3, 3], [-1, -1]]
    assert row.tolist() == [0, 1, -1, -1, -1]  # what state 1 draws makes no difference
    assert columns_of([objective, chain([1, 2], [0, 3])]).tolist() == [[0, 1], [1, 1]]


def test_a_world_that_draws():
    """Of two outcomes; state 0 moves by the outcome alone, state 1 by both."""
    objective = chain([1, 2, 1, 2], [2, 3, 3, 2], motion=[[F(1, 3), F(2, 3)], [F(1, 4), F(3, 4)]])
    zero, one, lost = (objective.product.state.tolist().index(state) for state in (0, 1, 3))
    assert [objective.row[k] for k in (zero, one, lost)] == [-1, 1, -1]
    assert [objective.moving[k] for k in (zero, one)] == [0, 1]
    assert objective.chances[[zero, one]] == pytest.approx(np.array([[1 / 3, 2 / 3], [1 / 4, 3 / 4]]))
    worth = np.zeros(objective.state_count)
    worth[[1, one, lost]] = [1, 1 / 2, 0]
    found = objective.mean_behind(worth, np.array([one, zero]))
    assert found == pytest.approx(np.array([[1 / 4, 3 / 4], [1 / 6 + 2 / 3, 1 / 6 + 2 / 3]]))


def test_a_quotient_of_probabilities():
    """F p and G p in state 0 with 1/2 or 1/4: given F p. Errors are added, and taken by what is given."""
    both = chain([1, 2], [3, 2])
    given = chain([3, 2], [3, 2])
    asked = Conditional(**parts(both), given=given)
    # From 0 it is 1/2 + 1/2 of 1/4 of what is 1/2; from 1 it is sure. At most 1, however it is rounded.
    assert asked.probabilities(rates_of([0.5, 0.25])).probability.tolist() == [[1, 1]]
    other = Conditional(**parts(given), given=both)
    found = other.probabilities(rates_of([0.5, 0.25], [0.25, 0.5]))
    assert found.probability == pytest.approx(np.array([[0.5 / 0.625, 1], [0.25 / 0.625, 1]]))
    off = SimpleNamespace(probability=np.array([[0.25]]), error_bound=np.array([[1 / 64]]))
    of_given = SimpleNamespace(probability=np.array([[0.5]]), error_bound=np.array([[1 / 32]]))
    with pytest.MonkeyPatch.context() as patched:
        how = []
        patched.setattr(
            Objective, "probabilities",
            lambda self, *_, roughly: (how.append(roughly), of_given if self is given else off)[1],
        )  # fmt: skip
        found = asked.probabilities(rates_of([0.5, 0.25]))
        assert (found.probability.item(), found.error_bound.item()) == (1 / 2, (1 / 64 + 1 / 32) * 2)
        asked.probabilities(rates_of([0.5, 0.25]), roughly=True)
        assert how == [False, False, True, True]
    never = Conditional(**parts(both), given=chain([3, 2], [3, 2], p=()))
    with pytest.raises(NoAnswerError, match="what is given has probability 0 for a matrix that was drawn"):
        never.probabilities(rates_of([0.5, 0.25]))
    with pytest.raises(NoAnswerError, match="what is given has probability 0"):  # for the second matrix, from 0
        asked.probabilities(rates_of([0.5, 0.25], [0.0, 0.25]))
    assert all(both.ranges(side) for side in ("lower", "upper"))
    assert (asked.effort, asked.plain, both.plain, both.effort, both.is_undecided(None)) == (2, False, True, 1, False)


def gained(steps, plain, **more):
    """2 in state 0 and 1 in state 1."""
    sure = len(plain.skeleton.channel.bins) * len(plain.skeleton.channel.observations)
    gains = Gains(plain.skeleton, np.arange(2), np.full(2, sure), np.array([2.0, 1.0]), np.array([F(2), F(1)]))
    return Gained(**parts(plain), gains=gains, steps=steps, **more)


def test_what_is_gained(monkeypatch):
    """Until p holds, where 0 tries again with 1/2, and 1 leads to 0; and in some steps."""
    plain = chain([0, 2], [0, 0])
    rates = rates_of([0.5, 0.5], [0.25, 0.5], [0.75, 0.5])
    expected = np.array([[4, 5], [8, 9], [8 / 3, 11 / 3]])
    for at_once in (2**23, 1, 9):
        monkeypatch.setattr(module, "_NUMBERS_AT_ONCE", at_once)
        assert gained(None, plain).probabilities(rates).probability == pytest.approx(expected)
        assert gained(2, plain).probabilities(rates).probability == pytest.approx(
            np.array([[3, 3], [3.5, 3], [2.5, 3]])
        )
        assert gained(0, plain).probabilities(rates).probability.tolist() == [[0, 0]] * 3
    found = gained(2, plain).probabilities(rates)
    assert np.array_equal(found.error_bound, found.probability)  # 0 only where nothing is gained
    assert [gained(steps, plain).effort for steps in (None, 0, 1, 7)] == [2, 1, 1, 7]
    assert not gained(None, plain).plain


def test_gains_are_solved_roughly_where_that_is_asked_for(monkeypatch):
    how, zero = [], np.zeros((1, 2))
    monkeypatch.setattr(
        module, "expected_gains", lambda *_, roughly, gain_error: (how.append(roughly), without_steps(zero))[1]
    )
    asked = gained(None, chain([0, 2], [0, 0]))
    asked.probabilities(rates_of([0.5, 0.5]))
    asked.probabilities(rates_of([0.5, 0.5]), roughly=True)
    assert how == [False, True]


def test_gains_need_the_columns_of_their_reports():
    plain = chain([0, 2], [0, 0])
    assert plain.columns_needed.tolist() == [[0, 1]]
    width = len(plain.skeleton.channel.observations)
    for row, expected in ((0, [[0, 1]]), (1, [[0, 1], [1, 1]])):
        told = Gains(plain.skeleton, np.array([row]), np.array([row * width]), np.ones(1), np.array([F(1)]))
        assert replace(gained(None, plain), gains=told).columns_needed.tolist() == expected


def test_the_time_by_which_it_has_happened(monkeypatch):
    """With 1/2 in each step 3/4 in two; from 1 one step later; and never where it is lost."""
    monkeypatch.setattr(Skeleton, "mask_of", lambda self, node: np.arange(4) == 2)
    about = {"condition": parse_expression("p"), "step_s": F(1, 4)}
    rates = rates_of([0.5, 0.5], [0.75, 0.5])
    for level, expected in ((F(3, 4), [[0.5, 0.75], [0.25, 0.5]]), (F(7, 8), [[0.75, 1], [0.5, 0.75]])):
        asked = Quantile(**parts(chain([0, 2], [0, 0])), level=level, **about)
        for at_once in (2**23, 1):
            monkeypatch.setattr(module, "_NUMBERS_AT_ONCE", at_once)
            assert asked.probabilities(rates).probability.tolist() == expected
    lost = Quantile(**parts(chain([3, 2], [0, 0])), level=F(3, 4), **about)
    assert lost.probabilities(rates).probability.tolist() == [[np.inf, np.inf], [0.25, 0.5]]
    assert (lost.effort, lost.plain) == (50, False)


def test_probabilities_are_solved_roughly_where_that_is_asked_for(monkeypatch):
    asked, plain = [], chain([0, 2], [0, 0])
    monkeypatch.setattr(module, "satisfaction_probabilities", lambda *_, roughly: asked.append(roughly))
    plain.probabilities(rates_of([0.5, 0.5]))
    plain.probabilities(rates_of([0.5, 0.5]), roughly=True)
    assert (asked, plain.slopes) == ([False, True], True)


def test_a_result_without_steps():
    value = np.array([[0.5, np.inf]])
    found = without_steps(value)
    assert [getattr(found, part.name).tolist() for part in fields(found)] == [
        [[0.5, np.inf]], [[1, 1]], [[0, 0]], [[0, 0]], [[0.5, np.inf]], [[0.5, np.inf]],
    ]  # fmt: skip
    assert without_steps(value, value).error_bound is value


def test_windows_that_are_too_long_for_a_product():
    skeleton = chain([0, 2], [0, 0]).skeleton
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Skeleton, "mask_of", lambda self, node: np.arange(4) == 2)
        build_objective(skeleton, parse_formula("F[0,9] p"), {"p": parse_expression("p")}, 1000)
        with pytest.raises(NoAnswerError, match=r"the formula has about .* obligations, one for each step left"):
            build_objective(skeleton, parse_formula("F[0,9000000] p"), {"p": parse_expression("p")}, 1000)
