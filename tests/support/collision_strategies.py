"""Random pairs and grids for property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from verifier.collision.estimator import Grid
from verifier.collision.pairs import Pairs

metres = st.floats(0, 60).map(lambda value: round(value, 2))
speeds = st.lists(st.floats(0, 40), min_size=1, max_size=4, unique=True).map(sorted)
distances = st.lists(st.floats(0, 70), min_size=1, max_size=4, unique=True).map(sorted)


@st.composite
def some_pairs(draw, smallest=1):
    """Up to 12 images with up to 4 pairs each, at least `smallest` in all; distances with ties."""
    per_image = draw(st.lists(st.integers(0, 4), min_size=1, max_size=12).filter(lambda n: sum(n) >= smallest))
    n = sum(per_image)
    true = draw(st.lists(metres, min_size=n, max_size=n))
    reported = draw(st.lists(metres, min_size=n, max_size=n))
    return Pairs(np.array(true), np.array(reported), np.repeat(np.arange(len(per_image)), per_image), len(per_image))


def grid_of(distances_m, speeds_mps):
    return Grid(np.array(distances_m), np.array(speeds_mps))
