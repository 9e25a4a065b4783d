"""Chains whose probability is a simple function of recalls, and counts to fill them with.

Label 0 is "empty" and label 1 is "a", and so on; a draw of bin b reports label 1 with the recall of that bin.
"""

from __future__ import annotations

import numpy as np
from small_objectives import channel_of, objective_of

from verifier.analysis.intervals.intervals import Measured
from verifier.perception.confusion import rates

LABELS = ((), ("a",), ("b",))


def product_of_recalls(bins, labels=2):
    """P = the product of the recalls in `bins`: state k draws in bin bins[k] and goes on if `a` is reported."""
    n = len(bins)
    good, bad = n, n + 1
    rows = max(bins) + 1
    channel = channel_of(LABELS[:labels], [[b] for b in range(rows)], [[1]] * rows, told(labels))
    following = [[bad, k + 1, bad][:labels] for k in range(n)] + [[good] * labels, [bad] * labels]
    return objective_of(channel, following, [*bins, 0, 0], {"good": {good}}, "F good", ended=(good, bad))


def first_of_two():
    """P = mu(a) / (mu(a) + mu(b)): `a` is good, `b` is bad, and with "empty" the state stays."""
    channel = channel_of(LABELS, [[0]], [[1]], told(3))
    following = [[0, 1, 2], [1, 1, 1], [2, 2, 2]]
    return objective_of(channel, following, [0, 0, 0], {"good": {1}}, "F good", ended=(1, 2))


def told(labels):
    return tuple(frozenset(each) for each in LABELS[:labels])


def binary(*hits_and_items, fixed=None):
    """Counts of `a` over two labels in one bin after another; column "empty" has no items."""
    counts = np.array([[[0, items - hits], [0, hits]] for hits, items in hits_and_items], dtype=np.int64)
    return measured_of(counts, fixed)


def measured_of(counts, fixed=None):
    counts = np.asarray(counts, dtype=np.int64)
    held = np.zeros((counts.shape[0], counts.shape[2]), dtype=bool) if fixed is None else np.asarray(fixed)
    return Measured(counts, rates(counts), held)
