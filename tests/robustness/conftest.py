"""Drawn streets and the assessment of them, for the tests that make its data."""

import shutil

import pytest

from verifier.cli import main


@pytest.fixture(scope="module")
def source(root, tmp_path_factory):
    """A folder with the drawn streets and the assessment of them."""
    from made_assessment import write_assessment  # needs the libraries that read images

    folder = tmp_path_factory.mktemp("streets")
    write_assessment(folder, root)
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


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
        words = ["--make", tmp_path / target, "--cache", cache, "--output", tmp_path / "out.json", *more]
        capfd.readouterr()
        code = main(["assess", str(path), *map(str, words)])
        return code, capfd.readouterr().err

    return call
