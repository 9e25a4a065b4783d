"""Worlds that draw: the same as one more draw of the detector whose column is known, and as certificates state it."""

import json

import numpy as np
import pytest
from certified_systems import greatest_lost
from interval_models import RECURRENT, SIMPLE, random_member, random_region
from second_checker import complaint
from shorthands import PROVEN
from small_objectives import drawing_twins, random_rates

from verifier.analysis import kernel
from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.recall.cells import relevant_columns
from verifier.analysis.robust.any_dependence import any_dependence
from verifier.analysis.robust.point_certificate import point_certificates
from verifier.analysis.robust.region import Region
from verifier.analysis.robust.solutions import Effort, robust_bounds
from verifier.analysis.sensitivity.adjoint import expected_visits, gradient, state_values

FORMULAS = [*SIMPLE, *RECURRENT]


@pytest.mark.every(3)
@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("draws", [1, 2])
def test_probabilities_derivatives_and_jumps_are_those_of_a_known_draw(formula, draws):
    for seed in range(3):
        rng = np.random.default_rng([seed, draws])
        one, other, widened = drawing_twins(rng, formula, draws=draws)
        rates = random_rates(rng, 2, 3, 0.3)
        found, wanted = (state_values(*each) for each in ((one, rates), (other, widened(rates))))
        start = one.product.start
        assert found.value[start] == pytest.approx(wanted.value[other.product.start], abs=1e-12)
        batch = one.probabilities(rates[None])
        assert batch.probability[0] == pytest.approx(found.value[start], abs=1e-12)
        slope, same = (
            gradient(each, values, expected_visits(each, values)) for each, values in ((one, found), (other, wanted))
        )
        # On the simplex only differences within a column mean anything.
        mine, its = (each - each[:, :, :1] for each in (slope.cells, same.cells[:, :2, :3, :3]))
        assert mine == pytest.approx(its, abs=1e-7)
        assert np.array_equal(slope.jumps, same.jumps[:2, :3, :3])
        relevant = relevant_columns(one, rates).tolist()
        for column in [(at, true) for at in range(2) for true in range(3) if [at, true] not in relevant]:
            changed = rates.copy()
            changed[column[0], :, column[1]] = random_rates(rng, 2, 3)[0, :, 0]
            assert one.probabilities(changed[None]).probability == pytest.approx(batch.probability, abs=1e-12)


@pytest.mark.every(7)
@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("draws", [1, 2])
def test_bounds_are_those_of_a_known_draw(formula, draws):
    decided = 0
    for seed in range(2):
        rng = np.random.default_rng([seed, draws, 1])
        one, other, widened = drawing_twins(rng, formula, draws=draws)
        region = random_region(rng, one, 2, 3)
        lower, upper = (widened(each, UNIT) for each in (region.lower, region.upper))
        twin = Region(other.skeleton.channel.labels, np.arange(4), lower, upper, np.ones((len(lower), 4), dtype=bool))
        found, wanted = (robust_bounds(*each) for each in ((one, region), (other, twin)))
        if not (found.conservative or wanted.conservative):
            decided += 1
            assert found.lower == pytest.approx(wanted.lower, abs=1e-8)
            assert found.upper == pytest.approx(wanted.upper, abs=1e-8)
        result = one.probabilities(np.array([random_member(rng, region) for _ in range(20)]))
        assert np.all(found.lower <= result.upper + 1e-12)
        assert np.all(found.upper >= result.lower - 1e-12)
        shared = robust_bounds(one, region, "shared_matrix", Effort(boxes=4, gap=1e-3))
        assert np.all(shared.lower >= found.lower - 1e-9)
        assert np.all(shared.lower <= result.upper.min(axis=0) + 1e-12)
        assert np.all(shared.upper >= result.lower.max(axis=0) - 1e-12)
    assert decided


@pytest.mark.every(5)
@pytest.mark.parametrize("formula", FORMULAS)
def test_certificates_are_accepted_and_no_choice_of_nature_beats_them(formula):
    for seed in range(3):
        rng = np.random.default_rng([seed, 2])
        one, _, _ = drawing_twins(rng, formula, states=4, bins=1)
        counts = rng.integers(0, 5, (1, 3, 3))
        counts[:, 0] += counts.sum(axis=1) == 0
        contents = [content for _, content in point_certificates(one, counts)]
        if len(one.skeleton.columns_needed()):
            found = robust_bounds(
                one,
                random_region(rng, one, 1, 3),
                "per_state",
                PROVEN,
            )
            contents += found.certificates
        for content in json.loads(json.dumps(contents)):
            bounds = kernel.check(content)
            assert "motion" in content["subject"]
            assert complaint(content) is None
            sure = [1 - bound if content["side"] == "lower" else bound for bound in bounds]
            lost = greatest_lost(content, rng, 12)
            assert all(most >= least for most, least in zip(sure, lost, strict=True))


def test_a_proof_for_other_chances_of_the_world_is_rejected():
    rejected = 0
    for seed in range(12):
        rng = np.random.default_rng([seed, 3])
        one, _, _ = drawing_twins(rng, "F p", states=5, bins=1)
        counts = rng.integers(1, 5, (1, 3, 3))
        for _, content in point_certificates(one, counts):
            changed = json.loads(json.dumps(content))
            changed["subject"]["motion"] = [often[::-1] for often in changed["subject"]["motion"]]
            try:
                kernel.check(changed)
            except kernel.Rejected:
                rejected += 1
                assert complaint(changed) is not None
            else:
                assert complaint(changed) is None
    assert rejected >= 3


@pytest.mark.every(3)
@pytest.mark.parametrize("formula", FORMULAS)
def test_what_holds_whatever_is_reported(formula):
    class Data:
        fixed, rates = np.zeros((2, 3), dtype=bool), np.full((2, 3, 3), 1 / 3)

    for seed in range(3):
        one, _, _ = drawing_twins(np.random.default_rng([seed, 4]), formula)
        ends = np.zeros((2, 3, 3), dtype=np.int64), np.full((2, 3, 3), UNIT)
        free = Region(one.skeleton.channel.labels, np.arange(3), *ends, np.ones((2, 3), dtype=bool))
        bounds = robust_bounds(one, free)
        for start, (least, most) in enumerate(any_dependence(one, Data()).tolist()):
            # Every detector meets (or fails) it almost surely; the converse needs a proof of who stays somewhere.
            assert least <= bounds.lower[start] + 1e-9
            assert most >= bounds.upper[start] - 1e-9
            if formula in SIMPLE:
                assert (least, most) == (bounds.lower[start] > 1 - 1e-9, bounds.upper[start] > 1e-9)
