"""Large tables counted chunk by chunk: as a whole, by partitions of whole sequences, or a shard of these.

A `TableCount` is everything that counting a partition takes, so it is a pure function of the partition, here or on
another machine. What partitions give is added; the sum is that of the whole, so a document does not say who counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, cast

from verifier.base.blocks import Pool, Share
from verifier.base.errors import UsageError
from verifier.perception.confusion.choices import counting_rule, matching_policy, prepared, reader_options, reading
from verifier.perception.confusion.context_counts import Memory, divided
from verifier.perception.confusion.counting import confusion_counts
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.document_dependence import IN_PARTS, combined_dependence
from verifier.perception.confusion.drives import DriveTable, read_drives
from verifier.perception.confusion.folders import FolderCount, check_parted
from verifier.perception.confusion.record import join_records
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.sanity import with_reading, with_sanity
from verifier.perception.confusion.shards import judged, parsed_shard, shard_record, share_of, with_shard
from verifier.perception.confusion.streaming import (
    PartCount,
    Progress,
    StreamFiles,
    added_parts,
    count_chunks,
    finish,
)
from verifier.perception.detections import Chunk, Reading, stream_tables
from verifier.perception.detections.parquetfiles import TablePart, Tables, digest_of
from verifier.perception.matching import MatchingPolicy
from verifier.perception.settings import CountSettings, Measure

Partition: TypeAlias = tuple[int, TablePart]
"""A part of the tables, and its number."""


@dataclass(frozen=True)
class TableCount:
    """How tables are counted.

    Attributes:
        memory: the contexts that are counted as well.
        drives: what sequences are put together by.
    """

    settings: CountSettings
    reading: Reading
    rule: CountingRule
    policy: MatchingPolicy
    memory: Memory | None
    drives: DriveTable | None
    tables: Tables

    @classmethod
    def of(cls, settings: CountSettings, memory: Memory | None) -> TableCount:
        """What settings choose, files looked at.

        Raises:
            VerifierError: choices that do not go together, files that cannot be read.
        """
        how = reading(settings)
        named = tuple(name.strip() for name in (settings.classes or "").split(",") if name.strip())
        classes = how.class_map.classes if how.class_map is not None else named
        if not classes:
            raise UsageError("--stream needs the classes beforehand: --class-map FILE or --classes NAME,NAME")
        given = settings.depth_folder is not None or settings.calibration is not None
        rule = counting_rule(settings, classes, settings.distance or ("given" if given else "euclidean_3d"))
        policy = matching_policy(settings, MatchingPolicy("centre_bev", 2.0))
        table = None if settings.groups is None else read_drives(settings.groups)
        if table is not None and table.of == "frame":
            raise UsageError("--stream takes drives by sequence: --groups needs the columns 'sequence,drive'")
        options = reader_options(settings)
        if not options.keys() <= {"frames", "columns"}:
            raise UsageError("--distance-field and --detected-class belong to other formats than tables")
        tables = Tables.of(settings.annotations, settings.detections, **options)
        return cls(settings, how, rule, policy, memory, table, tables)

    @property
    def files(self) -> StreamFiles:
        """What a run over the whole keeps."""
        settings = self.settings
        return StreamFiles(
            None if settings.checkpoint is None else Path(settings.checkpoint),
            None if settings.record is None else Path(settings.record),
            _job(settings, self.rule.record(self.policy.record())),
        )

    def __call__(self, block: Partition | str) -> PartCount:
        """Count a partition, or hash a file; errors as `count_chunks`."""
        if isinstance(block, str):
            return PartCount(digests={block: digest_of(block)})
        number, part = block
        files = StreamFiles(record=self.files.part(number) if self.settings.record is not None else None)
        progress = self.counted(files, part=part, records=())
        return PartCount(progress if progress.parts else None)

    @property
    def how(self) -> tuple[CountingRule, MatchingPolicy]:
        """What every partition is counted by."""
        return self.rule, self.policy

    def counted(
        self,
        files: StreamFiles,
        report: Callable[[int, int], None] = lambda done, total: None,
        part: TablePart | None = None,
        records: Sequence[Mapping[str, object]] | None = None,
    ) -> Progress:
        """Count a part of the tables chunk by chunk, or all; as `count_chunks` and `stream_tables`."""
        settings = self.settings

        def chunks(after: str | None) -> Iterator[Chunk]:
            return stream_tables(
                self.tables,
                self.reading,
                classes=self.reading.class_map.classes if self.reading.class_map else self.rule.classes,
                rows_per_chunk=settings.chunk_rows,
                after=after,
                numbered=self.memory is not None,
                part=part,
                records=records,
            )

        alone = replace(settings, distance=cast("Measure", self.rule.measure))
        how = self.policy, self.rule, files, lambda data: prepared(alone, data, part=True)[0]
        return count_chunks(chunks, *how, report, self.memory, self.drives, settings.localisation)


def is_streamed(settings: CountSettings) -> bool:
    """Whether the data are Parquet tables, which are read chunk by chunk."""
    is_csv = str(settings.annotations).lower().endswith((".csv", ".tsv"))
    return settings.format == "table" and (settings.stream or not is_csv)


def stream_counted(
    settings: CountSettings, memory: Memory | None, report: Callable[[int, int], None]
) -> tuple[ConfusionCounts, StreamFiles, tuple[Share, ...]]:
    """The counts of large tables, what is still kept to go on from, and what each worker did.

    Raises:
        VerifierError: as `TableCount.of`, `count_chunks` and `Pool`.
    """
    if not is_streamed(settings):
        check_parted(settings)
        return _by_partitions(FolderCount.of(settings, memory), StreamFiles(), report)
    job = TableCount.of(settings, memory)
    files = job.files
    if settings.scheduler is not None or settings.shard is not None:
        return _by_partitions(job, files, report)
    records = job.tables.records()
    progress = job.counted(files, report, records=records)
    return _whole(job, PartCount(progress), records), files, ()


Job: TypeAlias = TableCount | FolderCount


def _by_partitions(
    job: Job, files: StreamFiles, report: Callable[[int, int], None]
) -> tuple[ConfusionCounts, StreamFiles, tuple[Share, ...]]:
    settings, shard = job.settings, None if job.settings.shard is None else parsed_shard(job.settings.shard)
    parts = list(enumerate(job.tables.parts(settings.chunk_rows)))
    mine = parts if shard is None else share_of(parts, shard)
    own = [part for _, part in mine]
    paths = job.tables.paths_of(own, whole=shard is None or shard[0] == 1)
    if files.parts is not None:
        files.parts.mkdir(exist_ok=True)
    blocks: list[Any] = [*paths, *mine]
    try:
        with Pool(settings.scheduler) as pool:
            count = pool.sum(job, blocks, added_parts, report) if blocks else PartCount()
        if files.record is not None:
            join_records([files.part(number) for number, _ in mine], files.record)
    finally:
        finish(files)  # nobody can go on from it
    named = job.elsewhere() if isinstance(job, FolderCount) else {}
    if shard is None:
        known = () if count.progress is None else count.progress.counted.sequences
        for fault in (fault for name, fault in named.items() if name and name not in known):
            raise fault
        return _whole(job, count, job.tables.records(count.digests.__getitem__)), files, pool.shares
    told = shard_record(shard, job.tables, own, count, settings.accept, job.drives) | {"named": list(named)}
    return with_shard(_document(job, count), told), files, pool.shares


def _document(job: Job, count: PartCount) -> ConfusionCounts:
    """The counts as they are told, before anything is judged."""
    assert job.how is not None
    rule, policy = job.how
    progress = count.progress or Progress.nothing(rule, job.memory)
    counts = confusion_counts(progress.counted, rule, policy, dict(progress.origin), job.settings.title)
    counts = with_reading(counts)
    if count.tests:
        tested = {**counts.metadata, "dependence": combined_dependence(count.tests, IN_PARTS)}
        counts = with_sanity(replace(counts, metadata=tested))
    if job.memory is not None and (contexts := progress.counted.contexts) is not None:
        counts = divided(counts, contexts, rule, job.memory)
    return counts


def _whole(job: Job, count: PartCount, sources: Sequence[Mapping[str, object]]) -> ConfusionCounts:
    """The counts of all parts, judged, and put together by drive."""
    counts = _document(job, count)
    source = {**counts.metadata["source"], "sources": sources}
    counts = replace(counts, metadata={**counts.metadata, "source": source})
    table = None if count.progress is None else count.progress.counted.localised
    return judged(counts, table, job.settings.accept, job.drives)


def _job(settings: CountSettings, choices: dict[str, object]) -> dict[str, object]:
    """Everything that must not change between a run and the one that goes on with it."""
    # Drives are put together, and sums judged, when all is counted.
    others = ["output", "title", "json", "plot", "checkpoint", "stream", "accept", "scheduler", "shard"]
    others += ["groups"] if settings.record is None else []  # the parts of a record name drives
    inputs = {name: value for name, value in asdict(settings).items() if name not in others}
    sizes = {
        name: Path(inputs[name]).stat().st_size
        for name in ("annotations", "detections")
        if Path(inputs[name]).exists()
    }
    return {"arguments": inputs, "choices": choices, "bytes": sizes}
