"""How often confidence bounds hold the truth: 2,000 simulated data sets from known matrices for each line.

`pytest tests/analysis/test_region_coverage.py --slow -s` prints the table. The nominal level is 95 %.
"""

import numpy as np
import pytest
from recall_chains import first_of_two, measured_of, product_of_recalls
from shorthands import confidence_region

from verifier.analysis.robust.solutions import Effort, robust_bounds

DATA_SETS, LEVEL = 2000, 0.95
BOUNDS_ONLY = Effort(attained=False)

RECALLS = [
    ("two recalls", (0.9, 0.8)),
    ("two recalls", (0.999, 0.99)),
    ("two recalls", (0.02, 0.5)),
    ("five recalls", (0.9, 0.95, 0.99, 0.6, 0.8)),
]


def share_and_width(objective, simulated, truth):
    """The share of data sets whose bounds hold the truth, and the mean width; equal data sets are bounded once."""
    known = {}
    held, width = 0, 0.0
    for counts in simulated:
        key = counts.tobytes()
        if key not in known:
            region = confidence_region(objective.skeleton, measured_of(counts), LEVEL)
            found = robust_bounds(objective, region, effort=BOUNDS_ONLY)
            known[key] = float(found.lower[0]), float(found.upper[0])
        low, high = known[key]
        held += low <= truth <= high
        width += high - low
    return held / len(simulated), width / len(simulated)


@pytest.mark.slow
@pytest.mark.parametrize("items", [10, 100, 1000])
@pytest.mark.parametrize(("name", "recalls"), RECALLS)
def test_products_of_recalls(name, recalls, items):
    rng = np.random.default_rng([items, int(1000 * sum(recalls))])
    objective = product_of_recalls(list(range(len(recalls))))
    hits = rng.binomial(items, recalls, size=(DATA_SETS, len(recalls)))
    simulated = np.zeros((DATA_SETS, len(recalls), 2, 2), dtype=np.int64)
    simulated[:, :, 0, 1], simulated[:, :, 1, 1] = items - hits, hits
    share, width = share_and_width(objective, simulated, float(np.prod(recalls)))
    print(f"\n{name} {recalls}, {items} items each: {share:.4f} of the bounds hold the truth, mean width {width:.4f}")
    assert share >= LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("items", [10, 100, 1000])
@pytest.mark.parametrize("rates", [(0.5, 0.4, 0.1), (0.98, 0.015, 0.005), (0.1, 0.0, 0.9)])
def test_a_loop_with_three_reports(rates, items):
    # P = mu(a) / (mu(a) + mu(b)); what is not reported makes it wait.
    rng = np.random.default_rng([items, int(1000 * rates[0])])
    objective = first_of_two()
    drawn = rng.multinomial(items, rates, size=DATA_SETS)
    simulated = np.zeros((DATA_SETS, 1, 3, 3), dtype=np.int64)
    simulated[:, 0, :, 1] = drawn
    share, width = share_and_width(objective, simulated, rates[1] / (rates[1] + rates[2]))
    print(
        f"\na loop with rates {rates}, {items} items: {share:.4f} of the bounds hold the truth, "
        f"mean width {width:.4f}"
    )
    assert share >= LEVEL
