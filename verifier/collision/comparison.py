"""Two detectors side by side: who is closer to its oracle where, and how sure that is (Xu et al., WSC 2021, Fig. 5).

A point is green (EITHER) where both losses are below a threshold, else it belongs to the detector with the smaller
loss. Its p-value is for the opposite claim:

    FIRST   H0: theta >= 0, theta = loss_1 - loss_2              small p: the first is the better one
    SECOND  H0: theta <= 0                                       small p: the second is the better one
    EITHER  H0: theta >= 0, theta = max(losses) - threshold      small p: both are good

Each detector is compared with the oracle of its own pairs; all four maps have the same kernel width.

From subsamples, as in Algorithm 1: p is the share of roots tau_b (theta_b,i - theta_n) at or below tau_n theta_n (at
or above it for SECOND), and 1/s instead of 0. All of theta_b,i, both detectors and both oracles, are from the same
drawn objects. From bootstrap replicates of whole images, or drives where they are known (`bootstrap_p_values`): the
same with tau_b = tau_n. The bootstrap keeps the number of objects and the kernel's width, and with them how much of
the two detectors' noise is common; in worlds where neither detector is better its p-values were closer to uniform.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints
from verifier.collision.estimator import (
    DEFAULT,
    BrakingPolicy,
    CollisionMap,
    EstimatorSettings,
    Grid,
    check_memory,
    predicted_bytes,
    with_common_width,
)
from verifier.collision.kernel import Code
from verifier.collision.pairs import Pairs, joined
from verifier.collision.resampling import (
    RATE,
    REPLICATES,
    ROOT_N,
    Progress,
    Subsampling,
    oracle_blocks,
    subsample_blocks,
)
from verifier.collision.score import EVEN, oracle_map

THRESHOLD = 0.05
"""A loss below this is good (Fig. 5)."""


class Area(Code):
    """Who is better at a point."""

    UNDEFINED = 0, "not defined for both"
    FIRST = 1, "the first is closer to its oracle"
    SECOND = 2, "the second is closer to its oracle"
    EITHER = 3, "both are close to their oracles"
    TIED = 4, "equal losses"


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two detectors on one grid.

    Attributes:
        losses: (2, Y, V).
        area: (Y, V) codes of `Area`.
        p_value: (Y, V) for the claim of the area; NaN where UNDEFINED or TIED.
        undefined: (Y, V) number of subsamples without a value at the point; they count against the claim.
        subsamples, subsample_size: s and b.
        objects, common_objects: drawn from, and of those with a pair of both detectors.
        threshold: of losses that are good.
    """

    maps: tuple[CollisionMap, CollisionMap]
    losses: Floats
    area: NDArray[np.uint8]
    p_value: Floats
    undefined: Ints
    subsamples: int
    subsample_size: int
    objects: int
    common_objects: int
    threshold: float

    @property
    def thin_share(self) -> float:
        """Share of the points with a p-value where more than a fifth of the subsamples have no value; they count
        against the claim, so that p says little there."""
        tested = np.isfinite(self.p_value)
        return float(np.mean(self.undefined[tested] > self.subsamples / 5)) if tested.any() else 0.0


def compare(
    first: Pairs,
    second: Pairs,
    grid: Grid,
    policy: BrakingPolicy,
    settings: EstimatorSettings = DEFAULT,
    *,
    rng: np.random.Generator,
    threshold: float = THRESHOLD,
    subsampling: Subsampling = ROOT_N,
    progress: Progress | None = None,
) -> Comparison:
    """Compare two detectors at every point of the grid.

    Subsamples are of objects: of all that either detector has a pair for, b = s = floor(sqrt(n)).

    Raises:
        UsageError: images that cannot be recognised (`pairs.joined`).
        LimitError: it would need more memory than the limit.
    """
    joint = joined([first, second])
    count, size = subsampling.counts(joint.object_count)
    check_memory(predicted_bytes(4 * max(joint.object_count, count * size), grid.shape, 6 * count))
    maps = with_common_width(joint.pairs, grid, policy, settings)
    oracles = [oracle_map(pair, of) for pair, of in zip(joint.pairs, maps, strict=True)]
    losses = _losses(
        [collision_map.probability for collision_map in maps], [oracle.probability for oracle in oracles]
    )
    area = areas(losses, threshold)
    drawn = subsampling.draw(joint.object_count, rng)
    batches = [maps[at].sample(joint.pairs[at], joint.pair_of[at][drawn]) for at in range(2)]
    batches += [batch.as_oracle() for batch in batches]
    p_value, undefined = np.full(grid.shape, np.nan), np.zeros(grid.shape, dtype=np.int64)
    ratio = (size / joint.object_count) ** RATE
    for block, (*estimates, oracle_1, oracle_2) in subsample_blocks(batches, grid, settings.reach, progress):
        sampled = _losses(estimates, [oracle_1, oracle_2])
        undefined[block] = np.isnan(sampled).any(axis=0).sum(axis=0)
        p_value[block] = _p_values(area[block], losses[:, block], sampled, threshold, ratio)
    return Comparison(
        maps=(maps[0], maps[1]),
        losses=losses,
        area=area,
        p_value=p_value,
        undefined=undefined,
        subsamples=count,
        subsample_size=size,
        objects=joint.object_count,
        common_objects=joint.common_objects,
        threshold=threshold,
    )


def bootstrap_p_values(
    first: Pairs,
    second: Pairs,
    of: Comparison,
    *,
    rng: np.random.Generator,
    replicates: int = REPLICATES,
    progress: Progress | None = None,
) -> Floats:
    """(Y, V) p-values of a comparison of these detectors, from replicates of whole images, or drives, common to both.

    Raises:
        UsageError: a detector without spread in its reported distances.
        LimitError: it would need more memory than the limit.
    """
    joint = joined([first, second])
    p_value = np.full(of.area.shape, np.nan)
    for block, estimates, oracles in oracle_blocks(joint.pairs, of.maps, replicates, rng, progress):
        sampled = _losses(estimates, oracles)
        p_value[block] = _p_values(of.area[block], of.losses[:, block], sampled, of.threshold, 1.0)
    return p_value


def areas(losses: Floats, threshold: float) -> NDArray[np.uint8]:
    """(Y, V) codes of `Area` for the losses (2, Y, V) of two detectors."""
    first, second = losses
    area = np.select(
        [np.isnan(first + second), np.maximum(first, second) < threshold, first < second, first > second],
        [Area.UNDEFINED, Area.EITHER, Area.FIRST, Area.SECOND],
        Area.TIED,
    )
    return area.astype(np.uint8)


def p_values(theta_n: Floats, theta_b: Floats, ratio: float) -> Floats:
    """Share of subsamples that do not speak for theta < 0: of roots tau_b (theta_b - theta_n) <= tau_n theta_n.

    At the boundary, theta = 0, the roots have the law of tau_n theta_n, so p is uniform in the limit. For the claim
    theta > 0 give -theta_n and -theta_b.

    Args:
        theta_n: (...) the statistic of all data.
        theta_b: (s, ...) of each subsample; one without a value (NaN) counts as not speaking for the claim.
        ratio: tau_b / tau_n.
    """
    count = len(theta_b)
    against = np.sum(~(ratio * (theta_b - theta_n) > theta_n), axis=0)
    return np.asarray(np.maximum(against, 1) / count)


def _p_values(area: NDArray[np.uint8], losses: Floats, sampled: Floats, threshold: float, ratio: float) -> Floats:
    """(Y, V) p-values of one block; `losses` (2, Y, V), `sampled` (2, s, Y, V)."""
    difference, between = losses[0] - losses[1], sampled[0] - sampled[1]
    largest = losses.max(axis=0) - threshold
    return np.select(
        [area == Area.FIRST, area == Area.SECOND, area == Area.EITHER],
        [
            p_values(difference, between, ratio),
            p_values(-difference, -between, ratio),
            p_values(largest, sampled.max(axis=0) - threshold, ratio),
        ],
        np.nan,
    )


def _losses(probabilities: Sequence[Floats], oracles: Sequence[Floats]) -> Floats:
    return np.stack(
        [EVEN.loss(probability, oracle) for probability, oracle in zip(probabilities, oracles, strict=True)]
    )
