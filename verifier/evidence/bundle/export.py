"""An intact bundle in the formats of other tools: those that need a library to be written."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from verifier.base.errors import InputError, Place, UsageError
from verifier.base.files import write_bytes
from verifier.evidence.bundle.archive import read_bundle
from verifier.evidence.bundle.check import basis_of, check_files
from verifier.evidence.bundle.derived_artefacts import Basis
from verifier.evidence.bundle.trace import TRACE_COLUMNS, trace_rows
from verifier.evidence.case import Case
from verifier.evidence.case.elements import modules_of
from verifier.evidence.exchange.reqif import reqif_into
from verifier.telling.blocks import Page, Section, Table
from verifier.telling.docx import docx_bytes

ENDINGS = (".docx", ".reqif")
COLUMNS = ("id", "kind", "text", "status", "supported by", "in context of")


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
    ending = Path(output).suffix.lower()
    if ending not in ENDINGS:
        raise UsageError(f"--output: expected a file name ending in {' or '.join(ENDINGS)}, got {Path(output).name}")
    if (ending == ".reqif") != (into is not None):
        raise UsageError(
            "--into names the ReqIF document that an output ending in .reqif is made from\n"
            "  hint: the bundle's own is exchange/requirements.reqif"
        )
    files = read_bundle(bundle)
    report = check_files(Path(bundle).absolute().name, files)
    if not report.sound:
        raise InputError(f"not exported, as the check finds {report.findings[0]}", Place(str(bundle)))
    makers: Mapping[str, Callable[[Basis], tuple[bytes, str]]] = {
        ".docx": lambda basis: (docx_bytes(_whole(basis)), ""),
        ".reqif": lambda basis: reqif_into(str(into), trace_rows(basis.traced), TRACE_COLUMNS),
    }
    written, told = basis_of(files, makers[ending])
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
