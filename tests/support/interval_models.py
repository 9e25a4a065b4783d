"""Small models with uncertain columns, and slow, obviously correct answers about them.

A model is a list of states; each draws its report(s) from columns of its own and moves by what is reported. The
answers come from enumerating the vertices of the column polytopes.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from small_chains import process_of
from small_objectives import channel_of, objective_of, random_rates

from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.robust.region import Region, groups_of
from verifier.analysis.robust.step import greatest_masses, uncertain_step

SIMPLE = ["F p", "G p", "p U q", "(F p) & (G !q)", "X (p | X q)", "F[0,3] p", "(!q) W p"]
RECURRENT = ["G F p", "F G p", "(G F p) -> (G F q)", "G (p -> F q)", "(G F p) & (F G !q)", "G F (p & X q)"]


def contains(region: Region, rates: np.ndarray) -> bool:
    """Whether (bins, predicted, true) rates lie in a region; compared are exact numbers, sums are not looked at."""
    for index, column in np.argwhere(region.needed).tolist():
        rate = [Fraction(each) * UNIT for each in rates[index, :, column]]
        for group in range(region.group_count):
            total = sum((r for r, g in zip(rate, region.group.tolist(), strict=True) if g == group), Fraction(0))
            if not region.lower[index, group, column] <= total <= region.upper[index, group, column]:
                return False
    return True


def region_of(objective, bounds, labels=None):
    """The region with these bounds; for any values of all other rates.

    Args:
        objective: says how labels are grouped.
        bounds: (bin, true) -> one (lower, upper) per group, as fractions or numbers of which 10^9 is a multiple.
    """
    channel = objective.skeleton.channel
    group = groups_of(channel)
    bins = max(int(channel.bins.max()), *(index for index, _ in bounds)) + 1
    shape = (bins, int(group.max()) + 1, len(channel.labels))
    lower, upper = np.zeros(shape, dtype=np.int64), np.full(shape, UNIT)
    needed = np.zeros((bins, len(channel.labels)), dtype=bool)
    for index, column in objective.skeleton.columns_needed().tolist():
        needed[index, column] = True
    for (index, column), each in bounds.items():
        for number, (low, high) in enumerate(each):
            lower[index, number, column], upper[index, number, column] = exactly(low), exactly(high)
    return Region(channel.labels, group, lower, upper, needed)


def exactly(rate):
    """A rate in billionths, which must be whole."""
    scaled = Fraction(rate) * UNIT
    assert scaled.denominator == 1, rate
    return int(scaled)


def supports(low, high, unit):
    """The sets of reports that some rates between the ends give chance to, by trying all sets."""
    for size in range(1, len(low) + 1):
        for kept in itertools.combinations(range(len(low)), size):
            fewest = sum(max(low[k], 1) for k in kept)  # all are multiples of ten, so that 1 is little
            left_out = any(low[k] for k in range(len(low)) if k not in kept)
            if not left_out and all(high[k] for k in kept) and fewest <= unit <= sum(high[k] for k in kept):
                yield kept


def vertices(lower, upper, unit=UNIT):
    """The extreme points of {lower <= mu <= upper, sum mu = unit}: all but one coordinate at an end."""
    found = set()
    size = len(lower)
    for free in range(size):
        others = [k for k in range(size) if k != free]
        for ends in itertools.product(*((lower[k], upper[k]) for k in others)):
            rest = unit - sum(ends)
            if lower[free] <= rest <= upper[free]:
                point = [0] * size
                point[free] = rest
                for k, end in zip(others, ends, strict=True):
                    point[k] = end
                found.add(tuple(point))
    return sorted(found)


@dataclass
class Model:
    """States that each draw once from a column of their own: bin s, true label 1.

    Attributes:
        labels: of the matrices; every label is told as itself.
        following: (n, labels) successors.
        true_in: proposition -> states.
        bounds: state -> one (lower, upper) per label; states without bounds have ended.
        starts: initial states.
    """

    labels: tuple
    following: list
    true_in: dict
    bounds: dict
    starts: tuple = (0,)
    formulas: dict = field(default_factory=dict)

    @property
    def size(self):
        return len(self.following)

    def objective(self, formula):
        told = tuple(frozenset(each) for each in self.labels)
        bins = np.arange(self.size)[:, None]
        channel = channel_of(self.labels, bins, np.ones_like(bins), told)
        ended = [s for s in range(self.size) if s not in self.bounds]
        return objective_of(channel, self.following, bins[:, 0], self.true_in, formula, self.starts, ended)

    def region(self, objective):
        needed = {tuple(each) for each in objective.skeleton.columns_needed().tolist()}
        return region_of(objective, {(s, 1): each for s, each in self.bounds.items() if (s, 1) in needed})

    def stepped(self, formula):
        """An objective on the model, and one step of it over the model's region."""
        objective = self.objective(formula)
        return objective, uncertain_step(objective, self.region(objective))

    def choices(self, state):
        """The vertices of a state's column; one point where it has ended."""
        if state not in self.bounds:
            return [(UNIT, *(0,) * (len(self.labels) - 1))]
        low, high = zip(*self.bounds[state], strict=True)
        return vertices([exactly(each) for each in low], [exactly(each) for each in high])

    def all_vertex_rates(self):
        """(M, bins, labels, labels) the matrices with a vertex in every column."""
        choices = [self.choices(s) for s in range(self.size)]
        rates = np.zeros(
            (int(np.prod([len(each) for each in choices])), self.size, len(self.labels), len(self.labels))
        )
        rates[:, :, 0] = 1
        for number, chosen in enumerate(itertools.product(*choices)):
            rates[number, :, :, 1] = np.array(chosen) / UNIT
        return rates

    def process(self):
        """The decision process in which every vertex of every state is a choice."""
        states = [[self.row(state, chosen) for chosen in self.choices(state)] for state in range(self.size)]
        return process_of(states, self.true_in, sorted(self.starts))

    def row(self, state, chosen):
        """{successor: probability} of a state whose column has these masses."""
        row = {}
        for successor, mass in zip(self.following[state], chosen, strict=True):
            target = state if state not in self.bounds else successor
            row[target] = row.get(target, 0) + Fraction(int(mass), UNIT)
        return {target: share for target, share in row.items() if share > 0}


def random_model(rng, states=5, labels=3, zeros=0.3, width=0.3, ended=2):
    """A random model over propositions p and q whose last states have ended; rates are multiples of 1/1000.

    With chance `zeros` a lower bound is 0.
    """
    following = rng.integers(0, states, (states, labels)).tolist()
    bounds = {}
    for state in range(states - ended):
        point = rng.multinomial(1000, rng.dirichlet(np.full(labels, 0.8)))
        low = np.maximum(point - rng.integers(0, int(1000 * width), labels), 0)
        high = np.minimum(point + rng.integers(0, int(1000 * width), labels), 1000)
        low[rng.random(labels) < zeros] = 0
        bounds[state] = [(Fraction(int(a), 1000), Fraction(int(b), 1000)) for a, b in zip(low, high, strict=True)]
    # The states that have ended differ, so that it matters where a run ends up.
    true_in = {"p": set(), "q": set()}
    for state in range(states):
        for place, name in enumerate(true_in):
            if (state - (states - ended)) % 2 == place if state >= states - ended else rng.random() < 0.3:
                true_in[name].add(state)
    names = ((), ("a",), ("b",), ("c",))[:labels]
    return Model(names, following, true_in, bounds, (0, 1))


def random_region(rng, objective, bins, labels, zero=0.3):
    """A random region around random rates, and how to draw rates from it."""
    rates = np.floor(random_rates(rng, bins, labels, zero) * UNIT).astype(np.int64)
    rates[:, 0] += UNIT - rates.sum(axis=1)
    width = rng.integers(0, 3 * 10**8, rates.shape)
    group = groups_of(objective.skeleton.channel)
    lower, upper = np.maximum(rates - width, 0), np.minimum(rates + width, UNIT)
    return Region(objective.skeleton.channel.labels, group, lower, upper, np.ones((bins, labels), dtype=bool))


def random_member(rng, region):
    """(bins, groups, true) rates of the region: a random vertex, or a mean of some."""
    groups = region.group_count
    low, high = (each.swapaxes(1, 2).reshape(-1, groups) for each in (region.lower, region.upper))
    points = [greatest_masses(rng.normal(size=low.shape), low, high) for _ in range(rng.integers(1, 4))]
    mean = np.average(points, axis=0, weights=rng.random(len(points)))
    bins, _, true = region.lower.shape
    return mean.reshape(bins, true, groups).swapaxes(1, 2) / UNIT
