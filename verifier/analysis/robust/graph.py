"""Where nature can stay forever, and whether it can make the formula fail or hold there.

An *end component* is a set of product states, each with a choice of rates that keeps all mass within the set, such
that these choices connect every state of the set with every other (de Alfaro 1997, section 3). Under any choices, the
states that a run visits infinitely often form an end component with probability 1, and every end component lies in a
maximal one. Which they are may depend on rates that can vanish: a bound of 0 is enough.

Within a maximal end component M, nature may be able to make the formula fail almost surely, to make it hold almost
surely, or both; by the zero-one law one of the two is the case for each way of staying, and every state of M can be
reached from every other for free, so the answer is one for all of M. It is found by the first rule that applies:

1. M is a single state. There is one way to stay, and the run is a lasso.
2. The obligation that remains is a safety formula (no unbounded U): a violation would show after finitely many steps
   as the obligation `false`. Who stays in M satisfies it. Likewise co-safety (no unbounded R): who stays violates it
   (Kupferman and Vardi, Model checking of safety properties, FMSD 19, 2001: informative prefixes).
3. No move within M can be made impossible by a choice that stays. Then there is one graph, and the value of its one
   bottom component decides (`verifier.checking.recurrence`).
4. The sets of moves that the states can be reduced to are tried in all combinations, as long as these are not too
   many; each gives a graph whose bottom components are decided. The value with all moves possible is one of them.
5. Otherwise, and where the kernel cannot prove the answer (`provable`), the answer beside that value is not known.
   Both are taken as possible, one of them by assumption: bounds stay sound and may be wider than need be.

What the kernel proves holds for rates that change with time and history. Beyond the size of certificates it is not
asked; there rule 3 holds for such rates too, as all moves keep rates bounded away from 0, and rule 4 is about rates
that depend on the product state alone, as one matrix does.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from verifier.analysis.intervals.betting import UNIT
from verifier.analysis.objective import Objective
from verifier.analysis.robust.step import UncertainStep
from verifier.base.arrays import Ints, Mask
from verifier.checking.graphs import components, ranges
from verifier.checking.product import Product
from verifier.checking.recurrence import component_values
from verifier.language.ltl.progression import ACCEPT, REJECT

MOST_COMBINATIONS = 1024
"""Combinations of moves that are tried for all components together."""
MOST_MOVES = 2_000_000
"""Combinations times states, for one component."""


@dataclass(frozen=True, eq=False)
class Components:
    """The maximal end components of the product under nature's choices.

    Attributes:
        of: (p,) int64, number of the component of each product state, from 0 without gaps; -1 outside.
        can_fail, can_hold: (c,) bool, whether nature can stay and make the formula fail, or hold.
        fail_assumed, hold_assumed: (c,) bool, where that is only assumed (rule 5).
    """

    of: Ints
    can_fail: Mask
    can_hold: Mask
    fail_assumed: Mask
    hold_assumed: Mask


def decided_components(
    objective: Objective,
    step: UncertainStep,
    proves: Callable[[Ints, bool], bool] | None = None,
    most_combinations: int | None = None,
) -> Components:
    """All maximal end components, decided.

    Args:
        objective: the formula on the skeleton.
        step: nature's choices.
        proves: whether it can be proven that who stays among some product states meets (violates) the formula; None
            where the rules are proof enough.
        most_combinations: that rule 4 tries in all, `MOST_COMBINATIONS` if None; with 0 it is left out.

    Raises:
        EngineError, LimitError: from deciding bottom components.
    """
    of = end_components(step)
    count = int(of.max(initial=-1)) + 1
    can_fail, can_hold, fail_assumed, hold_assumed = (np.zeros(count, dtype=bool) for _ in range(4))
    can_fail[of[REJECT]], can_hold[of[ACCEPT]] = True, True
    inner = np.flatnonzero(of >= 0)
    inner = inner[inner > max(ACCEPT, REJECT)]
    rest = _by_kind_of_formula(objective, of, inner, can_fail, can_hold)
    if len(rest):
        moves = step.usable(of[step.following[rest]] == of[rest, None], rest)
        full = _values_under(objective, rest, step.following[rest], moves, of[rest])
        members = np.unique(of[rest])
        can_hold[members], can_fail[members] = full, ~full
        tried, most = 0, MOST_COMBINATIONS if most_combinations is None else most_combinations
        for number in members[np.bincount(of[rest], minlength=count)[members] > 1].tolist():
            holds = bool(can_hold[number])
            inside = np.flatnonzero(of == number)
            other, tried = _other_value(objective, step, inside, holds, tried, most)
            if other is None or (other is False and proves is not None and not proves(inside, holds)):
                other = None
                fail_assumed[number], hold_assumed[number] = holds, not holds
            if other is not False:
                can_fail[number] = can_hold[number] = True
    return Components(of, can_fail, can_hold, fail_assumed, hold_assumed)


def end_components(step: UncertainStep) -> Ints:
    """(p,) number of the maximal end component of each state, from 0 without gaps; -1 outside.

    Strongly connected components are cut down to the states that can stay within them, and taken apart again, until
    nothing changes.
    """
    n, following = step.state_count, step.following
    sources, seen = np.nonzero(step.usable(np.ones(following.shape, dtype=bool)))
    targets = following[sources, seen]
    of = components(n, sources, targets)
    cyclic: Mask = np.bincount(of)[of] > 1
    cyclic[sources[sources == targets]] = True
    of[~cyclic] = -1
    order = np.argsort(targets, kind="stable")
    entering = sources[order]
    first = np.concatenate([[0], np.cumsum(np.bincount(targets, minlength=n))])
    while True:
        at = np.flatnonzero(of >= 0)
        while len(at):
            moves = step.usable(of[following[at]] == of[at, None], at)
            stuck = at[~moves.any(axis=1)]
            of[stuck] = -1
            # Only who could go to one of these may be unable to stay now.
            before = np.unique(entering[ranges(first[stuck], first[stuck + 1])])
            at = before[of[before] >= 0]
        at = np.flatnonzero(of >= 0)
        moves = step.usable(of[following[at]] == of[at, None], at)
        place, seen = np.nonzero(moves)
        finer = components(n, at[place], following[at[place], seen])[at]
        _, before_cut = np.unique(of[at], return_inverse=True)
        _, finer = np.unique(finer, return_inverse=True)
        of[at] = finer
        if finer.max(initial=-1) == before_cut.max(initial=-1):
            break
    return of


def _by_kind_of_formula(objective: Objective, of: Ints, inner: Ints, can_fail: Mask, can_hold: Mask) -> Ints:
    """Rule 2: fill in what the obligations decide; the states of components of more than one state that are left,
    and those of single states, which rule 1 decides like rule 3."""
    numbers, place = np.unique(objective.product.obligation[inner], return_inverse=True)
    endless = np.array([_unbounded(objective, each) for each in numbers.tolist()], dtype=bool).reshape(-1, 2)[place]
    size = len(can_fail)
    asked = np.bincount(of[inner], minlength=size) > 0
    safe = asked & (np.bincount(of[inner], endless[:, 0], size) == 0)
    co_safe = asked & (np.bincount(of[inner], endless[:, 1], size) == 0)
    can_hold |= safe
    can_fail |= co_safe & ~safe
    rest: Ints = inner[~(safe | co_safe)[of[inner]]]
    return rest


def _unbounded(objective: Objective, obligation: int) -> tuple[bool, bool]:
    """Whether an obligation has an unbounded U, and whether it has an unbounded R."""
    obligations = objective.product.obligations
    nodes = obligations.formula.nodes
    pending, known = list(obligations.nodes_in(obligation)), set()
    while pending:
        number = pending.pop()
        if number not in known:
            known.add(number)
            pending.extend(nodes[number].operands)
    endless = {nodes[number].kind for number in known if nodes[number].high is None}
    return "U" in endless, "R" in endless


def _values_under(objective: Objective, members: Ints, following: Ints, moves: Mask, owner: Ints) -> Mask:
    """The value of each bottom component of a graph on product states, in the order of their numbers in `owner`.

    Args:
        objective: the product.
        members: (k,) product states; one may occur more than once, as a copy with other moves.
        following: (k, observations) int64, numbers whose equals among `members` (of one owner) they lead to.
        moves: (k, observations) bool, the moves that are made.
        owner: (k,) the bottom component of each member.
    """
    _, component = np.unique(owner, return_inverse=True)
    source, seen = np.nonzero(moves)
    size = objective.state_count
    key = component * size + members
    order = np.argsort(key)
    target = order[np.searchsorted(key[order], component[source] * size + following[source, seen])]
    return component_values(
        _product_of(objective.product, members, source, target),
        np.ones(len(source), dtype=bool),
        np.arange(len(members)) + 2,
        component,
    )


def _product_of(product: Product, members: Ints, source: Ints, target: Ints) -> Product:
    """The product of a chain whose states are `members` themselves, with these edges (sources increasing)."""
    indptr = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=len(members)))])
    return Product(
        indptr=np.concatenate([[0, 0], indptr]),
        indices=target + 2,
        edge=np.arange(len(source)),
        state=np.concatenate([[-1, -1], np.arange(len(members))]),
        obligation=np.concatenate([[REJECT, ACCEPT], product.obligation[members]]),
        start=np.array([2]),
        obligations=product.obligations,
        chain_indptr=indptr,
        chain_indices=target,
        propositions=tuple(mask[product.state[members]] for mask in product.propositions),
    )


def _other_value(
    objective: Objective, step: UncertainStep, members: Ints, value: bool, tried: int, most: int
) -> tuple[bool | None, int]:
    """Rules 3 to 5: whether nature can give a component the opposite of `value`, the value with all moves.

    At most `most` combinations are tried, `tried` of them before.

    Returns:
        True, False, or None where that is not known; and how many combinations have been tried so far.
    """
    following = step.following[members]
    inside = np.isin(following, members)
    moves = step.usable(inside, members)
    optional = np.flatnonzero(_can_refuse(step, members, inside, moves))
    if len(optional) == 0:
        return False, tried
    if 2 ** min(len(optional), 64) > most:
        return None, tried
    choices = [_reduced_moves(step, int(members[place]), inside[place], most) for place in optional]
    combinations = math.prod(most + 1 if each is None else len(each) for each in choices)
    if tried + combinations > most or combinations * len(members) > MOST_MOVES:
        return None, tried
    listed = tuple(tuple(each) for each in choices if each is not None)
    key = members.tobytes(), moves.tobytes(), listed, value  # rates that allow the same moves have the same answer
    known = objective.product.tried
    if key not in known:
        known[key] = _tried_out(objective, members, following, moves, optional, listed, value)
    found, count = known[key]
    return found, tried + count


def _tried_out(
    objective: Objective,
    members: Ints,
    following: Ints,
    moves: Mask,
    optional: Ints,
    choices: tuple[tuple[tuple[int, ...], ...], ...],
    value: bool,
) -> tuple[bool, int]:
    """Whether a combination of choices gives a bottom component the opposite of `value`; how many were tried."""
    count = 0
    for count, combination in enumerate(itertools.product(*choices), 1):
        moves[optional] = False
        for place, seen in zip(optional.tolist(), combination, strict=True):
            moves[place, list(seen)] = True
        if np.any(_bottom_values(objective, members, following, moves) != value):
            return True, count
    return False, count


def _can_refuse(step: UncertainStep, members: Ints, inside: Mask, moves: Mask) -> Mask:
    """(k,) whether a state can stay without going to every state that it can go to."""
    following = step.following[members]
    result = np.zeros(len(members), dtype=bool)
    for seen in np.flatnonzero(moves.any(axis=0)).tolist():
        elsewhere = inside & (following != following[:, [seen]])
        result |= moves[:, seen] & step.usable(elsewhere, members).any(axis=1)
    return result


def _bottom_values(objective: Objective, members: Ints, following: Ints, moves: Mask) -> Mask:
    """Values of the bottom components of a graph on `members` that no move leaves."""
    place = np.full(objective.state_count, -1, dtype=np.int64)
    place[members] = np.arange(len(members))
    source, seen = np.nonzero(moves)
    target = place[following[source, seen]]
    component = components(len(members), source, target)
    bottom = np.ones(int(component.max()) + 1, dtype=bool)
    bottom[component[source[component[source] != component[target]]]] = False
    kept = bottom[component]
    return _values_under(objective, members[kept], following[kept], moves[kept], component[kept])


def _reduced_moves(step: UncertainStep, state: int, inside: Mask, limit: int) -> list[tuple[int, ...]] | None:
    """All sets of moves that a choice of `state` can make with probability 1, each with probability above 0.

    Sets that lead to the same states are one. None when more than `limit` would have to be looked at.
    """
    (sure,), can = step.sure(inside[None], np.array([state])), np.flatnonzero(step.motion[state])
    found = _reports(step, step.columns[state].tolist(), 0, 0, sure, limit)
    if found is None:
        return None
    leads: dict[frozenset[int], tuple[int, ...]] = {}
    for reports in sorted(map(sorted, found)):
        moves = [report * step.motion.shape[1] + outcome for report in reports for outcome in can.tolist()]
        leads.setdefault(frozenset(step.following[state, moves].tolist()), tuple(moves))
    return list(leads.values())


def _reports(
    step: UncertainStep, columns: list[int], draw: int, seen: int, inside: Mask, limit: int
) -> set[frozenset[int]] | None:
    """The sets of unions that can be all that a step may end with, once `seen` has been reported before `draw`."""
    if draw == len(columns):
        return {frozenset({seen})} if inside[seen] else set()
    if columns[draw] < 0:
        return _reports(step, columns, draw + 1, seen, inside, limit)
    behind: dict[int, list[frozenset[int]]] = {}
    for group, now in enumerate(step.told[draw].tolist()):
        below = _reports(step, columns, draw + 1, int(step.union[seen, now]), inside, limit)
        if below is None:
            return None
        if below:
            behind[group] = sorted(below, key=sorted)
    lower, upper = step.lower[columns[draw]].tolist(), step.upper[columns[draw]].tolist()
    result: set[frozenset[int]] = set()
    looked_at = 0
    for groups in _supports(lower, upper, list(behind)):
        looked_at += math.prod(len(behind[group]) for group in groups)
        if looked_at > limit:
            return None
        result.update(frozenset().union(*parts) for parts in itertools.product(*(behind[group] for group in groups)))
    return result


def _supports(lower: list[int], upper: list[int], allowed: list[int]) -> Iterator[tuple[int, ...]]:
    """The sets of allowed groups that can have all the mass of a column, each of them some."""
    needed = [group for group, low in enumerate(lower) if low > 0]
    if not set(needed) <= set(allowed):
        return
    free = [group for group in allowed if lower[group] == 0 and upper[group] > 0]
    for count in range(len(free) + 1 if sum(lower) < UNIT else 1):
        for more in itertools.combinations(free, count):
            if sum(upper[group] for group in (*needed, *more)) >= UNIT:
                yield (*needed, *more)
