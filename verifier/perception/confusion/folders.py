"""Folders with a file for each sequence, counted by sequence: each as if it were alone, and tracks stay whole.

For the plan of a count a folder is a table whose rows are its files (`FilesInOrder`), by their sequences.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path

from verifier.base.errors import InputError, Place, UsageError
from verifier.perception.confusion.choices import default_policy, matching_policy
from verifier.perception.confusion.context_counts import Memory, counter_of
from verifier.perception.confusion.counting import count_and_observe
from verifier.perception.confusion.drives import DriveTable, read_drives
from verifier.perception.confusion.preparing import dependence_document, prepared
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.streaming import PartCount, Progress
from verifier.perception.detections.parquetfiles import FilesInOrder, digest_of
from verifier.perception.detections.sources import only_files
from verifier.perception.detections.tableparts import TablePart, Tables
from verifier.perception.matching import MatchingPolicy
from verifier.perception.settings import CountSettings

FOLDERS = ("kitti_tracking",)
"""Formats with files for each sequence, which have its name."""


@dataclass(frozen=True)
class Folders(Tables):
    """Folders of annotations and detections; the sequence of each part is that of its annotations."""

    sequences: tuple[TablePart, ...] = ()

    @classmethod
    def listed(cls, settings: CountSettings) -> Folders:
        """Look at both folders; InputError where one is none, UsageError for an archive."""
        files, names = [], []
        for path in (settings.annotations, settings.detections):
            if not Path(path).is_dir():
                raise InputError("expected a folder", Place(path), "unpack an archive to count it in parts")
            found = sorted(Path(path).rglob("*.txt"), key=lambda file: (file.stem, file))
            if settings.sequence:
                found = [file for file in found if file.stem in settings.sequence]
            if not found:
                raise InputError("no file *.txt in it", Place(path))
            files.append(FilesInOrder(path, tuple(map(str, found)), tuple(range(len(found) + 1))))
            names.append([file.stem for file in found])
        of_truth = list(dict.fromkeys(names[0]))
        # Detections of a sequence without annotations are read with the first, which says what is wrong with them.
        of_found = [name if name in set(of_truth) else of_truth[0] for name in names[1]]
        order = sorted(range(len(of_found)), key=lambda at: (of_truth.index(of_found[at]), at))
        files[1] = FilesInOrder(files[1].name, tuple(files[1].paths[at] for at in order), files[1].starts)
        ends = [tuple(accumulate(own.count(name) for name in of_truth)) for own in (names[0], of_found)]
        bounds = [(0, 0), *zip(*ends, strict=True)]
        parts = (TablePart(tuple(zip(*pair, strict=True))) for pair in pairwise(bounds))
        return cls(tuple(files), (), tuple(parts))

    def parts(self, least: int) -> list[TablePart]:
        """One for each sequence."""
        return list(self.sequences)


@dataclass(frozen=True)
class FolderCount:
    """How such folders are counted: a pure function of a sequence."""

    settings: CountSettings
    memory: Memory | None
    drives: DriveTable | None
    tables: Folders

    @classmethod
    def of(cls, settings: CountSettings, memory: Memory | None) -> FolderCount:
        """What settings choose; VerifierError."""
        if settings.stream or settings.record is not None:
            raise UsageError("--stream and --record in parts are of Parquet tables (--format table)")
        table = None if settings.groups is None else read_drives(settings.groups)
        if table is not None and table.of == "frame":
            raise UsageError("drives by frame do not go with counting in parts: --groups needs 'sequence,drive'")
        return cls(settings, memory, table, Folders.listed(settings))

    def __call__(self, block: tuple[int, TablePart] | str) -> PartCount:
        """Count a sequence, or hash a file; errors as counting at once."""
        if isinstance(block, str):
            return PartCount(digests={block: digest_of(block)})
        rows = zip(self.tables.files, block[1].rows, strict=True)
        with only_files({path for files, (first, end) in rows for path in files.paths[first:end]}):
            data, rule = prepared(self.settings)
        policy = matching_policy(self.settings, default_policy(data))
        counted, observed = count_and_observe(data, policy, rule)
        by_context = None
        if self.memory is not None:
            by_context = replace(counted, tally=counter_of(data, observed, rule, self.memory).tally(), tracks=None)
        test = None if observed is None else dependence_document(data, observed, rule)
        progress = Progress(None, counted, dict(data.origin), 1, by_context)
        return PartCount(progress, how=(rule, policy), tests=() if test is None else (test,))

    def how_of(self, partition: tuple[int, TablePart]) -> tuple[CountingRule, MatchingPolicy]:
        """What every sequence is counted by, as one of them shows."""
        how = self(partition).how
        assert how is not None
        return how
