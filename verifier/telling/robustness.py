"""Robustness, told once: mutated images, detection rates, predictions (Pezzementi 2018), campaigns, assessments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from verifier.base.arrays import grouped
from verifier.base.errors import one_line
from verifier.base.numbers import fixed, interval_text, level_text, number_text
from verifier.base.words import counted
from verifier.checking.verdicts import Verdict, worst_verdict
from verifier.robustness.assessment.document import AssessResult, SystemRecord
from verifier.robustness.campaign.result import BreakRow, CampaignDocument, CampaignResult, CampaignRow
from verifier.robustness.mutators import MUTATORS, AnyMutation
from verifier.robustness.mutators.batch_result import RESULT_FILE, MutateResult
from verifier.robustness.mutators.catalogue import Parameter
from verifier.robustness.predicting import PairModel, PredictResult, r_squared_text
from verifier.robustness.rates import AdrResult, RateRow
from verifier.telling import markdown, terminal
from verifier.telling.assessment import ROBUST, sections
from verifier.telling.blocks import Block, Cell, Fold, Listing, Paragraph, Row, Section, Table, name_text
from verifier.telling.markdown import escaped
from verifier.telling.terminal import block_lines, text_of, told_text

MOST_FAILURES = 50
"""Lines; a result with more says where the rest is."""


def shown_mutations(mutations: Sequence[AnyMutation]) -> str:
    """The mutations asked for, or every mutator with its parameters."""
    if mutations:
        return "".join(f"{mutation.text}\n" for mutation in mutations)
    lines = []
    for mutator in MUTATORS.values():
        lines.append(f"{mutator.name}: {mutator.summary}")
        lines += [
            f"  {parameter.name}: {parameter.meaning}; {parameter.expected}{_usual(parameter)}"
            for parameter in mutator.parameters
        ]
    return text_of(lines)


def _usual(parameter: Parameter) -> str:
    default = parameter.default
    if default is None:
        return ""
    return f" (default: {default})" if isinstance(default, str) else f" (default: {default:g})"


def mutate_table(study: MutateResult, folder: Path | None = None) -> str:
    """How many images each mutation gave, then what could not be made, and what one must know.

    `folder` is where they are, which a result does not know.
    """
    lines, failures = [*block_lines(_mutations(study))], list(_failures(study))
    if folder is not None:
        made = counted(study.counts.written, "image")
        lines += ["", f"{made} written to {folder}; the list is {RESULT_FILE} there"]
    lines += [f"failed: {failure}" for failure in failures[:MOST_FAILURES]]
    if len(failures) > MOST_FAILURES:
        lines.append(f"and {len(failures) - MOST_FAILURES} more failures, see {(folder or Path()) / RESULT_FILE}")
    lines += [f"note: {note}" for note in study.notes]
    return text_of(one_line(line) for line in lines)


def mutate_blocks(study: MutateResult) -> Iterator[Block]:
    """The same in a report."""
    counts = study.counts
    yield Paragraph(
        f"{counted(counts.images, 'image')}, {counts.unreadable} of them unreadable; "
        f"{counts.written} written, {counts.failures} failed."
    )
    yield _mutations(study)
    failures = tuple(_failures(study))
    if failures:
        more = (f"and {len(failures) - MOST_FAILURES} more",) if len(failures) > MOST_FAILURES else ()
        yield Fold("What failed", (Listing((*failures[:MOST_FAILURES], *more)),))


def _mutations(study: MutateResult) -> Table:
    there, failed = (
        Counter(one.mutation for image in study.images for one in getattr(image, kind))
        for kind in ("outputs", "failures")
    )
    rows = (
        (name_text(mutation.text), str(there[number]), str(failed[number]))
        for number, mutation in enumerate(study.mutations)
    )
    return Table("", ("mutation", "images", "failed"), tuple(rows))


def _failures(study: MutateResult) -> Iterator[str]:
    """One line for everything that failed for one image for one reason."""
    for image in study.images:
        for message, numbers in grouped((failure.message, failure.mutation) for failure in image.failures).items():
            which = "" if numbers[0] is None else f", {study.mutations[numbers[0]].text}"
            more = f" and {len(numbers) - 1} more" if len(numbers) > 1 else ""
            yield f"{image.name}{which}{more}: {message}"


def adr_table(result: AdrResult, *, colour: bool = False) -> str:
    """The tables of `verify adr`."""
    return told_text(result.title, adr_blocks(result), result.remarks, colour)


def predict_table(result: PredictResult, *, colour: bool = False) -> str:
    """The tables of `verify predict`."""
    blocks = [block for model in result.models for block in _model_blocks(model)]
    return told_text(result.title, iter(blocks), result.remarks, colour)


def campaign_table(result: CampaignResult, *, colour: bool = False) -> str:
    """The tables of `verify campaign`."""
    return told_text(result.study.title, campaign_blocks(result.study), result.remarks, colour)


def campaign_blocks(study: CampaignDocument) -> Iterator[Block]:
    """For each detector what it finds under every condition and in the worst case of groups; then the system."""
    rows = study.campaign
    metrics = list(dict.fromkeys([*(name for row in rows for name in row.area), *study.not_defined]))
    for detector in study.detectors:
        own = [row for row in rows if row.detector == detector]
        measures, areas = list[Row](), list[Row]()
        for row in own:
            shares = (row.average_precision, row.average_precision_interval), (row.recall, row.recall_interval)
            if row.images:
                measures.append(
                    (name_text(row.condition), row.severity, *(_ended(*share) for share in shares), _rate(row))
                )
            cells: list[Cell | str] = [name_text(row.condition)]
            for name in metrics:
                area, share = row.area.get(name), row.robustness.get(name)
                told = "" if share is None else f" ({fixed(share, 2)})"
                none = "not defined" if name in study.not_defined else "-"
                cells.append(none if area is None else Cell(f"{fixed(area, 3)}{told}", area, heat=share))
            areas.append(tuple(cells))
        names = ("condition", "severity", "AP", "recall", "ADR"), ("condition", *map(name_text, metrics))
        yield Table(f"{name_text(detector)} under each mutation", names[0], tuple(measures), sortable=True)
        if metrics:
            yield Table(f"Trade-off areas of {name_text(detector)}", names[1], tuple(areas), sortable=True)
        yield from _system_table(detector, [row for row in own if row.images])
    if study.breaks:
        yield _break_table(study.breaks)
    for parameter in dict.fromkeys(magnitude.parameter for magnitude in study.magnitudes):
        listed = [magnitude for magnitude in study.magnitudes if magnitude.parameter == parameter]
        table: tuple[Row, ...] = tuple(
            (
                name_text(magnitudes.condition),
                *(Cell(fixed(100 * share, 0), share, heat=share) for share in magnitudes.shares),
            )
            for magnitudes in listed
        )
        bins = ("condition", *(f"{value:g} .." for value in listed[0].lower))
        strength = {"alpha": "weight of the haze", "sigma_px": "blur in pixels"}[parameter]
        yield Table(f"Percent of the pixels of objects, by the {strength} ({parameter}) at their depth", bins, table)
    yield Paragraph(
        "AP is COCO's: the mean over IoU .50 to .95, of all that the detector reports; recall is that at IoU .5 of "
        "what reaches its threshold. Areas are those of the worst case of baseline and condition, in brackets by the "
        "baseline's own; intervals of AP, recall, ADR and lambda are percentile intervals over images, no closer "
        "than so few allow, those of P confidence bounds.",
        "note",
    )


def _system_table(detector: str, rows: Sequence[CampaignRow]) -> Iterator[Block]:
    """lambda and P under each condition, where one of them was asked."""
    asked = list(dict.fromkeys((one.name, one.planner) for row in rows for one in row.requirements))
    planners = {planner for _, planner in asked}
    header = ["condition"]
    header += ["lambda"] if any(row.collision is not None for row in rows) else []
    header += [
        f"P({name_text(name)}{', ' + name_text(planner) if len(planners) > 1 else ''})" for name, planner in asked
    ]
    lines = []
    for row in rows:
        known = {(one.name, one.planner): one for one in row.requirements}
        cells: list[Cell | str] = [name_text(row.condition)]
        cells += [_ended(row.collision, row.collision_interval)] if "lambda" in header else []
        cells += [_ended(one.probability, one.bounds, one.verdict) for key in asked for one in (known[key],)]
        lines.append(tuple(cells))
    if len(header) > 1:
        yield Table(f"The system with {name_text(detector)}", tuple(header), tuple(lines), sortable=True)


def _break_table(rows: Sequence[BreakRow]) -> Table:
    """Between which two conditions each requirement breaks, and which levels the data confirm."""
    lines = []
    for break_row in rows:
        between = (
            f"fails from {break_row.fails_at} on"
            if break_row.holds_at is None
            else f"{break_row.holds_at} to {break_row.fails_at}"
        )
        told = (
            "nowhere" if break_row.fails_at is None else f"{between}{', holds again' if break_row.recovers else ''}"
        )
        sure = [f"holds up to {break_row.sure_until}"] if break_row.sure_until else []
        sure += [f"fails from {break_row.sure_at} on"] if break_row.sure_at else []
        sweep = f"{break_row.mutation} by {break_row.parameter}"
        about = (
            name_text(break_row.requirement),
            name_text(break_row.detector),
            sweep,
            told,
            ", ".join(sure) or "nothing",
        )
        lines.append((*about, "yes" if break_row.can_narrow else "no"))
    header = ("requirement", "detector", "sweep", "breaks", "confirmed", "--refine helps")
    return Table("Between which measured levels requirements break", header, tuple(lines), sortable=True)


def _ended(value: float | None, ends: tuple[float, float] | None, verdict: str = "") -> Cell:
    """A number with its interval, and a verdict."""
    if value is None:
        return Cell("not defined")
    told = number_text(value) if ends is None else f"{number_text(value, least=3)} {interval_text(*ends)}"
    return Cell(f"{told}{', ' if verdict else ''}{verdict}", value, verdict.partition(",")[0])


def adr_blocks(result: AdrResult) -> Iterator[Block]:
    """ADR and its interval, with the share of the detector's own baseline in brackets; shaded by that."""
    cells = {(rate.condition, rate.detector): rate for rate in result.rates}
    rows: list[Row] = [
        (name_text(condition), *(_rate(cells.get((condition, name))) for name in result.detectors))
        for condition in result.conditions
    ]
    level = f"{level_text(result.settings['confidence'])} interval" if result.settings["draws"] else "no intervals"
    caption = f"ADR ({level}), and by the detector's own baseline"
    yield Table(caption, ("condition", *map(name_text, result.detectors)), tuple(rows), sortable=True)


def rates_sentence(result: AdrResult) -> str:
    """What a summary says of detection rates."""
    whom = counted(len(result.detectors), "detector")
    return f"Average detection rates of {whom} under {counted(len(result.conditions), 'condition')}."


def campaign_sentence(study: CampaignDocument) -> tuple[str, str]:
    """What a summary says of a campaign, and the worst verdict under any condition; none where nothing was asked."""
    rows = [row for row in study.campaign if row.images]
    conditions = counted(len({row.condition for row in rows}), "condition")
    verdict = worst_verdict(one.outcome for row in rows for one in row.requirements)
    told = f"{counted(len(study.detectors), 'detector')} of {name_text(study.title)} under {conditions}."
    return told, "" if verdict is Verdict.NO_TARGET else verdict.value


def _rate(row: RateRow | CampaignRow | None) -> Cell:
    if row is None:
        return Cell("not measured")
    if row.adr is None:
        return Cell("not defined")
    ends = "" if row.adr_interval is None else f" {interval_text(*row.adr_interval)}"
    share = "" if row.normalised is None else f" ({fixed(row.normalised, 2)})"
    heat = None if row.normalised is None else min(1.0, row.normalised)
    return Cell(f"{fixed(row.adr, 3)}{ends}{share}", row.adr, heat=heat)


def _model_blocks(model: PairModel) -> Iterator[Block]:
    """What was predicted beside what was observed, and how good that is."""
    rows: list[Row] = []
    for prediction in model.predictions:
        observed = "not measured" if prediction.observed is None else fixed(prediction.observed, 3)
        ends = "not defined" if prediction.interval is None else interval_text(*prediction.interval)
        mark = "" if prediction.unique else " (one of several)"
        names = name_text(prediction.target), name_text(prediction.detector)
        rows.append((*names, observed, Cell(f"{fixed(prediction.predicted, 3)}{mark}", prediction.predicted), ends))
    header = ("mutation", "detector", "observed", "predicted", "prediction interval")
    title = f"Normalised ADR under {name_text(model.target)}, predicted from {name_text(model.simple)}"
    yield Table(title, header, tuple(rows), sortable=True)
    quality = tuple(
        (name_text(name), "not defined" if value is None else fixed(value, 3))
        for name, value in model.r_squared.items()
    )
    yield Table("R^2 of each detector left out", ("detector", "R^2"), (*quality, ("pooled", r_squared_text(model))))
    weights = tuple(
        (name_text(name), *(fixed(value, 3) for value in own))
        for name, own in zip(model.targets, model.weights, strict=True)
    )
    yield Table("Weights of the model of all detectors", ("mutation", *map(name_text, model.features)), weights)


def assess_tables(study: AssessResult) -> str:
    """Everything for a terminal."""
    lines = [one_line(study.title)]
    for system in study.systems:
        title = one_line(system.title)
        lines += ["", "#" * len(title), title, "#" * len(title)]
        if system.citation:
            lines.append(f"source: {one_line(system.citation)}")
        for section in sections(system):
            lines += ["", *terminal.section_lines(section)]
        lines += ["", *(f"note: {one_line(note)}" for note in _notes(system)), f"{title}: {_verdict(system)}"]
    return terminal.text_of([*lines, f"verdict: {study.verdict.value}"])


def assess_markdown(study: AssessResult) -> str:
    """The report: a section per system, with the questions as headings."""
    lines = [f"# {escaped(study.title)}"]
    lines += ["", "Method: Wozniak, Segura and Mazo, Electronics 13(7), 1368, 2024."]
    lines += ["", *(f"* {escaped(file.role)}: {escaped(file.name)}, SHA-256 {file.sha256}" for file in study.inputs)]
    for system in study.systems:
        lines += ["", f"## {escaped(system.title)}", ""]
        lines += [f"Verdict: **{_verdict(system)}**."]
        if system.citation:
            lines += ["", f"Source: {escaped(system.citation)}"]
        notes = _notes(system)
        more = (Section("Notes", (Listing(notes),)),) if notes else ()
        for section in (*sections(system), *more):
            lines += markdown.section_lines(section, 3)
    return "\n".join(lines) + "\n"


def assess_sections(study: AssessResult) -> Iterator[Section]:
    """A section per system."""
    for system in study.systems:
        blocks = (Paragraph(f"Source: {system.citation}"),) if system.citation else ()
        yield Section(name_text(system.title), blocks, sections(system), verdict=system.verdict.value)


def assess_sentences(study: AssessResult) -> Iterator[tuple[str, str]]:
    """How each system maintains its performance, with the verdict, for a summary."""
    for system in study.systems:
        yield f"Robustness of {name_text(system.title)}: {_verdict(system)}.", system.verdict.value


def _notes(system: SystemRecord) -> tuple[str, ...]:
    return system.remarks if system.degradation is None else (*system.remarks, *system.degradation.remarks)


def _verdict(system: SystemRecord) -> str:
    return ROBUST.get(system.verdict.value, "no tolerance was given")
