"""A case in the making: identifiers in order, elements as they become known, solutions shared between goals."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from verifier.base.arrays import grouped
from verifier.base.words import clipped, counted, some_of
from verifier.evidence.case.elements import Case, Element, Kind
from verifier.evidence.context import CaseContext
from verifier.evidence.declarations import Answer, Evidence
from verifier.evidence.defeaters.values import PER_HOUR, Claim, Defeater, Doubt, answers_to, key_of
from verifier.evidence.documents import Document, of_kind
from verifier.evidence.status import Grade, Ground, Status, status_over, weakest, worst_status

_MADE_BY: Mapping[str, str] = {
    "run": "Result of model checking (verify run)",
    "rate": "Rate of unwanted events (verify evidence rate)",
    "risk": "Residual risk (verify evidence risk)",
    "triggers": "Triggering conditions (verify evidence triggers)",
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
    """Elements so far; what it is made from is as for `verifier.evidence.case.building.build_case`."""

    def __init__(
        self,
        documents: Sequence[Document],
        stated: CaseContext,
        defeaters: Sequence[Defeater],
        files: Mapping[str, str],
        unverified: Mapping[str, str],
        proven: Mapping[Claim, tuple[str, ...]],
        sensitivities: Sequence[Doubt],
    ) -> None:
        self.documents = list({document.sha256: document for document in documents}.values())
        self.runs, self.stated, self._declared = of_kind(documents, "run"), stated, stated.declared
        self._answers = answers_to(defeaters, stated.declared)
        self.unverified, self.proven, self.sensitivities = unverified, proven, sensitivities
        self._paths = {digest: path for path, digest in sorted(files.items(), reverse=True)}
        self._against = grouped((claim, defeater) for defeater in defeaters for claim in defeater.claims)
        self._counts: Counter[Kind] = Counter()
        self._elements: dict[str, Element | None] = {}
        self._shared: dict[tuple[Kind, str], str] = {}
        self._grounds: dict[tuple[str, ...], Ground] = {}
        self.goals: dict[Claim, str] = {}
        self.covers: dict[str, tuple[str, ...]] = {}
        self.duties: dict[str, str] = {}

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

    def add(self, kind: Kind, text: str, note: str = "", supported_by: Sequence[str] = (), **more: Any) -> str:
        """An element of a kind; its identifier is the next one."""
        return self.put(Element(self.name(kind), kind, text, note, tuple(supported_by), **more))

    def context(self, text: str, note: str = "", amlas: str = "", url: str = "") -> str:
        """A context."""
        return self.add(Kind.CONTEXT, text, note, amlas=amlas, url=url)

    def goal(
        self, identifier: str, text: str, note: str, supported_by: Sequence[str], contexts: Sequence[str], **more: Any
    ) -> str:
        """The goal of an identifier that was given."""
        return self.put(Element(identifier, Kind.GOAL, text, note, tuple(supported_by), tuple(contexts), **more))

    def strategy(
        self, name: str, text: str, goals: Sequence[str], scenarios: bool = False, grounds: Sequence[str] = ()
    ) -> None:
        """A strategy over goals, `scenarios` as for `over`; undeveloped where there are none."""
        whole = self.over(goals, scenarios=scenarios)
        if not goals:
            whole = {"status": Status.UNDEVELOPED, "grade": Grade.UNTESTED, "undeveloped": True}
        note = "" if goals else "No requirement has a target"
        self.put(Element(name, Kind.STRATEGY, text, note, tuple(goals), tuple(grounds), **whole))

    def solution(self, document: Document, kind: Kind = Kind.SOLUTION) -> str:
        """The solution, or counter solution, that points at a document; the same one every time."""
        amlas = "Stage 5, test results [Z]" if document.kind == "confusion" else ""
        text = f"{_MADE_BY[document.kind]}: {clipped(self.path(document))}"
        text += ", not verified here" if document.sha256 in self.unverified else ""
        url, note = self.url_of(document.sha256), f"SHA-256 {document.sha256}"
        return self._once(document.sha256, kind, text, note, amlas=amlas, url=url)

    def _once(self, key: str, kind: Kind, text: str, note: str, **more: str) -> str:
        """An element of a kind; the same one every time that the key is the same."""
        if (kind, key) not in self._shared:
            self._shared[kind, key] = self.add(kind, text, note, **more)
        return self._shared[kind, key]

    def ground(
        self,
        key: tuple[str, ...],
        text: str,
        note: str,
        grade: Grade = Grade.UNTESTED,
        against: Sequence[Defeater] = (),
        claim: str = "",
    ) -> Ground:
        """The assumption of a key, with its grade; the same one every time. One that is at best declared, or that
        something speaks against, does not hold. Documents that are given for `claim` show what is not tested."""
        if key not in self._grounds:
            shown = () if self._declared.faulty(claim) else self._declared.shown(claim)
            if grade in (Grade.DECLARED, Grade.UNTESTED) and shown:
                grade, note = weakest(evidence.grade for evidence in shown), f"{note}. Shown by documents"
            identifier = self.add(Kind.ASSUMPTION, text, note, defeated=bool(against), grade=grade)
            self.challenge(identifier, against)
            holds = grade not in (Grade.DECLARED, Grade.UNTESTED) and not against
            self._grounds[key] = Ground(identifier, holds, grade, tuple(evidence.name for evidence in shown))
        return self._grounds[key]

    def shown_by(self, grounds: Iterable[Ground]) -> tuple[str, ...]:
        """The solutions that show grounds, each once."""
        names = dict.fromkeys(name for ground in grounds for name in ground.documents)
        return tuple(self._document(self._declared.evidence[name]) for name in names)

    def verification(self, document: Document) -> tuple[Ground, ...]:
        """That a result is what its inputs give, where nobody made it again here."""
        if document.sha256 not in self.unverified:
            return ()
        text = f"{clipped(self.path(document))} is what its inputs give"
        note = f"Not verified here: {clipped(self.unverified[document.sha256], 300)}"
        return (self.ground(("verified", document.sha256), text, note),)

    def standing(self, status: Status, grounds: Sequence[Ground], *grades: Grade) -> dict[str, Any]:
        """Status, grade and conditions, for an element, of what is supported by itself and rests on grounds."""
        rests_on = tuple(dict.fromkeys(ground.id for ground in grounds if not ground.holds))
        whole = worst_status(status, *([Status.CONDITIONAL] if rests_on else []))
        grade = weakest([*grades, *(ground.grade for ground in grounds)])
        return {"status": whole, "grade": grade, "rests_on": rests_on if whole is not Status.SUPPORTED else ()}

    def over(self, names: Iterable[str], *own: Status, scenarios: bool = False) -> dict[str, Any]:
        """As `standing`, of what rests on goals that have been put; `own` is what makes it worse beside them.

        With `scenarios` the goals are of one requirement: those that are vacuous count only where all are.
        """
        parts = [part for name in names if (part := self._elements[name]) is not None]
        statuses = [part.status for part in parts if part.status is not None]
        status = worst_status(status_over(statuses) if scenarios else worst_status(*statuses), *own)
        count = [part for part in parts if not scenarios or part.status is not Status.VACUOUS] or parts
        grade = weakest(part.grade for part in count if part.grade is not None)
        rests_on = tuple(dict.fromkeys(name for part in count for name in part.rests_on))
        return {"status": status, "grade": grade, "rests_on": rests_on if status is not Status.SUPPORTED else ()}

    def path(self, document: Document) -> str:
        """Where a document lies; its name where that is not known."""
        return self._paths.get(document.sha256, document.name)

    def url_of(self, sha256: str) -> str:
        """A relative reference to the file with a hash; empty where it is not among the files."""
        path = self._paths.get(sha256)
        return "" if path is None else quote(path)

    def against(self, claim: Claim, *, per_hour: bool = False) -> list[Defeater]:
        """The defeaters of exactly this claim that nobody refuted or accepted; with those of its rate `per_hour`."""
        mine = [defeater for defeater in self._against.get(claim, []) if self._defeats(defeater, claim)]
        return [defeater for defeater in mine if per_hour or defeater.kind not in PER_HOUR]

    def _defeats(self, defeater: Defeater, claim: Claim) -> bool:
        return self._answers[key_of(defeater, claim)].state in ("open", "stale")

    def _answered(self, claim: Claim, state: str) -> list[tuple[Defeater, Answer]]:
        answers = [(defeater, self._answers[key_of(defeater, claim)]) for defeater in self._against.get(claim, [])]
        return [(defeater, answer) for defeater, answer in answers if answer.state == state]

    def residual(self, claim: Claim) -> list[Ground]:
        """The doubts of exactly this claim that somebody accepted: it stands on condition of them."""
        return [
            self.ground(
                ("residual", defeater.id, answer.digest),
                f"Residual doubt {defeater.id}, {defeater.title}: {defeater.message}",
                clipped(answer.told, 600),
                Grade.DECLARED,
            )
            for defeater, answer in self._answered(claim, "accepted")
        ]

    def refuted(self, identifier: str, claim: Claim) -> None:
        """Counter goals against an element that are defeated by evidence themselves."""
        for defeater, answer in self._answered(claim, "refuted"):
            counter = self.name(Kind.COUNTER_GOAL)
            text = f"{identifier} is not shown: {defeater.title} ({defeater.id})"
            doubt = (self._doubt(defeater),)
            self.put(Element(counter, Kind.COUNTER_GOAL, text, "", doubt, challenges=identifier, defeated=True))
            assert answer.proof is not None
            kind, proof = Kind.COUNTER_SOLUTION, answer.proof
            text, note = f"{counter} is refuted: {clipped(proof.told, 300)}", clipped(answer.told, 600)
            note += f". SHA-256 {proof.sha256}"
            self.add(kind, text, note, challenges=counter, url=self.url_of(proof.sha256))

    def grades(self, claim: Claim) -> list[Grade]:
        """Of the evidence by which doubts of exactly this claim are refuted."""
        return [answer.proof.grade for _, answer in self._answered(claim, "refuted") if answer.proof is not None]

    def person_goal(
        self,
        text: str,
        note: str,
        duty: str,
        amlas: str,
        named: bool,
        more: Sequence[str] = (),
        doubts: Sequence[str] = (),
    ) -> str:
        """A goal that no computation shows: supported by documents, defeated by those that are not what they were,
        else undeveloped, whoever is `named`.

        Args:
            more: solutions beside the documents, which support it as well.
            doubts: what defeats it, whatever the documents say.
        """
        faulty, shown = [f"evidence {name}" for name in self._declared.faulty(duty)], self._declared.shown(duty)
        faulty += [f"of what it was trained on, {some_of(doubts, 8)}"] if doubts else []
        solutions = (*more, *map(self._document, shown))
        grade = weakest([evidence.grade for evidence in shown] or [Grade.DOCUMENTED if more else Grade.UNTESTED])
        if not solutions and (named or any(duty in evidence.claims for evidence in self._declared.evidence.values())):
            grade = Grade.DECLARED
        status = Status.DEFEATED if faulty else Status.SUPPORTED if solutions else Status.UNDEVELOPED
        stands = {"defeated": bool(faulty), "status": status, "grade": grade}
        identifier = self.add(Kind.GOAL, text, note, solutions, undeveloped=not solutions, amlas=amlas, **stands)
        self.duties[duty] = identifier
        for fault in faulty:
            said = f"{identifier} is not shown: {clipped(fault, 400)}"
            self.add(Kind.COUNTER_GOAL, said, challenges=identifier)
        return identifier

    def _document(self, proof: Evidence) -> str:
        limits = f"; limits: {proof.limits}" if proof.limits else ""
        here = "" if proof.copied else "; the file is not here"
        note = f"SHA-256 {proof.sha256}{clipped(limits, 300)}; {proof.grade.value}{here}"
        text, url = clipped(proof.told, 400), self.url_of(proof.sha256)
        return self._once(f"evidence {proof.name}", Kind.SOLUTION, text, note, url=url)

    def listed(self, name: str, sha256: str) -> str:
        """The solution that points at a file that people wrote."""
        return self.add(Kind.SOLUTION, clipped(name), f"SHA-256 {sha256}", url=self.url_of(sha256))

    def of_kind(self, run: Document, kind: str) -> list[Defeater]:
        """The defeaters of a kind that speak against claims of a run."""
        defeaters = [one for claim, listed in self._against.items() if claim.run == run.sha256 for one in listed]
        mine = (defeater for defeater in dict.fromkeys(defeaters) if defeater.kind == kind)
        return [defeater for defeater in mine if any(self._defeats(defeater, claim) for claim in defeater.claims)]

    def touching(self, claim: Claim) -> list[Defeater]:
        """The defeaters of a claim about all scenarios, and of those about single ones."""
        about = [one for one in self._against if one.about == claim.about]
        return list(dict.fromkeys(defeater for one in about for defeater in self.against(one, per_hour=True)))

    def challenge(self, identifier: str, defeaters: Sequence[Defeater]) -> None:
        """A counter goal against an element, with a counter solution for each defeater."""
        if not defeaters:
            return
        counter = self.name(Kind.COUNTER_GOAL)
        kinds = list(dict.fromkeys(f"{defeater.title} ({defeater.id})" for defeater in defeaters))
        text = f"{identifier} is not shown: {some_of(kinds, 8)}"
        doubts = tuple(map(self._doubt, defeaters))
        self.put(Element(counter, Kind.COUNTER_GOAL, text, "", doubts, challenges=identifier))

    def refute(self, identifier: str, why: str, document: Document, more: Sequence[str] = ()) -> None:
        """A counter goal against an element, with a document, and more, as its counter solutions."""
        counter = self.name(Kind.COUNTER_GOAL)
        solutions = (self.solution(document, Kind.COUNTER_SOLUTION), *more)
        text = f"{identifier} is false: {why}"
        self.put(Element(counter, Kind.COUNTER_GOAL, text, "", solutions, challenges=identifier))

    def proofs(self, claim: Claim, kind: Kind) -> tuple[str, ...]:
        """The element that points at the certificates of a scenario, if there are any; scenarios may share them."""
        paths = self.proven.get(claim, ())
        if paths and (kind, paths[0]) not in self._shared:
            pattern = f"{'_'.join(paths[0].split('_')[:2])}_*"
            self._shared[kind, paths[0]] = self.certificates(paths, pattern, kind)
        return (self._shared[kind, paths[0]],) if paths else ()

    def certificates(self, paths: tuple[str, ...], pattern: str, kind: Kind = Kind.SOLUTION) -> str:
        """The element that points at some certificates."""
        note = "Proven again by verify evidence check, and by its kernel without the program"
        text = f"{counted(len(paths), 'certificate')}: {pattern}"
        identifier = self.add(kind, text, note, url=quote(paths[0]))
        self.covers[identifier] = paths
        return identifier

    def _doubt(self, defeater: Defeater) -> str:
        answers = {key: self._answers[key] for key in (key_of(defeater, claim) for claim in defeater.claims)}
        told = some_of([f"{clipped(key)} (doubt {answer.digest}, {answer.told})" for key, answer in answers.items()])
        note = f"Would be removed by {defeater.remedy}. To answer it: {told}"
        return self._once(defeater.id, Kind.COUNTER_SOLUTION, f"{defeater.id}: {defeater.message}", note)

    def case(self, title: str) -> Case:
        """The case, once every identifier has its element."""
        elements = tuple(element for element in self._elements.values() if element is not None)
        return Case(title, elements, dict(self.goals), self.covers, self.duties)


def undeveloped(draft: Draft, text: str, note: str) -> str:
    """A goal that nothing supports yet."""
    status = Status.UNDEVELOPED
    return draft.add(Kind.GOAL, text, note, undeveloped=True, status=status, grade=Grade.UNTESTED)
