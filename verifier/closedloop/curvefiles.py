"""Files of trade-off curves, as `verify robroc` reads and `verify closed-loop --curves` writes them.

JSON, as the type `Curves` says:

    {"schema": "verifier.curves", "version": 1, "title": "...",
     "curves": [{"metric": "closed_loop", "detector": "ssd", "condition": "baseline", "severity": "",
                 "sensitivity": [0.0001, 0.01, 1], "safety": [0.2, 0.7, 0.9], "efficiency": [1, 0.9, 0.4]}]}

CSV: one line per point, with a header that names the columns `detector`, `condition`, `sensitivity`, `safety`,
`efficiency` and, where wanted, `metric` and `severity`. Points stand in any order. A column `remarks` holds what a
reader must know, in the first cells; the others are empty.

The condition "baseline" is the one that the others are compared with. The sensitivity can be any number whose
order is that of the detector's settings; two curves are compared at equal ones. Safety and efficiency lie in [0, 1].
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args

import numpy as np

from verifier.base.documents import ALWAYS, InputFile, Limits, Share
from verifier.base.errors import InputError, Place, nearest_name, one_line, shown
from verifier.base.files import document_text, read_json, read_text
from verifier.base.numbers import LARGEST_NUMBER
from verifier.base.result import recorded
from verifier.closedloop.comparison import NamedCurve
from verifier.closedloop.curves import TradeOffCurve
from verifier.closedloop.settings import Severity

NUMBERS = ("sensitivity", "safety", "efficiency")
NAMES = ("metric", "detector", "condition", "severity")
NEEDED = ("detector", "condition", *NUMBERS)
SEVERITIES = ("", *get_args(Severity))
REMARKS = "remarks"
"""Column of what a reader must know."""
WITHOUT_METRIC = "trade_off"


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One curve of a file; the sensitivities are in any order, and as many as there are of the two others."""

    metric: str = field(default="", metadata=ALWAYS)
    detector: str
    condition: str
    severity: str = field(default="", metadata=ALWAYS)
    sensitivity: Annotated[tuple[float, ...], Limits(min_length=1)]
    safety: Annotated[tuple[Share, ...], Limits(min_length=1)]
    efficiency: Annotated[tuple[Share, ...], Limits(min_length=1)]


@dataclass(frozen=True, kw_only=True)
class Curves:
    """A file of curves; command, versions and input files are of the command that made it."""

    schema: ClassVar[str] = "verifier.curves"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[InputFile, ...] = ()
    title: str = field(default="", metadata=ALWAYS)
    remarks: tuple[str, ...] = ()
    curves: Annotated[tuple[Curve, ...], Limits(min_length=1)]


@dataclass(frozen=True, eq=False)
class CurveFile:
    """What a file holds, its name as given and the SHA-256 of its bytes; remarks that came with the curves."""

    name: str
    sha256: str
    title: str
    curves: tuple[NamedCurve, ...]
    remarks: tuple[str, ...] = ()


def read_curves(path: str | Path) -> CurveFile:
    """Read a file of curves; `.csv` is CSV, anything else JSON.

    Raises:
        InputError: naming the line, or the element by its JSON pointer.
    """
    name = str(path)
    title, remarks = "", tuple[str, ...]()
    if Path(path).suffix.lower() == ".csv":
        text, raw = read_text(path)
        curves, remarks = _from_csv(text, name)
    else:
        document, raw = read_json(path)
        title, curves, remarks = curves_of(document, name)
    if not curves:
        raise InputError("there is no curve in it", Place(name))
    return CurveFile(name, hashlib.sha256(raw).hexdigest(), title, curves, remarks)


def curves_json(curves: Sequence[NamedCurve], title: str = "", remarks: Sequence[str] = ()) -> str:
    """The curves as a JSON document, with what a reader must know to read them rightly."""
    listed = tuple(recorded(Curve, each, each.curve) for each in curves)
    return document_text(Curves(title=title, remarks=tuple(remarks), curves=listed))


def curves_csv(curves: Sequence[NamedCurve], remarks: Sequence[str] = ()) -> str:
    """The curves as CSV, one line per point, with the remarks in a column of their own where there are any."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow((*NAMES, *NUMBERS, *([REMARKS] if remarks else [])))
    rows: list[list[str]] = []
    for each in curves:
        names = [getattr(each, key) for key in NAMES]
        columns = (getattr(each.curve, key).tolist() for key in NUMBERS)
        rows += ([*names, *map(repr, row)] for row in zip(*columns, strict=True))
    writer.writerows(with_remarks(rows, remarks))
    return stream.getvalue()


def with_remarks(rows: Sequence[list[str]], remarks: Sequence[str]) -> Iterator[list[str]]:
    """The rows of a table with a cell more, of a column of remarks; as they are where there are none.

    One remark stands in a row, all that are left in the last one, parted by "; ".
    """
    if not remarks:
        yield from rows
        return
    told = [one_line(each) for each in remarks]
    for at, row in enumerate(rows):
        yield [*row, "; ".join(told[at:]) if at == len(rows) - 1 else told[at] if at < len(told) else ""]


def curves_of(document: Any, file: str) -> tuple[str, tuple[NamedCurve, ...], tuple[str, ...]]:
    """Title, curves and remarks of a decoded JSON document; InputError as `read_curves`, `file` being its name."""

    def fail(path: str, message: str, hint: str | None = None) -> InputError:
        return InputError(message, Place(file, path=path or "the document"), hint)

    if not isinstance(document, dict):
        raise fail("", f"expected an object with the key 'curves', got {shown(document)}")
    for key, value in (("schema", Curves.schema), ("version", Curves.version)):
        if key not in document:
            raise fail("", f"missing key '{key}'", f'write "schema": "{Curves.schema}", "version": {Curves.version}')
        if document[key] != value or isinstance(document[key], bool):
            raise fail(f"/{key}", f"expected {value!r}, got {shown(document[key])}")
    _check_keys(
        document, ("schema", "version", "command", "versions", "inputs", "title", "remarks", "curves"), "", fail
    )
    title, entries = document.get("title", ""), document.get("curves")
    if not isinstance(title, str):
        raise fail("/title", f"expected a string, got {shown(title)}")
    remarks = document.get("remarks", [])
    if not isinstance(remarks, list) or not all(isinstance(remark, str) for remark in remarks):
        raise fail("/remarks", f"expected a list of strings, got {shown(remarks)}")
    if not isinstance(entries, list):
        raise fail("/curves", f"expected a list of curves, got {shown(entries)}")
    found = []
    for number, entry in enumerate(entries):
        at = f"/curves/{number}"
        if not isinstance(entry, dict):
            raise fail(at, f"expected an object, got {shown(entry)}")
        _check_keys(entry, (*NAMES, *NUMBERS), at, fail)
        for key in NEEDED:
            if key not in entry:
                raise fail(at, f"missing key '{key}'")
        for key in NAMES:
            if not isinstance(entry.get(key, ""), str):
                raise fail(f"{at}/{key}", f"expected a string, got {shown(entry[key])}")
        if entry.get("severity", "") not in SEVERITIES:
            raise fail(f"{at}/severity", f"expected mild, severe or nothing, got {shown(entry['severity'])}")
        for key in ("detector", "condition"):
            if not entry[key].strip():
                raise fail(f"{at}/{key}", f"expected a name, got {shown(entry[key])}")
        for key in NUMBERS:
            _check_numbers(entry[key], f"{at}/{key}", fail)
        try:
            curve = TradeOffCurve(*(np.array(entry[key], dtype=np.float64) for key in NUMBERS))
        except ValueError as error:
            raise fail(at, str(error)) from None
        found.append(_named({key: entry[key] for key in NAMES if key in entry}, curve))
    return title, tuple(found), tuple(remarks)


def _check_keys(entry: dict[str, Any], known: tuple[str, ...], at: str, fail: Any) -> None:
    for key in entry:
        if key not in known:
            nearest = nearest_name(key, known)
            raise fail(f"{at}/{key}", f"unknown key {shown(key)}", f"did you mean '{nearest}'?" if nearest else None)


def _check_numbers(values: Any, at: str, fail: Any) -> None:
    if not isinstance(values, list):
        raise fail(at, f"expected a list of numbers, got {shown(values)}")
    for number, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST_NUMBER:
            raise fail(f"{at}/{number}", f"expected a number, got {shown(value)}")


def _named(names: dict[str, str], curve: TradeOffCurve) -> NamedCurve:
    metric = names.get("metric") or WITHOUT_METRIC
    return NamedCurve(metric, names["detector"], names["condition"], curve, names.get("severity", ""))


def _from_csv(text: str, file: str) -> tuple[tuple[NamedCurve, ...], tuple[str, ...]]:
    rows, remarks = csv.reader(io.StringIO(text)), list[str]()
    try:
        return tuple(_from_rows(rows, file, remarks)), tuple(dict.fromkeys(remarks))
    except csv.Error as error:
        raise InputError(f"not a readable CSV file: {error}", Place(file, rows.line_num)) from None


def _from_rows(rows: Any, file: str, remarks: list[str]) -> Iterator[NamedCurve]:
    header = [each.strip() for each in next(rows, [])]
    for key in NEEDED:
        if key not in header:
            raise InputError(f"no column '{key}' in the header", Place(file, 1), f"columns: {', '.join(NEEDED)}")
    for key in header:
        if key not in (*NAMES, *NUMBERS, REMARKS) or header.count(key) > 1:
            raise InputError(f"unknown or repeated column {shown(key)}", Place(file, 1))
    at = {key: header.index(key) for key in header}
    points: dict[tuple[str, ...], tuple[int, list[tuple[float, ...]]]] = {}
    for row in rows:
        if not row:
            continue
        if len(row) != len(header):
            raise InputError(f"found {len(row)} cells, expected {len(header)}", Place(file, rows.line_num))
        for key in ("detector", "condition"):
            if not row[at[key]].strip():
                raise InputError(f"{key}: expected a name, got {shown(row[at[key]])}", Place(file, rows.line_num))
        remarks += [row[at[REMARKS]].strip()] if REMARKS in at and row[at[REMARKS]].strip() else []
        names = tuple(row[at[key]].strip() if key in at else "" for key in NAMES)
        if names[NAMES.index("severity")] not in SEVERITIES:
            raise InputError(
                f"severity: expected mild, severe or nothing, got {shown(names[NAMES.index('severity')])}",
                Place(file, rows.line_num),
            )
        numbers = tuple(_number(row[at[key]], key, file, rows.line_num) for key in NUMBERS)
        points.setdefault(names, (rows.line_num, []))[1].append(numbers)
    for names, (line, numbers_of) in points.items():
        try:
            curve = TradeOffCurve(*np.array(numbers_of).T)
        except ValueError as error:
            raise InputError(f"the curve that begins here: {error}", Place(file, line)) from None
        yield _named(dict(zip(NAMES, names, strict=True)), curve)


def _number(cell: str, key: str, file: str, line: int) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{key}: expected a number, got {shown(cell)}", Place(file, line))
    return value
