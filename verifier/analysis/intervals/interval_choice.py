"""Which statistical interval a run prints, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.intervals.drive_items import DriveItems
from verifier.analysis.intervals.intervals import Kind
from verifier.analysis.settings import Requested, Unit
from verifier.base.errors import UsageError, shown
from verifier.base.words import counted

TOO_NARROW = "independent items. Frames of one drive are correlated, and then intervals are too narrow."


@dataclass(frozen=True)
class Choice:
    """Which interval a run prints, and why.

    Attributes:
        kind: "credible" or "bootstrap".
        reason: for people, to stand beside the interval.
        remark: what the interval leaves out, if anything.
    """

    kind: Kind
    reason: str
    remark: str | None = None


def choose_interval(
    drives: DriveItems | None, columns: NDArray[np.int64], requested: str = "auto", unit: Unit = "drive"
) -> Choice:
    """Which interval to print: from resampled drives where these are known, else posterior.

    Args:
        drives: what each drive holds, or None where that is not known.
        columns: (k, 2) the columns that the run needs and that are not fixed.
        unit: what these drives are.

    Raises:
        UsageError: an unknown request, or one that the file or the weights do not allow.
    """
    if requested not in get_args(Requested):
        raise UsageError(f"unknown interval {shown(requested)}; known: {', '.join(get_args(Requested))}")
    if drives is None and requested == "bootstrap":
        raise UsageError("the bootstrap resamples sequences, but the matrices do not say which one an item is from")
    if drives is not None and requested != "posterior":
        holding = int(np.count_nonzero(drives.sizes(columns).sum(axis=1)))
        inside = "objects" if unit == "frame" else "frames"
        return Choice("bootstrap", f"{counted(holding, unit)} resampled: {inside} of one {unit} are not independent")
    if drives is not None and drives.weights != "item":
        raise UsageError(
            f"--interval posterior counts items, and --weights {drives.weights} does not: leave one of them out"
        )
    if drives is not None:
        return Choice("credible", "posterior, as asked for", f"the credible interval assumes {TOO_NARROW}")
    both = f"the credible interval and the confidence bounds both assume {TOO_NARROW}"
    return Choice("credible", "posterior: the matrices do not say which sequence an item is from", both)
