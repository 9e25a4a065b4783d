"""From a spec, matrices and a question to the least recall that meets a requirement.

    spec + model + matrices -> products of every scenario -> path of matrices -> search -> Storm at the answer

`require` is that story. The search runs on the batch engine; every probability that is reported is Storm's, on the
chain of the matrices in question, and on small chains it is an exact fraction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path as FilePath
from typing import TypeAlias

from verifier.analysis.dependence.channel_test import (
    Drawn,
    channel_condition,
    channel_document,
    channel_test,
    class_tests,
    drawn_together,
)
from verifier.base.budget import memory_limit
from verifier.base.errors import UsageError
from verifier.blocks import clock_of
from verifier.checking.process import StormProcess
from verifier.language.expressions import to_text
from verifier.language.specs import Requirement
from verifier.options import MIX_ELSEWHERE, RunOptions
from verifier.pipeline import Inputs, read_inputs
from verifier.provenance import (
    grid_remarks,
    input_files,
    matrices_record,
    program_versions,
    run_remarks,
    run_settings,
)
from verifier.questions.require.answers import answer
from verifier.questions.require.question import Question
from verifier.questions.require.results import Answer, RequireResult
from verifier.questions.require.situation import make_situation
from verifier.scenarios import Block, Grid, number_text

Progress: TypeAlias = Callable[[Sequence[tuple[Block, ...]]], Iterable[tuple[Block, ...]]]


def require(
    spec_path: str | FilePath,
    confusion_path: str | FilePath,
    question: Question,
    options: RunOptions = RunOptions(),
    progress: Progress = iter,
) -> RequireResult:
    """What perception must do for one requirement of a spec.

    Args:
        spec_path: a `.ltl` file; it names the system model.
        confusion_path: a confusion document; its rates are what every search starts from.
        question: what is asked.
        options: see `RunOptions`; its requirements must not name another one.
        progress: wraps the planners (with their swept constants), for a progress bar.

    Raises:
        VerifierError: see `verifier.base.errors`; each says what to do.
    """
    with StormProcess() as storm, memory_limit(options.limits.memory_bytes):
        return required(read_inputs(spec_path, confusion_path, options), question, options, storm, progress)


def required(
    inputs: Inputs, question: Question, options: RunOptions, storm: StormProcess, progress: Progress = iter
) -> RequireResult:
    """As `require`, for files that are read and a worker that runs."""
    _refuse_what_does_not_fit(options)
    name = _requirement_name(inputs, question, options)
    grid = inputs.grid(replace(options, selection=replace(options.selection, requirements=(name,))))
    requirement = _with_target(grid.requirements[0], question)
    grid, matrices = replace(grid, requirements=(requirement,)), inputs.matrices(options)
    chosen = question.in_question(matrices)
    answers: list[Answer] = []
    assumed: list[str] = []
    said, drawn = list(grid_remarks(grid, options.false_alarms)), list[Drawn]()
    clock = clock_of(options, len(grid.blocks))
    for blocks in progress(_by_planner(grid)):
        with clock.running(f"the search for what {name} requires"):
            situation = make_situation(blocks, grid, matrices, options)
            as_measured, remarks = situation.check(situation.counts, storm)
            answers.append(answer(situation, question, chosen, as_measured, storm))
        assumed += situation.assumed
        said += remarks
        drawn.append(situation.draws)
    tests = class_tests(inputs.confusion.matrices.metadata, drawn_together(drawn))
    conditions = [channel_condition(channel_test(tests, each)) for each in drawn]
    return RequireResult(
        title=inputs.confusion.matrices.title or FilePath(inputs.confusion.name).stem,
        inputs=input_files(inputs.spec, inputs.model, inputs.confusion),
        settings={**run_settings(grid, options, None), **_settings(question)},
        requirement=name,
        formula=to_text(requirement.formula, parenthesise=True),
        comparison=requirement.comparison,
        target=requirement.target or Fraction(0),
        mode=question.mode,
        answers=tuple(
            replace(found, condition=condition) for found, condition in zip(answers, conditions, strict=True)
        ),
        versions={**program_versions(), "storm": storm.storm_version()},
        remarks=run_remarks(inputs.confusion.matrices, options, assumed, said, None, tests),
        matrices=matrices_record(inputs.confusion),
        channel=channel_document(tests),
    )


def _refuse_what_does_not_fit(options: RunOptions) -> None:
    if options.mix is not None:
        raise UsageError(MIX_ELSEWHERE)
    if options.decimals is not None:
        raise UsageError("recalls are searched for on unrounded transitions: leave out --round-transitions")
    if options.strategies:
        raise UsageError("the range over all winning strategies belongs to verify run: leave out --strategies")


def _requirement_name(inputs: Inputs, question: Question, options: RunOptions) -> str:
    """The one requirement that is asked about."""
    named = dict.fromkeys(
        (*options.selection.requirements, *([question.requirement] if question.requirement else []))
    )
    known = [each.name for each in inputs.spec.requirements]
    if len(named) > 1 or (not named and len(known) != 1):
        listed = ", ".join(known)
        raise UsageError(f"one requirement is asked about at a time: --requirement NAME; the spec has {listed}")
    return next(iter(named), known[0] if known else "")


def _with_target(requirement: Requirement, question: Question) -> Requirement:
    """The requirement with the target that is asked about."""
    target = question.target
    if target is not None:
        return replace(requirement, comparison=target.comparison, target=target.probability)
    if requirement.target is None:
        raise UsageError(
            f"requirement '{requirement.name}' is P = ? and has no target: name one, as --target 0.95 or "
            "--target '<= 0.01'"
        )
    return requirement


def _by_planner(grid: Grid) -> list[tuple[Block, ...]]:
    """The blocks of each planner and value of the swept constants, over all environments."""
    found: dict[tuple[str, tuple[tuple[str, int | Fraction], ...]], list[Block]] = {}
    for block in grid.blocks:
        found.setdefault((block.planner.name, tuple(block.swept.items())), []).append(block)
    return [tuple(blocks) for blocks in found.values()]


def _settings(question: Question) -> dict[str, object]:
    """Every choice of the question that can change a number, by name."""
    prices = None
    if question.prices is not None:
        prices = [
            {"distance_m": each.distance_m, "label": each.label, "price": number_text(each.price)}
            for each in question.prices
        ]
    return {
        "labels": list(question.labels),
        "distances_m": list(question.distances_m),
        "prices": prices,
        "box": None if not question.box else {"rest": question.rest, "semantics": question.semantics},
        "decimals": question.decimals,
        "points": question.points,
        "seed": question.seed if question.mode == "cost" else None,
    }
