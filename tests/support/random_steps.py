"""Steps of a few rows over a region of matrices, and what they are by definition, in fractions."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
from interval_models import supports, vertices

from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.robust.region import Told
from verifier.analysis.robust.step import UncertainStep

REPORTS = [frozenset(), frozenset("a"), frozenset("b")]
SEEN = [frozenset(), frozenset("a"), frozenset("b"), frozenset("ab")]


def random_step(rng):
    """A step of six rows with up to two draws, told in one of three kinds of up to two ways; the world draws one
    outcome of at most two. All chances are multiples of 1/10, or of 1/4."""
    rows, draws, groups, outcomes = 6, int(rng.integers(1, 3)), int(rng.integers(2, 4)), int(rng.integers(1, 3))
    kinds = [int(rng.integers(3))] if rng.random() < 0.5 else range(3)
    told = Told(
        np.arange(groups),
        rng.choice(kinds, (rows, draws)),
        rng.integers(0, 3, (3, 2, groups)),
        np.array([[1, 0], [1, 3], [2, 2]]),
        np.array([[SEEN.index(seen | report) for report in REPORTS] for seen in SEEN]),
    )
    lower = rng.integers(0, 3, (4, groups)) * (rng.random((4, groups)) < 0.5)
    upper = lower + rng.integers(0, 9, (4, groups))
    upper[:, 0] = np.maximum(upper[:, 0], 10 - lower[:, 1:].sum(axis=1))
    columns = rng.integers(-1, 4, (rows, draws))
    kind = np.where(columns >= 0, told.kind, rng.integers(0, 3, (rows, draws)))
    motion = np.array([[[1.0]], [[0.25, 0.75], [1.0, 0.0], [0.0, 1.0]]][outcomes - 1])
    return UncertainStep(
        rng.integers(0, rows, (rows, 4 * outcomes)),
        motion[rng.integers(0, len(motion), rows)],
        columns,
        lower * (UNIT // 10),
        np.minimum(upper, 10) * (UNIT // 10),
        told,
        kind,
        ((0,), (0, 1, 2, 3))[:draws],
        np.arange(rows),
    )


class OfOneRow:
    """The step of one row by its definition, in fractions."""

    def __init__(self, step, row):
        self.step, self.row, self.outcomes = step, row, step.motion.shape[1]
        self.motion = [Fraction(float(chance)) for chance in step.motion[row]]

    def draw(self, k):
        """The ends of the draw's column and its ways; None where there is no draw."""
        told, column, kind = self.step.told, self.step.columns[self.row, k], self.step.kind[self.row, k]
        if column < 0:
            return None
        ways = [
            (int(often), each.tolist())
            for often, each in zip(told.often[kind], told.report[kind], strict=True)
            if often
        ]
        return self.step.lower[column].tolist(), self.step.upper[column].tolist(), ways

    def best(self, value, k=0, seen=0):
        """The greatest mean of the values, over all vertices of the columns after each report."""
        if k == self.step.columns.shape[1]:
            return sum(c * Fraction(float(value[seen * self.outcomes + o])) for o, c in enumerate(self.motion))
        if self.draw(k) is None:
            return self.best(value, k + 1, seen)
        low, high, ways = self.draw(k)
        behind = [
            sum(often * self.best(value, k + 1, self.step.told.then[seen, each[group]]) for often, each in ways)
            / sum(often for often, _ in ways)
            for group in range(len(low))
        ]
        return max(sum(m * v for m, v in zip(point, behind, strict=True)) / UNIT for point in vertices(low, high))

    def chances(self, masses, k=0, seen=0, chance=Fraction(1)):
        """How likely each observation is with each outcome, under masses after each report."""
        found = np.zeros(4 * self.outcomes, dtype=object)
        if k == self.step.columns.shape[1]:
            for o, part in enumerate(self.motion):
                found[seen * self.outcomes + o] = chance * part
        elif self.draw(k) is None:
            found += self.chances(masses, k + 1, seen, chance)
        else:
            *_, ways = self.draw(k)
            for group, mass in enumerate(masses[k, seen][self.row].tolist()):
                for often, each in ways:
                    part = chance * Fraction(mass) / UNIT * often / sum(often for often, _ in ways)
                    found += self.chances(masses, k + 1, self.step.told.then[seen, each[group]], part)
        return found

    def ends(self, k=0, seen=0):
        """The sets of observations and outcomes that come with some chance, one for each way to choose rates."""
        if k == self.step.columns.shape[1]:
            return {frozenset(seen * self.outcomes + o for o, part in enumerate(self.motion) if part)}
        if self.draw(k) is None:
            return self.ends(k + 1, seen)
        low, high, ways = self.draw(k)
        found = set()
        for kept in supports(low, high, UNIT):
            after = {self.step.told.then[seen, each[group]] for group in kept for _, each in ways}
            behind = [self.ends(k + 1, int(now)) for now in sorted(after)]
            found |= {frozenset().union(*each) for each in itertools.product(*behind)}
        return found
