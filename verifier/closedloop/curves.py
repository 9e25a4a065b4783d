"""Trade-off curves: safety against efficiency over the detector's sensitivity, at four levels of context.

Pezzementi et al. 2021, section 8. Both axes lie in [0, 1], and more is better on both.

| curve | safety S(tau) | efficiency E(tau) |
|---|---|---|
| `judge_roc_a` (eqs. 8, 9) | recall of all people | 1 - min(FPR / 0.1, 1), FPR = false positives / images, all logs |
| `judge_roc_b` (eqs. 10, 11) | recall of people, positive logs | FPR = share of negative logs' images with any |
| `judge_roboticizer` (8.2.1) | localized within 1 m, people at 0-10 m | only false positives at 0-10 m count |
| `judge_pathifier` (8.2.2) | path blocked within 2 m; within 2-5 m unless missed twice in a row | likewise |

The fifth, closed loop, is simulated. A detection takes part at sensitivity tau when its standardized sensitivity is
at most tau (see `Standardizer`): a greater tau lets more detections through.

The Robustness ROC: the worst case of several trade-off curves, and its area.

Pezzementi et al. 2021, Sec. 8.3, eqs. (13, 14) and Algorithm 1. For every sensitivity that any of the curves has,
safety is the least of all curves there, and so is efficiency, each for itself. A curve that was not tried at this
sensitivity counts with the worse of its two neighbours on either side, and with 0 where it has none on one side: no
performance is invented that nobody measured. It differs from comparing areas, which can rise although the detector
changed at every threshold.

Nothing here asks what safety and efficiency are: any `TradeOffCurve` will do, also one of probabilities that a model
checker found. The area is that of the union of the rectangles [0, E] x [0, S] over all points (the hypervolume with
reference point 0), so a point that another one dominates adds nothing, and between two points nothing is drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from verifier.base.arrays import Floats, Ints, freeze

FPR_MAX = 0.1
"""False positives per image from which on a system is of no use: efficiency 0 (section 8)."""


@dataclass(frozen=True, eq=False)
class TradeOffCurve:
    """What one detector under one condition achieves at each sensitivity that was tried.

    Attributes:
        sensitivity: (k,) at least one, all different, finite, in any order. Standardized sensitivities are not
            negative; a curve over a detector's own thresholds may have any numbers.
        safety: (k,) in [0, 1].
        efficiency: (k,) in [0, 1].

    Raises:
        ValueError: lengths differ, or a value lies outside its range.
    """

    sensitivity: Floats
    safety: Floats
    efficiency: Floats

    def __post_init__(self) -> None:
        names = ("sensitivity", "safety", "efficiency")
        freeze(self, dict.fromkeys(names, np.float64))
        for name in names:
            array = getattr(self, name)
            if array.ndim != 1 or array.shape != self.sensitivity.shape or not len(array):
                raise ValueError(f"{name} has shape {array.shape}; expected (k,) with k >= 1, the same for all three")
        if not np.isfinite(self.sensitivity).all():
            raise ValueError("a sensitivity is not finite")
        for name in names[1:]:
            value = getattr(self, name)
            if not ((value >= 0) & (value <= 1)).all():
                raise ValueError(f"{name}: a value lies outside [0, 1] or is no number")
        increases = bool((self.sensitivity[1:] > self.sensitivity[:-1]).all())  # as most do; then nothing is sorted
        if not increases and len(np.unique(self.sensitivity)) != len(self.sensitivity):
            raise ValueError("a sensitivity occurs twice")


def robroc(curves: Sequence[TradeOffCurve]) -> TradeOffCurve:
    """The worst case of one or more curves; applying it pair by pair gives the same.

    >>> two_trivial_points = TradeOffCurve([0, 1], [0, 1], [1, 0])
    >>> area(robroc([two_trivial_points, two_trivial_points]))
    0.0
    """
    sensitivity, safety, efficiency = worst_case(
        [curve.sensitivity for curve in curves],
        [curve.safety for curve in curves],
        [curve.efficiency for curve in curves],
    )
    return TradeOffCurve(sensitivity, safety, efficiency)


def worst_case(
    sensitivities: Sequence[Floats], safety: Sequence[Floats], efficiency: Sequence[Floats]
) -> tuple[Floats, Floats, Floats]:
    """Algorithm 1 for many versions of the same curves at once, as a bootstrap has them.

    Args:
        sensitivities: (k_i,) of each curve, all different.
        safety, efficiency: (..., k_i) of each curve.

    Returns:
        (n,) all sensitivities, increasing; (..., n) the worst safety and (..., n) the worst efficiency there.
    """
    curves = [_increasing(*array) for array in zip(sensitivities, safety, efficiency, strict=True)]
    union, places = _union([curve[0] for curve in curves])
    shape = (*safety[0].shape[:-1], len(union))
    worst = np.full(shape, np.inf), np.full(shape, np.inf)
    for place, (_, *own) in zip(places, curves, strict=True):
        index = _between(place, len(union))
        for total, values in zip(worst, own, strict=True):
            np.minimum(total, np.take(_with_gaps(values), index, axis=-1), out=total)
    return union, *worst


def _increasing(sensitivity: Floats, safety: Floats, efficiency: Floats) -> tuple[Floats, Floats, Floats]:
    """The points in the order of their sensitivities."""
    if np.all(sensitivity[1:] > sensitivity[:-1]):
        return sensitivity, safety, efficiency
    order = np.argsort(sensitivity)
    return sensitivity[order], safety[..., order], efficiency[..., order]


def _union(sensitivities: Sequence[Floats]) -> tuple[Floats, list[Ints]]:
    """All sensitivities once, increasing, and for each curve where its own stand among them."""
    joined = np.concatenate(sensitivities)
    order = np.argsort(joined, kind="stable")  # increasing runs are merged, which takes no more than a walk
    ordered = joined[order]
    fresh = np.append(True, ordered[1:] != ordered[:-1])
    place = np.empty(len(joined), dtype=np.int64)
    place[order] = np.cumsum(fresh) - 1
    return ordered[fresh], np.split(place, np.cumsum([len(sensitivity) for sensitivity in sensitivities])[:-1])


def _between(place: Ints, size: int) -> Ints:
    """(size,) where all sensitivities stand in gap, point, gap, ..., point, gap of a curve with points at `place`."""
    own = np.zeros(size, dtype=np.int64)
    own[place] = 1
    return 2 * np.cumsum(own) - own


def _with_gaps(values: Floats) -> Floats:
    """(..., 2k + 1) the values with the lesser neighbour in every gap, 0 beyond the ends."""
    spread = np.zeros((*values.shape[:-1], 2 * values.shape[-1] + 1))
    spread[..., 1::2] = values
    np.minimum(values[..., 1:], values[..., :-1], out=spread[..., 2:-1:2])
    return spread


def area(curve: TradeOffCurve) -> float:
    """Area of the union of [0, E_i] x [0, S_i], in 0..1."""
    return float(areas(curve.safety, curve.efficiency))


def areas(safety: Floats, efficiency: Floats) -> Floats:
    """The areas of many curves at once.

    Args:
        safety, efficiency: (..., k) the points of each curve.

    Returns:
        (...) areas.
    """
    if not np.all(efficiency[..., 1:] <= efficiency[..., :-1]):
        order = np.argsort(efficiency, axis=-1)[..., ::-1]
        safety, efficiency = (np.take_along_axis(array, order, axis=-1) for array in (safety, efficiency))
    # From one efficiency down to the next, the union is as high as the greatest safety met so far.
    height = np.maximum.accumulate(safety, axis=-1)
    width = efficiency.copy()
    width[..., :-1] -= efficiency[..., 1:]
    covered: Floats = (height * width).sum(axis=-1)
    return covered


def robustness(worst: float, baseline: float) -> float | None:
    """Area of the worst case by that of the baseline, in 0..1; None where the baseline has none."""
    return worst / baseline if baseline > 0 else None
