"""Two bundles compared: every claim before and after, what it falls by, and whether it stands again.

What changed between two bundles, told once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from verifier.base.arrays import Floats
from verifier.base.documents import Sha256, Share
from verifier.base.errors import ExitCode
from verifier.base.numbers import number_text
from verifier.base.words import clipped, counted, listed, some_of
from verifier.checking.verdicts import SEVERITY, Verdict
from verifier.evidence.changes.impact import IMPACT, OF_PEOPLE, Change, ClaimKind, changes_between, reached
from verifier.evidence.changes.sides import Side, digest, side_of
from verifier.evidence.context import DUTIES
from verifier.evidence.settings import Domain
from verifier.evidence.status import Status, severity
from verifier.evidence.telling import CLAIM
from verifier.questions.compare.scores import drawn_probabilities
from verifier.study.case import Study
from verifier.telling.blocks import Block, Listing, Paragraph, Table

Relation: TypeAlias = Literal["unaffected", "equal", "better", "worse", "doubtful", "new", "gone"]
NOTHING = "0" * 64
_SHOWN = ("documented", "declared", "undeveloped")
_STATUS = ("status", "grade", "conditional_on", "doubts")  # without identifiers, which move
_DOUBTFUL = ("conditional", "defeated", "inconclusive")
_MOVED: tuple[Relation, ...] = ("better", "worse", "doubtful")
_Key: TypeAlias = tuple[ClaimKind, str, str, str]
"""Kind, name for people, planner, and the requirement of the spec that it is about."""


@dataclass(frozen=True)
class BundleRecord:
    """One of the two: its name, the digest of its manifest, and the version of the program that built it."""

    name: str
    digest: Sha256
    verifier: str


@dataclass(frozen=True)
class Activity:
    """What people do again.

    Attributes:
        duty: whose documents show it.
        done_by: names of documents for it that the bundle before did not have.
    """

    text: str
    duty: str
    done_by: tuple[str, ...]


@dataclass(frozen=True)
class ChangeRecord:
    """One row of the impact table that applies.

    Attributes:
        what: each difference, in words.
        recompute: what the program does again.
        recomputed: whether the new bundle has it.
    """

    kind: Change
    changed: str
    what: tuple[str, ...]
    recompute: str
    recomputed: bool
    repeat: tuple[Activity, ...]


@dataclass(frozen=True)
class ClaimRecord:
    """One claim in both bundles.

    Attributes:
        kind, name: what is claimed, and of what: a requirement, a hazard, or empty.
        before, after: its status; empty where the bundle does not have it.
        relation: unaffected where equal inputs reach it, by their hash, what it rests on is equal, and no change
            makes it fall; equal where the outcome is.
        worse: probability that the requirement is met with less than before, by posterior draws; None where nothing
            is drawn, or nothing changed.
        reached_by: SHA-256 over what reaches it, before and after.
        falls_by: the changes by which it falls.
        stands_again: whether everything these ask for is in the new bundle, and its status is not worse.
    """

    kind: ClaimKind
    name: str
    planner: str
    before: str
    after: str
    relation: Relation
    worse: Share | None
    reached_by: tuple[Sha256, Sha256]
    falls_by: tuple[Change, ...]
    stands_again: bool


@dataclass(frozen=True, kw_only=True)
class DiffResult:
    """Result of `verify evidence diff`.

    Attributes:
        changes: rows of the impact table, in its order.
        open_: claims that do not stand again.
        findings_gone: of an assessor, whatever their state, that the new bundle does not have as they were.
    """

    schema: ClassVar[str] = "verifier.bundle_diff"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    old: BundleRecord
    new: BundleRecord
    changes: tuple[ChangeRecord, ...]
    claims: tuple[ClaimRecord, ...]
    open_: int
    findings_gone: tuple[str, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """Inconclusive where a claim does not stand again, or a finding is gone."""
        return ExitCode.INCONCLUSIVE if self.open_ or self.findings_gone else ExitCode.SATISFIED


@dataclass(frozen=True)
class _Stand:
    """A claim in one bundle: its status, what reaches it, what it rests on, and numbers of which less is better."""

    status: str
    reach: str
    rests_on: Any
    badness: tuple[float, ...]


def compare_bundles(old: str, new: str, odd: Domain = "widened") -> DiffResult:
    """What changed between two bundles, and what follows.

    Args:
        old, new: folders or archives.
        odd: what another text of the operational design domain is.

    Raises:
        InputError: one cannot be read, or a file is not what its manifest lists.
    """
    with side_of(old) as before, side_of(new) as after:
        texts = changes_between(before, after, odd)
        changes = tuple(_row(kind, what, before, after) for kind, what in texts.items())
        claims = _with_chances(list(_claims(before, after, changes)), before, after)
        first, second = (BundleRecord(side.name, side.digest, side.manifest.verifier) for side in (before, after))
        kept = {finding.about for finding in after.context.review[1]}
        gone = tuple(finding.about for finding in before.context.review[1] if finding.about not in kept)
    still = sum(not claim.stands_again for claim in claims)
    return DiffResult(old=first, new=second, changes=changes, claims=claims, open_=still, findings_gone=gone)


def _row(kind: Change, what: Sequence[str], old: Side, new: Side) -> ChangeRecord:
    row = IMPACT[kind]
    repeat = []
    for text, duty in row.repeat:
        known = old.shown(duty).values()  # under whatever name
        renewed = tuple(sorted(name for name, sha256 in new.shown(duty).items() if sha256 not in known))
        repeat.append(Activity(text, duty, renewed))
    same = (old.counts, old.sequences) == (new.counts, new.sequences)
    again = not (row.lost or (row.matrices and same))
    return ChangeRecord(kind, row.changed, tuple(what), row.recompute, again, tuple(repeat))


def _claims(old: Side, new: Side, changes: Sequence[ChangeRecord]) -> Iterator[ClaimRecord]:
    before, after = dict(_stands(old)), dict(_stands(new))
    said = old.requirements, new.requirements
    moved = {name for name in {**said[0], **said[1]} if said[0].get(name) != said[1].get(name)}
    for key in dict.fromkeys([*before, *after]):
        kind, name, planner, requirement = key
        mine, other = before.get(key), after.get(key)
        about = [change for change in changes if not IMPACT[change.kind].own or requirement in moved]
        rows = [change for change in about if mine and kind in IMPACT[change.kind].falls]
        reach = (mine.reach if mine else NOTHING, other.reach if other else NOTHING)
        yield ClaimRecord(
            kind,
            name,
            planner,
            mine.status if mine else "",
            other.status if other else "",
            _relation(mine, other, bool(rows)),
            None,
            reach,
            tuple(row.kind for row in rows),
            not (mine and other and other.badness[0] > mine.badness[0])
            and all(row.recomputed and all(one.done_by for one in row.repeat) for row in rows),
        )


def _relation(old: _Stand | None, new: _Stand | None, falls: bool) -> Relation:
    if old is None or new is None:
        return "new" if old is None else "gone"
    if old.rests_on == new.rests_on and old.status == new.status:
        return "unaffected" if old.reach == new.reach and not falls else "equal"
    if old.badness == new.badness:
        return "equal"
    if new.badness < old.badness:
        return "better"
    return "doubtful" if new.status in _DOUBTFUL and new.badness[1:] <= old.badness[1:] else "worse"


def _stands(side: Side) -> Iterator[tuple[_Key, _Stand]]:
    for (name, planner), row in side.rows.items():
        about = side.requirement_of(row)
        yield ("met", name, planner, about), _met(side, row, side.reach(about, name))
    for name, said in side.requirements.items():
        yield ("requirements", name, "", name), _by_people(side, "requirements", said)
    for (about, words), (verdict, upper, numbers) in side.per_hour.items():
        names = [about] if about else list(side.requirements)
        stated = side.reach_per_hour if about else str(side.context.triggers)
        reach = digest([stated, *(side.reach(name, name) for name in names)])
        bad = (float(SEVERITY.index(Verdict(verdict))), upper)
        kind: ClaimKind = "risk" if about else "triggers"
        yield (kind, f"{about}, {words}" if about else "", "", about), _Stand(verdict, reach, numbers, bad)
    for duty in OF_PEOPLE:
        yield (duty, "", "", ""), _by_people(side, duty, reached(side, duty))


def _met(side: Side, row: Mapping[str, str], reach: str) -> _Stand:
    """A requirement under a planner: by its status, then by its probability and the bound that faces the target; one
    that only a run from elsewhere has, by its status alone."""
    status, bad = {key: row[key] for key in _STATUS}, float(severity(Status(row["status"])))
    if not row["probability"]:
        return _Stand(row["status"], reach, status, (bad,))
    upper = row["target"].rsplit(" ", 2)[1].startswith("<")
    facing = row["bounds_upper" if upper else "bounds_lower"] or row["probability"]
    sign = 1 if upper else -1
    numbers = [sign * float(Fraction(name) if "/" in name else name) for name in (row["probability"], facing)]
    rests_on = [status, side.numbers_of(row["requirement"], row["planner"])]
    return _Stand(row["status"], reach, rests_on, (bad, *numbers))


def _by_people(side: Side, duty: ClaimKind, reach: Any) -> _Stand:
    """What people answer for: documented, declared where somebody is named, or undeveloped."""
    shown = side.shown(duty)
    status = "documented" if shown else "declared" if duty in side.context.responsible else "undeveloped"
    return _Stand(status, digest(reach), shown, (float(_SHOWN.index(status)),))


def _with_chances(claims: Sequence[ClaimRecord], old: Side, new: Side) -> tuple[ClaimRecord, ...]:
    """The same, with the probability that what moved is worse now; not of what now says something else."""
    said = old.requirements, new.requirements
    moved = [
        claim.kind == "met"
        and claim.relation in _MOVED
        and said[0].get(claim.name) == said[1].get(claim.name)
        and old.numbers_of(claim.name, claim.planner) != new.numbers_of(claim.name, claim.planner)
        for claim in claims
    ]
    chances = _chances_worse(old, new) if any(moved) else {}
    return tuple(
        replace(claim, worse=chances.get((claim.name, claim.planner))) if looked_at else claim
        for claim, looked_at in zip(claims, moved, strict=True)
    )


def _chances_worse(old: Side, new: Side) -> dict[tuple[str, str], float]:
    """Requirement and planner -> posterior probability that its worst scenario is worse now.

    Equal matrices are drawn alike in both, others independently. Requirements of means, and systems that decide, are
    left out.
    """
    same = old.files[old.request.matrices] == new.files[new.request.matrices]
    studies = [Study.of(side.inputs, side.request.options) for side in (old, new)]
    if any(study.data is None for study in studies):
        return {}
    count = min(study.data.draws for study in studies if study.data is not None)
    before, after = (_scores(study, count, 0 if same else k) for k, study in enumerate(studies))
    return {key: float(np.mean(after[key] < before[key])) for key in before if key in after}


def _scores(study: Study, count: int, shift: int) -> dict[tuple[str, str], Floats]:
    """(count,) worst over scenarios, larger being better, of every requirement and planner."""
    worst, settings = dict[tuple[str, str], Floats](), study.options.confidence
    assert study.data is not None
    assert settings is not None
    data, settings = replace(study.data, draws=count), replace(settings, seed=settings.seed + shift)
    for case in study.cases:
        if case.decides or case.study.inputs.frames > 1:
            continue
        for requirement, objective in zip(study.requirements, case.objectives, strict=True):
            if requirement.over_profile or requirement.target is None:
                continue
            sign = -1 if requirement.is_upper else 1
            parts = [(sign * part).min(axis=1) for part in drawn_probabilities(objective, data, settings)]
            key, scores = (requirement.name, case.planner.name), np.concatenate(parts)
            worst[key] = np.minimum(worst[key], scores) if key in worst else scores
    return worst


_DUTIES = {**DUTIES, "triggers": "that the list of triggering conditions is complete"}
_RELATIONS = {
    "unaffected": "unaffected: equal inputs reach it",
    "equal": "made again, equal",
    "doubtful": "newly doubtful",
    "new": "new",
    "gone": "no longer claimed",
}


def diff_blocks(result: DiffResult) -> Iterator[Block]:
    """What changed, every claim, and what has to be done."""
    sides = (f"{clipped(bundle.name)} ({bundle.digest[:16]}...)" for bundle in (result.old, result.new))
    yield Paragraph(" -> ".join(sides))
    if not result.changes:
        yield Paragraph("Nothing differs by which a claim falls.")
    else:
        states = {True: "in the new bundle", False: "open"}
        rows = tuple(
            (change.changed, some_of(list(change.what)), f"{change.recompute}: {states[change.recomputed]}")
            for change in result.changes
        )
        yield Table("What changed", ("change", "what", "to compute again"), rows)
    yield Table("Claims", ("claim", "before", "now", "compared", "falls by"), tuple(map(_claim_row, result.claims)))
    activities = dict.fromkeys(
        f"{one.text} ({_DUTIES[one.duty]}): "
        f"{f'done, {listed([*map(clipped, one.done_by)])}' if one.done_by else 'open, no new document'}"
        for change in result.changes
        for one in change.repeat
    )
    if activities:
        yield Paragraph("What people do again:", "lead")
        yield Listing(tuple(activities))
    if result.findings_gone:
        yield Paragraph("Review findings that the new bundle does not have, or not as they were:", "lead")
        yield Listing(tuple(map(clipped, result.findings_gone)))
    yield Paragraph(_whole(result), "lead")
    yield Paragraph("Files were compared with their manifests; whether a bundle holds is for verify evidence check.")


def _claim(claim: ClaimRecord) -> str:
    if claim.kind == "met":
        return f"{clipped(claim.name)} is met, planner {clipped(claim.planner)}"
    if claim.kind == "triggers":
        return CLAIM
    if claim.kind == "risk":
        return f"per hour: {clipped(claim.name)}"
    return f"{clipped(claim.name)}: {DUTIES[claim.kind]}" if claim.name else DUTIES[claim.kind]


def _claim_row(claim: ClaimRecord) -> tuple[str, ...]:
    told = _RELATIONS.get(claim.relation, claim.relation)
    told += "" if claim.worse is None else f"; worse with probability {number_text(claim.worse)}"
    by = listed([name.replace("_", " ") for name in claim.falls_by])
    falls = f"{by}{'; stands again' if claim.stands_again else ''}" if by else "-"
    return _claim(claim), claim.before or "-", claim.after or "-", told, falls


def _whole(result: DiffResult) -> str:
    fell = [claim.stands_again for claim in result.claims if claim.falls_by]
    lost = result.open_ - fell.count(False)
    said = "No claim falls."
    if fell:
        told = counted(len(fell), "claim falls", "claims fall")
        said = f"{told}; {fell.count(False)} of these do not stand again yet."
    worse = f" {counted(lost, 'other claim has', 'other claims have')} a status worse than before."
    return said + (worse if lost else "")
