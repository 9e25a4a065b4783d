"""Requirements that hold, or fail, whatever the detector predicts.

Every column that the chain draws from is left free, so every report of every draw is possible in every step, and
nature chooses it knowing all that happened before. Columns held by convention (no false positives were counted, so
the column `empty` reports nothing) keep their one report. Motion is exact, so what remains is a graph: its paths are
those of every detector, and every joint law of reports (persistent misses, hidden objects, fog over all objects at
once) is a law on these paths. Where the world draws, its outcomes keep their chances: what is said then holds for
almost every path, and 0 (1) as a least (greatest) probability is only a bound.

What is said holds for every path, not for almost every path, because a report may persist for ever. Of the rules of
`robust_graph` that decide where a path can stay, those used here are of that kind:

* Rule 2: a path that stays among safety obligations never meets the obligation `false`, and satisfies the formula;
  one that stays among co-safety obligations violates it. No probability is involved.
* Rules 1 and 3, where no state of a component can be kept from going on to each of its successors: as nature can put
  all mass on any one report, every state then has a single successor, so the component is one cycle and one path.
* Rule 4 is about rates that belong to states, so it is not used; such a component counts as failing and as holding
  (rule 6). A requirement may then hold whatever is predicted without being recognised; never the other way round.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.intervals.intervals import Measured
from verifier.analysis.objective import Objective
from verifier.analysis.robust.graph import decided_components
from verifier.analysis.robust.region import Region
from verifier.analysis.robust.step import uncertain_step
from verifier.base.arrays import Mask
from verifier.base.graphs import coreachable

Bounds = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ends:
    """What can still come of each product state: (p,) bool, whether some detector makes the formula fail, or hold."""

    can_fail: Mask
    can_hold: Mask


def any_dependence(objective: Objective, measured: Measured) -> Bounds:
    """(m, 2) least and greatest probability of the formula from each initial state, over every detector: 0 or 1;
    arguments and errors as `ends_of`."""
    ends, start = ends_of(objective, measured), objective.product.start
    return np.stack([~ends.can_fail[start], ends.can_hold[start]], axis=1).astype(np.int64)


def ends_of(objective: Objective, measured: Measured) -> Ends:
    """What detectors can make of each product state.

    Args:
        objective: the formula on the skeleton.
        measured: of it only which columns are held by convention.

    Raises:
        EngineError, LimitError: as `decided_components`.
    """
    fixed = measured.fixed[:, None, :]
    region = Region.of_bounds(
        objective.skeleton, np.where(fixed, measured.rates, 0.0), np.where(fixed, measured.rates, 1.0)
    )
    step = uncertain_step(objective, region)
    components = decided_components(objective, step, most_combinations=0)
    sources, targets = step.moves
    can_end = (coreachable(step.state_count, sources, targets, components.won(holds)[0]) for holds in (False, True))
    return Ends(*can_end)
