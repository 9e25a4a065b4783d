"""The logs of `verify closed-loop`: from folders of tables, or made from the files of three data sets."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from verifier.base.errors import UsageError, shown
from verifier.closedloop.cutting import in_view, positive_by_path, windows
from verifier.closedloop.drawn import Drawing, drawn_detections
from verifier.closedloop.logfiles import read_logs
from verifier.closedloop.logs import Logs
from verifier.closedloop.plausible import LogLimits
from verifier.closedloop.readers import fieldsafe_logs, kitti_tracking_logs, nuscenes_logs
from verifier.closedloop.settings import DRAWN, SELF, ClosedLoopSettings
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.document import read_counts

TABLES = ("logs.*", "images.*", "people.*", "remarks.txt", "detections/*")
EVERY, VIEW_DEG = 5, 45.0
UNITS = {"window": "s", "longest_gap": "s", "field_of_view": "deg", "range": "m", "position_error": "m"}
UNITS |= {"speed": "mps", "greatest_speed": "mps"}
PAIRED = "all sources are drawn from the same random numbers, so that they differ by their counts alone"
ANEW = "detections drawn anew on the same drive, from other random numbers"


@dataclass(frozen=True)
class InputFile:
    """A file that logs are read from: what for, its name without the folders above, and where it is."""

    role: str
    name: str
    path: Path

    def record(self) -> dict[str, str]:
        """What a result says of it."""
        with self.path.open("rb") as stream:
            return {"role": self.role, "name": self.name, "sha256": hashlib.file_digest(stream, "sha256").hexdigest()}


def input_files(arguments: ClosedLoopSettings) -> list[InputFile]:
    """Every file that the logs are read from; what is missing is left for the readers to say."""
    found: list[InputFile] = []
    if arguments.format == "tables":
        found += _of_folder("logs", arguments.logs)
    else:
        found += _below("logs", arguments.logs)
        for path in named_paths("--detections", arguments.detections).values():
            found += _below("detections", path)
        for path in named_paths("--cm", arguments.cm).values():
            found += _below("confusion", path)
        for role in ("frames", "positions", "matrix"):
            if getattr(arguments, role):
                found += _below(role, getattr(arguments, role))
    if arguments.validation not in (SELF, DRAWN):
        found += _of_folder("validation", arguments.validation)
    return list(dict.fromkeys(found))


def given_logs(arguments: ClosedLoopSettings) -> tuple[Logs, Logs | None]:
    """The logs to judge by, and those that standardize the scores; None where they are the same.

    Raises:
        UsageError, InputError: as the readers.
    """
    apart = None if arguments.validation in (SELF, DRAWN) else read_logs(arguments.validation, _limits(arguments))
    if arguments.format == "tables":
        return read_logs(arguments.logs, _limits(arguments)), apart
    drive = _read(arguments)
    if arguments.format == "fieldsafe":
        counts = {name: read_counts(path) for name, path in named_paths("--cm", arguments.cm).items()}
        if arguments.validation == DRAWN:
            apart = _drawn(replace(drive, remarks=(*drive.remarks, ANEW)), counts, arguments, 1)
        drive = _drawn(drive, counts, arguments, 0)
    if arguments.window is not None:
        drive = windows(drive, arguments.window)
    return positive_by_path(drive, arguments.control_radius), apart


def data_record(arguments: ClosedLoopSettings) -> dict[str, Any]:
    """The choices about the data that can change a number, by name."""
    validation = arguments.validation if arguments.validation in (SELF, DRAWN) else "other"
    record: dict[str, Any] = {"format": arguments.format, "validation": validation}
    for name, value in arguments.of_formats.items():
        if name not in ("frames", "positions", "matrix"):
            own = f"{name}_{UNITS[name]}" if name in UNITS else name
            record[own] = list(named_paths("", value)) if name in ("detections", "cm") else value
    if arguments.format == "fieldsafe":
        record |= {"every": arguments.every or EVERY, "field_of_view_deg": arguments.field_of_view or VIEW_DEG}
    return record


def named_paths(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Name -> path; without a name that of the file.

    Raises:
        UsageError: a name or path is empty, a name is given twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals:
            name, path = Path(text).stem, text
        if not name.strip() or not path:
            raise UsageError(f"{option}: expected FILE or NAME=FILE, got {shown(text)}")
        if name.strip() in found:
            raise UsageError(f"{option}: {shown(name)} is given twice")
        found[name.strip()] = path
    return found


def _read(arguments: ClosedLoopSettings) -> Logs:
    """The drives of another format, with what is looked at."""
    people: dict[str, Any] = {"people": arguments.people} if arguments.people else {}
    sources = named_paths("--detections", arguments.detections)
    if arguments.format == "nuscenes":
        logs = nuscenes_logs(arguments.logs, sources, ignore=arguments.ignore, limits=_limits(arguments), **people)
    elif arguments.format == "kitti_tracking":
        chosen = arguments.logs, sources, arguments.speed or 0.0, arguments.frames, arguments.sequence or None
        logs = kitti_tracking_logs(*chosen, ignore=arguments.ignore, **people)
    else:
        files = arguments.logs, arguments.positions, arguments.matrix
        logs = fieldsafe_logs(*files, every=arguments.every or EVERY, limits=_limits(arguments))
    angle = _view_deg(arguments)
    if angle is None and arguments.range is None:
        return logs
    return in_view(logs, math.radians(angle or 180.0), arguments.range or math.inf)


def _view_deg(arguments: ClosedLoopSettings) -> float | None:
    """Half the angle of the field of view; None for all around."""
    if arguments.field_of_view is None:
        return VIEW_DEG if arguments.format == "fieldsafe" else None
    return None if arguments.field_of_view == 180 else float(arguments.field_of_view)


def _limits(arguments: ClosedLoopSettings) -> LogLimits:
    usual = LogLimits()
    return LogLimits(
        usual.longest_gap_s if arguments.longest_gap is None else arguments.longest_gap,
        usual.greatest_speed_mps if arguments.greatest_speed is None else arguments.greatest_speed,
    )


def _drawn(logs: Logs, counts: Mapping[str, ConfusionCounts], arguments: ClosedLoopSettings, stream: int) -> Logs:
    """The logs with a source per confusion file, all from the same random numbers, so that they differ by no luck."""
    angle = math.radians(_view_deg(arguments) or 180.0)
    drawing = Drawing(angle, arguments.position_error or 0.0, empty_columns=arguments.empty_columns or "error")
    if len(counts) > 1:
        logs = replace(logs, remarks=(*logs.remarks, PAIRED))
    for name, each in counts.items():
        rng = np.random.default_rng([arguments.seed, stream])
        logs = drawn_detections(logs, each, _class_of(arguments, name, each), rng, name, drawing)
    return logs


def _class_of(arguments: ClosedLoopSettings, name: str, counts: ConfusionCounts) -> str:
    if arguments.person is not None:
        return arguments.person
    known = sorted(frozenset().union(*counts.labels))
    if len(known) != 1:
        raise UsageError(f"--cm {name}: say which class are people: --class NAME; it has {', '.join(known)}")
    return known[0]


def _of_folder(role: str, folder: str) -> Iterator[InputFile]:
    """The tables of a folder of logs."""
    root = Path(folder)
    for pattern in TABLES:
        for path in sorted(root.glob(pattern)):
            if path.is_file():
                yield InputFile(role, path.relative_to(root).as_posix(), path)


def _below(role: str, path: str) -> Iterator[InputFile]:
    """A file, or the text files in a folder."""
    target = Path(path)
    if target.is_file():
        yield InputFile(role, target.name, target)
    elif target.is_dir():
        for each in sorted(target.rglob("*.txt")):
            if each.is_file():
                yield InputFile(role, f"{target.resolve().name}/{each.relative_to(target).as_posix()}", each)
