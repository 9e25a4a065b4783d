"""Checksums of a result's document, part by part: whoever reads it finds what was changed after it was written.

They find slips and damage; who changes a document on purpose can make them anew, and is found only by what follows
from other parts, by the inputs, or by a digest that is known from elsewhere.

Each object and each array has one: the first 8 hexadecimal digits of the SHA-256 of its keys and of the numbers and
texts that stand directly in it. They are listed below each key of the document, what holds something before what it
holds, keys by the alphabet.
"""

import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from verifier.base.errors import pointer_part

KEY = "checksums"
"""Of the document, its last."""
SUMMED = tuple(
    f"verifier.{kind}"
    for kind in (
        "assess",
        "collision",
        "compare",
        "explain",
        "mutate",
        "rate",
        "require",
        "risk",
        "run",
        "trade_offs",
        "triggers",
    )
)
"""Schemas of results; what people write too, such as matrices and curves, has none."""
DIGITS = 8
_ENCODED = json.JSONEncoder().encode
SCHEMA: Mapping[str, object] = MappingProxyType(
    {"type": "object", "additionalProperties": {"type": "string", "pattern": rf"^([0-9a-f]{{{DIGITS}}})+$"}}
)
"""JSON Schema of the entry."""


def with_checksums(text: str) -> str:
    """The text of a document with its checksums, in place of those it has; as it is, if its kind has none.

    Args:
        text: an object over several lines, indented by two blanks.
    """
    content = json.loads(text)
    if content.get("schema") not in SUMMED:
        return text
    end = text.rindex(f',\n  "{KEY}": ') if KEY in content else text.rindex("\n}")
    return f"{text[:end]},{json.dumps({KEY: checksums(content)}, indent=2)[1:]}\n"


def checksums(content: Mapping[str, object]) -> dict[str, str]:
    """Key -> the checksums of all that stands below it, of a document."""
    return {key: "".join(digest for _, digest in _sums(content[key], (key,))) for key in content if key != KEY}


def changed_part(content: Mapping[str, object]) -> str | None:
    """Pointer of the first part of a document that is not what its checksums are of; None where all are."""
    told = content.get(KEY)
    if not isinstance(told, dict):
        return f"/{KEY}"
    if other := told.keys() ^ (content.keys() - {KEY}):
        return f"/{pointer_part(min(other))}"
    for key, sums in told.items():
        parts = _sums(content[key], (key,))
        for at, (way, digest) in enumerate(parts):
            if not isinstance(sums, str) or sums[DIGITS * at : DIGITS * (at + 1)] != digest:
                return "".join(f"/{pointer_part(part)}" for part in way)
        if len(sums) != DIGITS * len(parts):
            return f"/{KEY}/{key}"
    return None


def _sums(value: Any, way: tuple[str, ...]) -> list[tuple[tuple[str, ...], str]]:
    """(way, checksum) of an object or array, or of a text or number at the top, and of all inside."""
    found = list[tuple[tuple[str, ...], str]]()
    _add_sums(value, way, found)
    return found


def _add_sums(value: Any, way: tuple[str, ...], found: list[tuple[tuple[str, ...], str]]) -> None:
    own, deeper = _own(value), list[tuple[str, Any]]()
    if isinstance(value, dict):
        deeper = [(key, value[key]) for key in sorted(value)]
        own = {key: _own(part) for key, part in deeper}
    elif isinstance(value, list):
        own, deeper = [_own(part) for part in value], [(str(at), part) for at, part in enumerate(value)]
    found.append((way, hashlib.sha256(_ENCODED(own).encode()).hexdigest()[:DIGITS]))
    for part, entry in deeper:
        if isinstance(entry, dict | list):
            _add_sums(entry, (*way, part), found)


def _own(value: Any) -> Any:
    """What stands for a value where it stands: for one that holds others its kind, for equal numbers the same."""
    if isinstance(value, dict | list):
        return type(value)()
    return int(value) if isinstance(value, float) and value.is_integer() else value
