"""The faults that every format can have: each an error with file and line, or ignored by name and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, shown, unknown_name
from verifier.perception.detections.columns import faulty_boxes
from verifier.perception.detections.reading import Reading
from verifier.perception.detections.rows import UNKNOWN_FRAME, Rows

BOX_PARTS = {4: "left, top, right, bottom", 7: "x, y, z, length, width, height, yaw in the ego frame"}


@dataclass(frozen=True)
class Checks:
    """Checks rows of the files named, and counts in `counts` what is left out by each kind of fault."""

    files: tuple[str, ...]
    reading: Reading
    counts: Counter[str]

    def rows(self, rows: Rows, kind: str) -> Rows:
        """The rows that pass; the first that does not is an error unless its kind of fault is ignored."""
        rows = self.without(
            rows,
            rows.frame == UNKNOWN_FRAME,
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
                rows = self.without(rows, bad, "faulty_boxes", _value_text(f"{kind} with {name}", values))
        for name in rows.attributes or {}:
            values = (rows.attributes or {})[name]
            rows = self.without(rows, np.isinf(values), "faulty_boxes", _value_text(f"{kind} with {name}", values))
        for name in ("box_2d", "box_3d"):
            box = getattr(rows, name)
            if box is not None:
                absent = getattr(rows, f"no_{name}")
                bad = faulty_boxes(box) | (np.isnan(box).all(axis=1) & (True if absent is None else ~absent))
                rows = self.without(rows, bad, "faulty_boxes", _box_text(f"{kind} with {name}", box))
        return rows

    def _plausible(self, rows: Rows, kind: str) -> Rows:
        limits = self.reading.plausible
        if rows.box_3d is not None:
            with np.errstate(over="ignore"):
                reach = np.linalg.norm(rows.box_3d[:, :3], axis=1)
            rows = self._beyond(rows, kind, reach, limits.reach_m, "{:g} m away; are these metres in the ego frame?")
        if rows.box_3d is not None:
            size = rows.box_3d[:, 3:6].max(axis=1, initial=0)
            rows = self._beyond(rows, kind, size, limits.size_m, "{:g} m large; are these metres?")
        if rows.box_3d is not None:
            turn = np.abs(rows.box_3d[:, 6])
            rows = self._beyond(rows, kind, turn, limits.turn_rad, "turned by {:g} rad; are these degrees?")
        if rows.distance_m is not None:
            rows = self._beyond(rows, kind, rows.distance_m, limits.reach_m, "{:g} m away; are these metres?")
        if rows.score is not None:
            rows = self._beyond(rows, kind, np.abs(rows.score), limits.score, "with a score of size {:g}; is it one?")
        if rows.box_2d is not None:
            rows = self._pixels(rows, kind, rows.box_2d)
        return rows

    def _pixels(self, rows: Rows, kind: str, box: NDArray[np.float64]) -> Rows:
        reach = np.abs(box).max(axis=1, initial=0)
        if len(reach) and np.nanmax(reach, initial=0) <= 1.5 and not np.isnan(reach).all():
            message = f"{kind} within 1.5 pixels of the corner, as is every other; are these fractions of the image?"
            return self.without(rows, ~np.isnan(reach), "implausible_boxes", lambda _: message)
        return self._beyond(rows, kind, reach, self.reading.plausible.pixels, "at {:g} pixels; are these pixels?")

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
        bad = _take(unknown, rows.label)
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
            raise InputError(message(row) + more, rows.place(row, self.files), ignore_hint(fault))
        self.counts[fault] += int(bad.sum())
        return rows.take(~bad)


def _value_text(start: str, values: NDArray[np.float64]) -> Callable[[int], str]:
    return lambda row: f"{start} {values[row]:g}"


def _box_text(start: str, box: NDArray[np.float64]) -> Callable[[int], str]:
    def text(row: int) -> str:
        fault = "a value that is no finite number" if not np.isfinite(box[row]).all() else "a negative size"
        values = ", ".join(f"{value:g}" for value in box[row])
        return f"{start} ({BOX_PARTS[box.shape[1]]}) = ({values}), which has {fault}"

    return text


def _take(flags: NDArray[np.bool_], label: NDArray[np.int64]) -> NDArray[np.bool_]:
    return flags[label] if len(flags) else np.zeros(len(label), dtype=bool)


def ignore_hint(fault: str) -> str:
    """How to leave out what has this kind of fault."""
    return f"--ignore {fault} (in Python ignore=({fault!r},)) leaves these out and counts them"
