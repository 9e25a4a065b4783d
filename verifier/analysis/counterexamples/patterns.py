"""The patterns of violating paths.

The *pattern* of a violating path is what counted on its steps, in order, with the steps left out on which nothing
did, and repetitions in a row once: runs that differ only in when it happened are one pattern. Reports after which
the planner does the same are one step of a run, so a step may leave open which of several sets it was. The most
probable patterns are found best first: what begins like a pattern has at least its probability of losing, and
the probability behind a beginning is known exactly.

The steps of violating paths by what counts on them: sets of detection errors, or alternatives of such sets.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np

from verifier.analysis.sensitivity.adjoint import Equations
from verifier.base.arrays import Floats, Ints, Mask, numbered
from verifier.base.documents import Count, Limits, Magnitude
from verifier.base.graphs import reachable

MOST_STATES = 2**21
"""Of product and memory together, for more than the fewest sets of causes or beginnings of patterns."""


class DetectionError(NamedTuple):
    """A type of detection error: a cell off the diagonal; numbers of bin, reported label and true label."""

    bin: int
    predicted: int
    true: int


Reports: TypeAlias = frozenset[DetectionError]
Alternatives: TypeAlias = frozenset[Reports]
"""What may have counted on a step: one of these sets; the empty one for nothing."""
NOTHING: Alternatives = frozenset([frozenset()])


Position = Count
"""In the list of kinds of detection errors."""


@dataclass(frozen=True)
class CauseRecord:
    """A set of detection errors that counted together; none where planner and dynamics lose, unless others counted.

    Attributes:
        others: whether detection errors that are not told apart counted as well.
        probability: of losing by exactly this cause; share: of the violation.
        corrected: P with all of these detection errors corrected.
    """

    detection_errors: tuple[Position, ...]
    others: bool
    probability: Magnitude
    share: float
    corrected: Magnitude


@dataclass(frozen=True)
class CorrectionRecord:
    """The best set of so many kinds to correct, and P with all of them corrected."""

    detection_errors: Annotated[tuple[Position, ...], Limits(min_length=1)]
    corrected: Magnitude


@dataclass(frozen=True, eq=False)
class Moves:
    """Moves out of product states in which nothing is certain yet, by what counts on them.

    Attributes:
        edge: (k,) transition of the product.
        sources, targets: (k,) product states.
        weight: (k,) probabilities.
        symbol: (k,) number in `symbols` of what counts.
        symbols: sets, or alternatives of sets.
    """

    edge: Ints
    sources: Ints
    targets: Ints
    weight: Floats
    symbol: Ints
    symbols: tuple[frozenset[object], ...]

    def reports(self, symbol: int) -> Reports:
        """The set behind a symbol that is one; not alternatives."""
        return as_reports(self.symbols[symbol])

    def visits(self, staying: Mask, inflow: Floats, is_open: Mask) -> Floats:
        """(p,) expected visits to open states from what flows in, as long as only `staying` symbols are read."""
        n = len(inflow)
        inner = staying[self.symbol] & is_open[self.targets]
        passed = reachable(n, self.sources[inner], self.targets[inner], inflow > 0)
        states = np.flatnonzero(passed)
        visits = np.zeros(n)
        if len(states):
            kept = passed[self.sources]
            targets = np.where(inner, self.targets, n)  # anywhere else
            equations = Equations(n + 1, states, self.sources[kept], targets[kept], self.weight[kept])
            right = inflow[equations.states, np.newaxis]
            visits[equations.states] = equations.solve(right, transposed=True)[:, 0]
        return np.maximum(visits, 0.0)

    def by_edge(self) -> Moves:
        """The moves with one for each transition of the product; what counts are alternatives."""
        edges, place = numbered(self.edge, int(self.edge.max(initial=0)) + 1)
        pairs, _ = numbered(place * len(self.symbols) + self.symbol, len(edges) * len(self.symbols))
        owner, number = np.divmod(pairs, len(self.symbols))
        ends = np.searchsorted(owner, np.arange(len(edges) + 1))
        symbols: dict[Alternatives, int] = {NOTHING: 0}
        alone = [symbols.setdefault(frozenset([self.reports(k)]), len(symbols)) for k in range(len(self.symbols))]
        symbol = np.array(alone, dtype=np.int64)[number[ends[:-1]]]
        for several in np.flatnonzero(np.diff(ends) > 1).tolist():
            together = frozenset(self.reports(k) for k in number[ends[several] : ends[several + 1]].tolist())
            symbol[several] = symbols.setdefault(together, len(symbols))
        sources, targets = np.empty_like(edges), np.empty_like(edges)
        sources[place], targets[place] = self.sources, self.targets
        weight = np.bincount(place, self.weight, len(edges)).astype(np.float64)
        return Moves(edges, sources, targets, weight, symbol, tuple(symbols))


def as_reports(known: object) -> Reports:
    """A symbol that is a set of reports, as one."""
    assert isinstance(known, frozenset)
    return known


MOST_PATTERNS = 200
"""Beginnings of patterns that are solved for, at most; fewer on large products."""
_FEWEST_BEGINNINGS = 20


@dataclass(frozen=True)
class Pattern:
    """Violating paths that differ only in when it happened.

    Attributes:
        steps: what counted, in order; nothing where no detection error did.
        symbols: the same by number, as in `Losses.symbol`; none where the initial state is in a losing component.
        probability: of losing like this, all such runs together.
    """

    steps: tuple[Alternatives, ...]
    symbols: tuple[int, ...]
    probability: float


@dataclass(frozen=True)
class Patterns:
    """The most probable patterns, most probable first.

    Attributes:
        patterns: as many as were asked for, or all there are.
        complete: whether there are no others.
        ranked: whether no other one can be more probable; not so where too many beginnings had to be looked at.
    """

    patterns: tuple[Pattern, ...]
    complete: bool
    ranked: bool


class _Beginning(NamedTuple):
    """What all patterns with one more step than one that was solved begin with.

    Attributes:
        first: the initial product state, of the empty pattern; else None.
        moves: (m,) positions of moves that make the step and may still lose.
        flow: (m,) expected number of times that they are made.
    """

    first: int | None
    moves: Ints = np.array([], dtype=np.int64)
    flow: Floats = np.array([])


class PatternSearch:
    """Patterns in the order of their probabilities."""

    def __init__(self, moves: Moves, is_open: Mask, violation: Floats) -> None:
        self._moves, self._open, self._violation = moves, is_open, violation
        self._quiet = np.array([alternatives == NOTHING for alternatives in moves.symbols])
        self._most = max(
            _FEWEST_BEGINNINGS, min(MOST_PATTERNS, MOST_STATES // max(1, int(np.count_nonzero(is_open))))
        )

    def best(self, first: int, within: Reports | None, count: int) -> Patterns:
        """As `Losses.patterns`; `within` is what counts in the losing component of the first state, if it has one."""
        if not self._open[first]:
            told = (frozenset([within]),) if within else ()
            lost = [Pattern(told, (), 1.0)] if self._violation[first] > 0 else []
            return Patterns(tuple(lost), True, True)
        # (-probability, number, symbols so far, the beginning; None where the probability is that of the pattern).
        numbers, solved = itertools.count(), 0
        heap: list[tuple[float, int, tuple[int, ...], _Beginning | None]] = [
            (0.0, next(numbers), (), _Beginning(first))
        ]
        patterns: list[Pattern] = []
        while heap and len(patterns) < count and solved < self._most:
            probability, _, steps, beginning = heapq.heappop(heap)
            if beginning is None:
                patterns.append(self._pattern(steps, -probability))
                continue
            solved += 1
            for following, bound, further in self._extended(steps, beginning):
                heapq.heappush(heap, (-bound, next(numbers), following, further))
        complete, ranked = not heap, len(patterns) == count or not heap
        if not ranked:
            known = heapq.nsmallest(count - len(patterns), [node for node in heap if node[3] is None])
            patterns += [self._pattern(steps, -probability) for probability, _, steps, _ in known]
        return Patterns(tuple(patterns), complete, ranked)

    def _extended(
        self, steps: tuple[int, ...], beginning: _Beginning
    ) -> Iterator[tuple[tuple[int, ...], float, _Beginning | None]]:
        """The pattern itself with its probability, and all patterns with one more step with their bounds."""
        moves = self._moves
        staying = self._quiet.copy()
        staying[list(steps[-1:])] = True
        inflow, ended = self._inflow(steps, beginning)
        flow = moves.visits(staying, inflow, self._open)[moves.sources] * moves.weight
        losing = flow * self._violation[moves.targets]
        stays = staying[moves.symbol]
        here = ended + float(losing[stays & ~self._open[moves.targets]].sum())
        if here > 0:
            yield steps, here, None
        leaving = np.flatnonzero((losing > 0) & ~stays)
        bounds = np.bincount(moves.symbol[leaving], losing[leaving], len(staying))
        further = _Beginning(None, leaving, flow[leaving])
        for symbol in np.flatnonzero(bounds > 0).tolist():
            yield (*steps, symbol), float(bounds[symbol]), further

    def _inflow(self, steps: tuple[int, ...], beginning: _Beginning) -> tuple[Floats, float]:
        """(p,) what flows into open states with the last step, and with what probability the run is lost with it."""
        moves, inflow = self._moves, np.zeros(len(self._open))
        if not steps:
            inflow[beginning.first] = 1
            return inflow, 0.0
        taken = moves.symbol[beginning.moves] == steps[-1]
        targets, flow = moves.targets[beginning.moves[taken]], beginning.flow[taken]
        on = self._open[targets]
        np.add.at(inflow, targets[on], flow[on])
        return inflow, float(flow[~on].sum())

    def _pattern(self, steps: tuple[int, ...], probability: float) -> Pattern:
        told = (frozenset(map(as_reports, self._moves.symbols[symbol])) for symbol in steps)
        return Pattern(tuple(told), steps, probability)
