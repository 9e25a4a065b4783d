"""What a risk is computed from, as people state it and runs found it, and as its document has it.

Shares and factors are as exact as they are stated; probabilities and encounters per hour are rounded outwards.

What people state of conditions and hazards in the context of a case; every message has file, line and key.

[risk]: confidence, accept_harm_per_hour, source
[condition.NAME]: share, matrices, level, source
[unknown] or [unknown.ENVIRONMENT]: classified with left_over, or at_most; source
[initial.ENVIRONMENT]: SCENARIO = share
[hazard.NAME]: event, planner, environments, severity, source, exposed, uncontrolled, severe, accept_harm_per_hour

A share is a number, two ends in order, or a table of these by environment; a factor is a number, two ends, or a table
with the keys between, level, source.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal, TypeAlias

from verifier.base.documents import Count, Exact, FractionText, Level, Limits, Sha256, Share, fraction_text
from verifier.base.errors import InputError, shown
from verifier.base.files import json_of, read_bytes
from verifier.base.toml import Element
from verifier.evidence.declarations import matrices_at
from verifier.evidence.rates.document import RateExposure
from verifier.evidence.rates.exposure import LARGEST_COUNT, Exposure, float_above
from verifier.evidence.rates.hazard import EVERY
from verifier.evidence.settings import Event

Source: TypeAlias = Literal["bounds", "interval"]
"""Of the ends of probabilities."""
MOST_CONDITIONS = 50
UNLISTED = "no listed condition"
CHAIN = ("exposed", "uncontrolled", "severe")
"""From hazardous behaviour to harm: somebody is exposed to it, it is not controlled, the harm is severe."""


@dataclass(frozen=True, kw_only=True)
class RiskShare:
    """A share, or a factor, between two ends.

    Attributes:
        name: of the condition, or one of `CHAIN`.
        part: what it is called among the parts of the error.
        error: how often the interval may miss; 0 where it is said to hold for certain.
        source: where it comes from; empty where that is not said.
    """

    name: str
    lower: Exact
    upper: Exact
    part: str
    error: Exact
    source: str

    def __post_init__(self) -> None:
        if not (0 <= self.lower <= self.upper <= 1 and 0 <= self.error < 1):
            raise ValueError("expected a share between two ends in order, from 0 to 1")

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """Lower and upper."""
        return self.lower, self.upper


@dataclass(frozen=True, kw_only=True)
class RiskUnlisted:
    """The share of encounters in no listed condition, in which the event is taken to happen.

    Attributes:
        classified, left_over: encounters that were sorted into conditions, and those that fit none; None where the
            share is stated, or is not.
        upper: at most this share; 1 where nothing is stated.
        part, error, source: as in `RiskShare`.
    """

    classified: Count | None = None
    left_over: Count | None = None
    upper: Share = 1.0
    part: str = "unlisted encounters"
    error: Exact = Fraction(0)
    source: str = ""

    def __post_init__(self) -> None:
        if (self.classified is None) != (self.left_over is None) or (self.left_over or 0) > (self.classified or 0):
            raise ValueError("expected encounters that were classified, and those of them left over, or neither")

    @property
    def estimate(self) -> Fraction | None:
        """The share that was counted; None where only its upper end is stated."""
        if self.classified and self.left_over is not None:
            return Fraction(self.left_over, self.classified)
        return Fraction(0) if self.upper == 0 else None


@dataclass(frozen=True, kw_only=True)
class RiskEnvironment:
    """How often an environment ("every" for all) is met, and in which conditions.

    Attributes:
        exposure: encounters per hour.
        part, error: of its interval, as in `RiskShare`.
        unlisted: the share of encounters in no condition.
        shares: of the others, one for each condition.
        initial: of the scenarios, where they are stated.
    """

    name: str
    exposure: RateExposure
    part: str
    error: Exact
    unlisted: RiskUnlisted
    shares: Annotated[tuple[RiskShare, ...], Limits(min_length=1)]
    initial: tuple[RiskShare, ...] = ()

    def __post_init__(self) -> None:
        if len(self.shares) > MOST_CONDITIONS:
            raise ValueError(f"expected at most {MOST_CONDITIONS} conditions")


@dataclass(frozen=True, kw_only=True)
class RiskRun:
    """A run that probabilities are from: the document, and the source of their ends.

    Attributes:
        level: of its intervals.
        times: how many times that level can miss; confidence bounds miss together, once.
    """

    name: str
    sha256: Sha256
    source: Source
    level: Level
    times: Count

    @property
    def error(self) -> Fraction:
        """How often its intervals may miss, all together."""
        return self.times * (1 - Fraction(repr(self.level)))


@dataclass(frozen=True, kw_only=True)
class RiskCondition:
    """A condition, with the matrices that were counted in it; empty and None where there are none."""

    name: str
    matrices: str = ""
    sha256: Sha256 | None = None


@dataclass(frozen=True, kw_only=True)
class RiskCell:
    """The probability of the event in one encounter, in one environment and condition.

    Attributes:
        lower, upper: over the initial states, mixed as stated, else from the least to the worst.
        estimate: with the rates as measured, in the stated mix or the worst state; None where nothing is known.
        scenario: the worst one.
        run: number of the run, from 0; None where nothing is known.
        unknown: why nothing is known, and 0 to 1 is taken; empty where something is.
    """

    environment: str
    condition: str
    lower: Share = 0.0
    upper: Share = 1.0
    estimate: Share | None = None
    scenario: str = ""
    run: Count | None = None
    unknown: str = ""

    def __post_init__(self) -> None:
        if self.lower > self.upper or (self.run is None) != (self.unknown != ""):
            raise ValueError("expected ends in order, with a run, or else the reason why nothing is known")
        if self.unknown and (self.lower, self.upper, self.estimate) != (0, 1, None):
            raise ValueError("expected 0 to 1 where nothing is known")


@dataclass(frozen=True, kw_only=True)
class RiskHazard:
    """One hazard: an event, and its way to harm.

    Attributes:
        name, severity, source: as stated.
        requirement, planner, event: what happens.
        environments: those in which it can.
        left_out: the other ones of its runs.
        assumes: on what the numbers of the runs are conditional.
        chain: the factors of `CHAIN` that are stated; the others are 1.
        accepted: harm per hour that is accepted; None for no criterion.
        cells: one for each environment and condition, in their orders.
    """

    name: str
    requirement: str
    planner: str = ""
    event: Event = "violated"
    severity: str = ""
    source: str = ""
    environments: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    assumes: tuple[str, ...] = ()
    chain: tuple[RiskShare, ...] = ()
    accepted: FractionText | None = None
    cells: tuple[RiskCell, ...] = ()

    def __post_init__(self) -> None:
        names = [share.name for share in self.chain]
        if names != [name for name in CHAIN if name in names]:
            raise ValueError(f"expected factors among {', '.join(CHAIN)}, each once and in this order")


RISK_TABLES = ("risk", "condition", "unknown", "initial", "hazard")
_UNKNOWN = ("classified", "left_over", "at_most", "source")
_HAZARD = ("event", "planner", "environments", "severity", "source", *CHAIN, "accept_harm_per_hour")


@dataclass(frozen=True)
class DeclaredRisk:
    """All of it.

    Attributes:
        hazards: without what runs say of them; `environments` are empty for all.
        conditions: in the order of the file.
        shares: condition -> environment, or `EVERY` -> share of the encounters in any condition.
        unlisted: environment, or `EVERY` -> encounters in no condition.
        initial: environment -> scenario -> share.
        confidence: least level of all ends together; None for what the parts give by themselves.
        accepted, source: harm per hour that is accepted of all hazards together.
    """

    hazards: tuple[RiskHazard, ...] = ()
    conditions: tuple[RiskCondition, ...] = ()
    shares: Mapping[str, Mapping[str, RiskShare]] = field(default_factory=dict)
    unlisted: Mapping[str, RiskUnlisted] = field(default_factory=dict)
    initial: Mapping[str, Mapping[str, RiskShare]] = field(default_factory=dict)
    confidence: Fraction | None = None
    accepted: Fraction | None = None
    source: str = ""

    @property
    def environments(self) -> tuple[str, ...]:
        """Every environment that is named."""
        named = [*self.unlisted, *self.initial, *(name for share in self.shares.values() for name in share)]
        named += [name for hazard in self.hazards for name in hazard.environments]
        return tuple(name for name in dict.fromkeys(named) if name != EVERY)


@dataclass(frozen=True)
class Stated:
    """What people state of a case: conditions and hazards, environment or `EVERY` -> encounters per hour, and name
    and SHA-256 of the file it was read from."""

    risk: DeclaredRisk
    exposures: Mapping[str, Exposure]
    file: tuple[str, str] | None = None


def read_risk(top: Element) -> DeclaredRisk:
    """The tables of a context that are about risk; InputError."""
    tables = top.table_at("condition")
    if len(tables) > MOST_CONDITIONS:
        raise top.at("condition").fail(f"expected at most {MOST_CONDITIONS} conditions, got {len(tables)}")
    conditions = tuple(_condition(name, element) for name, element in tables)
    _refuse_twins(tables)
    shares = {name: _shares(name, element) for name, element in tables}
    for where in dict.fromkeys(where for share in shares.values() for where in share):
        for name, table in tables:
            if where not in shares[name]:
                said = f"no share in environment {shown(where)}, in which other conditions have one"
                raise table.at("share").fail(said, "share = 0.1 for all, or a share for each: { ped = 0.1 }")
        _refuse(top.at("condition"), (share[where] for share in shares.values()), where)
    hazards = tuple(_hazard(name, element) for name, element in top.table_at("hazard"))
    if hazards and not conditions:
        raise top.at("hazard").fail("a hazard needs conditions", "[condition.all] with share = 1 and matrices = FILE")
    initial: dict[str, dict[str, RiskShare]] = {}
    for name, table in top.table_at("initial"):
        initial[name] = {scenario: _stated(scenario, "", share, None) for scenario, share in table.entries()}
        _refuse(table, initial[name].values(), name)
    risk = DeclaredRisk(hazards, conditions, shares, _unknown(top), initial)
    if not top.has("risk"):
        return risk
    table = top.at("risk").table(("confidence", "accept_harm_per_hour", "source"))
    accepted = table.given("accept_harm_per_hour", Element.positive, None)
    divided = sum((Fraction(hazard.accepted) for hazard in hazards if hazard.accepted is not None), Fraction(0))
    if accepted is not None and divided > accepted:
        said = f"the hazards accept {float(divided):g} harm per hour in all, more than {float(accepted):g}"
        raise table.at("accept_harm_per_hour").fail(said)
    confidence, source = table.given("confidence", Element.level, None), table.given("source", Element.string, "")
    return replace(risk, confidence=confidence, accepted=accepted, source=source)


def _refuse(where: Element, shares: Iterable[RiskShare], name: str) -> None:
    """Refuse shares that cannot add up to 1."""
    ends = [share.ends for share in shares]
    least, most = (sum((pair[side] for pair in ends), Fraction(0)) for side in (0, 1))
    if not least <= 1 <= most:
        total = f"{float(least):g}" + ("" if least == most else f" to {float(most):g}")
        of = "" if name == EVERY else f" in {shown(name)}"
        raise where.fail(f"the shares{of} must add up to 1, and they add up to {total}")


def _condition(name: str, table: Element) -> RiskCondition:
    table.table(("share", "matrices", "level", "source"), ("share",))
    if name == UNLISTED:
        raise table.fail("this name is that of what no condition lists")
    matrices, sha256 = matrices_at(table)
    return RiskCondition(name=name, matrices=matrices, sha256=sha256)


def _refuse_twins(tables: Iterable[tuple[str, Element]]) -> None:
    """Refuse the same data for two conditions, by their counts, whatever the files are called and say beside: one
    measurement is none of another condition."""
    first: dict[bytes, str] = {}
    for name, table in tables:
        if table.has("matrices"):
            file = table.at("matrices").string()
            raw = read_bytes(Path(table.file).parent / PurePosixPath(file))
            with contextlib.suppress(InputError, TypeError, KeyError):
                raw = json.dumps(json_of(raw, file)["bins"]).encode()
            other = first.setdefault(hashlib.sha256(raw).digest(), name)
            if other != name:
                hint = f"one condition of both, or no matrices for {shown(name)}: nothing is known in it then"
                raise table.at("matrices").fail(f"the same counts as those of {shown(other)}", hint)


def _shares(name: str, table: Element) -> dict[str, RiskShare]:
    share = table.at("share")
    entries = list(share.entries()) if isinstance(share.value, dict) else [(EVERY, share)]
    if not entries:
        raise share.fail("expected a share for each environment")
    return {
        where: _stated(name, f"share of {name}{'' if where == EVERY else f' in {where}'}", element, table)
        for where, element in entries
    }


def _stated(name: str, part: str, share: Element, table: Element | None, source: str = "") -> RiskShare:
    """A share whose level and source may stand in a table."""
    (lower, upper), level = share.share(), Fraction(1)
    if table is not None:
        level, source = table.given("level", Element.level, level), table.given("source", Element.string, source)
    return RiskShare(name=name, lower=lower, upper=upper, part=part, error=1 - level, source=source)


def _unknown(top: Element) -> dict[str, RiskUnlisted]:
    if not top.has("unknown"):
        return {}
    table = top.at("unknown").open_table()
    if not table.value or {*_UNKNOWN} & {*table.value}:
        return {EVERY: _unlisted("", table)}
    return {name: _unlisted(f" in {name}", element) for name, element in table.entries()}


def _unlisted(where: str, table: Element) -> RiskUnlisted:
    table.table(_UNKNOWN)
    if [table.has(key) for key in ("classified", "left_over")] != [not table.has("at_most")] * 2:
        raise table.fail(
            "expected encounters that were classified and left over, or a greatest share",
            "classified = 300 with left_over = 0, or at_most = 0.01",
        )
    unlisted = RiskUnlisted(part=f"unlisted encounters{where}", source=table.given("source", Element.string, ""))
    if table.has("at_most"):
        return replace(unlisted, upper=float_above(table.at("at_most").number(0, 1)))
    classified = table.at("classified").whole(1, LARGEST_COUNT)
    return replace(unlisted, classified=classified, left_over=table.at("left_over").whole(0, classified))


def _hazard(name: str, table: Element) -> RiskHazard:
    table.table(_HAZARD, ("event",))
    accepted = table.given("accept_harm_per_hour", Element.positive, None)
    planner, severity, source = (table.given(key, Element.string, "") for key in ("planner", "severity", "source"))
    return RiskHazard(
        name=name,
        requirement=table.at("event").string(),
        planner=planner,
        severity=severity,
        source=source,
        environments=tuple(dict.fromkeys(element.string() for element in table.list_at("environments"))),
        chain=tuple(_factor(name, table.at(key), source) for key in CHAIN if table.has(key)),
        accepted=None if accepted is None else fraction_text(accepted),
    )


def _factor(hazard: str, element: Element, source: str) -> RiskShare:
    """A factor of the chain; its source is that of the hazard where it has none of its own."""
    name, table = str(element.keys[-1]), None
    if isinstance(element.value, dict):
        table = element.table(("between", "level", "source"), ("between",))
        element = table.at("between")
    return _stated(name, f"{name} of {hazard}", element, table, source)
