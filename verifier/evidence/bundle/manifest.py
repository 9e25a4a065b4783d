"""The manifest of a bundle: every other file with its role, size and SHA-256. Its own SHA-256 is the bundle's digest.

The manifest holds a hash of its own list, so that damage to it is told apart from damage to the files it lists.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, TypeAlias

from verifier.base.documents import Count, Limits, Sha256, json_values, read_document
from verifier.base.errors import InputError, Place
from verifier.base.files import document_text, json_of
from verifier.base.version import __version__

MANIFEST_FILE = "manifest.json"
Role: TypeAlias = Literal["input", "result", "derived"]


@dataclass(frozen=True)
class Entry:
    """A file of the bundle.

    Attributes:
        path: from the root of the bundle, with forward slashes.
        role: a copy of what was put in and what was asked; what was computed from that; what follows from both byte
            for byte.
        about: what it is, for people.
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
        title: for people.
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

    def json_text(self) -> str:
        """The document as text."""
        return document_text(self)


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
        raise InputError(
            "the list is not what was written: its SHA-256 differs", Place(MANIFEST_FILE, path="/content_sha256")
        )
    if manifest.json_text().encode() != raw:
        raise InputError("the same list in other bytes than were written", Place(MANIFEST_FILE))
    return manifest


def digest_of(raw: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(raw).hexdigest()


def _content_digest(manifest: Manifest) -> str:
    content = json_values(manifest)
    del content["content_sha256"]
    return digest_of(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())
