"""Correct-by-construction controllers: the winning region of a game with perfect perception, and its moves.

If the planner were told the truth, the system would be deterministic and the only choice in it the planner's. For
each observation, taken to be true, the requirements then ask for a run that stays in a set of states and, if they
say so, reaches a goal. The winning region is the largest set in which the inputs can keep the promise:

* safety `G p`: the greatest fixed point of "p holds and some move stays inside";
* reaching `F q` (or `p U q`): the states of that region with a path to q inside it.

A controller that takes any winning move in the region meets the safety part; the reaching part needs moves that
come closer to the goal, or a region in which no run can circle (see `Winning.moves_terminate`).

Source: Baier and Katoen, Principles of Model Checking (2008), sections 6.3 and 10.1, fixed points; Badithela et
al. 2022, section III-C, where the controllers for eqs. (1)-(3) are correct by construction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from verifier.confusion.matrices import Label
from verifier.errors import InputError
from verifier.expressions import to_text
from verifier.expressions.syntax import TRUE, Boolean, Node, Operation, Temporal, conjunction, is_temporal
from verifier.systems.behaviour import Moves, rules_behaviour
from verifier.systems.model import Planner, System
from verifier.systems.reachability import gather_rows, reversed_graph
from verifier.systems.space import StateSpace

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Objective:
    """`always` in every state, and `goal` (if any) some time: G always & F goal."""

    always: Node
    goal: Node | None


def objective_of(formula: Node) -> Objective:
    """Read a formula as a conjunction of always- and eventually-requirements over states.

    The environment must be put in already, so that `ped -> F at_line` is `F at_line` or true.

    Raises:
        InputError: the formula has another shape, or two goals (a controller without memory cannot serve both).
    """
    always: list[Node] = []
    goals: list[Node] = []
    pending = [(formula, False)]
    while pending:
        node, negated = pending.pop()
        node = _simplified(node)
        if isinstance(node, Boolean) and node.value != negated:
            continue
        if isinstance(node, Operation) and node.operator == "!":
            pending.append((node.operands[0], not negated))
        elif isinstance(node, Operation) and node.operator == ("|" if negated else "&"):
            pending.extend((operand, negated) for operand in node.operands)
        elif isinstance(node, Operation) and node.operator == "->" and negated:
            pending.extend([(node.operands[0], False), (node.operands[1], True)])
        elif _is_unbounded(node, "F" if negated else "G"):
            inner = node.operands[0]
            if is_temporal(inner):
                pending.extend(_distributed(inner, negated, formula))
            else:
                always.append(Operation("!", (inner,)) if negated else inner)
        elif _is_unbounded(node, "G" if negated else "F") and not is_temporal(node.operands[0]):
            goals.append(Operation("!", (node.operands[0],)) if negated else node.operands[0])
        else:
            raise _outside_fragment(formula)
    if len(set(goals)) > 1:
        raise InputError(
            f"a controller without memory cannot serve two goals: {'; '.join(map(to_text, goals))}",
            hint="synthesise from one goal and any number of always-requirements",
        )
    return Objective(conjunction(tuple(dict.fromkeys(always))), goals[0] if goals else None)


def _is_unbounded(node: Node, operator: str) -> TypeGuard[Temporal]:
    return isinstance(node, Temporal) and node.operator == operator and node.interval is None


def _distributed(inner: Node, negated: bool, formula: Node) -> list[tuple[Node, bool]]:
    """G over a conjunction (F over a disjunction, negated) as one requirement per part."""
    if isinstance(inner, Operation) and inner.operator == ("|" if negated else "&"):
        operator = "F" if negated else "G"
        return [(Temporal(operator, (operand,)), negated) for operand in inner.operands]
    if isinstance(inner, Temporal) and inner.operator == ("F" if negated else "G") and inner.interval is None:
        return [(inner, negated)]
    raise _outside_fragment(formula)


def _outside_fragment(formula: Node) -> InputError:
    return InputError(
        f"no controller is synthesised from {to_text(formula)}",
        hint="supported: conjunctions of G p and F q with state conditions p and q, once the classes that stand "
        "there are known; name the formula of the planner in the model if the spec asks for more",
    )


def _simplified(node: Node) -> Node:
    """`node` with true and false propagated through its connectives."""
    if not isinstance(node, Operation | Temporal):
        return node
    operands = tuple(_simplified(operand) for operand in node.operands)
    if isinstance(node, Temporal):
        if all(isinstance(operand, Boolean) for operand in operands) and node.operator in "XFG":
            return operands[0]
        return Temporal(node.operator, operands, node.interval, node.position)
    values = [operand.value if isinstance(operand, Boolean) else None for operand in operands]
    if node.operator == "!" and values[0] is not None:
        return Boolean(not values[0])
    if node.operator in ("&", "|"):
        absorbing = node.operator == "|"
        if absorbing in values:
            return Boolean(absorbing)
        rest = [operand for operand, value in zip(operands, values, strict=True) if value is None]
        if len(rest) < 2:
            return rest[0] if rest else Boolean(not absorbing)
    if node.operator == "->":
        if values[0] is False or values[1] is True:
            return TRUE
        if values[0] is True:
            return operands[1]
        if values[1] is False:
            return _simplified(Operation("!", (operands[0],)))
    return Operation(node.operator, operands, node.position)


@dataclass(frozen=True)
class Winning:
    """The winning region for one observation taken to be true.

    Attributes:
        region: (n,) the states from which the objective can be met.
        moves: (choices, n) the winning moves: next state inside the region, or -1.
        goal: (n,) the goal states; the whole region when there is no goal.
    """

    region: Mask
    moves: Ints
    goal: Mask

    def moves_terminate(self) -> bool:
        """Whether every way of choosing winning moves reaches the goal: no cycle among them outside of it."""
        choice, source = np.nonzero((self.moves >= 0) & self.region & ~self.goal)
        target = self.moves[choice, source]
        n = len(self.region)
        if np.any(source == target):
            return False
        graph = csr_array((np.ones(len(source), dtype=np.int8), (source, target)), shape=(n, n))
        return bool(connected_components(graph, directed=True, connection="strong")[0] == n)


def winning(space: StateSpace, moves: Moves, objective: Objective) -> Winning:
    """The winning region and its winning moves."""
    safe = safe_region(moves, space.where(objective.always))
    if objective.goal is None:
        return Winning(safe, _moves_inside(moves, safe), safe)
    goal = safe & space.where(objective.goal)
    region = moves.leading_to(goal, safe)
    return Winning(region, _moves_inside(moves, region), goal)


def _moves_inside(moves: Moves, region: Mask) -> Ints:
    inside = (moves.following >= 0) & region[moves.following] & region
    return np.where(inside, moves.following, -1)


def safe_region(moves: Moves, allowed: Mask) -> Mask:
    """(n,) the greatest set of `allowed` states in which every state has a move into the set."""
    n = moves.following.shape[1]
    safe = allowed.copy()
    choice, source = np.nonzero((moves.following >= 0) & allowed)
    target = moves.following[choice, source]
    good = np.bincount(source[allowed[target]], minlength=n)
    indptr, sources = reversed_graph(n, source, target)
    # A state falls out when its last move into the set does; each move is looked at once.
    falling = np.flatnonzero(safe & (good == 0))
    while len(falling):
        safe[falling] = False
        entries, _ = gather_rows(indptr, falling)
        touched, lost = np.unique(sources[entries], return_counts=True)
        good[touched] -= lost
        falling = touched[safe[touched] & (good[touched] == 0)]
    return safe


def synthesised_behaviour(
    system: System,
    space: StateSpace,
    planner: Planner,
    formula: Node,
    observations: tuple[Label, ...],
    terminal: Mask,
) -> Ints:
    """(n, observations) int64 next state of the correct-by-construction controller; -1 where it has no valid step.

    Among the winning moves the planner's `pick` decides. Before a goal only moves that lead on to it are taken:
    those into the states from which the goal is still reachable, nearest layer first.
    """
    following = rules_behaviour(system, space, planner, observations)
    moves = Moves.of(system, space, planner.pick, terminal)
    for column, observation in enumerate(observations):
        won = winning(space, moves, objective_of(system.under(formula, observation)))
        chosen = Moves(won.moves).first_into(won.region) if won.moves_terminate() else _nearer_moves(won)
        following[:, column] = np.where(chosen >= 0, chosen, following[:, column])
    return following


def _nearer_moves(won: Winning) -> Ints:
    """(n,) for each state of the region the best-picked move to a state nearer to the goal.

    In goal states any winning move will do. Distances to the goal are found layer by layer.
    """
    chosen = np.where(won.goal, Moves(won.moves).first_into(won.region), -1)
    reached = won.goal.copy()
    while True:
        step = Moves(won.moves).first_into(reached)
        layer = (step >= 0) & ~reached & won.region
        if not layer.any():
            return chosen
        chosen[layer] = step[layer]
        reached = reached | layer
