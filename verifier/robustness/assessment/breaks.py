"""Where each criterion of a degradation breaks, and which of them saw it first.

A criterion *holds* where its margin is 0 or more. It *breaks* between the last level before its first failure and
that failure. Nothing is taken to be monotone: what holds again at a severer level is said to. The place in between is
read off a straight line between the two tested margins: it is interpolated, not tested, and the bracket is what is
known. With `reciprocal` the line is straight in 1/level, as fits visibility, whose reciprocal is the extinction; a
level may then be infinite.

All of this is about the numbers of these images. Other images of the same kind would give others, so a criterion
also has an interval and a verdict for every level, where these can be had: a failure is *sure* where the interval
lies beyond the limit. One criterion fails *surely before* another one where it surely fails at a level up to which
the other surely holds. Each interval is right at its own confidence; not all of them at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from verifier.checking.verdicts import Verdict
from verifier.robustness.assessment.degradation import Scale

Kind: TypeAlias = Literal["metric", "requirement", "collision", "trade-off"]


@dataclass(frozen=True)
class Criterion:
    """One thing that should hold at every level.

    Attributes:
        kind, name: what it is; `limit` says what is asked, for people.
        values: the number at each level; None where it is not defined there.
        margins: the margin at each level; None likewise.
        verdicts: per level what can be said with the limited number of images taken into account; None where
            nothing is known of that. Empty for None at every level.
        intervals: per level the interval behind the verdict: of a metric's change from the mildest level, of
            anything else's value. Likewise.
        strict: whether a margin of 0 fails, as with P > target.
    """

    kind: Kind
    name: str
    limit: str
    values: tuple[float | None, ...]
    margins: tuple[float | None, ...]
    verdicts: tuple[Verdict | None, ...] = ()
    intervals: tuple[tuple[float, float] | None, ...] = ()
    strict: bool = False

    def fails(self, margin: float) -> bool:
        """Whether this margin is too small."""
        return margin < 0 or (self.strict and margin == 0)


@dataclass(frozen=True)
class Break:
    """Where a criterion breaks.

    Attributes:
        kind, name, limit: of the criterion.
        holds_at: the last level before the first failure; None where it fails at the mildest level already.
        fails_at: the first level where it fails; None where it never does.
        place: interpolated; None where it never fails, fails at once, or nothing can be interpolated.
        recovers: whether it holds again at a severer level.
        undefined: how many levels have no value; they are passed over.
        sure_at: the first level where its verdict is that it fails; None where there is none.
    """

    kind: Kind
    name: str
    limit: str
    holds_at: float | None
    fails_at: float | None
    place: float | None
    recovers: bool
    undefined: int
    sure_at: float | None = None

    @property
    def breaks(self) -> bool:
        """Whether it fails anywhere."""
        return self.fails_at is not None


def break_of(criterion: Criterion, levels: Sequence[float], scale: Scale) -> Break:
    """Where the criterion breaks; `levels` from the mildest on, as many as margins."""
    known = [(at, each) for at, each in zip(levels, criterion.margins, strict=True) if each is not None]
    undefined = len(levels) - len(known)
    names = criterion.kind, criterion.name, criterion.limit
    first = next((number for number, (_, margin) in enumerate(known) if criterion.fails(margin)), None)
    sure = next((at for at, each in zip(levels, criterion.verdicts, strict=False) if each is Verdict.VIOLATED), None)
    if first is None:
        return Break(*names, known[-1][0] if known else None, None, None, False, undefined, sure)
    recovers = any(not criterion.fails(margin) for _, margin in known[first:])
    if first == 0:
        return Break(*names, None, known[0][0], None, recovers, undefined, sure)
    (mild, good), (severe, bad) = known[first - 1], known[first]
    place = interpolated(mild, good, severe, bad, scale)
    return Break(*names, mild, severe, place, recovers, undefined, sure)


def interpolated(mild: float, good: float, severe: float, bad: float, scale: Scale) -> float | None:
    """Where the straight line from margin `good` (>= 0) to `bad` (< 0) crosses 0; None between infinite ends.

    >>> interpolated(400.0, 0.1, 200.0, -0.1, "linear")
    300.0
    >>> round(interpolated(math.inf, 0.1, 200.0, -0.1, "reciprocal"))
    400
    """
    if good == 0:
        return mild
    start, end = _along(mild, scale), _along(severe, scale)
    if not (math.isfinite(start) and math.isfinite(end)):
        return None
    crossing = start + good / (good - bad) * (end - start)
    if scale == "reciprocal":
        return 1 / crossing if crossing else math.inf
    return math.exp(crossing) if scale == "log" else crossing


def _along(level: float, scale: Scale) -> float:
    """Where a level lies on the scale."""
    if scale == "reciprocal":
        return 1 / level
    return math.log(level) if scale == "log" else level


def in_order(breaks: Sequence[Break], levels: Sequence[float]) -> tuple[tuple[Break, ...], ...]:
    """Those that break, in groups: who saw it first, then who saw it next.

    Only tested levels order them: criteria that fail first at the same level are in one group, since where in
    between they broke was not tested.
    """
    order = {at: number for number, at in enumerate(levels)}
    failing = [each for each in breaks if each.fails_at is not None]
    places = sorted({order[each.fails_at] for each in failing if each.fails_at is not None})
    return tuple(
        tuple(each for each in failing if each.fails_at is not None and order[each.fails_at] == at) for at in places
    )


def surely_before(criteria: Sequence[Criterion]) -> tuple[tuple[Criterion, Criterion], ...]:
    """(earlier, later), two that fail: one surely does at a level up to which the other surely holds everywhere."""
    failing = [each for each in criteria if any(one is not None and each.fails(one) for one in each.margins)]
    found = []
    for earlier in failing:
        verdicts = list(earlier.verdicts)
        fails = verdicts.index(Verdict.VIOLATED) if Verdict.VIOLATED in verdicts else None
        for later in () if fails is None else failing:
            before = later.verdicts[: (fails or 0) + 1]
            if before and all(each is Verdict.SATISFIED for each in before):
                found.append((earlier, later))
    return tuple(found)
