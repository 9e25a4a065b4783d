"""A car that should brake for a pedestrian: a system, matrices of day and night, and bundles of it.

It misses somebody ahead with 1e-4 by day and .1 by night in the last of two looks at less than 10 m, so that it hits
with 1 - .9998 by day and with .19 by night, by hand.
"""

import copy
import csv
import io
import json
import re
import xml.etree.ElementTree as ET

import yaml
from document_edits import summed
from matrix_documents import document_of

from verifier.analysis.settings import ConfidenceSettings
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.pipeline import verify_spec
from verifier.study.options import RunOptions

MODEL = """
initial = "x = 0 & v = 2"
terminal = "x >= line | v = 0"
[constants]
line = 12
[variables]
x = { range = [0, "line"], next = "min(x + v, line)" }
v = { range = [0, 2], next = "speed" }
[inputs]
speed = { range = [0, 2] }
[environments]
ped = [{ class = "ped", distance_m = "2 * (line - x)" }]
empty = [{ class = "empty", distance_m = "2 * (line - x)" }]
[planners.brake]
rules = [
  { when = "sees(ped) & x >= line - 5", set = { speed = "max(v - 1, 0)" } },
  { when = "true", set = { speed = "2" } }
]
"""
HIT = "no_hit: P >= 0.99 [ G (ped -> x < line) ]\n"
PHANTOM = "no_phantom: P >= 0.9 [ G (empty -> !(v = 0)) ]\n"
VACUOUS = "vacuous_one: P >= 0.999 [ G (v = 2 & x > line -> false) ]\n"
NEAR = {"day": [[99990, 20], [10, 99980]], "night": [[90000, 20], [10000, 99980]]}
FAR = ([[99900, 20], [100, 99980]], [[99000, 20], [1000, 99980]])
FEW = RunOptions(confidence=ConfidenceSettings(draws=100))


def matrices(name, sequences=()):
    """Those of day or night; the counts in equal parts over sequences, the last of which has the rest."""
    tables = copy.deepcopy((NEAR[name], *FAR))  # tests change what they are given
    document = document_of(*tables, edges=(0, 10, 20, None), title=name, false_positives="counted")
    if sequences:
        parts = len(sequences)
        document["sequences"] = [
            {"name": one, "frames": 10**6, "counts": [
                [at, row, column, count // parts + (count % parts if k == parts - 1 else 0)]
                for at, table in enumerate(tables) for row in (0, 1) for column, count in enumerate(table[row])
            ]}
            for k, one in enumerate(sequences)
        ]  # fmt: skip
    return document


def write(folder, spec=HIT + PHANTOM + VACUOUS, **matrices_of):
    """Spec, model, day and night in a folder; gives the folder."""
    (folder / "aeb.toml").write_text(MODEL)
    (folder / "aeb.ltl").write_text(f'model "aeb.toml"\nplanner brake\n{spec}')
    for name in NEAR:
        (folder / f"{name}.json").write_text(json.dumps(matrices_of.get(name, matrices(name))))
    return folder


def built(folder, *given, data="day", context=None, options=FEW):
    """A bundle of the folder's files."""
    named = [folder / each for each in given]
    return make_bundle(Sources(folder / "aeb.ltl", folder / f"{data}.json", context, named), options)


RUNS = {}
"""What was made of which bytes under which options."""


def write_run(folder, data, name, change=None, options=FEW):
    """The result of a run of these matrices as a file, after a change; its checksums fit."""
    inputs = folder / "aeb.toml", folder / "aeb.ltl", folder / f"{data}.json"
    key = (*(file.read_bytes() for file in inputs), data, repr(options))
    if key not in RUNS:
        RUNS[key] = verify_spec(*inputs[1:], options).json_text()
    content = json.loads(RUNS[key])
    if change is not None:
        change(content)
        content = summed(content)
    (folder / name).write_text(json.dumps(content, indent=2) + "\n")
    return folder / name


ORDER = ("supported", "conditional", "vacuous", "undeveloped", "defeated", "inconclusive", "violated")


def statuses(files):
    """File -> (requirement, planner) -> status, as each document of a bundle has it; read by independent code."""
    text = {path: raw.decode() for path, raw in files.items() if not path.startswith("inputs/")}
    rows = [row for row in csv.DictReader(io.StringIO(text["trace.csv"])) if row["status"] in ORDER]
    keys = {(row["requirement"], row["planner"]): row["status"] for row in rows}
    found = {"trace.csv": keys}
    suites = ET.fromstring(text["ci/junit.xml"]).iter("testcase")
    cases = {each.get("name"): each for each in suites if each.get("name").startswith("status of ")}
    found["ci/junit.xml"] = {
        _key(name.removeprefix("status of ")): each.find("properties/property[@name='status']").get("value")
        for name, each in cases.items()
    }
    for status, tag in (("violated", "failure"), ("supported", None), ("conditional", "skipped")):
        assert all(
            {part.tag for part in each} - {"properties"} == ({tag} if tag else set())
            for each in cases.values()
            if each.find("properties/property[@name='status']").get("value") == status
        )
    results = json.loads(text["ci/results.sarif"])["runs"][0]["results"]
    told = [each for each in results if "status" in each["properties"]]
    found["ci/results.sarif"] = dict.fromkeys(keys, "supported") | {
        _key(re.fullmatch(r"status of (.+?): .*", each["message"]["text"])[1]): each["properties"]["status"]
        for each in told
    }
    assert all((each["level"] == "error") == (each["properties"]["status"] == "violated") for each in told)
    predicate = json.loads(text["ci/statement.intoto.json"])["predicate"]
    tests = {name: kind for kind in ("passedTests", "warnedTests", "failedTests") for name in predicate[kind]}
    pairs = [(re.fullmatch(r"status of (.+?): (\w+).*", name), kind) for name, kind in tests.items()]
    found["ci/statement.intoto.json"] = {_key(match[1]): match[2] for match, _ in pairs if match}
    lists = {"violated": "failedTests", "supported": "passedTests"}
    assert all(kind == lists.get(match[2], "warnedTests") for match, kind in pairs if match)
    assert (predicate["result"] == "FAILED") == bool(predicate["failedTests"])
    found["case/gsn.yaml"] = _of_case(yaml.safe_load(text["case/gsn.yaml"]), keys)
    report = text["report/report.md"].replace("\\", "")
    lines = report.partition("**Status of every requirement**")[2].strip().split("\n")
    table = lines_before(lines[2:], "")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    found["report/report.md"] = {(row[0], row[5].replace("-", "")): re.split("[: ]", row[1])[0] for row in cells}
    return found


def lines_before(lines, end):
    """The lines before the first that is `end`."""
    return lines[: lines.index(end)] if end in lines else lines


def _key(name):
    match = re.fullmatch(r"(\S+) \[planner (\S+)\]", name)
    return match.groups() if match else (name, "")


def _of_case(nodes, keys):
    """The worst of the goals of each requirement, over the runs."""
    worst = {}
    for node in nodes.values():
        match = re.match(
            r"(\w+)(?: with planner \w+)?(?: \(run .*?\))?: .*, planner (\w+), in every scenario",
            node.get("text", ""),
        )
        if node.get("amlas") == "Stage 2, G2.1, for this requirement" and match:
            worst.setdefault(match.groups(), []).append(node["classes"][0])
    missing = {
        node["text"].split(" is met")[0] for node in nodes.values() if " is met\nNo result" in node.get("text", "")
    }
    told = {key: max(each, key=ORDER.index) for key, each in worst.items()}
    return told | {(name, ""): "undeveloped" for name in missing if (name, "") in keys}
