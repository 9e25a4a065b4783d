"""The matrices of the published car-pedestrian study, as documents that `verify run` reads.

A matrix is given by its columns, true label -> probability of reporting (ped, obs, empty), in fractions.
"""

import math
from fractions import Fraction

from matrix_documents import write_matrices

NAMES = ("ped", "obs", "empty")


def decimals(*values):
    return tuple(Fraction(value) for value in values)


CM1 = {
    "ped": (Fraction(10, 15), Fraction(2, 15), Fraction(3, 15)),
    "obs": (Fraction(2, 15), Fraction(11, 15), Fraction(2, 15)),
    "empty": (Fraction(3, 15), Fraction(2, 15), Fraction(10, 15)),
}
CM3 = {
    "ped": decimals("0.9", "0.075", "0.025"),
    "obs": decimals("0.08", "0.80", "0.12"),
    "empty": decimals("0.02", "0.04", "0.94"),
}
PERFECT = {true: tuple(Fraction(int(name == true)) for name in NAMES) for true in NAMES}


def precision_recall(precision, recall):
    """The study's family: recall r on pedestrians, false positives so that the precision is p, the rest 8 to 2."""
    p, r = Fraction(precision), Fraction(recall)
    false_positive = r / p - r
    true_negative = (2 - false_positive) / 2
    missed = (1 - r) / 2
    alarm, right, wrong = false_positive / 2, true_negative * Fraction(8, 10), true_negative * Fraction(2, 10)
    return {"ped": (r, missed, missed), "obs": (alarm, right, wrong), "empty": (alarm, wrong, right)}


def write_matrix(path, columns):
    """One matrix for every distance, as whole-number counts in the columns' common denominator."""
    assert all(sum(column) == 1 for column in columns.values())
    scale = math.lcm(*(entry.denominator for column in columns.values() for entry in column))
    counts = [[int(columns[true][row] * scale) for true in NAMES] for row in range(len(NAMES))]
    return write_matrices(path, counts, labels=NAMES, edges=(0, None))


def column_at_any_distance(columns, true):
    """As `published_chain.chain` wants it: distance in cells -> label -> probability."""
    column = {name: entry for name, entry in zip(NAMES, columns[true], strict=True) if entry}
    return lambda cells: column
