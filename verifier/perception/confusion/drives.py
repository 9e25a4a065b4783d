"""The units that data are drawn in: drives, by a table of the sequences or frames of each, or tracks, or frames.

A drive is the coarsest unit that is independent of the others. What a data set calls a sequence may be a part of one,
and images without sequences may come from a few drives.

    sequence,drive          frame,drive
    0000,monday             000008,monday
    0001,monday             000019,tuesday

A CSV file (separated by comma, semicolon or tab) has a column `drive` and a column `sequence` or `frame`, or both: a
frame then is named SEQUENCE/FRAME.

Where tracks or frames are the independent units that bounds rest on, the sequences of the document are these, each
named after the sequence that it is of. The unit of an object's item is its track (in its class); of one without a
track, all such objects of its sequence; of column "empty", the place, whose items follow each other as those of a
track do. Of frames it is the frame, whoever stands there.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Ints
from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.base.files import csv_rows, read_text
from verifier.perception.confusion.context_counts import Counter, Memory, counter_of, divided
from verifier.perception.confusion.counting import Observed
from verifier.perception.confusion.counts import ConfusionCounts, Sequences
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.sanity import with_sanity
from verifier.perception.confusion.tally import Tally, counted
from verifier.perception.confusion.tracks import track_numbers
from verifier.perception.detections.columns import DetectionSet

GroupedBy: TypeAlias = Literal["sequence", "frame"]
FORM = "write CSV with the columns 'sequence,drive' or 'frame,drive'"


@dataclass(frozen=True)
class DriveTable:
    """Drives by the name of a sequence or frame.

    Attributes:
        of: what the table names.
        drives: name -> drive.
        places: name -> where the table says so.
    """

    of: GroupedBy
    drives: Mapping[str, str]
    places: Mapping[str, Place]
    file: str
    sha256: str

    def record(self) -> dict[str, str]:
        """What a document says of the table."""
        return {"name": Path(self.file).name, "of": self.of, "sha256": self.sha256}

    def drives_of(self, names: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
        """The drives in the order in which they first occur, and the drive of each of `names`.

        Raises:
            InputError: a name without a row, or a row with a name that is not among them.
        """
        known = set(names)
        for name, place in self.places.items():
            if name not in known:
                raise InputError(f"there is no {self.of} {shown(name)} in the data", place, "remove this row")
        missing = [name for name in names if name not in self.drives]
        if missing:
            more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
            message = f"no row for the {self.of} {shown(missing[0])}{more}"
            raise InputError(message, Place(self.file), f"every {self.of} of the data needs its drive")
        numbers: dict[str, int] = {}
        own = [numbers.setdefault(self.drives[name], len(numbers)) for name in names]
        return tuple(numbers), np.array(own, dtype=np.int64)


def read_drives(path: str | Path) -> DriveTable:
    """Read a table of drives.

    Raises:
        InputError: with file and line: not such a table, a name twice, an empty name.
    """
    text, raw = read_text(path)
    rows = csv_rows(text, str(path), ",;\t")
    _, head = next(rows, (1, []))
    by = [name for name in ("sequence", "frame") if name in head]
    if not by or sorted(head) != sorted([*by, "drive"]):
        got = shown(",".join(head))
        raise InputError(f"expected the columns of a table of drives, got {got}", Place(str(path), 1), FORM)
    of: GroupedBy = "frame" if "frame" in by else "sequence"
    drives: dict[str, str] = {}
    places: dict[str, Place] = {}
    for line, row in rows:
        place = Place(str(path), line)
        cells = dict(zip(head, row, strict=True))
        if not all(cells[name] for name in by):
            raise InputError(f"the name of a {by[-1]} is empty", place)
        name, drive = "/".join(cells[name] for name in by), cells["drive"]
        if not drive.strip() or not drive.isprintable():
            raise InputError(f"expected the name of a drive, got {shown(drive)}", place)
        if name in drives:
            told = f"the {of} {shown(name)} has a row already, in line {places[name].line}"
            raise InputError(told, place, "remove one of them")
        drives[name], places[name] = drive.strip(), place
    if not drives:
        raise InputError("no row in it", Place(str(path)), FORM)
    return DriveTable(of, drives, places, str(path), hashlib.sha256(raw).hexdigest())


def frames_in_drives(data: DetectionSet, table: DriveTable) -> DetectionSet:
    """The data with the drives of a table by frame as its sequences; a track lies within a sequence of the source.

    Raises:
        InputError: a frame without a row, or a row without a frame.
    """
    drives, number = table.drives_of(data.frame_name)
    annotations = data.annotations
    if "track" in annotations.attributes:
        # Numbers of tracks may begin again in each sequence of the source.
        tracks = track_numbers(annotations, data.frame_sequence)
        annotations = replace(annotations, attributes={**annotations.attributes, "track": tracks})
    origin = {**data.origin, "drives": table.record()}
    return data.change(
        sequences=drives, frame_sequence=number.astype(np.int32), annotations=annotations, origin=origin
    )


def sequences_in_drives(counts: ConfusionCounts, table: DriveTable) -> ConfusionCounts:
    """The counts with the drives of a table by sequence as their sequences.

    Raises:
        InputError: the counts have no sequences; a sequence without a row, or a row without a sequence.
    """
    place = Place(table.file)
    if table.of != "sequence":
        raise InputError("the frames are counted already: expected drives by sequence", place)
    if counts.sequences is None:
        raise InputError("the matrices have no counts by sequence, so they cannot be grouped", place)
    drives, number = table.drives_of(counts.sequences.names)
    sequences = counts.sequences
    frames = np.zeros(len(drives), dtype=np.int64)
    np.add.at(frames, number, sequences.frames)
    tracks = None if sequences.tracks is None else sequences.tracks.renumbered(number)
    grouped = Sequences(drives, frames, sequences.tally.renumbered(number), tracks)
    source = counts.metadata.get("source")
    told = dict(source) if isinstance(source, Mapping) else {} if source is None else {"of": source}
    told["drives"] = table.record()
    by_context = counts.by_context
    if by_context is not None and by_context.tally is not None:
        by_context = replace(by_context, tally=by_context.tally.renumbered(number))
    metadata = {**counts.metadata, "source": told}
    return with_sanity(replace(counts, sequences=grouped, metadata=metadata, by_context=by_context))


@dataclass(frozen=True, eq=False)
class UnitCounter(Counter):
    """Counts as `Counter`, and owns items by unit: a unit is a sequence and a number within."""

    seen: list[Ints] = field(default_factory=list)

    def owner(self, frame: Ints, series: Ints) -> Ints:
        """(n,) the unit of each item, as `sequence * size + number`."""
        number = frame if self.memory.units == "frame" else series + 1
        unit: Ints = self.scene.sequence[frame] * self._size + number
        self.seen.append(np.unique(np.column_stack([unit, frame]), axis=0))
        return unit

    @property
    def _size(self) -> int:
        """More than any number of a unit."""
        places = len(self.data.sequences) * self.rule.bins.count
        return int(self.identity.max(initial=-1)) + places + len(self.scene.sequence) + 2

    def free_series(self, series: Ints) -> Ints:
        """The numbers of series of free places, apart from those of tracks."""
        return series + int(self.identity.max(initial=-1)) + 1

    def units(self) -> tuple[Tally, Sequences]:
        """The tally by context of all units, and what they are."""
        parts = self.items()
        pairs = np.unique(np.concatenate(self.seen), axis=0)
        keys, frames = np.unique(pairs[:, 0], return_counts=True)
        parts = [replace(part, index=_numbered(part.index, keys)) for part in parts]
        tally, sequence = counted(parts, self.rule.threshold_count), keys // self._size
        first = np.searchsorted(sequence, sequence)
        names = [
            f"{self.data.sequences[own]}#{at}" for own, at in zip(sequence, np.arange(len(keys)) - first, strict=True)
        ]
        return tally, Sequences(tuple(names), frames.astype(np.int64), tally.coarser_bins(self._per))


def with_units(
    counts: ConfusionCounts, data: DetectionSet, observed: Observed | None, rule: CountingRule, memory: Memory
) -> ConfusionCounts:
    """The counts of the data with their units for sequences, divided by context.

    Raises:
        UsageError: sets of objects are counted, whose tracks are in several of them; errors as `with_contexts`.
    """
    if memory.units == "track" and rule.labelling != "class":
        raise UsageError("--units track: a set of objects is of several tracks; count by class, or --units frame")
    counter = counter_of(data, observed, rule, memory, made=UnitCounter)
    assert isinstance(counter, UnitCounter)
    tally, units = counter.units()
    return divided(replace(counts, sequences=units), tally, rule, memory, tuple(counter.tests()), counter.tracks())


def _numbered(index: Ints, keys: Ints) -> Ints:
    return np.column_stack([np.searchsorted(keys, index[:, 0]), index[:, 1:]])
