"""What counts by context give: which contexts the data support, and matrices with a column for each bin, true label
and context. Contexts are chosen by held-out log loss by sequence, and a test of one function against another.

*Held-out loss.* For each sequence the chance of a right report in each cell (bin, context, true label) is estimated
by (n + 1/2) / (N + 1) from the other sequences (Krichevsky and Trofimov, 1981); the loss is the mean of -log2 of the
chances of what was seen. Of the context functions whose loss is within one standard error of the least, the smallest
is taken: sequences are the units, and losses on one sequence are paired.

*Split likelihood* (Wasserman, Ramdas and Balakrishnan, Universal inference, 2020). A richer function is fitted on one
half of the sequences; the likelihood of the other half under it is divided by the largest one that the smaller
function can give it. If the smaller function is true, whatever its chances, the mean over both directions has mean at
most 1: it exceeds 1/alpha with probability at most alpha. No approximation is used.

*Parts of a sequence.* Contexts go on from one to the next, and nothing else is carried. A context is a function of as
many outcomes as its cap, so these are carried for each object, set of objects and free place of the sequence that a
part ends in. Where a frame without an annotation begins a context again, only those with an outcome in the last frame
go on; otherwise a track may come back, and all of its sequence are kept.

*Matrices.* A true label of which nobody follows a track has no memory: its column is the same in every context and is
held, whole, by the context `start`, in which a chain then stays (`verifier.systems.contexts`). Of all others,
untracked items are in no rate of a context.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints
from verifier.base.errors import UsageError
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.counts import ContextCounts, Sequences
from verifier.perception.confusion.matrices import ConfusionMatrices, Memory
from verifier.perception.confusion.tally import distinct_rows
from verifier.perception.settings import EmptyContexts, Gaps

CANDIDATES = tuple(map(Contexts.parsed, ("none", "run:1", "run:2", "run:3", "run:5", "run:10")))
"""What `auto` chooses from, smallest first."""
FEWEST_SEQUENCES = 4


@dataclass(frozen=True, eq=False)
class _Cells:
    """Right and wrong reports by sequence and cell; tracked items of the chosen true labels only."""

    sequence: Ints
    cell: Ints
    reports: Floats
    """(n, 2) wrong and right, at least one of them."""

    @classmethod
    def of(cls, by_context: ContextCounts, columns: Sequence[int]) -> _Cells:
        """The cells of one context function."""
        if by_context.tally is None or by_context.counts.shape[0] != 1:
            raise UsageError("contexts are compared by sequence, of one score threshold; the matrices have none")
        index, counts = by_context.tally.index, by_context.tally.counts[:, 0]
        tracked = (index[:, 1] % by_context.per_bin < by_context.contexts.count) & np.isin(index[:, 3], list(columns))
        rows, at = distinct_rows(index[tracked][:, [0, 1, 3]])
        reports = np.zeros((len(rows), 2))
        right = index[tracked, 2] == index[tracked, 3]
        np.add.at(reports, (at, right.astype(np.int64)), counts[tracked])
        return cls(rows[:, 0], distinct_rows(rows[:, 1:])[1], reports)

    def fitted(self, chosen: NDArray[np.bool_]) -> Floats:
        """(at least as many as cells, 2) reports of each cell in the chosen sequences' rows."""
        total = np.zeros((len(self.cell), 2))
        np.add.at(total, self.cell[chosen], self.reports[chosen])
        return total


def _log_loss(reports: Floats, seen: Floats) -> Floats:
    """-log of the chance of each row's reports, by chances estimated from what was seen of its cell."""
    chance = (seen + 0.5) / (seen.sum(axis=1, keepdims=True) + 1)
    return np.asarray(-(reports * np.log(chance)).sum(axis=1))


@dataclass(frozen=True, eq=False)
class HeldOutLoss:
    """Of one context function.

    Attributes:
        contexts: the function.
        bits: (s,) loss of each sequence that has items, in bits.
        frames: (s,) its items.
    """

    contexts: Contexts
    bits: Floats
    frames: Ints

    @property
    def mean(self) -> float:
        """Bits per frame."""
        return float(self.bits.sum() / self.frames.sum())

    def above(self, other: HeldOutLoss) -> tuple[float, float]:
        """By how many bits per frame it is above another one, and the standard error of that."""
        differences = self.bits - other.bits
        mean = float(differences.sum() / self.frames.sum())
        count = len(self.frames)
        spread = float(((differences - self.frames * mean) ** 2).sum())
        return mean, math.sqrt(count / max(count - 1, 1) * spread) / float(self.frames.sum())


def held_out_loss(by_context: ContextCounts, columns: Sequence[int]) -> HeldOutLoss:
    """The loss of the contexts of some counts, over items with these true labels.

    Args:
        by_context: of one score threshold, with sequences.
        columns: places of the true labels.

    Raises:
        UsageError: no counts by sequence, or a family.
    """
    cells = _Cells.of(by_context, columns)
    others = cells.fitted(np.ones(len(cells.cell), dtype=bool))[cells.cell] - cells.reports
    loss = _log_loss(cells.reports, others) / math.log(2)
    names, own = np.unique(cells.sequence, return_inverse=True)
    frames = np.bincount(own, cells.reports.sum(axis=1), len(names)).astype(np.int64)
    bits: Floats = np.bincount(own, loss, len(names)).astype(np.float64)
    return HeldOutLoss(by_context.contexts, bits, frames)


@dataclass(frozen=True)
class Selection:
    """What `auto` chose.

    Attributes:
        contexts: the smallest function within one standard error of the best.
        best: the function of least loss.
        losses: of all candidates that the counts can be coarsened to.
    """

    contexts: Contexts
    best: Contexts
    losses: tuple[HeldOutLoss, ...]


def selected_contexts(by_context: ContextCounts, columns: Sequence[int]) -> Selection:
    """The contexts that the data support.

    Raises:
        UsageError: fewer than four sequences with tracks, or as `held_out_loss`.
    """
    losses = tuple(
        held_out_loss(by_context.coarsened(candidate), columns)
        for candidate in coarser_candidates(by_context.contexts)
    )
    if len(losses[0].frames) < FEWEST_SEQUENCES:
        raise UsageError(
            f"--memory auto compares contexts by sequence and needs {FEWEST_SEQUENCES} sequences with tracks; the "
            f"matrices have {len(losses[0].frames)}: choose one, such as --memory {by_context.contexts}"
        )
    best = min(losses, key=lambda loss: loss.mean)
    for loss in losses:
        above, error = loss.above(best)
        if above <= error:
            return Selection(loss.contexts, best.contexts, losses)
    raise AssertionError("the best loss is within its own standard error")


def coarser_candidates(contexts: Contexts) -> Iterator[Contexts]:
    """The candidates that are no finer than a context function, smallest first."""
    for candidate in CANDIDATES:
        try:
            contexts.coarsening(candidate)
        except UsageError:
            continue
        yield candidate


def log10_e_value(
    by_context: ContextCounts, columns: Sequence[int], smaller: Contexts, names: Sequence[str]
) -> float:
    """log10 of the split likelihood e-value of the contexts of `by_context` against smaller ones.

    Args:
        by_context: counts by the richer function, as for `held_out_loss`.
        columns: places of the true labels.
        smaller: a coarser function.
        names: of the sequences; those with items are halved in the order of their names.
    """
    richer, plain = _Cells.of(by_context, columns), _Cells.of(by_context.coarsened(smaller), columns)
    used = np.unique(richer.sequence)
    order = np.zeros(len(names), dtype=np.int64)
    order[used[np.argsort(np.array(names, dtype=object)[used])]] = np.arange(len(used))
    logs = []
    for half in (0, 1):
        fitted_on = order[richer.sequence] % 2 == half
        seen = richer.fitted(fitted_on)[richer.cell[~fitted_on]]
        gain = -_log_loss(richer.reports[~fitted_on], seen).sum()
        judged = plain.fitted(order[plain.sequence] % 2 != half)
        total = np.maximum(judged.sum(axis=1, keepdims=True), 1)
        best = (judged * np.log(np.where(judged > 0, judged / total, 1.0))).sum()
        logs.append(gain - best)
    return float((np.logaddexp(*logs) - math.log(2)) / math.log(10))


@dataclass(frozen=True)
class Begun:
    """What may go on.

    Attributes:
        sequence: name of the sequence; None before the first.
        outcomes: who -> (number of the frame, outcome) of its last reports, oldest first.
    """

    sequence: str | None = None
    outcomes: Mapping[str, Sequence[Sequence[int]]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Part:
    """Some frames of a data set, which a context may come from or go on to.

    Attributes:
        begun: from the frames before.
        numbers: (f,) of each frame within its sequence.
        sequence: (f,) number of each frame's sequence, in the order of `names`.
        names: of the sequences.
        last: number of the sequence that the part ends in; -1 where that is not among these.
        kept: filled while contexts are told: what goes on.
    """

    begun: Begun
    numbers: Ints
    sequence: Ints
    names: tuple[str, ...]
    last: int
    kept: dict[str, list[list[int]]] = field(default_factory=dict)

    @property
    def after(self) -> Begun:
        """What may go on after these frames."""
        return Begun() if self.last < 0 else Begun(self.names[self.last], self.kept)

    def along(
        self, contexts: Contexts, series: Ints, frame: Ints, right: Ints, gaps: Gaps, who: Callable[[int], list[Any]]
    ) -> Ints:
        """(n,) the context before each outcome; as `Contexts.along` over all frames of the sequences.

        Args:
            contexts: the context function.
            series: (n,) who each outcome is of.
            frame: (n,) place of its frame among these.
            right: (n,) the outcome, 0 or 1.
            gaps: what frames without a row do.
            who: a name for that of a row, the same in every part.
        """
        earlier, named = list[tuple[int, int, int]](), dict[int, str]()
        own, first = np.unique(series, return_index=True)
        for number, row in zip(own.tolist(), first.tolist(), strict=True):
            at = int(self.sequence[frame[row]])
            going_on = self.names[at] == self.begun.sequence
            if going_on or at == self.last:
                named[number] = text = json.dumps(who(row), default=float)
                past = self.begun.outcomes.get(text, ()) if going_on else ()
                earlier += [(number, int(when), int(outcome)) for when, outcome in past]
        before = np.array(earlier, dtype=np.int64).reshape(-1, 3)
        every = np.concatenate([before, np.column_stack([series, self.numbers[frame], right])])
        if self.last >= 0:
            here = np.isin(every[:, 0], series[self.sequence[frame] == self.last])
            self._keep(every[here], named, contexts.cap, gaps)
        return contexts.along(every[:, 0], every[:, 1], every[:, 2], gaps)[len(before) :]

    def _keep(self, rows: Ints, named: Mapping[int, str], most: int, gaps: Gaps) -> None:
        """The last outcomes of each series in the (n, 3) rows of the last sequence, as far as it can go on."""
        end = int(self.numbers[self.sequence == self.last].max())
        if gaps != "break" and self.begun.sequence == self.names[self.last]:
            for text, past in self.begun.outcomes.items():
                self.kept.setdefault(text, [list(row) for row in past])
        ordered = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
        for own in np.split(ordered, np.flatnonzero(np.diff(ordered[:, 0])) + 1) if len(ordered) else []:
            if gaps != "break" or own[-1, 1] == end:
                self.kept[named[int(own[0, 0])]] = own[max(len(own) - most, 0) :, 1:].tolist()


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
    tally, contexts = by_context.tally, by_context.contexts
    at_bin, context = np.divmod(tally.index[:, 1], by_context.per_bin)
    apart = followed(by_context)[tally.index[:, 3]]
    bins = at_bin * contexts.count + np.where(apart, context, contexts.start)
    return replace(sequences, tally=tally.in_bins(bins, ~apart | (context < contexts.count)), tracks=None)
