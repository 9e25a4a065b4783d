"""What nature would choose if she had to choose the same matrix in all states.

The bound of `robust_bound` lets her choose again in every state. How far her choices for one column differ from each
other, and what they are worth, says how much of the bound a single matrix may attain, and where to cut a region.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from verifier.analysis.intervals.betting import UNIT
from verifier.analysis.robust.bound import SideBound
from verifier.analysis.robust.inner_bounds import per_column
from verifier.analysis.robust.step import UncertainStep, greatest_masses, inner_masses
from verifier.base.arrays import Floats, Ints

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
    used = np.flatnonzero(steps > 0)
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
