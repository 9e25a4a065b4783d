"""The estimator on cases solved by hand, with exact fractions.

The kernel's width is 1 / sqrt(2 ln 2), so that a pair k metres away has the weight exp(-k^2 ln 2) = 2^(-k^2): 1, 1/2,
1/16, 1/512. Braking with 1/2 m/s^2 and no reaction time, S(v) = v^2.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest

from verifier.base.errors import LimitError, UsageError
from verifier.collision.estimator import BrakingPolicy, EstimatorSettings, Grid, collision_map
from verifier.collision.kernel import Reason
from verifier.collision.pairs import Pairs
from verifier.collision.score import oracle_map

HALVING = EstimatorSettings(bandwidth="fixed", width_m=1 / math.sqrt(2 * math.log(2)))
POLICY = BrakingPolicy(0.5, 0.0)


def pairs_of(*rows, images=None):
    """From (image, true, reported)."""
    image, true, reported = (np.array(column) for column in zip(*rows, strict=True))
    return Pairs(true.astype(float), reported.astype(float), image, images or int(image.max()) + 1)


def probability(pairs, y, stopping, settings=HALVING):
    return collision_map(pairs, Grid(np.array([y]), np.sqrt([stopping])), POLICY, settings).probability[0, 0]


FOUR = pairs_of((0, 9, 10), (0, 12, 11), (1, 8, 12), (2, 20, 9), images=4)


def test_four_pairs():
    # y = 10, S = 10. Weights at y: 1, 1/2, 1/16, 1/2, together 33/16; of those with D > 10, the pairs (12, 11) and
    # (20, 9): 1/2 + 1/2 = 1. r1 = 16/33.
    # D > 10 and D^ >= 10: (12, 11), p = 1/4. D^ >= 10: three, q = 3/4. c_1 = 2, c_2 = 1:
    # r2 = (2 + 2/4) / (2 + 2*3/4) = (5/2) / (7/2) = 5/7. lambda = 1 - 16/33 * 5/7 = 151/231.
    assert probability(FOUR, 10.0, 10.0) == pytest.approx(float(Fraction(151, 231)), rel=1e-14, abs=0)


def test_a_pair_on_the_stopping_distance_collides():
    # S = 3^2 = 9 exactly: the pair (9, 10) has D > 9 no more than at S = 10, so nothing changes.
    assert probability(FOUR, 10.0, 9.0) == probability(FOUR, 10.0, 10.0)
    # S = 4: D > 4 for all four. S = 16: only (20, 9), r1 = (1/2) / (33/16) = 8/33, p = 0, r2 = 2 / (7/2) = 4/7.
    assert probability(FOUR, 10.0, 4.0) == 0
    assert probability(FOUR, 10.0, 16.0) == pytest.approx(
        float(1 - Fraction(8, 33) * Fraction(4, 7)), rel=1e-14, abs=0
    )


def test_a_pair_reported_at_y_counts_as_there_or_further():
    # y = 11: weights 1/2, 1, 1/2, 1/16, together 33/16; S = 10: 1 + 1/16 = 17/16, r1 = 17/33.
    # p = 1/4 (the pair reported at 11 itself), q = 2/4: r2 = (5/2) / 3 = 5/6.
    assert probability(FOUR, 11.0, 10.0) == pytest.approx(
        float(1 - Fraction(17, 33) * Fraction(5, 6)), rel=1e-14, abs=0
    )


def test_standing_still_and_driving_into_everything():
    assert probability(FOUR, 10.0, 0.0) == 0.0
    assert probability(FOUR, 10.0, 20.0) == 1.0
    # A pair at distance 0 is hit even so: D > S(0) is false. Weights 1 and 1/2; r1 = (1/2)/(3/2), p = 0, q = 1/2.
    touching = pairs_of((0, 0, 1), (1, 5, 0))
    assert probability(touching, 1.0, 0.0) == pytest.approx(2 / 3, rel=1e-14, abs=0)


def test_only_images_with_several_objects():
    # Three objects in each of two images, c_3 = 2. y = 10, S = 10; reported 10, 11, 9 and 9, 9, 11.
    # Weights 1, 1/2, 1/2, 1/2, 1/2, 1/2, together 7/2. D > 10: 12@11, 13@9, 14@9, 15@11: 2. r1 = 4/7.
    # p = 2/6 (12@11, 15@11), q = 3/6: r2 = (1/3)^2 / (1/2)^2 = 4/9. lambda = 1 - 16/63 = 47/63.
    rows = [(0, 9, 10), (0, 12, 11), (0, 13, 9), (1, 14, 9), (1, 8, 9), (1, 15, 11)]
    assert probability(pairs_of(*rows), 10.0, 10.0) == pytest.approx(47 / 63, rel=1e-14, abs=0)


def test_beyond_every_report_only_single_objects_count():
    # y = 12, nothing is reported from there on: p = q = 0, 0^0 = 1, r2 = c_1 / c_1 = 1; lambda = 1 - r1.
    # Weights of reports 10 and 11: 1/16 and 1/2; only the second has D > 10: r1 = 8/9.
    single = pairs_of((0, 9, 10), (1, 12, 11))
    assert probability(single, 12.0, 10.0) == pytest.approx(1 / 9, rel=1e-14, abs=0)
    together = collision_map(
        pairs_of((0, 9, 10), (0, 12, 11)), Grid(np.array([12.0]), np.array([3.0])), POLICY, HALVING
    )
    assert math.isnan(together.probability[0, 0])
    assert Reason.counted(together.reason) == {Reason.NO_SINGLE_OBJECT_IMAGE: 1}


def test_the_oracle_of_four_pairs():
    # Reports 9, 12, 8, 20 at y = 10: weights 1/2, 1/16, 1/16, 2^-100; D > 10: 1/16 + 2^-100.
    # D^ >= 10 are 12 and 20, both with D > 10: p = q, r2 = 1.
    grid = Grid(np.array([10.0]), np.sqrt([10.0]))
    found = oracle_map(FOUR, collision_map(FOUR, grid, POLICY, HALVING))
    tail = Fraction(1, 2**100)
    r1 = (Fraction(1, 16) + tail) / (Fraction(5, 8) + tail)
    assert found.probability[0, 0] == pytest.approx(float(1 - r1), rel=1e-14, abs=0)
    assert found.width_m == HALVING.width_m


def test_two_widths_may_leave_the_unit_interval():
    # Reports 10, 10, 14, 18, with D > S for 14 and 18.
    # All: mean 13, sd = sqrt((9 + 9 + 1 + 25)/3) = 3.83; quartiles 10 and 15, 5/1.349 = 3.71: h = 3.71 c 4^(-1/5).
    # The two: sd = sqrt(8) = 2.83; quartiles 15 and 17, 2/1.349 = 1.48: h' = 1.48 c 2^(-1/5).
    # At y = 18, 0, 4 and 8 metres away: f' P' = (1 + exp(-8/h'^2)) / 4 / h',
    # f = (1 + exp(-8/h^2) + 2 exp(-32/h^2)) / 4 / h, r1 = 1.56.
    # q = p = 1/4, only 18 is there or further: r2 = 1.
    pairs = pairs_of((0, 1, 10), (1, 1, 10), (2, 9, 14), (3, 9, 18))
    settings = EstimatorSettings(bandwidth="normal_reference", constant=1.0, two_bandwidths=True)
    wide, narrow = 5 / 1.349 * 4**-0.2, 2 / 1.349 * 2**-0.2
    far = (1 + math.exp(-8 / narrow**2)) / narrow
    every = (1 + math.exp(-8 / wide**2) + 2 * math.exp(-32 / wide**2)) / wide
    value = probability(pairs, 18.0, 4.0, settings)
    assert value == pytest.approx(1 - far / every, rel=1e-13, abs=0)
    assert value < -0.5
    shown = collision_map(pairs, Grid(np.array([18.0]), np.array([2.0])), POLICY, settings)
    assert shown.clipped[0, 0] == 0
    assert 0 <= probability(pairs, 18.0, 4.0, EstimatorSettings("normal_reference", constant=1.0)) <= 1


def test_two_widths_without_spread_among_the_far():
    # Only one pair has D > S: no width for it, no estimate; with none the probability is 1.
    pairs = pairs_of((0, 1, 10), (1, 2, 11), (2, 3, 12), (3, 9, 14))
    settings = EstimatorSettings("normal_reference", two_bandwidths=True)
    found = collision_map(pairs, Grid(np.array([11.0]), np.sqrt([4.0, 16.0])), POLICY, settings)
    assert found.reason.tolist() == [[Reason.NO_SPREAD, 0]]
    assert found.probability[0, 1] == 1


def test_one_object():
    one = pairs_of((0, 9, 10))
    found = collision_map(one, Grid(np.array([10.0]), np.array([1.0, 3.0])), POLICY)
    assert np.isnan(found.probability).all()
    assert Reason.counted(found.reason) == {Reason.NO_SPREAD: 2}
    assert math.isnan(found.width_m)
    assert probability(one, 10.0, 9.0) == 1
    assert probability(one, 10.0, 8.0) == 0


def test_equal_reported_distances():
    same = pairs_of((0, 9, 10), (1, 11, 10), (2, 12, 10))
    for bandwidth in ("normal_reference", "cross_validated"):
        found = collision_map(same, Grid(np.array([10.0]), np.array([3.0])), POLICY, EstimatorSettings(bandwidth))
        assert Reason.counted(found.reason) == {Reason.NO_SPREAD: 1}
        assert not found.oversmooths
    # q = 1, p = 2/3, r2 = 1; r1 = 2/3.
    assert probability(same, 10.0, 10.0) == pytest.approx(1 / 3, rel=1e-15, abs=0)


def test_no_pairs():
    none = Pairs(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64), 3)
    for settings in (HALVING, EstimatorSettings()):
        found = collision_map(none, Grid(np.array([10.0]), np.array([3.0])), POLICY, settings)
        assert Reason.counted(found.reason) == {Reason.NO_PAIRS: 1}
        assert np.isnan(found.probability).all()
        assert oracle_map(none, found) is found


def test_far_from_every_report():
    # Reach 3: the mass of one pair 3 widths away is exp(-9/2) = 0.0111 = 2^-6.49. Of the only pair, reported at 10,
    # that is at 10 + 2.548: 2.548^2 = 6.49. With an infinite reach lambda is defined until exp underflows.
    pairs = pairs_of((0, 9, 10), (1, 9, 10))
    grid = Grid(np.array([12.5, 12.6, 42.0, 43.0]), np.array([3.0]))
    near = collision_map(pairs_of((0, 9, 10)), grid, POLICY, HALVING)
    assert near.reason[:, 0].tolist() == [Reason.DEFINED, *[Reason.NO_PAIR_NEAR] * 3]
    assert near.reason.dtype == np.uint8
    far = EstimatorSettings("fixed", width_m=HALVING.width_m, reach=math.inf)
    found = collision_map(pairs, grid, POLICY, far)
    # 2^-1024 is a number, 2^-1089 is not.
    assert found.reason[:, 0].tolist() == [Reason.DEFINED, Reason.DEFINED, Reason.DEFINED, Reason.UNDERFLOW]


@pytest.mark.parametrize(
    ("distances", "speeds", "message"),
    [
        ([], [1.0], "expected a list of distances"),
        ([[1.0]], [1.0], "expected a list of distances"),
        ([1.0], [], "expected a list of speeds"),
        ([1.0, np.nan], [1.0], "distances must be finite and at least 0"),
        ([1.0], [-1.0, 1.0], "speeds must be finite and at least 0"),
        ([2.0, 1.0], [1.0], "distances must be rising"),
        ([1.0], [1.0, 1.0], "speeds must be rising"),
    ],
)
def test_grids_that_are_none(distances, speeds, message):
    with pytest.raises(UsageError, match=f"^{message}$"):
        Grid(np.array(distances), np.array(speeds))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"constant": 0.0}, "the constant of the kernel width must be positive, got 0"),
        ({"bandwidth": "fixed", "width_m": -1.0}, "the kernel width must be positive, got -1 m"),
        (
            {"bandwidth": "fixed", "width_m": 1.0, "two_bandwidths": True},
            "a fixed kernel width is one width: it does not go with two bandwidths",
        ),
    ],
)
def test_settings_that_are_none(settings, message):
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        EstimatorSettings(**settings)


def test_too_large_a_grid_is_refused_with_its_number():
    grid = Grid(np.arange(10_000.0), np.arange(10_000.0))
    with pytest.raises(LimitError, match=r"^this would need about 6.117 GiB; the limit is 1 GiB"):
        collision_map(FOUR, grid, POLICY, HALVING)
