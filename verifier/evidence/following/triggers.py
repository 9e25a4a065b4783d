"""Whether triggering conditions fit the runs and the matrices that they are from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from verifier.base.documents import json_values
from verifier.base.errors import VerifierError
from verifier.evidence.following.numbers import Misfits, misfits, once

if TYPE_CHECKING:
    from verifier.evidence.documents import Document
    from verifier.evidence.triggers.document import TriggersResult


def triggers_misfits(found: TriggersResult) -> Misfits:
    """Every condition stands once, with what it names, and every pair of them."""
    from itertools import combinations

    yield from once("/triggers", (each.name for each in found.triggers))
    named = {role: {each.sha256 for each in found.inputs if each.role == role} for role in ("result", "confusion")}
    for k, each in enumerate(found.triggers):
        if each.run not in {None, *named["result"]}:
            yield f"/triggers/{k}/run", "expected a run among the inputs"
        if each.run is None and each.judged:
            yield f"/triggers/{k}/judged", "expected nothing without a run"
        if each.items is not None and each.sha256 not in named["confusion"]:
            yield f"/triggers/{k}/items", "expected counts of matrices among the inputs"
    pairs = [(each.first, each.second) for each in found.pairs]
    if pairs != list(combinations([each.name for each in found.triggers], 2)):
        yield "/pairs", "expected every two conditions once"
    for k, pair in enumerate(found.pairs):
        if (pair.items is None) == (pair.reason == ""):
            yield f"/pairs/{k}/reason", "expected a reason where the items are not known, and nowhere else"


def sources_behind(found: Document, documents: Iterable[Document]) -> Sequence[Document] | None:
    """The runs and matrices that triggering conditions are from; None where some are not among the documents."""
    wanted = {each.sha256 for each in found.result.inputs if each.role != "context"}
    there = {each.sha256: each for each in documents if each.sha256 in wanted}
    return list(there.values()) if there.keys() == wanted else None


def triggers_against(found: TriggersResult, sources: Sequence[Document]) -> Misfits:
    """Whether they are what runs and matrices say, made again from what is stated."""
    from verifier.evidence.triggers.assembly import known_triggers

    try:
        follows = known_triggers(found.triggers, sources)
    except VerifierError as error:
        yield "/triggers", str(error)
        return
    for name in ("triggers", "pairs"):
        yield from misfits(f"/{name}", json_values(getattr(found, name)), json_values(getattr(follows, name)), 0.0)
