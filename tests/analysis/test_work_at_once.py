"""However little is done at once, the numbers are the same: a limit below what one of them takes lets one through."""

from fractions import Fraction

import numpy as np
import pytest
from deciding_objectives import Deciding
from drive_tables import drives_of, recall_counts
from recall_cases import MILLION, binary, cells_of, chance, problem
from recall_chains import product_of_recalls
from small_objectives import random_rates

from verifier.analysis import phantom_draws
from verifier.analysis.intervals import drive_items
from verifier.analysis.phantom_draws import DriveData
from verifier.analysis.recall import requirements
from verifier.analysis.recall.requirements import Path
from verifier.analysis.robust import optimum
from verifier.language.ltl import parse_formula


def data_of_drives():
    measured, table = drives_of(recall_counts((1, 2), (0, 3), (5, 5)))
    return DriveData(measured, table, np.array([[0, 1]]))


def ends_of_drives():
    items = np.array([[9, 8, 7], [5, 0, 6]])
    return drive_items.approximate_ends(items - [[1, 0, 2]], items, items.max(axis=0), Fraction(1, 20))


def ends_of_no_drive():
    none = np.zeros((0, 2), dtype=np.int64)
    return drive_items.approximate_ends(none, none, np.ones(2, dtype=np.int64), Fraction(1, 20))


def draws_of_drives():
    return np.concatenate([part.items for part in phantom_draws.drive_draws(data_of_drives(), 5, 4)])


def ends_of_intervals():
    (interval,) = phantom_draws.drive_intervals((product_of_recalls([0]),), data_of_drives(), 0.9, 99, 5)
    return np.array([interval.lower, interval.upper])


def worst_of_a_path():
    asked, path = problem([chance([0, 0])], binary(0.3), ">", "0.64"), Path("level", cells_of((0, 1)), MILLION, (0,))
    return requirements._evaluated(asked, path, [0, 500_000, MILLION]).worst


def optima_of(formula):
    rng = np.random.default_rng(1)
    world, rates = Deciding(rng), np.stack([random_rates(rng, 2, 3, 0.2) for _ in range(3)])
    return world.optimum(parse_formula(formula), True).probabilities(rates).probability


@pytest.mark.parametrize(
    ("module", "name", "made", "expected"),
    [
        (drive_items, "_AT_ONCE", ends_of_drives, None),
        (drive_items, "_AT_ONCE", ends_of_no_drive, [0, 0]),
        (phantom_draws, "PART_BYTES", draws_of_drives, None),
        (phantom_draws, "_VISITS_AT_ONCE", ends_of_intervals, None),
        (requirements, "PART_BYTES", worst_of_a_path, [0, 0.25, 1]),
        (optimum, "_NUMBERS_AT_ONCE", lambda: optima_of("F p"), None),
        (optimum, "_NUMBERS_AT_ONCE", lambda: optima_of("true"), np.ones((3, 2))),  # a product without transitions
    ],
)
def test_one_at_once_is_as_good_as_many(monkeypatch, module, name, made, expected):
    many = made()
    monkeypatch.setattr(module, name, 1)
    assert made() == pytest.approx(many, rel=1e-12, abs=0)
    if expected is not None:
        assert many == pytest.approx(np.array(expected), rel=1e-12, abs=0)
