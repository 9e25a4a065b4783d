"""Which confidence bounds a run gets, from what is asked for and what its files know."""

import math
from collections.abc import Set
from dataclasses import replace
from fractions import Fraction

import numpy as np

from verifier.analysis.intervals.drive_items import UNIT, DriveItems, ceiling
from verifier.analysis.intervals.intervals import Measured, alpha_of
from verifier.analysis.intervals.rate_intervals import Event, RateIntervals
from verifier.analysis.intervals.tiers import (
    BY_ITEMS,
    FEW_DRIVES,
    UNITS,
    BoundsBasis,
    LargestColumn,
    LargestDrive,
    Tier,
    holds_at_every_look,
)
from verifier.analysis.settings import ConfidenceSettings
from verifier.base.arrays import Ints
from verifier.base.errors import InputError, UsageError, shown


def tier_of(settings: ConfidenceSettings, drives_known: bool) -> Tier:
    """The tier that is asked for, if it can be had.

    Raises:
        UsageError: drives are needed and not known, or items are taken as independent without saying so.
    """
    needs = {
        "--bounds " + settings.bounds: settings.bounds in ("drives", "approximate") or settings.unit is not None,
        "--icc-at-most": settings.icc_at_most is not None,
        "--weights " + settings.weights: settings.weights != "item",
        "--largest-drive": settings.largest_drive is not None,
    }
    for option in [name for name, asked in needs.items() if asked and not drives_known]:
        raise UsageError(
            f"{option} needs matrices that say which drive an item is from; these do not (count them again with "
            "`verify confusion`, or leave the option out: then bounds take items as independent, and say so)"
        )
    if settings.icc_at_most is not None:
        return "icc_at_most"
    if settings.bounds == "anytime":
        return "anytime"
    if settings.assume_independent_items or not drives_known:
        return "independent_items"
    if settings.bounds == "items":
        raise UsageError(
            "the matrices say which drive each item is from, and items of one drive depend on each other: bounds by "
            "items are an assumption, to be made by name: --assume-independent-items"
        )
    return "approximate" if settings.bounds == "approximate" else "independent_drives"


def choose_bounds(
    measured: Measured,
    drives: DriveItems | None,
    events: Set[Event],
    columns: Ints,
    settings: ConfidenceSettings,
    families: int = 1,
) -> tuple[BoundsBasis, RateIntervals | None]:
    """What the bounds of a run rest on, and its intervals; None where bounds come from draws instead.

    Args:
        drives: what each drive holds, with the weights of the settings; None where the file does not know.
        events: of all chains of the run.
        columns: (k, 2) pairs of bin and true label that the run needs.
        families: among how many families of bounds alpha is divided.

    Raises:
        UsageError: as `tier_of`; or bounds by draws, which cannot allow for errors of annotation.
        InputError: a drive holds more than the declared largest.
    """
    tier = tier_of(settings, drives is not None)
    estimated = columns[~measured.fixed[columns[:, 0], columns[:, 1]]]
    largest, told = None, None
    if tier == "independent_drives" and drives is not None:
        largest = _largest(drives, estimated, settings)
        told = _told(drives, largest, estimated, settings)
    alpha, looks = alpha_of(settings.level) / families, max(settings.looks, measured.looks)
    if not holds_at_every_look(tier, told, settings.weights):
        alpha /= looks
    if measured.annotation_error and tier == "approximate":
        raise UsageError(
            "--bounds approximate cannot allow for the annotation error rate that the matrices state: leave it out"
        )
    basis = BoundsBasis(
        tier=tier,
        unit="drive" if tier != "independent_drives" else settings.unit or "drive",
        weights=settings.weights,
        level=settings.level,
        chances=len(events),
        looks=looks,
        families=families,
        shift=float(settings.shift),
        annotation_error=float(measured.annotation_error),
        largest_drive=told,
        icc_at_most=None if settings.icc_at_most is None else float(settings.icc_at_most),
    )
    if drives is not None:
        basis = _with_drives(basis, drives, estimated, alpha / (2 * max(len(events), 1)))
    if tier == "approximate":
        return basis, None
    shift = math.ceil((settings.shift + measured.annotation_error) * UNIT)
    known = None if tier in BY_ITEMS else drives
    return basis, RateIntervals(measured, events, alpha, tier, known, largest, settings.icc_at_most, shift)


def _with_drives(basis: BoundsBasis, drives: DriveItems, columns: Ints, tail: Fraction) -> BoundsBasis:
    """Number, effective number, largest share and ceiling, of the columns in which they are worst."""
    holding = drives.holding(columns)
    some = holding > 0
    if not np.any(some):
        return replace(basis, drives=0)
    number = int(holding[some].min())
    few = basis.tier == "independent_drives" and number < FEW_DRIVES
    return replace(
        basis,
        drives=number,
        effective_drives=float(drives.effective(columns)[some].min()),
        largest_share=float(drives.largest_share(columns)[some].max()),
        ceiling=ceiling(number, tail) if few else None,
    )


def _largest(drives: DriveItems, columns: Ints, settings: ConfidenceSettings) -> Ints:
    """(bins, true) B: as declared, or the most seen in the column."""
    sizes: Ints = drives.table.sum(axis=2)
    if settings.weights == "drive":
        return np.full(sizes.shape[1:], drives.unit, dtype=np.int64)
    if settings.largest_drive is None:
        seen: Ints = sizes.max(axis=0, initial=0)
        return seen
    most = settings.largest_drive * drives.unit
    held = drives.sizes(columns)
    if np.any(held > most):
        drive, column = np.unravel_index(int(held.argmax()), held.shape)
        unit = UNITS[settings.weights]
        raise InputError(
            f"drive {shown(drives.names[drive])} holds {held[drive, column] // drives.unit} {unit} of one column "
            f"(distance bin {columns[column, 0]}, true label {columns[column, 1]}, both from 0), and no drive "
            f"is said to hold more than {settings.largest_drive}",
            hint="--largest-drive with the most that any drive can hold, those not recorded included",
        )
    return np.full(sizes.shape[1:], most, dtype=np.int64)


def _told(drives: DriveItems, largest: Ints, columns: Ints, settings: ConfidenceSettings) -> LargestDrive:
    items = tuple(
        LargestColumn(at, true, int(largest[at, true]) // drives.unit)
        for at, true in columns.tolist()
        if settings.largest_drive is not None or largest[at, true]
    )
    return LargestDrive(settings.largest_drive is not None, items)
