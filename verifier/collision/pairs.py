"""Pairs of true and reported distance, by image: what every part of this package reads.

Several detectors on the same world: which images and which objects their pairs have in common.

Detectors are compared on the same drawn objects and images, so what is common must be known. Images are the same when
they have the same name; without names, when they have the same number. Objects of one image are the same when they
have the same true distance, up to `SAME_M` (the k-th with that distance is the k-th): tables round distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from verifier.base.arrays import Floats, Ints, freeze
from verifier.base.errors import UsageError


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs (D_i, D^_i) of one detector (Xu et al., WSC 2021, Sec. 3.2): an object and the report matched to it.

    Attributes:
        true_m: (n,) D, labelled distance of each paired object; finite, from 0.
        predicted_m: (n,) D^, the distance reported for it; finite, from 0.
        image: (n,) int64, the image of each pair, in 0..image_count-1.
        image_count: number of images. One without a pair counts as N = 0.
        image_names: one different name per image, or none. By them the images of two detectors are recognised.
        drive: (image_count,) the number of each image's drive; empty where drives are not known.

    Raises:
        ValueError: shapes differ, a distance is negative or not finite, or an image does not exist.
    """

    true_m: Floats
    predicted_m: Floats
    image: Ints
    image_count: int
    title: str = ""
    image_names: tuple[str, ...] = ()
    drive: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        kinds = {"true_m": np.float64, "predicted_m": np.float64, "image": np.int64, "drive": np.int64}
        for name in ("image", "drive"):
            given = np.asarray(getattr(self, name))
            if given.size and given.dtype.kind not in "iu":
                raise ValueError(f"{name}: expected whole numbers")
        freeze(self, kinds)
        if self.image.ndim != 1 or not self.true_m.shape == self.predicted_m.shape == self.image.shape:
            raise ValueError("expected as many true distances as reported distances and images")
        for name in ("true_m", "predicted_m"):
            values = getattr(self, name)
            if not np.all(np.isfinite(values) & (values >= 0)):
                raise ValueError(f"{name}: distances must be finite and at least 0")
        if self.image_count < 1 or np.any((self.image < 0) | (self.image >= self.image_count)):
            raise ValueError(f"images must be in 0..{self.image_count - 1}")
        if self.image_names and len(set(self.image_names)) != len(self.image_names):
            raise ValueError("the names of the images must differ")
        if self.image_names and len(self.image_names) != self.image_count:
            raise ValueError(f"{len(self.image_names)} names for {self.image_count} images")
        if len(self.drive) not in (0, self.image_count):
            raise ValueError(f"{len(self.drive)} drives for {self.image_count} images")

    def __len__(self) -> int:
        return len(self.true_m)

    @property
    def per_image(self) -> Ints:
        """(image_count,) N(omega), the number of pairs of each image."""
        return np.bincount(self.image, minlength=self.image_count).astype(np.int64)

    @property
    def count_distribution(self) -> Ints:
        """(largest N + 1,) c_m, the number of images with m pairs; `c_m[0]` are those without any."""
        return np.bincount(self.per_image).astype(np.int64)

    def take(self, images: Ints) -> Pairs:
        """The pairs of some images, each at most once, which are renumbered in the given order."""
        images = np.asarray(images, dtype=np.int64)
        number = np.full(self.image_count, -1, dtype=np.int64)
        number[images] = np.arange(len(images))
        kept = number[self.image] >= 0
        names = tuple(self.image_names[i] for i in images.tolist()) if self.image_names else ()
        pairs = self.true_m[kept], self.predicted_m[kept], number[self.image[kept]]
        drive = self.drive[images] if len(self.drive) else self.drive
        return Pairs(*pairs, len(images), self.title, names, drive)


def split(image_count: int, fraction: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Divide images at random: about `fraction` of them, and the others; both sorted, neither empty.

    Raises:
        UsageError: there are fewer than two images.
    """
    if image_count < 2:
        raise UsageError(f"at least two images are needed to divide them, there is {image_count}")
    order = rng.permutation(image_count)
    first = min(max(round(fraction * image_count), 1), image_count - 1)
    return np.sort(order[:first]), np.sort(order[first:])


SAME_M = 0.001
"""Metres by which the true distances of one object may differ between two files, for each of two roundings."""


@dataclass(frozen=True, eq=False)
class JointPairs:
    """The pairs of K detectors over all their images and objects.

    Attributes:
        pairs: of each detector, with images renumbered to those of all detectors together.
        pair_of: (K, m) which pair of a detector each of the m objects is; -1 where it has none.
    """

    pairs: tuple[Pairs, ...]
    pair_of: Ints

    @property
    def object_count(self) -> int:
        """m, objects that any detector has a pair for."""
        return int(self.pair_of.shape[1])

    @property
    def common_objects(self) -> int:
        """Objects that every detector has a pair for."""
        return int(np.all(self.pair_of >= 0, axis=0).sum())


def joined(detectors: Sequence[Pairs]) -> JointPairs:
    """Recognise the common images and objects of some detectors.

    Raises:
        UsageError: fewer than two detectors; some have names of images and some do not; without names, different
            numbers of images.
    """
    if len(detectors) < 2:
        raise UsageError("at least two detectors are needed to compare them")
    named = [bool(detector.image_names) for detector in detectors]
    if any(named) and not all(named):
        raise UsageError("some detectors name their images and some do not: their images cannot be recognised")
    if all(named):
        names, maps = named_places([detector.image_names for detector in detectors])
    else:
        counts = {detector.image_count for detector in detectors}
        if len(counts) > 1:
            raise UsageError(
                f"the detectors have different numbers of images, {sorted(counts)}, and no names for them"
            )
        maps, names = [np.arange(detector.image_count) for detector in detectors], ()
    total = len(names) or detectors[0].image_count
    drive = common_drives([detector.drive for detector in detectors], maps, total)
    pairs = tuple(
        replace(detector, image=where[detector.image], image_count=total, image_names=names, drive=drive)
        for detector, where in zip(detectors, maps, strict=True)
    )
    return JointPairs(pairs, _pair_of(pairs))


def named_places(sources: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], list[Ints]]:
    """All names of some sources, in the order in which they first occur, and where those of each stand among them."""
    number = {name: at for at, name in enumerate(dict.fromkeys(chain.from_iterable(sources)))}
    return tuple(number), [np.array([number[name] for name in source], dtype=np.int64) for source in sources]


def common_drives(drives: Sequence[Ints], places: Sequence[Ints], image_count: int) -> Ints:
    """(image_count,) the drive of each image by what any source says; empty where none says it of some image.

    Sources number drives each in its own way: drives that have an image in common are one.

    Args:
        drives: of the images of each source; empty where it knows none.
        places: of the same images among all.
    """
    offsets = np.cumsum([0, *(int(drive.max(initial=-1)) + 1 for drive in drives)])
    known = [
        (drive + start, place) for drive, start, place in zip(drives, offsets, places, strict=False) if len(drive)
    ]
    if not known or np.bincount(np.concatenate([place for _, place in known]), minlength=image_count).min() == 0:
        return np.zeros(0, np.int64)
    node, image = (np.concatenate(column) for column in zip(*known, strict=True))
    every = int(offsets[-1]) + image_count
    graph = coo_array((np.ones(len(node)), (node, offsets[-1] + image)), shape=(every, every))
    of_images = connected_components(graph, directed=False)[1][offsets[-1] :]
    return np.unique(of_images, return_inverse=True)[1].astype(np.int64)


def _pair_of(detectors: Sequence[Pairs]) -> Ints:
    """(K, m), objects in order of image, true distance and rank among equals."""
    owner = np.repeat(np.arange(len(detectors)), [len(detector) for detector in detectors])
    pair = np.concatenate([np.arange(len(detector)) for detector in detectors])
    image = np.concatenate([detector.image for detector in detectors])
    true = np.concatenate([detector.true_m for detector in detectors])
    order = np.lexsort((pair, true, image))
    owner, pair, image, true = owner[order], pair[order], image[order], true[order]
    # Numbers the places: runs of pairs of one image whose distances are steps of at most SAME_M apart.
    place = np.zeros(len(order), dtype=np.int64)
    place[1:] = np.cumsum((np.diff(image) != 0) | (np.diff(true) > SAME_M))
    key = place * len(detectors) + owner
    by_owner = np.argsort(key, kind="stable")
    _, starts, counts = np.unique(key[by_owner], return_index=True, return_counts=True)
    rank = np.empty(len(order), dtype=np.int64)
    rank[by_owner] = np.arange(len(order)) - np.repeat(starts, counts)
    objects, index = np.unique(place * len(order) + rank, return_inverse=True)
    numbers = np.full((len(detectors), len(objects)), -1, dtype=np.int64)
    numbers[owner, index] = pair
    return numbers
