"""With what a bundle was built: bill of materials, lock with hashes, recipe of an image, version with its commit."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from forged_bundles import forged, with_manifest
from packaging.specifiers import SpecifierSet
from small_bundles import write_inputs

from verifier.analysis.settings import ConfidenceSettings
from verifier.base.libraries import __version__
from verifier.evidence import identity
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.evidence.bundle.check import check_files
from verifier.evidence.identity import SBOM_FILE, environment_texts, sbom_text
from verifier.study.options import RunOptions

FEW = RunOptions(confidence=ConfidenceSettings(draws=100))
REQUIRED = ("numpy", "scipy", "lark", "pydantic", "stormpy", "tqdm")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return make_bundle(Sources(*write_inputs(tmp_path_factory.mktemp("built"))), FEW)


@pytest.fixture(scope="module")
def files(bundle):
    return bundle.files


def test_the_bill_of_materials_is_cyclonedx_and_names_what_is_installed(files):
    text = files[SBOM_FILE].decode()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    content = json.loads(text)
    named = {each["name"]: each for each in content["components"]}
    for name in REQUIRED:
        assert named[name]["version"] == importlib.metadata.version(name)
        assert named[name]["purl"] == f"pkg:pypi/{name}@{named[name]['version']}"
    refs = {each["bom-ref"] for each in content["components"]} | {"verify-perception"}
    assert {each["ref"] for each in content["dependencies"]} == refs
    assert all(set(each["dependsOn"]) <= refs for each in content["dependencies"])
    (scipy,) = [each for each in content["dependencies"] if each["ref"].startswith("pkg:pypi/scipy@")]
    assert named["numpy"]["purl"] in scipy["dependsOn"]


def test_only_what_is_needed_is_named_where_the_program_is_installed(monkeypatch):
    class Part:
        def __init__(self, name, version, *requires):
            self.metadata, self.version, self.requires = {"Name": name}, version, list(requires)

    needs = ("a_part >= 1", 'tester ; extra == "test"', 'signer>2 ; extra == "sign"', "missing")
    parts = [Part("verify-perception", "1", *needs), Part("A.Part", "2", "deep"), Part("deep", "3", "a-part")]
    parts += [Part("tester", "4"), Part("signer", "5"), Part("other", "6")]
    monkeypatch.setattr(importlib.metadata, "distributions", lambda: parts)
    identity._needed.cache_clear()
    try:
        assert {name: each.version for name, each in identity._needed().items()} == {
            "a-part": "2", "deep": "3", "signer": "5",
        }  # fmt: skip
    finally:
        monkeypatch.undo()
        identity._needed.cache_clear()


NOT_LOCKED = {"features", "roundtrips", "stores", "test"}


def test_the_locks_have_hashes_of_everything_that_is_required_and_fit_the_project(root):
    locks = [
        {re.match(r"[^\\]+", each)[0].strip(): each for each in re.split(r"\n(?=[a-z])", text) if "==" in each}
        for path, text in environment_texts().items()
        if path.endswith(".lock")
    ]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [line for name, lines in extras.items() if name not in NOT_LOCKED for line in lines]
    for lock, lines in zip(locks, (project["dependencies"], [*project["dependencies"], *wanted]), strict=True):
        pinned = dict(each.split(" ;")[0].split("==") for each in reversed(lock))
        for line in lines:
            name, bounds = re.fullmatch(r"([\w-]+)(.*)", line).groups()
            assert SpecifierSet(bounds).contains(pinned[name]), line
        for each in lock.values():
            assert re.findall(r"--hash=sha256:[0-9a-f]{64}\b", each), each
    required, whole = locks
    assert {name: text.strip() for name, text in required.items()}.items() <= {
        name: text.strip() for name, text in whole.items()
    }.items()


def test_the_bundle_has_all_of_it_and_its_check_finds_nothing(files):
    assert set(environment_texts()) <= set(files)
    recipe = files["environment/Containerfile"].decode()
    assert "ARG LOCK=requirements.lock\n" in recipe
    assert "--require-hashes -r /source/$LOCK" in recipe
    assert "--build-arg BASE=python:3.11-slim@sha256:..." in recipe
    report = check_files("b", files)
    assert report.findings == ()


def altered(bundle, change):
    content = json.loads(bundle.files[SBOM_FILE])
    change(content)
    return check_files("b", forged(bundle, {SBOM_FILE: json.dumps(content).encode()}, derive=True))


def test_another_environment_is_accepted_and_one_that_contradicts_the_results_is_not(bundle):
    def newer(name):
        def change(content):
            next(each for each in content["components"] if each["name"] == name)["version"] = "99"

        return change

    assert altered(bundle, newer("tqdm")).findings == ()  # no result says with which
    (found,) = altered(bundle, newer("scipy")).findings
    assert (found.file, found.found.startswith("scipy 99, and the results were made with ")) == (SBOM_FILE, True)
    (found,) = altered(bundle, lambda content: content.update(bomFormat="SPDX")).findings
    assert found.found == "expected a CycloneDX document with components"
    (found,) = altered(bundle, lambda content: content["components"].append("numpy")).findings
    assert found.file == SBOM_FILE
    (found,) = altered(bundle, lambda content: content["metadata"]["component"].update(version="9")).findings
    assert found.found.startswith("verifier 9, and the results")


def test_a_bundle_of_an_earlier_release_need_not_have_one(files):
    rest = {path: raw for path, raw in files.items() if path != SBOM_FILE}
    assert not any(each.file == SBOM_FILE for each in check_files("b", with_manifest(rest)).findings)


@pytest.mark.parametrize(
    ("commit", "expected"),
    [
        ("", __version__),
        ("1a2b3c4d5e6f" + 28 * "0", f"{__version__}+g1a2b3c4d5e6f"),
        ("1a2b3c4d5e6f" + 28 * "0" + "+", f"{__version__}+g1a2b3c4d5e6f.dirty"),
    ],
)
def test_the_version_has_its_commit(commit, expected, monkeypatch):
    monkeypatch.setattr(identity, "_commit", lambda: commit)
    assert identity.full_version() == expected
    sbom_text.cache_clear()
    assert json.loads(sbom_text())["metadata"]["component"]["version"] == expected
    sbom_text.cache_clear()


@pytest.mark.slow  # pip fetches setuptools and builds
def test_an_installed_wheel_knows_the_commit_that_it_was_built_from(tmp_path):
    clone, site = tmp_path / "clone", tmp_path / "site"

    def run(*command, cwd=tmp_path):
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True, env=os.environ | path)
        return done.stdout

    path = {"PYTHONPATH": str(site)}
    run("git", "clone", "-q", "--no-hardlinks", str(identity._PACKAGE.parent), str(clone))
    head = run("git", "rev-parse", "HEAD", cwd=clone).strip()
    for said in ("", ".dirty"):
        run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site), "--upgrade", str(clone))
        assert run(sys.executable, "-m", "verifier", "--version").split()[-1] == f"{__version__}+g{head[:12]}{said}"
        (clone / "verifier/base/libraries.py").open("a").write("# changed\n")
    code = "from verifier.evidence.identity import *; print(tool_identity().sha256, installed_differences())"
    assert run(sys.executable, "-c", code).split()[1] == "()"
    shutil.rmtree(clone / ".git")
    run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site), "--upgrade", str(clone))
    assert "+" not in run(sys.executable, "-m", "verifier", "--version")
