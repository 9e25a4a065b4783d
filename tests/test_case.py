"""Studies and their cases: what they share, and what they do not."""

from dataclasses import replace

import numpy as np
import pytest
from typed_runs import point_of

from tests.support.small_bundles import MATRICES, write_inputs
from verifier.analysis.settings import ConfidenceSettings
from verifier.pipeline import verify_spec
from verifier.study.case import Study
from verifier.study.inputs import Selection, read_inputs
from verifier.study.options import RunOptions

FEW = RunOptions(confidence=ConfidenceSettings(draws=200))


@pytest.fixture
def study(tmp_path):
    return Study.of(read_inputs(*write_inputs(tmp_path), FEW), FEW)


def test_structure_is_shared_by_all_who_need_the_same(study):
    case = study.cases[0]
    skeleton, objective = case.skeleton, case.objective(0)
    assert objective.skeleton is skeleton
    others = [
        study.under(replace(FEW, empty_columns="prior", verdict_from="point")),
        study.with_counts(study.matrices.counts + 1, exact=True),
        study.asking([0]),
        study.under(replace(FEW, selection=Selection(requirements=("stops",)))),
    ]
    for other in others:
        assert other.cases[0].skeleton is skeleton
        assert other.cases[0].objective(0) is objective


def test_structure_is_not_shared_where_it_differs(study):
    case, background = study.cases[0], study.under(replace(FEW, false_positives="background")).cases[0]
    assert background.skeleton is not case.skeleton
    assert study.cases[1].skeleton is not case.skeleton
    assert case.objective(1) is not case.objective(0)
    bins = replace(study, matrices=replace(study.matrices, edges_m=np.array([0.0, 20.0])))
    assert bins.cases[0].skeleton is not case.skeleton


def test_a_study_of_some_requirements_keeps_their_names(study):
    some = study.asking([2, 0])
    assert [requirement.name for requirement in some.requirements] == ["asked", "stops"]
    assert some.formulas == (study.formulas[2], study.formulas[0])
    assert study.asking([0, 1, 2]) is study


def test_a_scenario_has_its_place(study):
    case, initial = study.place_of("careful", point_of(0.5, "empty", {"x": 0, "s": 0}))
    assert (case, initial) == (study.cases[1], 0)
    assert str(case) == "planner careful, empty"
    assert case.initial_states == ({"x": 0, "s": 0},)


def test_a_chain_has_the_numbers_of_its_matrices(study):
    # A pedestrian is seen 3 times in 4, and a car that sees nobody drives on.
    chain = study.cases[0].chain(study.conditions, exact=True)
    assert sorted(set(map(str, chain.fractions))) == ["1", "1/4", "3/4"]
    sure = study.with_counts(np.array([[[100, 0], [0, 100]]]), exact=False).cases[0].chain({})
    assert set(sure.probabilities.tolist()) == {1.0}
    assert MATRICES["bins"][0]["counts"][0][0] == study.matrices.counts[0, 0, 0] == 300


def test_where_there_is_no_room_to_keep_anything_a_run_says_the_same(tmp_path, monkeypatch):
    paths = write_inputs(tmp_path)
    kept = verify_spec(*paths, FEW).json_text()
    monkeypatch.setattr("verifier.study.case.KEPT_SHARE", 10**15)
    assert verify_spec(*paths, FEW).json_text() == kept
