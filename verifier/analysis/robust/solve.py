r"""The greatest value that nature can reach, by policy iteration with exact linear solves, and a proof of it.

Nature chooses the rates in every product state (`robust_step`). States are gathered into *nodes*: a component in
which nature can stay forever (an end component that has been decided, `robust_graph`) is one node, every other state
is a node of its own. Some nodes have a known value. For the others the least solution y >= 0 is wanted of

    y(N) = cost(N) + max { E_mu[ y(next node) | N is left ] : s in N, mu a choice in s that may leave N }         (1)

with costs >= 0 of leaving a node. Without costs, 1 known on a target and 0 where it cannot be reached, that is the
greatest probability of reaching the target: staying in a node forever earns nothing, and any state of a node can be
reached from any other for free, so a node may choose from where it is left (de Alfaro, Formal verification of
probabilistic systems, 1997, section 3; Baier and Katoen, Principles of Model Checking, section 10.6). As nodes
swallow all end components, no choice can avoid the known nodes forever.

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

**Proof.** Doubles solve the equations only nearly. So a small cost is charged for every departure, which lifts y
above the solution, and the lifted values are checked with rounding accounted for (`UncertainStep.upper_bound`): if

    max over mu of E_mu[ y(next) - y(s) ] <= 0 in every state s outside the target,   y >= 0,   y >= 1 on it,     (2)

then y(s) is an upper bound on the probability of reaching the target under every choice, whether it depends on the
history or not: by (2), y at the visited states is a supermartingale that is at least 1 from the first visit to the
target on, and the bound is Ville's inequality. The check needs nothing of what computed y.

**Where doubles do not suffice.** A part of the graph that is left with a probability of 10^-15 has equations that are
singular in doubles. Then nature is given more: the strongly connected parts concerned become nodes as if she could
stay in them forever and leave them where she likes. The values are sound and may be larger than need be; of several
vectors with (2) the least in every state has it, too (the mean of a minimum is at most the minimum of the means).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from verifier.analysis.robust.policy import Nodes, PolicySearch, make_nodes
from verifier.analysis.robust.step import UncertainStep
from verifier.base.arrays import Floats, Ints, Mask, marked
from verifier.base.errors import EngineError
from verifier.base.graphs import components, coreachable

_LEAST_LIFT = 2.0**-42
_LIFTS = 12
_SMALLEST_LIFT = 2.0**-51
_TINY = 2.0**-900
SMALL_LOSS = 1e-8
"""Values may be lifted by so much before it is tried to do better with merged parts."""
LARGE_LOSS = 1e-6
"""From here on a bound is said to be wider than need be."""
_MOST_MERGERS = 4


@dataclass(frozen=True, eq=False)
class Reached:
    """A proven bound on the probability of reaching a target.

    Attributes:
        value: (p,) float64; satisfies (2).
        steps: (s, r) for each of s sets of initial states the expected number of steps in each row, under the last
            policy; 0 where nothing is chosen.
        merged: whether doubles did not suffice, so that the bound may be wider than need be.
    """

    value: Floats
    steps: Floats
    merged: bool


def greatest_reach(
    step: UncertainStep, nodes: Nodes, target: Mask, starts: Sequence[Ints] = (), guide: Floats | None = None
) -> Reached:
    """A proven upper bound on the greatest probability of reaching `target`, close to it.

    Args:
        nodes: with every end component outside the target in one node.
        target: (p,) bool, whole nodes.
        starts: sets of product states, for `Reached.steps`.
        guide: (p,) values for the first policy, see `PolicySearch`.

    Raises:
        EngineError: no bound can be proven in doubles.
    """
    able = coreachable(step.state_count, nodes.of[nodes.sources], nodes.of[nodes.targets], target)[nodes.of]
    unknown = np.flatnonzero(able & ~target)
    best: Floats | None = None
    steps = np.zeros((len(starts), len(step.owner)))
    present: Nodes | None = nodes
    mergers, worse = 0, False
    while present is not None:
        search = PolicySearch(step, present, unknown, guide)
        value, loss, first_loss, doubtful = _lifted(step, search, target)
        if value is not None:
            if best is None:
                steps = np.array([search.steps_from(start) for start in starts]).reshape(steps.shape)
            best = value if best is None else np.minimum(best, value)
        worse |= mergers == 0 and loss > LARGE_LOSS
        enough = first_loss <= SMALL_LOSS or mergers == _MOST_MERGERS
        present = None if enough else _merged(step, present, unknown, doubtful)
        mergers += present is not None
    if best is None:
        raise EngineError(f"no bound on {len(unknown)} product states can be proven in doubles")
    return Reached(best, steps, worse)


def is_proven(step: UncertainStep, value: Floats, target: Mask) -> bool:
    """Whether `value` satisfies (2), with all rounding accounted for."""
    return bool(np.all(value >= target) and np.all(np.isfinite(value)) and not np.any(_unproven(step, value, target)))


def _unproven(step: UncertainStep, value: Floats, target: Mask) -> Mask:
    """(r,) the rows in which (2) is not shown to hold."""
    difference = value[step.following] - value[step.owner, None]
    widened = difference + 4 * 2.0**-53 * np.abs(difference)  # not below the exact difference
    return ~(step.upper_bound(widened) <= 0) & ~target[step.owner]


def _cost(value: Floats, lift: float) -> Floats:
    """What a step from each state costs: this share of its value, and something where that is 0."""
    return lift * value + _TINY


def _lifted(step: UncertainStep, search: PolicySearch, target: Mask) -> tuple[Floats | None, float, float, Ints]:
    """Proven values, if any; how far they may be above the solution, and how far before the costs were lowered; and
    the states where that is from."""
    try:
        value = search.optimum(target.astype(np.float64), np.zeros(step.state_count), roughly=True)
        lift, doubtful = _LEAST_LIFT, np.zeros(0, dtype=np.int64)
        for _ in range(_LIFTS):
            cost = _cost(value, lift)
            lifted = search.optimum(value, cost)
            unproven = _unproven(step, lifted, target)
            if not np.any(unproven):
                first_loss = search.burden(cost, value)
                lowered, loss = _lowered(step, search, target, value, lifted, lift, first_loss)
                return lowered, loss, first_loss, doubtful
            doubtful = np.union1d(doubtful, step.owner[unproven])
            lift *= 8
    except EngineError:
        pass
    return None, 1.0, 1.0, search.open


def _lowered(
    step: UncertainStep, search: PolicySearch, target: Mask, value: Floats, lifted: Floats, lift: float, loss: float
) -> tuple[Floats, float]:
    """Proven values and how far they may be above the solution, with smaller costs as long as that matters.

    A cost is paid in every step: where very many pass, the least cost that can be proven decides how good a bound is.
    `lifted` are proven with `lift`, and may be above the solution by `loss`.
    """
    while loss > SMALL_LOSS and lift > _SMALLEST_LIFT:
        lift /= 2
        cost = _cost(value, lift)
        lower = search.optimum(value, cost)
        if not is_proven(step, lower, target):
            break
        lifted, loss = lower, search.burden(cost, value)
    return lifted, loss


def _merged(step: UncertainStep, nodes: Nodes, unknown: Ints, doubtful: Ints) -> Nodes | None:
    """Nodes in which the strongly connected parts of doubtful states are one each; None where nothing is merged."""
    inside = marked(step.state_count, unknown)
    kept = inside[nodes.sources] & inside[nodes.targets]
    part = components(step.state_count, nodes.of[nodes.sources[kept]], nodes.of[nodes.targets[kept]])[nodes.of]
    if len(doubtful) == 0:
        doubtful = unknown
    concerned = np.isin(part, part[doubtful])
    of = np.where(concerned, step.state_count + part, np.where(nodes.component, nodes.of, -1))
    merged = make_nodes(step, of)
    return None if np.array_equal(merged.of, nodes.of) else merged
