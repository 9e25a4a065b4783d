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

from verifier.language.expressions import Source, evaluate
from verifier.language.expressions.syntax import Node
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
            whole, allowed = whole_in_range(values[each.name], each)
            valid &= allowed
            states = states * each.size + (whole - each.low)
        states[~valid] = -1
        return states

    def where(self, condition: Node, source: Source | None = None) -> NDArray[np.bool_]:
        """(n,) mask of the states in which `condition` (over the variables) holds."""
        return truth(condition, self.valuations(), self.size, source)


def whole_in_range(value: Any, variable: BoundedVariable) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """A value, or an array of them, as int64, and which are whole numbers in the range of `variable`.

    Those that are not come back as the low end of the range, so that nothing overflows on the way to refusing them.
    """
    found = np.asarray(value)
    allowed = np.asarray((found >= variable.low) & (found <= variable.high))
    if found.dtype.kind == "f":
        allowed &= np.floor(found) == found
    if not allowed.all():
        found = np.where(allowed, found, variable.low)
    return found.astype(np.int64, copy=False), allowed


def truth(
    condition: Node, values: Mapping[str, NDArray[np.int64]], count: int, source: Source | None = None
) -> NDArray[np.bool_]:
    """(count,) mask of the valuations in which `condition` holds; `source` is where it stands, for messages."""
    holds = np.asarray(evaluate(condition, values, source), dtype=bool)
    mask: NDArray[np.bool_] = np.broadcast_to(holds, (count,))
    return mask


def successors(
    system: System,
    space: StateSpace,
    values: Mapping[str, NDArray[np.int64]],
    inputs: Mapping[str, Any],
    count: int,
) -> NDArray[np.int64]:
    """(count,) int64 state after one step; -1 where the inputs or the next values are not allowed.

    Next values are looked at only where the inputs are allowed: `10 // speed` needs no guard where
    `admissible = "speed >= 1"`.

    Args:
        system: for dynamics and admissibility.
        space: the states.
        values: the old valuation, (count,) per variable.
        inputs: the inputs, scalars or (count,).
        count: number of valuations.
    """
    allowed = np.ones(count, dtype=bool)
    whole: dict[str, NDArray[np.int64]] = {}
    for each in system.inputs:
        whole[each.name], in_range = whole_in_range(inputs[each.name], each)
        allowed &= in_range
    scope = {**values, **whole}
    allowed &= truth(system.admissible, scope, count, system.model.at("admissible"))
    if not allowed.all():
        scope = {name: value[allowed] if value.ndim else value for name, value in scope.items()}
    moved = {
        name: evaluate(node, scope, system.model.at(f"variables.{name}.next"))
        for name, node in system.dynamics.items()
    }
    following = np.full(count, -1, dtype=np.int64)
    following[allowed] = space.number(moved, int(allowed.sum()))
    return following
