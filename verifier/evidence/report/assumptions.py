"""What the numbers take for granted, and what is known about each of these assumptions; and what they were made from:
files by hash, versions, choices.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from verifier.analysis.channel_test import Channel
from verifier.analysis.settings import INTERVALS
from verifier.base.arrays import grouped
from verifier.base.documents import Content
from verifier.base.numbers import level_text, rounded
from verifier.base.words import counted, some_of
from verifier.evidence.documents import Document
from verifier.evidence.report.subjects import confusion_inputs, matrices_of, plain
from verifier.perception.confusion.sanity import remark_texts
from verifier.study.records import ConfidenceRecord, SettingsRecord
from verifier.telling.blocks import (
    LONGEST_NAME,
    Block,
    Cell,
    Fold,
    Listing,
    Paragraph,
    Row,
    Section,
    Table,
    facts,
    name_text,
)
from verifier.telling.grounds import (
    FREE_ASSUMES,
    FREE_KNOWN,
    channel_lines,
    difference_text,
    long_names,
    looks_text,
    memory_text,
    scenario_text,
    sentence,
    vacuity_text,
)

Assumption = tuple[str, str, str]
"""What is assumed, its status in a word or two, and why."""
AGAINST = frozenset({"contradicted", "weakens the result", "few drives"})
UNTESTED = frozenset({"not tested", "not stated", "not known here", "assumed", "not shown by this evidence"})


def assumptions_section(documents: Sequence[Document]) -> Section:
    """Assumptions of every run and explanation; equal ones are told once, with the documents they belong to."""
    given = matrices_of(documents)
    assumptions: dict[Assumption, list[str]] = {}
    remarks: dict[str, list[str]] = {}
    for document in documents:
        if document.kind in ("run", "explain"):
            for assumption in _assumptions(document, given):
                assumptions.setdefault(assumption, []).append(document.name)
        for remark in _remarks(document):
            remarks.setdefault(remark, []).append(document.name)
    blocks: list[Block] = []
    if assumptions:
        everywhere, said = max(map(len, assumptions.values())), "all runs and explanations"
        order = list(dict.fromkeys(what for what, _, _ in assumptions))
        rows = tuple(
            (what, Cell(status), why, said if len(names) == everywhere > 1 else ", ".join(names))
            for (what, status, why), names in sorted(assumptions.items(), key=lambda pair: order.index(pair[0][0]))
        )
        header = ("assumption", "status", "what is known", "documents")
        blocks.append(Table("Assumptions of the verified probabilities", header, rows))
    if remarks:
        blocks.append(Paragraph("What the results themselves remark:", "lead"))
        blocks.append(Listing(tuple(f"{remark} ({', '.join(names)})" for remark, names in remarks.items())))
    if not blocks:
        blocks.append(Paragraph("No document states any."))
    return Section("Assumptions and their status", tuple(blocks), id="assumptions")


def caveats(documents: Sequence[Document]) -> tuple[list[str], list[str]]:
    """What a reader of the verdicts must know of the assumptions: sentences on those that do not hold, and on those
    that nothing here has tested."""
    given = matrices_of(documents)
    held = [document for document in documents if document.kind in ("run", "explain")]
    assumed = list(dict.fromkeys(assumption for document in held for assumption in _assumptions(document, given)))
    against = [f"{sentence(status)}: {_within(what)}; {why}." for what, status, why in assumed if status in AGAINST]
    untested = "; ".join(dict.fromkeys(_within(what) for what, status, _ in assumed if status in UNTESTED))
    return against, [f"Assumed and not tested: {untested}."] if untested else []


def _within(what: str) -> str:
    """An assumption within a sentence."""
    return what[:1].lower() + what[1:]


def _remarks(document: Document) -> Iterator[str]:
    if document.kind == "confusion":
        yield from remark_texts(document.content)
    else:
        yield from document.content.get("remarks", ())
    for system in document.content.get("systems", ()):
        yield from system["remarks"]
    if document.kind == "mutate":
        yield from document.content["notes"]


def _assumptions(document: Document, given: Mapping[str, Document]) -> Iterator[Assumption]:
    settings: SettingsRecord = document.result.settings
    channel: Channel = document.result.channel
    hashes = [entry["sha256"] for entry in confusion_inputs(document)]
    own: Content | None = document.content.get("matrices")  # said by the result, where it is without their document
    files = [given[sha256].content if sha256 in given else own for sha256 in hashes]
    memoryless = channel.contexts is None
    yield _memory(channel, assumed=settings.assume_memoryless if memoryless else settings.assume_contexts)
    known = "every environment is verified on its own, and the worst counts"
    yield "What stands in the way does not change during an episode", "by construction", known
    known = "no result can say whether the data are like the operational domain"
    yield "The rates in use are those of the data", "not shown by this evidence", known
    yield _independence(settings.confidence)
    yield from _confidence_bounds(settings.confidence)
    runs = document.result.requirements if document.kind == "run" else ()
    if any(point.dependence_free is not None for run in runs for point in run.points):
        yield FREE_ASSUMES, "not tested", FREE_KNOWN
    yield from _vacuous(document)
    yield _matching(files)
    yield _false_positives(settings.false_positives, files)
    policy = settings.empty_columns
    if policy == "error":
        yield ("Every matrix column that is used has items", "checked", "an empty one would have been an error")
    else:
        yield ("Columns without items", "assumed", f"their rates are set by the policy '{policy}'")
    if settings.round_transitions is not None:
        known = f"to {settings.round_transitions} decimals; the values are no probabilities of the system"
        yield "Transition probabilities are rounded", "weakens the result", known
    if settings.endless:
        yield ("Runs never end", "as asked", "after every stop the next misdetection counts")
    if settings.canonical:
        yield ("The rates do not depend on the distance", "assumed", "the matrices were summed over distance")
    difference = document.result.engines.largest_difference
    yield ("The model checker is right", "checked", f"two engines agree; {difference_text(difference)}")


def _memory(channel: Channel, *, assumed: bool) -> Assumption:
    what = memory_text(channel)
    told = "; ".join(channel_lines(channel)) or "no column of the matrices is used"
    option = "--assume-memoryless" if channel.contexts is None else "--assume-contexts"
    by_name = f"; accepted by name ({option})" if assumed and channel.test != "not_contradicted" else ""
    if channel.test == "contradicted":
        wrong = "; probabilities and bounds may be wrong in either direction"
        return what, "contradicted", f"{told}{by_name or wrong}"
    if channel.test == "untested":
        return what, "not tested", f"{told}{by_name}"
    return what, "tested", told


def _independence(confidence: ConfidenceRecord | None) -> Assumption:
    what = "Items of the data are independent"
    if confidence is None:
        return what, "not used", "no interval was asked for: the numbers are those of the measured rates alone"
    reason, items = confidence.reason, confidence.bounds.tier == "independent_items"
    if INTERVALS[confidence.interval].by_drives:
        alone = "; the confidence bounds assume it" if items else ""
        assumed = INTERVALS[confidence.interval].assumed(confidence.bounds.unit)
        return what, "not tested" if items else "not used", f"the interval assumes that {assumed} ({reason}){alone}"
    both = "the credible interval and the confidence bounds both assume it" if items else "the credible interval does"
    return what, "not tested", f"{both} ({reason}); frames of one drive are correlated"


def _confidence_bounds(confidence: ConfidenceRecord | None) -> Iterator[Assumption]:
    """What the confidence bounds rest on, in the words of their tier, and how far few drives reach."""
    if confidence is None:
        return
    bounds = confidence.bounds
    same = {"per_state": "the matrix may differ from state to state", "shared_matrix": "one matrix holds throughout"}
    how = (
        f"then simultaneous coverage of {bounds.chances} bounded rates is at least {level_text(confidence.level)} "
        f"(Bonferroni); {same[confidence.semantics]}"
    )
    if bounds.tier == "approximate":
        level = level_text(confidence.level)
        how = f"then each covers with about {level}, shown by simulation; none holds with others"
    if bounds.tier == "rate_box":
        how = "then they hold whatever the detector remembers; every state may have a matrix of its own"
    yield f"{bounds.name}: {bounds.condition}", "not tested", f"{how}; they hold {looks_text(bounds)}"
    if bounds.drives is not None and bounds.ceiling is not None:
        known = f"with so few drives no outcome could show a rate above {rounded(bounds.ceiling, up=True)}"
        yield f"{counted(bounds.drives, 'drive')} with items in a needed column", "few drives", known


def _vacuous(document: Document) -> Iterator[Assumption]:
    """Scenarios in which a check says nothing about the system."""
    told: dict[tuple[str, str], list[str]] = {}
    for requirement in document.result.requirements if document.kind == "run" else ():
        for point in requirement.points:
            if point.vacuity:
                told.setdefault((requirement.name, vacuity_text(point)), []).append(scenario_text(point))
    for (name, text), scenarios in told.items():
        yield f"{name_text(name)} says something in {some_of(scenarios)}", "vacuous", text


def _matching(files: Sequence[Content | None]) -> Assumption:
    what = "The matching of detections and objects is the right one"
    stated = [file.get("matching") for file in files if file is not None]
    if not stated or None in stated:
        return what, "not stated", "the matrices at hand do not say how they were matched"
    return what, "as stated", "; ".join(name_text(plain(value)) for value in stated)


def _false_positives(policy: str, files: Sequence[Content | None]) -> Assumption:
    what = "False positives"
    stated = [str(file.get("false_positives", "not stated")) for file in files if file is not None]
    counted = f"unmatched detections in the matrices: {', '.join(stated)}"
    counted = counted if stated else "the matrices are not among the documents"
    requested = {"ignore": "left out on request", "background": "drawn beside every object on request"}
    words = {"as_counted": "as counted", **requested}
    return what, words[policy], counted


MOST_NAMES = 50


def provenance_section(documents: Sequence[Document]) -> Section:
    """Every file that this report rests on, by hash, and every choice that was made."""
    rows: tuple[Row, ...] = tuple(
        (one.name, one.kind.replace("_", " "), name_text(one.content.get("title", "none")), one.sha256)
        for one in documents
    )
    header = ("document", "kind", "title", "SHA-256")
    blocks: list[Block] = [Table("Documents of this report", header, rows)]
    rows = tuple(_input_rows(documents))
    if rows:
        blocks.append(Table("Files they were made from", ("file", "role", "SHA-256", "used by"), rows))
    blocks += [*_versions(documents), *_engines(documents)]
    with_settings = [document for document in documents if "settings" in document.content] or documents
    made = [(document, table) for document in documents if (table := _made(document, with_settings[0])) is not None]
    blocks += [Fold(table.caption, (table,)) for document, table in made if document is with_settings[0]]
    others = tuple(replace(table, side=True) for document, table in made if document is not with_settings[0])
    blocks += [Fold(f"Settings of {counted(len(others), 'other document')}", others)] if others else []
    return Section("Provenance", tuple(blocks), tuple(_names_section(documents)), "provenance")


def _input_rows(documents: Sequence[Document]) -> Iterator[Row]:
    files = ((file, document.name) for document in documents for file in document.content.get("inputs", ()))
    inputs = grouped(
        ((file.get("name", file.get("title", "none")), file.get("role", "data"), file.get("sha256", "none")), name)
        for file, name in files
    )
    for (name, role, digest), names in inputs.items():
        yield name_text(name), role, digest, ", ".join(dict.fromkeys(names))


def _versions(documents: Sequence[Document]) -> Iterator[Block]:
    libraries: dict[str, dict[str, list[str]]] = {}
    for document in documents:
        for name, version in document.content.get("versions", {}).items():
            libraries.setdefault(name, {}).setdefault(version, []).append(document.name)
    if not libraries:
        return
    pairs = []
    for name, versions in libraries.items():
        several = len(versions) > 1
        text = "; ".join(f"{name_text(v)} ({', '.join(n)})" if several else name_text(v) for v, n in versions.items())
        pairs.append((name_text(name), text))
    yield facts("Versions", *pairs)


def _engines(documents: Sequence[Document]) -> Iterator[Block]:
    pairs = [
        (document.name, f"Storm, and the batch engine; {difference_text(engines['largest_difference'])}")
        for document in documents
        if (engines := document.content.get("engines")) is not None
    ]
    if pairs:
        yield facts("Engines", *pairs)


def _made(document: Document, first: Document) -> Table | None:
    """The command and the settings that a document was made with, without what the first one says already."""
    command = document.content.get("command")
    typed = command if command is None or isinstance(command, str) else shlex.join(command)
    pairs = [] if typed is None else [("command", typed)]
    settings, before = document.content.get("settings", {}), first.content.get("settings", {})
    same = {name for name, value in settings.items() if document is not first and before.get(name, settings) == value}
    own = {name: value for name, value in settings.items() if name not in same}
    unset = [name_text(name) for name, value in own.items() if value is None or value is False]
    pairs += [(name_text(name), plain(value)) for name, value in own.items() if name_text(name) not in unset]
    pairs += [("none, or no", ", ".join(unset))] if unset else []
    pairs += [("all others", f"as of {first.name}")] if same else []
    return facts(f"Settings of {document.name}", *pairs) if pairs else None


def _names_section(documents: Sequence[Document]) -> Iterator[Section]:
    """Names that were shortened, in full."""
    names = list(dict.fromkeys(name for document in documents for name in long_names(document.content)))
    files = (document.name for document in documents if len(document.name) > LONGEST_NAME)
    names += [name for name in files if name not in names]
    if not names:
        return
    shown = tuple(f"{name_text(name)[-18:]} {name}" for name in names[:MOST_NAMES])
    blocks: list[Block] = [Listing(shown)]
    if len(names) > MOST_NAMES:
        blocks.append(Paragraph(f"{len(names) - MOST_NAMES} more are in the documents.", "note"))
    yield Section("Long names and texts in full", (Fold(counted(len(names), "text"), tuple(blocks)),), listed=False)
