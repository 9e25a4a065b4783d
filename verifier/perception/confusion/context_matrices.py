"""Matrices with one column for each bin, true label and context, from counts by context.

A true label of which nobody follows a track has no memory: its column is the same in every context and is held,
whole, by the context `start`, in which a chain then stays (`verifier.systems.contexts`). Of all others, untracked
items are in no rate of a context.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import UsageError
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.counts import ContextCounts, Sequences
from verifier.perception.confusion.matrices import ConfusionMatrices, Memory
from verifier.perception.confusion.tally import summed
from verifier.perception.settings import EmptyContexts


def followed(by_context: ContextCounts) -> NDArray[np.bool_]:
    """(true,) whether a track of some item with that label is known."""
    return np.asarray(by_context.counts[0, :, :-1].any(axis=(0, 1, 2)))


def persistent(counts: ContextCounts, longest: int) -> ContextCounts:
    """What bounds rest on if an error may persist for so many frames, at whatever rates: first items of tracks, and
    those after a right outcome. Those after wrong ones are in no rate, so that nothing is known of these contexts.

    Raises:
        UsageError: the counts are not by runs, or no such length.
    """
    if counts.contexts.kind != "run":
        raise UsageError(f"--persist needs counts by run, and these are by {counts.contexts}: count --memory run:L")
    contexts, cap = Contexts("persist", longest), counts.contexts.cap
    number = np.array([0] + [1] * cap + [contexts.count] * (cap + 1))  # start; right; wrong and untracked
    return replace(counts.renumbered(contexts, number), tests=(), replays=())


def longest_run(by_context: ContextCounts, columns: Sequence[int]) -> tuple[int, bool]:
    """The longest run of errors that counts by run show of these true labels, and whether it may be longer."""
    cap, own = by_context.contexts.cap, by_context.counts[0].sum(axis=0)[:, :, list(columns)]
    items = own.sum(axis=(1, 2))
    wrong = items > own[:, list(columns), range(len(columns))].sum(axis=1)
    for length in range(cap, 0, -1):
        if items[cap + length]:
            again = bool(wrong[cap + length])
            return length + again, again and length == cap
    return int(wrong.any()), False


def divided_matrices(
    matrices: ConfusionMatrices, by_context: ContextCounts, policy: EmptyContexts
) -> ConfusionMatrices:
    """The matrices divided by context.

    Args:
        matrices: whose counts are those of `by_context`, summed over the contexts.
        by_context: counts of one score threshold.
        policy: rates of a context without items.
    """
    counts = by_context.counts[0]
    if not np.array_equal(counts.sum(axis=1), matrices.counts):
        raise ValueError("the counts by context do not add up to the matrices")
    own, apart = counts[:, :-1].copy(), followed(by_context)
    own[:, by_context.contexts.start, :, ~apart] = matrices.counts[:, :, ~apart].transpose(2, 0, 1)
    memory = Memory(by_context.contexts, matrices.counts, apart, policy)
    return replace(matrices, counts=own.reshape(-1, *own.shape[2:]), memory=memory)


def divided_sequences(sequences: Sequences, by_context: ContextCounts) -> Sequences:
    """The counts of each sequence by bin and context, which add up to those of `divided_matrices`; without tracks,
    which are not known by context.

    Args:
        sequences: those of the matrices.
        by_context: as for `divided_matrices`.
    """
    if by_context.tally is None:
        raise ValueError("the counts by context have no sequences")
    index, per_bin, contexts = by_context.tally.index.copy(), by_context.per_bin, by_context.contexts.count
    at_bin, context = np.divmod(index[:, 1], per_bin)
    apart = followed(by_context)[index[:, 3]]
    index[:, 1] = at_bin * contexts + np.where(apart, context, by_context.contexts.start)
    kept = ~apart | (context < contexts)
    return replace(sequences, tally=summed(index[kept], by_context.tally.counts[kept]), tracks=None)
