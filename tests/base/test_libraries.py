"""The libraries of the extras: every name that is asked for belongs to an extra that brings it."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest
from package_source import PACKAGE, nodes_of

from verifier.base.errors import UsageError
from verifier.base.libraries import EXTRAS, library

ROOT = Path(__file__).resolve().parents[2]
DISTRIBUTIONS = {
    "cv2": "opencv-python-headless",
    "docx": "python-docx",
    "markdown_it": "markdown-it-py",
    "PIL": "pillow",
    "yaml": "pyyaml",
}


def test_every_extra_brings_its_library():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for name, extra in EXTRAS.items():
        brought = {re.match(r"[A-Za-z0-9_-]+", each)[0] for each in extras[extra]}
        assert DISTRIBUTIONS.get(name, name) in brought


def test_every_library_that_is_asked_for_has_an_extra():
    asked = {
        node.args[0].value.split(".")[0]
        for path in PACKAGE.rglob("*.py")
        if "library(" in path.read_text()
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "library"
    }
    assert asked == set(EXTRAS)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "PIL.Image",
            "this needs the library pillow\n  hint: pip install '.[images]' in this program's source folder",
        ),
        (
            "pyarrow.parquet",
            "this needs the library pyarrow\n  hint: pip install '.[detections]' in this program's source folder",
        ),
    ],
)
def test_a_missing_library_is_told_with_its_extra(monkeypatch, name, told):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError) as error:
        library(name)
    assert str(error.value) == told
