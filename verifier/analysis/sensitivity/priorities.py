"""What to do about it: where to label more data, and which detection errors to fix first.

* **Label more here** (gradient x interval): to first order P is a sum over columns of g . mu, so under a Dirichlet
  posterior with mean m and concentration A (items plus prior) its variance is the sum over columns of

      (sum_y m_y g_y^2 - (sum_y m_y g_y)^2) / (A + 1)

  (the delta method; Gelman et al., Bayesian Data Analysis, 3rd ed., appendix A, for the covariance of a Dirichlet).
  Each column's share says where data would narrow P most. Per cell: how far P moves while the cell goes through
  its Clopper-Pearson interval and the other labels keep their proportions.
* **Fix this** (gradient x achievable improvement): P if a type of detection error never happened again and
  the correct one came instead. To first order, and exactly, by solving the chain again.

What a probability depends on: its derivative in every matrix cell.

Rates of a column sum to 1, so no cell changes alone. With g the derivatives of `adjoint.gradient`, moving mass d from
label a to label b of one column changes the probability by d (g[b] - g[a]), to first order. Only such differences
mean anything; the values of g themselves do not.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.intervals.intervals import Measured
from verifier.analysis.objective import Objective
from verifier.analysis.sensitivity.adjoint import expected_visits, gradient, state_values
from verifier.base.arrays import Floats, Ints
from verifier.base.documents import Count, Magnitude
from verifier.base.statistics import clopper_pearson

JEFFREYS = 0.5
"""Prior items per label of the Dirichlet that `column_shares` assumes by default."""
UNCHANGED = 1e-12
"""A probability that differs by no more is the same, solved twice."""
_BATCH_BYTES = 2**27


@dataclass(frozen=True, eq=False)
class ColumnShares:
    """Where more data would narrow the probability most; k columns, the largest share first.

    Only columns on which the probability depends are listed.

    Attributes:
        bins, columns: (k,) bin and true label.
        items: (k,) items that the column has.
        variance: (k,) its part of the variance of P under the posterior, to first order.
        share: (k,) the same as a share of the whole.
        p_range: (k,) how far P moves while one cell of the column goes through its interval, for the cell with the
            largest such p_range; `cell` (k,) is that cell's reported label.
    """

    bins: Ints
    columns: Ints
    items: Ints
    variance: Floats
    share: Floats
    p_range: Floats
    cell: Ints

    @property
    def deviation(self) -> float:
        """Standard deviation of P under the posterior, to first order."""
        return float(np.sqrt(self.variance.sum()))


def column_shares(
    sensitivity: Sensitivity, data: Measured, level: float = 0.95, prior: float = JEFFREYS
) -> ColumnShares:
    """Where more data would narrow the probability most.

    Columns that are held by convention are no data and have no share. In a column without items the posterior is
    the prior, whatever policy gives its rates.

    Args:
        sensitivity: derivatives at `data.rates`.
        level: of the Clopper-Pearson intervals, strictly between 0 and 1.
        prior: items per label, above 0.

    Raises:
        ValueError: `level` or `prior` out of range.
    """
    if not 0 < level < 1 or not 0 < prior < np.inf:
        raise ValueError(f"expected a level between 0 and 1 and a prior above 0, got {level} and {prior}")
    measured = ~data.fixed[sensitivity.columns[:, 0], sensitivity.columns[:, 1]]
    bins, columns = sensitivity.columns[measured].T
    counts, slopes = data.counts[bins, :, columns], sensitivity.slopes[bins, :, columns]
    items = counts.sum(axis=1)
    weight = counts + prior
    concentration = weight.sum(axis=1)
    mean = weight / concentration[:, np.newaxis]
    centred = slopes - (mean * slopes).sum(axis=1, keepdims=True)
    centred[np.ptp(slopes, axis=1) <= sensitivity.rounding[bins, columns]] = 0.0
    variance = (mean * centred**2).sum(axis=1) / (concentration + 1)
    low, high = clopper_pearson(counts, counts.sum(axis=1, keepdims=True), (1 - level) / 2)  # [0, 1] without items
    ranges = np.abs(_slope_alone(slopes, sensitivity.rates[bins, :, columns])) * (high - low)
    share = variance / max(variance.sum(), np.finfo(np.float64).tiny)
    p_range = ranges.max(axis=1)
    # Where two cells range alike, as with two labels, it is the correct one that people think of.
    correct = ranges[np.arange(len(columns)), columns] >= p_range * (1 - 1e-9)
    cell = np.where(correct, columns, np.argmax(ranges, axis=1))
    order = np.lexsort((columns, bins, -variance))
    order = order[variance[order] > 0]
    return ColumnShares(
        bins[order], columns[order], items[order], variance[order], share[order], p_range[order], cell[order]
    )


def _slope_alone(slopes: Floats, rates: Floats) -> Floats:
    """(k, labels) derivative of P in a cell whose column keeps the proportions of its other labels.

    Where no other label has any mass there are no proportions; the steepest move away counts then.
    """
    rest = 1 - rates
    mean = (rates * slopes).sum(axis=1, keepdims=True)
    away = np.abs(slopes[:, :, np.newaxis] - slopes[:, np.newaxis, :]).max(axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        kept: Floats = (slopes - mean) / rest
    return np.where(rest > 0, kept, away)


@dataclass(frozen=True)
class FixRecord:
    """What P would be if one type of detection error were correct instead; `jumps` where P may jump on the way."""

    bin: Count
    true: str
    reported: str
    rate: Magnitude
    first_order: float
    probability: Magnitude
    jumps: bool


@dataclass(frozen=True)
class Fixes:
    """What correcting detection errors would do to one probability.

    Attributes:
        single: one type of detection error each, by what it changes in the wanted direction, the most first; only
            those that change P by more than `UNCHANGED`.
        left_out: so many further kinds were not solved for; to first order they change less.
        perfect: P when every report is correct: what the planner makes of perfect perception.
    """

    single: tuple[FixRecord, ...]
    left_out: int
    perfect: float


def fixes(
    objective: Objective,
    sensitivity: Sensitivity,
    data: Measured,
    start: int,
    names: Sequence[str],
    *,
    raising: bool = True,
    most: int = 1000,
) -> Fixes:
    """What correcting each type of detection error would do, all solved in one batch.

    Args:
        objective, sensitivity, start: what was differentiated.
        data: its columns held by convention are correct by convention and are left out.
        names: texts of the labels.
        raising: whether a larger P is wanted.
        most: types of detection error to solve for; those with the largest effect to first order are taken.
    """
    bins, columns = sensitivity.columns[~data.fixed[sensitivity.columns[:, 0], sensitivity.columns[:, 1]]].T
    wrong = sensitivity.rates[bins, :, columns] > 0
    wrong[np.arange(len(columns)), columns] = False
    at, predicted = np.nonzero(wrong)
    cell = (bins[at], predicted, columns[at])
    gain = sensitivity.against(np.arange(sensitivity.rates.shape[1]))
    first_order = sensitivity.rates[cell] * (0.0 - gain[cell])
    chosen = np.argsort(-np.abs(first_order), kind="stable")[:most]
    cells = np.column_stack([bins[at], predicted, columns[at]])[chosen].tolist()
    probability = corrected_probabilities(objective, sensitivity.rates, [[tuple(one)] for one in cells], start)
    perfect = np.broadcast_to(np.eye(sensitivity.rates.shape[1]), sensitivity.rates.shape)
    best = float(objective.probabilities(perfect[np.newaxis]).probability[0, start])
    listed = [
        FixRecord(
            b,
            names[true],
            names[label],
            float(sensitivity.rates[b, label, true]),
            change,
            p,
            bool(sensitivity.jumps[b, true, true]),
        )
        for b, label, true, change, p in zip(
            *(array[chosen].tolist() for array in (*cell, first_order)), probability.tolist(), strict=True
        )
    ]
    listed = [fix for fix in listed if abs(fix.probability - sensitivity.probability) > UNCHANGED]
    listed.sort(key=lambda fix: fix.probability, reverse=raising)
    return Fixes(tuple(listed), len(at) - len(chosen), best)


def corrected_probabilities(
    objective: Objective, rates: Floats, sets: Sequence[Collection[tuple[int, int, int]]], start: int
) -> Floats:
    """(k,) P from an initial state with each of k sets of types of detection errors corrected, solved again.

    Args:
        objective: of P.
        rates: (bins, predicted, true), every cell a number.
        sets: (bin, predicted, true) of each kind; its mass moves to the correct label.
        start: number of the initial state.
    """
    chunk = max(1, _BATCH_BYTES // rates.nbytes)
    parts = [np.zeros(0)]
    for low in range(0, len(sets), chunk):
        some = sets[low : low + chunk]
        batch = np.repeat(rates[np.newaxis], len(some), axis=0)
        for one, kinds in zip(batch, some, strict=True):
            for at, predicted, true in kinds:
                one[at, true, true] += one[at, predicted, true]
                one[at, predicted, true] = 0.0
        parts.append(objective.probabilities(batch).probability[:, start])
    return np.concatenate(parts)


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
    slopes = gradient(alone, values, expected_visits(alone, values))
    probability = float(values.value[alone.product.start[0]])
    columns = objective.skeleton.columns_needed()
    return Sensitivity(probability, values.rates, slopes.cells[0], slopes.jumps, columns)


@dataclass(frozen=True)
class MoveRecord:
    """The slope of P as mass of a column moves from one report to another, and the rates of both."""

    bin: Count
    true: str
    from_: str
    to: str
    slope: float
    rate_from: Magnitude
    rate_to: Magnitude
    jumps: bool


def moves(sensitivity: Sensitivity, most: int, names: Sequence[str]) -> tuple[MoveRecord, ...]:
    """The `most` moves with the steepest slopes, and before them those at which P may jump, with names of labels.

    Each pair of labels of a column is listed once, and not at all where moving mass changes nothing.
    """
    bins, columns = sensitivity.columns.T
    slopes, rates, jumps = (
        sensitivity.slopes[bins, :, columns],
        sensitivity.rates[bins, :, columns],
        sensitivity.jumps[bins, :, columns],
    )
    rise = slopes[:, np.newaxis, :] - slopes[:, :, np.newaxis]  # (column, source, target)
    rise[np.abs(rise) <= sensitivity.rounding[bins, columns][:, np.newaxis, np.newaxis]] = 0.0
    jump = np.logical_or(jumps[:, np.newaxis, :], jumps[:, :, np.newaxis])
    labels = np.arange(slopes.shape[1])
    first = labels[:, np.newaxis] < labels[np.newaxis, :]
    listed = (rise > 0) | ((rise == 0) & jump & first)
    column, source, target = np.nonzero(listed)
    order = np.lexsort((-rise[listed], ~jump[listed]))[:most]
    return tuple(
        MoveRecord(
            int(bins[k]),
            names[columns[k]],
            names[a],
            names[b],
            float(rise[k, a, b]),
            float(rates[k, a]),
            float(rates[k, b]),
            bool(jump[k, a, b]),
        )
        for k, a, b in zip(column[order].tolist(), source[order].tolist(), target[order].tolist(), strict=True)
    )
