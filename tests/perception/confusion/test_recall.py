"""Recall and its interval, against values solved by hand."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.perception.confusion import EMPTY, ConfusionMatrices
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.sanity import recalls, thin_columns, wilson

PED, OBS = frozenset({"ped"}), frozenset({"obs"})
TWO_SIGMA = math.erf(math.sqrt(2))  # the confidence at which z = 2


def test_wilson_by_hand():
    # z = 2, k = 2, n = 4: |1/2 - p| = 2 sqrt(p(1-p)/4) squared gives 2p^2 - 2p + 1/4 = 0, p = 1/2 -+ sqrt(1/8).
    low, high = wilson(2, 4, TWO_SIGMA)
    assert math.isclose(low, 0.5 - math.sqrt(1 / 8), rel_tol=1e-12)
    assert math.isclose(high, 0.5 + math.sqrt(1 / 8), rel_tol=1e-12)
    # k = 0, n = 4: p^2 = 4 p (1-p) / 4 gives p = 0 or 1/2.
    assert wilson(0, 4, TWO_SIGMA)[0] == 0
    assert math.isclose(wilson(0, 4, TWO_SIGMA)[1], 0.5, rel_tol=1e-12)
    assert wilson(0, 0) == (0, 1)


@given(st.integers(1, 1000), st.data())
def test_the_ends_of_the_interval_solve_its_equation(items, data):
    hits = data.draw(st.integers(0, items))
    ends = wilson(hits, items, TWO_SIGMA)
    assert 0 <= ends[0] <= hits / items <= ends[1] <= 1
    for p in ends:
        assert math.isclose((hits / items - p) ** 2, 4 * p * (1 - p) / items, rel_tol=1e-6, abs_tol=1e-12)
    mirrored = wilson(items - hits, items, TWO_SIGMA)
    assert np.allclose([1 - mirrored[1], 1 - mirrored[0]], ends)


@pytest.mark.parametrize(("hits", "items", "confidence"), [(-1, 3, 0.9), (4, 3, 0.9), (1, 3, 0.0), (1, 3, 1.0)])
def test_wilson_refuses_what_is_no_share(hits, items, confidence):
    with pytest.raises(ValueError, match="expected 0 <= hits <= items"):
        wilson(hits, items, confidence)


def test_recall_of_classes_and_of_sets():
    # Figure 6 and figure 7 of Badithela et al. 2022, d <= 10 m.
    by_class = np.array([[[31, 0, 0], [0, 191, 0], [127, 734, 3227]]])
    by_set = np.array([[[22, 0, 5, 0], [0, 184, 4, 0], [0, 0, 0, 0], [63, 354, 13, 3227]]])
    edges = np.array([0.0, 10.0])
    classes = ConfusionMatrices("class", (PED, OBS, EMPTY), edges, by_class)
    sets = ConfusionMatrices("proposition", (PED, OBS, PED | OBS, EMPTY), edges, by_set)
    found = {each.name: Fraction(each.hits, each.items) for each in recalls(classes)}
    assert found == {"ped": Fraction(31, 158), "obs": Fraction(191, 925)}
    # ped is there in the columns {ped} (85) and {ped, obs} (22); it is reported in 22 and 5 of them.
    found = {each.name: Fraction(each.hits, each.items) for each in recalls(sets)}
    assert found == {"ped": Fraction(27, 107), "obs": Fraction(188, 560)}


def test_thin_columns_are_named():
    table = np.array([[[[20, 0], [9, 40]], [[30, 0], [0, 0]]]])
    counts = ConfusionCounts("class", (PED, EMPTY), Bins((0.0, 10.0, 20.0)), None, table)
    assert [(each.bin, each.label, each.items) for each in thin_columns(counts)] == [
        ("[0, 10) m", "ped", 29),
        ("[10, 20) m", "empty", 0),
    ]
