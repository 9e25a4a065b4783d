"""What is made of an intact bundle, checked first as a whole: a signature beside it, formats of other tools."""

import datetime
from dataclasses import replace
from pathlib import Path

from verifier.base.errors import InputError, Place, UsageError
from verifier.base.files import ending_of, write_bytes, write_text
from verifier.evidence.bundle.archive import read_bundle
from verifier.evidence.bundle.check import CheckLog, check_files
from verifier.evidence.bundle.derived_artefacts import Basis
from verifier.evidence.bundle.trace import TRACE_COLUMNS, trace_rows
from verifier.evidence.case.elements import Case, modules_of
from verifier.evidence.declarations import today
from verifier.evidence.exchange.reqif import reqif_into
from verifier.evidence.findings import CheckReport
from verifier.evidence.identity import tool_identity
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
from verifier.telling.blocks import Page, Section, Table
from verifier.telling.docx import docx_bytes

ENDINGS = (".docx", ".reqif")
COLUMNS = ("id", "kind", "text", "status", "supported by", "in context of")


def sign_bundle(
    bundle: str, key: str, role: Role, by: str = "", until: datetime.date | None = None, output: str | None = None
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
    fingerprint = key_of_private(key)
    report, basis = _checked(bundle, "signed")
    signed = Signed(
        role=role,
        by=by,
        day=str(today()),
        until=None if until is None else str(until),
        title=report.title,
        status=report.status,
        requirements=tuple(SignedStatus(one.requirement, one.planner, one.status) for one in report.requirements),
        document=basis.parts.context.identity.told,
        tool=tool_identity(),
    )
    write_text(path, before + envelope(signed, report.digest, key))
    return Seal(fingerprint, report.digest, signed)


def _checked(bundle: str | Path, done: str) -> tuple[CheckReport, Basis]:
    """What the check of a bundle says, and its derived files; InputError where something is wrong, and nothing is
    `done`."""
    log = CheckLog()
    report = check_files(Path(bundle).absolute().name, read_bundle(bundle), log=log)
    if not report.sound or log.basis is None:
        more = f"; and {len(report.findings) - 1} more" if len(report.findings) > 1 else ""
        raise InputError(f"not {done}, as the check finds {report.findings[0]}{more}", Place(str(bundle)))
    return report, log.basis


def export_bundle(bundle: str | Path, output: str | Path, into: str | Path | None = None) -> str:
    """Write report and case as a Word document, or requirements into a ReqIF document of somebody else.

    Args:
        output: ends in .docx or .reqif.
        into: the ReqIF document; only with .reqif, and needed there, as the bundle has one of its own.

    Returns:
        In words what of bundle and ReqIF document the other one does not have; empty where there is nothing.

    Raises:
        InputError: something is wrong with the bundle, or the document cannot be read.
        UsageError: an ending that is not known, `into` that does not fit, or a library that is not installed.
    """
    ending = ending_of("--output", output, ENDINGS)
    if (ending == ".reqif") != (into is not None):
        raise UsageError(
            "--into names the ReqIF document that an output ending in .reqif is made from\n"
            "  hint: the bundle's own is exchange/requirements.reqif"
        )
    _, basis = _checked(bundle, "exported")
    if into is None:
        written, told = docx_bytes(_whole(basis)), ""
    else:
        written, told = reqif_into(str(into), trace_rows(basis.traced), TRACE_COLUMNS)
    write_bytes(output, written)
    return told


def _whole(basis: Basis) -> Page:
    """The report, with the case as tables."""
    page = basis.page
    return replace(page, sections=(*page.sections[:-1], _case_section(basis.case), page.sections[-1]))


def _case_section(case: Case) -> Section:
    tables = tuple(
        Table(
            f"Module {module}",
            COLUMNS,
            tuple(
                (
                    element.id,
                    element.kind.name.lower().replace("_", " "),
                    f"{element.text}. {element.note}" if element.note else element.text,
                    element.told or ("defeated" if element.defeated else "-"),
                    ", ".join(element.supported_by) or "-",
                    ", ".join(element.in_context_of)
                    or (f"challenges {element.challenges}" if element.challenges else "-"),
                )
                for element in elements
            ),
        )
        for module, elements in modules_of(case).items()
    )
    return Section("Assurance case", tables, id="case")
