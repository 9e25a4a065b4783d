"""Values of all product states, and the derivative of a probability in every matrix cell, from one adjoint solve.

With transient states T, transition probabilities Q between them and probabilities b of entering acceptance,
x = Q x + b is the chance of meeting the formula. For an initial state i, the expected visits n = (I - Q^T)^-1 e_i
say how often each state is passed, and a change dP of the chain changes the chance by (Baier and Katoen, Principles
of Model Checking, section 10.1; for the adjoint, any text on Markov reward sensitivity)

    dx_i = sum over states s, t of  n[s] dP[s, t] x[t].

The probabilities of the chain are polynomials in the matrix cells, one factor for each independent draw of the
channel, so the chain rule runs through the draws, forwards and backwards. A cell whose rate is 0 counts too: its
transitions are not in the chain, but the value of where they lead is known, because all product states are solved.

Where a state that is never left would be left if a cell had any rate above 0, the probability may *jump* there:
it has no derivative, and `Gradient.jumps` says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, identity
from scipy.sparse.linalg import SuperLU, splu

from verifier.analysis.objective import Objective
from verifier.checking.graphs import Mask, coreachable, reachable
from verifier.checking.plan import decide
from verifier.systems.channel import Channel

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Values:
    """All product states under one family of matrices.

    Attributes:
        rates: (bins, predicted, true) the matrices; columns that the chain does not need may hold anything finite.
        value: (p,) probability of meeting what remains of the formula.
        recurrent: (p,) bool, states of bottom components, `ACCEPT` and `REJECT` included.
        sources, targets: (q,) transitions of positive probability.
        weight: (q,) their probabilities.
    """

    rates: Floats
    value: Floats
    recurrent: Mask
    sources: Ints
    targets: Ints
    weight: Floats


@dataclass(frozen=True, eq=False)
class Gradient:
    """Derivatives of probabilities in the matrix cells.

    Attributes:
        cells: (k, bins, predicted, true) partial derivatives, each cell taken as free. On the simplex only
            differences within a column mean anything: moving mass d from label a to label b changes the
            probability by d * (cells[b] - cells[a]).
        jumps: (bins, predicted, true) bool, cells with rate 0 in which a probability may jump.
    """

    cells: Floats
    jumps: Mask


def state_values(objective: Objective, rates: Floats) -> Values:
    """Solve the product for one family of matrices.

    Args:
        objective: formula and skeleton.
        rates: (bins, predicted, true); NaN in columns that the chain does not need.

    Raises:
        EngineError, LimitError: from deciding the bottom components.
    """
    skeleton, product = objective.skeleton, objective.product
    entries = skeleton.entry_values(rates)
    probability = entries[skeleton.entry]
    n = product.state_count
    everywhere = replace(product, start=np.arange(n))
    graph = decide(everywhere, probability > 0).graph
    zero = ~coreachable(n, graph.sources, graph.targets, graph.accepting)
    one = ~coreachable(n, graph.sources, graph.targets, graph.rejecting)
    value = np.where(one, 1.0, 0.0)
    weight = probability[graph.edge]
    open_states = np.flatnonzero(~zero & ~one)
    if len(open_states):
        solver, inside, number = _equations(n, open_states, graph.sources, graph.targets, weight)
        leaving = inside < 0
        rows = number[graph.sources]
        enters = (rows >= 0) & leaving
        right = np.bincount(rows[enters], weight[enters] * value[graph.targets[enters]], len(open_states))
        value[open_states] = solver.solve(right)
    known = np.where(np.isnan(rates), 1 / rates.shape[-2], rates)
    return Values(known, value, graph.accepting | graph.rejecting, graph.sources, graph.targets, weight)


def expected_visits(objective: Objective, values: Values) -> Floats:
    """(m, p) expected number of visits to each transient product state from each initial state; 0 elsewhere."""
    n, starts = objective.state_count, objective.product.start
    begun = np.zeros(n, dtype=bool)
    begun[starts] = True
    passed = reachable(n, values.sources, values.targets, begun) & ~values.recurrent
    states = np.flatnonzero(passed)
    visits = np.zeros((len(starts), n))
    if len(states):
        solver, _, number = _equations(n, states, values.sources, values.targets, values.weight)
        moving = np.flatnonzero(passed[starts])
        right = np.zeros((len(states), len(moving)))
        right[number[starts[moving]], np.arange(len(moving))] = 1
        visits[np.ix_(moving, states)] = solver.solve(right, "T").T  # type: ignore[call-overload]
    return visits


def gradient(objective: Objective, values: Values, visits: Floats) -> Gradient:
    """Derivative of the probability from each initial state in every matrix cell.

    Args:
        objective, values: what was solved.
        visits: (k, p) expected visits; rows may be any weighting of initial states.
    """
    channel = objective.skeleton.channel
    rows, width = len(channel.bins), len(channel.observations)
    drawing = np.flatnonzero(objective.row >= 0)
    place = objective.row[drawing]
    behind = values.value[objective.following[drawing]]
    adjoint = np.zeros((len(visits), rows, width))
    for k, passed in enumerate(visits[:, drawing]):
        for observation in range(width):
            adjoint[k, :, observation] = np.bincount(place, passed * behind[:, observation], rows)
    cells = through_draws(channel, values.rates, adjoint)
    return Gradient(cells, _jumps(objective, values))


def through_draws(channel: Channel, rates: Floats, adjoint: Floats) -> Floats:
    """The chain rule from observations back to matrix cells.

    Args:
        channel: the draws behind each row.
        rates: (bins, predicted, true).
        adjoint: (k, rows, observations) derivative in the probability of each observation.

    Returns:
        (k, bins, predicted, true) derivative in each cell.
    """
    told = told_by(channel)
    union = unions(channel)
    by_column = np.swapaxes(rates, -1, -2)
    draws = channel.bins.shape[1]
    before = np.zeros((draws + 1, len(channel.bins), len(channel.observations)))
    before[0, :, 0] = 1
    for d in range(draws):
        drawn = by_column[channel.bins[:, d], channel.columns[:, d]]
        extended = np.zeros_like(before[d])
        for label, now in enumerate(told):
            for old in range(len(channel.observations)):
                extended[:, union[old, now]] += before[d, :, old] * drawn[:, label]
        before[d + 1] = np.where(channel.columns[:, d, None] >= 0, extended, before[d])
    result = np.zeros((*rates.shape, len(adjoint)))
    after = adjoint
    for d in reversed(range(draws)):
        bins, columns = channel.bins[:, d], channel.columns[:, d]
        real = columns >= 0
        drawn = by_column[bins, columns]
        earlier = np.zeros_like(after)
        for label, now in enumerate(told):
            continued = after[:, :, union[:, now]]
            each = (before[d] * continued).sum(axis=-1)
            np.add.at(result, (bins[real], np.full(real.sum(), label), columns[real]), each[:, real].T)
            earlier += drawn[:, label, None] * continued
        after = np.where(real[:, None], earlier, after)
    return np.moveaxis(result, -1, 0)


def told_by(channel: Channel) -> list[int]:
    """For each label the number of the observation that it alone is told as."""
    asked = frozenset().union(*channel.observations)
    return [channel.observations.index(label & asked) for label in channel.labels]


def unions(channel: Channel) -> Ints:
    """(observations, observations) number of the union; -1 where it is no observation."""
    known = {each: k for k, each in enumerate(channel.observations)}
    return np.array([[known.get(a | b, -1) for b in channel.observations] for a in channel.observations])


def _equations(n: int, states: Ints, sources: Ints, targets: Ints, weight: Floats) -> tuple[SuperLU, Ints, Ints]:
    """A factorisation of I - Q on `states`; the place of each transition's target among them, or -1 where it does
    not lead from one of them to another; and the place of each product state, or -1."""
    number = np.full(n, -1, dtype=np.int64)
    number[states] = np.arange(len(states))
    inside = np.where(number[sources] >= 0, number[targets], -1)
    kept = inside >= 0
    size = len(states)
    matrix = csc_array((weight[kept], (number[sources[kept]], inside[kept])), shape=(size, size))
    return splu((identity(size, format="csc") - matrix).tocsc()), inside, number


def _jumps(objective: Objective, values: Values) -> Mask:
    """(bins, predicted, true) cells of rate 0 in which a probability may jump.

    It does when a rate above 0 there, however small, lets runs go from what is a bottom component without it to one
    of the other value. Which bottom components there are with it is decided anew for every cell in question.
    """
    rates, n, skeleton = values.rates, objective.state_count, objective.skeleton
    channel = skeleton.channel
    rows = np.unique(objective.row[values.recurrent & (objective.row >= 0)])
    used = np.zeros((1, len(channel.bins), len(channel.observations)))
    used[0, rows] = 1
    result = np.zeros(rates.shape, dtype=bool)
    for cell in np.argwhere((through_draws(channel, rates, used)[0] > 0) & (rates == 0)).tolist():
        touched = rates.copy()
        touched[tuple(cell)] = 1.0
        positive = skeleton.entry_values(touched)[skeleton.entry] > 0
        graph = decide(objective.product, positive).graph
        accepts = coreachable(n, graph.sources, graph.targets, graph.accepting)
        rejects = coreachable(n, graph.sources, graph.targets, graph.rejecting)
        left = np.where(values.value == 1, rejects, accepts)
        result[tuple(cell)] = np.any(left[values.recurrent & graph.reached])
    return result
