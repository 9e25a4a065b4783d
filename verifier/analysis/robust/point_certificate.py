"""What proves the probability of a formula for one family of matrices: a witness in whole numbers for each side.

A certificate whose region is a single point, each column's rates being counts over their sum. Its values y are whole
numbers of 2^-128: a solution of the chain's equations x = P x is refined, its residual taken exactly, until nothing
but the last digits is missing; adding a small multiple of the expected number of steps t makes y >= P y hold for
certain, because t = 1 + P t. So the bounds of both sides meet up to some 10^-30.

Where steps are counted there is no such witness: `step_kernel` counts them again in whole numbers.
"""

import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, eye_array
from scipy.sparse.csgraph import dijkstra
from scipy.sparse.linalg import splu

from verifier.analysis import kernel, step_kernel
from verifier.analysis.objective import Objective
from verifier.analysis.robust.certificate import (
    NO_COMPONENT,
    TARGET,
    BoxArrays,
    content_document,
    decision_order,
    digest_of,
)
from verifier.analysis.robust.graph import decided_components
from verifier.analysis.robust.inner_bounds import Side
from verifier.analysis.robust.optimum import Optimum
from verifier.analysis.robust.policy import make_nodes
from verifier.analysis.robust.solve import greatest_reach
from verifier.analysis.robust.staying import LARGEST_CERTIFIED
from verifier.analysis.robust.subject import point_document, subject_of
from verifier.base.arrays import ROUNDOFF, Ints, Mask
from verifier.base.graphs import components, coreachable, in_bottom
from verifier.checking.enclosure import doubles_around
from verifier.checking.plan import decide
from verifier.checking.step_bounds import LongWindow
from verifier.perception.confusion import exact_rates, rates
from verifier.systems.skeleton import Skeleton

Objects = NDArray[np.object_]

UNIT = 2**128
"""Values of a witness are whole numbers of 1/UNIT."""
_ROUNDS = 40
_MOST_RAISED = 400
_DIGITS = 2.0**40
"""What a solution of doubles is relied upon for, relative to its largest value."""


class _NoWitnessError(Exception):
    """Doubles do not suffice to find a witness."""


@dataclass(frozen=True, eq=False)
class _Chain:
    """The chain of one family of matrices.

    Attributes:
        sources, targets: of its transitions between states that can be reached.
        weights: their probabilities, as whole numbers of 1/`whole`.
        met, failed: (p,) bool, the states of bottom components (and obligations) that meet the formula, or fail it.
        component: (p,) int64 strongly connected component of each state.
        reached: (p,) bool.
    """

    sources: Ints
    targets: Ints
    weights: Objects
    whole: int
    met: Mask
    failed: Mask
    component: Ints
    reached: Mask


class _Proof(NamedTuple):
    """What proves one side: the objective that it is about, and the arrays of a box."""

    about: Objective
    side: Side
    value: Objects
    order: Ints
    component: Ints


def point_certificates(objective: Objective, counts: NDArray[np.int64]) -> Iterator[tuple[Side, dict[str, Any]]]:
    """The documents that prove the probabilities of an objective from below and from above, as far as there are any.

    None where the product is too large, where doubles do not suffice to find a witness, and where the kernel cannot
    decide who stays in some component. Where the world decides, one side is about all that it may do, the other about
    a strategy to which it keeps (`Objective.ranges`).

    Args:
        objective: the formula on the skeleton.
        counts: (bins, predicted, true) int64, items in every column that the chain needs.

    Raises:
        EngineError, LimitError: from deciding bottom components.
    """
    if objective.state_count > LARGEST_CERTIFIED:
        return
    region = point_document(objective.skeleton, counts)
    try:
        proofs = _of_choices(objective, counts) if isinstance(objective, Optimum) else _of_chain(objective, counts)
    except _NoWitnessError:
        return
    for about, side, value, order, component in proofs:
        subject = subject_of(about)
        arrays = (array[subject.origin].tolist() for array in (value, order, component))
        box = BoxArrays(UNIT, *arrays)
        claimed = [_outwards(side, value[state]) for state in objective.product.start.tolist()]
        content = content_document(side, claimed, subject.document, region, [box], 0)
        try:
            kernel.check(json.loads(json.dumps(content)))
        except kernel.Rejected:
            continue
        yield side, content


def step_certificates(
    skeleton: Skeleton, window: LongWindow, counts: NDArray[np.int64]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The document that proves the probabilities of a window, as "steps"; none where checking it takes too long.

    Args:
        window: on the states of the skeleton.
        counts: as for `point_certificates`.
    """
    if skeleton.state_count > LARGEST_CERTIFIED:
        return
    about = step_document(skeleton, window, counts)
    try:
        bounds = step_kernel.proven(**about)
    except step_kernel.Rejected:
        return
    claimed = [[doubles_around(low)[0], doubles_around(high)[1]] for low, high in bounds]
    content = {"schema": step_kernel.SCHEMA, "version": step_kernel.VERSION, "claimed": claimed, **about}
    yield "steps", {**content, "sha256": digest_of(content)}


def step_document(skeleton: Skeleton, window: LongWindow, counts: NDArray[np.int64]) -> dict[str, Any]:
    """What a certificate of a window is about: the chain of one family of matrices, and the window itself."""
    entries = [Fraction(entry) for entry in skeleton.entry_values(exact_rates(counts)).tolist()]
    ends, rows = skeleton.indptr.tolist(), list[list[list[int]]]()
    chances = [entries[k] for k in skeleton.entry.tolist()]
    for first, last in itertools.pairwise(ends):
        whole = math.lcm(*(chance.denominator for chance in chances[first:last]))
        row = zip(skeleton.indices[first:last].tolist(), chances[first:last], strict=True)
        rows.append([[after, int(chance * whole)] for after, chance in row if chance])
    asked = {**asdict(window), "left": window.left.astype(int).tolist(), "right": window.right.astype(int).tolist()}
    return {"chain": {"rows": rows, "starts": skeleton.starts.tolist()}, "window": asked}


def _of_chain(objective: Objective, counts: NDArray[np.int64]) -> list[_Proof]:
    chain = _chain_of(objective, counts)
    solution, residual, steps = _solved(chain)
    order, proofs = _distances(chain), []
    sides: tuple[tuple[Side, Mask, Objects], ...] = (
        ("lower", chain.failed, UNIT - solution),
        ("upper", chain.met, solution),
    )
    for side, lost, near in sides:
        value = _above(chain, near, residual, steps)
        if value is None:
            continue
        component = np.where((chain.met | chain.failed) & ~lost, chain.component, NO_COMPONENT)
        proofs.append(_Proof(objective, side, value, order, component))
    return proofs


def _of_choices(objective: Optimum, counts: NDArray[np.int64]) -> list[_Proof]:
    """Of the side on which the world is, over all that it may do; of the other, while it keeps to a strategy."""
    skeleton, kept = objective.skeleton, objective.settled(rates(counts))
    exact, values = skeleton.entry_values(exact_rates(counts)), skeleton.entry_values(rates(counts))
    solution, residual, steps = _solved(_chain_kept(kept, objective.goal(values).sure, exact))
    near: tuple[tuple[Side, Objects], ...] = (("lower", UNIT - solution), ("upper", solution))
    proofs = []
    for side, value in near:
        about = objective if objective.ranges(side) else kept
        step = about.fixed_step(values)
        parts = decided_components(about, step)
        nodes = make_nodes(step, parts.of)
        target, _ = parts.won(holds=side == "upper")
        proven = _raised(about, np.minimum(value + (residual + 2) * steps, UNIT), target, exact)
        if proven is None:  # as close as doubles come
            worst = about.fixed_step(values, ROUNDOFF * skeleton.channel.rounding_steps)
            outer = [math.ceil(Fraction(y) * UNIT) for y in greatest_reach(worst, nodes, target).value.tolist()]
            proven = _raised(about, np.minimum(np.array(outer, dtype=object), UNIT), target, exact)
        if proven is None:
            continue
        component = np.where(nodes.component, nodes.of, NO_COMPONENT)
        component[target] = TARGET
        proofs.append(_Proof(about, side, proven, decision_order(step, nodes), component))
    return proofs


def _chain_kept(kept: Optimum, won: Mask, entries: Objects) -> _Chain:
    """The chain while the world keeps to a strategy, until it has won or lost."""
    product, positive = kept.product, np.array([bool(entry > 0) for entry in entries])
    there = positive[kept.skeleton.entry[product.edge]]
    sources, targets = product.sources[there], product.indices[there]
    part = components(product.state_count, sources, targets)
    lost = in_bottom(part, sources, targets) & ~won
    weights, whole = _in_whole_numbers(entries, kept.skeleton.entry[product.edge[there]])
    met, failed = (won, lost) if kept.greatest else (lost, won)
    everywhere = np.ones(product.state_count, dtype=bool)  # other choices than these may lead there
    return _Chain(sources, targets, weights, whole, met, failed, part, everywhere)


def _raised(about: Optimum, value: Objects, target: Mask, entries: Objects) -> Objects | None:
    """At least these values, and at least what each alternative gives, in 1/UNIT; UNIT in the target. None where few
    rounds do not suffice: alternatives of equal worth take different numbers of steps, which is soon made up for."""
    weights, whole = _in_whole_numbers(entries, about.skeleton.entry[about.product.edge])
    value[target] = UNIT
    for _ in range(_MOST_RAISED):
        total = np.zeros(len(about.owner), dtype=object)
        np.add.at(total, about.sources, weights * value[about.product.indices])
        best = np.maximum.reduceat(-(-total // whole), about.first[:-1])
        less = (best > value) & ~target
        if not less.any():
            return value
        value[less] = best[less]
    return None


def _in_whole_numbers(entries: Objects, at: Ints) -> tuple[Objects, int]:
    """The entries at some places, in whole numbers of 1 by the second result."""
    used, place = np.unique(at, return_inverse=True)
    chances = [Fraction(entries[k]) for k in used.tolist()]
    whole = math.lcm(*(chance.denominator for chance in chances))
    return np.array([int(chance * whole) for chance in chances], dtype=object)[place], whole


def _chain_of(objective: Objective, counts: NDArray[np.int64]) -> _Chain:
    skeleton, product = objective.skeleton, objective.product
    entries = skeleton.entry_values(exact_rates(counts))
    positive = np.array([bool(entry > 0) for entry in entries])
    graph = decide(product, positive[skeleton.entry]).graph
    weights, whole = _in_whole_numbers(entries, skeleton.entry[graph.edge])
    return _Chain(
        graph.sources, graph.targets, weights, whole, graph.accepting, graph.rejecting, graph.component, graph.reached
    )


def _distances(chain: _Chain) -> Ints:
    """(p,) the number of transitions to the nearest bottom component; 0 for states that are not reached."""
    size = len(chain.reached)
    backwards = coo_array((np.ones(len(chain.sources)), (chain.targets, chain.sources)), shape=(size, size)).tocsr()
    ends = np.flatnonzero(chain.met | chain.failed)
    distance = dijkstra(backwards, indices=ends, unweighted=True, min_only=True)
    return np.where(chain.reached, distance, 0).astype(np.int64)


def _solved(chain: _Chain) -> tuple[Objects, int, Objects]:
    """The probabilities of meeting the formula in 1/UNIT, as whole numbers; the largest residual of one state, in
    the same unit; and expected steps, in 1/1024.

    States that cannot but meet or fail it have exactly UNIT or 0, and no steps.
    """
    size = len(chain.reached)
    can_meet, can_fail = (coreachable(size, chain.sources, chain.targets, goal) for goal in (chain.met, chain.failed))
    open_state = can_meet & can_fail
    value, steps = np.zeros(size, dtype=object), np.zeros(size, dtype=object)
    value[~can_fail] = UNIT
    unknown = np.flatnonzero(open_state)
    if not len(unknown):
        return value, 0, steps
    place = np.zeros(size, dtype=np.int64)
    place[unknown] = np.arange(len(unknown))
    inside = open_state[chain.sources] & open_state[chain.targets]
    chance = np.array([weight / chain.whole for weight in chain.weights[inside]])
    rows, columns = place[chain.sources[inside]], place[chain.targets[inside]]
    matrix = coo_array((chance, (rows, columns)), shape=(len(unknown), len(unknown))).tocsc()
    try:
        solver = splu((eye_array(len(unknown), format="csc") - matrix).tocsc())
    except RuntimeError:  # singular in doubles
        raise _NoWitnessError from None
    before: int | None = None
    for _ in range(_ROUNDS):
        residual = _excess(chain, value)[unknown]
        largest = max(map(abs, residual.tolist()))
        if largest <= 1 or (before is not None and 2 * largest > before):
            break
        before = largest
        part = solver.solve(np.array([one / largest for one in residual.tolist()]))
        value[unknown] += _scaled(part, largest)
    steps[unknown] = _scaled(solver.solve(np.full(len(unknown), 1.0)), 1024)
    return value, largest, steps


def _scaled(values: NDArray[np.float64], scale: int) -> Objects:
    """Doubles times a whole number, as whole numbers."""
    if not np.all(np.isfinite(values)):
        raise _NoWitnessError
    digits = int(_DIGITS)
    return np.array([round(value * _DIGITS) * scale // digits for value in values.tolist()], dtype=object)


def _excess(chain: _Chain, value: Objects) -> Objects:
    """(p,) P value - value, rounded up to whole numbers; 0 exactly where that is 0."""
    total = -chain.whole * value
    np.add.at(total, chain.sources, chain.weights * value[chain.targets])
    return np.asarray(-(-total // chain.whole), dtype=object)


def _above(chain: _Chain, near: Objects, residual: int, steps: Objects) -> Objects | None:
    """Values of at least P of themselves, as close to `near` as that allows; None where there are none."""
    times = 0
    for _ in range(5):
        value = np.minimum(near + times * steps, UNIT)
        if np.all(_excess(chain, value) <= 0):
            return np.asarray(value, dtype=object)
        times = max(8 * times, residual + 2)
    return None


def _outwards(side: Side, value: int) -> float:
    """The claim that a value gives."""
    return doubles_around(Fraction(UNIT - value if side == "lower" else value, UNIT))[side == "upper"]
