"""Pairs by image, and the braking policy."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import UsageError
from verifier.collision.estimator import SPEED_UNITS, BrakingPolicy, speed_mps
from verifier.collision.pairs import Pairs, split


def some_pairs(**changes):
    given = {
        "true_m": np.array([1.0, 2.0, 3.0, 4.0]),
        "predicted_m": np.array([1.5, 2.5, 3.5, 4.5]),
        "image": np.array([2, 0, 2, 4]),
        "image_count": 5,
    }
    return Pairs(**(given | changes))


def test_counts_of_images():
    pairs = some_pairs()
    assert pairs.per_image.tolist() == [1, 0, 2, 0, 1]
    assert pairs.count_distribution.tolist() == [2, 2, 1]
    assert len(pairs) == 4


def test_no_pair_at_all():
    pairs = Pairs(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64), 3)
    assert pairs.count_distribution.tolist() == [3]


def test_pairs_cannot_be_changed():
    given = np.array([1.0])
    pairs = Pairs(given, np.array([2.0]), np.array([0]), 1)
    given[0] = 7
    assert pairs.true_m[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        pairs.true_m[0] = 7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"true_m": np.array([1.0, 2.0])}, "expected as many true distances as reported distances and images"),
        ({"true_m": np.array([1.0, -2.0, 3, 4])}, "true_m: distances must be finite and at least 0"),
        ({"predicted_m": np.array([1.0, np.nan, 3, 4])}, "predicted_m: distances must be finite and at least 0"),
        ({"predicted_m": np.array([1.0, np.inf, 3, 4])}, "predicted_m: distances must be finite and at least 0"),
        ({"image": np.array([0, 1, 2, 5])}, "images must be in 0..4"),
        ({"image": np.array([0, 1, 2, -1])}, "images must be in 0..4"),
        ({"image": np.array([0.0, 1.5, 2.0, 3.0])}, "image: expected whole numbers"),
        ({"image_names": ("a", "b")}, "2 names for 5 images"),
        ({"image_names": ("a", "b", "c", "d", "a")}, "the names of the images must differ"),
    ],
)
def test_pairs_are_valid_from_birth(changes, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        some_pairs(**changes)


def test_taking_images_renumbers_them():
    pairs = some_pairs(image_names=tuple("abcde"))
    taken = pairs.take(np.array([4, 1, 2]))
    assert taken.image_names == ("e", "b", "c")
    assert taken.image.tolist() == [2, 2, 0]
    assert taken.true_m.tolist() == [1.0, 3.0, 4.0]
    assert taken.image_count == 3


@given(count=st.integers(2, 50), fraction=st.floats(0.01, 0.99), seed=st.integers(0, 1000))
def test_split_divides(count, fraction, seed):
    first, second = split(count, fraction, np.random.default_rng(seed))
    assert sorted([*first.tolist(), *second.tolist()]) == list(range(count))
    assert len(first)
    assert len(second)
    assert abs(len(first) - fraction * count) <= 1


def test_split_that_cannot_be():
    with pytest.raises(UsageError, match=r"^at least two images are needed to divide them, there is 1$"):
        split(1, 0.5, np.random.default_rng(0))


def test_units_are_exact():
    # A mile is 1609.344 m, a nautical mile 1852 m, an hour 3600 s.
    assert SPEED_UNITS["mph"] == Fraction(1609344, 1000 * 3600)
    assert SPEED_UNITS["kn"] == Fraction(1852, 3600)
    assert SPEED_UNITS["km/h"] == Fraction(1000, 3600)
    assert speed_mps(36, "km/h") == 10
    assert speed_mps(25, "mph") == 11.176


@pytest.mark.parametrize(
    ("value", "unit", "message"),
    [
        (1.0, "kmh", "unknown unit of speed 'kmh'\n  hint: did you mean 'km/h'? known: km/h, kn, m/s, mph"),
        (-1.0, "mph", "a speed must be finite and at least 0, got -1 mph"),
        (float("nan"), "mph", "a speed must be finite and at least 0, got nan mph"),
    ],
)
def test_speeds_that_are_none(value, unit, message):
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        speed_mps(value, unit)


def test_stopping_distances_of_the_paper(shared):
    import json

    numbers = json.loads((shared / "reference/002_parameters.json").read_text())
    for name, deceleration in (("a_max", numbers["a_max_m_s2"]), ("a_safe", numbers["a_safe_m_s2"])):
        policy = BrakingPolicy(deceleration, numbers["reaction_time_s"])
        for speed, distance in numbers["S_of_v_m"][name].items():
            speed = speed_mps(float(speed.removesuffix("mph")), "mph")
            assert policy.stopping_distance_m(speed) == pytest.approx(distance, rel=1e-12, abs=0)


def test_stopping_distance_by_hand():
    # 20 m/s, half a second and 5 m/s^2: 20^2 / 10 + 10 = 50.
    assert BrakingPolicy(5.0, 0.5).stopping_distance_m(20.0) == 50.0
    assert BrakingPolicy(5.0, 0.0).stopping_distance_m([0.0, 10.0]).tolist() == [0.0, 10.0]


@pytest.mark.parametrize(
    ("deceleration", "reaction", "message"),
    [
        (-6.86, 0.1, "the deceleration must be positive, got -6.86 m/s^2: speed falls by it"),
        (0.0, 0.1, "the deceleration must be positive, got 0 m/s^2: speed falls by it"),
        (float("inf"), 0.1, "the deceleration must be positive, got inf m/s^2: speed falls by it"),
        (5.0, -0.1, "the reaction time must be at least 0, got -0.1 s"),
        (5.0, float("nan"), "the reaction time must be at least 0, got nan s"),
    ],
)
def test_policies_that_are_none(deceleration, reaction, message):
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        BrakingPolicy(deceleration, reaction)


@pytest.mark.parametrize("bad", [-1.0, float("nan")])
def test_speeds_are_not_negative(bad):
    with pytest.raises(ValueError, match="speeds must be at least 0"):
        BrakingPolicy(5.0).stopping_distance_m([1.0, bad])
