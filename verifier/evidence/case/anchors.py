"""What tells the nodes of a case apart in every build: an anchor that stays when requirements are added, and a digest
of what a node says, which changes with it.

Identifiers are numbers in the order of the drawing; an anchor is made of the claim or duty of a node, or of its text
without numbers of other nodes and files, and of the node above it.

An assurance case as two tables, nodes and links, for spreadsheets and editors that import these.
"""

import hashlib
import re
from collections import Counter

from verifier.base.files import csv_text
from verifier.evidence.case.elements import Case, modules_of

DIGITS = 8
_NUMBERED = re.compile(
    r"\b(CSn|CG|Sn|G|S|C|A|J|D)\d+\b|(?<=/)\d+(?=_)|(?<=block)\d+|(?<=requirement)\d+|\d+(?= certificate)"
)


def anchors_of(case: Case) -> dict[str, str]:
    """Identifier -> anchor of every node, as `G-3fa9c17b`."""
    known, above = case.by_id, _above(case)
    claims = {name: f"{one.requirement}/{one.planner}/{one.point}" for one, name in case.goals.items()}
    stated = claims | {name: f"duty {duty}" for duty, name in case.duties.items()} | {case.top.id: "top"}
    anchors: dict[str, str] = {}
    seen = Counter[tuple[str, str]]()

    def key(name: str) -> str:
        """What an anchor is made of; anchors of the nodes above come first."""
        element = known[name]
        if name in stated:
            return stated[name]
        text = _NUMBERED.sub("", element.text)
        alone = element.url or element.kind.value in ("A", "J", "CSn")  # it points at one file, which many may share
        return text if name not in case.covers and alone else f"{anchors[above[name]]} {text}"

    for name in _ordered(case, above):
        kind = known[name].kind.value
        told = key(name)
        seen[kind, told] += 1
        number = seen[kind, told]
        anchors[name] = f"{kind}-{_digest(f'{kind} {told} {number}')}"
    return anchors


def digests_of(case: Case) -> dict[str, str]:
    """Identifier -> digest of text, findings, status and grade of every node."""
    return {
        element.id: _digest(f"{element.text}\n{element.note}\n{element.told}\n{element.grade}")
        for element in case.elements
    }


def _above(case: Case) -> dict[str, str]:
    """Identifier -> the first node that refers to it, or that it challenges."""
    referrers: dict[str, str] = {}
    for element in case.elements:
        for name in (*element.supported_by, *element.in_context_of):
            referrers.setdefault(name, element.id)
    return referrers | {element.id: element.challenges for element in case.elements if element.challenges is not None}


def _ordered(case: Case, above: dict[str, str]) -> list[str]:
    """All identifiers, each behind the one above it, else in the order of the case."""
    done: dict[str, None] = {}
    for element in case.elements:
        path = [element.id]
        while path[-1] in above and above[path[-1]] not in done and above[path[-1]] not in path:
            path.append(above[path[-1]])
        done |= dict.fromkeys(reversed(path))
    return list(done)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


LINKS = ("from", "to", "kind")


def nodes_text(case: Case) -> str:
    """A row for each element; `anchor` and `content` are what findings of a review name."""
    anchors, digests = anchors_of(case), digests_of(case)
    rows = [
        {
            "id": element.id,
            "kind": element.kind.name.lower().replace("_", " "),
            "module": module,
            "text": element.text,
            "note": element.note,
            "status": "" if element.status is None else element.status.value,
            "conditional_on": " ".join(element.rests_on),
            "grade": "" if element.grade is None else element.grade.value,
            "undeveloped": "yes" if element.undeveloped else "no",
            "defeated": "yes" if element.defeated else "no",
            "amlas": element.amlas,
            "file": element.url,
            "review": "; ".join(element.review),
            "anchor": anchors[element.id],
            "content": digests[element.id],
        }
        for module, elements in modules_of(case).items()
        for element in elements
    ]
    return csv_text(rows)


def links_text(case: Case) -> str:
    """A row for each relation: from what is supported, stands in a context, or challenges."""
    pairs = [
        (element.id, name, kind)
        for element in case.elements
        for kind, names in (
            ("supported by", element.supported_by),
            ("in context of", element.in_context_of),
            ("challenges", () if element.challenges is None else (element.challenges,)),
        )
        for name in names
    ]
    return csv_text([dict(zip(LINKS, pair, strict=True)) for pair in pairs], LINKS)
