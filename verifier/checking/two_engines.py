"""Holding what both engines say about a formula against each other.

Storm's number is the one reported. Where Storm gives bounds with it (reachability, until and their duals), they are
used; for other LTL formulas Storm gives none, so Storm also checks `F accept` on the product of the chain with the
formula's progression, for which it does. The batch engine solves that product on its own, or counts the steps of a
long window (`step_bounds`), for which there is no product. `asking` says how Storm is asked.

The enclosure is the intersection of what both prove (`enclosure`). Storm's value must lie in the batch engine's
enclosure up to `AGREEMENT`. Exact arithmetic settles a point, within `EXACT_S` seconds, where it does not and so many
steps pass that rounding alone may explain it, where Storm does not answer in time, where the enclosure is wider than
`WIDTH`, where it holds a target, and where Storm's value has too few digits for how rare it is. If that takes too
long, too, and Storm has no other answer, the batch engine's enclosure is given, and a remark says that it is one
engine's. Where exact numbers are asked for, only Storm's count.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from verifier.base.arrays import ROUNDOFF, Floats
from verifier.base.budget import Clock
from verifier.base.errors import EngineError, LimitError, NoAnswerError
from verifier.chains.chain import MarkovChain
from verifier.checking import enclosure
from verifier.checking.asking import Asking, Found, Look, Task
from verifier.checking.enclosure import (
    AGREEMENT,
    BOUND_ROUNDOFF,
    ONE_ENGINE,
    CheckedValues,
    NoProbabilityError,
    TwoEngineValues,
    alone,
    doubles_around,
)
from verifier.checking.process import RefusedError, StormProcess
from verifier.checking.product import Product
from verifier.checking.settings import EngineSettings
from verifier.language.expressions import substitute, to_text
from verifier.language.expressions.syntax import Name, Node, Operation
from verifier.language.ltl import abstract, to_storm

EXACT_S = 30.0
"""Seconds for exact arithmetic that nobody asked for."""

WIDTH = 1e-9
"""Widest enclosure with which exact arithmetic is not tried."""

EXACT_STATES = 50_000
"""Most product states with which exact arithmetic is tried unasked."""

ONE_ENGINE_WIDTH = 1e-6
"""Widest enclosure that the batch engine may answer with alone."""

_FACTORISATION_LOSS = 1000
"""How much more a factorisation may lose to rounding than an iteration."""


class _ImpreciseError(EngineError):
    """Rounding moves an answer of Storm's too far."""


@dataclass(frozen=True, eq=False)
class TwoEngines:
    """Who was asked about every formula, and what may settle it.

    Attributes:
        asking: whom, about what.
        exact_chain: makes the same chain with its fractions; None if there is none.
    """

    asking: Asking
    exact_chain: Callable[[], MarkovChain] | None

    def settled(self, look: Look, target: Fraction | None) -> TwoEngineValues | LimitError:
        """What both engines say, as one result; why there is none, where a limit was reached.

        Raises:
            EngineError: Storm failed and the batch engine's bounds are wide, or the engines disagree; the message
                names both numbers.
        """
        if isinstance(look, LimitError):
            return look
        if isinstance(look, CheckedValues):
            remark = f"{ONE_ENGINE}: {look.engine} alone answers, within the limits of time and memory"
            return TwoEngineValues(
                look.value, look.value, look.value, look.fractions, look.value, look.engine, remark
            )
        try:
            return self._settled(look, target)
        except LimitError as error:
            return error

    def _settled(self, outcome: Found, target: Fraction | None) -> TwoEngineValues:
        try:
            values = self._compared(outcome)
        except (RefusedError, NoAnswerError, NoProbabilityError, _ImpreciseError) as error:
            if isinstance(error, NoProbabilityError) and np.all(self._lost(outcome) <= AGREEMENT):
                raise
            return self._exactly(outcome) or self._one_engine(outcome, error)
        wide = bool(np.any(values.upper - values.lower > WIDTH)) or enclosure.holds(
            values.lower, values.upper, target
        )
        return (self._exactly(outcome) if wide else None) or values

    def _lacks_digits(self, outcome: Found, answer: CheckedValues) -> bool:
        """Whether Storm's value of something rare, as 1 less what is nearly certain, has too few digits."""
        if self.asking.settings.exact or self.asking.chain.rounding_defect > 0:
            return False
        moved = AGREEMENT * outcome.batch.upper[0] + outcome.batch.representation_bound[0]
        return bool(np.any(enclosure.apart(answer, outcome.batch) > moved))

    def _compared(self, outcome: Found) -> TwoEngineValues:
        """Storm's answer, which agrees with the batch engine's; an error where there is none that does."""
        answer, fault = self._answer(outcome)
        if self._disputed(outcome, answer, self._lost(outcome)):
            if fault is None and self._contradicts_itself(outcome, answer):
                fault = "contradicts itself: what it gives for the formula and for its negation does not add up to 1"
                answer = self.asking.on_product(outcome)
            allowed = np.maximum(self._tolerance(outcome, answer), self._lost(outcome))
            enclosure.refuse_disagreement(outcome.task.formula, answer, outcome.batch, allowed)
        if self._disputed(outcome, answer):
            raise _ImpreciseError(f"{answer.engine} loses too many digits on this chain")
        if self._lacks_digits(outcome, answer):
            if exact := self._exactly(outcome):
                return exact
            answer = self._bounds(outcome, answer)
        return self._joined(outcome, answer, fault)

    def _answer(self, outcome: Found) -> tuple[CheckedValues, str | None]:
        """Storm's answer, and what is wrong with how it was got; an error where there is none."""
        if outcome.answer is not None:
            return outcome.answer, None
        failure, task = outcome.failure, outcome.task
        if task.text is None:
            how = " in exact arithmetic" if self.asking.settings.exact else ""
            message = f"Storm would not finish with {to_text(task.formula)} within the limits{how}"
            failure = NoAnswerError(message, hint="leave out --exact" if how else None)
        elif failure is None:
            try:
                return task.meant(self.asking.ask(outcome, task.text)), None
            except (RefusedError, NoAnswerError) as error:
                failure = error
        if isinstance(failure, NoProbabilityError) or outcome.product is None:
            raise failure
        why = "cannot check the formula" if isinstance(failure, RefusedError) else "has no answer in time"
        return self.asking.on_product(outcome), why

    def _tolerance(self, outcome: Found, answer: CheckedValues) -> Floats:
        """(m,) how far Storm's values may lie outside the batch engine's enclosure."""
        batch = outcome.batch
        if answer.fractions is not None and self.asking.chain.rounding_defect == 0:
            return np.asarray(AGREEMENT * batch.upper[0] + BOUND_ROUNDOFF + batch.representation_bound[0])
        return np.asarray(AGREEMENT * batch.upper[0]) if outcome.direct else np.full(len(answer.value), AGREEMENT)

    def _lost(self, outcome: Found) -> Floats:
        """(m,) how far rounding may put Storm's value off the true one."""
        chain = self.asking.chain
        if self.asking.settings.exact or chain.rounding_defect > 0:
            return np.zeros(len(chain.initial))
        factor = _FACTORISATION_LOSS if outcome.direct else 1
        return np.asarray(factor * enclosure.rounding_of_iteration(chain, outcome.batch))

    def _disputed(self, outcome: Found, answer: CheckedValues, lost: Floats | float = 0.0) -> bool:
        """Whether Storm's values lie too far outside, by more than rounding explains."""
        allowed = np.maximum(self._tolerance(outcome, answer), lost)
        return bool(np.any(~(enclosure.apart(answer, outcome.batch) <= allowed)))

    def _contradicts_itself(self, outcome: Found, answer: CheckedValues) -> bool:
        """Whether Storm's probabilities of the formula and of its negation fail to add up to 1.

        Storm 2.0 translates some formulas into a wrong automaton, `F ((a | X (a | X a)) R b)` among them; asking for
        the negation exposes it. Windows that are counted need no automaton.
        """
        if outcome.task.window is not None:
            return False
        try:
            other = self.asking.ask(outcome, to_storm(Operation("!", (outcome.task.formula,))))
        except (EngineError, LimitError):
            return False  # nothing is learned, and the disagreement stands, with both its numbers
        return bool(np.any(np.abs(answer.value + other.value - 1) > AGREEMENT + self.asking.chain.rounding_defect))

    def _joined(self, outcome: Found, answer: CheckedValues, fault: str | None) -> TwoEngineValues:
        """Both engines' enclosure around Storm's value."""
        batch, chain, formula = outcome.batch, self.asking.chain, outcome.task.formula
        if answer.fractions is not None:
            lower = upper = answer.value
        elif chain.rounding_defect > 0:
            # Rows that do not sum to 1 have no one right value; what accepts and what rejects enclose it.
            lower, upper = np.minimum(answer.value, batch.lower[0]), np.maximum(answer.value, batch.upper[0])
        else:
            moved = enclosure.rounding_of_iteration(chain, batch)
            bounds = self._bounds(outcome, answer)
            lower, upper = enclosure.intersection(formula, bounds, batch, moved)
            lower = np.minimum(enclosure.outwards(lower, -batch.representation_bound[0]), answer.value)
            upper = np.maximum(enclosure.outwards(upper, batch.representation_bound[0]), answer.value)
        remark = None
        if fault is not None:
            remark = (
                f"{answer.engine} {fault} ({to_text(formula)}). Reported is its value on the product of the chain "
                "with the formula's progression, which is the second engine's work: "
                "the two are less independent here"
            )
        numbers = answer.value, lower, upper, answer.fractions, batch.probability[0], answer.engine
        return TwoEngineValues(*numbers, remark, self._is_out_of_reach(outcome))

    def _bounds(self, outcome: Found, answer: CheckedValues) -> CheckedValues:
        """An answer of Storm's with bounds, if it gives any in time."""
        if answer.lower is not None or outcome.direct or outcome.product is None:
            return answer
        try:
            return self.asking.on_product(outcome)
        except (RefusedError, NoAnswerError, NoProbabilityError):
            return answer

    def _exactly(self, outcome: Found) -> TwoEngineValues | None:
        """The fractions, rounded outwards; None where they cannot be had in time."""
        settings, product, task = self.asking.settings, outcome.product, outcome.task
        if self.exact_chain is None or settings.exact or self.asking.chain.rounding_defect > 0:
            return None
        if product is None or product.state_count > EXACT_STATES:
            return None
        left = task.clock.left_s
        clock = Clock(EXACT_S if left is None else min(EXACT_S, left))
        outcome = replace(outcome, task=replace(task, clock=clock), answer=None, failure=None, direct=False)
        try:
            with self.asking.limits(outcome.task):
                chain = self.exact_chain()
            exact = replace(self.asking, chain=chain, settings=replace(settings, exact=True))
            again = replace(self, asking=exact)
            answer, fault = again._answer(outcome)
            if again._disputed(outcome, answer):
                answer = exact.on_product(outcome)
        except (RefusedError, NoAnswerError, NoProbabilityError):
            return None
        finally:
            task.clock.spend(clock.spent_s)
        enclosure.refuse_disagreement(task.formula, answer, outcome.batch, again._tolerance(outcome, answer))
        joined = again._joined(outcome, answer, fault)
        ends = np.array([doubles_around(fraction) for fraction in answer.fractions or ()])
        return replace(joined, lower=ends[:, 0], upper=ends[:, 1], fractions=None)

    def _one_engine(self, outcome: Found, failure: EngineError | NoAnswerError) -> TwoEngineValues:
        """The batch engine's proven enclosure, where Storm has no answer that is good enough."""
        batch, rounded = outcome.batch, self.asking.chain.rounding_defect > 0
        if self.asking.settings.exact:
            raise failure
        lower, upper = batch.lower[0], batch.upper[0]
        if not rounded:  # rounded rows have no one right value: their enclosure is as wide as it has to be
            if np.any(upper - lower > ONE_ENGINE_WIDTH):
                if not isinstance(failure, _ImpreciseError):
                    raise failure
                formula = to_text(outcome.task.formula)
                raise EngineError(f"neither engine can tell the probability of {formula} in doubles")
            lower = enclosure.outwards(lower, -batch.representation_bound[0])
            upper = enclosure.outwards(upper, batch.representation_bound[0])
        value, remark = batch.probability[0], alone(failure)
        return TwoEngineValues(
            value, lower, upper, None, value, "batch engine", remark, self._is_out_of_reach(outcome)
        )

    def _is_out_of_reach(self, outcome: Found) -> bool:
        window = outcome.task.window
        return window is not None and window.cannot_unroll(self.asking.settings.memory_bytes)


@dataclass(frozen=True)
class AbstractFormula:
    """A formula over proposition names, and the state condition each name stands for."""

    formula: Node
    propositions: Mapping[str, Node]


def abstracted(formulas: Sequence[Node]) -> list[AbstractFormula]:
    """Each formula over names of its own, so that one chain can carry the labels of all."""
    result = []
    for number, formula in enumerate(formulas):
        inner, propositions = abstract(formula)
        renamed: dict[str, Node] = {name: Name(f"r{number}_{name}") for name in propositions}
        result.append(
            AbstractFormula(
                substitute(inner, renamed), {f"r{number}_{name}": node for name, node in propositions.items()}
            )
        )
    return result


def answers_within_limits(
    chain: MarkovChain,
    formulas: Sequence[Node],
    storm: StormProcess,
    settings: EngineSettings = EngineSettings(),
    value_error: float = ROUNDOFF,
    *,
    targets: Sequence[Fraction | None] = (),
    exact_chain: Callable[[], MarkovChain] | None = None,
    spent_s: float = 0.0,
    product: Callable[[int], Product | None] = lambda number: None,
) -> list[TwoEngineValues | LimitError]:
    """Check formulas over the chain's label names at its initial states, with both engines.

    A formula that one engine cannot answer within the limits is answered by the other alone, with a remark, where
    that one encloses the value rigorously: the batch engine always, Storm in exact arithmetic.

    Args:
        chain: with a label for every name in the formulas.
        formulas: names, `true`, `false`, connectives and temporal operators.
        storm: a running worker.
        settings: see `EngineSettings`.
        value_error: largest relative error of the chain's probabilities against the true ones.
        targets: for each formula the probability it will be compared with, if any; none at all if left out.
        exact_chain: makes the same chain with its fractions, for what doubles do not settle; None if there is none.
        spent_s: seconds that each formula's time limit has lost already.
        product: for the number of a formula its product with a graph that the chain is a part of, states and initial
            states the same; None to build that with the chain.

    Returns:
        for each formula what the engines say, or why there is no answer.

    Raises:
        EngineError: Storm failed and the batch engine's bounds are wide, or the engines disagree; the message names
            both numbers.
        LimitError: a formula nests too deep.
    """
    asking = Asking(chain, storm, settings, value_error)
    looks = asking.looks(
        [
            Task.of(chain, formula, settings, spent_s, partial(product, number))
            for number, formula in enumerate(formulas)
        ]
    )
    both = TwoEngines(asking, exact_chain)
    aims = [*targets, *([None] * (len(formulas) - len(targets)))]
    return [both.settled(look, target) for look, target in zip(looks, aims, strict=True)]
