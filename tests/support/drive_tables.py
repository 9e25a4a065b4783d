"""Counts by drive, as the analyses take them."""

from __future__ import annotations

import numpy as np
from recall_chains import measured_of

from verifier.analysis.intervals.drive_items import DriveItems
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.counts import ConfusionCounts, Sequences
from verifier.perception.confusion.document import write_confusion
from verifier.perception.confusion.tally import Tally


def sequences_of(counts, names=None):
    """From (drives, bins, predicted, true) counts."""
    counts = np.asarray(counts, dtype=np.int64)
    names = names or [f"drive {number}" for number in range(len(counts))]
    index = np.argwhere(counts).astype(np.int64)
    tally = Tally(index, counts[tuple(index.T)][:, None])
    return Sequences(tuple(names), np.ones(len(names), dtype=np.int64), tally)


def recall_counts(*drives, bins=1):
    """(drives, bins, 2, 2) counts with (hits, items) of label 1 in every bin, drive by drive."""
    table = np.asarray(drives, dtype=np.int64).reshape(len(drives), bins, 2)
    counts = np.zeros((len(drives), bins, 2, 2), dtype=np.int64)
    counts[:, :, 1, 1], counts[:, :, 0, 1] = table[..., 0], table[..., 1] - table[..., 0]
    return counts


def drives_of(counts, names=None):
    """Measured counts and the table of the drives."""
    counts = np.asarray(counts, dtype=np.int64)
    names = names or tuple(f"drive {number}" for number in range(len(counts)))
    return measured_of(counts.sum(axis=0)), DriveItems(tuple(names), "item", counts)


def write_drives(path, counts, labels=("empty", "ped", "obs"), edges_m=(0.0, 10.0, 20.0)):
    """A class-labelled confusion document with sequences, from (drives, bins, predicted, true) counts.

    So matrices of simulated drives go through `verify run` as a user's do.
    """
    names = tuple(frozenset() if label == "empty" else frozenset({label}) for label in labels)
    sequences = sequences_of(counts)
    total = np.asarray(counts, dtype=np.int64).sum(axis=0)[None]
    found = ConfusionCounts("class", names, Bins(tuple(edges_m)), None, total, sequences, "simulated drives")
    write_confusion(found, path)
    return path
