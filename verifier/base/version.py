"""The version of this program, where every part may read it, and of what it computes with."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path

__version__ = "0.1.0"
RELEASED: tuple[str, ...] = ("0.1.0.dev1",)
"""Versions before this one whose bundles are read and checked, without comparing bytes; a bundle of each is kept with
the tests. The first is the state of development in November 2026."""

version_of = cache(version)
"""The version of an installed library, looked up once; PackageNotFoundError where it is missing."""


def own_versions() -> dict[str, str]:
    """Versions of this program and of what it computes with, where no model checker takes part."""
    return {
        "verifier": __version__,
        "python": platform.python_version(),
        "numpy": version_of("numpy"),
        "scipy": version_of("scipy"),
    }


def commit_of(package: Path) -> str:
    """The commit of the repository whose folder holds a package, `+` where files of the package differ from it.

    Empty where there is no such repository, or git cannot read it.
    """
    if not (package.parent / ".git").exists():
        return ""
    git = ("git", "-C", str(package.parent))
    try:
        head, changed = (
            subprocess.run([*git, *words], capture_output=True, text=True, check=True).stdout.strip()
            for words in (("rev-parse", "HEAD"), ("status", "--porcelain", "--", str(package)))
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head + ("+" if changed else "")
