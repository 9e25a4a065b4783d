"""What a certificate is about, and how it is written down: the system by observations, the formula, the region."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.objective import Objective, led_by_observation
from verifier.analysis.robust.region import Region, by_group, groups_of, needed_columns, told_of
from verifier.base.arrays import Ints
from verifier.checking.recurrence import nodes_below
from verifier.language.expressions import to_text
from verifier.language.ltl.normal_form import PositiveFormula
from verifier.language.ltl.progression import ACCEPT, REJECT
from verifier.perception.confusion.matrices import Label
from verifier.systems.skeleton import Skeleton

_OF_WAYS = "owner", "row", "following", "moving"
"""Of a subject that is written down: what says something about each way."""
_COLUMN = "bin", "true", "unit", "lower", "upper", "counts", "largest"
KernelNode: TypeAlias = "tuple[str, tuple[int, ...], int, int | None]"
"""A node of a formula, as `kernel.Formula` describes it."""


class Subject(NamedTuple):
    """What a certificate is about.

    Attributes:
        document: as it is written down, see `subject_of`.
        origin: (q,) int64 the state of the objective's product that each state is, or is a part of.
    """

    document: dict[str, Any]
    origin: Ints


def subject_of(objective: Objective) -> Subject:
    """The subject of every certificate about an objective: a product of a system with a formula, by observations.

    Its document has

        formula: nodes of the positive normal form, operands first, the whole last.
        propositions: the names of its propositions, as text for people.
        observations: what the planner can be told, as sets of classes.
        then, told, kinds: as what each group of labels is told.
        bins, columns: (rows, draws) the matrix column of each draw; -1 where there is none.
        row: (w,) row that each alternative draws from; -1 where nothing is drawn.
        following: (w, observations * outcomes) the outcomes of what the world draws side by side.
        motion: how likely each outcome is, in whole numbers that say how often; one row for each distribution.
        moving: (w,) the distribution of each alternative; like `motion` only where the world draws.
        owner: (w,) the state of each alternative; only where some state has several.
        letters: (q,) bit i says whether proposition i holds in the state.
        starts: (m,) states of the initial states.
    """
    product, channel = objective.product, objective.skeleton.channel
    formula = product.obligations.formula
    letters = np.zeros(len(product.chain_indptr) - 1, dtype=np.int64)
    for bit, mask in enumerate(product.propositions):
        letters |= mask.astype(np.int64) << bit
    inner = np.arange(2, objective.state_count)
    ways = np.arange(2, len(objective.row))  # `false` and `true` have one each
    # Those with the obligation `false` or `true` are told apart by their letters, and stand behind all others; those
    # that are met with other choices of the world, too, so that states have one number whatever it keeps to.
    codes, every = _codes(objective, letters), _codes(objective.whole, letters)
    ended = np.unique(every[every >= 0])
    numbers = np.where(codes >= 0, len(inner) + np.searchsorted(ended, codes), -1)
    inside, begun = numbers[: -len(product.start)], numbers[-len(product.start) :]
    last = len(inner) + np.arange(len(ended))
    following = np.where(inside < 0, objective.following[ways].ravel() - 2, inside).reshape(
        len(ways), objective.following.shape[1]
    )
    following = np.concatenate([following, np.repeat(last[:, None], following.shape[1], axis=1)])
    moving = np.concatenate([objective.moving[ways], np.zeros_like(ended)])
    by_outcome = following.reshape(len(following), len(channel.observations), -1)
    row = np.where((by_outcome != by_outcome[:, :1]).any(axis=(1, 2)), moving, -1)
    moves: dict[tuple[int, ...], int] = {}
    own = [moves.setdefault(_whole(chances), len(moves)) for chances in channel.chances(np.dtype(object)).tolist()]
    told = told_of(channel)
    drawn = {"motion": [list(chances) for chances in moves], "moving": [own[number] for number in moving.tolist()]}
    owner = {"owner": np.concatenate([objective.owner[ways] - 2, last]).tolist()}
    document = {
        "formula": [[kind, list(operands), low, high] for kind, operands, low, high in _nodes_of(formula)],
        "propositions": [to_text(proposition) for proposition in formula.propositions],
        "observations": [sorted(observation) for observation in channel.observations],
        "then": told.then.tolist(),
        "told": [  # for each way how often it is, and the report of each group
            np.column_stack([often, report])[often > 0].tolist()
            for report, often in zip(told.report, told.often, strict=True)
        ],
        "kinds": told.kind.tolist(),
        "bins": channel.bins.tolist(),
        "columns": channel.columns.tolist(),
        "row": row.tolist(),
        "following": following.tolist(),
        **(drawn if channel.outcome_count > 1 else {}),
        **(owner if len(ways) > len(inner) else {}),
        "letters": np.concatenate([letters[product.state[inner]], ended >> 1]).tolist(),
        "starts": np.where(begun < 0, product.start - 2, begun).tolist(),
    }
    return Subject(document, np.concatenate([inner, ended & 1]))


def _whole(chances: Sequence[Fraction]) -> tuple[int, ...]:
    """Probabilities as whole numbers that say how often each is."""
    often = math.lcm(*(Fraction(chance).denominator for chance in chances))
    return tuple(int(chance * often) for chance in chances)


def _codes(objective: Objective, letters: Ints) -> Ints:
    """For each way and observation, and then each initial state, what `_code` says of where it leads."""
    product, skeleton = objective.product, objective.skeleton
    entry, target = skeleton.entry[product.edge], product.chain_indices[product.edge]
    # The chain's state that each observation leads to.
    after = led_by_observation(skeleton, len(objective.following), objective.sources, entry, target)[0][2:]
    led = _code(objective.following[2:], letters[after]).ravel()
    return np.concatenate([led, _code(product.start, letters[skeleton.starts])])


def _code(states: Ints, letters: Ints) -> Ints:
    """A number for an obligation that is `false` or `true` and its letter; -1 for other product states."""
    return np.where(states <= max(REJECT, ACCEPT), 2 * letters + states, -1)


def _nodes_of(formula: PositiveFormula) -> tuple[KernelNode, ...]:
    """The nodes that the formula needs, in the kernel's smaller language, numbered from 0 in their order."""
    nodes: dict[KernelNode, int] = {}
    place: dict[int, int] = {}
    for number in nodes_below(formula.nodes, [formula.root]):
        node = formula.nodes[number]
        operands, kind = tuple(place[operand] for operand in node.operands), node.kind
        if kind == "X":  # X[n] a = true U[n,n] a
            true = nodes.setdefault(("&", (), 0, None), len(nodes))
            written: KernelNode = ("U", (true, *operands), node.low, node.low)
        else:
            written = ({"true": "&", "false": "|"}.get(kind, kind), operands, node.low, node.high)
        place[number] = nodes.setdefault(written, len(nodes))
    return tuple(nodes)


def kept_of(subject: Mapping[str, Any], given: Mapping[str, object]) -> Mapping[str, object]:
    """A subject with those ways only that another document lists of it, as where the world keeps to a strategy; the
    whole subject where a state would be left without any.

    Args:
        subject: the document of one.
        given: what a document says that it is about.
    """
    if "owner" not in subject:
        return subject
    said = {name: given.get(name) for name in _OF_WAYS if name in subject}
    if said["owner"] is None:  # one way for each state
        said["owner"] = [*range(len(subject["letters"]))]
    listed = iter([*zip(*said.values(), strict=False)] if all(type(value) is list for value in said.values()) else [])
    wanted, kept = next(listed, None), list[int]()
    for way, own in enumerate(zip(*(subject[name] for name in said), strict=True)):
        if own == wanted:
            kept.append(way)
            wanted = next(listed, None)
    parts = {name: [subject[name][way] for way in kept] for name in said}
    if {*parts["owner"]} != {*subject["owner"]}:
        return subject
    if len(kept) == len(subject["letters"]):
        del parts["owner"]
    return {name: parts.get(name, part) for name, part in subject.items() if name in parts or name not in _OF_WAYS}


def region_document(region: Region) -> dict[str, object]:
    """What a document says about the region: the columns that matter, with what was counted in them."""
    intervals, rule = region.evidence, None
    counts: dict[tuple[int, int], list[Any]] = {}
    largest: dict[tuple[int, int], int] = {}
    if intervals is not None:
        rule = {
            "alpha": str(intervals.alpha),
            "events": len(intervals.events),
            "tier": intervals.tier,
            "icc": None if intervals.icc is None else str(intervals.icc),
            "shift": intervals.shift,
        }
        table = intervals.measured.counts[None] if intervals.drives is None else intervals.drives.table
        held = by_group(table, region.group)
        for index, true in np.argwhere(region.needed & ~intervals.measured.fixed).tolist():
            counts[index, true] = held[:, index, :, true].tolist()
            if intervals.largest is not None:
                largest[index, true] = int(intervals.largest[index, true])
    columns = []
    for index, true in np.argwhere(region.needed).tolist():
        ends = (array[index, :, true].tolist() for array in (region.lower, region.upper))
        column = (index, true, UNIT, *ends, counts.get((index, true)), largest.get((index, true)))
        columns.append(dict(zip(_COLUMN, column, strict=True)))
    return _columns_document(region.labels, region.group, columns, rule)


def point_document(skeleton: Skeleton, counts: Ints) -> dict[str, object]:
    """What a document says about a region of one family of matrices: rates are counts over the sum of their column.

    Args:
        skeleton: says which columns matter, and which labels its planner tells apart.
        counts: (bins, predicted, true), with items in the columns that matter.
    """
    group = groups_of(skeleton.channel)
    columns = []
    for index, true in np.argwhere(needed_columns(skeleton, len(counts))).tolist():
        items = by_group(counts[None, index : index + 1, :, true : true + 1], group)[0, 0, :, 0]
        rates = (items // max(np.gcd.reduce(items), 1)).tolist()  # the rates alone matter
        columns.append(dict(zip(_COLUMN, (index, true, sum(rates), rates, rates, None, None), strict=True)))
    return _columns_document(skeleton.channel.labels, group, columns, None)


def _columns_document(
    labels: Sequence[Label], group: Ints, columns: list[dict[str, object]], rule: dict[str, object] | None
) -> dict[str, object]:
    return {
        "labels": [sorted(label) for label in labels],
        "group": group.tolist(),
        "groups": int(group.max()) + 1,
        "columns": columns,
        "evidence": rule,
    }
