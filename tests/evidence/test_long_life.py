"""Bundles that an earlier release built: read and checked by the program of today, and by its kernel alone."""

import json
import subprocess
import sys

import pytest
from small_bundles import write_inputs

from verifier.analysis.settings import ConfidenceSettings
from verifier.base.version import __version__
from verifier.evidence.bundle.archive import write_bundle
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.evidence.bundle.check import check_files
from verifier.evidence.bundle.manifest import Entry, manifest_of
from verifier.study.options import RunOptions

FEW = RunOptions(confidence=ConfidenceSettings(draws=100))
OLD = "0.0.9"


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """A bundle as release 0.0.9 built it, whose report was worded in another way and that had a file of its own."""
    spec, matrices = write_inputs(tmp_path_factory.mktemp("old"))
    with pytest.MonkeyPatch.context() as patch:
        for module in ("base.version", "evidence.bundle.manifest", "telling.html", "evidence.rates.document"):
            patch.setattr(f"verifier.{module}.__version__", OLD)
        files = dict(make_bundle(Sources(spec, matrices), FEW).files)
        files["report/report.html"] = files["report/report.html"].replace(b"Verdicts", b"Results")
        files["report/notes.txt"] = b"of that release only\n"
        return with_manifest(files)


def with_manifest(files):
    """The files with a manifest that lists them."""
    listed = {each["path"]: (each["role"], each["about"]) for each in json.loads(files["manifest.json"])["files"]}
    rest = {path: raw for path, raw in files.items() if path != "manifest.json"}
    entries = {path: Entry.of(path, *listed.get(path, ("derived", "notes")), raw) for path, raw in rest.items()}
    title = json.loads(files["manifest.json"])["title"]
    return {**files, "manifest.json": manifest_of(title, entries).json_text().encode()}


def test_a_release_that_is_known_is_checked_and_said_not_to_be_compared_byte_for_byte(old, monkeypatch):
    monkeypatch.setattr("verifier.evidence.bundle.check.RELEASED", (OLD,))
    report = check_files("b", old, recompute=True)
    assert report.findings == ()
    assert report.exit_code == 0
    assert any(f"built by verifier {OLD}, and this is {__version__}" in each for each in report.unchecked)
    assert any(each.startswith("report/notes.txt: ") for each in report.unchecked)
    assert any("certificates proven" in what and count > 0 for count, what in report.checked)
    assert any("violating runs replayed" in what and count > 0 for count, what in report.checked)
    assert report.status.startswith("status: inconclusive")


def test_a_release_that_nobody_made_is_a_finding(old):
    (found,) = [each for each in check_files("b", old).findings if each.where == "/verifier"]
    assert (found.found, found.expected.startswith(f"{__version__}, or a release before it")) == (OLD, True)


@pytest.mark.parametrize("what", ["certificate", "probability", "version"])
def test_numbers_of_an_old_bundle_are_held_against_inputs_and_certificates_all_the_same(what, old, monkeypatch):
    monkeypatch.setattr("verifier.evidence.bundle.check.RELEASED", (OLD,))
    path = "results/run.json"
    run = old[path].decode()
    if what == "certificate":
        path = "certificates/block001_requirement01_point_lower_01.json"
        forged = old[path].replace(b'"claimed": [0.9375]', b'"claimed": [0.9475]', 1)
    elif what == "probability":
        forged = run.replace('"probability": 0.9375', '"probability": 0.9475', 1).encode()
    else:
        forged = run.replace(f'"verifier": "{OLD}"', '"verifier": "0.0.8"', 1).encode()
    assert forged != old[path]
    assert not check_files("b", with_manifest({**old, path: forged})).sound


def test_the_kernel_alone_checks_the_certificates_of_an_old_bundle(old, tmp_path, root):
    write_bundle(old, tmp_path / "b")
    command = [sys.executable, "-I", str(root / "verifier/analysis/kernel.py"), str(tmp_path / "b")]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "certificates proven" in found.stdout
