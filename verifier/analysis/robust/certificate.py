"""What proves a confidence bound, as a value and as the JSON document that `verifier.analysis.kernel` checks.

A certificate for the lower (upper) side says that the formula fails (holds) with probability at most y(s) from the
state s, for every matrix of a region; the head of the kernel says why it is a proof. It holds the arrays of the
product of a system with a formula, except that the obligations `false` and `true` are one state for each letter
with which they are entered: so the kernel can follow the formula along every step by itself. The document holds the
SHA-256 of its content, so that damage is told apart from a wrong proof.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from verifier.analysis import kernel
from verifier.analysis.robust.bound import Side, SideBound
from verifier.analysis.robust.order import decision_order
from verifier.analysis.robust.region import Region
from verifier.analysis.robust.staying import Staying
from verifier.analysis.robust.subject import Subject, region_document, subject_document
from verifier.base.arrays import Floats, Ints

SCHEMA_NAME = "verifier.certificate"
SCHEMA_VERSION = 5
TARGET = -2
"""In `Box.component`: the state is a target."""
NO_COMPONENT = -1


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
        value: (q,) y.
        order: (q,) int64, r.
        component: (q,) int64, number of the component of each state, `NO_COMPONENT` or `TARGET`.
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
        region: the matrices it is about.
    """

    side: Side
    claimed: tuple[float | None, ...]
    subject: Subject
    region: Region
    boxes: tuple[Box, ...]
    tree: Tree


def certificate_of(
    subject: Subject, root: SideBound, boxes: Sequence[SideBound], tree: Tree, claimed: tuple[float | None, ...]
) -> Certificate:
    """The certificate of a bound.

    Args:
        subject: from `subject_of`.
        root: the bound on the whole region.
        boxes: the bounds on boxes that cover the region.
        tree: how they cover it.

    Raises:
        EngineError: the bounds have no such proof, which is an error of the program.
    """
    found = []
    for box in boxes:
        component = np.where(box.nodes.component, box.nodes.of, NO_COMPONENT)
        component[box.target] = TARGET
        order = decision_order(box.step, box.nodes)
        found.append(Box(box.reached.value[subject.origin], order[subject.origin], component[subject.origin]))
    return Certificate(root.side, claimed, subject, root.region, tuple(found), tree)


def claimed_bound(side: Side, value: float) -> float:
    """The bound on the formula's probability that a bound on its failing (or holding) gives, rounded outwards."""
    if side == "upper":
        return value
    bound = 1 - value
    return float(np.nextafter(bound, -np.inf)) if Fraction(bound) > 1 - Fraction(value) else bound


def document(certificate: Certificate) -> dict[str, Any]:
    """The JSON document of a certificate."""
    boxes = [
        BoxArrays(1, box.value.tolist(), box.order.tolist(), box.component.tolist()) for box in certificate.boxes
    ]
    about = subject_document(certificate.subject), region_document(certificate.region)
    return content_document(certificate.side, certificate.claimed, *about, boxes, _tree_document(certificate.tree))


class BoxArrays(NamedTuple):
    """The numbers of a box, as `Box` has them; each value stands for itself divided by the unit."""

    unit: int
    value: list[Any]
    order: list[int]
    component: list[int]


def content_document(
    side: Side,
    claimed: Sequence[float | None],
    subject: Mapping[str, Any],
    region: Mapping[str, Any],
    boxes: Sequence[BoxArrays],
    tree: Any,
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


def _box_document(box: BoxArrays, staying: Staying, system: kernel.System) -> dict[str, Any]:
    """A box with its components; states that no matrix reaches count as targets."""
    members: dict[int, list[int]] = {}
    for state, number in enumerate(box.component):
        if number >= 0 and staying.reaches(state):
            members.setdefault(number, []).append(state)
    return {
        "unit": box.unit,
        "value": [y if staying.reaches(state) else box.unit for state, y in enumerate(box.value)],
        "order": box.order,
        "components": [staying.component(system, states) for states in members.values()],
    }


def digest_of(content: Mapping[str, Any]) -> str:
    """SHA-256 of a certificate's content, all but the digest itself."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _tree_document(tree: Tree) -> Any:
    if not isinstance(tree, Split):
        return tree
    place = {"bin": tree.bin, "group": tree.group, "true": tree.true, "at": tree.at}
    return {**place, "below": _tree_document(tree.below), "above": _tree_document(tree.above)}
