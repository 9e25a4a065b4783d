r"""What is expected after a number of steps, up to 10^9 and beyond, without a state for each of them.

    x_n(s) = the expectation of f at the state after n steps from s, with x_n = M^n f,

where the rows of M add up to at most 1 (what is missing counts as 0) and f lies between 0 and 1. States from which
x is 1 or 0 for every n are found on the graph and left out. With Q = M between the others and r the probability of
stepping from them into one of value 1,

    x_n = r + Q r + ... + Q^(n-1) r + Q^n f.

*Steps* are taken one by one, on sparse rows of doubles, until n is reached or the rest is negligible: 1 is the most
that x can be behind them, so that x_n lies between r + ... + Q^(k-1) r and the same plus Q^k 1. All numbers are
non-negative: with at most d entries per row and rows divided by their sums, every result is off by a factor of at
most exp(k (2d + 4) u) (u = 2^-53), and by an underflow below 2^-900.

*Squaring* takes over where chains are small and slow. Rows are divided by their exact sums. Numbers are
fixed-point, in digits of w bits kept as integers in doubles, so that the products of digits are exact sums in any
order: K s 2^(2w) <= 2^52 for K states and s digits. Leaving out the digits behind the last makes results too small,
by at most K s 2^-(w(s-2)) per entry of a product; through log2 n squarings at most 8 n K^2 s 2^-(w(s-2)) in all
(each error is multiplied by a matrix of norm at most e^(1/2)). s makes that at most 2^-64.

*Representation.* The given doubles are the true probabilities but for a factor 1 +- v. Dividing a row by its sum
moves the sum of its entries' distances by at most h = 2 min(1, 2 (1 - largest entry)) v / (1 - v), as all but the
largest entry determine that one; so x moves by at most (h + Q h + ... + Q^(n-1) h) / 2.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from verifier.base.arrays import ROUNDOFF, Floats, Ints, Mask
from verifier.base.budget import memory_left
from verifier.base.errors import NoAnswerError
from verifier.base.graphs import coreachable
from verifier.base.numbers import significant
from verifier.chains.chain import MarkovChain

NEGLIGIBLE = 2.0**-70
FIRST_STEPS = 20_000
"""Steps taken one by one before anything else is thought of."""
_TINY = 2.0**-900
_DIGIT_ERROR = 2.0**-64
_SECONDS_PER_STEP, _SECONDS_PER_EDGE, _SECONDS_PER_PRODUCT = 1e-5, 2e-8, 2e-10
"""As measured: one sparse product, one of its transitions, one multiplication of a dense product."""


@dataclass(frozen=True, eq=False)
class SubChain:
    """A chain made from the rows of another one; what is left out of a row counts as 0.

    Attributes:
        base: the other chain.
        origin: (n,) int64, the state of `base` whose row each state has.
        sources, targets: (e,) int64, the transitions.
        edge: (e,) int64, the transition of `base` behind each.
        leaks: (n,) bool, whether a part of the row is left out. A row without transitions that does not leak stays.
    """

    base: MarkovChain
    origin: Ints
    sources: Ints
    targets: Ints
    edge: Ints
    leaks: Mask


@dataclass(frozen=True, eq=False)
class Expected:
    """Bounds of x for every state, (n,) each, and how far the true probabilities may move it."""

    lower: Floats
    upper: Floats
    representation: Floats


def after_steps(
    chain: SubChain,
    ends: tuple[Floats, Floats],
    steps: int,
    value_error: float,
    *,
    negligible: float = NEGLIGIBLE,
    seconds: float | None = None,
) -> Expected:
    """The expectation of f after `steps` steps.

    Args:
        chain: the rows.
        ends: two (n,) float64 arrays between 0 and 1; f lies between them.
        steps: at least 0.
        value_error: largest relative error of each probability of the chain.
        negligible: an enclosure of this width is not made narrower.
        seconds: what it may take; None for no limit.

    Raises:
        NoAnswerError: the chain is so large and slow that it would take longer.
    """
    n = len(chain.origin)
    if steps == 0:
        return Expected(*ends, np.zeros(n))
    one = ~coreachable(n, chain.sources, chain.targets, chain.leaks | (ends[0] < 1))
    possible = coreachable(n, chain.sources, chain.targets, ends[1] > 0)
    result = Expected(one.astype(np.float64), one.astype(np.float64), np.zeros(n))
    states = np.flatnonzero(possible & ~one)
    if not len(states):
        return result
    problem = _problem(chain, states, one, ends, value_error)
    parts = _step_by_step(problem, min(steps, FIRST_STEPS), steps, negligible)
    if parts is None:
        squaring = _is_faster_squared(problem, steps, seconds)
        parts = _squared(problem, steps) if squaring else _step_by_step(problem, steps, steps, negligible)
    if parts is None:
        raise ValueError("behind the last step there is a result")
    for whole, part in zip((result.lower, result.upper, result.representation), parts, strict=True):
        whole[states] = part
    return result


@dataclass(frozen=True, eq=False)
class _Problem:
    """The k open states, with their transitions among themselves and into states of value 1.

    Attributes:
        chain, states: where they are from, (k,).
        kept: positions of their transitions in the chain.
        source: place of the open state that each transition leaves.
        target: place of the open state that it leads to; k for one of value 1.
        low, high: (k,) ends of f.
        moved: (k,) h / 2.
    """

    chain: SubChain
    kept: Ints
    source: Ints
    target: Ints
    low: Floats
    high: Floats
    moved: Floats

    @property
    def count(self) -> int:
        """Number of open states, k."""
        return len(self.low)


def _problem(chain: SubChain, states: Ints, one: Mask, ends: tuple[Floats, Floats], error: float) -> _Problem:
    base, count = chain.base, len(states)
    place = np.full(len(chain.origin), -1, dtype=np.int64)
    place[states], place[one] = np.arange(count), count
    kept = np.flatnonzero((place[chain.sources] >= 0) & (place[chain.sources] < count) & (place[chain.targets] >= 0))
    largest = np.maximum.reduceat(base.probabilities, base.indptr[:-1])[chain.origin[states]]
    moved = np.minimum(1.0, 2 * (1 - largest) + 4 * error) * error / (1 - error)
    ends_there = ends[0][states], ends[1][states]
    return _Problem(chain, kept, place[chain.sources[kept]], place[chain.targets[kept]], *ends_there, moved)


def _step_by_step(
    problem: _Problem, most: int, steps: int, negligible: float
) -> tuple[Floats, Floats, Floats] | None:
    """Lower and upper bounds and representation after `steps` steps; None when `most` do not suffice."""
    chain, count = problem.chain, problem.count
    base = chain.base
    sums = np.add.reduceat(base.probabilities, base.indptr[:-1])
    weight = base.probabilities[chain.edge[problem.kept]] / sums[chain.origin[chain.sources[problem.kept]]]
    matrix = csr_array((weight, (problem.source, problem.target)), shape=(count, count + 1))[:, :count]
    to_one = problem.target == count
    added = np.zeros((count, 5))
    added[:, 0] = np.bincount(problem.source[to_one], weight[to_one], count)
    added[:, 1] = problem.moved
    # Columns: value so far, representation so far, and Q^k of low, of high and of 1.
    columns = np.stack([np.zeros(count), np.zeros(count), problem.low, problem.high, np.ones(count)], axis=1)
    taken, next_look = 0, 64
    width = int(np.diff(base.indptr).max())
    while taken < most:
        for _ in range(min(next_look, most) - taken):
            columns = matrix @ columns
            columns += added
        taken, next_look = min(next_look, most), 2 * next_look
        rest = float(columns[:, 4].max())
        if taken < steps and rest <= negligible:
            columns[:, 1] += taken * float(problem.moved.max()) * rest / (1 - rest)  # Q^(jk) 1 <= rest^j
            return _widened(columns[:, 0], columns[:, 0] + columns[:, 4], columns[:, 1], taken, width)
    if taken < steps:
        return None
    ends = columns[:, 0] + columns[:, 2], columns[:, 0] + columns[:, 3]
    return _widened(*ends, columns[:, 1], taken, width)


def _widened(
    lower: Floats, upper: Floats, representation: Floats, steps: int, degree: int
) -> tuple[Floats, Floats, Floats]:
    """With the rounding of so many steps."""
    factor = math.expm1(1.01 * (steps + 2) * (2 * degree + 4) * ROUNDOFF)
    low = np.maximum(lower * (1 - factor) - _TINY, 0.0)
    return low, np.minimum(upper * (1 + factor) + _TINY, 1.0), np.minimum(representation * (1 + factor), 1.0)


def _is_faster_squared(problem: _Problem, steps: int, seconds: float | None) -> bool:
    """Whether to square rather than to step; NoAnswerError where either takes longer than `seconds`."""
    stepping = steps * (_SECONDS_PER_STEP + _SECONDS_PER_EDGE * (len(problem.source) + problem.count))
    size = problem.count + 2
    digits, _ = _format(size, steps)
    squaring = size**3 * digits * (digits + 1) / 2 * steps.bit_length() * _SECONDS_PER_PRODUCT
    free = memory_left()
    if free is not None and 4 * digits * size**2 * 8 > free:
        squaring = math.inf
    if seconds is not None and min(stepping, squaring) > seconds:
        raise NoAnswerError(
            f"{steps} steps through {problem.count} states would take about "
            f"{significant(min(stepping, squaring), 2)} s; "
            f"{significant(seconds)} s are left of the limit (--timeout)",
            hint="shorten the window of the bounded operator, or allow more time",
        )
    return squaring < stepping


def _squared(problem: _Problem, steps: int) -> tuple[Floats, Floats, Floats]:
    """As `_step_by_step`, by squaring [[Q, r, h/2 scaled], [0, 1, 0], [0, 0, 1]]."""
    count, size = problem.count, problem.count + 2
    digits, bits = _format(size, steps)
    # Scaled so that n of them add up to at most 1/2, in which the fixed point has its digits.
    scale = 0.5 / steps / max(float(problem.moved.max()), 2.0**-900)
    columns = np.zeros((size, 3))
    columns[:count, 0], columns[:count, 1], columns[count + 1, 2] = problem.low, problem.high, 1.0
    columns[count, :2] = 1.0
    power, value = _exact_digits(problem, digits, bits), _digits_of(columns, digits, bits)
    power[:, :count, count + 1] = _digits_of(problem.moved * scale, digits, bits)
    for position in range(steps.bit_length()):
        if steps >> position & 1:
            value = _product(power, value, bits)
        if steps >> position > 1:
            power = _product(power, power, bits)
    total = np.add.reduce(value * 2.0 ** (-bits * np.arange(digits))[:, None, None])[:count]
    error = _DIGIT_ERROR + 8 * ROUNDOFF  # the last digits, and what rounding the sum of the digits moves
    representation = np.minimum((total[:, 2] + error) * (1 + 16 * ROUNDOFF) / scale, 1.0)
    return np.maximum(total[:, 0] - error, 0.0), np.minimum(total[:, 1] + error, 1.0), representation


def _format(size: int, steps: int) -> tuple[int, int]:
    """Digits and bits per digit, see the module."""
    digits = 3
    while True:
        bits = int((52 - math.log2(size * digits)) // 2)
        if math.log2(8 * steps * digits) + 2 * math.log2(size) - bits * (digits - 2) <= math.log2(_DIGIT_ERROR):
            return digits, bits
        digits += 1


def _exact_digits(problem: _Problem, digits: int, bits: int) -> Floats:
    """(digits, k + 2, k + 2): the matrix with its rows divided by their exact sums, cut behind the last digit."""
    chain, size = problem.chain, problem.count + 2
    base = chain.base
    whole = [Fraction(value) for value in base.probabilities.tolist()]
    starts = base.indptr.tolist()
    behind = chain.edge[problem.kept].tolist()
    rows = chain.origin[chain.sources[problem.kept]].tolist()
    sums = {row: sum(whole[starts[row] : starts[row + 1]]) for row in set(rows)}
    one = 1 << bits * (digits - 1)
    entries: NDArray[Any] = np.array(
        [int(whole[k] * one / sums[row]) for k, row in zip(behind, rows, strict=True)], dtype=object
    )
    table: NDArray[Any] = np.full((size, size), 0, dtype=object)
    np.add.at(table, (problem.source, problem.target), entries)
    table[problem.count, problem.count] = table[problem.count + 1, problem.count + 1] = one
    result = np.empty((digits, size, size))
    for place in range(digits - 1, 0, -1):
        result[place] = (table & ((1 << bits) - 1)).astype(np.float64)
        table = table >> bits
    result[0] = table.astype(np.float64)
    return result


def _digits_of(values: Floats, digits: int, bits: int) -> Floats:
    """(digits, ...) digits to the base 2^bits of doubles from 0 on; nothing is rounded, the rest is cut off."""
    result, rest = np.empty((digits, *values.shape)), values
    for place in range(digits):
        result[place] = np.floor(rest)
        rest = (rest - result[place]) * 2.0**bits
    return result


def _product(left: Floats, right: Floats, bits: int) -> Floats:
    """The product of matrices in digits; what lies behind the last digit is left out."""
    digits = len(left)
    result = np.zeros((digits, left.shape[1], right.shape[2]))
    for i in range(digits):
        for j in range(digits - i):
            result[i + j] += left[i] @ right[j]
    for place in range(digits - 1, 0, -1):
        carry = np.floor(result[place] * 2.0**-bits)
        result[place] -= carry * 2.0**bits
        result[place - 1] += carry
    return result
