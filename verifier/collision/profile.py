"""An operational profile from a file: how often which distance and speed occur, as the weight of a score."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path, PurePath
from types import MappingProxyType

import numpy as np

from verifier.base.errors import InputError, Place
from verifier.collision.estimator import Grid
from verifier.collision.pair_tables import column_names, read_columns
from verifier.collision.score import Weight
from verifier.collision.stopping import SPEED_UNITS

SPEED_COLUMNS: Mapping[str, str] = MappingProxyType(
    {"speed_mps": "m/s", "speed_kmh": "km/h", "speed_mph": "mph", "speed_kn": "kn"}
)
"""Names of the column of speeds, and the unit that each says."""


def read_profile(path: str | Path, grid: Grid) -> Weight:
    """The weight of every point of a grid from a CSV or Parquet file.

    The file has the columns `distance_m`, one of `SPEED_COLUMNS`, and `weight`: hours, kilometres or counts.

    Raises:
        InputError: with file, line and column of what cannot be read.
        UsageError: as `Weight.profile`.
    """
    known = column_names(path, "an operational profile")
    named = [name for name in SPEED_COLUMNS if name in known]
    if len(named) != 1:
        message = f"expected one column of speeds, found {', '.join(named) or 'none'}"
        raise InputError(message, Place(str(path), 1), f"name it {', '.join(SPEED_COLUMNS)}: the name says the unit")
    columns = ("distance_m", named[0], "weight")
    table, raw = read_columns(path, {name: name for name in columns}, "an operational profile")
    values = [table.numbers(name) for name in columns]
    for name, column in zip(columns, values, strict=True):
        bad = np.isnan(column) | (column < 0)
        if bad.any():
            row = int(bad.argmax())
            found = "an empty cell" if np.isnan(column[row]) else f"{column[row]:g}"
            raise InputError(f"{name}: expected a number from 0, got {found}", table.place(row, name))
    distance, speed, weight = values
    rows = zip(distance.tolist(), (speed * float(SPEED_UNITS[SPEED_COLUMNS[named[0]]])).tolist(), weight.tolist(),
               strict=True)  # fmt: skip
    name = f"{PurePath(path).name} (sha256 {hashlib.sha256(raw).hexdigest()[:16]}...)"
    return Weight.profile(grid, list(rows), name)
