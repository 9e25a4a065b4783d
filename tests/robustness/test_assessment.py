"""The assessment of Wozniak, Segura and Mazo 2024: its boxes to the printed digit, and its rules by hand."""

import csv
import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.numbers import exact_text
from verifier.checking.verdicts import Verdict
from verifier.robustness.assessment.circumstances import Circumstance, Risk, priorities
from verifier.robustness.assessment.definition import Assessment, DataSet
from verifier.robustness.assessment.measures import DatasetDistance, DistanceRule, Piece, Tolerance
from verifier.robustness.assessment.reader import read_assessment
from verifier.robustness.assessment.request import assess
from verifier.robustness.detection_metrics import Performance

BOX_7 = Tolerance((Piece(Fraction(0), Fraction("0.01"), Fraction("0.25")), Piece(Fraction(1), Fraction(0))))


@pytest.fixture(scope="module")
def systems(root):
    file = read_assessment(root / "examples/12_robustness_assessment.toml")
    return {each.key: each for each in file.assessments}


@pytest.fixture(scope="module")
def boxes(shared):
    return json.loads((shared / "reference/004_boxes.json").read_text())


def text(value):
    return exact_text(value)


def test_boxes_1_and_3(systems, shared):
    with (shared / "reference/004_mds_circumstances.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 8
    assert systems["mds"].total_frequency == 1
    assert systems["mds"].circumstances[2].label == "The cross-section may be truncated"
    for row, each in zip(rows, systems["mds"].circumstances, strict=True):
        assert Fraction(row["target_freq_box1"]) == each.frequency
        assert Fraction(row["source_freq_box3"]) == each.source_frequency
        assert Fraction(row["missing_follow_up"]) == each.missing


def test_box_2_significance_of_a_low_shutter_speed(systems):
    shutter = systems["rms"].circumstances[0]
    assert shutter.label == "The camera has a very low shutter speed"
    assert (shutter.risk.exposure, shutter.risk.likelihood, shutter.risk.severity) == (1, 2, 5)
    assert shutter.significance == 10
    assert shutter.risk.words == ("Rare", "Unlikely", "Catastrophic")


def test_box_4_nothing_of_it_is_in_the_source_data_and_motion_blur_is_applied(systems):
    shutter = systems["rms"].circumstances[0]
    assert shutter.source_frequency == 0
    assert shutter.transformation.mutation == "motion_blur"
    assert priorities(systems["rms"].circumstances)[0] is shutter


def test_box_5_and_its_differences(systems, boxes):
    mds = systems["mds"]
    (target,) = mds.targets
    stated = boxes["box5_MDS_performance"]
    for name in ("precision", "recall", "AP0.5", "AP0.75", "AP"):
        before, after = mds.source.performance.values[name], target.performance.values[name]
        assert before == Fraction(str(stated["source"][name]))
        assert after == Fraction(str(stated["target"][name]))
        assert abs(before - after) == Fraction(str(boxes["box5_deltas_computed"][name]))


def test_box_6_distance_by_ssim(systems, boxes):
    (sweep,) = systems["rms"].sweeps
    assert [text(each) for each in sweep.settings] == ["0", "0.1", "0.25", "0.5", "0.75", "1"]
    found = [text(each.distances["ssim"].distance) for each in sweep.targets]
    assert found == ["0", "0.096", "0.223", "0.267", "0.289", "0.303"]
    assert found == [text(Fraction(str(each))) for each in boxes["box6_RMS_chromatic_aberration"]["distance"]]


def test_box_7_not_globally_robust(systems):
    found = assess(systems["mds"])
    (target,) = found.targets
    rows = [(each.metric, each.change, each.distance, each.verdict.value) for each in target.outcomes]
    assert rows == [
        ("AP", 0.094, 0.154, "violated"),
        ("precision", 0.066, 0.154, "violated"),
        ("recall", 0.126, 0.154, "violated"),
    ]
    assert all(each.tolerance == 0.01 for each in target.outcomes)
    assert found.verdict.value == "violated"


def test_table_3_relates_two_points_of_view(systems, boxes):
    (listed,) = systems["mds"].perspectives.values()
    assert list(listed) == boxes["radiographer_circumstances"]


def test_scales_of_table_5(boxes):
    for value, words in boxes["scales"].items():
        risk = Risk(*[int(value)] * 3)
        assert risk.words == (words["exposure"], words["likelihood"], words["severity"])
        assert risk.significance == int(value) ** 3


# --- missing test cases and their order -------------------------------------------------------------------------


def test_what_the_source_holds_more_often_is_not_missing():
    each = Circumstance("night", frequency=Fraction("0.1"), source_frequency=Fraction("0.3"))
    assert each.missing == 0
    assert priorities([each]) == ()


def test_what_is_not_known_is_not_taken_for_zero():
    assert Circumstance("night", frequency=Fraction("0.1")).missing is None
    assert Circumstance("night", source_frequency=Fraction(0)).missing is None


def test_the_most_significant_comes_first_then_what_is_missing_most():
    def made(name, significance, missing):
        risk = None if significance is None else Risk(*significance)
        return Circumstance(name, frequency=Fraction(missing), source_frequency=Fraction(0), risk=risk)

    given_order = [
        made("unassessed", None, "0.9"),
        made("rare and grave", (1, 1, 5), "0.1"),
        made("common and grave", (5, 5, 5), "0.01"),
        made("as grave, missing more", (5, 1, 1), "0.2"),
        made("in the data", (5, 5, 5), "0"),
    ]
    names = [each.name for each in priorities(given_order)]
    assert names == ["common and grave", "as grave, missing more", "rare and grave", "unassessed"]


# --- the tolerance ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("distance", "expected"),
    [("0", "0.01"), ("0.154", "0.01"), ("0.25", "0.01"), ("0.250000000001", "0.250000000001"), ("3", "3")],
)
def test_the_breakpoint_belongs_to_the_lower_piece(distance, expected):
    assert BOX_7(Fraction(distance)) == Fraction(expected)


def test_any_piecewise_linear_function():
    ramp = Tolerance(
        (
            Piece(Fraction(2), Fraction(0), Fraction("0.1")),
            Piece(Fraction(-1), Fraction("0.3"), Fraction("0.2")),
            Piece(Fraction("0.5"), Fraction("0.05")),
        )
    )
    assert [ramp(Fraction(d)) for d in ("0.05", "0.1", "0.15", "0.2", "0.3")] == [
        Fraction("0.1"), Fraction("0.2"), Fraction("0.15"), Fraction("0.1"), Fraction("0.2"),
    ]  # fmt: skip
    assert str(ramp) == "2 d if d <= 0.1, -d + 0.3 if d <= 0.2, else 0.5 d + 0.05"


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        ([], "at least one"),
        ([(0, 1, 1)], "last piece"),
        ([(0, 1, None), (0, 1, None)], "has no end"),
        ([(0, 1, 2), (0, 1, 2), (0, 1, None)], "not after"),
        ([(0, 1, 0), (0, 1, 0), (0, 1, None)], "not after"),
        ([(0, -1, None)], "below 0"),
        ([(-1, 1, None)], "below 0"),
        ([(-1, 1, 2), (0, 1, None)], "below 0"),
        ([(0, 1, 2), (1, -3, None)], "below 0"),
    ],
)
def test_tolerances_that_cannot_be(pieces, reason):
    made = [
        Piece(Fraction(slope), Fraction(constant), None if end is None else Fraction(end))
        for slope, constant, end in pieces
    ]
    with pytest.raises(ValueError, match=reason):
        Tolerance(tuple(made))


def test_a_distance_is_not_negative():
    with pytest.raises(ValueError, match="from 0"):
        BOX_7(Fraction(-1))


# --- the relation -----------------------------------------------------------------------------------------------


def assessment(source, target, distance, tolerance=BOX_7, metrics=("AP",), circumstances=(), shown=()):
    rules = {"cw_ssim": DistanceRule("cw_ssim", "cw_ssim", tolerance)}
    distances = {} if distance is None else {"cw_ssim": DatasetDistance(Fraction(distance))}
    before, after = (
        Performance({name: Fraction(value) for name, value in each.items()}) for each in (source, target)
    )
    return Assessment(
        "key",
        "title",
        circumstances=circumstances,
        metrics=metrics,
        rules=rules,
        source=DataSet("source", performance=before),
        targets=(DataSet("target", shown, after, distances),),
    )


@pytest.mark.parametrize(
    ("after", "distance", "verdict"),
    [
        ("0.33", "0.1", Verdict.SATISFIED),  # .34 - .33 is exactly the tolerance; in binary it is above .01
        ("0.329", "0.1", Verdict.VIOLATED),
        ("0.35", "0.25", Verdict.SATISFIED),
        ("0.351", "0.25", Verdict.VIOLATED),  # better, and changed too much all the same
        ("0.08", "0.26", Verdict.SATISFIED),
        ("0.079", "0.26", Verdict.VIOLATED),
    ],
)
def test_the_relation_is_exact_at_its_limit(after, distance, verdict):
    assert 0.34 - 0.33 > 0.01  # what floats would have said
    found = assess(assessment({"AP": "0.34"}, {"AP": after}, distance))
    assert found.verdict is verdict


def test_robust_only_if_every_metric_is():
    found = assess(
        assessment({"AP": "0.34", "recall": "0.5"}, {"AP": "0.34", "recall": "0.4"}, "0.1", metrics=("AP", "recall"))
    )
    assert [each.verdict.value for each in found.targets[0].outcomes] == ["satisfied", "violated"]
    assert found.verdict.value == "violated"


def test_only_the_chosen_metrics_count():
    found = assess(assessment({"AP": "0.34", "recall": "0.5"}, {"AP": "0.34", "recall": "0.4"}, "0.1"))
    assert found.verdict.value == "satisfied"


def test_without_a_distance_nothing_is_decided():
    found = assess(assessment({"AP": "0.34"}, {"AP": "0.34"}, None))
    assert found.verdict.value == "inconclusive"
    assert found.targets[0].unchecked == ("cw_ssim",)
    assert any("could not be checked" in each for each in found.remarks)


def test_without_a_tolerance_nothing_is_judged():
    found = assess(assessment({"AP": "0.34"}, {"AP": "0.1"}, "0.1", tolerance=None))
    assert found.verdict.value == "no target"
    assert any("no distance has a tolerance" in each for each in found.remarks)


def test_a_violation_by_getting_better_is_told():
    found = assess(assessment({"AP": "0.34"}, {"AP": "0.5"}, "0.1"))
    assert found.verdict.value == "violated"
    assert any("better on the target data" in each for each in found.remarks)


def test_the_strictest_scale_of_the_circumstances_shown_rules():
    both = (
        Circumstance("grave", tolerance_scale=Fraction("0.5")),
        Circumstance("mild", tolerance_scale=Fraction(2)),
    )
    for shown, tolerance, verdict in (
        (("mild",), "0.02", Verdict.SATISFIED),
        (("grave",), "0.005", Verdict.VIOLATED),
        ((), "0.005", Verdict.VIOLATED),
    ):
        found = assess(assessment({"AP": "0.34"}, {"AP": "0.32"}, "0.1", circumstances=both, shown=shown))
        assert found.targets[0].outcomes[0].tolerance == float(tolerance)
        assert found.verdict is verdict


decimals = st.integers(0, 1000).map(lambda number: Fraction(number, 1000))


@given(decimals, decimals, decimals, decimals, decimals)
def test_the_relation_by_its_definition(before, after, distance, end, constant):
    tolerance = Tolerance((Piece(Fraction(0), constant, end + 1), Piece(Fraction(1), Fraction(0))))
    found = assess(assessment({"AP": before}, {"AP": after}, distance * 3, tolerance))
    allowed = constant if distance * 3 <= end + 1 else distance * 3
    assert (found.verdict.value == "satisfied") == (-allowed <= before - after <= allowed)


# --- performance ------------------------------------------------------------------------------------------------


def test_precision_and_recall_from_counts():
    found = Performance(counts={"TP": 3, "FP": 1, "FN": 5})
    assert found.values == {"precision": Fraction(3, 4), "recall": Fraction(3, 8)}


def test_counts_and_numbers_must_agree():
    with pytest.raises(ValueError, match=r"the counts give 0\.75"):
        Performance({"precision": Fraction("0.7")}, {"TP": 3, "FP": 1, "FN": 5})


def test_nothing_detected_has_no_precision():
    assert Performance(counts={"TP": 0, "FP": 0, "FN": 5}).values == {"recall": 0}


def test_numbers_are_written_with_all_their_digits():
    assert [exact_text(Fraction(each)) for each in ("0.1", "-0.066", "12", "1/3", "-1/1024")] == [
        "0.1", "-0.066", "12", "~0.333333", "-0.0009765625",
    ]  # fmt: skip
