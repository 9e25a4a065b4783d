"""What the violating paths were lost by: detection errors, alone or together, or no report.

*Losing* is violating the requirement. A run counts up to the first product state in which losing is certain with the
measured detector and with a perfect one, or up to the bottom component in which it is lost
(`runs.prospects`); later reports do not matter. Causes are detection errors only. A *kind* of detection error is
a cell off the diagonal of the matrices: distance bin, true label, reported label. On one step of a violating path

* a set of detection errors *could have helped* if with these correct, and all other reports of the step as they were,
  the run had come to a state with a smaller risk of losing;
* the detection errors of the step that *count* are the members of the smallest such sets: one, where one correction
  was enough; both, where only both together were (this is the but-for test with contingencies: J. Y. Halpern, Actual
  Causality, MIT Press 2016, the modified definition, on one step).

The risk of a state is the mean of the probabilities of losing from there with the measured detector and with a
perfect one. So a correction is worth something where the measured detector loses in the end anyway (on endless runs,
or where it never makes the correct report), and a detection error that made losing less probable is no cause.

The *cause* of a violating path is the set of kinds that counted on it. The probability of losing is the sum over
these sets; the empty set says that no detection error counted: planner and dynamics lose. It is computed on the
product with a memory of the kinds so far, which only grows, so that one system of equations is solved for each set.
Kinds beyond the few that occur most on violating paths share one place in the memory.

In a losing bottom component in which correct reports need not lose, every report that occurs there occurs again and
again, almost surely: all kinds that count in it belong to the cause of a run that enters it.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.counterexamples.patterns import (
    MOST_STATES,
    DetectionError,
    Moves,
    Patterns,
    PatternSearch,
    Reports,
)
from verifier.analysis.counterexamples.runs import Prospects
from verifier.analysis.objective import Objective, led_by_observation
from verifier.analysis.sensitivity.adjoint import Values
from verifier.base.arrays import Floats, Ints, numbered_rows
from verifier.base.errors import NoAnswerError
from verifier.base.graphs import components
from verifier.base.numbers import significant
from verifier.checking.enclosure import AGREEMENT

MOST_KINDS = 5
"""Kinds of detection errors whose sets are told apart, at most."""
SAME_RISK = 1e-9
"""Risks with a smaller relative difference are the same."""
_MOST_OUTCOMES = 5_000_000

_Known: TypeAlias = frozenset[DetectionError | None]
_Heard: TypeAlias = tuple[int, int]
"""As which reports a draw is told, and would be told if it were correct; numbers of the channel."""
_Draw: TypeAlias = tuple[int, int, dict[_Heard, dict[int, float]]]
"""Bin and true label of a draw, and as what it may be told -> how likely it is with each reported label."""


@dataclass(frozen=True)
class Cause:
    """A set of types of detection errors, and the probability of losing with exactly these.

    Attributes:
        reports: the kinds, in order; none where planner and dynamics lose.
        others: whether further kinds counted beside them, of those that are not told apart.
        probability: of losing by this cause.
    """

    reports: tuple[DetectionError, ...]
    others: bool
    probability: float


@dataclass(frozen=True)
class Attribution:
    """The probability of losing by its causes.

    Attributes:
        causes: the most probable first; their probabilities add up to that of losing.
        told_apart: the kinds that causes name, in order; of too many those that count most often, these first.
        not_told_apart: the kinds behind `Cause.others`.
    """

    causes: tuple[Cause, ...]
    told_apart: tuple[DetectionError, ...]
    not_told_apart: tuple[DetectionError, ...]


class Losses:
    """The ways in which one objective is lost under one family of matrices.

    Args:
        objective, values: what was solved.
        prospects: of the states.

    Attributes:
        symbol: (q,) what counts on each transition of the product, by number; 0 for nothing.

    Raises:
        NoAnswerError: too many combinations of reports in one step.
    """

    def __init__(self, objective: Objective, values: Values, prospects: Prospects) -> None:
        self._objective, self._rates, self._prospects = objective, values.rates, prospects
        self._open = (prospects.violation > 0) & ~prospects.certain
        drawn = self._drawn(np.flatnonzero(self._open | prospects.escapable))
        self._within = self._inside(drawn)
        self._moves = self._entering(drawn)
        self._edges = self._moves.by_edge()
        self.symbol = np.zeros(len(objective.product.indices), dtype=np.int64)
        self.symbol[self._edges.edge] = self._edges.symbol

    def attribution(self, start: int, total: float, most_kinds: int = MOST_KINDS) -> Attribution:
        """The probability of losing from an initial state, by cause.

        Args:
            start: number of the initial state.
            total: the probability of losing that the causes are to add up to; they are computed without it.
            most_kinds: to tell apart, at least 1.

        Raises:
            NoAnswerError: the causes do not add up to it, as doubles have too few digits for them.
        """
        first = int(self._objective.product.start[start])
        order = self._kinds(first, most_kinds)
        few = self._most_kinds(len(order), most_kinds)
        lost = self._by_set(first, set(order[:few]))
        told_apart = [report for report in order[:few] if any(report in kinds for kinds in lost)]
        added = math.fsum(lost.values())
        if not _agree(added, total):
            message = f"the causes of losing add up to {added!r}, not to {total!r}"
            raise NoAnswerError(f"{message}: steps are so rare that too many digits are lost")
        causes = [  # scaled, as what is left are roundings
            Cause(tuple(sorted(filter(None, kinds))), None in kinds, probability * (total / added))
            for kinds, probability in lost.items()
        ]
        causes.sort(key=lambda cause: (-cause.probability, len(cause.reports), cause.reports, cause.others))
        return Attribution(tuple(causes), tuple(told_apart), tuple(sorted(order[few:])))

    def patterns(self, start: int, count: int, total: float) -> Patterns:
        """The most probable patterns of losing from an initial state, best first.

        Args:
            start: number of the initial state.
            count: of patterns, at least 1.
            total: the probability of losing, to which all patterns add up.
        """
        first = int(self._objective.product.start[start])
        search = PatternSearch(self._edges, self._open, self._prospects.violation)
        best = search.best(first, self._within.get(first), count)
        added = math.fsum(pattern.probability for pattern in best.patterns)
        if not best.complete or not _agree(added, total):
            return best
        scaled = (replace(pattern, probability=pattern.probability * (total / added)) for pattern in best.patterns)
        return replace(best, patterns=tuple(scaled))

    def _drawn(self, states: Ints) -> Moves:
        """The moves out of some states; what counts are sets of kinds."""
        objective, product = self._objective, self._objective.product
        outcomes = objective.skeleton.channel.outcome_count
        # What the world draws is as it was when a report is corrected: each outcome is looked at on its own.
        row, chance = np.repeat(objective.row[states], outcomes), objective.chances[states].ravel()
        shape = len(states), len(objective.skeleton.channel.observations), outcomes
        edges = _edges_of(objective, states).reshape(shape).swapaxes(1, 2).reshape(len(row), shape[1])
        row, chance, edges = row[chance > 0], chance[chance > 0], edges[chance > 0]
        quiet = row < 0
        drawing, led = np.flatnonzero(~quiet), edges[~quiet]
        ranks, alike = _ranks(self._prospects.risk[product.indices[led]]), _first_alike(led)
        columns = (column.astype(np.int64) for column in (row[drawing], *ranks.T, *alike.T))
        profile, profiles = numbered_rows(columns, len(drawing))
        steps = _Steps(objective, self._rates, row[drawing[profiles]].tolist())
        symbols: dict[Reports, int] = {frozenset(): 0}
        parts = [(edges[quiet, 0], chance[quiet], np.zeros(np.count_nonzero(quiet), dtype=int))]
        members = np.split(np.argsort(profile, kind="stable"), np.cumsum(np.bincount(profile))[:-1])
        for one, inside in zip(profiles.tolist(), members if len(profiles) else [], strict=True):
            reported = steps.outcomes(int(row[drawing[one]]), ranks[one].tolist(), alike[one].tolist())
            for (observation, reports), weight in reported.items():
                number = symbols.setdefault(reports, len(symbols))
                likely = weight * chance[drawing[inside]]
                parts.append((led[inside, observation], likely, np.full(len(inside), number)))
        edge, weights, symbol = map(np.concatenate, zip(*parts, strict=True))
        return Moves(edge, product.sources[edge], product.indices[edge], weights, symbol, tuple(symbols))

    def _inside(self, drawn: Moves) -> dict[int, Reports]:
        """Product states of losing components that a correct report leads out of -> all that counts in there."""
        escapable = self._prospects.escapable
        inner = np.flatnonzero(escapable[drawn.sources])
        if not len(inner):
            return {}
        number = components(len(escapable), drawn.sources[inner], drawn.targets[inner])
        counting: dict[int, Reports] = {}
        pairs = np.unique(np.column_stack([number[drawn.sources[inner]], drawn.symbol[inner]]), axis=0)
        for component, symbol in pairs.tolist():
            counting[component] = counting.get(component, frozenset()) | drawn.reports(symbol)
        return {state: counting[int(number[state])] for state in np.flatnonzero(escapable).tolist()}

    def _entering(self, drawn: Moves) -> Moves:
        """The moves out of open states; with those into a losing component counts what counts inside."""
        kept = np.flatnonzero(self._open[drawn.sources])
        symbol, targets = drawn.symbol[kept].copy(), drawn.targets[kept]
        numbers = {reports: number for number, reports in enumerate(drawn.symbols)}
        for place in np.flatnonzero(self._prospects.escapable[targets]).tolist():
            reports = drawn.reports(int(symbol[place])) | self._within[int(targets[place])]
            symbol[place] = numbers.setdefault(reports, len(numbers))
        return Moves(drawn.edge[kept], drawn.sources[kept], targets, drawn.weight[kept], symbol, tuple(numbers))

    def _most_kinds(self, kinds: int, most: int) -> int:
        """How many kinds to tell apart, so that product and memory together stay within bounds."""
        size = max(1, int(np.count_nonzero(self._open)))
        most = max(1, min(most, (MOST_STATES // size).bit_length() - 2))
        return kinds if kinds == most + 1 else most  # one alone needs no place to share

    def _kinds(self, first: int, most: int) -> list[DetectionError]:
        """The kinds that count on violating paths, those that count most often first; all kinds where these are
        few."""
        moves, violation = self._moves, self._prospects.violation
        known = frozenset().union(*self._within.values(), *(moves.reports(k) for k in range(len(moves.symbols))))
        if len(known) <= self._most_kinds(len(known), most):
            return sorted(known)
        often: dict[DetectionError, float] = dict.fromkeys(self._within.get(first, ()), 1.0)
        if self._open[first]:
            visits = moves.visits(np.ones(len(moves.symbols), dtype=bool), self._begun(first), self._open)
            flow = visits[moves.sources] * moves.weight * violation[moves.targets]
            for number, amount in enumerate(np.bincount(moves.symbol, flow, len(moves.symbols)).tolist()):
                for report in moves.reports(number) if amount > 0 else ():
                    often[report] = often.get(report, 0.0) + amount
        return sorted(often, key=lambda report: (-often[report], report))

    def _by_set(self, first: int, told_apart: set[DetectionError]) -> dict[_Known, float]:
        """The probability of losing by the set of kinds that counted; None stands for those not told apart."""
        moves = self._moves
        lost: dict[_Known, float] = {}
        count, certain = len(moves.symbols), self._prospects.certain
        added = [self._reduced(moves.reports(number), told_apart) for number in range(count)]
        if certain[first]:
            return {self._reduced(self._within.get(first, frozenset()), told_apart): 1.0}
        pending: dict[_Known, Floats] = {frozenset(): self._begun(first)} if self._open[first] else {}
        while pending:
            known = min(pending, key=len)  # what flows into a set comes from smaller ones
            staying = np.array([reports <= known for reports in added])
            flow = moves.visits(staying, pending.pop(known), self._open)[moves.sources] * moves.weight
            for following in {known | reports for reports in added}:
                taken = np.array([known | reports == following for reports in added])[moves.symbol] & (flow > 0)
                ended = float(flow[taken & certain[moves.targets]].sum())
                if ended > 0:
                    lost[following] = lost.get(following, 0.0) + ended
                on = taken & self._open[moves.targets]
                if following != known and np.any(on):
                    pending.setdefault(following, np.zeros(len(certain)))
                    pending[following] += np.bincount(moves.targets[on], flow[on], len(certain))
        return lost

    def _begun(self, first: int) -> Floats:
        begun = np.zeros(len(self._open))
        begun[first] = 1
        return begun

    @staticmethod
    def _reduced(reports: Reports, told_apart: set[DetectionError]) -> _Known:
        return frozenset(report if report in told_apart else None for report in reports)


class _Steps:
    """What counts on one step, by the channel row that the reports are drawn from and by what they lead to.

    Two draws that are told alike, and would be told alike if they were correct, stand for each other: if one counts,
    so does the other. In which bin a report is told to be is as it was when its label is corrected.
    """

    def __init__(self, objective: Objective, rates: Floats, rows: Sequence[int]) -> None:
        self._channel, self._rates = objective.skeleton.channel, rates
        self._then = self._channel.then.tolist()
        self._draws = {row: self._draws_of(row) for row in dict.fromkeys(rows)}
        needed = sum(math.prod(2 * len(heard_as) for _, _, heard_as in self._draws[row]) for row in rows)
        if needed > _MOST_OUTCOMES:
            raise NoAnswerError(
                f"up to {max(map(len, self._draws.values()))} reports are made in one step, and about "
                f"{significant(needed, 1)} combinations of them decide what counts; the limit is {_MOST_OUTCOMES:g}",
                hint="explain an environment with fewer objects at a time (--env), or ask about fewer classes",
            )

    def _draws_of(self, row: int) -> list[_Draw]:
        channel, located, draws = self._channel, self._channel.located, list[_Draw]()
        told = channel.told[None, row] if located is None else located.told[:, row]
        shares = np.ones(told.shape[:2]) if located is None else located.shares(self._rates.dtype)[:, row]
        for draw in np.flatnonzero(channel.columns[row] >= 0).tolist():
            at, true = int(channel.bins[row, draw]), int(channel.columns[row, draw])
            heard_as: dict[_Heard, dict[int, float]] = {}
            for own, share in zip(told[:, draw].tolist(), shares[:, draw].tolist(), strict=True):
                for label, rate in enumerate((self._rates[at, :, true] * share).tolist()):
                    if rate > 0:
                        labels = heard_as.setdefault((own[label], own[true]), {})
                        labels[label] = labels.get(label, 0.0) + rate
            draws.append((at, true, heard_as))
        return draws

    def outcomes(self, row: int, ranks: list[int], alike: list[int]) -> dict[tuple[int, Reports], float]:
        """(observation, what counts) -> probability.

        Args:
            ranks: rank of the risk behind each observation.
            alike: for each observation the first one that leads to the same state; those in the result.
        """
        draws, likely = self._draws[row], dict[tuple[int, Reports], float]()
        known: dict[tuple[_Heard, ...], tuple[int, set[_Heard]]] = {}
        for heard in itertools.product(*(heard_as for _, _, heard_as in draws)):
            key = tuple(sorted(heard))
            if key not in known:
                known[key] = alike[self._together([told for told, _ in heard])], self._counting(heard, ranks)
            observation, counting = known[key]
            weight, reported = 1.0, []
            for (at, true, heard_as), group in zip(draws, heard, strict=True):
                if group in counting:
                    own = heard_as[group].items()
                    reported.append([(DetectionError(at, label, true), rate) for label, rate in own])
                else:
                    weight *= math.fsum(heard_as[group].values())
            for kinds in itertools.product(*reported):
                reports = frozenset(kind for kind, _ in kinds)
                probability = weight * math.prod(rate for _, rate in kinds)
                likely[observation, reports] = likely.get((observation, reports), 0.0) + probability
        return likely

    def _counting(self, heard: Sequence[_Heard], ranks: list[int]) -> set[_Heard]:
        """What counts: members of the smallest sets of detection errors that could have helped."""
        risk = ranks[self._together([told for told, _ in heard])]
        wrong = [k for k, (told, right) in enumerate(heard) if told != right]
        helping: list[set[int]] = []
        for size in range(len(wrong)):
            for chosen in map(set, itertools.combinations(wrong, size + 1)):
                corrected = [right if k in chosen else told for k, (told, right) in enumerate(heard)]
                if not any(map(chosen.issuperset, helping)) and ranks[self._together(corrected)] < risk:
                    helping.append(chosen)
        return {heard[k] for chosen in helping for k in chosen}

    def _together(self, told: Sequence[int]) -> int:
        observation = 0
        for one in told:
            observation = self._then[observation][one]
        return int(observation)


def _agree(added: float, total: float) -> bool:
    return abs(added - total) <= AGREEMENT * total


def _edges_of(objective: Objective, states: Ints) -> Ints:
    """(k, observations) the transition of the product that each observation takes in each of the states.

    Where all observations lead to one product state it is one of the transitions that do.
    """
    product, skeleton = objective.product, objective.skeleton
    place = np.full(objective.state_count, -1, dtype=np.int64)
    place[states] = np.arange(len(states))
    inside = np.flatnonzero(place[product.sources] >= 0)
    source, entry = place[product.sources[inside]], skeleton.entry[product.edge[inside]]
    return led_by_observation(skeleton, len(states), source, entry, inside)[0]


def _ranks(risk: Floats) -> NDArray[np.int16]:
    """(k, w) rank of each risk in its row; those that differ by no more than `SAME_RISK` have the same."""
    order = np.argsort(risk, axis=1, kind="stable")
    ordered = np.take_along_axis(risk, order, axis=1)
    steps = np.zeros(risk.shape, dtype=np.int16)
    steps[:, 1:] = np.diff(ordered, axis=1) > SAME_RISK * ordered[:, 1:]
    ranks = np.empty_like(steps)
    np.put_along_axis(ranks, order, np.cumsum(steps, axis=1, dtype=np.int16), axis=1)
    return ranks


def _first_alike(following: Ints) -> NDArray[np.int16]:
    """(k, w) for each place in a row the first with the same number."""
    first = np.zeros(following.shape, dtype=np.int16)
    for place in reversed(range(following.shape[1])):
        first[following == following[:, [place]]] = place
    return first
