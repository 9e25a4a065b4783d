"""What `verify collision` finds, asked for from Python: the same document as the command writes."""

import json

import pytest

from verifier.base.errors import UsageError
from verifier.cli import main
from verifier.cli.invocation import with_provenance
from verifier.collision.request import CollisionRequest, collision_result
from verifier.collision.settings import CollisionSettings

SMALL = {"distances": "5,15", "speeds": "25 mph", "bandwidth": "0.1", "bootstrap": 0}


@pytest.fixture
def pairs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{image},{distance},{distance}" for image in range(20) for distance in (5, 15)]
    (tmp_path / "perfect.csv").write_text("\n".join(["image,true_m,predicted_m", *lines]) + "\n")


LOOP = {"closed_loop": 15.0, "loop_speeds": "25 mph", "empty_bins": "neighbour"}


@pytest.mark.parametrize("loop", [{}, LOOP], ids=["map", "closed loop"])
def test_python_gives_the_document_of_the_command(pairs, capfd, loop):
    settings = CollisionSettings(table="perfect.csv", **SMALL, **loop)
    options = [f"--{name.replace('_', '-')}={value}" for name, value in (SMALL | loop).items()]
    assert main(["collision", "perfect.csv", *options, "--json"]) == 0
    document = capfd.readouterr().out
    stages = []
    result = collision_result(settings, lambda name: stages.append(name) or (lambda done, total: None))
    assert with_provenance(result.json_text(), json.loads(document)["command"]) == document
    assert stages == ["perfect, intervals", *(["perfect, closed loop"] if loop else [])]


def test_choices_are_refused_before_any_data_are_read():
    with pytest.raises(UsageError, match="--margin goes with --closed-loop"):
        CollisionRequest(CollisionSettings(table="nowhere.csv", margin=1.0))
    with pytest.raises(UsageError, match="name the data"):
        collision_result(CollisionSettings())


def test_outputs_are_not_written_and_data_are_read_once(pairs, tmp_path):
    request = CollisionRequest(CollisionSettings(table="perfect.csv", output="out.json", plot="map.png", **SMALL))
    assert request.detectors is request.detectors
    assert request.result().detectors == request.detectors
    assert [path.name for path in tmp_path.iterdir()] == ["perfect.csv"]
