"""From a detector's scores to strengths that can be compared: the rate of false positives of a threshold there.

The *sensitivity standardizer* of Pezzementi et al. 2021, section 6.1.2. Their localizer, which turns a rectangle in
the image into a point in space, stands with the readers of depth (`verifier.perception.detections.depth`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from verifier.base.arrays import Floats, freeze
from verifier.closedloop.logs import IOU_HALF, Logs, person_matches
from verifier.perception.matching import MatchingPolicy


@dataclass(frozen=True, eq=False)
class Standardizer:
    """Raw scores as rates of false positives, by a look-up table.

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
        freeze(self, {"false_positives": np.float64})
        table = self.false_positives
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
