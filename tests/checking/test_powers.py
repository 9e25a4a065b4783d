"""Parts of counting steps, by hand: what it would take, and by how much the true probabilities may move a result."""

import random
from fractions import Fraction

import numpy as np
import pytest
from small_chains import chain_of

from verifier.base.errors import NoAnswerError
from verifier.checking import powers
from verifier.checking.powers import (
    SubChain,
    _digits_of,
    _exact_digits,
    _format,
    _is_faster_squared,
    _Problem,
    _problem,
    _product,
    _squared,
    _step_by_step,
    _widened,
    after_steps,
)


def sized(count, edges):
    """A problem of which only the size counts."""
    chain = SubChain(*(None,) * 6)
    none, ends = np.zeros(edges, dtype=np.int64), np.zeros(count)
    return _Problem(chain, none, none, none, ends, ends, ends)


@pytest.mark.parametrize(
    ("count", "edges", "steps", "seconds"),
    [
        # A step: 10^-5 s, and 2 * 10^-8 s for each of 6000 + 4000. Squared, 4002^3 * 28 * 20 * 2 * 10^-10: > 7000 s.
        (4000, 6000, 10**6, "2.1e+02"),
        # 100^3 products of digits, 7 * 8 / 2 of them that count, for each of 21 bits: 1.2 * 10^8 at 2 * 10^-10 s.
        (98, 1000, 2**20, "0.12"),
    ],
)
def test_the_faster_way_is_told_by_its_time(count, edges, steps, seconds):
    with pytest.raises(NoAnswerError, match=f"about {seconds} s; 0.1 s are left".replace("+", r"\+")):
        _is_faster_squared(sized(count, edges), steps, 0.1)
    assert _is_faster_squared(sized(count, edges), steps, None) is (count == 98)
    assert count != 98 or _is_faster_squared(sized(count, edges), steps, 1.0)


def test_squaring_needs_memory_for_four_matrices(monkeypatch):
    # 7 digits of 100 * 100 entries, 8 bytes each.
    for free, squared in ((4 * 7 * 10**4 * 8, True), (4 * 7 * 10**4 * 8 - 1, False), (None, True)):
        monkeypatch.setattr(powers, "memory_left", lambda free=free: free)
        assert _is_faster_squared(sized(98, 1000), 2**20, None) is squared


def coin(ends, moved):
    """Half of the way on leads to 1, half stays: 1/2 + 1/4 after two steps, and 1/4 of what is at its end."""
    half = chain_of([{0: 0.5, 1: 0.5}, {1: 1.0}])
    all_of_it = SubChain(half, np.arange(2), np.array([0, 0, 1]), half.indices, np.arange(3), np.zeros(2, dtype=bool))
    f = np.array([ends])
    return _Problem(all_of_it, np.arange(2), np.array([0, 0]), np.array([0, 1]), f, f, np.array([moved]))


UNIT = 2.0**-53


def test_steps_one_by_one_are_widened_by_their_roundings():
    # 2 steps and 2 more, of 2 * 2 + 4 roundings each and 1 % more: 32.3 units, of 3/4. Each step moves it by 1/16.
    (low,), (high,), (moved,) = _step_by_step(coin(0.0, 1 / 16), 2, 2, 1.0)
    assert 24 * UNIT <= 0.75 - low <= 25 * UNIT
    assert 24 * UNIT <= high - 0.75 <= 25 * UNIT
    assert 0 <= moved - 1.5 / 16 <= 4 * UNIT
    assert _step_by_step(coin(0.0, 1 / 16), 2, 3, 0.2) is None


def test_what_is_left_once_it_is_negligible_may_be_all_or_nothing():
    # Of ten steps two are taken, with 1/4 left: 3/4 to 1. The others move it by 2/16 * (1/4 + 1/16 + ..) at most.
    (low,), (high,), (moved,) = _step_by_step(coin(0.0, 1 / 16), 2, 10, 0.25)
    assert (low, high) == pytest.approx((0.75, 1.0), abs=1e-14)
    assert moved == pytest.approx(1.5 / 16 + 2 / 16 / 3, rel=1e-12, abs=0)


def test_what_is_left_is_negligible_in_every_state():
    # After two steps 1/4 is left where a half stays, and 9/16 where three quarters do.
    rows = chain_of([{0: 0.5, 2: 0.5}, {1: 0.75, 2: 0.25}, {2: 1.0}])
    whole = SubChain(rows, np.arange(3), np.array([0, 0, 1, 1, 2]), rows.indices, np.arange(5), None)
    zero, moved = np.zeros(2), np.array([0.25, 0.0])
    problem = _Problem(whole, np.arange(4), np.array([0, 0, 1, 1]), np.array([0, 2, 1, 2]), zero, zero, moved)
    assert _step_by_step(problem, 2, 10, 0.5) is None
    low, high, moved = _step_by_step(problem, 2, 10, 0.6)
    assert (low, high) == (pytest.approx([3 / 4, 7 / 16]), pytest.approx([1, 1]))
    rest = 2 * 0.25 * (9 / 16) / (7 / 16)  # of the two steps, again and again: the largest counts
    assert moved == pytest.approx([min(0.375 + rest, 1), rest])


def test_how_far_a_row_may_be_moved_by_its_largest_entry():
    # An error of 1/16 for each: (2 * 1/4 + 4/16) / 15, and 1 / 15 at most.
    chain = chain_of([{0: 0.75, 1: 0.25}, {0: 0.5, 1: 0.5}, {2: 1.0}])
    whole = SubChain(chain, np.arange(3), np.repeat(np.arange(3), [2, 2, 1]), chain.indices, np.arange(5), None)
    found = _problem(whole, np.arange(2), np.array([False, False, True]), (np.zeros(3), np.ones(3)), 1 / 16)
    assert found.moved == pytest.approx([0.75 / 15, 1 / 15], rel=1e-15, abs=0)


def test_a_margin_for_the_digits_by_hand():
    # Each step moves it by 1/2: 1/2 + 1/4, as
    # 3/8 with the scale 1/2. Of that 2^-50 + 2^-64 are left out at most, and it is rounded by 16 units at most.
    for ends in (0.0, 1.0):
        (low,), (high,), (moved,) = _squared(coin(ends, 0.5), 2)
        exact, left_out = 0.75 + ends / 4, 2.0**-50 + 2.0**-64
        assert exact - 1.01 * left_out <= low <= exact - 0.99 * left_out
        assert min(exact + 0.99 * left_out, 1) <= high <= exact + 1.01 * left_out
        assert moved == 0.75 + 28 * UNIT  # 16 for what is left out, and 12 for 3/4 of 16


def test_all_states_have_the_scale_of_the_one_that_is_moved_most():
    rows = chain_of([{0: 0.5, 2: 0.5}, {1: 0.5, 2: 0.5}, {2: 1.0}])
    whole = SubChain(rows, np.arange(3), np.array([0, 0, 1, 1, 2]), rows.indices, np.arange(5), None)
    zero, moved = np.zeros(2), np.array([0.5, 2.0**-30])
    problem = _Problem(whole, np.arange(4), np.array([0, 0, 1, 1]), np.array([0, 2, 1, 2]), zero, zero, moved)
    assert _squared(problem, 2)[2][0] == 0.75 + 28 * UNIT


def test_digits_by_hand():
    # To the base 16: 1/5 is .33 and something, and of 2/3 (a double) .AA is kept.
    fifths = chain_of([{0: 0.2, 1: 0.4, 2: 0.4}, {0: 0.5, 1: 0.5}, {2: 1.0}])
    whole = SubChain(fifths, np.arange(3), np.repeat(np.arange(3), [3, 2, 1]), fifths.indices, np.arange(6), None)
    zero = np.zeros(2)
    problem = _Problem(whole, np.arange(5), np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 0, 1]), zero, zero, zero)
    found = _exact_digits(problem, 3, 4)
    assert [[int(x * 256 + y * 16 + z) for x, y, z in row] for row in found.transpose(1, 2, 0)] == [
        [256 // 5, 512 // 5, 512 // 5, 0],
        [128, 128, 0, 0],
        [0, 0, 256, 0],
        [0, 0, 0, 256],
    ]
    assert found[:, 0, 1].tolist() == [0, 6, 6]
    assert _digits_of(np.array([2 / 3, 1.0, 0.0]), 3, 4).T.tolist() == [[0, 10, 10], [1, 0, 0], [0, 0, 0]]


def test_a_product_of_digits_carries_and_leaves_out_what_is_behind():
    # .FF * .FF: only the product of the first digits counts, E1. 1.FF * .FF: F and 15 * 15 + 15 = F0, so 1.E0.
    first, second = (np.array(digits, dtype=float).reshape(3, 1, 1) for digits in ([0, 15, 15], [1, 15, 15]))
    assert _product(first, first, 4).ravel().tolist() == [0, 14, 1]
    assert _product(second, first, 4).ravel().tolist() == [1, 14, 0]


def test_a_format_has_as_few_digits_as_will_do():
    """In whole numbers: sums of products fit into 52 bits, and 8 n K^2 s 2^-(w(s-2)) is at most 2^-64."""

    def widest(size, digits):
        return max(bits for bits in range(30) if size * digits << 2 * bits <= 1 << 52)

    def will_do(size, steps, digits):
        return 8 * steps * digits * size**2 << 64 <= 1 << widest(size, digits) * (digits - 2)

    rng = random.Random(3)
    cases = [(rng.randint(3, 3000), int(2 ** rng.uniform(0, 40))) for _ in range(1500)]
    for size, steps in [*cases, (1024, 2**24)]:
        digits, bits = _format(size, steps)
        assert bits == widest(size, digits)
        assert will_do(size, steps, digits)
        assert digits == 4 or not will_do(size, steps, digits - 1)
    assert _format(1024, 2**24) == (8, 19)


def test_what_is_next_to_nothing_is_not_lost():
    nothing = np.zeros(1)
    assert [each.tolist() for each in _widened(nothing, nothing, nothing, 0, 1)] == [[0], [2.0**-900], [0]]


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_random_rows_against_fractions(monkeypatch, seed, squared):
    rng = random.Random(seed)
    if squared:
        monkeypatch.setattr(powers, "FIRST_STEPS", 0)
        monkeypatch.setattr(powers, "_SECONDS_PER_PRODUCT", 0.0)
    n, steps, error = rng.randint(1, 5), rng.choice([0, 1, 2, 7, 90]), Fraction(1, 2**20)
    rows = []
    for _ in range(n):
        targets = rng.sample(range(n), rng.randint(1, n))
        parts = [rng.choice([1, 3, 30]) for _ in targets]
        rows.append({target: part / sum(parts) for target, part in zip(targets, parts, strict=True)})
    base = chain_of(rows)
    sources = np.repeat(np.arange(n), np.diff(base.indptr))
    kept = np.flatnonzero([rng.random() < 0.85 for _ in base.indices])
    short = np.bincount(sources[kept], minlength=n) < np.diff(base.indptr)
    part = SubChain(base, np.arange(n), sources[kept], base.indices[kept], kept, short)
    ends = [[Fraction(rng.choice([0, 0, 0, 1, 4, 4]), 4) for _ in range(n)] for _ in range(2)]
    ends = [list(map(min, *ends)), list(map(max, *ends))]
    there = set(zip(part.sources.tolist(), part.targets.tolist(), strict=True))
    rows = [{t: Fraction(w) / sum(map(Fraction, row.values())) for t, w in row.items()} for row in rows]
    held = [[(t, w) for t, w in row.items() if (s, t) in there] for s, row in enumerate(rows)]
    low, high = ends
    sure = [not leaks and end == 1 for leaks, end in zip(short, low, strict=True)]
    lost = [end == 0 for end in high]
    for _ in range(n):  # who leads to nothing else comes to 1 or 0, whatever the rates
        sure = [own and all(sure[t] for t, _ in row) for own, row in zip(sure, held, strict=True)]
        lost = [own and all(lost[t] for t, _ in row) for own, row in zip(lost, held, strict=True)]
    moved, once = [Fraction(0)] * n, []
    for s in range(n):
        largest = max(rows[s].values())
        once.append(0 if sure[s] else min(1, 2 * (1 - largest) + 4 * error) * error / (1 - error))
    for _ in range(steps):
        low, high = ([sum((w * x[t] for t, w in row), Fraction(0)) for row in held] for x in (low, high))
        moved = [own + sum((w * moved[t] for t, w in row), Fraction(0)) for own, row in zip(once, held, strict=True)]
    found = after_steps(part, tuple(np.array(each, dtype=float) for each in ends), steps, float(error))
    for s in range(n):
        lower, upper = Fraction(float(found.lower[s])), Fraction(float(found.upper[s]))
        assert low[s] - Fraction(1, 10**12) <= lower <= low[s]
        assert high[s] <= upper <= high[s] + Fraction(1, 10**12)
        if steps and (sure[s] or lost[s]):
            assert (lower, upper, found.representation[s]) == (low[s], high[s], 0)
        elif lower > 0 and upper < 1:
            assert float(found.representation[s]) == pytest.approx(float(min(moved[s], 1)), rel=1e-3)
