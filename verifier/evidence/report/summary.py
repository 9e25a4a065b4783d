"""What a person with five minutes reads: the verdicts in sentences, and all of them in one table.

What was assessed, for page one: the system, where it is used, the detector, and what would defeat the claims.

A run names its files, constants, environments and planners. The model itself, and what people state about the case,
are known where a bundle is built.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from verifier.analysis.settings import INTERVALS
from verifier.base.numbers import exact_or_number, interval_text, level_text
from verifier.base.words import clipped, counted, first_of, listed, some_of
from verifier.checking.verdicts import SEVERITY, Verdict, condition_over, verdict_text, worst_verdict
from verifier.evidence.context import DUTIES, CaseContext
from verifier.evidence.defeaters.values import Defeater
from verifier.evidence.documents import Document
from verifier.evidence.report.assumptions import caveats
from verifier.evidence.report.requirements import (
    deciding_sentences,
    explained_sentences,
    uncertainty_cells,
    verdict_sentence,
)
from verifier.evidence.report.subjects import Subject, confusion_inputs, disagreements, matrices_of
from verifier.perception.confusion.data_set import NAMES, PARTS, DataSetRecord, record_of
from verifier.study.parsed import ParsedStudy, ParsedVariable
from verifier.telling.blocks import Block, Cell, Fold, Listing, Paragraph, Row, Section, Table, facts, name_text
from verifier.telling.grounds import bounds_told, scenario_text
from verifier.telling.parsed import environment_lines, rule_text
from verifier.telling.run import probability_text

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
        ("System", clipped(context.system or study.model, LONGEST)),
        ("Operational design domain", clipped(context.odd, LONGEST)),
        ("Detector", clipped(context.detector.told, LONGEST)),
        ("Test data", clipped(context.dataset, LONGEST)),
        ("State", "; ".join(map(_variable, study.variables))),
        ("The planner sets", "; ".join(map(_variable, study.steers))),
        *(
            (f"Planner {clipped(one.name)}", _lines(map(rule_text, one.runs or one.rules)) or f"kind {one.kind}")
            for one in study.planners
        ),
        *((f"Environment {clipped(one.name)}", _lines(environment_lines(one))) for one in study.environments),
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
    inputs = [file for subject in subjects for file in subject.document.result.inputs if file.role == "model"]
    settings = [subject.settings for subject in subjects]
    models = (f"{clipped(file.name)} (SHA-256 {file.sha256[:12]}...)" for file in inputs)
    environments = (clipped(name) for setting in settings for name in setting.environments)
    planners = (f"{clipped(name)} ({own.kind})" for setting in settings for name, own in setting.planners.items())
    constants = (f"{clipped(name)} = {value}" for setting in settings for name, value in setting.constants.items())
    told = {"Model of the system": models, "Environments": environments, "Planners": planners, "Constants": constants}
    pairs = ((name, some_of(list(dict.fromkeys(parts)), MOST_NAMED)) for name, parts in told.items())
    known = ((name, text) for name, text in pairs if text)
    yield facts("What was assessed", *known, ("Not in these results", ELSEWHERE))


def _variable(variable: ParsedVariable) -> str:
    unit = f" ({variable.unit})" if variable.unit else ""
    hidden = ", hidden from planners" if variable.hidden else ""
    return f"{variable.name} from {variable.low} to {variable.high}{unit}{hidden}"


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
    for document in matrices_of(documents).values():
        missing = [text for key, text in UNSTATED.items() if not document.content.get(key)]
        unstated = (record_of(document.content) or DataSetRecord()).missing
        if unstated:
            missing.append(f"in the record of their data set {len(unstated)} of {len(NAMES) + len(PARTS)} items")
        if missing:
            yield f"of the matrices {clipped(document.name)}: {listed(missing)}"


def _defeaters(defeaters: Sequence[Defeater]) -> Iterator[Block]:
    if not defeaters:
        yield Paragraph("No doubt was found that would defeat these verdicts, and that nobody answered.")
        return
    told = []
    for defeater in defeaters[:MOST_DEFEATERS]:
        against = some_of(list(dict.fromkeys(clipped(claim.requirement) for claim in defeater.claims)))
        said = f"{defeater.id} {defeater.title}, against {against}"
        told.append(f"{said}. It would be answered by: {defeater.remedy}.")
    if len(defeaters) > MOST_DEFEATERS:
        told.append(f"{len(defeaters) - MOST_DEFEATERS} more stand in the assurance case.")
    yield Paragraph("What would defeat these verdicts:", "lead")
    yield Listing(tuple(told))


MOST_TOLD = 12
"""Requirements that are told in sentences; the table has all of them."""
MOST_TITLES = 4
WORST_FIRST = tuple(reversed(SEVERITY))


def summary_section(
    documents: Sequence[Document],
    subjects: Sequence[Subject],
    others: Sequence[tuple[str, str]],
    about: About | None = None,
) -> Section:
    """The verdicts.

    Args:
        others: (sentence, verdict or "") of the documents that verify no requirement.
        about: what is known of the case beside them.
    """
    blocks: list[Block] = []
    if subjects:
        blocks += _overall(subjects)
        against, untested = caveats(documents)
        blocks += [Paragraph(disagreement, "note") for disagreement in (*disagreements(subjects), *against)]
        blocks.append(_table(subjects, {} if about is None else about.stands))
        blocks += about_blocks(documents, subjects, about)
        blocks += _sentences(subjects)
        blocks.append(Paragraph("How to read this:", "lead"))
        blocks.append(Listing(tuple(_reading(subjects))))
        blocks += [Paragraph(name, "note") for name in untested]
        blocks += _matrices_notes(documents)
    if others:
        blocks.append(Paragraph("Other results:" if subjects else "Results:", "lead"))
        blocks += [Paragraph(sentence, "verdict", verdict) for sentence, verdict in others]
    if not blocks:
        blocks.append(Paragraph("No document of this report verifies a requirement.", "lead"))
    return Section("Verdicts", tuple(blocks), id="verdicts")


def _overall(subjects: Sequence[Subject]) -> Iterator[Block]:
    verdict = worst_verdict(subject.result.verdict for subject in subjects)
    condition = condition_over(verdict, ((subject.result.verdict, subject.result.condition) for subject in subjects))
    counts = {name.value: sum(subject.result.verdict is name for subject in subjects) for name in WORST_FIRST}
    said = {"no target": "without a target"}
    parts = [f"{count} {said.get(name, name)}" for name, count in counts.items() if count]
    conditional = sum(subject.result.condition is not None for subject in subjects)
    on_condition = f" ({conditional} on a condition)" if conditional else ""
    planners = {subject.result.planner for subject in subjects}
    titles = sorted({name_text(subject.document.result.title) for subject in subjects})
    probabilities = sum(len(subject.result.points) for subject in subjects)
    yield Paragraph("Overall verdict:", "overall", verdict_text(verdict.value, condition))
    yield Paragraph(
        f"{counted(len({subject.result.name for subject in subjects}), 'requirement')} with "
        f"{counted(len(planners), 'planner')}, "
        f"{counted(probabilities, 'verified probability', 'verified probabilities')}: {listed(parts)}{on_condition}. "
        f"The data: {first_of(titles, MOST_TITLES, '; ')}. {_specs(subjects)}"
    )


def _specs(subjects: Sequence[Subject]) -> str:
    """Which specs and models the requirements are from."""
    parts = []
    for role, word in (("spec", "spec"), ("model", "model of the system")):
        inputs = (file for subject in subjects for file in subject.document.result.inputs if file.role == role)
        names = list(dict.fromkeys(name_text(file.name) for file in inputs))
        if names:
            parts.append(f"The {word}: {first_of(names, MOST_TITLES)}.")
    return " ".join(parts)


def _reading(subjects: Sequence[Subject]) -> Iterator[str]:
    """What the numbers of the table are, and by what rule the verdicts follow from them."""
    of_worst = (subject.result.worst_point.uncertainty for subject in subjects)
    sure = [uncertainty for uncertainty in of_worst if uncertainty is not None]
    text = "P is the probability that a requirement is met, with the rates of the matrices as they were measured."
    if sure:
        kinds = sorted({uncertainty.interval.kind for uncertainty in sure})
        whose = listed([f"{INTERVALS[kind].assumed()} ({kind})" for kind in kinds], "or")
        text += f" The interval says how far the data leave P open; it assumes that {whose}."
    yield text
    bounds = [subject.settings.bounds for subject in subjects if subject.result.worst_point.uncertainty is not None]
    for told in dict.fromkeys(bounds_told(basis) for basis in bounds if basis is not None):
        yield f"P lies within the bounds for all rates that the data do not rule out: {told}."
    for what, verb, again in sorted({_rule(subject) for subject in subjects if subject.result.target is not None}):
        yield (
            f"A requirement is satisfied where {what} {verb} wholly on the right side of its target in every "
            f"scenario, violated where {again} {verb} wholly on the wrong side in any, and inconclusive otherwise. "
            "A condition behind a verdict belongs to it. Where the data contradict the memoryless detector, the "
            "verdict is inconclusive, unless it holds whatever the detector predicts or the assumption was accepted "
            "by name."
        )
    if any(point.vacuity for subject in subjects for point in subject.result.points):
        yield (
            "A scenario is vacuous where the check says nothing about the system; such scenarios do not count for a "
            "requirement, and it is vacuous if all of them are."
        )


def _rule(subject: Subject) -> tuple[str, str, str]:
    """What is compared with a target, with its verb and its pronoun."""
    kind = subject.settings.verdict_from
    if kind == "point" or subject.result.worst_point.uncertainty is None:
        return "P as measured, with its numerical bounds,", "lies", "it"
    if kind == "bounds":
        return "the confidence bounds", "lie", "they"
    return "the interval, with what its draws leave open,", "lies", "it"


def _sentences(subjects: Sequence[Subject]) -> Iterator[Block]:
    """The requirements in words, the worst verdicts first."""
    ordered = sorted(subjects, key=lambda subject: WORST_FIRST.index(subject.result.verdict))
    for subject in ordered[:MOST_TOLD]:
        yield Paragraph(verdict_sentence(subject, _whose(subject, subjects)), "verdict", subject.told)
        if subject.result.verdict is Verdict.SATISFIED:
            continue
        more = [*explained_sentences(subject), *deciding_sentences(subject)]
        if more:
            yield Listing(tuple(more))
    if len(ordered) > MOST_TOLD:
        yield Paragraph(f"{len(ordered) - MOST_TOLD} more stand in the table above only.", "note")


def _whose(subject: Subject, subjects: Sequence[Subject]) -> str:
    """Planner and result, as far as there are several."""
    parts = []
    if len({subject.result.planner for subject in subjects}) > 1:
        parts.append(f"planner {name_text(subject.result.planner)}")
    if len({id(subject.document) for subject in subjects}) > 1:
        parts.append(name_text(subject.document.name))
    return f" ({', '.join(parts)})" if parts else ""


def _matrices_notes(documents: Sequence[Document]) -> Iterator[Block]:
    """Which results come without their matrices, and which matrices belong to no result."""
    given = matrices_of(documents)
    used = {source["sha256"] for document in documents for source in confusion_inputs(document)}
    missing: dict[str, list[str]] = {}
    for document in documents:
        sources = [source["sha256"] for source in confusion_inputs(document)]
        absent = [digest for digest in sources if digest not in given]
        if absent:
            missing.setdefault("The" if len(absent) == len(sources) else "Some", []).append(document.name)
    for which, names in missing.items():
        of = "" if which == "The" else "of the "
        yield Paragraph(f"{which} {of}matrices of {listed(names)} were not given to this report.", "note")
    unused = [document.name for digest, document in given.items() if digest not in used]
    if unused:
        yield Paragraph(f"No result was made from the matrices {listed(unused)}.", "note")


def _table(subjects: Sequence[Subject], stands: Mapping[tuple[str, str], str]) -> Table:
    several_planners = len({subject.result.planner for subject in subjects}) > 1
    several_documents = len({id(subject.document) for subject in subjects}) > 1
    header = ["requirement", "verdict"]
    header += ["planner"] if several_planners else []
    header += ["result"] if several_documents else []
    header += ["target", "P (worst)", *_uncertainty_header(subjects), "worst scenario"]
    rows = tuple(_row(subject, several_planners, several_documents, len(header), stands) for subject in subjects)
    return Table("All requirements", tuple(header), rows, sortable=True)


def _uncertainty_header(subjects: Sequence[Subject]) -> list[str]:
    """Two columns where any point has intervals; their levels and kinds are named where all have the same."""
    pairs = ((subject.result.worst_point.uncertainty, subject.settings.bounds_name) for subject in subjects)
    kinds = {(sure.level, sure.interval.kind, name) for sure, name in pairs if sure is not None}
    if not kinds:
        return []
    if len(kinds) > 1:
        return ["interval", "bounds"]
    ((level, kind, name),) = kinds
    return [f"{level_text(level)} {kind}", name]


def _row(subject: Subject, planner: bool, document: bool, width: int, stands: Mapping[tuple[str, str], str]) -> Row:
    worst, target = subject.result.worst_point, subject.result.threshold
    cells = [Cell(name_text(subject.result.name), link=subject.id)]
    vacuous = sum(bool(point.vacuity) for point in subject.result.points)
    many = f"; {vacuous} of {counted(len(subject.result.points), 'scenario')} vacuous" if vacuous else ""
    verdict, told = subject.result.verdict.value, subject.told
    told += many if subject.result.verdict is not Verdict.VACUOUS else ""
    status = stands.get((subject.result.name, subject.result.planner), verdict)
    if subject.result.verdict is Verdict.SATISFIED and status != verdict:
        verdict, told = status, f"{told}; its status: {status}"
    cells.append(Cell(told, verdict=verdict))
    cells += [Cell(name_text(subject.result.planner))] if planner else []
    cells += [Cell(name_text(subject.document.name))] if document else []
    result = subject.result
    asked = result.target_text if result.asked == "P" else result.asked_text
    cells.append(Cell(asked, None if target is None else float(target)))
    if result.means:  # one per value of the swept constants
        means = ", ".join(result.with_unit(exact_or_number(mean.probability, mean.exact)) for mean in result.means)
        cells.append(Cell(means, result.means[0].probability))
        known = (mean.interval for mean in result.means if mean.interval is not None)
        ends = [interval_text(interval.lower, interval.upper) for interval in known]
        sure = (Cell(", ".join(ends) or "none"), *(Cell("none") for _ in range(width - len(cells) - 2)))
        return (*cells, *sure[: width - len(cells) - 1], Cell("profile"))
    cells.append(Cell(result.with_unit(probability_text(worst, target)), worst.probability))
    if width - len(cells) > 1:
        cells += uncertainty_cells(worst)
    return (*cells, Cell(scenario_text(worst)))
