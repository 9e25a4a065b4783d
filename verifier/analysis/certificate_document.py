"""Certificates as JSON documents: everything that a checker needs, every double to the last bit.

The document holds the SHA-256 of its content, so that damage is told apart from a wrong proof.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.certificate import Box, Certificate, Split, Subject, Tree
from verifier.analysis.region import Evidence, Region
from verifier.errors import InputError, Place, shown

SCHEMA_NAME = "verifier.certificate"
SCHEMA_VERSION = 1
DEEPEST_TREE = 200
LARGEST_NUMBER = 2**53
LONGEST_FRACTION = 100
"""Characters of alpha."""


def document(certificate: Certificate) -> dict[str, Any]:
    """The JSON document of a certificate."""
    content = {
        "schema": SCHEMA_NAME,
        "version": SCHEMA_VERSION,
        "side": certificate.side,
        "claimed": list(certificate.claimed),
        "subject": _subject_document(certificate.subject),
        "region": _region_document(certificate.region),
        "boxes": [
            {"value": box.value.tolist(), "order": box.order.tolist(), "component": box.component.tolist()}
            for box in certificate.boxes
        ],
        "tree": _tree_document(certificate.tree),
    }
    return {**content, "sha256": _digest(content)}


def from_document(given: Any, file: str | None = None) -> Certificate:
    """The certificate that a decoded JSON document holds. Whether it proves anything is for the checker to say.

    Raises:
        InputError: it is no such document, or its content does not fit its SHA-256.
    """
    reader = _Reader(file)
    top = reader.object(
        given, "", ("schema", "version", "side", "claimed", "subject", "region", "boxes", "tree", "sha256")
    )
    if (top["schema"], top["version"]) != (SCHEMA_NAME, SCHEMA_VERSION):
        raise reader.fail("/schema", f"expected {SCHEMA_NAME} version {SCHEMA_VERSION}")
    try:
        digest = _digest({key: value for key, value in top.items() if key != "sha256"})
    except (ValueError, RecursionError):
        raise reader.fail("", "a number is not finite, or lists nest too deep") from None
    if digest != top["sha256"]:
        raise reader.fail("/sha256", "the content is not what was written: its SHA-256 differs")
    if top["side"] not in ("lower", "upper"):
        raise reader.fail("/side", f"expected lower or upper, got {shown(top['side'])}")
    claimed = reader.list(top["claimed"], "/claimed")
    if not all(each is None or type(each) is float for each in claimed):
        raise reader.fail("/claimed", "expected numbers with a decimal point, or null")
    boxes = []
    for number, each in enumerate(reader.list(top["boxes"], "/boxes")):
        path = f"/boxes/{number}"
        box = reader.object(each, path, ("value", "order", "component"))
        boxes.append(
            Box(
                reader.floats(box["value"], f"{path}/value"),
                reader.integers(box["order"], f"{path}/order", 1),
                reader.integers(box["component"], f"{path}/component", 1),
            )
        )
    region = reader.region(top["region"])
    return Certificate(
        top["side"], tuple(claimed), reader.subject(top["subject"]), region, tuple(boxes), reader.tree(top["tree"], 0)
    )


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _subject_document(subject: Subject) -> dict[str, Any]:
    return {
        "formula": subject.formula,
        "propositions": list(subject.propositions),
        "observations": [list(each) for each in subject.observations],
        "reports": [list(each) for each in subject.reports],
        "bins": subject.bins.tolist(),
        "columns": subject.columns.tolist(),
        "row": subject.row.tolist(),
        "following": subject.following.tolist(),
        "letters": subject.letters.tolist(),
        "parent": subject.parent.tolist(),
        "starts": subject.starts.tolist(),
    }


def _region_document(region: Region) -> dict[str, Any]:
    evidence = region.evidence
    found = None
    if evidence is not None:
        found = {
            "alpha": str(evidence.alpha),
            "events": evidence.events,
            "items": evidence.items.tolist(),
            "fixed": evidence.fixed.tolist(),
        }
    return {
        "labels": [sorted(each) for each in region.labels],
        "group": region.group.tolist(),
        "lower": region.lower.tolist(),
        "upper": region.upper.tolist(),
        "needed": region.needed.tolist(),
        "evidence": found,
    }


def _tree_document(tree: Tree) -> Any:
    if not isinstance(tree, Split):
        return tree
    place = {"bin": tree.bin, "group": tree.group, "true": tree.true, "at": tree.at}
    return {**place, "below": _tree_document(tree.below), "above": _tree_document(tree.above)}


class _Reader:
    """Takes a decoded document apart; every complaint carries the JSON pointer of its element."""

    def __init__(self, file: str | None) -> None:
        self._file = file

    def fail(self, path: str, message: str) -> InputError:
        return InputError(f"no certificate: {message}", Place(self._file, path=path or "the document"))

    def object(self, value: Any, path: str, keys: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(value, dict) or set(value) != set(keys):
            raise self.fail(path, f"expected an object with exactly the keys {', '.join(keys)}")
        return value

    def list(self, value: Any, path: str) -> list[Any]:
        if not isinstance(value, list):
            raise self.fail(path, f"expected a list, got {shown(value)}")
        return value

    def integers(self, value: Any, path: str, dimensions: int) -> NDArray[np.int64]:
        found = self._array(value, path, dimensions, (int,))
        if found.size and max(-min(found.flat), max(found.flat)) > LARGEST_NUMBER:
            raise self.fail(path, "a number is out of range")
        return found.astype(np.int64)

    def floats(self, value: Any, path: str) -> NDArray[np.float64]:
        return self._array(value, path, 1, (float,)).astype(np.float64)

    def truths(self, value: Any, path: str) -> NDArray[np.bool_]:
        return self._array(value, path, 2, (bool,)).astype(bool)

    def _array(self, value: Any, path: str, dimensions: int, kinds: tuple[type, ...]) -> NDArray[Any]:
        shape: list[int] = []
        level: Any = [value]
        for _ in range(dimensions):
            if not all(isinstance(each, list) for each in level) or len({len(each) for each in level}) > 1:
                raise self.fail(path, f"expected {dimensions} levels of lists of equal length")
            shape.append(len(level[0]) if level else 0)
            level = [inner for each in level for inner in each]
        if not all(type(each) in kinds for each in level):
            raise self.fail(path, f"expected numbers of type {kinds[0].__name__}")
        result = np.empty(len(level), dtype=object)
        result[:] = level
        return result.reshape(shape)

    def sets(self, value: Any, path: str) -> tuple[tuple[str, ...], ...]:
        found = self.list(value, path)
        if not all(isinstance(each, list) and all(isinstance(name, str) for name in each) for each in found):
            raise self.fail(path, "expected lists of class names")
        return tuple(map(tuple, found))

    def subject(self, value: Any) -> Subject:
        path = "/subject"
        keys = (
            "formula",
            "propositions",
            "observations",
            "reports",
            "bins",
            "columns",
            "row",
            "following",
            "letters",
        )
        given = self.object(value, path, (*keys, "parent", "starts"))
        texts = self.list(given["propositions"], f"{path}/propositions")
        if not all(isinstance(each, str) for each in [given["formula"], *texts]):
            raise self.fail(path, "expected a formula and propositions as texts")
        tables = [self.integers(given[key], f"{path}/{key}", 2) for key in ("bins", "columns")]
        row = self.integers(given["row"], f"{path}/row", 1)
        following = self.integers(given["following"], f"{path}/following", 2)
        lists = [self.integers(given[key], f"{path}/{key}", 1) for key in ("letters", "parent", "starts")]
        return Subject(
            given["formula"],
            tuple(texts),
            self.sets(given["observations"], f"{path}/observations"),
            self.sets(given["reports"], f"{path}/reports"),
            tables[0],
            tables[1],
            row,
            following,
            lists[0],
            lists[1],
            lists[2],
        )

    def region(self, value: Any) -> Region:
        path = "/region"
        given = self.object(value, path, ("labels", "group", "lower", "upper", "needed", "evidence"))
        evidence = None if given["evidence"] is None else self.evidence(given["evidence"])
        labels = tuple(frozenset(each) for each in self.sets(given["labels"], f"{path}/labels"))
        group = self.integers(given["group"], f"{path}/group", 1)
        lower, upper = (self.integers(given[key], f"{path}/{key}", 3) for key in ("lower", "upper"))
        needed = self.truths(given["needed"], f"{path}/needed")
        try:
            return Region(labels, group, lower, upper, needed, evidence)
        except ValueError as error:
            raise self.fail(path, str(error)) from None

    def evidence(self, value: Any) -> Evidence:
        path = "/region/evidence"
        given = self.object(value, path, ("alpha", "events", "items", "fixed"))
        items = self.integers(given["items"], f"{path}/items", 3)
        fixed = self.truths(given["fixed"], f"{path}/fixed")
        events = self.integers([given["events"]], f"{path}/events", 1)
        try:
            return Evidence(_fraction(given["alpha"]), int(events[0]), items, fixed)
        except ValueError as error:
            raise self.fail(path, str(error)) from None

    def tree(self, value: Any, depth: int) -> Tree:
        if value is None or type(value) is int:
            return value
        if depth > DEEPEST_TREE:
            raise self.fail("/tree", f"more than {DEEPEST_TREE} cuts below each other")
        given = self.object(value, "/tree", ("bin", "group", "true", "at", "below", "above"))
        keys = ("bin", "group", "true", "at")
        index, group, true, at = self.integers([given[key] for key in keys], "/tree", 1).tolist()
        below, above = (self.tree(given[key], depth + 1) for key in ("below", "above"))
        return Split(index, group, true, at, below, above)


def _fraction(text: Any) -> Fraction:
    """alpha, written as `1/20`; ValueError if it is nothing of the kind."""
    try:
        if not isinstance(text, str) or len(text) > LONGEST_FRACTION:
            raise ValueError
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ValueError("alpha is a fraction such as 1/20") from None
