"""What bounds assume, in words, and boxes of rates that somebody states, by hand."""

import contextlib
import math
import re
from fractions import Fraction

import numpy as np
import pytest

from verifier.analysis.intervals import tiers as module
from verifier.analysis.intervals.tiers import (
    BoundsBasis,
    BoxRecord,
    LargestColumn,
    LargestDrive,
    RateBox,
    holds_at_every_look,
    log_e_value,
    read_rate_box,
)
from verifier.base.errors import InputError, UsageError
from verifier.perception.confusion import ConfusionMatrices
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.matrices import Memory

F = Fraction
RECORD = BoxRecord("b.toml", "0" * 64, "a data sheet")
EIGHT = LargestDrive(False, (LargestColumn(0, 1, 8),))


def basis(tier, **more):
    return BoundsBasis(tier=tier, **{"weights": "item", "level": 0.95, "chances": 4, **more})


@pytest.mark.parametrize(
    ("given", "name", "condition", "conditional", "every_look"),
    [
        ({"tier": "independent_drives", "largest_drive": EIGHT}, "95 % confidence bounds (independent drives)",
         "drives are independent and none holds more than 8 items of a column", False, False),
        ({"tier": "independent_drives", "largest_drive": LargestDrive(
            True, (LargestColumn(0, 1, 8), LargestColumn(1, 1, 8)))},
         "95 % confidence bounds (independent drives)",
         "drives are independent and none holds more than 8 items of a column", False, True),
        ({"tier": "independent_drives", "weights": "track", "largest_drive": LargestDrive(
            False, (LargestColumn(0, 1, 8), LargestColumn(1, 1, 3), LargestColumn(2, 1, 5)))},
         "95 % confidence bounds (independent drives)", "drives are independent and none holds more encounters of a "
         "column than the largest seen (3 to 8, by column)", False, False),
        ({"tier": "independent_drives", "weights": "drive", "largest_drive": EIGHT, "level": 0.9},
         "90 % confidence bounds (independent drives)", "drives are independent", False, True),
        ({"tier": "independent_drives", "largest_drive": LargestDrive(False, ())},
         "95 % confidence bounds (independent drives)", "drives are independent", False, False),
        ({"tier": "independent_drives", "unit": "track", "largest_drive": EIGHT},
         "95 % confidence bounds (independent tracks, for the mean matrix)", "tracks are independent and none holds "
         "more than 8 items of a column, for the mean matrix over tracks", True, False),
        ({"tier": "approximate"}, "95 % confidence bounds (approximate: Bayesian bootstrap)",
         "drives are independent (approximate: Bayesian bootstrap)", True, False),
        ({"tier": "icc_at_most", "icc_at_most": 0.25}, "95 % confidence bounds (if the ICC is at most 0.25)",
         "items are independent or correlated within a drive with ICC at most 0.25", True, False),
        ({"tier": "icc_at_most", "icc_at_most": 1 / 3}, "95 % confidence bounds (if the ICC is at most 0.3333333333)",
         "items are independent or correlated within a drive with ICC at most 0.3333333333", True, False),
        ({"tier": "independent_items"}, "95 % confidence bounds (if items are independent)", "items are independent",
         True, False),
        ({"tier": "anytime"}, "95 % confidence bounds (at every look, if each bin, class and context has one rate)",
         "each bin, class and context has one rate for all objects and drives, whatever was reported before",
         True, True),
        ({"tier": "rate_box", "box": RECORD}, "bounds (of a stated rate box, not of data)",
         "every report stays in the stated rate box of a data sheet", True, True),
        ({"tier": "independent_items", "annotation_error": 1 / 3, "shift": 2 / 3},
         "95 % confidence bounds (if items are independent)",
         "items are independent, at most a share of 0.3333333333 of a column is annotated wrongly or missing, and "
         "the rate of each observation shifts by at most 0.6666666667", True, False),
    ],
)  # fmt: skip
def test_what_travels_with_bounds(given, name, condition, conditional, every_look):
    found = basis(**given)
    assert (found.name, found.condition) == (name, condition)
    assert (found.conditional, found.every_look) == (conditional, every_look)


def test_what_a_basis_has_if_nobody_says_so():
    plain = basis("independent_items")
    assert (plain.looks, plain.shift, plain.annotation_error, plain.unit, plain.families) == (1, 0, 0, "drive", 1)
    assert not holds_at_every_look("independent_drives", None, "item")
    assert [holds_at_every_look(tier, None, "item") for tier in ("anytime", "rate_box", "approximate")] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tier": "icc_at_most"}, "an ICC belongs"), ({"tier": "anytime", "icc_at_most": 0.5}, "an ICC belongs"),
        ({"tier": "rate_box"}, "a box belongs"), ({"tier": "anytime", "box": RECORD}, "a box belongs"),
        ({"tier": "independent_drives"}, "a largest drive belongs"),
        ({"tier": "anytime", "largest_drive": EIGHT}, "a largest drive belongs"),
    ],
)  # fmt: skip
def test_what_does_not_belong_to_a_tier(given, message):
    with pytest.raises(ValueError, match=message):
        basis(**given)


# ------------------------------------------------------------------------------------------------------------ boxes

EDGES = (0.0, 10.0, 20.0, math.inf)


def matrices_of(counts=None, memory=None, bins=3):
    """Labels empty and a; of each bin hits of items."""
    total = bins if memory is None else bins * memory.contexts.count
    table = np.zeros((total, 2, 2), dtype=np.int64)
    for at, (hits, items) in enumerate(counts or [(0, 0)] * total):
        table[at, :, 1] = items - hits, hits
    return ConfusionMatrices(
        "class",
        (frozenset(), frozenset("a")),
        np.array(EDGES[-bins - 1 :]) if bins < 3 else np.array(EDGES),
        table,
        memory=memory,
    )


def remembering(bins=1):
    return Memory(Contexts("run", 1), np.zeros((bins, 2, 2), dtype=np.int64), np.array([False, True]))


def entry(rate, predicted="a", true="a", **more):
    told = "".join(f"{key} = {value}\n" for key, value in more.items())
    return f'[[rates]]\ntrue = "{true}"\npredicted = "{predicted}"\nrate = {rate}\n{told}'


def box_of(tmp_path, *entries, matrices=None, tested=(), source='"a sheet"'):
    path = tmp_path / "b.toml"
    path.write_text(f"source = {source}\n" + "".join(entries))
    return read_rate_box(str(path), matrices or matrices_of(), tested)


@pytest.mark.parametrize(
    ("place", "bins"),
    [
        ({}, [0, 1, 2]),
        ({"distance_m": [0, 20]}, [0, 1]),
        ({"distance_m": [10, 20]}, [1]),
        ({"distance_m": [0, 10]}, [0]),
    ],
)
def test_an_entry_speaks_of_the_bins_that_it_names(place, bins, tmp_path):
    box = box_of(tmp_path, entry("[0.25, 0.75]", **place))
    for at in range(3):
        ends = (F(1, 4), F(3, 4)) if at in bins else (0, 1)
        assert (box.lower[at, 1, 1], box.upper[at, 1, 1]) == ends
        assert box.lower[at, 0].tolist() == [0, 0]
        assert box.upper[at, 0].tolist() == [1, 1]
    assert box.record.source == "a sheet"
    assert len(box.record.sha256) == 64


def test_entries_of_one_rate_hold_together(tmp_path):
    box = box_of(
        tmp_path, entry("[0.25, 0.75]"), entry("[0.5, 1]", distance_m=[0, 10]), entry(0.5, distance_m=[10, 20])
    )
    assert [(box.lower[at, 1, 1], box.upper[at, 1, 1]) for at in range(3)] == [
        (F(1, 2), F(3, 4)), (F(1, 2), F(1, 2)), (F(1, 4), F(3, 4)),
    ]  # fmt: skip
    held = box.holding(np.full((3, 2, 2), 0.125), np.array([[False, True], [False, False], [False, False]]))
    assert held.lower[0].tolist() == [[0, F(1, 8)], [0, F(1, 8)]]
    assert held.upper[0].tolist() == [[1, F(1, 8)], [1, F(1, 8)]]
    assert (held.upper[1:] == box.upper[1:]).all()
    assert box.lower[0, 1, 1] == F(1, 2)
    assert held.record is box.record
    assert isinstance(held, RateBox)


def test_entries_speak_of_contexts(tmp_path):
    matrices = matrices_of(memory=remembering(), bins=1)
    names = matrices.memory.contexts.names
    box = box_of(tmp_path, entry(0.5, context=f'"{names[1]}"'), matrices=matrices)
    assert [box.lower[at, 1, 1] for at in range(len(names))] == [
        F(1, 2) if at == 1 else 0 for at in range(len(names))
    ]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([entry(0.5, distance_m=[0, 15])], "expected [low, high] at edges of the bins (0, 10, 20, inf)"),
        ([entry(0.5, distance_m=[10, 10])], "expected [low, high] at edges"),
        ([entry(0.5, distance_m=[0])], "expected [low, high] at edges"),
        ([entry(0.5, distance_m=[20, 0])], "expected [low, high] at edges"),
        ([entry(0.5, distance_m=[0, 10, 20])], "expected [low, high] at edges"),
        ([entry(1.5)], "expected a number from 0 to 1, got 1.5"),
        ([entry("[0.5, 1.5]")], "expected a number from 0 to 1, got 1.5"),
        ([entry(0.5, true="b")], "expected one of empty, a, got 'b'"),
        ([entry("[0.5]")], "or two in order"), ([entry("[0.5, 0.25]")], "or two in order"),
        ([entry("[0, 0.5, 1]")], "or two in order"), ([entry(0.5, true='b"\nx = "')], "unknown key"),
        ([entry(0.5, context='"start"')], "the detector has no memory here"),
        ([entry("[0, 0.25]"), entry("[0.5, 1]")], "no rate is left in [0, 10) m: other entries"),
        ([entry("[0, 0.25]"), entry("[0.25, 1]"), entry("[0, 0.5]", predicted="empty")],
         "no rates within these ends sum to 1"),
        ([entry("[0.75, 1]"), entry("[0.5, 1]", predicted="empty")], "these ends sum to 1 in [0, 10) m"),
    ],
)  # fmt: skip
def test_boxes_that_cannot_be(entries, message, tmp_path):
    with pytest.raises(InputError, match=re.escape(message)):
        box_of(tmp_path, *entries)


def test_ends_may_just_sum_to_1(tmp_path):
    box = box_of(tmp_path, entry("[0.25, 0.5]"), entry("[0.5, 0.75]", predicted="empty"))
    assert (box.lower[0, :, 1].tolist(), box.upper[0, :, 1].tolist()) == ([F(1, 2), F(1, 4)], [F(3, 4), F(1, 2)])
    box_of(tmp_path, entry("[0, 0.5]"), entry("[0, 0.5]", predicted="empty"))
    box_of(tmp_path, entry("[0.5, 1]"), entry("[0.5, 1]", predicted="empty"))


def test_ends_may_be_equal_and_a_box_of_the_only_bin(tmp_path):
    alone = ConfusionMatrices(
        "class", (frozenset(), frozenset("a")), np.array([0.0, 10.0]), np.zeros((1, 2, 2), dtype=np.int64)
    )
    box = box_of(tmp_path, entry("[0.5, 0.5]", distance_m=[0, 10]), matrices=alone)
    assert (box.lower[0, 1, 1], box.upper[0, 1, 1]) == (F(1, 2), F(1, 2))
    assert "Fraction" not in repr(box)


@pytest.mark.parametrize("refused", [True, False])
def test_just_enough_evidence_contradicts_a_box(refused, tmp_path, monkeypatch):
    enough = math.log(2 * 3 / 0.01)
    told = np.full(3, enough if refused else math.nextafter(enough, 0))
    monkeypatch.setattr(module, "log_e_value", lambda *_: told)
    with pytest.raises(UsageError, match="the data contradict it") if refused else contextlib.nullcontext():
        box_of(tmp_path, entry(0.5), tested=[matrices_of([(5, 10)] * 3)])


def test_so_many_entries_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_ENTRIES", 2)
    box_of(tmp_path, *[entry(0.5)] * 2)
    with pytest.raises(InputError, match="expected at most 2 entries, got 3"):
        box_of(tmp_path, *[entry(0.5)] * 3)
    with pytest.raises(InputError, match="rates"):
        box_of(tmp_path, "rates = []\n")
    (tmp_path / "b.toml").write_text(entry(0.5))
    with pytest.raises(InputError, match="missing key 'source'"):
        read_rate_box(str(tmp_path / "b.toml"), matrices_of(), ())


def log_e(hits, items, most):
    """By sums of the incomplete beta function, for a prior that is Beta(1/2, 1/2) above `most`."""
    grid = np.linspace(math.asin(math.sqrt(most)), math.pi / 2, 200_001)  # q = sin(t)^2, uniform in t
    middle = (grid[1:] + grid[:-1]) / 2
    q = np.sin(middle) ** 2
    bets = hits * np.log(q / most) + (items - hits) * np.log((1 - q) / (1 - most))
    return math.log(np.exp(bets).mean())


@pytest.mark.parametrize(
    ("hits", "items", "most"), [(8, 10, 0.5), (3, 10, 0.5), (60, 60, 0.9), (0, 5, 0.2), (0, 0, 0.3)]
)
def test_bets_against_a_rate(hits, items, most):
    found = log_e_value(np.array([hits, hits]), np.array([items, items]), np.array([most, 1.0]))
    assert found[0] == pytest.approx(log_e(hits, items, most), abs=1e-6)
    assert found[1] == -np.inf


@pytest.mark.parametrize("side", ["above", "below"])
def test_data_contradict_a_box_from_200_to_1_for_each_stated_rate_on(side, tmp_path, monkeypatch):
    """Three bins are stated; of the second too much, or too little, is reported, and that is just enough, or not."""
    hits, rate = (18, "[0, 0.5]") if side == "above" else (2, "[0.5, 1]")
    matrices = matrices_of([(5, 10), (hits, 20), (0, 0)])
    evidence = log_e(18, 20, 0.5)
    for factor, refused in ((0.999, True), (1.001, False)):
        monkeypatch.setattr(module, "CONTRADICTED_BELOW", 2 * 3 / math.exp(evidence) / factor)
        if not refused:
            box_of(tmp_path, entry(rate), tested=[matrices])
            continue
        with pytest.raises(UsageError) as caught:
            box_of(tmp_path, entry(rate), tested=[matrices])
        told = str(caught.value)
        ends = "0 to 0.5" if side == "above" else "0.5 to 1"
        assert f"in [10, 20) m {hits} of 20 items of a were reported as a, and {ends} is stated" in told
        power = re.search(r"\(e-value 10\^(\S+) for 3 rates\)", told)[1]
        assert float(power) == pytest.approx(evidence / math.log(10), rel=0.01)


def test_every_table_that_is_tested_counts(tmp_path):
    """A table by contexts has three parts of each bin: of three bins twelve rates are stated in both tables."""
    whole = matrices_of([(5, 10)] * 3)
    parts = matrices_of([(5, 10)] * 8 + [(0, 40)], memory=remembering(3))
    assert parts.bin_count == 9
    with pytest.raises(UsageError, match=r"0 of 40 items of a were reported as a, .* for 12 rates"):
        box_of(tmp_path, entry("[0.5, 1]"), tested=[whole, parts])
    box_of(tmp_path, entry("[0.5, 1]", distance_m=[0, 20]), tested=[whole, parts])
