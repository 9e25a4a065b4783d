"""What a result was made from, and what the matrices among that say of themselves."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import get_args

from verifier.evidence.documents import Document
from verifier.study.results import InputRole


def sources_of(document: Document) -> dict[str, str]:
    """Role -> SHA-256 of the spec, model and matrices that a result was made from; other results name none.

    Of the files of planners there may be several; they have their names behind the role.
    """
    inputs = [each for each in document.content.get("inputs", ()) if each.get("role") in get_args(InputRole)]
    named = {True: "planner {name}", False: "{role}"}
    return {named[each["role"] == "planner"].format(**each): each["sha256"] for each in inputs}


def same_sources(document: Document, run: Document) -> bool:
    """Whether a result was made from all that a run was made from."""
    return sources_of(run).items() <= sources_of(document).items()


def matrices_behind(run: Document, documents: Sequence[Document]) -> Document | None:
    """The confusion document that a run was made with, by its hash; None where it is not among the documents."""
    wanted = {file.sha256 for file in run.result.inputs if file.role == "confusion"}
    return next((each for each in documents if each.kind == "confusion" and each.sha256 in wanted), None)


def shared_sequences(matrices: Document, trained_on: Sequence[str]) -> list[str]:
    """Names of the tested sequences that match one of the patterns of trained ones."""
    names = [each["name"] for each in matrices.content.get("sequences", ())]
    plain = [pattern.replace("[", "[[]") for pattern in trained_on]  # only * and ? stand for others
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in plain)]
