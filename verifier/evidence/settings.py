"""Every choice of `verify report` and `verify evidence`. Only light modules are imported."""

import argparse
import datetime
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

from verifier.base.documents import is_sha256
from verifier.base.errors import UsageError, shown
from verifier.base.options import Option, Part, Printed, Written, reads, writes
from verifier.checking.settings import Decided, Timeout
from verifier.evidence.signatures import Role
from verifier.questions.settings import DRAWN_AS_COUNTED, Matrices, Spec
from verifier.study.options import RunOptions
from verifier.systems.settings import Limits

Domain: TypeAlias = Literal["widened", "narrowed"]
"""What another text of the operational design domain is; nobody can compute it."""
Asil: TypeAlias = Literal["QM", "A", "B", "C", "D"]
"""Integrity levels of ISO 26262."""
Event: TypeAlias = Decided
"""What can be unwanted of a requirement."""
_EXPOSURE = "encounters per hour, for example 12/h or 10..14/h; without ENV= of every environment"
_RUNS = "results of verify run"
_ACCEPTANCE = "acceptance criterion: largest rate per hour, for example 1e-7/h"
_NUMBER = r"(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,2})?"


def _number(option: str, text: str) -> Fraction:
    """A number from 0; UsageError."""
    if not re.fullmatch(rf"\s*{_NUMBER}\s*", text):
        raise UsageError(f"{option}: expected a number from 0, got {shown(text)}")
    return Fraction(text.strip())


def per_hour(option: str, text: str) -> Fraction:
    """A rate as 12/h; UsageError."""
    match = re.fullmatch(rf"\s*({_NUMBER})\s*/\s*h\s*", text)
    if match is None:
        raise UsageError(f"{option}: expected a rate per hour, as 12/h or 1e-7/h, got {shown(text)}")
    return Fraction(match[1])


def rate_ends(text: str, whole: str) -> tuple[Fraction, Fraction] | None:
    """The ends of 10..14/h in an argument that is `whole`; None where it is no interval; UsageError."""
    match = re.fullmatch(rf"\s*({_NUMBER})\s*\.\.\s*({_NUMBER})\s*/\s*h\s*", text)
    if match is None:
        return None
    if Fraction(match[1]) > Fraction(match[2]):
        raise UsageError(f"--exposure: the lower end comes first, got {shown(whole)}")
    return Fraction(match[1]), Fraction(match[2])


def _level(option: str, text: str) -> Fraction:
    level = _number(option, text)
    if not 0 < level < 1:
        raise UsageError(f"{option}: a level lies strictly between 0 and 1, got {shown(text)}")
    return level


def _level_of(option: str, words: str, **more: Any) -> Option:
    return Option(words, metavar="LEVEL", parse=partial(_level, option), **more)


def _accepted(text: str) -> Fraction:
    rate = per_hour("--accept", text)
    if rate == 0:
        raise UsageError("--accept: a rate of 0 can never be shown")
    return rate


def _hours(text: str) -> Fraction:
    hours = _number("--hours", text)
    if hours == 0:
        raise UsageError("--hours: expected more than 0 hours")
    return hours


@dataclass(frozen=True, kw_only=True)
class ReportSettings:
    """Every choice of `verify report`."""

    results: Annotated[tuple[str, ...], reads("JSON documents of this program", metavar="RESULT", positional=True)]
    output: Annotated[tuple[str, ...], writes("report file: .html, .md, .docx or .csv (repeatable)", also=("-o",))]
    title: Annotated[str | None, Option("of the report (default: that of the results)", metavar="TEXT")] = None


@dataclass(frozen=True, kw_only=True)
class SchemaSettings:
    """Every choice of `verify schema`."""

    name: Annotated[str | None, Option("such as verifier.run, or run", metavar="NAME", positional=True)] = None


@dataclass(frozen=True, kw_only=True)
class RateSettings:
    """Every choice of `verify evidence rate`."""

    result: Annotated[str, reads("the result of a verify run (.json)", metavar="RESULT", positional=True)]
    requirement: Annotated[str, Option("requirement of the result", metavar="NAME", group="question")]
    planner: Annotated[str | None, Option("planner, where the result has several", metavar="NAME")] = None
    environment: Annotated[
        tuple[str, ...], Option("only this environment (repeatable)", also=("--env",), metavar="NAME")
    ] = ()
    event: Annotated[
        Event | None,
        Option("event whose rate is computed (default: violation; satisfaction where the target is P <= p)"),
    ] = None
    exposure: Annotated[
        tuple[str, ...], Option(f"{_EXPOSURE} (repeatable)", metavar="[ENV=]RATE", group="exposure")
    ] = ()
    exposure_level: Annotated[
        Fraction | None, _level_of("--exposure-level", "confidence level of stated intervals (default: certain)")
    ] = None
    encounters: Annotated[int | None, Option("number of encounters counted in --hours", metavar="N")] = None
    hours: Annotated[
        Fraction | None, Option("hours in which --encounters were counted", metavar="T", parse=_hours)
    ] = None
    context: Annotated[str | None, reads("exposure and acceptance from a case's context (.toml)")] = None
    accept: Annotated[Fraction | None, Option(_ACCEPTANCE, metavar="RATE", parse=_accepted, group="acceptance")] = (
        None
    )
    confidence: Annotated[
        Fraction | None, _level_of("--confidence", "smallest confidence level of the interval for the rate")
    ] = None
    test_confidence: Annotated[
        Fraction,
        _level_of("--test-confidence", "confidence level of a demonstration by testing alone", default="0.95"),
    ] = Fraction(19, 20)
    json: Printed = False
    output: Written = None


@dataclass(frozen=True, kw_only=True)
class RiskSettings:
    """Every choice of `verify evidence risk`."""

    context: Annotated[str, reads("conditions, hazards and exposure (.toml)", metavar="CASE", positional=True)]
    results: Annotated[
        tuple[str, ...],
        reads(f"{_RUNS}, one with the matrices of each condition (.json)", metavar="RESULT", positional=True),
    ]
    json: Printed = False
    output: Written = None


@dataclass(frozen=True, kw_only=True)
class TriggersSettings:
    """Every choice of `verify evidence triggers`."""

    context: Annotated[str, reads("triggering conditions (.toml)", metavar="CASE", positional=True)]
    results: Annotated[
        tuple[str, ...],
        reads(f"{_RUNS} in the conditions, and matrices (.json)", metavar="RESULT", positional=True),
    ]
    json: Printed = False
    output: Written = None


def _digest(text: str) -> str:
    if not is_sha256(text.lower()):
        raise argparse.ArgumentTypeError("expected 64 hexadecimal digits")
    return text.lower()


@dataclass(frozen=True, kw_only=True)
class BuildSettings:
    """Every choice of `verify evidence build`."""

    spec: Spec
    cm: Matrices
    context: Annotated[str | None, reads("declarations about the case (.toml)")] = None
    given: Annotated[
        tuple[str, ...],
        reads("a result made elsewhere, included as it is (.json; repeatable)", name="with", metavar="RESULT"),
    ] = ()
    options: Annotated[RunOptions, DRAWN_AS_COUNTED] = RunOptions()
    output: Annotated[
        str, writes("a folder, or an archive if it ends in .zip", also=("-o",), metavar="BUNDLE", group="output")
    ]
    force: Annotated[bool, Option("replace an existing bundle", role="output")] = False
    json: Annotated[bool, Option("print what was built as JSON", role="output")] = False


@dataclass(frozen=True, kw_only=True)
class CheckSettings:
    """Every choice of `verify evidence check`."""

    bundle: Annotated[str, reads("a folder or a zip archive", metavar="BUNDLE", positional=True)]
    digest: Annotated[
        str | None, Option("required SHA-256 of the manifest, as build printed it", metavar="HEX", parse=_digest)
    ] = None
    signed_by: Annotated[
        str | None, reads("public key (PEM) that must have signed the bundle", metavar="PUBLIC_KEY")
    ] = None
    role: Annotated[Role | None, Option("as which it must have signed, {choices} (default: any)")] = None
    signatures: Annotated[str | None, reads("the signatures (default: BUNDLE.sig.json)")] = None
    recompute: Annotated[
        bool, Option("recompute every result, byte for byte, and every probability as an exact fraction by Storm")
    ] = False
    timeout: Timeout = 600.0
    limits: Annotated[Limits, Part()] = Limits()
    json: Annotated[bool, Option("print what was found as JSON", role="output")] = False


def day_of(text: str) -> datetime.date:
    """A day as 2026-05-04; ArgumentTypeError."""
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a day such as 2026-05-04, got {shown(text)}") from None


@dataclass(frozen=True, kw_only=True)
class SignSettings:
    """Every choice of `verify evidence sign`."""

    bundle: Annotated[str, reads("a folder or a zip archive", metavar="BUNDLE", positional=True)]
    key: Annotated[str, reads("private key (PEM): Ed25519 or ECDSA P-256", metavar="PRIVATE_KEY")]
    role: Annotated[Role, Option("as which it is signed: {choices}")]
    by: Annotated[str, Option("name of who signs", metavar="NAME")] = ""
    until: Annotated[
        datetime.date | None, Option("last day on which the signature is valid", metavar="DAY", parse=day_of)
    ] = None
    output: Annotated[str | None, writes("where the signature is added (default: BUNDLE.sig.json)", also=("-o",))] = (
        None
    )


@dataclass(frozen=True, kw_only=True)
class ExportSettings:
    """Every choice of `verify evidence export`."""

    bundle: Annotated[str, reads("a folder or a zip archive", metavar="BUNDLE", positional=True)]
    into: Annotated[
        str | None, reads("ReqIF document whose requirements get what is shown of them (.reqif)", metavar="REQIF")
    ] = None
    output: Annotated[str, writes("report and case (.docx), or the requirements (.reqif)", also=("-o",))]


@dataclass(frozen=True, kw_only=True)
class DiffSettings:
    """Every choice of `verify evidence diff`."""

    old: Annotated[str, reads("the bundle before", metavar="OLD", positional=True)]
    new: Annotated[str, reads("the bundle now", metavar="NEW", positional=True)]
    odd: Annotated[Domain, Option("what another text of the operational design domain is, {choices}")] = "widened"
    json: Printed = False
    output: Written = None


@dataclass(frozen=True, kw_only=True)
class SpiSettings:
    """Every choice of `verify spi check`."""

    spi: Annotated[str, reads("the indicators of a bundle (spi.json)", metavar="SPI", positional=True)]
    field: Annotated[str, reads("what was counted: metric, count, of, date (.csv)", metavar="FIELD", positional=True)]
    json: Printed = False
    output: Written = None


@dataclass(frozen=True, kw_only=True)
class QualifySettings:
    """Every choice of `verify qualify`."""

    test: Annotated[tuple[str, ...], Option("only this test of the suite (repeatable)", metavar="ID")] = ()
    by: Annotated[str, Option("name of who runs the suite, for the report", metavar="NAME")] = ""
    asil: Annotated[Asil | None, Option("highest ASIL that is assumed, for the report: {choices}")] = None
    kit: Annotated[str | None, writes("the whole kit with this run as its report: .html or .md")] = None
    json: Printed = False
    output: Written = None


@dataclass(frozen=True, kw_only=True)
class KnownProblemsSettings:
    """Every choice of `verify known-problems`."""

    result: Annotated[str, reads("a bundle, or a JSON document of this program", metavar="RESULT", positional=True)]
    json: Printed = False
    output: Written = None
