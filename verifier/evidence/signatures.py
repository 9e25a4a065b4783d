"""Signatures of bundles: detached DSSE envelopes over in-toto statements, one to a line of a file.

Sources: DSSE 1.0.2 (secure-systems-lab, protocol.md and envelope.md), in-toto attestation framework, statement v1 and
bundles of attestations. Keys are PEM: Ed25519, or ECDSA with P-256 and SHA-256. The subject is the manifest, which
names every other file by its hash. A role is part of what is signed, so that each role is a signature of its own.
"""

import base64
import datetime
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from verifier.base.documents import json_values, read_document
from verifier.base.errors import InputError, Place, one_line
from verifier.base.files import json_value, read_bytes, read_text
from verifier.base.libraries import library
from verifier.evidence.declarations import DayText
from verifier.evidence.identity import Tool
from verifier.evidence.statements import STATEMENT_TYPE

Role: TypeAlias = Literal["built", "reviewed", "assessed"]
PREDICATE_TYPE = "urn:verifier:evidence-signature:v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
LARGEST = 2**22
_KEYS = "expected Ed25519 or ECDSA P-256"


@dataclass(frozen=True)
class SignedStatus:
    """How a requirement stood when it was signed."""

    requirement: str
    planner: str
    status: str


@dataclass(frozen=True, kw_only=True)
class Signed:
    """What somebody signs about a bundle, beside its digest.

    Attributes:
        role: as what they sign.
        by: their name, as they state it; the key is what proves it.
        day, until: of the signature, and the last on which it is valid.
        status: the last line of the check that was made before signing.
        document: its identity, as the bundle states it.
        tool: the program that checked and signed.
    """

    schema: ClassVar[str] = "verifier.signature"
    version: ClassVar[int] = 1
    role: Role
    by: str
    day: DayText
    until: DayText | None = None
    title: str
    status: str
    requirements: tuple[SignedStatus, ...]
    document: Mapping[str, str]
    tool: Tool


@dataclass(frozen=True)
class Seal:
    """A signature that holds: whose, and over which manifest.

    Attributes:
        key: SHA-256 of the public key, in hexadecimal.
    """

    key: str
    digest: str
    signed: Signed

    @property
    def told(self) -> str:
        """For people, on one line."""
        until = f", valid until {self.signed.until}" if self.signed.until else ""
        by = one_line(self.signed.by) or "nobody named"
        return f"{self.signed.role} by {by} on {self.signed.day}{until}, key {self.key[:16]}..."


def default_path(bundle: str) -> str:
    """Where the signatures of a bundle lie."""
    return f"{Path(bundle).absolute()}.sig.json"


def envelope(signed: Signed, digest: str, key: str) -> str:
    """One line: the envelope of a statement about the manifest with this digest, signed with the private key in the
    file `key`; InputError where it is none."""
    subject = [{"name": "manifest.json", "digest": {"sha256": digest}}]
    predicate = {"predicateType": PREDICATE_TYPE, "predicate": json_values(signed)}
    statement = {"_type": STATEMENT_TYPE, "subject": subject, **predicate}
    payload, private = json.dumps(statement, sort_keys=True).encode(), _private(key)
    signature = {
        "keyid": _fingerprint(private.public_key()),
        "sig": base64.b64encode(private.sign(_encoded(PAYLOAD_TYPE, payload), *_scheme(private, key))).decode(),
    }
    whole = {"payload": base64.b64encode(payload).decode(), "payloadType": PAYLOAD_TYPE, "signatures": [signature]}
    return json.dumps(whole) + "\n"


def signatures_in(path: str) -> str:
    """The lines of a file of signatures, to which another can be added; InputError where one is no envelope."""
    text = read_text(path, LARGEST)[0]
    for place, content in _envelopes(text, path):
        _parts(content, place)
    return text if text.endswith("\n") else text + "\n"


def _envelopes(text: str, path: str) -> Iterator[tuple[Place, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield Place(path, number), json_value(line, Place(path, number))


def find_signature(path: str, digest: str, key: str, role: Role | None, day: datetime.date) -> Seal | str:
    """The signature of this key, as this role, over the manifest with this digest; or in words why there is none.

    Args:
        key: file of the public key.
        role: None for any.
        day: on which it must be valid.

    Raises:
        InputError: a file cannot be read, or is not what it should be.
    """
    public = _key("public", key, lambda forms, raw: forms.load_pem_public_key(raw))
    best = (0, "a signature by this key")
    for place, content in _envelopes(read_text(path, LARGEST)[0], path):
        seal = _opened(content, public, key, place)
        if seal is None:
            continue
        if seal.digest != digest:
            reason = (1, f"a signature over {digest}; this key signed {seal.digest}")
        elif role not in (None, seal.signed.role):
            reason = (2, f"a signature as {role}; this key signed as {seal.signed.role}")
        elif seal.signed.until is not None and str(day) > seal.signed.until:
            reason = (3, f"a signature that is valid on {day}; it expired on {seal.signed.until}")
        elif str(day) < seal.signed.day:
            reason = (3, f"a signature that is valid on {day}; it says that it was made on {seal.signed.day}")
        else:
            return seal
        best = max(best, reason)
    return best[1]


def _opened(content: Any, public: Any, key: str, place: Place) -> Seal | None:
    """What an envelope says; None where this key did not sign it, or it is about something else."""
    payload, kind, signatures = _parts(content, place)
    encoded = _encoded(kind, payload)
    if not any(_holds(public, key, signature, encoded) for signature in signatures) or kind != PAYLOAD_TYPE:
        return None
    try:
        statement = json_value(payload.decode(), place)
        if (statement["_type"], statement["predicateType"]) != (STATEMENT_TYPE, PREDICATE_TYPE):
            return None
        (subject,) = statement["subject"]
        digest, predicate = str(subject["digest"]["sha256"]), statement["predicate"]
    except (KeyError, TypeError, ValueError):
        raise InputError("signed is no statement about a bundle", place) from None
    return Seal(_fingerprint(public), digest, read_document(Signed, predicate, str(place)))


def _parts(content: Any, place: Place) -> tuple[bytes, str, list[bytes]]:
    """Payload, its type and the signatures of an envelope."""
    try:
        payload, kind = _bytes(content["payload"]), content["payloadType"]
        signatures = [_bytes(entry["sig"]) for entry in content["signatures"]]
    except (AttributeError, KeyError, TypeError, ValueError):
        signatures, kind = [], ""
    if not signatures or not isinstance(kind, str):
        raise InputError("expected a DSSE envelope: payload, payloadType and signatures in base64", place)
    return payload, kind, signatures


def _bytes(text: str) -> bytes:
    """Of base64 in either alphabet."""
    return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)


def _encoded(kind: str, payload: bytes) -> bytes:
    """What is signed: the pre-authentication encoding of DSSE."""
    return b"DSSEv1 %d %b %d %b" % (len(kind.encode()), kind.encode(), len(payload), payload)


def _holds(public: Any, key: str, signature: bytes, encoded: bytes) -> bool:
    try:
        public.verify(signature, encoded, *_scheme(public, key))
    except library("cryptography.exceptions").InvalidSignature:
        return False
    return True


def _fingerprint(public: Any) -> str:
    forms = library("cryptography.hazmat.primitives.serialization")
    raw = public.public_bytes(forms.Encoding.DER, forms.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(raw).hexdigest()


def key_of_private(path: str) -> str:
    """SHA-256 of the public key that belongs to a private one in a file; InputError where it is none."""
    return _fingerprint(_private(path).public_key())


def _private(path: str) -> Any:
    try:
        return _key("private", path, lambda forms, raw: forms.load_pem_private_key(raw, None))
    except TypeError:
        hint = "write it without a passphrase for the time of signing: openssl pkey -in KEY -out PLAIN"
        raise InputError("the private key is encrypted", Place(path), hint) from None


def _key(which: str, path: str, load: Callable[[Any, bytes], Any]) -> Any:
    """The key in a file; InputError where it is none. The library raises errors of its own and of OpenSSL."""
    forms, raw = library("cryptography.hazmat.primitives.serialization"), read_bytes(path, LARGEST)
    try:
        key = load(forms, raw)
    except (ValueError, library("cryptography.exceptions").UnsupportedAlgorithm):
        make = "openssl genpkey -algorithm ed25519 -out key.pem; openssl pkey -in key.pem -pubout -out key.pub"
        raise InputError(f"is no {which} key in PEM", Place(path), f"make a pair with: {make}") from None
    _scheme(key, path)
    return key


def _scheme(key: Any, path: str) -> tuple[Any, ...]:
    """What signing and verifying takes beside the bytes, for a key of a kind that is used; else InputError."""
    curve = library("cryptography.hazmat.primitives.asymmetric.ec")
    edwards = library("cryptography.hazmat.primitives.asymmetric.ed25519")
    if isinstance(key, edwards.Ed25519PrivateKey | edwards.Ed25519PublicKey):
        return ()
    elliptic = isinstance(key, curve.EllipticCurvePrivateKey | curve.EllipticCurvePublicKey)
    if elliptic and isinstance(key.curve, curve.SECP256R1):
        return (curve.ECDSA(library("cryptography.hazmat.primitives.hashes").SHA256()),)
    raise InputError(f"a key of another kind: {_KEYS}", Place(path))
