"""How alike two boxes are, for pairs of boxes: overlap of rectangles and distance of centres.

Intersection over union (IoU) of two regions A and B is |A n B| / |A u B|, the Jaccard index; it lies in [0, 1] and
is 1 only when both are the same region (Everingham et al. 2010, "The PASCAL VOC Challenge", Sec. 4.2). Here:

* `iou_2d`: rectangles of the image, areas in square pixels, an edge at x = 3 being a line and not a column of
  pixels (COCO and KITTI; PASCAL VOC adds 1 pixel to each side).
* `iou_bev`: the boxes seen from above, rotated rectangles (KITTI bird's-eye-view benchmark).
* `iou_3d`: volumes of upright boxes; roll and pitch are zero (KITTI 3-D object benchmark).

Every function takes pairs: row i of the one array with row i of the other. A region without area has IoU 0 with
every region, itself included. A row of NaN gives NaN. Boxes in 3-D are (n, 7): centre x, y, z, length (along the
direction of yaw), width, height in metres, yaw in radians from x towards y; boxes in 2-D are (n, 4): left, top,
right, bottom in pixels.
"""

from __future__ import annotations

import numpy as np

from verifier.base.arrays import Floats

CORNERS = ((0.5, 0.5), (-0.5, 0.5), (-0.5, -0.5), (0.5, -0.5))
"""Corners of a rectangle in units of its length and width, counter-clockwise."""
ROUNDINGS = 16
"""Shared areas up to so many roundings of the numbers they are made of are rounding errors: nothing is shared."""


def iou_2d(a: Floats, b: Floats) -> Floats:
    """(n,) IoU of the image rectangles `a` (n, 4) and `b` (n, 4)."""
    shared = _shared_area(a, b)
    both = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1]) + (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    return _ratio(shared, both - shared)


def cover_2d(a: Floats, b: Floats) -> Floats:
    """(n,) part of the image rectangle `a` (n, 4) that lies in `b` (n, 4): |a n b| / |a|.

    With regions to ignore COCO and KITTI use this in place of the IoU: one region may hold many objects.
    """
    return _ratio(_shared_area(a, b), (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1]))


def iou_bev(a: Floats, b: Floats) -> Floats:
    """(n,) IoU of the rotated ground-plane rectangles of `a` (n, 7) and `b` (n, 7); z and height play no part."""
    shared = _shared_ground(a, b)
    return _ratio(shared, a[:, 3] * a[:, 4] + b[:, 3] * b[:, 4] - shared)


def iou_3d(a: Floats, b: Floats) -> Floats:
    """(n,) IoU of the upright boxes `a` (n, 7) and `b` (n, 7): ground-plane intersection times common height."""
    top = np.minimum(a[:, 2] + a[:, 5] / 2, b[:, 2] + b[:, 5] / 2)
    bottom = np.maximum(a[:, 2] - a[:, 5] / 2, b[:, 2] - b[:, 5] / 2)
    # Taken from the difference of two sums, the common height of equal boxes could exceed their height by rounding.
    height = np.minimum(np.maximum(top - bottom, 0.0), np.minimum(a[:, 5], b[:, 5]))
    shared = _shared_ground(a, b) * height
    return _ratio(shared, a[:, 3] * a[:, 4] * a[:, 5] + b[:, 3] * b[:, 4] * b[:, 5] - shared)


def centre_distance(a: Floats, b: Floats) -> Floats:
    """(n,) Euclidean distance of the points `a` (n, d) and `b` (n, d), in their unit.

    nuScenes matches by the distance in the ground plane (Caesar et al. 2020, Sec. 3.1, d = 2).
    """
    squares = np.square(a[:, 0] - b[:, 0])
    for axis in range(1, a.shape[1]):
        squares += np.square(a[:, axis] - b[:, axis])
    return np.sqrt(squares)


def _ratio(part: Floats, whole: Floats) -> Floats:
    """`part / whole`, 0 where `whole` is 0."""
    result: Floats = np.divide(part, whole, out=np.where(whole == 0, 0.0, np.nan), where=whole > 0)
    return result


def _shared_area(a: Floats, b: Floats) -> Floats:
    width = np.minimum(a[:, 2], b[:, 2]) - np.maximum(a[:, 0], b[:, 0])
    height = np.minimum(a[:, 3], b[:, 3]) - np.maximum(a[:, 1], b[:, 1])
    np.maximum(width, 0.0, out=width)
    np.maximum(height, 0.0, out=height)
    width *= height
    return width


def _shared_ground(a: Floats, b: Floats) -> Floats:
    """(n,) area of the intersection of the ground-plane rectangles; clips only pairs whose circumcircles meet."""
    reach = (np.hypot(a[:, 3], a[:, 4]) + np.hypot(b[:, 3], b[:, 4])) / 2
    apart = centre_distance(a[:, :2], b[:, :2])
    area = np.where(np.isnan(reach + apart), np.nan, 0.0)
    near = np.flatnonzero(apart <= reach)
    area[near] = _clipped_area(a[near], b[near])
    return area


def _clipped_area(a: Floats, b: Floats) -> Floats:
    """(n,) area of the intersection of two rotated rectangles, by clipping `a` in the axes of `b`.

    In these axes `b` is |x| <= h, |y| <= k, and `a` is convex: above each x its slice is one interval from y_low to
    y_high. Cut to `b`, the slice has length clip(y_high, -k, k) - clip(y_low, -k, k). So the area is the integral of
    clip(y, -k, k) dx along the boundary of `a`, clockwise, cut to |x| <= h: four sides, each a straight line,
    and no case for touching, equal or containing boxes.
    """
    cosine, sine = np.cos(b[:, 6]), np.sin(b[:, 6])
    dx, dy = a[:, 0] - b[:, 0], a[:, 1] - b[:, 1]
    centre = (cosine * dx + sine * dy, cosine * dy - sine * dx)
    cosine, sine = np.cos(a[:, 6] - b[:, 6]), np.sin(a[:, 6] - b[:, 6])
    half_length, half_width = b[:, 3] / 2, b[:, 4] / 2
    corners = []
    for along, across in CORNERS:
        x, y = along * a[:, 3], across * a[:, 4]
        corners.append((centre[0] + (cosine * x - sine * y), centre[1] + (sine * x + cosine * y)))
    area = np.zeros(len(a))
    for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1], strict=True):
        area -= _side_integral(x0, y0, x1, y1, half_length, half_width)
    # Rounding may leave the area an ulp outside of what is possible, and boxes that are apart some 1e-16 in common.
    sizes = np.maximum(a[:, 3:5].max(axis=1), b[:, 3:5].max(axis=1))
    numbers = np.abs(a[:, :2]).sum(axis=1) + np.abs(b[:, :2]).sum(axis=1) + sizes
    area[area <= ROUNDINGS * np.finfo(np.float64).eps * numbers * sizes] = 0.0
    return np.minimum(np.maximum(area, 0.0), np.minimum(a[:, 3] * a[:, 4], b[:, 3] * b[:, 4]))


def _side_integral(x0: Floats, y0: Floats, x1: Floats, y1: Floats, h: Floats, k: Floats) -> Floats:
    """(n,) integral of clip(y, -k, k) dx on the straight line from (x0, y0) to (x1, y1), cut to |x| <= h."""
    run = x1 - x0
    slope = np.divide(y1 - y0, run, out=np.zeros_like(run), where=run != 0)
    begin, end = np.clip(x0, -h, h), np.clip(x1, -h, h)
    low, high = y0 + (begin - x0) * slope, y0 + (end - x0) * slope
    rise = high - low
    # clip(y, -k, k) bends where the line meets y = -k and y = k: at the parts t and u of its length.
    bends = [np.divide(side - low, rise, out=np.zeros_like(rise), where=rise != 0) for side in (-k, k)]
    t, u = np.clip(np.minimum(*bends), 0.0, 1.0), np.clip(np.maximum(*bends), 0.0, 1.0)
    heights = [np.clip(y, -k, k) for y in (low, low + t * rise, low + u * rise, high)]
    mean = t * (heights[0] + heights[1]) + (u - t) * (heights[1] + heights[2]) + (1 - u) * (heights[2] + heights[3])
    integral: Floats = (end - begin) * mean / 2
    return integral
