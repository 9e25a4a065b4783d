"""JUnit XML of a run: one test case per requirement, planner and scenario, for the test report of a pipeline.

JUnit XML has no standard; this keeps to what Jenkins, GitLab and GitHub's reporters read: `testsuites`, `testsuite`,
`properties`, `testcase`, `failure`, `skipped`. One suite is one Markov chain: a planner with a environment and
values of the swept constants.

| verdict      | test case                                                                  |
|--------------|----------------------------------------------------------------------------|
| satisfied    | passed                                                                     |
| violated     | `failure` of type "violated"                                               |
| vacuous      | `skipped`: the check says nothing about the system there                   |
| inconclusive | `failure` of type "inconclusive", or `skipped` where that is asked for     |
| no target    | `skipped`: nothing was asked, so nothing passed                            |

The message holds the condition of a verdict; a case that passed on a condition says so in `system-out`.

Requirements without an answer within the limits are a suite of their own, each an `error`.
The gates of a run, where it has any, are a suite of their own with one case per requirement and planner. So are the
statuses in a bundle: supported passes; violated, inconclusive and defeated fail; the others are skipped.

XML 1.0 has no control characters. They, line breaks and invisible signs such as changes of the writing direction are
written out (`\\x1b`), so that what is shown is what is there.
"""

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import get_args

from verifier.base.errors import one_line
from verifier.evidence.checked import Checked, Gated, checked, gated, run_grounds, run_of
from verifier.evidence.documents import Document
from verifier.evidence.status import Standing, Status
from verifier.questions.settings import Inconclusive
from verifier.study.results import RunResult, Unanswered

INCONCLUSIVE = get_args(Inconclusive)
"""What an inconclusive requirement can be in JUnit, which knows no third verdict."""


def junit_xml(
    run: Document,
    spec_name: str,
    seconds: Mapping[str, float] | None = None,
    inconclusive: str = "failure",
    standings: Sequence[Standing] = (),
) -> str:
    """The document of a run as JUnit XML.

    Args:
        spec_name: file name of the spec; names the classes of the cases.
        seconds: measured seconds of each Markov chain, by "PLANNER, ENVIRONMENT NAME=VALUE ..." (`suite_name`). All
            cases of a chain are checked together: each is given an equal share, so that sums are right. None for no
            times, which makes the bytes repeatable.
        inconclusive: one of `INCONCLUSIVE`; by default what is not shown does not pass.
        standings: of the requirements in a bundle, over all its runs.

    Raises:
        ValueError: the document is not that of a run, `inconclusive` is unknown, or a chain has no time.
    """
    if inconclusive not in INCONCLUSIVE:
        raise ValueError(f"expected one of {INCONCLUSIVE}, got {inconclusive!r}")
    result = run_of(run)
    suites: dict[str, list[Checked]] = {}
    for each in checked(result):
        suites.setdefault(suite_name(each.result.planner, each.point.block), []).append(each)
    if seconds is not None and not suites.keys() <= seconds.keys():
        raise ValueError(f"no seconds of {sorted(suites.keys() - seconds.keys())}")
    root = ET.Element("testsuites", {"name": one_line(result.title or spec_name)})
    for name, cases in suites.items():
        taken = None if seconds is None else seconds[name]
        root.append(_suite(name, cases, PurePath(spec_name).stem, taken, inconclusive, result))
    if result.unanswered:
        root.append(_unanswered_suite(result.unanswered, PurePath(spec_name).stem, seconds is not None))
    gates = gated(result)
    if gates:
        root.append(_gate_suite(gates, PurePath(spec_name).stem, seconds is not None))
    if standings:
        root.append(_status_suite(standings, PurePath(spec_name).stem))
    _count(root, None if seconds is None else sum(seconds[name] for name in suites))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def suite_name(planner: str, block: str) -> str:
    """The name of the suite of one Markov chain."""
    return f"{planner}, {block}"


def _suite(
    name: str, cases: Sequence[Checked], spec: str, seconds: float | None, inconclusive: str, run: RunResult
) -> ET.Element:
    suite = ET.Element("testsuite", {"name": one_line(name)})
    properties = ET.SubElement(suite, "properties")
    for file in run.inputs:
        _property(properties, f"{file.role} {file.name} sha256", file.sha256)
    for library, version in run.versions.items():
        _property(properties, f"version {library}", version)
    for name, value in run_grounds(run):
        _property(properties, name, value)
    share = None if seconds is None else seconds / len(cases)
    for each in cases:
        suite.append(_case(each, f"{spec}.{each.result.planner}", share, inconclusive))
    _count(suite, seconds)
    return suite


def _unanswered_suite(unanswered: Sequence[Unanswered], spec: str, timed: bool) -> ET.Element:
    suite = ET.Element("testsuite", {"name": "no answer"})
    for each in unanswered:
        name = {"classname": one_line(spec), "name": one_line(each.name)}
        case = ET.SubElement(suite, "testcase", name | ({"time": "0.000000"} if timed else {}))
        ET.SubElement(case, "error", {"type": "no answer", "message": one_line(each.reason)}).text = one_line(
            each.formula
        )
    _count(suite, 0.0 if timed else None)
    return suite


def _gate_suite(gates: Sequence[Gated], spec: str, timed: bool) -> ET.Element:
    suite = ET.Element("testsuite", {"name": "gates"})
    for each in gates:
        name = {"classname": one_line(f"{spec}.{each.planner}"), "name": one_line(each.name)}
        case = ET.SubElement(suite, "testcase", name | ({"time": "0.000000"} if timed else {}))
        if each.failed:
            ET.SubElement(case, "failure", {"type": each.gate, "message": one_line(each.message)})
        else:
            ET.SubElement(case, "system-out").text = one_line(each.message)
    _count(suite, 0.0 if timed else None)
    return suite


def _status_suite(standings: Sequence[Standing], spec: str) -> ET.Element:
    suite = ET.Element("testsuite", {"name": "status over all runs"})
    failing = (Status.VIOLATED, Status.INCONCLUSIVE, Status.DEFEATED)
    for each in standings:
        name = {"classname": one_line(f"{spec}.{each.planner}"), "name": one_line(f"status of {each.name}")}
        case = ET.SubElement(suite, "testcase", name)
        properties = ET.SubElement(case, "properties")
        _property(properties, "status", each.status.value)
        _property(properties, "grade", each.grade.value)
        if each.status in failing:
            ET.SubElement(case, "failure", {"type": each.status.value, "message": one_line(each.told)})
        elif each.status is not Status.SUPPORTED:
            ET.SubElement(case, "skipped", {"message": one_line(each.told)})
    _count(suite, None)
    return suite


def _case(each: Checked, class_name: str, seconds: float | None, inconclusive: str) -> ET.Element:
    case = ET.Element("testcase", {"classname": one_line(class_name), "name": one_line(each.name)})
    if seconds is not None:
        case.set("time", f"{seconds:.6f}")
    properties = ET.SubElement(case, "properties")
    point = each.point
    values = {
        "verdict": point.verdict.value,
        **each.grounds,
        "probability": repr(point.probability),
        "target": each.result.asked_text,
    }
    values |= {"lower": repr(point.lower), "upper": repr(point.upper)}
    if point.uncertainty is not None:
        for kind in ("interval", "confidence_bounds"):
            ends = getattr(point.uncertainty, kind)
            if ends is None:
                continue
            values |= {f"{kind}_lower": repr(ends.lower), f"{kind}_upper": repr(ends.upper)}
    for name, value in values.items():
        _property(properties, name, value)
    result = _result_tag(point.verdict.value, inconclusive)
    if result is not None:
        found = ET.SubElement(case, result, {"message": one_line(each.message)})
        if result == "failure":
            found.set("type", point.verdict.value)
        found.text = one_line(each.result.formula)
    elif point.condition is not None:
        ET.SubElement(case, "system-out").text = one_line(each.message)
    return case


def _result_tag(verdict: str, inconclusive: str) -> str | None:
    tags = {"violated": "failure", "inconclusive": inconclusive, "vacuous": "skipped", "no target": "skipped"}
    return tags.get(verdict)


def _property(properties: ET.Element, name: str, value: str) -> None:
    ET.SubElement(properties, "property", {"name": one_line(name), "value": one_line(value)})


def _count(element: ET.Element, seconds: float | None) -> None:
    """Set the totals of the cases below an element."""
    listed = list(element.iter("testcase"))
    element.set("tests", str(len(listed)))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(attribute, str(sum(each.find(tag) is not None for each in listed)))
    if seconds is not None:
        element.set("time", f"{seconds:.6f}")
