"""BDD100K and Scalabel: a list of frames with labels (doc.bdd100k.com, "Label Format"; scalabel.label.typing).

    [{"name": ..., "videoName": ..., "frameIndex": ..., "labels": [{"id", "category", "score", "attributes": {...},
      "box2d": {"x1", "y1", "x2", "y2"}}]}]         or {"frames": [...]}; one file, or one file for each video

Frames are named by `name`, their sequence is `videoName`. Labels marked `crowd` or `ignored` are regions where
detections are not judged. Labels without a `box2d` (lanes, drivable areas) are left out and counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from verifier.base.errors import InputError, Place
from verifier.perception.detections.classmap import is_part
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.gathered import Gathered, each_frame
from verifier.perception.detections.sources import Elements, Reading, Source, decoded_json, elements, read_source
from verifier.perception.detections.tablefiles import BOX_2D, check_columns, table_set

REGION = ("crowd", "ignored")


def bdd100k(
    annotations: str | Path,
    detections: str | Path,
    reading: Reading | None = None,
    *,
    columns: Mapping[str, str] | None = None,
) -> DetectionSet:
    """JSON files, or folders or zip archives of them. Attributes of annotations: `attributes` that are numbers or
    true or false, and `track` of frames of a video; `columns` says which of these is `distance_m`.

    Raises:
        InputError: a file cannot be read, with its JSON pointer; see also `sources.IGNORABLE`.
    """
    columns = check_columns(columns or {})
    truth, source = read_source(annotations, "annotations", ".json"), read_source(detections, "detections", ".json")
    labels, frames, left_out = _read(truth, scored=False)
    if not labels.rows and not is_part():
        hint = "labels have a category and a box2d; files with 'objects' instead are of an older format"
        raise InputError("no frame has a label with a box", Place(str(annotations)), hint)
    keys = [(sequence, name) for sequence, name, _ in frames]
    results, _, _ = _read(source, scored=True)
    return table_set(
        "bdd100k",
        labels.table(str(annotations), columns, scored=False),
        results.table(str(detections), columns, scored=True),
        list(each_frame(keys, lambda row: frames[row][2])),
        reading,
        [truth.record, source.record],
        notes={"labels_without_box": left_out},
    )


def _read(source: Source, *, scored: bool) -> tuple[Gathered, list[tuple[str, str, Place]], int]:
    """The labels, the frames as (sequence, name, place), and how many labels have no box."""
    gathered, frames, left_out = Gathered(source.members), [], 0
    for part, member in enumerate(source.members):
        document = decoded_json(member.raw, member.name)
        key = "frames" if isinstance(document, dict) else ""
        listed = elements(document, member.name, "frames", key)
        videos = [video or "" for video in listed.values("videoName", "")]
        for row, (name, video) in enumerate(zip(listed.texts("name"), videos, strict=True)):
            frames.append((str(video), name, Place(member.name, path=f"{listed.pointer(row)}/name")))
            own = listed.items[row].get("labels") or []
            at = f"{listed.pointer(row)}/labels"
            if not isinstance(own, list):
                raise listed.fail(row, "labels", "expected a list of labels")
            labels = Elements(own, member.name, "labels", lambda k, at=at: f"{at}/{k}")  # type: ignore[misc]
            left_out += _gather(gathered, part, labels, (str(video), name), scored)
    return gathered, frames, left_out


def _gather(gathered: Gathered, part: int, labels: Elements, frame: tuple[str, str], scored: bool) -> int:
    left_out = 0
    for row, label in enumerate(labels.items):
        box = label.get("box2d")
        if box is None:
            left_out += 1
            continue
        if not isinstance(box, dict) or any(name not in box for name in BOX_2D):
            raise labels.fail(row, "box2d", "expected an object with x1, y1, x2 and y2")
        attributes = label.get("attributes") or {}
        if not isinstance(attributes, dict):
            raise labels.fail(row, "attributes", "expected an object")
        values = {name: box[name] for name in BOX_2D}
        values |= {"sequence": frame[0], "frame": frame[1], "class": label.get("category")}
        values |= {"score": label.get("score")} if scored else {}
        values |= {"track": str(label["id"])} if frame[0] and "id" in label else {}
        region = any(attributes.get(name) for name in REGION)
        gathered.add(part, row + 1, labels.pointer(row), values | ({"region": 1} if region else {}), attributes)
    return left_out
