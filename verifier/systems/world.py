"""What the world draws in a step: the combinations of values that its inputs can have, and how likely each is.

Draws are independent of each other and of what is reported. Their probabilities are exact fractions; they are
evaluated once for each combination of the values that they depend on.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Ints, Mask
from verifier.language.expressions import exact_number
from verifier.language.expressions.syntax import names_in
from verifier.systems.model import System, bounded
from verifier.systems.model_parts import Draw

Chances = tuple[Fraction, ...]


@dataclass(frozen=True, eq=False)
class World:
    """The draws of a system; `system` is the one of the environment that is looked at."""

    system: System
    _number: dict[Chances, int] = field(default_factory=dict)
    _known: dict[tuple[int, ...], int] = field(default_factory=dict)

    @cached_property
    def outcomes(self) -> tuple[Mapping[str, np.int64], ...]:
        """Every combination of values, as name -> value; a single empty one where nothing is drawn."""
        values = ([(each.name, np.int64(value)) for value in each.chances] for each in self._draws)
        return tuple(map(dict, itertools.product(*values)))

    @property
    def chances(self) -> NDArray[Any]:
        """(distributions, outcomes) fractions, each row summing to 1: the distributions met so far."""
        met = list(self._number) or [(Fraction(1), *(Fraction(0) for _ in self.outcomes[1:]))]
        return np.array(met, dtype=object).reshape(len(met), len(self.outcomes))

    def possible(self, values: Mapping[str, Ints], count: int) -> Mask:
        """(count, outcomes) bool, which outcomes have a probability above 0 in each of some valuations."""
        rows = self.distribution(values, count)
        possible: Mask = (self.chances > 0)[rows].astype(bool)
        return possible

    def distribution(self, values: Mapping[str, Ints], count: int) -> Ints:
        """(count,) the row of `chances` of each of some valuations.

        Raises:
            InputError: probabilities that are not from 0 to 1, or do not sum to 1.
        """
        columns = [values[name] for name in self._reads]
        found, place = np.zeros((min(count, 1), 0), dtype=np.int64), np.zeros(count, dtype=np.int64)
        if columns:
            found, place = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        rows = np.array([self._row(tuple(read)) for read in found.tolist()], dtype=np.int64)
        return rows[place.ravel()]

    @cached_property
    def _draws(self) -> tuple[Draw, ...]:
        """With probabilities over variables only; InputError where one can have a value outside its range."""
        system = self.system
        for draw in system.model.world:
            within = bounded(system, f"world.{draw.name}.range", draw)
            for value in draw.chances:
                if not within.low <= value <= within.high:
                    message = f"'{draw.name}' can be {value}, which is outside {within.low}..{within.high}"
                    raise system.model.at(f"{_path(draw)}.{value}").error(message, None)
        return tuple(draw.with_nodes(partial(system.resolve, path=_path(draw))) for draw in system.model.world)

    @cached_property
    def _reads(self) -> tuple[str, ...]:
        """The variables that probabilities depend on."""
        nodes = [node for each in self._draws for node in each.chances.values() if node is not None]
        return tuple(sorted(frozenset().union(*map(names_in, nodes))))

    def _row(self, read: tuple[int, ...]) -> int:
        if read not in self._known:
            state = dict(zip(self._reads, read, strict=True))
            each = itertools.product(*(self._of(draw, state) for draw in self._draws))
            together = tuple(math.prod(chances, start=Fraction(1)) for chances in each)
            self._known[read] = self._number.setdefault(together, len(self._number))
        return self._known[read]

    def _of(self, draw: Draw, state: Mapping[str, int]) -> Chances:
        """The probability of each value of one draw."""
        path = _path(draw)
        where = f"in state {', '.join(f'{name} = {value}' for name, value in state.items())} " if state else ""
        known: dict[int, Fraction] = {}
        for value, node in draw.chances.items():
            source = self.system.model.at(f"{path}.{value}")
            if node is not None:
                known[value] = Fraction(exact_number(node, state, source))
                if not 0 <= known[value] <= 1:
                    message = f"the probability of '{draw.name} = {value}' is {float(known[value]):g}, outside 0..1"
                    raise source.error(where + message, None)
        total = sum(known.values(), Fraction(0))
        rest = len(known) < len(draw.chances)
        if total > 1 or (total < 1 and not rest):
            hint = None if rest else 'write one of them as "rest"'
            message = f"{where}the probabilities of '{draw.name}' sum to {float(total):g}"
            raise self.system.model.at(path).error(message, None, hint)
        return tuple(known.get(value, 1 - total) for value in draw.chances)


def _path(draw: Draw) -> str:
    return f"world.{draw.name}.probability"
