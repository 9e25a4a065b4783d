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
from scipy.sparse import csr_array

from verifier.chains.chain import MarkovChain
from verifier.checking.batch import BatchResult, satisfaction_probabilities
from verifier.checking.linear import ROUNDOFF
from verifier.checking.plan import Decided, decide
from verifier.checking.process import StormProcess
from verifier.checking.product import build_product
from verifier.checking.results import CheckedValues
from verifier.errors import EngineError
from verifier.expressions import substitute, to_text
from verifier.expressions.syntax import Name, Node
from verifier.ltl import abstract, to_storm

Floats = NDArray[np.float64]

AGREEMENT = 1e-9
"""What two engines may differ by beyond the bounds they state: Storm states none for general LTL formulas."""


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
        lower, upper: (m,) bounds of the true value: Storm's, widened by how far rounding the probabilities of the
            chain to doubles can move it. Equal to the value in exact mode.
        fractions: the exact values, or None.
        second: (m,) the batch engine's value.
        engine: what computed `probability`, for citing.
    """

    probability: Floats
    lower: Floats
    upper: Floats
    fractions: tuple[Fraction, ...] | None
    second: Floats
    engine: str


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
    answers = storm.check(
        chain, [to_storm(formula) for formula in formulas], exact=settings.exact, timeout_s=settings.timeout_s
    )
    return [
        _held_against(chain, formula, answer, storm, settings, value_error)
        for formula, answer in zip(formulas, answers, strict=True)
    ]


def _held_against(
    chain: MarkovChain,
    formula: Node,
    answer: CheckedValues,
    storm: StormProcess,
    settings: EngineSettings,
    value_error: float,
) -> TwoEngineValues:
    product = build_product(
        chain.indptr, chain.indices, chain.labels, formula, chain.initial, max_states=settings.product_states
    )
    batch = satisfaction_probabilities(
        product, chain.probabilities, rounding_defect=chain.rounding_defect, value_error=value_error
    )
    if answer.fractions is not None:
        lower = upper = answer.value
    elif chain.rounding_defect > 0:
        # Rows that do not sum to 1 have no one right value; what accepts and what rejects enclose it.
        _refuse_disagreement(formula, answer, answer.value, answer.value, batch)
        lower, upper = batch.lower[0], batch.upper[0]
    else:
        if answer.lower is None or answer.upper is None:
            decided = decide(product, np.ones(chain.transition_count, dtype=bool))
            lower, upper = _bounds_on_product(decided, chain.probabilities, storm, settings)
        else:
            lower, upper = answer.lower, answer.upper
        lower = np.minimum(lower, answer.value) - batch.representation_bound[0]
        upper = np.maximum(upper, answer.value) + batch.representation_bound[0]
    _refuse_disagreement(formula, answer, lower, upper, batch)
    return TwoEngineValues(answer.value, lower, upper, answer.fractions, batch.probability[0], answer.engine)


def _refuse_disagreement(
    formula: Node, answer: CheckedValues, lower: Floats, upper: Floats, batch: BatchResult
) -> None:
    apart = np.maximum(lower - batch.upper[0], batch.lower[0] - upper)
    if np.any(~(apart <= AGREEMENT)):
        at = int(np.argmax(apart))
        raise EngineError(
            f"the engines disagree on {to_text(formula)} at initial state {at}: {answer.engine} says "
            f"{answer.value[at]!r} (bounds {lower[at]!r} to {upper[at]!r}), the batch engine says "
            f"{batch.probability[0, at]!r} (bounds {batch.lower[0, at]!r} to {batch.upper[0, at]!r})"
        )


def _bounds_on_product(
    decided: Decided, probabilities: Floats, storm: StormProcess, settings: EngineSettings
) -> tuple[Floats, Floats]:
    """(m,) Storm's lower and upper bounds of reaching acceptance in the product of chain and formula."""
    chain, place = product_chain(decided, probabilities)
    answer = storm.check(chain, ['F "accept"'], timeout_s=settings.timeout_s)[0]
    if answer.lower is None or answer.upper is None:
        raise EngineError(f"{answer.engine} gave no bounds for reaching acceptance")
    return answer.lower[place], answer.upper[place]


def product_chain(decided: Decided, probabilities: Floats) -> tuple[MarkovChain, NDArray[np.int64]]:
    """The product as a Markov chain, its decided states merged into one that accepts and one that rejects.

    Args:
        decided: a product with its bottom components decided.
        probabilities: (nnz,) of the chain behind it.

    Returns:
        chain: with the label `accept`; its last two states are the accepting and the rejecting one.
        place: (m,) int64, for each initial state of the product its position among the chain's initial states.
    """
    graph = decided.graph
    open_states = np.flatnonzero(graph.reached & ~graph.accepting & ~graph.rejecting)
    count = len(open_states)
    number = np.full(graph.n, -1, dtype=np.int64)
    number[open_states] = np.arange(count)
    number[graph.accepting], number[graph.rejecting] = count, count + 1
    inside = number[graph.sources] < count
    sources = np.concatenate([number[graph.sources[inside]], [count, count + 1]])
    targets = np.concatenate([number[graph.targets[inside]], [count, count + 1]])
    weights = np.concatenate([probabilities[graph.edge[inside]], [1.0, 1.0]])
    # Several transitions may lead to one state now; building the rows adds them up.
    rows = csr_array((weights, (sources, targets)), shape=(count + 2, count + 2))
    rows.sum_duplicates()
    initial, place = np.unique(number[decided.product.start], return_inverse=True)
    chain = MarkovChain(
        indptr=rows.indptr.astype(np.int64),
        indices=rows.indices.astype(np.int64),
        probabilities=rows.data,
        labels={"accept": np.arange(count + 2) == count},
        initial=initial,
    )
    return chain, place.astype(np.int64)
