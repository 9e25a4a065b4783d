"""How to read: the settings that every reader shares, and what of them is written down.

A fault in the input is an error that names file and line. A fault of a kind that `ignore` names is left out
instead, and the number left out is recorded in `origin["ignored"]`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from verifier.base.errors import UsageError, unknown_name
from verifier.perception.detections.classmap import ClassMap
from verifier.perception.settings import DontCare

IGNORABLE = {
    "unknown_frames": "objects in frames that the ground truth does not list",
    "missing_frames": "frames of the ground truth for which the detector's output has no entry",
    "unknown_classes": "objects whose class no rule of the class map fits, or that the format does not know",
    "faulty_boxes": "boxes that are partly NaN, infinite or of negative size; scores that are not finite",
    "implausible_boxes": "boxes too large or too far away to be in the stated units; scores too large to be any",
    "unknown_depth": "annotations in whose rectangle the depth map knows no depth; they become regions not judged",
}
"""What `Reading.ignore` may name, and what is then left out."""


@dataclass(frozen=True)
class Plausible:
    """Limits beyond which a box cannot be in the stated units.

    `reach_m` distance of a centre from the ego; `size_m` length, width or height (the longest road vehicles
    measure 54 m); `pixels` an image coordinate; `turn_rad` a yaw (degrees are larger); `score` the size of a score
    (probabilities, per cent, margins and logits are far below; beyond it differences of scores are rounded away).
    """

    reach_m: float = 1000.0
    size_m: float = 60.0
    pixels: float = 100_000.0
    turn_rad: float = 10.0
    score: float = 1e9

    def __post_init__(self) -> None:
        if not all(limit > 0 and not math.isnan(limit) for limit in vars(self).values()):
            raise ValueError("limits must be positive")


@dataclass(frozen=True)
class Reading:
    """Settings shared by all readers.

    `class_map` None keeps the names of the data set. `ignore` names kinds of `IGNORABLE` that are left out and
    counted instead of refused. `dont_care` "keep" makes regions out of the annotations that a data set marks as
    not to be judged, "drop" leaves them out. `sequences` restricts to the drives or scenes named.

    Raises:
        UsageError: `ignore` or `dont_care` names something that does not exist.
    """

    class_map: ClassMap | None = None
    ignore: tuple[str, ...] = ()
    dont_care: DontCare = "keep"
    sequences: tuple[str, ...] | None = None
    plausible: Plausible = Plausible()

    def __post_init__(self) -> None:
        for name in self.ignore:
            if name not in IGNORABLE:
                message, hint = unknown_name("kind of fault to ignore", name, IGNORABLE)
                raise UsageError(f"{message}\n  hint: {hint}")
        if self.dont_care not in get_args(DontCare):
            raise UsageError(f"dont_care must be 'keep' or 'drop', got {self.dont_care!r}")

    def record(self) -> Mapping[str, Any]:
        """The settings as JSON values, for `origin`."""
        rules = None if self.class_map is None else [list(rule) for rule in self.class_map.rules]
        chosen = None if self.sequences is None else list(self.sequences)
        return {"class_map": rules, "dont_care": self.dont_care, "sequences": chosen}
