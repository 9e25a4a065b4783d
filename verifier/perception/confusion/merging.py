"""Counts of several files as if they had been counted together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, get_args

import numpy as np

from verifier.base.arrays import Ints
from verifier.base.errors import InputError, Place, check_known, shown
from verifier.perception.confusion.contexts import OfTracks
from verifier.perception.confusion.counts import ConfusionCounts, ContextCounts, Sequences
from verifier.perception.confusion.data_set import annotations_told, merged_record
from verifier.perception.confusion.document_dependence import combined_dependence
from verifier.perception.confusion.matrices import EMPTY, Label
from verifier.perception.confusion.sanity import OF_COUNTS, Remark, remark, with_sanity
from verifier.perception.confusion.tally import Tally, joined_tallies
from verifier.perception.confusion.tracks import Tracks, joined_tracks
from verifier.perception.settings import SameSequences

MUST_AGREE = ("distance", "matching", "false_positives", "grouping")
"""Keys of a document that files must share to be merged, beside labelling, labels, bins and thresholds."""


def merge(
    parts: Sequence[ConfusionCounts],
    names: Sequence[str],
    same_sequences: str = "error",
    hashes: Sequence[str] | None = None,
) -> ConfusionCounts:
    """Counts of several files as if they had been counted together.

    Args:
        parts: at least one.
        names: of the files. Messages have them as given; the result has them without folders, also, with "rename",
            in the names of sequences. Files of one name are numbered: `a.json (2)`.
        same_sequences: when two files have a sequence of the same name: "error"; "add" (they hold different frames of
            one drive); "rename" (they are different drives; all sequences become `file/sequence`).
        hashes: SHA-256 of each file, for the result to record.

    The result has counts by sequence only when every file has them, and tracks only when every file has them and no
    sequence goes on in another file. Title and notes are those of the first file. Tests of dependence between frames
    are combined (`combined_dependence`), and the remarks are those of the sum and what the files say of their making.

    Raises:
        InputError: the files do not fit together; the message names the difference.
    """
    check_known("rule for equal sequences", same_sequences, get_args(SameSequences))
    first = parts[0]
    _check_each_once(names, hashes or ())
    for part, name in zip(parts[1:], names[1:], strict=True):
        _check_fits(first, names[0], part, name)
    total = sum((part.counts for part in parts[1:]), start=first.counts)
    metadata = dict(first.metadata)
    totals = [part.metadata.get("totals") for part in parts]
    known = [total for total in totals if isinstance(total, Mapping) and all(type(n) is int for n in total.values())]
    for key in ("totals", "dependence", "remarks", "average_precision"):
        metadata.pop(key, None)
    tables = [part.metadata.get("localisation") for part in parts]
    if any(tables):
        if not all(tables):
            with_it, without = (
                next(k for k, entry in enumerate(tables) if bool(entry) is has) for has in (True, False)
            )
            raise InputError(f"no localisation, which {names[with_it]} has", Place(names[without]))
        counts = sum(np.array(entry["counts"], dtype=np.int64) for entry in tables if entry)
        metadata["localisation"] = {"axes": ["reported", "true"], "counts": np.asarray(counts).tolist()}
    tests = [part.metadata["dependence"] for part in parts if "dependence" in part.metadata]
    if tests:
        metadata["dependence"] = combined_dependence(tests)
    if len(known) == len(parts):
        metadata["totals"] = {key: sum(entry.get(key, 0) for entry in known) for key in known[0]}
    digests: Sequence[str | None] = hashes or [None] * len(parts)
    metadata["source"] = {
        "merged": [
            {"file": name}
            | ({} if digest is None else {"sha256": digest})
            | ({"source": part.metadata["source"]} if "source" in part.metadata else {})
            | ({} if (told := annotations_told(part, path)) is None else {"annotations": told})
            for part, path, name, digest in zip(parts, names, _without_folders(names), digests, strict=True)
        ]
    }
    numbers: list[Ints] = []
    sequences = _joined(parts, names, same_sequences, numbers)
    by_context = _joined_contexts(parts, None if sequences is None else numbers)
    confusion_counts = replace(first, counts=total, sequences=sequences, metadata=metadata, by_context=by_context)
    made = list(_remarks_on_making(parts, names, len(tests), confusion_counts))
    return merged_record(with_sanity(confusion_counts, made), parts, _without_folders(names))


def _check_each_once(names: Sequence[str], hashes: Sequence[str]) -> None:
    """No file is merged with its copy, whatever the two are called: its items would count twice."""
    first_of: dict[str, str] = {}
    for name, digest in zip(names, hashes, strict=False):
        if digest in first_of:
            raise InputError(
                f"the same bytes as {shown(first_of[digest])}: its items would count twice",
                Place(name),
                hint="name each file once",
            )
        first_of[digest] = name


def _remarks_on_making(
    parts: Sequence[ConfusionCounts], names: Sequence[str], tested: int, counts: ConfusionCounts
) -> Iterator[Remark]:
    """What the files say of how they were made, and what not all of them have."""
    for part, name in zip(parts, _without_folders(names), strict=True):
        for entry in part.metadata.get("remarks", []):
            if entry["kind"] not in OF_COUNTS:
                merged_before = entry["kind"] == "merged-partly"
                yield entry if merged_before else remark(entry["kind"], f"{name}: {entry['text']}")
    if 0 < tested < len(parts):
        yield remark(
            "merged-partly", f"whether misses follow misses is tested in {tested} of {len(parts)} merged files only"
        )
    known_maps = {
        name: origin.get("class_map")
        for part, name in zip(parts, _without_folders(names), strict=True)
        if (origin := _origin(part))
    }
    if others := [name for name, own in known_maps.items() if own != next(iter(known_maps.values()))]:
        yield remark("merged-partly", f"the class map of {next(iter(known_maps))} is not that of {', '.join(others)}")
    if any("average_precision" in part.metadata for part in parts):
        yield remark("merged-partly", "average precision is left out: that of a sum is not a sum")
    for what, kept, known in (
        ("counts by sequence", counts.sequences is not None, [part.sequences is not None for part in parts]),
        ("tracks", _has_tracks(counts), [_has_tracks(part) for part in parts]),
    ):
        if any(known) and not kept:
            reason = "a sequence may go on in another file" if all(known) else "not every merged file has them"
            yield remark("merged-partly", f"{what} are left out: {reason}")


def _has_tracks(counts: ConfusionCounts) -> bool:
    return counts.sequences is not None and counts.sequences.tracks is not None


def _check_fits(first: ConfusionCounts, first_name: str, part: ConfusionCounts, name: str) -> None:
    differing: list[tuple[str, Any, Any]] = [
        ("labelling", first.labelling, part.labelling),
        ("labels", _texts(first.labels), _texts(part.labels)),
        ("distance bins", list(first.bins.edges_m), list(part.bins.edges_m)),
        ("variables", list(map(str, first.bins.variables)), list(map(str, part.bins.variables))),
        ("score thresholds", first.thresholds, part.thresholds),
        ("contexts", _context_text(first), _context_text(part)),
    ]
    differing += [(key, first.metadata.get(key), part.metadata.get(key)) for key in (*MUST_AGREE, "score_threshold")]
    mine, other = _filters(first), _filters(part)
    if mine is not None and other is not None:
        differing.append(("filters", mine, other))
    for what, mine, other in differing:
        if mine != other:
            raise InputError(
                f"cannot be merged with {first_name}: {what} differ: {_difference(mine, other)}",
                Place(name),
                "count both with the same options",
            )


def _origin(part: ConfusionCounts) -> Mapping[str, Any]:
    """Where the counts, or the first that were merged to them, are from; empty where nothing is said of it."""
    source: Any = part.metadata.get("source")
    try:
        while "merged" in source:
            source = source["merged"][0]["source"]
    except (LookupError, TypeError):
        return {}
    return source if isinstance(source, Mapping) else {}


def _filters(part: ConfusionCounts) -> list[dict[str, object]] | None:
    """The filters, without what they took out; None where that is not known."""
    try:
        return [
            {name: value for name, value in entry.items() if name not in ("annotations", "detections")}
            for entry in _origin(part)["filters"]
        ]
    except (AttributeError, LookupError, TypeError):
        return None


def _difference(mine: Any, other: Any) -> str:
    """The two values, or of two mappings the entries that differ."""
    if isinstance(mine, Mapping) and isinstance(other, Mapping):
        keys = [key for key in {**mine, **other} if mine.get(key) != other.get(key)]
        return "; ".join(f"{key}: {shown(other.get(key))} here, {shown(mine.get(key))} there" for key in keys)
    return f"{shown(other)} here, {shown(mine)} there"


def _context_text(counts: ConfusionCounts) -> str:
    by_context = counts.by_context
    if by_context is None:
        return "none"
    by = "" if by_context.units is None else f", by {by_context.units}"
    return f"{by_context.contexts}, gaps {by_context.gaps}, period {by_context.period_s} s{by}"


def _texts(labels: Sequence[Label]) -> list[list[str]]:
    return [sorted(label) for label in labels]


def _without_folders(names: Sequence[str]) -> list[str]:
    """Names of files that do not depend on where they lie; equal ones are numbered."""
    told: list[str] = []
    seen = Counter[str]()
    for short in (PurePath(name).name for name in names):
        seen[short] += 1
        told.append(short if seen[short] == 1 else f"{short} ({seen[short]})")
    return told


def _joined_contexts(parts: Sequence[ConfusionCounts], numbers: Sequence[Ints] | None) -> ContextCounts | None:
    """The counts by context of all parts, which have the same contexts; `numbers` are those of their sequences."""
    divided = [part.by_context for part in parts if part.by_context is not None]
    if not divided:
        return None
    total = sum((context.counts for context in divided[1:]), start=divided[0].counts)
    tally = None
    if numbers is not None:
        pairs = zip(divided, numbers, strict=True)
        tally = joined_tallies([own.tally.renumbered(of) for own, of in pairs if own.tally is not None])
    tracks = dict[str, OfTracks]()
    for context in divided:
        for label, more in (context.tracks or {}).items():
            tracks[label] = tracks[label].merged(more) if label in tracks else more
    tests, replays = (divided[0].tests, divided[0].replays) if len(parts) == 1 else ((), ())
    known = tracks if all(context.tracks is not None for context in divided) else None
    return replace(divided[0], counts=total, tally=tally, tests=tests, tracks=known, replays=replays)


def _joined(
    parts: Sequence[ConfusionCounts], names: Sequence[str], same_sequences: str, numbers_of: list[Ints]
) -> Sequences | None:
    """All sequences, numbered through; the numbers of those of each part are appended to `numbers_of`. A part in
    which no frame was counted has none."""
    numbers_by_name: dict[str, int] = {}
    frames: list[int] = []
    tallies, tracks, followed = list[Tally](), list[Tracks](), True
    for part, file, short in zip(parts, names, _without_folders(names), strict=True):
        if part.sequences is None:
            if part.counts.any():
                return None
            numbers_of.append(np.zeros(0, dtype=np.int64))
            continue
        numbers = []
        for name, count in zip(part.sequences.names, part.sequences.frames.tolist(), strict=True):
            own = f"{short}/{name}" if same_sequences == "rename" else name
            if own in numbers_by_name and part.by_context is not None and same_sequences == "add":
                raise InputError(
                    f"sequence {shown(own)} is in an earlier file, too, and contexts do not add up over parts of it",
                    Place(file),
                    "count the sequence as a whole, or without --memory",
                )
            if own in numbers_by_name and same_sequences != "add":
                raise InputError(
                    f"sequence {shown(own)} is in an earlier file, too",
                    Place(file),
                    "--same-sequences add if these are other frames of it, rename if it is another drive",
                )
            number = numbers_by_name.setdefault(own, len(numbers_by_name))
            if number == len(frames):
                frames.append(0)
            frames[number] += count
            numbers.append(number)
        own_numbers = np.array(numbers, dtype=np.int64)
        numbers_of.append(own_numbers)
        tally = part.sequences.tally.renumbered(own_numbers)
        has_objects = (tally.index[:, 3] != part.labels.index(EMPTY)).any()
        tallies.append(tally)
        if part.sequences.tracks is not None:
            tracks.append(part.sequences.tracks.renumbered(own_numbers))
        followed &= part.sequences.tracks is not None or not has_objects
    if not tallies:
        return None
    # Where files hold other frames of one drive, a track may go on from one file to the next.
    kept = joined_tracks(tracks) if tracks and followed and same_sequences != "add" else None
    return Sequences(tuple(numbers_by_name), np.array(frames, dtype=np.int64), joined_tallies(tallies), kept)
