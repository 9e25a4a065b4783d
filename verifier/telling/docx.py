"""A page as a Word document (Office Open XML), by the library python-docx.

Pictures are drawn again as PNG where matplotlib is there; else their captions stand, as in Markdown.

A picture of `verifier.telling.pictures` as a PNG file, for documents that cannot show SVG; drawn by matplotlib.

Known are the shapes of those pictures: rect, circle, path (M, L, H, V, h, v, z), text, and groups that are moved and
turned.
"""

from __future__ import annotations

import importlib.util
import io
import re
from collections.abc import Iterable, Iterator
from typing import Any
from xml.etree import ElementTree

from verifier.base.errors import one_line
from verifier.base.libraries import library
from verifier.telling.blocks import Block, Cell, Figure, Fold, Listing, Page, Paragraph, Photo, Section, Table

DPI = 192
"""Of the picture, in which a user unit is 1/96 inch."""
_STEP = re.compile(r"([MLHVhvz])([^MLHVhvz]*)")


def png_of(svg: str) -> tuple[bytes, int]:
    """The file, and its width in user units.

    Raises:
        UsageError: matplotlib is not installed.
        ValueError: an element that is not known.
    """
    figures, agg = library("matplotlib.figure"), library("matplotlib.backends.backend_agg")
    root = ElementTree.fromstring(svg)
    width, height = (int(root.attrib[name]) for name in ("width", "height"))
    figure = figures.Figure((width / 96, height / 96), dpi=DPI)
    agg.FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    for order, (shape, at, turn) in enumerate(_shapes(root, (0.0, 0.0), 0.0)):
        _draw(axes, shape, at, turn, order)
    written = io.BytesIO()
    figure.savefig(written, format="png", metadata={"Software": None})
    return written.getvalue(), width


def _shapes(
    group: ElementTree.Element, at: tuple[float, float], turn: float
) -> Iterator[tuple[ElementTree.Element, tuple[float, float], float]]:
    """The shapes in their order, with where their group lies and how it is turned, in degrees."""
    for shape in group:
        if shape.tag != "g":
            yield shape, at, turn
            continue
        moved, turned = re.fullmatch(r"translate\(([^)]*)\) rotate\(([^)]*)\)", shape.attrib["transform"]).groups()  # type: ignore[union-attr]
        x, y = map(float, moved.split())
        yield from _shapes(shape, (at[0] + x, at[1] + y), turn + float(turned))


def _draw(axes: Any, shape: ElementTree.Element, at: tuple[float, float], turn: float, order: int) -> None:
    given, paths = shape.attrib, library("matplotlib.path").Path
    if shape.tag == "text":
        place = (at[0] + float(given["x"]), at[1] + float(given["y"]))
        side = {"start": "left", "middle": "center", "end": "right"}[given["text-anchor"]]
        size = float(given["font-size"]) * 0.75
        text = axes.text(*place, shape.text or "", ha=side, va="baseline", rotation=-turn, color=given["fill"])
        text.set(fontsize=size, rotation_mode="anchor", zorder=order, parse_math=False)
        return
    x, y = (float(given.get(name, 0)) for name in ("x", "y"))
    if shape.tag == "rect":
        width, height = float(given["width"]), float(given["height"])
        path = paths([(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)], closed=True)
    elif shape.tag == "circle":
        path = paths.circle((float(given["cx"]), float(given["cy"])), float(given["r"]))
    elif shape.tag == "path":
        path = paths(*_steps(given["d"], paths))
    else:
        raise ValueError(f"unknown shape {shape.tag}")
    fill = given.get("fill", "none" if "stroke" in given else "#000")
    line = float(given.get("stroke-width", 1)) * 0.75 if "stroke" in given else 0.0
    patch = library("matplotlib.patches").PathPatch(path, facecolor="none", edgecolor="none", zorder=order)
    patch.set(
        linewidth=line, capstyle=given.get("stroke-linecap", "butt"), antialiased="shape-rendering" not in given
    )
    if fill != "none":
        patch.set_facecolor(library("matplotlib.colors").to_rgba(fill, float(given.get("fill-opacity", 1))))
    if line:
        patch.set_edgecolor(given["stroke"])
        dashes = [float(size) * 0.75 / line for size in given.get("stroke-dasharray", "").split()]
        patch.set_linestyle((0, dashes) if dashes else "solid")
    axes.add_patch(patch)


def _steps(text: str, paths: Any) -> tuple[list[tuple[float, float]], list[int]]:
    """Vertices and codes of a path."""
    points, codes, start = list[tuple[float, float]](), list[int](), (0.0, 0.0)
    for step, numbers in _STEP.findall(text):
        x, y = points[-1] if points else start
        if step in "ML":
            x, y = map(float, numbers.split())
            start = (x, y) if step == "M" else start
        elif step == "z":
            x, y = start
        elif step in "Hh":
            x = float(numbers) + (x if step == "h" else 0)
            x += 0.5 if step + numbers == "h0" else 0  # a dot, which would not be drawn
        else:
            y = float(numbers) + (y if step == "v" else 0)
        points.append((x, y))
        codes.append(paths.MOVETO if step == "M" else paths.CLOSEPOLY if step == "z" else paths.LINETO)
    return points, codes


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
    for cell, told in zip(cells, (told_cell for row in rows for told_cell in row), strict=True):
        cell.text = one_line(told.text if isinstance(told, Cell) else told)
    if table.header:
        repeated = library("docx.oxml").OxmlElement("w:tblHeader")
        made.rows[0]._tr.get_or_add_trPr().append(repeated)
