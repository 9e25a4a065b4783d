"""The pages of the manual as HTML files that link to each other and need no network."""

from __future__ import annotations

import html
import re
from importlib.resources import files
from pathlib import Path

from verifier.base.files import make_folder, write_text
from verifier.base.libraries import library
from verifier.manual.pages import TOPICS, page

_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}
nav a {{ margin-right: 1em }} pre, table {{ overflow-x: auto; display: block }}</style>
<body>
<nav>{links}</nav>
<main>
{body}</main>
</body>
</html>
"""


def write_website(folder: str) -> Path:
    """Write every page as FOLDER/TOPIC.html; the path of the first one.

    Raises:
        UsageError: the library that reads Markdown is missing.
        InputError: a file cannot be written.
    """
    reader = library("markdown_it").MarkdownIt("commonmark", {"html": False}).enable("table")
    style = (files("verifier.telling") / "page.css").read_text("utf-8")
    links = " ".join(f'<a href="{topic}.html">{topic}</a>' for topic in TOPICS)
    make_folder(folder)
    for topic in TOPICS:
        text = page(topic)
        body = re.sub(r'(<a href="[\w-]+)\.md([#"])', r"\1.html\2", reader.render(text))
        body = re.sub(
            r"<(pre|table)>", r'<\1 tabindex="0">', body
        )  # so that the keyboard can scroll what is too wide
        body = re.sub(r"<h([1-4])>(.*?)</h\1>", _anchored, body)
        title = html.escape(text.partition("\n")[0].lstrip("# "))
        write_text(Path(folder) / f"{topic}.html", _PAGE.format(title=title, style=style, links=links, body=body))
    return Path(folder) / f"{next(iter(TOPICS))}.html"


def heading_id(heading: str) -> str:
    """What links to a heading name, as on the sites that show Markdown."""
    return re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-")


def _anchored(heading: re.Match[str]) -> str:
    level, inner = heading.groups()
    return f'<h{level} id="{heading_id(html.unescape(re.sub("<.*?>", "", inner)))}">{inner}</h{level}>'
