"""The arguments of `verify require`, and what they mean.

Only light modules are imported at the top, so that `verify --help` answers at once.
"""

from __future__ import annotations

import argparse
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from verifier.base.errors import UsageError, shown
from verifier.cli.arguments import (
    SEMANTICS,
    add_channel_arguments,
    add_engine_arguments,
    add_scenario_arguments,
)

if TYPE_CHECKING:
    from verifier.analysis.recall.requirements import Target
    from verifier.questions.require.question import Question

MODES = ("common", "factor", "bin", "cell", "cost")

DESCRIPTION = """\
The least recall with which the system meets a requirement, in the bins that make a difference to it. Storm confirms
the answer; --box proves a floor for every matrix above it.

  verify require SPEC.ltl --cm RESULTS.json --requirement NAME
  verify require SPEC.ltl --cm RESULTS.json --requirement NAME --mode cell --class ped --bin 5
"""


def add_require_arguments(commands: Any) -> None:
    """Add the command `require`."""
    require = commands.add_parser(
        "require",
        help="what recall a requirement asks of the detector",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    require.set_defaults(command=_require, no_confidence=True, verdict_from="point", strict=False)
    require.add_argument("spec", metavar="SPEC", help="requirements in LTL (.ltl); the file names the system model")
    require.add_argument("--cm", metavar="FILE", required=True, help="confusion matrices to start from (.json)")
    _add_question_arguments(require.add_argument_group("what is asked"))
    add_scenario_arguments(
        require.add_argument_group("scenarios (what is named here replaces what the spec names; one --requirement)")
    )
    channel = require.add_argument_group("what the matrices mean")
    add_channel_arguments(channel)
    channel.add_argument(
        "--assume-memoryless",
        action="store_true",
        help="accept an answer although the data contradict the memoryless detector (else exit code 3)",
    )
    add_engine_arguments(require.add_argument_group("engines and limits"))
    output = require.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print the result as JSON instead of a table")
    output.add_argument("-o", "--output", metavar="FILE", help="write the result as JSON")
    output.add_argument("--csv", metavar="FILE", help="write one row per planner and cell")


def _add_question_arguments(group: Any) -> None:
    group.add_argument(
        "--target", metavar="TARGET", help="instead of the spec's, as 0.95 (at least) or '<= 0.01' or '> 1/3'"
    )
    group.add_argument(
        "--mode",
        choices=MODES,
        default="common",
        help="one recall for all cells, one factor on all miss rates, one bin, one cell, or the cheapest recalls "
        "(default: common)",
    )
    group.add_argument(
        "--class",
        dest="label",
        action="append",
        default=[],
        metavar="NAME",
        help="only this true label, as ped or obs+ped; repeat",
    )
    group.add_argument(
        "--bin", action="append", type=float, default=[], metavar="METRES", help="only the bin that holds it; repeat"
    )
    group.add_argument(
        "--cost", metavar="FILE", help="prices of recall (.csv: distance_m,price[,class]); implies --mode cost"
    )
    group.add_argument("--box", action="store_true", help="also the floor above which every matrix is good enough")
    group.add_argument(
        "--box-rest",
        choices=("free", "measured"),
        default="free",
        help="columns without a floor (default: free)",
    )
    group.add_argument(
        "--semantics",
        choices=SEMANTICS,
        default="every-state",
        help="matrices of the box that may differ from state to state, or one throughout (default: every-state)",
    )
    group.add_argument("--decimals", type=int, default=6, metavar="N", help="of recalls and factors (default: 6)")
    group.add_argument("--points", type=int, default=257, metavar="N", help="first grid of the search (default: 257)")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="of --mode cost (default: 0)")


def _require(arguments: argparse.Namespace) -> int:
    from verifier.cli.require import require_command

    return require_command(arguments)


def question(arguments: argparse.Namespace) -> Question:
    """What the arguments ask.

    Raises:
        UsageError: an argument that cannot be read; InputError: a price file that cannot.
    """
    from verifier.questions.require.question import Question, read_prices

    if arguments.cost is not None and arguments.mode not in ("common", "cost"):
        raise UsageError(f"--cost belongs to --mode cost, not to --mode {arguments.mode}")
    for metres in arguments.bin:
        if not 0 <= metres < float("inf"):
            raise UsageError(f"--bin: expected a distance in metres from 0, got {metres:g}")
    return Question(
        target=None if arguments.target is None else parse_target(arguments.target),
        mode="cost" if arguments.cost is not None else arguments.mode,
        labels=tuple(arguments.label),
        distances_m=tuple(arguments.bin),
        prices=None if arguments.cost is None else read_prices(arguments.cost),
        box=arguments.box,
        rest=arguments.box_rest,
        semantics=arguments.semantics.replace("-", "_"),
        decimals=arguments.decimals,
        points=arguments.points,
        seed=arguments.seed,
    )


def parse_target(text: str) -> Target:
    """The target that `0.95`, `>= 0.95`, `< 1/3` means."""
    from verifier.analysis.recall.requirements import Target

    found = re.fullmatch(r"\s*(>=|>|<=|<)?\s*(\d{1,30}(?:\.\d{1,30})?)(?:/(\d{1,30}))?\s*", text)
    if not found or (found[3] is not None and int(found[3]) == 0):
        raise UsageError(f"--target: expected a probability as 0.95, '>= 0.95' or '<= 1/100', got {shown(text)}")
    number = Fraction(found[2]) / int(found[3] or 1)
    if number > 1:
        raise UsageError(f"--target: a probability is at most 1, got {shown(text)}")
    return Target(found[1] or ">=", number)
