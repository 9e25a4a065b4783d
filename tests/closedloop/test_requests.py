"""What `verify closed-loop` and `verify robroc` find, asked for from Python: the documents of the commands."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from small_logs import made_logs, straight

from verifier.base.errors import UsageError
from verifier.base.files import csv_text
from verifier.cli import main
from verifier.cli.invocation import with_provenance
from verifier.closedloop.curvefiles import curves_csv
from verifier.closedloop.logfiles import write_logs
from verifier.closedloop.request import ClosedLoopRequest, robroc_result, trade_offs
from verifier.closedloop.settings import ClosedLoopSettings, RobrocSettings

DRIVES = {name: (name < "free", straight(30)) for name in ("a person", "another person", "free 1", "free 2")}
CHOICES = {"control_radius": 2.0, "safety_radius": 1.5, "match_distance": 1.0, "engine": "events", "levels": 5,
           "draws": 20, "trace": ("a person,yolo,0.5", "trace.csv")}  # fmt: skip


def options(choices):
    for name, value in choices.items():
        yield f"--{name.replace('_', '-')}"
        yield from value if isinstance(value, tuple) else (str(value),)


def same_document(capfd, result, *arguments):
    assert main([*arguments, "--json"]) == 0
    document = capfd.readouterr().out
    return with_provenance(result.json_text(), json.loads(document)["command"]) == document


@pytest.fixture
def logs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people = [(image, 33, 0) for image in range(60)]
    reports = [(image, 0.9, 33, 0) for image in range(60)]
    write_logs(made_logs(DRIVES, people, {"yolo": reports, "yolo@fog": reports[:30]}), "logs")
    return tmp_path


def test_trade_offs_are_those_of_the_command(logs, capfd):
    settings = ClosedLoopSettings(logs="logs", validation="self", **CHOICES)
    listed = []
    result = trade_offs(settings, lambda sources: listed.extend(sources) or sources)
    assert [source.name for source in listed] == ["yolo", "yolo@fog"]
    assert {path.name for path in Path().iterdir()} == {"logs"}
    command = ["closed-loop", "logs", "--validation", "self", *options(CHOICES), "--curves", "curves.csv"]
    assert same_document(capfd, result, *command)
    curves = [curve for table in result.tables for curve in table.curves.values()]
    assert Path("curves.csv").read_text() == curves_csv(curves, [*map(str, result.not_defined), *result.remarks])
    assert Path("trace.csv").read_text() == csv_text(ClosedLoopRequest(settings).trace().rows())


def test_logs_are_read_once_and_choices_refused_before(logs):
    settings = ClosedLoopSettings(logs="logs", validation="self", **{**CHOICES, "trace": None})
    request = ClosedLoopRequest(settings)
    assert request.data is request.data
    assert request.trace() is None
    with pytest.raises(UsageError, match="two ways to match"):
        ClosedLoopRequest(replace(settings, logs="nowhere", match_iou=0.5))


def test_hashes_are_of_the_bytes_that_were_read(logs):
    files = {path.relative_to("logs").as_posix(): path for path in Path("logs").rglob("*") if path.is_file()}
    before = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    request = ClosedLoopRequest(ClosedLoopSettings(logs="logs", validation="self", **{**CHOICES, "trace": None}))
    assert len(request.data[0].person_image)
    for path in files.values():
        path.write_bytes(path.read_bytes() + b"\n")
    recorded = {file.name: file.sha256 for file in request.trade_offs().inputs}
    assert recorded == {name: before[name] for name in recorded}
    assert len(recorded) >= 4


def test_a_severity_that_is_none_is_refused_before_anything_is_verified(monkeypatch):
    monkeypatch.setattr("verifier.closedloop.verified_curves.verified_curves", None)  # would fail if it were called
    asked = {"spec": "a.ltl", "safety": "safe", "progress": "goes", "cm": ("a=a.json",), "severity": {"fog": "odd"}}
    with pytest.raises(UsageError, match="fog is 'odd'; expected mild or severe"):
        robroc_result(RobrocSettings(**asked))
