"""The pages of the manual: Markdown files beside this module, one topic each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from verifier.base.errors import UsageError, unknown_name

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
    """The Markdown of a topic.

    Raises:
        UsageError: there is no such topic.
    """
    if topic not in TOPICS:
        message, hint = unknown_name("topic", topic, TOPICS)
        raise UsageError(f"{message}\n  hint: {hint}")
    return (PAGES / f"{topic}.md").read_text(encoding="utf-8")


def contents() -> str:
    """The list of topics, as `verify manual` prints it."""
    width = max(map(len, TOPICS))
    lines = [f"  {topic:<{width}}  {about}" for topic, about in TOPICS.items()]
    return "\n".join(["The manual. verify manual TOPIC shows a page:", "", *lines])
