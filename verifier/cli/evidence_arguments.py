"""The arguments of `verify evidence`. Only light modules are imported at the top."""

from __future__ import annotations

import argparse
import re
from typing import Any

from verifier.cli.arguments import (
    add_channel_arguments,
    add_confidence_arguments,
    add_engine_arguments,
    add_limit_arguments,
    add_scenario_arguments,
)
from verifier.cli.verbs import add_verb

BUILD_DESCRIPTION = """\
Make a bundle of evidence: run SPEC as verify run does, explain every requirement, find what each asks of the
detector, repeat the run under the other policies that apply, prove probabilities and confidence bounds, and put all
of it with copies of the inputs, report, safety case, trace and outputs for CI into one folder or archive. Equal
inputs give equal bytes. The digest that is printed stands for all of it: keep it, sign it, demand it in a check.
"""
CHECK_DESCRIPTION = """\
Check a bundle offline: every file against the manifest, documents against their schemas, everything that follows
from inputs and results derived again and compared byte for byte, certificates in rational arithmetic about the system
built anew from the bundled inputs, counterexamples replayed on it, probabilities without a certificate enclosed by
the second engine. What is wrong is listed, one line each, and so is what was not checked. Whether requirements are
met is another matter: exit code 0 means that nothing is wrong, 4 that it was changed or cannot be read, 5 that the
program contradicts itself.
"""


def add_evidence_arguments(commands: Any) -> None:
    """Add the command `evidence` with its subcommands."""
    evidence = commands.add_parser(
        "evidence",
        help="evidence for a safety case: build a bundle, check one, rates per hour",
        description="Evidence for a safety case.",
    )
    below = evidence.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_build(below)
    _add_check(below)
    add_verb(below, "evidence rate")


def _add_build(commands: Any) -> None:
    build = commands.add_parser(
        "build",
        help="make a bundle of evidence",
        description=BUILD_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    build.set_defaults(command=_build)
    build.add_argument("spec", metavar="SPEC", help="requirements in LTL (.ltl); the file names the system model")
    build.add_argument("--cm", metavar="FILE", required=True, help="confusion matrices (.json)")
    build.add_argument("--context", metavar="FILE", help="what people declare about the case (.toml)")
    build.add_argument(
        "--with",
        dest="given",
        action="append",
        default=[],
        metavar="RESULT",
        help="a result made elsewhere, to be put in as it is (.json); repeat",
    )
    add_scenario_arguments(build.add_argument_group("scenarios (what is named here replaces what the spec names)"))
    add_channel_arguments(build.add_argument_group("what the matrices mean"))
    add_confidence_arguments(build.add_argument_group("how sure"))
    add_engine_arguments(build.add_argument_group("engines and limits"))
    output = build.add_argument_group("output")
    output.add_argument(
        "-o", "--output", metavar="BUNDLE", required=True, help="a folder, or an archive if it ends in .zip"
    )
    output.add_argument("--force", action="store_true", help="replace a bundle that is there already")
    output.add_argument("--json", action="store_true", help="print what was built as JSON")


def _add_check(commands: Any) -> None:
    check = commands.add_parser(
        "check",
        help="check a bundle of evidence",
        description=CHECK_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    check.set_defaults(command=_check)
    check.add_argument("bundle", metavar="BUNDLE", help="a folder or a zip archive")
    check.add_argument(
        "--digest", type=digest, metavar="HEX", help="SHA-256 that the manifest must have, as build printed it"
    )
    check.add_argument(
        "--anew",
        action="store_true",
        help="compute every result again, byte for byte, and every probability as an exact fraction by Storm",
    )
    add_limit_arguments(check)
    check.add_argument("--json", action="store_true", help="print what was found as JSON")


def digest(text: str) -> str:
    """A SHA-256 in hexadecimal, for `argparse`."""
    if not re.fullmatch(r"[0-9a-fA-F]{64}", text):
        raise argparse.ArgumentTypeError("expected 64 hexadecimal digits")
    return text.lower()


def _build(arguments: argparse.Namespace) -> int:
    from verifier.cli.evidence import build_command

    return build_command(arguments)


def _check(arguments: argparse.Namespace) -> int:
    from verifier.cli.evidence import check_command

    return check_command(arguments)
