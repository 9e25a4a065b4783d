"""What a case claims about a requirement, and what speaks against such a claim."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from verifier.base.arrays import grouped
from verifier.base.numbers import interval_text, rounded
from verifier.checking.verdicts import Verdict, verdict_of
from verifier.evidence.declarations import Answer, Declarations
from verifier.evidence.documents import Document, of_kind
from verifier.evidence.rates.document import RateResult
from verifier.evidence.residual_risk.document import RiskResult
from verifier.evidence.triggers import TriggersResult
from verifier.study.points import Point
from verifier.study.results import RequirementResult, RunResult, Target


@dataclass(frozen=True, order=True)
class Claim:
    """That a requirement is met.

    Attributes:
        run: SHA-256 of the document of the run that says so.
        requirement, planner: which.
        point: number of the scenario in the document, from 0; None for all scenarios together.
    """

    run: str
    requirement: str
    planner: str
    point: int | None = None

    @property
    def about(self) -> tuple[str, str, str]:
        """Run, requirement and planner."""
        return self.run, self.requirement, self.planner

    def at(self, point: int) -> Claim:
        """The same about one scenario."""
        return replace(self, point=point)


@dataclass(frozen=True)
class Doubt:
    """What one look at the documents found.

    Attributes:
        kind: a name of `KINDS`.
        message: in words, with its numbers.
        claims: what it speaks against; never empty.
        remedy: what would remove it.
    """

    kind: str
    message: str
    claims: tuple[Claim, ...]
    remedy: str


def doubt(kind: str, message: str, claims: tuple[Claim, ...], remedy: str) -> Iterator[Doubt]:
    """The doubt, if there is anything for it to speak against."""
    if claims:
        yield Doubt(kind, message, claims, remedy)


@dataclass(frozen=True)
class Defeater(Doubt):
    """A doubt with a name: `D1`, `D2`, ... in the order in which they were found.

    Attributes:
        basis: claim -> what it is made from and found, see `basis_of`.
    """

    id: str
    basis: Mapping[Claim, str] = field(default_factory=dict, compare=False)

    @property
    def title(self) -> str:
        """What kind of doubt it is, for people."""
        return KINDS[self.kind]


def key_of(defeater: Defeater, claim: Claim) -> str:
    """By what people answer a defeater of a claim, the same in every build: its kind, and the requirement."""
    return f"{defeater.kind}/{claim.requirement}"


def basis_of(run: Document, claim: Claim) -> str:
    """What a doubt of a claim is about, whatever it says: the SHA-256 of the data, what is asked, and what was found
    in each scenario, as people read it. Spec and model may get words and requirements that change nothing of it."""
    result: RunResult = run.result
    asked = claim.requirement, claim.planner
    (requirement,) = (one for one in result.requirements if (one.name, one.planner) == asked)
    made = [file.sha256 for file in result.inputs if file.role == "confusion"]
    points = requirement.points if claim.point is None else requirement.points[claim.point : claim.point + 1]
    told = (
        f"{point.scenario}: {point.verdict.value}, {rounded(point.probability, up=None, digits=DIGITS)} in "
        f"{interval_text(*point.bounds(result.settings.verdict_from), DIGITS)}"
        for point in points
    )
    return "\n".join([*made, str(result.settings.set_), requirement.planner, requirement.question, *told])


def answers_to(defeaters: Iterable[Defeater], declared: Declarations) -> dict[str, Answer]:
    """Key -> how the doubts of that kind about a requirement stand: an answer is to what they say and are about."""
    messages: dict[str, list[str]] = {}
    for defeater in defeaters:
        for key, claims in grouped((key_of(defeater, claim), claim) for claim in defeater.claims).items():
            about = (defeater.basis[claim] for claim in claims if claim in defeater.basis)
            messages.setdefault(key, []).extend((defeater.message, *about))
    return {key: declared.answer(key, texts) for key, texts in messages.items()}


def open_doubts(defeaters: Iterable[Defeater], answers: Mapping[str, Answer]) -> tuple[Defeater, ...]:
    """The defeaters with those claims that nobody refuted or accepted; without those that have none left."""
    doubts = []
    for defeater in defeaters:
        states = {claim: answers[key_of(defeater, claim)].state for claim in defeater.claims}
        left = tuple(claim for claim, state in states.items() if state in ("open", "stale"))
        doubts += [replace(defeater, claims=left)] if left else []
    return tuple(doubts)


DIGITS = 6
KINDS: Mapping[str, str] = {
    "straddles_target": "the bounds straddle the target",
    "no_bounds": "the verdict does not allow for the data's uncertainty",
    "thin_columns": "too few items",
    "assumed_rates": "rates assumed where there are no items",
    "dependent_frames": "misses follow misses",
    "few_drives": "few drives",
    "no_false_positives": "false positives not modelled",
    "distance_ignored": "distances are ignored",
    "policy_sensitive": "another policy gives another verdict",
    "one_engine": "the two engines are less independent than elsewhere",
    "rounded": "transition probabilities were rounded",
    "endless": "runs never end",
    "scenarios_left_out": "environments are left out",
    "vacuous": "the check says nothing about the system",
    "stale": "the data are not those of the result",
    "field": "the field contradicts it",
    "field_rate": "the field contradicts what is said per hour",
    "trained_on_tests": "the detector was trained on test data",
}
"""Kind of doubt -> what it says."""
PER_HOUR = ("field_rate",)
"""Kinds that say nothing against a requirement, only against its rate and risk."""


def is_rate_of(rate: Document, run: Document) -> bool:
    """Whether a rate or a risk was made from the result of this run."""
    made: RateResult | RiskResult | TriggersResult = rate.result
    return any(rate_input.role == "result" and rate_input.sha256 == run.sha256 for rate_input in made.inputs)


def claimed(run: Document, documents: Sequence[Document] = ()) -> Iterator[tuple[Claim, RequirementResult]]:
    """The claim about all scenarios of every requirement that has a target, or whose rate one of the documents
    compares with an acceptance criterion; and what the run says about it."""
    rated = {
        (document.result.requirement, document.result.planner)
        for document in of_kind(documents, "rate")
        if document.result.acceptance is not None and is_rate_of(document, run)
    }
    rated |= {
        (hazard.requirement, hazard.planner)
        for document in of_kind(documents, "risk")
        if is_rate_of(document, run)
        for hazard in document.result.hazards
        if document.result.accepted is not None or hazard.accepted is not None
    }
    for requirement in run.result.requirements:
        if requirement.target is not None or (requirement.name, requirement.planner) in rated:
            yield Claim(run.sha256, requirement.name, requirement.planner), requirement


def claims_on(
    run: Document,
    documents: Sequence[Document],
    *,
    perceived: bool = False,
    among: Set[tuple[str, str, int]] | None = None,
) -> tuple[Claim, ...]:
    """A claim for every requirement of which something is claimed, see `claimed`.

    Args:
        perceived: leave out scenarios in which no prediction can matter: the probability is the same whatever the
            detector predicts. What speaks against the matrices does not speak against these.
        among: only these scenarios, each by requirement, planner and number; None for all.
    """
    claims = []
    for claim, requirement in claimed(run, documents):
        open_points = [
            k
            for k, point in enumerate(requirement.points)
            if not (perceived and point.whatever_predicted is not None)
            and (among is None or (claim.requirement, claim.planner, k) in among)
        ]
        if len(open_points) == len(requirement.points):
            claims.append(claim)
        else:
            claims += map(claim.at, open_points)
    return tuple(claims)


def confirmed(point: Point, target: Target | None) -> bool:
    """Whether the confidence bounds of a scenario, where it has any, show by themselves that the target is met."""
    if point.uncertainty is None or target is None:
        return False
    return verdict_of(*point.bounds("bounds"), target.comparison, target.probability) is Verdict.SATISFIED
