"""A detector over many images: in batches, kept in a cache, and put beside the annotations."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from verifier.base.errors import InputError, Place, UsageError, shown, unknown_name
from verifier.perception.detections.classmap import IGNORE, ClassMap
from verifier.perception.detections.columns import Boxes, DetectionSet
from verifier.robustness.detectors.cache import Cache, Found, identity_digest, image_digest
from verifier.robustness.detectors.protocol import NOTHING, Detections, Detector, Image

DETECTOR_FILE = "<detector>"


@dataclass(frozen=True, eq=False)
class DetectorRun:
    """What a detector reports in some images.

    Attributes:
        classes, identity: of the detector.
        found: the detections of each image, by its name, in the order of the images.
        digests: the key of each image (`cache.image_digest`), by its name.
        computed: images put through the detector.
        cached: images whose detections were kept already.
        replaced: of those computed, images whose kept file was damaged.
    """

    classes: tuple[str, ...]
    identity: Mapping[str, Any]
    found: Mapping[str, Detections]
    digests: Mapping[str, str]
    computed: int
    cached: int
    replaced: int

    def __post_init__(self) -> None:
        for name in ("identity", "found", "digests"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))


def run_detector(
    detector: Detector,
    images: Iterable[Image],
    cache: str | Path | None = None,
    batch_size: int = 8,
) -> DetectorRun:
    """Put images through a detector, a batch in memory at a time.

    Every batch is kept before the next is begun: a run that is killed loses at most one batch, and the same call
    goes on after it. Equal images of a batch are put through once (unless the detector goes by name).

    Args:
        detector: see `Detector`.
        images: may be a generator; each name once.
        cache: a folder (`Cache`); None keeps nothing.
        batch_size: images handed to the detector at a time, at most.

    Raises:
        InputError: an image cannot be read, the detector's output is not what was declared, or the cache cannot be
            written.
        ValueError: a name occurs twice, the batch size is not positive, or the detector breaks its protocol.
    """
    if batch_size < 1:
        raise ValueError(f"expected a positive batch size, got {batch_size}")
    kept = None if cache is None else Cache(Path(cache))
    identity = identity_digest(detector.identity)
    found: dict[str, Detections] = {}
    content: dict[str, str] = {}
    computed = cached = replaced = 0
    for batch in _batches(images, batch_size):
        digests = [image_digest(image, detector.by_name) for image in batch]
        known, made, damaged = _of_batch(detector, dict(zip(digests, batch, strict=True)), kept, identity)
        for digest, image in zip(digests, batch, strict=True):
            if image.name in found:
                raise ValueError(f"the image {image.name!r} occurs twice")
            found[image.name] = made[digest] if digest in made else known[digest]
            content[image.name] = digest
        computed += len(made)
        cached += sum(digest in known for digest in digests)
        replaced += damaged
    return DetectorRun(tuple(detector.classes), detector.identity, found, content, computed, cached, replaced)


def with_detections(truth: DetectionSet, run: DetectorRun, class_map: ClassMap | None = None) -> DetectionSet:
    """The annotations of `truth` with the detections of a run in place of its own.

    A frame is the image of the same name; every frame needs one, and every image a frame. `class_map` says which
    class of the data each class of the detector is; without one they have the same names. `origin["detector"]`
    records the identity, the images (the SHA-256 of the lines "<SHA-256 of the image>  <name>", in their order) and
    what the map leaves out; the record of the detections replaced is dropped.

    Raises:
        InputError: a frame without an image, or the reverse.
        UsageError: a class of the detector that no rule fits, or that the data does not have.
    """
    index = {name: number for number, name in enumerate(truth.frame_name)}
    _check_frames(index, run.found)
    label_of = _labels(run.classes, truth.classes, class_map)
    sizes = [len(each) for each in run.found.values()]
    frame = np.repeat(np.array([index[name] for name in run.found], dtype=np.int64), sizes)
    parts = list(run.found.values()) or [NOTHING]
    label = label_of[np.concatenate([each.label for each in parts])]
    stays = label >= 0
    boxes = Boxes(
        frame,
        label,
        np.concatenate([each.score for each in parts]),
        np.concatenate([each.box_2d for each in parts]),
        None,
        None,
        {},
        np.concatenate([np.arange(1, size + 1) for size in sizes] or [np.zeros(0, np.int64)]),
        np.full(len(frame), len(truth.files), np.int32),
    )
    sources = [each for each in truth.origin.get("sources", []) if each.get("role") != "detections"]
    record = _record(run, class_map, int(np.count_nonzero(~stays)))
    origin = {**truth.origin, "sources": sources, "detector": record}
    return truth.change(detections=boxes.take(stays), files=(*truth.files, DETECTOR_FILE), origin=origin)


def _check_frames(frames: Mapping[str, int], images: Mapping[str, Detections]) -> None:
    """Refuse frames without an image, and images without a frame; InputError."""
    for missing, hint in (
        ([name for name in frames if name not in images], "every frame needs an image"),
        ([name for name in images if name not in frames], "every image needs a frame of the annotations"),
    ):
        if missing:
            more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            raise InputError(f"frame {shown(missing[0])}{more}: {hint}", Place(DETECTOR_FILE))


def _record(run: DetectorRun, class_map: ClassMap | None, left_out: int) -> dict[str, Any]:
    """What stands in the evidence for the detector."""
    lines = "".join(f"{digest}  {name}\n" for name, digest in run.digests.items())
    return {
        "identity": dict(run.identity),
        "sha256": identity_digest(run.identity),
        "images": {"count": len(run.digests), "sha256": hashlib.sha256(lines.encode()).hexdigest()},
        "class_map": None if class_map is None else [list(rule) for rule in class_map.rules],
        "left_out": left_out,
    }


def _batches(images: Iterable[Image], size: int) -> Iterator[list[Image]]:
    stream = iter(images)
    while batch := list(islice(stream, size)):
        yield batch


def _of_batch(
    detector: Detector, images: Mapping[str, Image], kept: Cache | None, identity: str
) -> tuple[dict[str, Detections], dict[str, Detections], int]:
    """By digest of the image what was kept, and what is made and kept now; how many of the latter were damaged."""
    looked_up = {digest: kept.get(digest, identity) if kept else Found(None) for digest in images}
    known = {digest: each.detections for digest, each in looked_up.items() if each.detections is not None}
    waiting = {digest: image for digest, image in images.items() if digest not in known}
    made = dict(zip(waiting, _detect(detector, list(waiting.values())), strict=True))
    if kept is not None:
        for digest, each in made.items():
            kept.put(digest, identity, each)
    return known, made, sum(looked_up[digest].damaged for digest in waiting)


def _detect(detector: Detector, images: list[Image]) -> list[Detections]:
    if not images:
        return []
    results = detector(images)
    if len(results) != len(images):
        raise ValueError(f"the detector gave {len(results)} results for {len(images)} images")
    for image, each in zip(images, results, strict=True):
        if len(each) and each.label.max() >= len(detector.classes):
            raise ValueError(
                f"image {image.name!r}: label {each.label.max()} of a detector of {len(detector.classes)} classes"
            )
    return results


def check_classes(own: tuple[str, ...], classes: tuple[str, ...], class_map: ClassMap | None) -> None:
    """Refuse classes `own` of a detector that `with_detections` refuses beside data with `classes`; UsageError."""
    _labels(own, classes, class_map)


def _labels(own: tuple[str, ...], classes: tuple[str, ...], class_map: ClassMap | None) -> np.ndarray[Any, Any]:
    """(classes of the detector,) the class of the data that each becomes; -1 where it is left out."""
    labels = []
    for name in own:
        target = name if class_map is None else class_map.target(name)
        if target is None:
            raise UsageError(f"the detector's class {shown(name)} fits no rule of the class map")
        if target != IGNORE and target not in classes:
            message, hint = unknown_name("class of the detector", target, classes)
            raise UsageError(f"{message}\n  hint: map it to a class of the data or to '{IGNORE}'; {hint}")
        labels.append(-1 if target == IGNORE else classes.index(target))
    return np.array(labels, dtype=np.int32)
