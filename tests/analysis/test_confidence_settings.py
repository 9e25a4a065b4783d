"""Which ways of making intervals and bounds go together, and how they are asked for."""

import argparse
from fractions import Fraction

import pytest

from verifier.analysis import settings as module
from verifier.analysis.settings import (
    INTERVALS,
    ConfidenceSettings,
    ExplainSettings,
    check_draws,
    check_level,
    prior_weight,
)
from verifier.base.errors import UsageError

HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    "given",
    [
        {"level": 1e-9}, {"level": 1 - 1e-9}, {"largest_drive": 1}, {"looks": 1}, {"looks": 10**6},
        {"shift": Fraction(1)}, {"icc_at_most": Fraction(0)}, {"icc_at_most": Fraction(1)}, {"prior": 1e-6},
        {"prior": 1e6}, {"prior": "uniform"}, {"draws": 1}, {"draws": 10**9}, {"seed": 0}, {"seed": 2**70},
        {"bounds": "items", "assume_independent_items": True}, {"bounds": "items", "icc_at_most": HALF},
        {"bounds": "drives", "weights": "track"}, {"bounds": "approximate", "weights": "drive"},
        {"bounds": "units:drive", "weights": "track"}, {"bounds": "units:drive", "largest_drive": 4},
        {"weights": "track", "largest_drive": 4}, {"bounds": "units:track", "shift": HALF},
        {"bounds": "anytime", "shift": HALF},
    ],
)  # fmt: skip
def test_what_may_be_asked_for(given):
    ConfidenceSettings(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"level": 0.0}, "a level strictly between 0 and 1, such as 0.95, got 0.0"),
        ({"level": 1.0}, "a level strictly between"), ({"level": float("nan")}, "a level strictly between"),
        ({"interval": "exact"}, "unknown interval 'exact'"), ({"bounds": "all"}, "unknown bounds 'all'"),
        ({"weights": "frame"}, "unknown weights 'frame'"),
        ({"largest_drive": 0}, "a largest drive of at least one item, got 0"),
        ({"icc_at_most": Fraction(-1, 8)}, "lies between 0 and 1, got -0.125"),
        ({"icc_at_most": Fraction(9, 8)}, "lies between 0 and 1, got 1.125"),
        ({"looks": 0}, "expected 1 to 1000000 looks, got 0"), ({"looks": 10**6 + 1}, "looks, got 1000001"),
        ({"shift": Fraction(-1, 8)}, "at most 0 to 1, got -0.125"), ({"shift": Fraction(9, 8)}, "0 to 1, got 1.125"),
        ({"prior": 0.9e-6}, "a number from 1e-06 to 1e[+]06"), ({"prior": 1.1e6}, "unknown prior"),
        ({"prior": "flat"}, "unknown prior 'flat'; known: jeffreys, uniform"),
        ({"prior": None}, "unknown prior None"), ({"prior": float("nan")}, "unknown prior nan"),
        ({"prior": ""}, "unknown prior ''; known: jeffreys, uniform, or the weight of each label as a number"),
        ({"draws": 0}, "at least one draw, got 0"), ({"draws": True}, "at least one draw"),
        ({"draws": 1.5}, "at least one draw"),
        ({"draws": 10**9 + 1}, "at most 1000000000 draws"), ({"seed": -1}, "a whole number from 0 on, got -1"),
        ({"bounds": "drives", "icc_at_most": HALF}, "--bounds drives and --icc-at-most are different"),
        ({"bounds": "anytime", "assume_independent_items": True}, "--bounds anytime and --assume-independent-items"),
        ({"icc_at_most": HALF, "assume_independent_items": True}, "--icc-at-most and --assume-independent-items"),
        ({"bounds": "items", "weights": "drive"}, "--weights drive needs bounds by drives"),
        ({"bounds": "anytime", "weights": "track"}, "--weights track needs bounds by drives"),
        ({"assume_independent_items": True, "weights": "track"}, "needs bounds by drives"),
        ({"icc_at_most": HALF, "weights": "track"}, "needs bounds by drives"),
        ({"bounds": "units:track", "weights": "drive"}, "is about drives, and --bounds units:track is not"),
        ({"bounds": "units:frame", "weights": "track"}, "is about drives, and --bounds units:frame is"),
        ({"bounds": "items", "largest_drive": 4}, "--largest-drive is for bounds by drives"),
        ({"icc_at_most": HALF, "largest_drive": 4}, "--largest-drive is for"),
        ({"bounds": "approximate", "largest_drive": 4}, "--largest-drive is for"),
        ({"weights": "drive", "largest_drive": 4}, "--largest-drive is for"),
        ({"bounds": "approximate", "shift": HALF}, "--shift widens intervals of rates, and --bounds appr"),
    ],
)  # fmt: skip
def test_what_may_not_be_asked_for(given, message):
    with pytest.raises(UsageError, match=message):
        ConfidenceSettings(**given)


def test_what_is_asked_for_if_nobody_says_so():
    plain = ConfidenceSettings()
    assert (plain.level, plain.looks, plain.shift, plain.seed, plain.draws) == (0.95, 1, 0, 0, None)
    assert (plain.assume_independent_items, plain.largest_drive, plain.icc_at_most, plain.unit) == (
        False,
        None,
        None,
        None,
    )
    assert [ConfidenceSettings(bounds=f"units:{unit}").unit for unit in ("drive", "track", "frame")] == [
        "drive", "track", "frame",
    ]  # fmt: skip
    asked = ExplainSettings()
    assert (asked.patterns, asked.members, asked.full_paths, asked.rows, asked.level) == (5, 1, False, 10, 0.95)
    assert (asked.prior, asked.variables, asked.with_map) == (0.5, (), True)
    assert ExplainSettings(prior="uniform").prior == 1.0
    for name in ("patterns", "members", "rows"):
        ExplainSettings(**{name: 1})
        with pytest.raises(ValueError, match="expected at least one pattern, one path of it and one row"):
            ExplainSettings(**{name: 0})


def test_checks_of_single_values():
    assert check_level(0.5) == 0.5
    assert [check_draws(1), check_draws(7, 7), check_draws(10**12)] == [1, 7, 10**12]
    with pytest.raises(UsageError, match="expected at most 6 draws, got 7"):
        check_draws(7, 6)
    assert [prior_weight(prior) for prior in ("jeffreys", "uniform", "0.25", 2)] == [0.5, 1.0, 0.25, 2.0]
    assert [module._prior(text) for text in ("uniform", "0.25", "1e-300")] == ["uniform", 0.25, 1e-300]
    for text in ("0", "-1", "inf", "nan", "flat"):
        with pytest.raises(
            argparse.ArgumentTypeError, match=f"expected jeffreys, uniform or a number above 0, got '{text}'"
        ):
            module._prior(text)
    assert module._variables(" x, v") == ("x", "v")


def test_words_of_intervals():
    assert INTERVALS["credible"].condition("track") == "items are independent"
    assert INTERVALS["bootstrap"].condition("track") == "tracks are independent (approximate: Bayesian bootstrap)"
    assert INTERVALS["bootstrap"].assumed() == "drives are independent"
