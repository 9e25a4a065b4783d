r"""The greatest value that nature can reach, by policy iteration with exact linear solves, and a proof of it.

Nature chooses the rates in every product state (`robust_step`). States are gathered into *nodes*: a component in
which nature can stay forever (an end component that has been decided, `robust_graph`) is one node, every other state
is a node of its own. Some nodes have a known value. For the others the least solution y >= 0 is wanted of

    y(N) = max over states s of N and choices mu that may leave N of
           E_mu[ y(next node) + jump(N) | N is left ] + step(N) / mu(N is left)                                  (1)

with costs jump, step >= 0. Without costs, 1 known on a target and 0 where it cannot be reached, that is the greatest
probability of reaching the target: staying in a node forever earns nothing, and any state of a node can be reached
from any other for free, so a node may choose from where it is left (de Alfaro, Formal verification of probabilistic
systems, 1997, section 3; Baier and Katoen, Principles of Model Checking, section 10.6). As nodes swallow all end
components, no choice can avoid the known nodes forever.

**Policy iteration.** Solve the equations of a policy, switch the nodes in which another choice is strictly better for
its values, and so on. *Every policy is regular*: states that it visits infinitely often form an end component, and
each of those lies in one node, so a policy that leaves every unknown node it enters ends up in a known one. *It
ends*: values never decrease and grow where something is switched, a switch leads to one of finitely many vertices, so
no policy comes back. *It ends at the solution of (1)*: where nothing is strictly better, y bounds from above what any
choice gives, by induction over the number of steps; and it is the value of a policy. The solution is unique.

Without the nodes this would be wrong in both directions. On a set of states in which nature can stay forever,
y = max E[y(next)] has a solution for every constant that is large enough, policy iteration can stop at any of them
or meet a singular matrix, and value iteration from above does not move. Value iteration from below does converge, but
says nothing about how far it has come: with a loop of probability 1 - 10^-9 it stops a factor 10^9 too early.

**Proof.** Doubles solve the equations only nearly. So a small cost is charged for every jump, which lifts y above the
solution, and the lifted values are checked with rounding accounted for (`UncertainStep.upper_bound`): if

    max over mu of E_mu[ y(next) - y(s) ] <= 0 in every state s outside the target,   y >= 0,   y >= 1 on it,     (2)

then y(s) is an upper bound on the probability of reaching the target under every choice, whether it depends on the
history or not: by (2), y at the visited states is a supermartingale that is at least 1 from the first visit to the
target on, and the bound is Ville's inequality. The check needs nothing of what computed y.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.robust_policy import Nodes, PolicySearch
from verifier.analysis.robust_step import UncertainStep
from verifier.checking.graphs import Mask, coreachable
from verifier.errors import EngineError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_LEAST_LIFT = 2.0**-43
_LIFTS = 12
_TINY = 2.0**-900


@dataclass(frozen=True, eq=False)
class Reached:
    """A proven bound on the probability of reaching a target.

    Attributes:
        value: (p,) float64; satisfies (2).
        steps: (s, p) for each of s sets of initial states the expected number of steps in each product state, under
            the last policy; 0 where nothing is chosen.
        iterations: linear solves.
    """

    value: Floats
    steps: Floats
    iterations: int


def greatest_reach(step: UncertainStep, nodes: Nodes, target: Mask, starts: Sequence[Ints] = ()) -> Reached:
    """A proven upper bound on the greatest probability of reaching `target`, close to it.

    Args:
        step: the choices.
        nodes: with every end component outside the target in one node.
        target: (p,) bool, whole nodes.
        starts: sets of product states, for `Reached.steps`.

    Raises:
        EngineError: the equations are too close to singular for doubles.
    """
    able = coreachable(step.state_count, nodes.of[nodes.sources], nodes.of[nodes.targets], target)[nodes.of]
    value = target.astype(np.float64)
    search = PolicySearch(step, nodes, np.flatnonzero(able & ~target))
    nothing = np.zeros(step.state_count)
    value = search.optimum(value, nothing, nothing)
    lift = _LEAST_LIFT
    for _ in range(_LIFTS):
        jump = np.where(value > 0, lift * value + _TINY, 0)
        lifted = search.optimum(value, jump, nothing)
        lifted[search.open] = np.minimum(lifted[search.open], 1)
        if is_proven(step, lifted, target):
            steps = np.array([search.steps_from(each) for each in starts]).reshape(len(starts), step.state_count)
            return Reached(lifted, steps, search.iterations)
        lift *= 8
    raise EngineError(
        f"the bounds on {np.count_nonzero(able)} product states cannot be proven in doubles: some are left too rarely"
    )


def is_proven(step: UncertainStep, value: Floats, target: Mask) -> bool:
    """Whether `value` satisfies (2), with all rounding accounted for."""
    drift = _upwards(step, value, step.following, np.arange(len(value)))
    return bool(np.all(value >= target) and np.all(np.isfinite(value)) and np.all(drift[~target] <= 0))


def _upwards(step: UncertainStep, value: Floats, following: Ints, at: Ints) -> Floats:
    """Upper bounds on the greatest mean change of `value` in one step."""
    return step.upper_bound(_widened(value[following] - value[at, None]), at)


def _widened(difference: Floats) -> Floats:
    """Doubles not below the exact difference that was rounded to `difference`."""
    return difference + 4 * 2.0**-53 * np.abs(difference)
