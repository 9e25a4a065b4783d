r"""Bounds whatever the dependence: over every joint law of reports with given rates in each step.

Assumed is only this: for step t, object i and bin k there is the report Y[t, i, k] that the detector would give of i
at t if i were in k, and Pr(Y[t, i, k] = r) = mu[k, x_i](r), where x_i is its true label. The joint law over all t, i
and k is arbitrary: misses that persist, objects that are never seen, fog over all objects at once. With f_t(z, y) the
chance of being in z at step t and getting the reports y = (y_1, ..), the least probability of acceptance is the
optimum of

    sum_y f_0(z0, y) = 1;    sum_y f_{t+1}(z', y) = sum over (z, y) of f_t(z, y) Pr(z' | z, y)
    sum over z with i in k, and y with y_i = r, of f_t(z, y) <= mu[k, x_i](r)            for all t, i, k, r.       (1)

*Necessary*: who is in k at t and told r has Y[t, i, k] = r. *Sufficient*: what a run does not read can be filled in,
as for each (t, i, k) the rests mu(r) - flow are not negative and sum to the chance of not being in k at t. For the
same reason decided runs, and reports that lead nowhere else, may be left out of (1). The inequality must not be
replaced by an equation among the runs that are in k at t: in a closed loop who is there depends on earlier reports.

*Decided nodes* of the product with the formula are those from which every path accepts, or none does
(`analysis.robust.any_dependence`): nothing almost sure counts, as a report may persist for ever. What is undecided
after the last step counts 0 for the lower end and 1 for the upper end, so both hold for every number of steps.

*Rates in intervals* are variables l <= mu <= u that sum to 1 in each column, one for all steps or one for each.

*Proof.* For multipliers y, w of the equations and u <= 0 of (1), and reduced costs d = c - A'y, the number

    y_0 + sum w + sum over t of min(0, least d of step t) + sum over mu of (d l if d >= 0 else d u)                (2)

is a lower bound of the optimum, as at most 1 flows in each step. It is computed in fractions by `step_kernel`, from
multipliers that are rounded to billionths; it needs no exact solution, and nothing of what found it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array

from verifier.analysis import step_kernel
from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.objective import Objective
from verifier.analysis.robust.any_dependence import Ends
from verifier.analysis.robust.inner_bounds import Side
from verifier.analysis.robust.region import Region, Told, by_group, told_of
from verifier.base.arrays import Ints, Mask
from verifier.base.errors import EngineError, NoAnswerError
from verifier.base.graphs import components
from verifier.base.numbers import significant

SIDES: tuple[Side, ...] = get_args(Side)
DEFAULT_HORIZON = 50
"""Steps that are looked at where paths need not end."""


@dataclass(frozen=True, eq=False)
class Rates:
    """What is known of the chance of each report.

    Attributes:
        lower, upper: (bins, groups, true) fractions.
        shared: whether they are the same in every step.
    """

    lower: NDArray[Any]
    upper: NDArray[Any]
    shared: bool

    @classmethod
    def of_region(cls, region: Region, shared: bool) -> Rates:
        """Those of a region."""
        fraction = np.frompyfunc(lambda billionths: Fraction(int(billionths), UNIT), 1, 1)
        return cls(fraction(region.lower), fraction(region.upper), shared)

    @classmethod
    def of_counts(cls, counts: Ints, group: Ints) -> Rates:
        """Those of (bins, predicted, true) counts, exactly; 0 to 1 in columns without items."""
        share = np.frompyfunc(lambda k, n, unknown: Fraction(int(k), int(n)) if n else Fraction(unknown), 3, 1)
        items, total = by_group(counts[None], group)[0], counts.sum(axis=1)[:, None]
        return cls(share(items, total, 0), share(items, total, 1), shared=True)


@dataclass(frozen=True, eq=False)
class Program:
    """The flows (1) from one initial state, over some steps; V flows, R nodes in steps, Q limits, M rates.

    Attributes:
        step: (V,) of each flow.
        own: (V,) the node and step that it leaves; the first is where it begins.
        after: (V, outcomes) the node and step that it leads to; -1 where that is decided, or behind the last step.
        often: (V, outcomes) whole numbers, how often of `total`.
        wins, loses: (V,) whole numbers, how often of `total` it leads to acceptance, to rejection.
        total: see there.
        limits: (V, draws) the limit that each report counts for; -1 for none.
        rate_of: (Q,) which rate limits.
        column_of: (M,) which column a rate is in; those of a column sum to 1.
        lower, upper: (M,) fractions.
        horizon: steps.
    """

    step: Ints
    own: Ints
    after: Ints
    often: NDArray[Any]
    wins: NDArray[Any]
    loses: NDArray[Any]
    total: int
    limits: Ints
    rate_of: Ints
    column_of: Ints
    lower: NDArray[Any]
    upper: NDArray[Any]
    horizon: int

    @property
    def nodes(self) -> int:
        """R."""
        return int(self.own.max()) + 1

    def document(self, side: str) -> dict[str, Any]:
        """The program of one side as `verifier.analysis.step_kernel` reads it."""
        names = ("own", "step", "after", "often", "limits", "rate_of", "column_of")
        arrays = {name: getattr(self, name).tolist() for name in names}
        cost = (self.wins if side == "lower" else self.loses).tolist()
        ends = {name: [str(end) for end in getattr(self, name).tolist()] for name in ("lower", "upper")}
        return {"total": self.total, "cost": cost, **arrays, **ends}


@dataclass(frozen=True, eq=False)
class Proof:
    """What proves one end.

    Attributes:
        program: whose flows cost what is bounded.
        side: "lower" for acceptance, "upper" for rejection.
        multipliers: of nodes, columns and limits, in billionths; positive ones of limits are 0.
    """

    program: Program
    side: str
    multipliers: dict[str, list[int]]

    def bound(self) -> Fraction:
        """The number (2), exactly."""
        return step_kernel.proven_cost(self.program.document(self.side), self.multipliers)

    def document(self, claimed: Fraction) -> dict[str, Any]:
        """The certificate of an end of P, which `verifier.analysis.step_kernel` decides."""
        program = self.program.document(self.side)
        return {"side": self.side, "claimed": str(claimed), "program": program, "multipliers": self.multipliers}


@dataclass(frozen=True)
class FreeBounds:
    """Bounds on a probability whatever the dependence.

    Attributes:
        lower, upper: proven, in fractions.
        horizon: steps that were looked at.
        flows: variables of the linear program.
        undecided: what flows on behind the last step, in the optimum of the lower and of the upper end.
        proofs: of the lower and of the upper end; none where nothing is left to prove.
    """

    lower: Fraction
    upper: Fraction
    horizon: int
    flows: int
    undecided: tuple[float, float]
    proofs: tuple[Proof, ...] = ()


def dependence_free(
    objective: Objective, ends: Ends, rates: Rates, start: int, horizon: int | None, most_flows: int
) -> FreeBounds:
    """Least and greatest probability of a formula from one initial state, whatever the dependence.

    Args:
        objective: of a skeleton without contexts.
        ends: which product states can still lead to what.
        rates: of its columns.
        start: number of the initial state.
        horizon: steps; None for those of the longest path, or `DEFAULT_HORIZON` where there is none.
        most_flows: of the linear program.

    Raises:
        NoAnswerError: it would be larger, or the solver finds no solution.
    """
    program = program_from(objective, ends, rates, start, horizon, most_flows)
    if program is None:
        value = decided_value(objective, ends, start)
        return FreeBounds(value, value, 0, 0, (0.0, 0.0))
    (lower, left_below, low), (rejected, left_above, high) = (_least(program, side) for side in SIDES)
    below, above = max(lower, Fraction(0)), min(1 - rejected, Fraction(1))
    return FreeBounds(below, above, program.horizon, len(program.step), (left_below, left_above), (low, high))


def decided_value(objective: Objective, ends: Ends, start: int) -> Fraction:
    """The probability from an initial state from which nothing is left to prove, 0 or 1."""
    return Fraction(int(ends.can_hold[int(objective.product.start[start])]))


def program_from(
    objective: Objective, ends: Ends, rates: Rates, start: int, horizon: int | None, most_flows: int
) -> Program | None:
    """The flows from one initial state; None where nothing is left to prove. Arguments as for `dependence_free`."""
    node = int(objective.product.start[start])
    if not ends.can_fail[node] or not ends.can_hold[node]:
        return None
    return _Unrolled(objective, ends, rates, most_flows).program(node, horizon)


def _least(program: Program, side: str) -> tuple[Fraction, float, Proof]:
    """A proven lower bound of the least cost, how much of the flow is undecided in that optimum, and the proof."""
    cost = program.wins if side == "lower" else program.loses
    flows, rates, columns = len(program.step), len(program.column_of), len(set(program.column_of.tolist()))
    every, share = np.arange(flows), np.asarray(program.often / program.total, dtype=float)
    led, outcome = np.nonzero(program.after != -1)
    row = np.concatenate([program.own, program.after[led, outcome], program.nodes + program.column_of])
    column = np.concatenate([every, led, flows + np.arange(rates)])
    value = np.concatenate([np.ones(flows), -share[led, outcome], np.ones(rates)])
    equal = coo_array((value, (row, column)), shape=(program.nodes + columns, flows + rates)).tocsr()
    right = np.concatenate([[1.0], np.zeros(program.nodes - 1), np.ones(columns)])
    flow, draw = np.nonzero(program.limits >= 0)
    limited = len(program.rate_of)
    row = np.concatenate([program.limits[flow, draw], np.arange(limited)])
    column = np.concatenate([flow, flows + program.rate_of])
    value = np.concatenate([np.ones(len(flow)), -np.ones(limited)])
    below = coo_array((value, (row, column)), shape=(limited, flows + rates)).tocsr()
    ends = np.stack([np.asarray(array, dtype=float) for array in (program.lower, program.upper)], axis=1)
    ends_of_all: Any = np.concatenate([np.tile([0.0, np.inf], (flows, 1)), ends.reshape(-1, 2)])
    objective = np.concatenate([np.asarray(cost / program.total, dtype=float), np.zeros(rates)])
    matrices: Any = (below, equal)  # sparse ones are accepted, whatever the types of the library say
    optimum = linprog(objective, matrices[0], np.zeros(limited), matrices[1], right, ends_of_all, method="highs-ipm")
    if optimum.status != 0 or optimum.fun is None or optimum.x is None:
        raise NoAnswerError(f"the linear program of {flows} flows has no answer: {optimum.message}")
    duals, limits = (np.rint(rows.marginals * UNIT).astype(np.int64) for rows in (optimum.eqlin, optimum.ineqlin))
    parts = duals[: program.nodes], duals[program.nodes :], np.minimum(limits, 0)
    names = ("nodes", "columns", "limits")
    proof = Proof(program, side, {name: part.tolist() for name, part in zip(names, parts, strict=True)})
    proven = proof.bound()
    if optimum.fun < float(proven) - 1e-6:
        raise EngineError(
            f"a linear program has the optimum {significant(optimum.fun, 9)}, below the proven bound "
            f"{significant(float(proven), 9)}"
        )
    kept = np.where(program.after != -1, program.often, 0).sum(axis=1)
    behind = np.asarray((program.total - program.wins - program.loses - kept) / program.total, dtype=float)
    return proven, float(optimum.x[:flows] @ behind), proof


@dataclass
class _Unrolled:
    """Follows the product from step to step."""

    objective: Objective
    ends: Ends
    rates: Rates
    most_flows: int
    _limits: dict[tuple[int, ...], int] = field(default_factory=dict)
    _rates: dict[tuple[int, ...], int] = field(default_factory=dict)
    _rate_of: list[int] = field(default_factory=list)

    @cached_property
    def _told(self) -> Told:
        """As what the labels are told; NoAnswerError where they may be reported in other bins."""
        told = told_of(self.objective.skeleton.channel)
        if told.ways > 1:
            raise NoAnswerError("bounds whatever the dependence are not known where reported distances err")
        return told

    def program(self, start: int, horizon: int | None) -> Program:
        """The flows from a product state."""
        open_ = self.ends.can_fail & self.ends.can_hold
        last = self._longest(open_) if horizon is None else horizon
        parts: list[dict[str, Any]] = []
        layer, first, flows = np.array([start]), 0, 0
        for step in range(last):
            numbers = first + np.arange(len(layer))
            first += len(layer)
            led = [self._moves(layer[where], numbers[where], row, step) for row, where in self._by_row(layer)]
            flows += sum(len(entry["own"]) for entry in led)
            if flows > self.most_flows:
                raise NoAnswerError(
                    f"bounds whatever the dependence need more than {self.most_flows} flows, in step {step + 1}",
                    hint="a shorter --horizon, or raise --max-lp",
                )
            reached = np.unique(np.concatenate([entry["to"].ravel() for entry in led]))
            layer = reached[open_[reached]]
            for entry in led:
                goes_on = open_[entry["to"]] & (step + 1 < last)
                entry["after"] = np.where(goes_on, first + np.searchsorted(layer, entry["to"]), -1)
            parts += led
            if not len(layer):
                last = step + 1
                break
        return self._joined(parts, last)

    def _joined(self, parts: Sequence[Mapping[str, Any]], horizon: int) -> Program:
        own, to, after, step, often = (
            np.concatenate([part[name] for part in parts]) for name in ("own", "to", "after", "step", "often")
        )
        width = max(part["limits"].shape[1] for part in parts)
        limits = np.full((len(own), width), -1, dtype=np.int64)
        ends_at = np.cumsum([len(part["own"]) for part in parts])
        for part, end in zip(parts, ends_at.tolist(), strict=True):
            limits[end - len(part["own"]) : end, : part["limits"].shape[1]] = part["limits"]
        total = math.lcm(*(Fraction(number).denominator for number in often.ravel().tolist()))
        whole = np.frompyfunc(lambda share: int(share * total), 1, 1)(often)
        columns: dict[tuple[int, ...], int] = {}
        column_of = [columns.setdefault(key[:3], len(columns)) for key in self._rates]
        places = [(at, report, true) for _, at, true, report in self._rates]
        return Program(
            step,
            own,
            after,
            whole,
            (whole * ~self.ends.can_fail[to]).sum(axis=1),
            (whole * ~self.ends.can_hold[to]).sum(axis=1),
            total,
            limits,
            np.array(self._rate_of, dtype=np.int64),
            np.array(column_of, dtype=np.int64),
            np.array([self.rates.lower[place] for place in places], dtype=object),
            np.array([self.rates.upper[place] for place in places], dtype=object),
            horizon,
        )

    def _longest(self, open_: Mask) -> int:
        """Steps after which every path is decided; the default where a path may circle."""
        sources, seen = np.nonzero(np.broadcast_to(open_[:, None], self.objective.following.shape))
        targets = self.objective.following[sources, seen]
        kept = open_[targets]
        sources, targets = sources[kept], targets[kept]
        of = components(len(open_), sources, targets)
        return DEFAULT_HORIZON if (of[sources] == of[targets]).any() else len(open_)

    def _by_row(self, layer: Ints) -> list[tuple[int, Ints]]:
        rows = self.objective.row[layer]
        return [(int(row), np.flatnonzero(rows == row)) for row in np.unique(rows).tolist()]

    def _moves(self, nodes: Ints, numbers: Ints, row: int, step: int) -> dict[str, Any]:
        """The flows out of some nodes that draw from one row of the channel; -1 where reports lead nowhere else."""
        observations, limits = self._reports(row, step)
        outcomes = self.objective.skeleton.channel.outcome_count
        to = self.objective.following[nodes].reshape(len(nodes), -1, outcomes)[:, observations]
        chances = self.objective.skeleton.channel.chances(np.dtype(object))[self.objective.moving[nodes]]
        count = len(nodes) * len(observations)
        return {
            "own": np.repeat(numbers, len(observations)),
            "to": to.reshape(count, outcomes),
            "often": np.repeat(chances, len(observations), axis=0),
            "step": np.full(count, step),
            "limits": np.tile(limits, (len(nodes), 1)),
        }

    def _reports(self, row: int, step: int) -> tuple[Ints, Ints]:
        """The observation of each combination of reports, and (combinations, draws) the limit of each report."""
        channel, told = self.objective.skeleton.channel, self._told
        if row < 0:
            return np.zeros(1, dtype=np.int64), np.zeros((1, 0), dtype=np.int64)
        assert channel.who is not None
        draws = np.flatnonzero(channel.columns[row] >= 0).tolist()
        observations, limits = [], []
        for reports in itertools.product(range(told.group_count), repeat=len(draws)):
            seen, own = 0, []
            for draw, report in zip(draws, reports, strict=True):
                at, true = int(channel.bins[row, draw]), int(channel.columns[row, draw])
                seen = int(told.after[seen, told.kind[row, draw], 0, report])
                own.append(self._limit((step, draw, int(channel.who[row, draw]), at, true, report)))
            observations.append(seen)
            limits.append(own)
        if len(observations) > self.most_flows:
            raise NoAnswerError(f"a step has {len(observations)} combinations of reports", hint="raise --max-lp")
        return np.array(observations, dtype=np.int64), np.array(limits, dtype=np.int64).reshape(len(limits), -1)

    def _limit(self, key: tuple[int, ...]) -> int:
        """The number of a limit (step, draw, who, bin, true, report)."""
        if key not in self._limits:
            step, _, _, at, true, _ = key
            for report in range(self._told.group_count):  # a column sums to 1 with all of its reports
                self._rates.setdefault((-1 if self.rates.shared else step, at, true, report), len(self._rates))
            self._limits[key] = len(self._limits)
            self._rate_of.append(self._rates[(-1 if self.rates.shared else step, at, true, key[-1])])
        return self._limits[key]
