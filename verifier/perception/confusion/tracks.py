"""Counts by track: an object counts once in a column, however many frames it stayed there.

A *track* is one object through the frames of a sequence. In a column (bin and true label) of a sequence it counts 1,
divided among the predicted labels by the share of its frames in that column reported so. The number of tracks of
a column is the sum of its shares, as the number of items is the sum of its counts. An object without a track number
is a track of one frame. Only class-labelled matrices have tracks, and not their column "empty", where there is no
object.

Shares are not additive over bins: a track that crosses two bins is one track of both together. So the tables for the
sums over distance, over a further variable, or over several are counted, too, and kept beside the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Ints
from verifier.base.numbers import significant
from verifier.perception.confusion.tally import Items, Tally, counted, distinct_rows, summed, summed_rows

if TYPE_CHECKING:
    from verifier.perception.confusion.labellings import Scene
    from verifier.perception.confusion.rules import CountingRule
    from verifier.perception.detections.columns import Boxes

SummedOver: TypeAlias = tuple[bool, ...]
"""Of each axis of the bins (distance, then the variables) whether a table is summed over it."""
SHARES_AGREE = 1e-9
"""Shares may miss the number of tracks by this part of it: they are rounded to doubles, each and as sums."""


@dataclass(frozen=True, eq=False)
class Tracks:
    """Tracks by sequence, over a family of thresholds.

    Attributes:
        index: (n, 4) int64: sequence, bin, predicted label, true label; distinct rows in lexicographic order.
        shares: (n, thresholds) float64: shares of tracks, summed; not all of a row 0.
        columns: (m, 3) int64: sequence, bin, true label; distinct rows in lexicographic order.
        track_counts: (m,) int64, from 1: how many tracks have frames in each of these columns.
        sums: the same for sums over the bins; in the bins of a table the axes summed over are at 0.
    """

    index: Ints
    shares: NDArray[np.float64]
    columns: Ints
    track_counts: Ints
    sums: Mapping[SummedOver, Tracks] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.index.shape != (len(self.shares), 4) or self.columns.shape != (len(self.track_counts), 3):
            raise ValueError("the cells or columns of tracks differ in number from their shares or counts")

    def tables(self) -> Iterator[tuple[SummedOver, Tracks]]:
        """This table, which is summed over nothing, and the sums."""
        axes = len(next(iter(self.sums)))
        yield (False,) * axes, self
        yield from self.sums.items()

    def changed(self, change: Callable[[Tracks], Tracks]) -> Tracks:
        """Every table changed in the same way."""
        return replace(change(self), sums={summed_over: change(tracks) for summed_over, tracks in self.sums.items()})

    def member(self, at: int) -> Tracks:
        """The tracks at one threshold of the family."""

        def at_threshold(table: Tracks) -> Tracks:
            used = table.shares[:, at] > 0
            return replace(table, index=table.index[used], shares=table.shares[used, at : at + 1])

        return self.changed(at_threshold)

    def canonical(self) -> Tracks:
        """All bins as one; only where distance is the only axis."""
        return replace(self.sums[(True,)], sums={(True,): self.sums[(True,)]})

    def by_distance(self, chosen: Sequence[int | None], shape: tuple[int, ...], apart: Sequence[bool]) -> Tracks:
        """The tracks in distance bins, or in these by bins of further variables.

        Args:
            chosen: of each further variable its bin, or None for all of them together.
            apart: of each further variable whether its bins are kept apart.
        """
        fixed = [(axis, at) for axis, at in enumerate(chosen, 1) if at is not None]

        def in_chosen(bins: Ints) -> tuple[NDArray[np.bool_], Ints]:
            places = np.unravel_index(bins, shape)
            used = np.ones(len(bins), dtype=bool)
            for axis, at in fixed:
                used &= places[axis] == at
            bin_of = np.asarray(places[0], dtype=np.int64)
            for axis in (np.flatnonzero(apart) + 1).tolist():
                bin_of = bin_of * shape[axis] + places[axis]
            return used, bin_of

        def narrowed(over_distance: bool) -> Tracks:
            summed = (at is None and not kept for at, kept in zip(chosen, apart, strict=True))
            table = dict(self.tables())[(over_distance, *summed)]
            used, bins = in_chosen(table.index[:, 1])
            used_columns, column_bins = in_chosen(table.columns[:, 1])
            index, columns = table.index.copy(), table.columns.copy()
            index[:, 1], columns[:, 1] = bins, column_bins
            return Tracks(index[used], table.shares[used], columns[used_columns], table.track_counts[used_columns])

        return replace(narrowed(False), sums={(True,): narrowed(True)})

    def renumbered(self, sequence_of: Ints) -> Tracks:
        """Sequence s becomes `sequence_of[s]`; the tracks of sequences that become one are added."""

        def with_numbers(table: Tracks) -> Tracks:
            index, columns = table.index.copy(), table.columns.copy()
            index[:, 0], columns[:, 0] = sequence_of[index[:, 0]], sequence_of[columns[:, 0]]
            return _table(index, table.shares, columns, table.track_counts)

        return self.changed(with_numbers)


def joined_tracks(parts: Sequence[Tracks]) -> Tracks:
    """The tracks of all parts, whose sequences are different and numbered through; at least one part."""

    def joined(tables: Sequence[Tracks]) -> Tracks:
        return _table(
            np.concatenate([table.index for table in tables]),
            np.concatenate([table.shares for table in tables]),
            np.concatenate([table.columns for table in tables]),
            np.concatenate([table.track_counts for table in tables]),
        )

    sums = {summed_over: joined([part.sums[summed_over] for part in parts]) for summed_over in parts[0].sums}
    return replace(joined(parts), sums=sums)


def family_of_tracks(members: Sequence[Tracks]) -> Tracks:
    """A family whose thresholds are these, in order; each has one threshold and they hold the same objects."""

    def family(tables: Sequence[Tracks]) -> Tracks:
        index = np.concatenate([table.index for table in tables])
        shares = np.zeros((len(index), len(tables)))
        shares[np.arange(len(index)), np.repeat(np.arange(len(tables)), [len(table.index) for table in tables])] = (
            np.concatenate([table.shares[:, 0] for table in tables])
        )
        return _table(index, shares, tables[0].columns, tables[0].track_counts)

    sums = {summed_over: family([member.sums[summed_over] for member in members]) for summed_over in members[0].sums}
    return replace(family(members), sums=sums)


def _table(index: Ints, shares: NDArray[np.float64], columns: Ints, numbers: Ints) -> Tracks:
    """A table of rows in any order; equal ones are added."""
    return Tracks(*summed_rows(index, shares), *summed_rows(columns, numbers))


def all_sums(axes: int) -> Iterator[SummedOver]:
    """Every choice of axes of the bins to sum over; first of all none."""
    return product((False, True), repeat=axes)


def bins_summed(bins: Ints, summed_over: SummedOver, shape: tuple[int, ...]) -> Ints:
    """(n,) the bins with the axes that are summed over at 0."""
    places = np.array(np.unravel_index(bins, shape))
    places[np.array(summed_over)] = 0
    return np.asarray(np.ravel_multi_index(tuple(places), shape), dtype=np.int64)


def count_tracks(scene: Scene, rule: CountingRule, track: Ints) -> Tracks:
    """The tracks of a class-labelled scene.

    Args:
        scene: as counted.
        rule: class-labelled.
        track: (n,) number of each object's track as `track_numbers` gives it, below n; negative: none.
    """
    objects = scene.objects
    alone = len(track) + np.arange(len(track))
    used = objects.bin >= 0
    seen, own = objects.take(used), np.where(track >= 0, track, alone)[used]
    sequence = scene.sequence[seen.frame].astype(np.int64)
    reported = np.where(seen.reported >= 0, seen.reported, len(rule.classes))
    tables = {
        summed_over: _counted(
            np.column_stack([sequence, bins_summed(seen.bin, summed_over, rule.bins.shape), seen.label, own]),
            reported,
            seen.level,
            len(rule.classes),
            rule.threshold_count,
        )
        for summed_over in all_sums(len(rule.bins.shape))
    }
    whole = tables.pop((False,) * len(rule.bins.shape))
    return replace(whole, sums=tables)


def _counted(visit: Ints, reported: Ints, level: Ints, empty: int, thresholds: int) -> Tracks:
    """One table from objects, each of a visit (sequence, bin, true label, track), reported so below its level."""
    visits, visit_of = distinct_rows(visit)
    frames = np.bincount(visit_of, minlength=len(visits))
    none, top, one = np.zeros_like(level), np.full_like(level, thresholds), np.ones_like(level)
    parts = [
        Items(np.column_stack([visit_of, label, none, none]), low, high, one)
        for label, low, high in ((reported, none, level), (np.full_like(reported, empty), level, top))
    ]
    tally = counted(parts, thresholds)
    of_visit, label = tally.index[:, 0], tally.index[:, 1]
    sequence, at_bin, true, _ = visits[of_visit].T
    return _table(
        np.column_stack([sequence, at_bin, label, true]),
        tally.counts / frames[of_visit, None],
        visits[:, :3],
        np.ones(len(visits), dtype=np.int64),
    )


def fault_of_tracks(
    tracks: Tracks, counts: Tally, shape: tuple[int, ...], empty: int
) -> tuple[int, SummedOver, list[int], str] | None:
    """Where tracks do not fit the counts of the same sequences.

    Returns:
        sequence, table, (bin, predicted or -1, true label), and what is wrong there; None where all fits.
    """
    if set(tracks.sums) != {row for row in all_sums(len(shape)) if any(row)}:
        raise ValueError("tracks need a table for every sum over axes of the bins")
    objects = counts.index[:, 3] != empty
    for summed_over, table in tracks.tables():
        index = counts.index[objects]
        index[:, 1] = bins_summed(index[:, 1], summed_over, shape)
        fault = _fault_of_table(table, summed(index, counts.counts[objects]))
        if fault is not None:
            (sequence, at_bin, predicted, true), text = fault
            return sequence, summed_over, [at_bin, predicted, true], text
    return None


def _fault_of_table(table: Tracks, counts: Tally) -> tuple[list[int], str] | None:
    no_share = np.zeros((len(counts.index), counts.counts.shape[1]))
    cells, cell_of = distinct_rows(np.concatenate([table.index, counts.index]))
    shares, items = np.zeros((len(cells), no_share.shape[1])), np.zeros((len(cells), no_share.shape[1]))
    np.add.at(shares, cell_of, np.concatenate([table.shares, no_share]))
    items[cell_of[len(table.index) :]] = counts.counts
    wrong = ((shares > 0) != (items > 0)) | (shares > items * (1 + SHARES_AGREE))
    if wrong.any():
        row, member = (int(at) for at in np.argwhere(wrong)[0])
        return cells[
            row
        ].tolist(), f"{significant(shares[row, member], 12)} tracks are reported so, of {items[row, member]:g} items"
    columns, column_of = distinct_rows(np.concatenate([table.columns, cells[:, [0, 1, 3]]]))
    numbers = np.zeros(len(columns), dtype=np.int64)
    numbers[column_of[: len(table.columns)]] = table.track_counts
    total, held = np.zeros((len(columns), no_share.shape[1])), np.zeros((len(columns), no_share.shape[1]))
    np.add.at(total, column_of[len(table.columns) :], shares)
    np.add.at(held, column_of[len(table.columns) :], items)
    wrong = (np.abs(total - numbers[:, None]) > SHARES_AGREE * numbers[:, None]) | (numbers[:, None] > held)
    wrong |= (numbers == 0)[:, None]
    if wrong.any():
        row, member = (int(at) for at in np.argwhere(wrong)[0])
        sequence, at_bin, true = columns[row].tolist()
        told = f"shares add up to {significant(total[row, member], 12)}, of {numbers[row]} tracks "
        told += f"with {held[row, member]:g} items"
        return [sequence, at_bin, -1, true], told
    return None


def track_numbers(annotations: Boxes, frame_sequence: NDArray[np.int32]) -> Ints:
    """(n,) the number of each object's track, from 0, different in different sequences.

    It is -1 where the attribute `track` is no track: negative, NaN or an empty text.
    """
    track = np.asarray(annotations.attributes["track"])
    numeric = track.dtype.kind in "biuf"
    known = (
        track >= 0 if numeric else np.array([str(text).strip() not in ("", "nan", "None") for text in track], bool)
    )
    names, code = np.unique(track[known] if numeric else track[known].astype(str), return_inverse=True)
    numbers = np.full(len(track), -1, dtype=np.int64)
    sequence = frame_sequence[annotations.frame[known]].astype(np.int64)
    numbers[known] = np.unique(sequence * len(names) + code.reshape(-1), return_inverse=True)[1].reshape(-1)
    return numbers


def frame_numbers(names: Sequence[str], sequence: NDArray[np.int32]) -> Ints:
    """(f,) a number for each frame, from 0; it grows by 1 from each frame to the next of its sequence.

    Where the names of a sequence's frames differ in one number only, such as "0000/000012", and these lie on a grid,
    the number is the place on the grid: frames that are not listed leave gaps. Where they lie on none, such as
    time stamps, frames follow each other in their order, and in all other cases in the order of the list.
    """
    numbers = np.zeros(len(names), dtype=np.int64)
    order = np.argsort(sequence, kind="stable")
    ends = np.cumsum(np.unique(sequence, return_counts=True)[1])
    for low, high in pairwise([0, *ends.tolist()]):
        rows = order[low:high]
        numbers[rows] = _numbered([names[row] for row in rows.tolist()])
    return numbers


def _numbered(names: Sequence[str]) -> Ints:
    matches = [re.fullmatch(r"(.*?)(\d+)(\D*)", name, re.ASCII | re.DOTALL) for name in names]
    parts = [match.groups() for match in matches if match is not None]
    if len(parts) < len(names) or len({(before, after) for before, _, after in parts}) > 1:
        return np.arange(len(names))
    numbers = [int(number) for _, number, _ in parts]
    ordered = sorted(set(numbers))
    step = min((after - before for before, after in pairwise(ordered)), default=1)
    regular = all((number - ordered[0]) % step == 0 for number in ordered)
    if regular and (ordered[-1] - ordered[0]) // step < 2**62:
        return np.array([(number - ordered[0]) // step for number in numbers], dtype=np.int64)
    place: Mapping[int, int] = {number: at for at, number in enumerate(ordered)}
    return np.array([place[number] for number in numbers], dtype=np.int64)
