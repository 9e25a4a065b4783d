"""The state space of a system: every valuation of its variables, with a code in mixed radix.

Code and valuation determine each other: the last declared variable varies fastest. A code is a 64-bit integer where
the product of the ranges allows, else a text of 8 bytes for each of the words it takes; both sort as the valuations.

What the world decides and draws in a step: the combinations of values of its inputs, and how likely each is.

Draws are independent of each other and of what is reported. Their probabilities are exact fractions; they are
evaluated once for each combination of the values that they depend on.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Columns, Ints, Mask
from verifier.base.errors import LimitError, Place
from verifier.base.numbers import significant
from verifier.language.expressions import Source, evaluate, exact_number
from verifier.language.expressions.evaluation import Value
from verifier.language.expressions.syntax import Node, names_in
from verifier.systems.model import BoundedVariable, System, bounded
from verifier.systems.model_parts import Decision, Draw, nodes_of, with_nodes

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
        return math.prod(variable.size for variable in self.variables)

    @cached_property
    def words(self) -> tuple[tuple[BoundedVariable, ...], ...]:
        """The variables of each 64-bit word of a code; one word where a code is an integer."""
        words: list[list[BoundedVariable]] = [[]]
        for variable in self.variables:
            if words[-1] and math.prod(other.size for other in words[-1]) * variable.size > LARGEST_WORD:
                words.append([])
            words[-1].append(variable)
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
        values: dict[str, Ints] = {}
        for word, rest in zip(words, columns, strict=True):
            for variable in reversed(word):
                rest, offset = np.divmod(rest, variable.size)
                values[variable.name] = offset + variable.low
        return {variable.name: values[variable.name] for variable in self.variables}

    def number(self, values: Mapping[str, Value], count: int) -> Codes:
        """(count,) code of each valuation; `nowhere` where a value is out of range or not whole."""
        valid = np.ones(count, dtype=bool)
        columns = []
        for word in self.words:
            column = np.zeros(count, dtype=np.int64)
            for variable in word:
                whole, allowed = whole_in_range(values[variable.name], variable)
                valid &= allowed
                column = column * variable.size + (whole - variable.low)
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
    numbers = np.asarray(value)
    allowed = np.asarray((numbers >= variable.low) & (numbers <= variable.high))
    if numbers.dtype.kind == "f":
        allowed &= np.trunc(numbers) == numbers
    if not allowed.all():
        numbers = np.where(allowed, numbers, variable.low)
    return np.asarray(numbers, dtype=np.int64), allowed


def truth(condition: Node, values: Mapping[str, Value], count: int, source: Source | None = None) -> Mask:
    """(count,) mask of the valuations in which `condition` holds; `source` is where it stands, for messages."""
    holds = np.asarray(evaluate(condition, values, source), dtype=bool)
    mask: Mask = np.broadcast_to(holds, (count,))
    return mask


def successors(
    system: System,
    space: StateSpace,
    values: Columns,
    inputs: Mapping[str, Value],
    count: int,
    remembered: Columns = MappingProxyType({}),
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
    for variable in system.inputs:
        whole[variable.name], in_range = whole_in_range(inputs[variable.name], variable)
        allowed &= in_range
    scope = {**values, **whole}
    allowed &= truth(system.admissible, scope, count, system.model.at("admissible"))
    following = np.repeat(space.number({variable.name: variable.low for variable in space.variables}, 1), count)
    following[:] = space.nowhere
    if not allowed.any():
        return following
    if not allowed.all():
        scope = {name: value[allowed] if value.ndim else value for name, value in scope.items()}
    moved = {
        name: evaluate(node, scope, system.model.at(f"variables.{name}.next"))
        for name, node in system.dynamics.items()
    }
    moved |= {name: value[allowed] if value.ndim else value for name, value in remembered.items()}
    if allowed.all():
        return space.number(moved, count)
    following[allowed] = space.number(moved, int(allowed.sum()))
    return following


Chances = tuple[Fraction, ...]
MOST_COMBINATIONS = 10_000
"""Of drawn values, and of decided ones."""


@dataclass(frozen=True, eq=False)
class World:
    """What the world may do; `system` is the one of the environment that is looked at.

    It decides first: a *choice* is a combination of what it decides. Of probabilities that are only known up to
    intervals it then chooses an extreme point: what it can gain is linear in them.
    """

    system: System
    _number: dict[Chances, int] = field(default_factory=dict)
    _known: dict[tuple[int, ...], tuple[int, ...]] = field(default_factory=dict)
    _arrays: dict[int, tuple[NDArray[Any], Mask]] = field(default_factory=dict)

    @cached_property
    def outcomes(self) -> tuple[Mapping[str, np.int64], ...]:
        """Every combination of drawn values, as name -> value; a single empty one where nothing is drawn."""
        return self._combinations({draw.name: tuple(draw.chances) for draw in self._draws}, "drawn")

    @cached_property
    def choices(self) -> tuple[Mapping[str, np.int64], ...]:
        """Every combination of decided values; a single empty one where nothing is decided."""
        ranges = (bounded(self.system, f"world.{decision.name}.range", decision) for decision in self._decisions)
        return self._combinations(
            {variable.name: range(variable.low, variable.high + 1) for variable in ranges}, "decided"
        )

    def _combinations(self, values: Mapping[str, Sequence[int]], what: str) -> tuple[Mapping[str, np.int64], ...]:
        count = math.prod(map(len, values.values()))
        if count > MOST_COMBINATIONS:
            message = f"the world has {count} combinations of {what} values; at most {MOST_COMBINATIONS} are tried"
            raise LimitError(message, Place(self.system.model.file), hint="narrow the ranges of its inputs")
        groups = ([(name, np.int64(value)) for value in own] for name, own in values.items())
        return tuple(map(dict, itertools.product(*groups)))

    @property
    def chances(self) -> NDArray[Any]:
        """(distributions, outcomes) fractions, each row summing to 1: the distributions met so far."""
        return self._met()[0]

    @property
    def can_occur(self) -> Mask:
        """(distributions, outcomes) bool, where `chances` are above 0."""
        return self._met()[1]

    def _met(self) -> tuple[NDArray[Any], Mask]:
        """Chances and whether they are above 0, kept until another distribution is met."""
        if len(self._number) not in self._arrays:
            met = list(self._number) or [(Fraction(1), *(Fraction(0) for _ in self.outcomes[1:]))]
            chances = np.array(met, dtype=object).reshape(len(met), len(self.outcomes))
            self._arrays.clear()
            self._arrays[len(self._number)] = chances, np.asarray(chances > 0, dtype=bool)
        return self._arrays[len(self._number)]

    def told(self, choice: int, row: int) -> dict[str, str]:
        """What it decides, for people: name -> value, or the values of an interval draw with their probabilities in a
        row of `chances`."""
        texts = {name: str(value) for name, value in self.choices[choice].items()}
        for draw in self._draws:
            shares = {value: Fraction(0) for value, chance in draw.chances.items() if isinstance(chance, tuple)}
            for share, drawn in zip(self.chances[row], self.outcomes, strict=True):
                if drawn[draw.name] in shares:
                    shares[int(drawn[draw.name])] += share
            if shares:
                texts[draw.name] = ", ".join(
                    f"{value} with {significant(float(share), 6)}" for value, share in shares.items()
                )
        return texts

    def admissible(self, values: Mapping[str, Ints], count: int) -> Mask:
        """(count, choices) bool, what it may decide in each of some valuations; InputError where that is nothing."""
        model, allowed = self.system.model, np.ones((count, len(self.choices)), dtype=bool)
        for decision in self._decisions:
            source = model.at(f"world.{decision.name}.admissible")
            node = self.system.resolve(decision.admissible, source.path)
            for number, decided in enumerate(self.choices):
                own = {name: np.full(count, value) for name, value in decided.items()}
                allowed[:, number] &= truth(node, {**values, **own}, count, source)
        stuck = np.flatnonzero(~allowed.any(axis=1))
        if len(stuck):
            where = ", ".join(f"{name} = {value[stuck[0]]}" for name, value in values.items())
            message = f"in state {where} the world has no admissible move; terminal states need none"
            raise model.at("world").error(message, None)
        return allowed

    def possible(self, values: Mapping[str, Ints], count: int, choice: int) -> Mask:
        """(count, outcomes) bool, which outcomes can have a probability above 0 in each of some valuations."""
        rows, can = self.distributions(values, count, choice), self.can_occur
        return np.asarray((can[rows] & (rows >= 0)[:, :, None]).any(axis=1), dtype=bool)

    def distributions(self, values: Mapping[str, Ints], count: int, choice: int = 0) -> Ints:
        """(count, most) the rows of `chances` among which it chooses in each of some valuations; -1 behind them.

        Raises:
            InputError: probabilities that are not from 0 to 1, or do not sum to 1.
        """
        read = np.array([values[name] for name in self._reads], dtype=np.int64).reshape(len(self._reads), count)
        unique, place = np.unique(read.T, axis=0, return_inverse=True)
        group = [self._rows(choice, tuple(own)) for own in unique.tolist()]
        rows = np.full((len(group), max(map(len, group), default=1)), -1, dtype=np.int64)
        for row, own in zip(rows, group, strict=True):
            row[: len(own)] = own
        return rows[place.ravel()]

    @property
    def _decisions(self) -> tuple[Decision, ...]:
        return tuple(choice for choice in self.system.model.world if isinstance(choice, Decision))

    @cached_property
    def _draws(self) -> tuple[Draw, ...]:
        """With probabilities over variables only; InputError where one can have a value outside its range."""
        system = self.system
        draws = [choice for choice in system.model.world if isinstance(choice, Draw)]
        for draw in draws:
            within = bounded(system, f"world.{draw.name}.range", draw)
            for value in draw.chances:
                if not within.low <= value <= within.high:
                    message = f"'{draw.name}' can be {value}, which is outside {within.low}..{within.high}"
                    raise system.model.at(f"{_path(draw)}.{value}").error(message, None)
        return tuple(with_nodes(draw, partial(system.resolve, path=_path(draw))) for draw in draws)

    @cached_property
    def _reads(self) -> tuple[str, ...]:
        """The variables that probabilities depend on."""
        read = frozenset().union(*map(names_in, nodes_of(self._draws)))
        return tuple(sorted(read - {decision.name for decision in self._decisions}))

    def _rows(self, choice: int, read: tuple[int, ...]) -> tuple[int, ...]:
        if (choice, *read) not in self._known:
            decided = {name: int(value) for name, value in self.choices[choice].items()}
            state = {**dict(zip(self._reads, read, strict=True)), **decided}
            rows: dict[int, None] = {}
            for chosen in itertools.product(*(self._of(draw, state) for draw in self._draws)):
                together = tuple(math.prod(fractions, start=Fraction(1)) for fractions in itertools.product(*chosen))
                rows[self._number.setdefault(together, len(self._number))] = None
            self._known[choice, *read] = tuple(rows)
        return self._known[choice, *read]

    def _of(self, draw: Draw, state: Mapping[str, int]) -> list[Chances]:
        """The extreme points of the probabilities of the values of one draw."""
        path, model = _path(draw), self.system.model
        where = f"in state {', '.join(f'{name} = {value}' for name, value in state.items())} " if state else ""
        ends: dict[int, tuple[Fraction, Fraction]] = {}
        for value, chance in draw.chances.items():
            source = model.at(f"{path}.{value}")
            if chance is not None:
                nodes = chance if isinstance(chance, tuple) else (chance, chance)
                low, high = (Fraction(exact_number(node, state, source)) for node in nodes)
                for end in (low, high):
                    if not 0 <= end <= 1:
                        message = f"the probability of '{draw.name} = {value}' is {float(end):g}, outside 0..1"
                        raise source.error(where + message, None)
                if low > high:
                    message = f"the interval of '{draw.name} = {value}' is {float(low):g} to {float(high):g}"
                    raise source.error(where + message, None)
                ends[value] = low, high
        lowest, highest = (sum((row[end] for row in ends.values()), Fraction(0)) for end in (0, 1))
        rest = len(ends) < len(draw.chances)
        if lowest > 1 or (highest < 1 and not rest):
            if all(low == high for low, high in ends.values()):
                hint = None if rest else 'write one of them as "rest"'
                message = f"{where}the probabilities of '{draw.name}' sum to {float(lowest):g}"
                raise model.at(path).error(message, None, hint)
            what = f"lower ends sum to {float(lowest):g}" if lowest > 1 else f"upper ends sum to {float(highest):g}"
            message = f"{where}no probabilities of '{draw.name}' lie in the intervals: the {what}"
            raise model.at(path).error(message, None)
        free = Fraction(0), Fraction(1)
        known = [ends.get(value, free) for value in draw.chances]
        tried = len(known) * math.prod(len(set(row)) for row in known)
        if tried > MOST_COMBINATIONS:
            message = f"'{draw.name}' has {tried} combinations of the ends of its intervals"
            place, hint = model.at(path).place(None), "join values, or give some of them a single probability"
            raise LimitError(f"{message}; at most {MOST_COMBINATIONS} are tried", place, hint)
        return _extreme_points(known)


def _extreme_points(ends: list[tuple[Fraction, Fraction]]) -> list[Chances]:
    """The extreme points of {low <= p <= high, sum p = 1}: all but one probability at an end."""
    points: dict[Chances, None] = {}
    for free, (least, most) in enumerate(ends):
        others = [sorted(set(end)) for k, end in enumerate(ends) if k != free]
        for chosen in itertools.product(*others):
            own = 1 - sum(chosen, Fraction(0))
            if least <= own <= most:
                points[(*chosen[:free], own, *chosen[free:])] = None
    return list(points)


def _path(draw: Draw) -> str:
    return f"world.{draw.name}.probability"
