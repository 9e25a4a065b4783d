"""Which matrix cells the violation of a requirement runs through, from the adjoint and without listing runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.adjoint import Values, expected_visits, flow_derivatives
from verifier.analysis.objective import Objective

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CellShares:
    """What the matrix cells have to do with the violation; arrays are (bins, predicted, true).

    Only reports on which something hung are counted: the next state depended on the report, and the outcome was
    still open.

    Attributes:
        expected: expected number of times that the cell occurs on a violating run.
        everywhere: the same on any run.
        decisive: probability that a violating run becomes irrevocable with this cell. With one object these add up
            to 1 over all cells; with several, each of them has its cell at that moment.
    """

    expected: Floats
    everywhere: Floats
    decisive: Floats


def cell_shares(objective: Objective, values: Values, start: int, satisfying: bool = False) -> CellShares:
    """What each matrix cell has to do with the violation.

    With n[s] the expected visits to product state s, the expected number of runs that pass s, draw the cell there
    and are violating is n[s] x rate x the chance of violation behind it (the Markov property). Divided by the chance
    of violation it is the expected number on a violating run.

    Args:
        objective, values: what was solved.
        start: number of the initial state.
        satisfying: the violating runs are those that satisfy the formula.

    Raises:
        ValueError: the violation has probability 0.
    """
    hope, violation = (values.failure, values.value) if satisfying else (values.value, values.failure)
    total = float(violation[objective.product.start[start]])
    if not total > 0:
        raise ValueError("the violation has probability 0")
    visits = expected_visits(objective, values, [start])
    still_open = np.where((hope > 0) & (violation > 0), visits, 0.0)

    def flow(worth: Floats) -> Floats:
        # A column that the chain does not need has a derivative of 0, whatever stands in it.
        flowing: Floats = values.rates * flow_derivatives(objective, values.rates, still_open, worth)[0]
        return flowing

    return CellShares(flow(violation / total), flow(np.ones(len(hope))), flow((hope == 0) / total))
