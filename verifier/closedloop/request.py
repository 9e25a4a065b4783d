"""What `verify closed-loop` is asked for: the logs that its choices name, and everything found in them.

What `verify robroc` is asked for: curves of files, or verified ones, and their worst case over conditions.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from verifier.base.blocks import HERE, Pool
from verifier.base.errors import UsageError, shown, unknown_error
from verifier.base.files import hashes_of_files, named_files, read_bytes
from verifier.base.libraries import own_versions
from verifier.base.result import recorded
from verifier.closedloop.comparison import compare
from verifier.closedloop.curvefiles import read_curves
from verifier.closedloop.cutting import in_view, positive_by_path, windows
from verifier.closedloop.fieldsafe import Drawing, drawn_detections, fieldsafe_logs
from verifier.closedloop.from_sets import Placing, kitti_tracking_logs, nuscenes_logs
from verifier.closedloop.logfiles import read_logs
from verifier.closedloop.logs import LogLimits, Logs
from verifier.closedloop.pathifier import PathSettings
from verifier.closedloop.settings import DRAWN, SELF, ClosedLoopSettings, RobrocSettings
from verifier.closedloop.study import Progress, study, study_trace
from verifier.closedloop.study_settings import StudySettings, study_settings
from verifier.closedloop.traces import Trace
from verifier.closedloop.trade_offs import CurveSet, TradeOffInput, TradeOffs
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.document import read_counts
from verifier.perception.detections.depth import UNITS_PER_M

if TYPE_CHECKING:
    from verifier.closedloop.verified_curves import Progress as FamilyProgress


def trade_offs(settings: ClosedLoopSettings, progress: Progress = iter) -> TradeOffs:
    """Everything that `verify closed-loop` finds.

    Args:
        settings: every choice; outputs that they name are not written.
        progress: wraps the list of sources, for a progress bar.

    Raises:
        VerifierError: see `verifier.base.errors`; each says what to do.
    """
    with Pool(settings.scheduler) as pool:
        return ClosedLoopRequest(settings).trade_offs(progress, pool)


class ClosedLoopRequest:
    """A study that settings ask for, step by step: its choices are checked at once, its logs read when asked for.

    Attributes:
        settings: every choice, as it was made.
        study: the choices of the study itself.

    Raises:
        UsageError: as `verifier.closedloop.study_settings.study_settings`.
    """

    def __init__(self, settings: ClosedLoopSettings) -> None:
        self.settings = settings
        self.study = study_settings(settings)

    @cached_property
    def files(self) -> tuple[ListedFile, ...]:
        """Every file that the logs are read from; listed once."""
        return tuple(input_files(self.settings))

    @cached_property
    def data(self) -> tuple[Logs, Logs | None]:
        """The logs to judge by, and those that standardize the scores, None where they are the same; read once.

        Raises:
            UsageError, InputError: as `logs_and_validation`; or matching asks for rectangles that the logs have not.
        """
        return self._read[:2]

    @cached_property
    def _read(self) -> tuple[Logs, Logs | None, tuple[TradeOffInput, ...]]:
        """As `data`, with the files as they were when they were read; one that no reader opened as it is now."""
        files = self.files
        with hashes_of_files() as hashes:
            logs, validation = logs_and_validation(self.settings)
            for file in files:
                if os.path.realpath(file.path) not in hashes:
                    read_bytes(file.path)
        _check_rectangles(logs, self.settings)
        inputs = (TradeOffInput(file.role, file.name, hashes[os.path.realpath(file.path)]) for file in files)
        return logs, validation, tuple(inputs)

    def trace(self) -> Trace | None:
        """The steps of the run that the settings name, None where they name none; see `study_trace`."""
        return None if self.settings.trace is None else _trace(self.settings.trace[0], *self.data, self.study)

    def trade_offs(self, progress: Progress = iter, pool: Pool = HERE) -> TradeOffs:
        """Everything found; see the function of this name."""
        logs, validation, files = self._read
        studied = study(logs, validation, self.study, progress, pool)
        title = f"{Path(self.settings.logs).resolve().name}: {', '.join(studied.tables[0].detectors)}"
        chosen = {**data_record(self.settings), **studied.settings}
        return replace(studied, title=title, inputs=files, settings=chosen)


def _check_rectangles(logs: Logs, settings: ClosedLoopSettings) -> None:
    """Refuse to match by rectangles what has none; UsageError."""
    if settings.match_distance is None and logs.person_box_2d is None and len(logs.person_image):
        raise UsageError(
            "these logs have no rectangles in the image: say from which distance on the ground on a detection "
            "matches a person, --match-distance M"
        )


def _trace(run: str, logs: Logs, validation: Logs | None, study: StudySettings) -> Trace:
    """The steps of one run, LOG,SOURCE,SENSITIVITY or LOG,truth."""
    refusal = UsageError(f"--trace: expected LOG,SOURCE,SENSITIVITY or LOG,truth, got {shown(run)}")
    log, comma, last = run.rpartition(",")
    if last == "truth" and comma:
        return study_trace(logs, validation, study, log, None, None)
    log, comma, source = log.rpartition(",")
    try:
        level = float(last)
    except ValueError:
        raise refusal from None
    if not comma or not level >= 0:
        raise refusal
    return study_trace(logs, validation, study, log, source, level)


TABLES = ("logs.*", "images.*", "people.*", "remarks.txt", "detections/*")
EVERY, VIEW_DEG = 5, 45.0
UNITS = {"window": "s", "longest_gap": "s", "field_of_view": "deg", "range": "m", "position_error": "m"}
UNITS |= {"speed": "mps", "greatest_speed": "mps"}
PAIRED = "all sources are drawn from the same random numbers, so that they differ by their counts alone"
REDRAWN = "detections drawn independently on the same drive, from other random numbers"


@dataclass(frozen=True)
class ListedFile:
    """A file that logs are read from: what for, its name without the folders above, and where it is."""

    role: str
    name: str
    path: Path


def input_files(settings: ClosedLoopSettings) -> list[ListedFile]:
    """Every file that the logs are read from; what is missing is left for the readers to say."""
    files: list[ListedFile] = []
    if settings.format == "tables":
        files += _of_folder("logs", settings.logs)
    else:
        files += _below("logs", settings.logs)
        for path in named_files("--detections", settings.detections).values():
            files += _below("detections", path)
        for path in named_files("--cm", settings.cm).values():
            files += _below("confusion", path)
        for role in ("frames", "positions", "matrix", "calibration"):
            if getattr(settings, role):
                files += _below(role, getattr(settings, role))
        if settings.depth_folder:
            files += _below("depth", settings.depth_folder, (".npy", ".png"))
    if settings.validation not in (SELF, DRAWN):
        files += _of_folder("validation", settings.validation)
    return list(dict.fromkeys(files))


def logs_and_validation(settings: ClosedLoopSettings) -> tuple[Logs, Logs | None]:
    """The logs to judge by, and those that standardize the scores; None where they are the same.

    Raises:
        UsageError, InputError: as the readers.
    """
    apart = None if settings.validation in (SELF, DRAWN) else read_logs(settings.validation, _limits(settings))
    if settings.format == "tables":
        return read_logs(settings.logs, _limits(settings)), apart
    drive = _read(settings)
    if settings.format == "fieldsafe":
        counts = {name: read_counts(path) for name, path in named_files("--cm", settings.cm).items()}
        if settings.validation == DRAWN:
            apart = _drawn(replace(drive, remarks=(*drive.remarks, REDRAWN)), counts, settings, 1)
        drive = _drawn(drive, counts, settings, 0)
    if settings.window is not None:
        drive = windows(drive, settings.window)
    if settings.asks_for_radii:
        drive = positive_by_path(drive, settings.control_radius, PathSettings(settings.path_extension))
    return drive, apart


def data_record(settings: ClosedLoopSettings) -> dict[str, object]:
    """The choices about the data that can change a number, by name."""
    validation = settings.validation if settings.validation in (SELF, DRAWN) else "other"
    record: dict[str, object] = {"format": settings.format, "validation": validation}
    for name, value in settings.of_formats.items():
        if name not in ("frames", "positions", "matrix", "calibration", "depth_folder"):
            own = f"{name}_{UNITS[name]}" if name in UNITS else name
            record[own] = list(named_files("", value)) if name in ("detections", "cm") else value
    if settings.format == "fieldsafe":
        record |= {"every": settings.every or EVERY, "field_of_view_deg": settings.field_of_view or VIEW_DEG}
    return record


def _read(settings: ClosedLoopSettings) -> Logs:
    """The drives of another format, with what is looked at."""
    people: dict[str, Any] = {"people": settings.people} if settings.people else {}
    sources = named_files("--detections", settings.detections)
    if settings.format == "nuscenes":
        logs = nuscenes_logs(settings.logs, sources, ignore=settings.ignore, limits=_limits(settings), **people)
    elif settings.format == "kitti_tracking":
        speed = settings.speed if settings.asks_for_positions else None
        chosen = settings.logs, sources, speed, settings.frames, settings.sequence or None
        placed = Placing(settings.calibration, settings.depth_folder, settings.depth_scale or UNITS_PER_M)
        where = placed if settings.calibration else None
        logs = kitti_tracking_logs(*chosen, ignore=settings.ignore, placing=where, **people)
    else:
        files = settings.logs, settings.positions, settings.matrix
        logs = fieldsafe_logs(*files, every=settings.every or EVERY, limits=_limits(settings))
    angle = _view_deg(settings)
    if angle is None and settings.range is None:
        return logs
    return in_view(logs, math.radians(angle or 180.0), settings.range or math.inf)


def _view_deg(settings: ClosedLoopSettings) -> float | None:
    """Half the angle of the field of view; None for all around."""
    if settings.field_of_view is None:
        return VIEW_DEG if settings.format == "fieldsafe" else None
    return None if settings.field_of_view == 180 else float(settings.field_of_view)


def _limits(settings: ClosedLoopSettings) -> LogLimits:
    usual = LogLimits()
    return LogLimits(
        usual.longest_gap_s if settings.longest_gap is None else settings.longest_gap,
        usual.greatest_speed_mps if settings.greatest_speed is None else settings.greatest_speed,
    )


def _drawn(logs: Logs, counts: Mapping[str, ConfusionCounts], settings: ClosedLoopSettings, stream: int) -> Logs:
    """The logs with a source per confusion file, all from the same random numbers, so that they differ by no luck."""
    angle = math.radians(_view_deg(settings) or 180.0)
    drawing = Drawing(angle, settings.position_error or 0.0, empty_columns=settings.empty_columns or "error")
    if len(counts) > 1:
        logs = replace(logs, remarks=(*logs.remarks, PAIRED))
    for name, table in counts.items():
        rng = np.random.default_rng([settings.seed, stream])
        logs = drawn_detections(logs, table, _class_of(settings, name, table), rng, name, drawing)
    return logs


def _class_of(settings: ClosedLoopSettings, name: str, counts: ConfusionCounts) -> str:
    if settings.person is not None:
        return settings.person
    known = sorted(frozenset().union(*counts.labels))
    if len(known) != 1:
        raise UsageError(f"--cm {name}: say which class are people: --class NAME; it has {', '.join(known)}")
    return known[0]


def _of_folder(role: str, folder: str) -> Iterator[ListedFile]:
    """The tables of a folder of logs."""
    root = Path(folder)
    for pattern in TABLES:
        for path in sorted(root.glob(pattern)):
            if path.is_file():
                yield ListedFile(role, path.relative_to(root).as_posix(), path)


def _below(role: str, path: str, endings: tuple[str, ...] = (".txt",)) -> Iterator[ListedFile]:
    """A file, or those with such an ending in a folder."""
    target = Path(path)
    if target.is_file():
        yield ListedFile(role, target.name, target)
    elif target.is_dir():
        for file in sorted(target.rglob("*")):
            if file.is_file() and file.suffix in endings:
                yield ListedFile(role, f"{target.resolve().name}/{file.relative_to(target).as_posix()}", file)


def robroc_result(settings: RobrocSettings, progress: FamilyProgress = iter) -> TradeOffs:
    """Everything that `verify robroc` finds.

    Args:
        settings: every choice; outputs that they name are not written.
        progress: wraps the list of matrices that curves are verified with, for a progress bar.

    Raises:
        VerifierError: see `verifier.base.errors`; each says what to do.
    """
    families = matrix_families(settings)
    if not families:
        return _trade_offs(settings, _curves_of_files(settings.files))
    from verifier.closedloop.verified_curves import verified_curves  # Storm is loaded only where it is asked

    return _trade_offs(settings, verified_curves(settings, families, progress))


def matrix_families(settings: RobrocSettings) -> dict[str, str]:
    """Name -> file of each family of confusion matrices; empty where curves are read.

    Raises:
        UsageError: the settings name both or neither, or not all that verified curves need.
    """
    if bool(settings.files) == bool(settings.spec):
        raise UsageError("name files of curves, or --spec with --safety, --progress and --cm")
    families = named_files("--cm", settings.cm)
    if families and not settings.spec:
        raise UsageError("--cm belongs to --spec")
    if settings.spec and not (families and settings.safety and settings.progress):
        raise UsageError("--spec needs --safety NAME, --progress NAME and at least one --cm FILE")
    return families


def _curves_of_files(paths: Sequence[str]) -> CurveSet:
    files = [read_curves(path) for path in paths]
    names = [PurePath(file.name).name for file in files]
    return CurveSet(
        next((file.title for file in files if file.title), ", ".join(names)),
        [curve for file in files for curve in file.curves],
        tuple(TradeOffInput("curves", name, file.sha256) for name, file in zip(names, files, strict=True)),
        own_versions(),
        remarks=tuple(
            f"{name}: {remark}" for name, file in zip(names, files, strict=True) for remark in file.remarks
        ),
    )


def _trade_offs(settings: RobrocSettings, curve_set: CurveSet) -> TradeOffs:
    named, more = settings.severity, settings.group
    known = {curve.condition for curve in curve_set.curves}
    for name in named:
        if name not in known:
            raise unknown_error("condition", name, known, before="severity: ")
    judged = [replace(curve, severity=named.get(curve.condition, curve.severity)) for curve in curve_set.curves]
    metrics = dict.fromkeys(curve.metric for curve in judged)
    chosen = {"severities": dict(named), "groups": {name: list(conditions) for name, conditions in more.items()}}
    tables = tuple(compare([curve for curve in judged if curve.metric == metric], more) for metric in metrics)
    return recorded(TradeOffs, curve_set, settings={**curve_set.settings, **chosen}, tables=tables)
