"""Every kind of doubt: made by hand to be found, and to be absent where it should be."""

from fractions import Fraction
from pathlib import Path

import pytest
from made_runs import BOUNDS, CONFIDENCE
from run_documents import (
    MATRICES,
    MODEL,
    SPEC,
    document,
    made_with,
    matrices,
    point,
    requirement,
    run,
    satisfied_run,
)
from run_documents import channel as channel_of_ped

from verifier.base.errors import InputError
from verifier.evidence.context import CaseContext, Detector
from verifier.evidence.defeaters import about_data, finding
from verifier.evidence.defeaters.finding import find_defeaters
from verifier.evidence.defeaters.values import KINDS, Claim, claims_on
from verifier.evidence.documents import Document
from verifier.study.results import Target

PACKAGE = Path(about_data.__file__).parents[2]


def claim(given, point=None, name="stops"):
    return Claim(given.sha256, name, "p", point)


def only(found):
    (each,) = found
    return each


def test_a_sound_run_has_no_defeaters():
    table = matrices()
    given = made_with(table)
    assert (
        find_defeaters([given, table], CaseContext(), {"another": satisfied_run(inputs=(SPEC, MODEL, table.sha256))})
        == ()
    )


# --- straddles_target


def undecided_run(**more):
    points = [
        point(0.96, "satisfied", (0.92, 0.99)),
        point(0.91, "inconclusive", (0.85, 0.95), environment="obs"),
        point(0.95, "inconclusive", (0.89, 0.98), environment="obs", initial={"x": 2}),
    ]
    needed = {
        "columns": [
            {"true": "ped", "bin": "[0, 10) m", "items": 40, "further": 300},
            {"true": "obs", "bin": "[0, 10) m", "items": 9, "further": 20},
        ],
        "drives": None,
        "lower": 0.9001,
        "upper": 0.92,
        "verdict": "satisfied",
    }
    return run([requirement("stops", points, worst=1, additional_data=needed)], **more)


def test_bounds_on_both_sides_of_the_target():
    given = undecided_run()
    found = only(finding.straddles_target(given))
    assert found.claims == (claim(given, 1), claim(given, 2))
    for part in ("2 scenarios undecided", "obs x=1", "[0.85, 0.95]", "P >= 0.9"):
        assert part in found.message
    assert "about 320 more items" in found.remedy
    assert list(finding.straddles_target(satisfied_run())) == []


def test_what_is_violated_does_not_straddle():
    given = run([requirement("stops", [point(0.2, "violated", (0.1, 0.3))])])
    assert list(finding.straddles_target(given)) == []


# --- no_bounds


def test_a_verdict_from_the_point_alone():
    points = [
        point(0.96, "satisfied", (0.85, 0.99)),  # its confidence bounds would be inconclusive
        point(0.97, "satisfied", (0.93, 0.99), environment="obs"),  # these confirm it
    ]
    given = run([requirement("stops", points)], verdict_from="point")
    found = only(finding.no_bounds(given))
    assert found.claims == (claim(given, 0),)
    assert "P = 0.96 alone was compared with P >= 0.9, and the confidence bounds are [0.85, 0.99]" in found.message
    bare = run([requirement("stops", [point(0.96, "satisfied")])], verdict_from="point", confidence=None)
    assert "and no bounds were computed" in only(finding.no_bounds(bare)).message
    assert list(finding.no_bounds(run([requirement("stops", points)]))) == []


# --- thin_columns


def test_columns_that_would_decide():
    given = undecided_run()
    found = only(about_data.thin_columns(given, [given]))
    assert found.claims == (claim(given, 1),)
    assert "40 items with true ped in [0, 10) m, 300 more needed; 9 items with true obs" in found.message
    assert list(about_data.thin_columns(satisfied_run(), [])) == []


# P >= 9/10 at 95 %: 0.9^28 = 0.0523, 0.9^29 = 0.0471, so a column needs 29 items. ped has 21, empty has 79.
def hopeful_run(lower=0.85, **more):
    """P >= 0.9, met by the point in two scenarios, the second confirmed by its confidence bounds."""
    points = [
        point(0.96, "satisfied", (lower, 0.99), interval=(0.92, 0.98)),
        point(0.97, "satisfied", (0.93, 0.99), environment="obs"),
    ]
    return run([requirement("stops", points)], **{"verdict_from": "point"} | more)


@pytest.mark.parametrize("source", ["point", "interval"])
def test_columns_too_thin_to_show_the_target(source):
    assert about_data.items_needed(Target(">=", Fraction(9, 10))) == 29
    assert about_data.items_needed(Target("<=", Fraction(1, 10))) == 29
    assert about_data.items_needed(Target(">=", Fraction(1))) is None
    table = matrices()
    given = made_with(table, hopeful_run, verdict_from=source)
    found = only(about_data.thin_columns(given, [given, table]))
    assert found.claims == (claim(given, 0),)
    assert "29 items without an error are needed to show P >= 0.9, and there are 21 with true ped" in found.message
    assert "not known: it was not explained" in found.message
    thick = matrices(((28, 5), (1, 74)))
    assert list(about_data.thin_columns(made_with(thick, hopeful_run), [thick])) == []
    # Where confidence bounds decide or confirm they allow for the few items; where the matrices are not there nothing
    # is known.
    assert list(about_data.thin_columns(made_with(table), [table])) == []
    sure = made_with(table, hopeful_run, lower=0.91, verdict_from=source)
    assert list(about_data.thin_columns(sure, [sure, table])) == []
    assert list(about_data.thin_columns(given, [given])) == []


def test_what_is_met_in_part_rests_on_thin_columns_too():
    """The requirement is violated in one scenario; in the other one it is called satisfied with 21 items."""
    table = matrices()
    points = [
        point(0.5, "violated", (0.4, 0.6)),
        point(0.96, "satisfied", (0.85, 0.99), interval=(0.92, 0.98), environment="obs"),
    ]
    given = run([requirement("stops", points)], inputs=(SPEC, MODEL, table.sha256), verdict_from="interval")
    assert only(about_data.thin_columns(given, [given, table])).claims == (claim(given, 1),)


def test_slopes_of_zero_excuse_no_column_where_errors_were_never_seen():
    """A failure that takes two errors, none seen, has slopes of 0 in both: 21 items without an error are too few."""
    table = matrices(((21, 0), (0, 79)))
    given = made_with(table, hopeful_run)
    flat = explained(given, ([0, 0], [0, 0]))
    found = only(about_data.thin_columns(given, [given, table, flat]))
    assert "21 with true ped" in found.message
    assert "not known: there are reports that were never seen" in found.message


def explained(given, slopes):
    """An explanation that says which of the columns ped (0) and empty (1) the probability reacts to."""
    names = ("ped", "empty")
    part = {
        "name": "stops", "planner": "p", "formula": "G safe", "target": None, "verdict": "satisfied",
        "condition": None, "point": given.content["requirements"][0]["points"][0], "asks_about": ["ped"],
        "perfect_perception": 1, "fixes": [], "moves": [], "label_more": [],
        "violation": {"satisfies_the_formula": False, "probability": 0, "error": 0, "covered": None,
                      "complete": True, "ranked": True, "rest": 0,
                      "detection_errors": [], "causes": [], "corrections": [], "patterns": []},
        "posterior_deviation": 0, "posterior_deviation_assumes": "if items are independent", "jumps": [], "map": None,
        "gradient": [{"bin": 0, "true": name, "slopes": slope} for name, slope in zip(names, slopes, strict=True)],
    }  # fmt: skip
    same = ("title", "verdict", "condition", "inputs", "settings", "channel", "versions", "engines")
    content = {key: given.content[key] for key in same}
    content |= {
        "schema": "verifier.explain",
        "version": 1,
        "remarks": [],
        "labels": list(names),
        "bins": ["[0, inf) m"],
    }
    content |= {
        "explain": {
            "patterns": 1,
            "members": 1,
            "full_paths": False,
            "rows": 1,
            "level": 0.95,
            "prior": 0.5,
            "map": None,
        },
        "explanations": [part],
    }
    return document(content, "explain.json")


def test_only_columns_that_matter_are_too_thin():
    table = matrices()
    given = made_with(table, hopeful_run)
    harmless = explained(given, ([0, 0], [0, 1]))
    assert list(about_data.thin_columns(given, [given, table, harmless])) == []
    harmful = explained(given, ([0, -1], [0, 0]))
    found = only(about_data.thin_columns(given, [given, table, harmful]))
    assert "21 with true ped" in found.message
    assert "not known" not in found.message
    other = explained(hopeful_run(), ([0, 0], [0, 1]))  # of other matrices: says nothing here
    assert "not known" in only(about_data.thin_columns(given, [given, table, other])).message


# --- assumed_rates, no_false_positives, distance_ignored, rounded, endless


def test_rates_assumed_by_a_policy():
    remark = "no items with true ped in [0, 10) m: rates filled in by policy 'neighbour'"
    given = satisfied_run(remarks=[remark], verdict_from="point", empty_columns="neighbour")
    assert only(finding.by_choice(given, [])).message == remark
    assert (
        list(finding.by_choice(satisfied_run(remarks=[remark]), [])) == []
    )  # the confidence bounds do not lean on it
    assert list(finding.by_choice(satisfied_run(verdict_from="point"), [])) == []


def test_false_positives_left_out():
    remark = "the matrices were made without unmatched detections, so the model contains no false positives"
    given = satisfied_run(remarks=[remark])
    assert only(finding.by_choice(given, [])).claims == (claim(given),)
    assert "by choice" in only(finding.by_choice(satisfied_run(false_positives="ignore"), [])).message
    assert list(finding.by_choice(satisfied_run(), [])) == []


@pytest.mark.parametrize(
    ("kind", "setting", "value"),
    [("distance_ignored", "canonical", True), ("rounded", "round_transitions", 4), ("endless", "endless", True)],
)
def test_settings_that_change_what_is_computed(kind, setting, value):
    given = satisfied_run(**{setting: value})
    found = only(finding.by_choice(given, []))
    assert (found.kind, found.claims) == (kind, (claim(given),))
    assert list(finding.by_choice(satisfied_run(), [])) == []


# --- dependent_frames


def test_environments_that_were_left_out():
    given = satisfied_run(environments_left_out=["obs", "empty"])
    found = only(find_defeaters([given], CaseContext(), {}))
    assert (found.kind, found.claims) == ("scenarios_left_out", (claim(given),))
    assert "run.json leaves out what the spec asks for: environment obs; empty" in found.message


def drawing_run(p_value, free=None, **more):
    """A scenario whose chain draws ped, and one that draws nothing; `free` as `whatever_predicted` of the first."""
    free = {} if free is None else {"whatever_predicted": free, "basis": "any_dependence"}
    points = [
        point(1.0, "satisfied", (0.92, 1.0), draws=["ped"], **free),
        point(0.97, "satisfied", (0.93, 0.99), environment="obs"),
    ]
    return run([requirement("stops", points)], channel=channel_of_ped(p_value), assume_memoryless=True, **more)


def test_misses_that_follow_misses():
    given = drawing_run(0.0001)
    found = only(about_data.dependent_frames(given, []))
    assert found.message == (
        "a memoryless detector is assumed: ped: contradicted, p = 0.0001; after a miss the next frame misses with "
        "0.80, not 0.34 (20 of 25 pairs of frames)"
    )
    assert found.claims == (claim(given, 0),)  # the other scenario draws nothing
    # Not contradicted is no doubt; what nothing tests is a condition of the claim.
    for p_value in (0.4, None):
        assert list(about_data.dependent_frames(drawing_run(p_value), [])) == []


@pytest.mark.parametrize("p_value", [0.0001, None])
def test_what_no_prediction_can_change_is_not_doubted(p_value):
    """A scenario that holds whatever the detector predicts rests on no detector."""
    given = drawing_run(p_value, free=1)
    assert list(about_data.dependent_frames(given, [])) == []
    assert claims_on(given, []) == (claim(given),)
    # Confidence bounds of 1 and 1 are no such thing: they are of a memoryless detector.
    bounded = run(
        [requirement("stops", [point(1.0, "satisfied", (1.0, 1.0), draws=["ped"])])], channel=channel_of_ped(p_value)
    )
    assert claims_on(bounded, [], perceived=True) == (claim(bounded),)


def test_few_drives():
    def with_drives(drives, ceiling):
        bounds = BOUNDS | {"drives": drives, "ceiling": ceiling}
        return satisfied_run(confidence=CONFIDENCE | {"bounds": bounds})

    given = with_drives(5, 0.445123)
    found = only(about_data.few_drives(given, []))
    assert found.claims == (claim(given),)
    assert found.message == (
        "a needed column has items from 5 drives only: no outcome of them could show a rate above 0.446"
    )
    assert list(about_data.few_drives(with_drives(8, None), [])) == []
    assert list(about_data.few_drives(with_drives(None, None), [])) == []
    assert list(about_data.few_drives(satisfied_run(confidence=None), [])) == []


def test_what_the_test_refuses_does_not_straddle():
    reason = {"kind": "dependence", "label": "ped", "p_value": 0.0001, "model_verdict": "satisfied"}
    points = [point(0.96, "inconclusive", (0.92, 0.99), draws=["ped"], reason=reason)]
    given = run([requirement("stops", points)], channel=channel_of_ped(0.0001))
    assert list(finding.straddles_target(given)) == []
    assert only(about_data.dependent_frames(given, [])).claims == (claim(given),)


# --- stale, trained_on_tests


def test_matrices_that_changed_since():
    old, new = matrices(), matrices(((21, 5), (0, 74)))
    given = made_with(old)
    found = only(about_data.stale(given, [given, new]))
    assert f"SHA-256 {old.sha256[:12]}" in found.message
    assert f"the one given is {new.sha256[:12]}" in found.message
    assert list(about_data.stale(given, [given, old])) == []
    elsewhere = matrices(((21, 5), (0, 74)), name="other.json")
    assert list(about_data.stale(given, [given, elsewhere])) == []  # another detector's


def test_results_of_other_files():
    given = satisfied_run()
    other = satisfied_run(inputs=(SPEC, "9" * 64, MATRICES), name="explain.json")
    found = only(about_data.stale(given, [given, other]))
    assert (
        "model a.toml of SHA-256 222222222222..., and the one used by explain.json is 999999999999" in found.message
    )


def test_a_detector_trained_on_test_drives():
    drives = [{"name": name, "frames": 10, "counts": [[0, 0, 0, 10]]} for name in ("0001", "0002", "0010")]
    table = matrices(((30, 0), (0, 0)), drives)
    given = made_with(table)

    def look(trained):
        context = CaseContext(detector=Detector(trained_on=trained))
        return list(about_data.trained_on_tests(given, [given, table], context))

    assert "on 2 of the 3 sequences it was tested on: 0001; 0002" in only(look(("000?", "0100"))).message
    assert look(("0003", "1*")) == look(()) == look(None) == []


# --- policy_sensitive


def test_another_policy_gives_another_verdict():
    given = satisfied_run()
    points = [
        point(0.96, "satisfied", (0.92, 0.99)),
        point(0.88, "violated", (0.8, 0.89), environment="obs"),
    ]
    other = run([requirement("stops", points, worst=1)], false_positives="background")
    found = only(finding.policy_sensitive(given, {"false positives from the background": other}))
    assert found.claims == (claim(given, 1),)
    for part in (
        "under the policy 'false positives from the background'",
        "obs x=1 violated (P = 0.88), not satisfied (P = 0.97)",
    ):
        assert part in found.message
    assert list(finding.policy_sensitive(given, {"the same": satisfied_run(exact=True)})) == []
    elsewhere = run([requirement("stops", [point(0.1, "violated", (0, 0.2), environment="sky")])])
    assert list(finding.policy_sensitive(given, {"other scenarios": elsewhere})) == []


def test_an_alternative_of_other_inputs_is_refused():
    other = satisfied_run(inputs=(SPEC, MODEL, "8" * 64))
    with pytest.raises(InputError, match="no run of the same spec, model and matrices"):
        find_defeaters([satisfied_run()], CaseContext(), {"x": other})


# --- one_engine, vacuous


def test_engines_that_lean_on_each_other():
    remarks = [
        f"stops: storm cannot check the formula: {finding.LESS_INDEPENDENT}",
        f"stops: the range over all winning strategies {finding.UNCONFIRMED}",
        "stops: something else",
        f"others: {finding.LESS_INDEPENDENT}",
    ]
    given = satisfied_run(remarks=remarks)
    assert [each.message for each in finding.one_engine(given, [])] == remarks[:2]


def test_episodes_that_are_over_at_once():
    over = [{"kind": "ended", "text": "the episode is over before it begins"}]
    points = [
        point(0.96, "satisfied", (0.92, 0.99)),
        point(1.0, "vacuous", (0.93, 1.0), environment="obs", vacuity=over),
        point(0.2, "violated", (0.1, 0.3), environment="obs", initial={"x": 2}, vacuity=over),
    ]
    given = run([requirement("stops", points, worst=2)])
    found = only(finding.vacuous(given, []))
    assert found.claims == (claim(given, 2),)  # of a vacuous one its verdict says so
    assert found.message == "stops: the episode is over before it begins"
    assert list(finding.vacuous(satisfied_run(), [])) == []


def test_remarks_are_recognised_as_the_program_writes_them():
    """The words by which remarks are recognised stand in the parts that write them."""
    for words, file in (
        (finding.LESS_INDEPENDENT, "checking/two_engines.py"),
        (finding.UNCONFIRMED, "study/provenance.py"),
        (finding.NO_ALARMS, "study/provenance.py"),
        (finding.ASSUMED, "study/provenance.py"),
    ):
        assert words in (PACKAGE / file).read_text(encoding="utf-8"), words


# --- all of them


def test_numbered_in_order_and_without_repetition():
    given = undecided_run(round_transitions=3, endless=True)
    found = find_defeaters([given, given], CaseContext(), {})
    assert [each.id for each in found] == [f"D{k}" for k in range(1, len(found) + 1)]
    assert {each.kind for each in found} == {"rounded", "endless", "straddles_target", "thin_columns"}
    assert all(each.title == KINDS[each.kind] and each.remedy for each in found)


def test_where_nothing_is_claimed_nothing_is_doubted():
    given = run([requirement("stops", [point(0.5, "no target")], None)], round_transitions=3)
    assert find_defeaters([given], CaseContext(), {}) == ()


def test_results_whose_inputs_have_no_role_speak_against_nothing():
    """Those of verify collision name tables of pairs, which are neither spec nor model nor matrices."""
    study = Document("pairs.json", "collision", {"inputs": [{"name": "a.json", "sha256": "9" * 64}]}, "8" * 64)
    run = satisfied_run()
    assert find_defeaters([run, study], CaseContext(), {}) == find_defeaters([run], CaseContext(), {})
