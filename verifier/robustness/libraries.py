"""The libraries of the extras that run detectors and score them, imported when they are needed and not before."""

from __future__ import annotations

import importlib
from typing import Any

from verifier.errors import UsageError

EXTRAS = {"cv2": "images", "PIL": "images", "onnxruntime": "onnx", "pycocotools": "coco"}
"""The extra of this package that brings each library."""
PACKAGES = {"cv2": "opencv-python-headless, before version 5", "PIL": "pillow"}
"""What a library is called where it is installed from, if not by its own name."""


def library(name: str) -> Any:
    """The module `name` (`cv2`, `PIL.Image`, `onnxruntime`, `pycocotools.coco`).

    Raises:
        UsageError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        missing = name.split(".")[0]
        raise UsageError(
            f"this needs the library {PACKAGES.get(missing, missing)}\n"
            f"  hint: pip install 'verifier[{EXTRAS[missing]}]'"
        ) from None
