"""Tables of feature vectors from files: NumPy arrays (.npy) or CSV, one row per image."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from verifier.base.arrays import Floats
from verifier.base.errors import InputError, Place, shown
from verifier.base.files import decoded, read_bytes


def read_features(path: str | Path) -> Floats:
    """(images, features) of a `.npy` or `.csv` file; a first line of CSV that holds no number is a header.

    Raises:
        InputError: unreadable, another kind of file, no table of finite numbers.
    """
    place = Place(str(path))
    ending = Path(path).suffix.lower()
    if ending not in (".npy", ".csv"):
        raise InputError("expected features in a file ending in .npy or .csv", place)
    raw = read_bytes(path)
    found = _from_numpy(raw, place) if ending == ".npy" else _from_csv(decoded(raw, place), str(path))
    if found.ndim != 2 or not found.size:
        raise InputError(f"expected a table (images, features), got the shape {found.shape}", place)
    if not np.all(np.isfinite(found)):
        row = int(np.flatnonzero(~np.isfinite(found).all(axis=1))[0])
        raise InputError(f"row {row + 1} holds a number that is not finite", place)
    return found


def _from_numpy(raw: bytes, place: Place) -> Floats:
    try:
        found = np.load(io.BytesIO(raw), allow_pickle=False)
    except (ValueError, EOFError, OSError, SyntaxError, TypeError) as error:
        raise InputError(f"not a NumPy array: {shown(str(error))}", place) from None
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "iuf":
        raise InputError("expected an array of numbers", place)
    return found.astype(np.float64)


def _from_csv(text: str, file: str) -> Floats:
    rows: list[list[float]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        cells = line.split(",")
        try:
            row = [float(cell) for cell in cells]
        except ValueError:
            if not rows and number == 1:
                continue
            raise InputError("expected numbers, separated by commas", Place(file, number, text=line)) from None
        if rows and len(row) != len(rows[0]):
            raise InputError(f"found {len(row)} numbers, expected {len(rows[0])}", Place(file, number))
        rows.append(row)
    return np.array(rows, dtype=np.float64).reshape(len(rows), -1 if rows else 0)
