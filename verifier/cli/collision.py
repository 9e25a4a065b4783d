"""The command `verify collision`: check what is to be written, call, print and write."""

from functools import partial

from verifier.base.blocks import Pool
from verifier.base.errors import UsageError
from verifier.base.files import csv_text
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.targets import check_targets, give
from verifier.cli.terminal import Bars, tell_shares
from verifier.collision.request import CollisionRequest
from verifier.collision.result import CollisionResult
from verifier.collision.settings import CollisionSettings
from verifier.telling.collision import collision_tables
from verifier.telling.figures.collision import (
    closed_loop_figure,
    comparison_figure,
    interval_figure,
    map_figure,
    ranking_figure,
)
from verifier.telling.figures.drawing import figure_bytes

PLOTS = {
    "plot": map_figure,
    "plot_intervals": interval_figure,
    "plot_comparison": comparison_figure,
    "plot_ranking": ranking_figure,
    "plot_closed_loop": closed_loop_figure,
}


def collision_command(arguments: CollisionSettings, command: Command) -> int:
    """Run `verify collision` and give its exit code."""
    request = CollisionRequest(arguments)
    check_targets(arguments, apart=True)
    _check_plots(arguments, len(request.detectors))
    with Bars() as bars, Pool(arguments.scheduler) as pool:
        result = request.result(bars, pool)
    tell_shares(pool.shares)
    document = with_provenance(result.json_text(), command)
    pictures = {name: partial(_picture, result, name) for name in PLOTS}
    give(
        arguments,
        document,
        lambda: collision_tables(result),
        csv=lambda _: csv_text(result.rows()),
        **pictures,
    )
    return 0


def _picture(result: CollisionResult, name: str, path: str) -> bytes:
    return figure_bytes(PLOTS[name](result), path)


def _check_plots(arguments: CollisionSettings, detectors: int) -> None:
    for name in ("plot_comparison", "plot_ranking"):
        if getattr(arguments, name) is not None and detectors < 2:
            raise UsageError(f"--{name.replace('_', '-')} needs two detectors or more")
    if arguments.plot_ranking is not None and arguments.two_bandwidths:
        raise UsageError("--plot-ranking: with two bandwidths there is no ranking")
    if arguments.plot_closed_loop is not None and arguments.closed_loop is None:
        raise UsageError("--plot-closed-loop needs --closed-loop METRES")
