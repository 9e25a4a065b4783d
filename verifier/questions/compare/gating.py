"""A gate for continuous integration: no requirement may have dropped by more than so much against an earlier result.

The earlier result (the *baseline*) is the document of a `verify run` or a `verify compare`. What counts for each
requirement is its worst probability over the same scenarios; a baseline over other scenarios, requirements or
planners is refused, because a gate that compares nothing is always open.

A drop fails the gate by one of two rules:

point       the probabilities of the given matrices differ by more than is allowed, beyond the numerical bounds of
            both. How uncertain the data leave both of them does not count.
probability:C
            the drop is larger than allowed with at least the probability C, by common draws of the earlier and the
            later matrices: the paired test of `verify compare`. With C = 0.95 the gate fails where a drop is all but
            sure; with C = 0.05 it fails unless a drop can all but be ruled out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from verifier.base.errors import InputError, Place, shown
from verifier.base.numbers import decimal_text
from verifier.questions.compare.compare_result import (
    CompareResult,
    Configuration,
    Entry,
    RequirementComparison,
    SpecComparison,
)
from verifier.questions.compare.scores import Scores
from verifier.questions.settings import LookSettings
from verifier.study.options import Selection
from verifier.study.points import Point, ProfileMean
from verifier.study.records import BaselineFile, Drop, DropGate
from verifier.study.results import RequirementResult, RunResult


def gate_of(
    baseline: Baseline,
    asked: LookSettings,
    compared: Sequence[tuple[SpecComparison, Scores]],
    hashes: Mapping[str, str],
    selection: Selection,
) -> DropGate:
    """What became of every requirement of the baseline.

    Args:
        baseline: the earlier result.
        asked: the drop that is allowed, and by which rule.
        compared: the specs with their scores.
        hashes: detector -> SHA-256 of its matrices.
        selection: requirements and planners that the user names are all that is looked at.

    Raises:
        InputError: something of the baseline is not compared here, or over other scenarios, or is another formula;
            or a chance is asked for, and the earlier matrices are not among the detectors.
    """
    specs = {comparison.spec: (comparison, scores) for comparison, scores in compared}
    drops, max_drop = [], asked.max_drop or Fraction(0)
    for (spec, requirement, detector, planner), before, place in _looked_at(baseline, selection):
        if spec not in specs:
            raise InputError("the baseline is about a spec that is not compared here", place)
        comparison, scores = specs[spec]
        names = [requirement.name for requirement in comparison.requirements]
        if requirement not in names:
            raise InputError("the baseline has a requirement that is not compared here", place)
        index = names.index(requirement)
        old = next((name for name, mine in hashes.items() if mine == baseline.detectors[detector]), None)
        now, configurations = comparison.requirements[index], comparison.configurations
        for name in _held_against(detector, baseline, hashes, place):
            if (configuration := Configuration(name, planner)) not in configurations:
                raise InputError("the baseline has a planner that is not compared here", place)
            here, chance = configurations.index(configuration), None
            judged = _judged(before, worst_of(now, now.entries[here]), max_drop, place)
            if old is not None and old != name:
                table, there = scores.table(index, len(configurations)), Configuration(old, planner)
                chance = float(np.mean(table[:, configurations.index(there)] - table[:, here] > float(max_drop)))
            drop = judged(spec=spec, requirement=requirement, detector=name, planner=planner, chance=chance)
            drops.append(drop if asked.drop_from is None else _by_chance(drop, asked.drop_from, place))
    return _gate(baseline, max_drop, asked.drop_from, drops)


def gate_of_run(baseline: Baseline, max_drop: Fraction, run: RunResult, selection: Selection) -> DropGate:
    """What became of every requirement of the baseline in one run, by the rule "point".

    Args:
        baseline: the earlier result; of one detector.
        max_drop: largest drop that is allowed.
        run: the later result.
        selection: requirements and planners that the user names are all that is looked at.

    Raises:
        InputError: something of the baseline is not in the run, or over other scenarios, or is another formula.
    """
    if len(baseline.detectors) != 1:
        raise InputError(
            f"the baseline has {len(baseline.detectors)} detectors, and a run has one",
            Place(baseline.file.name),
            "use verify compare --baseline, which compares several",
        )
    (spec,) = (file.name for file in run.inputs if file.role == "spec")
    results = {(requirement.name, requirement.planner): requirement for requirement in run.requirements}
    drops = []
    for (old_spec, requirement, _, planner), before, place in _looked_at(baseline, selection):
        if old_spec != spec:
            raise InputError(f"the baseline is about another spec than {shown(spec)}", place)
        if (requirement, planner) not in results:
            raise InputError("the baseline has a requirement or planner that is not in this run", place)
        result = results[requirement, planner]
        drop = _judged(before, worst_of(result, result), max_drop, place)
        drops.append(drop(spec=spec, requirement=requirement, planner=planner, chance=None))
    return _gate(baseline, max_drop, None, drops)


def _looked_at(baseline: Baseline, selection: Selection) -> Iterator[tuple[tuple[str, str, str, str], Worst, Place]]:
    """What of a baseline is looked at: its key, its worst probability, and where it stands."""
    for key, before in baseline.worst.items():
        spec, requirement, _, planner = key
        chosen = not selection.requirements or requirement in selection.requirements
        if chosen and (not selection.planners or not {planner, "all"}.isdisjoint(selection.planners)):
            yield key, before, Place(baseline.file.name, path=f"{spec}: {requirement}, planner {planner}")


def _gate(baseline: Baseline, max_drop: Fraction, least_chance: Fraction | None, drops: Sequence[Drop]) -> DropGate:
    if not drops:
        raise InputError("nothing of the baseline is compared here", Place(baseline.file.name))
    rule = rule_text(least_chance)
    return DropGate(baseline=baseline.file, max_drop=decimal_text(max_drop), drop_from=rule, drops=tuple(drops))


def rule_text(least_chance: Fraction | None) -> str:
    """The rule of a gate as it is asked for: `point`, or `probability:0.95`."""
    return "point" if least_chance is None else f"probability:{decimal_text(least_chance)}"


def _check_comparable(before: Worst, now: Worst, place: Place) -> None:
    """Refuse to compare what was asked otherwise, or found over other scenarios; InputError."""
    if before.formula != now.formula:
        raise InputError(
            f"the requirement of the baseline is another formula: {shown(before.formula, 200)}",
            place,
            "make a new baseline from this spec",
        )
    if before.larger_is_better != now.larger_is_better:
        raise InputError(
            "the targets of the baseline and of this spec are limits on different sides",
            place,
            "make a new baseline from this spec",
        )
    if now.scenarios == before.scenarios:
        return
    only = sorted(now.scenarios ^ before.scenarios)[0]
    side = "here" if only in now.scenarios else "in the baseline"
    raise InputError(
        f"the baseline is over other scenarios: {shown(only)} is only {side}",
        place,
        "compare with the same environments, initial states and constants, or make a new baseline",
    )


def _held_against(detector: str, baseline: Baseline, hashes: Mapping[str, str], place: Place) -> list[str]:
    """The detectors that a detector of the baseline is compared with: its namesake, or where the baseline has only
    one, every detector with other matrices."""
    if detector in hashes:
        return [detector]
    if len(baseline.detectors) > 1:
        raise InputError(
            f"the baseline has several detectors, and its {shown(detector)} is not compared here",
            place,
            f"give the matrices that name: --cm {detector}=FILE",
        )
    others = [name for name, mine in hashes.items() if mine != baseline.detectors[detector]]
    return others or list(hashes)


def _judged(before: Worst, now: Worst, max_drop: Fraction, place: Place) -> partial[Drop]:
    """A drop by the rule "point", but for what it is of."""
    _check_comparable(before, now, place)
    drop, failed = drop_of(before, now, max_drop)
    return partial(Drop, before=before.probability, now=now.probability, drop=drop, failed=failed)


def _by_chance(drop: Drop, least_chance: Fraction, place: Place) -> Drop:
    """The same drop, judged by its chance."""
    if drop.chance is None:
        raise InputError(
            "the probability of a drop takes draws of the earlier matrices as well, and they are not compared here",
            place,
            "give the earlier matrices with --cm, too, or use --drop-from point",
        )
    return replace(drop, failed=Fraction(drop.chance) >= least_chance)


@dataclass(frozen=True)
class Worst:
    """The worst probability of one requirement.

    Attributes:
        probability, lower, upper: with its numerical bounds.
        scenarios: those it is the worst of.
        larger_is_better: what "worst" means.
        formula: what is asked, with the end of its probability where a world decides.
    """

    probability: float
    lower: float
    upper: float
    scenarios: frozenset[str]
    larger_is_better: bool
    formula: str


@dataclass(frozen=True)
class Baseline:
    """An earlier result.

    Attributes:
        detectors: name -> SHA-256 of its matrices; the name is empty for a `verify run`, which has one.
        worst: (spec, requirement, detector, planner) -> its worst probability.
    """

    file: BaselineFile
    detectors: Mapping[str, str]
    worst: Mapping[tuple[str, str, str, str], Worst]


@dataclass(frozen=True)
class CompareOptions(LookSettings):
    """Every choice of a comparison beside its files and those of `RunOptions`.

    Attributes:
        baseline: an earlier result to hold this one against, for the drop that is allowed.
    """

    baseline: Baseline | None = None


def drop_of(before: Worst, now: Worst, max_drop: Fraction) -> tuple[float, bool]:
    """How much worse a probability has become, and whether by more than `max_drop` beyond all numerical bounds."""
    if now.larger_is_better:
        drop, certain = before.probability - now.probability, Fraction(before.lower) - Fraction(now.upper)
    else:
        drop, certain = now.probability - before.probability, Fraction(now.lower) - Fraction(before.upper)
    return drop, certain > max_drop


def worst_of(asked: RequirementResult | RequirementComparison, entry: RequirementResult | Entry) -> Worst:
    """The worst of some points, or of their means over the profile: `entry` is what was found of the requirement
    `asked`."""
    numbers: Sequence[Point | ProfileMean] = entry.means or entry.points
    worst = (max if asked.is_upper else min)(numbers, key=lambda number: number.probability)
    formula = asked.formula if asked.asked == "P" else f"{asked.asked} [ {asked.formula} ]"
    formula += " over profile" if entry.means else ""
    scenarios = frozenset(map(_scenario_key, entry.points))
    return Worst(worst.probability, worst.lower, worst.upper, scenarios, not asked.is_upper, formula)


def _scenario_key(point: Point) -> str:
    """A scenario as text that tells it from the others."""
    parts: list[tuple[str, str | int]] = [*sorted(point.constants.items()), *sorted(point.initial.items())]
    return " ".join([point.environment, *(f"{name}={value}" for name, value in parts)])


def baseline_of(result: object, file: BaselineFile, place: str) -> Baseline:
    """The worst probabilities of an earlier `verify run` or `verify compare`.

    Args:
        result: what it found.
        file: what it is known from.
        place: that file's name, for messages.

    Raises:
        InputError: it is of another command, or does not name its spec and its matrices.
    """
    if not isinstance(result, RunResult | CompareResult):
        raise InputError("expected the JSON of a verify run or a verify compare", Place(place, path="/schema"))
    hashes = [file.sha256 for file in result.inputs if file.role == "confusion"]
    specs = [file.name for file in result.inputs if file.role == "spec"]
    names = [""] if isinstance(result, RunResult) else [detector.name for detector in result.detectors]
    if not specs or len(hashes) != len(names):
        message = f"expected a spec and {len(names)} files of matrices, got {len(specs)} and {len(hashes)}"
        raise InputError(message, Place(place, path="/inputs"))
    if isinstance(result, RunResult):
        asked = [requirement for requirement in result.requirements if requirement.is_plain]
        worst = {
            (specs[0], requirement.name, "", requirement.planner): worst_of(requirement, requirement)
            for requirement in asked
        }
    else:
        worst = {
            (spec.spec, requirement.name, entry.detector, entry.planner): worst_of(requirement, entry)
            for spec in result.specs
            for requirement in spec.requirements
            for entry in requirement.entries
            if requirement.is_plain
        }
    return Baseline(file, dict(zip(names, hashes, strict=True)), worst)
