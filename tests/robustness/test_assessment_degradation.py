"""Where a criterion breaks along a disturbance, and which saw it first."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import InputError
from verifier.checking.verdicts import Verdict
from verifier.robustness.assessment.definition import Assessment
from verifier.robustness.assessment.degradation import (
    Criterion,
    Degradation,
    Level,
    SystemModelRun,
    break_of,
    in_order,
    interpolated,
    surely_before,
)
from verifier.robustness.assessment.reader import read_assessment
from verifier.robustness.assessment.result import degradation_result

LEVELS = (math.inf, 800.0, 400.0, 200.0)


def criterion(*margins, name="c", strict=False):
    return Criterion("requirement", name, "P >= 0.95", margins, margins, strict=strict)


def test_a_break_is_bracketed_and_interpolated():
    # In 1/level the zero of .02 at 1/800 and -.05 at 1/400 lies 2/7 of the way: 1/800 + 2/7 / 800 = 9/5600.
    found = break_of(criterion(0.04, 0.02, -0.05, -0.35), LEVELS, "reciprocal")
    assert (found.holds_at, found.fails_at) == (800, 400)
    assert found.place == pytest.approx(5600 / 9)
    # Along the level itself: 800 - 2/7 * 400.
    assert break_of(criterion(0.04, 0.02, -0.05, -0.35), LEVELS, "linear").place == pytest.approx(800 - 800 / 7)
    # In the logarithm: 800 * 2^(-2/7).
    assert break_of(criterion(0.04, 0.02, -0.05, -0.35), LEVELS, "log").place == pytest.approx(800 * 2 ** (-2 / 7))


def test_from_infinite_visibility_only_the_reciprocal_interpolates():
    margins = criterion(0.1, -0.1, -0.2, -0.3)
    assert break_of(margins, LEVELS, "reciprocal").place == pytest.approx(1600)
    found = break_of(margins, LEVELS, "linear")
    assert (found.holds_at, found.fails_at, found.place) == (math.inf, 800, None)


def test_what_never_fails_and_what_fails_at_once():
    found = break_of(criterion(0.1, 0.1, 0.0, 0.1), LEVELS, "linear")
    assert (found.breaks, found.holds_at, found.place) == (False, 200, None)
    found = break_of(criterion(-0.1, -0.1, -0.1, -0.2), LEVELS, "linear")
    assert (found.breaks, found.holds_at, found.fails_at, found.place) == (True, None, math.inf, None)


def test_a_margin_of_zero_holds_unless_the_comparison_is_strict():
    assert not break_of(criterion(0.1, 0.0), LEVELS[1:3], "linear").breaks
    found = break_of(criterion(0.1, 0.0, strict=True), LEVELS[1:3], "linear")
    assert (found.fails_at, found.place) == (400, 400)
    # The line leaves 0 at the mild level itself.
    assert break_of(criterion(0.0, -1.0), LEVELS[1:3], "linear").place == 800


def test_the_first_failure_counts_and_recovery_is_told():
    found = break_of(criterion(0.1, -0.1, 0.1, -0.1), (1.0, 2.0, 3.0, 4.0), "linear")
    assert (found.place, found.recovers) == (1.5, True)
    assert not break_of(criterion(0.1, -0.1, -0.1, -0.1), (1.0, 2.0, 3.0, 4.0), "linear").recovers


def test_levels_without_a_value_are_passed_over_and_counted():
    found = break_of(criterion(0.1, None, -0.1, None), (1.0, 2.0, 3.0, 4.0), "linear")
    assert (found.holds_at, found.fails_at, found.place, found.undefined) == (1, 3, 2, 2)
    found = break_of(criterion(None, None), (1.0, 2.0), "linear")
    assert (found.breaks, found.holds_at, found.undefined) == (False, None, 2)


def test_only_tested_levels_say_who_was_first():
    levels = (1.0, 2.0, 3.0)
    breaks = [
        break_of(criterion(*margins, name=name), levels, "linear")
        for name, margins in {
            "late": (0.1, 0.1, -0.1),
            "early": (0.1, -0.1, -0.1),
            "never": (0.1, 0.1, 0.1),
            "as early": (0.1, -0.9, -0.9),
        }.items()
    ]
    assert [[each.name for each in group] for group in in_order(breaks, levels)] == [["early", "as early"], ["late"]]


margins = st.floats(1e-6, 1)


@given(st.floats(1, 1e4), st.floats(1, 1e4), margins, margins, st.sampled_from(["linear", "log", "reciprocal"]))
def test_the_interpolated_place_lies_within_its_bracket(mild, severe, good, bad, scale):
    place = interpolated(mild, good, severe, -bad, scale)
    low, high = min(mild, severe), max(mild, severe)
    assert low * (1 - 1e-9) <= place <= high * (1 + 1e-9)


@given(st.floats(1, 100), margins, margins)
def test_where_the_margin_is_linear_the_place_is_exact(mild, good, bad):
    """margin(x) = good - (good + bad)(x - mild) is 0 at mild + good / (good + bad)."""
    assert interpolated(mild, good, mild + 1, -bad, "linear") == pytest.approx(mild + good / (good + bad))


def levels(*at, **more):
    return tuple(Level(each, performance={"AP": Fraction(1, 2)}, **more) for each in at)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"levels": levels(1.0)}, "at least two levels"),
        ({"levels": levels(1.0, 3.0, 2.0)}, "from the mildest"),
        ({"levels": levels(1.0, 1.0)}, "from the mildest"),
        ({"levels": levels(1.0, math.nan)}, "mildest|not a number"),
        ({"levels": levels(0.0, 1.0), "scale": "log"}, "above 0"),
        ({"allowed_change": {}}, "nothing is asked"),
        ({"allowed_change": {"recall": Fraction(0)}}, "no value of recall"),
        ({"run": SystemModelRun("a.ltl")}, "no confusion"),
        ({"levels": levels(1.0, 2.0, pairs="a.csv")}, "a file of pairs"),
    ],
)
def test_degradations_that_cannot_be(more, reason):
    with pytest.raises(ValueError, match=reason):
        Degradation(
            **{
                "parameter": "p",
                "unit": "",
                "levels": levels(1.0, 2.0),
                "allowed_change": {"AP": Fraction(0)},
                **more,
            }
        )


def test_a_result_needs_a_degradation():
    with pytest.raises(ValueError, match="no degradation"):
        degradation_result(Assessment("k", "t"), ())


TEXT = """\
[systems.car.degradation]
parameter = "visibility"
unit = "m"
scale = "reciprocal"
allowed_change = { AP = 0.05 }

[[systems.car.degradation.levels]]
at = inf
performance = { AP = 0.5 }

[[systems.car.degradation.levels]]
at = 100
performance = { AP = 0.4 }
"""


def test_it_is_read(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(TEXT)
    found = read_assessment(path).assessments[0].degradation
    assert [each.at for each in found.levels] == [math.inf, 100]
    assert found.allowed_change == {"AP": Fraction(1, 20)}


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('"reciprocal"', '"recip"', 4, "expected one of linear, log, reciprocal"),
        ("at = inf", "at = nan", 8, "expected a finite number"),
        ("at = inf", "at = -inf", 8, "expected a finite number"),
        ("at = inf", 'at = "inf"', 8, "expected a finite number"),
        ("at = 100", "at = -100", 1, "above 0"),
        ("AP = 0.4 ", "AP = 1.4 ", 13, "performance.AP: expected a number from 0 to 1"),
        ("allowed_change = { AP = 0.05 }\n", "", 1, "nothing is asked"),
        ("allowed_change = { AP", "allowed_change = { AR1", 1, "level inf has no value of AR1"),
        ("allowed_change", 'run = { planner = "p" }\nallowed_change', 5, "missing key 'spec'"),
        ("allowed_change", 'run = { spec = "s.ltl" }\nallowed_change', 1, "no confusion"),
        ("allowed_change", 'run = { spec = "s", empty_columns = "x" }\nallowed_change', 5, "expected one of error"),
        ("allowed_change", "collision = { distance_m = 0 }\nallowed_change", 5, "missing key 'speed_mps'"),
        (
            "allowed_change",
            "collision = { distance_m = 0, speed_mps = 1, deceleration_mps2 = 1, reaction_s = 0, at_most = 0 }\n"
            "allowed_change",
            5,
            "distance_m: expected a number above 0",
        ),
        (
            "allowed_change",
            'trade_off = { detector = "d", metric = "m" }\nallowed_change',
            5,
            "missing key 'at_least'",
        ),
    ],
)
def test_bad_degradations(tmp_path, old, new, line, message):
    path = tmp_path / "a.toml"
    assert old in TEXT
    path.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(InputError) as found:
        read_assessment(path)
    assert message in str(found.value)
    assert f"a.toml:{line}:" in str(found.value)


# --- how sure that is ---------------------------------------------------------------------------------------------

YES, NO, OPEN = Verdict.SATISFIED, Verdict.VIOLATED, Verdict.INCONCLUSIVE


def judged(name, margins, verdicts):
    return Criterion("metric", name, "", margins, margins, verdicts)


def test_a_failure_is_sure_where_its_verdict_says_so():
    found = break_of(judged("a", (0.1, -0.1, -0.4), (YES, OPEN, NO)), (1.0, 2.0, 3.0), "linear")
    assert (found.fails_at, found.sure_at) == (2, 3)
    assert break_of(judged("a", (0.1, -0.1, -0.4), (YES, OPEN, OPEN)), (1.0, 2.0, 3.0), "linear").sure_at is None
    assert break_of(criterion(0.1, -0.1), (1.0, 2.0), "linear").sure_at is None


def test_what_surely_fails_before_what():
    early = judged("early", (0.1, -0.1, -0.2), (YES, NO, NO))
    luck = judged("luck", (0.1, -0.1, -0.2), (YES, OPEN, NO))
    late = judged("late", (0.1, 0.1, -0.2), (YES, YES, NO))
    unsure = judged("unsure", (0.1, 0.1, -0.2), (OPEN, YES, NO))
    never = judged("never", (0.1, 0.1, 0.1), (YES, YES, YES))
    given_only = criterion(0.1, 0.1, -0.2)
    pairs = surely_before([late, early, luck, unsure, never, given_only])
    assert [(one.name, other.name) for one, other in pairs] == [("early", "late")]
