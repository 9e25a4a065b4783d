"""The command `verify confusion`: read, count, print and write. Nothing is computed here."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from verifier.analysis.dependence.tracks import dependence_document
from verifier.base.errors import UsageError
from verifier.base.files import write_text
from verifier.cli.confusion_arguments import counting_rule, filters, matching_policy, reader_options, reading
from verifier.cli.confusion_tables import audit_table, counts_table
from verifier.cli.invocation import with_provenance
from verifier.cli.plots import check_plot_target
from verifier.cli.recall_plot import write_recall_plot
from verifier.cli.terminal import is_watched, progress_bar
from verifier.perception.confusion.counting import confusion_counts
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.document import confusion_text, read_hashed_counts
from verifier.perception.confusion.drives import frames_in_drives, read_drives, sequences_in_drives
from verifier.perception.confusion.job import count_job, default_measure, default_policy
from verifier.perception.confusion.merging import merge
from verifier.perception.confusion.record import check_record_target, record_table, write_record
from verifier.perception.confusion.sanity import refuse_absurd
from verifier.perception.confusion.streaming import StreamFiles, count_chunks, finish
from verifier.perception.detections import DetectionSet, read_detections, stream_tables, with_depth, with_distances
from verifier.perception.matching import MatchingPolicy
from verifier.provenance import own_versions


def count_command(arguments: argparse.Namespace) -> int:
    """Run `verify confusion` and give its exit code."""
    for name in ("format", "annotations", "detections"):
        if getattr(arguments, name) is None:
            raise UsageError(f"name the data: --format NAME --annotations PATH --detections PATH (no --{name})")
    if arguments.plot is not None:
        check_plot_target(arguments.plot)
    if arguments.record is not None:
        check_record_target(arguments.record)
    if arguments.spec is not None and not arguments.matching_audit:
        raise UsageError("--spec belongs to --matching-audit; to verify the matrices, write them and use verify run")
    if arguments.stream or arguments.checkpoint is not None:
        return _count_stream(arguments)

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
    _give(arguments, counts)
    return 0


def _read(arguments: argparse.Namespace) -> DetectionSet:
    others = (arguments.distance_file, arguments.distance_field)
    if arguments.depth_folder is not None and others != (None, None):
        raise UsageError("--depth-folder gives every distance; leave out --distance-file and --distance-field")
    how = reading(arguments)
    data = read_detections(
        arguments.format, arguments.annotations, arguments.detections, how, **reader_options(arguments)
    )
    if arguments.depth_folder is not None:
        return with_depth(data, arguments.depth_folder, ignore=how.ignore)
    if arguments.distance_file is not None:
        return with_distances(data, arguments.distance_file, arguments.distance_key)
    return data


def merge_command(arguments: argparse.Namespace) -> int:
    """Run `verify confusion merge` and give its exit code."""
    read = [read_hashed_counts(path) for path in arguments.files]
    parts = [counts for counts, _ in read]
    counts = merge(parts, arguments.files, arguments.same_sequences, [digest for _, digest in read])
    if arguments.groups is not None:
        counts = sequences_in_drives(counts, read_drives(arguments.groups))
    document = _document(arguments, counts)
    if arguments.output is not None:
        write_text(arguments.output, document)
    print(document if arguments.json else counts_table(counts), end="")
    return 0


def _document(arguments: argparse.Namespace, counts: ConfusionCounts) -> str:
    return with_provenance(confusion_text(counts), arguments, {"versions": own_versions()})


def _give(arguments: argparse.Namespace, counts: ConfusionCounts) -> None:
    document = _document(arguments, counts)
    if arguments.output is not None:
        write_text(arguments.output, document)
    if arguments.plot is not None:
        lowest = counts if counts.thresholds is None else counts.member(counts.thresholds[0])
        write_recall_plot(lowest.matrices(), arguments.plot)
    print(document if arguments.json else counts_table(counts), end="")


def _audit(arguments: argparse.Namespace, data: DetectionSet, measure: str) -> int:
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


def _count_stream(arguments: argparse.Namespace) -> int:
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
    _give(arguments, counts if table is None else sequences_in_drives(counts, table))
    finish(files)
    return 0


def _job(arguments: argparse.Namespace, choices: dict[str, Any]) -> dict[str, Any]:
    """Everything that must not change between a run and the one that goes on with it."""
    outputs = ("command", "invocation", "output", "title", "json", "plot", "checkpoint", "stream", "accept")
    given = {name: value for name, value in vars(arguments).items() if name not in outputs and not callable(value)}
    sizes = {
        name: Path(given[name]).stat().st_size for name in ("annotations", "detections") if Path(given[name]).exists()
    }
    return {"arguments": given, "choices": choices, "bytes": sizes}


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
