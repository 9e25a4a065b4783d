"""The files of a bundle compared with its manifest: what is altered, missing, added, moved or exchanged."""

from __future__ import annotations

from collections.abc import Mapping

from verifier.base.errors import InputError
from verifier.base.files import json_of
from verifier.evidence.bundle.fingerprints import FINGERPRINTS_FILE, located
from verifier.evidence.bundle.manifest import MANIFEST_FILE, Manifest, digest_of
from verifier.evidence.findings import Finding


def check_hashes(files: Mapping[str, bytes], manifest: Manifest) -> list[Finding]:
    """Every file that is not what the manifest says.

    Where an input or a result was altered, its fingerprints say which value.

    Args:
        files: of the bundle, path -> bytes.
        manifest: sound in itself.
    """
    listed = {each.path: each for each in manifest.files}
    by_hash = {each.sha256: each.path for each in manifest.files}
    findings = []
    for path, entry in listed.items():
        if path not in files:
            findings.append(Finding(path, "", "nothing", f"{entry.about}, {entry.size} bytes"))
            continue
        found = digest_of(files[path])
        if found == entry.sha256 and len(files[path]) == entry.size:
            continue
        if found in by_hash:
            findings.append(Finding(path, "", f"the content of {by_hash[found]}", entry.about))
            continue
        findings.append(Finding(path, "", f"SHA-256 {found}", entry.sha256))
        findings += _where(files, path)
    for path in files:
        if path not in listed and path != MANIFEST_FILE:
            same = by_hash.get(digest_of(files[path]))
            said = "a file" if same is None else f"a file with the content of {same}"
            findings.append(Finding(path, "", said, "nothing: the manifest does not list it"))
    return findings


def _where(files: Mapping[str, bytes], path: str) -> list[Finding]:
    """The places of an altered file that differ, as far as the fingerprints tell."""
    raw = files.get(FINGERPRINTS_FILE)
    if raw is None or path == FINGERPRINTS_FILE:
        return []
    try:
        known = json_of(raw, FINGERPRINTS_FILE)
    except InputError:
        return []
    return located(files[path], path, known)
