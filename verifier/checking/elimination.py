"""Solving the equations of one strongly connected component, or of many of equal size at once."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, eye_array
from scipy.sparse.linalg import splu

from verifier.checking.graphs import Integers
from verifier.errors import EngineError


def eliminate(
    inside: NDArray[np.float64], exits: NDArray[np.float64], right: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Solve d_i x_i = sum_j inside_ij x_j + right_i for b systems, with additions of non-negative numbers only.

    Here d_i = exits_i + sum over j != i of inside_ij. The last state is removed by sending what enters it to where
    it leads, in proportion; then the one before, and so on; at last the values are put back in (Grassmann, Taksar
    and Heyman 1985). Every result is relatively accurate.

    Args:
        inside: (k, k, b), weights between the states of a component; the diagonal is not read. Overwritten.
        exits: (k, b), total weight of leaving the component from each state. Overwritten.
        right: (k, c, b), right-hand sides, non-negative. Overwritten.

    Returns:
        (k, c, b), the solutions.
    """
    size = len(inside)
    for last in range(size - 1, -1, -1):
        leave = exits[last] + inside[last, :last].sum(axis=0)
        inside[last, :last] /= leave
        exits[last] /= leave
        right[last] /= leave
        entering = inside[:last, last]
        inside[:last, :last] += entering[:, None] * inside[last, :last]
        exits[:last] += entering * exits[last]
        right[:last] += entering[:, None] * right[last]
    for state in range(1, size):
        right[state] += np.einsum("jb,jcb->cb", inside[state, :state], right[:state])
    return right


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
