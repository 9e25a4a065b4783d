"""What `verify confusion` and `verify confusion merge` ask for, from their settings: read, filter, match, count, add.

    found = counted(settings)        the counts of data (`choices`), or of parts of it (`partitions`)
    counts = merged(settings)        the sum of files, or the whole of shards

Nothing is written but what a stream keeps in files while it counts.

Matrices batch by batch are made as metrics of training loops are: `update`, `compute`, `reset`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from verifier.base.blocks import Share
from verifier.base.errors import InputError, Place, UsageError
from verifier.base.keywords import settings_from
from verifier.perception.confusion.average_precision import with_average_precision
from verifier.perception.confusion.choices import (
    class_names,
    count_job,
    default_policy,
    dependence_document,
    matching_policy,
    prepared,
    reader_options,
    reading,
)
from verifier.perception.confusion.context_counts import Memory, with_contexts
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.counting import (
    Count,
    accumulate,
    confusion_counts,
    count_and_observe,
    localised,
    takes_surest_first,
    with_localisation,
)
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.data_set import read_stated, with_record
from verifier.perception.confusion.document import read_hashed_counts
from verifier.perception.confusion.drives import frames_in_drives, read_drives, sequences_in_drives, with_units
from verifier.perception.confusion.folders import copied
from verifier.perception.confusion.merging import merge
from verifier.perception.confusion.partitions import is_streamed, stream_counted
from verifier.perception.confusion.record import Table, record_table
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.sanity import refuse_absurd, with_reading
from verifier.perception.confusion.shards import joined_shards, shards_of
from verifier.perception.confusion.streaming import StreamFiles, added_origin
from verifier.perception.detections import DetectionSet, from_dicts, from_objects
from verifier.perception.detections.tablefiles import tables
from verifier.perception.matching import MatchingPolicy
from verifier.perception.settings import CountSettings, MergeSettings

OF_WORKERS = ("scheduler", "shard")
"""Who counts is no choice of what is counted, and programs may say it."""


@dataclass(frozen=True, eq=False)
class Counted:
    """What was counted.

    Attributes:
        counts: the matrices, with all that their document says of them.
        record: what became of each object, where `settings.record` asks for it; a stream has written it already.
        files: what a stream still keeps to go on from, for `streaming.finish` when the result is written.
        shares: what each worker did, where a scheduler was asked.
    """

    counts: ConfusionCounts
    record: Table | None = None
    files: StreamFiles = field(default_factory=StreamFiles)
    shares: tuple[Share, ...] = ()


def check_data_named(settings: CountSettings) -> None:
    """Refuse settings that do not say what is counted; UsageError."""
    for name in ("format", "annotations", "detections"):
        if not getattr(settings, name):
            raise UsageError(f"name the data: --format NAME --annotations PATH --detections PATH (no --{name})")


def check_stream(settings: CountSettings) -> bool:
    """Whether it is counted chunk by chunk; UsageError where that does not go with what else is asked for."""
    parted = settings.scheduler is not None or settings.shard is not None
    if not settings.stream and settings.checkpoint is None and not parted:
        return False
    if parted and settings.checkpoint is not None:
        raise UsageError("--checkpoint is of one process: with --scheduler or --shard leave it out")
    if settings.matching_audit or settings.average_precision:
        raise UsageError("--matching-audit and --average-precision are of all data at once, not of parts")
    if not parted and settings.format != "table":
        raise UsageError("--stream and --checkpoint count Parquet tables (--format table)")
    if is_streamed(settings) and settings.distance_file is not None:
        raise UsageError("--distance-file does not go with Parquet tables in parts: give them a column distance_m")
    if settings.chunk_rows < 1:
        raise UsageError(f"--chunk-rows: expected at least 1, got {settings.chunk_rows}")
    return True


def counted(
    settings: CountSettings,
    report: Callable[[int, int], None] = lambda done, total: None,
    data: DetectionSet | None = None,
) -> Counted:
    """Count what the settings name, as they say; `output`, `plot` and `json` play no part.

    Args:
        settings: of `verify confusion`.
        report: told how many rows of how many are read, where chunks are counted.
        data: as read already, where the settings name no files.

    Raises:
        VerifierError: choices that do not go together, files that cannot be read, data that make no sense.
    """
    if data is None:
        check_data_named(settings)
    memory = _memory(settings)
    stated = None if settings.data_set is None else read_stated(settings.data_set)
    if not check_stream(settings):
        with copied(settings) as copies:
            made = _counted_at_once(copies.settings, memory, data)
    else:
        counts, files, shares = stream_counted(settings, memory, report)
        made = Counted(counts, None, files, shares)
    return replace(made, counts=with_record(made.counts, stated, settings.data_set))


def _memory(settings: CountSettings) -> Memory | None:
    """What is counted of contexts; None for nothing."""
    contexts = Contexts.parsed(settings.memory)
    if settings.period is not None and not 0 < settings.period <= 1e6:
        raise UsageError(f"--period: expected seconds above 0, at most 1e6, got {settings.period:g}")
    if settings.units is not None:
        others = {"--groups": settings.groups is not None, "--stream": settings.stream}
        others |= {f"--{name}": getattr(settings, name) is not None for name in ("scheduler", "shard")}
        for option in [option for option, given in others.items() if given]:
            raise UsageError(f"{option} is about drives, and --units {settings.units} counts none: leave out one")
    if contexts.kind != "none":
        return Memory(contexts, settings.gaps, settings.period, units=settings.units)
    if settings.period is not None or settings.gaps != "break" or settings.units is not None:
        raise UsageError("--gaps, --period and --units belong to --memory")
    return None


def counts_of(
    annotations: Any,
    detections: Any,
    format_name: str,
    names: Sequence[str] | None,
    sequences: Sequence[str] | None,
    choices: Mapping[str, object],
) -> ConfusionCounts:
    """The counts of files of a format, or of objects; arguments as of `verifier.count`, errors as `counted`."""
    files = {"annotations": annotations, "detections": detections}
    if not all(isinstance(given, str | Path) for given in files.values()):
        asked = settings_from(CountSettings, choices)
        told = {"names": names, "sequences": sequences, **reader_options(asked)}
        return counted(asked, data=from_objects(annotations, detections, reading(asked), **told)).counts
    if names is not None or sequences is not None:
        raise UsageError("names and sequences are of objects in memory; files have their own")
    return counted(settings_from(CountSettings, {"format": format_name, **files, **choices}, OF_WORKERS)).counts


def merged(settings: MergeSettings) -> ConfusionCounts:
    """The sum of files that were counted in the same way.

    Raises:
        VerifierError: a file that cannot be read, or files that cannot be added up.
    """
    read = [read_hashed_counts(path) for path in settings.files]
    parts, digests = [counts for counts, _ in read], [digest for _, digest in read]
    shards = shards_of(settings.files, parts)
    if shards:
        counts = joined_shards(shards, digests)
    else:
        counts = merge(parts, settings.files, settings.same_sequences, digests)
    return counts if settings.groups is None else sequences_in_drives(counts, read_drives(settings.groups))


def _counted_at_once(settings: CountSettings, memory: Memory | None, data: DetectionSet | None) -> Counted:
    data, rule = prepared(settings, data)
    table = None if settings.groups is None else read_drives(settings.groups)
    by_frame = table is not None and table.of == "frame"
    in_drives = frames_in_drives(data, table) if table is not None and by_frame else data
    policy = matching_policy(settings, default_policy(data))
    counts, observed = count_job(in_drives, policy, rule, settings.title)
    refuse_absurd(counts.metadata, settings.accept)
    if observed is None and settings.record is not None:
        raise UsageError("--record: under this matching each threshold has matches of its own; use one threshold")
    counts = with_reading(counts)
    if settings.localisation:
        counts = with_localisation(counts, localised(in_drives, observed, rule))
    if settings.average_precision:
        if observed is None or not takes_surest_first(policy):
            raise UsageError("--average-precision needs a matching that takes detections by falling score")
        of_sequences = None if by_frame else table
        counts = with_average_precision(counts, in_drives, observed.matches, rule.classes, of_sequences)
    record = None if observed is None or settings.record is None else record_table(data, rule, observed, table)
    if observed is not None and (dependence := dependence_document(data, observed, rule)) is not None:
        counts = replace(counts, metadata={**counts.metadata, "dependence": dependence})
    if memory is not None:
        divide = with_contexts if memory.units is None else with_units
        counts = divide(counts, in_drives, observed, rule, memory)
    if table is not None and not by_frame:
        counts = sequences_in_drives(counts, table)
    return Counted(counts, record)


NOT_OF_BATCHES = frozenset((
    "format", "annotations", "detections", "frames", "sequence", "groups", "distance_field", "distance_file",
    "detection_distance_field", "distance_key", "depth_folder", "depth_scale", "calibration", "detected_class",
    "image_size", "first_category", "detection_frame", "localisation", "average_precision", "memory", "gaps",
    "period", "units", "matching_audit", "spec", "empty_columns", "stream", "checkpoint", "chunk_rows",
    "scheduler", "shard",
))  # fmt: skip
"""Choices about files, and of what is counted from frame to frame."""


class ConfusionMetric:
    """Matrices of batches: the same cells as if all batches had been counted at once.

    Each frame is in one batch. Only the sum is kept, and the names of the frames. Whether misses follow misses is
    not tested, as the frames of a track may be in several batches.
    """

    def __init__(self, names: Sequence[str] | None = None, **choices: Any) -> None:
        """What each batch is counted by.

        Args:
            names: of the labels, by their number; None for `classes`. Of batches of dictionaries only.
            choices: as the options of `verify confusion` about filters, matching and counting; `classes` or
                `class_map` among them.

        Raises:
            UsageError: no classes, or a choice that is not one of batches.
        """
        refused = sorted(NOT_OF_BATCHES & choices.keys())
        if refused:
            raise UsageError(f"a metric of batches does not take {', '.join(refused)}: use verifier.count")
        self._settings = settings_from(CountSettings, choices)
        self._reading = reading(self._settings)
        self._classes = class_names(self._settings)
        if not self._classes and self._reading.class_map is None:
            raise UsageError('a metric needs its classes beforehand, such as classes="ped,obs"')
        self._names = self._classes if names is None else tuple(names)
        self.reset()

    def reset(self) -> None:
        """Forget every batch."""
        self._counted: Count | None = None
        self._how: tuple[CountingRule, MatchingPolicy] | None = None
        self._origin: Mapping[str, object] = {}
        self._frames: set[str] = set()

    def update(
        self, preds: Any, target: Any, *, sequence: str | Sequence[str] | None = None, frames: Any = None
    ) -> None:
        """Count one batch; arguments in the order of torchmetrics.

        Args:
            preds, target: what the detector reports and what is there: lists of one dictionary per image, see
                `verifier.perception.detections.from_dicts`; or DataFrames with the columns of `verifier.count`.
            sequence: the drive that the images are from, or one per image; a DataFrame has it as a column.
            frames: names of the images; None to number them. Of DataFrames a DataFrame that lists every frame.

        Raises:
            InputError: as reading the batch, a frame that an earlier batch has, or a batch of another kind.
        """
        data = self._read(preds, target, sequence, frames)
        twice = next((name for name in data.frame_name if name in self._frames), None)
        if twice is not None:
            raise InputError(f"frame '{twice}' is in an earlier batch", Place("<annotations>"))
        data, rule = prepared(self._settings, data)
        how = rule, matching_policy(self._settings, default_policy(data))
        if self._how not in (None, how):
            raise InputError(
                "the batch has other boxes or distances than those before it, and would be matched by another rule",
                Place("<annotations>"),
                "name 'distance' and 'affinity', or give every batch the same columns",
            )
        counted, _ = count_and_observe(data, how[1], rule)
        before = self._counted
        self._origin = dict(data.origin) if before is None else added_origin(self._origin, data.origin)
        self._counted = accumulate([counted] if before is None else [before, counted])
        self._how = how
        self._frames.update(data.frame_name)

    def compute(self) -> ConfusionCounts:
        """The matrices of all batches since the last `reset`.

        Raises:
            UsageError: there was none.
            InputError: what is counted is absurd, such as nothing matched; the choice `accept` takes it.
        """
        if self._counted is None or self._how is None:
            raise UsageError("nothing is counted yet: call update first")
        counts = confusion_counts(self._counted, *self._how, dict(self._origin), self._settings.title)
        refuse_absurd(counts.metadata, self._settings.accept)
        return counts

    def _read(self, preds: Any, target: Any, sequence: str | Sequence[str] | None, frames: Any) -> DetectionSet:
        if not isinstance(target, Sequence):
            if sequence is not None:
                raise UsageError("a DataFrame says in the column 'sequence' which drive a frame is from")
            options = reader_options(self._settings) | ({} if frames is None else {"frames": frames})
            classes = () if self._reading.class_map is not None else self._classes
            return tables(target, preds, self._reading, classes=classes, **options)
        if not self._names:
            raise UsageError("name what the labels mean: names=[...]")
        drives = [sequence] * len(target) if isinstance(sequence, str) else sequence
        if frames is None:
            numbers = range(len(self._frames), len(self._frames) + len(target))
            frames = [f"{drive}/{k}" for drive, k in zip(drives or [""] * len(target), numbers, strict=False)]
        return from_dicts(self._names, frames, target, preds, self._reading, sequences=drives)
