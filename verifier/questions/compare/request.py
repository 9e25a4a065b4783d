"""What is asked of `verify compare`: what is looked at, the memory of the detectors, the gate against a baseline."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from verifier.base.errors import UsageError, shown
from verifier.questions.compare.gating import Baseline
from verifier.questions.settings import ComparisonSettings, drop_rule, largest_drop
from verifier.study.case import Study
from verifier.study.options import RunOptions


@dataclass(frozen=True)
class CompareOptions:
    """Every choice of a comparison beside its files and those of `RunOptions`.

    Attributes:
        pareto: two requirements to look at together.
        baseline: an earlier result to hold this one against.
        max_drop: largest drop of a probability against the baseline that is allowed.
        least_chance: the chance from which on a larger drop fails; None to go by the probabilities alone.
        best_planner: steps within which the episodes of the best possible planner end; None to leave it out.
        metrics: whether detection metrics stand beside P.
    """

    pareto: tuple[str, str] | None = None
    metrics: bool = False
    baseline: Baseline | None = None
    max_drop: Fraction = Fraction(0)
    least_chance: Fraction | None = None
    best_planner: int | None = None

    def __post_init__(self) -> None:
        if self.pareto is not None and self.pareto[0] == self.pareto[1]:
            raise UsageError("the Pareto view needs two different requirements")
        if not 0 <= self.max_drop <= 1:
            raise UsageError(f"a drop of a probability lies between 0 and 1, got {float(self.max_drop):g}")
        if self.least_chance is not None and not 0 < self.least_chance < 1:
            raise UsageError(
                f"a probability that decides lies strictly between 0 and 1, got {float(self.least_chance):g}"
            )


def compare_options(arguments: ComparisonSettings, baseline: Baseline | None = None) -> CompareOptions:
    """What settings ask, `baseline` being what is read from the file of that name.

    Raises:
        UsageError: an argument that cannot be read.
    """
    if arguments.best_planner is not None and arguments.best_planner < 1:
        raise UsageError(f"--best-planner: expected a number of steps of at least 1, got {arguments.best_planner}")
    drop = largest_drop(arguments.max_drop, arguments.baseline)
    return CompareOptions(
        pareto=None if arguments.pareto is None else _two(arguments.pareto),
        baseline=baseline,
        best_planner=arguments.best_planner,
        metrics=arguments.metrics,
        max_drop=Fraction(0) if drop is None else drop,
        least_chance=drop_rule(arguments.drop_from, gated=drop is not None),
    )


def _two(text: str) -> tuple[str, str]:
    names = [part.strip() for part in text.split(",")]
    if len(names) != 2 or not all(names):
        raise UsageError(f"--pareto: expected two requirements as A,B, got {shown(text)}")
    return names[0], names[1]


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
