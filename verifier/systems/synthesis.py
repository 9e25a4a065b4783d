"""Correct-by-construction controllers: the winning region of a game with perfect perception, and its moves.

If the planner were told the truth, the system would be deterministic and the only choice in it the planner's. For
each observation, taken to be true, the requirements then ask for a run that stays in a set of states and, if they
say so, reaches a goal. The winning region is the largest set in which the inputs can keep the promise:

* safety `G p`: the greatest fixed point of "p holds and some move stays inside", which is the set of states from
  which a path inside p leads to a cycle inside p;
* reaching as well, `G p & F q`: the states of that set with a path inside it to one in which q holds.

A controller that takes any winning move in the region meets the safety part; the reaching part needs moves that
come closer to the goal, or a region in which no run can circle before it (see `Winning.moves_terminate`). Once the
goal is reached only safety remains to be kept, also where the goal cannot be reached again.

Source: Baier and Katoen, Principles of Model Checking (2008), sections 6.3 and 10.1, fixed points; Badithela et
al. 2022, section III-C, where the controllers for eqs. (1)-(3) are correct by construction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from verifier.base.arrays import Ints, Mask
from verifier.base.errors import InputError, Place
from verifier.base.graphs import coreachable, distances, on_cycle, reachable
from verifier.language.expressions import Source, to_text
from verifier.language.expressions.syntax import (
    FALSE,
    TRUE,
    Boolean,
    Node,
    Operation,
    Temporal,
    conjunction,
    is_temporal,
)
from verifier.perception.confusion.matrices import Label
from verifier.systems.behaviour import Moves, rules_behaviour
from verifier.systems.model import System
from verifier.systems.model_parts import Planner
from verifier.systems.space import StateSpace


@dataclass(frozen=True)
class Objective:
    """`always` in every state, and `goal` (if any) some time: G always & F goal."""

    always: Node
    goal: Node | None


def objective_of(formula: Node, place: Place | None = None) -> Objective:
    """Read a formula as a conjunction of always- and eventually-requirements over states.

    Args:
        formula: with the environment put in already, so that `ped -> F at_line` is `F at_line` or true.
        place: whose formula it is, for messages.

    Raises:
        InputError: the formula has another shape, or two goals (a controller without memory cannot serve both).
    """
    always: list[Node] = []
    goals: list[Node] = []
    pending = [(formula, False)]
    while pending:
        node, negated = pending.pop()
        node = _simplified(node)
        if isinstance(node, Boolean):
            always += [] if node.value != negated else [FALSE]
        elif isinstance(node, Operation) and node.operator == "!":
            pending.append((node.operands[0], not negated))
        elif isinstance(node, Operation) and node.operator == ("|" if negated else "&"):
            pending.extend((operand, negated) for operand in node.operands)
        elif isinstance(node, Operation) and node.operator == "->" and negated:
            pending.extend([(node.operands[0], False), (node.operands[1], True)])
        elif _is_unbounded(node, "F" if negated else "G"):
            inner = node.operands[0]
            parts = _parts(inner, negated)
            if not is_temporal(inner):
                always.append(_negated(inner) if negated else inner)
            elif parts:
                pending.extend((part, negated) for part in parts)
            else:
                raise _outside_fragment(formula, place)
        elif _is_unbounded(node, "G" if negated else "F") and not is_temporal(node.operands[0]):
            goals.append(_negated(node.operands[0]) if negated else node.operands[0])
        else:
            raise _outside_fragment(formula, place)
    if len(set(goals)) > 1:
        raise InputError(
            f"a controller without memory cannot serve two goals: {'; '.join(map(to_text, dict.fromkeys(goals)))}",
            place,
            hint="synthesise from one goal and any number of always-requirements",
        )
    return Objective(conjunction(tuple(dict.fromkeys(always))), goals[0] if goals else None)


def _is_unbounded(node: Node, operator: str) -> TypeGuard[Temporal]:
    return isinstance(node, Temporal) and node.operator == operator and node.interval is None


def _parts(inner: Node, negated: bool) -> tuple[Node, ...]:
    """G inner as several requirements (F inner, negated): G(a & b) is G a and G b, G G a is G a; () for no such."""
    operator = "F" if negated else "G"
    if isinstance(inner, Operation) and inner.operator == ("|" if negated else "&"):
        return tuple(Temporal(operator, (operand,)) for operand in inner.operands)
    return (inner,) if _is_unbounded(inner, operator) else ()


def _outside_fragment(formula: Node, place: Place | None) -> InputError:
    return InputError(
        f"no controller is synthesised from {to_text(formula)}",
        place,
        hint="supported: conjunctions of G p and F q with state conditions p and q, once the classes that stand "
        "there are known; name the formula of the planner in the model if the spec asks for more",
    )


def _simplified(node: Node) -> Node:
    """`node` with true and false propagated through its connectives."""
    if not isinstance(node, Operation | Temporal):
        return node
    operands = tuple(_simplified(operand) for operand in node.operands)
    if isinstance(node, Temporal):
        if node.operator in "XFG" and isinstance(operands[0], Boolean):
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
            return _negated(operands[0])
    if node.operator in ("xor", "<->"):
        equal = node.operator == "<->"
        if None not in values:
            return Boolean((values[0] == values[1]) == equal)
        for value, other in zip(values, reversed(operands), strict=True):
            if value is not None:
                return other if value == equal else _negated(other)
    return Operation(node.operator, operands, node.position)


def _negated(node: Node) -> Node:
    return Operation("!", (node,))


@dataclass(frozen=True)
class Winning:
    """The winning region for one observation taken to be true.

    Attributes:
        region: (n,) the states from which the objective can be met.
        moves: the winning moves: inside the region before the goal; from the goal on, also in states that only come
            after it, those that keep the always-part.
        goal: (n,) the goal states; the whole region when there is no goal.
    """

    region: Mask
    moves: Moves
    goal: Mask

    def moves_terminate(self) -> bool:
        """Whether every way of choosing winning moves reaches the goal: no cycle among them outside of it."""
        before = self.region & ~self.goal
        return not before.any() or not on_cycle(len(before), *self.moves.between(before, before).edges()).any()

    def goal_is_forgotten(self) -> bool:
        """Whether a run may return, after the goal, to a state before it, where its moves are those of a new run."""
        after = reachable(len(self.region), *self.moves.edges(), self.goal)
        return bool((after & self.region & ~self.goal).any())


def winning(space: StateSpace, moves: Moves, objective: Objective, source: Source | None = None) -> Winning:
    """The winning region and its winning moves; `source` is whose objective it is, for messages."""
    staying, safe = safe_moves(moves, space.where(objective.always, source))
    if objective.goal is None:
        return Winning(safe, staying, safe)
    goal = safe & space.where(objective.goal, source)
    region = staying.leading_to(goal)
    afterwards = reachable(len(safe), *staying.edges(), goal)
    before = region & ~goal
    won = staying.between(before, region).following
    np.maximum(won, staying.between(afterwards & ~before, safe).following, out=won)  # no state is in both
    return Winning(region, Moves(won), goal)


def safe_moves(moves: Moves, allowed: Mask) -> tuple[Moves, Mask]:
    """The greatest set of `allowed` states in which every state has a move into the set, and the moves inside it."""
    graph = len(allowed), *moves.between(allowed, allowed).edges()
    safe = coreachable(*graph, on_cycle(*graph))
    return moves.between(safe, safe), safe


def synthesised_behaviour(
    system: System,
    space: StateSpace,
    planner: Planner,
    formula: Node,
    observations: tuple[Label, ...],
    terminal: Mask,
) -> Ints:
    """(n, observations) int64 next state of the correct-by-construction controller; -1 where it has no valid step.

    Among the winning moves the planner's `pick` decides. Where winning moves could circle before the goal, only
    those are taken that come nearer to it, in number of steps.
    """
    following = rules_behaviour(system, space, planner, observations)
    moves = Moves.of(system, space, planner.pick, terminal)
    for column, observation in enumerate(observations):
        won = winning_moves(system, space, planner, formula, observation, moves)
        best = (won.moves if won.moves_terminate() else _nearer_moves(won)).best()
        following[:, column] = np.where(best >= 0, best, following[:, column])
    return following


def winning_moves(
    system: System, space: StateSpace, planner: Planner, formula: Node, observation: Label, moves: Moves
) -> Winning:
    """`winning` for what a planner must achieve if exactly the classes of `observation` stand there.

    Raises:
        InputError: as `objective_of`, naming the planner.
    """
    source = system.model.at(f"planners.{planner.name}")
    objective = objective_of(system.under(formula, observation), source.place(None))
    return winning(space, moves, objective, source)


def _nearer_moves(won: Winning) -> Moves:
    """The winning moves, before the goal only those to a state that is one step nearer to it."""
    sources, targets = won.moves.between(won.region, won.region).edges()
    steps = distances(len(won.region), targets, sources, won.goal)
    before, kept = won.region & ~won.goal, won.moves.following.copy()
    for row in kept:
        row[before & (steps[row] != steps - 1)] = -1
    return Moves(kept)
