"""One block of the scenario grid: its skeleton, its chain, and what both engines say on it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.dependence.channel_test import Drawn, classes_drawn
from verifier.analysis.intervals.measured import Measured, measured
from verifier.analysis.objective import Objective, build_objective
from verifier.analysis.robust.any_dependence import any_dependence
from verifier.analysis.vacuity import Vacuity, find_vacuity
from verifier.base.arrays import ROUNDOFF
from verifier.base.budget import Clock
from verifier.base.errors import EngineError, LimitError, NoAnswerError, UsageError
from verifier.chains import DecisionProcess, MarkovChain
from verifier.chains.filled import assumed_columns, decision_process, filled_counts, markov_chain
from verifier.checking.process import StormProcess
from verifier.checking.requirements import AbstractFormula, abstracted, answers_within_limits
from verifier.checking.results import TwoEngineValues
from verifier.checking.strategies import StrategyRange, strategy_range
from verifier.language.expressions import to_text
from verifier.language.expressions.syntax import Node
from verifier.options import RunOptions
from verifier.perception.confusion import ConfusionMatrices
from verifier.provenance import block_remarks, start_remarks
from verifier.scenarios import Block, Grid
from verifier.systems.scene import SkeletonOptions
from verifier.systems.skeleton import Skeleton, build_skeleton
from verifier.systems.strategies import build_strategies, winning_starts

AnyError = TypeVar("AnyError", bound=EngineError | LimitError)


@dataclass(frozen=True, eq=False)
class CheckedBlock:
    """What was found in one block of the grid.

    Attributes:
        block: where.
        initial: the initial states, one valuation each.
        values: for each requirement what both engines say at those states.
        draws: the estimated columns that the chain draws from, by class.
        whatever: for each requirement and initial state the probability, 0 or 1, where every detector gives the
            same; else None.
        strategies: for each requirement the range over all winning strategies, where that was asked for.
        assumed: descriptions of the matrix columns that the chain needs and that have no items.
        remarks: what a reader must know about single requirements or initial states.
        vacuity: for each requirement, for each initial state, why the requirement is vacuous there; mostly ().
        notes: for each requirement that is not vacuous throughout, what is constant in it.
        refused: number of a requirement -> why it has no answer; what is said of each requirement leaves it out.
    """

    block: Block
    initial: tuple[Mapping[str, int], ...]
    values: tuple[TwoEngineValues, ...]
    draws: Drawn
    whatever: tuple[tuple[int | None, ...], ...]
    strategies: tuple[StrategyRange, ...]
    assumed: tuple[str, ...]
    remarks: tuple[str, ...]
    vacuity: tuple[tuple[tuple[Vacuity, ...], ...], ...]
    notes: tuple[str, ...]
    refused: Mapping[int, LimitError] = field(default_factory=dict)

    @property
    def answered(self) -> tuple[int, ...]:
        """The numbers of the requirements that `values` are about, in the grid that was checked."""
        count = len(self.values) + len(self.refused)
        return tuple(index for index in range(count) if index not in self.refused)

    def without(self, left_out: Collection[int]) -> CheckedBlock:
        """The same without some requirements, all that are refused among them."""
        kept = [place for place, index in enumerate(self.answered) if index not in left_out]
        return replace(
            self,
            values=tuple(self.values[place] for place in kept),
            whatever=tuple(self.whatever[place] for place in kept),
            strategies=tuple(self.strategies[place] for place in kept) if self.strategies else (),
            vacuity=tuple(self.vacuity[place] for place in kept),
            refused={},
        )


def check_block(
    block: Block,
    grid: Grid,
    matrices: ConfusionMatrices,
    options: RunOptions,
    storm: StormProcess,
    *,
    partial: bool = False,
) -> CheckedBlock:
    """Build the chain of one block and check every requirement on it.

    Args:
        block: of the grid.
        grid, matrices, options: of the run.
        storm: a running worker.
        partial: accept requirements without an answer within the limits; see `CheckedBlock.refused`.

    Raises:
        VerifierError: as `build_skeleton` and `answers_within_limits`; NoAnswerError for a requirement without an
            answer, unless `partial`.
    """
    formulas = abstracted([each.formula for each in grid.requirements])
    conditions = {name: node for each in formulas for name, node in each.propositions.items()}
    clock = Clock(options.engines.timeout_s)  # building the chain takes time from each formula
    begun = time.monotonic()
    with clock.running("building the chain"):
        skeleton, chain = block_chain(block, grid, matrices, options, conditions)
    value_error = ROUNDOFF * skeleton.channel.rounding_steps

    def exact_chain() -> MarkovChain:
        exactly = replace(options, engines=replace(options.engines, exact=True))
        return block_chain(block, grid, matrices, exactly, conditions)[1]

    with _explained(block, conditions):
        answers = answers_within_limits(
            chain,
            [each.formula for each in formulas],
            storm,
            options.engines,
            value_error,
            targets=[each.target for each in grid.requirements],
            exact_chain=exact_chain,
            spent_s=clock.spent_s,
        )
    refused = {
        index: _told(block, conditions, answer)
        for index, answer in enumerate(answers)
        if isinstance(answer, LimitError)
    }
    if refused and not partial:
        raise next(iter(refused.values()))
    values = [answer for answer in answers if not isinstance(answer, LimitError)]
    grid = replace(grid, requirements=tuple(r for k, r in enumerate(grid.requirements) if k not in refused))
    formulas = [each for index, each in enumerate(formulas) if index not in refused]
    strategies: tuple[StrategyRange, ...] = ()
    won = None
    if block.planner.kind == "synthesis":
        if options.strategies:
            process = _process(block, grid, matrices, options, conditions)
            with _explained(block, conditions):
                strategies = tuple(strategy_range(process, each.formula, storm, options.engines) for each in formulas)
        won = _won(block, grid, matrices, options)
    known = measured(matrices, options.empty_columns)
    whole = clock_of(options, len(grid.requirements))
    whole.spend(time.monotonic() - begun)
    with whole.running(f"{block}: looking for vacuous requirements"):
        vacuity, notes = _vacuity(skeleton, grid)
    whatever, unknown = [], []
    for requirement, formula, found in zip(grid.requirements, formulas, values, strict=True):
        try:
            with whole.running("looking at all detectors"):
                whatever.append(_whatever_predicted(skeleton, formula, found, known, options))
        except (NoAnswerError, MemoryError):
            whatever.append((None,) * len(found.probability))
            unknown.append(
                f"{block}: {requirement.name}: not found out within the limits: whether the detector matters at all"
            )
    return CheckedBlock(
        block,
        _initial_valuations(skeleton),
        tuple(values),
        classes_drawn(skeleton, known),
        tuple(whatever),
        strategies,
        tuple(assumed_columns(skeleton, matrices)),
        (*block_remarks(block, grid, skeleton, won, values, strategies), *unknown),
        vacuity,
        notes,
        refused,
    )


def clock_of(options: RunOptions, checks: int) -> Clock:
    """The time of so many formulas on chains, together."""
    limit = options.engines.timeout_s
    return Clock(None if limit is None else limit * max(checks, 1))


def _whatever_predicted(
    skeleton: Skeleton, formula: AbstractFormula, found: TwoEngineValues, known: Measured, options: RunOptions
) -> tuple[int | None, ...]:
    """The probabilities, 0 or 1, that do not depend on what the detector predicts; None for others.

    Only what is 0 or 1 with the given matrices can be; rounded transitions are no probabilities of the system. Where
    steps are counted there is no product to tell.
    """
    if options.decimals is not None or found.counted or not np.isin(found.probability, (0, 1)).any():
        return (None,) * len(found.probability)
    limit = options.engines.product_states
    bounds = any_dependence(build_objective(skeleton, formula.formula, formula.propositions, limit), known)
    return tuple(low if low == high else None for low, high in bounds.tolist())


class KnownRemarks(NamedTuple):
    """`assumed`, `remarks`, `notes` and `draws` as in `CheckedBlock`, without what the engines say."""

    assumed: tuple[str, ...]
    remarks: tuple[str, ...]
    notes: tuple[str, ...]
    draws: Drawn


def known_remarks(block: Block, grid: Grid, matrices: ConfusionMatrices, options: RunOptions) -> KnownRemarks:
    """What a reader must know about one block as far as no engine is needed to tell."""
    skeleton = block_skeleton(block, grid, matrices, options)
    won = _won(block, grid, matrices, options) if block.planner.kind == "synthesis" else None
    return KnownRemarks(
        tuple(assumed_columns(skeleton, matrices)),
        tuple(start_remarks(block, skeleton, won)),
        _vacuity(skeleton, grid)[1],
        classes_drawn(skeleton, measured(matrices, options.empty_columns)),
    )


def _vacuity(skeleton: Skeleton, grid: Grid) -> tuple[tuple[tuple[tuple[Vacuity, ...], ...], ...], tuple[str, ...]]:
    """For each requirement what is vacuous from each initial state; and the notes on all of them, by name."""
    found = find_vacuity(skeleton, [each.formula for each in grid.requirements])
    named = zip(grid.requirements, found, strict=True)
    notes = tuple(f"{requirement.name}: {note}" for requirement, each in named for note in each.notes)
    return tuple(each.vacuity for each in found), notes


def _won(block: Block, grid: Grid, matrices: ConfusionMatrices, options: RunOptions) -> NDArray[np.bool_]:
    chosen = _skeleton_options(grid, options)
    return winning_starts(block.system, block.planner, block.environment, matrices, chosen)


@contextlib.contextmanager
def _explained(block: Block, conditions: Mapping[str, Node]) -> Iterator[None]:
    """Say where an engine failed, and what the proposition names in its message stand for."""
    try:
        yield
    except (EngineError, LimitError) as error:
        raise _told(block, conditions, error) from None


def _told(block: Block, conditions: Mapping[str, Node], error: AnyError) -> AnyError:
    named = {name: node for name, node in conditions.items() if name in str(error)}
    legend = "".join(f"\n  {name} is {to_text(node)}" for name, node in named.items())
    return type(error)(f"{block}: {error}{legend}")


def block_skeleton(block: Block, grid: Grid, matrices: ConfusionMatrices, options: RunOptions) -> Skeleton:
    """The skeleton of a block; errors as `build_skeleton`."""
    chosen = _skeleton_options(grid, options)
    return build_skeleton(block.system, block.planner, block.environment, matrices, chosen)


def block_objectives(
    block: Block, grid: Grid, matrices: ConfusionMatrices, options: RunOptions
) -> tuple[Objective, ...]:
    """The product of a block's skeleton with each requirement of the grid; errors as `build_objective`."""
    skeleton = block_skeleton(block, grid, matrices, options)
    formulas = abstracted([each.formula for each in grid.requirements])
    limit = options.engines.product_states
    return tuple(build_objective(skeleton, each.formula, each.propositions, limit) for each in formulas)


def block_chain(
    block: Block,
    grid: Grid,
    matrices: ConfusionMatrices,
    options: RunOptions,
    conditions: Mapping[str, Node],
) -> tuple[Skeleton, MarkovChain]:
    """The skeleton of a block and its chain, labelled with `conditions`."""
    skeleton = block_skeleton(block, grid, matrices, options)
    labels = {name: skeleton.mask_of(node) for name, node in conditions.items()}
    counts = filled_counts(skeleton, matrices, options.empty_columns)
    exact, decimals = options.engines.exact, options.decimals
    return skeleton, markov_chain(skeleton, counts, labels, exact=exact, decimals=decimals)


def _process(
    block: Block,
    grid: Grid,
    matrices: ConfusionMatrices,
    options: RunOptions,
    conditions: Mapping[str, Node],
) -> DecisionProcess:
    """All winning strategies of a block's planner, labelled with `conditions`."""
    if options.decimals is not None:
        raise UsageError("the range over all winning strategies is not computed for rounded transitions")
    chosen = _skeleton_options(grid, options)
    strategies = build_strategies(block.system, block.planner, block.environment, matrices, chosen)
    labels = {name: strategies.choices.mask_of(node) for name, node in conditions.items()}
    counts = filled_counts(strategies.choices, matrices, options.empty_columns)
    return decision_process(strategies, counts, labels)


def _skeleton_options(grid: Grid, options: RunOptions) -> SkeletonOptions:
    return SkeletonOptions(grid.goal_formula, grid.initial, options.false_alarms, options.endless, options.limits)


def _initial_valuations(skeleton: Skeleton) -> tuple[Mapping[str, int], ...]:
    columns = {name: value[skeleton.starts].tolist() for name, value in skeleton.valuations.items()}
    return tuple(dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
