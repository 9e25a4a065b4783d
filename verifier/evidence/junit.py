"""JUnit XML of a run: one test case per requirement, planner and scenario, for the test report of a pipeline.

JUnit XML has no standard; this keeps to what Jenkins, GitLab and GitHub's reporters read: `testsuites`, `testsuite`,
`properties`, `testcase`, `failure`, `skipped`. One suite is one Markov chain: a planner with a environment and
values of the swept constants.

| verdict      | test case                                                                  |
|--------------|----------------------------------------------------------------------------|
| satisfied    | passed                                                                     |
| violated     | `failure` of type "violated"                                               |
| vacuous      | `skipped`: the check says nothing about the system there                   |
| inconclusive | `failure` of type "inconclusive": what is not shown does not pass          |
| no target    | `skipped`: nothing was asked, so nothing passed                            |

The message holds the condition of a verdict; a case that passed on a condition says so in `system-out`.

Requirements without an answer within the limits are a suite of their own, each an `error`.
The gates of a run, where it has any, are a suite of their own with one case per requirement and planner. So are the
statuses in a bundle: supported passes; violated, inconclusive and defeated fail; the others are skipped.

XML 1.0 has no control characters. They, line breaks and invisible signs such as changes of the writing direction are
written out (`\\x1b`), so that what is shown is what is there.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from xml.etree import ElementTree as ET

from verifier.base.arrays import grouped
from verifier.base.errors import one_line
from verifier.evidence.checked import Checked, checked, gated, run_grounds
from verifier.evidence.documents import Document
from verifier.evidence.exchange.xml import under, xml_text
from verifier.evidence.status import Standing, Status
from verifier.study.results import RunResult


def junit_xml(
    run: Document,
    spec_name: str,
    seconds: Mapping[str, float] | None = None,
    standings: Sequence[Standing] = (),
) -> str:
    """The document of a run as JUnit XML.

    Args:
        spec_name: file name of the spec; names the classes of the cases.
        seconds: measured seconds of each Markov chain, by "PLANNER, ENVIRONMENT NAME=VALUE ..." (`suite_name`). All
            cases of a chain are checked together: each is given an equal share, so that sums are right. None for no
            times, which makes the bytes repeatable.
        standings: of the requirements in a bundle, over all its runs.
    """
    result: RunResult = run.result
    suites = grouped((suite_name(one.result.planner, one.point.block), one) for one in checked(result))
    root = ET.Element("testsuites", {"name": one_line(result.title or spec_name)})
    spec = PurePath(spec_name).stem
    for name, cases in suites.items():
        _suite(root, name, cases, spec, None if seconds is None else seconds[name], result)
    _further_suites(root, result, standings, spec, None if seconds is None else 0.0)
    _count(root, None if seconds is None else sum(seconds[name] for name in suites))
    return xml_text(root)


def suite_name(planner: str, block: str) -> str:
    """The name of the suite of one Markov chain."""
    return f"{planner}, {block}"


def _suite(
    root: ET.Element, name: str, cases: Sequence[Checked], spec: str, seconds: float | None, run: RunResult
) -> None:
    suite = under(root, "testsuite", name=name)
    said = [(f"{file.role} {file.name} sha256", file.sha256) for file in run.inputs]
    said += [(f"version {library}", version) for library, version in run.versions.items()]
    _properties(suite, [*said, *run_grounds(run)])
    share = None if seconds is None else seconds / len(cases)
    for case in cases:
        _judged(_case(suite, f"{spec}.{case.result.planner}", case.name, share), case)
    _count(suite, seconds)


def _further_suites(
    root: ET.Element, run: RunResult, standings: Sequence[Standing], spec: str, seconds: float | None
) -> None:
    """Of what is no scenario of a chain: requirements without an answer, gates, statuses over all runs."""
    gates, failing = gated(run), (Status.VIOLATED, Status.INCONCLUSIVE, Status.DEFEATED)
    suites = {"no answer": run.unanswered, "gates": gates, "status over all runs": standings}
    made = {name: under(root, "testsuite", name=name) for name, cases in suites.items() if cases}
    for left in run.unanswered:
        case = _case(made["no answer"], spec, left.name, seconds)
        under(case, "error", type="no answer", message=left.reason).text = one_line(left.formula)
    for gate in gates:
        case = _case(made["gates"], f"{spec}.{gate.planner}", gate.name, seconds)
        if gate.failed:
            under(case, "failure", type=gate.gate, message=gate.message)
        else:
            under(case, "system-out").text = one_line(gate.message)
    for one in standings:
        case = _case(made["status over all runs"], f"{spec}.{one.planner}", f"status of {one.name}", None)
        _properties(case, [("status", one.status.value), ("grade", one.grade.value)])
        if one.status in failing:
            under(case, "failure", type=one.status.value, message=one.told)
        elif one.status is not Status.SUPPORTED:
            under(case, "skipped", message=one.told)
    for name, suite in made.items():
        _count(suite, None if name.startswith("status") else seconds)


def _case(suite: ET.Element, class_name: str, name: str, seconds: float | None) -> ET.Element:
    time = {} if seconds is None else {"time": f"{seconds:.6f}"}
    return under(suite, "testcase", {"classname": class_name, "name": name, **time})


def _judged(case: ET.Element, checked: Checked) -> None:
    point = checked.point
    values = {"verdict": point.verdict.value, **checked.grounds, "probability": repr(point.probability)}
    values |= {"target": checked.result.asked_text, "lower": repr(point.lower), "upper": repr(point.upper)}
    if point.uncertainty is not None:
        for kind in ("interval", "confidence_bounds"):
            ends = getattr(point.uncertainty, kind)
            if ends is not None:
                values |= {f"{kind}_lower": repr(ends.lower), f"{kind}_upper": repr(ends.upper)}
    _properties(case, values.items())
    tags = {"violated": "failure", "inconclusive": "failure", "vacuous": "skipped", "no target": "skipped"}
    result = tags.get(point.verdict.value)
    if result is not None:
        element = under(case, result, message=checked.message)
        if result == "failure":
            element.set("type", point.verdict.value)
        element.text = one_line(checked.result.formula)
    elif point.condition is not None:
        under(case, "system-out").text = one_line(checked.message)


def _properties(parent: ET.Element, values: Iterable[tuple[str, str]]) -> None:
    properties = under(parent, "properties")
    for name, value in values:
        under(properties, "property", name=name, value=value)


def _count(element: ET.Element, seconds: float | None) -> None:
    """Set the totals of the cases below an element."""
    listed = list(element.iter("testcase"))
    element.set("tests", str(len(listed)))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(attribute, str(sum(case.find(tag) is not None for case in listed)))
    if seconds is not None:
        element.set("time", f"{seconds:.6f}")
