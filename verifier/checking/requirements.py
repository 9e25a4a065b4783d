"""Checking formulas on a chain with both engines, and holding them against each other.

Storm's number is the one reported. Where Storm gives bounds with it (reachability, until and their duals), they are
used; for other LTL formulas Storm gives none, so Storm also checks `F accept` on the product of the chain with the
formula's progression, for which it does. The batch engine solves that product on its own. All numbers must agree
within their bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from verifier.chains.chain import MarkovChain
from verifier.checking.batch import BatchResult, satisfaction_probabilities
from verifier.checking.linear import ROUNDOFF
from verifier.checking.on_product import reaching_acceptance
from verifier.checking.plan import decide
from verifier.checking.process import RefusedError, StormProcess
from verifier.checking.product import Product, build_product
from verifier.checking.results import CheckedValues
from verifier.errors import EngineError
from verifier.expressions import substitute, to_text
from verifier.expressions.syntax import Name, Node, Operation
from verifier.ltl import abstract, to_storm

BOUND_ROUNDOFF = 2.0**-49
"""How far Storm's bounds can miss: it forms P(G p) as 1 - P(F !p), rounded, and then gives bounds without width."""

Floats = NDArray[np.float64]

AGREEMENT = 1e-9
"""What the engines may differ by: Storm's value of an LTL formula, which comes without bounds, from the batch
engine's enclosure in absolute terms; bounds from bounds relative to the probability."""


@dataclass(frozen=True)
class EngineSettings:
    """How to check.

    Attributes:
        exact: let Storm compute with rational numbers.
        timeout_s: seconds after which Storm's work on one formula is given up; None for no limit.
        product_states: most states of a product of chain and formula.
    """

    exact: bool = False
    timeout_s: float | None = 600.0
    product_states: int = 50_000_000


@dataclass(frozen=True, eq=False)
class TwoEngineValues:
    """What both engines say about one formula at the m initial states.

    Attributes:
        probability: (m,) Storm's value.
        lower, upper: (m,) bounds of the true value: they hold Storm's bounds and the batch engine's rigorous ones,
            and are widened by how far rounding the chain's probabilities to doubles can move the value. Equal to
            the value in exact mode.
        fractions: the exact values, or None.
        second: (m,) the batch engine's value.
        engine: what computed `probability`, for citing.
        remark: what a reader must know about how it was computed, if anything.
    """

    probability: Floats
    lower: Floats
    upper: Floats
    fractions: tuple[Fraction, ...] | None
    second: Floats
    engine: str
    remark: str | None = None


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
) -> list[TwoEngineValues]:
    """Check formulas over the chain's label names at its initial states, with both engines.

    Args:
        chain: with a label for every name in the formulas.
        formulas: names, `true`, `false`, connectives and temporal operators.
        storm: a running worker.
        settings: see `EngineSettings`.
        value_error: largest relative error of the chain's probabilities against the true ones.

    Raises:
        EngineError: Storm failed or took too long, or the engines disagree; the message names both numbers.
        LimitError: a product would have too many states.
    """
    texts = [to_storm(formula) for formula in formulas]
    found = []
    # Storm works in a process of its own, so the batch engine computes at the same time.
    with storm.asked(chain, texts, exact=settings.exact, timeout_s=settings.timeout_s) as answers:
        refused = False
        for formula in formulas:
            product = build_product(
                chain.indptr, chain.indices, chain.labels, formula, chain.initial, max_states=settings.product_states
            )
            batch = satisfaction_probabilities(
                product, chain.probabilities, rounding_defect=chain.rounding_defect, value_error=value_error
            )
            answer = None
            if not refused:
                try:
                    answer = next(answers)
                except RefusedError:
                    refused = True  # which ends the request; what is left is asked one by one below
            found.append(_Found(formula, product, batch, answer))
    return [_held_against(chain, each, storm, settings) for each in found]


@dataclass(frozen=True, eq=False)
class _Found:
    """What both engines say about a formula, and the product of the chain with it; None where Storm has not said."""

    formula: Node
    product: Product
    batch: BatchResult
    answer: CheckedValues | None


def _held_against(
    chain: MarkovChain, found: _Found, storm: StormProcess, settings: EngineSettings
) -> TwoEngineValues:
    formula, batch = found.formula, found.batch
    answer, fault = found.answer, None
    if answer is None:
        try:
            answer = storm.check(chain, [to_storm(formula)], exact=settings.exact, timeout_s=settings.timeout_s)[0]
        except RefusedError:
            fault = "cannot check the formula"
    disputed = answer is not None and bool(np.any(_apart(answer, batch) > AGREEMENT))
    if disputed and answer is not None and _contradicts_itself(chain, formula, answer, storm, settings):
        fault = "contradicts itself: what it gives for the formula and for its negation does not add up to 1"
    if answer is None or fault is not None:
        answer = _on_product(chain, found, storm, settings)
    _refuse_disagreement(formula, answer, batch)
    lower, upper = _enclosure(chain, found, answer, storm, settings)
    remark = None
    if fault is not None:
        remark = (
            f"{answer.engine} {fault} ({to_text(formula)}). Reported is its value on the product of the chain with "
            "the formula's progression, which is the second engine's work: the two are less independent here"
        )
    return TwoEngineValues(answer.value, lower, upper, answer.fractions, batch.probability[0], answer.engine, remark)


def _on_product(chain: MarkovChain, found: _Found, storm: StormProcess, settings: EngineSettings) -> CheckedValues:
    decided = decide(found.product, np.ones(chain.transition_count, dtype=bool))
    return reaching_acceptance(decided, chain, storm, settings.exact, settings.timeout_s)


def _enclosure(
    chain: MarkovChain, found: _Found, answer: CheckedValues, storm: StormProcess, settings: EngineSettings
) -> tuple[Floats, Floats]:
    """(m,) bounds of the true values, from Storm's answer and the batch engine's rigorous enclosure."""
    batch = found.batch
    if chain.rounding_defect > 0 and answer.fractions is None:
        # Rows that do not sum to 1 have no one right value; what accepts and what rejects enclose it.
        return np.minimum(answer.value, batch.lower[0]), np.maximum(answer.value, batch.upper[0])
    lower, upper = answer.lower, answer.upper
    if answer.fractions is not None:
        lower = upper = answer.value
    elif lower is None or upper is None:
        on_product = _on_product(chain, found, storm, settings)
        lower, upper = on_product.lower, on_product.upper
        if lower is None or upper is None:
            raise EngineError(f"{answer.engine} gave no bounds for reaching acceptance")
    if chain.rounding_defect == 0:
        _refuse_bounds_apart(found.formula, answer, lower, upper, batch)
    if answer.fractions is not None:
        return answer.value, answer.value
    return (
        _outwards(np.minimum(np.minimum(lower, answer.value), batch.lower[0]), -batch.representation_bound[0]),
        _outwards(np.maximum(np.maximum(upper, answer.value), batch.upper[0]), batch.representation_bound[0]),
    )


def _refuse_bounds_apart(
    formula: Node, answer: CheckedValues, lower: Floats, upper: Floats, batch: BatchResult
) -> None:
    """Storm's bounds and the batch engine's must overlap, but for `AGREEMENT` relative to the probability itself."""
    slack = batch.representation_bound[0] if answer.fractions is not None else 0.0
    apart = np.maximum(lower - batch.upper[0], batch.lower[0] - upper) - slack
    excess = apart - AGREEMENT * np.maximum(np.abs(upper), np.abs(batch.upper[0])) - BOUND_ROUNDOFF
    if np.any(~(excess <= 0)):
        at = int(np.argmax(excess))
        raise EngineError(
            f"the engines disagree on {to_text(formula)} at initial state {at}: {answer.engine} gives the bounds "
            f"{float(lower[at])!r} to {float(upper[at])!r}, the batch engine {float(batch.lower[0, at])!r} to "
            f"{float(batch.upper[0, at])!r}"
        )


def _outwards(bound: Floats, by: Floats) -> Floats:
    """`bound + by` rounded away from the value it bounds, within [0, 1]; unchanged where nothing can be off."""
    moved = np.nextafter(bound + by, np.where(np.signbit(by), -np.inf, np.inf))
    return np.where(by == 0, bound, np.minimum(np.maximum(moved, 0.0), 1.0))


def _apart(answer: CheckedValues, batch: BatchResult) -> Floats:
    """(m,) how far Storm's values lie outside the batch engine's enclosure."""
    apart: Floats = np.maximum(answer.value - batch.upper[0], batch.lower[0] - answer.value)
    return apart


def _contradicts_itself(
    chain: MarkovChain, formula: Node, answer: CheckedValues, storm: StormProcess, settings: EngineSettings
) -> bool:
    """Whether Storm's probabilities of the formula and of its negation fail to add up to 1.

    Storm 2.0 translates some formulas into a wrong automaton, `F ((a | X (a | X a)) R b)` among them; asking for
    the negation exposes it.
    """
    negation = to_storm(Operation("!", (formula,)))
    try:
        other = storm.check(chain, [negation], exact=settings.exact, timeout_s=settings.timeout_s)[0]
    except EngineError:
        return False  # nothing is learned, and the disagreement stands, with both its numbers
    return bool(np.any(np.abs(answer.value + other.value - 1) > AGREEMENT + chain.rounding_defect))


def _refuse_disagreement(formula: Node, answer: CheckedValues, batch: BatchResult) -> None:
    apart = _apart(answer, batch)
    if np.any(~(apart <= AGREEMENT)):
        at = int(np.argmax(apart))
        raise EngineError(
            f"the engines disagree on {to_text(formula)} at initial state {at}: {answer.engine} says "
            f"{float(answer.value[at])!r}, the batch engine says {float(batch.probability[0, at])!r} "
            f"(bounds {float(batch.lower[0, at])!r} to {float(batch.upper[0, at])!r})"
        )
