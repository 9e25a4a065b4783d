"""Where a criterion breaks as a disturbance grows: a bracket between two measured levels, and levels that narrow it.

A criterion *holds* where its margin is 0 or more. It *breaks* between the last level before its first failure and
that failure: two measured levels, and nothing is read off between them. Nothing is taken to be monotone: what holds
again at a severer level is said to. The scale is the physical one of the disturbance; `reciprocal` is that of
visibility, whose reciprocal is the extinction, and a level may then be infinite. Further levels halve a bracket along
it until the data decide nothing more (`gaps`).
"""

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Literal, TypeAlias, get_args

from verifier.base.documents import Count, Extended
from verifier.base.numbers import significant
from verifier.checking.verdicts import Verdict

Scale: TypeAlias = Literal["linear", "log", "reciprocal"]
SCALES: tuple[Scale, ...] = get_args(Scale)
PHYSICAL: Mapping[str, Scale] = {"visibility_m": "reciprocal", "focus_m": "reciprocal"}
"""Along what a parameter of a mutation changes the images evenly: haze by 1/visibility, defocus by 1/focus."""
Kind: TypeAlias = Literal["metric", "requirement", "collision", "trade-off"]


@dataclass(frozen=True)
class Criterion:
    """One thing that should hold at every level.

    Attributes:
        kind, name: what it is; `limit` says what is asked, for people.
        values: the number at each level; None where it is not defined there.
        margins: the margin at each level; None likewise.
        verdicts: per level what can be said with the limited number of images taken into account; None where
            nothing is known of that.
        intervals: per level the interval behind the verdict: of a metric's change from the mildest level, of
            anything else's value. Likewise.
    """

    kind: Kind
    name: str
    limit: str
    values: tuple[float | None, ...]
    margins: tuple[float | None, ...]
    verdicts: tuple[Verdict | None, ...]
    intervals: tuple[tuple[float, float] | None, ...]

    def fails(self, margin: float) -> bool:
        """Whether this margin is too small; a requirement such as P > target needs more than 0."""
        strict = self.kind == "requirement" and (" < " in self.limit or " > " in self.limit)
        return margin < 0 or (strict and margin == 0)


@dataclass(frozen=True)
class Break:
    """Where a criterion breaks.

    Attributes:
        holds_at: the last level before the first failure; None where it fails at the mildest level already.
        fails_at: the first level where it fails; None where it never does.
        recovers: whether it holds again at a severer level.
        undefined: how many levels have no value; they are passed over.
        sure_at: the first level where its verdict is that it fails; None where there is none.
        sure_until: the last of the levels from the mildest on where its verdict is that it holds; likewise.
        can_narrow: whether levels between those that were measured could make the bracket narrower with these data.
    """

    holds_at: Extended | None
    fails_at: Extended | None
    recovers: bool
    undefined: Count
    sure_at: Extended | None
    sure_until: Extended | None
    can_narrow: bool


def break_of(criterion: Criterion, levels: Sequence[float], scale: Scale) -> Break:
    """Where the criterion breaks; `levels` from the mildest on, as many as margins."""
    known = [(at, margin) for at, margin in zip(levels, criterion.margins, strict=True) if margin is not None]
    undefined = len(levels) - len(known)
    first = next((number for number, (_, margin) in enumerate(known) if criterion.fails(margin)), None)
    told = list(zip(levels, criterion.verdicts, strict=True))
    fails = next((at for at, verdict in told if verdict is Verdict.VIOLATED), None)
    holding = [at for at, _ in takewhile(lambda level: level[1] is Verdict.SATISFIED, told)]
    sure = fails, holding[-1] if holding else None, bool(gaps(criterion, levels, scale))
    if first is None:
        return Break(known[-1][0] if known else None, None, False, undefined, *sure)
    recovers = any(not criterion.fails(margin) for _, margin in known[first:])
    return Break(known[first - 1][0] if first else None, known[first][0], recovers, undefined, *sure)


def middle(mild: float, severe: float, scale: Scale) -> float | None:
    """Halfway between two levels along the scale, to four digits where these suffice; None where there is nothing.

    >>> middle(20000.0, 60.0, "reciprocal"), middle(math.inf, 200.0, "reciprocal"), middle(math.inf, 1.0, "linear")
    (119.6, 400.0, None)
    """
    half = (along(mild, scale) + along(severe, scale)) / 2
    if not math.isfinite(half):
        return None
    exact = {"linear": lambda: half, "log": lambda: math.exp(half), "reciprocal": lambda: 1 / half}[scale]()
    inside = (
        value for value in (float(significant(exact, 4)), exact) if min(mild, severe) < value < max(mild, severe)
    )
    return next(inside, None)


EDGE = 0.25
"""Of the stretch of levels where the data decide nothing: its ends are not looked for more closely than that."""


def gaps(criterion: Criterion, levels: Sequence[float], scale: Scale) -> dict[tuple[float, float], float]:
    """Neighbouring levels between which more can be known of where it breaks, with their distance on the scale.

    On the way to the first confirmed failure these are the gaps where what is known changes: from confirmed to hold
    to confirmed to fail, or to and from levels at which the data do not decide; where no intervals are known, from
    holding to failing. There is none between two levels that are both not decided.
    """
    known = [
        (at, "open" if verdict is Verdict.INCONCLUSIVE else "fails" if criterion.fails(margin) else "holds")
        for at, margin, verdict in zip(levels, criterion.margins, criterion.verdicts, strict=True)
        if margin is not None
    ]
    if not any(margin is not None and criterion.fails(margin) for margin in criterion.margins):
        return {}
    last = next((number for number, (_, state) in enumerate(known) if state == "fails"), len(known) - 1)
    undecided = [at for at, state in known[: last + 1] if state == "open" and math.isfinite(along(at, scale))]
    closest = EDGE * _width(undecided[0], undecided[-1], scale) if undecided else 0.0
    return {
        (mild, severe): _width(mild, severe, scale)
        for (mild, before), (severe, after) in pairwise(known[: last + 1])
        if before != after and _width(mild, severe, scale) > closest and middle(mild, severe, scale) is not None
    }


def _width(mild: float, severe: float, scale: Scale) -> float:
    return abs(along(severe, scale) - along(mild, scale))


def along(level: float, scale: Scale) -> float:
    """Where a level lies on the scale."""
    if scale == "reciprocal":
        return 1 / level
    return math.log(level) if scale == "log" else level


def halfway(
    widths: Mapping[tuple[float, float], float], scale: Scale, make: Callable[[float], object], most: int
) -> list[float]:
    """At most so many new levels halfway, or next to that where only whole numbers are levels; widest gaps first.

    Args:
        widths: the gaps, each with its width; see `gaps`.
        make: what is done at a level; ValueError where there is none.
    """
    between = (_between(*gap, scale, make) for gap in sorted(widths, key=lambda gap: -widths[gap]))
    return list(dict.fromkeys(at for at in between if at is not None))[: max(most, 0)]


def _between(mild: float, severe: float, scale: Scale, make: Callable[[float], object]) -> float | None:
    half = middle(mild, severe, scale)
    for at in () if half is None else (half, float(round(half))):
        with contextlib.suppress(ValueError):
            if min(mild, severe) < at < max(mild, severe):
                make(at)
                return at
    return None
