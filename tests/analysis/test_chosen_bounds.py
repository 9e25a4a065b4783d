"""Which confidence bounds a run gets, and what is told of the drives behind them, by hand."""

from fractions import Fraction

import numpy as np
import pytest

from verifier.analysis.chosen_bounds import choose_bounds, tier_of
from verifier.analysis.intervals.drive_items import UNIT, DriveItems, ceiling
from verifier.analysis.intervals.intervals import Measured
from verifier.analysis.intervals.rate_intervals import Event
from verifier.analysis.intervals.tiers import LargestColumn, LargestDrive
from verifier.analysis.settings import ConfidenceSettings
from verifier.base.errors import InputError, UsageError


@pytest.mark.parametrize(
    ("settings", "with_drives", "without"),  # a tier, or what is said
    [
        ({}, "independent_drives", "independent_items"),
        ({"bounds": "drives"}, "independent_drives", "--bounds drives needs"),
        ({"bounds": "approximate"}, "approximate", "--bounds approximate needs"),
        ({"bounds": "units:track"}, "independent_drives", "--bounds units:track needs"),
        ({"bounds": "items"}, "to be made by name: --assume-independent-items", "independent_items"),
        ({"bounds": "items", "assume_independent_items": True}, "independent_items", "independent_items"),
        ({"assume_independent_items": True}, "independent_items", "independent_items"),
        ({"bounds": "anytime"}, "anytime", "anytime"),
        ({"icc_at_most": Fraction(0)}, "icc_at_most", "--icc-at-most needs"),
        ({"weights": "track"}, "independent_drives", "--weights track needs"),
        ({"largest_drive": 5}, "independent_drives", "--largest-drive needs"),
    ],
)
def test_the_tier_is_that_which_is_asked_for_and_can_be_had(settings, with_drives, without):
    for known, expected in ((True, with_drives), (False, without)):
        if " " in expected:
            with pytest.raises(UsageError, match=expected):
                tier_of(ConfidenceSettings(**settings), known)
        else:
            assert tier_of(ConfidenceSettings(**settings), known) == expected


EVENTS = {Event(0, 0, (1,)), Event(1, 1, (1,))}
COLUMNS = np.array([[0, 0], [0, 1], [1, 1]])
"""The second has its rates by convention."""


def data_of(weights="item", drives=((8, 2, 4), (0, 1, 2), (2, 0, 0)), **more):
    """What three drives hold of the columns of `COLUMNS`, in items, tracks or drives; half of it reported as 1."""
    unit = 1 if weights == "item" else UNIT
    table = np.zeros((len(drives), 2, 2, 2), dtype=np.int64)
    for drive, sizes in enumerate(drives):
        for (at, true), size in zip(COLUMNS.tolist(), sizes, strict=True):
            table[drive, at, 1, true] = size * unit // 2
            table[drive, at, 0, true] = size * unit - size * unit // 2
    measured = Measured(
        table.sum(axis=0) // unit, np.full((2, 2, 2), 0.5), np.array([[False, True], [False, False]]), **more
    )
    return measured, DriveItems(tuple(f"d{k}" for k in range(len(drives))), weights, table)


def chosen(settings, events=EVENTS, known=True, families=(), **more):
    measured, items = data_of(settings.weights, **more)
    return choose_bounds(measured, items if known else None, events, COLUMNS, settings, *families)


def test_bounds_by_drives():
    """10 items of the first column in drives of 8 and 2: 10^2 / 68; 6 of the third in drives of 4 and 2."""
    basis, intervals = chosen(
        ConfidenceSettings(level=0.9, shift=Fraction(1, 8)), families=[2], annotation_error=Fraction(1, 10**10)
    )
    assert (basis.tier, basis.unit, basis.weights, basis.level, basis.chances) == (
        "independent_drives",
        "drive",
        "item",
        0.9,
        2,
    )
    assert (basis.drives, basis.looks, basis.families, basis.shift) == (2, 1, 2, 1 / 8)
    assert basis.effective_drives == pytest.approx(100 / 68)
    assert basis.largest_share == pytest.approx(8 / 10)
    assert basis.largest_drive == LargestDrive(False, (LargestColumn(0, 0, 8), LargestColumn(1, 1, 4)))
    assert not basis.every_look
    assert basis.icc_at_most is None
    # A billionth for what is annotated wrongly, however little it is.
    assert (intervals.tier, intervals.alpha, intervals.shift) == (
        "independent_drives",
        Fraction(1, 20),
        UNIT // 8 + 1,
    )
    assert intervals.largest.tolist() == [[8, 2], [0, 4]]
    assert intervals.drives is not None
    # Two full drives pay 1 + s (1/m - 1) each, and 1/80 of alpha is to be made.
    tail, stakes = 1 / 80, [np.sin(j * np.pi / 24) ** 2 for j in range(1, 13)]
    paid = (
        sum(share * (1 + s * (1 / basis.ceiling - 1)) ** 2 for share, s in zip([1] * 11 + [13], stakes, strict=True))
        / 24
    )
    assert paid == pytest.approx(1 / tail, rel=1e-4)


@pytest.mark.parametrize(
    ("settings", "own", "looks", "alpha", "declared", "largest"),
    [
        # Alpha is divided among the looks where B is what was seen, and not where it is known before.
        ({"looks": 5}, 1, 5, Fraction(1, 100), False, [8, 4]),
        ({"looks": 5}, 10, 10, Fraction(1, 200), False, [8, 4]),
        ({"looks": 5, "largest_drive": 8}, 1, 5, Fraction(1, 20), True, [8, 8]),
        ({"looks": 5, "weights": "track", "largest_drive": 9}, 1, 5, Fraction(1, 20), True, [9, 9]),
        ({"looks": 5, "weights": "track"}, 1, 5, Fraction(1, 100), False, [8, 4]),
        ({"looks": 5, "weights": "drive"}, 1, 5, Fraction(1, 20), False, [1, 1]),
    ],
)
def test_looks_and_the_largest_drive(settings, own, looks, alpha, declared, largest):
    asked = ConfidenceSettings(**settings)
    held = {"drives": ((1, 1, 1), (0, 1, 1), (1, 0, 0))} if asked.weights == "drive" else {}
    basis, intervals = chosen(asked, looks=own, **held)
    assert (basis.looks, intervals.alpha, basis.every_look) == (looks, alpha, alpha == Fraction(1, 20))
    assert basis.largest_drive == LargestDrive(
        declared, (LargestColumn(0, 0, largest[0]), LargestColumn(1, 1, largest[1]))
    )
    unit = 1 if asked.weights == "item" else UNIT
    assert [intervals.largest[0, 0], intervals.largest[1, 1]] == [most * unit for most in largest]


def test_a_drive_holds_no_more_than_is_declared():
    place = r"\(distance bin 0, true label 0, both from 0\)"
    message = f"drive 'd0' holds 8 {{}} of one column {place}, and no drive is said to hold more than 7"
    for weights, unit in (("item", "items"), ("track", "encounters")):
        with pytest.raises(InputError, match=message.format(unit)):
            chosen(ConfidenceSettings(weights=weights, largest_drive=7))
    with pytest.raises(InputError, match=r"drive 'd1' holds 9 items of one column \(distance bin 1, true label 1"):
        chosen(ConfidenceSettings(largest_drive=8), drives=((8, 20, 0), (0, 0, 9)))


def test_columns_without_items_are_told_of_a_declared_drive_alone():
    held = {"drives": ((8, 2, 0), (3, 0, 0))}
    assert chosen(ConfidenceSettings(), **held)[0].largest_drive.columns == (LargestColumn(0, 0, 8),)
    declared = chosen(ConfidenceSettings(largest_drive=8), **held)[0].largest_drive.columns
    assert declared == (LargestColumn(0, 0, 8), LargestColumn(1, 1, 8))


def test_what_is_told_is_that_of_the_worst_column():
    """One drive holds all of the third column, and two hold the first."""
    basis, _ = chosen(ConfidenceSettings(), drives=((8, 2, 4), (3, 0, 0)))
    assert (basis.drives, basis.effective_drives, basis.largest_share, basis.families) == (1, 1, 1, 1)
    basis, _ = chosen(ConfidenceSettings(), drives=((8, 2, 0), (3, 0, 0)))
    assert (basis.drives, basis.largest_share) == (2, pytest.approx(8 / 11))
    none, one = (chosen(ConfidenceSettings(), events=events)[0].ceiling for events in (set(), {Event(0, 0, (1,))}))
    assert none == one == ceiling(2, Fraction(1, 40))


def test_what_is_told_of_drives_without_items():
    basis, _ = chosen(ConfidenceSettings(), drives=((0, 5, 0),))
    assert (basis.drives, basis.effective_drives, basis.largest_share, basis.ceiling) == (0, None, None, None)


@pytest.mark.parametrize(("count", "few"), [(7, True), (8, False)])
def test_a_ceiling_is_told_of_few_drives(count, few):
    held = {"drives": ((2, 0, 2),) * count}
    assert (chosen(ConfidenceSettings(), **held)[0].ceiling is not None) is few
    assert chosen(ConfidenceSettings(icc_at_most=Fraction(1, 4)), **held)[0].ceiling is None


def test_other_tiers():
    basis, intervals = chosen(ConfidenceSettings(icc_at_most=Fraction(1, 4), looks=2))
    assert (basis.tier, basis.icc_at_most, basis.largest_drive, basis.drives) == ("icc_at_most", 0.25, None, 2)
    assert (intervals.icc, intervals.alpha, intervals.largest) == (Fraction(1, 4), Fraction(1, 40), None)
    assert intervals.drives is not None
    basis, intervals = chosen(ConfidenceSettings(bounds="anytime", looks=2))
    assert (basis.every_look, intervals.alpha, intervals.drives, intervals.tier) == (
        True,
        Fraction(1, 20),
        None,
        "anytime",
    )
    basis, intervals = chosen(ConfidenceSettings(looks=2), known=False)
    assert (basis.tier, basis.drives, intervals.alpha, intervals.drives) == (
        "independent_items",
        None,
        Fraction(1, 40),
        None,
    )
    basis, intervals = chosen(ConfidenceSettings(bounds="approximate"))
    assert (basis.tier, basis.unit, intervals) == ("approximate", "drive", None)
    with pytest.raises(UsageError, match="cannot allow for the annotation error rate that the matrices state"):
        chosen(ConfidenceSettings(bounds="approximate"), annotation_error=Fraction(1, 100))
    basis, _ = chosen(ConfidenceSettings(bounds="units:track"))
    assert (basis.unit, basis.conditional) == ("track", True)
    # Of no events alpha is not divided; and of what is annotated wrongly the share is told.
    basis, intervals = chosen(ConfidenceSettings(), events=set(), annotation_error=Fraction(1, 4))
    assert (basis.chances, intervals.tail, basis.annotation_error, intervals.shift) == (
        0,
        Fraction(1, 40),
        0.25,
        UNIT // 4,
    )
