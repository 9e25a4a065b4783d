"""Least and greatest probabilities where the world decides, and what is no probability of a formula, by both engines.

Storm's value is the one reported, as for chains. `analysis.robust.optimum` encloses it: by the probability under a
strategy, and by a proof that no strategy does better. A value outside the enclosure is an error, unless what Storm
says of the negation contradicts it; then, and where Storm has no answer, the enclosure is one engine's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from verifier.analysis.robust.optimal_conditional import GOAL, REACHED, OptimalConditional
from verifier.analysis.robust.optimal_steps import OptimalGain, OptimalQuantile, OptimalSteps
from verifier.analysis.robust.optimum import Between, Optimum, build_optimum
from verifier.base.arrays import ROUNDOFF, Floats
from verifier.base.budget import Clock, out_of_memory, share_of_memory
from verifier.base.errors import EngineError, InputError, LimitError, NoAnswerError
from verifier.base.numbers import number_text, significant
from verifier.chains.chain import DecisionProcess, MarkovChain, decision_process
from verifier.checking.enclosure import (
    AGREEMENT,
    ONE_ENGINE,
    CheckedValues,
    NoProbabilityError,
    TwoEngineValues,
    alone,
    doubles_around,
    holds,
)
from verifier.checking.expectations import Expectation, Expecting, conditional, confirmed_by, refuse_long
from verifier.checking.process import RefusedError, StormProcess
from verifier.checking.stepping import NEVER
from verifier.checking.storm import GAINS
from verifier.checking.two_engines import EXACT_S, EXACT_STATES, ONE_ENGINE_WIDTH, WIDTH, answers_within_limits
from verifier.language.expressions import exact_number, to_text
from verifier.language.expressions.syntax import Node, Operation, children
from verifier.language.ltl import to_storm
from verifier.perception.confusion import exact_rates, rates
from verifier.study.case import Case
from verifier.study.deciding import refuse_unknown

_OPERATORS = ("Pmin=?", "Pmax=?")


def optima_of(
    case: Case, process: DecisionProcess, conditions: Mapping[str, Node], storm: StormProcess, spent_s: float
) -> list[TwoEngineValues | LimitError]:
    """What both engines say about each requirement, or why there is no answer.

    Args:
        case: of a world that decides.
        process: what it may do, labelled with the conditions.
        conditions: of all formulas.
        storm: a running worker.
        spent_s: seconds that each time limit has lost already.

    Raises:
        EngineError: the engines disagree, or neither has an answer.
    """
    settings, answers = case.study.options.engines, list[TwoEngineValues | LimitError]()
    for number in range(len(case.study.requirements)):
        clock = Clock(settings.timeout_s)
        clock.spend(spent_s)
        try:
            with clock.running(f"checking {to_text(case.study.formulas[number].formula)[:200]}"):
                objective = case.objectives[number]
                assert isinstance(objective, Optimum)
                asking = _Asking(case, number, objective, process, conditions, storm, clock)
                with share_of_memory() as memory:
                    answers.append(asking.answer(memory))
        except LimitError as error:
            answers.append(error)
        except MemoryError:
            answers.append(out_of_memory(settings.memory_bytes))
    return answers


@dataclass(frozen=True, eq=False)
class StrategyRange:
    """Least and greatest probability over all winning strategies of a synthesised planner.

    Attributes:
        smallest, largest: (m,) at the initial states.
        confirmed: whether both engines found these numbers.
    """

    smallest: Floats
    largest: Floats
    confirmed: bool


def strategy_ranges(case: Case, storm: StormProcess) -> tuple[StrategyRange, ...]:
    """The range of each requirement's probability; errors as `optima_of`, LimitError included."""
    study, ranges = case.study, list[StrategyRange]()
    process, settings = case.process(study.conditions), study.options.engines
    for number, formula in enumerate(study.formulas):
        ends = []
        for greatest in (False, True):
            asked = formula.formula, formula.propositions, settings.product_states
            objective = build_optimum(case.choices, *asked, greatest)
            clock = Clock(settings.timeout_s)
            ends.append(_Asking(case, number, objective, process, study.conditions, storm, clock).answer(None))
        least, most = ends
        confirmed = least.remark is None and most.remark is None
        ranges.append(StrategyRange(least.probability, most.probability, confirmed))
    return tuple(ranges)


class _Asking:
    """One requirement, put to both engines."""

    def __init__(
        self,
        case: Case,
        number: int,
        objective: Optimum,
        process: DecisionProcess,
        conditions: Mapping[str, Node],
        storm: StormProcess,
        clock: Clock,
    ) -> None:
        self._case, self._number, self._process, self._conditions = case, number, process, conditions
        self._objective = objective
        self._storm, self._clock = storm, clock
        self._requirement = case.study.requirements[number]
        self._greatest = objective.greatest
        self._exact = case.study.options.engines.exact
        self.formula = case.study.formulas[number].formula

    def answer(self, memory: int | None) -> TwoEngineValues:
        """What both say."""
        refuse_unknown(self._requirement, self._case.system.model)
        objective = self._objective
        error, measured = ROUNDOFF * objective.skeleton.channel.rounding_steps, rates(self._case.counts)
        if isinstance(objective, OptimalQuantile):
            return self._quantile(objective, measured, error, memory)
        bracket = (
            objective.gain_bracket(measured, error)
            if isinstance(objective, OptimalGain | OptimalSteps)
            else objective.bracket(measured, error)
        )
        self._finite = np.isfinite(bracket.value)
        if not self._finite.any():
            value = bracket.value
            return TwoEngineValues(value, value, value, None, value, "second engine", self._infinite)
        try:
            told = self._told(memory, exact=self._exact)
            if self._disputed(told, bracket) and self._contradicts_itself(told, memory):
                raise RefusedError(
                    f"{told.engine} contradicts itself: what it gives for the formula and for its negation does not "
                    "add up to 1"
                )
        except (RefusedError, NoAnswerError, NoProbabilityError) as failure:
            return self._one_engine(bracket, failure)
        if self._disputed(told, bracket):
            at = int(np.argmax(self._apart(told, bracket)))
            raise EngineError(
                f"the engines disagree on {self._operator} of {to_text(self.formula)} at initial state {at}: "
                f"{told.engine} says {float(told.value[at])!r}, the second engine proves "
                f"{float(bracket.lower[at])!r} to {float(bracket.upper[at])!r}"
            )
        if told.fractions is None and self._is_open(bracket) and self._process.state_count <= EXACT_STATES:
            told = self._settled(memory) or told
        return self._joined(told, bracket)

    @property
    def _operator(self) -> str:
        return (_OPERATORS if self._requirement.asked.is_probability else GAINS[1:])[self._greatest]

    @property
    def _infinite(self) -> str | None:
        """What is said of an infinite value."""
        if self._finite.all():
            return None
        may = "cannot make it hold with probability 1" if not self._greatest else "can keep it from holding"
        return f"'{self._requirement.formula_text}' is infinite where the world {may}"

    def _told(self, memory: int | None, *, exact: bool, negated: bool = False) -> CheckedValues:
        if self._requirement.given is not None:
            return self._conditional(memory, exact=exact)
        process, formula, operator = self._process, self.formula, self._operator
        if negated:
            formula, operator = Operation("!", (formula,)), _OPERATORS[not self._greatest]
        if exact:
            process = self._case.process(self._conditions, exact=True)
        text, gains = to_storm(formula), None
        if not self._requirement.asked.is_probability:
            expected = expectation_of(self._case, self._number)
            gains = expected.exact_gains() if exact else expected.gains
            if expected.steps is None:
                text = f"F {to_storm(children(formula)[0])}"  # no parentheses around it, for a reward
            else:
                refuse_long(expected.steps, process)
                text = f"C<={expected.steps}"
        return self._storm.check(
            replace(process, initial=process.initial[self._finite]),
            [text],
            exact=exact,
            operator=operator,
            timeout_s=self._clock.left_s if not exact or self._exact else EXACT_S,
            memory_bytes=memory,
            gains=gains,
        )[0]

    def _conditional(self, memory: int | None, *, exact: bool) -> CheckedValues:
        """Storm's greatest probability of the goal in the world that begins again."""
        objective, counts = self._objective, self._case.counts
        assert isinstance(objective, OptimalConditional)
        again = objective.restarting(objective.skeleton.entry_values(rates(counts)))
        (told,) = self._storm.check(
            decision_process(again.choices, counts, {GOAL: again.goal}, exact=exact),
            [to_storm(REACHED)],
            exact=exact,
            operator=_OPERATORS[True],
            timeout_s=self._clock.left_s if not exact or self._exact else EXACT_S,
            memory_bytes=memory,
        )
        if self._greatest:
            return told
        fractions = None if told.fractions is None else tuple(1 - fraction for fraction in told.fractions)
        return replace(told, value=1 - told.value, lower=None, upper=None, fractions=fractions)

    def _quantile(
        self, objective: OptimalQuantile, measured: Floats, error: float, memory: int | None
    ) -> TwoEngineValues:
        asked, (condition,) = self._requirement.asked, children(self.formula)
        assert asked.level is not None
        exactly = partial(self._case.process, self._conditions, exact=True)
        quantiles = objective.quantiles(measured, error, exactly)
        steps = [None if k == NEVER else k for k in quantiles.tolist()]
        times = [None if k is None else k * objective.step_s for k in steps]
        value = np.array([np.inf if time is None else float(time) for time in times])
        operator, text = _OPERATORS[objective.greatest], to_text(self._requirement.formula)
        remark, engine = None, "batch engine"
        if None in steps:
            most = float(objective.bracket(measured, error).value[quantiles == NEVER].max())
            remark = f"'{text}' has {operator[:4]} {number_text(most)}, and no time is enough for {asked.level}"
        settings = self._case.study.options.engines
        try:
            process = exactly() if self._exact else self._process
            confirming = (process, condition, steps, asked.level, text, settings, memory, operator)
            engine = confirmed_by(self._storm, *confirming) or engine
        except (RefusedError, NoAnswerError) as failure:
            remark = "; ".join(filter(None, (remark, alone(failure, "is what the batch engine has proven"))))
        return TwoEngineValues(value, value, value, tuple(times), value, engine, remark)

    def _disputed(self, told: CheckedValues, bracket: Between) -> bool:
        allowed = AGREEMENT * np.maximum(np.abs(told.value), 1)
        return bool(np.any(~(self._apart(told, bracket) <= allowed)))

    def _apart(self, told: CheckedValues, bracket: Between) -> Floats:
        return np.maximum(bracket.lower[self._finite] - told.value, told.value - bracket.upper[self._finite])

    def _contradicts_itself(self, told: CheckedValues, memory: int | None) -> bool:
        if not self._requirement.is_plain:
            return False
        try:
            other = self._told(memory, exact=told.fractions is not None, negated=True)
        except (EngineError, LimitError):
            return False
        return bool(np.any(np.abs(told.value + other.value - 1) > AGREEMENT))

    def _is_open(self, bracket: Between) -> bool:
        """Whether the enclosure is wide, or does not tell on which side of the target the optimum is."""
        lower, upper = bracket.lower[self._finite], bracket.upper[self._finite]
        if np.any(~(upper - lower <= WIDTH * np.maximum(upper, 1))):
            return True
        return holds(lower, upper, self._requirement.target)

    def _settled(self, memory: int | None) -> CheckedValues | None:
        """Storm's fractions, if it has them soon."""
        try:
            return self._told(memory, exact=True)
        except (RefusedError, NoAnswerError, NoProbabilityError):
            return None

    def _joined(self, told: CheckedValues, bracket: Between) -> TwoEngineValues:
        finite, second = self._finite, bracket.value
        value, lower, upper = bracket.value.copy(), bracket.lower.copy(), bracket.upper.copy()
        value[finite] = told.value
        lower, upper = np.minimum(lower, value), np.maximum(upper, value)
        fractions, remark = None, self._infinite
        if told.fractions is not None:
            ends = np.array([doubles_around(fraction) for fraction in told.fractions])
            lower[finite], upper[finite] = (told.value, told.value) if self._exact else (ends[:, 0], ends[:, 1])
            exact = iter(told.fractions)
            fractions = (
                tuple(next(exact) if is_finite else None for is_finite in finite.tolist()) if self._exact else None
            )
        wide = (bracket.upper - bracket.lower)[finite]
        if np.any(~(wide <= ONE_ENGINE_WIDTH * np.maximum(value[finite], 1))):
            remark = (
                f"{ONE_ENGINE}: {self._operator} is {told.engine}'s alone; the second engine has only shown that it "
                f"lies between {_text(bracket.lower)} and {_text(bracket.upper)}"
            )
            second = value
            if self._requirement.asked.is_probability:
                remark += ", and no interval is known"
        return TwoEngineValues(value, lower, upper, fractions, second, told.engine, remark)

    def _one_engine(self, bracket: Between, failure: EngineError | NoAnswerError) -> TwoEngineValues:
        wide = (bracket.upper - bracket.lower)[self._finite]
        if self._exact or np.any(~(wide <= ONE_ENGINE_WIDTH * np.maximum(bracket.value[self._finite], 1))):
            raise failure
        remark = alone(failure, "are the second engine's value and its proven bounds")
        value, lower, upper = bracket.value, bracket.lower, bracket.upper
        return TwoEngineValues(value, lower, upper, None, value, "second engine", remark)


def _text(ends: Floats) -> str:
    return ", ".join(significant(end, 6) for end in ends)


def answers_of(
    case: Case, chain: MarkovChain, conditions: Mapping[str, Node], storm: StormProcess, spent_s: float
) -> list[TwoEngineValues | LimitError]:
    """What both engines say about each requirement on the chain of a case, or why there is no answer.

    Args:
        case: whose requirements.
        chain: its chain, labelled with the conditions.
        conditions: of all formulas.
        storm: a running worker.
        spent_s: seconds that each time limit has lost already.

    Raises:
        VerifierError: as `answers_within_limits` and `gains_of`.
    """
    study, requirements = case.study, case.study.requirements
    engines, value_error = study.options.engines, ROUNDOFF * case.skeleton.channel.rounding_steps
    exact_chain = partial(case.chain, conditions, exact=True)
    numbers = [number for number, requirement in enumerate(requirements) if requirement.asked.is_probability]
    supposed = [(number, formula) for number, formula in enumerate(study.given) if formula is not None]
    products = dict(enumerate(numbers))
    outcomes = answers_within_limits(
        chain,
        [*(study.formulas[number].formula for number in numbers), *(formula.formula for _, formula in supposed)],
        storm,
        engines,
        value_error,
        targets=[requirements[number].target if requirements[number].is_plain else None for number in numbers],
        exact_chain=exact_chain,
        spent_s=spent_s,
        product=lambda place: case.product(products[place]) if place in products else None,
    )
    answers = dict(zip(numbers, outcomes, strict=False))
    for (number, _), given in zip(supposed, outcomes[len(numbers) :], strict=True):
        node = requirements[number].given
        assert node is not None
        answers[number] = conditional(answers[number], given, to_text(node))
    expecting = Expecting(chain, storm, engines, value_error, exact_chain, spent_s)
    for number, requirement in enumerate(requirements):
        if not requirement.asked.is_probability:
            product = case.product(number) if requirement.asked.steps is None else None
            answers[number] = expecting.answer(expectation_of(case, number), product)
    return [answers[number] for number in range(len(requirements))]


def expectation_of(case: Case, number: int) -> Expectation:
    """A requirement that asks no probability, for both engines; errors as `gains_of`."""
    requirement, gains, counts = case.study.requirements[number], case.gains(number), case.counts
    values = gains.values(rates(counts)[None])[:, 0]
    if np.isnan(values).any():
        raise InputError(
            f"{requirement.asked} depends on reports from columns of the matrices that have no items",
            hint="collect data, or name what to assume: --empty-columns prior, neighbour, pool or miss",
        )
    return Expectation(
        case.study.formulas[number].formula,
        to_text(requirement.formula) if requirement.asked.steps is None else requirement.formula_text,
        values,
        gains.relative_error,
        lambda: gains.fractions(exact_rates(counts)),
        case.steps(number),
        requirement.asked.level,
        Fraction(1) if requirement.asked.level is None else case.step_s,
        requirement.target,
    )


def weights_of(case: Case) -> Sequence[Fraction]:
    """What each initial state counts for in means over the profile; InputError for one below 0."""
    model, system = case.system.model, case.system
    source, node = model.at("weight"), system.resolve(model.weight, "weight")
    fractions = [Fraction(exact_number(node, state, source)) for state in case.initial_states]
    for state, weight in zip(case.initial_states, fractions, strict=True):
        if weight < 0:
            where = ", ".join(f"{name} = {value}" for name, value in state.items())
            raise source.error(f"in state {where} the weight is {float(weight):g}; a weight is at least 0", None)
    return fractions
