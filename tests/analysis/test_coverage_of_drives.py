"""How often bounds by drives hold the truth, and how wide they are: simulated drives against published numbers.

`pytest tests/analysis/test_coverage_of_drives.py --slow` runs every line of the tables; without it runs a slice.
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from drive_populations import Population
from phantom_rate import phantom_interval
from shorthands import ends_in_billionths

from verifier.analysis.intervals.drive_items import UNIT, log_capital, lower_ends

TAIL = Fraction(1, 40)
REPLICATIONS = 300

# Section 7b of the specification: coverage and mean width of four intervals.
TABLE = [
    (5, "even", 0.9, 0.1, (0.633, 0.077), (1.000, 0.542), (1.000, 0.580), (1.000, 0.580)),
    (10, "even", 0.9, 0.1, (0.647, 0.054), (1.000, 0.337), (1.000, 0.373), (1.000, 0.373)),
    (20, "one", 0.9, 0, (0.973, 0.298), (0.973, 0.298), (0.997, 0.426), (0.997, 0.426)),
    (20, "even", 0.9, 0, (0.953, 0.038), (0.993, 0.176), (0.997, 0.193), (0.997, 0.193)),
    (20, "even", 0.9, 0.1, (0.583, 0.038), (0.993, 0.198), (1.000, 0.227), (1.000, 0.227)),
    (20, "even", 0.9, 0.3, (0.397, 0.037), (0.993, 0.226), (1.000, 0.260), (1.000, 0.260)),
    (20, "even", 0.99, 0.3, (0.357, 0.011), (0.990, 0.177), (1.000, 0.194), (1.000, 0.194)),
    (20, "even", 0.999, 0.3, (0.930, 0.004), (0.993, 0.169), (1.000, 0.185), (1.000, 0.185)),
    (20, "lognormal", 0.9, 0.1, (0.430, 0.042), (0.997, 0.422), (1.000, 0.723), (1.000, 0.248)),
    (20, "half", 0.9, 0.1, (0.360, 0.043), (1.000, 0.584), (1.000, 0.748), (1.000, 0.234)),
    (20, "sparse", 0.9, 0.1, (0.607, 0.062), (0.990, 0.413), (0.997, 0.450), (0.997, 0.450)),
    (20, "informative", 0.9, 0.1, (0.577, 0.046), (0.997, 0.277), (0.997, 0.347), (1.000, 0.231)),
]


def by_items(hits, items, _):
    low, high = ends_in_billionths(hits.sum(axis=0), items.sum(axis=0), float(TAIL))
    return low / UNIT, high / UNIT


def by_phantom(hits, items, _):
    return np.array([phantom_interval(*each, float(TAIL)) for each in zip(hits.T, items.T, strict=True)]).T


def by_betting(hits, items, largest):
    most = np.full(hits.shape[1], largest, dtype=np.int64)
    low, rest = (lower_ends(each, items, most, TAIL) / UNIT for each in (hits, items - hits))
    return low, 1 - rest


def by_drives(hits, items, _):
    shares = hits * UNIT // np.maximum(items, 1)
    return by_betting(shares, np.where(items > 0, UNIT, 0), UNIT)


def one_line(drives, sizes, recall, icc):
    """Coverage and mean width of each method; betting by drive is for the rate of a random drive."""
    population = Population(drives, sizes, recall, icc)
    hits, items = population.draw(np.random.default_rng(7), REPLICATIONS)
    found = []
    for method in (by_items, by_phantom, by_betting, by_drives):
        low, high = method(hits, items, population.largest)
        truth = recall if method is by_drives else population.item_rate
        found.append((np.mean((low <= truth) & (truth <= high)), np.mean(high - low)))
    return found


@pytest.mark.parametrize(
    "line",
    [pytest.param(line, marks=() if k == 4 else pytest.mark.slow) for k, line in enumerate(TABLE)],
    ids=lambda line: " ".join(map(str, line[:4])),
)
def test_acceptance_table(line):
    *setting, items, phantom, betting, by_drive = line
    found = one_line(*setting)
    assert found[0][0] == pytest.approx(items[0], abs=0.10)
    for coverage, _ in found[1:]:
        assert coverage >= (0.94 if setting[1] == "one" else 0.96)
    for (_, width), (_, published) in zip(found, (items, phantom, betting, by_drive), strict=True):
        assert width == pytest.approx(published, rel=0.05, abs=0.003)


def test_the_item_rate_of_informative_sizes():
    assert Population(20, "informative", 0.9, 0.1).item_rate == pytest.approx(0.8423, abs=1e-4)  # section 7b


# --------------------------------------------------------------------------------------------------- all at once


def wrong(hits, items, largest, rate, tail):
    """(columns,) whether an end of betting lies beyond the rate: the capital at the rate is then 1 / tail or more."""
    goal = np.log(float(1 / tail))
    scale = np.maximum(largest, 1)
    sides = ((hits, rate), (items - hits, 1 - rate))
    # Capital falls with the rate, so the lower end lies beyond it just where the capital there is large enough.
    return np.any(
        [log_capital(seen / scale, items / scale, np.full(hits.shape[1], at)) >= goal for seen, at in sides], axis=0
    )


def test_an_end_is_beyond_the_rate_where_the_capital_there_is_large():
    rng = np.random.default_rng(3)
    population = Population(20, "lognormal", 0.7, 0.3)
    hits, items = population.draw(rng, 400)
    largest = items.max(axis=0)
    low, rest = (lower_ends(each, items, largest, TAIL) / UNIT for each in (hits, items - hits))
    for rate in (0.3, 0.5, 0.85, 0.95):
        expected = (low > rate) | (1 - rest < rate)
        assert np.array_equal(wrong(hits, items, largest, rate, TAIL), expected)
        assert 0 < expected.mean() < 1 or rate in (0.3, 0.5)


GRID = list(product((0.5, 0.9, 0.99, 0.999, 0.9999), (0, 0.05, 0.1, 0.3), (5, 10, 20, 50, 200)))
KINDS = ("even", "lognormal", "half", "sparse", "informative")


@pytest.mark.every(2)
@pytest.mark.parametrize("sizes", KINDS)
def test_the_default_bounds_hold_in_every_cell(sizes):
    """B as seen, one chance; 400 data sets in a cell."""
    rng = np.random.default_rng(11)
    for recall, icc, drives in GRID:
        population = Population(drives, sizes, recall, icc)
        hits, items = population.draw(rng, 400)
        missed = wrong(hits, items, items.max(axis=0), population.item_rate, TAIL)
        assert missed.mean() <= 0.06, (recall, icc, drives)


@pytest.mark.parametrize(
    ("sizes", "most_drives"),
    [("even", 20), *(pytest.param(each, 200, marks=pytest.mark.slow) for each in KINDS)],
)
def test_ten_at_once_hold_in_every_cell(sizes, most_drives):
    """Ten rates of the same drives, each bounded with a tenth of alpha; 200 data sets in a cell."""
    rng = np.random.default_rng(12)
    for recall, icc, drives in [cell for cell in GRID if cell[2] <= most_drives]:
        population = Population(drives, sizes, recall, icc)
        hits, items = population.draw(rng, 2000)
        missed = wrong(hits, items, items.max(axis=0), population.item_rate, TAIL / 10)
        assert missed.reshape(10, 200).any(axis=0).mean() <= 0.06, (recall, icc, drives)


@pytest.mark.parametrize(("share", "rate_there"), [(0.1, 0.0), (0.2, 0.5)])
def test_a_few_wholly_or_half_bad_drives(share, rate_there):
    rng, drives = np.random.default_rng(13), 20
    rates = np.where(rng.random((drives, 2000)) < share, rate_there, 1.0)
    items = np.full(rates.shape, 50)
    hits, truth = rng.binomial(items, rates), 1 - share + share * rate_there
    assert wrong(hits, items, items.max(axis=0), truth, TAIL).mean() <= 0.05
    low, high = by_items(hits, items, None)
    assert np.mean((low <= truth) & (truth <= high)) < 0.6


# ---------------------------------------------------------------------------------------------------------- looks


def test_sixty_looks_at_growing_data():
    """A look after every drive that is added, 5 to 64 of them: how many of 1,000 data sets are wrong at some look."""
    population = Population(64, "even", 0.9, 0.1)
    hits, items = population.draw(np.random.default_rng(5), 1000)
    ever = {"drives": np.zeros(1000, dtype=bool), "items": np.zeros(1000, dtype=bool)}
    for drives in range(5, 65):
        seen = hits[:drives], items[:drives]
        ever["drives"] |= wrong(*seen, np.full(1000, population.largest), 0.9, TAIL)
        low, high = by_items(*seen, None)
        ever["items"] |= (low > 0.9) | (high < 0.9)
    assert ever["drives"].mean() <= 0.05
    assert ever["items"].mean() > 0.5


def test_sixty_looks_at_independent_items():
    """Even where items are independent, bounds by items hold for one look only."""
    population = Population(64, "one", 0.9, 0)
    hits, items = population.draw(np.random.default_rng(6), 60_000)
    hits, items = hits.reshape(64, 1000, 60).cumsum(axis=2), items.reshape(64, 1000, 60).cumsum(axis=2)
    low, high = ends_in_billionths(hits.sum(axis=0), items.sum(axis=0), float(TAIL))
    by_item = ((low / UNIT > 0.9) | (high / UNIT < 0.9)).any(axis=1)
    assert by_item.mean() > 0.15
