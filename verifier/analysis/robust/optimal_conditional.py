"""The least and the greatest probability of `F a given F b` over all that a world may decide.

A quotient of two probabilities is no expectation, so no strategy can be improved state by state. It becomes one where
whoever can keep b from ever holding, and does, begins again (Baier, Klein, Klueppelholz and Maercker, Computing
conditional probabilities in Markovian models efficiently, TACAS 2014, section 4): then b surely holds in the end, or
nothing is won, and

    Pmax(F a | F b) = Pmax(F goal) with goal: a and b have held
    Pmin(F a | F b) = 1 - Pmax(F goal) with goal: b has held, and a can be kept from ever holding

States tell which of the two have held. Where one can be stayed away from for ever is a matter of end components, and
these of which transitions have any probability; so every support of matrices has a process of its own.
"""

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from verifier.analysis.objective import Objective
from verifier.analysis.robust.graph import end_components
from verifier.analysis.robust.optimum import Bracket, Optimum, complement, optimum_on
from verifier.base.arrays import Floats, Ints, Mask, marked, rows_of
from verifier.base.budget import Cache
from verifier.base.errors import NoAnswerError
from verifier.base.graphs import coreachable, ranges, reachable
from verifier.checking.batch import BatchResult, gathered
from verifier.checking.product import build_product
from verifier.language.expressions.syntax import Name, Temporal
from verifier.systems.strategies import StrategySkeleton

GOAL = "goal"
REACHED = Temporal("F", (Name(GOAL),))
_A, _B = 1, 2
_MODES = 4
_MOST_PROCESSES = 8


@dataclass(frozen=True, eq=False)
class Restarting:
    """A world that begins again where what is given can be kept from holding.

    Attributes:
        choices: what it may do, a state for each initial state, state, and which of a and b have held.
        goal: (n,) bool.
        optimum: the greatest probability of the goal.
    """

    choices: StrategySkeleton
    goal: Mask
    optimum: Optimum


@dataclass(frozen=True, eq=False)
class OptimalConditional(Optimum):
    """P(F a given F b) of a world that decides, and which end of it is asked for.

    Attributes:
        choices: what the world may do.
        held: (n,) int64, bit 0 says whether a holds in the state, bit 1 whether b does.
        told: b, for messages.
    """

    choices: StrategySkeleton
    held: Ints
    told: str
    most_states: int
    _known: Cache = field(default_factory=lambda: Cache(_MOST_PROCESSES), init=False, repr=False)

    is_undecided = Objective.is_undecided
    plain: ClassVar[bool] = False
    _effort: ClassVar[int] = 4 * Optimum._effort

    def probabilities(self, rates: Floats, *, roughly: bool = False) -> BatchResult:
        """As `Objective.probabilities`.

        Raises:
            NoAnswerError: what is given has probability 0 for some of the matrices, whatever the world decides.
        """
        values = self.skeleton.entry_values(rates)
        patterns, kind = np.unique(values > 0, axis=0, return_inverse=True)
        parts: list[tuple[Ints, BatchResult]] = []
        for number in range(len(patterns)):
            at = np.flatnonzero(kind.ravel() == number)
            optimum = self.restarting(values[at[0]]).optimum
            parts.append((at, optimum.probabilities(rates[at], roughly=roughly)))
        result = gathered(parts, (len(rates), len(self.skeleton.starts)))
        if self.greatest:
            return result
        ends = complement(result.upper, -np.inf), complement(result.lower, np.inf)
        return replace(result, probability=1 - result.probability, lower=ends[0], upper=ends[1])

    def bracket(self, rates: Floats, value_error: float) -> Bracket:
        """As `Optimum.bracket`."""
        bracket = self.restarting(self.skeleton.entry_values(rates)).optimum.bracket(rates, value_error)
        if self.greatest:
            return bracket
        lower, upper = complement(bracket.upper, -np.inf), complement(bracket.lower, np.inf)
        return replace(bracket, value=1 - bracket.value, lower=lower, upper=upper)

    def restarting(self, values: Floats) -> Restarting:
        """The world that begins again, for (entries,) values like these.

        Raises:
            NoAnswerError: what is given cannot hold.
        """
        there = values > 0
        return self._known.kept(there.tobytes(), lambda: self._made(values))

    def _made(self, values: Floats) -> Restarting:
        plain, mode, place = self._followed()
        own, count = plain.choices, len(mode)
        sources, used = rows_of(plain.choice_starts)[rows_of(own.indptr)], values[own.entry] > 0
        can = coreachable(count, sources[used], own.indices[used], mode >= _B)
        if not can[own.starts].all():
            raise NoAnswerError(f"'{self.told}' has probability 0: nothing is known given that it holds")
        first = self._reaching(plain, mode == _A | _B)
        of = end_components(first.fixed_step(values))
        stays = marked(count, first.product.state[2:][of[2:] >= 0])
        goal = mode == (_A | _B) if self.greatest else stays & (mode == _B)
        again = _beginning_again(plain, np.flatnonzero(stays & (mode < _B)), place)
        return Restarting(again, goal, self._reaching(again, goal))

    def _reaching(self, choices: StrategySkeleton, goal: Mask) -> Optimum:
        own = choices.choices
        starts, labels = own.indptr[choices.choice_starts], {GOAL: goal}
        product = build_product(starts, own.indices, labels, REACHED, own.starts, max_states=self.most_states)
        return optimum_on(choices, product, greatest=True)

    def _followed(self) -> tuple[StrategySkeleton, Ints, Ints]:
        """The reached states with which of a and b have held, for each initial state; that, as `_A` and `_B`; and
        (n,) where each begins again."""
        skeleton, first = self.skeleton, self.choices.choice_starts
        n, copies = skeleton.state_count, len(skeleton.starts) * _MODES
        if n * copies > self.most_states:
            raise NoAnswerError(f"'given' needs {n * copies} states; the limit is {self.most_states}")
        mode = np.tile(np.repeat(np.arange(_MODES), n), len(skeleton.starts))
        copy = np.repeat(np.arange(copies // _MODES), _MODES * n)
        state = np.tile(np.arange(n), copies)
        rows = ranges(first[state], first[state + 1])
        owner = np.repeat(np.arange(len(state)), np.diff(first)[state])
        edges = ranges(skeleton.indptr[rows], skeleton.indptr[rows + 1])
        row = np.repeat(np.arange(len(rows)), np.diff(skeleton.indptr)[rows])
        led = skeleton.indices[edges]
        targets = ((copy * _MODES)[owner[row]] + (mode[owner[row]] | self.held[led])) * n + led
        begun = (np.arange(copies // _MODES) * _MODES + self.held[skeleton.starts]) * n + skeleton.starts
        kept = reachable(len(state), owner[row], targets, marked(len(state), begun))
        number = np.cumsum(kept) - 1
        inside = kept[owner[row]]
        order = np.lexsort((targets[inside], row[inside]))
        lengths = np.bincount(row, minlength=len(rows))[kept[owner]]
        skeleton = replace(
            skeleton,
            valuations=MappingProxyType({}),
            memory=skeleton.memory[state[kept]],
            starts=number[begun],
            terminal=skeleton.terminal[state[kept]],
            indptr=np.concatenate([[0], np.cumsum(lengths)]),
            indices=number[targets[inside][order]],
            entry=skeleton.entry[edges][inside][order],
            start_weights=None,
        )
        starts = np.concatenate([[0], np.cumsum(np.diff(first)[state[kept]])])
        return StrategySkeleton(starts, skeleton), mode[kept], number[begun][copy[kept]]


def _beginning_again(choices: StrategySkeleton, states: Ints, place: Ints) -> StrategySkeleton:
    """The same where some states may lead to their place for certain, too."""
    own = choices.choices
    owner = np.concatenate([rows_of(choices.choice_starts), states])
    row = np.concatenate([rows_of(own.indptr), np.arange(len(owner) - len(states), len(owner))])
    order = np.argsort(owner, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    sort = np.argsort(rank[row], kind="stable")
    entry = np.concatenate([own.entry, np.full(len(states), len(own.entry_row))])[sort]
    skeleton = replace(
        own,
        indptr=np.concatenate([[0], np.cumsum(np.bincount(rank[row], minlength=len(owner)))]),
        indices=np.concatenate([own.indices, place[states]])[sort],
        entry=entry,
    )
    counts = np.bincount(owner, minlength=len(choices.choice_starts) - 1)
    return StrategySkeleton(np.concatenate([[0], np.cumsum(counts)]), skeleton)
