"""Random numbers that depend on what they are for, not on how many are asked for or in what parts.

Draws come in blocks of `BLOCK`. Every block of every matrix column has a stream of its own, named by the seed, the
counts, the column and the number of the block (`numpy.random.SeedSequence` turns names into independent streams), and
within a block a stream is read row by row. So draw number d is the same whatever else is drawn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from verifier.analysis.intervals.measured import Measured
from verifier.base.arrays import Floats, Ints
from verifier.base.errors import UsageError, shown

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
        found = np.full((len(drawn), *self.measured.counts.shape), np.nan)
        fixed = self.measured.fixed[self.pairs[:, 0], self.pairs[:, 1]]
        for at_bin, true in self.pairs[fixed].tolist():
            found[:, at_bin, :, true] = self.measured.rates[at_bin, :, true]
        for k, (at_bin, true) in enumerate(self.free.tolist()):
            found[:, at_bin, :, true] = drawn[:, k]
        return found


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
    """Numbers that name the streams of these counts.

    Raises:
        UsageError: the seed is negative or no whole number.
    """
    digest = hashlib.sha256(repr(measured.counts.shape).encode())
    digest.update(np.ascontiguousarray(measured.counts, dtype="<i8").tobytes())
    return check_seed(seed), int.from_bytes(digest.digest()[:16], "little")


def check_seed(seed: int) -> int:
    """`seed`, if it can be one; UsageError if not."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise UsageError(f"expected a seed that is a whole number from 0 on, got {shown(seed)}")
    return seed
