"""Performance on a data set: Task 5 of Wozniak, Segura and Mazo 2024 (Table 6, Box 5).

A metric is a number in 0..1 with a name. Counts of true positives, false positives and false negatives (M7 to M9)
give precision and recall (M10, M11) exactly. AP and AR are those of COCO: AP over IoU .50:.05:.95 with 101 points,
a true positive is a detection with IoU at the threshold or above and the right class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType

from verifier.robustness.detection_metrics import TABLE_6

COUNTS = ("TP", "FP", "FN")
METRICS = {
    "TP": "M7",
    "FP": "M8",
    "FN": "M9",
    "precision": "M10",
    "recall": "M11",
    **{name: "M12" if name.startswith("AP") else "M13" for name in TABLE_6},
}
"""The metrics of Table 6 by their numbers; others are welcome, without one."""


@dataclass(frozen=True)
class Performance:
    """What a detector achieves on one data set.

    Attributes:
        values: metric -> value in 0..1.
        counts: TP, FP and FN where they are known, all three or none.

    Raises:
        ValueError: a value outside 0..1, counts that are not three or negative, or a precision or recall beside
            counts that give another one.
    """

    values: Mapping[str, Fraction] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in self.values.items():
            if not 0 <= value <= 1:
                raise ValueError(f"{name}: expected a number from 0 to 1, got {float(value):g}")
        if self.counts and (set(self.counts) != set(COUNTS) or min(self.counts.values()) < 0):
            raise ValueError("expected counts of TP, FP and FN, each from 0")
        derived = self._derived()
        for name, value in derived.items():
            if name in self.values and self.values[name] != value:
                raise ValueError(
                    f"{name}: the counts give {float(value):.6g}, and {float(self.values[name]):g} is given"
                )
        object.__setattr__(self, "values", MappingProxyType({**derived, **self.values}))
        object.__setattr__(self, "counts", MappingProxyType(dict(self.counts)))

    def _derived(self) -> dict[str, Fraction]:
        """Precision and recall from the counts; none where nothing was detected, or nothing is there."""
        if not self.counts:
            return {}
        hits, false_positives, misses = (self.counts[name] for name in COUNTS)
        found = {}
        if hits + false_positives:
            found["precision"] = Fraction(hits, hits + false_positives)
        if hits + misses:
            found["recall"] = Fraction(hits, hits + misses)
        return found
