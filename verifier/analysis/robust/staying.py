"""Obligations that show the kernel that who stays somewhere forever is not lost.

They are found here and believed nowhere: the kernel checks them edge by edge (`kernel.Proof.stay`).

*Progression.* After a letter, what remains of a formula is a disjunction of terms, sets of atoms as in
`kernel.Obligations`. Nothing is simplified but terms that hold another one. A state that is reached with several
obligations, which the product takes for one, is to meet all of them.

*Components.* In an end component the obligations of its states are kept where they lead on by every step that stays.
Dropped are the terms with untils that nature never fulfils there, as many as possible: if `F G p` is dropped, `G p`
remains. Of every until that is left, some part of the component may put it off forever; there other obligations are
to be met, found in the same way. This finds for every way of staying what makes the formula hold (Zielonka's tree).

What can be shown to the kernel about who stays: bounds rest on nothing else, so each has a certificate.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.analysis import kernel
from verifier.analysis.objective import Objective
from verifier.analysis.robust.region import Region
from verifier.analysis.robust.subject import region_document, subject_of

Terms: TypeAlias = "frozenset[frozenset[kernel.Atom]]"
Edges: TypeAlias = "Mapping[int, set[int]]"

_TRUE: Terms = frozenset({frozenset()})
_FALSE: Terms = frozenset()
_MOST_WORK = 300_000
"""Terms that are compared, and states that are looked at, for one system."""


class _TooMuchError(Exception):
    """More would have to be looked at than is worth while."""


class Staying:
    """Finds what the states of one system have to meet, for one side of the bounds.

    Args:
        subject: of the certificate, as it is written down.
        system: its states, with all matrices that count.
        side: "lower" or "upper".
    """

    def __init__(self, subject: Mapping[str, object], system: kernel.System, side: str) -> None:
        self._nodes = kernel.Obligations({"subject": subject, "side": side, "obligations": []}).nodes
        self._entire: Terms = frozenset({frozenset({(len(self._nodes) - 1, *self._nodes[-1][2:])})})
        self._letters = system.letters
        self._after: dict[Any, Terms] = {}
        self._work = _MOST_WORK
        self._numbers: dict[Terms, int] = {}
        self._own: dict[int, Terms] = {}
        try:
            self._follow(system)
        except _TooMuchError:
            self._own = {}

    @property
    def table(self) -> list[Any]:
        """All obligations that were given a number, as they are written down."""
        return [sorted((sorted(map(list, term), key=repr) for term in terms), key=repr) for terms in self._numbers]

    def number(self, terms: Terms) -> int:
        """The number of an obligation in the table."""
        return self._numbers.setdefault(terms, len(self._numbers))

    def own(self, count: int) -> list[int]:
        """Number of each state's obligation; the whole formula for states that are never reached."""
        return [self.number(self._own.get(state, self._entire)) for state in range(count)]

    def reaches(self, state: int) -> bool:
        """Whether some matrix reaches a state."""
        return state in self._own

    def component(self, system: kernel.System, members: Iterable[int]) -> dict[str, Any]:
        """What is written down of a component; without obligations, which proves nothing, where none are found.

        Args:
            system: see `shown`.
            members: of an end component.
        """
        states = sorted(members)
        nothing = {"states": states, "obligations": [self.number(_FALSE)] * len(states), "without": []}
        return self.shown(system, states) or nothing

    def shown(self, system: kernel.System, members: Iterable[int]) -> dict[str, object] | None:
        """What shows that who stays among the members is not lost; None where nothing is found.

        Args:
            system: the states, with some or all of the matrices of the first system.
            members: of an end component.
        """
        try:
            states = sorted(members)
            if not all(map(self.reaches, states)):
                return None
            return self._component(system, states, {state: system.moves(state, _anywhere) for state in states})
        except _TooMuchError:
            return None

    def _follow(self, system: kernel.System) -> None:
        """Find the obligations of all states that can be reached."""
        letters = self._letters
        pending = [(state, self._progress(self._entire, letters[state])) for state in set(system.starts)]
        while pending:
            state, remains = pending.pop()
            if state in self._own:
                remains = self._conjunction(self._own[state], remains)
                if remains == self._own[state]:
                    continue
            self._own[state] = remains
            for after in system.moves(state, _anywhere):
                pending.append((after, self._progress(remains, letters[after])))

    def _component(self, system: kernel.System, states: list[int], may: Edges) -> dict[str, object] | None:
        """What shows that who stays there is not lost, if it takes only edges that it may take."""
        inside = frozenset(states)
        within = {state: may[state] & inside for state in states}
        ahead = {state: system.moves(state, _taken(within)) for state in states}  # by steps that surely stay
        never: list[int] = []
        while held := self._kept(ahead, never):
            parts, failed = [], None
            for until in self._untils(held):
                self._spend(len(states))
                late = {
                    state: {after for after in others if not self._prompt(held, state, after, until)}
                    for state, others in ahead.items()
                }
                settled = None if late == ahead else self._settled(system, late)  # else nothing is gained
                if settled is None:
                    failed = until
                    break
                if settled["components"] or any(settled["order"]):
                    parts.append({"until": until, **settled})
            if failed is None:
                numbers = [self.number(held[state]) for state in states]
                return {"states": states, "obligations": numbers, "without": parts}
            never.append(failed)
        return None

    def _prompt(self, held: Mapping[int, Terms], state: int, after: int, until: int) -> bool:
        """Whether an edge need not put off an until."""
        return _implies(held[after], self._progress(held[state], self._letters[after], until))

    def _settled(self, system: kernel.System, may: Edges) -> dict[str, Any] | None:
        """The order of states and the components in which almost every run that takes such edges ends; None where
        some of these cannot be shown."""
        parts = list(_end_components(system, may))
        components = []
        for members in parts:
            components.append(self._component(system, sorted(members), may))
            if components[-1] is None:
                return None
        order = _order(system, parts, may)
        return {"order": [order[state] for state in may], "components": components}

    def _kept(self, ahead: Edges, never: Sequence[int]) -> dict[int, Terms]:
        """The obligations of a component's states without the untils of `never` and as many others as possible; none
        where these do not suffice."""
        held = self._without({state: self._own[state] for state in ahead}, never, ahead)
        for until in self._untils(held):
            held = self._without(held, [until], ahead) or held
        return held

    def _without(self, held: Mapping[int, Terms], untils: Sequence[int], ahead: Edges) -> dict[int, Terms]:
        """Obligations that lead on by all edges, without the terms that have one of the untils; none if some state
        has none."""

        def allowed(terms: Terms) -> Terms:
            return frozenset(term for term in terms if not any(atom[0] in untils for atom in term))

        kept = {state: allowed(terms) for state, terms in held.items()}
        pending = list(kept)
        while pending:
            state = pending.pop()
            if not kept[state]:
                return {}
            for after in ahead[state]:
                remains = self._progress(kept[state], self._letters[after])
                if not _implies(kept[after], remains):
                    kept[after] = allowed(self._conjunction(kept[after], remains))
                    pending.append(after)
        return kept

    def _untils(self, held: Mapping[int, Terms]) -> list[int]:
        """The endless untils that are met now or later; those first that hold others."""
        atoms = {atom for terms in set(held.values()) for term in terms for atom in term}
        return sorted({n for n, _, high in atoms if self._nodes[n][0] == "U" and high == -1}, reverse=True)

    def _progress(self, terms: Terms, letter: int, prompt: int | None = None) -> Terms:
        """What remains after a letter, when untils number `prompt` are not put off."""
        key = terms, letter, prompt
        if key not in self._after:
            rest = _FALSE
            for term in terms:
                part = _TRUE
                for atom in term:
                    part = self._conjunction(part, self._step(atom, letter, atom == (prompt, 0, -1)))
                rest = self._least(rest | part)
            self._after[key] = rest
        return self._after[key]

    def _step(self, atom: kernel.Atom, letter: int, prompt: bool = False) -> Terms:
        key = atom, letter, prompt
        if key not in self._after:
            (number, low, high), (kind, operands, *_) = atom, self._nodes[atom[0]]
            parts = [self._step((k, *self._nodes[k][2:]), letter) for k in operands]
            if kind in ("holds", "fails"):
                result = _TRUE if (letter >> low & 1) == (kind == "holds") else _FALSE
            elif kind in ("&", "|"):
                result = _TRUE if kind == "&" else _FALSE
                for part in parts:
                    result = self._conjunction(result, part) if kind == "&" else self._least(result | part)
            else:
                later: Terms = frozenset({frozenset({(number, max(low - 1, 0), high - (high > 0))})})
                if high == 0 or prompt:
                    later = _FALSE if kind == "U" else _TRUE
                if kind == "U":
                    result = self._conjunction(parts[0], later)
                    result = self._least(parts[1] | result) if low == 0 else result
                else:
                    result = self._least(parts[0] | later)
                    result = self._conjunction(parts[1], result) if low == 0 else result
            self._after[key] = result
        return self._after[key]

    def _spend(self, work: int) -> None:
        self._work -= work
        if self._work < 0:
            raise _TooMuchError

    def _conjunction(self, one: Terms, other: Terms) -> Terms:
        self._spend(len(one) * len(other))
        return self._least({a | b for a in one for b in other})

    def _least(self, terms: Iterable[frozenset[kernel.Atom]]) -> Terms:
        """The terms that hold no other."""
        kept: list[frozenset[kernel.Atom]] = []
        for term in sorted(terms, key=len):
            self._spend(1 + len(kept))
            if not any(less <= term for less in kept):
                kept.append(term)
        return frozenset(kept)


def _implies(held: Terms, remains: Terms) -> bool:
    return all(any(less <= term for less in remains) for term in held)


def _grown(begun: Iterable[int], more: Mapping[int, Iterable[int]]) -> set[int]:
    """`begun` and all that follows."""
    known = set(begun)
    pending = list(known)
    while pending:
        new = set(more[pending.pop()]) - known
        known |= new
        pending += new
    return known


def _anywhere(state: int, after: int) -> bool:
    return True


def _taken(may: Edges) -> Callable[[int, int], bool]:
    """The edges as the kernel asks for them."""
    return lambda state, after: after in may[state]


def _backwards(ahead: Edges) -> dict[int, set[int]]:
    """The edges from their ends to where they come from."""
    before: dict[int, set[int]] = {state: set() for state in ahead}
    for state, following in ahead.items():
        for after in following:
            before[after].add(state)
    return before


def _end_components(system: kernel.System, may: Edges) -> Iterator[frozenset[int]]:
    """The maximal sets of states in which nature can stay for good by these edges, visiting all again and again."""
    pending = [frozenset(may)]
    while pending:
        part = pending.pop()
        within = {state: may[state] & part for state in part}
        ahead = {state: system.moves(state, _taken(within)) for state in part}
        rest = frozenset(state for state in part if ahead[state])
        if rest != part:
            pending += [rest] if rest else []
            continue
        begun = {next(iter(part))}
        forwards, backwards = _grown(begun, ahead), _grown(begun, _backwards(ahead))
        pieces: dict[tuple[bool, bool], set[int]] = {}
        for state in part:
            pieces.setdefault((state in forwards, state in backwards), set()).add(state)
        if len(pieces) == 1:
            yield part
        else:
            pending += map(frozenset, pieces.values())


def _order(system: kernel.System, components: Sequence[frozenset[int]], may: Edges) -> dict[int, int]:
    """Numbers such that every step stays in a component, at the same number, or may lead to a smaller one."""
    own = {state: k for k, members in enumerate(components) for state in members}
    nodes: list[frozenset[int]] = [*components, *(frozenset({state}) for state in may if state not in own)]
    node = {state: members for members in nodes for state in members}
    before = _backwards({state: system.moves(state, _taken(may)) for state in may})
    order: dict[int, int] = {}
    number, at = 0, nodes

    def level(state: int, after: int) -> bool:
        return after in may[state] and after not in order

    def falls(state: int) -> bool:
        return all(state in own and own.get(after) == own[state] for after in system.moves(state, level))

    while at:
        fallen = [members for members in at if all(map(falls, members))]
        order.update((state, number) for members in fallen for state in members)
        # Only who may go there may have become able to fall.
        entering = {node[other] for members in fallen for state in members for other in before[state]}
        at, number = [members for members in entering if members.isdisjoint(order)], number + 1
    if len(order) < len(node):
        raise ValueError("these are not all end components")
    return order


LARGEST_CERTIFIED = 20_000
"""Product states; certificates of larger chains take long to check with whole numbers and are not made."""


@dataclass(frozen=True, eq=False)
class Provable:
    """Says of which end components the kernel can be shown that no run that stays there is lost.

    Attributes:
        objective: the formula on the skeleton.
        region: its matrices.
    """

    objective: Objective
    region: Region

    def __call__(self, members: NDArray[np.int64], holds: bool) -> bool:
        """Whether it can be shown that who stays among the product states `members` meets (violates) the formula.

        True where the product is too large to have certificates.
        """
        if self.objective.state_count > LARGEST_CERTIFIED:
            return True
        system, sides = self._known
        # Of the product states, only `false` and `true`, numbers 0 and 1, have other numbers in certificates.
        return sides["lower" if holds else "upper"].shown(system, (members - 2).tolist()) is not None

    @property
    def is_followed(self) -> bool:
        """Whether it is found, with as much work as is worth while, what each state has to meet."""
        system, sides = self._known
        return all(side.reaches(state) for side in sides.values() for state in system.starts)

    @cached_property
    def _known(self) -> tuple[kernel.System, dict[str, Staying]]:
        subject = subject_of(self.objective).document
        columns = kernel.read_region(region_document(replace(self.region, evidence=None)))
        system = kernel.System(subject, columns)
        return system, {side: Staying(subject, system, side) for side in ("lower", "upper")}
