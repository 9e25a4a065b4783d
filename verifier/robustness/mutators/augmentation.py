"""Mutations inside other people's pipelines: MAITE augmentations and NRTK perturbers.

Neither library is imported: `MaiteAugmentation` follows the augmentation protocol of MAITE
(github.com/mit-ll-ai-technology/maite), `NrtkPerturber` the calls of NRTK's `PerturbImage` (github.com/Kitware/nrtk),
so that it can be put into NRTK's own MAITE wrappers. Boxes move along with rotation and truncation.
"""

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from verifier.perception.detections.distances import LARGEST_M
from verifier.robustness.mutators.frames import Frame
from verifier.robustness.mutators.mutation import (
    AnyMutation,
    apply,
    generator_for,
    is_random,
    mutation_of,
    needs_depth,
)
from verifier.robustness.settings import Pixels

DepthOf: TypeAlias = Callable[[Mapping[str, Any]], NDArray[np.float64]]
Batch: TypeAlias = tuple[Sequence[Any], Sequence[Any], Sequence[Mapping[str, Any]]]
APPLIED = "verifier_mutations"
"""Key of a datum's metadata: the texts of the mutations applied to it, in order."""


@dataclass(frozen=True, eq=False)
class Target:
    """An object-detection target of MAITE: boxes (n, 4), labels (n,), scores (n,) or (n, classes)."""

    boxes: NDArray[Any]
    labels: NDArray[Any]
    scores: NDArray[Any]


@dataclass(frozen=True, eq=False)
class MaiteAugmentation:
    """A mutation as a MAITE augmentation of object detection; other targets are passed on as they are.

    Attributes:
        mutation: what is applied to every image.
        seed: of everything that is drawn; what an image gets depends on it and on the `id` of its metadata alone.
        depth: metres for all pixels, or what gives the depth map (H, W) of a datum from its metadata.
        pixels: "uint8", 0 to 255, or "float32", 0 to 1 with 256 levels. The protocol leaves it open.
        metadata: `id`, the text of the mutation with the seed if it draws.

    Raises:
        ValueError: the mutation needs depth and there is none, or a value that is none of these.
    """

    mutation: AnyMutation
    seed: int = 0
    depth: float | DepthOf | None = None
    pixels: Pixels = "uint8"
    metadata: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        if needs_depth(self.mutation) and self.depth is None:
            raise ValueError(f"{self.mutation.text} needs depth: give metres, or what gives a datum's depth map")
        if self.pixels not in get_args(Pixels):
            raise ValueError(f"expected pixels 'uint8' or 'float32', got {self.pixels!r}")
        _check_seed(self.seed)
        if not callable(self.depth):
            _check_metres(self.depth)
        seeded = f" seed={self.seed}" if is_random(self.mutation) else ""
        object.__setattr__(self, "metadata", {"id": f"{self.mutation.text}{seeded}"})

    def __call__(self, batch: Batch, /) -> tuple[list[NDArray[Any]], list[Any], list[dict[str, object]]]:
        """The batch after the mutation: images (3, H, W), targets, metadata; the arguments are not changed.

        Raises:
            ValueError: an image that is not (3, H, W) of the declared type; lists, or boxes, labels and scores of a
                target, of different lengths; metadata without an `id`.
            InputError: depth that does not fit.
        """
        images, targets, metadata = [], [], []
        for image, target, datum in zip(*batch, strict=True):
            made, moved = self._mutated(np.asarray(image), target, datum)
            images.append(made)
            targets.append(moved)
            metadata.append({**datum, APPLIED: (*datum.get(APPLIED, ()), self.mutation.text)})
        return images, targets, metadata

    def _mutated(self, image: NDArray[Any], target: Any, datum: Mapping[str, object]) -> tuple[NDArray[Any], Any]:
        if "id" not in datum:
            raise ValueError("the metadata of a datum has no 'id', on which depends what is drawn for it")
        has_boxes = all(hasattr(target, name) for name in ("boxes", "labels", "scores"))
        boxes = _boxes(target) if has_boxes else None
        pixels = np.ascontiguousarray(self._levels(image).transpose(1, 2, 0))
        depth = None
        if needs_depth(self.mutation):
            height, width = pixels.shape[:2]
            depth = self.depth(datum) if callable(self.depth) else np.full((height, width), self.depth)
        rng = generator_for(self.seed, str(datum["id"]), self.mutation)
        frame = apply(self.mutation, Frame(pixels, depth, boxes), rng)
        made = np.ascontiguousarray(frame.pixels.transpose(2, 0, 1))
        image = made if self.pixels == "uint8" else (made / np.float32(255)).astype(np.float32)
        if not has_boxes or frame.boxes is None or frame.kept is None:
            return image, target
        labels, scores = np.asarray(target.labels), np.asarray(target.scores)
        return image, Target(frame.boxes, labels[frame.kept], scores[frame.kept])

    def _levels(self, image: NDArray[Any]) -> NDArray[np.uint8]:
        if image.ndim != 3 or image.shape[0] != 3 or image.dtype != self.pixels:
            raise ValueError(f"expected an image (3, H, W) {self.pixels}, got {image.dtype} of shape {image.shape}")
        if self.pixels == "uint8":
            return np.asarray(image)
        if not ((image >= 0) & (image <= 1)).all():
            raise ValueError("expected float32 levels from 0 to 1")
        return np.asarray(np.rint(image * 255).astype(np.uint8))


def _boxes(target: Any) -> NDArray[np.float64]:
    """(n, 4) the boxes of a target that has as many labels and scores."""
    boxes = np.asarray(target.boxes, np.float64)
    if not boxes.size:
        boxes = np.zeros((0, 4))
    lengths = len(np.atleast_1d(target.labels)), len(np.atleast_1d(target.scores))
    if boxes.ndim != 2 or boxes.shape[1] != 4 or lengths != (len(boxes), len(boxes)):
        raise ValueError(
            f"expected boxes (n, 4) with n labels and n scores, got boxes of shape {boxes.shape}, "
            f"{lengths[0]} labels and {lengths[1]} scores"
        )
    return boxes


def _check_seed(seed: object) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"expected a whole number from 0 as the seed, got {seed!r}")


def _check_metres(depth: object) -> None:
    if depth is None:
        return
    number = isinstance(depth, int | float | np.integer | np.floating) and not isinstance(depth, bool)
    if not number or not 0 < float(depth) <= LARGEST_M:  # type: ignore[arg-type]
        raise ValueError(f"expected a depth in metres above 0 and up to {LARGEST_M:g}, got {depth!r}")


@dataclass(frozen=True)
class NrtkPerturber:
    """A mutation that is called as NRTK calls its perturbers.

    It is none of NRTK's classes; where one is asked for by `isinstance`, `PerturbImage.register(NrtkPerturber)`.

    Attributes:
        mutation: what is applied to every image.
        seed: of everything that is drawn; what an image gets depends on it and on its pixels alone.
        depth_m: metres for all pixels, where no `depth_map` is passed to the call.

    Raises:
        ValueError: a seed or a depth that is none.
    """

    mutation: AnyMutation
    seed: int = 0
    depth_m: float | None = None

    def __post_init__(self) -> None:
        _check_seed(self.seed)
        _check_metres(self.depth_m)

    def __call__(
        self,
        *,
        image: NDArray[np.uint8],
        boxes: Iterable[tuple[Any, dict[Hashable, float]]] | None = None,
        depth_map: NDArray[Any] | None = None,
        **_: Any,
    ) -> tuple[NDArray[np.uint8], list[tuple[Any, dict[Hashable, float]]] | None]:
        """The image (H, W, 3) uint8 and its boxes after the mutation.

        Boxes are pairs of a box with `min_vertex` and `max_vertex`, made again as `type(box)(min_vertex=...,
        max_vertex=...)`, and a dictionary that is passed on. `depth_map` is (H, W) or (H, W, 1), in metres.

        Raises:
            ValueError: no (H, W, 3) uint8 image, or a depth map of another shape.
            InputError: depth is needed and there is none, or it does not fit.
        """
        pairs = None if boxes is None else list(boxes)
        corners = None
        if pairs is not None:
            corners = np.array([[*box.min_vertex, *box.max_vertex] for box, _ in pairs], np.float64).reshape(-1, 4)
        depth = None
        if depth_map is not None:
            depth = np.asarray(depth_map)
            if depth.ndim == 3 and depth.shape[2] == 1:
                depth = depth[..., 0]
            if depth.ndim != 2:
                raise ValueError(f"expected a depth map (H, W) or (H, W, 1), got one of shape {depth.shape}")
        elif self.depth_m is not None:
            depth = np.full(image.shape[:2], self.depth_m)
        name = hashlib.sha256(np.ascontiguousarray(image).tobytes()).hexdigest()
        frame = apply(self.mutation, Frame(image, depth, corners), generator_for(self.seed, name, self.mutation))
        if pairs is None or frame.boxes is None or frame.kept is None:
            return frame.pixels, None
        moved = [
            (type(pairs[old][0])(min_vertex=(x1, y1), max_vertex=(x2, y2)), dict(pairs[old][1]))
            for old, (x1, y1, x2, y2) in zip(frame.kept.tolist(), frame.boxes.tolist(), strict=True)
        ]
        return frame.pixels, moved

    perturb = __call__

    def get_config(self) -> dict[str, object]:
        """As JSON values."""
        depth_m = None if self.depth_m is None else float(self.depth_m)
        return {"mutation": self.mutation.document(), "seed": int(self.seed), "depth_m": depth_m}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """The perturber whose `get_config` this is.

        Raises:
            ValueError: it is none.
        """
        if set(config) != {"mutation", "seed", "depth_m"}:
            raise ValueError(f"expected mutation, seed and depth_m, got {sorted(config)}")
        return cls(mutation_of(config["mutation"]), config["seed"], config["depth_m"])
