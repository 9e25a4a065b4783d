"""Evidence planning: how many more items, with which true labels and at which distances, would decide a requirement.

The question is asked under the assumption that further items show the rates of the present ones. For planned counts
the guaranteed bounds are computed as they would be for real ones, so a plan that decides does decide, if the
assumption comes true; the bisection only looks for a small plan. Two shapes of plans are tried.

*Uniform*: every column that matters grows by one factor (a column without items counts as having one).

*Focused*: items where they narrow the bounds most. To first order the bounds move with the half-widths of the columns'
intervals, w_c = s_c / sqrt(n_c), where s_c is the greatest change of the probability that rates moving by the
standard deviation of one item can make:

    s_c = max { sum_g gradient_g d_g  :  |d_g| <= sqrt(mu_g (1 - mu_g)),  sum_g d_g = 0 }.

All columns may be at their worst together, so the w_c add up. The least number of items sum n_c with
sum_c s_c / sqrt(n_c) = constant has n_c proportional to s_c^(2/3) (Lagrange). Neyman's allocation (On the two different
aspects of the representative method, 1934), n_c proportional to s_c, is the same for errors that add up in squares.
Items that are there already are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Set
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.adjoint import expected_visits, gradient, state_values
from verifier.analysis.measured import Measured
from verifier.analysis.objective import Objective
from verifier.analysis.region import Event, confidence_region, events_of, groups_of
from verifier.analysis.robust import Effort, GuaranteedBounds, Semantics, guaranteed_bounds
from verifier.checking.verdicts import Verdict, verdict_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MOST_ITEMS = 10**9
"""Further items, over all columns, beyond which no plan is looked for."""
PRECISION = 1.01
"""Plans are found up to this factor of what is there beyond the present items."""
_DECIDED = (Verdict.SATISFIED, Verdict.VIOLATED)


@dataclass(frozen=True)
class RegionSettings:
    """How the confidence region of a plan is made.

    Attributes:
        level: of all bounds of the run at once.
        events: all events of the run; those of the objective alone if None. Columns that get their first items add
            theirs.
        semantics: of the bounds.
    """

    level: float = 0.95
    events: Set[Event] | None = None
    semantics: Semantics = "every_state"


@dataclass(frozen=True, eq=False)
class Allocation:
    """Further items.

    Attributes:
        items: (bins, true) int64, how many more of each column.
        lower, upper: (m,) the guaranteed bounds with them, if they show the present rates.
    """

    items: Ints
    lower: Floats
    upper: Floats

    @property
    def total(self) -> int:
        """Number of further items."""
        return int(self.items.sum())


@dataclass(frozen=True, eq=False)
class Plan:
    """What would decide a requirement.

    Attributes:
        verdicts: what the present rates say, for each of the initial states asked about.
        uniform, focused: the two allocations; None where none of that shape decides.
        reason: why there is none at all; empty if there is.
    """

    verdicts: tuple[Verdict, ...]
    uniform: Allocation | None
    focused: Allocation | None
    reason: str = ""

    @property
    def cheapest(self) -> Allocation | None:
        """The allocation with fewer items."""
        known = [each for each in (self.focused, self.uniform) if each is not None]
        return min(known, key=lambda each: each.total, default=None)


def evidence_needed(
    objective: Objective,
    measured: Measured,
    settings: RegionSettings,
    target: Fraction,
    comparison: str,
    starts: Ints | None = None,
) -> Plan:
    """The further items with which the bounds decide `P comparison target`, the present rates persisting.

    Args:
        objective: the formula on the skeleton.
        measured: the items, with rates in every column that the chain needs.
        settings: see `RegionSettings`.
        target, comparison: the requirement; one of >= > <= <.
        starts: numbers of the initial states to decide, each of them; all if None.

    Raises:
        ValueError: `comparison` is none of these, or a column that is needed has no rates.
        EngineError, LimitError: as `guaranteed_bounds`.
    """
    if comparison not in (">=", ">", "<=", "<"):
        raise ValueError(f"nothing to decide in P {comparison} {target}")
    asked = np.arange(len(objective.product.start)) if starts is None else starts
    here = objective.probabilities(measured.rates[None])
    margin = here.error_bound[0] + here.representation_bound[0]
    low, high = here.probability[0] - margin, here.probability[0] + margin
    verdicts = tuple(verdict_of(float(low[k]), float(high[k]), comparison, target) for k in asked)
    if not all(each in _DECIDED for each in verdicts):
        return Plan(verdicts, None, None, "cannot be decided by more items: the probability is the target itself")

    def decides(items: Ints) -> GuaranteedBounds | None:
        found = _bounds_with(objective, measured, settings, items)
        pairs = zip(asked.tolist(), verdicts, strict=True)
        met = all(
            verdict_of(float(found.lower[k]), float(found.upper[k]), comparison, target) is verdict
            for k, verdict in pairs
        )
        return found if met else None

    present = measured.counts.sum(axis=1)
    useful = _useful(objective, measured)
    nothing = np.zeros_like(present)
    found = decides(nothing)
    if found is not None:
        already = Allocation(nothing, found.lower, found.upper)
        return Plan(verdicts, already, already)
    base = np.where(useful, np.maximum(present, 1), 0)
    uniform = _smallest(decides, lambda size: np.where(useful, np.ceil(base * (1 + size)) - present, 0), useful)
    worth = np.where(useful, _worth(objective, measured, asked), 0) ** (2 / 3)
    focused = None
    if np.any(worth > 0):
        share = worth / worth.max()
        focused = _smallest(decides, lambda size: np.maximum(np.ceil(size * share) - present, 0), useful)
    reason = ""
    if uniform is None and focused is None:
        reason = f"not decided by {MOST_ITEMS} further items: the probability is the target, or too close to it"
    return Plan(verdicts, uniform, focused, reason)


def planned_counts(measured: Measured, items: Ints) -> Ints:
    """(bins, predicted, true) counts with (bins, true) further items that show the present rates.

    Each column is divided among the labels in proportion, what is left over by largest remainders, and no label loses
    items.
    """
    total = measured.counts.sum(axis=1) + items
    rates = np.where(np.isnan(measured.rates), 0, measured.rates)
    wanted = rates * total[:, None, :]
    counts = np.maximum(np.floor(wanted).astype(np.int64), measured.counts)
    counts = np.where(items[:, None, :] > 0, counts, measured.counts)
    remainder = wanted - counts
    for index, column in np.argwhere(total != counts.sum(axis=1)).tolist():
        missing = int(total[index, column] - counts[index, :, column].sum())
        order = np.argsort(-remainder[index, :, column], kind="stable")
        if missing > 0:
            counts[index, order[: missing % len(order)], column] += 1
            counts[index, order, column] += missing // len(order)
        else:
            _take_back(counts[index, :, column], measured.counts[index, :, column], -missing)
    return counts


def _take_back(counts: Ints, least: Ints, excess: int) -> None:
    """Lower counts by `excess` in all, the largest first, none below `least`."""
    while excess > 0:
        label = int(np.argmax(counts - least))
        counts[label] -= 1
        excess -= 1


def _bounds_with(objective: Objective, measured: Measured, settings: RegionSettings, items: Ints) -> GuaranteedBounds:
    planned = Measured(planned_counts(measured, items), measured.rates, measured.fixed)
    own = events_of(objective.skeleton, planned)
    events = own if settings.events is None else own | settings.events
    region = confidence_region(objective.skeleton, planned, settings.level, events)
    effort = Effort(attained=settings.semantics == "one_matrix", certificates=False)
    return guaranteed_bounds(objective, region, settings.semantics, effort)


def _useful(objective: Objective, measured: Measured) -> Mask:
    """(bins, true) the columns in which items help: needed, not held fixed, and with rates."""
    useful = np.zeros(measured.fixed.shape, dtype=bool)
    needed = objective.skeleton.columns_needed()
    useful[needed[:, 0], needed[:, 1]] = True
    if np.any(np.isnan(measured.rates).any(axis=1) & useful):
        raise ValueError("a column that the chain needs has no rates")
    return useful & ~measured.fixed


def _smallest(
    decides: Callable[[Ints], GuaranteedBounds | None], shape: Callable[[float], Floats], useful: Mask
) -> Allocation | None:
    """The smallest size at which the items of a shape decide, by bisection; None if they do not at `MOST_ITEMS`."""

    def items(size: float) -> Ints:
        return np.where(useful, shape(size), 0).astype(np.int64)

    low, high = 0.0, 1e-3
    while items(high).sum() < MOST_ITEMS and high < 1e12:
        high *= 2
    while items(high).sum() > MOST_ITEMS:
        high /= PRECISION
    found = decides(items(high)) if np.any(items(high) > 0) else None
    if found is None:
        return None
    best = Allocation(items(high), found.lower, found.upper)
    while best.total > 1 and items(high).sum() > max(PRECISION * items(low).sum(), items(low).sum() + 1):
        middle = math.sqrt(low * high) if low > 0 else high / 1024
        found = decides(items(middle))
        if found is None:
            low = middle
        else:
            high, best = middle, Allocation(items(middle), found.lower, found.upper)
    return best


def _worth(objective: Objective, measured: Measured, asked: Ints) -> Floats:
    """(bins, true) s_c, the largest over the initial states asked about."""
    rates = np.where(np.isnan(measured.rates), 1 / measured.rates.shape[1], measured.rates)
    values = state_values(objective, rates)
    cells = gradient(objective, values, expected_visits(objective, values)[asked]).cells
    group = groups_of(objective.skeleton.channel)
    first = np.unique(group, return_index=True)[1]
    total = np.maximum(measured.counts.sum(axis=1, keepdims=True), 1)
    # Half an item more keeps what has not been seen yet from counting as impossible.
    seen = np.stack([rates[:, group == number].sum(axis=1) for number in range(len(first))], axis=1)
    smoothed = (seen * total + 0.5) / (total + 0.5 * len(first))
    spread = np.sqrt(smoothed * (1 - smoothed))
    return np.max([_greatest_change(each[:, first], spread) for each in cells], axis=0)


def _greatest_change(slope: Floats, spread: Floats) -> Floats:
    """(bins, true) greatest sum of slope times change, changes within the spread and summing to 0 over the groups."""
    order = np.argsort(-slope, axis=1, kind="stable")
    slope, room = np.take_along_axis(slope, order, axis=1), 2 * np.take_along_axis(spread, order, axis=1)
    # Start with every change at its lower end; then there is the sum of the spreads to give away, best first.
    left = spread.sum(axis=1, keepdims=True) - (np.cumsum(room, axis=1) - room)
    change = np.clip(left, 0, room) - room / 2
    result: Floats = (slope * change).sum(axis=1)
    return result
