"""Which images and objects several detectors have in common."""

from __future__ import annotations

import re

import numpy as np
import pytest
from collision_strategies import some_pairs
from hypothesis import given

from verifier.base.errors import UsageError
from verifier.collision.pairs import Pairs, joined


def pairs_of(*rows, images, names=()):
    """From (image, true); what is reported is the row's number."""
    image = np.array([row[0] for row in rows], dtype=np.int64)
    return Pairs(
        np.array([float(row[1]) for row in rows]), np.arange(len(rows), dtype=float), image, images, "", names
    )


def test_objects_of_named_images():
    first = pairs_of((0, 5), (0, 7), (1, 5), images=3, names=("a", "b", "c"))
    second = pairs_of((1, 7), (0, 5), (2, 9), images=3, names=("b", "a", "d"))
    joint = joined([first, second])
    # Images a, b, c, d, so the second's images are 1, 0, 3. Objects by image and distance: a5 (the first's only), a7
    # and b5 (both), d9 (the second's only).
    assert joint.pairs[1].image_names == ("a", "b", "c", "d")
    assert joint.pairs[1].image.tolist() == [0, 1, 3]
    assert joint.pair_of.tolist() == [[0, 1, 2, -1], [-1, 0, 1, 2]]


def test_equal_distances_in_one_image_are_several_objects():
    first = pairs_of((0, 5), (0, 5), (0, 6), images=1)
    second = pairs_of((0, 5), (0, 5), (0, 5), images=1)
    joint = joined([first, second])
    assert joint.pair_of.tolist() == [[0, 1, -1, 2], [0, 1, 2, -1]]
    assert joint.object_count == 4
    assert joint.common_objects == 2


@given(some_pairs(smallest=0), some_pairs(smallest=0))
def test_every_pair_is_one_object(first, second):
    count = max(first.image_count, second.image_count)
    widened = [Pairs(each.true_m, each.predicted_m, each.image, count) for each in (first, second)]
    joint = joined(widened)
    objects = [{} for _ in range(joint.object_count)]
    for detector, row in enumerate(joint.pair_of):
        held = row[row >= 0]
        assert sorted(held.tolist()) == list(range(len(widened[detector])))
        for number, pair in enumerate(row.tolist()):
            if pair >= 0:
                objects[number][detector] = (widened[detector].image[pair], widened[detector].true_m[pair])
    # An object of both has one image and distance; what only one has, the other has no further pair for.
    assert all(len(set(each.values())) == 1 for each in objects)
    for key in {value for each in objects for value in each.values()}:
        kinds = {tuple(each) for each in objects if key in each.values()}
        assert kinds <= {(0, 1), (0,)} or kinds <= {(0, 1), (1,)}


@pytest.mark.parametrize(
    ("detectors", "message"),
    [
        ([pairs_of(images=1)], "at least two detectors are needed to compare them"),
        (
            [pairs_of(images=1, names=("a",)), pairs_of(images=1)],
            "some detectors name their images and some do not: their images cannot be recognised",
        ),
        (
            [pairs_of(images=1), pairs_of(images=3)],
            "the detectors have different numbers of images, [1, 3], and no names for them",
        ),
    ],
)
def test_what_cannot_be_joined(detectors, message):
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        joined(detectors)
