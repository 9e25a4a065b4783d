"""Which eliminations stayed clear of underflow, by hand, and what they solve."""

from fractions import Fraction

import numpy as np
import pytest

from verifier.base.errors import NoAnswerError
from verifier.checking import elimination
from verifier.checking.elimination import (
    SAFE,
    Band,
    Factorised,
    _Wide,
    eliminate,
    eliminate_without_underflow,
    sum_by_halves,
)

EVERY = np.array([[i, j] for i in range(3) for j in range(3) if i != j]).T


def solved_on_array(inside, exits, right):
    """Solutions, and whether no number came below `SAFE`."""
    found, safe = eliminate(np.concatenate([exits[:, None], right[:, None], inside], axis=1)[:, :, None], 1)
    return found[:, 0, 0], bool(safe[0])


def solved_in_band(inside, exits, right):
    band = Band(np.arange(3), 2)
    beside = np.stack([exits, right], axis=1)[:, :, None]
    found, safe = band.eliminate(*EVERY, inside[*EVERY][:, None], beside)
    return found[:, 0, 0], bool(safe[0])


@pytest.mark.parametrize("solved", [solved_on_array, solved_in_band])
@pytest.mark.parametrize(
    ("back", "entering", "exit_and_right", "safe"),
    [
        (2.0**-469, (1, 2.0**-500), (1, 1), True),  # just `SAFE`
        (2.0**-470, (1, 2.0**-500), (1, 1), False),
        (2.0**-470, (2.0**-500, 1), (1, 1), False),
        (2.0**-480, (1, 1), (1, 1), True),
        (2.0**-480, (0, 1), (1, 1), True),  # nothing enters from state 0
        (0, (1, 2.0**-900), (1, 1), True),  # nothing leads back
        (1, (1, 1), (1, 2.0**-980), False),
        (1, (1, 1), (2.0**-980, 1), False),
        (1, (1, 1), (1, 0), True),
        (1, (1, 1), (0, 1), True),
    ],
)
def test_the_least_product_of_what_enters_and_what_leads_on_is_safe(solved, back, entering, exit_and_right, safe):
    # State 2 goes first: it leads back to state 0 with `back`, and states 0 and 1 enter it with `entering`. States 0
    # and 1 lead to each other with 1, and out with 1.
    inside = np.array([[0, 1, entering[0]], [1, 0, entering[1]], [back, 0, 0]], dtype=float)
    exits, right = np.array([1.0, 1.0, exit_and_right[0]]), np.array([1.0, 2.0, exit_and_right[1]])
    found, clear = solved(inside.copy(), exits.copy(), right.copy())
    assert SAFE == 2.0**-969
    assert clear == safe
    if safe:
        expected = np.linalg.solve(np.diag(exits + inside.sum(axis=1)) - inside, right)
        assert found == pytest.approx(expected, rel=1e-12, abs=0)


def solved_exactly(inside, exits, right):
    """(k, columns) fractions, by elimination with subtraction."""
    size = len(inside)
    inside, exits, right = ([list(map(Fraction, row)) for row in each] for each in (inside, exits[:, None], right))
    rows = [[-x for x in row] + beside for row, beside in zip(inside, right, strict=True)]
    for k in range(size):
        rows[k][k] = exits[k][0] + sum(inside[k][j] for j in range(size) if j != k)
    for k in range(size):
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(size):
            if i != k:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [[float(x) for x in row[size:]] for row in rows]


def components(rng, size, width, count=3, columns=2):
    """Weights within a band, exits and right-hand sides of some systems, in multiples of 1/16."""
    near = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    inside = rng.integers(1, 16, (count, size, size)) * ((near > 0) & (near <= width)) / 16
    return inside, rng.integers(1, 9, (count, size)) / 16, rng.integers(0, 9, (count, size, columns)) / 16


@pytest.mark.parametrize(("size", "width"), [(1, 0), (2, 1), (5, 4), (7, 2), (6, 1), (3, 1)])
def test_every_way_solves_the_equations(monkeypatch, size, width):
    rng = np.random.default_rng(size)
    inside, exits, right = components(rng, size, width)
    expected = np.array([solved_exactly(*each) for each in zip(inside, exits, right, strict=True)]).transpose(1, 2, 0)
    table = np.concatenate([exits[:, :, None], right, inside], axis=2).transpose(1, 2, 0)
    for numbers in (2 * size * (3 + size), 1):  # two systems, then one; and one by one
        monkeypatch.setattr(elimination, "_NUMBERS_AT_ONCE", numbers)
        assert eliminate_without_underflow(table, 2) == pytest.approx(expected, rel=1e-13, abs=0)
    found, safe = eliminate(table.copy(), 2)
    assert (found == pytest.approx(expected, rel=1e-13, abs=0), safe.tolist()) == (True, [True] * 3)
    # The same within a band, of states in another order.
    order = rng.permutation(size)
    sources, targets = np.nonzero(inside[0])
    weights, beside = inside[:, sources, targets].T, np.concatenate([exits[:, :, None], right], axis=2)
    band, beside = Band(order, width), beside.transpose(1, 2, 0)[order]
    ends = np.argsort(order)[sources], np.argsort(order)[targets]
    for solve in (lambda *own: band.eliminate(*own)[0], band.eliminate_without_underflow, band.factorise):
        assert solve(*ends, weights, beside.copy()) == pytest.approx(expected[order], rel=1e-12, abs=0)
    # And factorised, once for each system.
    leave = exits + inside.sum(axis=2)
    for k in range(3):
        shares = weights[:, k] / leave[k, sources]
        solution = Factorised(size, sources, targets, shares).solve(right[k] / leave[k][:, None])
        assert solution == pytest.approx(expected[:, :, k], rel=1e-12, abs=0)


@pytest.mark.parametrize(("right", "safe"), [(SAFE, True), (SAFE / 2, False)])
def test_what_nothing_enters_has_to_be_safe_itself(right, safe):
    assert eliminate(np.array([[[1.0], [right], [0.0]]]), 1)[1].tolist() == [safe]
    nothing = np.zeros(0, dtype=np.int64)
    found = Band(np.zeros(1, dtype=np.int64), 0).eliminate(
        nothing, nothing, np.zeros((0, 1)), np.array([[[1.0], [right]]])
    )
    assert found[1].tolist() == [safe]


def test_what_cannot_be_factorised_is_no_number():
    # Two states that lead to each other alone; and one that leads nowhere.
    sources, targets = np.array([0, 1]), np.array([1, 0])
    for weights, beside in (([1.0, 1.0], [[0, 1], [0, 1]]), ([0.0, 0.0], [[0, 1], [0, 1]])):
        with np.errstate(all="ignore"):
            found = Band(np.arange(2), 1).factorise(
                sources, targets, np.array(weights)[:, None], np.array(beside, dtype=float)[:, :, None]
            )
        assert found.shape == (2, 1, 1)
        assert not np.any(np.isfinite(found))


def test_what_is_left_too_rarely_for_doubles():
    # 0 -> 1 -> 2 -> out, each with 2^-400, and back to 0 with 1: from 2 out with 2^-1200, and the goal is half of it.
    rare = 2.0**-400
    inside = np.array([[0, rare, 0], [1, 0, rare], [1, 0, 0]])[None]
    exits, right = np.array([[0, 0, rare]]), np.array([[[0], [0], [rare / 2]]])
    table = np.concatenate([exits[:, :, None], right, inside], axis=2).transpose(1, 2, 0)
    assert not eliminate(table.copy(), 1)[1][0]
    assert eliminate_without_underflow(table, 1)[:, 0, 0].tolist() == [0.5] * 3
    sources, targets = np.nonzero(inside[0])
    beside = np.concatenate([exits[:, :, None], right], axis=2).transpose(1, 2, 0)
    own = sources, targets, inside[:, sources, targets].T, beside
    band = Band(np.arange(3), 2)
    assert not band.eliminate(*own)[1][0]
    assert band.eliminate_without_underflow(*own)[:, 0, 0].tolist() == [0.5] * 3


def test_numbers_whose_exponents_have_no_end():
    tiny, zero = _Wide.of(np.array([0.75]), -5000), _Wide.of(np.array([0.0]))
    assert (tiny.fraction.tolist(), tiny.exponent.tolist()) == ([0.75], [-5000])
    square = tiny * tiny
    assert (square.fraction.tolist(), square.exponent.tolist()) == ([0.5625], [-10000])
    for same in (square / tiny, tiny + zero, zero + tiny, tiny + square):
        assert (same.fraction.tolist(), same.exponent.tolist()) == ([0.75], [-5000])
    assert (tiny + tiny).exponent.tolist() == [-4999]
    assert (tiny * zero + zero).rounded().tolist() == [0]
    assert _Wide.of(np.array([0.75, 3.0]), 2).rounded().tolist() == [3, 12]
    assert _Wide.of(np.array([0.75, 0.75]), np.array([-5000, 5000])).rounded().tolist() == [0, np.inf]
    assert _Wide.of(np.array([[3.0], [0.0], [5.0], [2.0**-40]])).sum().rounded().tolist() == [8 + 2.0**-40]
    assert _Wide.of(np.zeros((0, 2))).sum().rounded().tolist() == [0, 0]


def test_a_sum_by_halves_adds_the_far_half_to_the_near_one():
    # One unit too small for 1 is not lost where another is added to it first: (1 + 0) + (u + u), never (1 + u) + u.
    unit = 2.0**-53
    assert sum_by_halves(np.array([1.0, unit, 0.0, unit])) == 1 + 2 * unit
    assert sum_by_halves(np.array([1.0, unit, unit, 0.0])) == 1
    assert sum_by_halves(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])).tolist() == [9, 13]
    assert sum_by_halves(np.zeros((0, 2))).tolist() == [0, 0]


@pytest.mark.parametrize("turned", [False, True])
def test_what_leads_one_way_is_substituted(monkeypatch, turned):
    # x0 = 1, x1 = 1/2 x0 + 1, x2 = 1/4 x0 + 1/2 x1 + 1: 1, 3/2 and 2. Nothing is factorised.
    monkeypatch.setattr(elimination, "splu", None)
    sources, targets, weights = np.array([1, 2, 2]), np.array([0, 0, 1]), np.array([0.5, 0.25, 0.5])
    if turned:
        sources, targets, weights = 2 - sources[::-1], 2 - targets[::-1], weights[::-1]
    system = Factorised(3, sources, targets, weights)
    for _ in range(2):
        assert system.solve(np.ones((3, 1)))[:, 0].tolist() == [1, 1.5, 2][:: -1 if turned else 1]


def test_a_band_is_as_wide_as_the_farthest_edge():
    # A ring of 6, in the order 0 3 1 4 2 5: two states apart at most once it is ordered well.
    ring = np.array([0, 3, 1, 4, 2, 5])
    sources, targets = np.concatenate([ring, np.roll(ring, 1)]), np.concatenate([np.roll(ring, 1), ring])
    band = Band.of(6, sources, targets)
    assert band.width == np.abs(band.place[sources] - band.place[targets]).max() == 2
    assert sorted(band.place.tolist()) == list(range(6))
    assert Band.of(1, *np.zeros((2, 0), dtype=np.int64)).width == 0


@pytest.mark.parametrize("rare", [0.0, 1e-310])
def test_factors_that_underflow_are_no_factors(rare):
    sources, targets = np.array([0, 1]), np.array([1, 0])
    with pytest.raises(NoAnswerError, match="some of 2 product states are left too rarely"):
        Band.of(2, sources, targets).factors(sources, targets, np.array([1e-9, 1.0]), np.array([rare, rare]))


@pytest.mark.parametrize("width", [1, 2, 4])
def test_factors_are_the_shares_of_removed_states(width):
    """In fractions: the states of the band are removed from the last to the first."""
    rng = np.random.default_rng(width)
    for _ in range(5):
        order = rng.permutation(5)  # the state at each place
        places = [(i, j) for i in range(5) for j in range(5) if i != j and abs(i - j) <= width and rng.random() < 0.8]
        weight = {place: Fraction(int(rng.integers(1, 9)), 16) for place in places}
        exits = [Fraction(int(rng.integers(1, 9)), 16) for _ in range(5)]
        sources, targets = (order[np.array(each)] for each in zip(*places, strict=True))
        by_state = np.array([float(exits[place]) for place in np.argsort(order)])
        band = Band(np.argsort(order), width)
        (state, beside, factor), left = band.factors(
            sources, targets, np.array([float(weight[each]) for each in places]), by_state
        )
        factors, leaving = {}, {}
        for last in range(4, -1, -1):
            leads = {to: weight.get((last, to), Fraction(0)) for to in range(last)}
            leaving[int(order[last])] = total = exits[last] + sum(leads.values())
            for source in range(last):
                entering = weight.get((source, last), Fraction(0))
                factors[source, last] = entering / total
                factors[last, source] = leads[source] / total
                exits[source] += entering * exits[last] / total
                for to in range(last):
                    weight[source, to] = weight.get((source, to), Fraction(0)) + entering * leads[to] / total
        expected = {(int(order[i]), int(order[j])): float(share) for (i, j), share in factors.items() if share}
        assert dict(zip(zip(state.tolist(), beside.tolist(), strict=True), factor.tolist(), strict=True)) == (
            pytest.approx(expected, rel=1e-12, abs=0)
        )
        assert dict(enumerate(left.tolist())) == pytest.approx(
            {k: float(x) for k, x in leaving.items()}, rel=1e-12, abs=0
        )


def test_a_band_holds_so_many_numbers():
    for size, width in ((4, 1), (7, 3)):
        band, none = Band(np.arange(size), width), np.zeros(0, dtype=np.int64)
        assert band.numbers == band._filled(none, none, np.zeros((0, 1)), np.zeros((size, 2, 1)))[0].size
    assert Band(np.arange(4), 1).numbers == 12
