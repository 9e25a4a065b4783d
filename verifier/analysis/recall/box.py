"""A floor for recall that is proven: every matrix above it meets the requirement.

The least recall that `requirements` finds holds for one family of matrices, with the rest of each column in its
measured proportions. The floor found here needs no such thing. Given floors f_i for the recalls of some cells, the
box is the set of all matrices with

    recall of cell i  >=  f_i      for every cell i, however the rest of its column is spread,

and every other column free, or as measured; columns held by a convention of the counting are as they are held.
Boxes shrink when floors rise, so bounds over them improve, and bisection finds the least floors on a line from given
ones to recall 1. `robust_bounds` bounds the probability over all matrices of a box. The bound over the box that
is answered has a certificate, which is checked in rational arithmetic where the product is small enough for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from verifier.analysis import kernel
from verifier.analysis.objective import Objective
from verifier.analysis.recall.cells import RecallCells
from verifier.analysis.recall.requirements import Problem, Target
from verifier.analysis.robust.certificate import document
from verifier.analysis.robust.region import Region
from verifier.analysis.robust.solutions import Effort, robust_bounds
from verifier.analysis.settings import Semantics
from verifier.base.arrays import Mask
from verifier.base.errors import EngineError

LARGEST_CHECKED = 5000
"""States of a product whose certificates are checked."""


@dataclass(frozen=True, eq=False)
class BoxFamily:
    """The boxes along a line of floors.

    Attributes:
        problem: what every matrix must meet.
        cells: whose recall has a floor.
        begin: for each cell the floor at place 0, in parts of 1/whole.
        whole: what stands for a recall of 1.
        exact: (bins, predicted, true) fractions, the measured matrices; anything in columns that no chain needs.
        held: (bins, true) bool, the columns without a floor that are as measured; the others are free.
    """

    problem: Problem
    cells: RecallCells
    begin: tuple[int, ...]
    whole: int
    exact: NDArray[np.object_]
    held: Mask
    semantics: Semantics = "per_state"

    def __post_init__(self) -> None:
        if len(self.begin) != self.cells.count or not all(0 <= each <= self.whole for each in self.begin):
            raise ValueError("expected for each cell a floor from 0 to 1")
        if np.any(self.held[self.cells.bins, self.cells.columns]):
            raise ValueError("a column cannot have a floor and be held as measured")

    @property
    def top(self) -> int:
        """The place at which every floor is 1."""
        return max(self.whole - each for each in self.begin)

    def floors(self, place: int) -> list[int]:
        """The floors at a place in parts of 1/whole: `place` of `top` steps towards 1, rounded up."""
        top = max(self.top, 1)
        return [each - (-(self.whole - each) * place // top) for each in self.begin]

    def region(self, objective: Objective, place: int) -> Region:
        """All matrices above the floors at a place."""
        lower = np.full(self.exact.shape, Fraction(0), dtype=object)
        upper = np.full(self.exact.shape, Fraction(1), dtype=object)
        for index, column in np.argwhere(self.held).tolist():
            lower[index, :, column] = upper[index, :, column] = self.exact[index, :, column]
        floors = self.floors(place)
        for index, column, floor in zip(self.cells.bins.tolist(), self.cells.columns.tolist(), floors, strict=True):
            lower[index, column, column] = Fraction(floor, self.whole)
        return Region.of_bounds(objective.skeleton, lower, upper)

    def bound(self, place: int) -> tuple[float, bool]:
        """The bound of all probabilities on their wrong side over the box at a place, and whether it meets the
        target."""
        target = self.problem.target
        effort = Effort(attained=self.semantics == "shared_matrix", certificates=False)
        beside = self.problem.beside
        worst, met = [], beside is None or bool(beside.met[0])
        if beside is not None:
            worst.append(beside.worst[0])
        for objective in self.problem.objectives:
            found = robust_bounds(objective, self.region(objective, place), self.semantics, effort)
            met &= bool(target.met(found.lower, found.upper).all())
            worst.append(found.upper.max() if target.is_upper else found.lower.min())
        return float(max(worst) if target.is_upper else min(worst)), met

    def proven(self, place: int) -> bool:
        """Whether certificates, checked in rational arithmetic, prove that every matrix of the box at a place meets
        the target; false where a product is too large to check.

        Raises:
            EngineError: a certificate proves less than it claims.
        """
        target = self.problem.target
        side, pick = ("upper", min) if target.is_upper else ("lower", max)
        for objective in self.problem.objectives:
            if objective.state_count > LARGEST_CHECKED:
                return False
            found = robust_bounds(objective, self.region(objective, place), self.semantics)
            try:
                checked = [kernel.check(document(proof)) for proof in found.certificates if proof.side == side]
            except kernel.Rejected as error:
                raise EngineError(f"the certificate of a certified floor does not hold: {error}") from None
            for bounds in zip(*checked, strict=True):
                known = [each for each in bounds if each is not None]
                if not known or not _meets(pick(known), target):
                    return False
        return True


def _meets(bound: Fraction, target: Target) -> bool:
    """Whether an exact probability meets the target."""
    asked = target.probability
    return {">=": bound >= asked, ">": bound > asked, "<=": bound <= asked, "<": bound < asked}[target.comparison]


@dataclass(frozen=True)
class Floors:
    """What was found on the line.

    Attributes:
        floors: for each cell in parts of 1/whole; None when recall 1 in all cells is not enough.
        bound: the bound over the box of these floors; of recall 1 where there are none.
        checked: whether certificates of the answer were checked (`BoxFamily.proven`).
    """

    floors: tuple[int, ...] | None
    bound: float
    checked: bool


def least_floors(family: BoxFamily, begin: int = 0) -> Floors:
    """The first floors on the line with which every matrix above them meets the target.

    Args:
        family: the boxes.
        begin: a place below which the answer cannot lie, such as that of a single matrix that fails.

    Raises:
        EngineError, LimitError: as `robust_bounds`.
    """
    bound, met = family.bound(family.top)
    if not met:
        return Floors(None, bound, False)
    # The answer is often at or right after the beginning, so steps from there double until one is enough.
    low, high, step = begin, family.top, 1
    while low < high:
        tried = min(low + step - 1, high - 1) if step else (low + high) // 2
        value, enough = family.bound(tried)
        if enough:
            high, bound, step = tried, value, 0
        else:
            low, step = tried + 1, 2 * step
    return Floors(tuple(family.floors(high)), bound, family.proven(high))
