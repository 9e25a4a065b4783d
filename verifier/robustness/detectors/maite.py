"""Detectors that follow the object-detection protocol of MAITE (github.com/mit-ll-ai-technology/maite).

Such a model is called with a sequence of arrays (3, H, W) and gives, for each, an object with `boxes` (n, 4) left,
top, right, bottom, `labels` (n,) and `scores`, (n,) or (n, classes). Its `metadata` has an `id`, and may have
`index2label`. Nothing of MAITE is imported: the object needs only these attributes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.robustness.detectors.protocol import Detections, Image
from verifier.robustness.settings import Pixels


@dataclass(frozen=True)
class MaiteDetector:
    """A MAITE model as a detector under test. Scores (n, classes) count with their greatest, as in `from_maite`.

    Attributes:
        version: names its weights and settings. The model itself does not tell them, and detections that were kept
            are only found again by their name: change it whenever the model changes.
        index2label: name of each label; None: what `model.metadata` says.
        pixels: "uint8", 0 to 255, or "float32", 0 to 1. The protocol leaves it open.

    Raises:
        UsageError: no version, no id, or no names of labels.
    """

    model: Callable[[Sequence[Any]], Sequence[Any]]
    version: str
    index2label: Mapping[int, str] | None = None
    pixels: Pixels = "uint8"
    classes: tuple[str, ...] = field(init=False)
    identity: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        if not self.version:
            raise UsageError("a MAITE model needs a version, under which its detections are kept")
        if self.pixels not in get_args(Pixels):
            raise UsageError(f"pixels: expected 'uint8' or 'float32', got {self.pixels!r}")
        metadata = getattr(self.model, "metadata", {})
        if not isinstance(metadata, Mapping) or not isinstance(metadata.get("id"), str):
            raise UsageError("the MAITE model has no metadata['id']")
        names = self.index2label or metadata.get("index2label")
        if not names:
            raise UsageError("the MAITE model names no labels: give index2label")
        object.__setattr__(self, "index2label", dict(sorted((int(index), str(names[index])) for index in names)))
        classes = tuple((self.index2label or {}).values())
        if len(set(classes)) != len(classes):
            raise UsageError("two labels of the MAITE model have the same name")
        object.__setattr__(self, "classes", classes)
        labels = [[index, name] for index, name in (self.index2label or {}).items()]
        identity = {"detector": "maite", "id": metadata["id"], "version": self.version}
        object.__setattr__(self, "identity", {**identity, "labels": labels, "pixels": self.pixels})

    def __call__(self, images: Sequence[Image]) -> list[Detections]:
        """All images in one call of the model.

        Raises:
            InputError: the model's output is not what the protocol says, or is not finite.
        """
        given = [np.ascontiguousarray(image.pixels.transpose(2, 0, 1)) for image in images]
        if self.pixels == "float32":
            given = [(pixels / 255.0).astype(np.float32) for pixels in given]
        targets = list(self.model(given))
        if len(targets) != len(images):
            raise self._fail(f"{len(targets)} targets for {len(images)} images")
        return [self._detections(target, image) for target, image in zip(targets, images, strict=True)]

    def _detections(self, target: Any, image: Image) -> Detections:
        where = f"image {shown(image.name)}"
        box, label, score = (self._array(target, name, where) for name in ("boxes", "labels", "scores"))
        n = len(label)
        if n == 0 and box.size == score.size == 0:
            box, score = np.zeros((0, 4)), np.zeros(0)
        if box.shape != (n, 4) or label.shape != (n,) or score.shape[:1] != (n,) or score.ndim not in (1, 2):
            shapes = f"boxes {box.shape}, labels {label.shape}, scores {score.shape}"
            raise self._fail(f"{where}: expected shapes (n, 4), (n,), (n,) or (n, classes), found {shapes}")
        known = np.array(list(self.index2label or {}), dtype=np.int64)
        place = np.minimum(np.searchsorted(known, label), len(known) - 1)
        if (unknown := known[place] != label).any():
            raise self._fail(f"{where}: label {label[unknown][0]:g} has no name")
        if score.ndim == 2:
            score = score.max(axis=1, initial=-np.inf)
        if not np.isfinite(score).all() or not np.isfinite(box).all():
            raise self._fail(f"{where}: a score or a box is not finite")
        if (box[:, 2:] < box[:, :2]).any():
            raise self._fail(f"{where}: a box has a negative size; expected left, top, right, bottom")
        return Detections(box, score, place)

    def _array(self, target: Any, name: str, where: str) -> NDArray[np.float64]:
        value = getattr(target, name, None)
        if value is None:
            raise self._fail(f"{where}: the target has no {name}")
        try:
            return np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise self._fail(f"{where}: {name} are no array of numbers") from None

    def _fail(self, message: str) -> InputError:
        return InputError(message, Place(f"<{shown(self.identity['id'])[1:-1]}>"))
