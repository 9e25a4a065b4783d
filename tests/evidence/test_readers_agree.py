"""Random runs: every reader states the same verdicts with the same conditions, and none that do not follow.

The verdicts are made by a rule that is written down here once more, from its specification.
"""

import copy
import csv
import io
import json
import xml.etree.ElementTree as ET
from fractions import Fraction
from types import SimpleNamespace

import pytest
import yaml
from html_reading import read_page, section, table
from hypothesis import assume, given
from hypothesis import strategies as st
from made_runs import BOUNDS, CONFIDENCE, document_of, point, requirement, run_content, uncertainty
from run_documents import tried

from verifier.base.errors import InputError
from verifier.evidence.bundle.trace import Traced, trace_rows
from verifier.evidence.case.building import build_case, standings
from verifier.evidence.case.elements import gsn_yaml
from verifier.evidence.consistency import check_documents
from verifier.evidence.context import CaseContext
from verifier.evidence.defeaters.finding import find_defeaters
from verifier.evidence.junit import junit_xml
from verifier.evidence.report import csv_report, html_report, markdown_report
from verifier.evidence.sarif import sarif_log
from verifier.evidence.statements import statement

OVER = [{"kind": "ended", "text": "the episode is over before it begins"}]
INDEPENDENT = "items are independent"
ICC = "items are independent or correlated within a drive with ICC at most 0.08"
P_VALUES = (None, 0.0001, 0.4)
CONTRADICTED = 0.01


def model_of(lower, upper, target):
    """What the numbers say; the target is P >= p."""
    if Fraction(lower) >= Fraction(target):
        return "satisfied"
    return "violated" if Fraction(upper) < Fraction(target) else "inconclusive"


def resting(model, whatever, tests, clause, chosen, vacuous):
    """Verdict, basis, condition and reason of a point, in the order in which the specification decides.

    Args:
        model: what its numbers say.
        whatever: what they say if the probability is the same whatever is predicted; None where it is not.
        tests: p-values of the classes drawn, None for one without a test, by name.
        clause: what the numbers assume of the data.
        chosen: settings strict and assume_memoryless.
        vacuous: whether the check says nothing.
    """
    if whatever is not None:
        return ("vacuous" if vacuous and whatever == "satisfied" else whatever), "any_dependence", None, None
    against = {name: p for name, p in tests.items() if p is not None and p < CONTRADICTED}
    if against and not chosen["assume_memoryless"]:
        name = min(against, key=against.get)
        reason = {"kind": "dependence", "label": name, "p_value": against[name], "model_verdict": model}
        return "inconclusive", None, None, reason
    if model == "inconclusive":
        return model, None, None, {"kind": "bounds"}
    clauses = [clause] if clause else []
    untested = not against and None in tests.values()
    if against:
        name = min(against, key=against.get)
        said = f"the data contradict it for {name}, p = {against[name]:.2g}"
        clauses.append(f"the detector is memoryless (assumed; {said})")
    elif untested and chosen["assume_memoryless"]:
        clauses.append("the detector is memoryless (assumed, not tested)")
    elif untested and clause != INDEPENDENT:
        clauses.append("the detector is memoryless (not tested)")
    condition = f"if {' and '.join(clauses)}" if clauses else None
    if chosen["strict"] and condition:
        return "inconclusive", None, None, {"kind": "untested", "condition": condition, "model_verdict": model}
    basis = "assumed" if chosen["assume_memoryless"] and (against or untested) else "memoryless"
    if vacuous and model == "satisfied":
        return "vacuous", basis, None, None
    return model, basis, condition, None


def over_all(verdict, parts):
    """The condition of a whole: of what is violated none where one part has none, else all that is needed."""
    texts = [condition for mine, condition in parts if mine == verdict]
    if verdict == "violated" and None in texts:
        return None
    texts = list(dict.fromkeys(text for text in texts if text is not None))
    kept = [text for text in texts if not any(other != text and other.startswith(text) for other in texts)]
    return "; ".join(kept) or None


@st.composite
def points(draw, number, tests, clause, chosen, source):
    drawn = sorted(draw(st.sets(st.sampled_from(("obs", "ped")))))
    ends = sorted(draw(st.tuples(*[st.sampled_from((0.1, 0.5, 0.85, 0.9, 0.95, 0.99))] * 2)))
    value = draw(st.sampled_from((0.0, 1.0, *ends)))
    bounds = (min(ends[0], value), max(ends[1], value))
    vacuous = draw(st.booleans())
    free = value in (0.0, 1.0) and draw(st.booleans())
    held = (value, value) if source == "point" else bounds
    whatever = model_of(value, value, "9/10") if free else None
    mine = {name: tests[name] for name in drawn}
    found = resting(model_of(*held, "9/10"), whatever, mine, clause, chosen, vacuous)
    verdict, basis, condition, reason = found
    more = {"basis": basis, "condition": condition, "reason": reason, "draws": drawn}
    more |= {"whatever_predicted": int(value)} if free else {}
    more |= {"vacuity": OVER} if vacuous else {}
    return point(verdict, value, "ped", initial={"x": number}, uncertainty=uncertainty(*bounds, *bounds), **more)


def worst_of(verdicts):
    return max(verdicts, key=("no target", "satisfied", "vacuous", "inconclusive", "violated").index)


@st.composite
def runs(draw):
    """The values of a run of one to three requirements, each in one to three scenarios, that fit together."""
    tests = {name: draw(st.sampled_from(P_VALUES)) for name in ("obs", "ped")}
    chosen = dict(zip(("strict", "assume_memoryless"), draw(st.sampled_from(((0, 0), (0, 1), (1, 0)))), strict=True))
    chosen = {name: bool(value) for name, value in chosen.items()}
    source = draw(st.sampled_from(("bounds", "point", "interval")))
    tier, clause = draw(
        st.sampled_from((("independent_drives", None), ("independent_items", INDEPENDENT), ("icc_at_most", ICC)))
    )
    bounds = BOUNDS
    if clause is not None:
        icc = 0.08 if tier == "icc_at_most" else None
        said = "if items are independent" if icc is None else "if the ICC is at most 0.08"
        bounds = bounds | {"tier": tier, "condition": clause, "conditional": True, "largest_drive": None}
        bounds = bounds | {"icc_at_most": icc, "name": f"95 % confidence bounds ({said})"}
    clause = {"bounds": clause, "point": None, "interval": INDEPENDENT}[source]
    listed = []
    count = draw(st.integers(1, 3))
    for number in range(draw(st.integers(1, 3))):
        mine = [draw(points(k, tests, clause, chosen, source)) for k in range(count)]
        counting = [each["verdict"] for each in mine if each["verdict"] != "vacuous"]
        verdict = worst_of(counting or ["vacuous"])
        worst = [k for k, each in enumerate(mine) if each["verdict"] == verdict]
        at = min(worst, key=lambda k: mine[k]["probability"])
        over = over_all(verdict, [(each["verdict"], each["condition"]) for each in mine])
        listed.append(requirement(f"asked{number}", verdict, mine, worst=at) | {"condition": over})
    for one in [found for each in listed for found in each["points"]]:
        one["uncertainty"]["confidence_bounds"]["tier"] = tier
    verdict = worst_of(each["verdict"] for each in listed)
    condition = over_all(verdict, [(each["verdict"], each["condition"]) for each in listed])
    content = run_content(listed, verdict, condition=condition)
    content["settings"] |= {**chosen, "verdict_from": source, "confidence": CONFIDENCE | {"bounds": bounds}}
    drawn = sorted({name for each in listed for found in each["points"] for name in found["draws"]})
    return copy.deepcopy(content | with_channel({name: tests[name] for name in drawn}))


def with_channel(tests):
    """The entries `channel` and `matrices` of a run whose chains draw these classes."""
    classes, counted = [], []
    for name, p_value in tests.items():
        if p_value is None:
            classes.append({"label": name, "test": "untested"})
            continue
        numbers = tried(p_value)["classes"][0] | {"label": name}
        said = "contradicted" if p_value < CONTRADICTED else "not_contradicted"
        names = ("p_value", "after_miss", "joint_misses", "miss_after_miss", "expected_miss_after_miss")
        classes.append({"label": name, "test": said, **{key: numbers[key] for key in names}})
        counted.append(numbers)
    known = [each["test"] for each in classes]
    test = "contradicted" if "contradicted" in known else "untested" if "untested" in known else "not_contradicted"
    matrices = {"labelling": "class", "labels": ["ped", "obs", "empty"], "bins": ["[0, 10) m"], "items": 9}
    matrices |= {"sequences": None, "dependence": {"seed": 0, "classes": counted}}
    return {"channel": {"test": test, "classes": classes}, "matrices": matrices}


def told(part):
    """A verdict with its condition."""
    return part["verdict"] + ("" if part["condition"] is None else f", {part['condition']}")


def name_of(each, found):
    return f"{each['name']} [planner p, {found['environment']} x={found['initial']['x']}]"


@given(runs())
def test_every_reader_states_the_same_verdict_and_the_same_condition(content):
    run = document_of(content)
    check_documents([run])
    judged_by_junit(run)
    judged_by_sarif(run)
    judged_by_intoto(run)
    judged_by_report(run)
    judged_by_case(run)
    judged_by_trace(run)


def judged_by_junit(run):
    cases = {case.get("name"): case for case in ET.fromstring(junit_xml(run, "car.ltl")).iter("testcase")}
    tags = {"violated": "failure", "inconclusive": "failure", "vacuous": "skipped", "satisfied": None}
    for each in run.content["requirements"]:
        for found in each["points"]:
            case = cases[name_of(each, found)]
            values = {prop.get("name"): prop.get("value") for prop in case.iter("property")}
            assert (values["verdict"], values.get("condition")) == (found["verdict"], found["condition"])
            assert values.get("basis") == found["basis"]
            tag = tags[found["verdict"]]
            (result,) = [child for child in case if child.tag in ("failure", "skipped")] or [None]
            assert (None if result is None else result.tag) == tag
            said = case.find("system-out").text if result is None and found["condition"] else ""
            message = said if result is None else result.get("message")
            assert message == "" or message.startswith(told(found))
            assert not found["condition"] or found["condition"] in message
            if (found["reason"] or {}).get("kind") == "dependence":
                assert f"p = {found['reason']['p_value']:.2g}" in message
                assert f"gives P = {found['probability']:.9g}, {found['reason']['model_verdict']}" in message
            if "vacuity" in found and result is not None:
                assert f"vacuous: {OVER[0]['text']}" in message


def judged_by_sarif(run):
    (log,) = json.loads(sarif_log(run, "car.ltl", {}))["runs"]
    rules = {rule["id"]: rule["properties"] for rule in log["tool"]["driver"]["rules"]}
    results = {result["ruleId"]: result for result in log["results"]}
    levels = {"violated": "error", "inconclusive": "warning", "vacuous": "warning"}
    assert log["properties"]["condition"] == run.content["condition"]
    for each in run.content["requirements"]:
        worst = each["points"][each["worst"]]
        assert rules[each["name"]]["verdict"] == each["verdict"]
        assert rules[each["name"]]["condition"] == each["condition"]
        assert (each["name"] in results) == (each["verdict"] in levels)
        if each["name"] in results:
            result = results[each["name"]]
            assert result["level"] == levels[each["verdict"]]
            assert result["message"]["text"].startswith(f"{name_of(each, worst)}: {told(worst)}")
            assert result["properties"].get("condition") == worst["condition"]


def judged_by_intoto(run):
    predicate = json.loads(statement(run, {"spec.file": "a" * 64}))["predicate"]
    lists = {"violated": "failed", "inconclusive": "warned", "vacuous": "warned", "satisfied": "passed"}
    for each in run.content["requirements"]:
        for found in each["points"]:
            name = name_of(each, found) + ("" if found["condition"] is None else f", {found['condition']}")
            assert name in predicate[f"{lists[found['verdict']]}Tests"]
    assert predicate["result"] == {"violated": "FAILED", "satisfied": "PASSED"}.get(run.content["verdict"], "WARNED")


def judged_by_report(run):
    page = read_page(html_report([run]))
    assert section(page, "verdicts").all("p").__next__().text == f"Overall verdict: {told(run.content)}"
    assert f"**Overall verdict: {told(run.content)}**" in markdown_report([run])
    rows = iter(csv.DictReader(io.StringIO(csv_report([run]))))
    summary = {row[0]: row[1] for row in table(page, "All requirements")[1:]}
    for k, each in enumerate(run.content["requirements"], start=1):
        found = section(page, f"r{k}")
        assert next(found.all("h3")).text == f"{each['name']} {told(each)}"
        assert summary[each["name"]].startswith(told(each))
        if len(each["points"]) > 1:
            also = [" (vacuous)" if "vacuity" in p and p["verdict"] != "vacuous" else "" for p in each["points"]]
            expected = [told(p) + mark for p, mark in zip(each["points"], also, strict=True)]
            assert [row[-1] for row in table(found, "Scenarios")[1:]] == expected
        for p in each["points"]:
            row = next(rows)
            assert (row["verdict"], row["condition"]) == (p["verdict"], p["condition"] or "")
            assert (row["basis"], row["tier"]) == (p["basis"] or "", tier(run))
            assert bool(row["vacuity"]) == ("vacuity" in p)


def tier(run):
    return run.content["settings"]["confidence"]["bounds"]["tier"]


def judged_by_case(run):
    case = build_case([run], CaseContext(), find_defeaters([run], CaseContext(), {}), {})
    yaml.safe_load(gsn_yaml(case))
    goals = {(claim.requirement, claim.point): case.by_id[name] for claim, name in case.goals.items()}
    for each in run.content["requirements"]:
        for k, found in enumerate(each["points"]):
            goal = goals[each["name"], k]
            assert f": {told(found)}" in goal.note
            assert bool(goal.supported_by) == (found["verdict"] == "satisfied")
            conditional = found["verdict"] == "satisfied" and found["condition"] is not None
            assert not conditional or goal.text.endswith(found["condition"])
            if "vacuity" in found:
                assert goal.defeated or (found["verdict"], goal.status.value) == ("vacuous", "vacuous")
        if each["verdict"] == "satisfied" and each["condition"] is not None:
            assert goals[each["name"], None].text.endswith(each["condition"])


def standings_of(run):
    """How the requirements stand, without the doubts."""
    case = build_case([run], CaseContext(), (), {})
    return standings(case, [run], ())


STATUSES = {
    "satisfied": ("supported", "conditional"), "vacuous": ("vacuous",), "inconclusive": ("inconclusive",),
    "violated": ("violated",),
}  # fmt: skip


def judged_by_trace(run):
    asked = [
        SimpleNamespace(name=each["name"], line=1, text="", target=Fraction(9, 10), comparison=">=")
        for each in run.content["requirements"]
    ]
    grid = SimpleNamespace(requirements=asked, blocks=())
    rebuilt = SimpleNamespace(
        grid=grid,
        inputs=SimpleNamespace(spec=SimpleNamespace(requirements=asked), model=SimpleNamespace(decides=False)),
    )
    parts = SimpleNamespace(rebuilt=rebuilt, result=run.result, files={}, omitted={})
    for row, each in zip(
        trace_rows(Traced(parts, {}, {}, standings_of(run), {})),
        run.content["requirements"],
        strict=True,
    ):
        assert (row["verdict"], row["condition"], row["tier"]) == (
            each["verdict"],
            each["condition"] or "",
            tier(run),
        )
        assert bool(row["vacuity"]) == any("vacuity" in found for found in each["points"])
        assert row["status"] in STATUSES[each["verdict"]]
        assert row["status"] != "supported" or each["condition"] is None


OTHERWISE = {
    "verdict": ("satisfied", "violated", "inconclusive", "vacuous"),
    "basis": (None, "memoryless", "assumed", "any_dependence"),
    "condition": (None, "if items are independent", "if the detector is memoryless (not tested)"),
    "reason": (
        None,
        {"kind": "bounds"},
        {"kind": "dependence", "label": "ped", "p_value": 0.001, "model_verdict": "satisfied"},
    ),
}


@given(runs(), st.data())
def test_a_point_that_does_not_follow_from_its_numbers_and_the_channel_is_refused_by_its_pointer(content, data):
    row = data.draw(st.integers(0, len(content["requirements"]) - 1))
    k = data.draw(st.integers(0, len(content["requirements"][row]["points"]) - 1))
    found = content["requirements"][row]["points"][k]
    name = data.draw(st.sampled_from(sorted(OTHERWISE)))
    value = data.draw(st.sampled_from(OTHERWISE[name]))
    assume(value != found[name])
    found[name] = value
    with pytest.raises(InputError) as refused:
        check_documents([document_of(content)])
    where = f"/requirements/{row}/points/{k}/{name}"
    assert refused.value.place.path in (where, f"{where}/kind")  # of two reasons, what differs first


@given(runs(), st.data())
def test_a_whole_that_does_not_follow_from_its_parts_is_refused_by_its_pointer(content, data):
    row = data.draw(st.integers(-1, len(content["requirements"]) - 1))
    whole, where = (content, "") if row < 0 else (content["requirements"][row], f"/requirements/{row}")
    whole["condition"] = "if the moon is full" if whole["condition"] is None else None
    with pytest.raises(InputError) as refused:
        check_documents([document_of(content)])
    assert refused.value.place.path == f"{where}/condition"


@given(runs(), st.data())
def test_a_channel_that_the_matrices_do_not_have_is_refused(content, data):
    """Otherwise a contradicted model could be called tested."""
    classes = content["channel"]["classes"]
    assume(classes)
    at = data.draw(st.integers(0, len(classes) - 1))
    change = data.draw(st.sampled_from(("another p-value", "untested", "left out", "the whole")))
    if change == "another p-value":
        assume("p_value" in classes[at])
        classes[at] |= {"p_value": 0.7, "test": "not_contradicted"}
    elif change == "untested":
        assume("p_value" in classes[at])
        classes[at] = {"label": classes[at]["label"], "test": "untested"}
    elif change == "left out":
        del classes[at]
    else:
        others = [
            each for each in ("contradicted", "untested", "not_contradicted") if each != content["channel"]["test"]
        ]
        content["channel"]["test"] = data.draw(st.sampled_from(others))
    with pytest.raises(InputError):
        check_documents([document_of(content)])
