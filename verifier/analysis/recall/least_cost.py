"""The cheapest improvement of perception that meets a requirement.

Raising the recall of cell i from its measured value m_i to r_i costs c_i (r_i - m_i). Asked are the recalls

    minimise   sum of c_i (r_i - m_i)      subject to   m_i <= r_i <= 1   and   P(r) meets the target

for every objective and initial state. P is a rational function of the recalls, neither convex nor always
increasing, so what is found is a local minimum: sequential quadratic programming (SLSQP; Kraft 1988, DFVLR-FB 88-28)
from several starting points, with the adjoint gradient, on the logarithm of the probability of being right (products
of recalls become sums). The best of them is then *polished* in the decimals that are reported: rounded up, moved
towards perfect recall until the target is met, and lowered cell by cell as far as the target stays met. What is
returned meets the target at that very point, numerical bounds included. Where no slopes are known, as where the world
decides, the starting points are polished.

A floor for recall that is proven: every matrix above it meets the requirement.

The least recall that `requirements` finds holds for one family of matrices, with the rest of each column in its
measured proportions. The floor found here needs no such thing. Given floors f_i for the recalls of some cells, the
box is the set of all matrices with

    recall of cell i  >=  f_i      for every cell i, however the rest of its column is spread,

and every other column free, or as measured; columns held by a convention of the counting are as they are held.
Boxes shrink when floors rise, so bounds over them improve, and bisection finds the least floors on a line from given
ones to recall 1. `robust_bounds` bounds the probability over all matrices of a box. The bound over the box that
is answered has a certificate, which is checked in rational arithmetic where the product is small enough for that.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from verifier.analysis import kernel
from verifier.analysis.objective import Objective
from verifier.analysis.recall.cells import RecallCells, rest_of, with_recall
from verifier.analysis.recall.requirements import SECTIONS, Problem
from verifier.analysis.robust.inner_bounds import Side
from verifier.analysis.robust.region import Region
from verifier.analysis.robust.solutions import Effort, robust_bounds
from verifier.analysis.sensitivity.adjoint import expected_visits, flow_derivatives, state_values
from verifier.analysis.settings import Semantics
from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.errors import EngineError
from verifier.checking.verdicts import COMPARE

RANDOM_STARTS = 4
MOST_CONSTRAINTS = 256
"""Initial states over all objectives that are constraints of their own; beyond, only the worst of each objective."""
SAME = 1000
"""Local minima that agree to a part of 1/SAME in every recall are polished once."""
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Improvement:
    """What may be improved, and at what price.

    Attributes:
        cells: whose recall may rise.
        measured: for each cell its measured recall.
        costs: for each cell the price of a recall of 1 more; not negative.
        whole: recalls are given in parts of 1/whole.
    """

    problem: Problem
    cells: RecallCells
    measured: tuple[Fraction, ...]
    costs: tuple[Fraction, ...]
    whole: int

    def __post_init__(self) -> None:
        if not len(self.measured) == len(self.costs) == self.cells.count or min(self.costs) < 0 or self.whole < 1:
            raise ValueError("expected for each cell a measured recall and a price from 0")
        if not all(0 <= fraction <= 1 for fraction in self.measured):
            raise ValueError("a recall lies between 0 and 1")

    @property
    def least(self) -> Ints:
        """(k,) the measured recalls, rounded up to a part of 1/whole."""
        return np.array([math.ceil(fraction * self.whole) for fraction in self.measured], dtype=np.int64)

    def cost(self, recall: Sequence[int]) -> Fraction:
        """The price of recalls in parts of 1/whole, counted from `least`."""
        pairs = zip(recall, self.least.tolist(), self.costs, strict=True)
        return sum((price * Fraction(int(part) - own, self.whole) for part, own, price in pairs), start=Fraction(0))

    def met(self, recall: Ints) -> NDArray[np.bool_]:
        """(M,) whether (M, k) recalls in parts of 1/whole meet the target."""
        rates = with_recall(self.problem.rates, self.cells, recall / self.whole)
        return self.problem.evaluate(rates).met


def least_cost(
    improvement: Improvement, begin: Sequence[Sequence[int]] = (), rng: np.random.Generator | None = None
) -> list[int] | None:
    """Recalls in parts of 1/whole that meet the target at the least price found; None when none were found.

    Args:
        begin: further points to start from, in parts of 1/whole.
        rng: for random starting points; without one there are none.

    Raises:
        EngineError, LimitError: as `Objective.probabilities`.
    """
    low, top = improvement.least, np.full(improvement.cells.count, improvement.whole, dtype=np.int64)
    if improvement.met(low[None])[0]:
        return [int(number) for number in low]
    starts = [top, low, *(np.array(row, dtype=np.int64) for row in begin)]
    if rng is not None:
        starts += [rng.integers(low, top, endpoint=True) for _ in range(RANDOM_STARTS)]
    points = starts
    followed = all(objective.slopes for objective in improvement.problem.objectives)
    if followed and improvement.problem.target.probability not in (0, 1):  # their logarithms have no slope
        points = [top, *(_local_minimum(improvement, start / improvement.whole) for start in starts)]
    distinct = {tuple(np.round(point * SAME / improvement.whole).tolist()): point for point in points}
    polished = [row for row in (_polished(improvement, point) for point in distinct.values()) if row is not None]
    return min(polished, key=lambda point: (improvement.cost(point), point), default=None)


def _local_minimum(improvement: Improvement, start: Floats) -> Ints:
    """(k,) where SLSQP ends, rounded up to parts of 1/whole; whether it meets the target is not known."""
    measured = np.array([float(fraction) for fraction in improvement.measured])
    price = np.array([float(cost) for cost in improvement.costs])
    price = price / (price.max() or 1)
    known: dict[bytes, tuple[Floats, Floats]] = {}

    def constraints(recall: Floats) -> tuple[Floats, Floats]:
        key = recall.tobytes()
        if key not in known:
            known.clear()
            known[key] = _slack(improvement, np.clip(recall, 0, 1))
        return known[key]

    choices: dict[str, Any] = {
        "method": "SLSQP",
        "jac": lambda _: price,
        "bounds": list(zip(measured.tolist(), [1.0] * len(measured), strict=True)),
        "constraints": {
            "type": "ineq",
            "fun": lambda recall: constraints(recall)[0],
            "jac": lambda recall: constraints(recall)[1],
        },
        "options": {"maxiter": 200, "ftol": 1e-12},
    }

    def bill(recall: Floats) -> float:
        return float(price @ recall)

    minimum = minimize(bill, start, **choices)  # which moves the start within the bounds
    reached = np.where(np.isfinite(minimum.x), minimum.x, start)
    rounded: Ints = np.ceil(reached * improvement.whole).astype(np.int64)
    return rounded


def _slack(improvement: Improvement, recall: Floats) -> tuple[Floats, Floats]:
    """log of the chance of being right minus log of what is asked, (n,), and its derivative, (n, k).

    Being right is meeting the formula, or for an upper limit not meeting it.
    """
    problem, cells = improvement.problem, improvement.cells
    rates, rest = with_recall(problem.rates, cells, recall[None])[0], rest_of(problem.rates, cells)
    asked = float(problem.target.probability)
    sign, asked = (-1, 1 - asked) if problem.target.is_upper else (1, asked)
    many = sum(len(objective.product.start) for objective in problem.objectives) > MOST_CONSTRAINTS
    slack, slope = [], []
    for objective in problem.objectives:
        values = state_values(objective, rates)
        right = (values.failure if problem.target.is_upper else values.value)[objective.product.start]
        chosen = [int(right.argmin())] if many else list(range(len(right)))
        right = np.maximum(right[chosen], _TINY)
        visits = expected_visits(objective, values, chosen)
        slopes = flow_derivatives(objective, values.rates, visits, values.value)
        derivative = sign * _in_recall(slopes, rest, cells)
        slack.append(np.log(right) - np.log(asked))
        slope.append(derivative / right[:, None])
    return np.concatenate(slack), np.concatenate(slope)


def _in_recall(cells_slope: Floats, rest: Floats, cells: RecallCells) -> Floats:
    """(n, k) derivative in each recall, from the (n, bins, predicted, true) one in each matrix cell.

    The `rest_of` the column shrinks in its proportions.
    """
    column = cells_slope[:, cells.bins, :, cells.columns]  # (k, n, predicted)
    own = column[np.arange(cells.count), :, cells.columns]
    slope: Floats = (own - (column * rest[:, None, :]).sum(axis=2)).T
    return slope


def _polished(improvement: Improvement, point: Ints) -> list[int] | None:
    """The point moved towards perfect recall until it meets the target, then lowered cell by cell."""
    begin = np.clip(point, improvement.least, improvement.whole).tolist()

    def between(k: int) -> Ints:
        return np.array(_raised(begin, improvement.whole, k), dtype=np.int64)

    at = _least_met(improvement, between, 0, improvement.whole - min(begin))
    if at is None:
        return None
    recall = between(at)
    dearest_first = sorted(range(len(recall)), key=lambda cell: -improvement.costs[cell])
    for cell in dearest_first:

        def lowered(part: int, others: Ints = recall, cell: int = cell) -> Ints:
            changed = others.copy()
            changed[cell] = part
            return changed

        part = _least_met(improvement, lowered, int(improvement.least[cell]), int(recall[cell]))
        recall = recall if part is None else lowered(part)
    return [int(number) for number in recall]


def _raised(begin: Sequence[int], whole: int, place: int) -> list[int]:
    """Recalls on the line to `whole`: so many of its steps, which take the least of them up by 1, each rounded up."""
    steps = max(whole - min(begin), 1)
    return [number - (-(whole - number) * place // steps) for number in begin]


def _least_met(improvement: Improvement, point: Callable[[int], Ints], low: int, high: int) -> int | None:
    """The least number from which on, as far as tried, `point` of it meets the target up to `high`."""
    if not improvement.met(point(high)[None])[0]:
        return None
    while high > low:
        cuts = [*sorted({low + (high - low) * k // SECTIONS for k in range(SECTIONS)}), high]
        missed = np.flatnonzero(~improvement.met(np.array([point(cut) for cut in cuts[:-1]])))
        if len(missed) == 0:
            return low
        at = int(missed[-1])
        low, high = cuts[at] + 1, cuts[at + 1]
    return high


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
        if len(self.begin) != self.cells.count or not all(0 <= number <= self.whole for number in self.begin):
            raise ValueError("expected for each cell a floor from 0 to 1")
        if np.any(self.held[self.cells.bins, self.cells.columns]):
            raise ValueError("a column cannot have a floor and be held as measured")

    @property
    def top(self) -> int:
        """The place at which every floor is 1."""
        return self.whole - min(self.begin)

    def floors(self, place: int) -> list[int]:
        """The floors at a place in parts of 1/whole: `place` of `top` steps towards 1, rounded up."""
        return _raised(self.begin, self.whole, place)

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
        effort = Effort(attained=self.semantics == "shared_matrix")
        beside = self.problem.beside
        worst, met = [], beside is None or bool(beside.met[0])
        if beside is not None:
            worst.append(beside.worst[0])
        for objective in self.problem.objectives:
            bounds = robust_bounds(objective, self.region(objective, place), self.semantics, effort)
            met &= bool(target.met(bounds.lower, bounds.upper).all())
            worst.append(bounds.upper.max() if target.is_upper else bounds.lower.min())
        return float(max(worst) if target.is_upper else min(worst)), met

    def proven(self, place: int) -> bool:
        """Whether certificates, checked in rational arithmetic, prove that every matrix of the box at a place meets
        the target; false where a product is too large to check.

        Raises:
            EngineError: a certificate proves less than it claims.
        """
        target = self.problem.target
        side: Side = "upper" if target.is_upper else "lower"
        for objective in self.problem.objectives:
            if objective.state_count > LARGEST_CHECKED:
                return False
            region, effort = self.region(objective, place), Effort(certificates=(side,))
            robust = robust_bounds(objective, region, self.semantics, effort)
            try:
                checked = [kernel.check(proof) for proof in robust.certificates]
            except kernel.Rejected as error:
                raise EngineError(f"the certificate of a certified floor does not hold: {error}") from None
            meets, asked = COMPARE[target.comparison], target.probability
            met = [[meets(end, asked) for end in ends if end is not None] for ends in zip(*checked, strict=True)]
            if met != [[True]] * len(objective.product.start):  # each initial state has one proof
                return False
        return True


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
