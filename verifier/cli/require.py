"""The command `verify require`: ask, print and write what was found."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from verifier.checking.process import StormProcess
from verifier.cli.arguments import run_options
from verifier.cli.invocation import with_provenance
from verifier.cli.require_arguments import question
from verifier.cli.require_tables import require_table
from verifier.cli.sources import is_one_of, with_models
from verifier.errors import InputError, Place, UsageError
from verifier.pipeline import read_inputs
from verifier.require.results import RequireResult
from verifier.require.story import required
from verifier.textfiles import write_text


def require_command(arguments: argparse.Namespace) -> int:
    """Run `verify require` and give its exit code."""
    asked, options = question(arguments), run_options(arguments)
    _check_targets(arguments)
    with StormProcess() as storm:
        inputs = read_inputs(arguments.spec, arguments.cm, options)
        result = required(inputs, asked, options, storm, _progress_bar)
    # Everything is made before anything is written.
    table, document = require_table(result), with_provenance(result.json_text(), arguments)
    if arguments.output is not None:
        write_text(arguments.output, document)
    if arguments.csv is not None:
        write_text(arguments.csv, csv_text(result))
    print(document if arguments.json else table, end="")
    return int(result.exit_code)


def csv_text(result: RequireResult) -> str:
    """One line per planner and cell, with a header."""
    rows = list(result.rows())
    stream = io.StringIO()
    header = list(rows[0]) if rows else ["requirement", "planner", "outcome", "bin", "label", "required_recall"]
    writer = csv.DictWriter(stream, fieldnames=header, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _check_targets(arguments: argparse.Namespace) -> None:
    """Refuse outputs that could not be written, or would overwrite an input, before anything is computed."""
    sources = (*with_models([arguments.spec]), arguments.cm, arguments.cost)
    for option in ("output", "csv"):
        target = getattr(arguments, option)
        if target is None:
            continue
        if is_one_of(target, sources):
            raise UsageError(f"--{option}: {target} is an input of this run")
        if not target or Path(target).is_dir() or not Path(target).absolute().parent.is_dir():
            raise InputError("cannot be written: no such folder, or a folder itself", Place(target or "''"))


def _progress_bar(items: Sequence[Any]) -> Iterable[Any]:
    """A progress bar on stderr over many planners, where a person is looking."""
    if len(items) < 2 or sys.stderr is None or not sys.stderr.isatty():
        return items
    from tqdm import tqdm

    return tqdm(items, desc="planners", unit="planner", leave=False, delay=0.5)
