"""The commands `verify closed-loop`, `robroc` and `collision`: check what is to be written, call, print and write."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from verifier.base.blocks import Pool
from verifier.base.documents import json_values
from verifier.base.errors import UsageError, shown
from verifier.base.files import csv_text
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.terminal import Bars, check_targets, give_result, progress_bar, tell_shares, wants_colour
from verifier.closedloop.curvefiles import curves_csv, curves_json
from verifier.closedloop.logfiles import write_logs
from verifier.closedloop.request import ClosedLoopRequest, matrix_families, robroc_result
from verifier.closedloop.settings import ClosedLoopSettings, RobrocSettings
from verifier.closedloop.trade_offs import TradeOffs
from verifier.collision.request import CollisionRequest
from verifier.collision.settings import CollisionSettings
from verifier.telling.figures.drawing import figure_bytes


def closed_loop_command(arguments: ClosedLoopSettings, command: Command) -> int:
    """Run `verify closed-loop` and give its exit code."""
    request = ClosedLoopRequest(arguments)
    check_targets(arguments, within=[str(file.path) for file in request.files])
    _check_new_folder(arguments.write_logs)
    trace = request.trace()
    with Pool(arguments.scheduler) as pool:
        result = request.trade_offs(partial(progress_bar, what="sources"), pool)
    tell_shares(pool.shares)
    steps = "" if trace is None else csv_text(trace.rows())
    if arguments.write_logs is not None:
        write_logs(request.data[0], arguments.write_logs)
    _give(arguments, result, command, curves=lambda path: _curves_text(path, result, command), trace=lambda _: steps)
    return 0


def robroc_command(arguments: RobrocSettings, command: Command) -> int:
    """Run `verify robroc` and give its exit code."""
    matrix_families(arguments)  # what does not fit together is refused first
    check_targets(arguments)
    _give(arguments, robroc_result(arguments, partial(progress_bar, what="thresholds")), command)
    return 0


def _give(
    arguments: ClosedLoopSettings | RobrocSettings,
    result: TradeOffs,
    command: Command,
    **files: Callable[[str], str | bytes],
) -> None:
    drawn = partial(result.plot, detectors=arguments.plot_detector, rows=arguments.plot_row)
    files["plot"] = lambda path: figure_bytes(drawn(), path)
    give_result(arguments, command, result, partial(result.told, colour=wants_colour()), None, **files)


def _curves_text(target: str, result: TradeOffs, command: Command) -> str:
    """Every curve as CSV, or as JSON with where it comes from."""
    curves = [curve for table in result.tables for curve in table.curves.values()]
    remarks = [*map(str, result.not_defined), *result.remarks]
    if Path(target).suffix.lower() == ".csv":
        return curves_csv(curves, remarks)
    origin = {"versions": dict(result.versions), "inputs": json_values(result.inputs)}
    return with_provenance(curves_json(curves, result.title, remarks), command, origin)


def _check_new_folder(target: str | None) -> None:
    """Refuse to write logs where something is; before anything is computed."""
    if target is None:
        return
    folder = Path(target)
    if not target or (folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))):
        raise UsageError(f"--write-logs: {shown(target)} exists already; name a new folder")


def collision_command(arguments: CollisionSettings, command: Command) -> int:
    """Run `verify collision` and give its exit code."""
    request = CollisionRequest(arguments)
    check_targets(arguments, apart=True)
    _check_plots(arguments, len(request.detectors))
    with Bars() as bars, Pool(arguments.scheduler) as pool:
        result = request.result(bars, pool)
    tell_shares(pool.shares)
    give_result(arguments, command, result)
    return 0


def _check_plots(arguments: CollisionSettings, detectors: int) -> None:
    for name in ("plot_comparison", "plot_ranking"):
        if getattr(arguments, name) is not None and detectors < 2:
            raise UsageError(f"--{name.replace('_', '-')} needs two detectors or more")
    if arguments.plot_ranking is not None and arguments.two_bandwidths:
        raise UsageError("--plot-ranking: with two bandwidths there is no ranking")
