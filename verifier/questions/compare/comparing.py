"""From specs and the matrices of several detectors to who is better, and how sure that is.

    specs x detectors -> Storm at every point; common draws of the matrices -> scores -> chances, curves, gate

`compare` is that story. Every probability that is reported is Storm's, as in `verify run`; the draws run on the batch
engine. Planners that share a detector are given the same draws; detectors that were run on the same sequences are
given the same randomly weighted sequences, others independent draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TypeAlias

import numpy as np

from verifier.analysis.channel_test import Channel
from verifier.analysis.confidence import Data
from verifier.analysis.robust.solutions import RobustBounds
from verifier.analysis.settings import INTERVALS, ConfidenceSettings
from verifier.base.arrays import Floats
from verifier.base.blocks import HERE, Pool
from verifier.base.budget import memory_limit
from verifier.base.errors import UsageError
from verifier.checking.process import StormProcess
from verifier.checking.verdicts import verdict_of
from verifier.questions.compare.compare_result import (
    CompareChoices,
    CompareResult,
    Configuration,
    Detector,
    Drawn,
    ScoreInterval,
    SpecComparison,
)
from verifier.questions.compare.gating import CompareOptions, gate_of
from verifier.questions.compare.metric_tables import ClassMetrics
from verifier.questions.compare.metrics import Swaps, class_metrics, interval_remark, reversals
from verifier.questions.compare.reach import Checking, Draws, Job, reaches
from verifier.questions.compare.scores import (
    Scores,
    check_enough_draws,
    outside_intervals,
    pareto_view,
    places_of,
    requirement_comparison,
    shared_draws,
)
from verifier.study.case import Case, Study
from verifier.study.collection import CheckedCase, Judging, collected
from verifier.study.inputs import Grid, read_inputs, refuse_others
from verifier.study.options import RunOptions, clock_of
from verifier.study.points import Point
from verifier.study.profile import Profile, profiles
from verifier.study.provenance import (
    grid_remarks,
    input_files,
    matrices_record,
    noted,
    program_versions,
    run_remarks,
    run_settings,
)
from verifier.study.records import SettingsRecord
from verifier.study.results import RequirementResult, RunInput, engines_over
from verifier.systems.model import SystemModel

Constants: TypeAlias = tuple[tuple[str, str], ...]
Progress: TypeAlias = Callable[[Sequence[Job]], Iterable[Job]]


def compare(
    specs: Sequence[str | Path],
    detectors: Mapping[str, str | Path],
    asked: CompareOptions,
    options: RunOptions = RunOptions(),
    progress: Progress = iter,
    system: SystemModel | None = None,
    pool: Pool = HERE,
) -> CompareResult:
    """Compare every planner with every detector under every spec.

    Args:
        specs: `.ltl` files of different names.
        detectors: name -> confusion document.
        asked: what to look at.
        options: see `RunOptions`; the same for all. Its `confidence` says what is drawn, and its `verdict_from`
            whether the confidence bounds or the measured matrices are compared with the targets.
        progress: wraps the chains to be checked (of one spec at a time), for a progress bar.
        system: as in `verify_spec`; the specs all name its file.
        pool: who checks and draws.

    Raises:
        VerifierError: see `verifier.base.errors`; each says what to do.
    """
    names = [PurePath(spec).name for spec in specs]
    if not names or not detectors or len(set(names)) < len(names):
        raise UsageError("expected at least one spec and one detector, and specs of different names")
    if options.decimals is not None or options.strategies:
        raise UsageError("--round-transitions and --strategies belong to verify run: leave them out")
    options.refuse_what_a_run_alone_has("verify compare")
    options = with_default_memory(options, asked.best_planner)
    settings = options.confidence
    if settings is None:
        raise UsageError("verify compare needs draws of the matrices: leave out --point-only")
    if options.verdict_from == "interval":
        raise UsageError("verdicts of a comparison come from the confidence bounds or from the point")
    with StormProcess() as storm, memory_limit(options.limits.memory_bytes):
        tasks = [_Task.of(spec, detectors, asked, options, system) for spec in specs]
        checks = sum(len(task.grid.requirements) * len(task.grid.blocks) for task in tasks) * len(detectors)
        for name in tasks[0].studies:
            one_memory(name, [task.studies[name] for task in tasks])
        with clock_of(options, checks).running("the comparison"):
            data = [task.data() for task in tasks]
            count = shared_draws([evidence for mine in data for evidence in mine.values()], settings)
            check_enough_draws(count, asked.drop_from)
            outcomes = [
                task.compared(
                    {name: replace(data, draws=count) for name, data in mine.items()}, settings, storm, progress, pool
                )
                for task, mine in zip(tasks, data, strict=True)
            ]
        version = storm.storm_version()
    if asked.pareto is not None and all(compared.comparison.pareto is None for compared in outcomes):
        raise UsageError(f"no spec has both requirements of the Pareto view: {' and '.join(asked.pareto)}")
    gate = None
    if asked.baseline is not None:
        hashes = {name: study.inputs.confusion.sha256 for name, study in tasks[0].studies.items()}
        compared = [(compared.comparison, compared.scores) for compared in outcomes]
        gate = gate_of(asked.baseline, asked, compared, hashes, options.selection)
    compared_specs = tuple(compared.comparison for compared in outcomes)
    entries = [entry for spec in compared_specs for requirement in spec.requirements for entry in requirement.entries]
    return CompareResult(
        inputs=_input_files(tasks),
        detectors=tuple(
            Detector(
                name, study.inputs.confusion.matrices.title, matrices_record(study.inputs.confusion, study.divided)
            )
            for name, study in tasks[0].studies.items()
        ),
        settings=CompareChoices(
            pareto=asked.pareto,
            best_planner=asked.best_planner,
            max_drop=None if gate is None else gate.max_drop,
            specs={compared.comparison.spec: compared.settings for compared in outcomes},
        ),
        versions={**program_versions(), "storm": version},
        engines=engines_over(point for entry in entries for point in entry.points),
        draws=count,
        level=settings.level,
        specs=compared_specs,
        gate=gate,
        remarks=tuple(dict.fromkeys(text for compared in outcomes for text in compared.remarks)),
    )


@dataclass(frozen=True, eq=False)
class _Compared:
    """What one spec gave."""

    comparison: SpecComparison
    scores: Scores
    settings: Mapping[str, SettingsRecord]
    remarks: list[str]


@dataclass(frozen=True, eq=False)
class _Task:
    """One spec with all detectors: a study of each, about the same scenarios."""

    name: str
    studies: dict[str, Study]
    asked: CompareOptions
    options: RunOptions

    @classmethod
    def of(
        cls,
        spec: str | Path,
        detectors: Mapping[str, str | Path],
        asked: CompareOptions,
        options: RunOptions,
        system: SystemModel | None,
    ) -> _Task:
        """Read the files."""
        inputs = {name: read_inputs(spec, path, options, system) for name, path in detectors.items()}
        first = Study.of(next(iter(inputs.values())), options)
        refuse_others(first.requirements, "verify compare")
        studies = {name: first.with_inputs(files) for name, files in inputs.items()}
        return cls(PurePath(spec).name, studies, asked, options)

    @property
    def grid(self) -> Grid:
        """The scenarios, the same for all detectors."""
        return next(iter(self.studies.values())).grid

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """Detectors outermost."""
        planners = dict.fromkeys(block.planner.name for block in self.grid.blocks)
        return tuple(Configuration(detector, planner) for detector in self.studies for planner in planners)

    def data(self) -> dict[str, Data]:
        """Each detector's counts, and what is drawn of them."""
        return {name: data for name, study in self.studies.items() if (data := study.data) is not None}

    def compared(
        self,
        data: Mapping[str, Data],
        settings: ConfidenceSettings,
        storm: StormProcess,
        progress: Progress,
        pool: Pool,
    ) -> _Compared:
        """Everything about the spec; `data` of each detector, with as many draws of each."""
        (count,) = {evidence.draws for evidence in data.values()}
        scores, points = Scores(count), dict[tuple[int, int], list[Point]]()
        bounds = dict[tuple[int, int], list[ScoreInterval]]()
        weighed = {name: profiles(study, None) for name, study in self.studies.items()}
        asked_means = [
            number for number, requirement in enumerate(self.grid.requirements) if requirement.over_profile
        ]
        means = {
            (number, k): (
                weighed[configuration.detector][configuration.planner, self.grid.requirements[number].name],
                dict[Constants, Floats](),
            )
            for k, configuration in enumerate(self.configurations)
            for number in asked_means
        }
        matrices, assumed = next(iter(self.studies.values())).matrices, dict[str, list[str]]()
        said = list(grid_remarks(self.grid, self.options.false_positives, matrices))
        swaps = Swaps(self.studies)
        configurations, noticed = self.configurations, list[tuple[Case, tuple[str, ...]]]()
        jobs = [(name, case) for name, study in self.studies.items() for case in study.cases]
        found_of_jobs = Checking(self.studies, data, settings).found(jobs, storm, pool)
        for (detector, case), (checked, draws) in zip(progress(jobs), found_of_jobs, strict=True):
            said += checked.remarks
            noticed.append((case, checked.notes))
            assumed.setdefault(detector, []).extend(case.assumed)
            configuration = configurations.index(Configuration(detector, case.planner.name))
            self._collect(checked, configuration, data[detector], draws, scores, points, means)
            for index, held in enumerate(draws[0] or ()):
                ends = zip(held.lower.tolist(), held.upper.tolist(), strict=True)
                bounds.setdefault((index, configuration), []).extend(ScoreInterval(*pair) for pair in ends)
            for index, objective in enumerate(case.objectives if self.asked.metrics else ()):
                sign = -1 if self.grid.requirements[index].is_upper else 1
                swaps.add(index, configuration, detector, objective, sign)
        for (number, k), (profile, drawn) in means.items():
            for mean in profile.means(mine := points[number, k]):
                scores.add_mean((number, k), mean, mine[0], drawn[tuple(mean.constants.items())])
        kinds = [data[configuration.detector].choice.kind for configuration in configurations]
        point_rows = [
            [points[index, k] for k in range(len(configurations))] for index in range(len(self.grid.requirements))
        ]
        reach = reaches(self.studies, self.asked.best_planner)
        requirements = tuple(
            requirement_comparison(
                requirement,
                configurations,
                point_rows[index],
                scores,
                index,
                kinds,
                settings.level,
                reach[index],
                [means[index, k][0] for k in range(len(configurations))] if requirement.over_profile else (),
                [bounds.get((index, k), ()) for k in range(len(configurations))],
            )
            for index, requirement in enumerate(self.grid.requirements)
        )
        metrics: tuple[ClassMetrics, ...] = ()
        if self.asked.metrics:
            metrics = class_metrics(self.studies, swaps, settings.seed)
            requirements = tuple(
                requirement
                if requirement.over_profile
                else replace(requirement, reversals=reversals(requirement, k, configurations, metrics, swaps))
                for k, requirement in enumerate(requirements)
            )
        asked = self.asked.pareto
        return _Compared(
            SpecComparison(
                self.name,
                configurations,
                tuple(
                    Drawn(
                        name, evidence.choice.kind, evidence.choice.reason, Channel(classes=self.studies[name].tests)
                    )
                    for name, evidence in data.items()
                ),
                requirements,
                None if asked is None else pareto_view(asked, requirements, scores, len(configurations)),
                metrics,
            ),
            scores,
            {name: run_settings(self.studies[name], self.options, evidence) for name, evidence in data.items()},
            [*outside_intervals(requirements), *said, *noted(noticed), *self._remarks(data, assumed)],
        )

    def _collect(
        self,
        checked: CheckedCase,
        configuration: int,
        data: Data,
        drawn_of: Draws,
        scores: Scores,
        points: dict[tuple[int, int], list[Point]],
        means: Mapping[tuple[int, int], tuple[Profile, dict[Constants, Floats]]],
    ) -> None:
        """The points and draws of one chain."""
        case, study = checked.case, checked.case.study
        objectives = case.objectives
        where = places_of(case, objectives[0].skeleton)
        judging = Judging(run_settings(study, self.options, data), study.tests)
        results = collected(study.requirements, [checked], [None], judging)
        held, draws = drawn_of
        for index, (result, drawn) in enumerate(zip(results, draws, strict=True)):
            sign = -1 if result.is_upper else 1
            judged = result.points
            if held is not None:
                judged = tuple(_judged(judging, result, held[index]))
            known = points.setdefault((index, configuration), [])
            if (index, configuration) in means:
                profile, averages = means[index, configuration]
                share = np.array(profile.weights[len(known) : len(known) + len(judged)], dtype=np.float64)
                constants = tuple(case.constants.items())
                averages[constants] = averages.get(constants, 0.0) + np.concatenate([part @ share for part in drawn])
            else:
                scores.add_points((index, configuration), sign, where, result.points)
                scores.add((index, configuration), sign, where, drawn)
            known.extend(judged)

    def _remarks(self, data: Mapping[str, Data], assumed: Mapping[str, list[str]]) -> Iterable[str]:
        for name, study in self.studies.items():
            before = f"{name}: " if len(self.studies) > 1 else ""
            matrices, mine = study.inputs.confusion.matrices, assumed.get(name, ())
            said = run_remarks(matrices, self.options, mine, (), data[name], study.tests, study.divided)
            yield from (before + text for text in said)
            if self.asked.metrics:
                yield before + interval_remark(study)
        yield from dict.fromkeys(
            text for evidence in data.values() if (text := INTERVALS[evidence.choice.kind].paired)
        )


def _judged(judging: Judging, result: RequirementResult, bounds: RobustBounds) -> Iterator[Point]:
    """The points with the verdicts that the bounds give."""
    target = result.target
    for point, lower, upper in zip(result.points, bounds.lower.tolist(), bounds.upper.tolist(), strict=True):
        model = None if target is None else verdict_of(lower, upper, target.comparison, target.probability)
        yield point.decided(judging.decision(point, target, model))


def _input_files(tasks: Sequence[_Task]) -> tuple[RunInput, ...]:
    """The specs with their models, then the matrices in the order of the detectors."""
    files: dict[RunInput, None] = {}
    for task in tasks:
        for study in task.studies.values():
            inputs = study.inputs
            files.update(dict.fromkeys(input_files(inputs.spec, inputs.model, inputs.confusion)[:-1]))
    matrices = [study.inputs.confusion for study in tasks[0].studies.values()]
    return (*files, *(RunInput.of("confusion", matrix.name, matrix.sha256) for matrix in matrices))


def with_default_memory(options: RunOptions, best_planner: int | None) -> RunOptions:
    """The options with the memory that the data support, where none is asked for and the best planner is not either.

    Raises:
        UsageError: memory is asked for together with the best planner.
    """
    if best_planner is None:
        return options.by_default()
    if options.remembers:
        raise UsageError(
            "--best-planner: a planner that remembers every report learns what the detector remembers, and such "
            "games are solved for memoryless detectors only: leave it out, or name --memory none"
        )
    return options


def one_memory(detector: str, studies: Sequence[Study]) -> None:
    """Refuse a detector of which the data support other contexts under each spec; UsageError."""
    used = dict.fromkeys(study.memory for study in studies)
    if len(used) > 1:
        raise UsageError(
            f"detector {detector}: what its data support depends on the classes of a spec's model, here "
            f"{' and '.join(used)}: name one with --memory"
        )
