"""How counting is done: every choice that changes a count, beside the matching policy, as one value."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import UsageError
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.matrices import EMPTY, Label
from verifier.perception.settings import Labelling, Leftover, Outside

MOST_PROPOSITION_CLASSES = 8
EMPTY_NAME = "empty"


@dataclass(frozen=True)
class CountingRule:
    """How matched data become counts.

    Labellings:

    * class (Badithela et al. 2022, Algorithm 2): one item per annotated object, in the column of its class. Column
      "empty" has one item per frame and bin in which no object stands.
    * proposition (Algorithm 1): one item per frame and bin, labelled with the set of the classes that stand there.
    * group: as class, with all objects of one class and frame that are linked by gaps of at most `gap_m` between
      their centres on the ground as one item. It lies where its nearest member lies, and it is reported as its
      own class when any member is; else as the surest report of a member.

    A report goes to the bin of the object it was matched with. What is left over, unmatched detections and
    duplicates (in reach of an object that another detection has), follows a policy: "drop", not counted (Badithela et
    al. 2022, Remark 1); "own_bin", a false positive in the bin in which the detection itself lies; "nearest_bin", one
    in the bin of the object it lies nearest to, in its own bin when none is in reach. Where it is counted it is a
    report in its bin: in a proposition-labelled matrix its class joins the reported set; in the
    other two it is what column "empty" reports when no object stands in that bin of that frame (the surest one, if
    there are several). One frame and bin stays one item, so that its rates are probabilities per frame.

    Attributes:
        classes: of the columns, in order. Class and group: every class of the data. Proposition: any.
        bins: distance and further variables.
        measure: of distance, a name that `verifier.perception.detections.distance` knows.
        unmatched: policy for detections that match nothing.
        duplicates: policy for detections in reach of an object that is taken.
        outside: an object in no bin is an "error", or to "drop".
        gap_m: for groups.
        thresholds: increasing score thresholds of a family; a detection takes part where its score >= threshold.

    Raises:
        UsageError: choices that do not fit together.
    """

    labelling: Labelling
    classes: tuple[str, ...]
    bins: Bins
    measure: str = "euclidean_3d"
    unmatched: Leftover = "drop"
    duplicates: Leftover = "drop"
    outside: Outside = "error"
    gap_m: float | None = None
    thresholds: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not self.classes or len(set(self.classes)) != len(self.classes) or EMPTY_NAME in self.classes:
            raise UsageError(f"expected different class names, none of them '{EMPTY_NAME}', got {self.classes}")
        if self.labelling == "group" and self.gap_m is None:
            raise UsageError("the labelling 'group' needs a gap in metres: objects of a class this near act as one")
        if self.labelling != "group" and self.gap_m is not None:
            raise UsageError("a gap in metres belongs to the labelling 'group', and to no other")
        if self.gap_m is not None and not 0 <= self.gap_m <= 1e4:
            raise UsageError(f"expected a gap from 0 to 10000 m, got {self.gap_m:g}")
        if self.labelling == "proposition":
            self._check_proposition()
        self._check_thresholds()

    def _check_proposition(self) -> None:
        if len(self.classes) > MOST_PROPOSITION_CLASSES:
            raise UsageError(
                f"{len(self.classes)} classes have {2 ** len(self.classes)} sets; propositions are counted for at "
                f"most {MOST_PROPOSITION_CLASSES} classes: name some, or map several to one"
            )
        for variable in self.bins.variables:
            if variable.scope == "object":
                raise UsageError(
                    f"'{variable.name}' belongs to an object, and an item of a proposition-labelled matrix is a "
                    "frame: "
                    "use the labelling 'class', or filter the objects"
                )

    def _check_thresholds(self) -> None:
        if self.thresholds is None:
            return
        increasing = all(a < b for a, b in zip(self.thresholds, self.thresholds[1:], strict=False))
        if not self.thresholds or not increasing or not all(map(math.isfinite, self.thresholds)):
            raise UsageError("expected increasing score thresholds")

    @property
    def threshold_count(self) -> int:
        """Members of the family; 1 where there is none."""
        return 1 if self.thresholds is None else len(self.thresholds)

    @cached_property
    def label_masks(self) -> NDArray[np.int64]:
        """(labels,) the classes of each label of propositions as bits."""
        bit = {name: 1 << number for number, name in enumerate(self.classes)}
        return np.array([*(sum(map(bit.__getitem__, label)) for label in self.labels[:-1]), 0], dtype=np.int64)

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """Labels of rows and columns: classes, or sets of classes by size; the empty label is the last."""
        sizes = range(1, len(self.classes) + 1) if self.labelling == "proposition" else (1,)
        return (*(frozenset(chosen) for size in sizes for chosen in combinations(self.classes, size)), EMPTY)

    def levels(self, score: NDArray[np.float64]) -> NDArray[np.int64]:
        """(n,) at how many thresholds a detection with this score takes part."""
        if self.thresholds is None:
            return np.ones(len(score), dtype=np.int64)
        return np.searchsorted(np.array(self.thresholds), score, side="right").astype(np.int64)

    def record(self, matching: dict[str, object]) -> dict[str, object]:
        """The keys of the document that say how counting was done; `matching` is the record of that policy."""
        counted = (self.unmatched, self.duplicates) != ("drop", "drop")
        keys: dict[str, object] = {
            "distance": {"unit": "m", "measure": self.measure, "of": "true object"},
            "matching": {**matching, "unmatched": self.unmatched, "duplicates": self.duplicates},
            "false_positives": "counted" if counted else "dropped",
        }
        if self.gap_m is not None:
            keys["grouping"] = {"gap_m": self.gap_m, "measure": "centres on the ground"}
        return keys
