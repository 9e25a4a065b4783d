"""Annotations and detections that are already in memory: arrays, one dictionary per frame (as torchmetrics takes
them), `supervision.Detections`, MAITE targets; and of whatever kind (`from_objects`: also pandas and pycocotools).

Nothing of those libraries is imported: an object needs only the attributes named. Messages count rows from 1 in
"<annotations>" and "<detections>".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.perception.detections.assembly import Rows, assemble
from verifier.perception.detections.coco import coco
from verifier.perception.detections.columns import NO_SEQUENCE, UNKNOWN_FRAME, DetectionSet, Frames, codes
from verifier.perception.detections.sources import Reading
from verifier.perception.detections.tablefiles import tables

FILES = ("<annotations>", "<detections>")
KNOWN = ("frame", "class", "score", "box_2d", "box_3d", "distance_m", "region")


def from_arrays(
    classes: Sequence[str],
    frames: Sequence[str],
    annotations: Mapping[str, object],
    detections: Mapping[str, object],
    reading: Reading | None = None,
    *,
    sequences: Sequence[str] | None = None,
    detection_classes: Sequence[str] | None = None,
) -> DetectionSet:
    """A set from columns.

    `frame` (n,) indices into `frames`, `class` (n,) indices into `classes`; `score` (n,) of detections; optional
    `box_2d` (n, 4) pixels, `box_3d` (n, 7) in the ego frame and `distance_m` (n,), as in `Boxes`; `region` (n,) of
    annotations. Other columns of the annotations are attributes. `sequences` names the sequence of each frame;
    `detection_classes` are the classes that those of detections are indices into, if not `classes`.

    Raises:
        InputError: a column is missing or has the wrong shape, a name occurs twice; see also `sources.IGNORABLE`.
    """
    for what, names in (("frame", frames), ("class", classes)):
        if len(set(names)) != len(names):
            twice = next(name for name in names if list(names).count(name) > 1)
            raise InputError(f"the {what} {shown(twice)} occurs twice", Place(f"<{what}s>"))
    given = list(sequences) if sequences is not None else [NO_SEQUENCE] * len(frames)
    if len(given) != len(frames):
        raise InputError(f"{len(given)} sequences for {len(frames)} frames", Place("<sequences>"))
    own = tuple(classes)
    truth = _rows(annotations, own, len(frames), 0)
    found = _rows(detections, own if detection_classes is None else tuple(detection_classes), len(frames), 1)
    return assemble("arrays", Frames.of(frames, given), truth, found, [], reading, own)


def from_dicts(
    classes: Sequence[str],
    frames: Sequence[str],
    annotations: Sequence[Mapping[str, object]],
    detections: Sequence[Mapping[str, object]],
    reading: Reading | None = None,
    *,
    sequences: Sequence[str] | None = None,
) -> DetectionSet:
    """A set from one dictionary per frame, of annotations and of detections, as torchmetrics takes them.

    `labels` (n,) indices into `classes`; `scores` (n,) of detections; `boxes` (n, 4) left, top, right, bottom in
    pixels, `boxes_3d` (n, 7) in the ego frame, `distance_m` (n,) in metres. Other numbers (n,) of the annotations are
    attributes, such as `track`. Tensors are taken from their device.

    Raises:
        InputError: as `from_arrays`, and a frame without what another frame has.
    """
    columns = []
    for file, listed in zip(FILES, (annotations, detections), strict=True):
        _check_length(file, listed, frames)
        named = dict.fromkeys(name for image in listed for name in image)
        kept = [name for name in named if file == FILES[0] or name in _OF_DICTS or name == "distance_m"]
        columns.append(
            _by_frame(file, listed, {"class": "labels"} | {_OF_DICTS.get(name, name): name for name in kept})
        )
    return from_arrays(classes, frames, columns[0], columns[1], reading, sequences=sequences)


_OF_DICTS = {"labels": "class", "scores": "score", "boxes": "box_2d", "boxes_3d": "box_3d"}


def from_supervision(
    classes: Sequence[str] | None,
    frames: Sequence[str],
    annotations: Sequence[Any],
    detections: Sequence[Any],
    reading: Reading | None = None,
    *,
    sequences: Sequence[str] | None = None,
) -> DetectionSet:
    """A set from one `supervision.Detections` per frame, of annotations and of detections.

    Used are `xyxy` (n, 4), `confidence` (n,) of detections, `tracker_id` (n,) of annotations if all frames have it,
    `data["distance_m"]` (n,) if there, and the classes: `data["class_name"]` (n,) where all have it, else `class_id`
    (n,), an index into `classes`.

    Raises:
        InputError: as `from_arrays`, and a frame without class ids or confidences; classes without names.
    """
    columns, names = [], []
    for which, listed in enumerate((annotations, detections)):
        file = FILES[which]
        _check_length(file, listed, frames)
        column = _by_frame(file, listed, {"box_2d": "xyxy", "class": "class_id"})
        named = [_given(image, "class_name") for image in listed]
        if any(map(len, named)) and all(len(image) == len(part) for image, part in zip(listed, named, strict=True)):
            column["class"], own = codes(map(str, _joined(named)))
            names.append(own if which else tuple(sorted(own)))
            column["class"] = np.array([names[-1].index(name) for name in own])[column["class"]]
        elif classes is None:
            raise InputError("the classes have no names", Place(file), 'give names=[...], or data["class_name"]')
        else:
            names.append(tuple(classes))
        if which:
            column["score"] = _by_frame(file, listed, {"score": "confidence"})["score"]
        elif all(getattr(image, "tracker_id", None) is not None for image in listed if len(image)):
            tracks = [image.tracker_id for image in listed if len(image)]
            column |= {"track": np.concatenate(tracks)} if tracks else {}
        parts = [_given(image, "distance_m") for image in listed]
        if any(map(len, parts)):
            pairs = zip(listed, parts, strict=True)
            known = [part if len(part) else np.full(len(image), np.nan) for image, part in pairs]
            column["distance_m"] = _beside(file, [image.xyxy for image in listed], known, "distance_m")
        columns.append(column)
    return from_arrays(
        names[0] if classes is None else tuple(classes),
        frames,
        columns[0] if classes is None else _renumbered(columns[0], names[0], classes),
        columns[1],
        reading,
        sequences=sequences,
        detection_classes=names[1],
    )


def _renumbered(column: dict[str, Any], names: Sequence[str], classes: Sequence[str]) -> dict[str, object]:
    """The column with classes as indices into `classes` in place of `names`; their count for any other."""
    if tuple(names) == tuple(classes):
        return column
    place = np.array([list(classes).index(name) if name in classes else len(classes) for name in names])
    return {**column, "class": place[column["class"]]}


def from_maite(
    classes: Sequence[str],
    frames: Sequence[str],
    targets: Sequence[Any],
    predictions: Sequence[Any],
    reading: Reading | None = None,
    *,
    sequences: Sequence[str] | None = None,
) -> DetectionSet:
    """A set from one MAITE `ObjectDetectionTarget` per frame: `boxes` (n, 4) x1, y1, x2, y2, `labels` (n,), `scores`.

    Labels are indices into `classes`. Scores (n, classes) count with their greatest value.

    Raises:
        InputError: as `from_arrays`.
    """
    columns = []
    for file, listed in zip(FILES, (targets, predictions), strict=True):
        _check_length(file, listed, frames)
        columns.append(_by_frame(file, listed, {"box_2d": "boxes", "class": "labels"}))
    scores = [np.asarray(prediction.scores) for prediction in predictions]
    greatest = [score.max(axis=1) if score.ndim == 2 and len(score) else score for score in scores]
    columns[1]["score"] = _beside(FILES[1], [prediction.boxes for prediction in predictions], greatest, "scores")
    return from_arrays(classes, frames, columns[0], columns[1], reading, sequences=sequences)


def _check_length(file: str, listed: Sequence[Any], frames: Sequence[str]) -> None:
    if len(listed) != len(frames):
        raise InputError(f"{len(listed)} entries for {len(frames)} frames", Place(file))


def _by_frame(file: str, listed: Sequence[Any], wanted: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """Columns from an attribute, or entry, of each frame's object, and the frame of each row."""
    columns: dict[str, NDArray[Any]] = {}
    for name, attribute in wanted.items():
        parts = []
        for number, image in enumerate(listed):
            value = image.get(attribute) if isinstance(image, Mapping) else getattr(image, attribute, None)
            if value is None:
                raise InputError(f"entry {number + 1} has no {attribute}", Place(file))
            parts.append(np.asarray(value.detach().cpu() if hasattr(value, "detach") else value))
            if not parts[-1].ndim:
                raise InputError(f"{attribute} of entry {number + 1} is no array: {shown(value)}", Place(file))
        columns[name] = _joined(parts)
        lengths = [len(part) for part in parts]
        frame = np.repeat(np.arange(len(listed)), lengths)
        if len(frame) != len(columns.get("frame", frame)) or (frame != columns.get("frame", frame)).any():
            raise InputError(f"{attribute} has other lengths than {next(iter(wanted.values()))}", Place(file))
        columns["frame"] = frame
    return columns


def _beside(file: str, boxes: Sequence[Any], parts: Sequence[Any], name: str) -> NDArray[Any]:
    """The numbers of all frames, as many in each as it has boxes."""
    listed = [{"boxes": own, name: part} for own, part in zip(boxes, parts, strict=True)]
    return _by_frame(file, listed, {"box_2d": "boxes", name: name})[name]


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    filled = [part for part in parts if len(part)]
    return np.concatenate(filled) if filled else np.zeros(0)


def _given(frame: Any, key: str) -> NDArray[Any]:
    return np.atleast_1d(getattr(frame, "data", {}).get(key, ()))


@np.errstate(invalid="ignore")  # what is no whole number is refused
def _rows(columns: Mapping[str, object], classes: tuple[str, ...], frame_count: int, which: int) -> Rows:
    file = FILES[which]
    scored = which == 1
    for name in ("frame", "class", "score") if scored else ("frame", "class"):
        if name not in columns:
            raise InputError(f"no column '{name}'", Place(file))
    numbers = {name: _column(columns[name], name, file) for name in columns}
    n = numbers["frame"].size
    widths = {"box_2d": (n, 4), "box_3d": (n, 7)}
    for name, value in numbers.items():
        expected = (0,) if n == 0 and value.shape == (0,) else widths.get(name, (n,))
        if value.shape != expected:
            raise InputError(f"column '{name}' has the shape {value.shape}, expected {expected}", Place(file))
    for name in ("frame", "class"):
        if (numbers[name] % 1 != 0).any():
            raise InputError(f"column '{name}': expected whole numbers", Place(file))
    frame, label = numbers["frame"].astype(np.int64), numbers["class"].astype(np.int64)
    label = np.where(label < 0, len(classes), np.minimum(label, len(classes)))
    boxes = {name: numbers[name].reshape(-1, w) if name in numbers else None for name, (_, w) in widths.items()}
    absent = np.ones(n, dtype=bool)  # in an array a row of NaN is how an object without a box is written
    return Rows(
        np.where((frame >= 0) & (frame < frame_count), frame, UNKNOWN_FRAME),
        label,
        (*classes, "(no such class)"),
        np.arange(1, n + 1),
        np.zeros(n, np.int32),
        (file,),
        lambda row: f"frame {frame[row]}",
        numbers["score"] if scored else None,
        boxes["box_2d"],
        boxes["box_3d"],
        numbers.get("distance_m"),
        {} if scored else {name: value for name, value in numbers.items() if name not in KNOWN},
        region=numbers["region"] != 0 if "region" in numbers and not scored else None,
        no_box_2d=absent,
        no_box_3d=absent,
    )


def _column(value: Any, name: str, file: str) -> NDArray[np.float64]:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"column '{name}': expected an array of numbers", Place(file)) from None


def from_objects(
    annotations: Any,
    detections: Any,
    reading: Reading | None = None,
    *,
    names: Sequence[str] | None = None,
    sequences: Sequence[str] | None = None,
    **options: Any,
) -> DetectionSet:
    """A set from objects of another library; the kind of the annotations says which.

    * pandas: a `DataFrame` with the columns of tables, and another of detections;
    * torchmetrics: one dictionary per image with `boxes`, `labels`, `scores` (arrays or tensors), see `from_dicts`;
    * supervision: one `Detections` per image, see `from_supervision`;
    * MAITE: one target per image, see `from_maite`;
    * pycocotools: a `COCO`, and of detections that of `loadRes` or the list that it takes.

    Args:
        annotations: a mapping from the names of images, or a sequence, whose images are named by their numbers.
        detections: of the same images in the same order, or a mapping from their names.
        reading: settings of all readers.
        names: of the labels, by their number.
        sequences: the drive of each image.
        options: of the reader of tables or of COCO.

    Raises:
        InputError: an object of none of these kinds, images that differ; otherwise as the reader.
        UsageError: `names` or `sequences` of tables or of COCO.
    """
    whole = isinstance(getattr(annotations, "dataset", None), dict) or hasattr(annotations, "columns")
    if whole and (names is not None or sequences is not None):
        raise UsageError("names and sequences are of one object for each image; tables and COCO have their own")
    if isinstance(getattr(annotations, "dataset", None), dict):
        return coco(annotations, detections, reading, **options)
    if not isinstance(annotations, Mapping | Sequence) or isinstance(annotations, str):
        return tables(annotations, detections, reading, **options)
    frames = list(map(str, annotations if isinstance(annotations, Mapping) else range(len(annotations))))
    truth = list(annotations.values() if isinstance(annotations, Mapping) else annotations)
    seen = _in_order(annotations, detections)
    if all(hasattr(image, "xyxy") for image in (*truth, *seen)):
        return from_supervision(names, frames, truth, seen, reading, sequences=sequences)
    if names is None:
        raise InputError("the labels have no names", Place(FILES[0]), "name what the labels mean: names=[...]")
    if all(isinstance(value, Mapping) for value in (*truth, *seen)):
        return from_dicts(names, frames, truth, seen, reading, sequences=sequences)
    if all(hasattr(image, "boxes") and hasattr(image, "labels") for image in (*truth, *seen)):
        return from_maite(names, frames, truth, seen, reading, sequences=sequences)
    known = "dictionaries, supervision.Detections or MAITE targets"
    kinds = sorted({type(value).__name__ for value in (*truth, *seen)})
    raise InputError(f"expected {known}, got {', '.join(kinds)}", Place(FILES[0]))


def _in_order(annotations: Any, detections: Any) -> list[Any]:
    """The detections of each image of the annotations."""
    if isinstance(detections, Sequence) and not isinstance(detections, str):
        return list(detections)
    if not isinstance(detections, Mapping):
        message = f"expected one object for each image, got {type(detections).__name__}"
        raise InputError(message, Place(FILES[1]))
    if not isinstance(annotations, Mapping):
        raise InputError("the images have names and those of the annotations have none", Place(FILES[1]))
    for one, other, text in ((detections, annotations, "annotations"), (annotations, detections, "detections")):
        missing = next((name for name in one if name not in other), None)
        if missing is not None:
            raise InputError(f"no {text} of the image {shown(missing)}", Place(FILES[text == "detections"]))
    return [detections[name] for name in annotations]
