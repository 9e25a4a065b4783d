"""The command `verify closed-loop`: check what is to be written, call, print and write."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from verifier.base.errors import UsageError, shown
from verifier.base.files import csv_text, write_bytes, write_text
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.targets import check_targets
from verifier.cli.terminal import progress_bar, wants_colour
from verifier.closedloop.curvefiles import curves_csv, curves_json
from verifier.closedloop.logfiles import write_logs
from verifier.closedloop.request import ClosedLoopRequest
from verifier.closedloop.settings import ClosedLoopSettings, RobrocSettings
from verifier.closedloop.trade_offs import TradeOffs
from verifier.telling.closedloop import trade_off_tables
from verifier.telling.figures.closedloop import curves_figure, table_figure
from verifier.telling.figures.drawing import figure_bytes


def closed_loop_command(arguments: ClosedLoopSettings, command: Command) -> int:
    """Run `verify closed-loop` and give its exit code."""
    request = ClosedLoopRequest(arguments)
    trace_file = None if arguments.trace is None else arguments.trace[1]
    check_targets(arguments, within=[str(file.path) for file in request.files])
    _check_new_folder(arguments.write_logs)
    trace = request.trace()
    result = request.trade_offs(partial(progress_bar, what="sources"))
    texts = {trace_file: csv_text(trace.rows())} if trace_file is not None and trace is not None else {}
    if arguments.curves is not None:
        texts[arguments.curves] = _curves_text(arguments.curves, result, command)
    if arguments.write_logs is not None:
        write_logs(request.data[0], arguments.write_logs)
    give(arguments, result, texts, command)
    return 0


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


def _curves_text(target: str, result: TradeOffs, command: Command) -> str:
    """Every curve as CSV, or as JSON with where it comes from."""
    curves = [curve for table in result.tables for curve in table.curves.values()]
    if Path(target).suffix.lower() == ".csv":
        return curves_csv(curves)
    origin = {"versions": dict(result.versions), "inputs": [dict(file) for file in result.inputs]}
    return with_provenance(curves_json(curves, result.title), command, origin)


def _check_new_folder(target: str | None) -> None:
    """Refuse to write logs where something is; before anything is computed."""
    if target is None:
        return
    folder = Path(target)
    if not target or (folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))):
        raise UsageError(f"--write-logs: {shown(target)} exists already; name a new folder")
