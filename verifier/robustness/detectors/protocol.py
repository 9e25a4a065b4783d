"""What a detector under test is: images in, rectangles with scores and labels out.

A detector has three things: `classes`, the names its labels point at; `identity`, JSON values that name everything
its output depends on beside the pixels; and the call itself. Equal identities mean equal outputs for equal images:
that is what lets outputs be kept (`run`) and what stands in the evidence for which detector was tested.

Non-maximum suppression: of detections that overlap, the surest stays (Dalal 2006, PhD thesis, section 5.1).

Greedy: detections by falling score; each stays unless its IoU with one that stays exceeds the threshold. A detection
that was itself suppressed suppresses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from verifier.perception.detections.columns import faulty_boxes
from verifier.perception.matching.policy import iou_2d


@dataclass(frozen=True, eq=False)
class Image:
    """One image: its name, by which messages and stored detections know it, and its pixels (H, W, 3) uint8, RGB.

    Raises:
        ValueError: the pixels have another shape or type, or there are none.
    """

    name: str
    pixels: NDArray[np.uint8]

    def __post_init__(self) -> None:
        shape, kind = self.pixels.shape, self.pixels.dtype
        if self.pixels.ndim != 3 or shape[2] != 3 or kind != np.uint8 or not self.pixels.size:
            raise ValueError(f"image {self.name!r}: expected (H, W, 3) uint8, got {kind} of shape {shape}")

    @property
    def size(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return self.pixels.shape[0], self.pixels.shape[1]


@dataclass(frozen=True, eq=False)
class Detections:
    """What a detector reports in one image; n rows in any order.

    Attributes:
        box_2d: (n, 4) left, top, right, bottom in pixels of the image; pixel (i, j) covers [j, j + 1) x [i, i + 1).
            A rectangle may reach beyond the image.
        score: (n,) finite, greater is surer; a probability, a margin, or any other scale.
        label: (n,) index into the classes of the detector.

    Raises:
        ValueError: lengths differ, a box or score is not finite, a box has a negative size, a label is negative.
    """

    box_2d: NDArray[np.float64]
    score: NDArray[np.float64]
    label: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name, kind in (("box_2d", np.float64), ("score", np.float64), ("label", np.int64)):
            array = np.array(getattr(self, name), dtype=kind)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        n = len(self.score)
        if self.box_2d.shape != (n, 4) or self.score.shape != (n,) or self.label.shape != (n,):
            shapes = (self.box_2d.shape, self.score.shape, self.label.shape)
            raise ValueError(f"shapes {shapes}; expected (n, 4), (n,), (n,)")
        if np.isnan(self.box_2d).any() or faulty_boxes(self.box_2d).any():
            raise ValueError("a box is not finite or has a negative size")
        if not np.isfinite(self.score).all():
            raise ValueError("a score is not finite")
        if (self.label < 0).any():
            raise ValueError("a label is negative")

    def __len__(self) -> int:
        return len(self.score)

    def take(self, rows: NDArray[Any]) -> Detections:
        """The detections at `rows`: indices in the order wanted, or a mask (n,)."""
        return Detections(self.box_2d[rows], self.score[rows], self.label[rows])


NOTHING = Detections(np.zeros((0, 4)), np.zeros(0), np.zeros(0, np.int64))
"""No detections."""


class Detector(Protocol):
    """What every adapter is; anything with these three can be tested."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the labels, in order."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """JSON values that name everything the output depends on beside the image: weights, settings, versions."""

    def __call__(self, images: Sequence[Image]) -> list[Detections]:
        """The detections of each image, in the order of the images.

        Raises:
            InputError: the model's output is not what was declared, or is not finite.
        """


def suppressed(found: Detections, iou: float, per_class: bool = True) -> Detections:
    """The detections that stay, by falling score; equal scores by label and box, so that input order is no matter.

    Args:
        found: of one image.
        iou: in [0, 1]; an overlap of exactly so much does not suppress.
        per_class: whether only detections of the same label suppress each other.

    Raises:
        ValueError: the threshold lies outside [0, 1].
    """
    if not 0 <= iou <= 1:
        raise ValueError(f"expected an IoU in [0, 1], got {iou}")
    found = found.take(surest_first(found))
    waiting = np.arange(len(found))
    stays = []
    while len(waiting):
        first, waiting = waiting[0], waiting[1:]
        stays.append(first)
        box = np.broadcast_to(found.box_2d[first], (len(waiting), 4))
        covered = iou_2d(found.box_2d[waiting], box) > iou
        if per_class:
            covered &= found.label[waiting] == found.label[first]
        waiting = waiting[~covered]
    return found.take(np.array(stays, dtype=np.int64))


def surest_first(found: Detections) -> NDArray[np.int64]:
    """(n,) rows by falling score, then label, then box: the same order whatever the order of the input."""
    return np.lexsort([*found.box_2d.T[::-1], found.label, -found.score])
