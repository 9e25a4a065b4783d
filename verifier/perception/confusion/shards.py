"""One count shared out among jobs that know nothing of each other: shard i of n, and the whole from all n.

Each shard is a document of its own that says which rows of which files it counted, so that a sum of shards is the
document of the whole, byte for byte, or is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np

from verifier.base.arrays import Ints
from verifier.base.documents import json_values
from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.base.files import read_json
from verifier.perception.confusion.counting import with_localisation
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.document_dependence import IN_PARTS, Told, combined_dependence, read_dependence
from verifier.perception.confusion.document_reader import METADATA
from verifier.perception.confusion.drives import DriveTable, sequences_in_drives
from verifier.perception.confusion.merging import merge
from verifier.perception.confusion.sanity import IMPLAUSIBLE_DEPTH, OF_COUNTS, refuse_absurd, remark, with_sanity
from verifier.perception.confusion.streaming import PartCount, added_origin
from verifier.perception.detections.depth import whole_depth
from verifier.perception.detections.parquetfiles import ROLES, FilesInOrder, TablePart, Tables

Shard: TypeAlias = tuple[int, int]
"""Its number, from 1, and how many there are."""
MOST_SHARDS = 100_000
SHARD = "shard"
Part = TypeVar("Part")


def parsed_shard(text: str) -> Shard:
    """`i/n`; UsageError where it is none."""
    numbers = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if numbers is None or not 1 <= int(numbers[1]) <= int(numbers[2]) <= MOST_SHARDS:
        raise UsageError(f"--shard: expected I/N with I from 1 to N, at most {MOST_SHARDS}, got {shown(text)}")
    return int(numbers[1]), int(numbers[2])


def share_of(parts: Sequence[Part], shard: Shard) -> Sequence[Part]:
    """The parts of a shard, which follow each other; none where there are more shards than parts."""
    number, of = shard
    return parts[(number - 1) * len(parts) // of : number * len(parts) // of]


def shard_record(
    shard: Shard,
    tables: Tables,
    parts: Sequence[TablePart],
    count: PartCount,
    accepted: Iterable[str],
    drives: DriveTable | None,
) -> dict[str, object]:
    """What a shard says of itself.

    Args:
        shard: its number, and of how many.
        tables: what is counted.
        parts: of it that are the shard's.
        count: what was counted, and the SHA-256 of the files that it read.
        accepted: kinds of implausible data that the whole may be.
        drives: what the sequences of the whole are put together by.
    """
    table = None if count.progress is None else count.progress.counted.localised
    rows = [[part[0][0], part[-1][1]] for part in zip(*(part.rows for part in parts), strict=True)]
    return {
        "number": shard[0],
        "of": shard[1],
        "rows": rows,
        "tables": [asdict(file.without_folders) for file in tables.files],
        "digests": [[count.digests.get(path) for path in file.paths] for file in tables.files],
        "tests": json_values(count.tests),
        "localised": None if table is None else table.tolist(),
        "accepted": list(accepted),
        "drives": None if drives is None else {"drives": dict(drives.drives), **drives.record()},
    }


def with_shard(counts: ConfusionCounts, told: Mapping[str, object]) -> ConfusionCounts:
    """The counts of a shard, with what it says of itself in their source, and in a remark for whoever uses them."""
    source = {**counts.metadata.get("source", {}), SHARD: told}
    text = f"shard {told['number']} of {told['of']}: the other shards are not in these counts"
    return with_sanity(replace(counts, metadata={**counts.metadata, "source": source}), [remark(SHARD, text)])


def _damaged(path: str, message: str, hint: str | None = None) -> InputError:
    raise ValueError(message)


@dataclass(frozen=True, eq=False)
class ReadShard:
    """A document of a shard: what it says of itself, checked, and the counts."""

    name: str
    counts: ConfusionCounts
    shard: Shard
    rows: list[list[int]]
    tables: tuple[FilesInOrder, ...]
    digests: list[list[str | None]]
    tests: list[Told]
    localised: Ints | None
    accepted: list[str]
    drives: DriveTable | None
    named: list[str]

    @classmethod
    def of(cls, name: str, counts: ConfusionCounts) -> ReadShard | None:
        """None where the document is no shard; InputError where it is a damaged one."""
        source = counts.metadata.get("source")
        told = source.get(SHARD) if isinstance(source, Mapping) else None
        if told is None:
            return None
        try:
            number, of = parsed_shard(f"{told['number']}/{told['of']}")
            tables = tuple(
                FilesInOrder(str(entry["name"]), tuple(map(str, entry["paths"])), tuple(map(int, entry["starts"])))
                for entry in told["tables"]
            )
            rows = [[int(first), int(end)] for first, end in told["rows"]]
            digests = [
                [None if digest is None else str(digest) for digest, _ in zip(own, table.paths, strict=True)]
                for own, table in zip(told["digests"], tables, strict=True)
            ]
            drives = told["drives"]
            if drives is not None:
                places = dict.fromkeys(drives["drives"], Place(drives["name"]))
                drives = DriveTable(drives["of"], drives["drives"], places, drives["name"], drives["sha256"])
            accepted, named = list(map(str, told["accepted"])), list(map(str, told["named"]))
            table = told["localised"]
            bins = counts.bins.shape[0]
            table = None if table is None else np.array(table, dtype=np.int64).reshape(bins + 1, bins)
            members = None if counts.thresholds is None else len(counts.thresholds)
            tests = [read_dependence(test, members, name, _damaged, bins) for test in told["tests"]]
        except (InputError, UsageError, AttributeError, KeyError, TypeError, ValueError):
            message = "what the shard says of itself is damaged"
            raise InputError(message, Place(name, path="/source/shard"), "count the shard again") from None
        return cls(name, counts, (number, of), rows, tables, digests, tests, table, accepted, drives, named)


def shards_of(names: Sequence[str], parts: Sequence[ConfusionCounts]) -> list[ReadShard]:
    """The files as shards; none where none is.

    Raises:
        InputError: a damaged shard, or some files are shards and others are not.
    """
    read = [ReadShard.of(name, counts) for name, counts in zip(names, parts, strict=True)]
    shards = [shard for shard in read if shard is not None]
    if 0 < len(shards) < len(read):
        raise InputError(
            f"no shard, and {shards[0].name} is shard {shards[0].shard[0]}/{shards[0].shard[1]}",
            Place(names[read.index(None)]),
            "merge all shards of a count to the whole first",
        )
    return shards


def command_of_shards(files: Sequence[str]) -> tuple[str, ...] | None:
    """The command that made the shards, which is that of the whole; None where the files are no shards.

    Raises:
        InputError: shards that were counted by other commands.
    """
    documents = [read_json(file)[0] for file in files]
    if SHARD not in (documents[0].get("source") or ()):  # where some are shards all are: they have been merged
        return None
    commands = [tuple(document.get("command", ())) for document in documents]
    for file, command in zip(files, commands, strict=True):
        if command != commands[0]:
            raise InputError(
                f"a shard of another count than {files[0]}: {' '.join(command)} here, {' '.join(commands[0])} there",
                Place(file),
                "count all shards with the same files and options",
            )
    return commands[0]


def joined_shards(given: Sequence[ReadShard], hashes: Sequence[str]) -> ConfusionCounts:
    """The document of the whole.

    Args:
        given: all shards of one count, in any order.
        hashes: SHA-256 of each file.

    Raises:
        InputError: shards of another count, one that is there twice or missing, files that changed meanwhile; names
            files and shards.
    """
    digest_of = {shard.name: digest for shard, digest in zip(given, hashes, strict=True)}
    shards = sorted(given, key=lambda shard: shard.shard)
    _check_numbers(shards)
    _check_same_count(shards)
    _check_rows(shards)
    digests = _digests(shards)
    first = shards[0]
    origins = [dict(shard.counts.metadata["source"]) for shard in shards]
    made = [entry for shard in shards for entry in shard.counts.metadata.get("remarks", ()) if entry["kind"] != SHARD]
    plain = {
        shard.name: replace(shard.counts, metadata={**shard.counts.metadata, "remarks": []})
        for shard in [shard for shard in shards if shard.counts.sequences is not None] or shards
    }
    total = merge(list(plain.values()), list(plain), "error", [digest_of[name] for name in plain])
    for origin in origins:
        del origin[SHARD]
    source = dict[str, Any]()
    for shard, origin in zip(shards, origins, strict=True):
        try:
            source = added_origin(source, origin) if source else origin
        except (AttributeError, LookupError, TypeError):
            message = "does not fit the shards before it"
            raise InputError(message, Place(shard.name, path="/source"), "count the shard again") from None
    source["sources"] = [
        table.record(role, own) for role, table, own in zip(ROLES, first.tables, digests, strict=False)
    ]
    known = () if total.sequences is None else total.sequences.names
    for sequence in (name for name in first.named if name and name not in known):
        message = f"{source['distances']['name']} names the sequence {shown(sequence)}, which no shard has"
        raise InputError(message, hint="correct its rows, and count all shards again")
    tests = [test for shard in shards for test in shard.tests]
    metadata = {**total.metadata, "source": source}
    metadata |= {"dependence": combined_dependence(tests, IN_PARTS)} if tests else {}
    total = replace(total, metadata={key: metadata[key] for key in METADATA if key in metadata and key != "remarks"})
    total = with_sanity(total, [entry for entry in made if entry["kind"] not in OF_COUNTS])
    tables = [shard.localised for shard in shards if shard.localised is not None]
    return judged(total, np.sum(tables, axis=0) if tables else None, first.accepted, first.drives)


def judged(
    counts: ConfusionCounts, table: Ints | None, accepted: Iterable[str], drives: DriveTable | None
) -> ConfusionCounts:
    """The counts of all parts, with what only all of them tell, put together by drive.

    Args:
        counts: their sum.
        table: the sum of `localisation.localised`; None where that is not asked for.
        accepted: kinds of implausible data that are not refused.
        drives: what sequences are put together by.

    Raises:
        InputError: no data can be so, unless that is accepted.
    """
    refuse_absurd(counts.metadata, accepted)
    source = counts.metadata["source"]
    if "maps" in (source.get("distances") or ()):
        maps = source["distances"]
        source = {**source, "distances": whole_depth(maps, maps["name"], IMPLAUSIBLE_DEPTH in accepted)}
        counts = replace(counts, metadata={**counts.metadata, "source": source})
    counts = counts if table is None else with_localisation(counts, table)
    return counts if drives is None else sequences_in_drives(counts, drives)


def _check_numbers(shards: Sequence[ReadShard]) -> None:
    """Every shard is there, once; they come in their order."""
    of = shards[0].shard[1]
    there: dict[int, str] = {}
    for shard in shards:
        number, own = shard.shard
        if own != of:
            other = f"{shards[0].name} is shard {shards[0].shard[0]}/{of}"
            raise InputError(f"shard {number}/{own}, and {other}", Place(shard.name), "merge shards of one count")
        if number in there:
            message = f"shard {number}/{of} is in {there[number]}, too: its items would count twice"
            raise InputError(message, Place(shard.name), "name each shard once")
        there[number] = shard.name
    missing = [str(number) for number in range(1, of + 1) if number not in there]
    if missing:
        more = f" and {len(missing) - 9} more" if len(missing) > 9 else ""
        raise InputError(
            f"of {of} shards missing are: {', '.join(missing[:9])}{more}; there are {', '.join(there.values())}",
            hint="merge all shards of a count at once",
        )


def _check_same_count(shards: Sequence[ReadShard]) -> None:
    first = shards[0]
    for shard in shards[1:]:
        for what, mine, other in (
            ("tables", shard.tables, first.tables),
            ("drives", shard.drives, first.drives),
            ("accepted", shard.accepted, first.accepted),
        ):
            if mine != other:
                raise InputError(
                    f"a shard of another count than {first.name}: {what} differ: {shown(mine, 200)} here, "
                    f"{shown(other, 200)} there",
                    Place(shard.name),
                    "count all shards with the same files and options",
                )


def _check_rows(shards: Sequence[ReadShard]) -> None:
    """The rows of the shards follow each other, from the first to the last of each table."""
    tables = shards[0].tables
    ends = [0] * len(tables)
    for shard in shards:
        if shard.rows and ([first for first, _ in shard.rows] != ends or len(shard.rows) != len(tables)):
            at = next((k for k, (own, end) in enumerate(zip(shard.rows, ends, strict=False)) if own[0] != end), 0)
            raise InputError(
                f"begins at row {shard.rows[at][0] + 1} of {tables[at].name}, and the shards before it end with row "
                f"{ends[at]}",
                Place(shard.name),
                "count all shards again, with the same files and options",
            )
        ends = [end for _, end in shard.rows] or ends
    for table, end in zip(tables, ends, strict=True):
        if end != len(table):
            raise InputError(f"rows from {end + 1} on are in no shard", Place(table.name), "count all shards again")


def _digests(shards: Sequence[ReadShard]) -> list[list[str]]:
    """The SHA-256 of every file of every table, on which all shards that read it agree."""
    digests = []
    for number, table in enumerate(shards[0].tables):
        digests.append(list[str]())
        for at, path in enumerate(table.paths):
            told = {digest: shard.name for shard in shards if (digest := shard.digests[number][at]) is not None}
            if len(told) != 1:
                what = f"the file has changed between {' and '.join(told.values())}" if told else "no shard read it"
                raise InputError(what, Place(path), "count all shards again")
            digests[-1] += told
    return digests
