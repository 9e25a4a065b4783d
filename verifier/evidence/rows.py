"""Rows of CSV files that people write, with their lines."""

import csv
import datetime
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

from verifier.base.documents import Limits
from verifier.base.errors import InputError, Place, shown
from verifier.evidence.declarations import past_day

DayText: TypeAlias = Annotated[str, Limits(pattern=r"^\d{4}-\d\d-\d\d$")]


def rows_of(
    text: str, path: str | Path, needed: Sequence[str], optional: Sequence[str] = ()
) -> Iterator[tuple[dict[str, str], Place]]:
    """The rows with their places, cells by column; columns that are optional and missing are empty.

    Raises:
        InputError: other columns, no CSV, or a row with another number of cells.
    """
    reader = csv.reader(io.StringIO(text), strict=True)
    columns: tuple[str, ...] = ()
    try:
        for cells in reader:
            place = Place(str(path), reader.line_num)
            if not columns:
                columns = tuple(map(str.strip, cells))
                left = set(columns) - {*needed}
                if len({*columns}) != len(columns) or not {*needed} <= {*columns} or not left <= {*optional}:
                    more = f", and perhaps {', '.join(optional)}" if optional else ""
                    said = f"expected the columns {', '.join(needed)}{more}, found {shown(','.join(cells))}"
                    raise InputError(said, place)
            elif cells:
                if len(cells) != len(columns):
                    said = f"expected {len(columns)} cells, found {len(cells)}: {shown(','.join(cells))}"
                    raise InputError(said, place, "a text with a comma in it stands in quotation marks")
                given = dict(zip(columns, map(str.strip, cells), strict=True))
                yield {name: given.get(name, "") for name in (*needed, *optional)}, place
    except csv.Error as error:
        raise InputError(f"no CSV: {error}", Place(str(path), reader.line_num)) from None
    if not columns:
        raise InputError(f"expected the columns {', '.join(needed)}, found nothing", Place(str(path)))


def day_in(text: str, place: Place) -> datetime.date:
    """A day as 2026-05-04, not still to come; InputError."""
    try:
        day = datetime.date.fromisoformat(text)
    except ValueError:
        raise InputError(f"expected a date such as 2026-05-04, found {shown(text)}", place) from None
    return past_day(day, lambda said: InputError(said, place))
