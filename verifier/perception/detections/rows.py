"""What a reader hands over before it is checked: frames, rows of objects, and where they come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import LimitError, Place

MOST_FRAMES = 20_000_000
"""Frames of one data set; more is refused, so that one wild frame number does not fill the memory."""
UNKNOWN_FRAME = -1
"""The frame of an object that stands in no known frame."""


@dataclass(frozen=True)
class Frames:
    """The frames of a data set: their unique names, the sequence of each (f,), and the names of the sequences."""

    names: tuple[str, ...]
    sequence: NDArray[np.int32]
    sequences: tuple[str, ...]


def numbered_frames(
    sequences: tuple[str, ...], counts: NDArray[np.int64], first: int, place: Place
) -> tuple[Frames, NDArray[np.int64]]:
    """Frames "SEQUENCE/NNNNNN", `counts` of them per sequence counted from `first`; the index of each first frame.

    Raises:
        LimitError: more than `MOST_FRAMES`.
    """
    total = int(np.minimum(counts, MOST_FRAMES + 1).sum())
    if total > MOST_FRAMES:
        raise LimitError(f"{int(counts.sum())} frames, at most {MOST_FRAMES} are read", place)
    starts = np.cumsum(counts) - counts
    sequence = np.repeat(np.arange(len(sequences), dtype=np.int32), counts)
    numbers = np.arange(len(sequence)) - starts[sequence] + first
    pairs = zip(sequence.tolist(), numbers.tolist(), strict=True)
    return Frames(tuple(f"{sequences[s]}/{n:06d}" for s, n in pairs), sequence, sequences), starts


@dataclass(frozen=True, eq=False)
class Rows:
    """Objects as a reader found them.

    `frame` (n,) is an index into the frames, `UNKNOWN_FRAME` where there is no such frame, and `frame_text` says
    what stood there; `label` (n,) is an index into `names`, the class names of the data set. `pointer` names a row by
    its JSON pointer where lines say nothing. Values may still be faulty. `no_box_2d` and `no_box_3d` (n,) mark the
    objects that rightly have no such box (a row of NaN); None: none do. `region` (n,) marks annotations that the data
    set itself says not to judge; `any_class` (n,) those among them that name no class.
    """

    frame: NDArray[np.int64]
    label: NDArray[np.int64]
    names: tuple[str, ...]
    line: NDArray[np.int64]
    file: NDArray[np.int32]
    frame_text: Callable[[int], str]
    score: NDArray[np.float64] | None = None
    box_2d: NDArray[np.float64] | None = None
    box_3d: NDArray[np.float64] | None = None
    distance_m: NDArray[np.float64] | None = None
    attributes: Mapping[str, NDArray[Any]] | None = None
    no_box_2d: NDArray[np.bool_] | None = None
    no_box_3d: NDArray[np.bool_] | None = None
    region: NDArray[np.bool_] | None = None
    any_class: NDArray[np.bool_] | None = None
    pointer: Callable[[int], str] | None = None

    def __len__(self) -> int:
        return len(self.frame)

    def take(self, rows: NDArray[Any]) -> Rows:
        """The rows of a mask or of indices, in that order."""
        chosen = np.arange(len(self))[rows]
        columns: dict[str, Any] = {
            name: value[rows] for name, value in vars(self).items() if isinstance(value, np.ndarray)
        }
        columns["attributes"] = {name: value[rows] for name, value in (self.attributes or {}).items()}
        columns["frame_text"] = lambda row: self.frame_text(int(chosen[row]))
        if (pointer := self.pointer) is not None:
            columns["pointer"] = lambda row: pointer(int(chosen[row]))
        return replace(self, **columns)

    def place(self, row: int, files: Sequence[str]) -> Place:
        """Where a row stands, for a message."""
        file = files[int(self.file[row])]
        if self.pointer is not None:
            return Place(file, path=self.pointer(row))
        return Place(file, int(self.line[row]))


@dataclass(frozen=True)
class Material:
    """What a reader hands over: rows, where they come from, and what it knows about the format.

    `vocabulary` are the classes the format knows (empty: those of the annotations). `answered` (f,) marks the
    frames for which the detector's output, `answers`, has an entry; None if the format does not say. `notes` goes
    into `origin` as it is.
    """

    format: str
    frames: Frames
    annotations: Rows
    detections: Rows
    files: tuple[str, ...]
    sources: Sequence[Mapping[str, Any]]
    vocabulary: tuple[str, ...] = ()
    answered: NDArray[np.bool_] | None = None
    answers: str | None = None
    notes: Mapping[str, Any] | None = None
