"""The keys `contexts` of a confusion document, from and to JSON (see `perception.confusion.contexts`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.documents import json_values, read_document
from verifier.base.errors import UsageError, nearest_name, shown
from verifier.perception.confusion.context_selection import coarser_candidates
from verifier.perception.confusion.contexts import UNTRACKED, Contexts
from verifier.perception.confusion.counts import ContextCounts
from verifier.perception.confusion.document_types import ContextsRecord
from verifier.perception.confusion.document_variables import Fail, escaped
from verifier.perception.confusion.tally import Tally


def context_head(found: ContextCounts) -> dict[str, Any]:
    """What the document says of the context function."""
    own, how = found.contexts, (found.units, found.tests, found.tracks, found.replays)
    head = json_values(ContextsRecord("run", own.cap, "outcome", found.gaps, found.period_s, *how))
    return {**head, "kind": own.kind}  # which the matrices of a file count: "run" or "last"


def context_bin(found: ContextCounts, index: int, *, family: bool) -> dict[str, Any]:
    """The matrices of one bin by context; those without items are left out."""
    names = (*found.contexts.names, UNTRACKED)
    matrices = found.counts[:, index] if family else found.counts[0, index][None]
    by_context = matrices.transpose(1, 0, 2, 3) if family else matrices[0]
    return {name: own.tolist() for name, own in zip(names, by_context, strict=True) if own.any()}


def context_rows(found: ContextCounts, sequence: int) -> list[list[int]]:
    """The rows [bin, context, predicted, true, count, ...] of one sequence."""
    assert found.tally is not None
    own = found.tally.of_sequence(sequence)
    at_bin, context = np.divmod(own.index[:, 1], found.per_bin)
    rows: list[list[int]] = np.column_stack([at_bin, context, own.index[:, 2:], own.counts]).tolist()
    return rows


@dataclass(frozen=True)
class ContextsReader:
    """Reads the counts by context of a document.

    Attributes:
        contexts: the context function.
        head: the key `contexts` of the document.
        fail: makes the complaint from a JSON pointer and a text.
    """

    contexts: Contexts
    head: ContextsRecord
    fail: Fail

    @classmethod
    def of(cls, found: Any, file: str, fail: Fail) -> ContextsReader:
        """Read the key `contexts` of the document, which is in a file of this name."""
        keys = [each.name for each in fields(ContextsRecord)]
        for key in (key for key in found if key not in keys) if isinstance(found, Mapping) else ():
            nearest = nearest_name(key, keys)
            hint = f"did you mean '{nearest}'?" if nearest else f"known: {', '.join(keys)}"
            raise fail("/contexts/" + escaped(key), f"unknown key {shown(key)}", hint)
        head = read_document(ContextsRecord, found, file, "/contexts")
        try:
            contexts = Contexts(head.kind, head.cap)
        except UsageError as error:
            raise fail("/contexts/cap", str(error)) from None
        known = set(map(str, coarser_candidates(contexts)))
        tested = [(each.label, each.contexts) for each in head.tests]
        for number, (label, coarser) in enumerate(tested):
            path = f"/contexts/tests/{number}"
            if coarser not in known:
                raise fail(path, f"expected contexts no finer than {contexts}, got {shown(coarser)}")
            if (label, coarser) in tested[:number]:
                raise fail(path, f"{label} with {coarser} has a test already")
        for number, each in enumerate(head.replays):
            try:
                contexts.coarsening(Contexts.parsed(each.contexts))
            except UsageError as error:
                raise fail(f"/contexts/replays/{number}/contexts", str(error)) from None
        return cls(contexts, head, fail)

    @property
    def names(self) -> tuple[str, ...]:
        """Of all contexts, untracked items last."""
        return (*self.contexts.names, UNTRACKED)

    def bin(self, path: str, found: Any) -> dict[int, Any]:
        """The matrices of one bin by number of the context, as they are written."""
        if not isinstance(found, Mapping):
            raise self.fail(path, f"expected an object from contexts to matrices, got {shown(found)}")
        numbers = {name: number for number, name in enumerate(self.names)}
        for name in found:
            if name not in numbers:
                nearest = nearest_name(name, numbers)
                hint = (
                    f"did you mean '{nearest}'?" if nearest else f"{self.contexts} has {', '.join(self.names[:4])}.."
                )
                raise self.fail(f"{path}/{escaped(name)}", f"unknown context {shown(name)}", hint)
        return {numbers[name]: matrix for name, matrix in found.items()}

    def check_sums(self, by_context: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Refuse matrices by context that do not add up to those of their bin."""
        differing = np.argwhere(by_context.sum(axis=2) != counts)
        if len(differing):
            member, at_bin, predicted, true = differing[0].tolist()
            raise self.fail(
                f"/bins/{at_bin}/contexts",
                f"the matrices add up to {by_context[member, at_bin, :, predicted, true].sum()} at predicted "
                f"{predicted}, true {true}, and /bins/{at_bin}/counts has {counts[member, at_bin, predicted, true]}",
            )

    def counts(self, table: NDArray[np.int64], tally: Tally | None) -> ContextCounts:
        """All of it; where sequences are given, `tally` must add up to the table."""
        if tally is not None:
            dense = tally.dense(table.shape[1] * table.shape[2], table.shape[-1]).reshape(table.shape)
            differing = np.argwhere(dense != table)
            if len(differing):
                _, at_bin, context, predicted, true = differing[0].tolist()
                raise self.fail(
                    "/sequences",
                    f"the counts of the sequences do not add up to /bins/{at_bin}/contexts/{self.names[context]} at "
                    f"predicted {predicted}, true {true}",
                )
        head = self.head
        how = head.tests, head.units, head.tracks, head.replays
        return ContextCounts(self.contexts, head.gaps, head.period_s, table, tally, *how)
