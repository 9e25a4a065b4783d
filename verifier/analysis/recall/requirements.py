"""What perception must do: the least recall with which a requirement is met (the inverse of checking).

Given a target, say P(formula) >= p, and cells whose recall may be chosen (`recall_cells`), a *path* leads from no
recall to perfect recall through matrices, in small steps; the last place is perfect. Asked is the first place from
which on every place meets the target.

P need not increase with recall: a planner may do better blind than half blind. So nothing is assumed. The path is
tried at many places at once (one batch of matrices), every change between neighbours is narrowed down to two
neighbouring places of the path, and all stretches that meet the target are reported. What happens between two tried
places that agree is not known; `recall_box` proves a floor for all matrices above it.

A place meets the target only if the whole numerical enclosure of every probability does. Places at which the
enclosures do not decide are reported, too (`Searched.unsure`): there exact arithmetic can.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from verifier.analysis.objective import Objective
from verifier.analysis.recall.cells import RecallCells, with_recall
from verifier.base.arrays import Floats, Mask
from verifier.checking.enclosure import doubles_around

PART_BYTES = 2**27
"""Most memory for the matrices of one batch."""
SECTIONS = 16
"""Parts that a stretch is cut into, all ends evaluated in one batch."""
MOST_UNSURE = 3
"""Undecided places that are reported below the last stretch that meets the target."""


@dataclass(frozen=True)
class Target:
    """What a probability is compared with: one of >= > <= < and a number from 0 to 1."""

    comparison: str
    probability: Fraction

    def __post_init__(self) -> None:
        if self.comparison not in (">=", ">", "<=", "<") or not 0 <= self.probability <= 1:
            raise ValueError(f"not a target: P {self.comparison} {self.probability}")

    @property
    def is_upper(self) -> bool:
        """Whether small probabilities are asked for."""
        return self.comparison in ("<=", "<")

    def met(self, lower: Floats, upper: Floats) -> Mask:
        """Where every probability within the bounds meets the target. Compared are exact numbers."""
        below, above = doubles_around(self.probability)
        return {">=": lower >= above, ">": lower > below, "<=": upper <= below, "<": upper < above}[self.comparison]

    def failed(self, lower: Floats, upper: Floats) -> Mask:
        """Where none does: not even the end on the right side."""
        return ~self.met(upper, lower)

    def worst(self, values: Floats, axis: int) -> Floats:
        """The values furthest on the wrong side."""
        worst: Floats = values.max(axis=axis) if self.is_upper else values.min(axis=axis)
        return worst


@dataclass(frozen=True, eq=False)
class Problem:
    """Objectives that must all meet one target from all their initial states, and the matrices to start from.

    Attributes:
        objectives: at least one, of skeletons for the same matrices.
        rates: (bins, predicted, true) the measured matrices; NaN in columns that no chain needs.
        target: for every probability.
        beside: what further objectives do that are the same for all matrices that will be asked about; (1,) arrays.
    """

    objectives: tuple[Objective, ...]
    rates: Floats
    target: Target
    beside: Evaluated | None = None

    def __post_init__(self) -> None:
        if not self.objectives:
            raise ValueError("a requirement without a scenario asks nothing")

    def varying(self, varies: Sequence[bool]) -> Problem:
        """The same for matrices that change only some of the objectives; at least one.

        Args:
            varies: for each objective whether its probabilities change.
        """
        pairs = list(zip(self.objectives, varies, strict=True))
        fixed = tuple(objective for objective, changes in pairs if not changes)
        beside = replace(self, objectives=fixed).evaluate(self.rates[None]) if fixed else self.beside
        return replace(self, objectives=tuple(objective for objective, changes in pairs if changes), beside=beside)

    def evaluate(self, rates: Floats) -> Evaluated:
        """What (M, bins, predicted, true) matrices do.

        Matrices with the same zeros are solved together: then what their graph decides comes out exactly, a
        probability of 1 included.
        """
        zeros = np.packbits((rates > 0).reshape(len(rates), -1), axis=1)
        _, kind = np.unique(zeros, axis=0, return_inverse=True)
        worst, met, failed = np.empty(len(rates)), np.ones(len(rates), dtype=bool), np.zeros(len(rates), dtype=bool)
        for number in np.unique(kind).tolist():
            rows = np.flatnonzero(kind.ravel() == number)
            worst[rows], met[rows], failed[rows] = self._alike(rates[rows])
        return Evaluated(worst, met, failed)

    def _alike(self, rates: Floats) -> tuple[Floats, Mask, Mask]:
        """The parts of `Evaluated`."""
        met, failed = np.ones(len(rates), dtype=bool), np.zeros(len(rates), dtype=bool)
        worst = []
        for objective in self.objectives:
            result = objective.probabilities(rates)
            lower = np.maximum(result.lower - result.representation_bound, 0)
            upper = np.minimum(result.upper + result.representation_bound, 1)
            met &= self.target.met(lower, upper).all(axis=1)
            failed |= self.target.failed(lower, upper).any(axis=1)
            worst.append(self.target.worst(result.probability, 1))
        if self.beside is not None:
            met &= self.beside.met
            failed |= self.beside.failed
            worst.append(np.broadcast_to(self.beside.worst, len(rates)))
        return self.target.worst(np.array(worst), 0), met, failed


@dataclass(frozen=True, eq=False)
class Evaluated:
    """What each of M families of matrices does.

    Attributes:
        worst: (M,) probability furthest on the wrong side, over objectives and initial states.
        met: (M,) bool, all of them meet the target, numerical bounds included.
        failed: (M,) bool, some probability fails it for certain.
    """

    worst: Floats
    met: Mask
    failed: Mask


@dataclass(frozen=True, eq=False)
class Path:
    """Places 0, 1, ..., `top`: recalls in whole parts of 1/`whole`, perfect at `top`.

    | kind     | recall at a place                                                                    |
    |----------|--------------------------------------------------------------------------------------|
    | `level`  | the same in every cell: place/whole                                                  |
    | `factor` | in every cell the measured miss rate times a common factor f = (top - place)/whole;  |
    |          | the recall 1 - f * miss is rounded up to a part of 1/whole                           |

    With `factor`, place 0 is the largest factor with which every miss rate remains a rate.

    Attributes:
        misses: for each cell the measured share of items that are not reported as what they are.
    """

    kind: Literal["level", "factor"]
    cells: RecallCells
    whole: int
    misses: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if self.whole < 1 or len(self.misses) != self.cells.count or not all(0 <= miss <= 1 for miss in self.misses):
            raise ValueError("expected a whole from 1, and for each cell a miss rate from 0 to 1")

    @property
    def top(self) -> int:
        """The last place."""
        largest = max(self.misses)
        return self.whole if self.kind == "level" or largest == 0 else math.floor(self.whole / largest)

    def recall(self, place: int) -> list[int]:
        """Recall of each cell in parts of 1/whole."""
        if self.kind == "level":
            return [place] * self.cells.count
        return [self.whole - math.floor((self.top - place) * miss) for miss in self.misses]

    def factor(self, place: int) -> Fraction:
        """What the measured miss rates are multiplied by."""
        return Fraction(self.top - place, self.whole)

    def grid(self, points: int) -> list[int]:
        """About `points` places, first and last included, evenly spread; twice as many where factors exceed 1."""
        top, split = self.top, self.top - self.whole
        places = {split + round((top - split) * k / (points - 1)) for k in range(points)}
        if split:
            ratio = math.log(top / self.whole)
            places |= {top - round(self.whole * math.exp(ratio * k / (points - 1))) for k in range(points - 1)} | {0}
        return sorted(places)

    def rates(self, measured: Floats, places: Sequence[int]) -> Floats:
        """(M, bins, predicted, true) the matrices at M places."""
        recall = np.array([self.recall(place) for place in places], dtype=np.float64) / self.whole
        return with_recall(measured, self.cells, recall)


@dataclass(frozen=True, eq=False)
class Searched:
    """What was found along a path.

    Attributes:
        places: (g,) increasing places of the even grid that were tried first.
        worst: (g,) the probability furthest on the wrong side at each.
        met: first and last place of each stretch in which every tried place meets the target, in order. The
            neighbours of a stretch do not meet it.
        unsure: places right below the last stretch (without one: at the end of the path) at which the numerical
            bounds do not decide, increasing.
    """

    path: Path
    places: tuple[int, ...]
    worst: Floats
    met: tuple[tuple[int, int], ...]
    unsure: tuple[int, ...]

    @property
    def least(self) -> int | None:
        """The place from which on the target is met up to perfect recall; None when it is not met there."""
        return self.met[-1][0] if self.met and self.met[-1][1] == self.path.top else None

    @property
    def gaps(self) -> tuple[tuple[int, int], ...]:
        """Further stretches that meet the target, with places above them that do not."""
        return self.met if self.least is None else self.met[:-1]


def search(problem: Problem, path: Path, points: int = 257) -> Searched:
    """Where along a path the target is met.

    Args:
        points: places of the even grid; stretches narrower than its spacing may be missed.

    Raises:
        EngineError, LimitError: as `Objective.probabilities`.
    """
    if points < 2:
        raise ValueError(f"expected at least 2 points, got {points}")
    places = path.grid(points)
    tried = _evaluated(problem, path, places)
    ends = _narrowed(problem, path, places, tried.met)
    begins = [*([0] if tried.met[0] else ()), *(high for _, high, rising in ends if rising)]
    lasts = [*(low for low, _, rising in ends if not rising), *([path.top] if tried.met[-1] else ())]
    unsure = _unsure_below(problem, path, begins[-1] if tried.met[-1] else path.top + 1)
    return Searched(path, tuple(places), tried.worst, tuple(zip(begins, lasts, strict=True)), unsure)


def worst_along(problem: Problem, path: Path, points: int) -> tuple[list[int], Floats]:
    """The even grid of `search`, and the worst probability at each of its places; errors as there."""
    places = path.grid(points)
    return places, _evaluated(problem, path, places).worst


def _evaluated(problem: Problem, path: Path, places: Sequence[int]) -> Evaluated:
    """What the matrices at these places do; no more of them are made at once than fit."""
    at_once = max(1, PART_BYTES // (2 * problem.rates.nbytes))
    parts = [
        problem.evaluate(path.rates(problem.rates, places[low : low + at_once]))
        for low in range(0, len(places), at_once)
    ]
    return Evaluated(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("worst", "met", "failed"))
    )


def _narrowed(problem: Problem, path: Path, places: Sequence[int], met: Mask) -> list[tuple[int, int, bool]]:
    """For each change between neighbours of the grid: two neighbouring places of the path between which it happens,
    and whether the target is met at the higher of them.

    Where a stretch holds several changes, what is found is the one next to the places that meet the target, so that
    every place tried on that side of it meets it.
    """
    open_ends = [(places[k], places[k + 1], bool(met[k + 1])) for k in np.flatnonzero(met[1:] != met[:-1]).tolist()]
    done: list[tuple[int, int, bool]] = []
    while open_ends:
        cuts = [sorted({low + (high - low) * k // SECTIONS for k in range(SECTIONS)} | {high})
                for low, high, _ in open_ends]  # fmt: skip
        inner = [place for cut in cuts for place in cut[1:-1]]
        answers = iter(_evaluated(problem, path, inner).met.tolist() if inner else [])
        closer: list[tuple[int, int, bool]] = []
        for cut, (_, _, rising) in zip(cuts, open_ends, strict=True):
            known = [not rising, *(next(answers) for _ in cut[1:-1]), rising]
            changes = [k for k in range(len(cut) - 1) if known[k] != rising and known[k + 1] == rising]
            at = changes[-1] if rising else changes[0]
            low, high = cut[at], cut[at + 1]
            (done if high - low == 1 else closer).append((low, high, rising))
        open_ends = closer
    return sorted(done)


def _unsure_below(problem: Problem, path: Path, place: int) -> tuple[int, ...]:
    """The undecided places that directly precede `place`, at most `MOST_UNSURE`."""
    below = [number for number in range(place - MOST_UNSURE, place) if number >= 0]
    if not below:
        return ()
    failed = _evaluated(problem, path, below).failed
    kept = len(below) - (int(np.flatnonzero(failed)[-1]) + 1 if failed.any() else 0)
    return tuple(below[len(below) - kept :])
