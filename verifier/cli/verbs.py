"""The commands of `verify`: what each is called, its settings, and the function that runs it."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from verifier.base.options import add_options, settings_of
from verifier.evidence.settings import RateSettings, ReportSettings

REPORT = """\
One report of any results of this program: the verdicts first, then every requirement with how it fails and what would
help, the matrices, the assumptions and where everything comes from. The HTML page is one file that needs no network.

  verify report RUN.json EXPLAIN.json REQUIRE.json MATRICES.json -o report.html
  verify report RUN.json -o report.md -o report.csv

Results are what --output of the other commands writes; matrices belong to a result where their SHA-256 is that of its
input. Which explanations belong to which run is found from the inputs that both name.
"""
RATE = """\
The rate at which a requirement fails, per hour of driving: its probability per encounter times the encounters per
hour, both with their uncertainty, held against an acceptance criterion (ISO 21448, Annex C); and how many hours or
encounters of testing would show the criterion without any model.

  verify evidence rate RESULT.json --requirement NAME --encounters 240 --hours 20 --accept 1e-7/h
  verify evidence rate RESULT.json --requirement NAME --exposure ped=12/h --exposure obs=10..14/h --exposure empty=0/h
"""


@dataclass(frozen=True)
class Verb:
    """A command.

    Attributes:
        settings: everything that can be chosen.
        run: MODULE:FUNCTION, called with the settings and the command as it is recorded; it gives the exit code. The
            module is imported only where the command is run.
        help, description, epilog: for people.
    """

    settings: type
    run: str
    help: str
    description: str
    epilog: str | None = None


VERBS: Mapping[str, Verb] = {
    "report": Verb(
        ReportSettings,
        "verifier.cli.report:report_command",
        "one page of any results: verdicts, how it fails, what would help, assumptions, provenance",
        REPORT,
    ),
    "evidence rate": Verb(
        RateSettings,
        "verifier.cli.rate:rate_command",
        "how often per hour a requirement fails, and what would show an acceptance criterion",
        RATE,
    ),
}


def add_verb(commands: Any, name: str) -> argparse.ArgumentParser:
    """Add a command to those of its parser."""
    verb = VERBS[name]
    parser: argparse.ArgumentParser = commands.add_parser(
        name.split()[-1],
        help=verb.help,
        description=verb.description,
        epilog=verb.epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=partial(_run, verb))
    add_options(parser, verb.settings)
    return parser


def _run(verb: Verb, arguments: argparse.Namespace) -> int:
    module, _, function = verb.run.partition(":")
    settings = settings_of(arguments, verb.settings)
    return int(getattr(importlib.import_module(module), function)(settings, arguments.invocation))
