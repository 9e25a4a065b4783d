"""Doubts that follow from how a run was made: its settings, and what it remarks itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from verifier.base.words import name_text, some_of
from verifier.evidence.defeaters.values import Doubt, claims_on, doubt
from verifier.evidence.documents import Document

ASSUMED = "rates filled in by policy"
NO_ALARMS = "so the model contains no false positives"
"""What the remarks of a run hold, and how they end, that say so."""


def no_false_positives(run: Document, documents: Sequence[Document]) -> Iterator[Doubt]:
    """Matrices, or a choice, by which the detector never reports what is not there."""
    reason = next((each for each in run.result.remarks if each.endswith(NO_ALARMS)), None)
    if run.result.settings.false_positives == "ignore":
        reason = f"false positives were ignored by choice, {NO_ALARMS}"
    if reason is not None:
        yield from doubt(
            "no_false_positives",
            name_text(reason, 600),
            claims_on(run, documents),
            "matrices that count unmatched detections",
        )


def distance_ignored(run: Document, documents: Sequence[Document]) -> Iterator[Doubt]:
    """One matrix for all distances."""
    if run.result.settings.canonical:
        yield from doubt(
            "distance_ignored",
            "the matrices of all distances were added up: the detector is assumed to be equally good at every "
            "distance",
            claims_on(run, documents, perceived=True),
            "a run without --canonical",
        )


def assumed_rates(run: Document, documents: Sequence[Document]) -> Iterator[Doubt]:
    """Rates that a policy made up for columns without items; intervals and confidence bounds do not lean on them."""
    if run.result.settings.verdict_from != "point":
        return
    for remark in run.result.remarks:
        if ASSUMED in remark:
            yield from doubt(
                "assumed_rates",
                name_text(remark, 600),
                claims_on(run, documents, perceived=True),
                "items in these columns, or a verdict from the confidence bounds",
            )


def rounded(run: Document, documents: Sequence[Document]) -> Iterator[Doubt]:
    """Transition probabilities that were rounded, as the archive of the published numbers did."""
    decimals = run.result.settings.round_transitions
    if decimals is not None:
        yield from doubt(
            "rounded",
            f"transition probabilities were rounded to {decimals} decimals: rows need not sum to 1, and the values "
            "are no probabilities of the system",
            claims_on(run, documents),
            "a run without --round-transitions",
        )


def endless(run: Document, documents: Sequence[Document]) -> Iterator[Doubt]:
    """Terminal states left out."""
    if run.result.settings.endless:
        yield from doubt(
            "endless",
            "the model's terminal states were left out: the probabilities are of runs that never end, not of "
            "encounters",
            claims_on(run, documents),
            "a run without --endless",
        )


def left_out(run: Document, documents: Sequence[Document]) -> Iterator[Doubt]:
    """Environments that the spec asks for and the command left out."""
    names = run.result.settings.environments_left_out
    if names:
        yield from doubt(
            "scenarios_left_out",
            f"{name_text(run.name)} leaves out what the spec asks for: environment "
            f"{some_of([name_text(each) for each in names], 8)}",
            claims_on(run, documents),
            "a run without --env",
        )
