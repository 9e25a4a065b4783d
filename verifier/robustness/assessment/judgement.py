"""The assessment of one system: distances, the metamorphic relation, the verdict, and what a reader must know.

circumstances -> missing test cases -> plan -> performance and distances -> relation per metric -> verdict
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from verifier.base.numbers import exact_text
from verifier.robustness.assessment.circumstances import Circumstance
from verifier.robustness.assessment.definition import Assessment, DataSet
from verifier.robustness.assessment.measures import DatasetDistance
from verifier.robustness.assessment.plan import Plan
from verifier.robustness.assessment.relation import least_scale, outcomes
from verifier.robustness.assessment.result import DegradationResult, MadeHere, SystemResult, TargetResult


def assess(
    assessment: Assessment,
    computed: Mapping[str, Mapping[str, DatasetDistance]] | None = None,
    plan: Plan | None = None,
    degradation: DegradationResult | None = None,
    made: MadeHere | None = None,
) -> SystemResult:
    """Judge one system.

    Args:
        assessment: what the file says.
        computed: by target and distance what was computed from images or features; a given number goes before it.
        plan: of the follow-up test cases, if one was drawn.
        degradation: what growing disturbances showed, if that was asked for.
        made: what was made for it, if anything was.
    """
    found = computed or {}
    targets = tuple(_judged(assessment, each, found.get(each.name, {})) for each in assessment.all_targets())
    remarks = (
        *_definition_remarks(assessment),
        *_outcome_remarks(assessment, targets),
        *_making_remarks(assessment, made),
    )
    return SystemResult(assessment, targets, plan, degradation, remarks, made)


def _judged(assessment: Assessment, target: DataSet, computed: Mapping[str, DatasetDistance]) -> TargetResult:
    known = {**computed, **target.distances}
    distances = {name: known[name] for name in assessment.rules if name in known}
    source = assessment.source.performance
    if source is None or target.performance is None:
        return TargetResult(target, distances, ())
    scale = least_scale(assessment.shown_in(target))
    found = outcomes(assessment.metrics, source, target.performance, assessment.rules, distances, scale)
    unchecked = tuple(
        name
        for name, rule in assessment.rules.items()
        if rule.tolerance is not None and (name not in distances or distances[name].distance is None)
    )
    return TargetResult(target, distances, tuple(found), unchecked)


def _definition_remarks(assessment: Assessment) -> Iterator[str]:
    lacking = {
        "no frequency in use": [each for each in assessment.circumstances if each.frequency is None],
        "no frequency in the source data": [
            each for each in assessment.circumstances if each.source_frequency is None
        ],
        "no assessed significance": [each for each in assessment.circumstances if each.risk is None],
        "no transformation": [each for each in assessment.circumstances if each.transformation is None],
    }
    consequences = {
        "no frequency in use": "its share of follow-up test cases is not known",
        "no frequency in the source data": "what is missing is not known",
        "no assessed significance": "it comes last in the priorities",
        "no transformation": "no follow-up image can be made for it",
    }
    for what, without in lacking.items():
        if without:
            yield f"{_listed(without)}: {what}; {consequences[what]}"
    total = assessment.total_frequency
    if assessment.occurrence == "exclusive" and assessment.circumstances and total < 1:
        yield (
            f"the circumstances exclude each other and sum to {exact_text(total)}, not 1: in the rest of use "
            "none is met, and the target data show only these, in proportion"
        )


def _outcome_remarks(assessment: Assessment, targets: tuple[TargetResult, ...]) -> Iterator[str]:
    for found in targets:
        for name in found.unchecked:
            yield f"{found.target.name}: no distance by {name}, so the relation could not be checked with it"
        for each in found.outcomes:
            if each.rises and not each.holds:
                yield (
                    f"{found.target.name}: {each.metric} is better on the target data, which violates the relation "
                    "as well: it asks for no change, not for a good performance"
                )
    source = assessment.source.performance
    if source is not None and any(found.outcomes for found in targets):
        for name in assessment.metrics:
            if source.values[name] == 0:
                yield f"{name} is 0 on the source data: it cannot fall, so that the relation says nothing by it"
    measured = [found for found in targets if found.target.performance is not None]
    if measured and not any(rule.tolerance is not None for rule in assessment.rules.values()):
        yield "no distance has a tolerance: changes of performance are listed and not judged"
    if any(found.outcomes for found in targets):
        yield (
            "the relation asks for all pairs of sets of circumstances, and those listed here are checked: a "
            "violation refutes robustness; a relation that holds here proves nothing for other data"
        )


def _making_remarks(assessment: Assessment, made: MadeHere | None) -> Iterator[str]:
    asked = assessment.degradation
    if made is None and assessment.detector is not None:
        yield "the detector was not run: it is when data are made"
    if made is None and asked is not None and asked.recipe is not None:
        yield f"the levels of {asked.parameter} were not made, so nothing is known of them"
    if made is not None and made.images and assessment.detector is None:
        yield "follow-up images were made, and no detector is named that could be run on them"
    if made is not None:
        yield from made.remarks


def _listed(circumstances: list[Circumstance]) -> str:
    names = [each.name for each in circumstances]
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
