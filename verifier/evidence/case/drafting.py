"""A case in the making: identifiers in order, elements as they become known, solutions shared between goals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from verifier.base.words import name_text, some_of
from verifier.evidence.case.elements import Case, Element, Kind, Status
from verifier.evidence.defeaters.values import Claim, Defeater
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
    """

    def __init__(self, files: Mapping[str, str], defeaters: Sequence[Defeater]) -> None:
        self._paths = {digest: path for path, digest in sorted(files.items(), reverse=True)}
        self._against: dict[Claim, list[Defeater]] = {}
        for each in defeaters:
            for claim in each.claims:
                self._against.setdefault(claim, []).append(each)
        self._counts: Counter[Kind] = Counter()
        self._elements: dict[str, Element | None] = {}
        self._shared: dict[tuple[Kind, str], str] = {}
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
                    f"{_MADE_BY[document.kind]}: {name_text(self.path(document))}",
                    f"SHA-256 {document.sha256}",
                    amlas=amlas,
                    url=self.url(document),
                )
            )
            self._shared[kind, document.sha256] = found
        return found

    def condition(self, text: str | None) -> tuple[str, ...]:
        """The assumption that a verdict rests on, from its condition `if ...`; the same one every time."""
        if text is None:
            return ()
        key = (Kind.ASSUMPTION, text)
        if key not in self._shared:
            claim = text.removeprefix("if ")
            note = "A condition of verdicts: nothing in this evidence shows it"
            self._shared[key] = self.put(
                Element(self.name(Kind.ASSUMPTION), Kind.ASSUMPTION, claim[:1].upper() + claim[1:], note)
            )
        return (self._shared[key],)

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

    def status(self, identifier: str) -> Status:
        """Of a goal or strategy that has been put."""
        element = self._elements[identifier]
        assert element is not None
        assert element.status is not None
        return element.status

    def case(self, title: str) -> Case:
        """The case, once every identifier has its element."""
        return Case(title, tuple(each for each in self._elements.values() if each is not None), dict(self.goals))


def _about(claim: Claim) -> tuple[str, str, str]:
    return claim.run, claim.requirement, claim.planner


def undeveloped(draft: Draft, text: str, note: str = "", amlas: str = "") -> str:
    """A goal that nothing supports yet."""
    return draft.put(
        Element(
            draft.name(Kind.GOAL), Kind.GOAL, text, note, undeveloped=True, status=Status.UNDEVELOPED, amlas=amlas
        )
    )
