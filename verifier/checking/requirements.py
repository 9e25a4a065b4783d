"""Checking formulas with both engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from verifier.base.arrays import ROUNDOFF
from verifier.base.errors import LimitError
from verifier.chains.chain import MarkovChain
from verifier.checking.asking import Asking, Task
from verifier.checking.process import StormProcess
from verifier.checking.product import Product
from verifier.checking.settings import EngineSettings
from verifier.checking.two_engines import TwoEngines
from verifier.checking.values import TwoEngineValues
from verifier.language.expressions import substitute
from verifier.language.expressions.syntax import Name, Node
from verifier.language.ltl import abstract


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


def check_formulas(
    chain: MarkovChain,
    formulas: Sequence[Node],
    storm: StormProcess,
    settings: EngineSettings = EngineSettings(),
    value_error: float = ROUNDOFF,
    *,
    targets: Sequence[Fraction | None] = (),
    exact_chain: Callable[[], MarkovChain] | None = None,
) -> list[TwoEngineValues]:
    """As `answers_within_limits`, for callers who need every answer.

    Raises:
        EngineError: as `answers_within_limits`.
        LimitError: a limit of time, memory or size was reached before an answer.
    """
    answers = answers_within_limits(
        chain, formulas, storm, settings, value_error, targets=targets, exact_chain=exact_chain
    )
    values = []
    for answer in answers:
        if isinstance(answer, LimitError):
            raise answer
        values.append(answer)
    return values


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
