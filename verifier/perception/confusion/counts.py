"""What counting gives: confusion counts over all bins, for a family of score thresholds, by sequence.

`ConfusionMatrices` (one matrix per distance bin) is what a chain is built from. `ConfusionCounts` is what a file can
hold beside it, and its methods lead there: choose a member of the family, choose bins of the further variables or
sum over them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import UsageError, unknown_name
from verifier.base.result import Result
from verifier.perception.confusion.bins import Bins, Variable
from verifier.perception.confusion.contexts import Contexts, OfTracks, ReplayTest, ResidualTest
from verifier.perception.confusion.matrices import EMPTY, ConfusionMatrices, Label, label_text
from verifier.perception.confusion.tally import Tally
from verifier.perception.confusion.tracks import Tracks, fault_of_tracks
from verifier.perception.settings import Gaps, Labelling, Units

LARGEST_TABLE = 2**28
"""Entries of the counts over all thresholds and bins; more are refused."""


@dataclass(frozen=True, eq=False)
class Sequences:
    """The counts of each sequence (drive, scene), kept so that whole sequences can be weighted.

    Attributes:
        names: all different.
        frames: (s,) int64 frames of each.
        tally: its rows add up to the counts of the file.
        tracks: the same by track; None where they are not known.
    """

    names: tuple[str, ...]
    frames: NDArray[np.int64]
    tally: Tally
    tracks: Tracks | None = None

    def __post_init__(self) -> None:
        if len(set(self.names)) != len(self.names) or self.frames.shape != (len(self.names),):
            raise ValueError("the names of the sequences must differ, with one number of frames each")

    def canonical(self) -> Sequences:
        """The counts of each sequence summed over all bins, in one bin."""
        tracks = None if self.tracks is None else self.tracks.canonical()
        return replace(self, tally=self.tally.in_bins(np.zeros_like(self.tally.index[:, 1])), tracks=tracks)


@dataclass(frozen=True, eq=False)
class ContextCounts:
    """The counts divided by what the detector may remember, see `verifier.perception.confusion.contexts`.

    Attributes:
        contexts: the context function.
        gaps: what frames of a track without an annotation do.
        period_s: seconds from frame to frame; None where nobody says.
        counts: (thresholds, bins, contexts + 1, predicted, true) int64; the last context holds untracked items.
        tally: the same by sequence, bin and context numbered together, context fastest; None without sequences.
        tests: whether the contexts, and coarser ones, say all that matters; () of a family, or where nobody tested.
        units: what the sequences are, see `drives`; None where they are those of the data, or drives.
        tracks: of each class; None of a family, of other labellings, or where nobody looked.
        replays: on the tracks that were counted; () where nobody replayed any.
    """

    contexts: Contexts
    gaps: Gaps
    period_s: float | None
    counts: NDArray[np.int64]
    tally: Tally | None = None
    tests: tuple[ResidualTest, ...] = ()
    units: Units | None = None
    tracks: Mapping[str, OfTracks] | None = None
    replays: tuple[ReplayTest, ...] = ()

    def __post_init__(self) -> None:
        if self.counts.ndim != 5 or self.counts.shape[2] != self.per_bin:
            raise ValueError(f"counts by context have shape {self.counts.shape}")

    @property
    def per_bin(self) -> int:
        """How many matrices a bin has: one per context, and that of the untracked items."""
        return self.contexts.count + 1

    def coarsened(self, coarser: Contexts) -> ContextCounts:
        """The counts by a coarser context function; UsageError where it is none."""
        return self.renumbered(coarser, np.append(self.contexts.coarsening(coarser), coarser.count))

    def renumbered(self, contexts: Contexts, number: NDArray[np.int64]) -> ContextCounts:
        """The counts by other contexts: of each, and of the untracked items after them, `number` is the new one."""
        shape, per_bin = self.counts.shape, contexts.count + 1
        counts = np.zeros((*shape[:2], per_bin, *shape[3:]), dtype=np.int64)
        np.add.at(counts.swapaxes(0, 2), number, self.counts.swapaxes(0, 2))
        tally = self.tally
        if tally is not None:
            at_bin, context = np.divmod(tally.index[:, 1], self.per_bin)
            tally = tally.in_bins(at_bin * per_bin + number[context])
        return replace(self, contexts=contexts, counts=counts, tally=tally)

    def canonical(self) -> ContextCounts:
        """The counts summed over all bins, in one bin."""
        tally = None if self.tally is None else self.tally.in_bins(self.tally.index[:, 1] % self.per_bin)
        return replace(self, counts=self.counts.sum(axis=1, keepdims=True), tally=tally)


@dataclass(frozen=True, eq=False, repr=False)
class ConfusionCounts(Result):
    """Confusion counts with everything a document holds.

    Attributes:
        labels: of rows and columns, the empty label among them.
        bins: distance and further variables.
        thresholds: increasing score thresholds, or None when the file is no family.
        counts: (thresholds, bins, predicted, true) int64; one threshold where there is no family.
        sequences: counts by sequence, or None.
        metadata: further keys of the document.
        by_context: the counts divided by context, or None.

    Raises:
        ValueError: shapes differ, or sequences or contexts do not add up to the counts.
    """

    labelling: Labelling
    labels: tuple[Label, ...]
    bins: Bins
    thresholds: tuple[float, ...] | None
    counts: NDArray[np.int64]
    sequences: Sequences | None = None
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    by_context: ContextCounts | None = None

    def __post_init__(self) -> None:
        size = len(self.labels)
        members = 1 if self.thresholds is None else len(self.thresholds)
        if self.counts.shape != (members, self.bins.count, size, size):
            raise ValueError(f"counts have shape {self.counts.shape}")
        if self.counts.dtype != np.int64 or np.any(self.counts < 0):
            raise ValueError("counts must be integers from 0")
        if self.sequences is not None and not np.array_equal(
            self.sequences.tally.dense(self.bins.count, size), self.counts
        ):
            raise ValueError("the counts by sequence do not add up to the counts")
        self._check_contexts()
        if self.sequences is not None and self.sequences.tracks is not None:
            if self.labelling != "class":
                raise ValueError(f"an item of a {self.labelling}-labelled matrix is no track")
            empty = self.labels.index(EMPTY)
            fault = fault_of_tracks(self.sequences.tracks, self.sequences.tally, self.bins.shape, empty)
            if fault is not None:
                raise ValueError(f"the tracks do not fit the counts: {fault}")

    def _check_contexts(self) -> None:
        by_context, size = self.by_context, len(self.labels)
        if by_context is None:
            return
        if not np.array_equal(by_context.counts.sum(axis=2), self.counts):
            raise ValueError("the counts by context do not add up to the counts")
        if (by_context.tally is None) != (self.sequences is None):
            raise ValueError("counts by sequence and context go together")
        if by_context.tally is not None:
            dense = by_context.tally.dense(self.bins.count * by_context.per_bin, size)
            if not np.array_equal(dense.reshape(by_context.counts.shape), by_context.counts):
                raise ValueError("the counts by sequence and context do not add up to the counts by context")

    TOLD = "verifier.telling.confusion:counts_table"
    DRAWN = "verifier.telling.figures.confusion:figure_of_counts"
    FURTHER = ("plot_runs",)
    NAMED_BY = ("threshold", "true", "bin")
    METRICS = ("recall", "items")
    WRITTEN = "verifier.perception.confusion.document:confusion_text"

    @property
    def headline(self) -> str:
        """Title, labelling and bins."""
        return f"{self.title or 'confusion matrices'}, {self.labelling}-labelled, {self.bins.count} bins"

    @property
    def remarks(self) -> tuple[str, ...]:  # type: ignore[override]
        """What the counting says of itself."""
        return tuple(self.metadata.get("remarks", ()))

    def rows(self) -> Iterator[dict[str, str | int | float]]:
        """One row per score threshold, distance bin, reported and true label; further variables are summed over."""
        for threshold in self.thresholds or (None,):
            matrices = (self if threshold is None else self.member(threshold)).matrices()
            names = [label_text(label) for label in matrices.labels]
            for place, predicted, true in np.ndindex(*matrices.counts.shape):
                yield {
                    **({} if threshold is None else {"threshold": threshold}),
                    "bin": matrices.bin_text(place),
                    "predicted": names[predicted],
                    "true": names[true],
                    "count": int(matrices.counts[place, predicted, true]),
                }

    def measured_rows(self) -> Iterator[dict[str, str | float]]:
        """One row per score threshold, bin and true label with items: how many, and the share reported as such."""
        for threshold in self.thresholds or (None,):
            matrices = (self if threshold is None else self.member(threshold)).matrices()
            items = matrices.counts.sum(axis=1)
            for place, true in np.argwhere(items).tolist():
                yield {
                    **({} if threshold is None else {"threshold": str(threshold)}),
                    "true": label_text(matrices.labels[true]),
                    "bin": matrices.bin_text(place),
                    "recall": float(matrices.counts[place, true, true] / items[place, true]),
                    "items": int(items[place, true]),
                }

    def member(self, threshold: float) -> ConfusionCounts:
        """The counts at one score threshold of the family, without the family's axis.

        Raises:
            UsageError: the file is no family, or has no such threshold.
        """
        if self.thresholds is None:
            raise UsageError("the matrices are not a family over score thresholds")
        if threshold not in self.thresholds:
            known = ", ".join(map(repr, self.thresholds))
            raise UsageError(f"no matrices at score threshold {threshold!r}; there are: {known}")
        at = self.thresholds.index(threshold)
        sequences = self.sequences
        if sequences is not None:
            tracks = None if sequences.tracks is None else sequences.tracks.member(at)
            sequences = replace(sequences, tally=_at_threshold(sequences.tally, at), tracks=tracks)
        by_context = self.by_context
        if by_context is not None:
            own = None if by_context.tally is None else _at_threshold(by_context.tally, at)
            by_context = replace(by_context, counts=by_context.counts[at : at + 1], tally=own)
        metadata = {**self.metadata, "score_threshold": threshold}
        if "dependence" in metadata:
            metadata["dependence"] = metadata["dependence"][at]
        return replace(
            self,
            thresholds=None,
            counts=self.counts[at : at + 1],
            sequences=sequences,
            metadata=metadata,
            by_context=by_context,
        )

    def matrices(self, where: Mapping[str, str] | None = None, kept: Collection[str] = ()) -> ConfusionMatrices:
        """One matrix per distance bin: `where` chooses bins of further variables, the others are summed over, but for
        those that are `kept` apart.

        Column "empty" is the same in every bin of a variable that only objects have, so it is taken once there.

        Args:
            where: variable -> the name of a bin, or a value that lies in it.
            kept: names of variables whose bins have matrices of their own.

        Raises:
            UsageError: an unknown variable or bin, or the file is a family and no member was chosen.
        """
        chosen = self._chosen(where or {})
        counts = self._by_distance(self.counts[0], chosen, kept)
        metadata = {key: value for key, value in self.metadata.items() if key != "totals"}
        if chosen:
            metadata["where"] = {
                variable.name: variable.bin_text(chosen[variable.name])
                for variable in self.bins.variables
                if variable.name in chosen
            }
        edges, variables = np.array(self.bins.edges_m), self._kept(kept)
        return ConfusionMatrices(self.labelling, self.labels, edges, counts, self.title, metadata, variables)

    def _kept(self, kept: Collection[str]) -> tuple[Variable, ...]:
        return tuple(variable for variable in self.bins.variables if variable.name in kept)

    def contexts_by_distance(
        self, where: Mapping[str, str] | None = None, kept: Collection[str] = ()
    ) -> ContextCounts | None:
        """The counts by context, chosen and summed as `matrices` does; None where the file has none.

        Raises:
            UsageError: as `matrices`.
        """
        chosen, by_context = self._chosen(where or {}), self.by_context
        if by_context is None:
            return None
        tally = (
            None
            if by_context.tally is None
            else self._tally_by_distance(by_context.tally, chosen, kept, by_context.per_bin)
        )
        return replace(by_context, counts=self._by_distance(by_context.counts[0], chosen, kept)[None], tally=tally)

    def _by_distance(
        self, counts: NDArray[np.int64], chosen: Mapping[str, int], kept: Collection[str]
    ) -> NDArray[np.int64]:
        """(distance bins and bins kept, ..., true) from (bins, ..., true)."""
        rest = counts.shape[1:]
        counts = counts.reshape(*self.bins.shape, *counts.shape[1:])
        empty = self.labels.index(EMPTY)
        for axis in reversed(range(1, len(self.bins.shape))):
            name = self.bins.variables[axis - 1].name
            if name in chosen:
                counts = counts.take([chosen[name]], axis=axis).squeeze(axis)
            elif name not in kept:
                first = counts.take([0], axis=axis)
                total: NDArray[np.int64] = counts.sum(axis=axis)
                if self.bins.of_objects[axis]:
                    total[..., empty] = first[..., empty].squeeze(axis)
                counts = total
        return counts.reshape(-1, *rest)

    def by_sequence(self, where: Mapping[str, str] | None = None, kept: Collection[str] = ()) -> Sequences | None:
        """The counts of each sequence, chosen and summed as `matrices` does; None where the file has none.

        The tally has one column, and its bins are the distance bins. Its rows add up to `matrices(where).counts`.

        Raises:
            UsageError: as `matrices`.
        """
        chosen = self._chosen(where or {})
        if self.sequences is None:
            return None
        tally = self._tally_by_distance(self.sequences.tally, chosen, kept)
        tracks = self.sequences.tracks
        if tracks is not None:
            apart = [variable.name in kept for variable in self.bins.variables]
            tracks = tracks.by_distance(
                [chosen.get(variable.name) for variable in self.bins.variables], self.bins.shape, apart
            )
        return replace(self.sequences, tally=tally, tracks=tracks)

    def _tally_by_distance(
        self, tally: Tally, chosen: Mapping[str, int], kept: Collection[str], finer: int = 1
    ) -> Tally:
        """The tally in distance bins and bins kept; each is numbered `finer` times."""
        first, *others = np.unravel_index(tally.index[:, 1] // finer, self.bins.shape)
        used = np.ones(len(tally.index), dtype=bool)
        for axis, (variable, at) in enumerate(zip(self.bins.variables, others, strict=True), 1):
            if variable.name in chosen:
                used &= at == chosen[variable.name]
            elif variable.name in kept:
                first = first * variable.count + at
            elif self.bins.of_objects[axis]:
                used &= (tally.index[:, 3] != self.labels.index(EMPTY)) | (at == 0)
        return tally.in_bins(first * finer + tally.index[:, 1] % finer, used)

    def _chosen(self, where: Mapping[str, str]) -> dict[str, int]:
        if self.thresholds is not None:
            known = ", ".join(f"{threshold:g}" for threshold in self.thresholds)
            raise UsageError(f"the file holds a family over score thresholds; choose one of: {known}")
        variables = {variable.name: variable for variable in self.bins.variables}
        for name in where:
            if name not in variables:
                message, hint = unknown_name("variable of the matrices", name, variables)
                raise UsageError(f"{message} ({hint})")
        return {name: variables[name].bin_named(text) for name, text in where.items()}


def _at_threshold(tally: Tally, at: int) -> Tally:
    """The tally at one threshold of its family."""
    counts = tally.counts[:, at : at + 1]
    used = counts[:, 0] > 0
    return Tally(tally.index[used], counts[used])
