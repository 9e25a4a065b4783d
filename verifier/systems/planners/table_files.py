"""Decision tables in CSV: columns of conditions, `->`, and columns of what is set.

    x,sees(ped),mode,->,speed,mode'
    0..9,*,0,,3,0
    10..20,true,0,,2,1

A column of conditions is a variable, memory, a label or an atom; a cell is a number, `lo..hi`, `true` or `false`, a
class (below `report(o)`) or `*`. What is set is whole numbers: inputs, and memory with a quote behind its name.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from verifier.base.errors import InputError, Place, shown
from verifier.base.files import decoded
from verifier.language.expressions import Source, parse_expression
from verifier.language.expressions.syntax import Call, Name, Node
from verifier.systems.model_parts import Type
from verifier.systems.planners.tables import ANY, DecisionTable

ARROW = "->"
_WHOLE = re.compile(r"-?\d{1,15}")
_INTERVAL = re.compile(r"(-?\d{1,15})\s*\.\.\s*(-?\d{1,15})")
_REPORT = re.compile(r"report\(\s*([A-Za-z_]\w*)\s*(,.*)?\)\Z", re.DOTALL)
_TRUTH = {"false": 0, "true": 1}
_EVERY = (-ANY, ANY)


@dataclass(frozen=True)
class _Column:
    """A column of conditions: its text, its cells, and in messages its place in the head."""

    text: str
    cells: tuple[str, ...]
    head: Source


def table_of(raw: bytes, file: str) -> tuple[DecisionTable, list[Source]]:
    """The decision table in the bytes of a CSV file, and for each question where it stands.

    Raises:
        InputError: no such table, with file and line; two rows overlap.
    """
    text = decoded(raw, Place(file))
    separator = max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    rows: list[tuple[int, list[str]]] = []
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append((reader.line_num, [cell.strip() for cell in row]))
    except csv.Error as error:
        raise InputError(f"not a readable CSV file: {error}", Place(file, reader.line_num)) from None
    if not rows:
        raise InputError("the file is empty; expected a line with the names of the columns", Place(file))
    (first, head), body = rows[0], rows[1:]
    arrow = _checked_head(head, Place(file, first))
    for line, row in body:
        if len(row) != len(head):
            raise InputError(f"found {len(row)} cells, expected {len(head)}", Place(file, line))
        if row[arrow]:
            raise InputError(f"expected an empty cell below {ARROW}, got {shown(row[arrow])}", Place(file, line))
    if not body:
        raise InputError("expected at least one row below the names of the columns", Place(file, first))
    lines = [line for line, _ in body]
    columns = [
        _Column(name, tuple(row[k] for _, row in body), Source(name, file, f"column {name}", lambda: first))
        for k, name in enumerate(head[:arrow])
    ]
    asks: dict[str, tuple[Node, Type | None]] = {}
    places: list[Source] = []
    ends: list[list[tuple[int, int]]] = []
    for column in columns:
        for text, node, kind, cells in _read(column, lines):
            asks[text] = (node, kind)
            ends.append(cells)
            places.append(column.head)
    boxes = np.array(ends, dtype=np.int64)
    values = [[_set(row[k], head[k], Place(file, line)) for k in range(arrow + 1, len(head))] for line, row in body]
    sets = tuple(name.removesuffix("'") for name in head[arrow + 1 :])
    low, high = boxes[..., 0].T, boxes[..., 1].T
    return DecisionTable(asks, sets, low, high, np.array(values, dtype=np.int64), file, np.array(lines)), places


def _checked_head(head: list[str], place: Place) -> int:
    """The number of the column `->`."""
    if head.count(ARROW) != 1:
        hint = f"x,sees(ped),{ARROW},speed: conditions, the column {ARROW}, then what is set"
        raise InputError(f"expected one column named {ARROW}, found {head.count(ARROW)}", place, hint)
    arrow = head.index(ARROW)
    named = [*head[:arrow], *(name.removesuffix("'") for name in head[arrow + 1 :])]
    for part in (head[:arrow], named[arrow:]):
        for name in part:
            if part.count(name) > 1 or not name:
                raise InputError(f"the column {shown(name)} occurs twice" if name else "a column has no name", place)
    if not arrow or arrow == len(head) - 1:
        side = "condition before" if not arrow else "result behind"
        raise InputError(f"expected at least one {side} {ARROW}", place)
    for name in head[arrow + 1 :]:
        if not re.fullmatch(r"[A-Za-z_]\w*'?", name):
            raise InputError(f"expected the name of an input or of memory behind {ARROW}, got {shown(name)}", place)
    return arrow


def _read(column: _Column, lines: list[int]) -> list[tuple[str, Node, Type, list[tuple[int, int]]]]:
    """Text, expression, kind and cells of what a column asks: one question for each class below `report(o)`."""
    report = _REPORT.fullmatch(column.text)
    if report:
        classes = sorted({cell for cell in column.cells if cell != "*"})
        found: list[tuple[str, Node, Type, list[tuple[int, int]]]] = []
        for name in classes:
            text = f"{column.text} = {name}"
            node = parse_expression(text, Source(text, column.head.file, column.head.path, column.head.line))
            found.append(
                (text, node, "boolean", [_EVERY if c == "*" else (int(c == name),) * 2 for c in column.cells])
            )
        return found
    node = parse_expression(column.text, column.head)
    if not isinstance(node, Name | Call) or (isinstance(node, Call) and node.function in ("min", "max", "abs")):
        raise column.head.error(f"expected a variable, memory, a label or an atom, got {column.text}", None)
    counted = isinstance(node, Call) and node.function == "count"
    truths = (isinstance(node, Call) and not counted) or (not counted and set(column.cells) & {"true", "false"})
    cell_of: Callable[[str], tuple[int, int] | None] = _truth if truths else _interval
    cells = []
    known: dict[str, tuple[int, int] | None] = {}
    for cell, line in zip(column.cells, lines, strict=True):
        if cell not in known:
            known[cell] = cell_of(cell)
        ends = known[cell]
        if ends is None:
            wanted = "true, false or *" if truths else "a whole number, lo..hi or *"
            raise InputError(f"{column.text}: expected {wanted}, got {shown(cell)}", Place(column.head.file, line))
        cells.append(ends)
    return [(column.text, node, "boolean" if truths else "number", cells)]


def _truth(cell: str) -> tuple[int, int] | None:
    return _EVERY if cell == "*" else (_TRUTH[cell],) * 2 if cell in _TRUTH else None


def _interval(cell: str) -> tuple[int, int] | None:
    if cell == "*":
        return _EVERY
    if _WHOLE.fullmatch(cell):
        return int(cell), int(cell)
    ends = _INTERVAL.fullmatch(cell)
    return (int(ends[1]), int(ends[2])) if ends and int(ends[1]) <= int(ends[2]) else None


def _set(cell: str, name: str, place: Place) -> int:
    if not _WHOLE.fullmatch(cell):
        raise InputError(f"{name}: expected a whole number, got {shown(cell)}", place)
    return int(cell)
