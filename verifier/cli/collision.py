"""The command `verify collision`: check what is to be written, call, print and write."""

from __future__ import annotations

from typing import Any

from verifier.base.errors import UsageError
from verifier.base.files import csv_text, write_bytes, write_text
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.targets import check_targets
from verifier.cli.terminal import is_watched
from verifier.collision.request import CollisionRequest
from verifier.collision.result import CollisionResult
from verifier.collision.settings import CollisionSettings
from verifier.collision.subsampling import Progress
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
    with _Bars() as bars:
        result = request.result(bars)
    _give(arguments, result, command)
    return 0


def _give(arguments: CollisionSettings, result: CollisionResult, command: Command) -> None:
    """Everything is made before anything is written."""
    targets = {name: getattr(arguments, name) for name in PLOTS if getattr(arguments, name) is not None}
    pictures = {path: figure_bytes(PLOTS[name](result), path) for name, path in targets.items()}
    document = with_provenance(result.json_text(), command)
    if arguments.output is not None:
        write_text(arguments.output, document)
    if arguments.csv is not None:
        write_text(arguments.csv, csv_text(result.rows()))
    for path, picture in pictures.items():
        write_bytes(path, picture)
    print(document if arguments.json else collision_tables(result), end="")


def _check_plots(arguments: CollisionSettings, detectors: int) -> None:
    for name in ("plot_comparison", "plot_ranking"):
        if getattr(arguments, name) is not None and detectors < 2:
            raise UsageError(f"--{name.replace('_', '-')} needs two detectors or more")
    if arguments.plot_ranking is not None and arguments.two_bandwidths:
        raise UsageError("--plot-ranking: with two bandwidths there is no ranking")
    if arguments.plot_closed_loop is not None and arguments.closed_loop is None:
        raise UsageError("--plot-closed-loop needs --closed-loop METRES")


class _Bars:
    """One progress bar on stderr after the other, where a person is looking."""

    def __init__(self) -> None:
        self._bar: Any = None

    def __enter__(self) -> _Bars:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def __call__(self, name: str) -> Progress:
        self._close()
        return self._bar_of(name) if is_watched() else _nothing

    def _bar_of(self, name: str) -> Progress:
        from tqdm import tqdm

        self._bar = bar = tqdm(desc=name, leave=False, delay=0.5)

        def told(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        return told

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _nothing(done: int, total: int) -> None:
    """No progress is shown."""
