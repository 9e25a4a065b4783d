"""From the rows a reader found to a checked `DetectionSet`: the same steps for all formats, in one place.

A reader hands over frames, rows of objects, and where they come from. Faults that every format can have are errors
with file and line, or ignored by name and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, check_known, shown, unknown_name
from verifier.perception.detections import sources
from verifier.perception.detections.classmap import DONT_CARE, IGNORE, classes_of_others
from verifier.perception.detections.columns import (
    ANY_CLASS,
    UNKNOWN_FRAME,
    Boxes,
    Coded,
    DetectionSet,
    Frames,
    LookedUp,
    faulty_boxes,
    ignore_hint,
    ledger,
    no_boxes,
    repeated,
)
from verifier.perception.detections.sources import Elements, Reading


@dataclass(frozen=True, eq=False)
class Rows:
    """Objects as a reader found them.

    `frame` (n,) is an index into the frames, `UNKNOWN_FRAME` where there is no such frame, and `frame_text` says
    what stood there; `label` (n,) is an index into `names`, the class names of the data set. `line` (n,) is as in
    `Boxes`, `file` (n,) an index into `files`; `pointer` names a row by its JSON pointer where lines say nothing.
    Values may still be faulty. `no_box_2d` and `no_box_3d` (n,) mark the objects that may have no such box (a row of
    NaN); None: none may. `region` (n,) marks annotations that the data set itself says not to judge; `any_class` (n,)
    those among them that name no class.
    """

    frame: NDArray[np.int64]
    label: NDArray[np.int64]
    names: tuple[str, ...]
    line: NDArray[np.int64]
    file: NDArray[np.int32]
    files: tuple[str, ...]
    frame_text: Callable[[int], str]
    score: NDArray[np.float64] | None = None
    box_2d: NDArray[np.float64] | None = None
    box_3d: NDArray[np.float64] | None = None
    distance_m: NDArray[np.float64] | None = None
    attributes: Mapping[str, NDArray[Any]] | None = None
    no_box_2d: NDArray[np.bool_] | None = None
    no_box_3d: NDArray[np.bool_] | None = None
    region: NDArray[np.bool_] | None = None
    any_class: NDArray[np.bool_] | None = None
    pointer: Callable[[int], str] | None = None

    @classmethod
    def of(cls, items: Elements, frames: LookedUp, classes: Coded, **columns: Any) -> Rows:
        """The elements of a JSON file, in these frames and of these classes; with further `columns`."""
        line, file = np.arange(1, len(items) + 1), np.zeros(len(items), np.int32)
        return cls(frames[0], *classes, line, file, (items.file,), frames[1], pointer=items.pointer, **columns)

    def __len__(self) -> int:
        return len(self.frame)

    def take(self, rows: NDArray[Any]) -> Rows:
        """The rows of a mask or of indices, in that order."""
        chosen = np.arange(len(self))[rows]
        columns: dict[str, Any] = {
            name: value[rows] for name, value in vars(self).items() if isinstance(value, np.ndarray)
        }
        columns["attributes"] = {name: value[rows] for name, value in (self.attributes or {}).items()}
        columns["frame_text"] = lambda row: self.frame_text(int(chosen[row]))
        if (pointer := self.pointer) is not None:
            columns["pointer"] = lambda row: pointer(int(chosen[row]))
        return replace(self, **columns)

    def place(self, row: int) -> Place:
        """Where a row stands, for a message."""
        file = self.files[int(self.file[row])]
        if self.pointer is not None:
            return Place(file, path=self.pointer(row))
        return Place(file, int(self.line[row]))


LISTING = "--frames FILE lists every frame, also empty ones; "
BOX_PARTS = {4: "left, top, right, bottom", 7: "x, y, z, length, width, height, yaw in the ego frame"}


@dataclass(frozen=True)
class Checks:
    """Checks rows, and counts in `counts` what is left out by each kind of fault.

    `frames` are the names of all frames, none where there are more; `unlisted` says that they could be listed in a
    file and are not.
    """

    reading: Reading
    counts: Counter[str]
    frames: tuple[str, ...] = ()
    unlisted: bool = False

    def rows(self, rows: Rows, kind: str) -> Rows:
        """The rows that pass; the first that does not, or all in other frames, is an error unless that is ignored."""
        unknown = rows.frame == UNKNOWN_FRAME
        if self.frames and len(rows) > 1 and unknown.all() and "unknown_frames" not in self.reading.ignore:
            raise InputError(
                f"the frames do not match: none of {len(rows)} {kind}s stands in a frame of the ground truth; "
                f"the first stands in {rows.frame_text(0)}, the first frame there is {shown(self.frames[0])}",
                rows.place(0),
                "name annotations and detections of the same frames, by the same names; "
                "--match-frames stem where only folder, suffix or zeros differ",
            )
        rows = self.without(
            rows,
            unknown,
            "unknown_frames",
            lambda row: f"{kind} in {rows.frame_text(row)}, which is not among the frames of the ground truth",
        )
        rows = self._sound(rows, kind)
        return self._plausible(rows, kind)

    def _sound(self, rows: Rows, kind: str) -> Rows:
        for name in ("score", "distance_m"):
            values = getattr(rows, name)
            if values is not None:
                bad = np.isinf(values) | (np.isnan(values) if name == "score" else values < 0)
                rows = self.without(rows, bad, "faulty_boxes", _value_text(kind, name, values))
        for name in [name for name, values in (rows.attributes or {}).items() if values.dtype.kind != "U"]:
            values = (rows.attributes or {})[name]
            rows = self.without(rows, np.isinf(values), "faulty_boxes", _value_text(kind, name, values))
        for name in ("box_2d", "box_3d"):
            box = getattr(rows, name)
            if box is not None:
                absent = getattr(rows, f"no_{name}")
                bad = faulty_boxes(box)
                if np.isnan(box).any():
                    bad |= np.isnan(box).all(axis=1) & (True if absent is None else ~absent)
                rows = self.without(rows, bad, "faulty_boxes", _box_text(f"{kind} with {name}", box))
        return rows

    def _plausible(self, rows: Rows, kind: str) -> Rows:
        if rows.box_3d is not None:
            with np.errstate(over="ignore"):
                reach = np.sqrt(sum(axis * axis for axis in rows.box_3d[:, :3].T))
            rows = self._beyond(rows, kind, reach, sources.REACH_M, "{:g} m away; are these metres in the ego frame?")
        if rows.box_3d is not None:
            size = np.maximum.reduce(list(rows.box_3d[:, 3:6].T))
            rows = self._beyond(rows, kind, size, sources.SIZE_M, "{:g} m large; are these metres?")
        if rows.box_3d is not None:
            turn = np.abs(rows.box_3d[:, 6])
            rows = self._beyond(rows, kind, turn, sources.TURN_RAD, "turned by {:g} rad; are these degrees?")
        if rows.distance_m is not None:
            rows = self._beyond(rows, kind, rows.distance_m, sources.REACH_M, "{:g} m away; are these metres?")
        if rows.score is not None:
            size = np.abs(rows.score)
            rows = self._beyond(rows, kind, size, sources.SCORE, "with a score of size {:g}; is it one?")
        if rows.box_2d is not None:
            rows = self._pixels(rows, kind, rows.box_2d)
        return rows

    def _pixels(self, rows: Rows, kind: str, box: NDArray[np.float64]) -> Rows:
        reach = np.maximum.reduce(list(np.abs(box).T))
        known = ~np.isnan(reach)
        if known.any() and reach[known].max() <= 1.5:
            message = f"{kind} within 1.5 pixels of the corner, as is every other; are these fractions of the image?"
            return self.without(rows, known, "implausible_boxes", lambda _: message)
        return self._beyond(rows, kind, reach, sources.PIXELS, "at {:g} pixels; are these pixels?")

    def _beyond(self, rows: Rows, kind: str, value: NDArray[np.float64], limit: float, text: str) -> Rows:
        return self.without(
            rows, value > limit, "implausible_boxes", lambda row: f"{kind} " + text.format(value[row])
        )

    def targets(self, rows: Rows, kind: str, known: tuple[str, ...] | None) -> list[str | None]:
        """What each class name of `rows` becomes; None for a name that is unknown and ignored."""
        class_map = self.reading.class_map
        if class_map is not None:
            targets = [class_map.target(name) for name in rows.names]
        else:
            targets = [name if known is None or name in known else None for name in rows.names]
        unknown = np.array([target is None for target in targets], dtype=bool)
        bad = unknown[rows.label]
        if rows.any_class is not None:
            bad &= ~rows.any_class
        self.without(rows, bad, "unknown_classes", lambda row: self._unknown_class(rows, row, known, kind))
        return targets

    def _unknown_class(self, rows: Rows, row: int, known: tuple[str, ...] | None, kind: str) -> str:
        name = rows.names[int(rows.label[row])]
        if known is None:
            return f"{kind} of class {shown(name)}, which no rule of the class map fits"
        message, hint = unknown_name("class", name, known)
        return f"{message} of {'an' if kind[0] == 'a' else 'a'} {kind}; {hint}"

    def without(self, rows: Rows, bad: NDArray[np.bool_], fault: str, message: Callable[[int], str]) -> Rows:
        """The rows that are not `bad`; an error unless that kind of fault is ignored."""
        if not bad.any():
            return rows
        if fault not in self.reading.ignore:
            row = int(bad.argmax())
            others = int(bad.sum()) - 1
            more = f" (and {others} more like it)" if others else ""
            listing = LISTING if self.unlisted and fault == "unknown_frames" else ""
            raise InputError(message(row) + more, rows.place(row), listing + ignore_hint(fault))
        self.counts[fault] += int(bad.sum())
        return rows.take(~bad)


def _value_text(kind: str, name: str, values: NDArray[np.float64]) -> Callable[[int], str]:
    nothing, told = f"{kind} without a {name} (nan)", f"{kind} with {name} {{:g}}"
    return lambda row: nothing if np.isnan(values[row]) else told.format(values[row])


def _box_text(start: str, box: NDArray[np.float64]) -> Callable[[int], str]:
    def text(row: int) -> str:
        fault = "a value that is no finite number" if not np.isfinite(box[row]).all() else "a negative size"
        values = ", ".join(f"{value:g}" for value in box[row])
        return f"{start} ({BOX_PARTS[box.shape[1]]}) = ({values}), which has {fault}"

    return text


def assemble(
    format_name: str,
    frames: Frames,
    annotations: Rows,
    detections: Rows,
    records: Sequence[Mapping[str, Any]],
    reading: Reading | None,
    vocabulary: tuple[str, ...] = (),
    *,
    answered: NDArray[np.bool_] | None = None,
    answers: str | Path | None = None,
    notes: Mapping[str, Any] | None = None,
    whole: bool = True,
    unlisted: bool = False,
) -> DetectionSet:
    """The checked set of what a reader found, and of what it knows about the format.

    Args:
        format_name: goes into `origin`, as `records` of the sources and `notes` do.
        frames, annotations, detections: what was found.
        records: of every source, what was read.
        reading: settings of all readers.
        vocabulary: the classes that the format knows; empty: those of the annotations.
        answered: (f,) the frames for which the detector's output has an entry; None if the format does not say.
        answers: the detector's output, for messages.
        notes: further JSON values.
        whole: whether these are all frames, and not a part of a stream.
        unlisted: whether the format has a list of all frames, which is not given.

    Raises:
        InputError: with file and line of the first fault of a kind that `reading.ignore` does not name.
    """
    reading = reading or Reading()
    checks = Checks(reading, Counter(), frames.names if whole else (), unlisted)
    found, marked, files = len(annotations), annotations.region is not None, annotations.files + detections.files
    detections = replace(detections, file=detections.file + np.int32(len(annotations.files)), files=files)
    annotations = checks.rows(annotations, "annotation")
    sound = len(annotations)
    detections = checks.rows(detections, "detection")
    frames, stays = _chosen_frames(frames, answered, answers, checks)
    annotations, detections = (_moved(rows, stays) for rows in (annotations, detections))
    names = vocabulary or tuple(sorted({*_names_in(annotations), *classes_of_others()}))
    classes = reading.class_map.classes if reading.class_map is not None else names
    if not classes and (len(annotations) or len(detections)):
        _refuse_no_class(annotations, reading)
    dropped: dict[str, dict[str, int]] = {}
    labels = []
    for kind, rows in (("annotation", annotations), ("detection", detections)):
        known = names if reading.class_map is None else None
        target = checks.targets(rows, kind, known)
        if kind == "detection":
            target = [IGNORE if name == DONT_CARE else name for name in target]
        labels.append(_labels(rows, target, classes))
        dropped[f"{kind}s"] = _left_out(rows, target)
    (kept, region), (boxes, _) = (
        _split(rows, label) for rows, label in zip((annotations, detections), labels, strict=True)
    )
    origin: dict[str, object] = {"format": format_name, "sources": [dict(record) for record in records]}
    origin |= dict(notes or {}) | dict(reading.record())
    origin |= {"classes_left_out": dropped, "ignored": dict(checks.counts), "regions": len(region), "filters": []}
    if again := {kind: n for kind, own in (("annotations", kept), ("detections", boxes)) if (n := repeated(own))}:
        origin["repeated"] = again
    origin["annotations"] = ledger(found, sound, len(annotations), len(kept), len(region))
    return DetectionSet(
        classes,
        frames.sequences,
        frames.sequence,
        frames.names,
        kept,
        boxes if len(boxes) else no_boxes(scored=True),
        (region if reading.dont_care == "keep" else no_boxes()) if marked or region else None,
        files,
        origin,
    )


def _refuse_no_class(annotations: Rows, reading: Reading) -> None:
    if reading.class_map is None:
        raise InputError("the annotations name no class", hint="look at the paths, or give a class map")
    hint = f"classes of the annotations: {', '.join(_names_in(annotations)[:20]) or '(none)'}"
    raise InputError("no rule of the class map names a class: every rule leaves its objects out", hint=hint)


def _named(rows: Rows) -> NDArray[np.int64]:
    """The labels of what names a class."""
    return rows.label if rows.any_class is None else rows.label[~rows.any_class]


def _names_in(rows: Rows) -> tuple[str, ...]:
    return tuple(sorted({rows.names[int(code)] for code in np.unique(_named(rows))}))


def _chosen_frames(
    frames: Frames, answered: NDArray[np.bool_] | None, answers: str | Path | None, checks: Checks
) -> tuple[Frames, NDArray[np.bool_]]:
    """The frames that stay, and which these are (f,)."""
    reading = checks.reading
    stays = np.ones(len(frames.names), dtype=bool)
    if reading.sequences is not None:
        for name in reading.sequences:
            check_known("sequence", name, frames.sequences)
        wanted = np.array([name in reading.sequences for name in frames.sequences], dtype=bool)
        stays = wanted[frames.sequence]
    if answered is not None and (missing := stays & ~answered).any():
        count = int(missing.sum())
        if "missing_frames" not in reading.ignore:
            first = frames.names[int(missing.argmax())]
            place = Place(str(answers))
            if count == len(frames.names):
                message = f"no entry for any of the {count} frames of the ground truth; the first is {shown(first)}"
                raise InputError(message, place, "name annotations and detections of the same frames")
            raise InputError(
                f"no entry for frame {shown(first)} of the ground truth" + f" (and {count - 1} more)" * (count > 1),
                place,
                ignore_hint("missing_frames"),
            )
        checks.counts["missing_frames"] += count
        stays &= answered
    if stays.all():
        return frames, stays
    used = np.unique(frames.sequence[stays])
    renumbered = np.zeros(len(frames.sequences), dtype=np.int32)
    renumbered[used] = np.arange(len(used))
    names = tuple(name for name, kept in zip(frames.names, stays.tolist(), strict=True) if kept)
    chosen = Frames(names, renumbered[frames.sequence[stays]], tuple(frames.sequences[i] for i in used))
    return chosen, stays


def _moved(rows: Rows, stays: NDArray[np.bool_]) -> Rows:
    """The rows in frames that stay, in these frames."""
    moved = replace(rows, frame=(np.cumsum(stays) - 1)[rows.frame])
    return moved if stays.all() else moved.take(stays[rows.frame])


def _labels(rows: Rows, targets: list[str | None], classes: tuple[str, ...]) -> NDArray[np.int64]:
    """(n,) class index; -1 left out; -2 region without a class."""
    codes = {name: index for index, name in enumerate(classes)} | {DONT_CARE: -2}
    label = np.array([codes.get(target or IGNORE, -1) for target in targets], dtype=np.int64)[rows.label]
    if rows.any_class is not None:
        label = np.where(rows.any_class, -2, label)
    return label


def _left_out(rows: Rows, targets: list[str | None]) -> dict[str, int]:
    """How many objects of each name the class map leaves out."""
    counted = np.bincount(_named(rows), minlength=len(rows.names)).tolist()
    pairs = zip(rows.names, targets, counted, strict=True)
    return {name: count for name, target, count in sorted(pairs, key=lambda p: p[0]) if target == IGNORE and count}


def _split(rows: Rows, label: NDArray[np.int64]) -> tuple[Boxes, Boxes]:
    """The objects to judge, and the regions where nothing is judged."""
    region = label == -2
    if rows.region is not None:
        region |= rows.region & (label >= 0)
    kept = (label >= 0) & ~region
    same = ("frame", "score", "box_2d", "box_3d", "distance_m", "line", "file")
    columns: dict[str, Any] = {name: getattr(rows, name) for name in same}
    labels = np.where(label < 0, ANY_CLASS, label).astype(np.int32)
    everything = Boxes(label=labels, attributes=rows.attributes or {}, **columns)
    return everything if kept.all() else everything.take(kept), everything.take(np.flatnonzero(region))
