"""Counts by track or by frame instead of by drive: for bounds that take these as the independent units.

The sequences of the document are then the units, each named after the sequence that it is of. The unit of an object's
item is its track (in its class); of one without a track, all such objects of its sequence; of column "empty", the
place, whose items follow each other as those of a track do. Of frames it is the frame, whoever stands there.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from verifier.base.arrays import Ints
from verifier.base.errors import UsageError
from verifier.perception.confusion.context_counts import Counter, Memory, counter_of, divided
from verifier.perception.confusion.counting import Observed
from verifier.perception.confusion.counts import ConfusionCounts, Sequences
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.tally import Tally, counted
from verifier.perception.detections.columns import DetectionSet


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
