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
3. The obligation is the same throughout M, and says what happens again and again, or from some time on always. Then
   the states that are visited infinitely often decide (`recurrent`).
4. No move within M can be made impossible by a choice that stays. Then there is one graph, and the value of its one
   bottom component decides (`verifier.checking.recurrence`).
5. The sets of moves that the states can be reduced to are tried in all combinations, as long as these are not too
   many; each gives a graph whose bottom components are decided. The value with all moves possible is one of them.
6. Otherwise, and where the kernel cannot prove the answer (`provable`), the answer beside that value is not known.
   Both are taken as possible, one of them by assumption: bounds stay sound and may be wider than need be.

What the kernel proves holds for rates that change with time and history. Beyond the size of certificates it is not
asked; there rules 3 and 4 hold for such rates too, as all moves keep rates bounded away from 0; rule 5 is about rates
that depend on the product state alone, as one matrix does.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.objective import Objective
from verifier.analysis.robust.recurrent import component_meeting, recurrences
from verifier.analysis.robust.step import UncertainStep
from verifier.base.arrays import Ints, Mask, distinct
from verifier.base.graphs import components, in_bottom, ranges
from verifier.base.graphs import rows as graph_rows
from verifier.checking.product import Product
from verifier.checking.recurrence import component_values, nodes_below
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
        fail_assumed, hold_assumed: (c,) bool, where that is only assumed (rule 6).
        ways: for a component and whether the formula is to hold, where not all ways of staying together give that:
            the states of a way that does, each with those that it leads to.
    """

    of: Ints
    can_fail: Mask
    can_hold: Mask
    fail_assumed: Mask
    hold_assumed: Mask
    ways: Mapping[tuple[int, bool], Mapping[int, frozenset[int]]]

    def won(self, holds: bool) -> tuple[Mask, Mask]:
        """(p,) bool: the states of components where nature can stay and make the formula hold, or fail; and those of
        them where that is only assumed."""
        can, assumed = (self.can_hold, self.hold_assumed) if holds else (self.can_fail, self.fail_assumed)
        inside = self.of >= 0
        return inside & can[self.of], inside & assumed[self.of]


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
        most_combinations: that rule 5 tries in all, `MOST_COMBINATIONS` if None; with 0 it is left out.

    Raises:
        EngineError, LimitError: from deciding bottom components.
    """
    of = end_components(step)
    count = int(of.max()) + 1
    can_fail, can_hold, fail_assumed, hold_assumed = (np.zeros(count, dtype=bool) for _ in range(4))
    can_fail[of[REJECT]], can_hold[of[ACCEPT]] = True, True
    ways: dict[tuple[int, bool], Mapping[int, frozenset[int]]] = {}
    inner = np.flatnonzero(of >= 0)[2:]  # behind REJECT and ACCEPT
    rest = _by_kind_of_formula(objective, of, inner, can_fail, can_hold)
    several = distinct(of[rest])
    for number in several[np.bincount(of[rest], minlength=count)[several] > 1].tolist():
        inside = np.flatnonzero(of == number)
        obligations = distinct(objective.product.obligation[inside])
        told = recurrences(objective, int(obligations[0])) if len(obligations) == 1 else None
        if told is None:
            continue
        for holds, (can, assumed), conjunctions in (
            (True, (can_hold, hold_assumed), told[0]),
            (False, (can_fail, fail_assumed), told[1]),
        ):
            members = component_meeting(conjunctions, of == number, lambda among: end_components(step, among))
            if members is not None:
                can[number] = True
                ways[number, holds] = dict.fromkeys(members.tolist(), frozenset(members.tolist()))
            elif proves is not None and not proves(inside, not holds):
                can[number] = assumed[number] = True
        rest = rest[of[rest] != number]
    if len(rest):
        full = _values_under(objective, rest, *_within(step, of, rest), of[rest])
        members = distinct(of[rest])
        can_hold[members], can_fail[members] = full, ~full
        tried, most = 0, MOST_COMBINATIONS if most_combinations is None else most_combinations
        for number in members[np.bincount(of[rest], minlength=count)[members] > 1].tolist():
            holds = bool(can_hold[number])
            inside = np.flatnonzero(of == number)
            other, tried = _other_value(objective, step, inside, holds, tried, most)
            if other:
                ways[number, not holds] = other
            elif other is None or (proves is not None and not proves(inside, holds)):
                other = None
                fail_assumed[number], hold_assumed[number] = holds, not holds
            if other is None or other:
                can_fail[number] = can_hold[number] = True
    return Components(of, can_fail, can_hold, fail_assumed, hold_assumed, ways)


def end_components(step: UncertainStep, among: Mask | None = None) -> Ints:
    """(p,) number of the maximal end component of each state, from 0 without gaps; -1 outside. `among` says of which
    states they may consist.

    Strongly connected components are cut down to the states that can stay within them, and taken apart again, until
    nothing changes.
    """
    n = step.state_count
    sources, targets = step.moves
    of = components(n, sources, targets)
    cyclic: Mask = np.bincount(of)[of] > 1
    cyclic[sources[sources == targets]] = True
    of[~(cyclic if among is None else cyclic & among)] = -1
    first, entering = graph_rows(n, targets, sources)
    while True:
        at = np.flatnonzero(of >= 0)
        while len(at):
            sources, _ = _within(step, of, at)
            stuck = np.setdiff1d(at, sources)
            of[stuck] = -1
            # Only who could go to one of these may be unable to stay now.
            before = np.unique(entering[ranges(first[stuck], first[stuck + 1])])
            at = before[of[before] >= 0]
        at = np.flatnonzero(of >= 0)
        finer = components(n, *_within(step, of, at))[at]
        _, before_cut = np.unique(of[at], return_inverse=True)
        _, finer = np.unique(finer, return_inverse=True)
        of[at] = finer
        if finer.max(initial=-1) == before_cut.max(initial=-1):
            break
    return of


def _within(step: UncertainStep, of: Ints, at: Ints) -> tuple[Ints, Ints]:
    """Sources and targets of the moves that some states can make while they stay in the set that they are in."""
    rows = step.rows_of(at)
    own, following = step.owner[rows], step.following[rows]
    row, seen = np.nonzero(step.usable(of[following] == of[own, None], rows))
    return own[row], following[row, seen]


def _by_kind_of_formula(objective: Objective, of: Ints, inner: Ints, can_fail: Mask, can_hold: Mask) -> Ints:
    """Rule 2: fill in what the obligations decide; the states of components of more than one state that are left,
    and those of single states, which rule 1 decides like rule 3."""
    numbers, place = np.unique(objective.product.obligation[inner], return_inverse=True)
    endless = np.array([_unbounded(objective, number) for number in numbers.tolist()], dtype=bool).reshape(-1, 2)[
        place
    ]
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
    below = nodes_below(nodes, obligations.nodes_in(obligation))
    endless = {nodes[number].kind for number in below if nodes[number].high is None}
    return "U" in endless, "R" in endless


def _values_under(objective: Objective, members: Ints, sources: Ints, targets: Ints, owner: Ints) -> Mask:
    """The value of each bottom component of a graph on product states, in the order of their numbers in `owner`.

    Args:
        objective: the product.
        members: (k,) different product states, increasing.
        sources, targets: the moves that are made, from member to member.
        owner: (k,) the bottom component of each member.
    """
    _, component = np.unique(owner, return_inverse=True)
    pair = np.unique(np.searchsorted(members, sources) * len(members) + np.searchsorted(members, targets))
    source, target = np.divmod(pair, len(members))
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
) -> tuple[dict[int, frozenset[int]] | None, int]:
    """Rules 3 to 5: how nature can give a component the opposite of `value`, the value with all moves.

    At most `most` combinations are tried, `tried` of them before.

    Returns:
        the states of a way of staying that does, with those that each leads to; nothing where none does, None where
        that is not known; and how many combinations have been tried so far.
    """
    rows = step.rows_of(members)
    own, inside = step.owner[rows], np.isin(step.following[rows], members)
    row, seen = np.nonzero(step.usable(inside, rows))
    size, target = step.state_count, step.following[rows[row], seen]
    state, led = np.divmod(np.unique(own[row] * size + target), size)
    whole = np.bincount(state, minlength=size)
    # Which rows can stay lead to fewer states than all of them together, and which can without one of its own?
    refuses = np.bincount(np.unique(row * size + target) // size, minlength=len(rows)) < whole[own]
    refuses &= np.bincount(row, minlength=len(rows)) > 0
    for column in np.unique(seen).tolist():
        elsewhere = inside & (step.following[rows] != step.following[rows][:, [column]])
        here = np.isin(np.arange(len(rows)), row[seen == column])
        refuses |= here & step.usable(elsewhere, rows).any(axis=1)
    optional = np.unique(own[refuses])
    if len(optional) == 0:
        return {}, tried
    if len(optional) >= most.bit_length():  # each of them has at least two ways
        return None, tried
    ways = [[frozenset(array.tolist())] for array in np.split(led, np.cumsum(whole[members])[:-1])]
    for number in optional.tolist():
        reduced = _reduced_moves(step, rows[own == number].tolist(), inside[own == number], most)
        if reduced is None:
            return None, tried
        ways[int(np.searchsorted(members, number))] = reduced
    combinations = math.prod(map(len, ways))
    if tried + combinations > most or combinations * len(members) > MOST_MOVES:
        return None, tried
    key = members.tobytes(), tuple(map(tuple, ways)), value  # rates that allow the same moves have the same answer
    known = objective.product.tried
    if key not in known:
        known[key] = _tried_out(objective, members, ways, value)
    answer, count = known[key]
    return answer, tried + count


def _tried_out(
    objective: Objective, members: Ints, ways: Sequence[Sequence[frozenset[int]]], value: bool
) -> tuple[dict[int, frozenset[int]], int]:
    """A combination of the sets of states that the members may lead to which gives a bottom component the opposite of
    `value`, on that component, if there is one; how many were tried."""
    for count, led in enumerate(itertools.product(*ways), 1):
        sources = np.repeat(members, [len(group) for group in led])
        targets = np.array([state for group in led for state in sorted(group)], dtype=np.int64)
        component, values = _bottom_values(objective, members, sources, targets)
        others = np.flatnonzero(values != value)
        if len(others):
            inside = np.flatnonzero(component == others[0]).tolist()
            return {int(members[place]): led[place] for place in inside}, count
    return {}, math.prod(map(len, ways))


def _bottom_values(objective: Objective, members: Ints, sources: Ints, targets: Ints) -> tuple[Ints, Mask]:
    """(k,) the bottom component of each member, -1 for none, in a graph on `members` that no move leaves; and the
    values of these components."""
    source, target = np.searchsorted(members, sources), np.searchsorted(members, targets)
    component = components(len(members), source, target)
    kept = in_bottom(component, source, target)
    moved = kept[source]
    own = np.full(len(members), -1, dtype=np.int64)
    own[kept] = np.unique(component[kept], return_inverse=True)[1]
    return own, _values_under(objective, members[kept], sources[moved], targets[moved], component[kept])


def _reduced_moves(step: UncertainStep, rows: list[int], inside: Mask, limit: int) -> list[frozenset[int]] | None:
    """All sets of states that choices in some rows of a state can lead to with probability 1, each with some.

    None when more than `limit` would have to be looked at.
    """
    leads: dict[frozenset[int], None] = {}
    for row, stays in zip(rows, inside, strict=True):
        (sure,), can = step.sure(stays[None], np.array([row])), np.flatnonzero(step.motion[row])
        sets = _reports(step, row, 0, 0, sure, limit)
        if sets is None:
            return None
        own: dict[frozenset[int], None] = {}
        for reports in sorted(map(sorted, sets)):
            moves = [report * step.motion.shape[1] + outcome for report in reports for outcome in can.tolist()]
            own[frozenset(step.following[row, moves].tolist())] = None
        # Nature may mix alternatives.
        leads |= own | {before | now: None for before in leads for now in own}
        if len(leads) > limit:
            return None
    return list(leads)


def _reports(
    step: UncertainStep, row: int, draw: int, seen: int, inside: Mask, limit: int
) -> set[frozenset[int]] | None:
    """The sets of observations that can be all that a step may end with, if `seen` is what there is before `draw`."""
    if draw == step.columns.shape[1]:
        return {frozenset({seen})} if inside[seen] else set()
    column, kind = step.columns[row, draw], step.kind[row, draw]
    if column < 0:
        return _reports(step, row, draw + 1, seen, inside, limit)
    behind: dict[int, list[frozenset[int]]] = {}
    for group, led in enumerate(step.told.after[seen, kind, step.told.often[kind] > 0].T.tolist()):
        below = [_reports(step, row, draw + 1, after, inside, limit) for after in dict.fromkeys(led)]
        ways = [way for way in below if way is not None]
        if len(ways) < len(below) or math.prod(map(len, ways)) > limit:
            return None
        together = {frozenset().union(*parts) for parts in itertools.product(*ways)}
        if together:
            behind[group] = sorted(together, key=sorted)
    lower, upper = step.lower[column].tolist(), step.upper[column].tolist()
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
