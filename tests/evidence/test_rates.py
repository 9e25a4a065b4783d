"""Rates per hour, exposures and demonstrations: solved by hand."""

import re
from fractions import Fraction

import pytest
from run_documents import channel, document, point, requirement, run

from verifier.base.documents import json_values
from verifier.base.errors import LimitError, UsageError
from verifier.base.files import document_text
from verifier.checking.verdicts import Verdict
from verifier.evidence.consistency import check_documents
from verifier.evidence.following.rates import rate_against_run
from verifier.evidence.rates.document import (
    Acceptance,
    encounters_needed,
    exposure_in,
    exposure_told,
    hours_needed,
)
from verifier.evidence.rates.exposure import Exposure, float_above, float_below, garwood
from verifier.evidence.rates.hazard import EVERY, RateQuestion, hazard_rate
from verifier.evidence.telling import rate_blocks
from verifier.telling.terminal import blocks_lines, text_of

TWELVE = {EVERY: Exposure.stated(Fraction(12))}


def one(probability, bounds=None, target=(">=", "9/10"), **more):
    return run([requirement("stops", [point(probability, "satisfied", bounds)], target)], **more)


# Garwood's interval. Without a single encounter the upper end solves exp(-m) = a / 2: m = ln(40) = 3.688879454...
def test_garwood_of_nothing_seen():
    lower, upper = garwood(0, Fraction(1, 20))
    assert lower == 0
    assert float(upper) == pytest.approx(3.688879454113936, rel=1e-10, abs=0)
    assert float(upper) >= 3.688879454113936


# Published table (Garwood 1936; e.g. Ulm 1990, Am. J. Epidemiol. 131): 95 % limits for counts of 1, 5, 10 and 20.
@pytest.mark.parametrize(
    ("count", "lower", "upper"),
    [(1, "0.0253", "5.5716"), (5, "1.6235", "11.6683"), (10, "4.7954", "18.3904"), (20, "12.2165", "30.8884")],
)
def test_garwood_as_published(count, lower, upper):
    found = garwood(count, Fraction(1, 20))
    assert (f"{float(found[0]):.4f}", f"{float(found[1]):.4f}") == (lower, upper)


def test_a_count_over_hours_is_scaled():
    assert Exposure.counted(240, Fraction(20)).rate == 12
    lower, upper = Exposure.counted(10, Fraction(2)).interval(Fraction(1, 20))
    assert (f"{float(lower):.4f}", f"{float(upper):.4f}") == ("2.3977", "9.1952")


# 0.99^n <= 0.05: 0.99^298 = 0.05003, 0.99^299 = 0.04953.
def test_encounters_without_an_event():
    assert encounters_needed(Fraction(1, 100), Fraction(95, 100)) == 299
    assert Fraction(99, 100) ** 298 > Fraction(1, 20) >= Fraction(99, 100) ** 299


# (1/2)^n <= 1/8 exactly at n = 3: not 4, as a rounding error would have it.
def test_an_exact_power_is_not_missed():
    assert encounters_needed(Fraction(1, 2), Fraction(7, 8)) == 3
    # (9/10)^7 = 4782969 / 10^7: a confidence of 1 minus that needs 7 encounters, the least bit more needs 8.
    assert encounters_needed(Fraction(1, 10), 1 - Fraction(4782969, 10**7)) == 7
    assert encounters_needed(Fraction(1, 10), 1 - Fraction(4782969, 10**7) + Fraction(1, 10**30)) == 8


# The rule of three: 3 / p within 0.2 %, as -ln(0.05) = 2.9957.
def test_rule_of_three():
    assert encounters_needed(Fraction(1, 10**7), Fraction(19, 20)) == 29957322


def test_nothing_is_left_to_show_from_probability_one_on():
    assert encounters_needed(Fraction(1), Fraction(19, 20)) == 0
    assert encounters_needed(Fraction(5), Fraction(19, 20)) == 0
    assert encounters_needed(Fraction(99, 100), Fraction(1, 100)) == 1  # 0.01 <= 0.99, but not without any encounter


# exp(-r T) = 0.05 at r T = 2.995732...
def test_hours():
    assert float(hours_needed(Fraction(1, 10**7), Fraction(19, 20))) == pytest.approx(29957322.73554, abs=1e-4)


def test_what_cannot_be_shown_is_refused():
    with pytest.raises(LimitError, match="cannot be shown"):
        encounters_needed(Fraction(1, 10**21), Fraction(19, 20))
    with pytest.raises(UsageError, match="at least 1e-06"):
        RateQuestion("stops", demonstrate_at=Fraction(1, 10**99))
    for bad in (Fraction(0), Fraction(1, 10**7), Fraction(1)):
        with pytest.raises(ValueError, match="confidence"):
            encounters_needed(Fraction(1, 10), bad)


# P = 3/4 of meeting it, exactly; 12 encounters per hour: 3 failures per hour.
def test_rate_of_an_exact_probability():
    content = point(0.75, "violated", exact="3/4")
    found = hazard_rate(run([requirement("stops", [content])], verdict_from="point"), RateQuestion("stops"), TWELVE)
    assert found.per_hour == 3
    assert (found.bounds.source, found.bounds.lower, found.bounds.upper, found.bounds.level) == ("point", 3, 3, None)
    assert found.event == "violated"


# P in [3/4, 7/8]: failures in [1/8, 1/4] per encounter, at 12/h in [1.5, 3] per hour, at 95 %.
def test_rate_of_robust_bounds():
    found = hazard_rate(one(0.8125, (0.75, 0.875)), RateQuestion("stops"), TWELVE)
    assert (found.bounds.lower, found.bounds.upper, found.bounds.level) == (1.5, 3, 0.95)
    assert found.per_hour == Fraction(3, 16) * 12
    assert [each.source for each in found.other_bounds] == ["interval"]


def test_an_interval_without_a_width_is_not_certain():
    """Ten items without an error: every bootstrap sample gives P = 1, and yet the interval misses now and then."""
    points = [
        point(1.0, "satisfied", (0.7, 1.0), interval=(1.0, 1.0)),
        point(1.0, "satisfied", (0.7, 1.0), interval=(1.0, 1.0), environment="obs"),
        point(1.0, "satisfied", (1.0, 1.0), environment="empty"),  # where no report can matter
    ]
    found = hazard_rate(run([requirement("stops", points)], verdict_from="interval"), RateQuestion("stops"), TWELVE)
    assert (found.bounds.source, found.bounds.upper) == ("interval", 0)
    assert (found.bounds.error_probability, found.bounds.level) == (0.1, 0.9)


def test_bounds_from_resampled_drives_hold_one_by_one():
    """Two scenarios, each bounded on its own with 95 %: both hold with 90 %. Bounds of a region hold at once."""
    points = [point(0.8, "satisfied", (0.7, 0.9)), point(0.8, "satisfied", (0.7, 0.9), environment="obs")]
    content = run([requirement("stops", points)]).content["settings"]["confidence"]
    name, condition = (
        "95 % confidence bounds (approximate: Bayesian bootstrap)",
        "drives are independent (approximate: Bayesian bootstrap)",
    )
    basis = {"tier": "approximate", "name": name, "condition": condition, "largest_drive": None, "conditional": True}
    for bounds, level in ((content["bounds"], 0.95), (content["bounds"] | basis, 0.9)):
        settings = {"verdict_from": "point", "confidence": content | {"bounds": bounds}}
        found = hazard_rate(run([requirement("stops", points)], **settings), RateQuestion("stops"), TWELVE)
        assert {each.source: each.level for each in found.other_bounds}["bounds"] == level


# The same with P <= target: the formula itself is unwanted, and its rate is 12 [3/4, 7/8].
def test_an_upper_target_says_that_the_formula_is_unwanted():
    given = one(0.8125, (0.75, 0.875), ("<=", "1/10"))
    found = hazard_rate(given, RateQuestion("stops"), TWELVE)
    assert (found.event, found.bounds.lower, found.bounds.upper) == ("satisfied", 9, Fraction(21, 2))
    other = hazard_rate(given, RateQuestion("stops", event="violated"), TWELVE)
    assert (other.bounds.lower, other.bounds.upper) == (Fraction(3, 2), 3)


# Two environments: 12 * [1/8, 1/4] + [10, 14] * [0, 1/2] = [1.5, 10] per hour. An interval has no best estimate.
def test_environments_add_up():
    points = [
        point(0.8125, "satisfied", (0.75, 0.875)),
        point(0.75, "satisfied", (0.5, 1.0), environment="obs"),
    ]
    given = run([requirement("stops", points)])
    exposures = {"ped": Exposure.stated(Fraction(12)), "obs": Exposure(Fraction(10), Fraction(14))}
    found = hazard_rate(given, RateQuestion("stops"), exposures)
    assert (found.per_hour, found.bounds.lower, found.bounds.upper) == (None, Fraction(3, 2), 10)
    assert found.bounds.level == 0.95


# The worst scenario decides: greatest upper end 1/2, greatest lower end 1/4.
def test_the_worst_of_several_scenarios():
    points = [
        point(0.7, "satisfied", (0.5, 0.875), initial={"x": 1}),
        point(0.72, "satisfied", (0.625, 0.75), initial={"x": 2}),
    ]
    found = hazard_rate(
        run([requirement("stops", points)]), RateQuestion("stops"), {EVERY: Exposure.stated(Fraction(1))}
    )
    assert (found.bounds.lower, found.bounds.upper) == (Fraction(1, 4), Fraction(1, 2))
    assert found.terms[0].worst_scenario == "ped x=1"
    # Statistical intervals hold one by one: two of them may miss with 2 * 0.05.
    (other,) = found.other_bounds
    assert (other.source, other.level) == ("interval", 0.9)


# 0.05 of the confidence bounds and 0.05 of the count: 90 %. Asked for 93 %, the count gets 0.02.
def test_the_split_of_the_error():
    given, exposures = one(0.8125, (0.75, 0.875)), {EVERY: Exposure.counted(10, Fraction(2))}
    found = hazard_rate(given, RateQuestion("stops"), exposures)
    assert (found.bounds.error_probability, found.bounds.error_exposure, found.bounds.level) == (0.05, 0.05, 0.9)
    low, high = garwood(10, Fraction(1, 20))
    assert (found.bounds.lower, found.bounds.upper) == (float_below(low / 2 / 8), float_above(high / 2 / 4))
    more = hazard_rate(given, RateQuestion("stops", confidence=Fraction(93, 100)), exposures)
    assert (more.bounds.level, more.bounds.error_exposure) == (0.93, 0.02)
    assert more.bounds.upper == float_above(garwood(10, Fraction(2, 100))[1] / 2 / 4)
    with pytest.raises(UsageError, match="leaves nothing for the exposure"):
        hazard_rate(given, RateQuestion("stops", confidence=Fraction(95, 100)), exposures)


# Two counts share the error equally; a stated interval at level 0.99 takes 0.01 of it.
def test_several_exposures_share_the_error():
    points = [point(0.75, "satisfied", (0.75, 0.75), environment=name) for name in ("ped", "obs", "empty")]
    exposures = {
        "ped": Exposure.counted(4, Fraction(1)),
        "obs": Exposure.counted(9, Fraction(1)),
        "empty": Exposure(Fraction(1), Fraction(2), level=Fraction(99, 100)),
    }
    found = hazard_rate(
        run([requirement("stops", points)]), RateQuestion("stops", confidence=Fraction(9, 10)), exposures
    )
    assert found.bounds.error_exposure == 0.05
    share = Fraction(2, 100)
    assert found.bounds.upper == float_above((garwood(4, share)[1] + garwood(9, share)[1] + 2) / 4)
    told = [(term.exposure.lower, term.exposure.upper) for term in found.terms][:2]
    assert told == [(float_below(low), float_above(high)) for low, high in (garwood(4, share), garwood(9, share))]


@pytest.mark.parametrize(
    ("accept", "verdict"),
    [
        (Fraction(3), Verdict.SATISFIED),
        (Fraction(2), Verdict.INCONCLUSIVE),
        (Fraction(3, 2), Verdict.INCONCLUSIVE),
        (Fraction(1), Verdict.VIOLATED),
    ],
)
def test_three_verdicts(accept, verdict):
    found = hazard_rate(
        one(0.8125, (0.75, 0.875)), RateQuestion("stops", acceptance=Acceptance(Fraction(accept), "")), TWELVE
    )
    assert found.verdict is verdict


# At most 0.6 per hour at 12 encounters per hour is 1/20 per encounter: 59 encounters, and -ln(0.05)/0.6 = 4.993 h.
def test_what_testing_alone_would_take():
    found = hazard_rate(
        one(0.8, (0.75, 0.875)), RateQuestion("stops", acceptance=Acceptance(Fraction(6, 10), "")), TWELVE
    )
    assert found.demonstration.encounters == 59
    assert float(found.demonstration.hours) == pytest.approx(4.99288712, abs=1e-7)
    never = hazard_rate(
        one(0.8, (0.75, 0.875)),
        RateQuestion("stops", acceptance=Acceptance(Fraction(6, 10), "")),
        {EVERY: Exposure.stated(Fraction(0))},
    )
    assert (never.demonstration.encounters, never.bounds.upper, never.verdict) == (None, 0, Verdict.SATISFIED)


def test_questions_that_have_no_answer():
    given = one(0.8, (0.75, 0.875))
    for asked, exposures, message in (
        (RateQuestion("stop"), TWELVE, "did you mean 'stops'"),
        (RateQuestion("stops", planner="q"), TWELVE, "unknown planner"),
        (RateQuestion("stops"), {"pde": Exposure.stated(Fraction(1))}, "did you mean 'ped'"),
        (RateQuestion("stops"), {}, "no exposure is given for ped"),
        (RateQuestion("stops"), TWELVE | {"ped": Exposure.stated(Fraction(1))}, "leaves no room"),
        (RateQuestion("stops", environments=("sky",)), TWELVE, "unknown environment"),
    ):
        with pytest.raises(UsageError, match=re.escape(message)):
            hazard_rate(given, asked, exposures)
    with pytest.raises(UsageError, match="does not say what is unwanted"):
        hazard_rate(one(0.8, (0.7, 0.9), None), RateQuestion("stops"), TWELVE)
    two = [requirement("stops", [point(0.8, "satisfied")], planner=name) for name in ("p", "q")]
    with pytest.raises(UsageError, match="several planners"):
        hazard_rate(run(two), RateQuestion("stops"), TWELVE)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Exposure(Fraction(1)),
        lambda: Exposure.stated(Fraction(-1)),
        lambda: Exposure(Fraction(2), Fraction(1)),
        lambda: Exposure(Fraction(1), Fraction(2), level=Fraction(1)),
        lambda: Exposure.counted(1, Fraction(0)),
        lambda: Exposure.counted(-1, Fraction(1)),
        lambda: garwood(1, Fraction(0)),
        lambda: Acceptance(Fraction(0), ""),
    ],
)
def test_values_out_of_range(make):
    with pytest.raises(ValueError, match=r"\w"):
        make()


@pytest.mark.parametrize(
    "exposure",
    [
        Exposure.stated(Fraction(1, 10)),
        Exposure(Fraction(10), Fraction(10), source="of no width, and an interval all the same"),
        Exposure(Fraction(10), Fraction(10), level=Fraction(19, 20)),
        Exposure(Fraction(1, 10), Fraction(2), level=Fraction(9, 10)),
        Exposure.counted(3, Fraction(1, 3)),
    ],
)
def test_an_exposure_that_was_read_says_what_was_written(exposure):
    share = Fraction(1, 20)
    written = exposure_told(exposure, exposure.interval(share))
    read = exposure_in(written)
    assert exposure_told(read, read.interval(share)) == written
    assert (str(read), read.error(share)) == (str(exposure), exposure.error(share))


def test_doubles_are_rounded_outwards():
    third = Fraction(1, 3)
    assert Fraction(float_below(third)) < third < Fraction(float_above(third))
    assert float_below(Fraction(1, 2)) == float_above(Fraction(1, 2)) == 0.5


def test_the_document_keeps_to_its_schema():
    points = [point(0.8125, "satisfied", (0.75, 0.875)), point(0.7, "satisfied", (0.5, 1.0), environment="obs")]
    exposures = {
        "ped": Exposure.counted(240, Fraction(20), "drives"),
        "obs": Exposure(Fraction(1), Fraction(2)),
    }
    asked = RateQuestion("stops", acceptance=Acceptance(Fraction(1, 10**7), "analysis"))
    found = hazard_rate(run([requirement("stops", points)]), asked, exposures)
    content = json_values(found)
    assert document(content, "rate.json").kind == "rate"
    assert content["acceptance"] == {"per_hour": "1/10000000", "source": "analysis"}
    assert content["terms"][0]["exposure"]["kind"] == "count"
    assert document_text(content) == document_text(found)
    lower, upper = Fraction(1, 8) * 12, Fraction(1, 4) * 12  # of ped alone, counted: wider
    assert content["bounds"]["lower"] < lower < upper < content["bounds"]["upper"]


def drawing_run(p_value, **chosen):
    """A requirement met in a scenario whose chain draws ped, its channel with this p-value; None for no test."""
    reason = {"kind": "dependence", "label": "ped", "p_value": p_value, "model_verdict": "satisfied"}
    contradicted = p_value is not None and p_value < 0.01 and not chosen
    found = point(0.96, "inconclusive" if contradicted else "satisfied", (0.92, 0.99), draws=["ped"])
    found |= {"reason": reason if contradicted else None}
    return run([requirement("stops", [found])], channel=channel(p_value), **chosen)


@pytest.mark.parametrize(
    ("p_value", "chosen", "verdict", "condition", "kind"),
    [
        (0.4, {}, Verdict.SATISFIED, None, None),
        (None, {}, Verdict.SATISFIED, "if the detector is memoryless (not tested)", None),
        (None, {"strict": True}, Verdict.INCONCLUSIVE, None, "untested"),
        (0.0001, {}, Verdict.INCONCLUSIVE, None, "dependence"),
        (
            0.0001,
            {"assume_memoryless": True},
            Verdict.SATISFIED,
            "if the detector is memoryless (assumed; the data contradict it for ped, p = 0.0001)",
            None,
        ),
    ],
)
def test_a_rate_follows_the_rule_of_verdicts(p_value, chosen, verdict, condition, kind):
    """12 encounters per hour fail with 0.01 to 0.08 each: at most 0.96 per hour, below 2."""
    asked = RateQuestion("stops", acceptance=Acceptance(Fraction(2), ""))
    of = drawing_run(p_value, **chosen)
    found = hazard_rate(of, asked, {EVERY: Exposure.stated(Fraction(12))})
    assert (found.verdict, found.condition) == (verdict, condition)
    assert getattr(found.reason, "kind", None) == kind
    assert found.bounds.assumes[0].startswith("drives are independent")
    assert len(found.bounds.assumes) == (1 if p_value == 0.4 else 2)
    content = json_values(found)
    assert (content["condition"], (content["reason"] or {}).get("kind")) == (condition, kind)
    check_documents([document(content, "rate.json")])
    assert list(rate_against_run(document(content, "rate.json").result, of)) == []
    other = {"verdict": "violated", "condition": "if the sun shines", "event": "satisfied", "left_out": ["ped"]}
    places = {"event": "/terms/0/probability", "left_out": "/terms"}
    for key, value in other.items():
        (place, _), *_ = rate_against_run(document({**content, key: value}, "rate.json").result, of)
        assert place == places.get(key, f"/{key}")


FREE = (0.75, 0.9921875)


def free_run(free, p_value=0.0001, rates="confidence_region", **chosen):
    """As `drawing_run`, with bounds however reports depend on each other; the data contradict the channel."""
    given = {"lower": free[0], "upper": free[1], "horizon": 3, "flows": 9, "undecided": [0.0, 0.0], "rates": rates}
    reason = {"kind": "dependence", "label": "ped", "p_value": p_value, "model_verdict": "satisfied"}
    bounds = None if rates == "measured" else (0.92, 0.99)
    found = point(0.96, "inconclusive", bounds, draws=["ped"], dependence_free=given, reason=reason)
    if free[0] >= 0.9:
        found |= {"verdict": "satisfied", "basis": "any_dependence", "reason": None}
    return run([requirement("stops", [found])], channel=channel(p_value), **chosen)


@pytest.mark.parametrize(
    ("free", "accept", "verdict", "basis"),
    [
        # 12 encounters per hour, each failing with 1/128 to 1/4 however reports depend on each other: 3/32 to 3.
        (FREE, Fraction(31, 10), Verdict.SATISFIED, "any_dependence"),
        (FREE, Fraction(29, 10), Verdict.INCONCLUSIVE, None),
        (FREE, Fraction(1, 10), Verdict.INCONCLUSIVE, None),
        (FREE, Fraction(9, 100), Verdict.VIOLATED, "any_dependence"),
    ],
)
def test_a_criterion_that_no_dependence_changes_is_decided(free, accept, verdict, basis):
    """The memoryless chain, which the data contradict, has 0.12 to 0.96 per hour and decides nothing."""
    of, asked = free_run(free), RateQuestion("stops", acceptance=Acceptance(Fraction(accept), ""))
    found = hazard_rate(of, asked, TWELVE)
    assert (found.verdict, found.basis) == (verdict, basis)
    assert getattr(found.reason, "kind", None) == (None if basis else "dependence")
    (told,) = (each for each in found.other_bounds if each.source == "any_dependence")
    assert (told.lower, told.upper, told.level) == (3 / 32, 3, 0.95)
    assert told.assumes == ("drives are independent and none holds more than 40 items of a column",)
    content = json_values(found)
    check_documents([document(content, "rate.json")])
    assert list(rate_against_run(document(content, "rate.json").result, of)) == []
    for change in ({"verdict": "satisfied"}, {"verdict": "violated"}, {"basis": "memoryless"}):
        if {**content, **change} != content:
            forged = document({**content, **change}, "rate.json").result
            assert [place for place, _ in rate_against_run(forged, of)] == [f"/{name}" for name in change]
    (number,) = (k for k, each in enumerate(content["other_bounds"]) if each["source"] == "any_dependence")
    content["other_bounds"][number]["upper"] = 2.0
    ((place, _),) = rate_against_run(document(content, "rate.json").result, of)
    assert place == f"/other_bounds/{number}/upper"


def test_dependence_free_rates_of_the_measured_matrix_have_no_level():
    """Bounds of rates that no data bound say nothing about the data; of the mean they are the same."""
    of = free_run(FREE, rates="measured", verdict_from="point", confidence=None)
    found = hazard_rate(of, RateQuestion("stops", acceptance=Acceptance(Fraction(3), "")), TWELVE)
    assert (found.verdict, found.basis, found.condition) == (
        Verdict.SATISFIED, "any_dependence", None,
    )  # fmt: skip
    (told,) = found.other_bounds
    assert (told.source, told.upper, told.level, told.assumes) == ("any_dependence", 3, None, ())
    shown = text_of(blocks_lines(rate_blocks(found)))
    assert "however reports depend on each other [0.09375, 3]; the data's uncertainty is left out" in shown


def test_the_condition_of_dependence_free_bounds_is_one_of_the_rate():
    content = free_run(FREE).content["settings"]["confidence"]
    name, condition = "95 % confidence bounds (if items are independent)", "items are independent"
    items = {"tier": "independent_items", "name": name, "condition": condition, "conditional": True}
    settings = {"confidence": content | {"bounds": content["bounds"] | items | {"largest_drive": None}}}
    asked = RateQuestion("stops", acceptance=Acceptance(Fraction(3), ""))
    for strict, verdict in ((False, Verdict.SATISFIED), (True, Verdict.INCONCLUSIVE)):
        found = hazard_rate(free_run(FREE, strict=strict, **settings), asked, TWELVE)
        assert found.verdict is verdict
        assert found.condition == (None if strict else "if items are independent")


def test_a_rate_of_a_stated_box_needs_no_channel_that_the_data_allow():
    """As the run itself decides: what every report stays in is assumed, and nothing about the detector's memory."""
    content = drawing_run(0.0001).content["settings"]["confidence"]
    box = {"file": "b.toml", "sha256": "5" * 64, "source": "sheet 7"}
    basis = {"tier": "rate_box", "name": "bounds (of a stated rate box, not of data)", "box": box}
    condition = "every report stays in the stated rate box of sheet 7"
    basis |= {"condition": condition, "conditional": True, "every_look": True}
    settings = {"confidence": content | {"bounds": content["bounds"] | basis | {"largest_drive": None}}}
    of = drawing_run(0.0001, **settings)
    found = hazard_rate(of, RateQuestion("stops", acceptance=Acceptance(Fraction(2), "")), TWELVE)
    assert (found.verdict, found.basis) == (Verdict.SATISFIED, "assumed")
    assert found.condition == f"if {condition}"
    assert found.bounds.assumes == (condition,)
