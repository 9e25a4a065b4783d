"""An assurance case as the YAML that gsn2x reads (J. Wolf, gsn2x; its documentation, chapters "Syntax in YAML",
"Checks" and "Dialectic Extension").

Every text is a double-quoted scalar, so nothing in it can be read as anything else. gsn2x makes links of what looks
like one, wherever it stands; a name from a file shall not become one, so its `://` is parted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from verifier.base.errors import one_line
from verifier.evidence.case.elements import Case, Element


def gsn_yaml(case: Case) -> str:
    """The YAML of a case: one element after the other, the top goal first; ends with a line break.

    Attributes that gsn2x does not know are views on top of it (`gsn2x --layers status,amlas`): `status` of goals and
    strategies, and `amlas`, the element of an AMLAS pattern.
    """
    lines = ["module:", f"  name: {_quoted(case.title)}", f"  brief: {_quoted(_brief(case))}"]
    for element in case.elements:
        lines += ["", f"{element.id}:", *(f"  {line}" for line in _attributes(element))]
    return "\n".join(lines) + "\n"


def _brief(case: Case) -> str:
    note = f"; {case.top.note}" if case.top.note else ""
    return f"Top goal: {case.status.value}{note}"


def _attributes(element: Element) -> Iterator[str]:
    text = element.text if not element.note else f"{element.text}\n{element.note}"
    yield f"text: {_quoted(text)}"
    if element.supported_by:
        yield f"supportedBy: [{', '.join(element.supported_by)}]"
    if element.in_context_of:
        yield f"inContextOf: [{', '.join(element.in_context_of)}]"
    if element.challenges is not None:
        yield f"challenges: {element.challenges}"
    if element.undeveloped:
        yield "undeveloped: true"
    if element.defeated:
        yield "defeated: true"
    if element.url:
        yield f"url: {_quoted(element.url)}"
    if element.status is not None:
        yield f"classes: [{element.status.value}]"
        yield f"status: {_quoted(element.status.value)}"
    if element.amlas:
        yield f"amlas: {_quoted(element.amlas)}"


def _quoted(text: str) -> str:
    """A double-quoted scalar: JSON's quoting of printable text is YAML's, too."""
    clean = "\n".join(one_line(line) for line in text.split("\n"))
    return json.dumps(clean.replace("://", ": //"), ensure_ascii=False)
