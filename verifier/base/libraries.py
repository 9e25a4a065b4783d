"""The libraries of the extras, imported when they are needed and not before; versions of this program and of
what it computes with.
"""

from __future__ import annotations

import importlib
import platform
from functools import cache
from importlib.metadata import version
from typing import Any

from verifier.base.errors import UsageError

EXTRAS = {
    "PIL": "images",
    "cryptography": "sign",
    "cv2": "images",
    "dask": "scale",
    "distributed": "scale",
    "docx": "exchange",
    "fsspec": "scale",
    "lxml": "exchange",
    "markdown_it": "manual",
    "matplotlib": "plot",
    "networkx": "graphs",
    "onnxruntime": "onnx",
    "orjson": "detections",
    "pandas": "detections",
    "pyarrow": "detections",
    "pycocotools": "coco",
    "shtab": "shell",
    "torch": "features",
    "torchvision": "features",
    "yaml": "detections",
}
"""The extra of this package that brings each library."""
PACKAGES = {
    "cv2": "opencv-python-headless, before version 5",
    "docx": "python-docx",
    "markdown_it": "markdown-it-py",
    "PIL": "pillow",
    "yaml": "pyyaml",
}
"""What a library is called where it is installed from, if not by its own name."""


def library(name: str) -> Any:
    """The module `name` (`cv2`, `PIL.Image`, `pyarrow.parquet`), of a library in `EXTRAS`.

    Raises:
        UsageError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        missing = name.split(".")[0]
        raise UsageError(
            f"this needs the library {PACKAGES.get(missing, missing)}\n"
            f"  hint: pip install '.[{EXTRAS[missing]}]' in this program's source folder"
        ) from None


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
