"""What a single matrix of a region attains: a search from within, to hold against proven bounds.

A bound on all matrices of a region is worth as much as it is close to what one of them attains. The search climbs
from nature's common choices: the adjoint gradient says towards which vertex of the region the probability changes
fastest (Frank and Wolfe, An algorithm for quadratic programming, 1956); tried are that vertex, points on the way, and
the present matrix with the columns exchanged one by one. Every matrix tried is evaluated in full, on the graph that
it has itself, so what is reported is attained, if not always the best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verifier.analysis.intervals.betting import UNIT
from verifier.analysis.objective import Objective
from verifier.analysis.robust.region import Region
from verifier.analysis.robust.step import greatest_masses, inner_masses
from verifier.analysis.sensitivity.adjoint import expected_visits, gradient, state_values
from verifier.base.arrays import Floats, Ints
from verifier.base.errors import EngineError, NoAnswerError

MOST_ROUNDS = 12
_ON_THE_WAY = (1.0, 0.5, 0.25, 0.125, 0.0625)
_NUMBERS_FOR_SINGLE_COLUMNS = 2_000_000
_GAIN = 1e-12


@dataclass(frozen=True, eq=False)
class Attained:
    """The best matrices found, one for each of m initial states.

    Attributes:
        value: (m,) probability of the formula under the initial state's matrix.
        error: (m,) bound on the numerical error of `value`.
        masses: (m, bins, groups, true) rates of each group in billionths; columns sum to 10^9.
    """

    value: Floats
    error: Floats
    masses: Floats


def climbed(objective: Objective, region: Region, known: Attained, sign: float) -> Attained:
    """Better matrices than the known ones, as far as they are found: a smaller value of sign * probability.

    Args:
        objective: of the m initial states.
        region: its matrices.
        known: where to start.
        sign: 1 for the least probability, -1 for the greatest.
    """
    moving = np.flatnonzero(np.isfinite(known.value))
    for _ in range(MOST_ROUNDS):
        tried = _candidates(objective, region, known.masses[moving], moving, sign)
        better = best_of(objective, region, known, tried, sign)
        moving = np.flatnonzero(sign * better.value < sign * known.value - _GAIN)
        known = better
        if len(moving) == 0:
            break
    return known


def best_of(objective: Objective, region: Region, known: Attained | None, masses: Floats, sign: float) -> Attained:
    """For each initial state the best of what is known, if anything, and of (c, bins, groups, true) matrices.

    Matrices whose chain is too close to singular for doubles are passed over; without any other, values are NaN.
    """
    found = _evaluated(objective, region, masses)
    tried = found if known is None else [(known.value, known.error, known.masses), *found]
    if not tried:
        nothing = np.full(len(objective.product.start), np.nan)
        return Attained(nothing, nothing, np.full((len(nothing), *region.lower.shape), np.nan))
    value, error, matrices = (np.array(each) for each in zip(*tried, strict=True))
    choice = np.argmin(np.where(np.isnan(value), np.inf, sign * value), axis=0)
    every = np.arange(value.shape[1])
    return Attained(value[choice, every], error[choice, every], matrices[choice, every])


def _evaluated(objective: Objective, region: Region, masses: Floats) -> list[tuple[Floats, Floats, Floats]]:
    """Of each matrix that can be evaluated the (m,) values, their errors, and its masses m times."""
    count = len(objective.product.start)
    try:
        found = objective.probabilities(rates_of(region, masses))
    except (EngineError, NoAnswerError):
        if len(masses) == 1:
            return []
        return [each for matrix in masses for each in _evaluated(objective, region, matrix[None])]
    return [
        (value, error, np.broadcast_to(matrix, (count, *matrix.shape)))
        for value, error, matrix in zip(found.probability, found.error_bound, masses, strict=True)
    ]


def rates_of(region: Region, masses: Floats) -> Floats:
    """(..., bins, labels, true) rates: the mass of a group stands on its first label, for none tells them apart."""
    first = np.unique(region.group, return_index=True)[1]
    shape = (*masses.shape[:-2], len(region.group), masses.shape[-1])
    rates = np.zeros(shape)
    rates[..., first, :] = masses / UNIT
    return rates


def middle_of(region: Region) -> Floats:
    """(bins, groups, true) masses of the region, above 0 wherever that is possible."""
    return per_column(inner_masses(*_columns(region)), region)


def _candidates(objective: Objective, region: Region, masses: Floats, starts: Ints, sign: float) -> Floats:
    """(c, bins, groups, true) masses to try for the k starts that are at (k, bins, groups, true) masses."""
    distinct, owner = np.unique(masses, axis=0, return_inverse=True)
    first = np.unique(region.group, return_index=True)[1]
    result = []
    for number, here in enumerate(distinct):
        try:
            values = state_values(objective, rates_of(region, here))
            visits = expected_visits(objective, values)[starts[owner.ravel() == number]]
        except EngineError:  # too close to singular; there is no gradient to follow
            continue
        for cells in gradient(objective, values, visits).cells[:, :, first]:
            slope = -sign * cells.swapaxes(1, 2).reshape(-1, region.group_count)
            vertex = per_column(greatest_masses(slope, *_columns(region)).astype(np.float64), region)
            result += [here + part * (vertex - here) for part in _ON_THE_WAY]
            result += _single_columns(objective, region, here, vertex)
    return np.unique(np.array(result), axis=0) if result else np.zeros((0, *region.lower.shape))


def _single_columns(objective: Objective, region: Region, here: Floats, vertex: Floats) -> list[Floats]:
    columns = np.argwhere(region.needed & np.any(here != vertex, axis=1))
    if len(columns) * objective.state_count > _NUMBERS_FOR_SINGLE_COLUMNS:
        return []
    result = []
    for index, column in columns.tolist():
        exchanged = here.copy()
        exchanged[index, :, column] = vertex[index, :, column]
        result.append(exchanged)
    return result


def _columns(region: Region) -> tuple[Ints, Ints]:
    groups = region.group_count
    return region.lower.swapaxes(1, 2).reshape(-1, groups), region.upper.swapaxes(1, 2).reshape(-1, groups)


def per_column(masses: Floats, region: Region) -> Floats:
    """(bins, groups, true) masses from (bins * true, groups)."""
    bins, groups, true = region.lower.shape
    return masses.reshape(bins, true, groups).swapaxes(1, 2)
