"""Bootstrap over images: equation (1) for many reweighted copies of the data at once.

A replicate draws as many images as there are, with replacement; an image drawn twice counts twice with all its pairs.
So pairs within an image need not be independent. The kernel width stays that of the data, which keeps the kernel
sums linear in the weights: for every range of true distances between two successive S(v) they are one matrix product,
(distances x pairs) times (pairs x replicates).

The intervals are for the lambda that the kernel smooths: bootstrap replicates are blurred as the estimate is, so its
blur does not show in them (Remark 1 of Xu et al., WSC 2021).

Confidence intervals for lambda by subsampling: Algorithm 1 of Xu et al. (WSC 2021), for a whole grid at once.

Of the n pairs, s subsamples of b pairs are drawn without replacement (Politis and Romano, Annals of Statistics 22,
1994). With tau_n = n^(2/5) the differences L_i = tau_b (lambda_b,i - lambda_n) stand in for the unknown
tau_n (lambda_n - lambda), so the interval is

    ( lambda_n - L_((1 + level)/2) / tau_n,  lambda_n - L_((1 - level)/2) / tau_n ):

the *upper* quantile of L makes the *lower* end. Quantiles are order statistics, of rank ceil(p s) counted from 1.
Pairs are drawn, not images, and c_m, the number of images with m objects, stays that of the full data (Sec. 3.3).

The guarantee is asymptotic. With a sharp detector and a wide kernel the blur of the estimate does not shrink in time:
the interval may then miss lambda nearly always (see `trust`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints
from verifier.base.errors import UsageError
from verifier.collision.estimator import CollisionMap, Grid, check_memory, predicted_bytes
from verifier.collision.intervals import IntervalKind, IntervalMap, end_quantiles
from verifier.collision.kernel import Samples, estimate, rows_per_block
from verifier.collision.pairs import Pairs

Progress = Callable[[int, int], None]
"""Called with the number of distances done and of all."""

RATE = 0.4
"""tau_n = n^RATE: the rate of a kernel estimate with a width of order n^(-1/5)."""


@dataclass(frozen=True)
class Subsampling:
    """How many subsamples of which size.

    Attributes:
        size: b, pairs of a subsample; None: floor(sqrt(n)).
        count: s, number of subsamples; None: floor(sqrt(n)).

    Raises:
        UsageError: a number below 1.
    """

    size: int | None = None
    count: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("size", self.size), ("number", self.count)):
            if value is not None and value < 1:
                raise UsageError(f"the {name} of the subsamples must be at least 1, got {value}")

    def counts(self, pair_count: int) -> tuple[int, int]:
        """(s, b) for n pairs; UsageError where a subsample would be larger than the data."""
        root = max(math.isqrt(pair_count), 1)
        count, size = self.count or root, self.size or root
        if size > pair_count:
            raise UsageError(f"a subsample of {size} cannot be drawn from {pair_count}")
        return count, size

    def draw(self, pair_count: int, rng: np.random.Generator) -> Ints:
        """(s, b) indices, each row without replacement."""
        count, size = self.counts(pair_count)
        return np.array([rng.choice(pair_count, size, replace=False) for _ in range(count)], dtype=np.int64)


ROOT_N = Subsampling()
"""As in Algorithm 1."""


def subsampling_interval(
    pairs: Pairs,
    of: CollisionMap,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    subsampling: Subsampling = ROOT_N,
    progress: Progress | None = None,
) -> IntervalMap:
    """Algorithm 1 at every point of a map of these pairs.

    Subsamples take the map's width rule with their own spread; a cross-validated constant stays that of all pairs.

    Raises:
        UsageError: subsamples larger than the data.
        LimitError: it would need more memory than the limit.
    """
    shape = of.grid.shape
    lower, upper = np.full(shape, np.nan), np.full(shape, np.nan)
    if not len(pairs):
        return IntervalMap(IntervalKind.SUBSAMPLING, lower, upper, 0)
    count, size = subsampling.counts(len(pairs))
    check_memory(predicted_bytes(max(len(pairs), count * size), of.grid.shape, count))
    batch = of.sample(pairs, subsampling.draw(len(pairs), rng))
    ratio = (size / len(pairs)) ** RATE
    for block, (estimates,) in subsample_blocks([batch], of.grid, of.settings.reach, progress):
        lower[block], upper[block] = subsampling_ends(of.probability[block], estimates, level, ratio)
    return IntervalMap(IntervalKind.SUBSAMPLING, lower, upper, count)


def subsampling_ends(estimate_n: Floats, estimates_b: Floats, level: float, ratio: float) -> tuple[Floats, Floats]:
    """Lower and upper end of Algorithm 1.

    Args:
        estimate_n: (...) lambda_n.
        estimates_b: (s, ...) lambda_b,i; NaN where a subsample has none.
        level: of confidence.
        ratio: tau_b / tau_n.
    """
    low, high = end_quantiles(estimates_b, level)
    return estimate_n - ratio * (high - estimate_n), estimate_n - ratio * (low - estimate_n)


def subsample_blocks(
    batches: Sequence[Samples], grid: Grid, reach: float, progress: Progress | None = None
) -> Iterator[tuple[slice, list[Floats]]]:
    """For one block of distances after the other: (s, block, V) estimates of every batch of s subsamples.

    A block is as long as memory allows, and the subsamples of a batch are taken in parts.
    """
    distances, speeds = grid.shape
    count = len(batches[0].sizes)
    step = max(1, min(rows_per_block(count, 0, speeds * len(batches)), distances))
    for start in range(0, distances, step):
        block = slice(start, min(start + step, distances))
        yield block, [_estimates(batch, grid.distances_m[block], reach) for batch in batches]
        if progress is not None:
            progress(block.stop, distances)


def _estimates(batch: Samples, distances_m: Floats, reach: float) -> Floats:
    """(s, Y, V) of a batch, some subsamples at a time."""
    count, size = batch.true_m.shape
    speeds = batch.beyond.shape[1]
    estimates = np.empty((count, len(distances_m), speeds))
    # rows_per_block is symmetric in samples and distances.
    step = rows_per_block(len(distances_m), size, speeds)
    for start in range(0, count, step):
        part = slice(start, start + step)
        estimates[part] = estimate(batch.part(part), distances_m, reach)[0]
    return estimates


REPLICATES = 1000
BLOCK_BYTES = 2**27
"""Working memory of one block of distances, and of one part of the replicates."""


@dataclass(frozen=True, eq=False)
class Weighted:
    """Pairs in order of falling true distance, for replicates that weight whole images.

    Attributes:
        true_m, predicted_m: (n,).
        image: (n,) of each pair.
        per_image: (image_count,) N.
        edges: (V + 2,) 0, then the number of pairs with D > S(v) from the largest to the smallest S(v), then n.
        reach: see `EstimatorSettings`.
    """

    true_m: Floats
    predicted_m: Floats
    image: Ints
    per_image: Ints
    edges: Ints
    width_m: float
    reach: float

    @classmethod
    def of(cls, pairs: Pairs, of: CollisionMap) -> Weighted:
        """The pairs of a map, sorted."""
        order = np.argsort(-pairs.true_m, kind="stable")
        true = pairs.true_m[order]
        beyond = len(true) - np.searchsorted(true[::-1], of.stopping_m, side="right")
        return cls(
            true_m=true,
            predicted_m=pairs.predicted_m[order],
            image=pairs.image[order],
            per_image=pairs.per_image,
            edges=np.concatenate([[0], beyond[::-1], [len(true)]]),
            width_m=of.width_m,
            reach=of.settings.reach,
        )

    def as_oracle(self) -> Weighted:
        """The same pairs seen by a detector that reports every true distance, with the same kernel width."""
        return replace(self, predicted_m=self.true_m)

    def estimates(self, distances_m: Floats, draws: NDArray[np.uint8]) -> Floats:
        """(R, Y, V) lambda of every replicate, NaN where it is not defined.

        Args:
            distances_m: (Y,) reported distances.
            draws: (R, image_count) how often each replicate has each image.
        """
        estimates = np.empty((len(draws), len(distances_m), len(self.edges) - 2))
        one = 8 * (6 * estimates[0].size + len(self.true_m) + len(self.per_image))
        step = max(1, BLOCK_BYTES // one)
        for start in range(0, len(draws), step):
            part = slice(start, start + step)
            estimates[part] = self._part(distances_m, draws[part].astype(np.float64))
        return estimates

    def _part(self, distances_m: Floats, draws: Floats) -> Floats:
        weights = np.ascontiguousarray(draws.T)[self.image]
        with np.errstate(over="ignore"):  # infinitely many widths away: no weight
            away = (distances_m[:, None] - self.predicted_m) / self.width_m
            near = np.exp(-0.5 * away * away)
        mass = self._running(near, weights)
        further = self._running((self.predicted_m >= distances_m[:, None]).astype(np.float64), weights)
        total, seen = mass[-1], further[-1]
        defined = (total > 0) & (total >= np.exp(-0.5 * self.reach**2))
        with np.errstate(divide="ignore", invalid="ignore"):
            probability = 1 - mass[:-1] / total * self._image_factor(further[:-1], seen, draws)
        return np.where(defined, probability, np.nan)[::-1].transpose(2, 1, 0)

    def _running(self, values: Floats, weights: Floats) -> Floats:
        """(V + 1, Y, R) weighted sums of `values` (Y, n) over the first `edges[1:]` pairs."""
        sums = np.zeros((len(self.edges) - 1, len(values), weights.shape[1]))
        for at, (start, stop) in enumerate(pairwise(self.edges.tolist())):
            if at:
                sums[at] = sums[at - 1]
            if stop > start:
                sums[at] += values[:, start:stop] @ weights[start:stop]
        return sums

    def _image_factor(self, both: Floats, seen: Floats, draws: Floats) -> Floats:
        """(V, Y, R) r2 = sum m c_m p^(m-1) / sum m c_m q^(m-1) of every replicate; see `kernel`."""
        present = np.zeros((int(self.per_image.max(initial=0)) + 1, len(draws)))
        np.add.at(present, self.per_image, draws.T)
        sizes = (np.arange(len(present)) @ present).clip(min=1)
        lowest = max(int(self.per_image[self.per_image > 0].min(initial=len(present) - 1)), 1)
        upper, lower = np.zeros(both.shape), np.zeros(seen.shape)
        for m in range(len(present) - 1, lowest - 1, -1):
            upper = upper * (both / sizes) + m * present[m]
            lower = lower * (seen / sizes) + m * present[m]
        ratio = upper / lower
        if lowest > 1:
            ratio *= (both / seen) ** (lowest - 1)
        return np.asarray(ratio)


def bootstrap_interval(
    pairs: Pairs,
    of: CollisionMap,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    replicates: int = REPLICATES,
    progress: Progress | None = None,
    by_drive: bool = False,
) -> IntervalMap:
    """Percentile bootstrap intervals at every point of a map of these pairs, with one bandwidth.

    With `by_drive` whole drives are drawn, as many as there are; they are then of kind BY_DRIVE.

    Raises:
        LimitError: it would need more memory than the limit.
    """
    low, high = np.full(of.grid.shape, np.nan), np.full(of.grid.shape, np.nan)
    if of.width_m > 0:
        draws = unit_draws(pairs.image_count, pairs.drive if by_drive else pairs.drive[:0], replicates, rng)
        for block, (estimates,) in replicate_blocks([Weighted.of(pairs, of)], of.grid, draws, progress):
            low[block], high[block] = end_quantiles(estimates, level)
    none = np.isnan(of.probability)
    low[none], high[none] = np.nan, np.nan
    return IntervalMap(IntervalKind.BY_DRIVE if by_drive else IntervalKind.PERCENTILE, low, high, replicates)


def image_draws(image_count: int, replicates: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """(R, image_count) how often each replicate draws each image.

    Raises:
        LimitError: the table would be larger than the memory limit.
    """
    check_memory(3 * replicates * image_count)
    draws = np.empty((replicates, image_count), dtype=np.uint8)
    for row in draws:
        row[:] = np.minimum(np.bincount(rng.integers(image_count, size=image_count), minlength=image_count), 255)
    return draws


def unit_draws(image_count: int, drive: Ints, replicates: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """As `image_draws`, of whole drives where several are known; `drive` is (image_count,), or empty."""
    drives = int(drive.max(initial=-1)) + 1
    return image_draws(drives, replicates, rng)[:, drive] if drives > 1 else image_draws(image_count, replicates, rng)


def replicate_blocks(
    sides: Sequence[Weighted], grid: Grid, draws: NDArray[np.uint8], progress: Progress | None = None
) -> Iterator[tuple[slice, list[Floats]]]:
    """For one block of distances after the other: (R, block, V) estimates of every side for the same replicates.

    Raises:
        LimitError: even a block of one distance would need more than the memory limit.
    """
    distances, speeds = grid.shape
    row = 8 * 3 * (len(draws) * speeds * len(sides) + max(len(side.true_m) for side in sides))
    check_memory(draws.nbytes + row + 3 * BLOCK_BYTES)
    step = max(1, min(BLOCK_BYTES // row, distances))
    for start in range(0, distances, step):
        block = slice(start, min(start + step, distances))
        yield block, [side.estimates(grid.distances_m[block], draws) for side in sides]
        if progress is not None:
            progress(block.stop, distances)


def oracle_blocks(
    pairs: Sequence[Pairs],
    maps: Sequence[CollisionMap],
    replicates: int,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> Iterator[tuple[slice, list[Floats], list[Floats]]]:
    """As `replicate_blocks`, the estimates of every detector and those of its oracle, for the same images or drives.

    Args:
        pairs, maps: of detectors over the same images and grid; the maps have one bandwidth.
        replicates: how many are drawn.
        rng: decides which.
        progress: told of the distances that are done.

    Raises:
        UsageError: a detector without spread in its reported distances.
    """
    for at, collision_map in enumerate(maps, start=1):
        if not collision_map.width_m > 0:
            name = collision_map.title or f"detector {at}"
            raise UsageError(f"{name} cannot be resampled: its reported distances have no spread")
    sides = [Weighted.of(pair, of) for pair, of in zip(pairs, maps, strict=True)]
    draws = unit_draws(pairs[0].image_count, pairs[0].drive, replicates, rng)
    every = [*sides, *(side.as_oracle() for side in sides)]
    for block, estimates in replicate_blocks(every, maps[0].grid, draws, progress):
        yield block, estimates[: len(sides)], estimates[len(sides) :]
