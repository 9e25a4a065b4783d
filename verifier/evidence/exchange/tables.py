"""An assurance case as two tables, nodes and links, for spreadsheets and editors that import these."""

from verifier.base.files import csv_text
from verifier.evidence.case import Case
from verifier.evidence.case.anchors import anchors_of, digests_of
from verifier.evidence.case.modules import modules_of

NODES = (
    "id", "kind", "module", "text", "note", "status", "conditional_on", "grade", "undeveloped", "defeated", "amlas",
    "file", "review", "anchor", "content",
)  # fmt: skip
LINKS = ("from", "to", "kind")


def nodes_text(case: Case) -> str:
    """A row for each element; `anchor` and `content` are what findings of a review name."""
    anchors, digests = anchors_of(case), digests_of(case)
    rows = [
        {
            "id": each.id,
            "kind": each.kind.name.lower().replace("_", " "),
            "module": module,
            "text": each.text,
            "note": each.note,
            "status": "" if each.status is None else each.status.value,
            "conditional_on": " ".join(each.rests_on),
            "grade": "" if each.grade is None else each.grade.value,
            "undeveloped": "yes" if each.undeveloped else "no",
            "defeated": "yes" if each.defeated else "no",
            "amlas": each.amlas,
            "file": each.url,
            "review": "; ".join(each.review),
            "anchor": anchors[each.id],
            "content": digests[each.id],
        }
        for module, elements in modules_of(case).items()
        for each in elements
    ]
    return csv_text(rows, NODES)


def links_text(case: Case) -> str:
    """A row for each relation: from what is supported, stands in a context, or challenges."""
    pairs = [
        (each.id, name, kind)
        for each in case.elements
        for kind, names in (
            ("supported by", each.supported_by),
            ("in context of", each.in_context_of),
            ("challenges", () if each.challenges is None else (each.challenges,)),
        )
        for name in names
    ]
    return csv_text([dict(zip(LINKS, pair, strict=True)) for pair in pairs], LINKS)
