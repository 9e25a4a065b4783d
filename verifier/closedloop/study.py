"""The whole story of `verify closed-loop`: from logs and what detectors reported to tables of trade-off areas.

    logs -> standardizer -> courses along the path -> closed loop, both engines -> curves -> RobROC -> tables
                         -> curves of the other context levels ------------------^

`study` is that story. A *source* of detections is a detector under a condition, named `DETECTOR@CONDITION`; without
`@` the condition is the baseline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from verifier.base.arrays import Floats, Ints
from verifier.base.blocks import HERE, Pool
from verifier.base.errors import InputError, LimitError, UsageError, check_known, shown, unknown_error
from verifier.base.libraries import own_versions
from verifier.base.numbers import memory_text, significant
from verifier.base.statistics import few_units_note
from verifier.closedloop.closed_loop_curve import (
    FEWEST_LOGS,
    Draws,
    LogSums,
    check_logs,
    closed_loop,
    draw_logs,
    judged_sums,
)
from verifier.closedloop.comparison import BASELINE, NamedCurve, compare
from verifier.closedloop.curves import area
from verifier.closedloop.detection_outcomes import (
    Judged,
    judge_pathifier,
    judge_roboticizer,
    judge_roc_a,
    judge_roc_b,
)
from verifier.closedloop.logs import Logs, Standardizer, standardizer_of
from verifier.closedloop.pathifier import courses, paths_of, violation_m
from verifier.closedloop.settings import EngineName, Metric
from verifier.closedloop.study_settings import DRIVEN, StudySettings
from verifier.closedloop.traces import Trace, trace
from verifier.closedloop.trade_offs import LogsUsed, SecondEngine, TradeOffs, UndefinedMetric

Progress: TypeAlias = Callable[[Sequence["Source"]], Iterable["Source"]]
LARGEST_BOOTSTRAP = 2 * 10**8
"""Numbers that are drawn and held; 8 bytes each."""
FEW_NAMES = 6
"""Of logs in a remark; the document lists all."""


@dataclass(frozen=True)
class Source:
    """A detector under a condition, and the name its detections have in the logs."""

    detector: str
    condition: str
    name: str


def study(
    logs: Logs, validation: Logs | None, settings: StudySettings, progress: Progress = iter, pool: Pool = HERE
) -> TradeOffs:
    """Compare every detector under every condition, by every metric that was asked for; without title and inputs.

    Args:
        logs: with one source of detections per detector and condition.
        validation: images as they were taken, with a source per detector, from which scores are standardized; None
            to take the logs themselves, which a remark then says.
        progress: wraps the list of sources, for a progress bar.
        pool: who drives the closed loop of each source.

    Raises:
        UsageError, InputError: sources, logs and settings do not fit together; each says what to do.
    """
    sources, record = sources_of(logs.detections), settings.record()
    _check(sources, settings)
    nominal = logs if validation is None else validation
    tables = {
        name: standardizer_of(nominal, name, settings.policy)
        for name in dict.fromkeys(source.detector for source in sources)
    }
    if set(settings.metrics) != {"roc_a"}:  # which judges all logs alike
        check_logs(np.asarray(logs.positive))
    draws, remarks = _draws(logs, settings)
    settings, undefined = _defined(logs, sources[0].name, tables[sources[0].detector], settings)
    by_metric: dict[str, list[NamedCurve]] = {metric: [] for metric in settings.metrics}
    driven: list[tuple[LogsUsed, SecondEngine]] = []
    limit_m = np.zeros(0)
    if settings.radii is not None and set(settings.metrics) & set(DRIVEN):
        limit_m = violation_m(logs, paths_of(logs, settings.path), settings.radii.safety_m)
    work = partial(_curves, logs, tables, limit_m, settings)
    for source, (curves, own) in zip(progress(sources), pool.map(work, sources), strict=True):
        severity = settings.severities.get(source.condition, "")
        driven += own
        for metric, (sums, limit) in curves.items():
            named = NamedCurve(metric, source.detector, source.condition, sums.curve, severity, sums, limit)
            by_metric[metric].append(named)
    used = next((of_truth for of_truth, _ in driven), _logs_used(logs))
    if len(used.truth_never_stops) == used.positive and by_metric.pop("closed_loop", None) is not None:
        undefined.append(UndefinedMetric("closed_loop", "the reference vehicle stops in no positive log"))
    if not by_metric:
        raise InputError(
            "; ".join(map(str, undefined)), hint="add logs that end before a person, or another --metric"
        )
    compared = tuple(compare(curves, settings.groups, draws) for curves in by_metric.values())
    notes = _remarks(logs, validation, tables, settings, used)
    parts = (*notes, *remarks), compared, used, _of_all([one for _, one in driven]), tuple(undefined)
    return TradeOffs("", (), record, own_versions(), *parts)


def study_trace(
    logs: Logs, validation: Logs | None, settings: StudySettings, log: str, source: str | None, level: float | None
) -> Trace:
    """Every step of one run of a study; without a source, of the one driven by the truth.

    Raises:
        UsageError: there is no such log or source.
        LimitError: the run is too long, see `trace`.
    """
    check_known("log", log, logs.names)
    sources = {source.name: source for source in sources_of(logs.detections)}
    name = source if source is not None else next(iter(sources), None)
    if name is None or name not in sources:
        raise unknown_error("source of detections", name or "", sources)
    nominal = logs if validation is None else validation
    standardizer = standardizer_of(nominal, sources[name].detector, settings.policy)
    ahead = courses(logs, name, standardizer, settings.control_m, settings.path)
    return trace(ahead[logs.names.index(log)], None if source is None else level, settings.loop.vehicle)


def sources_of(names: Iterable[str]) -> list[Source]:
    """What names of sources stand for, baselines first; UsageError where a detector has no baseline."""
    sources = []
    for name in names:
        detector, at, condition = name.rpartition("@")
        sources.append(Source(detector, condition, name) if at else Source(name, BASELINE, name))
    with_baseline = {source.detector for source in sources if source.condition == BASELINE}
    for source in sources:
        if not source.detector or not source.condition:
            raise UsageError(f"source {shown(source.name)}: expected DETECTOR or DETECTOR@CONDITION")
        if source.detector not in with_baseline:
            raise UsageError(
                f"source {shown(source.name)}: there is no source {shown(source.detector)} with the detections on "
                "the "
                "images as they were taken"
            )
    return sorted(sources, key=lambda source: source.condition != BASELINE)


def _check(sources: Sequence[Source], settings: StudySettings) -> None:
    if not sources:
        raise UsageError("the logs hold no detections")
    conditions = {source.condition for source in sources}
    for name in settings.severities:
        if name not in conditions:
            raise unknown_error("condition", name, conditions, before="severity: ")


def _curves(
    logs: Logs, tables: Mapping[str, Standardizer], limit_m: Floats, settings: StudySettings, one: Source
) -> tuple[dict[Metric, tuple[LogSums, LogSums | None]], list[tuple[LogsUsed, SecondEngine]]]:
    """What each log adds to the curve of every metric, with the step and without one where there is one; and of the
    simulated ones what the truth does, and how the other engine differs."""
    source, standardizer = one.name, tables[one.detector]
    by_metric: dict[Metric, tuple[LogSums, LogSums | None]] = {}
    for metric in settings.metrics:
        if metric not in DRIVEN:
            try:
                judged = _judged(metric, logs, source, standardizer, settings)
            except InputError as error:
                hint = f"{error.hint}, or leave this metric out (--metric)" if error.hint else None
                raise InputError(f"{metric}: {error.message}", error.place, hint) from None
            positive = np.asarray(logs.positive)
            by_metric[metric] = judged_sums(judged, settings.sensitivity, positive, settings.fpr_max), None
    if not set(settings.metrics) & set(DRIVEN):
        return by_metric, []
    ahead = courses(logs, source, standardizer, settings.control_m, settings.path)
    driven = closed_loop(ahead, settings.sensitivity, settings.loop)
    engine: EngineName = "events" if settings.loop.engine == "steps" else "steps"
    other = closed_loop(ahead, settings.sensitivity, replace(settings.loop, engine=engine))
    kinds: dict[Metric, Floats | None] = {"safety_radius": limit_m, "closed_loop": None}
    for metric in (kind for kind in kinds if kind in settings.metrics):
        limit = other.sums(kinds[metric]) if engine == "events" else None
        by_metric[metric] = driven.sums(kinds[metric]), limit
    difference = abs(area(driven.curve) - area(other.curve))
    second = SecondEngine(engine, difference, driven.safe.size, int(np.count_nonzero(driven.safe != other.safe)))
    return by_metric, [(_logs_used(logs, driven.never_stops, driven.truth_breaks(limit_m)), second)]


def _defined(
    logs: Logs, source: str, standardizer: Standardizer, settings: StudySettings
) -> tuple[StudySettings, list[UndefinedMetric]]:
    """The settings without metrics that are undefined for the logs, whatever the detector, and these."""
    if not settings.skip_undefined:
        return settings, []
    kept: list[Metric] = []
    undefined = []
    for metric in settings.metrics:
        try:
            if metric not in DRIVEN:
                _judged(metric, logs, source, standardizer, settings)
            kept.append(metric)
        except InputError as error:
            undefined.append(UndefinedMetric(metric, error.message))
    return replace(settings, metrics=tuple(kept)), undefined


def _judged(metric: Metric, logs: Logs, source: str, standardizer: Standardizer, settings: StudySettings) -> Judged:
    if metric == "roc_a":
        return judge_roc_a(logs, source, standardizer, settings.policy)
    if metric == "roc_b":
        return judge_roc_b(logs, source, standardizer, settings.policy)
    if metric == "roboticizer":
        return judge_roboticizer(logs, source, standardizer)
    return judge_pathifier(logs, source, standardizer, settings.control_m, settings.first_frame, settings.path)


def _draws(logs: Logs, settings: StudySettings) -> tuple[Draws | None, list[str]]:
    """The draws of the bootstrap, and what limits it."""
    if not settings.draws:
        return None, []
    positive = np.asarray(logs.positive)
    fewest = int(min(positive.sum(), (~positive).sum()))
    if fewest < FEWEST_LOGS:
        what = f"no bootstrap: it needs {FEWEST_LOGS} positive and {FEWEST_LOGS} negative logs"
        none = Draws(np.zeros((0, len(positive))), settings.confidence)
        return none, [f"{what}; intervals are what so few logs leave open (Clopper and Pearson)"]
    numbers = settings.draws * (len(positive) + 4 * len(settings.sensitivity))
    if numbers > LARGEST_BOOTSTRAP:
        raise LimitError(
            f"{settings.draws} draws of {len(positive)} logs at {len(settings.sensitivity)} levels need about "
            f"{memory_text(numbers * 8)}; at most {memory_text(LARGEST_BOOTSTRAP * 8)} are taken",
            hint="take fewer draws or levels",
        )
    weights = draw_logs(positive, settings.draws, np.random.default_rng(settings.seed))
    note = few_units_note(fewest, "log")
    few = [] if note is None else [f"logs of one kind are {note}"]
    return Draws(weights, settings.confidence), few


def _logs_used(logs: Logs, *numbers: Ints) -> LogsUsed:
    """How many logs of each kind; and by their numbers where the truth never stops, and breaks the safety radius."""
    positive = int(np.count_nonzero(logs.positive))
    never, breaks = (tuple(logs.names[at] for at in number) for number in numbers or ((), ()))
    return LogsUsed(positive, len(logs.names) - positive, never, breaks)


def _of_all(second: Sequence[SecondEngine]) -> SecondEngine | None:
    """How the other engine differs over all sources."""
    if not second:
        return None
    return SecondEngine(
        second[0].engine,
        max(one.largest_area_difference for one in second),
        sum(one.runs for one in second),
        sum(one.safety_differs for one in second),
    )


def _remarks(
    logs: Logs, validation: Logs | None, tables: Mapping[str, Standardizer], settings: StudySettings, used: LogsUsed
) -> list[str]:
    remarks = list(logs.remarks)
    if validation is None:
        remarks.append(
            "scores were standardized with the false positives of the evaluated logs themselves, not of separate "
            "validation images"
        )
    else:
        remarks += [f"validation logs: {remark}" for remark in validation.remarks if remark not in logs.remarks]
    lost = int(np.isnan(logs.person_m[:, 0]).sum())
    if lost and set(settings.metrics) - {"roc_a", "roc_b"}:
        people = f"{lost} of {len(logs.person_m)} people have no position"
        remarks.append(f"{people}: only ROC A and B ask whether they are found")
    images = min(table.image_count for table in tables.values())
    if settings.sensitivity[0] * images < 1:
        remarks.append(
            f"{images} validation images cannot tell sensitivities below {significant(1 / images, 2)} false "
            "positives per image apart; the levels below let through what is stronger than every false "
            "positive of theirs"
        )
    for names, what in (
        (used.truth_never_stops, "the reference vehicle never stops in {}, where every detector counts as safe"),
        (used.truth_breaks_safety_radius, "even the reference vehicle does not keep the safety radius in {}"),
    ):
        if names:
            remarks.append(what.format(_counted(names)))
    return remarks


def _counted(names: Sequence[str]) -> str:
    """How many positive logs, and the names of the first."""
    more = ", ..." if len(names) > FEW_NAMES else ""
    return f"{len(names)} positive log{'s' * (len(names) > 1)} ({', '.join(names[:FEW_NAMES])}{more})"
