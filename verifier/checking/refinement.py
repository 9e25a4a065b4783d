r"""Values with twice the digits of a double, and a bound on the error of every one of them.

The values x_s of the unknown states satisfy, with the probabilities p_st of the transitions to *other* states,

    sum_t p_st (x_t - x_s) = 0,        x = 1 and x = 0 in the two slots that stand for the decided states,       (1)

or, where x is what is gained on the way, with -g_s on the right side and x = 0 in both slots; g_s is a double, taken
exactly.

Whatever computed x, only (1) is used here. Each x_s is a sum high_s + low_s of two doubles.

**Residual.** r_s, the left side of (1), is computed in differences of neighbours, which are far smaller than the
values where a chain mixes slowly. The difference of two doubles, their product and every sum of the running total
are split into a double and the error of rounding it (Dekker, Numer. Math. 18, 1971; Knuth, TAOCP 2, 4.2.2), and
these are exact. What remains, the errors and the terms with `low`, is added up in doubles. In a row of d transitions
no constituent passes more than d + 5 roundings, and adding the remainder to the total is one more. So the result is
off by at most u |result| + (4d+8) u m, with u = 2^-53 and m the sum of the absolute constituents as computed in
doubles, which is itself off by less than the factor 2. Products that underflow lose at most 4 * 2^-1074 in each of
the d terms; 2^-1022 d is added for them.

**Bound.** Let B be the matrix of (1): (B y)_s = sum_t p_st (y_s - y_t), with y = 0 in the slots. Its off-diagonal
entries are <= 0, its rows sum to >= 0, and every unknown state has a path to a slot, which the plan sees to: B is a
nonsingular M-matrix, B^-1 >= 0 (Berman and Plemmons, Nonnegative Matrices in the Mathematical Sciences, chapter 6).
The error e = x - x* has B e = -r. If B y >= |r| in every row, then B (y - e) >= 0 and B (y + e) >= 0, so |e| <= y.
Such a y is found by solving B y = 4 (|r| + rounding), and that it is one is *checked* by the same residual, with
rounding on the other side. How y and x were computed plays no role for the proof, only for whether it succeeds, and
the number of steps until the value is decided enters neither: for gambler's ruin of 20,000 states the bound is
3e-23. It succeeds as long as that number is below about 10^28.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from verifier.base.arrays import ROUNDOFF, Floats, Ints

_SPLITTER = 2.0**27 + 1
_ROUNDS = 12
_PROOFS = 4


@dataclass(frozen=True, eq=False)
class Equations:
    """The equations (1) of u unknown states for m matrices side by side.

    Attributes:
        row_start: (u + 1,) start of each state's edges to other states.
        target: (e,) slot that each edge leads to; u and u + 1 are the decided ones.
        weight: (e, m) probability of each edge, above 0.
        gains: (u, m) what a step from each state gains; None for probabilities.
    """

    row_start: Ints
    target: Ints
    weight: Floats
    gains: Floats | None = None

    def residual(self, high: Floats, low: Floats, gains: Floats | None = None) -> tuple[Floats, Floats]:
        """(u, m) the left side of (1) for x = high + low, of shape (u + 2, m), and a bound on its error.

        With `gains` they are added to it: the running total begins with them.
        """
        count = len(self.row_start) - 1
        degree = np.diff(self.row_start)
        total, rest, size = (np.zeros((count, self.weight.shape[1])) for _ in range(3))
        if gains is not None:
            total += gains
        for place in range(int(degree.max())):
            rows = np.flatnonzero(degree > place)
            edges = self.row_start[rows] + place
            weight, target = self.weight[edges], self.target[edges]
            difference, lost = _sum(high[target], -high[rows])
            product, error = _product(weight, difference)
            total[rows], carried = _sum(total[rows], product)
            rest[rows] += error + carried + weight * (lost + (low[target] - low[rows]))
            size[rows] += np.abs(error) + np.abs(carried)
            size[rows] += weight * (np.abs(lost) + np.abs(low[target]) + np.abs(low[rows]))
        result = total + rest
        widest = degree[:, None].astype(np.float64)
        slack = ROUNDOFF * np.abs(result) + (4 * widest + 8) * ROUNDOFF * size
        return result, slack * (1 + 2.0**-40) + widest * 2.0**-1022


@dataclass(frozen=True, eq=False)
class Refined:
    """Solutions of (1), each array (u + 2, m).

    Attributes:
        value: the solution rounded to doubles.
        error: bound on the distance of `value` from the solution; infinite where none was proven.
    """

    value: Floats
    error: Floats


def refined(equations: Equations, value: Floats, solve: Callable[[Floats], Floats]) -> Refined:
    """The solution of (1) near `value`, with a proven bound.

    Args:
        equations: the equations.
        value: (u + 2, m) what is to be improved; its last two rows are 1 and 0, or 0 and 0.
        solve: (u, m) right sides b to (u, m) solutions y of B y = b, however inaccurate.
    """
    count = len(value) - 2
    high, low = value.copy(), np.zeros_like(value)
    with np.errstate(all="ignore"):
        result, slack = equations.residual(high, low, equations.gains)
        for _ in range(_ROUNDS):
            if np.all(np.abs(result) <= 2 * slack):
                break
            further = _corrected(high, low, solve(result))
            other, other_slack = equations.residual(*further, equations.gains)
            better = np.max(np.abs(other), axis=0, initial=0) < 0.5 * np.max(np.abs(result), axis=0, initial=0)
            better |= np.all(np.abs(other) <= 2 * other_slack, axis=0)
            if not np.any(better):
                break
            high, low = np.where(better, further[0], high), np.where(better, further[1], low)
            result, slack = np.where(better, other, result), np.where(better, other_slack, slack)
        error = np.zeros_like(value)
        error[:count] = _proven_bound(equations, np.abs(result) + slack, solve)
        error = (error + np.abs(low)) * (1 + 2.0**-50)
    error[count:] = 0
    return Refined(high, error)


def _proven_bound(equations: Equations, residual: Floats, solve: Callable[[Floats], Floats]) -> Floats:
    """(u, m) y with B y >= `residual` in every row; infinite for matrices for which none was found."""
    residual = residual * (1 + 2.0**-50)
    count = len(residual)
    high, low = np.zeros((count + 2, residual.shape[1])), np.zeros((count + 2, residual.shape[1]))
    missing = 4 * residual
    proven = np.zeros(residual.shape[1], dtype=bool)
    for _ in range(_PROOFS):
        further, low = _corrected(high, low, solve(missing))
        high = np.where(proven, high, further)
        result, slack = equations.residual(high, low)
        proven |= np.all(result + slack <= -residual, axis=0)
        if np.all(proven):
            break
        missing = 4 * residual + result
    return np.where(proven, high[:count] * (1 + 2.0**-50), np.inf)  # |low| is at most 2^-53 high


def _corrected(high: Floats, low: Floats, correction: Floats) -> tuple[Floats, Floats]:
    """high + low + correction in the unknown states, with |low| at most half a unit of the last place of high."""
    moved = low.copy()
    moved[: len(correction)] += correction
    return _sum(high, moved)


def _sum(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """The sum in doubles, and its exact error."""
    total = first + second
    part = total - first
    return total, (first - (total - part)) + (second - part)


def _product(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """The product in doubles, and its error, exact but for underflow."""
    total = first * second
    first_high, first_low = _split(first)
    second_high, second_low = _split(second)
    error = (first_high * second_high - total) + first_high * second_low + first_low * second_high
    return total, error + first_low * second_low


def _split(number: Floats) -> tuple[Floats, Floats]:
    """Two doubles of at most 26 bits each that add up to the number."""
    shifted = _SPLITTER * number
    high = shifted - (shifted - number)
    return high, number - high
