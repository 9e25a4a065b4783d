"""The keys `contexts`, and `tracks` of a sequence, of a confusion document, from and to JSON: see
`verifier.perception.confusion.contexts` and `tracks`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.documents import json_values, read_document
from verifier.base.errors import UsageError, nearest_name, shown
from verifier.perception.confusion.bins import Fail, edge_json, escaped, is_number
from verifier.perception.confusion.context_selection import coarser_candidates
from verifier.perception.confusion.contexts import UNTRACKED, Contexts
from verifier.perception.confusion.counts import ContextCounts
from verifier.perception.confusion.document_types import ContextsRecord
from verifier.perception.confusion.matrices import LARGEST_COUNT
from verifier.perception.confusion.tally import Tally
from verifier.perception.confusion.tracks import SummedOver, Tracks, all_sums, fault_of_tracks


def context_head(by_context: ContextCounts) -> dict[str, object]:
    """What the document says of the context function."""
    own, how = by_context.contexts, (by_context.units, by_context.tests, by_context.tracks, by_context.replays)
    head = json_values(ContextsRecord("run", own.cap, "outcome", by_context.gaps, by_context.period_s, *how))
    return {**head, "kind": own.kind}  # which the matrices of a file count: "run" or "last"


def context_bin(context: ContextCounts, index: int, *, family: bool) -> dict[str, object]:
    """The matrices of one bin by context; those without items are left out."""
    names = (*context.contexts.names, UNTRACKED)
    matrices = context.counts[:, index] if family else context.counts[0, index][None]
    by_context = matrices.transpose(1, 0, 2, 3) if family else matrices[0]
    return {name: own.tolist() for name, own in zip(names, by_context, strict=True) if own.any()}


def context_rows(counts: ContextCounts, sequence: int) -> list[list[int]]:
    """The rows [bin, context, predicted, true, count, ...] of one sequence."""
    assert counts.tally is not None
    own = counts.tally.of_sequence(sequence)
    at_bin, context = np.divmod(own.index[:, 1], counts.per_bin)
    rows: list[list[int]] = np.column_stack([at_bin, context, own.index[:, 2:], own.counts]).tolist()
    return rows


@dataclass(frozen=True)
class ContextsReader:
    """Reads the counts by context of a document.

    Attributes:
        contexts: the context function.
        head: the key `contexts` of the document.
        fail: makes the complaint from a JSON pointer and a text.
    """

    contexts: Contexts
    head: ContextsRecord
    fail: Fail

    @classmethod
    def of(cls, content: Any, file: str, fail: Fail) -> ContextsReader:
        """Read the key `contexts` of the document, which is in a file of this name."""
        keys = [field.name for field in fields(ContextsRecord)]
        for key in (key for key in content if key not in keys) if isinstance(content, Mapping) else ():
            nearest = nearest_name(key, keys)
            hint = f"did you mean '{nearest}'?" if nearest else f"known: {', '.join(keys)}"
            raise fail("/contexts/" + escaped(key), f"unknown key {shown(key)}", hint)
        head = read_document(ContextsRecord, content, file, "/contexts")
        try:
            contexts = Contexts(head.kind, head.cap)
        except UsageError as error:
            raise fail("/contexts/cap", str(error)) from None
        known = set(map(str, coarser_candidates(contexts)))
        tested = [(test.label, test.contexts) for test in head.tests]
        for number, (label, coarser) in enumerate(tested):
            path = f"/contexts/tests/{number}"
            if coarser not in known:
                raise fail(path, f"expected contexts no finer than {contexts}, got {shown(coarser)}")
            if (label, coarser) in tested[:number]:
                raise fail(path, f"{label} with {coarser} has a test already")
        for number, replay in enumerate(head.replays):
            try:
                contexts.coarsening(Contexts.parsed(replay.contexts))
            except UsageError as error:
                raise fail(f"/contexts/replays/{number}/contexts", str(error)) from None
        return cls(contexts, head, fail)

    @property
    def names(self) -> tuple[str, ...]:
        """Of all contexts, untracked items last."""
        return (*self.contexts.names, UNTRACKED)

    def bin(self, path: str, matrices: Any) -> dict[int, Any]:
        """The matrices of one bin by number of the context, as they are written."""
        if not isinstance(matrices, Mapping):
            raise self.fail(path, f"expected an object from contexts to matrices, got {shown(matrices)}")
        numbers = {name: number for number, name in enumerate(self.names)}
        for name in matrices:
            if name not in numbers:
                nearest = nearest_name(name, numbers)
                hint = (
                    f"did you mean '{nearest}'?" if nearest else f"{self.contexts} has {', '.join(self.names[:4])}.."
                )
                raise self.fail(f"{path}/{escaped(name)}", f"unknown context {shown(name)}", hint)
        return {numbers[name]: matrix for name, matrix in matrices.items()}

    def check_sums(self, by_context: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Refuse matrices by context that do not add up to those of their bin."""
        differing = np.argwhere(by_context.sum(axis=2) != counts)
        if len(differing):
            member, at_bin, predicted, true = differing[0].tolist()
            raise self.fail(
                f"/bins/{at_bin}/contexts",
                f"the matrices add up to {by_context[member, at_bin, :, predicted, true].sum()} at predicted "
                f"{predicted}, true {true}, and /bins/{at_bin}/counts has {counts[member, at_bin, predicted, true]}",
            )

    def counts(self, table: NDArray[np.int64], tally: Tally | None) -> ContextCounts:
        """All of it; where sequences are given, `tally` must add up to the table."""
        if tally is not None:
            _, bins, per_bin, labels, _ = table.shape
            differing = np.argwhere(tally.dense(bins * per_bin, labels).reshape(table.shape) != table)
            if len(differing):
                _, at_bin, context, predicted, true = differing[0].tolist()
                raise self.fail(
                    "/sequences",
                    f"the counts of the sequences do not add up to /bins/{at_bin}/contexts/{self.names[context]} at "
                    f"predicted {predicted}, true {true}",
                )
        head = self.head
        how = head.tests, head.units, head.tracks, head.replays
        return ContextCounts(self.contexts, head.gaps, head.period_s, table, tally, *how)


def tracks_json(tracks: Tracks, sequence: int, shape: tuple[int, ...]) -> dict[str, Any]:
    """What the document says of the tracks of one sequence."""
    rows: dict[str, list[Any]] = {"columns": [], "shares": []}
    for summed_over, table in tracks.tables():
        for name, index, numbers in (
            ("columns", table.columns, table.track_counts[:, None]),
            ("shares", table.index, table.shares),
        ):
            low, high = np.searchsorted(index[:, 0], [sequence, sequence + 1])
            for (_, at_bin, *labels), own in zip(index[low:high].tolist(), numbers[low:high].tolist(), strict=True):
                rows[name].append([*_at(at_bin, summed_over, shape), *labels, *map(edge_json, own)])
    return rows


def _at(at_bin: int, summed_over: SummedOver, shape: tuple[int, ...]) -> list[int | None]:
    places = [int(at) for at in np.unravel_index(at_bin, shape)]
    return [None if over else place for over, place in zip(summed_over, places, strict=True)]


@dataclass(frozen=True)
class TracksReader:
    """Reads the tracks of all sequences of a document.

    Attributes:
        empty: which of them is the empty one.
        members: how many score thresholds.
        fail: makes the complaint from a JSON pointer and a text.
    """

    shape: tuple[int, ...]
    labels: int
    empty: int
    members: int
    fail: Fail

    def read(self, entries: Sequence[Any], counts: Tally) -> Tracks:
        """The tracks, given the value of `tracks` of each sequence and the counts of the sequences."""
        columns: list[list[float]] = []
        shares: list[list[float]] = []
        for number, entry in enumerate(entries):
            path = f"/sequences/{number}/tracks"
            if not isinstance(entry, Mapping) or set(entry) != {"columns", "shares"}:
                raise self.fail(path, f"expected an object with 'columns' and 'shares', got {shown(entry)}")
            for name, rows, labels, numbers in (("columns", columns, 1, 1), ("shares", shares, 2, self.members)):
                if not isinstance(entry[name], list):
                    raise self.fail(f"{path}/{name}", f"expected a list of rows, got {shown(entry[name])}")
                for place, row in enumerate(entry[name]):
                    rows.append([number, *self._row(f"{path}/{name}/{place}", row, labels, numbers)])
        tables = self._tables(columns, shares)
        whole = tables.pop((False,) * len(self.shape))
        tracks = replace(whole, sums=tables)
        fault = fault_of_tracks(tracks, counts, self.shape, self.empty)
        if fault is not None:
            sequence, summed_over, (at_bin, predicted, true), text = fault
            where = f"at {_at(at_bin, summed_over, self.shape)}, ".replace("None", "null")
            cell = f"true {true}" if predicted < 0 else f"predicted {predicted}, true {true}"
            raise self.fail(f"/sequences/{sequence}/tracks", f"{where}{cell}: {text}")
        return tracks

    def _row(self, path: str, row: Any, labels: int, numbers: int) -> list[float]:
        """A row as numbers, -1 for an axis that is summed over."""
        axes = len(self.shape)
        if not isinstance(row, list) or len(row) != axes + labels + numbers:
            what = (
                "[bin of each axis, true, tracks]"
                if labels == 1
                else "[bin of each axis, predicted, true, share, ...]"
            )
            raise self.fail(path, f"expected {what} with {axes + labels + numbers} entries, got {shown(row)}")
        limits = [*self.shape, *[self.labels] * labels]
        for place, (value, limit) in enumerate(zip(row, limits, strict=False)):
            if not (value is None and place < axes) and (type(value) is not int or not 0 <= value < limit):
                also = ", or null" if place < axes else ""
                raise self.fail(
                    f"{path}/{place}", f"expected an integer from 0 to {limit - 1}{also}, got {shown(value)}"
                )
        if row[axes + labels - 1] == self.empty:
            raise self.fail(
                f"{path}/{axes + labels - 1}", "there is no object in column 'empty', so it has no tracks"
            )
        for place, value in enumerate(row[axes + labels :], axes + labels):
            if labels == 1 and (type(value) is not int or not 1 <= value <= LARGEST_COUNT):
                raise self.fail(f"{path}/{place}", f"expected a number of tracks from 1, got {shown(value)}")
            if not is_number(value) or not 0 <= value <= LARGEST_COUNT:
                raise self.fail(f"{path}/{place}", f"expected a sum of shares from 0, got {shown(value)}")
        return [-1 if value is None else value for value in row]

    def _tables(self, columns: list[list[float]], shares: list[list[float]]) -> dict[SummedOver, Tracks]:
        axes = len(self.shape)
        held = np.array(columns, dtype=np.float64).reshape(len(columns), axes + 3)
        told = np.array(shares, dtype=np.float64).reshape(len(shares), axes + 3 + self.members)
        tables = {}
        for summed_over in all_sums(axes):
            column, number = self._chosen(held, summed_over, 1, "columns")
            cell, share = self._chosen(told, summed_over, 2, "shares")
            tables[summed_over] = Tracks(cell, share, column, number[:, 0].astype(np.int64))
        return tables

    def _chosen(
        self, rows: NDArray[np.float64], summed_over: SummedOver, labels: int, name: str
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The rows of one table in order: index and numbers."""
        axes = len(self.shape)
        mine = rows[((rows[:, 1 : axes + 1] < 0) == np.array(summed_over)).all(axis=1)]
        places = np.maximum(mine[:, 1 : axes + 1], 0).astype(np.int64)
        at_bin = np.ravel_multi_index(tuple(places.T), self.shape)
        index = np.column_stack([mine[:, 0], at_bin, mine[:, axes + 1 : axes + 1 + labels]]).astype(np.int64)
        order = np.lexsort(index.T[::-1])
        index = index[order]
        twice = (index[1:] == index[:-1]).all(axis=1)
        if twice.any():
            raise self.fail(
                f"/sequences/{index[int(twice.argmax()), 0]}/tracks/{name}", "a cell or column occurs twice"
            )
        return index, mine[order, axes + 1 + labels :]
