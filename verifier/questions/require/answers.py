"""The search for one planner, and Storm's word on what it found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np

from verifier.analysis.intervals.intervals import measured
from verifier.analysis.recall.cells import RecallCells, counts_with_recall, relevant_columns
from verifier.analysis.recall.least_cost import BoxFamily, Improvement, least_cost, least_floors
from verifier.analysis.recall.requirements import Path, Problem, Searched, Target, search, worst_along
from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.errors import UsageError
from verifier.base.numbers import decimal_text
from verifier.base.words import first_of
from verifier.checking.process import StormProcess
from verifier.checking.verdicts import Verdict
from verifier.perception.confusion import EMPTY, ConfusionMatrices, exact_rates, rates
from verifier.perception.confusion.matrices import label_text
from verifier.pipeline import check_case
from verifier.questions.require.question import Question
from verifier.questions.require.require_result import Answer, CellRecall, CertifiedFloor, MeasuredRecall, Outcome
from verifier.study.case import Case
from verifier.study.collection import collected
from verifier.study.points import Point
from verifier.study.provenance import noted

Curve: TypeAlias = tuple[tuple[str, float], ...]
"""Places on a path, as text, and P there."""
MOST_LOWERED = 16
"""Cells of the cheapest improvement that exact arithmetic is asked about."""
EXACT_TRANSITIONS = 2000
"""Chains with at most so many transitions are checked with rational numbers even when nobody asks for that, unless a
formula makes more than four times as many of them: Storm may then take all the time there is."""
_STEPS_ON = (0, 1, 2, 4, 8, 16, 32, 64)
"""How many places further on is tried when Storm's bounds do not confirm a place."""


@dataclass(frozen=True, eq=False)
class Situation:
    """One planner at one value of each swept constant, in every environment.

    Attributes:
        cases: of a study of the one requirement in question, which has a target.
        problem: what all chains must meet, and the measured rates.
        counts: (bins, predicted, true) behind these rates, empty columns filled by the policy.
        relevant: for each objective the (bin, true label) pairs that make a difference to it, (k, 2) each.
    """

    cases: tuple[Case, ...]
    problem: Problem
    counts: Ints
    relevant: tuple[Ints, ...]

    @classmethod
    def of(cls, cases: tuple[Case, ...]) -> Situation:
        """Build the products with the requirement; VerifierError as `verifier.pipeline.verify_spec`."""
        (requirement,) = cases[0].study.requirements
        if requirement.target is None:
            raise ValueError("this requirement has no target; set one with --target")
        objectives = tuple(case.objective(0) for case in cases)
        counts = [case.counts for case in cases][-1]  # the same for all, but each needs other columns
        target = Target(requirement.comparison, requirement.target)
        problem = Problem(objectives, rates(counts), target)
        relevant = tuple(relevant_columns(objective, problem.rates) for objective in objectives)
        return cls(cases, problem, counts, relevant)

    @property
    def matrices(self) -> ConfusionMatrices:
        """As measured."""
        return self.cases[0].study.matrices

    @property
    def exact(self) -> bool:
        """Whether Storm computes with rational numbers."""
        sizes = [
            (len(objective.skeleton.indices), len(objective.product.indices)) for objective in self.problem.objectives
        ]
        small = all(chain <= EXACT_TRANSITIONS and asked <= 4 * chain for chain, asked in sizes)
        return self.cases[0].study.options.engines.exact or small

    def check(
        self, counts: Ints, storm: StormProcess | None, only: Sequence[bool] | None = None
    ) -> tuple[Point, tuple[str, ...]]:
        """The worst point with other matrices, by both engines, and what a reader must know about it.

        Args:
            counts: (bins, predicted, true), every needed column with items.
            storm: a running worker.
            only: for each case whether to look at it; None for all.

        Raises:
            EngineError: Storm failed, or the engines disagree.
        """
        assert storm is not None  # only curves are without
        study = self.cases[0].study.with_counts(counts, exact=self.exact)
        chosen = [replace(case, study=study) for k, case in enumerate(self.cases) if only is None or only[k]]
        checked = [check_case(case, storm) for case in chosen]
        (result,) = collected(study.requirements, checked, [None] * len(checked))
        remarks = tuple(text for case in checked for text in case.remarks)
        return result.worst_point, (*remarks, *noted((case.case, case.notes) for case in checked))


@dataclass(frozen=True, eq=False)
class _Task:
    """What the steps of one search share."""

    situation: Situation
    question: Question
    storm: StormProcess | None
    cells: RecallCells

    @cached_property
    def varies(self) -> list[bool]:
        """For each objective whether the recalls in question make a difference to it."""
        cells = set(zip(self.cells.bins.tolist(), self.cells.columns.tolist(), strict=True))
        return [bool(cells & {(at, label) for at, label in array.tolist()}) for array in self.situation.relevant]

    @cached_property
    def problem(self) -> Problem:
        """What the recalls in question must meet."""
        problem = self.situation.problem.varying(self.varies)
        beside = problem.beside
        if beside is None or beside.met[0] or beside.failed[0] or not self.situation.exact:
            return problem
        # Numerical bounds do not decide what stays as it is: exact arithmetic does, once and for all.
        point, _ = self.situation.check(self.situation.counts, self.storm, [not varied for varied in self.varies])
        met = point.verdict is Verdict.SATISFIED
        return replace(problem, beside=replace(beside, met=np.array([met]), failed=np.array([not met])))

    @property
    def items(self) -> list[tuple[int, int]]:
        """Hits and items of each cell."""
        counts = self.situation.counts
        pairs = zip(self.cells.bins.tolist(), self.cells.columns.tolist(), strict=True)
        return [(int(counts[at, label, label]), int(counts[at, :, label].sum())) for at, label in pairs]

    def at(self, recall: Sequence[int]) -> Point:
        """The worst point with these recalls, in parts of 1/whole."""
        counts = counts_with_recall(self.situation.counts, self.cells, recall, self.question.whole)
        return self.situation.check(counts, self.storm)[0]

    def described(self, recall: Sequence[int] | None) -> tuple[CellRecall, ...]:
        """The cells for people, with the recalls that are required of them."""
        whole, matrices = self.question.whole, self.situation.matrices
        places = zip(self.cells.bins.tolist(), self.cells.columns.tolist(), self.items, strict=True)
        return tuple(
            CellRecall(
                matrices.bin_text(at),
                label_text(matrices.labels[label]),
                MeasuredRecall(hits, items, hits / items),
                None if recall is None else decimal_text(Fraction(int(recall[k]), whole)),
            )
            for k, (at, label, (hits, items)) in enumerate(places)
        )


@dataclass(frozen=True)
class _Found:
    """What a search found: recalls and the place they stand for, or the closest that was tried."""

    outcome: Outcome
    recall: list[int] | None
    place: Fraction | None
    point: Point | None
    gaps: tuple[tuple[Fraction, Fraction], ...] = ()
    curve: Curve = ()
    search_place: int = 0


def answer(
    situation: Situation,
    question: Question,
    chosen: Mask,
    as_measured: Point,
    storm: StormProcess,
    condition: str | None = None,
) -> Answer:
    """What one planner requires of perception.

    Args:
        situation: the planner in all its scenarios.
        chosen: (bins, true) the cells in question, as far as they make a difference.
        as_measured: the worst point with the measured matrices.
        storm: a running worker.
        condition: what the answer assumes of the detector.

    Raises:
        UsageError: the question does not fit the cells that make a difference.
        EngineError, LimitError: from checking.
    """
    here, others = _in_question(situation, chosen)
    matrices = situation.matrices
    perfect, _ = situation.check(perfect_counts(situation.counts), storm)
    solution, box = _Found(Outcome.INDEPENDENT, None, None, None), None
    cells: tuple[CellRecall, ...] = ()
    if len(here) > 0:
        _check_fits(question, here, matrices)
        task = _Task(situation, question, storm, _cells(situation, here))
        solution = _cheapest(task) if question.mode == "cost" else _along_path(task)
        cells = task.described(solution.recall)
        box = _box(task, solution) if question.floor else None
    return Answer(
        planner=situation.cases[0].planner.name,
        constants={name: decimal_text(value) for name, value in situation.cases[0].swept.items()},
        outcome=solution.outcome,
        condition=condition,
        met_as_measured=as_measured.verdict is Verdict.SATISFIED,
        planner_is_limit=perfect.verdict is Verdict.VIOLATED,
        value=None if solution.place is None else decimal_text(solution.place),
        cells=cells,
        gaps=tuple((decimal_text(low), decimal_text(high)) for low, high in solution.gaps),
        curve=solution.curve,
        measured=as_measured,
        at_value=solution.point,
        perfect=perfect,
        floor=box,
        others=tuple(_column_text(matrices, *pair) for pair in others.tolist()),
    )


def curve_of(situation: Situation, question: Question, chosen: Mask) -> Curve:
    """The curve of an answer that goes along a path, as `answer` has it, by the batch engine alone."""
    here, _ = _in_question(situation, chosen)
    if len(here) == 0:
        return ()
    task = _Task(situation, question, None, _cells(situation, here))
    path = _path(task, question.mode)
    return _curve(path, *worst_along(situation.problem.varying(task.varies), path, question.grid))


def _in_question(situation: Situation, chosen: Mask) -> tuple[Ints, Ints]:
    """(k, 2) the bins and true labels in question that make a difference, and those of the others that do."""
    relevant = np.unique(np.concatenate(situation.relevant), axis=0)
    in_question = chosen[relevant[:, 0], relevant[:, 1]] if len(relevant) else np.zeros(0, dtype=bool)
    return relevant[in_question], relevant[~in_question]


def _cells(situation: Situation, here: Ints) -> RecallCells:
    return RecallCells(here[:, 0], here[:, 1], situation.matrices.labels.index(EMPTY))


def perfect_counts(counts: Ints) -> Ints:
    """Matrices that report every label as itself."""
    return np.ascontiguousarray(np.broadcast_to(np.eye(counts.shape[1], dtype=np.int64), counts.shape))


def _column_text(matrices: ConfusionMatrices, index: int, column: int) -> str:
    return f"{label_text(matrices.labels[column])} in {matrices.bin_text(index)}"


def _check_fits(question: Question, here: Ints, matrices: ConfusionMatrices) -> None:
    """Modes `cell` and `bin` ask about one cell and one bin."""
    listed = first_of([_column_text(matrices, *pair) for pair in here.tolist()], 8)
    with_memory = "" if matrices.memory is None else " and --context"
    if question.mode == "cell" and len(here) != 1:
        raise UsageError(
            f"mode 'cell' asks about one cell; name it with --class, --bin{with_memory}. In question are: {listed}"
        )
    contexts = 1 if matrices.memory is None else matrices.memory.contexts.count
    if question.mode == "bin" and len(np.unique(here[:, 0] // contexts)) != 1:
        raise UsageError(f"mode 'bin' asks about one bin; name it with --bin METRES. In question are: {listed}")


def _path(task: _Task, kind: str) -> Path:
    misses = tuple(1 - Fraction(hits, items) for hits, items in task.items)
    return Path("factor" if kind == "factor" else "level", task.cells, task.question.whole, misses)


def _along_path(task: _Task) -> _Found:
    """Modes `common`, `bin`, `cell` and `factor`."""
    path = _path(task, task.question.mode)
    searched = search(task.problem, path, task.question.grid)
    gaps = tuple(_ends(path, *gap) for gap in searched.gaps)
    curve = _curve(path, searched.places, searched.worst)
    place, point = _confirmed(task, path, searched)
    if place is not None:
        return _Found(Outcome.FOUND, path.recall(place), _value(path, place), point, gaps, curve, place)
    values = searched.worst
    closest = searched.places[int(values.argmin() if task.situation.problem.target.is_upper else values.argmax())]
    outcome = Outcome.ONLY_IN_GAPS if gaps else Outcome.INFEASIBLE
    return _Found(outcome, None, None, task.at(path.recall(closest)), gaps, curve)


def _curve(path: Path, places: Sequence[int], worst: Floats) -> Curve:
    return tuple((decimal_text(_value(path, place)), p) for place, p in zip(places, worst.tolist(), strict=True))


def _value(path: Path, place: int) -> Fraction:
    return Fraction(place, path.whole) if path.kind == "level" else path.factor(place)


def _ends(path: Path, low: int, high: int) -> tuple[Fraction, Fraction]:
    first, last = sorted((_value(path, low), _value(path, high)))
    return first, last


def _confirmed(task: _Task, path: Path, searched: Searched) -> tuple[int | None, Point | None]:
    """The least place that Storm confirms; where its bounds decide nothing, the last place that was tried."""
    place, point = None, None
    if searched.least is not None:
        for step in _STEPS_ON:
            if searched.least + step > path.top:
                break
            place, point = searched.least + step, task.at(path.recall(searched.least + step))
            if point.verdict is Verdict.SATISFIED:
                break
    if task.situation.exact and place == searched.least:
        # Below lie places that numerical bounds leave open; each counts if all above it do.
        for lower in reversed(searched.unsure):
            tried = task.at(path.recall(lower))
            if tried.verdict is not Verdict.SATISFIED:
                break
            place, point = lower, tried
    return place, point


def _cheapest(task: _Task) -> _Found:
    """Mode `cost`."""
    question = task.question
    pairs = zip(task.cells.bins.tolist(), task.cells.columns.tolist(), strict=True)
    improvement = Improvement(
        task.problem,
        task.cells,
        tuple(Fraction(hits, items) for hits, items in task.items),
        tuple(question.price_of(task.situation.matrices, *pair) for pair in pairs),
        question.whole,
    )
    begin = []
    for kind in ("level", "factor"):
        searched = search(task.problem, _path(task, kind), question.grid)
        if searched.least is not None:
            begin.append(searched.path.recall(searched.least))
    cheapest = least_cost(improvement, begin, np.random.default_rng(question.seed))
    if cheapest is None:
        return _Found(Outcome.INFEASIBLE, None, None, task.at([question.whole] * task.cells.count))
    for step in _STEPS_ON:
        recall = [min(part + step, question.whole) if step else part for part in cheapest]
        point = task.at(recall)
        if point.verdict is Verdict.SATISFIED:
            break
    recall, point = _lowered(task, improvement, recall, point)
    return _Found(Outcome.FOUND, recall, improvement.cost(recall), point)


def _lowered(task: _Task, improvement: Improvement, recall: list[int], point: Point) -> tuple[list[int], Point]:
    """One part less of each recall where exact arithmetic still confirms it, the dearest first: the target itself
    lies within numerical bounds, so the search stops one short of it."""
    if not task.situation.exact or point.verdict is not Verdict.SATISFIED:
        return recall, point
    for cell in sorted(range(len(recall)), key=lambda cell: -improvement.costs[cell])[:MOST_LOWERED]:
        if recall[cell] > improvement.least[cell]:
            less = [*recall[:cell], recall[cell] - 1, *recall[cell + 1 :]]
            tried = task.at(less)
            if tried.verdict is Verdict.SATISFIED:
                recall, point = less, tried
    return recall, point


def _box(task: _Task, solution: _Found) -> CertifiedFloor:
    """The certified floor: common to all cells, or on the line from the recalls found to perfect recall."""
    question, situation = task.question, task.situation
    common = question.mode in ("common", "bin", "cell")
    begin = [0] * task.cells.count if common or solution.recall is None else solution.recall
    held = measured(task.situation.matrices).fixed.copy()
    if question.rest == "measured":
        held[:] = True
    held[task.cells.bins, task.cells.columns] = False
    problem = situation.problem.varying([len(array) > 0 for array in situation.relevant])
    family = BoxFamily(
        problem,
        task.cells,
        tuple(begin),
        question.whole,
        exact_rates(situation.counts),
        held & ~np.isnan(problem.rates).any(axis=1),
        "shared_matrix" if question.semantics == "shared_matrix" else "per_state",
    )
    floors = least_floors(family, solution.search_place if common else 0)
    return CertifiedFloor(
        None
        if floors.floors is None
        else tuple(decimal_text(Fraction(floor, question.whole)) for floor in floors.floors),
        floors.bound,
        floors.checked,
        question.rest,
        question.semantics,
    )
