"""Confusion matrices as a JSON document: read with precise complaints, written so that reading gives the same.

The published schema is `confusion.schema.json` beside this file. The axes are named in the document and only
`["predicted", "true"]` is accepted: a transposed matrix is plausible and silently wrong.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from verifier.confusion.matrices import EMPTY, LARGEST_COUNT, ConfusionMatrices, Label
from verifier.errors import InputError, Place, nearest_name, shown
from verifier.textfiles import read_json, write_text

SCHEMA_NAME = "verifier.confusion"
SCHEMA_VERSION = 1
AXES = ["predicted", "true"]
REQUIRED = ("schema", "version", "labelling", "axes", "labels", "bins")
OPTIONAL = ("title", "distance", "matching", "false_alarms", "source", "notes")
EMPTY_CLASS = "empty"


@dataclass(frozen=True)
class ConfusionFile:
    """Matrices together with the file they came from: its name as given and the SHA-256 of its bytes."""

    matrices: ConfusionMatrices
    name: str
    sha256: str


def read_confusion(path: str | Path) -> ConfusionFile:
    """Read a confusion document.

    Raises:
        InputError: naming the file and the JSON pointer (or line and column) of the first offending element.
    """
    document, raw = read_json(path)
    matrices = parse_confusion(document, str(path))
    return ConfusionFile(matrices, str(path), hashlib.sha256(raw).hexdigest())


def parse_confusion(document: Any, file: str | None = None) -> ConfusionMatrices:
    """The matrices that a decoded JSON document describes; InputError as `read_confusion`."""
    return _Reader(file).matrices(document)


def write_confusion(matrices: ConfusionMatrices, path: str | Path) -> None:
    """Write the document that `read_confusion` reads back to equal matrices; all or nothing."""
    write_text(path, confusion_text(matrices))


def confusion_text(matrices: ConfusionMatrices) -> str:
    """The document as text: stable bytes, one matrix row per line."""
    head: dict[str, Any] = {"schema": SCHEMA_NAME, "version": SCHEMA_VERSION}
    if matrices.title:
        head["title"] = matrices.title
    head |= {"labelling": matrices.labelling, "axes": AXES}
    head["labels"] = [_label_json(label, matrices.labelling) for label in matrices.labels]
    head |= dict(matrices.metadata)
    lines = [f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}," for key, value in head.items()]
    bins = [_bin_text(matrices, index) for index in range(matrices.bin_count)]
    return "{\n" + "\n".join(lines) + '\n  "bins": [\n' + ",\n".join(bins) + "\n  ]\n}\n"


def _bin_text(matrices: ConfusionMatrices, index: int) -> str:
    edges = json.dumps([_edge_json(edge) for edge in matrices.edges_m[index : index + 2]])
    rows = ",\n        ".join(json.dumps(row) for row in matrices.counts[index].tolist())
    return f'    {{"distance_m": {edges},\n      "counts": [\n        {rows}\n      ]}}'


def _label_json(label: Label, labelling: str) -> str | list[str]:
    if labelling == "proposition":
        return sorted(label)
    return next(iter(label)) if label else EMPTY_CLASS


def _edge_json(edge: float) -> int | float | None:
    if math.isinf(edge):
        return None
    return int(edge) if float(edge).is_integer() else float(edge)


@dataclass(frozen=True)
class _Reader:
    """Turns a decoded document into matrices; every complaint carries the JSON pointer of its element."""

    file: str | None

    def fail(self, path: str, message: str, hint: str | None = None) -> InputError:
        return InputError(message, Place(self.file, path=path or "the document"), hint)

    def matrices(self, document: Any) -> ConfusionMatrices:
        self._check_head(document)
        labelling = document["labelling"]
        labels = self._labels(document["labels"], labelling)
        edges, counts = self._bins(document["bins"], len(labels))
        return ConfusionMatrices(
            labelling, labels, edges, counts, document.get("title", ""), self._metadata(document)
        )

    def _metadata(self, document: dict[str, Any]) -> dict[str, Any]:
        metadata = {key: document[key] for key in OPTIONAL if key in document and key != "title"}
        if not isinstance(document.get("title", ""), str):
            raise self.fail("/title", f"expected a string, got {shown(document['title'])}")
        if metadata.get("false_alarms", "dropped") not in ("dropped", "counted"):
            raise self.fail(
                "/false_alarms", f"expected 'dropped' or 'counted', got {shown(metadata['false_alarms'])}"
            )
        for key, value in metadata.items():
            try:
                json.dumps(value, allow_nan=False)
            except ValueError:
                raise self.fail(f"/{key}", "NaN and infinities are not JSON numbers") from None
        return metadata

    def _check_head(self, document: Any) -> None:
        if not isinstance(document, dict):
            raise self.fail("", f"expected an object with the key 'schema', got {shown(document)}")
        for key in document:
            if key not in REQUIRED + OPTIONAL:
                nearest = nearest_name(key, REQUIRED + OPTIONAL)
                hint = f"did you mean '{nearest}'?" if nearest else "put free text under 'notes'"
                raise self.fail("/" + _escaped(key), f"unknown key {shown(key)}", hint)
        if "axes" not in document:
            raise self.fail(
                "/axes",
                "the axes of the matrices are not named",
                'write "axes": ["predicted", "true"] if counts[i][j] has predicted label i and true label j; '
                "transpose the counts otherwise",
            )
        for key in REQUIRED:
            if key not in document:
                raise self.fail("", f"missing key '{key}'")
        self._check_constant(document, "schema", SCHEMA_NAME)
        self._check_constant(document, "version", SCHEMA_VERSION)
        if document["axes"] != AXES:
            raise self.fail(
                "/axes",
                f'expected ["predicted", "true"], got {shown(document["axes"])}',
                "transpose the counts, so that each column sums to the items of one true label",
            )
        if document["labelling"] not in ("class", "proposition"):
            raise self.fail("/labelling", f"expected 'class' or 'proposition', got {shown(document['labelling'])}")

    def _check_constant(self, document: dict[str, Any], key: str, expected: str | int) -> None:
        found = document[key]
        if found != expected or isinstance(found, bool):
            raise self.fail(f"/{key}", f"expected {expected!r}, got {shown(found)}")

    def _labels(self, found: Any, labelling: str) -> tuple[Label, ...]:
        if not isinstance(found, list) or not found:
            raise self.fail("/labels", f"expected a list of labels, got {shown(found)}")
        labels: list[Label] = []
        for index, entry in enumerate(found):
            path = f"/labels/{index}"
            label = self._class_label(path, entry) if labelling == "class" else self._set_label(path, entry)
            if label in labels:
                raise self.fail(path, f"label {shown(entry)} occurs twice")
            labels.append(label)
        if EMPTY not in labels:
            missing = f"'{EMPTY_CLASS}'" if labelling == "class" else "[] (no class)"
            raise self.fail("/labels", f"the label {missing} is missing", "it stands for 'nothing is there'")
        return tuple(labels)

    def _class_label(self, path: str, entry: Any) -> Label:
        name = self._class_name(path, entry)
        return EMPTY if name == EMPTY_CLASS else frozenset({name})

    def _set_label(self, path: str, entry: Any) -> Label:
        if not isinstance(entry, list):
            raise self.fail(path, f"expected a list of class names, got {shown(entry)}")
        names = [self._class_name(f"{path}/{position}", name) for position, name in enumerate(entry)]
        if EMPTY_CLASS in names:
            raise self.fail(path, "'empty' is not a class of a proposition label", "write [] for no class")
        if len(set(names)) != len(names):
            raise self.fail(path, f"a class occurs twice in {shown(entry)}")
        return frozenset(names)

    def _class_name(self, path: str, name: Any) -> str:
        if not isinstance(name, str) or not name or not name.isprintable() or name != name.strip():
            raise self.fail(path, f"expected a class name, got {shown(name)}")
        return name

    def _bins(self, found: Any, size: int) -> tuple[np.ndarray, np.ndarray]:
        if not isinstance(found, list) or not found:
            raise self.fail("/bins", f"expected a list of at least one bin, got {shown(found)}")
        edges: list[float] = []
        counts = np.zeros((len(found), size, size), dtype=np.int64)
        for index, entry in enumerate(found):
            path = f"/bins/{index}"
            if not isinstance(entry, dict) or set(entry) != {"distance_m", "counts"}:
                keys = sorted(entry) if isinstance(entry, dict) else entry
                raise self.fail(path, f"expected an object with 'distance_m' and 'counts', got {shown(keys)}")
            low, high = self._range(f"{path}/distance_m", entry["distance_m"], index == len(found) - 1)
            if edges and low != edges[-1]:
                relation = "overlaps or precedes" if low < edges[-1] else "leaves a gap after"
                raise self.fail(
                    f"{path}/distance_m",
                    f"bin [{low:g}, {high:g}) {relation} the bin that ends at {edges[-1]:g} m",
                    "bins are half-open, sorted, and each begins where the one before it ends",
                )
            edges = [*edges, high] if edges else [low, high]
            counts[index] = self._counts(f"{path}/counts", entry["counts"], size)
        if counts.astype(np.float64).sum() > LARGEST_COUNT:
            raise self.fail("/bins", "expected at most 2**53 items in all", "larger sums are not exact")
        return np.array(edges), counts

    def _range(self, path: str, found: Any, last: bool) -> tuple[float, float]:
        if not isinstance(found, list) or len(found) != 2:
            raise self.fail(path, f"expected [low, high] in metres, got {shown(found)}")
        low = self._metres(f"{path}/0", found[0])
        if found[1] is None:
            if not last:
                raise self.fail(f"{path}/1", "only the last bin may be without an upper end")
            return low, math.inf
        high = self._metres(f"{path}/1", found[1])
        if not low < high:
            raise self.fail(path, f"expected low < high, got {shown(found)}")
        return low, high

    def _metres(self, path: str, found: Any) -> float:
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= 1e9:
            raise self.fail(path, f"expected a distance in metres from 0 to 1e9, got {shown(found)}")
        return float(found)

    def _counts(self, path: str, found: Any, size: int) -> list[list[int]]:
        if not isinstance(found, list) or len(found) != size:
            number = f"{len(found)} rows" if isinstance(found, list) else shown(found)
            raise self.fail(path, f"expected {size} rows (one per predicted label), got {number}")
        for i, row in enumerate(found):
            if not isinstance(row, list) or len(row) != size:
                number = f"{len(row)} entries" if isinstance(row, list) else shown(row)
                raise self.fail(f"{path}/{i}", f"expected {size} entries (one per true label), got {number}")
            for j, count in enumerate(row):
                if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                    raise self.fail(f"{path}/{i}/{j}", f"expected a non-negative integer, got {shown(count)}")
                if count > LARGEST_COUNT:
                    raise self.fail(f"{path}/{i}/{j}", f"expected at most 2**53, got {shown(count)}")
        return found


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
