"""Folders with a file for each sequence, counted by sequence: each as if it were alone, and tracks stay whole; and
folders with a file for each image, which is in no sequence, by some images.

For the plan of a count a folder is a table whose rows are its files (`FilesInOrder`), by their sequences.

Readers want files. So of object stores (`s3://`, `gs://`, whatever fsspec reads) as much as is read is copied into a
temporary folder, and messages name addresses.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np

from verifier.base.errors import InputError, Place, UsageError, check_known, files_named, first_line
from verifier.perception.confusion.choices import (
    class_names,
    counting_rule,
    default_policy,
    dependence_document,
    matching_policy,
    placed,
)
from verifier.perception.confusion.context_counts import Memory
from verifier.perception.confusion.drives import DriveTable, read_drives
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.streaming import PartCount, Progress, count_part
from verifier.perception.detections.argoverse import logs_of_files
from verifier.perception.detections.classmap import only_files
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.distances import sequences_named
from verifier.perception.detections.mot import sequences_of_files
from verifier.perception.detections.parquetfiles import (
    ROLES,
    FilesInOrder,
    TablePart,
    Tables,
    digest_of,
    filesystem,
    is_address,
)
from verifier.perception.detections.waymo import component_folder, poses_folder
from verifier.perception.matching import MatchingPolicy
from verifier.perception.settings import IMAGE_SUFFIXES, CountSettings

ADDRESSED = ("annotations", "detections")
FIELDS = (*ADDRESSED, "frames", "class_map", "distance_file", "calibration", "depth_folder")
"""Settings that may be addresses."""


@dataclass(frozen=True)
class Copies:
    """Settings with paths of this machine, and the address of each."""

    settings: CountSettings
    addresses: Mapping[str, str]

    def told(self, text: str) -> str:
        """The text with addresses in place of paths."""
        for path, address in self.addresses.items():
            text = text.replace(path, address)
        return text

    def here(self, address: str) -> Iterator[str]:
        """The copies of a file; an address that is none is a path already."""
        if not is_address(address):
            yield address
        for path, folder in self.addresses.items():
            if address.startswith(f"{folder}/"):
                yield path + address[len(folder) :]


@contextlib.contextmanager
def copied(
    settings: CountSettings, shared: Container[str] = (), mine: Container[str] = (), names_only: bool = False
) -> Iterator[Copies]:
    """The settings with copies of what is in stores.

    Args:
        settings: of `verify confusion`.
        shared: addresses of files that are shared out, of which only `mine` are copied.
        mine: some of them.
        names_only: whether files are empty, and of annotations and detections alone.

    Raises:
        InputError: nothing there, or it cannot be read.
        UsageError: nothing reads such an address.
    """
    given = {name: str(getattr(settings, name) or "") for name in (ADDRESSED if names_only else FIELDS)}
    given = {name: address.rstrip("/") for name, address in given.items() if is_address(address)}
    with TemporaryDirectory() if given else contextlib.nullcontext("") as folder:
        own = {name: Path(folder, name, PurePosixPath(address).name) for name, address in given.items()}
        for name, address in given.items():
            images = settings.format == "yolo" or name not in ADDRESSED
            _copy(address, own[name], shared, mine, names_only, images)
        addresses = {str(own[name]): address for name, address in given.items()}
        paths: dict[str, Any] = {name: str(path) for name, path in own.items()}
        copies = Copies(replace(settings, **paths), addresses)
        with files_named(copies.told):
            yield copies


def _copy(
    address: str, target: Path, shared: Container[str], mine: Container[str], names_only: bool, images: bool
) -> None:
    """A file, or all files of a folder; of what readers look at by name alone there are empty files."""
    store = filesystem(address)
    try:
        store.invalidate_cache()  # a process that lives long sees what is there now
        root = store._strip_protocol(address)
        entries = [root] if store.isfile(address) else store.find(address)
        remote, local = list[str](), list[str]()
        for entry in entries:
            own = store.unstrip_protocol(entry)
            if own in shared and own not in mine and not names_only:
                continue
            path = target if entry == root else target / entry[len(root) + 1 :]
            path.parent.mkdir(parents=True, exist_ok=True)
            looked_at = path.suffix.lower() in IMAGE_SUFFIXES and not images
            if names_only or looked_at or "sensors" in path.relative_to(target).parts:
                path.touch()
            else:
                remote.append(entry)
                local.append(str(path))
        if remote:
            store.get(remote, local)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or first_line(error)}", Place(address)) from None
    if not entries:
        raise InputError("no such file", Place(address))


How: TypeAlias = tuple[CountingRule, MatchingPolicy]
Named: TypeAlias = tuple[str, str | None]
"""A file, and what it belongs to."""
Names: TypeAlias = Callable[[Sequence[Path], str], Sequence[str | None]]
IMAGES = 1000
"""So many are counted together."""


def _stems(paths: Sequence[Path], role: str) -> list[str | None]:
    return [path.stem for path in paths]


@dataclass(frozen=True)
class Parting:
    """How the files of a format are shared out.

    Attributes:
        suffixes: of the files of annotations, and of detections.
        names: of all paths of a role what each belongs to; None where the reader leaves it out.
        most: how many names make a part.
        is_exact: whether these are the names of sequences, so that `--sequence` chooses among the files.
        is_alone: whether the reader names a sequence by its file, so that no two may have one name.
        folder: where the files lie in a folder that is given.
    """

    suffixes: tuple[str, str] = (".txt", ".txt")
    names: Names = _stems
    most: int = 1
    is_exact: bool = False
    is_alone: bool = False
    folder: Callable[[Path], Path] = Path


FOLDERS: Mapping[str, Parting] = {
    "kitti_tracking": Parting(is_exact=True),
    "mot": Parting(names=sequences_of_files, is_exact=True),
    "argoverse": Parting(("annotations.feather", ".feather"), logs_of_files, is_exact=True),
    "waymo": Parting((".parquet", ".parquet"), folder=component_folder),
    "bdd100k": Parting((".json", ".json")),
    "openlabel": Parting((".json", ".json"), is_alone=True),
    "cvat": Parting((".xml", ".xml"), is_alone=True),
    "kitti_object": Parting(most=IMAGES),
    "voc": Parting((".xml", ".xml"), most=IMAGES),
}
"""Formats with a file for each sequence, or for each image."""


def check_parted(settings: CountSettings) -> None:
    """Refuse what workers cannot read by the files of their parts alone; UsageError."""
    parting = FOLDERS.get(str(settings.format))
    if parting is None:
        raise UsageError(
            "--scheduler and --shard count Parquet tables (--format table), and folders with a file for each "
            f"sequence or image (--format {', '.join(FOLDERS)}); leave them out"
        )
    if settings.detection_frame == "city" or (settings.sequence and not parting.is_exact):
        option = "--detection-frame city" if settings.detection_frame == "city" else "--sequence"
        raise UsageError(f"{option} of {settings.format} does not go with counting in parts: leave out one")


@dataclass(frozen=True)
class Folders(Tables):
    """Folders of annotations and detections; what a part holds are the names of its annotations."""

    sequences: tuple[TablePart, ...] = ()

    @classmethod
    def listed(cls, settings: CountSettings) -> Folders:
        """Look at all folders.

        Raises:
            InputError: one is none, or its files cannot be told apart.
            UsageError: a sequence that is not there.
        """
        parting = FOLDERS[str(settings.format)]
        given = [settings.annotations, settings.detections]
        sides = [
            _side(role, path, parting.folder(Path(path)), suffix, parting.names)
            for role, path, suffix in zip(ROLES, map(str, given), parting.suffixes, strict=False)
        ]
        if settings.format == "waymo" and (poses := poses_folder(Path(str(settings.annotations)))) is not None:
            sides.append(_side("frames", str(poses), poses, ".parquet", _stems))
        names = [name for _, name in sides[0] if name is not None]
        for name in settings.sequence:
            check_known("sequence", name, names)
        if settings.sequence:
            sides = [[row for row in side if row[1] in settings.sequence] for side in sides]
        return cls._parted(parting, sides, given)

    @classmethod
    def _parted(cls, parting: Parting, sides: Sequence[Sequence[Named]], given: Sequence[Any]) -> Folders:
        names = [name for _, name in sides[0] if name is not None]
        of_truth = list(dict.fromkeys(names))
        if parting.is_alone and len(of_truth) < len(names):
            twice = next(path for at, (path, name) in enumerate(sides[0]) if name in names[:at])
            raise InputError("another file has this name, too, and a sequence is named by its file", Place(twice))
        if not {name for _, name in sides[1]} & set(of_truth):
            hint = "to count in parts each file of annotations needs one of detections with its name"
            raise InputError("no file has the name of one of the annotations", Place(str(given[1])), hint)
        number: dict[str | None, int] = {name: at // parting.most for at, name in enumerate(of_truth)}
        files, ends = [], []
        for side in sides:
            # What no annotations are named by is read with the first, which says what is wrong with it.
            part = [number.get(name, 0) for _, name in side]
            order = sorted(range(len(side)), key=part.__getitem__)
            files.append(tuple(side[at][0] for at in order))
            ends.append(tuple(bisect_right(sorted(part), at) for at in range(max(number.values()) + 1)))
        folders = [parting.folder(Path(str(path))) for path in given]
        named = [*map(str, folders), *(str(Path(own[0]).parent) for own in files[2:])]
        in_order = (
            FilesInOrder(name, own, tuple(range(len(own) + 1))) for name, own in zip(named, files, strict=True)
        )
        bounds = [(0,) * len(sides), *zip(*ends, strict=True)]
        parts = (TablePart(tuple(zip(*pair, strict=True))) for pair in pairwise(bounds))
        return cls(tuple(in_order), (), tuple(parts))

    def parts(self, least: int) -> list[TablePart]:
        """One for each sequence, or for some images."""
        return list(self.sequences)


def _side(role: str, path: str, folder: Path, suffix: str, names: Names) -> list[Named]:
    """The files of a side in their order, and what each belongs to; InputError where there are none."""
    if not folder.is_dir():
        hint = "unpack an archive, and split a file of all sequences, to count them in parts"
        raise InputError("expected a folder", Place(path), hint)
    paths = sorted(folder.rglob(f"*{suffix}"))
    if not paths:
        raise InputError(f"no file *{suffix} in it", Place(path))
    return list(zip(map(str, paths), names(paths, role), strict=True))


@dataclass(frozen=True)
class FolderCount:
    """How such folders are counted: a pure function of a sequence.

    Attributes:
        how: rule and matching policy, as the first sequence that has objects and detections shows; None before.
    """

    settings: CountSettings
    memory: Memory | None
    drives: DriveTable | None
    tables: Folders
    how: How | None = None

    @classmethod
    def of(cls, settings: CountSettings, memory: Memory | None) -> FolderCount:
        """What settings choose; VerifierError."""
        drives = drives_of_parts(settings)
        with copied(settings, names_only=True) as copies:
            listed = Folders.listed(copies.settings)
            files = tuple(
                replace(file, name=copies.told(file.name), paths=tuple(map(copies.told, file.paths)))
                for file in listed.files
            )
        count = cls(settings, memory, drives, replace(listed, files=files))
        for part in listed.sequences:
            with count._placed(part) as (data, measure):
                if len(data.annotations) and len(data.detections):
                    break
        rule = counting_rule(settings, data.classes, measure)
        return replace(count, how=(rule, matching_policy(settings, default_policy(data))))

    def __call__(self, block: tuple[int, TablePart] | str) -> PartCount:
        """Count a sequence, or hash a file; errors as counting at once."""
        if isinstance(block, str):
            return PartCount(digests={block: digest_of(block)})
        how = self.how
        assert how is not None
        with self._placed(block[1]) as (data, measure):
            file = self.tables.files[0].paths[block[1].rows[0][0]]
            check_alike(data, measure, how, self.settings, Place(file))
            return counted_part(data, *how, self.settings, self.memory)

    @contextmanager
    def _placed(self, part: TablePart) -> Iterator[tuple[DetectionSet, str]]:
        """The data of a sequence, and the measure of their distance."""
        rows = zip(self.tables.files, part.rows, strict=True)
        alone = {path for files, (first, end) in rows for path in files.paths[first:end]}
        is_whole = len(self.tables.sequences) == 1
        with copied(self.settings, self._paths, alone) as copies:
            here = {path for name in alone for path in copies.here(name)}
            known = self.how[0].classes if self.how is not None else class_names(self.settings)
            with nullcontext() if is_whole else only_files(here, known):
                own = copies.settings if is_whole else replace(copies.settings, sequence=())
                data, measure = placed(own, part=True)
            yield data, measure

    @cached_property
    def _paths(self) -> frozenset[str]:
        """All files that are shared out."""
        return frozenset(path for files in self.tables.files for path in files.paths)

    def elsewhere(self) -> dict[str, InputError]:
        """Sequences that the file of distances names, of which no part reads others than its own, and what to say
        where none of the parts has one; none where only some sequences are counted."""
        if self.settings.distance_file is None or self.settings.sequence:
            return {}
        with copied(self.settings, self._paths) as copies:
            errors = sequences_named(str(copies.settings.distance_file), self.settings.distance_key)
        for error in errors.values():
            error.place = replace(error.place, file=copies.told(str(error.place.file)))
        return errors


def check_alike(data: DetectionSet, measure: str, how: How, settings: CountSettings, place: Place) -> None:
    """Refuse a part that would be counted by another rule if it were alone, as far as it says so; InputError."""
    rule, policy = how
    own = matching_policy(settings, default_policy(data))
    has = len(data.annotations) > 0 and len(data.detections) > 0
    if (has and (measure, own) != (rule.measure, policy)) or (
        len(data.detections) and own.ignore_overlap != policy.ignore_overlap
    ):
        raise InputError(
            "other boxes, distances or regions than in the parts before, which would be matched by another rule",
            place,
            "name --distance, --affinity and --ignore-overlap",
        )
    unknown = [name for name in data.classes if name not in rule.classes]
    if unknown and settings.classes is None:
        message = f"classes that the parts before do not have: {', '.join(unknown)}"
        raise InputError(message, place, "name all: --classes NAME,NAME, or a class map")


def drives_of_parts(settings: CountSettings) -> DriveTable | None:
    """What sequences are put together by; VerifierError where it, or another choice, is not of parts."""
    if settings.stream or settings.record is not None:
        raise UsageError("--stream and --record in parts are of Parquet tables (--format table)")
    if is_address(settings.depth_folder):
        raise UsageError("--depth-folder in parts is a folder that every worker sees, not one of a store")
    table = None if settings.groups is None else read_drives(settings.groups)
    if table is not None and table.of == "frame":
        raise UsageError("drives by frame do not go with counting in parts: --groups needs 'sequence,drive'")
    return table


def counted_part(
    data: DetectionSet, rule: CountingRule, policy: MatchingPolicy, settings: CountSettings, memory: Memory | None
) -> PartCount:
    """What comes of whole sequences, or of some images, that are read and filtered; errors as counting at once."""
    if memory is not None and not len(data.annotations):  # which has tracks as others have, if only none
        no_tracks = {"track": np.zeros(0, np.int64), **data.annotations.attributes}
        data = data.change(annotations=replace(data.annotations, attributes=no_tracks))
    counted, observed = count_part(data, policy, rule, memory, settings.localisation)
    test = None if observed is None else dependence_document(data, observed, rule)
    progress = Progress(None, counted, dict(data.origin), 1)
    return PartCount(progress, tests=() if test is None else (test,))
