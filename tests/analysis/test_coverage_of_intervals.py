"""How often intervals hold the truth: 1,000 simulated data sets from known matrices for each line of the tables.

`pytest tests/analysis/test_coverage_of_intervals.py --slow -s` prints them. The chain is P = r0 r1, one report in
each of two bins, and the nominal level 95 %. The share of 1,000 data sets has a standard deviation of 0.007.
"""

import numpy as np
import pytest
from recall_chains import measured_of, product_of_recalls

from verifier.analysis.intervals.drawing import matrix_draws
from verifier.analysis.intervals.drive_items import DriveItems
from verifier.analysis.intervals.intervals import percentile_interval
from verifier.analysis.phantom_draws import DriveData, drive_intervals

DATA_SETS, DRAWS, LEVEL = 1000, 1000, 0.95
COLUMNS = np.array([[0, 1], [1, 1]])
CHAIN = product_of_recalls([0, 1])
AT_ONCE = 40


def held_and_width(methods, simulated, recalls):
    """For each method the share of data sets whose interval holds the truth, and the mean width.

    A method gives the ends of intervals from data sets and the number of the first of them.
    """
    truth, found = np.prod(recalls), {name: [] for name in methods}
    sets = list(simulated)
    for first in range(0, len(sets), AT_ONCE):
        for name, method in methods.items():
            found[name].append(method(sets[first : first + AT_ONCE], first))
    ends = {name: np.concatenate(each).T for name, each in found.items()}
    return {
        name: (float(np.mean((low <= truth) & (truth <= high))), float(np.mean(high - low)))
        for name, (low, high) in ends.items()
    }


def posterior(sets, first):
    """Those of many data sets go through the chain at once."""
    draws = [
        np.concatenate(list(matrix_draws(data.measured, COLUMNS, count=DRAWS, seed=first + k)))
        for k, data in enumerate(sets)
    ]
    probabilities = CHAIN.probabilities(np.concatenate(draws)).probability
    interval = percentile_interval(probabilities.reshape(len(draws), DRAWS).T, LEVEL, "credible")
    return np.column_stack([interval.lower, interval.upper])


def phantom(sets, first):
    found = [next(drive_intervals((CHAIN,), data, LEVEL, DRAWS, first + k)) for k, data in enumerate(sets)]
    return np.array([(each.lower[0], each.upper[0]) for each in found])


def drives_of(hits, items):
    """From (drives, 2) hits and items of the two bins."""
    counts = np.zeros((len(hits), 2, 2, 2), dtype=np.int64)
    counts[:, :, 1, 1], counts[:, :, 0, 1] = hits, items - hits
    names = tuple(f"drive {number}" for number in range(len(hits)))
    return DriveData(measured_of(counts.sum(axis=0)), DriveItems(names, "item", counts), COLUMNS)


def simulated(rng, recalls, drives, lowest, highest, correlation):
    """Data sets of drives with recalls of their own, Beta-distributed so that two items of one drive correlate."""
    for _ in range(DATA_SETS):
        items = rng.integers(lowest, highest + 1, (drives, 2))
        own = np.array(recalls)
        if correlation:
            size = (1 - correlation) / correlation
            own = rng.beta(size * own, size * (1 - own), (drives, 2))
        yield drives_of(rng.binomial(items, own, (drives, 2)), items)


def show(title, rows):
    print(f"\n{title}: share that holds the truth, mean width")
    for name, found in rows:
        print(
            f"  {name:>22}  " + "  ".join(f"{kind} {held:.3f}, {width:.4f}" for kind, (held, width) in found.items())
        )


@pytest.mark.slow
@pytest.mark.parametrize("recalls", [(0.02, 0.5), (0.5, 0.5), (0.9, 0.8), (0.98, 0.95), (0.99, 0.99)])
def test_the_posterior_is_near_nominal_where_items_are_independent(recalls):
    rng, rows = np.random.default_rng(1), []
    for items in (20, 100, 1000):
        data = simulated(rng, recalls, 1, items, items, 0)
        rows.append((f"{items} items per bin", held_and_width({"posterior": posterior}, data, recalls)))
    show(f"independent items, recalls {recalls}", rows)
    for _, found in rows:
        assert 0.92 <= found["posterior"][0] <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recalls", "correlation"),
    [
        ((0.5, 0.5), 0.2),
        ((0.9, 0.8), 0.2),
        ((0.9, 0.8), 0.5),
        ((0.99, 0.97), 0.2),
        ((0.999, 0.999), 0.1),
        ((0.9, 0.8), 0),
    ],
)
def test_intervals_of_drives_hold_the_truth_also_where_the_posterior_does_not(recalls, correlation):
    rng, rows = np.random.default_rng(2), []
    for drives in (10, 30):
        data = simulated(rng, recalls, drives, 10, 40, correlation)
        rows.append((f"{drives} drives", held_and_width({"posterior": posterior, "phantom": phantom}, data, recalls)))
    show(f"10 to 40 items per drive and bin, recalls {recalls}, correlation {correlation}", rows)
    for _, found in rows:
        assert found["phantom"][0] >= 0.94
        assert found["posterior"][0] < 0.8 or correlation <= 0.1
