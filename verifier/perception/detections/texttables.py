"""Text tables without a header (KITTI, MOTChallenge), many files at once, by pandas' C reader.

The fast way reads all files as one table. Only when something is wrong are the lines looked at one by one, to name
the first faulty one.
"""

import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, shown
from verifier.base.libraries import library
from verifier.base.tables import NUMBER, lines_of, unified
from verifier.base.words import counted
from verifier.perception.detections.assembly import Rows
from verifier.perception.detections.columns import UNKNOWN_FRAME, Coded, Frames, LookedUp, frames_at
from verifier.perception.detections.sources import Member

Kind = Literal["text", "whole", "number", "finite"]
WHOLE = re.compile(r"[+-]?\d{1,15}(\.0*)?", re.ASCII)
TRUTH = (b"true", b"false")
"""What pandas takes for 1 and 0, in upper case too, where a whole column says nothing else."""
NAN_TEXTS = [sign + text for sign in ("", "-", "+") for text in ("nan", "NaN", "NAN", "Nan")]


@dataclass(frozen=True)
class Layout:
    """The columns of a text table in order, and what separates them: blanks (None) or a character."""

    columns: Mapping[str, Kind]
    separator: str | None = None


@dataclass(frozen=True, eq=False)
class TextTable:
    """Columns by name: numbers as (n,) float64, text as codes into `names`; `line` and `file` as in `Boxes`, the file
    being one of `members`."""

    members: Sequence[Member]
    columns: Mapping[str, NDArray[Any]]
    names: Mapping[str, tuple[str, ...]]
    line: NDArray[np.int64]
    file: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.line)

    def member(self, row: int) -> Member:
        """The file that a row stands in."""
        return self.members[int(self.file[row])]

    def place(self, row: int) -> Place:
        """Where a row stands."""
        return Place(self.member(row).name, int(self.line[row]))

    def rows(self, frames: LookedUp, classes: Coded, **columns: Any) -> Rows:
        """The rows as objects in these frames and of these classes; with `score`, where it is a column, and further
        `columns`."""
        files = tuple(member.name for member in self.members)
        return Rows(frames[0], *classes, self.line, self.file, files, frames[1], self.columns.get("score"), **columns)

    def of_files(self, number: Mapping[str, int], name: Callable[[Member], str]) -> NDArray[np.int64]:
        """(n,) the number under the name of each row's file; `UNKNOWN_FRAME` where there is none."""
        return frames_at(number, map(name, self.members))[self.file]

    def frames_of_files(self, index: Mapping[str, int], what: str) -> LookedUp:
        """The frames by the stems of the files of rows; `what` they are."""
        frame = self.of_files(index, lambda member: member.stem)
        return frame, lambda row: f"{what} {shown(self.member(row).stem)}"

    def frames_named(
        self, index: Mapping[str, int], column: str, name: Callable[[str], str] = lambda text: text
    ) -> LookedUp:
        """The frames by the texts of a column, which says what they are; `name` is what one names."""
        code, names = self.columns[column], [name(text) for text in self.names[column]]
        return frames_at(index, names)[code], lambda row: f"{column} {shown(names[int(code[row])])}"

    def classes(self, column: str, names: Mapping[int, str], what: str = "class") -> Coded:
        """The classes by the numbers in a column, whose names these are; `what` a number without a name is."""
        numbers, label = np.unique(self.columns[column].astype(np.int64), return_inverse=True)
        return label.astype(np.int64), tuple(names.get(number, f"{what} {number}") for number in numbers.tolist())

    def frames(self, frames: Frames, first: int, sequence: Callable[[Member], str]) -> LookedUp:
        """The frames by the column `frame`, which counts from `first` in each sequence, that of the row's file."""
        lengths = np.bincount(frames.sequence, minlength=len(frames.sequences))
        own = self.of_files({name: at for at, name in enumerate(frames.sequences)}, sequence)
        number = self.columns["frame"]
        known = (own >= 0) & (number >= first) & (number < first + lengths[own])
        begins = np.cumsum(lengths) - lengths

        def text(row: int) -> str:
            return f"frame {int(number[row])} of sequence {shown(sequence(self.member(row)))}"

        return np.where(known, begins[own] + number - first, UNKNOWN_FRAME).astype(np.int64), text

    def stack(self, *names: str) -> NDArray[np.float64]:
        """(n, k) the named columns side by side."""
        return np.column_stack([self.columns[name] for name in names])


def read_tables(members: Sequence[Member], layouts: Sequence[Layout]) -> TextTable:
    """All rows of all files. The layout is the one that fits the first line that is not blank.

    NaN and infinities are read as such in a column of numbers, for whoever knows which may hold them, and refused in
    one of finite numbers.

    Raises:
        InputError: naming file, line and column of the first field that does not fit the layout.
    """
    texts, line, file = lines_of([(member.name, member.raw) for member in members])
    layout = _layout_of(texts, layouts, members, line, file)
    columns, names = _parsed(texts, layout) or ({}, {})
    fits = columns and len(columns[next(iter(columns))]) == len(line)
    lowered = texts.lower()
    if not fits or any(word in lowered for word in TRUTH) or _suspicious(columns, layout):
        _find_fault(members, layout)
        if not columns:
            raise InputError("cannot be read as a table", Place(members[0].name))
    return TextTable(members, columns, names, line, file)


def _layout_of(
    texts: bytes,
    layouts: Sequence[Layout],
    members: Sequence[Member],
    line: NDArray[np.int64],
    file: NDArray[np.int32],
) -> Layout:
    if not texts:
        return layouts[0]
    first = texts[: texts.index(b"\n")].decode()
    counts = [len(first.split(layout.separator)) for layout in layouts]
    for layout, count in zip(layouts, counts, strict=True):
        if count == len(layout.columns):
            return layout
    wanted = " or ".join(
        f"{len(layout.columns)} separated by {'blanks' if layout.separator is None else repr(layout.separator)}"
        for layout in layouts
    )
    place = Place(members[int(file[0])].name, int(line[0]), text=first)
    raise InputError(f"found {counted(max(counts), 'column')}, expected {wanted}", place)


def _parsed(texts: bytes, layout: Layout) -> tuple[dict[str, NDArray[Any]], dict[str, tuple[str, ...]]] | None:
    """Columns and category names; None when pandas refuses the text."""
    pandas = library("pandas")
    kinds = layout.columns
    if not texts:
        empty = {name: np.zeros(0, np.int64 if kind == "text" else np.float64) for name, kind in kinds.items()}
        return empty, {name: () for name, kind in kinds.items() if kind == "text"}
    types = {name: "category" if kind == "text" else "float64" for name, kind in kinds.items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            table = pandas.read_csv(
                BytesIO(texts),
                sep=r"\s+" if layout.separator is None else layout.separator,
                header=None,
                names=list(kinds),
                index_col=False,
                dtype=types,
                quoting=3,
                keep_default_na=False,
                na_values={name: NAN_TEXTS for name, kind in kinds.items() if kind != "text"},
                **_exact_floats(pandas.__version__),
            )
    except (ValueError, UserWarning, OverflowError):
        return None
    columns: dict[str, NDArray[Any]] = {}
    names: dict[str, tuple[str, ...]] = {}
    for name, kind in kinds.items():
        if kind == "text":
            columns[name] = table[name].cat.codes.to_numpy(np.int64)
            names[name] = tuple(str(category).strip() for category in table[name].cat.categories)
        else:
            columns[name] = table[name].to_numpy(np.float64)
    return columns, names


def _exact_floats(version: str) -> dict[str, str]:
    """Before 3.1 pandas rounds some decimals to the neighbour of the nearest double unless told not to."""
    major, minor = (int(part) for part in version.split(".")[:2])
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def _suspicious(columns: Mapping[str, NDArray[Any]], layout: Layout) -> bool:
    """Whether some field may be missing or no number: only then are the lines looked at one by one."""
    for name, kind in layout.columns.items():
        values = columns[name]
        if kind == "text":
            bad = values < 0
        elif kind == "whole":
            bad = ~(np.abs(values) < 1e15) | (values != np.trunc(values))
        elif kind == "finite":
            bad = ~np.isfinite(values)
        else:
            bad = np.isnan(values)
        if bad.any():
            return True
    return False


def _find_fault(members: Sequence[Member], layout: Layout) -> None:
    for member in members:
        for number, line in enumerate(unified(member.name, member.raw).split(b"\n"), 1):
            if line.strip():
                _check_line(line.decode(), layout, member.name, number)


def _check_line(line: str, layout: Layout, file: str, number: int) -> None:
    fields = line.split(layout.separator)
    if len(fields) != len(layout.columns):
        message = f"found {counted(len(fields), 'column')}, expected {len(layout.columns)}"
        raise InputError(message, Place(file, number, text=line))
    position = 0
    for text, (name, kind) in zip(fields, layout.columns.items(), strict=True):
        position = line.index(text, position) if text else position
        word = text.strip()
        pattern = {"text": None, "whole": WHOLE, "number": NUMBER, "finite": NUMBER}[kind]
        fits = bool(word) if pattern is None else pattern.fullmatch(word) is not None
        if fits and (kind != "finite" or math.isfinite(float(word))):
            position += len(text) + (layout.separator is not None)
            continue
        wanted = {"text": "name", "whole": "whole number", "number": "number", "finite": "finite number"}[kind]
        place = Place(file, number, position + 1, text=line)
        raise InputError(f"{name}: expected a {wanted}, got {shown(word)}", place)
