"""The report: one page for a person who has five minutes and then an hour, as HTML, Markdown and CSV; and a result as
what notebooks show and experiment trackers keep: its report as HTML, and a folder of files.
"""

import contextlib
from pathlib import Path

from verifier.base.errors import UsageError
from verifier.base.files import csv_text, write_bytes, write_text
from verifier.base.result import Result
from verifier.evidence.documents import document_of
from verifier.evidence.report.pages import csv_report, html_report, markdown_report, report_page
from verifier.telling.html import html_fragment

__all__ = ["csv_report", "html_report", "markdown_report", "notebook_html", "write_artefacts"]
DOCUMENT, REPORT, ROWS, PICTURE = "result.json", "report.html", "rows.csv", "figure.png"


def notebook_html(result: Result) -> str:
    """The sections of the report on a result."""
    return html_fragment(report_page([document_of(result.json_text().encode(), DOCUMENT)]))


def write_artefacts(result: Result, folder: str | Path) -> Path:
    """Write document, report, rows and figure of a result as files of a folder, which is made; give the folder.

    The figure is left out where matplotlib is missing or the result has none.

    Raises:
        InputError: a file cannot be written.
    """
    place, rows = Path(folder), list(result.rows())
    texts = {DOCUMENT: result.json_text()}
    texts[REPORT] = html_report([document_of(texts[DOCUMENT].encode(), DOCUMENT)])
    columns = list(dict.fromkeys(name for row in rows for name in row))
    texts[ROWS] = csv_text([{name: row.get(name, "") for name in columns} for row in rows], columns or ["none"])
    place.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_text(place / name, text)
    from verifier.telling.figures.drawing import figure_bytes

    with contextlib.suppress(UsageError):
        write_bytes(place / PICTURE, figure_bytes(result.plot(), PICTURE))
    return place
