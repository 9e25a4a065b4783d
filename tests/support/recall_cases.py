"""Small inverse problems: chains in which P is a product of recalls, and what to ask of them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from small_objectives import channel_of, objective_of

from verifier.analysis.recall.cells import RecallCells
from verifier.analysis.recall.requirements import Problem, Target

MILLION = 10**6
LABELS = ((), ("a",))  # label 0 is "empty", label 1 is "a"


def cells_of(*pairs, empty=0):
    bins, columns = zip(*pairs, strict=True)
    return RecallCells(np.array(bins), np.array(columns), empty)


def chance(bins, formula="F good"):
    """P = recall of `a` in every one of `bins`, one draw after the other: state k draws in bin bins[k]."""
    n = len(bins)
    good, bad = n, n + 1
    channel = channel_of(LABELS, [[b] for b in range(max(bins) + 1)], [[1]] * (max(bins) + 1))
    following = [[bad, k + 1] for k in range(n)] + [[good, good], [bad, bad]]
    row = [*bins, 0, 0]
    return objective_of(channel, following, row, {"good": {good}, "bad": {bad}}, formula, ended=(good, bad))


def binary(*recalls):
    """Matrices over LABELS with these recalls of `a`; "empty" is always reported as itself."""
    return np.array([[[1, 1 - r], [0, r]] for r in recalls], dtype=float)


def problem(objectives, matrices, comparison, target):
    return Problem(tuple(objectives), matrices, Target(comparison, Fraction(target)))
