"""What stands below the table of `verify run`: what its numbers assume, what the data say of that, what is open."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from verifier.analysis.channel_test import Channel, Untested, detector_text
from verifier.analysis.intervals.tiers import UNITS
from verifier.analysis.planning import EvidencePlan
from verifier.base.arrays import grouped
from verifier.base.errors import one_line
from verifier.base.numbers import error_text, fixed, level_text, significant
from verifier.base.words import counted
from verifier.checking.enclosure import ONE_ENGINE
from verifier.checking.verdicts import PERSISTENT, Verdict, WithinBounds
from verifier.study.points import Point
from verifier.study.provenance import DROPPED, draws_remark
from verifier.study.records import ConfidenceRecord, SettingsRecord
from verifier.study.results import RequirementResult, RunResult
from verifier.telling.grounds import free_text, looks_text, tipping_sentences, why

if TYPE_CHECKING:
    from verifier.questions.explain.explain_result import Explained, ExplainResult

WIDTH = 100
"""Characters of the box around a warning."""
SEMANTICS = {"per_state": "the matrix may differ from state to state", "shared_matrix": "one matrix throughout"}


def decision_lines(result: RunResult) -> list[str]:
    """Why verdicts are open although numbers decide, where requirements say nothing, what no detector could change.

    A blank line first.
    """
    lines = [
        f"{_where(requirement)}: {one_line(text)}"
        for requirement in result.requirements
        if (text := why(requirement.worst_point))
    ]
    lines += [line for requirement in result.requirements for line in _vacuous_elsewhere(requirement)]
    for verdict, said in ((Verdict.SATISFIED, "holds"), (Verdict.VIOLATED, "fails")):
        names = dict.fromkeys(
            requirement.name for requirement in result.requirements if _whatever_predicted(requirement, verdict)
        )
        lines += [f"{name} {said} whatever the detector predicts{_held(result)}" for name in names]
    lines += [
        f"{_where(requirement)}: {free_text(requirement.worst_point.dependence_free)}"
        for requirement in result.requirements
        if requirement.worst_point.dependence_free is not None
    ]
    return ["", *lines] if lines else []


def _vacuous_elsewhere(requirement: RequirementResult) -> Iterator[str]:
    """Where a requirement says nothing, for other reasons than in its worst scenario."""
    told = {reason.text for reason in requirement.worst_point.vacuity}
    scenarios = grouped((reason.text, point.scenario) for point in requirement.points for reason in point.vacuity)
    for text in (text for text in scenarios if text not in told):
        first, *rest = scenarios[text]
        more = f" and {len(rest)} more of {len(requirement.points)} scenarios" if rest else ""
        yield f"{requirement.name}, planner {requirement.planner}, {first}{more}: vacuous, {one_line(text)}"


def _whatever_predicted(requirement: RequirementResult, verdict: Verdict) -> bool:
    """Whether the verdict of a requirement is this one, and no detector could change it."""
    deciding = [point for point in requirement.points if point.verdict is verdict]
    bases = [point.basis == "any_dependence" and point.decided_free is None for point in deciding]
    return requirement.verdict is verdict and (any(bases) if verdict is Verdict.VIOLATED else all(bases))


def _held(result: RunResult) -> str:
    """What a detector that can predict anything cannot do in the model."""
    dropped = any(remark.startswith(DROPPED) for remark in result.remarks)
    without = dropped or result.settings.false_positives == "ignore"
    return ", as long as it has no false positives" if without else ""


def evidence_lines(
    result: RunResult | ExplainResult, told: Iterable[tuple[RequirementResult | Explained, Point]]
) -> list[str]:
    """What would decide each requirement that the bounds leave open, a blank line first; nothing where none is.

    It is looked for where confidence bounds decide, or too few draws do not; `told` has the scenario of each.
    """
    if not says_what_decides(result.settings):
        return []
    mixed = result.matrices is not None and result.matrices.mix is not None
    lines = [
        _evidence_line(
            f"{asked.name}, planner {asked.planner}, {point.scenario}",
            asked.additional_data,
            result.settings,
            mixed=mixed,
        )
        for asked, point in told
        if asked.verdict is Verdict.INCONCLUSIVE and (point.reason is None or isinstance(point.reason, WithinBounds))
    ]
    return ["", *lines] if lines else []


def _evidence_line(where: str, plan: EvidencePlan | None, settings: SettingsRecord, *, mixed: bool) -> str:
    """How much more data would decide a requirement; `where` names it, `mixed` is whether matrices were mixed."""
    assumption = settings.assumption()
    assumed = "assuming unchanged rates" + ("" if assumption is None else f" and that {assumption}")
    if plan is None:
        return f"To decide {where}: the amount of data was not estimated; {unplanned(settings, mixed=mixed)}."
    if plan.drives is not None:
        return f"To decide {where}: about {plan.drives} more drives like these, {assumed}."
    wanted = [f"with true class {column.true} in {column.bin} (now {column.items})" for column in plan.columns[:3]]
    if len(plan.columns) > 1:
        wanted = [f"{column.further} {text}" for column, text in zip(plan.columns, wanted, strict=False)]
    more = f" and in {len(plan.columns) - 3} more columns" if len(plan.columns) > 3 else ""
    items = f"about {plan.total} more items{':' if len(wanted) > 1 else ''} {', '.join(wanted)}{more}"
    return f"To decide {where}: {items}, {assumed}."


def says_what_decides(settings: SettingsRecord) -> bool:
    """Whether inconclusive verdicts say what would decide them."""
    return settings.verdict_from == "bounds" or bool(_few_draws(settings))


def _few_draws(settings: SettingsRecord) -> list[str]:
    """What is said where verdicts are from draws, and these are too few for any."""
    confidence = settings.confidence
    if confidence is None or not (settings.verdict_from == "interval" or settings.tier == "approximate"):
        return []
    return draws_remark(confidence.draws, confidence.bounds)


def unplanned(settings: SettingsRecord, *, mixed: bool = False) -> str:
    """Why no amount of data is known; `mixed` is whether matrices were mixed."""
    few = _few_draws(settings)
    if few:
        return few[0]
    if settings.tier == "approximate":
        return "bounds from randomly weighted drives have no plan"
    if settings.tier == "rate_box":
        return "data do not move a stated box"
    if mixed:
        return "mixed matrices have no plan"
    return "steps are counted, the chain is too large, or P is too close to the target"


def tipping_lines(result: RunResult) -> list[str]:
    """How wrong what the bounds assume may be before a verdict falls, a blank line first; nothing where unknown."""
    lines = []
    for requirement in result.requirements:
        lines += [f"{_where(requirement)}: {text}" for text in tipping_sentences(requirement.tipping_points)]
    return ["", *lines] if lines else []


def _where(requirement: RequirementResult) -> str:
    return f"{requirement.name}, planner {requirement.planner}, {requirement.worst_point.scenario}"


def summary_lines(result: RunResult) -> list[str]:
    """Engines, numerical error, what intervals, bounds and chain assume, notes, and the verdict."""
    count = sum(len(requirement.points) for requirement in result.requirements)
    furthest = result.engines.largest_difference
    agreement = f"largest difference {error_text(furthest)}" if furthest else "identical results"
    alone = ", but for those of one engine (see the notes)" if any(ONE_ENGINE in r for r in result.remarks) else ""
    lines = [
        f"{counted(count, *_numbers_are(result))} computed by Storm {result.versions['storm']} and "
        f"confirmed by an independent solver ({agreement}){alone}."
    ]
    if result.settings.round_transitions is None:
        lines.append(_numerical_line(result))
    confidence = result.settings.confidence
    if confidence is not None:
        drawn = f"{confidence.draws} draws of the matrices ({confidence.reason})"
        lines.append(f"{level_text(confidence.level)} {confidence.interval} intervals: {drawn}.")
        lines += _bounds_lines(confidence)
    lines += _channel_lines(result.channel)
    lines += remark_lines(result.remarks)
    return [*lines, f"verdict: {one_line(result.verdict_text)}"]


def _numbers_are(result: RunResult) -> tuple[str, str]:
    """What the numbers of a run are called, one and many."""
    plain = all(requirement.asked.startswith("P") for requirement in result.requirements)
    return ("probability", "probabilities") if plain else ("number", "numbers")


def remark_lines(remarks: Sequence[str]) -> list[str]:
    """What a reader must know: warnings between rules, then notes."""
    warnings = [remark for remark in remarks if "warning: " in remark]
    lines = [line for warning in warnings for line in boxed(one_line(warning))]
    return lines + [f"note: {one_line(remark)}" for remark in remarks if remark not in warnings]


def _numerical_line(result: RunResult) -> str:
    if result.settings.exact:
        return "Numerical error: none, exact for the given counts. It says nothing about how certain these are."
    off = max(farthest(point) for requirement in result.requirements for point in requirement.points)
    return f"Numerical error: at most {error_text(off)}."


def farthest(point: Point) -> float:
    """How far the probability of a point can be off numerically."""
    if point.lower == point.upper:  # both may be infinite
        return 0.0
    return max(point.upper - point.probability, point.probability - point.lower)


def _bounds_lines(confidence: ConfidenceRecord) -> Iterator[str]:
    """What the confidence bounds are, what they assume, and the drives behind them."""
    bounds = confidence.bounds
    if bounds.tier == "approximate":
        how = "each on its own, from randomly weighted drives"
    elif bounds.tier == "rate_box":
        how = (
            "hold whatever the detector remembers, if no probability of a report, given all that was reported "
            "before, leaves the box. It is stated, not shown by data; P and its interval are of the data"
        )
    else:
        rates = counted(bounds.chances, "rate", "rates")
        how = f"all at once, from intervals of {rates}; {SEMANTICS[confidence.semantics]}"
    yield f"{bounds.name}: {how}."
    yield (
        f"  Assumes {bounds.condition}. Not checked. If false, the bounds can be too narrow. "
        f"Valid {looks_text(bounds)}."
    )
    if bounds.drives is not None and bounds.effective_drives is not None and bounds.largest_share is not None:
        drives = counted(bounds.drives, bounds.unit)
        if bounds.weights == "drive":
            yield f"  {drives}, each counted once."
            return
        yield (
            f"  {drives}, effective number {fixed(bounds.effective_drives, 1)}; the largest one holds "
            f"{fixed(100 * bounds.largest_share, 0)} % of a column's {UNITS[bounds.weights]}."
        )


def _channel_lines(channel: Channel) -> Iterator[str]:
    """What the chain assumes of the detector, and whether the data test it; a contradiction is a warning apart."""
    if not channel.classes:
        return
    assumed = "Assumes a memoryless detector: errors independent between time steps and between objects."
    if channel.contexts is not None and channel.contexts.startswith(PERSISTENT):
        assumed = f"Assumes {detector_text(channel.contexts)}, at whatever rates, and that they begin as counted."
    elif channel.contexts is not None:
        assumed = (
            f"Assumes {detector_text(channel.contexts)}: one rate per bin, class and context for all objects and "
            "drives, and objects independent given what went before."
        )
    untested = [untested for untested in channel.classes if isinstance(untested, Untested)]
    silent, unknown = (
        [label_test.label for label_test in untested if label_test.no_misses == no] for no in (True, False)
    )
    tested = [test for test in channel.classes if not isinstance(test, Untested) and test.test == "not_contradicted"]
    said = []
    if tested:
        least = min(test.least_p for test in tested)
        names = ", ".join(test.label for test in tested)
        said.append(f"Time steps tested along tracks, not contradicted: {names} (least p = {significant(least, 2)}).")
    if silent:
        said.append(f"Not tested: {', '.join(silent)} (no misses to test it by).")
    if unknown:
        said.append(f"Not tested: {', '.join(unknown)}{' (no tracks)' if channel.contexts is None else ''}.")
    said.append("Objects: not tested. If false, P can be wrong in either direction.")
    yield one_line(" ".join([assumed, *said]))


def boxed(text: str) -> Sequence[str]:
    """A text between two rules, wrapped."""
    rule = "!" * WIDTH
    return [rule, *textwrap.wrap(text, WIDTH), rule]
