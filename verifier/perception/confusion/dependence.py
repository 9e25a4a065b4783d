"""Whether a detector that missed an object in one frame misses it in the next: does its channel have a memory?

The chain draws a new report in every step, from the matrix column of the object's bin and class. If that is how the
detector works then, given how many objects of each bin and class it missed, every assignment of these misses to those
objects is equally likely. Along the track of one object nothing then distinguishes the frame after a miss.

Test. For each class the statistic is the number of joint misses: pairs of successive frames of a track with a miss in
both. It is compared with its distribution when the outcomes are permuted among the objects of the same bin and class
(a permutation test: Lehmann and Romano, Testing Statistical Hypotheses, 3rd ed., section 15.2). Of B random
permutations, b have at least as many joint misses, and p = (1 + b) / (1 + B) is a valid p-value for any B (section
15.2.1): if the outcomes are exchangeable, Pr(p <= t) <= t.

The mean under permutation is known: a pair in one bin and class with k misses among n objects is missed jointly with
chance k (k - 1) / (n (n - 1)); a pair across two of them with chance (k/n) (k'/n').

The same permutations test each distance bin alone, by the pairs with both frames in it. Outcomes of different bins
are permuted independently of each other, so the p-values of the bins that a chain draws from may be combined.

A *miss* is an object that is not reported as what it is. Objects that differ (one is hidden for ten frames) make
the frames of a track alike too, and that contradicts the channel just as much.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints, Mask
from verifier.perception.confusion.document_dependence import BinTest, DependenceTest

CONTRADICTED_BELOW = 0.01
"""A p-value below this contradicts the channel without memory."""
MOST_PERMUTATIONS, FEWEST_PERMUTATIONS = 9999, 199
WORK = 5 * 10**7
"""Outcomes that are permuted, at most, unless `FEWEST_PERMUTATIONS` permute more: about a second."""
RESIDUAL_WORK = 5 * 10**6
"""The same for a residual test, of which there is one per class and context function."""

_NUMBERS_AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Annotated objects on tracks, one row per object and frame.

    Attributes:
        track: (n,) number of the track, from 0; different in different sequences.
        frame: (n,) number of the frame; successive frames of a sequence differ by 1.
        label: (n,) class.
        stratum: (n,) number of the bin and class, from 0: what the matrices tell apart.
        level: (n,) at how many of the score thresholds the object is reported as what it is; where there is one
            threshold, 0 for a miss and 1 else.
        bin: (n,) number of the distance bin, from 0, the same throughout a stratum; None: bins are not tested alone.
    """

    track: Ints
    frame: Ints
    label: Ints
    stratum: Ints
    level: Ints
    thresholds: int = 1
    bin: Ints | None = None

    def __post_init__(self) -> None:
        columns = [self.track, self.frame, self.label, self.stratum, self.level]
        columns += [] if self.bin is None else [self.bin]
        if any(column.shape != self.track.shape for column in columns):
            raise ValueError("the columns of outcomes differ in length")
        if len(self.track) and (min(column.min() for column in columns) < 0 or self.level.max() > self.thresholds):
            raise ValueError("tracks, frames, classes, strata and levels are numbers from 0")

    def pairs(self) -> tuple[Ints, Ints]:
        """(p,) rows of one track and class in successive frames: the first and the second of each pair."""
        order = np.lexsort((self.frame, self.label, self.track))
        before, after = order[:-1], order[1:]
        same = (self.track[after] == self.track[before]) & (self.label[after] == self.label[before])
        successive = same & (self.frame[after] == self.frame[before] + 1)
        return before[successive], after[successive]


def dependence(outcomes: Outcomes, labels: Sequence[str], seed: int = 0) -> tuple[tuple[DependenceTest, ...], ...]:
    """The test for each score threshold and each class that has a pair of successive frames.

    Args:
        labels: names of the classes.
        seed: of the permutations. There are `MOST_PERMUTATIONS`, or fewer where that would permute more than `WORK`
            outcomes, but at least `FEWEST_PERMUTATIONS`.
    """
    rows = outcomes.pairs()
    alone = 0 if outcomes.bin is None or not len(outcomes.bin) else int(outcomes.bin.max()) + 1
    permutations = max(FEWEST_PERMUTATIONS, min(MOST_PERMUTATIONS, WORK // max(len(outcomes.track), 1)))
    shape = (outcomes.thresholds, len(labels), alone + 1)
    joint = _joint(_cells(outcomes, rows, alone), rows, outcomes.level[None], shape)[0]
    reached = np.ones_like(joint)
    if len(rows[0]):
        numbers = max(len(outcomes.track), len(labels) * (alone + 2) * (outcomes.thresholds + 1))
        at_once = max(1, _NUMBERS_AT_ONCE // numbers)
        order = np.argsort(outcomes.stratum, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        cells = _cells(outcomes, rows, alone), (place[rows[0]], place[rows[1]])
        for levels in _permuted(outcomes, permutations, at_once, np.random.default_rng(seed)):
            reached += (_joint(*cells, levels, joint.shape) >= joint).sum(axis=0)
    return tuple(
        tuple(_described(outcomes, rows, labels, threshold, reached[threshold], permutations))
        for threshold in range(outcomes.thresholds)
    )


def residual_test(
    stratum: Ints, right: Ints, history: Floats, seed: int = 0, permutations: int | None = None
) -> tuple[float | None, float, int]:
    """Whether wrong outcomes go with bad histories within strata: z, p-value and number of permutations.

    Args:
        stratum: (n,) what outcomes are permuted within.
        right: (n,) 0 or 1.
        history: (n,) stays with its row.
        seed: of the permutations.
        permutations: how many; None for as many as `RESIDUAL_WORK` allows.
    """
    stratum = np.unique(stratum, return_inverse=True)[1].reshape(-1)
    size = np.bincount(stratum).astype(np.float64)
    wrong, total = np.bincount(stratum, 1 - right), np.bincount(stratum, history)
    around = np.bincount(stratum, (history - (total / size)[stratum]) ** 2)
    variance = float((wrong * (size - wrong) / (size * np.maximum(size - 1, 1)) * around).sum())
    seen = float(history @ (1 - right))
    z = (seen - float((wrong / size * total).sum())) / math.sqrt(variance) if variance > 0 else None
    rows = Outcomes(stratum, np.arange(len(right)), np.zeros_like(right), stratum, right)
    permutations = permutations or max(FEWEST_PERMUTATIONS, min(MOST_PERMUTATIONS, RESIDUAL_WORK // len(right)))
    at_once = max(1, _NUMBERS_AT_ONCE // len(right))
    reached = 1
    sorted_history = history[np.argsort(stratum, kind="stable")]
    for levels in _permuted(rows, permutations, at_once, np.random.default_rng(seed)):
        # Sums of the same numbers in another order differ in their last digits.
        reached += int(np.count_nonzero((1 - levels) @ sorted_history >= seen * (1 - 1e-12)))
    return z, reached / (1 + permutations), permutations


def _joint(cell: Ints, rows: tuple[Ints, Ints], levels: NDArray[Any], shape: tuple[int, ...]) -> Ints:
    """(c, thresholds, labels, alone + 1) joint misses for (c, n) levels: of a pair from its higher level on.

    First those with both frames in each of the `alone` bins, then all. `cell` (p,) is that of each pair in the last
    two axes of the shape. Pairs that are no joint miss at any threshold are left out.
    """
    first, second = rows
    steps, cells = shape[0], shape[1] * shape[2]
    lasting = np.maximum(levels.take(first, axis=1), levels.take(second, axis=1))
    at, pair = np.divmod(np.flatnonzero(lasting < steps), len(first))
    place = (at * cells + cell[pair]) * steps + lasting[at, pair]
    counted = np.bincount(place, minlength=len(levels) * cells * steps)
    joint: Ints = np.cumsum(counted.reshape(len(levels), *shape[1:], steps), axis=3)
    joint[:, :, -1] = joint.sum(axis=2)
    return joint.transpose(0, 3, 1, 2)


def _cells(outcomes: Outcomes, rows: tuple[Ints, Ints], alone: int) -> Ints:
    """(p,) the class of each pair and the bin that it lies in, as one number."""
    return np.asarray(outcomes.label[rows[1]] * (alone + 1) + _bin_of_pairs(outcomes, rows, alone))


def _bin_of_pairs(outcomes: Outcomes, rows: tuple[Ints, Ints], alone: int) -> Ints:
    """(p,) the bin that both frames of a pair lie in; `alone`, the number of bins, where there is none."""
    first, second = rows
    if outcomes.bin is None:
        return np.full(len(first), alone)
    return np.where(outcomes.bin[first] == outcomes.bin[second], outcomes.bin[second], alone)


def _described(
    outcomes: Outcomes,
    rows: tuple[Ints, Ints],
    labels: Sequence[str],
    threshold: int,
    reached: Ints,
    permutations: int,
) -> Iterator[DependenceTest]:
    """What was found at one threshold, class by class; `reached` is (labels, bins + 1), the last of all pairs."""
    miss = outcomes.level <= threshold
    items = np.bincount(outcomes.stratum).astype(np.float64)
    missed = np.bincount(outcomes.stratum, miss, len(items))
    first, second = rows
    one, other = outcomes.stratum[first], outcomes.stratum[second]
    again = np.maximum(missed[other] - (one == other), 0) / (items[other] - (one == other))
    expected, expected_next = missed[one] / items[one] * again, missed[other] / items[other]
    in_bin = _bin_of_pairs(outcomes, rows, reached.shape[1] - 1)
    for number, name in enumerate(labels):
        mine, own = outcomes.label == number, outcomes.label[second] == number
        if not own.any():
            continue
        after = own & miss[first]
        p_values = reached[number] / (1 + permutations)
        reach = np.concatenate([first[own], second[own]])
        touched = [] if outcomes.bin is None else np.unique(outcomes.bin[reach]).tolist()
        yield DependenceTest(
            label=name,
            objects=int(np.count_nonzero(mine)),
            misses=int(np.count_nonzero(mine & miss)),
            **_pairs(own, after, miss[second], expected_next),
            expected_joint_misses=float(expected[own].sum()),
            p_value=float(p_values[-1]),
            permutations=permutations,
            bins=tuple(
                BinTest(
                    bin=place,
                    **_pairs(own & (in_bin == place), after & (in_bin == place), miss[second], expected_next),
                    p_value=float(p_values[place]),
                )
                for place in touched
            ),
        )


def _pairs(pairs: Mask, after: Mask, missed: Mask, expected: Floats) -> dict[str, Any]:
    """Counts of pairs of frames, those after a miss, and the share of misses that the matrices expect of these."""
    return {
        "pairs": int(np.count_nonzero(pairs)),
        "after_miss": int(np.count_nonzero(after)),
        "joint_misses": int(np.count_nonzero(after & missed)),
        "expected_miss_after_miss": float(expected[after].mean()) if after.any() else None,
    }


def _permuted(
    outcomes: Outcomes, permutations: int, at_once: int, rng: np.random.Generator
) -> Iterator[NDArray[np.signedinteger[Any]]]:
    """Parts (c, n) of levels, at most `at_once` rows each, permuted within each stratum, in the order of strata."""
    order = np.argsort(outcomes.stratum, kind="stable")
    # The fewer bytes, the faster they are looked up; numpy permutes numbers as wide as a pointer fastest.
    level = outcomes.level[order].astype(np.int8 if outcomes.thresholds < 127 else np.int32)
    ends = np.cumsum(np.unique(outcomes.stratum, return_counts=True)[1])
    mixed = [
        (low, high)
        for low, high in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)
        if (level[low:high] != level[low]).any()
    ]
    for done in range(0, permutations, at_once):
        levels = np.repeat(level[None], min(at_once, permutations - done), axis=0)
        for low, high in mixed:
            wide = levels[:, low:high].astype(np.intp)
            levels[:, low:high] = rng.permuted(wide, axis=1, out=wide)
        yield levels
