"""Certificates of systems in which several objects are remembered: the kernel proves them to hold the fractions."""

import json
from fractions import Fraction

import pytest
from context_cases import document, files_of, systems_of
from shorthands import PROVEN

from verifier.analysis import kernel
from verifier.analysis.confidence import bounds_of_chain
from verifier.analysis.robust.point_certificate import point_certificates
from verifier.study.case import Study
from verifier.study.inputs import read_inputs
from verifier.study.options import RunOptions


@pytest.fixture(scope="module")
def systems(shared):
    return {case["name"]: case for case in systems_of(shared)}


@pytest.fixture(scope="module", params=["two_run1", "ghost_run2"])
def case(request, systems, tmp_path_factory):
    system = systems[request.param]
    formulas = [answer["formula"] for answer in system["answers"][:3]]
    files = files_of(tmp_path_factory.mktemp("c"), system["model"], document(system), system["environment"], formulas)
    options = RunOptions(memory="{kind}:{cap}".format(**system["contexts"]))
    return Study.of(read_inputs(*files, options), options).cases[0], system


def again(content):
    return json.loads(json.dumps(content))


def test_points_of_several_objects_are_proven_to_be_the_fractions(case):
    found, system = case
    for number, answer in enumerate(system["answers"][:3]):
        ends = {
            content["side"]: kernel.check(again(content))[0]
            for content in (each for _, each in point_certificates(found.objective(number), found.counts))
        }
        exact = Fraction(answer["start"]["fraction"])
        assert ends["lower"] <= exact <= ends["upper"]
        assert ends["upper"] - ends["lower"] <= Fraction(1, 10**20)


def test_bounds_of_several_objects_are_proven(case):
    found, _ = case
    data, settings = found.study.data, found.study.options.confidence
    for objective in found.objectives:
        (bounds,) = bounds_of_chain([objective], data, settings, PROVEN)
        assert {each["side"] for each in bounds.certificates} == {"lower", "upper"}
        for each in bounds.certificates:
            content = again(each)
            (bound,) = kernel.check(content)
            stated = float((bounds.lower if each["side"] == "lower" else bounds.upper)[0])
            assert abs(float(bound) - stated) <= 2**-52


def test_reports_of_another_object_are_no_proof(case):
    found, system = case
    if not system["name"].startswith("two"):
        pytest.skip("there is one object")
    (_, content), *_ = point_certificates(found.objective(0), found.counts)
    content = again(content)
    kinds = content["subject"]["kinds"]
    assert {len(set(row)) for row in kinds} == {2}
    content["subject"]["kinds"] = [[row[0], row[0]] for row in kinds]
    with pytest.raises(kernel.Rejected):
        kernel.check(content)
