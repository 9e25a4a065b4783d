"""The modules of the package, each read and parsed once for all tests that look at its text."""

import ast
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "verifier"


@cache
def nodes_of(path):
    """A file's parts in the order of `ast.walk`, the module first."""
    return tuple(ast.walk(ast.parse(path.read_text("utf-8"))))
