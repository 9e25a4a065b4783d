"""Certificates of probabilities: from both sides, of exact rates, tight, and true of chains solved in fractions."""

import json
from fractions import Fraction

import numpy as np
import pytest
from certified_systems import greatest_lost
from interval_models import RECURRENT, SIMPLE, Model, random_model
from second_checker import complaint

from verifier.analysis import kernel
from verifier.analysis.robust.point_certificate import point_certificates

TWO = ((), ("a",))


def proven(objective, counts):
    """What the kernel proves from below and from above, for each initial state, and the documents."""
    found = {side: json.loads(json.dumps(content)) for side, content in point_certificates(objective, counts)}
    return kernel.check(found["lower"]), kernel.check(found["upper"]), found


def walk(states, counts, wanted="F p"):
    """A walk on 0..states that goes up when a is seen; its ends absorb, and p holds at the upper one."""
    following = [[0, 0], *([k - 1, k + 1] for k in range(1, states)), [states, states]]
    model = Model(TWO, following, {"p": {states}, "q": {0}}, dict.fromkeys(range(1, states), ()), (1,))
    columns = np.zeros((states + 1, 2, 2), dtype=np.int64)
    columns[:, :, 1] = counts
    columns[:, 0, 0] = 1
    return model.objective(wanted), columns


@pytest.mark.parametrize(
    ("states", "counts", "truth"),
    [
        (3, (1, 2), Fraction(4, 7)),  # (1 - r) / (1 - r^3) with r = 1/2
        (10, (1, 1), Fraction(1, 10)),
        (200, (1, 1), Fraction(1, 200)),
        (5, (10**9, 1), Fraction(10**9 - 1, 10**45 - 1)),  # (r - 1) / (r^5 - 1) with r = 10^9
    ],
)
def test_the_ruin_of_a_gambler(states, counts, truth):
    (lower,), (upper,), _ = proven(*walk(states, counts))
    assert lower <= truth <= upper
    assert upper - lower < Fraction(1, 10**25)


def test_rates_are_counts_over_their_sum_and_no_billionths():
    (lower,), (upper,), found = proven(*walk(2, (2, 1)))
    assert lower <= Fraction(1, 3) <= upper
    region = found["lower"]["region"]
    (column,) = region["columns"]
    assert (column["bin"], column["true"], column["unit"]) == (1, 1, 3)
    assert column["lower"] == column["upper"] == [2, 1]


def test_what_is_certain_is_proven_as_it_is():
    for wanted, truth in (("F (p | q)", 1), ("G !(p & q)", 1), ("G F (p & q)", 0)):
        (lower,), (upper,), _ = proven(*walk(6, (3, 5), wanted))
        assert lower == upper == truth


def sides_of_random_chains(seeds):
    """(proven, not proven) sides; what is proven holds of the chain solved in fractions, and is tight."""
    tally, formulas = [0, 0], [*SIMPLE, *RECURRENT]
    for seed in seeds:
        rng = np.random.default_rng(seed)
        model = random_model(rng, 5, 2, ended=int(rng.integers(3)))
        objective = model.objective(formulas[seed % len(formulas)])
        counts = rng.integers(0, 4, (5, 2, 2)) * rng.integers(1, 1000, (5, 1, 1))
        counts[:, 0] += counts.sum(axis=1) == 0
        found = dict(point_certificates(objective, counts))
        tally = [tally[0] + len(found), tally[1] + 2 - len(found)]
        for side, content in found.items():
            content = json.loads(json.dumps(content))
            lost = greatest_lost(content, rng, 1)
            values = [1 - bound if side == "lower" else bound for bound in kernel.check(content)]
            assert all(0 <= value - least <= Fraction(1, 10**25) for value, least in zip(values, lost, strict=True))
            assert complaint(content) is None
    return tally


def test_random_chains_with_cycles():
    assert sides_of_random_chains(range(60)) == [120, 0]


@pytest.mark.slow
def test_thousands_of_random_chains_with_cycles():
    assert sides_of_random_chains(range(1000, 4000)) == [6000, 0]
