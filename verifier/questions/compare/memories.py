"""What detectors that are compared remember."""

from collections.abc import Sequence

from verifier.base.errors import UsageError
from verifier.study.case import Study
from verifier.study.options import RunOptions


def with_default_memory(options: RunOptions, best_planner: int | None) -> RunOptions:
    """The options with the memory that the data support, where none is asked for and the best planner is not either.

    Raises:
        UsageError: memory is asked for together with the best planner.
    """
    if best_planner is None:
        return options.by_default()
    if options.remembers:
        raise UsageError(
            "--best-planner: a planner that remembers every report learns what the detector remembers, and such "
            "games are solved for memoryless detectors only: leave it out, or name --memory none"
        )
    return options


def one_memory(detector: str, studies: Sequence[Study]) -> None:
    """Refuse a detector of which the data support other contexts under each spec; UsageError."""
    used = dict.fromkeys(study.memory for study in studies)
    if len(used) > 1:
        raise UsageError(
            f"detector {detector}: what its data support depends on the classes of a spec's model, here "
            f"{' and '.join(used)}: name one with --memory"
        )
