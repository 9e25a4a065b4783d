"""What can be shown to the kernel about who stays: bounds rest on nothing else, so each has a certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from verifier.analysis import kernel
from verifier.analysis.objective import Objective
from verifier.analysis.robust.region import Region
from verifier.analysis.robust.staying import Staying
from verifier.analysis.robust.subject import region_document, subject_document, subject_of

LARGEST_CERTIFIED = 20_000
"""Product states; certificates of larger chains take long to check with whole numbers and are not made."""


@dataclass(frozen=True, eq=False)
class Provable:
    """Says of which end components the kernel can be shown that no run that stays there is lost.

    Attributes:
        objective: the formula on the skeleton.
        region: its matrices.
    """

    objective: Objective
    region: Region

    def __call__(self, members: NDArray[np.int64], holds: bool) -> bool:
        """Whether it can be shown that who stays among the product states `members` meets (violates) the formula.

        True where the product is too large to have certificates.
        """
        if self.objective.state_count > LARGEST_CERTIFIED:
            return True
        system, sides = self._known
        # Of the product states, only `false` and `true`, numbers 0 and 1, have other numbers in certificates.
        return sides["lower" if holds else "upper"].shown(system, (members - 2).tolist()) is not None

    @cached_property
    def _known(self) -> tuple[kernel.System, dict[str, Staying]]:
        subject = subject_document(subject_of(self.objective))
        columns = kernel.read_region(region_document(replace(self.region, evidence=None)))
        system = kernel.System(subject, columns)
        return system, {side: Staying(subject, system, side) for side in ("lower", "upper")}
