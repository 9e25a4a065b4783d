"""All defeaters of all runs of a case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from verifier.base.errors import InputError, Place
from verifier.evidence.context import CaseContext
from verifier.evidence.defeaters import about_data, about_settings, about_verdicts
from verifier.evidence.defeaters.matrices import sources_of
from verifier.evidence.defeaters.values import Defeater, Doubt, claimed
from verifier.evidence.documents import Document


def find_defeaters(
    documents: Sequence[Document], context: CaseContext, alternatives: Mapping[str, Document]
) -> tuple[Defeater, ...]:
    """What speaks against the verdicts of every run among the documents.

    Args:
        documents: of the case; those of kind "run" make the claims.
        context: what people state.
        alternatives: policy in words -> the document of a run of the same inputs under that policy.

    Raises:
        InputError: an alternative is not the document of a run, or of other inputs than every run of the case.
    """
    runs = [each for each in {each.sha256: each for each in documents}.values() if each.kind == "run"]
    for policy, other in alternatives.items():
        if other.kind != "run" or not any(sources_of(other) == sources_of(run) for run in runs):
            raise InputError(
                f"the result under the policy '{policy}' is no run of the same spec, model and matrices",
                Place(other.name),
            )
    doubts = [doubt for run in runs for doubt in _doubts(run, documents, context, alternatives)]
    unique = dict.fromkeys(each for each in doubts if each.claims)
    return tuple(
        Defeater(f"D{number}", each.kind, each.message, each.claims, each.remedy)
        for number, each in enumerate(unique, start=1)
    )


def _doubts(
    run: Document, documents: Sequence[Document], context: CaseContext, alternatives: Mapping[str, Document]
) -> Iterator[Doubt]:
    if not any(claimed(run, documents)):
        return  # nothing is claimed
    mine = {policy: other for policy, other in alternatives.items() if sources_of(other) == sources_of(run)}
    yield from about_data.stale(run, documents)
    yield from about_data.trained_on_tests(run, documents, context)
    yield from about_data.dependent_frames(run, documents)
    yield from about_data.untested_channel(run, documents)
    yield from about_data.few_drives(run, documents)
    yield from about_settings.no_false_positives(run, documents)
    yield from about_settings.distance_ignored(run, documents)
    yield from about_settings.assumed_rates(run, documents)
    yield from about_settings.rounded(run, documents)
    yield from about_settings.endless(run, documents)
    yield from about_settings.left_out(run, documents)
    yield from about_verdicts.vacuous(run, documents)
    yield from about_verdicts.one_engine(run, documents)
    yield from about_verdicts.straddles_target(run)
    yield from about_data.thin_columns(run, documents)
    yield from about_verdicts.no_bounds(run)
    yield from about_verdicts.policy_sensitive(run, mine)
