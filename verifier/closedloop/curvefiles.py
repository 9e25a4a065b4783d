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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args

import numpy as np

from verifier.base.arrays import grouped
from verifier.base.documents import ALWAYS, InputFile, Limits, Share, read_document
from verifier.base.errors import InputError, Place, one_line, shown
from verifier.base.files import document_text, read_bytes, read_json
from verifier.base.result import recorded
from verifier.base.tables import Kind, Table, read_table
from verifier.closedloop.comparison import NamedCurve
from verifier.closedloop.curves import TradeOffCurve
from verifier.closedloop.settings import Severity

NUMBERS = ("sensitivity", "safety", "efficiency")
NAMES = ("metric", "detector", "condition", "severity")
REQUIRED: dict[str, Kind] = {"detector": "text", "condition": "text", **dict.fromkeys(NUMBERS, "number")}
OPTIONAL: dict[str, Kind] = dict.fromkeys(("metric", "severity", "remarks"), "note")
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
    if Path(path).suffix.lower() == ".csv":
        raw = read_bytes(path)
        title, (curves, remarks) = "", _from_table(read_table(path, REQUIRED, OPTIONAL, raw))
    else:
        document, raw = read_json(path)
        written = read_document(Curves, document, name)
        title, curves, remarks = written.title, curves_of(written, name), written.remarks
    if not curves:
        raise InputError("there is no curve in it", Place(name))
    return CurveFile(name, hashlib.sha256(raw).hexdigest(), title, curves, remarks)


def curves_json(curves: Sequence[NamedCurve], title: str = "", remarks: Sequence[str] = ()) -> str:
    """The curves as a JSON document, with what a reader must know to read them rightly."""
    listed = tuple(recorded(Curve, curve, curve.curve) for curve in curves)
    return document_text(Curves(title=title, remarks=tuple(remarks), curves=listed))


def curves_csv(curves: Sequence[NamedCurve], remarks: Sequence[str] = ()) -> str:
    """The curves as CSV, one line per point, with the remarks in a column of their own where there are any."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow((*NAMES, *NUMBERS, *([REMARKS] if remarks else [])))
    rows: list[list[str]] = []
    for curve in curves:
        names = [getattr(curve, key) for key in NAMES]
        columns = (getattr(curve.curve, key).tolist() for key in NUMBERS)
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
    told = [one_line(remark) for remark in remarks]
    for at, row in enumerate(rows):
        yield [*row, "; ".join(told[at:]) if at == len(rows) - 1 else told[at] if at < len(told) else ""]


def curves_of(document: Curves, file: str) -> tuple[NamedCurve, ...]:
    """The curves of a document; InputError as `read_curves`, `file` being its name."""
    return tuple(
        _named(vars(curve), [getattr(curve, key) for key in NUMBERS], Place(file, path=f"/curves/{number}"))
        for number, curve in enumerate(document.curves)
    )


def _from_table(table: Table) -> tuple[tuple[NamedCurve, ...], tuple[str, ...]]:
    texts = {
        name: [texts[code].strip() for code in table.columns[name].tolist()] for name, texts in table.texts.items()
    }
    named = zip(*(texts.get(key, [""] * len(table)) for key in NAMES), strict=True)
    points = grouped((names, row) for row, names in enumerate(named))
    numbers = table.stack(*NUMBERS)
    curves = tuple(
        _named(dict(zip(NAMES, names, strict=True)), numbers[rows].T, table.place(rows[0]))
        for names, rows in points.items()
    )
    return curves, tuple(dict.fromkeys(filter(None, texts.get(REMARKS, ()))))


def _named(names: Mapping[str, str], numbers: Iterable[Any], place: Place) -> NamedCurve:
    """The curve of these names whose `NUMBERS` stand, or begin, at a place."""
    for key in ("detector", "condition"):
        if not names[key].strip():
            raise InputError(f"{key}: expected a name, got {shown(names[key])}", place)
    if names["severity"] not in SEVERITIES:
        raise InputError(f"severity: expected mild, severe or nothing, got {shown(names['severity'])}", place)
    try:
        curve = TradeOffCurve(*(np.array(number, dtype=np.float64) for number in numbers))
    except ValueError as error:
        raise InputError(f"the curve here: {error}", place) from None
    metric = names["metric"] or WITHOUT_METRIC
    return NamedCurve(metric, names["detector"], names["condition"], curve, names["severity"])
