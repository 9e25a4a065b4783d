"""The residual risk of a case: its conditions and hazards, with the probabilities of runs that were made in each.

The run of a condition is that of the matrices with the condition's SHA-256. Nothing is known in a condition without
matrices, without such a run, or whose run decides nothing by its own rule: there the event is taken to happen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

import numpy as np

from verifier.analysis.channel_test import contradicted_text
from verifier.base.documents import fraction_of, fraction_text
from verifier.base.errors import UsageError, shown, unknown_error
from verifier.base.libraries import __version__
from verifier.base.numbers import significant
from verifier.base.statistics import clopper_pearson
from verifier.checking.verdicts import Contradicted, Refused
from verifier.evidence.documents import Document, of_kind
from verifier.evidence.rates.document import RateInput, exposure_in, exposure_told
from verifier.evidence.rates.exposure import (
    FREE,
    SLACK,
    Chance,
    Grounds,
    RateSource,
    chances,
    float_above,
    float_below,
    requirement_of,
    unwanted,
)
from verifier.evidence.rates.hazard import EVERY, USUAL_ERROR, by_exposure, chances_to_miss
from verifier.evidence.residual_risk.document import Ends, Place, RiskResult, errors_of, middle
from verifier.evidence.residual_risk.records import (
    DeclaredRisk,
    RiskCell,
    RiskEnvironment,
    RiskHazard,
    RiskRun,
    RiskShare,
    RiskUnlisted,
    Source,
    Stated,
)
from verifier.study.results import RequirementResult, RunResult

NO_MATRICES = "it has no matrices"
NO_RUN = "no run of its matrices is here"
VACUOUS = "its run says nothing about the system"
POINT = "its run leaves the data's uncertainty out"
ONE = Fraction(1)
T = TypeVar("T")


def residual_risk(context: Stated, documents: Sequence[Document]) -> RiskResult:
    """Hazardous behaviour and harm per hour of every hazard of a context.

    Args:
        documents: of runs; those of the matrices of no condition are not used.

    Raises:
        UsageError: no hazard, an unknown name, runs of different systems or two of one condition, an environment
            without exposure, or a confidence that cannot be reached.
    """
    declared = context.risk
    if not declared.hazards:
        raise UsageError("the context states no hazard\n  hint: [hazard.H1] with event = REQUIREMENT")
    unique = {document.sha256: document for document in documents}.values()
    runs = {condition.name: run_with(condition.sha256, unique) for condition in declared.conditions}
    there = list({run.sha256: run for run in runs.values() if run is not None}.values())
    for other in there[1:]:
        first, mine = (_inputs(document, "spec", "model", "planner") for document in (there[0], other))
        if first != mine or there[0].result.settings.set_ != other.result.settings.set_:
            raise UsageError(f"{there[0].name} and {other.name} are runs of different specs, models or settings")
    events = [_Events.of(hazard, context, runs) for hazard in declared.hazards]
    used = [run for document in there for run in _used(document, events)]
    hazards = tuple(event.told(context, [run.sha256 for run in used]) for event in events)
    names = list(dict.fromkeys(name for hazard in hazards for name in hazard.environments))
    try:
        return RiskResult(
            inputs=(
                *(() if context.file is None else (RateInput("context", *context.file),)),
                *(RateInput("result", run.name, run.sha256) for run in used),
            ),
            versions={"verifier": __version__},
            conditions=declared.conditions,
            environments=_environments(names, context, used, hazards),
            runs=tuple(used),
            hazards=hazards,
            confidence=declared.confidence,
            accepted=None if declared.accepted is None else fraction_text(declared.accepted),
            source=declared.source,
        )
    except ValueError as error:
        raise UsageError(str(error)) from None


def run_with(matrices: str | None, documents: Iterable[Document]) -> Document | None:
    """The run of these matrices, the one over all bins before those over some; UsageError of two."""
    runs = [document for document in of_kind(documents, "run") if matrices in _inputs(document, "confusion")]
    runs = [document for document in runs if not document.result.settings.where] or runs
    if len(runs) > 1:
        names = " and ".join(document.name for document in runs[:2])
        raise UsageError(f"two runs of the same matrices: {names}; give one for each condition")
    return runs[0] if runs else None


def _inputs(run: Document, *roles: str) -> list[str]:
    return sorted(file.sha256 for file in run.result.inputs if file.role in roles)


@dataclass(frozen=True)
class _Known:
    """What the run of a condition says by its own rule: the chances of the event by environment, what they assume
    there, why it decides nothing there, and where bounds however reports depend on each other take its place."""

    run: Document
    source: Source
    chances: Mapping[str, Sequence[Chance]]
    assumes: Mapping[str, str]
    refused: Mapping[str, str]
    free: Set[str]


@dataclass(frozen=True)
class _Events:
    """A hazard without its cells, and what is known in each condition, or why nothing is."""

    hazard: RiskHazard
    conditions: Mapping[str, _Known | str]

    @classmethod
    def of(cls, hazard: RiskHazard, context: Stated, runs: Mapping[str, Document | None]) -> _Events:
        """Raises UsageError."""
        first = next((run for run in runs.values() if run is not None), None)
        if first is None:
            hint = "  hint: verify run SPEC --cm MATRICES -o RUN, for each"
            raise UsageError(f"no run is of the matrices of a condition\n{hint}")
        asked = requirement_of(first, hazard.requirement, hazard.planner or None)
        event = unwanted(asked, None if asked.target is not None else "violated")
        all_of = dict.fromkeys(point.environment for point in asked.points)
        exposures = {name: met for name, met in context.exposures.items() if name == EVERY or name in all_of}
        if EVERY in exposures and hazard.environments:
            raise UsageError(f"hazard {hazard.name} names environments, and [exposure.{EVERY}] is of all of them")
        if hazard.environments:
            exposures = {name: met for name, met in exposures.items() if name in hazard.environments}
        groups, conditions = dict[str, list[Chance]](), dict[str, _Known | str]()
        for condition in context.risk.conditions:
            run = runs[condition.name]
            if run is None:
                conditions[condition.name] = NO_RUN if condition.matrices else NO_MATRICES
                continue
            one = requirement_of(run, hazard.requirement, asked.planner)
            if [point.place for point in one.points] != [point.place for point in asked.points]:
                raise UsageError(f"{first.name} and {run.name} are runs of different scenarios")
            groups = by_exposure(chances(one, event), hazard.environments, exposures)
            conditions[condition.name] = _known(run, one, groups)
        met = {chance.environment for group in groups.values() for chance in group}
        left_out = tuple(name for name in all_of if name not in met)
        told = {"planner": asked.planner, "event": event, "environments": tuple(groups), "left_out": left_out}
        return cls(RiskHazard(**{**vars(hazard), **told}), conditions)

    def told(self, context: Stated, used: Sequence[str]) -> RiskHazard:
        """With its cells; `used` are the SHA-256 of the runs."""
        places = [(name, *condition) for name in self.hazard.environments for condition in self.conditions.items()]
        assumed = (known.assumes.get(name) for name, _, known in places if isinstance(known, _Known))
        assumes = tuple(dict.fromkeys(text for text in assumed if text is not None))
        return replace(self.hazard, assumes=assumes, cells=tuple(_cell(*place, context, used) for place in places))


def _known(run: Document, one: RequirementResult, groups: Mapping[str, Sequence[Chance]]) -> _Known | str:
    result: RunResult = run.result
    everything = [chance for group in groups.values() for chance in group]
    source = result.settings.verdict_from
    if source == "point" or not all(source in chance.bounds for chance in everything):
        return POINT
    if all(chance.vacuous for chance in everything):
        return VACUOUS
    if any(point.uncertainty is not None and point.uncertainty.confidence_bounds is None for point in one.points):
        source = "interval"  # which stands in for bounds that a point has not, and misses on its own
    assumes, refused, free = dict[str, str](), dict[str, str](), set[str]()
    for name, group in groups.items():
        grounds = Grounds(result, group)
        # What would be said of an event that never happens, were it not for what the numbers rest on.
        said = grounds.decision(source, (Fraction(0),) * 2, (Fraction(0), Fraction(2)), None, ONE)
        if said.condition is not None:
            assumes[name] = said.condition.removeprefix("if ")
        without = all(FREE in chance.bounds for chance in group) and not grounds.free_of_data
        if without and isinstance(said.reason, Contradicted):
            free.add(name)
            (assumes[name],) = grounds.assumes(FREE)
        elif isinstance(said.reason, Contradicted):
            refused[name] = contradicted_text(said.reason.label, said.reason.p_value, said.reason.contexts)
        elif isinstance(said.reason, Refused):
            refused[name] = f"its run is strict, and its numbers hold {said.reason.condition}"
    return _Known(run, source, groups, assumes, refused, free)


def _cell(environment: str, condition: str, known: _Known | str, context: Stated, used: Sequence[str]) -> RiskCell:
    why = known if isinstance(known, str) else known.refused.get(environment, "")
    if why or isinstance(known, str):
        return RiskCell(environment=environment, condition=condition, unknown=why)
    group = known.chances[environment]
    worst, stated = max(group, key=lambda chance: chance.probability), context.risk.initial.get(environment)
    shares: tuple[Ends, ...] = ((Fraction(0), ONE),) * len(group)
    estimate = worst.probability
    if stated is not None:
        shares = _mixed(stated, group, environment)
        estimate = sum((w * chance.probability for w, chance in zip(middle(shares), group, strict=True)), Fraction(0))
    source: RateSource = FREE if environment in known.free else known.source
    place = Place((ONE, ONE), Fraction(0), shares, tuple(chance.bounds[source] for chance in group))
    return RiskCell(
        environment=environment,
        condition=condition,
        lower=max(float_below(place.total(0)), 0.0),
        upper=min(float_above(place.total(1)), 1.0),
        estimate=float(estimate),
        scenario=worst.scenario,
        run=used.index(known.run.sha256),
    )


def _mixed(stated: Mapping[str, RiskShare], group: Sequence[Chance], environment: str) -> tuple[Ends, ...]:
    """The shares of the scenarios of an environment."""
    known = [chance.scenario for chance in group]
    for name in stated:
        if name not in known:
            raise unknown_error("scenario", name, known, before=f"[initial.{environment}]: ")
    for name in known:
        if name not in stated:
            raise UsageError(f"[initial.{environment}]: no share of {shown(name)}\n  hint: 0 if it never comes")
    return tuple(stated[name].ends for name in known)


def _used(run: Document, events: Sequence[_Events]) -> Iterable[RiskRun]:
    """The run, with how many times its intervals can miss; nothing where no probability is from it."""
    groups, free = dict[tuple[str, str, str], Sequence[Chance]](), False
    for event in events:
        for known in event.conditions.values():
            if isinstance(known, _Known) and known.run is run:
                source, free = known.source, free or bool(known.free)
                for name in known.chances.keys() - known.refused.keys():
                    groups[event.hazard.requirement, event.hazard.planner, name] = known.chances[name]
    settings = run.result.settings
    if groups:
        times = chances_to_miss([chance for group in groups.values() for chance in group], source, settings) + free
        level = settings.confidence.level
        yield RiskRun(name=run.name, sha256=run.sha256, source=source, level=level, times=times)


def _environments(
    names: Sequence[str], context: Stated, runs: Sequence[RiskRun], hazards: Sequence[RiskHazard]
) -> tuple[RiskEnvironment, ...]:
    """With intervals of counts that leave the confidence that is asked for; UsageError where none would."""
    environments = tuple(environment_of(name, context, USUAL_ERROR) for name in names)
    counts = {where.part for where in environments if where.exposure.kind == "count"}
    counts |= {where.unlisted.part for where in environments if where.unlisted.classified is not None}
    errors = errors_of(runs, environments, hazards)
    rest = sum((error for part, error in errors.items() if part not in counts), Fraction(0))
    least = context.risk.confidence
    left = 1 - (least or 0) - rest
    share = USUAL_ERROR if least is None else left / max(len(counts), 1)
    beyond = left < 0 or (counts and share <= 0) or share * len(counts) > left
    if beyond or (least is None and sum(errors.values()) >= 1):
        asked = "" if least is None else f" at a confidence of {float(least):g}"
        raise UsageError(
            f"runs, shares and factors miss with up to {significant(float(rest))}, which leaves too little for "
            f"{len(counts)} counted intervals{asked}\n"
            "  hint: a lower confidence in [risk], or higher ones in verify run and of what is stated"
        )
    return environments if least is None else tuple(environment_of(name, context, share) for name in names)


def environment_of(name: str, context: Stated, share: Fraction) -> RiskEnvironment:
    """What is stated of an environment; `share` is how often the interval of each count may miss. UsageError."""
    exposure, stated = context.exposures[name], context.risk.unlisted
    unlisted = RiskUnlisted() if not stated else _stated_of(name, stated, "[unknown]")
    if unlisted.classified is not None and unlisted.left_over is not None:
        upper = unlisted_share(unlisted.classified, unlisted.left_over, share)
        unlisted = replace(unlisted, upper=upper, error=share)
    shares = context.risk.shares.items()
    return RiskEnvironment(
        name=name,
        exposure=exposure_told(exposure, exposure.interval(share)),
        part=f"encounters of {name}",
        error=exposure.error(share),
        unlisted=unlisted,
        shares=tuple(_stated_of(name, entry, f"[condition.{condition}] share") for condition, entry in shares),
        initial=tuple(context.risk.initial.get(name, {}).values()),
    )


def stated_in(risk: RiskResult) -> Stated:
    """What people stated, as a document has it: `residual_risk` of it and of its runs is that document."""
    shares: dict[str, dict[str, RiskShare]] = {condition.name: {} for condition in risk.conditions}
    for where in risk.environments:
        for share in where.shares:
            shares.setdefault(share.name, {})[where.name] = share
    declared = DeclaredRisk(
        tuple(
            replace(
                hazard, environments=() if EVERY in hazard.environments else hazard.environments, cells=(), assumes=()
            )
            for hazard in risk.hazards
        ),
        risk.conditions,
        shares,
        {
            where.name: where.unlisted if where.unlisted.classified else replace(where.unlisted, error=Fraction(0))
            for where in risk.environments
        },
        {where.name: {one.name: one for one in where.initial} for where in risk.environments if where.initial},
        risk.confidence,
        None if risk.accepted is None else fraction_of(risk.accepted),
        risk.source,
    )
    return Stated(declared, {where.name: exposure_in(where.exposure) for where in risk.environments})


def _stated_of(name: str, stated: Mapping[str, T], what: str) -> T:
    """What is stated of an environment, or of all."""
    if name not in stated and EVERY not in stated:
        raise UsageError(f"{what}: nothing is stated of environment {shown(name)}")
    return stated[name if name in stated else EVERY]


def unlisted_share(classified: int, left_over: int, error: Fraction) -> float:
    """The upper end of the share in no condition: the exact one of Clopper and Pearson, one-sided.

    Without any left over it is 1 - error^(1 / classified).

    >>> round(unlisted_share(300, 0, Fraction(1, 20)), 11)
    0.00993608194
    """
    _, upper = clopper_pearson(np.array([left_over]), np.array([classified]), float(error))
    return min(float_above(Fraction(float(upper[0])) * (1 + SLACK)), 1.0)
