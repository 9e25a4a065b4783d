"""The report: one page for a person who has five minutes and then an hour, as HTML, Markdown and CSV."""

from verifier.evidence.report.pages import csv_report, html_report, markdown_report

__all__ = ["csv_report", "html_report", "markdown_report"]
