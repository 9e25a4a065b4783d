"""The library that validates documents against their JSON Schemas, imported when it is needed and not before."""

from __future__ import annotations

import importlib
from typing import Any

from verifier.errors import UsageError


def jsonschema() -> Any:
    """The module `jsonschema`.

    Raises:
        UsageError: it is not installed.
    """
    try:
        return importlib.import_module("jsonschema")
    except ImportError:
        raise UsageError("this needs the library jsonschema\n  hint: pip install 'verifier[evidence]'") from None
