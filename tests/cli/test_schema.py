"""`verify schema` prints the JSON Schema of every kind of document."""

import json

import jsonschema
import pytest

from verifier.base.errors import ExitCode
from verifier.cli import main
from verifier.evidence.documents import OF_MODELS, OTHER_TYPES, SCHEMA_NAMES, schema_of

NAMES = sorted((*SCHEMA_NAMES, *OTHER_TYPES, OF_MODELS))


def test_without_a_name_all_are_listed(capsys):
    assert main(["schema"]) == 0
    assert capsys.readouterr().out.split() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_schema_is_printed_by_its_name(name, capsys):
    assert main(["schema", name]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == schema_of(name)
    jsonschema.Draft202012Validator.check_schema(printed)
    assert main(["schema", name.removeprefix("verifier.")]) == 0
    assert json.loads(capsys.readouterr().out) == printed


def test_an_unknown_name_is_refused(capsys):
    assert main(["schema", "verifier.rum"]) == ExitCode.USAGE
    assert "did you mean 'verifier.run'?" in capsys.readouterr().err
