"""Random numbers that depend on what they are for, not on how many are asked for or in what parts.

Draws come in blocks of `BLOCK`. Every block of every matrix column has a stream of its own, named by the seed, the
counts, the column and the number of the block (`numpy.random.SeedSequence` turns names into independent streams), and
within a block a stream is read row by row.

How sure the counts make us of a probability: draws of the matrices from their posterior, pushed through the chain.

    draws = matrix_draws(measured, objective.skeleton.columns_needed())
    for probabilities in probability_draws(objective, draws): ...

Model. The items of one matrix column (bin, true label) are independent and each is reported as label y with
probability mu(y), so their counts n are multinomial. With a Dirichlet prior of weight a on every label the posterior
of the column is Dirichlet(n + a), and columns are independent of each other (Gelman et al., Bayesian Data Analysis,
3rd ed., section 3.4). The default weight 1/2 is the prior of Jeffreys for a multinomial.

* A column without items is drawn from the prior: no interval leans on the rates that a policy assumes for it.
* A column that is fixed by convention (`Measured.fixed`) is not drawn.

The frames of one drive are not independent items: see `analysis.phantom_draws`.

Draw number d of a column depends on the counts, the prior, the seed and d, and on nothing else: not on how many draws
are asked for, nor in what parts, nor for which columns. So all chains that are filled from the same matrices can be
given the same draws, one after the other, and compared draw by draw. Matrices with other counts have draws that are
independent of these.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from verifier.analysis.intervals.intervals import Measured
from verifier.analysis.objective import Objective
from verifier.analysis.settings import Prior, check_draws, check_seed, prior_weight
from verifier.base.arrays import Floats, Ints
from verifier.base.graphs import components
from verifier.checking.component_solving import DENSE_LIMIT
from verifier.checking.product import Product

BLOCK = 1000
PART_BYTES = 2**27
"""Most memory for the matrices of one part of the draws."""


@dataclass(frozen=True, eq=False)
class NeededColumns:
    """The matrix columns that somebody needs: those to be drawn, and those that are fixed by convention.

    Attributes:
        pairs: (k, 2) different pairs of bin and column.

    Raises:
        ValueError: a column does not exist or is named twice.
    """

    measured: Measured
    pairs: Ints

    def __post_init__(self) -> None:
        bins, _, true = self.measured.counts.shape
        pairs = self.pairs
        if pairs.ndim != 2 or pairs.shape[1] != 2 or len(np.unique(pairs, axis=0)) != len(pairs):
            raise ValueError("expected different pairs of bin and column")
        if len(pairs) and (pairs.min() < 0 or np.any(pairs.max(axis=0) >= (bins, true))):
            raise ValueError("a column does not exist")

    @property
    def free(self) -> Ints:
        """(f, 2) the columns to be drawn."""
        return self.pairs[~self.measured.fixed[self.pairs[:, 0], self.pairs[:, 1]]]

    @property
    def counts(self) -> Ints:
        """(f, predicted) the items of the columns to be drawn."""
        free = self.free
        return self.measured.counts[free[:, 0], :, free[:, 1]]

    @property
    def largest_part(self) -> int:
        """How many draws of the matrices fit into `PART_BYTES`, at least one and at most a block."""
        return max(1, min(BLOCK, PART_BYTES // (24 * self.measured.counts.size)))

    def matrices(self, drawn: Floats) -> Floats:
        """(c, bins, predicted, true) matrices from (c, f, predicted) columns; NaN where nobody needs a rate."""
        matrices = np.full((len(drawn), *self.measured.counts.shape), np.nan)
        fixed = self.measured.fixed[self.pairs[:, 0], self.pairs[:, 1]]
        for at_bin, true in self.pairs[fixed].tolist():
            matrices[:, at_bin, :, true] = self.measured.rates[at_bin, :, true]
        for k, (at_bin, true) in enumerate(self.free.tolist()):
            matrices[:, at_bin, :, true] = drawn[:, k]
        return matrices


def blocks(count: int, at_once: int) -> Iterator[tuple[int, list[int]]]:
    """The number of each block of `count` draws, and the sizes of the parts it is drawn in.

    >>> list(blocks(1100, 400))
    [(0, [400, 400, 200]), (1, [100])]
    """
    for first in range(0, count, BLOCK):
        size = min(BLOCK, count - first)
        yield first // BLOCK, [min(at_once, size - low) for low in range(0, size, at_once)]


def stream(entropy: tuple[int, ...], *key: int) -> np.random.Generator:
    """The stream of random numbers that these numbers name."""
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=key))


class LogGammas:
    """Logarithms of independent gamma variables, however small, row after row.

    Gamma(a) is distributed as Gamma(a + 1) U^(1/a) with U uniform (Marsaglia and Tsang, A simple method for
    generating gamma variables, ACM TOMS 26(3), 2000, section 6), and -log U is exponential.

    Args:
        entropy, key: numbers that name the stream.
        shape: (labels,) the parameters a.
    """

    def __init__(self, entropy: tuple[int, ...], key: tuple[int, ...], shape: Floats) -> None:
        self._shape = shape
        self._raised, self._lowered = stream(entropy, *key, 0), stream(entropy, *key, 1)

    def __call__(self, rows: int) -> Floats:
        """(rows, labels) the next rows."""
        size = (rows, len(self._shape))
        raised = self._raised.standard_gamma(self._shape + 1, size)
        return np.asarray(np.log(raised) - self._lowered.standard_exponential(size) / self._shape)


def shares(logarithms: Floats) -> Floats:
    """(..., labels) exp of the logarithms, divided by its sum over the labels."""
    relative = np.exp(logarithms - logarithms.max(axis=-1, keepdims=True))
    return np.asarray(relative / relative.sum(axis=-1, keepdims=True))


def counts_entropy(measured: Measured, seed: int) -> tuple[int, ...]:
    """Numbers that name the streams of these counts. Raises UsageError: the seed is negative or no whole number."""
    digest = hashlib.sha256(repr(measured.counts.shape).encode())
    digest.update(np.ascontiguousarray(measured.counts, dtype="<i8").tobytes())
    return check_seed(seed), int.from_bytes(digest.digest()[:16], "little")


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
    return sum(_cost(objective.product) * objective.effort for objective in objectives)


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
