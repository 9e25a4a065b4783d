"""The command `verify robroc`: check what is to be written, call, print and write."""

from __future__ import annotations

from functools import partial

from verifier.cli.closedloop import check_targets, give
from verifier.cli.invocation import Command
from verifier.cli.sources import with_models
from verifier.cli.terminal import progress_bar
from verifier.closedloop.robroc_request import matrix_families, robroc_result
from verifier.closedloop.settings import RobrocSettings


def robroc_command(arguments: RobrocSettings, command: Command) -> int:
    """Run `verify robroc` and give its exit code."""
    families = matrix_families(arguments)
    specs = [arguments.spec] if arguments.spec else []
    check_targets(arguments, {}, [*arguments.files, *with_models(specs), *families.values()])
    give(arguments, robroc_result(arguments, partial(progress_bar, what="thresholds")), {}, command)
    return 0
