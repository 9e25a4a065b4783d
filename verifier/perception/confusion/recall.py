"""How often a class is reported where it is there, by bin, and how sure the counts make us of it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.matrices import ConfusionMatrices, Label, label_text

THIN_COLUMN = 30
"""Items; a column with fewer says little: at 29 of 30 the 95 % interval still reaches down to 0.83."""


@dataclass(frozen=True)
class Recall:
    """Of `items` items whose true label has the class `name`, `hits` were reported with it."""

    name: str
    bin: int
    hits: int
    items: int
    low: float
    high: float


@dataclass(frozen=True)
class ThinColumn:
    """A column with few items: `bin` as text, true label as text, number of items."""

    bin: str
    label: str
    items: int


def wilson(hits: int, items: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a probability: all p with |k/n - p| <= z sqrt(p(1-p)/n) (1927, JASA 22, p. 209).

    It holds for independent items. Objects of one drive are not independent, so it is too narrow for them.

    >>> [round(end, 4) for end in wilson(1, 10)]
    [0.0179, 0.4042]

    Raises:
        ValueError: not 0 <= hits <= items, or the confidence is not in (0, 1).
    """
    if not 0 <= hits <= items or not 0 < confidence < 1:
        raise ValueError(f"expected 0 <= hits <= items and a confidence in (0, 1), got {hits}, {items}, {confidence}")
    if items == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = hits / items
    centre = (share + z * z / (2 * items)) / (1 + z * z / items)
    half = z / (1 + z * z / items) * math.sqrt(share * (1 - share) / items + z * z / (4 * items * items))
    return (0.0 if hits == 0 else centre - half), (1.0 if hits == items else centre + half)


def recalls(matrices: ConfusionMatrices, confidence: float = 0.95) -> list[Recall]:
    """For each class and distance bin: of the items whose true label has the class, those reported with it."""
    found = []
    for name in class_names(matrices):
        has = np.array([name in label for label in matrices.labels])
        for at in range(matrices.bin_count):
            columns = matrices.counts[at][:, has]
            hits, items = int(columns[has].sum()), int(columns.sum())
            found.append(Recall(name, at, hits, items, *wilson(hits, items, confidence)))
    return found


def class_names(matrices: ConfusionMatrices) -> list[str]:
    """The classes in the order in which the labels first name them."""
    return list(dict.fromkeys(name for label in matrices.labels for name in sorted(label)))


def thin_columns(counts: ConfusionCounts, fewer_than: int = THIN_COLUMN) -> Iterator[ThinColumn]:
    """The columns with too few items, column "empty" included.

    The number of items does not depend on the score threshold, so a family is looked at once.
    """
    items = counts.counts[0].sum(axis=1)
    for at, column in np.argwhere(items < fewer_than).tolist():
        label: Label = counts.labels[column]
        yield ThinColumn(counts.bins.text(at), label_text(label), int(items[at, column]))
