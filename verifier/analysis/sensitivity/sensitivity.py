"""What a probability depends on: its derivative in every matrix cell.

Rates of a column sum to 1, so no cell changes alone. With g the derivatives of `adjoint.gradient`, moving mass d from
label a to label b of one column changes the probability by d (g[b] - g[a]), to first order. Only such differences
mean anything; the values of g themselves do not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.objective import Objective
from verifier.analysis.sensitivity.adjoint import expected_visits, gradient, state_values
from verifier.base.arrays import Floats, Ints

ROUNDING = 1e-12
"""Relative error of a derivative that is put down to rounding."""


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Derivatives of the probability from one initial state.

    Attributes:
        probability: from that initial state, at `rates`.
        rates: (bins, predicted, true) the matrices.
        slopes: (bins, predicted, true) partial derivatives; only differences within a column mean anything. 0 in
            columns that the chain does not draw from.
        jumps: (bins, predicted, true) bool, cells of rate 0 at which the probability may jump.
        columns: (k, 2) bin and true label of the columns that the chain draws from.
    """

    probability: float
    rates: Floats
    slopes: Floats
    jumps: NDArray[np.bool_]
    columns: Ints

    def against(self, labels: Ints) -> Floats:
        """(bins, predicted, true) what a unit of mass changes that moves from label `labels[true]` to each label.

        Changes that cannot be told from rounding are 0.
        """
        change: Floats = self.slopes - self.slopes[:, labels, np.arange(len(labels))][:, np.newaxis, :]
        return np.where(np.abs(change) > self.rounding[:, np.newaxis, :], change, 0.0)

    @property
    def rounding(self) -> Floats:
        """(bins, true) differences of slopes of a column up to which they may be rounding."""
        largest: Floats = np.abs(self.slopes).max(axis=1)
        return ROUNDING * largest


def sensitivity(objective: Objective, rates: Floats, start: int) -> Sensitivity:
    """Derivatives of the probability from one initial state in every matrix cell, from one adjoint solve.

    Args:
        objective: formula and skeleton.
        rates: (bins, predicted, true); NaN in columns that the chain does not need.
        start: number of the initial state.

    Raises:
        EngineError, LimitError: from deciding the bottom components.
    """
    alone = replace(objective, product=replace(objective.product, start=objective.product.start[[start]]))
    values = state_values(alone, rates)
    found = gradient(alone, values, expected_visits(alone, values))
    probability = float(values.value[alone.product.start[0]])
    columns = objective.skeleton.columns_needed()
    return Sensitivity(probability, values.rates, found.cells[0], found.jumps, columns)


@dataclass(frozen=True)
class Move:
    """Mass of a column that moves from one reported label to another, in the direction that raises P.

    Attributes:
        bin, true: the column.
        source, target: reported labels.
        slope: how much a unit of mass raises P, to first order; not negative.
        available: rate of `source`: so much can move.
        returning: rate of `target`: so much can move back, and lower P.
        jumps: one of the two has rate 0, and P may jump as soon as it has any other.
    """

    bin: int
    true: int
    source: int
    target: int
    slope: float
    available: float
    returning: float
    jumps: bool


def moves(found: Sensitivity, most: int) -> tuple[Move, ...]:
    """The `most` moves with the steepest slopes, and before them those at which P may jump.

    Each pair of labels of a column is listed once, and not at all where moving mass changes nothing.
    """
    bins, columns = found.columns.T
    slopes, rates, jumps = (
        found.slopes[bins, :, columns],
        found.rates[bins, :, columns],
        found.jumps[bins, :, columns],
    )
    rise = slopes[:, np.newaxis, :] - slopes[:, :, np.newaxis]  # (column, source, target)
    rise[np.abs(rise) <= found.rounding[bins, columns][:, np.newaxis, np.newaxis]] = 0.0
    jump = np.logical_or(jumps[:, np.newaxis, :], jumps[:, :, np.newaxis])
    labels = np.arange(slopes.shape[1])
    first = labels[:, np.newaxis] < labels[np.newaxis, :]
    listed = (rise > 0) | ((rise == 0) & jump & first)
    column, source, target = np.nonzero(listed)
    order = np.lexsort((-rise[listed], ~jump[listed]))[:most]
    return tuple(
        Move(
            int(bins[k]),
            int(columns[k]),
            a,
            b,
            float(rise[k, a, b]),
            float(rates[k, a]),
            float(rates[k, b]),
            bool(jump[k, a, b]),
        )
        for k, a, b in zip(column[order].tolist(), source[order].tolist(), target[order].tolist(), strict=True)
    )
