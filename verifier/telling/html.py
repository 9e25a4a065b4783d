"""A page as one HTML file: nothing is loaded, nothing is sent, and it can be read without its script.

Everything that is not markup of this file is escaped: text, attributes, and the texts of pictures. Besides, the page
forbids every script and style but its own two, by their hashes, so that markup that slipped through could do nothing.
Control characters and characters that turn the direction of writing are written out, never sent.
"""

import base64
import hashlib
import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.resources import files

from verifier.base.errors import one_line
from verifier.base.libraries import __version__
from verifier.base.numbers import significant
from verifier.telling.blocks import Block, Cell, Figure, Fold, Listing, Page, Paragraph, Photo, Row, Section, Table

STYLE, SCRIPT = ("\n" + (files("verifier.telling") / name).read_text("utf-8") for name in ("page.css", "page.js"))
"""How a page looks, and what its one script does: sort tables, let the keyboard stop only at those that can be
scrolled, and open what is folded before printing."""
LONG = 40
"""Characters from which on a cell is given room for words."""
HEATS = 10
"""Steps of the background of a cell."""
CLASSES = {
    "satisfied": "ok",
    "violated": "bad",
    "inconclusive": "open",
    "vacuous": "open",
    "no answer": "open",
    "no target": "none",
    "supported": "ok",
    "conditional": "open",
    "undeveloped": "open",
    "defeated": "bad",
}
"""By the verdict, behind which a condition may follow a comma, or the status."""
RIGHT_TO_LEFT = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
    "(?:[^A-Za-z0-9<>&]*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff])*"
)
"""Words that are written from right to left; they must not turn what stands around them."""
MOST_OPEN = 6
"""Sections below a section up to which the table of contents shows them at once: the verdicts come first."""
MOST_ABOVE = 100
"""Characters of title and identity on every printed page."""
MOST_LISTED = 40
"""Requirements that the table of contents names."""


def html_text(page: Page) -> str:
    """The whole file."""
    title, first = escaped(page.title), page.sections[0]
    return "".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(page)}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="referrer" content="no-referrer">\n',
            f'<meta name="generator" content="verifier {__version__}">\n',
            f"<title>{html.escape(one_line(page.title))}</title>\n<style>{_style(page)}</style>\n</head>\n<body>\n",
            f'<a class="skip" href="#{first.id}">Skip to the {escaped(first.title.lower())}</a>\n',
            f"<header><h1>{title}</h1></header>\n",
            _contents(page),
            "<main>\n",
            *(_section(section, 2) for section in page.sections),
            "</main>\n",
            f"<footer>Made by verifier {__version__} from {escaped(page.source)}. End of the document.</footer>\n",
            f"<script>{SCRIPT}</script>\n</body>\n</html>\n",
        ]
    )


def html_fragment(page: Page) -> str:
    """The sections of a page to stand in another one, such as a notebook: no script, a style for itself alone."""
    style = STYLE.replace(":root", ":scope").replace("body{", ":scope{")
    sections = "".join(_section(section, 2) for section in page.sections)
    inside = re.sub(r' id="[^"]*"', "", re.sub(r'<a href="#[^"]*">(.*?)</a>', r"\1", sections))
    title = f"<h1>{escaped(page.title)}</h1>"
    return f'<div class="verifier">\n<style>@scope (.verifier){{{style}}}</style>\n{title}\n{inside}</div>\n'


def escaped(text: str) -> str:
    """Text as HTML, also within quotes; right-to-left words keep their direction to themselves.

    >>> escaped('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    shown = html.escape(text if text.isprintable() else one_line(text))
    return shown if shown.isascii() else RIGHT_TO_LEFT.sub(r"<bdi>\g<0></bdi>", shown)


def _style(page: Page) -> str:
    """The style, with what every printed page has: title and identity above, its number below."""
    left, right = (_css_text(name) for name in (page.title, page.identity))
    number = '"page " counter(page) " of " counter(pages)'
    boxes = f"@top-left{{content:{left}}}@top-right{{content:{right}}}@bottom-right{{content:{number}}}"
    return f"{STYLE}@page{{font:7.5pt system-ui,'Noto Sans','Liberation Sans',sans-serif;color:#414952;{boxes}}}\n"


def _css_text(text: str) -> str:
    """A text in a style sheet, shortened to what has room beside another: every character by its number."""
    shown = one_line(text)
    shown = shown if len(shown) <= MOST_ABOVE else f"{shown[: MOST_ABOVE - 3]}..."
    return '"' + "".join(f"\\{ord(character):x} " for character in shown) + '"'


def _policy(page: Page) -> str:
    script, style = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii") for text in (SCRIPT, _style(page))
    )
    images = "img-src data:; " if any(map(_has_photo, page.sections)) else ""
    return (
        f"default-src 'none'; {images}script-src 'sha256-{script}'; style-src 'sha256-{style}'; base-uri 'none'; "
        "form-action 'none'"
    )


def _has_photo(section: Section) -> bool:
    return any(isinstance(inner_section, Photo) for inner_section in section.blocks) or any(
        map(_has_photo, section.sections)
    )


def _contents(page: Page) -> str:
    parts = ['<nav aria-label="Contents"><ul>\n']
    for section in page.sections:
        parts.append(f'<li><a href="#{section.id}">{escaped(section.title)}</a>')
        inner = [inner_section for inner_section in section.sections if inner_section.listed and inner_section.id]
        if inner:
            items = [
                f'<li><a href="#{section.id}">{escaped(section.title)}</a></li>' for section in inner[:MOST_LISTED]
            ]
            if len(inner) > MOST_LISTED:
                items.append(f"<li>and {len(inner) - MOST_LISTED} more</li>")
            names = f"<ul>{''.join(items)}</ul>"
            folded = f"<details><summary>{len(inner)} sections</summary>{names}</details>"
            parts.append(names if len(inner) <= MOST_OPEN else folded)
        parts.append("</li>\n")
    return "".join([*parts, "</ul></nav>\n"])


def _section(section: Section, level: int) -> str:
    anchor = f' id="{section.id}"' if section.id else ""
    heading = f"h{min(level, 6)}"
    badge = f" {_badge(section.verdict)}" if section.verdict else ""
    parts = [f"<section{anchor}>\n<{heading}>{escaped(section.title)}{badge}</{heading}>\n"]
    parts += [_block(_captioned(block, section.title)) for block in section.blocks]
    parts += [_section(inner_section, level + 1) for inner_section in section.sections]
    return "".join([*parts, "</section>\n"])


def _captioned(block: Block, title: str) -> Block:
    """A table whose caption is the text before it: who hears the page hears the heading instead."""
    return replace(block, caption=title) if isinstance(block, Table) and not block.caption else block


def _badge(verdict: str, text: str = "") -> str:
    kind = CLASSES.get(verdict.partition(",")[0], "none")
    return f'<span class="v {kind}">{escaped(text or verdict)}</span>'


def _block(block: Block) -> str:
    match block:
        case Paragraph():
            return _paragraph(block)
        case Listing():
            tag = "ol" if block.ordered else "ul"
            return f"<{tag}>{''.join(f'<li>{escaped(item)}</li>' for item in block.items)}</{tag}>\n"
        case Table():
            return _table(block)
        case Figure():
            return f"<figure>{block.svg}<figcaption>{escaped(block.caption)}</figcaption></figure>\n"
        case Photo():
            source = base64.b64encode(block.jpeg).decode("ascii")
            picture = f'<img src="data:image/jpeg;base64,{source}" alt="{_plain(block.told)}">'
            return f'<figure class="photo">{picture}<figcaption>{escaped(block.caption)}</figcaption></figure>\n'
        case Fold():
            inner = "".join(_block(inner_block) for inner_block in block.blocks)
            kind = "" if block.printed else ' class="screen"'
            return f"<details{kind}><summary>{escaped(block.summary)}</summary>\n{inner}</details>\n"


def _paragraph(block: Paragraph) -> str:
    text = escaped(block.text)
    if block.kind == "formula":
        return f'<p class="formula"><code>{text}</code></p>\n'
    if block.kind == "overall":
        return f'<p class="lead">{text} {_badge(block.verdict)}</p>\n'
    if block.kind == "verdict":
        badge = f"{_badge(block.verdict)} " if block.verdict else ""
        return f'<p class="told">{badge}{text}</p>\n'
    return f'<p class="{block.kind}">{text}</p>\n' if block.kind else f"<p>{text}</p>\n"


def _table(table: Table) -> str:
    kind = ' class="sort"' if table.sortable and len(table.rows) > 1 else "" if table.header else ' class="facts"'
    head = ""
    if table.header:
        names = "".join(f'<th scope="col">{escaped(name)}</th>' for name in table.header)
        head = f"<thead><tr>{names}</tr></thead>"
    body = "".join(_rows(table.rows, table.header if "sort" in kind else ()))
    caption = escaped(table.caption)
    place = "scroll side" if table.side else "scroll"
    return (
        f'<div class="{place}" tabindex="0" role="group" aria-label="{_plain(table.caption)}"><table{kind}>'
        f"<caption>{caption}</caption>{head}<tbody>{body}</tbody></table></div>\n"
    )


def _plain(text: str) -> str:
    return html.escape(one_line(text))


def _rows(rows: Sequence[Row], labels: Sequence[str]) -> Iterator[str]:
    """The rows; where cells are labelled, a narrow screen shows each row as a list of what is in its columns."""
    for row in rows:
        yield "<tr>"
        for at, cell in enumerate(row):
            label = f' data-l="{escaped(labels[at])}"' if at < len(labels) else ""
            yield _cell(cell, 'th scope="row"' if at == 0 else f"td{label}")
        yield "</tr>\n"


def _cell(cell: Cell | str, tag: str) -> str:
    end = tag[:2]
    if isinstance(cell, str):
        room = ' class="t"' if len(cell) > LONG else ""
        return f"<{tag}{room}>{escaped(cell)}</{end}>"
    marks = ""
    if cell.order is not None:
        marks += f' data-o="{significant(cell.order, 9)}"'
    if len(cell.text) > LONG:
        marks += ' class="t"'
    elif cell.heat is not None:
        marks += f' class="h{round(min(max(cell.heat, 0.0), 1.0) * HEATS)}"'
    text = _badge(cell.verdict, cell.text) if cell.verdict else escaped(cell.text)
    if cell.link:  # a long name may be broken behind an underscore
        text = text.replace("_", "_<wbr>")
        text = f'<a href="#{cell.link}">{text}</a>'
    return f"<{tag}{marks}>{text}</{end}>"
