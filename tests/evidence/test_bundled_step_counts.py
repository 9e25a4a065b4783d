"""Bundles of formulas whose steps are counted: probabilities are proven by certificates that count again in whole
numbers; confidence bounds have none, and are computed again by every check."""

import csv
import io
import json
import subprocess
import sys
import zipfile
from fractions import Fraction

import pytest
from forged_bundles import certificate, forged, rewritten
from looping_systems import write_system

from verifier.analysis import step_kernel
from verifier.analysis.settings import ConfidenceSettings
from verifier.cli import main
from verifier.evidence.bundle import certificates, contents
from verifier.evidence.bundle.archive import read_bundle, write_bundle
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.evidence.bundle.check import check_files
from verifier.evidence.findings import CheckedCount
from verifier.study.options import RunOptions

pytestmark = pytest.mark.usefixtures("results_made_once")

BOUNDS = "/requirements/0/points/0/uncertainty/confidence_bounds"
STEPS = "certificates/block001_requirement01_point_steps_01.json"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """Of an until over a million steps: c must not be 2 in the last cell before c is 1 in the cell before."""
    folder = tmp_path_factory.mktemp("counted")
    spec, matrices = write_system(folder, "(c < 2 | x < 14) U<=1000000 (x = 13 & c = 1)", "ends")
    return make_bundle(Sources(spec, matrices), RunOptions(confidence=ConfidenceSettings(draws=301)))


def test_bounds_are_computed_again_and_graded_so(bundle, monkeypatch):
    for limit in ("CHEAP", "CHEAP_DRAWS"):  # what else is made again is another matter
        monkeypatch.setattr(contents, limit, 0)
    report = check_files("b", bundle.files)
    assert report.findings == ()
    assert CheckedCount(10, "confidence bounds computed again, where steps are counted") in report.checked
    assert report.numbers.proven == 5 * 4  # in five documents the numbers of the engines
    assert report.numbers.recomputed == 5 * 2  # the bounds
    assert CheckedCount(5, "probabilities, with their numerical bounds, that certificates prove") in report.checked
    omitted = {each["path"]: each["reason"] for each in json.loads(bundle.files["results/omitted.json"])["omitted"]}
    assert "a check computes bounds again" in omitted["certificates/block001_requirement01"]
    point = json.loads(bundle.files["results/run.json"])["requirements"][0]["points"][0]
    bounds = point["uncertainty"]["confidence_bounds"]
    assert bounds["lower"] < point["probability"] < bounds["upper"]
    # One rate is uncertain, and none of its values is best in every state: what single matrices attain is less.
    assert bounds["lower"] < bounds["attained_lower"] < point["probability"]
    assert point["probability"] < bounds["attained_upper"] < bounds["upper"]


def test_a_verdict_from_bounds_without_certificates_is_not_graded_as_proven(bundle, tmp_path):
    """That its probability has one says nothing of the bounds; alone, the probability is proven."""
    spec, matrices = write_system(tmp_path, "F<=1000000000 hit", "ends")
    alone = make_bundle(Sources(spec, matrices), RunOptions().point_alone())
    (row,) = csv.DictReader(io.StringIO(bundle.files["trace.csv"].decode()))
    assert row["grade"] == "recomputed"
    for files, proven, cited in ((bundle.files, False, ","), (alone.files, True, "Sn")):
        case, listed = (files[path].decode() for path in ("case/gsn.yaml", "case/files.csv"))
        assert ("1 of 1 scenarios proven by certificates" in case) == proven
        assert f"{STEPS},{cited}" in listed


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_better_bounds_than_the_data_give_are_found(bundle, side):
    def better(content):
        point = content["requirements"][0]["points"][0]
        bounds = point["uncertainty"]["confidence_bounds"]
        bounds[side] = bounds[f"attained_{side}"] = (bounds[side] + point["probability"]) / 2

    changed = forged(bundle, {"results/run.json": rewritten(bundle.files["results/run.json"], better)})
    found = [each for each in check_files("b", changed).findings if each.where == f"{BOUNDS}/{side}"]
    said = [each.expected.partition(", ")[2] for each in found if each.file == "results/run.json"]
    assert said == ["as it is computed again"]


def test_a_certificate_states_chain_window_and_bounds(bundle):
    content = json.loads(bundle.files[STEPS])
    point = json.loads(bundle.files["results/run.json"])["requirements"][0]["points"][0]
    ((low, high),) = step_kernel.check(content)
    assert point["lower"] <= low <= high <= point["upper"]
    assert high - low < Fraction(1, 2**80)
    window = {name: content["window"][name] for name in ("low", "high", "response", "negated")}
    assert window == {"low": 0, "high": 10**6, "response": None, "negated": False}
    assert sum(content["window"]["right"]) == 1
    weights = [sorted(weight for _, weight in row) for row in content["chain"]["rows"]]
    assert weights == [[31, 127]] * 42 + [[1]] * 3  # seen 31 times of 158, in each cell but the last


def repeated(content):
    """The claims that follow from a chain and a window."""
    bounds = step_kernel.proven(content["chain"], content["window"])
    content["claimed"] = [[float(low), float(high)] for low, high in bounds]


FORGED = {
    "/chain/rows/0/0/1": lambda content: content["chain"]["rows"][0][0].__setitem__(1, 1),
    "/chain/starts/0": lambda content: content["chain"]["starts"].__setitem__(0, 1),
    "/window/left/0": lambda content: content["window"]["left"].__setitem__(0, 0),
    "/window/right/0": lambda content: content["window"]["right"].__setitem__(0, 1),
    "/window/high": lambda content: content["window"].update(high=10**6 + 1),
    "/window/low": lambda content: content["window"].update(low=1),
    "/window/response": lambda content: content["window"].update(response=1),
    "/window/negated": lambda content: content["window"].update(negated=True),
    "/claimed/0": lambda content: content["claimed"][0].__setitem__(0, content["claimed"][0][0] + 1e-9),
    "": lambda content: content.pop("window"),
}


@pytest.mark.parametrize("where", FORGED)
def test_a_forged_certificate_is_refused_by_its_place(where, bundle):
    """Also where its claims follow from what it states by now."""
    for follows in (False, True):

        def change(content, follows=follows):
            FORGED[where](content)
            if follows and "window" in content and where != "/claimed/0":
                repeated(content)

        told = check_files("b", forged(bundle, certificate(bundle, change, STEPS))).findings
        assert [(each.file, each.where) for each in told if each.file == STEPS] == [(STEPS, where)]


def test_certificate_and_run_that_agree_on_something_else_are_refused(bundle):
    def other(content):
        FORGED["/window/high"](content)
        content["window"]["high"] = 30
        repeated(content)

    changed = certificate(bundle, other, STEPS)
    ((low, high),) = json.loads(changed[STEPS])["claimed"]

    def told(content):
        content["requirements"][0]["points"][0].update(probability=low, lower=low, upper=high, second_engine=low)

    files = forged(bundle, {**changed, "results/run.json": rewritten(bundle.files["results/run.json"], told)})
    assert (STEPS, "/window/high") in {(each.file, each.where) for each in check_files("b", files).findings}


@pytest.mark.parametrize("end", ["lower", "upper", "probability"])
def test_a_number_that_the_certificate_contradicts_is_found(end, bundle):
    def other(content):
        point = content["requirements"][0]["points"][0]
        point[end] += -1e-6 if end == "upper" else 1e-6

    files = forged(bundle, {"results/run.json": rewritten(bundle.files["results/run.json"], other)})
    told = {(each.file, each.where) for each in check_files("b", files).findings}
    assert ("results/run.json", f"/requirements/0/points/0/{end}") in told


def test_a_certificate_in_other_bytes_or_missing_is_found(bundle):
    text = json.dumps(json.loads(bundle.files[STEPS]), indent=1).encode()
    for changes, removed, said in (
        ({STEPS: text}, (), "the same certificate in other bytes"),
        ({STEPS: bundle.files[STEPS].replace(b'"sha256": "', b'"sha256": "0')}, (), "a hash of another content"),
        ({STEPS: b"[]\n"}, (), "no certificate"),
        ({STEPS: b"{"}, (), None),
        ({}, (STEPS,), "nothing"),
    ):
        findings = check_files("b", forged(bundle, changes, removed)).findings
        assert [each.found for each in findings if each.file == STEPS and said in (None, each.found)], said


def test_the_program_decides_the_bundle_from_outside(bundle, tmp_path):
    """As an archive, and unpacked: of three runs, which five documents tell with other verdicts."""
    write_bundle(bundle.files, tmp_path / "b.zip")
    zipfile.ZipFile(tmp_path / "b.zip").extractall(tmp_path / "folder")
    for path in (tmp_path / "b.zip", tmp_path / "folder"):
        asked = [sys.executable, "-I", step_kernel.__file__, path]
        told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        assert "block001_requirement01_point_steps_01.json: proven: 0.8166292794961" in told
        assert "3 of 3 certificates proven; not decided: whether they are about the model" in told
        report = check_files("b", read_bundle(path))
        assert (report.findings, report.numbers.proven) == ((), 20)


@pytest.mark.usefixtures("made_anew")
def test_what_takes_too_long_to_check_has_no_certificate_and_is_computed_again(bundle, tmp_path, monkeypatch):
    monkeypatch.setattr(step_kernel, "MOST", 10)
    spec, matrices = write_system(tmp_path, "F[1000000,1000003] (x = 3)")
    made = make_bundle(Sources(spec, matrices), RunOptions().point_alone())
    assert not [path for path in made.files if path.startswith("certificates/")]
    report = check_files("b", made.files)
    assert report.findings == ()
    assert (report.numbers.proven, report.numbers.recomputed) == (0, 3 * 4)
    said = "probabilities recomputed by the batch engine, with rigorous enclosures"
    assert CheckedCount(3, f"{said}: there is no certificate, or checking it takes too long") in report.checked


@pytest.fixture
def made(tmp_path):
    """Of a window whose product can be certified as well."""
    spec, matrices = write_system(tmp_path, "F<=20 (x = 13)")
    return lambda: make_bundle(Sources(spec, matrices), RunOptions().point_alone())


def sides(files):
    paths = [path.rpartition("_")[0] for path in files if path.startswith("certificates/")]
    return {path.rpartition("_")[2] for path in paths}, sum("/require01_" in path for path in paths)


@pytest.mark.usefixtures("made_anew")
def test_a_window_in_place_of_a_large_product_also_for_required_recalls(made, monkeypatch):
    monkeypatch.setattr(certificates, "_LARGE", 100)
    bundle = made()
    assert sides(bundle.files) == ({"steps"}, 2)
    report = check_files("b", bundle.files)
    assert report.findings == ()
    assert report.numbers.proven == 4 * (3 + 3)  # of three runs; measured, at the required and at a perfect recall
    path = "certificates/require01_answer01_perfect-block001_requirement01_point_steps_01.json"
    changed = certificate(bundle, lambda content: content["window"].update(high=21), path)
    assert path in {each.file for each in check_files("b", forged(bundle, changed)).findings}
    # As an earlier release made it: certificates of the product, or none.
    with monkeypatch.context() as patch:
        patch.setattr(certificates, "_LARGE", 10**6)
        old = made()
    assert sides(old.files) == ({"lower", "upper"}, 4)
    assert check_files("b", old.files).findings == ()
    both = forged(bundle, {path: raw for path, raw in old.files.items() if "_point_" in path})
    assert STEPS in {each.file for each in check_files("b", both).findings}  # not looked at


def test_only_bundles_of_this_program_must_have_certificates_of_windows(bundle, monkeypatch):
    files = forged(bundle, {}, [STEPS])
    assert STEPS in {each.file for each in check_files("b", files).findings}
    monkeypatch.setattr("verifier.evidence.bundle.runs.__version__", "1.2.3")  # not that which built the bundle
    assert STEPS not in {each.file for each in check_files("b", files).findings}


def test_a_comparison_has_the_same_certificates(tmp_path, capsys):
    spec, matrices = write_system(tmp_path, "G[0,1000000] (x < 14 -> F<=100000 hit)", "ends")
    asked = ["compare", str(spec), "--cm", f"a={matrices}", "--cm", f"b={matrices}", "--draws", "100"]
    main([*asked, "--certificates", str(tmp_path / "c.zip")])
    capsys.readouterr()
    assert step_kernel.main([str(tmp_path / "c.zip")]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[-1].startswith("2 of 2 certificates proven")
    assert [line.partition(": ")[0] for line in told[:-1]] == [
        f"spec01_detector0{number}-block001_requirement01_point_steps_01.json" for number in (1, 2)
    ]


def test_a_certificate_of_something_else_does_not_count(bundle):
    """The product of the first steps is another formula's: what is proven of it says nothing here."""
    for kind in ("lower", "point_lower"):
        path = f"certificates/block001_requirement01_{kind}_01.json"
        changed = forged(bundle, {path: b"{}\n"})
        report = check_files("b", changed)
        assert path in {each.file for each in report.findings}
        assert report.numbers is None or report.numbers.proven == 0


def test_a_value_no_larger_than_its_own_error_is_found_again(tmp_path):
    # A report in 2^52 moves on: hardly ever a hit, with an error that two ways of counting bound slightly otherwise.
    spec, matrices = write_system(tmp_path, "F<=1000000000 hit", "ends", cells=6)
    content = json.loads(matrices.read_text())
    content["bins"][0]["counts"] = [[1, 3], [2**52, 97]]
    matrices.write_text(json.dumps(content))
    bundle = make_bundle(Sources(spec, matrices), RunOptions().point_alone())
    point = json.loads(bundle.files["results/run.json"])["requirements"][0]["points"][0]
    assert point["upper"] > 2 * point["probability"] > 0
    assert check_files("b", bundle.files).findings == ()
    # As good as never: the error of the rates is all that its upper end is made of.
    spec, matrices = write_system(tmp_path, "G[0,1000000] (x = 3 & c = 2 -> F<=20 hit)")
    bundle = make_bundle(Sources(spec, matrices), RunOptions().point_alone())
    assert check_files("b", bundle.files).findings == ()


@pytest.mark.slow
def test_windows_that_are_too_much_to_follow_have_no_certificates_and_a_reason(tmp_path):
    spec, matrices = write_system(tmp_path, "G (hit -> F<=400 x < 3)", "ends", cells=6)
    bundle = make_bundle(Sources(spec, matrices), RunOptions(confidence=ConfidenceSettings(draws=301)))
    assert check_files("b", bundle.files).findings == ()
    omitted = {each["path"]: each["reason"] for each in json.loads(bundle.files["results/omitted.json"])["omitted"]}
    reason = "what the states have to meet, windows within windows, takes too long to find"
    assert omitted == {"certificates/block001_requirement01": reason}
