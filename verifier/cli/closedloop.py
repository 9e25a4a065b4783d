"""The command `verify closed-loop`: call the study, print and write what it found."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_args

from verifier.base.errors import UsageError, shown
from verifier.base.files import csv_text, write_bytes, write_text
from verifier.cli.closedloop_data import data_record, given_logs, input_files
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.sources import check_writable
from verifier.cli.terminal import progress_bar, wants_colour
from verifier.closedloop.closed_loop_curve import ClosedLoopSettings as LoopSettings
from verifier.closedloop.closed_loop_curve import standard_sensitivities
from verifier.closedloop.comparison import NamedCurve
from verifier.closedloop.curvefiles import curves_csv, curves_json
from verifier.closedloop.judged import PathifierMetric
from verifier.closedloop.logfiles import write_logs
from verifier.closedloop.logs import Logs
from verifier.closedloop.pathifier import Radii
from verifier.closedloop.paths import PathSettings
from verifier.closedloop.results import TradeOffs
from verifier.closedloop.settings import USUAL_METRICS, ClosedLoopSettings, RobrocSettings, Severity
from verifier.closedloop.study import Study, study, study_trace
from verifier.closedloop.study_settings import METRICS, StudySettings
from verifier.closedloop.traces import Trace
from verifier.closedloop.vehicle import VehicleSettings
from verifier.perception.matching import MatchingPolicy
from verifier.provenance import own_versions
from verifier.telling.closedloop import trade_off_tables
from verifier.telling.figures.closedloop import curves_figure, table_figure
from verifier.telling.figures.drawing import check_plot_target, figure_bytes

Item = TypeVar("Item")
OUTPUTS = ("output", "csv", "plot", "plot_table")


@dataclass(frozen=True)
class Gathered:
    """Curves and where they come from; the fields are those of `TradeOffs`."""

    title: str
    curves: Sequence[NamedCurve]
    inputs: tuple[dict[str, str], ...]
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=own_versions)
    remarks: tuple[str, ...] = ()


def closed_loop_command(arguments: ClosedLoopSettings, command: Command) -> int:
    """Run `verify closed-loop` and give its exit code."""
    settings = study_settings(arguments)
    trace_file = None if arguments.trace is None else arguments.trace[1]
    files = input_files(arguments)
    check_targets(arguments, {"curves": arguments.curves, "trace": trace_file}, [str(each.path) for each in files])
    _check_new_folder(arguments.write_logs)
    logs, validation = given_logs(arguments)
    _check_rectangles(logs, arguments)
    traced = None if arguments.trace is None else _trace(arguments.trace[0], logs, validation, settings)
    found = study(logs, validation, settings, partial(progress_bar, what="sources"))
    result = _result(arguments, found, settings, [each.record() for each in files])
    texts = {trace_file: traced} if trace_file is not None and traced is not None else {}
    if arguments.curves is not None:
        curves = [each for table in result.tables for each in table.curves.values()]
        as_csv = Path(arguments.curves).suffix.lower() == ".csv"
        texts[arguments.curves] = curves_csv(curves) if as_csv else _curves_json(curves, result, command)
    if arguments.write_logs is not None:
        write_logs(logs, arguments.write_logs)
    give(arguments, result, texts, command)
    return 0


def study_settings(arguments: ClosedLoopSettings) -> StudySettings:
    """The choices of a study; UsageError for an argument that cannot be read or is missing."""
    chosen = arguments.metric or USUAL_METRICS
    try:
        vehicle = VehicleSettings(
            arguments.top_speed,
            -arguments.deceleration,
            arguments.acceleration,
            arguments.step,
            arguments.start_speed,
            arguments.between_images,
            arguments.too_close,
        )
        levels = standard_sensitivities(arguments.levels, arguments.lowest, arguments.highest)
        radii = Radii(arguments.control_radius, arguments.safety_radius)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return StudySettings(
        radii,
        LoopSettings(vehicle, arguments.engine, arguments.stop_cost, arguments.tolerance),
        levels,
        tuple(each for each in METRICS if each in chosen),
        not arguments.metric,
        PathSettings(arguments.path_extension),
        matching_policy(arguments),
        arguments.fpr_max,
        PathifierMetric(first_frame=arguments.first_frame),
        checked_severities(arguments.severity),
        arguments.group,
        arguments.never_stops,
        arguments.draws,
        arguments.seed,
        arguments.confidence,
    )


def matching_policy(arguments: ClosedLoopSettings) -> MatchingPolicy:
    """What counts as a match with a person."""
    if arguments.match_distance is None:
        return MatchingPolicy("iou_2d", 0.5 if arguments.match_iou is None else arguments.match_iou)
    if arguments.match_iou is not None:
        raise UsageError("--match-distance and --match-iou are two ways to match; choose one")
    return MatchingPolicy("centre_bev", arguments.match_distance)


def checked_severities(given: Mapping[str, str]) -> dict[str, str]:
    """Condition -> severity; UsageError where one is none."""
    known = get_args(Severity)
    for name, kind in given.items():
        if kind not in known:
            raise UsageError(f"--severity: {name} is {shown(kind)}; expected {' or '.join(known)}")
    return dict(given)


def give(
    arguments: ClosedLoopSettings | RobrocSettings, result: TradeOffs, texts: Mapping[str, str], command: Command
) -> None:
    """Write and print; everything is made before anything is written."""
    pictures = {}
    if arguments.plot is not None:
        chosen = arguments.plot_detector, arguments.plot_row
        pictures[arguments.plot] = figure_bytes(curves_figure(result, *chosen), arguments.plot)
    if arguments.plot_table is not None:
        pictures[arguments.plot_table] = figure_bytes(table_figure(result), arguments.plot_table)
    document = with_provenance(result.json_text(), command)
    written = dict(texts)
    if arguments.output is not None:
        written[arguments.output] = document
    if arguments.csv is not None:
        written[arguments.csv] = csv_text(result.rows())
    printed = document if arguments.json else trade_off_tables(result, colour=wants_colour())
    for path, text in written.items():
        write_text(path, text)
    for path, picture in pictures.items():
        write_bytes(path, picture)
    print(printed, end="")


def check_targets(
    arguments: ClosedLoopSettings | RobrocSettings, more: Mapping[str, str | None], sources: Sequence[str]
) -> None:
    """Refuse outputs that could not be written, or would overwrite an input, before anything is computed."""
    targets = {name: getattr(arguments, name) for name in OUTPUTS} | dict(more)
    for name, target in targets.items():
        if target is None:
            continue
        if name in ("plot", "plot_table"):
            check_plot_target(target)
        for source in sources:
            if Path(target).exists() and Path(source).exists() and Path(target).samefile(source):
                raise UsageError(f"--{name.replace('_', '-')}: {target} is an input of this run")
        check_writable(target)
    named = [os.path.realpath(target) for target in targets.values() if target is not None]
    if len(set(named)) < len(named):
        raise UsageError("two outputs would be written to the same file")


def _curves_json(curves: Sequence[NamedCurve], result: TradeOffs, command: Command) -> str:
    """The curves as JSON, with where they come from."""
    origin = {"versions": dict(result.versions), "inputs": [dict(each) for each in result.inputs]}
    return with_provenance(curves_json(curves, result.title), command, origin)


def _check_new_folder(target: str | None) -> None:
    """Refuse to write logs where something is; before anything is computed."""
    if target is None:
        return
    folder = Path(target)
    if not target or (folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))):
        raise UsageError(f"--write-logs: {shown(target)} exists already; name a new folder")


def _check_rectangles(logs: Logs, arguments: ClosedLoopSettings) -> None:
    """Refuse to match by rectangles what has none; UsageError."""
    if arguments.match_distance is None and logs.person_box_2d is None and len(logs.person_image):
        raise UsageError(
            "these logs have no rectangles in the image: say from which distance on the ground on a detection "
            "matches a person, --match-distance M"
        )


def _result(
    arguments: ClosedLoopSettings, found: Study, settings: StudySettings, inputs: Sequence[Mapping[str, str]]
) -> TradeOffs:
    return TradeOffs(
        f"{Path(arguments.logs).resolve().name}: {', '.join(found.tables[0].detectors)}",
        tuple(inputs),
        data_record(arguments) | _record(settings),
        own_versions(),
        found.remarks,
        found.tables,
        found.logs,
        found.second,
    )


def _record(settings: StudySettings) -> dict[str, Any]:
    """Every choice that can change a number, by name."""
    levels = settings.sensitivity
    return {
        "control_radius_m": settings.radii.control_m,
        "safety_radius_m": settings.radii.safety_m,
        "path_extension_m": settings.path.extension_m,
        "knot_spacing_m": settings.path.knot_spacing_m,
        "metrics": list(settings.metrics),
        "levels": {"count": len(levels), "lowest": float(levels[0]), "highest": float(levels[-1])},
        "vehicle": settings.loop.vehicle.record(),
        "engine": settings.loop.engine,
        "stop_cost_s": settings.loop.stop_cost_s,
        "tolerance_m": settings.loop.tolerance_m,
        "matching": settings.policy.record(),
        "fpr_max": settings.fpr_max,
        "first_frame": settings.pathifier.first_frame,
        "never_stops": settings.never_stops,
        "severities": dict(settings.severities),
        "groups": {name: list(each) for name, each in settings.groups.items()},
        "bootstrap": {"draws": settings.draws, "seed": settings.seed, "confidence": settings.confidence},
    }


def _trace(run: str, logs: Logs, validation: Logs | None, settings: StudySettings) -> str:
    """The steps of one run as CSV."""
    refusal = UsageError(f"--trace: expected LOG,SOURCE,SENSITIVITY or LOG,truth, got {shown(run)}")
    log, comma, last = run.rpartition(",")
    if last == "truth" and comma:
        found = study_trace(logs, validation, settings, log, None, None)
    else:
        log, comma, source = log.rpartition(",")
        try:
            level = float(last)
        except ValueError:
            raise refusal from None
        if not comma or not level >= 0:
            raise refusal
        found = study_trace(logs, validation, settings, log, source, level)
    return _trace_csv(found)


def _trace_csv(found: Trace) -> str:
    names = ("time_s", "position_m", "speed_mps", "image", "distance_m", "safe_speed_mps", "stopped")
    columns = [getattr(found, name).tolist() for name in names]
    return csv_text([dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)])
