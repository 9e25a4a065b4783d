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

A *miss* is an object that is not reported as what it is. Objects that differ (one is hidden for ten frames) make
the frames of a track alike too, and that contradicts the channel just as much.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

CONTRADICTED_BELOW = 0.01
"""A p-value below this contradicts the channel without memory."""
MOST_PERMUTATIONS, FEWEST_PERMUTATIONS = 9999, 199
WORK = 5 * 10**7
"""Outcomes that are permuted, at most, unless `FEWEST_PERMUTATIONS` permute more: about a second."""

_NUMBERS_AT_ONCE = 2**22


@dataclass(frozen=True)
class Dependence:
    """How the misses of one class follow each other.

    Attributes:
        label: name of the class.
        objects: annotated objects of it that lie on a track and in a bin; one per frame.
        misses: those not reported as what they are.
        pairs: pairs of successive frames of a track.
        after_miss: pairs with a miss in the first frame.
        joint: those with a miss in both.
        expected_joint: mean of `joint` over all permutations.
        expected_after_miss: mean, over the pairs with a miss in the first frame, of the share of misses in the bin
            and class of the second: what the matrices say of that frame. None without such a pair.
        p_value: of the test above.
        permutations: B.
    """

    label: str
    objects: int
    misses: int
    pairs: int
    after_miss: int
    joint: int
    expected_joint: float
    expected_after_miss: float | None
    p_value: float
    permutations: int

    def __post_init__(self) -> None:
        if not 0 <= self.joint <= self.after_miss <= self.pairs <= self.objects:
            raise ValueError("joint misses, misses before a frame, pairs and objects must decrease in this order")
        if not self.joint <= self.misses <= self.objects or not 0 < self.p_value <= 1:
            raise ValueError("the numbers of a test of dependence must fit together")

    @property
    def miss_after_miss(self) -> float | None:
        """Chance of a miss after a miss; None where there was none to follow."""
        return self.joint / self.after_miss if self.after_miss else None

    @property
    def mean_run(self) -> float | None:
        """Mean length of runs of misses: every miss that no miss precedes begins one. None without a miss."""
        return self.misses / (self.misses - self.joint) if self.misses else None

    @property
    def expected_run(self) -> float | None:
        """The mean length if outcomes had no memory: misses by mean number of runs over all permutations."""
        return self.misses / (self.misses - self.expected_joint) if self.misses else None

    def document(self) -> dict[str, Any]:
        """The numbers as JSON values."""
        return {
            "label": self.label,
            "objects": self.objects,
            "misses": self.misses,
            "pairs": self.pairs,
            "after_miss": self.after_miss,
            "joint_misses": self.joint,
            "expected_joint_misses": self.expected_joint,
            "miss_after_miss": self.miss_after_miss,
            "expected_miss_after_miss": self.expected_after_miss,
            "mean_run": self.mean_run,
            "expected_mean_run": self.expected_run,
            "p_value": self.p_value,
            "permutations": self.permutations,
        }


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
        thresholds: how many there are.
    """

    track: Ints
    frame: Ints
    label: Ints
    stratum: Ints
    level: Ints
    thresholds: int = 1

    def __post_init__(self) -> None:
        columns = (self.track, self.frame, self.label, self.stratum, self.level)
        if any(each.shape != self.track.shape for each in columns):
            raise ValueError("the columns of outcomes differ in length")
        if len(self.track) and (min(each.min() for each in columns) < 0 or self.level.max() > self.thresholds):
            raise ValueError("tracks, frames, classes, strata and levels are numbers from 0")

    def pairs(self) -> tuple[Ints, Ints]:
        """(p,) rows of one track and class in successive frames: the first and the second of each pair."""
        order = np.lexsort((self.frame, self.label, self.track))
        before, after = order[:-1], order[1:]
        same = (self.track[after] == self.track[before]) & (self.label[after] == self.label[before])
        found = same & (self.frame[after] == self.frame[before] + 1)
        return before[found], after[found]


def dependence(outcomes: Outcomes, labels: Sequence[str], seed: int = 0) -> tuple[tuple[Dependence, ...], ...]:
    """The test for each score threshold and each class that has a pair of successive frames.

    Args:
        outcomes: the objects.
        labels: names of the classes.
        seed: of the permutations. There are `MOST_PERMUTATIONS`, or fewer where that would permute more than `WORK`
            outcomes, but at least `FEWEST_PERMUTATIONS`.
    """
    rows = outcomes.pairs()
    permutations = max(FEWEST_PERMUTATIONS, min(MOST_PERMUTATIONS, WORK // max(len(outcomes.track), 1)))
    found = _joint(outcomes, rows, outcomes.level[None], len(labels))[0]
    reached = np.ones_like(found)
    if len(rows[0]):
        numbers = max(len(outcomes.track), len(labels) * (outcomes.thresholds + 1))
        at_once = max(1, _NUMBERS_AT_ONCE // numbers)
        for levels in _permuted(outcomes, permutations, at_once, np.random.default_rng(seed)):
            reached += (_joint(outcomes, rows, levels, len(labels)) >= found).sum(axis=0)
    return tuple(
        tuple(_described(outcomes, rows, labels, threshold, reached[threshold], permutations))
        for threshold in range(outcomes.thresholds)
    )


def _joint(outcomes: Outcomes, rows: tuple[Ints, Ints], levels: NDArray[Any], labels: int) -> Ints:
    """(c, thresholds, labels) joint misses for (c, n) levels: of a pair from its higher level on."""
    first, second = rows
    steps = outcomes.thresholds + 1
    lasting = np.maximum(levels[:, first], levels[:, second])
    cell = (np.arange(len(levels))[:, None] * labels + outcomes.label[second]) * steps + lasting
    counted = np.bincount(cell.ravel(), minlength=len(levels) * labels * steps)
    joint: Ints = np.cumsum(counted.reshape(len(levels), labels, steps), axis=2)[:, :, :-1]
    return joint.transpose(0, 2, 1)


def _described(
    outcomes: Outcomes,
    rows: tuple[Ints, Ints],
    labels: Sequence[str],
    threshold: int,
    reached: Ints,
    permutations: int,
) -> Iterator[Dependence]:
    """What was found at one threshold, class by class."""
    miss = outcomes.level <= threshold
    items = np.bincount(outcomes.stratum).astype(np.float64)
    missed = np.bincount(outcomes.stratum, miss, len(items))
    first, second = rows
    one, other = outcomes.stratum[first], outcomes.stratum[second]
    left, among = np.maximum(missed[one] - 1, 0), np.maximum(items[one] - 1, 1)
    again = np.where(one == other, left / among, missed[other] / items[other])
    expected = missed[one] / items[one] * again
    for number, name in enumerate(labels):
        mine, own = outcomes.label == number, outcomes.label[second] == number
        if not own.any():
            continue
        after = own & miss[first]
        yield Dependence(
            name,
            int(np.count_nonzero(mine)),
            int(np.count_nonzero(mine & miss)),
            int(np.count_nonzero(own)),
            int(np.count_nonzero(after)),
            int(np.count_nonzero(after & miss[second])),
            float(expected[own].sum()),
            float((missed[other] / items[other])[after].mean()) if after.any() else None,
            float(reached[number] / (1 + permutations)),
            permutations,
        )


def _permuted(
    outcomes: Outcomes, permutations: int, at_once: int, rng: np.random.Generator
) -> Iterator[NDArray[np.int32]]:
    """Parts (c, n) of levels, at most `at_once` rows each, permuted among the rows of each stratum."""
    order = np.argsort(outcomes.stratum, kind="stable")
    level = outcomes.level[order].astype(np.int32)
    ends = np.flatnonzero(np.diff(outcomes.stratum[order], append=-1)) + 1
    mixed = [
        (low, high)
        for low, high in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)
        if (level[low:high] != level[low]).any()
    ]
    for done in range(0, permutations, at_once):
        sorted_levels = np.repeat(level[None], min(at_once, permutations - done), axis=0)
        for low, high in mixed:
            sorted_levels[:, low:high] = rng.permuted(sorted_levels[:, low:high], axis=1)
        levels = np.empty_like(sorted_levels)
        levels[:, order] = sorted_levels
        yield levels


def dependence_remark(metadata: Mapping[str, Any]) -> str | None:
    """A warning when the data of a confusion document contradict the channel without memory; None when not.

    Args:
        metadata: of the document, its `dependence` as `verifier.confusion.document_dependence` checks it.
    """
    found = metadata.get("dependence")
    if not isinstance(found, Mapping):
        return None
    parts = []
    for each in found["classes"]:
        if each["p_value"] < CONTRADICTED_BELOW and each["after_miss"]:
            again, expected = each["miss_after_miss"], each["expected_miss_after_miss"]
            counted = f"{each['joint_misses']} of {each['after_miss']} pairs of frames, p = {each['p_value']:.2g}"
            parts.append(
                f"after a miss of {each['label']} the next frame misses it again with {again:.2f}, not "
                f"{expected:.2f} ({counted})"
            )
    if not parts:
        return None
    taken = "the chain takes a detector to report anew in every step, and the data contradict it"
    return f"{taken}: {'; '.join(parts)}"
