"""What an engine answers, and what both do: one number per initial state, with bounds."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import EngineError, NoAnswerError

PROBABILITY_TOLERANCE = 1e-9
"""How far from [0, 1], or outside its own bounds, a probability may lie through rounding and iteration alone."""


ONE_ENGINE = "one engine"
"""How the remark of a number begins that no second engine confirms."""


class NoProbabilityError(EngineError):
    """An engine answered what cannot be a probability."""


def alone(
    failure: EngineError | NoAnswerError, reported: str = "are the batch engine's value and its proven bounds"
) -> str:
    """The remark of a number of the batch engine, for which Storm has no answer, and why."""
    reason = failure.message if isinstance(failure, NoAnswerError) else str(failure)
    return f"{ONE_ENGINE}: {reason}. Reported {reported}"


@dataclass(frozen=True, eq=False)
class CheckedValues:
    """Probabilities of one formula, or gains, at the m initial states of a model, in increasing order of the states.

    An answer is refused, never repaired: nothing is clamped to [0, 1] or moved between its bounds.

    Attributes:
        value: (m,) float64, the probabilities; rounded from `fractions` when there are any.
        lower: (m,) float64 or None, lower bounds of the probabilities in the chain with the given doubles.
        upper: (m,) float64 or None, upper bounds; given exactly when `lower` is. Both hold up to the rounding
            of double arithmetic (some 1e-16 per operation), which no engine here encloses.
        fractions: the probabilities without any error, or None when the engine computed with doubles.
        engine: what computed them, as a person would cite it, for example "Storm 2.0.0 (exact)".
        most: what none of them can exceed: 1 for probabilities, infinity for gains.

    Raises:
        EngineError: a value is no number, lies outside [0, 1] or its bounds by more than
            `PROBABILITY_TOLERANCE`, or a lower bound exceeds its upper bound.
        ValueError: the arrays do not fit together. It is an error of the program.
    """

    value: NDArray[np.float64]
    lower: NDArray[np.float64] | None
    upper: NDArray[np.float64] | None
    fractions: tuple[Fraction, ...] | None
    engine: str
    most: float = 1.0

    def __post_init__(self) -> None:
        if (self.lower is None) != (self.upper is None):
            raise ValueError("bounds come in pairs")
        for array in (self.value, self.lower, self.upper):
            if array is not None and (array.shape != (len(self.value),) or array.dtype != np.float64):
                raise ValueError("every initial state needs one double for its value and for each of its bounds")
        self._check_probabilities("a probability" if self.most == 1 else "a gain", self.value)
        if self.lower is not None and self.upper is not None:
            self._check_bounds(self.lower, self.upper)
        if self.fractions is not None:
            self._check_fractions(self.fractions)

    def _check_probabilities(self, kind: str, array: NDArray[np.float64]) -> None:
        # Written so that NaN, for which every comparison is false, counts as a fault.
        wrong = ~((array >= -PROBABILITY_TOLERANCE) & (array <= self.most + PROBABILITY_TOLERANCE))
        if np.any(wrong):
            raise NoProbabilityError(f"{self.engine} answered {array[wrong.argmax()]} for {kind}")

    def _check_bounds(self, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> None:
        self._check_probabilities("a lower bound of a probability", lower)
        self._check_probabilities("an upper bound of a probability", upper)
        wrong = lower > upper
        if np.any(wrong):
            at = int(wrong.argmax())
            raise EngineError(f"{self.engine} answered the bounds {lower[at]} and {upper[at]}, in the wrong order")
        slack = PROBABILITY_TOLERANCE * np.maximum(1, np.nan_to_num(self.value))  # finite beside an infinite value
        wrong = (self.value < lower - slack) | (self.value > upper + slack)
        if np.any(wrong):
            at = int(wrong.argmax())
            bounds = f"[{lower[at]}, {upper[at]}]"
            raise EngineError(f"{self.engine} answered {self.value[at]}, outside its own bounds {bounds}")

    def _check_fractions(self, fractions: tuple[Fraction, ...]) -> None:
        if len(fractions) != len(self.value):
            raise ValueError("every initial state needs one fraction")
        for fraction, rounded in zip(fractions, self.value.tolist(), strict=True):
            if not 0 <= fraction <= self.most:
                raise EngineError(f"{self.engine} answered an exact probability outside [0, 1], about {rounded}")
            if float(fraction) != rounded:
                raise ValueError("values must be their fractions, rounded to the nearest double")


@dataclass(frozen=True, eq=False)
class TwoEngineValues:
    """What both engines say about one formula, or about what is gained, at the m initial states.

    Attributes:
        probability: (m,) Storm's value; the batch engine's where `remark` says so.
        lower, upper: (m,) bounds of the true value, which also hold `probability`: what both engines prove, widened
            by how far rounding the chain's probabilities to doubles can move the value. Equal to the value in exact
            mode; the doubles around it where exact arithmetic was only used to settle a point.
        fractions: the exact values, or None; None too for one that is infinite.
        second: (m,) the batch engine's value.
        engine: what computed `probability`, for citing.
        remark: what a reader must know about how it was computed, if anything.
        counted: whether steps were counted because the product is out of reach, for intervals and bounds as well.
    """

    probability: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    fractions: tuple[Fraction | None, ...] | None
    second: NDArray[np.float64]
    engine: str
    remark: str | None = None
    counted: bool = False
