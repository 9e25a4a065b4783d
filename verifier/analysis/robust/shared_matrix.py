"""Tighter bounds when one matrix holds throughout: branch and bound over boxes of matrices.

The bound of `robust_bound` lets every state have a matrix of its own. A single matrix is one of those choices, so the
bound holds for it; and the smaller the box, the less freedom is left: on a box that is one point both coincide. So
the region is cut into boxes, each box is bounded on its own, and the worst box bounds the region. Always the box with
the worst bound is cut: in the column in which nature would lose most if she had to make the same choice in all states
(the mean of her choices, weighted by how often she makes them), in the report on which her choices differ most, in
the middle of its interval.

It stops when the bound is within `gap` of a value that a single matrix attains, or when `effort` boxes have been
looked at. The bound is proven whenever it stops.

How far nature's choices for one column differ from each other, and what they are worth, says how much of the bound a
single matrix may attain.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.objective import Objective
from verifier.analysis.robust.certificate import Tree
from verifier.analysis.robust.inner_bounds import Attained, SideBound, best_of, bound_sides, per_column
from verifier.analysis.robust.region import Region
from verifier.analysis.robust.step import UncertainStep, greatest_masses, inner_masses
from verifier.base.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Covered:
    """A region covered by boxes with a bound for each.

    Attributes:
        tree: how the region is cut; the leaves are numbers in `boxes`, or None for a part without matrices.
        attained: the best single matrices known, for all initial states.
    """

    boxes: tuple[SideBound, ...]
    tree: Tree
    attained: Attained


def covered(
    objective: Objective, root: SideBound, steps: Floats, start: int, attained: Attained, effort: int, gap: float
) -> Covered:
    """Cut the region of `root` for one initial state.

    Args:
        objective: the formula on the skeleton.
        root: the bound on the whole region.
        steps: (r,) from `root.reached.steps`, for this initial state.
        start: number of the initial state.
        attained: single matrices that are known.
        effort: after how many boxes, beside the root, nothing more is cut.
        gap: how close to an attained value is close enough.

    Raises:
        EngineError, LimitError: as `bound_sides`.
    """
    state = int(objective.product.start[start])
    sign = 1.0 if root.side == "lower" else -1.0
    parts = [_Part(root, steps)]
    heap = [(0.0, 0)]
    while heap:
        part = parts[heap[0][1]]
        earned = 1 - attained.value[start] if root.side == "lower" else attained.value[start]
        if part.bound.reached.value[state] <= earned + gap or len(parts) > effort:
            break
        common = common_choices(part.bound, part.steps)
        attained = best_of(objective, root.region, attained, np.array([common.mean, common.best]), sign)
        if not part.cut(common.place):
            break
        heapq.heappop(heap)
        for region in part.regions:
            if region is None:
                part.below.append(None)
                continue
            bound = bound_sides(root.objective, region, (root.side,), [np.array([state])])[0]
            part.below.append(len(parts))
            heapq.heappush(heap, (-bound.reached.value[state], len(parts)))
            parts.append(_Part(bound, bound.reached.steps[0]))
    leaves = [number for number, part in enumerate(parts) if not part.below]
    return Covered(
        tuple(parts[number].bound for number in leaves),
        _tree(parts, {number: k for k, number in enumerate(leaves)}, 0),
        attained,
    )


@dataclass(eq=False)
class _Part:
    """A part of the region; if it has been cut, where, and the numbers of what is below."""

    bound: SideBound
    steps: Floats
    place: tuple[int, int, int] = field(init=False)
    at: int = field(init=False)
    regions: tuple[Region | None, Region | None] = field(init=False)
    below: list[int | None] = field(default_factory=list)

    def cut(self, place: tuple[int, int, int]) -> bool:
        """Cut in the middle of one interval; False where nothing is left to cut."""
        region = self.bound.region
        low, high = int(region.lower[place]), int(region.upper[place])
        if high - low < 2:
            return False
        self.place, self.at = place, (low + high) // 2
        lower, upper = region.lower.copy(), region.upper.copy()
        lower[place] = upper[place] = self.at
        self.regions = _part(region, region.lower, upper), _part(region, lower, region.upper)
        return True


def _part(region: Region, lower: Ints, upper: Ints) -> Region | None:
    if np.any(lower.sum(axis=1) > UNIT) or np.any(upper.sum(axis=1) < UNIT):
        return None
    return replace(region, lower=lower, upper=upper, evidence=None)


def _tree(parts: list[_Part], position: dict[int, int], number: int | None) -> Tree:
    if number is None or not parts[number].below:
        return None if number is None else position[number]
    part = parts[number]
    below, above = (_tree(parts, position, number) for number in part.below)
    place = dict(zip(("bin", "group", "true"), part.place, strict=True))
    return {**place, "at": part.at, "below": below, "above": above}


_FAVOUR = 2.0**-40


@dataclass(frozen=True, eq=False)
class CommonChoices:
    """What nature would choose if she had to choose the same in all states.

    Attributes:
        mean: (bins, groups, true) billionths, the mean of her choices in each column.
        best: (bins, groups, true) billionths, to first order her best common choice.
        place: (bin, group, true) where she would lose most by making the mean choice.
    """

    mean: Floats
    best: Floats
    place: tuple[int, int, int]


def common_choices(box: SideBound, steps: Floats) -> CommonChoices:
    """Common choices for one set of initial states.

    Args:
        box: a bound.
        steps: (r,) the expected number of steps in each row from there, from `Reached.steps`.
    """
    step, value = box.step, box.reached.value
    used = np.flatnonzero(steps)
    size, groups = step.lower.shape
    weight, worth = np.zeros(size), np.zeros(size)
    total, squares, stakes = (np.zeros((size, groups)) for _ in range(3))
    own = step.owner[used]
    away = box.nodes.of[step.following[used]] != box.nodes.of[own][:, None]
    # Where all choices are worth the same, those that lead on are made: staying would earn nothing.
    favour = _FAVOUR * away
    changes = value[step.following[used]] - value[own, None] + favour * value[own, None]
    for drawn, times, share, behind in _choices(step, changes, used, steps[used]):
        np.add.at(weight, drawn, times)
        np.add.at(total, drawn, times[:, None] * share)
        np.add.at(squares, drawn, times[:, None] * share**2)
        np.add.at(stakes, drawn, times[:, None] * behind)
        np.add.at(worth, drawn, times * (share * behind).sum(axis=1))
    seldom = np.maximum(weight, np.finfo(float).tiny)[:, None]
    mean = total / seldom
    loss = np.where(weight > 0, worth - (mean * stakes).sum(axis=1), -1)
    column = int(np.argmax(loss))
    group = int(np.argmax((squares / seldom - mean**2)[column] + 1e-9 * (step.upper - step.lower)[column] / UNIT))
    true = box.region.lower.shape[2]
    inner = inner_masses(step.lower, step.upper)
    return CommonChoices(
        per_column(np.where(weight[:, None] > 0, mean * UNIT, inner), box.region),
        per_column(np.where(weight[:, None] > 0, greatest_masses(stakes, step.lower, step.upper), inner), box.region),
        (column // true, group, column % true),
    )


def _choices(
    step: UncertainStep, values: Floats, used: Ints, often: Floats
) -> Iterator[tuple[Ints, Floats, Floats, Floats]]:
    """Nature's choices, draw by draw: columns, how often, (k, groups) rates and the values behind the groups."""
    _, masses = step.greatest(values, used)
    values, at_stake = step.mean(values, used), {}
    for draw in reversed(range(len(step.before))):
        extended = values.copy()
        for seen in step.before[draw]:
            behind = step.behind(values, draw, seen, used)
            at_stake[draw, seen] = behind
            mean = (masses[draw, seen] * behind).sum(axis=1) / UNIT
            extended[:, seen] = np.where(step.columns[used, draw] >= 0, mean, values[:, seen])
        values = extended
    reported = np.zeros((len(used), step.observation_count))
    reported[:, 0] = often
    for draw, possible in enumerate(step.before):
        column = step.columns[used, draw]
        real = column >= 0
        extended = np.where(real[:, None], 0, reported)
        for seen in possible:
            share = masses[draw, seen] / UNIT
            times = np.where(real, reported[:, seen], 0)
            yield column[real], times[real], share[real], at_stake[draw, seen][real]
            for group, where, part in step.leads(draw, seen, used):
                extended[where] += times * share[:, group] * part
        reported = extended
