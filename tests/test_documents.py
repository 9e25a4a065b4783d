"""README, examples and docstrings run, and print what they say."""

import doctest
import importlib
import os
import re
import runpy
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from package_source import PACKAGE
from printed_text import without_noise

from verifier.cli import main

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.usefixtures("no_terminal")
README = (ROOT / "README.md").read_text()
EXAMPLES = sorted((ROOT / "examples").glob("[0-9][0-9]_*.py"))


def console_blocks():
    for block in re.findall(r"```console\n(.*?)```", README, flags=re.DOTALL):
        command, _, expected = block.partition("\n")
        yield pytest.param(command.removeprefix("$ "), expected, id=command.removeprefix("$ ")[:60])


@pytest.mark.parametrize(("command", "expected"), list(console_blocks()))
def test_the_readmes_commands_print_what_it_says(command, expected, monkeypatch, capfd):
    monkeypatch.chdir(ROOT)
    main(shlex.split(command)[1:])
    shown = capfd.readouterr().out
    assert without_noise(shown) == without_noise(expected)
    assert max(map(len, shown.splitlines())) <= 100


def test_the_readme_is_short_and_links_to_files_that_are_there():
    assert len(README.splitlines()) <= 200
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_there_are_examples_and_they_are_numbered_from_one():
    assert [int(path.name[:2]) for path in EXAMPLES] == list(range(1, len(EXAMPLES) + 1))


def promised(path):
    text = path.read_text().partition("# Expected output:\n")[2]
    return "".join(line.removeprefix("#").removeprefix(" ") for line in text.splitlines(keepends=True))


def run_alone(path, folder):
    """Standard output of a script that is run as a reader would run it, in a folder of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run([sys.executable, str(path)], cwd=folder, env=environment, capture_output=True, text=True)
    assert found.stderr == ""
    assert list(folder.iterdir()) == []
    return found.stdout


IN_FULL = ("01_car_and_pedestrian.py", pytest.param("13_how_much_haze.py", marks=pytest.mark.slow))


@pytest.mark.parametrize("name", IN_FULL)
def test_examples_run_as_scripts(name, tmp_path):
    path = ROOT / "examples" / name
    assert promised(path).strip()
    assert run_alone(path, tmp_path) == promised(path)


@pytest.mark.parametrize(
    "path", [path for path in EXAMPLES if path.name[:2] not in ("01", "13")], ids=lambda path: path.name
)
def test_examples_print_what_they_promise(path, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        runpy.run_path(str(path), run_name="__main__")
    printed = capfd.readouterr()
    assert printed.err == ""
    assert printed.out == promised(path)
    assert promised(path).strip()
    assert list(tmp_path.iterdir()) == []


def test_the_example_of_haze_with_few_scenes(tmp_path):
    """A tenth of the example's scenes and half of its levels: the same rows with other numbers, in full a minute."""
    full, few = ROOT / "examples/13_how_much_haze.py", tmp_path / "few" / "example.py"
    text = full.read_text()
    for much, little in (("= 120,", "= 12,"), ("{ at = 60 }, { at = 40 }, { at = 25 }, ", "{ at = 40 }, ")):
        assert text.count(much) == 1
        text = text.replace(much, little)
    few.parent.mkdir()
    few.write_text(text)
    (tmp_path / "run").mkdir()
    rows, expected = (
        [line[:20] for line in text.partition("\n\n")[0].splitlines()]
        for text in (run_alone(few, tmp_path / "run"), promised(full))
    )
    assert rows == expected
    assert len(rows) == 6


EXEMPLIFIED = sorted(path for path in PACKAGE.rglob("*.py") if ">>>" in path.read_text("utf-8"))


@pytest.mark.parametrize("path", EXEMPLIFIED, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_docstrings_run(path, root, monkeypatch):
    monkeypatch.chdir(root)
    name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    assert doctest.testmod(importlib.import_module(name)).failed == 0
