"""A result is its document: what is written of it is read as an equal value, and keeps to the generated schema."""

import json
from pathlib import Path

import jsonschema
import pytest
import report_documents

from verifier.base.documents import json_values
from verifier.base.files import document_text
from verifier.evidence.documents import TYPES, schema_of, type_of

WRITTEN = {"verifier.mutate": "mutate", "verifier.rate": "rate"}
"""Schema -> a document of `report_documents`."""


def test_every_type_has_a_document_here():
    assert set(WRITTEN) == set(TYPES)


@pytest.mark.parametrize("name", TYPES)
def test_what_is_written_is_read_as_it_was(name):
    document = report_documents.document(WRITTEN[name])
    assert type(document.result) is type_of(name)
    assert json_values(document.result) == document.content
    written = Path(report_documents.path(WRITTEN[name])).read_text()
    assert json.loads(document_text(document.result)) == json.loads(written)


@pytest.mark.parametrize("name", TYPES)
def test_what_is_written_keeps_to_the_schema(name):
    schema = schema_of(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(report_documents.document(WRITTEN[name]).content, schema)
