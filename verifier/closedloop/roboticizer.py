"""From a detector's output to what a robot reasons with: points on the ground, and strengths that can be compared.

Pezzementi et al. 2021, section 6.1. The *localizer* turns a rectangle in the image into a point in space; the
*sensitivity standardizer* turns a raw score into the rate of false positives that a threshold there would have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from verifier.base.arrays import Floats
from verifier.closedloop.logs import IOU_HALF, Logs, person_matches
from verifier.perception.matching import MatchingPolicy


def localize(depth_m: Floats, box_2d: Floats, camera: Floats) -> Floats:
    """(n, 3) points in the camera frame (x right, y down, z forward, metres), one per rectangle.

    The depth of a rectangle is the median over its rows of the median depth of each row; the point is the
    rectangle's centre back-projected at that depth: z ((u - c_x) / f_x, (v - c_y) / f_y, 1) (section 6.1.1). A
    rectangle covers every pixel that it touches and is cut to the image; pixels of unknown depth, and rows without
    any known depth, are left out. A rectangle outside the image, or without any known depth, gives a point of NaN.

    Mutated images are localized with the depth of the images as they were taken (section 6.1.1).

    Args:
        depth_m: (height, width) along the optical axis; 0 or NaN where it is unknown.
        box_2d: (n, 4) left, top, right, bottom in pixels; pixel (i, j) covers [j, j + 1) x [i, i + 1).
        camera: (3, 3) intrinsics f_x, 0, c_x; 0, f_y, c_y; 0, 0, 1 for the same pixel coordinates.

    Raises:
        ValueError: a shape is wrong, a depth is negative or infinite, or the camera has a skew or no focal length.
    """
    matrix = np.asarray(camera, dtype=np.float64)
    if depth_m.ndim != 2 or box_2d.ndim != 2 or box_2d.shape[1] != 4 or matrix.shape != (3, 3):
        raise ValueError(f"shapes {depth_m.shape}, {box_2d.shape}, {matrix.shape}; expected (h, w), (n, 4), (3, 3)")
    if (depth_m < 0).any() or np.isinf(depth_m).any():
        raise ValueError("a depth is negative or infinite; write 0 where it is unknown")
    (focal_x, skew, centre_x), (zero, focal_y, centre_y), last = matrix.tolist()
    if not (focal_x > 0 and focal_y > 0 and skew == zero == 0 and last == [0, 0, 1]):
        raise ValueError("expected intrinsics f_x, 0, c_x; 0, f_y, c_y; 0, 0, 1")
    known = np.where(depth_m > 0, depth_m, np.nan)
    # One crop after another: rectangles differ in size, and each is an array already.
    z = np.array([_row_median(known, box) for box in box_2d.tolist()], dtype=np.float64)
    u, v = (box_2d[:, 0] + box_2d[:, 2]) / 2, (box_2d[:, 1] + box_2d[:, 3]) / 2
    return np.column_stack([z * (u - centre_x) / focal_x, z * (v - centre_y) / focal_y, z])


def _row_median(known: Floats, box: Sequence[float]) -> float:
    """The median of the medians of the rows that have a known depth (not NaN); NaN where there is none."""
    if not np.isfinite(box).all():
        return float("nan")
    height, width = known.shape
    low = np.floor(box[:2])
    high = np.maximum(np.ceil(box[2:]), low + 1)  # a rectangle without area lies in one pixel
    left, top = np.maximum(low, 0)
    right, bottom = np.minimum(high, (width, height))
    if left >= right or top >= bottom:
        return float("nan")
    part = np.sort(known[int(top) : int(bottom), int(left) : int(right)], axis=1)  # NaN comes last
    count = np.count_nonzero(~np.isnan(part), axis=1)
    part, count = part[count > 0], count[count > 0]
    if not len(part):
        return float("nan")
    rows = np.arange(len(part))
    return float(np.median((part[rows, (count - 1) // 2] + part[rows, count // 2]) / 2))


@dataclass(frozen=True, eq=False)
class Standardizer:
    """Raw scores as rates of false positives: the look-up table of section 6.1.2.

    st(x) = #{false positives of the validation images with score >= x} / #images: what a threshold at x would cost.
    **Smaller is stronger.** A score above every false positive has st = 0, one below all of them the rate of all of
    them: nothing is extrapolated. The table is made from validation images as they were taken, and the same table
    serves mutated data, so that a shift of the scores under mutation shows.

    Attributes:
        false_positives: (m,) scores of the validation images' false positives, not decreasing.
        image_count: number of validation images, those without false positives included.

    Raises:
        ValueError: a score is NaN, the scores decrease, or there is no image.
    """

    false_positives: Floats
    image_count: int

    def __post_init__(self) -> None:
        table = np.array(self.false_positives, dtype=np.float64)
        table.setflags(write=False)
        object.__setattr__(self, "false_positives", table)
        if table.ndim != 1 or np.isnan(table).any() or (np.diff(table) < 0).any():
            raise ValueError("expected scores (m,) that are numbers and do not decrease")
        if self.image_count < 1:
            raise ValueError(f"expected at least one validation image, got {self.image_count}")

    @classmethod
    def from_validation(cls, strengths: ArrayLike, image_count: int) -> Standardizer:
        """The table of these false positives (m,), in any order."""
        return cls(np.sort(np.asarray(strengths, dtype=np.float64)), image_count)

    def __call__(self, strengths: ArrayLike) -> Floats:
        """st of scores of any shape.

        Raises:
            ValueError: a score is NaN.
        """
        values = np.asarray(strengths, dtype=np.float64)
        if np.isnan(values).any():
            raise ValueError("a score is not a number")
        below = np.searchsorted(self.false_positives, values, side="left")
        rate: Floats = (len(self.false_positives) - below) / self.image_count
        return rate

    def raw_threshold(self, sensitivity: float) -> float:
        """The score that a detection must **exceed** to take part at this sensitivity; -inf when all do.

        This is what to set in the detector: st(x) <= sensitivity exactly when x > raw_threshold(sensitivity).

        Raises:
            ValueError: the sensitivity is negative or NaN.
        """
        if not sensitivity >= 0:
            raise ValueError(f"expected a sensitivity from 0, got {sensitivity}")
        rates = np.arange(len(self.false_positives) + 1) / self.image_count
        allowed = int(np.searchsorted(rates, sensitivity, side="right")) - 1
        if allowed == len(self.false_positives):
            return float("-inf")
        return float(self.false_positives[-1 - allowed])


def standardizer_of(validation: Logs, source: str, policy: MatchingPolicy = IOU_HALF) -> Standardizer:
    """The table of one source, from validation logs: what matches no person is a false positive.

    The images of all logs count, with people or without: st is the expected number per image.

    Raises:
        UsageError: no such source, or the policy does not fit (see `person_matches`).
    """
    found = validation.source(source)
    false = person_matches(validation, source, policy).false
    return Standardizer.from_validation(found.strength[false], validation.image_count)
