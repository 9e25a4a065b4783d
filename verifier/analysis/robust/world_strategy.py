"""What a world that decides does for an optimum: its choices, and the Markov chain that they leave.

Until the formula is decided, the world chooses by the state and by what remains to be met (`optimum`). Where it has
won by staying, it takes ways of staying, each as often; where the formula is decided, it may do anything. The chain
under these choices is an ordinary one, on which any engine can compute the probability again.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csc_array, eye_array
from scipy.sparse.linalg import spsolve

from verifier.analysis.robust.optimum import Bracket, Optimum
from verifier.base.arrays import Floats, Ints, Mask, rows_of
from verifier.chains.chain import MarkovChain
from verifier.checking.graphs import coreachable, ranges, reachable
from verifier.systems.strategies import StrategySkeleton


@dataclass(frozen=True, eq=False)
class WorldStrategy:
    """What the world does from one initial state.

    Attributes:
        chain: under its choices, with the one initial state.
        choices: for each state of the chain the numbers of the choices of the process that it takes.
        state: (k,) int64, the state of the process that it is a copy of.
        visits: (k,) how often it is expected to be visited until the world has won or lost; infinite where it has won
            and goes on to decide.
        options: (k,) int64, between how many choices the world could choose there.
    """

    chain: MarkovChain
    choices: tuple[tuple[int, ...], ...]
    state: Ints
    visits: Floats
    options: Ints


def world_strategy(
    choices: StrategySkeleton,
    objective: Optimum,
    bracket: Bracket,
    rates: Floats,
    labels: Mapping[str, Mask],
    start: int,
) -> WorldStrategy:
    """What the world does for an optimum.

    Args:
        choices: of the world.
        objective: that was asked for.
        bracket: what was found for these (bins, predicted, true) rates.
        rates: the rates.
        labels: of the states.
        start: number of the initial state.
    """
    product, skeleton, n = objective.product, choices.choices, len(choices.choice_starts) - 1
    taken, owner = bracket.taken, objective.owner
    # The first p nodes are product states; behind them stand the states of the process, once the formula is decided.
    p = product.state_count
    behind = taken[objective.behind]
    source, edge, target = owner[objective.behind][behind], product.edge[behind], product.indices[behind]
    share = 1.0 / np.bincount(owner[taken], minlength=p)[source]
    target = np.where(target < 2, p + product.chain_indices[edge], target)
    first = choices.choice_starts[:-1]
    free = ranges(skeleton.indptr[first], skeleton.indptr[first + 1])
    lengths = skeleton.indptr[first + 1] - skeleton.indptr[first]
    weights = skeleton.fill(rates)
    sources = np.concatenate([source, p + np.repeat(np.arange(n), lengths)])
    targets = np.concatenate([target, p + skeleton.indices[free]])
    weight = np.concatenate([weights[edge] * share, weights[free]])
    kept = weight > 0
    sources, targets, weight = sources[kept], targets[kept], weight[kept]
    begin = int(product.start[start])
    begin = p + int(skeleton.starts[start]) if begin < 2 else begin
    met = np.flatnonzero(reachable(p + n, sources, targets, np.arange(p + n) == begin))
    inside = np.isin(sources, met)
    place = np.full(p + n, -1, dtype=np.int64)
    place[met] = np.arange(len(met))
    matrix = coo_array((weight[inside], (place[sources[inside]], place[targets[inside]])), (len(met),) * 2).tocsr()
    matrix.sum_duplicates()
    matrix.sort_indices()
    state = np.concatenate([product.state, np.arange(n)])[met]
    begun = np.concatenate([choices.choice_starts[product.state], first])[met]
    within = [np.flatnonzero(taken[low:high]) for low, high in itertools.pairwise(objective.first.tolist())]
    chosen = [within[node] if node < p else np.zeros(1, dtype=np.int64) for node in met.tolist()]
    chain = MarkovChain(
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int64),
        matrix.data,
        {name: mask[state] for name, mask in labels.items()},
        np.array([place[begin]]),
        valuations={name: value[state] for name, value in skeleton.valuations.items()},
    )
    won = np.concatenate([bracket.target, np.ones(n, dtype=bool)])[met]
    options = np.concatenate([np.diff(objective.first), np.ones(n, dtype=np.int64)])[met]
    visits = _visits(chain, won)
    visits[won & (met < p)] = np.inf
    numbers = tuple(tuple((low + own).tolist()) for low, own in zip(begun.tolist(), chosen, strict=True))
    return WorldStrategy(chain, numbers, state, visits, options)


def _visits(chain: MarkovChain, over: Mask) -> Floats:
    """(k,) how often each state is visited on average before one that is over, or from where none is reached."""
    sources = rows_of(chain.indptr)
    open_ = coreachable(chain.state_count, sources, chain.indices, over) & ~over
    result = np.zeros(chain.state_count)
    places = np.flatnonzero(open_)
    if len(places) and open_[chain.initial[0]]:
        number = np.cumsum(open_) - 1
        inner = open_[sources] & open_[chain.indices]
        moves = csc_array(
            (chain.probabilities[inner], (number[chain.indices[inner]], number[sources[inner]])),
            shape=(len(places),) * 2,
        )
        begun = np.zeros(len(places))
        begun[number[chain.initial[0]]] = 1
        result[places] = np.atleast_1d(spsolve(csc_array(eye_array(len(places), format="csc") - moves), begun))
    return result
