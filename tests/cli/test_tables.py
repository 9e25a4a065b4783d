"""The table of `verify run`, from results written down here."""

import re
from fractions import Fraction

import made_runs
import pytest
from typed_runs import point_of, requirement_of, run_of_requirements, settings_of, uncertainty_of

import verifier
from verifier.analysis.channel_test import Channel, CountedTest, Untested
from verifier.analysis.planning import EvidencePlan, PlannedColumn
from verifier.analysis.tipping import TippingPoints
from verifier.analysis.vacuity import Vacuity
from verifier.base.numbers import interval_text
from verifier.checking.verdicts import Verdict, WithinBounds
from verifier.telling.run import bound_text, probability_text, run_table
from verifier.telling.terminal import aligned, text_of

SETTINGS = {"set": {"vmax": "3"}, "canonical": True, "verdict_from": "point", "confidence": None}
CONFIDENCE = made_runs.CONFIDENCE | {"reason": "posterior, as asked for", "draws": 1000, "events": 3}
CONFIDENCE["bounds"] = made_runs.BOUNDS | {"chances": 3, "effective_drives": 2.14, "largest_share": 0.668}
COUNTED = {"after_miss": 9, "joint_misses": 3, "miss_after_miss": 1 / 3, "expected_miss_after_miss": 0.25}
TESTS = (
    CountedTest(label="car", test="not_contradicted", p_value=0.25, **COUNTED),
    Untested(label="empty"),
    CountedTest(label="ped", test="not_contradicted", p_value=0.125, **COUNTED),
)


def point(probability, environment="ped", verdict=Verdict.NO_TARGET, width=1e-13, sure=None, **more):
    return point_of(probability, environment, {"v": 1}, verdict, width, uncertainty=sure, **more)


def uncertainty(lower, upper, least, most):
    return uncertainty_of((lower, upper), (least, most), draws=1000)


def result(*requirements, title="a detector", confidence=None, remarks=("a remark",), tests=(), **settings):
    chosen = settings_of(**SETTINGS | {"confidence": confidence} | settings)
    return run_of_requirements(
        *requirements, title=title, settings=chosen, remarks=remarks, channel=Channel(classes=tests)
    )


def requirement(*points, comparison=">=", target=None, **more):
    return requirement_of(*points, comparison=comparison, target=target, name="stops", planner="careful", **more)


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


def test_intervals_and_robust_bounds_stand_beside_the_probability():
    sure = uncertainty(0.1395, 0.2621, 0.12001, 0.2917)
    table = run_table(result(requirement(point(0.196203, sure=sure)), confidence=CONFIDENCE))
    header, _, row = table.splitlines()[4:7]
    assert [each.strip() for each in header.split("  ") if each] == [
        "requirement",
        "target",
        "P",
        "95 % credible interval",
        "95 % confidence bounds",
        "worst scenario",
        "verdict",
    ]
    assert [cell.strip() for cell in row.split("  ") if cell.strip()][2:5] == [
        "0.196",
        "[0.139, 0.263]",
        "[0.120, 0.292]",
    ]
    assert "95 % credible intervals: 1000 draws of the matrices (posterior, as asked for)." in table
    assert "Numerical error: at most 1.0e-13." in table


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        (0.0, 1.0, "[0, 1]"),
        (0.19620253, 0.19620253, "[0.196, 0.197]"),  # outwards
        (0.0000123456, 0.5, "[1.23e-05, 0.5]"),
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
    assert bound_text(point(1.0, width=0.0)) == "exact for the measured matrix"
    assert bound_text(point(0.5)) == "+- 1.0e-13"


def test_nothing_reaches_the_terminal_raw():
    table = run_table(result(requirement(point(0.5)), title="clear\x1b[2J\nverdict: satisfied\ud800"))
    assert table.splitlines()[0] == "clear\\x1b[2J\\nverdict: satisfied\\ud800"
    assert "\x1b" not in table


AT_LEAST = {"comparison": ">=", "target": Fraction(19, 20)}


def test_bounds_and_chain_name_what_they_assume():
    sure = uncertainty(0.13, 0.26, 0.12, 0.29)
    lines = run_table(
        result(requirement(point(0.2, sure=sure)), confidence=CONFIDENCE, tests=TESTS, verdict_from="bounds")
    ).splitlines()
    start = lines.index(
        "95 % confidence bounds (independent drives): all at once, from intervals of 3 rates; the matrix may differ "
        "from state to state."
    )
    assert lines[start + 1 : start + 4] == [
        "  Assumes drives are independent and none holds more than 40 items of a column. Not checked. If false, the "
        "bounds can be too narrow. Valid for one look at the data.",
        "  12 drives, effective number 2.1; the largest one holds 67 % of a column's items.",
        "Assumes a memoryless detector: errors independent between time steps and between objects. Time steps tested "
        "along tracks, not contradicted: car, ped (least p = 0.12). Not tested: empty (no tracks). Objects: not "
        "tested. If false, P can be wrong in either direction.",
    ]


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"looks": 20}, "Valid for 20 looks at the data."),
        (
            {"every_look": True},
            "Valid at every look between drives that are added, if drives are identically distributed.",
        ),
    ],
)
def test_how_often_one_may_look(changed, text):
    if "every_look" in changed:  # the largest drive is declared
        changed = changed | {"largest_drive": CONFIDENCE["bounds"]["largest_drive"] | {"declared": True}}
    confidence = CONFIDENCE | {"bounds": CONFIDENCE["bounds"] | changed}
    assert text in run_table(
        result(requirement(point(0.2, sure=uncertainty(0.1, 0.3, 0.1, 0.3))), confidence=confidence)
    )


def test_a_verdict_carries_its_condition_in_row_and_last_line():
    condition = "if items are independent"
    found = result(requirement(point(0.2, verdict=Verdict.VIOLATED, condition=condition), **AT_LEAST))
    lines = run_table(found).splitlines()
    assert next(line for line in lines if line.startswith("stops")).endswith("  violated, if items are independent")
    assert lines[-1] == "verdict: violated, if items are independent"


def test_vacuous_scenarios_are_marked():
    empty = point(1.0, "empty", Verdict.VACUOUS, vacuity=(Vacuity("trivial", "nobody is there"),))
    (row, why) = [line for line in run_table(result(requirement(empty, **AT_LEAST))).splitlines() if "stops" in line]
    assert row.endswith("  vacuous")
    assert why == "stops, planner careful, empty v=1: nobody is there"
    broken = point(0.0, "empty", Verdict.VIOLATED, vacuity=(Vacuity("trivial", "nobody is there"),))
    table = run_table(result(requirement(broken, **AT_LEAST)))
    assert next(line for line in table.splitlines() if line.startswith("stops")).endswith("  violated (vacuous)")
    # One scenario that says something decides.
    table = run_table(result(requirement(empty, point(0.97, "ped", Verdict.SATISFIED), **AT_LEAST)))
    assert table.splitlines()[-1] == "verdict: satisfied"


def test_what_no_detector_could_change_is_said():
    kept = {"basis": "any_dependence", "whatever_predicted": 1}
    points = [point(1.0, "ped", Verdict.SATISFIED, **kept), point(1.0, "obs", Verdict.SATISFIED, **kept)]
    said = "stops holds whatever the detector predicts"
    assert said in run_table(result(requirement(*points, **AT_LEAST)))
    assert said not in run_table(result(requirement(points[0], point(1.0, "x", Verdict.SATISFIED), **AT_LEAST)))
    lost = point(0.0, "obs", Verdict.VIOLATED, basis="any_dependence", whatever_predicted=0)
    table = run_table(result(requirement(points[0], lost, **AT_LEAST)))
    assert "stops fails whatever the detector predicts" in table


PLANS = [
    (EvidencePlan((PlannedColumn("ped", "[0, 10) m", 158, 4600),), None, 0.95, 1.0, Verdict.SATISFIED),
     "about 4600 more items with true class ped in [0, 10) m (now 158), assuming unchanged rates."),
    (EvidencePlan((PlannedColumn("ped", "[0, 10) m", 158, 40), PlannedColumn("obs", "[0, 10) m", 9, 2)),
                  None, 0.95, 1.0, Verdict.SATISFIED),
     "about 42 more items: 40 with true class ped in [0, 10) m (now 158), 2 with true class obs in [0, 10) m "
     "(now 9), assuming unchanged rates."),
    (EvidencePlan((), 71, 0.95, 1.0, Verdict.SATISFIED),
     "about 71 more drives like these, assuming unchanged rates."),
    (None, "the amount of data was not estimated; steps are counted, the chain is too large, or P is too close "
           "to the target."),
]  # fmt: skip


@pytest.mark.parametrize(("plan", "text"), PLANS)
def test_what_would_decide(plan, text):
    open_one = point(
        0.96, verdict=Verdict.INCONCLUSIVE, reason=WithinBounds("bounds"), sure=uncertainty(0.9, 1.0, 0.9, 1.0)
    )
    asked = requirement(open_one, target=Fraction(19, 20), additional_data=plan)
    table = run_table(result(asked, confidence=CONFIDENCE, verdict_from="bounds"))
    assert f"To decide stops, planner careful, ped v=1: {text}" in table.splitlines()


def test_a_warning_stands_in_a_box():
    remark = "warning: memoryless assumption rejected: after a missed ped " + "the next one follows " * 8
    lines = run_table(result(requirement(point(0.5)), remarks=(remark, "a remark"))).splitlines()
    first, last = [at for at, line in enumerate(lines) if set(line) == {"!"}]
    assert " ".join(lines[first + 1 : last]) == remark.strip()
    assert max(map(len, lines[first : last + 1])) == 100
    assert lines[last + 1] == "note: a remark"


def test_how_wrong_an_assumption_may_be():
    tipping = TippingPoints(0.08, Verdict.SATISFIED, 0.004, Verdict.SATISFIED)
    asked = requirement(point(0.96, verdict=Verdict.SATISFIED), target=Fraction(19, 20), tipping_points=tipping)
    lines = run_table(result(asked)).splitlines()
    where = "stops, planner careful, ped v=1: satisfied as long as"
    assert f"{where} the ICC of items within drives is at most 0.08" in lines
    assert f"{where} no observation's rate shifts by more than 0.004" in lines


def test_cells_are_broken_so_that_a_table_fits_100_columns(root, monkeypatch):
    found = verifier.run(
        root / "specs/car_pedestrian.ltl",
        root / "examples/nuscenes_yolov3_class.json",
        draws=100,
        planner="published",
    )

    def table(columns):
        monkeypatch.setenv("COLUMNS", str(columns))
        return run_table(found).split("\n\n")[1].splitlines()

    wide, narrow = table(300), table(100)
    assert max(map(len, wide)) > 120
    assert max(map(len, narrow)) <= 100
    assert sorted("\n".join(narrow).replace("-", "").split()) == sorted("\n".join(wide).replace("-", "").split())
    monkeypatch.delenv("COLUMNS")
    assert run_table(found).split("\n\n")[1].splitlines() == narrow  # as in a pipe
    assert max(map(len, run_table(found).splitlines())) <= 100


def test_words_are_broken_where_nothing_else_helps(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert aligned(["what", "value"], [["a_name_without_spaces_and_mor", "one two"], ["b", "three four"]])[2:] == [
        "a_name_without_spaces_and_mor  one two",
        "b                              three",
        "                               four",
    ]
    assert aligned(["what", "value", ""], [["a_name_without_spaces_and_more", "a_second_name", ""]]) == [
        "what                     value",
        "-----------------------  -------------",
        "a_name_without_spaces_a  a_second_name",
        "nd_more",
    ]


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("a_name_of_19_letter", [[">= 0.95", "[0.1, 0.2]"]]),
        ("a_name_of_20_letters", [[">= 0.95", "[0.1,"], ["", "0.2]"]]),
    ],
)
def test_targets_and_intervals_are_broken_last(name, rows, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    lines = aligned(["what", "target", "interval"], [[name, ">= 0.95", "[0.1, 0.2]"]])
    assert [re.split(" {2,}", line)[-len(row) :] for line, row in zip(lines[2:], rows, strict=True)] == rows
    assert max(map(len, lines)) <= 40


def test_sentences_go_on_below_and_rows_stay(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    row = "a_name_without_spaces_and_more  one word  "
    text = text_of(["note: " + "word " * 9 + "end", "  " + "word " * 9 + "end", row])
    assert text.splitlines() == [
        "note: word word word word word word word",
        "  word word end",
        "  word word word word word word word",
        "    word word end",
        row,
    ]
