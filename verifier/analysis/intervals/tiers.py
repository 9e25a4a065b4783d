"""What confidence bounds assume: the tier of a run's bounds, and the words for it.

| tier                | what it takes for the bounds to hold                                                |
|---------------------|-------------------------------------------------------------------------------------|
| `independent_drives`| drives are independent, and none holds more than B items of a column (`betting`);    |
|                     | of matrices counted by track or frame, these instead of drives                       |
| `approximate`       | drives are independent; coverage shown by simulation, not proven (`phantom_draws`)   |
| `icc_at_most`       | items of one drive are correlated with at most this intraclass correlation           |
| `independent_items` | items are independent                                                                |
| `anytime`           | one rate per bin, class and context, whatever was reported before (`anytime`)         |
| `rate_box`          | no probability of a report leaves a stated box, whatever was reported before           |

Condition and tier travel with every bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from verifier.analysis.intervals.rate_box import BoxRecord
from verifier.analysis.settings import Unit, Weights
from verifier.base.documents import ALWAYS, Count, Derives, Level, Limits, Magnitude, Share, derived

Tier: TypeAlias = Literal[
    "independent_drives", "approximate", "icc_at_most", "independent_items", "anytime", "rate_box"
]
BY_ITEMS: tuple[Tier, ...] = ("independent_items", "anytime")
"""Tiers that need no drives."""

FEW_DRIVES = 8
"""With fewer drives the bounds can hardly decide anything, and the result says how far they could reach."""
RESAMPLED = "drives are independent (approximate: drives resampled)"
"""What intervals and bounds from resampled drives assume."""
UNITS: Mapping[str, str] = {"item": "items", "track": "encounters", "drive": "drives"}
_NAMES: Mapping[str, str] = {
    "independent_drives": "independent drives",
    "approximate": "approximate: drives resampled",
    "independent_items": "if items are independent",
    "anytime": "at every look, if each bin, class and context has one rate",
    "rate_box": "of a stated rate box, not of data",
}


@dataclass(frozen=True, order=True)
class LargestColumn:
    """The most that one drive may hold of a column: its bin and the number of its true label, and how many items."""

    bin: Count
    true: Count
    items: Count


@dataclass(frozen=True)
class LargestDrive:
    """The most that one drive may hold of each column.

    Attributes:
        declared: whether somebody says so; else it is the largest drive seen.
        columns: in units of the weights; one for each column, of weighed strata one for each column of a stratum.
    """

    declared: bool
    columns: tuple[LargestColumn, ...]


@dataclass(frozen=True, kw_only=True)
class BoundsBasis(Derives):
    """What the confidence bounds of a run rest on.

    Attributes:
        tier, weights: see above and `drive_items`.
        unit: what "drives" are, here and in all that is said of bounds; tracks and frames are not drives, and taking
            them as independent is part of every verdict.
        name: for people, to stand beside bounds: `95 % confidence bounds (independent drives)`.
        condition: what must be true for the bounds to hold.
        conditional: whether the condition is part of every verdict.
        level: of all bounds of the run at once.
        chances: K0, among how many rates alpha is divided; also those of columns without items.
        looks: how often the data are looked at.
        every_look: whether they hold at every look while drives are added, if these are identically distributed.
        shift: how far the rate of each observation (the labels that a planner does not tell apart, as one) may lie
            from that of the data; columns held by convention do not shift.
        drives: how many hold items of a needed column, in the column with fewest (of those with items); None where
            they are not known, as the next three.
        effective_drives: (sum N)^2 / sum N^2 in the column where it is least.
        largest_share: of the items of a column in its largest drive, in the column where it is greatest.
        largest_drive: B of the betting bounds; None for the other tiers.
        ceiling: with fewer than `FEW_DRIVES` drives the greatest lower end that any outcome of them could give.
        icc_at_most: the intraclass correlation that is assumed to be the largest; None for the other tiers.
        box: where the box of rates comes from; None for the other tiers.
    """

    tier: Tier
    name: str = derived(lambda basis: _name(basis))
    condition: str = derived(lambda basis: _condition(basis))
    conditional: bool = derived(lambda basis: basis.tier != "independent_drives" or basis.unit != "drive")
    weights: Weights
    level: Level
    chances: Count
    looks: Annotated[int, Limits(ge=1)] = field(default=1, metadata=ALWAYS)
    every_look: bool = derived(lambda told: holds_at_every_look(told.tier, told.largest_drive, told.weights))
    shift: Share = field(default=0.0, metadata=ALWAYS)
    drives: Count | None = field(default=None, metadata=ALWAYS)
    effective_drives: Magnitude | None = field(default=None, metadata=ALWAYS)
    largest_share: Share | None = field(default=None, metadata=ALWAYS)
    largest_drive: LargestDrive | None = field(default=None, metadata=ALWAYS)
    ceiling: float | None = field(default=None, metadata=ALWAYS)
    icc_at_most: Share | None = field(default=None, metadata=ALWAYS)
    box: BoxRecord | None = None
    unit: Unit = "drive"

    def __post_init__(self) -> None:
        if (self.tier == "icc_at_most") != (self.icc_at_most is not None):
            raise ValueError("an ICC belongs to the tier that assumes it")
        if (self.tier == "rate_box") != (self.box is not None):
            raise ValueError("a box belongs to the tier that rests on it")
        if (self.tier == "independent_drives") != (self.largest_drive is not None):
            raise ValueError("a largest drive belongs to the tier that rests on it")
        super().__post_init__()


def _name(basis: BoundsBasis) -> str:
    if basis.box is not None:
        return f"bounds ({_NAMES[basis.tier]})"
    told = f"if the ICC is at most {basis.icc_at_most:.10g}" if basis.icc_at_most is not None else _NAMES[basis.tier]
    told = told if basis.unit == "drive" else f"independent {basis.unit}s, for the mean matrix"
    return f"{basis.level * 100:.10g} % confidence bounds ({told})"


def _condition(basis: BoundsBasis) -> str:
    if basis.largest_drive is not None:
        mean = "" if basis.unit == "drive" else f", for the mean matrix over {basis.unit}s"
        text = f"{basis.unit}s are independent{_within(basis.largest_drive, basis.weights)}{mean}"
    elif basis.tier == "approximate":
        text = RESAMPLED
    elif basis.icc_at_most is not None:
        text = f"items are independent or correlated within a drive with ICC at most {basis.icc_at_most:.10g}"
    elif basis.box is not None:
        text = f"every report stays in the stated rate box of {basis.box.source}"
    elif basis.tier == "anytime":
        text = "each bin, class and context has one rate for all objects and drives, whatever was reported before"
    else:
        text = "items are independent"
    return (
        text if not basis.shift else f"{text}, and the rate of each observation shifts by at most {basis.shift:.10g}"
    )


def holds_at_every_look(tier: Tier, largest_drive: LargestDrive | None, weights: Weights) -> bool:
    """Whether bounds hold at every look; the scale of betting bounds on drives must not depend on the data."""
    return tier in ("anytime", "rate_box") or (
        largest_drive is not None and (largest_drive.declared or weights == "drive")
    )


def _within(largest: LargestDrive, weights: Weights) -> str:
    """What B adds to the condition."""
    if weights == "drive" or not largest.columns:
        return ""
    unit, most = UNITS[weights], sorted({column.items for column in largest.columns})
    if len(most) == 1:
        return f" and none holds more than {most[0]} {unit} of a column"
    seen = f"the largest seen ({most[0]} to {most[-1]}, by column)"
    return f" and none holds more {unit} of a column than {seen}"
