"""How intervals and bounds of a run are put together, by hand."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from drive_tables import recall_counts, sequences_of
from recall_chains import measured_of, product_of_recalls

from verifier.analysis import confidence as module
from verifier.analysis.confidence import (
    Needs,
    bounds_of_chain,
    confidence,
    data_of_run,
    draws_of_run,
    needs_of_run,
)
from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.intervals.intervals import Choice, Interval, Measured
from verifier.analysis.intervals.tiers import BoxRecord, RateBox
from verifier.analysis.objective import without_steps
from verifier.analysis.robust.solutions import Effort
from verifier.analysis.settings import ConfidenceSettings

CREDIBLE, BOOTSTRAP = Choice("credible", ""), Choice("bootstrap", "")


@pytest.mark.parametrize(
    ("settings", "choice", "tier", "affordable", "expected"),
    [
        ({"draws": 7}, BOOTSTRAP, "approximate", 10_000, 7),
        ({}, CREDIBLE, "independent_items", 10_000, 10_000),
        ({}, CREDIBLE, "independent_items", 310, 310),
        # Each is solved twice, and hundreds are drawn; 2000 at least, or as many as can be solved.
        ({}, BOOTSTRAP, "independent_drives", 10_000, 5_000),
        ({}, BOOTSTRAP, "independent_drives", 5_399, 2_600),
        ({}, BOOTSTRAP, "independent_drives", 3_000, 2_000),
        ({}, BOOTSTRAP, "independent_drives", 310, 310),
        # Bounds that are read from them need no fewer.
        ({}, BOOTSTRAP, "approximate", 310, 2_000),
        ({"level": 0.9}, BOOTSTRAP, "approximate", 310, 1_000),
        ({"level": 0.93}, BOOTSTRAP, "approximate", 310, 1_429),
    ],
)
def test_how_many_matrices_are_drawn(settings, choice, tier, affordable, expected):
    needs = Needs(frozenset(), np.zeros((0, 2), dtype=np.int64), affordable)
    assert draws_of_run(needs, choice, SimpleNamespace(tier=tier), ConfidenceSettings(**settings)) == expected


def chain_with(*values, plain=True, undecided=False, decided=False, most=1.0):
    """An objective of so many initial states whose numbers are these for whatever matrices."""
    value = np.array(values, dtype=float)

    def probabilities(rates, roughly=False):
        told = np.repeat(value[None], len(rates), axis=0)
        return without_steps(told, np.zeros_like(told) if decided else None)

    return SimpleNamespace(
        plain=plain, most=most, is_undecided=lambda rates: undecided, probabilities=probabilities,
        product=SimpleNamespace(start=np.arange(len(value))),
        skeleton=SimpleNamespace(
            channel=SimpleNamespace(bins=np.zeros((4, 1))), entry_row=np.zeros(1), entry_observations=np.zeros((1, 2))
        ),
    )  # fmt: skip


def interval_with(lower, upper, spread=1 / 16):
    low, high = np.array(lower), np.array(upper)
    ranges = np.stack([low - spread, low + spread], axis=1), np.stack([high - spread, high + spread], axis=1)
    return Interval(low, high, 0.95, "bootstrap", *ranges, 100)


def run_with(tier="independent_drives", kind="bootstrap", looks=1, **more):
    fixed = np.array([[False, True]])
    rates = np.array([[[0.5, 1.0], [0.5, 0.0]]])
    return SimpleNamespace(
        basis=SimpleNamespace(tier=tier, looks=looks), choice=SimpleNamespace(kind=kind), draws=100,
        measured=Measured(np.array([[[5, 9], [5, 0]]]), rates, fixed), **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("tier", "kind", "looks", "same"),
    [
        ("approximate", "bootstrap", 1, True), ("approximate", "bootstrap", 2, False),
        ("approximate", "credible", 1, False), ("independent_drives", "bootstrap", 1, False),
    ],
)  # fmt: skip
def test_bounds_from_drives_are_the_ends_of_their_interval(tier, kind, looks, same, monkeypatch):
    """Where there are any: not of what is no probability, and not where nothing is known."""
    objectives = [chain_with(0.5), chain_with(2.0, plain=False), chain_with(0.5, undecided=True), chain_with(0.25)]
    intervals, asked = [interval_with([0.25], [0.5]) for _ in objectives], []

    def bounds(plain, data, settings, effort):
        asked.append((plain, effort))
        return tuple(f"bounds {k}" for k, _ in enumerate(plain))

    monkeypatch.setattr(module, "bounds_of_chain", bounds)
    run = run_with(tier, kind, looks, maker=SimpleNamespace(intervals=lambda *_: intervals))
    found = confidence(objectives, run, ConfidenceSettings())
    assert [one.interval for one in found] == intervals
    assert {one.tier for one in found} == {tier}
    assert [one.bounds is None for one in found] == [False, True, True, False]
    if same:
        assert not asked
        assert [(one.bounds.lower.tolist(), one.bounds.upper.tolist()) for one in (found[0], found[3])] == [
            ([0.25 - 1 / 16], [0.5 + 1 / 16])
        ] * 2
    else:
        assert asked == [([objectives[0], objectives[3]], Effort())]
        assert [found[0].bounds, found[3].bounds] == ["bounds 0", "bounds 1"]


def test_bounds_of_an_interval_are_its_outer_ends():
    found = module._of_interval(interval_with([0.25, 0.5], [0.5, 0.75]))
    assert (found.lower.tolist(), found.upper.tolist()) == ([3 / 16, 7 / 16], [9 / 16, 13 / 16])
    assert (found.lower_attained.tolist(), found.upper_attained.tolist()) == ([0.25, 0.5], [0.5, 0.75])
    assert (found.semantics, found.conservative, found.certificates) == ("shared_matrix", False, ())


def test_bounds_of_a_chain(monkeypatch):
    """Over a region, if there is one; else from drives, at a level that is divided among the looks."""
    objectives, calls = [chain_with(0.5), chain_with(0.25)], []
    monkeypatch.setattr(module, "robust_bounds", lambda *arguments: calls.append(arguments) or len(calls))
    run, effort = run_with(looks=4, region=lambda skeleton: "region"), Effort(boxes=3)
    settings = ConfidenceSettings(semantics="shared_matrix", level=0.9)
    assert bounds_of_chain([], run, settings, effort) == ()
    assert bounds_of_chain(objectives, run, settings, effort) == (1, 2)
    assert calls == [(objective, "region", "shared_matrix", effort) for objective in objectives]
    run, levels = run_with(looks=4, region=lambda skeleton: None), []
    monkeypatch.setattr(
        module, "_drive_intervals",
        lambda objectives, data, asked: levels.append(asked.level) or [interval_with([0.25], [0.5])] * 2,
    )  # fmt: skip
    assert [found.lower.item() for found in bounds_of_chain(objectives, run, settings, effort)] == [3 / 16] * 2
    assert levels == [0.975]
    alone = bounds_of_chain(objectives[:1], run_with(region=lambda skeleton: "region"), settings, effort)
    assert len(alone) == 1


def test_what_the_graph_decides_is_not_drawn():
    """Of three objectives the second is decided, and of the third nothing is known."""
    drawn = []

    def matrices(objectives, data, settings):
        for _ in range(4):
            drawn.append(1)
            yield np.zeros((25, 1, 2, 2))

    objectives = [chain_with(0.5, 0.25), chain_with(1, 0, decided=True), chain_with(0, 0, undecided=True)]
    of_decided, asked = objectives[1].probabilities, []
    objectives[1].probabilities = lambda *rates, **how: (asked.append(1), of_decided(*rates, **how))[1]
    objectives[2].probabilities = None
    run = run_with(kind="credible", maker=SimpleNamespace(matrices=matrices))
    found = module._drawn_intervals(objectives, run, ConfidenceSettings(level=0.9))
    assert [(one.lower.tolist(), one.upper.tolist()) for one in found] == [
        ([0.5, 0.25], [0.5, 0.25]), ([1, 0], [1, 0]), ([0, 0], [1, 1]),
    ]  # fmt: skip
    assert [(one.level, one.kind, one.draws) for one in found] == [(0.9, "credible", 100)] * 3
    assert found[0].lower_range.tolist() == [[0, 0.5], [0, 0.25]]  # so few draws say nothing of what is beyond
    assert found[1].lower_range.tolist() == [[1, 1], [0, 0]]
    assert (found[2].lower_range.tolist(), found[2].upper_range.tolist()) == ([[0, 0]] * 2, [[1, 1]] * 2)
    assert (len(drawn), len(asked)) == (4, 1)
    (alone,) = module._drawn_intervals(objectives[:1], run, ConfidenceSettings(level=0.9))
    assert alone.lower.tolist() == [0.5, 0.25]


def test_rates_that_are_all_above_0():
    """But for those by convention, where these are known."""
    run = run_with()
    assert module._above_zero(run.measured).tolist() == [[[0.5, 1.0], [0.5, 0.0]]]
    unknown = replace(run.measured, rates=np.array([[[0.25, np.nan], [0.75, np.nan]]]))
    assert module._above_zero(unknown).tolist() == [[[0.5, 0.5], [0.5, 0.5]]]
    assert module._certain(chain_with(1, 0, decided=True), run.measured).tolist() == [1, 0]
    assert module._certain(chain_with(1, 0), run.measured) is None
    partly = SimpleNamespace(probabilities=lambda rates: without_steps(np.array([[1, 0.5]]), np.array([[0, 0.1]])))
    assert module._certain(partly, run.measured) is None


def test_what_need_not_be_drawn_from_drives(monkeypatch):
    """Over all matrices above 0 where something was counted: two billionths there, and nothing elsewhere."""
    seen = []
    monkeypatch.setattr(
        module.Region, "of_bounds",
        lambda skeleton, least, most: (seen.append((least.tolist(), most.tolist())), "region")[1],
    )  # fmt: skip
    monkeypatch.setattr(
        module, "robust_bounds",
        lambda objective, region, effort: (
            seen.append((region, effort)),
            SimpleNamespace(lower=np.array([0.0, 0.25]), upper=np.array([0.0, 1.0])),
        )[1],
    )  # fmt: skip
    run = run_with()
    run.measured = Measured(np.array([[[1, 9], [0, 0]]]), run.measured.rates, run.measured.fixed)
    assert module._undrawn(chain_with(0.5, 0.5), run, 0.9) is None
    assert module._undrawn(chain_with(1, 0, decided=True, plain=False), run, 0.9) is None
    assert not seen
    nothing = module._undrawn(chain_with(1, 0, undecided=True), run, 0.9)
    assert (nothing.lower.tolist(), nothing.upper.tolist(), nothing.kind) == ([0, 0], [1, 1], "bootstrap")
    found = module._undrawn(chain_with(0, 1, decided=True), run, 0.9)
    few = 2 / UNIT
    assert seen == [
        ([[[few, 1.0], [0.0, 0.0]]], [[[1.0, 1.0], [1.0, 0.0]]]),
        ("region", Effort(attained=False)),
    ]
    assert (found.lower.tolist(), found.upper.tolist(), found.level, found.draws) == ([0, 0.25], [0, 1], 0.9, 100)
    assert found.lower_range.tolist() == [[0, 0], [0.25, 0.25]]
    assert found.upper_range.tolist() == [[0, 0], [1, 1]]


DRIVES, OBJECTIVE = [(18, 20)] * 10, product_of_recalls([0])


def run_of(known=True, **settings):
    counts = recall_counts(*DRIVES)
    asked = ConfidenceSettings(**settings)
    return data_of_run(
        [[OBJECTIVE]], measured_of(counts.sum(axis=0)), sequences_of(counts) if known else None, asked, 2
    )


def test_what_a_run_knows():
    run = run_of()
    assert (run.choice.kind, run.basis.tier, run.basis.families, run.intervals.alpha) == (
        "bootstrap", "independent_drives", 2, Fraction(1, 40),
    )  # fmt: skip
    assert run.maker.solves == 2
    assert run.of_drives(OBJECTIVE).columns.tolist() == OBJECTIVE.columns_needed.tolist()
    assert run.region(OBJECTIVE.skeleton) is not None
    assert run.within(None) is run
    alone = run_of(known=False)
    assert (alone.choice.kind, alone.drives, alone.maker.solves, alone.differences) == ("credible", None, 1, ())
    with pytest.raises(ValueError, match="the drives are not known"):
        alone.of_drives(OBJECTIVE)
    assert run_of(bounds="approximate", draws=10).region(OBJECTIVE.skeleton) is None


def test_what_the_chains_of_a_run_need():
    """Of three columns two are needed, one of which is held by convention; of no chain none is."""
    counts = recall_counts((1, 2, 3, 4, 5, 6), bins=3).sum(axis=0)
    measured = measured_of(counts, [[False, False], [False, True], [False, False]])
    needs = needs_of_run(
        [[product_of_recalls([0])], [product_of_recalls([2]), product_of_recalls([1])]], measured_of(counts)
    )
    assert needs.estimated.tolist() == [[0, 1], [1, 1], [2, 1]]
    assert needs_of_run([[product_of_recalls([0, 1])]], measured).estimated.tolist() == [[0, 1]]
    assert needs_of_run([], measured).estimated.shape == (0, 2)
    alone = data_of_run([[OBJECTIVE]], measured_of(recall_counts(*DRIVES).sum(axis=0)), None, ConfidenceSettings())
    assert alone.basis.families == 1


def test_a_box_takes_the_place_of_the_data():
    run, shape = run_of(), run_of().measured.counts.shape
    record = BoxRecord("b.toml", "0" * 64, "a data sheet")
    lower, upper = np.full(shape, Fraction(0), dtype=object), np.full(shape, Fraction(1), dtype=object)
    within = run.within(RateBox(record, lower, upper))
    assert (within.basis.tier, within.basis.chances, within.basis.box, within.intervals) == (
        "rate_box",
        0,
        record,
        None,
    )
    assert (within.basis.weights, within.basis.level, within.measured) == ("item", 0.95, run.measured)
    region = within.region(OBJECTIVE.skeleton)
    free = ~run.measured.fixed[:, None, :] & region.needed[:, None, :]
    assert (region.lower[np.broadcast_to(free, region.lower.shape)] == 0).all()
    assert (region.upper[np.broadcast_to(free, region.upper.shape)] == UNIT).all()
