"""Reading a per-object record back; what its columns hold is said in `verifier.perception.confusion.record`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, UsageError, shown
from verifier.base.tables import SUFFIXES, Kind, read_table
from verifier.perception.confusion.record import BOX_2D, TRUE_2D

NEEDED: Mapping[str, Kind] = {
    "kind": "text",
    "sequence": "note",
    "frame": "note",
    "bin": "whole",
    "place": "whole",
    "distance_m": "any",
    "true": "note",
    "predicted": "note",
    "score": "any",
    "group": "whole",
    "file": "note",
    "line": "whole",
    "report_file": "note",
    "report_line": "whole",
}
"""The columns that are read, and what they hold. Others are left alone."""
KINDS = ("frame", "object", "unmatched", "duplicate", "ignored")


@dataclass(frozen=True, eq=False)
class Record:
    """The rows of a record.

    Attributes:
        columns: name -> (n,) values, for the names of `NEEDED` and `drive`, which records of earlier versions have
            not (then the sequence): objects (texts), int64, or float64 with NaN for an unknown number. With boxes
            also `TRUE_2D` and `BOX_2D` of `verifier.perception.confusion.record`, NaN where the record has none.
        file: its name, as given.
    """

    columns: Mapping[str, NDArray[Any]]
    file: str

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def __len__(self) -> int:
        return len(self.columns["kind"])


def read_record(path: str | Path, *, tracks: bool = False, boxes: bool = False) -> Record:
    """Read a record that `verify confusion --record` wrote; its column `track` and its rectangles where asked for.

    Raises:
        UsageError: the ending is neither .csv nor .parquet.
        InputError: unreadable, a column missing, or a value that cannot be: with the line where there is one.
    """
    ending = Path(path).suffix.lower()
    if ending not in SUFFIXES:
        raise UsageError(f"a record ends in {' or '.join(SUFFIXES)}, got {shown(str(path))}")
    needed: Mapping[str, Kind] = {**NEEDED, **({"track": "note"} if tracks else {})}
    sides: Mapping[str, Kind] = dict.fromkeys((*TRUE_2D, *BOX_2D) if boxes else (), "any")
    table = read_table(path, needed, {"drive": "note", **sides}, others=True)
    columns = {
        name: np.array(table.texts[name], dtype=object)[values] if name in table.texts else values
        for name, values in table.columns.items()
    }
    unknown = np.flatnonzero(~np.isin(columns["kind"], KINDS))
    if len(unknown):
        row = int(unknown[0])
        message = f"kind: expected one of {', '.join(KINDS)}, got {shown(columns['kind'][row])}"
        raise InputError(message, table.place(row))
    columns.setdefault("drive", columns["sequence"])
    for name in sides:
        columns.setdefault(name, np.full(len(columns["kind"]), np.nan))
    return Record(columns, str(path))
