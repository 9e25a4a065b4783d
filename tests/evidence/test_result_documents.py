"""A result is its document: what is written of it is read as an equal value, and keeps to the generated schema."""

import json

import jsonschema
import pytest
import report_documents

from verifier.base.documents import read_document
from verifier.base.files import document_text
from verifier.evidence.documents import TYPES, schema_of, type_of

WRITTEN = {
    "verifier.assess": "assess",
    "verifier.collision": "collision",
    "verifier.curves": "curves",
    "verifier.trade_offs": "robroc",
    "verifier.mutate": "mutate",
    "verifier.rate": "rate",
    "verifier.compare": "compare",
    "verifier.confusion": "by_set",
    "verifier.explain": "explain",
    "verifier.require": "require",
}
"""Schema -> a document of `report_documents`."""


def test_every_type_has_a_document_here():
    assert set(WRITTEN) == set(TYPES)


@pytest.mark.parametrize("name", TYPES)
def test_what_is_written_is_read_as_it_was(name):
    document = report_documents.document(WRITTEN[name])
    assert type(document.result) is type_of(name)
    written = json.loads(document_text(document.result))
    assert read_document(type_of(name), written, "written.json") == document.result
    if name not in ("verifier.curves", "verifier.confusion"):  # people wrote these
        assert written == document.content


@pytest.mark.parametrize("name", TYPES)
def test_what_is_written_keeps_to_the_schema(name):
    schema = schema_of(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(report_documents.document(WRITTEN[name]).content, schema)
