"""The libraries of the extra `detections`, imported when a reader needs them and not before."""

from __future__ import annotations

import importlib
from typing import Any

from verifier.errors import UsageError


def library(name: str) -> Any:
    """The module `name` (`pandas`, `pyarrow.parquet`, `orjson`, `PIL.Image`).

    Raises:
        UsageError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        missing = name.split(".")[0]
        raise UsageError(
            f"reading this needs the library {missing}\n  hint: pip install 'verifier[detections]'"
        ) from None
