"""Whether the parts of an assessment follow from each other."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from verifier.base.documents import json_values
from verifier.checking.verdicts import Verdict, worst_verdict
from verifier.evidence.following.numbers import Misfits, misfits, near, ordered
from verifier.evidence.points import ROUNDING

if TYPE_CHECKING:
    from verifier.robustness.assessment.document import AssessResult, DegradationRecord, SystemRecord, TargetRecord


def assess_misfits(result: AssessResult) -> Misfits:
    """Changes, tolerances, verdicts, priorities and breaks of an assessment."""
    keys = [system.key for system in result.systems]
    for k, system in enumerate(result.systems):
        where = f"/systems/{k}"
        if system.key in keys[:k]:
            yield where, "expected each system once"
        for part in (_circumstances, _relation, _plan):
            yield from part(where, system)
        if system.degradation is not None:
            yield from _degradation(f"{where}/degradation", system.degradation)
    told = [[system.key, *(target.name for target in system.targets)] for system in result.systems]
    if told != [[key, *names] for key, names in result.grid.items()]:
        yield "/systems", "expected the systems and data sets of the grid, in its order"
    verdict = worst_verdict(Verdict(system.verdict) for system in result.systems).value
    yield from misfits("/verdict", result.verdict, verdict)


def _circumstances(where: str, system: SystemRecord) -> Misfits:
    found = []
    for k, told in enumerate(system.circumstances):
        here, missing, significance = f"{where}/circumstances/{k}", None, None
        if told.frequency is not None and told.source_frequency is not None:
            missing = max(0.0, told.frequency - told.source_frequency)
        if told.exposure is not None and told.likelihood is not None and told.severity is not None:
            significance = told.exposure * told.likelihood * told.severity
        elif (told.exposure, told.likelihood, told.severity) != (None, None, None):
            yield here, "expected all of exposure, likelihood and severity, or none"
        yield from misfits(f"{here}/missing", told.missing, missing)
        yield from misfits(f"{here}/significance", told.significance, significance)
        if told.missing is None or told.missing > 0:
            found.append((-(told.significance or 0), -(told.missing or 0.0), k, told.name))
    yield from misfits(f"{where}/priorities", list(system.priorities), [name for *_, name in sorted(found)])


def _relation(where: str, system: SystemRecord) -> Misfits:
    """Task 7: every metric under every distance with a tolerance, and the verdicts that follow."""
    from verifier.robustness.assessment.measures import Tolerance

    counts, verdicts = ("TP", "FP", "FN"), []
    performances = [(f"{where}/source", system.source.performance)]
    performances += [(f"{where}/targets/{k}", target.performance) for k, target in enumerate(system.targets)]
    for here, performance in performances:
        for name, value in (performance or {}).items():
            if name not in counts and value > 1 + ROUNDING:
                yield f"{here}/performance/{name}", f"expected a value from 0 to 1, got {value}"
    circumstances = [told.name for told in system.circumstances]
    for k, target in enumerate(system.targets):
        here = f"{where}/targets/{k}"
        for n, name in enumerate(target.circumstances):
            if name not in circumstances:
                yield f"{here}/circumstances/{n}", "expected one of the circumstances"
        yield from _outcomes(here, system, target)
        left = [Verdict.INCONCLUSIVE] if target.unchecked else []
        verdicts.append(worst_verdict([*left, *(Verdict(outcome.verdict) for outcome in target.outcomes)]))
        yield from misfits(f"{here}/verdict", target.verdict, verdicts[-1].value)
    yield from misfits(f"{where}/verdict", system.verdict, worst_verdict(verdicts).value)
    for kind in ("targets", "circumstances", "rules", "sweeps"):
        told = [part.name for part in getattr(system, kind)]
        for k, name in enumerate(told):
            if name in told[:k]:
                yield f"{where}/{kind}/{k}", "expected each of them once"
    for k, rule in enumerate(system.rules):
        try:
            if rule.tolerance is not None:
                Tolerance.told((each.slope, each.constant, each.up_to) for each in rule.tolerance)
        except ValueError as error:
            yield f"{where}/rules/{k}/tolerance", str(error)
    names = {target.name for target in system.targets}
    for k, sweep in enumerate(system.sweeps):
        if len(sweep.settings) != len(sweep.targets) or not names.issuperset(sweep.targets):
            yield f"{where}/sweeps/{k}/targets", "expected one of the data sets for each setting"


def _outcomes(where: str, system: SystemRecord, target: TargetRecord) -> Misfits:
    for name, told in target.distances.items():
        if told.similarity is not None:
            yield from misfits(f"{where}/distances/{name}/distance", told.distance, 1 - told.similarity)
    rules = {rule.name: rule.tolerance for rule in system.rules if rule.tolerance is not None}
    known = {name: told.distance for name, told in target.distances.items() if told.distance is not None}
    source, own = system.source.performance, target.performance
    follows = list(itertools.product(system.metrics, (name for name in rules if name in known)))
    follows = [] if source is None or own is None else follows
    yield from misfits(f"{where}/outcomes", [(o.metric, o.distance_name) for o in target.outcomes], follows)
    if follows and (left := [name for name in rules if name not in known]) != list(target.unchecked):
        yield f"{where}/unchecked", f"expected {left}, the distances without a value"
    shown = target.circumstances or [c.name for c in system.circumstances]
    scales = [c.tolerance_scale for c in system.circumstances if c.name in shown]
    for k, outcome in enumerate(target.outcomes):
        pieces = rules[outcome.distance_name]
        piece = next((p for p in pieces if p.up_to is None or outcome.distance <= p.up_to), None)
        if piece is None:
            yield f"{where}/outcomes/{k}/distance", "expected a distance that the tolerance is given for"
            return
        tolerance = (piece.slope * outcome.distance + piece.constant) * outcome.scale
        stated = {
            "source": (source or {}).get(outcome.metric),
            "target": (own or {}).get(outcome.metric),
            "change": abs(outcome.source - outcome.target),
            "distance": known[outcome.distance_name],
            "scale": min(scales, default=1.0),
            "tolerance": tolerance,
        }
        for name, value in stated.items():
            yield from misfits(f"{where}/outcomes/{k}/{name}", getattr(outcome, name), value)
        if not near(outcome.change, tolerance):  # where they are equal, doubles do not tell
            verdict = "satisfied" if outcome.change < tolerance else "violated"
            yield from misfits(f"{where}/outcomes/{k}/verdict", outcome.verdict, verdict)


def _plan(where: str, system: SystemRecord) -> Misfits:
    plan = system.plan
    if plan is not None:
        said = "frequency" if plan.proportions == "target" else "missing"
        asked = {told.name: getattr(told, said) for told in system.circumstances}
        for k, share in enumerate(plan.shares):
            here = f"{where}/plan/shares/{k}"
            if share.images > plan.images:
                yield f"{here}/images", f"expected at most {plan.images}, those of the plan"
            if share.circumstance not in asked:
                yield f"{here}/circumstance", "expected one of the circumstances"
            else:
                yield from misfits(f"{here}/asked", share.asked, asked[share.circumstance])
            yield from ordered(f"{here}/expected", (0.0, share.expected), 0, 1)


def _degradation(where: str, told: DegradationRecord) -> Misfits:
    """Breaks follow from margins and verdicts; whether a margin of 0 fails is not in the document."""
    from verifier.robustness.assessment.degradation import Criterion, break_of, in_order, surely_before
    from verifier.robustness.assessment.document import criterion_record, name_record, order_records

    levels, criteria, breaks = [math.inf if at == "inf" else float(at or 0) for at in told.levels], [], []
    for k, one in enumerate(told.criteria):
        here = f"{where}/criteria/{k}"
        for name in ("values", "margins", "verdicts", "intervals"):
            if len(getattr(one, name)) != len(levels):
                yield f"{here}/{name}", f"expected one entry for each of {len(levels)} levels"
                return
        for n, ends in enumerate(one.intervals):
            yield from ordered(f"{here}/intervals/{n}", ends)
        verdicts = tuple(None if verdict is None else Verdict(verdict) for verdict in one.verdicts)
        parts = (one.kind, one.name, one.limit, one.values, one.margins, verdicts, one.intervals)
        both = [Criterion(*parts, strict) for strict in (False, True)]
        follows = [json_values(criterion_record(c, break_of(c, levels, told.scale)).break_) for c in both]
        stated = json_values(one.break_)
        strict = not any(misfits("", stated, follows[0])) <= any(misfits("", stated, follows[1]))
        yield from misfits(f"{here}/break", stated, follows[strict])
        criteria.append(both[strict])
        breaks.append(break_of(both[strict], levels, told.scale))
    seen = [[json_values(name_record(one)) for one in group] for group in in_order(breaks, levels)]
    yield from misfits(f"{where}/seen", json_values(told.seen), seen)
    orders = order_records(surely_before(criteria))
    yield from misfits(f"{where}/surely_before", json_values(told.surely_before), json_values(orders))
