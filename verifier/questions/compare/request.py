"""What is asked of `verify compare`: what is looked at, the memory of the detectors, the gate against a baseline."""

from collections.abc import Sequence
from dataclasses import dataclass

from verifier.base.errors import UsageError
from verifier.questions.compare.gating import Baseline
from verifier.questions.settings import ComparisonSettings, LookSettings
from verifier.study.case import Study
from verifier.study.options import RunOptions


@dataclass(frozen=True)
class CompareOptions(LookSettings):
    """Every choice of a comparison beside its files and those of `RunOptions`.

    Attributes:
        baseline: an earlier result to hold this one against, for the drop that is allowed.
    """

    baseline: Baseline | None = None


def compare_options(arguments: ComparisonSettings, baseline: Baseline | None = None) -> CompareOptions:
    """What settings ask, `baseline` being what is read from the file of that name."""
    return CompareOptions(**vars(arguments.look), baseline=baseline)


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
