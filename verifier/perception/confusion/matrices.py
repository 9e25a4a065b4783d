"""Confusion matrices by distance: what a detector reports, given what is there and how far away it stands.

Orientation. `counts[bin, predicted, true]`: a column (fixed bin and true label) holds every item with that true
label (Badithela et al. 2022, Definition 2). Normalising a column gives the perception channel
mu_k(predicted | true) (eqs. 5 and 8). The transpose looks just as plausible and is wrong.

Labels. A label is the set of classes that are present or reported: `{ped}`, `{obs}`, `{}` for "empty". In a
class-labelled matrix (Algorithm 2) every label has at most one class and an item is one object. In a group-labelled
one an item is a group of objects of one class that act as one. In a proposition-labelled matrix (Algorithm 1) a
label is any set of classes and an item is one frame.

Bins are half-open, `[lo, hi)`, in metres, and the distance is that of the true object. Empty is not zero: a
column without items has no rates, and using it is an error unless a policy of `EMPTY_COLUMN_POLICIES` is named.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, UsageError, check_known
from verifier.perception.confusion.bins import Variable, bins_between
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.settings import EmptyColumns, EmptyContexts, Labelling

Label: TypeAlias = frozenset[str]

EMPTY: Label = frozenset()
LARGEST_COUNT = 2**53
"""Counts up to here are exact in a double."""

EMPTY_COLUMN_POLICIES: Mapping[EmptyColumns, str] = {
    "error": "refuse a matrix column without items when the chain needs it",
    "prior": "uniform rates: the mean of the Jeffreys prior, which is all that is known without data",
    "neighbour": "the same column of the nearest bin that has items (the nearer to the ego on a tie)",
    "pool": "the same column summed over all bins",
    "miss": "nothing is reported: all mass on the label 'empty'",
}

EMPTY_CONTEXT_POLICIES: Mapping[EmptyContexts, str] = {
    "backoff": "the next shorter context that has items, at last the column of the bin, untracked items included",
    "pool": "the same context summed over all bins, then as backoff",
    "prior": "uniform rates",
    "error": "refuse a context without items when the chain needs it",
}


@dataclass(frozen=True, eq=False)
class Memory:
    """What matrices that are divided by context are divided of.

    Attributes:
        contexts: the context function; the matrices of a bin follow each other in the order of its names.
        whole: (bins, predicted, true) int64, the counts of each bin whatever the context, untracked items included.
        followed: (true,) bool, the labels with tracks; the column of any other is in its first context.
    """

    contexts: Contexts
    whole: NDArray[np.int64]
    followed: NDArray[np.bool_]
    policy: EmptyContexts = "backoff"

    def donor(self, own: NDArray[np.int64], context: int) -> int | None:
        """The first context with items, of (contexts, predicted) counts, that one without takes its rates from; None
        for the column of the bin."""
        donor = self.contexts.shorter[context]
        while donor is not None and not own[donor].any():
            donor = self.contexts.shorter[donor]
        return donor


@dataclass(frozen=True)
class ConfusionMatrices:
    """One confusion matrix per distance bin, or per distance bin and bin of some further variables.

    Attributes:
        labelling: "class" (one item per object), "group" (per group) or "proposition" (per frame).
        labels: the label of each row and of each column, all different, the empty label among them.
        edges_m: strictly increasing ends of the distance bins; the last may be infinite (an overflow bin).
        counts: (bins, predicted, true) int64, not negative.
        metadata: whatever else the file says (distance measure, matching and false-positive policy, source).
        variables: further variables whose bins have matrices of their own; the last one's bins vary fastest.
        memory: where every bin is divided by context: a bin and a context are numbered together, context fastest.
    """

    labelling: Labelling
    labels: tuple[Label, ...]
    edges_m: NDArray[np.float64]
    counts: NDArray[np.int64]
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    variables: tuple[Variable, ...] = ()
    memory: Memory | None = None

    def __post_init__(self) -> None:
        size = len(self.labels)
        if len(set(self.labels)) != size or EMPTY not in self.labels:
            raise ValueError("labels must be different and the empty label must be one of them")
        if self.labelling != "proposition" and any(len(label) > 1 for label in self.labels):
            raise ValueError(f"a label of a {self.labelling}-labelled matrix is one class, or empty")
        if self.counts.dtype != np.int64 or self.counts.shape != (self.bin_count, size, size):
            raise ValueError(f"counts must be int64 of shape (bins, {size}, {size}), got {self.counts.shape}")
        if np.any(self.counts < 0) or np.any(self.counts > LARGEST_COUNT):
            raise ValueError("counts must lie in 0..2**53")
        if not np.all(np.diff(self.edges_m) > 0) or not self.edges_m[0] >= 0:
            raise ValueError("bin edges must start at 0 or above and increase strictly")

    def __repr__(self) -> str:
        return f"<ConfusionMatrices: {self.title or self.labelling}, {self.bin_count} bins>"

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of bins of distance, then of each variable, then of contexts where there are any."""
        contexts = () if self.memory is None else (self.memory.contexts.count,)
        return (len(self.edges_m) - 1, *(variable.count for variable in self.variables), *contexts)

    @property
    def whole(self) -> ConfusionMatrices:
        """The matrices whatever the context."""
        return self if self.memory is None else replace(self, counts=self.memory.whole, memory=None)

    @property
    def bin_count(self) -> int:
        """Number of bins."""
        return math.prod(self.shape)

    def distance_bin(self, bins: Any) -> Any:
        """The distance bin of a bin, or of an array of them."""
        return bins // math.prod(self.shape[1:])

    def end_m(self, index: int) -> float:
        """Where the distances of a bin end."""
        return float(self.edges_m[self.distance_bin(index) + 1])

    def place_of(self, bins: NDArray[np.int64]) -> NDArray[np.int64]:
        """The bins with what only objects have put at its first bin: equal where two bins are one place."""
        at = list(np.unravel_index(bins, self.shape))
        for axis, variable in enumerate(self.variables, 1):
            if variable.scope == "object":
                at[axis] = np.zeros_like(at[axis])
        return np.ravel_multi_index(tuple(at), self.shape)

    @property
    def item_count(self) -> int:
        """Items in all columns; what was reported of no object is the same in every bin that only objects have."""
        if self.memory is not None:
            return self.whole.item_count
        every = np.arange(self.bin_count)
        own = (self.place_of(every) == every)[:, None] | np.array([label != EMPTY for label in self.labels])
        return int(self.counts.sum(axis=1)[own].sum())

    @property
    def localisation(self) -> NDArray[np.int64] | None:
        """(reported, true) items by the bins of their reported and their true distance; None for no such counts."""
        localisation = self.metadata.get("localisation")
        return None if localisation is None else np.array(localisation["counts"], dtype=np.int64)

    @property
    def classes(self) -> frozenset[str]:
        """Every class that a label names."""
        return frozenset().union(*self.labels)

    def column_of(self, label: Label) -> int:
        """Index of the column (and row) of `label`; InputError when the matrices do not have it."""
        if label not in self.labels:
            known = ", ".join(label_text(label) for label in self.labels)
            raise InputError(
                f"the {self.labelling}-labelled matrices have no column for true label {label_text(label)}",
                hint=f"they have: {known}",
            )
        return self.labels.index(label)

    def canonical(self) -> ConfusionMatrices:
        """The distance-free matrix: the sum over all bins, in one bin that holds every distance.

        Raises:
            UsageError: there are bins of further variables.
        """
        if self.variables:
            names = ", ".join(f"'{variable.name}'" for variable in self.variables)
            raise UsageError(f"--canonical sums over all bins, and the model says where objects are by {names}")
        total = self.counts.sum(axis=0, keepdims=True)
        metadata = {key: value for key, value in self.metadata.items() if key != "localisation"}
        return replace(self, edges_m=np.array([0.0, np.inf]), counts=total, metadata=metadata)

    def bins_of(self, distances_m: NDArray[np.float64]) -> NDArray[np.int64]:
        """Distance bin of each distance in metres; -1 where no bin holds it."""
        return bins_between(self.edges_m, distances_m)

    def bin_text(self, index: int) -> str:
        """A bin for people: `[10, 20) m`, `[10, 20) m, occlusion [0, 1)`."""
        first, *rest = np.unravel_index(index, self.shape)
        low, high = self.edges_m[first], self.edges_m[first + 1]
        further = [
            f"{variable.name} {variable.bin_text(int(at))}"
            for variable, at in zip(self.variables, rest, strict=False)
        ]
        if self.memory is not None:
            context = self.memory.contexts.names[int(rest[-1])]
            further.append("at start" if context == "start" else f"after {context}")
        return ", ".join([f"[{low:g}, {high:g}) m", *further])

    def without_empty_columns(self, policy: str = "error") -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Counts in which every column has items, as far as `policy` can provide them.

        Every policy puts integer counts into a column that has none, so that rates stay exact fractions.

        Returns:
            counts: (bins, predicted, true) int64.
            filled: (bins, true) bool, the columns that had no items of their own. With policy "error" they are
                still without items; whoever uses one must refuse.

        Raises:
            InputError: policy "neighbour" or "pool" and a column has no items in any bin.
        """
        check_known("policy", policy, EMPTY_COLUMN_POLICIES)
        if self.memory is not None:
            return self._from_shorter_contexts(self.memory, self.whole.without_empty_columns(policy)[0])
        counts = self.counts.copy()
        filled: NDArray[np.bool_] = self.counts.sum(axis=1) == 0
        if policy == "prior":
            counts.transpose(0, 2, 1)[filled] = 1
        elif policy == "miss":
            misses = np.zeros(len(self.labels), dtype=np.int64)
            misses[self.labels.index(EMPTY)] = 1
            counts.transpose(0, 2, 1)[filled] = misses
        elif policy in ("neighbour", "pool"):
            for column in np.flatnonzero(filled.any(axis=0)):
                self._fill_from_other_bins(counts, int(column), policy)
        return counts, filled

    def _from_shorter_contexts(
        self, memory: Memory, whole: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """As `without_empty_columns`, from the columns of the bins without empty ones."""
        size, contexts = len(self.labels), memory.contexts.count
        own = self.counts.reshape(-1, contexts, size, size)
        filled = own.sum(axis=2) == 0
        pooled = own.sum(axis=0)
        counts = own.copy()
        held = memory.whole.sum(axis=1) > 0
        for at, context, column in np.argwhere(filled).tolist():
            if held[at, column] and memory.policy == "prior":
                counts[at, context, :, column] = 1
            elif held[at, column] and memory.policy == "pool" and pooled[context, :, column].any():
                counts[at, context, :, column] = pooled[context, :, column]
            elif not held[at, column] or memory.policy != "error":
                donor = memory.donor(own[at, :, :, column], context)
                counts[at, context, :, column] = (whole[at] if donor is None else own[at, donor])[:, column]
        for label in np.flatnonzero(memory.followed & (memory.contexts.kind == "persist")):
            counts[:, -1, :, label] = np.arange(size) == label  # what lasted so long lasts no longer
        return counts.reshape(self.counts.shape), filled.reshape(-1, size)

    def filled_from(self, index: int, column: int) -> str:
        """Where the rates of a column without items in its context come from; empty where that is no context."""
        memory = self.memory
        if memory is None or memory.policy in ("prior", "error"):
            return ""
        at, context = divmod(index, memory.contexts.count)
        if not memory.whole[at, :, column].any():
            return ""
        own = self.counts.reshape(-1, memory.contexts.count, *self.counts.shape[1:])
        if memory.policy == "pool" and own[:, context, :, column].any():
            return f"{memory.contexts.names[context]} of all bins"
        donor = memory.donor(own[at, :, :, column], context)
        return "the column of the bin" if donor is None else memory.contexts.names[donor]

    def _fill_from_other_bins(self, counts: NDArray[np.int64], column: int, policy: str) -> None:
        has_items = self.counts[:, :, column].sum(axis=1) > 0
        if not has_items.any():
            raise InputError(
                f"true label {label_text(self.labels[column])} has no items in any bin, "
                f"so policy '{policy}' has nothing to fill its columns with",
                hint="collect data for it, or use --empty-columns prior",
            )
        donors = np.flatnonzero(has_items)
        for index in np.flatnonzero(~has_items):
            if policy == "pool":
                counts[index, :, column] = self.counts[:, :, column].sum(axis=0)
            else:
                further = donors % math.prod(self.shape[1:]) != index % math.prod(self.shape[1:])
                steps = np.abs(self.distance_bin(donors) - self.distance_bin(index))
                nearest = donors[np.argmin(steps + self.bin_count * further)]
                counts[index, :, column] = self.counts[nearest, :, column]


def rates(counts: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Column-normalised counts: mu_k(predicted | true) (eqs. 5 and 8); NaN where a column has no items.

    `counts` may have any leading axes before (predicted, true).
    """
    totals = counts.sum(axis=-2, keepdims=True)
    with np.errstate(invalid="ignore"):
        normalised: NDArray[np.float64] = counts / totals
    return normalised


def exact_rates(counts: NDArray[np.int64]) -> NDArray[np.object_]:
    """`rates` as exact fractions, in an object array of the same shape; NaN where a column has no items."""
    totals = np.broadcast_to(counts.sum(axis=-2, keepdims=True), counts.shape)
    values = np.empty(counts.shape, dtype=object)
    for place in np.ndindex(counts.shape):
        values[place] = Fraction(int(counts[place]), int(totals[place])) if totals[place] else math.nan
    return values


def label_text(label: Label) -> str:
    """A label for people: `empty`, `ped`, `{obs, ped}`."""
    if not label:
        return "empty"
    return next(iter(label)) if len(label) == 1 else "{" + ", ".join(sorted(label)) + "}"
