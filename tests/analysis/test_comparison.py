"""Configurations compared draw by draw: by hand, against plain loops, and against a closed form."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.analysis import comparison
from verifier.analysis.comparison import (
    best_chances,
    better_chances,
    non_dominated,
    non_dominated_chances,
    ranking_changes,
)

# Four draws of three configurations; a and b tie in the second, all three in the third.
DRAWS = np.array([[0.9, 0.8, 0.1], [0.5, 0.5, 0.6], [0.3, 0.3, 0.3], [0.2, 0.4, 0.3]])


def test_chances_by_hand():
    # a against b: ahead once, tied twice, behind once: (1 + 1) / 4. a against c: ahead, behind, tied, behind.
    # b against c: ahead, behind, tied, ahead.
    assert better_chances(DRAWS).tolist() == [[1 / 2, 2 / 4, 3 / 8], [2 / 4, 1 / 2, 5 / 8], [5 / 8, 3 / 8, 1 / 2]]
    # Best: a; c; all three; b.
    third = Fraction(1, 3)
    assert best_chances(DRAWS) == pytest.approx([float((1 + third) / 4)] * 3)


def test_scores_within_the_tie_are_tied(monkeypatch):
    scores = np.array([[0.5, 0.5 + 1e-13], [0.5, 0.6]])
    assert better_chances(scores)[0].tolist() == [1 / 2, 1 / 4]
    assert best_chances(scores).tolist() == [1 / 4, 3 / 4]
    monkeypatch.setattr(comparison, "TIE", 0)
    assert better_chances(scores)[0].tolist() == [1 / 2, 0]
    monkeypatch.setattr(comparison, "TIE", 0.5)
    # Half of the larger one, whatever the sign: 1.8 - 1 is less than .9, and 2 - 1 as much as 1, but 2.5 - 1 more.
    for one, other, chance in ((1, 1.8, 1 / 2), (1, 2, 1 / 2), (1, 2.5, 0), (-1, -1.8, 1 / 2), (-1, -2.5, 1)):
        assert better_chances(np.array([[one, other]]))[0].tolist() == [1 / 2, chance]


def test_small_probabilities_are_told_apart():
    assert better_chances(np.array([[7.47e-11, 7.38e-11]]))[0, 1] == 1
    assert better_chances(-np.array([[7.47e-11, 7.38e-11]]))[0, 1] == 0


def test_overlapping_intervals_and_still_certain():
    # Both vary over the whole of (0, 1), but one is always a hundredth ahead of the other.
    common = np.random.default_rng(1).random(500) * 0.99
    scores = np.stack([common + 0.01, common], axis=1)
    assert better_chances(scores)[0, 1] == 1
    assert best_chances(scores).tolist() == [1, 0]


def test_two_independent_beta_posteriors():
    # Pr(X > Y) for X ~ Beta(2, 1), Y ~ Beta(1, 1): integral of x 2x dx = 2/3.
    rng = np.random.default_rng(2)
    draws = 40_000
    scores = np.stack([rng.beta(2, 1, draws), rng.random(draws)], axis=1)
    assert better_chances(scores)[0, 1] == pytest.approx(2 / 3, abs=4 / (2 * draws**0.5))


@given(st.integers(0, 10_000))
def test_chances_against_a_plain_loop(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 4, (int(rng.integers(1, 30)), int(rng.integers(1, 5)))) / 4
    best, pairs = np.zeros(scores.shape[1]), np.zeros((scores.shape[1],) * 2)
    for row in scores.tolist():
        ahead = [k for k, value in enumerate(row) if value == max(row)]
        for k in ahead:
            best[k] += 1 / len(ahead)
        for i, one in enumerate(row):
            for j, other in enumerate(row):
                pairs[i, j] += 1.0 if one > other else 0.5 if one == other else 0.0
    assert best_chances(scores) == pytest.approx(best / len(scores))
    assert better_chances(scores) == pytest.approx(pairs / len(scores))
    assert better_chances(scores) + better_chances(scores).T == pytest.approx(np.ones_like(pairs))
    assert best_chances(scores).sum() == pytest.approx(1)


# ---------------------------------------------------------------------------------------------- two requirements


def test_the_pareto_set_by_hand():
    # b is beaten by a in both; c and d are the same point, and nothing beats it.
    points = np.array([[0.9, 0.5], [0.8, 0.4], [0.4, 0.7], [0.4, 0.7], [0.9, 0.4]])
    assert non_dominated(points).tolist() == [True, False, True, True, False]
    assert non_dominated(np.array([[0.5, 0.5], [0.5 + 1e-13, 0.5]])).tolist() == [True, True]


@given(st.integers(0, 10_000))
def test_the_pareto_set_against_its_definition(seed):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 4, (int(rng.integers(1, 8)), 2)) / 4
    rows = [tuple(row) for row in points.tolist()]
    expected = [
        not any(all(o >= m for o, m in zip(other, mine, strict=True)) and other != mine for other in rows)
        for mine in rows
    ]
    assert non_dominated(points).tolist() == expected
    draws = rng.integers(0, 4, (9, len(points), 2)) / 4
    each = np.array([non_dominated(draw) for draw in draws])
    assert non_dominated_chances(draws) == pytest.approx(each.mean(axis=0))


# ---------------------------------------------------------------------------------------------- along an axis


def test_a_change_by_hand():
    points = np.array([[0.9, 0.8], [0.7, 0.7], [0.5, 0.6]])
    turned, late = points + np.array([[0, 0.2], [0, 0], [0.2, 0]]), points + np.array([[0, 0.2], [0, 0], [0, 0]])
    (found,) = ranking_changes(points, np.stack([points, points, turned, late]))
    assert (found.first, found.second, found.before, found.after) == (0, 1, 0, 2)
    # In the third draw the second is ahead before, and behind after; in the fourth it is always ahead.
    assert (found.first_better, found.second_better) == (2 / 4, 3 / 4)


def test_an_order_that_never_changes_has_no_flip():
    points = np.array([[0.9, 0.8], [0.5, 0.5], [0.6, 0.1]])
    assert list(ranking_changes(points, points[None])) == []


def test_places_without_a_score_are_left_out():
    points = np.array([[0.9, 0.8], [np.nan, 0.5], [0.1, 0.6]])
    (found,) = ranking_changes(points, np.nan_to_num(points)[None])
    assert (found.before, found.after) == (0, 2)


@given(st.integers(0, 10_000))
def test_flips_against_a_plain_loop(seed):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 5, (6, 3)) / 5
    expected = []
    for i, j in combinations(range(3), 2):
        last = None
        for place in range(6):
            sign = np.sign(points[place, i] - points[place, j])
            if sign and last is not None and sign != last[1]:
                first, second = (i, j) if last[1] > 0 else (j, i)
                expected.append((first, second, last[0], place))
            if sign:
                last = (place, sign)
    found = [(each.first, each.second, each.before, each.after) for each in ranking_changes(points, points[None])]
    assert found == expected
    assert all((each.first_better, each.second_better) == (1, 1) for each in ranking_changes(points, points[None]))


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match="at least one draw"):
        better_chances(np.zeros((0, 2)))
    with pytest.raises(ValueError, match="2 axes"):
        best_chances(np.zeros((2, 2, 2)))
    with pytest.raises(ValueError, match="same places"):
        list(ranking_changes(np.zeros((2, 2)), np.zeros((1, 3, 2))))
