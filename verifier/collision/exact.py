"""Exact binomial intervals: for any number of images and any detector, however sharp.

Each image has the nearest reported distance D^_min and the nearest true one D_min. Among the images whose D^_min lies
in a window, the number with D_min <= S(v) is binomial with the probability

    P(D_min <= S(v) | D^_min in the window)  =  lambda(., v) averaged over the window,

if images are independent: nothing is assumed about pairs within an image, and no kernel is involved. Clopper and
Pearson (Biometrika 26, 1934) give an interval for it that covers with at least the level.

To cover lambda(y, v) itself something must be known of its course. Where lambda does not rise with y, its average
over a window that ends at y is at least lambda(y), and over one that starts at y at most: the upper end from the
window [y - w, y] and the lower end from [y, y + w] cover lambda(y, v) with at least the level, at any number of
images.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats
from verifier.base.errors import UsageError
from verifier.base.numbers import LARGEST_NUMBER
from verifier.base.statistics import clopper_pearson
from verifier.collision.estimator import Grid
from verifier.collision.intervals import IntervalKind, IntervalMap, check_level
from verifier.collision.memory import check_memory
from verifier.collision.pairs import Pairs
from verifier.collision.stopping import BrakingPolicy

Counts = NDArray[np.int64]

WINDOW_M = 2.0
"""Length of the window in metres."""


def window_counts(
    pairs: Pairs, grid: Grid, policy: BrakingPolicy, before_m: float, after_m: float
) -> tuple[Counts, Counts]:
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
    """Exact intervals on the grid, of kind EXACT_WINDOW or EXACT_MONOTONE.

    They are defined everywhere: where no image lies in the window they are [0, 1].

    Raises:
        UsageError: a level outside (0, 1), or a window that is not positive.
        ValueError: another kind.
    """
    check_level(level)
    check_window(window_m)
    if kind is IntervalKind.EXACT_WINDOW:
        trials, events = window_counts(pairs, grid, policy, window_m / 2, window_m / 2)
        lower, upper = clopper_pearson(events, trials[:, None], (1 - level) / 2)
    elif kind is IntervalKind.EXACT_MONOTONE:
        trials, events = window_counts(pairs, grid, policy, 0.0, window_m)
        lower, _ = clopper_pearson(events, trials[:, None], (1 - level) / 2)
        trials, events = window_counts(pairs, grid, policy, window_m, 0.0)
        _, upper = clopper_pearson(events, trials[:, None], (1 - level) / 2)
    else:
        raise ValueError(f"{kind} is not exact")
    return IntervalMap(kind, level, lower, upper, 0, np.zeros(grid.shape, dtype=np.int64))


def check_window(window_m: float) -> None:
    """UsageError unless the window is positive and finite."""
    if not 0 < window_m <= LARGEST_NUMBER:
        raise UsageError(f"the window must be positive, and at most {LARGEST_NUMBER:g}, got {window_m:g} m")
