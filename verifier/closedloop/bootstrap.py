"""How sure areas are, given that only so many logs were driven: the bootstrap over logs.

Images of one log resemble each other, so whole logs are drawn: positive logs from the positive ones and negative logs
from the negative ones, with replacement, as many as there are (a stratified bootstrap, Davison and Hinkley 1997, Sec.
3.2). Every detector, condition and metric sees the same draws, so that differences between them are judged on the
same logs. What a curve needs for that is what each log adds to its sums (`LogSums`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats
from verifier.base.statistics import drawn_with_replacement
from verifier.closedloop.closed_loop_curve import ClosedLoop, at_most_one
from verifier.closedloop.curves import FPR_MAX, TradeOffCurve
from verifier.closedloop.detection_outcomes import Judged

FEWEST_LOGS = 2
"""Of each kind; drawing from fewer says nothing."""


@dataclass(frozen=True, eq=False)
class LogSums:
    """What each of L logs adds to a trade-off curve.

    Safety is sum(found) / sum(wanted). Efficiency is the rate r = sum(part) / sum(whole) itself, or, for metrics with
    a false-positive rate, 1 - min(r / limit, 1).

    Attributes:
        sensitivity: (K,) levels.
        positive: (L,) bool.
        found: (L, K) e.g. 1 where a log was safe.
        wanted: (L,) e.g. 1 for positive logs.
        part: (L, K) or (L, 1).
        whole: (L, K) or (L, 1).
        limit: None where the efficiency is the rate.

    Raises:
        ValueError: a shape is not as said, a number is negative or not finite.
    """

    sensitivity: Floats
    positive: NDArray[np.bool_]
    found: Floats
    wanted: Floats
    part: Floats
    whole: Floats
    limit: float | None = None

    def __post_init__(self) -> None:
        logs, levels = len(self.positive), len(self.sensitivity)
        full, single = (logs, levels), (logs, 1)
        shapes: dict[str, tuple[tuple[int, ...], ...]] = {"found": (full,), "wanted": ((logs,),)}
        for name, known in {**shapes, "part": (full, single), "whole": (full, single)}.items():
            values = getattr(self, name)
            if values.shape not in known:
                raise ValueError(f"{name} has shape {values.shape}, expected {' or '.join(map(str, known))}")
            if not np.all(np.isfinite(values) & (values >= 0)):
                raise ValueError(f"{name} must hold finite numbers from 0")
        if np.any(self.found > self.wanted[:, None]):
            raise ValueError("more is found than wanted")
        if self.limit is not None and not self.limit > 0:
            raise ValueError(f"the limit must be above 0, got {self.limit}")

    @property
    def curve(self) -> TradeOffCurve:
        """The curve of these logs, each counted once."""
        safety, efficiency = self.drawn(np.ones((1, len(self.positive))))
        return TradeOffCurve(self.sensitivity, safety[0], efficiency[0])

    def drawn(self, weights: Floats) -> tuple[Floats, Floats]:
        """(B, K) safety and (B, K) efficiency when each log counts as often as (B, L) weights say.

        NaN where nothing is wanted, or the whole is nothing.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            safety = (weights @ self.found) / (weights @ self.wanted)[:, None]
            rate = (weights @ self.part) / (weights @ self.whole)
        if self.limit is None:
            return safety, np.broadcast_to(at_most_one(rate), safety.shape)
        return safety, np.broadcast_to(1 - np.minimum(rate / self.limit, 1), safety.shape)


def closed_loop_sums(found: ClosedLoop, kept: NDArray[np.bool_] | None = None) -> LogSums:
    """What each log adds to a closed-loop curve: whether it was safe; true time, and time with the cost of stops.

    Args:
        found: the runs.
        kept: (P, K) another notion of safety in the positive logs, as `ClosedLoop.kept`; None for `ClosedLoop.safe`.
    """
    logs, levels = found.outcomes.time_s.shape
    safe, true_s, cost_s = np.zeros((logs, levels)), np.zeros((logs, 1)), np.zeros((logs, levels))
    safe[found.positive] = found.safe if kept is None else kept
    true_s[~found.positive, 0] = found.true_time_s
    cost_s[~found.positive] = found.cost_s
    return LogSums(found.sensitivity, found.positive, safe, found.positive.astype(np.float64), true_s, cost_s)


def judged_sums(
    judged: Judged, sensitivity: Floats, positive: NDArray[np.bool_], fpr_max: float = FPR_MAX
) -> LogSums:
    """What each log adds to the curve of `judged_curve`: what is found, and false positives per image."""
    return LogSums(
        sensitivity,
        positive,
        judged.found_by_log(sensitivity),
        judged.wanted_by_log(),
        judged.alarms_by_log(sensitivity),
        judged.images.astype(np.float64)[:, None],
        fpr_max,
    )


def draw_logs(positive: NDArray[np.bool_], draws: int, rng: np.random.Generator) -> Floats:
    """(B, L) how often each log is drawn, positive and negative logs each among themselves.

    Args:
        positive: (L,) at least `FEWEST_LOGS` of each kind.
        draws: B.
        rng: randomness.

    Raises:
        ValueError: too few logs or draws.
    """
    if draws < 1:
        raise ValueError(f"expected at least one draw, got {draws}")
    weights = np.zeros((draws, len(positive)))
    for kind in (positive, ~positive):
        count = int(np.count_nonzero(kind))
        if count < FEWEST_LOGS:
            raise ValueError(f"expected at least {FEWEST_LOGS} logs of each kind, got {count}")
        weights[:, kind] = drawn_with_replacement(count, draws, rng)
    return weights


@dataclass(frozen=True, eq=False)
class Draws:
    """A bootstrap: (B, L) weights from `draw_logs`, and the confidence of intervals."""

    weights: Floats
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise ValueError(f"the confidence must lie in (0, 1), got {self.confidence}")
