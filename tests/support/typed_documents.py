"""Documents of commands, compared with the types that they are written from."""

import jsonschema
from document_edits import summed

from verifier.base import checksums
from verifier.base.documents import json_values, read_document
from verifier.evidence.consistency import check_document
from verifier.evidence.documents import TYPES, checked_document, schema_of, type_of


def read_back(content):
    """The value that a document holds; it is written as it was read, keeps to its schema, and fits together."""
    name = content["schema"]
    value = read_document(type_of(name), content, "written.json")
    assert json_values(value) == {key: inner for key, inner in content.items() if key != checksums.KEY}
    content = summed(content)
    jsonschema.Draft202012Validator(schema_of(name)).validate(content)  # the schemas are tested by themselves
    if name in TYPES:
        check_document(checked_document(content, b"", "written.json"))
    return value
