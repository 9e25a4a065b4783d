"""What a confidence interval for lambda is, of each kind: what it `covers`, and what it `assumes`.

SUBSAMPLING is Algorithm 1 of Xu et al. (WSC 2021). PERCENTILE resamples images (Davison and Hinkley 1997,
Sec. 5.3), BY_DRIVE whole drives. The exact kinds are Clopper and Pearson's (Biometrika 26, 1934): at least
the level at any number of images, for any detector. EXACT_SIMULTANEOUS is a band: EXACT_MONOTONE at the level that
leaves each point its share of what may be missed (Bonferroni). Where it covers all points, none lies beyond what the
others allow: lambda does not fall with the speed, and is assumed not to rise with the distance. So neither do its
ends, unless they would cross then, as where the data contradict the assumption.

Each image has the nearest reported distance D^_min and the nearest true one D_min. Among the images whose D^_min lies
in a window, the number with D_min <= S(v) is binomial with the probability

    P(D_min <= S(v) | D^_min in the window)  =  lambda(., v) averaged over the window,

if images are independent: nothing is assumed about pairs within an image, and no kernel is involved.

Where images of a drive depend on each other the kinds DRIVES_* count the images of a window as (sum of m)^2 / sum of
m^2 ones, m of each drive: as if those of a drive were copies (Kish, Survey Sampling, 1965; Korn and Graubard, Survey
Methodology 24, 1998). They are then as wide as so many drives of one image allow.

To cover lambda(y, v) itself something must be known of its course. Where lambda does not rise with y, its average
over a window that ends at y is at least lambda(y), and over one that starts at y at most: the upper end from the
window [y - w, y] and the lower end from [y, y + w] cover lambda(y, v) with at least the level, at any number of
images.
"""

import math
from collections.abc import Container
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Self

import numpy as np

from verifier.base.arrays import Floats, Ints
from verifier.base.statistics import clopper_pearson
from verifier.collision.estimator import BrakingPolicy, Grid, check_memory
from verifier.collision.pairs import Pairs

_AT = "the probability of collision at the reported distance"
_SMOOTHED = "the probability of collision as the kernel smooths it"
_AVERAGED = "the probability of collision averaged over a window of reported distances"
_EVERYWHERE = "the probability of collision at all reported distances and speeds at once"
_IMAGES = "images independent of each other"
_DRIVES = "drives, of sizes that say nothing of collisions, independent of each other"
_FALLING = ", and a probability that does not rise with the reported distance"


class IntervalKind(Enum):
    """How an interval was made: its name, what it is for, and what it takes for granted."""

    covers: str
    assumes: str

    def __new__(cls, value: str, covers: str, assumes: str) -> Self:
        """A member."""
        kind = object.__new__(cls)
        kind._value_, kind.covers, kind.assumes = value, covers, assumes
        return kind

    SUBSAMPLING = "subsampling", _AT, "many pairs, independent of each other, and a kernel narrow beside the error"
    PERCENTILE = "bootstrap_percentile", _SMOOTHED, "many images, independent of each other"
    EXACT_WINDOW = "exact_window", _AVERAGED, _IMAGES
    EXACT_MONOTONE = "exact_monotone", _AT, _IMAGES + _FALLING
    BY_DRIVE = "bootstrap_drives", _SMOOTHED, "many drives, independent of each other"
    EXACT_SIMULTANEOUS = "exact_simultaneous", _EVERYWHERE, _IMAGES + _FALLING
    DRIVES_WINDOW = "drives_window", _AVERAGED, _DRIVES
    DRIVES_MONOTONE = "drives_monotone", _AT, _DRIVES + _FALLING
    DRIVES_SIMULTANEOUS = "drives_simultaneous", _EVERYWHERE, _DRIVES + _FALLING


BY_DRIVES = {
    IntervalKind.EXACT_WINDOW: IntervalKind.DRIVES_WINDOW,
    IntervalKind.EXACT_MONOTONE: IntervalKind.DRIVES_MONOTONE,
    IntervalKind.EXACT_SIMULTANEOUS: IntervalKind.DRIVES_SIMULTANEOUS,
}
"""What takes the place of an exact interval where images of one drive depend on each other."""


@dataclass(frozen=True, eq=False)
class IntervalMap:
    """Intervals of one kind on a grid: pointwise, but for EXACT_SIMULTANEOUS and DRIVES_SIMULTANEOUS.

    Attributes:
        lower, upper: (Y, V) ends as they come out, not cut to [0, 1]; NaN where the estimate is not defined.
        resamples: number of subsamples or bootstrap replicates; 0 for exact kinds. Where one had no value at a point,
            each end takes the worst that it could be, 0 or 1, so a missing value can only widen the interval.
    """

    kind: IntervalKind
    lower: Floats
    upper: Floats
    resamples: int

    @property
    def clipped(self) -> tuple[Floats, Floats]:
        """The ends cut to [0, 1], for drawing."""
        return np.clip(self.lower, 0.0, 1.0), np.clip(self.upper, 0.0, 1.0)


def safer(kind: IntervalKind, made: Container[IntervalKind | str]) -> IntervalKind:
    """That of `BY_DRIVES` where it was made, which it is where the data ask for it; `made` by kind or its name."""
    by_drives = BY_DRIVES.get(kind, kind)
    return by_drives if by_drives in made or by_drives.value in made else kind


def end_quantiles(values: Floats, level: float) -> tuple[Floats, Floats]:
    """Order statistics of ranks ceil(p s), p = (1 - level)/2 and (1 + level)/2, along the first axis.

    NaN counts as 0 for the lower and as 1 for the upper one.

    Args:
        values: (s, ...) resampled probabilities.
    """
    low, high = order_ranks(level, len(values))
    missing = np.isnan(values)
    if not missing.any():
        both = np.partition(values, sorted({low, high}), axis=0)
        return both[low], both[high]
    lower = np.partition(np.where(missing, 0.0, values), low, axis=0)[low]
    upper = np.partition(np.where(missing, 1.0, values), high, axis=0)[high]
    return lower, upper


def order_ranks(level: float, count: int) -> tuple[int, int]:
    """Ranks from 0 of the two order statistics; the level is taken as the decimal number that was meant.

    >>> order_ranks(0.9, 100)
    (4, 94)
    """
    meant = Fraction(level).limit_denominator(10**9)
    return max(math.ceil((1 - meant) / 2 * count), 1) - 1, math.ceil((1 + meant) / 2 * count) - 1


WINDOW_M = 2.0
"""Length of the window in metres."""


def window_counts(
    pairs: Pairs, grid: Grid, policy: BrakingPolicy, before_m: float, after_m: float
) -> tuple[Ints, Ints]:
    """Images whose nearest reported distance lies in [y - before_m, y + after_m], and those of them that collide.

    Returns:
        (Y,) number of images, and (Y, V) number of them with D_min <= S(v).
    """
    check_memory(8 * (6 * len(pairs) + 4 * pairs.image_count + 6 * grid.shape[0] * grid.shape[1]))
    reported, true = image_minima(pairs)
    order = np.argsort(reported, kind="stable")
    reported, true = reported[order], true[order]
    first = np.searchsorted(reported, grid.distances_m - before_m, side="left")
    stop = np.searchsorted(reported, grid.distances_m + after_m, side="right")
    events = np.zeros(grid.shape, dtype=np.int64)
    for at, stopping in enumerate(policy.stopping_distance_m(grid.speeds_mps)):
        hits = np.concatenate([[0], np.cumsum(true <= stopping)])
        events[:, at] = hits[stop] - hits[first]
    return stop - first, events


def effective_images(pairs: Pairs, grid: Grid, before_m: float, after_m: float) -> Floats:
    """(Y,) (sum of m)^2 / sum of m^2, m the images of a window of each drive; 0 where the window has none."""
    reported, _ = image_minima(pairs)
    drive, sums = pairs.drive[np.unique(pairs.image)], np.zeros((2, len(grid.distances_m)))
    order = np.lexsort((reported, drive))
    for own in np.split(reported[order], np.flatnonzero(np.diff(drive[order])) + 1):
        first = np.searchsorted(own, grid.distances_m - before_m, side="left")
        count = np.searchsorted(own, grid.distances_m + after_m, side="right") - first
        sums += count, count**2
    return np.asarray(sums[0] ** 2 / np.maximum(sums[1], 1))


def image_minima(pairs: Pairs) -> tuple[Floats, Floats]:
    """D^_min and D_min of every image that has pairs, in the order of the images."""
    order = np.argsort(pairs.image, kind="stable")
    starts = np.flatnonzero(np.diff(pairs.image[order], prepend=-1))
    if not len(starts):
        return np.empty(0), np.empty(0)
    return np.minimum.reduceat(pairs.predicted_m[order], starts), np.minimum.reduceat(pairs.true_m[order], starts)


def exact_interval(
    pairs: Pairs,
    grid: Grid,
    policy: BrakingPolicy,
    kind: IntervalKind = IntervalKind.EXACT_MONOTONE,
    *,
    level: float = 0.95,
    window_m: float = WINDOW_M,
) -> IntervalMap:
    """Exact intervals on the grid, of kind EXACT_WINDOW, EXACT_MONOTONE or EXACT_SIMULTANEOUS, or those by drives.

    They are defined everywhere: where no image lies in the window they are [0, 1].

    Raises:
        LimitError: it would need more memory than the limit.
    """
    by_drives = kind in BY_DRIVES.values()
    points = grid.shape[0] * grid.shape[1] if "simultaneous" in kind.value else 1
    tail = (1 - level) / 2 / points

    def ends(before_m: float, after_m: float) -> tuple[Floats, Floats]:
        trials, events = window_counts(pairs, grid, policy, before_m, after_m)
        if by_drives:
            effective = effective_images(pairs, grid, before_m, after_m)[:, None]
            shares = events / np.maximum(trials, 1)[:, None]
            return clopper_pearson(np.minimum(shares * effective, effective), effective, tail)
        return clopper_pearson(events, trials[:, None], tail)

    if kind in (IntervalKind.EXACT_WINDOW, IntervalKind.DRIVES_WINDOW):
        lower, upper = ends(window_m / 2, window_m / 2)
    else:
        lower, upper = ends(0.0, window_m)[0], ends(window_m, 0.0)[1]
    if "simultaneous" in kind.value:
        low = np.maximum.accumulate(np.maximum.accumulate(lower[::-1])[::-1], axis=1)
        high = np.minimum.accumulate(np.minimum.accumulate(upper)[:, ::-1], axis=1)[:, ::-1]
        lower, upper = (low, high) if np.all(low <= high) else (lower, upper)
    return IntervalMap(kind, lower, upper, 0)
