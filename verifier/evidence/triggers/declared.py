"""Triggering conditions in the context of a case; every message has file, line and key.

[trigger.NAME]: text; part, source, effect, excluded_by, severity, matrices, where
"""

from __future__ import annotations

from typing import Any, get_args

from verifier.base.toml import Element
from verifier.evidence.risk.declared import matrices_at
from verifier.evidence.triggers.document import Part, Trigger

_TEXTS = ("source", "effect", "excluded_by", "severity")
_KEYS = ("text", "part", "matrices", "where", *_TEXTS)


def read_triggers(top: Element) -> tuple[Trigger, ...]:
    """The triggering conditions of a context; InputError."""
    return tuple(_trigger(name, table) for name, table in top.table_at("trigger"))


def _trigger(name: str, table: Element) -> Trigger:
    table.table(_KEYS, ("text",))
    matrices, sha256 = matrices_at(table)
    if table.has("where") and not matrices:
        raise table.at("where").fail("expected matrices whose bins these are")
    told: dict[str, Any] = {key: table.given(key, Element.string, "") for key in _TEXTS}
    return Trigger(
        name=name,
        text=table.at("text").string(),
        part=table.given("part", Element.one_of, None, get_args(Part)),
        matrices=matrices,
        sha256=sha256,
        where={key: each.string() for key, each in table.table_at("where")},
        **told,
    )
