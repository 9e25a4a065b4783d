"""What each benchmark of confidence bounds measures; to be run as `cases.py` is."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import numpy as np
from cases import Measured, alternately, peak_mib
from numpy.typing import NDArray
from scipy.sparse import csc_array, eye_array
from scipy.sparse.linalg import splu

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))

from small_objectives import channel_of, objective_of

from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.objective import Objective
from verifier.analysis.robust.region import Region, groups_of
from verifier.analysis.robust.solutions import RobustBounds, robust_bounds

STATES, BINS = 100_000, 20


def corridor() -> Measured:
    """A road of 1,000 cells with 100 lanes; each report leads one cell on and some lanes to the side."""
    rng = np.random.default_rng(0)
    state = np.arange(STATES)
    following = np.stack([np.minimum(state + 100 + side, STATES - 2) for side in (-1, 0, 1)], axis=1)
    following[rng.random(STATES) < 0.001, 0] = STATES - 1
    return against_one_solve(following, 0, rng)


def grid() -> Measured:
    """A walk on a grid of 316 by 316, one large component: each report leads to another neighbour."""
    rng = np.random.default_rng(0)
    state = np.arange(STATES)
    following = np.clip(np.stack([state + 316, state - 316, state + 1, state - 1], axis=1), 0, STATES - 3)
    following[rng.random(STATES) < 0.002] = STATES - 2
    following[rng.random(STATES) < 0.002] = STATES - 1
    return against_one_solve(following, STATES // 2, rng)


def against_one_solve(following: NDArray[np.int64], start: int, rng: np.random.Generator) -> Measured:
    """Bounds on never reaching the last state, with certificates and attained values, against one sparse LU
    factorisation and solution of the same chain at the rates in the middle."""
    width = following.shape[1]
    labels = ((), *((name,) for name in "abc"[: width - 1]))
    told = tuple(frozenset(each) for each in labels)
    channel = channel_of(labels, np.arange(BINS)[:, None], np.ones((BINS, 1), dtype=np.int64), told)
    row = np.arange(STATES) * BINS // STATES
    ended = (STATES - 2, STATES - 1)
    objective = objective_of(channel, following, row, {"bad": {STATES - 1}}, "G !bad", (start,), ended)
    point = rng.dirichlet(np.full(width, 3.0), size=BINS)
    region = region_around(objective, point)
    found: list[RobustBounds] = []

    def ours() -> None:
        found.append(robust_bounds(objective, region))

    def peer() -> None:
        moving = STATES - 2  # the last two states have ended
        weights = point[row[:moving]].ravel()
        source, target = np.repeat(np.arange(moving), width), following[:moving].ravel()
        inside = target < moving
        moves = csc_array((weights[inside], (source[inside], target[inside])), shape=(moving, moving))
        lost = np.bincount(source, weights * (target == STATES - 1), moving)
        value = splu(csc_array(eye_array(moving, format="csc") - moves)).solve(lost)
        peer_value.append(1 - float(value[start]))

    peer_value: list[float] = []
    ours_s, peer_s = alternately(3, ours, peer)
    low, high = float(found[0].lower[0]), float(found[0].upper[0])
    if not low <= peer_value[0] <= high:
        raise ValueError("the bounds do not hold the value in the middle")
    detail = (
        f"{objective.state_count} product states, bounds [{low:.4f}, {high:.4f}], "
        f"attained [{float(found[0].lower_attained[0]):.4f}, {float(found[0].upper_attained[0]):.4f}]"
    )
    return Measured(ours_s, peer_s, peak_mib(), detail)


def region_around(objective: Objective, point: NDArray[np.float64]) -> Region:
    """Rates within 0.02 of those in the middle, all above 0."""
    channel = objective.skeleton.channel
    size = len(channel.labels)
    lower, upper = np.zeros((BINS, size, size), dtype=np.int64), np.full((BINS, size, size), UNIT)
    lower[:, :, 1] = np.floor(np.maximum(point - 0.02, 1e-4) * UNIT)
    upper[:, :, 1] = np.ceil(np.minimum(point + 0.02, 1) * UNIT)
    needed = np.zeros((BINS, size), dtype=bool)
    needed[:, 1] = True
    return Region(channel.labels, groups_of(channel), lower, upper, needed)


CASES = {"corridor": corridor, "grid": grid}


if __name__ == "__main__":
    print(json.dumps(dataclasses.asdict(CASES[sys.argv[1]]())))
