"""Ranking detectors by their score as a function of how much heavier the heavy side weighs, with bootstrap intervals.

With ratio = beta / alpha the score of each detector is a line,

    L / alpha = base + ratio * slope,

base = O and slope = U when "below" the oracle is heavy (the paper's formula), and the other way round for "above".
So the best detector changes only where two lines cross. Images, or drives where they are known, are resampled, the
same for all detectors, and the ranking of every replicate tells how sure the ranking is.

The intervals are percentiles of the replicates. They are for the score as the kernel smooths it, at the width of the
data: neither the kernel's blur nor the choice of its width is in them.

Which of several detectors to trust at each distance and speed, and what that is worth on other images.

At each point the detector with the smallest loss is trusted (Xu et al., WSC 2021, Sec. 5.4: "rely on D4LCN when
(y, v) falls in an orange area"). Choosing by the smallest of several noisy losses flatters the choice, so it is made
on one part of the images and scored on the others.

The combined map is a patchwork: at (y, v) it is the lambda of the trusted detector. It answers "the trusted detector
reports y, how likely is a collision"; it does not say what to do when the detectors report different distances.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from verifier.base.arrays import Floats, Ints, Mask
from verifier.collision.document import Crossing
from verifier.collision.estimator import (
    DEFAULT,
    BrakingPolicy,
    CollisionMap,
    EstimatorSettings,
    Grid,
    with_common_width,
)
from verifier.collision.intervals import end_quantiles
from verifier.collision.pairs import Pairs, joined, split
from verifier.collision.resampling import Progress, oracle_blocks
from verifier.collision.score import (
    EVEN,
    PRINTED,
    Penalty,
    Score,
    Weight,
    common_points,
    oracle_map,
    score,
    weight_on,
)

REPLICATES = 200


@dataclass(frozen=True, eq=False)
class Ranking:
    """Scores of K detectors over the same points, with R bootstrap replicates.

    Attributes:
        scores: of each, all over the points where every detector is defined.
        above, below: (R, K) O and U of each replicate; NaN where a replicate has no point that is defined.
        heavy: which side beta weighs, see `Penalty`.
        weight: name of h.
    """

    titles: tuple[str, ...]
    scores: tuple[Score, ...]
    above: Floats
    below: Floats
    heavy: str
    level: float
    weight: str

    def losses(self, ratio: float) -> Floats:
        """(K,) L / alpha at beta / alpha = ratio."""
        base, slope = self._own_lines()
        return base + ratio * slope

    def order(self, ratio: float) -> tuple[int, ...]:
        """The numbers of the detectors, smallest score first."""
        return tuple(np.argsort(self.losses(ratio), kind="stable").tolist())

    def interval(self, ratio: float) -> tuple[Floats, Floats]:
        """(K,) lower and upper ends for L / alpha; NaN where no replicate is defined."""
        replicates = self._defined(ratio)
        if not len(replicates):
            none = np.full(len(self.scores), np.nan)
            return none, none
        return end_quantiles(replicates, self.level)

    def best_share(self, ratio: float) -> Floats:
        """(K,) share of the replicates in which each detector has the smallest score; equals share a replicate."""
        replicates = self._defined(ratio)
        best = replicates == replicates.min(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            return np.asarray((best / best.sum(axis=1, keepdims=True)).sum(axis=0) / np.float64(len(replicates)))

    def crossings(self) -> tuple[Crossing, ...]:
        """Every positive ratio at which two detectors change places, rising."""
        base, slope = self._own_lines()
        places = []
        for one, other in combinations(range(len(self.scores)), 2):
            if base[one] > base[other]:
                one, other = other, one
            rise = slope[one] - slope[other]
            if base[one] < base[other] and rise > 0:
                places.append(Crossing(float((base[other] - base[one]) / rise), one, other))
        return tuple(sorted(places, key=lambda crossing: crossing.ratio))

    def crossing_replicates(self, crossing: Crossing) -> Floats:
        """(R,) ratio at which the same two change places the same way in each replicate; NaN where they do not."""
        base, slope = self._line(self.above, self.below)
        gap = base[:, crossing.better_above] - base[:, crossing.better_below]
        rise = slope[:, crossing.better_below] - slope[:, crossing.better_above]
        changes = (gap > 0) & (rise > 0)
        return np.where(changes, gap / np.where(changes, rise, 1.0), np.nan)

    def _own_lines(self) -> tuple[Floats, Floats]:
        return self._line(*(np.array([getattr(score, side) for score in self.scores]) for side in ("above", "below")))

    def _line(self, above: Floats, below: Floats) -> tuple[Floats, Floats]:
        """Base and slope."""
        return (above, below) if self.heavy == "below" else (below, above)

    def _defined(self, ratio: float) -> Floats:
        base, slope = self._line(self.above, self.below)
        lines = base + ratio * slope
        return np.asarray(lines[np.isfinite(lines).all(axis=1)])


def rank(
    detectors: Sequence[Pairs],
    grid: Grid,
    policy: BrakingPolicy,
    settings: EstimatorSettings = DEFAULT,
    *,
    rng: np.random.Generator,
    weight: Weight | None = None,
    penalty: Penalty = PRINTED,
    replicates: int = REPLICATES,
    level: float = 0.95,
    progress: Progress | None = None,
) -> Ranking:
    """Score every detector beside its own oracle, all with the same kernel width, and resample images or drives.

    Of the penalty only the heavy side matters here.

    Raises:
        UsageError: images that cannot be recognised (`pairs.joined`), or a detector without spread in its reported
            distances.
        LimitError: it would need more memory than the limit.
    """
    joint = joined(detectors)
    weight = weight_on(grid, weight)
    maps = with_common_width(joint.pairs, grid, policy, settings)
    oracles = [oracle_map(pair, of) for pair, of in zip(joint.pairs, maps, strict=True)]
    among = common_points([*maps, *oracles])
    scores = tuple(score(m.probability, o.probability, weight, among) for m, o in zip(maps, oracles, strict=True))
    blocks = oracle_blocks(joint.pairs, maps, replicates, rng, progress)
    above, below = _replicated(blocks, (replicates, len(maps)), weight, among)
    titles = tuple(detector.title for detector in detectors)
    return Ranking(titles, scores, above, below, penalty.heavy, level, weight.name)


def _replicated(
    blocks: Iterable[tuple[slice, list[Floats], list[Floats]]], shape: tuple[int, int], weight: Weight, among: Mask
) -> tuple[Floats, Floats]:
    """(R, K) O and U of every replicate, summed over one block of distances after the other."""
    total, above, below = np.zeros((shape[0], 1)), np.zeros(shape), np.zeros(shape)
    for block, estimates, oracles in blocks:
        excess = np.stack(estimates) - np.stack(oracles)
        used = np.isfinite(excess).all(axis=0) & among[block]
        excess = np.where(used, excess, 0.0)
        share = weight.share[block]
        total[:, 0] += np.einsum("ryv,yv->r", used, share)
        above += np.einsum("kryv,yv->rk", np.maximum(excess, 0.0), share)
        below += np.einsum("kryv,yv->rk", np.maximum(-excess, 0.0), share)
    with np.errstate(divide="ignore", invalid="ignore"):
        return above / total, below / total


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

    choice: Ints
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
) -> Combination:
    """Choose on half of the images, or drives, divided at random, and score on the others.

    Scores are over the points where the choice and every detector are defined.

    Raises:
        UsageError: images that cannot be recognised (`pairs.joined`), or too few to divide.
        LimitError: it would need more memory than the limit.
    """
    joint = joined(detectors)
    drive = joint.pairs[0].drive
    units = (
        drive if drive.max(initial=0) else np.arange(joint.pairs[0].image_count)
    )  # images of a drive stay together
    parts = [np.flatnonzero(np.isin(units, array)) for array in split(int(units.max()) + 1, 0.5, rng)]
    maps: list[list[CollisionMap]] = []
    oracles: list[list[CollisionMap]] = []
    for images in parts:
        kept = [pair.take(images) for pair in joint.pairs]
        maps.append(with_common_width(kept, grid, policy, settings))
        oracles.append([oracle_map(pairs, of) for pairs, of in zip(kept, maps[-1], strict=True)])
    choice = trusted(_stacked(maps[0]), _stacked(oracles[0]))
    probability, oracle = _chosen(choice, _stacked(maps[1])), _chosen(choice, _stacked(oracles[1]))
    weight = weight_on(grid, weight)
    among = common_points([*maps[1], *oracles[1]]) & (choice >= 0)
    single = tuple(
        score(collision_map.probability, of.probability, weight, among)
        for collision_map, of in zip(maps[1], oracles[1], strict=True)
    )
    combined = score(probability, oracle, weight, among)
    return Combination(choice, probability, oracle, single, combined, len(parts[0]), len(parts[1]))


def trusted(probabilities: Floats, oracles: Floats) -> Ints:
    """(Y, V) the detector with the smallest loss, the first of equals; -1 where none is defined.

    Args:
        probabilities: (K, Y, V) lambda of each detector.
        oracles: (K, Y, V) lambda* of each.
    """
    losses = EVEN.loss(probabilities, oracles)
    losses = np.where(np.isnan(losses), np.inf, losses)
    return np.where(np.isinf(losses).all(axis=0), -1, losses.argmin(axis=0))


def _stacked(maps: Sequence[CollisionMap]) -> Floats:
    return np.stack([collision_map.probability for collision_map in maps])


def _chosen(choice: Ints, values: Floats) -> Floats:
    """(Y, V) of `values` (K, Y, V), the chosen one; NaN where none is."""
    picked = np.take_along_axis(values, np.maximum(choice, 0)[None], axis=0)[0]
    return np.where(choice >= 0, picked, np.nan)
