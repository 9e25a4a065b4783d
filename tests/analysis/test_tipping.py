"""How large a correlation or a shift may be before a verdict falls: against ends computed another way."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from drive_tables import recall_counts, sequences_of
from recall_chains import measured_of, product_of_recalls
from scipy.stats import beta

from verifier.analysis import tipping
from verifier.analysis.confidence import data_of_run
from verifier.analysis.planning import Question, verdict_from
from verifier.analysis.settings import ConfidenceSettings
from verifier.analysis.tipping import TippingPoints, largest, last_standing, tipping_points, with_icc, with_shift
from verifier.checking.verdicts import Verdict

DRIVES = [(18, 20)] * 50
OBJECTIVE = product_of_recalls([0])


def data_for(settings, sequences=True):
    counts = recall_counts(*DRIVES)
    known = sequences_of(counts) if sequences else None
    return data_of_run([[OBJECTIVE]], measured_of(counts.sum(axis=0)), known, settings)


def test_the_largest_correlation_at_which_a_verdict_stands():
    data, question = data_for(ConfidenceSettings()), Question(0, ">=", Fraction(85, 100))
    found, _ = last_standing(OBJECTIVE, question, lambda icc: with_icc(data, icc))

    def lower_end(icc):
        effective = 1000 / (1 + 19 * float(icc))
        hits, misses = math.floor(0.9 * effective + 1e-9), math.ceil(0.1 * effective - 1e-9)
        return beta.ppf(0.025, hits, misses + 1)

    assert 0 < found < 1
    assert lower_end(found) >= 0.85 > lower_end(found + Fraction(1, 1000))


def test_a_correlation_is_looked_for_with_as_many_looks_as_were_asked_for():
    # Betting with a declared largest drive holds at every look and divides nothing; the other tier does not.
    data = data_for(ConfidenceSettings(largest_drive=20, looks=60))
    low = beta.ppf(0.025 / 60, 900, 101)
    for target, verdict in ((low - 1e-4, Verdict.SATISFIED), (low + 1e-4, Verdict.INCONCLUSIVE)):
        question = Question(0, ">=", Fraction(target))
        assert verdict_from(OBJECTIVE, with_icc(data, Fraction(0)), question)[1] is verdict


def test_the_largest_shift_at_which_a_verdict_stands():
    data, question = data_for(ConfidenceSettings(assume_independent_items=True)), Question(0, "<", Fraction(95, 100))
    found, _ = last_standing(OBJECTIVE, question, lambda shift: with_shift(data, shift))
    room = 0.95 - beta.ppf(0.975, 901, 100)
    assert found == pytest.approx(room, abs=1e-3)
    assert found <= room


def test_what_is_not_decided_has_no_tipping_point():
    data, question = data_for(ConfidenceSettings()), Question(0, ">=", Fraction(9, 10))
    assert last_standing(OBJECTIVE, question, lambda icc: with_icc(data, icc)) == (None, None)
    assert last_standing(OBJECTIVE, question, lambda shift: with_shift(data, shift)) == (None, None)


def test_what_always_stands():
    assert largest(lambda _: True) == 1


@pytest.mark.parametrize("threshold", [0, 1, 499, 500, 998, 999])
def test_the_last_step_that_stands_is_found(threshold):
    asked = []

    def stands_at(value):
        asked.append(value)
        return value * 1000 <= threshold

    assert largest(stands_at) == Fraction(threshold, 1000)
    assert len(asked) <= 12


def test_what_a_correlation_needs():
    with pytest.raises(ValueError, match="by drive"):
        with_icc(data_for(ConfidenceSettings(), False), Fraction(0))
    data = data_for(ConfidenceSettings(bounds="approximate", draws=500))
    with pytest.raises(ValueError, match="no intervals"):
        with_shift(data, Fraction(0))


NONE, HELD, FAILED = (None, None), (Fraction(1, 4), Verdict.SATISFIED), (Fraction(1, 8), Verdict.VIOLATED)


@pytest.mark.parametrize(
    ("by_icc", "by_shift", "drives", "expected"),
    [
        (HELD, FAILED, "item", TippingPoints(0.25, Verdict.SATISFIED, 0.125, Verdict.VIOLATED)),
        (NONE, FAILED, "item", TippingPoints(None, None, 0.125, Verdict.VIOLATED)),
        (HELD, NONE, "item", TippingPoints(0.25, Verdict.SATISFIED, None, None)),
        (NONE, NONE, "item", None),
        # A correlation within drives is asked for of items by drive alone.
        (HELD, FAILED, "track", TippingPoints(None, None, 0.125, Verdict.VIOLATED)),
        (HELD, FAILED, None, TippingPoints(None, None, 0.125, Verdict.VIOLATED)),
        (HELD, NONE, None, None),
    ],
)
def test_both_tipping_points_are_told_where_there_are_any(by_icc, by_shift, drives, expected, monkeypatch):
    data = data_for(ConfidenceSettings())
    data = replace(data, drives=None if drives is None else replace(data.drives, weights=drives))
    monkeypatch.setattr(
        tipping, "last_standing",
        lambda objective, question, assumed: by_icc if "with_icc" in assumed.__code__.co_names else by_shift,
    )  # fmt: skip
    assert tipping_points(OBJECTIVE, data, Question(0, ">=", Fraction(1, 2))) == expected


def test_a_tipping_point_belongs_to_a_verdict():
    for given in (
        (0.5, None, None, None),
        (None, Verdict.SATISFIED, None, None),
        (None, None, 0.5, None),
        (None, None, None, Verdict.SATISFIED),
    ):
        with pytest.raises(ValueError, match="belongs to a verdict"):
            TippingPoints(*given)


def test_intervals_of_a_correlation_and_of_a_shift():
    data = data_for(ConfidenceSettings(level=0.9, looks=4))
    families = replace(data, basis=replace(data.basis, families=2))
    found = with_icc(families, Fraction(1, 3))
    assert (found.tier, found.icc, found.alpha, found.largest) == (
        "icc_at_most",
        Fraction(1, 3),
        Fraction(1, 80),
        None,
    )
    assert found.drives is data.drives
    assert with_shift(data, Fraction(1, 8)).shift == 125_000_000
    assert with_shift(data, Fraction(1, 8)).alpha == data.intervals.alpha
    by_track = replace(data, drives=replace(data.drives, weights="track"))
    with pytest.raises(ValueError, match="needs items by drive"):
        with_icc(by_track, Fraction(0))


def test_the_verdict_at_0_is_that_which_stands(monkeypatch):
    """It stands up to 3/8, whichever it is; an open one does not stand."""
    for verdict in Verdict:
        monkeypatch.setattr(tipping, "verdict_from", lambda o, assumed, q, verdict=verdict: (None, verdict))
        monkeypatch.setattr(
            tipping,
            "stands",
            lambda o, assumed, q, told, verdict=verdict: told is verdict and assumed <= Fraction(3, 8),
        )
        decided = verdict in (Verdict.SATISFIED, Verdict.VIOLATED)
        found = last_standing(OBJECTIVE, Question(0, ">=", Fraction(1, 2)), lambda value: value)
        assert found == ((Fraction(3, 8), verdict) if decided else (None, None))
