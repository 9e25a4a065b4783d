"""Doubts about the data behind a verdict. Each function looks at one thing and yields what it finds.

What a result was made from, and what the matrices among that say of themselves.
"""

import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from fnmatch import translate
from fractions import Fraction
from typing import get_args

import numpy as np

from verifier.analysis.channel_test import channel_test, detector_text
from verifier.analysis.intervals.tiers import FEW_DRIVES
from verifier.analysis.planning import EvidencePlan
from verifier.base.arrays import grouped
from verifier.base.numbers import rounded
from verifier.base.words import clipped, counted, some_of
from verifier.checking.verdicts import Verdict
from verifier.evidence.context import CaseContext, Detector
from verifier.evidence.defeaters.values import Claim, Doubt, claimed, claims_on, confirmed, doubt
from verifier.evidence.documents import Document, of_kind
from verifier.evidence.paths import as_seen
from verifier.evidence.rates.document import encounters_needed
from verifier.perception.confusion.context_selection import divided_matrices
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.document_reader import DocumentReader
from verifier.perception.confusion.matrices import ConfusionMatrices, label_text
from verifier.study.results import InputRole, RequirementResult, RunResult, Target
from verifier.telling.grounds import channel_lines, needed_text


def sources_of(document: Document) -> dict[str, str]:
    """Role -> SHA-256 of the spec, model and matrices that a result was made from; other results name none.

    Of the files of planners there may be several; they have their names behind the role.
    """
    inputs = [entry for entry in document.content.get("inputs", ()) if entry.get("role") in get_args(InputRole)]
    named = {True: "planner {name}", False: "{role}"}
    return {named[entry["role"] == "planner"].format(**entry): entry["sha256"] for entry in inputs}


def same_sources(document: Document, run: Document) -> bool:
    """Whether a result was made from all that a run was made from."""
    return sources_of(run).items() <= sources_of(document).items()


def matrices_behind(run: Document, documents: Sequence[Document]) -> Document | None:
    """The confusion document that a run was made with, by its hash; None where it is not among the documents."""
    wanted = {file.sha256 for file in run.result.inputs if file.role == "confusion"}
    return next((document for document in of_kind(documents, "confusion") if document.sha256 in wanted), None)


def shared_sequences(matrices: Sequence[Document], trained_on: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names of the tested sequences that are among the trained ones, `*` and `?` standing for others, as people see
    names; and in words, the entries that hold one of them among other signs, as in `day_00,300`."""
    listed = (one["name"] for document in matrices for one in document.content.get("sequences", ()))
    names = grouped((_folder(name), name) for name in listed)
    bare = {_bare(folder): name[0] for folder, name in names.items()}
    of_parts = {name: text for name, text in bare.items() if len(_PARTS.split(text)) > 1}
    shared, unclear = set[str](), list[str]()
    for entry in trained_on:
        folder = _folder(entry)
        if matched := _matched(folder, names):
            shared.update(matched)
            continue
        parts = [name for name in _PARTS.split(folder) if name.strip("*?.-")]
        near = [bare.get(_bare(part)) for part in (folder, *parts)]
        near += [part for name, part in of_parts.items() if f"_{name}_" in f"_{_bare(folder)}_"]
        near += [names[name][0] for part in parts if part != folder for name in _matched(part, names)]
        if may := next(filter(None, near), ""):
            unclear.append(f"{clipped(entry)} may be {clipped(may)}")
    return [text for name, given in names.items() if name in shared for text in given], unclear


_PARTS = re.compile(r"[^\w.*?-]+")


def _matched(pattern: str, names: Collection[str]) -> list[str]:
    """The names that a pattern stands for."""
    if not {"*", "?"} & {*pattern}:
        return [pattern] if pattern in names else []
    fits = re.compile(translate(pattern.replace("[", "[[]"))).match  # only * and ? stand for others
    return [name for name in names if fits(name)]


def _folder(name: str) -> str:
    return as_seen(name).replace("\\", "/").removeprefix("./").rstrip("/ ")


def _bare(name: str) -> str:
    """Letters and digits alone, without the ending of a file."""
    return re.sub(r"[\W_]+", "_", re.sub(r"\.[a-z]\w{0,4}$", "", name)).strip("_")


def shared_frames(detector: Detector) -> str:
    """In words, how many tested frames are among those trained on, by their hashes; empty where none is."""
    if detector.frames is None:
        return ""
    trained, tested = detector.frames
    count = len(trained.hashes & tested.hashes)
    return f"{count} of the {len(tested.hashes)} listed frames it was tested on" if count else ""


CONFIDENCE = Fraction(19, 20)
"""At which a column must be able to show the target, if all its items were right."""


def thin_columns(run: Document, documents: Sequence[Document]) -> Iterator[Doubt]:
    """Matrix columns with too few items.

    Where confidence bounds decide, few items only widen them: then the columns are those that would decide an
    inconclusive requirement. Where they neither decide nor confirm that a scenario is satisfied, a column that
    matters is too thin if it could not show the target even if all its items were right: n items without an error
    show an error rate below p only from n = ln(0.05) / ln(1 - p) on.

    Which columns matter is known where the requirement was explained and every report of every column was seen: a
    slope is 0 also where a failure takes two errors and neither was seen.
    """
    matrices = matrices_behind(run, documents)
    for claim, requirement in claimed(run):
        if run.result.settings.verdict_from == "bounds":
            if requirement.additional_data is not None:
                yield from _undecided(claim, requirement.worst, requirement.additional_data)
        elif matrices is not None:
            yield from _too_thin(claim, requirement, run, documents, matrices)


def _undecided(claim: Claim, worst: int, needed: EvidencePlan) -> Iterator[Doubt]:
    parts = [
        f"{column.items} items with true {clipped(column.true)} in {clipped(column.bin)}, "
        f"{column.further} more needed"
        for column in needed.columns
    ]
    yield from doubt(
        "thin_columns",
        f"{clipped(claim.requirement)}: the data do not decide{f': {some_of(parts)}' if parts else ''}",
        (claim.at(worst),),
        f"about {needed_text(needed)}{' in these columns' if parts else ''}, if the rates stay what they are",
    )


def _too_thin(
    claim: Claim, requirement: RequirementResult, run: Document, documents: Sequence[Document], matrices: Document
) -> Iterator[Doubt]:
    claims = _unconfirmed(claim, requirement)
    canonical = run.result.settings.canonical  # which is a doubt of its own
    if not claims or requirement.target is None or not requirement.is_plain or canonical:
        return
    needed, table = items_needed(requirement.target), _matrices(matrices, run)
    explained = _columns_that_matter(claim, run, documents)
    unseen = (table.counts == 0) & (table.counts.sum(axis=1, keepdims=True) > 0)
    matter = None if np.any(unseen) else explained
    thin, names = [], [label_text(label) for label in table.labels]
    for at, label in sorted(set(itertools.product(range(table.bin_count), names)) if matter is None else matter):
        items = int(table.counts[at, :, names.index(label)].sum()) if label in names else 0
        if items and (needed is None or items < needed):
            thin.append(f"{items} with true {clipped(label)} in {table.bin_text(at)}")
    if thin:
        why = "it was not explained" if explained is None else "there are reports that were never seen"
        known = "" if matter is not None else f" (which of them matter is not known: {why})"
        asked = f"{needed} items without an error are needed to show"
        asked = "no number of items shows" if needed is None else asked
        yield from doubt(
            "thin_columns",
            f"{clipped(claim.requirement)}: {asked} P {requirement.target}, and there are {some_of(thin)}{known}",
            claims,
            "more labelled items in these columns, or a verdict from the confidence bounds, which allow for them",
        )


def _unconfirmed(claim: Claim, requirement: RequirementResult) -> tuple[Claim, ...]:
    """Scenarios that are called satisfied and that the confidence bounds do not confirm."""
    satisfied = [k for k, point in enumerate(requirement.points) if point.verdict is Verdict.SATISFIED]
    indices = [k for k in satisfied if not confirmed(requirement.points[k], requirement.target)]
    return (claim,) if len(indices) == len(requirement.points) else tuple(map(claim.at, indices))


def items_needed(target: Target) -> int | None:
    """Items without an error from which on a column can show a target; None where no number can."""
    error = target.probability if target.is_upper else 1 - target.probability
    return encounters_needed(error, CONFIDENCE) if error > Fraction(1, 10**12) else None


def _matrices(document: Document, run: Document) -> ConfusionMatrices:
    """The matrices as the run used them; errors as `verifier.perception.confusion.read_confusion`."""
    settings = run.result.settings
    counts = DocumentReader(document.name).counts(dict(document.content))
    if counts.thresholds is not None:
        counts = counts.member(settings.score_threshold)
    told = " ".join(() if run.result.matrices is None else run.result.matrices.bins)
    kept = [variable.name for variable in counts.bins.variables if f", {variable.name} " in told]
    matrices, by_context = counts.matrices(settings.where, kept), counts.contexts_by_distance(settings.where, kept)
    if settings.memory is None or by_context is None:
        return matrices
    used = by_context.coarsened(Contexts.parsed(settings.memory))
    return divided_matrices(matrices, used, settings.empty_contexts or "backoff")


def _columns_that_matter(claim: Claim, run: Document, documents: Sequence[Document]) -> set[tuple[int, str]] | None:
    """(bin, true label) of the columns that the probability reacts to, in the scenario that was explained."""
    for document in of_kind(documents, "explain"):
        for explanation in document.result.explanations if same_sources(document, run) else ():
            if (explanation.name, explanation.planner) == (claim.requirement, claim.planner):
                return {(part.bin, part.true) for part in explanation.gradient if any(part.slopes)}
    return None


def dependent_frames(run: Document, documents: Sequence[Document]) -> Iterator[Doubt]:
    """Data that contradict the memoryless detector: a miss follows a miss more often than the matrices say.

    It is about the scenarios whose chains draw such a class. Where no test was made, what is assumed is a condition.
    """
    result: RunResult = run.result
    points = {
        (requirement.name, requirement.planner, k)
        for requirement in result.requirements
        for k, point in enumerate(requirement.points)
        if channel_test(result.channel.classes, point.draws).test == "contradicted" and point.decided_free is None
    }
    tests = zip(channel_lines(result.channel), result.channel.classes, strict=True)
    told = [line for line, tested in tests if tested.test == "contradicted"]
    yield from doubt(
        "dependent_frames",
        f"{detector_text(result.channel.contexts)} is assumed: {some_of([clipped(line, 300) for line in told])}",
        claims_on(run, documents, perceived=True, among=points),
        "a perception model with memory, or an argument that the dependence cannot make the probability worse",
    )


def few_drives(run: Document, documents: Sequence[Document]) -> Iterator[Doubt]:
    """Bounds over so few drives that hardly any outcome could show a high rate."""
    bounds = run.result.settings.bounds
    if bounds is not None and bounds.drives is not None and bounds.drives < FEW_DRIVES:
        limit = "" if bounds.ceiling is None else rounded(bounds.ceiling, up=True)
        limit = limit and f": no outcome of them could show a rate above {limit}"
        message = f"a needed column has items from {counted(bounds.drives, 'drive')} only{limit}"
        remedy = f"data from at least {FEW_DRIVES} independent drives"
        yield from doubt("few_drives", message, claims_on(run, documents, perceived=True), remedy)


def stale(run: Document, documents: Sequence[Document]) -> Iterator[Doubt]:
    """Data that changed after the result was made: a file of the same name with another hash."""
    used = {(file.role, file.name): file.sha256 for file in run.result.inputs}
    for document in documents:
        if document.sha256 == run.sha256:
            continue
        others = [("confusion", document.name, document.sha256)] if document.kind == "confusion" else []
        inputs = document.content.get("inputs", ())
        others += [(entry["role"], entry["name"], entry["sha256"]) for entry in inputs if "role" in entry]
        for role, name, digest in others:
            mine = used.get((role, name))
            if mine is not None and mine != digest and digest not in used.values():
                what = "given" if document.name == name else f"used by {clipped(document.name)}"
                made = f"{clipped(run.name)} was made with {role} {clipped(name)} of SHA-256 {mine[:12]}..."
                message = f"{made}, and the one {what} is {digest[:12]}..."
                remedy = "make every result again from the same files"
                yield from doubt("stale", message, claims_on(run, documents), remedy)


def trained_on_tests(run: Document, documents: Sequence[Document], context: CaseContext) -> Iterator[Doubt]:
    """Sequences that the detector was trained on and that the matrices were counted on."""
    message, claims = "the detector was trained on", claims_on(run, documents, perceived=True)
    if equal := shared_frames(context.detector):
        remedy = "matrices counted on frames that the detector has not seen"
        yield from doubt("trained_on_tests", f"{message} {equal}", claims, remedy)
    matrices = matrices_behind(run, documents)
    if matrices is None or not context.detector.trained_on:
        return
    shared, _ = shared_sequences([matrices], context.detector.trained_on)
    if shared:
        message += f" {len(shared)} of the {len(matrices.content['sequences'])} sequences it was tested on"
        remedy = "matrices counted on sequences that the detector has not seen"
        yield from doubt("trained_on_tests", f"{message}: {some_of([*map(clipped, shared)])}", claims, remedy)
