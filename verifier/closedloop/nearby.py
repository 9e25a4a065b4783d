"""Pairs of points that stand close to each other, within groups."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

BLOCK = 2_000_000
"""Pairs that are held at a time, unless one point alone has more."""
SLACK = 1e-9
"""The search looks a little further than asked, for whoever takes the pairs decides exactly."""


def near_pairs(
    group: NDArray[np.int64],
    point_m: NDArray[np.float64],
    other_group: NDArray[np.int64],
    other_m: NDArray[np.float64],
    reach_m: float,
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Index pairs (of `point_m`, of `other_m`) of one group not further apart than `reach_m`, in blocks.

    Every such pair comes once; a few that stand a rounding error further apart may come, too. Points of NaN are near
    nothing.

    Args:
        group: (n,) not negative.
        point_m: (n, 2).
        other_group: (m,) not negative.
        other_m: (m, 2).
        reach_m: finite, not negative.
    """
    from scipy.spatial import cKDTree

    mine, theirs = (np.flatnonzero(np.isfinite(each).all(axis=1)) for each in (point_m, other_m))
    if not len(mine) or not len(theirs):
        return
    # Distances are taken from a point in the middle: coordinates of a map have millions of metres. The third
    # coordinate keeps groups further apart than the reach.
    origin = (other_m[theirs].min(axis=0) + other_m[theirs].max(axis=0)) / 2
    lift = 2 * reach_m + 1.0
    radius = reach_m * (1 + SLACK) + SLACK
    tree = cKDTree(np.column_stack([other_m[theirs] - origin, other_group[theirs] * lift]))
    place = np.column_stack([point_m[mine] - origin, group[mine] * lift])
    total = np.cumsum(tree.query_ball_point(place, radius, return_length=True))
    start = 0
    while start < len(mine):
        before = total[start - 1] if start else 0
        end = max(int(np.searchsorted(total, before + BLOCK, side="right")), start + 1)
        found = cKDTree(place[start:end]).sparse_distance_matrix(tree, radius, output_type="ndarray")
        yield mine[start:end][found["i"]], theirs[found["j"]]
        start = end
