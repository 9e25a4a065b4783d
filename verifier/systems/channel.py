"""The perception channel: how likely the planner is told each observation, from the confusion matrices.

The planner asks which classes are reported (`sees(ped)`), so an observation is the set of reported classes among
those it asks about. What is drawn, and from which column, depends on the labelling:

* class- and group-labelled: every object (or group that acts as one) is reported on its own, from the column of
  its class in its own bin. The probability of an observation is the sum over all ordered tuples of reported labels
  whose union it is (Badithela et al. 2022, eq. 9; the single listed order of a multiset is not enough).
* proposition-labelled: the objects of one bin are reported together, from the column of the set of their
  classes (eq. 6).

Objects in different bins are reported independently (Remark 2). Both reduce to independent *draws*, each from one
column, and an observation is the union of what the draws report. The union over many objects is built up draw by
draw, so its cost grows with the number of draws, not exponentially.

False alarms. Published matrices drop unmatched detections, so column "empty" reports nothing. `FALSE_ALARM_POLICIES`
names what to do with the column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import LimitError, UsageError
from verifier.perception.confusion import EMPTY, ConfusionMatrices
from verifier.perception.confusion.matrices import Label
from verifier.systems.settings import FalseAlarms

FALSE_ALARM_POLICIES: Mapping[FalseAlarms, str] = {
    "as_counted": "column 'empty' as the file has it, where nothing stands",
    "ignore": "nothing is ever reported where nothing stands",
    "background": "as_counted, and beside the objects of a bin that column draws once more",
}
LARGEST_OBSERVATION_COUNT = 62
"""Observations a planner may tell apart: a set of them is kept in the bits of one 64-bit integer."""


@dataclass(frozen=True)
class Channel:
    """Independent draws from matrix columns, for every combination of bins that occurs.

    Attributes:
        labels: the labels of the matrices, in their order.
        observations: what the planner can be told, the empty set first.
        bins: (rows, draws) int64, the bin of each draw.
        columns: (rows, draws) int64, the column (true label) of each draw; -1 where a row has no such draw.
    """

    labels: tuple[Label, ...]
    observations: tuple[Label, ...]
    bins: NDArray[np.int64]
    columns: NDArray[np.int64]

    def weights(self, rates: NDArray[Any]) -> NDArray[Any]:
        """Probability of each observation.

        Args:
            rates: (..., bins, predicted, true) column-normalised matrices, floats or fractions; leading axes
                are a batch of matrices.

        Returns:
            (..., rows, observations), each row summing to 1.
        """
        by_column = np.swapaxes(rates, -1, -2)
        asked = frozenset().union(*self.observations)
        told = [self.observations.index(label & asked) for label in self.labels]
        shape = (*rates.shape[:-3], len(self.bins), len(self.observations))
        weights: NDArray[Any] = np.zeros(shape, dtype=rates.dtype)
        weights[..., 0] = 1
        possible = {0}
        for bins, columns in zip(self.bins.T, self.columns.T, strict=True):
            drawn = by_column[..., bins, columns, :]
            extended = np.zeros_like(weights)
            unions: set[int] = set()
            for before in possible:
                for label, now in enumerate(told):
                    union = self.observations.index(self.observations[before] | self.observations[now])
                    extended[..., union] += weights[..., before] * drawn[..., label]
                    unions.add(union)
            weights = np.where(columns[:, None] >= 0, extended, weights)
            possible |= unions
        return weights

    @property
    def rounding_steps(self) -> int:
        """At most so many roundings of doubles lie between the counts and a sum of weights."""
        draws = self.columns.shape[1]
        return int(draws * (2 + len(self.labels) * len(self.observations)) + len(self.observations))

    def columns_used(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """(k, 2) the distinct (bin, column) pairs that any draw of these rows uses."""
        columns = self.columns[rows]
        active = columns >= 0
        pairs = np.stack([self.bins[rows][active], columns[active]], axis=1)
        return np.unique(pairs, axis=0) if len(pairs) else pairs


def make_channel(
    matrices: ConfusionMatrices,
    object_classes: tuple[str | None, ...],
    object_bins: NDArray[np.int64],
    observations: tuple[Label, ...],
    false_alarms: str = "as_counted",
) -> Channel:
    """The channel for objects that stand in given bins.

    Args:
        matrices: for their labels and labelling; the counts are not looked at.
        object_classes: the true class of each object; None is a place where nothing stands, which counts only
            in bins that hold no object.
        object_bins: (rows, objects) int64, the bin of each object in each row.
        observations: what the planner can be told, from `possible_observations` for these objects.
        false_alarms: one of `FALSE_ALARM_POLICIES`.

    Raises:
        InputError: a true label has no column.
    """
    real = np.array([name is not None for name in object_classes])
    columns = np.full(object_bins.shape, -1, dtype=np.int64)
    empty_column = matrices.labels.index(EMPTY)
    for j in range(len(object_classes)):
        if real[j]:
            columns[:, j] = _object_column(matrices, object_classes, object_bins, j)
        else:
            alone = ~_shares_bin(object_bins, j, real) & _first_in_bin(object_bins, j, ~real)
            columns[alone, j] = empty_column
    bins = object_bins
    if false_alarms == "ignore":
        columns[columns == empty_column] = -1
    elif false_alarms == "background" and real.any():
        beside = np.full((len(object_bins), int(real.sum())), -1, dtype=np.int64)
        for position, index in enumerate(np.flatnonzero(real)):
            beside[_first_in_bin(object_bins, int(index), real), position] = empty_column
        columns = np.concatenate([columns, beside], axis=1)
        bins = np.concatenate([bins, bins[:, real]], axis=1)
    drawn = (columns >= 0).any(axis=0)
    return Channel(matrices.labels, observations, bins[:, drawn], columns[:, drawn])


def _object_column(
    matrices: ConfusionMatrices,
    object_classes: tuple[str | None, ...],
    object_bins: NDArray[np.int64],
    j: int,
) -> NDArray[np.int64]:
    """Column object `j` is drawn from in each row; -1 where an earlier object of its bin speaks for it."""
    own = object_classes[j]
    assert own is not None
    if matrices.labelling != "proposition":
        return np.full(len(object_bins), matrices.column_of(frozenset({own})), dtype=np.int64)
    real = np.array([name is not None for name in object_classes])
    columns = np.full(len(object_bins), -1, dtype=np.int64)
    first = _first_in_bin(object_bins, j, real)
    together = (object_bins == object_bins[:, [j]]) & real
    for members in np.unique(together[first], axis=0):
        present = frozenset(
            name for name, inside in zip(object_classes, members, strict=True) if inside and name is not None
        )
        columns[first & (together == members).all(axis=1)] = matrices.column_of(present)
    return columns


def _shares_bin(object_bins: NDArray[np.int64], j: int, others: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Rows in which one of `others` stands in the bin of object `j`."""
    shares: NDArray[np.bool_] = (object_bins[:, others] == object_bins[:, [j]]).any(axis=1)
    return shares


def _first_in_bin(object_bins: NDArray[np.int64], j: int, kind: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Rows in which no earlier object of `kind` stands in the bin of object `j`."""
    earlier = kind & (np.arange(object_bins.shape[1]) < j)
    return ~_shares_bin(object_bins, j, earlier)


def possible_observations(
    labels: tuple[Label, ...],
    object_classes: tuple[str | None, ...],
    asked: frozenset[str],
    false_alarms: str = "as_counted",
) -> tuple[Label, ...]:
    """What a planner that asks about the classes `asked` can be told, the empty set first.

    Raises:
        UsageError: the false-alarm policy is unknown.
        LimitError: these are more than `LARGEST_OBSERVATION_COUNT` observations.
    """
    if false_alarms not in FALSE_ALARM_POLICIES:
        raise UsageError(f"unknown false-alarm policy {false_alarms!r}; known: {', '.join(FALSE_ALARM_POLICIES)}")
    real = sum(name is not None for name in object_classes)
    places = 0 if false_alarms == "ignore" else len(object_classes) - real
    draws = real + places + (real if false_alarms == "background" else 0)
    single = {label & asked for label in labels}
    found: set[Label] = {EMPTY}
    for _ in range(draws):
        wider = {old | new for old in found for new in single}
        if wider == found:
            break
        found = wider
        if len(found) > LARGEST_OBSERVATION_COUNT:
            raise LimitError(
                f"the planner asks about {len(asked)} classes and could be told more than "
                f"{LARGEST_OBSERVATION_COUNT} observations",
                hint="let the planner ask about fewer classes, or group classes before making the matrices",
            )
    return tuple(sorted(found, key=lambda label: (len(label), sorted(label))))
