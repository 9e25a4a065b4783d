"""Small decision processes of a world that decides: random ones, and every strategy with some memory."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any, cast

import numpy as np
from certified_systems import holding
from small_chains import chain_of, process_of
from small_objectives import channel_of

from verifier.analysis.robust.optimum import optimum_on
from verifier.checking.product import build_product
from verifier.language.ltl import parse_formula
from verifier.systems.skeleton import Skeleton, merged_transitions
from verifier.systems.strategies import StrategySkeleton

LABELS = ((), ("a",), ("b",))


class Deciding:
    """A world that decides in some of its states.

    Attributes:
        owner: (r,) state of each choice.
        following: (r, observations) states that each observation leads to; the last two states have ended.
        row: (r,) row of the channel.
        true_in: proposition -> states.
    """

    def __init__(self, rng, states=6, bins=2, choices=3, draws=1):
        counts = np.where(np.arange(states) < states - 2, rng.integers(1, choices + 1, states), 1)
        self.owner = np.repeat(np.arange(states), counts)
        rows = 2 * bins
        self.channel = channel_of(
            LABELS, rng.integers(0, bins, (rows, draws)), rng.integers(0, len(LABELS), (rows, draws))
        )
        following = rng.integers(0, states, (len(self.owner), len(self.channel.observations)))
        alone = rng.random(len(self.owner)) < 0.2  # some choices lead to one state surely
        following[alone] = following[alone, :1]
        self.over = self.owner >= states - 2
        self.following = np.where(self.over[:, None], self.owner[:, None], following)
        self.row = rng.integers(0, rows, states)[self.owner]
        # The states that have ended differ, so that it matters where a run ends up.
        self.true_in = {
            name: [*np.flatnonzero(rng.random(states - 2) < often).tolist(), states - 2 + place]
            for place, (name, often) in enumerate({"p": 0.5, "q": 0.3}.items())
        }
        self.states, self.starts = states, np.array([0, 1])

    @property
    def choices(self):
        """As the package has it."""
        skeleton = Skeleton(
            cast(Any, None),
            "world",
            {"s": np.arange(self.states)},
            np.zeros(self.states, dtype=np.int64),
            self.starts,
            np.arange(self.states) >= self.states - 2,
            self.channel,
            *merged_transitions(self.following, self.row, self.over),
        )
        return StrategySkeleton(np.searchsorted(self.owner, np.arange(self.states + 1)), skeleton)

    @property
    def labels(self):
        """Proposition -> mask."""
        return {name: np.isin(np.arange(self.states), states) for name, states in self.true_in.items()}

    def optimum(self, formula, greatest):
        """The product with a formula."""
        found, node = self.choices, parse_formula(formula) if isinstance(formula, str) else formula
        skeleton = found.choices
        starts = skeleton.indptr[found.choice_starts]
        product = build_product(starts, skeleton.indices, self.labels, node, skeleton.starts)
        return optimum_on(found, product, greatest)

    def rows(self, rates):
        """For each choice {successor: probability} under (bins, labels, labels) rates."""
        weights, number = self.channel.weights(rates), Fraction if rates.dtype == object else float
        result = []
        for row, following, over in zip(self.row, self.following, self.over, strict=True):
            found: dict[int, float] = {}
            for observation, target in enumerate(following.tolist()):
                if over or weights[row, observation] > 0:
                    chance = number(0) if over else number(weights[row, observation])
                    found[target] = found.get(target, number(0)) + chance
            result.append(dict.fromkeys(found, number(1)) if over else found)
        return result

    def process(self, rates):
        """The decision process under some rates."""
        return owned_process([(int(s), row) for s, row in zip(self.owner, self.rows(rates), strict=True)], self)

    def chain_under(self, rates, chosen, remember):
        """The chain of a strategy with memory, as `rows_under`."""
        states, flat = self.rows_under(rates, chosen, remember)
        labels = {name: mask[states] for name, mask in self.labels.items()}
        return chain_of(list(map(dict, flat)), labels, range(len(self.starts)))

    def exactly_under(self, rates, chosen, remember, formula):
        """The probability of a formula from each initial state, in fractions, for rates that are fractions."""
        states, flat = self.rows_under(rates, chosen, remember)
        labels = {name: mask[states] for name, mask in self.labels.items()}
        indptr = np.cumsum([0, *map(len, flat)]).astype(np.int64)
        indices = np.array([target for row in flat for target, _ in row], dtype=np.int64)
        product = build_product(indptr, indices, labels, parse_formula(formula), np.arange(len(self.starts)))
        value = holding(product, [weight for row in flat for _, weight in row])
        return [value[state] for state in product.start.tolist()]

    def rows_under(self, rates, chosen, remember):
        """The states and transitions of a strategy with memory, the initial states first: `chosen` is (states,
        memories) the number of a choice among those of the state, `remember` gives the memory after a state's
        propositions and the memory before."""
        rows, first = self.rows(rates), np.searchsorted(self.owner, np.arange(self.states))
        letters = [tuple(bool(mask[s]) for mask in self.labels.values()) for s in range(self.states)]
        index, pending, ahead = {}, [], []
        for start in self.starts.tolist():
            index[start, remember(0, letters[start])] = len(index)
        pending = list(index)
        while pending:
            state, memory = pending.pop(0)
            row = {}
            for target, weight in rows[first[state] + chosen[state][memory]].items():
                key = target, remember(memory, letters[target])
                if key not in index:
                    index[key] = len(index)
                    pending.append(key)
                row[index[key]] = weight
            ahead.append(row)
        return np.array([state for state, _ in index]), [sorted(row.items()) for row in ahead]

    def strategies(self, memories, most, rng):
        """Every choice for each state and memory, or `most` random ones of them."""
        counts = np.bincount(self.owner, minlength=self.states).tolist()
        options = [range(count) for count in counts for _ in range(memories)]
        if np.prod([float(len(each)) for each in options]) <= most:
            every = itertools.product(*options)
        else:
            every = ([int(rng.integers(len(each))) for each in options] for _ in range(most))
        return (np.reshape(each, (self.states, memories)) for each in every)


def seen_so_far(memory, letter):
    """Which of two propositions have held: bits."""
    return memory | letter[0] | letter[1] << 1


def owned_process(rows, world):
    """The decision process of (state, {successor: probability}) choices."""
    choices = [[row for owner, row in rows if owner == state] for state in range(world.states)]
    return process_of(choices, world.labels, world.starts)
