"""The table of `verify run`, from results written down here."""

from fractions import Fraction

import pytest

from verifier.checking.verdicts import Verdict
from verifier.cli.tables import bound_text, probability_text, run_table
from verifier.results import InputFile, Point, RequirementResult, RunResult, Scenario

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
}


def point(probability, environment="ped", verdict=Verdict.NO_TARGET, exact=None, width=1e-13):
    scenario = Scenario("careful", {}, environment, {"v": 1})
    return Point(scenario, probability, probability - width, probability + width, exact, probability, verdict)


def result(*requirements, title="a detector"):
    inputs = (InputFile("spec", "a.ltl", "0" * 64),)
    return RunResult(title, inputs, SETTINGS, requirements, {"storm": "2.0.0"}, ("a remark",))


def requirement(*points, comparison="=", target=None):
    return RequirementResult("stops", "careful", "G a", comparison, target, points)


def test_a_requirement_without_a_target_shows_both_ends():
    table = run_table(result(requirement(point(0.25), point(0.75, "obs"))))
    rows = [line.split() for line in table.splitlines() if line.startswith("stops")]
    assert [(row[3], row[6], row[7]) for row in rows] == [("0.25", "least:", "ped"), ("0.75", "greatest:", "obs")]
    # The same number twice is one row, whatever its last digit.
    table = run_table(result(requirement(point(0.25), point(0.25 + 1e-16, "obs"))))
    assert sum(line.startswith("stops") for line in table.splitlines()) == 1


def test_a_requirement_with_a_target_shows_its_worst_scenario():
    points = (point(0.97, "obs", Verdict.SATISFIED), point(0.2, "ped", Verdict.VIOLATED))
    table = run_table(result(requirement(*points, comparison=">=", target=Fraction(19, 20))))
    (row,) = [line for line in table.splitlines() if line.startswith("stops")]
    assert row.split()[:4] == ["stops", ">=", "0.95", "0.2"]
    assert row.endswith("violated")
    upper = run_table(result(requirement(*points, comparison="<=", target=Fraction(19, 20))))
    assert " 0.97 " in next(line for line in upper.splitlines() if line.startswith("stops"))


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
