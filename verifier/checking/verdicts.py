"""Three-valued verdicts: what an interval of probabilities says about a target.

| verdict        | target P >= p       | meaning                                            |
|----------------|---------------------|----------------------------------------------------|
| `SATISFIED`    | lower bound >= p    | every probability within the bounds meets the target |
| `VIOLATED`     | upper bound < p     | none does                                          |
| `INCONCLUSIVE` | p lies in between   | the bounds do not decide                           |
| `NO_TARGET`    | (`P = ?`)           | nothing was asked                                  |

The other comparisons follow suit. Bounds and target are compared as exact fractions.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from fractions import Fraction

from verifier.errors import ExitCode


class Verdict(Enum):
    """What is known about a requirement."""

    SATISFIED = "satisfied"
    VIOLATED = "violated"
    INCONCLUSIVE = "inconclusive"
    NO_TARGET = "no target"

    @property
    def exit_code(self) -> ExitCode:
        """The exit code a command ends with when this is its worst verdict."""
        return {
            Verdict.VIOLATED: ExitCode.VIOLATED,
            Verdict.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
        }.get(self, ExitCode.SATISFIED)


SEVERITY = (Verdict.NO_TARGET, Verdict.SATISFIED, Verdict.INCONCLUSIVE, Verdict.VIOLATED)
"""From the least to the most severe."""


def verdict_of(lower: float | Fraction, upper: float | Fraction, comparison: str, target: Fraction | None) -> Verdict:
    """The verdict for a probability that lies within `lower..upper`.

    Args:
        lower: lower bound of the probability.
        upper: upper bound of the probability.
        comparison: one of >= > <= <, or = for `P = ?`.
        target: the probability asked for; None for `P = ?`.

    >>> verdict_of(0.94, 0.96, ">=", Fraction(95, 100))
    <Verdict.INCONCLUSIVE: 'inconclusive'>
    """
    if target is None:
        return Verdict.NO_TARGET
    low, high = Fraction(lower), Fraction(upper)
    holds = {
        ">=": (low >= target, high < target),
        ">": (low > target, high <= target),
        "<=": (high <= target, low > target),
        "<": (high < target, low >= target),
    }
    satisfied, violated = holds[comparison]
    if satisfied:
        return Verdict.SATISFIED
    return Verdict.VIOLATED if violated else Verdict.INCONCLUSIVE


def worst_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """The most severe of several: violated, then inconclusive, then satisfied, then no target."""
    return max(verdicts, key=SEVERITY.index, default=Verdict.NO_TARGET)
