"""Signatures of bundles: who signed what as what; held against an independent implementation of DSSE, both ways."""

import base64
import json
import subprocess

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from google.protobuf import json_format
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey
from small_bundles import write_inputs

from verifier.analysis.settings import ConfidenceSettings
from verifier.base.errors import InputError
from verifier.cli import main
from verifier.evidence.bundle.archive import write_bundle
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.evidence.bundle.check import check_files
from verifier.evidence.bundle.intact import sign_bundle
from verifier.evidence.signatures import PAYLOAD_TYPE, find_signature
from verifier.study.options import RunOptions

pytestmark = pytest.mark.usefixtures("results_made_once")

FEW = RunOptions(confidence=ConfidenceSettings(draws=100))
DOCUMENT = """
[document]
id = "SC-12"
revision = "B"
author = "A. A."
reviewer = "R. R."
approver = "P. P."
previous = "{previous}"
""".format(previous="0" * 64)
KINDS = {"ed25519": ed25519.Ed25519PrivateKey.generate, "p256": lambda: ec.generate_private_key(ec.SECP256R1())}


def write_pair(folder, name, private):
    forms = serialization
    pem = private.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    (folder / f"{name}.pem").write_bytes(pem)
    public = private.public_key().public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo)
    (folder / f"{name}.pub").write_bytes(public)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a bundle `b`, and pairs of keys; the bundle's digest and files."""
    folder = tmp_path_factory.mktemp("signed")
    (folder / "case.toml").write_text(DOCUMENT)
    bundle = make_bundle(Sources(*write_inputs(folder), folder / "case.toml"), FEW)
    write_bundle(bundle.files, folder / "b")
    for name, generate in KINDS.items():
        write_pair(folder, name, generate())
    write_pair(folder, "other", ed25519.Ed25519PrivateKey.generate())
    return folder, bundle


@pytest.fixture(scope="module")
def signed(made):
    """The same, signed as assessed with Ed25519 and, until the end of 2026, as reviewed with P-256."""
    folder, bundle = made
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1780000000")  # 2026-05-28
        sign_bundle(str(folder / "b"), str(folder / "ed25519.pem"), "assessed", "N. N.")
        assert main(
            ["evidence", "sign", str(folder / "b"), "--key", str(folder / "p256.pem"), "--role", "reviewed",
             "--until", "2026-12-31"]
        ) == 0  # fmt: skip
    return folder, bundle


def lines_of(folder):
    return [json.loads(line) for line in (folder / "b.sig.json").read_text().splitlines()]


def their_key(folder, kind, keyid):
    public = serialization.load_pem_public_key((folder / f"{kind}.pub").read_bytes())
    return SSlibKey.from_crypto(public, keyid)


@pytest.mark.parametrize(("number", "kind"), list(enumerate(KINDS)))
def test_an_independent_implementation_verifies_signatures_made_here(number, kind, signed):
    folder, bundle = signed
    line = lines_of(folder)[number]
    key = their_key(folder, kind, line["signatures"][0]["keyid"])
    envelope = Envelope.from_dict(line)
    envelope.verify([key], 1)
    statement = json.loads(envelope.payload)
    Statement.copy_from_pb(json_format.ParseDict(statement, statement_pb2.Statement())).validate()
    assert statement["subject"] == [{"name": "manifest.json", "digest": {"sha256": bundle.digest}}]
    assert statement["predicate"]["document"]["document id"] == "SC-12"
    assert len(statement["predicate"]["tool"]["sha256"]) == 64
    envelope.payload = envelope.payload.replace(b"SC-12", b"SC-13")
    with pytest.raises(VerificationError):
        envelope.verify([key], 1)


@pytest.mark.parametrize("kind", KINDS)
def test_signatures_of_an_independent_implementation_are_verified_here(kind, signed, tmp_path):
    folder, bundle = signed
    private = serialization.load_pem_private_key((folder / f"{kind}.pem").read_bytes(), None)
    payload = base64.b64decode(lines_of(folder)[0]["payload"])
    theirs = Envelope(payload, PAYLOAD_TYPE, {})
    theirs.sign(CryptoSigner(private))
    (tmp_path / "sig").write_text(json.dumps(theirs.to_dict()) + "\n")
    found = find_signature(str(tmp_path / "sig"), bundle.digest, str(folder / f"{kind}.pub"), None, DAY)
    assert (found.signed.by, found.signed.role) == ("N. N.", "assessed")


def test_openssl_verifies_what_was_signed(signed, tmp_path):
    folder, _ = signed
    line = lines_of(folder)[1]
    payload, kind = base64.b64decode(line["payload"]), line["payloadType"].encode()
    (tmp_path / "pae").write_bytes(b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload))
    (tmp_path / "sig").write_bytes(base64.b64decode(line["signatures"][0]["sig"]))
    command = ["openssl", "dgst", "-sha256", "-verify", folder / "p256.pub", "-signature", tmp_path / "sig"]
    assert subprocess.run([*command, tmp_path / "pae"], capture_output=True, check=False).returncode == 0


def test_openssl_verifies_a_time_stamp_of_signatures_without_network(signed, tmp_path):
    """As the manual says it, with an authority of its own in place of one that is asked over the network."""
    folder, _ = signed
    (tmp_path / "tsa.cnf").write_text(AUTHORITY)
    (tmp_path / "b.sig.json").write_bytes((folder / "b.sig.json").read_bytes())

    def openssl(command):
        return subprocess.run(
            ["openssl", *command.split()], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    made = "req -x509 -newkey rsa:2048 -nodes -keyout tsa.key -out tsa.pem -days 9 -subj /CN=TSA -config tsa.cnf"
    asked = "ts -query -data b.sig.json -sha256 -cert -out b.sig.json.tsq"
    answered = "ts -reply -config tsa.cnf -queryfile b.sig.json.tsq -out b.sig.json.tsr"
    assert [openssl(each).returncode for each in (made, asked, answered)] == [0, 0, 0]
    verify = "ts -verify -data b.sig.json -in b.sig.json.tsr -CAfile tsa.pem"
    assert "Verification: OK" in openssl(verify).stdout
    with (tmp_path / "b.sig.json").open("a") as file:
        file.write(" ")
    assert openssl(verify).returncode != 0


AUTHORITY = """
[req]
distinguished_name = name
x509_extensions = extensions
[name]
[extensions]
extendedKeyUsage = critical,timeStamping
[tsa]
default_tsa = authority
[authority]
serial = serial
signer_cert = tsa.pem
signer_key = tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
"""
DAY = "2026-06-01"
CHECKS = {
    "right": ("ed25519", "assessed", DAY, 0, "1 signature: assessed by N. N. on 2026-05-28, key "),
    "any role": ("p256", None, DAY, 0, "1 signature: reviewed by nobody named on 2026-05-28, valid until 2026-12-31"),
    "wrong role": ("ed25519", "built", DAY, 4, "a signature as built; this key signed as assessed"),
    "wrong key": ("other", "assessed", DAY, 4, "expected a signature by this key"),
    "last day": ("p256", "reviewed", "2026-12-31", 0, "1 signature"),
    "expired": ("p256", "reviewed", "2027-01-01", 4, "is valid on 2027-01-01; it expired on 2026-12-31"),
    "not yet valid": ("ed25519", "assessed", "2026-05-27", 4, "it says that it was made on 2026-05-28"),
}


@pytest.mark.parametrize("name", CHECKS)
def test_wrong_role_wrong_key_and_expired_are_one_line_each(name, signed, monkeypatch, capsys):
    folder, _ = signed
    key, role, day, code, said = CHECKS[name]
    monkeypatch.setattr("verifier.cli.evidence.clock_day", lambda: day)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1780000000")  # which is no way to make an expired signature valid
    roles = [] if role is None else ["--role", role]
    found = main(["evidence", "check", str(folder / "b"), "--signed-by", str(folder / f"{key}.pub"), *roles])
    lines = capsys.readouterr().out.splitlines()
    assert found == code
    assert sum(said in line for line in lines) == 1
    assert sum(line.startswith("WRONG") for line in lines) == (code == 4)
    assert any("authenticity" in line for line in lines) == (code == 4)
    assert "files: intact" in lines


def test_every_altered_file_is_named_and_a_new_manifest_is_not_the_signed_one(signed, tmp_path):
    folder, bundle = signed
    paths = str(folder / "b.sig.json"), str(folder / "ed25519.pub")
    for path, raw in bundle.files.items():
        report = check_files("b", {**bundle.files, path: raw + b"\n"} | {"more": b""})
        assert path in {each.file for each in report.findings}, path
        found = find_signature(paths[0], report.digest, paths[1], "assessed", DAY)
        assert isinstance(found, str) == (path == "manifest.json"), path
    assert bundle.digest in found or path != "manifest.json"
    (tmp_path / "case.toml").write_text(DOCUMENT.replace('"B"', '"C"'))
    other = make_bundle(Sources(*write_inputs(tmp_path), tmp_path / "case.toml"), FEW)
    found = find_signature(paths[0], other.digest, paths[1], "assessed", DAY)
    assert found == f"a signature over {other.digest}; this key signed {bundle.digest}"


def test_a_bundle_with_a_finding_is_not_signed(made, tmp_path, capsys):
    folder, bundle = made
    write_bundle({**bundle.files, "trace.csv": b"x\n"}, tmp_path / "b")
    command = ["evidence", "sign", str(tmp_path / "b"), "--key", str(folder / "ed25519.pem"), "--role", "built"]
    assert main(command) == 4
    assert "not signed, as the check finds trace.csv" in capsys.readouterr().err
    assert not (tmp_path / "b.sig.json").exists()


def test_the_identity_is_on_page_one_and_the_statement_names_report_and_case(made):
    _, bundle = made
    page = bundle.files["report/report.html"].decode()
    for text in ("SC-12", "A. A.", "R. R.", "P. P.", "0" * 64, "not issued"):
        assert text in page.partition("What would defeat")[0]
    subjects = {each["name"] for each in json.loads(bundle.files["ci/statement.intoto.json"])["subject"]}
    assert {"report/report.html", "case/gsn.yaml", "trace.csv", "results/run.json"} <= subjects
    assert bundle.files["README.txt"].decode().count("SC-12") == 1


def test_the_issue_date_is_stated_or_that_of_the_build_and_nobody_can_change_it(tmp_path, monkeypatch):
    (tmp_path / "case.toml").write_text(DOCUMENT)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1780000000")
    files = make_bundle(Sources(*write_inputs(tmp_path), tmp_path / "case.toml"), FEW).files
    assert "Issue date: 2026-05-28" in files["README.txt"].decode()
    assert json.loads(files["ro-crate-metadata.json"])["@graph"][1]["datePublished"] == "2026-05-28"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1880000000")
    assert check_files("b", files).sound
    (tmp_path / "case.toml").write_text(DOCUMENT + "issued = 2026-04-01\n")
    files = make_bundle(Sources(*write_inputs(tmp_path), tmp_path / "case.toml"), FEW).files
    assert "Issue date: 2026-04-01" in files["README.txt"].decode()
    request = json.loads(files["request.json"])
    assert "issued" not in request
    forged = {**files, "request.json": (json.dumps(request | {"issued": "2026-05-01"}, indent=2) + "\n").encode()}
    assert not check_files("b", forged).sound


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('id = ""', "expected a text that is not empty"),
        ("revision = 'B'", "missing key 'id'"),
        ("id = 'a'\nprevious = 'abc'", "expected 64 hexadecimal digits"),
        ("id = 'a'\nissued = 2026-05-04T00:00:00", "expected a date such as 2026-05-04"),
        ("id = 'a'\nauthors = 'b'", "did you mean 'author'?"),
    ],
)
def test_an_identity_that_cannot_be_read_is_refused_with_its_line(text, said, tmp_path, capsys):
    (tmp_path / "case.toml").write_text(f"[document]\n{text}\n")
    spec, matrices = write_inputs(tmp_path)
    command = ["evidence", "build", str(spec), "--cm", str(matrices), "--context", str(tmp_path / "case.toml")]
    assert main([*command, "-o", str(tmp_path / "b")]) == 4
    assert said in capsys.readouterr().err


HOSTILE = [
    "{",
    "[]",
    "{}",
    '{"payload": 1, "payloadType": "a", "signatures": []}',
    '{"payload": "YQ==", "payloadType": "a", "signatures": [{"sig": "%%"}]}',
    '{"payload": "YQ==", "payloadType": 1, "signatures": [{"sig": "YQ=="}]}',
    '{"payload": "YQ==", "payloadType": "a", "signatures": "YQ=="}',
    "[" * 100_000,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_files_that_are_no_envelopes_are_refused_with_their_line(text, signed, tmp_path, capsys):
    folder, bundle = signed
    (tmp_path / "sig").write_text("\n" + text)
    with pytest.raises(InputError, match="sig:"):
        find_signature(str(tmp_path / "sig"), bundle.digest, str(folder / "ed25519.pub"), None, DAY)
    if text != HOSTILE[0]:  # the command says what is raised
        return
    key = ["--signed-by", str(folder / "ed25519.pub"), "--signatures", str(tmp_path / "sig")]
    assert main(["evidence", "check", str(folder / "b"), *key]) == 4
    assert "sig:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b"[]", "signed is no statement about a bundle"),
        (b"\xff", "signed is no statement about a bundle"),
        (b'{"_type": "https://in-toto.io/Statement/v1", "predicateType": "other"}', None),
        (
            b'{"_type": "https://in-toto.io/Statement/v1", "predicateType": "urn:verifier:evidence-signature:v1",'
            b' "subject": [{"digest": {"sha256": "a"}}], "predicate": {}}',
            "'schema' is a required property",
        ),
    ],
)
def test_what_a_key_signed_beside_bundles_is_no_signature_of_one(payload, said, signed, tmp_path, capsys):
    folder, _ = signed
    theirs = Envelope(payload, PAYLOAD_TYPE, {})
    theirs.sign(CryptoSigner(serialization.load_pem_private_key((folder / "ed25519.pem").read_bytes(), None)))
    (tmp_path / "sig").write_text(json.dumps(theirs.to_dict()))
    key = ["--signed-by", str(folder / "ed25519.pub"), "--signatures", str(tmp_path / "sig")]
    assert main(["evidence", "check", str(folder / "b"), *key]) == 4
    told = capsys.readouterr()
    assert said in told.err if said else "a signature by this key" in told.out


def test_keys_of_other_kinds_and_no_keys_are_refused(made, tmp_path, capsys):
    folder, _ = made
    write_pair(tmp_path, "rsa", rsa.generate_private_key(65537, 2048))
    write_pair(tmp_path, "p384", ec.generate_private_key(ec.SECP384R1()))
    (tmp_path / "no.pem").write_bytes(b"-----BEGIN PRIVATE KEY-----\nYQ==\n-----END PRIVATE KEY-----\n")
    private = serialization.load_pem_private_key((folder / "ed25519.pem").read_bytes(), None)
    forms = serialization
    locked = private.private_bytes(
        forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.BestAvailableEncryption(b"secret")
    )
    (tmp_path / "locked.pem").write_bytes(locked)
    for name, said in {
        "rsa": "another kind: expected Ed25519 or ECDSA P-256",
        "p384": "another kind: expected Ed25519 or ECDSA P-256",
        "no": "is no private key in PEM",
        "locked": "is encrypted",
        "missing": "missing.pem",
    }.items():
        command = ["evidence", "sign", str(folder / "b"), "--role", "built", "--key", str(tmp_path / f"{name}.pem")]
        assert main(command) == 4
        assert said in capsys.readouterr().err, name
    for key in (folder / "ed25519.pem", tmp_path / "rsa.pub"):
        assert main(["evidence", "check", str(folder / "b"), "--signed-by", str(key)]) == 4
        assert "key" in capsys.readouterr().err
    assert main(["evidence", "check", str(folder / "b"), "--role", "built"]) == 2


def test_a_signature_is_added_to_signatures_alone_and_beside_the_bundle(made, tmp_path, capsys):
    folder, bundle = made
    write_bundle(bundle.files, tmp_path / "b")
    key = str(folder / "ed25519.pem")
    command = ["evidence", "sign", str(tmp_path / "b"), "--key", key, "--role", "built"]
    (tmp_path / "k.pem").write_bytes(pem := (folder / "p256.pem").read_bytes())
    (tmp_path / "notes").write_text("[]\n")
    for output, code in (("k.pem", 4), ("notes", 4), ("b/sig.json", 2)):
        assert main([*command, "-o", str(tmp_path / output)]) == code
        assert (output if code == 4 else "got one inside it") in capsys.readouterr().err
    assert main([*command, "--until", "2020-01-01"]) == 2
    assert "--until" in capsys.readouterr().err
    assert (tmp_path / "k.pem").read_bytes() == pem
    assert sorted(each.name for each in tmp_path.iterdir()) == ["b", "k.pem", "notes"]
    assert main(command) == 0
    path = tmp_path / "b.sig.json"
    path.write_text(path.read_text().rstrip())  # as other programs may leave it
    assert main([*command[:-1], "reviewed"]) == 0
    assert len(lines_of(tmp_path)) == 2


def test_a_status_that_was_signed_and_is_not_what_the_bundle_shows_is_a_finding(signed, tmp_path, capsys):
    folder, _ = signed
    statement = json.loads(base64.b64decode(lines_of(folder)[0]["payload"]))
    statement["predicate"]["status"] = "status: supported"
    key = ["--signed-by", str(folder / "ed25519.pub"), "--signatures", str(tmp_path / "sig")]
    for version, code in ((statement["predicate"]["tool"]["version"], 4), ("0.0.1", 0)):
        statement["predicate"]["tool"]["version"] = version
        theirs = Envelope(json.dumps(statement).encode(), PAYLOAD_TYPE, {})
        theirs.sign(CryptoSigner(serialization.load_pem_private_key((folder / "ed25519.pem").read_bytes(), None)))
        (tmp_path / "sig").write_text(json.dumps(theirs.to_dict()))
        assert main(["evidence", "check", str(folder / "b"), *key]) == code
        assert "found signed as status: supported" in (said := capsys.readouterr().out) or code == 0
        assert ("signed by verifier 0.0.1 as: status: supported" in said) == (code == 0)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda predicate: predicate.update(title="Of somebody else"), "signed as the title Of somebody else"),
        (
            lambda predicate: predicate["requirements"][0].update(status="supported"),
            "signed as stops, planner careful: supported",
        ),
        (lambda predicate: predicate["requirements"].pop(), "signed as asked, planner careful: nothing"),
    ],
)
def test_a_title_or_a_requirement_that_was_signed_and_is_another_is_a_finding(edit, said, signed, tmp_path, capsys):
    folder, _ = signed
    statement = json.loads(base64.b64decode(lines_of(folder)[0]["payload"]))
    edit(statement["predicate"])
    theirs = Envelope(json.dumps(statement).encode(), PAYLOAD_TYPE, {})
    theirs.sign(CryptoSigner(serialization.load_pem_private_key((folder / "ed25519.pem").read_bytes(), None)))
    (tmp_path / "sig").write_text(json.dumps(theirs.to_dict()))
    key = ["--signed-by", str(folder / "ed25519.pub"), "--signatures", str(tmp_path / "sig")]
    assert main(["evidence", "check", str(folder / "b"), *key]) == 4
    assert said in capsys.readouterr().out
