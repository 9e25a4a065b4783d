"""in-toto statements of runs: read by the library of the in-toto attestation framework."""

import json

import pytest
from made_runs import HASHES, HOSTILE, document_of, every_verdict, run_content

from verifier.evidence.statements import statement

SUBJECTS = {"matrices.json": HASHES["confusion"], "car.toml": HASHES["model"]}


def test_a_violated_run_failed_and_lists_its_cases():
    run = document_of(every_verdict() | {"command": ["verify", "run", "car.ltl"]})
    found = json.loads(statement(run, SUBJECTS))
    assert [each["name"] for each in found["subject"]] == ["car.toml", "matrices.json"]
    predicate = found["predicate"]
    assert predicate["result"] == "FAILED"
    assert predicate["failedTests"] == ["stops [planner p, obs x=1]"]
    assert predicate["warnedTests"] == ["unsure [planner p, ped x=1]"]
    assert predicate["passedTests"] == ["stops [planner p, ped x=1]", "holds [planner p, ped x=1]"]
    spec, result = predicate["configuration"]
    assert (spec["name"], spec["digest"]["sha256"]) == ("spec.file", HASHES["spec"])
    assert result["digest"]["sha256"] == run.sha256
    assert result["annotations"]["command"] == ["verify", "run", "car.ltl"]


@pytest.mark.parametrize(("at", "verdict", "result"), [(1, "inconclusive", "WARNED"), (2, "satisfied", "PASSED")])
def test_the_worst_verdict_is_the_result(at, verdict, result):
    run = document_of(run_content([every_verdict()["requirements"][at]], verdict))
    assert json.loads(statement(run, SUBJECTS))["predicate"]["result"] == result


def test_where_nothing_is_asked_nothing_passes():
    run = document_of(run_content([every_verdict()["requirements"][3]], "no target"))
    predicate = json.loads(statement(run, SUBJECTS))["predicate"]
    assert predicate["result"] == "WARNED"
    assert predicate["passedTests"] == []


def test_a_failed_gate_fails_and_names_its_baseline():
    """Nothing violated, and yet the gate decides the result; what it compared with is part of the configuration."""
    drop = {"spec": "s.ltl", "requirement": "holds", "planner": "p", "before": 0.9, "now": 0.5, "drop": 0.4}
    regression = {
        "baseline": {"name": "before.json", "sha256": "d" * 64},
        "max_drop": "0.1",
        "drop_from": "point",
        "failed": True,
        "compared": "points",
        "drops": [drop | {"failed": True, "chance": None}],
        "not_in_baseline": [],
    }
    content = run_content([every_verdict()["requirements"][2]], "satisfied", gates={"regression": regression})
    predicate = json.loads(statement(document_of(content), SUBJECTS))["predicate"]
    assert (predicate["result"], predicate["failedTests"]) == ("FAILED", ["holds [planner p, max_drop]"])
    (baseline,) = (each for each in predicate["configuration"] if each["annotations"]["role"] == "baseline")
    assert (baseline["name"], baseline["digest"]["sha256"]) == ("before.json", "d" * 64)


def test_the_library_of_in_toto_accepts_it():
    pytest.importorskip("in_toto_attestation")
    from google.protobuf import json_format
    from in_toto_attestation.predicates.test_result.v0 import test_result_pb2
    from in_toto_attestation.v1 import statement_pb2
    from in_toto_attestation.v1.statement import Statement

    text = statement(document_of(every_verdict(HOSTILE)), {HOSTILE: "0" * 64})
    read = Statement.copy_from_pb(json_format.Parse(text, statement_pb2.Statement()))
    read.validate()
    assert read.pb.predicate_type == "https://in-toto.io/attestation/test-result/v0.1"
    predicate = json_format.Parse(json.dumps(json.loads(text)["predicate"]), test_result_pb2.TestResult())
    assert predicate.result == "FAILED"
    assert next(iter(predicate.failed_tests)).startswith("<b onclick")
    assert "\x1b" not in text
    assert "\\u202e" not in text.replace("\\\\u202e", "")


def test_bytes_do_not_depend_on_the_order_of_subjects():
    run = document_of(every_verdict())
    assert statement(run, SUBJECTS) == statement(run, dict(reversed(SUBJECTS.items())))
