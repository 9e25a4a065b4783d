"""Causes and patterns of violating paths by their definition: fractions, every tuple of reports, one step at a time.

For systems without cycles that are lost in some states: a run is lost when it comes to one. Nothing of the product,
of solving equations or of the search for patterns is used.
"""

import itertools
from fractions import Fraction


class PlainSystem:
    """States in topological order, `following[s][y]` their successors, and the draws behind each state.

    Args:
        channel: labels, observations, bins and columns of the draws.
        following: (n, observations) larger numbers, for all states that are not ends.
        row: (n,) channel row of each state.
        lost: states in which the run is lost.
        rates: (bins, predicted, true) nested lists of fractions.
        ends: states without successors, the lost ones included.

    Where the channel's world draws, `following[s][y * outcomes + w]` is where outcome w leads.
    """

    def __init__(self, channel, following, row, lost, rates, ends):
        self.channel, self.following, self.row, self.lost, self.ends = channel, following, row, lost, ends
        self.motion = [[Fraction(1)]] * len(channel.bins) if channel.motion is None else channel.motion.tolist()
        self.rates = rates
        size = range(len(channel.labels))
        self.perfect = [[[Fraction(y == t) for t in size] for y in size] for _ in rates]

    def draws(self, state):
        row = self.row[state]
        pairs = zip(self.channel.bins[row].tolist(), self.channel.columns[row].tolist(), strict=True)
        return [(at, true) for at, true in pairs if true >= 0]

    def drawn(self, state):
        """(outcome, probability) of all that the world may draw in a state."""
        return [(w, p) for w, p in enumerate(self.motion[self.row[state]]) if p]

    def next(self, state, labels, w):
        asked = frozenset().union(*self.channel.observations)
        told = frozenset().union(*(self.channel.labels[label] for label in labels)) & asked
        return self.following[state][self.channel.observations.index(told) * len(self.motion[0]) + w]

    def reports(self, state, rates):
        """(labels, probability) of everything that may be reported in a state."""
        draws = self.draws(state)
        for labels in itertools.product(range(len(self.channel.labels)), repeat=len(draws)):
            probability = Fraction(1)
            for label, (at, true) in zip(labels, draws, strict=True):
                probability *= rates[at][label][true]
            if probability:
                yield labels, probability

    def losing(self, rates):
        """The probability of losing from each state."""
        found = [Fraction(state in self.lost) for state in range(len(self.following))]
        for state in reversed(range(len(found))):
            if state not in self.ends:
                found[state] = sum(
                    p * q * found[self.next(state, labels, w)]
                    for labels, p in self.reports(state, rates)
                    for w, q in self.drawn(state)
                )
        return found

    def counting(self, state, labels, w, risk):
        """The detection errors that count: members of the smallest sets with which the risk would have been
        smaller, the world's draw being as it was."""
        draws = self.draws(state)
        wrong = [k for k, label in enumerate(labels) if label != draws[k][1]]
        helping = []
        for chosen in itertools.chain.from_iterable(itertools.combinations(wrong, n) for n in range(len(wrong) + 1)):
            corrected = [draws[k][1] if k in chosen else label for k, label in enumerate(labels)]
            if risk[self.next(state, corrected, w)] < risk[self.next(state, labels, w)]:
                helping.append(set(chosen))
        smallest = [one for one in helping if not any(other < one for other in helping)]
        return frozenset((draws[k][0], labels[k], draws[k][1]) for k in set().union(*smallest))

    def often(self):
        """Kind -> how often it counts on violating runs from state 0, the runs weighted with their probabilities."""
        losing, perfect = self.losing(self.rates), self.losing(self.perfect)
        risk = [(measured + sure) / 2 for measured, sure in zip(losing, perfect, strict=True)]
        passed, times = [Fraction(state == 0) for state in range(len(risk))], {}
        for state in [state for state in range(len(risk)) if state not in self.ends and risk[state] < 1]:
            for (labels, p), (w, q) in itertools.product(self.reports(state, self.rates), self.drawn(state)):
                following, weight = self.next(state, labels, w), passed[state] * p * q
                passed[following] += weight
                for kind in self.counting(state, labels, w, risk):
                    times[kind] = times.get(kind, 0) + weight * losing[following]
        return times

    def causes_and_patterns(self, start=0):
        """Two dictionaries: set of kinds -> probability of losing by it; pattern -> the same."""
        both = zip(self.losing(self.rates), self.losing(self.perfect), strict=True)
        risk = [(measured + perfect) / 2 for measured, perfect in both]
        flowing = [{} for _ in self.following]
        flowing[start][frozenset(), ()] = Fraction(1)
        by_set, by_pattern = {}, {}
        for state, here in enumerate(flowing):
            if state in self.lost or risk[state] == 1:
                share = self.losing(self.rates)[state]
                for (kinds, pattern), probability in here.items():
                    by_set[kinds] = by_set.get(kinds, 0) + probability * share
                    by_pattern[pattern] = by_pattern.get(pattern, 0) + probability * share
                continue
            if state in self.ends:
                continue
            outcomes = [
                (self.next(state, labels, w), self.counting(state, labels, w, risk), probability * chance)
                for labels, probability in self.reports(state, self.rates)
                for w, chance in self.drawn(state)
            ]
            open_ = {following: set() for following, _, _ in outcomes}
            for following, kinds, _ in outcomes:
                open_[following].add(kinds)
            for following, kinds, probability in outcomes:
                step = frozenset(open_[following])
                for (before, pattern), mass in here.items():
                    quiet = step == {frozenset()} or (pattern and pattern[-1] == step)
                    key = before | kinds, pattern if quiet else (*pattern, step)
                    flowing[following][key] = flowing[following].get(key, 0) + mass * probability
        return by_set, by_pattern


def corrected(rates, kinds):
    """Rates with all the mass of some (bin, predicted, true) moved to the correct label."""
    moved = [[list(row) for row in cells] for cells in rates]
    for at, predicted, true in kinds:
        moved[at][true][true] += moved[at][predicted][true]
        moved[at][predicted][true] = Fraction(0)
    return moved
