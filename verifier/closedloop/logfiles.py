"""Logs as files: a folder of tables, each CSV (comma, semicolon or tab) or Parquet.

| table | columns |
|---|---|
| `logs` | `log` name; `positive` 1 or 0 |
| `images` | `log`; `image` whole number, once per log; `time_s`; `x_m`, `y_m` of the vehicle; maybe `heading_rad` |
| `people` | `log`, `image`; `x_m`, `y_m` of the person; if known the rectangle `x1`, `y1`, `x2`, `y2` in pixels |
| `detections/NAME` | `log`, `image`; `strength`; `x_m`, `y_m`; if known `x1`, `y1`, `x2`, `y2`. NAME is the source |

So `images.csv` or `images.parquet`, and one file per detector and condition under `detections`; a detector that
reports nothing has a table without rows. Rows stand in any order; images are put in the order of their times. Logs
come in the order of the table `logs`. `x_m`, `y_m` are in the ground plane of the log (see
`verifier.closedloop.logs`), `heading_rad` counter-clockwise from x. The cells `x_m` and `y_m` of a person or
detection are both empty where it could not be localized, the four cells of a rectangle where there is none.
`remarks.txt`, if there, holds what a reader of results must know, one sentence per line.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.base.files import read_text, write_bytes, write_text
from verifier.base.numbers import significant
from verifier.base.tables import SUFFIXES, Kind, Table, read_table, table_bytes
from verifier.closedloop.logs import FARTHEST_M, Detections, LogLimits, Logs, check_plausible
from verifier.perception.detections import sources
from verifier.perception.detections.columns import faulty_boxes

KEY: dict[str, Kind] = {"log": "text", "image": "whole"}
POSITION: dict[str, Kind] = {"x_m": "number", "y_m": "number"}
POINT: dict[str, Kind] = {"x_m": "measured", "y_m": "measured"}
BOX: dict[str, Kind] = {"x1": "measured", "y1": "measured", "x2": "measured", "y2": "measured"}
TIME: dict[str, Kind] = {"time_s": "number"}
POSITIVE: dict[str, Kind] = {"log": "text", "positive": "flag"}
HEADING: dict[str, Kind] = {"heading_rad": "number"}
STRENGTH: dict[str, Kind] = {"strength": "number"}
REMARKS = "remarks.txt"


def read_logs(folder: str | Path, limits: LogLimits | None = None) -> Logs:
    """The logs in a folder.

    Raises:
        InputError: a table is missing or cannot be read, names a log or image that is not there or one image twice;
            two images of a log have the same time; a strength is not a finite number or too large; a log without
            images, with a gap or with a jump.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError("no such folder", Place(str(folder)))
    logs = read_table(_one(root, "logs"), POSITIVE)
    names = [logs.texts["log"][code] for code in logs.columns["log"].tolist()]
    _refuse(logs, _again(logs.columns["log"]), lambda row: f"log {shown(names[row])} occurs twice")
    if not names:
        raise InputError("no log in it", Place(logs.file))
    index = _Index.of(read_table(_one(root, "images"), KEY | TIME | POSITION, HEADING), names, logs)
    images, order = index.images, index.order
    people = read_table(_one(root, "people"), KEY | POINT, BOX)
    logs_read = Logs(
        tuple(names),
        logs.columns["positive"],
        index.log[order],
        images.columns["time_s"][order],
        _coordinates(images)[order],
        images.columns["heading_rad"][order] if "heading_rad" in images.columns else None,
        index.image_of(people),
        _points(people),
        {path.stem: _detections(path, index) for path in _sources(root)},
        _boxes(people),
        _remarks(root),
    )
    check_plausible(logs_read, limits, images.file)
    return logs_read


def write_logs(logs: Logs, folder: str | Path, kind: Literal["csv", "parquet"] = "csv") -> None:
    """Write a folder that `read_logs` reads back to the same logs; all or nothing.

    Images are numbered from 0 within their log.

    Raises:
        UsageError: the folder exists and is not empty, or a name cannot be that of a file or stand in a line.
        InputError: it cannot be written.
    """
    target = Path(os.path.realpath(folder))
    _check_writable(logs, target, folder)
    suffix = f".{kind}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        outer = Path(tempfile.mkdtemp(prefix=f".{target.name[:40]}.", dir=target.parent))
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", Place(str(folder))) from None
    beside = outer / "logs"  # with the permissions of any new folder, which the outer one has not
    try:
        (beside / "detections").mkdir(parents=True)
        for name, columns in _tables(logs).items():
            write_bytes(beside / f"{name}{suffix}", table_bytes(columns, suffix))
        if logs.remarks:
            write_text(beside / REMARKS, "".join(f"{remark}\n" for remark in logs.remarks))
        beside.replace(target)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", Place(str(folder))) from None
    finally:
        shutil.rmtree(outer, ignore_errors=True)


@dataclass(frozen=True, eq=False)
class _Index:
    """The images of the table in the order of logs and times, and how a log and a number lead to them.

    `log` (n,) the log of each row, `order` (n,) the rows in their final order, `keys` (n,) increasing, one per image,
    and `image` (n,) the final index that belongs to each key.
    """

    images: Table
    names: Sequence[str]
    log: Ints
    order: Ints
    numbers: Ints
    keys: Ints
    image: Ints

    @classmethod
    def of(cls, images: Table, names: Sequence[str], logs: Table) -> _Index:
        log = _log_of(images, names)
        time = images.columns["time_s"]
        order = np.lexsort((time, log))
        numbers, code = np.unique(images.columns["image"], return_inverse=True)
        key = log * max(len(numbers), 1) + code.reshape(-1)

        def what(row: int) -> str:
            return f"image {int(images.columns['image'][row])} of log {shown(names[int(log[row])])}"

        _refuse(images, _again(key), lambda row: f"{what(row)} occurs twice")
        same = np.zeros(len(order), dtype=np.bool_)
        same[order[1:]] = (np.diff(log[order]) == 0) & (np.diff(time[order]) == 0)
        at = "has the same time as another image"
        _refuse(images, same, lambda row: f"{what(row)} {at}, {significant(float(time[row]), 9)} s")
        without = np.flatnonzero(np.bincount(log, minlength=len(names)) == 0)
        if len(without):
            raise InputError(f"log {shown(names[int(without[0])])} has no image", logs.place(int(without[0])))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        by_key = np.argsort(key)
        return cls(images, names, log, order, numbers, key[by_key], rank[by_key])

    def image_of(self, table: Table) -> Ints:
        """(n,) the image of each row."""
        log = _log_of(table, self.names)
        number = table.columns["image"]
        code = np.minimum(np.searchsorted(self.numbers, number), len(self.numbers) - 1)
        key = log * len(self.numbers) + code
        at = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        missing = (self.numbers[code] != number) | (self.keys[at] != key)
        _refuse(table, missing, lambda row: f"log {shown(self.names[int(log[row])])} has no image {int(number[row])}")
        image: Ints = self.image[at]
        return image


def _log_of(table: Table, names: Sequence[str]) -> Ints:
    """(n,) index into the names."""
    index = {name: number for number, name in enumerate(names)}
    known = np.array([index.get(name, -1) for name in table.texts["log"]], dtype=np.int64)
    log: Ints = known[table.columns["log"]] if len(known) else np.zeros(0, np.int64)
    text = table.texts["log"]
    _refuse(table, log < 0, lambda row: f"no log {shown(text[int(table.columns['log'][row])])} in the table 'logs'")
    return log


def _refuse(table: Table, bad: Mask, message: Any) -> None:
    if bad.any():
        row = int(bad.argmax())
        raise InputError(message(row), table.place(row))


def _again(key: NDArray[Any]) -> Mask:
    """(n,) rows whose key stands in an earlier row."""
    again = np.ones(len(key), dtype=np.bool_)
    again[np.unique(key, return_index=True)[1]] = False
    return again


def _coordinates(table: Table) -> Floats:
    point = table.stack("x_m", "y_m")
    far: Mask = np.abs(point) > FARTHEST_M
    _refuse(
        table,
        np.asarray(far.any(axis=1)),
        lambda row: f"a coordinate of {float(point[row][far[row]][0]):g} m; at most {FARTHEST_M:g} m are accepted",
    )
    return point


def _points(table: Table) -> Floats:
    point = _coordinates(table)
    empty = np.isnan(point)
    _refuse(table, empty[:, 0] != empty[:, 1], lambda row: "one of x_m and y_m is empty: give both or none")
    return point


def _boxes(table: Table) -> Floats | None:
    given = [name for name in BOX if name in table.columns]
    if not given:
        return None
    if len(given) < len(BOX):
        missing = next(name for name in BOX if name not in given)
        raise InputError(f"no column '{missing}', but '{given[0]}'", Place(table.file, 1))
    box = table.stack(*BOX)
    _refuse(table, faulty_boxes(box), lambda row: "the rectangle x1, y1, x2, y2 is partly empty or of negative size")
    return box


def _detections(path: Path, index: _Index) -> Detections:
    table = read_table(path, KEY | STRENGTH | POINT, BOX)
    strength = table.columns["strength"]
    large = np.abs(strength) > sources.SCORE
    _refuse(table, large, lambda row: f"a strength of {strength[row]:g}, too large to be a score")
    return Detections(index.image_of(table), strength, _points(table), _boxes(table))


def _one(root: Path, name: str) -> Path:
    paths = [root / f"{name}{suffix}" for suffix in SUFFIXES if (root / f"{name}{suffix}").is_file()]
    if not paths:
        raise InputError(f"no table '{name}.csv' or '{name}.parquet' in it", Place(str(root)))
    if len(paths) > 1:
        raise InputError(f"the table '{name}' is there twice, also as {paths[0].name}", Place(str(paths[1])))
    return paths[0]


def _sources(root: Path) -> list[Path]:
    """The files of detections in the order of their names."""
    folder = root / "detections"
    every = folder.iterdir() if folder.is_dir() else iter(())
    paths = sorted(path for path in every if not path.name.startswith("."))
    seen: dict[str, Path] = {}
    for path in paths:
        if path.suffix not in SUFFIXES:
            raise InputError("expected a table of detections, .csv or .parquet", Place(str(path)))
        if path.stem in seen:
            raise InputError(
                f"source {shown(path.stem)} is there twice, also as {seen[path.stem].name}", Place(str(path))
            )
        seen[path.stem] = path
    return paths


def _remarks(root: Path) -> tuple[str, ...]:
    path = root / REMARKS
    if not path.exists():
        return ()
    return tuple(line.strip() for line in read_text(path)[0].splitlines() if line.strip())


def _tables(logs: Logs) -> dict[str, dict[str, NDArray[Any]]]:
    number = np.arange(logs.image_count) - logs.first_image[logs.image_log]
    names = np.array(logs.names, dtype=object)

    def key(image: Ints) -> dict[str, NDArray[Any]]:
        return {"log": names[logs.image_log[image]], "image": number[image]}

    def columns(point_m: Floats, box_2d: Floats | None) -> dict[str, NDArray[Any]]:
        box = {} if box_2d is None else {name: box_2d[:, at] for at, name in enumerate(BOX)}
        return {"x_m": point_m[:, 0], "y_m": point_m[:, 1], **box}

    heading = {} if logs.heading_rad is None else {"heading_rad": logs.heading_rad}
    images = key(np.arange(logs.image_count)) | {"time_s": logs.time_s} | columns(logs.position_m, None) | heading
    tables = {
        "logs": {"log": names, "positive": logs.positive},
        "images": images,
        "people": key(logs.person_image) | columns(logs.person_m, logs.person_box_2d),
    }
    for name, detection in logs.detections.items():
        rows = key(detection.image) | {"strength": detection.strength} | columns(detection.point_m, detection.box_2d)
        tables[f"detections/{name}"] = rows
    return tables


def _check_writable(logs: Logs, target: Path, folder: str | Path) -> None:
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise UsageError(f"{folder} exists already; name a new folder")
    for name in logs.detections:
        if not name.isprintable() or not name or name.startswith(".") or set(name) & set("/\\") or len(name) > 200:
            raise UsageError(f"source {shown(name)}: the name cannot be that of a file")
    for text in (*logs.names, *logs.remarks):
        if not text.isprintable() or not text.strip():
            raise UsageError(f"{shown(text)} cannot stand in one line of a file")
