"""Results as tables that a person reads."""

from __future__ import annotations

from collections.abc import Sequence

from verifier.checking.verdicts import Verdict
from verifier.results import Point, RunResult

COLOURS = {Verdict.SATISFIED: "\x1b[32m", Verdict.VIOLATED: "\x1b[31m", Verdict.INCONCLUSIVE: "\x1b[33m"}
PLAIN = "\x1b[0m"
LARGEST_DENOMINATOR = 10**12


def run_table(result: RunResult, *, points: bool = False, colour: bool = False) -> str:
    """The table of `verify run`: one row per requirement with its worst scenario, or one per scenario."""
    planners = list(dict.fromkeys(each.planner for each in result.requirements))
    lines = [result.title, _inputs_line(result, planners), ""]
    header = [
        "requirement",
        "target",
        "P",
        "numerical bound",
        "every scenario" if points else "worst scenario",
        "verdict",
    ]
    if len(planners) > 1:
        header.insert(0, "planner")
    rows = []
    for each in result.requirements:
        for point in each.points if points else (each.worst,):
            verdict = point.verdict if points else each.verdict
            row = [each.name, each.target_text, probability_text(point), bound_text(point), str(point.scenario)]
            rows.append([*([each.planner] if len(planners) > 1 else []), *row, verdict.value])
    lines += aligned(header, rows)
    if colour:
        lines = [_coloured(line) for line in lines]
    lines += _strategy_lines(result)
    lines += ["", *_summary(result)]
    return "\n".join(lines) + "\n"


def _inputs_line(result: RunResult, planners: Sequence[str]) -> str:
    names = ", ".join(each.name for each in result.inputs)
    word = "planner" if len(planners) == 1 else "planners"
    return f"{names}; {word} {', '.join(planners)}"


def probability_text(point: Point) -> str:
    """A probability with six significant digits, or as a fraction where that is exact and short."""
    if point.exact is not None and point.exact.denominator < LARGEST_DENOMINATOR:
        return f"{point.exact} = {point.probability:.6g}" if point.exact.denominator > 1 else str(point.exact)
    return f"{point.probability:.6g}"


def bound_text(point: Point) -> str:
    """How far the probability can be off numerically: `+- 3e-13`, `exact`, or `certain` where the graph decides."""
    if point.exact is not None:
        return "exact"
    widest = max(point.upper - point.probability, point.probability - point.lower)
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


def _summary(result: RunResult) -> list[str]:
    count = sum(len(each.points) for each in result.requirements)
    lines = [
        f"{count} probabilities by Storm {result.versions['storm']}; the second engine differs by at most "
        f"{result.largest_difference:.1e}.",
        "Every probability is exact for the given counts. That does not say how sure the matrices are."
        if result.settings["exact"]
        else "The bounds are numerical: solving and rounding. They do not say how sure the matrices are.",
    ]
    lines += [f"note: {remark}" for remark in result.remarks]
    return [*lines, f"verdict: {result.verdict.value}"]
