"""SARIF of runs: compared with the OASIS standard and its JSON Schema, and read by sarif-tools."""

import json

import jsonschema
import pytest
from made_runs import HOSTILE, document_of, every_verdict, run_content

from verifier.evidence.sarif import sarif_log

LINES = {"stops": (3, 1), "unsure": (5, 3)}


def log_of(content=None, spec="specs/car.ltl", lines=LINES):
    return json.loads(sarif_log(document_of(content or every_verdict()), spec, lines))


def test_problems_are_results_at_their_line_and_all_requirements_are_rules():
    (run,) = log_of()["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [(each["id"], each["properties"]["verdict"]) for each in rules] == [
        ("stops", "violated"),
        ("unsure", "inconclusive"),
        ("holds", "satisfied"),
        ("asks", "no target"),
    ]
    assert [(each["ruleId"], each["ruleIndex"], each["level"], each["kind"]) for each in run["results"]] == [
        ("stops", 0, "error", "fail"),
        ("unsure", 1, "warning", "fail"),
    ]
    places = [each["locations"][0]["physicalLocation"] for each in run["results"]]
    assert [each["region"] for each in places] == [
        {"startLine": 3, "startColumn": 1},
        {"startLine": 5, "startColumn": 3},
    ]
    assert {each["artifactLocation"]["uri"] for each in places} == {"specs/car.ltl"}
    assert run["results"][0]["message"]["text"] == (
        "stops [planner p, obs x=1]: violated: P = 0.25, 95 % credible interval [0.2, 0.3], "
        "95 % confidence bounds (independent drives) [0.1, 0.4]; target P >= 0.9"
    )
    assert run["artifacts"][0]["hashes"] == {"sha-256": "a" * 64}


def test_a_rule_is_named_only_where_its_identifier_is_another_text():
    """SARIF1001 of Microsoft's validator: "If they are identical, the tool must omit the 'name' property"."""
    content = every_verdict()
    content["requirements"][0]["name"] = "x" * 10_000
    long, *others = log_of(content)["runs"][0]["tool"]["driver"]["rules"]
    assert long["name"] == "x" * 10_000 != long["id"]
    assert [each["id"] for each in others if "name" in each] == []


def test_a_requirement_without_a_place_is_shown_at_the_file():
    first, second = log_of(lines={"stops": (3, 1)})["runs"][0]["results"]
    assert "region" in first["locations"][0]["physicalLocation"]
    assert "region" not in second["locations"][0]["physicalLocation"]


def test_planners_are_told_apart_by_their_fingerprints_and_keep_them():
    def content(probability):
        found = every_verdict()["requirements"][0]
        other = json.loads(json.dumps(found)) | {"planner": "q"}
        other["points"][1]["probability"] = probability
        return run_content([found, other], "violated")

    def prints(probability):
        return [each["partialFingerprints"] for each in log_of(content(probability))["runs"][0]["results"]]

    assert len({json.dumps(each) for each in prints(0.2)}) == 2
    assert prints(0.2) == prints(0.1)  # the same finding, whatever its number
    assert len(log_of(content(0.2))["runs"][0]["tool"]["driver"]["rules"]) == 1


def test_hostile_names_stay_text_and_uris_are_quoted():
    content = every_verdict(HOSTILE) | {"title": HOSTILE}
    text = sarif_log(document_of(content), "my specs/a:b #1.ltl", {})
    assert "\x1b" not in text
    assert "u202e" in text
    assert "\\u202e" not in text.replace("\\\\u202e", "")  # written out, not sent
    (run,) = json.loads(text)["runs"]
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == (
        "my%20specs/a%3Ab%20%231.ltl"
    )
    message = run["results"][0]["message"]["text"]
    assert "](http" not in message  # no link
    assert "{{0}}" in message  # no placeholder
    check_standard(json.loads(text))


def test_long_names_are_cut_and_stay_different():
    names = ["r" * 10_000, "r" * 10_000 + "s"]
    found = every_verdict()["requirements"][0]
    log = log_of(run_content([found | {"name": name} for name in names], "violated"))
    ids = [each["id"] for each in log["runs"][0]["tool"]["driver"]["rules"]]
    assert len(set(ids)) == 2
    assert {len(each) for each in ids} == {255}
    check_standard(log)


def test_bytes_are_repeated():
    assert sarif_log(document_of(every_verdict()), "a.ltl", LINES) == sarif_log(
        document_of(every_verdict()), "a.ltl", LINES
    )


def check_standard(log):
    """What SARIF 2.1.0 demands of the properties that are used; sections as in the OASIS standard.

    No installable package carries the JSON Schema of the standard, so its demands are written down here.
    """
    assert set(log) == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"  # 3.13.2
    for run in log["runs"]:
        assert {"tool", "results"} <= set(run) <= {"tool", "artifacts", "columnKind", "results", "properties"}
        assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")  # 3.14.17
        driver = run["tool"]["driver"]
        assert isinstance(driver["name"], str)  # 3.19.8
        assert len({each["id"] for each in driver["rules"]}) == len(driver["rules"])  # 3.19.23: unique
        for rule in driver["rules"]:
            known = {"id", "name", "shortDescription", "fullDescription", "defaultConfiguration", "properties"}
            assert set(rule) <= known  # 3.49
            assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")  # 3.50.3
            assert all(isinstance(rule[key]["text"], str) for key in ("shortDescription", "fullDescription"))
        for artifact in run["artifacts"]:
            assert set(artifact) == {"location", "hashes", "description"}  # 3.24
            assert all(len(digest) == 64 for digest in artifact["hashes"].values())
        for result in run["results"]:
            check_result(result, driver["rules"], run["artifacts"])


def check_result(result, rules, artifacts):
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"]  # 3.27.6
    assert result["kind"] == "fail"  # 3.27.9, 3.27.10: only then a level other than none
    assert result["level"] in ("note", "warning", "error")
    assert isinstance(result["message"]["text"], str)
    assert all(isinstance(each, str) for each in result["partialFingerprints"].values())  # 3.27.17
    for location in result["locations"]:
        physical = location["physicalLocation"]
        at = physical["artifactLocation"]
        assert artifacts[at["index"]]["location"]["uri"] == at["uri"]  # 3.4.5
        assert at["uri"].isascii()
        assert not at["uri"].startswith("/")
        assert " " not in at["uri"]
        for value in physical.get("region", {"startLine": 1}).values():
            assert isinstance(value, int)
            assert value >= 1  # 3.30.5, 3.30.6


def test_the_standard_is_kept():
    check_standard(log_of())
    with pytest.raises(AssertionError):
        check_standard(log_of() | {"version": "2.0.0"})


def test_sarif_tools_read_the_same(tmp_path):
    loader = pytest.importorskip("sarif.loader")
    path = tmp_path / "found.sarif"
    path.write_text(sarif_log(document_of(every_verdict()), "specs/car.ltl", LINES))
    read = loader.load_sarif_file(str(path))
    assert read.get_report().get_issue_count_for_severity("error") == 1
    assert read.get_result_count() == 2
    assert [(each["Location"], each["Line"], each["Severity"], each["Code"]) for each in read.get_records()] == [
        ("specs/car.ltl", 3, "error", "stops"),
        ("specs/car.ltl", 5, "warning", "unsure"),
    ]


def test_a_run_without_problems_has_no_result():
    content = run_content([every_verdict()["requirements"][2]], "satisfied")
    assert log_of(content)["runs"][0]["results"] == []


@pytest.fixture(scope="module")
def published(root):
    """What holds a log against the JSON Schema that OASIS publishes with the standard."""
    schema = json.loads((root / "tests/data/sarif/sarif-schema-2.1.0.json").read_text())
    return jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker())


def test_the_published_schema_accepts_every_log(published):
    content = every_verdict()
    gate = {"requirement": "holds", "planner": "p", "scenario": "ped x=1", "value": 0.5, "failed": True}
    gate |= {"condition": None, "reason": ""}
    content["gates"] = {"fail_under": {"least": "0.9", "from": "point", "failed": True, "requirements": [gate]}}
    hostile = every_verdict()
    hostile["requirements"][0] |= {"name": HOSTILE, "formula": HOSTILE}
    for log in (log_of(), log_of(lines={}), log_of(content), log_of(hostile, spec=f"specs/{HOSTILE}.ltl")):
        assert [each.message for each in published.iter_errors(log)] == []


def test_the_published_schema_sees_what_is_wrong(published):
    log = log_of()
    log["runs"][0]["results"][0]["level"] = "grave"
    log["runs"][0]["results"][1]["kidn"] = "fail"
    places = sorted(list(each.absolute_path) for each in published.iter_errors(log))
    assert places == [["runs", 0, "results", 0, "level"], ["runs", 0, "results", 1]]
