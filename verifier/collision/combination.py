"""Which of several detectors to trust at each distance and speed, and what that is worth on other images.

At each point the detector with the smallest loss is trusted (Xu et al., WSC 2021, Sec. 5.4: "rely on D4LCN when
(y, v) falls in an orange area"). Choosing by the smallest of several noisy losses flatters the choice, so it is made
on one part of the images and scored on the others.

The combined map is a patchwork: at (y, v) it is the lambda of the trusted detector. It answers "the trusted detector
reports y, how likely is a collision"; it does not say what to do when the detectors report different distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats
from verifier.collision.estimator import DEFAULT, CollisionMap, EstimatorSettings, Grid, with_common_width
from verifier.collision.joint import joined
from verifier.collision.oracle import EVEN, Penalty, oracle_map
from verifier.collision.pairs import Pairs, split
from verifier.collision.score import Score, Weight, common_points, score, weight_on
from verifier.collision.stopping import BrakingPolicy


@dataclass(frozen=True, eq=False)
class Combination:
    """A choice of detectors, made on some images and evaluated on the others.

    Attributes:
        choice: (Y, V) number of the trusted detector; -1 where none is defined on the images chosen on.
        probability, oracle: (Y, V) the combined map and its oracle on the held-out images: of the trusted detector.
        single: score of each detector on the held-out images.
        combined: score of the combination there, over the same points.
        chosen_on, scored_on: number of images.
    """

    choice: NDArray[np.int64]
    probability: Floats
    oracle: Floats
    single: tuple[Score, ...]
    combined: Score
    chosen_on: int
    scored_on: int


def combine(
    detectors: Sequence[Pairs],
    grid: Grid,
    policy: BrakingPolicy,
    settings: EstimatorSettings = DEFAULT,
    *,
    rng: np.random.Generator,
    weight: Weight | None = None,
    penalty: Penalty = EVEN,
    fraction: float = 0.5,
) -> Combination:
    """Choose on about `fraction` of the images, divided at random, and score on the others.

    Scores are over the points where the choice and every detector are defined.

    Raises:
        UsageError: images that cannot be recognised (`joint.joined`), or too few to divide.
        LimitError: it would need more memory than the limit.
    """
    joint = joined(detectors)
    parts = split(joint.image_count, fraction, rng)
    maps: list[list[CollisionMap]] = []
    oracles: list[list[CollisionMap]] = []
    for images in parts:
        kept = [each.take(images) for each in joint.pairs]
        maps.append(with_common_width(kept, grid, policy, settings))
        oracles.append([oracle_map(each, of) for each, of in zip(kept, maps[-1], strict=True)])
    choice = trusted(_stacked(maps[0]), _stacked(oracles[0]), penalty)
    probability, oracle = _chosen(choice, _stacked(maps[1])), _chosen(choice, _stacked(oracles[1]))
    weight = weight_on(grid, weight)
    among = common_points([*maps[1], *oracles[1]]) & (choice >= 0)
    single = tuple(
        score(each.probability, of.probability, weight, among) for each, of in zip(maps[1], oracles[1], strict=True)
    )
    combined = score(probability, oracle, weight, among)
    return Combination(choice, probability, oracle, single, combined, len(parts[0]), len(parts[1]))


def trusted(probabilities: Floats, oracles: Floats, penalty: Penalty) -> NDArray[np.int64]:
    """(Y, V) the detector with the smallest loss, the first of equals; -1 where none is defined.

    Args:
        probabilities: (K, Y, V) lambda of each detector.
        oracles: (K, Y, V) lambda* of each.
        penalty: weights of the loss.
    """
    losses = penalty.loss(probabilities, oracles)
    losses = np.where(np.isnan(losses), np.inf, losses)
    return np.where(np.isinf(losses).all(axis=0), -1, losses.argmin(axis=0))


def _stacked(maps: Sequence[CollisionMap]) -> Floats:
    return np.stack([each.probability for each in maps])


def _chosen(choice: NDArray[np.int64], values: Floats) -> Floats:
    """(Y, V) of `values` (K, Y, V), the chosen one; NaN where none is."""
    found = np.take_along_axis(values, np.maximum(choice, 0)[None], axis=0)[0]
    return np.where(choice >= 0, found, np.nan)
