"""Comparisons as tables that a person reads."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from verifier.base.errors import one_line
from verifier.base.numbers import decimal_text, interval_text, level_text
from verifier.base.words import counted
from verifier.questions.compare.compare_result import CompareResult
from verifier.questions.compare.gate import Gate, rule_words
from verifier.questions.compare.tables import Contender, Course, RequirementComparison, SpecComparison
from verifier.telling.grounds import bounds_told, channel_lines
from verifier.telling.run import probability_text
from verifier.telling.run_summary import remark_lines
from verifier.telling.terminal import aligned

MOST_FLIPS = 6
MOST_PAIRS = 12


def compare_table(result: CompareResult, *, pairs: bool = False) -> str:
    """The output of `verify compare`: per spec and requirement the contenders, then Pareto view, flips and gate.

    Args:
        result: what was found.
        pairs: also the chances of all pairs.
    """
    lines = [", ".join(one_line(each.name) for each in result.inputs)]
    for spec in result.specs:
        if len(result.specs) > 1:
            lines += ["", f"spec {spec.spec}"]
        for each in spec.requirements:
            lines += ["", f"{each.name}: P {each.target_text}", *_contender_table(each, result.level)]
            if pairs:
                lines += ["", *_pair_table(spec, each)]
            lines += list(_flip_lines(spec, each))
        lines += list(_pareto_lines(spec))
    if result.gate is not None:
        lines += ["", *_gate_lines(result.gate, len(result.specs) > 1)]
    return "\n".join([*lines, "", *_notes(result)]) + "\n"


def _contender_table(each: RequirementComparison, level: float) -> list[str]:
    planners = {entry.contender.planner for entry in each.entries}
    detectors = {entry.contender.detector for entry in each.entries}
    header = [
        *(["detector"] if len(detectors) > 1 or len(planners) == 1 else []),
        *(["planner"] if len(planners) > 1 else []),
        "P",
        f"{level_text(level)} interval",
        "best",
        "worst scenario",
        "verdict",
    ]
    rows = []
    for entry in each.entries:
        names = {"detector": one_line(entry.contender.detector), "planner": one_line(entry.contender.planner)}
        rows.append(
            [
                *(names[name] for name in header if name in names),
                probability_text(entry.worst_point, each.target),
                interval_text(entry.lower, entry.upper),
                chance_text(entry.best),
                str(entry.worst_point.scenario),
                entry.verdict_text,
            ]
        )
    return aligned(header, rows)


def chance_text(chance: float) -> str:
    """A chance with two decimals; `<.01` and `>.99` where it is not quite 0 or 1."""
    if 0 < chance < 0.01:
        return "<.01"
    if 0.99 < chance < 1:
        return ">.99"
    return f"{chance:.2f}".lstrip("0") if 0 < chance < 1 else f"{chance:g}"


def _pair_table(spec: SpecComparison, each: RequirementComparison) -> list[str]:
    count = len(spec.contenders)
    if count > MOST_PAIRS:
        return [f"chances of pairs: {count} contenders are too many to show; they are in the JSON document"]
    header = ["better than", *(f"{k + 1}" for k in range(count))]
    rows = [
        [f"{k + 1} {_name(spec, k)}", *("" if k == at else chance_text(value) for at, value in enumerate(row))]
        for k, row in enumerate(each.better)
    ]
    return aligned(header, rows)


def _name(spec: SpecComparison, contender: int) -> str:
    return short_name(spec.contenders, contender)


def short_name(contenders: tuple[Contender, ...], contender: int) -> str:
    """Detector and planner, as far as they differ among the contenders."""
    mine = contenders[contender]
    detectors, planners = ({getattr(each, kind) for each in contenders} for kind in ("detector", "planner"))
    parts = [*([mine.detector] if len(detectors) > 1 else []), *([mine.planner] if len(planners) > 1 else [])]
    return one_line(", ".join(parts) or mine.detector)


def _flip_lines(spec: SpecComparison, each: RequirementComparison) -> Iterator[str]:
    found = [(course, flip) for course in each.courses for flip in course.flips]
    found.sort(key=lambda pair: -min(pair[1].first_ahead, pair[1].second_ahead))
    for course, flip in found[:MOST_FLIPS]:
        first = f"{_name(spec, flip.first)} is ahead at {_place(course, flip.before)}"
        second = f"{_name(spec, flip.second)} at {_place(course, flip.after)}"
        chances = chance_text(flip.first_ahead), chance_text(flip.second_ahead)
        yield f"order changes: {first} (chance {chances[0]}), {second} ({chances[1]})"
    if len(found) > MOST_FLIPS:
        yield f"and {len(found) - MOST_FLIPS} less certain changes of order, in the JSON document"


def _place(course: Course, place: int) -> str:
    value: Fraction = course.places[place]
    if course.axis.endswith("(m)"):
        return f"{course.axis.removesuffix(' (m)')} {float(value):g} m"
    return f"{course.axis} = {decimal_text(value)}"


def _pareto_lines(spec: SpecComparison) -> Iterator[str]:
    pareto = spec.pareto
    if pareto is None:
        return
    known = {each.name: each for each in spec.requirements}
    first, second = known[pareto.first], known[pareto.second]
    header = ["contender", pareto.first, pareto.second, "non-dominated", "chance"]
    rows = [
        [
            _name(spec, k),
            probability_text(first.entries[k].worst_point),
            probability_text(second.entries[k].worst_point),
            "yes" if pareto.non_dominated[k] else "-",
            chance_text(pareto.chances[k]),
        ]
        for k in range(len(spec.contenders))
    ]
    yield ""
    yield f"both at once: {pareto.first} and {pareto.second}"
    yield from aligned(header, rows)


def _gate_lines(gate: Gate, many_specs: bool) -> Iterator[str]:
    header = ["requirement", "detector", "planner", "before", "now", "drop", "gate"]
    rows = []
    for each in gate.drops:
        name = f"{each.spec}: {each.requirement}" if many_specs else each.requirement
        chance = "" if each.chance is None else f" (chance {chance_text(each.chance)})"
        drop = "0" if each.drop == 0 else f"{each.drop:+.3g}"
        state = "FAILED" if each.failed else "passed"
        names = [one_line(each.detector), one_line(each.planner)]
        rows.append([name, *names, f"{each.before:.6g}", f"{each.now:.6g}", drop, state + chance])
    yield f"against {one_line(gate.baseline.name)}, largest drop allowed {decimal_text(gate.max_drop)}"
    yield from aligned(header, rows)
    yield f"a drop counts {rule_words(gate.least_chance)}"
    failed = [each for each in gate.drops if each.failed]
    for each in failed:
        yield (
            f"{each.requirement} dropped by {each.drop:.6g}, from {each.before:.6g} to {each.now:.6g} "
            f"({one_line(each.detector)}, {one_line(each.planner)})"
        )
    yield f"gate: {'failed' if failed else 'passed'}"


def _notes(result: CompareResult) -> Iterator[str]:
    count = sum(len(entry.points) for spec in result.specs for each in spec.requirements for entry in each.entries)
    yield (
        f"{counted(count, 'probability', 'probabilities')} by Storm {result.versions['storm']}; "
        f"the second engine differs by at most {result.largest_difference:.1e}."
    )
    yield (
        f"Chances and intervals are from {result.draws} common draws of the matrices; a chance is off by about "
        f"{1 / result.draws**0.5:.1g} at most."
    )
    yield from _verdicts_from(result)
    drawn = (each for spec in result.specs for each in spec.drawn)
    yield from dict.fromkeys(f"{one_line(each.detector)}: {each.reason}." for each in drawn)
    yield from remark_lines(result.remarks)


def _verdicts_from(result: CompareResult) -> Iterator[str]:
    """What is compared with the targets, and what that assumes of each detector's data."""
    settings = [each for spec in result.settings["specs"].values() for each in spec.values()]
    if settings[0].verdict_from == "point":
        yield "Verdicts use the point estimates alone."
    else:
        bounds = [each.bounds for each in settings if each.bounds is not None]
        yield from dict.fromkeys(f"Verdicts use the {one_line(bounds_told(each))}." for each in bounds)
    tests = dict.fromkeys(
        f"{one_line(each.detector)}: {one_line(line)}"
        for spec in result.specs
        for each in spec.drawn
        for line in channel_lines(each.channel)
    )
    if tests:
        yield "Assumes a memoryless detector. Test of successive frames:"
        yield from (f"  {line}" for line in tests)
