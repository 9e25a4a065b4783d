"""One side of the bounds on a probability, when every state may have a matrix of its own.

The formula fails or holds. Nature, who wants the one that `side` names, can earn it in two ways: by reaching the
obligation `false` (or `true`), or by staying forever in an end component in which she can make it fail (or hold).
Every run ends in an end component with probability 1, so

    greatest probability that the formula fails = greatest probability of reaching such a component, or `false`,

and the same for holding: both bounds are greatest probabilities of reaching a target. The end components outside the
target are those in which staying earns nothing. The least probability of the formula is 1 minus the greatest one of
failing.

Where the world decides, world and matrix are on the same side of one of the two bounds: the lower one of the least
probability, and the upper one of the greatest. Of the other side a bound holds for every matrix if it holds while the
world keeps to some strategy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from verifier.analysis.objective import Objective
from verifier.analysis.robust.graph import decided_components
from verifier.analysis.robust.inner_bounds import middle_of, rates_of
from verifier.analysis.robust.optimum import Optimum
from verifier.analysis.robust.policy import Nodes, make_nodes
from verifier.analysis.robust.provable import Provable
from verifier.analysis.robust.region import Region
from verifier.analysis.robust.solve import Reached, greatest_reach
from verifier.analysis.robust.step import UncertainStep, uncertain_step
from verifier.base.arrays import Ints, Mask
from verifier.checking.graphs import reachable

Side: TypeAlias = Literal["lower", "upper"]


@dataclass(frozen=True, eq=False)
class SideBound:
    """A proven bound on one side.

    Attributes:
        objective: that it is about: the one that was asked for, or with part of the choices of a world that decides.
        side: "lower": on the formula's failing; "upper": on its holding.
        step, nodes: nature's choices and the end components.
        target: (p,) bool, where nature has won.
        reached: the greatest probability of getting there, bounded from above in every product state.
        conservative: whether nature may have been given too much: a component that matters counts as won because that
            could not be ruled out, or parts were merged (`Reached.merged`).
    """

    objective: Objective
    side: Side
    region: Region
    step: UncertainStep
    nodes: Nodes
    target: Mask
    reached: Reached
    conservative: bool


def bound_sides(
    objective: Objective, region: Region, sides: tuple[Side, ...], starts: Sequence[Ints] = ()
) -> list[SideBound]:
    """The given sides of the bounds over a region.

    Args:
        objective: the formula on the skeleton.
        region: its matrices.
        sides: which.
        starts: sets of product states, for `Reached.steps`.

    Raises:
        EngineError, LimitError: from deciding components and solving.
        ValueError: the region does not fit the objective.
    """
    result: list[SideBound] = []
    for side in sides:
        own = _with_the_world(objective, region, side)
        if not result or own is not result[-1].objective:
            step = uncertain_step(own, region)
            found = decided_components(own, step, Provable(own, region))
            nodes = make_nodes(step, found.of)
            begun = np.zeros(step.state_count, dtype=bool)
            begun[own.product.start] = True
            met = reachable(step.state_count, nodes.sources, nodes.targets, begun)
        won, assumed = (
            (found.can_fail, found.fail_assumed) if side == "lower" else (found.can_hold, found.hold_assumed)
        )
        target = (found.of >= 0) & won[found.of]
        doubtful = (found.of >= 0) & assumed[found.of]
        # What is bad for one side is good for the other.
        guide = 1 - result[-1].reached.value if result and result[-1].objective is own else None
        reached = greatest_reach(step, nodes, target, starts, guide)
        conservative = reached.merged or bool(np.any(doubtful & met))
        result.append(SideBound(own, side, region, step, nodes, target, reached, conservative))
    return result


def _with_the_world(objective: Objective, region: Region, side: Side) -> Objective:
    """What a side is bounded on: where the world decides and is on the other side, it keeps to one strategy, its best
    for a matrix in the middle of the region. No more is needed: against that strategy it can only fare worse."""
    if not isinstance(objective, Optimum) or objective.ranges(side):
        return objective
    return objective.settled(rates_of(region, middle_of(region)))
