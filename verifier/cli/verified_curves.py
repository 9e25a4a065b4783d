"""Verified trade-off curves: P of a safety and of a progress requirement at every score threshold of a family.

Raising the threshold makes a detector report less: the system brakes less needlessly and misses more. Both sides of
that trade are probabilities that the model checker finds; nothing is simulated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import PurePath
from typing import Any

import numpy as np

from verifier.base.errors import InputError, Place, UsageError, unknown_name
from verifier.case import read_inputs
from verifier.checking.process import StormProcess
from verifier.cli.closedloop import Gathered
from verifier.cli.terminal import progress_bar
from verifier.closedloop.comparison import BASELINE, NamedCurve
from verifier.closedloop.curves import TradeOffCurve
from verifier.closedloop.settings import RobrocSettings
from verifier.language.specs import read_spec
from verifier.options import RunOptions, Selection
from verifier.perception.confusion.document import read_counts
from verifier.pipeline import verified
from verifier.provenance import own_versions
from verifier.results import RunResult, engines_record


@dataclass(frozen=True)
class _Task:
    """One family (a detector under a condition) at one score threshold."""

    name: str
    path: str
    threshold: float


def verified_curves(arguments: RobrocSettings, families: Mapping[str, str]) -> Gathered:
    """A curve per family; the probabilities are the least over all scenarios.

    Raises:
        VerifierError: no such requirement, one that asks for a small probability, a file that is no family, or as
            `verify run`.
    """
    options = _options(arguments)
    _check_requirements(arguments)
    tasks = [_Task(name, path, each) for name, path in families.items() for each in _thresholds(path)]
    found: dict[_Task, RunResult] = {}
    with StormProcess() as storm:
        for task in progress_bar(tasks, "thresholds"):
            chosen = replace(options, score_threshold=task.threshold)
            found[task] = verified(read_inputs(arguments.spec, task.path, chosen), chosen, storm)
    highest = max(each.threshold for each in tasks)
    curves = [
        _curve(arguments, name, {task: result for task, result in found.items() if task.name == name}, highest)
        for name in families
    ]
    last = next(iter(found.values()))
    spec = PurePath(arguments.spec).name
    files = dict.fromkeys(each for result in found.values() for each in result.inputs)
    return Gathered(
        f"{spec}: {', '.join(families)}",
        curves,
        tuple({"role": each.role, "name": each.name, "sha256": each.sha256} for each in files),
        {
            "spec": spec,
            "safety": arguments.safety,
            "progress": arguments.progress,
            "sensitivity": f"highest score threshold ({highest:g}) - score threshold",
            "run": {key: value for key, value in last.settings.items() if key != "score_threshold"},
            "engines": engines_record(found.values()),
            "matrices": {task.name: _family_record(result) for task, result in found.items()},
        },
        {**own_versions(), "stormpy": version("stormpy"), "storm": last.versions["storm"]},
        _remarks(list(found.values())),
    )


def _family_record(result: RunResult) -> dict[str, Any]:
    """What the matrices are and how they were made, whatever the threshold."""
    return {key: value for key, value in result.matrices.items() if key not in ("items", "score_threshold")}


def _remarks(results: Sequence[RunResult]) -> tuple[str, ...]:
    """What every run says, and what only some of them say."""
    counted = Counter(each for result in results for each in dict.fromkeys(result.remarks))
    total = len(results)
    return tuple(
        each if count == total else f"at {count} of {total} thresholds: {each}" for each, count in counted.items()
    )


def _options(arguments: RobrocSettings) -> RunOptions:
    """What is chosen, as for a run; the point alone is wanted, without statistics."""
    return RunOptions(
        Selection(
            planners=arguments.planner,
            environments=arguments.environment,
            initial=arguments.initial,
            settings=arguments.constants,
            requirements=(arguments.safety, arguments.progress),
        ),
        empty_columns=arguments.empty_columns,
        false_alarms=arguments.false_alarms,
        confidence=None,
        verdict_from="point",
    )


def _check_requirements(arguments: RobrocSettings) -> None:
    requirements = {each.name: each for each in read_spec(arguments.spec).requirements}
    for option in ("safety", "progress"):
        name = getattr(arguments, option)
        if name not in requirements:
            message, hint = unknown_name("requirement", name, requirements)
            raise UsageError(f"--{option}: {message} ({hint})")
        if requirements[name].comparison in ("<=", "<"):
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


def _curve(arguments: RobrocSettings, name: str, found: Mapping[_Task, RunResult], highest: float) -> NamedCurve:
    detector, at, condition = name.rpartition("@")
    points = [
        (highest - task.threshold, *(_least(result, which) for which in (arguments.safety, arguments.progress)))
        for task, result in found.items()
    ]
    curve = TradeOffCurve(*np.array(points).T)
    return NamedCurve("verified", detector if at else name, condition if at else BASELINE, curve)


def _least(result: RunResult, requirement: str) -> float:
    """The least probability over all scenarios."""
    checked = [each for each in result.requirements if each.name == requirement]
    if len(checked) != 1:
        raise UsageError(f"the spec is checked with {len(checked)} planners; a curve is of one: --planner NAME")
    return min(point.probability for point in checked[0].points)
