"""What makes the report of a bundle a controlled document: identity, fields of a test report, findings of assessors.

The fields are those of ISO/IEC 17025:2017, 7.8.2.1 a to p, in own words; what nobody states is "not stated", and
whoever states it may write "not applicable".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from verifier.base.arrays import grouped
from verifier.base.errors import one_line
from verifier.base.numbers import level_text
from verifier.base.words import bounds_text, clipped, counted, some_of
from verifier.evidence.bundle.manifest import digest_of
from verifier.evidence.bundle.parts import Parts
from verifier.evidence.bundle.trace import UNCONFIRMED
from verifier.evidence.case.anchors import anchors_of, digests_of
from verifier.evidence.case.elements import Case
from verifier.evidence.context import ReviewFinding
from verifier.evidence.declarations import Answer
from verifier.evidence.defeaters.values import KINDS
from verifier.evidence.documents import Document, of_kind
from verifier.study.records import SettingsRecord
from verifier.study.results import RequirementResult
from verifier.telling.blocks import Block, Paragraph, Section, Table, facts

ONLY_THESE = "Results relate only to the inputs that are listed under Provenance."
NOT_STATED, LONGEST = "not stated", 400
SHORT = 12
"""Digits of the digest on every page."""


def inputs_digest(parts: Parts) -> str:
    """SHA-256 of what `sha256sum` prints for all inputs and results, in the order of their paths.

    The digest of the whole bundle cannot stand in its report, which is part of it.
    """
    return digest_of("".join(f"{digest}  {path}\n" for path, digest in sorted(parts.hashes.items())).encode())


def identity_text(parts: Parts) -> str:
    """What stands on every page of report and case: id, revision and date where they are stated, and the digest."""
    identity = parts.context.identity
    named = [identity.id, f"revision {identity.revision}" if identity.revision else "", str(identity.issued or "")]
    return ", ".join([*filter(None, named), f"SHA-256 of inputs and results {inputs_digest(parts)[:SHORT]}"])


def identity_blocks(parts: Parts) -> tuple[Block, ...]:
    """Identity and people, for page one."""
    told = parts.context.identity.told if parts.context.identity.id else {}
    pairs = ((name.capitalize(), clipped(text)) for name, text in told.items() if text)
    digest = ("SHA-256 of inputs and results", inputs_digest(parts))
    return facts("This document", *pairs, digest), Paragraph(ONLY_THESE)


def answered_notes(answers: Mapping[str, Answer]) -> list[str]:
    """Doubts that somebody accepted, then those that are open again, for page one."""
    words = {"accepted": "Residual doubt", "stale": "Doubt reopened"}
    told = [(answer.state, f"{key}: {answer.told}") for key, answer in answers.items()]
    return [f"{said}, {text}" for state, said in words.items() for one, text in told if one == state]


def doubts_told(answers: Mapping[str, Answer]) -> dict[str, list[str]]:
    """Requirement -> the doubts about it that nobody refuted, with how they stand."""
    doubts: dict[str, list[str]] = {}
    for key, answer in answers.items():
        kind, _, name = key.partition("/")
        doubts.setdefault(name, []).extend([f"{KINDS[kind]} ({answer.state})"] if answer.state != "refuted" else [])
    return doubts


def compared(documents: Sequence[Document]) -> dict[tuple[str, str, str], str]:
    """Requirement, planner and run -> what is compared with its target, at which level, on which condition."""
    return {
        (one.name, one.planner, run.name): _compared(one, run.result.settings)
        for run in of_kind(documents, "run")
        for one in run.result.requirements
        if one.target is not None
    }


def _compared(one: RequirementResult, settings: SettingsRecord) -> str:
    worst, source = one.worst_point, settings.verdict_from
    if one.means or worst.uncertainty is None or source == "point":
        return f"{'mean' if one.means else 'P'} as measured; target {one.target_text}"
    sure = worst.uncertainty
    name = settings.bounds_name if source == "bounds" else f"{level_text(sure.level)} {sure.interval.kind} interval"
    told = bounds_text(*worst.bounds(source)) if one.asked == "P" else ""
    return f"{name} {told}; target {one.target_text}".replace(" ;", ";")


def readme_text(parts: Parts) -> str:
    """What a bundle is and how to check it."""
    identity = parts.context.identity.told
    lines = [
        f"Evidence for: {one_line(parts.title)}",
        *(f"{name.capitalize()}: {one_line(told)}" for name, told in identity.items() if told),
        "",
        "Check it, offline, with the program that built it, installed from its source:",
        "",
        "    verify evidence check FOLDER_OR_ZIP --digest DIGEST",
        "",
        "DIGEST is the SHA-256 of manifest.json, as verify evidence build printed it. Take it from whoever is "
        "responsible",
        "for this evidence, not from the bundle: without it a check cannot tell these inputs from others. So can a",
        "signature beside the bundle (BUNDLE.sig.json): --signed-by PUBLIC_KEY --role assessed.",
        "",
        "report/report.html   read this first",
        "trace.csv            requirement by requirement: what is shown, and by which file",
        "inputs/, request.json  what was put in and what was asked",
        "results/, certificates/  what was computed from that",
    ]
    return "\n".join(lines) + "\n"


def fields_section(parts: Parts, cited: Sequence[Document]) -> Section:
    """The fields of a test report, and where each is answered."""
    identity, context, run = parts.context.identity, parts.context, parts.result
    versions = some_of([f"{name} {version}" for name, version in run.versions.items()])
    elsewhere = [path for path in parts.request.given if path in parts.documents]
    conformity = f"verdicts from {run.settings.verdict_from}; the rule stands under Verdicts"
    left_out = [f"{path}: {why}" for path, why in parts.omitted.items()]
    rows = (
        ("a", "title", parts.title),
        ("b", "who made it, with address", identity.organisation),
        ("c", "where it was made", identity.location),
        ("d", "identity on every page, and a clear end", f"{identity_text(parts)}; page n of N; end marked"),
        ("e", "for whom", identity.customer),
        ("f", "method", f"verify run with {versions}; {conformity}; settings under Provenance"),
        ("g", "what was tested", context.detector.told or f"the detector of {clipped(run.title)}"),
        ("h", "when it was received, and sampled", identity.received),
        ("i", "when the work was done", identity.performed),
        ("j", "when it was issued", str(identity.issued or "")),
        ("k", "plan and method of sampling", identity.sampling),
        ("l", "to what the results relate", ONLY_THESE),
        ("m", "results with units", f"{counted(len(cited), 'document')}: probabilities without unit, rates per hour"),
        ("n", "additions, deviations, exclusions", some_of(left_out) or "none"),
        ("o", "who authorised it", identity.approver),
        ("p", "results from elsewhere", some_of(elsewhere) or "none"),
    )
    cells = tuple((letter, asked, clipped(text or NOT_STATED, LONGEST)) for letter, asked, text in rows)
    title = "Fields of a test report"
    table = Table("ISO/IEC 17025:2017, 7.8.2.1", ("field", "asked, in own words", "answer"), cells)
    return Section(title, (Paragraph(UNCONFIRMED, "note"), table), id="fields")


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
    reviews = []
    for finding in findings:
        name = at.get(finding.node)
        same = name is not None and finding.content == digests[name]
        state = GONE if name is None else finding.state if same or finding.state == "open" else REOPENED
        reviews.append(Reviewed(finding, name, state))
    return tuple(reviews)


def with_review(case: Case, findings: Sequence[Reviewed]) -> Case:
    """The case with its findings at their nodes; those whose node is gone stand at the top goal."""
    said = grouped((finding.id or case.top.id, f"Review finding {finding.told}") for finding in findings)
    elements = (replace(element, review=tuple(said.get(element.id, ()))) for element in case.elements)
    return replace(case, elements=tuple(elements)) if findings else case


def review_notes(findings: Sequence[Reviewed]) -> list[str]:
    """What page one says: the findings that somebody has to look at."""
    mine = (finding for finding in findings if finding.is_open)
    return [f"Review finding at {finding.id or finding.finding.node}, {finding.told}" for finding in mine]


def review_section(findings: Sequence[Reviewed]) -> Section:
    """All findings as a section of the report."""
    header = ("node", "state", "class", "finding", "by", "date")
    told = ((one.id or one.finding.node, one.state, one.finding) for one in findings)
    rows = tuple((node, state, one.grade, one.text, one.by, str(one.dated)) for node, state, one in told)
    said = "Findings of an assessor about nodes of the assurance case. None of them changes a status by itself."
    return Section("Review findings", (Paragraph(said), Table("Review", header, rows)), id="review")
