"""What tells the nodes of a case apart in every build: an anchor that stays when requirements are added, and a digest
of what a node says, which changes with it.

Identifiers are numbers in the order of the drawing; an anchor is made of the claim or duty of a node, or of its text
without numbers of other nodes and files, and of the node above it.
"""

import hashlib
import re
from collections import Counter

from verifier.evidence.case.elements import Case, Element

DIGITS = 8
_NUMBERED = re.compile(
    r"\b(CSn|CG|Sn|G|S|C|A|J|D)\d+\b|(?<=/)\d+(?=_)|(?<=block)\d+|(?<=requirement)\d+|\d+(?= certificate)"
)


def anchors_of(case: Case) -> dict[str, str]:
    """Identifier -> anchor of every node, as `G-3fa9c17b`."""
    known, above = case.by_id, _above(case)
    claims = {name: f"{one.requirement}/{one.planner}/{one.point}" for one, name in case.goals.items()}
    stated = claims | {name: f"duty {duty}" for duty, name in case.duties.items()} | {case.top.id: "top"}
    found: dict[str, str] = {}
    seen = Counter[tuple[str, str]]()

    def key(name: str) -> str:
        """What an anchor is made of; anchors of the nodes above come first."""
        element = known[name]
        if name in stated:
            return stated[name]
        text = _NUMBERED.sub("", element.text)
        return text if name not in case.covers and _alone(element) else f"{found[above[name]]} {text}"

    for name in _ordered(case, above):
        kind = known[name].kind.value
        told = key(name)
        seen[kind, told] += 1
        number = seen[kind, told]
        found[name] = f"{kind}-{_digest(f'{kind} {told} {number}')}"
    return found


def digests_of(case: Case) -> dict[str, str]:
    """Identifier -> digest of text, findings, status and grade of every node."""
    return {each.id: _digest(f"{each.text}\n{each.note}\n{each.told}\n{each.grade}") for each in case.elements}


def _alone(element: Element) -> bool:
    """Whether a node is known by its text: it points at one file, which many nodes may share."""
    return bool(element.url) or element.kind.value in ("A", "J", "CSn")


def _above(case: Case) -> dict[str, str]:
    """Identifier -> the first node that refers to it, or that it challenges."""
    found: dict[str, str] = {}
    for each in case.elements:
        for name in (*each.supported_by, *each.in_context_of):
            found.setdefault(name, each.id)
    return found | {each.id: each.challenges for each in case.elements if each.challenges is not None}


def _ordered(case: Case, above: dict[str, str]) -> list[str]:
    """All identifiers, each behind the one above it, else in the order of the case."""
    done: dict[str, None] = {}
    for each in case.elements:
        path = [each.id]
        while path[-1] in above and above[path[-1]] not in done and above[path[-1]] not in path:
            path.append(above[path[-1]])
        done |= dict.fromkeys(reversed(path))
    return list(done)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]
