"""Counting chunk by chunk, with a checkpoint after each: a run that is killed goes on where it stopped.

A checkpoint is one JSON file that is replaced as a whole. It says after which frame to go on and what was counted up
to there, so each frame is in it or still to come, and none is both. A record is kept as one part per chunk, written
before the checkpoint that counts it: a part the checkpoint does not know is written again over itself.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from verifier.base.errors import InputError, Place, UsageError
from verifier.base.files import read_json, write_text
from verifier.perception.confusion.context_counts import Memory, counter_of
from verifier.perception.confusion.context_selection import Begun, Part
from verifier.perception.confusion.counting import (
    TOTALS,
    Count,
    Observed,
    accumulate,
    count_and_observe,
    localised,
    nothing_counted,
)
from verifier.perception.confusion.document_dependence import Told
from verifier.perception.confusion.drives import DriveTable
from verifier.perception.confusion.record import join_records, record_table, write_record
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.sanity import remark
from verifier.perception.confusion.tally import Tally
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.stream import Chunk
from verifier.perception.matching import MatchingPolicy

SCHEMA = "verifier.confusion.checkpoint"
VERSION = 3
ADDED = ("filters", "classes_left_out", "ignored", "regions", "annotations", "repeated")
"""Entries of a detection set's origin that hold numbers of its own frames."""


@dataclass(frozen=True, eq=False)
class Progress:
    """What was counted so far.

    Attributes:
        after: name of the last frame that is counted; None before the first.
        origin: of the data so far, with its numbers added up.
        parts: chunks done, which is the number of parts of the record.
        begun: what a context may go on from.
    """

    after: str | None
    counted: Count
    origin: Mapping[str, Any] = field(default_factory=dict)
    parts: int = 0
    begun: Begun = field(default_factory=Begun)

    @classmethod
    def nothing(cls, rule: CountingRule, memory: Memory | None) -> Progress:
        """Before the first frame."""
        return cls(None, nothing_counted(rule, by_context=memory is not None))


@dataclass(frozen=True)
class PartCount:
    """What comes of a part of the data, or of a file that is hashed.

    Attributes:
        progress: the counts; None of a file, and of a part without frames.
        digests: path -> SHA-256.
        tests: of dependence along the tracks, of one part after the other; documents of the key `dependence`.
    """

    progress: Progress | None = None
    digests: Mapping[str, str] = field(default_factory=dict)
    tests: tuple[Told, ...] = ()


def added_parts(one: PartCount, other: PartCount) -> PartCount:
    """Two parts, which hold different sequences and are counted by one rule."""
    progress, now = one.progress or other.progress, other.progress
    if one.progress is not None and now is not None:
        counted, origin = [one.progress.counted, now.counted], added_origin(one.progress.origin, now.origin)
        progress = Progress(None, accumulate(counted, whole=True), origin, one.progress.parts + now.parts)
    return PartCount(progress, {**one.digests, **other.digests}, one.tests + other.tests)


@dataclass(frozen=True)
class StreamFiles:
    """Where a run keeps what it needs to go on, and its record; each may be None.

    `job` is everything that must not change between a run and the one that goes on with it.
    """

    checkpoint: Path | None = None
    record: Path | None = None
    job: Mapping[str, Any] = field(default_factory=dict)

    @property
    def parts(self) -> Path | None:
        """The folder of the record's parts."""
        return None if self.record is None else self.record.with_name(self.record.name + ".parts")

    def part(self, number: int) -> Path:
        """One part of the record."""
        assert self.parts is not None
        assert self.record is not None
        return self.parts / f"{number:08}{self.record.suffix}"


def count_chunks(
    chunks: Callable[[str | None], Iterator[Chunk]],
    policy: MatchingPolicy,
    rule: CountingRule,
    files: StreamFiles = StreamFiles(),
    prepare: Callable[[DetectionSet], DetectionSet] = lambda data: data,
    report: Callable[[int, int], None] = lambda done, total: None,
    memory: Memory | None = None,
    drives: DriveTable | None = None,
    localise: bool = False,
) -> Progress:
    """Count all chunks, going on from the checkpoint if there is one.

    Args:
        chunks: gives the chunks after a frame, or all of them for None.
        policy: of matching.
        rule: of counting.
        files: checkpoint and record.
        prepare: applied to each chunk before matching, for filters.
        report: told how many rows of how many are read.
        memory: the contexts that are counted as well; chunks must have numbers.
        drives: of the record.
        localise: whether distance bins reported are counted, too.

    Raises:
        InputError: the checkpoint is of another job or cannot be read; otherwise as `count_detections`.
        UsageError: an optimal or other matching that cannot be recorded for a family.
    """
    progress = _resumed(files, rule, memory)
    if files.parts is not None:
        files.parts.mkdir(exist_ok=True)
    for chunk in chunks(progress.after):
        data = prepare(chunk.data)
        _check_sources(progress, data, files)
        part = None if memory is None else _part(chunk, data, progress.begun)
        counted, observed = count_part(data, policy, rule, memory, localise, part)
        if files.record is not None:
            if observed is None:
                raise UsageError(
                    "--record: each threshold has matches of its own under this policy; use one threshold"
                )
            write_record([record_table(data, rule, observed, drives)], files.part(progress.parts))
        origin = added_origin(progress.origin, data.origin) if progress.parts else dict(data.origin)
        after = chunk.last_frame or progress.after
        begun = part.after if part is not None and chunk.last_frame else progress.begun
        total = accumulate([progress.counted, counted])
        progress = Progress(after, total, origin, progress.parts + 1, begun)
        if files.checkpoint is not None:
            write_text(files.checkpoint, _checkpoint_text(progress, files))
        report(chunk.rows_done, chunk.rows_total)
    if files.record is not None:
        join_records([files.part(number) for number in range(progress.parts)], files.record)
    return progress


def count_part(
    data: DetectionSet,
    policy: MatchingPolicy,
    rule: CountingRule,
    memory: Memory | None,
    localise: bool,
    part: Part | None = None,
) -> tuple[Count, Observed | None]:
    """Count frames that are read and filtered, with what else is asked for; `part` says what went before them.

    Raises:
        VerifierError: as `count_detections`, `localised` and `counter_of`.
    """
    counted, observed = count_and_observe(data, policy, rule)
    table = localised(data, observed, rule) if localise else None
    contexts = None if memory is None else counter_of(data, observed, rule, memory, part).tally()
    return replace(counted, localised=table, contexts=contexts), observed


def _part(chunk: Chunk, data: DetectionSet, begun: Begun) -> Part:
    """A chunk as a part of its sequences; filters leave its frames as they are."""
    if chunk.numbers is None:
        raise ValueError("contexts are counted of chunks whose frames have numbers")
    sequence = data.frame_sequence.astype(np.int64)
    there = [k for k, name in enumerate(data.frame_name) if name == chunk.last_frame]
    return Part(begun, chunk.numbers, sequence, data.sequences, int(sequence[there[0]]) if there else -1)


def finish(files: StreamFiles) -> None:
    """Remove checkpoint and parts, when the result is written."""
    if files.checkpoint is not None:
        files.checkpoint.unlink(missing_ok=True)
    if files.parts is not None and files.parts.is_dir():
        # Moved first: where the path leads to nothing, no worker that is late can write there meanwhile.
        with TemporaryDirectory(
            prefix=f"{files.parts.name}.", dir=files.parts.parent, ignore_cleanup_errors=True
        ) as gone:
            files.parts.rename(Path(gone, "parts"))


def added_origin(before: Any, now: Any, counts: bool = False) -> Any:
    """The origin of two parts of one data set: numbers under the keys `ADDED` are added, the rest is as `now`."""
    if isinstance(now, Mapping):
        old = before if isinstance(before, Mapping) else {}
        if counts:
            return {key: added_origin(old.get(key), now.get(key), True) for key in {**old, **now}}
        added = {key: added_origin(old.get(key), value, True) for key, value in now.items() if key in ADDED}
        if "distances" in old and "distances" in now:
            added["distances"] = _added_filter(old["distances"], now["distances"])
        if "projected" in old and "projected" in now:
            added["projected"] = _added_projected(old["projected"], now["projected"])
        return {**old, **now, **added}
    if isinstance(now, list) and isinstance(before, list) and len(now) == len(before):
        return [_added_filter(old, new) for old, new in zip(before, now, strict=True)]
    if isinstance(now, int) or (now is None and isinstance(before, int)):
        return (before or 0) + (now or 0)
    return now


def _added_filter(before: Any, now: Any) -> Any:
    """A filter says how many annotations and detections it took out, a file of distances how many it leaves unknown;
    other numbers are settings."""
    names = ("annotations", "detections", "unknown", "unknown_of_detections", "maps")
    added = {key: before[key] + now[key] for key in names if key in before and key in now}
    if "focal_lengths" in now:
        added["focal_lengths"] = added_origin(before["focal_lengths"], now["focal_lengths"], True)
    return {**before, **now, **added}


def _added_projected(before: Any, now: Any) -> dict[str, object]:
    """How many rectangles were placed on the ground; InputError where not the same ones."""
    if before.keys() != now.keys():
        raise InputError(
            "--calibration places the annotations of some sequences only, as others have distances",
            hint="count these apart, or all at once",
        )
    numbers = {key: added_origin(before[key], now[key], True) for key in now if isinstance(now[key], Mapping)}
    return {**now, **numbers}


def _check_sources(progress: Progress, data: DetectionSet, files: StreamFiles) -> None:
    if progress.parts and progress.origin.get("sources") != _plain(data.origin.get("sources")):
        raise InputError(
            "the files have changed since the checkpoint was written",
            Place(str(files.checkpoint)),
            "remove the checkpoint to start again",
        )


def _checkpoint_text(progress: Progress, files: StreamFiles) -> str:
    count = progress.counted
    document = {
        "schema": SCHEMA,
        "version": VERSION,
        "job": files.job,
        "after": progress.after,
        "parts": progress.parts,
        "origin": progress.origin,
        "sequences": count.sequences,
        "frames": count.frames.tolist(),
        "totals": count.totals,
        **_tally_document(count.tally),
        "remarks": list(count.remarks),
        "localised": None if count.localised is None else count.localised.tolist(),
    }
    if count.contexts is not None:
        begun = progress.begun
        tally = _tally_document(count.contexts)
        document["contexts"] = {**tally, "sequence": begun.sequence, "outcomes": begun.outcomes}
    return json.dumps(document, ensure_ascii=False, default=dict) + "\n"


def _tally_document(tally: Tally) -> dict[str, str]:
    """As bytes: a number of each cell after each chunk would take as long as counting."""
    columns = {"index": tally.index, "counts": tally.counts}
    return {name: b64encode(numbers.astype("<i8").tobytes()).decode() for name, numbers in columns.items()}


def _resumed(files: StreamFiles, rule: CountingRule, memory: Memory | None) -> Progress:
    if files.checkpoint is None or not files.checkpoint.exists():
        return Progress.nothing(rule, memory)
    place = Place(str(files.checkpoint))
    document, _ = read_json(files.checkpoint)
    if not isinstance(document, dict) or (document.get("schema"), document.get("version")) != (SCHEMA, VERSION):
        raise InputError("not a checkpoint of this program", place, "name another file, or remove it")
    if document.get("job") != _plain(files.job):
        raise InputError(
            "the checkpoint is of another job: its files or options differ",
            place,
            "use the options of the first run, or remove the checkpoint to start again",
        )
    try:
        frames = np.array(document["frames"], dtype=np.int64).reshape(len(document["sequences"]))
        totals = {name: int(document["totals"][name]) for name in TOTALS}
        remarks = tuple(remark(entry["kind"], entry["text"]) for entry in document["remarks"])
        tally = _tally_of(document, rule)
        table = document["localised"]
        table = None if table is None else np.array(table, dtype=np.int64).reshape(-1, rule.bins.shape[0])
        contexts, begun = None, Begun()
        if memory is not None:
            told = document["contexts"]
            contexts = _tally_of(told, rule)
            pasts = {str(who): [(int(at), int(right)) for at, right in own] for who, own in told["outcomes"].items()}
            begun = Begun(told["sequence"], pasts)
        counted = Count(tuple(document["sequences"]), frames, tally, totals, None, remarks, table, contexts)
        return Progress(document["after"], counted, document["origin"], int(document["parts"]), begun)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError("the checkpoint is damaged", place, "remove it to start again") from None


def _tally_of(told: Mapping[str, Any], rule: CountingRule) -> Tally:
    index, counts = (
        np.frombuffer(b64decode(told[name], validate=True), "<i8").astype(np.int64) for name in ("index", "counts")
    )
    index = index.reshape(-1, 4)
    return Tally(index, counts.reshape(len(index), rule.threshold_count))


def _plain(value: Any) -> Any:
    """The value as JSON gives it back: lists for tuples."""
    return json.loads(json.dumps(value, default=dict))
