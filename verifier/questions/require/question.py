"""What `verify require` is asked: which requirement, which recalls may change, and how.

| mode     | what changes                                                                                   |
|----------|------------------------------------------------------------------------------------------------|
| `common` | one recall for all cells in question                                                           |
| `bin`    | the same for the cells of a single bin; everything else stays as measured                      |
| `cell`   | the same for a single cell                                                                     |
| `factor` | one factor on the miss rates of all cells in question                                          |
| `cost`   | every recall on its own, never below the measured one, at the least total price                |

The cells in question are those that make a difference to the requirement, as far as classes and bins are not
narrowed down.
"""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import get_args

import numpy as np

from verifier.analysis.settings import Semantics
from verifier.base.arrays import Mask
from verifier.base.errors import InputError, Place, UsageError, shown, unknown_name
from verifier.base.files import read_text
from verifier.perception.confusion import EMPTY, ConfusionMatrices
from verifier.perception.confusion.matrices import Label, label_text
from verifier.questions.settings import Mode, QuestionSettings, RequirementSettings, Rest

MOST_DECIMALS = 9
MOST_POINTS = 100_001


@dataclass(frozen=True)
class Price:
    """Price of a recall of 1 more in the bin that holds `distance_m`, for one label (as text) or for all."""

    distance_m: float
    label: str | None
    price: Fraction


@dataclass(frozen=True)
class Question(QuestionSettings):
    """Every choice of `verify require` beside files and scenarios.

    Attributes:
        requirement: its name; None for the only one of the spec.
        prices: for mode `cost`; None where every recall costs the same.
    """

    requirement: str | None = None
    prices: tuple[Price, ...] | None = None

    def __post_init__(self) -> None:
        for name, known in (("mode", Mode), ("rest", Rest), ("semantics", Semantics)):
            if getattr(self, name) not in get_args(known):
                raise UsageError(": ".join(unknown_name(name, getattr(self, name), get_args(known))))
        if not 1 <= self.decimals <= MOST_DECIMALS:
            raise UsageError(f"recalls have 1 to {MOST_DECIMALS} decimals, got {self.decimals}")
        if not 2 <= self.points <= MOST_POINTS:
            raise UsageError(f"the search starts from 2 to {MOST_POINTS} points, got {self.points}")
        if self.prices is not None and self.mode != "cost":
            raise UsageError(f"prices belong to mode 'cost', not to mode '{self.mode}'")
        if self.seed < 0:
            raise UsageError(f"a seed is a whole number from 0, got {self.seed}")

    @property
    def whole(self) -> int:
        """What stands for a recall of 1."""
        return int(10**self.decimals)

    def in_question(self, matrices: ConfusionMatrices) -> Mask:
        """(bins, true) bool: the cells that labels and distances leave; never those of label "empty".

        Raises:
            UsageError: a label or a bin that the matrices do not have.
        """
        columns = np.array([label != EMPTY for label in matrices.labels])
        if self.labels:
            named = [matrices.labels.index(_label(text, matrices)) for text in self.labels]
            columns &= np.isin(np.arange(len(columns)), named)
        bins = np.ones(matrices.bin_count, dtype=bool)
        if self.distances_m:
            bins = np.isin(np.arange(len(bins)), [_bin(each, matrices) for each in self.distances_m])
        return np.asarray(bins[:, None] & columns[None, :])

    def price_of(self, matrices: ConfusionMatrices, index: int, column: int) -> Fraction:
        """Price of a recall of 1 more in one cell; UsageError where the prices name none."""
        if self.prices is None:
            return Fraction(1)
        label = matrices.labels[column]
        for each in self.prices:
            mine = each.label is None or _label(each.label, matrices) == label
            if mine and _bin(each.distance_m, matrices) == index:
                return each.price
        raise UsageError(f"the prices name none for {label_text(label)} in bin {matrices.bin_text(index)}")


def _label(text: str, matrices: ConfusionMatrices) -> Label:
    """The label that `ped`, `obs+ped` or `{obs, ped}` means."""
    classes = [part.strip() for part in text.strip().strip("{}").replace(",", "+").split("+")]
    for label in matrices.labels:
        if label and (label_text(label) == text.strip() or sorted(label) == sorted(classes)):
            return label
    known = [label_text(label) for label in matrices.labels if label]
    raise UsageError(": ".join(unknown_name("true label", text, known)))


def _bin(distance_m: float, matrices: ConfusionMatrices) -> int:
    found = int(matrices.bins_of(np.array([distance_m]))[0]) if math.isfinite(distance_m) else -1
    if found < 0:
        low, high = matrices.edges_m[0], matrices.edges_m[-1]
        raise UsageError(f"no distance bin holds {distance_m:g} m; they cover {low:g} to {high:g} m")
    return found


def read_prices(path: str | Path) -> tuple[Price, ...]:
    """The prices of a CSV file with the columns `distance_m`, `price` and, if it has one, `class`.

    A row prices the bin that holds its distance; without a class it is for all classes. The first row that fits a
    cell counts.

    Raises:
        InputError: with the line of the first row that cannot be read.
    """
    text, _ = read_text(path)
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    found = []
    try:
        header = [name.strip() for name in rows.fieldnames or ()]
        if not {"distance_m", "price"} <= set(header) <= {"distance_m", "price", "class"}:
            expected = "expected the columns distance_m, price and, if wanted, class"
            raise InputError(f"{expected}; found {', '.join(map(shown, header)) or 'none'}", Place(str(path), 1))
        rows.fieldnames = header
        for row in rows:
            place = Place(str(path), rows.line_num)
            cells = {name: (value or "").strip() for name, value in row.items() if name is not None}
            if None in row:
                raise InputError(f"expected {len(header)} values", place)
            distance_m = float(_number(cells["distance_m"], "a distance in metres", place))
            price = _number(cells["price"], "a price", place)
            found.append(Price(distance_m, cells.get("class") or None, price))
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", Place(str(path), rows.line_num)) from None
    if not found:
        raise InputError("there is no price in the file", Place(str(path)))
    return tuple(found)


def _number(text: str, what: str, place: Place) -> Fraction:
    number = Fraction(text) if re.fullmatch(r"\d{1,30}(\.\d{1,30})?", text) else None
    if number is None or number > 10**9:
        raise InputError(f"expected {what} from 0 to 1e9, got {shown(text)}", place)
    return number


def question_of(settings: RequirementSettings) -> Question:
    """What settings ask; UsageError where prices go with no such mode, InputError as `read_prices`."""
    asked = Question(**vars(settings.question))
    if settings.cost is None:
        return asked
    if asked.mode not in ("common", "cost"):
        raise UsageError(f"--cost belongs to --mode cost, not to --mode {asked.mode}")
    return replace(asked, mode="cost", prices=read_prices(settings.cost))
