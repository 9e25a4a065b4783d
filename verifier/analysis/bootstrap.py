"""How sure the *drives* make us of a probability: whole sequences are resampled, because their frames are dependent.

A pedestrian who is missed in one frame is missed in the next: the items of one drive are not independent, and an
interval that counts them as if they were is too narrow. Drives are independent, or as good as. So a replicate draws
as many sequences as there are, with replacement, all frames of each together (cluster bootstrap: Davison and Hinkley,
Bootstrap Methods and their Application, 1997, section 3.8), and the percentiles of the probability over many
replicates are its interval.

The prior. Resampling alone says nothing beyond what was seen: a column in which no item was ever missed would have
a recall of exactly 1 in every replicate, with an interval of no width. A Dirichlet prior of weight a adds a items of
every label to a column; likewise each replicate adds *prior sequences*: for every label y one of random weight g(y),
Gamma(a)-distributed, that holds as many items as the column's sequences do, all reported as y:

    mu(y) = (sum over sequences s of w_s n_s(y)  +  N g(y)) / (the same summed over y)

with w_s how often the replicate drew s, and N the mean size of the sequence an item lies in, sum n_s^2 / sum n_s.
* A column that no drawn sequence has items in is so drawn from the prior: nothing is known of it in that replicate.
* With one item in every sequence this is nearly the posterior of `posterior`: Gamma(n) + Gamma(a) = Gamma(n + a), and
  resampled counts have mean and variance about n, as Gamma(n) has.
* With a of `SMALLEST_PRIOR` it is the plain bootstrap.

Replicate number d depends on the names of the sequences, the seed and d only (and on the counts, for g). So detectors
that were run on the same sequences can be given the same replicates and compared in pairs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from verifier.analysis.drawing import (
    BLOCK,
    PART_BYTES,
    LogGammas,
    NeededColumns,
    blocks,
    check_seed,
    counts_entropy,
    shares,
    stream,
)
from verifier.analysis.intervals import Kind, check_draws
from verifier.analysis.measured import Measured
from verifier.analysis.posterior import MOST_DRAWS, Prior, prior_weight
from verifier.confusion.counts import Sequences
from verifier.errors import UsageError, shown

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

FEWEST_SEQUENCES = 10
"""With fewer sequences that hold items, resampling them says little of how sequences differ."""
CHOICES = ("auto", "posterior", "bootstrap")


@dataclass(frozen=True, eq=False)
class SequenceData:
    """What a detector's matrices are resampled from.

    Attributes:
        measured: the counts of all sequences together.
        sequences: the counts of each, in the same bins, at one score threshold.
        columns: (k, 2) the pairs of bin and column that somebody needs.

    Raises:
        ValueError: the sequences do not add up to the counts, or a column does not exist.
    """

    measured: Measured
    sequences: Sequences
    columns: Ints

    def __post_init__(self) -> None:
        bins, labels, _ = self.measured.counts.shape
        tally = self.sequences.tally
        inside = len(tally.index) == 0 or tally.index.max(axis=0)[1] < bins
        if not inside or not np.array_equal(tally.dense(bins, labels), self.measured.counts[None]):
            raise ValueError("the counts by sequence do not add up to the counts")
        NeededColumns(self.measured, self.columns)

    @cached_property
    def table(self) -> csr_array[Any, Any]:
        """(sequences, f * predicted) items of each sequence in the f columns that are not fixed."""
        free = NeededColumns(self.measured, self.columns).free
        bins, labels, _ = self.measured.counts.shape
        place = np.full((bins, labels), -1, dtype=np.int64)
        place[free[:, 0], free[:, 1]] = np.arange(len(free))
        sequence, at_bin, predicted, true = self.sequences.tally.index.T
        column = place[at_bin, true]
        used = column >= 0
        items = self.sequences.tally.counts[used, 0].astype(np.float64)
        cells = (sequence[used], column[used] * labels + predicted[used])
        return csr_array((items, cells), shape=(len(self.sequences.names), len(free) * labels))

    @cached_property
    def sizes(self) -> csr_array[Any, Any]:
        """(sequences, f) items of each sequence in each column that is not fixed."""
        labels = self.measured.counts.shape[1]
        whole = self.table.tocoo()
        columns = self.table.shape[1] // labels
        return csr_array((whole.data, (whole.row, whole.col // labels)), shape=(whole.shape[0], columns))

    @property
    def holding(self) -> int:
        """How many sequences hold items of any column that is not fixed."""
        return int(np.count_nonzero(self.sizes.sum(axis=1)))

    def without_items(self) -> Floats:
        """(f,) for each column that is not fixed the share of replicates in which no drawn sequence has an item.

        With S sequences, k of which have items, it is (1 - k/S)^S.
        """
        number = len(self.sequences.names)
        have = np.bincount(self.sizes.tocoo().col, self.sizes.tocoo().data > 0, self.sizes.shape[1])
        return np.asarray((1 - have / number) ** number)


def sequence_draws(
    data: SequenceData, prior: Prior = "jeffreys", count: int = MOST_DRAWS, seed: int = 0, at_once: int = BLOCK
) -> Iterator[Floats]:
    """Matrices from resampled sequences, some at a time, as `verifier.analysis.posterior.matrix_draws`.

    Raises:
        UsageError: an unknown prior, no draw, or a negative seed.
    """
    return (each for (each,) in paired_sequence_draws([data], prior, count, seed, at_once))


def paired_sequence_draws(
    detectors: Sequence[SequenceData],
    prior: Prior = "jeffreys",
    count: int = MOST_DRAWS,
    seed: int = 0,
    at_once: int = BLOCK,
) -> Iterator[tuple[Floats, ...]]:
    """Matrices of several detectors from the same resampled sequences, told by their names.

    Args:
        detectors: at least one, all of the same sequences, in any order.
        prior: see `verifier.analysis.posterior.prior_weight`; independent for each detector.
        count: number of replicates.
        seed: of all replicates.
        at_once: most replicates in a part; fewer where matrices or sequences are many.

    Returns:
        Parts with one array (c, bins, predicted, true) per detector, `count` rows in all.

    Raises:
        UsageError: an unknown prior, no draw, a negative seed, or the sequences differ.
    """
    names = sorted(detectors[0].sequences.names)
    if not names:
        raise ValueError("there is no sequence to resample")
    for each in detectors[1:]:
        _check_same(names, each.sequences.names)
    resampled = [_Resampled(each, names, prior_weight(prior), seed) for each in detectors]
    size = min(at_once, max(1, PART_BYTES // (32 * len(names))), *(each.needed.largest_part for each in resampled))
    entropy = (check_seed(seed), _names_entropy(names))

    def drawn(count: int) -> Iterator[tuple[Floats, ...]]:
        for block, parts in blocks(count, size):
            choices = stream(entropy, block)
            sources = [each.prior_sequences(block) for each in resampled]
            for part in parts:
                weights = _times_drawn(choices, part, len(names))
                yield tuple(each(weights, source) for each, source in zip(resampled, sources, strict=True))

    return drawn(check_draws(count))


class _Resampled:
    """One detector's columns, to be filled from resampled sequences."""

    def __init__(self, data: SequenceData, names: list[str], weight: float, seed: int) -> None:
        self.needed = NeededColumns(data.measured, data.columns)
        self._entropy = (*counts_entropy(data.measured, seed), 1)
        self._weight = weight
        order = {name: row for row, name in enumerate(data.sequences.names)}
        rows = [order[name] for name in names]
        self._by_cell = csr_array(data.table[rows].T)
        sizes = data.sizes
        total = np.asarray(sizes.sum(axis=0))
        self._size = np.asarray((sizes * sizes).sum(axis=0)) / np.where(total > 0, total, 1)
        self._shape = (len(total), data.measured.counts.shape[1])

    def prior_sequences(self, block: int) -> list[LogGammas]:
        """The streams of the weights of the prior sequences, one for each column."""
        shape = np.full(self._shape[1], self._weight)
        return [LogGammas(self._entropy, (*pair, block), shape) for pair in self.needed.free.tolist()]

    def __call__(self, weights: Floats, sources: list[LogGammas]) -> Floats:
        """(c, bins, predicted, true) from (c, sequences) how often each sequence was drawn."""
        counts = np.asarray(self._by_cell @ weights.T).T.reshape(len(weights), *self._shape)
        logarithms = np.zeros_like(counts)
        for k, source in enumerate(sources):
            logarithms[:, k] = source(len(weights))
        added = counts + self._size[:, None] * np.exp(logarithms)
        total = added.sum(axis=2, keepdims=True)
        known = counts.sum(axis=2, keepdims=True) > 0
        drawn = np.where(known, added / np.where(known, total, 1), shares(logarithms))
        return self.needed.matrices(drawn)


def _times_drawn(choices: np.random.Generator, rows: int, size: int) -> Floats:
    """(rows, size) how often each of `size` sequences is drawn when `size` are drawn with replacement."""
    drawn = choices.integers(size, size=(rows, size)) + size * np.arange(rows)[:, None]
    return np.bincount(drawn.ravel(), minlength=rows * size).reshape(rows, size).astype(np.float64)


def _check_same(names: list[str], others: Sequence[str]) -> None:
    apart = sorted(set(names).symmetric_difference(others))
    if apart:
        more = f" and {len(apart) - 3} more" if len(apart) > 3 else ""
        raise UsageError(
            "the detectors were not run on the same sequences, so these cannot be resampled together: only one of "
            f"them has {', '.join(map(shown, apart[:3]))}{more}"
        )


def _names_entropy(names: Sequence[str]) -> int:
    return int.from_bytes(hashlib.sha256(repr(list(names)).encode()).digest()[:16], "little")


@dataclass(frozen=True)
class Choice:
    """Which interval a run prints, and why.

    Attributes:
        kind: "credible" or "bootstrap".
        reason: for people, to stand beside the interval.
        remark: what the interval leaves out, if anything.
    """

    kind: Kind
    reason: str
    remark: str | None = None


def choose_interval(
    measured: Measured, sequences: Sequences | None, columns: Ints, requested: str = "auto"
) -> Choice:
    """Which interval to print: from resampled sequences where at least `FEWEST_SEQUENCES` hold items, else posterior.

    Args:
        measured: the counts.
        sequences: by sequence, or None where they are not known.
        columns: (k, 2) the columns that the run needs.
        requested: one of `CHOICES`.

    Raises:
        UsageError: an unknown request, or the bootstrap is asked for and cannot be had.
    """
    if requested not in CHOICES:
        raise UsageError(f"unknown interval {shown(requested)}; known: {', '.join(CHOICES)}")
    holding = 0
    if sequences is not None:
        holding = SequenceData(measured, sequences, columns).holding
    usable = holding >= FEWEST_SEQUENCES
    if requested == "bootstrap" and not usable:
        raise UsageError(f"the bootstrap resamples sequences, but {_too_few(sequences, holding)}")
    if usable and requested != "posterior":
        return Choice("bootstrap", f"{holding} sequences resampled: frames of one drive are not independent")
    remark = (
        "the credible interval takes all items to be independent; frames of one drive are not: it may be too narrow"
    )
    if usable:
        return Choice("credible", "posterior, as asked for", remark)
    return Choice("credible", f"posterior: {_too_few(sequences, holding)}", remark)


def _too_few(sequences: Sequences | None, holding: int) -> str:
    if sequences is None:
        return "the matrices do not say which sequence an item is from"
    has = "sequence holds" if holding == 1 else "sequences hold"
    return f"only {holding} {has} items that count here, and fewer than {FEWEST_SEQUENCES} say little"
