"""Bundles with bounds whatever the dependence: proven by certificates, decided from outside; forgeries refused."""

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import pytest
from context_cases import tracked_document
from forged_bundles import forged, rewritten
from small_bundles import MODEL, write_inputs

from verifier.analysis import kernel, step_kernel
from verifier.analysis.settings import ConfidenceSettings
from verifier.base.errors import NoAnswerError
from verifier.cli import main
from verifier.evidence.bundle import contents
from verifier.evidence.bundle.archive import write_bundle
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.evidence.bundle.check import check_files
from verifier.evidence.findings import CheckedCount
from verifier.perception.confusion.contexts import Contexts
from verifier.study.options import RunOptions

pytestmark = pytest.mark.usefixtures("results_made_once")

SPEC = """model "../models/two_looks.toml"
planner careful
environments ped
stops: P >= 0.5 [ F s = 1 ]
twice: P <= 0.4 [ F x = 2 ]
moves: P >= 0.9 [ s = 0 ]
"""
"""Two looks of which one is enough: who is missed at both is missed with 1/4 at most, and with 0 at least."""
MATRICES = {
    "schema": "verifier.confusion", "version": 1, "title": "made up", "labelling": "class",
    "axes": ["predicted", "true"], "labels": ["ped", "empty"], "false_positives": "dropped",
    "bins": [{"distance_m": [0, 10], "counts": [[3000, 0], [1000, 0]]}],
}  # fmt: skip
RUN = "results/run.json"
FREE = "certificates/block001_requirement0{}_free_{}_01.json"
FEW = RunOptions(confidence=ConfidenceSettings(draws=300), dependence_free=True)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return make_bundle(Sources(*write_inputs(tmp_path_factory.mktemp("free"), SPEC, MATRICES, MODEL)), FEW)


def findings(files, **more):
    report = check_files("b", files, **more)
    assert not report.sound
    return {(each.file, each.where) for each in report.findings}


def stated(files, number):
    return json.loads(files[RUN])["requirements"][number]["points"][0]


def test_bounds_are_proven_of_what_the_inputs_give(bundle):
    """By hand, of rates r within the region: P lies in [r, 1], as the two looks may fail together, or never."""
    report = check_files("b", bundle.files)
    assert report.findings == ()
    said = "bounds whatever the dependence that certificates prove about the rebuilt programs"
    assert CheckedCount(4, said) in report.checked
    stops, twice, moves = (stated(bundle.files, number) for number in range(3))
    assert (stops["verdict"], stops["basis"], stops["condition"]) == (
        "satisfied", "any_dependence", "if items are independent",
    )  # fmt: skip
    assert 0.7 < stops["dependence_free"]["lower"] < 0.75 < stops["uncertainty"]["confidence_bounds"]["lower"]
    assert stops["dependence_free"]["upper"] == 1
    assert twice["dependence_free"]["lower"] == 0
    assert 0.25 < twice["dependence_free"]["upper"] < 0.3
    assert moves["dependence_free"] == {
        "lower": 1, "upper": 1, "horizon": 0, "flows": 0, "undecided": [0, 0], "rates": "confidence_region",
    }  # fmt: skip
    for number, point in ((1, stops), (2, twice)):
        for side in ("lower", "upper"):
            content = json.loads(bundle.files[FREE.format(number, side)])
            assert abs(step_kernel.check_free(content) - Fraction(point["dependence_free"][side])) <= Fraction(
                1, 2**52
            )


def test_two_programs_decide_all_certificates_from_outside(bundle, tmp_path):
    write_bundle(bundle.files, tmp_path / "b.zip")
    told = {}
    for program in (kernel, step_kernel):
        asked = [sys.executable, "-I", program.__file__, tmp_path / "b.zip"]
        told[program] = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        assert "REJECTED" not in told[program]
    ordinary = [path for path in bundle.files if path.startswith("certificates/") and "_free_" not in path]
    rest = "not decided: if about the model, *_free_*, *_steps_*"
    assert f"{len(ordinary)} of {len(ordinary)} certificates proven; {rest}" in told[kernel]
    assert "8 of 8 certificates proven" in told[step_kernel]


def test_everything_can_be_computed_again(bundle):
    assert check_files("b", bundle.files, recompute=True).findings == ()


def test_what_needs_no_bounds_is_made_without_them(bundle):
    omitted = [each["path"] for each in json.loads(bundle.files["results/omitted.json"])["omitted"]]
    assert omitted == ["results/alternatives/false_positives_background.json"]  # nothing is counted where nobody is
    assert "results/explain.json" in bundle.files
    others = [path for path in bundle.files if path.startswith("results/alternatives/")]
    assert all(json.loads(bundle.files[path])["requirements"][0]["points"][0]["dependence_free"] for path in others)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda free: free.update(lower=free["lower"] + 1e-12), "lower"),
        (lambda free: free.update(lower=0.0), "lower"),
        (lambda free: free.update(upper=0.9), "upper"),
        (lambda free: free.update(horizon=1), "horizon"),
        (lambda free: free.update(flows=2), "flows"),
        (lambda free: free.update(rates="measured"), "rates"),
    ],
)
def test_other_bounds_than_are_proven_are_found(change, where, bundle):
    raw = rewritten(bundle.files[RUN], lambda run: change(run["requirements"][0]["points"][0]["dependence_free"]))
    told = findings(forged(bundle, {RUN: raw}))
    assert any(file == RUN and "/requirements/0/points/0" in at for file, at in told), (where, told)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda point: point.pop("dependence_free"), "/requirements/0/points/0/dependence_free"),
        (lambda point: point.update(basis="memoryless"), "/requirements/0/points/0/basis"),
        (lambda point: point.update(condition=None), "/requirements/0/points/0/condition"),
        (lambda point: point["dependence_free"].update(undecided=[1.5, 0.0]), "/dependence_free/undecided/0"),
        (lambda point: point["dependence_free"].update(lower=1.0, upper=0.5), "/dependence_free/lower"),
    ],
)
def test_a_verdict_that_does_not_follow_is_found(change, where, bundle):
    raw = rewritten(bundle.files[RUN], lambda run: change(run["requirements"][0]["points"][0]))
    told = findings(forged(bundle, {RUN: raw}))
    assert any(file == RUN and where in at for file, at in told), told


def changed(bundle, change, path):
    content = json.loads(bundle.files[path])
    change(content)
    return {path: (json.dumps(content) + "\n").encode()}


FORGED = [
    ("a larger claim", lambda each: each.update(claimed="4/5")),
    ("a limit that is left out", lambda each: each["program"]["limits"].__setitem__(0, [-1])),
    ("another rate", lambda each: each["program"]["lower"].__setitem__(0, "9/10")),
    ("a flow that wins", lambda each: each["program"]["cost"].__setitem__(1, each["program"]["total"])),
    ("a flow that is not there", lambda each: [each["program"][name].pop() for name in ("own", "step", "after")]),
    ("multipliers that prove nothing", lambda each: each["multipliers"]["limits"].__setitem__(0, 1)),
    ("other multipliers", lambda each: each["multipliers"]["nodes"].__setitem__(0, 0)),
    ("another requirement", lambda each: each["about"].update(requirement="twice")),
    ("the other side", lambda each: each.update(side="upper")),
    ("more than a certificate has", lambda each: each.update(note="x")),
    ("a truth value for a number", lambda each: each["program"]["step"].__setitem__(0, False)),
]


@pytest.mark.parametrize(("what", "change"), FORGED, ids=[what for what, _ in FORGED])
def test_a_forged_certificate_is_refused(what, change, bundle):
    path = FREE.format(1, "lower")
    told = findings(forged(bundle, changed(bundle, change, path)))
    assert any(file == path for file, _ in told), told


def test_bound_and_certificate_that_agree_on_something_else_are_refused(bundle):
    """Of a detector whose report has another rate: the kernel proves it, and it is no rate of these matrices."""
    path = FREE.format(1, "lower")

    def better(each):
        program = each["program"]
        likely = [Fraction(end) > Fraction(1, 2) for end in program["lower"]]
        program["lower"], program["upper"] = (
            [ends[0] if large else ends[1] for large in likely] for ends in (("9/10", "0"), ("1", "1/10"))
        )
        each["claimed"] = str(step_kernel.proven_cost(each["program"], each["multipliers"]))

    certificate = changed(bundle, better, path)
    content = json.loads(certificate[path])
    assert step_kernel.check_free(content) > Fraction(4, 5)
    raw = rewritten(
        bundle.files[RUN],
        lambda run: run["requirements"][0]["points"][0]["dependence_free"].update(
            lower=float(Fraction(content["claimed"]))
        ),
    )
    told = findings(forged(bundle, {**certificate, RUN: raw}))
    assert any(file == path for file, _ in told), told


def test_every_bound_needs_its_certificate_and_every_certificate_its_bound(bundle):
    path = FREE.format(1, "upper")
    assert any(file == path for file, _ in findings(forged(bundle, {}, removed=[path])))
    more = FREE.format(3, "lower")  # nothing is left to prove there
    assert any(file == more for file, _ in findings(forged(bundle, {more: bundle.files[path]})))


@pytest.mark.parametrize(
    "change",
    [
        lambda request: request["asked"].pop("dependence_free"),
        lambda request: request["asked"].update(horizon="1"),
        lambda request: request["asked"].update(horizon="0"),
        lambda request: request["asked"].update(dependence_free=1),
    ],
)
def test_results_of_another_request_are_found(change, bundle):
    assert findings(forged(bundle, asking(bundle, change)))


def asking(bundle, change):
    content = json.loads(bundle.files["request.json"])
    change(content)
    return {"request.json": (json.dumps(content, indent=2) + "\n").encode()}


def test_programs_beyond_the_limit_of_the_request_are_not_decided(bundle):
    files = forged(bundle, asking(bundle, lambda request: request["asked"].update(max_lp="2")))
    with pytest.raises(NoAnswerError, match=r"no answer within the limits of this check: .* need more than 2 flows"):
        check_files("b", files)


def test_report_and_case_say_what_is_assumed(bundle):
    assumed = "ach report has in every step the rate of its bin and true label, however reports depend on each other"
    held = "; however reports depend on each other, P lies in "
    case, report = (bundle.files[path].decode() for path in ("case/gsn.yaml", "report/report.md"))
    assert assumed in case
    assert assumed in report
    assert case.count(held) == 4  # of two requirements and their scenarios
    assert report.count(held) == 4  # twice each
    assert "satisfied, if items are independent, whatever the detector predicts" not in case
    assert (
        report.count("that holds whatever the detector predicts")
        == report.count("Vacuous: decided in the initial state")
        > 0
    )
    # That nothing tests the detector's memory speaks against nothing here.
    rows = csv.DictReader(io.StringIO(bundle.files["trace.csv"].decode()))
    against = {row["requirement"]: row["defeated_by"] for row in rows}
    assert against["stops"] == against["twice"] == "D1 false positives not modelled"


def test_the_command_builds_and_checks_and_grades_as_proven(tmp_path, capsys, monkeypatch):
    """Four ends by certificate; two that are decided, with nothing undecided, from the inputs."""
    monkeypatch.setattr(contents, "CHEAP", 0)  # explanations repeat the numbers
    spec, matrices = write_inputs(tmp_path, SPEC, MATRICES, MODEL)
    numbers = []
    for free in (["--dependence-free", "--horizon", "2"], []):
        asked = ["evidence", "build", str(spec), "--cm", str(matrices), "--point-only", *free, "--force"]
        assert main([*asked, "-o", str(tmp_path / "b.zip")]) == 0
        capsys.readouterr()
        assert main(["evidence", "check", str(tmp_path / "b.zip"), "--json"]) == 0
        numbers.append(json.loads(capsys.readouterr().out)["numbers"])
    runs = 2  # the run, and that which ignores false positives
    assert numbers[0]["proven"] - numbers[1]["proven"] == 4 * runs
    assert numbers[0]["recomputed"] - numbers[1]["recomputed"] == 4 * runs
    repeated = 3 * 4  # by the explanation of each requirement, from the run
    assert numbers[0]["by_hash"] - numbers[1]["by_hash"] == 4 * runs + repeated  # what is undecided of the four


def test_bounds_whatever_the_dependence_beside_contexts(tmp_path):
    """The run has contexts, its linear programs have none; alpha is halved between the two, in request and check."""
    rows = {"start": [1000, 3000], "right*1": [1000, 9000], "wrong*1": [600, 1400]}
    tests = [{"label": "ped", "contexts": "run:1", "z": 9.0, "p_value": 0.001, "permutations": 999}]
    written = tracked_document(rows, Contexts("run", 1), tests=tests)
    written["bins"][0]["distance_m"] = [0, 10]
    files = write_inputs(tmp_path, SPEC, written, MODEL)
    bundle = make_bundle(Sources(*files), replace(FEW, memory="run:1", initial_context="worst"))
    report = check_files("b", bundle.files, recompute=True)
    assert report.findings == ()
    run = json.loads(bundle.files[RUN])
    assert (run["settings"]["memory"], run["settings"]["confidence"]["bounds"]["families"]) == ("run:1", 2)
    points = run["requirements"][0]["points"]
    assert [each["initial"]["context of ped"] for each in points] == [0, 1, 2]
    assert {(each["verdict"], each["basis"]) for each in points} == {("satisfied", "any_dependence")}
    assert len({each["probability"] for each in points}) == 3
    (content,) = {bundle.files[path] for path in bundle.files if path == FREE.format(1, "lower")}
    assert abs(step_kernel.check_free(json.loads(content)) - Fraction(points[0]["dependence_free"]["lower"])) < 1e-15
    for change in (
        lambda point: point["dependence_free"].update(lower=0.9),
        lambda point: point["dependence_free"].update(horizon=7),
    ):
        raw = rewritten(bundle.files[RUN], lambda run, change=change: change(run["requirements"][0]["points"][2]))
        assert any("/requirements/0/points/2" in where for _, where in findings(forged(bundle, {RUN: raw})))
    raw = rewritten(bundle.files[RUN], lambda run: run["settings"]["confidence"]["bounds"].update(families=1))
    assert findings(forged(bundle, {RUN: raw}))
