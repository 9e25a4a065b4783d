"""The arguments of `verify report`.

Only light modules are imported at the top, so that `verify --help` answers at once.
"""

from __future__ import annotations

import argparse
from typing import Any

DESCRIPTION = """\
One report of any results of this program: the verdicts first, then every requirement with how it fails and what would
help, the matrices, the assumptions and where everything comes from. The HTML page is one file that needs no network.

  verify report RUN.json EXPLAIN.json REQUIRE.json MATRICES.json -o report.html
  verify report RUN.json -o report.md -o report.csv

Results are what --output of the other commands writes; matrices belong to a result where their SHA-256 is that of its
input. Which explanations belong to which run is found from the inputs that both name.
"""


def add_report_arguments(commands: Any) -> None:
    """Add the command `report`."""
    report = commands.add_parser(
        "report",
        help="one page of any results: verdicts, how it fails, what would help, assumptions, provenance",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    report.set_defaults(command=_report)
    report.add_argument("results", nargs="+", metavar="RESULT", help="JSON documents of this program")
    report.add_argument(
        "-o", "--output", action="append", required=True, metavar="FILE", help=".html, .md or .csv; repeat for more"
    )
    report.add_argument("--title", metavar="TEXT", help="of the report (default: that of the results)")


def _report(arguments: argparse.Namespace) -> int:
    from verifier.cli.report import report_command

    return report_command(arguments)
