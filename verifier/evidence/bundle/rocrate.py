"""RO-Crate 1.1: what a folder of evidence holds, as linked data that archives and libraries read.

Source: RO-Crate Metadata Specification 1.1 (https://w3id.org/ro/crate/1.1), sections on the metadata file descriptor,
the root data entity, data entities and provenance. The hash of a file is schema.org's `sha256`, which the context of
1.1 lacks and this adds.
"""

import datetime
import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from verifier.base.documents import is_sha256
from verifier.base.errors import one_line
from verifier.base.libraries import __version__
from verifier.evidence.bundle.manifest import Entry

METADATA_FILE = "ro-crate-metadata.json"
NO_DATE = "1970-01-01"
"""Stands for the date of publication: the format demands one, and the bytes must be repeatable."""


def crate_metadata(
    files: Mapping[str, Entry], media_types: Mapping[str, str], title: str, issued: datetime.date | None = None
) -> str:
    """The text of `ro-crate-metadata.json`; equal arguments give equal bytes.

    Args:
        files: path from the root of the crate, with forward slashes -> the file. The metadata file itself is none
            of them.
        media_types: path -> such as "application/json".
        title: of the crate.
        issued: its date of publication.

    Raises:
        ValueError: a path is absolute, leads out of the crate, or is that of the metadata file; a hash is none; or
            there is no title.
    """
    for path in files:
        if {"", ".", ".."} & {*path.split("/")} or "\\" in path or path == METADATA_FILE:
            raise ValueError(f"not the path of a file within a crate: {path!r}")
        if not is_sha256(files[path].sha256):
            raise ValueError(f"not the hash of a file: {files[path].sha256!r}")
    if not title.strip():
        raise ValueError("a crate needs a title")
    undated = f"The date of publication was not given; {NO_DATE} stands for that."
    root: dict[str, Any] = {
        "@id": "./",
        "@type": "Dataset",
        "name": one_line(title),
        "description": undated if issued is None else "Evidence for an assurance case",
        "datePublished": str(issued or NO_DATE),
        "license": "No licence was stated.",
        "hasPart": [{"@id": _identifier(path)} for path in sorted(files)],
        "mentions": {"@id": "#verification"},
    }
    descriptor = {
        "@id": METADATA_FILE,
        "@type": "CreativeWork",
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        "about": {"@id": "./"},
    }
    entities = [
        descriptor,
        root,
        *(_entity(path, files[path], media_types[path]) for path in sorted(files)),
        *_action(files),
    ]
    document = {
        "@context": ["https://w3id.org/ro/crate/1.1/context", {"sha256": "http://schema.org/sha256"}],
        "@graph": entities,
    }
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _identifier(path: str) -> str:
    """A relative URI reference; a colon in it would make it look like a scheme."""
    return quote(path.encode(errors="surrogatepass"), safe="/")


def _entity(path: str, file: Entry, media_type: str) -> dict[str, Any]:
    return {
        "@id": _identifier(path),
        "@type": "File",
        "name": one_line(PurePosixPath(path).name),
        "description": one_line(file.about),
        "encodingFormat": one_line(media_type),
        "contentSize": str(file.size),
        "sha256": file.sha256,
    }


def _action(files: Mapping[str, Entry]) -> list[dict[str, Any]]:
    """What made the results: the program, from the inputs."""
    action: dict[str, Any] = {
        "@id": "#verification",
        "@type": "CreateAction",
        "name": "verification",
        "instrument": {"@id": "#verifier"},
        "object": [{"@id": _identifier(path)} for path in sorted(files) if files[path].role == "input"],
        "result": [{"@id": _identifier(path)} for path in sorted(files) if files[path].role != "input"],
    }
    program = {"@id": "#verifier", "@type": "SoftwareApplication", "name": "verifier", "softwareVersion": __version__}
    return [action, program]
