"""Where a criterion breaks along a disturbance, and which saw it first."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import InputError
from verifier.base.statistics import clopper_pearson
from verifier.checking.verdicts import Verdict, verdict_of
from verifier.robustness.assessment.degradation import Degradation, Level, SystemModelRun, in_order, surely_before
from verifier.robustness.assessment.reader import read_assessment
from verifier.robustness.brackets import Criterion, break_of, gaps, middle

LEVELS = (math.inf, 800.0, 400.0, 200.0)


def criterion(*margins, name="c", limit="P >= 0.95"):
    unknown = (None,) * len(margins)
    return Criterion("requirement", name, limit, margins, margins, unknown, unknown)


def test_a_break_is_a_bracket_of_measured_levels_and_the_physical_scale_halves_it():
    """Between 20 km and 60 m a straight line in metres would say 14,225 m; half of 1/visibility is 119.6 m."""
    found = break_of(criterion(0.05, -0.12), (20000.0, 60.0), "linear")
    assert (found.holds_at, found.fails_at, found.can_narrow) == (20000, 60, True)
    assert middle(20000.0, 60.0, "reciprocal") == 119.6  # 2 / (1/20000 + 1/60) = 119.641...
    assert middle(800.0, 200.0, "log") == 400
    assert middle(20000.0, 60.0, "linear") == 10030
    assert middle(math.inf, 800.0, "reciprocal") == 1600
    assert middle(math.inf, 800.0, "linear") is None
    assert not break_of(criterion(0.1, -0.1), (math.inf, 800.0), "linear").can_narrow  # nothing lies halfway


def answers(chance, items, level):
    """A criterion P >= .5 at levels, of a share that is measured on so many items, and its exact interval."""
    hits = np.array([round(chance(at) * items) for at in level])
    low, high = clopper_pearson(hits, np.full(len(level), items), 0.025)
    verdicts = tuple(verdict_of(*ends, ">=", Fraction(1, 2)) for ends in zip(low, high, strict=True))
    shares = (hits / items).tolist()
    margins, ends = tuple(each - 0.5 for each in shares), tuple(zip(low, high, strict=True))
    return Criterion("requirement", "c", "P >= 0.5", tuple(shares), margins, verdicts, ends)


def halved(chance, items, start, scale, most=60):
    """All levels after halving the widest gap again and again, and what is found there."""
    level = list(start)
    for _ in range(most):
        found = answers(chance, items, level)
        wanted = gaps(found, level, scale)
        if not wanted:
            return level, found
        level.append(middle(*max(wanted, key=wanted.get), scale))
        level.sort(reverse=start[0] > start[-1])
    return level, answers(chance, items, level)


@pytest.mark.parametrize("items", [20, 200, 2000])
@pytest.mark.parametrize("breaks_m", [75.0, 206.0, 1500.0])
def test_halving_ends_where_the_items_decide_nothing(items, breaks_m):
    """The stretch of visibility that n items leave open is solved for from the exact interval, and enclosed."""

    def chance(level):
        return 1 / (1 + math.exp(4 * (breaks_m / level - 1)))

    level, found = halved(chance, items, (20000.0, 60.0), "reciprocal")
    told = break_of(found, level, "reciprocal")
    assert not told.can_narrow
    assert len(level) < 40
    # Of which shares n items decide nothing: hits for which the interval holds 1/2.
    shares = np.arange(items + 1)
    low, high = clopper_pearson(shares, np.full(items + 1, items), 0.025)
    undecided = shares[(low < 0.5) & (high >= 0.5)]

    def extinction(hits):  # where the share is hits / n
        return (1 + math.log(items / hits - 1) / 4) / breaks_m

    first, last = extinction(undecided[-1] + 0.5), extinction(undecided[0] - 0.5)
    assert 1 / told.sure_until <= first
    assert 1 / told.sure_at >= last
    assert (1 / told.sure_at - 1 / told.sure_until) <= 1.6 * (last - first)  # no more than a quarter to each side
    assert {Verdict.INCONCLUSIVE} == {
        verdict for at, verdict in zip(level, found.verdicts, strict=True) if told.sure_at < at < told.sure_until
    }


def test_many_items_leave_a_bracket_that_can_be_halved_for_ever():
    level, found = halved(lambda at: float(at > 200), 10**9, (800.0, 100.0), "reciprocal", most=12)
    told = break_of(found, level, "reciprocal")
    assert told.fails_at <= 200 <= told.holds_at
    assert 1 / told.fails_at - 1 / told.holds_at < (1 / 100 - 1 / 800) / 2**11
    assert told.can_narrow


def test_nothing_is_halved_beyond_the_first_confirmed_failure_or_where_nothing_fails():
    """A share that falls, rises and falls again: what happens after the first failure is not looked for."""
    strange = {1.0: 0.9, 2.0: 0.1, 3.0: 0.9, 4.0: 0.1}
    assert list(gaps(answers(strange.get, 1000, list(strange)), list(strange), "linear")) == [(1, 2)]
    assert gaps(answers(lambda at: 0.9, 1000, [1.0, 2.0]), [1.0, 2.0], "linear") == {}
    assert gaps(answers(lambda at: 0.51, 10, [1.0, 2.0]), [1.0, 2.0], "linear") == {}  # open, and holds
    assert gaps(criterion(None, -0.1), (1.0, 2.0), "linear") == {}


def test_what_never_fails_and_what_fails_at_once():
    found = break_of(criterion(0.1, 0.1, 0.0, 0.1), LEVELS, "linear")
    assert (found.fails_at, found.holds_at) == (None, 200)
    found = break_of(criterion(-0.1, -0.1, -0.1, -0.2), LEVELS, "linear")
    assert (found.holds_at, found.fails_at) == (None, math.inf)


def test_a_margin_of_zero_holds_unless_the_comparison_is_strict():
    assert break_of(criterion(0.1, 0.0), LEVELS[1:3], "linear").fails_at is None
    assert break_of(criterion(0.1, 0.0, limit="P > 0.95"), LEVELS[1:3], "linear").fails_at == 400


def test_the_first_failure_counts_and_recovery_is_told():
    found = break_of(criterion(0.1, -0.1, 0.1, -0.1), (1.0, 2.0, 3.0, 4.0), "linear")
    assert (found.holds_at, found.fails_at, found.recovers) == (1, 2, True)
    assert not break_of(criterion(0.1, -0.1, -0.1, -0.1), (1.0, 2.0, 3.0, 4.0), "linear").recovers


def test_levels_without_a_value_are_passed_over_and_counted():
    found = break_of(criterion(0.1, None, -0.1, None), (1.0, 2.0, 3.0, 4.0), "linear")
    assert (found.holds_at, found.fails_at, found.undefined) == (1, 3, 2)
    found = break_of(criterion(None, None), (1.0, 2.0), "linear")
    assert (found.fails_at, found.holds_at, found.undefined) == (None, None, 2)


def test_only_tested_levels_say_who_was_first():
    levels = (1.0, 2.0, 3.0)
    criteria = [
        criterion(*margins, name=name)
        for name, margins in {
            "late": (0.1, 0.1, -0.1),
            "early": (0.1, -0.1, -0.1),
            "never": (0.1, 0.1, 0.1),
            "as early": (0.1, -0.9, -0.9),
        }.items()
    ]
    breaks = [break_of(each, levels, "linear") for each in criteria]
    order = in_order(criteria, breaks, levels)
    assert [[each.name for each in group] for group in order] == [["early", "as early"], ["late"]]


@given(st.floats(1, 1e4), st.floats(1, 1e4), st.sampled_from(["linear", "log", "reciprocal"]))
def test_the_middle_lies_between_and_is_even_handed(mild, severe, scale):
    found = middle(mild, severe, scale)
    assert found == middle(severe, mild, scale)
    assert found is None or min(mild, severe) < found < max(mild, severe)


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
    return Criterion("metric", name, "", margins, margins, verdicts, (None,) * len(margins))


def test_a_failure_is_sure_where_its_verdict_says_so():
    found = break_of(judged("a", (0.1, -0.1, -0.4), (YES, OPEN, NO)), (1.0, 2.0, 3.0), "linear")
    assert (found.fails_at, found.sure_at, found.sure_until) == (2, 3, 1)
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
    assert [(each.earlier.name, each.later.name) for each in pairs] == [("early", "late")]
