"""The pages of the manual, Markdown files beside this module, also as HTML that needs no network; the gallery of
systems to start from; and every choice of the commands that show them.
"""

import base64
import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from verifier.base.errors import InputError, Place, check_known
from verifier.base.files import make_folder, write_text
from verifier.base.libraries import library
from verifier.base.options import Option, writes


@dataclass(frozen=True, kw_only=True)
class ManualSettings:
    """Every choice of `verify manual`."""

    topic: Annotated[str | None, Option("a page; without it, the list", metavar="TOPIC", positional=True)] = None
    html: Annotated[str | None, writes("write all pages as HTML into this folder", metavar="FOLDER")] = None


@dataclass(frozen=True, kw_only=True)
class InitSettings:
    """Every choice of `verify init`."""

    name: Annotated[
        str | None,
        Option("a system of the gallery; without it a small system to change", metavar="NAME", positional=True),
    ] = None
    list: Annotated[bool, Option("list the systems of the gallery, and write nothing")] = False
    output: Annotated[
        str, writes("the folder to write to; files that are there are never replaced", metavar="FOLDER", also=("-o",))
    ] = "."


@dataclass(frozen=True, kw_only=True)
class CompletionSettings:
    """Every choice of `verify completion`."""

    shell: Annotated[Literal["bash", "zsh", "fish"], Option("{choices}", positional=True)]


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
    check_known("topic", topic, TOPICS)
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
nav a {{ margin-right: 1em }} pre, table {{ overflow-x: auto; display: block }} img {{ max-width: 100% }}</style>
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
        body = re.sub(r'src="(figures/\w+\.png)"', _embedded, body)
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


def _embedded(picture: re.Match[str]) -> str:
    return f'src="data:image/png;base64,{base64.b64encode((PAGES / picture[1]).read_bytes()).decode()}"'


FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class System:
    """A system of the gallery: `models/NAME.toml`, `specs/NAME.ltl` and its matrices.

    Attributes:
        shows: what there is to learn from it.
        matrices: their file in `models`.
    """

    shows: str
    matrices: str


GALLERY: Mapping[str, System] = {
    "car_pedestrian": System("the crosswalk of Badithela et al., with published matrices", "nuscenes_yolov3_class"),
    "crossing_stochastic": System("a pedestrian who crosses at random; time and comfort", "pedestrian_camera"),
    "crossing_adversarial": System("a pedestrian who waits for the worst moment", "pedestrian_camera"),
    "acc": System("adaptive cruise control, 650,000 states", "acc"),
    "warehouse": System("a person and a forklift that hides the person", "warehouse"),
    "level_crossing": System("a barrier that opens after three quiet seconds", "level_crossing"),
    "traffic_light": System("a light whose class changes with time", "traffic_light"),
    "drone_landing": System("a landing in the wind by a camera that confuses sides", "drone_landing"),
    "two_of_three": System("a tracker that confirms after two reports of three, beside none", "two_of_three"),
    "mode_machine": System("a robot that waits with a timer, and one without", "mode_machine"),
    "phantom_braking": System("braking for nothing, with errors of reported distances", "phantom_braking"),
}

SMALL = "system"
"""A small system to change, which is not of the gallery."""


def files_of(name: str | None) -> dict[str, str]:
    """File name -> text of a system of the gallery, or of a small system where there is no name: model, requirements
    and matrices, which find each other in one folder.

    Raises:
        UsageError: the gallery has no such system.
    """
    if name is not None:
        check_known("system", name, GALLERY)
    name, matrices = (SMALL, SMALL) if name is None else (name, GALLERY[name].matrices)
    texts = [
        (FOLDER / place).read_text(encoding="utf-8")
        for place in (f"models/{name}.toml", f"specs/{name}.ltl", f"models/{matrices}.json")
    ]
    texts[1] = texts[1].replace(f'"../models/{name}.toml"', f'"{name}.toml"')
    return dict(zip((f"{name}.toml", f"{name}.ltl", f"{name}.json"), texts, strict=True))


def write_system(name: str | None, folder: str) -> list[Path]:
    """Write a system's files into a folder, which is made where it is missing; the paths, requirements second.

    Raises:
        UsageError: the gallery has no such system.
        InputError: a file is there already, or cannot be written; then none is written.
    """
    files = {Path(folder) / name: text for name, text in files_of(name).items()}
    for path in files:
        if path.exists():
            raise InputError("this file is there already", Place(str(path)), hint="choose another folder with -o")
    make_folder(folder)
    for path, text in files.items():
        write_text(path, text)
    return list(files)
