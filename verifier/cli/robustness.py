"""The commands `verify assess`, `mutate`, `adr` and `predict`: call what does it, print and write."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from verifier.base.blocks import Pool
from verifier.base.errors import ExitCode, UsageError, one_line
from verifier.base.files import csv_text, document_text, write_bytes, write_text
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.terminal import check_targets, give, is_watched, progress_bar, tell_shares, wants_colour
from verifier.robustness.assessment.document import assess_document
from verifier.robustness.assessment.plan import plans_text
from verifier.robustness.assessment.request import assessed
from verifier.robustness.assessment.result import AssessmentResult
from verifier.robustness.mutators.batch_result import ImageResult
from verifier.robustness.mutators.request import RESULT_FILE, chosen_mutations, mutated
from verifier.robustness.predicting import predict_result
from verifier.robustness.rates import adr_result
from verifier.robustness.settings import AssessSettings, MutateSettings, PredictSettings, RatesSettings
from verifier.telling.assess import assess_markdown, assess_tables
from verifier.telling.figures.drawing import figure_bytes
from verifier.telling.figures.rates import (
    curves_figure,
    objects_figure,
    prediction_figure,
    table_figure,
    weights_figure,
)
from verifier.telling.mutate import left_over_note, mutate_table, shown_mutations
from verifier.telling.rates import adr_table, predict_table


def assess_command(arguments: AssessSettings, command: Command) -> int:
    """Run `verify assess` and give its exit code."""
    _check_folders(arguments)
    check_targets(arguments, "assessment")
    with Pool(arguments.scheduler) as workers:
        result = assessed(arguments, progress_bar, workers)
    tell_shares(workers.shares)
    give(
        arguments,
        with_provenance(document_text(assess_document(result)), command),
        lambda: assess_tables(result),
        markdown=lambda _: assess_markdown(result),
        plan=lambda _: plans_text(result.title, result.plans),
        plot=partial(_picture, result),
    )
    return int(result.verdict.exit_code)


def _picture(result: AssessmentResult, path: str) -> bytes:
    from verifier.telling.figures.assess import assess_figure

    return figure_bytes(assess_figure(result), path)


def _check_folders(arguments: AssessSettings) -> None:
    """Refuse folders that an output would lie in the way of, before anything is computed."""
    made = None if arguments.make is None else Path(arguments.make).resolve()
    for name in ("output", "markdown", "plan", "plot"):
        target = getattr(arguments, name)
        if made is not None and target is not None and Path(target).resolve() in (made, *made.parents):
            raise UsageError(f"--{name}: {target} is or holds the folder of --make")


def mutate_command(arguments: MutateSettings, command: Command) -> int:
    """Run `verify mutate` and give its exit code: 4 if anything could not be made."""
    if arguments.show:
        print(shown_mutations(chosen_mutations(arguments)), end="")
        return int(ExitCode.SATISFIED)
    with Pool(arguments.scheduler) as workers:
        result, folder = mutated(arguments, _bar, workers), Path(arguments.output or "")
    tell_shares(workers.shares)
    document = with_provenance(result.json_text(), command)
    write_text(folder / RESULT_FILE, document)
    if result.sheet is not None and arguments.sheet is not None:
        write_bytes(arguments.sheet, result.sheet)
    if arguments.json:
        print(document, end="")
        if result.left_over:
            print(f"verify: note: {one_line(left_over_note(result.left_over, folder))}", file=sys.stderr)
    else:
        print(mutate_table(result, folder, RESULT_FILE, result.left_over), end="")
    return int(ExitCode.BAD_INPUT if result.failures else ExitCode.SATISFIED)


def _bar(results: Iterable[ImageResult], count: int) -> Iterable[ImageResult]:
    """The results, with a progress bar on a terminal."""
    if not is_watched():
        return results
    from tqdm import tqdm

    return tqdm(results, desc="images", total=count, leave=False, delay=0.5)


OBJECT_COLUMNS = ("detector", "condition", "image", "object", "before", "after")


def adr_command(arguments: RatesSettings, command: Command) -> int:
    """Run `verify adr` and give its exit code."""
    check_targets(arguments)
    result = adr_result(arguments)
    give(
        arguments,
        with_provenance(result.json_text(), command),
        lambda: adr_table(result, colour=wants_colour()),
        csv=lambda _: csv_text(result.rows()),
        objects=lambda _: csv_text(result.required_rows(), OBJECT_COLUMNS),
        plot=lambda path: figure_bytes(curves_figure(result), path),
        plot_table=lambda path: figure_bytes(table_figure(result), path),
        plot_objects=lambda path: figure_bytes(objects_figure(result), path),
    )
    return 0


def predict_command(arguments: PredictSettings, command: Command) -> int:
    """Run `verify predict` and give its exit code."""
    check_targets(arguments)
    result = predict_result(arguments)
    give(
        arguments,
        with_provenance(result.json_text(), command),
        lambda: predict_table(result, colour=wants_colour()),
        csv=lambda _: csv_text(result.rows()),
        plot=lambda path: figure_bytes(prediction_figure(result), path),
        plot_weights=lambda path: figure_bytes(weights_figure(result), path),
    )
    return 0
