"""Whether the parts of a comparison follow from each other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from verifier.analysis.comparison import non_dominated
from verifier.evidence.following.numbers import Misfits, misfits, near, ordered
from verifier.evidence.points import ROUNDING

if TYPE_CHECKING:
    from verifier.questions.compare.compare_result import CompareResult
    from verifier.questions.compare.tables import RequirementComparison, SpecComparison


def compare_misfits(result: CompareResult) -> Misfits:
    """Who was drawn and how, chances that add up, the best possible planner, and who is dominated."""
    told, settings = [spec.spec for spec in result.specs], result.settings.specs
    if sorted(told) != sorted(settings):
        yield "/specs", f"expected the specs of the settings, {', '.join(settings)}, each once"
        return
    for s, spec in enumerate(result.specs):
        yield from _drawn(f"/specs/{s}", spec, result)
        for r, each in enumerate(spec.requirements):
            yield from _chances(f"/specs/{s}/requirements/{r}", each)
            yield from _reach(f"/specs/{s}/requirements/{r}/reach", each, result)
        yield from _pareto(f"/specs/{s}/pareto", spec)


def _drawn(where: str, spec: SpecComparison, result: CompareResult) -> Misfits:
    """Every detector with every planner of its settings, drawn as these say."""
    settings = result.settings.specs[spec.spec]
    names = [detector.name for detector in result.detectors if detector.name in settings]
    if [drawn.detector for drawn in spec.drawn] != names or len(names) != len(settings):
        yield f"{where}/drawn", f"expected {', '.join(settings)}, each once and in the order of the detectors"
        return
    pairs = [(name, planner) for name in names for planner in settings[name].planners]
    if sorted((each.detector, each.planner) for each in spec.configurations) != sorted(pairs):
        yield f"{where}/configurations", "expected each detector with each planner of its settings, once"
    for k, drawn in enumerate(spec.drawn):
        confidence = settings[drawn.detector].confidence
        if confidence is not None:
            yield from misfits(f"{where}/drawn/{k}/kind", drawn.kind, confidence.interval)
            yield from misfits(f"{where}/drawn/{k}/reason", drawn.reason, confidence.reason)
            yield from misfits("/level", result.level, confidence.level)
            yield from misfits("/draws", result.draws, confidence.draws)


def _chances(where: str, each: RequirementComparison) -> Misfits:
    """Somebody is best, one of two is better, and who is best is better than each other."""
    best, better = [entry.best for entry in each.entries], each.better
    if not near(math.fsum(best), 1):
        yield f"{where}/entries/0/best", f"expected probabilities that add up to 1, these to {math.fsum(best)}"
    if [len(row) for row in better] != [len(best)] * len(best):
        yield f"{where}/better", "expected a row and a column of each configuration"
        return
    for k, row in enumerate(better):
        for n, chance in enumerate(row):
            if not near(chance + better[n][k], 1):
                yield f"{where}/better/{k}/{n}", f"expected a probability that adds up to 1 with {better[n][k]}"
        if best[k] > min((chance for n, chance in enumerate(row) if n != k), default=1.0) + ROUNDING:
            yield f"{where}/entries/{k}/best", "expected at most the probability to be better than each other one"
    for k, curve in enumerate(each.curves):
        for n, rows in enumerate(zip(curve.lower, curve.upper, strict=True)):
            for ends in zip(*rows, strict=True):
                yield from ordered(f"{where}/curves/{k}/lower/{n}", ends, 0, 1)


def _reach(where: str, each: RequirementComparison, result: CompareResult) -> Misfits:
    """The best possible planner with each detector: no planner that was compared does better."""
    steps, detectors = result.settings.best_planner, [found.detector for found in each.reach]
    if detectors != ([] if steps is None else [detector.name for detector in result.detectors]):
        yield where, "expected one for each detector where `best_planner` is given, else none"
        return
    for k, found in enumerate(each.reach):
        yield from ordered(f"{where}/{k}/lower", (found.lower, found.upper), 0, 1)
        if not near(math.fsum(found.weights.values()), 1):
            yield f"{where}/{k}/weights", "expected weights that add up to 1"
        if steps is not None and not (found.steps == steps or (found.all_end and found.steps < steps)):
            yield f"{where}/{k}/steps", f"expected {steps}, or fewer where every episode ends"
        worst = [entry.probability for entry in each.entries if entry.detector == found.detector]
        better = max(worst) > found.upper + ROUNDING if each.larger_is_better else min(worst) < found.lower - ROUNDING
        if found.all_end and better:
            end = "upper" if each.larger_is_better else "lower"
            yield (
                f"{where}/{k}/{end}",
                "expected what no planner exceeds, and one that is compared does",
            )


def _pareto(where: str, spec: SpecComparison) -> Misfits:
    """Who is dominated follows from the probabilities in the worst scenarios."""
    if spec.pareto is None:
        return
    known = {each.name: each for each in spec.requirements}
    if not {spec.pareto.first, spec.pareto.second} <= known.keys():
        yield where, "expected two requirements of the spec"
        return
    asked = [known[name] for name in (spec.pareto.first, spec.pareto.second)]
    points = [[entry.probability * (1 if each.larger_is_better else -1) for entry in each.entries] for each in asked]
    follows = non_dominated(np.array(points).T).tolist()
    if list(spec.pareto.non_dominated) != follows:
        yield f"{where}/non_dominated", f"expected {follows}, which follows from the worst scenarios"
