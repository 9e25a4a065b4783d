"""Export to UMB, the binary exchange format of probabilistic model checkers.

A UMB file (Unified Markov Binary, format version 1) is a tar archive: `index.json` describes the model, and
every other member is one little-endian array. Storm reads it without loss and in bulk, which no text format
allows: a chain of 10^6 states takes a fraction of a second.

| member                                   | holds                                                        |
|------------------------------------------|--------------------------------------------------------------|
| `state-is-initial.bin`                   | one bit per state, least significant first                   |
| `state-to-choices.bin`                   | (n + 1) uint64, decision processes only                      |
| `choice-to-branches.bin`                 | (choices + 1) uint64, row starts                             |
| `branch-to-target.bin`                   | (nnz) uint64, successors                                     |
| `branch-to-probability.bin`              | (nnz) doubles, or numerator and denominator of w words each  |
| `annotations/aps/ap<i>/states/values.bin`| one bit per state for each label; its name is in the index   |
| `valuations/states/valuations.bin`       | (n, variables) int64                                         |
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Collection, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import marked
from verifier.base.errors import LimitError, Place
from verifier.base.files import write_bytes
from verifier.chains.chain import DecisionProcess
from verifier.chains.texts import Model, labels_to_write

_Parts: TypeAlias = list[bytes | NDArray[Any]]
_LABEL = {"applies-to": ["states"], "type": {"type": "bool", "size": 1}}
Gains: TypeAlias = "NDArray[np.float64] | Sequence[Fraction]"
"""What a step gains in each state, (n,) doubles or n fractions."""
GAIN = "gain"

LARGEST_MEMBER = 8**11 - 1
"""Bytes; the size field of a tar header has eleven octal digits."""


def write_umb(
    model: Model,
    path: str | Path,
    *,
    exact: bool = False,
    labels: Collection[str] | None = None,
    valuations: bool = True,
    storm_padding: bool = False,
    gains: Gains | None = None,
) -> None:
    """Write a model as a UMB archive, all or nothing.

    Equal models give equal bytes: members, keys and labels are ordered, and no time or user is recorded.

    Args:
        model: the chain or decision process.
        path: where to write, as `write_bytes` does.
        exact: write `model.fractions`, of any length, instead of the doubles.
        labels: the labels to write; None means all.
        valuations: whether to write what the states mean.
        storm_padding: append one absorbing state without labels and make it initial. No other state leads to
            it, so no probability changes. Storm 2.0 fails on LTL formulas when the last state of its product
            has no predecessor; an initial last state with a self-loop rules that out.
        gains: what a step from each state gains, as the reward `GAIN`; fractions where `exact`.

    Raises:
        InputError: the file cannot be written, or a label is named "init" but does not mark the initial states.
        LimitError: an array exceeds what a tar archive can hold (8 GiB).
        ValueError: exact is asked for a model without fractions, or a label is unknown.
    """
    members = _members(model, labels_to_write(model, labels), exact, valuations, storm_padding, gains)
    archive: list[bytes | memoryview] = []
    for name, parts in members.items():
        header = tarfile.TarInfo(name)
        views = [memoryview(part) if isinstance(part, bytes) else part.data for part in parts]
        header.size = sum(view.nbytes for view in views)
        if header.size > LARGEST_MEMBER:
            message = f"the array {name} has {header.size} bytes; an archive holds at most {LARGEST_MEMBER}"
            raise LimitError(message, Place(str(path)))
        archive += [header.tobuf(tarfile.USTAR_FORMAT), *views, bytes(-header.size % tarfile.BLOCKSIZE)]
    write_bytes(path, *archive, bytes(2 * tarfile.BLOCKSIZE))


def _members(
    model: Model, names: list[str], exact: bool, valuations: bool, padded: bool, gains: Gains | None
) -> dict[str, _Parts]:
    """The members of the archive in the order in which they are written; each is a list of parts to join."""
    n, nnz = model.state_count, model.transition_count
    kind, probabilities = _numbers(model.probabilities, model.fractions, exact, [1.0] * padded)
    is_initial = marked(n + padded, [*model.initial.tolist(), *range(n, n + padded)])
    description: dict[str, object] = {
        "time": "discrete",
        "#players": int(isinstance(model, DecisionProcess)),
        "#states": n + padded,
        "#initial-states": int(is_initial.sum()),
        "#choices": len(model.indptr) - 1 + padded,
        "#choice-actions": 0,
        "#branches": nnz + padded,
        "#branch-actions": 0,
        "#observations": 0,
        "branch-probability-type": kind,
    }
    index: dict[str, Any] = {
        "format-version": 1,
        "format-revision": 0,
        "file-data": {"tool": "verifier"},
        **({"model-data": {"description": model.remark}} if model.remark else {}),
        "transition-system": description,
        "annotations": {"aps": {f"ap{i}": {"alias": name, **_LABEL} for i, name in enumerate(names)}},
    }
    arrays: dict[str, _Parts] = {"state-is-initial.bin": _bits(is_initial, False)}
    if isinstance(model, DecisionProcess):
        arrays["state-to-choices.bin"] = _integers(model.choice_starts, model.choice_count + 1, padded)
    arrays["choice-to-branches.bin"] = _integers(model.indptr, nnz + 1, padded)
    arrays["branch-to-target.bin"] = _integers(model.indices, n, padded)
    arrays["branch-to-probability.bin"] = probabilities
    for i, name in enumerate(names):
        arrays[f"annotations/aps/ap{i}/states/values.bin"] = _bits(model.labels[name], padded)
    if gains is not None:
        doubles, fractions = (None, gains) if exact else (gains, None)
        kind, values = _numbers(doubles, fractions, exact, [0.0] * padded)
        index["annotations"]["rewards"] = {GAIN: {"applies-to": ["states"], "type": kind}}
        arrays[f"annotations/rewards/{GAIN}/states/values.bin"] = values
    if valuations and model.valuations:
        index["valuations"], values = _valuations(model, padded)
        arrays["valuations/states/valuations.bin"] = values
    return {"index.json": [json.dumps(index, sort_keys=True).encode()], **arrays}


def _integers(array: NDArray[np.int64], next_entry: int, padded: bool) -> _Parts:
    """Little-endian 64-bit integers, with one more entry for the padding; no copy on common machines."""
    parts: _Parts = [np.ascontiguousarray(array, dtype="<i8")]
    return [*parts, np.array([next_entry], dtype="<i8")] if padded else parts


def _bits(mask: NDArray[np.bool_], padded: bool) -> _Parts:
    """One bit per state, least significant first, filled up to whole words of 64 bits."""
    packed = np.packbits(mask, bitorder="little")
    return [packed, bytes(-(-(len(mask) + padded) // 64) * 8 - len(packed))]


def _numbers(doubles: Any, exactly: Any, exact: bool, padding: list[float]) -> tuple[dict[str, object], _Parts]:
    """The type of some numbers, as the index states it, and their array."""
    if not exact:
        parts: _Parts = [np.ascontiguousarray(doubles, dtype="<f8")]
        return {"type": "double", "size": 64}, [*parts, np.array(padding, dtype="<f8")] if padding else parts
    if exactly is None:
        raise ValueError("exact probabilities need the fractions of the model")
    fractions = [*exactly, *map(Fraction, padding)]
    half = _bytes_of_half(fractions)
    return {"type": "rational", "size": 16 * half}, [
        b"".join(
            fraction.numerator.to_bytes(half, "little", signed=True) + fraction.denominator.to_bytes(half, "little")
            for fraction in fractions
        )
    ]


def _bytes_of_half(fractions: Sequence[Fraction]) -> int:
    """Bytes for each numerator (with a sign bit) and denominator: whole words that hold the largest of them."""
    bits = max(max(fraction.numerator.bit_length() + 1, fraction.denominator.bit_length()) for fraction in fractions)
    return -(-bits // 64) * 8


def _valuations(model: Model, padded: bool) -> tuple[dict[str, object], _Parts]:
    """Description and (n, variables) array of the state variables; the padding repeats the first state."""
    variables = [
        {
            "name": name,
            "type": {"type": "int", "size": 64},
            "offset": 0,
            "lower": int(column.min()),
            "upper": int(column.max()),
        }
        for name, column in model.valuations.items()
    ]
    table = np.stack([np.asarray(column, dtype="<i8") for column in model.valuations.values()], axis=1)
    parts: _Parts = [table]
    return {"states": {"unique": False, "classes": [{"variables": variables}]}}, (
        [*parts, table[:1]] if padded else parts
    )
