"""Which is better, and how sure is that: configurations compared draw by draw.

Every configuration (a detector with a planner) has a score for each of M draws of the matrices, larger is better.
Draws are *paired*: draw d of two configurations comes from the same matrices where they share a detector, or from the
same randomly weighted sequences. So what makes both better or both worse at once does not blur their difference:
configurations whose intervals overlap widely may still be told apart in every draw.

Chances are shares of the draws; ties count half, or are split evenly among those that are tied. Scores are computed
with rounding: two that differ by no more than the share `TIE` of the larger one are tied. A share of M independent
draws has a standard error of at most 1/(2 sqrt(M)).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from verifier.base.arrays import Floats, Mask

TIE = 1e-10
"""Relative difference of a tie: well above rounding, far below what any data can tell."""


@dataclass(frozen=True)
class RankingChange:
    """Two configurations that change places along an axis.

    Attributes:
        first, second: numbers of the configurations; `first` is ahead before.
        before, after: numbers of the places on the axis between which the order changes. In between they are tied.
        first_better: chance that `first` is better at the place before.
        second_better: chance that `second` is better at the place after.
    """

    first: int
    second: int
    before: int
    after: int
    first_better: float
    second_better: float


def better_chances(scores: Floats) -> Floats:
    """(k, k) chance that the configuration of the row is better than that of the column; 1/2 on the diagonal.

    Args:
        scores: (M, k) with at least one draw, larger is better.
    """
    _checked(scores, 2)
    draws, count = scores.shape
    chances = np.full((count, count), 0.5)
    for row, column in combinations(range(count), 2):
        ahead = np.count_nonzero(_exceeds(scores[:, row], scores[:, column]))
        behind = np.count_nonzero(_exceeds(scores[:, column], scores[:, row]))
        chances[row, column] = (draws + ahead - behind) / (2 * draws)
        chances[column, row] = (draws + behind - ahead) / (2 * draws)
    return chances


def best_chances(scores: Floats) -> Floats:
    """(k,) chance of being the best of all; the chances add up to 1. Arguments as `better_chances`."""
    _checked(scores, 2)
    ahead = ~_exceeds(scores.max(axis=1, keepdims=True), scores)
    return np.asarray((ahead / ahead.sum(axis=1, keepdims=True)).mean(axis=0))


def non_dominated(points: Floats) -> Mask:
    """(..., k) bool: no other point is at least as good in every criterion and better in one (Pareto optimal).

    Args:
        points: (..., k, criteria), larger is better.
    """

    def beaten(own: Floats) -> Mask:
        no_worse, better = ~np.any(_exceeds(own, points), axis=-1), np.any(_exceeds(points, own), axis=-1)
        return np.asarray(np.any(no_worse & better, axis=-1))

    return ~np.stack([beaten(points[..., [number], :]) for number in range(points.shape[-2])], axis=-1)


def non_dominated_chances(scores: Floats) -> Floats:
    """(k,) chance that a configuration is Pareto optimal, for scores (M, k, criteria)."""
    _checked(scores, 3)
    return np.asarray(non_dominated(scores).mean(axis=0))


def ranking_changes(points: Floats, scores: Floats) -> Iterator[RankingChange]:
    """Where the order of two configurations changes along an axis, pair by pair and place by place.

    Args:
        points: (places, k) the scores of the measured matrices, which decide the order; NaN where a configuration
            has no score at a place. Tied places have no order.
        scores: (M, places, k) those of the draws.
    """
    _checked(scores, 3)
    if points.shape != scores.shape[1:]:
        raise ValueError("points and draws must have the same places and configurations")
    for one, other in combinations(range(points.shape[1]), 2):
        ahead = _exceeds(points[:, one], points[:, other])
        behind = _exceeds(points[:, other], points[:, one])
        for before, after in pairwise(np.flatnonzero(ahead | behind).tolist()):
            if ahead[before] != ahead[after]:
                first, second = (one, other) if ahead[before] else (other, one)
                chances = [
                    better_chances(scores[:, place][:, pair])[0, 1]
                    for place, pair in ((before, [first, second]), (after, [second, first]))
                ]
                yield RankingChange(first, second, before, after, float(chances[0]), float(chances[1]))


def _exceeds(one: Floats, other: Floats) -> Mask:
    """Where `one` is larger, and it is no tie; nowhere for NaN."""
    return np.asarray(one - other > TIE * np.maximum(np.abs(one), np.abs(other)))


def _checked(scores: Floats, axes: int) -> None:
    """Refuse what are no draws of scores."""
    if scores.ndim != axes or not len(scores):
        raise ValueError(f"expected at least one draw of scores with {axes} axes, got the shape {scores.shape}")
