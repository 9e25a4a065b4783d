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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from verifier.base.arrays import Floats
from verifier.closedloop.detection_outcomes import Judged

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
        for name in ("sensitivity", "safety", "efficiency"):
            array = np.array(getattr(self, name), dtype=np.float64)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
            if array.ndim != 1 or array.shape != self.sensitivity.shape or not len(array):
                raise ValueError(f"{name} has shape {array.shape}; expected (k,) with k >= 1, the same for all three")
        if not np.isfinite(self.sensitivity).all():
            raise ValueError("a sensitivity is not finite")
        for name in ("safety", "efficiency"):
            value = getattr(self, name)
            if not ((value >= 0) & (value <= 1)).all():
                raise ValueError(f"{name}: a value lies outside [0, 1] or is no number")
        increases = bool((self.sensitivity[1:] > self.sensitivity[:-1]).all())  # as most do; then nothing is sorted
        if not increases and len(np.unique(self.sensitivity)) != len(self.sensitivity):
            raise ValueError("a sensitivity occurs twice")


def judged_curve(judged: Judged, sensitivities: ArrayLike, fpr_max: float = FPR_MAX) -> TradeOffCurve:
    """Recall against 1 - min(rate of false positives / `fpr_max`, 1).

    Raises:
        ValueError: sensitivities as in `TradeOffCurve`, or `fpr_max` is not positive.
    """
    if not 0 < fpr_max < np.inf:
        raise ValueError(f"expected a positive rate, got {fpr_max}")
    tau = np.asarray(sensitivities, dtype=np.float64)
    return TradeOffCurve(tau, judged.recall(tau), 1.0 - np.minimum(judged.alarm_rate(tau) / fpr_max, 1.0))
