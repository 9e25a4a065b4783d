"""What `verify confusion` and `verify confusion merge` ask for, from their settings: read, filter, match, count, add.

    data = prepared(settings)        read, with distances, filtered
    found = counted(settings)        the counts of it, or of a stream
    counts = merged(settings)        the sum of files

Large tables are counted chunk by chunk where the settings say so (`streaming`). Nothing is written but what a stream
keeps in files while it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from verifier.base.errors import UsageError
from verifier.base.keywords import settings_from
from verifier.perception.confusion.average_precision import with_average_precision
from verifier.perception.confusion.choices import (
    count_job,
    counting_rule,
    default_measure,
    default_policy,
    filters,
    matching_policy,
    reader_options,
    reading,
)
from verifier.perception.confusion.context_counts import Memory, divided, with_contexts
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.counting import Observed, confusion_counts, takes_surest_first
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.dependence import Outcomes, dependence
from verifier.perception.confusion.document import read_hashed_counts
from verifier.perception.confusion.drives import frames_in_drives, read_drives, sequences_in_drives
from verifier.perception.confusion.localisation import with_localisation
from verifier.perception.confusion.merging import merge
from verifier.perception.confusion.record import Table, record_table
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.sanity import IMPLAUSIBLE_DEPTH, refuse_absurd, remark, with_sanity
from verifier.perception.confusion.streaming import StreamFiles, count_chunks
from verifier.perception.confusion.tracks import frame_numbers, track_numbers
from verifier.perception.confusion.unit_counts import with_units
from verifier.perception.detections import (
    Chunk,
    DetectionSet,
    from_objects,
    read_detections,
    stream_tables,
    with_depth,
    with_distances,
    with_ground,
)
from verifier.perception.detections.depth import UNITS_PER_M
from verifier.perception.matching import MatchingPolicy
from verifier.perception.settings import CountSettings, MergeSettings


@dataclass(frozen=True, eq=False)
class Counted:
    """What was counted.

    Attributes:
        counts: the matrices, with all that their document says of them.
        record: what became of each object, where `settings.record` asks for it; a stream has written it already.
        files: what a stream still keeps to go on from, for `streaming.finish` when the result is written.
    """

    counts: ConfusionCounts
    record: Table | None = None
    files: StreamFiles = field(default_factory=StreamFiles)


def check_data_named(settings: CountSettings) -> None:
    """Refuse settings that do not say what is counted; UsageError."""
    for name in ("format", "annotations", "detections"):
        if not getattr(settings, name):
            raise UsageError(f"name the data: --format NAME --annotations PATH --detections PATH (no --{name})")


def check_stream(settings: CountSettings) -> bool:
    """Whether it is counted chunk by chunk; UsageError where that does not go with what else is asked for."""
    if not settings.stream and settings.checkpoint is None:
        return False
    others: tuple[object, ...] = (settings.distance_file, settings.depth_folder, settings.calibration)
    others += (settings.matching_audit, settings.localisation, settings.average_precision)
    if settings.format != "table" or any(others):
        raise UsageError(
            "--stream counts Parquet tables (--format table), without an audit, --localisation, --average-precision, "
            "--distance-file, --depth-folder or --calibration"
        )
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
    if settings.spec is not None and not settings.matching_audit:
        raise UsageError("--spec belongs to --matching-audit; to verify the matrices, write them and use verify run")
    memory = _memory(settings)
    if not check_stream(settings):
        return _counted_at_once(settings, memory, data)
    return _counted_in_chunks(settings, memory, report)


def _memory(settings: CountSettings) -> Memory | None:
    """What is counted of contexts; None for nothing."""
    contexts = Contexts.parsed(settings.memory)
    if settings.period is not None and not 0 < settings.period <= 1e6:
        raise UsageError(f"--period: expected seconds above 0, at most 1e6, got {settings.period:g}")
    if settings.units is not None:
        others = {"--groups": settings.groups is not None, "--stream": settings.stream}
        for option in [option for option, given in others.items() if given]:
            raise UsageError(f"{option} is about drives, and --units {settings.units} counts none: leave out one")
    if contexts.kind != "none":
        return Memory(contexts, settings.gaps, settings.period, units=settings.units)
    if settings.period is not None or settings.gaps != "break" or settings.units is not None:
        raise UsageError("--gaps, --period and --units belong to --memory")
    return None


def prepared(settings: CountSettings, data: DetectionSet | None = None) -> tuple[DetectionSet, CountingRule]:
    """The data that the settings name, or `data`, with distances and filtered, and the rule they are counted by.

    Raises:
        VerifierError: as reading, filters and the rule raise.
    """
    data = _read(settings, data)
    sources = (settings.depth_folder, settings.distance_file, settings.distance_field)
    projected = settings.calibration is not None and not data.annotations.in_space
    measure = settings.distance or ("given" if any(sources) or projected else default_measure(data))
    if settings.calibration is not None:
        data = with_ground(data, settings.calibration, measure)
    data = filters(settings, measure)(data)
    return data, counting_rule(settings, data.classes, measure)


def counts_of(
    annotations: Any,
    detections: Any,
    format_name: str,
    names: Sequence[str] | None,
    sequences: Sequence[str] | None,
    choices: Mapping[str, Any],
) -> ConfusionCounts:
    """The counts of files of a format, or of objects; arguments as of `verifier.count`, errors as `counted`."""
    files = {"annotations": annotations, "detections": detections}
    if not all(isinstance(given, str | Path) for given in files.values()):
        asked = settings_from(CountSettings, choices)
        told = {"names": names, "sequences": sequences, **reader_options(asked)}
        return counted(asked, data=from_objects(annotations, detections, reading(asked), **told)).counts
    if names is not None or sequences is not None:
        raise UsageError("names and sequences are of objects in memory; files have their own")
    return counted(settings_from(CountSettings, {"format": format_name, **files, **choices})).counts


def merged(settings: MergeSettings) -> ConfusionCounts:
    """The sum of files that were counted in the same way.

    Raises:
        VerifierError: a file that cannot be read, or files that cannot be added up.
    """
    read = [read_hashed_counts(path) for path in settings.files]
    parts = [counts for counts, _ in read]
    counts = merge(parts, settings.files, settings.same_sequences, [digest for _, digest in read])
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
    if "annotations" in data.origin.get("projected", {}):
        text = "the annotations have no distance of their own: theirs is that of their foot on the ground, too"
        counts = with_sanity(counts, [remark("projected-annotations", text)])
    if settings.localisation:
        counts = with_localisation(counts, in_drives, observed, rule)
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


def _read(settings: CountSettings, data: DetectionSet | None) -> DetectionSet:
    others = (settings.distance_file, settings.distance_field, settings.detection_distance_field)
    if settings.depth_folder is not None and any((*others, settings.calibration)):
        raise UsageError(
            "--depth-folder gives every distance; leave out --distance-file, --distance-field, "
            "--detection-distance-field and --calibration"
        )
    if settings.depth_scale is not None and settings.depth_folder is None:
        raise UsageError("--depth-scale belongs to --depth-folder")
    if settings.calibration is not None and settings.detection_distance_field is not None:
        raise UsageError("both --calibration and --detection-distance-field give the distances of detections")
    how = reading(settings)
    if data is None:
        data = read_detections(
            settings.format or "", settings.annotations, settings.detections, how, **reader_options(settings)
        )
    if settings.depth_folder is not None:
        return with_depth(
            data,
            settings.depth_folder,
            scale=UNITS_PER_M if settings.depth_scale is None else settings.depth_scale,
            ignore=how.ignore,
            any_focal_length=IMPLAUSIBLE_DEPTH in settings.accept,
        )
    if settings.distance_file is not None:
        return with_distances(data, settings.distance_file, settings.distance_key)
    return data


def _counted_in_chunks(settings: CountSettings, memory: Memory | None, report: Callable[[int, int], None]) -> Counted:
    how = reading(settings)
    named = tuple(name.strip() for name in (settings.classes or "").split(",") if name.strip())
    classes = how.class_map.classes if how.class_map is not None else named
    if not classes:
        raise UsageError("--stream needs the classes beforehand: --class-map FILE or --classes NAME,NAME")
    measure = settings.distance or "euclidean_3d"
    rule = counting_rule(settings, classes, measure)
    policy = matching_policy(settings, MatchingPolicy("centre_bev", 2.0))
    table = None if settings.groups is None else read_drives(settings.groups)
    if table is not None and table.of == "frame":
        raise UsageError("--stream takes drives by sequence: --groups needs the columns 'sequence,drive'")
    files = StreamFiles(
        None if settings.checkpoint is None else Path(settings.checkpoint),
        None if settings.record is None else Path(settings.record),
        _job(settings, rule.record(policy.record())),
    )
    options = reader_options(settings)
    if not options.keys() <= {"frames", "columns"}:
        raise UsageError("--distance-field and --detected-class belong to other formats than tables")

    def chunks(after: str | None) -> Iterator[Chunk]:
        return stream_tables(
            settings.annotations,
            settings.detections,
            how,
            classes=classes,
            rows_per_chunk=settings.chunk_rows,
            after=after,
            numbered=memory is not None,
            **options,
        )

    progress = count_chunks(chunks, policy, rule, files, filters(settings, measure), report, memory, table)
    counts = confusion_counts(progress.counted, rule, policy, dict(progress.origin), settings.title)
    refuse_absurd(counts.metadata, settings.accept)
    if memory is not None and progress.by_context is not None:
        counts = divided(counts, progress.by_context.tally, rule, memory)
    return Counted(counts if table is None else sequences_in_drives(counts, table), None, files)


def _job(settings: CountSettings, choices: dict[str, Any]) -> dict[str, Any]:
    """Everything that must not change between a run and the one that goes on with it."""
    # Drives are put together, and sums judged, when all is counted.
    others = ["output", "title", "json", "plot", "checkpoint", "stream", "accept"]
    others += ["groups"] if settings.record is None else []  # the parts of a record name drives
    inputs = {name: value for name, value in asdict(settings).items() if name not in others}
    sizes = {
        name: Path(inputs[name]).stat().st_size
        for name in ("annotations", "detections")
        if Path(inputs[name]).exists()
    }
    return {"arguments": inputs, "choices": choices, "bytes": sizes}


def dependence_document(
    data: DetectionSet, observed: Observed, rule: CountingRule, seed: int = 0
) -> dict[str, Any] | list[dict[str, Any]] | None:
    """The key `dependence` of a confusion document: the test of each class that has tracks.

    Of a family over score thresholds it is a list with one entry for each.

    Returns:
        None where the annotations have no tracks, or none with two successive frames.
    """
    outcomes = track_outcomes(data, observed, rule)
    if outcomes is None:
        return None
    found = dependence(outcomes, rule.classes, seed)
    if not found[0]:
        return None
    documents = [{"seed": seed, "classes": [each.document() for each in classes]} for classes in found]
    return documents[0] if rule.thresholds is None else documents


def track_outcomes(data: DetectionSet, observed: Observed, rule: CountingRule) -> Outcomes | None:
    """The objects that lie on a track and in a bin; None where the annotations have no attribute `track`."""
    if "track" not in data.annotations.attributes:
        return None
    objects = observed.scene.objects
    track = track_numbers(data.annotations, data.frame_sequence)
    used = (track >= 0) & (objects.bin >= 0) & (objects.label >= 0)
    right = np.where(objects.reported == objects.label, objects.level, 0)
    place = objects.bin[used].astype(np.int64)
    return Outcomes(
        track[used],
        frame_numbers(data.frame_name, data.frame_sequence)[objects.frame[used]],
        objects.label[used],
        place * len(rule.classes) + objects.label[used],
        right[used],
        rule.threshold_count,
        rule.bins.distance_part(place),
    )
