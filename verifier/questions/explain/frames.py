"""The frames behind the detection errors that make a requirement fail: named, and with the boxes to be drawn on them.

An error happens in many frames, and successive ones look alike. So every drive gives frames in turn, the drive with
the most of these errors first, and those of a drive lie apart. Frames without an image are passed over and counted.
"""

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.counterexamples.patterns import DetectionError
from verifier.analysis.sensitivity.occurrences import document_bins, occurrences
from verifier.base.arrays import grouped
from verifier.base.errors import InputError, Place
from verifier.base.numbers import fixed
from verifier.perception.confusion import ConfusionMatrices
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.document import read_counts
from verifier.perception.confusion.matrices import Label
from verifier.perception.confusion.record import BOX_2D, TRUE_2D, Record, read_record
from verifier.perception.settings import IMAGE_SUFFIXES
from verifier.questions.explain.explain_result import DetectionErrors, ExplainResult, Frame
from verifier.study.case import Study
from verifier.study.options import RunOptions
from verifier.study.results import RunInput

MOST_FRAMES = 5
"""Frames that are named for each type of detection error."""


@dataclass(frozen=True, eq=False)
class Traced:
    """A record of the counting, with the bins of the document that it belongs to."""

    record: Record
    bins: Bins
    file: RunInput


def read_traced(record_path: str | Path, confusion_path: str | Path, *, boxes: bool = False) -> Traced:
    """The record, with its boxes where asked for, and the bins of the document; errors as the two readers."""
    record = read_record(record_path, boxes=boxes)
    with Path(record_path).open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return Traced(record, read_counts(confusion_path).bins, RunInput.of("record", str(record_path), digest))


def with_frames(
    counted: DetectionErrors,
    report: DetectionError,
    matrices: ConfusionMatrices,
    options: RunOptions,
    traced: Traced | None,
) -> DetectionErrors:
    """The kind with the frames in which it happened, where there is a record that can tell."""
    if traced is None:
        return counted
    record = traced.record
    rows = rows_behind(
        report.bin, matrices.labels[report.true], matrices.labels[report.predicted], matrices, options, traced
    )
    if len(rows) > counted.items:
        raise InputError(
            f"true label {counted.true} is reported as {counted.reported} {len(rows)} times in bin "
            f"{matrices.bin_text(report.bin)}, and {counted.items} times in the matrices",
            Place(record.file),
            "name the record of the counting that gave these matrices",
        )
    return replace(counted, in_record=len(rows), frames=tuple(_frame(record, row) for row in rows[:MOST_FRAMES]))


def _frame(record: Record, row: NDArray[np.int64]) -> Frame:
    distance = float(record["distance_m"][row])
    return Frame(
        str(record["sequence"][row]),
        str(record["frame"][row]),
        None if math.isnan(distance) else distance,
        short_path(str(record["file"][row])),
        int(record["line"][row]),
        short_path(str(record["report_file"][row])),
        int(record["report_line"][row]),
    )


def rows_behind(
    place: int, true: Label, predicted: Label, matrices: ConfusionMatrices, options: RunOptions, traced: Traced
) -> NDArray[np.int64]:
    """The rows of a record that name the items of a cell: of the bin `place` of the matrices and two labels."""
    at = np.unravel_index(place, matrices.shape)
    kept = {variable.name: variable.bin_text(int(k)) for variable, k in zip(matrices.variables, at[1:], strict=True)}
    return occurrences(
        traced.record,
        traced.bins,
        document_bins(traced.bins, {**options.where, **kept}, None if options.canonical else int(at[0])),
        true,
        predicted,
        matrices.labelling,
        matrices.classes,
        -math.inf if options.score_threshold is None else options.score_threshold,
    )


@dataclass(frozen=True)
class Mark:
    """A box on a frame: `truth` for an annotated object, else a detection; `behind` of an error of the cell.

    `box` is left, top, right, bottom in pixels; `name` the class, of a detection with its score.
    """

    box: tuple[float, float, float, float]
    name: str
    label: str
    truth: bool
    behind: bool


@dataclass(frozen=True)
class Shot:
    """A frame with its image, its boxes, and a sentence for each error of the cell in it."""

    drive: str
    frame: str
    image: Path
    marks: tuple[Mark, ...]
    errors: tuple[str, ...]


@dataclass(frozen=True)
class CellSheet:
    """The frames of one type of detection error.

    Attributes:
        error: as the explanation has it.
        behind: (requirement, planner, share of the violation whose cause includes it) of each.
        drives: (drive, number of these errors), most first.
        frames: in which it happened; with_image: of these, with an image.
        shots: those that are shown, drive by drive.
    """

    error: DetectionErrors
    behind: tuple[tuple[str, str, float], ...]
    drives: tuple[tuple[str, int], ...]
    frames: int
    with_image: int
    shots: tuple[Shot, ...]


def cell_sheets(
    result: ExplainResult, study: Study, traced: Traced, folder: str | Path, most: int
) -> tuple[CellSheet, ...]:
    """The sheets of all types of detection errors of an explanation, in the order of their causes.

    Args:
        result, study: the explanation, and what it is of.
        traced: the record of the counting, with its boxes.
        folder: in which the images lie: that of the frame NAME is .../NAME, or NAME with an ending.
        most: frames that are shown of each type.

    Raises:
        InputError: no folder, no image of any of these frames, or two of one frame; UsageError as `image_files`.
    """
    images = _images(folder)
    record = traced.record
    rows_with_frames = enumerate(record["frame"].tolist())
    of_frame = grouped((frame, row) for row, frame in rows_with_frames if record["kind"][row] != "frame")
    label = dict(zip(result.labels, study.matrices.labels, strict=True))
    sheets = []
    for error, behind in _cells(result):
        rows = rows_behind(
            error.bin, label[error.true], label[error.reported], study.matrices, study.options, traced
        ).tolist()
        drives: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for row in rows:
            drives[record["drive"][row]][record["frame"][row]].append(row)
        counts = {drive: sum(map(len, frames.values())) for drive, frames in drives.items()}
        ordered = tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
        shown = {
            drive: [frame for frame in drives[drive] if _image(images, frame, folder) is not None]
            for drive, _ in ordered
        }
        shots = tuple(
            Shot(
                drive,
                frame,
                image,
                tuple(_marks(record, of_frame[frame], set(drives[drive][frame]))),
                tuple(_told(record, row) for row in drives[drive][frame]),
            )
            for drive, frame in _chosen(shown, most)
            if (image := _image(images, frame, folder)) is not None
        )
        frames = sum(map(len, drives.values()))
        sheets.append(CellSheet(error, behind, ordered, frames, sum(map(len, shown.values())), shots))
    if any(sheet.frames for sheet in sheets) and not any(sheet.shots for sheet in sheets):
        example = next(record["frame"][row] for row in range(len(record)) if record["kind"][row] == "frame")
        hint = f"the image of the frame {example} is {example}{IMAGE_SUFFIXES[0]}, in the folder or below it"
        raise InputError("none of the frames with these errors has an image", Place(str(folder)), hint)
    return tuple(sheets)


def _cells(result: ExplainResult) -> Iterator[tuple[DetectionErrors, tuple[tuple[str, str, float], ...]]]:
    """Every type of error once, those of the greatest causes first, with whose violation it is part of."""
    cells: dict[tuple[int, str, str], tuple[DetectionErrors, dict[tuple[str, str], float]]] = {}
    for explanation in result.explanations:
        violation = explanation.violation
        for cause in violation.causes:
            for number in cause.detection_errors:
                error = violation.detection_errors[number]
                _, shares = cells.setdefault((error.bin, error.true, error.reported), (error, {}))
                key = explanation.name, explanation.planner
                shares[key] = shares.get(key, 0.0) + cause.share
    for error, shares in cells.values():
        yield error, tuple((*key, share) for key, share in shares.items())


def _chosen(frames: Mapping[str, Sequence[str]], most: int) -> Iterator[tuple[str, str]]:
    """Drives and frames to be shown: each drive gives one in turn, and those of a drive lie apart."""
    quota = dict.fromkeys(frames, 0)
    left = min(most, sum(map(len, frames.values())))
    while left:
        for drive, own in frames.items():
            if left and quota[drive] < len(own):
                quota[drive] += 1
                left -= 1
    for drive, count in quota.items():
        yield from ((drive, frames[drive][place * len(frames[drive]) // count]) for place in range(count))


def _images(folder: str | Path) -> Mapping[str, list[Path]]:
    """The images below a folder by the last part of their names, without the ending."""
    from verifier.robustness.mutators.imagefiles import image_files

    if not Path(folder).is_dir():
        raise InputError("no such folder", Place(str(folder)))
    return grouped((image_file.path.stem, image_file.path) for image_file in image_files([folder]))


def _image(images: Mapping[str, list[Path]], frame: str, folder: str | Path) -> Path | None:
    """The image of a frame: the end of its path is the frame's name; InputError where there are two."""
    name = PurePath(frame)
    ending = name.suffix.lower() in IMAGE_SUFFIXES
    parts = (*name.parent.parts, name.stem if ending else name.name)
    paths = [
        path
        for path in images.get(parts[-1], ())
        if (*path.resolve().parent.parts, path.stem)[-len(parts) :] == parts
        and (not ending or path.suffix == name.suffix)
    ]
    if len(paths) > 1:
        raise InputError(f"frame {frame} has two images, {paths[0]} and {paths[1]}", Place(str(folder)))
    return paths[0] if paths else None


def _marks(record: Record, rows: Sequence[int], behind: set[int]) -> Iterator[Mark]:
    """The boxes of a frame, those of the errors last, so that they lie on top."""
    for row in sorted(rows, key=lambda row: row in behind):
        for names, truth, label in ((TRUE_2D, True, "true"), (BOX_2D, False, "predicted")):
            box = tuple(float(record[name][row]) for name in names)
            if math.isnan(box[0]):
                continue
            kind, score = str(record[label][row]), float(record["score"][row])
            name = kind if truth or math.isnan(score) else f"{kind} {fixed(score, 2)}"
            yield Mark((box[0], box[1], box[2], box[3]), name, kind, truth, row in behind)


def _told(record: Record, row: int) -> str:
    """What happened in a row of the record, and where that is written."""
    distance = float(record["distance_m"][row])
    where = "" if math.isnan(distance) else f" at {fixed(distance, 1)} m"
    of = "" if record["file"][row] else "report_"
    file = short_path(str(record[f"{of}file"][row]))
    return f"{record['true'][row]}{where} reported as {record['predicted'][row]} ({file}:{record[f'{of}line'][row]})"


def short_path(path: str) -> str:
    """A file and its folder: enough to find it, and the same wherever the data lie."""
    return "/".join(PurePath(path).parts[-2:])
