"""What was assessed, for page one: the system, where it is used, the detector, and what would defeat the claims.

A run names its files, constants, environments and planners. The model itself, and what people state about the case,
are known where a bundle is built.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from verifier.base.words import counted, listed, name_text, some_of
from verifier.evidence.context import DUTIES, CaseContext
from verifier.evidence.defeaters.values import Defeater
from verifier.evidence.documents import Document
from verifier.evidence.report.subjects import Subject, matrices_of
from verifier.perception.confusion.data_set import NAMES, PARTS, DataSetRecord, record_of
from verifier.study.parsed import ParsedRule, ParsedStudy, ParsedVariable
from verifier.telling.blocks import Block, Fold, Listing, Paragraph, facts
from verifier.telling.parsed import environment_lines, rule_text

LONGEST = 300
"""Characters of a planner or an environment that stand on page one."""
MOST_NAMED = 8
"""Environments, planners and constants that are named."""
MOST_DEFEATERS = 6
"""That are told; the assurance case has all of them."""
ELSEWHERE = (
    "the model itself, and what people state of system, operational design domain and detector: a bundle has them "
    "(verify evidence build --context)"
)
UNSTATED = {
    "matching": "how detections were matched",
    "false_positives": "what became of unmatched detections",
    "sequences": "the drives",
    "source": "the source",
}
"""Of a file of matrices: key -> what is not stated where it is missing."""


@dataclass(frozen=True)
class About:
    """What is known of a case beside its documents.

    Attributes:
        study: the spec and its model as they were read.
        context: what people state.
        defeaters: that nobody answered.
        stands: requirement and planner -> its status over all runs, where that is worse than a verdict can say.
    """

    study: ParsedStudy
    context: CaseContext = field(default_factory=CaseContext)
    defeaters: tuple[Defeater, ...] = ()
    stands: Mapping[tuple[str, str], str] = field(default_factory=dict)


def about_blocks(documents: Sequence[Document], subjects: Sequence[Subject], about: About | None) -> Iterator[Block]:
    """The blocks; without a case what the documents themselves hold."""
    if about is None:
        yield from _of_documents(subjects)
        return
    study, context = about.study, about.context
    pairs = [
        ("System", name_text(context.system or study.model, LONGEST)),
        ("Operational design domain", name_text(context.odd, LONGEST)),
        ("Detector", name_text(context.detector.told, LONGEST)),
        ("Test data", name_text(context.dataset, LONGEST)),
        ("State", "; ".join(map(_variable, study.variables))),
        ("The planner sets", "; ".join(map(_variable, study.steers))),
        *((f"Planner {name_text(each.name)}", _rules(each.runs or each.rules, each.kind)) for each in study.planners),
        *((f"Environment {name_text(each.name)}", _lines(environment_lines(each))) for each in study.environments),
        ("Names in these", _lines(f"{name} = {text}" for name, text in {**study.quantities, **study.labels}.items())),
    ]
    yield facts("What was assessed", *((name, text) for name, text in pairs if text))
    yield from _defeaters(about.defeaters)
    missing = list(_not_stated(context, documents))
    if missing:
        yield Fold(f"Not stated: {counted(len(missing), 'item')}", (Listing(tuple(missing)),))


def _of_documents(subjects: Sequence[Subject]) -> Iterator[Block]:
    if not subjects:
        return
    inputs = [file for each in subjects for file in each.document.result.inputs if file.role == "model"]
    settings = [each.settings for each in subjects]
    models = (f"{name_text(file.name)} (SHA-256 {file.sha256[:12]}...)" for file in inputs)
    environments = (name_text(name) for each in settings for name in each.environments)
    planners = (f"{name_text(name)} ({own.kind})" for each in settings for name, own in each.planners.items())
    constants = (f"{name_text(name)} = {value}" for each in settings for name, value in each.constants.items())
    told = {"Model of the system": models, "Environments": environments, "Planners": planners, "Constants": constants}
    pairs = ((name, some_of(list(dict.fromkeys(parts)), MOST_NAMED)) for name, parts in told.items())
    yield facts(
        "What was assessed", *((name, text) for name, text in pairs if text), ("Not in these results", ELSEWHERE)
    )


def _variable(each: ParsedVariable) -> str:
    unit = f" ({each.unit})" if each.unit else ""
    return f"{each.name} from {each.low} to {each.high}{unit}{', hidden from planners' if each.hidden else ''}"


def _rules(rules: Sequence[ParsedRule], kind: str) -> str:
    return _lines(map(rule_text, rules)) or f"kind {kind}"


def _lines(lines: Iterable[str]) -> str:
    text = "; ".join(line.strip() for line in lines)
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rpartition(' ')[0]} ... (the model has the rest)"


def _not_stated(context: CaseContext, documents: Sequence[Document]) -> Iterator[str]:
    """What nobody stated, all in one place."""
    detector = context.detector
    for name, told in (
        ("the system in words", context.system),
        ("its operational design domain", context.odd),
        ("the detector's name", detector.name),
        ("the detector's version", detector.version),
        ("what the detector was trained on", detector.trained_on is not None),
        ("the test data in words", context.dataset),
        ("how often encounters come", context.exposures),
        ("an acceptable rate of violations", context.acceptances),
    ):
        if not told:
            yield name
    if missing := context.identity.missing:
        yield f"of this document: {listed(missing)}"
    nobody = [key.replace("_", " ") for key in DUTIES if key not in context.responsible]
    if nobody:
        yield f"who answers for {listed(nobody)} (the assurance case says what each claims)"
    for each in matrices_of(documents).values():
        missing = [text for key, text in UNSTATED.items() if not each.content.get(key)]
        unstated = (record_of(each.content) or DataSetRecord()).missing
        if unstated:
            missing.append(f"in the record of their data set {len(unstated)} of {len(NAMES) + len(PARTS)} items")
        if missing:
            yield f"of the matrices {name_text(each.name)}: {listed(missing)}"


def _defeaters(defeaters: Sequence[Defeater]) -> Iterator[Block]:
    if not defeaters:
        yield Paragraph("No doubt was found that would defeat these verdicts, and that nobody answered.")
        return
    told = [
        f"{each.id} {each.title}, against "
        f"{some_of(list(dict.fromkeys(name_text(claim.requirement) for claim in each.claims)))}. "
        f"It would be answered by: {each.remedy}."
        for each in defeaters[:MOST_DEFEATERS]
    ]
    if len(defeaters) > MOST_DEFEATERS:
        told.append(f"{len(defeaters) - MOST_DEFEATERS} more stand in the assurance case.")
    yield Paragraph("What would defeat these verdicts:", "lead")
    yield Listing(tuple(told))
