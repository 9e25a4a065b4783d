"""Verified trade-off curves: P of a safety and of a progress requirement at every score threshold of a family.

Raising the threshold makes a detector report less: the system brakes less needlessly and misses more. Both sides of
that trade are probabilities that the model checker finds; nothing is simulated.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import PurePath
from typing import TypeAlias

import numpy as np

from verifier.base.documents import json_values
from verifier.base.errors import InputError, Place, UsageError, unknown_error
from verifier.base.libraries import own_versions
from verifier.checking.process import StormProcess
from verifier.closedloop.comparison import BASELINE, NamedCurve
from verifier.closedloop.curves import TradeOffCurve
from verifier.closedloop.settings import RobrocSettings
from verifier.closedloop.trade_offs import CurveSet, TradeOffInput
from verifier.language.specs import read_spec
from verifier.perception.confusion.document import read_counts
from verifier.pipeline import verified
from verifier.study.case import Study
from verifier.study.inputs import read_inputs, refuse_others
from verifier.study.options import RunOptions, Selection
from verifier.study.results import RunResult, engines_of


@dataclass(frozen=True)
class FamilyMember:
    """The matrices of one family (a detector under a condition) at one score threshold."""

    name: str
    path: str
    threshold: float


Progress: TypeAlias = Callable[[Sequence[FamilyMember]], Iterable[FamilyMember]]


def verified_curves(settings: RobrocSettings, families: Mapping[str, str], progress: Progress = iter) -> CurveSet:
    """A curve per family; the probabilities are the least over all scenarios.

    Args:
        settings: every choice.
        families: name -> file of each family of confusion matrices.
        progress: wraps the list of members, for a progress bar.

    Raises:
        VerifierError: no such requirement, one that asks for a small probability, a file that is no family, or as
            `verify run`.
    """
    options = _options(settings)
    _check_requirements(settings)
    members = [
        FamilyMember(name, path, threshold) for name, path in families.items() for threshold in _thresholds(path)
    ]
    results: dict[FamilyMember, RunResult] = {}
    with StormProcess() as storm:
        for member in progress(members):
            chosen = replace(options, score_threshold=member.threshold)
            results[member] = verified(Study.of(read_inputs(settings.spec, member.path, chosen), chosen), storm)
    highest = max(member.threshold for member in members)
    curves = [
        _curve(settings, name, {member: result for member, result in results.items() if member.name == name}, highest)
        for name in families
    ]
    last = next(iter(results.values()))
    spec = PurePath(settings.spec).name
    files = dict.fromkeys(file for result in results.values() for file in result.inputs)
    return CurveSet(
        f"{spec}: {', '.join(families)}",
        curves,
        tuple(TradeOffInput(file.role, file.name, file.sha256) for file in files),
        {**own_versions(), "stormpy": version("stormpy"), "storm": last.versions["storm"]},
        {
            "spec": spec,
            "safety": settings.safety,
            "progress": settings.progress,
            "sensitivity": f"highest score threshold ({highest:g}) - score threshold",
            "run": {key: value for key, value in json_values(last.settings).items() if key != "score_threshold"},
            "engines": json_values(engines_of(results.values())),
            "matrices": {member.name: _family_record(result) for member, result in results.items()},
        },
        _remarks(list(results.values())),
    )


def _family_record(result: RunResult) -> dict[str, object]:
    """What the matrices are and how they were made, whatever the threshold."""
    told = json_values(result.matrices)
    return {key: value for key, value in told.items() if key not in ("items", "score_threshold")}


def _remarks(results: Sequence[RunResult]) -> tuple[str, ...]:
    """What every run says, and what only some of them say."""
    counted = Counter(name for result in results for name in dict.fromkeys(result.remarks))
    total = len(results)
    return tuple(
        name if count == total else f"at {count} of {total} thresholds: {name}" for name, count in counted.items()
    )


def _options(settings: RobrocSettings) -> RunOptions:
    """What is chosen, as for a run; the point alone is wanted, without statistics."""
    return RunOptions(
        Selection(
            planners=settings.planner,
            environments=settings.environment,
            initial=settings.initial,
            settings=settings.constants,
            requirements=(settings.safety, settings.progress),
        ),
        empty_columns=settings.empty_columns,
        false_positives=settings.false_positives,
        confidence=None,
        verdict_from="point",
    )


def _check_requirements(settings: RobrocSettings) -> None:
    requirements = {requirement.name: requirement for requirement in read_spec(settings.spec).requirements}
    for option in ("safety", "progress"):
        name = getattr(settings, option)
        if name not in requirements:
            raise unknown_error("requirement", name, requirements, before=f"--{option}: ")
        refuse_others([requirements[name]], f"--{option}")
        if requirements[name].is_upper:
            raise UsageError(f"--{option}: {name} asks for a small probability; on a trade-off curve more is better")


def _thresholds(path: str) -> tuple[float, ...]:
    counts = read_counts(path)
    if counts.thresholds is None:
        raise InputError(
            "the matrices are no family over score thresholds",
            Place(path),
            "make one with verify confusion --score-thresholds X,X,...",
        )
    return counts.thresholds


def _curve(
    settings: RobrocSettings, name: str, results: Mapping[FamilyMember, RunResult], highest: float
) -> NamedCurve:
    detector, at, condition = name.rpartition("@")
    points = [
        (highest - member.threshold, *(_least(result, which) for which in (settings.safety, settings.progress)))
        for member, result in results.items()
    ]
    curve = TradeOffCurve(*np.array(points).T)
    return NamedCurve("verified", detector if at else name, condition if at else BASELINE, curve)


def _least(result: RunResult, requirement: str) -> float:
    """The least probability over all scenarios."""
    checked = [answer for answer in result.requirements if answer.name == requirement]
    if len(checked) != 1:
        raise UsageError(f"the spec is checked with {len(checked)} planners; a curve is of one: --planner NAME")
    return min(point.probability for point in checked[0].points)
