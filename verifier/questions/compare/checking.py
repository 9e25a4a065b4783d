"""What both engines say of every chain of a comparison, and its draws: here, or by the workers of a pool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from verifier.analysis.confidence import Data, bounds_of_chain
from verifier.analysis.robust.solutions import Effort, RobustBounds
from verifier.analysis.settings import ConfidenceSettings
from verifier.base.arrays import Floats
from verifier.base.blocks import Pool
from verifier.checking.process import StormProcess
from verifier.pipeline import check_case, checked_elsewhere, put_back
from verifier.questions.compare.reach import about
from verifier.questions.compare.scores import drawn_probabilities
from verifier.study.case import Case, Study
from verifier.study.collection import CheckedCase

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
        if pool.is_here:
            for detector, case in jobs:
                with about(detector):
                    checked = check_case(case, storm)
                yield checked, self._draws(checked, detector)
            return
        numbers = [(name, number) for name, study in self.studies.items() for number in range(len(study.cases))]
        for (_, case), (parts, drawn) in zip(jobs, pool.map(partial(_elsewhere, self), numbers), strict=True):
            yield put_back(case, parts), drawn

    def elsewhere(self, detector: str, number: int) -> tuple[Mapping[str, Any], Draws]:
        """What a worker finds of one chain."""
        study = self.studies[detector]
        with about(detector):
            parts = checked_elsewhere(study, False, number)
        held, draws = self._draws(put_back(study.cases[number], parts), detector)
        return parts, (held, [list(each) for each in draws])

    def _draws(self, checked: CheckedCase, detector: str) -> Draws:
        objectives, data, settings, held = checked.case.objectives, self.data[detector], self.settings, None
        if self.studies[detector].options.verdict_from != "point":
            effort = Effort(attained=settings.semantics == "shared_matrix", certificates=False)
            held = bounds_of_chain(objectives, data, settings, effort)
        return held, [drawn_probabilities(objective, data, settings) for objective in objectives]


def _elsewhere(checking: Checking, job: tuple[str, int]) -> tuple[Mapping[str, Any], Draws]:
    return checking.elsewhere(*job)
