"""The record of the test data in a bundle: as Croissant, on page one, and looked at again by a check."""

import hashlib
import json

import pytest
from small_bundles import MATRICES, write_inputs

from verifier.analysis.settings import ConfidenceSettings
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.evidence.bundle.check import check_files
from verifier.perception.confusion.data_set import NAMES, PARTS
from verifier.study.options import RunOptions

pytestmark = pytest.mark.usefixtures("results_made_once")

FEW = RunOptions(confidence=ConfidenceSettings(draws=100))
RECORD = {
    "stated": {"purpose": "Release test", "terms.licence": "CC-BY-4.0", "annotation.guide": "Guide 2"},
    "error_rate": [0.0, 0.01],
    "odd": {"weather": {"dry": [0.7, 0.9], "wet": [0.3, 0.1]}},
    "uses": [{"title": "r.json: stops", "sha256": "a" * 64, "verdict": "satisfied", "day": "2026-05-04"}],
}


def bundle(folder, record):
    more = {} if record is None else {"version": 2, "data_set": record}
    return make_bundle(Sources(*write_inputs(folder, matrices=MATRICES | more)), FEW).files


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return bundle(tmp_path_factory.mktemp("stated"), RECORD)


def test_the_record_is_there_as_croissant_about_the_matrices(files):
    found = json.loads(files["data/croissant.json"])
    assert found["@type"] == "sc:Dataset"
    assert found["conformsTo"][0] == "http://mlcommons.org/croissant/1.0"
    assert (found["license"], found["description"]) == ("CC-BY-4.0", "Release test")
    assert found["rai:dataAnnotationProtocol"] == "Guide 2"
    (file,) = found["distribution"]
    path = file["contentUrl"].removeprefix("../")
    assert hashlib.sha256(files[path]).hexdigest() == file["sha256"]
    assert len(found["verifier:notStated"]) == len(NAMES) + len(PARTS) - 5
    assert found["verifier:domainDistance"] == {"weather": pytest.approx(0.2)}
    assert [each["title"] for each in found["verifier:uses"]] == ["r.json: stops"]


@pytest.mark.parametrize("stated", [RECORD, {"stated": {}}])
def test_the_library_of_croissant_loads_the_record(stated, tmp_path):
    """Its command ends with an error where the context, a type or a property is not Croissant's."""
    croissant = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed")
    path = tmp_path / "croissant.json"
    path.write_bytes(bundle(tmp_path, stated)["data/croissant.json"])
    found = croissant.Dataset(path).metadata
    assert found.ctx.issues.errors == set()
    (file,) = found.distribution
    assert (found.name, file.content_url) == ("made up", "../inputs/matrices/matrices.json")
    assert len(file.sha256) == 64
    assert found.license == (["CC-BY-4.0"] if stated["stated"] else None)


def test_page_one_counts_what_is_not_stated(files, tmp_path):
    whole, bare = len(NAMES) + len(PARTS), bundle(tmp_path, None)
    assert "data/croissant.json" not in bare
    for found, missing in ((files, whole - 5), (bare, whole)):
        page = found["report/report.md"].decode().replace("\\", "")
        assert f"in the record of their data set {missing} of {whole} items" in page


def test_bounds_of_the_bundle_allow_for_errors_and_looks_and_are_proven_so(files):
    run = json.loads(files["results/run.json"])
    basis = run["settings"]["confidence"]["bounds"]
    assert (basis["annotation_error"], basis["looks"]) == (0.01, 2)
    report = check_files("b", files)
    assert report.findings == ()
    assert report.numbers.proven > 100


def test_a_record_that_is_made_better_is_found(files):
    path = "data/croissant.json"
    forged = dict(
        files,
        **{path: files[path].replace(b'"verifier:errorRate": [0.0, 0.01]', b'"verifier:errorRate": [0.0, 0.001]')},
    )
    if forged[path] == files[path]:
        forged[path] = files[path].replace(b"0.01", b"0.001", 1)
    assert forged[path] != files[path]
    report = check_files("b", forged)
    assert {each.file for each in report.findings} == {path}
