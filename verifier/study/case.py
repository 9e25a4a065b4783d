"""A study and its cases: what a run is about, and the structure of each Markov chain in it, built once.

    inputs + options -> study: scenario grid, matrices, requirements -> cases -> skeleton, products, chain

A skeleton and its products are the same for all matrices of the same bins and labels. They are built when they are
first asked for, and kept for every study about the same scenarios while there is room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.channel_test import ClassTest, Drawn, class_tests, classes_drawn, drawn_together
from verifier.analysis.confidence import Data, data_of_run
from verifier.analysis.intervals.intervals import Measured, measured
from verifier.analysis.mixed import mixed_data
from verifier.analysis.objective import Conditional, Gained, Objective, Quantile, build_objective
from verifier.analysis.robust.optimum import build_optimum
from verifier.analysis.step_counts import build_step_count, counted_window
from verifier.analysis.vacuity import Findings, find_vacuity
from verifier.base.budget import Cache, array_bytes
from verifier.base.errors import NoAnswerError, UsageError
from verifier.chains import DecisionProcess, MarkovChain
from verifier.chains.chain import assumed_columns, decision_process, filled_counts, markov_chain
from verifier.checking.product import Product
from verifier.checking.step_bounds import LongWindow
from verifier.checking.two_engines import AbstractFormula
from verifier.language.expressions.syntax import Node, children
from verifier.language.ltl import in_frames
from verifier.language.specs import Requirement
from verifier.perception.confusion import ConfusionMatrices
from verifier.study.deciding import of_deciding_world
from verifier.study.inputs import Block, Grid, Inputs, asked_requirements
from verifier.study.options import RunOptions
from verifier.study.points import Numbers
from verifier.systems.contexts import CONTEXT_OF
from verifier.systems.model import System
from verifier.systems.model_parts import Planner
from verifier.systems.rewards import Gains, gains_of, gains_of_time
from verifier.systems.scene import SkeletonOptions, set_scene
from verifier.systems.skeleton import Skeleton, build_skeleton
from verifier.systems.strategies import StrategySkeleton, build_decisions, build_strategies, winning_starts

KEPT_SHARE = 16
"""One part in so many of the memory of a run is for skeletons and products that may be asked for again."""


@dataclass(frozen=True, eq=False)
class Study:
    """The cases of a run, and what holds for all of them.

    Attributes:
        grid: the scenarios and the requirements.
        formulas: those of the requirements, each over proposition names of its own; for `A given B` that of A and B.
        given: that of B for `A given B`, else None.
        matrices: those that the options choose, or others with the same bins and labels.
        cache: of skeletons and products; studies about the same scenarios share it.
        families: of bounds that hold at once with those of this study, itself counted.
    """

    inputs: Inputs
    options: RunOptions
    grid: Grid
    formulas: tuple[AbstractFormula, ...]
    given: tuple[AbstractFormula | None, ...]
    matrices: ConfusionMatrices
    cache: Cache
    families: int = 1

    def __getstate__(self) -> dict[str, object]:
        """In another process it begins without what was built here."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def of(cls, inputs: Inputs, options: RunOptions) -> Study:
        """What files and options ask for; VerifierError where they do not fit together."""
        grid = inputs.grid(options)
        cache = Cache(options.limits.memory_bytes // KEPT_SHARE)
        return cls(inputs, options, grid, *inputs.formulas(grid.requirements), inputs.matrices(options), cache)

    def under(self, options: RunOptions) -> Study:
        """The same scenarios under other options, which may select some of the requirements; for equal ones once."""
        if known := [study for other, study in self._others if other == options]:
            return known[0]
        selected = asked_requirements(self.inputs.spec, self.inputs.model, options.selection.requirements)
        chosen = [number for number, requirement in enumerate(self.requirements) if requirement in selected]
        study = replace(self.asking(chosen), options=options, matrices=self.inputs.matrices(options))
        self._others.append((options, study))
        return study

    @cached_property
    def _others(self) -> list[tuple[RunOptions, Study]]:
        return []

    def asking(self, numbers: Iterable[int]) -> Study:
        """The same with some of the requirements only."""
        numbers = tuple(numbers)
        if len(numbers) == len(self.requirements):
            return self
        requirements = tuple(self.grid.requirements[number] for number in numbers)
        formulas = tuple(self.formulas[number] for number in numbers)
        given = tuple(self.given[number] for number in numbers)
        return replace(self, grid=replace(self.grid, requirements=requirements), formulas=formulas, given=given)

    def with_inputs(self, inputs: Inputs) -> Study:
        """The same scenarios with other matrices; spec and model must be the same."""
        formulas, given = inputs.formulas(self.requirements)
        matrices = inputs.matrices(self.options)
        return replace(self, inputs=inputs, matrices=matrices, formulas=formulas, given=given)

    @cached_property
    def forgetful(self) -> Study:
        """The same without memory, which bounds whatever the dependence are about; their rates are others."""
        if self.inputs.contexts is None:
            return self
        return replace(self, options=self.options.forgetful(), families=2).with_inputs(self.inputs.forgetful())

    def with_counts(self, counts: NDArray[np.int64], *, exact: bool) -> Study:
        """The same structure with other counts; on chains with fractions where `exact`."""
        engines, matrices = replace(self.options.engines, exact=exact), replace(self.matrices, counts=counts)
        return replace(self, matrices=matrices, options=replace(self.options, engines=engines))

    @property
    def divided(self) -> ConfusionMatrices | None:
        """The matrices, where they are divided by what the detector remembers."""
        return self.matrices if self.matrices.memory is not None else None

    @property
    def memory(self) -> str:
        """What the detector remembers of each object, as `--memory` names it."""
        return "none" if self.inputs.contexts is None else str(self.inputs.contexts.contexts)

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """Those that are asked for, in the order of the spec."""
        return self.grid.requirements

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """One per block of the grid."""
        blocks = self.grid.blocks
        return tuple(Case(block.planner, block.swept, block.system, block.environment, self) for block in blocks)

    def place_of(self, planner: str, point: Numbers) -> tuple[Case, int]:
        """The case of a scenario, and the number of its initial state there."""
        scenario = planner, point.environment, dict(point.constants)
        (case,) = (case for case in self.cases if (case.planner.name, case.environment, case.constants) == scenario)
        return case, case.initial_states.index(dict(point.initial))

    @cached_property
    def conditions(self) -> dict[str, Node]:
        """What the proposition names of all formulas stand for."""
        every = (*self.formulas, *(formula for formula in self.given if formula is not None))
        return {name: node for formula in every for name, node in formula.propositions.items()}

    @property
    def bounded(self) -> bool:
        """Whether the options ask for intervals and confidence bounds."""
        return self.options.confidence is not None and self.options.decimals is None

    @cached_property
    def measured(self) -> Measured:
        """The matrices as data."""
        return measured(self.matrices, self.options.empty_columns)

    @cached_property
    def data(self) -> Data | None:
        """What intervals and bounds rest on; None where the options ask for none."""
        settings, chains = self.options.confidence, (case.objectives for case in self.cases)
        if settings is None or not self.bounded:
            return None
        if (strata := self.inputs.mixed(self.options)) is not None:
            return mixed_data(chains, self.measured, strata, settings)
        families = 2 if self.options.dependence_free and self.inputs.contexts is not None else self.families
        data = data_of_run(chains, self.measured, self.inputs.sequences(self.options), settings, families)
        return data.within(self.inputs.rate_box(self.options))

    @cached_property
    def tests(self) -> tuple[ClassTest, ...]:
        """The test of the detector for each class that some chain draws."""
        drawn, bin_of = drawn_together(case.draws for case in self.cases), self.matrices.distance_bin
        by_distance = {name: sorted({int(bin_of(at)) for at in bins}) for name, bins in drawn.items()}
        said = self.inputs.confusion.matrices.metadata
        return class_tests(said.get("dependence"), said.get("contexts"), by_distance)

    @property
    def skeleton_options(self) -> SkeletonOptions:
        """What skeletons depend on beside the case and the bins and labels of the matrices."""
        grid, options = self.grid, self.options
        chosen = options.false_positives, options.endless, options.initial_context, options.limits
        return SkeletonOptions(grid.goal_formula, grid.initial, *chosen)


@dataclass(frozen=True, eq=False)
class Case(Block):
    """One block of the grid with the numbers of a study: one Markov chain with all initial states at once."""

    study: Study

    def asking(self, numbers: Iterable[int]) -> Case:
        """The same with some of the requirements only."""
        study = self.study.asking(numbers)
        return self if study is self.study else replace(self, study=study)

    @property
    def forgetful(self) -> Case:
        """The same block of the study without memory; itself where there is none."""
        study = self.study.forgetful
        return self if study is self.study else replace(self, study=study)

    @property
    def _scene(self) -> tuple[System, Planner, str, ConfusionMatrices, SkeletonOptions]:
        """What structure is built from."""
        return self.system, self.planner, self.environment, self.study.matrices, self.study.skeleton_options

    @property
    def skeleton(self) -> Skeleton:
        """States and transitions; errors as `build_skeleton`."""
        return self.study.cache.kept(self._key, lambda: build_skeleton(*self._scene), array_bytes)

    @property
    def decides(self) -> bool:
        """Whether the world decides, so that there is no chain but a decision process."""
        return bool(self.system.model.decides)

    @property
    def choices(self) -> StrategySkeleton:
        """The choices of a world that decides, or all winning strategies of a synthesised planner; errors as
        `build_decisions` and `build_strategies`."""
        return self.study.cache.kept(
            (*self._key, "choices"),
            lambda: (build_decisions if self.decides else build_strategies)(set_scene(*self._scene)),
            lambda choices: array_bytes(choices, choices.choices),
        )

    @property
    def states(self) -> Skeleton:
        """The skeleton; where the world decides one as if it drew, so that a state has the transitions of all its
        choices: for what is about states, columns and the graph alone."""
        if not self.decides:
            return self.skeleton
        skeleton = self.choices
        return replace(skeleton.choices, indptr=skeleton.choices.indptr[skeleton.choice_starts])

    def objective(self, number: int) -> Objective:
        """The product of the skeleton with a requirement; errors as `build_objective`."""
        asked = self.study.requirements[number].asked
        # The least time with some probability goes with the greatest probability within some time.
        return self._objective(self.study.formulas[number], asked.end == ("max" if asked.level is None else "min"))

    def _objective(self, formula: AbstractFormula, greatest: bool = False) -> Objective:
        limit, asked = self.study.options.engines.product_states, (formula.formula, formula.propositions)
        return self.study.cache.kept(
            (*self._key, formula.formula, tuple(formula.propositions.items()), limit, self.decides and greatest),
            lambda: (
                build_optimum(self.choices, *asked, limit, greatest)
                if self.decides
                else build_objective(self.skeleton, *asked, limit)
            ),
            lambda objective: array_bytes(objective, objective.product, objective.skeleton),
        )

    def window(self, number: int, *, short: bool = False) -> LongWindow | None:
        """What a requirement asks, where its steps are counted for every matrix, or could be (`short`); else None."""
        if self.decides or not self.study.requirements[number].is_plain:
            return None
        asked, memory = self.study.formulas[number], None if short else self.study.options.engines.memory_bytes
        return counted_window(self.skeleton, asked.formula, asked.propositions, memory)

    @property
    def _key(self) -> tuple[object, ...]:
        """What the structure depends on. A skeleton keeps its system, so that no other one has its identity."""
        matrices = self.study.matrices
        located = str(matrices.metadata.get("localisation"))
        memory = matrices.memory and (matrices.memory.contexts, matrices.memory.followed.tobytes())
        bins = matrices.labelling, matrices.labels, matrices.edges_m.tobytes(), matrices.variables, located, memory
        return (id(self.system), self.planner.name, self.environment, bins, self.study.skeleton_options)

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The product of the skeleton with each requirement, whose numbers are what that asks."""
        return tuple(map(self._asked, range(len(self.study.formulas))))

    def _asked(self, number: int) -> Objective:
        if (window := self.window(number)) is not None:
            return build_step_count(self.skeleton, window)
        requirement, plain, given = self.study.requirements[number], self.objective(number), self.study.given[number]
        parts, asked = {field.name: getattr(plain, field.name) for field in fields(plain)}, requirement.asked
        if self.decides and not requirement.is_plain:
            limit, states = self.study.options.engines.product_states, self.states
            return of_deciding_world(requirement, plain, self.choices, states, lambda: self.gains(number), limit)
        if given is not None:
            return Conditional(**parts, given=self._objective(given))
        if asked.level is not None:
            (condition,) = children(requirement.formula)
            return Quantile(**parts, condition=condition, level=asked.level, step_s=self.step_s)
        return plain if asked.is_probability else Gained(**parts, gains=self.gains(number), steps=self.steps(number))

    @property
    def step_s(self) -> Fraction:
        """The duration of a step of the chain; ValueError where the model does not say it."""
        if self.system.model.step_s is None:
            raise ValueError("the duration of a step is not known")
        return self.system.model.step_s / self.study.inputs.frames

    def steps(self, number: int) -> int | None:
        """Of how many steps of the chain a requirement asks the gain; None where that is not what it asks."""
        asked = self.study.requirements[number].asked
        return None if asked.steps is None else asked.steps * self.study.inputs.frames

    def gains(self, number: int) -> Gains:
        """What a step gains of what a requirement asks; errors as `gains_of`."""
        reward = self.study.requirements[number].asked.reward
        return self.study.cache.kept(
            (*self._key, "gains", reward),
            lambda: (
                gains_of(self.states, self.planner, reward) if reward else gains_of_time(self.states, self.step_s)
            ),
            array_bytes,
        )

    def product(self, number: int) -> Product | None:
        """That of an objective; None where it would be too large, which the product of a chain need not be."""
        try:
            return self.objective(number).product
        except NoAnswerError:
            return None

    @property
    def counts(self) -> NDArray[np.int64]:
        """Counts whose rates fill the chain; InputError where columns that it needs have no items."""
        return filled_counts(self.states, self.study.matrices, self.study.options.empty_columns)

    def chain(self, conditions: Mapping[str, Node], *, exact: bool = False) -> MarkovChain:
        """The Markov chain, labelled with conditions; with its fractions where that is asked for."""
        skeleton, run = self.skeleton, self.study.options
        labels = {name: skeleton.mask_of(node) for name, node in conditions.items()}
        return markov_chain(skeleton, self.counts, labels, exact=exact or run.engines.exact, decimals=run.decimals)

    def process(self, conditions: Mapping[str, Node], *, exact: bool = False) -> DecisionProcess:
        """What a world that decides may do, or all winning strategies of a synthesised planner, labelled with
        conditions; with its fractions where that is asked for."""
        study = self.study
        if study.options.decimals is not None:
            raise UsageError("the least and greatest values over choices are not computed for rounded transitions")
        choices = self.choices
        labels = {name: choices.choices.mask_of(node) for name, node in conditions.items()}
        counts = filled_counts(choices.choices, study.matrices, study.options.empty_columns)
        return decision_process(choices, counts, labels, exact=exact)

    @cached_property
    def won(self) -> NDArray[np.bool_] | None:
        """(m,) for a synthesised planner the initial states from which it can win, else None."""
        system, planner, environment, matrices, options = self._scene
        whole = system, planner, environment, matrices.whole, options
        return winning_starts(set_scene(*whole)) if planner.kind == "synthesis" else None

    @cached_property
    def beginnings(self) -> tuple[tuple[dict[str, int], dict[int, Fraction]], ...]:
        """The initial states: valuation, and the number of each start of the skeleton with its weight."""
        names = [variable.name for variable in self.system.variables]  # memory begins alike, but for worst contexts
        if self.study.options.initial_context == "worst":
            names += [name for name in self.states.valuations if name.startswith(CONTEXT_OF)]
        return self.states.beginnings(names)

    @property
    def initial_states(self) -> tuple[dict[str, int], ...]:
        """One valuation each."""
        return tuple(initial for initial, _ in self.beginnings)

    @cached_property
    def draws(self) -> Drawn:
        """The estimated columns that the chain draws from, by class."""
        return classes_drawn(self.states, self.study.measured)

    @cached_property
    def assumed(self) -> tuple[str, ...]:
        """Descriptions of the matrix columns that the chain needs and that have no items."""
        return tuple(assumed_columns(self.states, self.study.matrices))

    @cached_property
    def findings(self) -> tuple[Findings, ...]:
        """For each requirement what is vacuous in it."""
        requirements = self.study.requirements
        asked = [in_frames(one.formula, self.study.inputs.frames) for one in requirements if one.is_plain]
        plain = iter(find_vacuity(self.states, asked))
        nothing = Findings(((),) * len(self.states.starts), ())
        return tuple(next(plain) if requirement.is_plain else nothing for requirement in requirements)

    @property
    def notes(self) -> tuple[str, ...]:
        """For each requirement that is not vacuous throughout, what is constant in it."""
        named = zip(self.study.requirements, self.findings, strict=True)
        return tuple(f"{requirement.name}: {note}" for requirement, findings in named for note in findings.notes)
