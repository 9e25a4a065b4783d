"""What the bounds of drives cost: `pytest tests/benchmarks/test_drive_bounds.py --benchmark -s`."""

import time
from fractions import Fraction

import numpy as np
import pytest

from verifier.analysis.intervals.drive_items import lower_ends

DRIVES, CHANCES = 200, 40


@pytest.mark.benchmark
def test_both_ends_of_forty_chances_from_two_hundred_drives() -> None:
    rng = np.random.default_rng(1)
    items = rng.integers(5, 200, size=(DRIVES, CHANCES))
    hits = rng.binomial(items, rng.uniform(0.5, 0.999, size=(1, CHANCES)))
    begun = time.process_time()
    for seen in (hits, items - hits):
        lower_ends(seen, items, items.max(axis=0), Fraction(1, 2 * CHANCES * 20))
    seconds = time.process_time() - begun
    print(
        f"\n{DRIVES} drives x {CHANCES} probabilities, both ends, in whole numbers: {seconds:.2f} CPU s (target <= 1)"
    )
    assert seconds <= 1
