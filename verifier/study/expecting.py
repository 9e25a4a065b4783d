"""What requirements ask that is no probability of a formula, put to both engines; and what scenarios count for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial

import numpy as np

from verifier.base.arrays import ROUNDOFF
from verifier.base.errors import InputError, LimitError
from verifier.chains.chain import MarkovChain
from verifier.checking.expectations import Expectation, Expecting, conditional
from verifier.checking.process import StormProcess
from verifier.checking.requirements import answers_within_limits
from verifier.checking.values import TwoEngineValues
from verifier.language.expressions import exact_number, to_text
from verifier.language.expressions.syntax import Node
from verifier.perception.confusion import exact_rates, rates
from verifier.study.case import Case


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
    numbers = [number for number, each in enumerate(requirements) if each.asked.is_probability]
    supposed = [(number, each) for number, each in enumerate(study.given) if each is not None]
    products = dict(enumerate(numbers))
    found = answers_within_limits(
        chain,
        [*(study.formulas[number].formula for number in numbers), *(each.formula for _, each in supposed)],
        storm,
        engines,
        value_error,
        targets=[requirements[number].target if requirements[number].is_plain else None for number in numbers],
        exact_chain=exact_chain,
        spent_s=spent_s,
        product=lambda place: case.product(products[place]) if place in products else None,
    )
    answers = dict(zip(numbers, found, strict=False))
    for (number, _), given in zip(supposed, found[len(numbers) :], strict=True):
        node = requirements[number].given
        assert node is not None
        answers[number] = conditional(answers[number], given, to_text(node))
    expecting = Expecting(chain, storm, engines, value_error, exact_chain, spent_s)
    for number, each in enumerate(requirements):
        if not each.asked.is_probability:
            product = case.product(number) if each.asked.steps is None else None
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
    found = [Fraction(exact_number(node, state, source)) for state in case.initial_states]
    for state, weight in zip(case.initial_states, found, strict=True):
        if weight < 0:
            where = ", ".join(f"{name} = {value}" for name, value in state.items())
            raise source.error(f"in state {where} the weight is {float(weight):g}; a weight is at least 0", None)
    return found
