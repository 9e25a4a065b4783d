"""What proves a guaranteed bound, as a value that stands on its own and as a JSON document.

A certificate for the lower (upper) side says that the formula fails (holds) with probability at most y(s) from the
product state s, for every matrix of a region. What makes it a proof, and needs no trust in what computed it:

* the *region* follows from the counts: each end misses the truth with probability at most alpha/(2K);
* the *boxes* at the leaves of the tree cover the region;
* in each box every product state is a target, in a component, or neither, and the obligation `false` (`true`) is a
  target;
* the *value* y is at least 1 on the target, and y(s) >= max E[y(next)] elsewhere: then y(s) bounds the probability of
  ever reaching the target, as a supermartingale that is 1 there;
* the *order* r gives whole numbers to the states, and, with whatever choice a component or a state outside the
  components is left, some probability goes to a smaller r: so every run that does not reach the target stays in one
  component from some time on, with probability 1 (`robust_order` has the proof);
* whoever stays in a component for good does not make the formula fail (hold). In a component of one state the run
  is a lasso: its letters are told, and the meaning of the formula on it can be looked up. For a component of several
  states this remains a claim about graphs, which the checker lists.

Then the probability of failing (holding) is at most that of reaching the target. `certificate_check` checks all this
in exact arithmetic. It takes for granted that the product describes the system and the formula: the arrays of
`Subject`, with the obligations `false` and `true` as states 0 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from verifier.analysis.adjoint import told_by
from verifier.analysis.objective import Objective
from verifier.analysis.region import Region
from verifier.analysis.robust_bound import Side, SideBound
from verifier.analysis.robust_order import decision_order
from verifier.expressions import to_text
from verifier.expressions.syntax import FALSE, TRUE, Interval, Name, Node, Operation, Temporal
from verifier.ltl.normal_form import PositiveFormula

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

TARGET = -2
"""In `Box.component`: the state is a target."""
NO_COMPONENT = -1


@dataclass(frozen=True, eq=False)
class Subject:
    """What a certificate is about: a product of a system with a formula, by observations.

    Attributes:
        formula: in LTL over the names p0, p1, ...
        propositions: what those stand for, as text for people.
        observations: what the planner can be told, as sets of classes.
        reports: what each group of labels is told as.
        bins, columns: (rows, draws) int64, the matrix column of each draw; -1 where there is none.
        row: (p,) int64 row that each product state draws from; -1 where nothing is drawn.
        following: (p, observations) int64.
        letters: (p,) int64, bit i says whether p_i holds in the state; 0 in states 0 and 1.
        parent: (p,) int64, a product state that leads to this one, along a shortest path from an initial state; -1
            in initial states.
        starts: (m,) int64 product states of the initial states.
    """

    formula: str
    propositions: tuple[str, ...]
    observations: tuple[tuple[str, ...], ...]
    reports: tuple[tuple[str, ...], ...]
    bins: Ints
    columns: Ints
    row: Ints
    following: Ints
    letters: Ints
    parent: Ints
    starts: Ints


@dataclass(frozen=True)
class Split:
    """A cut of a region: the rate of one group at most `at` billionths (`below`), or at least (`above`)."""

    bin: int
    group: int
    true: int
    at: int
    below: Tree
    above: Tree


Tree: TypeAlias = "Split | int | None"
"""A cut, the number of a box, or None for a part without any matrix."""


@dataclass(frozen=True, eq=False)
class Box:
    """The proof for one part of the region.

    Attributes:
        value: (p,) y.
        order: (p,) int64, r.
        component: (p,) int64, number of the component of each state, `NO_COMPONENT` or `TARGET`.
    """

    value: Floats
    order: Ints
    component: Ints


@dataclass(frozen=True, eq=False)
class Certificate:
    """The proof of a bound, for some of the initial states.

    Attributes:
        side: "lower" or "upper".
        claimed: for each initial state the bound on the formula's probability, or None where nothing is claimed.
        subject: what it is about.
        region: the matrices it is about.
        boxes, tree: the proof.
    """

    side: Side
    claimed: tuple[float | None, ...]
    subject: Subject
    region: Region
    boxes: tuple[Box, ...]
    tree: Tree


def subject_of(objective: Objective) -> Subject:
    """The subject of every certificate about an objective."""
    product, channel = objective.product, objective.skeleton.channel
    letters = np.zeros(objective.state_count, dtype=np.int64)
    for bit, mask in enumerate(product.propositions):
        letters[2:] |= mask[product.state[2:]].astype(np.int64) << bit
    formula = product.obligations.formula
    reports = [channel.observations[each] for each in dict.fromkeys(told_by(channel))]
    return Subject(
        to_text(_formula_of(formula), parenthesise=True),
        tuple(to_text(each) for each in formula.propositions),
        tuple(tuple(sorted(each)) for each in channel.observations),
        tuple(tuple(sorted(each)) for each in reports),
        channel.bins,
        channel.columns,
        objective.row,
        objective.following,
        letters,
        _parents(objective),
        product.start,
    )


def certificate_of(
    subject: Subject, root: SideBound, boxes: Sequence[SideBound], tree: Tree, claimed: tuple[float | None, ...]
) -> Certificate:
    """The certificate of a bound.

    Args:
        subject: from `subject_of`.
        root: the bound on the whole region.
        boxes: the bounds on boxes that cover the region.
        tree: how they cover it.
        claimed: see `Certificate`.

    Raises:
        EngineError: the bounds have no such proof, which is an error of the program.
    """
    found = []
    for box in boxes:
        component = np.where(box.nodes.component, box.nodes.of, NO_COMPONENT)
        component[box.target] = TARGET
        found.append(Box(box.reached.value, decision_order(box.step, box.nodes), component))
    return Certificate(root.side, claimed, subject, root.region, tuple(found), tree)


def claimed_bound(side: Side, value: float) -> float:
    """The bound on the formula's probability that a bound on its failing (or holding) gives, rounded outwards."""
    if side == "upper":
        return value
    bound = 1 - value
    return float(np.nextafter(bound, -np.inf)) if Fraction(bound) > 1 - Fraction(value) else bound


def _parents(objective: Objective) -> Ints:
    n, width = objective.following.shape
    starts = objective.product.start
    targets = np.concatenate([objective.following.ravel(), starts])
    indptr = np.concatenate([np.arange(n + 1) * width, [n * width + len(starts)]])
    graph = csr_array((np.ones(len(targets), dtype=np.int8), targets, indptr), shape=(n + 1, n + 1))
    _, parent = breadth_first_order(graph, n)
    result: Ints = np.where((parent[:n] < 0) | (parent[:n] == n), -1, parent[:n]).astype(np.int64)
    return result


def _formula_of(formula: PositiveFormula) -> Node:
    """The formula's positive normal form as a formula over p0, p1, ..."""
    built: dict[int, Node] = {}
    for number in _needed_in_order(formula):
        node = formula.nodes[number]
        operands = tuple(built[each] for each in node.operands)
        match node.kind:
            case "true" | "false":
                built[number] = TRUE if node.kind == "true" else FALSE
            case "holds":
                built[number] = Name(f"p{node.low}")
            case "fails":
                built[number] = Operation("!", (Name(f"p{node.low}"),))
            case "&" | "|":
                built[number] = operands[0]
                for other in operands[1:]:
                    built[number] = Operation(node.kind, (built[number], other))
            case "X":
                built[number] = Temporal("X", operands, Interval(node.low, node.low) if node.low > 1 else None)
            case _:
                within = None if (node.low, node.high) == (0, None) else Interval(node.low, node.high)
                built[number] = _until_or_release(node.kind, operands, within)
    return built[formula.root]


def _until_or_release(kind: str, operands: tuple[Node, ...], within: Interval | None) -> Node:
    if kind == "U" and operands[0] == TRUE:
        return Temporal("F", operands[1:], within)
    if kind == "R" and operands[0] == FALSE:
        return Temporal("G", operands[1:], within)
    return Temporal(kind, operands, within)


def _needed_in_order(formula: PositiveFormula) -> list[int]:
    """The numbers of the nodes below the root, operands first."""
    known, pending = set[int](), [formula.root]
    while pending:
        number = pending.pop()
        if number not in known:
            known.add(number)
            pending.extend(formula.nodes[number].operands)
    return sorted(known)
