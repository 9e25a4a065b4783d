"""From the rows a reader found to a checked `DetectionSet`: the same steps for all formats, in one place."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, UsageError, shown, unknown_name
from verifier.perception.detections.checks import Checks, ignore_hint
from verifier.perception.detections.classmap import DONT_CARE, IGNORE
from verifier.perception.detections.columns import ANY_CLASS, Boxes, DetectionSet, no_boxes
from verifier.perception.detections.reading import Reading
from verifier.perception.detections.rows import Frames, Material, Rows


def assemble(material: Material, reading: Reading) -> DetectionSet:
    """The checked set.

    Raises:
        InputError: with file and line of the first fault of a kind that `reading.ignore` does not name.
    """
    checks = Checks(material.files, reading, Counter())
    annotations = checks.rows(material.annotations, "annotation")
    detections = checks.rows(material.detections, "detection")
    frames, moved = _chosen_frames(material, reading, checks)
    annotations, detections = (_moved(rows, moved) for rows in (annotations, detections))
    names = material.vocabulary or _names_in(annotations)
    classes = reading.class_map.classes if reading.class_map is not None else names
    dropped: dict[str, dict[str, int]] = {}
    labels = []
    for kind, rows in (("annotation", annotations), ("detection", detections)):
        known = names if reading.class_map is None else None
        target = checks.targets(rows, kind, known)
        if kind == "detection":
            target = [IGNORE if each == DONT_CARE else each for each in target]
        labels.append(_labels(rows, target, classes))
        dropped[f"{kind}s"] = _left_out(rows, target)
    (kept, region), (found, _) = (
        _split(rows, label) for rows, label in zip((annotations, detections), labels, strict=True)
    )
    marked = material.annotations.region is not None or bool(region)
    origin: dict[str, Any] = {"format": material.format, "sources": [dict(each) for each in material.sources]}
    origin |= dict(material.notes or {}) | dict(reading.record())
    origin |= {"classes_left_out": dropped, "ignored": dict(checks.counts), "regions": len(region), "filters": []}
    return DetectionSet(
        classes,
        frames.sequences,
        frames.sequence,
        frames.names,
        kept,
        found if len(found) else no_boxes(scored=True),
        (region if reading.dont_care == "keep" else no_boxes()) if marked else None,
        material.files,
        origin,
    )


def _names_in(rows: Rows) -> tuple[str, ...]:
    used = np.unique(rows.label if rows.any_class is None else rows.label[~rows.any_class])
    return tuple(sorted({rows.names[int(code)] for code in used}))


def _chosen_frames(material: Material, reading: Reading, checks: Checks) -> tuple[Frames, NDArray[np.int64]]:
    """The frames that stay, and for each frame its new index (-1: it does not stay)."""
    frames = material.frames
    stays = np.ones(len(frames.names), dtype=bool)
    if reading.sequences is not None:
        for name in reading.sequences:
            if name not in frames.sequences:
                message, hint = unknown_name("sequence", name, frames.sequences)
                raise UsageError(f"{message}\n  hint: {hint}")
        wanted = np.array([name in reading.sequences for name in frames.sequences], dtype=bool)
        stays = wanted[frames.sequence]
    if material.answered is not None and (missing := stays & ~material.answered).any():
        count = int(missing.sum())
        if "missing_frames" not in reading.ignore:
            first = frames.names[int(missing.argmax())]
            place = Place(material.answers)
            raise InputError(
                f"no entry for frame {shown(first)} of the ground truth"
                + (f" (and {count - 1} more)" if count > 1 else ""),
                place,
                ignore_hint("missing_frames"),
            )
        checks.counts["missing_frames"] += count
        stays &= material.answered
    if stays.all():
        return frames, np.arange(len(stays), dtype=np.int64)
    used = np.unique(frames.sequence[stays])
    renumbered = np.zeros(len(frames.sequences), dtype=np.int32)
    renumbered[used] = np.arange(len(used))
    names = tuple(name for name, kept in zip(frames.names, stays.tolist(), strict=True) if kept)
    chosen = Frames(names, renumbered[frames.sequence[stays]], tuple(frames.sequences[i] for i in used))
    return chosen, np.where(stays, np.cumsum(stays) - 1, -1)


def _moved(rows: Rows, moved: NDArray[np.int64]) -> Rows:
    frame = moved[rows.frame]
    return replace(rows, frame=frame).take(frame >= 0) if (frame < 0).any() else replace(rows, frame=frame)


def _labels(rows: Rows, targets: list[str | None], classes: tuple[str, ...]) -> NDArray[np.int64]:
    """(n,) class index; -1 left out; -2 region without a class."""
    codes = {name: index for index, name in enumerate(classes)} | {DONT_CARE: -2}
    table = np.array([codes.get(target or IGNORE, -1) for target in targets], dtype=np.int64)
    label = table[rows.label] if len(table) else np.zeros(len(rows), dtype=np.int64)
    if rows.any_class is not None:
        label = np.where(rows.any_class, -2, label)
    return label


def _left_out(rows: Rows, targets: list[str | None]) -> dict[str, int]:
    """How many objects of each name the class map leaves out."""
    counted = np.bincount(rows.label, minlength=len(rows.names)) if len(rows) else np.zeros(len(rows.names), int)
    if rows.any_class is not None:
        counted = counted - np.bincount(rows.label[rows.any_class], minlength=len(rows.names))
    pairs = zip(rows.names, targets, counted.tolist(), strict=True)
    return {name: count for name, target, count in sorted(pairs, key=lambda p: p[0]) if target == IGNORE and count}


def _split(rows: Rows, label: NDArray[np.int64]) -> tuple[Boxes, Boxes]:
    """The objects to judge, and the regions where nothing is judged."""
    region = label == -2
    if rows.region is not None:
        region |= rows.region & (label >= 0)
    kept = (label >= 0) & ~region
    everything = Boxes(
        rows.frame,
        np.where(label < 0, ANY_CLASS, label).astype(np.int32),
        rows.score,
        rows.box_2d,
        rows.box_3d,
        rows.distance_m,
        rows.attributes or {},
        rows.line,
        rows.file,
    )
    return everything.take(kept), everything.take(region)
