"""The state space of a system: every valuation of its variables, with a code in mixed radix.

Code and valuation determine each other: the last declared variable varies fastest. A code is a 64-bit integer where
the product of the ranges allows, else a text of 8 bytes for each of the words it takes; both sort as the valuations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Ints, Mask
from verifier.language.expressions import Source, evaluate
from verifier.language.expressions.syntax import Node
from verifier.systems.model import BoundedVariable, System

Codes: TypeAlias = NDArray[Any]
"""Codes of states: int64, or texts of bytes (see the module)."""

LARGEST_WORD = 2**62


@dataclass(frozen=True)
class StateSpace:
    """All valuations of `variables`."""

    variables: tuple[BoundedVariable, ...]

    @property
    def size(self) -> int:
        """Number of states, n."""
        return math.prod(each.size for each in self.variables)

    @cached_property
    def words(self) -> tuple[tuple[BoundedVariable, ...], ...]:
        """The variables of each 64-bit word of a code; one word where a code is an integer."""
        words: list[list[BoundedVariable]] = [[]]
        for each in self.variables:
            if words[-1] and math.prod(other.size for other in words[-1]) * each.size > LARGEST_WORD:
                words.append([])
            words[-1].append(each)
        return tuple(map(tuple, words))

    @property
    def nowhere(self) -> Any:
        """The code of no state: -1, or bytes that no code has."""
        return -1 if len(self.words) == 1 else b"\xff" * (8 * len(self.words))

    def valuations(self, states: Codes | None = None) -> dict[str, Ints]:
        """Variable name -> (k,) int64 value in each of `states` (all n of them by default)."""
        columns, words = [np.arange(self.size) if states is None else states], self.words
        if states is None:
            words = (self.variables,)
        elif len(words) > 1:
            columns = list(np.ascontiguousarray(states).view(">u8").reshape(len(states), -1).astype(np.int64).T)
        found: dict[str, Ints] = {}
        for word, rest in zip(words, columns, strict=True):
            for each in reversed(word):
                rest, offset = np.divmod(rest, each.size)
                found[each.name] = offset + each.low
        return {each.name: found[each.name] for each in self.variables}

    def number(self, values: Mapping[str, Any], count: int) -> Codes:
        """(count,) code of each valuation; `nowhere` where a value is out of range or not whole."""
        valid = np.ones(count, dtype=bool)
        columns = []
        for word in self.words:
            column = np.zeros(count, dtype=np.int64)
            for each in word:
                whole, allowed = whole_in_range(values[each.name], each)
                valid &= allowed
                column = column * each.size + (whole - each.low)
            columns.append(column)
        if len(columns) == 1:
            codes: Codes = columns[0]
        else:
            wide = np.ascontiguousarray(np.stack(columns, axis=1).astype(">u8"))
            codes = wide.view(f"S{8 * len(columns)}").reshape(count)
        codes[~valid] = self.nowhere
        return codes

    def where(self, condition: Node, source: Source | None = None) -> Mask:
        """(n,) mask of the states in which `condition` (over the variables) holds."""
        return truth(condition, self.valuations(), self.size, source)


def whole_in_range(value: Any, variable: BoundedVariable) -> tuple[Ints, Mask]:
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


def truth(condition: Node, values: Mapping[str, Ints], count: int, source: Source | None = None) -> Mask:
    """(count,) mask of the valuations in which `condition` holds; `source` is where it stands, for messages."""
    holds = np.asarray(evaluate(condition, values, source), dtype=bool)
    mask: Mask = np.broadcast_to(holds, (count,))
    return mask


def successors(
    system: System,
    space: StateSpace,
    values: Mapping[str, Ints],
    inputs: Mapping[str, Any],
    count: int,
    remembered: Mapping[str, Any] = MappingProxyType({}),
    possible: Mask | bool = True,
) -> Codes:
    """(count,) code of the state after one step; `nowhere` where the inputs or the next values are not allowed.

    Next values are looked at only where the inputs are allowed: `10 // speed` needs no guard where
    `admissible = "speed >= 1"`.

    Args:
        system: for dynamics and admissibility.
        space: the states.
        values: the old valuation, (count,) per variable, and what the world draws.
        inputs: the inputs, scalars or (count,).
        count: number of valuations.
        remembered: the new values of a planner's memory and trackers.
        possible: (count,) where the world can draw that.
    """
    allowed = np.full(count, possible)
    whole: dict[str, Ints] = {}
    for each in system.inputs:
        whole[each.name], in_range = whole_in_range(inputs[each.name], each)
        allowed &= in_range
    scope = {**values, **whole}
    allowed &= truth(system.admissible, scope, count, system.model.at("admissible"))
    following = np.repeat(space.number({each.name: each.low for each in space.variables}, 1), count)
    following[:] = space.nowhere
    if not allowed.any():
        return following
    if not allowed.all():
        scope = {name: value[allowed] if value.ndim else value for name, value in scope.items()}
    moved = {
        name: evaluate(node, scope, system.model.at(f"variables.{name}.next"))
        for name, node in system.dynamics.items()
    }
    for name, value in remembered.items():
        moved[name] = value if allowed.all() or not np.ndim(value) else value[allowed]
    if allowed.all():
        return space.number(moved, count)
    following[allowed] = space.number(moved, int(allowed.sum()))
    return following
