"""The manifest of a bundle: every other file with its role, size and SHA-256. Its own SHA-256 is the bundle's digest.

The manifest holds a hash of its own list, so that damage to it is told apart from damage to the files it lists.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from verifier import __version__
from verifier.base.errors import InputError, Place
from verifier.base.files import document_text, json_of

SCHEMA_NAME = "verifier.bundle"
SCHEMA_VERSION = 1
MANIFEST_FILE = "manifest.json"
_KEYS = ("schema", "version", "title", "verifier", "files", "content_sha256")
_ENTRY = ("path", "role", "about", "size", "sha256")


@dataclass(frozen=True)
class Entry:
    """A file of the bundle.

    Attributes:
        path: in the bundle.
        role: "input", "result" or "derived".
        about: what it is, for people.
        size: in bytes.
        sha256: in hexadecimal.
    """

    path: str
    role: str
    about: str
    size: int
    sha256: str

    @classmethod
    def of(cls, path: str, role: str, about: str, raw: bytes) -> Entry:
        """The entry of a file with these bytes."""
        return cls(path, role, about, len(raw), digest_of(raw))


@dataclass(frozen=True)
class Manifest:
    """What a bundle holds.

    Attributes:
        title: for people.
        verifier: version of this program that built it.
        entries: sorted by path.
    """

    title: str
    verifier: str
    entries: tuple[Entry, ...]

    def json_text(self) -> str:
        """The document as text."""
        content: dict[str, Any] = {
            "schema": SCHEMA_NAME,
            "version": SCHEMA_VERSION,
            "title": self.title,
            "verifier": self.verifier,
            "files": [{name: getattr(each, name) for name in _ENTRY} for each in self.entries],
        }
        content["content_sha256"] = _content_digest(content)
        return document_text(content)


def manifest_of(title: str, entries: Mapping[str, Entry]) -> Manifest:
    """The manifest of a bundle that this version builds."""
    return Manifest(title, __version__, tuple(entries[path] for path in sorted(entries)))


def read_manifest(raw: bytes) -> Manifest:
    """The manifest that some bytes are.

    Raises:
        InputError: they are none, or not, to the byte, one that this program writes.
    """
    place = Place(MANIFEST_FILE)
    content = json_of(raw, MANIFEST_FILE)
    if not isinstance(content, dict) or set(content) != set(_KEYS):
        raise InputError(f"no manifest: expected an object with the keys {', '.join(_KEYS)}", place)
    if (content["schema"], content["version"]) != (SCHEMA_NAME, SCHEMA_VERSION):
        raise InputError(f"expected {SCHEMA_NAME} version {SCHEMA_VERSION}", Place(MANIFEST_FILE, path="/schema"))
    listed = content["files"]
    texts = [content["title"], content["verifier"], content["content_sha256"]]
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in texts):
        raise InputError("no manifest: a title, a version, a hash and a list of files", place)
    entries = tuple(_entry(each, k) for k, each in enumerate(listed))
    manifest = Manifest(content["title"], content["verifier"], entries)
    told = {key: value for key, value in content.items() if key != "content_sha256"}
    if _content_digest(told) != content["content_sha256"]:
        raise InputError(
            "the list is not what was written: its SHA-256 differs", Place(MANIFEST_FILE, path="/content_sha256")
        )
    if manifest.json_text().encode() != raw:
        raise InputError("the same list in other bytes than were written", place)
    return manifest


def digest_of(raw: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(raw).hexdigest()


def _entry(given: Any, number: int) -> Entry:
    place = Place(MANIFEST_FILE, path=f"/files/{number}")
    if not isinstance(given, dict) or set(given) != set(_ENTRY):
        raise InputError(f"expected an object with the keys {', '.join(_ENTRY)}", place)
    texts = [given[name] for name in ("path", "role", "about", "sha256")]
    if not all(isinstance(each, str) for each in texts) or type(given["size"]) is not int:
        raise InputError("expected texts, and a size in bytes", place)
    return Entry(**given)


def _content_digest(content: Mapping[str, Any]) -> str:
    return digest_of(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())
