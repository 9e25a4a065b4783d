"""The frames behind a matrix cell, from the per-object record of the counting.

An item is what the labelling counts: an object, a group of objects, or what stands in one bin of one frame. It is
named by a row of the record: its object (of a group the nearest, of a bin of a frame the first), or for what was
reported where there is no object, that detection.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Ints, Mask, numbered_rows
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.matrices import EMPTY, Label
from verifier.perception.confusion.record import Record
from verifier.perception.settings import Labelling


def document_bins(bins: Bins, where: Mapping[str, str], distance_bin: int | None = None) -> Ints:
    """Numbers of the document's bins that one matrix was summed over.

    Args:
        where: as in `ConfusionCounts.matrices`.
        distance_bin: number of the distance bin; None for the canonical matrix, which is all of them.

    Raises:
        UsageError: `where` names a bin that is not there.
    """
    at = np.indices(bins.shape).reshape(len(bins.shape), -1)
    used = np.ones(at.shape[1], dtype=bool) if distance_bin is None else at[0] == distance_bin
    for axis, variable in enumerate(bins.variables, 1):
        if variable.name in where:
            used &= at[axis] == variable.bin_named(where[variable.name])
    return np.flatnonzero(used)


def occurrences(
    record: Record,
    bins: Bins,
    inside: Ints,
    true: Label,
    predicted: Label,
    labelling: Labelling,
    classes: frozenset[str],
    threshold: float = -np.inf,
) -> Ints:
    """(k,) rows of the record that name the items of one matrix cell, in the record's order.

    Args:
        record: of the counting that gave the matrices.
        inside: numbers of its bins that the matrix was summed over, from `document_bins`.
        true, predicted: labels of the cell, not both empty: where there is no object and nothing is reported there is
            no row.
        threshold: score threshold of the matrices; -inf where they are no family.

    Raises:
        ValueError: both labels are empty.
    """
    if true == EMPTY == predicted:
        raise ValueError("there is no object and nothing is reported: such items have no row")
    told = _told(record, threshold)
    if labelling == "proposition":
        rows = _sets(record, _places(bins, inside), told, true, predicted, classes)
    elif true == EMPTY:
        rows = _alarms(record, _places(bins, inside), told, predicted)
    else:
        rows = _items(record, inside, told, next(iter(true)), predicted, grouped=labelling == "group")
    return np.sort(rows)


def _told(record: Record, threshold: float) -> NDArray[np.object_]:
    """(n,) what each row reports: a class, or "empty"."""
    reported: NDArray[np.object_] = record["predicted"]
    return reported if threshold == -np.inf else np.where(record["score"] >= threshold, reported, "empty")


def _places(bins: Bins, inside: Ints) -> Ints:
    """The places of bins: variables that only objects have do not matter to where something stands."""
    at = np.array(np.unravel_index(inside, bins.shape))
    at[np.array(bins.of_objects)] = 0
    return np.unique(np.ravel_multi_index(tuple(at), bins.shape))


def _items(
    record: Record, inside: Ints, told: NDArray[np.object_], true: str, predicted: Label, grouped: bool
) -> Ints:
    """Objects, or groups of them, of a class that are reported as `predicted`."""
    wanted = next(iter(predicted), "empty")
    rows = np.flatnonzero((record["kind"] == "object") & (record["true"] == true))
    if not grouped:
        alone: Ints = rows[np.isin(record["bin"][rows], inside) & (told[rows] == wanted)]
        return alone
    item = _alike(record, "group")[rows]
    order = rows[np.lexsort((rows, record["distance_m"][rows], item))]
    heads = []
    for members in np.split(order, np.flatnonzero(np.diff(np.sort(item))) + 1) if len(rows) else []:
        if record["bin"][members[0]] in inside and _told_of_group(record, members, told, true) == wanted:
            heads.append(members[0])
    return np.array(heads, dtype=np.int64)


def _told_of_group(record: Record, members: Ints, told: NDArray[np.object_], true: str) -> str:
    """The own class of a group if a member is reported so, else its surest report."""
    reporting = members[told[members] != "empty"]
    if not len(reporting):
        return "empty"
    if np.any(told[reporting] == true):
        return true
    surest = np.lexsort((reporting, -record["score"][reporting]))[0]
    return str(told[reporting[surest]])


def _alarms(record: Record, places: Ints, told: NDArray[np.object_], predicted: Label) -> Ints:
    """The surest report of each frame and place without an object, where it is `predicted`."""
    key = _alike(record, "place")
    here = np.isin(record["place"], places)
    standing = np.unique(key[(record["kind"] == "object") & here])
    left = np.flatnonzero(_leftover(record) & here & (told != "empty"))
    left = left[~np.isin(key[left], standing)]
    order = left[np.lexsort((left, -record["score"][left], key[left]))]
    surest = order[np.unique(key[order], return_index=True)[1]]
    alarms: Ints = surest[told[surest] == next(iter(predicted))]
    return alarms


def _sets(
    record: Record, places: Ints, told: NDArray[np.object_], true: Label, predicted: Label, classes: frozenset[str]
) -> Ints:
    """Frames and places by the sets of classes that stand there and are reported there."""
    known = list(classes)
    objects = (record["kind"] == "object") & np.isin(record["true"], known)
    rows = np.flatnonzero((objects | _leftover(record)) & np.isin(record["place"], places))
    key = _alike(record, "place")[rows]
    order = rows[np.argsort(key, kind="stable")]
    heads = []
    for members in np.split(order, np.flatnonzero(np.diff(np.sort(key))) + 1) if len(rows) else []:
        present = frozenset(record["true"][members[objects[members]]])
        reported = frozenset(told[members]) & classes
        if present == true and reported == predicted:
            heads.append(members[0])
    return np.array(heads, dtype=np.int64)


def _leftover(record: Record) -> Mask:
    """Detections without an object; those that a policy does not count are in no place."""
    return np.isin(record["kind"], ("unmatched", "duplicate"))


def _alike(record: Record, name: str) -> Ints:
    """(n,) a number for each row; rows of one frame in which this column holds the same have the same."""
    columns = (np.unique(record[name].astype(str), return_inverse=True)[1] for name in ("sequence", "frame", name))
    return numbered_rows((column.astype(np.int64) for column in columns), len(record))[0]
