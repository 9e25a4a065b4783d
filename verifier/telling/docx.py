"""A page as a Word document (Office Open XML), by the library python-docx.

Pictures are drawn again as PNG where matplotlib is there; else their captions stand, as in Markdown.
"""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Iterable
from typing import Any

from verifier.base.errors import one_line
from verifier.base.libraries import library
from verifier.telling.blocks import Block, Cell, Figure, Fold, Listing, Page, Paragraph, Photo, Section, Table
from verifier.telling.figures.raster import png_of

_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_DEEPEST = 4
_UNIT = 9525
"""Length of a user unit of a picture, 1/96 inch, in those of Word."""
_STYLES = {"lead": "Strong", "overall": "Strong", "note": "Emphasis", "formula": "Emphasis"}


def docx_bytes(page: Page) -> bytes:
    """The whole file.

    Raises:
        UsageError: the library is not installed.
    """
    docx = library("docx")
    document = docx.Document()
    document.core_properties.title = one_line(page.title)[:255]
    document.core_properties.author = "verifier"
    _margins(document, docx, one_line(page.identity or page.title))
    document.add_heading(one_line(page.title), 0)
    for section in page.sections:
        _section(document, section, 1)
    document.add_paragraph("End of the document.")
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def _margins(document: Any, docx: Any, identity: str) -> None:
    """Identity above and the number of the page below, on every page."""
    section = document.sections[0]
    section.header.paragraphs[0].text = identity
    paragraph = section.footer.paragraphs[0]
    for text, code in (("page ", "PAGE"), (" of ", "NUMPAGES")):
        paragraph.add_run(text)
        field = docx.oxml.OxmlElement("w:fldSimple")
        field.set(f"{_WORD}instr", code)
        paragraph._p.append(field)


def _section(document: Any, section: Section, level: int) -> None:
    verdict = f": {section.verdict}" if section.verdict else ""
    document.add_heading(one_line(f"{section.title}{verdict}"), min(level, _DEEPEST))
    _blocks(document, section.blocks)
    for inner in section.sections:
        _section(document, inner, level + 1)


def _blocks(document: Any, blocks: Iterable[Block]) -> None:
    for block in blocks:
        match block:
            case Paragraph():
                verdict = f" [{block.verdict}]" if block.verdict else ""
                run = document.add_paragraph().add_run(one_line(f"{block.text}{verdict}"))
                run.style = _STYLES.get(block.kind)
            case Listing():
                for item in block.items:
                    document.add_paragraph(one_line(item), style="List Number" if block.ordered else "List Bullet")
            case Table():
                _table(document, block)
            case Figure() if importlib.util.find_spec("matplotlib") is None:
                document.add_paragraph(one_line(f"Picture: {block.caption}"))
            case Figure():
                png, width = png_of(block.svg)
                _picture(document, png, block.caption, width * _UNIT)
            case Photo():
                _picture(document, block.jpeg, block.caption)
            case Fold():
                document.add_paragraph().add_run(one_line(block.summary)).style = "Strong"
                _blocks(document, block.blocks)


def _picture(document: Any, content: bytes, caption: str, width: int | None = None) -> None:
    """A picture that stays with its caption, which is read to those who do not see it."""
    shown = document.add_picture(io.BytesIO(content), width=width)
    document.paragraphs[-1].paragraph_format.keep_with_next = True
    shown._inline.docPr.set("descr", one_line(caption))
    document.add_paragraph(one_line(caption), style="Caption")


def _table(document: Any, table: Table) -> None:
    if table.caption:
        caption = document.add_paragraph(one_line(table.caption), style="Caption")
        caption.paragraph_format.keep_with_next = True
    rows = [*([table.header] if table.header else []), *table.rows]
    if not rows:
        return
    made = document.add_table(len(rows), len(rows[0]), style="Table Grid")
    cells = list(made._cells)  # asking for each row's cells takes quadratic time
    for cell, told in zip(cells, (each for row in rows for each in row), strict=True):
        cell.text = one_line(told.text if isinstance(told, Cell) else told)
    if table.header:
        repeated = library("docx.oxml").OxmlElement("w:tblHeader")
        made.rows[0]._tr.get_or_add_trPr().append(repeated)
