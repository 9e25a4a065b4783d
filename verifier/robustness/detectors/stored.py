"""Detections that are on disk already, in any format that `perception.detections` reads, as a detector under test.

They are found by the name of the image, and the pixels are not looked at: the detections of a mutated data set are
another set of files, and another `StoredDetector`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.perception.detections.columns import DetectionSet
from verifier.robustness.detectors.protocol import Detections, Image


@dataclass(frozen=True, eq=False)
class StoredDetector:
    """The detections of a data set, by frame.

    Raises:
        UsageError: a detection has no rectangle in the image.
    """

    data: DetectionSet
    _rows: Mapping[str, Detections] = field(init=False, repr=False)
    by_name = True

    def __post_init__(self) -> None:
        found = self.data.detections
        box = found.box_2d if found.box_2d is not None else np.full((len(found), 4), np.nan)
        if np.isnan(box).any():
            row = int(np.isnan(box).any(axis=1).argmax())
            where = Place(self.data.files[int(found.file[row])], int(found.line[row]))
            raise UsageError(f"{where}: a detection without a rectangle in the image cannot stand for a detector's")
        order = np.argsort(found.frame, kind="stable")
        ends = np.searchsorted(found.frame[order], np.arange(self.data.frame_count), side="right")
        assert found.score is not None  # a DetectionSet without scores does not exist
        parts = np.split(order, ends[:-1]) if self.data.frame_count else []
        rows = {
            name: Detections(box[part], found.score[part], found.label[part].astype(np.int64))
            for name, part in zip(self.data.frame_name, parts, strict=True)
        }
        object.__setattr__(self, "_rows", MappingProxyType(rows))

    @property
    def classes(self) -> tuple[str, ...]:
        """Those of the data set."""
        return self.data.classes

    @property
    def identity(self) -> dict[str, Any]:
        """The content of the files and how they were read."""
        return {"detector": "stored", "origin": _plain(self.data.origin)}

    def __call__(self, images: Sequence[Image]) -> list[Detections]:
        """The detections of the frames of the same names.

        Raises:
            InputError: there is no such frame.
        """
        for image in images:
            if image.name not in self._rows:
                raise InputError(f"no frame {shown(image.name)} in the stored detections", Place(self.data.files[-1]))
        return [self._rows[image.name] for image in images]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
