"""What every result can do: be shown, drawn, and handed on as a table or a document."""

from __future__ import annotations

import importlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, SupportsFloat, TypeVar

import numpy as np

from verifier.base.documents import json_values
from verifier.base.errors import UsageError
from verifier.base.files import document_text
from verifier.base.libraries import library

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from matplotlib.figure import Figure

Record = TypeVar("Record", bound="DataclassInstance")


class Result:
    """The base of results; a class says where it is told and drawn, as MODULE:FUNCTION, and where it is made a
    document (or its text) unless it is one itself; further pictures, of which that of the option `plot_x` is drawn by
    `x_figure` there; and which columns of its rows name a row and are its `metrics`.

    `print(result)` shows what the command prints, with every condition and remark; a notebook shows the sections of
    `verify report`.
    """

    remarks: tuple[str, ...]
    TOLD: ClassVar[str]
    DRAWN: ClassVar[str] = ""
    FURTHER: ClassVar[tuple[str, ...]] = ()
    WRITTEN: ClassVar[str] = ""
    NAMED_BY: ClassVar[tuple[str, ...]] = ()
    METRICS: ClassVar[tuple[str, ...]] = ()

    @property
    def headline(self) -> str:
        """The result in a few words."""
        raise NotImplementedError

    def rows(self) -> Iterable[Mapping[str, object]]:
        """Flat rows with the same columns throughout, those of `--csv`."""
        raise NotImplementedError

    def document(self) -> Any:
        """What the JSON document holds, without the command that made it and checksums."""
        made = _called(self.WRITTEN, self) if self.WRITTEN else json_values(self)
        return json.loads(made) if isinstance(made, str) else made

    def json_text(self) -> str:
        """The document as text."""
        made = _called(self.WRITTEN, self) if self.WRITTEN else self
        return made if isinstance(made, str) else document_text(made)

    def frame(self) -> Any:
        """The rows as a pandas DataFrame, with headline and remarks in its `attrs`; UsageError without pandas."""
        frame = library("pandas").DataFrame(list(self.rows()))
        frame.attrs = {"headline": self.headline, "remarks": list(self.remarks)}
        return frame

    def measured_rows(self) -> Iterable[Mapping[str, object]]:
        """The rows that `metrics` gives the numbers of: all of them."""
        return self.rows()

    def metrics(self) -> dict[str, float]:
        """Its numbers by name, as experiment trackers log them; what is not defined or not finite is left out.

        Names are such as `stops/published/probability`: parts of letters, digits and `_ - . :` with `/` between them.
        """
        numbers: dict[str, float] = {}
        for row in self.measured_rows():
            texts = [str(row[name]) for name in self.NAMED_BY if name in row]
            texts += [f"{name}={row[name]}"[9:] for name in row if name.startswith("constant_")]
            path = [part for text in texts if (part := re.sub(r"[^\w.:-]+", "_", text).strip("_"))]
            for column in self.METRICS:
                value = row.get(column)
                if isinstance(value, SupportsFloat) and math.isfinite(value):
                    name = "/".join([*path, column])
                    while name in numbers:
                        name += "_"
                    numbers[name] = float(value)
        return numbers

    def plot(self, option: str = "plot", **how: Any) -> Figure:
        """The picture of `--plot`, or of another option, as a matplotlib figure; `how` as its function takes it.

        Raises:
            UsageError: there is none of this kind of result, or no matplotlib.
        """
        if not self.DRAWN or option not in ("plot", *self.FURTHER):
            raise UsageError(f"a {type(self).__name__} has no picture" + f" '{option}'" * (option != "plot"))
        library("matplotlib")
        module, _, function = self.DRAWN.partition(":")
        function = function if option == "plot" else f"{option.removeprefix('plot_')}_figure"
        drawn: Figure = _called(f"{module}:{function}", self, **how)
        return drawn

    def told(self, **how: Any) -> str:
        """What the command prints; `how` as its function takes it."""
        return str(_called(self.TOLD, self, **how))

    def __str__(self) -> str:
        return self.told().rstrip("\n")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline}>"

    def _repr_html_(self) -> str:
        return str(_called("verifier.evidence.report:notebook_html", self))


def _called(place: str, result: Result, **how: Any) -> Any:
    module, _, function = place.partition(":")
    return getattr(importlib.import_module(module), function)(result, **how)


def recorded(kind: type[Record], /, *sources: object, **others: Any) -> Record:
    """A record of a document: each of its fields is one of `others`, or what the first source that has one of this
    name says there, as `plain` has it. So a record is spelled once, as its type."""
    chosen = dict(others)
    for field in fields(kind):
        source = next((source for source in sources if hasattr(source, field.name)), None)
        open_ = field.default is MISSING and field.default_factory is MISSING
        if field.name not in others and (source is not None or open_):
            chosen[field.name] = plain(getattr(source, field.name))
    return kind(**chosen)


def plain(value: Any) -> Any:
    """A number or an array as documents have it: fractions as doubles, arrays as tuples, None for NaN; a member of an
    enumeration as its value. All else is left as it is."""
    if isinstance(value, np.ndarray):
        return _nested(value.tolist())
    if isinstance(value, Enum):
        return value.value
    number = value.item() if isinstance(value, np.generic) else value
    return float(number) if isinstance(number, Fraction) else None if number != number else number


def _nested(values: Any) -> Any:
    return tuple(map(_nested, values)) if isinstance(values, list) else plain(values)
