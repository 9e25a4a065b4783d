"""The state space of a system: every valuation of its variables, numbered in mixed radix.

State number and valuation determine each other: the last declared variable varies fastest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.expressions import evaluate
from verifier.expressions.syntax import Node
from verifier.systems.model import BoundedVariable, System


@dataclass(frozen=True)
class StateSpace:
    """All valuations of `variables`."""

    variables: tuple[BoundedVariable, ...]

    @property
    def size(self) -> int:
        """Number of states, n."""
        return math.prod(each.size for each in self.variables)

    def valuations(self, states: NDArray[np.int64] | None = None) -> dict[str, NDArray[np.int64]]:
        """Variable name -> (k,) int64 value in each of `states` (all n of them by default)."""
        rest = np.arange(self.size) if states is None else states
        found: dict[str, NDArray[np.int64]] = {}
        for each in reversed(self.variables):
            rest, offset = np.divmod(rest, each.size)
            found[each.name] = offset + each.low
        return {each.name: found[each.name] for each in self.variables}

    def number(self, values: Mapping[str, Any], count: int) -> NDArray[np.int64]:
        """(count,) int64 state number of each valuation; -1 where a value is out of range or not whole."""
        states = np.zeros(count, dtype=np.int64)
        valid = np.ones(count, dtype=bool)
        for each in self.variables:
            value = np.asarray(values[each.name])
            if value.dtype.kind == "f":
                whole = np.floor(value)
                valid &= (whole == value) & (np.abs(whole) < 2**53)
                value = np.where(valid, whole, each.low).astype(np.int64)
            valid &= (value >= each.low) & (value <= each.high)
            states = states * each.size + (value - each.low)
        states[~valid] = -1
        return states

    def where(self, condition: Node) -> NDArray[np.bool_]:
        """(n,) mask of the states in which `condition` (over the variables) holds."""
        return truth(condition, self.valuations(), self.size)


def truth(condition: Node, values: Mapping[str, NDArray[np.int64]], count: int) -> NDArray[np.bool_]:
    """(count,) mask of the valuations in which `condition` holds."""
    mask: NDArray[np.bool_] = np.broadcast_to(np.asarray(evaluate(condition, values), dtype=bool), (count,))
    return mask


def successors(
    system: System,
    space: StateSpace,
    values: Mapping[str, NDArray[np.int64]],
    inputs: Mapping[str, Any],
    count: int,
) -> NDArray[np.int64]:
    """(count,) int64 state after one step; -1 where the inputs or the next values are not allowed.

    Args:
        system: for dynamics and admissibility.
        space: the states.
        values: the old valuation, (count,) per variable.
        inputs: the inputs, scalars or (count,).
        count: number of valuations.
    """
    scope = {**values, **inputs}
    valid = np.array(truth(system.admissible, scope, count))
    for each in system.inputs:
        value = np.asarray(inputs[each.name])
        valid &= (value >= each.low) & (value <= each.high)
    following = space.number({name: evaluate(node, scope) for name, node in system.dynamics.items()}, count)
    return np.where(valid, following, -1)
