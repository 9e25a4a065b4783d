"""The commands `verify adr` and `verify predict`: call, print and write."""

from __future__ import annotations

from verifier.base.files import csv_text
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.targets import check_targets, give
from verifier.cli.terminal import wants_colour
from verifier.robustness.predicting import predict_result
from verifier.robustness.rates import adr_result
from verifier.robustness.settings import PredictSettings, RatesSettings
from verifier.telling.figures.drawing import figure_bytes
from verifier.telling.figures.rates import (
    curves_figure,
    objects_figure,
    prediction_figure,
    table_figure,
    weights_figure,
)
from verifier.telling.rates import adr_table, predict_table

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
