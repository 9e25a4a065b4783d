"""Drawn streets and the assessment of them, for the tests that make its data."""

import json
import shutil

import pytest

from verifier.base.errors import ExitCode
from verifier.cli import main


@pytest.fixture(scope="session")
def source(root, tmp_path_factory):
    """A folder with the drawn streets and the assessment of them."""
    from made_assessment import write_assessment  # needs the libraries that read images

    folder = tmp_path_factory.mktemp("streets")
    write_assessment(folder, root)
    return folder


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def made(source, cache, tmp_path_factory):
    """What one command made: its folder, its document, and what was told."""
    target = tmp_path_factory.mktemp("one")
    words = ["--make", target / "made", "--cache", cache, "--output", target / "result.json"]
    words += ["--markdown", target / "result.md", "--plot", target / "plot.png"]
    assert main(["assess", str(source / "car.toml"), *map(str, words)]) == ExitCode.VIOLATED
    return target / "made/car", json.loads((target / "result.json").read_text()), (target / "result.md").read_text()


@pytest.fixture
def copied(source, tmp_path):
    """The folder of the streets, to be spoilt."""
    shutil.copytree(source, tmp_path / "streets")
    return tmp_path / "streets"


@pytest.fixture
def run(copied, cache, tmp_path, capfd):
    """The command on them: exit code and what stands on stderr."""

    def call(*more, old="", new="", target="made"):
        path = copied / "car.toml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))
        words = ["--make", tmp_path / target, "--output", tmp_path / "out.json", *more]
        words += [] if "--cache" in more else ["--cache", cache]
        capfd.readouterr()
        code = main(["assess", str(path), *map(str, words)])
        return code, capfd.readouterr().err

    return call
