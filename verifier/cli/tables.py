"""Results as tables that a person reads."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from verifier.checking.verdicts import Verdict
from verifier.errors import one_line
from verifier.evidence.rounding import exact_or_number, interval_text, level_text
from verifier.evidence.words import counted
from verifier.results import Point, RequirementResult, RunResult

COLOURS = {Verdict.SATISFIED: "\x1b[32m", Verdict.VIOLATED: "\x1b[31m", Verdict.INCONCLUSIVE: "\x1b[33m"}
PLAIN = "\x1b[0m"


def run_table(result: RunResult, *, points: bool = False, colour: bool = False) -> str:
    """The table of `verify run`: per requirement its worst scenario, or with `points` every scenario.

    A requirement without a target has no worst scenario: its least and its greatest probability are shown.
    """
    planners = list(dict.fromkeys(each.planner for each in result.requirements))
    lines = [one_line(result.title), *choices_made(result, planners), ""]
    header = ["requirement", "target", "P", *_bounds_header(result), "scenario" if points else "worst scenario"]
    header.append("verdict")
    rows = [
        [*([each.planner] if len(planners) > 1 else []), each.name, each.target_text, *cells]
        for each in result.requirements
        for cells in _cells(each, points)
    ]
    table = aligned([*(["planner"] if len(planners) > 1 else []), *header], rows)
    lines += [_coloured(line) for line in table] if colour else table
    lines += _strategy_lines(result)
    lines += evidence_lines(result)
    lines += ["", *_summary(result)]
    return "\n".join(lines) + "\n"


def _cells(each: RequirementResult, points: bool) -> list[list[str]]:
    """P, bound, scenario and verdict of each row of a requirement."""
    if points:
        chosen = [("", point, point.verdict) for point in each.points]
    elif each.target is None and probability_text(each.best) != probability_text(each.worst):
        chosen = [("min: ", each.worst, each.verdict), ("max: ", each.best, each.verdict)]
    else:
        chosen = [("", each.worst, each.verdict)]
    return [
        [probability_text(point, each.target), *_bounds(point), f"{which}{point.scenario}", verdict.value]
        for which, point, verdict in chosen
    ]


def _bounds_header(result: RunResult) -> list[str]:
    found = result.settings["confidence"]
    if found is None:
        return ["numerical bound"]
    level = level_text(found["level"])
    return [f"{level} {found['interval']}", f"{level} guaranteed"]


def _bounds(point: Point) -> list[str]:
    found = point.sureness
    if found is None:
        return [bound_text(point)]
    return [
        interval_text(found.lower, found.upper),
        interval_text(found.guaranteed_lower, found.guaranteed_upper),
    ]


def choices_made(result: RunResult, planners: Sequence[str]) -> list[str]:
    """The files that went in, and every choice that is not the default."""
    word = "planner" if len(planners) == 1 else "planners"
    lines = [f"{', '.join(one_line(each.name) for each in result.inputs)}; {word} {', '.join(planners)}"]
    found = result.settings
    choices = [f"{name} = {value}" for name, value in found["set"].items()]
    choices += [f"where {name} = {one_line(value)}" for name, value in found["where"].items()]
    choices += [f"initially {found['initial']}"] if found["initial"] is not None else []
    choices += [name for name in ("canonical", "endless", "exact") if found[name]]
    choices += [f"score threshold {found['score_threshold']:g}"] if found["score_threshold"] is not None else []
    choices += [f"empty columns: {found['empty_columns']}"] if found["empty_columns"] != "error" else []
    choices += [f"false alarms: {found['false_alarms']}"] if found["false_alarms"] != "as_counted" else []
    decimals = found["round_transitions"]
    choices += [f"transitions rounded to {decimals} decimals"] if decimals is not None else []
    return [*lines, f"with {', '.join(choices)}"] if choices else lines


def probability_text(point: Point, target: Fraction | None = None) -> str:
    """A probability with six significant digits, more where they are needed to tell it from the target or from 1.

    As a fraction where that is exact and short.
    """
    return exact_or_number(point.probability, point.exact, target)


def bound_text(point: Point) -> str:
    """How far the probability can be off numerically: `+- 3e-13`, `exact`, or `certain` where the graph decides."""
    if point.exact is not None:
        return "exact"
    widest = _farthest(point)
    return "certain" if widest == 0 else f"+- {widest:.1e}"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Left-aligned columns, two spaces apart, under a header and a rule."""
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [header, *rows]]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return [line.rstrip() for line in lines]


def _coloured(line: str) -> str:
    for verdict, colour in COLOURS.items():
        if line.endswith(f"  {verdict.value}"):
            return line.removesuffix(verdict.value) + colour + verdict.value + PLAIN
    return line


def _strategy_lines(result: RunResult) -> list[str]:
    lines: list[str] = []
    for each in result.requirements:
        if each.strategies is not None:
            at = each.points.index(each.worst)
            low, high = each.strategies[at]
            lines.append(
                f"{each.name}, planner {each.planner}, {each.worst.scenario}: over every winning strategy P lies "
                f"in [{low:.6g}, {high:.6g}]"
            )
    return ["", *lines] if lines else []


def evidence_lines(result: RunResult) -> list[str]:
    """What would decide each inconclusive requirement, a blank line first; nothing where none is.

    It is looked for where guaranteed bounds decide.
    """
    lines: list[str] = []
    for each in result.requirements:
        if each.verdict is not Verdict.INCONCLUSIVE or result.settings["verdict_from"] != "guaranteed":
            continue
        where = f"{each.name}, planner {each.planner}, {each.worst.scenario}"
        if each.evidence is None:
            reason = "the probability is too close to the target, or the chain too large to plan for"
            lines.append(f"{where}: no amount of further data is known to decide it; {reason}")
            continue
        wanted = [f"{further} with true {true} in {at}" for true, at, _, further in each.evidence.columns]
        more = f" and in {len(wanted) - 3} more columns" if len(wanted) > 3 else ""
        lines.append(
            f"{where}: about {each.evidence.total} more items would decide it, if the rates stay what they are: "
            f"{', '.join(wanted[:3])}{more}"
        )
    return ["", *lines] if lines else []


def _summary(result: RunResult) -> list[str]:
    count = sum(len(each.points) for each in result.requirements)
    lines = [
        f"{counted(count, 'probability', 'probabilities')} by Storm {result.versions['storm']}; "
        f"the second engine differs by at most {result.largest_difference:.1e}.",
    ]
    if result.settings["round_transitions"] is None:
        lines.append(_numerical_line(result))
    lines += _sureness_lines(result)
    lines.append("The detector is taken to report anew, independently, in every step and for every object.")
    lines += [f"note: {one_line(remark)}" for remark in result.remarks]
    return [*lines, f"verdict: {result.verdict.value}"]


def _numerical_line(result: RunResult) -> str:
    if result.settings["exact"]:
        kind = "Each is exact for the given counts"
    elif result.settings["confidence"] is None:
        kind = "Each is off by no more than the numerical bound"
    else:
        off = max(_farthest(point) for each in result.requirements for point in each.points)
        return f"Each is off by at most {off:.1e} numerically."
    return f"{kind}; that does not say how sure the matrices are."


def _sureness_lines(result: RunResult) -> list[str]:
    """What the intervals and the guaranteed bounds are."""
    found = result.settings["confidence"]
    if found is None:
        return []
    matrices = {"every_state": "even if each state had its own matrix", "one_matrix": "for one matrix throughout"}
    kind = str(found["interval"]).capitalize()
    return [
        f"{kind} intervals from {found['draws']} draws of the matrices ({found['reason']}).",
        f"Guaranteed bounds hold all at once for {level_text(found['level'])} of all data sets or more "
        f"({found['events']} chances bounded by Clopper and Pearson; {matrices[found['semantics']]}).",
    ]


def _farthest(point: Point) -> float:
    return max(point.upper - point.probability, point.probability - point.lower)
