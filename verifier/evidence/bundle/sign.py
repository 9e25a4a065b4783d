"""Signing a bundle: checked first, as a whole; then one more envelope beside it, which names the manifest."""

import datetime
from collections.abc import Mapping
from pathlib import Path

from verifier.base.errors import InputError, Place, UsageError
from verifier.base.files import json_of, write_text
from verifier.evidence.bundle.archive import read_bundle
from verifier.evidence.bundle.check import check_files
from verifier.evidence.bundle.manifest import MANIFEST_FILE, read_manifest
from verifier.evidence.bundle.request import REQUEST_FILE, request_of, unpacked_inputs
from verifier.evidence.declarations import today
from verifier.evidence.identity import Identity, tool_identity
from verifier.evidence.signatures import (
    Role,
    Seal,
    Signed,
    SignedStatus,
    default_path,
    envelope,
    key_of_private,
    signatures_in,
)


def sign_bundle(
    bundle: str,
    key: str,
    role: Role,
    by: str = "",
    until: datetime.date | None = None,
    output: str | None = None,
) -> Seal:
    """Check a bundle and add a signature to those beside it.

    Args:
        bundle: a folder or a zip archive.
        key: file of the private key, PEM.
        until: the last day on which the signature is valid.
        output: the file of signatures; BUNDLE.sig.json by default.

    Raises:
        InputError: something is wrong with the bundle, which is not signed then; or a file cannot be read or written,
            or holds something else than signatures.
        UsageError: the signature would expire before it is made, or lie inside the bundle.
    """
    path = output or default_path(bundle)
    if Path(bundle).resolve() in Path(path).resolve().parents:
        raise UsageError("--output: expected a file beside the bundle, got one inside it")
    if until is not None and until < today():
        raise UsageError(f"--until: expected a day from {today()}, on which it is signed, got {until}")
    before = signatures_in(path) if Path(path).exists() else ""
    fingerprint, files = key_of_private(key), read_bundle(bundle)
    report = check_files(Path(bundle).absolute().name, files)
    if not report.sound:
        more = f"; and {len(report.findings) - 1} more" if len(report.findings) > 1 else ""
        raise InputError(f"not signed, as the check finds {report.findings[0]}{more}", Place(bundle))
    signed = Signed(
        role=role,
        by=by,
        day=str(today()),
        until=None if until is None else str(until),
        title=read_manifest(files[MANIFEST_FILE]).title,
        status=report.status,
        requirements=tuple(SignedStatus(name, planner, told) for name, planner, _, told in report.requirements),
        document=identity_of(files).told,
        tool=tool_identity(),
    )
    write_text(path, before + envelope(signed, report.digest, key))
    return Seal(fingerprint, report.digest, signed)


def identity_of(files: Mapping[str, bytes]) -> Identity:
    """The identity that an intact bundle states."""
    request = request_of(json_of(files[REQUEST_FILE], REQUEST_FILE))
    with unpacked_inputs(files, request) as read:
        return read.context.identity
