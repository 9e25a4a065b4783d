"""Whether rates, risks and triggering conditions follow from what they state and from the runs that they are from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from verifier.base.arrays import grouped
from verifier.base.documents import fraction_of, json_values
from verifier.base.errors import LimitError, UsageError, VerifierError
from verifier.checking.verdicts import Verdict, WithinBounds, verdict_of
from verifier.evidence.resting import ROUNDING, Misfits, misfits, near, once, ordered

if TYPE_CHECKING:
    from verifier.evidence.documents import Document
    from verifier.evidence.rates.document import RateBounds, RateExposure, RateResult
    from verifier.evidence.residual_risk.document import RiskResult
    from verifier.evidence.triggers import TriggersResult


def rate_misfits(rate: RateResult) -> Misfits:
    """Bounds that exposures allow, levels, verdict, and what a demonstration asks for."""
    most, total = math.fsum(term.exposure.upper for term in rate.terms), 0.0
    yield from _criterion(rate)
    for k, term in enumerate(rate.terms):
        yield from _exposure(f"/terms/{k}/exposure", term.exposure)
        total += term.probability * (term.exposure.per_hour or 0.0)
    if rate.per_hour is not None and not near(total, rate.per_hour):
        yield "/per_hour", f"expected {total}, the sum of probability and exposure over the terms"
    yield from once("/other_bounds", (told.source for _, told in _all_bounds(rate)))
    for where, told in _all_bounds(rate):
        if told.lower > told.upper:
            yield f"{where}/lower", f"expected at most the upper bound, {told.upper}"
        if told.level is not None and told.error_probability is not None:
            level = 1 - (told.error_probability + told.error_exposure)
            if not near(level, told.level):
                yield f"{where}/level", f"expected {level}, 1 minus both errors"
        yield from ordered(f"{where}/upper", (told.lower, told.upper), 0, most * (1 + ROUNDING))
        for name in ("level", "error_probability", "error_exposure"):
            if not 0 <= (getattr(told, name) or 0) <= 1:
                yield f"{where}/{name}", f"expected a level from 0 to 1, got {getattr(told, name)}"
        if (told.error_probability is None) != (told.level is None):
            yield f"{where}/level", "expected a level, and the error of the probabilities, or neither"
        held = rate.per_hour is None or told.source == "interval" or near(rate.per_hour, told.lower)
        if not held and not told.lower <= (rate.per_hour or 0) <= told.upper * (1 + ROUNDING):
            yield f"{where}/upper", f"expected bounds of the rate, {rate.per_hour}"
    known = None not in (term.exposure.per_hour for term in rate.terms)
    if known != (rate.per_hour is not None):
        yield "/per_hour", "expected a rate where each exposure has one, and nowhere else"
    yield from _counted(rate)
    yield from _demonstrated(rate, most)


def _criterion(rate: RateResult) -> Misfits:
    """The verdict of a rate follows from its bounds, which are rounded outwards, and from its reason."""
    low, high = rate.bounds.lower, rate.bounds.upper
    limit = None if rate.acceptance is None else rate.acceptance.per_hour
    inner = math.nextafter(low, math.inf), math.nextafter(high, -math.inf)
    models = {verdict_of(start, end, "<=", limit).value for start, end in ((low, high), inner)}
    reason, said = rate.reason, rate.verdict.value
    if reason is not None and not isinstance(reason, WithinBounds):
        models, said = models if said == "inconclusive" else set(), reason.model_verdict
    if said not in models and not (said == "vacuous" and "satisfied" in models):
        yield "/verdict", f"expected {' or '.join(sorted(models)) or 'inconclusive'}, got {said}"
    if rate.condition is not None and rate.verdict not in (Verdict.SATISFIED, Verdict.VIOLATED):
        yield "/condition", f"expected none of a verdict {rate.verdict.value}"


def _exposure(where: str, told: RateExposure) -> Misfits:
    """The ends of an interval in order, with the estimate between them; of a count, encounters by hours."""
    if told.per_hour is not None and not told.lower <= told.per_hour <= told.upper:
        yield f"{where}/per_hour", "expected a rate within its own bounds"
    if told.lower > told.upper:
        yield f"{where}/lower", f"expected at most the upper bound, {told.upper}"
    hours = None if told.hours is None else float(fraction_of(told.hours))
    rate, encounters = told.per_hour, float(told.encounters or 0)
    if hours is not None and (rate is None or not near(encounters, rate * hours)):
        yield f"{where}/per_hour", "expected encounters by hours"
    yield from ordered(f"{where}/lower", (told.lower, told.upper), 0)
    if not 0 <= (told.level or 0) <= 1:
        yield f"{where}/level", "expected a level from 0 to 1"
    if (told.encounters is None, told.hours is None) != ((told.kind != "count"),) * 2:
        yield f"{where}/kind", "expected encounters and hours of a count, and of nothing else"


def _demonstrated(rate: RateResult, most: float) -> Misfits:
    """What testing alone would take to show a criterion, at `most` encounters per hour."""
    from verifier.evidence.rates.document import encounters_needed, hours_needed

    if (rate.demonstration is None) != (rate.acceptance is None):
        yield "/acceptance", "expected a criterion with what would demonstrate it, or neither"
    if rate.demonstration is None or rate.acceptance is None:
        return
    shown, accepted = rate.demonstration, rate.acceptance.per_hour
    confidence = Fraction(repr(shown.confidence))
    try:
        hours = float(hours_needed(accepted, confidence))
        count = encounters_needed(accepted / Fraction(most), confidence) if most else None
    except (LimitError, ValueError) as error:
        yield "/demonstration/confidence", str(error)
        return
    yield from misfits("/demonstration/hours", shown.hours, hours)
    apart = abs((shown.encounters or 0) - (count or 0))
    if (shown.encounters is None) != (count is None) or apart > 1 + ROUNDING * (count or 0):
        yield "/demonstration/encounters", f"expected {count}, got {shown.encounters}"


RATED = ("rate", "risk", "triggers")
"""Kinds of documents that are made from runs."""


def against_its_run(document: Document, documents: Iterable[Document]) -> Misfits:
    """As `rate_against_run`, `risk_against_runs` or `triggers_against`, where what it is from is there."""
    there = {document.sha256: document for document in documents}
    runs = {digest: document for digest, document in there.items() if document.kind == "run"}
    if document.kind == "risk":
        made_from = _runs_of(document.result, runs)
        if made_from:  # else one is not there
            yield from risk_against_runs(document.result, made_from)
    elif document.kind == "triggers":
        named = {file.sha256 for file in document.result.inputs if file.role != "context"}
        if named <= there.keys():
            sources = [source for digest, source in there.items() if digest in named]
            yield from triggers_against(document.result, sources)
    elif document.kind == "rate":
        run = next((runs[given.sha256] for given in document.result.inputs if given.sha256 in runs), None)
        if run is not None:
            yield from rate_against_run(document.result, run)


def _runs_of(risk: RiskResult, runs: Mapping[str, Document]) -> list[Document]:
    """What a risk is made from: the runs that it names, and those of which nothing follows, which it does not; none
    where one of them is not there, or nobody can say which it is."""
    from verifier.evidence.residual_risk.assembly import NO_MATRICES, NO_RUN, run_with

    cells = [cell for hazard in risk.hazards for cell in hazard.cells]
    silent = {cell.condition for cell in cells if cell.unknown not in ("", NO_RUN, NO_MATRICES)}
    silent -= {cell.condition for cell in cells if cell.run is not None}
    documents = [runs.get(run.sha256) for run in risk.runs]
    further = [condition.sha256 for condition in risk.conditions if condition.name in silent]
    try:
        documents += [run_with(matrices, runs.values()) for matrices in further]
    except UsageError:
        return []
    return [] if None in documents else [run for run in documents if run is not None]


def alone(document: Document, documents: Iterable[Document]) -> str:
    """What is said of a rate or a risk whose runs are not all among the documents; "" of anything else."""
    there = {document.sha256 for document in documents if document.kind == "run"}
    named = [file for file in document.result.inputs if file.role == "result"] if document.kind in RATED else []
    run = next((file for file in named if file.sha256 not in there), None)
    if run is None:
        return ""
    return (
        f"the run it is from, {run.name} (SHA-256 {run.sha256[:12]}), is not beside this {document.kind}: its "
        "probabilities, bounds and verdict are taken from it as it states them, and were not computed again"
    )


def rate_against_run(rate: RateResult, run: Document) -> Misfits:
    """Whether a rate is one of a run: its event's probabilities, what it rests on, and the decision that follows."""
    from verifier.evidence.rates.exposure import FREE, Grounds, chances, requirement_of
    from verifier.evidence.rates.hazard import EVERY, summed

    try:
        all_chances = chances(requirement_of(run, rate.requirement, rate.planner), rate.event)
    except UsageError as error:
        yield "/requirement", str(error)
        return
    used = [chance for chance in all_chances if chance.environment not in rate.left_out]
    groups = [[chance for chance in used if term.environment in (EVERY, chance.environment)] for term in rate.terms]
    if not all(groups) or sum(map(len, groups)) != len(used):
        yield "/terms", f"expected the environments of the run {run.name} that are not left out"
        return
    for k, (term, group) in enumerate(zip(rate.terms, groups, strict=True)):
        worst = max(group, key=lambda chance: chance.probability)
        stated = {"worst_scenario": worst.scenario, "scenarios": len(group), "probability": float(worst.probability)}
        for name, value in stated.items():
            yield from misfits(f"/terms/{k}/{name}", getattr(term, name), value)
    grounds, source = Grounds(run.result, used), rate.bounds.source
    if source == FREE:
        yield "/bounds/source", "expected what decides the run"
        return
    for where, told in _all_bounds(rate):
        if any(told.source not in chance.bounds for chance in used):
            yield f"{where}/source", "expected bounds that the run has"
            return
        yield from misfits(f"{where}/assumes", list(told.assumes), list(grounds.assumes(told.source)))
    met = [(Fraction(term.exposure.lower), Fraction(term.exposure.upper)) for term in rate.terms]
    terms = list(zip(met, groups, strict=True))
    bounds, whatever = summed(terms, source), summed(terms, None)
    free = None if rate.free is None else summed(terms, FREE)
    for where, told in _all_bounds(rate):
        follows = free if told.source == FREE else bounds if told.source == source else None
        for name, end in zip(("lower", "upper"), follows or (), strict=False):
            yield from misfits(f"{where}/{name}", getattr(told, name), float(end))
    limit = None if rate.acceptance is None else rate.acceptance.per_hour
    known = limit is None or not any(near(float(end / limit), 1) for end in (*bounds, *whatever, *(free or ())))
    if known:  # where they are equal, doubles do not tell
        decision = grounds.decision(source, bounds, whatever, free, limit)
        for name in ("verdict", "condition", "basis", "reason"):
            follows = getattr(decision, name)
            if getattr(rate, name) != follows:
                yield f"/{name}", f"expected {follows}, as the run {run.name} decides"


def _all_bounds(rate: RateResult) -> list[tuple[str, RateBounds]]:
    """Those that the verdict comes from, and the others, by where they stand."""
    return [("/bounds", rate.bounds), *((f"/other_bounds/{k}", told) for k, told in enumerate(rate.other_bounds))]


def _counted(rate: RateResult) -> Misfits:
    """The interval of a count of encounters follows from its share of the error that exposures are allowed."""
    from verifier.evidence.rates.document import exposure_in

    counted = [(k, term.exposure) for k, term in enumerate(rate.terms) if term.exposure.kind == "count"]
    stated = math.fsum(1 - term.exposure.level for term in rate.terms if term.exposure.level is not None)
    share = (rate.bounds.error_exposure - stated) / max(len(counted), 1)
    if counted and not 0 < share < 1:
        yield "/bounds/error_exposure", "expected an error that leaves something for each count"
        return
    for k, exposure in counted:
        for name, end in zip(("lower", "upper"), exposure_in(exposure).interval(Fraction(share)), strict=True):
            yield from misfits(f"/terms/{k}/exposure/{name}", getattr(exposure, name), float(end))


_STATED = ("command", "inputs", "versions")


def risk_misfits(risk: RiskResult) -> Misfits:
    """Intervals of counts, and names that refer to each other; what else follows is refused where it is read."""
    from verifier.evidence.residual_risk.assembly import environment_of, stated_in

    for what in ("conditions", "environments", "hazards"):
        yield from once(f"/{what}", (part.name for part in getattr(risk, what)))
    yield from once("/runs", (run.sha256 for run in risk.runs))
    named = [rate_input.sha256 for rate_input in risk.inputs if rate_input.role == "result"]
    if named != [run.sha256 for run in risk.runs]:
        yield "/inputs", "expected the results of the runs"
    for h, hazard in enumerate(risk.hazards):
        for c, cell in enumerate(hazard.cells):
            if cell.run is not None and cell.run >= len(named):
                yield f"/hazards/{h}/cells/{c}/run", "expected the number of a run"
        for k, factor in enumerate(hazard.chain):
            yield from misfits(f"/hazards/{h}/chain/{k}/part", factor.part, f"{factor.name} of {hazard.name}")
    try:
        stated = stated_in(risk)
    except ValueError as error:
        yield "/environments", str(error)
        return
    for k, where in enumerate(risk.environments):
        parts = [(share.name, share.part.removesuffix(f" in {where.name}")) for share in where.shares]
        if parts != [(condition.name, f"share of {condition.name}") for condition in risk.conditions]:
            yield f"/environments/{k}/shares", "expected a share of each condition, called so"
            return
        if where.unlisted.part.removesuffix(f" in {where.name}") != "unlisted encounters":
            yield f"/environments/{k}/unlisted/part", "expected the part of unlisted encounters"
        share = where.error if where.exposure.kind == "count" else where.unlisted.error
        try:
            follows = environment_of(where.name, stated, share)
        except (UsageError, ValueError) as error:
            yield f"/environments/{k}", str(error)
            return
        yield from misfits(f"/environments/{k}", json_values(where), json_values(follows), 0.0)


def risk_against_runs(risk: RiskResult, runs: list[Document]) -> Misfits:
    """Whether the risk is that of its runs, made again from what it states."""
    from verifier.evidence.residual_risk.assembly import residual_risk, stated_in

    try:
        follows = json_values(residual_risk(stated_in(risk), runs))
    except (UsageError, ValueError) as error:
        yield "/hazards", str(error)
        return
    documents = (json_values(risk), follows)
    told, made = ({key: document[key] for key in document if key not in _STATED} for document in documents)
    yield from misfits("", told, made, 0.0)


def triggers_misfits(result: TriggersResult) -> Misfits:
    """Every condition stands once, with what it names, and every pair of them."""
    from itertools import combinations

    yield from once("/triggers", (trigger.name for trigger in result.triggers))
    named = grouped((file.role, file.sha256) for file in result.inputs)
    for k, trigger in enumerate(result.triggers):
        if trigger.run not in {None, *named.get("result", ())}:
            yield f"/triggers/{k}/run", "expected a run among the inputs"
        if trigger.run is None and trigger.judged:
            yield f"/triggers/{k}/judged", "expected nothing without a run"
        if trigger.items is not None and trigger.sha256 not in named.get("confusion", ()):
            yield f"/triggers/{k}/items", "expected counts of matrices among the inputs"
    pairs = [(pair.first, pair.second) for pair in result.pairs]
    if pairs != list(combinations([trigger.name for trigger in result.triggers], 2)):
        yield "/pairs", "expected every two conditions once"
    for k, pair in enumerate(result.pairs):
        if (pair.items is None) == (pair.reason == ""):
            yield f"/pairs/{k}/reason", "expected a reason where the items are not known, and nowhere else"


def triggers_against(result: TriggersResult, sources: Sequence[Document]) -> Misfits:
    """Whether they are what runs and matrices say, made again from what is stated."""
    from verifier.evidence.triggers import known_triggers

    try:
        follows = known_triggers(result.triggers, sources)
    except VerifierError as error:
        yield "/triggers", str(error)
        return
    for name in ("triggers", "pairs"):
        yield from misfits(f"/{name}", json_values(getattr(result, name)), json_values(getattr(follows, name)), 0.0)
