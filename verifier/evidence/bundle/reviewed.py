"""How the findings of an assessor stand about the case as it is now, and where they are shown."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from verifier.evidence.case import Case
from verifier.evidence.case.anchors import anchors_of, digests_of
from verifier.evidence.review import ReviewFinding
from verifier.telling.blocks import Paragraph, Section, Table

REOPENED, GONE = "reopened", "its node is gone"


@dataclass(frozen=True)
class Reviewed:
    """A finding, the node that it is about, if that is there, and how it stands."""

    finding: ReviewFinding
    id: str | None
    state: str

    @property
    def told(self) -> str:
        """For people: `open (major, A. B., 2026-05-04): text`."""
        one = self.finding
        return f"{self.state} ({one.grade}, {one.by}, {one.dated}): {one.text}"

    @property
    def is_open(self) -> bool:
        """Whether somebody has to look at it."""
        return self.state in ("open", REOPENED, GONE)


def reviewed(case: Case, findings: Sequence[ReviewFinding]) -> tuple[Reviewed, ...]:
    """How each finding stands about a case as it is now."""
    at, digests = {anchor: name for name, anchor in anchors_of(case).items()}, digests_of(case)
    found = []
    for each in findings:
        name = at.get(each.node)
        same = name is not None and each.content == digests[name]
        state = GONE if name is None else each.state if same or each.state == "open" else REOPENED
        found.append(Reviewed(each, name, state))
    return tuple(found)


def with_review(case: Case, findings: Sequence[Reviewed]) -> Case:
    """The case with its findings at their nodes; those whose node is gone stand at the top goal."""
    said: dict[str, list[str]] = {}
    for each in findings:
        said.setdefault(each.id or case.top.id, []).append(f"Review finding {each.told}")
    elements = (replace(each, review=tuple(said.get(each.id, ()))) for each in case.elements)
    return replace(case, elements=tuple(elements)) if findings else case


def review_notes(findings: Sequence[Reviewed]) -> list[str]:
    """What page one says: the findings that somebody has to look at."""
    return [f"Review finding at {each.id or each.finding.node}, {each.told}" for each in findings if each.is_open]


def review_section(findings: Sequence[Reviewed]) -> Section:
    """All findings as a section of the report."""
    header = ("node", "state", "class", "finding", "by", "date")
    rows = tuple(
        (each.id or each.finding.node, each.state, each.finding.grade, each.finding.text, each.finding.by,
         str(each.finding.dated))
        for each in findings
    )  # fmt: skip
    said = "Findings of an assessor about nodes of the assurance case. None of them changes a status by itself."
    return Section("Review findings", (Paragraph(said), Table("Review", header, rows)), id="review")
