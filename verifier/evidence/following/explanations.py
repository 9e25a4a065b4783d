"""Whether the parts of an explanation follow from each other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from verifier.base.documents import fraction_of
from verifier.evidence.resting import ROUNDING, SOLVING, Misfits, is_probability, known_names, misfits, near, once
from verifier.questions.explain.explain_result import DEVIATION_ASSUMES

if TYPE_CHECKING:
    from verifier.analysis.counterexamples.explanation import RunRecord
    from verifier.questions.explain.explain_result import Explained, ExplainResult, MapRecord, Violation


LABELS = frozenset({"true", "reported", "from", "to", "p_range_of", "label"})
"""Keys of an explanation below which a label of the matrices stands."""


def explain_misfits(result: ExplainResult, explanations: Sequence[Any]) -> Misfits:
    """Probabilities are some, and what is said of one cell or one set of corrections is the same wherever it is.

    Args:
        explanations: its explanations as JSON values.
    """
    yield from known_names(explanations, LABELS, result.labels, "/explanations")
    memory = result.channel.contexts is not None
    for at, each in enumerate(result.explanations):
        where = f"/explanations/{at}"
        for element, value in _probabilities(each):
            if not is_probability(value):
                yield where + element, f"expected a probability, got {value}"
        if each.world is not None and abs(each.world.probability - each.point.probability) > SOLVING:
            yield f"{where}/world/probability", f"expected {each.point.probability}, that of the scenario"
        yield from _asked(where, each, result)
        yield from _sets(f"{where}/violation", each.violation)
        yield from _cells(where, each)
        yield from _slopes(where, each, result.labels)
        yield from _columns(where, each)
        yield from _corrections(where, each)
        yield from _reports(where, each, memory=memory)
        for k, pattern in enumerate(each.violation.patterns):
            there = f"{where}/violation/patterns/{k}"
            for n, member in enumerate(pattern.members):
                yield from _run(f"{there}/members/{n}", member, each)
            members = math.fsum(member.probability for member in pattern.members)
            if members > pattern.probability + SOLVING:
                yield f"{there}/probability", f"expected at least {members}, that of its members"
            elif pattern.complete and members < pattern.probability - SOLVING:
                yield f"{there}/complete", f"expected members that make up {pattern.probability}, not {members}"
        yield from misfits(
            f"{where}/posterior_deviation_assumes", each.posterior_deviation_assumes, DEVIATION_ASSUMES
        )
        if each.map is not None:
            largest = each.violation.satisfies_the_formula
            yield from misfits(f"{where}/map/worst_is_largest", each.map.worst_is_largest, largest)
            for k, values in enumerate(each.map.values):
                if sorted(set(values)) != list(values):
                    yield f"{where}/map/values/{k}", "expected values in their order, each once"
            if not memory:
                yield from _mapped(f"{where}/map", each.map, each)


def _probabilities(each: Explained) -> Iterator[tuple[str, Any]]:
    """All that are told beside those of points and of the violation."""
    yield "/perfect_perception", each.perfect_perception
    found = each.violation
    listed: list[tuple[str, Any, tuple[str, ...]]] = [
        ("/violation/detection_errors", found.detection_errors, ("rate", "corrected")),
        ("/violation/causes", found.causes, ("probability", "corrected")),
        ("/violation/corrections", found.corrections, ("corrected",)),
        ("/violation/patterns", found.patterns, ("probability",)),
        ("/fixes", each.fixes, ("rate", "probability")),
        ("/moves", each.moves, ("rate_from", "rate_to")),
        ("/label_more", each.label_more, ("share_of_variance",)),
    ]
    for element, parts, names in listed:
        yield from ((f"{element}/{k}/{name}", getattr(part, name)) for k, part in enumerate(parts) for name in names)


def _asked(where: str, each: Explained, result: ExplainResult) -> Misfits:
    """No more is told than was asked for."""
    asked, found = result.explain, each.violation
    told = [("fixes", each.fixes, asked.rows), ("moves", each.moves, asked.rows)]
    told += [("violation/causes", found.causes, asked.rows), ("violation/patterns", found.patterns, asked.patterns)]
    told += [(f"violation/patterns/{k}/members", one.members, asked.members) for k, one in enumerate(found.patterns)]
    for name, parts, most in told:
        if len(parts) > most:
            yield f"{where}/{name}", f"expected at most {most}, as was asked for, got {len(parts)}"
    if (asked.map is None) != (each.map is None) or (each.map and asked.map and asked.map != each.map.variables):
        yield f"{where}/map", "expected the map that was asked for"
    drawn = [other.map.variables for other in result.explanations if other.map is not None]
    if each.map is not None and (each.map.variables != drawn[0] or len(set(drawn[0])) < len(drawn[0])):
        yield f"{where}/map/variables", f"expected the variables of every map, {', '.join(drawn[0])}"
    if list(each.asks_about) != sorted(set(each.asks_about)):
        yield f"{where}/asks_about", "expected classes by the alphabet, each once"


def _columns(where: str, each: Explained) -> Misfits:
    """Shares of the variance add up; a column's variance is at most what a variable between its slopes can have."""
    slopes = {(one.bin, one.true): one.slopes for one in each.gradient}
    yield from once(f"{where}/gradient", ((one.bin, one.true) for one in each.gradient))
    yield from once(f"{where}/fixes", ((fix.bin, fix.true, fix.reported) for fix in each.fixes))
    yield from once(f"{where}/moves", ((move.bin, move.true, move.from_, move.to) for move in each.moves))
    yield from once(f"{where}/label_more", ((one.bin, one.true) for one in each.label_more))
    for k, column in enumerate(each.label_more):
        here = slopes.get((column.bin, column.true))
        if here is None:
            yield f"{where}/label_more/{k}", "expected a column of the gradient"
            return
        # Of a mean over a Dirichlet of A > items: at most a quarter of the range squared, by A + 1 (Popoviciu).
        apart = max(here) - min(here)
        if not 0 <= column.p_range <= apart + SOLVING:  # an interval of rates is at most 1 wide
            yield f"{where}/label_more/{k}/p_range", f"expected at most {apart}, between its slopes"
        most = apart / 2 / math.sqrt(column.items + 1)
        if math.sqrt(max(column.share_of_variance, 0)) * each.posterior_deviation > most * (1 + ROUNDING) + ROUNDING:
            yield f"{where}/posterior_deviation", f"expected at most {most} from column {k}"
    shares = math.fsum(column.share_of_variance for column in each.label_more)
    if abs(shares - (each.posterior_deviation > 0)) > SOLVING:
        yield f"{where}/label_more", f"expected shares of the variance that add up, these to {shares}"


def _sets(where: str, found: Violation) -> Misfits:
    """Sets of detection errors are told once and in order; those that are not told apart count as others."""
    kinds = found.detection_errors
    yield from once(f"{where}/detection_errors", ((kind.bin, kind.true, kind.reported) for kind in kinds))
    for k, kind in enumerate(kinds):
        if kind.true == kind.reported:
            yield f"{where}/detection_errors/{k}/reported", "expected another label than the true one"
    hidden = [k for k, kind in enumerate(kinds) if not kind.told_apart]
    listed = [(f"causes/{k}", cause.detection_errors) for k, cause in enumerate(found.causes)]
    listed += [(f"corrections/{k}", best.detection_errors) for k, best in enumerate(found.corrections)]
    for element, positions in listed:
        if not set(hidden).isdisjoint(positions):
            yield f"{where}/{element}/detection_errors", "expected kinds that are told apart"
    yield from once(f"{where}/causes", ((cause.detection_errors, cause.others) for cause in found.causes))
    for k, cause in enumerate(found.causes):
        if cause.others and not hidden:
            yield f"{where}/causes/{k}/others", "expected none, as all detection errors are told apart"
    for k, pattern in enumerate(found.patterns):
        listed += [(f"patterns/{k}/steps", one) for step in pattern.steps for one in step]
        if any(list(step) != sorted(set(step)) or step == ((),) for step in pattern.steps):
            yield f"{where}/patterns/{k}/steps", "expected sets in order, each once, and not the empty one alone"
        if any(one == other for one, other in itertools.pairwise(pattern.steps)):
            yield f"{where}/patterns/{k}/steps", "expected repetitions in a row once"
    for name, parts in (("causes", found.causes), ("patterns", found.patterns if found.ranked else ())):
        if [part.probability for part in parts] != sorted((part.probability for part in parts), reverse=True):
            yield f"{where}/{name}", "expected the most probable first"
    for element, positions in listed:
        if list(positions) != sorted(set(positions)):
            yield f"{where}/{element}", "expected positions in order, each once"
    covered = 0.0 if found.covered is None else found.covered
    if found.complete and found.probability > SOLVING and covered < 1 - SOLVING - found.error:
        yield f"{where}/complete", f"expected patterns that make up the violation, these are {covered} of it"
    if found.complete and not found.ranked:
        yield f"{where}/ranked", "expected true: there are no other patterns"


def _reports(where: str, each: Explained, *, memory: bool) -> Misfits:
    """The planner is told of what it asks about; a detector without memory tells the same in the same place."""
    known = dict[Hashable, float]()
    for k, pattern in enumerate(each.violation.patterns):
        for n, member in enumerate(pattern.members):
            for s, step in enumerate(member.steps):
                told = f"{where}/violation/patterns/{k}/members/{n}/steps/{s}/reported"
                yield from once(told, (report.classes for report in step.reported))
                for r, report in enumerate(step.reported):
                    here = f"{told}/{r}"
                    if list(report.classes) != [name for name in each.asks_about if name in report.classes]:
                        yield f"{here}/classes", "expected classes that the planner asks about, by the alphabet"
                    at = report.classes, *sorted((thing.label, thing.bin) for thing in step.there)
                    if not memory and not near(known.setdefault(at, report.probability), report.probability):
                        yield f"{here}/probability", f"expected {known[at]}, as where the same was there"


def _mapped(where: str, told: MapRecord, each: Explained) -> Misfits:
    """Where the map tells all states apart, it has the probability of the scenario's initial state."""
    start = each.point.initial
    runs = [run for pattern in each.violation.patterns for run in pattern.members]
    if not runs or not runs[0].initial.keys() == set(told.variables) == start.keys():
        return
    place: Any = told.probability
    for variable, values in zip(told.variables, told.values, strict=True):
        place = place[values.index(start[variable])] if start[variable] in values else math.inf
        if place is None or place == math.inf:
            break
    if place is None or abs(place - each.point.probability) > SOLVING:
        yield f"{where}/probability", f"expected {each.point.probability} at the initial state, got {place}"


def _cells(where: str, each: Explained) -> Misfits:
    """The rate of a cell, and P with it corrected, wherever they are told."""
    rates, corrected = dict[tuple[int, str, str], float](), dict[tuple[int, str, str], float]()
    for k, kind in enumerate(each.violation.detection_errors):
        rates[kind.bin, kind.true, kind.reported] = kind.rate
        corrected[kind.bin, kind.true, kind.reported] = kind.corrected
        if kind.in_record is not None and len(kind.frames or ()) > kind.in_record:
            yield f"{where}/violation/detection_errors/{k}/in_record", "expected at least the frames that are named"
    for k, fix in enumerate(each.fixes):
        cell = fix.bin, fix.true, fix.reported
        if not near(rates.setdefault(cell, fix.rate), fix.rate):
            yield f"{where}/fixes/{k}/rate", f"expected {rates[cell]}, the rate of this cell"
        if abs(corrected.setdefault(cell, fix.probability) - fix.probability) > SOLVING:
            yield f"{where}/fixes/{k}/probability", f"expected {corrected[cell]}, with this cell corrected"
    for k, move in enumerate(each.moves):
        for name, label, rate in (("rate_from", move.from_, move.rate_from), ("rate_to", move.to, move.rate_to)):
            if not near(rates.setdefault((move.bin, move.true, label), rate), rate):
                yield (
                    f"{where}/moves/{k}/{name}",
                    f"expected {rates[move.bin, move.true, label]}, the rate of this cell",
                )


def _slopes(where: str, each: Explained, labels: tuple[str, ...]) -> Misfits:
    """Slopes from one label to another, and gains to first order, are told by those from the correct report."""
    known, number = dict[tuple[int, str, str], float](), {label: k for k, label in enumerate(labels)}
    for k, one in enumerate(each.gradient):
        if len(one.slopes) != len(labels):
            yield f"{where}/gradient/{k}/slopes", f"expected {len(labels)}, one for each label"
        known |= {(one.bin, one.true, label): slope for label, slope in zip(labels, one.slopes, strict=False)}
    for k, move in enumerate(each.moves):
        ends = [known.get((move.bin, move.true, label)) for label in (move.to, move.from_)]
        if ends[0] is None or ends[1] is None:
            yield f"{where}/moves/{k}", "expected a column of the gradient"
            return
        yield from misfits(f"{where}/moves/{k}/slope", move.slope, ends[0] - ends[1])
        jumps = any((move.bin, number[label], number[move.true]) in each.jumps for label in (move.from_, move.to))
        yield from misfits(f"{where}/moves/{k}/jumps", move.jumps, jumps)
    for k, fix in enumerate(each.fixes):
        slope = known.get((fix.bin, fix.true, fix.reported))
        if slope is None:
            yield f"{where}/fixes/{k}", "expected a column of the gradient"
            return
        yield from misfits(f"{where}/fixes/{k}/first_order", fix.first_order, -slope * fix.rate)
        jumps = (fix.bin, number[fix.true], number[fix.true]) in each.jumps
        yield from misfits(f"{where}/fixes/{k}/jumps", fix.jumps, jumps)


def _corrections(where: str, each: Explained) -> Misfits:
    """P with a set of kinds corrected is the same wherever it is told; larger sets are told where they gain more."""
    found = each.violation
    known: dict[tuple[int, ...], float] = {(k,): kind.corrected for k, kind in enumerate(found.detection_errors)}
    hidden = tuple(k for k, kind in enumerate(found.detection_errors) if not kind.told_apart)
    told: list[tuple[str, tuple[int, ...], Any]] = [
        (f"causes/{k}", (*cause.detection_errors, *(hidden if cause.others else ())), cause)
        for k, cause in enumerate(found.causes)
    ]
    told += [(f"corrections/{k}", best.detection_errors, best) for k, best in enumerate(found.corrections)]
    for element, kinds, part in told:
        expected = known.setdefault(tuple(sorted(kinds)), part.corrected) if kinds else 1 - found.probability
        if found.satisfies_the_formula and not kinds:
            expected = found.probability
        if abs(expected - part.corrected) > SOLVING + found.error:
            yield f"{where}/violation/{element}/corrected", f"expected {expected}, P with the same kinds corrected"
    sizes = [len(best.detection_errors) for best in found.corrections]
    gains = [best.corrected * (-1 if found.satisfies_the_formula else 1) for best in found.corrections]
    if sizes != sorted(set(sizes)) or gains != sorted(gains):
        yield f"{where}/violation/corrections", "expected sets of growing size that gain more and more"


def _run(where: str, run: RunRecord, each: Explained) -> Misfits:
    """The probability of a run is the product of its counted steps, whose reports make up theirs; before a step P is
    the mean over where it may lead, and nothing is left of it once the violation is certain."""
    if not run.irrevocable_after <= len(run.steps) or not run.counted_steps <= len(run.steps):
        yield f"{where}/counted_steps", f"expected at most {len(run.steps)} steps"
        return
    if any(run.initial.get(name) != value for name, value in each.point.initial.items()):
        yield f"{where}/initial", "expected the initial state of the scenario"
    product, before = 1.0, each.point.probability
    lost = 1.0 if each.violation.satisfies_the_formula else 0.0
    for k, step in enumerate(run.steps):
        probability = float(fraction_of(step.probability)) if isinstance(step.probability, str) else step.probability
        product *= probability if k < run.counted_steps else 1
        reported = math.fsum(report.probability for report in step.reported)
        for name, value in (("probability", probability), ("chance", step.chance)):
            if not is_probability(value):
                yield f"{where}/steps/{k}/{name}", f"expected a probability, got {value}"
        if step.reported and reported < probability - SOLVING:
            yield f"{where}/steps/{k}/probability", f"expected at most {reported}, that of its reports"
        if step.after.keys() != run.initial.keys():
            yield f"{where}/steps/{k}/after", f"expected the variables {', '.join(run.initial)}"
        least = probability * step.chance
        if not least - SOLVING <= before <= least + 1 - probability + SOLVING:
            yield f"{where}/steps/{k}/chance", f"expected what {before} before the step is the mean of"
        if k + 1 >= run.irrevocable_after and abs(step.chance - lost) > SOLVING:
            yield f"{where}/irrevocable_after", f"expected a step after which P is {lost:g}"
        before = step.chance
    yield from misfits(f"{where}/probability", run.probability, product)
