"""Least and greatest probabilities where the world decides, by both engines.

Storm's value is the one reported, as for chains. `analysis.robust.optimum` encloses it: by the probability under a
strategy, and by a proof that no strategy does better. A value outside the enclosure is an error, unless what Storm
says of the negation contradicts it; then, and where Storm has no answer, the enclosure is one engine's.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from verifier.analysis.robust.optimum import Bracket, Optimum
from verifier.base.arrays import ROUNDOFF, Floats
from verifier.base.budget import Clock, out_of_memory, share_of_memory
from verifier.base.errors import EngineError, LimitError, NoAnswerError
from verifier.chains.decision_process import DecisionProcess
from verifier.checking.enclosure import AGREEMENT, doubles_around
from verifier.checking.process import RefusedError, StormProcess
from verifier.checking.two_engines import EXACT_S, EXACT_STATES, ONE_ENGINE_WIDTH, WIDTH
from verifier.checking.values import ONE_ENGINE, CheckedValues, NoProbabilityError, TwoEngineValues
from verifier.language.expressions import to_text
from verifier.language.expressions.syntax import Node, Operation
from verifier.language.ltl import to_storm
from verifier.perception.confusion import rates
from verifier.study.case import Case

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
        asking = _Asking(case, number, process, conditions, storm, clock)
        try:
            with clock.running(f"checking {to_text(asking.formula)[:200]}"), share_of_memory() as memory:
                answers.append(asking.answer(memory))
        except LimitError as error:
            answers.append(error)
        except MemoryError:
            answers.append(out_of_memory(settings.memory_bytes))
    return answers


class _Asking:
    """One requirement, put to both engines."""

    def __init__(
        self,
        case: Case,
        number: int,
        process: DecisionProcess,
        conditions: Mapping[str, Node],
        storm: StormProcess,
        clock: Clock,
    ) -> None:
        self._case, self._number, self._process, self._conditions = case, number, process, conditions
        self._storm, self._clock = storm, clock
        self._requirement = case.study.requirements[number]
        self._greatest = self._requirement.asked.end == "max"
        self._exact = case.study.options.engines.exact
        self.formula = case.study.formulas[number].formula

    def answer(self, memory: int | None) -> TwoEngineValues:
        """What both say."""
        if not self._requirement.is_plain:
            what = f"{self._requirement.asked}{' given' * (self._requirement.given is not None)}"
            raise NoAnswerError(
                f"{what} is not computed where the world decides, only probabilities of formulas are",
                hint="give what the world decides a probability, or ask Pmin or Pmax",
            )
        objective = self._case.objective(self._number)
        assert isinstance(objective, Optimum)
        error = ROUNDOFF * objective.skeleton.channel.rounding_steps
        bracket = objective.bracket(rates(self._case.counts), error)
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
            at = int(np.argmax(_apart(told, bracket)))
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
        return _OPERATORS[self._greatest]

    def _told(self, memory: int | None, *, exact: bool, negated: bool = False) -> CheckedValues:
        process, formula, greatest = self._process, self.formula, self._greatest
        if negated:
            formula, greatest = Operation("!", (formula,)), not greatest
        if exact:
            process = self._case.process(self._conditions, exact=True)
        return self._storm.check(
            process,
            [to_storm(formula)],
            exact=exact,
            operator=_OPERATORS[greatest],
            timeout_s=self._clock.left_s if not exact or self._exact else EXACT_S,
            memory_bytes=memory,
        )[0]

    def _disputed(self, told: CheckedValues, bracket: Bracket) -> bool:
        return bool(np.any(~(_apart(told, bracket) <= AGREEMENT)))

    def _contradicts_itself(self, told: CheckedValues, memory: int | None) -> bool:
        try:
            other = self._told(memory, exact=told.fractions is not None, negated=True)
        except (EngineError, LimitError):
            return False
        return bool(np.any(np.abs(told.value + other.value - 1) > AGREEMENT))

    def _is_open(self, bracket: Bracket) -> bool:
        """Whether the enclosure is wide, or does not tell on which side of the target the optimum is."""
        lower, upper = bracket.lower, bracket.upper
        if np.any(upper - lower > WIDTH):
            return True
        if self._requirement.target is None:
            return False
        below, above = doubles_around(self._requirement.target)
        return bool(np.any((lower < upper) & (lower <= above) & (upper >= below)))

    def _settled(self, memory: int | None) -> CheckedValues | None:
        """Storm's fractions, if it has them soon."""
        try:
            return self._told(memory, exact=True)
        except (RefusedError, NoAnswerError, NoProbabilityError):
            return None

    def _joined(self, told: CheckedValues, bracket: Bracket) -> TwoEngineValues:
        lower, upper = np.minimum(bracket.lower, told.value), np.maximum(bracket.upper, told.value)
        fractions, remark = None, None
        if told.fractions is not None:
            ends = np.array([doubles_around(fraction) for fraction in told.fractions])
            lower, upper = (told.value, told.value) if self._exact else (ends[:, 0], ends[:, 1])
            fractions = told.fractions if self._exact else None
        if np.any(bracket.upper - bracket.lower > ONE_ENGINE_WIDTH):
            remark = (
                f"{ONE_ENGINE}: {self._operator} is {told.engine}'s alone; the second engine has only shown that it "
                f"lies between {_text(bracket.lower)} and {_text(bracket.upper)}"
            )
        return TwoEngineValues(told.value, lower, upper, fractions, bracket.value, told.engine, remark)

    def _one_engine(self, bracket: Bracket, failure: EngineError | NoAnswerError) -> TwoEngineValues:
        if self._exact or np.any(bracket.upper - bracket.lower > ONE_ENGINE_WIDTH):
            raise failure
        reason = failure.message if isinstance(failure, NoAnswerError) else str(failure)
        remark = f"{ONE_ENGINE}: {reason}. Reported are the second engine's value and its proven bounds"
        value, lower, upper = bracket.value, bracket.lower, bracket.upper
        return TwoEngineValues(value, lower, upper, None, value, "second engine", remark)


def _apart(told: CheckedValues, bracket: Bracket) -> Floats:
    return np.maximum(bracket.lower - told.value, told.value - bracket.upper)


def _text(ends: Floats) -> str:
    return ", ".join(f"{end:.6g}" for end in ends)
