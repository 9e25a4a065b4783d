"""The command `verify confusion`: read, count, print and write. Nothing is computed here."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from verifier.base.errors import UsageError, shown
from verifier.base.files import write_bytes, write_text
from verifier.base.options import pair
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.terminal import is_watched, progress_bar
from verifier.perception.confusion.bins import Bins, parse_edges, parse_variable
from verifier.perception.confusion.counting import confusion_counts
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.document import confusion_text, read_hashed_counts
from verifier.perception.confusion.drives import frames_in_drives, read_drives, sequences_in_drives
from verifier.perception.confusion.job import Filters, count_job, default_measure, default_policy
from verifier.perception.confusion.merging import merge
from verifier.perception.confusion.record import check_record_target, record_table, write_record
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.sanity import refuse_absurd
from verifier.perception.confusion.streaming import StreamFiles, count_chunks, finish
from verifier.perception.confusion.track_outcomes import dependence_document
from verifier.perception.detections import (
    DetectionSet,
    Reading,
    read_class_map,
    read_detections,
    stream_tables,
    with_depth,
    with_distances,
)
from verifier.perception.matching import MatchingPolicy, convention, usual_threshold
from verifier.perception.settings import CountSettings, MergeSettings
from verifier.provenance import own_versions
from verifier.telling.confusion import audit_table, counts_table
from verifier.telling.figures.drawing import check_plot_target, figure_bytes
from verifier.telling.figures.recall import recall_figure


def count_command(arguments: CountSettings, command: Command) -> int:
    """Run `verify confusion` and give its exit code."""
    for name in ("format", "annotations", "detections"):
        if not getattr(arguments, name):
            raise UsageError(f"name the data: --format NAME --annotations PATH --detections PATH (no --{name})")
    if arguments.plot is not None:
        check_plot_target(arguments.plot)
    if arguments.record is not None:
        check_record_target(arguments.record)
    if arguments.spec is not None and not arguments.matching_audit:
        raise UsageError("--spec belongs to --matching-audit; to verify the matrices, write them and use verify run")
    if arguments.stream or arguments.checkpoint is not None:
        return _count_stream(arguments, command)

    data = _read(arguments)
    sources = (arguments.depth_folder, arguments.distance_file, arguments.distance_field)
    measure = arguments.distance or ("given" if sources != (None, None, None) else default_measure(data))
    data = filters(arguments, measure)(data)
    if arguments.matching_audit:
        return _audit(arguments, data, measure)
    rule = counting_rule(arguments, data.classes, measure)
    table = None if arguments.groups is None else read_drives(arguments.groups)
    by_frame = table is not None and table.of == "frame"
    in_drives = frames_in_drives(data, table) if table is not None and by_frame else data
    counts, observed = count_job(in_drives, matching_policy(arguments, default_policy(data)), rule, arguments.title)
    refuse_absurd(counts.metadata.get("remarks", []), arguments.accept)
    if arguments.record is not None:
        if observed is None:
            raise UsageError("--record: under this matching each threshold has matches of its own; use one threshold")
        write_record([record_table(data, rule, observed)], arguments.record)
    if observed is not None and (found := dependence_document(data, observed, rule)) is not None:
        counts = replace(counts, metadata={**counts.metadata, "dependence": found})
    if table is not None and not by_frame:
        counts = sequences_in_drives(counts, table)
    _give(arguments, counts, command)
    return 0


def _read(arguments: CountSettings) -> DetectionSet:
    others = (arguments.distance_file, arguments.distance_field)
    if arguments.depth_folder is not None and others != (None, None):
        raise UsageError("--depth-folder gives every distance; leave out --distance-file and --distance-field")
    how = reading(arguments)
    data = read_detections(
        arguments.format or "", arguments.annotations, arguments.detections, how, **reader_options(arguments)
    )
    if arguments.depth_folder is not None:
        return with_depth(data, arguments.depth_folder, ignore=how.ignore)
    if arguments.distance_file is not None:
        return with_distances(data, arguments.distance_file, arguments.distance_key)
    return data


def merge_command(arguments: MergeSettings, command: Command) -> int:
    """Run `verify confusion merge` and give its exit code."""
    read = [read_hashed_counts(path) for path in arguments.files]
    parts = [counts for counts, _ in read]
    counts = merge(parts, arguments.files, arguments.same_sequences, [digest for _, digest in read])
    if arguments.groups is not None:
        counts = sequences_in_drives(counts, read_drives(arguments.groups))
    document = _document(counts, command)
    if arguments.output is not None:
        write_text(arguments.output, document)
    print(document if arguments.json else counts_table(counts), end="")
    return 0


def _document(counts: ConfusionCounts, command: Command) -> str:
    return with_provenance(confusion_text(counts), command, {"versions": own_versions()})


def _give(arguments: CountSettings, counts: ConfusionCounts, command: Command) -> None:
    document = _document(counts, command)
    if arguments.output is not None:
        write_text(arguments.output, document)
    if arguments.plot is not None:
        lowest = counts if counts.thresholds is None else counts.member(counts.thresholds[0])
        write_bytes(arguments.plot, figure_bytes(recall_figure(lowest.matrices()), arguments.plot))
    print(document if arguments.json else counts_table(counts), end="")


def _audit(arguments: CountSettings, data: DetectionSet, measure: str) -> int:
    from verifier.options import RunOptions
    from verifier.questions.audit import audit

    rule = counting_rule(arguments, data.classes, measure)
    options = RunOptions(empty_columns=arguments.empty_columns, confidence=None)
    ignored = matching_policy(arguments, default_policy(data)).ignore_overlap
    found = list(
        audit(data, rule, arguments.spec, options, partial(progress_bar, what="policies", unit="policy"), ignored)
    )
    if arguments.json:
        print(json.dumps([each.row() for each in found], indent=2, ensure_ascii=False))
    else:
        print(audit_table(found), end="")
    return 0


def _count_stream(arguments: CountSettings, command: Command) -> int:
    others = (arguments.distance_file, arguments.depth_folder)
    if arguments.format != "table" or arguments.matching_audit or others != (None, None):
        raise UsageError(
            "--stream counts Parquet tables (--format table), without an audit, --distance-file or --depth-folder"
        )
    if arguments.chunk_rows < 1:
        raise UsageError(f"--chunk-rows: expected at least 1, got {arguments.chunk_rows}")
    how = reading(arguments)
    named = tuple(each.strip() for each in (arguments.classes or "").split(",") if each.strip())
    classes = how.class_map.classes if how.class_map is not None else named
    if not classes:
        raise UsageError("--stream needs the classes beforehand: --class-map FILE or --classes NAME,NAME")
    measure = arguments.distance or "euclidean_3d"
    rule = counting_rule(arguments, classes, measure)
    policy = matching_policy(arguments, MatchingPolicy("centre_bev", 2.0))
    table = None if arguments.groups is None else read_drives(arguments.groups)
    if table is not None and table.of == "frame":
        raise UsageError("--stream takes drives by sequence: --groups needs the columns 'sequence,drive'")
    files = StreamFiles(
        None if arguments.checkpoint is None else Path(arguments.checkpoint),
        None if arguments.record is None else Path(arguments.record),
        _job(arguments, rule.record(policy.record())),
    )
    options = reader_options(arguments)
    if not options.keys() <= {"frames", "columns"}:
        raise UsageError("--distance-field and --detected-class belong to other formats than tables")

    def chunks(after: str | None) -> Any:
        return stream_tables(
            arguments.annotations,
            arguments.detections,
            how,
            classes=classes,
            rows_per_chunk=arguments.chunk_rows,
            after=after,
            **options,
        )

    with _RowBar() as bar:
        found = count_chunks(chunks, policy, rule, files, filters(arguments, measure), bar)
    counts = confusion_counts(found.counted, rule, policy, dict(found.origin), arguments.title)
    refuse_absurd(counts.metadata.get("remarks", []), arguments.accept)
    _give(arguments, counts if table is None else sequences_in_drives(counts, table), command)
    finish(files)
    return 0


def _job(arguments: CountSettings, choices: dict[str, Any]) -> dict[str, Any]:
    """Everything that must not change between a run and the one that goes on with it."""
    outputs = ("output", "title", "json", "plot", "checkpoint", "stream", "accept")
    given = {name: value for name, value in asdict(arguments).items() if name not in outputs}
    sizes = {
        name: Path(given[name]).stat().st_size for name in ("annotations", "detections") if Path(given[name]).exists()
    }
    return {"arguments": given, "choices": choices, "bytes": sizes}


def reading(arguments: CountSettings) -> Reading:
    """How to read, as the arguments say."""
    return Reading(
        None if arguments.class_map is None else read_class_map(arguments.class_map),
        tuple(arguments.ignore),
        arguments.dont_care,
        tuple(arguments.sequence) or None,
    )


def reader_options(arguments: CountSettings) -> dict[str, Any]:
    """The options of the format's reader that were given."""
    options = {name: getattr(arguments, name) for name in ("frames", "distance_field", "detected_class")}
    options |= {"columns": arguments.column} if arguments.column else {}
    return {name: value for name, value in options.items() if value is not None}


def filters(arguments: CountSettings, measure: str) -> Filters:
    """The filters that the arguments ask for."""
    bounds: dict[str, tuple[float, float]] = {}
    for name, value in (_bound(text, "--min") for text in arguments.min):
        bounds[name] = (value, math.inf)
    for name, value in (_bound(text, "--max") for text in arguments.max):
        bounds[name] = (bounds.get(name, (-math.inf, 0))[0], value)
    limits = tuple((name, low, high) for name, (low, high) in bounds.items())
    reach = None
    if arguments.range is not None:
        low_text, dots, high_text = arguments.range.partition("..")
        if not dots:
            raise UsageError(f"--range: expected LOW..HIGH in metres, got {shown(arguments.range)}")
        reach = (_number(low_text, "--range"), _number(high_text, "--range"))
    return Filters(arguments.min_score, reach, measure, arguments.field_of_view, limits, arguments.filtered)


def matching_policy(arguments: CountSettings, usual: MatchingPolicy) -> MatchingPolicy:
    """The policy that the arguments name, starting from a convention or from what is usual for the data."""
    policy = usual if arguments.convention is None else convention(arguments.convention)
    changes: dict[str, Any] = {}
    if arguments.affinity is not None:
        changes["affinity"] = arguments.affinity
        if arguments.affinity != policy.affinity:
            changes["threshold"] = usual_threshold(arguments.affinity)
    if arguments.match_threshold is not None:
        changes["threshold"] = arguments.match_threshold
    if arguments.assignment is not None:
        changes["assignment"] = arguments.assignment
    if arguments.class_aware is not None:
        changes["class_aware"] = arguments.class_aware
    if arguments.ignore_overlap is not None:
        changes["ignore_overlap"] = _part(arguments.ignore_overlap)
    try:
        return replace(policy, **changes)
    except ValueError as error:
        raise UsageError(f"matching: {error}") from None


def counting_rule(arguments: CountSettings, classes: tuple[str, ...], measure: str) -> CountingRule:
    """The rule that the arguments name, for data with these classes."""
    named = classes
    if arguments.classes is not None:
        named = tuple(each.strip() for each in arguments.classes.split(","))
    thresholds = None
    if arguments.score_thresholds is not None:
        listed = arguments.score_thresholds.split(",")
        thresholds = tuple(_number(each, "--score-thresholds") for each in listed)
        if arguments.min_score is not None and arguments.min_score > thresholds[0]:
            raise UsageError("--min-score would leave out detections that the lowest of --score-thresholds counts")
    return CountingRule(
        arguments.labelling,
        named,
        Bins(parse_edges(arguments.bins), tuple(parse_variable(text) for text in arguments.by)),
        measure,
        arguments.unmatched,
        arguments.duplicates,
        arguments.outside,
        arguments.gap,
        thresholds,
    )


def _part(text: str) -> float | None:
    return None if text == "none" else _number(text, "--ignore-overlap")


def _bound(text: str, option: str) -> tuple[str, float]:
    name, value = pair(option, "NAME=VALUE", text)
    return name, _number(value, option)


def _number(text: str, option: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise UsageError(f"{option}: expected a number, got {shown(text)}")
    return value


class _RowBar:
    """A progress bar on stderr over the rows read, where a person is looking."""

    def __init__(self) -> None:
        self._bar: Any = None
        self.close: Callable[[], None] = lambda: None

    def __enter__(self) -> _RowBar:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, done: int, total: int) -> None:
        if self._bar is None and is_watched():
            from tqdm import tqdm

            self._bar = tqdm(total=total, desc="rows", unit="row", unit_scale=True, leave=False)
            self.close = self._bar.close
        if self._bar is not None:
            self._bar.update(done - self._bar.n)
