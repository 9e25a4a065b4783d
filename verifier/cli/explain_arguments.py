"""The arguments of `verify explain`. Only light modules are imported at the top."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from verifier.cli.arguments import (
    add_channel_arguments,
    add_confidence_arguments,
    add_engine_arguments,
    add_scenario_arguments,
    positive,
)

if TYPE_CHECKING:
    from verifier.analysis.counterexamples.explanation import ExplainSettings

EXPLAIN_DESCRIPTION = """\
Say why each requirement of SPEC has the probability it has: which wrong reports, alone or together, it is lost by
(with --record the frames in which they happened), the most probable patterns of losing runs, what to fix first, and
where to label more data. The worst scenario of each requirement is explained.
"""


def add_explain_arguments(commands: Any) -> None:
    """Add the command `explain`."""
    explain = commands.add_parser(
        "explain",
        help="how a requirement fails, what that hangs on, what to fix and where to label",
        description=EXPLAIN_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    explain.set_defaults(command=_explain)
    explain.add_argument("spec", metavar="SPEC", help="requirements in LTL (.ltl); the file names the system model")
    explain.add_argument("--cm", metavar="FILE", required=True, help="confusion matrices (.json)")
    _add_explanation_arguments(explain.add_argument_group("explanation"))
    add_scenario_arguments(explain.add_argument_group("scenarios (what is named here replaces what the spec names)"))
    add_channel_arguments(explain.add_argument_group("what the matrices mean"))
    add_confidence_arguments(explain.add_argument_group("how sure"))
    add_engine_arguments(explain.add_argument_group("engines and limits"))
    _add_output_arguments(explain.add_argument_group("output"))


def _add_explanation_arguments(group: Any) -> None:
    group.add_argument(
        "--patterns", type=positive(int), default=5, metavar="K", help="most patterns of losing runs (default: 5)"
    )
    group.add_argument(
        "--members", type=positive(int), default=1, metavar="N", help="most runs of each pattern (default: 1)"
    )
    group.add_argument(
        "--whole-runs",
        action="store_true",
        help="tell runs apart up to the violation, not only up to where it is certain",
    )
    group.add_argument(
        "--moves", type=positive(int), default=10, metavar="N", help="most rows of the other tables (default: 10)"
    )
    group.add_argument("--record", metavar="FILE", help="per-object record of the counting (.csv, .parquet)")
    group.add_argument(
        "--map", metavar="X,V", help="one or two variables for the map of P over states (default: the first two)"
    )


def _add_output_arguments(group: Any) -> None:
    group.add_argument("--json", action="store_true", help="print the result as JSON instead of tables")
    group.add_argument("-o", "--output", metavar="FILE", help="write the result as JSON")
    group.add_argument(
        "--plot", metavar="FILE", help="draw what P hangs on, and P over the states (.png, .svg, .pdf)"
    )


def explain_settings(arguments: argparse.Namespace) -> ExplainSettings:
    """How much is to be said; a map is made where it can be seen."""
    from verifier.analysis.counterexamples.explanation import ExplainSettings
    from verifier.analysis.intervals.posterior import prior_weight

    variables = () if arguments.map is None else tuple(part.strip() for part in arguments.map.split(","))
    seen = bool(arguments.json or arguments.output or arguments.plot or variables)
    return ExplainSettings(
        patterns=arguments.patterns,
        members=arguments.members,
        whole_runs=arguments.whole_runs,
        moves=arguments.moves,
        level=arguments.confidence,
        prior=prior_weight(arguments.prior),
        variables=variables,
        with_map=seen,
    )


def _explain(arguments: argparse.Namespace) -> int:
    from verifier.cli.explain import explain_command

    return explain_command(arguments)
