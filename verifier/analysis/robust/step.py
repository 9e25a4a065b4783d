"""One step of a chain whose matrices are only known to lie in a region: best choices, and which moves may be forced.

*Detection* is uncertain, *motion* is exact. A product state p draws one report after another, each from a column of
the region, and moves to `following[p, y]`, where y is what the planner knows after all of them (`told`). Whoever
chooses the rates (call it nature) chooses again for every draw, knowing p and what the earlier draws of the step
reported. That is at least as much freedom as one matrix for all states, or one for each state, leaves.

*Best choice.* For values v of the reports of one draw, the greatest of sum mu_g v_g over
{lower <= mu <= upper, sum mu = 1} is found greedily: every group starts with its lower bound, and what is left of 1
goes to the groups in the order of falling value, to each up to its upper bound. (Moving mass from a group to one of
greater value cannot lose; Nilim and El Ghaoui, Robust control of Markov decision processes with uncertain transition
matrices, Operations Research 53, 2005, section 4.) Masses are whole numbers of billionths, so the chosen rates are
exact and are a vertex of the polytope. Draws are taken backwards, from the last to the first.

*Rounding.* With masses exact and values v doubles, sum mu_g v_g over G groups, divided by 10^9, has at most G + 1
roundings u = 2^-53 relative to sum mu_g |v_g|, and underflow below 2^-1050. `upper_bound` adds more than that in
every draw, so it bounds the exact optimum from above: the order of doubles is exact, hence the chosen masses are
optimal for the doubles that are compared, and the optimum is monotone in them.

*In which bin* an object is reported is no choice: where it may be another than its own, a group is worth the mean
over the ways in which it is told. Nature stays within a set only if every way does.

*What the world draws* is no choice: it is independent of the reports, and an observation is worth the mean over its
outcomes. Nature stays within a set only if every outcome that has any probability does.

*What the world decides* is nature's choice: it is on the same side. Each alternative of a product state is a row.

*Moves.* Nature can stay within a set of states if it can give all mass to reports that lead there; it can use a move
while doing so if that report can get mass above 0 then. As the mean of two choices is a choice, all such moves can be
used with positive probability at once. Decided in whole numbers.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.objective import Objective
from verifier.analysis.robust.region import Region, Told, told_of
from verifier.base.arrays import ROUNDOFF, Floats, Ints, Mask, distinct, row_sums
from verifier.base.graphs import ranges

Masses: TypeAlias = "dict[tuple[int, int], NDArray[Any]]"
"""(draw, observation before it) -> (k, groups) billionths."""

_UNDERFLOW = 2.0**-1000
_FEW_GROUPS = 4
_EVERY = slice(None)


@dataclass(frozen=True, eq=False)
class UncertainStep:
    """The step of every product state, in each of its alternatives: of r rows.

    Attributes:
        following: (r, observations * outcomes) product state that each observation leads to, with each outcome of
            what the world draws.
        motion: (r, outcomes) how likely each outcome is.
        columns: (r, draws) int64, row of `lower` and `upper` that each draw is from; -1 where there is no draw.
        lower, upper: (columns, groups) int64 billionths.
        told: as what groups are told.
        kind: (r, draws) int64, in which kind each draw is told; any where there is none.
        before: for each draw, the observations there may be before it.
        owner: (r,) int64, the product state of each row, increasing; every state has one.
        motion_error: largest relative error of `motion`.
    """

    following: Ints
    motion: Floats
    columns: Ints
    lower: Ints
    upper: Ints
    told: Told
    kind: Ints
    before: tuple[tuple[int, ...], ...]
    owner: Ints
    motion_error: float = ROUNDOFF

    @property
    def state_count(self) -> int:
        """Number of product states, p."""
        return int(self.owner[-1]) + 1

    @cached_property
    def _first(self) -> Ints:
        """(p + 1,) where the rows of each product state begin."""
        return np.searchsorted(self.owner, np.arange(self.state_count + 1))

    @property
    def observation_count(self) -> int:
        """Number of observations."""
        return len(self.told.then)

    @cached_property
    def _alone(self) -> tuple[int | None, ...]:
        """The kind in which a draw is told in all rows, if it has a single way."""
        kinds = (
            distinct(kind[column >= 0]).tolist() for kind, column in zip(self.kind.T, self.columns.T, strict=True)
        )
        single = np.count_nonzero(self.told.often, axis=1) == 1
        return tuple(kind[0] if len(kind) == 1 and single[kind[0]] else None for kind in kinds)

    def behind(self, values: Floats, draw: int, seen: int, at: Ints | slice = _EVERY) -> Floats:
        """(k, groups) the mean of (k, observations) values once a draw reports each group, behind what was seen."""
        alone = self._alone[draw]
        if alone is not None:
            return values[:, self.told.after[seen, alone, 0]]
        kind = self.kind[at, draw]
        led = values[np.arange(len(values))[:, None, None], self.told.after[seen, kind]]
        return np.asarray((led * self.told.share[kind][:, :, None]).sum(axis=1))

    def _at_most_behind(self, values: Floats, draw: int, seen: int, at: Ints | slice) -> Floats:
        """`behind`, and not below what it is for exact sums."""
        means = self.behind(values, draw, seen, at)
        if self._alone[draw] is not None or self.told.ways == 1:
            return means
        size = self.behind(np.abs(values), draw, seen, at)
        return means + 4 * (self.told.ways + 4) * ROUNDOFF * size + np.where(size > 0, _UNDERFLOW, 0)

    def _sure_behind(self, able: Mask, draw: int, seen: int, at: Ints | slice) -> Mask:
        """(k, groups) whether every way in which a draw tells each group is `able`, (k, observations)."""
        alone = self._alone[draw]
        if alone is not None:
            return able[:, self.told.after[seen, alone, 0]]
        kind = self.kind[at, draw]
        led = able[np.arange(len(able))[:, None, None], self.told.after[seen, kind]]
        return np.asarray((led | (self.told.often[kind] == 0)[:, :, None]).all(axis=1))

    def leads(self, draw: int, seen: int, at: Ints | slice = _EVERY) -> Iterator[tuple[int, Any, Any]]:
        """Where a draw leads once `seen` was reported: a group, an index of one observation for each of the k rows,
        and the probability that it is the one."""
        alone = self._alone[draw]
        if alone is not None:
            for group, now in enumerate(self.told.after[seen, alone, 0].tolist()):
                yield group, (slice(None), now), 1.0
            return
        kind = self.kind[at, draw]
        after, share, rows = self.told.after[seen, kind], self.told.share[kind], np.arange(len(kind))
        for group in range(self.told.group_count):
            for way in range(self.told.ways):
                yield group, (rows, after[:, way, group]), share[:, way]

    def rows_of(self, states: Ints) -> Ints:
        """The rows of some product states, in their order."""
        return ranges(self._first[states], self._first[states + 1])

    def greatest(self, values: Floats, at: Ints | slice = _EVERY) -> tuple[Floats, Masses]:
        """The greatest mean value that nature can choose, and by which masses.

        Args:
            values: (k, observations * outcomes) value of what follows each observation.
            at: the k rows; all of them by default.

        Returns:
            (k,) the optima, each with the rounding of a few sums; and the masses.
        """
        masses: Masses = {}
        values = self.mean(values, at)
        for draw in reversed(range(len(self.before))):
            column = self.columns[at, draw]
            extended = values.copy()
            for seen in self.before[draw]:
                behind = self.behind(values, draw, seen, at)
                chosen = self.best_masses(behind, column)
                masses[draw, seen] = chosen
                mean = row_sums(chosen * behind) / UNIT
                extended[:, seen] = np.where(column >= 0, mean, values[:, seen])
            values = extended
        return values[:, 0], masses

    def best_masses(self, values: Floats, column: Ints) -> Ints:
        """`greatest_masses` of (k, groups) values in k columns: of few groups, looked up by their order."""
        groups = values.shape[1]
        if groups > _FEW_GROUPS or len(values) < 1 << groups**2:
            return greatest_masses(values, self.lower[column], self.upper[column])
        code = np.zeros(len(values), dtype=np.int64)
        for bit, (one, other) in enumerate(itertools.combinations(range(groups), 2)):
            code |= (values[:, other] > values[:, one]).astype(np.int64) << bit
        return np.take(self._masses_by_order, code * len(self.lower) + column, axis=0)

    @cached_property
    def _masses_by_order(self) -> Ints:
        """(orders * columns, groups) `greatest_masses` of each order: a bit of its number says for each two groups
        whether the second is worth more."""
        columns, groups = self.lower.shape
        pairs = list(itertools.combinations(range(groups), 2))
        wins = np.zeros((1 << len(pairs), groups))
        for bit, (one, other) in enumerate(pairs):
            later = np.arange(len(wins)) >> bit & 1
            wins[:, one] += 1 - later
            wins[:, other] += later
        ends = (np.tile(array, (len(wins), 1)) for array in (self.lower, self.upper))
        return greatest_masses(np.repeat(wins, columns, axis=0), *ends)

    def mean(self, values: Floats, at: Ints | slice = _EVERY) -> Floats:
        """(k, observations) mean over what the world draws of (k, observations * outcomes) values."""
        motion = self.motion[at]
        if motion.shape[1] == 1:
            return values
        by_outcome = values.reshape(len(values), self.observation_count, motion.shape[1])
        return np.asarray((by_outcome * motion[:, None]).sum(axis=2))

    def sure(self, inside: Mask, at: Ints | slice = _EVERY) -> Mask:
        """(k, observations) for which observations every outcome that can occur is `inside`."""
        can = self.motion[at][:, None] > 0
        outcomes: Mask = inside.reshape(len(inside), self.observation_count, can.shape[2]) | ~can
        return np.asarray(outcomes.all(axis=2))

    def upper_bound(self, values: Floats, at: Ints | slice = _EVERY) -> Floats:
        """(k,) doubles that are not below the greatest mean value, computed from `values` as they are."""
        slack, outcomes = 4 * (self.lower.shape[1] + 4) * ROUNDOFF, self.motion.shape[1]
        if outcomes > 1:
            size = self.mean(np.abs(values), at)
            off = 4 * (outcomes + 4) * ROUNDOFF + 2 * self.motion_error
            values = self.mean(values, at) + off * size + np.where(size > 0, _UNDERFLOW, 0)
        for draw in reversed(range(len(self.before))):
            column = self.columns[at, draw]
            extended = values.copy()
            for seen in self.before[draw]:
                behind = self._at_most_behind(values, draw, seen, at)
                chosen = self.best_masses(behind, column)
                weighted = chosen * behind
                size = row_sums(np.abs(weighted))
                bound = row_sums(weighted) / UNIT + slack * (size / UNIT) + np.where(size > 0, _UNDERFLOW, 0)
                extended[:, seen] = np.where(column >= 0, bound, values[:, seen])
            values = extended
        return values[:, 0]

    def weights(self, masses: Masses, at: Ints | slice = _EVERY) -> Floats:
        """(k, observations * outcomes) probability of each observation under the given masses, with each outcome of
        what the world draws."""
        columns = self.columns[at]
        result = np.zeros((len(columns), self.observation_count))
        result[:, 0] = 1
        for draw, possible in enumerate(self.before):
            extended = np.zeros_like(result)
            for seen in possible:
                share = masses[draw, seen] / UNIT
                for group, where, part in self.leads(draw, seen, at):
                    extended[where] += result[:, seen] * share[:, group] * part
            result = np.where(columns[:, draw, None] >= 0, extended, result)
        return (result[:, :, None] * self.motion[at][:, None]).reshape(len(result), self.following.shape[1])

    def inner_weights(self, at: Ints | slice = _EVERY) -> Floats:
        """`weights` of a choice that gives mass to every report that can have any."""
        inner = inner_masses(self.lower, self.upper)
        share = {
            (draw, seen): inner[self.columns[at, draw]]
            for draw, possible in enumerate(self.before)
            for seen in possible
        }
        return self.weights(share, at)

    @property
    def moves(self) -> tuple[Ints, Ints]:
        """Sources and targets of the moves that nature can make, with whatever choice."""
        rows, seen = np.nonzero(self.usable(np.ones(self.following.shape, dtype=bool)))
        return self.owner[rows], self.following[rows, seen]

    def usable(self, inside: Mask, at: Ints | slice = _EVERY) -> Mask:
        """Which moves nature can make while it keeps all mass on moves that are `inside`.

        Args:
            inside: (k, observations * outcomes) bool.
            at: the k rows.

        Returns:
            (k, observations * outcomes) bool; a row without any move where nature cannot keep inside.
        """
        columns, can, shape = self.columns[at], self.motion[at][:, None] > 0, inside.shape
        inside = self.sure(inside, at)
        levels = [inside]
        for draw in reversed(range(len(self.before))):
            able = levels[-1].copy()
            for seen in self.before[draw]:
                stays = self._can_keep(self._sure_behind(levels[-1], draw, seen, at), columns[:, draw])
                able[:, seen] = np.where(columns[:, draw] >= 0, stays, levels[-1][:, seen])
            levels.append(able)
        reached = np.zeros_like(inside)
        reached[:, 0] = levels.pop()[:, 0]
        for draw, possible in enumerate(self.before):
            able = levels.pop()
            extended = np.zeros_like(reached)
            for seen in possible:
                given = self._can_have_mass(self._sure_behind(able, draw, seen, at), columns[:, draw])
                for group, where, part in self.leads(draw, seen, at):
                    extended[where] |= reached[:, seen] & given[:, group] & (part > 0)
            reached = np.where(columns[:, draw, None] >= 0, extended, reached)
        return (reached[:, :, None] & can).reshape(shape)

    def _can_keep(self, able: Mask, column: Ints) -> Mask:
        """(k,) whether all mass can be on the (k, groups) groups that are `able`."""
        lower, upper = self.lower[column], self.upper[column]
        result: Mask = (np.where(able, 0, lower).sum(axis=1) == 0) & (np.where(able, upper, 0).sum(axis=1) >= UNIT)
        return result

    def _can_have_mass(self, able: Mask, column: Ints) -> Mask:
        """(k, groups) which groups can have mass while all of it is on groups that are `able`."""
        lower = np.where(able, self.lower[column], 0)
        others = lower.sum(axis=1, keepdims=True) - lower
        result: Mask = able & (self.upper[column] > 0) & (others < UNIT)
        return result


def uncertain_step(objective: Objective, region: Region) -> UncertainStep:
    """The step of an objective's product states over a region of its matrices.

    Raises:
        ValueError: the region is one of other labels or bins, or groups them differently.
    """
    channel = objective.skeleton.channel
    bins, groups, true = region.lower.shape
    told = told_of(channel)
    if channel.labels != region.labels or not np.array_equal(told.group, region.group):
        raise ValueError("the region's labels or groups are not those of the objective")
    if channel.bins.size and channel.bins.max() >= bins:
        raise ValueError("the region has fewer bins than the objective")
    drawn = np.where(channel.columns >= 0, channel.bins * true + channel.columns, -1)
    columns = np.full((len(objective.row), drawn.shape[1]), -1, dtype=np.int64)
    drawing = objective.row >= 0
    columns[drawing] = drawn[objective.row[drawing]]
    kind = np.zeros_like(columns)
    kind[drawing] = told.kind[objective.row[drawing]]
    before, possible = [], {0}
    for draw in range(columns.shape[1]):
        before.append(tuple(sorted(possible)))
        kinds = distinct(kind[columns[:, draw] >= 0, draw])
        after = told.after[sorted(possible)][:, kinds]
        possible = possible | (set(np.unique(after[:, told.often[kinds] > 0]).tolist()) - {-1})
    return UncertainStep(
        objective.following,
        objective.chances,
        columns,
        region.lower.swapaxes(1, 2).reshape(-1, groups),
        region.upper.swapaxes(1, 2).reshape(-1, groups),
        told,
        kind,
        tuple(before),
        objective.owner,
    )


def greatest_masses(values: Floats, lower: Ints, upper: Ints) -> Ints:
    """(k, groups) billionths between the bounds with the greatest mean of the (k, groups) values."""
    order = np.argsort(-values, axis=1, kind="stable")
    least = np.take_along_axis(lower, order, axis=1)
    spare = np.take_along_axis(upper, order, axis=1) - least
    left = UNIT - least.sum(axis=1, keepdims=True) - (np.cumsum(spare, axis=1) - spare)
    chosen = np.empty_like(least)
    np.put_along_axis(chosen, order, least + np.clip(left, 0, spare), axis=1)
    return chosen


def inner_masses(lower: Ints, upper: Ints) -> Floats:
    """(k, groups) billionths between the bounds, above 0 wherever that is possible."""
    least = np.maximum(lower, UNIT - (upper.sum(axis=1, keepdims=True) - upper))
    most = np.minimum(upper, UNIT - (lower.sum(axis=1, keepdims=True) - lower))
    free = (most - least).astype(np.float64)
    missing = UNIT - least.sum(axis=1, keepdims=True)
    inner: Floats = least + missing * free / np.maximum(free.sum(axis=1, keepdims=True), 1)
    return inner
