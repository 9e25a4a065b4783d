"""Detections kept on disk, so that no image is put through the same detector twice.

The key is content: the SHA-256 of the image's size and pixels (with its name, for a detector that looks at that), and
that of the detector's identity. A file is written beside its place and renamed, so that a run that is killed leaves
whole files only, and the next run goes on where it stopped. What a mutation leaves unchanged is found again.

A file that does not hold what its name says (damaged, or of another version) is replaced, and counted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from verifier.base.errors import InputError, Place
from verifier.base.files import read_json, write_text
from verifier.robustness.detectors.protocol import Detections, Image

SCHEMA, VERSION = "verifier.detections", 1


def image_digest(image: Image, by_name: bool = False) -> str:
    """SHA-256 of height, width and pixels; with the name before them where that counts, too."""
    height, width = image.size
    named = f"{image.name}\n" if by_name else ""
    digest = hashlib.sha256(f"{named}{height} {width} RGB uint8\n".encode())
    digest.update(np.ascontiguousarray(image.pixels).data)
    return digest.hexdigest()


def identity_digest(identity: Mapping[str, Any]) -> str:
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
class Found:
    """What a cache holds under a key: detections or None; `damaged` when the file there holds no detections."""

    detections: Detections | None
    damaged: bool = False


@dataclass(frozen=True)
class Cache:
    """A folder of detections; it is made when the first file is written. Several runs may share it."""

    folder: Path

    def get(self, image: str, detector: str) -> Found:
        """What is kept for the digests of an image and of a detector's identity."""
        path = self._path(image, detector)
        if not path.is_file():
            return Found(None)
        try:
            document, _ = read_json(path)
            if document["schema"] != SCHEMA or document["version"] != VERSION:
                return Found(None, damaged=True)
            if (document["image"], document["detector"]) != (image, detector):
                return Found(None, damaged=True)
            box = np.array(document["box_2d"], dtype=np.float64).reshape(-1, 4)
            return Found(Detections(box, np.array(document["score"]), np.array(document["label"], dtype=np.int64)))
        except (InputError, KeyError, TypeError, ValueError, OverflowError):
            return Found(None, damaged=True)

    def put(self, image: str, detector: str, found: Detections) -> None:
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
            "box_2d": found.box_2d.tolist(),
            "score": found.score.tolist(),
            "label": found.label.tolist(),
        }
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot be made: {error.strerror}", Place(str(path.parent))) from None
        write_text(path, json.dumps(document, allow_nan=False) + "\n")

    def _path(self, image: str, detector: str) -> Path:
        # One folder per detector, one more level so that no folder holds a million files.
        return self.folder / detector[:32] / image[:2] / f"{image}.json"
