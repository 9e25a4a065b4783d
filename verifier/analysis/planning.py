"""Evidence planning: how many more drives, or items of which columns, would decide a requirement.

The question is asked under the assumption that further items show the rates of the present ones. For planned counts
the confidence bounds are computed as they would be for real ones, so a plan that decides does decide, if the
assumption comes true; the bisection only looks for a small plan.

*Drives*, where the file knows them: as if the present drives had been there k times over, the same for all. With a
single rate that must exceed m, betting on drives needs the least k with

    log sum_j p_j exp(k S_j) >= log(1 / tail),    S_j = sum_d log(1 + s_j (u_d / m - w_d)).

More items of the drives that are there do not help, so no plan in items is made of them.

*Items*, where it does not know drives. Two shapes of plans are tried.

*Uniform*: every column that matters grows by one factor (a column without items counts as having one).

*Focused*: items where they narrow the bounds most. To first order the bounds move with the half-widths of the
columns' intervals, w_c = s_c / sqrt(n_c), where s_c is the greatest change of the probability that rates moving by
the standard deviation of one item can make:

    s_c = max { sum_g gradient_g d_g  :  |d_g| <= sqrt(mu_g (1 - mu_g)),  sum_g d_g = 0 }.

All columns may be at their worst together, so the w_c add up. The least number of items sum n_c with
sum_c s_c / sqrt(n_c) = constant has n_c proportional to s_c^(2/3) (Lagrange). Neyman's allocation (On the two
different aspects of the representative method, 1934), n_c proportional to s_c, is the same for errors that add up in
squares. Items that are there already are kept.

Numbers are rounded up to two digits, and the rounded plan is the one that is checked.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, get_args

import numpy as np

from verifier.analysis.intervals.drive_items import rounded_to
from verifier.analysis.intervals.intervals import Measured
from verifier.analysis.intervals.rate_intervals import RateIntervals
from verifier.analysis.objective import Objective
from verifier.analysis.robust.inner_bounds import Side
from verifier.analysis.robust.region import groups_of, region_of
from verifier.analysis.robust.solutions import bound_of
from verifier.analysis.sensitivity.adjoint import expected_visits, gradient, state_values
from verifier.analysis.settings import Semantics
from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.documents import Count, Limits, MisfitError
from verifier.checking.verdicts import Verdict, verdict_of
from verifier.perception.confusion.matrices import label_text

MOST_ITEMS = 10**9
"""Further items, over all columns, beyond which no plan is looked for."""
MOST_DRIVES = 10**6
"""Drives in all beyond which no plan is looked for."""
PRECISION = 1.02
"""The total is found up to this factor, before rounding."""


@dataclass(frozen=True)
class PlannedColumn:
    """A column that gets items: its true label and distance bin, the items it has, and how many further ones."""

    true: str
    bin: str
    items: Count
    further: Annotated[int, Limits(ge=1)]


@dataclass(frozen=True)
class EvidencePlan:
    """How much more data would decide an inconclusive requirement in its worst scenario, if the rates persist.

    Attributes:
        columns: the most wanted first; none where whole drives are wanted.
        drives: so many more drives like the present ones; None where items are counted.
        lower, upper: the confidence bounds that would follow.
        verdict: what they would decide.
    """

    columns: tuple[PlannedColumn, ...]
    drives: Annotated[int, Limits(ge=1)] | None
    lower: float
    upper: float
    verdict: Verdict

    def __post_init__(self) -> None:
        if bool(self.columns) == (self.drives is not None):
            raise ValueError("expected a plan in items or in drives")
        if self.lower > self.upper:
            raise MisfitError(["lower"], f"expected at most the upper bound, {self.upper}")

    @property
    def total(self) -> int:
        """Further items in all."""
        return sum(column.further for column in self.columns)


@dataclass(frozen=True)
class Question:
    """What is to be decided, and how the bounds are made.

    Attributes:
        start: number of the initial state.
        comparison, target: the requirement, one of >= > <= <.
    """

    start: int
    comparison: str
    target: Fraction
    semantics: Semantics = "per_state"

    def __post_init__(self) -> None:
        if self.comparison not in (">=", ">", "<=", "<"):
            raise ValueError(f"nothing to decide in P {self.comparison} {self.target}")


def additional_data(
    objective: Objective,
    intervals: RateIntervals,
    question: Question,
    drives: int | None = None,
    bin_text: Callable[[int], str] = str,
) -> EvidencePlan | None:
    """The further data with which the bounds decide a question: drives, or items by the cheaper of the two shapes.

    Args:
        objective: the formula on the skeleton.
        intervals: of all rates of the run, with rates in every column that the chain needs.
        drives: how many there are, where the file knows them: then the plan is in drives.
        bin_text: words for a bin, from its number.

    Returns:
        The plan. None where the present data decide, and where no number of drives up to `MOST_DRIVES` or items up
        to `MOST_ITEMS` does: the probability is the target, or too close to it, or what is uncertain is not estimated
        from data.

    Raises:
        ValueError: a column that is needed has no rates.
        EngineError, LimitError: as `robust_bounds`.
    """
    measured = intervals.measured
    useful, verdict = _useful(objective, measured), _verdict_of_point(objective, measured, question)
    if verdict is Verdict.INCONCLUSIVE or stands(objective, intervals, question, verdict):
        return None

    if drives is not None:
        enough = _in_drives(
            lambda times: stands(objective, replace(intervals, times=times), question, verdict), drives
        )
        if enough is None:
            return None
        (lower, upper), _ = verdict_from(objective, replace(intervals, times=enough / drives), question)
        return EvidencePlan((), enough - drives, lower, upper, verdict)

    def with_items(further: Ints) -> RateIntervals:
        planned = planned_counts(measured, further)
        return replace(intervals, measured=Measured(planned, measured.rates, measured.fixed))

    known: dict[bytes, bool] = {}  # rounded to two digits, many sizes are the same items

    def decided(further: Ints) -> bool:
        key = further.tobytes()
        if key not in known:
            known[key] = stands(objective, with_items(further), question, verdict)
        return known[key]

    further = _in_items(objective, measured, question.start, decided, useful)
    if further is None:
        return None
    columns = np.argwhere(further > 0)
    columns = columns[np.argsort(-further[columns[:, 0], columns[:, 1]], kind="stable")]
    present, labels = measured.counts.sum(axis=1), objective.skeleton.channel.labels
    (lower, upper), _ = verdict_from(objective, with_items(further), question)
    return EvidencePlan(
        tuple(
            PlannedColumn(label_text(labels[true]), bin_text(at), int(present[at, true]), int(further[at, true]))
            for at, true in columns.tolist()
        ),
        None,
        lower,
        upper,
        verdict,
    )


def stands(objective: Objective, intervals: RateIntervals, question: Question, verdict: Verdict) -> bool:
    """Whether the bounds from intervals of all rates have this verdict, satisfied or violated; one side tells."""
    side: Side = "lower" if (verdict is Verdict.SATISFIED) == question.comparison.startswith(">") else "upper"
    bounds = bound_of(objective, region_of(objective.skeleton, intervals), question.semantics, side)
    end = float(bounds[question.start])
    lower, upper = (end, 1.0) if side == "lower" else (0.0, end)
    return verdict_of(lower, upper, question.comparison, question.target) is verdict


def verdict_from(
    objective: Objective, intervals: RateIntervals, question: Question
) -> tuple[tuple[float, float], Verdict]:
    """The bounds that follow from intervals of all rates, and what they decide; errors as `robust_bounds`."""
    region, sides = region_of(objective.skeleton, intervals), get_args(Side)
    lower, upper = (float(bound_of(objective, region, question.semantics, side)[question.start]) for side in sides)
    return (lower, upper), verdict_of(lower, upper, question.comparison, question.target)


def _verdict_of_point(objective: Objective, measured: Measured, question: Question) -> Verdict:
    here = objective.probabilities(measured.rates[None])
    k = question.start
    margin = float(here.error_bound[0, k] + here.representation_bound[0, k])
    point = float(here.probability[0, k])
    return verdict_of(point - margin, point + margin, question.comparison, question.target)


def _in_drives(decided: Callable[[float], bool], drives: int) -> int | None:
    """The fewest drives, by bisection to one in a hundred, where those that are there are too few."""
    none = enough = drives
    while none == enough or not decided(enough / drives):
        none, enough = enough, 2 * enough
        if not enough or enough > MOST_DRIVES:
            return None
    while enough - none > max(1, enough // 100):
        middle = (none + enough) // 2
        none, enough = (none, middle) if decided(middle / drives) else (middle, enough)
    return enough


def _in_items(
    objective: Objective, measured: Measured, start: int, decided: Callable[[Ints], bool], useful: Mask
) -> Ints | None:
    """Further items of the best plan, where those that are there are too few."""
    present = measured.counts.sum(axis=1)
    base = np.maximum(present, 1)
    best = _smallest(decided, lambda size: np.where(useful, base * (1 + size) - present, 0))
    worth = np.where(useful, _worth(objective, measured, start), 0) ** (2 / 3)
    if worth.any():
        share = worth / worth.max()
        focused = _smallest(decided, lambda size: np.maximum(size * share - present, 0))
        if focused is not None and (best is None or focused.sum() <= best.sum()):
            best = focused
    return best


def planned_counts(measured: Measured, further: Ints) -> Ints:
    """(bins, predicted, true) counts with (bins, true) further items that show the present rates.

    The further items of each column are divided among the labels in proportion, what is left over by largest
    remainders.
    """
    return measured.counts + rounded_to(np.nan_to_num(measured.rates) * further[:, None, :], further)


def _useful(objective: Objective, measured: Measured) -> Mask:
    """(bins, true) the columns in which items help: needed and not held fixed."""
    useful = np.zeros(measured.fixed.shape, dtype=bool)
    needed = objective.skeleton.columns_needed()
    useful[needed[:, 0], needed[:, 1]] = True
    if np.any(np.isnan(measured.rates.sum(axis=1)) & useful):
        raise ValueError("a column that the chain needs has no rates")
    return useful & ~measured.fixed


def _smallest(decided: Callable[[Ints], bool], shape: Callable[[float], Floats]) -> Ints | None:
    """The smallest size at which the items of a shape decide, by bisection; None if they do not at `MOST_ITEMS`."""
    high = 1.0
    while _rounded(shape(high)).sum() < MOST_ITEMS and high < MOST_ITEMS:
        high *= 2
    while _rounded(shape(high)).sum() > MOST_ITEMS:
        high /= PRECISION
    best, low = None, 0.0
    while best is None or high > PRECISION * low:
        size = high if best is None else (math.sqrt(low * high) if low > 0 else high / 1024)
        items = _rounded(shape(size))
        if np.any(items > 0) and decided(items):
            high, best = size, items
        elif best is None:
            return None
        else:
            low = size
    return best


def _rounded(items: Floats) -> Ints:
    """Whole numbers, rounded up to two digits."""
    digits = np.floor(np.log10(np.maximum(items, 1)))
    unit = 10 ** np.maximum(digits - 1, 0)
    result: Ints = (np.ceil(items / unit - 1e-9) * unit).astype(np.int64)
    return result


def _worth(objective: Objective, measured: Measured, start: int) -> Floats:
    """(bins, true) s_c; 0 where slopes are not known, and all columns get their share."""
    if not objective.slopes:
        return np.zeros((len(measured.counts), measured.counts.shape[2]))
    rates = np.where(np.isnan(measured.rates), 1 / measured.rates.shape[1], measured.rates)
    values = state_values(objective, rates)
    cells = gradient(objective, values, expected_visits(objective, values)[[start]]).cells[0]
    group = groups_of(objective.skeleton.channel)
    first = np.unique(group, return_index=True)[1]
    total = np.maximum(measured.counts.sum(axis=1, keepdims=True), 1)
    # Half an item more keeps what has not been seen yet from counting as impossible.
    seen = np.stack([rates[:, group == number].sum(axis=1) for number in range(len(first))], axis=1)
    smoothed = (seen * total + 0.5) / (total + 0.5 * len(first))
    return _greatest_change(cells[:, first], np.sqrt(smoothed * (1 - smoothed)))


def _greatest_change(slope: Floats, spread: Floats) -> Floats:
    """(bins, true) greatest sum of slope times change, changes within the spread and summing to 0 over the groups."""
    order = np.argsort(-slope, axis=1, kind="stable")
    slope, room = np.take_along_axis(slope, order, axis=1), 2 * np.take_along_axis(spread, order, axis=1)
    # Start with every change at its lower end; then there is the sum of the spreads to give away, best first.
    left = spread.sum(axis=1, keepdims=True) - (np.cumsum(room, axis=1) - room)
    result: Floats = (slope * (np.clip(left, 0, room) - room / 2)).sum(axis=1)
    return np.maximum(result, 0)  # no change at all is one of them; rounding may end a hair below
