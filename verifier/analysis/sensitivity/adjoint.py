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

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.sparse import csc_array, csr_array, diags_array, eye_array
from scipy.sparse.linalg import splu

from verifier.analysis.objective import Objective
from verifier.base.arrays import Floats, Ints, Mask, marked
from verifier.base.errors import EngineError
from verifier.base.graphs import components, coreachable, reachable
from verifier.checking.elimination import Band
from verifier.checking.plan import decide
from verifier.systems.channel import Channel

LARGEST_BLOCK = 64
"""States of a strongly connected component up to which the order of the components is kept in a factorisation."""
_RARE, _MOST_ADDED = 2.0**-17, 2**23
"""Where a step within or out of a component is so rare, additions alone are made, if so many numbers suffice."""


@dataclass(frozen=True, eq=False)
class Values:
    """All product states under one family of matrices.

    Attributes:
        rates: (bins, predicted, true) the matrices; columns that the chain does not need may hold anything finite.
        value: (p,) probability of meeting what remains of the formula.
        failure: (p,) probability of not meeting it. Solved for on its own, not as 1 - value, so that a small one
            keeps its digits.
        recurrent: (p,) bool, states of bottom components, `ACCEPT` and `REJECT` included.
        sources, targets: (q,) transitions of positive probability.
        weight: (q,) their probabilities.
    """

    rates: Floats
    value: Floats
    failure: Floats
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
    decided = np.column_stack([one, zero]).astype(np.float64)
    weight = probability[graph.edge]
    open_states = np.flatnonzero(~zero & ~one)
    if len(open_states):
        equations = Equations(n, open_states, graph.sources, graph.targets, weight)
        rows = equations.number[graph.sources]
        enters = rows >= 0  # what is not decided adds nothing
        behind = weight[enters, None] * decided[graph.targets[enters]]
        right = [np.bincount(rows[enters], column, len(open_states)) for column in behind.T]
        decided[equations.states] = equations.solve(np.column_stack(right))
    known = np.where(np.isnan(rates), 1 / rates.shape[-2], rates)
    value, failure = decided.T.copy()
    return Values(known, value, failure, graph.accepting | graph.rejecting, graph.sources, graph.targets, weight)


def expected_visits(objective: Objective, values: Values, chosen: Sequence[int] | None = None) -> Floats:
    """(m, p) expected number of visits to each transient product state from each initial state; 0 elsewhere.

    With `chosen`, from these initial states only (their numbers): (len(chosen), p).
    """
    n = objective.state_count
    starts = objective.product.start if chosen is None else objective.product.start[list(chosen)]
    passed = reachable(n, values.sources, values.targets, marked(n, starts)) & ~values.recurrent
    states = np.flatnonzero(passed)
    visits = np.zeros((len(starts), n))
    if len(states):
        equations = Equations(n, states, values.sources, values.targets, values.weight)
        moving = np.flatnonzero(passed[starts])
        right = np.zeros((len(states), len(moving)))
        right[equations.number[starts[moving]], np.arange(len(moving))] = 1
        visits[np.ix_(moving, equations.states)] = equations.solve(right, transposed=True).T
    return visits


def gradient(objective: Objective, values: Values, visits: Floats) -> Gradient:
    """Derivative of the probability from each initial state in every matrix cell.

    Args:
        objective, values: what was solved.
        visits: (k, p) expected visits; rows may be any weighting of initial states.
    """
    return Gradient(flow_derivatives(objective, values.rates, visits, values.value), _jumps(objective, values))


def flow_derivatives(objective: Objective, rates: Floats, visits: Floats, worth: Floats) -> Floats:
    """Derivative in every matrix cell of what flows, in one step of each visit, into states of some worth.

    Args:
        rates: (bins, predicted, true), every cell a number.
        visits: (k, p) how often each product state is left.
        worth: (p,) what entering each product state is worth.

    Returns:
        (k, bins, predicted, true). Times the rate of a cell it is what flows through that cell, as every draw is
        linear in its column.
    """
    channel = objective.skeleton.channel
    rows, width = len(channel.bins), len(channel.observations)
    drawing = np.flatnonzero(objective.row >= 0)
    place = objective.row[drawing]
    behind = objective.mean_behind(worth, drawing)
    adjoint = np.zeros((len(visits), rows, width))
    for k, passed in enumerate(visits[:, drawing]):
        for observation in range(width):
            adjoint[k, :, observation] = np.bincount(place, passed * behind[:, observation], rows)
    return through_draws(channel, rates, adjoint)


def through_draws(channel: Channel, rates: Floats, adjoint: Floats) -> Floats:
    """The chain rule from observations back to matrix cells.

    Args:
        channel: the draws behind each row.
        rates: (bins, predicted, true).
        adjoint: (k, rows, observations) derivative in the probability of each observation.

    Returns:
        (k, bins, predicted, true) derivative in each cell.
    """
    places = np.arange(len(channel.bins))
    by_column = np.swapaxes(rates, -1, -2)
    draws = channel.bins.shape[1]
    before = np.zeros((draws + 1, len(channel.bins), len(channel.observations)))
    before[0, :, 0] = 1
    for d in range(draws):
        drawn = by_column[channel.bins[:, d], channel.columns[:, d]]
        extended = np.zeros_like(before[d])
        for label in range(len(channel.labels)):
            for told, share in channel.ways(d, label, rates.dtype):
                for old, after_report in enumerate(channel.then[:, told]):
                    extended[places, after_report] += before[d, :, old] * drawn[:, label] * share
        before[d + 1] = np.where(channel.columns[:, d, None] >= 0, extended, before[d])
    result = np.zeros((*rates.shape, len(adjoint)))
    after = adjoint
    for d in reversed(range(draws)):
        bins, columns = channel.bins[:, d], channel.columns[:, d]
        real = columns >= 0
        drawn = by_column[bins, columns]
        earlier = np.zeros_like(after)
        for label in range(len(channel.labels)):
            continued = sum(
                after[:, places[:, None], channel.then[:, told].T] * np.atleast_1d(share)[:, np.newaxis]
                for told, share in channel.ways(d, label, rates.dtype)
            )
            expected = (before[d] * continued).sum(axis=-1)
            np.add.at(result, (bins[real], np.full(real.sum(), label), columns[real]), expected[:, real].T)
            earlier += drawn[:, label, None] * continued
        after = np.where(real[:, None], earlier, after)
    return np.moveaxis(result, -1, 0)


class Equations:
    """I - Q on some states, factorised.

    The states are put in an order in which most systems are nearly triangular: by strongly connected components, each
    of which leads to others on one side only. A state is left with the sum of the probabilities of leaving it,
    not with 1 - p, so that rarely leaving costs no digits; where a step within or out of a component is rare, only
    additions are made (`_Added`).

    Args:
        n: number of product states.
        states: those between which Q moves; all of them are left in the end.
        sources, targets, weight: the transitions of all product states.

    Attributes:
        states: (k,) in their order.
        number: (n,) place of each product state in that order, or -1.

    Raises:
        EngineError, NoAnswerError: the matrix is singular in double precision; additions do not suffice either.
    """

    def __init__(self, n: int, states: Ints, sources: Ints, targets: Ints, weight: Floats) -> None:
        size, local = len(states), np.full(n, -1, dtype=np.int64)
        local[states] = np.arange(size)
        moving = (local[sources] >= 0) & (sources != targets)
        kept = moving & (local[targets] >= 0)
        component = components(size, local[sources[kept]], local[targets[kept]])
        self.states = states[np.argsort(component, kind="stable")]
        self.number = np.full(n, -1, dtype=np.int64)
        self.number[self.states] = np.arange(size)
        leaving = np.bincount(self.number[sources[moving]], weight[moving], size)
        part, edges = np.sort(component), np.stack([self.number[sources[kept]], self.number[targets[kept]]])
        within = part[edges[0]] == part[edges[1]]
        exits = np.zeros(size)
        apart = moving.copy()
        apart[np.flatnonzero(kept)[within]] = False
        np.add.at(exits, self.number[sources[apart]], weight[apart])
        several = np.bincount(part)[part] > 1
        rarely = np.any(weight[kept][within] < _RARE) or np.any(several & (exits > 0) & (exits < _RARE))
        self._factors: _Added | Any
        if rarely:
            tables = _tables(part, edges, weight[kept])
            if sum(band.numbers for _, _, band in tables) <= _MOST_ADDED:
                self._factors = _Added(part, edges, weight[kept], exits, tables)
                return
        inner = csc_array((weight[kept], edges), shape=(size, size))
        matrix = csc_array(diags_array(leaving, format="csc") - inner)
        ordered = np.bincount(component).max() <= LARGEST_BLOCK
        try:
            self._factors = splu(matrix, permc_spec="NATURAL" if ordered else "COLAMD", diag_pivot_thresh=0.0)
        except RuntimeError as error:
            raise EngineError(f"the equations of {size} product states are singular in doubles") from error

    def solve(self, right: Floats, *, transposed: bool = False) -> Floats:
        """(k, c) solutions for (k, c) right-hand sides, in the order of `states`."""
        return self._factors.solve(right, "T" if transposed else "N")


_Table: TypeAlias = tuple[int, tuple[Ints, Ints, Floats], Band]
"""The first state of a component, the edges between its k states, each once, and an order of them."""


def _tables(part: Ints, edges: Ints, weight: Floats) -> list[_Table]:
    """The components of several states; arguments as for `_Added`."""
    begin = np.append(0, np.cumsum(np.bincount(part)))
    inner = csr_array((weight, edges), shape=(len(part), len(part)))
    tables: list[_Table] = []
    for low, high in itertools.pairwise(begin.tolist()):
        if high - low > 1:
            table = inner[low:high, low:high].tocoo()
            rows, columns = table.row.astype(np.int64), table.col.astype(np.int64)
            shares = np.asarray(table.data, dtype=np.float64)
            tables.append((low, (rows, columns, shares), Band.of(high - low, rows, columns)))
    return tables


class _Added:
    """I - Q by additions alone, so that every number keeps its digits however rarely some states are left.

    Within a component the last state is removed by sending what enters it to where it leads, in proportion, then the
    one before (Grassmann, Taksar and Heyman 1985). With d what a state is left with when those behind it are removed,
    x = L x + u / d and u = N u + C x + right: L below and N above the diagonal, C between components, none negative.
    In their order u and x are one triangular system.

    Args:
        part: (k,) increasing, the component of each state.
        edges: (2, e) states; weight: (e,) their probabilities.
        exits: (k,) of leaving the component.
        tables: the components of several states.
    """

    def __init__(self, part: Ints, edges: Ints, weight: Floats, exits: Floats, tables: Sequence[_Table]) -> None:
        size, (sources, targets) = len(part), edges
        first, many = np.searchsorted(part, part), np.bincount(part)[part]
        crossing = part[sources] != part[targets]
        place, left, factors = np.arange(size) - first, exits.copy(), []
        for low, inside, band in tables:
            states = slice(low, low + len(band.place))
            place[states] = band.place
            (rows, columns, shares), left[states] = band.factors(*inside, exits[states])
            factors.append((rows + low, columns + low, shares))
        last = 2 * first + many  # as components lead to earlier ones the system is triangular
        u, x = self._u, self._x = last - 1 - place, last + place
        rows, columns, shares = map(np.concatenate, zip(*factors, strict=True))
        back = place[columns] < place[rows]
        row = np.concatenate([u[sources[crossing]], x, np.where(back, x[rows], u[rows])])
        column = np.concatenate([x[targets[crossing]], u, np.where(back, x[columns], u[columns])])
        beside = csc_array(
            (np.concatenate([weight[crossing], 1 / left, shares]), (row, column)), (2 * size, 2 * size)
        )
        self._factors = splu(csc_array(eye_array(2 * size)) - beside, permc_spec="NATURAL", diag_pivot_thresh=0.0)

    def solve(self, right: Floats, trans: Literal["N", "T"]) -> Floats:
        """Solutions for (k, c) right-hand sides that are nowhere negative."""
        come, gone = (self._u, self._x) if trans == "N" else (self._x, self._u)
        whole = np.zeros((2 * len(come), right.shape[1]))
        whole[come] = right
        solution: Floats = self._factors.solve(whole, trans)[gone]  # type: ignore[call-overload]
        return solution


def _jumps(objective: Objective, values: Values) -> Mask:
    """(bins, predicted, true) cells of rate 0 in which a probability may jump.

    It does when a rate above 0 there, however small, lets runs go from what is a bottom component without it to one
    of the other value, and the component is reached with it: then its value is no limit of that for small rates.
    Which bottom components there are with it is decided again for every cell in question.
    """
    rates, n, skeleton, product = values.rates, objective.state_count, objective.skeleton, objective.product
    channel = skeleton.channel
    begun = marked(n, product.start)
    ending = values.recurrent & reachable(n, product.sources, product.indices, begun)
    rows = np.unique(objective.row[ending & (objective.row >= 0)])
    used = np.zeros((1, len(channel.bins), len(channel.observations)))
    used[0, rows] = 1
    result = np.zeros(rates.shape, dtype=bool)
    leads_out = ending[product.sources]
    entry = skeleton.entry[product.edge[leads_out]]
    before = skeleton.entry_values(rates)[entry] > 0
    known: dict[bytes, bool] = {}
    for cell in np.argwhere((through_draws(channel, rates, used)[0] > 0) & (rates == 0)).tolist():
        touched = rates.copy()
        touched[tuple(cell)] = 1.0
        positive = skeleton.entry_values(touched) > 0
        if np.array_equal(positive[entry], before):
            continue  # as most cells do, it opens no transition out of a bottom component
        pattern = positive.tobytes()
        if pattern not in known:
            graph = decide(product, positive[skeleton.entry]).graph
            reached = ending & reachable(n, graph.sources, graph.targets, begun)
            accepts = coreachable(n, graph.sources, graph.targets, graph.accepting)
            rejects = coreachable(n, graph.sources, graph.targets, graph.rejecting)
            known[pattern] = bool(np.any(np.where(values.value == 1, rejects, accepts)[reached]))
        result[tuple(cell)] = known[pattern]
    return result
