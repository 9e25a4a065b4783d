"""Bundles changed by somebody who knows the format: hashes are made to fit, and derived files if asked."""

import hashlib
import json

from document_edits import summed

from verifier.base.files import document_text
from verifier.evidence.bundle.derived_artefacts import derived, derived_row
from verifier.evidence.bundle.manifest import Entry, manifest_of, read_manifest
from verifier.evidence.bundle.parts import read_parts
from verifier.evidence.bundle.request import request_of, unpacked_inputs
from verifier.study.case import Study


def forged(bundle, changes, removed=(), derive=False):
    """The bundle with changes to inputs and results and a manifest that fits.

    With `derive` every derived file is made again as well; without, they are those of the bundle. Where contents are
    found to be wrong that makes no difference, because they are looked at first.
    """
    files = {path: raw for path, raw in bundle.files.items() if derived_row(path) is None and path not in removed}
    files |= changes
    if derive:
        return files | derived_from(files)
    entries = {each.path: each for each in read_manifest(bundle.files["manifest.json"]).files}
    for path in removed:
        del entries[path]
    for path, raw in changes.items():
        known = entries.get(path, Entry.of(path, "result", "", raw))
        entries[path] = Entry.of(path, known.role, known.about, raw)
    kept = {path: raw for path, raw in bundle.files.items() if derived_row(path) is not None}
    return {**kept, **files, "manifest.json": document_text(manifest_of("forged", entries)).encode()}


def derived_from(files):
    """What follows from inputs and results, byte for byte."""
    request = request_of(json.loads(files["request.json"]))
    with unpacked_inputs(files, request) as read:
        rebuilt = Study.of(read.inputs, request.options)
        parts = read_parts(request, read, rebuilt, files)
        return {path: text.encode() for path, text in derived(parts).made.items()}


def rewritten(raw, change):
    """A JSON file as this program writes it, after a change to its content."""
    content = json.loads(raw)
    change(content)
    return (json.dumps(summed(content), indent=2) + "\n").encode()


def certificate(bundle, change, path="certificates/block001_requirement01_lower_01.json"):
    """A certificate with a change, and its own hash made to fit."""
    content = json.loads(bundle.files[path])
    change(content)
    told = {key: value for key, value in content.items() if key != "sha256"}
    text = json.dumps(told, sort_keys=True, separators=(",", ":"))
    content["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    return {path: (json.dumps(content) + "\n").encode()}


def with_manifest(files):
    """The files with a manifest that lists them."""
    listed = {each["path"]: (each["role"], each["about"]) for each in json.loads(files["manifest.json"])["files"]}
    rest = {path: raw for path, raw in files.items() if path != "manifest.json"}
    entries = {path: Entry.of(path, *listed.get(path, ("derived", "notes")), raw) for path, raw in rest.items()}
    title = json.loads(files["manifest.json"])["title"]
    return {**files, "manifest.json": document_text(manifest_of(title, entries)).encode()}
