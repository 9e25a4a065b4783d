"""Objectives without a system model: small hand-made ones, and random ones for property tests.

`following[s, y]` is the state that observation y leads to from state s, as in Algorithm 3 of Badithela et al. 2022.
Every draw reports one label of `labels`, and each label is an observation.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, cast

import numpy as np

from verifier.analysis.objective import Objective, by_observation
from verifier.checking.product import build_product
from verifier.language.ltl import parse_formula
from verifier.systems.channel import Channel
from verifier.systems.skeleton import Skeleton, merged_transitions


def channel_of(labels, bins, columns, observations=None):
    """Draws from `columns` (label numbers, -1 for none) in `bins`, each (rows, draws).

    `observations` defaults to all unions of labels, the empty set first.
    """
    labels = tuple(frozenset(each) for each in labels)
    if observations is None:
        found = {frozenset()}
        for _ in range(np.asarray(columns).shape[1]):
            found |= {old | new for old in found for new in labels}
        observations = tuple(sorted(found, key=lambda each: (len(each), sorted(each))))
    bins, columns, known = np.asarray(bins, np.int64), np.asarray(columns, np.int64), list(observations)
    asked = frozenset().union(*known)
    reports = list(dict.fromkeys(label & asked for label in labels))
    told = np.broadcast_to([reports.index(label & asked) for label in labels], (*bins.shape, len(labels)))
    then = [[known.index(old | new) if old | new in known else -1 for new in reports] for old in known]
    return Channel(labels, tuple(known), bins, columns, told, np.array(then, dtype=np.int64))


def objective_of(channel, following, row, true_in, formula, starts=(0,), ended=()):
    """An `Objective` from (n, observations) successors, (n,) channel rows and label -> states where it holds."""
    following = np.asarray(following, dtype=np.int64)
    n = len(following)
    over = np.isin(np.arange(n), list(ended))
    following = np.where(over[:, None], np.arange(n)[:, None], following)
    skeleton = Skeleton(
        cast(Any, None),
        "world",
        {"s": np.arange(n)},
        np.zeros(n, dtype=np.int64),
        np.array(starts, dtype=np.int64),
        over,
        channel,
        *merged_transitions(following, np.asarray(row, dtype=np.int64), over),
    )
    labels = {name: np.isin(np.arange(n), list(states)) for name, states in true_in.items()}
    node = parse_formula(formula) if isinstance(formula, str) else formula
    product = build_product(skeleton.indptr, skeleton.indices, labels, node, skeleton.starts)
    return Objective(skeleton, product, *by_observation(skeleton, product))


def random_objective(rng, formula, states=6, bins=2, labels=("a", "b"), draws=1, propositions=("p", "q")):
    """A random objective over the label set {{}, {a}, {b}}; the last state is terminal."""
    all_labels = [(), *((each,) for each in labels)]
    rows = bins * 2
    channel = channel_of(
        all_labels, rng.integers(0, bins, (rows, draws)), rng.integers(0, len(all_labels), (rows, draws))
    )
    following = rng.integers(0, states, (states, len(channel.observations)))
    true_in = {name: set(np.flatnonzero(rng.random(states) < 0.5).tolist()) for name in propositions}
    return objective_of(channel, following, rng.integers(0, rows, states), true_in, formula, (0, 1), (states - 1,))


def random_rates(rng, bins, labels, zero=0.0):
    """(bins, labels, labels) random columns; each cell is 0 with chance `zero` (but never a whole column)."""
    cells = rng.gamma(0.8, size=(bins, labels, labels)) * (rng.random((bins, labels, labels)) >= zero)
    cells[:, 0, :] += cells.sum(axis=1) == 0
    return cells / cells.sum(axis=1, keepdims=True)


def drawing_twins(rng, formula, states=6, bins=2, draws=1):
    """A random objective whose world draws one of two outcomes, and the same as one more draw of the detector.

    Returns:
        the objective; its twin, in which each row has one more draw, of label {w}, from column 0 of a bin of its own
        behind the `bins`; and a function from (.., bins, 3, 3) rates, or bounds of rates in parts of `whole`, of the
        objective to those of the twin.
    """
    labels, rows = [(), ("a",), ("b",)], 2 * bins
    places = rng.integers(0, bins, (rows, draws)), np.where(rng.random((rows, draws)) < 0.1, -1, 1)
    places[1][places[1] > 0] = rng.integers(0, 3, (places[1] > 0).sum())
    channel = channel_of(labels, *places)
    chance = rng.choice([0, 1000, *range(1, 1000, 37)], rows, p=[0.1, 0.1, *[0.8 / 27] * 27])
    motion = np.array(
        [[Fraction(1000 - int(each), 1000), Fraction(int(each), 1000)] for each in chance], dtype=object
    )
    following = rng.integers(0, states, (states, len(channel.observations), 2))
    row, over = rng.integers(0, rows, states), (states - 1,)
    true_in = {name: set(np.flatnonzero(rng.random(states) < 0.5).tolist()) for name in ("p", "q")}
    one = objective_of(channel.moved_by(motion), following.reshape(states, -1), row, true_in, formula, (0, 1), over)
    own = bins + np.arange(rows)[:, None], np.zeros((rows, 1), dtype=np.int64)
    wide = channel_of([*labels, ("w",)], *(np.concatenate(both, axis=1) for both in zip(places, own, strict=True)))
    ahead = np.zeros((states, len(wide.observations)), dtype=np.int64)
    for number, told in enumerate(wide.observations):
        if told - {"w"} in channel.observations:
            ahead[:, number] = following[:, channel.observations.index(told - {"w"}), int("w" in told)]
    other = objective_of(wide, ahead, row, true_in, formula, (0, 1), over)

    def widened(rates, whole=1):
        found = np.zeros((*rates.shape[:-3], bins + rows, 4, 4), dtype=rates.dtype)
        found[..., 0, :] = whole
        found[..., :bins, :3, :3] = rates
        found[..., :bins, 3, :] = 0
        found[..., bins:, 3, 0] = chance * whole / 1000
        found[..., bins:, 0, 0] = (1000 - chance) * whole / 1000
        return found

    return one, other, widened
