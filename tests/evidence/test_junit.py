"""JUnit XML of runs: read by junitparser, counted by hand."""

import re
import xml.etree.ElementTree as ET

import pytest
from made_runs import HOSTILE, document_of, every_verdict, point, requirement, run_content

from verifier.evidence.junit import junit_xml


def cases(text):
    return {case.get("name"): case for case in ET.fromstring(text).iter("testcase")}


def test_one_case_for_each_requirement_and_scenario():
    found = cases(junit_xml(document_of(every_verdict()), "car.ltl"))
    assert {name: [child.tag for child in case if child.tag != "properties"] for name, case in found.items()} == {
        "stops [planner p, ped x=1]": [],
        "stops [planner p, obs x=1]": ["failure"],
        "unsure [planner p, ped x=1]": ["failure"],
        "holds [planner p, ped x=1]": [],
        "asks [planner p, ped x=1]": ["skipped"],
    }
    assert {case.get("classname") for case in found.values()} == {"car.p"}
    failure = found["stops [planner p, obs x=1]"].find("failure")
    assert failure.get("type") == "violated"
    assert failure.get("message") == (
        "violated: P = 0.25, 95 % credible interval [0.2, 0.3], "
        "95 % confidence bounds (independent drives) [0.1, 0.4]; target P >= 0.9"
    )
    assert found["unsure [planner p, ped x=1]"].find("failure").get("message") == (
        "inconclusive: P = 0.92, 95 % credible interval [0.88, 0.96], "
        "95 % confidence bounds (independent drives) [0.8, 1]; target P >= 0.9; about 40 more items would decide it"
    )
    assert found["asks [planner p, ped x=1]"].find("skipped").get("message") == (
        "P = 0.5, 95 % credible interval [0.5, 0.5], 95 % confidence bounds (independent drives) [0.5, 0.5]; no "
        "target"
    )


def test_measured_times_are_shared_out_and_add_up():
    seconds = {"p, ped": 8.0, "p, obs": 0.5}
    root = ET.fromstring(junit_xml(document_of(every_verdict()), "car.ltl", seconds))
    assert {suite.get("name"): suite.get("time") for suite in root} == {"p, ped": "8.000000", "p, obs": "0.500000"}
    assert [case.get("time") for case in root[0].iter("testcase")] == ["2.000000"] * 4
    assert root.get("time") == "8.500000"
    with pytest.raises(ValueError, match="p, obs"):
        junit_xml(document_of(every_verdict()), "car.ltl", {"p, ped": 1.0})


def test_without_times_bytes_are_repeated_and_have_none():
    one, other = (junit_xml(document_of(every_verdict()), "car.ltl") for _ in range(2))
    assert one == other
    assert " time=" not in one
    assert "timestamp" not in one
    assert "hostname" not in one


def test_hostile_names_stay_text():
    run = document_of(every_verdict(HOSTILE) | {"title": HOSTILE})
    text = junit_xml(run, f"{HOSTILE}.ltl")
    assert re.search("[^\n -~]", text) is None  # what XML 1.0 forbids and what hides is written out
    (name,) = (each for each in cases(text) if "obs" in each)
    assert name.startswith("<b onclick='x'>&\"]]>--> \\x1b[2J\\x00\\x0b\\u202e\\ufffe\\n[a](http://x) {0} [planner p")


def test_long_names_stay_whole():
    name = "r" * 10_000
    (found,) = cases(
        junit_xml(
            document_of(run_content([requirement(name, "satisfied", [point("satisfied", 1.0)])], "satisfied")), "s"
        )
    )
    assert found == f"{name} [planner p, ped x=1]"


def test_junitparser_reads_the_same(tmp_path):
    junitparser = pytest.importorskip("junitparser")
    path = tmp_path / "junit.xml"
    path.write_text(junit_xml(document_of(every_verdict(HOSTILE)), "car.ltl", {"p, ped": 1.0, "p, obs": 2.0}))
    read = junitparser.JUnitXml.fromfile(str(path))
    assert (read.tests, read.failures, read.errors, read.skipped, read.time) == (5, 2, 0, 1, 3.0)
    suites = list(read)
    assert [(each.name, each.tests, each.failures, each.skipped) for each in suites] == [
        ("p, ped", 4, 1, 1),
        ("p, obs", 1, 1, 0),
    ]
    assert [type(result).__name__ for case in suites[0] for result in case.result] == ["Failure", "Skipped"]
    assert {each.name: each.value for each in suites[0].properties()}["spec spec.file sha256"] == "a" * 64
    again = junitparser.JUnitXml.fromstring(path.read_bytes())
    again.update_statistics()
    assert (again.tests, again.failures, again.skipped) == (read.tests, read.failures, read.skipped)


def test_only_runs_are_accepted():
    document = document_of(every_verdict())
    with pytest.raises(ValueError, match="of a run"):
        junit_xml(type(document)("x", "explain", {}, "0" * 64), "car.ltl")
