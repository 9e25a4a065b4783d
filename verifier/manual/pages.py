"""The pages of the manual: Markdown files beside this module, one topic each.

The pages of the manual as HTML files that link to each other and need no network.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from verifier.base.errors import UsageError, unknown_name
from verifier.base.files import make_folder, write_text
from verifier.base.libraries import library

PAGES = Path(__file__).parent / "pages"

TOPICS: Mapping[str, str] = {
    "start": "from nothing to a first verdict",
    "own-data": "your own detections, in a quarter of an hour",
    "own-system": "a tutorial: your own system, from a blank page",
    "yolo": "a tutorial: your own YOLO",
    "two-detectors": "a tutorial: which of two detectors",
    "haze": "a tutorial: how much haze a system can take",
    "tour": "the published system, in eight steps",
    "models": "system models (.toml), key by key",
    "specs": "requirements (.ltl): targets, formulas, time, costs",
    "matrices": "confusion matrices by distance: how to count or write them",
    "formats": "how to read each format of detections",
    "results": "what each number of a result means, and what it assumes",
    "assumptions": "what is assumed, what is proven, what is only estimated",
    "papers": "the papers behind the program",
    "track-record": "what detectors with memory predict of real tracks, and what was seen there",
    "gallery": "eleven systems to learn from and to start from",
    "ci": "gates and files for continuous integration",
    "cluster": "on a cluster, and with much data",
    "evidence": "reports, bundles, assurance cases and rates",
    "collision": "probability of a collision by reported distance and speed",
    "closed-loop": "detectors judged by what a vehicle does, and RobROC",
    "mutations": "degraded images: blur, haze, defocus and more",
    "robustness": "the metric-driven robustness assessment",
    "python": "every command as a function",
    "commands": "every command and option",
    "limits": "limits, exit codes in scripts, threat model",
    "errors": "what a message means and what to do",
    "glossary": "the words that are used here",
}
"""Topic, which is the name of its file -> what it is about, in the order of reading."""


def page(topic: str) -> str:
    """The Markdown of a topic. Raises UsageError: there is no such topic."""
    if topic not in TOPICS:
        message, hint = unknown_name("topic", topic, TOPICS)
        raise UsageError(f"{message}\n  hint: {hint}")
    return (PAGES / f"{topic}.md").read_text(encoding="utf-8")


def contents() -> str:
    """The list of topics, as `verify manual` prints it."""
    width = max(map(len, TOPICS))
    lines = [f"  {topic:<{width}}  {about}" for topic, about in TOPICS.items()]
    return "\n".join(["The manual. verify manual TOPIC shows a page:", "", *lines])


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
