"""Whether the parts of an explanation follow from each other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from verifier.evidence.following.numbers import Misfits, misfits, near
from verifier.evidence.points import SOLVING, is_probability

if TYPE_CHECKING:
    from verifier.questions.explain.explain_result import Explained, ExplainResult, RunRecord


def explain_misfits(result: ExplainResult) -> Misfits:
    """Probabilities are some, and what is said of one cell or one set of corrections is the same wherever it is."""
    for at, each in enumerate(result.explanations):
        where = f"/explanations/{at}"
        for element, value in _probabilities(each):
            if not is_probability(value):
                yield where + element, f"expected a probability, got {value}"
        if each.world is not None and abs(each.world.probability - each.point.probability) > SOLVING:
            yield f"{where}/world/probability", f"expected {each.point.probability}, that of the scenario"
        yield from _cells(where, each)
        yield from _slopes(where, each, result.labels)
        yield from _corrections(where, each)
        for k, pattern in enumerate(each.violation.patterns):
            members = math.fsum(member.probability for member in pattern.members)
            if members > pattern.probability + SOLVING:
                yield (
                    f"{where}/violation/patterns/{k}/probability",
                    f"expected at least {members}, that of its members",
                )
            for n, member in enumerate(pattern.members):
                yield from _run(f"{where}/violation/patterns/{k}/members/{n}", member)
        shares = math.fsum(column.share_of_variance for column in each.label_more)
        if shares > 1 + SOLVING:
            yield f"{where}/label_more", f"expected shares of at most 1 together, these are {shares}"
        if each.map is not None:
            for k, values in enumerate(each.map.values):
                if sorted(set(values)) != list(values):
                    yield f"{where}/map/values/{k}", "expected values in their order, each once"


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
    known = {(one.bin, one.true, labels[k]): slope for one in each.gradient for k, slope in enumerate(one.slopes)}
    for k, move in enumerate(each.moves):
        ends = [known.get((move.bin, move.true, label)) for label in (move.to, move.from_)]
        if ends[0] is not None and ends[1] is not None:
            yield from misfits(f"{where}/moves/{k}/slope", move.slope, ends[0] - ends[1])
    for k, fix in enumerate(each.fixes):
        slope = known.get((fix.bin, fix.true, fix.reported))
        if slope is not None:
            yield from misfits(f"{where}/fixes/{k}/first_order", fix.first_order, -slope * fix.rate)


def _corrections(where: str, each: Explained) -> Misfits:
    """P with a set of kinds corrected is the same wherever it is told; larger sets are told where they gain more."""
    found = each.violation
    known: dict[tuple[int, ...], float] = {(k,): kind.corrected for k, kind in enumerate(found.detection_errors)}
    told: list[tuple[str, tuple[int, ...], Any]] = [
        (f"causes/{k}", cause.detection_errors, cause) for k, cause in enumerate(found.causes) if not cause.others
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


def _run(where: str, run: RunRecord) -> Misfits:
    """The probability of a run is the product of its counted steps, whose reports make up theirs."""
    if not run.irrevocable_after <= len(run.steps) or not run.counted_steps <= len(run.steps):
        yield f"{where}/counted_steps", f"expected at most {len(run.steps)} steps"
        return
    product = 1.0
    for k, step in enumerate(run.steps):
        probability = float(Fraction(step.probability)) if isinstance(step.probability, str) else step.probability
        product *= probability if k < run.counted_steps else 1
        reported = math.fsum(report.probability for report in step.reported)
        for name, value in (("probability", probability), ("chance", step.chance)):
            if not is_probability(value):
                yield f"{where}/steps/{k}/{name}", f"expected a probability, got {value}"
        if step.reported and reported < probability - SOLVING:
            yield f"{where}/steps/{k}/probability", f"expected at most {reported}, that of its reports"
    yield from misfits(f"{where}/probability", run.probability, product)
