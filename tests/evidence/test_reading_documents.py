"""Evidence is made of documents that keep to their published schemas, and of no others."""

import hashlib
import json

import jsonschema
import pytest

from verifier.base.errors import InputError
from verifier.evidence.consistency import read_document
from verifier.evidence.documents import SCHEMA_NAMES, schema_of


@pytest.fixture(scope="module")
def written(root, tmp_path_factory):
    """A run of the shipped spec on the published matrices, as the command writes it."""
    from verifier.cli import main

    target = tmp_path_factory.mktemp("run") / "published.json"
    spec, matrices = root / "specs/car_pedestrian.ltl", root / "examples/nuscenes_yolov3_class.json"
    main(["run", str(spec), "--cm", str(matrices), "--point-only", "--output", str(target)])
    return target


def changed(written, tmp_path, change):
    """A copy with `change` applied to its decoded JSON."""
    document = json.loads(written.read_text())
    change(document)
    target = tmp_path / "changed.json"
    target.write_text(json.dumps(document))
    return target


def test_a_document_is_known_by_its_bytes(written):
    found = read_document(written)
    assert (found.name, found.kind) == ("published.json", "run")
    assert found.sha256 == hashlib.sha256(written.read_bytes()).hexdigest()
    assert found.content == json.loads(written.read_text())


def test_confusion_matrices_are_documents_as_well(root):
    assert read_document(root / "examples/nuscenes_yolov3_class.json").kind == "confusion"


@pytest.mark.parametrize("name", SCHEMA_NAMES)
def test_every_schema_is_one_and_names_its_documents(name):
    schema = schema_of(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["properties"]["schema"]["const"] == name


def spoilt_count(document):
    document["requirements"][1]["points"][2]["probability"] = "much"


def spoilt_hash(document):
    document["inputs"][0]["sha256"] = "0" * 63


def spoilt_key(document):
    document["verdicts"] = "satisfied"


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (spoilt_count, "/requirements/1/points/2/probability: .*'much' is not of type 'number'"),
        (spoilt_hash, "/inputs/0/sha256: "),
        (spoilt_key, "/: .*verdicts"),
    ],
)
def test_what_the_schema_does_not_accept_is_named(written, tmp_path, change, place):
    with pytest.raises(InputError, match=place):
        read_document(changed(written, tmp_path, change))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "expected a document of this program"),
        ("{}", "expected a document of this program"),
        ('{"schema": 3}', "expected a document of this program"),
        ('{"schema": "verifier.rum"}', "(?s)unknown schema 'verifier.rum'.*did you mean 'verifier.run'"),
        ('{"schema": "sarif"}', "(?s)unknown schema 'sarif'.*known: verifier.adr, verifier.assess"),
        ('{"schema": "verifier.run"}', "'version' is a required property|'title' is a required"),
        ("{", "not JSON"),
        ("\0", "NUL byte"),
    ],
)
def test_other_files_are_refused(tmp_path, text, message):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_document(path)
