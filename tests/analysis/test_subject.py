"""What a certificate is about, by hand."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from small_objectives import channel_of, objective_of

from verifier.analysis.robust import subject as module
from verifier.analysis.robust.subject import subject_of
from verifier.language.ltl import parse_formula
from verifier.language.ltl.normal_form import PositiveFormula

TRUE, FALSE = ("&", (), 0, None), ("|", (), 0, None)


@pytest.mark.parametrize(
    ("chances", "expected"),
    [("1", (1,)), ("1/4 3/4", (1, 3)), ("0 1", (0, 1)), ("1/6 1/3 1/2", (1, 2, 3)), ("1/4 1/6 7/12", (3, 2, 7))],
)
def test_chances_in_whole_numbers(chances, expected):
    assert module._whole([*map(Fraction, chances.split())]) == expected


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("p", [("holds", (), 0, None)]),
        ("X p", [("holds", (), 0, None), TRUE, ("U", (1, 0), 1, 1)]),
        ("X[3] p", [("holds", (), 0, None), TRUE, ("U", (1, 0), 3, 3)]),
        ("F p", [TRUE, ("holds", (), 0, None), ("U", (0, 1), 0, None)]),
        ("G[2,5] p", [FALSE, ("holds", (), 0, None), ("R", (0, 1), 2, 5)]),
        # X (F p): the node for `true` of X is that of F; operands first, and the whole last.
        ("F (X p)", [TRUE, ("holds", (), 0, None), ("U", (0, 1), 0, None), ("U", (0, 2), 1, 1)]),
        ("(X !p) & (G p)", [FALSE, ("holds", (), 0, None), ("R", (0, 1), 0, None), ("fails", (), 0, None), TRUE,
                            ("U", (4, 3), 1, 1), ("&", (2, 5), 0, None)]),
    ],
)  # fmt: skip
def test_nodes_are_in_the_language_of_the_kernel(formula, expected):
    assert [*module._nodes_of(PositiveFormula(parse_formula(formula)))] == expected


def test_ways_of_a_kind_that_there_are_not_are_left_out(monkeypatch):
    channel = channel_of([(), ("a",)], [[0]], [[1]])
    objective = objective_of(channel, [[0, 1], [1] * 2], [0, 0], {"p": {1}}, "F p", ended=(1,))
    report, often = np.array([[[0, 1], [1, 0], [-1, -1]]]), np.array([[1, 3, 0]])
    told = replace(module.told_of(channel), report=report, often=often)
    monkeypatch.setattr(module, "told_of", lambda channel: told)
    assert subject_of(objective).document["told"] == [[[1, 0, 1], [3, 1, 0]]]


def test_a_world_that_draws():
    """State 0 moves by the outcome alone, 1 by both, 2 by the report alone; outcomes are 1 to 2, but in 1 sure."""
    channel = channel_of([(), ("a",)], [[0]] * 3, [[1]] * 3)
    motion = np.array([[Fraction(1, 3), Fraction(2, 3)], [0, 1], [Fraction(1, 3), Fraction(2, 3)]], dtype=object)
    following = [[1, 2, 1, 2], [2, 3, 3, 2], [0, 0, 3, 3], [3] * 4]
    objective = objective_of(channel.moved_by(motion), following, [0, 1, 2, 0], {"p": {3}}, "F p", ended=(3,))
    found, origin = subject_of(objective)
    own = {int(objective.product.state[state]): way for way, state in enumerate(origin) if state > 1}
    assert sorted(own) == [0, 1, 2]
    assert [found["row"][own[k]] for k in range(3)] == [-1, 1, 2]
    assert found["motion"] == [[1, 2], [0, 1]]
    assert [found["moving"][own[k]] for k in range(3)] == [0, 1, 0]
    met = len(own)  # the obligation `true`, entered with p
    places = {**own, 3: met}
    assert [found["following"][own[k]] for k in range(3)] == [[places[s] for s in following[k]] for k in range(3)]
    assert found["following"][met] == [met] * 4
    assert (found["letters"], found["starts"], origin[met]) == ([0, 0, 0, 1], [own[0]], 1)
    assert "owner" not in found


def test_rates_of_a_point_are_counts_without_a_common_divisor():
    channel = channel_of([(), ("a",)], [[0], [1]], [[1], [1]])
    objective = objective_of(
        channel, [[1, 2], [2, 3], [2] * 2, [3] * 2], [0, 1, 0, 0], {"p": {3}}, "F p", ended=(2, 3)
    )
    counts = np.array([[[7, 4], [7, 6]], [[7, 0], [7, 9]]])
    told = module.point_document(objective.skeleton, counts)
    assert [(column["bin"], column["true"], column["unit"], column["lower"]) for column in told["columns"]] == [
        (0, 1, 5, [2, 3]), (1, 1, 1, [0, 1]),
    ]  # fmt: skip
    assert all(column["upper"] == column["lower"] for column in told["columns"])
    assert (told["labels"], told["group"], told["groups"], told["evidence"]) == ([[], ["a"]], [0, 1], 2, None)


@pytest.mark.parametrize("by_drive", [True, False])
def test_a_region_is_told_with_the_counts_of_the_columns_that_matter(by_drive):
    """Of three columns the first does not matter, and the third has its rates by convention; of the labels the first
    and the last are told alike."""
    table = np.random.default_rng(0).integers(0, 99, (2, 1, 3, 3))
    measured = SimpleNamespace(fixed=np.array([[False, False, True]]), counts=table.sum(axis=0))
    evidence = SimpleNamespace(
        alpha=Fraction(1, 20), events=range(4), tier="icc_at_most", icc=Fraction(1, 10), shift=3, measured=measured,
        drives=SimpleNamespace(table=table) if by_drive else None,
        largest=np.array([[8, 9, 7]]) if by_drive else None,
    )  # fmt: skip
    region = SimpleNamespace(
        labels=[frozenset({"b", "a"}), frozenset(), frozenset("c")], group=np.array([0, 1, 0]), evidence=evidence,
        lower=np.arange(6).reshape(1, 2, 3), upper=10 + np.arange(6).reshape(1, 2, 3),
        needed=np.array([[False, True, True]]),
    )  # fmt: skip
    told = module.region_document(region)
    assert told["evidence"] == {"alpha": "1/20", "events": 4, "tier": "icc_at_most", "icc": "1/10", "shift": 3}
    held = [[a + c, b] for a, b, c in (table if by_drive else table.sum(axis=0)[None])[:, 0, :, 1].tolist()]
    assert told["columns"] == [
        {"bin": 0, "true": 1, "unit": 10**9, "lower": [1, 4], "upper": [11, 14],
         "counts": held, "largest": 9 if by_drive else None},
        {"bin": 0, "true": 2, "unit": 10**9, "lower": [2, 5], "upper": [12, 15], "counts": None, "largest": None},
    ]  # fmt: skip
    assert (told["labels"], told["groups"]) == ([["a", "b"], [], ["c"]], 2)


def test_obligations_that_are_decided_stand_behind_all_others():
    """X p in state 0: false behind state 1, where nothing holds, true behind state 2, where p does."""
    channel = channel_of([(), ("a",)], [[0]], [[1]])
    objective = objective_of(channel, [[1, 2], [1] * 2, [2] * 2], [0] * 3, {"p": {2}}, "X p", ended=(1, 2))
    found, origin = subject_of(objective)
    assert found["following"] == [[1, 2], [1, 1], [2, 2]]
    assert (found["letters"], origin.tolist()) == ([0, 0, 1], [2, 0, 1])
    assert (found["row"], found["starts"]) == ([0, -1, -1], [0])
    at_once = objective_of(channel, [[1, 2], [1] * 2, [2] * 2], [0] * 3, {"p": {2}}, "p", (0, 2), (1, 2))
    assert subject_of(at_once).document["starts"] == [0, 1]  # nothing is open
