"""Vacuity: requirements that say nothing about a scenario, because what they ask cannot fail, or cannot hold, there.

A requirement is *vacuous* from an initial state s when the facts below settle its formula at s. Let R be the states
that s reaches in the skeleton, whatever the detector reports (so no count of the matrices matters here).

| kind         | facts                                                                                            |
|--------------|--------------------------------------------------------------------------------------------------|
| `ended`      | s is terminal: the episode is over before it begins                                              |
| `trivial`    | which classes stand in the environment; then also the truth of every state condition in s itself |
| `constant`   | also: a condition has one value for all values in the ranges of its variables                    |
| `antecedent` | also: a conditional whose antecedent is true in no state of R holds everywhere                   |

"Settle" is Kleene's strong three-valued logic: from facts that hold at every position of every path, or at its first
one, the value of each subformula follows by the laws of the connectives and by a U b = b | (a & X(a U b)). It is
sound, not complete: a settled formula is true on all paths from s or false on all of them, so its probability is 1
or 0 for every matrix. By the first three kinds it stays so for every planner, by `antecedent` for every planner that
keeps to R. A tautology such as `F a | G !a` is not noticed.

A conditional is `a -> b`, or `c | b` where c is a state condition and b is temporal (a response, with antecedent !c).
One whose b is settled false is no conditional but forbids a: `G (collision -> false)` is not vacuous because the
planner never collides, as little as `G !collision` or `G (ped | !at_line)` is. That is where this differs from the
general definition, by which a formula is vacuous if some subformula may be replaced by anything without changing its
truth (Beer, Ben-David, Eisner, Rodeh, Efficient detection of vacuity in temporal model checking, Formal Methods in
System Design 18, 2001; Kupferman, Vardi, Vacuity detection in temporal model checking, STTT 4, 2003): under it every
invariant that a good planner keeps by never touching one of its conditions would be vacuous.

A condition that is constant on R, or a conditional never tested in a formula that is not settled, is a *note*.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Mask, rows_of
from verifier.base.errors import InputError
from verifier.base.graphs import coreachable
from verifier.language.expressions import to_text
from verifier.language.expressions.syntax import (
    COMPARISONS,
    CONNECTIVES,
    Boolean,
    Name,
    Node,
    Operation,
    Temporal,
    children,
    fold,
    names_in,
)
from verifier.language.ltl import abstract
from verifier.language.ltl.semantics import Settled, connective, temporal
from verifier.systems.model_parts import EMPTY_CLASS
from verifier.systems.skeleton import Skeleton
from verifier.systems.space import StateSpace, truth

Kind: TypeAlias = Literal["ended", "trivial", "constant", "antecedent"]
AT_ONCE = 2**14
"""Valuations that are looked at together to see whether a condition is constant; most are refuted by the first."""


@dataclass(frozen=True)
class Vacuity:
    """Why a requirement says nothing from one initial state."""

    kind: Kind
    text: str


@dataclass(frozen=True)
class Findings:
    """What was found about one requirement.

    Attributes:
        vacuity: for each of the m initial states why the requirement is vacuous there; empty where it is not.
        notes: conditions that are constant in every reachable state, and antecedents that are true in none, of a
            requirement that is not vacuous for all that.
    """

    vacuity: tuple[tuple[Vacuity, ...], ...]
    notes: tuple[str, ...]


def find_vacuity(skeleton: Skeleton, formulas: Sequence[Node]) -> tuple[Findings, ...]:
    """What is vacuous in each formula, from each initial state of a skeleton.

    Args:
        skeleton: the states and what they lead to.
        formulas: over the names of the model, lets replaced.
    """
    search = _Search(skeleton)
    return tuple(_findings(search, formula) for formula in formulas)


class _Facts(IntEnum):
    """What is taken as known; each level knows what those before it know."""

    ENVIRONMENT = auto()
    FIRST_STATE = auto()
    RANGES = auto()
    ANTECEDENTS = auto()


_ENDED = "the initial state is terminal: the episode is over before it begins"
_KIND: Mapping[_Facts, Kind] = {
    _Facts.ENVIRONMENT: "trivial",
    _Facts.FIRST_STATE: "trivial",
    _Facts.RANGES: "constant",
    _Facts.ANTECEDENTS: "antecedent",
}


def _findings(search: _Search, formula: Node) -> Findings:
    ended = search.skeleton.terminal[search.skeleton.starts]
    reasons: list[tuple[Vacuity, ...]] = [(), (Vacuity("ended", _ENDED),)]
    reason_of_start = ended.astype(np.int64)
    conditions = frozenset(abstract(formula)[1].values())
    all_facts = _Settling(search, formula, conditions, _Facts.ANTECEDENTS)
    left = ~ended & all_facts.settled  # most formulas are done here; of the others the least facts are looked for
    for level in _Facts:
        if not left.any():
            break
        known = _Settling(search, formula, conditions, level)
        new = left & known.settled
        # Starts with the same value and the same unmet antecedents share one reason.
        cases, case = np.unique(known.cases()[:, new], axis=1, return_inverse=True)
        reason_of_start[new] = len(reasons) + case
        reasons += [(Vacuity(_KIND[level], known.reason(column)),) for column in cases.T]
        left &= ~new
    notes = () if np.all(reason_of_start) else tuple(all_facts.notes())
    return Findings(tuple(reasons[index] for index in reason_of_start.tolist()), notes)


class _Settling:
    """What follows about one formula from the facts of one level."""

    def __init__(self, search: _Search, formula: Node, conditions: frozenset[Node], level: _Facts) -> None:
        self._search, self._formula, self._conditions, self._level = search, formula, conditions, level
        self._unmet: dict[Node, Mask] = {}
        self._constant: dict[Node, int] = {}
        self._value = fold(formula, self._combine)[1]

    @property
    def settled(self) -> Mask:
        """(m,) the starts from which the formula is settled."""
        mask: Mask = self._value[0] != 0
        return mask

    def cases(self) -> NDArray[np.int8]:
        """(1 + antecedents, m) for each start the value of the formula, and which antecedents are unmet from it."""
        return np.array([self._value[0], *self._unmet.values()], dtype=np.int8)

    def reason(self, case: NDArray[np.int8]) -> str:
        """Why the formula is settled, for one column of `cases`."""
        outcome = f"the requirement {'holds' if case[0] > 0 else 'fails'} on every path"
        if self._level is _Facts.ENVIRONMENT:
            classes = sorted(names_in(self._formula) & self._search.classes.keys())
            present = " and ".join(f"{name} is {_word(self._search.classes[name])}" for name in classes)
            where = f"{present} in environment {self._search.skeleton.environment}"
            return f"{where if present else 'by its form alone'}: {outcome}"
        if self._level is _Facts.FIRST_STATE:
            return f"decided in the initial state itself: {outcome} from there"
        if self._level is _Facts.RANGES:
            values = (f"{_quoted(node)} is {_word(value > 0)}" for node, value in self._constant.items())
            return f"{' and '.join(values)} for all values in range: {outcome}"
        unmet = (_quoted(node) for node, met in zip(self._unmet, case[1:], strict=True) if met)
        return f"{' and '.join(unmet)} never holds from this initial state on: {outcome} without being tested"

    def notes(self) -> Iterator[str]:
        """What is never tested, or constant, on the states that any start reaches."""
        for antecedent, unmet in self._unmet.items():
            if unmet.all():
                yield f"{_quoted(antecedent)} holds in no reachable state, so what should follow it is never tested"
        for condition in sorted(self._conditions - self._unmet.keys() - self._constant.keys(), key=to_text):
            mask = self._search.skeleton.mask_of(condition)
            if np.all(mask == mask[0]) and not self._search.in_range(condition):
                yield f"{_quoted(condition)} is {_word(bool(mask[0]))} in every reachable state"

    def _combine(self, node: Node, below: tuple[tuple[bool, Settled], ...]) -> tuple[bool, Settled]:
        is_temporal = isinstance(node, Temporal) or any(inside for inside, _ in below)
        values = [value for _, value in below]
        if isinstance(node, Temporal):
            value = temporal(node, values)
        elif isinstance(node, Operation) and node.operator in CONNECTIVES:
            value = connective(node.operator, values)
            if self._level is _Facts.ANTECEDENTS:
                value = self._tested(node, below, value)
        else:
            value = self._search.atom(node, self._level)
        if self._level >= _Facts.RANGES and (node in self._conditions or self._search.is_condition(node)):
            value = self._in_range(node, value)
        return is_temporal, value

    def _in_range(self, node: Node, value: Settled) -> Settled:
        """`value`, with what the ranges of the variables say where it is open at later positions."""
        if value[1].all():
            return value
        constant = self._search.in_range(node)
        if constant:
            self._constant[node] = constant
        return np.where(value == 0, np.int8(constant), value)

    def _tested(self, node: Operation, below: tuple[tuple[bool, Settled], ...], value: Settled) -> Settled:
        """`value`, true where `node` is a conditional whose antecedent is never met."""
        if node.operator == "->":
            antecedent, consequent = node.operands[0], below[1][1]
        elif node.operator == "|" and below[0][0] != below[1][0]:
            state = 0 if below[1][0] else 1
            other, consequent = node.operands[state], below[1 - state][1]
            negated = isinstance(other, Operation) and other.operator == "!"
            antecedent = children(other)[0] if negated else Operation("!", (other,))
        else:
            return value
        open_here = (value[1] == 0) & (consequent[1] > -1)
        if not open_here.any():
            return value
        unmet = open_here & (self._search.always(antecedent) < 0)
        if unmet.any():
            self._unmet[antecedent] = self._unmet.get(antecedent, False) | unmet
        return np.where(unmet, np.int8(1), value)


class _Search:
    """Facts about one skeleton, those that cost something found once."""

    def __init__(self, skeleton: Skeleton) -> None:
        self.skeleton = skeleton
        model, present = skeleton.system.model, skeleton.system.environment(skeleton.environment)
        there = {name for placed in present for name in placed.classes} - {EMPTY_CLASS}
        self.classes = {name: name in there for name in model.environment_classes()} | {EMPTY_CLASS: not there}
        self._first = {name: value[skeleton.starts] for name, value in skeleton.valuations.items()}
        self._names = {name for name, kind in model.types().items() if kind == "boolean"}
        self._started: dict[Node, NDArray[np.int8]] = {}
        self._ranges: dict[Node, int] = {}
        self._reaching: dict[tuple[Node, bool], Mask] = {}

    def atom(self, node: Node, level: _Facts) -> Settled:
        """What is known of a condition without connectives; nothing of what is no condition."""
        count = len(self.skeleton.starts)
        if isinstance(node, Boolean) or (isinstance(node, Name) and node.name in self.classes):
            value = node.value if isinstance(node, Boolean) else self.classes[node.name]
            return np.full((2, count), 1 if value else -1, dtype=np.int8)
        known = np.zeros((2, count), dtype=np.int8)
        if level >= _Facts.FIRST_STATE and self.is_condition(node):
            known[0] = self._at_start(node)
        return known

    def in_range(self, condition: Node) -> int:
        """1 or -1 where the condition is true or false for all values of its variables, else 0."""
        if condition not in self._ranges:
            self._ranges[condition] = self._constant_in_range(self._grounded(condition))
        return self._ranges[condition]

    def always(self, formula: Node) -> NDArray[np.int8]:
        """(m,) 1 or -1 where the states that a start reaches settle the formula at every position, else 0."""
        conditions = frozenset(abstract(formula)[1].values())

        def combine(node: Node, below: tuple[Settled, ...]) -> Settled:
            if node in conditions:
                return self._on_reachable(node, formula)
            if isinstance(node, Temporal):
                return temporal(node, below)
            if isinstance(node, Operation) and node.operator in CONNECTIVES:
                return connective(node.operator, below)
            return self.atom(node, _Facts.ENVIRONMENT)

        every: NDArray[np.int8] = fold(formula, combine)[1]
        return every

    def is_condition(self, node: Node) -> bool:
        """Whether `node` is a condition without connectives."""
        if isinstance(node, Name):
            return node.name in self._names
        return isinstance(node, Operation) and node.operator in COMPARISONS

    def _on_reachable(self, condition: Node, formula: Node) -> Settled:
        """The value of a condition on all states that each start reaches; only for a temporal `formula` also 1."""
        value = np.where(self._reaches(condition, True), np.int8(0), np.int8(-1))
        if condition is not formula:
            value[~self._reaches(condition, False)] = 1
        return np.stack([value, value])

    def _reaches(self, condition: Node, wanted: bool) -> Mask:
        """(m,) the starts that reach a state in which the condition is `wanted`: one search answers for all."""
        if (condition, wanted) not in self._reaching:
            mask = self.skeleton.mask_of(condition) == wanted
            if mask.any() and not mask.all():
                skeleton = self.skeleton
                mask = coreachable(skeleton.state_count, rows_of(skeleton.indptr), skeleton.indices, mask)
            self._reaching[condition, wanted] = mask[self.skeleton.starts]
        return self._reaching[condition, wanted]

    def _at_start(self, condition: Node) -> NDArray[np.int8]:
        if condition not in self._started:
            holds = truth(self._grounded(condition), self._first, len(self.skeleton.starts))
            self._started[condition] = np.where(holds, np.int8(1), np.int8(-1))
        return self._started[condition]

    def _grounded(self, condition: Node) -> Node:
        return self.skeleton.system.in_environment(condition, self.skeleton.environment)

    def _constant_in_range(self, condition: Node) -> int:
        named = names_in(condition)
        space = StateSpace(tuple(variable for variable in self.skeleton.system.variables if variable.name in named))
        first: bool | None = None
        for low in range(0, space.size, AT_ONCE):
            states = np.arange(low, min(low + AT_ONCE, space.size))
            try:
                holds = truth(condition, space.valuations(states), len(states))
            except InputError:  # not defined for all values (a division by zero), so not constant
                return 0
            first = bool(holds[0]) if first is None else first
            if not np.all(holds == first):
                return 0
        return 1 if first else -1


def _word(value: bool) -> str:
    return "true" if value else "false"


def _quoted(condition: Node) -> str:
    return f"'{to_text(condition)}'"
