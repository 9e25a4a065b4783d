"""What proves a confidence bound: the JSON document that `verifier.analysis.kernel` checks.

A certificate for the lower (upper) side says that the formula fails (holds) with probability at most y(s) from the
state s, for every matrix of a region; the head of the kernel says why it is a proof. It holds the arrays of the
product of a system with a formula, except that the obligations `false` and `true` are one state for each letter
with which they are entered: so the kernel can follow the formula along every step by itself. The document holds the
SHA-256 of its content, so that damage is told apart from a wrong proof.

An order that shows, without any number, that every run is decided.

Nodes are as in `robust_policy`: components in which nature can stay forever, and single states outside them. An order
gives a whole number r to every product state, the same to all states of a node, such that with every choice

    with which the node may be left, some probability goes to states of smaller r,                                (1)

where a single state outside the components counts as left with every step, even if the step leads back to it.

Then every run stays in one component from some time on, with probability 1, whatever nature chooses. For every choice
is a mixture of the finitely many choices of a vertex for each draw. With d the least chance of a fall (to a smaller
r), given a departure, among those of them that may depart, every choice has a fall with at least d times the chance
of a departure. So of R departures in a row, R being the number of values of r, all are falls with probability at
least d^R; but after R falls there is no smaller r to depart to. Hence there are only finitely many departures.

Conversely such an order exists whenever the components are all maximal end components: states from which no order
leads on form a set that nature can avoid to leave, and such a set contains an end component. It is built from the
strongly connected parts of the graph of possible moves, each of which leads only to parts that come before it, and
within a part layer by layer. In contrast to an expected number of steps it exists at any size and is exact.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.analysis import kernel
from verifier.analysis.robust.inner_bounds import Side, SideBound
from verifier.analysis.robust.policy import Nodes
from verifier.analysis.robust.staying import Staying
from verifier.analysis.robust.step import UncertainStep
from verifier.analysis.robust.subject import Subject, region_document
from verifier.base.arrays import Ints, grouped
from verifier.base.errors import EngineError
from verifier.base.graphs import components, levels, ranges
from verifier.base.graphs import rows as graph_rows

SCHEMA_NAME = "verifier.certificate"
SCHEMA_VERSION = 5
TARGET = -2
"""In `BoxArrays.component`: the state is a target."""
NO_COMPONENT = -1

Tree: TypeAlias = "dict[str, Any] | int | None"
"""A cut of a region by `at` billionths of one rate, the number of a box, or None for a part without any matrix."""


class BoxArrays(NamedTuple):
    """The proof for one part of the region.

    Attributes:
        unit: each value stands for itself divided by this.
        value: (q,) y.
        order: (q,) r.
        component: (q,) number of the component of each state, `NO_COMPONENT` or `TARGET`.
    """

    unit: int
    value: list[Any]
    order: list[int]
    component: list[int]


def certificate_of(
    subject: Subject, root: SideBound, boxes: Sequence[SideBound], tree: Tree, claimed: Sequence[float | None]
) -> dict[str, Any]:
    """The certificate of a bound, as its JSON document.

    Args:
        subject: from `subject_of`.
        root: the bound on the whole region.
        boxes: the bounds on boxes that cover the region.
        tree: how they cover it.
        claimed: for each initial state the bound on the formula's probability, or None where nothing is claimed.

    Raises:
        EngineError: the bounds have no such proof, which is an error of the program.
    """
    proofs = []
    for box in boxes:
        component = np.where(box.nodes.component, box.nodes.of, NO_COMPONENT)
        component[box.target] = TARGET
        arrays = box.reached.value, decision_order(box.step, box.nodes), component
        proofs.append(BoxArrays(1, *(array[subject.origin].tolist() for array in arrays)))
    return content_document(root.side, claimed, subject.document, region_document(root.region), proofs, tree)


def claimed_bound(side: Side, value: float) -> float:
    """The bound on the formula's probability that a bound on its failing (or holding) gives, rounded outwards."""
    if side == "upper":
        return value
    bound = 1 - value
    return float(np.nextafter(bound, -np.inf)) if Fraction(bound) > 1 - Fraction(value) else bound


def content_document(
    side: Side,
    claimed: Sequence[float | None],
    subject: Mapping[str, Any],
    region: Mapping[str, Any],
    boxes: Sequence[BoxArrays],
    tree: Tree,
) -> dict[str, Any]:
    """The JSON document with this content, and with the obligations that show it."""
    assumed = [{**column, "counts": None} for column in region["columns"]]  # that ends follow is the kernel's matter
    columns = kernel.read_region({**region, "columns": assumed})
    staying = Staying(subject, kernel.System(subject, columns), side)
    own = staying.own(len(subject["letters"]))
    parts = dict(kernel.leaves(tree, columns))
    shown = [
        _box_document(box, staying, kernel.System(subject, parts.get(k, columns))) for k, box in enumerate(boxes)
    ]
    content = {
        "schema": SCHEMA_NAME,
        "version": SCHEMA_VERSION,
        "side": side,
        "claimed": list(claimed),
        "subject": subject,
        "region": region,
        "obligation": own,
        "obligations": staying.table,
        "boxes": shown,
        "tree": tree,
    }
    return {**content, "sha256": digest_of(content)}


def _box_document(box: BoxArrays, staying: Staying, system: kernel.System) -> dict[str, object]:
    """A box with its components; states that no matrix reaches count as targets."""
    inside = ((number, state) for state, number in enumerate(box.component) if number >= 0)
    members = grouped((number, state) for number, state in inside if staying.reaches(state))
    return {
        "unit": box.unit,
        "value": [y if staying.reaches(state) else box.unit for state, y in enumerate(box.value)],
        "order": box.order,
        "components": [staying.component(system, states) for states in members.values()],
    }


def digest_of(content: Mapping[str, object]) -> str:
    """SHA-256 of a certificate's content, all but the digest itself."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def decision_order(step: UncertainStep, nodes: Nodes) -> Ints:
    """(p,) int64, an order with property (1), from 0.

    Raises:
        EngineError: there is none, so the nodes are not the maximal end components.
    """
    n, of = step.state_count, nodes.of
    sources, targets = of[nodes.sources], of[nodes.targets]
    part = _parts(n, sources, targets)[of]
    layer = np.full(n, -1, dtype=np.int64)
    size = np.bincount(of, minlength=n)
    members, start = np.argsort(of, kind="stable"), np.concatenate([[0], np.cumsum(size)])
    waiting = size.copy()  # per node, the states from which it may still be left without a fall
    first, entering = graph_rows(n, nodes.targets, nodes.sources)
    falls = np.zeros(n, dtype=bool)
    at, number = np.arange(n), 0
    while len(at):
        falling = at[_always_falls(step, nodes, part, layer, at)]
        falls[falling] = True
        np.subtract.at(waiting, of[falling], 1)
        done = np.unique(of[falling])
        done = done[waiting[done] == 0]
        placed = members[ranges(start[done], start[done + 1])]
        layer[placed] = number
        number += 1
        before = np.unique(entering[ranges(first[placed], first[placed + 1])])
        at = before[~falls[before]]
    if np.any(layer < 0):
        raise EngineError(
            f"{np.count_nonzero(layer < 0)} product states can be stayed in forever and are in no component"
        )
    return part * number + layer


def _always_falls(step: UncertainStep, nodes: Nodes, part: Ints, layer: Ints, at: Ints) -> NDArray[np.bool_]:
    """Whether leaving the nodes of the states `at` always gives some probability to what has a place already."""
    rows = step.rows_of(at)
    following, own = step.following[rows], step.owner[rows]
    unplaced = (part[following] == part[own, None]) & (layer[following] < 0)
    stays = nodes.component[own, None] & (nodes.of[following] == nodes.of[own, None])
    avoiding = step.usable(unplaced | stays, rows)
    may = own[np.any(avoiding & ~stays, axis=1)]
    return np.isin(at, may, invert=True)


def _parts(n: int, sources: Ints, targets: Ints) -> Ints:
    """(n,) the strongly connected part of each node, numbered so that moves between parts lead to smaller numbers."""
    part = components(n, sources, targets)
    if np.all(part[sources] >= part[targets]):  # as scipy numbers them
        return part
    count = int(part.max()) + 1
    crossing = part[sources] != part[targets]
    level = levels(count, part[sources[crossing]], part[targets[crossing]], count + 1)
    assert level is not None  # the parts of a graph form no cycle
    place = np.empty(count, dtype=np.int64)
    place[np.argsort(level, kind="stable")] = np.arange(count)
    return place[part]
