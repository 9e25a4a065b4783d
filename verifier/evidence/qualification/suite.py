"""Running the validation suite: commands as a user types them, on files of its own, in a folder of its own.

Its tests that attack bundles (forged certificates and results, altered files, signatures of others), and faults that
are put into the program to see whether the suite finds them.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import io
import json
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeAlias
from unittest import mock

from verifier.analysis import kernel
from verifier.base.checksums import with_checksums
from verifier.base.libraries import library
from verifier.checking.verdicts import Decision, Verdict
from verifier.evidence.qualification.kit import Row, State, SuiteRecord, Tables, requirement_feature, value_at

Tool: TypeAlias = Callable[[Sequence[str]], int]
"""The command `verify`: what is typed behind its name -> exit code."""
RUN = ("--draws", "100")
"""Few draws, where credible intervals are not what is tested."""
_SHOWN = 300


class DepartureError(Exception):
    """Something came out that should not have."""


class NotRunError(Exception):
    """A test cannot run on this machine."""


@dataclass(frozen=True)
class Ran:
    """What a command gave."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Bench:
    """Where a test works: its folder is the current one.

    Attributes:
        checks: the tests that are written in code, by name.
    """

    tool: Tool
    tables: Tables
    checks: Mapping[str, Callable[[Bench], None]]

    def run(self, *words: str) -> Ran:
        """One command."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = self.tool(list(words))
            except SystemExit as ended:
                code = int(ended.code or 0)
        return Ran(code, out.getvalue(), err.getvalue())

    def expect(self, code: int, *words: str) -> Ran:
        """One command that must end so."""
        ran = self.run(*words)
        if ran.code != code:
            said = (ran.err or ran.out).strip()[-_SHOWN:]
            raise DepartureError(f"verify {' '.join(words)}: exit code {ran.code}, expected {code}: {said}")
        return ran

    def document(self, code: int, *words: str) -> Any:
        """Likewise, with the document that it prints."""
        return json.loads(self.expect(code, *words, "--json").out)

    def write(self, *names: str) -> None:
        """Files of the suite, into the current folder."""
        for name in names:
            for file, text in self.tables["files"][name].items():
                Path(file).write_text(text.lstrip("\n"), encoding="utf-8")

    def record(self, test: Row) -> SuiteRecord:
        """Run one test, in a folder of its own."""
        told = ""
        state: State = "passed"
        with tempfile.TemporaryDirectory(prefix="verify-qualify-") as folder, contextlib.chdir(folder):
            try:
                self._judge(test)
            except NotRunError as error:
                told, state = str(error), "not run"
            except DepartureError as error:
                told, state = str(error), "failed"
            except Exception as error:  # whatever a fault of the program does to a test is a failure of it
                told, state = f"{type(error).__name__}: {error}"[:_SHOWN], "failed"
        stated = {key: test[key] for key in ("id", "requirement", "method", "about")}
        feature = requirement_feature(self.tables)[test["requirement"]]
        return SuiteRecord(**stated, feature=feature, state=state, told=told)

    def _judge(self, test: Row) -> None:
        for name in test.get("needs", ()):
            if importlib.util.find_spec(name) is None:
                raise NotRunError(f"the library {name} is not installed")
        self.write(*test.get("files", ()))
        if "check" in test:
            self.checks[test["check"]](self)
            return
        *before, last = test["commands"]
        for words in before:
            self.run(*words)
        ran = self.expect(test.get("exit", 0), *last)
        printed = Path(test["read"]).read_text(encoding="utf-8") if "read" in test else ran.out + ran.err
        for text in test.get("says", ()):
            same(text in printed, True, f"{text!r} in what is printed")
        for text in test.get("never", ()):
            same(text in printed, False, f"{text!r} in what is printed")
        for name in test.get("absent", ()):
            same(Path(name).exists(), False, f"a file {name}")
        if test.get("expect"):
            content = json.loads(ran.out)
            for entry in test["expect"]:
                compare(value_at(content, entry["path"]), entry)


def compare(actual: Any, expected: Row) -> None:
    """A value beside what is expected of it; DepartureError."""
    where, text = expected["path"], expected["value"]
    if "within" not in expected:
        same(actual if isinstance(actual, str) else json.dumps(actual), text, where)
        return
    try:
        off = Fraction(actual) - Fraction(text)
    except (TypeError, ValueError):
        raise DepartureError(f"{where}: found {actual!r}, expected {text}") from None
    side, slack = expected.get("side", ""), Fraction(2, 10**16)
    wrong = (side == "below" and off > slack) or (side == "above" and off < -slack)
    if abs(off) > Fraction(str(expected["within"])) or wrong:
        told = f" from {side}" if side else ""
        raise DepartureError(f"{where}: found {actual!r}, expected {text} within {expected['within']}{told}")


def same(actual: object, expected: object, where: str) -> None:
    """DepartureError where two values differ."""
    if actual != expected:
        raise DepartureError(f"{where}: found {actual!r}, expected {expected!r}"[: 2 * _SHOWN])


BUILD = ("evidence", "build", "two_looks.ltl", "--cm", "seen.json", *RUN, "-o", "bundle")


def mutated_certificates(bench: Bench) -> None:
    """No certificate with a greater claim is accepted, whatever its proof is changed to."""
    bench.write("two_looks")
    bench.expect(0, *BUILD)
    rng, judged = random.Random(5), 0
    for path in sorted(Path("bundle/certificates").glob("*.json")):
        certificate = json.loads(path.read_text())
        kernel.check(certificate)
        sign = 1 if certificate["side"] == "lower" else -1
        for k, claim in enumerate(certificate["claimed"]):
            for change in (None, *range(4)):
                forged = copy.deepcopy(certificate)
                forged["claimed"][k] = 0.5 if claim is None else claim + sign * 1e-9
                if change is not None and not _changed(forged["boxes"], rng):
                    continue
                if claim is None or not 0 <= forged["claimed"][k] <= 1:
                    continue
                judged += 1
                if _accepted(forged):
                    raise DepartureError(f"{path.name}: accepted with the claim {forged['claimed'][k]}")
    same(judged > 20, True, "certificates that were changed")
    told = bench.expect(0, "evidence", "check", "bundle").out
    same("certificates proven" in told, True, "the sound ones are proven again by the command")


def _changed(part: Any, rng: random.Random) -> bool:
    """Change one whole number somewhere in a proof; False where there is none."""
    places = list(_numbers(part))
    if places:
        holder, key = rng.choice(places)
        holder[key] += rng.choice((-1, 1)) * rng.choice((1, 1000, 10**6))
    return bool(places)


def _numbers(part: Any) -> Iterator[tuple[Any, Any]]:
    entries: Iterable[tuple[Any, Any]] = part.items() if isinstance(part, dict) else enumerate(part)
    for key, value in entries:
        if isinstance(value, dict | list):
            yield from _numbers(value)
        elif type(value) is int:
            yield part, key


def _accepted(certificate: Any) -> bool:
    try:
        kernel.check(certificate)
    except kernel.Rejected:
        return False
    return True


def altered_files(bench: Bench) -> None:
    """One byte of every seventh file, and of the manifest: a check names the file, and nothing is confirmed."""
    bench.write("two_looks")
    bench.expect(0, *BUILD)
    files = sorted(path for path in Path("bundle").rglob("*") if path.is_file())
    for path in {*files[::7], Path("bundle/manifest.json")}:
        raw = path.read_bytes()
        at = len(raw) // 2
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
        ran = bench.expect(4, "evidence", "check", "bundle")
        named = f"WRONG {path.relative_to('bundle').as_posix()}"
        same(named in ran.out, True, f"{named!r} in the check of a bundle with that byte changed")
        path.write_bytes(raw)
    bench.expect(0, "evidence", "check", "bundle")


def forged_result(bench: Bench) -> None:
    """The result of other matrices under the name and hash of these."""
    bench.write("two_looks")
    own = bench.document(3, "run", "two_looks.ltl", "--cm", "seen.json", *RUN)
    text = bench.expect(3, "run", "two_looks.ltl", "--cm", "always.json", *RUN, "--json").out
    (true,), (other,) = (
        [entry["sha256"] for entry in content["inputs"] if entry["role"] == "confusion"]
        for content in (own, json.loads(text))
    )
    forged = text.replace(other, true).replace("always.json", "seen.json").replace("400 of 400", "3 of 4")
    Path("forged.json").write_text(with_checksums(forged))
    for more in ((), ("--with", "always.json")):
        bench.expect(4, *BUILD, "--with", "forged.json", *more)
    same(Path("bundle").exists(), False, "a bundle with a forged result")


def signed_bundle(bench: Bench) -> None:
    """Signed as built: not as assessed, not by another key, and not another bundle."""
    forms = library("cryptography.hazmat.primitives.serialization")
    generate = library("cryptography.hazmat.primitives.asymmetric.ed25519").Ed25519PrivateKey.generate
    plain = (forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    for name, key in (("key", generate()), ("other", generate())):
        Path(f"{name}.pem").write_bytes(key.private_bytes(*plain))
        public = key.public_key().public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo)
        Path(f"{name}.pub").write_bytes(public)
    bench.write("two_looks")
    bench.expect(0, *BUILD)
    bench.expect(0, *BUILD[:-1], "twin", "--confidence", "0.9")
    bench.expect(0, "evidence", "sign", "bundle", "--key", "key.pem", "--role", "built")
    for bundle, name, role, code in (
        ("bundle", "key", "built", 0), ("bundle", "key", "assessed", 4), ("bundle", "other", "built", 4),
        ("twin", "key", "built", 4),
    ):  # fmt: skip
        words = ("--signed-by", f"{name}.pub", "--role", role, "--signatures", "bundle.sig.json")
        bench.expect(code, "evidence", "check", bundle, *words)
    bench.expect(0, "evidence", "check", "twin")


@dataclass(frozen=True)
class Fault:
    """A function of the program that gives something else than it should.

    Attributes:
        place: module and attribute, `verifier.x:name` or `verifier.x:Class.name`.
        faulty: makes the faulty function of the sound one.
        found_by: tests each of which must fail.
    """

    about: str
    place: str
    faulty: Callable[[Any], Any]
    found_by: tuple[str, ...]

    def put_in(self) -> AbstractContextManager[Any]:
        """As long as the context lasts."""
        return mock.patch(self.place.replace(":", "."), self.faulty(resolve_name(self.place)))


def _then(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What a function gives, changed."""
    return lambda sound: lambda *words, **named: change(sound(*words, **named))


def _opposite(decision: Decision) -> Decision:
    pair = {Verdict.SATISFIED: Verdict.VIOLATED, Verdict.VIOLATED: Verdict.SATISFIED}
    return replace(decision, verdict=pair.get(decision.verdict, decision.verdict))


FAULTS = (
    Fault(
        "binomial ends two per cent too high",
        "verifier.base.statistics:binomial_lower_end",
        _then(lambda ends: ends * 1.02),
        ("T-bounds-2",),
    ),
    Fault(
        "ends of drives a fifth too high",
        "verifier.analysis.intervals.drive_items:lower_ends",
        _then(lambda ends: ends * 6 // 5),
        ("T-bounds-3",),
    ),
    Fault(
        "a kernel that believes", "verifier.analysis.kernel:check", lambda sound: lambda _: [], ("T-proof-1",)
    ),
    Fault(
        "both read as either", "verifier.language.ltl.progression:Obligations._both",
        lambda sound: lambda self, left, right: self._either(left, right), ("T-read-8",),
    ),
    Fault(
        "what does not match matches", "verifier.perception.matching.matches:_reaches",
        _then(lambda reaches: ~reaches), ("T-count-1", "T-count-2"),
    ),
    Fault(
        "estimates of risk a tenth too low", "verifier.evidence.residual_risk.document:_known_risk",
        _then(lambda risk: replace(risk, per_hour=risk.per_hour * 0.9)), ("T-rate-2",),
    ),
    Fault(
        "a kernel of another width", "verifier.collision.kernel:_kernel", _then(lambda weights: weights**2),
        ("T-collision-1",),
    ),
    Fault(
        "given results that are believed", "verifier.evidence.bundle.build:_given",
        lambda sound: lambda *_: {}, ("T-case-3",),
    ),
    Fault(
        "no evidence against an indicator", "verifier.evidence.field:log_against_share",
        lambda sound: lambda *_: 0.0, ("T-rate-4",),
    ),
    Fault(
        "haze a tenth too thin", "verifier.robustness.mutators.photometric:extinction_per_m",
        _then(lambda beta: beta * 0.9), ("T-images-2",),
    ),
    Fault(
        "satisfied and violated exchanged", "verifier.checking.verdicts:_decision", _then(_opposite),
        ("T-check-1", "T-check-5"),
    ),
)  # fmt: skip
