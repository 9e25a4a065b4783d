"""What a single matrix of a region attains: a search from within, to hold against proven bounds.

A bound on all matrices of a region is worth as much as it is close to what one of them attains. The search climbs
from nature's common choices: the adjoint gradient says towards which vertex of the region the probability changes
fastest (Frank and Wolfe, An algorithm for quadratic programming, 1956); tried are that vertex, points on the way, and
the present matrix with the columns exchanged one by one. Every matrix tried is evaluated in full, on the graph that
it has itself, so what is reported is attained, if not always the best.

One side of the bounds on a probability, when every state may have a matrix of its own.

The formula fails or holds. Nature, who wants the one that `side` names, can earn it in two ways: by reaching the
obligation `false` (or `true`), or by staying forever in an end component in which she can make it fail (or hold).
Every run ends in an end component with probability 1, so

    greatest probability that the formula fails = greatest probability of reaching such a component, or `false`,

and the same for holding: both bounds are greatest probabilities of reaching a target. The end components outside the
target are those in which staying earns nothing. The least probability of the formula is 1 minus the greatest one of
failing.

Where the world decides, world and matrix are on the same side of one of the two bounds: the lower one of the least
probability, and the upper one of the greatest. Of the other side a bound holds for every matrix if it holds while the
world keeps to some strategy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.objective import Objective
from verifier.analysis.robust.graph import decided_components
from verifier.analysis.robust.optimum import Optimum
from verifier.analysis.robust.policy import Nodes, make_nodes
from verifier.analysis.robust.region import Region
from verifier.analysis.robust.solve import Reached, greatest_reach
from verifier.analysis.robust.staying import Provable
from verifier.analysis.robust.step import UncertainStep, greatest_masses, inner_masses, uncertain_step
from verifier.analysis.sensitivity.adjoint import expected_visits, gradient, state_values
from verifier.base.arrays import Floats, Ints, Mask, marked
from verifier.base.errors import EngineError, NoAnswerError
from verifier.base.graphs import reachable

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


@dataclass(frozen=True, eq=False)
class OneSide:
    """What is known of one side of the bounds on a probability.

    Attributes:
        bounds: (m,) proven.
        attained: what single matrices have; NaN where nobody asked.
        conservative: whether the bounds may be wider than need be.
        certificates: the documents of what proves them, where they were asked for.
    """

    bounds: Floats
    attained: Attained
    conservative: bool
    certificates: tuple[dict[str, Any], ...] = ()


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
        moving = np.flatnonzero(sign * (known.value - better.value) > _GAIN)
        known = better
        if len(moving) == 0:
            break
    return known


def best_of(objective: Objective, region: Region, known: Attained | None, masses: Floats, sign: float) -> Attained:
    """For each initial state the best of what is known, if anything, and of (c, bins, groups, true) matrices.

    Matrices whose chain is too close to singular for doubles are passed over; without any other, values are NaN.
    """
    evaluated = _evaluated(objective, region, masses)
    tried = evaluated if known is None else [(known.value, known.error, known.masses), *evaluated]
    if not tried:
        return nothing_attained(objective, region)
    value, error, matrices = (np.array(column) for column in zip(*tried, strict=True))
    choice = np.argmin(np.where(np.isnan(value), np.inf, sign * value), axis=0)
    every = np.arange(value.shape[1])
    return Attained(value[choice, every], error[choice, every], matrices[choice, every])


def nothing_attained(objective: Objective, region: Region) -> Attained:
    """NaN for each initial state."""
    nothing = np.full(len(objective.product.start), np.nan)
    return Attained(nothing, nothing, np.full((len(nothing), *region.lower.shape), np.nan))


def _evaluated(objective: Objective, region: Region, masses: Floats) -> list[tuple[Floats, Floats, Floats]]:
    """Of each matrix that can be evaluated the (m,) values, their errors, and its masses m times."""
    count = len(objective.product.start)
    try:
        result = objective.probabilities(rates_of(region, masses))
    except (EngineError, NoAnswerError):
        if len(masses) == 1:
            return []
        return [array for matrix in masses for array in _evaluated(objective, region, matrix[None])]
    return [
        (value, error, np.broadcast_to(matrix, (count, *matrix.shape)))
        for value, error, matrix in zip(result.probability, result.error_bound, masses, strict=True)
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
        except (EngineError, NoAnswerError):  # too close to singular; there is no gradient to follow
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


Side: TypeAlias = Literal["lower", "upper"]


@dataclass(frozen=True, eq=False)
class SideBound:
    """A proven bound on one side.

    Attributes:
        objective: that it is about: the one that was asked for, or with part of the choices of a world that decides.
        side: "lower": on the formula's failing; "upper": on its holding.
        step, nodes: nature's choices and the end components.
        target: (p,) bool, where nature has won.
        reached: the greatest probability of getting there, bounded from above in every product state.
        conservative: whether nature may have been given too much: a component that matters counts as won because that
            could not be ruled out, or parts were merged (`Reached.merged`).
    """

    objective: Objective
    side: Side
    region: Region
    step: UncertainStep
    nodes: Nodes
    target: Mask
    reached: Reached
    conservative: bool


def bound_sides(
    objective: Objective, region: Region, sides: tuple[Side, ...], starts: Sequence[Ints] = ()
) -> list[SideBound]:
    """The given sides of the bounds over a region.

    Args:
        objective: the formula on the skeleton.
        region: its matrices.
        sides: which.
        starts: sets of product states, for `Reached.steps`.

    Raises:
        EngineError, LimitError: from deciding components and solving.
        ValueError: the region does not fit the objective.
    """
    result: list[SideBound] = []
    for side in sides:
        own = _with_the_world(objective, region, side)
        if not result or own is not result[-1].objective:
            step = uncertain_step(own, region)
            components = decided_components(own, step, Provable(own, region))
            nodes = make_nodes(step, components.of)
            begun = marked(step.state_count, own.product.start)
            met = reachable(step.state_count, nodes.sources, nodes.targets, begun)
        target, doubtful = components.won(holds=side == "upper")
        # What is bad for one side is good for the other.
        guide = 1 - result[-1].reached.value if result and result[-1].objective is own else None
        reached = greatest_reach(step, nodes, target, starts, guide)
        conservative = reached.merged or bool(np.any(doubtful & met))
        result.append(SideBound(own, side, region, step, nodes, target, reached, conservative))
    return result


def _with_the_world(objective: Objective, region: Region, side: Side) -> Objective:
    """What a side is bounded on: where the world decides and is on the other side, it keeps to one strategy, its best
    for a matrix in the middle of the region. No more is needed: against that strategy it can only fare worse."""
    if not isinstance(objective, Optimum) or objective.ranges(side):
        return objective
    return objective.settled(rates_of(region, middle_of(region)))
