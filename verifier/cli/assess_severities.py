"""What a growing disturbance does to the system: every level's numbers, each by the part that knows how.

P(phi) by `verifier.pipeline`, lambda(y, v) by `verifier.collision`, RobROC by `verifier.closedloop`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path, PurePath

import numpy as np

from verifier.checking.process import StormProcess
from verifier.cli.closedloop import progress_bar
from verifier.closedloop.comparison import BASELINE, NamedCurve
from verifier.closedloop.curvefiles import CurveFile, read_curves
from verifier.closedloop.robroc import area, robroc
from verifier.collision.estimator import Grid, collision_map
from verifier.collision.pairs_reader import read_pairs
from verifier.collision.stopping import BrakingPolicy
from verifier.errors import InputError, Place
from verifier.options import RunOptions
from verifier.pipeline import read_inputs, verified
from verifier.results import RequirementResult, RunResult
from verifier.robustness.assessment.definition import Assessment
from verifier.robustness.assessment.degradation import Criterion, Degradation, SystemModelRun, TradeOffLimit
from verifier.robustness.assessment.numbers import decimal_text
from verifier.robustness.assessment.result import DegradationResult, degradation_result
from verifier.scenarios import Selection


def degradation_of(assessment: Assessment, folder: Path) -> DegradationResult | None:
    """All criteria at all levels; None where the assessment asks for none.

    Args:
        assessment: names files and limits.
        folder: where its paths start from.

    Raises:
        VerifierError: as reading and checking these files raises.
    """
    asked = assessment.degradation
    if asked is None:
        return None
    criteria = list(_metrics(asked))
    inputs: list[Mapping[str, str]] = []
    remarks: list[str] = []
    settings: dict[str, object] = {}
    if asked.run is not None:
        results = _verified(asked, asked.run, folder)
        criteria += _requirements(results)
        files = dict.fromkeys(each for result in results for each in result.inputs)
        inputs += [{"role": each.role, "name": each.name, "sha256": each.sha256} for each in files]
        remarks += dict.fromkeys(each for result in results for each in result.remarks)
        settings = {**results[0].settings, "storm": results[0].versions["storm"]}
    if asked.collision is not None:
        found, sources = _collision(asked, folder)
        criteria.append(found)
        inputs += sources
    if asked.trade_off is not None:
        found, sources = _trade_off(asked, asked.trade_off, folder)
        criteria.append(found)
        inputs += sources
    return degradation_result(assessment, tuple(criteria), tuple(inputs), settings or None, tuple(remarks))


def _metrics(asked: Degradation) -> Iterator[Criterion]:
    """How far each metric is from its value at the mildest level, against the accepted change."""
    for name, limit in asked.allowed_change.items():
        values = [each.performance[name] for each in asked.levels]
        margins = [float(limit - abs(value - values[0])) for value in values]
        told = f"change at most {decimal_text(limit)}"
        yield Criterion("metric", name, told, tuple(map(float, values)), tuple(margins))


def _verified(asked: Degradation, run: SystemModelRun, folder: Path) -> list[RunResult]:
    constants = {name: int(value) if value.denominator == 1 else value for name, value in run.constants.items()}
    planners = () if run.planner is None else (run.planner,)
    selection = Selection(planners=planners, environments=run.environments, settings=constants)
    options = RunOptions(selection=selection, empty_columns=run.empty_columns, confidence=None)
    found = []
    with StormProcess() as storm:
        for level in progress_bar(asked.levels, "levels"):
            if level.confusion is None:
                raise ValueError("a level without matrices")
            inputs = read_inputs(folder / run.spec, folder / level.confusion, options)
            found.append(verified(inputs, options, storm))
    return found


def _requirements(results: Sequence[RunResult]) -> Iterator[Criterion]:
    """Each requirement with a target, under each planner, in its worst scenario."""
    planners = {each.planner for each in results[0].requirements}
    for number, first in enumerate(results[0].requirements):
        target = first.target
        if target is None:
            continue
        series = [result.requirements[number] for result in results]
        upper = first.comparison in ("<=", "<")
        values = [_probability(each) for each in series]
        margins = [float(target - value if upper else value - target) for value in values]
        yield Criterion(
            "requirement",
            first.name if len(planners) == 1 else f"{first.name}, planner {first.planner}",
            f"P {first.target_text}",
            tuple(map(float, values)),
            tuple(margins),
            tuple(_sure(each) for each in series),
            strict=first.comparison in ("<", ">"),
        )


def _probability(each: RequirementResult) -> Fraction:
    """The worst over the scenarios: the least, or the greatest where the target is an upper limit."""
    pick = max if each.comparison in ("<=", "<") else min
    return pick(Fraction(point.probability) if point.exact is None else point.exact for point in each.points)


def _sure(each: RequirementResult) -> str:
    """The verdict with the data taken into account."""
    return f"({each.verdict.value})"


def _collision(asked: Degradation, folder: Path) -> tuple[Criterion, list[Mapping[str, str]]]:
    limit = asked.collision
    if limit is None:
        raise ValueError("no limit of the probability of collision")
    policy = BrakingPolicy(limit.deceleration_mps2, limit.reaction_s)
    grid = Grid(np.array([limit.distance_m]), np.array([limit.speed_mps]))
    values: list[float | None] = []
    inputs: list[Mapping[str, str]] = []
    for level in asked.levels:
        if level.pairs is None:
            raise ValueError("a level without pairs")
        found = read_pairs(folder / level.pairs)
        value = float(collision_map(found.pairs, grid, policy).probability[0, 0])
        values.append(None if math.isnan(value) else value)
        inputs.append(
            {"role": "pairs", "name": PurePath(level.pairs).name, "sha256": str(found.origin.get("sha256", ""))}
        )
    margins = tuple(None if each is None else float(limit.at_most - Fraction(each)) for each in values)
    name = f"lambda({limit.distance_m:g} m, {limit.speed_mps:g} m/s)"
    told = f"at most {decimal_text(limit.at_most)}"
    return Criterion("collision", name, told, tuple(values), margins), inputs


def _trade_off(asked: Degradation, limit: TradeOffLimit, folder: Path) -> tuple[Criterion, list[Mapping[str, str]]]:
    """RobROC of the mildest level's curve and this level's, by the area of the mildest level's."""
    files = [read_curves(folder / level.curves) for level in asked.levels if level.curves is not None]
    curves = [_curve(each, limit, mildest=number == 0).curve for number, each in enumerate(files)]
    whole = area(curves[0])
    shares = [area(robroc([curves[0], each])) / whole if whole else None for each in curves]
    margins = tuple(None if each is None else float(Fraction(each) - limit.at_least) for each in shares)
    inputs = [{"role": "curves", "name": PurePath(each.name).name, "sha256": each.sha256} for each in files]
    name = f"RobROC by baseline, {limit.detector}, {limit.metric}"
    told = f"at least {decimal_text(limit.at_least)}"
    return Criterion("trade-off", name, told, tuple(shares), margins), list(inputs)


def _curve(file: CurveFile, limit: TradeOffLimit, *, mildest: bool) -> NamedCurve:
    """The level's curve: the only one of this detector and metric, or the only one beside its baseline."""
    found = [each for each in file.curves if each.detector == limit.detector and each.metric == limit.metric]
    if len(found) > 1:
        found = [each for each in found if (each.condition == BASELINE) is mildest]
    if len(found) != 1:
        known = ", ".join(dict.fromkeys(f"{each.detector} {each.metric}" for each in file.curves))
        message = f"expected one curve of {limit.detector} {limit.metric} for this level, found {len(found)}"
        raise InputError(message, Place(file.name), f"detector and metric in the file: {known}")
    return found[0]
