"""The distinct values of an array of codes."""

from __future__ import annotations

import numpy as np

from verifier.base.arrays import Ints


def distinct(codes: Ints, bound: int) -> tuple[Ints, Ints]:
    """The distinct codes, increasing, and the position of each code among them.

    Args:
        codes: (k,) int64, each in 0..bound-1.
        bound: how many codes there could be; where that is not many more than there are, nothing is sorted.
    """
    if bound > 2**16 + 4 * len(codes):
        found, position = np.unique(codes, return_inverse=True)
        return found, position.ravel().astype(np.int64)
    occurs = np.zeros(bound, dtype=bool)
    occurs[codes] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[codes]
