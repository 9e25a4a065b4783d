"""The assurance case on its pattern: certificates under their goals, recalls as goals, every file cited, modules."""

import csv
import io
import json
import re
import runpy
import sys

import pytest
import yaml
from gsn_rules import complaints, listed
from scipy.stats import beta
from small_bundles import MATRICES, SPEC, write_inputs

from verifier.analysis.settings import ConfidenceSettings
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.study.options import RunOptions

pytestmark = pytest.mark.usefixtures("results_made_once")

FEW = RunOptions(confidence=ConfidenceSettings(draws=100))
USE = {"title": "r.json: stops", "sha256": "a" * 64, "verdict": "satisfied", "day": "2026-05-04"}


@pytest.fixture(scope="module", params=["small", "example", pytest.param("kitti", marks=pytest.mark.slow)])
def files(request, tmp_path_factory, root):
    """The files of a bundle: of the small system, and of examples 14 and 15 with all their requirements."""
    if request.param == "small":
        folder = tmp_path_factory.mktemp("inputs")
        (folder / "case.toml").write_text("[exposure.every]\nper_hour = 12\n")
        return make_bundle(Sources(*write_inputs(folder), folder / "case.toml"), FEW).files
    if request.param == "kitti":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["15_evidence_for_kitti.py"])
            example = runpy.run_path(str(root / "examples/15_evidence_for_kitti.py"))
        folder = tmp_path_factory.mktemp("kitti")
        example["write_counts"]("PointRCNN", folder / "matrices.json")
        (folder / "case.toml").write_text(example["CONTEXT"])
        return make_bundle(Sources(example["SPEC"], folder / "matrices.json", folder / "case.toml"), FEW).files
    given = ("specs/car_pedestrian.ltl", "examples/nuscenes_yolov3_class.json", "examples/14_evidence_bundle.toml")
    return make_bundle(Sources(*(root / name for name in given)), FEW).files


def case_in(files, name="case/gsn.yaml"):
    content = yaml.safe_load(files[name].decode())
    return {key: value for key, value in content.items() if key != "module"}


def citations(files):
    return list(csv.DictReader(io.StringIO(files["case/files.csv"].decode())))


def below(case, start):
    """Everything that is reached from an element, what speaks against it included."""
    found, pending = set(), [start]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += listed(case[name].get("supportedBy", [])) + listed(case[name].get("inContextOf", []))
            pending += [other for other, each in case.items() if each.get("challenges") == name]
    return found


def test_each_certificate_is_reached_from_the_goal_of_its_scenario(files):
    case, run = case_in(files), json.loads(files["results/run.json"])
    cited = {row["file"]: row["cited_by"].split() for row in citations(files)}
    environments = list(dict.fromkeys(point["environment"] for point in run["requirements"][0]["points"]))
    checked = 0
    for path in files:
        match = re.fullmatch(r"certificates/block(\d+)_requirement(\d+)_.*", path)
        if match is None:
            continue
        environment = environments[int(match[1]) - 1]
        requirement = run["requirements"][int(match[2]) - 1]
        if requirement["target"] is None:
            assert not cited[path]
            continue
        goals = [
            name
            for name, each in case.items()
            if re.match(rf"In {environment} .*, {requirement['name']} holds: ", each["text"])
        ]
        assert goals
        for goal in goals:
            assert {*cited[path]} & below(case, goal), (path, goal)
        checked += 1
    assert checked >= 8


def test_every_file_is_cited_by_a_node_or_listed_with_the_reason_why_none_argues_from_it(files):
    rows, case = citations(files), case_in(files)
    assert sorted(row["file"] for row in rows) == sorted(files)
    for row in rows:
        assert bool(row["cited_by"]) != bool(row["not_argued_from"]), row
        assert all(name in case for name in row["cited_by"].split())
    cited = {row["file"] for row in rows if row["cited_by"]}
    assert {"results/run.json", "certificates/block001_requirement01_point_lower_01.json"} <= cited


def test_a_recall_that_is_asked_for_is_a_goal_with_what_was_measured(files):
    case = case_in(files)
    goals = {name: each for name, each in case.items() if each["text"].startswith("The detector has the recall")}
    asked = [json.loads(raw) for path, raw in files.items() if path.startswith("results/require/")]
    cells = {
        (each["requirement"]["name"], cell["label"], cell["bin"]): cell
        for each in asked
        for answer in each["answers"]
        for cell in answer["cells"]
        if cell["required"] is not None and float(cell["required"]) > 0
    }
    assert len(goals) == len(cells) == len({name for name, _, _ in cells})  # each asks for one recall
    for (asked_by, label, where), cell in cells.items():
        ((name, goal),) = [each for each in goals.items() if f"that {asked_by} asks for" in each[1]["text"]]
        hits, items = cell["measured"]["hits"], cell["measured"]["items"]
        low, high = beta.ppf(0.025, hits, items - hits + 1), beta.ppf(0.975, hits + 1, items - hits)
        assert f"{label} in {where} at least {cell['required']}" in goal["text"]
        assert f"{hits} of {items} items" in goal["text"]
        required = float(cell["required"])
        expected = "conditional on" if low >= required else "violated" if high < required else "inconclusive"
        assert goal["status"].startswith(expected)
        if expected == "violated":
            assert any(each.get("challenges") == name for each in case.values())
    told = [each["text"] for each in case.values() if each["text"].startswith("What it asks of the detector")]
    assert told
    assert all("recall at least" not in each for each in told)
    assert any("does not depend on the selected recalls" in each for each in told)


def test_a_measured_recall_that_lies_about_what_is_asked_is_open(tmp_path):
    """ped is seen 3 times in 4, and P = 1 - (1 - r)^2 >= 0.9375 asks for exactly that."""
    spec, matrices = write_inputs(tmp_path, SPEC.replace("0.9 [", "0.9375 ["), MATRICES)
    case = case_in(make_bundle(Sources(spec, matrices), FEW).files)
    (goal,) = [each for each in case.values() if each["text"].startswith("The detector has the recall")]
    assert (goal["status"], goal["undeveloped"]) == ("inconclusive", True)


@pytest.mark.parametrize(
    ("record", "status", "said"),
    [
        ({}, "conditional on", "at 0.95 for all together: "),
        ({"error_rate": [0.0, 0.5]}, "inconclusive", "together, if at most a share of 0.5 of a column is"),
        ({"uses": [USE]}, "conditional on", "at 0.95 for all together, for 2 looks: "),
    ],
)
def test_bounds_of_recalls_allow_for_annotation_errors_and_looks(record, status, said, tmp_path):
    more = {"version": 2, "data_set": record} if record else {}
    spec, matrices = write_inputs(tmp_path, SPEC.replace("0.9 [", "0.5 ["), MATRICES | more)
    case = case_in(make_bundle(Sources(spec, matrices), FEW).files)
    (goal,) = [each for each in case.values() if each["text"].startswith("The detector has the recall")]
    assert goal["status"].startswith(status)
    assert said in goal["text"]


def test_modules_have_every_element_once_and_keep_the_rules_together(files):
    whole = case_in(files)
    parts = {path: case_in(files, path) for path in files if path.startswith("case/modules/")}
    names = [name for part in parts.values() for name in part]
    assert sorted(names) == sorted(whole)
    together = {name: each for part in parts.values() for name, each in part.items()}
    assert together == whole
    assert complaints(together) == []
    assert {"M-Top", "M-Req-1", "M-Req-2", "M-Data", "M-Model", "M-Tool", "M-Op"} <= {
        path.removeprefix("case/modules/").removesuffix(".yaml") for path in parts
    }
    assert next(iter(parts["case/modules/M-Top.yaml"])) == "G1"
    for path, part in parts.items():  # what a module owns hangs together; the rest are away references
        if path.startswith("case/modules/M-Req"):
            assert {*part} <= below(whole, next(name for name in part if name[0] == "G"))


def test_assurance_claim_points_are_on_the_element_or_what_it_is_related_to_and_have_their_argument(files):
    case = case_in(files)
    points = {(name, point): listed(to) for name, each in case.items() for point, to in each.get("acp", {}).items()}
    for (name, _), related in points.items():
        near = listed(case[name].get("supportedBy", [])) + listed(case[name].get("inContextOf", []))
        assert related == [name] or {*related} <= {*near}
    held = {point for _, point in points}
    assert held >= {"ACP1", "ACP4"}
    for point in held:
        argued = [each for each in case.values() if f"confidence argument of {point}" in each["text"]]
        assert len(argued) == 1
        assert "status" in argued[0]


def numbers_of(case):
    """What is argued over numbers: text -> node."""
    (over,) = [each for each in case.values() if each["text"].startswith("Argument over what the numbers rest on")]
    return {case[name]["text"].split("\n")[0]: case[name] for name in listed(over["supportedBy"])}


def test_numbers_are_argued_where_there_is_evidence_for_them(files):
    """The certificates of the run are; sample, looks and memory are not, of counts without drives or tracks."""
    case = case_in(files)
    ((text, goal),) = numbers_of(case).items()
    assert text == "Given the region of the rates, every probability of results/run.json lies in its bounds"
    assert (goal["status"], goal["grade"]) == ("supported", "proven")
    (proofs,) = [name for name in goal["supportedBy"] if "certificates/*" in case[name]["text"]]
    cited = [row["file"] for row in citations(files) if proofs in row["cited_by"].split()]
    assert f"{len(cited)} certificates: certificates/*" in case[proofs]["text"]
    assert len(cited) >= 8


def test_a_sample_looks_and_memory_are_goals_where_they_are_shown(tmp_path):
    """Documents show statistics and memory; bounds at every look need nothing for their looks."""
    (tmp_path / "doc.txt").write_text("x")
    shown = "".join(
        f'[evidence.{claim}]\nclaim = "{claim}"\ntitle = "t"\nfile = "doc.txt"\nauthor = "N"\ndate = 2026-05-04\n'
        for claim in ("statistics", "memory")
    )
    (tmp_path / "case.toml").write_text(shown)
    every = RunOptions(confidence=ConfidenceSettings(draws=100, bounds="anytime"))
    spec, matrices = write_inputs(tmp_path)
    case = case_in(make_bundle(Sources(spec, matrices, tmp_path / "case.toml"), every).files)
    texts = [text.partition(" results/run.json")[0] for text in numbers_of(case)]
    assert texts == [
        "Given the region of the rates, every probability of",
        "The region of the rates in",
        "The level of",
        "Dependence of successive reports does not make the bounds of",
    ]
    assert {each["status"] for each in numbers_of(case).values()} == {"supported"}
    assert all("doc.txt" in str([case[one] for one in each["supportedBy"]]) for text, each in numbers_of(case).items()
               if not text.startswith(("Given", "The level")))  # fmt: skip


def test_looks_are_argued_from_the_verdicts_that_the_record_of_the_data_names(tmp_path):
    uses = [{"title": "r", "sha256": digit * 64, "verdict": "satisfied", "day": "2026-05-04"} for digit in "ab"]
    matrices = MATRICES | {"version": 2, "data_set": {"uses": uses}}
    case = case_in(make_bundle(Sources(*write_inputs(tmp_path, matrices=matrices)), FEW).files)
    (goal,) = [each for text, each in numbers_of(case).items() if text.startswith("The level of")]
    assert "allows for the 2 verdicts that the record of the data names" in goal["text"]
    assert "for 3 looks at the data" in goal["text"]
    cited = "".join(case[name]["text"] for name in goal["supportedBy"])
    assert "inputs/matrices" in cited
    assert "results/run.json" in cited
