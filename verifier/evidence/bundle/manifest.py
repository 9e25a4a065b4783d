"""The manifest of a bundle: every other file with its role, size and SHA-256. Its own SHA-256 is the bundle's digest.

The manifest holds a hash of its own list, so that damage to it is told apart from damage to the files it lists.

The files are compared with it: what is altered, missing, added, moved or exchanged.

Short fingerprints of every value and every line of the inputs and results, so that damage can be located.

They prove nothing: that is for the hashes. They say *where* a file no longer is what it was, such as which count of a
matrix. A value's fingerprint is taken together with its place. A number in which a single digit was changed, added or
left out can be told as well: it is the only one so near that has the fingerprint.

RO-Crate 1.1: what a folder of evidence holds, as linked data that archives and libraries read.

Source: RO-Crate Metadata Specification 1.1 (https://w3id.org/ro/crate/1.1), sections on the metadata file descriptor,
the root data entity, data entities and provenance. The hash of a file is schema.org's `sha256`, which the context of
1.1 lacks and this adds.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import starmap
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, Literal, TypeAlias
from urllib.parse import quote

from verifier.base.documents import Count, Limits, Sha256, json_values, read_document
from verifier.base.errors import InputError, Place, one_line, shown
from verifier.base.files import document_text, json_of
from verifier.base.libraries import __version__
from verifier.evidence.differences import LONGEST_SHOWN, first_of, parts_of
from verifier.evidence.findings import Finding

MANIFEST_FILE = "manifest.json"
Role: TypeAlias = Literal["input", "result", "derived"]


@dataclass(frozen=True)
class Entry:
    """A file of the bundle.

    Attributes:
        path: from the root of the bundle, with forward slashes.
        role: a copy of what was put in and what was asked; what was computed from that; what follows from both byte
            for byte.
        size: in bytes.
        sha256: in hexadecimal.
    """

    path: Annotated[str, Limits(min_length=1)]
    role: Role
    about: str
    size: Count
    sha256: Sha256

    @classmethod
    def of(cls, path: str, role: Role, about: str, raw: bytes) -> Entry:
        """The entry of a file with these bytes."""
        return cls(path, role, about, len(raw), digest_of(raw))


@dataclass(frozen=True)
class Manifest:
    """What a bundle holds: its document.

    Attributes:
        verifier: version of this program that built it.
        files: all but the manifest itself, sorted by path.
        content_sha256: of all other values as JSON with sorted keys and without spaces.
    """

    schema: ClassVar[str] = "verifier.bundle"
    version: ClassVar[int] = 1
    title: str
    verifier: str
    files: tuple[Entry, ...]
    content_sha256: Sha256


def manifest_of(title: str, entries: Mapping[str, Entry]) -> Manifest:
    """The manifest of a bundle that this version builds."""
    manifest = Manifest(title, __version__, tuple(entries[path] for path in sorted(entries)), "")
    return replace(manifest, content_sha256=_content_digest(manifest))


def read_manifest(raw: bytes) -> Manifest:
    """The manifest that some bytes are.

    Raises:
        InputError: they are none, or not, to the byte, one that this program writes.
    """
    manifest = read_document(Manifest, json_of(raw, MANIFEST_FILE), MANIFEST_FILE)
    if _content_digest(manifest) != manifest.content_sha256:
        place = Place(MANIFEST_FILE, path="/content_sha256")
        raise InputError("the list is not what was written: its SHA-256 differs", place)
    if document_text(manifest).encode() != raw:
        raise InputError("the same list in other bytes than were written", Place(MANIFEST_FILE))
    return manifest


def digest_of(raw: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(raw).hexdigest()


def _content_digest(manifest: Manifest) -> str:
    content = json_values(manifest)
    del content["content_sha256"]
    return digest_of(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())


SCHEMA_NAME = "verifier.fingerprints"
FINGERPRINTS_FILE = "fingerprints.json"
DIGITS = 8
MOST_PARTS = 20_000
"""Values or lines of a file; larger files get no fingerprints."""
LONGEST_NUMBER = 30
"""Characters of a number that is looked for in the neighbourhood of another."""


def fingerprints_text(files: Mapping[str, bytes]) -> str:
    """The document of fingerprints of some files."""
    fingerprints: dict[str, str] = {}
    for path, raw in sorted(files.items()):
        if (parts := parts_of(raw, path)) is not None and len(parts) <= MOST_PARTS:
            fingerprints[path] = "".join(starmap(_mark, parts))
    return json.dumps({"schema": SCHEMA_NAME, "version": 1, "digits": DIGITS, "files": fingerprints}, indent=2) + "\n"


def located(raw: bytes, path: str, fingerprints: Any) -> list[Finding]:
    """The values or lines of an altered file that are not what they were; empty where that cannot be said."""
    files = fingerprints.get("files") if isinstance(fingerprints, dict) else None
    text = files.get(path) if isinstance(files, dict) else None
    parts = parts_of(raw, path)
    if not isinstance(text, str) or parts is None or len(parts) > MOST_PARTS:
        return []
    marks = [text[k : k + DIGITS] for k in range(0, len(text), DIGITS)]
    if len(parts) != len(marks):
        return [Finding(path, "", f"{len(parts)} values or lines", str(len(marks)))]
    altered = [
        Finding(path, where, shown(value, LONGEST_SHOWN)[1:-1], _was(where, value, mark))
        for (where, value), mark in zip(parts, marks, strict=True)
        if _mark(where, value) != mark
    ]
    return first_of(altered, "such places")


def _was(where: str, value: str, mark: str) -> str:
    """What stood there, as far as the fingerprint tells."""
    if len(value) <= LONGEST_NUMBER and re.fullmatch(r"-?[0-9][0-9.eE+-]*", value):
        for candidate in _a_digit_away(value):
            if _mark(where, candidate) == mark:
                return candidate
    return f"what has the fingerprint {mark}"


def _a_digit_away(number: str) -> Iterator[str]:
    for k in range(len(number) + 1):
        for digit in "0123456789":
            yield number[:k] + digit + number[k + 1 :]
            yield number[:k] + digit + number[k:]
        yield number[:k] + number[k + 1 :]


def _mark(where: str, value: str) -> str:
    return hashlib.sha256(f"{where}={value}".encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


def check_hashes(files: Mapping[str, bytes], manifest: Manifest) -> list[Finding]:
    """Every file that is not what the manifest says.

    Where an input or a result was altered, its fingerprints say which value.
    """
    listed = {file.path: file for file in manifest.files}
    by_hash = {file.sha256: file.path for file in manifest.files}
    findings = []
    for path, entry in listed.items():
        if path not in files:
            findings.append(Finding(path, "", "nothing", f"{entry.about}, {entry.size} bytes"))
            continue
        sha256 = digest_of(files[path])
        if sha256 == entry.sha256 and len(files[path]) == entry.size:
            continue
        if sha256 in by_hash:
            findings.append(Finding(path, "", f"the content of {by_hash[sha256]}", entry.about))
            continue
        findings.append(Finding(path, "", f"SHA-256 {sha256}", entry.sha256))
        with contextlib.suppress(InputError):  # as far as the fingerprints tell
            if FINGERPRINTS_FILE in files and path != FINGERPRINTS_FILE:
                known = json_of(files[FINGERPRINTS_FILE], FINGERPRINTS_FILE)
                findings += located(files[path], path, known)
    for path in files:
        if path not in listed and path != MANIFEST_FILE:
            same = by_hash.get(digest_of(files[path]))
            said = "a file" if same is None else f"a file with the content of {same}"
            findings.append(Finding(path, "", said, "nothing: the manifest does not list it"))
    return findings


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
    """
    undated = f"The date of publication was not given; {NO_DATE} stands for that."
    root: dict[str, object] = {
        "@id": "./",
        "@type": "Dataset",
        "name": one_line(title),
        "description": undated if issued is None else "Evidence for an assurance case",
        "datePublished": str(issued or NO_DATE),
        "license": "No licence was stated.",
        "hasPart": [{"@id": _identifier(path)} for path in sorted(files)],
        "mentions": {"@id": "#verification"},
    }
    about = {"conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"}, "about": {"@id": "./"}}
    descriptor = {"@id": METADATA_FILE, "@type": "CreativeWork", **about}
    entities = [_entity(path, files[path], media_types[path]) for path in sorted(files)]
    context = ["https://w3id.org/ro/crate/1.1/context", {"sha256": "http://schema.org/sha256"}]
    document = {"@context": context, "@graph": [descriptor, root, *entities, *_action(files)]}
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _identifier(path: str) -> str:
    """A relative URI reference; a colon in it would make it look like a scheme."""
    return quote(path.encode(errors="surrogatepass"), safe="/")


def _entity(path: str, file: Entry, media_type: str) -> dict[str, object]:
    return {
        "@id": _identifier(path),
        "@type": "File",
        "name": one_line(PurePosixPath(path).name),
        "description": one_line(file.about),
        "encodingFormat": one_line(media_type),
        "contentSize": str(file.size),
        "sha256": file.sha256,
    }


def _action(files: Mapping[str, Entry]) -> list[Mapping[str, object]]:
    """What made the results: the program, from the inputs."""
    action: dict[str, object] = {
        "@id": "#verification",
        "@type": "CreateAction",
        "name": "verification",
        "instrument": {"@id": "#verifier"},
        "object": [{"@id": _identifier(path)} for path in sorted(files) if files[path].role == "input"],
        "result": [{"@id": _identifier(path)} for path in sorted(files) if files[path].role != "input"],
    }
    program = {"@id": "#verifier", "@type": "SoftwareApplication", "name": "verifier", "softwareVersion": __version__}
    return [action, program]
