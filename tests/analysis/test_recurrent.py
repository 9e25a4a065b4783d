"""What the states that are visited again and again decide: against every set of states that may be."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from verifier.analysis.robust import recurrent
from verifier.analysis.robust.recurrent import Recurrence, component_meeting, recurrences
from verifier.language.expressions import to_text
from verifier.language.ltl import normal_form, parse_formula
from verifier.language.ltl.progression import Obligations

LETTERS = [dict(zip("abc", bits, strict=True)) for bits in itertools.product((False, True), repeat=3)]
"""What holds in the eight states, which stand behind two that have none."""


@pytest.fixture(autouse=True)
def _conditions_are_taken_apart(monkeypatch):
    """As those are that are deeply nested."""
    monkeypatch.setattr(normal_form, "PROPOSITION_DEPTH", 1)


def objective_with(formula):
    obligations = Obligations(parse_formula(formula))
    names = [to_text(proposition) for proposition in obligations.formula.propositions]
    masks = tuple(np.array([letter[name] for letter in LETTERS]) for name in names)
    states = np.array([-1, -1, *range(8)])
    return SimpleNamespace(product=SimpleNamespace(obligations=obligations, state=states, propositions=masks))


def often(condition):
    return lambda inside: any(condition(**LETTERS[k]) for k in inside)


def always(condition):
    return lambda inside: all(condition(**LETTERS[k]) for k in inside)


A, B, C = often(lambda a, **_: a), often(lambda b, **_: b), often(lambda c, **_: c)
ALL_A, ALL_B, ALL_C = always(lambda a, **_: a), always(lambda b, **_: b), always(lambda c, **_: c)


@pytest.mark.parametrize(
    ("formula", "expected", "terms"),  # as many conjunctions that meet it as that violate it
    [
        ("G F a", A, (1, 1)),
        ("F G a", ALL_A, (1, 1)),
        ("G F !a", lambda s: not ALL_A(s), (1, 1)),
        ("(G F a) & (G F b)", lambda s: A(s) and B(s), (1, 2)),
        ("(G F a) | (G F b)", lambda s: A(s) or B(s), (2, 1)),
        ("(G F a) -> (G F b)", lambda s: not A(s) or B(s), (2, 1)),
        ("(G F a) & (F G b)", lambda s: A(s) and ALL_B(s), (1, 2)),
        ("(F G a) | (F G b) | (G F c)", lambda s: ALL_A(s) or ALL_B(s) or C(s), (3, 1)),
        ("(G F a) & (G F b) & (F G c)", lambda s: A(s) and B(s) and ALL_C(s), (1, 3)),
        ("((G F a) & (F G b)) | (G F c)", lambda s: (A(s) and ALL_B(s)) or C(s), (2, 2)),
        ("((G F a) | (F G b)) & (G F c)", lambda s: (A(s) or ALL_B(s)) and C(s), (2, 4)),
        ("G ((F a) & (F b))", lambda s: A(s) and B(s), (1, 2)),
        ("G F (a & true)", A, (1, 1)),
        ("(G F a) & (F G !a)", lambda s: False, (1, 2)),
        ("F G (a | (b & c))", always(lambda a, b, c: a or (b and c)), (1, 1)),
        ("G F (a & (b | !c))", often(lambda a, b, c: a and (b or not c)), (1, 1)),
    ],
)
def test_the_conjunctions_are_met_by_the_sets_that_meet_the_formula(formula, expected, terms):
    objective = objective_with(formula)
    found = recurrences(objective, objective.product.obligations.initial)
    assert tuple(map(len, found)) == terms
    assert {len(mask) for side in found for each in side for mask in (each.always, *each.often)} == {10}
    for size in range(1, 9):
        for inside in itertools.combinations(range(8), size):
            at = np.array(inside) + 2
            met, violated = (
                any(each.always[at].all() and all(mask[at].any() for mask in each.often) for each in side)
                for side in found
            )
            assert (met, violated) == (expected(inside), not expected(inside)), inside


@pytest.mark.parametrize(
    "formula",
    [
        *("F a", "G a", "a", "a U b", "(G F a) & (F b)", "G F (a & X b)", "G F (X a)", "F G (X a)", "G (F[0,3] a)"),
        *("G[0,5] (F a)", "F (G[2,4] a)", "F[1,2] (G a)", "(G F a) | (F b)", "G (a U b)", "F (a R b)", "a U (G b)"),
        *("a R (F b)", "G F (a | (X b))", "(G F (X a)) & (G F b)", "(F a) | (G F b)", "X (G F a)"),
    ],
)  # fmt: skip
def test_other_obligations_are_left_to_others(formula):
    objective = objective_with(formula)
    assert recurrences(objective, objective.product.obligations.initial) is None


@pytest.mark.parametrize(
    ("formula", "terms"),
    [
        ("((G F a) & (G F b)) | ((G F c) & (F G b))", 4),  # 2 x 2 ways to violate it
        ("((G F a) | (G F b)) & ((G F c) | (F G b))", 16),  # 2 x 2 ways to meet it, of two parts each
        ("(G F a) & (G F b) & (F G c)", 3),
    ],
)
def test_many_conjunctions_are_left_to_others(formula, terms, monkeypatch):
    objective = objective_with(formula)
    for most in (terms, terms - 1):
        monkeypatch.setattr(recurrent, "MOST_TERMS", most)
        found = recurrences(objective, objective.product.obligations.initial)
        assert (found is None) == (most < terms)


def test_the_first_component_that_has_all_is_told():
    """Of the components among the states that alone may be visited, the last has both what is to be met."""
    a, b = (np.isin(np.arange(6), states) for states in ([0, 2, 4], [1, 4]))
    inside, asked = np.arange(6) != 5, []

    def components(among):
        asked.append(np.flatnonzero(among).tolist())
        return np.where(among, [0, 0, 1, 1, 2, 2], -1) if len(asked) < 4 else np.full(6, -1)

    every, not_0 = np.ones(6, dtype=bool), np.arange(6) != 0
    for terms, found, looked in (
        ([Recurrence(every, (a, b))], [0, 1], [[0, 1, 2, 3, 4]]),
        ([Recurrence(not_0, (a, b))], [4], [[1, 2, 3, 4]]),
        ([Recurrence(not_0, (np.zeros(6, dtype=bool),)), Recurrence(not_0, (a,))], [2, 3], [[1, 2, 3, 4]] * 2),
        ([Recurrence(not_0, ())], [1], [[1, 2, 3, 4]]),
        ([Recurrence(every, (np.zeros(6, dtype=bool), b))], None, [[0, 1, 2, 3, 4]]),
        ([], None, []),
    ):
        asked.clear()
        members = component_meeting(terms, inside, components)
        assert (None if members is None else members.tolist(), asked) == (found, looked)
    asked[:] = [[]] * 3
    assert component_meeting([Recurrence(every, ())], inside, components) is None  # none among these states
