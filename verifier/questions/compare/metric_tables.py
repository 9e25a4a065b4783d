"""Detection metrics beside P, as parts of the document of a comparison."""

from dataclasses import dataclass

from verifier.base.documents import Count, MisfitError, Share


@dataclass(frozen=True)
class Estimate:
    """A share of so many items (of average precision: objects), with an interval; None where there are none.

    Attributes:
        lower, upper: 95 % interval: of drives drawn again where there are several, else of independent items.
    """

    items: Count
    value: Share | None
    lower: Share | None
    upper: Share | None

    def __post_init__(self) -> None:
        if (self.value is None) != (self.items == 0):
            raise MisfitError(["value"], f"expected {'a number' if self.items else 'null'}")
        if (self.lower is None) != (self.upper is None) or (self.lower or 0) > (self.upper or 0):
            raise MisfitError(["lower"], "expected both ends of an interval, or none")


@dataclass(frozen=True)
class BinMetrics:
    """A class in one bin.

    Attributes:
        matters: whether P of any requirement depends on rates of the class there.
        precision: None where false positives are not counted, or are of no single bin.
    """

    bin: str
    matters: bool
    recall: Estimate
    precision: Estimate | None


@dataclass(frozen=True)
class DriveMetrics:
    """A class in one drive; None where there is nothing to count."""

    drive: str
    items: Count
    recall: Share | None
    precision: Share | None
    average_precision: Share | None


@dataclass(frozen=True)
class ClassMetrics:
    """Detection metrics of one class of a detector.

    Attributes:
        average_precision: None where the matrices were counted without.
        recall_that_matters: within the bins that matter, put together.
    """

    detector: str
    label: str
    average_precision: Estimate | None
    recall: Estimate
    precision: Estimate | None
    recall_that_matters: Estimate
    bins: tuple[BinMetrics, ...]
    drives: tuple[DriveMetrics, ...]


@dataclass(frozen=True)
class BinEffect:
    """P of two detectors when one has the rates of the other in one bin.

    Attributes:
        first: P of the first with the rates of the second there; `second` the other way round.
    """

    bin: str
    first: Share
    second: Share


@dataclass(frozen=True)
class Reversal:
    """Two detectors of which the first has the better P and the lower average precision of a class.

    Attributes:
        bins: those that change P, the one that explains most first.
    """

    planner: str
    label: str
    first: str
    second: str
    first_average_precision: Share
    second_average_precision: Share
    bins: tuple[BinEffect, ...]

    def __post_init__(self) -> None:
        if self.first_average_precision >= self.second_average_precision:
            raise MisfitError(["first_average_precision"], "expected less than that of the second detector")
