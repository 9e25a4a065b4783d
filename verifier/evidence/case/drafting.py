"""A case in the making: identifiers in order, elements as they become known, solutions shared between goals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any
from urllib.parse import quote

from verifier.base.words import name_text, some_of
from verifier.evidence.case.elements import Case, Element, Kind
from verifier.evidence.case.status import Grade, Ground, Status, status_over, weakest, worst_status
from verifier.evidence.defeaters.values import Claim, Defeater, Doubt
from verifier.evidence.documents import Document

_MADE_BY: Mapping[str, str] = {
    "run": "Result of model checking (verify run)",
    "rate": "Rate of unwanted events (verify evidence rate)",
    "confusion": "Test results by distance (confusion matrices)",
    "explain": "How it fails (verify explain)",
    "require": "What it asks of the detector (verify require)",
    "compare": "Comparison (verify compare)",
    "collision": "Collision map (verify collision)",
    "trade_offs": "Trade-off curves (verify closed-loop)",
    "curves": "Curves (verify robroc)",
    "assess": "Robustness assessment (verify assess)",
    "mutate": "Mutated images (verify mutate)",
}


class Draft:
    """Elements so far.

    Args:
        files: path -> SHA-256 of the files that solutions can point at.
        defeaters: of the case.
        unverified: SHA-256 of a result -> why its numbers are not made again here.
        proven: the claims about single scenarios whose probability certificates prove.
        sensitivities: where weaker choices give other verdicts.
    """

    def __init__(
        self,
        files: Mapping[str, str],
        defeaters: Sequence[Defeater],
        unverified: Mapping[str, str],
        proven: Set[Claim],
        sensitivities: Sequence[Doubt],
    ) -> None:
        self.unverified, self.proven, self.sensitivities = unverified, proven, sensitivities
        self._paths = {digest: path for path, digest in sorted(files.items(), reverse=True)}
        self._against: dict[Claim, list[Defeater]] = {}
        for each in defeaters:
            for claim in each.claims:
                self._against.setdefault(claim, []).append(each)
        self._counts: Counter[Kind] = Counter()
        self._elements: dict[str, Element | None] = {}
        self._shared: dict[tuple[Kind, str], str] = {}
        self._grounds: dict[tuple[str, ...], Ground] = {}
        self.goals: dict[Claim, str] = {}

    def name(self, kind: Kind) -> str:
        """The next identifier of a kind; it takes its place among the elements now."""
        self._counts[kind] += 1
        identifier = f"{kind.value}{self._counts[kind]}"
        self._elements[identifier] = None
        return identifier

    def put(self, element: Element) -> str:
        """The element of an identifier that was given."""
        self._elements[element.id] = element
        return element.id

    def context(self, text: str, note: str = "", amlas: str = "", url: str = "") -> str:
        """A context."""
        return self.put(Element(self.name(Kind.CONTEXT), Kind.CONTEXT, text, note, amlas=amlas, url=url))

    def solution(self, document: Document, kind: Kind = Kind.SOLUTION) -> str:
        """The solution, or counter solution, that points at a document; the same one every time."""
        found = self._shared.get((kind, document.sha256))
        if found is None:
            amlas = "Stage 5, test results [Z]" if document.kind == "confusion" else ""
            found = self.put(
                Element(
                    self.name(kind),
                    kind,
                    f"{_MADE_BY[document.kind]}: {name_text(self.path(document))}"
                    f"{', not verified here' if document.sha256 in self.unverified else ''}",
                    f"SHA-256 {document.sha256}",
                    amlas=amlas,
                    url=self.url(document),
                )
            )
            self._shared[kind, document.sha256] = found
        return found

    def ground(
        self,
        key: tuple[str, ...],
        text: str,
        note: str,
        grade: Grade = Grade.UNTESTED,
        against: Sequence[Defeater] = (),
    ) -> Ground:
        """The assumption of a key, with its grade; the same one every time. One that is at best declared, or that
        something speaks against, does not hold."""
        if key not in self._grounds:
            identifier = self.name(Kind.ASSUMPTION)
            self.put(Element(identifier, Kind.ASSUMPTION, text, note, defeated=bool(against), grade=grade))
            self.challenge(identifier, against)
            holds = grade not in (Grade.DECLARED, Grade.UNTESTED) and not against
            self._grounds[key] = Ground(identifier, holds, grade)
        return self._grounds[key]

    def verification(self, document: Document) -> tuple[Ground, ...]:
        """That a result is what its inputs give, where nobody made it again here."""
        if document.sha256 not in self.unverified:
            return ()
        text = f"{name_text(self.path(document))} is what its inputs give"
        note = f"Not verified here: {name_text(self.unverified[document.sha256], 300)}"
        return (self.ground(("verified", document.sha256), text, note),)

    def standing(self, status: Status, grounds: Sequence[Ground], *grades: Grade) -> dict[str, Any]:
        """Status, grade and conditions, for an element, of what is supported by itself and rests on grounds."""
        rests_on = tuple(dict.fromkeys(each.id for each in grounds if not each.holds))
        whole = worst_status(status, *([Status.CONDITIONAL] if rests_on else []))
        grade = weakest([*grades, *(each.grade for each in grounds)])
        return {"status": whole, "grade": grade, "rests_on": rests_on if whole is not Status.SUPPORTED else ()}

    def over(self, names: Iterable[str], *own: Status, scenarios: bool = False) -> dict[str, Any]:
        """As `standing`, of what rests on goals that have been put; `own` is what makes it worse beside them.

        With `scenarios` the goals are of one requirement: those that are vacuous count only where all are.
        """
        parts = [part for name in names if (part := self._elements[name]) is not None]
        found = [part.status for part in parts if part.status is not None]
        status = worst_status(status_over(found) if scenarios else worst_status(*found), *own)
        count = [part for part in parts if not scenarios or part.status is not Status.VACUOUS] or parts
        grade = weakest(part.grade for part in count if part.grade is not None)
        rests_on = tuple(dict.fromkeys(name for part in count for name in part.rests_on))
        return {"status": status, "grade": grade, "rests_on": rests_on if status is not Status.SUPPORTED else ()}

    def path(self, document: Document) -> str:
        """Where a document lies; its name where that is not known."""
        return self._paths.get(document.sha256, document.name)

    def url(self, document: Document) -> str:
        """A relative reference to it; empty where it is not among the files."""
        path = self._paths.get(document.sha256)
        return "" if path is None else quote(path)

    def against(self, claim: Claim) -> list[Defeater]:
        """The defeaters of exactly this claim."""
        return self._against.get(claim, [])

    def of_kind(self, run: Document, kind: str) -> list[Defeater]:
        """The defeaters of a kind that speak against claims of a run."""
        found = [each for claim in self._against if claim.run == run.sha256 for each in self._against[claim]]
        return [each for each in dict.fromkeys(found) if each.kind == kind]

    def touching(self, claim: Claim) -> list[Defeater]:
        """The defeaters of a claim about all scenarios, and of those about single ones."""
        key = (claim.run, claim.requirement, claim.planner)
        found = [each for one in self._against for each in self._against[one] if key == _about(one)]
        return list(dict.fromkeys(found))

    def challenge(self, identifier: str, defeaters: Sequence[Defeater]) -> None:
        """A counter goal against an element, with a counter solution for each defeater."""
        if not defeaters:
            return
        counter = self.name(Kind.COUNTER_GOAL)
        kinds = list(dict.fromkeys(f"{each.title} ({each.id})" for each in defeaters))
        self.put(
            Element(
                counter,
                Kind.COUNTER_GOAL,
                f"{identifier} is not shown: {some_of(kinds, 8)}",
                supported_by=tuple(self._doubt(each) for each in defeaters),
                challenges=identifier,
            )
        )

    def refute(self, identifier: str, why: str, document: Document) -> None:
        """A counter goal against an element, with a document as its counter solution."""
        counter = self.name(Kind.COUNTER_GOAL)
        solution = self.solution(document, Kind.COUNTER_SOLUTION)
        self.put(
            Element(
                counter, Kind.COUNTER_GOAL, f"{identifier} is false: {why}", "", (solution,), challenges=identifier
            )
        )

    def _doubt(self, defeater: Defeater) -> str:
        key = (Kind.COUNTER_SOLUTION, defeater.id)
        if key not in self._shared:
            self._shared[key] = self.put(
                Element(
                    self.name(Kind.COUNTER_SOLUTION),
                    Kind.COUNTER_SOLUTION,
                    f"{defeater.id}: {defeater.message}",
                    f"Would be removed by {defeater.remedy}",
                )
            )
        return self._shared[key]

    def case(self, title: str) -> Case:
        """The case, once every identifier has its element."""
        return Case(title, tuple(each for each in self._elements.values() if each is not None), dict(self.goals))


def _about(claim: Claim) -> tuple[str, str, str]:
    return claim.run, claim.requirement, claim.planner


def undeveloped(draft: Draft, text: str, note: str = "", amlas: str = "", grade: Grade = Grade.UNTESTED) -> str:
    """A goal that nothing supports yet."""
    name = draft.name(Kind.GOAL)
    status = Status.UNDEVELOPED
    return draft.put(Element(name, Kind.GOAL, text, note, undeveloped=True, status=status, grade=grade, amlas=amlas))
