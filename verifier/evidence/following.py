"""What follows from other numbers of the same result: (element, what is wrong) where a document says otherwise.

Whatever a result states twice, or computes from what it also states, is computed again here: totals, shares, worst
cases, scores, breaks. What it only declares (a name, a count, a setting) has nothing to be held against.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from verifier.base.documents import json_values
from verifier.base.errors import LimitError, UsageError
from verifier.checking.verdicts import Verdict, worst_verdict
from verifier.evidence.points import ROUNDING
from verifier.study.points import block_text

if TYPE_CHECKING:
    from verifier.closedloop.trade_offs import TradeOffsResult, TradeOffTable
    from verifier.collision.document import CollisionStudy, DetectorRecord, PolicyRecord, RankingRecord, ScoreRecord
    from verifier.evidence.rates.document import RateResult
    from verifier.robustness.assessment.document import AssessResult, DegradationRecord, SystemRecord, TargetRecord

Misfits: TypeAlias = Iterator[tuple[str, str]]
"""JSON pointer of an element, and what is wrong with it."""


def near(one: float, other: float) -> bool:
    """Whether two numbers are equal up to rounding."""
    return math.isclose(one, other, rel_tol=ROUNDING, abs_tol=ROUNDING)


def misfits(where: str, found: Any, follows: Any) -> Misfits:
    """Where JSON values differ from those that follow, numbers by more than rounding."""
    if isinstance(found, dict) and isinstance(follows, dict) and found.keys() == follows.keys():
        for key, value in follows.items():
            yield from misfits(f"{where}/{key}", found[key], value)
    elif isinstance(found, list) and isinstance(follows, list) and len(found) == len(follows):
        for k, value in enumerate(follows):
            yield from misfits(f"{where}/{k}", found[k], value)
    elif not (found == follows or (type(found) is type(follows) is float and near(found, follows))):
        yield (
            where,
            f"expected {str(follows)[:200]}, which follows from the numbers beside it, got {str(found)[:200]}",
        )


def _ordered(
    where: str, ends: Sequence[float | None] | None, low: float = -math.inf, high: float = math.inf
) -> Misfits:
    """Of an interval: its ends in their order, and within what it may be."""
    if ends is not None and None not in ends:
        lower, upper = (end for end in ends if end is not None)
        if not low - ROUNDING <= lower <= upper + ROUNDING <= high + 2 * ROUNDING:
            yield where, f"expected a lower and an upper end from {low:g} to {high:g}, got {lower} and {upper}"


def _shares(where: str, rows: Sequence[Sequence[float | None]]) -> Misfits:
    for k, row in enumerate(rows):
        if not all(value is None or -ROUNDING <= value <= 1 + ROUNDING for value in row):
            yield f"{where}/{k}", "expected probabilities"


def scenarios_left_out(content: Mapping[str, Any]) -> Misfits:
    """Every requirement is told under every planner and in every scenario; if intervals were asked for, with them.

    The grid is what the document of a run says of it: its planners and environments, each with every combination of
    the values of swept constants, and in each of these blocks the same initial states for every requirement.
    """
    settings, asked = content["settings"], content["requirements"]
    told = {(each["name"], each["planner"]) for each in asked}
    for name, planner in itertools.product(dict.fromkeys(each["name"] for each in asked), settings["planners"]):
        if (name, planner) not in told:
            yield "/requirements", f"expected {name} under the planner {planner} too"
    points = [point for each in asked for point in each["points"]]
    swept: dict[str, dict[str, None]] = {}
    for point in points:
        for constant, value in point["constants"].items():
            swept.setdefault(constant, {})[value] = None
    grid = itertools.product(settings["environments"], *([(name, v) for v in swept[name]] for name in swept))
    blocks = {block_text(environment, dict(values)): set[str]() for environment, *values in grid}
    for k, each in enumerate(asked):
        for n, point in enumerate(each["points"]):
            block = block_text(point["environment"], point["constants"])
            if block not in blocks:
                yield f"/requirements/{k}/points/{n}", f"expected a scenario of the settings, got {block}"
                return
            blocks[block].add(str(point["initial"]))
            if settings["confidence"] is not None and "sureness" not in point:
                yield f"/requirements/{k}/points/{n}", "expected sureness, as the settings have confidence"
    whole = {(block, initial) for block, states in blocks.items() for initial in states or {"one"}}
    for k, each in enumerate(asked):
        there = {(block_text(p["environment"], p["constants"]), str(p["initial"])) for p in each["points"]}
        for block, initial in sorted(whole - there)[:1]:
            yield f"/requirements/{k}/points", f"expected the scenario {block} with the initial state {initial} too"


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
    counts, verdicts = ("TP", "FP", "FN"), []
    performances = [(f"{where}/source", system.source.performance)]
    performances += [(f"{where}/targets/{k}", target.performance) for k, target in enumerate(system.targets)]
    for here, performance in performances:
        for name, value in (performance or {}).items():
            if name not in counts and value > 1 + ROUNDING:
                yield f"{here}/performance/{name}", f"expected a value from 0 to 1, got {value}"
    for k, target in enumerate(system.targets):
        here = f"{where}/targets/{k}"
        yield from _outcomes(here, system, target)
        left = [Verdict.INCONCLUSIVE] if target.unchecked else []
        verdicts.append(worst_verdict([*left, *(Verdict(outcome.verdict) for outcome in target.outcomes)]))
        yield from misfits(f"{here}/verdict", target.verdict, verdicts[-1].value)
    yield from misfits(f"{where}/verdict", system.verdict, worst_verdict(verdicts).value)
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
    scales = [c.tolerance_scale for c in system.circumstances if c.name in target.circumstances]
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
            yield from _ordered(f"{here}/expected", (0.0, share.expected), 0, 1)


def _degradation(where: str, told: DegradationRecord) -> Misfits:
    """Breaks follow from margins and verdicts; whether a margin of 0 fails is not in the document."""
    from verifier.robustness.assessment.breaks import Criterion, break_of, in_order, surely_before
    from verifier.robustness.assessment.document import criterion_record, name_record, order_records

    levels, criteria, breaks = [math.inf if at == "inf" else float(at or 0) for at in told.levels], [], []
    for k, one in enumerate(told.criteria):
        here = f"{where}/criteria/{k}"
        for name in ("values", "margins", "verdicts", "intervals"):
            if len(getattr(one, name)) != len(levels):
                yield f"{here}/{name}", f"expected one entry for each of {len(levels)} levels"
                return
        for n, ends in enumerate(one.intervals):
            yield from _ordered(f"{here}/intervals/{n}", ends)
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


def rate_misfits(rate: RateResult) -> Misfits:
    """Bounds that exposures allow, levels, and what a demonstration asks for."""
    from verifier.evidence.rates.demonstration import encounters_needed, hours_needed

    most = math.fsum(term.exposure.upper for term in rate.terms)
    bounds = [("/bounds", rate.bounds), *((f"/other_bounds/{k}", told) for k, told in enumerate(rate.other_bounds))]
    for where, told in bounds:
        yield from _ordered(f"{where}/upper", (told.lower, told.upper), 0, most * (1 + ROUNDING))
        for name in ("level", "error_probability", "error_exposure"):
            if not 0 <= (getattr(told, name) or 0) <= 1:
                yield f"{where}/{name}", f"expected a level from 0 to 1, got {getattr(told, name)}"
        if (told.error_probability is None) != (told.level is None):
            yield f"{where}/level", "expected a level, and the error of the probabilities, or neither"
        held = rate.per_hour is None or told.source == "interval" or near(rate.per_hour, told.lower)
        if not held and not told.lower <= (rate.per_hour or 0) <= told.upper * (1 + ROUNDING):
            yield f"{where}/upper", f"expected bounds of the rate, {rate.per_hour}"
    for k, term in enumerate(rate.terms):
        yield from _ordered(f"/terms/{k}/exposure/lower", (term.exposure.lower, term.exposure.upper), 0)
        if not 0 <= (term.exposure.level or 0) <= 1:
            yield f"/terms/{k}/exposure/level", "expected a level from 0 to 1"
        counted = (term.exposure.encounters is None, term.exposure.hours is None)
        if counted != ((term.exposure.kind != "count"),) * 2:
            yield f"/terms/{k}/exposure/kind", "expected encounters and hours of a count, and of nothing else"
    known = None not in (term.exposure.per_hour for term in rate.terms)
    if known != (rate.per_hour is not None):
        yield "/per_hour", "expected a rate where each exposure has one, and nowhere else"
    yield from _counted(rate)
    if rate.demonstration is not None and rate.acceptance is not None:
        shown, accepted = rate.demonstration, Fraction(rate.acceptance.per_hour)
        asked = Fraction(repr(shown.confidence)), shown.events
        try:
            hours = float(hours_needed(accepted, *asked))
            count = encounters_needed(accepted / Fraction(most), *asked) if most else None
        except (LimitError, ValueError) as error:
            yield "/demonstration/confidence", str(error)
            return
        yield from misfits("/demonstration/hours", shown.hours, hours)
        apart = abs((shown.encounters or 0) - (count or 0))
        if (shown.encounters is None) != (count is None) or apart > 1 + ROUNDING * (count or 0):
            yield "/demonstration/encounters", f"expected {count}, got {shown.encounters}"
    elif (rate.demonstration is None) != (rate.acceptance is None):
        yield "/acceptance", "expected a criterion with what would demonstrate it, or neither"


def _counted(rate: RateResult) -> Misfits:
    """The interval of a count of encounters follows from its share of the error that exposures are allowed."""
    from verifier.evidence.rates.exposure import garwood

    counted = [(k, term.exposure) for k, term in enumerate(rate.terms) if term.exposure.kind == "count"]
    stated = math.fsum(1 - term.exposure.level for term in rate.terms if term.exposure.level is not None)
    share = (rate.bounds.error_exposure - stated) / max(len(counted), 1)
    if counted and not 0 < share < 1:
        yield "/bounds/error_exposure", "expected an error that leaves something for each count"
        return
    for k, exposure in counted:
        hours = float(Fraction(exposure.hours or 1))
        ends = (float(end) / hours for end in garwood(exposure.encounters or 0, Fraction(share)))
        for name, end in zip(("lower", "upper"), ends, strict=True):
            yield from misfits(f"/terms/{k}/exposure/{name}", getattr(exposure, name), end)


def trade_offs_misfits(result: TradeOffsResult) -> Misfits:
    """Everything but the bootstrap follows from the curves."""
    from verifier.closedloop.trade_offs import TradeOffs

    groups, tables = result.settings.get("groups"), []
    for k, told in enumerate(result.metrics):
        try:
            tables.append(_compared(told, groups))
        except (UsageError, ValueError) as error:
            yield f"/metrics/{k}/curves", str(error)
            return
    again = TradeOffs(result.title, (), {}, {}, (), tuple(tables)).document()
    for name in ("metrics", "flips"):
        stated, follows = (_undrawn(json_values(getattr(one, name))) for one in (result, again))
        yield from misfits(f"/{name}", stated, follows)
    for k, table in enumerate(result.metrics):
        for n, row in enumerate(table.rows):
            for m, cell in enumerate(row.cells):
                where = f"/metrics/{k}/rows/{n}/cells/{m}"
                yield from _ordered(f"{where}/area_interval", cell.area_interval, 0, 1)
                yield from _ordered(f"{where}/robustness_interval", cell.robustness_interval, 0)


def _compared(told: TradeOffTable, groups: Mapping[str, Sequence[str]] | None) -> Any:
    from verifier.closedloop.comparison import NamedCurve, compare
    from verifier.closedloop.curves import TradeOffCurve

    severities = {condition.name: condition.severity for condition in told.conditions}
    curves = []
    for curve in told.curves:
        numbers = (
            np.array(values, dtype=np.float64) for values in (curve.sensitivity, curve.safety, curve.efficiency)
        )
        severity = severities.get(curve.condition, "")
        curves.append(NamedCurve(told.metric, curve.detector, curve.condition, TradeOffCurve(*numbers), severity))
    if not curves:
        raise UsageError("expected a curve")
    return compare(curves, groups)


def _undrawn(value: Any) -> Any:
    """JSON values without what was drawn."""
    drawn = ("area_interval", "robustness_interval", "best_probability", "probability")
    if isinstance(value, dict):
        return {key: _undrawn(inner) for key, inner in value.items() if key not in drawn}
    return [_undrawn(inner) for inner in value] if isinstance(value, list) else value


def collision_misfits(study: CollisionStudy) -> Misfits:
    """Maps, intervals, scores and rankings on the grid."""
    from verifier.collision.stopping import BrakingPolicy

    distances, speeds = study.grid.distances_m, study.grid.speeds_mps
    for name, values in (("distances_m", distances), ("speeds_mps", speeds)):
        if not all(low < high for low, high in itertools.pairwise((0.0, *values))):
            yield f"/grid/{name}", "expected rising numbers above 0"
    for p, policy in enumerate(study.policies):
        where = f"/policies/{p}"
        braking = BrakingPolicy(policy.deceleration_mps2, policy.reaction_s)
        stopping = np.asarray(braking.stopping_distance_m(np.array(speeds)), dtype=np.float64).tolist()
        yield from misfits(f"{where}/stopping_m", list(policy.stopping_m), stopping)
        for d, detector in enumerate(policy.detectors):
            yield from _maps(f"{where}/detectors/{d}", study, detector)
        for k, pair in enumerate(policy.comparisons):
            here = f"{where}/comparisons/{k}"
            yield from _shares(f"{here}/p_value", pair.p_value)
            yield from _shares(f"{here}/bootstrap_p_value", pair.bootstrap_p_value or ())
            yield from _coded(f"{here}/area", pair.area, study.codes.area)
            if pair.common_objects > pair.objects:
                yield f"{here}/common_objects", f"expected at most {pair.objects}, all objects"
        if policy.ranking is not None:
            yield from _ranked(f"{where}/ranking", policy.ranking, len(policy.detectors))
        yield from _combined(f"{where}/combination", study, policy)


def _maps(where: str, study: CollisionStudy, detector: DetectorRecord) -> Misfits:
    distances, speeds = len(study.grid.distances_m), len(study.grid.speeds_mps)
    tables = [(f"{where}/oracle", detector.oracle)]
    for k, told in enumerate(detector.intervals):
        tables += [(f"{where}/intervals/{k}/{name}", getattr(told, name)) for name in ("lower", "upper")]
    for here, rows in tables:
        if [len(row) for row in rows] != [speeds] * distances:
            yield here, f"expected {distances} x {speeds} cells"
            return
    if len(detector.images_near) != distances or max(detector.images_near, default=0) > detector.images:
        yield f"{where}/images_near", f"expected at most {detector.images} images for each distance"
    yield from _shares(f"{where}/oracle", detector.oracle)
    yield from _coded(f"{where}/reason", detector.reason, study.codes.reason)
    yield from _coded(f"{where}/trust", detector.trust, study.codes.trust)
    for k, (row, reasons) in enumerate(zip(detector.probability, detector.reason, strict=True)):
        if any((value is None) != (reason != 0) for value, reason in zip(row, reasons, strict=True)):
            yield f"{where}/probability/{k}", "expected null where a code says why, and there only"
    for k, told in enumerate(detector.intervals):
        within = (0.0, 1.0) if told.kind.startswith("exact") else (-math.inf, math.inf)
        for n, pairs in enumerate(zip(told.lower, told.upper, strict=True)):
            for ends in zip(*pairs, strict=True):
                if (ends[0] is None) != (ends[1] is None):
                    yield f"{where}/intervals/{k}/lower/{n}", "expected both ends, or none"
                crossing = told.kind == "exact_monotone" and ends[0] is not None  # where its assumption fails
                both = sorted(end for end in ends if end is not None) if crossing else ends
                yield from _ordered(f"{where}/intervals/{k}/lower/{n}", both, *within)
    if study.settings.weight == "uniform":
        yield from _scored(f"{where}/score", detector.score, detector)
    for k, point in enumerate(() if detector.closed_loop is None else detector.closed_loop.points):
        here = f"{where}/closed_loop/points/{k}"
        yield from _ordered(f"{here}/closer", (point.lower, point.closer), 0, 1)
        yield from _ordered(f"{here}/upper", (point.closer, point.upper), 0, 1)
        yield from _ordered(f"{here}/interval", point.interval, 0, 1)


def _coded(where: str, codes: Sequence[Sequence[int]], known: Mapping[str, str]) -> Misfits:
    for k, row in enumerate(codes):
        if not all(str(code) in known for code in row):
            yield f"{where}/{k}", "expected codes that the document explains"


def _scored(where: str, told: ScoreRecord, detector: DetectorRecord) -> Misfits:
    """The two parts of a score with a uniform weight, over the points where map and oracle are defined."""
    maps = (np.array(rows, dtype=np.float64) for rows in (detector.probability, detector.oracle))
    excess = np.subtract(*maps)
    used = excess[np.isfinite(excess)]
    for name, part in (("above", used), ("below", -used)):
        follows = float(np.maximum(part, 0).mean()) if len(used) else None
        yield from misfits(f"{where}/{name}", getattr(told, name), follows)
    yield from misfits(f"{where}/covered", told.covered, len(used) / max(excess.size, 1))


def _ranked(where: str, told: RankingRecord, detectors: int) -> Misfits:
    """Losses are lines over the ratio; orders and crossings are those of the lines."""
    from verifier.collision.ranking import Ranking
    from verifier.collision.score import Score

    if len(told.scores) != detectors:
        yield f"{where}/scores", f"expected one score for each of {detectors} detectors"
        return
    scores = tuple(Score(*(math.nan if v is None else v for v in (s.above, s.below, s.covered))) for s in told.scores)
    again = Ranking(("",) * detectors, scores, np.empty((0, detectors)), np.empty((0, detectors)), told.heavy, 0, "")
    for k, ratio in enumerate(told.ratios):
        here = f"{where}/ratios/{k}"
        loss = [None if math.isnan(value) else value for value in again.losses(ratio.ratio).tolist()]
        yield from misfits(f"{here}/loss", list(ratio.loss), loss)
        yield from misfits(f"{here}/order", list(ratio.order), list(again.order(ratio.ratio)))
        if len(ratio.lower) != detectors or len(ratio.upper) != detectors:
            yield f"{here}/lower", f"expected one end for each of {detectors} detectors"
            continue
        for low, high in zip(ratio.lower, ratio.upper, strict=True):
            yield from _ordered(f"{here}/lower", (low, high), 0)
        shares = [share for share in ratio.best_share if share is not None]
        yield from _shares(f"{here}/best_share", [shares])
        if shares and not near(math.fsum(shares), 1):
            yield f"{here}/best_share", "expected shares that add up to 1"
    yield from misfits(f"{where}/crossings", json_values(told.crossings), json_values(again.crossings()))


def _combined(where: str, study: CollisionStudy, policy: PolicyRecord) -> Misfits:
    told = policy.combination
    if told is not None:
        shape = [len(study.grid.speeds_mps)] * len(study.grid.distances_m)
        for name in ("choice", "probability"):
            if [len(row) for row in getattr(told, name)] != shape:
                yield f"{where}/{name}", "expected a cell for each distance and speed"
        if not all(-1 <= number < len(policy.detectors) for row in told.choice for number in row):
            yield f"{where}/choice", "expected numbers of detectors, or -1"
        yield from _shares(f"{where}/probability", told.probability)
