"""How sure the counts make us of a probability: draws of the matrices from their posterior, pushed through the chain.

    draws = matrix_draws(measured, objective.skeleton.columns_needed())
    for probabilities in probability_draws(objective, draws): ...

Model. The items of one matrix column (bin, true label) are independent and each is reported as label y with
probability mu(y), so their counts n are multinomial. With a Dirichlet prior of weight a on every label the posterior
of the column is Dirichlet(n + a), and columns are independent of each other (Gelman et al., Bayesian Data Analysis,
3rd ed., section 3.4). The default weight 1/2 is the prior of Jeffreys for a multinomial.

* A column without items is drawn from the prior: no interval leans on the rates that a policy assumes for it.
* A column that is fixed by convention (`Measured.fixed`) is not drawn.

The frames of one drive are not independent items: see `bootstrap` and `dependence`.

Draw number d of a column depends on the counts, the prior, the seed and d, and on nothing else: not on how many draws
are asked for, nor in what parts, nor for which columns. So all chains that are filled from the same matrices can be
given the same draws, one after the other, and compared draw by draw. Matrices with other counts have draws that are
independent of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from verifier.analysis.intervals.drawing import (
    BLOCK,
    PART_BYTES,
    LogGammas,
    NeededColumns,
    blocks,
    counts_entropy,
    shares,
)
from verifier.analysis.intervals.measured import Measured
from verifier.analysis.objective import Objective
from verifier.analysis.settings import Prior, check_draws, prior_weight
from verifier.base.arrays import Floats, Ints
from verifier.checking.component_solving import DENSE_LIMIT
from verifier.checking.graphs import components
from verifier.checking.product import Product

MOST_DRAWS, FEWEST_DRAWS = 10_000, 301  # as many as a 95 % interval needs, see `fewest_draws`
WORK = 2 * 10**8
"""What the default number of draws may cost, in transitions visited once: some 20 seconds."""


def default_draws(objectives: Iterable[Objective]) -> int:
    """How many draws to make of each chain of a run when nobody says so.

    `MOST_DRAWS`, or what costs about `WORK` if that is less, in multiples of 100 and at least `FEWEST_DRAWS`. A draw
    costs the transitions of the product; a component of k states that are solved together k^2 more, or twenty times
    its transitions where it is too large for elimination. So it depends on the chains only, and equal inputs get
    equally many.
    """
    return max(FEWEST_DRAWS, min(MOST_DRAWS, WORK // max(cost_of_draw(objectives), 1) // 100 * 100))


def cost_of_draw(objectives: Iterable[Objective]) -> int:
    """What one matrix costs, in transitions visited once."""
    return sum(_cost(each.product) * each.effort for each in objectives)


def _cost(product: Product) -> int:
    component = components(product.state_count, product.sources, product.indices)
    size = np.bincount(component)
    eliminated = (size > 1) & (size <= DENSE_LIMIT)
    inside = component[product.sources] == component[product.indices]
    factorised = np.count_nonzero(inside & (size[component[product.sources]] > DENSE_LIMIT))
    return int(len(product.edge) + (size[eliminated] ** 2).sum() + 20 * factorised)


def matrix_draws(
    measured: Measured,
    columns: Ints,
    prior: Prior = "jeffreys",
    count: int = MOST_DRAWS,
    seed: int = 0,
    at_once: int = BLOCK,
) -> Iterator[Floats]:
    """Matrices drawn from their posterior, some at a time, so that any number of them can be drawn.

    Args:
        columns: (k, 2) different pairs of bin and column, those that somebody needs.
        count: number of draws.
        seed: of all draws.
        at_once: most draws in a part; fewer where the matrices are large.

    Returns:
        Parts (c, bins, predicted, true) float64 of `count` rows in all, NaN in all columns but the needed ones.

    Raises:
        UsageError: an unknown prior, no draw, or a negative seed.
    """
    needed = NeededColumns(measured, columns)
    shapes, entropy = needed.counts + prior_weight(prior), (*counts_entropy(measured, seed), 0)
    size = min(at_once, needed.largest_part)

    def drawn(count: int) -> Iterator[Floats]:
        for block, parts in blocks(count, size):
            named = zip(needed.free.tolist(), shapes, strict=True)
            sources = [LogGammas(entropy, (*pair, block), shape) for pair, shape in named]
            for part in parts:
                logarithms = np.zeros((part, *shapes.shape))
                for k, source in enumerate(sources):
                    logarithms[:, k] = source(part)
                yield needed.matrices(shares(logarithms))

    return drawn(check_draws(count))


def probability_draws(objective: Objective, draws: Iterable[Floats]) -> Iterator[Floats]:
    """The formula's probability from every initial state for each draw of the matrices.

    Args:
        objective: formula and skeleton.
        draws: parts (c, bins, predicted, true), with every column that the skeleton needs.

    Returns:
        Parts (c, m) in the order of the draws; no more matrices are put into the skeleton at once than fit.

    Raises:
        EngineError, LimitError: from solving.
    """
    skeleton = objective.skeleton
    sums = len(skeleton.channel.bins) + len(skeleton.entry_row)
    at_once = max(1, PART_BYTES // (24 * sums * skeleton.entry_observations.shape[1] + 1))
    for part in draws:
        for low in range(0, len(part), at_once):
            yield objective.probabilities(part[low : low + at_once], roughly=True).probability
