"""Runs that weigh the bins of a further variable, by hand."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from drive_tables import recall_counts, sequences_of
from recall_chains import measured_of, product_of_recalls

from verifier.analysis.intervals.rate_intervals import Event, RateIntervals
from verifier.analysis.intervals.tiers import LargestColumn
from verifier.analysis.mixed import MixedIntervals, mixed_data
from verifier.analysis.settings import ConfidenceSettings
from verifier.base.errors import UsageError
from verifier.perception.confusion import ConfusionMatrices
from verifier.perception.confusion.mix import Mix, MixedMatrices

F = Fraction
CHAIN = product_of_recalls([0, 1])
DAY, NIGHT = [((9, 10), (5, 6)), ((1, 2), (0, 4))], [((3, 4), (1, 1)), ((2, 8), (2, 3))]
"""Hits of items of two drives in two bins."""
STATED = Mix("light", ("day", "night"), (F(3, 4), F(1, 4)), (F(3, 4), F(1, 4)))
BOUNDED = Mix("light", ("day", "night"), (F(1, 2), F(0)), (F(1), F(1, 2)))


def matrices_of(mix=STATED, drives=True, **metadata):
    counts = [recall_counts(*stratum, bins=2) for stratum in (DAY, NIGHT)]
    labels, edges = (frozenset(), frozenset("a")), np.array([0.0, 10.0, 20.0])
    strata = tuple(
        ConfusionMatrices("class", labels, edges, table.sum(axis=0), metadata=metadata) for table in counts
    )
    return MixedMatrices(mix, strata, tuple(map(sequences_of, counts)) if drives else None)


def run_of(mix=STATED, drives=True, fixed=None, **settings):
    point = measured_of(matrices_of().matrices().counts, fixed)
    return mixed_data([[CHAIN]], point, matrices_of(mix, drives), ConfidenceSettings(**settings))


def test_what_a_run_knows_of_its_strata():
    run = run_of()
    assert run.strata.counts[:, 1, 1].tolist() == [10, 5, 5, 3]
    assert run.strata.counts[:, 0, 1].tolist() == [2, 5, 7, 1]
    assert run.drives.table[:, :, 1, 1].tolist() == [[9, 5, 3, 1], [1, 0, 2, 2]]
    assert run.strata.rates[:, 1, 1] == pytest.approx([10 / 12, 1 / 2, 5 / 12, 3 / 4])
    assert run.weights.tolist() == [0.75, 0.25]
    # Of all four columns, of which alpha is divided among the chances.
    events = {Event(at, 1, (1,)) for at in range(4)}
    assert (run.strata_intervals.events, run.strata_intervals.alpha, run.basis.chances) == (events, F(1, 20), 4)
    assert run.events == {Event(at, 1, (1,)) for at in range(2)}
    assert (run.intervals, run.differences, run.choice.remark) == (None, (), None)
    # 10 and 8 are the largest drives of the first bin, 6 and 3 of the second.
    assert run.basis.largest_drive.columns == tuple(
        LargestColumn(at, 1, items) for at, items in ((0, 8), (0, 10), (1, 3), (1, 6))
    )
    assert run.of_drives(CHAIN).columns.tolist() == [[0, 1], [1, 1], [2, 1], [3, 1]]
    drawn = np.concatenate(list(run.posterior_draws(CHAIN.columns_needed, ConfidenceSettings())))
    assert drawn.shape == (run.draws, 2, 2, 2)
    # The mean of Beta(hits + 1/2, misses + 1/2), weighted.
    means = 0.75 * np.array([10.5 / 13, 5.5 / 11]) + 0.25 * np.array([5.5 / 13, 3.5 / 5])
    assert drawn[:, :, 1, 1].mean(axis=0) == pytest.approx(means, abs=0.01)


def test_a_variable_may_have_one_bin():
    whole = matrices_of(Mix("light", ("day",), (F(1),), (F(1),)))
    alone = replace(whole, strata=whole.strata[:1], sequences=whole.sequences[:1])
    run = mixed_data([[CHAIN]], measured_of(alone.matrices().counts), alone, ConfidenceSettings())
    assert run.strata.counts[:, 1, 1].tolist() == [10, 5]
    assert run.drives.table[:, :, 1, 1].tolist() == [[9, 5], [1, 0]]


def test_the_region_is_one_of_mixed_rates():
    """The weighted ends of the strata: each between that with all that is free in one and that in the other."""
    for mix, shares in ((STATED, [(0.75, 0.25)]), (BOUNDED, [(1, 0), (0.5, 0.5)])):
        run = run_of(mix)
        region, ends = run.region(CHAIN.skeleton), run.strata_intervals.ends
        for at in range(2):
            low, high = ([ends[Event(at + 2 * stratum, 1, (1,))][end] for stratum in range(2)] for end in (0, 1))
            least = min(day * low[0] + night * low[1] for day, night in shares)
            most = max(day * high[0] + night * high[1] for day, night in shares)
            assert region.lower[at, 1, 1] == pytest.approx(least, abs=1)
            assert region.upper[at, 1, 1] == pytest.approx(most, abs=1)
        assert region.evidence is None


def test_what_is_fixed_in_the_mixed_matrices_is_fixed_in_the_strata():
    run = run_of(fixed=[[True, False], [False, True]], drives=False)
    assert run.strata.fixed.tolist() == [[True, False], [False, True]] * 2
    point = run.measured.rates[1, :, 1]
    assert run.strata.rates[1, :, 1].tolist() == run.strata.rates[3, :, 1].tolist() == point.tolist()
    assert run.strata_intervals.events == {Event(0, 1, (1,)), Event(2, 1, (1,))}


def test_runs_without_drives_and_without_intervals():
    alone = run_of(drives=False)
    assert (alone.drives, alone.basis.largest_drive, alone.choice.kind) == (None, None, "credible")
    with pytest.raises(ValueError, match="the drives are not known"):
        alone.of_drives(CHAIN)
    assert run_of(bounds="approximate", draws=10).region(CHAIN.skeleton) is None
    bounded = "P and its interval are for one point of the bounded weights; only the bounds cover all of them"
    assert run_of(BOUNDED).choice.remark == bounded
    assert run_of(BOUNDED, drives=False).choice.remark.endswith(f"too narrow.; {bounded}")


@pytest.mark.parametrize(
    ("mix", "settings", "message"),
    [
        (STATED, {"weights": "drive"}, "--mix weighs items of strata, and --weights drive does not"),
        (BOUNDED, {"bounds": "approximate"}, "--bounds approximate draws matrices at one point of the weights"),
    ],
)
def test_what_cannot_be_mixed(mix, settings, message):
    with pytest.raises(UsageError, match=message):
        run_of(mix, **settings)


def test_mixed_intervals_need_their_strata():
    measured = measured_of(recall_counts(*DAY, bins=2).sum(axis=0))
    strata = RateIntervals(measured, frozenset(), F(1, 20))
    for given in ({}, {"strata": strata}, {"mix": STATED}):
        with pytest.raises(ValueError, match="mixed intervals need their strata"):
            _ = MixedIntervals(measured, frozenset(), F(1, 20), **given).ends
    assert MixedIntervals(measured, frozenset(), F(1, 20), strata=strata, mix=STATED).ends == {}
