"""Solving the equations of one strongly connected component, or of many of equal size at once.

The elimination of Grassmann, Taksar and Heyman only adds, multiplies and divides non-negative numbers, so nothing
but underflow can spoil it: leaving a component of k states may be as rare as the product of k probabilities. A run
in doubles therefore says for which systems every number stayed clear of underflow; the others are solved again with
numbers whose exponent is an integer of its own, which cannot underflow.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray
from scipy.linalg import solve_banded
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu, spsolve_triangular

from verifier.base.arrays import Ints
from verifier.base.errors import NoAnswerError

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
            leads /= leads[0] + sum_by_halves(leads[first:])
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
    exponent: Ints

    @staticmethod
    def of(number: NDArray[np.float64], exponent: Ints | int = 0) -> _Wide:
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
            return _Wide.of(sum_by_halves(_scaled(self.fraction, self.exponent - largest)), largest)

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


def _scaled(fraction: NDArray[np.float64], exponent: Ints) -> NDArray[np.float64]:
    """fraction * 2^exponent in doubles."""
    return np.ldexp(fraction, np.clip(exponent, -_BEYOND_DOUBLES, _BEYOND_DOUBLES).astype(np.intc))


def sum_by_halves(terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum over the first axis; no term passes more than ceil(log2 n) additions of the n terms."""
    if len(terms) == 0:
        return np.zeros(terms.shape[1:])
    while len(terms) > 1:
        kept = (len(terms) + 1) // 2
        halved = terms[:kept].copy()
        halved[: len(terms) - kept] += terms[kept:]
        terms = halved
    result: NDArray[np.float64] = terms[0]
    return result


@dataclass(frozen=True, eq=False)
class Band:
    """An order of the k states of a component in which edges lead only to states at most `width` places away.

    Attributes:
        place: (k,) int64, where each state stands.
        width: the distance.
    """

    place: Ints
    width: int

    @property
    def numbers(self) -> int:
        """How many numbers the band holds."""
        return len(self.place) * (2 * self.width + 1)

    @staticmethod
    def of(size: int, sources: Ints, targets: Ints) -> Band:
        """A narrow one for the given edges, by the rule of Cuthill and McKee."""
        graph = csr_array((np.ones(len(sources)), (sources, targets)), shape=(size, size))
        order = reverse_cuthill_mckee(graph, symmetric_mode=False)
        place = np.empty(size, dtype=np.int64)
        place[order] = np.arange(size)
        return Band(place, int(np.abs(place[sources] - place[targets]).max(initial=0)))

    def eliminate(
        self, sources: Ints, targets: Ints, weights: NDArray[np.float64], beside: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """As the function `eliminate`, within the band.

        Args:
            sources, targets: (e,) the edges between the states, each once.
            weights: (e, b) their weights.
            beside: (k, 1 + columns, b) exits, then right-hand sides.

        Returns:
            As `eliminate`: (k, columns, b) solutions, and (b,) bool, whether no number came below `SAFE`.
        """
        band, right = self._filled(sources, targets, weights, beside)
        matrix = self._square(band)
        _, safe = self._remove(matrix, right)
        with np.errstate(all="ignore"):
            for state, low in reversed(self._steps()):
                right[state, 1:] += np.einsum("jb,jcb->cb", matrix[state, low:state], right[low:state, 1:])
        return right[self.place, 1:], safe

    def factors(
        self, sources: Ints, targets: Ints, weights: NDArray[np.float64], exits: NDArray[np.float64]
    ) -> tuple[tuple[Ints, Ints, NDArray[np.float64]], NDArray[np.float64]]:
        """What `eliminate` multiplies with, for one system and whatever right-hand sides.

        Returns:
            ((f,) states, (f,) states, (f,) factors) and (k,) the weights that the states are left with when those
            behind them are removed. A factor is the share of what leaves the first state that leads to the second,
            which stands before it, or the share of what leaves the second that came from the first.

        Raises:
            NoAnswerError: a number came below `SAFE`.
        """
        band, right = self._filled(sources, targets, weights[:, None], exits[:, None, None])
        left, safe = self._remove(self._square(band), right)
        if not (safe[0] and left.all()):
            raise NoAnswerError(f"some of {len(exits)} product states are left too rarely for doubles")
        band[:, self.width] = 0
        row, column = np.nonzero(band[:, :, 0])
        factor, column = band[row, column, 0], row + column - self.width
        factor[column > row] /= left[column[column > row], 0]
        state = np.argsort(self.place)
        return (state[row], state[column], factor), left[self.place, 0]

    def _remove(
        self, matrix: NDArray[np.float64], right: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Remove every state, the last first: (k, b) what each is left with then, and (b,) bool as `eliminate`."""
        left, safe = np.empty((len(right), right.shape[2])), np.ones(right.shape[2], dtype=bool)
        with np.errstate(all="ignore"):
            for last, low in self._steps():
                leads, entering = matrix[last, low:last], matrix[low:last, last]
                left[last] = right[last, 0] + sum_by_halves(leads)
                leads /= left[last]
                right[last] /= left[last]
                least = np.min(right[last], axis=0, initial=np.inf, where=right[last] > 0)
                least = np.minimum(least, np.min(leads, axis=0, initial=np.inf, where=leads > 0))
                safe &= least * np.min(entering, axis=0, initial=1, where=entering > 0) >= SAFE
                matrix[low:last, low:last] += entering[:, None] * leads
                right[low:last] += entering[:, None] * right[last]
        return left, safe

    def eliminate_without_underflow(
        self, sources: Ints, targets: Ints, weights: NDArray[np.float64], beside: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The solutions as `eliminate` gives them, slower, with as many roundings and no underflow."""
        band, filled = self._filled(sources, targets, weights, beside)
        wide, right = _Wide.of(band), _Wide.of(filled)
        matrix = _Wide(self._square(wide.fraction), self._square(wide.exponent))
        for last, low in self._steps():
            leads, entering = matrix[last, low:last], matrix[low:last, last]
            total = right[last, 0] + leads.sum()
            leads, beyond = leads / total, right[last] / total
            matrix[last, low:last], right[last] = leads, beyond
            matrix[low:last, low:last] = matrix[low:last, low:last] + entering[:, None] * leads
            right[low:last] = right[low:last] + entering[:, None] * beyond
        for state, low in reversed(self._steps()):
            values = (matrix[state, low:state][:, None] * right[low:state, 1:]).sum()
            right[state, 1:] = right[state, 1:] + values
        return right.rounded()[self.place, 1:]

    def factorise(
        self, sources: Ints, targets: Ints, weights: NDArray[np.float64], beside: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """(k, columns, b) solutions by factorising the band, of unknown accuracy; arguments as for `eliminate`."""
        width = self.width
        band, right = self._filled(sources, targets, weights, beside)
        leaving = right[:, 0] + band.sum(axis=1)
        band /= -leaving[:, None]
        right = right[:, 1:] / leaving[:, None]
        band[:, width] = 1
        # Diagonal d holds the entries (i, i + d), which LAPACK wants at their column.
        size, _, count = band.shape
        diagonals = np.zeros((count, 2 * width + 1, size))
        for row, distance in enumerate(range(width, -width - 1, -1)):
            first = max(0, distance)
            entries = band[max(0, -distance) : size - first, width + distance]
            diagonals[:, row, first : first + len(entries)] = entries.T
        solved = np.ascontiguousarray(right.transpose(2, 1, 0))
        for matrix in range(count):
            try:
                solution = solve_banded((width, width), diagonals[matrix], solved[matrix].T, check_finite=False)
            except np.linalg.LinAlgError:
                solution = np.full_like(right[:, :, 0], np.nan)
            solved[matrix] = solution.T
        return solved.transpose(2, 1, 0)[self.place]

    def _steps(self) -> list[tuple[int, int]]:
        """The states from the last to the first, each with the first one in its band."""
        return [(last, max(0, last - self.width)) for last in range(len(self.place) - 1, -1, -1)]

    def _filled(
        self, sources: Ints, targets: Ints, weights: NDArray[np.float64], beside: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The band, whose row i holds columns i - width .. i + width, and what is beside it, in order."""
        band = np.zeros((len(beside), 2 * self.width + 1, beside.shape[2]))
        row, column = self.place[sources], self.place[targets]
        band[row, column - row + self.width] = weights
        right = np.empty_like(beside)
        right[self.place] = beside
        return band, right

    def _square(self, band: NDArray[Any]) -> NDArray[Any]:
        """The band read with rows one shorter: (i, j) is at (i, j), so blocks along the diagonal are slices."""
        size, _, count = band.shape
        strides = (band.strides[0] - band.strides[1], *band.strides[1:])
        return as_strided(band.reshape(-1, count)[self.width :], (size, size, count), strides)


class Factorised:
    """A sparse LU factorisation of I - W, to solve x = W x + right for any number of right-hand sides.

    Args:
        size: the number of states, k.
        sources, targets, weights: (e,), the entries of the k by k matrix W, by source; equal places add up.

    How good the solutions are is for the caller to judge. Where I - W is singular in doubles they are NaN.
    """

    def __init__(self, size: int, sources: Ints, targets: Ints, weights: NDArray[np.float64]) -> None:
        self._lu: Any = None
        self._lower = bool(np.all(targets < sources))
        # Where every edge leads to an earlier state, or every one to a later state, nothing has to be factorised.
        self._triangular: csr_array[Any, Any] | None = None
        if self._lower or np.all(targets > sources):
            self._triangular = one_minus(size, sources, targets, weights)
            return
        matrix = csc_array(
            eye_array(size, format="csc") - csc_array((weights, (sources, targets)), shape=(size, size))
        )
        # Pivots are taken from the diagonal, which is safe: the matrix has row sums >= 0.
        with contextlib.suppress(RuntimeError):
            self._lu = splu(
                matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
            )

    def solve(self, right: NDArray[np.float64]) -> NDArray[np.float64]:
        """(k, c) solutions for (k, c) right-hand sides."""
        result: NDArray[np.float64]
        if self._triangular is not None:
            matrix = self._triangular
            result = spsolve_triangular(matrix, right, lower=self._lower, unit_diagonal=True, overwrite_A=True)
        elif self._lu is None:
            result = np.full_like(right, np.nan)
        else:
            result = self._lu.solve(np.ascontiguousarray(right))
        return result


def one_minus(size: int, sources: Ints, targets: Ints, weights: NDArray[np.float64]) -> csr_array[Any, Any]:
    """I - W in rows, the entry of the diagonal the last of its row.

    Args:
        size: the number of states, k.
        sources, targets, weights: (e,), the entries of the k by k matrix W beside its diagonal, by source.
    """
    indptr = np.zeros(size + 1, dtype=np.int32)
    np.cumsum(np.bincount(sources, minlength=size) + 1, out=indptr[1:])
    indices, data = np.empty(indptr[-1], dtype=np.int32), np.ones(indptr[-1])
    beside = np.ones(indptr[-1], dtype=bool)
    beside[indptr[1:] - 1] = False
    indices[~beside], indices[beside], data[beside] = np.arange(size), targets, -weights
    return csr_array((data, indices, indptr), shape=(size, size))
