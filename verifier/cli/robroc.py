"""The command `verify robroc`: check what is to be written, call, print and write."""

from __future__ import annotations

from functools import partial

from verifier.cli.closedloop import give
from verifier.cli.invocation import Command
from verifier.cli.targets import check_targets
from verifier.cli.terminal import progress_bar
from verifier.closedloop.robroc_request import matrix_families, robroc_result
from verifier.closedloop.settings import RobrocSettings


def robroc_command(arguments: RobrocSettings, command: Command) -> int:
    """Run `verify robroc` and give its exit code."""
    matrix_families(arguments)  # what does not fit together is refused first
    check_targets(arguments)
    give(arguments, robroc_result(arguments, partial(progress_bar, what="thresholds")), {}, command)
    return 0
