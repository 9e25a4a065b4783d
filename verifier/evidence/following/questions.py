"""Whether answers about required recalls, and runs, follow from themselves."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING

from verifier.base.arrays import grouped
from verifier.base.documents import fraction_of
from verifier.checking.verdicts import Verdict
from verifier.evidence.resting import ROUNDING, SOLVING, Misfits, misfits, once, ordered
from verifier.study.points import block_text

if TYPE_CHECKING:
    from verifier.questions.require.require_result import Answer, RequireResult
    from verifier.study.results import RunResult


def require_misfits(result: RequireResult) -> Misfits:
    """What an answer says of its own points, and the recalls that its value stands for."""
    asked = result.settings.floor
    yield from once("/answers", ((answer.planner, *sorted(answer.constants.items())) for answer in result.answers))
    for at, answer in enumerate(result.answers):
        where = f"/answers/{at}"
        if answer.cells and (answer.floor is None) != (asked is None):
            yield f"{where}/floor", "expected floors where the settings ask for them, and nowhere else"
        elif answer.floor is not None and asked is not None:
            for name in ("rest", "semantics"):
                yield from misfits(f"{where}/floor/{name}", getattr(answer.floor, name), getattr(asked, name))
        stated = {
            "met_as_measured": answer.measured.verdict is Verdict.SATISFIED,
            "planner_is_limit": answer.perfect.verdict is Verdict.VIOLATED,
        }
        for name, follows in stated.items():
            yield from misfits(f"{where}/{name}", getattr(answer, name), follows)
        yield from _outcome(where, answer)
        for name in ("gaps", "curve"):
            places = [fraction_of(end[0]) for end in getattr(answer, name)]
            if sorted(set(places)) != sorted(places) or any(place < 0 for place in places):
                yield f"{where}/{name}", "expected each place once, from 0 on"
        for k, (low, high) in enumerate(answer.gaps):
            yield from ordered(f"{where}/gaps/{k}", (float(fraction_of(low)), float(fraction_of(high))), 0)
        yield from _recalls(where, answer, result.mode, 10**result.settings.decimals)
        yield from _target(where, answer, result)
        yield from _cells(where, answer, result)
        yield from _floor(where, answer, result)


def _cells(where: str, answer: Answer, result: RequireResult) -> Misfits:
    """Cells of the matrices, each once; the search goes along its path, and all points are fractions, or none."""
    exact = {point.exact is not None for point in answer.points}
    if len(exact) > 1 or (result.settings.exact and not all(exact)):
        yield where, "expected fractions of all points, or of none"
    yield from once(f"{where}/cells", ((cell.bin, cell.label) for cell in answer.cells))
    for k, cell in enumerate(answer.cells):
        hits, items = cell.measured.hits, cell.measured.items
        if hits > items:
            yield f"{where}/cells/{k}/measured/hits", "more hits than items"
        elif cell.measured.recall != hits / items:
            yield f"{where}/cells/{k}/measured/recall", f"expected {hits / items}, hits by items"
        for name, known in () if result.matrices is None else (("bin", "bins"), ("label", "labels")):
            if getattr(cell, name) not in getattr(result.matrices, known):
                yield f"{where}/cells/{k}/{name}", f"expected one of the {known} of the matrices"
    places = [fraction_of(place) * (-1 if result.mode == "factor" else 1) for place, _ in answer.curve]
    if places != sorted(places):
        yield f"{where}/curve", "expected places in the order of the search"


def _floor(where: str, answer: Answer, result: RequireResult) -> Misfits:
    """Floors are where the target is proven, no lower than what is required; no matrix above them is beyond the
    bound, that of perfect recall least of all."""
    told, target = answer.floor, result.requirement.target
    if told is None:
        return
    side, proven = -1 if target.is_upper else 1, told.floors is not None
    apart = side * (Fraction(told.proven) - target.probability)
    if apart < -ROUNDING if proven else apart > ROUNDING:
        yield f"{where}/floor/proven", f"expected a bound that {'meets' if proven else 'misses'} the target {target}"
    floors = [fraction_of(floor) for floor in told.floors or ()]
    for k, (floor, cell) in enumerate(zip(floors, answer.cells, strict=proven)):
        if not fraction_of(cell.required or "0") <= floor <= 1:
            yield f"{where}/floor/floors/{k}", f"expected a floor from the required {cell.required or 0} to 1"
    above = [(f"{where}/perfect/probability", answer.perfect.probability)] if told.rest == "free" else []
    if result.mode in ("common", "bin", "cell") and floors:
        least = max(floors)
        tried = ((k, value) for k, (place, value) in enumerate(answer.curve) if fraction_of(place) >= least)
        above += [(f"{where}/curve/{k}/1", value) for k, value in tried]
    for element, value in above if proven else ():
        if side * (value - told.proven) < -SOLVING:
            yield element, f"expected a probability within the bound of the floors, {told.proven}"


def _outcome(where: str, answer: Answer) -> Misfits:
    """What there is with each outcome."""
    given, independent = answer.outcome.value == "found", answer.outcome.value == "independent"
    if (answer.value is not None) != given:
        yield f"{where}/value", f"expected {'a value' if given else 'none'}, as the outcome is {answer.outcome.value}"
    for name, there in (("at_value", answer.at_value is not None), ("cells", bool(answer.cells))):
        if there == independent:
            yield f"{where}/{name}", f"expected {'nothing' if there else 'something'}: {answer.outcome.value}"
    for k, cell in enumerate(answer.cells):
        if (cell.required is not None) != given:
            said = f"expected a recall where there is a value, and {cell.required} is not"
            yield f"{where}/cells/{k}/required", said
        if cell.required is not None and not 0 <= fraction_of(cell.required) <= 1:
            yield f"{where}/cells/{k}/required", f"expected a recall from 0 to 1, got {cell.required}"
    told = answer.at_value
    if given and told is not None and told.verdict not in (Verdict.SATISFIED, Verdict.INCONCLUSIVE):
        said = f"expected satisfied or inconclusive where one is found, got {told.verdict}"
        yield f"{where}/at_value/verdict", said
    if told is not None and answer.value is not None:
        for k, (place, value) in enumerate(answer.curve):
            if fraction_of(place) == fraction_of(answer.value) and abs(value - told.probability) > SOLVING:
                yield f"{where}/curve/{k}/1", f"expected {told.probability}, as at the value"


def _recalls(where: str, answer: Answer, mode: str, whole: int) -> Misfits:
    """The recalls of the cells: all the value, or 1 less the value times the measured misses, in parts of 1/whole."""
    if answer.value is None or mode == "cost":
        return
    value = fraction_of(answer.value)
    for k, cell in enumerate(answer.cells):
        follows = value
        if mode == "factor":
            follows = Fraction(whole - math.floor(value * whole * (1 - cell.measured.exact)), whole)
        if cell.required is not None and abs(fraction_of(cell.required) - follows) > ROUNDING:
            yield f"{where}/cells/{k}/required", f"expected {float(follows)}, which follows from the value {value}"


def _target(where: str, answer: Answer, result: RequireResult) -> Misfits:
    """The value is the first from which on all that was tried meets the target."""
    if answer.value is None or result.mode == "cost":
        return
    target, value, sign = result.requirement.target, fraction_of(answer.value), -1 if result.mode == "factor" else 1
    goal, side = float(target.probability), -1 if target.is_upper else 1
    before = [row for row in answer.curve if sign * (fraction_of(row[0]) - value) < 0]
    nearest = max(before, key=lambda end: sign * fraction_of(end[0]), default=None)
    if nearest is not None and side * (nearest[1] - goal) > SOLVING:
        yield "/requirement/probability", f"expected a target that {nearest[0]} does not meet, as a value is {value}"
    for k, (place, told) in enumerate(answer.curve):
        if sign * (fraction_of(place) - value) >= 0 and side * (told - goal) < -SOLVING:
            yield f"{where}/curve/{k}/1", f"expected what meets the target, as from the value {value} on"


def scenarios_left_out(run: RunResult) -> Misfits:
    """Every requirement is told under every planner and in every scenario; if intervals were asked for, with them.

    The grid is what a run says of it: its planners and environments, each with every combination of the values of
    swept constants, and in each of these blocks the same initial states for every requirement.
    """
    settings, asked = run.settings, run.requirements
    told = {(requirement.name, requirement.planner) for requirement in asked}
    names = dict.fromkeys(requirement.name for requirement in asked)
    for name, planner in itertools.product(names, settings.planners):
        if (name, planner) not in told:
            yield "/requirements", f"expected {name} under the planner {planner} too"
    points = (point for requirement in asked for point in requirement.points)
    swept = grouped((pair[0], pair) for point in points for pair in point.constants.items())
    grid = list(itertools.product(*(dict.fromkeys(pairs) for pairs in swept.values())))
    blocks = {block_text(place, dict(values)): set[str]() for place in settings.environments for values in grid}
    for k, requirement in enumerate(asked):
        for n, point in enumerate(requirement.points):
            if point.block not in blocks:
                yield f"/requirements/{k}/points/{n}", f"expected a scenario of the settings, got {point.block}"
                return
            blocks[point.block].add(str(point.initial))
            if settings.confidence is not None and point.uncertainty is None:
                yield f"/requirements/{k}/points/{n}", "expected uncertainty, as the settings have confidence"
    whole = {(block, initial) for block, states in blocks.items() for initial in states or {"one"}}
    for k, requirement in enumerate(asked):
        for block, initial in sorted(whole - {(point.block, str(point.initial)) for point in requirement.points})[:1]:
            yield f"/requirements/{k}/points", f"expected the scenario {block} with the initial state {initial} too"
