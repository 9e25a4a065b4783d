"""Solving the equations of one strongly connected component, or of many of equal size at once.

The elimination of Grassmann, Taksar and Heyman only adds, multiplies and divides non-negative numbers, so nothing
but underflow can spoil it: leaving a component of k states may be as rare as the product of k probabilities. A run
in doubles therefore says for which systems every number stayed clear of underflow; the others are solved again with
numbers whose exponent is an integer of its own, which cannot underflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, eye_array
from scipy.sparse.linalg import splu

from verifier.checking.graphs import Integers
from verifier.errors import EngineError

SAFE = 2.0**-969
"""Least number taken as clear of underflow, 2^53 times the least normal double: its rounding is relative, and what
the underflow of a term can add to it is below 2^-105 of it."""
_NO_NUMBER = -(1 << 40)
"""Exponent of zero, below that of every other number."""
_BEYOND_DOUBLES = 1200
_NUMBERS_AT_ONCE = 1 << 18


def eliminate(table: NDArray[np.float64], columns: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Solve d_i x_i = sum_j inside_ij x_j + right_i for b systems, with additions of non-negative numbers only.

    Here d_i = exits_i + sum over j != i of inside_ij. The last state is removed by sending what enters it to where
    it leads, in proportion; then the one before, and so on; at last the values are put back in (Grassmann, Taksar
    and Heyman 1985). Where nothing underflows, every result is relatively accurate.

    Args:
        table: (k, 1 + columns + k, b), non-negative: in row i exits_i, the total weight of leaving the component,
            then the right-hand sides, then the weights inside_ij (inside_ii is not read). Overwritten.
        columns: number of right-hand sides.

    Returns:
        (k, columns, b), the solutions, and (b,) bool, whether no number of the elimination came below `SAFE`.
        Where it is false the solutions mean nothing; they may be NaN. Putting the values back in may still
        underflow, by at most 2^-1075 for each of its products, and as the weights of a state then add up to at
        most 1, this does not grow from state to state.
    """
    size, first = len(table), 1 + columns
    safe = np.ones(table.shape[2], dtype=bool)
    with np.errstate(all="ignore"):
        for last in range(size - 1, -1, -1):
            width = first + last
            leads, entering = table[last, :width], table[:last, width]
            leads /= leads[0] + leads[first:].sum(axis=0)
            # Numbers that are positive in exact arithmetic are positive here, or an earlier step was unsafe.
            least = np.min(leads, axis=0, initial=np.inf, where=leads > 0)
            safe &= least * np.min(entering, axis=0, initial=1, where=entering > 0) >= SAFE
            table[:last, :width] += entering[:, None] * leads
        right = table[:, 1:first]
        for state in range(1, size):
            right[state] += np.einsum("jb,jcb->cb", table[state, first : first + state], right[:state])
    return right, safe


def eliminate_without_underflow(table: NDArray[np.float64], columns: int) -> NDArray[np.float64]:
    """The same as `eliminate`, slower, with as many roundings and no underflow.

    Args:
        table: as for `eliminate`; not changed.
        columns: number of right-hand sides.

    Returns:
        (k, columns, b), the solutions, each relatively accurate before it is rounded to a double; solutions
        beyond the range of doubles become 0 or infinity.
    """
    size, first = len(table), 1 + columns
    result = np.empty((size, columns, table.shape[2]))
    at_once = max(1, _NUMBERS_AT_ONCE // (size * (first + size)))
    for low in range(0, table.shape[2], at_once):
        wide = _Wide.of(table[:, :, low : low + at_once])
        for last in range(size - 1, -1, -1):
            width = first + last
            leads, entering = wide[last, :width], wide[:last, width]
            leads = leads / (leads[0] + leads[first:].sum())
            wide[last, :width] = leads
            wide[:last, :width] = wide[:last, :width] + entering[:, None] * leads
        for state in range(1, size):
            values = (wide[state, first : first + state][:, None] * wide[:state, 1:first]).sum()
            wide[state, 1:first] = wide[state, 1:first] + values
        result[:, :, low : low + at_once] = wide[:, 1:first].rounded()
    return result


@dataclass(frozen=True, eq=False)
class _Wide:
    """Non-negative numbers fraction * 2^exponent, with fractions 0 or in [1/2, 1) and exponents of 64 bits.

    One operation has the rounding error of one on doubles. In a sum, terms below 2^-1021 of the largest may be
    lost, which is far less than its rounding.
    """

    fraction: NDArray[np.float64]
    exponent: Integers

    @staticmethod
    def of(number: NDArray[np.float64], exponent: Integers | int = 0) -> _Wide:
        fraction, shift = np.frexp(number)
        return _Wide(fraction, np.where(fraction == 0, _NO_NUMBER, exponent + shift.astype(np.int64)))

    def rounded(self) -> NDArray[np.float64]:
        """The nearest doubles; 0 or infinity beyond their range."""
        with np.errstate(over="ignore", under="ignore"):
            return _scaled(self.fraction, self.exponent)

    def sum(self) -> _Wide:
        """The sum over the first axis."""
        largest = self.exponent.max(axis=0, initial=_NO_NUMBER)
        with np.errstate(under="ignore"):
            return _Wide.of(_scaled(self.fraction, self.exponent - largest).sum(axis=0), largest)

    def __add__(self, other: _Wide) -> _Wide:
        largest = np.maximum(self.exponent, other.exponent)
        with np.errstate(under="ignore"):
            mine = _scaled(self.fraction, self.exponent - largest)
            return _Wide.of(mine + _scaled(other.fraction, other.exponent - largest), largest)

    def __mul__(self, other: _Wide) -> _Wide:
        return _Wide.of(self.fraction * other.fraction, self.exponent + other.exponent)

    def __truediv__(self, other: _Wide) -> _Wide:
        return _Wide.of(self.fraction / other.fraction, self.exponent - other.exponent)

    def __getitem__(self, place: Any) -> _Wide:
        return _Wide(self.fraction[place], self.exponent[place])

    def __setitem__(self, place: Any, numbers: _Wide) -> None:
        self.fraction[place], self.exponent[place] = numbers.fraction, numbers.exponent


def _scaled(fraction: NDArray[np.float64], exponent: Integers) -> NDArray[np.float64]:
    """fraction * 2^exponent in doubles."""
    result: NDArray[np.float64] = np.ldexp(
        fraction, np.clip(exponent, -_BEYOND_DOUBLES, _BEYOND_DOUBLES).astype(np.intc)
    )
    return result


def factorise_and_solve(
    sources: Integers, targets: Integers, weights: NDArray[np.float64], right: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Solve x = W x + right by a sparse LU factorisation.

    Args:
        sources, targets, weights: (e,), the entries of the k by k matrix W; equal places add up.
        right: (k, c) right-hand sides.

    Returns:
        (k, c), the solutions. How good they are is for the caller to judge.

    Raises:
        EngineError: if the matrix is singular in double precision.
    """
    size = len(right)
    matrix = csc_array(eye_array(size, format="csc") - csc_array((weights, (sources, targets)), shape=(size, size)))
    # Where every edge leads to an earlier state, or every one to a later state, the given order has no fill-in.
    triangular = np.all(targets < sources) or np.all(targets > sources)
    order: Literal["NATURAL", "COLAMD"] = "NATURAL" if triangular else "COLAMD"
    try:
        result: NDArray[np.float64] = splu(
            matrix, permc_spec=order, diag_pivot_thresh=0.0 if triangular else None
        ).solve(right)
    except RuntimeError as error:
        raise EngineError(f"the equations of {size} mutually reachable states are singular in doubles") from error
    return result
