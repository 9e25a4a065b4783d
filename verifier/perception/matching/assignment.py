"""One-to-one assignment of detections to annotations, from the pairs that may match.

Greedy matching walks through the pairs in a given order and takes every pair with two free ends. That walk need not
be taken step by step: a pair that is the first of the remaining pairs at both of its ends is taken whatever happens
elsewhere. Taking all such pairs at once, dropping the pairs they block and repeating gives exactly the result of the
walk (Preis 1999, "Linear time 1/2-approximation algorithm for maximum weighted matching", takes such locally dominant
edges; here the rank of a pair stands for the weight). The first pair of all is always among them, so it ends.

Optimal assignment is the linear sum assignment problem (Kuhn 1955, "The Hungarian method"), solved per connected
component: pairs of different components never compete.
"""

from __future__ import annotations

import numpy as np

from verifier.base.arrays import Floats, Ints
from verifier.base.errors import LimitError

ROUNDS = 32
"""Rounds of taking pairs at once before the rest is walked through one by one; real scenes need about five."""
LARGEST_TABLE = 25_000_000
"""Entries of a dense cost table for optimal assignment: 200 MB."""


def greedy(detection: Ints, annotation: Ints, annotation_of: Ints, detection_of: Ints) -> None:
    """Match along the pairs in their order; each takes its place when both of its ends are free (-1).

    `detection` and `annotation` (p,) are the pairs. `annotation_of` and `detection_of` are filled in place.
    """
    first_of_detection = np.empty(len(annotation_of), dtype=np.int64)
    first_of_annotation = np.empty(len(detection_of), dtype=np.int64)
    for _ in range(ROUNDS):
        if len(detection) == 0:
            return
        rank = np.arange(len(detection))
        # Where an index repeats, the last value assigned stays: reversed, the first pair's rank.
        first_of_detection[detection[::-1]] = rank[::-1]
        first_of_annotation[annotation[::-1]] = rank[::-1]
        taken = (first_of_detection[detection] == rank) & (first_of_annotation[annotation] == rank)
        annotation_of[detection[taken]] = annotation[taken]
        detection_of[annotation[taken]] = detection[taken]
        free = (annotation_of[detection] < 0) & (detection_of[annotation] < 0)
        detection, annotation = detection[free], annotation[free]
    for one, other in zip(detection.tolist(), annotation.tolist(), strict=True):
        if annotation_of[one] < 0 and detection_of[other] < 0:
            annotation_of[one], detection_of[other] = other, one


def optimal(detection: Ints, annotation: Ints, loss: Floats, annotation_of: Ints, detection_of: Ints) -> None:
    """Match as many pairs as possible and, among such matchings, with the least sum of `loss`.

    Pairs (p,) as in `greedy`, in an order that settles ties in stars; `loss` (p,) in [0, 1].

    Raises:
        LimitError: a component's cost table would exceed `LARGEST_TABLE` entries.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if len(detection) == 0:
        return
    detections, row = np.unique(detection, return_inverse=True)
    annotations, column = np.unique(annotation, return_inverse=True)
    size = len(detections) + len(annotations)
    graph = coo_array((np.ones(len(row), dtype=np.int8), (row, len(detections) + column)), shape=(size, size))
    count, component = connected_components(graph, directed=False)
    rows = np.bincount(component[: len(detections)], minlength=count)
    columns = np.bincount(component[len(detections) :], minlength=count)
    star = np.minimum(rows, columns)[component[row]] == 1
    greedy(detection[star], annotation[star], annotation_of, detection_of)
    rest = np.flatnonzero(~star)
    rest = rest[np.argsort(component[row[rest]], kind="stable")]
    for pairs in np.split(rest, np.flatnonzero(np.diff(component[row[rest]])) + 1):
        if len(pairs):
            chosen = pairs[_least_loss(row[pairs], column[pairs], loss[pairs])]
            annotation_of[detection[chosen]] = annotation[chosen]
            detection_of[annotation[chosen]] = detection[chosen]


def _least_loss(row: Ints, column: Ints, loss: Floats) -> Ints:
    """Which of the pairs of one component an optimal assignment takes."""
    from scipy.optimize import linear_sum_assignment

    rows, row = np.unique(row, return_inverse=True)
    columns, column = np.unique(column, return_inverse=True)
    if len(rows) * len(columns) > LARGEST_TABLE:
        raise LimitError(
            f"optimal assignment: {len(rows)} detections and {len(columns)} annotations compete in one frame; "
            f"a table of {len(rows) * len(columns)} entries exceeds the limit of {LARGEST_TABLE}",
            hint="use greedy assignment, a stricter threshold, or a greater minimum score",
        )
    # Not matching costs 0 and matching loss - size < 0, so one more pair outweighs every difference of losses.
    pair = np.full((len(rows), len(columns)), -1, dtype=np.int64)
    pair[row, column] = np.arange(len(row))
    cost = np.zeros(pair.shape)
    cost[row, column] = loss - (min(pair.shape) + 1)
    chosen = pair[linear_sum_assignment(cost)]
    return chosen[chosen >= 0]
