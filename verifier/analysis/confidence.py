"""How sure the data make us of every requirement on one chain: a statistical interval and guaranteed bounds.

    interval    what the counts make likely: from the posterior of the matrices, or from resampled sequences
    guaranteed  what no matrix within a confidence region of the counts goes beyond

The same draws of the matrices serve all requirements of a chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.bootstrap import Choice as IntervalChoice
from verifier.analysis.bootstrap import SequenceData, choose_interval, sequence_draws
from verifier.analysis.intervals import Interval, PercentileStream
from verifier.analysis.measured import Measured
from verifier.analysis.objective import Objective
from verifier.analysis.posterior import default_draws, matrix_draws, probability_draws
from verifier.analysis.region import Event, confidence_region, events_of
from verifier.analysis.robust import Effort, GuaranteedBounds, guaranteed_bounds
from verifier.analysis.settings import ConfidenceSettings
from verifier.confusion.counts import Sequences


@dataclass(frozen=True, eq=False)
class Confidence:
    """How sure one requirement is at the m initial states of a chain."""

    interval: Interval
    guaranteed: GuaranteedBounds


@dataclass(frozen=True, eq=False)
class Data:
    """What a run knows about its matrices, and how it makes intervals from it.

    Attributes:
        measured: the counts.
        sequences: the counts by sequence, or None.
        events: of all chains of the run, see `verifier.analysis.region`.
        choice: which interval is made, and why.
        draws: how many matrices are drawn for it.
    """

    measured: Measured
    sequences: Sequences | None
    events: Set[Event]
    choice: IntervalChoice
    draws: int


def data_of_run(
    chains: Iterable[Sequence[Objective]],
    measured: Measured,
    sequences: Sequences | None,
    settings: ConfidenceSettings,
) -> Data:
    """What all chains of a run share.

    Args:
        chains: the objectives of each chain; they are looked at one chain at a time.
        measured, sequences: see `Data`.
        settings: the request.

    Raises:
        UsageError: as `choose_interval`.
    """
    events: set[Event] = set()
    columns: set[tuple[int, int]] = set()

    def seen() -> Iterator[Objective]:
        for objectives in chains:
            skeleton = objectives[0].skeleton
            events.update(events_of(skeleton, measured))
            columns.update((index, column) for index, column in skeleton.columns_needed().tolist())
            yield from objectives

    affordable = default_draws(seen())
    needed = np.array(sorted(columns), dtype=np.int64).reshape(-1, 2)
    choice = choose_interval(measured, sequences, needed, settings.interval)
    return Data(measured, sequences, events, choice, affordable if settings.draws is None else settings.draws)


def confidence(objectives: Sequence[Objective], data: Data, settings: ConfidenceSettings) -> tuple[Confidence, ...]:
    """How sure each of the objectives of one chain is.

    Args:
        objectives: of one skeleton.
        data: of the run.
        settings: the request.

    Raises:
        VerifierError: as drawing, solving and `guaranteed_bounds`.
    """
    bounds = bounds_of_chain(objectives, data, settings, Effort(certificates=False))
    return tuple(
        Confidence(interval, found)
        for interval, found in zip(_intervals(objectives, data, settings), bounds, strict=True)
    )


def bounds_of_chain(
    objectives: Sequence[Objective], data: Data, settings: ConfidenceSettings, effort: Effort
) -> tuple[GuaranteedBounds, ...]:
    """The guaranteed bounds of each of the objectives of one chain; all bounds of a run hold at once.

    Raises:
        VerifierError: as `guaranteed_bounds`.
    """
    region = confidence_region(objectives[0].skeleton, data.measured, settings.level, data.events)
    return tuple(guaranteed_bounds(each, region, settings.semantics, effort) for each in objectives)


def _intervals(objectives: Sequence[Objective], data: Data, settings: ConfidenceSettings) -> Iterator[Interval]:
    width = len(objectives[0].product.start)
    streams = [PercentileStream(data.draws, width, settings.level, data.choice.kind) for _ in objectives]
    certain = [_certain(each, data.measured) for each in objectives]
    for matrices in _draws(objectives[0], data, settings):
        for objective, stream, known in zip(objectives, streams, certain, strict=True):
            for probabilities in probability_draws(objective, [matrices] if known is None else []):
                stream.add(probabilities)
    return (
        stream.interval() if known is None else stream.of_certain(known)
        for stream, known in zip(streams, certain, strict=True)
    )


def _certain(objective: Objective, measured: Measured) -> NDArray[np.float64] | None:
    """(m,) the probabilities where the graph alone decides them, the same for every draw; else None.

    Rates that are drawn are above 0, so all draws have the same graph.
    """
    fixed = measured.fixed[:, None, :] & ~np.isnan(measured.rates)
    labels = measured.rates.shape[1]
    found = objective.probabilities(np.where(fixed, measured.rates, 1 / labels)[None])
    return found.probability[0] if not found.error_bound.any() else None


def _draws(objective: Objective, data: Data, settings: ConfidenceSettings) -> Iterator[NDArray[np.float64]]:
    columns = objective.skeleton.columns_needed()
    if data.choice.kind == "bootstrap" and data.sequences is not None:
        resampled = SequenceData(data.measured, data.sequences, columns)
        return sequence_draws(resampled, settings.prior, data.draws, settings.seed)
    return matrix_draws(data.measured, columns, settings.prior, data.draws, settings.seed)
