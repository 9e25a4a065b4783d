"""Several detectors on the same world: which images and which objects their pairs have in common.

Detectors are compared on the same drawn objects and images, so what is common must be known. Images are the same when
they have the same name; without names, when they have the same number. Objects of one image are the same when they
have the same true distance, up to `SAME_M` (the k-th with that distance is the k-th): tables round distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import UsageError
from verifier.collision.pairs import Pairs

SAME_M = 0.001
"""Metres by which the true distances of one object may differ between two files, for each of two roundings."""


@dataclass(frozen=True, eq=False)
class JointPairs:
    """The pairs of K detectors over all their images and objects.

    Attributes:
        pairs: of each detector, with images renumbered to 0..image_count-1, those of all detectors together.
        image_count: number of images any detector has.
        pair_of: (K, m) which pair of a detector each of the m objects is; -1 where it has none.
        common_images: number of images that every detector has.
    """

    pairs: tuple[Pairs, ...]
    image_count: int
    pair_of: NDArray[np.int64]
    common_images: int

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
    named = [bool(each.image_names) for each in detectors]
    if any(named) and not all(named):
        raise UsageError("some detectors name their images and some do not: their images cannot be recognised")
    if all(named):
        number: dict[str, int] = {}
        for each in detectors:
            for name in each.image_names:
                number.setdefault(name, len(number))
        maps = [np.array([number[name] for name in each.image_names], dtype=np.int64) for each in detectors]
        names = tuple(number)
    else:
        counts = {each.image_count for each in detectors}
        if len(counts) > 1:
            raise UsageError(
                f"the detectors have different numbers of images, {sorted(counts)}, and no names for them"
            )
        maps, names = [np.arange(each.image_count) for each in detectors], ()
    total = len(names) or detectors[0].image_count
    held = np.sum([np.bincount(each, minlength=total) for each in maps], axis=0)
    pairs = tuple(
        replace(each, image=where[each.image], image_count=total, image_names=names)
        for each, where in zip(detectors, maps, strict=True)
    )
    return JointPairs(pairs, total, _pair_of(pairs), int((held == len(detectors)).sum()))


def _pair_of(detectors: Sequence[Pairs]) -> NDArray[np.int64]:
    """(K, m), objects in order of image, true distance and rank among equals."""
    owner = np.repeat(np.arange(len(detectors)), [len(each) for each in detectors])
    pair = np.concatenate([np.arange(len(each)) for each in detectors])
    image = np.concatenate([each.image for each in detectors])
    true = np.concatenate([each.true_m for each in detectors])
    order = np.lexsort((pair, true, image))
    owner, pair, image, true = owner[order], pair[order], image[order], true[order]
    # Numbers the places: runs of pairs of one image whose distances are steps of at most SAME_M apart.
    place = np.zeros(len(order), dtype=np.int64)
    place[1:] = np.cumsum((np.diff(image) != 0) | (np.diff(true) > SAME_M))
    by_owner = np.lexsort((owner, place))
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(place[by_owner]) != 0) | (np.diff(owner[by_owner]) != 0)
    starts = np.flatnonzero(new)
    rank = np.empty(len(order), dtype=np.int64)
    rank[by_owner] = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    key = np.lexsort((owner, rank, place))
    fresh = np.ones(len(key), dtype=bool)
    fresh[1:] = (np.diff(place[key]) != 0) | (np.diff(rank[key]) != 0)
    index = np.cumsum(fresh) - 1
    found = np.full((len(detectors), int(fresh.sum())), -1, dtype=np.int64)
    found[owner[key], index] = pair[key]
    return found
