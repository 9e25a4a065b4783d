"""Triggering conditions as a document: what people state of each, what runs found, and what follows.

ISO 21448 sorts scenarios into known and unknown, hazardous and not. Here each condition that somebody lists stands
once: not hazardous where every requirement of its run is satisfied, hazardous where one is violated, undecided, or
without data, which is no reason to call it harmless.

In the context of a case:

[trigger.NAME]: text; part, source, effect, excluded_by, severity, matrices, where
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from verifier.base.documents import Condition, Count, Derives, Extended, Limits, Sha256, derived
from verifier.base.errors import UsageError
from verifier.base.libraries import __version__
from verifier.base.toml import Element
from verifier.checking.verdicts import Verdict, condition_over, worst_verdict
from verifier.evidence.declarations import matrices_at
from verifier.evidence.documents import Document, of_kind
from verifier.evidence.rates.document import RateInput
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.document_reader import DocumentReader
from verifier.perception.confusion.matrices import EMPTY, label_text
from verifier.study.results import RunResult
from verifier.telling.grounds import needed_text

Part: TypeAlias = Literal["sense", "plan", "act"]
Sort: TypeAlias = Literal["not hazardous", "hazardous", "undecided", "no data", "excluded"]
_VERDICTS: Mapping[Sort, Verdict] = {
    "not hazardous": Verdict.SATISFIED,
    "hazardous": Verdict.VIOLATED,
    "undecided": Verdict.INCONCLUSIVE,
    "no data": Verdict.INCONCLUSIVE,
    "excluded": Verdict.SATISFIED,
}


@dataclass(frozen=True, kw_only=True)
class TriggerVerdict:
    """What the run of a condition says of one requirement, in its worst scenario.

    Attributes:
        lower, upper: the ends that decide.
        needed: how many more items or drives would decide it; empty where it is decided, or that is not known.
    """

    requirement: str
    planner: str
    asked: str
    scenario: str
    probability: Extended
    lower: Extended
    upper: Extended
    verdict: Verdict
    condition: Condition | None
    needed: str


@dataclass(frozen=True, kw_only=True)
class Trigger(Derives):
    """One condition.

    Attributes:
        name, text, part, source, effect: as stated; the part of the system that it affects.
        excluded_by: the monitor that keeps it out of the operational design domain; empty where none does.
        severity: the mutation that its images were made by; empty where they were not.
        matrices, sha256, where: the data: a file, and bins of its further variables; empty and None for no data.
        run: SHA-256 of the run; None where there is none.
        items: true label that the run draws -> items; None where the matrices are not at hand.
        drives: sequences with an item; None where that is not known.
        judged: of each requirement with a target.
        sort: what it is known as.
    """

    name: str
    text: str
    part: Part | None = None
    source: str = ""
    effect: str = ""
    excluded_by: str = ""
    severity: str = ""
    matrices: str = ""
    sha256: Sha256 | None = None
    where: Mapping[str, str] = field(default_factory=dict)
    run: Sha256 | None = None
    items: Mapping[str, Count] | None = None
    drives: Count | None = None
    judged: tuple[TriggerVerdict, ...] = ()
    sort: Sort = derived(lambda trigger: _sort(trigger))


def _sort(trigger: Trigger) -> Sort:
    if trigger.excluded_by:
        return "excluded"
    if trigger.run is None or not trigger.judged:
        return "no data"
    worst = worst_verdict(verdict.verdict for verdict in trigger.judged)
    return {Verdict.SATISFIED: "not hazardous", Verdict.VIOLATED: "hazardous"}.get(worst, "undecided")  # type: ignore[return-value]


@dataclass(frozen=True, kw_only=True)
class TriggerPair:
    """Two conditions that may come together: the objects in both; None, and why, where that is not known."""

    first: str
    second: str
    items: Count | None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class TriggersResult(Derives):
    """Result of `verify evidence triggers`.

    Attributes:
        command: that made it, inputs by name without folders.
        inputs: the context of the case, the results of runs, and the matrices whose items were counted.
        triggers: every condition once, in the order of the file.
        pairs: every two of them.
        verdict, condition: on the claim that all known conditions in the operational design domain are acceptable.
    """

    schema: ClassVar[str] = "verifier.triggers"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    inputs: Annotated[tuple[RateInput, ...], Limits(min_length=1)]
    versions: Mapping[str, str]
    triggers: Annotated[tuple[Trigger, ...], Limits(min_length=1)]
    pairs: tuple[TriggerPair, ...]
    verdict: Verdict = derived(lambda study: worst_verdict(_VERDICTS[trigger.sort] for trigger in study.triggers))
    condition: Condition | None = derived(
        lambda study: (
            condition_over(
                study.verdict, ((one.verdict, one.condition) for trigger in study.triggers for one in trigger.judged)
            )
            if study.verdict in (Verdict.SATISFIED, Verdict.VIOLATED)
            else None
        )
    )


_TEXTS = ("source", "effect", "excluded_by", "severity")
_KEYS = ("text", "part", "matrices", "where", *_TEXTS)


def read_triggers(top: Element) -> tuple[Trigger, ...]:
    """The triggering conditions of a context; InputError."""
    return tuple(_trigger(name, table) for name, table in top.table_at("trigger"))


def _trigger(name: str, table: Element) -> Trigger:
    table.table(_KEYS, ("text",))
    matrices, sha256 = matrices_at(table)
    if table.has("where") and not matrices:
        raise table.at("where").fail("expected matrices whose bins these are")
    told: dict[str, Any] = {key: table.given(key, Element.string, "") for key in _TEXTS}
    return Trigger(
        name=name,
        text=table.at("text").string(),
        part=table.given("part", Element.one_of, None, get_args(Part)),
        matrices=matrices,
        sha256=sha256,
        where={key: element.string() for key, element in table.table_at("where")},
        **told,
    )


NOT_COUNTED = "they are not bins of one file of matrices that is at hand"
EXCLUSIVE = "bins of one variable exclude each other"
SEQUENCE = 0
"""Column of the index of a tally."""


def known_triggers(
    triggers: Sequence[Trigger], documents: Sequence[Document], context: tuple[str, str] | None = None
) -> TriggersResult:
    """What is known of triggering conditions.

    Args:
        documents: runs, and matrices whose items are counted.
        context: name and SHA-256 of the file where they are stated.

    Raises:
        UsageError: no condition, two runs of one, or a bin that the matrices do not have.
    """
    if not triggers:
        raise UsageError("the context states no triggering condition\n  hint: [trigger.NAME] with text = TEXT")
    unique = list({document.sha256: document for document in documents}.values())
    runs = {trigger.name: _run_of(trigger, unique) for trigger in triggers}
    matrices = of_kind(unique, "confusion")
    tables = {one.sha256: DocumentReader(one.name).counts(dict(one.content)) for one in matrices}
    known = tuple(_known(trigger, runs[trigger.name], tables) for trigger in triggers)
    used = {run.sha256: run for run in runs.values() if run is not None}.values()
    named = {trigger.sha256 for trigger in triggers}
    return TriggersResult(
        inputs=(
            *(() if context is None else (RateInput("context", *context),)),
            *(RateInput("result", run.name, run.sha256) for run in used),
            *(RateInput("confusion", one.name, one.sha256) for one in unique if one.sha256 in named),
        ),
        versions={"verifier": __version__},
        triggers=known,
        pairs=tuple(_pair(*pair, tables) for pair in itertools.combinations(known, 2)),
    )


def _run_of(trigger: Trigger, documents: Sequence[Document]) -> Document | None:
    """The run of the data of a condition: of its matrices, in its bins."""
    runs = [
        document
        for document in documents
        if document.kind == "run"
        and any(file.role == "confusion" and file.sha256 == trigger.sha256 for file in document.result.inputs)
        and dict(document.result.settings.where) == dict(trigger.where)
    ]
    if len(runs) > 1:
        raise UsageError(f"two runs of the data of {trigger.name}: {runs[0].name} and {runs[1].name}")
    return runs[0] if runs else None


def _known(trigger: Trigger, run: Document | None, tables: Mapping[str, ConfusionCounts]) -> Trigger:
    result: RunResult | None = None if run is None else run.result
    items, drives = None, None
    table = _table(trigger, tables)
    if table is not None:
        counts, sequences = table.matrices(trigger.where).counts, table.by_sequence(trigger.where)
        requirements = () if result is None else result.requirements
        drawn = {name for requirement in requirements for point in requirement.points for name in point.draws}
        columns = {label_text(label): counts[:, :, column] for column, label in enumerate(table.labels)}
        items = {name: int(column.sum()) for name, column in columns.items() if result is None or name in drawn}
        drives = None if sequences is None else len(set(sequences.tally.index[:, SEQUENCE].tolist()))
    judged = () if result is None else tuple(_judged(result))
    found = {"run": None if run is None else run.sha256, "items": items, "drives": drives, "judged": judged}
    stated = {name: value for name, value in vars(trigger).items() if name != "sort"}  # which follows from these
    return Trigger(**stated | found)


def _table(trigger: Trigger, tables: Mapping[str, ConfusionCounts]) -> ConfusionCounts | None:
    """The counts of the data of a condition; None where they are not at hand, or are a family over thresholds."""
    counts = tables.get(trigger.sha256 or "")
    return counts if counts is not None and counts.thresholds is None else None


def _judged(run: RunResult) -> Iterator[TriggerVerdict]:
    for requirement in run.requirements:
        if requirement.target is not None:
            point, plan = requirement.worst_point, requirement.additional_data
            lower, upper = point.bounds(run.settings.verdict_from)
            yield TriggerVerdict(
                requirement=requirement.name,
                planner=requirement.planner,
                asked=requirement.asked_text,
                scenario=point.scenario,
                probability=point.probability,
                lower=lower,
                upper=upper,
                verdict=requirement.verdict,
                condition=requirement.condition,
                needed="" if plan is None else needed_text(plan),
            )


def _pair(first: Trigger, second: Trigger, tables: Mapping[str, ConfusionCounts]) -> TriggerPair:
    """How many objects are in both: known where they are one file of matrices, or bins of it."""
    table = _table(first, tables) if first.sha256 == second.sha256 else None
    names = {"first": first.name, "second": second.name}
    if table is None:
        return TriggerPair(**names, items=None, reason=NOT_COUNTED)
    if any(second.where.get(name, value) != value for name, value in first.where.items()):
        return TriggerPair(**names, items=None, reason=EXCLUSIVE)
    counts = table.matrices({**first.where, **second.where}).counts
    objects = [column for column, label in enumerate(table.labels) if label != EMPTY]
    return TriggerPair(**names, items=int(counts[:, :, objects].sum()))
