"""What the derived files of a bundle are made from: its inputs and results, read and validated once.

What people declare of the case, in a bundle: whether it fits model and spec, and the rates that follow from it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from verifier.base.errors import InputError, LimitError, Place, UsageError, unknown_name
from verifier.base.files import document_text
from verifier.evidence.bundle import layout
from verifier.evidence.bundle.making import (
    Omission,
    alternatives,
    omission,
    omitted_text,
    planned,
    planned_words,
    read_omitted,
)
from verifier.evidence.bundle.manifest import Entry, Role, digest_of
from verifier.evidence.bundle.request import Request, Unpacked
from verifier.evidence.bundle.runs_elsewhere import Given, given_runs
from verifier.evidence.context import CaseContext
from verifier.evidence.defeaters.values import KINDS, Claim
from verifier.evidence.documents import Document, document_of, of_kind
from verifier.evidence.rates.hazard import EVERY, RateQuestion, hazard_rate
from verifier.evidence.residual_risk.assembly import residual_risk
from verifier.evidence.triggers import known_triggers
from verifier.perception.confusion.data_set import annotations_told, croissant, record_of
from verifier.perception.confusion.document import read_counts_of
from verifier.study.case import Study
from verifier.study.inputs import ends_of
from verifier.study.points import block_text
from verifier.study.results import RunResult


@dataclass(frozen=True, eq=False)
class Parts:
    """Inputs and results of a bundle.

    Attributes:
        request: what was asked.
        rebuilt: the system, rebuilt from the inputs.
        files: path -> bytes, inputs and results.
        about: path -> what it is, for people.
        documents: path -> validated document, for every file that is one; the run first.
        alternatives: policy in words -> the run under it.
        omitted: path -> why it was not made.
        given: path -> what a run that was put in was made from.
        context: what people declare about the case.
    """

    request: Request
    rebuilt: Study
    context: CaseContext
    files: Mapping[str, bytes]
    about: Mapping[str, str]
    documents: Mapping[str, Document]
    alternatives: Mapping[str, Document]
    omitted: Mapping[str, str]
    given: Mapping[str, Given]

    @property
    def unverified(self) -> dict[str, str]:
        """SHA-256 of a result that was put in -> why its numbers are not made again here."""
        own = {document.sha256 for path, document in self.documents.items() if path not in self.request.given}
        reasons = {self.documents[path].sha256: given.why_not for path, given in self.given.items() if given.why_not}
        for path in self.request.given:
            if path in self.documents and self.documents[path].kind not in ("run", "confusion"):
                reasons[self.documents[path].sha256] = "it was made elsewhere"
        return {digest: why for digest, why in reasons.items() if digest not in own}

    @property
    def run(self) -> Document:
        """The run that everything else speaks of."""
        return self.documents[layout.RUN_FILE]

    @property
    def result(self) -> RunResult:
        """What that run found."""
        result: RunResult = self.run.result
        return result

    @property
    def title(self) -> str:
        """Of the bundle: what the matrices are, and the spec."""
        return f"{self.result.title}: {self.result.inputs[0].name}"

    @property
    def hashes(self) -> dict[str, str]:
        """Path -> SHA-256 of every input and result."""
        return {path: digest_of(raw) for path, raw in self.files.items()}

    @property
    def proven(self) -> dict[Claim, tuple[str, ...]]:
        """Scenario of the run whose probability certificates prove -> these, and those of its bounds.

        One of counted steps proves the probability alone: where there are bounds, they need their own.
        """
        grid, paths = self.rebuilt.grid, dict[tuple[str, str, str], list[str]]()
        kinds = dict[tuple[str, str, str], set[str]]()
        for path in sorted(self.files):
            place = layout.place_of_certificate(path)
            if place is not None and not place.of:
                block = grid.blocks[place.block]
                told = block_text(block.environment, block.constants)
                key = grid.requirements[place.requirement].name, block.planner.name, told
                paths.setdefault(key, []).append(path)
                kinds.setdefault(key, set()).add("steps" if "_steps_" in path else place.proves)
        enough = {"steps", ""} if self.rebuilt.bounded else {"steps"}
        points = {key for key, proven in kinds.items() if "point" in proven or enough <= proven}
        return {
            Claim(self.run.sha256, one.name, one.planner, k): tuple(paths[key])
            for one in self.result.requirements
            for k, point in enumerate(one.points)
            if (key := (one.name, one.planner, point.block)) in points
        }

    def entries(self) -> dict[str, Entry]:
        """The manifest's entries of inputs and results."""
        inputs = {*self.request.inputs, *(path for path in self.files if "/" not in path)}
        roles: dict[str, Role] = {path: "input" if path in inputs else "result" for path in self.files}
        return {path: Entry.of(path, role, self.about[path], self.files[path]) for path, role in roles.items()}


def words_of(request: Request, rebuilt: Study, files: Iterable[str]) -> dict[str, str]:
    """Path -> what it is, for people, of every input and result; of certificates, those among `files`."""
    return {**request.words, **planned_words(rebuilt, files)}


def read_parts(
    request: Request,
    read: Unpacked,
    rebuilt: Study,
    files: Mapping[str, bytes],
    given: Mapping[str, Given] | None = None,
) -> Parts:
    """Read and validate inputs and results.

    Args:
        files: path -> bytes; what is neither is passed over.
        given: as in `Parts`; what was put in is looked at here where that is left out.

    Raises:
        InputError: a document is none, or does not keep to its schema.
    """
    about = words_of(request, rebuilt, files)
    files = {path: raw for path, raw in files.items() if path in about}
    for path in (layout.RUN_FILE, layout.OMITTED_FILE):
        if path not in files:
            raise InputError("is not there", Place(path))
    omitted = read_omitted(files[layout.OMITTED_FILE])
    results = [artefact.path for artefact in planned(rebuilt) if artefact.path in files]
    matrices = [path for path in (request.matrices,) if path in files]
    documents = {path: document_of(files[path], path) for path in (*results, *matrices)}
    for path in (path for path in request.given if path in files):  # so that no reader takes it for one of its own
        documents[path] = replace(document_of(files[path], path), name=path.removeprefix(f"{layout.INPUTS}/"))
    words = {alternative.path: alternative.words for alternative in alternatives(rebuilt)}
    others = {words[path]: documents[path] for path in results if path in words}
    if given is None:
        given = given_runs(documents, request, files, rebuilt.options)
    return Parts(request, rebuilt, read.context, files, about, documents, others, omitted, given)


RATES = "rates/"
RISK = "risk.json"
DATA_SET = "data/croissant.json"
TRIGGERS = "triggers.json"
OMITTED_RATES = "rates/omitted.json"
"""Rates that cannot be made, with the reason; only where there are any."""


def check_context(context: CaseContext, path: str | None, rebuilt: Study) -> None:
    """Refuse a context that cannot be meant for this system, before anything is computed.

    Raises:
        InputError: it names what model or spec do not have, or says only of some environments how often they come.
    """
    inputs = rebuilt.inputs
    _refuse_unknown("environment", "exposure", context.exposures, {*inputs.model.environments, EVERY}, path)
    names = [requirement.name for requirement in inputs.spec.requirements]
    _refuse_unknown("requirement", "acceptance", context.acceptances, names, path)
    ends = (end for requirement in inputs.spec.requirements for end in ends_of(requirement, inputs.model))
    asked = [*names, *(end.name for end in ends)]
    doubts = [f"{kind}/{name}" for kind in KINDS for name in asked]
    _refuse_unknown("doubt", "disposition", context.declared.dispositions, doubts, path)
    _refuse_unknown("environment", "condition", context.risk.environments, inputs.model.environments, path)
    _refuse_unknown("requirement", "hazard", [hazard.requirement for hazard in context.risk.hazards], asked, path)
    if EVERY in context.exposures and len(context.exposures) > 1:
        said = "an exposure to every encounter leaves no room for one to a single environment"
        raise InputError(said, Place(path, path="exposure"))
    run = dict.fromkeys(block.environment for block in rebuilt.grid.blocks)
    told = context.exposures_for(run)
    missing = [name for name in run if told and EVERY not in told and name not in told]
    if missing:
        said = f"no exposure is given for {', '.join(missing)}, which is checked as well"
        hint = "say how often each environment is met; 0 if never"
        raise InputError(said, Place(path, path="exposure"), hint)


def made_rates(parts: Parts) -> dict[str, str]:
    """Path -> text of a rate for every requirement with a target, where the context has exposures."""
    context, run = parts.context, parts.run
    texts: dict[str, str] = {}
    omitted: list[Omission] = []
    exposures = context.exposures_for(parts.result.settings.environments)
    for number, path in rate_paths(parts.result).items() if exposures else ():
        requirement = parts.result.requirements[number - 1]
        accepted = context.acceptances.get(requirement.name)
        asked = RateQuestion(requirement.name, requirement.planner, acceptance=accepted)
        try:
            result = hazard_rate(run, asked, exposures, context.file)
        except (UsageError, LimitError) as error:
            omitted.append(omission(path, error))
        else:
            texts[path] = document_text(result)
    return texts | ({OMITTED_RATES: omitted_text(omitted)} if omitted else {})


def made_risk(parts: Parts) -> dict[str, str]:
    """The risk of the hazards of the context, by its path; nothing where there are none."""
    stated = parts.context.stated
    return {RISK: document_text(residual_risk(stated, _runs_of(parts)))} if stated.risk.hazards else {}


def made_triggers(parts: Parts) -> dict[str, str]:
    """What is known of the triggering conditions of the context, by its path; nothing where there are none."""
    context = parts.context
    if not context.triggers:
        return {}
    matrices = of_kind(parts.documents.values(), "confusion")
    return {TRIGGERS: document_text(known_triggers(context.triggers, [*_runs_of(parts), *matrices], context.file))}


def made_data_set(parts: Parts) -> dict[str, str]:
    """What the matrices say of their data, as Croissant, by its path; nothing where they say nothing."""
    path = parts.request.matrices
    counts = read_counts_of(parts.files[path], path)
    record = record_of(counts.metadata)
    if record is None:
        return {}
    data_set = croissant(record, annotations_told(counts), counts.title, path, parts.hashes[path])
    return {DATA_SET: document_text(data_set)}


def _runs_of(parts: Parts) -> list[Document]:
    """The run and those that were put in, without those under other policies."""
    others = {alternative.sha256 for alternative in parts.alternatives.values()} - {parts.run.sha256}
    return [run for run in of_kind(parts.documents.values(), "run") if run.sha256 not in others]


def rate_paths(run: RunResult) -> dict[int, str]:
    """Number in the document of a run, from 1 -> where the rate of a requirement with a target lies."""
    return {
        number: layout.numbered_file(RATES.rstrip("/"), number, requirement.name)
        for number, requirement in enumerate(run.requirements, 1)
        if requirement.target is not None
    }


def _refuse_unknown(kind: str, table: str, given: Iterable[str], known: Iterable[str], path: str | None) -> None:
    for name in given:
        if name not in known:
            message, hint = unknown_name(kind, name, known)
            raise InputError(message, Place(path, path=f"{table}.{name}"), hint)
