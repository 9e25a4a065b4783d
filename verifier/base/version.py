"""The version of this program, where every part may read it, and of what it computes with."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import version

__version__ = "0.1.0"
RELEASED: tuple[str, ...] = ()
"""Versions before this one that were released: their bundles are read and checked, without comparing bytes."""

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
