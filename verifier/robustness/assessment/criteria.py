"""What a growing disturbance does to the system: every level's numbers, each by the part that knows how.

P(phi) by `verifier.pipeline`, lambda(y, v) by `verifier.collision`, RobROC by `verifier.closedloop`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from verifier.base.documents import InputFile, json_values
from verifier.base.errors import InputError, Place
from verifier.base.numbers import exact_text
from verifier.base.statistics import percentile_ends, reaching
from verifier.checking.process import StormProcess
from verifier.checking.verdicts import Verdict, verdict_of
from verifier.closedloop.comparison import BASELINE, NamedCurve
from verifier.closedloop.curvefiles import CurveFile, read_curves
from verifier.closedloop.curves import area, robroc
from verifier.pipeline import verified
from verifier.robustness.assessment.degradation import Degradation, Level, TradeOffLimit
from verifier.robustness.brackets import Criterion
from verifier.robustness.campaign.definition import CollisionLimit, SystemModelRun
from verifier.robustness.campaign.judging import collision_at, requirement_row, run_options
from verifier.robustness.campaign.looking import Progress, no_progress
from verifier.robustness.campaign.result import requirement_criterion
from verifier.robustness.draws import CONFIDENCE, share_interval
from verifier.study.case import Study
from verifier.study.inputs import read_inputs
from verifier.study.results import RunResult, engines_of


@dataclass(frozen=True)
class Found:
    """The criteria at all levels, from which files, how the requirements were checked, and what is to be said."""

    criteria: tuple[Criterion, ...]
    inputs: tuple[InputFile, ...] = ()
    settings: dict[str, object] | None = None
    remarks: tuple[str, ...] = ()


def criteria_of(
    asked: Degradation, folder: Path, progress: Progress = no_progress, runs: dict[str, RunResult] | None = None
) -> Found:
    """All criteria at all levels.

    Args:
        asked: names files and limits.
        folder: where its paths start from.
        progress: wraps the levels whose requirements are checked.
        runs: by the file of matrices; those that are there are not made again, and those that are made are put there.

    Raises:
        VerifierError: as reading and checking these files raises.
    """
    parts, checked = [Found(tuple(_metrics(asked)))], None
    if asked.run is not None:
        checked = _checked(_verified(asked, asked.run, folder, progress, {} if runs is None else runs))
        parts.append(checked)
    if asked.collision is not None:
        parts.append(_collision(asked, asked.collision, folder))
    if asked.trade_off is not None:
        parts.append(_trade_off(asked, asked.trade_off, folder))
    return Found(
        tuple(criterion for part in parts for criterion in part.criteria),
        tuple(file for part in parts for file in part.inputs),
        None if checked is None else checked.settings,
        tuple(dict.fromkeys(remark for part in parts for remark in part.remarks)),
    )


def _metrics(asked: Degradation) -> Iterator[Criterion]:
    """How far each metric is from its value at the mildest level, against the accepted change."""
    for name, limit in asked.allowed_change.items():
        values = [level.performance[name] for level in asked.levels]
        start = values[0]
        margins = [None if value is None or start is None else float(limit - abs(value - start)) for value in values]
        told = f"change at most {exact_text(limit)}"
        numbers = tuple(None if value is None else float(value) for value in values)
        ends = tuple(_change_ends(asked.levels[0], level, name) for level in asked.levels)
        verdicts = tuple(_of_change(end, limit) for end in ends)
        yield Criterion("metric", name, told, numbers, tuple(margins), verdicts, ends)


def _change_ends(first: Level, level: Level, name: str) -> tuple[float, float] | None:
    """The interval of the change of a metric; None where there is no change, or nothing was drawn."""
    before, after = first.performance[name], level.performance[name]
    if before is None or after is None or name not in first.drawn or name not in level.drawn:
        return None
    if level is first:
        return 0.0, 0.0  # by definition, and not by what was measured
    ends = percentile_ends(level.drawn[name] - first.drawn[name], CONFIDENCE)  # the draws are equal
    return reaching(ends, float(after - before), level.objects, (-1.0, 1.0))


def _of_change(ends: tuple[float, float] | None, limit: Fraction) -> Verdict | None:
    """Whether a change within these ends is at most as large as the limit, up or down."""
    if ends is None:
        return None
    low, high = map(Fraction, ends)
    if -limit <= low and high <= limit:
        return Verdict.SATISFIED
    return Verdict.VIOLATED if low > limit or high < -limit else Verdict.INCONCLUSIVE


def _verified(
    asked: Degradation, run: SystemModelRun, folder: Path, progress: Progress, known: dict[str, RunResult]
) -> list[RunResult]:
    files = [level.confusion for level in asked.levels if level.confusion is not None]
    options, new = run_options(run), [file for file in files if file not in known]
    with StormProcess() as storm:
        for file in progress(new, "levels"):
            inputs = read_inputs(folder / run.spec, folder / file, options)
            known[file] = verified(Study.of(inputs, options), storm)
    return [known[file] for file in files]


def _checked(results: Sequence[RunResult]) -> Found:
    """The requirements of all levels, and how they were checked."""
    settings = {
        **json_values(results[0].settings),
        "storm": results[0].versions["storm"],
        "engines": json_values(engines_of(results)),
        "matrices": [json_values(result.matrices) for result in results],
    }
    inputs = tuple(dict.fromkeys(file for result in results for file in result.inputs))
    remarks = tuple(remark for result in results for remark in result.remarks)
    return Found(tuple(_requirements(results)), inputs, settings, remarks)


def _requirements(results: Sequence[RunResult]) -> Iterator[Criterion]:
    """Each requirement with a target, under each planner, in its worst scenario."""
    planners = {requirement.planner for requirement in results[0].requirements}
    for number, first in enumerate(results[0].requirements):
        if first.threshold is None:
            continue
        rows = [requirement_row(result.requirements[number]) for result in results]
        name = first.name if len(planners) == 1 else f"{first.name}, planner {first.planner}"
        yield requirement_criterion(rows, name, f"P {first.target_text}")


def _collision(asked: Degradation, limit: CollisionLimit, folder: Path) -> Found:
    """lambda at the distance and speed of the limit, the files it is from and what is said there; a level without
    pairs has no value."""
    values: list[float | None] = []
    ends: list[tuple[float, float] | None] = []
    inputs: list[InputFile] = []
    remarks: list[str] = []
    for level in asked.levels:
        assert level.pairs is not None  # asked of every level
        value, interval = None, None
        if not level.without_pairs:  # else nothing was reported, so that lambda is not defined
            value, interval, source, said = collision_at(folder / level.pairs, limit)
            remarks += said
            inputs.append(source)
        values.append(value)
        ends.append(interval)
    margins = tuple(None if value is None else float(limit.at_most - Fraction(value)) for value in values)
    name = f"lambda({limit.distance_m:g} m, {limit.speed_mps:g} m/s)"
    told = f"at most {exact_text(limit.at_most)}"
    verdicts = tuple(None if end is None else verdict_of(*end, "<=", limit.at_most) for end in ends)
    criterion = Criterion("collision", name, told, tuple(values), margins, verdicts, tuple(ends))
    return Found((criterion,), tuple(inputs), remarks=tuple(remarks))


def _trade_off(asked: Degradation, limit: TradeOffLimit, folder: Path) -> Found:
    """RobROC of the mildest level's curve and this level's, by the area of the mildest level's."""
    files = [read_curves(folder / level.curves) for level in asked.levels if level.curves is not None]
    curves = [_curve(file, limit, mildest=number == 0).curve for number, file in enumerate(files)]
    whole = area(curves[0])
    shares = [area(robroc([curves[0], curve])) / whole if whole else None for curve in curves]
    margins = tuple(None if share is None else float(Fraction(share) - limit.at_least) for share in shares)
    drawn = [level.drawn_curve for level in asked.levels]
    ends = tuple(
        None
        if array is None or drawn[0] is None or share is None
        else share_interval(
            (curves[0].sensitivity, curve.sensitivity), drawn[0], array, (share * whole, whole), level.objects
        )
        for level, array, curve, share in zip(asked.levels, drawn, curves, shares, strict=True)
    )
    if ends[0] is not None:
        ends = ((1.0, 1.0), *ends[1:])  # by definition, and not by what was measured
    verdicts = tuple(None if end is None else verdict_of(*end, ">=", limit.at_least) for end in ends)
    inputs = tuple(InputFile.of("curves", file.name, file.sha256) for file in files)
    name = f"RobROC by baseline, {limit.detector}, {limit.metric}"
    told = f"at least {exact_text(limit.at_least)}"
    criterion = Criterion("trade-off", name, told, tuple(shares), margins, verdicts, ends)
    return Found((criterion,), inputs, remarks=tuple(remark for file in files for remark in file.remarks))


def _curve(file: CurveFile, limit: TradeOffLimit, *, mildest: bool) -> NamedCurve:
    """The level's curve: the only one of this detector and metric, or the only one beside its baseline."""
    curves = [curve for curve in file.curves if curve.detector == limit.detector and curve.metric == limit.metric]
    if len(curves) > 1:
        curves = [curve for curve in curves if (curve.condition == BASELINE) is mildest]
    if len(curves) != 1:
        known = ", ".join(dict.fromkeys(f"{curve.detector} {curve.metric}" for curve in file.curves))
        message = f"expected one curve of {limit.detector} {limit.metric} for this level, found {len(curves)}"
        raise InputError(message, Place(file.name), f"detector and metric in the file: {known}")
    return curves[0]
