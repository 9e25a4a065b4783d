"""What settings of `verify compare` ask: the detectors, and the gate against a baseline."""

from fractions import Fraction

from verifier.base.errors import UsageError, shown
from verifier.questions.compare.comparing import CompareOptions
from verifier.questions.compare.gating import Baseline
from verifier.questions.settings import ComparisonSettings, drop_rule, largest_drop


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
