"""Residual risk in a bundle: made from the runs in it, drawn in the case, made again and compared by a check."""

import datetime
import json
import re
from dataclasses import replace

import pytest
import yaml
from brake import FEW, HIT, PHANTOM, VACUOUS, built, write, write_run
from forged_bundles import forged
from gsn_rules import complaints
from risk_cases import CASE, shown

from verifier.base.errors import InputError, UsageError
from verifier.cli import main
from verifier.evidence.bundle.check import check_files
from verifier.evidence.case.building import build_case
from verifier.evidence.consistency import read_document
from verifier.evidence.context import read_context
from verifier.evidence.defeaters.finding import find_defeaters

pytestmark = pytest.mark.usefixtures("results_made_once")

EMPTY = "[exposure.empty]\nper_hour = 0\n"
GIVEN = ("night_run.json", "night.json")
MET = CASE.replace("1e-3", "0.05") + EMPTY
SHOWN = ("requirements", "exposure", "acceptance", "memory", "statistics", "conditions", "harm")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = write(tmp_path_factory.mktemp("brake"), spec=HIT + PHANTOM)
    for name in ("day", "night"):
        write_run(found, name, f"{name}_run.json")
    (found / "docs").mkdir()
    for name in SHOWN:
        (found / f"docs/{name}.txt").write_text(name)
    return found


def bundle_of(folder, text, *given):
    (folder / "case.toml").write_text(text)
    return built(folder, *given, context=folder / "case.toml")


@pytest.fixture(scope="module")
def bundle(folder):
    return bundle_of(folder, CASE + EMPTY, *GIVEN)


def goal_of(bundle, start="The harm of hazard H1"):
    content = yaml.safe_load(bundle.files["case/gsn.yaml"].decode())
    assert complaints(content) == []
    (found,) = [each for name, each in content.items() if name[0] == "G" and each["text"].startswith(start)]
    return found, content


def test_the_risk_is_in_the_bundle_and_every_document_of_it(bundle):
    risk = json.loads(bundle.files["risk.json"])
    assert risk["risks"][0]["behaviour_upper"] == pytest.approx(0.4005652944, abs=5.1e-11)
    assert [each["name"] for each in risk["inputs"]] == ["case.toml", "run.json", "given/night_run.json"]
    assert {"inputs/context/day.json", "inputs/context/night.json"} <= bundle.files.keys()
    page = bundle.files["report/report.md"].decode().replace("\\", "")
    assert "98.9 % of the upper end comes from condition night" in page
    assert '"risk.json"' in bundle.files["manifest.json"].decode()
    assert "risk.json" in bundle.files["ro-crate-metadata.json"].decode()
    report = check_files("b", bundle.files)
    assert report.findings == ()
    goal, content = goal_of(bundle)
    assert goal["status"] == "violated"
    assert "level 85 %" in goal["text"]
    assert any(each.get("url") == "risk.json" for each in content.values())


@pytest.mark.parametrize("derive", [False, True])
def test_a_risk_of_other_numbers_is_found(bundle, derive):
    other = bundle.files["risk.json"].replace(b'"behaviour_upper": 0.4', b'"behaviour_upper": 0.1')
    assert other != bundle.files["risk.json"]
    files = forged(bundle, {}, derive=derive) | {"risk.json": other}
    wrong = [str(each) for each in check_files("b", files).findings]
    assert any(re.search(r"risk\.json.*behaviour_upper.*found 0\.1.*expected 0\.4", each) for each in wrong), wrong


def test_a_risk_that_nothing_states_is_one_file_too_many(folder, bundle):
    plain = bundle_of(folder, EMPTY + "[exposure.ped]\nper_hour = 1\n", *GIVEN)
    assert "risk.json" not in plain.files
    wrong = check_files("b", plain.files | {"risk.json": bundle.files["risk.json"]}).findings
    assert "a derived file that these inputs do not give" in {each.found for each in wrong}


def test_a_run_that_is_missing_makes_its_condition_unknown(folder):
    alone = bundle_of(folder, MET)
    risk = json.loads(alone.files["risk.json"])
    assert risk["hazards"][0]["cells"][1] == {
        "environment": "ped", "condition": "night", "unknown": "no run of its matrices is here",
    }  # fmt: skip
    assert goal_of(alone)[0]["status"] == "inconclusive"
    assert check_files("b", alone.files).findings == ()


def test_a_hazard_of_which_no_run_says_anything_is_taken_to_happen(tmp_path):
    """Its event cannot happen in the model; the risk names no run, and was refused as made from none."""
    write(tmp_path, spec=VACUOUS)
    bundle = bundle_of(tmp_path, CASE.replace("no_hit", "vacuous_one") + EMPTY)
    risk = json.loads(bundle.files["risk.json"])
    assert (risk["runs"], {each["unknown"] for each in risk["hazards"][0]["cells"]}) == (
        [],
        {"its run says nothing about the system", "no run of its matrices is here"},
    )
    assert risk["verdict"] == "inconclusive"
    assert check_files("b", bundle.files).findings == ()


def test_a_condition_of_whose_run_nothing_follows_is_unknown(folder):
    """The risk names no such run; made again without it, it said that there was none, and `build` refused its own."""
    write_run(folder, "night", "night_point.json", options=replace(FEW, verdict_from="point"))
    bundle = bundle_of(folder, MET, "night_point.json", "night.json")
    risk = json.loads(bundle.files["risk.json"])
    assert [cell["unknown"] for cell in risk["hazards"][0]["cells"] if cell["condition"] == "night"] == [
        "its run leaves the data's uncertainty out"
    ]
    assert [run["name"] for run in risk["runs"]] == ["run.json"]
    assert check_files("b", bundle.files).findings == ()
    other = bundle.files["risk.json"].replace(b"leaves the data's uncertainty out", b"says nothing about the system")
    wrong = [str(each) for each in check_files("b", forged(bundle, {}) | {"risk.json": other}).findings]
    assert any("unknown" in each and "uncertainty" in each for each in wrong), wrong


def test_a_run_that_nobody_made_again_supports_no_risk(folder):
    """The night violates its requirement, so its result is taken without its matrices beside it, and not verified."""
    goal, content = goal_of(bundle_of(folder, MET + "".join(map(shown, SHOWN)), "night_run.json"))
    assert goal["status"].startswith("conditional on A")
    assert "night_run.json is what its inputs give" in content[goal["status"].rpartition(" ")[2]]["text"]


@pytest.fixture(scope="module")
def results(folder):
    (folder / "case.toml").write_text(MET)
    words = [str(folder / name) for name in ("case.toml", "day_run.json", "night_run.json", "risk.json")]
    assert main(["evidence", "risk", *words[:3], "-o", words[3]]) == 0
    return [read_document(path) for path in words[1:]]


def stands(folder, results, claims):
    """How the goal of the hazard stands with documents for some claims, made from the results alone."""
    (folder / "case.toml").write_text(MET + "".join(map(shown, claims)))
    context = read_context(folder / "case.toml", datetime.date(2026, 6, 1))
    case = build_case(results, context, find_defeaters(results, context, {}), {})
    (found,) = [each for each in case.elements if each.text.startswith("The harm of hazard H1")]
    return found.status.value, found.grade.value


def test_what_people_state_conditions_the_goal_until_documents_show_it(folder, results):
    assert stands(folder, results, SHOWN) == ("supported", "documented")
    for left_out in SHOWN:
        status, grade = stands(folder, results, [name for name in SHOWN if name != left_out])
        assert (status, grade in ("declared", "untested")) == ("conditional", True), left_out


def test_the_documents_are_solutions_of_the_goal(folder):
    found, content = goal_of(bundle_of(folder, MET + "".join(map(shown, SHOWN)), *GIVEN))
    assert (found["status"], found["grade"]) == ("supported", "documented")
    files = {content[name].get("url") for name in found["supportedBy"]}
    assert {"risk.json", "inputs/context/docs/conditions.txt", "inputs/context/docs/harm.txt"} <= files


def test_a_criterion_without_a_risk_is_not_developed(folder):
    (folder / "case.toml").write_text(MET)
    context = read_context(folder / "case.toml")
    case = build_case([read_document(folder / "day_run.json")], context, (), {})
    (found,) = [each for each in case.elements if each.text.startswith("The harm of hazard H1")]
    assert found.status.value == "undeveloped"


@pytest.mark.parametrize(
    ("old", "new", "kind", "said"),
    [
        ('"no_hit"', '"no_hti"', InputError, "hazard.no_hti: unknown requirement 'no_hti'"),
        ('["ped"]', '["pde"]', InputError, "condition.pde: unknown environment 'pde'"),
        ("[exposure.ped]\nencounters = 240\nhours = 20\n", "", InputError, "no exposure is given for ped"),
        (
            "[unknown]\nat_most = 0",
            "[unknown.empty]\nat_most = 0",
            UsageError,
            "nothing is stated of environment 'ped'",
        ),
    ],
)
def test_a_bundle_that_cannot_have_its_risk_is_not_built(folder, old, new, kind, said):
    assert old in MET
    with pytest.raises(kind, match=re.escape(said)):
        bundle_of(folder, MET.replace(old, new), *GIVEN)
