"""Common draws of a detector's matrices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.confidence import Data
from verifier.analysis.intervals.posterior import matrix_draws, probability_draws
from verifier.analysis.objective import Objective
from verifier.analysis.phantom_draws import common_draws
from verifier.analysis.settings import ConfidenceSettings, check_draws
from verifier.base.errors import UsageError

FEWEST_SHARED = 1000
"""Draws that are made of each detector, however many detectors there are, where its chains can afford them."""
FEWEST_HITS = 10


def shared_draws(data: Iterable[Data], settings: ConfidenceSettings) -> int:
    """How many draws are made of every detector, so that all can be compared draw by draw.

    As many as asked for. Without a request, what the costliest detector can afford, shared among all, but at least
    `FEWEST_SHARED` as far as it can afford those.
    """
    affordable = [each.draws for each in data]
    if settings.draws is not None:
        return check_draws(settings.draws)
    return max(min(affordable) // len(affordable) // 100 * 100, min(*affordable, FEWEST_SHARED))


def check_enough_draws(count: int, least_chance: Fraction | None) -> None:
    """Refuse to tell a chance from so few draws that it, or its complement, would be less than `FEWEST_HITS` of them.

    Raises:
        UsageError: with the number that would do.
    """
    if least_chance is None:
        return
    needed = math.ceil(FEWEST_HITS / min(least_chance, 1 - least_chance))
    if count < needed:
        raise UsageError(
            f"{count} draws do not tell a probability of {float(least_chance):g} from others; it takes {needed} "
            "(--draws)"
        )


def drawn_probabilities(
    objective: Objective, data: Data, settings: ConfidenceSettings
) -> Iterator[NDArray[np.float64]]:
    """(c, m) probabilities of each draw from each initial state, `data.draws` rows in all.

    Draw number d has the same matrices for every objective on the same counts, and for detectors of the same
    drives the same weights of these.

    Args:
        objective: formula and skeleton.
        data: the detector's counts, and what is drawn.
        settings: prior and seed.
    """
    columns = objective.skeleton.columns_needed()
    if not len(columns):  # nothing that is reported changes anything
        found = objective.probabilities(data.measured.rates[None]).probability
        return iter([np.repeat(found, data.draws, axis=0)])
    if data.choice.kind == "bootstrap":
        drawn = common_draws(data.of_drives(objective), settings.prior, data.draws, settings.seed)
        return probability_draws(objective, drawn)
    return probability_draws(
        objective, matrix_draws(data.measured, columns, settings.prior, data.draws, settings.seed)
    )
