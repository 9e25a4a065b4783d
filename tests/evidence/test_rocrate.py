"""RO-Crates: read by the library rocrate, with hostile file names."""

import hashlib
import importlib
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from verifier.evidence.bundle.manifest import Entry, crate_metadata

FILES = {
    "results/run.json": Entry("results/run.json", "result", "result of verify run", 12, "a" * 64),
    "inputs/car pedestrian.ltl": Entry("inputs/car pedestrian.ltl", "input", "requirements", 3, "b" * 64),
}
TYPES = {"results/run.json": "application/json", "inputs/car pedestrian.ltl": "text/plain"}


def graph(text):
    return {each["@id"]: each for each in json.loads(text)["@graph"]}


def test_every_file_is_described_and_the_action_knows_what_came_from_what():
    found = graph(crate_metadata(FILES, TYPES, "Two files"))
    assert found["./"]["hasPart"] == [{"@id": "inputs/car%20pedestrian.ltl"}, {"@id": "results/run.json"}]
    assert found["results/run.json"] == {
        "@id": "results/run.json",
        "@type": "File",
        "name": "run.json",
        "description": "result of verify run",
        "encodingFormat": "application/json",
        "contentSize": "12",
        "sha256": "a" * 64,
    }
    action = found["#verification"]
    assert action["object"] == [{"@id": "inputs/car%20pedestrian.ltl"}]
    assert action["result"] == [{"@id": "results/run.json"}]
    assert found["ro-crate-metadata.json"]["about"] == {"@id": "./"}


def test_a_missing_date_is_said_to_be_missing():
    root = graph(crate_metadata(FILES, TYPES, "Two files"))["./"]
    assert root["datePublished"] == "1970-01-01"
    assert "was not given" in root["description"]


def test_bytes_do_not_depend_on_the_order_of_files():
    assert crate_metadata(FILES, TYPES, "t") == crate_metadata(dict(reversed(FILES.items())), TYPES, "t")


def test_the_library_rocrate_reads_it(tmp_path):
    rocrate = pytest.importorskip("rocrate.rocrate")
    hostile = "odd/#1 ?<b>&\u202e%20:\x1b" + "n" * 100
    contents = {"a.json": b"{}", hostile: b"text"}
    files = {
        name: Entry.of(name, "result" if name == "a.json" else "input", HOSTILE_KIND, data)
        for name, data in contents.items()
    }
    folder = tmp_path / "crate"
    for name, data in contents.items():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_bytes(data)
    text = crate_metadata(files, dict.fromkeys(files, "text/plain"), "A crate \x1b\u202e")
    assert text.isascii()
    (folder / "ro-crate-metadata.json").write_text(text)
    crate = rocrate.ROCrate(folder)
    assert crate.name == "A crate \\x1b\\u202e"
    assert crate.license == "No licence was stated."
    read = {each.id: each for each in crate.data_entities}
    assert len(read) == 2
    for each in read.values():
        data = contents["a.json" if each.id == "a.json" else hostile]
        assert each["sha256"] == hashlib.sha256(data).hexdigest()
        assert each["contentSize"] == str(len(data))
    assert crate.get("#verification")["instrument"]["name"] == "verifier"
    crate.write(tmp_path / "copy")
    assert (tmp_path / "copy" / "a.json").read_bytes() == b"{}"


def test_the_validator_of_the_specification_finds_nothing(tmp_path, monkeypatch):
    """Against RO-Crate 1.1, by the terms of 1.3, which the library rocrate has: nothing is fetched."""
    services = pytest.importorskip("rocrate_validator.services", reason="roc-validator is not installed")
    http, models = (importlib.import_module(f"rocrate_validator.{name}") for name in ("utils.http", "models"))
    terms = (Path(importlib.import_module("rocrate").__file__).parent / "data/ro-crate.jsonld").read_text()
    answer = SimpleNamespace(
        status_code=200, headers={"Content-Type": "application/ld+json"}, text=terms, json=lambda: json.loads(terms)
    )
    monkeypatch.setattr(http.HttpRequester, "get", lambda *_, **__: answer, raising=False)
    contexts = importlib.import_module("rdflib.plugins.shared.jsonld.context")
    monkeypatch.setattr(contexts, "source_to_json", lambda *_, **__: (json.loads(terms), None))

    def issues():
        settings = services.ValidationSettings(
            rocrate_uri=str(tmp_path),
            profile_identifier="ro-crate-1.1",
            requirement_severity=models.Severity.REQUIRED,
        )
        return services.validate(settings).get_issues()

    (tmp_path / "a.json").write_text("{}")
    file = Entry.of("a.json", "result", "result of verify run", b"{}")
    text = crate_metadata({"a.json": file}, {"a.json": "application/json"}, "A crate")
    (tmp_path / "ro-crate-metadata.json").write_text(text)
    assert issues() == []
    (tmp_path / "ro-crate-metadata.json").write_text(text.replace('"datePublished"', '"published"'))
    assert issues() != []


HOSTILE_KIND = "<script>\x00 results"
