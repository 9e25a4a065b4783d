"""The steps of violating paths by what counts on them: sets of detection errors, or alternatives of such sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from verifier.analysis.sensitivity.adjoint import Equations
from verifier.base.arrays import Floats, Ints, Mask
from verifier.checking.graphs import reachable
from verifier.systems.distinct import distinct

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
        passed = reachable(n, self.sources[inner], self.targets[inner], inflow > 0) & is_open
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
        edges, place = distinct(self.edge, int(self.edge.max(initial=0)) + 1)
        pairs, _ = distinct(place * len(self.symbols) + self.symbol, len(edges) * len(self.symbols))
        owner, number = np.divmod(pairs, len(self.symbols))
        ends = np.append(np.flatnonzero(np.diff(owner, prepend=-1)), len(owner))
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
