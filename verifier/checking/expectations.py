"""Numbers beside the probability of a formula, by both engines: gains, quantiles and conditional probabilities.

| number                         | batch engine                          | Storm                              |
|--------------------------------|---------------------------------------|------------------------------------|
| gains until a condition holds  | `batch.expected_gains`, with bounds   | `R=? [F ..]`, compared             |
| gains of the first N steps     | `stepping.gained`, with bounds        | `R=? [C<=N]`, compared             |
| quantile of a time, k steps    | `stepping.exact_quantiles`, decided   | `P=? [F<=k ..]` and `F<=k-1`       |
| P(A given B)                   | the quotient of P(A and B) and P(B), each with the bounds that both engines prove |

Storm's gains are the ones reported, within the batch engine's bounds, which count all rounding. In exact arithmetic
only Storm's fractions count. Where the goal may be missed the value is infinite, and Storm is not asked for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from verifier.base.arrays import Floats, Mask
from verifier.base.budget import Clock, out_of_memory, share_of_memory
from verifier.base.errors import EngineError, LimitError, NoAnswerError
from verifier.base.numbers import number_text
from verifier.chains.chain import MarkovChain
from verifier.chains.texts import Model
from verifier.chains.umb import Gains
from verifier.checking.asking import MOST_STORM_STEPS, MOST_STORM_WORK, STEPS_FOR_ITERATION, seconds_for_storm
from verifier.checking.batch import BatchResult, expected_gains, satisfaction_probabilities
from verifier.checking.enclosure import (
    AGREEMENT,
    CheckedValues,
    TwoEngineValues,
    alone,
    doubles_around,
    holds,
    outwards,
)
from verifier.checking.process import RefusedError, StormProcess
from verifier.checking.product import Product, product_with
from verifier.checking.settings import EngineSettings
from verifier.checking.stepping import NEVER, Steps, exact_quantiles, gained
from verifier.checking.storm import GAINS, OPERATORS
from verifier.checking.two_engines import EXACT_S, EXACT_STATES, WIDTH
from verifier.language.expressions.syntax import Interval, Node, Temporal, children
from verifier.language.ltl import to_storm
from verifier.systems.space import truth


@dataclass(frozen=True, eq=False)
class Expectation:
    """What is asked of a chain about what it gains, or about when a condition holds.

    Attributes:
        formula: `F condition` over the chain's labels, or any where steps are counted.
        told: the same as its reader wrote it, for messages.
        gains: (n,) what a step from each state gains; not looked at for a quantile.
        gain_error: largest relative error of each, beyond that of the chain's probabilities.
        exact_gains: the same as fractions.
        steps: for the gains of so many steps; None for those until the condition holds.
        level: for the quantile of the time until it holds, in steps of `step_s`; None for gains.
        target: what it is compared with, if anything.
    """

    formula: Node
    told: str
    gains: Floats
    gain_error: float
    exact_gains: Callable[[], Sequence[Fraction]]
    steps: int | None = None
    level: Fraction | None = None
    step_s: Fraction = Fraction(1)
    target: Fraction | None = None


@dataclass(frozen=True, eq=False)
class Expecting:
    """Both engines, asked about one chain; attributes as the arguments of `answers_within_limits`."""

    chain: MarkovChain
    storm: StormProcess
    settings: EngineSettings
    value_error: float
    exact_chain: Callable[[], MarkovChain]
    spent_s: float = 0.0

    def answer(self, asked: Expectation, product: Product | None = None) -> TwoEngineValues | LimitError:
        """What both engines say, or why there is no answer.

        Args:
            asked: the question.
            product: of the formula with a graph that the chain is a part of, as for `answers_within_limits`.

        Raises:
            EngineError: the engines disagree, or neither has an answer.
        """
        clock = Clock(self.settings.timeout_s)
        clock.spend(self.spent_s)
        try:
            if self.chain.rounding_defect > 0:
                raise NoAnswerError("expected gains and times of rounded transitions are not computed")
            with clock.running(f"checking {asked.told}"), share_of_memory() as memory:
                if asked.level is not None:
                    return self._quantile(asked, self._product(asked, product), memory)
                return self._gains(asked, product, clock, memory)
        except LimitError as error:
            return error
        except MemoryError:
            return out_of_memory(self.settings.memory_bytes)

    def _product(self, asked: Expectation, product: Product | None) -> Product:
        return product_with(self.chain, asked.formula, product, self.settings.product_states)

    def _reached(self, product: Product) -> BatchResult:
        """The probability that the condition holds at some time."""
        return satisfaction_probabilities(product, self.chain.probabilities, value_error=self.value_error)

    def _gains(
        self, asked: Expectation, product: Product | None, clock: Clock, memory: int | None
    ) -> TwoEngineValues:
        remark = None
        if asked.steps is None:
            product = self._product(asked, product)
            batch = expected_gains(
                product,
                self.chain.probabilities,
                asked.gains[None],
                value_error=self.value_error,
                gain_error=asked.gain_error,
            )
            if np.isinf(batch.probability).any():
                least = float(self._reached(product).probability[0].min())
                remark = f"'{asked.told}' has probability {number_text(least)} < 1; ask P, or R given"
        else:
            batch = self._of_steps(asked, asked.steps)
        value, finite = batch.probability[0], np.isfinite(batch.probability[0])
        lower = outwards(batch.lower[0], -batch.representation_bound[0], np.inf)
        upper = outwards(batch.upper[0], batch.representation_bound[0], np.inf)
        if not finite.any():
            return TwoEngineValues(value, value, value, None, value, "batch engine", remark)
        values = TwoEngineValues(value, lower, upper, None, value, "batch engine", remark)
        try:
            told = self._storm_gains(asked, self.chain, finite, batch, clock, memory, exact=self.settings.exact)
        except (RefusedError, NoAnswerError) as error:
            if self.settings.exact:
                raise
            return replace(values, remark="; ".join(filter(None, (remark, alone(error)))))
        return self._settled(asked, _with_storm(values, told, finite), finite, batch, clock, memory)

    def _of_steps(self, asked: Expectation, count: int) -> BatchResult:
        chain = self.chain
        steps = Steps(chain.indptr, chain.indices, chain.probabilities[:, None], np.arange(chain.transition_count))
        value = gained(steps, asked.gains[:, None], count)[chain.initial].T
        rounding, moved = steps.error_after(count, self.value_error)
        error, off = (value * share * (1 + 2.0**-40) for share in (rounding + asked.gain_error, moved))
        zero = np.zeros_like(value)
        return BatchResult(value, error, off, zero + count, np.maximum(value - error, 0), value + error)

    def _storm_gains(
        self,
        asked: Expectation,
        chain: MarkovChain,
        finite: Mask,
        batch: BatchResult,
        clock: Clock,
        memory: int | None,
        *,
        exact: bool,
        seconds: float | None = None,
    ) -> CheckedValues:
        """Storm's answer at the initial states where it is finite, which agrees with the batch engine's."""
        if asked.steps is None:
            text = f"F {to_storm(children(asked.formula)[0])}"  # no parentheses around it, for a reward
        else:
            text = f"C<={asked.steps}"
            refuse_long(asked.steps, chain)
        gains: Gains = asked.exact_gains() if exact else asked.gains
        answer = self.storm.check(
            replace(chain, initial=chain.initial[finite]),
            [text],
            exact=exact,
            direct=bool(np.any(batch.expected_steps[0, finite] > STEPS_FOR_ITERATION)) and not exact,
            operator=GAINS[0],
            timeout_s=seconds_for_storm(clock.left_s, 0.0, exact) if seconds is None else seconds,
            memory_bytes=memory,
            gains=gains,
        )[0]
        off = np.maximum(answer.value - batch.upper[0, finite], batch.lower[0, finite] - answer.value)
        allowed = AGREEMENT * np.maximum(batch.upper[0, finite], 1) + batch.representation_bound[0, finite]
        if np.any(~(off <= allowed)):
            at = int(np.argmax(off - allowed))
            raise EngineError(
                f"the engines disagree on {asked.told}: {answer.engine} says {float(answer.value[at])!r}, the batch "
                f"engine says {float(batch.probability[0, finite][at])!r}"
            )
        return answer

    def _settled(
        self,
        asked: Expectation,
        values: TwoEngineValues,
        finite: Mask,
        batch: BatchResult,
        clock: Clock,
        memory: int | None,
    ) -> TwoEngineValues:
        """With the doubles around Storm's fractions where bounds are wide, or hold the target, and that is quick."""
        lower, upper = values.lower[finite], values.upper[finite]
        relative_to = np.maximum(values.second[finite], 1)
        wide = bool(np.any(upper - lower > WIDTH * relative_to)) or holds(lower, upper, asked.target)
        if self.settings.exact or not wide or self.chain.state_count > EXACT_STATES:
            return values
        left = clock.left_s
        seconds = EXACT_S if left is None else min(EXACT_S, left)
        try:
            chain = self.exact_chain()
            told = self._storm_gains(asked, chain, finite, batch, clock, memory, exact=True, seconds=seconds)
        except (RefusedError, NoAnswerError):
            return values
        ends = np.array([doubles_around(fraction) for fraction in told.fractions or ()])
        parts = (told.value, ends[:, 0], ends[:, 1])  # elsewhere all three are infinite
        value, lower, upper = (_merged(values.probability, finite, part) for part in parts)
        return replace(values, probability=value, lower=lower, upper=upper)

    def _quantile(self, asked: Expectation, product: Product, memory: int | None) -> TwoEngineValues:
        chain, (condition,) = self.chain, children(asked.formula)
        goal = truth(condition, chain.labels, chain.state_count)
        assert asked.level is not None

        def surely() -> list[Fraction]:
            told = self.storm.check(
                self.exact_chain(), [to_storm(asked.formula)], exact=True, timeout_s=EXACT_S, memory_bytes=memory
            )[0]
            return list(told.fractions or ())

        quantiles = exact_quantiles(chain, goal, asked.level, self.value_error, surely, self.exact_chain)
        steps = [None if k == NEVER else k for k in quantiles.tolist()]
        fractions = [None if k is None else k * asked.step_s for k in steps]
        value = np.array([np.inf if fraction is None else float(fraction) for fraction in fractions])
        remark, engine = None, "batch engine"
        if None in steps:
            never = quantiles == NEVER
            most = float(self._reached(product).probability[0, never].max())
            remark = f"'{asked.told}' has probability {number_text(most)}, and no time is enough for {asked.level}"
        try:
            confirming = (chain, condition, steps, asked.level, asked.told, self.settings, memory)
            engine = confirmed_by(self.storm, *confirming) or engine
        except (RefusedError, NoAnswerError) as error:
            remark = "; ".join(filter(None, (remark, alone(error, "is what the batch engine has proven"))))
        return TwoEngineValues(value, value, value, tuple(fractions), value, engine, remark)


def refuse_long(steps: int, model: Model) -> None:
    """NoAnswerError where Storm would take too long for gains of so many steps."""
    if steps > MOST_STORM_STEPS or steps * model.transition_count > MOST_STORM_WORK:
        raise NoAnswerError(f"Storm would not finish {steps} steps within the limits")


def confirmed_by(
    storm: StormProcess,
    model: Model,
    condition: Node,
    steps: Sequence[int | None],
    level: Fraction,
    told: str,
    settings: EngineSettings,
    memory: int | None,
    operator: str = OPERATORS[0],
) -> str | None:
    """Who confirms quantiles; EngineError where Storm's probabilities (with this operator) contradict them."""
    asked = sorted({number for k in steps if k is not None for number in (k - 1, k) if number >= 0})
    if not asked:
        return None
    if len(asked) * asked[-1] * model.transition_count > MOST_STORM_WORK:
        raise NoAnswerError(f"Storm would not finish {asked[-1]} steps within the limits")
    texts = [to_storm(Temporal("F", (condition,), Interval(0, k))) for k in asked]
    answers = storm.check(
        model, texts, exact=settings.exact, operator=operator, timeout_s=settings.timeout_s, memory_bytes=memory
    )
    by_steps = dict(zip(asked, answers, strict=True))
    allowed = Fraction(0) if settings.exact else Fraction(AGREEMENT)
    for at, k in enumerate(steps):
        if k is None:
            continue
        now, before = (_at(by_steps[number], at) if number >= 0 else Fraction(0) for number in (k, k - 1))
        if now < level - allowed or before >= level + allowed:
            raise EngineError(
                f"the engines disagree on {told}: the batch engine says that {k} steps are the least for "
                f"{float(level):g}, {answers[0].engine} has {float(before)!r} before and {float(now)!r} then"
            )
    return f"batch engine, confirmed by {answers[0].engine}"


def _at(answer: CheckedValues, number: int) -> Fraction:
    return Fraction(float(answer.value[number])) if answer.fractions is None else answer.fractions[number]


def _with_storm(values: TwoEngineValues, told: CheckedValues, finite: Mask) -> TwoEngineValues:
    """Storm's values within the batch engine's bounds."""
    value = _merged(values.probability, finite, told.value)
    if told.fractions is not None:
        exact = iter(told.fractions)
        fractions = tuple(next(exact) if is_finite else None for is_finite in finite.tolist())
        return replace(values, probability=value, lower=value, upper=value, fractions=fractions, engine=told.engine)
    ends = np.minimum(values.lower, value), np.maximum(values.upper, value)
    return replace(values, probability=value, lower=ends[0], upper=ends[1], engine=told.engine)


def _merged(whole: Floats, finite: Mask, part: Floats) -> Floats:
    result = whole.copy()
    result[finite] = part
    return result


def conditional(
    both: TwoEngineValues | LimitError, given: TwoEngineValues | LimitError, told: str
) -> TwoEngineValues | LimitError:
    """P(A given B) from P(A and B) and P(B); `told` is B as its reader wrote it."""
    if isinstance(both, LimitError):
        return both
    if isinstance(given, LimitError):
        return given
    if np.any(np.minimum(given.probability, given.second) <= 0):  # so it is where the upper bound is
        return NoAnswerError(f"'{told}' has probability 0: nothing is known given that it holds")
    value = np.minimum(both.probability / given.probability, 1.0)  # the quotient of roundings may be above
    second = np.minimum(both.second / given.second, 1.0)
    fractions = None
    if both.fractions is not None and given.fractions is not None:
        pairs = zip(both.fractions, given.fractions, strict=True)
        fractions = tuple(a / b for a, b in pairs if a is not None and b is not None)
        value = np.array([float(fraction) for fraction in fractions])
        lower = upper = value
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            lower = np.nextafter(both.lower / given.upper, -np.inf)
            upper = np.nextafter(np.where(given.lower > 0, both.upper / given.lower, 1.0), np.inf)
        lower = np.minimum(np.maximum(lower, 0), value)
        upper = np.maximum(np.minimum(upper, 1), value)
    remark = "; ".join(dict.fromkeys(filter(None, (both.remark, given.remark)))) or None
    counted = both.counted or given.counted
    return TwoEngineValues(value, lower, upper, fractions, second, both.engine, remark, counted)
