"""Bundles that an earlier release built: read and checked by the program of today, and by its kernel alone."""

import shutil
import subprocess
import sys

import pytest
from forged_bundles import with_manifest
from small_bundles import write_inputs

from verifier.analysis.settings import ConfidenceSettings
from verifier.base.libraries import RELEASED, __version__
from verifier.evidence.bundle.archive import write_bundle
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.evidence.bundle.check import check_bundle, check_files
from verifier.evidence.identity import sbom_text, tool_identity
from verifier.study.options import RunOptions

FEW = RunOptions(confidence=ConfidenceSettings(draws=100))
OLD = "0.0.9"
MODULES = ("base.libraries", "evidence.bundle.manifest", "telling.html", "evidence.rates.hazard", "evidence.identity")


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """A bundle as release 0.0.9 built it, whose report was worded in another way and that had a file of its own."""
    spec, matrices = write_inputs(tmp_path_factory.mktemp("old"))
    with pytest.MonkeyPatch.context() as patch:
        for module in MODULES:
            patch.setattr(f"verifier.{module}.__version__", OLD)
        _forget_the_version()
        files = dict(make_bundle(Sources(spec, matrices), FEW).files)
        _forget_the_version()
        files["report/report.html"] = files["report/report.html"].replace(b"Verdicts", b"Results")
        files["report/notes.txt"] = b"of that release only\n"
        return with_manifest(files)


def _forget_the_version():
    """What is kept of this program names its version."""
    for kept in (sbom_text, tool_identity):
        kept.cache_clear()


def test_a_release_that_is_known_is_checked_and_said_not_to_be_compared_byte_for_byte(old, monkeypatch):
    monkeypatch.setattr("verifier.evidence.bundle.check.RELEASED", (OLD,))
    report = check_files("b", old, recompute=True)
    assert report.findings == ()
    assert report.exit_code == 0
    assert any(f"built by verifier {OLD}, and this is {__version__}" in each for each in report.unchecked)
    assert any(each.startswith("report/notes.txt: ") for each in report.unchecked)
    assert any("certificates proven" in one.what and one.count > 0 for one in report.checked)
    assert any("violating runs replayed" in one.what and one.count > 0 for one in report.checked)
    assert report.status.startswith("status: inconclusive")


@pytest.mark.parametrize("version", RELEASED)
def test_a_stored_bundle_of_each_release_is_checked_by_this_program_and_by_the_kernel_alone(version, root, tmp_path):
    stored = tmp_path / "bundle"
    shutil.unpack_archive(root / f"tests/data/releases/{version}.zip", stored)
    report = check_bundle(stored)
    assert report.findings == ()
    assert report.exit_code == 0
    assert report.numbers.proven > 100
    assert any(f"built by verifier {version}, and this is {__version__}" in each for each in report.unchecked)
    command = [sys.executable, "-I", str(root / "verifier/analysis/kernel.py"), str(stored)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert not any("REJECTED" in line for line in found.stdout.splitlines())


def test_nothing_but_bundles_of_releases_is_stored(root):
    assert {path.stem for path in (root / "tests/data/releases").iterdir()} == set(RELEASED)


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
