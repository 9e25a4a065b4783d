"""Comparisons, told once: which planner and which detector is better, how sure that is, and what the gate says."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from verifier.base.arrays import grouped
from verifier.base.errors import one_line
from verifier.base.numbers import decimal_text, exact_or_number, interval_text, level_text, number_text, significant
from verifier.base.words import counted, listed
from verifier.checking.verdicts import Verdict, verdict_of
from verifier.questions.compare.compare_result import (
    CompareResult,
    Configuration,
    Curve,
    Entry,
    Reach,
    RequirementComparison,
    SpecComparison,
)
from verifier.questions.compare.metric_tables import Estimate
from verifier.study.records import DropGate
from verifier.telling.blocks import Block, Cell, Figure, Fold, Paragraph, Row, Table, name_text
from verifier.telling.grounds import (
    assumed_text,
    bounds_told,
    chance_text,
    channel_lines,
    difference_text,
    scenario_text,
)
from verifier.telling.pictures import Line, plot
from verifier.telling.run import drop_blocks, drop_gate_text, gate_verdict
from verifier.telling.run_summary import remark_lines
from verifier.telling.terminal import blocks_lines, text_of

BEST = "best possible"
MOST_FLIPS = 6
MOST_PAIRS = 12
MOST_LINES = 8
MOST_ROWS = 400
"""Points of a picture up to which they are also given as a table."""
MOST_SENTENCES = 4
"""Requirements of a spec of which a summary says who is ahead."""


def compare_table(result: CompareResult, *, pairs: bool = False) -> str:
    """The output of `verify compare`: by spec and requirement the configurations, then Pareto view, changes and gate.

    Args:
        pairs: also the chances of all pairs.
    """
    lines = [", ".join(one_line(file.name) for file in result.inputs)]
    for spec in result.specs:
        for requirement in spec.requirements:
            lines += ["", *blocks_lines(_requirement(result, spec, requirement))]
            if pairs:
                lines += ["", *blocks_lines(_pairs(spec, requirement))]
            lines += [*blocks_lines(_changes(spec, requirement)), *blocks_lines(_reversals(requirement))]
        for part in map(list, map(blocks_lines, (_metrics(spec), _pareto(spec)))):
            lines += ["", *part] if part else []
    if result.gate is not None:
        lines += ["", *blocks_lines(_gate(result.gate))]
    lines += ["", *(one_line(note) for note in _notes(result)), *remark_lines(result.remarks)]
    return text_of(lines)


def compare_blocks(result: CompareResult) -> Iterator[Block]:
    """What a report says: as the terminal says it, with the curves as pictures."""
    for spec in result.specs:
        for requirement in spec.requirements:
            yield from _requirement(result, spec, requirement)
            for curve in requirement.curves:
                yield from _curve(spec, requirement, curve)
            yield from _changes(spec, requirement)
            yield from _reversals(requirement)
            if len(spec.configurations) > 1:
                yield Fold("Probabilities of pairs", tuple(_pairs(spec, requirement)))
        yield from _metrics(spec)
        yield from _pareto(spec)
    if result.gate is not None:
        yield from _gate(result.gate)
    yield from (Paragraph(note, "note") for note in _notes(result))


def compare_sentences(result: CompareResult, file: str) -> Iterator[tuple[str, str]]:
    """Who is ahead in each requirement, and whether the gate failed: sentences with a verdict, for a summary."""
    for spec in result.specs:
        for requirement in spec.requirements[:MOST_SENTENCES]:
            if requirement.entries:
                yield f"Comparison {file}, {name_text(requirement.name)}: {_ahead(requirement.entries)}.", ""
    if result.gate is not None:
        yield f"Gate of {file}, {drop_gate_text(result.gate)}", gate_verdict(failed=result.gate.failed)


def _ahead(entries: Sequence[Entry]) -> str:
    """The configuration with the best chance of being the best; none where several have the same."""
    top = max(entry.best for entry in entries)
    best = [entry for entry in entries if entry.best == top]
    if len(best) > 1:
        return f"{len(best)} of {len(entries)} configurations are equally good"
    verdict = "" if best[0].verdict.value == "no target" else f", {best[0].verdict_text}"
    name = f"{name_text(best[0].detector)}, planner {name_text(best[0].planner)}"
    p = number_text(best[0].probability, least=3)
    return f"{name} is the best with probability {chance_text(top)}: P {p}{verdict}"


def _requirement(result: CompareResult, spec: SpecComparison, requirement: RequirementComparison) -> Iterator[Block]:
    """The configurations under one requirement."""
    before = f"{name_text(spec.spec)}, " if len(result.specs) > 1 else ""
    yield Paragraph(f"{before}{name_text(requirement.name)}: {requirement.target_text}", "lead")
    yield Paragraph(requirement.formula, "formula")
    target = None if requirement.target is None else requirement.target.probability
    bounded = any(entry.confidence_bounds is not None for entry in requirement.entries)
    rows = []
    for entry in requirement.entries:
        worst, ends = entry.worst_point, entry.interval
        row: Row = (
            name_text(entry.detector),
            name_text(entry.planner),
            _probability_cell(entry, target),
            Cell(interval_text(ends.lower, ends.upper), ends.lower),
            *([_bounds_cell(entry)] if bounded else []),
            Cell(chance_text(entry.best), entry.best, heat=entry.best),
            "profile" if entry.means else scenario_text(worst),
            Cell(entry.verdict_text, verdict=entry.verdict.value),
        )
        rows.append(row)
    for reach in requirement.reach:
        told = _reach_row(reach, requirement)
        rows.append((*told[:4], *([""] if bounded else []), *told[4:]))
    level = level_text(result.level)
    bounds = (f"{level} confidence bounds",) if bounded else ()
    rest = "probability to be best", "worst scenario", "verdict"
    header = ("detector", "planner", "P", f"{level} interval", *bounds, *rest)
    yield Table(f"Configurations for {name_text(requirement.name)}", header, tuple(rows), sortable=True)


def _probability_cell(entry: Entry, target: Fraction | None = None) -> Cell:
    """The probability that is compared: of the worst scenario, or a mean over the profile."""
    exact = None if entry.means else entry.worst_point.exact
    return Cell(exact_or_number(entry.probability, exact, target, least=3), entry.probability)


def _bounds_cell(entry: Entry) -> Cell:
    """The bounds that decide the verdict."""
    ends = entry.confidence_bounds
    return Cell("-") if ends is None or entry.means else Cell(interval_text(ends.lower, ends.upper), ends.lower)


def _reach_row(reach: Reach, requirement: RequirementComparison) -> Row:
    """The best possible planner, as one of those that are compared."""
    within = interval_text(reach.lower, reach.upper)
    there = " ".join(f"{name}={value}" for name, value in (*reach.constants.items(), *reach.initial.items()))
    said = ""
    if requirement.target is not None:
        model = verdict_of(reach.lower, reach.upper, requirement.target.comparison, requirement.target.probability)
        said = {Verdict.SATISFIED: "within reach", Verdict.VIOLATED: "out of reach"}.get(model, "open")
    return (name_text(reach.detector), BEST, Cell(within, reach.upper), "", "", name_text(there), said)


def short_name(configurations: Sequence[Configuration], configuration: int) -> str:
    """Detector and planner, as far as they differ among the configurations."""
    kinds = ("detector", "planner")
    differing = [kind for kind in kinds if len({getattr(one, kind) for one in configurations}) > 1] or kinds[:1]
    return one_line(", ".join(name_text(getattr(configurations[configuration], kind)) for kind in differing))


def _pairs(spec: SpecComparison, requirement: RequirementComparison) -> Iterator[Block]:
    """The chance that the configuration of a row is better than that of a column."""
    count = len(spec.configurations)
    if count > MOST_PAIRS:
        yield Paragraph(
            f"Probabilities of pairs: {count} configurations are too many to show; they are in the JSON document.",
            "note",
        )
        return
    rows = tuple(
        (
            f"{number} {short_name(spec.configurations, number - 1)}",
            *("" if at == number else chance_text(value) for at, value in enumerate(row, 1)),
        )
        for number, row in enumerate(requirement.better, 1)
    )
    yield Table(
        f"Probabilities of pairs for {name_text(requirement.name)}",
        ("better than", *(str(number + 1) for number in range(count))),
        rows,
    )


def _changes(spec: SpecComparison, requirement: RequirementComparison) -> Iterator[Block]:
    """Where two configurations change places, the most certain changes first."""
    changes = [(curve, change) for curve in requirement.curves for change in curve.ranking_changes]
    changes.sort(key=lambda pair: -min(pair[1].first_better, pair[1].second_better))
    for curve, change in changes[:MOST_FLIPS]:
        first = f"{short_name(spec.configurations, change.first)} is better at {_place_text(curve, change.before)}"
        second = f"{short_name(spec.configurations, change.second)} at {_place_text(curve, change.after)}"
        chances = chance_text(change.first_better), chance_text(change.second_better)
        yield Paragraph(f"The ranking changes: {first} (probability {chances[0]}), {second} ({chances[1]}).", "note")
    if len(changes) > MOST_FLIPS:
        more = len(changes) - MOST_FLIPS
        yield Paragraph(f"And {more} less certain ranking changes, in the JSON document.", "note")


def _metrics(spec: SpecComparison) -> Iterator[Block]:
    """Detection metrics of each class: of all bins, of those that matter, and of each drive."""
    if not spec.metrics:
        return
    rows: list[Row] = []
    for metric in spec.metrics:
        whole = (metric.average_precision, metric.recall, metric.precision, metric.recall_that_matters)
        rows.append((name_text(metric.detector), name_text(metric.label), *map(_estimate_cell, whole)))
    who = ("detector", "class")
    header: tuple[str, ...] = (*who, "AP", "recall", "precision", "recall in bins that matter")
    yield Table("Detection metrics, with 95 % intervals", header, tuple(rows), sortable=True)
    drawn, alone = (
        dict.fromkeys(name_text(metric.detector) for metric in spec.metrics if bool(metric.drives) is several)
        for several in (True, False)
    )
    kinds = [f"of {', '.join(drawn)}: drives drawn again"] if drawn else []
    kinds += [f"of {', '.join(alone)}: Wilson's, of independent items"] if alone else []
    yield Paragraph(
        f"Intervals of recall and precision {'; '.join(kinds)}. Those of AP: drives drawn again, or frames where the "
        "matrices know no drives.",
        "note",
    )
    bins: list[Row] = [
        (
            name_text(metric.detector),
            name_text(metric.label),
            own.bin,
            *map(_estimate_cell, (own.recall, own.precision)),
        )
        for metric in spec.metrics
        for own in metric.bins
        if own.matters
    ]
    if bins:
        yield Table(
            "In the bins that P depends on",
            (*who, "bin that matters", "recall", "precision"),
            tuple(bins),
            sortable=True,
        )
    drives: list[Row] = [
        (name_text(metric.detector), name_text(metric.label), name_text(own.drive), Cell(str(own.items), own.items),
         *(_share_cell(value) for value in (own.average_precision, own.recall, own.precision)))
        for metric in spec.metrics
        for own in metric.drives
    ]  # fmt: skip
    if drives:
        header = (*who, "drive", "items", "AP", "recall", "precision")
        yield Table("Detection metrics by drive", header, tuple(drives), sortable=True)
    if not any(metric.average_precision for metric in spec.metrics):
        yield Paragraph("No AP: count the matrices with verify confusion --average-precision.", "note")


def _estimate_cell(estimate: Estimate | None) -> Cell:
    if estimate is None or estimate.value is None:
        return Cell("-" if estimate is None else "no items")
    ends = (
        ""
        if estimate.lower is None or estimate.upper is None
        else f" {interval_text(estimate.lower, estimate.upper)}"
    )
    return Cell(f"{number_text(estimate.value, least=3)}{ends}", estimate.value)


def _share_cell(share: float | None) -> Cell:
    return Cell("-") if share is None else Cell(number_text(share), share)


def _reversals(requirement: RequirementComparison) -> Iterator[Block]:
    """Where P and average precision rank detectors differently, and which bins explain it."""
    for reversal in requirement.reversals:
        p = {entry.detector: entry.probability for entry in requirement.entries if entry.planner == reversal.planner}
        first, second = name_text(reversal.first), name_text(reversal.second)
        yield Paragraph(
            f"P and AP disagree (planner {name_text(reversal.planner)}): {first} has the better P "
            f"({number_text(p[reversal.first])} against {number_text(p[reversal.second])}) and the lower AP of "
            f"{name_text(reversal.label)} ({number_text(reversal.first_average_precision)} against "
            f"{number_text(reversal.second_average_precision)}).",
            "note",
        )
        rows = tuple(
            (own.bin, Cell(number_text(own.first), own.first), Cell(number_text(own.second), own.second))
            for own in reversal.bins
        )
        header = ("bin", f"P of {first} with rates of {second} there", f"P of {second} with rates of {first} there")
        yield Table("Bins that explain it, most first", header, rows)


def _place_text(curve: Curve, place: int) -> str:
    value = Fraction(curve.places[place])
    if curve.axis.endswith("(m)"):
        return f"{curve.axis.removesuffix(' (m)')} {float(value):g} m"
    return f"{name_text(curve.axis)} = {decimal_text(value)}"


def _curve(spec: SpecComparison, requirement: RequirementComparison, curve: Curve) -> Iterator[Block]:
    """P of every configuration along what was swept, as a picture and as a table."""
    lines = []
    columns = (zip(*table, strict=True) for table in (curve.probability, curve.lower, curve.upper))
    places = [float(Fraction(place)) for place in curve.places]
    for configuration, (p, low, high) in enumerate(zip(*columns, strict=True)):
        known = [(x, *ends) for x, *ends in zip(places, p, low, high, strict=True) if None not in ends]
        band = [(x, lower, upper) for x, _, lower, upper in known]
        lines.append(
            Line(short_name(spec.configurations, configuration), [(x, value) for x, value, _, _ in known], band)
        )
    axis = name_text(curve.axis)
    title = f"P of {name_text(requirement.name)} against {axis}"
    more = f" The first {MOST_LINES} of {len(lines)} configurations." if len(lines) > MOST_LINES else ""
    target = None if requirement.target is None else float(requirement.target.probability)
    yield Figure(plot(lines[:MOST_LINES], (axis, "P"), title, target), f"{title}; bands: intervals.{more}")
    rows = tuple(
        (line.name, Cell(significant(x, 6), x), Cell(number_text(p, least=3), p), Cell(interval_text(low, high), low))
        for line in lines
        for (x, p), (_, low, high) in zip(line.points, line.band, strict=True)
    )
    if len(rows) <= MOST_ROWS:
        table = Table(f"{title}: the points", ("configuration", axis, "P", "interval"), rows, sortable=True)
        yield Fold("The picture as a table", (table,), printed=False)


def _pareto(spec: SpecComparison) -> Iterator[Block]:
    pareto = spec.pareto
    if pareto is None:
        return
    known = {requirement.name: requirement for requirement in spec.requirements}
    first, second = known[pareto.first], known[pareto.second]
    count = len(spec.configurations)
    good = [short_name(spec.configurations, k) for k in range(count) if pareto.non_dominated[k]]
    both = f"{name_text(pareto.first)} and {name_text(pareto.second)}"
    yield Paragraph(f"{both} together: not dominated {'is' if len(good) == 1 else 'are'} {listed(good)}.")
    rows = []
    for k in range(count):
        both_entries = (requirement.entries[k] for requirement in (first, second))
        row: Row = (
            short_name(spec.configurations, k),
            *map(_probability_cell, both_entries),
            "yes" if pareto.non_dominated[k] else "-",
            Cell(chance_text(pareto.chances[k]), pareto.chances[k]),
        )
        rows.append(row)
    header = ("configuration", name_text(pareto.first), name_text(pareto.second), "not dominated", "chance")
    yield Table(f"Both at once: {both}", header, tuple(rows), sortable=True)


def _gate(gate: DropGate) -> Iterator[Block]:
    """Whether the gate failed, and what became of every requirement."""
    yield Paragraph(f"Gate, {drop_gate_text(gate)}", "verdict", gate_verdict(failed=gate.failed))
    yield from drop_blocks(gate)


def _notes(result: CompareResult) -> Iterator[str]:
    """Which engines, how many draws, and what verdicts and chances assume of each detector."""
    entries = [entry for spec in result.specs for asked in spec.requirements for entry in asked.entries]
    many = counted(sum(len(entry.points) for entry in entries), "probability", "probabilities")
    difference = difference_text(result.engines.largest_difference)
    yield f"{many} by Storm {result.versions['storm']} and by a second engine; {difference}."
    yield (
        f"Posterior probabilities and intervals: {result.draws} paired draws of the matrices (Monte Carlo error at "
        f"most about {significant(1 / result.draws**0.5, 1)})."
    )
    yield from _best_planner_notes(result)
    specs = result.settings.specs.values()
    named = [pair for spec in specs for pair in spec.items()]
    if named[0][1].verdict_from == "point":
        yield "Verdicts use the point estimates alone."
    else:
        own = max(map(len, specs))
        bases = ((bounds_told(mine.bounds, own), name_text(name)) for name, mine in named if mine.bounds)
        for text, names in (by_text := grouped(bases)).items():
            yield f"Verdicts{f' of {listed(list(dict.fromkeys(names)))}' if len(by_text) > 1 else ''} use the {text}."
    drawn = [drawn for spec in result.specs for drawn in spec.drawn]
    tests = (
        (name_text(missing.detector), assumed_text(missing.channel), "; ".join(channel_lines(missing.channel)))
        for missing in drawn
    )
    yield from dict.fromkeys(f"{detector}: assumes {assumed}: {told}." for detector, assumed, told in tests if told)
    yield from dict.fromkeys(f"{name_text(missing.detector)}: {missing.reason}." for missing in drawn)


def _best_planner_notes(result: CompareResult) -> Iterator[str]:
    """What the best possible planner is, and what its numbers rest on."""
    reaches = [reach for spec in result.specs for asked in spec.requirements for reach in asked.reach]
    if not reaches:
        return
    yield (
        f"{BEST.capitalize()}: no planner does better, and some planner does as well as the worse end of P. It sees "
        "what of the state is not hidden and what the planners of the model may ask, remembers everything, may draw "
        "lots, and is not told the environment: P is that of the worst one, or over the profile the mean by its "
        "weights. A world that decides knows all that was seen and done before the step, and does its worst. The "
        "measured matrices are taken for exact and successive reports for independent: where a detector errs again "
        "and again, collecting reports gains less."
    )
    if not all(reach.all_end for reach in reaches):
        steps = max(reach.steps for reach in reaches)
        yield f"{BEST.capitalize()}: an episode that has not ended after {counted(steps, 'step')} counts as lost."
