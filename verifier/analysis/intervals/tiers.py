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

A box of rates that somebody states: bounds that rest on it hold for every detector whose rates never leave it.

    source = "supplier's data sheet 7, table 3"
    [[rates]]
    true = "ped"
    predicted = "ped"
    rate = [0.7, 1]                # a number for a rate that is known exactly
    distance_m = [0, 20]           # optional: bins within; else all
    context = "wrong*3"            # optional: with --memory; else all

Each entry says: in each of these bins and contexts an object with this true label is reported with this label with a
probability within `rate`, *given all that was reported before*, of this and of all other objects. Nothing else is
assumed: no memory, no independence of successive frames, no rate that objects share. So the bounds over the box in
which every state has matrices of its own hold whatever a detector remembers. What no entry names may be anything.

Data can contradict such a box, but not establish it. Against "never above u" a gambler bets with mixtures of rates
q > u: with S of n items reported so,

    E = int over q > u of (q/u)^S ((1 - q)/(1 - u))^(n - S) dBeta(1/2, 1/2)(q) / Beta(1/2, 1/2)(q > u)

has mean at most 1 whatever the order and the past (each factor has), and so has the same against "never below l". The
box is contradicted where some E is at least 2 K / 0.01, for K stated rates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaln, xlog1py, xlogy

from verifier.analysis.settings import INTERVALS, Unit, Weights
from verifier.base.arrays import Floats, Ints
from verifier.base.documents import ALWAYS, Count, Derives, Level, Limits, Magnitude, Share, derived
from verifier.base.errors import UsageError, one_line
from verifier.base.numbers import level_text, significant
from verifier.base.toml import Element, read_toml
from verifier.perception.confusion.matrices import ConfusionMatrices, label_text

CONTRADICTED_BELOW = 0.01
MOST_ENTRIES = 10_000


@dataclass(frozen=True)
class BoxRecord:
    """Where a box of rates comes from. `source`: in the words of who states it."""

    file: str
    sha256: str
    source: str


@dataclass(frozen=True, eq=False)
class RateBox:
    """Least and greatest probability of each report.

    Attributes:
        lower, upper: (bins, predicted, true) fractions; 0 and 1 where nothing is stated.
    """

    record: BoxRecord
    lower: NDArray[Any] = field(repr=False)
    upper: NDArray[Any] = field(repr=False)

    def holding(self, rates: Floats, fixed: NDArray[np.bool_]) -> RateBox:
        """The same with columns held by convention, (bins, true), at their rates."""
        lower, upper = self.lower.copy(), self.upper.copy()
        for at, true in np.argwhere(fixed).tolist():
            lower[at, :, true] = upper[at, :, true] = [Fraction(rate) for rate in rates[at, :, true].tolist()]
        return RateBox(self.record, lower, upper)


def read_rate_box(path: str, matrices: ConfusionMatrices, tested: Sequence[ConfusionMatrices]) -> RateBox:
    """The box of a file, for the bins, contexts and labels of matrices.

    Args:
        path: TOML.
        matrices: whose rates it states.
        tested: counts of items that may contradict it: of these bins, or of each of them by what went before.

    Raises:
        InputError: the file cannot be read, names what is not there, or leaves no rates that sum to 1.
        UsageError: the data contradict it.
    """
    top = read_toml(path).table(("source", "rates"), ("source", "rates"))
    entries = top.at("rates").items(least=1)
    if len(entries) > MOST_ENTRIES:
        raise top.at("rates").fail(f"expected at most {MOST_ENTRIES} entries, got {len(entries)}")
    shape = matrices.counts.shape
    lower, upper = np.full(shape, Fraction(0), dtype=object), np.full(shape, Fraction(1), dtype=object)
    stated = np.zeros(shape, dtype=bool)
    for entry in entries:
        entry.table(("true", "predicted", "rate", "distance_m", "context"), ("true", "predicted", "rate"))
        least, most = entry.at("rate").share()
        predicted, true = (_label(entry.at(key), matrices) for key in ("predicted", "true"))
        for at in _bins(entry, matrices):
            cell = at, predicted, true
            lower[cell], upper[cell] = max(lower[cell], least), min(upper[cell], most)
            stated[cell] = True
            if lower[cell] > upper[cell]:
                raise entry.fail(f"no rate is left in {matrices.bin_text(at)}: other entries state other rates")
            column = lower[at, :, true].sum(), upper[at, :, true].sum()
            if column[0] > 1 or column[1] < 1:
                raise entry.fail(f"no rates within these ends sum to 1 in {matrices.bin_text(at)}")
    record = BoxRecord(path, top.sha256, one_line(top.at("source").string()))
    _refuse_contradicted(path, tested, stated, lower, upper)
    return RateBox(record, lower, upper)


def _label(element: Element, matrices: ConfusionMatrices) -> int:
    names = tuple(label_text(label) for label in matrices.labels)
    return names.index(element.one_of(names))


def _bins(entry: Element, matrices: ConfusionMatrices) -> list[int]:
    """The bins, contexts included, of which an entry speaks."""
    edges, bins = matrices.edges_m, np.arange(matrices.bin_count)
    if entry.has("distance_m"):
        ends = [element.number(0) for element in entry.at("distance_m").items()]
        known = [Fraction(float(edge)) for edge in edges.tolist() if math.isfinite(edge)]
        if len(ends) != 2 or not ends[0] < ends[1] or not set(ends) <= set(known):
            listed = ", ".join(f"{edge:g}" for edge in edges.tolist())
            raise entry.at("distance_m").fail(f"expected [low, high] at edges of the bins ({listed})")
        at = matrices.distance_bin(bins)
        bins = bins[(edges[at] >= float(ends[0])) & (edges[at + 1] <= float(ends[1]))]
    if entry.has("context"):
        if matrices.memory is None:
            raise entry.at("context").fail("the detector has no memory here", "name --memory run:L, or leave it out")
        contexts = matrices.memory.contexts
        bins = bins[bins % contexts.count == contexts.names.index(entry.at("context").one_of(contexts.names))]
    return [int(at) for at in bins]


def _refuse_contradicted(
    path: str,
    tested: Sequence[ConfusionMatrices],
    stated: NDArray[np.bool_],
    lower: NDArray[Any],
    upper: NDArray[Any],
) -> None:
    """UsageError where some of the counts contradict a stated rate."""
    total = int(stated.sum()) * sum(matrices.bin_count for matrices in tested) // len(stated)
    for matrices in tested:
        parts = matrices.bin_count // len(stated)
        cells = np.argwhere(stated.repeat(parts, axis=0))
        at, predicted, true = cells.T
        hits, items = matrices.counts[at, predicted, true], matrices.counts.sum(axis=1)[at, true]
        low, high = (ends[at // parts, predicted, true].astype(float) for ends in (lower, upper))
        most = np.maximum(log_e_value(hits, items, high), log_e_value(items - hits, items, 1 - low))
        worst = int(most.argmax())
        if most[worst] < math.log(2 * total / CONTRADICTED_BELOW):
            continue
        who, what = (label_text(matrices.labels[label[worst]]) for label in (true, predicted))
        raise UsageError(
            f"--rate-box {path}: the data contradict it: in {matrices.bin_text(int(at[worst]))} {hits[worst]} of "
            f"{items[worst]} items of {who} were reported as {what}, and {low[worst]:g} to {high[worst]:g} is stated "
            f"(e-value 10^{significant(most[worst] / math.log(10))} for {total} rates): state a wider one, or accept "
            "it with --assume-rate-box"
        )


def log_e_value(hits: Ints, items: Ints, most: Floats) -> Floats:
    """(c,) log E against rates that never exceed `most`; -inf where that is 1.

    Args:
        hits, items: (c,) S of n.
        most: (c,) u.
    """
    a, b = hits + 0.5, items - hits + 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        posterior: Floats = np.log1p(-betainc(a, b, most))
        prior: Floats = np.log1p(-betainc(0.5, 0.5, most))
        law = np.asarray(xlogy(hits, most) + xlog1py(items - hits, -most), dtype=np.float64)
        log_e = betaln(a, b) - betaln(0.5, 0.5) + posterior - prior - law
    return np.where(most < 1, log_e, -np.inf)


Tier: TypeAlias = Literal[
    "independent_drives", "approximate", "icc_at_most", "independent_items", "anytime", "rate_box"
]
BY_ITEMS: tuple[Tier, ...] = ("independent_items", "anytime")
"""Tiers that need no drives."""

FEW_DRIVES = 8
"""With fewer drives the bounds can hardly decide anything, and the result says how far they could reach."""
UNITS: Mapping[str, str] = {"item": "items", "track": "encounters", "drive": "drives"}
_NAMES: Mapping[str, str] = {
    "independent_drives": "independent drives",
    "approximate": f"approximate: {INTERVALS['bootstrap'].approximate}",
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
        families: among how many families of bounds alpha is divided first, so that all hold at once: 2 where bounds
            whatever the dependence are of other rates, because the detector remembers.
        every_look: whether they hold at every look while drives are added, if these are identically distributed.
        shift: how far the rate of each observation (the labels that a planner does not tell apart, as one) may lie
            from that of the data; columns held by convention do not shift.
        annotation_error: the largest share of a column's items that may be annotated wrongly or missing.
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
    annotation_error: Share = 0.0
    unit: Unit = "drive"
    families: Annotated[int, Limits(ge=1)] = 1

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
    icc = basis.icc_at_most
    told = _NAMES[basis.tier] if icc is None else f"if the ICC is at most {significant(icc, 10)}"
    told = told if basis.unit == "drive" else f"independent {basis.unit}s, for the mean matrix"
    return f"{level_text(basis.level)} confidence bounds ({told})"


def _condition(basis: BoundsBasis) -> str:
    if basis.largest_drive is not None:
        mean = "" if basis.unit == "drive" else f", for the mean matrix over {basis.unit}s"
        text = f"{basis.unit}s are independent{_within(basis.largest_drive, basis.weights)}{mean}"
    elif basis.tier == "approximate":
        text = INTERVALS["bootstrap"].condition(basis.unit)
    elif basis.icc_at_most is not None:
        icc = significant(basis.icc_at_most, 10)
        text = f"items are independent or correlated within a drive with ICC at most {icc}"
    elif basis.box is not None:
        text = f"every report stays in the stated rate box of {basis.box.source}"
    elif basis.tier == "anytime":
        text = "each bin, class and context has one rate for all objects and drives, whatever was reported before"
    else:
        text = "items are independent"
    if basis.annotation_error:
        share = significant(basis.annotation_error, 10)
        text += f", at most a share of {share} of a column is annotated wrongly or missing"
    if basis.shift:
        text += f", and the rate of each observation shifts by at most {significant(basis.shift, 10)}"
    return text


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
