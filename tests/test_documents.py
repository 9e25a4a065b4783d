"""README, examples and docstrings run, and print what they say."""

import doctest
import importlib
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import verifier
from verifier.cli import _parser, main

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLES = sorted((ROOT / "examples").glob("[0-9][0-9]_*.py"))


def without_noise(text):
    """Numerical bounds depend on the library versions in their last digits; the numbers themselves do not."""
    text = re.sub(r"\+- \d\.\de-\d\d *", "+- BOUND ", text)
    text = re.sub(r"off by at most \S+ numerically", "off by at most BOUND numerically", text)
    return re.sub(r"by at most \S+\.$", "by at most BOUND.", text, flags=re.MULTILINE)


def console_blocks():
    for block in re.findall(r"```console\n(.*?)```", README, flags=re.DOTALL):
        command, _, expected = block.partition("\n")
        yield pytest.param(command.removeprefix("$ "), expected, id=command.removeprefix("$ ")[:60])


@pytest.mark.parametrize(("command", "expected"), list(console_blocks()))
def test_the_readmes_commands_print_what_it_says(command, expected, monkeypatch, capfd):
    monkeypatch.chdir(ROOT)
    main(shlex.split(command)[1:])
    assert without_noise(capfd.readouterr().out) == without_noise(expected)


def test_the_readmes_python_runs(monkeypatch, capsys):
    (block,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    monkeypatch.chdir(ROOT)
    exec(compile(block, "README.md", "exec"), {})
    assert capsys.readouterr().out == "violated 0.196203\n"


def test_the_readmes_other_commands_run(monkeypatch, tmp_path):
    blocks = re.findall(r"```sh\n(verify .*?)```", README, flags=re.DOTALL)
    assert len(blocks) == 1
    monkeypatch.chdir(ROOT)
    for block in blocks:
        words = shlex.split(block)
        place = words.index("figure8.png")
        words[place] = str(tmp_path / "figure8.png")
        main(words[1:])
    assert (tmp_path / "figure8.png").stat().st_size > 10_000


PLAIN = [
    line
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)
    for line in block.splitlines()
    if not language and line.startswith("verify ")
]


@pytest.mark.parametrize("line", PLAIN)
def test_the_readmes_commands_on_files_of_the_reader_name_options_that_exist(line):
    assert callable(_parser().parse_args(shlex.split(line)[1:]).command)


def test_there_are_commands_on_files_of_the_reader():
    assert len(PLAIN) >= 15


def test_the_readmes_context_fits_its_bundle(monkeypatch, tmp_path, capsys):
    (block,) = re.findall(r"```toml\n(.*?)```", README, flags=re.DOTALL)
    (tmp_path / "case.toml").write_text(block)
    (line,) = [line for line in PLAIN if line.startswith("verify evidence build")]
    line = line.replace("case.toml", str(tmp_path / "case.toml")).replace("bundle.zip", str(tmp_path / "bundle.zip"))
    monkeypatch.chdir(ROOT)
    assert main([*shlex.split(line)[1:], "--draws", "200"]) == 0
    assert "digest: " in capsys.readouterr().out


def test_the_readme_links_to_files_that_are_there():
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_there_are_examples_and_they_are_numbered_from_one():
    assert [int(path.name[:2]) for path in EXAMPLES] == list(range(1, len(EXAMPLES) + 1))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_print_what_they_promise(path, tmp_path):
    _, _, promised = path.read_text().partition("# Expected output:\n")
    expected = "".join(line.removeprefix("#").removeprefix(" ") for line in promised.splitlines(keepends=True))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert found.stderr == ""
    assert found.stdout == expected
    assert expected.strip()
    assert list(tmp_path.iterdir()) == []


def modules():
    return [
        each.name for each in pkgutil.walk_packages(verifier.__path__, "verifier.") if "__main__" not in each.name
    ]


@pytest.mark.parametrize("name", modules())
def test_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
