"""Whether recorded poses can be those of one vehicle that was logged without interruption."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verifier.base.arrays import Mask
from verifier.base.errors import InputError, Place, shown
from verifier.closedloop.logs import Logs


@dataclass(frozen=True)
class LogLimits:
    """Beyond these a log has a gap or a jump, and its path is not what the vehicle drove.

    Attributes:
        longest_gap_s: between two images of a log.
        greatest_speed_mps: distance between two images over the time between them.

    Raises:
        ValueError: a limit is not positive (infinity is no limit).
    """

    longest_gap_s: float = 2.0
    greatest_speed_mps: float = 70.0

    def __post_init__(self) -> None:
        if not (self.longest_gap_s > 0 and self.greatest_speed_mps > 0):
            raise ValueError(f"expected positive limits, got {self}")


def check_plausible(logs: Logs, limits: LogLimits | None = None, file: str | None = None) -> None:
    """Refuse logs with gaps or jumps.

    Raises:
        InputError: naming the log and its first image behind the first gap or jump.
    """
    limits = limits or LogLimits()
    same = np.diff(logs.image_log) == 0
    gap = np.where(same, np.diff(logs.time_s), 1.0)  # from log to log there is none
    step = np.hypot(*np.diff(logs.position_m, axis=0).T)

    def fail(bad: Mask, text: str, hint: str) -> None:
        if bad.any():
            at = int(bad.argmax())
            log = int(logs.image_log[at])
            where = f"log {shown(logs.names[log])}, image {at + 1 - int(logs.first_image[log])} (counted from 0)"
            values = text.format(gap=gap[at], step=step[at], limit=limits)
            raise InputError(f"{where}: {values}", Place(file) if file else None, hint)

    fail(
        same & (gap > limits.longest_gap_s),
        "{gap:g} s after the one before; at most {limit.longest_gap_s:g} s are accepted",
        "make two logs of it, or allow longer gaps",
    )
    fail(
        same & (step > limits.greatest_speed_mps * gap),
        "{step:g} m from the one before, {gap:g} s later; that is faster than {limit.greatest_speed_mps:g} m/s",
        "make two logs of it, correct the position, or allow greater speeds",
    )
