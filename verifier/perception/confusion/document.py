"""Confusion counts as a JSON document: read with precise complaints, written so that reading gives the same.

The published schema follows from `document_types`. The axes are named in the document and only
`["predicted", "true"]` is accepted, in a family with the score threshold before them: a transposed matrix is
plausible and silently wrong.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from verifier.base.documents import json_values
from verifier.base.errors import UsageError
from verifier.base.files import json_of, read_json, write_text
from verifier.perception.confusion.bins import Bins, Variable, edge_json, where_json
from verifier.perception.confusion.counts import ConfusionCounts, ContextCounts, Sequences
from verifier.perception.confusion.data_set import annotation_error, looks_at
from verifier.perception.confusion.document_contexts import context_bin, context_head, context_rows, tracks_json
from verifier.perception.confusion.document_dependence import is_later
from verifier.perception.confusion.document_reader import (
    ADDED_IN_2,
    AXES,
    EMPTY_CLASS,
    FAMILY_AXES,
    SCHEMA_NAME,
    DocumentReader,
)
from verifier.perception.confusion.matrices import ConfusionMatrices, Label
from verifier.perception.confusion.mix import MixedMatrices, read_mix
from verifier.perception.confusion.sanity import remark


@dataclass(frozen=True)
class ConfusionFile:
    """Matrices together with the file they came from.

    Attributes:
        sha256: of its bytes.
        sequences: the counts of each sequence, which add up to the matrices; None where the file has none.
        mixed: the matrices by the bins of a variable that is weighed; None where none is.
        further: names of the further variables that the file has.
        by_context: the counts divided by context, where the file has them.
    """

    matrices: ConfusionMatrices
    name: str
    sha256: str
    sequences: Sequences | None = None
    mixed: MixedMatrices | None = None
    further: tuple[str, ...] = ()
    by_context: ContextCounts | None = None


def read_confusion(
    path: str | Path,
    where: Mapping[str, str] | None = None,
    score_threshold: float | None = None,
    mix: str | Path | None = None,
    kept: Collection[str] = (),
) -> ConfusionFile:
    """Read a confusion document as one matrix per distance bin, and per bin of the variables that are kept apart.

    Args:
        where: bins of further variables to use; the matrices are summed over the others.
        score_threshold: which member of a family.
        mix: file with weights of the bins of a further variable (`verifier.perception.confusion.mix`).
        kept: names of further variables, each of them one.

    Raises:
        InputError: naming the file and the JSON pointer (or line and column) of the first offending element.
        UsageError: `where` or `score_threshold` do not fit the file, or it is a family and no member is chosen.
    """
    document, raw = read_json(path)
    counts = DocumentReader(str(path)).counts(document)
    chosen = counts if score_threshold is None else counts.member(score_threshold)
    digest = hashlib.sha256(raw).hexdigest()
    matrices, mixed = chosen.matrices(where, kept), None
    further = tuple(variable.name for variable in counts.bins.variables)
    if chosen.by_context is not None:
        contexts = chosen.by_context.contexts
        matrices = _told(matrices, "contexts", f"counts by context ({contexts}) are summed: reports have no memory")
    if (error := annotation_error(matrices.metadata)) > 0:
        said = (
            f"up to a share of {float(error):g} of the items may be annotated wrongly or missing: confidence bounds "
        )
        matrices = _told(matrices, "annotation-error", f"{said}allow for it, P and other intervals do not")
    if (looks := looks_at(matrices.metadata)) > 1:
        drawn = f"{looks - 1} verdict{'s were' if looks > 2 else ' was'} drawn from these data before"
        matrices = _told(matrices, "looks", f"{drawn}: confidence bounds allow for {looks} looks")
    if mix is not None:
        mixed = MixedMatrices.of(chosen, read_mix(mix, counts.bins.variables), where or {}, kept)
        matrices = _told(matrices, "mix", f"rates are weighed by {mixed.mix}", mix=mixed.mix.document())
    by_context = chosen.contexts_by_distance(where, kept)
    return ConfusionFile(matrices, str(path), digest, chosen.by_sequence(where, kept), mixed, further, by_context)


@contextmanager
def named_file(counts: str | Path | ConfusionCounts) -> Iterator[str | Path]:
    """The file of counts; for counts in memory one that is there while it is needed."""
    if isinstance(counts, str | Path):
        yield counts
        return
    if not isinstance(counts, ConfusionCounts):
        raise UsageError(f"expected a file of matrices or counts, got {type(counts).__name__}")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "counts.json"
        write_confusion(counts, path)
        yield path


def _told(matrices: ConfusionMatrices, kind: str, text: str, **said: Any) -> ConfusionMatrices:
    """The matrices with a further remark, and with further metadata."""
    told = [*matrices.metadata.get("remarks", []), remark(kind, text)]
    return replace(matrices, metadata={**matrices.metadata, **said, "remarks": told})


def read_counts(path: str | Path) -> ConfusionCounts:
    """Read everything a confusion document holds; InputError as `read_confusion`."""
    return read_hashed_counts(path)[0]


def read_hashed_counts(path: str | Path) -> tuple[ConfusionCounts, str]:
    """As `read_counts`, with the SHA-256 of the file."""
    document, raw = read_json(path)
    return DocumentReader(str(path)).counts(document), hashlib.sha256(raw).hexdigest()


def read_counts_of(raw: bytes, file: str) -> ConfusionCounts:
    """As `read_counts`, from the bytes of a file."""
    return DocumentReader(file).counts(json_of(raw, file))


def write_confusion(matrices: ConfusionMatrices | ConfusionCounts, path: str | Path) -> None:
    """Write the document that reads back to the same; all or nothing."""
    write_text(path, confusion_text(matrices))


def confusion_text(matrices: ConfusionMatrices | ConfusionCounts) -> str:
    """The document as text: stable bytes, one matrix row per line, one sequence per line."""
    counts = matrices if isinstance(matrices, ConfusionCounts) else _as_counts(matrices)
    family = counts.thresholds is not None
    head: dict[str, object] = {"schema": SCHEMA_NAME, "version": _version(counts)}
    if counts.title:
        head["title"] = counts.title
    head |= {"labelling": counts.labelling, "axes": FAMILY_AXES if family else AXES}
    head["labels"] = [_label_json(label, counts.labelling) for label in counts.labels]
    if counts.thresholds is not None:
        head["score_thresholds"] = list(counts.thresholds)
    if counts.bins.variables:
        head["variables"] = [_variable_json(variable) for variable in counts.bins.variables]
    if counts.by_context is not None:
        head["contexts"] = context_head(counts.by_context)
    head |= dict(counts.metadata)
    lines = [
        f"  {json.dumps(key)}: {json.dumps(json_values(value), ensure_ascii=False)}," for key, value in head.items()
    ]
    bins = [_bin_text(counts, index) for index in range(counts.bins.count)]
    body = '  "bins": [\n' + ",\n".join(bins) + "\n  ]"
    if counts.sequences is not None:
        body += ',\n  "sequences": [\n' + ",\n".join(_sequence_texts(counts)) + "\n  ]"
    return "{\n" + "\n".join(lines) + "\n" + body + "\n}\n"


def _version(counts: ConfusionCounts) -> int:
    """The first version of the document that can say all this."""
    tests = counts.metadata.get("dependence", ())
    later = any(map(is_later, tests if isinstance(tests, tuple) else [tests]))
    tracks = counts.sequences is not None and counts.sequences.tracks is not None
    added = any(key in counts.metadata for key in ADDED_IN_2) or counts.by_context is not None
    return 2 if tracks or later or added else 1


def _as_counts(matrices: ConfusionMatrices) -> ConfusionCounts:
    bins = Bins(tuple(matrices.edges_m.tolist()))
    return ConfusionCounts(
        matrices.labelling,
        matrices.labels,
        bins,
        None,
        matrices.counts[None],
        title=matrices.title,
        metadata=matrices.metadata,
    )


def _bin_text(counts: ConfusionCounts, index: int) -> str:
    first, *rest = (int(at) for at in np.unravel_index(index, counts.bins.shape))
    ranges = f'"distance_m": {json.dumps([edge_json(edge) for edge in counts.bins.edges_m[first : first + 2]])}'
    if rest:
        ranges += f', "where": {json.dumps(where_json(counts.bins.variables, rest), ensure_ascii=False)}'
    if counts.thresholds is None:
        rows = ",\n        ".join(json.dumps(row) for row in counts.counts[0, index].tolist())
    else:
        rows = ",\n        ".join(json.dumps(matrix) for matrix in counts.counts[:, index].tolist())
    own = ""
    if counts.by_context is not None:
        texts = context_bin(counts.by_context, index, family=counts.thresholds is not None)
        lines = (f"{json.dumps(name)}: {json.dumps(matrix)}" for name, matrix in texts.items())
        own = ',\n      "contexts": {\n        ' + ",\n        ".join(lines) + "\n      }"
    return f'    {{{ranges},\n      "counts": [\n        {rows}\n      ]{own}}}'


def _sequence_texts(counts: ConfusionCounts) -> list[str]:
    sequences, texts = counts.sequences, []
    assert sequences is not None
    for number, (name, frames) in enumerate(zip(sequences.names, sequences.frames.tolist(), strict=True)):
        if counts.by_context is None:
            own = sequences.tally.of_sequence(number)
            rows = np.column_stack([own.index[:, 1:], own.counts]).tolist()
        else:
            rows = context_rows(counts.by_context, number)
        entry: dict[str, object] = {"name": name, "frames": frames, "counts": rows}
        if sequences.tracks is not None:
            entry["tracks"] = tracks_json(sequences.tracks, number, counts.bins.shape)
        texts.append("    " + json.dumps(entry, ensure_ascii=False, separators=(",", ":")))
    return texts


def _variable_json(variable: Variable) -> dict[str, object]:
    head = {"name": variable.name, "of": variable.scope}
    if variable.groups:
        return {**head, "values": {name: list(values) for name, values in variable.groups}}
    return {**head, "edges": [edge_json(edge) for edge in variable.edges]}


def _label_json(label: Label, labelling: str) -> str | list[str]:
    if labelling == "proposition":
        return sorted(label)
    return next(iter(label)) if label else EMPTY_CLASS
