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
from verifier.base.numbers import decimal_text
from verifier.base.tables import read_table
from verifier.perception.confusion import EMPTY, ConfusionMatrices
from verifier.perception.confusion.matrices import Label, label_text
from verifier.questions.require.require_result import Price
from verifier.questions.settings import MOST_DECIMALS, Mode, QuestionSettings, RequirementSettings, Rest

MOST_POINTS = 100_001
LARGEST_NUMBER = 10**9


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
        if not 2 <= self.grid <= MOST_POINTS:
            raise UsageError(f"the search starts from 2 to {MOST_POINTS} points, got {self.grid}")
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
            UsageError: a label, a bin or a context that the matrices do not have.
        """
        columns = np.array([label != EMPTY for label in matrices.labels])
        if self.labels:
            named = [matrices.labels.index(_label(text, matrices)) for text in self.labels]
            columns &= np.isin(np.arange(len(columns)), named)
        bins = np.ones(matrices.bin_count, dtype=bool)
        if self.distances_m:
            asked = [_bin(value, matrices) for value in self.distances_m]
            bins = np.isin(matrices.distance_bin(np.arange(len(bins))), asked)
        if self.contexts:
            names = () if matrices.memory is None else matrices.memory.contexts.names
            for name in self.contexts:
                if name not in names:
                    raise UsageError(": ".join(unknown_name("context of the detector", name, names)))
            bins &= np.isin(np.arange(len(bins)) % len(names), [names.index(name) for name in self.contexts])
        return np.asarray(bins[:, None] & columns[None, :])

    def price_of(self, matrices: ConfusionMatrices, index: int, column: int) -> Fraction:
        """Price of a recall of 1 more in one cell; UsageError where the prices name none."""
        if self.prices is None:
            return Fraction(1)
        label = matrices.labels[column]
        for price in self.prices:
            mine = price.label is None or _label(price.label, matrices) == label
            if mine and _bin(price.distance_m, matrices) == matrices.distance_bin(index):
                return Fraction(price.price)
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
    index = int(matrices.bins_of(np.array([distance_m]))[0]) if math.isfinite(distance_m) else -1
    if index < 0:
        low, high = matrices.edges_m[0], matrices.edges_m[-1]
        raise UsageError(f"no distance bin holds {distance_m:g} m; they cover {low:g} to {high:g} m")
    return index


def read_prices(path: str | Path) -> tuple[Price, ...]:
    """The prices of a CSV file with the columns `distance_m`, `price` and, if it has one, `class`.

    A row prices the bin that holds its distance; without a class it is for all classes. The first row that fits a
    cell counts.

    Raises:
        InputError: with the line of the first row that cannot be read.
    """
    table = read_table(path, {"distance_m": "number", "price": "text"}, {"class": "note"})
    if not len(table):
        raise InputError("there is no price in the file", Place(str(path)))
    classes = [""] * len(table)
    if "class" in table.columns:
        classes = [table.texts["class"][code].strip() for code in table.columns["class"].tolist()]
    prices = []
    for row, (distance_m, price) in enumerate(
        zip(table.columns["distance_m"].tolist(), table.columns["price"].tolist(), strict=True)
    ):
        if not 0 <= distance_m <= LARGEST_NUMBER:
            raise InputError(f"expected a distance in metres from 0 to 1e9, got {distance_m:g}", table.place(row))
        prices.append(Price(distance_m, classes[row] or None, _price(table.texts["price"][price], table.place(row))))
    return tuple(prices)


def _price(text: str, place: Place) -> str:
    number = Fraction(text) if re.fullmatch(r"\d{1,30}(\.\d{1,30})?", text) else None
    if number is None or number > LARGEST_NUMBER:
        raise InputError(f"expected a price from 0 to 1e9, got {shown(text)}", place)
    return decimal_text(number)


def question_of(settings: RequirementSettings) -> Question:
    """What settings ask; UsageError where prices go with no such mode, InputError as `read_prices`."""
    asked = Question(**vars(settings.question))
    if settings.cost is None:
        return asked
    if asked.mode not in ("common", "cost"):
        raise UsageError(f"--cost belongs to --mode cost, not to --mode {asked.mode}")
    return replace(asked, mode="cost", prices=read_prices(settings.cost))
