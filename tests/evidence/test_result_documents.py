"""A result is its document: what is written of it is read as an equal value, and keeps to the generated schema."""

import json
from fractions import Fraction

import jsonschema
import pytest
from report_documents import EVERY_KIND, document
from typed_runs import point_of, requirement_of, run_of_requirements, uncertainty_of

from verifier.analysis.channel_test import Channel, CountedTest, Untested
from verifier.analysis.planning import EvidencePlan, PlannedColumn
from verifier.analysis.tipping import TippingPoints
from verifier.analysis.vacuity import Vacuity
from verifier.base.documents import read_document
from verifier.base.files import document_text
from verifier.checking.verdicts import Contradicted, Refused, Verdict, WithinBounds
from verifier.evidence.documents import TYPES, schema_of, type_of
from verifier.study.records import BaselineFile, Drop, Floor, Gates, Held, MatricesRecord, NewRequirement, Regression
from verifier.study.results import Finished, RunResult, StrategyEnds, Unanswered


@pytest.mark.parametrize("name", EVERY_KIND)
def test_what_is_written_is_read_as_it_was_and_keeps_to_the_schema(name):
    found = document(name)
    kind = f"verifier.{found.kind}"
    assert type(found.result) is type_of(kind)
    written = json.loads(document_text(found.result))
    assert read_document(type_of(kind), written, "written.json") == found.result
    if found.kind not in ("curves", "confusion"):  # people wrote these
        assert written == found.content
    jsonschema.validate(found.content, schema_of(kind))


def test_results_of_every_kind_are_tried():
    assert {f"verifier.{document(name).kind}" for name in EVERY_KIND} == set(TYPES)


EXACT = Fraction(10**5000 - 1, 10**5000)
OVER = Vacuity("ended", "the episode is over before it begins")
POINTS = (
    point_of(
        1.0, exact=EXACT, verdict=Verdict.VACUOUS, basis="any_dependence", whatever_predicted=1, vacuity=(OVER,)
    ),
    point_of(0.25, "obs", {}, Verdict.VIOLATED, constants={"vmax": "1/3"}, basis="assumed", condition="if it is so"),
    point_of(0.9, "obs", {"x": -1}, Verdict.INCONCLUSIVE, reason=WithinBounds("bounds")),
    point_of(0.9, "a", verdict=Verdict.INCONCLUSIVE, reason=Contradicted("dependence", "ped", 0.0001, "satisfied")),
    point_of(0.9, "b", verdict=Verdict.INCONCLUSIVE, reason=Refused("untested", "if it is so", "violated")),
    point_of(0.5, "c", uncertainty=uncertainty_of((0.25, 0.75), (0.0, 1.0), ((0.2, 0.3), (0.7, 0.8)), "bootstrap")),
)
PLAN = EvidencePlan((PlannedColumn("ped", "[0, 10) m", 0, 40),), None, 0.9, 1.0, Verdict.SATISFIED)
FULL = run_of_requirements(
    requirement_of(*POINTS, target=Fraction(19, 20), additional_data=PLAN, tipping_points=TippingPoints(
        None, None, 0.004, Verdict.SATISFIED
    ), strategies=tuple(StrategyEnds(0.1, 1.0) for _ in POINTS)),
    requirement_of(POINTS[2], name="asks", target=None),
    title="\x1b[2J\u202e \ufffe",
    channel=Channel(classes=(
        CountedTest(label="obs", test="contradicted", bins=(0, 2), p_value=0.001, after_miss=0, joint_misses=0,
               miss_after_miss=None, expected_miss_after_miss=None),
        Untested(label="ped"),
    )),
    remarks=("a remark", ""),
    command=("verify", "run", "a.ltl"),
    gates=Gates(
        Floor(least="0.9", from_="point", requirements=(Held("r", "p", "ped", 0.25, True, None, "too small"),)),
        Regression(
            baseline=BaselineFile("old.json", "1" * 64), max_drop="1/100", drop_from="probability:0.95",
            compared="both",
            drops=(Drop(spec="a", requirement="r", planner="p", before=0.5, now=0.25, drop=0.25, failed=True,
                              chance=None),),
            not_in_baseline=(NewRequirement("asks", "p"),),
        ),
    ),
    matrices=MatricesRecord(labelling="class", labels=("ped", "empty"), bins=("all",), items=9, sequences=None,
                            mix={"variable": "light", "weights": [0.2, None]}),
    unanswered=(Unanswered("u", "G a", "too large", (Finished(
        planner="p", environment="ped", constants={}, initial={}, probability=0.5, lower=0.5, upper=0.5,
        second_engine=0.5, exact=Fraction(1, 2)),)),),
)  # fmt: skip
"""A run in which everything is there that can be."""


@pytest.mark.parametrize("run", [FULL, run_of_requirements(requirement_of(POINTS[1], target=Fraction(1)))])
def test_a_run_is_its_document_whatever_is_in_it(run):
    written = json.loads(document_text(run))
    assert read_document(RunResult, written, "run.json") == run
    jsonschema.validate(written, schema_of("verifier.run"))


def test_of_the_whole_of_a_run_is_written_what_follows_from_its_points():
    written = json.loads(document_text(FULL))
    # 1/4 violates a target of 19/20, and outweighs the requirement without an answer.
    assert (written["verdict"], written["condition"]) == ("violated", "if it is so")
    first, second = written["requirements"]
    assert (first["verdict"], first["condition"], first["worst"]) == ("violated", "if it is so", 1)
    assert first["target"] == {"comparison": ">=", "probability": "19/20"}
    assert (second["verdict"], second["target"], second["worst"]) == ("inconclusive", None, 0)
    assert first["points"][0]["exact"] == "9" * 5000 + "/1" + "0" * 5000
    assert written["engines"] == {"reported": "storm", "second": "batch", "largest_difference": 0.0}
    assert written["channel"]["test"] == "contradicted"
    assert [list(each) for each in written["channel"]["classes"]] == [
        ["label", "test", "bins", "p_value", "after_miss", "joint_misses", "miss_after_miss",
         "expected_miss_after_miss"],
        ["label", "test"],
    ]  # fmt: skip
    assert [written["gates"][name]["failed"] for name in ("fail_under", "regression")] == [True, True]
    assert "uncertainty" not in first["points"][0]
    assert "matrices" in written
