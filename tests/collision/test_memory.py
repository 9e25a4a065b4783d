"""What an estimate is predicted to need beside what it needs."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from collision_world import WIDE

from verifier.base.errors import LimitError
from verifier.collision import kernel, resampling
from verifier.collision.comparison import compare
from verifier.collision.estimator import BrakingPolicy, EstimatorSettings, Grid, collision_map, predicted_bytes
from verifier.collision.resampling import bootstrap_interval, subsampling_interval

POLICY = BrakingPolicy(6.86, 0.1)


def peak(function):
    """Bytes that a call needs at its peak."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def grid(distances, speeds):
    return Grid(np.linspace(1, 50, distances), np.linspace(1, 30, speeds))


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("images", "distances", "speeds"),
    [(400, 30, 20), (8000, 40, 30), (30_000, 5, 200), (10_000, 5, 200), (100, 300, 200)],
)
def test_estimates_stay_below_the_prediction(images, distances, speeds, monkeypatch):
    monkeypatch.setattr(kernel, "BLOCK_BYTES", 2**18)  # else small cases hide behind the size of a block
    pairs, where = WIDE.draw(images, np.random.default_rng(1)), grid(distances, speeds)
    monkeypatch.setattr("verifier.collision.estimator.BLOCK_BYTES", 2**18)
    settings = EstimatorSettings("normal_reference")
    needed = peak(lambda: collision_map(pairs, where, POLICY, settings))
    assert needed <= predicted_bytes(len(pairs), where.shape) + transforms(pairs)
    of = collision_map(pairs, where, POLICY, settings)
    needed = peak(lambda: subsampling_interval(pairs, of, rng=np.random.default_rng(1)))
    assert needed <= predicted_bytes(len(pairs), where.shape, int(len(pairs) ** 0.5))
    needed = peak(lambda: compare(pairs, pairs, where, POLICY, settings, rng=np.random.default_rng(1)))
    assert needed <= predicted_bytes(4 * len(pairs), where.shape, 6 * int(len(pairs) ** 0.5)) + transforms(pairs)


def transforms(pairs):
    """Bytes of cross-validation, which does not grow with the data: 16 rows of at most 2 * 8192 numbers and pairs."""
    return 8 * 16 * 10 * 2 * 8192 + 16 * len(pairs)


def test_bootstrap_does_not_grow_with_the_grid(monkeypatch):
    monkeypatch.setattr(resampling, "BLOCK_BYTES", 2**22)
    pairs = WIDE.draw(1500, np.random.default_rng(1))
    needed = []
    for distances in (20, 80):
        of = collision_map(pairs, grid(distances, 20), POLICY)
        needed.append(peak(lambda of=of: bootstrap_interval(pairs, of, rng=np.random.default_rng(1), replicates=200)))
    assert needed[1] < 1.2 * needed[0]
    assert max(needed) < 200 * 1500 + 6 * 2**22


def test_a_bootstrap_that_cannot_fit_is_refused():
    pairs = WIDE.draw(20, np.random.default_rng(1))
    of = collision_map(pairs, grid(2, 5000), POLICY)
    with pytest.raises(LimitError, match=r"^this would need about [\d.]+ [GM]iB; the limit is 1 GiB"):
        bootstrap_interval(pairs, of, rng=np.random.default_rng(1), replicates=10_000)
