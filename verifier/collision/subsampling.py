"""Confidence intervals for lambda by subsampling: Algorithm 1 of Xu et al. (WSC 2021), for a whole grid at once.

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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats
from verifier.base.errors import UsageError
from verifier.collision.estimator import CollisionMap, Grid, check_memory, predicted_bytes
from verifier.collision.intervals import IntervalKind, IntervalMap, check_level, end_quantiles
from verifier.collision.kernel import Samples, estimate, rows_per_block, samples_of
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

    def draw(self, pair_count: int, rng: np.random.Generator) -> NDArray[np.int64]:
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
        UsageError: a level outside (0, 1), or subsamples larger than the data.
        LimitError: it would need more memory than the limit.
        ValueError: the map was made from other pairs.
    """
    check_level(level)
    of.check_made_from(pairs)
    shape = of.grid.shape
    lower, upper = np.full(shape, np.nan), np.full(shape, np.nan)
    undefined = np.zeros(shape, dtype=np.int64)
    if not len(pairs):
        return IntervalMap(IntervalKind.SUBSAMPLING, level, lower, upper, 0, undefined)
    count, size = subsampling.counts(len(pairs))
    check_memory(predicted_bytes(max(len(pairs), count * size), of.grid.shape, count))
    drawn = subsampling.draw(len(pairs), rng)
    batch = samples_of(
        pairs.true_m[drawn],
        pairs.predicted_m[drawn],
        pairs.count_distribution,
        of.stopping_m,
        of.rule,
        of.settings.two_bandwidths,
    )
    ratio = (size / len(pairs)) ** RATE
    for block, (found,) in subsample_blocks([batch], of.grid, of.settings.reach, progress):
        lower[block], upper[block] = subsampling_ends(of.probability[block], found, level, ratio)
        undefined[block] = np.isnan(found).sum(axis=0)
    undefined[np.isnan(of.probability)] = 0
    return IntervalMap(IntervalKind.SUBSAMPLING, level, lower, upper, count, undefined)


def subsampling_ends(estimate_n: Floats, estimates_b: Floats, level: float, ratio: float) -> tuple[Floats, Floats]:
    """Lower and upper end of Algorithm 1.

    Args:
        estimate_n: (...) lambda_n.
        estimates_b: (s, ...) lambda_b,i; NaN where a subsample has none, see `IntervalMap.undefined`.
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
    found = np.empty((count, len(distances_m), speeds))
    # rows_per_block is symmetric in samples and distances.
    step = rows_per_block(len(distances_m), size, speeds)
    for start in range(0, count, step):
        part = slice(start, start + step)
        found[part] = estimate(batch.part(part), distances_m, reach)[0]
    return found
