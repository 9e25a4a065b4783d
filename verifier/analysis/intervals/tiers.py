"""What confidence bounds assume: the tier of a run's bounds, and the words for it.

| tier                | what it takes for the bounds to hold                                                |
|---------------------|-------------------------------------------------------------------------------------|
| `independent_drives`| drives are independent, and none holds more than B items of a column (`betting`)     |
| `approximate`       | drives are independent; coverage shown by simulation, not proven (`phantom_draws`)   |
| `icc_at_most`       | items of one drive are correlated with at most this intraclass correlation           |
| `independent_items` | items are independent                                                                |

Condition and tier travel with every bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from verifier.analysis.settings import Weights

Tier: TypeAlias = Literal["independent_drives", "approximate", "icc_at_most", "independent_items"]

FEW_DRIVES = 8
"""With fewer drives the bounds can hardly decide anything, and the result says how far they could reach."""
RESAMPLED = "drives are independent (approximate: drives resampled)"
"""What intervals and bounds from resampled drives assume."""
UNITS: Mapping[str, str] = {"item": "items", "track": "encounters", "drive": "drives"}
_NAMES: Mapping[str, str] = {
    "independent_drives": "independent drives",
    "approximate": "approximate: drives resampled",
    "independent_items": "if items are independent",
}


@dataclass(frozen=True)
class LargestDrive:
    """The most that one drive may hold of each column.

    Attributes:
        declared: whether somebody says so; else it is the largest drive seen.
        items: (bin, true label number, how much), in units of the weights; one for each column, of weighed strata one
            for each column of a stratum.
    """

    declared: bool
    items: tuple[tuple[int, int, int], ...]

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        columns = [{"bin": at, "true": true, "items": most} for at, true, most in self.items]
        return {"declared": self.declared, "columns": columns}


@dataclass(frozen=True)
class BoundsBasis:
    """What the confidence bounds of a run rest on.

    Attributes:
        tier, weights: see above and `drive_items`.
        level: of all bounds of the run at once.
        looks: how often the data are looked at.
        shift: how far the rate of each observation (the labels that a planner does not tell apart, as one) may lie
            from that of the data; columns held by convention do not shift.
        chances: K0, among how many rates alpha is divided; also those of columns without items.
        drives: how many hold items of a needed column, in the column with fewest (of those with items); None where
            they are not known, as the next three.
        effective_drives: (sum N)^2 / sum N^2 in the column where it is least.
        largest_share: of the items of a column in its largest drive, in the column where it is greatest.
        largest_drive: B of the betting bounds; None for the other tiers.
        ceiling: with fewer than `FEW_DRIVES` drives the greatest lower end that any outcome of them could give.
        icc: the intraclass correlation that is assumed to be the largest; None for the other tiers.
    """

    tier: Tier
    weights: Weights
    level: float
    chances: int
    looks: int = 1
    shift: Fraction = Fraction(0)
    drives: int | None = None
    effective_drives: float | None = None
    largest_share: float | None = None
    largest_drive: LargestDrive | None = None
    ceiling: float | None = None
    icc: Fraction | None = None

    def __post_init__(self) -> None:
        if (self.tier == "icc_at_most") != (self.icc is not None):
            raise ValueError("an ICC belongs to the tier that assumes it")
        if (self.tier == "independent_drives") != (self.largest_drive is not None):
            raise ValueError("a largest drive belongs to the tier that rests on it")

    @property
    def name(self) -> str:
        """For people, to stand beside bounds: `95 % confidence bounds (independent drives)`."""
        told = f"if the ICC is at most {_number(self.icc)}" if self.icc is not None else _NAMES[self.tier]
        return f"{self.level * 100:.10g} % confidence bounds ({told})"

    @property
    def conditional(self) -> bool:
        """Whether the condition is part of every verdict."""
        return self.tier != "independent_drives"

    @property
    def condition(self) -> str:
        """What must be true for the bounds to hold."""
        if self.largest_drive is not None:
            text = "drives are independent" + _within(self.largest_drive, self.weights)
        elif self.tier == "approximate":
            text = RESAMPLED
        elif self.icc is not None:
            text = f"items are independent or correlated within a drive with ICC at most {_number(self.icc)}"
        else:
            text = "items are independent"
        return (
            text
            if not self.shift
            else f"{text}, and the rate of each observation shifts by at most {_number(self.shift)}"
        )

    @property
    def every_look(self) -> bool:
        """Whether the bounds hold at every look while drives are added, if these are identically distributed."""
        return self.largest_drive is not None and holds_at_every_look(self.largest_drive, self.weights)

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "tier": self.tier,
            "name": self.name,
            "condition": self.condition,
            "conditional": self.conditional,
            "weights": self.weights,
            "level": self.level,
            "chances": self.chances,
            "looks": self.looks,
            "every_look": self.every_look,
            "shift": float(self.shift),
            "drives": self.drives,
            "effective_drives": self.effective_drives,
            "largest_share": self.largest_share,
            "largest_drive": None if self.largest_drive is None else self.largest_drive.document(),
            "ceiling": self.ceiling,
            "icc_at_most": None if self.icc is None else float(self.icc),
        }


def holds_at_every_look(largest_drive: LargestDrive, weights: Weights) -> bool:
    """Whether betting bounds on drives hold at every look: their scale must not depend on the data."""
    return largest_drive.declared or weights == "drive"


def basis_of(entry: Mapping[str, Any]) -> BoundsBasis:
    """The basis that `BoundsBasis.document` tells; KeyError, TypeError or ValueError where the entry tells none."""
    told, icc = entry["largest_drive"], entry["icc_at_most"]
    columns = () if told is None else tuple((each["bin"], each["true"], each["items"]) for each in told["columns"])
    names = ("tier", "weights", "level", "chances", "looks", "drives", "effective_drives", "largest_share", "ceiling")
    return BoundsBasis(
        **{name: entry[name] for name in names},
        shift=Fraction(entry["shift"]),
        largest_drive=None if told is None else LargestDrive(told["declared"], columns),
        icc=None if icc is None else Fraction(icc),
    )


def _within(largest: LargestDrive, weights: Weights) -> str:
    """What B adds to the condition."""
    if weights == "drive" or not largest.items:
        return ""
    unit, most = UNITS[weights], sorted({items for _, _, items in largest.items})
    if len(most) == 1:
        return f" and none holds more than {most[0]} {unit} of a column"
    seen = f"the largest seen ({most[0]} to {most[-1]}, by column)"
    return f" and none holds more {unit} of a column than {seen}"


def _number(value: Fraction) -> str:
    return f"{float(value):.10g}"
