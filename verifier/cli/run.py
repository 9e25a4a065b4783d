"""The command `verify run`: call the pipeline, print and write what it found."""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from verifier.chains import EXPORT_FORMATS
from verifier.cli.arguments import run_options
from verifier.cli.plots import check_plot_target, write_run_plot
from verifier.cli.tables import run_table
from verifier.errors import UsageError
from verifier.expressions import to_text
from verifier.options import RunOptions
from verifier.pipeline import export_chain, verify_spec
from verifier.results import RunResult, number_text
from verifier.specs import read_spec
from verifier.textfiles import write_text

Item = TypeVar("Item")


def run_command(arguments: argparse.Namespace) -> int:
    """Run `verify run` and give its exit code."""
    if arguments.parse:
        print(parse_echo(arguments.spec), end="")
        return 0
    if arguments.cm is None:
        raise UsageError("name the confusion matrices: --cm RESULTS.json")
    options = run_options(arguments)
    if arguments.plot is not None:
        check_plot_target(arguments.plot)
    if arguments.export is not None and Path(arguments.export).suffix not in EXPORT_FORMATS:
        raise UsageError(f"--export: expected a file name ending in {', '.join(EXPORT_FORMATS)}")

    result = verify_spec(arguments.spec, arguments.cm, options, progress_bar)
    if arguments.output is not None:
        write_text(arguments.output, result.json_text())
    if arguments.csv is not None:
        write_text(arguments.csv, csv_text(result))
    if arguments.plot is not None:
        write_run_plot(_panels(arguments, options, result), arguments.plot, arguments.plot_scale)
    if arguments.export is not None:
        export_chain(arguments.spec, arguments.cm, arguments.export, options)
    if arguments.json:
        print(result.json_text(), end="")
    else:
        print(run_table(result, points=arguments.points, colour=_wants_colour()), end="")
    return int(result.verdict.exit_code)


def parse_echo(spec_path: str) -> str:
    """Every requirement as it is read, fully parenthesised."""
    lines = []
    for each in read_spec(spec_path).requirements:
        target = "= ?" if each.target is None else f"{each.comparison} {number_text(each.target)}"
        lines.append(f"{each.name}: P {target} [ {to_text(each.formula, parenthesise=True)} ]")
    return "\n".join(lines) + "\n"


def csv_text(result: RunResult) -> str:
    """One line per requirement and scenario, with a header."""
    rows = list(result.rows())
    stream = io.StringIO()
    writer = csv.DictWriter(stream, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def progress_bar(items: Sequence[Item]) -> Iterable[Item]:
    """A progress bar on stderr over a long grid, where a person is looking."""
    if len(items) < 2 or not sys.stderr.isatty():
        return items
    from tqdm import tqdm

    return tqdm(items, desc="chains", unit="chain", leave=False, delay=0.5)


def _panels(arguments: argparse.Namespace, options: RunOptions, result: RunResult) -> list[tuple[str, RunResult]]:
    """The canonical matrix beside those by distance; the result alone where it is canonical already."""
    if options.canonical:
        return [("canonical", result)]
    canonical = verify_spec(arguments.spec, arguments.cm, replace(options, canonical=True), progress_bar)
    return [("canonical", canonical), ("by distance", result)]


def _wants_colour() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ
