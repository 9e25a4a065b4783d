"""The arguments of `verify compare`, and what they mean.

Only light modules are imported at the top, so that `verify --help` answers at once.
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from verifier.base.errors import UsageError, shown
from verifier.cli.arguments import (
    add_channel_arguments,
    add_confidence_arguments,
    add_engine_arguments,
    add_scenario_arguments,
)
from verifier.cli.ci_arguments import add_drop_rule, drop_rule, largest_drop

if TYPE_CHECKING:
    from verifier.questions.compare.story import CompareOptions

DESCRIPTION = """\
Compare planners and detectors under one or several specs: probabilities by Storm, and from common draws of the
matrices the chance that one is better than another, of being best, and where the order changes along a sweep.

  verify compare SPEC.ltl --cm old=OLD.json --cm new=NEW.json --planner all
  verify compare SPEC.ltl --cm new=NEW.json --baseline RUN.json --max-drop 0.01
"""


def add_compare_arguments(commands: Any) -> None:
    """Add the command `compare`."""
    compare = commands.add_parser(
        "compare",
        help="which planner and which detector, and how sure that is",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    compare.set_defaults(command=_compare)
    compare.add_argument("spec", nargs="+", metavar="SPEC", help="requirements in LTL (.ltl)")
    compare.add_argument(
        "--cm", action="append", required=True, metavar="NAME=FILE", help="a detector's matrices (.json); repeat"
    )
    _add_comparison_arguments(compare.add_argument_group("comparison"))
    add_scenario_arguments(compare.add_argument_group("scenarios (what is named here replaces what the specs name)"))
    add_channel_arguments(compare.add_argument_group("what the matrices mean"))
    add_confidence_arguments(compare.add_argument_group("how sure"))
    add_engine_arguments(compare.add_argument_group("engines and limits"))
    _add_output_arguments(compare.add_argument_group("output"))


def _add_comparison_arguments(group: Any) -> None:
    group.add_argument("--pareto", metavar="A,B", help="look at two requirements together")
    group.add_argument("--baseline", metavar="FILE", help="the JSON of an earlier verify run or verify compare")
    group.add_argument(
        "--max-drop",
        metavar="X",
        help="exit with 1 if a probability is worse by more than X than in the baseline",
    )
    add_drop_rule(group)


def _add_output_arguments(group: Any) -> None:
    group.add_argument("--json", action="store_true", help="print the result as JSON instead of tables")
    group.add_argument("-o", "--output", metavar="FILE", help="write the result as JSON")
    group.add_argument("--csv", metavar="FILE", help="write one row per requirement and contender")
    group.add_argument(
        "--plot", metavar="FILE", help="probabilities with intervals, and along sweeps (.png, .svg, .pdf)"
    )
    group.add_argument(
        "--certificates",
        metavar="FILE",
        help="write the proof of every probability (.zip), which verifier/analysis/kernel.py checks",
    )
    group.add_argument("--pairs", action="store_true", help="show the chances of all pairs, too")


def _compare(arguments: argparse.Namespace) -> int:
    from verifier.cli.compare import compare_command

    return compare_command(arguments)


def compare_options(arguments: argparse.Namespace) -> CompareOptions:
    """What the arguments ask.

    Raises:
        UsageError: an argument that cannot be read; InputError: a baseline that cannot.
    """
    from verifier.cli.gates import read_baseline
    from verifier.questions.compare.story import CompareOptions

    drop = largest_drop(arguments.max_drop, arguments.baseline)
    return CompareOptions(
        pareto=None if arguments.pareto is None else _two(arguments.pareto),
        baseline=None if arguments.baseline is None else read_baseline(arguments.baseline),
        max_drop=Fraction(0) if drop is None else drop,
        least_chance=drop_rule(arguments.drop_from, gated=drop is not None),
    )


def detectors(arguments: argparse.Namespace) -> dict[str, str]:
    """Name -> file of each detector; a file without a name is called after itself."""
    found: dict[str, str] = {}
    for text in arguments.cm:
        name, equals, path = text.partition("=")
        if not equals:
            name, path = PurePath(text).stem, text
        name, path = name.strip(), path.strip()
        if not name or not path or not name.isprintable():
            raise UsageError(f"--cm: expected NAME=FILE, got {shown(text)}")
        if name in found:
            raise UsageError(f"--cm: two detectors are called {shown(name)}: name them, as --cm NAME=FILE")
        found[name] = path
    return found


def _two(text: str) -> tuple[str, str]:
    names = [part.strip() for part in text.split(",")]
    if len(names) != 2 or not all(names):
        raise UsageError(f"--pareto: expected two requirements as A,B, got {shown(text)}")
    return names[0], names[1]
