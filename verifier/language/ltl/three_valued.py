"""What follows for a formula from what is known of its parts: Kleene's strong three-valued logic, extended to LTL.

A part may be known at the first position of every path, at every position of every path, or not at all. By the laws
of the connectives and by a U b = b | (a & X(a U b)) the same then follows for the formula. It is sound and not
complete: `a | !a` stays open where a is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.language.expressions.syntax import Interval, Temporal

Settled: TypeAlias = NDArray[np.int8]
"""(2, m) for m sets of paths 1 (true on all of them), -1 (false) or 0 (not known), at the first position and at every
position; what is known at every position is known at the first."""


def temporal(node: Temporal, below: Sequence[Settled]) -> Settled:
    """What the operands say of a temporal formula; every operator is an until (see `language.ltl.normal_form`)."""
    first, last = below[0], below[-1]
    bound = node.interval or Interval(0, None)
    true = np.ones_like(first)
    match node.operator:
        case "X":
            return np.stack([first[1], first[1]])
        case "F":
            return _until(true, first, bound)
        case "G":
            return -_until(true, -first, bound)
        case "U":
            return _until(first, last, bound)
        case "R":
            return -_until(-first, -last, bound)
        case "W":  # b R (a | b)
            return -_until(-last, -np.maximum(first, last), bound)
        case _:  # M is b U (a & b)
            return _until(last, np.minimum(first, last), bound)


def _until(left: Settled, right: Settled, bound: Interval) -> Settled:
    """`left U[low, high] right`: `left & X (left U[low-1, high-1] right)`, or if low is 0 that or `right`."""
    if bound.high == 0:
        return right
    both = np.minimum(left[1], right[1])
    later = np.minimum(left[0], right[1] if bound.low <= 1 else both)
    if bound.low:
        return np.stack([later, both])
    return np.stack([np.maximum(right[0], later), right[1]])


def connective(operator: str, below: Sequence[Settled]) -> Settled:
    """Kleene's tables: `&` is the least, `|` the greatest of the two values."""
    first, last = below[0], below[-1]
    match operator:
        case "!":
            return -first
        case "&":
            return np.minimum(first, last)
        case "|":
            return np.maximum(first, last)
        case "->":
            return np.maximum(-first, last)
        case "xor":
            return -first * last
        case _:
            return first * last
