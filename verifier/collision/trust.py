"""Recommended interval at each point, and why.

Subsampling intervals are the narrower ones and cover about as often as they say where three things hold; where one
fails they can miss nearly always, and the exact interval is trusted:

| subsampling is trusted where | because otherwise |
|---|---|
| the kernel is at most 1.25 times as wide as the cross-validated one | its blur is a bias the interval cannot see |
| y is at least 3 kernel widths | the kernel reaches below distance 0, where nothing can be reported |
| of the images near y at least 10 collide and 10 do not | the roots have no spread, or are far from normal |
| pairs are independent of each other and of N (`Independence`) | pairs of one image, drawn one by one, say less |
| cross-validation did not take the narrowest kernel that it tries | near copies among the pairs forecast each other |

Where only independence fails, images are resampled, and drives where they are known, but not fewer than `FEW_UNITS`:
with five drives 95 % intervals covered in 80 % of worlds, with three in 69 %. The exact interval that is
trusted elsewhere is EXACT_MONOTONE; for a speed where the data contradict its assumption (the share of collisions
rises with the reported distance beyond chance), and where its ends cross, so that it holds no probability at all, it
is EXACT_WINDOW, which covers an average only. Where images of one drive are not independent, those by drives stand in
for the exact ones (`BY_DRIVES`), and the images near y count as `effective_images`.

These limits were found by measuring coverage in worlds whose lambda is known, with errors from 5 % to 60 %.

Whether pairs are what eq. (1) of Xu et al. (WSC 2021) takes them for: independent, and of their number per image.

The estimator draws the pairs (D, D^) of an image independently of each other and of N, how many the image has (Sec.
3.1). If that is so, pairs can change places between images without changing the distribution of the data. So they are
shuffled over the places, N of each image kept, and each statistic is compared with its values then (Pitman 1937;
exact at any number of pairs): with u the centred ranks of D, or of the error D^ - D, and U their sum in an image,

    pairs:   sum over images of (U^2 - sum of u^2): whether pairs of one image are alike, or unlike
    number:  sum over images of N U: whether images with more pairs have nearer ones, or other errors
    drives:  as pairs, of the mean ranks of images in place of pairs, and drives in place of images

Each is two-sided; of the two variables the smaller p-value counts, doubled (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.documents import Count, Share
from verifier.base.statistics import FEW_UNITS, clopper_pearson
from verifier.collision.estimator import CollisionMap
from verifier.collision.intervals import (
    BY_DRIVES,
    WINDOW_M,
    IntervalKind,
    IntervalMap,
    effective_images,
    exact_interval,
    safer,
    window_counts,
)
from verifier.collision.kernel import Code
from verifier.collision.pairs import Pairs
from verifier.collision.resampling import ROOT_N, Progress, Subsampling, bootstrap_interval, subsampling_interval

MOST_PERMUTATIONS, FEWEST_PERMUTATIONS = 999, 199
SHUFFLED = 50_000_000
"""Ranks that are shuffled in all permutations together, where that leaves not too few to refute anything."""
REFUTED = 0.01


@dataclass(frozen=True)
class Independence:
    """The tests; None where nothing can be tested: no image has two pairs, all have as many, or no drives are known.

    Attributes:
        pairs: p-value of the independence of pairs of one image.
        number: p-value of their independence of how many there are.
        permutations: 0 where nothing can be tested.
        drives: p-value of the independence of images of one drive.
    """

    pairs: Share | None
    number: Share | None
    permutations: Count
    drives: Share | None = None

    @property
    def refuted(self) -> bool:
        """Whether any is refuted at 1 %."""
        return any(value is not None and value <= REFUTED for value in (self.pairs, self.number, self.drives))


def independence(pairs: Pairs, rng: np.random.Generator) -> Independence:
    """All tests of some pairs."""
    sizes = pairs.per_image[pairs.per_image > 0]
    several, differ = len(sizes) > 1 and bool((sizes > 1).any()), len(np.unique(sizes)) > 1
    permutations = max(FEWEST_PERMUTATIONS, min(MOST_PERMUTATIONS, SHUFFLED // max(len(pairs), 1)))
    order = np.argsort(pairs.image, kind="stable")
    ranks = np.stack([_centred_ranks(array[order]) for array in (pairs.true_m, pairs.predicted_m - pairs.true_m)])
    p, drives = _p_values(ranks, sizes, permutations, rng) if several or differ else None, None
    shown = pairs.drive[pairs.per_image > 0] if len(pairs.drive) else np.zeros(0, np.int64)
    images = np.unique(shown, return_counts=True)[1]
    if len(images) > 1 and (images > 1).any():
        means = np.add.reduceat(ranks, np.cumsum(sizes) - sizes, axis=1) / sizes
        drives = float(_p_values(means[:, np.argsort(shown, kind="stable")], images, permutations, rng)[0])
    one, other = (
        (float(p[0]) if several else None, float(p[1]) if differ else None) if p is not None else (None, None)
    )
    return Independence(one, other, 0 if p is None and drives is None else permutations, drives)


def _p_values(ranks: Floats, sizes: np.ndarray, permutations: int, rng: np.random.Generator) -> Floats:
    """(2,) of pairs and of number, for ranks (2, n) in groups of these sizes."""
    starts = np.cumsum(sizes) - sizes
    statistics = np.empty((permutations + 1, 2, 2))
    statistics[0] = _statistics(ranks, starts, sizes)
    for row in statistics[1:]:
        row[:] = _statistics(ranks[:, rng.permutation(ranks.shape[1])], starts, sizes)
    away = np.abs(statistics - statistics[1:].mean(axis=0))
    # Equal values that were summed in another order count as equal.
    return np.asarray(np.minimum(1, 2 * (away >= away[0] * (1 - 1e-9)).mean(axis=0).min(axis=1)))


def _centred_ranks(values: Floats) -> Floats:
    """(n,) mid-ranks, less their mean, by their largest."""
    from scipy.stats import rankdata

    return np.asarray((rankdata(values) - (len(values) + 1) / 2) / len(values))


def _statistics(ranks: Floats, starts: np.ndarray, sizes: np.ndarray) -> Floats:
    """(2, 2): of pairs and of number, for each row of ranks (2, n)."""
    sums = np.add.reduceat(ranks, starts, axis=1)
    return np.stack([(sums**2).sum(axis=1), sums @ sizes])


FEWEST = 10
"""Images near y that collide, and that do not, for subsampling to be trusted."""
WIDTHS_FROM_0 = 3.0
"""Kernel widths between distance 0 and y for subsampling to be trusted."""
CONTRADICTION = 0.01
"""Chance, for each speed, to find a contradiction to monotonicity where there is none; at most."""


class Trust(Code):
    """Recommended interval at a point, and why."""

    SUBSAMPLING = 0, "the kernel is narrow, and enough images near this distance collide and do not"
    FEW_IMAGES = (
        1,
        f"fewer than {FEWEST} independent images near this distance collide, or fewer than {FEWEST} do not",
    )
    NEAR_ZERO = 2, f"the distance is less than {WIDTHS_FROM_0:g} kernel widths: the kernel reaches below 0"
    OVERSMOOTHED = 3, "the kernel is much wider than the one that forecasts best: it blurs"
    NOT_ESTIMATED = 4, "the estimate is not defined here"
    RISING = 5, "the share of collisions rises with the reported distance, beyond sampling variability"
    CROSSED = 6, "the ends of the exact monotone interval cross: a share that falls does not fit here"
    NARROWEST = 7, "cross-validation took the narrowest kernel that it tries: pairs may be near copies"
    DEPENDENT = 8, "pairs depend on each other or on their number, so images are resampled"
    DEPENDENT_BY_DRIVE = (9, "pairs, their number or images of a drive are not independent, so drives are resampled")
    DEPENDENT_EXACT = (
        10,
        "pairs, their number or images of a drive are not independent, and too little was resampled",
    )

    @property
    def kind(self) -> IntervalKind:
        """The recommended interval."""
        if self is Trust.SUBSAMPLING:
            return IntervalKind.SUBSAMPLING
        if self in (Trust.DEPENDENT, Trust.DEPENDENT_BY_DRIVE):
            return IntervalKind.PERCENTILE if self is Trust.DEPENDENT else IntervalKind.BY_DRIVE
        averages = self in (Trust.RISING, Trust.CROSSED)
        return IntervalKind.EXACT_WINDOW if averages else IntervalKind.EXACT_MONOTONE


@dataclass(frozen=True, eq=False)
class Confidence:
    """All intervals for one map, and which to trust where.

    Attributes:
        intervals: by kind; always SUBSAMPLING and both exact kinds.
        trust: (Y, V) codes of `Trust`.
        images: (Y,) images whose nearest reported distance is within half a window of y.
        independence: whether the data refute what the estimator takes for granted.
    """

    intervals: Mapping[IntervalKind, IntervalMap]
    trust: NDArray[np.uint8]
    images: Ints
    independence: Independence

    @property
    def trusted(self) -> tuple[Floats, Floats]:
        """(Y, V) ends of the recommended interval at each point, not cut to [0, 1]."""
        lower, upper = np.full(self.trust.shape, np.nan), np.full(self.trust.shape, np.nan)
        for trust in Trust.counted(self.trust):
            at = self.trust == trust
            kind = safer(trust.kind, self.intervals)
            lower[at], upper[at] = self.intervals[kind].lower[at], self.intervals[kind].upper[at]
        return lower, upper


def confidence(
    pairs: Pairs,
    of: CollisionMap,
    *,
    seed: int,
    level: float = 0.95,
    subsampling: Subsampling = ROOT_N,
    replicates: int = 0,
    progress: Progress | None = None,
) -> Confidence:
    """Intervals of every kind for a map of these pairs; those by bootstrap where replicates are asked for.

    Subsampling and bootstrap have random streams of their own, so that one does not change the other.

    Raises:
        UsageError: see `subsampling_interval`, `bootstrap_interval` and `exact_interval`.
        LimitError: it would need more memory than the limit.
    """
    drives = len(np.unique(pairs.drive))
    first, second, third, fourth = (np.random.default_rng(stream) for stream in np.random.SeedSequence(seed).spawn(4))
    tested = independence(pairs, third)
    exact = [IntervalKind.EXACT_WINDOW, IntervalKind.EXACT_MONOTONE, IntervalKind.EXACT_SIMULTANEOUS]
    by_drives = tested.drives is not None and tested.drives <= REFUTED
    exact += BY_DRIVES.values() if by_drives else ()
    made = [exact_interval(pairs, of.grid, of.policy, kind, level=level) for kind in exact]
    made.append(subsampling_interval(pairs, of, rng=first, level=level, subsampling=subsampling, progress=progress))
    if replicates:
        made.append(bootstrap_interval(pairs, of, rng=second, level=level, replicates=replicates, progress=progress))
        if drives > 1:
            made.append(bootstrap_interval(pairs, of, rng=fourth, level=level, replicates=replicates, by_drive=True))
    images, collisions = window_counts(pairs, of.grid, of.policy, WINDOW_M / 2, WINDOW_M / 2)
    intervals = MappingProxyType({interval_map.kind: interval_map for interval_map in made})
    effective = effective_images(pairs, of.grid, WINDOW_M / 2, WINDOW_M / 2) if by_drives else images
    trust = which(of, images, collisions, effective)
    monotone = intervals[safer(IntervalKind.EXACT_MONOTONE, intervals)]
    crossed = (monotone.lower > monotone.upper) & (trust != Trust.SUBSAMPLING) & (trust != Trust.RISING)
    trust = np.where(crossed, np.uint8(Trust.CROSSED), trust)
    if tested.refuted:
        resampled = Trust.DEPENDENT_BY_DRIVE, Trust.DEPENDENT, Trust.DEPENDENT_EXACT
        few = 1 < drives < FEW_UNITS
        code = Trust.DEPENDENT_EXACT if few else next(trust for trust in resampled if trust.kind in intervals)
        trust = np.where(trust == Trust.SUBSAMPLING, np.uint8(code), trust)
    return Confidence(intervals, trust, images, tested)


def which(of: CollisionMap, images: Ints, collisions: Ints, effective: Ints | Floats) -> NDArray[np.uint8]:
    """(Y, V) codes of `Trust`, from the map and the images (Y,) and collisions (Y, V) in windows of `WINDOW_M`;
    `effective` is as how many independent ones the images count."""
    fewest = np.minimum(collisions, images[:, None] - collisions) * (effective / np.maximum(images, 1))[:, None]
    near_zero = of.grid.distances_m[:, None] < WIDTHS_FROM_0 * of.width_m
    rising = contradicted(of.grid.distances_m, images, collisions)
    code = np.select(
        [
            np.isnan(of.probability),
            np.full(of.grid.shape, of.oversmooths),
            np.full(of.grid.shape, of.narrowest),
            np.broadcast_to(near_zero, of.grid.shape),
        ],
        [Trust.NOT_ESTIMATED, Trust.OVERSMOOTHED, Trust.NARROWEST, Trust.NEAR_ZERO],
        np.where(fewest < FEWEST, Trust.FEW_IMAGES, Trust.SUBSAMPLING),
    )
    return np.where((code != Trust.SUBSAMPLING) & rising, Trust.RISING, code).astype(np.uint8)


def contradicted(distances_m: Floats, images: Ints, collisions: Ints) -> Mask:
    """(V,) whether the data contradict "lambda does not rise with y" at each speed.

    Two windows that do not overlap contradict it when the exact interval of the further one lies above that of the
    nearer one. With Y windows the intervals have the level 1 - CONTRADICTION / Y each, so that at most CONTRADICTION
    of all data sets of a monotone world do so.
    """
    lower, upper = clopper_pearson(collisions, images[:, None], CONTRADICTION / len(distances_m) / 2)
    smallest = np.minimum.accumulate(upper, axis=0)
    nearer = np.searchsorted(distances_m, distances_m - WINDOW_M, side="left")
    refuted = (nearer > 0)[:, None] & (smallest[np.maximum(nearer - 1, 0)] < lower)
    return np.asarray(refuted.any(axis=0))
