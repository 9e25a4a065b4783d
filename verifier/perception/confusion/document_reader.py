"""From a decoded JSON document to confusion counts; every complaint names the element by its JSON pointer."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from verifier.base.documents import read_document
from verifier.base.errors import InputError, Place, UsageError, nearest_name, shown
from verifier.perception.confusion.bins import (
    ORDER_HINT,
    Bins,
    Variable,
    distance_range,
    escaped,
    extended,
    is_number,
    read_variables,
    where_json,
)
from verifier.perception.confusion.counts import ConfusionCounts, Sequences
from verifier.perception.confusion.data_set import DataSetRecord
from verifier.perception.confusion.document_contexts import ContextsReader, TracksReader
from verifier.perception.confusion.document_dependence import read_dependence
from verifier.perception.confusion.document_types import read_average_precision
from verifier.perception.confusion.matrices import EMPTY, LARGEST_COUNT, Label
from verifier.perception.confusion.sanity import check_remarks
from verifier.perception.confusion.tally import Tally, summed
from verifier.perception.settings import Labelling

SCHEMA_NAME = "verifier.confusion"
SCHEMA_VERSIONS = (1, 2)
ADDED_IN_2 = ("remarks", "contexts", "average_precision", "data_set")
AXES = ["predicted", "true"]
FAMILY_AXES = ["score_threshold", *AXES]
REQUIRED = ("schema", "version", "labelling", "axes", "labels", "bins")
METADATA = (
    "distance", "matching", "false_positives", "grouping", "score_threshold", "where", "totals", "source",
    "localisation", "average_precision", "dependence", "data_set", "remarks", "notes"
)  # fmt: skip
PROVENANCE = ("command", "versions")
"""How the document was made; one made from it says that of itself, so this is not handed on."""
OPTIONAL = ("title", "score_thresholds", "variables", "sequences", "contexts", *PROVENANCE, *METADATA)
LABELLINGS: tuple[Labelling, ...] = get_args(Labelling)
EMPTY_CLASS = "empty"


@dataclass(frozen=True)
class DocumentReader:
    """Turns a decoded document into matrices; every complaint carries the JSON pointer of its element."""

    file: str

    def fail(self, path: str, message: str, hint: str | None = None) -> InputError:
        """The complaint about the element at the JSON pointer `path`."""
        return InputError(message, Place(self.file, path=path or "the document"), hint)

    def counts(self, document: Any) -> ConfusionCounts:
        """The counts that the document holds.

        Raises:
            InputError: with the JSON pointer of the first offending element.
        """
        self._check_head(document)
        labelling = document["labelling"]
        labels = self._labels(document["labels"], labelling)
        thresholds = self._thresholds(document)
        variables = read_variables(document.get("variables", []), self.fail)
        members = None if thresholds is None else len(thresholds)
        contexts = None
        if "contexts" in document:
            contexts = ContextsReader.of(document["contexts"], self.file, self.fail)
        if contexts is not None and labelling == "group":
            raise self.fail("/contexts", "an item of a group-labelled matrix has no context")
        bins, counts, divided = self._bins(document["bins"], variables, len(labels), members, contexts)
        self._check_empty_columns(bins, counts, labels.index(EMPTY))
        if document.get("false_positives") == "dropped":
            self._check_no_alarms(counts, labels.index(EMPTY), members)
        sequences, finer = None, None
        if "sequences" in document:
            tracks = None
            if document["version"] > 1 and labelling == "class":
                tracks = TracksReader(bins.shape, len(labels), labels.index(EMPTY), members or 1, self.fail)
            per_bin = None if contexts is None else len(contexts.names)
            sequences, finer = self._sequences(document["sequences"], counts, tracks, per_bin)
        return ConfusionCounts(
            labelling,
            labels,
            bins,
            thresholds,
            counts,
            sequences,
            document.get("title", ""),
            self._metadata(document, members, bins.shape[0]),
            None if contexts is None else contexts.counts(divided, finer),
        )

    def _metadata(self, document: dict[str, Any], members: int | None, bins: int) -> dict[str, object]:
        metadata = {key: document[key] for key in METADATA if key in document}
        if not isinstance(document.get("title", ""), str):
            raise self.fail("/title", f"expected a string, got {shown(document['title'])}")
        if metadata.get("false_positives", "dropped") not in ("dropped", "counted"):
            raise self.fail(
                "/false_positives", f"expected 'dropped' or 'counted', got {shown(metadata['false_positives'])}"
            )
        for key, value in metadata.items():
            try:
                json.dumps(value, allow_nan=False)
            except ValueError:
                raise self.fail(f"/{key}", "NaN and infinities are not JSON numbers") from None
        if "dependence" in metadata:
            later = document["version"] > 1
            metadata["dependence"] = read_dependence(
                metadata["dependence"], members, self.file, self.fail, bins if later else None
            )
        if "localisation" in metadata:
            self._check_localisation(metadata["localisation"], bins)
        if "average_precision" in metadata:
            metadata["average_precision"] = read_average_precision(metadata["average_precision"], document, self.file)
        if "data_set" in metadata:
            read_document(DataSetRecord, metadata["data_set"], self.file, "/data_set")
        if "remarks" in metadata:
            check_remarks(metadata["remarks"], self.fail)
        return metadata

    def _check_localisation(self, given: Any, bins: int) -> None:
        path = "/localisation"
        if not isinstance(given, dict) or set(given) != {"axes", "counts"}:
            raise self.fail(path, f"expected an object with the keys 'axes' and 'counts', got {shown(given)}")
        if given["axes"] != ["reported", "true"]:
            hint = "transpose the counts, so that each column sums to the items of one true bin"
            raise self.fail(f"{path}/axes", f'expected ["reported", "true"], got {shown(given["axes"])}', hint)
        counts = self._counts(f"{path}/counts", given["counts"], bins, "reported bin", "true bin")
        if not any(map(any, counts)):
            raise self.fail(f"{path}/counts", "expected at least one item")

    def _check_head(self, document: Any) -> None:
        if not isinstance(document, dict):
            raise self.fail("", f"expected an object with the key 'schema', got {shown(document)}")
        known: tuple[str, ...] = REQUIRED + OPTIONAL
        if document.get("version") == 1:
            known = tuple(key for key in known if key not in ADDED_IN_2)
        for key in document:
            if key not in known:
                nearest = nearest_name(key, known)
                hint = f"did you mean '{nearest}'?" if nearest else "put free text under 'notes'"
                raise self.fail("/" + escaped(key), f"unknown key {shown(key)}", hint)
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
        command = document.get("command", [])
        if not isinstance(command, list) or not all(isinstance(value, str) for value in command):
            raise self.fail("/command", f"expected a list of strings, got {shown(command)}")
        if document["schema"] != SCHEMA_NAME:
            raise self.fail("/schema", f"expected {SCHEMA_NAME!r}, got {shown(document['schema'])}")
        if document["version"] not in SCHEMA_VERSIONS or isinstance(document["version"], bool):
            raise self.fail("/version", f"expected 1 or 2, got {shown(document['version'])}")
        family = "score_thresholds" in document
        if document["axes"] != (FAMILY_AXES if family else AXES):
            expected = '["score_threshold", "predicted", "true"]' if family else '["predicted", "true"]'
            raise self.fail(
                "/axes",
                f"expected {expected}, got {shown(document['axes'])}",
                "transpose the counts, so that each column sums to the items of one true label",
            )
        if document["labelling"] not in LABELLINGS:
            got = shown(document["labelling"])
            raise self.fail("/labelling", f"expected 'class', 'group' or 'proposition', got {got}")

    def _labels(self, given: Any, labelling: str) -> tuple[Label, ...]:
        if not isinstance(given, list) or not given:
            raise self.fail("/labels", f"expected a list of labels, got {shown(given)}")
        labels: list[Label] = []
        for index, entry in enumerate(given):
            path = f"/labels/{index}"
            label = self._set_label(path, entry) if labelling == "proposition" else self._class_label(path, entry)
            if label in labels:
                raise self.fail(path, f"label {shown(entry)} occurs twice")
            labels.append(label)
        if EMPTY not in labels:
            missing = "[] (no class)" if labelling == "proposition" else f"'{EMPTY_CLASS}'"
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

    def _thresholds(self, document: dict[str, object]) -> tuple[float, ...] | None:
        scores = document.get("score_thresholds")
        if "score_thresholds" not in document:
            return None
        if not isinstance(scores, list) or not scores:
            raise self.fail("/score_thresholds", f"expected a list of scores, got {shown(scores)}")
        for index, value in enumerate(scores):
            if not is_number(value) or (index and not scores[index - 1] < value):
                raise self.fail(f"/score_thresholds/{index}", f"expected increasing scores, got {shown(value)}")
        return tuple(float(value) for value in scores)

    def _bins(
        self,
        given: Any,
        variables: tuple[Variable, ...],
        size: int,
        members: int | None,
        contexts: ContextsReader | None,
    ) -> tuple[Bins, NDArray[np.int64], NDArray[np.int64]]:
        """The bins, their counts as (thresholds, bins, predicted, true), and those with an axis of contexts."""
        if not isinstance(given, list) or not given:
            raise self.fail("/bins", f"expected a list of at least one bin, got {shown(given)}")
        inner = list(itertools.product(*(range(variable.count) for variable in variables)))
        if len(given) % len(inner):
            raise self.fail("/bins", f"expected a multiple of {len(inner)} bins, got {len(given)}", ORDER_HINT)
        edges: list[float] = []
        counts = np.zeros((members or 1, len(given), size, size), dtype=np.int64)
        names = () if contexts is None else contexts.names
        divided = np.zeros((len(counts), len(given), len(names), size, size), dtype=np.int64)
        keys = {"distance_m", "counts"} | ({"where"} if variables else set())
        keys |= {"contexts"} if contexts is not None else set()
        for index, entry in enumerate(given):
            path = f"/bins/{index}"
            if not isinstance(entry, dict) or set(entry) != keys:
                listed = ", ".join(f"'{key}'" for key in sorted(keys - {"counts"}))
                got = sorted(entry) if isinstance(entry, dict) else entry
                raise self.fail(path, f"expected an object with {listed} and 'counts', got {shown(got)}")
            self._check_where(path, entry, variables, inner[index % len(inner)])
            bounds = distance_range(
                f"{path}/distance_m", entry["distance_m"], index >= len(given) - len(inner), self.fail
            )
            if index % len(inner):
                if list(bounds) != edges[-2:]:
                    raise self.fail(f"{path}/distance_m", "expected the range of the bin before it", ORDER_HINT)
            else:
                edges = extended(edges, f"{path}/distance_m", *bounds, self.fail)
            counts[:, index] = self._members(f"{path}/counts", entry["counts"], size, members)
            if contexts is not None:
                for number, matrix in contexts.bin(f"{path}/contexts", entry["contexts"]).items():
                    at = f"{path}/contexts/{names[number]}"
                    divided[:, index, number] = self._members(at, matrix, size, members)
        if counts.astype(np.float64).sum(axis=(1, 2, 3)).max() > LARGEST_COUNT:
            raise self.fail("/bins", "expected at most 2**53 items in all", "larger sums are not exact")
        if contexts is not None:
            contexts.check_sums(divided, counts)
        try:
            return Bins(tuple(edges), variables), counts, divided
        except UsageError as error:
            raise self.fail("/variables", str(error)) from None

    def _check_where(self, path: str, entry: dict[str, object], variables: tuple[Variable, ...], at: Any) -> None:
        expected = where_json(variables, at)
        if variables and entry["where"] != expected:
            got = shown(entry["where"])
            raise self.fail(f"{path}/where", f"expected {json.dumps(expected)}, got {got}", ORDER_HINT)

    def _members(self, path: str, given: Any, size: int, members: int | None) -> list[list[list[int]]]:
        """One matrix, or in a family one per score threshold."""
        if members is None:
            return [self._counts(path, given, size)]
        if not isinstance(given, list) or len(given) != members:
            number = f"{len(given)}" if isinstance(given, list) else shown(given)
            raise self.fail(path, f"expected {members} matrices (one per score threshold), got {number}")
        return [self._counts(f"{path}/{index}", entry, size) for index, entry in enumerate(given)]

    def _check_empty_columns(self, bins: Bins, counts: NDArray[np.int64], empty: int) -> None:
        """Column "empty" does not depend on what only objects have."""
        column = counts[..., empty].reshape(len(counts), *bins.shape, -1)
        for axis, of_objects in enumerate(bins.of_objects):
            if of_objects and np.ptp(column, axis=axis + 1).any():
                name = bins.variables[axis - 1].name
                raise self.fail(
                    "/bins", f"the column of the label 'empty' differs between bins of '{name}'",
                    f"only objects have '{name}', so where there is no object the counts must be equal",
                )  # fmt: skip

    def _check_no_alarms(self, counts: NDArray[np.int64], empty: int, members: int | None) -> None:
        """Where false positives were dropped, column "empty" says nothing but "empty"."""
        alarms = np.argwhere(np.delete(counts[..., empty], empty, axis=2))
        if len(alarms):
            member, at_bin, predicted = alarms[0].tolist()
            predicted += predicted >= empty
            number = counts[member, at_bin, predicted, empty]
            path = f"/bins/{at_bin}/counts/" + (f"{member}/" if members is not None else "")
            raise self.fail(
                f"{path}{predicted}/{empty}", f"{number} false positives, though /false_positives says 'dropped'",
                "write \"false_positives\": \"counted\" if unmatched detections are counted; they count as data then",
            )  # fmt: skip

    def _sequences(
        self, given: Any, counts: NDArray[np.int64], tracks: TracksReader | None, per_bin: int | None
    ) -> tuple[Sequences, Tally]:
        """The sequences, and their tally by context where a bin has `per_bin` contexts, else the same tally."""
        if not isinstance(given, list) or not given:
            raise self.fail("/sequences", f"expected a list of at least one sequence, got {shown(given)}")
        names: dict[str, int] = {}
        rows: list[list[int]] = []
        limits = [counts.shape[1], *([] if per_bin is None else [per_bin]), *counts.shape[2:]]
        limits += [LARGEST_COUNT + 1] * len(counts)
        with_tracks = tracks is not None and any(isinstance(entry, dict) and "tracks" in entry for entry in given)
        keys = ("name", "frames", "counts", *(("tracks",) if with_tracks else ()))
        for number, entry in enumerate(given):
            path = f"/sequences/{number}"
            if not isinstance(entry, dict) or set(entry) != set(keys):
                listed = ", ".join(f"'{key}'" for key in keys[:-1])
                raise self.fail(path, f"expected an object with {listed} and '{keys[-1]}'")
            if not isinstance(entry["name"], str) or entry["name"] in names:
                raise self.fail(f"{path}/name", f"expected a name that is not used yet, got {shown(entry['name'])}")
            if type(entry["frames"]) is not int or not 0 <= entry["frames"] <= LARGEST_COUNT:
                raise self.fail(f"{path}/frames", f"expected a number of frames, got {shown(entry['frames'])}")
            names[entry["name"]] = entry["frames"]
            if not isinstance(entry["counts"], list):
                raise self.fail(f"{path}/counts", f"expected a list of rows, got {shown(entry['counts'])}")
            for place, row in enumerate(entry["counts"]):
                self._check_row(f"{path}/counts/{place}", row, limits, per_bin is not None)
                rows.append([number, *row])
        table = np.array(rows, dtype=np.int64).reshape(len(rows), len(limits) + 1)
        if per_bin is not None:
            table[:, 1] = table[:, 1] * per_bin + table[:, 2]
            table = np.delete(table, 2, axis=1)
        finer = summed(table[:, :4], table[:, 4:])
        if len(finer.index) != len(rows):
            raise self.fail("/sequences", "a cell occurs twice in one sequence")
        tally = finer if per_bin is None else finer.coarser_bins(per_bin)
        self._check_sum(tally, counts)
        own = tracks.read([entry["tracks"] for entry in given], tally) if tracks is not None and with_tracks else None
        return Sequences(tuple(names), np.array(list(names.values()), dtype=np.int64), tally, own), finer

    def _check_row(self, path: str, row: Any, limits: list[int], by_context: bool) -> None:
        if not isinstance(row, list) or len(row) != len(limits):
            context = "context, " if by_context else ""
            expected = f"[bin, {context}predicted, true, count, ...] with {len(limits)} numbers"
            raise self.fail(path, f"expected {expected}, got {shown(row)}")
        for place, (value, limit) in enumerate(zip(row, limits, strict=True)):
            if type(value) is not int or not 0 <= value < limit:
                raise self.fail(f"{path}/{place}", f"expected an integer from 0 to {limit - 1}, got {shown(value)}")

    def _check_sum(self, tally: Tally, counts: NDArray[np.int64]) -> None:
        differing = np.argwhere(tally.dense(*counts.shape[1:3]) != counts)
        if len(differing):
            _, at_bin, predicted, true = differing[0].tolist()
            raise self.fail(
                "/sequences",
                f"the counts of the sequences do not add up to /bins/{at_bin}/counts at predicted {predicted}, "
                f"true {true}",
            )

    def _counts(
        self, path: str, given: Any, size: int, row_of: str = "predicted label", column_of: str = "true label"
    ) -> list[list[int]]:
        if not isinstance(given, list) or len(given) != size:
            number = f"{len(given)} rows" if isinstance(given, list) else shown(given)
            raise self.fail(path, f"expected {size} rows (one per {row_of}), got {number}")
        for i, row in enumerate(given):
            if not isinstance(row, list) or len(row) != size:
                number = f"{len(row)} entries" if isinstance(row, list) else shown(row)
                raise self.fail(f"{path}/{i}", f"expected {size} entries (one per {column_of}), got {number}")
            for j, count in enumerate(row):
                if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                    raise self.fail(f"{path}/{i}/{j}", f"expected a non-negative integer, got {shown(count)}")
                if count > LARGEST_COUNT:
                    raise self.fail(f"{path}/{i}/{j}", f"expected at most 2**53, got {shown(count)}")
        return given
