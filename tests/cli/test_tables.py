"""The table of `verify run`, from results written down here."""

from fractions import Fraction

import pytest

from verifier.checking.verdicts import Verdict
from verifier.cli.tables import bound_text, probability_text, run_table
from verifier.evidence.rounding import interval_text
from verifier.results import InputFile, Point, RequirementResult, RunResult, Scenario, Sureness

SETTINGS = {
    "set": {"vmax": "3"},
    "where": {},
    "initial": None,
    "canonical": True,
    "endless": False,
    "exact": False,
    "score_threshold": None,
    "empty_columns": "error",
    "false_alarms": "as_counted",
    "round_transitions": None,
    "verdict_from": "point",
    "confidence": None,
}
CONFIDENCE = {
    "level": 0.95,
    "interval": "credible",
    "reason": "posterior, as asked for",
    "prior": "jeffreys",
    "draws": 1000,
    "seed": 0,
    "semantics": "every_state",
    "events": 3,
}


def point(probability, environment="ped", verdict=Verdict.NO_TARGET, exact=None, width=1e-13, sure=None):
    scenario = Scenario("careful", {}, environment, {"v": 1})
    return Point(scenario, probability, probability - width, probability + width, exact, probability, verdict, sure)


def sureness(lower, upper, least, most):
    ends = (lower, lower), (upper, upper)
    return Sureness(0.95, "credible", lower, upper, *ends, 1000, least, most, least, most, False)


def result(*requirements, title="a detector", confidence=None):
    inputs = (InputFile("spec", "a.ltl", "0" * 64),)
    return RunResult(
        title, inputs, SETTINGS | {"confidence": confidence}, requirements, {"storm": "2.0.0"}, ("a remark",)
    )


def requirement(*points, comparison="=", target=None):
    return RequirementResult("stops", "careful", "G a", comparison, target, points)


def test_a_requirement_without_a_target_shows_both_ends():
    table = run_table(result(requirement(point(0.25), point(0.75, "obs"))))
    rows = [line.split() for line in table.splitlines() if line.startswith("stops")]
    assert [(row[3], row[6], row[7]) for row in rows] == [("0.25", "min:", "ped"), ("0.75", "max:", "obs")]
    # The same number twice is one row, whatever its last digit.
    table = run_table(result(requirement(point(0.25), point(0.25 + 1e-16, "obs"))))
    assert sum(line.startswith("stops") for line in table.splitlines()) == 1


def test_a_requirement_with_a_target_shows_its_worst_scenario():
    points = (point(0.97, "obs", Verdict.SATISFIED), point(0.2, "ped", Verdict.VIOLATED))
    table = run_table(result(requirement(*points, comparison=">=", target=Fraction(19, 20))))
    (row,) = [line for line in table.splitlines() if line.startswith("stops")]
    assert row.split()[:4] == ["stops", ">=", "0.95", "0.2"]
    assert row.endswith("violated")
    points = (point(0.97, "obs", Verdict.VIOLATED), point(0.2, "ped", Verdict.SATISFIED))
    upper = run_table(result(requirement(*points, comparison="<=", target=Fraction(19, 20))))
    assert " 0.97 " in next(line for line in upper.splitlines() if line.startswith("stops"))


def test_the_worst_scenario_is_the_one_with_the_worst_verdict():
    # The more probable one has the wider bounds, and they reach below the target.
    points = (point(0.96, "obs", Verdict.SATISFIED), point(0.97, "ped", Verdict.INCONCLUSIVE))
    table = run_table(result(requirement(*points, comparison=">=", target=Fraction(19, 20))))
    (row,) = [line for line in table.splitlines() if line.startswith("stops")]
    assert (row.split()[3], row.split()[-1]) == ("0.97", "inconclusive")


def test_intervals_and_guaranteed_bounds_stand_beside_the_probability():
    sure = sureness(0.1395, 0.2621, 0.12001, 0.2917)
    table = run_table(result(requirement(point(0.196203, sure=sure)), confidence=CONFIDENCE))
    header, _, row = table.splitlines()[4:7]
    assert [each.strip() for each in header.split("  ") if each] == [
        "requirement",
        "target",
        "P",
        "95 % credible",
        "95 % guaranteed",
        "worst scenario",
        "verdict",
    ]
    assert " 0.196203  [0.139, 0.263]  [0.12, 0.292] " in row
    assert "Credible intervals from 1000 draws of the matrices (posterior, as asked for)." in table
    assert "Each is off by at most 1.0e-13 numerically." in table


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        (0.0, 1.0, "[0, 1]"),
        (0.19620253, 0.19620253, "[0.196, 0.197]"),  # outwards
        (0.0000123456, 0.5, "[0.0000123, 0.5]"),
        (0.25, 0.99991234, "[0.25, 0.9999124]"),  # as many digits as 1 minus the number needs
        (5e-324, 1 - 2**-53, "[5.00e-324, 0.9999999999999999]"),
    ],
)
def test_ends_of_intervals_are_rounded_outwards(lower, upper, text):
    assert interval_text(lower, upper) == text


def test_choices_that_are_not_the_default_stand_at_the_top():
    assert run_table(result(requirement(point(0.5)))).splitlines()[2] == "with vmax = 3, canonical"


@pytest.mark.parametrize(
    ("probability", "target", "text"),
    [
        (0.9999999, Fraction(1), "0.9999999"),
        # The double nearest to this decimal lies below it.
        (0.99999999, Fraction(99999999, 10**8), "0.99999998999999995"),
        (0.25, Fraction(1, 2), "0.25"),
        (0.123456789, None, "0.123457"),
        # Not certain, so not 1.
        (0.99999961, Fraction(999, 1000), "0.99999961"),
        (0.99999961, None, "0.99999961"),
        (1.0, None, "1"),
    ],
)
def test_enough_digits_to_tell_a_probability_from_its_target(probability, target, text):
    assert probability_text(point(probability), target) == text


def test_exact_and_certain_values_are_told_apart():
    assert probability_text(point(31 / 158, exact=Fraction(31, 158))) == "31/158 = 0.196203"
    assert bound_text(point(31 / 158, exact=Fraction(31, 158))) == "exact"
    assert bound_text(point(1.0, width=0.0)) == "certain"
    assert bound_text(point(0.5)) == "+- 1.0e-13"


def test_nothing_reaches_the_terminal_raw():
    table = run_table(result(requirement(point(0.5)), title="clear\x1b[2J\nverdict: satisfied\ud800"))
    assert table.splitlines()[0] == "clear\\x1b[2J\\nverdict: satisfied\\ud800"
    assert "\x1b" not in table
