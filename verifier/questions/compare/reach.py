"""What any planner could reach with a detector: the best possible one beside those that are compared. And what both
engines say of every chain of a comparison, and its draws: here, or by the workers of a pool.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from verifier.analysis.best_planner import means, worst_cases
from verifier.analysis.confidence import Data, bounds_of_chain
from verifier.analysis.hidden_game import Game, HiddenGame, game_of, hidden_game
from verifier.analysis.robust.solutions import Effort, RobustBounds
from verifier.analysis.settings import ConfidenceSettings
from verifier.base.arrays import Floats
from verifier.base.blocks import Pool
from verifier.base.errors import InputError, UsageError
from verifier.checking.process import StormProcess
from verifier.language.specs import Requirement
from verifier.pipeline import checked_parts, put_back
from verifier.questions.compare.compare_result import Reach
from verifier.questions.compare.scores import drawn_probabilities
from verifier.study.case import Case, Study
from verifier.study.collection import CheckedCase
from verifier.study.profile import profile_weights
from verifier.systems.model import System
from verifier.systems.open_system import OpenSystem, is_seen, open_system

Opened: TypeAlias = Sequence[OpenSystem]
"""One system with all environments, where planners see all of the state and it moves alike; else one for each."""


@contextlib.contextmanager
def about(detector: str) -> Iterator[None]:
    """Say of which detector's matrices a complaint is."""
    try:
        yield
    except InputError as error:
        raise type(error)(f"detector {detector}: {error.message}", error.place, error.hint) from None


def reaches(studies: Mapping[str, Study], most_steps: int | None) -> list[tuple[Reach, ...]]:
    """For each requirement what the best possible planner reaches with each detector in its worst scenario.

    The environments are what the planner cannot tell apart but by reports; the rest of a scenario it knows.

    Args:
        studies: of each detector, by name, about the same scenarios. The measured matrices are taken for exact.
        most_steps: an episode that has not ended after so many is lost; None to look at nothing.

    Raises:
        VerifierError: as `open_system`, `game_of` and `worst_cases`.
    """
    by_detector = []
    for detector, study in studies.items():
        with about(detector):
            by_detector.append([] if most_steps is None else _reached(detector, study, most_steps))
    count = len(next(iter(studies.values())).requirements)
    return [tuple(reaches[number] for reaches in by_detector if reaches) for number in range(count)]


def _reached(detector: str, study: Study, most_steps: int) -> list[Reach]:
    systems: dict[tuple[tuple[str, str], ...], dict[str, System]] = {}
    for block in study.grid.blocks:
        systems.setdefault(tuple(block.constants.items()), {})[block.environment] = block.system
    opened = [(dict(constants), _opened(system, study)) for constants, system in systems.items()]
    reached = []
    for number, requirement in enumerate(study.requirements):
        _refuse_friends(requirement)
        in_mean = requirement.over_profile
        reaches = [
            reach
            for constants, system in opened
            for reach in (_over_profile if in_mean else _in_scenarios)(
                detector, study, number, constants, system, most_steps
            )
        ]
        worst = max if requirement.is_upper else min
        lower, upper = worst(reach.lower for reach in reaches), worst(reach.upper for reach in reaches)
        there = next(reach for reach in reaches if reach.upper == upper)
        reached.append(replace(there, lower=lower))
    return reached


def _in_scenarios(
    detector: str, study: Study, number: int, constants: Mapping[str, str], opened: Opened, most_steps: int
) -> Iterator[Reach]:
    """One requirement from each initial state of a system."""
    negated = study.requirements[number].is_upper
    game, system = _game(study, number, opened, negated=negated), opened[0]
    names = [name for system in opened for name in system.environments]
    for start, bracket in zip(system.starts.tolist(), worst_cases(game, most_steps), strict=True):
        lower, upper = bracket.lower, bracket.upper
        yield Reach(
            detector=detector,
            lower=1 - upper if negated else lower,
            upper=1 - lower if negated else upper,
            constants=constants,
            initial={name: int(value[start]) for name, value in system.valuations.items()},
            weights=dict(zip(names, bracket.weights, strict=True)),
            steps=bracket.steps,
            all_end=bracket.all_end,
        )


def _over_profile(
    detector: str, study: Study, number: int, constants: Mapping[str, str], opened: Opened, most_steps: int
) -> Iterator[Reach]:
    """The mean of a requirement over environments and initial states by their weights.

    The planner knows in which initial state it is; the environments there are as likely as they weigh.
    """
    game, weights = _game(study, number, opened, negated=False), profile_weights(study, constants)
    names = [name for system in opened for name in system.environments]
    share = np.array([[float(fraction) for fraction in weights[name]] for name in names]).T
    total = share.sum(axis=1)
    known = np.divide(share, total[:, None], out=np.full_like(share, 1 / share.shape[1]), where=total[:, None] > 0)
    brackets = means(game, known, most_steps)
    yield Reach(
        detector=detector,
        lower=min(float(total @ [bracket.lower for bracket in brackets]), 1.0),
        upper=min(float(total @ [bracket.upper for bracket in brackets]), 1.0),
        constants=constants,
        initial={},
        weights=dict(zip(names, share.sum(axis=0).tolist(), strict=True)),
        steps=max(bracket.steps for bracket in brackets),
        all_end=all(bracket.all_end for bracket in brackets),
    )


def _opened(systems: Mapping[str, System], study: Study) -> Opened:
    groups = [systems] if is_seen(systems) else [{name: system} for name, system in systems.items()]
    return [open_system(group, study.matrices, study.skeleton_options) for group in groups]


def _game(study: Study, number: int, opened: Opened, *, negated: bool) -> Game | HiddenGame:
    formula, most = study.formulas[number], study.options.engines.product_states
    asked = formula.formula, formula.propositions, study.measured.rates
    if len(opened) == 1 and is_seen({"": opened[0].system}):
        return game_of(opened[0], *asked, negated=negated, most=most)
    return hidden_game(opened, *asked, negated=negated, most=most)


def _refuse_friends(requirement: Requirement) -> None:
    """Refuse what a world that decides does for the planner; UsageError."""
    end = requirement.asked.end
    if end and (end == "min") == requirement.is_upper:
        raise UsageError(
            f"the best possible planner is known against a world that decides, and '{requirement.name}' asks what "
            "this world may do for it: name others with --requirement"
        )


Job: TypeAlias = "tuple[str, Case]"
Draws: TypeAlias = tuple[tuple[RobustBounds, ...] | None, Sequence[Iterable[Floats]]]
"""Of a chain the confidence bounds that decide the verdicts, None where the point does, and for each requirement the
draws, see `drawn_probabilities`."""


@dataclass(frozen=True, eq=False)
class Checking:
    """What every chain is checked by: the study and the data of each detector, and what is drawn."""

    studies: Mapping[str, Study]
    data: Mapping[str, Data]
    settings: ConfidenceSettings

    def found(self, jobs: Sequence[Job], storm: StormProcess, pool: Pool) -> Iterator[tuple[CheckedCase, Draws]]:
        """What is found of each chain, in the order of the jobs, which are all cases of all studies."""
        numbers = [(name, number) for name, study in self.studies.items() for number in range(len(study.cases))]
        finding = partial(self._of_one, storm if pool.is_here else None)
        for (_, case), (parts, drawn) in zip(jobs, pool.map(finding, numbers), strict=True):
            yield put_back(case, parts), drawn

    def _of_one(self, storm: StormProcess | None, job: tuple[str, int]) -> tuple[Mapping[str, Any], Draws]:
        """What is found of one chain: a detector's, of this number."""
        detector, number = job
        study, data, settings, held = self.studies[detector], self.data[detector], self.settings, None
        with about(detector):
            parts = checked_parts(study, storm, False, number)
        objectives = study.cases[number].objectives
        if study.options.verdict_from != "point":
            effort = Effort(attained=settings.semantics == "shared_matrix")
            held = bounds_of_chain(objectives, data, settings, effort)
        draws = [drawn_probabilities(objective, data, settings) for objective in objectives]
        return parts, (held, draws if storm else [list(draw) for draw in draws])  # an iterator cannot be sent
