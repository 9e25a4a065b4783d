"""A detector over many images: in batches, kept in a cache, and put beside the annotations.

Detections kept on disk, so that no image is put through the same detector twice.

The key is content: the SHA-256 of the image's size and pixels, and that of the detector's identity. A file is
written beside its place and renamed, so that a run that is killed leaves whole files only, and the next run goes on
where it stopped. What a mutation leaves unchanged is found again.

A file that does not hold what its name says (damaged, or of another version) is replaced.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from verifier.base.errors import InputError, Place, UsageError, shown, unknown_name
from verifier.base.files import make_folder, read_json, write_text
from verifier.perception.detections.classmap import IGNORE, ClassMap
from verifier.perception.detections.columns import Boxes, DetectionSet
from verifier.robustness.detectors.protocol import NOTHING, Detections, Detector, Image

SCHEMA, VERSION = "verifier.detections", 1


def image_digest(image: Image) -> str:
    """SHA-256 of height, width and pixels."""
    height, width = image.size
    digest = hashlib.sha256(f"{height} {width} RGB uint8\n".encode())
    digest.update(np.ascontiguousarray(image.pixels).data)
    return digest.hexdigest()


def identity_digest(identity: Mapping[str, object]) -> str:
    """SHA-256 of the identity as JSON with sorted keys.

    Raises:
        ValueError: the identity is not made of JSON values, or holds a number that is not finite.
    """
    try:
        text = json.dumps(dict(identity), sort_keys=True, separators=(",", ":"), allow_nan=False)
    except TypeError as error:
        raise ValueError(f"the identity of a detector is made of JSON values: {error}") from None
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Cache:
    """A folder of detections; it is made when the first file is written. Several runs may share it."""

    folder: Path

    def get(self, image: str, detector: str) -> Detections | None:
        """What is kept for the digests of an image and of a detector's identity; None for nothing usable."""
        path = self._path(image, detector)
        try:
            document, _ = read_json(path)
            own = tuple(document[name] for name in ("schema", "version", "image", "detector"))
            if own != (SCHEMA, VERSION, image, detector):
                return None
            box = np.array(document["box_2d"], dtype=np.float64).reshape(-1, 4)
            return Detections(box, np.array(document["score"]), np.array(document["label"], dtype=np.int64))
        except (InputError, KeyError, TypeError, ValueError, OverflowError):
            return None

    def put(self, image: str, detector: str, detections: Detections) -> None:
        """Keep detections.

        Raises:
            InputError: the folder or file cannot be written.
        """
        path = self._path(image, detector)
        document = {
            "schema": SCHEMA,
            "version": VERSION,
            "image": image,
            "detector": detector,
            "box_2d": detections.box_2d.tolist(),
            "score": detections.score.tolist(),
            "label": detections.label.tolist(),
        }
        make_folder(path.parent)
        write_text(path, json.dumps(document, allow_nan=False) + "\n")

    def _path(self, image: str, detector: str) -> Path:
        # One folder per detector, one more level so that no folder holds a million files.
        return self.folder / detector[:32] / image[:2] / f"{image}.json"


DETECTOR_FILE = "<detector>"


@dataclass(frozen=True, eq=False)
class DetectorRun:
    """What a detector reports in some images.

    Attributes:
        detections: the detections of each image, by its name, in the order of the images.
        digests: the key of each image (`image_digest`), by its name.
    """

    classes: tuple[str, ...]
    identity: Mapping[str, Any]
    detections: Mapping[str, Detections]
    digests: Mapping[str, str]

    def __post_init__(self) -> None:
        for name in ("identity", "detections", "digests"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))


def run_detector(
    detector: Detector, images: Iterable[Image], cache: str | Path | None = None, batch_size: int = 8
) -> DetectorRun:
    """Put images through one detector; see `run_detectors`."""
    return run_detectors((detector,), images, cache, batch_size)[0]


def run_detectors(
    detectors: Sequence[Detector], images: Iterable[Image], cache: str | Path | None = None, batch_size: int = 8
) -> list[DetectorRun]:
    """Put images through detectors, a batch in memory at a time.

    Every batch is kept before the next is begun: a run that is killed loses at most one batch, and the same call
    goes on after it. Equal images of a batch are put through once.

    Args:
        detectors: each sees every image.
        images: may be a generator; each name once.
        cache: a folder (`Cache`); None keeps nothing.
        batch_size: images handed to a detector at a time, at most.

    Raises:
        InputError: an image cannot be read, the detector's output is not what was declared, or the cache cannot be
            written.
        ValueError: a name occurs twice, the batch size is not positive, or the detector breaks its protocol.
    """
    if batch_size < 1:
        raise ValueError(f"expected a positive batch size, got {batch_size}")
    kept = None if cache is None else Cache(Path(cache))
    identities = [identity_digest(detector.identity) for detector in detectors]
    detections: list[dict[str, Detections]] = [{} for _ in detectors]
    content: list[dict[str, str]] = [{} for _ in detectors]
    for batch in _batches(images, batch_size):
        for at, detector in enumerate(detectors):
            digests = [image_digest(image) for image in batch]
            all_found = _of_batch(detector, dict(zip(digests, batch, strict=True)), kept, identities[at])
            for digest, image in zip(digests, batch, strict=True):
                if image.name in detections[at]:
                    raise ValueError(f"the image {image.name!r} occurs twice")
                detections[at][image.name] = all_found[digest]
                content[at][image.name] = digest
    parts = zip(detectors, detections, content, strict=True)
    return [DetectorRun(tuple(own.classes), own.identity, rows, keys) for own, rows, keys in parts]


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
    _check_frames(index, run.detections)
    label_of = labels_of(run.classes, truth.classes, class_map)
    sizes = [len(detections) for detections in run.detections.values()]
    frame = np.repeat(np.array([index[name] for name in run.detections], dtype=np.int64), sizes)
    parts = list(run.detections.values()) or [NOTHING]
    label = label_of[np.concatenate([part.label for part in parts])]
    stays = label >= 0
    boxes = Boxes(
        frame,
        label,
        np.concatenate([part.score for part in parts]),
        np.concatenate([part.box_2d for part in parts]),
        None,
        None,
        {},
        np.concatenate([np.arange(1, size + 1) for size in sizes] or [np.zeros(0, np.int64)]),
        np.full(len(frame), len(truth.files), np.int32),
    )
    sources = [entry for entry in truth.origin.get("sources", []) if entry.get("role") != "detections"]
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


def _record(run: DetectorRun, class_map: ClassMap | None, left_out: int) -> dict[str, object]:
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
) -> dict[str, Detections]:
    """By digest of the image; what was not kept is now."""
    looked_up = {digest: kept.get(digest, identity) for digest in images} if kept is not None else {}
    known = {digest: detections for digest, detections in looked_up.items() if detections is not None}
    waiting = {digest: image for digest, image in images.items() if digest not in known}
    made = dict(zip(waiting, _detect(detector, list(waiting.values())), strict=True))
    if kept is not None:
        for digest, detections in made.items():
            kept.put(digest, identity, detections)
    return known | made


def _detect(detector: Detector, images: list[Image]) -> list[Detections]:
    if not images:
        return []
    results = detector(images)
    if len(results) != len(images):
        raise ValueError(f"the detector gave {len(results)} results for {len(images)} images")
    for image, result in zip(images, results, strict=True):
        if len(result) and result.label.max() >= len(detector.classes):
            raise ValueError(
                f"image {image.name!r}: label {result.label.max()} of a detector of {len(detector.classes)} classes"
            )
    return results


def labels_of(own: tuple[str, ...], classes: tuple[str, ...], class_map: ClassMap | None) -> np.ndarray[Any, Any]:
    """(classes of the detector,) the class of the data that each becomes; -1 where it is left out. UsageError."""
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
