"""Counts by context: each cell of the matrices divided by what the detector may remember of the object.

Summed over the contexts they are the matrices. A bin and a context are numbered together, context fastest, with the
items without a track after all contexts; so a tally by context is a `Tally` whose bins are finer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints
from verifier.base.errors import InputError, LimitError, Place, UsageError
from verifier.perception.confusion.context_selection import Part, coarser_candidates
from verifier.perception.confusion.contexts import HISTORY, Contexts, OfTracks, ResidualTest
from verifier.perception.confusion.counting import Observed
from verifier.perception.confusion.counts import LARGEST_TABLE, ConfusionCounts, ContextCounts
from verifier.perception.confusion.dependence import residual_test
from verifier.perception.confusion.labellings import Scene, proposition_sets, spread_in_place, surest_leftovers
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.tally import Items, Tally, counted, distinct_rows
from verifier.perception.confusion.tracks import frame_numbers, track_numbers
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.settings import Gaps, Units


@dataclass(frozen=True)
class Memory:
    """What is counted of contexts.

    Attributes:
        contexts: the context function.
        gaps: what frames of a track without an annotation do, see `Contexts.along`.
        period_s: seconds from frame to frame; None where nobody says.
        seed: of the permutations that test the contexts; None for no tests.
        units: what stands for the sequences in the document, see `drives`; None for these themselves.
    """

    contexts: Contexts
    gaps: Gaps = "break"
    period_s: float | None = None
    seed: int | None = 0
    units: Units | None = None


def with_contexts(
    counts: ConfusionCounts, data: DetectionSet, observed: Observed | None, rule: CountingRule, memory: Memory
) -> ConfusionCounts:
    """The counts of the data, divided by context; tested where `counter_of` says so, and with its errors."""
    counter = counter_of(data, observed, rule, memory)
    return divided(counts, counter.tally(), rule, memory, tuple(counter.tests()), counter.tracks())


def divided(
    counts: ConfusionCounts,
    tally: Tally,
    rule: CountingRule,
    memory: Memory,
    tests: tuple[ResidualTest, ...] = (),
    tracks: Mapping[str, OfTracks] | None = None,
) -> ConfusionCounts:
    """The counts with what they are divided into; of the tally, bins and contexts are numbered together."""
    per, labels = memory.contexts.count + 1, len(rule.labels)
    table = tally.dense(rule.bins.count * per, labels)
    return replace(
        counts,
        by_context=ContextCounts(
            memory.contexts,
            memory.gaps,
            memory.period_s,
            table.reshape(rule.threshold_count, rule.bins.count, per, labels, labels),
            None if counts.sequences is None else tally,
            tests,
            memory.units,
            tracks,
        ),
    )


def counter_of(
    data: DetectionSet,
    observed: Observed | None,
    rule: CountingRule,
    memory: Memory,
    part: Part | None = None,
    made: type[Counter] | None = None,
) -> Counter:
    """What counts the data by context, made as told; `part` says what went before, where they are not whole.

    An object's context comes from its own track, whatever bins it crosses; that of a place without objects from the
    frames in which it was free; that of a proposition-labelled item from the same set of tracks standing together.
    Where false positives are dropped, column "empty" has no memory, and its items are untracked. Of class-labelled
    matrices with one threshold the contexts, and coarser ones, are tested.

    Raises:
        UsageError: there are no tracks, or the labelling or matching has no single objects.
        InputError: a track has two objects of one class in one frame.
        LimitError: the table would be too large.
    """
    if rule.labelling == "group":
        raise UsageError("--memory: a group of objects has no identity from frame to frame; count by class")
    if observed is None:
        raise UsageError("--memory: under this matching each threshold has matches of its own; use one threshold")
    if "track" not in data.annotations.attributes:
        raise UsageError(
            "--memory: the annotations have no tracks, so nobody knows which object is the same in the next frame; "
            "formats with tracks are kitti_tracking, mot, nuscenes, and tables with the column 'track'"
        )
    per, labels = memory.contexts.count + 1, len(rule.labels)
    entries = rule.threshold_count * rule.bins.count * per * labels**2
    if entries > LARGEST_TABLE:
        raise LimitError(
            f"{rule.threshold_count} thresholds x {rule.bins.count} bins x {per} contexts x {labels}^2 labels are "
            f"{entries} counts; at most {LARGEST_TABLE} are kept",
            hint="fewer thresholds or bins, or a shorter --memory",
        )
    return (made or Counter)(data, observed.scene, rule, memory, part)


@dataclass(frozen=True, eq=False)
class Counter:
    """What the items of one data set, or of a part of one, are made from."""

    data: DetectionSet
    scene: Scene
    rule: CountingRule
    memory: Memory
    part: Part | None = None

    def tally(self) -> Tally:
        """All items, bins and contexts numbered together."""
        return counted(self.items(), self.rule.threshold_count)

    @cached_property
    def frame_number(self) -> Ints:
        """(f,) of each frame within its sequence."""
        return frame_numbers(self.data.frame_name, self.data.frame_sequence)

    @cached_property
    def identity(self) -> Ints:
        """(n,) number of each annotation's track and class; -1 where it has no track or its class no column."""
        objects = self.scene.objects
        track = track_numbers(self.data.annotations, self.data.frame_sequence)
        identity = np.where((track >= 0) & (objects.label >= 0), track * len(self.rule.classes) + objects.label, -1)
        self._check_single(np.flatnonzero(identity >= 0), identity[identity >= 0])
        return identity

    @property
    def false_positives(self) -> bool:
        """Whether the column "empty" reports anything."""
        return (self.rule.unmatched, self.rule.duplicates) != ("drop", "drop")

    def items(self) -> list[Items]:
        """All items, their bins and contexts numbered together."""
        items = []
        for threshold in range(self.rule.threshold_count):
            if self.rule.labelling == "class":
                items += self._objects(threshold)
            else:
                items += self._sets(threshold)
        return items

    def _objects(self, threshold: int) -> list[Items]:
        objects, empty = self.scene.objects, len(self.rule.classes)
        reports = (objects.level > threshold) & (objects.reported >= 0)
        predicted = np.where(reports, objects.reported, empty)
        tracked = np.flatnonzero(self.identity >= 0)
        right = predicted == objects.label
        told = self.data.annotations.attributes["track"]

        def who(row: int) -> list[Any]:
            return [threshold, told[tracked[row]], int(objects.label[tracked[row]])]

        context = self._contexts(tracked, self.identity[tracked], objects.frame, right, self.memory.gaps, who)
        kept = objects.bin >= 0
        own = objects.bin[kept], context[kept], predicted[kept], objects.label[kept]
        items = self._items(objects.frame[kept], *own, threshold, self.identity[kept])
        standing = objects.place >= 0
        taken = self._key(objects.frame[standing], objects.place[standing])
        surest, alarms = surest_leftovers(self.scene, np.unique(taken))
        reported = np.where(alarms.level > threshold, alarms.reported, empty)
        return [items, *self._free(taken, surest, reported, empty, threshold)]

    def tracks(self) -> dict[str, OfTracks] | None:
        """How the tracks of each class are missed."""
        if self.rule.thresholds is not None or self.rule.labelling != "class":
            return None
        objects = self.scene.objects
        right = (objects.reported == objects.label).astype(np.int64)
        tracks = {}
        for of_class, name in enumerate(self.rule.classes):
            rows = np.flatnonzero((self.identity >= 0) & (objects.label == of_class))
            if len(rows):
                number = self.frame_number[objects.frame[rows]]
                tracks[name] = OfTracks.of(self.identity[rows], number, right[rows], self.memory.gaps)
        return tracks

    def tests(self) -> Iterator[ResidualTest]:
        """The residual test of each class and context function up to the one that is counted."""
        if self.rule.thresholds is not None or self.rule.labelling != "class" or self.memory.seed is None:
            return
        objects = self.scene.objects
        tracked = np.flatnonzero(self.identity >= 0)
        right = (objects.reported == objects.label)[tracked].astype(np.int64)
        series, number = self.identity[tracked], self.frame_number[objects.frame[tracked]]
        label, at = objects.label[tracked], objects.bin[tracked]
        history = _histories(series, number, right)
        for contexts in coarser_candidates(self.memory.contexts):
            context = contexts.along(series, number, right, self.memory.gaps)
            for of_class, name in enumerate(self.rule.classes):
                rows = np.flatnonzero((label == of_class) & (at >= 0))
                if len(rows):
                    stratum = distinct_rows(np.column_stack([at[rows], context[rows]]))[1]
                    test = residual_test(stratum, right[rows], history[rows], self.memory.seed)
                    yield ResidualTest(name, str(contexts), *test)

    def _sets(self, threshold: int) -> list[Items]:
        sets = proposition_sets(self.scene, self.rule)
        true, predicted = sets.true, sets.reported(threshold)
        together, whole = _sets_of_tracks(sets.object_at, self.identity[sets.object_rows], len(true))
        nothing = len(self.rule.labels) - 1
        present = true != nothing
        rows = np.flatnonzero(present & whole)
        told, by_set = self.data.annotations.attributes["track"], np.argsort(sets.object_at, kind="stable")

        def who(row: int) -> list[Any]:
            low, high = np.searchsorted(sets.object_at, [rows[row], rows[row] + 1], sorter=by_set)
            members = sets.object_rows[by_set[low:high]]
            own = [[told[at], int(self.scene.objects.label[at])] for at in members.tolist()]
            return [threshold, sorted(own)]

        context = self._contexts(rows, together[rows], sets.frame, predicted == true, "break", who)
        own = sets.place[present], context[present], predicted[present], true[present]
        items = self._items(sets.frame[present], *own, threshold, np.full(int(present.sum()), -1))
        alarms = ~present
        taken = self._key(sets.frame[present], sets.place[present])
        surest = self._key(sets.frame[alarms], sets.place[alarms])
        return [items, *self._free(taken, surest, predicted[alarms], nothing, threshold)]

    def _free(self, taken: Ints, alarms: Ints, reported: Ints, nothing: int, threshold: int) -> list[Items]:
        """Column "empty": one item per frame and place that is not taken; `reported` is what alarms there say."""
        bins = self.rule.bins.count
        places = self.scene.layout.places
        frames = np.arange(len(self.scene.sequence))
        if len(frames) * bins > LARGEST_TABLE:
            raise LimitError(
                f"{len(frames)} frames x {bins} places of column 'empty' are too many to follow",
                hint="fewer bins, or count without --memory",
            )
        exists = np.zeros((len(frames), bins), dtype=bool)
        exists[:, places] = self.scene.frames_at[self.scene.sequence][:, places] > 0
        exists.reshape(-1)[taken] = False
        predicted = np.full(exists.shape, nothing, dtype=np.int64)
        predicted.reshape(-1)[alarms] = reported
        frame, place = np.nonzero(exists)
        said = predicted[frame, place]
        rows = np.arange(len(frame)) if self.false_positives else np.zeros(0, dtype=np.int64)
        series = self.scene.sequence[frame] * bins + place
        context = self._contexts(
            rows, series[rows], frame, said == nothing, "break", lambda row: [threshold, int(place[rows[row]])]
        )
        empty = np.full(len(frame), nothing)
        items = self._items(frame, place, context, said, empty, threshold, self.free_series(series))
        return [spread_in_place(items, self.scene.layout, self._per)]

    @property
    def _per(self) -> int:
        return self.memory.contexts.count + 1

    def _key(self, frame: Ints, place: Ints) -> Ints:
        return frame * self.rule.bins.count + place

    def _contexts(
        self,
        rows: Ints,
        series: Ints,
        frame: Ints,
        right: NDArray[np.bool_],
        gaps: Gaps,
        who: Callable[[int], list[Any]],
    ) -> Ints:
        """(n,) the context of each item; those that are in no series are untracked. `who` names that of a row."""
        contexts, outcome = self.memory.contexts, right[rows].astype(np.int64)
        context_of = np.full(len(frame), contexts.count, dtype=np.int64)
        if self.part is None:
            context_of[rows] = contexts.along(series, self.frame_number[frame[rows]], outcome, gaps)
        elif len(self.data.frame_name):
            context_of[rows] = self.part.along(contexts, series, frame[rows], outcome, gaps, who)
        return context_of

    def owner(self, frame: Ints, series: Ints) -> Ints:
        """(n,) which sequence each item is of; `series` are those of their tracks, -1 for none."""
        return self.scene.sequence[frame]

    def free_series(self, series: Ints) -> Ints:
        """The numbers of series of free places, as `owner` takes them."""
        return series

    def _items(
        self, frame: Ints, bin_of: Ints, context: Ints, predicted: Ints, true: Ints, threshold: int, series: Ints
    ) -> Items:
        finer = bin_of * self._per + context
        index = np.column_stack([self.owner(frame, series), finer, predicted, true]).astype(np.int64)
        low = np.full(len(index), threshold)
        return Items(index, low, low + 1, np.ones(len(index), dtype=np.int64))

    def _check_single(self, rows: Ints, series: Ints) -> None:
        """Refuse two objects of one track and class in one frame."""
        boxes = self.data.annotations
        order = np.lexsort((boxes.frame[rows], series))
        frame, own = boxes.frame[rows][order], series[order]
        twice = np.flatnonzero((frame[1:] == frame[:-1]) & (own[1:] == own[:-1]))
        if not len(twice):
            return
        one, other = (int(rows[order[at]]) for at in (twice[0], twice[0] + 1))
        label = self.data.classes[boxes.label[one]]
        track = str(boxes.attributes["track"][one]).removesuffix(".0")
        raise InputError(
            f"track {track} has two objects of class '{label}' in frame "
            f"'{self.data.frame_name[boxes.frame[one]]}', here and on line {boxes.line[other]}",
            Place(self.data.files[boxes.file[one]], int(boxes.line[one])),
            "a track is one object: give them different tracks, or count without --memory",
        )


def _histories(series: Ints, number: Ints, right: Ints) -> Floats:
    """(n,) the share of wrong outcomes among the last `HISTORY` of the series before each; 0 without any."""
    order = np.lexsort((number, series))
    own = series[order]
    first = np.searchsorted(own, own)
    before = np.concatenate([[0], np.cumsum(1 - right[order])])
    at = np.arange(len(order))
    begin = np.maximum(at - HISTORY, first)
    share = (before[at] - before[begin]) / np.maximum(at - begin, 1)
    histories = np.empty(len(order))
    histories[order] = share
    return histories


def _sets_of_tracks(item: Ints, track: Ints, items: int) -> tuple[Ints, NDArray[np.bool_]]:
    """For each item the number of its set of tracks, and whether all of its objects have one.

    Args:
        item: (n,) which item each object belongs to.
        track: (n,) negative: none.
    """
    whole = np.ones(items, dtype=bool)
    whole[item[track < 0]] = False
    pairs = np.unique(np.column_stack([item, track])[whole[item]], axis=0)
    member = np.arange(len(pairs)) - np.searchsorted(pairs[:, 0], pairs[:, 0])
    number = np.zeros(items, dtype=np.int64)
    for place in np.unique(member):
        own, added = pairs[member == place].T
        number[own] = distinct_rows(np.column_stack([number[own], added]))[1] + number.max() + 1
    return number, whole
