"""Bundles of formulas whose steps are counted: probabilities are proven by certificates that count again in whole
numbers; confidence bounds have none, and are computed again by every check."""

import json

import pytest
from forged_bundles import forged, rewritten
from looping_systems import write_system

from verifier.analysis.settings import ConfidenceSettings
from verifier.evidence.bundle import contents
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.evidence.bundle.check import check_files
from verifier.study.options import RunOptions

BOUNDS = "/requirements/0/points/0/uncertainty/confidence_bounds"


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
    assert (10, "confidence bounds computed again, where steps are counted") in report.checked
    assert report.grades.proven == 5 * 4  # in five documents the numbers of the engines
    assert report.grades.recomputed == 5 * 2  # the bounds
    assert (5, "probabilities, with their numerical bounds, that certificates prove") in report.checked
    omitted = {each["path"]: each["reason"] for each in json.loads(bundle.files["results/omitted.json"])["omitted"]}
    assert "a check computes bounds again" in omitted["certificates/block001_requirement01"]
    point = json.loads(bundle.files["results/run.json"])["requirements"][0]["points"][0]
    bounds = point["uncertainty"]["confidence_bounds"]
    assert bounds["lower"] < point["probability"] < bounds["upper"]
    # One rate is uncertain, and none of its values is best in every state: what single matrices attain is less.
    assert bounds["lower"] < bounds["attained_lower"] < point["probability"]
    assert point["probability"] < bounds["attained_upper"] < bounds["upper"]


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


def test_a_certificate_of_something_else_does_not_count(bundle):
    """The product of the first steps is another formula's: what is proven of it says nothing here."""
    for kind in ("lower", "point_lower"):
        path = f"certificates/block001_requirement01_{kind}_01.json"
        changed = forged(bundle, {path: b"{}\n"})
        report = check_files("b", changed)
        assert path in {each.file for each in report.findings}
        assert report.grades is None or report.grades.proven == 0


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


@pytest.mark.slow
def test_windows_that_are_too_much_to_follow_have_no_certificates_and_a_reason(tmp_path):
    spec, matrices = write_system(tmp_path, "G (hit -> F<=400 x < 3)", "ends", cells=6)
    bundle = make_bundle(Sources(spec, matrices), RunOptions(confidence=ConfidenceSettings(draws=301)))
    assert check_files("b", bundle.files).findings == ()
    omitted = {each["path"]: each["reason"] for each in json.loads(bundle.files["results/omitted.json"])["omitted"]}
    reason = "what the states have to meet, windows within windows, takes too long to find"
    assert omitted == {"certificates/block001_requirement01": reason}
