"""The key `tracks` of a sequence in a confusion document, from and to JSON (see `perception.confusion.tracks`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import shown
from verifier.perception.confusion.document_variables import Fail, edge_json, is_number
from verifier.perception.confusion.matrices import LARGEST_COUNT
from verifier.perception.confusion.tally import Tally
from verifier.perception.confusion.tracks import SummedOver, Tracks, all_sums, fault_of_tracks


def tracks_json(tracks: Tracks, sequence: int, shape: tuple[int, ...]) -> dict[str, Any]:
    """What the document says of the tracks of one sequence."""
    found: dict[str, list[Any]] = {"columns": [], "shares": []}
    for summed_over, table in tracks.tables():
        for name, index, numbers in (
            ("columns", table.columns, table.track_counts[:, None]),
            ("shares", table.index, table.shares),
        ):
            low, high = np.searchsorted(index[:, 0], [sequence, sequence + 1])
            for (_, at_bin, *labels), own in zip(index[low:high].tolist(), numbers[low:high].tolist(), strict=True):
                found[name].append([*_at(at_bin, summed_over, shape), *labels, *map(edge_json, own)])
    return found


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

    def read(self, found: Sequence[Any], counts: Tally) -> Tracks:
        """The tracks, given the value of `tracks` of each sequence and the counts of the sequences."""
        columns: list[list[float]] = []
        shares: list[list[float]] = []
        for number, each in enumerate(found):
            path = f"/sequences/{number}/tracks"
            if not isinstance(each, Mapping) or set(each) != {"columns", "shares"}:
                raise self.fail(path, f"expected an object with 'columns' and 'shares', got {shown(each)}")
            for name, rows, labels, numbers in (("columns", columns, 1, 1), ("shares", shares, 2, self.members)):
                if not isinstance(each[name], list):
                    raise self.fail(f"{path}/{name}", f"expected a list of rows, got {shown(each[name])}")
                for place, row in enumerate(each[name]):
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
