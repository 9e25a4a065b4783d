"""The arguments of `verify assess`.

Only light modules are imported at the top, so that `verify --help` answers at once.
"""

from __future__ import annotations

import argparse
from typing import Any

DESCRIPTION = """\
Is a detector robust in the circumstances of its use (Wozniak, Segura and Mazo 2024)? One TOML file says which
circumstances there are, how often and how significant they are, what the detector achieves on source and target data,
how far these are apart, and how much change is accepted at that distance.

  verify assess ASSESSMENT.toml
  verify assess ASSESSMENT.toml --markdown REPORT.md --plan PLAN.json
  verify assess ASSESSMENT.toml --make FOLDER
"""


def add_assess_arguments(commands: Any) -> None:
    """Add the command `assess`."""
    assess = commands.add_parser(
        "assess",
        help="whether a detector is robust in the circumstances of its use",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    assess.set_defaults(command=_assess)
    assess.add_argument("file", metavar="ASSESSMENT", help="assessment file (.toml)")
    assess.add_argument(
        "--system", action="append", default=[], metavar="NAME", help="only this system of the file; repeat for more"
    )
    making = assess.add_argument_group("making the data")
    making.add_argument(
        "--make",
        metavar="FOLDER",
        help="make the follow-up images, run the detector on source and target, and make the levels of a degradation",
    )
    making.add_argument("--cache", metavar="FOLDER", help="keep detections here, for the next run")
    output = assess.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print the result as JSON instead of tables")
    output.add_argument("-o", "--output", metavar="FILE", help="write the result as JSON")
    output.add_argument("--markdown", metavar="FILE", help="write the report in Markdown")
    output.add_argument(
        "--plan", metavar="FILE", help="write the plan of the target data set as JSON, image by image"
    )
    output.add_argument(
        "--plot", metavar="FILE", help="change of performance against distance, and margins (.png, .svg, .pdf)"
    )


def _assess(arguments: argparse.Namespace) -> int:
    from verifier.cli.assess import assess_command

    return assess_command(arguments)
