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
from verifier.perception.detections.gathered import Gathered, gathered_set
from verifier.perception.detections.sources import Elements, Member, Reading, decoded_json, elements
from verifier.perception.detections.tablefiles import BOX_2D

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
    labels = Gathered.of(annotations, ".json", _read)
    if not labels.rows and not is_part():
        hint = "labels have a category and a box2d; files with 'objects' instead are of an older format"
        raise InputError("no frame has a label with a box", Place(str(annotations)), hint)
    results = Gathered.of(detections, ".json", _read, scored=True)
    return gathered_set("bdd100k", labels, results, reading, columns, {"labels_without_box": labels.left_out})


def _read(gathered: Gathered, part: int, member: Member, drive: str) -> None:
    """The frames of a file, each with its sequence, and their labels."""
    document = decoded_json(member.raw, member.name)
    key = "frames" if isinstance(document, dict) else ""
    listed = elements(document, member.name, "frames", key)
    videos = [video or "" for video in listed.values("videoName", "")]
    for row, (name, video) in enumerate(zip(listed.texts("name"), videos, strict=True)):
        gathered.frame(str(video), name, Place(member.name, path=f"{listed.pointer(row)}/name"))
        own = listed.items[row].get("labels") or []
        at = f"{listed.pointer(row)}/labels"
        if not isinstance(own, list):
            raise listed.fail(row, "labels", "expected a list of labels")
        labels = Elements(own, member.name, "labels", lambda k, at=at: f"{at}/{k}")  # type: ignore[misc]
        _gather(gathered, part, labels, (str(video), name))


def _gather(gathered: Gathered, part: int, labels: Elements, frame: tuple[str, str]) -> None:
    for row, label in enumerate(labels.items):
        box = label.get("box2d")
        if box is None:
            gathered.left_out += 1
            continue
        if not isinstance(box, dict) or any(name not in box for name in BOX_2D):
            raise labels.fail(row, "box2d", "expected an object with x1, y1, x2 and y2")
        attributes = label.get("attributes") or {}
        if not isinstance(attributes, dict):
            raise labels.fail(row, "attributes", "expected an object")
        values = {name: box[name] for name in BOX_2D}
        values |= {"sequence": frame[0], "frame": frame[1], "class": label.get("category")}
        values |= {"score": label.get("score")} if gathered.scored else {}
        values |= {"track": str(label["id"])} if frame[0] and "id" in label else {}
        region = any(attributes.get(name) for name in REGION)
        gathered.add(part, row + 1, labels.pointer(row), values | ({"region": 1} if region else {}), attributes)
