"""Confidence bounds: the least and the greatest probability of an LTL formula over all matrices of a region.

*Semantics.* "per_state": every product state, and every draw, may have a matrix of its own. That is more freedom
than the truth has, so the bounds hold for it; they are exact for this freedom unless they say `conservative`. They
hold for rates that change with time, too, except, beyond the size of certificates, where rule 5 of `robust_graph`
decided a component.
"shared_matrix": one matrix holds throughout. Where a single matrix attains the bounds for every state, both semantics
have the same bounds; elsewhere branch and bound brings them closer together (`shared_matrix`).

*Guarantee.* If the true matrices lie in the region, the true probability lies within the bounds: for real numbers,
with all rounding of the computation accounted for (`robust_solve`). With a confidence region that happens with
probability at least 1 - alpha, for all bounds of a run at once (`region`). Each bound carries its certificate.

*Check.* What single matrices of the region attain is computed by another engine, in another way. A value outside the
bounds is an error of the program and is reported as such, with both numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verifier.analysis.objective import Objective
from verifier.analysis.robust.certificate import Tree, certificate_of, claimed_bound
from verifier.analysis.robust.inner_bounds import (
    Attained,
    OneSide,
    Side,
    SideBound,
    best_of,
    bound_sides,
    climbed,
    middle_of,
    nothing_attained,
)
from verifier.analysis.robust.region import Region
from verifier.analysis.robust.shared_matrix import common_choices, covered
from verifier.analysis.robust.step_counting import counted_side
from verifier.analysis.robust.subject import Subject, subject_of
from verifier.analysis.settings import Semantics
from verifier.analysis.step_counts import StepCount
from verifier.base.arrays import Floats, Ints
from verifier.base.errors import EngineError
from verifier.checking.enclosure import AGREEMENT

SEMANTICS = {"per_state": "every state may have a matrix of its own", "shared_matrix": "one matrix holds throughout"}


LARGEST_CLIMBED = 20_000
"""Product states up to which better matrices are climbed for; beyond, that would cost more than the bounds."""
MOST_STARTS = 32
"""Initial states up to which each gets attained matrices of its own; beyond, they share them."""
_NUMBERS_FOR_STEPS = 20_000_000
_NEXT_TO = 1e-6


@dataclass(frozen=True)
class Effort:
    """How much to compute.

    Attributes:
        boxes: for "shared_matrix", boxes looked at for each initial state and side.
        gap: for "shared_matrix", how close to an attained value a bound is close enough.
        attained: search for what single matrices attain. Off, the attained values are NaN, and "shared_matrix" is
            refused.
        certificates: the sides whose bounds are to have certificates.
    """

    boxes: int = 32
    gap: float = 1e-4
    attained: bool = True
    certificates: tuple[Side, ...] = ()

    def __post_init__(self) -> None:
        if self.boxes < 0 or not 0 <= self.gap <= 1:
            raise ValueError("the number of boxes is 0 or more, and the gap lies between 0 and 1")


@dataclass(frozen=True, eq=False)
class RobustBounds:
    """Bounds on the probability of a formula from each of m initial states.

    Attributes:
        lower, upper: (m,) hold the probability under every matrix of the region.
        lower_attained, upper_attained: (m,) probabilities under matrices of the region, with the small numerical
            error of the batch engine; how close the bounds are to what can happen.
        semantics: "per_state" or "shared_matrix".
        conservative: whether the bounds may be wider than their semantics asks for: some end component is only
            assumed to be as bad as it may be, or doubles did not suffice (`Reached.merged`).
        certificates: the documents of what proves the bounds of the sides that were asked for.
    """

    lower: Floats
    upper: Floats
    lower_attained: Floats
    upper_attained: Floats
    semantics: Semantics
    conservative: bool
    certificates: tuple[dict[str, Any], ...]

    def __post_init__(self) -> None:
        if not np.all((self.lower >= 0) & (self.lower <= self.upper) & (self.upper <= 1)):
            raise ValueError("bounds must satisfy 0 <= lower <= upper <= 1")


def robust_bounds(
    objective: Objective, region: Region, semantics: Semantics = "per_state", effort: Effort = Effort()
) -> RobustBounds:
    """The least and greatest probability over the matrices of a region.

    Args:
        objective: the formula on the skeleton.

    Raises:
        EngineError: an equation is too close to singular for doubles, or a matrix attains what the bounds exclude.
        LimitError: deciding the recurrent part needs too large a graph.
        ValueError: the region does not fit the objective.
    """
    lower, upper = _sides(objective, region, semantics, effort, ("lower", "upper"))
    conservative = lower.conservative or upper.conservative
    attained = lower.attained.value, upper.attained.value
    proofs = *lower.certificates, *upper.certificates
    return RobustBounds(lower.bounds, upper.bounds, *attained, semantics, conservative, proofs)


def bound_of(objective: Objective, region: Region, semantics: Semantics, side: Side) -> Floats:
    """(m,) one side of the bounds, where the other does not matter; errors as `robust_bounds`."""
    counted = isinstance(objective, StepCount)
    effort = Effort(attained=semantics == "shared_matrix" and not counted)
    (found,) = _sides(objective, region, semantics, effort, (side,))
    return found.bounds


def _sides(
    objective: Objective, region: Region, semantics: Semantics, effort: Effort, sides: tuple[Side, ...]
) -> Iterator[OneSide]:
    """What is known of some sides; errors as `robust_bounds`."""
    if isinstance(objective, StepCount):
        for side in sides:
            counted = counted_side(objective, region, side, attained=effort.attained)
            _refuse_outside(side, counted.bounds, counted.attained)
            # The bounds hold for rates that change with time, so for one matrix throughout.
            apart = bool(np.any(np.abs(counted.bounds - counted.attained.value) > effort.gap))
            conservative = counted.conservative or (semantics == "shared_matrix" and apart)
            yield replace(counted, conservative=conservative)
        return
    if semantics not in SEMANTICS or (semantics == "shared_matrix" and not effort.attained):
        raise ValueError(f"semantics is one of {', '.join(SEMANTICS)}, and shared_matrix needs attained values")
    starts = _sets_of_starts(objective) if effort.attained else []
    for bound_side in bound_sides(objective, region, sides, starts):
        proven, known = _whole(objective, bound_side), nothing_attained(objective, region)
        if effort.attained:
            known = _attained(objective, bound_side)
            if semantics == "shared_matrix":
                proven, known = _narrowed(objective, bound_side, known, effort)
            _refuse_outside(bound_side.side, proven.bounds(), known)
        asked = bound_side.side in effort.certificates
        proofs = proven.certificates(subject_of(bound_side.objective)) if asked else ()
        yield OneSide(proven.bounds(), known, proven.conservative, proofs)


def _sets_of_starts(objective: Objective) -> list[Ints]:
    """Each initial state for itself, or all together where there are many."""
    starts = objective.product.start
    if len(starts) > MOST_STARTS or len(starts) * objective.state_count > _NUMBERS_FOR_STEPS:
        return [starts]
    return [starts[k : k + 1] for k in range(len(starts))]


def _attained(objective: Objective, bound: SideBound) -> Attained:
    """What single matrices attain: nature's common choices, and in small products what climbing from there gives.

    Where moves vanish at an end of an interval, a matrix next to it may attain more than the one at the end.
    """
    choices = [common_choices(bound, steps) for steps in bound.reached.steps]
    sign, small = _sign(bound.side), objective.slopes and objective.state_count <= LARGEST_CLIMBED
    tried = [choice.best for choice in choices]
    if small:
        middle = middle_of(bound.region)
        tried += [middle, *(choice.mean for choice in choices)]
        tried += [choice.best + _NEXT_TO * (middle - choice.best) for choice in choices]
    known = best_of(objective, bound.region, None, np.unique(np.array(tried), axis=0), sign)
    few = len(objective.product.start) <= MOST_STARTS
    return climbed(objective, bound.region, known, sign) if small and few else known


@dataclass(frozen=True, eq=False)
class _Cover:
    """Boxes that cover the region, for some initial states."""

    boxes: tuple[SideBound, ...]
    tree: Tree
    starts: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Proven:
    """One side of the bounds: covers whose initial states are all of them."""

    root: SideBound
    states: tuple[int, ...]
    covers: tuple[_Cover, ...]

    @property
    def conservative(self) -> bool:
        return any(box.conservative for cover in self.covers for box in cover.boxes)

    def claims(self, cover: _Cover) -> tuple[float | None, ...]:
        """For each initial state of the cover the bound, None for others."""
        return tuple(
            claimed_bound(self.root.side, max(float(box.reached.value[state]) for box in cover.boxes))
            if number in cover.starts
            else None
            for number, state in enumerate(self.states)
        )

    def bounds(self) -> Floats:
        """(m,) bounds."""
        result = np.full(len(self.states), np.nan)
        for cover in self.covers:
            for number, bound in enumerate(self.claims(cover)):
                if bound is not None:
                    result[number] = bound
        return result

    def certificates(self, subject: Subject) -> tuple[dict[str, Any], ...]:
        return tuple(
            certificate_of(subject, self.root, cover.boxes, cover.tree, self.claims(cover)) for cover in self.covers
        )


def _whole(objective: Objective, bound: SideBound) -> _Proven:
    """One box for all initial states."""
    states = tuple(objective.product.start.tolist())
    cover = _Cover((bound,), 0, tuple(range(len(states))))
    return _Proven(bound, states, (cover,))


def _narrowed(
    objective: Objective, side_bound: SideBound, known: Attained, effort: Effort
) -> tuple[_Proven, Attained]:
    """Branch and bound for the initial states in which no single matrix is known to attain the bound."""
    whole = _whole(objective, side_bound)
    covers, rest = [], []
    for number, bound in enumerate(whole.bounds().tolist()):
        if abs(bound - known.value[number]) <= effort.gap:
            rest.append(number)
            continue
        steps = side_bound.reached.steps[number if len(side_bound.reached.steps) > number else 0]
        cut = covered(objective, side_bound, steps, number, known, effort.boxes, effort.gap)
        known = cut.attained
        covers.append(_Cover(cut.boxes, cut.tree, (number,)))
    if rest:
        covers.append(_Cover((side_bound,), 0, tuple(rest)))
    return _Proven(side_bound, whole.states, tuple(covers)), known


def _refuse_outside(side: Side, bounds: Floats, known: Attained) -> None:
    """What is attained must lie within the bounds."""
    sign = _sign(side)
    outside = sign * (bounds - known.value) > known.error + AGREEMENT
    if np.any(outside):
        at = int(np.argmax(outside))
        raise EngineError(
            f"the robust {side} bound at initial state {at} is {float(bounds[at])!r}, and a matrix "
            f"of the region has {float(known.value[at])!r} by the batch engine"
        )


def _sign(side: Side) -> float:
    return 1.0 if side == "lower" else -1.0
