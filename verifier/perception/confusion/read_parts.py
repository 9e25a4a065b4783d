"""Data of any format, read in this process and counted in parts: of whole sequences, or of some images where these
are in no order.

A part is sent to whoever counts it, so workers need no file but depth maps. For the plan of a count the frames are
the rows of a table (`FilesInOrder`), sequence after sequence.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from verifier.base.arrays import Ints
from verifier.base.errors import Place
from verifier.perception.confusion.choices import counting_rule, default_policy, matching_policy, placed, read
from verifier.perception.confusion.context_counts import Memory
from verifier.perception.confusion.drives import DriveTable
from verifier.perception.confusion.folders import IMAGES, How, check_alike, copied, counted_part, drives_of_parts
from verifier.perception.confusion.streaming import ADDED, PartCount
from verifier.perception.detections.columns import NO_SEQUENCE, Boxes, DetectionSet
from verifier.perception.detections.parquetfiles import FilesInOrder, TablePart, Tables, digest_of
from verifier.perception.settings import CountSettings

Block: TypeAlias = "tuple[int, DetectionSet] | str"
OF_FIRST = (*ADDED, "projected", "distances")
"""Of the origin of data what is told by the first part alone, so that the sum of all has it once."""
MOST_PARTS = 1000
"""Of sequences; where there are more, several make a part."""


@dataclass(frozen=True)
class Frames(Tables):
    """The frames of data as one table.

    Attributes:
        ends: where its parts end.
        sources: what is recorded of the files.
    """

    ends: tuple[int, ...] = ()
    sources: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of_data(cls, data: DetectionSet, name: str) -> Frames:
        """The frames in parts; at least one."""
        frames = data.frame_count
        if data.sequences in ((), (NO_SEQUENCE,)) and "track" not in data.annotations.attributes:
            ends = [*range(IMAGES, frames, IMAGES), frames]
        else:
            done = np.cumsum(np.bincount(data.frame_sequence, minlength=len(data.sequences)))
            least, ends = -(-frames // MOST_PARTS), list[int]()
            for end in np.unique(done).tolist():
                ends += [end] if end == frames or end - (ends[-1] if ends else 0) >= max(least, 1) else []
        sources = tuple(data.origin["sources"])
        return cls((FilesInOrder(name, (name,), (0, frames)),), (), tuple(ends) or (0,), sources)

    @property
    def digest(self) -> str:
        """The SHA-256 of what is recorded of the files, which have theirs in it."""
        return hashlib.sha256(json.dumps(self.sources, sort_keys=True).encode()).hexdigest()

    def records(self, digest: Callable[[str], str] = digest_of) -> list[dict[str, object]]:
        """What is recorded of the files."""
        return [dict(source) for source in self.sources]

    def paths_of(self, parts: Sequence[TablePart], whole: bool) -> Iterator[str]:
        """None: all files are read."""
        return iter(())

    def parts(self, least: int) -> list[TablePart]:
        """One for each sequence, or for some images."""
        return [TablePart((rows,)) for rows in pairwise((0, *self.ends))]


@dataclass(frozen=True)
class ReadCount:
    """How data that are read are counted: a pure function of a part.

    Attributes:
        how: rule and matching policy.
        data: what is counted; None for whoever is sent parts of it.
    """

    settings: CountSettings
    memory: Memory | None
    drives: DriveTable | None
    tables: Frames
    how: How
    data: DetectionSet | None

    @classmethod
    def of(cls, settings: CountSettings, memory: Memory | None) -> ReadCount:
        """Read all; VerifierError."""
        table = drives_of_parts(settings)
        with copied(settings) as copies:
            if settings.depth_folder is None:
                data, measure = placed(copies.settings)
            else:  # which is for workers to read
                data, measure = read(copies.settings), settings.distance or "given"
            data = data.change(files=tuple(map(copies.told, data.files)))
        how = counting_rule(settings, data.classes, measure), matching_policy(settings, default_policy(data))
        return cls(settings, memory, table, Frames.of_data(data, str(settings.annotations)), how, data)

    def shared(self, mine: Sequence[tuple[int, TablePart]]) -> tuple[ReadCount, list[Block]]:
        """The work without the data, and these parts of the data."""
        assert self.data is not None
        parts = _parts(self.data, self.tables.ends)
        return replace(self, data=None), [(number, parts(number)) for number, _ in mine]

    def __call__(self, block: Block) -> PartCount:
        """Count a part; errors as counting at once."""
        data = block[1]
        assert isinstance(data, DetectionSet)
        if self.settings.depth_folder is not None:
            data, measure = placed(self.settings, data, part=True)
            check_alike(data, measure, self.how, self.settings, Place(self.tables.files[0].name))
        count = counted_part(data, *self.how, self.settings, self.memory)
        return replace(count, digests={self.tables.files[0].name: self.tables.digest})

    def how_of(self, partition: tuple[int, TablePart]) -> How:
        """What every part is counted by."""
        return self.how


def _parts(data: DetectionSet, ends: Sequence[int]) -> Callable[[int], DetectionSet]:
    """What gives the part of a number; what was left out of all is told by the first."""
    order = np.argsort(data.frame_sequence, kind="stable")
    part_of = np.empty(len(order), dtype=np.int64)
    part_of[order] = np.searchsorted(ends, np.arange(len(order)), side="right")
    done = np.cumsum(np.bincount(data.frame_sequence, minlength=len(data.sequences)))
    codes = [0, *np.searchsorted(done, ends, side="right").tolist()]
    sides = [data.annotations, data.detections, *([] if data.ignored is None else [data.ignored])]
    rows_of = [_rows_of_parts(part_of[boxes.frame], len(ends)) for boxes in sides]
    new = np.empty(len(order), dtype=np.int64)
    frames_of = np.split(order, list(ends)[:-1])
    origin = {key: value for key, value in data.origin.items() if key not in OF_FIRST}
    told = data.origin["annotations"]
    others = len(data.annotations) - len(rows_of[0][0])
    origin_of_first = {**data.origin, "annotations": {**told, "read": told["read"] - others}}

    def part(number: int) -> DetectionSet:
        frames = np.sort(frames_of[number])
        new[frames] = np.arange(len(frames))
        taken = [boxes.take(rows[number]) for boxes, rows in zip(sides, rows_of, strict=True)]
        used = np.unique(np.concatenate([boxes.file for boxes in taken]))
        own = [_renumbered(boxes, new, used) for boxes in taken]
        first, end = codes[number], codes[number + 1]
        if first == end:  # images of no sequence
            first, end = 0, len(data.sequences)
        return DetectionSet(
            data.classes,
            data.sequences[first:end],
            data.frame_sequence[frames] - np.int32(first),
            tuple(data.frame_name[frame] for frame in frames.tolist()),
            own[0],
            own[1],
            own[2] if len(own) > 2 else None,
            tuple(data.files[file] for file in used.tolist()),
            origin | {"annotations": {"read": len(own[0])}} if number else origin_of_first,
        )

    return part


def _rows_of_parts(part: Ints, count: int) -> list[Ints]:
    """The rows of each part, of rows (n,) whose part is given."""
    order = np.argsort(part, kind="stable")
    return np.split(order, np.searchsorted(part[order], np.arange(1, count)))


def _renumbered(boxes: Boxes, frame: Ints, files: Ints) -> Boxes:
    file = np.searchsorted(files, boxes.file).astype(np.int32)
    return replace(boxes, frame=frame[boxes.frame], file=file)
