"""Boxes that move along with their images: what every format of annotations has in common."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, shown
from verifier.perception.detections.columns import faulty_boxes
from verifier.perception.settings import IMAGE_SUFFIXES

MOVED_ALONG = "boxes in the image move along; boxes in space and all other fields are as they were"
"""What whoever uses moved annotations must know."""
NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?\s*", re.ASCII)
"""A coordinate as text; Python itself would take 1_0 for 10."""


@dataclass(frozen=True, eq=False)
class Moved:
    """The boxes of one image after a mutation.

    Attributes:
        before: height and width of the image.
        size: height and width of the mutated image.
        kept: (m,) which of the image's boxes are left, increasing.
        boxes: (m, 4) where these are now.
    """

    name: str
    before: tuple[int, int]
    size: tuple[int, int]
    kept: NDArray[np.int64]
    boxes: NDArray[np.float64]


AnnotationKind: TypeAlias = Literal["table", "coco", "kitti_object", "kitti_tracking"]


class Annotations(Protocol):
    """Annotations of many images."""

    @property
    def kind(self) -> AnnotationKind:
        """The name of the format."""

    @property
    def record(self) -> Mapping[str, Any]:
        """Of what was read: role, name, number of files, SHA-256."""

    @property
    def note(self) -> str:
        """What moves along and what does not."""

    @property
    def frames(self) -> Collection[str]:
        """The names of the images that it has."""

    def knows(self, name: str) -> bool:
        """Whether the image called `name` is one of them."""

    def boxes_of(self, name: str, size: tuple[int, int]) -> NDArray[np.float64]:
        """(n, 4) the boxes in the image called `name` of this height and width.

        Raises:
            InputError: the annotations do not know this image, or say that it has another size.
        """

    def strangers(self, names: frozenset[str]) -> int:
        """How many frames with annotations are none of these images."""

    def files(self, moved: Sequence[Moved]) -> Iterator[tuple[str, str]]:
        """The files for the images of one mutation that were made: path below its folder, and text."""


def box_of(cells: Sequence[Any], place: Place) -> list[float]:
    """A box from the texts or numbers left, top, right, bottom.

    Raises:
        InputError: it is none.
    """
    readable = all(NUMBER.fullmatch(cell) if isinstance(cell, str) else True for cell in cells)
    try:
        box = [float(cell) if readable else np.nan for cell in cells]
    except (TypeError, ValueError, OverflowError):
        box = [np.nan] * 4
    if np.isnan(box).any() or faulty_boxes(np.array([box])).any():
        raise InputError(f"expected a box x1 <= x2, y1 <= y2, got {', '.join(map(shown, cells))}", place)
    return box


def with_box(
    cells: Sequence[str], places: Sequence[int], before: NDArray[np.float64], now: Sequence[float]
) -> list[str]:
    """The cells of a row with a box that moved, or as they were if it did not."""
    made = list(cells)
    if list(now) != before.tolist():
        for place, value in zip(places, now, strict=True):
            made[place] = repr(float(value))
    return made


def frame_name(name: str) -> str:
    """The name of a frame without the suffix of an image."""
    suffix = Path(name).suffix
    return name.removesuffix(suffix) if suffix.lower() in IMAGE_SUFFIXES else name


def image_name(name: str) -> str:
    """The name of a frame where it names the file of its image: that of the mutated image."""
    frame = frame_name(name)
    return name if frame == name else f"{frame}.png"
