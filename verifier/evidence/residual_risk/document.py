"""The residual risk as a document: what is stated, and what follows from it; no value of it contradicts itself.

Residual risk by exact interval arithmetic, from what its document states.

For one hazard, over environments e and conditions c

    R = sum_e L_e * [ (1 - u_e) * sum_c w_ec * P_ec + u_e * Q_e ]     hazardous behaviour per hour
    A = R * exposed * uncontrolled * severe                           harm per hour

with L the encounters per hour, w the shares of the conditions among the encounters in any of them, which add up to 1,
u the share of encounters in none of them, P the probability of the event in one encounter, and Q that in an encounter
of which nothing is known. R grows with L, P, Q and every factor, and with u where Q = 1. So the upper end has all of
them at their upper ends, Q = 1, and the shares for which the sum is greatest: a fractional knapsack, whose greedy
solution is a vertex of the polytope of shares. The lower end has L, P and the factors at their lower ends, the shares
for which the sum is least, and Q = 0 with u at its upper end: an encounter of which nothing is known may be harmless.
All ends hold at once with the chance 1 - (sum of the chances of every interval to miss). Everything is computed in
fractions of what the document states, and rounded outwards once. Several hazards: the sums of their ends, whatever
their dependence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import starmap
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np

from verifier.base.documents import (
    Condition,
    Derives,
    Exact,
    FractionText,
    Limits,
    Magnitude,
    Share,
    derived,
    fraction_of,
)
from verifier.checking.verdicts import Verdict, condition_over, verdict_of, worst_verdict
from verifier.evidence.rates.document import RateInput
from verifier.evidence.rates.exposure import float_above, float_below
from verifier.evidence.residual_risk.records import (
    UNLISTED,
    RiskCell,
    RiskCondition,
    RiskEnvironment,
    RiskHazard,
    RiskRun,
    RiskShare,
    RiskUnlisted,
)
from verifier.perception.confusion.mix import Mix, extreme_weights

Ends: TypeAlias = tuple[Fraction, Fraction]
Part: TypeAlias = Literal["condition", "environment", "factor"]
ZERO = Fraction(0)
HALVINGS = 60
LARGEST_RATE = 1e300


@dataclass(frozen=True, kw_only=True)
class RiskContribution:
    """Which part of the upper end comes from a condition or an environment; of a factor, which part would go if it
    were at its lower end."""

    kind: Part
    name: str
    share: Share


@dataclass(frozen=True, kw_only=True)
class RiskImprovement:
    """A single number whose upper end, brought down from `now` to `needed`, would meet the criterion."""

    number: str
    now: Magnitude
    needed: Magnitude


@dataclass(frozen=True, kw_only=True)
class RiskFound:
    """What follows for one hazard, or for all together.

    Attributes:
        name: of the hazard; empty for all together.
        behaviour_lower, behaviour_upper: hazardous behaviour per hour, rounded outwards.
        per_hour: of it, the best estimate; None where a number has none.
        harm_lower, harm_upper: harm per hour, rounded outwards.
        verdict, condition: on the accepted harm per hour.
        contributions: to the upper end of harm, the greatest first of each kind.
        improvements: each alone would meet the criterion, the smallest change first.
    """

    name: str
    behaviour_lower: Magnitude
    behaviour_upper: Magnitude
    per_hour: Magnitude | None
    harm_lower: Magnitude
    harm_upper: Magnitude
    verdict: Verdict
    condition: Condition | None
    contributions: tuple[RiskContribution, ...]
    improvements: tuple[RiskImprovement, ...]

    @property
    def behaviour(self) -> tuple[float, float]:
        """Its ends."""
        return self.behaviour_lower, self.behaviour_upper

    @property
    def harm(self) -> tuple[float, float]:
        """Its ends."""
        return self.harm_lower, self.harm_upper


@dataclass(frozen=True)
class Place:
    """One environment of one hazard: encounters per hour, the share of them in no condition, and of each condition
    the ends of its share and of the probability."""

    met: Ends
    unlisted: Fraction
    shares: tuple[Ends, ...]
    chances: tuple[Ends, ...]

    def terms(self, side: int) -> list[Fraction]:
        """The events per hour in each condition, and in none of them, at the lower (0) or the upper end (1).

        Raises:
            ValueError: no shares between their ends add up to 1.
        """
        ends = [pair[side] for pair in self.chances]
        weights = extreme_weights(np.array(ends, dtype=object), _mix(self.shares), 1 - 2 * side)
        known = self.met[side] * (1 - self.unlisted)
        terms = [known * weight * end for weight, end in zip(weights, ends, strict=True)]
        return [*terms, self.met[side] * self.unlisted * side]

    def total(self, side: int) -> Fraction:
        """Their sum."""
        return sum(self.terms(side), ZERO)

    def changed(self, what: str, at: int, new: Fraction) -> Place:
        """With another upper end of one of its numbers."""
        if what == "unlisted":
            return replace(self, unlisted=new)
        pairs: list[Ends] = [self.met] if what == "met" else list(getattr(self, what))
        pairs[at] = (min(pairs[at][0], new), new)
        shares, chances = (tuple(pairs) if what == name else getattr(self, name) for name in ("shares", "chances"))
        return Place(self.met if what != "met" else pairs[0], self.unlisted, shares, chances)


def _mix(shares: Sequence[Ends]) -> Mix:
    least, most = zip(*shares, strict=True)
    return Mix("condition", tuple(map(str, range(len(least)))), least, most)


def middle(shares: Sequence[Ends]) -> tuple[Fraction, ...]:
    """Shares that add up to 1, each as far between its ends as the others; ValueError where there are none."""
    return _mix(shares).point


def risk_of(hazard: RiskHazard, environments: Sequence[RiskEnvironment]) -> RiskFound:
    """What follows for one hazard.

    Raises:
        ValueError: shares that cannot add up to 1, or cells that are not those of the environments.
    """
    known = {environment.name: environment for environment in environments if environment.name in hazard.environments}
    there = (known[name] for name in hazard.environments if name in known)
    cells = [(where.name, share.name) for where in there for share in where.shares]
    if not cells or cells != [(cell.environment, cell.condition) for cell in hazard.cells]:
        raise ValueError(f"hazard {hazard.name}: expected one cell for each of its environments and conditions")
    mine = {name: [cell for cell in hazard.cells if cell.environment == name] for name in known}
    places = {name: _place(known[name], mine[name]) for name in hazard.environments}
    behaviour = [sum((place.total(side) for place in places.values()), ZERO) for side in (0, 1)]
    harm = [rate * math.prod(share.ends[side] for share in hazard.chain) for side, rate in enumerate(behaviour)]
    limit = None if hazard.accepted is None else fraction_of(hazard.accepted)
    missed = limit is not None and harm[1] > limit
    return _found(
        behaviour,
        harm,
        limit,
        hazard.assumes,
        name=hazard.name,
        per_hour=_estimate([(known[name], mine[name]) for name in hazard.environments]),
        contributions=tuple(_contributions(hazard, known, places)),
        improvements=tuple(_improvements(hazard, mine, places, limit)) if missed and limit is not None else (),
    )


_known_risk = lru_cache(maxsize=10_000)(risk_of)
"""A document is made, read and compared, each time with what follows."""


def risk_over(risks: Sequence[RiskFound], hazards: Sequence[RiskHazard], accepted: str | None) -> RiskFound:
    """What follows for all hazards together: the sums, whatever their dependence."""
    behaviour, harm = (
        [sum(map(Fraction, side), ZERO) for side in zip(*ends, strict=True)]
        for ends in ((risk.behaviour for risk in risks), (risk.harm for risk in risks))
    )
    points = [risk.per_hour for risk in risks]
    return _found(
        behaviour,
        harm,
        None if accepted is None else fraction_of(accepted),
        tuple(dict.fromkeys(text for hazard in hazards for text in hazard.assumes)),
        name="",
        per_hour=None if None in points else math.fsum(point or 0.0 for point in points),
        contributions=(),
        improvements=(),
    )


def _found(
    behaviour: Sequence[Fraction],
    harm: Sequence[Fraction],
    limit: Fraction | None,
    assumes: Sequence[str],
    **more: Any,
) -> RiskFound:
    verdict = verdict_of(harm[0], harm[1], "<=", limit)
    decided = verdict in (Verdict.SATISFIED, Verdict.VIOLATED)
    return RiskFound(
        behaviour_lower=float_below(_known(behaviour[0])),
        behaviour_upper=float_above(_known(behaviour[1])),
        harm_lower=float_below(harm[0]),
        harm_upper=float_above(harm[1]),
        verdict=verdict,
        condition=f"if {' and '.join(assumes)}" if decided and assumes else None,
        **more,
    )


def _known(rate: Fraction) -> Fraction:
    if rate > LARGEST_RATE:
        raise ValueError(f"a rate of more than {LARGEST_RATE:g} per hour is none")
    return rate


def _place(where: RiskEnvironment, cells: Sequence[RiskCell]) -> Place:
    met = Fraction(where.exposure.lower), Fraction(where.exposure.upper)
    chances = tuple((Fraction(cell.lower), Fraction(cell.upper)) for cell in cells)
    return Place(met, Fraction(where.unlisted.upper), tuple(share.ends for share in where.shares), chances)


def _estimate(places: Sequence[tuple[RiskEnvironment, Sequence[RiskCell]]]) -> float | None:
    """Shares in the middle of their ends."""
    rate = ZERO
    for where, cells in places:
        met, unlisted = where.exposure.per_hour, where.unlisted.estimate
        chances = [Fraction(cell.estimate) for cell in cells if cell.estimate is not None]
        if met is None or unlisted is None or len(chances) < len(cells):
            return None
        weights = middle([share.ends for share in where.shares])
        mixed = sum((weight * chance for weight, chance in zip(weights, chances, strict=True)), ZERO)
        rate += Fraction(met) * ((1 - unlisted) * mixed + unlisted)
    return float(_known(rate))


def _contributions(
    hazard: RiskHazard, known: Mapping[str, RiskEnvironment], places: Mapping[str, Place]
) -> Iterator[RiskContribution]:
    total = sum((place.total(1) for place in places.values()), ZERO)
    parts: dict[tuple[Part, str], Fraction] = {}
    for name, place in places.items() if total else ():
        conditions = [*(share.name for share in known[name].shares), UNLISTED]
        for condition, term in zip(conditions, place.terms(1), strict=True):
            parts["condition", condition] = parts.get(("condition", condition), ZERO) + term / total
        parts["environment", name] = place.total(1) / total
    for factor in hazard.chain if total else ():
        parts["factor", factor.name] = 1 - factor.lower / factor.upper if factor.upper else ZERO
    order = ("condition", "environment", "factor")
    for kind, name in sorted(parts, key=lambda key: (order.index(key[0]), -parts[key])):
        yield RiskContribution(kind=kind, name=name, share=float(parts[kind, name]))


def _numbers(
    place: Place, cells: Sequence[RiskCell], where: str
) -> Iterator[tuple[str, str, int, Fraction, Fraction]]:
    """The numbers of an environment: what each is called, the name and place of it, its upper end, and the least."""
    yield f"encounters{where} per hour", "met", 0, place.met[1], ZERO
    yield f"share of encounters{where} in {UNLISTED}", "unlisted", 0, place.unlisted, ZERO
    spare = sum((high for _, high in place.shares), ZERO) - 1
    for k, (cell, (low, high)) in enumerate(zip(cells, place.shares, strict=True)):
        yield f"probability of the event in {cell.condition}{where}", "chances", k, place.chances[k][1], ZERO
        yield f"share of {cell.condition}{where}", "shares", k, high, max(low, high - spare)


def _improvements(
    hazard: RiskHazard, mine: Mapping[str, Sequence[RiskCell]], places: Mapping[str, Place], limit: Fraction
) -> list[RiskImprovement]:
    """Every single number that can be brought down so far that the criterion is met."""
    total = sum((place.total(1) for place in places.values()), ZERO)
    chain = math.prod(share.upper for share in hazard.chain)
    candidates = []
    for name, place in places.items():
        rest = total - place.total(1)
        for number, what, at, now, least in _numbers(place, mine[name], "" if len(places) == 1 else f" in {name}"):
            needed = _largest(partial(place.changed, what, at), least, now, limit / chain - rest)
            candidates.append((number, now, needed))
    candidates += [(share.name, share.upper, share.upper * limit / (total * chain)) for share in hazard.chain]
    possible = ((number, float(now), float_below(end)) for number, now, end in candidates if end is not None)
    told = [RiskImprovement(number=number, now=now, needed=needed) for number, now, needed in possible]
    return sorted(told, key=lambda improvement: (-improvement.needed / improvement.now, improvement.number))


def _largest(changed: Callable[[Fraction], Place], low: Fraction, high: Fraction, limit: Fraction) -> Fraction | None:
    """The largest number between two at which the upper end is at most a limit, up to 2^-60 of their distance; None
    where there is none, or they are one."""
    if not low < high or changed(low).total(1) > limit:
        return None
    for _ in range(HALVINGS):
        half = Fraction(float((low + high) / 2))
        low, high = (half, high) if changed(half).total(1) <= limit else (low, half)
    return low


@dataclass(frozen=True)
class RiskPart:
    """How often one of the intervals may miss."""

    part: str
    error: Exact


@dataclass(frozen=True, kw_only=True)
class RiskResult(Derives):
    """Result of `verify evidence risk`.

    Attributes:
        command: that made it, inputs by name without folders.
        inputs: the context of the case, and the results of runs.
        runs: those that probabilities are from.
        confidence: least level that was asked for; None where none was.
        accepted, source: harm per hour that is accepted of all hazards together, and who says so; None and empty
            where that is not said.
        parts: how often each interval may miss: the budget of errors.
        level: 1 - their sum: all ends hold at once with at least this confidence.
        risks: what follows for each hazard, in their order.
        total: what follows for all together.
        verdict, condition: the worst, of the hazards and of all together.
    """

    schema: ClassVar[str] = "verifier.risk"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    inputs: Annotated[tuple[RateInput, ...], Limits(min_length=1)]
    versions: Mapping[str, str]
    conditions: Annotated[tuple[RiskCondition, ...], Limits(min_length=1)]
    environments: Annotated[tuple[RiskEnvironment, ...], Limits(min_length=1)]
    runs: tuple[RiskRun, ...]
    hazards: Annotated[tuple[RiskHazard, ...], Limits(min_length=1)]
    confidence: Exact | None
    accepted: FractionText | None
    source: str
    parts: tuple[RiskPart, ...] = derived(lambda risk: tuple(starmap(RiskPart, risk.errors.items())))
    level: Share = derived(lambda risk: float(max(1 - sum(risk.errors.values()), Fraction(0))))
    risks: tuple[RiskFound, ...] = derived(
        lambda risk: tuple(_known_risk(hazard, risk.environments) for hazard in risk.hazards)
    )
    total: RiskFound = derived(lambda risk: risk_over(risk.risks, risk.hazards, risk.accepted))
    verdict: Verdict = derived(lambda risk: worst_verdict(part.verdict for part in (*risk.risks, risk.total)))
    condition: Condition | None = derived(
        lambda risk: condition_over(
            risk.verdict, ((part.verdict, part.condition) for part in (*risk.risks, risk.total))
        )
    )

    @property
    def errors(self) -> dict[str, Fraction]:
        """What each interval is called -> how often it may miss."""
        return errors_of(self.runs, self.environments, self.hazards)


def errors_of(
    runs: Iterable[RiskRun], environments: Sequence[RiskEnvironment], hazards: Iterable[RiskHazard]
) -> dict[str, Fraction]:
    """What each interval is called -> how often it may miss."""
    errors = {f"{run.source} of run {number}, {run.name}": run.error for number, run in enumerate(runs, 1)}
    stated: list[RiskEnvironment | RiskUnlisted | RiskShare] = [*environments]
    stated += [environment.unlisted for environment in environments]
    stated += [share for environment in environments for share in environment.shares]
    stated += [factor for hazard in hazards for factor in hazard.chain]
    for share in stated:
        errors[share.part] = max(share.error, errors.get(share.part, Fraction(0)))
    return {part: error for part, error in errors.items() if error}
