"""Bounds under a detector with memory: they hold what matrices in the region give, and splitting contexts narrows."""

import numpy as np
import pytest
from context_cases import document, files_of, systems_of

from verifier.analysis.robust.region import Region
from verifier.analysis.robust.solutions import Effort, robust_bounds
from verifier.study.case import Study
from verifier.study.inputs import read_inputs
from verifier.study.options import RunOptions

BILLION = 10**9


@pytest.fixture(scope="module")
def systems(shared):
    return {case["name"]: case for case in systems_of(shared)}


def studied(folder, case, memory):
    """The case of a study of two formulas of a system, with this memory."""
    formulas = [case["answers"][k]["formula"] for k in (0, 3)]
    files = files_of(folder, case["model"], document(case), case["environment"], formulas)
    options = RunOptions(memory=memory)
    return Study.of(read_inputs(*files, options), options).cases[0]


def bounds(case, region):
    return [robust_bounds(case.objective(number), region, "per_state", Effort()) for number in range(2)]


@pytest.mark.parametrize("name", ["two_run1", "ghost_run2"])
def test_no_matrix_of_the_region_goes_beyond(name, systems, tmp_path):
    case = studied(tmp_path, systems[name], "{kind}:{cap}".format(**systems[name]["contexts"]))
    region = case.study.data.region(case.skeleton)
    rng = np.random.default_rng(3)
    bins, groups, true = region.lower.shape
    drawn = np.full((40, bins, true, true), 1 / true)
    for at, column in np.argwhere(region.needed).tolist():
        low, high = (ends[at, :, column] / BILLION for ends in (region.lower, region.upper))
        for rates in drawn:
            mass = low.copy()
            for group in rng.permutation(groups):  # a vertex, or on the way to one
                mass[group] += min(high[group] - low[group], 1 - mass.sum()) * rng.choice([0, 1, rng.random()])
            spare = (high - mass).clip(0)
            mass += spare * (1 - mass.sum()) / max(spare.sum(), 1e-12)
            members = [np.flatnonzero(region.group == group) for group in range(groups)]
            for share, own in zip(mass, members, strict=True):
                rates[at, own, column] = share / len(own)
    for number, found in enumerate(bounds(case, region)):
        values = case.objective(number).probabilities(drawn).probability
        assert values.min() >= found.lower[0] - 1e-9
        assert values.max() <= found.upper[0] + 1e-9
        assert found.upper[0] - found.lower[0] < 1


@pytest.mark.parametrize("name", ["two_run1"])
def test_without_contexts_the_union_of_their_boxes_encloses_them(name, systems, tmp_path):
    system = systems[name]
    divided = studied(tmp_path, system, "{kind}:{cap}".format(**system["contexts"]))
    rng = np.random.default_rng(5)
    contexts, size = divided.study.matrices.memory.contexts.count, len(system["labels"])
    rates = rng.dirichlet(np.ones(size), (len(system["bins"]), contexts, size)).swapaxes(2, 3)
    low, high = (rates * 0.9).clip(0, 1), (rates * 1.1).clip(0, 1)
    finer = Region.of_bounds(divided.skeleton, *(ends.reshape(-1, size, size) for ends in (low, high)))
    found = bounds(divided, finer)
    whole = studied(tmp_path, system, "none")
    union = Region.of_bounds(whole.skeleton, low.min(axis=1), high.max(axis=1))
    for inner, outer in zip(found, bounds(whole, union), strict=True):
        assert outer.lower[0] <= inner.lower[0] + 1e-9
        assert outer.upper[0] >= inner.upper[0] - 1e-9
        assert outer.upper[0] - outer.lower[0] > inner.upper[0] - inner.lower[0]
