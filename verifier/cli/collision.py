"""The command `verify collision`: read, study, print and write. Nothing is computed here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from verifier.base.errors import UsageError
from verifier.base.files import csv_text, write_bytes, write_text
from verifier.checking.process import StormProcess
from verifier.cli.collision_options import (
    check_that_options_apply,
    detector_names,
    estimator,
    grid,
    loop_settings,
    shown_speeds,
)
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.sources import check_writable
from verifier.cli.terminal import is_watched
from verifier.collision.comparison import THRESHOLD
from verifier.collision.exact import WINDOW_M
from verifier.collision.oracle import Penalty
from verifier.collision.pairs_of_detections import pairs_of_detections
from verifier.collision.pairs_reader import ReadPairs, read_pairs, read_record
from verifier.collision.profile import read_profile
from verifier.collision.ranking import REPLICATES as RANKING_REPLICATES
from verifier.collision.remarks import study_remarks
from verifier.collision.result import CollisionResult
from verifier.collision.settings import BOOTSTRAP, DECELERATION_MPS2, CollisionSettings
from verifier.collision.stopping import BrakingPolicy
from verifier.collision.study import StudySettings, collision_study
from verifier.collision.subsampling import Progress, Subsampling
from verifier.perception.detections import Reading, keep_scores, read_class_map, read_detections
from verifier.perception.matching import MatchingPolicy, usual_threshold
from verifier.provenance import program_versions
from verifier.telling.collision import collision_tables
from verifier.telling.figures.collision import (
    closed_loop_figure,
    comparison_figure,
    interval_figure,
    map_figure,
    ranking_figure,
)
from verifier.telling.figures.drawing import check_plot_target, figure_bytes

PLOTS = {
    "plot": map_figure,
    "plot_intervals": interval_figure,
    "plot_comparison": comparison_figure,
    "plot_ranking": ranking_figure,
    "plot_closed_loop": closed_loop_figure,
}


def collision_command(arguments: CollisionSettings, command: Command) -> int:
    """Run `verify collision` and give its exit code."""
    check_that_options_apply(arguments)
    settings = _settings(arguments)
    _check_targets(arguments)
    detectors = list(_detectors(arguments))
    titles = [each.pairs.title for each in detectors]
    if len(set(titles)) < len(titles):
        raise UsageError(f"two detectors have one name: {', '.join(titles)}")
    _check_plots(arguments, len(detectors))
    with contextlib.ExitStack() as stack:
        storm = stack.enter_context(StormProcess()) if settings.loop is not None else None
        bars = stack.enter_context(_Bars())
        policies = collision_study(detectors, settings, storm, bars)
        storm_version = {} if storm is None else {"storm": storm.storm_version()}
    remarks = study_remarks(detectors, settings, policies)
    title = arguments.title or ", ".join(titles)
    versions = {**program_versions(), **storm_version}
    result = CollisionResult(title, tuple(detectors), settings, policies, versions, remarks)
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


def _settings(arguments: CollisionSettings) -> StudySettings:
    on, unit = grid(arguments)
    decelerations = arguments.deceleration or (DECELERATION_MPS2,)
    policies = tuple(BrakingPolicy(each, arguments.reaction) for each in decelerations)
    if len(set(policies)) < len(policies):
        raise UsageError("--deceleration: a value is given twice")
    return StudySettings(
        grid=on,
        policies=policies,
        speed_unit=unit,
        shown_mps=shown_speeds(arguments, on),
        estimator=estimator(arguments),
        level=arguments.level,
        window_m=WINDOW_M if arguments.window is None else arguments.window,
        subsampling=Subsampling(arguments.subsample_size, arguments.subsamples),
        bootstrap=_count(arguments.bootstrap, 0 if arguments.two_bandwidths else BOOTSTRAP, "--bootstrap", 0),
        ranking=_count(arguments.ranking_replicates, RANKING_REPLICATES, "--ranking-replicates", 1),
        seed=_count(arguments.seed, 0, "--seed", 0),
        penalty=Penalty(arguments.alpha_loss, arguments.beta_loss, arguments.heavy),
        threshold=THRESHOLD if arguments.good_loss is None else arguments.good_loss,
        weight=None if arguments.weight is None else read_profile(arguments.weight, on),
        held_out=arguments.held_out,
        loop=loop_settings(arguments, on, policies[0]),
    )


def _count(given: int | None, usual: int, option: str, least: int) -> int:
    if given is not None and given < least:
        raise UsageError(f"{option}: expected a whole number from {least}, got {given}")
    return usual if given is None else given


def _detectors(arguments: CollisionSettings) -> Iterator[ReadPairs]:
    """The pairs of every detector that the arguments name."""
    sources = {"--pairs": arguments.tables, "--record": arguments.record, "--detections": arguments.detections}
    if not any(sources.values()):
        raise UsageError(
            "name the data: PAIRS.csv, --pairs NAME=FILE, --record FILE, or --format NAME --annotations PATH "
            "--detections PATH"
        )
    named = detector_names(sources)
    for name, path in named["--pairs"]:
        yield _table(arguments, name, path)
    for name, path in named["--record"]:
        if arguments.distance is None:
            raise UsageError(
                "--record: name the measure of distance that verify confusion counted with: --distance MEASURE "
                "(its default is euclidean_3d); the record does not say"
            )
        yield read_record(
            path, arguments.distance, classes=arguments.classes, same_class=arguments.same_class, title=name or ""
        )
    for name, path in named["--detections"]:
        yield _detected(arguments, name or Path(path).stem, path)


def _table(arguments: CollisionSettings, name: str | None, path: str) -> ReadPairs:
    return read_pairs(
        path,
        classes=arguments.classes,
        image_count=arguments.images,
        columns=arguments.column,
        negative_reports=arguments.negative_reports,
        title=name or "",
    )


def _detected(arguments: CollisionSettings, name: str, path: str) -> ReadPairs:
    if arguments.format is None or arguments.annotations is None:
        raise UsageError("--detections goes with --format NAME and --annotations PATH")
    options: dict[str, Any] = {} if arguments.frames is None else {"frames": arguments.frames}
    if arguments.column and arguments.format == "table":
        options["columns"] = arguments.column
    how = Reading(
        None if arguments.class_map is None else read_class_map(arguments.class_map),
        tuple(arguments.ignore),
        sequences=tuple(arguments.sequence) or None,
    )
    data = read_detections(arguments.format, arguments.annotations, path, how, **options)
    if arguments.min_score is not None:
        data = keep_scores(data, arguments.min_score)
    policy = None
    if arguments.affinity is not None:
        threshold = arguments.match_threshold
        if threshold is None:
            threshold = usual_threshold(arguments.affinity)
        try:
            policy = MatchingPolicy(arguments.affinity, threshold)
        except ValueError as error:
            raise UsageError(f"matching: {error}") from None
    elif arguments.match_threshold is not None:
        raise UsageError("--match-threshold goes with --affinity")
    return pairs_of_detections(
        data,
        classes=arguments.classes,
        measure=arguments.distance or "ground_plane",
        policy=policy,
        same_class=arguments.same_class,
        title=name,
    )


def _check_targets(arguments: CollisionSettings) -> None:
    """Refuse outputs that could not be written, or would overwrite an input, before anything is computed."""
    sources = [arguments.table, arguments.weight, arguments.annotations, arguments.frames, arguments.class_map]
    sources += [*arguments.pairs, *arguments.record, *arguments.detections]
    paths = [each for text in sources if text is not None for each in (text, text.partition("=")[2]) if each]
    targets: list[str] = []
    for name in ("output", "csv", *PLOTS):
        target = getattr(arguments, name)
        option = "--" + name.replace("_", "-")
        if target is None:
            continue
        if name in PLOTS:
            check_plot_target(target)
        if target in targets:
            raise UsageError(f"{option}: {target} is another output of this run")
        targets.append(target)
        for path in paths:
            if Path(target).exists() and Path(path).exists() and Path(target).samefile(path):
                raise UsageError(f"{option}: {target} is an input of this run")
            if Path(path).is_dir() and Path(path).resolve() in Path(target).resolve().parents:
                raise UsageError(f"{option}: {target} is in an input of this run, {path}")
        check_writable(target)


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
