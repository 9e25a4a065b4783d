"""The assurance case: its structure, what supports what, and that nothing doubted is shown as supported."""

import itertools
from fractions import Fraction
from pathlib import Path

import pytest
import yaml
from gsn_rules import complaints
from hypothesis import given
from hypothesis import strategies as st
from run_documents import MODEL, SPEC, document, made_with, matrices, point, requirement, run, satisfied_run
from run_documents import channel as channel_of_ped

from verifier.base.documents import json_values
from verifier.base.errors import UsageError
from verifier.evidence.case.building import build_case
from verifier.evidence.case.elements import Case, Element, Kind, gsn_yaml
from verifier.evidence.context import CaseContext, Detector
from verifier.evidence.defeaters.finding import find_defeaters
from verifier.evidence.defeaters.values import Claim
from verifier.evidence.rates.document import Acceptance
from verifier.evidence.rates.exposure import Exposure
from verifier.evidence.rates.hazard import EVERY, RateQuestion, hazard_rate
from verifier.evidence.status import Grade, Status, status_over, worst_status

NOTHING_STATED = CaseContext()


def case_of(*documents, context=NOTHING_STATED, alternatives=(), **more):
    defeaters = find_defeaters(documents, context, dict(alternatives))
    files = {f"results/{each.name}": each.sha256 for each in documents}
    return build_case(documents, context, defeaters, files, **more)


def goal(case, given, point=None, name="stops"):
    return case.by_id[case.goals[Claim(given.sha256, name, "p", point)]]


DRIVES = "drives are independent and none holds more than 40 items of a column"


def conditions(case, given, point=None):
    """What a goal is conditional on, in words."""
    return [case.by_id[name].text for name in goal(case, given, point).rests_on]


def check(case):
    """Whatever is built keeps to gsn2x's rules and reads back as it is."""
    content = yaml.safe_load(gsn_yaml(case))
    assert complaints(content) == []
    assert list(content) == ["module", *(each.id for each in case.elements)]
    for each in case.elements:
        assert content[each.id].get("supportedBy", []) == list(each.supported_by)
        assert content[each.id].get("defeated", False) is each.defeated
        assert each.status is None or content[each.id]["classes"] == [each.status.value]
    return content


def test_a_satisfied_run():
    drives = [{"name": "0001", "frames": 10, "counts": [[0, 0, 0, 20], [0, 0, 1, 5], [0, 1, 0, 1], [0, 1, 1, 74]]}]
    table = matrices(sequences=drives)
    given_run = made_with(table)
    context = CaseContext(system="Shuttle", odd="Campus", detector=Detector("D", "1", ("0002",)))
    case = case_of(given_run, table, context=context)
    content = check(case)
    top = goal(case, given_run)
    # Nobody has tested that drives are independent, nor says so.
    assert (top.status, top.defeated, top.undeveloped) == (Status.CONDITIONAL, False, False)
    assert conditions(case, given_run) == [f"95 % confidence bounds (independent drives): {DRIVES}"]
    assert top.grade is Grade.UNTESTED
    for number in (0, 1):
        leaf = goal(case, given_run, number)
        (solution,) = leaf.supported_by
        assert case.by_id[solution].url == "results/run.json"
        assert given_run.sha256 in content[solution]["text"]
        assert leaf.told == f"conditional on {top.rests_on[0]}"
    # What is left to people has no evidence: the whole is undeveloped.
    assert case.status is Status.UNDEVELOPED
    assert case.top.text == "Shuttle meets its requirement in its operational design domain"
    training = next(each for each in case.elements if "not trained on the data" in each.text)
    assert (training.status, training.grade) == (Status.UNDEVELOPED, Grade.DECLARED)
    assert "0 of 1 tested sequence" in training.note


def test_two_runs_of_the_same_matrices_were_tested_on_the_same_sequences():
    drives = [{"name": "0001", "frames": 10, "counts": [[0, 0, 0, 20], [0, 0, 1, 5], [0, 1, 0, 1], [0, 1, 1, 74]]}]
    table = matrices(sequences=drives)
    context = CaseContext(detector=Detector("D", "1", ("0002",)))
    case = case_of(made_with(table), made_with(table, title="another"), table, context=context)
    check(case)
    training = next(each for each in case.elements if "not trained on the data" in each.text)
    assert training.note.startswith("0 of 1 tested sequence are among those trained on, as declared. ")


def test_what_the_second_engine_did_not_confirm_is_not_called_confirmed():
    def justification(*remarks):
        case = case_of(satisfied_run(remarks=remarks))
        check(case)
        return next(each.text for each in case.elements if each.text.startswith("Probabilities are Storm's"))

    assert justification().startswith("Probabilities are Storm's, confirmed by a second engine; compared with")
    found = justification("stops: the range over all ways to act is Storm's alone, not confirmed")
    assert "confirmed by a second engine where nothing else is remarked; compared" in found


def test_what_is_not_stated_says_so():
    texts = [f"{each.text} {each.note}" for each in case_of(satisfied_run()).elements]
    for part in ("System: not stated", "Operational design domain: not stated", "Detector: not stated",
                 "Test data: not stated", "Exposure: not stated", "Trained on: not stated",
                 "What counts as detected is right: not stated",
                 "that the system model represents the deployed system: not stated"):  # fmt: skip
        assert any(part in text for text in texts), part


def test_violated_and_inconclusive_scenarios_are_not_supported():
    points = [
        point(0.96, "satisfied", (0.92, 0.99)),
        point(0.5, "violated", (0.4, 0.6), environment="obs"),
        point(0.9, "inconclusive", (0.8, 0.95), environment="empty"),
    ]
    given_run = run([requirement("stops", points, worst=1)])
    case = case_of(given_run)
    check(case)
    good, bad, open_ = (goal(case, given_run, number) for number in range(3))
    assert good.supported_by
    assert good.status is Status.CONDITIONAL
    assert (bad.status, bad.supported_by, bad.undeveloped, bad.defeated) == (Status.VIOLATED, (), True, True)
    (against,) = case.challengers(bad.id)
    assert "[0.4, 0.6]" in against.text
    assert [case.by_id[name].kind for name in against.supported_by] == [Kind.COUNTER_SOLUTION]
    assert (open_.status, open_.supported_by, open_.undeveloped, open_.defeated) == (
        Status.INCONCLUSIVE,
        (),
        True,
        True,
    )
    assert goal(case, given_run).status is Status.VIOLATED
    assert case.status is Status.VIOLATED


def test_a_doubt_about_the_whole_run_defeats_its_goals_and_everything_below():
    given_run = satisfied_run(round_transitions=3)
    case = case_of(given_run)
    check(case)
    whole = goal(case, given_run)
    assert (whole.status, whole.defeated) == (Status.DEFEATED, True)
    (against,) = case.challengers(whole.id)
    assert "transition probabilities were rounded (D1)" in against.text
    for number in (0, 1):
        leaf = goal(case, given_run, number)
        assert leaf.status is Status.DEFEATED
        assert f"Defeated with {whole.id} by D1" in leaf.note
    assert case.status is Status.DEFEATED


def drawing(p_value, **more):
    """One satisfied scenario whose chain draws ped, its channel with this p-value; None for no test."""
    points = [point(0.96, "satisfied", (0.92, 0.99), draws=["ped"], **more)]
    found = requirement("stops", points) | {"condition": points[0]["condition"]}
    return run([found], channel=channel_of_ped(p_value), assume_memoryless=True)


@pytest.mark.parametrize(
    ("p_value", "status", "stands"),
    [
        (
            0.4,
            "Tested by permutation of frames: not contradicted: ped: not contradicted, p = 0.4",
            "conditional on A2",
        ),
        (None, "Not tested on these data: ped: not tested", "conditional on A1, A2"),
        (0.0001, "Contradicted by the data (D1): ped: contradicted, p = 0.0001", "defeated"),
    ],
)
def test_what_is_not_tested_is_a_condition_and_what_is_contradicted_defeats(p_value, status, stands):
    given_run = drawing(p_value)
    case = case_of(given_run)
    check(case)
    memory = next(each for each in case.elements if each.text.endswith("(memoryless detector)"))
    assert memory.note.startswith(status)
    assert memory.defeated is (stands == "defeated")
    assert goal(case, given_run).told == goal(case, given_run, 0).told == stands
    grade = Grade.TESTED if p_value == 0.4 else Grade.UNTESTED
    assert memory.grade is grade


def test_what_holds_whatever_the_detector_predicts_rests_on_nothing_else():
    points = [
        point(1.0, "satisfied", (1.0, 1.0), draws=["ped"], whatever_predicted=1, basis="any_dependence"),
        point(0.96, "satisfied", (0.92, 0.99), draws=["ped"], basis="any_dependence", environment="obs"),
    ]
    given_run = run([requirement("stops", points, worst=1)], channel=channel_of_ped(None))
    case = case_of(given_run)
    check(case)
    free, dependent = goal(case, given_run, 0), goal(case, given_run, 1)
    assert (free.told, free.grade) == ("supported", Grade.RECOMPUTED)
    assert dependent.status is Status.CONDITIONAL  # of the rates of single reports, not of their dependence
    assert conditions(case, given_run, 1) == [f"95 % confidence bounds (independent drives): {DRIVES}"]
    alone = case_of(run([requirement("stops", points[:1])]))
    proven = run([requirement("stops", points[:1])])
    assert next(each for each in alone.elements if each.text.startswith("stops")).told == "supported"
    proofs = {Claim(proven.sha256, "stops", "p", 0): ("certificates/block001_requirement01_point_lower_01.json",)}
    assert goal(case_of(proven, proven=proofs), proven).grade is Grade.PROVEN


def test_a_result_that_nobody_made_again_is_at_best_conditional():
    points = [point(1.0, "satisfied", (1.0, 1.0), whatever_predicted=1, basis="any_dependence")]
    given_run = run([requirement("stops", points)])
    case = case_of(given_run, unverified={given_run.sha256: "its inputs are not here"})
    check(case)
    assert goal(case, given_run).status is Status.CONDITIONAL
    assert conditions(case, given_run) == ["results/run.json is what its inputs give"]
    (solution,) = goal(case, given_run, 0).supported_by
    assert case.by_id[solution].text.endswith("results/run.json, not verified here")


def test_a_condition_stands_in_the_goal_and_as_an_assumption_beside_it():
    condition = "if items are independent"
    given_run = drawing(0.4, condition=condition)
    case = case_of(given_run)
    check(case)
    for each in (goal(case, given_run), goal(case, given_run, 0)):
        assert each.status is Status.CONDITIONAL
        assert each.text.endswith(", if items are independent")
        assert "satisfied, if items are independent" in each.note
    free = drawing(0.4)
    texts = [each.text + each.note for each in case_of(free).elements]
    assert not any("tems are independent" in text for text in texts)


def test_what_is_vacuous_has_a_status_of_its_own():
    over = [{"kind": "ended", "text": "the episode is over before it begins"}]
    points = [
        point(0.96, "satisfied", (0.92, 0.99)),
        point(1.0, "vacuous", (0.9, 1.0), environment="obs", vacuity=over),
    ]
    for listed, worst, whole in ((points, 0, Status.CONDITIONAL), (points[1:], 0, Status.VACUOUS)):
        given_run = run([requirement("stops", listed, worst=worst)])
        case = case_of(given_run)
        check(case)
        leaf = goal(case, given_run, len(listed) - 1)
        assert (leaf.status, leaf.undeveloped, leaf.supported_by) == (Status.VACUOUS, True, ())
        assert "vacuous (the episode is over before it begins)" in leaf.note
        assert goal(case, given_run).status is whole
        assert case.status is Status.UNDEVELOPED


def test_what_the_data_contradict_is_open_with_its_reason():
    reason = {"kind": "dependence", "label": "ped", "p_value": 0.0001, "model_verdict": "satisfied"}
    points = [point(0.96, "inconclusive", (0.92, 0.99), draws=["ped"], reason=reason)]
    given_run = run([requirement("stops", points)], channel=channel_of_ped(0.0001))
    case = case_of(given_run)
    check(case)
    leaf = goal(case, given_run, 0)
    assert (leaf.status, leaf.undeveloped) == (Status.INCONCLUSIVE, True)
    assert (
        "inconclusive (the data contradict a memoryless detector (ped, p = 0.0001); the contradicted model"
        in leaf.note
    )


def test_several_scenarios_of_an_environment_have_a_goal_between():
    points = [point(0.96, "satisfied", (0.92, 0.99), initial={"x": k}) for k in range(3)]
    points.append(point(0.97, "satisfied", (0.93, 0.99), environment="obs"))
    given_run = run([requirement("stops", points)])
    case = case_of(given_run)
    check(case)
    (strategy,) = goal(case, given_run).supported_by
    between, single = (case.by_id[name] for name in case.by_id[strategy].supported_by)
    assert single is goal(case, given_run, 3)
    assert "environment ped" in between.text
    (inner,) = between.supported_by
    assert [case.by_id[name] for name in case.by_id[inner].supported_by] == [
        goal(case, given_run, k) for k in range(3)
    ]


def test_requirements_without_target_or_result_are_not_left_out():
    given_run = run([
        requirement("stops", [point(0.96, "satisfied", (0.92, 0.99))]),
        requirement("counts", [point(0.3, "no target"), point(0.7, "no target", environment="obs")], None),
    ])  # fmt: skip
    case = case_of(given_run, unevidenced={"parks": "it was not asked for"})
    check(case)
    assert any("Reported without a target: counts, P = ?, 0.3 to 0.7" in each.text for each in case.elements)
    parks = next(each for each in case.elements if each.text == "parks is met")
    assert (parks.undeveloped, parks.note) == (True, "No result: it was not asked for")
    only_counted = case_of(run([requirement("counts", [point(0.3, "no target")], None)]))
    check(only_counted)
    assert only_counted.by_id["S1"].undeveloped
    assert "meets its requirements, none of which has a target, in its" in only_counted.top.text


def rated(given_run, accept, name="rate.json"):
    asked = RateQuestion("stops", acceptance=Acceptance(Fraction(accept), ""))
    return document(json_values(hazard_rate(given_run, asked, {EVERY: Exposure.stated(12)})), name)


@pytest.mark.parametrize(
    ("accept", "status"), [(2, Status.CONDITIONAL), (0.5, Status.INCONCLUSIVE), (0.1, Status.VIOLATED)]
)
def test_rates_are_argued(accept, status):
    """12 encounters per hour fail with 0.01 to 0.08 each: 0.12 to 0.96 per hour."""
    given_run = run([requirement("stops", [point(0.96, "satisfied", (0.92, 0.99))])])
    case = case_of(given_run, rated(given_run, Fraction(accept)))
    check(case)
    (found,) = rate_goals(case)
    assert found.status is status
    assert bool(found.supported_by) == (status is Status.CONDITIONAL)
    assumed = (
        ["95 % confidence bounds", "Encounters come as often", "2 per hour is acceptable"] if accept == 2 else []
    )
    assert all(case.by_id[name].text.startswith(said) for name, said in zip(found.rests_on, assumed, strict=True))
    assert operation_of(case).status is status
    assert found.id in operation_of(case).supported_by


def operation_of(case):
    (found,) = [each for each in case.elements if each.text.startswith("Argument at the level of operation")]
    return found


def test_the_levels_of_context_are_argued_apart():
    """A requirement that holds in an encounter says nothing of how often encounters come, and the other way round."""
    given_run = run([requirement("stops", [point(0.96, "satisfied", (0.92, 0.99))])])
    encounter_only = case_of(given_run)
    assert [encounter_only.by_id[each].text for each in encounter_only.top.supported_by] == [
        "Argument at the level of one encounter: over each requirement, in the worst of its scenarios",
        "Argument over what the numbers rest on, as far as there is evidence: computation, sample, looks, memory",
        "Argument over what the results cannot show",
    ]
    case = case_of(given_run, rated(given_run, Fraction(1, 10)))
    check(case)
    encounter, numbers, operation, _ = (case.by_id[each] for each in case.top.supported_by)
    assert operation is operation_of(case)
    assert (encounter.status, operation.status) == (Status.CONDITIONAL, Status.VIOLATED)
    assert numbers.status is Status.SUPPORTED
    assert case.top.status is Status.VIOLATED
    assert not set(encounter.supported_by) & set(operation.supported_by)


def test_a_rate_of_a_doubted_run_is_doubted():
    given_run = satisfied_run(round_transitions=3)
    case = case_of(given_run, rated(given_run, Fraction(2)))
    check(case)
    (found,) = rate_goals(case)
    assert found.status is Status.DEFEATED


def test_a_rate_from_the_point_alone_supports_nothing():
    given_run = run([requirement("stops", [point(0.96, "satisfied")])], verdict_from="point", confidence=None)
    case = case_of(given_run, rated(given_run, Fraction(2)))
    check(case)
    (found,) = rate_goals(case)
    assert (found.status, found.undeveloped) == (Status.UNDEVELOPED, True)


def test_a_rate_without_a_criterion_is_told_beside_the_requirement():
    given_run = satisfied_run()
    found = hazard_rate(given_run, RateQuestion("stops"), {EVERY: Exposure.stated(Fraction(12))})
    rate = document(json_values(found), "rate.json")
    case = case_of(given_run, rate)
    check(case)
    texts = [case.by_id[name].text for name in goal(case, given_run).in_context_of]
    assert texts == [
        "How often it fails: [0.12, 0.96] per hour (bounds, at level 0.95; assumes that drives are independent and "
        "none holds more than 40 items of a column)"
    ]
    alone = case_of(satisfied_run(title="another"), rate)
    check(alone)
    assert any("argued from by nothing here: rate.json (rate" in each.text for each in alone.elements)


def test_an_acceptance_criterion_without_a_rate_is_left_open():
    context = CaseContext(acceptances={"stops": Acceptance(Fraction(1), ""), "parks": Acceptance(Fraction(1), "")})
    case = case_of(satisfied_run(), context=context)
    check(case)
    notes = [each.note for each in case.elements if each.undeveloped]
    assert "Acceptance criterion stated, no result of verify evidence rate against it; exposure: not stated" in notes
    assert any("no run has a requirement of this name" in note for note in notes)


def rate_goals(case):
    return [each for each in case.elements if each.text.startswith("The violation rate of ")]


def test_a_rate_says_what_it_is_made_of():
    given_run = satisfied_run()
    asked = RateQuestion("stops", acceptance=Acceptance(Fraction(2), ""))
    exposures = {
        "ped": Exposure.counted(24, Fraction(2), "March"),
        "obs": Exposure.stated(Fraction(1)),
    }
    rate = document(json_values(hazard_rate(given_run, asked, exposures)), "rate.json")
    case = case_of(given_run, rate)
    check(case)
    (found,) = rate_goals(case)
    context, criterion = (case.by_id[name].text for name in found.in_context_of)
    assert criterion == "2 per hour is acceptable"
    assert found.text == (
        "The violation rate of stops with planner p is at most 2 per hour (worst scenario in every encounter)"
    )
    assert context.startswith("Encounters come as often as stated: ped [7.")
    assert "per hour (24 counted in 2 h, March); obs 1 per hour (source not stated)" in context


def test_a_part_of_the_rate_does_not_show_the_whole():
    """obs alone fails at most 0.84 times per hour; how often ped fails is left out."""
    given_run = satisfied_run()
    asked = RateQuestion("stops", environments=("obs",), acceptance=Acceptance(Fraction(2), ""))
    found = hazard_rate(given_run, asked, {EVERY: Exposure.stated(Fraction(12))})
    assert found.left_out == ("ped",)
    rate = document(json_values(found), "rate.json")
    assert rate.content["verdict"] == "satisfied"
    case = case_of(given_run, rate)
    check(case)
    (goal_of_rate,) = rate_goals(case)
    assert (goal_of_rate.status, goal_of_rate.undeveloped) == (Status.UNDEVELOPED, True)
    assert "without what happens in ped, which was left out" in goal_of_rate.note
    # What a part alone exceeds, the whole exceeds.
    strict = RateQuestion("stops", environments=("obs",), acceptance=Acceptance(Fraction(1, 100), ""))
    exceeded = hazard_rate(given_run, strict, {EVERY: Exposure.stated(Fraction(12))})
    case = case_of(given_run, document(json_values(exceeded), "rate.json"))
    check(case)
    assert rate_goals(case)[0].status is Status.VIOLATED


def test_a_looser_criterion_than_the_stated_one_does_not_stand_for_it():
    given_run = satisfied_run()
    context = CaseContext(acceptances={"stops": Acceptance(Fraction(1, 10**7), "")})

    def open_criteria(accept):
        case = case_of(given_run, rated(given_run, accept), context=context)
        check(case)
        return [each.text for each in case.elements if each.undeveloped and each.text.startswith("The rate at which")]

    assert open_criteria(Fraction(100)) == ["The rate at which stops fails is at most 1e-07 per hour"]
    assert open_criteria(Fraction(1, 10**7)) == open_criteria(Fraction(1, 10**8)) == []


def test_every_planner_is_held_against_the_stated_criterion():
    points = [point(0.96, "satisfied", (0.92, 0.99))]
    given_run = run([requirement("stops", points, planner=name) for name in ("p", "q")])
    found = hazard_rate(
        given_run,
        RateQuestion("stops", "p", acceptance=Acceptance(Fraction(2), "")),
        {EVERY: Exposure.stated(Fraction(12))},
    )
    context = CaseContext(acceptances={"stops": Acceptance(Fraction(2), "")})
    case = case_of(given_run, document(json_values(found), "rate.json"), context=context)
    check(case)
    texts = [each.text for each in case.elements if each.undeveloped and each.text.startswith("The rate at which")]
    assert texts == ["The rate at which stops fails is at most 2 per hour with planner q"]


def test_a_rate_of_what_has_no_target_is_doubted_all_the_same():
    given_run = run([requirement("stops", [point(0.96, "no target", (0.92, 0.99))], None)], endless=True)
    asked = RateQuestion("stops", event="violated", acceptance=Acceptance(Fraction(2), ""))
    rate = document(json_values(hazard_rate(given_run, asked, {EVERY: Exposure.stated(Fraction(12))})), "rate.json")
    case = case_of(given_run, rate)
    check(case)
    (found,) = rate_goals(case)
    assert (found.status, found.defeated) == (Status.DEFEATED, True)
    (counter,) = case.challengers(found.id)
    assert "runs never end (D1)" in counter.text
    assert case_of(run([requirement("stops", [point(0.9, "no target")], None)], endless=True)).status is not None


def test_thin_columns_speak_against_a_rate_that_does_not_allow_for_them():
    table = matrices(((21, 0), (0, 79)))
    points = [point(1.0, "satisfied", (0.5, 1.0), interval=(1.0, 1.0))]
    given_run = run([requirement("stops", points)], inputs=(SPEC, MODEL, table.sha256), verdict_from="interval")
    case = case_of(given_run, table, rated(given_run, Fraction(2)))
    check(case)
    assert rate_goals(case)[0].status is Status.DEFEATED


def test_two_runs_are_told_apart():
    first, second = satisfied_run(), satisfied_run(title="the other", inputs=(SPEC, MODEL, "9" * 64))
    case = case_of(first, second)
    check(case)
    assert goal(case, first).id != goal(case, second).id
    assert "stops (run 2: the other)" in goal(case, second).text


def test_two_planners_are_told_apart():
    points = [point(0.96, "satisfied", (0.92, 0.99))]
    planners = {name: {"kind": "rules", "pick": "lowest"} for name in ("p", "q")}
    given_run = run([requirement("stops", points, planner=name) for name in ("p", "q")], planners=planners)
    case = case_of(given_run)
    check(case)
    texts = [each.text for each in case.elements if each.text.startswith("In ped")]
    assert [text.split(", ")[1].split(" holds")[0] for text in texts] == [
        "stops with planner p",
        "stops with planner q",
    ]


def test_documents_that_nothing_argues_from_are_listed():
    case = case_of(satisfied_run(), matrices(name="unused.json"))
    check(case)
    assert any("argued from by nothing here: unused.json (confusion" in each.text for each in case.elements)


def test_a_case_needs_a_run():
    with pytest.raises(UsageError, match="needs the result of a verify run"):
        build_case([matrices()], CaseContext(), (), {})


def test_equal_inputs_give_equal_bytes():
    assert gsn_yaml(case_of(satisfied_run())) == gsn_yaml(case_of(satisfied_run()))


HOSTILE = (
    "<script>alert(1)</script> \u202egnp.exe\x1b[31m \ud800 [x](https://e.vil) 'q' \"r\" # : - {} \U0001f600 \x85"
    + "\u2028"
    + "w" * 10_000
)


def test_hostile_names_stay_texts(tmp_path):
    name = HOSTILE.replace("\ud800", "")
    given_run = run(
        [requirement(name, [point(0.5, "violated", (0.4, 0.6), environment=name)])], title=name, round_transitions=3
    )
    context = CaseContext(
        system=HOSTILE, odd=HOSTILE, detector=Detector(HOSTILE, HOSTILE, (HOSTILE,)), responsible={"odd": HOSTILE}
    )
    case = case_of(given_run, context=context)
    content = check(case)
    text = gsn_yaml(case)
    assert text.isascii() or all(character.isprintable() or character == "\n" for character in text)
    assert "\u202e" not in text
    assert "https://" not in text
    assert all(len(node["text"]) < 8000 for key, node in content.items() if key != "module")
    Path(tmp_path / "case.yaml").write_text(text, encoding="utf-8")


texts = st.text(st.characters(), min_size=1, max_size=40)


@given(st.lists(texts, min_size=1, max_size=4), texts)
def test_any_text_reads_back_as_it_is_shown(names, note):
    """A case made by hand: PyYAML reads from the file what the writer showed of each text."""
    leaves = tuple(
        Element(f"G{k + 2}", Kind.GOAL, name, note, undeveloped=True, status=Status.UNDEVELOPED)
        for k, name in enumerate(names)
    )
    top = Element("G1", Kind.GOAL, "top", supported_by=tuple(each.id for each in leaves), status=Status.UNDEVELOPED)
    content = yaml.safe_load(gsn_yaml(Case("t", (top, *leaves))))
    assert complaints(content) == []
    for each in leaves:
        shown = "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in f"{each.text}\n{each.note}")
        assert content[each.id]["text"] == shown.replace("://", ": //")


def element(identifier, kind, **more):
    if kind in (Kind.GOAL, Kind.STRATEGY):
        more = {"status": Status.UNDEVELOPED} | more
    return Element(identifier, kind, "t", **more)


def test_nothing_is_supported_that_is_not_shown():
    for make in (
        lambda: element("G1", Kind.GOAL, undeveloped=True, status=Status.SUPPORTED),
        lambda: element("G1", Kind.GOAL, supported_by=("Sn1",), status=Status.SUPPORTED, rests_on=("A1",)),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            make()


def test_what_is_challenged_is_defeated_from_birth():
    leaf = element("G2", Kind.GOAL, undeveloped=True)
    top = element("G1", Kind.GOAL, supported_by=("G2",))
    assert Case("t", (top, leaf)).top is top
    for challenged in ("G2", "G9"):
        with pytest.raises(ValueError, match="is defeated"):
            Case("t", (top, leaf, element("CG1", Kind.COUNTER_GOAL, challenges=challenged)))


def test_the_worst_of_several():
    assert worst_status() is Status.SUPPORTED
    assert worst_status(Status.SUPPORTED, Status.UNDEVELOPED) is Status.UNDEVELOPED
    assert worst_status(Status.INCONCLUSIVE, Status.DEFEATED, Status.UNDEVELOPED) is Status.INCONCLUSIVE
    assert worst_status(*Status) is Status.VIOLATED
    order = ["supported", "conditional", "undeveloped", "defeated", "inconclusive", "violated"]
    for better, worse in itertools.pairwise(map(Status, order)):
        assert worst_status(better, worse) is worst_status(worse, better) is worse
    for status in Status:  # what is vacuous counts as undeveloped, and over scenarios not at all beside another
        if status is not Status.VACUOUS:
            assert worst_status(status, Status.VACUOUS) is worst_status(status, Status.UNDEVELOPED)
            assert status_over([status, Status.VACUOUS]) is status
    assert status_over([Status.VACUOUS] * 2) is Status.VACUOUS
