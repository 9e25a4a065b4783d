"""What a document says that a deciding world does, compared with what is computed again from the inputs."""

from typing import Any

from verifier.base.documents import json_values
from verifier.checking.enclosure import AGREEMENT
from verifier.evidence.differences import differing
from verifier.evidence.findings import Finding
from verifier.study.points import WorldDecisions


def wrong_decisions(path: str, stated: Any, again: WorldDecisions | None, pointer: str) -> list[Finding]:
    """What is not so; numbers may differ in their last digits.

    Args:
        path: of the document in the bundle.
        stated: what it says there, as JSON, or None.
        again: what is computed.
        pointer: of the requirement that it is about.
    """
    computed = json_values(again)
    if stated is not None and computed is not None:
        _rounded(stated, computed, "probability")
        for mine, other in zip(stated["decided"], computed["decided"], strict=False):
            _rounded(mine, other, "visits")
    return differing(path, {"world": stated}, {"world": computed}, ", computed again from the inputs", pointer)


def _rounded(stated: dict[str, Any], computed: dict[str, Any], key: str) -> None:
    """Take the number that is stated for the computed one, where it differs from that in its last digits only."""
    both = stated[key], computed[key]
    if all(isinstance(each, float) for each in both) and abs(both[0] - both[1]) <= AGREEMENT * max(abs(both[1]), 1):
        computed[key] = stated[key]
